#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models are compared with nearest neighbours, evaluated on new labels, and calibrated again."""
import hashlib
import json
import os
import re
import shutil
import sqlite3
import struct
import zlib

import sieve
from report_e2e import read_page
from train_e2e import GRAPH, READ, SDF, tensors, train_stages

ALL = ("stages.split.fractions.train=1", "stages.split.fractions.valid=0", "stages.split.fractions.test=0")


def domain(path):
    """InChIKey -> bits of the training molecules that a model file keeps."""
    found, _ = tensors(path)
    if "domain.zlib" in found:
        raw = found["domain.zlib"][1]
        n, body = struct.unpack("<I", raw[:4])[0], zlib.decompress(raw[4:])
        prints, keys = body[:256 * n], body[256 * n:]
    else:
        (n, _), keys = found["domain.inchikey"]
        prints = found["domain.fingerprint"][1]
    return {keys[27 * i:27 * i + 27].decode(): int.from_bytes(prints[256 * i:256 * i + 256], "little") for i in range(n)}


def prepared(p, n):
    p.put("in.sdf", sieve.sdf_records(sieve.data(SDF), n))
    p.workflow(["in.sdf"], train_stages())


def train(p, name, *more):
    p.run("run", "w.yaml", "-q", "workdir=" + name, "storage.features=features.db", "stages.train.epochs=1", *more)
    return shutil.copy(p.path(name, "models/e2e.safetensors"), p.path(name + ".safetensors"))


def by_neighbours(bits, known, value):
    """All of known, the most similar first: (similarity, value)."""
    return sorted(((bin(bits & b).count("1") / bin(bits | b).count("1"), value[k]) for k, b in known.items()), reverse=True)


def weighted(alike):
    """The smallest and the largest weighted mean of the five nearest, over all choices among equal similarities."""
    fifth = alike[4][0]
    if alike[0][0] == 0:
        return [sum(v for _, v in alike) / len(alike)] * 2
    sure = [x for x in alike if x[0] > fifth]
    ties = sorted(v for s, v in alike if s == fifth)
    some = 5 - len(sure)
    weight = sum(s for s, _ in sure) + fifth * some
    own = sum(s * v for s, v in sure)
    return [(own + fifth * sum(ties[:some])) / weight, (own + fifth * sum(ties[-some:])) / weight]


def nearest_neighbours_are_beside_the_model_everywhere():
    with sieve.Project() as p:
        prepared(p, 340)
        every = domain(train(p, "every", *ALL))
        path = train(p, "part", "stages.split.fractions={train: 0.5, valid: 0.1, test: 0.4}")
        value = dict(p.rows("SELECT inchikey, value FROM label JOIN molecule USING(mol_id)", workdir="part"))
        part = dict(p.rows("SELECT inchikey, part FROM split JOIN molecule USING(mol_id)", workdir="part"))
        factor = p.one("SELECT avg(measured/value) FROM evaluated JOIN label USING(mol_id)", workdir="part")
        known = {k: b for k, b in every.items() if part[k] == "train"}
        low = high = n = 0
        for key in [k for k in every if part[k] == "test"]:
            truth = value[key] * factor
            bounds = [x * factor - truth for x in weighted(by_neighbours(every[key], known, value))]
            low += 0 if bounds[0] <= 0 <= bounds[1] else min(abs(x) for x in bounds)
            high += max(abs(x) for x in bounds)
            n += 1
        mae = p.one("SELECT value FROM evaluation WHERE part='test' AND metric='neighbours.mae'", workdir="part")
        assert n > 130 and low / n - 1e-6 <= mae <= high / n + 1e-6, (low / n, mae, high / n)
        info = p.run("model", "info", path)[1]
        assert re.search(r"test .*\n.*\n.*\n.*\n    neighbours     MAE %.4g" % mae, info), info
        assert "neighbours" in read_page(p, "part")[0].text


def a_model_worse_than_a_baseline_is_not_recommended():
    with sieve.Project() as p:
        prepared(p, 60)
        path = train(p, "bad", "stages.train.optimiser={lr: 1e-9, min_lr: 1e-10}")
        says = "On the test part the model is no better than a simple prediction ("
        assert says in p.run("model", "info", path)[1]
        assert says in p.run("run", "w.yaml", "workdir=bad", "storage.features=features.db", "stages.train.epochs=1", "stages.train.optimiser={lr: 1e-9, min_lr: 1e-10}")[1]
        assert says in read_page(p, "bad")[0].text
        # A model that wins gets no message.
        db = sqlite3.connect(p.path("bad/results.db"))
        db.execute("UPDATE evaluation SET value=0 WHERE metric='mae'")
        db.execute("DELETE FROM row_sum")  # intended changes, no damage
        db.commit()
        db.close()
        assert "no better" not in read_page(p, "bad")[0].text


EV = 27.211386
MAP = "targets: [{name: gap_ev, column: gap, factor: %s}]" % EV
MODELS = "models:\n  old: {path: %s.safetensors}\n"


def judge(p, settings, name="judge", model="some", more="", expect=0):
    """A workflow without a training; its rows."""
    p.workflow(["in.sdf"], READ + GRAPH + more + "  evaluate: {%s}\n  score: {}\n" % settings, name=name + ".yaml", workdir=name, extra=MODELS % model)
    return p.run("run", name + ".yaml", expect=expect)


def stored(p, name):
    return {(part, metric): (value, n) for part, metric, value, n in p.rows("SELECT part, metric, value, n FROM evaluation", workdir=name)}


def seen(p, name, path):
    """(is new, error, interval or None, domain, similarity) of each molecule, from the scores of the same workflow."""
    known = {k[:14] for k in domain(path)} | blocks(path)[1]
    rows = p.rows("SELECT inchikey, mean-value*%s, interval90, domain, similarity FROM score JOIN molecule USING(mol_id) JOIN label USING(mol_id)" % EV, workdir=name)
    return [(k[:14] not in known, abs(e), i, d, s) for k, e, i, d, s in rows]


def close(told, value, n):
    assert told[1] == n and abs(told[0] - value) <= 1e-9 + 1e-6 * abs(value), (told, value, n)


def an_existing_model_is_evaluated_on_new_labels():
    with sieve.Project() as p:
        prepared(p, 120)
        path = train(p, "some", "stages.split.fractions={train: 0.3, valid: 0.1, test: 0.6}", "stages.split.limit.train=36")
        # The part test of these molecules made its interval.
        again = "model old was calibrated on one of the input files: its coverage on these molecules is no independent test"
        assert again in judge(p, MAP)[2]
        rows = seen(p, "judge", path)
        new = [r for r in rows if r[0]]
        assert len(rows) == 120 and 60 <= len(new) < 120
        told = stored(p, "judge")
        assert {part for part, _ in told} == {"new"} and not any("neighbours" in m for _, m in told)
        close(told["new", "mae"], sum(r[1] for r in new) / len(new), len(new))
        inside = [r for r in new if r[3] == "inside"]
        outside = [r for r in new if r[3] == "outside"]
        assert all((r[2] is None) == (r[3] == "outside") for r in new) and inside
        close(told["new", "mae.domain inside"], sum(r[1] for r in inside) / len(inside), len(inside))
        if outside:
            close(told["new", "mae.domain outside"], sum(r[1] for r in outside) / len(outside), len(outside))
        close(told["new", "coverage90"], sum(r[1] <= r[2] for r in inside) / len(inside), len(inside))
        for name, low, high in (("<0.3", 0, 0.3), (" 0.3-0.5", 0.3, 0.5), (">=0.5", 0.5, 2)):
            band = [r for r in inside if low <= r[4] < high]
            if band:
                close(told["new", "coverage90" + name], sum(r[1] <= r[2] for r in band) / len(band), len(band))
            assert bool(band) == (("new", "coverage90" + name) in told)
        out = p.run("run", "judge.yaml")[1]
        assert re.search(r"model old: gap_ev, new MAE [\d.]+ eV \(%d molecules\); interval90 holds %.1f %% of %d inside of the domain" %
                         (len(new), 100 * told["new", "coverage90"][0], len(inside)), out), out
        assert "simple prediction" not in out and "Coverage of interval90" in read_page(p, "judge")[0].text
        assert "nothing ran" in out
        # Numbers of two units, or that may be limits, are no labels to judge by.
        with open(p.path("in.sdf"), "rb") as f:
            before = f.read()
        records = before.split(b"$$$$\n")[:-1]
        for beside, first, other, words in ((b"gap units", b"hartree", b"eV", "gap units is 'eV', and 'hartree' in line 1: numbers of two units are not one column of gap"),
                                            (b"relation", b"=", b">", "relation is '>' beside a number in gap")):
            p.put("in.sdf", b"".join(r + b"> <%s>\n%s\n\n$$$$\n" % (beside, other if k == 3 else first) for k, r in enumerate(records)))
            assert words in " ".join(judge(p, MAP, name="mixed", expect=2)[2].split())
        p.put("in.sdf", before)
        # `on: [train]` asks for the training molecules.
        judge(p, MAP + ", on: [train, new]")
        assert stored(p, "judge")["train", "mae"][1] == len(domain(path)) < 120 - len(new)
        # Of another file the program does not know it.
        p.put("in.sdf", sieve.sdf_records(sieve.data(SDF), 119))
        assert again not in judge(p, MAP)[2] and ("new", "coverage90") in stored(p, "judge")


def blocks(path):
    """(all, first blocks of the InChIKeys) of the validation molecules that a model file lists."""
    raw = tensors(path)[0]["seen.zlib"][1]
    n, every, body = struct.unpack("<I", raw[:4])[0], raw[4], zlib.decompress(raw[5:])
    assert len(body) == 14 * n
    return every == 1, {body[14 * i:14 * i + 14].decode() for i in range(n)}


def molecules_that_chose_the_epoch_do_not_calibrate():
    with sieve.Project() as p:
        prepared(p, 120)
        path = train(p, "some", "stages.split.fractions={train: 0.4, valid: 0.3, test: 0.3}")
        parts = {}
        for part, key in p.rows("SELECT part, substr(inchikey,1,14) FROM split JOIN molecule USING(mol_id)", workdir="some"):
            parts.setdefault(part, set()).add(key)
        assert blocks(path) == (True, parts["valid"]) and len(parts["valid"]) > 25
        says = judge(p, MAP + ", calibrate: true, on: [calibration]")[2]
        used = {k for k, in p.rows("SELECT substr(inchikey,1,14) FROM evaluated JOIN molecule USING(mol_id) WHERE part='calibration'", workdir="judge")}
        assert used == parts["test"], (len(used), len(parts["test"]))
        told = "120 labelled molecules, %d of them in its training, %d in its validation, %d for calibration, 0 new" % tuple(
            len(parts[k]) for k in ("train", "valid", "test"))
        assert p.one("SELECT count(*) FROM event WHERE instr(message,?)", told, workdir="judge") == 1 and "best epoch" not in says, says
        # Validation molecules are not new either; a calibrated file still lists them.
        judge(p, MAP, name="new")
        assert stored(p, "new")["new", "mae"][1] == len(parts["test"])
        # `on: [valid]` asks for them: the error is that of the training.
        judge(p, MAP + ", on: [valid]", name="met")
        told, trained = stored(p, "met"), dict(p.rows("SELECT metric, value FROM evaluation WHERE part='valid'", workdir="some"))
        close(told["valid", "mae"], trained["mae"], len(parts["valid"]))
        assert {part for part, _ in told} == {"valid"}
        assert blocks(p.path("judge/models/old-calibrated.safetensors")) == blocks(path)
        says = judge(p, MAP + ", calibrate: true, on: [calibration]", model="judge/models/old-calibrated", expect=2)[2]
        assert "calibrate would overwrite" in says and "which it reads; copy that file, or take another workdir" in says, says
        # A model that starts from another lists the molecules of that one, too.
        p.workflow(["in.sdf"], train_stages().replace("  train:\n", "  train:\n    start: some\n"), name="w2.yaml", extra="models: {some: {path: some.safetensors}}\n")
        p.run("run", "w2.yaml", "-q", "workdir=next", "stages.train.epochs=1", "stages.split.fractions={train: 0.1, valid: 0.1, test: 0.8}")
        every, met = blocks(p.path("next/models/e2e.safetensors"))
        assert every and met >= parts["train"] | parts["valid"]
        # Held-out molecules that it has met are counted: those of its training, and of its validation where they test.
        held = p.rows("SELECT part, substr(inchikey,1,14) FROM split JOIN molecule USING(mol_id) WHERE part<>'train'", workdir="next")
        n = sum(key in parts["train"] or (part == "test" and key in parts["valid"]) for part, key in held)
        told = "the start model some was made with %d of the %d held-out molecules: errors on them are too small" % (n, len(held))
        assert 40 < n < len(held) and p.one("SELECT count(*) FROM event WHERE level='warn' AND instr(message,?)", told, workdir="next") == 1, told
        # A file that lists only some, or is of an earlier version, causes a warning.
        train(p, "few", "stages.train.domain=5")
        assert blocks(p.path("few.safetensors"))[0] is False and len(blocks(p.path("few.safetensors"))[1]) == 5
        says = judge(p, MAP + ", calibrate: true", name="afew", model="few")[2]
        assert "lists only some of its validation molecules and of those of its start model" in says, says
        forget(path, p.path("before.safetensors"))
        says = judge(p, MAP + ", calibrate: true", name="abefore", model="before")[2]
        assert "lists none of its validation molecules" in says and "new intervals are too small" in says, says
        assert "molecules not listed" in p.run("model", "info", "before.safetensors")[1]


def forget(path, to):
    """Makes a file like those of earlier versions: without the validation molecules and without checksum."""
    raw = open(path, "rb").read()
    n = struct.unpack("<Q", raw[:8])[0]
    head, data = json.loads(raw[8:8 + n]), raw[8 + n:]
    begin, end = head.pop("seen.zlib")["data_offsets"]
    del head["__metadata__"]["sha256"]
    for name, one in head.items():
        if name != "__metadata__" and one["data_offsets"][0] >= end:
            one["data_offsets"] = [at - (end - begin) for at in one["data_offsets"]]
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(to, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data[:begin] + data[end:])


def labels_that_do_not_fit_are_refused():
    with sieve.Project() as p:
        prepared(p, 30)
        train(p, "some")
        for settings, says in (("", "no molecule has a label called gap_ev, which model old predicts; there are: gap"),
                               ("targets: [{name: gap_ev, column: gap}]", "label gap is in Ha, model old predicts gap_ev in eV; say how to convert"),
                               ("targets: [{name: gip, column: gap}]", "none of the models predicts gip"),
                               ("targets: [{name: gap_ev, column: gip}]", "gip"),
                               (MAP + ", on: [test]", "on: test is not train, valid, calibration or new"),
                               (MAP + ", models: [new]", "new is not in the workflow's `models`")):
            err = judge(p, settings, expect=2)[2]
            assert says in err, (settings, err)
        p.workflow(["in.sdf"], train_stages().replace("evaluate: {", "evaluate: {models: [old], "), extra=MODELS % "some")
        assert "for a workflow without a train stage" in p.run("check", "w.yaml", expect=2)[2]


def files_are_told_in_the_order_of_the_workflow(p):
    """Also where another program has given their table an index, which SQLite then walks."""
    with open(p.path("in.sdf"), "rb") as f:
        records = f.read().split(b"$$$$\n")[:-1]
    for name, some in (("z.sdf", records[:80]), ("a.sdf", records[80:])):
        p.put(name, b"".join(r + b"$$$$\n" for r in some))
    p.workflow(["z.sdf", "a.sdf"], READ + GRAPH + "  evaluate: {%s, calibrate: true, on: [calibration]}\n" % MAP, name="two.yaml", workdir="two", extra=MODELS % "some")
    p.run("run", "two.yaml", "-q", "--until", "graph")
    db = sqlite3.connect(p.path("two/results.db"))
    db.execute("CREATE INDEX names ON input_file(path, sha256, n_records)")
    db.commit()
    db.close()
    p.run("run", "two.yaml", "-q")
    told = json.loads(tensors(p.path("two/models/old-calibrated.safetensors"))[1]["provenance"])["calibration"]["data"]
    assert [(one["file"], one["records"]) for one in told] == [("z.sdf", 80), ("a.sdf", 40)], told


def a_model_is_calibrated_again_with_the_same_weights():
    with sieve.Project() as p:
        prepared(p, 120)
        path = train(p, "some", "stages.split.limit.train=30")
        before = open(path, "rb").read()
        judge(p, MAP + ", calibrate: true, on: [calibration]")
        made = p.path("judge/models/old-calibrated.safetensors")
        (old, was), (new, now) = tensors(path), tensors(made)
        assert old == new and open(path, "rb").read() == before
        assert {k for k in now if now[k] != was[k]} >= {"interval", "provenance"} and now["model"] == was["model"] and now["scale"] == was["scale"]
        errors = sorted(r[0] for r in p.rows("SELECT abs(predicted-measured) FROM evaluated WHERE part='calibration'", workdir="judge"))
        interval = json.loads(now["interval"])
        inside = p.one("SELECT n FROM evaluation WHERE metric='mae.domain inside'", workdir="judge")  # others have no interval, so they give none
        assert interval["part"] == "calibration" and sum(b["molecules"] for b in interval["bands"]) == inside and 40 <= inside <= len(errors)
        told = json.loads(now["provenance"])
        assert told["calibration"]["molecules"] == {"gap_ev": len(errors)} and told["calibration"]["model_sha256"] == hashlib.sha256(before).hexdigest()
        assert told["calibration"]["data"][0]["file"] == "in.sdf" and told["training"] == json.loads(was["provenance"])["training"]
        assert "calibrated  " in p.run("model", "info", made)[1] and "calibrated  " not in p.run("model", "info", path)[1]
        assert "weights" not in p.run("model", "diff", path, made, expect=1)[1]
        # The calibrated file is a result: if it is deleted it is written again, and nothing else.
        assert "nothing ran" in p.run("run", "judge.yaml")[1]
        first = open(made, "rb").read()
        os.remove(made)
        p.run("run", "judge.yaml", "-q", "stages.evaluate.threads=1")
        assert open(made, "rb").read() == first
        # One half calibrates, the other half is new; coverage on the calibrating half is not reported.
        shutil.copy(made, p.path("again.safetensors"))
        says = "".join(judge(p, MAP, name="again", model="again")[1:])
        assert "was calibrated on one of the input files" in says, says
        half = "  split: {fractions: {train: 0.5, valid: 0, test: 0, calibration: 0.5}}\n"
        judge(p, MAP + ", calibrate: true, on: [calibration, new]", name="half", more=half)
        told = stored(p, "half")
        assert told["calibration", "mae"][1] + told["new", "mae"][1] == len(errors)
        assert ("calibration", "coverage90") not in told and told["new", "coverage90"][1] <= told["new", "mae"][1]
        assert ("new", "coverage90 before") in told
        files_are_told_in_the_order_of_the_workflow(p)
        # Too few molecules, and a file that would overwrite itself, are refused.
        p.put("in.sdf", sieve.sdf_records(sieve.data(SDF), 5))
        assert "an interval needs 9 or more" in judge(p, MAP + ", calibrate: true", name="few", expect=2)[2]
        # So are copies of a few, of which each is a row of its own.
        p.put("in.sdf", 6 * sieve.sdf_records(sieve.data(SDF), 5))
        said = p.run("run", "few.yaml", "workdir=copies", "stages.prepare.dedupe={by: none}", expect=2)[2]
        assert re.search("the labelled molecules are [1-5] different ones; an interval needs 9 or more", said), said


if __name__ == "__main__":
    sieve.main([nearest_neighbours_are_beside_the_model_everywhere, a_model_worse_than_a_baseline_is_not_recommended, an_existing_model_is_evaluated_on_new_labels,
                molecules_that_chose_the_epoch_do_not_calibrate, labels_that_do_not_fit_are_refused, a_model_is_calibrated_again_with_the_same_weights])
