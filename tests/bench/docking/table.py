#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the scores that a docking run has so far as a table, in the order of the library; the run may be at work.

  python3 tests/bench/docking/table.py RUN > tests/bench/docking/scores.csv"""
import os
import sqlite3
import sys

db = sqlite3.connect("file:%s?mode=ro" % os.path.join(sys.argv[1], "results.db"), uri=True)
rows = db.execute("SELECT r.title, r.raw_smiles, m.smiles, s.mean FROM score s JOIN molecule m USING(mol_id) JOIN record r ON r.record_id=m.mol_id "
                  "ORDER BY s.mol_id").fetchall()
print("id,smiles,docking_score")
for title, raw, smiles, score in rows:
    print("%s,%s,%.9g" % (title, raw or smiles, score))
