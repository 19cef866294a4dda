#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A shard as one file, and files of shards merged: what workflow engines pass from job to job."""
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import time

from sieve import DUMP, Project, data, dump, in_format, lines_of, main, same
from shards import PLAIN, digest, rows, smiles

DIVERSE = PLAIN.replace("top: 50", "top: 50, diversity: {by: similarity, threshold: 0.25}")


def write(p, n, of="s", w="w.yaml", order=None, **more):
    for k in order or range(n):
        p.run("run", w, "-q", "-j", "2", "--shard", "%d/%d" % (k, n), "--out", "%s%d.db" % (of, k), **more)
    return ["%s%d.db" % (of, k) for k in range(n)]


def files_of_shards_merge_into_the_results_of_one_run():
    with Project() as p:
        smiles(p)
        p.workflow(["a.smi", "empty.smi", "b.smi"], DIVERSE)  # ranks by structures, which merge has to copy
        p.run("run", "w.yaml", "-q", "workdir=one")
        files = write(p, 3)
        there = set(os.listdir(p.dir))
        assert there >= set(files) and not [x for x in there if x not in files and x.startswith("s")], there
        for one in files:
            p.run("db", "check", one)
        # As directories, as files in another folder and order, and as files without the directories of the shards.
        p.run("merge", "w.yaml", "-q", "workdir=run")
        os.rename(p.path("run/shards"), p.path("shards-of-run"))
        os.mkdir(p.path("elsewhere"))
        moved = [shutil.copy(p.path(f), p.path("elsewhere")) for f in (files[2], files[0], files[1])]
        p.run("merge", "w.yaml", "-q", "workdir=of3", *moved)
        same(dump(p, "run"), dump(p, "of3"), "blocks and rows")
        p.run("run", "w.yaml", "-q", "workdir=of3")
        same(rows(p, "one"), rows(p, "of3"), "files")
        assert digest(p, "of3") == digest(p, "one")
        assert open(p.path("of3/hits.csv")).read() == open(p.path("one/hits.csv")).read()
        assert "were merged already" in p.run("merge", "w.yaml", "workdir=of3", *files)[1]
        # Without the workflow, its inputs and a work directory: one database, for any order, once.
        os.rename(p.path("a.smi"), p.path("a.gone"))
        p.run("merge", "-q", "-o", "elsewhere/all.db", *moved)
        before = open(p.path("elsewhere/all.db"), "rb").read()
        assert "were merged already" in p.run("merge", *files, "-o", "elsewhere/all.db")[1]
        assert open(p.path("elsewhere/all.db"), "rb").read() == before
        assert sorted(os.listdir(p.path("elsewhere"))) == [".lock", "all.db", "all.db.lock"] + files
        assert digest(p, "elsewhere/all.db") == digest(p, "run")
        # With it these results go on.
        os.rename(p.path("a.gone"), p.path("a.smi"))
        p.run("merge", "w.yaml", "-q", "workdir=on", "-o", "on.db", *files)
        p.run("run", "w.yaml", "-q", "workdir=on", "storage.results=" + p.path("on.db"))
        assert digest(p, "on.db") == digest(p, "one")


def a_stop_or_a_kill_leaves_no_file_and_the_next_start_goes_on():
    rng = random.Random(os.environ.get("MOLSIEVE_SEED", "26"))
    with Project() as p:
        smiles(p)
        write(p, 1, of="whole")
        run = ["run", "w.yaml", "-q", "-j", "1", "--shard", "0/2", "--out", "s0.db"]
        p.run(*run, "--max-time", "0.01s", expect=75)
        assert not os.path.exists(p.path("s0.db")) and os.path.isdir(p.path("run/shards/00000-of-00002"))
        for _ in range(4):
            child = subprocess.Popen(p.command(*run), cwd=p.dir, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(rng.uniform(0, 0.15))
            child.send_signal(signal.SIGKILL)
            if child.wait() == 0:
                os.remove(p.path("s0.db"))
        for point in ("read.unit.after_features:2", "shard.file:1"):
            p.run(*run, "stages.read.unit=50", expect=137, env=dict(os.environ, MOLSIEVE_FAULT=point))
            assert not os.path.exists(p.path("s0.db"))
        p.put("s0.db.part", "a killed run left this")
        p.run(*run)
        assert sorted(x for x in os.listdir(p.dir) if x.startswith("s0")) == ["s0.db"]
        # A file that was lost is made again of what is stored, without computing, and is the same.
        first = p.rows("SELECT count(*) FROM unit", workdir="run/shards/00000-of-00002")
        one = digest(p, "s0.db")
        os.remove(p.path("s0.db"))
        out = p.run("run", "w.yaml", "--shard", "0/2", "--out", "s0.db")[1]
        assert "s0.db" in out and "SHARD.db" in out, out
        assert p.rows("SELECT count(*) FROM unit", workdir="run/shards/00000-of-00002") == first and digest(p, "s0.db") == one
        # Other settings: the file stays until the new one is complete.
        old = open(p.path("s0.db"), "rb").read()
        p.run(*run, "stages.prepare.max_heavy_atoms=20", "--max-time", "0.001s", expect=75)
        assert open(p.path("s0.db"), "rb").read() == old
        write(p, 2, order=[1])
        p.run("merge", "-q", "s1.db", "s0.db", "-o", "all.db")
        p.run("merge", "-q", "whole0.db", "-o", "one.db")
        assert digest(p, "all.db") == digest(p, "one.db")


def refused(p, *args, status=2):
    """All that is said, and that nothing was written."""
    before = sorted(os.listdir(p.dir))
    err = p.run("merge", *args, expect=status)[2]
    assert sorted(os.listdir(p.dir)) == before, (before, os.listdir(p.dir))
    return err


def changed(p, name, to, sql):
    shutil.copy(p.path(name), p.path(to))
    db = sqlite3.connect(p.path(to))
    db.executescript(sql)
    db.close()
    return to


def what_is_wrong_with_files_is_told_before_any_work():
    with Project() as p:
        p.put("a.smi", lines_of(data("library.smi"), 60))
        w = "  read: {unit: 10}\n" + PLAIN.split("\n", 1)[1]
        p.workflow(["a.smi"], w)
        files = write(p, 3)
        to = ["-o", "all.db"]
        err = refused(p, files[0], files[2], *to)
        assert "shard 1 of 3: its file is missing" in err and "--shard 1/3 --out" in err and "nothing was written" in err, err
        assert "shard 1/3, as is s1.db; give each shard once" in refused(p, *files, changed(p, "s1.db", "twice.db", ""), *to)
        write(p, 2, of="t", order=[1])
        err = refused(p, *files, "t1.db", *to)
        assert "t1.db: shard 1/2, but s0.db is one of 3" in err, err
        p.run("run", "w.yaml", "-q", "--shard", "1/3", "--out", "u1.db", "stages.prepare.max_heavy_atoms=20")
        for given in ((files[0], "u1.db", files[2], *to), ("w.yaml", "u1.db", files[0], files[2])):
            err = refused(p, *given)
            assert "u1.db: stage prepare was run with other settings or inputs" in err and "run the shard again with --out" in err, err
        # Another workflow's, and inputs that have changed since.
        p.put("a.smi", lines_of(data("library.smi"), 59))
        assert refused(p, "w.yaml", *files).count("stage read was run with other settings or inputs (compared with w.yaml)") == 3
        p.put("a.smi", lines_of(data("library.smi"), 60))
        # Of a ranking that reads structures, the files lack them.
        p.workflow(["a.smi"], w.replace("top: 50", "top: 50, diversity: {by: similarity, threshold: 0.25}"), name="d.yaml")
        assert refused(p, "d.yaml", *files).count("lacks conformer blocks, which a later stage reads; run the shard again") == 3
        # No file of a shard: results of a run, a shard that stopped, text, nothing.
        p.run("run", "w.yaml", "-q", "--until", "read", "--shard", "1/3", "workdir=half")
        p.put("text.db", "no database")
        err = refused(p, "s0.db", "half/shards/00001-of-00003/results.db", "text.db", "none.db", "s2.db", *to, status=5)
        assert "results.db: not the file of a finished shard" in err and "text.db" in err and "none.db: No such file" in err, err
        assert "shard 1 of 3: its file is missing" in err and "4 problems with the 5 files" in err, err
        # Damaged, cut, of a newer and of an older version.
        raw = open(p.path("s1.db"), "rb").read()
        key = p.one("SELECT inchikey FROM molecule", workdir="run/shards/00001-of-00003").encode()
        p.put("flip.db", raw.replace(key, b"Q" + key[1:]))
        p.put("cut.db", raw[:len(raw) // 2])
        for bad in ("flip.db", "cut.db", changed(p, "s1.db", "swapped.db", "UPDATE molecule SET charge=charge+1")):
            err = refused(p, "s0.db", bad, "s2.db", *to, status=5)
            assert bad in err and "run the shard again with --out" in err, err
        err = refused(p, "s0.db", changed(p, "s1.db", "newer.db", "DELETE FROM row_sum; PRAGMA user_version=99"), "s2.db", *to, status=5)
        assert "newer.db: written by a newer molsieve" in err, err
        in_format(p.path("s1.db"), p.path("older.db"))
        err = refused(p, "s0.db", "older.db", "s2.db", *to, status=5)
        assert "older.db: made by an older molsieve; run the shard again with --out" in err, err
        # Where the results go.
        assert "the file of shard 0/3" in refused(p, *files, "-o", "s0.db")
        assert "the results need a name: -o all.db" in refused(p, *files)
        assert "--missing" in refused(p, "w.yaml", "--missing", *files)
        # Where the file of a shard goes.
        for out, said in (("s0.db", "the file of shard 0/3, and this is shard 1/3"), ("a.smi", "not a sound file of a shard"),
                          ("run/shards/x.db", "a file of the run itself"), (".", "no regular file"), ("", "a file is expected")):
            assert said in p.run("run", "w.yaml", "--shard", "1/3", "--out", out, expect=2)[2], out
        assert "make the folder first" in p.run("run", "w.yaml", "--shard", "1/3", "--out", "no/x.db", expect=6)[2]
        assert "--shard K/N" in p.run("run", "w.yaml", "--out", "x.db", expect=2)[2]
        assert "--until" in p.run("run", "w.yaml", "--shard", "1/3", "--until", "read", "--out", "x.db", expect=2)[2]
        assert len(p.rows(DUMP["record"], workdir="run/shards/00000-of-00003")) == 20


if __name__ == "__main__":
    main([files_of_shards_merge_into_the_results_of_one_run, a_stop_or_a_kill_leaves_no_file_and_the_next_start_goes_on,
          what_is_wrong_with_files_is_told_before_any_work])
