#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files that are truncated, changed, deleted or foreign: the real program reports
which one and what to do, and this works."""
import os
import shutil
import sqlite3
import subprocess

from victim import Victim, sieve


def checkpoints(v, workdir):
    for where, _, names in os.walk(v.path(workdir, "checkpoints")):
        if "latest.ckpt" in names:
            return os.path.join(where, "latest.ckpt"), os.path.join(where, "previous.ckpt")
    raise AssertionError("no checkpoint")


def flip(path, at):
    with open(path, "r+b") as f:
        f.seek(at)
        byte = f.read(1)[0]
        f.seek(at)
        f.write(bytes([byte ^ 4]))


def hurts(size):
    """Every way to damage a checkpoint: (name, function that changes the file)."""
    for n in (0, 1, 7, 8, 100, size // 2, size - 1):
        yield "cut to %d of %d bytes" % (n, size), lambda path, n=n: os.truncate(path, n)
    for at in [0, 8, 9, 64, size - 1] + list(range(size // 9, size, size // 9)):
        yield "bit flipped at %d of %d" % (at, size), lambda path, at=at: flip(path, at)
    yield "deleted", os.unlink


def a_damaged_checkpoint_gives_way_to_the_previous_one():
    with Victim(60) as v:
        v.go("ready", "--until", "split")
        v.copy("ready", "whole")
        v.go("whole")
        want = v.answer("whole")
        v.copy("ready", "half")
        env = dict(os.environ, MOLSIEVE_FAULT="train.checkpoint.after:3")
        v.go("half", expect=137, env=env)
        latest, previous = checkpoints(v, "half")
        assert os.path.exists(previous)
        n = 0
        for what, hurt in hurts(os.path.getsize(latest)):
            v.copy("half", "hurt")
            hurt(checkpoints(v, "hurt")[0])
            v.go("hurt")
            assert v.answer("hurt") == want, what
            said = v.rows("SELECT message FROM event WHERE level='warn' AND stage='train' AND message LIKE '%previous.ckpt%'",
                          workdir="hurt")
            assert len(said) == 1 or what == "deleted", (what, said)
            n += 1
        v.copy("half", "hurt")
        for path in checkpoints(v, "hurt"):
            flip(path, 64)
        _, _, err = v.go("hurt", expect=5)
        assert "latest.ckpt" in err and "previous.ckpt" in err, err
        print("%d damaged checkpoints, each replaced by the one before" % n)


def flip_blob(path, kind, unit):
    db = sqlite3.connect(path)
    row, data = db.execute("SELECT block_id, data FROM block WHERE kind=? AND unit=?", (kind, unit)).fetchone()
    data = bytearray(data)
    data[len(data) // 2] ^= 16
    db.execute("UPDATE block SET data=? WHERE block_id=?", (bytes(data), row))
    db.commit()
    db.close()


READERS = [("record", "prepare"), ("conformer", "graph"), ("graph", "basis"), ("graph", "train"), ("basis", "score")]


def a_flipped_bit_in_a_block_is_found_and_named():
    before = {"prepare": "read", "graph": "prepare", "basis": "graph", "train": "split", "score": "evaluate"}
    with Victim(60) as v:
        v.go("whole")
        want = v.answer("whole")
        for kind, stage in READERS:
            shutil.rmtree(v.path("run"), ignore_errors=True)
            v.go("run", "--until", before[stage])
            if stage in ("train", "score"):
                v.go("run", "--until", "basis")
            flip_blob(v.path("run/features.db"), kind, 1)
            _, _, err = v.go("run", expect=5)
            for text in ("features.db", "block %s" % kind, "unit 1", "delete the file"):
                assert text in err, (kind, stage, text, err)
            _, out, _ = v.run("db", "check", "run", expect=5)
            assert kind in out and "1" in out, out
            v.go("run", expect=5)  # the damage is still reported
            for tail in ("", "-wal", "-shm"):
                if os.path.exists(v.path("run/features.db" + tail)):
                    os.unlink(v.path("run/features.db" + tail))
            v.go("run")
            assert v.answer("run") == want, (kind, stage)


def missing_features_are_computed_again_when_needed():
    with Victim(60) as v:
        v.go("whole")
        want, results = v.answer("whole"), v.digest("whole").splitlines()[0]
        for tail in ("", "-wal", "-shm"):
            if os.path.exists(v.path("whole/features.db" + tail)):
                os.unlink(v.path("whole/features.db" + tail))
        assert v.digest("whole").splitlines()[0] == results
        v.run("db", "check", "--results-only", "whole")
        v.run("top", "-n", "3", "whole")
        v.run("export", "csv", "whole", "-o", "out.csv")
        v.go("whole")  # all results are there: nothing to do
        assert not os.path.exists(v.path("whole/features.db"))
        v.go("whole", "--from", "score")
        assert v.answer("whole") == want


def set_version(path, version, application=None):
    db = sqlite3.connect(path)
    if path.endswith("results.db"):
        db.execute("DELETE FROM row_sum")
    db.execute("PRAGMA user_version=%d" % version)
    if application is not None:
        db.execute("PRAGMA application_id=%d" % application)
    db.commit()
    db.close()


def foreign_and_newer_databases_are_left_unchanged():
    with Victim(60) as v:
        v.go("whole", "--until", "graph")
        cases = [("results.db", lambda p: set_version(p, 99), "newer molsieve"),
                 ("features.db", lambda p: set_version(p, 99), "newer molsieve"),
                 ("results.db", lambda p: set_version(p, 1, 77), "another program"),
                 ("features.db", lambda p: set_version(p, 1, 77), "another program"),
                 ("results.db", lambda p: open(p, "wb").write(b"not a database, but long enough to be read " * 99), "not a database"),
                 ("features.db", lambda p: open(p, "wb").write(b"not a database, but long enough to be read " * 99), "not a database")]
        for name, hurt, text in cases:
            v.copy("whole", "run")
            for tail in ("-wal", "-shm"):
                if os.path.exists(v.path("run", name + tail)):
                    os.unlink(v.path("run", name + tail))
            hurt(v.path("run", name))
            was = open(v.path("run", name), "rb").read()
            _, _, err = v.go("run", expect=5)
            assert text in err and name in err, (name, text, err)
            assert open(v.path("run", name), "rb").read() == was, "%s was changed" % name


def a_truncated_database_is_reported_and_kept():
    with Victim(60) as v:
        v.go("whole")
        for name in ("results.db", "features.db"):
            for part in (0.3, 0.9):
                v.copy("whole", "run")
                for tail in ("-wal", "-shm"):
                    if os.path.exists(v.path("run", name + tail)):
                        os.unlink(v.path("run", name + tail))
                path = v.path("run", name)
                os.truncate(path, int(os.path.getsize(path) * part))
                _, out, err = v.run("db", "check", "run", expect=5)
                assert name in out + err, (name, out, err)
                status, _, err = v.go("run", "--force", "prepare", expect=None)
                assert status in (0, 5), (name, part, status, err)
                assert status == 0 or "damaged" in err or "checksum" in err, err


def log_of(v, workdir, *more):
    """The bytes of results.db-wal that a run leaves behind because another program reads meanwhile."""
    reader = sqlite3.connect(v.path(workdir, "results.db"))
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM record").fetchone()
    v.go(workdir, *more)
    with open(v.path(workdir, "results.db-wal"), "rb") as f:
        log = f.read()
    reader.close()
    assert len(log) > 4096
    return log


def a_log_of_another_database_is_noticed():
    """results.db was replaced by a copy, and the -wal of the file that it replaced stayed beside it."""
    with Victim(120) as v:
        v.go("a", "stages.train.epochs=1")
        shutil.copyfile(v.path("in.sdf"), v.path("all.sdf"))
        v.put("in.sdf", b"$$$$\n".join(open(v.path("all.sdf"), "rb").read().split(b"$$$$\n")[60:100]) + b"$$$$\n")
        v.go("b", "stages.train.epochs=1")
        want = v.answer("b")
        shutil.copyfile(v.path("all.sdf"), v.path("in.sdf"))
        log = log_of(v, "a", "stages.train.epochs=1", "stages.rank.top=50")
        own = log
        v.put("b/results.db-wal", log)
        before = open(v.path("b/results.db"), "rb").read()
        for words in (["top", "b"], ["export", "csv", "b"], ["report", "b"], ["query", "SELECT * FROM v_hits", "b"], ["db", "digest", "b"],
                      ["run", "w.yaml", "workdir=b", "stages.train.epochs=1"], ["db", "check", "b"]):
            status, out, err = v.run(*words, expect=None)
            assert status == 5 and "b/results.db" in out + err, (words, status, out, err)
            assert "results.db-wal" in out + err or words[0] == "db", (words, out, err)
        assert open(v.path("b/results.db"), "rb").read() == before
        os.unlink(v.path("b/results.db-wal"))
        assert v.answer("b") == want
        # An earlier backup of the same database, whose schema may be another one, too.
        v.run("db", "backup", "b", "--to", "copy.db")
        log = log_of(v, "b", "stages.train.epochs=1", "stages.rank.top=20")
        shutil.copyfile(v.path("copy.db"), v.path("b/results.db"))
        v.put("b/results.db-wal", log)
        for words in (["top", "b"], ["run", "w.yaml", "workdir=b", "stages.train.epochs=1"]):
            err = v.run(*words, expect=5)[2]
            assert "results.db-wal" in err, (words, err)
        assert open(v.path("b/results.db"), "rb").read() == open(v.path("copy.db"), "rb").read()
        # The log of a run that was killed belongs to its database.
        log = own
        v.copy("a", "c")
        v.put("c/results.db-wal", log)
        assert len(v.run("top", "-n", "100", "--csv", "c")[1].splitlines()) == 51
        v.go("c", "stages.train.epochs=1", "stages.rank.top=50")


def an_unwritable_directory_is_reported():
    with Victim(60) as v:
        v.go("run")
        other = os.geteuid() == 0
        if not other:
            os.chmod(v.path("run"), 0o555)
            os.chmod(v.dir, 0o555)

        def become():
            if other:
                os.setgid(65534)
                os.setuid(65534)

        def run(*words):
            p = subprocess.run(v.command(*words), cwd=v.dir, capture_output=True, preexec_fn=become, timeout=60)
            return p.returncode, p.stdout.decode() + p.stderr.decode()

        try:
            if run("version")[0] not in (0, 1, 2):
                sieve.skip("the program cannot be run by another user here")
            for workdir in ("run", "fresh"):
                status, text = run("run", "w.yaml", "-q", "workdir=" + workdir)
                assert status == 6 and workdir in text, (status, text)
            status, text = run("top", "-n", "3", "run")
            assert status == 0 and "gap_ev" in text, (status, text)
            assert run("db", "check", "run")[0] == 0
        finally:
            os.chmod(v.dir, 0o755)
            os.chmod(v.path("run"), 0o755)


if __name__ == "__main__":
    sieve.main([a_damaged_checkpoint_gives_way_to_the_previous_one, a_flipped_bit_in_a_block_is_found_and_named,
                missing_features_are_computed_again_when_needed,
                foreign_and_newer_databases_are_left_unchanged,
                a_truncated_database_is_reported_and_kept, a_log_of_another_database_is_noticed,
                an_unwritable_directory_is_reported])
