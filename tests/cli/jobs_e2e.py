#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Job scripts: their text, and their effect in a real Slurm and under stubs of
qsub and bsub that execute them."""
import os
import shutil
import subprocess
import sys

import sieve
import slurm

STAGES = """  read: {unit: 8}
  prepare: {conformers: {source: none}}
  rank: {objectives: [{property: mw, goal: maximise}], top: 20}
  write: {csv: hits.csv}
"""
CHEM = os.path.join(os.path.dirname(os.path.abspath(sieve.PROGRAM)), "molsieve-chem")
LINE = {"slurm": "#SBATCH", "pbs": "#PBS", "lsf": "#BSUB", "sge": "#$"}


# Runs in front of the worker: passes its greeting on, then waits while the gate is closed.
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
        self.put("a.smi", sieve.lines_of(sieve.data("library.smi"), 64))
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
            gpus = [line for line in directives(text, kind) if "gpu" in line]
            assert not gpus, gpus  # the stages after the merge compute no network
            text = script(kind, "--array", "8", "--merge", "name=it's")
            assert " --of 8 &&\n" in text and "it'\\''s" in text and "shard=" not in text, text
        assert "only stage train works in several tasks" in script("slurm", "-N", "2", expect=2)
        assert "scheduler.warn" in script("slurm", "-t", "10m", expect=2)
        assert "there is no array" in script("slurm", "--missing", expect=2)
        assert "scheduler.cpus: 0 is outside 1..4096" in script("slurm", "-c", "0", expect=2)
        assert "letters, digits" in script("pbs", "workdir=a b", expect=2)
        assert "name the scheduler" in p.run("script", "w.yaml", expect=2, env=dict(os.environ, PATH=p.dir))[2]


# ---- stubs that execute the scripts they get

# qsub of PBS and of Grid Engine, bsub: run the script at once, an array task after task, with the variables
# of the real one, and again when it asks for that. The gate opens at the second start of a job.
STUB = """#!%(python)s -SE
import os, re, signal, subprocess, sys, time
kind, here = "%(kind)s", "%(dir)s"
text = sys.stdin.read() if kind == "lsf" else open(sys.argv[-1]).read()
with open(here + "/sent", "a") as f:
    f.write(" ".join(sys.argv[1:-1]) + "\\n")
job = str(len(open(here + "/sent").readlines()) + 10)
array = re.search({"pbs": r"#PBS -J (0)-(\\d+)", "lsf": r"#BSUB -J .*\\[(1)-(\\d+)\\]", "sge": r"#[$] -t (1)-(\\d+)"}[kind], text)
again = {"pbs": None, "lsf": 75, "sge": 99}[kind]

def variables(task):
    number = str(task or 0)
    return {"pbs": dict({"PBS_JOBID": job + ("[%%s]" %% number if array else "") + ".srv", "PBS_O_WORKDIR": here},
                        **({"PBS_ARRAY_INDEX": number} if array else {})),
            "lsf": {"LSB_JOBID": job, "LSB_JOBINDEX": number, "LS_SUBCWD": here},
            "sge": {"JOB_ID": job, "SGE_TASK_ID": number if array else "undefined", "SGE_O_WORKDIR": here}}[kind]

def start(task):
    with open(here + "/%(kind)s.log", "a") as log:
        child = subprocess.Popen(["/bin/bash", "-s"], stdin=subprocess.PIPE, stdout=log, stderr=log, text=True,
                                 env=dict(os.environ, **variables(task)), start_new_session=True)
        child.stdin.write(text)
        child.stdin.close()
        if kind == "sge" and os.path.exists(here + "/closed"):  # the soft limit: a signal to all of the job
            while not os.path.exists(here + "/sge/results.db"):
                time.sleep(0.05)
            os.killpg(child.pid, signal.SIGUSR1)
        return child.wait()

if int(job) > 11 and os.path.exists(here + "/closed"):
    os.unlink(here + "/closed")
for task in range(int(array[1]), int(array[2]) + 1) if array else [None]:
    while start(task) == again:
        if os.path.exists(here + "/closed"):
            os.unlink(here + "/closed")
print({"pbs": job + ("[]" if array else "") + ".srv", "lsf": "Job <%%s> is submitted to queue <normal>." %% job,
       "sge": job + (".1-%%s:1" %% array[2] if array else "")}[kind])
"""
# The job has one second left while the gate is closed.
LIMIT = {
    "pbs": ("qstat", """#!/bin/sh
[ "$1 $2" = "-f 11.srv" ] && echo "    Resource_List.walltime = 00:00:50" &&
    echo "    stime = $(LC_ALL=C /bin/date '+%a %b %e %H:%M:%S %Y')"
"""),
    "lsf": ("bjobs", '#!/bin/sh\n[ -e "%s/closed" ] && echo "0:00 L" || echo "9:59 L"\n'),
    "sge": ("qconf", "#!/bin/sh\n"),
}


def pbs_lsf_and_grid_engine_jobs_resubmit_and_merge():
    for kind in ("pbs", "lsf", "sge"):
        with Gated() as p:
            program = p.path("gated", "molsieve")
            os.mkdir(p.path("bin"))
            name, text = LIMIT[kind]
            for name, text in (("bsub" if kind == "lsf" else "qsub", STUB % {"python": sys.executable, "kind": kind, "dir": p.dir}),
                               (name, text.replace("%s", p.dir))):
                p.put("bin/" + name, text)
                os.chmod(p.path("bin", name), 0o755)

            def submit(workdir, *more):
                job = subprocess.run([program, "submit", "w.yaml", "workdir=" + workdir, *more], cwd=p.dir, capture_output=True,
                                     text=True, env={"PATH": p.path("bin"), "HOME": p.dir})
                log = open(p.path(kind + ".log")).read()
                assert job.returncode == 0, (job, log)
                return job.stdout, log
            out, log = submit(kind)
            assert "job 11" in out, out
            assert p.runs(kind) == [("stopped", 75, kind), ("done", 0, kind)], (p.runs(kind), log)
            assert p.digest(kind) == p.want
            out, log = submit("parts", "-a", "3")
            assert "then merges in job" in out, out
            assert p.digest("parts") == p.want, log
            sent = open(p.path("sent")).read().splitlines()
            first = 12 + (kind == "pbs")  # PBS was sent the same job twice
            assert sent[-1] == {"pbs": "-W depend=afterany:%d[].srv", "lsf": "-w", "sge": "-terse -hold_jid %d"}[kind].replace(
                "%d", str(first)), sent


# ---- campaigns

CAMPAIGN = """  read: {unit: 20}
  prepare: {conformers: {source: none}, labels: [none]}
  graph: {edges: topology}
  split: {fractions: {train: 1, valid: 0, test: 0}}
  train: {name: m, family: [gp], targets: [{name: logS, unit: "log10(mol/L)", better: high}]}
  score: {}
  acquire: {strategy: ucb, count: 12, answers: {table: lib.csv}, campaign: {rounds: 2, first: diverse}}
"""


class Campaign(sieve.Project):
    """A campaign over 60 molecules, and what it gives on this machine alone."""

    def __enter__(self):
        super().__enter__()
        self.put("lib.csv", sieve.lines_of(os.path.join(os.environ["MOLSIEVE_SOURCE"], "workflows/data/esol.csv"), 61))
        self.workflow(["lib.csv"], CAMPAIGN, name="c.yaml", extra="scheduler: {cpus: 2}\n")
        self.run("campaign", "c.yaml", "-q", "workdir=whole")
        self.want = self.digest("whole")
        return self

    def digest(self, workdir):
        return self.run("db", "digest", "--results-only", workdir)[1], self.rows("SELECT * FROM v_acquired", workdir=workdir)

    def logs(self, workdir):
        return "".join(open(self.path(workdir, f)).read() for f in sorted(os.listdir(self.path(workdir))) if f.startswith("slurm"))


def campaigns_as_jobs_give_what_one_machine_gives():
    """Rounds that submit the tasks that score and the next round, under qsub and bsub that execute them; what is refused."""
    with Campaign() as p:
        os.mkdir(p.path("bin"))
        for kind in ("pbs", "lsf", "sge"):
            for name in ("qsub", "bsub", "qconf"):
                if os.path.exists(p.path("bin", name)):
                    os.unlink(p.path("bin", name))
            p.put("sent", "a job before\n")
            p.put(kind + ".log", "")
            for name, text in (("bsub" if kind == "lsf" else "qsub", STUB % {"python": sys.executable, "kind": kind, "dir": p.dir}),
                               LIMIT[kind][:1] + (LIMIT[kind][1].replace("%s", p.dir),)):
                p.put("bin/" + name, text)
                os.chmod(p.path("bin", name), 0o755)
            job = subprocess.run(p.command("submit", "c.yaml", "workdir=" + kind, "--campaign", "-a", "2"), cwd=p.dir, capture_output=True,
                                 text=True, env={"PATH": p.path("bin"), "HOME": p.dir})
            log = open(p.path(kind + ".log")).read()
            assert job.returncode == 0 and p.digest(kind) == p.want, (job, log)
            assert len(open(p.path("sent")).read().splitlines()) == 1 + 5, log  # three rounds, and two arrays between them
            assert "--campaign" in open(p.path(kind, "job-round.sh")).read() and '--part "$shard/2"' in open(p.path(kind, "job-scores.sh")).read()
        # one job does it all; status 75 as the scheduler wants it
        script = {kind: p.run("script", "c.yaml", "--campaign", "-s", kind)[1] for kind in LINE}
        assert all(" campaign c.yaml -j 2 --max-time auto\n" in x for x in script.values())
        assert "scontrol requeue" in script["slurm"] and "rc=99" in script["sge"] and '-Q "75"' in script["lsf"] and "scheduler.restarts=49 --campaign\n" in script["pbs"]
        p.workflow(["lib.csv"], STAGES)
        for words, said in ((["w.yaml", "--campaign"], "--campaign needs the stage acquire"), (["c.yaml", "--campaign", "-a", "2", "--missing"], "leave --missing out"),
                            (["c.yaml", "--campaign", "-N", "2"], "a campaign trains in one task")):
            assert said in p.run("script", *words, "-s", "slurm", expect=2)[2], words


# ---- a real Slurm


def until(good, what):
    sieve.until(good, what, seconds=200, pause=0.5)


def slurm_jobs_resubmit_until_nothing_more_can_be_done():
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
        job = ended(stuck)
        log = p.log("stuck", "slurm")
        assert (job["JobState"], job["ExitCode"], job["Restarts"]) == ("FAILED", "1:0", "2"), (job, log)
        assert p.runs("stuck") == [("stopped", 75, "slurm"), ("stopped", 75, "slurm"), ("failed", 1, "slurm")], log
        assert "two restarts in a row finished no unit" in log and log.count("molsieve: stopped by") == 3, log  # by its own clock, or on a slow machine by Slurm's signal
        assert cluster.job(cancelled)["Restarts"] == "0" and len(p.runs("cancelled")) == 1
        p.run("run", "w.yaml", "-q", "workdir=stuck")
        assert p.digest("stuck") == p.want


def lost_slurm_array_tasks_are_resubmitted():
    """8 shards of which 2 die; the merge names them; --missing sends them; the rows of one run."""
    why = slurm.missing()
    if why:
        sieve.skip(why)
    with Gated() as p, slurm.Cluster() as cluster:
        os.unlink(p.path("closed"))

        def submit(*more):
            status, out, err = cluster.run(*p.command("submit", "w.yaml", "-a", "8", "-t", "5m", "scheduler.warn=1m", *more), cwd=p.dir)
            assert status == 0 and "Slurm array" in out, (status, out, err)
            return cluster.wait(out.split("merges in job ")[1].split()[0], seconds=200)

        dies = 'case "$${SLURM_ARRAY_TASK_ID:-}" in 3 | 6) export MOLSIEVE_FAULT=prepare.unit.before_commit:1 ;; esac'
        job = submit("scheduler.setup=['%s']" % dies)
        log = p.log("run", "slurm")
        assert (job["JobState"], job["ExitCode"]) == ("FAILED", "1:0"), (job, log)
        assert "shards that are not finished: 3 6\n" in log and "submit w.yaml" in log, log
        assert not os.path.exists(p.path("run", "results.db"))
        job = submit("--missing")
        assert (job["JobState"], job["ExitCode"]) == ("COMPLETED", "0:0"), (job, p.log("run", "slurm"))
        assert "shards=(3 6)" in open(p.path("run", "job-shards.sh")).read()
        assert p.digest("run") == p.want


def slurm_rounds_and_arrays_give_what_one_machine_gives():
    """A campaign of three jobs and two arrays between them, in the second of which a task dies: the next round names its part, and a
    second submission goes on."""
    why = slurm.missing()
    if why:
        sieve.skip(why)
    with Campaign() as p, slurm.Cluster() as cluster:
        def submit(*more):
            status, out, err = cluster.run(*p.command("submit", "c.yaml", "--campaign", "-a", "2", "-t", "5m", "scheduler.warn=1m", *more), cwd=p.dir)
            assert status == 0, (status, out, err)
            return out

        def queue():
            return cluster.run("squeue", "-h", "-o", "%i")[1].split()
        once = 'case "$${SLURM_ARRAY_TASK_ID:-}" in 1) if [ -e first ] && [ ! -e second ]; then touch second; export MOLSIEVE_FAULT=score.part.before_commit:1; fi; touch first ;; esac'
        out = submit("scheduler.setup=['%s']" % once)
        assert out.startswith("Slurm job ") and "array" not in out, out
        until(lambda: not queue(), "the campaign did not end")
        log = p.logs("run")
        assert "1 of 2 parts of the scores are not there, and jobs for all were submitted: 1; see their logs, then submit the campaign again\n" in log, log
        assert "the campaign is over" not in log and p.run("campaign", "c.yaml", "--parts", "2", "--missing")[1] == "1\n"
        out = submit()
        assert out.startswith("Slurm array ") and "then the next round in job" in out, out
        assert "shard=1\n" in open(p.path("run", "job-scores.sh")).read()
        until(lambda: not queue(), "the campaign did not end")
        log = p.logs("run")
        assert "the campaign is over: 2 rounds are done" in log and p.digest("run") == p.want, log


if __name__ == "__main__":
    sieve.main([scripts_ask_for_what_the_settings_say, slurm_jobs_resubmit_until_nothing_more_can_be_done,
                pbs_lsf_and_grid_engine_jobs_resubmit_and_merge,
                lost_slurm_array_tasks_are_resubmitted, campaigns_as_jobs_give_what_one_machine_gives,
                slurm_rounds_and_arrays_give_what_one_machine_gives])
