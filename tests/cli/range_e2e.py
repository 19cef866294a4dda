#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether a score is inside of the domain of its model: the reasons, in every place that shows a score."""
import csv
import json
import math
import re
import struct

import sieve
from domain_e2e import RANK, prepared, screen, train
from train_e2e import GRAPH, READ, TINY, tensors

FRACTIONS = "stages.split.fractions={train: 0.5, valid: 0.1, test: 0.4}"
ROWS = "SELECT smiles, domain, reasons, interval90, similarity, n_heavy FROM score JOIN molecule USING(mol_id) ORDER BY mol_id"
BUILT = "  read: {}\n  prepare: {conformers: {source: generate}, labels: none}\n" + GRAPH + "  score: {}\n"


def screen_smiles(p, name, smiles, models, tail="", prepare="", more=()):
    p.put(name + ".smi", "".join("%s m%d\n" % (s, i) for i, s in enumerate(smiles)))
    p.workflow([name + ".smi"], BUILT.replace("labels: none", "labels: none" + prepare) + tail, name=name + ".yaml", workdir=name,
               extra="models:\n" + "".join("  %s: {path: %s.safetensors}\n" % (m, m) for m in models))
    return p.run("run", name + ".yaml", *more)


def forget_range(path, to):
    """The same model as an earlier version wrote it."""
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + n])
    meta = header["__metadata__"]
    del meta["range"]
    meta.pop("sha256", None)
    target = json.loads(meta["target"])
    target.pop("similarity_at_least", None)
    meta["target"] = json.dumps(target)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(to, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data[8 + n:])


def generated_3d_is_outside_a_model_of_measured_3d():
    with sieve.Project() as p:
        prepared(p, 150)
        train(p, "dft", FRACTIONS)
        meta = tensors(p.path("dft.safetensors"))[1]
        known = json.loads(meta["range"])
        assert known["structures"] == ["input"] and known["molecules"] == 75 and known["form"] == "as drawn", known
        assert known["heavy_atoms"][1] in (8, 9) and known["charge"] == [0, 0] and "C" in known["atoms"], known
        lowest = json.loads(meta["target"])["similarity_at_least"]
        assert 0 < lowest < 0.5
        said = "%.2f" % (math.ceil(100 * lowest - 1e-9) / 100)
        info = p.run("model", "info", "dft.safetensors")[1]
        assert re.search(r"\n  range       heavy atoms \d to \d, net charge 0 to 0, .*; acids and bases as drawn; structures from file\n", info), info
        assert "; none below a similarity of %s, rounded up (" % said in info, (lowest, info)
        out = screen_smiles(p, "lib", ["CCO", "c1ccccc1O", "CC(C)C#N"], ["dft"], RANK.replace("write: {", "write: {csv: hits.csv, ") % "")[1]
        rows = p.rows(ROWS, workdir="lib")
        assert [r[1] for r in rows] == ["outside"] * 3 and all(r[3] is None for r in rows)
        assert all("structure built (MMFF94), model trained on structures from file" in r[2].split("; ") for r in rows), rows
        p.put("far.smi", "C#CC#CC#CC#C\nNN=NN\nOOO\n")  # model info and the reasons name one limit
        far = p.run("predict", "dft.safetensors", "far.smi", "-c", "gap_ev_reasons")[1]
        assert set(re.findall(r"similarity [\d.]+ < ([\d.]+)", far)) == {said}, (said, far)
        # The domain is shown everywhere: the last lines of the run, top, the files, the report, the view.
        assert re.search(r"^3 of 3 scores of gap_ev are outside of the domain of the model, without interval: structure 3", out, re.M), out
        assert out.count("(no interval: outside domain)") == 3 and "+-" not in out
        top = p.run("top", "lib")[1]
        assert re.search(r"3 of 3 hits' scores of gap_ev are outside .* structure 3", top) and re.search(r" domain +smiles ", top) and top.count(" outside ") >= 3, top
        table = list(csv.DictReader(open(p.path("lib/hits.csv"))))
        assert [r["gap_ev_domain"] for r in table] == ["outside"] * 3 and all("structure built" in r["gap_ev_reasons"] for r in table)
        assert "gap_ev_interval90" not in table[0]
        sdf = open(p.path("lib/hits.sdf")).read()
        assert sdf.count(">  <gap_ev_domain>\noutside\n") == 3 and sdf.count("<gap_ev_reasons>") == 3 and "interval90" not in sdf
        p.run("report", "lib")
        page = open(p.path("lib/report.html")).read()
        assert "3 of 3 scores of gap_ev are outside of the domain of the model" in page
        assert p.rows("SELECT domain, count(*) FROM v_hits WHERE reasons LIKE '%structure%' GROUP BY 1", workdir="lib") == [("outside", 3)]
        told = json.loads(p.run("query", "--json", "SELECT domain, reasons, interval90 FROM v_hits ORDER BY rank", "lib")[1])
        assert all(r["domain"] == "outside" and r["interval90"] is None for r in told)
        # A ranking of molecules inside is empty; with the original structures it has some.
        assert "empty" in "".join(p.run("run", "lib.yaml", "stages.rank.domain=inside")[1:]) and p.rows("SELECT * FROM hit", workdir="lib") == []
        screen(p, "same", ["dft"], RANK % "")
        rows = p.rows(ROWS, workdir="same")
        inside = {r[0] for r in rows if r[1] == "inside"}
        assert 90 < len(inside) < 150 and all((r[3] is not None) == (r[1] == "inside") and (r[2] is None) == (r[1] == "inside") for r in rows)
        assert all(("similarity" in (r[2] or "")) == (r[4] < lowest) for r in rows)
        p.run("run", "same.yaml", "-q", "stages.rank.domain=inside")
        assert {s for s, in p.rows("SELECT smiles FROM hit JOIN molecule USING(mol_id)", workdir="same")} == inside


def size_charge_rings_and_form_decide_the_domain():
    with sieve.Project() as p:
        smiles = ["C" * (1 + i % 6) + "O" * (i % 2) + "c1ccccc1" * (i % 3 == 0) + "C" * (i % 4) for i in range(240)]
        smiles = sorted(set(smiles))
        p.put("t.csv", "SMILES,y\n" + "".join("%s,%.3f\n" % (s, len(s) + 0.1 * (i % 7)) for i, s in enumerate(smiles)))
        p.workflow(["t.csv"], "  read: {}\n  prepare: {conformers: {source: generate}, labels: [y]}\n" + GRAPH +
                   "  split: {fractions: {train: 0.6, valid: 0.1, test: 0.3}}\n  train:\n    targets: [{name: y}]\n    %s\n    epochs: 1\n" % TINY)
        p.run("run", "w.yaml", "-q")
        forget_range(p.path("run/models/e2e.safetensors"), p.path("old.safetensors"))
        open(p.path("new.safetensors"), "wb").write(open(p.path("run/models/e2e.safetensors"), "rb").read())
        odd = {"CCCO": "", "CCC[O-]": "net charge -1 < 0", "CCCCCCCCCCCCCCCCCCCCCC": "heavy atoms", "C1CCCCCC1": "ring of 7",
               "c1ccc2cc3ccccc3cc2c1": "rings 3 > ", "C=CC=CC=CC=CC=C": "conjugated atoms", "CC[CH]CC": "unusual valences 1 > 0",
               "[O]c1ccccc1": "unusual valences 1 > 0", "CC[C]CC": "unusual valences 1 > 0"}
        out = screen_smiles(p, "lib", list(odd), ["new"])[1]
        rows = p.rows(ROWS, workdir="lib")
        assert len(rows) == len(odd)
        for (_, domain, reasons, _, _, _), (s, word) in zip(rows, odd.items()):
            if word:
                assert domain == "outside" and any(r.startswith(word) for r in reasons.split("; ")), (s, reasons)
            assert "structure" not in (reasons or ""), (s, reasons)
        assert rows[0][1] == "inside" and "8 of 9 scores of y are outside of the domain" in out, (rows[0], out)
        assert "atomic charge O-1 not in the training" in rows[1][2], rows[1]
        # An older model: the domain is unknown, which is reported once; its similarity still works.
        status, out, err = screen_smiles(p, "past", list(odd), ["old"], more=("-j", "2"))
        rows = p.rows(ROWS, workdir="past")
        assert [r[1] for r in rows] == [None] * len(odd) and all(r[2] is None and r[4] is not None for r in rows)
        assert (out + err).count("has no applicability domain") == 1 and "train it again" in err, err
        assert "9 of 9 scores of y have no known domain" in out, out
        assert "not known" in p.run("model", "info", "old.safetensors")[1]
        bad = p.run("check", "past.yaml", "+stages.rank={objectives: [{property: y, goal: maximise}], domain: inside}", expect=2)[2]
        assert "rank: domain: a model of y has no applicability domain; train it again" in bad, bad
        # Together with a model that has a range, molecules outside of that range are outside; for the others the domain is unknown.
        screen_smiles(p, "both", list(odd), ["new", "old"])
        alone = {r[0]: r[1] for r in p.rows(ROWS, workdir="lib")}
        assert {r[0]: r[1] for r in p.rows(ROWS, workdir="both")} == {s: "outside" if d == "outside" else None for s, d in alone.items()}


def unseen_elements_are_failure_rows_with_a_reason():
    with sieve.Project() as p:
        prepared(p, 90)
        p.run("run", "w.yaml", "-q", "stages.train.epochs=1", "stages.train.model.elements=[H, C, O]")
        left = p.one("SELECT count(*) FROM molecule JOIN split USING(mol_id) WHERE formula GLOB '*[NF]*'")
        for stage in ("train", "evaluate"):
            rows = p.rows("SELECT message, count(DISTINCT mol_id) FROM failure WHERE stage=? AND code='element' GROUP BY 1", stage)
            assert sum(n for _, n in rows) == left > 15 and all(re.fullmatch("model e2e has not seen element [NF]", m) for m, _ in rows), rows
        assert p.one("SELECT count(*) FROM evaluated") == 90 - left
        status, out, err = p.run("run", "w.yaml", "stages.train.epochs=1", "stages.train.model.elements=[H, C, O]", "stages.evaluate.on=[test]")
        held = p.one("SELECT count(*) FROM molecule JOIN split USING(mol_id) WHERE formula GLOB '*[NF]*' AND part='test'")
        assert "%d test molecules have elements that model e2e has not seen" % held in err, err
        # A second model scores them; a model that cannot does not stop the run.
        open(p.path("few.safetensors"), "wb").write(open(p.path("run/models/e2e.safetensors"), "rb").read())
        train(p, "all")
        screen(p, "two", ["all", "few"], RANK % "")
        assert p.rows("SELECT n_models, count(*) FROM score GROUP BY 1", workdir="two") == [(1, left), (2, 90 - left)]
        assert p.one("SELECT count(*) FROM failure WHERE stage='score' AND code='element'", workdir="two") == left
        assert p.one("SELECT failed FROM v_progress WHERE stage='score'", workdir="two") == 0
        p.run("run", "two.yaml", "-q", "workdir=few", "stages.score.models=[few]", expect=3)  # alone, the model fails more molecules than allowed


sieve.main([generated_3d_is_outside_a_model_of_measured_3d, size_charge_rings_and_form_decide_the_domain, unseen_elements_are_failure_rows_with_a_reason])
