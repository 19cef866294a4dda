#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What doctor finds and bench measures on this machine."""
import json
import os
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET

from sieve import PROGRAM, Project, main


def doctor_finds_no_fault_on_this_machine():
    with Project() as p:
        status, out, _ = p.run("doctor", "--json", expect=None)
        found = json.loads(out)
        bad = [x for x in found["findings"] if x["health"] == "bad"]
        assert status == 0 and found["ok"] and not bad, bad
        names = {x["name"] for x in found["findings"]}
        assert {"version", "kernels", "worker", "chemistry", "locks", "database", "gpu", "free space"} <= names, names
        assert os.listdir(p.dir) == [], "doctor must clean up after itself"
        assert "\033" not in p.run("doctor")[1]
        with open("/proc/cpuinfo") as f:
            said = re.search("^(?:flags|Features)[ \t]*:(.*)", f.read(), re.M)
        own = said[1].split() if said else []
        known = "avx2 fma avx512f avx512bw avx512_bf16 avx512_vnni amx_tile amx_bf16 asimd sve bf16".split()
        features = {x["name"]: x["text"] for x in found["findings"]}["features"]
        assert features == (" ".join(w for w in known if w in own) or "none known"), (features, own)
        kernels = {x["name"]: x["text"] for x in found["findings"]}["kernels"]
        assert "the best of" in kernels and "portable" in kernels, kernels
        forced = p.run("doctor", env={"MOLSIEVE_CPU": "portable"})[1]
        assert re.search(r"kernels +portable, forced by MOLSIEVE_CPU; without it " + kernels.split(",")[0], forced), forced
        assert re.search(r"bad +kernels +MOLSIEVE_CPU=mmx", p.run("doctor", env={"MOLSIEVE_CPU": "mmx"}, expect=1)[1])
        status, out, _ = p.run("doctor", "/nonexistent/dir", expect=1)
        assert "bad" in out
        alone = shutil.copy(PROGRAM, p.path("molsieve"))  # without its worker beside it
        env = {k: v for k, v in os.environ.items() if k != "MOLSIEVE_CHEM"}
        done = subprocess.run([alone, "doctor"], capture_output=True, text=True, env=dict(env, PATH="/nonexistent"), cwd=p.dir)
        assert done.returncode == 1 and re.search(r"bad +worker +.*molsieve-chem", done.stdout), done.stdout
        # The GPU part is looked for in the named folder, beside the program and in ../lib/molsieve.
        own, lib = p.path("bin/molsieve"), "libmolsieve_cuda.so"
        for folder in ("bin", "lib/molsieve", "named"):
            os.makedirs(p.path(folder))
        shutil.move(alone, own)
        for folder in ("lib/molsieve", "bin", "named"):
            p.put("%s/%s" % (folder, lib), "no library")
            said = subprocess.run([own, "doctor"], capture_output=True, text=True, cwd=p.dir,
                                  env=dict(env, MOLSIEVE_PLUGINS=p.path("named") if folder == "named" else "")).stdout
            assert re.search(r"engine cuda: \S*/%s/%s: file too short" % (folder, lib), said), (folder, said)


def bench_measures_what_it_is_asked_for():
    model = os.path.join(os.environ["MOLSIEVE_SOURCE"], "workflows/models/esol.safetensors")
    quick = ["--batch", "2", "--seconds", "0", "--threads", "1", "--model", model]
    with Project() as p:
        found = json.loads(p.run("bench", *quick, "--variants", "portable exact", "--json")[1])
        assert found["peak"][0]["threads"] == 1 and found["peak"][0]["fp32_gflops"] > 0.1, found["peak"]
        assert set(found["graphs"]) == {"bonds", "radius5"}
        for graph, edges in (("bonds", (20, 60)), ("radius5", (100, 700))):
            table = found["graphs"][graph]
            assert table["molecules"] == 2 and edges[0] <= table["edges"] / 2 <= edges[1], table
            rows = {row["variant"]: row for row in table["rows"]}
            row = rows["cpu portable exact fp32"]
            assert row["train_mol_s"] > 0 and row["forward_mol_s"] > 0 and row["memory_mib"] > 1, row
            reference = rows.get("reference formulation, OpenBLAS")
            if reference:  # where OpenBLAS is installed
                assert reference["forward_x_reference"] == 1 and row["train_x_reference"] > 0, table
        p.put("two.smi", "CCO\nbroken(\nc1ccccc1O\n")
        _, out, _ = p.run("bench", *quick, "--graphs", "bonds", "--molecules", "two.smi",
                          "--variants", "none such,portable exact fp32")
        assert "4 layers" in out and "### bonds: 2 molecules of 11.0 atoms" in out and "radius5" not in out, out
        assert "| cpu portable exact fp32" in out and "| reference formulation" in out and "Load average" in out, out
        found = json.loads(p.run("bench", "--memory", "--batch", "30", "--graphs", "bonds", "--json")[1])["graphs"]["bonds"]["rows"]
        assert len(found) == 1 and found[0]["train_mib"] > found[0]["train_recompute_mib"] > found[0]["forward_mib"] > 10, found
        part = json.loads(p.run("bench", "--memory", "--batch", "30", "--graphs", "bonds", "--json", "--ranks", "4")[1])
        saved = found[0]["train_mib"] - part["graphs"]["bonds"]["rows"][0]["train_mib"]  # of moments and average
        assert 70 < saved < 84, saved
        roof = ["bench", "--roofline", *quick, "--graphs", "bonds", "--variants", "portable nodes fp32,portable exact fp32,portable nodes bf16"]
        found = json.loads(p.run(*roof, "--json")[1])["graphs"]["bonds"]["rows"]
        assert [row["variant"] for row in found] == [
            "cpu portable " + words for words in ("nodes fp32", "nodes bf16x3", "nodes bf16", "exact fp32")], found
        for row in found:
            shown = {one["operation"]: one for one in row["operations"]}
            assert abs(sum(one["of_step"] for one in shown.values()) - 1) < 1e-3 and row["bandwidth_gb_s"] > 0, row
            assert all(shown[name]["seconds"] > 0 and shown[name]["flops"] > 0 for name in ("edges", "attention", "head")), row
            assert (shown["radial"]["seconds"] > 0) == ("nodes" in row["variant"]) == (shown["radial back"]["seconds"] > 0), row
            assert shown["edges back"]["flops"] > shown["edges"]["flops"] and shown["weights"]["seconds"] > 0, row
            assert sum(one["seconds"] for one in shown.values()) <= row["step_seconds"] * (1 + 1e-4), row  # five digits
            one, products = shown["edges"], {"fp32": 0, "bf16": 1, "bf16x3": 3}[row["variant"].split()[-1]]
            least = (one["flops"] - one["rounded"]) / row["peak_gflops"] + products * one["rounded"] / row["unit_gflops"]
            assert abs(one["of_peak"] * one["seconds"] * 1e9 / least - 1) < 1e-3, row
            assert (one["rounded"] > 0) == (products > 0) == (row["unit"] is not None), row
        out = p.run(*roof, "--svg", "roof.svg")[1]
        page = ET.parse(p.path("roof.svg")).getroot()
        figures = page.findall("{*}g/{*}svg")
        assert [float(figure.get("height")) for figure in figures] == [int(page.get("height")) / 4] * 4, figures
        for row, figure in zip(found, figures):
            points = [one for one in figure.iter() if one.get("class", "").startswith("point")]
            counted = [one["operation"] for one in row["operations"] if one.get("flops", 0) > 0 and one["seconds"] > 0]
            assert [point.find("{*}text").text for point in points] == counted and row["variant"] in figure.get("aria-label"), row
            assert all("of bandwidth" in point.find("{*}title").text for point in points), row
        assert p.run("bench", *quick, "--svg", "other.svg", expect=2)[1] == "" and not os.path.exists(p.path("other.svg"))
        assert p.run(*roof, "--svg", "two.smi/roof.svg", expect=6)[1] == ""  # before it measures
        assert out.count("| attention  ") == out.count("| attention back ") == 4 and out.count("| radial  ") == 3 and "counted by the plan" in out, out
        assert "engines cpu and cuda, and --variants ref" in p.run("bench", "--roofline", *quick, "--variants", "ref", expect=2)[2]
        p.run("bench", "--roofline", "--memory", expect=2)
        for wrong in ("1,2", "1,2,x", "1,2,-3", "1,2,3,4", "0,1,2"):
            assert "--gpu-roof is three numbers" in p.run(*roof, "--gpu-roof", wrong, expect=2)[2], wrong
        for wrong in (["--graphs", "knn"], ["--batch", "0"], ["--ranks", "0"], ["--threads", "1,x"], ["--seconds", "long"]):
            p.run("bench", *wrong, expect=2)
        p.put("none.smi", "broken(\n")
        assert "none.smi" in p.run("bench", *quick, "--molecules", "none.smi", expect=2)[2]
        assert "gone.safetensors" in p.run("bench", "--model", "gone.safetensors", expect=6)[2]


def bench_shows_each_row_when_it_is_measured():
    """A bench takes minutes; what is known is there to read."""
    long = ["--batch", "2", "--seconds", "30", "--threads", "1", "--graphs", "bonds", "--variants", "portable exact fp32"]
    with Project() as p:
        bench = subprocess.Popen(p.command("bench", *long), cwd=p.dir, stdout=subprocess.PIPE)
        said = b""
        try:
            while b"\n|---" not in said:  # the line below the head of the table
                said += os.read(bench.stdout.fileno(), 1 << 16)
            assert said.endswith(b":|\n") and bench.poll() is None, "the head came with a row: " + said.decode()
        finally:
            bench.kill()
            bench.wait()


if __name__ == "__main__":
    main([doctor_finds_no_fault_on_this_machine, bench_measures_what_it_is_asked_for, bench_shows_each_row_when_it_is_measured])
