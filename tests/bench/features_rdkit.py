#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compare the descriptors and environments of chem/features with RDKit's.

    build/dev/bin/descriptors_of < smiles.txt > here.txt
    python3 tests/bench/features_rdkit.py here.txt            # needs RDKit; prints a Markdown table
    python3 tests/bench/features_rdkit.py here.txt -v NAME    # molecules in which NAME differs
    python3 tests/bench/features_rdkit.py --golden smiles.txt # RDKit's values, for tests/data/descriptors.tsv

A value is equal if it differs by at most 1e-3 or 1e-4 of itself (molecular weight: 2e-4 of itself, because atomic weights are newer here)."""
import collections
import math
import sys

from rdkit import Chem, RDLogger
from rdkit.Chem import Crippen, Descriptors, rdFingerprintGenerator, rdMolDescriptors as R
from rdkit.Chem.EState import EState

RDLogger.DisableLog("rdApp.*")
GENERATOR = rdFingerprintGenerator.GetMorganGenerator(radius=2)
ELEMENTS = {"n_b": 5, "n_c": 6, "n_n": 7, "n_o": 8, "n_f": 9, "n_si": 14, "n_p": 15, "n_s": 16, "n_cl": 17, "n_se": 34, "n_br": 35,
            "n_i": 53}


def rings(m):
    info = m.GetRingInfo()
    return [set(r) for r in info.AtomRings()], [set(r) for r in info.BondRings()]


def counts(m):
    atoms, bonds = list(m.GetAtoms()), list(m.GetBonds())
    ra, rb = rings(m)
    heavy = [a for a in atoms if a.GetAtomicNum() > 1]
    out = {name: sum(a.GetAtomicNum() == z for a in atoms) for name, z in ELEMENTS.items()}
    out["n_h"] = sum(a.GetTotalNumHs() for a in atoms) + sum(a.GetAtomicNum() == 1 for a in atoms)
    out["n_other"] = sum(a.GetAtomicNum() not in ELEMENTS.values() for a in heavy)
    out["aromatic_atoms"] = sum(a.GetIsAromatic() for a in atoms)
    out["aromatic_carbons"] = sum(a.GetIsAromatic() and a.GetAtomicNum() == 6 for a in atoms)
    out["aromatic_hetero"] = out["aromatic_atoms"] - out["aromatic_carbons"]
    out["positive"] = sum(a.GetFormalCharge() > 0 for a in heavy)
    out["negative"] = sum(a.GetFormalCharge() < 0 for a in heavy)
    out["charge"] = Chem.GetFormalCharge(m)
    kinds = collections.Counter(b.GetBondType() for b in bonds)
    for name, kind in (("single", "SINGLE"), ("double", "DOUBLE"), ("triple", "TRIPLE"), ("aromatic", "AROMATIC")):
        out["bonds_" + name] = kinds[getattr(Chem.BondType, kind)]
    out["carbonyls"] = len(m.GetSubstructMatches(Chem.MolFromSmarts("[#6]=O")))
    for k in range(3, 8):
        out[f"rings_{k}"] = sum(len(r) == k for r in ra)
    out["rings_8"] = sum(len(r) > 7 for r in ra)
    out["fused_bonds"] = len({next(iter(a & b)) for i, a in enumerate(rb) for b in rb[:i] if len(a & b) == 1})
    out["spiro_atoms"] = R.CalcNumSpiroAtoms(m)
    out["bridgeheads"] = R.CalcNumBridgeheadAtoms(m)
    for k in range(1, 4):
        out[f"degree_{k}"] = sum(a.GetDegree() == k for a in heavy)
    out["degree_4"] = sum(a.GetDegree() >= 4 for a in heavy)
    out["sp3_carbons"] = sum(a.GetAtomicNum() == 6 and a.GetTotalDegree() == 4 for a in atoms)
    out["amides"] = R.CalcNumAmideBonds(m)
    bare = Chem.Mol(m)
    Chem.RemoveStereochemistry(bare)
    found = Chem.FindPotentialStereo(bare)
    out["stereo_atoms"] = sum(s.type == Chem.StereoType.Atom_Tetrahedral for s in found)
    out["stereo_bonds"] = sum(s.type == Chem.StereoType.Bond_Double for s in found)
    out["parts"] = len(Chem.GetMolFrags(m))
    return out


def basic(m):
    out = {"mw": Descriptors.MolWt(m), "logp": Crippen.MolLogP(m), "mr": Crippen.MolMR(m), "tpsa": R.CalcTPSA(m),
           "donors": R.CalcNumHBD(m), "acceptors": R.CalcNumHBA(m), "rotors": R.CalcNumRotatableBonds(m),
           "fsp3": R.CalcFractionCSP3(m), "n_heavy": m.GetNumHeavyAtoms(), "n_hetero": R.CalcNumHeteroatoms(m),
           "nh_oh": R.CalcNumLipinskiHBD(m), "nitrogen_oxygen": R.CalcNumLipinskiHBA(m), "rings": R.CalcNumRings(m),
           "valence_electrons": Descriptors.NumValenceElectrons(m), "labute_asa": R.CalcLabuteASA(m)}
    for kind, name in (("aromatic", "Aromatic"), ("aliphatic", "Aliphatic"), ("saturated", "Saturated")):
        out[f"rings_{kind}_carbo"] = getattr(R, f"CalcNum{name}Carbocycles")(m)
        out[f"rings_{kind}_hetero"] = getattr(R, f"CalcNum{name}Heterocycles")(m)
    return out


def surfaces(m):
    out = {}
    for name, values in (("slogp_vsa", R.SlogP_VSA_(m)), ("smr_vsa", R.SMR_VSA_(m)), ("peoe_vsa", R.PEOE_VSA_(m))):
        out.update({f"{name}{k + 1}": v for k, v in enumerate(values)})
    return out


def extremes(m):
    e = EState.EStateIndices(m)
    return {"charge_max": Descriptors.MaxPartialCharge(m), "charge_min": Descriptors.MinPartialCharge(m),
            "charge_abs_max": Descriptors.MaxAbsPartialCharge(m), "charge_abs_min": Descriptors.MinAbsPartialCharge(m),
            "estate_max": max(e), "estate_min": min(e), "estate_abs_max": max(map(abs, e)), "estate_abs_min": min(map(abs, e))}


def rdkit_of(smiles):
    m = Chem.MolFromSmiles(smiles)
    if m is None:
        return None, None
    for a in m.GetAtoms():
        a.SetIsotope(0)
    m = Chem.MolFromSmiles(Chem.MolToSmiles(m))
    if m is None:
        return None, None
    return m, {**basic(m), **counts(m), **surfaces(m), **extremes(m)}


def equal(name, a, b):
    return abs(a - b) <= (2e-4 * b if name == "mw" else max(1e-3, 1e-4 * abs(b)))


def read(path):
    with open(path, encoding="utf-8") as lines:
        names = next(lines).split()[1:]
        for line in lines:
            left, right = line.split("|")
            smiles, *values = left.split()
            yield smiles, dict(zip(names, map(float, values))), sorted(int(w.split(":")[1]) for w in right.split())


def compare(path, verbose):
    n, same, worst, prints, aromatic = 0, collections.Counter(), {}, 0, 0
    n_like, same_like = 0, collections.Counter()
    for smiles, here, environments in read(path):
        m, there = rdkit_of(smiles)
        if m is None:
            continue
        n += 1
        like = here["aromatic_atoms"] == there["aromatic_atoms"] and here["n_h"] == there["n_h"]
        n_like += like
        prints += environments == sorted(GENERATOR.GetSparseCountFingerprint(m).GetNonzeroElements().values())
        for name, value in there.items():
            good = equal(name, here[name], value)
            same[name] += good
            same_like[name] += good and like
            if abs(here[name] - value) > worst.get(name, (-1,))[0]:
                worst[name] = abs(here[name] - value), smiles
            if verbose == name and not good:
                print(f"{smiles} {here[name]:g} {value:g}" + ("" if like else " (aromaticity or hydrogens differ)"))
    if verbose:
        return
    print(f"{n} molecules, {n_like} with the same aromatic atoms and hydrogens; counts of environments equal in {prints}\n")
    print("| descriptor | equal, % | of those with the same aromatic atoms, % | largest difference |\n|---|--:|--:|--:|")
    for name in there:
        print(f"| {name} | {100 * same[name] / n:.2f} | {100 * same_like[name] / n_like:.2f} | {worst[name][0]:.4g} |")


def golden(path):
    names = None
    with open(path, encoding="utf-8") as lines:
        for smiles in map(str.strip, lines):
            m, there = rdkit_of(smiles)
            if not math.isfinite(there["charge_max"]):  # an atom without parameters: nothing to compare with
                there.update({k: math.nan for k in there if k.startswith(("peoe", "charge_"))})
            if names is None:
                names = list(there)
                print("smiles", *names, "environments", sep="\t")
            counts = sorted(GENERATOR.GetSparseCountFingerprint(m).GetNonzeroElements().values())
            print(smiles, *(f"{there[k]:.6g}" for k in names), ",".join(map(str, counts)), sep="\t")


if __name__ == "__main__":
    if sys.argv[1] == "--golden":
        golden(sys.argv[2])
    else:
        compare(sys.argv[1], sys.argv[3] if len(sys.argv) > 3 else None)
