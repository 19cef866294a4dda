#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Several targets of one network: labels with missing values are trained, evaluated, scored and ranked together."""
import csv
import json
import math
import os
import re
import shutil
import statistics
import struct

import ranks_e2e
import sieve
from report_e2e import read_page

SDF = "qm9/qm9_dev_2500.sdf.gz"
EV = 27.211386
STAGES = """  read: {unit: 40}
  prepare:
    conformers: {source: keep}
    labels: [gap, mu, basic, acid]
    properties: {gap: {unit: hartree}, mu: {unit: D}, basic: {task: classification}, acid: {task: classification}}
  graph: {edges: bonds}
  split: {fractions: {train: 0.6, valid: 0.2, test: 0.2}}
"""
TRAIN = """  train:
    targets: %s
    model: {layers: 1, degrees: 2, channels: 8, heads: 2}
    batch: {molecules: 8, shards: 2}
    epochs: %d
    ema: 0.9
    optimiser: {lr: 0.002}
"""
REST = """  evaluate: {on: [train, valid, test]}
  score: {}
"""
NUMBERS = "[{name: gap, unit: eV, factor: %s, better: high}, {name: dipole, column: mu, unit: D, transform: composition}]" % EV
CLASSES = "[{name: basic}, {name: acid}]"


def field(record, name):
    found = re.search(rb"> <%s>\n(.*)\n" % name, record)
    return float(found.group(1))


def labelled(n=110):
    """Every third molecule without a gap, every fifth without mu, so that every fifteenth has neither; and two classes."""
    out, known = b"", {}
    for i, record in enumerate(sieve.sdf_records(sieve.data(SDF), n).split(b"$$$$\n")[:n]):
        value = {"gap": field(record, b"gap"), "mu": field(record, b"mu"), "basic": float(b" N   " in record),
                 "acid": float(b" O   " in record)}
        for name, every in (("gap", 3), ("mu", 5), ("acid", 4)):
            if i % every == 0:
                del value[name]
        known[i + 1] = value
        body = record[:record.index(b"M  END") + 7]
        out += body + b"".join(b"> <%s>\n%r\n\n" % (k.encode(), v) for k, v in value.items()) + b"$$$$\n"
    return out, known


def begin(p, targets, epochs=6, more=REST):
    content, known = labelled()
    p.put("in.sdf", content)
    p.workflow(["in.sdf"], STAGES + TRAIN % (targets, epochs) + more)
    p.run("run", "w.yaml", "-q", "--until", "split")
    ids = dict(p.rows("SELECT mol_id, ordinal FROM record WHERE record_id=mol_id"))
    return {m: known[o] for m, o in ids.items()}


def metadata(path):
    with open(path, "rb") as f:
        raw = f.read()
    meta = json.loads(raw[8:8 + struct.unpack("<Q", raw[:8])[0]])["__metadata__"]
    return {k: json.loads(v) if v[:1] == "{" else v for k, v in meta.items()}


def stored(p, workdir="run"):
    with open(p.path(workdir, "models/e2e.safetensors"), "rb") as f:
        model = f.read()
    return (model, p.rows("SELECT stage, step, epoch, split, name, value FROM metric ORDER BY 1, 2, 4, 5", workdir=workdir),
            p.rows("SELECT p.name, part, metric, e.unit, value, n FROM evaluation e JOIN property p USING(property_id) ORDER BY 1, 2, 3", workdir=workdir),
            p.rows("SELECT mol_id, p.name, mean FROM score JOIN property p USING(property_id) ORDER BY 1, 2", workdir=workdir))


def targets_with_missing_values_are_learned_together():
    with sieve.Project() as p:
        known = begin(p, NUMBERS, epochs=40)
        for other in ("killed", "ranks"):
            shutil.copytree(p.path("run"), p.path(other))
        p.run("run", "w.yaml", "-q")
        # A prediction in eV of a label in hartree is a property of its own; one with the same unit, D, is not.
        names = {"gap": "gap (eV)", "mu": "dipole"}
        factor = {"gap": EV, "mu": 1.0}
        part = dict(p.rows("SELECT mol_id, part FROM split"))
        meta = metadata(p.path("run/models/e2e.safetensors"))
        assert meta["format_version"] == "3" and [t["name"] for t in meta["target"]["targets"]] == ["gap", "dipole"], meta["target"]
        assert meta["provenance"]["training"]["molecules"] == sum(1 for m in known if part[m] == "train" and ("gap" in known[m] or "mu" in known[m]))
        scores = {name: dict(p.rows("SELECT mol_id, mean FROM score JOIN property USING(property_id) WHERE name=?", name)) for name in names.values()}
        for k, (label, name) in enumerate(names.items()):
            mine = {m: v[label] * factor[label] for m, v in known.items() if label in v}
            train = [v for m, v in mine.items() if part[m] == "train"]
            if label == "gap":  # without a linear part: mean and standard deviation of the molecules that have the target
                scale = meta["scale"]["targets"][k]
                assert abs(scale["mean"] - statistics.fmean(train)) < 1e-9 and abs(scale["std"] - statistics.pstdev(train)) < 1e-9, scale
            got = p.rows("SELECT mol_id, e.part, measured, predicted, similarity FROM evaluated e JOIN property USING(property_id) WHERE name=?", name)
            assert {g[0] for g in got} == set(mine) and len(got) == len(mine), name
            assert all(part[m] == q and abs(y - mine[m]) < 1e-12 for m, q, y, _, _ in got)
            assert all(abs(scores[name][m] - x) < 1e-5 * max(1, abs(x)) for m, _, _, x, _ in got)
            assert all(s == 1 for _, q, _, _, s in got if q == "train") and any(s < 1 for _, q, _, _, s in got if q == "test")
            for one in ("train", "valid", "test"):
                errors = [abs(y - x) for _, q, y, x, _ in got if q == one]
                told = dict(p.rows("SELECT metric, value FROM evaluation JOIN property USING(property_id) WHERE name=? AND part=?", name, one))
                assert p.rows("SELECT DISTINCT n FROM evaluation JOIN property USING(property_id) WHERE name=? AND part=? AND metric='mae'",
                              name, one) == [(len(errors),)]
                assert abs(told["mae"] - statistics.fmean(errors)) < 1e-9 * told["mae"], (name, one)
                assert abs(told["mean.mae"] - statistics.fmean(abs(v - statistics.fmean(train)) for m, v in mine.items() if part[m] == one)) < 1e-9
        assert len(scores["dipole"]) == 110 and len(scores["gap (eV)"]) == 110  # with and without labels
        for k, (label, name) in enumerate(names.items()):  # each target has its own interval, here one band from the test part
            errors = sorted(e for e, in p.rows("SELECT abs(predicted-measured) FROM evaluated e JOIN property USING(property_id) "
                                               "JOIN score USING(mol_id, property_id) WHERE name=? AND e.part='test' AND domain='inside'", name))
            (band,), at = meta["interval"]["targets"][k]["bands"], math.ceil(0.9 * (len(errors) + 1)) - 1
            assert band["molecules"] == len(errors) and abs(band["within"] - errors[at]) < 1e-4 * errors[at], (name, band)
            assert p.rows("SELECT DISTINCT interval90 FROM score JOIN property USING(property_id) WHERE name=? AND domain='inside'",
                          name) == [(band["within"],)]
        # It learns both targets: the training error is below that of the mean.
        for name in names.values():
            told = dict(p.rows("SELECT metric, value FROM evaluation JOIN property USING(property_id) WHERE name=? AND part='train'", name))
            assert told["mae"] < 0.9 * told["mean.mae"], (name, told)
        # The loss over both targets has no unit; on the test part each target has an error of its own.
        assert p.rows("SELECT DISTINCT name FROM metric WHERE split='valid'") == [("loss",)]
        assert {"gap.mae", "dipole.mae"} <= {n for (n,) in p.rows("SELECT name FROM metric WHERE split='test'")}
        info = p.run("model", "info", "run/models/e2e.safetensors")[1]
        assert re.search(r"predicts    gap, eV, high is better\n              dipole, D\n", info), info
        assert re.search(r"\ngap\n  domain  .*\n  range  .*\n  interval    90 % within [\d.]+ eV \(test\)\n  valid +MAE [\d.]+ eV; .*\n(.*\n)+dipole\n  domain  .*\n  range  .*\n  interval .*\n  valid +MAE [\d.]+ D; ", info), info
        page, _ = read_page(p, "run")
        assert page.text.count("Errors in the unit of the property") == 2 and "gap (eV)" in page.text
        # After a kill, with more workers, and with two ranks over TCP: the same bytes.
        want = stored(p)
        p.run("run", "w.yaml", "-q", "workdir=killed", expect=137, env=dict(os.environ, MOLSIEVE_FAULT="train.checkpoint.after:2"))
        p.run("run", "w.yaml", "-q", "-j", "3", "workdir=killed")
        assert stored(p, "killed") == want
        status, text = ranks_e2e.Started(p, 2, "workdir=ranks").end()
        assert status == [0, 0], text
        assert stored(p, "ranks")[:1] == want[:1]


def classes_with_missing_values_are_learned_together():
    with sieve.Project() as p:
        known = begin(p, CLASSES, epochs=30)
        p.run("run", "w.yaml", "-q")
        meta = metadata(p.path("run/models/e2e.safetensors"))
        assert (meta["target"]["task"], meta["target"]["output"]) == ("classification", "logistic"), meta["target"]
        assert all((s["mean"], s["std"]) == (0, 1) for s in meta["scale"]["targets"])
        for name in ("basic", "acid"):
            got = p.rows("SELECT mol_id, part, measured, predicted FROM evaluated JOIN property USING(property_id) WHERE name=?", name)
            assert {m: y for m, _, y, _ in got} == {m: v[name] for m, v in known.items() if name in v}
            assert all(0 < x < 1 for _, _, _, x in got)
            train = [(y, x) for _, q, y, x in got if q == "train"]
            auc = statistics.fmean((x > z) + 0.5 * (x == z) for y, x in train if y for w, z in train if not w)
            told = dict(p.rows("SELECT metric, value FROM evaluation JOIN property USING(property_id) WHERE name=? AND part='train'", name))
            assert abs(told["roc_auc"] - auc) < 1e-9 and auc > 0.8, (name, auc, told)
            assert abs(told["log_loss"] + statistics.fmean(math.log(x if y else 1 - x) for y, x in train)) < 1e-9
        page, svgs = read_page(p, "run")
        assert sum('aria-label="ROC curve, part test"' in s for s in svgs) == 2


def rankings_weigh_targets_and_models_share_a_property():
    with sieve.Project() as p:
        begin(p, NUMBERS, epochs=1)
        p.run("run", "w.yaml", "-q")
        both = dict(p.rows("SELECT mol_id, mean FROM score JOIN property USING(property_id) WHERE name='dipole'"))
        shutil.copy(p.path("run/models/e2e.safetensors"), p.path("both.safetensors"))
        p.workflow(["in.sdf"], STAGES + TRAIN % ("[{name: dipole, column: mu, unit: D}]", 1) + REST, name="one.yaml", workdir="one")
        p.run("run", "one.yaml", "-q")
        one = dict(p.rows("SELECT mol_id, mean FROM score", workdir="one"))
        shutil.copy(p.path("one/models/e2e.safetensors"), p.path("one.safetensors"))
        screen = "".join(s for s in STAGES.splitlines(True) if "split" not in s) + """  score: {}
  rank:
    objectives:
      - {property: gap, goal: maximise}
      - {property: dipole, goal: minimise, weight: 2}
    top: 9
  write: {csv: hits.csv}
"""
        p.workflow(["in.sdf"], screen, name="screen.yaml", workdir="screen", extra="models:\n  both: {path: both.safetensors}\n  one: {path: one.safetensors}\n")
        p.run("run", "screen.yaml", "-q")
        rows = p.rows("SELECT mol_id, p.name, mean, stdev, n_models FROM score JOIN property p USING(property_id)", workdir="screen")
        assert len(rows) == 220 and {(n, k) for _, n, _, _, k in rows} == {("gap (eV)", 1), ("dipole", 2)}, {(n, k) for _, n, _, _, k in rows}
        for m, name, mean, stdev, _ in rows:
            if name == "dipole":
                assert abs(mean - (both[m] + one[m]) / 2) < 1e-6 * max(1, abs(mean)) and abs(stdev - abs(both[m] - one[m]) / 2 ** 0.5) < 1e-5
        of = {name: {m: v for m, n, v, _, _ in rows if n == name} for name in ("gap (eV)", "dipole")}
        want = sorted(of["dipole"], key=lambda m: -(of["gap (eV)"][m] - 2 * of["dipole"][m]))[:9]
        assert [m for (m,) in p.rows("SELECT mol_id FROM hit ORDER BY rank", workdir="screen")] == want
        head = open(p.path("screen/hits.csv")).readline()
        assert {"gap_predicted", "gap_predicted_unit", "dipole", "dipole_unit", "dipole_stdev", "dipole_similarity"} <= set(head.strip().replace('"', "").split(",")), head
        # A molecule with an element that the model of two targets has not seen has one failure row, not two.
        p.put("odd.smi", "CC methane\n[SiH4] silane\n")
        p.workflow(["odd.smi"], "  read: {}\n  prepare: {conformers: {source: generate}}\n  graph: {edges: bonds}\n  score: {}\n", name="odd.yaml", workdir="odd",
                   extra="models:\n  both: {path: both.safetensors}\n")
        p.run("run", "odd.yaml", "-q")
        assert p.rows("SELECT code, message FROM failure", workdir="odd") == [("element", "model both has not seen element Si")]
        assert p.one("SELECT count(*) FROM score", workdir="odd") == 2


def conflicting_target_settings_are_refused_before_work():
    with sieve.Project() as p:
        p.put("in.sdf", labelled(30)[0])
        for targets, told in (("[]", "stages.train.targets: the list is empty"),
                              ("[{name: gap}, {name: gap, column: mu}]", "targets: two have the name gap; rename one"),
                              ("[{name: gap}, {name: basic}]", "the label basic is a class"),
                              ("[{name: basic}, {name: mu}]", "bce is for a class"),
                              ("[{name: gap}, {name: mu, factor: 0}]", "factor is 0"),
                              ("[{name: mu}, {name: gap_ev, column: gap, unit: eV}]",
                               "targets: the label gap is in hartree (stages.prepare.properties), and the target gap_ev in eV: say how to convert"),
                              ("[%s]" % ", ".join("{name: t%d, column: mu}" % i for i in range(65)), "65 given, a model learns 1 to 64")):
            p.workflow(["in.sdf"], STAGES + TRAIN % (targets, 1))
            err = p.run("check", "w.yaml", expect=2)[2]
            assert told in err, (targets, err)
        for targets in ("[{name: gap, unit: hartree}]", "[{name: gap}]", "[{name: gap, unit: Ha, factor: 1}]"):
            p.workflow(["in.sdf"], STAGES + TRAIN % (targets, 1))
            p.run("check", "w.yaml")
        # More predictions than a screen may have, from few models.
        p.workflow(["in.sdf"], STAGES + TRAIN % ("[%s]" % ", ".join("{name: t%d, column: mu}" % i for i in range(64)), 1))
        p.run("run", "w.yaml", "-q")
        names = ["m%d" % i for i in range(5)]
        p.workflow(["in.sdf"], "  read: {}\n  prepare: {}\n  graph: {edges: bonds}\n  score: {}\n", name="many.yaml", workdir="many",
                   extra="models:\n" + "".join("  %s: {path: run/models/e2e.safetensors}\n" % n for n in names))
        assert "they predict 320 numbers, at most 256" in p.run("check", "many.yaml", expect=2)[2]
        # A label that no record has.
        p.put("in.sdf", re.sub(rb"> <mu>\n.*\n\n", b"", labelled(30)[0]))
        p.workflow(["in.sdf"], STAGES + TRAIN % (NUMBERS, 1))
        assert 'no record has a data field called "mu"' in p.run("run", "w.yaml", "-q", expect=2)[2]



HARTREE = ("homo", "lumo", "gap", "zpve", "U0", "U", "H", "G")
TWELVE = ("mu", "alpha", "r2", "Cv") + HARTREE
SUMS = ("alpha", "Cv", "zpve", "U0", "U", "H", "G")


def the_twelve_targets_of_qm9_are_learned_and_predicted():
    with sieve.Project() as p:
        p.put("in.sdf", sieve.sdf_records(sieve.data(SDF), 100))
        targets = ["{name: %s, unit: %s%s}" % (t, "eV, factor: %s" % EV if t in HARTREE else "other", ", transform: composition" * (t in SUMS)) for t in TWELVE]
        stages = STAGES.replace("gap, mu, basic, acid", ", ".join(TWELVE))
        stages = re.sub("properties: .*\n", "properties: {%s}\n" % ", ".join("%s: {unit: %s}" % (t, "hartree" if t in HARTREE else "other") for t in TWELVE), stages)
        p.workflow(["in.sdf"], stages + TRAIN % ("[%s]" % ", ".join(targets), 2) + REST)
        _, *said = p.run("run", "w.yaml")
        names = {t: t + " (eV)" if t in HARTREE else t for t in TWELVE}
        for t, name in names.items():
            told = dict(p.rows("SELECT metric, value FROM evaluation JOIN property USING(property_id) WHERE name=? AND part='test'", name))
            assert 0 < told["mae"] < math.inf, (t, told)
            assert t not in ("alpha", "U0", "U", "H", "G") or told["mae"] < 0.3 * told["mean.mae"], (t, told)
        # One model has one domain: it is told once.
        told = re.findall(r"(?m)^(\d+) of (\d+) scores of (.*) are outside", " ".join(" ".join(said).split("\n ")))
        outside = p.one("SELECT count(*) FROM score WHERE domain='outside' GROUP BY property_id")
        assert len(told) == 1 and told[0][0] == str(outside) and told[0][2] == "each of " + ", ".join(sorted(names.values())), (told, outside)
        # The same numbers without a workflow, each in its column.
        head, *rows = csv.reader(p.run("predict", "run/models/e2e.safetensors", "in.sdf")[1].splitlines())
        assert len(set(head)) == len(head) == 3 + 6 * 12 and head[-1] == "problem", head
        for t, name in names.items():
            want = [v for (v,) in p.rows("SELECT mean FROM record r JOIN score USING(mol_id) JOIN property USING(property_id) WHERE name=? ORDER BY record_id", name)]
            assert [float(r[head.index(t)]) for r in rows] == want, t
            assert {r[head.index(t + "_unit")] for r in rows} == {"eV" if t in HARTREE else "other"}
        p.put("in.smi", "CCO ethanol\n")
        assert p.run("predict", "run/models/e2e.safetensors", "in.smi")[1].splitlines()[0] == ",".join(head)


def part_of_records(p):
    return [part for (part,) in p.rows("SELECT part FROM record JOIN split USING(mol_id) ORDER BY ordinal")]


def what_leaves_nothing_to_learn_is_refused_or_told():
    records = sieve.sdf_records(sieve.data(SDF), 60).split(b"$$$$\n")[:60]

    def write(p, **columns):
        out = b""
        for i, record in enumerate(records):
            values = {k: f(i, record) for k, f in columns.items()}
            body = record[:record.index(b"M  END") + 7]
            out += body + b"".join(b"> <%s>\n%r\n\n" % (k.encode(), v) for k, v in values.items() if v is not None) + b"$$$$\n"
        p.put("in.sdf", out)

    def gap(_, record):
        return field(record, b"gap")

    def weight(_, record):
        return sum(m * record.count(b" %s   0" % e) for e, m in ((b"H", 1.008), (b"C", 12.011), (b"N", 14.007), (b"O", 15.999)))

    with sieve.Project() as p:
        write(p, gap=gap, mu=weight)
        stages = re.sub("    properties: .*\n", "", STAGES.replace(", basic, acid", ""))
        for factor in ("", ", factor: 1e-6"):
            p.workflow(["in.sdf"], stages + TRAIN % ("[{name: gap}, {name: mu, transform: composition%s}]" % factor, 1))
            err = p.run("run", "w.yaml", "-q", expect=2)[2]
            assert "the target mu is a sum over the atoms of a molecule, so that transform: composition leaves nothing to learn" in err, err
        part = part_of_records(p)
        train = [i for i in range(60) if part[i] == "train"]
        write(p, gap=lambda i, r: 1.0 + (i not in train), mu=lambda i, r: 3.0 + (i not in train))
        err = p.run("run", "w.yaml", "-q", expect=2)[2]
        assert "nothing can be learned of any of the 2 targets; split otherwise, or give more labels: gap: all %d training molecules that have " \
            "it have the value 1; mu: all %d training molecules that have it have the value 3" % (len(train), len(train)) in err, err
        # A fit of each element to fewer molecules leaves nothing either, whatever the target is.
        write(p, gap=gap, mu=lambda i, r: field(r, b"mu") if i in train[-3:] else None)
        err = p.run("run", "w.yaml", "-q", expect=2)[2]
        assert "4 elements, and 3 training molecules are too few" in err, err
        p.workflow(["in.sdf"], stages + TRAIN % ("[{name: gap}, {name: mu}]", 1))
        out = p.run("check", "w.yaml")[1]
        assert "mu: 3 numbers in 60 records; 57 empty" in out and "all 2 targets are in 3 of 60 records, some in 57\n" in out, out
        err = p.run("run", "w.yaml", "-q")[2]
        assert "mu: no validation molecule has it, so the best epoch is chosen without it" in err, err
        assert "mu: no test molecule has it, so its error is not known" in err and "gap: no" not in err, err
        write(p, gap=lambda i, r: gap(i, r) if i % 2 else None, mu=lambda i, r: 1.5 if i == train[0] else None)
        said = p.run("check", "w.yaml", expect=2)
        assert "labels: mu has one number in 60 records: there is nothing to learn" in said[1] + said[2], said
        assert "values of mu are" not in said[1] + said[2], said
        write(p, gap=lambda i, r: gap(i, r) if i % 2 else None, mu=lambda i, r: 1.5 + i if i in (1, 2) else None)
        assert "all 2 targets are in 1 of 60 records, some in 30; nothing is learned from the other 29\n" in p.run("check", "w.yaml")[1]


FLAT = """  read: {unit: 40}
  prepare:
    conformers: {source: none}
    labels: [%s]
    properties: {%s}
  graph: {edges: topology}
  split: {method: file, path: parts.txt}
  train: {family: [%s], targets: [%s]}
  evaluate: {on: [valid, test]}
  score: {}
"""
ASSAYS = {"rare": "all 24 training molecules that have it are of class 0", "few": "6 training molecules have it; at least 10 are needed",
          "act": None, "gone": "no training molecule has it"}


def assays(p):
    """80 molecules of ESOL; every fifth to be tested. Of four assays only `act` has both classes in the training part."""
    with open(os.path.join(os.path.dirname(sieve.TESTS), "workflows/data/esol.csv")) as f:
        rows = list(csv.DictReader(f))[:80]
    table, parts = "smiles,name,rare,few,act,gone,flat,logS,logS B\n", ""
    for k, row in enumerate(rows):
        part = ("train", "train", "train", "valid", "test")[k % 5]
        rare = "" if k % 2 else int(part == "test" and k % 4 == 0)
        few = k % 2 if part == "train" and k < 8 or part == "valid" else ""
        table += "%s,m%d,%s,%s,%d,%s,%d,%s,%d\n" % (row["smiles"], k, rare, few, len(row["smiles"]) > 18, k % 2 if part == "test" else "", part != "train",
                                                    row["logS"], len(row["smiles"]))
        parts += "m%d %s\n" % (k, part)
    p.put("in.csv", table)
    p.put("parts.txt", parts)


def flat(p, targets, workdir="run", name="w.yaml", words="trees", more=""):
    classes = ", ".join("%s: {task: classification}" % t for t in targets)
    p.workflow(["{path: in.csv, format: csv, columns: {smiles: smiles, title: name}}"],
               FLAT % (", ".join(targets), classes, words, ", ".join("{name: %s}" % t for t in targets)) + more, workdir=workdir, name=name)


def targets_that_cannot_be_learned_are_left_out():
    """Each is named with its reason; the model, its errors and scores are those of a training without them."""
    with sieve.Project() as p:
        assays(p)
        flat(p, ASSAYS)
        p.run("check", "w.yaml")
        p.run("run", "w.yaml", "-q", expect=137, env=dict(os.environ, MOLSIEVE_FAULT="train.model.after:1"))
        said = p.run("run", "w.yaml", "-q")[2]
        left = {k: v for k, v in ASSAYS.items() if v is not None}
        for name, why in left.items():
            line = "the target %s is left out of the model: %s" % (name, why)
            assert line in said and (line,) in p.rows("SELECT message FROM event WHERE level='warn'"), (name, said)
        assert metadata(p.path("run/models/e2e.safetensors"))["provenance"]["left_out"] == left
        info = p.run("model", "info", "run/models/e2e.safetensors")[1]
        assert "  predicts    the probability of act\n  left out    rare: %(rare)s\n              few: %(few)s\n              gone: %(gone)s\n" % left in info
        flat(p, ["act"], "alone", "alone.yaml")
        p.run("run", "alone.yaml", "-q")
        assert "left_out" not in metadata(p.path("alone/models/e2e.safetensors"))["provenance"]
        assert stored(p)[2:] == stored(p, "alone")[2:] and len(stored(p)[3]) == 80
        flat(p, ["rare", "gone"])
        said = p.run("run", "w.yaml", "-q", expect=2)[2]
        assert "nothing can be learned of any of the 2 targets" in said and all("%s: %s" % (k, left[k]) in said for k in ("rare", "gone")), said
        flat(p, ["rare"])
        said = p.run("run", "w.yaml", "-q", expect=2)[2]
        assert "the target rare is the same for all 24 training molecules: nothing to learn" in said, said
        # Differences whose squares are 0 are no equal values.
        p.put("tiny.csv", "smiles,name,v\n" + "".join("%sO,m%d,%de-170\n" % ("C" * k, k, k) for k in range(1, 31)))
        p.workflow(["{path: tiny.csv, format: csv}"], FLAT % ("v", "v: {better: high}", "trees, gp", "{name: v}"), workdir="tiny")
        assert "the target v has values too small to compute with; take another unit" in p.run("run", "w.yaml", "-q", expect=2)[2]


def what_is_left_out_moves_no_other_target():
    """Where one before it is left out: it is converted, and so a property of its own beside its label."""
    with sieve.Project() as p:
        assays(p)
        stages = FLAT % ("flat, logS", "logS: {better: high}", "trees, gp", "{name: flat}, {name: logS, unit: ln, factor: 2.302585093}")
        p.workflow(["{path: in.csv, format: csv, columns: {smiles: smiles, title: name}}"], stages)
        assert "flat is left out of the model: all 48 training molecules that have it have the value 0" in p.run("run", "w.yaml", "-q")[2]
        assert p.rows("SELECT DISTINCT name, unit FROM score JOIN property USING(property_id)") == [("logS (ln)", "ln")]
        pairs = p.rows("SELECT measured, l.value FROM evaluated e JOIN label l USING(mol_id) JOIN property q ON q.property_id=l.property_id "
                       "WHERE q.name='logS'")
        assert len(pairs) == 32 and all(abs(a - 2.302585093 * b) < 1e-9 for a, b in pairs), pairs[:3]


def a_name_that_begins_with_another_is_explained_by_itself():
    with sieve.Project() as p:
        assays(p)
        p.workflow(["{path: in.csv, format: csv, columns: {smiles: smiles, title: name}}"],
                   FLAT % ("logS, logS B", "logS: {better: high}", "trees", "{name: logS}, {name: logS B, unit: letters}") +
                   "  rank: {objectives: [{property: logS B, goal: maximise}], top: 2}\n")
        p.run("run", "w.yaml", "-q")
        first, second = p.run("explain", "1", "run/results.db")[1].split("\nmodel e2e: logS B ")
        moved = [re.findall("what moved trees\n((?:    .*\n)+)", said) for said in (first + "\n", second)]
        assert [len(m) for m in moved] == [1, 1] and moved[0] != moved[1], (first, second)
        p.run("report", "run", "-o", "page.html")
        with open(p.path("page.html")) as f:
            page = f.read()
        for name in ("logS", "logS B"):
            assert page.count(", trees, %s: " % name) == 2, (name, page.count("<figcaption>Hit "))


def models_that_learned_a_target_from_others_differ():
    """They have the same training molecules, of which one has no value of the first target."""
    with sieve.Project() as p:
        assays(p)
        text = open(p.path("in.csv")).read().splitlines()
        p.put("less.csv", "\n".join([",".join([*line.split(",")[:7], "", line.split(",")[8]]) if ",m6," in line else line for line in text]) + "\n")
        for name in ("in", "less"):
            p.workflow(["{path: %s.csv, format: csv, columns: {smiles: smiles, title: name}}" % name],
                       FLAT % ("logS, logS B", "logS: {better: high}", "trees", "{name: logS}, {name: logS B, unit: letters}"), workdir=name)
            p.run("run", "w.yaml", "-q")
        said = [p.run("model", "diff", "%s/models/e2e.safetensors" % a, "%s/models/e2e.safetensors" % b, expect=1)[1].splitlines() for a, b in (("in", "less"), ("less", "in"))]
        assert [[line for line in one if line.startswith("domain")] for one in said] == [["domain: other training molecules have logS"]] * 2, said


def models_of_one_name_and_other_units_stay_apart():
    with sieve.Project() as p:
        assays(p)
        table = ["{path: in.csv, format: csv, columns: {smiles: smiles, title: name}}"]
        for name, more in (("mol", ", unit: mol"), ("ln", ", unit: ln, factor: 2.302585093"), ("bare", "")):
            p.workflow(table, FLAT % ("logS", "logS: {better: high}", "trees", "{name: act, column: logS%s}" % more), workdir=name)
            p.run("run", "w.yaml", "-q")
        flat(p, ["act"], "class")
        p.run("run", "w.yaml", "-q")
        path = {name: "%s/models/e2e.safetensors" % name for name in ("mol", "ln", "bare", "class")}
        # Columns of a prediction have names of their own: those of a workflow.
        models = "models: {%s}\n"
        screen = "  read: {}\n  prepare: {conformers: {source: none}}\n  graph: {edges: topology}\n  score: {}\n"
        p.workflow(table, screen, name="s.yaml", workdir="s", extra=models % ", ".join("%s: {path: %s}" % (k, path[k]) for k in ("bare", "ln", "mol")))
        p.run("run", "s.yaml", "-q")
        p.run("export", "csv", "s", "--all", "-o", "all.csv")
        with open(p.path("all.csv")) as f:
            want = {row["smiles"]: row for row in csv.DictReader(f)}
        head, *rows = csv.reader(p.run("predict", ",".join(path[k] for k in ("bare", "ln", "mol")), "in.csv", "-q")[1].splitlines())
        assert len(set(head)) == len(head) and len(rows) == 80, head
        shown = [h for h in head if h.startswith("act") and not h.endswith("_reasons")]
        assert {"act", "act_unit", "act_predicted", "act_predicted_unit", "act (model)"} <= set(shown) and "act (model)_unit" not in head, head
        for row in (dict(zip(head, r)) for r in rows):
            assert [row[h] for h in shown] == [want[row["smiles"]][h] for h in shown], row
            assert row["act_unit"] == "ln" and row["act_predicted_unit"] == "mol"
            assert abs(float(row["act"]) - 2.302585093 * float(row["act_predicted"])) < 1e-4, row
        # A probability and a number have no mean.
        said = p.run("predict", path["bare"] + "," + path["class"], "in.csv", expect=2)[2]
        assert "predicts act as a number and" in said and "as the probability of a class, which have no mean" in said, said
        p.workflow(table, screen, name="s.yaml", workdir="t", extra=models % ", ".join("%s: {path: %s}" % (k, path[k]) for k in ("class", "bare")))
        for command in ("check", "run"):
            said = p.run(command, "s.yaml", expect=2)[2]
            assert "models: class predicts act as the probability of a class, another model otherwise" in said and said.startswith("s.yaml:"), said
        # Nor do two units have one factor, and a label that has the unit of the model has none.
        judge = "  read: {}\n  prepare: {conformers: {source: none}, labels: [logS], properties: {logS: {unit: mol}}}\n  graph: {edges: topology}\n" \
                "  evaluate: {on: [train, new], targets: [{name: act, column: logS%s}]}\n"
        for names, factor, told in ((("ln", "mol"), ", factor: 2", "model ln predicts act in ln, model mol in mol: one factor is not for both"),
                                    (("mol",), ", factor: 2", "label logS is in mol, in which model mol predicts act; times 2 it would be in another unit"),
                                    (("mol",), ", factor: 1", None), (("ln",), ", factor: 2.302585093", None)):
            p.workflow(table, judge % factor, name="j.yaml", workdir="j", extra=models % ", ".join("%s: {path: %s}" % (k, path[k]) for k in names))
            said = p.run("run", "j.yaml", "-q", expect=0 if told is None else 2)[2]
            assert told is None or told in said, (names, factor, said)


def censored(n=110):
    """The number of carbons: above 5 only known to be above 5, below 4 only known to be below 4, in several ways of writing."""
    out, known = [], []
    for i, record in enumerate(sieve.sdf_records(sieve.data(SDF), n).split(b"$$$$\n")[:n]):
        count = record.count(b" C   ")
        text = str(count)
        if count > 5:
            text = (">5", "> 5", ">= 5", "\u2265 5")[i % 4]
        elif count < 4:
            text = ("<4", "<= 4", "\u22644")[i % 3]
        out.append((record[:record.index(b"M  END") + 7], text))
        known.append(text if text[0] in "0123456789" else text[0] in ">\u2265")
    return out, known


def sdf_of(records):
    return b"".join(body + b"> <carbons>\n%s\n\n$$$$\n" % text.encode() for body, text in records)


LIMITS = """  read: {unit: 40, censored: bound}
  prepare:
    conformers: {source: keep}
    labels: [carbons]
    properties: {carbons: {unit: atoms}}
  graph: {edges: bonds}
  split: {fractions: {train: 0.6, valid: 0.2, test: 0.2}}
  train:
    targets: [{name: carbons, unit: atoms}]
    family: [se3, trees, gp]
    model: {layers: 1, degrees: 2, channels: 8, heads: 2}
    batch: {molecules: 8, shards: 2}
    epochs: 6
  evaluate: {on: [train, valid, test]}
  score: {}
"""


def limits_are_learned_from_and_never_tested():
    with sieve.Project() as p:
        records, known = censored()
        more = [(next(b for (b, _), k in zip(records, known) if isinstance(k, str)), ">100"),  # beside a value: the value counts
                (next(b for (b, _), k in zip(records, known) if k is True), "<2"),  # contradicts its other limit
                (records[7][0], "~3")]
        p.put("in.sdf", sdf_of(records + more))
        p.workflow(["in.sdf"], LIMITS)
        said = p.run("check", "w.yaml")[1]
        counts = [sum(isinstance(k, str) for k in known), sum(k is True for k in known), sum(k is False for k in known)]
        assert min(counts) > 8 and "and %d limits such as >10 to learn from" % (counts[1] + counts[2] + 2) in said, (counts, said)
        p.run("run", "w.yaml", "-q", "--until", "split")
        for other in ("killed", "left", "ranks"):
            shutil.copytree(p.path("run"), p.path(other))
        p.run("run", "w.yaml", "-q")
        stored_labels = "SELECT p.name, p.unit, count(*) FROM label JOIN property p USING(property_id) GROUP BY 1 ORDER BY 1"
        assert p.rows(stored_labels) == [("carbons", "atoms", counts[0]), ("carbons at least", "atoms", counts[1] + 1),
                                         ("carbons at most", "atoms", counts[2] + 1)], (counts, p.rows(stored_labels))
        # Errors are those of measured values alone, and as many as without limits.
        measured = {m for (m,) in p.rows("SELECT mol_id FROM label JOIN property USING(property_id) WHERE name='carbons'")}
        assert {m for (m,) in p.rows("SELECT mol_id FROM evaluated")} == measured
        part = dict(p.rows("SELECT mol_id, part FROM split"))
        limits = [m for (m,) in p.rows("SELECT DISTINCT mol_id FROM label WHERE mol_id NOT IN (SELECT mol_id FROM evaluated)")]
        told = "\n".join(m for (m,) in p.rows("SELECT message FROM event"))
        found = re.search(r"carbons: learned from (\d+) values and (\d+) limits; errors and intervals are those of values alone", told)
        trained = sum(part[m] == "train" for m in limits)
        contrary = "1 limits that contradict each other" in told
        assert int(found[1]) == sum(part[m] == "train" for m in measured) and int(found[2]) == trained - contrary, (found, trained)
        assert "%d limits of held-out molecules are not used" % (len(limits) - trained) in told, told
        assert "~3: a limit is not a measured value" in told and ">5" not in told, told
        curve = {r for r in p.rows("SELECT DISTINCT split, name FROM metric WHERE stage='train' AND epoch>0 AND name IN ('loss','mae')")}
        assert curve >= {("train", "loss"), ("valid", "loss"), ("valid", "mae")} and ("train", "mae") not in curve, curve
        # The same bytes after kills, with more workers and with ranks; limits change the model.
        want = stored(p)
        for point in ("train.checkpoint.after:1", "train.model.before:1"):
            p.run("run", "w.yaml", "-q", "workdir=killed", expect=137, env=dict(os.environ, MOLSIEVE_FAULT=point))
        p.run("run", "w.yaml", "-q", "-j", "3", "workdir=killed")
        assert stored(p, "killed") == want
        status, text = ranks_e2e.Started(p, 2, "workdir=ranks", "stages.train.ranks=tcp").end()
        assert status == [0, 0], text
        assert stored(p, "ranks")[:1] == want[:1]
        assert metadata(p.path("run/models/e2e.safetensors"))["provenance"]["censored"] == "bound"
        p.run("run", "w.yaml", "-q", "workdir=left", "stages.read.censored=leave_out")
        assert stored(p, "left")[0] != want[0] and p.rows(stored_labels, workdir="left") == [("carbons", "atoms", counts[0])]
        # Near a limit nothing is known of errors: such molecules are as far from the domain as if they were not trained on.
        domain = "SELECT mol_id, similarity, domain FROM score ORDER BY 1"
        assert p.rows(domain) == p.rows(domain, workdir="left")
        near = dict((m, s) for m, s, _ in p.rows(domain))
        assert all(near[m] == 1 for m in measured if part[m] == "train") and all(near[m] < 1 for m in limits)
        info = p.run("model", "info", "run/models/e2e.safetensors")[1]
        assert "domain      %s training molecules" % found[1] in info, info
        n = "SELECT part, n FROM evaluation WHERE metric='rmse' ORDER BY 1"
        assert p.rows(n) == p.rows(n, workdir="left")
        # Shards merge to the same labels.
        for k in range(2):
            p.run("run", "w.yaml", "-q", "workdir=shards", "--shard", "%d/2" % k)
        p.run("merge", "w.yaml", "-q", "workdir=shards")
        p.run("run", "w.yaml", "-q", "workdir=shards")
        labels = "SELECT mol_id, name, value, n_measurements FROM label JOIN property USING(property_id) ORDER BY 1, 2"
        assert p.rows(labels, workdir="shards") == p.rows(labels) and stored(p, "shards")[2:] == want[2:]
        # A negative factor exchanges the sides: the same trees, upside down.
        trees = "stages.train.family=[trees]"
        p.run("run", "w.yaml", "-q", trees)
        plain = p.rows("SELECT mol_id, predicted FROM evaluated ORDER BY 1")
        p.run("run", "w.yaml", "-q", trees, "stages.train.targets=[{name: minus, column: carbons, factor: -1}]")
        minus = p.rows("SELECT mol_id, predicted FROM evaluated ORDER BY 1")
        assert len(plain) == len(minus) and all(m == k and abs(x + y) < 1e-3 for (m, x), (k, y) in zip(plain, minus))
        p.put("named.csv", "smiles,y,y at least\nCCO,1,2\nCCN,2,3\n")
        p.workflow(["named.csv"], "  read: {censored: bound}\n  prepare: {conformers: {source: none}}\n", name="n.yaml", workdir="named")
        assert 'named.csv:2: the field "y at least" has the name that limits get' in p.run("run", "n.yaml", "-q", expect=2)[2]
        # What has no limits, or no use for them, is refused with all the rest.
        said = p.run("check", "w.yaml", "stages.train.family=[gp, forest]", "stages.train.optimiser.lr=0.0001", expect=2)[2]
        assert "gp and forest learn from measured values alone" in said and "is above lr" in said, said
        said = p.run("check", "w.yaml", "stages.prepare.properties={carbons: {task: classification}}",
                     "stages.train.targets=[{name: carbons}]", expect=2)[2]
        assert "bound is for numbers" in said, said


if __name__ == "__main__":
    sieve.main([limits_are_learned_from_and_never_tested, targets_with_missing_values_are_learned_together, classes_with_missing_values_are_learned_together,
                the_twelve_targets_of_qm9_are_learned_and_predicted, what_leaves_nothing_to_learn_is_refused_or_told, targets_that_cannot_be_learned_are_left_out,
                what_is_left_out_moves_no_other_target, a_name_that_begins_with_another_is_explained_by_itself, models_that_learned_a_target_from_others_differ,
                models_of_one_name_and_other_units_stay_apart,
                rankings_weigh_targets_and_models_share_a_property, conflicting_target_settings_are_refused_before_work])
