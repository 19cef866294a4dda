#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Energies of single structures, here and RDKit's, above the best of ten of RDKit; RDKit's MMFF94 for all.

    MOLSIEVE=build/release/bin/molsieve tests/bench/energies.py DIR CHEMBL.smi.gz MOSES.smi.gz [--molecules 167] [--seeds 3]

As many molecules of each file, chosen by chance. `here`: `molsieve conformers`. RDKit's: ETKDGv3, then MMFF94 to convergence. Molecules
that one of them cannot build are left out and counted. Needs RDKit and numpy. Stop it at any time; the same command goes on."""
import argparse
import json
import os

import structures as s
from rdkit import Chem
from rdkit.Chem import rdForceFieldHelpers as ff


def known(path):
    if not os.path.exists(path):
        return {}
    with open(path) as f:
        return {row[0]: row[1:] for row in map(json.loads, f)}


def put(path, *row):
    with open(path, "a") as f:
        f.write(json.dumps(row) + "\n")


def measure(o, all_, seed):
    best, path = os.path.join(o.dir, "best.jsonl"), os.path.join(o.dir, "seed-%d.jsonl" % seed)
    done = known(path)
    left = [x for x in all_ if x not in done]
    for smiles, mol in zip(left, s.built_here(left, ["--seed", str(seed)])):
        theirs = s.rdkit_structure(smiles, seed)
        if theirs is None or mol is None:
            put(path, smiles, None, None)
            continue
        if smiles not in known(best):
            put(best, smiles, s.best_of(theirs[0], 10))
        put(path, smiles, *(s.energy(m, ff.MMFFGetMoleculeProperties(m)) for m in (mol, theirs[0])))


def row(name, smiles, done, best):
    good = [x for x in smiles if done[x][0] is not None]
    above = [s.said([done[x][k] - best[x][0] for x in good]) for k in (0, 1)]
    print("| %s | %d | %s | %s |" % (name, len(good), *above), flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("dir")
    p.add_argument("files", nargs="+")
    p.add_argument("--molecules", type=int, default=167)
    p.add_argument("--seeds", type=int, default=3)
    o = p.parse_args()
    os.makedirs(o.dir, exist_ok=True)
    n = len(o.files)
    parts = [s.molecules(path, (o.molecules + n - 1 - k) // n) for k, path in enumerate(o.files)]
    assert all(Chem.MolFromSmiles(x) for part in parts for x in part)
    print("| molecules, seed | built by both | here, median / mean / nine of ten | RDKit |\n|---|--:|--:|--:|")
    for seed in range(1, o.seeds + 1):
        measure(o, [x for part in parts for x in part], seed)
        done, best = known(os.path.join(o.dir, "seed-%d.jsonl" % seed)), known(os.path.join(o.dir, "best.jsonl"))
        row("all, %d" % seed, [x for part in parts for x in part], done, best)
        for path, part in zip(o.files, parts):
            row("%s, %d" % (os.path.basename(path).split(".")[0], seed), part, done, best)


if __name__ == "__main__":
    main()
