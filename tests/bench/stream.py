#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The whole pipeline, from a file to the ranking: seconds, CPU seconds and memory.

    MOLSIEVE=build/release/bin/molsieve tests/bench/stream.py speed  INPUT MODEL [COPIES] [setting=value ...]
    MOLSIEVE=build/release/bin/molsieve tests/bench/stream.py memory INPUT MODEL COPIES [COPIES ...] [setting=value ...]

INPUT is an SDF or SMILES file (.gz or not) that is read COPIES times as one
file; MODEL a model file, or none: then the run ends with the molecules. speed
runs each stage alone and all at once, with one worker and two, and prints the
best of $ROUNDS (1) rounds. CPU seconds hold when others use the machine too, wall
seconds do not. Everything is written to $TMPDIR and removed."""
import gzip
import os
import subprocess
import sys
import tempfile
import threading
import time

PROGRAM = os.path.abspath(os.environ["MOLSIEVE"]) if "MOLSIEVE" in os.environ else "molsieve"
TICK = os.sysconf("SC_CLK_TCK")
WORKFLOW = """format: 1
name: stream
seed: 1
workdir: run
limits: {failures: {max_fraction: 0.9}, disk_free_min: 0B}
inputs:
  - {path: %s}
%sstages:
  read: {}
  prepare: {conformers: {source: %s}, dedupe: {by: none}, labels: [none]}
"""
MODEL = """  graph: {edges: bonds}
  basis: {}
  score: {}
  rank: {objectives: [{property: mw, goal: maximise}], top: 100}
  write: {csv: hits.csv}
"""


class Watch(threading.Thread):
    """CPU of the main thread and peak memory of the process itself; /proc forgets both with its end."""

    def __init__(self, pid):
        super().__init__()
        self.pid, self.main_s, self.peak = pid, 0, 0
        self.start()

    def run(self):
        while True:
            try:
                with open("/proc/%d/task/%d/stat" % (self.pid, self.pid)) as f:
                    words = f.read().rpartition(")")[2].split()
                if words[0] == "Z":
                    return
                self.main_s = (int(words[11]) + int(words[12])) / TICK
                with open("/proc/%d/status" % self.pid) as f:
                    self.peak = max([self.peak] + [int(line.split()[1]) for line in f if line.startswith("VmHWM")])
            except (OSError, IndexError):
                return
            time.sleep(0.02)


def run(where, jobs, more):
    """Wall seconds, CPU seconds of all processes, those of the main thread, peak MiB of the main process."""
    began = time.time()
    child = subprocess.Popen([PROGRAM, "run", "w.yaml", "-q", "-j", str(jobs), *more], cwd=where)
    watch = Watch(child.pid)
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.time() - began
    watch.join()
    if status != 0:
        sys.exit("molsieve run: status %d" % (status >> 8))
    return wall, usage.ru_utime + usage.ru_stime, watch.main_s, watch.peak / 1024


def project(where, path, model, copies):
    opened = gzip.open if path.endswith(".gz") else open
    smiles = ".smi" in path
    with opened(path, "rb") as f:
        text = f.read()
    name = "in.smi" if smiles else "in.sdf"
    with open(os.path.join(where, name), "wb") as f:
        for _ in range(copies):
            f.write(text)
    models = "" if model == "none" else "models: {m: {path: %s}}\n" % os.path.abspath(model)
    with open(os.path.join(where, "w.yaml"), "w") as f:
        f.write(WORKFLOW % (name, models, "none" if smiles else "keep") + (MODEL if models else ""))
    return (text.count(b"\n") if smiles else text.count(b"$$$$")) * copies


def speed(where, n, model, settings):
    stages = ["read", "prepare"] + (["graph", "basis", "score", "write"] if model != "none" else [])
    best = {}
    for turn in range(int(os.environ.get("ROUNDS", "1"))):
        for jobs in (1, 2):
            alone = "%d-%d" % (turn, jobs)
            for stage in stages:
                here = run(where, jobs, ["workdir=alone" + alone, "--until", stage, *settings])
                best[stage, jobs] = min(best.get((stage, jobs), here), here)
            here = run(where, jobs, ["workdir=once" + alone, *settings])
            best["all at once", jobs] = min(best.get(("all at once", jobs), here), here)
            subprocess.run(["rm", "-rf", "alone" + alone, "once" + alone], cwd=where, check=True)
    print("| %s molecules | -j | wall s | molecules/s | CPU s | of the main thread | peak MiB |\n|---|--:|--:|--:|--:|--:|--:|" % f"{n:,}")
    for jobs in (1, 2):
        rows = [(stage, best[stage, jobs]) for stage in stages]
        rows.append(("one after another", tuple(sum(r[1][k] for r in rows) for k in range(3)) +
                     (max(r[1][3] for r in rows),)))
        rows.append(("all at once", best["all at once", jobs]))
        for stage, (wall, cpu, main, peak) in rows:
            print("| %s | %d | %.1f | %s | %.1f | %.1f | %.0f |" % (stage, jobs, wall, f"{n / wall:,.0f}", cpu, main, peak))


def memory(where, path, model, copies, settings):
    print("| molecules | peak MiB of the main process | wall s |\n|--:|--:|--:|")
    for c in copies:
        n = project(where, path, model, c)
        wall, _, _, peak = run(where, 2, settings)
        print("| %s | %.0f | %.0f |" % (f"{n:,}", peak, wall), flush=True)
        subprocess.run(["rm", "-rf", "run"], cwd=where, check=True)


def main():
    if len(sys.argv) < 4 or sys.argv[1] not in ("speed", "memory"):
        sys.exit(__doc__)
    what, path, model = sys.argv[1:4]
    settings = [a for a in sys.argv[4:] if "=" in a]
    copies = [int(a) for a in sys.argv[4:] if "=" not in a] or [1]
    with tempfile.TemporaryDirectory(prefix="molsieve-stream-") as where:
        if what == "memory":
            memory(where, path, model, copies, settings)
        else:
            speed(where, project(where, path, model, copies[0]), model, settings)


if __name__ == "__main__":
    main()
