#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""workflows/snakemake, run by the real Snakemake."""
import os
import subprocess

from python_env import SOURCE, environment
from shards import digest
from sieve import PROGRAM, Project, data, lines_of, main

STAGES = """  read: {unit: 10}
  prepare: {conformers: {source: none}}
  rank: {objectives: [{property: mw, goal: maximise}], top: 50, diversity: {by: similarity, threshold: 0.3}}
  write: {csv: hits.csv}
"""

# The first attempt of each shard gets no time, so it ends with status 75.
STOPS = """#!/bin/sh
case "$*" in *--shard*)
    for k; do case $k in */3) shard=${k%%/3};; esac; done
    [ -e "tried-$shard" ] || { touch "tried-$shard"; exec %s "$@" --max-time 0.001s; };;
esac
exec %s "$@"
"""


def snakemake(p, *options, expect=0):
    program = os.path.join(os.path.dirname(environment("snakemake-env", ["snakemake"])), "snakemake")
    env = dict(os.environ, HOME=p.dir, PYTHONDONTWRITEBYTECODE="1")
    done = subprocess.run([program, "-s", os.path.join(SOURCE, "workflows/snakemake/Snakefile"), "--cores", "2", *options], cwd=p.dir, env=env,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=280)
    assert done.returncode == expect, done.stdout
    return done.stdout


def shards_that_stop_with_75_go_on_to_the_digest_of_one_run():
    with Project() as p:
        p.put("a.smi", lines_of(data("library.smi"), 60))
        p.workflow(["a.smi"], STAGES, name="screen.yaml")
        os.chmod(p.put("stops", STOPS % (PROGRAM, PROGRAM)), 0o755)
        config = ["--config", "shards=3", "threads=1", "inputs=['a.smi']", "molsieve=./stops"]
        out = snakemake(p, *config)
        assert sorted(os.listdir(p.path("results/shards"))) == ["0.db", "1.db", "2.db"], out
        assert p.rows("SELECT state, exit_code FROM run ORDER BY run_id", workdir="results/work/shards/00001-of-00003") == [("stopped", 75), ("done", 0)]
        version = p.run("--version")[1].split()[1]
        assert open(p.path("results/versions.yml")).read() == "molsieve: %s\n" % version
        p.run("run", "screen.yaml", "-q", "workdir=one")
        assert digest(p, "results/work") == digest(p, "one")
        assert open(p.path("results/work/hits.csv")).read() == open(p.path("one/hits.csv")).read()
        assert "Nothing to be done" in snakemake(p, *config)


if __name__ == "__main__":
    main([shards_that_stop_with_75_go_on_to_the_digest_of_one_run])
