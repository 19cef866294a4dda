#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`molsieve conformers`, and what the native builder of `prepare` promises: stereo, order, energies, reasons."""
import gzip
import os
import subprocess

import sieve
from sieve import Project, data, main

STEREO = ("C[C@H](N)C(=O)O ala", "C[C@@H](N)C(=O)O dala", "C/C=C/C e", "C/C=C\\C z", "C[S@](=O)CC so", "C[S@@](=O)CC os",
          "O[C@@H]1CCCC[C@H]1O trans", "O[C@H]1CCCC[C@H]1O cis", "F/C(Cl)=C(/Br)I four", "C1C[C@H]2CC[C@@H]1C2 bridged")


def records(text):
    """[(title, {field: value}, molfile)]"""
    out = []
    for r in text.split("$$$$\n")[:-1]:
        lines = r.split("\n")
        fields = {line[4:-1]: lines[i + 1] for i, line in enumerate(lines) if line.startswith(">  <")}
        out.append((lines[0], fields, r[:r.index("M  END") + 7]))
    return out


def any_number_of_threads_writes_the_same_in_order():
    with Project() as p:
        name = data("library.smi")
        titles = [line.split()[1] for line in open(name)][:300]
        p.put("in.smi", "".join(open(name).readlines()[:300]))
        p.run("conformers", "in.smi", "-o", "one.sdf", "-j", "1")
        p.run("conformers", "in.smi", "-o", "three.sdf.gz", "-j", "3")
        one = open(p.path("one.sdf")).read()
        assert one == gzip.open(p.path("three.sdf.gz"), "rt").read() == p.run("conformers", "in.smi")[1]
        got = records(one)
        assert [t for t, _, _ in got] == titles
        native = sum(f["built_by"] == "native" for _, f, _ in got)
        assert native >= 295 and all(("fallback" in f) == (f["built_by"] == "openbabel") for _, f, _ in got), native
        assert p.run("conformers", "in.smi", "--seed", "2")[1] != one


def an_ensemble_has_increasing_energies_within_the_window():
    with Project() as p:
        p.put("in.csv", "name,smiles\npentane,CCCCC\nbenzene,c1ccccc1\n")
        got = records(p.run("conformers", "in.csv", "--count", "30", "--window", "3")[1])
        by = {t: [f for u, f, _ in got if u == t] for t in ("pentane", "benzene")}
        assert len(by["benzene"]) == 1 and 3 <= len(by["pentane"]) <= 5, [(t, len(f)) for t, f in by.items()]
        energy = [float(f["energy (kcal/mol)"]) for f in by["pentane"]]
        assert energy == sorted(energy) and energy[-1] - energy[0] <= 3 and [f["rank"] for f in by["pentane"]] == [str(k + 1) for k in range(len(energy))]
        assert 0.6 < energy[1] - energy[0] < 1.1, energy # gauche; MMFF94 has 0.8
        few = records(p.run("conformers", "in.csv", "--count", "30", "--window", "0.5")[1])
        assert len(few) == 2, len(few)


def defined_stereo_is_that_of_the_positions():
    with Project() as p:
        p.put("in.smi", "\n".join(STEREO) + "\n")
        p.run("conformers", "in.smi", "-o", "out.sdf")
        assert all(f["built_by"] == "native" for _, f, _ in records(open(p.path("out.sdf")).read()))
        keys = []
        for name, source in (("in.smi", "none"), ("out.sdf", "keep")):
            w = p.workflow([name], "  read: {}\n  prepare: {conformers: {source: %s}, dedupe: {by: none}}\n" % source, name=source + ".yaml", workdir=source)
            p.run("run", w, "-q")
            keys.append(p.rows("SELECT title, inchikey, smiles FROM molecule JOIN record USING(mol_id) ORDER BY 1", workdir=source))
        assert keys[0] == keys[1] and len({k for _, k, _ in keys[0]}) == len(STEREO), keys


def what_has_no_structure_is_named_and_the_rest_written():
    with Project() as p:
        p.put("in.smi", "CCO good\nC1CC bad\nOB(O)c1ccccc1 boron\nCC(=O)[O-].[Na+] salt\n")
        _, out, err = p.run("conformers", "in.smi", expect=3)
        assert "in.smi:2: bad: " in err and "1 of 4 records have no structure" in err, err
        got = {t: f for t, f, _ in records(out)}
        assert list(got) == ["good", "boron", "salt"]
        assert got["boron"]["built_by"] == "openbabel" and "atom 2 (B)" in got["boron"]["fallback"], got["boron"]
        assert got["salt"]["removed"] == "[Na+]"
        p.put("empty.smi", "")
        assert "no record" in p.run("conformers", "empty.smi", expect=1)[2]
        for wrong in (("--count", "0"), ("--count", "x"), ("--force-field", "uff"), ("--window", "-1"), ("--seed", "-1")):
            assert wrong[0] in p.run("conformers", "in.smi", *wrong, expect=2)[2]
        p.run("conformers", "in.smi", "-o", "in.smi/out.sdf", expect=6)
        p.run("conformers", "missing.smi", expect=6)


def standard_input_is_read():
    with Project() as p:
        done = subprocess.run(p.command("conformers", "-", "--force-field", "mmff94s"), input="CCO ethanol\nNC(=O)c1ccccc1 amide\n", cwd=p.dir,
                              capture_output=True, text=True, timeout=60)
        got = records(done.stdout)
        assert done.returncode == 0 and [t for t, _, _ in got] == ["ethanol", "amide"], done.stderr
        assert all(f["force_field"] == "mmff94s" for _, f, _ in got)


def the_row_says_who_built_a_structure_and_why():
    with Project() as p:
        p.put("in.smi", "CCO a\nOB(O)c1ccccc1 b\n")
        stages = "  read: {}\n  prepare: {conformers: {source: generate%s}}\n"
        for name, more in (("native", ""), ("s", ", force_field: mmff94s"), ("old", ", builder: openbabel"), ("uff", ", force_field: uff")):
            p.run("run", p.workflow(["in.smi"], stages % more, name=name + ".yaml", workdir=name), "-q")
        sql = "SELECT built_by, geometry, converged, steps>0, fallback IS NULL FROM molecule ORDER BY mol_id"
        assert p.rows(sql, workdir="native") == [("native", "mmff94", 1, 1, 1), ("openbabel", "uff", None, None, 0)]
        assert p.rows(sql, workdir="s")[0] == ("native", "mmff94s", 1, 1, 1)
        assert p.rows(sql, workdir="old")[0] == ("openbabel", "mmff94", None, None, 1)
        assert p.rows(sql, workdir="uff")[0] == ("openbabel", "uff", None, None, 1)
        # Structures from the cache have the same built_by and fallback.
        before = p.rows(sql, workdir="native"), p.run("db", "digest", "native")[1]
        _, _, err = p.run("run", "native.yaml", "stages.prepare.max_atoms=900")
        assert "0 structures built, 2 from the cache" in err, err
        assert p.rows(sql, workdir="native") == before[0]
        err = p.run("check", p.workflow(["in.smi"], stages % ", builder: openbabel, force_field: mmff94s", name="no.yaml"), expect=2)[2]
        assert "only the native builder has mmff94s" in err and "no.yaml:" in err, err


def all_structures_of_a_run_can_be_exported():
    with Project() as p:
        p.put("in.smi", "CCCCCC hexane\nc1ccccc1 benzene\nOCCN amino\n")
        w = p.workflow(["in.smi"], "  read: {}\n  prepare: {conformers: {source: generate, count: 6}}\n")
        p.run("run", w, "-q")
        have = dict(p.rows("SELECT title, structures FROM molecule JOIN record USING(mol_id)"))
        assert have["hexane"] > 2 and have["benzene"] == 1, have
        every, lowest = (records(p.run("export", "sdf", "run", "--all", *more)[1]) for more in (("--conformers", "all"), ()))
        for title, n in have.items():
            mine = [(f, mol) for t, f, mol in every if t == title]
            assert [f["conformer"] for f, _ in mine] == [str(k + 1) for k in range(n)], mine
            assert [k for k, (f, _) in enumerate(mine) if "energy (kcal/mol)" in f] == [0]
            assert len({mol for _, mol in mine}) == n and mine[0][1] == dict((t, mol) for t, _, mol in lowest)[title]
        assert len(lowest) == 3 and not any("conformer" in f for _, f, _ in lowest)
        assert "lowest and all" in p.run("export", "sdf", "run", "--conformers", "some", expect=2)[2]
        assert "only sdf" in p.run("export", "csv", "run", "--conformers", "all", expect=2)[2]


if __name__ == "__main__":
    main([any_number_of_threads_writes_the_same_in_order, an_ensemble_has_increasing_energies_within_the_window,
          defined_stereo_is_that_of_the_positions, what_has_no_structure_is_named_and_the_rest_written, standard_input_is_read,
          the_row_says_who_built_a_structure_and_why, all_structures_of_a_run_can_be_exported])
