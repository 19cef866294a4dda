#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How many measured values lie within interval90, inside of a model's domain; and how large the errors are inside and outside.

    MOLSIEVE=build/release/bin/molsieve tests/bench/coverage.py run DIR [CASE ...] [--seeds N]
    tests/bench/coverage.py table DIR

Cases: esol-random, esol-scaffold, lipo-scaffold, esol-family and lipo-family (trees and gp, by scaffold), qm9-built (training and
screen on built structures), qm9-again (a model of DFT structures, calibrated again on built ones). Each case and seed is a training
in DIR, of a small network but in the families; the calibration part gives the intervals, the test part, which nothing depends on, is counted. Stop it at any time; the same command goes on. Workflows: tests/bench/coverage/.
table: Markdown, per seed with Wilson's 95 % interval, and the mean with Student's.
"""
import json
import math
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "coverage")
PROGRAM = os.environ.get("MOLSIEVE", "molsieve")
# Molecules without rings or with a benzene ring only are 0.57 of ESOL; they go to train.
SCAFFOLDS = ["stages.split.method=scaffold"] + ["stages.split.fractions.%s=%g" % x for x in
                                                (("train", 0.64), ("valid", 0.06), ("test", 0.15), ("calibration", 0.15))]
FAMILY = ["stages.train.family=[trees, gp]", "stages.prepare.conformers.source=none", "stages.graph.edges=topology"]
CASES = {
    "esol-random": ("esol", []),
    "esol-scaffold": ("esol", SCAFFOLDS),
    "esol-family": ("esol", SCAFFOLDS + FAMILY),
    "lipo-scaffold": ("lipo", []),
    "lipo-family": ("lipo", FAMILY),
    "qm9-built": ("qm9", []),
    "qm9-again": ("qm9", ["stages.prepare.conformers.source=keep"]),
}
T95 = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 10: 2.262, 20: 2.093}  # Student's t of n values, two-sided


def call(workflow, workdir, *settings):
    command = [PROGRAM, "run", os.path.join(HERE, workflow + ".yaml"), "-q", "workdir=" + os.path.abspath(workdir)] + list(settings)
    print(" ".join(command), flush=True)
    subprocess.run(command, check=True)


def rows(workdir, sql):
    db = sqlite3.connect("file:%s/results.db?mode=ro" % os.path.abspath(workdir), uri=True)
    try:
        return db.execute(sql).fetchall()
    finally:
        db.close()


def mean(values):
    return statistics.fmean(values) if values else None


def of_scores(workdir):
    """As in a screen: scores of the test part against the labels, each converted by the factor between their units."""
    factor = 27.211386 if "qm9" in os.path.basename(workdir) else 1
    found = rows(workdir, "SELECT s.domain, s.interval90, abs(s.mean-l.value*%r) FROM score s JOIN split x USING(mol_id) JOIN label l USING(mol_id) "
                          "WHERE x.part='test'" % factor)
    inside = [(i, e) for d, i, e in found if d == "inside" and i is not None]
    outside = [e for d, i, e in found if d == "outside"]
    assert found and len(inside) + len(outside) == len(found), "scores without a domain"
    return {"n": len(inside), "held": sum(e <= i for i, e in inside), "mae": mean([e for _, e in inside]), "n_out": len(outside), "mae_out": mean(outside)}


def of_evaluation(workdir):
    told = {m: (v, n) for m, v, n in rows(workdir, "SELECT metric, value, n FROM evaluation WHERE part='new'")}
    value, n = told["coverage90"]
    before = told.get("coverage90 before", (None, 0))
    return {"n": n, "held": round(value * n), "mae": told["mae.domain inside"][0], "n_out": told.get("mae.domain outside", (None, 0))[1],
            "mae_out": told.get("mae.domain outside", (None, 0))[0], "before": before[0]}


def measure(where, case, seed):
    workflow, settings = CASES[case]
    workdir = os.path.join(where, "%s-%d" % (case, seed))
    call(workflow, workdir, "seed=%d" % seed, *settings)
    if case != "qm9-again":
        return of_scores(workdir)
    model = os.path.join(workdir, "models", "coverage-qm9.safetensors")
    again = workdir + "-judged"
    call("qm9-again", again, "seed=%d" % seed, "models.dft.path=" + os.path.abspath(model))
    return of_evaluation(again)


def run(where, cases, seeds):
    os.makedirs(where, exist_ok=True)
    for seed in range(1, seeds + 1):
        for case in cases:
            path = os.path.join(where, "%s-%d.json" % (case, seed))
            if os.path.exists(path):
                continue
            found = measure(where, case, seed)
            with open(path + ".part", "w") as f:
                json.dump(found, f)
            os.replace(path + ".part", path)
            for left in (path[:-5], path[:-5] + "-judged"):
                shutil.rmtree(left, ignore_errors=True)


def wilson(k, n, z=1.96):
    middle, half = (k + z * z / 2) / (n + z * z), z / (n + z * z) * math.sqrt(k * (n - k) / n + z * z / 4)
    return middle - half, middle + half


def real(x):
    return "" if x is None else "%.3g" % x


def table(where):
    print("| case | seed | inside | within interval90 | 95 % | MAE inside | outside | MAE outside | intervals before |")
    print("|---|--:|--:|--:|---|--:|--:|--:|--:|")
    for case in CASES:
        known = {int(f[len(case) + 1:-5]): json.load(open(os.path.join(where, f))) for f in os.listdir(where)
                 if f.startswith(case + "-") and f.endswith(".json") and f[len(case) + 1:-5].isdigit()}
        shares = []
        for seed, r in sorted(known.items()):
            low, high = wilson(r["held"], r["n"])
            shares.append(100 * r["held"] / r["n"])
            print("| %s | %d | %d | %.1f %% | %.1f to %.1f | %s | %d | %s | %s |" % (case, seed, r["n"], shares[-1], 100 * low, 100 * high, real(r["mae"]),
                  r["n_out"], real(r["mae_out"]), "%.1f %%" % (100 * r["before"]) if r.get("before") is not None else ""))
        if len(shares) in T95:
            half = T95[len(shares)] * statistics.stdev(shares) / math.sqrt(len(shares))
            print("| **%s** | mean of %d | %d | **%.1f %%** | %.1f to %.1f | | | | |" % (case, len(shares), sum(r["n"] for r in known.values()),
                  statistics.fmean(shares), statistics.fmean(shares) - half, statistics.fmean(shares) + half))


def main(args):
    seeds = 5
    if "--seeds" in args:
        at = args.index("--seeds")
        seeds = int(args[at + 1])
        del args[at:at + 2]
    if len(args) < 2 or args[0] not in ("run", "table") or set(args[2:]) - set(CASES):
        sys.exit(__doc__)
    if args[0] == "run":
        run(args[1], args[2:] or list(CASES), seeds)
    else:
        table(args[1])


if __name__ == "__main__":
    main(sys.argv[1:])
