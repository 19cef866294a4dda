#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""libmolsieve_predict.so as an installed library: found by pkg-config and CMake, the numbers of `molsieve predict`, errors as codes."""
import csv
import io
import os
import re
import shutil
import subprocess

from sieve import PROGRAM, Project, main, skip

BUILD = os.path.dirname(os.path.dirname(os.path.abspath(PROGRAM)))
SOURCE = os.environ["MOLSIEVE_SOURCE"]
ALONE = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}
SMILES = ["CCO", "CC(=O)Oc1ccccc1C(=O)O", "c1ccccc1", "CC(=O", "[Xe]", "O=C(O)CCCCCCCCC(=O)O", "[2H]C", "FC(F)(F)c1ccc(Cl)cc1"]
WATER = "3\n\nO 0.00000 0.00000 0.11779\nH 0.00000 0.75545 -0.47116\nH 0.00000 -0.75545 -0.47116\n"
ETHANE = ("8\n\nC 0.0 0.0 0.7653\nC 0.0 0.0 -0.7653\nH 0.0 1.0192 1.1573\nH -0.8826 -0.5096 1.1573\nH 0.8826 -0.5096 1.1573\n"
          "H 0.0 -1.0192 -1.1573\nH -0.8826 0.5096 -1.1573\nH 0.8826 0.5096 -1.1573\n")


def installed(p):
    """A prefix that was moved after the installation; library and pkg-config file below it."""
    if not shutil.which("cmake") or not shutil.which("pkg-config"):
        skip("no cmake or pkg-config")
    if "-fsanitize" in open(BUILD + "/CMakeCache.txt").read():
        skip("a library with sanitizers needs a host with sanitizers")
    subprocess.run(["cmake", "--install", BUILD, "--prefix", p.path("first")], check=True, stdout=subprocess.DEVNULL)
    os.rename(p.path("first"), p.path("prefix"))
    return p.path("prefix")


def folder_of(prefix, name):
    return next(where for where, _, names in os.walk(prefix) if name in names)


def pkg_config(prefix, *words):
    env = dict(os.environ, PKG_CONFIG_PATH=folder_of(prefix, "molsieve_predict.pc"))
    return subprocess.run(["pkg-config", *words, "molsieve_predict"], env=env, check=True, capture_output=True, text=True).stdout.split()


def compiled(p, prefix, source):
    out = p.path("host")
    subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", "-o", out, source, *pkg_config(prefix, "--cflags", "--libs"), "-pthread",
                    "-Wl,-rpath," + folder_of(prefix, "libmolsieve_predict.so.0")], check=True)
    return out


def run(p, *argv, status=0, **env):
    done = subprocess.run(argv, env=dict(ALONE, **env), cwd=p.dir, capture_output=True, text=True, timeout=600)
    assert done.returncode == status and done.stderr == "", done
    return done.stdout


def rows_of_predict(p, model, name, text, format):
    """value, half-width, similarity, domain, reason, problem of each record, as `molsieve predict` says them."""
    p.put("in." + format, text)
    _, out, _ = p.run("predict", model, "in." + format, "-j", "1", expect=None)
    domain = {"inside": 1, "outside": 0, "": -1}
    number = lambda x: x and float(x) or (0.0 if x else None)
    return [(number(r[name]), number(r.get(name + "_interval90")), number(r.get(name + "_similarity")), domain[r.get(name + "_domain") or ""],
             r.get(name + "_reasons") or "", r["problem"]) for r in csv.DictReader(io.StringIO(out))]


def rows_of_host(text):
    number = lambda x: None if x == "nan" or x == "-nan" else float(x)
    rows = [line.split("\t") for line in text.splitlines()]
    return [(number(a), number(b), number(c), int(d), e, f) for a, b, c, d, e, f in rows]


def the_library_gives_the_numbers_of_predict_bit_for_bit():
    with Project() as p:
        prefix = installed(p)
        host = compiled(p, prefix, os.path.join(SOURCE, "tests/cli/library_host.c"))
        expected = rows_of_predict(p, "esol", "logS", "".join(s + "\n" for s in SMILES), "smi")
        assert len(expected) == len(SMILES) and sum(r[0] is not None for r in expected) >= 5, expected
        assert rows_of_host(run(p, host, "smiles", "esol", *SMILES)) == expected
        assert rows_of_host(run(p, host, "threads", "esol", *SMILES)) == expected
        many = SMILES * 10  # more than one batch
        assert rows_of_host(run(p, host, "smiles", "esol", *many)) == expected * 10
        for xyz in (WATER, ETHANE):
            expected = rows_of_predict(p, "qm9-gap", "gap", xyz, "xyz")
            assert expected[0][0] is not None, expected
            got = rows_of_host(run(p, host, "atoms", "qm9-gap", "in.xyz"))
            assert got[0] == expected[0], (got, expected)
            assert got[1][0] is None and got[1][5] == "parse: an atomic number is not between 1 and 118", got


def mistakes_are_codes_and_the_host_is_left_alone():
    with Project() as p:
        prefix = installed(p)
        host = compiled(p, prefix, os.path.join(SOURCE, "tests/cli/library_host.c"))
        told = run(p, host, "guest", "esol")
        assert told.count("good") == 10 and "BAD" not in told, told
        esol = open(os.path.join(prefix, "share/molsieve/workflows/models/esol.safetensors"), "rb").read()
        p.put("cut.safetensors", esol[:len(esol) // 2])
        p.put("text.safetensors", "no model\n")
        told = run(p, host, "open", "esol", "esoll", "cut.safetensors", "text.safetensors", "/nonexistent/x.safetensors").splitlines()
        assert [t.split()[:2] for t in told] == [["0", "same"], ["2", "same"], ["3", "same"], ["3", "same"], ["2", "same"]], told
        assert "did you mean esol" in told[1] and "cut.safetensors" in told[2], told
        os.remove(os.path.join(prefix, "bin/molsieve-chem"))
        told = run(p, host, "open", "esol")
        assert re.match(r"4 same molsieve-chem is neither beside .*MOLSIEVE_CHEM", told), told
        told = run(p, host, "open", "esol", MOLSIEVE_CHEM="/bin/true")
        assert told.startswith("4 same "), told
        shutil.copy(os.path.join(BUILD, "bin/molsieve-chem"), p.path("elsewhere"))
        assert run(p, host, "open", "esol", MOLSIEVE_CHEM=p.path("elsewhere")) == "0 same \n"


def only_the_interface_is_exported_with_its_version():
    with Project() as p:
        prefix = installed(p)
        lib = os.path.join(folder_of(prefix, "libmolsieve_predict.so.0"), "libmolsieve_predict.so.0")
        names = subprocess.run(["nm", "-D", "--defined-only", lib], check=True, capture_output=True, text=True).stdout.split()[2::3]
        header = open(os.path.join(prefix, "include/molsieve_predict.h")).read()
        declared = set(re.findall(r"^(?:[a-z].*[ *])(molsieve_[a-z_]+)\(", header, re.M))
        later = {"molsieve_n_columns", "molsieve_column_name", "molsieve_set_column"}  # a symbol keeps the version that it came with
        assert {n for n in names if n.startswith("molsieve_")} == {n + "@@MOLSIEVE_PREDICT_0" + "_1" * (n in later) for n in declared}, names
        assert all("MOLSIEVE_PREDICT_0" in n for n in names) or names == [], names
        assert "libmolsieve_predict.so.0" in subprocess.run(["readelf", "-d", lib], check=True, capture_output=True, text=True).stdout
        version = subprocess.run([prefix + "/bin/molsieve", "--version"], capture_output=True, text=True).stdout.split()[1]
        assert pkg_config(prefix, "--modversion") == [version]
        subprocess.run(["g++", "-x", "c++", "-Wall", "-Werror", "-fsyntax-only", os.path.join(prefix, "include/molsieve_predict.h")], check=True)


def the_example_is_built_by_pkg_config_and_by_cmake():
    with Project() as p:
        prefix = installed(p)
        first = run(p, compiled(p, prefix, os.path.join(SOURCE, "docs/examples/predict.c")), "esol", "CCO", "C1CC")
        value = rows_of_predict(p, "esol", "logS", "CCO\n", "smi")[0][0]
        assert first.startswith("CCO\t%.17g " % value) and "\nC1CC\tInvalid SMILES string" in first, first
        subprocess.run(["cmake", "-S", os.path.join(SOURCE, "docs/examples"), "-B", p.path("b"), "-DCMAKE_PREFIX_PATH=" + prefix], check=True,
                       stdout=subprocess.DEVNULL)
        subprocess.run(["cmake", "--build", p.path("b")], check=True, stdout=subprocess.DEVNULL)
        assert run(p, p.path("b/predict"), "esol", "CCO", "C1CC") == first


main([the_library_gives_the_numbers_of_predict_bit_for_bit, mistakes_are_codes_and_the_host_is_left_alone,
      only_the_interface_is_exported_with_its_version, the_example_is_built_by_pkg_config_and_by_cmake])
