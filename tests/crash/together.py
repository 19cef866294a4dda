#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stages that work on units run at once. Whatever happens meanwhile, the
result is that of running them one after another."""
import os
import random
import resource
import signal
import subprocess
import time

from victim import LIMITS, TOGETHER, Screen, Victim, molecules, no_orphans, sieve

UNIT_POINTS = ["unit.after_features", "unit.before_commit", "unit.after_commit", "finish.before_commit",
               "finish.after_commit"]


def one_after_another(v, workdir):
    for stage in TOGETHER:
        v.go(workdir, "--until", stage)
    v.go(workdir)
    return v.answer(workdir)


def late_labels(n):
    """Molecules of which only the last have the label."""
    records = molecules(n).split(b"$$$$\n")
    cut = [r.split(b"> <gap>")[0].rstrip(b"\n") + b"\n" if i < 3 * n // 4 else r for i, r in enumerate(records)]
    return b"$$$$\n".join(cut)


def parallel_stages_give_the_bytes_of_serial_ones():
    """Also if the model has the name of a label that appears late, with the same unit, another one, or none."""
    with Screen(200) as v:
        v.put("in.sdf", late_labels(200))
        for name, unit in (("gap_ev", ""), ("gap_ev", "eV"), ("gap_ev", "Ha")):
            stages = v.stages.replace("labels: [gap]", "labels: [%s], properties: {%s: {unit: '%s', task: classification, "
                                      "description: measured}}" % (name, name, unit))
            stages = stages.replace("property: gap_ev", "property: mw")
            v.put("in.sdf", late_labels(200).replace(b"<gap>", b"<gap_ev>"))
            v.workflow(["in.sdf"], stages, extra=LIMITS + "models: {m: {path: m.safetensors}}\n")
            want = one_after_another(v, "apart" + unit)
            n = v.one("SELECT count(*) FROM property", workdir="apart" + unit)
            assert n == (2 if unit == "Ha" else 1), (unit, n)
            for jobs in ("1", "2", "5"):
                v.run("run", "w.yaml", "-q", "-j", jobs, "workdir=j" + jobs + unit)
                assert v.answer("j" + jobs + unit) == want, (name, unit, jobs)


def fault_points_while_all_are_at_work_are_survived():
    deaths, at_once = 0, 0
    with Screen(120) as v:
        want = one_after_another(v, "whole")
        for stage in TOGETHER:
            for point in UNIT_POINTS:
                for n in (1, 2, 4):
                    env = dict(os.environ, MOLSIEVE_FAULT="%s.%s:%d" % (stage, point, n))
                    v.copy("nothing", "killed")
                    status, _, _ = v.go("killed", expect=None, env=env)
                    assert status == (0 if point.startswith("finish") and n > 1 else 137), (stage, point, n, status)
                    deaths += status == 137
                    at_once += len(v.at_work("killed")) > 2
                    v.go("killed")
                    assert v.answer("killed") == want, (stage, point, n)
    assert at_once > 20, at_once
    print("%d deaths, %d with more than two stages begun" % (deaths, at_once))


def a_run_that_is_killed_repeatedly_finishes():
    """Each process ends after two more commits of some stage."""
    rng, lives = random.Random(5), 0
    with Screen(200) as v:
        want = one_after_another(v, "whole")
        status = 137
        while status == 137:
            point = "%s.unit.after_commit:%d" % (rng.choice(TOGETHER), rng.randint(1, 2))
            status, _, _ = v.go("killed", expect=None, env=dict(os.environ, MOLSIEVE_FAULT=point))
            v.sound("killed")
            lives += 1
        assert status == 0 and v.answer("killed") == want
    print("%d lives" % lives)


def signals_stop_all_of_them_and_all_go_on():
    rng, many, longest = random.Random(7), 0, 0
    with Screen(400) as v:
        v.workflow(["in.sdf"], v.stages.replace("unit: 20", "unit: 4"), extra=LIMITS + "models: {m: {path: m.safetensors}}\n")
        want = one_after_another(v, "whole")
        for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU):
            v.copy("nothing", "killed")
            child = v.start("killed")
            assert any(b"stage score:" in line for line in iter(child.stderr.readline, b"")), "it ended before that"
            time.sleep(rng.uniform(0, 0.1))
            began = time.time()
            child.send_signal(sig)
            text = child.communicate()[1].decode()
            longest = max(longest, time.time() - began)
            assert child.returncode == 75 and "run the same command again to continue" in text, (child.returncode, text)
            at_work = v.at_work("killed")
            assert "stopped" in v.one("SELECT state FROM run ORDER BY run_id DESC", workdir="killed")
            many += len(at_work) > 2
            if len(at_work) > 1:
                assert "in stages %s" % ", ".join(s for s in TOGETHER if s in at_work) in text, text
            v.run("status", "killed")
            assert "continues after" in v.run("plan", "w.yaml", "workdir=killed")[1]
            v.go("killed")
            assert v.answer("killed") == want, sig
        no_orphans()
    assert many >= 3 and longest < 25, (many, longest)


def a_failing_stage_stops_the_others_and_names_itself():
    with Screen(400) as v:
        records = molecules(400).split(b"$$$$\n")
        bad = [b"x\n", b"y\n  z\n\n  1  0  0  0  0  0  0  0  0  0999 V2000\n"] * 40
        v.put("in.sdf", b"$$$$\n".join(records[:100] + bad + records[100:]))
        v.workflow(["in.sdf"], v.stages, extra=LIMITS.replace("0.5", "0.1") + "models: {m: {path: m.safetensors}}\n")
        _, _, err = v.go("run", expect=3)
        assert "limits.failures.max_fraction" in err and "stage prepare" in err, err
        states = v.sound("run")
        assert states["prepare"] == "running" and states["score"] == "running", states
        v.go("run", "limits.failures.max_fraction=0.5")
        v.go("whole", "limits.failures.max_fraction=0.5")
        assert v.answer("run") == v.answer("whole")
        v.run("run", "w.yaml", "-q", "-k", "workdir=passed", expect=3)  # the run still finishes
        assert v.answer("passed") == v.answer("whole")


def a_late_failure_ends_long_work_of_other_stages():
    """When a stage fails, conformers that take minutes are not waited for: one unit of them
    keeps one of two workers busy while the other reads what ends the run."""
    good = sieve.lines_of(sieve.data("library.smi"), 2000)
    with sieve.Project() as p:
        p.put("a.smi", good + b"\x01 bad\n" * 400)
        p.workflow(["a.smi"], "  read: {unit: 2000}\n  prepare: {conformers: {source: generate, cpu_limit: 20s}}\n",
                   extra="limits: {failures: {max_count: 10}}\n")
        began = time.time()
        _, _, err = p.run("run", "w.yaml", "-q", "-j", "2", expect=3)
        assert "stage read" in err, err
        assert p.one("SELECT count(*) FROM unit JOIN stage USING(stage_id) WHERE name='prepare'") == 0
        assert time.time() - began < 30, "the failure of read waited for prepare"
        no_orphans()


def peak_kib(v, workdir, n):
    v.put("in.sdf", b"".join([sieve.sdf_records(sieve.data("qm9/qm9_dev_2500.sdf.gz"), 2500)] * n))
    child = subprocess.Popen(v.command("run", "w.yaml", "-q", "-j", "2", "workdir=" + workdir, "stages.prepare.dedupe.by=none",
                                       "stages.read.unit=100"), cwd=v.dir)
    _, status, usage = os.wait4(child.pid, 0)
    assert status == 0
    return usage.ru_maxrss


def memory_does_not_grow_with_the_number_of_molecules():
    """With ten times the molecules only the page caches of the databases may grow."""
    if resource.getpagesize() != 4096 or b"__asan_init" in open(sieve.PROGRAM, "rb").read():
        sieve.skip("what is resident says nothing here")
    with Screen(60) as v:
        little, much = peak_kib(v, "little", 1), peak_kib(v, "much", 10)
        print("peak RSS %d MiB for 2,500 molecules, %d MiB for 25,000" % (little >> 10, much >> 10))
        assert much < little + (80 << 10) and much < 250 << 10, (little, much)


if __name__ == "__main__":
    sieve.main([parallel_stages_give_the_bytes_of_serial_ones, fault_points_while_all_are_at_work_are_survived,
                a_run_that_is_killed_repeatedly_finishes, signals_stop_all_of_them_and_all_go_on,
                a_failing_stage_stops_the_others_and_names_itself, a_late_failure_ends_long_work_of_other_stages,
                memory_does_not_grow_with_the_number_of_molecules])
