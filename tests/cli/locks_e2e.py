#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""When a lock file is deleted, the run that held it stores nothing more."""
import os
import signal
import sqlite3
import subprocess
import time

from sieve import PROGRAM, Project, accounted, data, lines_of, main

STAGES = "  read: {unit: 20}\n  prepare: {conformers: {source: none}}\n"


def begin(p, workdir, *args):
    return subprocess.Popen([PROGRAM, "run", "w.yaml", "-q", "-j", "1", "workdir=" + workdir, *args], cwd=p.dir,
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def units(path):
    try:
        db = sqlite3.connect("file:%s?mode=ro" % path, uri=True)
        n = db.execute("SELECT count(*) FROM unit").fetchone()[0]
        db.close()
        return n
    except sqlite3.Error:
        return 0


def nobody_writes(path):
    """The stopped process is in no transaction."""
    try:
        db = sqlite3.connect(path, timeout=0, isolation_level=None)
        db.execute("BEGIN IMMEDIATE")
        db.execute("ROLLBACK")
        db.close()
        return True
    except sqlite3.OperationalError:
        return False


def stopped_between_units(child, folder, least):
    """Stops the process when it has stored some units and holds no lock of a database."""
    while units(folder + "/results.db") < least:
        assert child.poll() is None, child.stderr.read()
        time.sleep(0.01)
    while True:
        os.kill(child.pid, signal.SIGSTOP)
        os.waitpid(child.pid, os.WUNTRACED)
        if nobody_writes(folder + "/results.db") and nobody_writes(folder + "/features.db"):
            return
        os.kill(child.pid, signal.SIGCONT)
        time.sleep(0.003)


def a_second_run_after_the_lock_was_deleted_ends_the_first():
    with Project() as p:
        p.put("in.smi", lines_of(data("library.smi"), 2000))
        p.workflow(["in.smi"], STAGES)
        p.run("run", "w.yaml", "-q", "workdir=calm")
        want = p.run("db", "digest", "calm")[1]
        first = begin(p, "run")
        stopped_between_units(first, p.path("run"), 3)
        stored = units(p.path("run/results.db"))
        assert p.run("run", "w.yaml", "-q", "workdir=run", expect=4)[2].count("in use, held by") == 1
        os.unlink(p.path("run/.lock"))
        second = begin(p, "run")
        while units(p.path("run/results.db")) < stored + 3:
            assert second.poll() is None, second.stderr.read()
            time.sleep(0.01)
        os.kill(first.pid, signal.SIGCONT)
        said = first.communicate(timeout=120)[1].decode()
        assert first.returncode == 4 and "its lock file was deleted or replaced" in said, (first.returncode, said)
        said = second.communicate(timeout=120)[1].decode()
        assert second.returncode == 0, said
        assert p.run("db", "digest", "run")[1] == want
        p.run("db", "check", "run")
        accounted(p)
        assert p.rows("SELECT state FROM run ORDER BY run_id") == [("lost",), ("done",)]


def a_merge_without_its_lock_replaces_nothing():
    """The lock is deleted during the merge: the file that replaced it stays."""
    with Project() as p:
        p.put("in.smi", lines_of(data("library.smi"), 300))
        p.workflow(["in.smi"], STAGES)
        for k in range(2):
            p.run("run", "w.yaml", "-q", "--shard", "%d/2" % k)
        child = subprocess.Popen([PROGRAM, "merge", "w.yaml"], cwd=p.dir, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        while not os.path.exists(p.path("run/results.merging.db")) and child.poll() is None:
            pass
        os.unlink(p.path("run/.lock"))
        said = child.communicate(timeout=120)[1].decode()
        if child.returncode != 0:  # otherwise the merge was done before
            assert child.returncode == 4 and "lock" in said, (child.returncode, said)
            assert not os.path.exists(p.path("run/results.db"))
        p.run("merge", "w.yaml")
        p.run("db", "check", "run")
        accounted(p)


if __name__ == "__main__":
    main([a_second_run_after_the_lock_was_deleted_ends_the_first, a_merge_without_its_lock_replaces_nothing])
