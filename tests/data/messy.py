#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/data/messy.py - makes tests/data/messy: awkward and hostile files of many formats, and their manifest.

Written for these tests; the molecules are of QM9 (CC0, from qm9/ here). Nothing was copied from other collections.
The same Python gives the same bytes."""
import csv
import gzip
import hashlib
import os
import random
import re
import shutil

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(HERE, "messy")
RECORDS = gzip.open(os.path.join(HERE, "qm9/qm9_dev_2500.sdf.gz"), "rt").read().split("$$$$\n")[20:60]
FILES = []  # (name, format, note, content, number of records; None: as many as the worker finds)


def put(name, note, content, records=1):
    content = content.encode() if isinstance(content, str) else content
    FILES.append((name, re.sub(r"\.gz$", "", name).rsplit(".", 1)[1], note, content, records))


def mol(i):
    """A molfile up to M  END."""
    return RECORDS[i].split("M  END\n")[0] + "M  END\n"


def sdf(*records):
    return "".join(r + "$$$$\n" for r in records)


def with_line(i, line):
    """With another property line before M  END."""
    return mol(i).replace("M  END\n", line + "\nM  END\n")


def atoms_of(i):
    """(x, y, z, element) and (a, b, order) of a record."""
    lines = RECORDS[i].split("\n")
    n, m = int(lines[3][:3]), int(lines[3][3:6])
    atoms = [(float(a[:10]), float(a[10:20]), float(a[20:30]), a[31:34].strip()) for a in lines[4:4 + n]]
    return atoms, [tuple(int(b[k:k + 3]) for k in (0, 3, 6)) for b in lines[4 + n:4 + n + m]]


def v3000(i, extra=""):
    atoms, bonds = atoms_of(i)
    out = ["made", "  tests", "", "  0  0  0     0  0            999 V3000", "M  V30 BEGIN CTAB",
           "M  V30 COUNTS %d %d 0 0 0" % (len(atoms), len(bonds)), "M  V30 BEGIN ATOM"]
    out += ["M  V30 %d %s %.4f %.4f %.4f 0%s" % (k + 1, a[3], *a[:3], extra if k == 0 else "") for k, a in enumerate(atoms)]
    out += ["M  V30 END ATOM", "M  V30 BEGIN BOND"]
    out += ["M  V30 %d %d %d %d" % (k + 1, b[2], b[0], b[1]) for k, b in enumerate(bonds)]
    return "\n".join(out + ["M  V30 END BOND", "M  V30 END CTAB", "M  END", ""])


def mol2(i, types="C.3"):
    atoms, bonds = atoms_of(i)
    out = ["@<TRIPOS>MOLECULE", "made_%d" % i, "%d %d 1 0 0" % (len(atoms), len(bonds)), "SMALL", "NO_CHARGES", "",
           "@<TRIPOS>ATOM"]
    out += ["%7d %s%d %.4f %.4f %.4f %s 1 LIG 0.0" % (k + 1, a[3], k + 1, *a[:3], "H" if a[3] == "H" else a[3] + types[1:])
            for k, a in enumerate(atoms)]
    out += ["@<TRIPOS>BOND"] + ["%6d %d %d %d" % (k + 1, *b) for k, b in enumerate(bonds)]
    return "\n".join(out) + "\n"


def cml(i):
    atoms, bonds = atoms_of(i)
    return ('<molecule id="m%d" xmlns="http://www.xml-cml.org/schema">\n <atomArray>\n' % i
            + "".join('  <atom id="a%d" elementType="%s" x3="%.4f" y3="%.4f" z3="%.4f"/>\n' % (k + 1, a[3], *a[:3])
                      for k, a in enumerate(atoms))
            + " </atomArray>\n <bondArray>\n"
            + "".join('  <bond atomRefs2="a%d a%d" order="%d"/>\n' % b for b in bonds) + " </bondArray>\n</molecule>\n")


def pdb(i):
    atoms, bonds = atoms_of(i)
    return ("HEADER    MADE\n" + "".join("HETATM%5d %-4s LIG A   1    %8.3f%8.3f%8.3f  1.00  0.00          %2s\n"
                                         % (k + 1, a[3] + str(k + 1), *a[:3], a[3]) for k, a in enumerate(atoms))
            + "".join("CONECT%5d%5d\n" % b[:2] for b in bonds) + "END\n")


def xyz(i, symbols=str, n=None):
    atoms, _ = atoms_of(i)
    return "%s\nmade\n" % (len(atoms) if n is None else n) + "".join("%s %.4f %.4f %.4f\n" % (symbols(a[3]), *a[:3]) for a in atoms)


def molfiles():
    put("crlf.sdf", "line ends of Windows", sdf(mol(0), mol(1), mol(2)).replace("\n", "\r\n"), 3)
    put("bom.mol", "UTF-8 byte-order mark", b"\xef\xbb\xbf" + mol(3).encode())
    put("utf8-title.mol", "UTF-8 title", mol(4).replace(mol(4).split("\n")[0], "Säure α", 1))
    put("latin1-title.sdf", "title that is no UTF-8", sdf(mol(5)).encode().replace(b"gdb", b"S\xe4ure", 1))
    put("nul.mol", "NUL bytes in the header", mol(6).replace("\n", "\0\0\n", 1))
    put("no-end.mol", "no M  END", mol(7).replace("M  END\n", ""))
    put("no-newline.sdf", "no line end after the last record", (mol(8) + "$$$$\n" + mol(9)).rstrip("\n"), 2)
    put("no-delimiter.sdf", "no $$$$", mol(10))
    put("counts-too-high.sdf", "more atoms in the counts line than there are",
        sdf(mol(0), re.sub(r"(?m)^ *\d+( +\d+  0)", r" 99\1", mol(1), count=1), mol(2)), 3)
    put("counts-too-low.sdf", "fewer atoms in the counts line than there are",
        sdf(re.sub(r"(?m)^ *\d+( +\d+  0)", r"  3\1", mol(3), count=1), mol(4)), 2)
    put("counts-words.sdf", "words in the counts line", sdf(re.sub(r"(?m)^ *\d+ +\d+  0", "many few 0", mol(5), count=1), mol(6)), 2)
    put("good-bad-good-bad.sdf", "bad records between good ones", sdf(mol(0), "one\ntwo\n", mol(1), "\n\n\nnot counts\n"), 4)
    put("empty.sdf", "no bytes", "", 0)
    put("blank.sdf", "blank lines", "\r\n\r\n\n", 0)
    put("zero-atoms.sdf", "a record without atoms between two", sdf(mol(0), "none\n\n\n  0  0  0  0  0  0  0  0  0  0999 V2000\nM  END\n", mol(1)), 3)
    put("bond-to-nowhere.sdf", "a bond to an atom that is not there", sdf(re.sub(r"(?m)^  1  2  1", "  1 98  1", mol(2), count=1), mol(3)), 2)
    put("bond-order-0.mol", "bond order 0", re.sub(r"(?m)^  1  2  1", "  1  2  0", mol(4), count=1))
    put("bond-order-9.mol", "bond order 9", re.sub(r"(?m)^  1  2  1", "  1  2  9", mol(5), count=1))
    put("charges.mol", "several M  CHG lines", with_line(6, "M  CHG  1   1   1\nM  CHG  1   2  -1"))
    put("charge-of-nothing.mol", "charge of an atom that is not there", with_line(7, "M  CHG  1  90   1"))
    put("isotopes.mol", "isotopes", with_line(8, "M  ISO  2   1  13   2  14"))
    put("radical.mol", "a radical", with_line(9, "M  RAD  1   1   2"))
    put("deuterium.mol", "D as a symbol", mol(10).replace(" H  ", " D  ", 1))
    put("r-group.mol", "an R group", mol(11).replace(" H  ", " R# ", 1))
    put("unknown-element.sdf", "an element that is none", sdf(mol(12).replace(" C  ", " Qq ", 1), mol(13)), 2)
    put("alias.mol", "an atom with an alias", with_line(14, "A    1\nPh"))
    put("iron.mol", "a metal with six neighbours", "iron\n\n\n  7  6  0  0  0  0  0  0  0  0999 V2000\n"
        + "".join("%10.4f%10.4f%10.4f %-3s 0  0  0  0  0  0  0  0  0  0  0  0\n" % a for a in
                  [(0, 0, 0, "Fe")] + [(2 * s * (d == 0), 2 * s * (d == 1), 2 * s * (d == 2), "N") for d in range(3) for s in (1, -1)])
        + "".join("%3d%3d%3d  0\n" % (1, k, 1) for k in range(2, 8)) + "M  END\n")
    put("comma, (and) more.mol", "comma, blanks and parentheses in the name", mol(15))


def fields():
    put("fields.sdf", "headers of data fields in every way", sdf(
        mol(0) + "> 25 <a> (7)\n1\n\n>  <b>\n2\n\n> DT5\n3\n\n><c d>\n4\n\n", mol(1) + ">  <text>\none\n \n\n>  <empty>\n\n\n"), 2)
    put("long-field.sdf", "a field of 65 kB", sdf(mol(2) + "> <text>\n" + "x" * 65536 + "\n\n", mol(3)), 2)
    put("delimiter-in-field.sdf", "dollars within a field", sdf(mol(4) + "> <price>\n$$$ 5 $$$$\n\n", mol(5)), 2)
    put("members.sdf.gz", "two gzip members in one file", b"".join(gzip.compress(sdf(mol(k)).encode(), mtime=0) for k in (6, 7)), 2)


def newer():
    put("v3000.mol", "V3000", v3000(0))
    put("v3000-bom.mol", "V3000 behind a byte-order mark", b"\xef\xbb\xbf" + v3000(1).encode())
    put("v3000-charge.mol", "V3000 with a charge and an isotope", v3000(2, " CHG=1 MASS=13"))
    put("v3000-cut.mol", "V3000, cut within the bonds", v3000(3)[:-90])
    put("v3000-continued.mol", "V3000 with a line that goes on", re.sub(r"(?m)^(M  V30 1 \S+ \S+) ", r"\1 -\nM  V30 ", v3000(4), count=1))


SMILES = """C(
C)
C1CC
[C
C]
C==C
=C
C(=)C
[Zz]
[C@@@]
C%1C
C(C)(C
[CH5+9]x
c1cccc1c
()
[]
C..C(
C=
1CC1
[13]
C#
F/C=C/(
[H+H]
Cl)Cl"""


def lines():
    rng = random.Random(20261124)
    put("invalid.smi", "no line is SMILES; Open Babel takes some", SMILES + "\n", len(SMILES.split("\n")))
    put("random.smi", "200 lines of random bytes", b"".join(
        bytes(b for b in rng.randbytes(rng.randint(1, 60)) if b not in b"\n\r#") + b"x\n" for _ in range(200)), 200)
    put("blank.smi", "blank lines", "\r\n\n\r\n", 0)
    put("columns.smi", "tabs, blanks, titles with blanks, remarks, CRLF",
        "CCO\tethanol\r\n  CCN   an amine\nCC(=O)O\n# a remark\nc1ccccc1\tbenzene\tmore\r\n", 4)
    put("salts.smi", "several parts", "CC(=O)[O-].[Na+] acetate\nCCN.Cl hydrochloride\n[K+].[Cl-] salt\n", 3)
    put("long-chain.smi", "300 heavy atoms", "C" * 300 + " chain\n" + "CCO ethanol\n", 2)
    put("deep.smi", "branches in branches", "C(" * 120 + "C" + ")" * 120 + " deep\nCCO ethanol\n", 2)
    put("rings.smi", "90 rings open at once", "".join("C%%%02d" % k for k in range(10, 100)) + "".join(
        "C%%%02d" % k for k in range(10, 100)) + " rings\n", 1)
    put("adenine.inchi", "InChI", "InChI=1S/C5H5N5/c6-4-3-5(9-1-7-3)10-2-8-4/h1-2H,(H3,6,7,8,9,10)\n")


def others():
    put("three.mol2", "three records", mol2(0) + mol2(1) + mol2(2), 3)
    put("cut.mol2", "cut within the atoms", mol2(3) + mol2(4)[:200], 2)
    put("no-atoms.mol2", "a record without atoms", "@<TRIPOS>MOLECULE\nnone\n0 0 0 0 0\nSMALL\nNO_CHARGES\n\n@<TRIPOS>ATOM\n")
    put("odd-types.mol2", "atom types that are none", mol2(5, "C.99"))
    put("one.cml", "CML", cml(0))
    put("three.cml", "three molecules of CML", "<cml>\n%s</cml>\n" % "".join(cml(k) for k in (1, 2, 3)), 3)
    put("cut.cml", "CML, cut", cml(4)[:150])
    put("ligand.pdb", "atoms of a ligand with CONECT", pdb(5))
    put("no-atoms.pdb", "PDB without atoms", "HEADER    NOTHING\nEND\n")
    put("symbols.xyz", "XYZ", xyz(6))
    put("numbers.xyz", "atomic numbers in the place of symbols", xyz(7, lambda s: {"H": 1, "C": 6, "N": 7, "O": 8, "F": 9}[s]))
    put("too-many.xyz", "fewer lines than the first says", xyz(8, n=99))
    put("words.xyz", "no number in the first line", "x\n")
    put("drawing.cdxml", "ChemDraw XML", '<?xml version="1.0"?>\n<CDXML><page><fragment><n id="1" p="10 10"/><n id="2" p="24 10" '
        'Element="8"/><b B="1" E="2"/></fragment></page></CDXML>\n')
    put("cell.cif", "a crystal", "data_made\n_cell_length_a 5.6\n_cell_length_b 5.6\n_cell_length_c 5.6\n_cell_angle_alpha 90\n"
        "_cell_angle_beta 90\n_cell_angle_gamma 90\n_symmetry_space_group_name_H-M 'P 1'\nloop_\n_atom_site_label\n"
        "_atom_site_type_symbol\n_atom_site_fract_x\n_atom_site_fract_y\n_atom_site_fract_z\nNa1 Na 0 0 0\nCl1 Cl 0.5 0.5 0.5\n")


def hostile():
    """Files that crash or mislead Open Babel 3.1.1: a heading that overflows a buffer on its stack, and similar ones."""
    put("heading.g09", "CRASHER: a long heading before `orientation:`", " Entering Gaussian System\n " + "Z" * 60 + " orientation:\n")
    put("translations.g09", "CRASHER: many translation vectors", " Entering Gaussian System\n                         Input orientation:\n"
        + " -----\n c\n c\n -----\n" + "".join("%5d         -2           0        %d.0    0.0    0.0\n" % (k, k) for k in range(1, 60))
        + " -----\n")


HEAD = ("file source_repo source_path licence bytes sha256 format features note record_delimiters upstream_expected "
        "upstream_source obabel_3_1_1_converted").split()


def main():
    for make in (molfiles, fields, newer, lines, others, hostile):
        make()
    shutil.rmtree(FOLDER, ignore_errors=True)
    os.makedirs(os.path.join(FOLDER, "files"))
    with open(os.path.join(FOLDER, "manifest.csv"), "w", newline="") as f:
        out = csv.writer(f, lineterminator="\n")
        out.writerow(HEAD)
        for name, kind, note, content, records in FILES:
            with open(os.path.join(FOLDER, "files", name), "wb") as g:
                g.write(content)
            out.writerow([name, "molsieve", "tests/data/messy.py", "CC0-1.0", len(content), hashlib.sha256(content).hexdigest(), kind, "",
                          note, records, "", "", ""])


if __name__ == "__main__":
    main()
