#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/bench/structures.py BENCH_STRUCTURES FILE.smi[.gz] N [BEST] - structures beside RDKit's, same molecules, same run.

RDKit (ETKDGv3, then MMFF94 until its own convergence) builds N molecules of a single part in one thread; then BENCH_STRUCTURES
builds them from the same bonds and stereo. Energies of both are RDKit's MMFF94, above the best of BEST (10) of RDKit's own
structures. Times are of the processor. Needs RDKit and numpy from PyPI in an environment of its own."""
import gzip
import os
import random
import subprocess
import sys
import tempfile
import time

import numpy as np
from rdkit import Chem, RDLogger
from rdkit.Chem import rdDistGeom
from rdkit.Chem import rdForceFieldHelpers as ff

RDLogger.DisableLog("rdApp.*")
TRANS = (Chem.BondStereo.STEREOE, Chem.BondStereo.STEREOTRANS)
CIS = (Chem.BondStereo.STEREOZ, Chem.BondStereo.STEREOCIS)


def stereo(mol):
    """A line of the STEREO file; signs are those of RDKit's own structure, which it checked."""
    x = mol.GetConformer().GetPositions()
    centres, bonds = [], []
    for atom in mol.GetAtoms():
        near = [a.GetIdx() for a in atom.GetNeighbors()]
        if atom.GetChiralTag() != Chem.ChiralType.CHI_UNSPECIFIED and len(near) >= 3:
            near += [atom.GetIdx()] * (4 - len(near))
            v = x[near[:3]] - x[near[3]]
            centres += [atom.GetIdx(), *near, 1 if np.linalg.det(v) > 0 else -1]
    for bond in mol.GetBonds():
        if bond.GetStereo() in TRANS + CIS:
            a, d = bond.GetStereoAtoms()
            bonds += [a, bond.GetBeginAtomIdx(), bond.GetEndAtomIdx(), d, int(bond.GetStereo() in CIS)]
    return " ".join(map(str, [len(centres) // 6, *centres, len(bonds) // 5, *bonds]))


def relax(mol, conformer=-1):
    while ff.MMFFOptimizeMolecule(mol, maxIters=2000, confId=conformer) == 1:
        pass


def energy(mol, props, conformer):
    return ff.MMFFGetMoleculeForceField(mol, props, confId=conformer).CalcEnergy()


def rdkit_structure(smiles):
    """The molecule, its CPU seconds for embedding and relaxing; None: RDKit has none."""
    mol = Chem.AddHs(Chem.MolFromSmiles(smiles))
    params = rdDistGeom.ETKDGv3()
    params.randomSeed, params.numThreads, params.maxIterations = 42, 1, 50
    start = time.thread_time()
    if rdDistGeom.EmbedMolecule(mol, params) < 0:
        return None
    middle = time.thread_time()
    if ff.MMFFGetMoleculeProperties(mol) is None:
        return None
    relax(mol)
    return mol, middle - start, time.thread_time() - middle


def best_of(mol, count):
    many = Chem.Mol(mol)
    params = rdDistGeom.ETKDGv3()
    params.randomSeed = 7
    rdDistGeom.EmbedMultipleConfs(many, count, params)
    return min([e for _, e in ff.MMFFOptimizeMoleculeConfs(many, maxIters=20000)] or [float("inf")])


def same_stereo(mol, positions):
    """Whether stereo perceived from positions alone is that of the SMILES."""
    want = Chem.MolToSmiles(Chem.RemoveHs(mol))
    got = Chem.Mol(mol)
    for k, p in enumerate(positions):
        got.GetConformer().SetAtomPosition(k, [float(c) for c in p])
    Chem.AssignStereochemistryFrom3D(got)
    for a, b in zip(mol.GetAtoms(), got.GetAtoms()):  # centres that the SMILES leaves undefined are undefined in both
        if a.GetChiralTag() == Chem.ChiralType.CHI_UNSPECIFIED:
            b.SetChiralTag(a.GetChiralTag())
    for a, b in zip(mol.GetBonds(), got.GetBonds()):
        if a.GetStereo() not in TRANS + CIS:
            b.SetStereo(Chem.BondStereo.STEREONONE)
    clean = Chem.RemoveHs(got)
    Chem.AssignStereochemistry(clean, cleanIt=True, force=True)
    return Chem.MolToSmiles(clean) == want


def said(values):
    return "median %.2f, mean %.2f, nine of ten below %.2f" % (np.median(values), np.mean(values), np.quantile(values, 0.9))


def main():
    program, path, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    best = int(sys.argv[4]) if len(sys.argv) > 4 else 10
    opened = gzip.open if path.endswith(".gz") else open
    lines = [line.split()[0] for line in opened(path, "rt")]
    random.Random(7).shuffle(lines)
    mols, embed, relaxed, failed = [], 0, 0, 0
    for smiles in lines:
        if "." in smiles or len(mols) == count:
            continue
        got = rdkit_structure(smiles)
        failed += got is None
        if got:
            mols.append(got[0])
            embed, relaxed = embed + got[1], relaxed + got[2]
    with tempfile.TemporaryDirectory() as tmp:
        sdf, notes, xyz = (os.path.join(tmp, n) for n in ("m.sdf.gz", "stereo", "xyz"))
        with gzip.open(sdf, "wt") as f:
            f.write("".join(Chem.MolToMolBlock(m) + "$$$$\n" for m in mols))
        with open(notes, "w") as f:
            f.write("".join(stereo(m) + "\n" for m in mols))
        print(subprocess.run([program, sdf, notes, xyz], check=True, capture_output=True, text=True).stdout)
        data = np.fromfile(xyz, np.int32)
    print("RDKit: %d molecules, %d more failed; ms a molecule: ETKDGv3 %.2f, MMFF94 to convergence %.2f, both %.2f"
          % (len(mols), failed, 1e3 * embed / len(mols), 1e3 * relaxed / len(mols), 1e3 * (embed + relaxed) / len(mols)))
    at, ours, theirs, kept, built, defined = 0, [], [], 0, 0, 0
    for mol in mols:
        n = data[at]
        at += 1 + 3 * n
        if n == 0:
            continue
        positions = data[at - 3 * n:at].view(np.float32).reshape(n, 3)
        props = ff.MMFFGetMoleculeProperties(mol)
        single = energy(mol, props, -1)
        least = min(best_of(mol, best), single) if best > 0 else single
        built += 1
        has = "@" in Chem.MolToSmiles(mol) or "/" in Chem.MolToSmiles(mol)
        defined += has
        kept += has and same_stereo(mol, positions)
        copy = Chem.Mol(mol)
        for k, p in enumerate(positions):
            copy.GetConformer().SetAtomPosition(k, [float(c) for c in p])
        ours.append(energy(copy, props, -1) - least)
        theirs.append(single - least)
    print("energy above the best of %d of RDKit, kcal/mol, RDKit's MMFF94 for all" % best)
    print("  here:  " + said(ours))
    print("  RDKit: " + said(theirs))
    print("stereo kept: %d of %d molecules that define any" % (kept, defined))


if __name__ == "__main__":
    main()
