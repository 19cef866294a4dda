#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes scaffolds.tsv: every seventh SMILES of library.smi, and its Bemis-Murcko scaffold as RDKit gives it, without stereo.

   scaffolds.py [FOLDER]      FOLDER: where library.smi is and scaffolds.tsv goes; default: the folder of this file"""
import os
import sys

from rdkit import Chem
from rdkit.Chem.Scaffolds import MurckoScaffold


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(folder, "library.smi")) as lines:
        smiles = [line.split()[0] for line in lines]
    with open(os.path.join(folder, "scaffolds.tsv"), "w") as out:
        for s in smiles[::7]:
            mol = Chem.MolFromSmiles(s)
            if mol is None:
                continue
            for atom in mol.GetAtoms():
                atom.SetIsotope(0)
            out.write("%s\t%s\n" % (s, MurckoScaffold.MurckoScaffoldSmiles(mol=mol, includeChirality=False)))


main()
