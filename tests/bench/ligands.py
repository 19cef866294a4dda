#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ligands of the PDB: how many have a conformer within 1 Angstrom of the crystal's, here and with RDKit.

    MOLSIEVE=build/release/bin/molsieve tests/bench/ligands.py run LIGANDS.sdf[.gz] DIR [--molecules 1000] [--seeds 3] [--only here]
    tests/bench/ligands.py table DIR

Both programs get the SMILES of the crystal's molecule, with its stereo, and nothing else. A conformer's distance is the root mean square
deviation of heavy atoms after the best superposition, over all mappings of equal atoms (element, hydrogens, bonds; of terminal
atoms only the element, so that the oxygens of a carboxylate are equal). `here 10` and `here 50` are `molsieve conformers --count`, `etkdg`
is RDKit's ETKDGv3 alone, `mmff` followed by MMFF94 to convergence. Mirror images are not allowed. Molecules that cannot turn or
have less than five heavy atoms count, too; one without any structure counts as not within. Needs RDKit and numpy. Stop it at any time;
the same command goes on.
"""
import argparse
import gzip
import json
import os
import subprocess
import sys

PROGRAM = os.environ.get("MOLSIEVE", "molsieve")
COUNTS = (10, 50)
NEAR = 1.0
MOST_MAPS = 4000
STEP = 50


def skeleton(mol):
    """Heavy atoms and their bonds without orders and charges; isotopes tell unequal atoms apart. Atoms keep their order."""
    from rdkit import Chem
    out = Chem.RWMol()
    place = {}
    for a in mol.GetAtoms():
        if a.GetAtomicNum() == 1:
            continue
        new = Chem.Atom(a.GetAtomicNum())
        new.SetNoImplicit(True)
        heavy = sum(b.GetAtomicNum() > 1 for b in a.GetNeighbors())
        new.SetIsotope(1 + a.GetTotalNumHs(includeNeighbors=True) if heavy > 1 else 0)
        place[a.GetIdx()] = out.AddAtom(new)
    for b in mol.GetBonds():
        if b.GetBeginAtomIdx() in place and b.GetEndAtomIdx() in place:
            out.AddBond(place[b.GetBeginAtomIdx()], place[b.GetEndAtomIdx()], Chem.BondType.SINGLE)
    return out.GetMol(), list(place)


def nearest(crystal, mol, conformers):
    """Distances in Angstrom of conformers [k][atom][3] of mol to the crystal's positions; None: other atoms or bonds."""
    import numpy as np
    a, at_a = skeleton(crystal)
    b, at_b = skeleton(mol)
    if a.GetNumAtoms() != b.GetNumAtoms() or a.GetNumBonds() != b.GetNumBonds():
        return None
    maps = np.array(b.GetSubstructMatches(a, uniquify=False, maxMatches=MOST_MAPS))
    if len(maps) == 0:
        return None
    x = crystal.GetConformer().GetPositions()[at_a]
    y = np.asarray(conformers, float)[:, at_b]
    x, y = x - x.mean(0), y - y.mean(1, keepdims=True)
    best = []
    for k in range(len(y)):
        u = np.einsum("ni,mnj->mij", x, y[k][maps])
        s = np.linalg.svd(u, compute_uv=False)
        s[:, 2] *= np.sign(np.linalg.det(u))
        best.append(float(np.sqrt(max(0, (x * x).sum() + (y[k] ** 2).sum() - 2 * s.sum(1).max()) / len(x))))
    return best


def ligands(path, count):
    """Crystal structures with stereo from their positions, and their SMILES."""
    from rdkit import Chem
    opened = gzip.open(path) if path.endswith(".gz") else open(path, "rb")
    out = []
    for mol in Chem.ForwardSDMolSupplier(opened):
        if mol is None or len(Chem.GetMolFrags(mol)) != 1:
            continue
        mol = Chem.RemoveHs(mol)
        Chem.AssignStereochemistryFrom3D(mol)
        again = Chem.MolFromSmiles(Chem.MolToSmiles(mol))
        if again is not None and len(out) < count:
            out.append((mol, Chem.MolToSmiles(mol)))
    return out


def done(path):
    if not os.path.exists(path):
        return {}
    with open(path) as f:
        return dict(json.loads(line) for line in f if line.endswith("\n"))


def add(path, name, distances):
    with open(path, "a") as f:
        f.write(json.dumps([name, [round(d, 4) for d in distances]]) + "\n")


def here(all_, where, count, seed, extra):
    """DIR/here-COUNT-SEED: distances of all structures, in the order of their energy."""
    from rdkit import Chem
    path = os.path.join(where, "here-%d-%d" % (count, seed))
    smi, sdf = path + ".smi", path + ".sdf"
    known = done(path)
    for first in range(0, len(all_), STEP):
        some = [("lig%d" % k, *all_[k]) for k in range(first, min(first + STEP, len(all_))) if "lig%d" % k not in known]
        if not some:
            continue
        with open(smi, "w") as f:
            f.writelines("%s %s\n" % (s, name) for name, _, s in some)
        command = [PROGRAM, "conformers", smi, "-o", sdf, "--count", str(count), "--seed", str(seed)] + extra
        code = subprocess.run(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
        assert code in (0, 3), "molsieve ended with %d" % code
        found = {}
        for mol in Chem.SDMolSupplier(sdf, sanitize=False, removeHs=False):
            mol.UpdatePropertyCache(strict=False)
            found.setdefault(mol.GetProp("_Name"), []).append(mol)
        for name, crystal, _ in some:
            mols = found.get(name)
            xyz = [m.GetConformer().GetPositions() for m in mols] if mols else []
            add(path, name, (nearest(crystal, mols[0], xyz) or []) if mols else [])
        os.remove(sdf)


def rdkit(all_, where, seed, relax):
    """DIR/etkdg-SEED and DIR/mmff-SEED: distances of the most structures, in the order in which they were made."""
    from rdkit import Chem
    from rdkit.Chem import rdDistGeom, rdForceFieldHelpers
    paths = [os.path.join(where, "%s-%d" % (n, seed)) for n in (("etkdg", "mmff") if relax else ("etkdg",))]
    known = done(paths[-1])
    for k, (crystal, smiles) in enumerate(all_):
        if "lig%d" % k in known:
            continue
        mol = Chem.AddHs(Chem.MolFromSmiles(smiles))
        params = rdDistGeom.ETKDGv3()
        params.randomSeed, params.numThreads, params.maxIterations, params.timeout = 1000 + seed, 1, 50, 120
        rdDistGeom.EmbedMultipleConfs(mol, max(COUNTS), params)
        for path in paths:
            if path is not paths[0] and mol.GetNumConformers() > 0 and rdForceFieldHelpers.MMFFHasAllMoleculeParams(mol):
                rdForceFieldHelpers.MMFFOptimizeMoleculeConfs(mol, maxIters=5000)
            xyz = [c.GetPositions() for c in mol.GetConformers()]
            if "lig%d" % k not in done(path):
                add(path, "lig%d" % k, (nearest(crystal, mol, xyz) or []) if xyz else [])


def share(where, name, count, seed, wanted):
    path = os.path.join(where, ("here-%d-%d" % (count, seed)) if name == "here" else "%s-%d" % (name, seed))
    values = done(path)
    if not wanted <= set(values):
        return None
    best = [min(values[n][:count] or [99]) for n in wanted]
    return 100 * sum(b <= NEAR for b in best) / len(best), sum(best[k] for k in range(len(best)) if best[k] < 99) / len(best), sum(b == 99 for b in best)


def table(where):
    files = sorted(f for f in os.listdir(where) if f.rsplit("-", 1)[-1].isdigit())
    wanted = set.intersection(*(set(done(os.path.join(where, f))) for f in files))
    print("%d molecules\n" % len(wanted))
    print("| structures | of | seed | within %.1f A, %% | mean of the nearest, A | none |\n|---|--:|--:|--:|--:|--:|" % NEAR)
    for count in COUNTS:
        for name in ("here", "etkdg", "mmff"):
            rows = [(s, share(where, name, count, s, wanted)) for s in range(1, 100)]
            rows = [(s, r) for s, r in rows if r]
            for s, r in rows:
                print("| %s | %d | %d | %.1f | %.3f | %d |" % (name, count, s, *r))
            if len(rows) > 1:
                print("| **%s** | %d | mean | **%.1f** | %.3f | |" % (name, count, *(sum(r[i] for _, r in rows) / len(rows) for i in (0, 1))))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("what", choices=("run", "table"))
    p.add_argument("paths", nargs="+")
    p.add_argument("--molecules", type=int, default=1000)
    p.add_argument("--seeds", type=int, default=3)
    p.add_argument("--only", choices=("here", "etkdg", "mmff"))
    p.add_argument("--extra", default="", help="further options of `molsieve conformers`")
    o = p.parse_args()
    where = o.paths[-1]
    if o.what == "run":
        os.makedirs(where, exist_ok=True)
        all_ = ligands(o.paths[0], o.molecules)
        for seed in range(1, o.seeds + 1):
            for count in COUNTS if o.only in (None, "here") else ():
                here(all_, where, count, seed, o.extra.split())
            if o.only != "here":
                rdkit(all_, where, seed, o.only != "etkdg")
    table(where)


if __name__ == "__main__":
    main()
