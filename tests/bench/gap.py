#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What 3D structures built from SMILES do to HOMO-LUMO gaps: QM9, the same molecules with DFT's structures and with built ones.

    MOLSIEVE=build/release/bin/molsieve tests/bench/gap.py supplied QM9_DIR DIR [--molecules 2500]
    MOLSIEVE=build/release/bin/molsieve tests/bench/gap.py train QM9_DIR DIR [--molecules 2500] [--train 5000] [--seeds 3]

supplied: the model workflows/models/qm9-gap.safetensors scores molecules of the validation part. train: small networks, trained on
DFT's structures or on built ones, are tested on both. The test molecules are of the validation part, which chose the epoch of the
supplied model; the small networks choose theirs with 500 others. QM9_DIR has qm9_trainvalid.bin.gz (docs/FORMATS.md) and
qm9_trainvalid_smiles.tsv.gz. SMILES have the stereo of DFT's structure; molecules whose SMILES do not agree with the drawing are
left out. Stop it at any time; the same command goes on. A result is a JSON file in DIR, and both commands end with a table.
"""
import argparse
import gzip
import json
import os
import random
import re
import sqlite3
import statistics
import struct
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.environ.get("MOLSIEVE", "molsieve")
EV = 27.211386
SYMBOL = {1: "H", 6: "C", 7: "N", 8: "O", 9: "F"}
# How structures are made: the file, and settings of prepare.
WAYS = {"dft": ("sdf", "source: keep"), "native": ("csv", "source: generate"), "openbabel": ("csv", "source: generate, builder: openbabel")}


def arrays(path):
    """The arrays of a qm9bin file (docs/FORMATS.md) that are used here."""
    with gzip.open(path) as f:
        data = f.read()
    n, atoms, bonds = struct.unpack_from("<3I", data, 8)
    at, out = 64, {}
    for name, code, count in (("index", "I", n), ("first", "I", n + 1), ("bond_first", "I", n + 1), ("flags", "B", n), ("z", "B", atoms),
                              ("charge", "b", atoms), ("xyz", "f", 3 * atoms), ("bond", "B", 3 * bonds), ("real", "f", 11 * n)):
        out[name] = memoryview(data)[at:at + struct.calcsize(code) * count].cast(code)
        at += (struct.calcsize(code) * count + 7) // 8 * 8
    return out


def sdf(a, k, gap, part):
    first, last, b0, b1 = a["first"][k], a["first"][k + 1], a["bond_first"][k], a["bond_first"][k + 1]
    lines = ["gdb_%d" % a["index"][k], "", "", "%3d%3d  0  0  0  0  0  0  0  0999 V2000" % (last - first, b1 - b0)]
    for i in range(first, last):
        lines.append("%10.4f%10.4f%10.4f %-3s 0  0" % (*a["xyz"][3 * i:3 * i + 3], SYMBOL[a["z"][i]]))
    lines += ["%3d%3d%3d  0" % (a["bond"][3 * b] + 1, a["bond"][3 * b + 1] + 1, a["bond"][3 * b + 2]) for b in range(b0, b1)]
    return "\n".join(lines + ["M  END", "> <gap>", "%r" % gap, "", "> <split>", str(part), "", "$$$$", ""])


def drawn(smiles):
    return re.sub(r"\[([A-Z])@+H?\]", r"\1", smiles).replace("/", "").replace("\\", "")


def usable(folder, a):
    """Two lists of (place, SMILES), of the training and of the validation part, in an order by chance."""
    parts, place = ([], []), {index: k for k, index in enumerate(a["index"])}
    with gzip.open(os.path.join(folder, "qm9_trainvalid_smiles.tsv.gz"), "rt") as f:
        for row in list(f)[1:]:
            index, _, _, source, relaxed = row.rstrip("\n").split("\t")
            k = place.get(int(index))
            if k is not None and a["flags"][k] & 3 < 2 and drawn(relaxed) == source and not any(a["charge"][a["first"][k]:a["first"][k + 1]]):
                parts[a["flags"][k] & 3].append((k, relaxed))
    for part in parts:
        random.Random(7).shuffle(part)
    return parts


def write_files(o, n_train):
    """molecules.sdf and molecules.csv: the same molecules; split 0 train, 1 validation, 2 test."""
    name = os.path.join(o.dir, "molecules-%d-%d" % (o.molecules, n_train))
    if os.path.exists(name + ".csv"):
        return name
    a = arrays(os.path.join(o.qm9, "qm9_trainvalid.bin.gz"))
    train, valid = usable(o.qm9, a)
    chosen = [(2, *m) for m in valid[:o.molecules]]
    if n_train:
        chosen += [(1, *m) for m in valid[o.molecules:o.molecules + 500]] + [(0, *m) for m in train[:n_train]]
    with open(name + ".sdf", "w") as f, open(name + ".part", "w") as g:
        g.write("smiles,name,gap,split\n")
        for part, k, smiles in chosen:
            gap = round(float(a["real"][11 * k + 7]), 6)
            f.write(sdf(a, k, gap, part))
            g.write("%s,gdb_%d,%r,%d\n" % (smiles, a["index"][k], gap, part))
    os.replace(name + ".part", name + ".csv")
    return name


def run(o, name, files, way, stages, head=""):
    """A run in DIR/name; returns its results."""
    ending, conformers = WAYS[way]
    columns = ", format: csv, columns: {smiles: smiles, title: name}" if ending == "csv" else ""
    # Open Babel builds no structure for 8 % of the molecules, and for more of the first 500.
    text = "format: 1\nname: gap\nlimits: {failures: {max_fraction: 0.2}}\nworkdir: %s\n%sinputs:\n  - {path: %s.%s%s}\n" % (os.path.join(o.dir, name), head, files, ending, columns)
    text += "stages:\n  read: {}\n  prepare:\n    dedupe: {by: none}\n    conformers: {%s}\n    labels: [gap, split]\n  graph: {edges: bonds}\n" % conformers
    path = os.path.join(o.dir, name + ".yaml")
    with open(path, "w") as f:
        f.write(text + stages)
    subprocess.run([PROGRAM, "run", path, "-q", "-j", str(o.jobs)], check=True)
    return sqlite3.connect("file:%s/results.db?mode=ro" % os.path.join(o.dir, name), uri=True)


def errors_of(o, model, way):
    """Errors in eV of the test molecules that the model scores, by title."""
    db = run(o, "test-" + way, write_files(o, 0), way, "  score: {}\n", "models:\n  gap: {path: %s}\n" % os.path.abspath(model))
    rows = db.execute("SELECT r.title, s.mean, l.value FROM score s JOIN record r ON r.record_id=s.mol_id JOIN label l USING(mol_id) "
                      "WHERE l.property_id=(SELECT property_id FROM property WHERE name='gap')").fetchall()
    db.close()
    return {title: abs(mean - EV * gap) for title, mean, gap in rows}


def judge(o, name, model, ways):
    """Rows of the table, over the molecules that were scored with all structures; kept in DIR/name.json."""
    path = os.path.join(o.dir, name + ".json")
    if not os.path.exists(path):
        errors = {way: errors_of(o, model, way) for way in ways}
        common = set.intersection(*(set(e) for e in errors.values()))
        found = {}
        for way, of in errors.items():
            e = sorted(of[t] for t in common)
            found[way] = {"n": len(e), "mae": statistics.fmean(e), "median": statistics.median(e), "nine": e[int(0.9 * len(e))],
                          "missing": o.molecules - len(of)}
        with open(path + ".part", "w") as f:
            json.dump(found, f)
        os.replace(path + ".part", path)
    with open(path) as f:
        for way, s in json.load(f).items():
            print("| %s | %s | %d | %.4f | %.4f | %.3f | %d |" % (name, way, s["n"], s["mae"], s["median"], s["nine"], s["missing"]), flush=True)


NETWORK = """  split: {method: column, column: split, leaks: allow}
  train:
    name: %s
    targets: [{name: gap_ev, column: gap, unit: eV, factor: 27.211386, transform: composition}]
    model: {layers: 3, degrees: 2, channels: 16, heads: 4, pooling: max}
    batch: {molecules: 32}
    epochs: 30
    optimiser: {lr: 0.004}
    ema: 0.99
"""


def train(o):
    files = write_files(o, o.train)
    for seed in range(1, o.seeds + 1):
        for way in ("dft", "native"):
            name = "trained-%s-%d" % (way, seed)
            model = os.path.join(o.dir, name, "models", name + ".safetensors")
            if not os.path.exists(os.path.join(o.dir, name + ".json")):
                run(o, name, files, way, NETWORK % name, "seed: %d\n" % seed).close()
            judge(o, name, model, ("dft", "native"))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("what", choices=("supplied", "train"))
    p.add_argument("qm9")
    p.add_argument("dir")
    p.add_argument("--molecules", type=int, default=2500)
    p.add_argument("--train", type=int, default=5000)
    p.add_argument("--seeds", type=int, default=3)
    p.add_argument("--jobs", type=int, default=os.cpu_count())
    o = p.parse_args()
    o.dir, o.qm9 = os.path.abspath(o.dir), os.path.abspath(o.qm9)
    os.makedirs(o.dir, exist_ok=True)
    print("| model | tested on | molecules | MAE, eV | median | nine of ten below | without a score |\n|---|---|--:|--:|--:|--:|--:|")
    if o.what == "supplied":
        judge(o, "supplied", os.path.join(ROOT, "workflows/models/qm9-gap.safetensors"), list(WAYS))
    else:
        train(o)


if __name__ == "__main__":
    main()
