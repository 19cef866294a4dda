#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A stage that a workflow no longer has leaves nothing behind that a later stage, a command or a merge would take for its results."""
import csv
import json
import os
import sqlite3

from sieve import Project, dump, main, same

BEGIN = "  read: {unit: 5}\n  prepare: {conformers: {source: none}}\n  graph: {edges: topology}\n"
PROGRAM = ("  external: {command: [sh, count.sh, '{input}'], files: [count.sh], input: smiles, output: csv, property: logS, unit: '%s', better: high,"
           " value: val}\n")
SCORE = "  score: {models: [small]}\n"
RANK = "  rank: {objectives: [{property: logS, goal: maximise}]}\n  write: {}\n"
MODELS = "models: {small: {path: small.safetensors}}\n"


def project(p):
    """A program that counts carbon, and a model of the solubility, which prefers the opposite."""
    with open(os.path.join(os.environ["MOLSIEVE_SOURCE"], "workflows/data/esol.csv")) as f:
        rows = list(csv.DictReader(f))[:150]
    p.put("t.csv", "smiles,logS\n" + "".join("%s,%s\n" % (r["smiles"], r["logS"]) for r in rows))
    p.run("fit", "t.csv", "-t", "logS", "--family", "gp", "--unit", "log10(mol/L)", "--better", "high", "-o", "small.safetensors", "-q")
    p.put("count.sh", 'echo id,val; while read s i; do echo "$i,$(printf %s "$s" | tr -cd cC | wc -c)"; done < "$1"\n')
    p.put("a.smi", "CCO a\nCCCCCCCC b\nc1ccccc1 c\nOCC(O)CO d\nCCN e\nCCCCO f\nCC(=O)O g\n")


def write(p, name, stages, workdir="run", **more):
    return p.workflow(["a.smi"], BEGIN + stages, name=name, workdir=workdir, extra=more.pop("extra", MODELS), **more)


def same_as_fresh(p, name, stages, what, but=(), **more):
    """The workflow in its directory, which has other results, and in a new one: all rows but those of the tables `but`."""
    write(p, name, stages, **more)
    p.run("run", name, "-q")
    write(p, "fresh.yaml", stages, workdir="fresh " + what, **more)
    p.run("run", "fresh.yaml", "-q")
    got, want = dump(p), dump(p, "fresh " + what)
    for one in (got, want):
        for table in but:
            del one[table]
    same(got, want, what)
    assert p.run("db", "digest", "run")[1].split()[0] == p.run("db", "digest", "fresh " + what)[1].split()[0], what
    assert "hits.csv" not in stages or open(p.path("run/hits.csv")).read() == open(p.path("fresh " + what, "hits.csv")).read()
    assert not os.path.exists(p.path("run/results.previous.db"))
    p.run("db", "check", "run")


def scores_of_a_removed_program_do_not_rank():
    with Project() as p:
        project(p)
        for unit in ("n", "log10(mol/L)"):
            write(p, "a.yaml", PROGRAM % unit + RANK)
            p.run("run", "a.yaml", "-q")
            assert p.one("SELECT title FROM hit JOIN record USING(mol_id) ORDER BY rank") == "b"
            write(p, "b.yaml", SCORE + RANK)
            plan = p.run("plan", "b.yaml")[1]
            assert "external" in plan and "no longer in the workflow: its results are removed" in plan, plan
            assert json.loads(p.run("plan", "b.yaml", "--json")[1])["removed"] == ["external"]
            same_as_fresh(p, "b.yaml", SCORE + RANK, "model " + unit.replace("/", " per "))
            assert p.one("SELECT title FROM hit JOIN record USING(mol_id) ORDER BY rank") != "b"
            assert "removed" not in p.run("plan", "b.yaml")[1] and json.loads(p.run("plan", "b.yaml", "--json")[1])["removed"] == []
            assert p.one("SELECT count(*) FROM event WHERE stage='external' AND message LIKE 'no longer in the workflow%'") >= 1
        # Nothing scores any more: the ranking that still asks for it is refused, as from the start.
        write(p, "c.yaml", RANK)
        assert "logS" in p.run("run", "c.yaml", "-q", expect=2)[2] and p.one("SELECT count(*) FROM hit") == 0
        same_as_fresh(p, "d.yaml", "", "nothing")


def what_took_long_is_deleted_only_if_asked():
    with Project() as p:
        project(p)
        write(p, "w.yaml", PROGRAM.replace("logS", "carbons") % "n" + SCORE + RANK)
        p.run("run", "w.yaml", "-q")
        db = sqlite3.connect(p.path("run/results.db"))
        db.executescript("DELETE FROM row_sum; UPDATE stage SET wall_s=700 WHERE name='external'")
        db.close()
        before = dump(p)
        write(p, "w.yaml", SCORE + RANK)
        said = " ".join(p.run("run", "w.yaml", expect=2)[2].split())
        assert "what stage external stored, 11m40s of work," in said and "--delete-removed" in said, said
        same(dump(p), before, "refused")
        p.run("run", "w.yaml", "-q", "--delete-removed")
        same_as_fresh(p, "w.yaml", SCORE + RANK, "asked", but=["property"])  # which was the second


def a_training_stays_and_is_not_spoken_of():
    train = "  split: {method: random}\n  train: {targets: [{name: logS, unit: 'log10(mol/L)'}], family: [gp], name: own}\n  evaluate: {}\n"
    with Project() as p:
        project(p)
        p.put("a.smi", "")
        for name, stages in (("train.yaml", train), ("screen.yaml", SCORE + RANK)):
            p.workflow(["t.csv"], BEGIN.replace("none}}", "none}, labels: [logS]}") + stages, name=name, extra=MODELS)
        said = p.run("run", "train.yaml")[1:]
        assert "RMSE" in said[0] + said[1] or "MAE" in said[0] + said[1], said
        assert p.rows("SELECT DISTINCT part FROM evaluation ORDER BY 1") == [("test",), ("valid",)]
        out, err = p.run("run", "screen.yaml")[1:]
        assert "stage evaluate is no longer in the workflow" in err and "stage train is" not in err and "stage split is" not in err, err
        assert "MAE" not in out and "RMSE" not in out, (out, err)
        assert p.rows("SELECT name FROM stage WHERE name IN('split','train','evaluate') ORDER BY 1") == [("split",), ("train",)]
        assert "train done" not in p.run("run", "train.yaml")[2]
        assert p.rows("SELECT name FROM stage WHERE name IN('score','rank','write')") == []


def shards_with_a_removed_stage_run_again():
    with Project() as p:
        project(p)
        write(p, "w.yaml", PROGRAM.replace("logS", "carbons") % "n" + SCORE + RANK)
        for k in (0, 1):
            p.run("run", "w.yaml", "--shard", "%d/2" % k, "-q")
        write(p, "w.yaml", SCORE + RANK)
        p.run("run", "w.yaml", "--shard", "0/2", "-q")
        said = p.run("merge", "w.yaml", expect=None)[2]
        assert "stage external is no longer in the workflow: run the shard again" in " ".join(said.split()), said
        p.run("run", "w.yaml", "--shard", "1/2", "-q")
        p.run("merge", "w.yaml", "-q")
        same_as_fresh(p, "w.yaml", SCORE + RANK, "shards", but=["block"])


main([scores_of_a_removed_program_do_not_rank, what_took_long_is_deleted_only_if_asked, a_training_stays_and_is_not_spoken_of, shards_with_a_removed_stage_run_again])
