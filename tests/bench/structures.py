#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""3D structures beside RDKit's and the old builder's: the same molecules, the same run, one table.

    MOLSIEVE=build/release/bin/molsieve BENCH=build/release/bin/bench_structures \\
        tests/bench/structures.py DIR ZINC.smi CHEMBL.smi.gz [--molecules 150] [--seeds 3] [--best 10] [--many 10000]

old: `prepare` of the demonstration's library with both builders. alone: structures from bonds and stereo, and RDKit's ETKDGv3 followed by MMFF94
until its own convergence, in one thread. prepare: SMILES to structure on one worker, and RDKit doing the same (parse, canonical SMILES,
InChIKey, descriptors, structure). energy: RDKit's MMFF94 for all, above the best of --best structures of RDKit; left: to the minimum
below. failures: of --many molecules. Times are of the processor, so that a busy machine matters less; wall times stand beside those of `old`.
Needs RDKit and numpy from PyPI in an environment of its own. Stop it at any time; the same command goes on with the next part. About ten
minutes on two quiet cores."""
import argparse
import gzip
import json
import multiprocessing
import os
import random
import re
import resource
import sqlite3
import subprocess
import time

import numpy as np
from rdkit import Chem, RDLogger
from rdkit.Chem import Crippen, Descriptors, rdDistGeom, rdMolDescriptors
from rdkit.Chem import rdForceFieldHelpers as ff

RDLogger.DisableLog("rdApp.*")
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.environ.get("MOLSIEVE", "molsieve")
BENCH = os.environ.get("BENCH", os.path.join(ROOT, "build/release/bin/bench_structures"))
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


def energy(mol, props, tight=False):
    """RDKit's MMFF94; tight: after its minimisation to 1e-6."""
    copy = Chem.Mol(mol)
    field = ff.MMFFGetMoleculeForceField(copy, props)
    if tight:
        field.Minimize(maxIts=20000, forceTol=1e-6, energyTol=1e-9)
    return field.CalcEnergy()


def rdkit_structure(smiles, seed):
    """The molecule, its CPU seconds for embedding and relaxing; None: RDKit has none."""
    mol = Chem.AddHs(Chem.MolFromSmiles(smiles))
    params = rdDistGeom.ETKDGv3()
    params.randomSeed, params.numThreads, params.maxIterations = 41 + seed, 1, 50
    start = time.thread_time()
    if rdDistGeom.EmbedMolecule(mol, params) < 0:
        return None
    middle = time.thread_time()
    if not ff.MMFFHasAllMoleculeParams(mol):
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
    return "%.2f / %.2f / %.2f" % (np.median(values), np.mean(values), np.quantile(values, 0.9))


def molecules(path, count):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt") as f:
        lines = [line.split()[0] for line in f if line.strip()]
    random.Random(7).shuffle(lines)
    return [s for s in lines if "." not in s][:count]


def built_here(smiles, extra=()):
    """One structure of `molsieve conformers` for each SMILES; None: it has none."""
    text = "".join("%s m%d\n" % (s, k) for k, s in enumerate(smiles))
    sdf = subprocess.run([PROGRAM, "conformers", "-", "-f", "smi", "-j", "1", *extra], input=text, capture_output=True, text=True).stdout
    supplier = Chem.SDMolSupplier()
    supplier.SetData(sdf, removeHs=False)
    found = {m.GetProp("_Name"): m for m in supplier if m is not None}
    return [found.get("m%d" % k) for k in range(len(smiles))]


def children():
    r = resource.getrusage(resource.RUSAGE_CHILDREN)
    return r.ru_utime + r.ru_stime


def run_prepare(o, name, library, builder):
    """CPU and wall seconds of read and prepare with one worker; molecules with a structure and records."""
    workdir = os.path.join(o.dir, name)
    subprocess.run(["rm", "-rf", workdir], check=True)
    path = workdir + ".yaml"
    with open(path, "w") as f:
        f.write("format: 1\nworkdir: %s\ninputs: [{path: %s, format: smi}]\nstages: {read: {}, prepare: {conformers: {source: generate, builder: %s}}}\n"
                % (workdir, library, builder))
    cpu, wall = children(), time.time()
    code = subprocess.run([PROGRAM, "run", path, "-q", "-j", "1"], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
    cpu, wall = children() - cpu, time.time() - wall
    db = sqlite3.connect("file:%s/results.db?mode=ro" % workdir, uri=True)
    built, records = db.execute("SELECT (SELECT count(*) FROM molecule WHERE geometry<>'none'), (SELECT count(*) FROM record)").fetchone()
    native = db.execute("SELECT count(*) FROM molecule WHERE built_by='native'").fetchone()[0]
    db.close()
    assert code in (0, 3), code
    return {"cpu": cpu, "wall": wall, "built": built, "native": native, "records": records}


def part_old(o):
    library = os.path.join(ROOT, "workflows/data/library.smi")
    r = {b: run_prepare(o, "old-" + b, library, b) for b in ("native", "openbabel")}
    return [["%s: all of prepare, CPU ms a record (wall)" % b, "%.2f (%.1f)" % (1e3 * x["cpu"] / x["records"], 1e3 * x["wall"] / x["records"]),
             "%d of %d have a structure, %d by the native builder" % (x["built"], x["records"], x["native"])] for b, x in r.items()] + [
        ["native against the old builder, all of prepare", "%.1f x" % (r["openbabel"]["cpu"] / r["native"]["cpu"]), "CPU time"]]


def positions_here(o, mols, name, seed):
    """Positions of bench_structures, None where it refuses, and its ms a molecule."""
    sdf, notes, xyz = (os.path.join(o.dir, name + n) for n in (".sdf.gz", ".stereo", ".xyz"))
    with gzip.open(sdf, "wt") as f:
        f.write("".join(Chem.MolToMolBlock(m) + "$$$$\n" for m in mols))
    with open(notes, "w") as f:
        f.write("".join(stereo(m) + "\n" for m in mols))
    text = subprocess.run([BENCH, sdf, notes, xyz, str(seed)], check=True, capture_output=True, text=True).stdout
    data, at, out = np.fromfile(xyz, np.int32), 0, []
    for _ in mols:
        n = data[at]
        at += 1 + 3 * n
        out.append(data[at - 3 * n:at].view(np.float32).reshape(n, 3) if n else None)
    return out, float(re.search(r"ms a molecule, all: ([\d.]+)", text).group(1)), text


def with_positions(mol, positions):
    copy = Chem.Mol(mol)
    for k, p in enumerate(positions):
        copy.GetConformer().SetAtomPosition(k, [float(c) for c in p])
    return copy


def judge(o, mols, positions, least):
    """Energies above the best and left to the minimum, here and RDKit's; stereo kept and defined."""
    above, left, kept, defined = ([], []), ([], []), 0, 0
    for mol, xyz, low in zip(mols, positions, least):
        if xyz is None:
            continue
        props = ff.MMFFGetMoleculeProperties(mol)
        for k, m in enumerate((with_positions(mol, xyz), mol)):
            e = energy(m, props)
            above[k].append(e - low)
            left[k].append(max(0, e - energy(m, props, True)))
        has = bool(set("@/\\") & set(Chem.MolToSmiles(mol)))
        defined += has
        kept += has and same_stereo(mol, xyz)
    return above, left, kept, defined


def part_alone(o, path):
    rows, name, least = [], os.path.basename(path).split(".")[0], None
    for seed in range(1, o.seeds + 1):
        got = [rdkit_structure(s, seed) for s in molecules(path, o.molecules)]
        mols = [g[0] if g else None for g in got]
        if least is None:
            least = [best_of(m, o.best) if m else None for m in mols]
        good = [k for k, m in enumerate(mols) if m is not None and least[k] is not None]
        mols, low = [mols[k] for k in good], [least[k] for k in good]
        xyz, ms, text = positions_here(o, mols, "alone", seed)
        theirs = 1e3 * sum(got[k][1] + got[k][2] for k in good) / len(good)
        above, left, kept, defined = judge(o, mols, xyz, low)
        rows += [["%s, seed %d: structure alone, ms a molecule" % (name, seed), "%.2f" % ms, "RDKit %.1f: %.1f x (%d molecules, %d refused here)"
                  % (theirs, theirs / ms, len(good), sum(x is None for x in xyz))],
                 ["%s, seed %d: energy above the best of %d, median / mean / nine of ten" % (name, seed, o.best), said(above[0]), "RDKit " + said(above[1])],
                 ["%s, seed %d: left to the minimum, kcal/mol, median / mean / nine of ten / most" % (name, seed), "%s / %.2f" % (said(left[0]), max(left[0])),
                  "RDKit %s / %.2f" % (said(left[1]), max(left[1]))],
                 ["%s, seed %d: stereo kept" % (name, seed), "%d of %d" % (kept, defined), ""]]
        if seed == 1:
            rows += [[name + ": " + line.strip(), "", ""] for line in text.splitlines() if "energy and gradient" in line][:3]
    return rows


def rdkit_prepare(smiles):
    mol = Chem.MolFromSmiles(smiles)
    Chem.MolToSmiles(mol), Chem.MolToInchiKey(mol)
    Descriptors.MolWt(mol), Crippen.MolLogP(mol), rdMolDescriptors.CalcTPSA(mol), rdMolDescriptors.CalcNumHBD(mol)
    rdMolDescriptors.CalcNumHBA(mol), rdMolDescriptors.CalcNumRotatableBonds(mol), rdMolDescriptors.CalcNumRings(mol)
    rdMolDescriptors.CalcFractionCSP3(mol), rdMolDescriptors.CalcMolFormula(mol)
    rdkit_structure(smiles, 1)


def part_prepare(o, path):
    all_, name = molecules(path, 2 * o.molecules), os.path.basename(path).split(".")[0]
    library = os.path.join(o.dir, "prepare.smi")
    with open(library, "w") as f:
        f.writelines("%s m%d\n" % (s, k) for k, s in enumerate(all_))
    r = run_prepare(o, "prepare", library, "native")
    start = time.thread_time()
    for s in all_:
        rdkit_prepare(s)
    theirs, ours = 1e3 * (time.thread_time() - start) / len(all_), 1e3 * r["cpu"] / r["records"]
    return [["%s: all of prepare, one worker, CPU ms a record" % name, "%.2f" % ours, "RDKit %.1f: %.1f x (%d records)" % (theirs, theirs / ours, len(all_))]]


def fails_in_rdkit(smiles):
    mol = Chem.MolFromSmiles(smiles)
    if mol is None:
        return "not read"
    mol = Chem.AddHs(mol)
    params = rdDistGeom.ETKDGv3()
    params.randomSeed, params.maxIterations = 42, 50
    if rdDistGeom.EmbedMolecule(mol, params) < 0:
        return "not embedded"
    return None if ff.MMFFHasAllMoleculeParams(mol) else "no MMFF94"


def part_failures(o, paths):
    all_ = [s for p in paths for s in molecules(p, o.many // len(paths))]
    library = os.path.join(o.dir, "many.smi")
    with open(library, "w") as f:
        f.writelines("%s m%d\n" % (s, k) for k, s in enumerate(all_))
    r = run_prepare(o, "many", library, "native")
    db = sqlite3.connect("file:%s/many/results.db?mode=ro" % o.dir, uri=True)
    failed = db.execute("SELECT count(*) FROM record WHERE status='failed'").fetchone()[0]
    db.close()
    with multiprocessing.Pool() as pool:
        theirs = [x for x in pool.imap_unordered(fails_in_rdkit, all_, 50) if x]
    return [["records without a structure, of %d" % len(all_), "%d (%d built by Open Babel)" % (failed, r["built"] - r["native"]),
             "RDKit %d (%s)" % (len(theirs), ", ".join("%s %d" % (w, theirs.count(w)) for w in sorted(set(theirs))))]]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("dir")
    p.add_argument("files", nargs="+")
    for name, value in (("molecules", 150), ("seeds", 3), ("best", 10), ("many", 10000)):
        p.add_argument("--" + name, type=int, default=value)
    o = p.parse_args()
    o.dir = os.path.abspath(o.dir)
    os.makedirs(o.dir, exist_ok=True)
    parts = [("old", part_old, ())]
    parts += [("%s-%d" % (n, k), f, (path,)) for n, f in (("alone", part_alone), ("prepare", part_prepare)) for k, path in enumerate(o.files)]
    parts += [("failures", part_failures, (o.files,))]
    print("| what | here | beside it |\n|---|---|---|")
    for name, function, args in parts:
        path = os.path.join(o.dir, name + ".json")
        if not os.path.exists(path):
            rows = function(o, *args)
            with open(path + ".part", "w") as f:
                json.dump(rows, f)
            os.replace(path + ".part", path)
        with open(path) as f:
            for row in json.load(f):
                print("| %s |" % " | ".join(row), flush=True)


if __name__ == "__main__":
    main()
