#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Features on a disk of the node, copied back when the run stops: the next node goes on, also after kills and with old files."""
import glob
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import time

from sieve import Project, data, lines_of, main

# Each unit builds its structures in milliseconds; the ranking and the SDF read them at the end.
STAGES = """  read: {unit: 4}
  prepare: {}
  rank: {objectives: [{property: mw, goal: maximise}], top: 20, diversity: {by: similarity, threshold: 0.4}}
  write: {sdf: hits.sdf}
"""
STORAGE = "storage: {features: '${env:NODE}/f.db', stage_out: true}\n"


def project(p, n=48):
    p.put("a.smi", lines_of(data("library.smi"), n))
    p.workflow(["a.smi"], STAGES, extra=STORAGE)
    p.run("run", "w.yaml", "-q", "-j", "2", "workdir=one", "storage={}")
    return p.run("db", "digest", "one")[1], open(p.path("one/hits.sdf"), "rb").read()


def node(p, name):
    return dict(os.environ, NODE=p.path(name))


def units(p):
    try:
        db = sqlite3.connect("file:%s?mode=ro" % p.path("run/results.db"), uri=True)
        return db.execute("SELECT count(*) FROM unit JOIN stage USING(stage_id) WHERE name='prepare'").fetchone()[0]
    except sqlite3.Error:  # not there yet
        return 0


def begun(p, name):
    return subprocess.Popen(p.command("run", "w.yaml", "-q", "-j", "1"), cwd=p.dir, env=node(p, name), stderr=subprocess.DEVNULL)


def killed(p, name, n):
    """Killed in the middle of the commit of unit n (from 0) of those that it does."""
    fault = "prepare.unit.after_features:%d" % (n + 1)
    p.run("run", "w.yaml", "-q", "-j", "1", expect=137, env=dict(node(p, name), MOLSIEVE_FAULT=fault))


def stopped(p, name):
    """Stopped in order before it does anything."""
    p.run("run", "w.yaml", "-q", "--max-time", "0.001s", expect=75, env=node(p, name))


COPY = "results.db.staged"


def mark_of(p, name):
    db = sqlite3.connect("file:%s?mode=ro" % p.path("run", name), uri=True)
    return db.execute("SELECT mark FROM staged").fetchone()[0]


def is_copied(p):
    return mark_of(p, COPY) == p.one("SELECT value FROM meta WHERE key='features_mark'")


def finished(p, name, want):
    out = p.run("run", "w.yaml", "-j", "2", env=node(p, name))[2]
    assert (p.run("db", "digest", "run", env=node(p, name))[1], open(p.path("run/hits.sdf"), "rb").read()) == want
    p.run("db", "check", "run", env=node(p, name))
    return out


def a_run_that_stops_goes_on_on_another_node():
    with Project() as p:
        want = project(p)
        killed(p, "a", 3)
        assert not os.path.exists(p.path("run", COPY))
        stopped(p, "a")
        assert units(p) == 3 and is_copied(p)
        os.rename(p.path("a"), p.path("a.old"))  # the node is gone
        out = p.run("plan", "w.yaml", env=node(p, "b"))[1]
        assert "continues after 3 units" in out, out
        child = begun(p, "b")
        while child.poll() is None and units(p) < 4:
            time.sleep(0.002)
        child.send_signal(signal.SIGTERM)
        assert child.wait() in (0, 75) and units(p) >= 4 and is_copied(p)
        # Back on the first node, whose file is of an earlier state.
        os.rename(p.path("a.old"), p.path("a"))
        out = p.run("run", "w.yaml", "--force", "rank", env=node(p, "a"))[2]
        assert "is of another run or of an earlier state" in out and "features are fetched from" in out, out
        assert "stage read: runs again" not in out and "stage prepare: runs again" not in out, out
        assert p.one("SELECT count(*) FROM unit WHERE run_id=1 AND stage_id=2") == 3
        finished(p, "a", want)
        # Nothing to do: nothing is fetched or copied, and readers use the copy.
        shutil.rmtree(p.path("a"))
        shutil.rmtree(p.path("b"))
        before = os.stat(p.path("run", COPY)).st_mtime_ns
        assert "features" not in p.run("run", "w.yaml", env=node(p, "c"))[2] and not os.path.exists(p.path("c/f.db"))
        assert p.run("db", "digest", "run", env=node(p, "c"))[1] == want[0]
        assert "1 molecule" in p.run("export", "sdf", "--top", "1", "run", env=node(p, "c"))[2]
        os.remove(p.path("run/hits.sdf"))
        out = finished(p, "c", want)
        assert "prepare: runs again" not in out and "copied" not in out and os.stat(p.path("run", COPY)).st_mtime_ns == before, out


def kills_and_lost_nodes_change_nothing():
    rng = random.Random(os.environ.get("MOLSIEVE_SEED", "26"))
    with Project() as p:
        want = project(p)
        killed(p, "a", 3)
        stopped(p, "a")
        shutil.rmtree(p.path("a"))
        killed(p, "b", 2)
        assert units(p) == 5 and not is_copied(p)
        db = sqlite3.connect(p.path("b/f.db"))  # as the next run leaves it, if it is killed before its mark is in results.db, too
        db.executescript("UPDATE staged SET before=mark, mark='next'")
        db.close()
        killed(p, "b", 2)  # on its node it goes on from there
        assert units(p) == 7, units(p)
        # Now the node is lost: units are made again, from the structures of the copy.
        os.rename(p.path("b"), p.path("kept"))
        out = p.run("run", "w.yaml", "-j", "2", "--until", "prepare", env=node(p, "c"))[2]
        assert "the features of its last units are lost" in out and "runs again" in out, out
        assert "32 structures built, 16 from the cache" in out, out
        # From the beginning, with kills at any moment, of the copies too, on nodes with old files and on empty ones.
        os.rename(p.path("kept"), p.path("b"))
        shutil.rmtree(p.path("run"))
        for turn in range(10):
            name = rng.choice("abc")
            if rng.random() < 0.3:
                shutil.rmtree(p.path(name), ignore_errors=True)
            child = begun(p, name)
            time.sleep(rng.uniform(0.02, 0.25))
            child.send_signal(rng.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM)))
            time.sleep(rng.uniform(0, 0.02))
            child.send_signal(signal.SIGKILL)
            child.wait()
        finished(p, "d", want)
        assert sorted(x for x in os.listdir(p.path("run")) if "staged" in x) == [COPY], os.listdir(p.path("run"))


def shards_are_merged_from_their_copies():
    with Project() as p:
        want = project(p, 24)
        for k, name in enumerate("aa"):  # both on one node
            p.run("run", "w.yaml", "-q", "--shard", "%d/2" % k, "--out", "s%d.db" % k, env=node(p, name))
            assert "f-0000%d-of-00002.db" % k in os.listdir(p.path(name))
        shutil.rmtree(p.path("a"))
        p.run("merge", "w.yaml", "-q", expect=137, env=dict(node(p, "b"), MOLSIEVE_FAULT="merge.finish.before_commit:1"))
        shutil.rmtree(p.path("b"))
        p.run("merge", "w.yaml", "-q", env=node(p, "c"))
        shutil.rmtree(p.path("c"))
        out = p.run("run", "w.yaml", env=node(p, "d"))[2]
        digest = ("db", "digest", "--results-only")
        assert "runs again" not in out and p.run(*digest, "run", env=node(p, "d"))[1].split()[0] == want[0].split()[0], out
        assert open(p.path("run/hits.sdf"), "rb").read() == want[1]
        p.run("merge", "w.yaml", "-q", "workdir=files", "s1.db", "s0.db", env=node(p, "e"))
        p.run("run", "w.yaml", "-q", "workdir=files", env=node(p, "e"))
        assert open(p.path("files/hits.sdf"), "rb").read() == want[1]
        # A killed merge leaves a log beside the copy, which must not meet the copy of another run.
        fault = dict(node(p, "f"), MOLSIEVE_FAULT="merge.finish.before_commit:1")
        p.run("merge", "w.yaml", "-q", "workdir=other", "s1.db", "s0.db", expect=137, env=fault)
        assert os.path.exists(p.path("other", COPY + "-wal"))
        p.run("run", "w.yaml", "-q", "workdir=other", env=node(p, "f"))
        assert not os.path.exists(p.path("other", COPY + "-wal"))
        p.run("run", "w.yaml", "-q", "workdir=other", "--force", "rank", env=node(p, "g"))
        assert open(p.path("other/hits.sdf"), "rb").read() == want[1]


def what_is_wrong_with_the_files_is_told():
    with Project() as p:
        want = project(p, 12)
        err = p.run("run", "w.yaml", "storage.features=f.db", expect=2, env=node(p, "a"))[2]
        assert "storage.stage_out" in err and "is in the workdir" in err, err
        p.run("run", "w.yaml", "-q", "workdir=other", "storage.stage_out=false", env=node(p, "b"))
        p.run("run", "w.yaml", "-q", env=node(p, "a"))
        err = p.run("run", "w.yaml", "-q", "--force", "rank", expect=2, env=node(p, "b"))[2]
        assert "f.db: features of a run without storage.stage_out" in err and "choose another storage.features" in err, err
        # Another run with stage_out takes the file of the node over; nothing is lost, since each has its copy.
        p.run("run", "w.yaml", "-q", "workdir=third", env=node(p, "a"))
        assert "prepare: runs again" not in p.run("run", "w.yaml", "--force", "rank", env=node(p, "a"))[2]
        # A copy that cannot be made ends the run with a status that no job is queued again for; the next run makes it.
        os.remove(p.path("run", COPY))
        os.makedirs(p.path("run", COPY, "x"))
        err = p.run("run", "w.yaml", "-q", expect=6, env=node(p, "a"))[2]
        assert "features are not copied back (storage.stage_out)" in err, err
        shutil.rmtree(p.path("run", COPY))
        assert "features are copied to" in finished(p, "a", want) and is_copied(p)
        # A copy that somebody cut off.
        shutil.rmtree(p.path("a"))
        whole = open(p.path("run", COPY), "rb").read()
        p.put("run/" + COPY, whole[:len(whole) // 2])
        err = p.run("run", "w.yaml", "-q", "--force", "rank", expect=5, env=node(p, "a"))[2]
        assert COPY in err and "remove it" in err, err
        assert len(p.run("query", "SELECT * FROM hit", "run", env=node(p, "a"))[1].splitlines()) > 10  # needs no features
        os.remove(p.path("run", COPY))
        out = p.run("run", "w.yaml", "--force", "rank", env=node(p, "a"))[2]
        assert "stage read: runs again: its blocks are missing" in out, out
        finished(p, "a", want)
        # A copy of an earlier run: results.db was removed.
        for name in glob.glob(p.path("run", "results.db*")):
            if not name.endswith(COPY):
                os.remove(name)
        out = p.run("run", "w.yaml", env=node(p, "d"))[2]
        assert "is of an earlier run" in out and "0 structures built, 12 from the cache" in out, out
        finished(p, "d", want)
        # A file of another program in its place.
        os.mkdir(p.path("e"))
        sqlite3.connect(p.path("e/f.db")).executescript("CREATE TABLE x(y); PRAGMA application_id=7")
        assert "of another program" in p.run("run", "w.yaml", "-q", "--force", "rank", expect=5, env=node(p, "e"))[2]


if __name__ == "__main__":
    main([a_run_that_stops_goes_on_on_another_node, kills_and_lost_nodes_change_nothing, shards_are_merged_from_their_copies,
          what_is_wrong_with_the_files_is_told])
