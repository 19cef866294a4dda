#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The real program is stopped at its fault points, by signals, by a second run
and by a full disk: each time the same command continues to the same result."""
import ctypes
import os
import random
import shutil
import signal
import subprocess
import time

from victim import LIMITS, STAGES, Victim, no_orphans, sieve, workers_of

UNIT_POINTS = ["unit.after_features", "unit.before_commit", "unit.after_commit"]
POINTS = ["finish.before_commit", "finish.after_commit"]
TRAIN_POINTS = ["checkpoint.before", "checkpoint.after", "epoch.before_commit", "model.before", "model.after"]


def points_of(stage):
    unit = UNIT_POINTS if stage in ("read", "prepare", "graph", "basis", "score") else []
    return unit + (TRAIN_POINTS if stage == "train" else []) + POINTS


def make_ready(v, stages):
    """`ready-STAGE` has all stages before it; also the results after each stage, and of the `whole`."""
    want = {}
    for stage in STAGES:
        if stage in stages:
            v.copy("whole", "ready-" + stage)
        v.go("whole", "--until", stage)
        if stage in stages:
            want[stage] = v.answer("whole")
    want["whole"] = v.answer("whole")
    return want


def sweep(v, stage, want):
    """The process dies at each pass of each fault point of the stage, until a run finishes."""
    deaths = 0
    for point in points_of(stage):
        for n in range(1, 1000):
            v.copy("ready-" + stage, "killed")
            env = dict(os.environ, MOLSIEVE_FAULT="%s.%s:%d" % (stage, point, n))
            status, _, _ = v.go("killed", "--until", stage, expect=None, env=env)
            if status == 0:
                break
            assert status == 137, (stage, point, n, status)
            deaths += 1
            v.sound("killed")
            v.go("killed", "--until", stage)
            assert v.answer("killed") == want[stage], (stage, point, n)
        assert n > 1, "%s.%s is never passed" % (stage, point)
    v.go("killed")
    assert v.answer("killed") == want["whole"], stage
    return deaths


def sweep_all(stages):
    with Victim(40) as v:
        want = make_ready(v, stages)
        told = ["%s %d" % (stage, sweep(v, stage, want)) for stage in stages]
        print("deaths at fault points, until none was left:", ", ".join(told))


def fault_points_of_records_are_survived():
    sweep_all(["read", "prepare"])


def fault_points_of_molecules_are_survived():
    sweep_all(["graph", "basis", "score"])


def fault_points_of_whole_stages_are_survived():
    sweep_all(["split", "train", "evaluate", "rank", "write"])


def wait_for(child, stage):
    for line in child.stderr:
        if b"stage %s:" % stage.encode() in line:
            return True
    return False


def signalled(v, stage, sig, rng):
    """One run that is told to stop while the stage is running; tried again if the run ended before."""
    for _ in range(60):
        v.copy("ready-" + stage, "killed")
        child = v.start("killed", "--until", stage)
        assert wait_for(child, stage)
        time.sleep(rng.uniform(0, 0.02))
        began = time.time()
        child.send_signal(sig)
        text = child.communicate()[1].decode()
        if child.returncode != 0:
            assert child.returncode == 75, (stage, sig, child.returncode, text)
            assert "again" in text, text
            return time.time() - began
    raise AssertionError("%s is always done before signal %d comes" % (stage, sig))


def signals_end_with_75_and_the_run_goes_on():
    stages, rng, longest = ["read", "prepare", "train", "score"], random.Random(3), 0
    with Victim(400) as v:
        v.workflow(["in.sdf"], v.stages.replace("unit: 20", "unit: 5"), extra=LIMITS)
        want = make_ready(v, stages)
        for stage in stages:
            for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2):
                longest = max(longest, signalled(v, stage, sig, rng))
                assert v.sound("killed")[stage] == "running"
                v.go("killed", "--until", stage)
                assert v.answer("killed") == want[stage], (stage, sig)
        no_orphans()
    assert longest < 25, longest
    print("16 signals, the slowest run ended after %.2f s" % longest)


SLOW = "  read: {unit: 2}\n  prepare: {conformers: {source: generate, builder: openbabel, cpu_limit: 20s}}\n"


def a_second_signal_ends_the_run_and_its_workers_at_once():
    with sieve.Project() as p:
        p.put("a.smi", sieve.lines_of(sieve.data("library.smi"), 12))
        p.workflow(["a.smi"], SLOW, name="w.yaml", workdir="whole")
        p.run("run", "w.yaml", "-q", "-j", "2")
        for pause in (0, 0.005, 0.05):
            child = subprocess.Popen(p.command("run", "w.yaml", "-v", "-j", "2", "workdir=killed"), cwd=p.dir,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            assert wait_for(child, "prepare")
            sieve.until(lambda: workers_of(child.pid), "no worker")
            child.send_signal(signal.SIGTERM)
            time.sleep(pause)
            began = time.time()
            child.send_signal(signal.SIGINT)
            child.communicate()
            # Of two signals that wait, the system gives the lower number first: then SIGTERM is the second one.
            assert child.returncode in (128 + signal.SIGINT, 128 + signal.SIGTERM, 75), child.returncode
            assert time.time() - began < 10, "a second signal was not obeyed"
            no_orphans()
        p.run("run", "w.yaml", "-q", "-j", "2", "workdir=killed")
        assert p.run("db", "digest", "killed")[1] == p.run("db", "digest", "whole")[1]


def setting_the_system_clock_is_survived():
    """The clock jumps by years whenever it is read (clock.c), also while a killed run is continued."""
    clock = os.path.abspath(os.path.join(os.path.dirname(sieve.PROGRAM), "../tests/libclock.so"))
    if not os.path.exists(clock):
        sieve.skip(clock + " is not there")
    env = dict(os.environ, LD_PRELOAD=clock)
    with Victim(100) as v:
        v.go("whole")
        v.go("set", env=env)
        assert v.answer("set") == v.answer("whole")
        years = v.rows("SELECT DISTINCT substr(at_utc,1,4) FROM metric", workdir="set")
        assert len(years) > 2, "the clock was not set: %s" % years
        for stage in ("read", "prepare", "train", "score"):
            child = v.start("killed", env=env)
            assert wait_for(child, stage)
            child.kill()
            child.communicate()
        v.go("killed", env=env)
        assert v.answer("killed") == v.answer("whole")
        for words in (["status", "killed"], ["plan", "w.yaml"], ["db", "check", "killed"]):
            v.run(*words, env=env)


def a_second_run_is_refused_and_harms_nothing():
    with Victim(60) as v:
        v.go("whole")
        want = v.answer("whole")
        first = v.start("twice")
        assert wait_for(first, "prepare")
        first.send_signal(signal.SIGSTOP)
        others = [v.start("twice") for _ in range(20)]
        for other in others:
            text = other.communicate()[1].decode()
            assert other.returncode == 4, (other.returncode, text)
            assert "pid %d" % first.pid in text and "host " in text and "since " in text, text
        first.send_signal(signal.SIGCONT)
        first.communicate()
        assert first.returncode == 0
        assert v.answer("twice") == want
        refused = 0
        pairs = int(os.environ.get("MOLSIEVE_PAIRS", 20))
        for _ in range(pairs):
            shutil.rmtree(v.path("twice"))
            pair = [v.start("twice"), v.start("twice")]
            for one in pair:
                one.communicate()
            status = sorted(one.returncode for one in pair)
            assert status in ([0, 0], [0, 4]), status
            refused += status[1] == 4
            assert v.answer("twice") == want
        print("20 refused beside a held lock; of %d pairs started together %d had one refused" % (pairs, refused))


def a_full_disk_ends_with_6_and_the_run_goes_on():
    libc = ctypes.CDLL(None, use_errno=True)
    with Victim(500) as v:
        v.go("whole")
        want = v.answer("whole")
        os.mkdir(v.path("small"))
        for kib in (100, 400, 900, 1500, 2200, 3000, 3800, 4600):
            if libc.mount(b"tmpfs", v.path("small").encode(), b"tmpfs", 0, b"size=%dk" % kib) != 0:
                sieve.skip("no tmpfs can be mounted here: not root")
            try:
                status, _, err = v.go("small", expect=None)
                assert status == 6, (kib, status, err)
                assert "free" in err and "small" in err, err
                again, _, err = v.go("small", expect=None)
                assert again == 6, (kib, again, err)
                v.sound("small")
                assert libc.mount(b"tmpfs", v.path("small").encode(), b"tmpfs", 32, b"size=64m") == 0  # MS_REMOUNT
                v.go("small")
                assert v.answer("small") == want, kib
            finally:
                libc.umount(v.path("small").encode())


def too_little_free_space_ends_with_6_before_it_is_full():
    with Victim(60) as v:
        _, _, err = v.go("run", "limits.disk_free_min=1000TiB", expect=6)
        assert "disk_free_min" in err and "nothing is lost" in err, err
        v.go("run")
        v.go("whole")
        assert v.answer("run") == v.answer("whole")


SCREEN = """  read: {unit: 3}
  prepare: {conformers: {source: generate, cpu_limit: 30s, retry_cpu_limit: 60s}}
  graph: {edges: bonds}
  basis: {}
  score: {}
  rank: {objectives: [{property: gap_ev, goal: maximise}], top: 30, diversity: {by: scaffold}}
  write: {csv: hits.csv, sdf: hits.sdf}
"""


def a_screen_gives_the_same_bytes_for_1_2_and_5_workers():
    with Victim(200) as v:
        v.go("trained", "stages.train.model.elements=[H, C, N, O, F, S, Cl, Br]", "--until", "train")
        shutil.copy(v.path("trained/models/e2e.safetensors"), v.path("m.safetensors"))
        v.put("a.smi", sieve.lines_of(sieve.data("library.smi"), 40))
        v.workflow(["a.smi"], SCREEN, extra="models: {m: {path: m.safetensors}}\n")
        answers = []
        for jobs in ("1", "2", "5"):
            v.run("run", "w.yaml", "-q", "-j", jobs, "workdir=j" + jobs)
            answers.append(v.answer("j" + jobs))
        assert v.one("SELECT count(*) FROM hit", workdir="j1") == 30
        assert answers[0] == answers[1] == answers[2], answers


if __name__ == "__main__":
    sieve.main([fault_points_of_records_are_survived, fault_points_of_molecules_are_survived,
                fault_points_of_whole_stages_are_survived,
                signals_end_with_75_and_the_run_goes_on, a_second_signal_ends_the_run_and_its_workers_at_once,
                setting_the_system_clock_is_survived, a_second_run_is_refused_and_harms_nothing, a_full_disk_ends_with_6_and_the_run_goes_on,
                too_little_free_space_ends_with_6_before_it_is_full,
                a_screen_gives_the_same_bytes_for_1_2_and_5_workers])
