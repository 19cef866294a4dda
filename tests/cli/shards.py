#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shards of a workflow, merged, are one run of it: row by row, block by block, also after kills."""
import hashlib
import json
import os
import random
import re
import resource
import select
import signal
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../crash"))
from sieve import DUMP, Project, accounted, data, dump, lines_of, main, same, sdf_records  # noqa: E402
from victim import EVERY_STAGE, LIMITS  # noqa: E402

PLAIN = """  read: {unit: 100}
  prepare: {conformers: {source: none}}
  rank: {objectives: [{property: mw, goal: maximise}], top: 50}
  write: {csv: hits.csv}
"""


def shards(p, n, workdir, order=None, w="w.yaml"):
    for k in order or range(n):
        p.run("run", w, "-q", "-j", "2", "workdir=" + workdir, "--shard", "%d/%d" % (k, n))


def merged(p, n, workdir, order=None, w="w.yaml"):
    """n shards, the merge, and the stages that no shard does."""
    shards(p, n, workdir, order, w)
    p.run("merge", w, "workdir=" + workdir)
    p.run("run", w, "-q", "workdir=" + workdir)


def digest(p, workdir):
    return p.run("db", "digest", "--results-only", workdir)[1]


def rows(p, workdir):
    return {name: p.rows(sql, workdir=workdir) for name, sql in DUMP.items()}


def smiles(p):
    """Two files: duplicates within shards and across them, records that fail in reading and in chemistry."""
    lines = lines_of(data("library.smi"), 320)
    twice = b"".join(lines.splitlines(True)[90:170])
    p.put("a.smi", lines + b"C1CC( bad\n" + twice + b"[Xe] noble\n\xff\xfe\n" + twice)
    p.put("b.smi", b"".join(lines.splitlines(True)[:30]) + b"not(a smiles x\n")
    p.put("empty.smi", b"")
    p.workflow(["a.smi", "empty.smi", "b.smi"], PLAIN)


def labelled(n):
    """QM9 molecules; some come three times, with other values of their label."""
    records = sdf_records(data("qm9/qm9_dev_2500.sdf.gz"), n).split(b"$$$$\n")[:n]

    def other(record, by):
        return re.sub(rb"(> *<gap>[^\n]*\n)([^\n]*)", lambda m: m.group(1) + b"%.6f" % (float(m.group(2)) * by), record)

    again = [other(r, by) for by in (1.1, 0.7) for r in records[5:25]]
    return b"$$$$\n".join(records[:20] + [b"nothing\n"] + records[20:] + again) + b"$$$$\n"


def chlorides(sdf):
    """In another order; a third of the molecules gets a chlorine, which the model has not seen."""
    records = sorted(sdf.split(b"$$$$\n")[:-1], key=hash_of)
    return b"".join((r.replace(b" H  ", b" Cl ", 1) if sum(r.split(b"\n", 1)[0]) % 3 == 0 else r) + b"$$$$\n" for r in records)


def hash_of(record):
    return hashlib.sha256(record).digest()


def any_number_of_shards_gives_the_rows_of_one_run():
    with Project() as p:
        smiles(p)
        p.run("run", "w.yaml", "-q", "workdir=one")
        want = rows(p, "one")
        for n, order in ((1, None), (3, [2, 0, 1]), (8, None)):  # 6 units: the last shards are empty
            where = "of%d" % n
            if order:
                shards(p, n, where, order[:1])
                time.sleep(1.1)  # times are stored in seconds
            merged(p, n, where, order)
            same(want, rows(p, where), "%d shards" % n)
            assert digest(p, where) == digest(p, "one"), n
            accounted(p, where)
            p.run("db", "check", where)
            assert open(p.path(where, "hits.csv")).read() == open(p.path("one", "hits.csv")).read()
        # Failures are in the order in which their shards met them, which is that of no index.
        for n in (1, 3):
            met = [row for k in range(n) for row in
                   p.rows("SELECT stage, record_id, code FROM failure ORDER BY failure_id", workdir="of%d/shards/%05d-of-%05d" % (n, k, n))]
            assert n > 1 or met != sorted(met, key=lambda row: (row[0], row[2])), met
            assert p.rows("SELECT stage, record_id, code FROM failure ORDER BY failure_id", workdir="of%d" % n) == met, n
        # A stage began when the first of its shards did, and was done when the last was.
        each = [p.rows("SELECT name, created_utc, done_utc FROM stage ORDER BY stage_id", workdir="of3/shards/%05d-of-00003" % k) for k in range(3)]
        assert each[2][0][1] < each[0][0][1]
        for of_stage in zip(*each):
            want = (min(s[1] for s in of_stage), max(s[2] for s in of_stage))
            assert p.rows("SELECT created_utc, done_utc FROM stage WHERE name=?", of_stage[0][0], workdir="of3") == [want], of_stage
        # A second merge has nothing to do, also after the later stages.
        before = p.rows("SELECT run_id, command, state FROM run", workdir="of3")
        assert "were merged already" in p.run("merge", "w.yaml", "workdir=of3")[1]
        assert p.rows("SELECT run_id, command, state FROM run", workdir="of3") == before
        assert p.one("SELECT count(*) FROM stage WHERE state='done'", workdir="of3") == 4
        # Also with deduplication by SMILES.
        p.workflow(["a.smi", "empty.smi", "b.smi"], PLAIN.replace("{source: none}", "{source: none}, dedupe: {by: exact}"),
                   name="exact.yaml")
        p.run("run", "exact.yaml", "-q", "workdir=one-exact")
        merged(p, 2, "of2-exact", w="exact.yaml")
        same(rows(p, "one-exact"), rows(p, "of2-exact"), "exact")
        flat = b"".join(line.replace(b"@", b"") for line in lines_of(data("library.smi"), 320).splitlines(True)[40:300])
        p.put("flat.smi", flat)  # without stereo: other keys, the same skeletons
        p.workflow(["a.smi", "empty.smi", "b.smi", "flat.smi"], PLAIN.replace("{source: none}", "{source: none}, dedupe: {by: skeleton}"),
                   name="skeleton.yaml")
        p.run("run", "skeleton.yaml", "-q", "workdir=one-skeleton")
        assert p.one("SELECT count(*) FROM record r JOIN molecule m ON m.mol_id=r.mol_id WHERE r.status='duplicate' AND m.smiles LIKE '%@%' "
                     "AND r.raw_smiles NOT LIKE '%@%'", workdir="one-skeleton") > 50
        merged(p, 3, "of3-skeleton", order=[2, 0, 1], w="skeleton.yaml")
        same(rows(p, "one-skeleton"), rows(p, "of3-skeleton"), "skeleton")
        # A ranking that reads structures: merge copies them.
        p.workflow(["a.smi", "empty.smi", "b.smi"], PLAIN.replace("top: 50", "top: 50, diversity: {by: similarity, threshold: 0.25}"),
                   name="diverse.yaml")
        p.run("run", "diverse.yaml", "-q", "workdir=one-diverse")
        assert p.one("SELECT sum(n_similar) FROM hit", workdir="one-diverse") > 10
        merged(p, 3, "of3-diverse", w="diverse.yaml")
        same(rows(p, "one-diverse"), rows(p, "of3-diverse"), "diverse")
        assert digest(p, "one-diverse") == digest(p, "of3-diverse")
        # If structures are needed after the merge, a second merge copies them, and a third has nothing to do.
        assert "again" in p.run("plan", "diverse.yaml", "workdir=of3")[1]
        assert "3 shards merged" in p.run("merge", "diverse.yaml", "workdir=of3")[1]
        assert "were merged already" in p.run("merge", "diverse.yaml", "workdir=of3")[1]
        assert re.search("prepare +done", p.run("plan", "diverse.yaml", "workdir=of3")[1])
        p.run("run", "diverse.yaml", "-q", "workdir=of3")
        same(rows(p, "one-diverse"), rows(p, "of3"), "diverse later")


def labels_models_and_blocks_are_those_of_one_run():
    with Project() as p:
        p.put("in.sdf", labelled(100))
        p.workflow(["in.sdf"], EVERY_STAGE, extra=LIMITS)
        p.run("run", "w.yaml", "-q", "workdir=one")
        assert p.one("SELECT count(*) FROM label WHERE n_measurements=3 AND spread>0", workdir="one") == 20
        shards(p, 4, "of4")
        p.run("merge", "w.yaml", "-q", "workdir=of4")
        for k in range(4):  # as files the same, also where blocks lose a molecule
            p.run("run", "w.yaml", "-q", "workdir=of4", "--shard", "%d/4" % k, "--out", "f%d.db" % k)
        p.run("merge", "w.yaml", "-q", "workdir=files", *["f%d.db" % k for k in (2, 3, 1, 0)])
        same(dump(p, "of4"), dump(p, "files"), "4 files")
        p.run("run", "w.yaml", "-q", "workdir=of4")
        assert digest(p, "of4") == digest(p, "one")
        for time, first in (("created_utc", min), ("done_utc", max)):  # a stage is as old as its first shard, and done with its last
            of = [dict(p.rows("SELECT name, %s FROM stage" % time, workdir="of4/shards/%05d-of-00004" % k)) for k in range(4)]
            for name, at in p.rows("SELECT name, %s FROM stage" % time, workdir="of4"):
                assert name not in of[0] or at == first(o[name] for o in of), (name, at, of)
        a, b = dump(p, "one"), dump(p, "of4")
        a["block"] = [x for x in a["block"] if x[0] != "record"]  # no stage reads them any more
        same(a, b, "4 shards")
        assert open(p.path("one/hits.sdf")).read() == open(p.path("of4/hits.sdf")).read()
        # A screen with that model, twice: the shards score, and each molecule that fails has one failure row.
        p.put("new.sdf", chlorides(labelled(60)))
        p.workflow(["new.sdf"], "  read: {unit: 9}\n  prepare: {conformers: {source: keep}}\n  graph: {edges: bonds, max_atoms: 12}\n"
                   "  basis: {}\n  score: {}\n  rank: {objectives: [{property: gap_ev, goal: maximise}]}\n", name="s.yaml",
                   extra=LIMITS + "models: {m: {path: one/models/e2e.safetensors}, n: {path: one/models/e2e.safetensors}}\n")
        p.run("run", "s.yaml", "-q", "workdir=s1")
        assert p.one("SELECT count(*) FROM failure WHERE stage='graph'", workdir="s1") > 3
        assert p.one("SELECT count(*) FROM failure WHERE stage='score'", workdir="s1") > 6
        merged(p, 5, "s5", order=[4, 2, 0, 1, 3], w="s.yaml")
        same(rows(p, "s1"), rows(p, "s5"), "5 shards")
        assert digest(p, "s1") == digest(p, "s5")
        # Labels of the predicted name in another unit: the prediction is another property, also in shards that have no such label.
        p.put("new.sdf", chlorides(labelled(60)).replace(b"$$$$", b"> <gap_ev>\n0.3\n\n$$$$", 3))
        p.workflow(["new.sdf"], "  read: {unit: 9}\n  prepare: {conformers: {source: keep}, properties: {gap_ev: {unit: Eh}}}\n  graph: {edges: bonds, max_atoms: 12}\n"
                   "  basis: {}\n  score: {}\n  rank: {objectives: [{property: gap_ev (eV), goal: maximise}]}\n", name="u.yaml",
                   extra=LIMITS + "models: {m: {path: one/models/e2e.safetensors}}\n")
        p.run("run", "u.yaml", "-q", "workdir=u1")
        assert p.rows("SELECT name, unit FROM property WHERE name LIKE 'gap_ev%' ORDER BY 1", workdir="u1") == [("gap_ev", "Eh"), ("gap_ev (eV)", "eV")]
        merged(p, 3, "u3", w="u.yaml")
        same(rows(p, "u1"), rows(p, "u3"), "3 shards with units")


def shards_that_are_missing_are_named():
    with Project() as p:
        smiles(p)
        assert p.run("merge", "w.yaml", "--missing", expect=2)[2].count("--of") == 1
        assert p.run("merge", "w.yaml", "--missing", "--of", "3")[1] == "0\n1\n2\n"
        shards(p, 3, "run", [1])
        p.run("run", "w.yaml", "-q", "--shard", "0/3", "--until", "read")
        assert p.run("merge", "w.yaml", "--missing")[1] == "0\n2\n"
        os.mkdir(p.path("run/shards/00001-of-00007.old"))  # no shard of this name
        assert p.run("merge", "w.yaml", "--missing")[1] == "0\n2\n"
        _, _, err = p.run("merge", "w.yaml", expect=75)
        assert "shard 0: stage prepare has not begun" in err and "shard 2: not begun" in err and "2 of 3" in err, err
        shards(p, 3, "run", [0])
        p.run("run", "w.yaml", "-q", "--shard", "2/3", "stages.prepare.max_heavy_atoms=200")
        _, _, err = p.run("merge", "w.yaml", expect=75)
        assert "shard 2: stage prepare was run with other settings" in err, err
        assert p.run("merge", "w.yaml", "--missing")[1] == "2\n"
        _, out, _ = p.run("run", "w.yaml", "--shard", "2/3")
        assert "left out: rank, write" in out and "shard 2 of 3 is done" in out, out
        assert p.run("merge", "w.yaml", "--missing")[1] == ""
        p.run("run", "w.yaml", "-q", "--shard", "0/4")
        assert "--of" in p.run("merge", "w.yaml", expect=2)[2]
        p.run("merge", "w.yaml", "--of", "3", "-q")
        for wrong in ("3/3", "-1/3", "x", "1/0", "1", "autos", "auto/x"):
            p.run("run", "w.yaml", "--shard", wrong, expect=2)
        p.run("run", "w.yaml", "--shard", "0/3", "--fresh", expect=2)
        # If no shard has a molecule, merge fails like a single run; if only one shard has none, it does not matter.
        p.put("bad.smi", "not(a\nsmiles(\n")
        p.workflow(["bad.smi"], PLAIN, name="bad.yaml", extra="limits: {failures: {max_fraction: 1}}\n")
        shards(p, 2, "bad", w="bad.yaml")
        status = p.run("run", "bad.yaml", "-q", "workdir=bad1", expect=None)[0]
        assert "none of the records gave a molecule" in p.run("merge", "bad.yaml", "workdir=bad", expect=status)[2]


def a_merge_that_cannot_write_names_the_shard_and_goes_on():
    with Project() as p:
        smiles(p)
        p.run("run", "w.yaml", "-q", "workdir=whole")
        shards(p, 2, "run")
        told = []
        for most in range(100_000, 1_500_000, 25_000):
            err = p.run("merge", "w.yaml", "-q", expect=None, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)))[2]
            assert err == "" or "results.merging.db: cannot grow: the limit of file sizes (ulimit -f) is reached" in err, err
            told += re.findall("^molsieve: (shard [01]): ", err)
            if err == "":
                break
        assert told and told == sorted(told), told
        p.run("merge", "w.yaml", "-q")
        p.run("run", "w.yaml", "-q")
        assert digest(p, "run") == digest(p, "whole")


def shard_auto_understands_job_arrays():
    def told(p, text, expect=0, **env):
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "PBS_", "LSB_", "SGE_"))}
        _, out, err = p.run("run", "w.yaml", "-n", "--shard", text, expect=expect, env=dict(clean, **env))
        return re.search(r"shards/(\d{5}-of-\d{5})/", out).group(1) if expect == 0 else err
    with Project() as p:
        smiles(p)
        slurm = {"SLURM_ARRAY_TASK_ID": "7", "SLURM_ARRAY_TASK_MIN": "1", "SLURM_ARRAY_TASK_MAX": "13",
                 "SLURM_ARRAY_TASK_STEP": "2", "SLURM_ARRAY_TASK_COUNT": "7"}
        assert told(p, "auto", **slurm) == "00003-of-00007"
        assert "auto/N" in told(p, "auto", expect=2, **dict(slurm, SLURM_ARRAY_TASK_COUNT="3"))
        assert told(p, "auto/20", **dict(slurm, SLURM_ARRAY_TASK_COUNT="3")) == "00007-of-00020"
        assert told(p, "auto", SLURM_ARRAY_TASK_ID="2", SLURM_ARRAY_TASK_MIN="0", SLURM_ARRAY_TASK_COUNT="4") == "00002-of-00004"
        assert told(p, "auto/9", PBS_ARRAY_INDEX="8") == "00008-of-00009"
        assert "auto/N" in told(p, "auto", expect=2, PBS_ARRAY_INDEX="8")
        assert told(p, "auto", LSB_JOBINDEX="4", LSB_JOBINDEX_END="4") == "00003-of-00004"
        assert told(p, "auto/5", LSB_JOBINDEX="1") == "00000-of-00005"
        sge = {"SGE_TASK_ID": "3", "SGE_TASK_FIRST": "1", "SGE_TASK_LAST": "8", "SGE_TASK_STEPSIZE": "1"}
        assert told(p, "auto", **sge) == "00002-of-00008"
        assert told(p, "auto/8", **sge) == "00002-of-00008"
        assert "job array" in told(p, "auto", expect=2, SGE_TASK_ID="undefined", LSB_JOBINDEX="0")
        assert "8/8 is not a shard" in told(p, "auto/8", expect=2, PBS_ARRAY_INDEX="8")


def the_heartbeat_shows_the_run_to_other_hosts():
    with Project() as p:
        smiles(p)
        child = subprocess.Popen(p.command("run", "w.yaml", "-q", "--shard", "0/2"), cwd=p.dir)
        path = p.path("run/shards/00000-of-00002/heartbeat.json")
        while not os.path.exists(path):  # from the start of the run, and complete at any moment
            time.sleep(0.001)
        while child.poll() is None:
            assert json.load(open(path))["state"] in ("running", "done")
        beat = json.load(open(path))
        assert child.returncode == 0 and (beat["state"], beat["command"], beat["pid"]) == ("done", "run", child.pid), beat
        assert [s["stage"] for s in beat["stages"]] == ["read", "prepare"]
        assert all(s["state"] == "done" and s["done"] > 0 for s in beat["stages"])
        # Without results, status shows the shards.
        p.run("run", "w.yaml", "-q", "--shard", "1/2", "stages.prepare.max_heavy_atoms=1", expect=3)
        assert "1 done, 0 stopped, 1 failed" in p.run("status", "w.yaml")[1]
        assert json.loads(p.run("status", "run", "--json")[1])["shards"]["failed"] == 1
        assert "only shards do; run `molsieve merge" in p.run("top", "run", expect=6)[2]
        os.mkdir(p.path("runs"))
        os.symlink("../run", p.path("runs/run"))
        assert "1 done, 0 stopped, 1 failed" in p.run("status")[1]
        shards(p, 2, "run", [1])
        p.run("merge", "w.yaml", "-q")
        p.run("run", "w.yaml", "-q")
        assert not os.path.exists(p.path("run/heartbeat.json.tmp"))
        # For a run on another host, status reads the heartbeat and not the database, which may be locked.
        beat = json.load(open(p.path("run/heartbeat.json")))
        assert len(beat.pop("crc32")) == 8
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        for at, state in ((now, "running"), ("2020-01-01T00:00:00Z", "lost")):
            beat.update(host="elsewhere", state="running", at_utc=at)
            p.put("run/heartbeat.json", json.dumps(beat))
            db = sqlite3.connect(p.path("run/results.db"))
            db.execute("PRAGMA locking_mode=EXCLUSIVE")
            db.execute("PRAGMA journal_mode=TRUNCATE")
            db.execute("BEGIN EXCLUSIVE")
            out = p.run("status", "w.yaml")[1]
            assert state + ", on elsewhere" in out and "by its heartbeat" in out and "rank " in out, out
            assert json.loads(p.run("status", "w.yaml", "--json")[1])["state"] == state
            with subprocess.Popen(p.command("status", "w.yaml", "--watch"), cwd=p.dir, stdout=subprocess.PIPE) as watching:
                ready = select.select([watching.stdout], [], [], 60)[0]  # each look at once, although it is no terminal
                look = os.read(watching.stdout.fileno(), 1 << 16).decode() if ready else ""
                watching.kill()
            assert re.sub(", [^,]* ago", "", look) == re.sub(", [^,]* ago", "", out), look
            db.close()
        p.put("run/heartbeat.json", "{")  # the host of the heartbeat is another one
        assert "by its heartbeat" not in p.run("status", "w.yaml")[1]


def killed(p, args, after, begun=None):
    """Killed `after` seconds after its start, or after the file appears."""
    child = subprocess.Popen(p.command(*args), cwd=p.dir, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while begun and not os.path.exists(begun) and child.poll() is None:
        time.sleep(0.001)
    time.sleep(after)
    child.send_signal(signal.SIGKILL)
    child.wait()
    return child.returncode != 0


def sound(p, path):
    db = sqlite3.connect(p.path(path))
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",), path
    db.close()


def kills_in_shards_and_in_the_merge_change_nothing():
    rng = random.Random(os.environ.get("MOLSIEVE_SEED", "5"))
    with Project() as p:
        smiles(p)
        p.run("run", "w.yaml", "-q", "workdir=one")
        want = digest(p, "one")
        for k in range(4):
            killed(p, ["run", "w.yaml", "-q", "--shard", "%d/4" % k], rng.uniform(0.01, 0.3))
        for point, times in (("read.unit.before_commit", 2), ("prepare.unit.after_features", 1)):
            p.run("run", "w.yaml", "-q", "--shard", "3/4", expect=None, env=dict(os.environ, MOLSIEVE_FAULT="%s:%d" % (point, times)))
        shards(p, 4, "run")
        # First into a directory without results, then over results of other settings.
        for turn in range(2):
            for point in ("merge.shard.before_commit:1", "merge.shard.before_commit:2", "merge.finish.before_commit:1"):
                p.run("merge", "w.yaml", expect=137, env=dict(os.environ, MOLSIEVE_FAULT=point))
                whole = turn == 1
                assert os.path.exists(p.path("run/results.db")) == whole
                if whole:
                    sound(p, "run/results.db")
            hits = sum(killed(p, ["merge", "w.yaml"], rng.uniform(0, 0.03), p.path("run/results.merging.db")) for _ in range(6))
            p.run("merge", "w.yaml", expect=None, env=dict(os.environ, MOLSIEVE_FAULT="merge.publish:1"))
            p.run("merge", "w.yaml")
            p.run("run", "w.yaml", "-q")
            assert digest(p, "run") == want and not os.path.exists(p.path("run/results.merging.db")), turn
            p.run("db", "check", "run")
            print("turn %d: %d kills in the merge" % (turn, hits))
            if turn == 0:
                # The blocks are in the shards only: a stage that needs them computes all of them again.
                p.run("run", "w.yaml", "-q", "-k", "stages.prepare.max_heavy_atoms=25", expect=3)
                assert digest(p, "run") != want


def features_of_shards_may_lie_outside_of_the_work_directory():
    """One file per shard, where the workflow says; merge finds them there."""
    with Project() as p:
        smiles(p)
        stages = PLAIN.replace("hits.csv}", "hits.csv, sdf: hits.sdf}")
        p.workflow(["a.smi"], stages, extra="storage: {features: %s}\n" % p.path("fast/f.db"))
        p.run("run", "w.yaml", "-q", "workdir=one", "storage.features=" + p.path("other/f.db"))
        shards(p, 2, "run")
        assert sorted(n for n in os.listdir(p.path("fast")) if n.endswith(".db")) == ["f-00000-of-00002.db", "f-00001-of-00002.db"]
        assert not any("features.db" in names for _, _, names in os.walk(p.path("run")))
        p.run("merge", "w.yaml")
        p.run("run", "w.yaml", "-q")
        assert os.path.exists(p.path("fast/f.db")) and digest(p, "run") == digest(p, "one")
        assert open(p.path("run/hits.sdf"), "rb").read() == open(p.path("one/hits.sdf"), "rb").read()


if __name__ == "__main__":
    main([any_number_of_shards_gives_the_rows_of_one_run, labels_models_and_blocks_are_those_of_one_run,
          features_of_shards_may_lie_outside_of_the_work_directory, shards_that_are_missing_are_named,
          a_merge_that_cannot_write_names_the_shard_and_goes_on, shard_auto_understands_job_arrays, the_heartbeat_shows_the_run_to_other_hosts,
          kills_in_shards_and_in_the_merge_change_nothing])
