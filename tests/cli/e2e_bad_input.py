#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bad input gives a clear message with place and remedy and the right exit status, and no record is lost."""
import contextlib
import gzip
import os
import random
import resource
import sqlite3

from sieve import Project, accounted, main, skip

FLAT = "  read: {unit: 50}\n  prepare: {conformers: {source: none}}\n"
KEEP = "  read: {unit: 50}\n  prepare: {conformers: {source: keep}}\n"


def sdf(name, atoms, bonds=(), fields=""):
    text = "%s\n  test\n\n%3d%3d  0  0  0  0  0  0  0  0999 V2000\n" % (name, len(atoms), len(bonds))
    for symbol, x, y, z in atoms:
        text += "%10s%10s%10s %-3s 0  0  0  0  0  0  0  0  0  0  0  0\n" % (x, y, z, symbol)
    for a, b, order in bonds:
        text += "%3d%3d%3d  0\n" % (a, b, order)
    return text + "M  END\n" + fields + "$$$$\n"


WATER = sdf("water", [("O", "0.0000", "0.0000", "0.0000"), ("H", "0.6800", "0.0000", "0.6800"),
                      ("H", "-0.2400", "0.9300", "0.0000")], [(1, 2, 1), (1, 3, 1)])
METHANE = sdf("methane", [("C", "0.0000", "0.0000", "0.0000"), ("H", "0.6300", "0.6300", "0.6300"),
                          ("H", "-0.6300", "-0.6300", "0.6300"), ("H", "-0.6300", "0.6300", "-0.6300"),
                          ("H", "0.6300", "-0.6300", "-0.6300")], [(1, i, 1) for i in (2, 3, 4, 5)])


def between_neighbours(p, bad, code, stages=KEEP, name="bad.sdf"):
    """The bad record fails with this code; the good ones before and after it do not."""
    w = p.workflow([p.put(name, WATER + bad + METHANE)], stages, workdir="run")
    p.run("run", w, "-q", "--fresh" if os.path.exists(p.path("run")) else "-q")
    newest = max((d for d in os.listdir(p.dir) if d.startswith("run")), key=lambda d: os.path.getmtime(p.path(d)))
    accounted(p, workdir=newest)
    assert p.rows("SELECT ordinal, status FROM record ORDER BY 1", workdir=newest) == [(1, "ok"), (2, "failed"), (3, "ok")], \
        (code, p.rows("SELECT * FROM record", workdir=newest))
    got = p.rows("SELECT stage, code, message, place FROM v_failures", workdir=newest)
    assert len(got) == 1 and got[0][1] in code and ("%s:" % p.path(name)) in got[0][3], got


def one_bad_molecule_fails_alone():
    far = [("C", "%.4f" % (1.5 * (i % 60)), "%.4f" % (1.5 * (i // 60 % 60)), "%.4f" % (1.5 * (i // 3600))) for i in range(5000)]
    huge = "huge\n  test\n\n  0  0  0     0  0            999 V3000\nM  V30 BEGIN CTAB\nM  V30 COUNTS 5000 0 0 0 0\n" \
           "M  V30 BEGIN ATOM\n" + "".join("M  V30 %d C %s %s %s 0\n" % (i + 1, x, y, z) for i, (_, x, y, z) in enumerate(far)) + \
           "M  V30 END ATOM\nM  V30 END CTAB\nM  END\n$$$$\n"
    cases = [
        (sdf("nothing", []), ("empty",)),
        (sdf("nan", [("C", "nan", "0.0000", "0.0000"), ("O", "1.2000", "0.0000", "0.5000"), ("H", "0.0000", "1.0000", "0.0000"),
                     ("H", "0.0000", "0.0000", "1.0000")], [(1, 2, 2), (1, 3, 1), (1, 4, 1)]), ("geometry", "parse")),
        (sdf("twice", [("C", "0.0000", "0.0000", "0.0000"), ("O", "0.0000", "0.0000", "0.0000"),
                       ("H", "1.0000", "0.0000", "0.0000"), ("H", "0.0000", "0.0000", "1.0000")],
             [(1, 2, 2), (1, 3, 1), (1, 4, 1)]), ("geometry",)),
        (sdf("short", [("C", "0.0000", "0.0000", "0.0000")]).replace("  1  0", "  9  0"), ("parse", "record")),
        ("\x00\x01\x02 no molecule at all \xff\n$$$$\n", ("parse", "empty", "record")),
        (sdf("unknown", [("Xx", "0.0000", "0.0000", "0.0000"), ("O", "1.4000", "0.0000", "0.0000")], [(1, 2, 1)]),
         ("parse", "valence")),
        (huge, ("too_large",)),
    ]
    for bad, code in cases:
        with Project() as p:
            between_neighbours(p, bad, code)
    with Project() as p:  # the same as SMILES
        p.put("a.smi", "CCO good\n" + "C" * 5000 + " long\n" + "\n" + "c1ccccc1 benzene\n[He][ broken\nCC\xe9 latin\nCN amine\n")
        p.run("run", p.workflow([p.path("a.smi")], FLAT), "-q")
        accounted(p)
        status = dict(p.rows("SELECT title, status FROM record"))
        assert status["good"] == status["benzene"] == status["amine"] == "ok", status
        assert status["long"] == status["broken"] == "failed", status
        assert p.one("SELECT code FROM v_failures WHERE title='long'") == "too_large"


ATOMS = ["1 C 0 0 0 0", "2 C 1.5 0 0 0", "3 O 2.2 1.2 0 0 CHG=-1"]
BONDS = ["1 1 1 2", "2 1 2 3"]
LONG = "A_BLOCK_WITH_A_NAME_OF_MORE_THAN_A_FEW_LETTERS"
TEMPLATE = "".join("M  V30 %s\n" % line for line in ("BEGIN TEMPLATE", "BEGIN CTAB", "COUNTS 1 0 0 0 0", "BEGIN ATOM", "1 N 0 0 0 0", "END ATOM",
                                                    "END CTAB", "END TEMPLATE"))


def v3000(name, atoms=ATOMS, bonds=BONDS, counts="3 2 0 0 0", more=()):
    lines = ["BEGIN CTAB", "COUNTS " + counts, "BEGIN ATOM", *atoms, "END ATOM", "BEGIN BOND", *bonds, "END BOND", *more, "END CTAB"]
    return "%s\n  test\n\n  0  0  0     0  0            999 V3000\n%sM  END\n$$$$\n" % (
        name, "".join("M  V30 %s\n" % line if line else "\n" for line in lines))


def a_v3000_molfile_is_read_whole_or_refused():
    """Open Babel does not check the number of words on a line and reads beyond them."""
    whole = [v3000("plain"), v3000("far", ATOMS[:2] + ["700 O 2.2 1.2 0 0 CHG=-1"], [BONDS[0], "2 1 2 700"]),
             v3000("joined", ATOMS[:2] + ["3 O 2.2 1.2 0 -", "0 CHG=-", "1"], [BONDS[0], "2 1 -", "2 3"]).replace("CHG=-\n", "CHG=--\n"),
             v3000("groups", more=["BEGIN SGROUP", "1 DAT 1 ATOMS=(1 1) -", "FIELDNAME=x", "END SGROUP"]),
             v3000("crlf").replace("\n", "\r\n"),
             v3000("between").replace("M  V30 BEGIN BOND", "M  V30 BEGIN %s\nM  V30 %s\nM  V30 END %s\nM  V30 BEGIN BOND" % (LONG, "1 " * 60, LONG)),
             v3000("template").replace("END CTAB\n", "END CTAB\n" + TEMPLATE)]
    bad = [(v3000("fewer", counts="5 2 0 0 0"), "to have 5 atoms and 2 bonds, and has 3 and 2"),
           (v3000("bare", bonds=[]), "to have 3 atoms and 2 bonds, and has 3 and 0"),
           (v3000("short", [ATOMS[0], "2 C 1.5", ATOMS[2]]), "line 9 of a V3000 molfile has 5 words, 8 are needed"),
           (v3000("half", bonds=[BONDS[0], "2 1"]), "has 4 words, 6 are needed"),
           (v3000("blank", bonds=["", *BONDS]), 'line 13 of a V3000 molfile is not "M  V30" and more'),
           (v3000("strange", bonds=[BONDS[0], "2 1 2 9"]), "not readable"),
           (v3000("page", [ATOMS[0], "2 C 1.5\f0\v0 0", ATOMS[2]]), "line 9 of a V3000 molfile has 6 words, 8 are needed"),
           (v3000("open", more=["BEGIN SGROUP", "1 DAT 1 ATOMS=(1 1)"]), "line 19 of a V3000 molfile comes before the end of SGROUP"),
           (v3000("no words", more=["BEGIN"]), "has 3 words, 4 are needed")]
    with Project() as p:
        p.put("in.sdf", "".join(whole + [text for text, _ in bad]))
        p.run("run", p.workflow([p.path("in.sdf")], FLAT.replace("none}", "none}, dedupe: {by: none}")), "-q")
        accounted(p)
        good = p.rows("SELECT title, smiles FROM record JOIN molecule USING(mol_id) ORDER BY ordinal")
        assert [t for t, _ in good] == ["plain", "far", "joined", "groups", "crlf", "between", "template"] and {s for _, s in good} == {"[O-]CC"}, good
        said = p.rows("SELECT code, message FROM v_failures ORDER BY ordinal")
        assert len(said) == len(bad) and all(c == "parse" and want in m for (c, m), (_, want) in zip(said, bad)), said


def a_missing_file_is_reported_with_its_place():
    with Project() as p:
        w = p.workflow([p.path("libary.smi")], FLAT)
        p.put("library.smi", "CCO\n")
        _, out, err = p.run("run", w, expect=2)
        assert "w.yaml:6:" in err and "libary.smi" in err and "library.smi" in err, err
        assert not os.path.exists(p.path("run", "results.db"))
        _, out, err = p.run("run", p.path("nothing.yaml"), expect=2)
        assert "nothing.yaml" in err, err
        _, out, err = p.run("run", p.workflow([p.path("*.sdf")], FLAT), expect=2)
        assert "no file matches" in err, err


def an_empty_file_warns_and_no_record_is_an_error():
    with Project() as p:
        empty = p.put("empty.smi", "")
        good = p.put("good.smi", "CCO ethanol\n")
        _, _, err = p.run("run", p.workflow([empty, good], FLAT))
        assert "empty.smi" in err and "no records" in err, err
        accounted(p)
        assert p.rows("SELECT n_records FROM input_file ORDER BY file_id") == [(0,), (1,)]
        assert p.one("SELECT count(*) FROM event WHERE level='warn' AND message LIKE '%empty.smi%'") == 1
        _, _, err = p.run("run", p.workflow([empty], FLAT, workdir="none"), expect=1)
        assert "no records" in err and "empty.smi" in err and "inputs" in err, err


def records_without_the_field_of_their_title_are_told():
    with Project() as p:
        p.put("two.sdf", METHANE.replace("$$$$", "> <key>\nK1\n\n$$$$") + METHANE)
        for field, titles, words in (("key", ["K1", ""], "1 of 2"), ("Key", ["", ""], "2 of 2"), (None, ["methane"] * 2, "")):
            item = "{path: two.sdf, title_from: %s}" % field if field else "{path: two.sdf}"
            _, _, err = p.run("run", p.workflow([item], KEEP, workdir="by %s" % field))
            assert [t or "" for t, in p.rows("SELECT title FROM record ORDER BY ordinal", workdir="by %s" % field)] == titles
            said = "two.sdf: %s records have no title: `title_from` takes it from a data field <%s>" % (words, field)
            assert said in err if words else "no title" not in err, err


def a_table_without_column_names_is_refused():
    """Its first molecule would be lost. Where the first name is no molecule, the column may be one of SMILES all the same."""
    with Project() as p:
        p.put("bare.csv", "CCO,a\nCCN,b\n")
        p.put("drawn.csv", "drawn,x\nCCO,a\nCCN,b\n")
        p.put("named.csv", "id,Smiles\na,CCO\n")
        err = p.run("run", p.workflow(["bare.csv", "named.csv"], "  read: {}\n"), expect=2)[2]
        assert 'bare.csv: the first row has to name the columns, but it has a molecule: the column with SMILES is called "CCO"' in err, err
        _, _, err = p.run("run", p.workflow(["drawn.csv", "named.csv"], "  read: {}\n"))
        assert 'drawn.csv: no column has the name smiles; the first column, "drawn", is used' in err and "named.csv:" not in err, err
        assert p.one("SELECT count(*) FROM event WHERE level='warn' AND message LIKE '%drawn.csv%'") == 1


def a_record_without_a_smiles_fails_before_its_worker():
    with Project() as p:
        p.put("a.csv", b"smiles,name\n,nothing\n  ,blanks\nC\xc3\xa9C,accent\nC\x01C,control\nC\x7fC,delete\nCCO a title,good\n")
        p.run("run", p.workflow(["a.csv"], FLAT, extra="limits: {failures: {max_fraction: 1}}\n"), "-q")
        strange = ("parse", "not a SMILES: it holds bytes that are not printable ASCII")
        assert p.rows("SELECT code, message FROM failure WHERE stage='read' ORDER BY record_id") == 2 * [("record", "csv: no SMILES in this row")] + 3 * [strange]
        assert p.one("SELECT count(*) FROM failure") == 5
        assert p.rows("SELECT raw_smiles, status FROM record WHERE record_id=6") == [("CCO", "ok")]
        # What could not be read stays so when the molecules are prepared again.
        records = "SELECT record_id, status, reason, stage, code, message FROM record LEFT JOIN failure USING(record_id) ORDER BY 1"
        before = p.rows(records)
        p.run("run", "w.yaml", "-q", "--from", "prepare")
        assert p.rows(records) == before
        # One that cannot be stored ends the run with the reason: an index of another program takes no second one that failed.
        for rows, said in ((",one\n", "none of the 1 records gave a molecule"), (",one\n,two\n", "UNIQUE constraint failed: record.status")):
            p.put("a.csv", "smiles,name\n" + rows)
            assert said in p.run("run", "w.yaml", "-q", "workdir=full", "--from", "read", expect=1)[2]
            with contextlib.closing(sqlite3.connect(p.path("full/results.db"))) as db:
                db.execute("CREATE UNIQUE INDEX IF NOT EXISTS no_more ON record(status)")


def a_wrong_format_fails_records_and_is_reported():
    with Project() as p:
        good = p.put("water.sdf", WATER + METHANE)
        w = p.workflow(['{path: "%s", format: smi}' % good], FLAT)
        p.run("run", w, "-q", expect=None)
        records, ok, failed = accounted(p)
        assert failed > 0.5 * records, (records, ok, failed)
        _, _, err = p.run("run", p.workflow(['{path: "%s", format: mol2}' % good], FLAT, workdir="mol2"), expect=1)
        assert "none of the" in err and "format" in err and "molsieve failures" in err, err
        assert p.one("SELECT count(*) FROM failure WHERE stage='prepare' OR stage='read'", workdir="mol2") == 1
        code, _, err = p.run("run", p.workflow(['{path: "%s", format: sdff}' % good], FLAT, workdir="sdff"), expect=None)
        assert code in (1, 2) or p.rows("SELECT code FROM failure", workdir="sdff") == [("format",)], (code, err)


CML = '<molecule id="%s"><atomArray><atom id="a1" elementType="C"/><atom id="a2" elementType="O"/></atomArray>' \
      '<bondArray><bond atomRefs2="a1 a2" order="1"/></bondArray></molecule>'


def the_unread_rest_of_a_file_is_one_failed_record():
    with Project() as p:
        p.put("whole.cml", "<cml>" + "".join(CML % i for i in "abc") + "</cml>\n")
        p.put("broken.cml", "<cml>" + CML % "a" + "<&" + CML % "b" + "</cml>\n")
        p.run("run", p.workflow(["whole.cml", "broken.cml"], FLAT), "-q")
        accounted(p)
        assert p.rows("SELECT file_id, count(*), sum(status='failed') FROM record GROUP BY 1") == [(1, 3, 0), (2, 2, 1)]
        code, message = p.rows("SELECT code, message FROM failure")[0]
        assert code == "record" and "what follows molecule 1" in message, (code, message)


def binary_junk_of_every_name_is_refused_record_by_record():
    random.seed(5)
    junk = bytes(random.randrange(256) for _ in range(20000))
    with Project() as p:
        names = ["junk." + e for e in ("smi", "sdf", "mol2", "xyz", "pdb", "cml", "csv", "mol", "inchi", "cif", "bin", "smi.gz",
                                       "qm9bin")]
        good = p.put("good.smi", "CCO ethanol\n")
        inputs = [p.put(n, junk) for n in names]
        w = p.workflow(inputs + [good], FLAT, extra="limits: {failures: {max_fraction: 1, max_count: 1000000}}\n")
        p.run("run", w, "-q")
        records, ok, failed = accounted(p)
        assert p.one("SELECT status FROM record WHERE title='ethanol'") == "ok"
        assert ok <= 4, p.rows("SELECT i.path, r.* FROM record r JOIN input_file i USING(file_id) WHERE status='ok'")


def a_line_of_100_megabytes_is_one_record_and_little_memory():
    with Project() as p:
        with open(p.path("long.smi"), "wb") as f:
            f.write(b"CCO before\n")
            for _ in range(100):
                f.write(b"C" * 1000000)
            f.write(b"\nCCN after\n")
        w = p.workflow([p.path("long.smi")], FLAT)
        p.run("run", w, "-q")
        accounted(p)
        assert p.rows("SELECT ordinal, status FROM record") == [(1, "ok"), (2, "failed"), (3, "ok")]
        assert "long" in p.one("SELECT message FROM failure")
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        assert peak < 200, "%.0f MiB" % peak


def a_truncated_gzip_keeps_what_was_whole():
    with Project() as p:
        whole = gzip.compress(b"".join(b"C%s m%d\n" % (b"C" * (i % 30), i) for i in range(20000)))
        p.put("cut.smi.gz", whole[:len(whole) // 2])
        w = p.workflow([p.path("cut.smi.gz")], "  read: {unit: 1000}\n")
        _, _, err = p.run("run", w, "-q")
        n = p.one("SELECT count(*) FROM record WHERE status='read'")
        last = p.rows("SELECT code, message FROM failure")
        assert n > 1000 and last == [("record", "damaged gzip: unexpected end of file")], (n, last)
        assert "cut.smi.gz: damaged gzip: unexpected end of file; records after number %d are lost" % n in err, err
        # wherever a row is cut, the reason says so
        whole = gzip.compress(b"n,smiles\n" + b"".join(b"%d,C%s\n" % (i, b"CN" * (i % 17)) for i in range(60)))
        for n in range(len(whole) // 2, len(whole), 11):
            p.put("cut.csv.gz", whole[:n])
            p.run("run", p.workflow([p.path("cut.csv.gz")], "  read: {}\n", workdir="n%d" % n), "-q")
            last = p.rows("SELECT message FROM failure", workdir="n%d" % n)
            assert last == [("damaged gzip: unexpected end of file",)], (n, last)


def bytes_after_gzip_data_are_reported():
    text = b"".join(b"C%s m%d\n" % (b"C" * (i % 30), i) for i in range(300))
    with Project() as p:
        for name, tail, n_failed in (("zeros", b"\0" * 512, 0), ("more", gzip.compress(b"CCO ethanol\n"), 0), ("page", b"</html>\n", 1)):
            p.put(name + ".smi.gz", gzip.compress(text) + tail)
            _, _, err = p.run("run", p.workflow([p.path(name + ".smi.gz")], "  read: {unit: 100}\n", workdir=name), "-q")
            assert p.one("SELECT count(*) FROM record WHERE status='read'", workdir=name) == 300 + (name == "more"), name
            found = p.rows("SELECT code, message FROM failure", workdir=name)
            assert len(found) == n_failed and ("records after number 300 are lost" in err) == (n_failed > 0), (name, found, err)
            assert all(code == "record" and "not gzip, from byte" in message for code, message in found), found


def a_reaction_is_refused():
    rxn = "$RXN\n\n  test\n\n  1  1\n$MOL\n" + WATER.replace("$$$$\n", "$MOL\n") + METHANE.replace("$$$$\n", "")
    with Project() as p:
        inputs = [p.put("a.smi", "CCO>>CC=O r\nA.B>C>D r\nCC.O>[Pd]>CO r\n>>CC r\nCC>> r\nCCO a name with a > in it\n"),
                  p.put("b.csv", "name,smiles\nr,C.C>>CC\nm,CCN\n"), p.put("c.rsmi", "CC>>C=C r\n"),
                  p.put("d.sdf", rxn + "$$$$\n" + METHANE), p.put("e.rxn", rxn)]
        p.run("run", p.workflow(inputs, FLAT), "-q")
        assert accounted(p) == (12, 3, 9)
        assert p.rows("SELECT DISTINCT stage, code, message FROM failure") == [("prepare", "parse", "a reaction, not a molecule")]
        p.run("run", p.workflow([p.put("arrow.smi", "N->[Pt] a\nCC\n")], FLAT, workdir="arrow"), "-q")
        assert "an arrow" in p.one("SELECT message FROM failure", workdir="arrow")


def a_smiles_that_was_cut_short_is_refused():
    """Open Babel reads each of these as a molecule."""
    cut = ("C(C", "C(C)(C", "C=", "C#", "C(", "CC(=)C", "CC()C", "C)C", "F/C=C/")
    whole = ("CC(C)(C)C", "C%(11)CC%(11)", "[NH3+]CC(=O)[O-]", "N#Cc1ccc(cc1)C#N", "F/C=C/F", "CC(=O)O.[Na+]")
    with Project() as p:
        p.run("run", p.workflow([p.put("a.smi", "".join("%s m\n" % x for x in cut + whole))], FLAT), "-q", "limits.failures.max_fraction=1")
        failed = p.rows("SELECT raw_smiles, message FROM failure JOIN record USING(record_id) ORDER BY record_id")
        assert tuple(x for x, _ in failed) == cut, failed
        assert all(m.startswith("a SMILES ") for _, m in failed), failed


def an_unreadable_format_is_refused_with_advice():
    good = "CCO ethanol\nCCN ethylamine\n"
    with Project() as p:
        for name, text, status, want in (
                ("a.smi.xz", good, 2, "'xz' is no known format; unpack the file"), ("a.zip", good, 2, "'zip' is no known format"),
                ("a.smi", good.encode("utf-16"), 1, "UTF-16 text; save the file as UTF-8"),
                ("a.csv", ("smiles\n" + good).encode("utf-16"), 1, "UTF-16 text; save the file as UTF-8")):
            _, _, err = p.run("run", p.workflow([p.put(name, text)], FLAT, workdir="run " + name), "-q", expect=status)
            assert want in err, (name, err)
        p.put("a.csv", "\ufeff,structure,name,logS\r\n0,CCO,ethanol,1.5\r\n")
        _, _, err = p.run("check", p.workflow(["{path: a.csv, columns: {smiles: SMILS}}"], FLAT), expect=2)
        assert 'a.csv: no column "SMILS" for the SMILES; there are: , structure, name, logS' in err and err.count("a.csv:") == 1, err
        p.run("run", p.workflow(["{path: a.csv}"], FLAT), "-q")
        assert p.rows("SELECT name, value FROM label JOIN property USING(property_id)") == [("logS", 1.5)]
        # a table with another extension; a label that is no number
        p.put("a.txt", "Name;SMILES;logS\r\nethanol;CCO;1,5\r\n")
        _, _, err = p.run("run", p.workflow(["{path: a.txt}"], "  read: {}\n  prepare: {conformers: {source: none}, labels: [logS]}\n",
                                            workdir="txt"))
        assert p.rows("SELECT title, raw_smiles, status FROM record", workdir="txt") == [("ethanol", "CCO", "ok")]
        assert "no molecule has a number in a data field called logS" in err, err
        p.put("b.txt", "SMILES,logS\nCCO,>10\nC,2\nCC,\nCCC,n.d.\nCCCC,-1\n")
        _, _, err = p.run("run", p.workflow(["{path: b.txt}"], "  read: {}\n  prepare: {conformers: {source: none}, labels: [logS]}\n",
                                            workdir="some"))
        assert "2 of 5 molecules have a number in logS" in err, err
        # settings of another format would have no effect
        p.put("a.sdf", "\n\n\n  1  0  0  0  0  0  0  0  0  0999 V2000\n    0.0000    0.0000    0.0000 C   0\nM  END\n")
        for item, want in (("{path: b.txt, title_from: SMILES}", "b.txt is csv, and `title_from` names a data field of SDF; write `columns: {title: ...}`"),
                           ("{path: a.smi, title_from: x}", "a.smi is smi, and `title_from` names a data field of SDF"),
                           ("{path: a.sdf, columns: {title: x}}", "a.sdf is sdf, and `columns` are of a table (csv, tsv); a title is named by `title_from`"),
                           ("{path: b.txt, columns: {title: logS}}", ""), ("{path: a.sdf, title_from: x}", "")):
            _, _, err = p.run("check", p.workflow([item], FLAT), expect=2 if want else 0)
            assert want in err and ("title" in err) == (want != ""), (item, err)
        _, _, err = p.run("check", p.workflow(["{path: .}"], FLAT), expect=2)
        assert "is a folder; write a pattern such as" in err, err


def too_many_failures_stop_with_status_3():
    with Project() as p:
        p.put("a.smi", "".join("C!C m%d\n" % i if i % 2 else "C%s m%d\n" % ("C" * (i % 40), i) for i in range(200)))
        w = p.workflow([p.path("a.smi")], FLAT, extra="limits: {failures: {max_fraction: 0.02}}\n")
        _, _, err = p.run("run", w, expect=3)
        assert "limits.failures" in err and "molsieve failures" in err, err
        p.run("run", w, "limits.failures.max_fraction=1", "-q")
        accounted(p)


def a_newer_or_foreign_database_is_left_unchanged():
    with Project() as p:
        w = p.workflow([p.put("a.smi", "CCO\n")], FLAT)
        p.run("run", w, "-q")
        db = sqlite3.connect(p.path("run", "results.db"))
        db.executescript("DELETE FROM row_sum; PRAGMA user_version=99")
        db.close()
        before = open(p.path("run", "results.db"), "rb").read()
        _, _, err = p.run("run", w, expect=5)
        assert "results.db" in err and "99" in err, err
        assert open(p.path("run", "results.db"), "rb").read() == before
        p.put("run/results.db", b"this is a diary, not a database. " * 200)
        _, _, err = p.run("run", w, expect=5)
        assert "results.db" in err and "not a database" in err, err
        assert open(p.path("run", "results.db"), "rb").read().startswith(b"this is a diary")


def an_unwritable_directory_is_reported():
    with Project() as p:
        w = p.workflow([p.put("a.smi", "CCO\n")], FLAT)
        os.mkdir(p.path("run"))
        os.chmod(p.path("run"), 0o555)
        more = {}
        if os.geteuid() == 0:  # root may write anywhere: run as another user
            more = {"user": 65534, "group": 65534}
            if not all(os.stat(d).st_mode & 1 for d in parents(p.command("x")[0])):
                skip("the program lies in a directory that others cannot enter")
        _, _, err = p.run("run", w, expect=6, **more)
        assert p.path("run") in err, err
        _, _, err = p.run("run", w, "workdir=run/below", expect=6, **more)
        assert "workdir=DIR chooses another" in err and p.path("run/below") + ": Permission denied" in err, err
        bad = [x for x in p.run("doctor", "run", expect=1, **more)[1].splitlines() if x.startswith("bad")]
        assert len(bad) == 1 and "folder" in bad[0] and "choose a folder that can be written" in bad[0], bad


def an_unreadable_folder_is_an_error_and_not_empty():
    with Project() as p:
        for folder in ("a", "b", "b/c"):
            os.makedirs(p.path("in", folder))
            p.put("in/%s/x.smi" % folder, "CCO %s\n" % folder)
        os.chmod(p.path("in/b/c"), 0)
        more = {}
        if os.geteuid() == 0:  # root may read anything: run as another user
            more = {"user": 65534, "group": 65534}
            if not all(os.stat(d).st_mode & 1 for d in parents(p.command("x")[0])):
                skip("the program lies in a directory that others cannot enter")
        os.chmod(p.dir, 0o777)
        for pattern, closed in (("in/*/x.smi", None), ("in/*/*/x.smi", "b/c"), ("in/b/c/*.smi", "b/c"), ("in/b/?/*.smi", "b/c"),
                                ("in/*/[a-z].smi", None)):
            w = p.workflow([pattern], FLAT)
            _, out, err = p.run("check", w, expect=2 if closed else 0, **more)
            if closed:
                assert "w.yaml:6:12" in err and "the folder %s: Permission denied" % p.path("in", closed) in err and \
                    "b/x" not in err, err
        os.chmod(p.path("in/b"), 0o311)  # can be entered but not listed
        assert "the folder %s: Permission" % p.path("in/b") in p.run("check", p.workflow(["in/*/*.smi"], FLAT), expect=2, **more)[2]
        p.run("check", p.workflow(["in/*/x.smi"], FLAT), **more)
        os.chmod(p.path("in/b"), 0o755)
        os.chmod(p.path("in/b/c"), 0o755)
        p.run("run", p.workflow(["in/*/*/x.smi"], FLAT), "-q")
        assert p.rows("SELECT title FROM record") == [("b/c",)]


def a_decimal_comma_is_reported_once():
    with Project() as p:
        rows = "CCO;1.5;2,0;a\nCCN;1,5;1;b\nCCC;-2,5;1;c\n" + "".join("%s;0,5;1;d\n" % ("C" * n) for n in range(4, 150))
        p.put("a.csv", "smiles;y;z;name\n" + rows)

        def told(stages, workdir):
            _, _, err = p.run("run", p.workflow(["a.csv"], stages, workdir=workdir))
            return [line for line in err.splitlines() if " with a decimal comma " in line]
        one = told(FLAT, "all")
        assert len(one) == 1 and "a.csv:2: z is 2,0: a number with a decimal comma is read as text, not as a label" in one[0], one
        one = told(FLAT.replace("none}", "none}, labels: [y]"), "y")
        assert len(one) == 1 and "a.csv:3: y is 1,5: " in one[0] and "write 1.5 for 1,5" in one[0], one
        assert p.rows("SELECT value FROM label", workdir="y") == [(1.5,)]
        assert told(FLAT.replace("none}", "none}, labels: none"), "none") == []
        p.put("a.csv", "smiles,y\nCCO,\"-1,5\"\nCCN,2\n")
        assert ["a.csv:2: y is -1,5: " in line for line in told(FLAT, "minus")] == [True]
        p.put("a.csv", "smiles,y\nCCO,1.5\nCCN,\"1,2-diol\"\nCCC,\"1,\"\nCCCC,\",5\"\nCCCCC,\"1,5,6\"\n")
        assert told(FLAT, "text") == []


def an_unusual_charge_in_an_xyz_comment_is_refused():
    ways = ("charge = 2", "charge= 2", "w charge =2 e=1", "charge: 2", "net charge +2", "k=3 total_charge: 2", "q=2", "w e=1 Q: 2", "k=3,charge=2",
            "e=1 net-charge=2", "totalcharge=2")
    water = "O 0 0 0.117\nH 0 0.757 -0.469\nH 0 -0.757 -0.469\n"
    with Project() as p:
        p.put("a.xyz", "".join("3\n%s\n%s" % (c, water) for c in ways + ("charge=0", "water energy=2", "discharged 2")))
        p.run("run", p.workflow(["a.xyz"], KEEP), "-q")
        assert p.rows("SELECT status FROM record ORDER BY ordinal") == [("failed",)] * len(ways) + [("ok",)] + [("duplicate",)] * 2
        assert p.one("SELECT count(*) FROM v_failures WHERE message LIKE 'xyz: %charge%'") == len(ways)


def parents(path):
    path = os.path.dirname(os.path.abspath(path))
    while path != "/":
        yield path
        path = os.path.dirname(path)


main([an_unreadable_folder_is_an_error_and_not_empty, a_decimal_comma_is_reported_once,
      records_without_the_field_of_their_title_are_told, an_unusual_charge_in_an_xyz_comment_is_refused, one_bad_molecule_fails_alone, a_v3000_molfile_is_read_whole_or_refused, a_missing_file_is_reported_with_its_place,
      an_empty_file_warns_and_no_record_is_an_error, a_table_without_column_names_is_refused, a_record_without_a_smiles_fails_before_its_worker, a_wrong_format_fails_records_and_is_reported,
      the_unread_rest_of_a_file_is_one_failed_record,
      binary_junk_of_every_name_is_refused_record_by_record, a_line_of_100_megabytes_is_one_record_and_little_memory,
      a_truncated_gzip_keeps_what_was_whole, bytes_after_gzip_data_are_reported,
      a_reaction_is_refused, a_smiles_that_was_cut_short_is_refused, an_unreadable_format_is_refused_with_advice, too_many_failures_stop_with_status_3,
      a_newer_or_foreign_database_is_left_unchanged, an_unwritable_directory_is_reported])
