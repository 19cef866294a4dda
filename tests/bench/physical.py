#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Physical checks of structures with PoseBusters (configuration `mol`), here and RDKit's, the same molecules.

    MOLSIEVE=build/release/bin/molsieve tests/bench/physical.py DIR FILE.smi[.gz] ... [--molecules 10000] [--energies 500]

`here`: `molsieve conformers`. `rdkit`: ETKDGv3, then MMFF94 to convergence. The molecules are chosen from all files by chance. Of our own: no bond through a ring. The energy ratio needs 50
structures of RDKit for each molecule, so only the first of them (--energies) get it. Counts of checks that fail, of all molecules; a
molecule without a structure is counted as such. Needs posebusters and RDKit. Stop it at any time; the same command goes on.
"""
import argparse
import copy
import gzip
import json
import os
import random
import sys

import numpy as np
import posebusters
import yaml
from structures import built_here
from rdkit import Chem, RDLogger
from rdkit.Chem import rdDistGeom, rdForceFieldHelpers

STEP = 100


def molecules(paths, count):
    out = []
    for path in paths:
        with (gzip.open if path.endswith(".gz") else open)(path, "rt") as f:
            out += [line.split()[0] for line in f if line.strip() and "." not in line.split()[0]]
    random.Random(7).shuffle(out)
    return out[:count]


def built_rdkit(smiles):
    out = []
    for s in smiles:
        mol = Chem.AddHs(Chem.MolFromSmiles(s))
        params = rdDistGeom.ETKDGv3()
        params.randomSeed, params.maxIterations = 42, 50
        good = rdDistGeom.EmbedMolecule(mol, params) >= 0
        while good and rdForceFieldHelpers.MMFFHasAllMoleculeParams(mol) and rdForceFieldHelpers.MMFFOptimizeMolecule(mol, maxIters=2000) == 1:
            pass
        out.append(mol if good else None)
    return out


def checks(with_energy):
    path = os.path.join(os.path.dirname(posebusters.__file__), "config", "mol.yml")
    with open(path) as f:
        config = yaml.safe_load(f)
    if not with_energy:
        config["modules"] = [m for m in config["modules"] if m["function"] != "energy_ratio"]
    return posebusters.PoseBusters(config=copy.deepcopy(config))


def crosses(a, b, corners):
    """Whether the line from a to b passes through the triangle (Moller and Trumbore 1997)."""
    e1, e2, along = corners[1] - corners[0], corners[2] - corners[0], b - a
    p = np.cross(along, e2)
    det = e1 @ p
    if abs(det) < 1e-9:
        return False
    s = a - corners[0]
    u, q = (s @ p) / det, np.cross(s, e1)
    v, t = (along @ q) / det, (e2 @ q) / det
    return u >= 0 and v >= 0 and u + v <= 1 and 0 <= t <= 1


def threaded(mol):
    """Whether a bond passes through a ring: through the triangles between its middle and its sides. Bonds of its own atoms do not count."""
    x = mol.GetConformer().GetPositions()
    bonds = [(b.GetBeginAtomIdx(), b.GetEndAtomIdx()) for b in mol.GetBonds()]
    for ring in mol.GetRingInfo().AtomRings():
        middle, own = x[list(ring)].mean(axis=0), set(ring)
        reach = max(np.linalg.norm(x[k] - middle) for k in ring)
        near = [(a, b) for a, b in bonds if a not in own and b not in own and np.linalg.norm((x[a] + x[b]) / 2 - middle) < reach + 1]
        for k, atom in enumerate(ring):
            corners = middle, x[ring[k - 1]], x[atom]
            if any(crosses(x[a], x[b], corners) for a, b in near):
                return True
    return False


def count(busters, mols):
    """Failures by check, molecules judged."""
    good = [m for m in mols if m is not None]
    fails = {"no structure": len(mols) - len(good), "a bond through a ring": sum(map(threaded, good))}
    table = busters.bust(good, None, None, full_report=False)
    for name in table.columns:
        fails[name] = int((table[name] != True).sum())  # noqa: E712; what could not be computed is a failure
    return fails


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("dir")
    p.add_argument("files", nargs="+")
    p.add_argument("--molecules", type=int, default=10000)
    p.add_argument("--energies", type=int, default=500)
    p.add_argument("--rings", action="store_true", help="only structures of here, only bonds through rings: minutes for 10,000")
    o = p.parse_args()
    RDLogger.DisableLog("rdApp.*")
    os.makedirs(o.dir, exist_ok=True)
    all_ = molecules(o.files, o.molecules)
    if o.rings:
        built = [m for first in range(0, len(all_), STEP) for m in built_here(all_[first:first + STEP])]
        return print("%d molecules, %d without a structure, %d with a bond through a ring" %
                     (len(all_), built.count(None), sum(threaded(m) for m in built if m is not None)))
    sums, n = {}, {}
    for first in range(0, len(all_), STEP):
        for name, build in (("here", built_here), ("rdkit", built_rdkit)):
            path = os.path.join(o.dir, "%s-%d.json" % (name, first))
            energy = first < o.energies
            if not os.path.exists(path):
                fails = count(checks(energy), build(all_[first:first + STEP]))
                with open(path + ".part", "w") as f:
                    json.dump(fails, f)
                os.replace(path + ".part", path)
            with open(path) as f:
                for check, value in json.load(f).items():
                    sums[name, check] = sums.get((name, check), 0) + value
                    n[name, check] = n.get((name, check), 0) + len(all_[first:first + STEP])
        print(first + STEP, flush=True, file=sys.stderr)
    print("| fails | of | here | RDKit |\n|---|--:|--:|--:|")
    for check in dict.fromkeys(c for _, c in sums):
        print("| %s | %d | %d | %d |" % (check, n.get(("here", check), 0), sums.get(("here", check), 0), sums.get(("rdkit", check), 0)))


if __name__ == "__main__":
    main()
