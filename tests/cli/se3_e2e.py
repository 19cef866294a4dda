#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Networks other than the published one: radial bases, envelopes, noise on positions, 2:4 sparsity, from the workflow to the model file and back."""
import os
import re

import ranks_e2e
import sieve
from targets_e2e import labelled
from train_e2e import tensors

N = 30
TRAIN = """  read: {}
  prepare: {conformers: {source: keep}, dedupe: {by: none}, labels: [gap]}
  graph: {edges: radius, cutoff: 3}
  split: {fractions: {train: 0.8, valid: 0.1, test: 0.1}}
  train:
    targets: [{name: gap, transform: composition}]
    model: {layers: 1, degrees: 2, channels: 8, heads: 2, pooling: sum%s}
    batch: {molecules: 8}
    epochs: 2
  evaluate: {on: [test]}
  score: {}
"""
RADIAL = ", radial: {basis: %s, number: 6, envelope: polynomial}"


def train(p, model, name="w.yaml", workdir="run", *change):
    p.workflow(["in.sdf"], TRAIN % model, name=name, workdir=workdir)
    p.run("run", name, "-q", *change)
    return dict(p.rows("SELECT mol_id, value FROM prediction", workdir=workdir))


def a_radial_basis_is_trained_stored_and_read():
    with sieve.Project() as p:
        p.put("in.sdf", labelled(N)[0])
        bessel = train(p, RADIAL % "bessel")
        assert len(bessel) == N
        said = p.run("model", "info", "run/models/e2e.safetensors")[1]
        assert "6 Bessel functions of distances up to 3 Angstrom" in said and "fade to 0 at 3 Angstrom" in said, said
        # The file alone has all that a prediction needs.
        out = p.run("predict", "run/models/e2e.safetensors", "in.sdf", "--structures", "keep", "-c", "gap")[1].split()
        assert out[0] == "gap" and len(out) == N + 1
        assert all(abs(float(x) - bessel[k]) <= 1e-5 * abs(bessel[k]) for k, x in enumerate(out[1:], 1)), (out, bessel)
        # The default cutoff is that of the graph: written out, it is the same training.
        plan = p.run("plan", "w.yaml", "stages.train.model.radial.cutoff=3")[1]
        assert not re.search(r"train .*(run|new)", plan), plan
        # Defaults written out are the published network.
        plain = train(p, "", "a.yaml", "a")
        assert plain == train(p, ", norm: true, radial: {basis: distance, number: 8, cutoff: 0, envelope: none}", "b.yaml", "b")
        assert plain != bessel
        keys = [p.one("SELECT key FROM stage WHERE name='train'", workdir=d) for d in ("a", "b")]
        assert keys[0] == keys[1]
        gate = train(p, ", norm: gate", "a.yaml", "a")
        assert len(gate) == N and gate != plain
        assert "norm        gate" in p.run("model", "info", "a/models/e2e.safetensors")[1]
        # Bond kinds on a graph of neighbours; the file says how its graphs are made.
        p.workflow(["in.sdf"], TRAIN % "", name="u.yaml", workdir="u")
        p.run("run", "u.yaml", "-q", "stages.graph={edges: bonds+radius, cutoff: 2, max_neighbours: 64}")
        assert "graph       bonds+radius, cutoff 2 Angstrom" in p.run("model", "info", "u/models/e2e.safetensors")[1]
        out = p.run("predict", "u/models/e2e.safetensors", "in.sdf", "--structures", "keep", "-c", "gap")[1].split()[1:]
        union = dict(p.rows("SELECT mol_id, value FROM prediction", workdir="u"))
        assert len(out) == N and all(abs(float(x) - union[k]) <= 1e-5 * abs(union[k]) for k, x in enumerate(out, 1))
        assert "cutoff" in p.run("check", "u.yaml", "stages.graph={edges: bonds+radius, cutoff: 2}",
                                 "stages.train.model.radial={envelope: polynomial, cutoff: 3}", expect=2)[2]
        assert "false, true, gate" in p.run("check", "a.yaml", "stages.train.model.norm=layer", expect=2)[2]


def what_a_graph_or_a_family_cannot_use_is_told_at_its_line():
    with sieve.Project() as p:
        p.put("in.sdf", labelled(N)[0])
        p.workflow(["in.sdf"], TRAIN % ", radial: {basis: bessel, cutoff: 4}")
        line = [i for i, text in enumerate(open(p.path("w.yaml")), 1) if "radial:" in text][0]
        said = p.run("check", "w.yaml", "stages.train.optimiser.min_lr=1", expect=2)[2]
        assert "w.yaml:%d:" % line in said and "model.radial.cutoff: 4 Angstrom, but edges end at graph.cutoff, 3" in said, said
        assert "is above lr" in said, said
        p.run("check", "w.yaml", "stages.graph={edges: bonds}")
        p.run("check", "w.yaml", "stages.graph.cutoff=4")
        said = p.run("check", "w.yaml", "stages.graph.cutoff=4", "stages.train.family=[trees]", expect=2)[2]
        assert "w.yaml:%d:" % line in said and "family has none" in said, said
        for wrong in ("basis=fourier", "number=1", "number=100", "envelope=cosine", "cutoff=-1"):
            assert "model.radial." in p.run("check", "w.yaml", "stages.graph.cutoff=4", "stages.train.model.radial." + wrong, expect=2)[2]
        for idle, key, n in (("{number: 16}", "number", 1), ("{number: 16, envelope: polynomial}", "number", 1), ("{cutoff: 2}", "cutoff", 1),
                             ("{number: 16, cutoff: 2}", "cutoff", 2), ("{basis: bessel, number: 16}", None, 0), ("{number: 8}", None, 0)):
            said = p.run("check", "w.yaml", "stages.train.model.radial=" + idle, expect=2 if n else 0)[2]
            assert said.count("has no effect without a basis") == n and (not n or "radial.%s has" % key in said), (idle, said)


NOISE = "stages.train.noise={scale: 0.05, weight: 1}"
CURVE = "SELECT epoch, split, name, value FROM metric WHERE stage='train' ORDER BY 1, 2, 3"


def noise_is_learned_from_and_not_in_the_file():
    with sieve.Project() as p:
        p.put("in.sdf", labelled(N)[0])
        plain, size = train(p, ""), os.path.getsize(p.path("run/models/e2e.safetensors"))
        # Without a weight it is the same training.
        plan = p.run("plan", "w.yaml", "stages.train.noise={scale: 0.2, weight: 0}")[1]
        assert not re.search(r"train .*(run|new)", plan), plan
        noisy = train(p, "", "n.yaml", "n", NOISE)
        assert len(noisy) == N and noisy != plain
        assert noisy == train(p, "", "m.yaml", "m", NOISE, "stages.train.threads=2")
        # The loss of the noise is in the metrics of the training steps, and in the report.
        curve = [r[0] for r in p.rows("SELECT value FROM metric WHERE name='noise_loss' AND split='train' ORDER BY epoch", workdir="n")]
        assert len(curve) == 2 and all(0.3 < x < 30 for x in curve), curve
        assert not p.rows("SELECT * FROM metric WHERE name='noise_loss' AND split<>'train'", workdir="n")
        assert not p.rows("SELECT * FROM metric WHERE name='noise_loss'")
        p.run("report", "n/results.db", "-o", "n.html")
        assert "loss of the noise" in open(p.path("n.html")).read()
        # The file has what a file without noise has, and predicts alone what was scored.
        file = "n/models/e2e.safetensors"
        assert b"denoise.weight" not in open(p.path(file), "rb").read() and abs(os.path.getsize(p.path(file)) - size) < 1000
        out = p.run("predict", file, "in.sdf", "--structures", "keep", "-c", "gap")[1].split()[1:]
        assert len(out) == N and all(abs(float(x) - noisy[k]) <= 1e-5 * abs(noisy[k]) for k, x in enumerate(out, 1))


def noise_gives_the_same_bytes_after_kills_and_with_ranks():
    """A batch of two shards: by one process, killed and continued, and by two ranks over TCP."""
    def result(workdir):
        return open(p.path(workdir, "models/e2e.safetensors"), "rb").read(), p.rows(CURVE, workdir=workdir)

    with sieve.Project() as p:
        p.put("in.sdf", labelled(N)[0])
        change = (NOISE, "stages.train.batch.shards=2")
        train(p, "", "w.yaml", "run", *change)
        want = result("run")
        for point in ("train.epoch.before_commit:2", "train.checkpoint.after:1"):
            p.run("run", "w.yaml", "-q", "workdir=killed", *change, expect=137, env=dict(os.environ, MOLSIEVE_FAULT=point))
        p.run("run", "w.yaml", "-q", "-j", "3", "workdir=killed", *change)
        assert result("killed") == want
        status, text = ranks_e2e.Started(p, 2, "workdir=ranks", "stages.train.ranks=tcp", *change).end()
        assert status == [0, 0], text
        assert result("ranks") == want


def noise_that_nothing_learns_from_is_told_at_its_line():
    with sieve.Project() as p:
        p.put("in.sdf", labelled(N)[0])
        text = TRAIN.replace("    epochs: 2\n", "    noise: {scale: 0.05, weight: 1}\n    epochs: 2\n")
        p.workflow(["in.sdf"], text % "")
        line = [i for i, one in enumerate(open(p.path("w.yaml")), 1) if "noise:" in one][0]
        p.run("check", "w.yaml")
        for wrong, word in (("engine=cuda", "engine cuda cannot predict it yet"), ("family=[trees]", "family has none")):
            assert "w.yaml:%d:" % line in p.run("check", "w.yaml", "stages.train." + wrong, expect=2)[2], wrong
            assert word in p.run("check", "w.yaml", "stages.train." + wrong, expect=2)[2], wrong
        for wrong, word in (("scale=0", "there is no noise to predict"), ("scale=-0.1", "outside 0..1"), ("scale=.nan", "not understood"),
                            ("weight=-1", "outside 0..1000"), ("weight=.inf", "not understood")):
            assert word in p.run("check", "w.yaml", "stages.train.noise." + wrong, expect=2)[2], wrong
        p.put("half.yaml", open(p.path("w.yaml")).read().replace("{scale: 0.05, weight: 1}", "{scale: 0.1}"))
        said = p.run("check", "half.yaml", expect=2)[2]
        assert "half.yaml:%d:" % line in said and "noise.scale has no effect without noise.weight" in said, said
        p.run("check", "half.yaml", "stages.train.noise.weight=0")
        assert "predicted from degree 1" in p.run("check", "w.yaml", "stages.train.model.degrees=1", expect=2)[2]
        # Without positions: graphs that have none, with a family that may have a network; prepare that builds none.
        said = p.run("check", "w.yaml", "stages.graph={edges: topology}", "stages.train.family=auto", expect=2)[2]
        assert "w.yaml:%d:" % line in said and "topology have none" in said, said
        said = p.run("check", "w.yaml", "stages.prepare.conformers.source=none", "stages.train.noise.scale=0", expect=2)[2]
        assert "needs 3D structures" in said and "there is no noise" in said, said


ALONE = """  read: {}
  prepare: {conformers: {source: keep}, dedupe: {by: none}}
  graph: {edges: radius, cutoff: 3}
  split: {fractions: {train: 0.8, valid: 0.1, test: 0.1}}
  train:
    task: denoise
    noise: {scale: 0.1}
    model: {layers: 1, degrees: 2, channels: 8, heads: 2, pooling: sum}
    batch: {molecules: 8, shards: 2}
    epochs: 3
"""


def denoising_alone_makes_a_start_for_a_training():
    """From molecules without labels: one process, one killed and continued, two ranks over TCP; then a training that starts from it."""
    def result(workdir):
        return open(p.path(workdir, "models/e2e.safetensors"), "rb").read(), p.rows(CURVE, workdir=workdir)

    with sieve.Project() as p:
        p.put("in.sdf", labelled(N)[0])
        p.workflow(["in.sdf"], ALONE)
        p.run("run", "w.yaml", "-q")
        want, curve = result("run")
        # All molecules of the part are learned from; nothing but noise has an error, and it falls.
        learned = p.one("SELECT count(*) FROM split WHERE part='train'")
        assert {row[2] for row in curve} == {"lr", "noise_loss"}, curve
        noise = [row[3] for row in curve if row[2] == "noise_loss"]
        assert len(noise) == 3 and noise[-1] < noise[0], noise
        assert "epoch 3 of 3: train noise_loss" in p.run("status", "run")[1]
        assert p.one("SELECT count(*) FROM property WHERE name='noise'") == 0
        p.run("report", "run/results.db", "-o", "r.html")
        for point in ("train.epoch.before_commit:2", "train.checkpoint.after:1"):
            p.run("run", "w.yaml", "-q", "workdir=killed", expect=137, env=dict(os.environ, MOLSIEVE_FAULT=point))
        p.run("run", "w.yaml", "-q", "-j", "3", "workdir=killed")
        assert result("killed") == (want, curve)
        status, text = ranks_e2e.Started(p, 2, "workdir=ranks", "stages.train.ranks=tcp").end()
        assert status == [0, 0], text
        assert result("ranks") == (want, curve)
        # The file says what it is, and is no model to score with.
        said = p.run("model", "info", "run/models/e2e.safetensors")[1]
        assert "predicts    nothing" in said and "%d molecules" % learned in said and "MAE" not in said and "range" not in said, said
        p.run("model", "verify", "run/models/e2e.safetensors")
        said = p.run("predict", "run/models/e2e.safetensors", "in.sdf", expect=2)[2]
        assert "predicts nothing; start a training from it" in said, said
        model = "models: {pre: {path: run/models/e2e.safetensors}}\n"
        p.workflow(["in.sdf"], ALONE[:ALONE.index("  split")] + "  score: {}\n", name="s.yaml", workdir="s", extra=model)
        assert "predicts nothing" in p.run("check", "s.yaml", expect=2)[2]
        # A training starts from all of it but the last layer.
        p.workflow(["in.sdf"], (TRAIN % "").replace("    epochs", "    start: pre\n    epochs"), name="f.yaml", workdir="f", extra=model)
        said = p.run("run", "f.yaml")[2]
        taken = re.search(r"starts from pre: ([0-9]+) of ([0-9]+) weights", said)
        assert taken and int(taken[2]) - int(taken[1]) == 17, said
        assert p.one("SELECT count(*) FROM prediction", workdir="f") == N


def what_denoising_alone_does_not_have_is_told():
    with sieve.Project() as p:
        p.put("in.sdf", labelled(N)[0])
        p.workflow(["in.sdf"], ALONE)
        p.run("check", "w.yaml")
        train = "stages.train."
        said = p.run("check", "w.yaml", train + "targets=[{name: gap}]", train + "loss=l2", train + "early_stop={patience: 3}",
                     train + "family=[se3, trees]", train + "inputs={columns: [t]}", train + "engine=cuda", train + "sparsity=2:4",
                     "+stages.evaluate={}", "+stages.score={}", expect=2)[2]
        for word in ("targets: task: denoise", "loss: task: denoise", "early_stop: task: denoise", "family: task: denoise",
                     "inputs.columns: task: denoise", "engine cuda cannot predict it", "evaluate: stages.train has task: denoise",
                     "no model: stages.train has task: denoise", "sparsity: task: denoise"):
            assert word in said, (word, said)
        assert "there is no noise to predict" in p.run("check", "w.yaml", train + "noise.scale=0", expect=2)[2]
        said = p.run("run", "w.yaml", train + "model.elements=[Cl]", expect=2)[2]
        assert "no molecule of the training part has a graph and only known elements" in said, said


SPARSE = "stages.train.sparsity=2:4"


def two_of_four_weights_are_kept_over_kills_and_ranks():
    """Pruned after the first of two epochs, in two shards; then from the start of that model."""
    def result(workdir):
        return open(p.path(workdir, "models/e2e.safetensors"), "rb").read(), p.rows(CURVE, workdir=workdir)

    def told(workdir):
        return p.one("SELECT message FROM event WHERE message LIKE 'sparsity%'", workdir=workdir)

    with sieve.Project() as p:
        p.put("in.sdf", labelled(N)[0])
        change = (SPARSE, "stages.train.batch.shards=2")
        scores = train(p, "", "w.yaml", "run", *change)
        want = result("run")
        assert "pruned after half of the epochs" in told("run") and "matrices stay dense" in told("run"), told("run")
        for _ in range(2):
            p.run("run", "w.yaml", "-q", "workdir=killed", *change, expect=137,
                  env=dict(os.environ, MOLSIEVE_FAULT="train.checkpoint.after:1"))
        p.run("run", "w.yaml", "-q", "-j", "3", "workdir=killed", *change)
        assert result("killed") == want
        status, text = ranks_e2e.Started(p, 2, "workdir=ranks", "stages.train.ranks=tcp", *change).end()
        assert status == [0, 0], text
        assert result("ranks") == want
        # The file says so, has half of the weights, and predicts alone what was scored.
        file = "run/models/e2e.safetensors"
        said = p.run("model", "info", file)[1]
        zeros, all_of = map(int, re.search(r"sparsity    2:4: (\d+) of (\d+) weights of \d+ matrices are 0; \d+ others are dense", said).groups())
        assert 2 * zeros == all_of > 5000, said
        in_file, dense = map(int, re.search(r"weights take (\d+) bytes in the file, dense ones (\d+)", said).groups())
        found, meta = tensors(p.path(file))
        weights = sum(len(data) for name, (_, data) in found.items() if name.endswith((".weight", ".bias", ".values", ".index"))
                      or ".weights." in name or ".to_kernel_self." in name)
        assert weights == in_file < 0.65 * dense and meta["format_version"] == "8", (weights, in_file, dense)
        out = p.run("predict", file, "in.sdf", "--structures", "keep", "-c", "gap")[1].split()[1:]
        assert len(out) == N and all(abs(float(x) - scores[k]) <= 1e-5 * abs(scores[k]) for k, x in enumerate(out, 1))
        # A trained start is pruned before the first epoch, even for a single one.
        p.workflow(["in.sdf"], TRAIN % "", name="s.yaml", workdir="s", extra="models:\n  before: {path: run/models/e2e.safetensors}\n")
        p.run("run", "s.yaml", "-q", SPARSE, "stages.train.start=before", "stages.train.epochs=1")
        assert "pruned before the first epoch" in told("s")
        assert re.search(r"(\d+) of %d weights" % all_of, p.run("model", "info", "s/models/e2e.safetensors")[1]).group(1) == str(zeros)
        # What a pruning cannot follow or lacks is told; no pruning is the training of before.
        for wrong, word in (("epochs=1", "there is only one"), ("family=[trees]", "family has none"), ("optimiser.eps=0", "eps above 0"),
                            ("sparsity=4:8", "none, 2:4")):
            assert word in p.run("check", "w.yaml", SPARSE, "stages.train." + wrong, expect=2)[2], wrong
        p.workflow(["in.sdf"], TRAIN % "", workdir="plain")
        train(p, "", "w.yaml", "plain")
        assert not re.search(r"train .*(run|new)", p.run("plan", "w.yaml", "stages.train.sparsity=none")[1])
        assert not p.rows("SELECT * FROM event WHERE message LIKE 'sparsity%'", workdir="plain")


if __name__ == "__main__":
    sieve.main([two_of_four_weights_are_kept_over_kills_and_ranks, denoising_alone_makes_a_start_for_a_training,
                what_denoising_alone_does_not_have_is_told,
                noise_is_learned_from_and_not_in_the_file, noise_gives_the_same_bytes_after_kills_and_with_ranks,
                noise_that_nothing_learns_from_is_told_at_its_line, a_radial_basis_is_trained_stored_and_read,
                what_a_graph_or_a_family_cannot_use_is_told_at_its_line])
