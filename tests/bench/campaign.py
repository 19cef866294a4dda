#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Retrospective campaigns: how many of the best molecules of a library with known values are found by looking at a few of them.

  python3 tests/bench/campaign.py esol --seeds 5
  python3 tests/bench/campaign.py hiv --seeds 2 --strategies greedy
  python3 tests/bench/campaign.py qm9 --seeds 1 --strategies greedy,ucb
  python3 tests/bench/campaign.py dock --seeds 5           # scores of tests/bench/docking/scores.csv

The library is prepared once; each seed is a campaign of its own (`molsieve campaign`), with a first round at random. Beside it, from the
same first round: random choice, and the nearest neighbour (the value of the most similar molecule that was tried, ECFP4). Writes a
table in Markdown, and with --json all numbers. With --work DIR what is done stays there: the same command continues, also with more
seeds or strategies. hiv and qm9 need MOLSIEVE_SHARED."""
import argparse
import array
import csv
import gzip
import json
import os
import random
import shutil
import sqlite3
import statistics
import struct
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.environ.get("MOLSIEVE", os.path.join(ROOT, "build/dev/bin/molsieve"))
SHARED = os.path.join(os.environ.get("MOLSIEVE_SHARED", "/nowhere"), "data")

WORKFLOW = """format: 1
name: bench
seed: {seed}
workdir: {workdir}
limits: {{failures: {{max_fraction: 1}}}}
inputs:
  - {{path: library.csv}}
stages:
  read: {{}}
  prepare: {{neutralise: true, conformers: {{source: none}}, labels: [none]{classes}}}
  graph: {{edges: topology}}
  split: {{fractions: {{train: 1, valid: 0, test: 0}}}}
  train: {{family: [{family}], targets: [{{name: {label}, better: {better}{unit}}}]}}
  score: {{}}
  acquire:
    strategy: {strategy}
    count: {count}
    answers: {{table: library.csv}}
    campaign: {{rounds: {rounds}, first: random}}
"""


def esol():
    with open(os.path.join(ROOT, "workflows/data/esol.csv")) as f:
        return [(r["smiles"], float(r["logS"])) for r in csv.DictReader(f)]


def hiv():
    with gzip.open(os.path.join(SHARED, "screening/moleculenet/hiv.csv.gz"), "rt") as f:
        return [(r["smiles"], float(r["HIV_active"])) for r in csv.DictReader(f)]


def qm9():
    """SMILES and HOMO-LUMO gap (hartree) of the molecules that are in both files."""
    with gzip.open(os.path.join(SHARED, "qm9/qm9_trainvalid.bin.gz"), "rb") as f:
        data = f.read()
    n, atoms, bonds = struct.unpack("<3I", data[8:20])
    at, found = 64, {}
    for name, size in (("index", 4 * n), ("atom", 4 * n + 4), ("bond", 4 * n + 4), ("flags", n), ("z", atoms), ("charge", atoms), ("xyz", 12 * atoms),
                       ("bonds", 3 * bonds), ("values", 44 * n)):
        found[name] = data[at:at + size]
        at += (size + 7) // 8 * 8
    index, values = array.array("I", found["index"]), array.array("f", found["values"])
    gap = {i: values[11 * k + 7] for k, i in enumerate(index)}
    with gzip.open(os.path.join(SHARED, "qm9/qm9_trainvalid_smiles.tsv.gz"), "rt") as f:
        return [(r["smiles_gdb17"], gap[int(r["gdb_index"])]) for r in csv.DictReader(f, delimiter="\t") if int(r["gdb_index"]) in gap]


def dock():
    """Docked molecules of MOSES, and their scores by AutoDock Vina (tests/bench/docking)."""
    with open(os.path.join(ROOT, "tests/bench/docking/scores.csv")) as f:
        return [(r["smiles"], float(r["docking_score"])) for r in csv.DictReader(f)]


# name -> rows, label, better, best (how many; below 1: that share), share of a round, rounds, family, classes, unit
SETS = {"esol": (esol, "logS", "high", 100, 0.027, 10, "trees, gp", False, ', unit: "log10(mol/L)"'),
        "hiv": (hiv, "active", "high", 0, 0.01, 5, "trees, forest", True, ""),
        "dock": (dock, "docking_score", "low", 0.05, 0.04, 5, "trees, gp", False, ", unit: kcal/mol"),
        "qm9": (qm9, "gap", "low", 1000, 0.01, 5, "trees, gp", False, ", unit: hartree")}


def run(folder, *words):
    done = subprocess.run([PROGRAM] + list(words), cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit("molsieve %s: status %d\n%s" % (" ".join(words), done.returncode, done.stderr[-2000:]))


def rows(folder, sql):
    db = sqlite3.connect("file:%s?mode=ro" % os.path.join(folder, "results.db"), uri=True)
    out = db.execute(sql).fetchall()
    db.close()
    return out


def truth_of(folder, values):
    """InChIKey -> value: the mean of the rows of a molecule; of a class only where they agree."""
    found = {}
    for title, key in rows(folder, "SELECT title, inchikey FROM record JOIN molecule USING(mol_id)"):
        found.setdefault(key, []).append(values[title])
    return {k: statistics.fmean(v) for k, v in found.items()}


def shares(batches, best):
    """Share of the best that was found after each round."""
    found, out = 0, []
    for batch in batches:
        found += len(best & set(batch))
        out.append(found / len(best))
    return out


def at_random(first, keys, count, rounds, seed):
    left = [k for k in sorted(keys) if k not in set(first)]
    random.Random(seed).shuffle(left)
    return [first] + [left[count * k:count * (k + 1)] for k in range(rounds - 1)]


def by_neighbour(first, truth, prints, count, rounds, low):
    """Takes those whose nearest tried molecule has the best value; of equal values the most similar first."""
    best = {k: (-1.0, 0.0) for k in truth if k not in set(first)}  # similarity, value
    batches, new = [first], first
    bits = {k: int.from_bytes(b, "little") for k, b in prints.items()}
    size = {k: b.bit_count() for k, b in bits.items()}
    for _ in range(rounds - 1):
        known = [(bits[k], size[k], truth[k]) for k in new]
        for k, (s, v) in best.items():
            b, n = bits[k], size[k]
            for x, m, value in known:
                both = (b & x).bit_count()
                t = both / (n + m - both) if n + m > both else 1.0
                if t > s:
                    s, v = t, value
            best[k] = (s, v)
        new = sorted(best, key=lambda k: (best[k][1] if low else -best[k][1], -best[k][0], k))[:count]
        batches.append(new)
        for k in new:
            del best[k]
    return batches


def campaign(work, seed, strategy, conf, truth, best):
    """One campaign: what it found, and the InChIKeys of its first round."""
    rounds = conf[5]
    name = "s%d-%s" % (seed, strategy)
    shutil.rmtree(os.path.join(work, name), ignore_errors=True)
    shutil.copytree(os.path.join(work, "prepared"), os.path.join(work, name))
    with open(os.path.join(work, "w.yaml"), "w") as f:
        f.write(text_of(conf, strategy, seed, name, len(truth)))
    began = os.times()
    run(work, "campaign", "w.yaml", "-q", "-j", "1")
    cpu = os.times().children_user - began.children_user
    batches = [[] for _ in range(rounds)]
    for r, key in rows(os.path.join(work, name), "SELECT round, inchikey FROM acquired WHERE outcome IS NOT NULL ORDER BY round, place"):
        batches[r].append(key)
    shutil.rmtree(os.path.join(work, name))
    return {"seed": seed, "share": shares(batches, best), "cpu": cpu, "first": batches[0]}


def kept(work, name, make):
    """What `make` gives, from the file of an earlier run if there is one."""
    path = os.path.join(work, "done-%s.json" % name)
    if not os.path.exists(path):
        got = make()
        with open(path + ".new", "w") as f:
            json.dump(got, f)
        os.rename(path + ".new", path)
    with open(path) as f:
        return json.load(f)


def one_seed(work, seed, strategies, conf, truth, best, prints, out):
    better, rounds = conf[2], conf[5]
    for strategy in strategies:
        got = kept(work, "s%d-%s" % (seed, strategy), lambda: campaign(work, seed, strategy, conf, truth, best))
        first = got.pop("first")
        out.setdefault(strategy, []).append(got)
        print("%s seed %d: %s; %.0f CPU s" % (strategy, seed, " ".join("%.3f" % x for x in got["share"]), got["cpu"]), file=sys.stderr, flush=True)
    count = len(first)
    out.setdefault("random", []).append({"seed": seed, "share": shares(at_random(first, truth, count, rounds, seed), best)})
    if prints is not None:
        out.setdefault("nearest neighbour", []).append(kept(work, "s%d-neighbour" % seed, lambda: {
            "seed": seed, "share": shares(by_neighbour(first, truth, prints, count, rounds, better == "low"), best)}))


def text_of(conf, strategy, seed, workdir, n):
    _, label, better, _, share, rounds, family, classes, unit = conf
    return WORKFLOW.format(seed=seed, workdir=workdir, family=family, label=label, better=better, unit=unit, strategy=strategy, count=round(share * n), rounds=rounds,
                           classes=", properties: {%s: {task: classification}}" % label if classes else "")


def table(name, conf, out, n, n_best):
    rounds = conf[5]
    count = round(conf[4] * n)
    seeds = max(len(v) for v in out.values())
    lines = ["### %s: share of the best %d of %d molecules that was found, mean over %d seed%s (standard deviation)" % (name, n_best, n, seeds, "s" if seeds > 1 else ""),
             "", "| tried | " + " | ".join(out) + " |", "|--:|" + "--:|" * len(out)]
    for k in range(rounds):
        cells = []
        for runs in out.values():
            x = [r["share"][k] for r in runs]
            cells.append("%.3f" % statistics.fmean(x) + (" (%.3f)" % statistics.stdev(x) if len(x) > 1 else ""))
        lines.append("| %d (%.1f %%) | %s |" % (count * (k + 1), 100 * count * (k + 1) / n, " | ".join(cells)))
    cpu = [r["cpu"] for runs in out.values() for r in runs if "cpu" in r]
    return "\n".join(lines) + "\n\nA campaign took %.0f CPU seconds (mean; the library was prepared before).\n" % statistics.fmean(cpu)


def main():
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("set", choices=SETS)
    ask.add_argument("--seeds", type=int, default=5)
    ask.add_argument("--strategies", default="greedy,ucb,expected_improvement,thompson")
    ask.add_argument("--first", type=int, help="only so many molecules of the library")
    ask.add_argument("--no-neighbour", action="store_true")
    ask.add_argument("--json")
    ask.add_argument("--work", help="folder for what is done; without it a temporary one")
    args = ask.parse_args()
    conf = SETS[args.set]
    data = conf[0]()[:args.first]
    work = args.work or tempfile.mkdtemp(prefix="molsieve-campaign-")
    os.makedirs(work, exist_ok=True)
    began = time.time()
    with open(os.path.join(work, "library.csv"), "w") as f:
        f.write("id,smiles,%s\n" % conf[1] + "".join("M%d,%s,%.9g\n" % (i, s, v) for i, (s, v) in enumerate(data)))
    with open(os.path.join(work, "w.yaml"), "w") as f:
        f.write(text_of(conf, "greedy", 1, "prepared", len(data)))
    run(work, "run", "w.yaml", "-q", "-j", "1", "--until", "graph", "limits.failures.max_fraction=1")
    truth = truth_of(os.path.join(work, "prepared"), {"M%d" % i: v for i, (_, v) in enumerate(data)})
    print("%d molecules, prepared in %.0f s" % (len(truth), time.time() - began), file=sys.stderr, flush=True)
    n_best = conf[3] or sum(v == 1 for v in truth.values())
    n_best = round(n_best * len(truth)) if n_best < 1 else n_best
    best = set(sorted(truth, key=lambda k: (truth[k] if conf[2] == "low" else -truth[k], k))[:n_best])
    prints = None if args.no_neighbour else dict(rows(os.path.join(work, "prepared"), "SELECT inchikey, bits FROM fingerprint JOIN molecule USING(mol_id)"))
    out = {}
    for seed in range(1, args.seeds + 1):
        one_seed(work, seed, args.strategies.split(","), conf, truth, best, prints, out)
    if args.json:
        with open(args.json, "w") as f:
            json.dump({"set": args.set, "molecules": len(truth), "best": n_best, "runs": out}, f, indent=1)
    print(table(args.set, conf, out, len(truth), n_best))
    if not args.work:
        shutil.rmtree(work)


main()
