#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/bench/pipe.py MODEL FILE [N] [predict's options] - how long a warm `molsieve predict MODEL -` takes for one record.

Sends the records of FILE (SMILES or SDF) one at a time and waits for each answer. Prints wall time, and CPU time of the program
and its chemistry worker, in milliseconds a record, after the first 10."""
import os
import subprocess
import sys
import time

PROGRAM = os.environ.get("MOLSIEVE", "build/release/bin/molsieve")


def records(path, n):
    with open(path, "rb") as f:
        data = f.read()
    if b"$$$$" in data:
        return [r + b"$$$$\n" for r in data.split(b"$$$$\n")[:n]]
    return [line + b"\n" for line in data.split(b"\n")[:n] if line]


def cpu(pid):
    """Seconds of a process and its children."""
    total = 0
    for p in [pid] + [int(c) for c in open("/proc/%d/task/%d/children" % (pid, pid)).read().split()] + workers(pid):
        words = open("/proc/%d/stat" % p).read().rsplit(")", 1)[1].split()
        total += sum(int(w) for w in words[11:15])
    return total / os.sysconf("SC_CLK_TCK")


def workers(pid):
    """Children started by other threads."""
    found = []
    for task in os.listdir("/proc/%d/task" % pid):
        if int(task) != pid:
            found += [int(c) for c in open("/proc/%d/task/%s/children" % (pid, task)).read().split()]
    return found


def main(model, path, n=200, *options):
    all_ = records(path, int(n) + 10)
    child = subprocess.Popen([PROGRAM, "predict", model, "-", "--format", "jsonl", *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    times = []
    for k, r in enumerate(all_):
        if k == 10:
            begun = cpu(child.pid)
        t = time.perf_counter()
        os.write(child.stdin.fileno(), r)
        assert child.stdout.readline()
        times.append(time.perf_counter() - t)
    spent = cpu(child.pid) - begun
    child.stdin.close()
    child.wait()
    first, times = times[0], sorted(times[10:])
    print("%s %s: %d records, first %.0f ms, median %.2f ms, 90 %% within %.2f ms, CPU %.2f ms" % (
        model, os.path.basename(path), len(times), 1e3 * first, 1e3 * times[len(times) // 2], 1e3 * times[len(times) * 9 // 10], 1e3 * spent / len(times)))


main(*sys.argv[1:])
