#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Molecules of a MOL2 file, which states no formal charges: how many are read with the charge and the InChIKey that RDKit finds.

    MOLSIEVE=build/release/bin/molsieve tests/bench/mol2_charges.py FILE.mol2 [--all]

Of the InChIKey the first block and the letter of protonation count, not stereo. --all prints the records that differ. A record that fails in
both programs is none that agrees. Needs RDKit. docs/FORMATS.md has the numbers of minidrugbank/MiniDrugBank_tripos.mol2 in
https://github.com/openforcefield/MiniDrugBank, commit 33f364b.
"""
import argparse
import json
import os
import subprocess
import tempfile

PROGRAM = os.environ.get("MOLSIEVE", "molsieve")
WORKFLOW = """format: 1
workdir: run
inputs: [{path: %s, format: mol2}]
limits: {failures: {max_fraction: 1}}
stages: {read: {}, prepare: {conformers: {source: none}, fragment: keep, drawing: as_drawn}}
"""
SQL = "SELECT r.ordinal, m.charge, m.inchikey FROM record r LEFT JOIN molecule m USING(mol_id) ORDER BY r.ordinal"


def here(path):
    """(charge, InChIKey) of each record, None where it failed."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "w.yaml"), "w") as f:
            f.write(WORKFLOW % json.dumps(os.path.abspath(path)))
        subprocess.run([PROGRAM, "run", "w.yaml", "-q"], cwd=folder, check=True, stderr=subprocess.DEVNULL)
        rows = json.loads(subprocess.run([PROGRAM, "query", "--json", SQL, "run"], cwd=folder, check=True, capture_output=True).stdout)
    return [(r["charge"], r["inchikey"]) if r["inchikey"] else None for r in rows]


def there(path):
    from rdkit import Chem, RDLogger
    RDLogger.DisableLog("rdApp.*")
    with open(path) as f:
        blocks = ["@<TRIPOS>MOLECULE" + b for b in f.read().split("@<TRIPOS>MOLECULE")[1:]]
    mols = [Chem.MolFromMol2Block(b, removeHs=False) for b in blocks]
    return [m and (Chem.GetFormalCharge(m), Chem.MolToInchiKey(m)) for m in mols]


def agree(a, b):
    return a is not None and b is not None and a[0] == b[0] and a[1][:14] == b[1][:14] and a[1][-1] == b[1][-1]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("file")
    p.add_argument("--all", action="store_true")
    opts = p.parse_args()
    ours, theirs = here(opts.file), there(opts.file)
    assert len(ours) == len(theirs), (len(ours), len(theirs))
    print("%d records, %d as RDKit; %d fail here, %d there, %d in both" %
          (len(ours), sum(map(agree, ours, theirs)), ours.count(None), theirs.count(None),
           sum(a is None and b is None for a, b in zip(ours, theirs))))
    for k, (a, b) in enumerate(zip(ours, theirs)):
        if opts.all and not agree(a, b):
            print("record %d: here %s, RDKit %s" % (k + 1, a, b))


if __name__ == "__main__":
    main()
