#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The real program on a bad disk (shim.c): calls that fail, and a power cut that
loses what was not yet synced. The same command goes on to the same answer.

    MOLSIEVE_CALLS=50 disk.py failing_calls_are_survived    that many calls for each way to fail; all: every one
    MOLSIEVE_CUTS=1000 disk.py power_cuts_lose_nothing      that many cuts"""
import os
import random
import shutil
import sqlite3
import struct

from small import STAGES
from victim import LIMITS, Victim, sieve

SHIM = os.environ.get("MOLSIEVE_SHIM") or os.path.join(os.path.dirname(sieve.PROGRAM), "../tests/libshim.so")
OPEN_NEW, WRITE, TRUNCATE, SYNC, RENAME, UNLINK, MKDIR, LINK, FAILED, ALLOCATE = range(1, 11)
CALLS = {OPEN_NEW, WRITE, TRUNCATE, SYNC, RENAME, MKDIR, LINK, ALLOCATE}
WAYS = ["ENOSPC", "EIO", "EDQUOT", "short", "ENOSPC:on", "EIO:on"]
WITH_JOURNALS = "storage: {journal: truncate}\n"


def shimmed(v, log, fail=None):
    if not os.path.exists(SHIM):
        sieve.skip(SHIM + " is not there")
    env = dict(os.environ, LD_PRELOAD=os.path.abspath(SHIM), SHIM_ROOT=v.dir, SHIM_LOG=log)
    if fail:
        env["SHIM_FAIL"] = fail
    return env


class Entry:
    def __init__(self, what, path, inode, at, n, data):
        self.what, self.path, self.inode, self.at, self.n, self.data = what, path, inode, at, n, data


def entries(log):
    """The calls in order; paths are relative to the parent of the work directory."""
    with open(log, "rb") as f:
        raw = f.read()
    at = 0
    while at < len(raw):
        what, path_len, inode, where, n = struct.unpack_from("<IIQQQ", raw, at)
        at += 32
        path = raw[at:at + path_len].decode()
        at += path_len
        data = raw[at:at + n] if what in (WRITE, RENAME, LINK, FAILED) else b""
        at += len(data)
        yield Entry(what, path, inode, where, n, data)


# ---- calls that fail ----

def failing_calls_are_survived():
    asked, rng = os.environ.get("MOLSIEVE_CALLS", "2"), random.Random(int(os.environ.get("MOLSIEVE_SEED", 5)))
    outside = "/tmp/molsieve-shim-%d.log" % os.getpid()
    with Victim(12, STAGES) as v:
        v.go("whole")
        want = v.answer("whole")
        v.go("bad", env=shimmed(v, outside))
        calls = sum(e.what in CALLS for e in entries(outside))
        os.unlink(outside)
        for way in WAYS:
            told = []
            for n in range(1, 2 * calls) if asked == "all" else sorted(rng.sample(range(1, calls - 20), int(asked))):
                status, failed = one_failure(v, way, n, want, outside)
                if not failed:
                    break
                told.append(status)
            print("%s: %d of %d calls failed, status 6 %d times, 0 %d times" %
                  (way, len(told), calls, told.count(6), told.count(0)), flush=True)
            assert told and (6 in told or way == "short" or asked != "all"), way


def one_failure(v, way, n, want, log):
    """Exit status of the run whose n-th call fails, and which call it was; None if there are fewer calls."""
    shutil.rmtree(v.path("bad"), ignore_errors=True)
    try:
        status, _, err = v.go("bad", expect=None, env=shimmed(v, log, "%d:%s" % (n, way)))
        failed = [e.data.decode() + " " + os.path.relpath(e.path, v.dir) for e in entries(log) if e.what == FAILED]
    finally:
        if os.path.exists(log):
            os.unlink(log)
    what = (way, n, failed[:1], status, err)
    assert status in (0, 6), what
    assert status == 0 or err.count("\n") < 20 and ("bad" in err or "database" in err), what
    v.sound("bad")
    try:
        v.run("run", "w.yaml", "-q", "-j", "2", "workdir=bad")
        assert v.answer("bad") == want
    except AssertionError as e:
        raise AssertionError(what) from e
    return status, failed


# ---- the power is cut ----

class File:
    """The synced content, and the changes since then: [(at, bytes)] or [(length,)]."""

    def __init__(self):
        self.safe, self.since = bytearray(), []

    def sync(self):
        for change in self.since:
            self.safe = changed(self.safe, change)
        self.since = []


def changed(content, change):
    if len(change) == 1:
        return content[:change[0]] + bytes(max(0, change[0] - len(content)))
    at, data = change
    content = content + bytes(max(0, at + len(data) - len(content)))
    content[at:at + len(data)] = data
    return content


class Disk:
    """The files that a power cut leaves after a log of calls, by the rules of journalling file
    systems: names change in their order and those of a synced file or folder, with all
    before them, stay; of unsynced changes to a file any may be lost, in parts."""

    def __init__(self, root):
        self.root, self.names, self.of_inode, self.changes, self.safe = root, {}, {}, [], 0

    def name(self, *change):
        self.changes.append(change)
        apply_name(self.names, change)

    def take(self, e):
        path = os.path.relpath(e.path, self.root)
        if e.what == OPEN_NEW:
            self.of_inode[e.inode] = File()
            self.name(OPEN_NEW, path, self.of_inode[e.inode])
        elif e.what == MKDIR:
            self.name(MKDIR, path, None)
        elif e.what in (RENAME, LINK):
            self.name(e.what, path, os.path.relpath(e.data.decode(), self.root))
        elif e.what == UNLINK:
            self.name(UNLINK, path, None)
        elif e.what == SYNC:
            self.sync(e, path)
        elif e.inode in self.of_inode:
            f = self.of_inode[e.inode]
            if e.what == WRITE:
                f.since.append((e.at, e.data))
            elif e.what == TRUNCATE:
                f.since.append((e.n,))
            elif e.what == ALLOCATE:
                f.since.append((e.n - 1, b"\0"))

    def sync(self, e, path):
        f = self.of_inode.get(e.inode)
        if f is not None:
            f.sync()
        for i, change in enumerate(self.changes):
            mine = change[2] is f if f is not None else any(
                os.path.dirname(p) == ("" if path == "." else path) for p in change[1:] if isinstance(p, str))
            if mine:
                self.safe = max(self.safe, i + 1)

    def cut(self, rng, to):
        """Writes the remaining files below the folder `to`."""
        kept = rng.choice([self.safe, len(self.changes), rng.randint(self.safe, len(self.changes))])
        names = {}
        for change in self.changes[:kept]:
            apply_name(names, change)
        luck = rng.choice([0, 0.5, 1, None, None, None])
        for path, f in names.items():
            whole = os.path.join(to, path)
            if f is None:
                os.makedirs(whole, exist_ok=True)
            else:
                os.makedirs(os.path.dirname(whole), exist_ok=True)
                with open(whole, "wb") as out:
                    out.write(left_of(f, rng, rng.choice([0, 0.5, 1]) if luck is None else luck))


def apply_name(names, change):
    what, path, other = change
    if what in (OPEN_NEW, MKDIR):
        names[path] = other
    elif what == LINK:
        names[other] = names[path]
    elif what == RENAME and names.get(other) is not names[path] or what == RENAME and names[path] is None:
        for old in [p for p in names if p == path or p.startswith(path + "/")]:
            names[other + old[len(path):]] = names.pop(old)
    elif what == UNLINK:
        names.pop(path, None)


def left_of(f, rng, luck):
    content = bytearray(f.safe)
    size = rng.choice([512, 4096])
    for change in f.since:
        if len(change) == 1:
            content = changed(content, change) if rng.random() < luck else content
            continue
        at, data = change
        for k in range(0, len(data), size):
            if rng.random() < luck:
                content = changed(content, (at + k, data[k:k + size]))
    return content


def power_cuts_lose_nothing():
    cuts, rng = int(os.environ.get("MOLSIEVE_CUTS", 8)), random.Random(int(os.environ.get("MOLSIEVE_SEED", 1)))
    again = {}
    with Victim(12, STAGES) as v:
        v.go("whole")
        want = v.answer("whole")
        for extra, kind in (("", "wal"), (WITH_JOURNALS, "truncate")):
            v.workflow(["in.sdf"], STAGES, name="w.yaml", extra=LIMITS + extra)
            n = cuts - cuts // 4 if kind == "wal" else cuts // 4
            log = v.path(kind + ".log")
            v.go("run", env=shimmed(v, log))
            calls = list(entries(log))
            for k in sorted(rng.randrange(len(calls) + 1) for _ in range(n)):
                states = one_cut(v, calls[:k], rng, want)
                again[len(states)] = again.get(len(states), 0) + 1
            shutil.rmtree(v.path("run"))
        print("%d cuts among %d calls; stages begun when it came: %s" % (cuts, len(calls), sorted(again.items())))


def one_cut(v, calls, rng, want):
    disk = Disk(v.path("run"))
    for e in calls:
        disk.take(e)
    shutil.rmtree(v.path("cut"), ignore_errors=True)
    os.makedirs(v.path("cut"))
    state = rng.getstate()
    disk.cut(rng, v.path("cut"))
    try:
        states = v.sound("cut")
        if states:
            v.run("db", "check", "cut")
        v.go("cut")
        assert v.answer("cut") == want
    except Exception as e:
        keep = os.environ.get("MOLSIEVE_KEEP")
        if keep:
            v.copy("cut", keep)
        raise AssertionError("after %d calls, %s" % (len(calls), hash(state))) from e
    return states


def a_reader_rolls_back_a_half_written_transaction():
    """With a rollback journal, the database file itself is partly changed when a writer dies."""
    with Victim(12, STAGES) as v:
        def bytes_of(workdir):
            with open(v.path(workdir, "results.db"), "rb") as f:
                return f.read()

        v.workflow(["in.sdf"], STAGES, extra=LIMITS + WITH_JOURNALS)
        v.go("whole")
        want, before = v.digest("whole"), bytes_of("whole")
        db = sqlite3.connect(v.path("whole/results.db"), isolation_level=None)
        db.execute("PRAGMA journal_mode=TRUNCATE")
        db.execute("PRAGMA cache_size=1")
        db.execute("BEGIN")
        db.execute("UPDATE molecule SET mw=-1")
        db.execute("UPDATE record SET title=hex(randomblob(50000))")
        v.copy("whole", "half")
        db.close()
        assert os.path.getsize(v.path("half/results.db-journal")) > 0
        assert bytes_of("half") != before, "nothing is half done"
        v.copy("half", "query")
        assert v.run("query", "SELECT count(*) FROM molecule WHERE mw<0", "query")[1].split()[-1] == "0"
        assert v.digest("half") == want
        v.run("db", "check", "half")


if __name__ == "__main__":
    sieve.main([failing_calls_are_survived, power_cuts_lose_nothing, a_reader_rolls_back_a_half_written_transaction])
