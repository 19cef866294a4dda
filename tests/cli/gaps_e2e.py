#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Targets with gaps: what was measured for molecules of one kind alone is outside of its domain for others, which another target knows."""
import csv
import json

import sieve
from targets_e2e import FLAT, NUMBERS, assays, begin, metadata

IN = "{path: in.csv, format: csv, columns: {smiles: smiles, title: name}}"
PATH = "run/models/e2e.safetensors"
WHY = ("element Cl rare in the training", "column T 80 > 40")
SHARED = "model %s was trained by an earlier version on labels with gaps and has one range of molecules, or one similarity, for all its targets"
SCORES = ("SELECT m.smiles, l.value, p.name, domain, coalesce(reasons,''), interval90 IS NULL FROM score JOIN molecule m USING(mol_id) JOIN "
          "property p USING(property_id) JOIN label l USING(mol_id) JOIN property t ON t.property_id=l.property_id WHERE t.name='T'")


def dry(p):
    """Of ESOL's molecules, every third of them at 80 degrees, `dry` is known of those without chlorine, at 20 and 40; logS of all."""
    assays(p)
    with open(p.path("in.csv")) as f:
        rows = list(csv.DictReader(f))
    with open(p.path("in.csv"), "w") as f:
        f.write("smiles,name,T,logS,dry\n")
        for k, row in enumerate(rows):
            known = "Cl" not in row["smiles"] and k % 3 > 0
            f.write("%s,%s,%d,%s,%s\n" % (row["smiles"], row["name"], (80, 20, 40)[k % 3], row["logS"], row["logS"] if known else ""))


def without_own(meta):
    target = json.loads(meta["target"])
    for one in target["targets"]:
        one.pop("range", None), one.pop("columns", None)
    meta["target"] = json.dumps(target)


def predicted(p, path):
    """By target: domain and reasons of a molecule with chlorine, one at 80 degrees, and one that both know."""
    p.put("new.csv", "smiles,name,T\nClc1ccccc1Cl,a,20\nOc1ccccc1,b,80\nOc1ccccc1,c,20\n")
    _, out, said = p.run("predict", path, "new.csv")
    rows = list(csv.DictReader(out.splitlines()))
    assert all((r[k + "_interval90"] == "") == (r[k + "_domain"] == "outside") for r in rows for k in ("logS", "dry")), out
    return {k: [(r[k + "_domain"], r[k + "_reasons"]) for r in rows] for k in ("logS", "dry")}, said


def a_target_with_gaps_has_a_domain_of_its_own():
    with sieve.Project() as p:
        dry(p)
        stages = FLAT % ("logS, dry, T", "logS: {better: high}", "trees, gp", "{name: logS}, {name: dry, transform: composition}")
        p.workflow([IN], stages.replace("composition}]", "composition}], inputs: {columns: [T]}"))
        p.run("run", "w.yaml", "-q")
        inside = {"logS": set(), "dry": set()}
        for smiles, at, name, domain, reasons, bare in p.rows(SCORES):
            told = [name == "dry" and odd for odd in ("Cl" in smiles, at > 40)]
            assert [why in reasons.split("; ") for why in WHY] == told, (smiles, at, name, reasons)
            assert bare == (domain == "outside"), (smiles, name, domain)
            if domain == "inside":
                inside[name].add(("Cl" in smiles, at > 40))
        assert {(True, False), (False, True)} <= inside["logS"] and inside["dry"] == {(False, False)}, inside
        meta = metadata(p.path(PATH))
        first, second = meta["target"]["targets"]
        assert not {"range", "columns"} & set(first) and second["columns"] == [[20, 40]], (first, second)
        assert "Cl" not in second["range"]["atoms"] and "Cl" in meta["range"]["atoms"] and second["range"]["molecules"] < meta["range"]["molecules"] == 48
        said = p.run("model", "info", PATH)[1]
        assert said.count("  range  ") == 2 and "of the 48 training molecules\n  range  " in said.split("\ndry\n  domain      ")[1] and "  columns     T, 20 to 40\n" in said and "together, although" not in said, said
        want = {"logS": [("inside", "")] * 3, "dry": [("outside", WHY[0]), ("outside", WHY[1]), ("inside", "")]}
        got, said = predicted(p, PATH)
        assert got == want and "earlier version" not in said, (got, said)
        # A file of an earlier version is read as it was, with a warning.
        sieve.older_model(p.path(PATH), p.path("old.safetensors"), without_own)
        got, said = predicted(p, "old.safetensors")
        assert got == {k: want["logS"] for k in got} and said.count(SHARED % "e2e") == 1, (got, said)
        said = p.run("model", "diff", "old.safetensors", PATH, expect=1)[1]
        assert said.startswith("target.targets[1].range: nothing -> {") and "\ntarget.targets[1].columns: nothing -> [[20.0,40.0]]\n" in said, said
        assert said.count("\n") == 2, said
        assert p.run("model", "info", "old.safetensors")[1].count("of all targets together, although some molecules lack some of them: train it again") == 1


def calibration_gives_each_target_the_domain_of_its_own():
    with sieve.Project() as p:
        dry(p)
        p.workflow([IN], FLAT % ("logS, dry", "logS: {better: high}", "trees", "{name: logS}, {name: dry}"))
        p.run("run", "w.yaml", "-q", "--until", "train")
        before = metadata(p.path(PATH))
        sieve.older_model(p.path(PATH), p.path("old.safetensors"), without_own)
        stages = FLAT[:FLAT.index("  split:")] % ("logS, dry", "logS: {better: high}")
        p.workflow([IN], stages + "  evaluate: {models: [old, now], calibrate: true, on: [calibration]}\n  score: {models: [old]}\n", name="c.yaml",
                   workdir="c", extra="models:\n  old: {path: old.safetensors}\n  now: {path: %s}\n" % PATH)
        said = p.run("run", "c.yaml", "-q")[2]
        assert said.count(SHARED % "old") == 1, said
        learned = before["range"]["molecules"]
        for name, molecules in (("old", learned), ("now", before["target"]["targets"][1]["range"]["molecules"])):
            path = "c/models/%s-calibrated.safetensors" % name
            meta = metadata(p.path(path))
            first, second = meta["target"]["targets"]
            assert "range" not in first and "Cl" not in second["range"]["atoms"] and "Cl" in meta["range"]["atoms"], (name, first, second)
            assert meta["range"]["molecules"] == learned and second["range"]["molecules"] == molecules, (name, second)
            assert meta["range"]["heavy_atoms"] != before["range"]["heavy_atoms"], name
            assert "together, although" not in p.run("model", "info", path)[1], name
        assert molecules < learned


def alike(one, other):
    one, other = int.from_bytes(one, "little"), int.from_bytes(other, "little")
    return (one & other).bit_count() / max(1, (one | other).bit_count())


def a_similarity_is_to_molecules_that_have_the_target():
    """Of a network whose targets share a third of their molecules: scores, evaluation, `explain`, and a file without what was measured."""
    with sieve.Project() as p:
        known = begin(p, NUMBERS, epochs=1)
        p.run("run", "w.yaml", "-q")
        prints = {m: (key, bits) for m, key, bits in p.rows("SELECT mol_id, inchikey, bits FROM fingerprint JOIN molecule USING(mol_id)")}
        train = [m for m, in p.rows("SELECT mol_id FROM split WHERE part='train'") if {"gap", "mu"} & set(known.get(m, ()))]
        tried = 0
        for label, name in (("gap", "gap (eV)"), ("mu", "dipole")):
            near = {m: [(alike(bits, prints[t][1]), t) for t in train if label in known[t]] for m, (_, bits) in prints.items()}
            any_target = {m: max(alike(bits, prints[t][1]) for t in train) for m, (_, bits) in prints.items()}
            for m, got, key in p.rows("SELECT mol_id, similarity, nearest FROM prediction JOIN property USING(property_id) WHERE name=?", name):
                assert abs(got - max(near[m])[0]) < 1e-9 and key in [prints[t][0] for a, t in near[m] if abs(a - got) < 1e-9], (name, m)
                tried += got < any_target[m] - 1e-9
            for m, got in p.rows("SELECT mol_id, similarity FROM evaluated JOIN property USING(property_id) WHERE name=?", name):
                assert abs(got - max(near[m])[0]) < 1e-9, (name, m)
            told = p.run("explain", str(train[-1]), "run")[1].split("nearest training molecules of %s (" % name.split(" ")[0])
            assert len(told) == 2, told
            lines = told[1].split("\n")[1:4]
            assert all("  %s " % name.split(" ")[0] in line for line in lines), lines
            assert [line.split()[0] for line in lines] == ["%.2f" % a for a, _ in sorted(near[train[-1]], reverse=True)[:3]], lines
        assert tried > 20, tried  # the nearest of any target lacks this one
        said = p.run("model", "info", PATH)[1]
        assert all("  domain      %d of the %d training molecules\n" % (sum(label in known[m] for m in train), len(train)) in said
                   for label in ("gap", "mu")) and "with any of" not in said, said


if __name__ == "__main__":
    sieve.main([a_similarity_is_to_molecules_that_have_the_target, a_target_with_gaps_has_a_domain_of_its_own, calibration_gives_each_target_the_domain_of_its_own])
