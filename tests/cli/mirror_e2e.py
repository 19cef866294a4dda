#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Scores of mirror images: equal by default, whatever the network; different only with `mirror: as_is` and parity `both`."""
import shutil

import sieve
from targets_e2e import labelled

N = 40
TRAIN = """  read: {}
  prepare: {conformers: {source: keep}, dedupe: {by: none}, labels: [gap]}
  graph: {edges: radius, cutoff: 3}
  split: {fractions: {train: 0.8, valid: 0.1, test: 0.1}}
  train:
    targets: [{name: gap, transform: composition}]
    model: {layers: 2, degrees: 3, channels: 8, heads: 2, pooling: sum%s}
    batch: {molecules: 8}
    epochs: 2
  evaluate: {on: [test]}
"""
SCREEN = """  read: {}
  prepare: {conformers: {source: keep}, dedupe: {by: none}}
  graph: {edges: radius, cutoff: 3}
%s  score: {radial: {mode: %s}}
"""
MODELS = "models:\n  m: {path: %s}\n"


def image(sdf):
    """Every molecule with x negated."""
    out = []
    for record in sdf.split(b"$$$$\n"):
        lines = record.split(b"\n")
        if len(lines) > 4:
            for i in range(4, 4 + int(lines[3][:3])):
                lines[i] = b"%10.4f" % -float(lines[i][:10]) + lines[i][10:]
        out.append(b"\n".join(lines))
    return b"$$$$\n".join(out)


def scores(p, file, *change, basis="", mode="nodes", model="run/models/e2e.safetensors"):
    """Scores by the number of the record."""
    p.workflow([file], SCREEN % (basis, mode), name="s.yaml", workdir="s", extra=MODELS % model)
    shutil.rmtree(p.path("s"), ignore_errors=True)
    p.run("run", "s.yaml", "-q", *change)
    found = dict(p.rows("SELECT title, value FROM prediction JOIN record USING(mol_id)", workdir="s"))
    assert len(found) == N, found
    return found


def max_apart(p, *change, **more):
    a, b = (scores(p, f, *change, **more) for f in ("in.sdf", "image.sdf"))
    spread = max(a.values()) - min(a.values())
    assert set(a) == set(b) and spread > 0
    return max(abs(a[k] - b[k]) for k in a) / spread


def begin(p, parity=None):
    """Trains a network of this parity, or of the default parity."""
    sdf = labelled(N)[0]
    p.put("in.sdf", sdf)
    p.put("image.sdf", image(sdf))
    p.workflow(["in.sdf"], TRAIN % (", parity: " + parity if parity else ""))
    p.run("run", "w.yaml", "-q")


def a_published_network_is_averaged_by_default():
    with sieve.Project() as p:
        begin(p, "both")
        assert max_apart(p, "stages.score.mirror=as_is") > 1e-4
        assert max_apart(p) < 1e-5
        assert max_apart(p, mode="exact") < 1e-5
        assert max_apart(p, basis="  basis: {kind: frame_f32}\n") < 1e-5
        assert max_apart(p, basis="  basis: {kind: frame_q15}\n") < 1e-3
        # `evaluate` measures what `score` gives, with either setting.
        for how in ("average", "as_is"):
            p.workflow(["in.sdf"], TRAIN % ", parity: both" + "  score: {}\n")
            p.run("run", "w.yaml", "-q", "stages.score.mirror=" + how, "stages.evaluate.mirror=" + how)
            assert p.one("SELECT count(*) FROM evaluated e JOIN prediction p USING(mol_id, property_id) WHERE e.predicted<>p.value") == 0
            assert p.one("SELECT count(*) FROM evaluated") > 0


def a_natural_network_needs_no_average():
    with sieve.Project() as p:
        begin(p, "natural")
        assert max_apart(p, "stages.score.mirror=as_is") < 1e-5
        assert scores(p, "in.sdf") == scores(p, "in.sdf", "stages.score.mirror=as_is")
        assert max_apart(p, basis="  basis: {kind: sh_f32}\n") < 1e-5
        assert max_apart(p, basis="  basis: {kind: pairwise_f32}\n") < 1e-5
        assert "parity" in p.run("model", "info", "run/models/e2e.safetensors")[1]


def the_default_network_cannot_tell_mirror_images_apart():
    with sieve.Project() as p:
        begin(p)
        assert max_apart(p, "stages.score.mirror=as_is") < 1e-5
        assert "natural" in p.run("model", "info", "run/models/e2e.safetensors")[1]


if __name__ == "__main__":
    sieve.main([a_published_network_is_averaged_by_default, a_natural_network_needs_no_average, the_default_network_cannot_tell_mirror_images_apart])
