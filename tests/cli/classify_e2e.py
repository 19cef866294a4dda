#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Classes: a classifier is trained and evaluated, and a ranking is compared with known actives."""
import json
import math
import os
import re
import shutil
import struct

import sieve
from report_e2e import read_page

SDF = "qm9/qm9_dev_2500.sdf.gz"
STAGES = """  read: {unit: 40}
  prepare:
    conformers: {source: keep}
    labels: [basic]
    properties: {basic: {task: classification, better: high}}
  graph: {edges: bonds}
"""
TRAIN = """  split: {fractions: {train: 0.6, valid: 0.2, test: 0.2}}
  train:
    targets: [{name: basic, better: high}]
    model: {layers: 1, degrees: 2, channels: 8, heads: 2}
    batch: {molecules: 8}
    epochs: 15
    optimiser: {lr: 0.01}
  evaluate: {on: [train, valid, test]}
  score: {}
"""


def labelled(n, label):
    """Records with a field `basic`: label(number, whether the molecule has a nitrogen), if not None."""
    out = b""
    for i, record in enumerate(sieve.sdf_records(sieve.data(SDF), n).split(b"$$$$\n")[:n]):
        value = label(i, b" N   " in record)
        out += record + (b"" if value is None else b"> <basic>\n%d\n\n" % value) + b"$$$$\n"
    return out


def trained(p, workdir):
    with open(p.path(workdir, "models/e2e.safetensors"), "rb") as f:
        model = f.read()
    return (model, p.rows("SELECT stage, step, epoch, split, name, value FROM metric ORDER BY 1, 2, 4, 5", workdir=workdir),
            p.rows("SELECT part, metric, unit, value, n FROM evaluation ORDER BY 1, 2", workdir=workdir))


def metrics(pairs):
    """Computed from the definitions, for pairs of (class, probability)."""
    n, actives = len(pairs), sum(y for y, _ in pairs)
    wins = [(p > q) + 0.5 * (p == q) for y, p in pairs if y for z, q in pairs if not z]
    order = sorted(pairs, key=lambda one: -one[1])
    precision = [sum(y for y, q in pairs if q >= p) / sum(q >= p for _, q in pairs) for y, p in pairs if y]
    first = -(-n // 20)
    return {"roc_auc": sum(wins) / len(wins), "pr_auc": sum(precision) / actives, "actives": actives,
            "log_loss": -sum(math.log(p if y else 1 - p) for y, p in pairs) / n,
            "brier": sum((p - y) ** 2 for y, p in pairs) / n,
            "ef5": sum(y for y, _ in order[:first]) / first * n / actives, "ef5_max": min(actives, first) / first * n / actives}


def roc_path(pairs):
    """The curve as the report draws it: a point for each different probability, 290 wide and 178 high."""
    ones = sum(y for y, _ in pairs)
    taken = [[y for y, q in pairs if q >= limit] for limit in sorted({q for _, q in pairs}, reverse=True)]
    points = [(0, 0)] + [((len(t) - sum(t)) / (len(pairs) - ones), sum(t) / ones) for t in taken]
    return 'd="M' + "L".join("%.1f %.1f" % (58 + 290 * x, 190 - 178 * y) for x, y in points) + '"'


def a_classifier_is_trained_evaluated_and_reported():
    with sieve.Project() as p:
        p.put("in.sdf", labelled(110, lambda i, n: int(n)))
        p.workflow(["in.sdf"], STAGES + TRAIN)
        p.run("run", "w.yaml", "-q", "--until", "split")
        shutil.copytree(p.path("run"), p.path("killed"))
        p.run("run", "w.yaml", "-q")
        want = trained(p, "run")
        # The file says that it predicts a class; a program that knows no classes refuses it.
        meta = json.loads(want[0][8:8 + struct.unpack("<Q", want[0][:8])[0]])["__metadata__"]
        target, scale = json.loads(meta["target"]), json.loads(meta["scale"])
        assert meta["format_version"] == "2" and (target["task"], target["output"]) == ("classification", "logistic"), meta
        assert (scale["mean"], scale["std"], scale["constant"]) == (0, 1, 0) and not any(scale["offsets"]), scale
        assert p.rows("SELECT name, task FROM property") == [("basic", "classification")]
        # Scores are probabilities; the errors on each part agree with the definitions.
        for part in ("train", "valid", "test"):
            pairs = p.rows("SELECT measured, predicted FROM evaluated WHERE part=?", part)
            assert {y for y, _ in pairs} == {0, 1} and all(0 < q < 1 for _, q in pairs)
            got = dict(p.rows("SELECT metric, value FROM evaluation WHERE part=?", part))
            for name, value in metrics(pairs).items():
                assert abs(got[name] - value) < 1e-9, (part, name, got[name], value)
            assert got["mean.roc_auc"] == 0.5 and 0 < got["descriptors.roc_auc"] < 1 and "descriptors.log_loss" not in got, got
            assert not {"mae", "r2", "interval90", "mean.mae"} & set(got), got
        assert dict(p.rows("SELECT metric, value FROM evaluation WHERE part='train'"))["roc_auc"] > 0.9
        scores = dict(p.rows("SELECT mol_id, mean FROM score"))
        assert len(scores) == 110 and all(abs(scores[m] - q) < 1e-6 for m, q in p.rows("SELECT mol_id, predicted FROM evaluated"))
        curve = p.rows("SELECT DISTINCT name FROM metric WHERE split='valid' ORDER BY 1")
        assert curve == [("brier",), ("loss",)], curve
        losses = dict(p.rows("SELECT epoch, value FROM metric WHERE split='valid' AND name='loss'"))
        best = json.loads(meta["provenance"])["training"]["best_epoch"]
        assert len(losses) == 15 and losses[best] == min(losses.values()), (best, losses)
        info = p.run("model", "info", "run/models/e2e.safetensors")[1]
        assert "predicts    the probability of basic, high is better" in info, info
        assert re.search(r"test +ROC-AUC [\d.]+; PR-AUC .* BEDROC [\d.]+; log loss [\d.]+; Brier [\d.]+ \(22 molecules, \d+ of class 1; EF at most ",
                         info), info
        # The report has the same numbers, a curve for each part, and counts every prediction in the table of calibration.
        page, svgs = read_page(p, "run")
        table = {(r[0], r[1]): r[2:] for r in page.table("part", "prediction by", "ROC-AUC")}
        shown = ["roc_auc", "pr_auc", "ef1", "ef1_max", "ef5", "ef5_max", "bedroc20", "log_loss", "brier", "actives"]
        for part in ("train", "valid", "test"):
            got = dict(p.rows("SELECT metric, value FROM evaluation WHERE part=?", part))
            assert table[part, "the model"][:10] == [got[m] for m in shown], (part, table)
            assert table[part, "mean"][:10] == [got["mean." + m] for m in shown], (part, table)
            drawn, = (s for s in svgs if 'aria-label="ROC curve, part %s"' % part in s)
            assert roc_path(p.rows("SELECT measured, predicted FROM evaluated WHERE part=?", part)) in drawn, drawn
        bins = page.table("part", "predicted probability", "molecules")
        assert sum(r[2] for r in bins) == 110 and abs(sum(r[2] * r[4] for r in bins) - p.one("SELECT sum(measured) FROM evaluated")) < 1e-9
        assert not any("predicted against measured" in s for s in svgs)
        # After a kill, with more workers: the same bytes.
        env = dict(os.environ, MOLSIEVE_FAULT="train.checkpoint.after:2")
        p.run("run", "w.yaml", "-q", "workdir=killed", expect=137, env=env)
        p.run("run", "w.yaml", "-q", "-j", "3", "workdir=killed")
        assert trained(p, "killed") == want


def values_that_are_no_class_are_refused_or_left_out():
    with sieve.Project() as p:
        p.put("in.sdf", labelled(60, lambda i, n: 2 if i == 7 else int(n)))
        p.workflow(["in.sdf"], STAGES + TRAIN)
        with open(p.path("in.sdf"), "rb") as f:
            line = f.read().split(b"$$$$\n")[:7]
        line = sum(record.count(b"\n") + 1 for record in line) + 1
        err = p.run("run", "w.yaml", "-q", "stages.train.epochs=1", expect=2)[2]
        assert "basic is a class, so its values are 0 and 1; found" in err and "in.sdf:%d: '2'" % line in err and not os.path.exists(p.path("run/results.db")), (line, err)
        # If two measurements disagree, the molecule has no class, and a failure row says so.
        records = labelled(60, lambda i, n: int(n))
        twice = labelled(4, lambda i, n: 1 - int(n) if i == 3 else int(n)).split(b"$$$$\n")[3] + b"$$$$\n"
        p.put("in.sdf", records + twice)
        p.run("run", "w.yaml", "-q", "stages.train.epochs=1")
        failures = p.rows("SELECT f.stage, f.code, f.message, r.ordinal FROM failure f JOIN record r ON r.record_id=f.mol_id")
        assert failures == [("train", "class", "basic: the mean of 2 measurements is 0.5, so it is neither 0 nor 1; left out", 4)], failures
        assert p.one("SELECT count(*) FROM evaluated") == 59
        # Settings that contradict each other.
        for setting, told in (("stages.train.loss=l1", "its loss is bce, or auto"), ("stages.train.targets.0.factor=2", "no unit, factor")):
            assert told in p.run("check", "w.yaml", setting, expect=2)[2], setting
        p.workflow(["in.sdf"], STAGES.replace("classification", "regression") + TRAIN, name="r.yaml")
        assert "bce is for a class" in p.run("check", "r.yaml", "stages.train.loss=bce", expect=2)[2]
        p.put("in.sdf", labelled(60, lambda i, n: 1))
        assert "nothing to learn" in p.run("run", "w.yaml", "-q", expect=2)[2]


def retrieval(pairs):
    """Computed from the definitions for pairs of (active, value), larger is better; a tie counts with the mean over all orders of its members."""
    n, actives = len(pairs), sum(y for y, _ in pairs)
    got = metrics([(y, 0.5) for y, _ in pairs])  # for what does not depend on the order
    wins, bedroc, found = 0, 0, {}
    for y, p in pairs:
        if y:
            above, same = sum(q > p for _, q in pairs), sum(q == p for _, q in pairs)
            wins += sum((p > q) + 0.5 * (p == q) for z, q in pairs if not z)
            bedroc += sum(math.exp(-20 * r / n) for r in range(above + 1, above + same + 1)) / same
            for part, first in (("ef1", -(-n // 100)), ("ef5", -(-n // 20))):
                found[part] = found.get(part, 0) + min(max(first - above, 0), same) / same / first * n / actives
    ra = actives / n
    rie = bedroc / actives / ((1 - math.exp(-20)) / (math.exp(20 / n) - 1) / n)
    return dict(found, roc_auc=wins / actives / (n - actives), actives=actives, candidates=n, ef5_max=got["ef5_max"],
                bedroc20=rie * ra * math.sinh(10) / (math.cosh(10) - math.cosh(10 - 20 * ra)) + 1 / (1 - math.exp(20 * (1 - ra))))


RANKING = "SELECT name, value FROM metric WHERE stage='rank' AND step=0 AND name<>'found'"
RANK = "  rank: {objectives: [{property: %s, goal: %s}], where: \"rings <= 3\", top: 10, actives: basic}\n"


def weighted_classes_keep_honest_probabilities():
    with sieve.Project() as p:
        # About one in eight is of class 1, at random among those with nitrogen.
        p.put("in.sdf", labelled(160, lambda i, n: int(n and i % 5 == 0)))
        p.workflow(["in.sdf"], STAGES + TRAIN.replace("epochs: 15", "class_weights: balanced\n    epochs: 15"))
        plain, trees = "stages.train.class_weights=none", "stages.train.family=[trees, forest]"
        seen = {}
        p.run("run", "w.yaml", "-q", "--until", "split")
        shutil.copytree(p.path("run"), p.path("killed"))
        for family in ([], [trees]):
            for weights in ([plain], []):
                p.run("run", "w.yaml", "-q", *family, *weights)
                share, mean = p.rows("SELECT avg(measured), avg(predicted) FROM evaluated WHERE part='train'")[0]
                seen[len(family), len(weights)] = p.rows("SELECT mol_id, predicted FROM evaluated ORDER BY 1")
                # Uncorrected, a model with balanced classes would say about one half.
                assert 0.05 < share < 0.2 and abs(mean - share) < 0.1, (family, weights, share, mean)
            assert seen[len(family), 0] != seen[len(family), 1]
        # The errors are those of the corrected probabilities, unweighted; curves of a weighted training have no Brier score.
        p.run("run", "w.yaml", "-q")
        pairs = p.rows("SELECT measured, predicted FROM evaluated WHERE part='test'")
        got = dict(p.rows("SELECT metric, value FROM evaluation WHERE part='test'"))
        assert all(abs(got[name] - metrics(pairs)[name]) < 1e-9 for name in ("log_loss", "brier", "roc_auc"))
        assert p.rows("SELECT DISTINCT name FROM metric WHERE split='valid'") == [("loss",)]
        # After a kill behind the last epoch, in which the weights are corrected once: the same bytes.
        want = trained(p, "run")
        for point in ("train.checkpoint.after:2", "train.model.before:1", "train.model.after:1"):
            shutil.copytree(p.path("killed"), p.path("again"))
            p.run("run", "w.yaml", "-q", "workdir=again", expect=137, env=dict(os.environ, MOLSIEVE_FAULT=point))
            p.run("run", "w.yaml", "-q", "-j", "3", "workdir=again")
            assert trained(p, "again") == want, point
            shutil.rmtree(p.path("again"))
        # One target by its own number; the other way round the predictions change, too.
        p.run("run", "w.yaml", "-q", plain, trees, "stages.train.targets=[{name: basic, class_weight: 3}]")
        assert p.rows("SELECT mol_id, predicted FROM evaluated ORDER BY 1") not in (seen[1, 0], seen[1, 1])
        # Balanced is as many times as there are molecules of class 0 for one of class 1.
        zeros, ones = p.rows("SELECT sum(value=0), sum(value=1) FROM label JOIN split USING(mol_id) WHERE part='train'")[0]
        p.run("run", "w.yaml", "-q", plain, trees, "stages.train.targets=[{name: basic, class_weight: %r}]" % (zeros / ones))
        assert p.rows("SELECT mol_id, predicted FROM evaluated ORDER BY 1") == seen[1, 0]
        # Settings that contradict each other are refused together.
        said = p.run("check", "w.yaml", "stages.train.family=gp", "stages.train.optimiser.lr=0.0001", expect=2)[2]
        assert "gp learns without weights" in said and "is above lr" in said, said
        p.workflow(["in.sdf"], (STAGES + TRAIN).replace("    properties: {basic: {task: classification, better: high}}\n", ""), name="n.yaml")
        said = p.run("check", "n.yaml", "stages.train.class_weights=balanced",
                     "stages.train.targets=[{name: basic, class_weight: 3}]", expect=2)[2]
        assert "weights are for classes" in said and "basic is none" in said, said


def a_ranking_is_compared_with_known_actives():
    with sieve.Project() as p:
        # 150 molecules; every seventh has no label, one has two labels that disagree.
        records = labelled(150, lambda i, n: None if i % 7 == 5 else int(n))
        p.put("in.sdf", records + labelled(4, lambda i, n: 1 - int(n)).split(b"$$$$\n")[3] + b"$$$$\n")
        stages = STAGES.replace("  graph: {edges: bonds}\n", "")
        for prop, goal, sign in (("logp", "maximise", 1), ("hbd", "minimise", -1), ("hba", "maximise", 1)):  # the last two with ties
            p.workflow(["in.sdf"], stages + RANK % (prop, goal))
            said = p.run("run", "w.yaml", "-q")[2]
            assert said.count("actives: 1 molecule with labels of basic that contradict each other is left out") == 1, said
            rows = p.rows("SELECT coalesce(value,0), %d*%s, value IS NULL FROM molecule LEFT JOIN label USING(mol_id) "
                          "WHERE rings<=3 AND (value IS NULL OR value IN (0,1))" % (sign, prop))
            want = dict(retrieval([r[:2] for r in rows]), unlabelled=sum(r[2] for r in rows))
            got = dict(p.rows(RANKING))
            assert want["candidates"] > 120 and want["unlabelled"] > 15 and 20 < want["actives"] < 100, want
            for name, value in want.items():
                assert abs(got[name] - value) <= 1e-9 * max(1, value), (prop, name, got[name], value)
            curve = p.rows("SELECT step, value FROM metric WHERE stage='rank' AND name='found' ORDER BY step")
            assert curve[0] == (0, 0) and curve[-1] == (want["candidates"], 1) and curve == sorted(curve), curve
        page, svgs = read_page(p, "run")
        told = {r[0]: r[1:] for r in page.table("measure", "this ranking")}
        assert told["ROC-AUC"] == [got["roc_auc"], 0.5, 1] and told["enrichment in the first 5 %"] == [got["ef5"], 1, got["ef5_max"]], told
        assert sum('aria-label="enrichment curve"' in s for s in svgs) == 1 and "Learning curves" not in page.text
        # A diverse ranking leaves out hits, but enrichment still counts all candidates; without `actives` no rows remain.
        before = p.rows(RANKING)
        p.run("run", "w.yaml", "-q", "stages.rank.diversity.by=scaffold", "stages.rank.diversity.at_most=1", "stages.rank.top=30")
        assert p.rows(RANKING) == before
        p.workflow(["in.sdf"], stages + (RANK % ("hba", "maximise")).replace(", actives: basic", ""), name="plain.yaml")
        p.run("run", "plain.yaml", "-q")
        assert p.rows(RANKING) == [] and p.one("SELECT count(*) FROM hit") == 10
        p.put("in.sdf", records + b"".join(r + b"$$$$\n" for r in labelled(5, lambda i, n: 1 - int(n)).split(b"$$$$\n")[3:5]))
        assert "2 molecules with labels of basic that contradict each other are left out" in p.run("run", "w.yaml", "-q")[2]
        p.put("in.sdf", records)
        assert "contradict each other are" not in p.run("run", "w.yaml", "-q")[2]
        # Settings that are refused.
        assert "labels; add it there" in p.run("check", "w.yaml", "stages.rank.actives=acid", expect=2)[2]
        p.run("run", "w.yaml", "-q", "stages.rank.where=rings > 90")
        assert "enrichment needs actives and others" in "".join(m for (m,) in p.rows("SELECT message FROM event")) and p.rows(RANKING) == []
        p.put("in.sdf", labelled(20, lambda i, n: 5))
        assert "is 5; a class is 0 or 1" in p.run("run", "w.yaml", "-q", expect=2)[2]
        p.put("in.sdf", re.sub(rb"(^|\$\$\$\$\n)[^\n]+\n", rb"\1\n", labelled(20, lambda i, n: 5)))  # without titles
        assert re.search(r" of a molecule \(\S*in.sdf:\d+\) is 5; a class is 0 or 1", p.run("run", "w.yaml", "-q", expect=2)[2])


if __name__ == "__main__":
    sieve.main([a_classifier_is_trained_evaluated_and_reported, values_that_are_no_class_are_refused_or_left_out,
                weighted_classes_keep_honest_probabilities, a_ranking_is_compared_with_known_actives])
