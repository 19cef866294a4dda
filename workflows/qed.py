# SPDX-License-Identifier: Apache-2.0
"""Prints RDKit's QED (drug-likeness, 0 to 1) of each SMILES as a table. Needs: pip install rdkit."""
import sys

from rdkit import Chem
from rdkit.Chem import QED

print("id,qed")
for line in open(sys.argv[1]):
    smiles, number = line.split()
    molecule = Chem.MolFromSmiles(smiles)
    print("%s,%s" % (number, "" if molecule is None else repr(QED.qed(molecule))))
