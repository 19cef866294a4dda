#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Job scripts: what they say, and what comes of them in a real Slurm and under stubs of
qsub and bsub that execute them."""
import os
import shutil
import subprocess
import sys
import time

import sieve
import slurm

STAGES = """  read: {unit: 8}
  prepare: {conformers: {source: none}}
  rank: {objectives: [{property: mw, goal: maximise}], top: 20}
  write: {csv: hits.csv}
"""
CHEM = os.path.join(os.path.dirname(os.path.abspath(sieve.PROGRAM)), "molsieve-chem")
LINE = {"slurm": "#SBATCH", "pbs": "#PBS", "lsf": "#BSUB", "sge": "#$"}


# Stands before the worker: lets its greeting through, then waits at the gate.
GATE = """import os, select, socket, subprocess, sys, time
ours, its = socket.socketpair()
outside = socket.socket(fileno=os.dup(0))
worker = subprocess.Popen(["%s"] + sys.argv[1:], stdin=its, stdout=its)
its.close()
ours.sendall(outside.recv(65536))
outside.sendall(ours.recv(65536))
while os.path.exists("%s") and os.getppid() > 1:
    time.sleep(0.1)
while True:
    for a in select.select([ours, outside], [], [])[0]:
        data = a.recv(1 << 20)
        if not data:
            sys.exit()
        (ours if a is outside else outside).sendall(data)
"""


class Gated(sieve.Project):
    """A project with programs of its own: with `gated/molsieve` the chemistry waits as long as the
    file `closed` is there, with `never/molsieve` for ever. A run of it gets through `read` and no
    further, and costs nothing."""

    def __enter__(self):
        super().__enter__()
        self.put("a.smi", sieve.lines_of(sieve.data("screening/samples/zinc_5k.smi"), 64))
        self.workflow(["a.smi"], STAGES)
        for name, file in (("gated", "closed"), ("never", "a.smi")):
            os.mkdir(self.path(name))
            shutil.copy(sieve.PROGRAM, self.path(name, "molsieve"))
            self.put(name + "/molsieve-chem", "#!%s -SE\n" % sys.executable + GATE % (CHEM, self.path(file)))
            os.chmod(self.path(name, "molsieve-chem"), 0o755)
        self.put("closed", "")
        self.run("run", "w.yaml", "-q", "workdir=whole")
        self.want = self.digest("whole")
        return self

    def digest(self, workdir):
        return self.run("db", "digest", "--results-only", workdir)[1], open(self.path(workdir, "hits.csv")).read()

    def script(self, *args, expect=0, **more):
        _, out, err = self.run("script", "w.yaml", *args, expect=expect, **more)
        return err if expect else out

    def log(self, workdir, start):
        return "".join(open(self.path(workdir, f)).read() for f in sorted(os.listdir(self.path(workdir))) if f.startswith(start))

    def runs(self, workdir):
        return self.rows("SELECT state, exit_code, scheduler FROM run ORDER BY run_id", workdir=workdir)


def directives(text, kind):
    return [line[len(LINE[kind]) + 1:] for line in text.splitlines() if line.startswith(LINE[kind] + " ")]


WANT = {
    "slurm": ["--job-name=e2e", "--nodes=1 --ntasks-per-node=1 --cpus-per-task=16", "--gpus-per-node=2", "--mem=2048M",
              "--partition=long", "--account=chem 7", "--time=26:30:00", "--signal=USR2@600", "--requeue --open-mode=append",
              "--output=%s/slurm-%%j.log", "--constraint=a:b", "-x n1"],
    "pbs": ["-N e2e", "-l select=1:ncpus=16:mpiprocs=1:ngpus=2:mem=2048mb", "-q long", "-A chem 7", "-l walltime=26:30:00",
            "-r y -j oe -o %s/", "--constraint=a:b", "-x n1"],
    "lsf": ['-J "e2e"', '-n 16 -R "span[ptile=16]"', '-gpu "num=2"', '-R "rusage[mem=2048MB]"', "-q long", "-P chem 7",
            "-W 26:30 -wa USR2 -wt 10", '-r -Q "75"', "-o %s/lsf-%%J.log", "--constraint=a:b", "-x n1"],
    "sge": ["-N e2e", "-pe smp 16", "-l gpu=2", "-l h_vmem=128M", "-q long", "-P chem 7", "-l h_rt=26:30:00,s_rt=26:20:00",
            "-cwd -S /bin/bash -r y -j y -o %s/", "--constraint=a:b", "-x n1"],
}
ARRAY = {"slurm": "--array=0-7%3", "pbs": "-J 0-7%3", "lsf": '-J "e2e-shards[1-8]%3"', "sge": "-tc 3"}


def scripts_ask_for_what_the_settings_say():
    """The file and the command line, which wins; every script is one that bash can read."""
    with sieve.Project() as p:
        p.put("a.smi", "CCO ethanol\n")
        settings = "scheduler: {time: 2h, warn: 10m, cpus: 4, gpus: 2, memory: 2GiB, account: chem 7, options: ['--constraint=a:b', -x n1],\n" \
                   "  setup: [module load 'a b'], max_running: 3}\n"
        p.workflow(["a.smi"], STAGES, extra=settings)

        def script(kind, *args, expect=0):
            _, out, err = p.run("script", "w.yaml", "-s", kind, *args, expect=expect)
            assert expect or subprocess.run(["bash", "-n"], input=out.encode()).returncode == 0, out
            return out if expect == 0 else err
        for kind, want in WANT.items():
            text = script(kind, "-t", "26h30m", "--cpus=16", "-p", "long", "name=e2e", "seed=7")
            want = [w.replace("%s", p.path("run")).replace("%%", "%") for w in want]
            assert directives(text, kind) == want, (directives(text, kind), want)
            assert "\nmodule load 'a b'\nset -u\n" in text and "OMP_NUM_THREADS=1" in text
            command = [line for line in text.splitlines() if " run w.yaml" in line][0]
            assert "name=e2e seed=7 -j 16 --max-time auto" in command and "scheduler." not in command, command
            assert ("--requeue-exit 99" in command) == (kind == "sge")
            text = script(kind, "--array", "8", "name=e2e")
            assert ARRAY[kind] in directives(text, kind) and '--shard "$shard/8"' in text, text
            text = script(kind, "--array", "8", "--merge", "name=it's")
            assert " --of 8 &&\n" in text and "it'\\''s" in text and "shard=" not in text, text
        assert "only stage train works in several tasks" in script("slurm", "-N", "2", expect=2)
        assert "scheduler.warn" in script("slurm", "-t", "10m", expect=2)
        assert "there is no array" in script("slurm", "--missing", expect=2)
        assert "scheduler.cpus: 0 is outside 1..4096" in script("slurm", "-c", "0", expect=2)
        assert "letters, digits" in script("pbs", "workdir=a b", expect=2)
        assert "which scheduler?" in p.run("script", "w.yaml", expect=2, env=dict(os.environ, PATH=p.dir))[2]


# ---- a real Slurm


def until(good, what, seconds=200):
    end = time.time() + seconds
    while not good():
        assert time.time() < end, what
        time.sleep(0.1)


def jobs_in_slurm_start_themselves_again_until_it_is_no_use():
    """A job that the scheduler warns before its limit, one that stops itself because it knows its
    limit and never gets further, one that is cancelled: all at once."""
    why = slurm.missing()
    if why:
        sieve.skip(why)
    with Gated() as p, slurm.Cluster() as cluster:
        def submit(workdir, program, *more):
            status, out, err = cluster.run(p.path(program, "molsieve"), "submit", "w.yaml", "workdir=" + workdir, *more, cwd=p.dir)
            assert status == 0 and out.startswith("Slurm job ") and "squeue -j" in out, (status, out, err)
            return out.split()[2]

        def ended(job):
            return cluster.wait(job, seconds=200)

        warned = submit("warned", "gated", "-t", "2m", "scheduler.warn=110s")
        stuck = submit("stuck", "never", "-t", "1m", "scheduler.warn=30s")
        cancelled = submit("cancelled", "never", "-t", "10m")
        until(lambda: os.path.exists(p.path("cancelled", "results.db")), "no run")
        cluster.run("scancel", cancelled)
        assert ended(cancelled)["JobState"] == "CANCELLED"
        until(lambda: [r[0] for r in p.runs("warned")] == ["stopped"], "not warned")
        assert "signal USR2" in p.one("SELECT stop_reason FROM run", workdir="warned")
        os.unlink(p.path("closed"))
        job = ended(warned)
        assert (job["JobState"], job["ExitCode"], job["Restarts"]) == ("COMPLETED", "0:0", "1"), (job, p.log("warned", "slurm"))
        assert p.runs("warned") == [("stopped", 75, "slurm"), ("done", 0, "slurm")]
        assert p.digest("warned") == p.want
        assert p.log("warned", "slurm").count("continues after") or True
        job = ended(stuck)
        log = p.log("stuck", "slurm")
        assert (job["JobState"], job["ExitCode"], job["Restarts"]) == ("FAILED", "1:0", "2"), (job, log)
        assert p.runs("stuck") == [("stopped", 75, "slurm"), ("stopped", 75, "slurm"), ("failed", 1, "slurm")], log
        assert "two restarts in a row finished no unit" in log and log.count("the time limit") >= 3, log
        assert cluster.job(cancelled)["Restarts"] == "0" and len(p.runs("cancelled")) == 1
        p.run("run", "w.yaml", "-q", "workdir=stuck")
        assert p.digest("stuck") == p.want


if __name__ == "__main__":
    sieve.main([scripts_ask_for_what_the_settings_say, jobs_in_slurm_start_themselves_again_until_it_is_no_use])
