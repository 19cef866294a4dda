# SPDX-License-Identifier: Apache-2.0
"""Shared by the crash tests of the real program: a workflow with every stage,
an undisturbed run of it, and checks of what a dead process left behind.

The checks work on copies and with Python's own SQLite: the program must then
recover from the raw state by itself."""
import hashlib
import os
import shutil
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../cli"))
import sieve  # noqa: E402

STAGES = ["read", "prepare", "graph", "basis", "split", "train", "evaluate", "score", "rank", "write"]
WHOLE = {"split": "split", "evaluate": "evaluation", "rank": "hit"}  # stage -> its table
EVERY_STAGE = """  read: {unit: 20}
  prepare:
    conformers: {source: keep}
    labels: [gap]
  graph: {edges: bonds}
  basis: {}
  split: {fractions: {train: 0.7, valid: 0.2, test: 0.1}}
  train:
    targets: [{name: gap_ev, column: gap, unit: eV, factor: 27.211386, better: high}]
    model: {layers: 1, degrees: 2, channels: 8, heads: 2}
    batch: {molecules: 16}
    epochs: 3
    ema: 0.9
    checkpoint: {every: 1s}
  evaluate: {on: [train, valid, test]}
  score: {}
  rank:
    objectives: [{property: gap_ev, goal: maximise}]
    top: 100
    diversity: {by: similarity, threshold: 0.5}
  write: {csv: hits.csv, sdf: hits.sdf, smi: hits.smi}
"""
LIMITS = "limits: {failures: {max_fraction: 0.5}, disk_free_min: 0B}\n"


def molecules(n):
    """n real molecules with 3D, some of them twice, and three records that are no molecules."""
    records = sieve.sdf_records(sieve.data("qm9/qm9_dev_2500.sdf.gz"), n).split(b"$$$$\n")[:n]
    bad = [b"nothing\n", b"a\nb\nc\n  5  4  0  0  0  0  0  0  0  0999 V2000\n", records[7].replace(b" C ", b" Qq")]
    return b"$$$$\n".join(records[:n // 3] + bad + records[n // 3:] + records[:n // 20]) + b"$$$$\n"


class Victim(sieve.Project):
    """A project whose workflow has every stage; `whole` is the undisturbed run."""
    order = STAGES

    def __init__(self, n=500, stages=EVERY_STAGE):
        self.n, self.stages = n, stages

    def __enter__(self):
        super().__enter__()
        self.put("in.sdf", molecules(self.n))
        self.workflow(["in.sdf"], self.stages, extra=LIMITS)
        return self

    def go(self, workdir, *more, expect=0, **kw):
        return self.run("run", "w.yaml", "-q", "-j", "2", "workdir=" + workdir, *more, expect=expect, **kw)

    def start(self, workdir, *more, env=None, jobs="2"):
        return subprocess.Popen(self.command("run", "w.yaml", "-v", "-j", jobs, "workdir=" + workdir, *more), cwd=self.dir,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=env)

    def digest(self, workdir):
        return self.run("db", "digest", workdir)[1]

    def answer(self, workdir):
        """All results that a user keeps: the digest, the weights, the files of hits."""
        files = {}
        for name in ("hits.csv", "hits.sdf", "hits.smi"):
            if os.path.exists(self.path(workdir, name)):
                files[name] = hashlib.sha256(open(self.path(workdir, name), "rb").read()).hexdigest()
        model = self.path(workdir, "models/e2e.safetensors")
        if os.path.exists(model):
            whole = open(model, "rb").read()  # the header has the date
            files["weights"] = hashlib.sha256(whole[8 + int.from_bytes(whole[:8], "little"):]).hexdigest()
        return self.digest(workdir), files

    def files(self, workdir):
        """The files there, without those that SQLite removes by itself; checkpoint folders have a key as their name."""
        return sorted(os.path.relpath(os.path.join(where, name), self.path(workdir))
                      for where, _, names in os.walk(self.path(workdir)) for name in names
                      if not name.endswith(("-wal", "-shm")))

    def copy(self, a, b):
        shutil.rmtree(self.path(b), ignore_errors=True)
        if os.path.isdir(self.path(a)):
            shutil.copytree(self.path(a), self.path(b))

    def copy_of_database(self, workdir, name):
        there = self.path("look")
        os.makedirs(there, exist_ok=True)
        for tail in ("", "-wal", "-journal"):
            a, b = self.path(workdir, name + tail), os.path.join(there, name + tail)
            if os.path.exists(b):
                os.unlink(b)
            if os.path.exists(a):
                shutil.copyfile(a, b)
        for tail in ("-shm",):
            if os.path.exists(os.path.join(there, name + tail)):
                os.unlink(os.path.join(there, name + tail))
        return os.path.join(there, name) if os.path.exists(self.path(workdir, name)) else None

    def sound(self, workdir):
        """Checks everything that must hold at any moment; returns the states of the stages, {} if there are none yet."""
        path = self.copy_of_database(workdir, "results.db")
        if path is None:
            return {}
        db = sqlite3.connect(path)
        try:
            if not db.execute("SELECT count(*) FROM sqlite_master WHERE name='stage'").fetchone()[0]:
                return {}
            assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            assert db.execute("PRAGMA foreign_key_check").fetchall() == []
            states = dict(db.execute("SELECT name, state FROM stage"))
            units_are_their_rows(db)
            no_stage_is_ahead(db)
            wholes_are_all_or_nothing(db, states, self)
            features = self.copy_of_database(workdir, "features.db")
            if features is not None:
                units_have_their_blocks(db, features)
            return states
        finally:
            db.close()


SCREEN = """  read: {unit: 20}
  prepare: {conformers: {source: keep}, labels: [gap]}
  graph: {edges: bonds}
  basis: {}
  score: {}
  rank: {objectives: [{property: gap_ev, goal: maximise}], top: 100}
  write: {csv: hits.csv, sdf: hits.sdf, smi: hits.smi}
"""
TOGETHER = ["read", "prepare", "graph", "basis", "score"]  # the stages that a screen runs at once


class Screen(Victim):
    """A project that only screens, with an existing model: five stages run together."""

    def __enter__(self):
        super().__enter__()
        self.go("trained", "stages.train.epochs=1", "--until", "train")
        shutil.copy(self.path("trained/models/e2e.safetensors"), self.path("m.safetensors"))
        self.stages = SCREEN
        self.workflow(["in.sdf"], SCREEN, extra=LIMITS + "models: {m: {path: m.safetensors}}\n")
        return self

    def at_work(self, workdir):
        return [name for name, state in self.sound(workdir).items() if state == "running"]


PROGRAM = """  read: {unit: 6}
  prepare: {conformers: {source: keep}}
  external: {command: [sh, count.sh, "{input}"], files: [count.sh], input: sdf, output: csv, property: lines, better: high, batch: 3, poses: false}
  rank: {objectives: [{property: lines, goal: maximise}], top: 100}
  write: {csv: hits.csv}
"""
# The length of each record but the seventh and its like, which have no value; the answers come late, and a process is left behind.
COUNT = """(sleep 300 &)
sleep 0.02
awk 'BEGIN { print "id,lines" } { if (n == 0) id = $1; n++ } /^[$]+$/ { if (id % 7) print id "," n; n = 0 }' "$1"
"""


class Program(Victim):
    """A project whose scores come from a program of the user's."""
    order = ["read", "prepare", "external", "rank", "write"]

    def __init__(self):
        super().__init__(100, PROGRAM)

    def __enter__(self):
        super().__enter__()
        self.put("count.sh", COUNT)
        return self


# The rows that belong to a unit of each stage, between its first and last record or molecule.
UNIT_ROWS = {
    "read": "SELECT count(*) FROM record WHERE record_id BETWEEN u.first AND u.last",
    "prepare": "SELECT count(*) FROM record WHERE status<>'read' AND record_id BETWEEN u.first AND u.last",
    "score": "SELECT (SELECT count(*) FROM score WHERE mol_id BETWEEN u.first AND u.last)"
             "+(SELECT count(*) FROM failure WHERE stage='score' AND mol_id BETWEEN u.first AND u.last)",
    "external": "SELECT (SELECT count(*) FROM score WHERE mol_id BETWEEN u.first AND u.last)"
                "+(SELECT count(*) FROM failure WHERE stage='external' AND mol_id BETWEEN u.first AND u.last)",
}
ALL_ROWS = {
    "read": "SELECT count(*) FROM record", "prepare": "SELECT count(*) FROM record WHERE status<>'read'",
    "score": "SELECT (SELECT count(*) FROM score)+(SELECT count(*) FROM failure WHERE stage='score')",
    "external": "SELECT (SELECT count(*) FROM score)+(SELECT count(*) FROM failure WHERE stage='external')",
}


def units_are_their_rows(db):
    """Finished units have all their rows, in order, and each row belongs to a unit."""
    for (name, n, last) in db.execute("SELECT name, count(*), max(unit) FROM unit JOIN stage USING(stage_id) GROUP BY 1"):
        assert n == last + 1, (name, n, last)
    scored_by = "external" if db.execute("SELECT count(*) FROM stage WHERE name='external'").fetchone()[0] else "score"
    for name, rows in UNIT_ROWS.items():
        if name in ("score", "external") and name != scored_by:
            continue
        wrong = db.execute("SELECT u.unit, u.n_ok+u.n_failed, (%s) c FROM unit u JOIN stage s USING(stage_id) "
                           "WHERE s.name=? AND c<>u.n_ok+u.n_failed" % rows, (name,)).fetchall()
        assert not wrong, (name, wrong)
        n = db.execute("SELECT coalesce(sum(n_ok+n_failed),0) FROM unit JOIN stage USING(stage_id) WHERE name=?",
                       (name,)).fetchone()[0]
        assert n == db.execute(ALL_ROWS[name]).fetchone()[0], name
    if db.execute("SELECT count(*) FROM stage WHERE name='score' AND state='done'").fetchone()[0]:
        assert db.execute("SELECT count(*) FROM sqlite_master WHERE name='score_rank'").fetchone()[0] == 1


def no_stage_is_ahead(db):
    """A unit exists only if the units that it was made from exist."""
    n = dict(db.execute("SELECT name, count(*) FROM unit JOIN stage USING(stage_id) GROUP BY 1"))
    for before, after in (("read", "prepare"), ("prepare", "graph"), ("graph", "basis"), ("graph", "score"), ("prepare", "external")):
        assert n.get(after, 0) <= n.get(before, 0), (before, after, n)
    if n.get("basis") and n.get("score"):
        assert n["score"] <= n["basis"], n


def units_have_their_blocks(db, features):
    f = sqlite3.connect(features)
    try:
        assert f.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        have = set(f.execute("SELECT key, unit FROM block")) if f.execute(
            "SELECT count(*) FROM sqlite_master WHERE name='block'").fetchone()[0] else set()
        for name, key, unit in db.execute("SELECT name, key, unit FROM unit JOIN stage USING(stage_id) "
                                          "WHERE name IN('read','prepare','graph','basis')"):
            assert (key, unit) in have, (name, unit, "is done and has no block")
    finally:
        f.close()


def wholes_are_all_or_nothing(db, states, victim):
    for name, table in WHOLE.items():
        n = db.execute("SELECT count(*) FROM " + table).fetchone()[0]
        assert (n > 0) == (states.get(name) == "done"), (name, states.get(name), n)
    if "external:" in victim.stages:  # its model is no file
        return
    rows = db.execute("SELECT path, sha256 FROM model").fetchall()
    if "train:" in victim.stages:
        assert (len(rows) > 0) == (states.get("train") == "done"), (states, rows)
    else:  # a screen stores its models after its stage has begun and before its first score
        scored = db.execute("SELECT count(*) FROM unit JOIN stage USING(stage_id) WHERE name='score'").fetchone()[0]
        assert len(rows) > 0 or (states.get("score") in (None, "running") and not scored), (states, scored)
        assert not rows or states.get("score") in ("running", "done"), (states, rows)
    for path, sha256 in rows:
        assert hashlib.sha256(open(os.path.join(victim.dir, path), "rb").read()).hexdigest() == sha256, path


def workers_of(parent):
    """Chemistry workers that the process has started."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % pid) as f:
                name, rest = f.read().rsplit(")", 1)
        except OSError:
            continue
        if name.endswith("(molsieve-chem") and int(rest.split()[1]) == parent:
            found.append(int(pid))
    return found


def orphans():
    """Chemistry workers of this program whose parent has ended: the process that watches over a test adopts them, or process 1."""
    chem = os.path.join(os.path.dirname(os.path.abspath(sieve.PROGRAM)), "molsieve-chem")
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % pid) as f:
                parent = int(f.read().rpartition(")")[2].split()[1])
            if parent in (1, os.getppid()) and os.readlink("/proc/%s/exe" % pid).startswith(chem):
                found.append(int(pid))
        except OSError:
            pass
    return found


def no_orphans(seconds=60):
    """Workers whose parent has ended must end soon. Tests that run at the same time leave some of their own
    at any moment, so only those that exist all the time count."""
    end = time.time() + seconds
    left = set(orphans())
    while left and time.time() < end:
        time.sleep(0.1)
        left &= set(orphans())
    assert not left, left
