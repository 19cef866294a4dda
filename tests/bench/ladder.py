#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One change at a time to the small network, on a part of QM9: graphs, radial bases, envelopes, norms,
noise on positions, 2:4 sparsity.

    tests/bench/ladder.py --qm9 qm9_trainvalid.bin.gz --out DIR [--only NAME ..] [--seeds 1 2] [--train 5000] [--epochs 20]

Trains HOMO with the network of workflows/train-qm9-gap.yaml. Stop it at any time: the same command continues, and
what is done is not run again. Prints a table with the validation error and CPU seconds of each run.
"""
import argparse
import gzip
import json
import os
import resource
import sqlite3
import struct
import subprocess
import sys

RUNGS = {
    "bonds, distance": ("{edges: bonds}", ""),
    "bonds, bessel": ("{edges: bonds}", ", radial: {basis: bessel, cutoff: 3}"),
    "radius 3, distance": ("{edges: radius, cutoff: 3}", ""),
    "radius 3, bessel": ("{edges: radius, cutoff: 3}", ", radial: {basis: bessel}"),
    "radius 3, distance, envelope": ("{edges: radius, cutoff: 3}", ", radial: {envelope: polynomial}"),
    "radius 3, bessel, envelope": ("{edges: radius, cutoff: 3}", ", radial: {basis: bessel, envelope: polynomial}"),
    "radius 3, gaussian, envelope": ("{edges: radius, cutoff: 3}", ", radial: {basis: gaussian, number: 12, envelope: polynomial}"),
    "radius 3, bessel, envelope, gate": ("{edges: radius, cutoff: 3}",
                                         ", norm: gate, radial: {basis: bessel, envelope: polynomial}"),
    "bonds, distance, gate": ("{edges: bonds}", ", norm: gate"),
    "radius 4, bessel, envelope": ("{edges: radius, cutoff: 4}", ", radial: {basis: bessel, envelope: polynomial}"),
}
for rung in ("bonds, distance", "radius 3, bessel, envelope, gate"):
    for scale in ("0.02", "0.05"):
        for weight in ("0.1", "1"):
            noise = "    noise: {scale: %s, weight: %s}\n" % (scale, weight)
            RUNGS["%s, noise %s, weight %s" % (rung, scale, weight)] = RUNGS[rung] + (noise,)

RUNGS["bonds, distance, 2:4"] = RUNGS["bonds, distance"] + ("    sparsity: 2:4\n",)
RUNGS["radius 3, bessel, envelope, gate, 2:4"] = RUNGS["radius 3, bessel, envelope, gate"] + ("    sparsity: 2:4\n",)

WORKFLOW = """format: 1
name: ladder
seed: %(seed)d
workdir: run
inputs: [{path: "%(input)s"}]
stages:
  read: {}
  prepare: {conformers: {source: keep}, fragment: keep, dedupe: {by: none}, labels: [homo, split]}
  graph: %(graph)s
  split: {method: column, column: split, leaks: allow}
  train:
    name: ladder
    targets: [{name: homo, unit: eV, factor: 27.211386, better: none}]
    model: {layers: 4, degrees: 3, channels: 16, heads: 4, channels_div: 2, pooling: max%(model)s}
    batch: {molecules: 60}
    epochs: %(epochs)d
    optimiser: {lr: 0.004, min_lr: 0.00002, weight_decay: 0.01, grad_clip: 5}
    schedule: {type: cosine_step, warmup: 0.5}
    ema: 0.99
    threads: 1
    engine: cpu
    checkpoint: {every: 30s}
%(train)s"""


def cut(source, to, train, valid):
    """Writes a qm9bin file with evenly spaced molecules of both parts (docs/FORMATS.md)."""
    data = gzip.open(source).read()
    n, atoms, bonds = struct.unpack_from("<III", data, 8)
    widths = [("gdb", 4, n), ("atom", 4, n + 1), ("bond", 4, n + 1), ("flags", 1, n), ("z", 1, atoms), ("charge", 1, atoms),
              ("xyz", 12, atoms), ("pairs", 3, bonds), ("y32", 44, n), ("y64", 32, n)]
    at, array = 64, {}
    for name, width, count in widths:
        array[name] = data[at:at + width * count]
        at += (width * count + 7) // 8 * 8
    part = lambda want, most: (lambda all: [all[i * len(all) // most] for i in range(most)])(
        [i for i in range(n) if array["flags"][i] & 3 == want])
    take = sorted(part(0, train) + part(1, valid))
    first = {k: struct.unpack("<%dI" % (n + 1), array[k]) for k in ("atom", "bond")}
    out = {name: [] for name, _, _ in widths}
    offset = {"atom": [0], "bond": [0]}
    for i in take:
        for k in ("atom", "bond"):
            offset[k].append(offset[k][-1] + first[k][i + 1] - first[k][i])
        for name, width, _ in widths:
            if name in offset:
                continue
            by = "atom" if name in ("z", "charge", "xyz") else "bond" if name == "pairs" else None
            a, b = (first[by][i], first[by][i + 1]) if by else (i, i + 1)
            out[name].append(array[name][a * width:b * width])
    for k in offset:
        out[k] = [struct.pack("<%dI" % len(offset[k]), *offset[k])]
    body = data[:8] + struct.pack("<III", len(take), offset["atom"][-1], offset["bond"][-1]) + data[20:64]
    for name, _, _ in widths:
        one = b"".join(out[name])
        body += one + b"\0" * (-len(one) % 8)
    with gzip.open(to + ".part", "wb") as f:
        f.write(body)
    os.rename(to + ".part", to)


def train(folder, molsieve, settings):
    """CPU seconds of all attempts are added up in cpu.json."""
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "w.yaml"), "w") as f:
        f.write(WORKFLOW % settings)
    spent = os.path.join(folder, "cpu.json")
    before = json.load(open(spent)) if os.path.exists(spent) else 0
    was = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(os.path.join(folder, "log"), "a") as log:
        code = subprocess.call([molsieve, "run", "-j", "1", "w.yaml"], cwd=folder, stdout=log, stderr=log)
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    json.dump(before + now.ru_utime + now.ru_stime - was.ru_utime - was.ru_stime, open(spent, "w"))
    return code


def result(folder):
    base = os.path.join(folder, "run", "results.db")
    if not os.path.exists(base):
        return None
    with sqlite3.connect("file:%s?mode=ro" % base, uri=True) as db:
        rows = db.execute("SELECT epoch, value FROM metric WHERE split='valid' AND name='mae' ORDER BY epoch").fetchall()
    return rows


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--qm9", required=True)
    p.add_argument("--out", required=True)
    p.add_argument("--molsieve", default="build/release/bin/molsieve")
    p.add_argument("--only", nargs="*", default=list(RUNGS))
    p.add_argument("--seeds", nargs="*", type=int, default=[1])
    p.add_argument("--train", type=int, default=5000)
    p.add_argument("--valid", type=int, default=1500)
    p.add_argument("--epochs", type=int, default=20)
    a = p.parse_args()
    os.makedirs(a.out, exist_ok=True)
    small = os.path.abspath(os.path.join(a.out, "qm9_%d_%d.bin.gz" % (a.train, a.valid)))
    if not os.path.exists(small):
        cut(a.qm9, small, a.train, a.valid)
    for seed in a.seeds:
        for name in a.only:
            graph, model, *more = RUNGS[name]
            folder = os.path.join(a.out, "%s, seed %d" % (name, seed))
            done = result(folder)
            if not done or done[-1][0] < a.epochs:
                code = train(folder, os.path.abspath(a.molsieve),
                             {"seed": seed, "input": small, "graph": graph, "model": model, "train": "".join(more),
                              "epochs": a.epochs})
                if code not in (0, 75):
                    sys.exit("%s: status %d, see %s/log" % (name, code, folder))
    print("| change | seed | epochs | validation MAE, meV | CPU s |\n|---|--:|--:|--:|--:|")
    for name in a.only:
        for seed in a.seeds:
            folder = os.path.join(a.out, "%s, seed %d" % (name, seed))
            rows = result(folder)
            if rows:
                print("| %s | %d | %d | %.1f | %.0f |" % (name, seed, rows[-1][0], 1000 * rows[-1][1],
                                                        json.load(open(os.path.join(folder, "cpu.json")))))


if __name__ == "__main__":
    main()
