#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/data/shapes.py - makes shapes.sdf.gz: cages, fused, bridged and spiro rings, macrocycles and stereo, in a minimum of MMFF94.

Needs RDKit (PyPI), whose versions differ in the coordinates. Names are the SMILES."""
import gzip
import os

from rdkit import Chem
from rdkit.Chem import rdDistGeom
from rdkit.Chem import rdForceFieldHelpers as ff

SMILES = """
CC[C@@H]1[C@@]([C@@H]([C@H](C(=O)[C@@H](C[C@@]([C@@H]([C@H]([C@@H]([C@H](C(=O)O1)C)O[C@H]2C[C@@]([C@H]([C@@H](O2)C)O)(C)OC)C)O[C@H]3[C@@H]([C@H](C[C@H](O3)C)N(C)C)O)(C)O)C)C)O)(C)O
C1CC/C=C/CCC1
C1CN2CCN1CC2
C/C=C/C=C\\C(=O)NC
C1CC11CCCC1
CS(=O)(=O)Nc1ccc([N+](=O)[O-])cc1
CC1(C)[C@@H]2CC[C@@]1(C)C(=O)C2
CC#CC(=O)N1CCC[C@H]1C#N
C1CC2CC1C=C2
C[N+]12CCC(CC1)CC2
C1CC2CCC1C2
C1=CC2C=CC1C2
CN1CC[C@]23c4c5ccc(O)c4O[C@H]2[C@@H](O)C=C[C@H]3[C@H]1C5
OC(=O)[C@@H]1[C@H]2CC[C@H](O2)[C@@H]1C(O)=O
C12CC1C2
c1ccsc1-c1nnn[nH]1
C1CCC2CCCCC2C1
c1ccc2c(c1)ccc1ccccc12
C1CC[C@@H]2CCCC[C@H]2C1
C1CC2(C1)CC2
C[C@H]1[C@H]([C@H]([C@@H](O1)O[C@@H]2[C@H]([C@@H]([C@H]([C@@H]([C@H]2O)O)N=C(N)N)O)N=C(N)N)O)O
O=C1NC(=O)c2ccccc12
CC12CCC(CC1)C2(C)C
C1COCCOCCOCCOCCOCCO1
C1=CCCCCCC1
O=C1CCCCCCCCCCCCCC1
CC(C)C[C@H](NC(=O)[C@H](Cc1ccccc1)NC(=O)c1cnccn1)C(=O)O
CC(=O)OC(C)=C=C
C1C2CC3CC1CC(C2)C3
C12C3C4C1C5C2C3C45
O=C1c2ccccc2C(=O)c2ccccc12
C[S@](=O)c1ccccc1
C[C@]12CC[C@H]3[C@@H](CCc4cc(O)ccc34)[C@@H]1CC[C@@H]2O
CC1=C2[C@@]([C@]([C@H]([C@@H]3[C@]4([C@H](OC4)C[C@@H]([C@]3(C(=O)[C@@H]2OC(=O)C)C)O)OC(=O)C)OC(=O)c5ccccc5)(C[C@@H]1OC(=O)[C@H](O)[C@H](c6ccccc6)NC(=O)c7ccccc7)O)(C)C
""".split()


def main():
    text = ""
    for smiles in SMILES:
        mol = Chem.AddHs(Chem.MolFromSmiles(smiles))
        params = rdDistGeom.ETKDGv3()
        params.randomSeed = 1
        if rdDistGeom.EmbedMolecule(mol, params) != 0 or ff.MMFFOptimizeMolecule(mol, maxIters=20000) != 0:
            raise SystemExit("%s: no structure" % smiles)
        mol.SetProp("_Name", smiles)
        text += Chem.MolToMolBlock(mol) + "$$$$\n"
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "shapes.sdf.gz"), "wb") as f:
        f.write(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    main()
