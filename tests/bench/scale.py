#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Millions of records through read, prepare and rank: rate over time, memory, bytes.

    tests/bench/scale.py make N FILE SMILES_FILE...     N mostly distinct SMILES out of real ones
    MOLSIEVE=build/release/bin/molsieve tests/bench/scale.py run FILE DIR [SECONDS] [setting=value ...]

make: to molecules that begin with a methyl group a prefix is put, a new one for each pass
over the files; every thousandth line is repeated. run: stops after SECONDS (none: at the end); run it again to go on. With
CHEM=build/release/bin/instant_chem the chemistry is a stand-in that answers at once. One line each 10 s: records, CPU
seconds of the main thread, of the whole program and of its workers, resident memory, bytes of the databases."""
import gzip
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

TICK = os.sysconf("SC_CLK_TCK")
WORKFLOW = """format: 1
name: scale
workdir: run
limits: {failures: {max_fraction: 0.9}, disk_free_min: 1GiB}
inputs: [{path: "%s"}]
stages:
  read: {}
  prepare: {conformers: {source: none}, labels: [none]}
  rank: {objectives: [{property: logp, goal: maximise}], top: 100000}
  write: {csv: hits.csv}
"""


def prefixes():
    tails = ["", "O", "N", "F", "S", "CO", "CN", "CF"]
    return [head + "C" * n for head in ("", "O", "N", "F", "Cl", "Br", "CO", "CS", "CN") for n in range(1, 9)] + \
        [t + "C(C)" + "C" * n for n in range(1, 9) for t in tails if t]


def make(n, out, files):
    base = []
    for name in files:
        with (gzip.open if name.endswith(".gz") else open)(name, "rt") as f:
            base += [w for w in (line.split()[0] for line in f if line.strip()) if w[0] == "C" and w[1:2].isalpha() and w[1] != "l"]
    written = 0
    with open(out, "w") as f:
        for p in prefixes():
            for i, smiles in enumerate(base):
                if written >= n:
                    return
                f.write("%s%s m%d\n" % (p, base[i - 1] if i % 1000 == 999 else smiles, written))
                written += 1
    print("only %d: more files are needed" % written)


def cpu(path):
    with open(path) as f:
        words = f.read().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / TICK


def of_children(pid):
    total = 0
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/children" % (pid, task)) as f:
            total += sum(cpu("/proc/%s/stat" % c) for c in f.read().split())
    return total


def size(*names):
    return sum(os.path.getsize(n) for n in names if os.path.exists(n)) / 1e6


def look(pid, began, where):
    db = sqlite3.connect("file:%s/results.db?mode=ro" % where, uri=True)
    n = db.execute("SELECT coalesce(sum(n_ok+n_failed),0) FROM unit WHERE stage_id=(SELECT stage_id FROM stage WHERE name='prepare')")
    n = n.fetchone()[0]
    db.close()
    with open("/proc/%d/status" % pid) as f:
        rss = [int(x.split()[1]) / 1024 for x in f if x.startswith("VmHWM")][0]
    print("%.0f s  %d records  main %.1f  program %.1f  workers %.1f CPU s  peak %.0f MB  results %.0f  features %.0f  wal %.0f MB" %
          (time.time() - began, n, cpu("/proc/%d/task/%d/stat" % (pid, pid)), cpu("/proc/%d/stat" % pid), of_children(pid), rss,
           size(where + "/results.db"), size(where + "/features.db"), size(where + "/results.db-wal", where + "/features.db-wal")),
          flush=True)


def run(file, where, *more):
    seconds = float(more[0]) if more and "=" not in more[0] else 0
    os.makedirs(where, exist_ok=True)
    program = os.path.abspath(os.environ.get("MOLSIEVE", "molsieve"))
    if "CHEM" in os.environ:
        program = shutil.copy(program, where + "/molsieve")
        os.path.exists(where + "/molsieve-chem") or shutil.copy(os.environ["CHEM"], where + "/molsieve-chem")
    with open(where + "/w.yaml", "w") as f:
        f.write(WORKFLOW % os.path.abspath(file))
    began = time.time()
    p = subprocess.Popen([program, "run", where + "/w.yaml", "-q"] + [m for m in more if "=" in m])
    while p.poll() is None:
        time.sleep(10)
        try:
            look(p.pid, began, where + "/run")
        except (OSError, sqlite3.Error, TypeError, IndexError) as e:
            print("no look:", e)
        if seconds and time.time() - began > seconds:
            p.send_signal(signal.SIGTERM)
            seconds = 0
    print("status %d after %.0f s" % (p.wait(), time.time() - began))


if __name__ == "__main__":
    if sys.argv[1:2] == ["make"]:
        make(int(sys.argv[2]), sys.argv[3], sys.argv[4:])
    else:
        run(*sys.argv[2:])
