#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A library of SMILES through molsieve and through Chemprop 2: wall and CPU time, memory, what a kill leaves.

    MOLSIEVE=build/release/bin/molsieve tests/bench/million.py WORK SMILES_FILE... [--molecules N] [--chemprop PROGRAM]

One step after the other, on the same cores. A step that is done is a line of WORK/steps.jsonl and is not done again: the same command
continues, another --molecules or --steps adds to it. At the end it prints the table.

    --molecules N   lines of the library (1000000)
    --chemprop P    chemprop of PyPI, in an environment of its own; without it molsieve alone
    --cores N       that both may use (all)
    --steps A,B     only these: fit, predict, run, killed (of molsieve), cfit, cpredict, ccuik, cone, cboth, ckilled (of Chemprop), odd

The library: the distinct SMILES of the files in random order; when they are used up, those that begin with a methyl group, with a
prefix, a new one for each pass, as in scale.py. The models: each program learns workflows/data/esol.csv, molsieve
trees and a Gaussian process without structures (`fit --family trees,gp`), Chemprop with its defaults; the same tenth is held out.

    fit, cfit            the training
    predict, cpredict    `molsieve predict`, `chemprop predict`; ccuik: with --use-cuikmolmaker-featurization; cone: with one thread of
                         OpenMP (several wait for each other by computing, which costs CPU seconds where others want the cores); cboth: with both
    run                  a workflow: read, prepare, score, rank; all scores in a database
    killed, ckilled      SIGKILL to all processes in the middle of each of these, then the same command again
    odd                  1,000 molecules and four lines that are none, through both

CPU seconds are those of all processes of a step (getrusage). Memory is the largest sum of proportional set sizes over its processes, looked
at once a second, in short steps more often."""
import argparse
import csv
import ctypes
import filecmp
import gzip
import json
import math
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time

from scale import prefixes

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PR_SET_CHILD_SUBREAPER = 36
ODD = ["CC(=O", "c1ccccc1)C", "", "not a molecule"]
WORKFLOW = """format: 1
name: million
workdir: run
limits: {failures: {max_fraction: 1}}
inputs: [{path: "%s", format: csv, columns: {smiles: smiles, title: title}}]
models: {m: {path: logS.safetensors}}
stages:
  read: {}
  prepare: {conformers: {source: none}, labels: none%s}
  graph: {edges: topology}
  score: {}
  rank: {objectives: [{property: logS, goal: maximise}], top: 1000}
  write: {csv: hits.csv}
"""


# ---- the library ----

def lines_of(name):
    with (gzip.open if name.endswith(".gz") else open)(name, "rt") as f:
        return [line.split()[0] for line in f if line.strip()]


def library(n, files):
    """n SMILES; how many of them are lines of the files."""
    real = sorted({s for name in files for s in lines_of(name)})
    random.Random(1).shuffle(real)
    real = real[:n]
    made, methyl = [], [s for s in real if s[0] == "C" and s[1:2].isalpha() and s[1] != "l"]
    for p in prefixes():
        made += [p + s for s in methyl[:n - len(real) - len(made)]]
        if len(real) + len(made) >= n:
            return real + made, len(real)
    sys.exit("only %d molecules: more files are needed" % (len(real) + len(made)))


def put_library(path, n, files):
    if not os.path.exists(path):
        smiles, real = library(n, files)
        with open(path + ".tmp", "w") as f:
            f.write("smiles,title\n" + "".join("%s,m%d\n" % (s, k) for k, s in enumerate(smiles)))
        os.rename(path + ".tmp", path)
        print("%s: %d molecules, %d of them as in the files" % (path, n, real))


def put_tables(work):
    """The measured solubilities: a tenth is held out from both programs."""
    with open(os.path.join(SOURCE, "workflows/data/esol.csv")) as f:
        rows = list(csv.DictReader(f))
    random.Random(2).shuffle(rows)
    n = len(rows) // 10
    for name, part in (("test.csv", rows[:n]), ("train.csv", rows[n:])):
        with open(os.path.join(work, name), "w") as f:
            f.write("smiles,logS\n" + "".join("%s,%s\n" % (r["smiles"].strip(), r["logS"]) for r in part))


def put_odd(work, path):
    with open(path) as f:
        lines = [next(f) for _ in range(1001)]
    for k, line in enumerate(ODD):
        lines.insert(250 * k + 10, "%s,odd%d\n" % (line, k))
    with open(os.path.join(work, "odd.csv"), "w") as f:
        f.writelines(lines)


# ---- processes ----

def children(pid):
    """All processes below pid."""
    found = []
    try:
        for task in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/children" % (pid, task)) as f:
                for child in map(int, f.read().split()):
                    found += [child] + children(child)
    except OSError:
        pass
    return found


def memory(pids):
    total = 0
    for pid in pids:
        try:
            with open("/proc/%d/smaps_rollup" % pid) as f:
                total += [int(line.split()[1]) for line in f if line.startswith("Pss:")][0]
        except (OSError, IndexError):
            pass
    return total / 1024


def orphans_gone():
    """Waits for processes whose parent was killed: they are ours now."""
    for pid in children(os.getpid()):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def timed(work, command, log, kill_after=None, env=None):
    """Runs a command in work; its status, times and memory. kill_after: seconds until all its processes are killed. env: more variables."""
    before, start, peak, looked = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic(), 0, 0
    with open(os.path.join(work, log), "w") as f:
        p = subprocess.Popen(command, cwd=work, stdout=f, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                             env=dict(os.environ, **(env or {})))
        while p.poll() is None:
            now = time.monotonic()
            if now - looked > min(1, (now - start) / 20):
                peak, looked = max(peak, memory(children(os.getpid()))), now
            if kill_after is not None and time.monotonic() - start > kill_after:
                for pid in children(os.getpid()):
                    os.kill(pid, signal.SIGKILL)
                p.wait()
            time.sleep(0.2)
    wall = time.monotonic() - start
    orphans_gone()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {"status": p.returncode, "wall": wall, "user": after.ru_utime - before.ru_utime,
            "system": after.ru_stime - before.ru_stime, "MB": peak}


# ---- what each program is asked for ----

class Programs:
    def __init__(self, o):
        self.o, self.work = o, o.work
        self.cores = len(os.sched_getaffinity(0))

    def fit(self):
        return [self.o.molsieve, "fit", "train.csv", "--target", "logS", "-o", "logS", "--family", "trees,gp",
                "-j", str(self.cores)]

    def predict(self, table, out):
        return [self.o.molsieve, "predict", "logS.safetensors", table, "-o", out, "-j", str(self.cores)]

    def run(self, workdir):
        return [self.o.molsieve, "run", "w.yaml", "-j", str(self.cores), "workdir=" + workdir]

    def cfit(self):
        return [self.o.chemprop, "train", "--data-path", "train.csv", "--task-type", "regression", "--output-dir", "chemprop-model"]

    def cpredict(self, table, out, *more):
        return [self.o.chemprop, "predict", "--test-path", table, "--model-paths", "chemprop-model/model_0/best.pt", "--preds-path", out,
                *more]

    def digest(self, workdir):
        return subprocess.run([self.o.molsieve, "db", "digest", os.path.join(workdir, "results.db")], cwd=self.work, check=True,
                              capture_output=True, text=True).stdout.split()[0]


def rows_of(path, column="logS"):
    """Rows of a table of predictions, and how many have a number; None where there is no table."""
    if not os.path.exists(path):
        return None
    with open(path, newline="") as f:
        values = [row.get(column) or "" for row in csv.DictReader(f)]
    return [len(values), sum(v not in ("", "nan") for v in values)]


def errors(work, table):
    """MAE and RMSE of a table of predictions for the held-out molecules, which it has in their order."""
    with open(os.path.join(work, "test.csv")) as f:
        measured = [float(r["logS"]) for r in csv.DictReader(f)]
    with open(os.path.join(work, table)) as f:
        d = [float(r["logS"]) - y for r, y in zip(csv.DictReader(f), measured)]
    return [sum(map(abs, d)) / len(d), math.sqrt(sum(x * x for x in d) / len(d))]


class Steps:
    """The steps by name; each gives what goes into its line."""

    def __init__(self, o):
        self.o, self.work, self.ask = o, o.work, Programs(o)
        self.table = "library-%d.csv" % o.molecules
        self.file = os.path.join(o.work, "steps.jsonl")

    def path(self, name):
        return os.path.join(self.work, name)

    def out(self, name):
        return "%s-%d.csv" % (name, self.o.molecules)

    def all(self):
        steps = {"fit": self.fit, "predict": self.predict, "run": self.run, "killed": self.killed}
        if self.o.chemprop:
            steps.update(cfit=self.cfit, cpredict=self.cpredict, ccuik=self.ccuik, cone=self.cone, cboth=self.cboth, ckilled=self.ckilled)
        steps["odd"] = self.odd
        return steps

    def done(self):
        if not os.path.exists(self.file):
            return []
        with open(self.file) as f:
            return [json.loads(line) for line in f]

    def found(self, step):
        return [d for d in self.done() if d["step"] == step and d["molecules"] in (None, self.o.molecules)]

    def fit(self):
        got = timed(self.work, self.ask.fit(), "fit.log")
        timed(self.work, self.ask.predict("test.csv", "test-molsieve.csv"), "test.log")
        return dict(got, errors=errors(self.work, "test-molsieve.csv"))

    def cfit(self):
        got = timed(self.work, self.ask.cfit(), "cfit.log")
        timed(self.work, self.ask.cpredict("test.csv", "test-chemprop.csv"), "ctest.log")
        return dict(got, errors=errors(self.work, "test-chemprop.csv"))

    def predict(self):
        got = timed(self.work, self.ask.predict(self.table, self.out("predict")), "predict.log")
        return dict(got, rows=rows_of(self.path(self.out("predict"))))

    def cpredict(self, *more, name="cpredict", env=None):
        got = timed(self.work, self.ask.cpredict(self.table, self.out(name), *more), name + ".log", env=env)
        return dict(got, rows=rows_of(self.path(self.out(name))))

    def ccuik(self):
        return self.cpredict("--use-cuikmolmaker-featurization", name="ccuik")

    def cone(self):
        return self.cpredict(name="cone", env={"OMP_NUM_THREADS": "1"})

    def cboth(self):
        return self.cpredict("--use-cuikmolmaker-featurization", name="cboth", env={"OMP_NUM_THREADS": "1"})

    def run(self):
        shutil.rmtree(self.path("run"), ignore_errors=True)
        with open(self.path("w.yaml"), "w") as f:
            f.write(WORKFLOW % (self.table, ", neutralise: true" if b"neutralise: true" in self.trained_by() else ""))
        got = timed(self.work, self.ask.run("run"), "run.log")
        if got["status"] != 0:
            return got
        return dict(got, digest=self.ask.digest("run"), bytes=os.path.getsize(self.path("run/results.db")))

    def trained_by(self):
        with open(self.path("logS.fit/train.yaml"), "rb") as f:
            return f.read()

    def killed(self):
        """Both ways of molsieve."""
        return {"predict": self.kill("predict", self.ask.predict(self.table, "killed.csv"), "killed.csv"),
                "run": self.kill("run", self.ask.run("killed"), None)}

    def ckilled(self):
        return {"cpredict": self.kill("cpredict", self.ask.cpredict(self.table, "ckilled.csv"), "ckilled.csv")}

    def kill(self, like, command, out):
        """Killed after half the wall time of the undisturbed step; the work of a run stays, a table may be missing."""
        if not self.found(like):
            sys.exit("the step %s comes first" % like)
        whole = self.found(like)[-1]
        shutil.rmtree(self.path("killed"), ignore_errors=True)
        if out and os.path.exists(self.path(out)):
            os.remove(self.path(out))
        first = timed(self.work, command, like + "-killed.log", kill_after=whole["wall"] / 2)
        left = rows_of(self.path(out)) if out else None
        again = timed(self.work, command, like + "-again.log")
        if like == "run":
            same = self.ask.digest("killed") == whole["digest"]
        else:
            same = filecmp.cmp(self.path(out), self.path(self.out(like)), False)
        return {"first": first, "left": left, "again": again, "same": same}

    def odd(self):
        put_odd(self.work, self.path(self.table))
        got = {}
        for name, command in [("molsieve", self.ask.predict("odd.csv", "odd-molsieve.csv"))] + (
                [("chemprop", self.ask.cpredict("odd.csv", "odd-chemprop.csv"))] if self.o.chemprop else []):
            out = self.path("odd-%s.csv" % name)
            if os.path.exists(out):
                os.remove(out)
            got[name] = dict(timed(self.work, command, "odd-%s.log" % name), rows=rows_of(out))
        return got

    def work_off(self):
        chosen = self.o.steps.split(",") if self.o.steps else list(self.all())
        for name in chosen:
            if name not in self.all():
                sys.exit("no step %s (or no --chemprop for it)" % name)
            if not self.found(name):
                print("begins: %s, load %.1f" % (name, os.getloadavg()[0]), flush=True)
                line = dict(self.all()[name](), step=name, molecules=None if name in ("fit", "cfit") else self.o.molecules,
                            cores=self.ask.cores, load=os.getloadavg()[0])
                if line.get("status", 0) != 0:
                    sys.exit("%s: status %d; %s/%s.log says why" % (name, line["status"], self.work, name))
                with open(self.file, "a") as f:
                    f.write(json.dumps(line) + "\n")


# ---- the table ----

def row(name, d, more=""):
    print("| %s | %d | %.1f | %.1f | %.0f | %s |" % (name, d["status"], d["wall"], d["user"] + d["system"], d["MB"], more))


def show(done):
    print("\n| step | status | wall s | CPU s | peak MB | |\n|---|--:|--:|--:|--:|---|")
    for d in done:
        name = "%s%s" % (d["step"], "" if d["molecules"] is None else ", %s" % format(d["molecules"], ","))
        if "errors" in d:
            row(name, d, "held out: MAE %.3f, RMSE %.3f" % tuple(d["errors"]))
        elif "rows" in d:
            row(name, d, "%.2f ms of CPU each; %d rows, %d with a number" % (
                1000 * (d["user"] + d["system"]) / d["molecules"], *(d["rows"] or (0, 0))))
        elif "digest" in d:
            row(name, d, "%.2f ms of CPU each; results.db %.0f MB" % (1000 * (d["user"] + d["system"]) / d["molecules"], d["bytes"] / 1e6))
        for way in ("predict", "run", "cpredict"):
            if way in d:
                row("%s: %s" % (name, way), d[way]["first"], "killed; %s" % (
                    "no table" if d[way]["left"] is None and way != "run" else "results.db is there" if way == "run" else "a table"))
                row("%s: %s again" % (name, way), d[way]["again"], "%s as undisturbed" % ("the same" if d[way]["same"] else "not the same bytes"))
        for program in ("molsieve", "chemprop"):
            if program in d:
                row("%s: %s" % (name, program), d[program], "%s rows, %s with a number" % tuple(d[program]["rows"] or ("no", "none")))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("work")
    p.add_argument("files", nargs="+")
    p.add_argument("--molecules", type=int, default=1000000)
    p.add_argument("--chemprop")
    p.add_argument("--cores", type=int)
    p.add_argument("--steps")
    o = p.parse_args()
    o.molsieve = os.path.abspath(os.environ.get("MOLSIEVE", os.path.join(SOURCE, "build/release/bin/molsieve")))
    if o.cores:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:o.cores])
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    os.makedirs(o.work, exist_ok=True)
    steps = Steps(o)
    put_library(steps.path(steps.table), o.molecules, o.files)
    put_tables(o.work)
    steps.work_off()
    show(steps.done())


if __name__ == "__main__":
    main()
