#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Scores depend on the set of kernels from the seventh digit on: the set is stored, reported and can be chosen."""
import itertools
import json
import os
import shutil

import sieve
from targets_e2e import STAGES, labelled
from train_e2e import tensors

TRAIN = """  train:
    targets: [{name: gap}]
    model: {layers: 1, degrees: 2, channels: 8, heads: 2}
    batch: {molecules: 8}
    epochs: 2
    domain: 0
"""


def sets(p):
    """The sets of kernels of this processor, best first."""
    found = {x["name"]: x["text"] for x in json.loads(p.run("doctor", "--json", expect=None)[1])["findings"]}
    return found["kernels"].split(": ")[1].split(";")[0].split(", ")


def begin(p):
    p.put("in.sdf", labelled(60)[0])
    p.workflow(["in.sdf"], STAGES + TRAIN)
    p.run("run", "w.yaml", "-q", "stages.train.kernels=portable")
    shutil.move(p.path("run/models/e2e.safetensors"), p.path("m.safetensors"))
    return p.workflow(["in.sdf"], "  read: {unit: 10}\n  prepare: {conformers: {source: keep}}\n  graph: {edges: bonds}\n  score: {}\n",
                      name="s.yaml", workdir="score", extra="models:\n  m: {path: m.safetensors}\n")


def env(name):
    return dict(os.environ, MOLSIEVE_CPU=name)


def levels(p, workdir):
    return {json.loads(k)["score"] for k, in p.rows("SELECT kernels FROM run WHERE kernels LIKE '%score%'", workdir=workdir)}


def scores(p, workdir):
    return p.rows("SELECT mol_id, value FROM prediction ORDER BY mol_id", workdir=workdir)


def a_set_of_kernels_gives_the_same_bytes_for_any_jobs():
    with sieve.Project() as p:
        s = begin(p)
        here, got = sets(p), {}
        for name in here:
            p.run("run", s, "-q", "-j", "1", "stages.score.kernels=" + name, "workdir=pin-" + name)
            p.run("run", s, "-q", "-j", "2", "workdir=env-" + name, env=env(name))
            got[name] = scores(p, "pin-" + name)
            assert len(got[name]) == 60 and got[name] == scores(p, "env-" + name)
            level, = levels(p, "pin-" + name)
            assert level.startswith("cpu " + ("avx512" if name == "amx" else name) + " ("), level  # in float32 they are the same
            assert levels(p, "env-" + name) == {level}
        if "amx" in here:
            assert got["amx"] == got["avx512"]
        for a, b in itertools.combinations([n for n in here if n != "amx"], 2):
            assert got[a] != got[b], (a, b)
            assert all(abs(x - y) <= 1e-4 * (1 + abs(x)) for (_, x), (_, y) in zip(got[a], got[b]))
        # A chosen set gives another key; a set that the machine lacks, or that another setting overrides, is refused with its place.
        assert "kernels: auto -> portable" in p.run("explain", s, "score", "stages.score.kernels=portable", "workdir=env-" + here[0])[1]
        assert "MOLSIEVE_CPU=portable forces another set" in p.run("check", s, "stages.score.kernels=avx2", env=env("portable"), expect=2)[2]
        assert "is for engine cpu, but engine is set to another" in p.run("check", s, "stages.score.kernels=portable", "stages.score.engine=ref", expect=2)[2]
        for name in {"avx2", "avx512", "amx"} - set(here):
            assert "which this processor lacks" in p.run("check", s, "stages.score.kernels=" + name, expect=2)[2]


def shards_and_resumes_with_other_kernels_are_reported():
    with sieve.Project() as p:
        s = begin(p)
        # A finished stage stays, and it is said what it was computed on; asked again, it is not.
        p.run("run", s, "-q", "workdir=done")
        for command in ("run", "plan"):
            text = " ".join("".join(p.run(command, s, "workdir=done", "stages.score.engine=ref")[1:]).split())
            assert "computed on cpu " in text and "now it would be ref (" in text and "(again: --from score)" in text, text
        assert "computed on" not in "".join(p.run("run", s, "workdir=done", "stages.score.engine=ref", "--from", "score")[1:])
        assert "computed on" not in "".join(p.run("plan", s, "workdir=done", "stages.score.engine=ref")[1:])
        best = sets(p)[0]
        if best == "portable":
            sieve.skip("one set of kernels only")
        told, pins = "computed on", "`kernels`"
        p.run("run", s, "-q", "--shard", "0/2", env=env("portable"))
        p.run("run", s, "-q", "--shard", "1/2")
        _, _, err = p.run("merge", s)
        assert told in err and pins in err and "cpu portable" in err, err
        assert len(levels(p, "score")) == 2
        assert p.one("SELECT count(*) FROM event WHERE level='warn' AND stage='score'", workdir="score") == 1
        # With a chosen set there is no warning, and the rows are those of a single run on another machine.
        for k in "01":
            p.run("run", s, "-q", "--shard", k + "/2", "stages.score.kernels=portable", "workdir=pinned")
        assert told not in p.run("merge", s, "stages.score.kernels=portable", "workdir=pinned")[2]
        p.run("run", s, "-q", "workdir=alone", env=env("portable"))
        assert scores(p, "pinned") == scores(p, "alone")
        # A run that was killed goes on with other kernels; then with those that it had.
        for again, says in ((best, True), ("portable", False)):
            workdir = "workdir=killed-" + again
            p.run("run", s, "-q", workdir, env=dict(env("portable"), MOLSIEVE_FAULT="score.unit.after_commit:2"), expect=137)
            _, _, err = p.run("run", s, workdir, env=env(again))
            assert (told in err) == says, err


def a_model_file_names_its_training_kernels():
    with sieve.Project() as p:
        p.put("in.sdf", labelled(60)[0])
        w = p.workflow(["in.sdf"], STAGES + TRAIN)
        p.run("run", w, "-q", env=env("portable"))
        _, meta = tensors(p.path("run/models/e2e.safetensors"))
        assert json.loads(meta["provenance"])["kernels"].startswith("cpu portable ("), meta["provenance"]
        best = sets(p)[0]
        if best == "portable":
            return
        p.run("run", w, "-q", "workdir=two", env=dict(env("portable"), MOLSIEVE_FAULT="train.checkpoint.after:1"), expect=137)
        _, _, err = p.run("run", w, "workdir=two")
        assert "cpu portable (" in err and "computed on" in err, err
        _, meta = tensors(p.path("two/models/e2e.safetensors"))
        assert len(json.loads(meta["provenance"])["kernels"].split("; ")) == 2


SMILES = "CCO a\nCC(C)CC(=O)NC1CCCCC1 b\nc1ccccc1CCN c\nCOC(=O)C1CCN(C)C1 d\nCC1CC2CCC1C2 e\nOCC1OC(O)C(O)C(O)C1O f\n"


def structures_of_different_machines_are_reported():
    """Built structures depend on the C library's functions, which it chooses for the processor: here it is told that there is no FMA."""
    plain = dict(os.environ, GLIBC_TUNABLES="glibc.cpu.hwcaps=-FMA,-FMA4,-FMA_Usable,-FMA4_Usable")
    with sieve.Project() as p:
        p.put("in.smi", SMILES)
        s = p.workflow(["in.smi"], "  read: {unit: 2}\n  prepare: {conformers: {source: generate, builder: openbabel}}\n", name="s.yaml")
        p.run("run", s, "-q", "workdir=here")
        p.run("run", s, "-q", "workdir=there", env=plain)
        here, there = (json.loads(p.one("SELECT kernels FROM run", workdir=w))["prepare"] for w in ("here", "there"))
        assert "libm" in here and "glibc" in here, here
        if here == there:
            sieve.skip("this C library has one set of functions")
        assert p.run("db", "digest", "here")[1] != p.run("db", "digest", "there")[1]
        told = "another structure"
        for workdir, env_of_0, says in (("two", plain, True), ("one", None, False)):
            p.run("run", s, "-q", "--shard", "0/2", "workdir=" + workdir, env=env_of_0)
            p.run("run", s, "-q", "--shard", "1/2", "workdir=" + workdir)
            _, _, err = p.run("merge", s, "workdir=" + workdir)
            assert (told in err) == says and (there in err) == says, err
        for workdir, again, says in (("other", None, True), ("same", plain, False)):
            p.run("run", s, "-q", "workdir=" + workdir, env=dict(plain, MOLSIEVE_FAULT="prepare.unit.after_commit:2"), expect=137)
            _, _, err = p.run("run", s, "workdir=" + workdir, env=again)
            assert (told in err) == says, err
        # The cache of structures in features.db does not return those of the other machine.
        p.run("run", s, "-q", "workdir=there", "stages.prepare.keep=mw < 900")
        p.run("run", s, "-q", "workdir=here", "stages.prepare.keep=mw < 900")
        assert p.run("db", "digest", "here")[1] == p.run("db", "digest", "there")[1]


def native_structures_of_other_kernels_are_reported():
    with sieve.Project() as p:
        p.put("in.smi", SMILES)
        s = p.workflow(["in.smi"], "  read: {unit: 2}\n  prepare: {conformers: {source: generate}}\n", name="s.yaml")
        if sets(p)[0] == "portable":
            sieve.skip("this processor has one set of kernels")
        p.run("run", s, "-q", "workdir=best")
        p.run("run", s, "-q", "workdir=portable", env=env("portable"))
        best, portable = (json.loads(p.one("SELECT kernels FROM run", workdir=w))["prepare"] for w in ("best", "portable"))
        assert portable.endswith("structures portable") and best != portable, (best, portable)
        assert p.run("db", "digest", "best")[1] != p.run("db", "digest", "portable")[1]
        p.run("run", s, "-q", "--shard", "0/2", "workdir=two", env=env("portable"))
        p.run("run", s, "-q", "--shard", "1/2", "workdir=two")
        assert "another structure" in p.run("merge", s, "workdir=two")[2]
        p.run("run", s, "-q", "workdir=portable", "stages.prepare.keep=mw < 900") # not from the cache of the other set
        p.run("run", s, "-q", "workdir=best", "stages.prepare.keep=mw < 900", env=env("portable"))
        assert p.run("db", "digest", "best")[1] != p.run("db", "digest", "portable")[1]


sieve.main([a_set_of_kernels_gives_the_same_bytes_for_any_jobs, shards_and_resumes_with_other_kernels_are_reported,
            structures_of_different_machines_are_reported, native_structures_of_other_kernels_are_reported, a_model_file_names_its_training_kernels])
