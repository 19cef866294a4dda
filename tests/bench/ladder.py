#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One change at a time to the small network (or --network), on a part of QM9: graphs, radial bases, envelopes, norms,
noise on positions, 2:4 sparsity, SOAP, several targets, weights learned by denoising.

    tests/bench/ladder.py --qm9 qm9_trainvalid.bin.gz --out DIR [--only NAME ..] [--seeds 1 2] [--train 5000] [--epochs 20]

Trains HOMO with the network of workflows/train-qm9-gap.yaml, unless --network or the name say otherwise. Stop it at any time:
the same command continues, and what is done is not run again. Prints a table with the validation error and CPU seconds
of each run. "denoised" starts from the weights of a run "denoise".
"""
import argparse
import gzip
import json
import os
import resource
import shutil
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
    "bonds, bessel, gate": ("{edges: bonds}", ", norm: gate, radial: {basis: bessel, cutoff: 3}"),
    "radius 4, bessel, envelope": ("{edges: radius, cutoff: 4}", ", radial: {basis: bessel, envelope: polynomial}"),
}
GATED = "bonds, bessel, gate"

RUNGS[GATED + ", soap"] = RUNGS[GATED]
for rung in ("bonds, distance", "radius 3, bessel, envelope, gate"):
    for scale in ("0.02", "0.05"):
        for weight in ("0.1", "1"):
            noise = "    noise: {scale: %s, weight: %s}\n" % (scale, weight)
            RUNGS["%s, noise %s, weight %s" % (rung, scale, weight)] = RUNGS[rung] + (noise,)

for rung in ("bonds, distance", "radius 3, bessel, envelope, gate"):
    RUNGS[rung + ", 2:4"] = RUNGS[rung] + ("    sparsity: 2:4\n",)
RUNGS[GATED + ", denoise"] = RUNGS[GATED] + ("    task: denoise\n    noise: {scale: 0.05}\n",)
RUNGS[GATED + ", denoised"] = RUNGS[GATED] + ("    start: first\n",)

EV = "unit: eV, factor: 27.211386, better: none"
TARGETS = {
    "homo": "{name: homo, %s}" % EV,
    "lumo": "{name: lumo, %s}" % EV,
    "gap": "{name: gap, %s}" % EV,
    "U0": "{name: U0, %s, transform: composition}" % EV,
    "mu": "{name: mu, unit: Debye, better: none}",
    "alpha": "{name: alpha, unit: bohr^3, better: none}",
}
COMPOSITION = "alpha by composition"
for target in TARGETS:
    RUNGS["%s, %s" % (GATED, target)] = RUNGS[GATED]
RUNGS[GATED + ", all"] = RUNGS[GATED]
RUNGS["%s, all, %s" % (GATED, COMPOSITION)] = RUNGS[GATED]


def targets(name):
    """The line of the workflow; none where noise alone is learned."""
    last = name.split(", ")[-1]
    if last == "denoise":
        return ""
    which = list(TARGETS) if last in ("all", COMPOSITION) else [last if last in TARGETS else "homo"]
    lines = [TARGETS[t] for t in which]
    if last == COMPOSITION:
        lines[-1] = lines[-1].replace("}", ", transform: composition}")
    return "    targets: [%s]\n" % ", ".join(lines)


WORKFLOW = """format: 1
name: ladder
seed: %(seed)d
workdir: run
inputs: [{path: "%(input)s"}]
%(models)sstages:
  read: {}
  prepare: {conformers: {source: keep}, fragment: keep, dedupe: {by: none}, labels: [%(labels)s, split]}
  graph: %(graph)s
  split: {method: column, column: split, leaks: allow}
  train:
    name: ladder
%(targets)s    model: {%(network)s, pooling: max%(model)s}
    batch: {molecules: 60}
    epochs: %(epochs)d
    optimiser: {%(optimiser)s, min_lr: 0.00002, weight_decay: 0.01, grad_clip: 5}
    schedule: {type: cosine_step, warmup: 0.5}
    ema: 0.99
    threads: 1
    engine: cpu
    checkpoint: {every: 30s}
%(train)s%(evaluate)s"""


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


def call(folder, molsieve, settings, *options):
    """Runs the workflow in `folder`. CPU seconds of all attempts are added up in cpu.json."""
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "w.yaml"), "w") as f:
        f.write(WORKFLOW % settings)
    spent = os.path.join(folder, "cpu.json")
    before = json.load(open(spent)) if os.path.exists(spent) else 0
    was = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(os.path.join(folder, "log"), "a") as log:
        code = subprocess.call([molsieve, "run", "-j", "1", *options, "w.yaml"], cwd=folder, stdout=log, stderr=log)
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    json.dump(before + now.ru_utime + now.ru_stime - was.ru_utime - was.ru_stime, open(spent, "w"))
    return code


def prepare(folder, out, molsieve, settings):
    """Molecules and graphs are prepared once for all runs with the same graph."""
    if os.path.exists(os.path.join(folder, "run")):
        return 0
    ready = os.path.join(out, "prepared %s" % "".join(c for c in settings["graph"] if c.isalnum()))
    done = os.path.join(ready, "done")
    code = 0 if os.path.exists(done) else call(ready, molsieve, settings, "--until", "graph")
    if code == 0:
        open(done, "w").close()
        os.makedirs(folder, exist_ok=True)
        shutil.copytree(os.path.join(ready, "run"), os.path.join(folder, "part"))
        os.rename(os.path.join(folder, "part"), os.path.join(folder, "run"))
    return code


def train(folder, out, molsieve, settings):
    """What ended is not run again: its workflow is then in done.yaml."""
    done = os.path.join(folder, "done.yaml")
    if os.path.exists(done) and open(done).read() == WORKFLOW % settings:
        return 0
    code = prepare(folder, out, molsieve, settings) or call(folder, molsieve, settings)
    if code == 0:
        shutil.copy(os.path.join(folder, "w.yaml"), done)
    return code


def results(folder):
    """(epochs, [(target, validation error, unit)]), without targets of a training on noise; None: not begun."""
    base = os.path.join(folder, "run", "results.db")
    if not os.path.exists(base):
        return None
    with sqlite3.connect("file:%s?mode=ro" % base, uri=True) as db:
        epochs = db.execute("SELECT max(epoch) FROM metric").fetchone()[0] or 0
        rows = db.execute("SELECT p.name, e.value, e.unit FROM evaluation e JOIN property p USING(property_id) "
                          "WHERE e.part='valid' AND e.metric='mae' ORDER BY p.name").fetchall()
    return epochs, rows


def settings(name, seed, a, small):
    graph, model, *more = RUNGS[name]
    last = name.split(", ")[-1]
    first = os.path.abspath(a.first or os.path.join(a.out, "%s, denoise, seed %d" % (GATED, seed)))
    return {
        "seed": seed, "input": small, "graph": graph, "model": model, "train": "".join(more), "epochs": a.epochs,
        "network": a.network, "optimiser": "type: soap, lr: 0.012" if last == "soap" else "lr: %g" % a.rate,
        "labels": ", ".join(TARGETS), "targets": targets(name),
        "models": 'models: {first: {path: "%s/run/models/ladder.safetensors"}}\n' % first if last == "denoised" else "",
        "evaluate": "" if last == "denoise" else "  evaluate: {on: [valid]}\n"
    }


def table(names, a):
    print("| change | seed | epochs | validation MAE | CPU s |\n|---|--:|--:|---|--:|")
    for name in names:
        for seed in a.seeds:
            folder = os.path.join(a.out, "%s, seed %d" % (name, seed))
            row = results(folder)
            if row:
                errors = ", ".join("%s %.4f %s" % one for one in row[1])
                print("| %s | %d | %d | %s | %.0f |" % (name, seed, row[0], errors,
                                                      json.load(open(os.path.join(folder, "cpu.json")))))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--qm9", required=True)
    p.add_argument("--out", required=True)
    p.add_argument("--first", help="folder of the run that `denoised` starts from; default: \"%s, denoise\" with the same seed in --out" % GATED)
    p.add_argument("--molsieve", default="build/release/bin/molsieve")
    p.add_argument("--only", nargs="*", default=list(RUNGS))
    p.add_argument("--seeds", nargs="*", type=int, default=[1])
    p.add_argument("--train", type=int, default=5000)
    p.add_argument("--valid", type=int, default=1500)
    p.add_argument("--epochs", type=int, default=20)
    p.add_argument("--network", default="layers: 4, degrees: 3, channels: 16, heads: 4, channels_div: 2", help="default: %(default)s")
    p.add_argument("--rate", type=float, default=0.004, help="learning rate of AdamW (default: %(default)s)")
    a = p.parse_args()
    os.makedirs(a.out, exist_ok=True)
    small = os.path.abspath(os.path.join(a.out, "qm9_%d_%d.bin.gz" % (a.train, a.valid)))
    if not os.path.exists(small):
        cut(a.qm9, small, a.train, a.valid)
    for seed in a.seeds:
        for name in a.only:
            folder = os.path.join(a.out, "%s, seed %d" % (name, seed))
            code = train(folder, a.out, os.path.abspath(a.molsieve), settings(name, seed, a, small))
            if code == 75:
                sys.exit(code)
            if code != 0:
                sys.exit("%s: status %d, see %s/log" % (name, code, folder))
    table(a.only, a)


if __name__ == "__main__":
    main()
