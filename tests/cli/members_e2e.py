#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ensembles: `train.members` networks of one workflow, trained one after the other, evaluated and scored together."""
import csv
import io
import math
import os
import re
import shutil
import statistics

import ranks_e2e
import sieve
from report_e2e import read_page
from train_e2e import tensors
from targets_e2e import EV, STAGES, labelled, metadata

TRAIN = """  train:
    targets: %s
    model: {layers: 1, degrees: 2, channels: 8, heads: 2}
    batch: {molecules: 8, shards: 2}
    epochs: 6
    ema: 0.9
    members: %d
"""
REST = """  evaluate: {on: [train, test]}
  score: {}
  rank: {objectives: [{property: %s, goal: maximise, use: mean - 1.0*stdev}], top: 7}
"""
GAP = "[{name: gap, unit: eV, factor: %s, better: high}]" % EV
NAMES = ["e2e-1", "e2e-2", "e2e-3"]


def begin(p, targets, ranked, members=3):
    p.put("in.sdf", labelled(90)[0])
    stages = STAGES.replace("split: {", "split: {method: time, column: gap, ")  # independent of the seed
    p.workflow(["in.sdf"], stages + TRAIN % (targets, members) + REST % ranked)
    p.run("run", "w.yaml", "-q", "--until", "split")


def files(p, workdir="run"):
    got = {}
    for name in sorted(os.listdir(p.path(workdir, "models"))):
        with open(p.path(workdir, "models", name), "rb") as f:
            got[name] = f.read()
    return got


def stored(p, workdir="run"):
    return (files(p, workdir), p.rows("SELECT stage, step, epoch, split, name, value FROM metric ORDER BY 1, 2, 4, 5", workdir=workdir),
            p.rows("SELECT m.name, part, metric, value, n FROM evaluation JOIN model m USING(model_id) ORDER BY 1, 2, 3", workdir=workdir),
            p.rows("SELECT mol_id, mean, stdev, n_models, interval90 FROM score ORDER BY 1", workdir=workdir),
            p.rows("SELECT rank, mol_id, objective FROM hit ORDER BY 1", workdir=workdir))


def members_are_learned_and_scored_together():
    with sieve.Project() as p:
        begin(p, GAP, "gap")
        for other in ("killed", "ranks", "single"):
            shutil.copytree(p.path("run"), p.path(other))
        plan = p.run("plan", "w.yaml")[1]
        assert re.search(r"train: 3 networks of about [\d,]+ parameters, 6 epochs of [\d.]+s with ", plan), plan
        p.run("run", "w.yaml", "-q")
        made = files(p)
        assert list(made) == [n + ".safetensors" for n in NAMES]
        meta = [metadata(p.path("run/models", n + ".safetensors")) for n in NAMES]
        assert [m["name"] for m in meta] == NAMES
        seed = meta[0]["provenance"]["seed"]
        assert [m["provenance"]["seed"] for m in meta] == [seed, seed + 1, seed + 2]
        # Each member is the same as a single network of its seed.
        for k in (2, 1, 0):
            p.run("run", "w.yaml", "-q", "workdir=single", "stages.train.members=1", "seed=%d" % (seed + k),
                  "stages.rank.objectives=[{property: gap, goal: maximise}]")
            assert tensors(p.path("single/models/e2e.safetensors"))[0] == tensors(p.path("run/models", NAMES[k] + ".safetensors"))[0], k
        assert p.rows("SELECT DISTINCT n_models, stdev FROM score", workdir="single") == [(1, None)]
        # Scores are means over the members, with their standard deviation and the widest of their intervals.
        said = {}
        for mol, value in p.rows("SELECT mol_id, value FROM prediction ORDER BY mol_id, model_id"):
            said.setdefault(mol, []).append(value)
        widest = max(b["within"] for m in meta for b in m["interval"]["bands"])
        rows = p.rows("SELECT mol_id, mean, stdev, n_models, interval90, domain FROM score")
        assert len(rows) == 90 and sum(r[5] == "inside" for r in rows) > 60
        for mol, mean, stdev, n, within, domain in rows:
            assert n == 3 and abs(mean - statistics.fmean(said[mol])) < 1e-9 and abs(stdev - statistics.stdev(said[mol])) < 1e-9
            assert domain in ("inside", "outside")
            assert (within is None) if domain == "outside" else abs(within - widest) < 1e-9
        best = sorted(rows, key=lambda r: r[2] - r[1])[:7]
        assert [m for m, in p.rows("SELECT mol_id FROM hit ORDER BY rank")] == [r[0] for r in best]
        the_mean_is_judged(p)
        the_words(p)
        # Killed while the second learns, and again before the third's file is there; with other workers; by two ranks.
        want = stored(p)
        p.run("run", "w.yaml", "-q", "workdir=killed", expect=137, env=dict(os.environ, MOLSIEVE_FAULT="train.checkpoint.after:9"))
        assert sorted(os.listdir(p.path("killed/checkpoints")))[1].endswith("-2")
        p.run("run", "w.yaml", "-q", "workdir=killed", expect=137, env=dict(os.environ, MOLSIEVE_FAULT="train.model.before:3"))
        assert sorted(os.listdir(p.path("killed/models"))) == list(made)[:2] and p.one("SELECT count(*) FROM model", workdir="killed") == 0
        p.run("run", "w.yaml", "-q", "-j", "3", "workdir=killed")
        assert stored(p, "killed") == want
        status, text = ranks_e2e.Started(p, 2, "workdir=ranks").end()
        assert status == [0, 0], text
        assert files(p, "ranks") == made
        # A deleted file is written again.
        os.remove(p.path("run/models/e2e-2.safetensors"))
        p.run("run", "w.yaml", "-q")
        assert files(p) == made


def the_mean_is_judged(p):
    for part in ("train", "test"):
        of = {}
        for mol, measured, predicted in p.rows("SELECT mol_id, measured, predicted FROM evaluated WHERE part=?", part):
            of.setdefault(mol, (measured, []))[1].append(predicted)
        assert of and all(len(x) == 3 for _, x in of.values())
        mae = statistics.fmean(abs(y - statistics.fmean(x)) for y, x in of.values())
        told = p.rows("SELECT value, n FROM evaluation WHERE metric='ensemble.mae' AND part=?", part)
        assert len(told) == 3 and all(abs(v - mae) < 1e-9 and n == len(of) for v, n in told), (part, mae, told)
        each = [v for v, in p.rows("SELECT value FROM evaluation WHERE metric='mae' AND part=?", part)]
        assert len(each) == 3 and mae <= statistics.fmean(each)
    assert p.rows("SELECT DISTINCT metric FROM evaluation WHERE metric LIKE 'ensemble.r2'") == [("ensemble.r2",)]
    alike = [p.rows("SELECT mol_id, part, similarity FROM evaluated JOIN model m USING(model_id) WHERE m.name=? ORDER BY 1", n) for n in NAMES]
    assert alike[0] == alike[1] == alike[2] and all(s == 1 for _, part, s in alike[0] if part == "train")
    assert any(s < 1 for _, part, s in alike[0] if part == "test")


def the_words(p):
    out = p.run("run", "w.yaml")[1]
    both, low, high = p.rows("SELECT max(value) FILTER (WHERE metric='ensemble.mae'), min(value) FILTER (WHERE metric='mae'), "
                             "max(value) FILTER (WHERE metric='mae') FROM evaluation WHERE part='test'")[0]
    assert "model e2e-1 and 2 more: gap (eV), test MAE %.4g eV together, each %.4g to %.4g (" % (both, low, high) in out, out
    simple = p.one("SELECT min(value) FROM evaluation WHERE part='test' AND metric IN ('mean.mae', 'composition.mae', 'descriptors.mae', "
                   "'neighbours.mae')")
    assert re.search(r"the best simple prediction, [a-z ]+: %.4g\n" % simple, out), out
    page, _ = read_page(p, "run")
    assert page.text.count("ensemble") >= 6 and "Of the first network of the ensemble" in page.text


def classes_have_members_too():
    with sieve.Project() as p:
        begin(p, "[{name: basic}]", "basic", members=2)
        p.run("run", "w.yaml", "-q")
        of = {}
        for mol, measured, predicted in p.rows("SELECT mol_id, measured, predicted FROM evaluated WHERE part='train'"):
            of.setdefault(mol, (measured, []))[1].append(predicted)
        mean = [(y, statistics.fmean(x)) for y, x in of.values()]
        auc = statistics.fmean((x > z) + 0.5 * (x == z) for y, x in mean if y for w, z in mean if not w)
        told = p.rows("SELECT value FROM evaluation WHERE part='train' AND metric='ensemble.roc_auc'")
        assert len(told) == 2 and all(abs(v - auc) < 1e-9 for v, in told), (auc, told)


JUDGED = """  read: {}
  prepare:
    conformers: {source: keep}
    labels: [gap, basic]
    properties: {gap: {unit: hartree}, basic: {task: classification}}
  graph: {edges: bonds}
  evaluate:
    on: [train, new]
    targets: [{name: gap, factor: %s}]
""" % EV


def predicted(p, models):
    """title -> row of `predict`."""
    out = p.run("predict", models, "in.sdf", "-q")[1]
    return {row["title"]: row for row in csv.DictReader(io.StringIO(out))}


def joined_networks_predict_their_mean():
    with sieve.Project() as p:
        begin(p, GAP, "gap")
        p.run("run", "w.yaml", "-q", "--until", "train")
        paths = ["run/models/%s.safetensors" % n for n in NAMES]
        out = p.run("model", "join", *paths, "-o", "mean.safetensors")[1]
        assert out.startswith("mean.safetensors: the mean of 3 networks of ") and "widest" in out, out
        info = p.run("model", "info", "mean.safetensors")[1]
        assert "  name        mean\n" in info and "the mean of 3 such networks" in info, info
        assert len(re.findall(r"(?:joined     |           ) e2e-[123], sha256 [0-9a-f]{12}; alone on test: MAE ", info)) == 3, info
        # The same numbers as with three files, and no deviation between them.
        one, several = predicted(p, "mean.safetensors"), predicted(p, ",".join(paths))
        assert len(one) == len(several) == 90 and "gap_stdev" not in next(iter(one.values()))
        for title, row in several.items():
            mine = one[title]
            assert abs(float(mine["gap"]) - float(row["gap"])) < 1e-5, (mine, row)
            assert [mine[k] for k in ("gap_interval90", "gap_similarity", "gap_domain", "gap_reasons")] == \
                [row[k] for k in ("gap_interval90", "gap_similarity", "gap_domain", "gap_reasons")]
        # `evaluate` judges this mean.
        p.workflow(["in.sdf"], JUDGED, name="judge.yaml", workdir="judge", extra="models: {mean: {path: mean.safetensors}}\n")
        p.run("run", "judge.yaml", "-q")
        rows = p.rows("SELECT r.title, e.predicted FROM evaluated e JOIN record r ON r.record_id=e.mol_id", workdir="judge")
        assert len(rows) > 40 and all(abs(v - float(one[t]["gap"])) < 1e-5 for t, v in rows)
        # In two steps it is the same model; it explains itself; a training does not start from it, nothing is overwritten.
        p.run("model", "join", *paths[:2], "-o", "two.safetensors")
        p.run("model", "join", "two.safetensors", paths[2], "-o", "three.safetensors")
        assert "weights" not in p.run("model", "diff", "mean.safetensors", "three.safetensors", expect=1)[1]
        told = p.run("model", "diff", "mean.safetensors", paths[1], expect=1)[1]
        assert "model.networks: 3 -> nothing" in told and "weights: " in told, told
        assert re.search(r"  \d+ tensors, \d+ finite numbers\n", p.run("model", "verify", "three.safetensors")[1])
        refusals(p, paths)


def refusals(p, paths):
    p.workflow(["in.sdf"], STAGES + TRAIN % (GAP, 1) + "    start: mean\n", extra="models: {mean: {path: mean.safetensors}}\n")
    err = p.run("check", "w.yaml", expect=2)[2]
    assert "start: mean: it is the mean of 3 networks; a training starts from one of them" in err, err
    many = ", ".join("m%d: {path: mean.safetensors}" % k for k in range(22))
    p.workflow(["in.sdf"], STAGES + "  score: {}\n", extra="models: {%s}\n" % many)
    assert "models: they have 66 networks, at most 64" in p.run("check", "w.yaml", expect=2)[2]
    p.workflow(["in.sdf"], STAGES + "  score: {}\n", extra="models: {%s}\n" % many.rsplit(",", 1)[0])
    assert "networks" not in p.run("check", "w.yaml")[2]
    shipped = [os.path.join(os.environ["MOLSIEVE_SOURCE"], "workflows/models/%s.safetensors" % n) for n in ("esol", "qm9-gap")]
    for args, status, words in (((*paths[:2],), 2, "--output FILE is missing"), ((paths[0], "-o", "x"), 2, "two model files or more"),
                                ((*paths[:2], "-o", paths[1]), 2, "is the file that is read"), ((paths[0], paths[0], "-o", "x"), 2, "the same file"),
                                ((paths[0], shipped[1], "-o", "x"), 2, "model qm9-gap: "),
                                ((shipped[0], paths[0], "-o", "x"), 2, "members besides its network"),
                                ((paths[0], "none", "-o", "x"), 6, "none")):
        err = p.run("model", "join", *args, expect=status)[2]
        assert words in err and not os.path.exists(p.path("x")), (args, err)
        assert all(len(line) < 200 for line in err.split("\n")), err


def classes_are_joined_by_their_log_odds():
    with sieve.Project() as p:
        begin(p, "[{name: basic}]", "basic", members=2)
        p.run("run", "w.yaml", "-q", "--until", "train")
        paths = ["run/models/e2e-%d.safetensors" % k for k in (1, 2)]
        out = p.run("model", "join", *paths, "-o", "mean.safetensors")[1]
        assert "widest" not in out  # classes have no intervals
        one, first, second = (predicted(p, m) for m in ["mean.safetensors"] + paths)
        for title, row in one.items():
            odds = [math.log(x / (1 - x)) for x in (float(first[title]["basic"]), float(second[title]["basic"]))]
            assert abs(float(row["basic"]) - 1 / (1 + math.exp(-statistics.fmean(odds)))) < 1e-6, (row, odds)


def wrong_member_counts_and_names_are_refused():
    with sieve.Project() as p:
        p.put("in.sdf", labelled(30)[0])
        for targets, members, told in ((GAP, 0, "1..64"), (GAP, 65, "1..64"),
                                       ("[%s]" % ", ".join("{name: t%d, column: mu}" % i for i in range(9)), 29,
                                        "members: 29 of 9 targets each predict more than 256 numbers")):
            p.workflow(["in.sdf"], STAGES + TRAIN % (targets, members))
            err = p.run("check", "w.yaml", expect=2)[2]
            assert told in err and re.search(r"w\.yaml:\d+:\d+", err), (members, err)
        # A model in `models` may not have the name of a member.
        p.workflow(["in.sdf"], STAGES + TRAIN % (GAP, 2) + "  score: {models: [e2e-2]}\n", extra="models:\n  e2e-2: {path: in.sdf}\n")
        err = p.run("check", "w.yaml", expect=2)[2]
        assert "e2e-2 is also the name of the model that this workflow trains" in err, err


if __name__ == "__main__":
    sieve.main([members_are_learned_and_scored_together, classes_have_members_too, wrong_member_counts_and_names_are_refused,
                joined_networks_predict_their_mean, classes_are_joined_by_their_log_odds])
