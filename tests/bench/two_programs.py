#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cost of a change: `run` of one workflow with two programs in turn, in a new work directory each time.

    tests/bench/two_programs.py OLD NEW WORKFLOW [N] [SETTING ...]

N rounds (5 by default), the program that goes first changes with each. Prints processor seconds (user and system, with the worker programs), wall seconds
and bytes of results.db of each run, then a table of medians and the ratio of the medians with the smallest and largest ratio of a round.
"""
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time


def one(program, workflow, settings):
    with tempfile.TemporaryDirectory() as at:
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        subprocess.run([program, "run", workflow, "-q", "workdir=" + at + "/w", *settings], check=True)
        wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        return (after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime, wall, os.path.getsize(at + "/w/results.db"))


def main(old, new, workflow, n="5", *settings):
    rounds = []
    for k in range(int(n)):
        order = [("old", old), ("new", new)]
        got = {}
        for name, program in order[:: 1 if k % 2 == 0 else -1]:
            got[name] = one(program, workflow, settings)
            print("%d %s: user %.2f s, system %.2f s, wall %.2f s, %d bytes" % (k + 1, name, *got[name]), flush=True)
        rounds.append(got)
    print("\n| median of %s | old | new | new / old (rounds) |\n|---|---|---|---|" % n)
    for i, what in enumerate(["user, s", "system, s", "wall, s", "results.db, bytes"]):
        a, b = (statistics.median(r[name][i] for r in rounds) for name in ("old", "new"))
        each = [r["new"][i] / r["old"][i] for r in rounds]
        print("| %s | %.*f | %.*f | %.3f (%.3f to %.3f) |" % (what, 2 * (i < 3), a, 2 * (i < 3), b, b / a, min(each), max(each)))


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
