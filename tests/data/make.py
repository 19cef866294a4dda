#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/data/make.py SHARED MOLSIEVE - makes every file of tests/data again, except the messy ones.

SHARED is the folder with the sources (README.md here says what each one is), MOLSIEVE the
program. The same sources and the same Open Babel give the same bytes. tests/data/messy.py
makes the folder `messy`."""
import glob
import gzip
import os
import random
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SHARED, MOLSIEVE = (os.path.abspath(a) for a in sys.argv[1:3]) if len(sys.argv) == 3 else sys.exit(__doc__)
SAMPLES = os.path.join(SHARED, "data/screening/samples")
LIBRARY, LIGANDS, LABELS = 2000, 300, 642
NOT_STORED = ("b4_default_full",)  # 20 MB with their weights


def put(name, content, packed=False):
    path = os.path.join(HERE, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(gzip.compress(content, 9, mtime=0) if packed else content)


def golden():
    for path in sorted(glob.glob(os.path.join(SHARED, "golden/*.safetensors"))):
        name = os.path.basename(path)
        if not name.startswith(NOT_STORED):
            put("golden/%s.gz" % name, open(path, "rb").read(), packed=True)


def qm9():
    for name in ("qm9_dev_2500.sdf.gz", "qm9_dev_500.xyz.gz"):
        put("qm9/" + name, gzip.open(os.path.join(SHARED, "data/qm9", name)).read(), packed=True)
    for path in sorted(glob.glob(os.path.join(SHARED, "data/qm9/xyz_original/*.xyz"))):
        put("qm9/xyz_original/" + os.path.basename(path), open(path, "rb").read())


def padded(b):
    return b + b"\0" * (-len(b) % 8)


def qm9_binary():
    """The molecules of the SDF and, between them, every 250th of the others; the layout is that of chem/records/qm9bin.c."""
    whole = gzip.open(os.path.join(SHARED, "data/qm9/qm9_trainvalid.bin.gz")).read()
    wanted = {int(x) for x in open(os.path.join(SHARED, "data/qm9/qm9_dev_2500.index.txt")).read().split() if x.isdigit()}
    nmol, natom, nbond = struct.unpack_from("<3I", whole, 8)
    at, arrays = 64, []
    for n, size in ((nmol, 4), (nmol + 1, 4), (nmol + 1, 4), (nmol, 1), (natom, 1), (natom, 1), (natom, 12), (nbond, 3),
                    (nmol, 44), (nmol, 32)):
        arrays.append(whole[at:at + n * size])
        at += (n * size + 7) // 8 * 8
    index, first, bond = (struct.unpack("<%dI" % (len(a) // 4), a) for a in arrays[:3])
    kept = [i for i in range(nmol) if index[i] in wanted or i % 250 == 0]

    def of_molecules(k, size):
        return b"".join(arrays[k][i * size:(i + 1) * size] for i in kept)

    def of_parts(k, size, starts):
        return b"".join(arrays[k][starts[i] * size:starts[i + 1] * size] for i in kept)

    def offsets(starts):
        sums = [0]
        for i in kept:
            sums.append(sums[-1] + starts[i + 1] - starts[i])
        return struct.pack("<%dI" % len(sums), *sums), sums[-1]

    (atoms, n_atoms), (bonds, n_bonds) = offsets(first), offsets(bond)
    head = whole[:8] + struct.pack("<3I", len(kept), n_atoms, n_bonds) + whole[20:64]
    parts = [of_molecules(0, 4), atoms, bonds, of_molecules(3, 1), of_parts(4, 1, first), of_parts(5, 1, first),
             of_parts(6, 12, first), of_parts(7, 3, bond), of_molecules(8, 44), of_molecules(9, 32)]
    put("qm9/qm9_part.bin.gz", head + b"".join(padded(p) for p in parts), packed=True)


def qm9_smiles():
    """gdb_index, SMILES of the validation part."""
    rows = gzip.open(os.path.join(SHARED, "data/qm9/qm9_trainvalid_smiles.tsv.gz"), "rt").read().splitlines()[1:]
    return [(r[0], r[3]) for r in (line.split("\t") for line in rows) if r[2] == "valid"]


def labels():
    """A typical table: SMILES, name, a measured number."""
    gap = {}
    for record in gzip.open(os.path.join(SHARED, "data/qm9/qm9_dev_2500.sdf.gz"), "rt").read().split("$$$$\n")[:-1]:
        fields = record.split("> ")
        value = {f.split(">")[0].lstrip(" <"): f.split("\n")[1] for f in fields[1:]}
        gap[value["gdb_index"]] = value["gap"]
    rows = gzip.open(os.path.join(SHARED, "data/qm9/qm9_trainvalid_smiles.tsv.gz"), "rt").read().splitlines()[1:]
    rows = [r for r in (line.split("\t") for line in rows) if r[0] in gap][:LABELS]
    text = "smiles,name,gap\n" + "".join("%s,gdb_%s,%s\n" % (r[3], r[0], gap[r[0]]) for r in rows)
    put("labels.csv.gz", text.encode(), packed=True)


def ligands():
    """The first records with different ligands; coordinates of the PDB, with the hydrogens of the source file."""
    seen, kept = set(), []
    for record in gzip.open(os.path.join(SAMPLES, "pdb_ligands_1000.sdf.gz")).read().split(b"$$$$\n")[:-1]:
        code = record.split(b"\n", 1)[0].split(b"_")[1]
        if code not in seen and len(kept) < LIGANDS:
            kept.append(record)
            seen.add(code)
    put("ligands.sdf.gz", b"$$$$\n".join(kept) + b"$$$$\n", packed=True)


def mmff94():
    """A copy of the force field's validation suite, with its licence."""
    for name in ("molecules.sdf.gz", "energies.csv"):
        with open(os.path.join(SHARED, "data/mmff94", name), "rb") as f:
            put("mmff94/" + name, f.read())


WORKFLOW = """format: 1
name: library
seed: 1
workdir: run
inputs: [{path: %s/pubchem_2d_1250.sdf.gz}, {path: %s/pdb_ligands_1000.sdf.gz}]
limits: {failures: {max_fraction: 1}}
stages:
  read: {}
  prepare: {fragment: keep, conformers: {source: none}}
"""
ORGANIC = set("H C N O F P S Cl Br I".split())


def elements(formula):
    out, name = set(), ""
    for c in formula:
        if c.isupper():
            out.add(name)
            name = c
        elif c.islower():
            name += c
    return (out | {name}) - {""}


def library():
    """Molecules as in a library for screening: one fragment, 10 to 37 heavy atoms, organic elements; then small ones."""
    with tempfile.TemporaryDirectory() as tmp:
        with open(os.path.join(tmp, "w.yaml"), "w") as f:
            f.write(WORKFLOW % (SAMPLES, SAMPLES))
        subprocess.run([MOLSIEVE, "run", "w.yaml", "-q"], cwd=tmp, check=True)
        db = sqlite3.connect(os.path.join(tmp, "run/results.db"))
        rows = db.execute("SELECT title, smiles, formula, undefined_stereo FROM molecule JOIN record ON record_id=molecule.mol_id "
                          "WHERE n_heavy BETWEEN 10 AND 37 AND rotb<=12 AND smiles NOT LIKE '%.%' ORDER BY record_id").fetchall()
        db.close()
    rows = [r for r in rows if elements(r[2]) <= ORGANIC]
    random.Random(20261125).shuffle(rows)
    rows.sort(key=lambda r: r[3] > 0)  # first those with complete stereochemistry: their structures read back as the same molecule
    lines = ["%s %s" % (r[1], "CID-" + r[0] if r[0].isdigit() else "PDB-" + "-".join(r[0].split("_")[:2])) for r in rows]
    for gdb, smiles in qm9_smiles():
        if len(lines) == LIBRARY:
            break
        if int(gdb) % 40 == 0:
            lines.append("%s gdb-%s" % (smiles, gdb))
    put("library.smi", ("\n".join(lines) + "\n").encode())


if __name__ == "__main__":
    for folder in ("golden", "qm9"):
        shutil.rmtree(os.path.join(HERE, folder), ignore_errors=True)
    for make in (golden, qm9, qm9_binary, labels, ligands, mmff94, library):
        make()
