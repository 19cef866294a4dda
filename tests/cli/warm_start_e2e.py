#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fine-tuning: `train.start` names the model whose weights a training begins with."""
import json
import os
import re
import shutil

import ranks_e2e
import sieve
from targets_e2e import STAGES, labelled
from train_e2e import tensors

TRAIN = """  train:
    targets: [{name: %s}]
    model: {layers: 1, degrees: 2, channels: 8, heads: 2%s}
    batch: {molecules: 8, shards: 2}
    epochs: 2
    ema: 0.9
    domain: 0
"""
START = "    start: before\n"
MODELS = "models:\n  before: {path: before.safetensors}\n"
STILL = ["stages.train.optimiser.lr=0", "stages.train.optimiser.min_lr=0"]
LAST = {"mlp.2.weight", "mlp.2.bias"}


def begin(p):
    """Makes a model of mu that knows more elements than the molecules have, and runs all stages before a training that starts from it."""
    p.put("in.sdf", labelled(60)[0])
    p.workflow(["in.sdf"], STAGES + TRAIN % ("mu", ", elements: [C, Br, H, O, N, F]"))
    p.run("run", "w.yaml", "-q")
    shutil.move(p.path("run/models/e2e.safetensors"), p.path("before.safetensors"))
    p.workflow(["in.sdf"], STAGES + TRAIN % ("gap", "") + START, workdir="run", extra=MODELS)


def weights(found):
    """Without the validation molecules."""
    return {k: v for k, v in found.items() if k != "seen.zlib"}


def made(p, workdir="run"):
    found, meta = tensors(p.path(workdir, "models/e2e.safetensors"))
    return weights(found), meta  # whose sha256 is that of the whole file


def a_training_starts_from_another_model():
    with sieve.Project() as p:
        begin(p)
        p.run("run", "w.yaml", "-q", "--until", "split")
        for other in ("still", "killed", "ranks", "plain"):
            shutil.copytree(p.path("run"), p.path(other))
        before = weights(tensors(p.path("before.safetensors"))[0])
        # After zero steps all layers but the last are unchanged; the elements are in another order, and one is missing.
        p.run("run", "w.yaml", "-q", "workdir=still", *STILL)
        still, meta = made(p, "still")
        shapes = {k for k in before if before[k][0] != still[k][0]}
        assert set(still) == set(before) and 0 < len(shapes) < 5, shapes
        assert all(k.startswith("transformer.graph_modules.0.") for k in shapes), shapes
        assert {k for k in before if before[k] != still[k]} - shapes == LAST
        start = json.loads(meta["provenance"])["start"]
        assert start["model"] == "before" and len(start["sha256"]) == 64
        said, = p.rows("SELECT message FROM event WHERE message LIKE 'training starts from%'", workdir="still")[0]
        taken, n = map(int, re.match(r"training starts from before: (\d+) of (\d+) weights are taken from it; the others are new", said).groups())
        assert 0.9 * n < taken < n
        # With the same target, the last layer is unchanged, too.
        p.run("run", "w.yaml", "-q", "workdir=still", "stages.train.targets=[{name: mu}]", *STILL)
        again, _ = made(p, "still")
        assert {k for k in before if before[k] != again[k]} == shapes
        # Training changes the weights, and random weights give another model. Kills and ranks do not matter.
        p.run("run", "w.yaml", "-q")
        want = made(p)
        assert all(want[0][k] != still[k] for k in before)
        p.run("run", "w.yaml", "-q", "workdir=plain", "stages.train.start=null")
        assert made(p, "plain")[0] != want[0] and "start" not in made(p, "plain")[1]["provenance"]
        p.run("run", "w.yaml", "-q", "workdir=killed", expect=137, env=dict(os.environ, MOLSIEVE_FAULT="train.checkpoint.after:1"))
        p.run("run", "w.yaml", "-q", "workdir=killed")
        assert made(p, "killed") == want
        assert p.one("SELECT count(*) FROM event WHERE message LIKE 'training starts from%'", workdir="killed") == 1
        status, text = ranks_e2e.Started(p, 2, "workdir=ranks").end()
        assert status == [0, 0], text
        assert made(p, "ranks") == want
        # Another file of that name reruns the training.
        shutil.copy(p.path("plain/models/e2e.safetensors"), p.path("before.safetensors"))
        assert re.search(r"train +again .*start: ", p.run("plan", "w.yaml")[1]), p.run("plan", "w.yaml")[1]


def members_share_a_start_model_but_not_the_order():
    with sieve.Project() as p:
        begin(p)
        p.run("run", "w.yaml", "-q", "stages.train.members=2")
        one, two = (weights(tensors(p.path("run/models/e2e-%d.safetensors" % k))[0]) for k in (1, 2))
        assert all(one[k] != two[k] for k in one)
        p.run("run", "w.yaml", "-q", "stages.train.members=2", *STILL)
        one, two = (weights(tensors(p.path("run/models/e2e-%d.safetensors" % k))[0]) for k in (1, 2))
        assert {k for k in one if one[k] != two[k]} == {"mlp.2.weight"} | ({"mlp.2.bias"} if one["mlp.2.bias"] != two["mlp.2.bias"] else set())


def an_unsuitable_start_model_is_refused_before_work():
    with sieve.Project() as p:
        begin(p)
        for change, told in ((["stages.train.start=befor"], "start: befor is not in the workflow's `models`; did you mean before"),
                             (["stages.train.model.channels=16"], "start: before: model.channels is 16 here and 8 in the start model"),
                             (["stages.train.model.bonds=false"], "start: before: model.bonds is 0 here and 1 in the start model"),
                             (["stages.graph.edges=radius"], "start: before: "),
                             (["models.before.sha256=%064d" % 1], "start: before: the file has sha256 ")):
            err = p.run("check", "w.yaml", *change, expect=2)[2]
            assert told in err, (change, err)


def a_model_of_molecules_in_another_form_is_warned_of():
    with sieve.Project() as p:
        begin(p)
        assert "molecules   acids and bases as drawn\n" in p.run("model", "info", "before.safetensors")[1]
        for prepare, told in (("{}", None), ("{neutralise: true}", "neutral"), ("{ph: 7.4}", "at pH 7.4")):
            p.workflow(["in.sdf"], "  read: {}\n  prepare: %s\n  graph: {edges: bonds}\n  score: {}\n" % prepare, name="s.yaml", workdir="s", extra=MODELS)
            p.run("run", "s.yaml", "-q")
            said = p.rows("SELECT message FROM event WHERE level='warn' ORDER BY event_id DESC LIMIT 1", workdir="s")
            want = [("model before was trained on acids and bases as drawn, but here they are %s (stages.prepare): its scores may be far off; "
                 "use the same settings in both" % told,)]
            assert said == (want if told else []), (prepare, said)


if __name__ == "__main__":
    sieve.main([a_training_starts_from_another_model, members_share_a_start_model_but_not_the_order,
                an_unsuitable_start_model_is_refused_before_work, a_model_of_molecules_in_another_form_is_warned_of])
