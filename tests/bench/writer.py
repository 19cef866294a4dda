#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The thread that writes the database while `score` runs: its CPU seconds, of two programs in turn.

    tests/bench/writer.py OLD NEW SMILES_FILE DIR [ROUNDS]

OLD and NEW are molsieve programs; both must be able to go on with the run in DIR, which NEW prepares up to `graph` (a later call finds it
there). The model is boosted trees of workflows/data/esol.csv, so that most of the time is not the model's. Each turn copies the run, adds
`score` with one worker, and reads the CPU time of the main thread from /proc; digests must be equal and `db check` good."""
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
WORKFLOW = """format: 1
name: writer
seed: 1
workdir: base
limits: {failures: {max_fraction: 0.9}, disk_free_min: 0B}
inputs: [{path: %s}]
models: {m: {path: esol.safetensors}}
stages:
  read: {}
  prepare: {conformers: {source: none}, dedupe: {by: none}, labels: [none]}
  graph: {edges: topology}
  score: {}
"""


def prepare(program, smiles, where):
    if os.path.exists(where + "/ready"):
        return
    os.makedirs(where, exist_ok=True)
    shutil.copy(HERE + "/../../workflows/data/esol.csv", where)
    subprocess.run([program, "fit", "esol.csv", "--target", "logS", "--family", "trees", "-o", "esol.safetensors", "-q"],
                   cwd=where, check=True)
    with open(where + "/w.yaml", "w") as f:
        f.write(WORKFLOW % os.path.abspath(smiles))
    subprocess.run([program, "run", "w.yaml", "-q", "--until", "graph"], cwd=where, check=True)
    open(where + "/ready", "w").close()


def main_cpu(program, where):
    """CPU seconds of the main thread; /proc forgets them with its end, so the last look counts (every 5 ms)."""
    seconds = 0
    child = subprocess.Popen([program, "run", "w.yaml", "-q", "-j", "1", "workdir=turn"], cwd=where, stderr=subprocess.DEVNULL)
    while child.poll() is None:
        try:
            with open("/proc/%d/task/%d/schedstat" % (child.pid, child.pid)) as f:
                seconds = max(seconds, int(f.read().split()[0]) / 1e9)
        except (OSError, IndexError):
            pass
        time.sleep(0.005)
    if child.returncode != 0:
        sys.exit("%s run: status %d" % (program, child.returncode))
    return seconds


def turn(program, where):
    """CPU seconds per 100,000 scores, without those of a run that finds everything done; and the digest."""
    shutil.rmtree(where + "/turn", ignore_errors=True)
    shutil.copytree(where + "/base", where + "/turn")
    os.remove(where + "/turn/.lock")
    seconds = main_cpu(program, where) - main_cpu(program, where)
    said = subprocess.run([program, "db", "digest", "turn/results.db"], cwd=where, check=True, capture_output=True, text=True).stdout
    subprocess.run([program, "db", "check", "turn/results.db"], cwd=where, check=True, stdout=subprocess.DEVNULL)
    db = sqlite3.connect("file:%s/turn/results.db?mode=ro" % where, uri=True)
    count = db.execute("SELECT count(*) FROM score").fetchone()[0]
    db.close()
    return seconds / count * 1e5, said


def main():
    if len(sys.argv) < 5:
        sys.exit(__doc__)
    programs = [os.path.abspath(p) for p in sys.argv[1:3]]
    where, rounds = os.path.abspath(sys.argv[4]), int(sys.argv[5]) if len(sys.argv) > 5 else 3
    prepare(programs[1], sys.argv[3], where)
    found, digests = ([], []), set()
    for _ in range(rounds):
        for i, program in enumerate(programs):
            seconds, said = turn(program, where)
            found[i].append(seconds)
            digests.add(said)
    shutil.rmtree(where + "/turn")
    if len(digests) != 1:
        sys.exit("digests differ: %s" % digests)
    print("| CPU s of the writing thread per 100,000 scores | median | rounds |\n|---|--:|---|")
    for name, s in zip(("old", "new"), found):
        print("| %s | %.3f | %s |" % (name, statistics.median(s), " ".join("%.3f" % x for x in s)))


if __name__ == "__main__":
    main()
