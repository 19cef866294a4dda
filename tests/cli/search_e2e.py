#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fingerprints and scaffolds of a run, and what finds molecules by them."""
import csv
import io
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import urllib.parse

import sieve
from sieve import Project, lines_of, data

FLAT = "  read: {unit: 20}\n  prepare: {conformers: {source: none}}\n"


def alike(a, b):
    """Tanimoto similarity of two stored fingerprints."""
    a, b = int.from_bytes(a, "little"), int.from_bytes(b, "little")
    return bin(a & b).count("1") / max(1, bin(a | b).count("1"))


def library(p, n=200):
    p.put("lib.smi", lines_of(data("library.smi"), n))
    return p.workflow([p.path("lib.smi")], FLAT + "  rank: {objectives: [{property: mw, goal: minimise}], top: 30}\n")


def fingerprints_and_scaffolds_of_all_molecules_are_stored():
    with Project() as p:
        p.put("a.smi", "Cc1ccccc1 toluene\nCCO ethanol\nc1ccccc1CC(=O)O acid\nOCC again\nCn1cccc1 pyrrole\nC(x bad\n")
        w = p.workflow([p.path("a.smi")], FLAT, extra="limits: {failures: {max_fraction: 1}}\n")
        p.run("run", w, "-q")
        rows = p.rows("SELECT mol_id, scaffold, length(bits) FROM fingerprint ORDER BY 1")
        assert rows == [(1, "c1ccccc1", 256), (2, "", 256), (3, "c1ccccc1", 256), (5, "[nH]1cccc1", 256)], rows
        on = [k for k, byte in enumerate(p.one("SELECT bits FROM fingerprint WHERE mol_id=2")) for _ in range(bin(byte).count("1"))]
        assert on == [252 // 8, 292 // 8, 325 // 8, 817 // 8, 1493 // 8, 1860 // 8], on  # tests/unit/fingerprint_test.c
        p.run("db", "check", "run")
        db = sqlite3.connect(p.path("run/results.db"))  # a fingerprint that another program changes is noticed
        db.execute("UPDATE fingerprint SET scaffold='C1CC1' WHERE mol_id=1")
        db.commit()
        db.close()
        assert "fingerprint: the checksum of its rows differs" in p.run("db", "check", "run", expect=5)[1]


def the_views_answer_what_people_ask():
    with Project() as p:
        p.run("run", library(p), "-q")
        rows = p.rows("SELECT scaffold, best_rank, hits, smiles FROM v_scaffolds ORDER BY best_rank")
        hits = p.rows("SELECT rank, scaffold, smiles FROM hit JOIN molecule USING(mol_id) JOIN fingerprint USING(mol_id) ORDER BY rank")
        best = {}
        for rank, scaffold, smiles in hits:
            best.setdefault(scaffold, [rank, 0, smiles])[1] += 1
        assert [(s, r, n, x) for s, (r, n, x) in best.items()] == rows and len(rows) < 30
        wide = p.rows("SELECT mol_id, rank, mw, scaffold FROM v_properties")
        assert len(wide) == p.one("SELECT count(*) FROM molecule") and sum(r[1] is not None for r in wide) == 30
        for view in ("v_scaffolds", "v_properties", "v_nearest"):
            columns = p.one("SELECT count(*) FROM pragma_table_info(?)", view)
            assert columns == p.one("SELECT count(*) FROM column_doc WHERE tbl=?", view) > 6


def found(p, *args, where="run", **more):
    return json.loads(p.run("search", *args, "--json", where, **more)[1])


def similar_molecules_are_found_most_similar_first():
    with Project() as p:
        p.run("run", library(p), "-q")
        rows = p.rows("SELECT mol_id, smiles, bits FROM molecule JOIN fingerprint USING(mol_id)")
        for query in rows[::40]:
            want = sorted(((-alike(query[2], bits), mol_id, smiles) for mol_id, smiles, bits in rows))
            for least in (0, 0.3, 1):
                got = found(p, "--similar", query[1], "--at-least", str(least))
                assert [(-g["query_similarity"], g["smiles"]) for g in got] == [(w[0], w[2]) for w in want if -w[0] >= least]
            top = found(p, "--similar", query[1], "--at-least", "0", "--limit", "7")
            assert [g["smiles"] for g in top] == [w[2] for w in want[:7]] and top[0]["smiles"] == query[1]
        # The same numbers as similarities of scores have, whatever is stored.
        db = sqlite3.connect(p.path("run/results.db"))
        db.executescript("DELETE FROM fingerprint WHERE mol_id%2; DELETE FROM row_sum")
        db.close()
        _, out, err = p.run("search", "--similar", query[1], "--at-least", "0.2", "--json", "run")
        assert json.loads(out) == [g for g in found(p, "--similar", query[1], "--at-least", "0") if g["query_similarity"] >= 0.2]
        assert "earlier version" in err and "--from prepare" in err, err


def the_most_similar_of_thousands_is_found_wherever_it_is():
    """More molecules are similar enough than a search keeps at once."""
    with Project() as p:
        p.put("lib.smi", "CCO ethanol\n" * 6200 + "Oc1ccccc1 phenol\n")
        w = p.workflow([p.path("lib.smi")], "  read: {unit: 500}\n  prepare: {conformers: {source: none}, dedupe: {by: none}}\n")
        p.run("run", w, "-q")
        for limit, n in ((1, 1), (3, 3), (7000, 6201), (2**63 - 1, 6201)):
            _, out, err = p.run("search", "--similar", "Oc1ccccc1", "--at-least", "0", "-n", str(limit), "--json", "run")
            rows = json.loads(out)
            assert ("there may be more" in err) == (n < 6201), err
            assert len(rows) == n and rows[0]["title"] == "phenol" and rows[0]["query_similarity"] == 1, (limit, rows[:2])


def a_pattern_finds_what_an_alert_finds():
    patterns = ["[NX3;H2]c1ccccc1", "C(=O)[OH]", "[#7;+]", "[R2]", "C[H]", "[$(c1ccccc1);!$(*Cl)]", "S(=O)(=O)", "[CH]"]
    patterns += ["Clc1ccccc1", "[F,Cl]", "BrC", "Sc1ccccc1", "Cn", "[nH]1cccc1", "[#7;!H0]aa", "[!#6;!#8]", "A=O", "Oc1ccc(Cl)cc1", "FC(F)F"]
    with Project() as p:
        p.put("lib.smi", lines_of(data("library.smi"), 300))
        p.put("alerts.smarts", "".join("%s p%d\n" % x for x in zip(patterns, range(99))))
        p.run("run", p.workflow([p.path("lib.smi")], "  read: {}\n  prepare: {conformers: {source: none}, alerts: {file: %s}}\n" % p.path("alerts.smarts")), "-q")
        for k, pattern in enumerate(patterns):
            want = p.rows("SELECT smiles FROM molecule WHERE ', '||alerts||',' LIKE '%, p' || ? || ',%' ORDER BY mol_id", k)
            got = found(p, "--smarts", pattern)
            assert [g["smiles"] for g in got] == [w for w, in want], pattern
            both = found(p, "--smarts", pattern, "--where", "mw < 300")
            assert [g["smiles"] for g in both] == [g["smiles"] for g in got if g["mw"] < 300]
        # The order and the limit are those of one worker, whatever their number; batches have 128 molecules.
        for more in ((), ("--limit", "150"), ("--similar", got[0]["smiles"], "--at-least", "0")):
            one = found(p, "--smarts", "[#6]", *more, "--jobs", "1")
            assert one == found(p, "--smarts", "[#6]", *more, "--jobs", "5") and len(one) > 140
        assert len(found(p, "--smarts", "C", "--limit", "5")) == 5 and 0 < len(got) < 300


def scaffolds_are_found_and_every_format_says_the_same():
    with Project() as p:
        p.run("run", library(p), "-q")
        want = [r for r, in p.rows("SELECT smiles FROM molecule JOIN fingerprint USING(mol_id) LEFT JOIN hit USING(mol_id) "
                                   "WHERE scaffold='c1ccccc1' ORDER BY rank IS NULL, rank, mol_id")]
        assert [g["smiles"] for g in found(p, "--scaffold", "CCc1ccccc1O")] == want and len(want) > 3
        _, table, err = p.run("search", "--scaffold", "c1ccccc1", "run")
        assert err.startswith("%d molecules of " % len(want)) and len(table.splitlines()) == len(want) + 2
        assert not re.search(r"[1-9]\.[0-9]{3}", table), table  # three significant digits, as `top`
        csv_rows = list(csv.DictReader(io.StringIO(p.run("search", "--scaffold", "c1ccccc1", "--csv", "run")[1])))
        assert [r["smiles"] for r in csv_rows] == want
        assert [json.loads(x)["smiles"] for x in p.run("search", "--scaffold", "c1ccccc1", "-f", "jsonl", "run")[1].splitlines()] == want
        p.run("search", "--scaffold", "c1ccccc1", "-f", "sdf", "-o", "x.sdf", "run")
        assert open(p.path("x.sdf")).read().count("$$$$") == len(want)
        p.run("search", "--scaffold", "c1ccccc1", "-f", "smi", "-o", "x.smi", "run")
        assert [x.split()[0] for x in open(p.path("x.smi"))] == want


def wrong_searches_are_refused_at_once():
    with Project() as p:
        w = library(p, 20)
        p.run("run", w, "-q")
        _, out, err = p.run("search", "--smarts", "c1cc(", "--similar", "CXC", "--scaffold", "CCO", "--where", "mw <", "run", expect=2)
        assert out == "" and all(x in err for x in ("--smarts 'c1cc(': not a valid SMARTS, see column 6", "--similar 'CXC': not a SMILES",
                                                    "--scaffold 'CCO': has no rings", "--where: a value is missing")), err
        for args in ((), ("--similar", "CC", "--at-least", "2"), ("--at-least", "0.5", "--smarts", "C"), ("--smarts", "C", "--limit", "0"),
                     ("--smarts", ""), ("--smarts", "C C"), ("--smarts", "C\n"), ("--smarts", "C", "-f", "xml"), ("--smarts", "C", "-o", "x"), ("--smarts", "C", "--jobs", "0")):
            p.run("search", *args, "run", expect=2)
        p.put("other.db", b"")
        os.remove(p.path("other.db"))
        db = sqlite3.connect(p.path("other.db"))
        db.execute("CREATE TABLE t(x)")
        db.commit()
        db.close()
        err = p.run("search", "--smarts", "C", "other.db", expect=5)[2]
        assert "other.db: a database of another program" in err and "name another file" in err, err
        p.run("search", "--smarts", "C", "no.db", expect=6)
        holder = sqlite3.connect(p.path("run/results.db"))
        holder.execute("BEGIN EXCLUSIVE")  # a run that is writing
        assert len(found(p, "--smarts", "*")) > 10 and "molecule 1" in p.run("show", "1", "run")[1]
        holder.close()
        os.chmod(p.path("run"), 0o555)
        os.chmod(p.path("run/results.db"), 0o444)
        assert len(found(p, "--smarts", "*")) > 10
        assert p.run("query", "--csv", "SELECT count(*) FROM molecule WHERE smarts(smiles,'*') AND scaffold(smiles) IS NOT NULL", "run")[1].split()[1] == "20"


def hostile_patterns_cost_their_cpu_seconds_only():
    with Project() as p:
        p.run("run", library(p, 20), "-q")
        names = {"long": "C" * 10 ** 5, "chain": "C" * 10 ** 4, "depth": "[$(" * 1900 + "C" + ")]" * 1900, "branches": "C(" * 3300 + "C" + ")" * 3300,
                 "rings": "C12" * 3000, "paths": "*~" * 60 + "*"}
        for name, pattern in names.items():
            status, out, err = p.run("search", "--smarts", pattern, "run", expect=None)
            assert status in (0, 2, 3) and (status == 0) == ("molecules of" in err and "missing" not in err), (name, status, err[:300])
            assert len(err) < 1000, name
        for pattern in ("C" * 10 ** 6, "[$(" * 200000 + "C" + ")]" * 200000):
            w = p.workflow([p.path("lib.smi")], FLAT + "  rank: {objectives: [{property: mw, goal: minimise}], where: \"smarts('%s')\"}\n" % pattern, name="deep.yaml")
            status, _, err = p.run("check", w, expect=None)
            assert status in (0, 2) and len(err) < 1000, err[:500]


def an_endless_pattern_fails_only_its_molecule():
    c60 = ("c12c3c4c5c1c1c6c7c2c2c8c3c3c9c4c4c%10c5c5c1c1c6c6c%11c7c2c2c7c8c3c3c8c9c4c4c9c%10c5c5c1c1c6c6c%11c2c2c7c3c3c8c4c4c9c5"
           "c1c1c6c2c3c41")
    pattern = "*%s~[U,O]" % ("~*" * 24)
    with Project() as p:
        p.put("a.smi", "CCO ethanol\n%s C60\n%s chain\n" % (c60, "C" * 25 + "O"))
        p.run("run", p.workflow([p.path("a.smi")], FLAT), "-q")
        _, out, err = p.run("search", "--smarts", pattern, "--csv", "run", expect=3)
        assert out.count("\n") == 2 and ",chain," in out and "1 molecule could not be compared, and is missing above; the first: c1" in err and "timeout" in err, err
        keep = "  read: {}\n  prepare: {conformers: {source: none}, keep: \"not smarts('%s')\"}\n" % pattern
        p.run("run", p.workflow([p.path("a.smi")], keep, workdir="kept", extra="limits: {failures: {max_fraction: 1}}\n"), "-q")
        assert p.rows("SELECT title, status, code FROM record LEFT JOIN failure USING(record_id) ORDER BY record_id", workdir="kept") == [
            ("ethanol", "ok", None), ("C60", "failed", "timeout"), ("chain", "filtered", None)]


def conditions_know_structures():
    with Project() as p:
        p.put("lib.smi", lines_of(data("library.smi"), 150))
        flat = "  read: {}\n  prepare: {conformers: {source: none}%s}\n  rank: {objectives: [{property: mw, goal: minimise}], top: 200%s}\n"
        p.run("run", p.workflow([p.path("lib.smi")], flat % ("", "")), "-q")
        cases = [("smarts('c1ccccc1')", {g["smiles"] for g in found(p, "--smarts", "c1ccccc1")}),
                 ("similarity('OC(=O)c1ccccc1') >= 0.25", {g["smiles"] for g in found(p, "--similar", "OC(=O)c1ccccc1", "--at-least", "0.25")}),
                 ("scaffold = 'c1ccccc1'", {g["smiles"] for g in found(p, "--scaffold", "c1ccccc1")}),
                 ("not smarts('[#7]') and (scaffold is null or scaffold <> '')", None)]
        cases[3] = (cases[3][0], {s for s, in p.rows("SELECT smiles FROM molecule JOIN fingerprint USING(mol_id) WHERE scaffold<>''")} -
                    {g["smiles"] for g in found(p, "--smarts", "[#7]")})
        for n, (condition, want) in enumerate(cases):
            assert 3 < len(want) < 150, condition
            for where, text in (("ranked", flat % ("", ', where: "%s"' % condition)), ("kept", flat % (', keep: "%s"' % condition, ""))):
                p.run("run", p.workflow([p.path("lib.smi")], text, workdir=where + str(n)), "-q")
                table = "hit JOIN molecule USING(mol_id)" if where == "ranked" else "molecule"
                assert {s for s, in p.rows("SELECT smiles FROM " + table, workdir=where + str(n))} == want, (where, condition)
                if where == "ranked":
                    assert p.one("SELECT value FROM metric WHERE split='funnel' AND name='satisfy where'", workdir=where + str(n)) == len(want)
            exported = p.run("export", "smi", "--all", "--where", condition, "run")[1]
            assert {x.split()[0] for x in exported.splitlines()} == want
        # Open Babel's builder: the worker's answer has no atoms yet.
        built = flat.replace("source: none", "source: generate, builder: openbabel")
        p.put("lib.smi", lines_of(data("library.smi"), 8))
        p.run("run", p.workflow([p.path("lib.smi")], built % (', keep: "similarity(\'OC(=O)c1ccccc1\') < 2"', ""), workdir="built"), "-q")
        assert p.one("SELECT count(*) FROM molecule", workdir="built") == 8
        # An older database: both are computed.
        db = sqlite3.connect(p.path("run/results.db"))
        db.executescript("DELETE FROM fingerprint; DELETE FROM row_sum")
        db.close()
        for condition, want in cases:
            assert {x.split()[0] for x in p.run("export", "smi", "--all", "--where", condition, "run")[1].splitlines()} == want


def a_smiles_that_nothing_equals_is_refused_with_the_canonical():
    with Project() as p:
        p.put("lib.smi", "c1ccccc1CC one\nCCc1ccc2ccccc2c1 two\nOCC three\n")
        rank = FLAT + '  rank: {objectives: [{property: mw, goal: minimise}], where: "%s"}\n'
        p.run("run", p.workflow([p.path("lib.smi")], FLAT), "-q")
        refused = (("scaffold = 'C1=CC=CC=C1'", "scaffold: nothing is equal to 'C1=CC=CC=C1', which is written 'c1ccccc1' here"),
                   ("'c1ccc2ccccc2c1' != (scaffold)", "scaffold: nothing is equal to 'c1ccc2ccccc2c1', which is written '%s' here"),
                   ("scaffold in ('c1ccccc1', 'Cc1ccccc1')", "scaffold: nothing is equal to 'Cc1ccccc1', which is written 'c1ccccc1' here"),
                   ("case scaffold when 'C1=CC=CC=C1' then 1 else 0 end = 1", "scaffold: nothing is equal to 'C1=CC=CC=C1'"),
                   ("scaffold is 'CCO'", "scaffold: 'CCO' has no rings, so no scaffold; without rings it is ''"),
                   ("scaffold <> 'C(('", "scaffold: 'C((' is not a SMILES"),
                   ("smiles = 'OCC'", "smiles: nothing is equal to 'OCC', which is written 'CCO' here"))
        two = p.one("SELECT scaffold FROM fingerprint JOIN molecule USING(mol_id) WHERE smiles LIKE '%2%'")
        for condition, why in refused:
            why = why.replace("%s", two)
            for args in (("search", "run"), ("export", "smi", "--all", "run")):
                status, out, err = p.run(*args, "--where", condition, expect=2)
                assert out == "" and "where: " + why in err, (condition, err)
            w = p.workflow([p.path("lib.smi")], rank % condition, name="rank.yaml")
            err = p.run("check", w, expect=2)[2]
            line, text = next((i + 1, x) for i, x in enumerate(open(w).read().splitlines()) if "where" in x)
            at = text.index("'", text.index("where")) if "in (" not in condition else text.index("'Cc1")
            assert ":%d:%d: rank: where: %s" % (line, at + 2, why) in err, err
            err = p.run("check", p.workflow([p.path("lib.smi")], "  read: {}\n  prepare: {keep: \"%s\"}\n" % condition, name="keep.yaml"), expect=2)[2]
            assert "keep: " + why in err, err
        for condition, titles in (("scaffold = 'c1ccccc1'", "one"), ("scaffold = '%s' or smiles in ('CCO', '')" % two, "two three"),
                                  ("scaffold = ''", "three"), ("scaffold not in ('c1ccccc1', '')", "two"), ("scaffold glob '*C1=CC*'", "")):
            out = p.run("export", "smi", "--all", "--where", condition, "run")[1]
            assert [x.split()[1] for x in out.splitlines()] == titles.split(), (condition, out)
        # What the library has is what may be written.
        p.put("more.smi", lines_of(data("library.smi"), 400) + b"C[N+](C)(C)c1cccc[n+]1[O-] a\nC/C=C/C1CC1 b\n[Na+].[O-]C(=O)c1ccccc1 c\nC[C@H]1CC[C@@H](O)CC1 d\n"
              b"OC(=O)[C@@H]1C[NH2+]C1 e\nC1CC[13CH2]C1 f\nO=c1cc[nH]cc1 g\nCC=[C@]=CC h\n[Fe]1CC1 i\n")
        p.run("run", p.workflow([p.path("more.smi")], FLAT, workdir="more"), "-q")
        for column in ("scaffold", "smiles"):
            known = [x for x, in p.rows("SELECT DISTINCT m.%s FROM (SELECT smiles, scaffold FROM molecule JOIN fingerprint USING(mol_id)) m" % column, workdir="more")]
            condition = "%s in (%s)" % (column, ", ".join("'%s'" % x for x in known))
            assert len(p.run("export", "smi", "--all", "--where", condition, "more")[1].splitlines()) == p.one("SELECT count(*) FROM molecule", workdir="more")


def a_condition_on_structures_that_nobody_built_is_refused():
    with Project() as p:
        p.put("lib.smi", "CCO one\nCCN two\n")
        rank = '  rank: {objectives: [{property: %s, goal: minimise}], where: "%s"}\n'
        p.run("run", p.workflow([p.path("lib.smi")], FLAT), "-q")
        for condition, why in (("energy < 5", "the energy of every molecule is NULL"), ("mw > 20 and structures = 1", "the structures of every molecule are NULL"),
                               ("alerts = ''", "alerts are NULL")):
            for args in (("search", "run"), ("export", "smi", "--all", "run")):
                status, out, err = p.run(*args, "--where", condition, expect=2)
                assert out == "" and "where: " + why in err, (condition, err)
            err = p.run("check", p.workflow([p.path("lib.smi")], FLAT + rank % ("mw", condition), name="flat.yaml"), expect=2)[2]
            assert "rank: where: " in err and "NULL" in err, err
        for name in ("energy", "structures"):
            err = p.run("check", p.workflow([p.path("lib.smi")], FLAT + rank % (name, "mw > 20"), name="flat.yaml"), expect=2)[2]
            assert "rank: %s is NULL, as no structures are built; set stages.prepare.conformers.source: generate\n" % name in err, err
            program = "  external: {command: [grep, -c, C, '{input}'], input: smiles, output: regex, value: '^([0-9]+)', property: %s, better: low}\n" % name
            p.run("check", p.workflow([p.path("lib.smi")], FLAT + program + rank % (name, "mw > 20"), name="scored.yaml"))  # not the column
        # Where they are built, and not needed for a model, the condition is what asks for them.
        assert p.run("search", "run", "--where", "mw > 20", "--json")[1].count("smiles") == 2
        built = "  read: {}\n  prepare: {}\n"
        p.run("run", p.workflow([p.path("lib.smi")], built + rank % ("mw", "energy < 1e9 and structures = 1"), workdir="built"), "-q")
        assert p.one("SELECT count(*) FROM hit", workdir="built") == 2


def a_wrong_pattern_in_a_condition_is_refused_with_its_column():
    with Project() as p:
        p.put("lib.smi", "CCO a\n")
        w = p.workflow([p.path("lib.smi")], "  read: {}\n  prepare: {keep: \"mw > 1 and smarts('CC(')\"}\n"
                       "  rank: {objectives: [{property: mw, goal: minimise}], where: \"similarity('CXC') > 0.5\"}\n")
        err = p.run("run", w, expect=2)[2]
        lines = open(w).read().splitlines()
        for text, shift, what in (("CC(", 3, "smarts: 'CC(' is not a valid SMARTS"), ("CXC", 0, "rank: where: similarity: 'CXC' is not a SMILES")):
            n = next(i for i, line in enumerate(lines) if "'" + text in line)
            assert ":%d:%d: " % (n + 1, lines[n].index("'" + text) + 2 + shift) in err and what in err, err
        assert not os.path.exists(p.path("run/results.db"))
        for wrong in ("smarts(smiles)", "smarts('C', 'C')", "similarity('C')", "smarts('C') > 1 and 'x'", "fingerprint(smiles) = 1", "smarts()"):
            p.run("check", p.workflow([p.path("lib.smi")], FLAT + '  rank: {objectives: [{property: mw, goal: minimise}], where: "%s"}\n' % wrong), expect=2)


def a_question_is_prepared_as_the_library_was():
    acid, salt = "c1ccccc1C(=O)O", "c1ccccc1C(=O)[O-].[Na+]"
    with Project() as p:
        p.put("lib.smi", "%s acid\nNCCc1ccccc1 amine\n" % acid)
        for setting in ("ph: 7.4", "neutralise: true"):
            steps = "  read: {}\n  prepare: {conformers: {source: none}, %s}\n" % setting
            p.run("run", p.workflow([p.path("lib.smi")], steps, workdir=setting[:2]), "-q")
            for question in (acid, salt, "OC(=O)c1ccccc1"):
                assert [g["title"] for g in found(p, "--similar", question, "--at-least", "1", where=setting[:2])] == ["acid"], (setting, question)
                assert "acid" in p.run("show", question, setting[:2])[1]
        assert "[O-]" in p.rows("SELECT smiles FROM molecule ORDER BY mol_id", workdir="ph")[0][0]


def parts_of_a_pattern_that_nothing_compares_are_refused():
    """The matcher passes over the marks, F/C=C/F would find F/C=C\\F, too, and over what follows the first part of (O).(N)."""
    marks = "the marks / and \\ of a double bond cannot be compared; leave them out, and both of its forms match"
    dot = "parts that are joined by a dot cannot be compared; use a pattern for each part"
    at = "the mark @ is compared only in [C@H] with three neighbours in the pattern, and in [C@] with four; write it so, or leave it out, and both forms match"
    heavy = "[2H] and [3H] would be atoms with a hydrogen; write [2#1] and [3#1] for hydrogen of that mass"
    proton = "[H+] and [H-] would be charged atoms with a hydrogen; write [#1+] and [#1-] for the ions of hydrogen"
    with Project() as p:
        p.put("lib.smi", "F/C=C/F FE\nF/C=C\\F FZ\nCCO none\n")
        p.run("run", p.workflow([p.path("lib.smi")], FLAT + "  rank: {objectives: [{property: mw, goal: minimise}]}\n"), "-q")
        assert len(found(p, "--smarts", "FC=CF")) == 2
        for pattern, why in (("F/C=C/F", marks), ("F\\C=C/F", marks), ("C/C=C", marks), ("[C;$(F/C=C/F)]", marks), ("(O).(N)", dot), ("O.N", dot), ("C[S@](=O)CC", at), ("[2H]C", heavy), ("[H+]", proton), ("[C;$([H-])]", proton)):
            err = p.run("search", "--smarts", pattern, "run", expect=2)[2]
            assert "--smarts '%s': %s" % (pattern, why) in err, err
            condition = "mw > 1 and smarts('%s')" % pattern
            for args in (("search", "run"), ("next", "run"), ("export", "csv", "--all", "run")):
                err = p.run(*args, "--where", condition, expect=2)[2]
                assert why in err, (args, err)
            status, _, err = p.run("query", "SELECT smarts(smiles, '%s') FROM molecule" % pattern, "run", expect=None)
            assert status != 0 and why in err, err
            text = pattern.replace("\\", "\\\\")
            w = p.workflow([p.path("lib.smi")], "  read: {}\n  prepare: {keep: \"not smarts('%s')\"}\n"
                           "  rank: {objectives: [{property: mw, goal: minimise}], where: \"smarts('%s')\"}\n" % (text, text), name="marks.yaml")
            err = p.run("check", w, expect=2)[2]
            assert err.count(why) == 2 and "prepare: keep" in err and "rank: where" in err, err


def all_that_is_known_of_a_molecule_is_shown():
    with Project() as p:
        p.put("a.smi", "CC(=O)Oc1ccccc1C(=O)[O-].[Na+] aspirin\nCCO one\nC(x bad\nc1ccccc1C#N nitrile\nOCC again\n[Se]1C=CC=C1 odd\nCCO one\n")
        p.put("b.smi", "".join("%s m%d\n" % ("C" * n, n) for n in range(1, 9)))
        w = p.workflow([p.path("a.smi"), p.path("b.smi")],
                       "  read: {}\n  prepare: {neutralise: true, alerts: {file: alerts}}\n  graph: {edges: bonds}\n  basis: {kind: frame_q15}\n  score: {models: [esol]}\n"
                       "  rank: {objectives: [{property: logS, goal: maximise}], top: 4}\n",
                       extra="limits: {failures: {max_fraction: 1}}\nmodels:\n  esol: {path: %s}\n" %
                       os.path.join(os.environ["MOLSIEVE_SOURCE"], "workflows/models/esol.safetensors"))
        p.put("alerts", "C#N nitrile group\n")
        p.run("run", w, "-q")
        out = p.run("show", "aspirin", "run")[1]
        assert max(map(len, out.splitlines())) <= 80, out
        for line in ("molecule 1", "SMILES       CC(=O)Oc1ccccc1C(=O)O", "InChIKey     BSYNRYMUTXBXSQ-UHFFFAOYSA-N", "scaffold     c1ccccc1", "removed      [Na+]",
                     "charge       -1 in the record, +0 as prepared", "structure    1 conformer, built with mmff94 by the native builder, ",
                     "features     prepare (unit 0), graph (unit 0), basis (unit 0)", "scores       logS "):
            assert "\n" + line in "\n" + out, (line, out)
        assert p.path("a.smi") + ":1 aspirin ok" in " ".join(out.split())  # folded at 80 columns
        rank = p.one("SELECT rank FROM hit WHERE mol_id=2")
        for word in ("one", "again", "2", "5", "LFQSCWFLJHTTHZ-UHFFFAOYSA-N", "LFQSCWFLJHTTHZ", "OCC", "C(O)C"):
            shown = p.run("show", word, "run")[1]
            assert shown.startswith("molecule 2\n") and "state        rank %d of 4\n" % rank in shown and shown.count(" duplicate\n") == 2, (word, shown)
        bad = p.run("show", "bad", "run")[1]
        assert "record 3, without molecule" in bad and ":3 bad failed " in " ".join(bad.split()) and "prepare: parse: " in bad and "SMILES       C(x\n" in bad, bad
        assert "score: element: " in p.run("show", "odd", "run")[1]
        assert "alerts       nitrile group" in p.run("show", "nitrile", "run")[1]
        one, = json.loads(p.run("show", "one", "run", "--json")[1])
        assert one["molecule"][0]["inchikey"] == "LFQSCWFLJHTTHZ-UHFFFAOYSA-N" and [r["line"] for r in one["records"]] == [2, 5, 7]
        assert one["hit"][0]["rank"] == rank and one["scores"][0]["property"] == "logS" and len(one["molecule"][0]["fingerprint"]) == 512
        assert json.loads(p.run("show", "3", "run", "--json")[1])[0]["failures"][0]["code"] == "parse"


def a_query_without_the_worker_is_told_what_it_lacks():
    with Project() as p:
        p.put("a.smi", "CCO ethanol\n")
        p.run("run", p.workflow([p.path("a.smi")], FLAT), "-q")
        alone = shutil.copy(sieve.PROGRAM, p.path("alone"))
        p.command = lambda *args: [alone] + list(args)
        env = dict(os.environ, PATH="/nowhere", MOLSIEVE_CHEM="")
        _, _, err = p.run("query", "SELECT smarts(smiles, 'O') FROM molecule", "run", expect=2, env=env)
        assert "no such function: smarts; those that know molecules are missing: molsieve-chem is neither beside" in err, err
        _, _, err = p.run("query", "SELECT nosuch FROM molecule", "run", expect=2, env=env)
        assert "no such column: nosuch; `molsieve query` lists tables and columns" in err, err
        assert p.run("query", "SELECT smiles FROM molecule", "run", env=env)[1].split()[0] == "smiles"


def what_is_not_there_is_suggested():
    with Project() as p:
        p.put("a.smi", "CCO ethanol\nCCN amine\n" + "".join("%s same\n" % ("C" * n) for n in range(1, 15)) + "CCCl 2\n")
        p.run("run", p.workflow([p.path("a.smi")], FLAT), "-q")
        for word, says in (("etanol", "did you mean ethanol?"), ("CCCCCCCO", "BBMCTIGTTCKYKF-UHFFFAOYSA-N is not a molecule of"),
                           ("AAAAAAAAAAAAAA-UHFFFAOYSA-N", "is not a molecule of"), ("?!", "and not a SMILES"), ("999", "999"), ("", ""),
                           ("thanol", "'thanol' is not in")):
            _, out, err = p.run("show", word, "run", expect=2)
            assert out == "" and says in err and ("did you mean" in err) == (word == "etanol"), (word, err)
        _, out, err = p.run("show", "same", "run")
        assert out.count("\nSMILES ") == 10 and "4 more have the title same" in err, err
        _, out, err = p.run("show", "same", "run", "--json")
        assert len(json.loads(out)) == 10 and "4 more have the title same" in err, err
        # `show` takes a number for a title first, `explain` for a number, which says so.
        assert p.run("show", "2", "run")[1].startswith("molecule 17\n")
        _, out, err = p.run("explain", "2", "run")
        assert out.startswith("molecule 2  CCN\n") and "the one with the title 2 is explained by: molsieve explain 17" in err, (out, err)
        assert p.run("explain", "17", "run")[2] == ""
        p.run("show", expect=2)
        p.run("show", "a", "b", "c", expect=2)
        p.put("other.db", "no database, but long enough to be read as one" * 30)
        p.run("show", "ethanol", "other.db", expect=5)


EXTENSION = os.path.join(os.path.dirname(sieve.PROGRAM), "molsieve_sqlite")


def shell(p, *sql, expect=0, env=None):
    """The real sqlite3 shell with the extension."""
    r = subprocess.run(["sqlite3", "-csv", "run/results.db", ".load " + EXTENSION] + list(sql), cwd=p.dir, capture_output=True, text=True,
                       env={**os.environ, **(env or {})})
    assert (r.returncode != 0) == (expect != 0), (sql, r.stdout, r.stderr)
    return r.stdout if expect == 0 else r.stderr


def sqlite_has_the_same_functions_as_an_extension():
    if shutil.which("sqlite3") is None:
        sieve.skip("needs sqlite3")
    with Project() as p:
        p.run("run", library(p, 120), "-q")
        rows = p.rows("SELECT smiles, scaffold, bits FROM molecule JOIN fingerprint USING(mol_id) ORDER BY mol_id")
        got = shell(p, "SELECT fingerprint(smiles)=bits AND scaffold(smiles)=scaffold, similarity(bits,'CC(=O)Oc1ccccc1C(=O)O'), "
                       "similarity(smiles,'OC(=O)c1ccccc1OC(C)=O') FROM molecule JOIN fingerprint USING(mol_id) ORDER BY mol_id")
        aspirin = {g["smiles"]: g["query_similarity"] for g in found(p, "--similar", "CC(=O)Oc1ccccc1C(=O)O", "--at-least", "0")}
        for (smiles, _, _), line in zip(rows, got.splitlines()):
            same, stored, computed = line.split(",")
            assert same == "1" and stored == computed and abs(float(stored) - aspirin[smiles]) < 1e-9, (smiles, line)
        want = {g["smiles"] for g in found(p, "--smarts", "[NX3;H2]")}
        assert set(shell(p, "SELECT smiles FROM molecule WHERE smarts(smiles,'[NX3;H2]')").split()) == want and want
        assert shell(p, "SELECT smarts(NULL,'C'), smarts('C(x','C'), similarity('C(x','C') IS NULL, scaffold('?') IS NULL, scaffold('CCO')='', "
                        "length(fingerprint('C')), similarity('OCC','CCO')").strip() == ",,1,1,1,256,1.0"
        for wrong, says in (("smarts('C','C(')", "'C(' is not a valid SMARTS, column 3"), ("similarity('C','C(')", "'C(' is not a SMILES"),
                            ("similarity(x'00','C')", "a blob of 1 bytes is no fingerprint"), ("smarts('C')", "wrong number of arguments"),
                            ("smarts('C','%s')" % ("C" * 10001), "a pattern of 10001 characters")):
            assert says in shell(p, "SELECT " + wrong, expect=1)
        assert "not an executable file" in shell(p, "SELECT scaffold('C')", expect=1, env={"MOLSIEVE_CHEM": "/nowhere"})
        # A view of another's database cannot call them.
        assert "unsafe use" in shell(p, "CREATE VIEW v AS SELECT scaffold('C') AS x", "SELECT x FROM v", expect=1)
        script = ("import sqlite3\na, b = (sqlite3.connect('file:run/results.db?mode=ro', uri=True) for _ in range(2))\n"
                  "for c in (a, b):\n    c.enable_load_extension(True)\n    c.load_extension(%r)\n"
                  "sql = \"SELECT count(*) FROM molecule WHERE smarts(smiles, ?)\"\n"
                  "print(a.execute(sql, ('[NX3;H2]',)).fetchone()[0], b.execute(sql, ('[NX3;H2]',)).fetchone()[0])\n" % EXTENSION)
        python = python_with_extensions()
        if python is not None:
            out = subprocess.run([python, "-c", script], cwd=p.dir, capture_output=True, text=True)
            assert out.stdout.split() == [str(len(want))] * 2, out


def metadata_for_datasette_describe_every_column():
    with Project() as p:
        p.run("run", library(p, 60), "-q")
        described = json.loads(p.run("db", "metadata", "run")[1])["databases"]["results"]
        needs = {name: "--load-extension" in q.get("description", "") for name, q in described["queries"].items()}
        assert needs == {"wide": False, "similar": True, "substructure": True, "scaffold": True}, needs
        db = sqlite3.connect(p.path("run/results.db"))
        for table, in db.execute("SELECT name FROM sqlite_master WHERE type IN('table','view') AND name NOT LIKE 'sqlite_%'").fetchall():
            columns = [c[1] for c in db.execute("PRAGMA table_info(%s)" % table)]
            assert list(described["tables"][table]["columns"]) == columns and described["tables"][table]["description"], table
        wide = db.execute(described["queries"]["wide"]["sql"])
        assert [c[0] for c in wide.description][:4] == ["rank", "title", "smiles", "inchikey"]
        assert len(wide.fetchall()) == db.execute("SELECT count(*) FROM molecule").fetchone()[0]
        assert set(described["queries"]) == {"wide", "similar", "substructure", "scaffold"}
        db.close()


def python_with_extensions():
    """A Python whose sqlite3 loads extensions; None: there is none."""
    for x in (sys.executable, "/usr/bin/python3"):
        asked = [x, "-c", "import sqlite3; sqlite3.connect(':memory:').enable_load_extension"]
        if os.path.exists(x) and subprocess.run(asked, capture_output=True).returncode == 0:
            return x
    return None


def datasette_of(project):
    """The program datasette, from PyPI in an environment of its own."""
    python = python_with_extensions()
    if python is None:
        sieve.skip("needs a Python whose sqlite3 loads extensions")
    for step in ([python, "-m", "venv", "venv"], ["venv/bin/pip", "install", "-q", "datasette"]):
        done = subprocess.run(step, cwd=project.dir, capture_output=True, text=True)
        if done.returncode != 0:
            sieve.skip("needs datasette (PyPI): " + (done.stderr or done.stdout).strip()[-200:])
    return project.path("venv/bin/datasette")


def datasette_answers_with_metadata_and_extension():
    with Project() as p:
        program = datasette_of(p)
        p.run("run", library(p, 60), "-q")
        p.put("m.json", p.run("db", "metadata", "run")[1])
        smiles = p.one("SELECT smiles FROM molecule LIMIT 1")
        for path, says in (("/results/wide.json?_shape=array", "inchikey"), ("/results/v_scaffolds", "Bemis-Murcko"),
                           ("/results/similar.json?" + urllib.parse.urlencode({"smiles": smiles, "_shape": "array"}), '"query_similarity": 1.0'),
                           ("/results/substructure.json?" + urllib.parse.urlencode({"smarts": "c1ccccc1"}), '"ok": true')):
            r = subprocess.run([program, "run/results.db", "-m", "m.json", "--load-extension", EXTENSION + ".so", "--setting", "sql_time_limit_ms",
                                "20000", "--get", path], cwd=p.dir, capture_output=True, text=True)
            assert r.returncode == 0 and says in r.stdout, (path, r.stdout[:500], r.stderr[-500:])


if __name__ == "__main__":
    sieve.main([sqlite_has_the_same_functions_as_an_extension, metadata_for_datasette_describe_every_column,
                datasette_answers_with_metadata_and_extension, all_that_is_known_of_a_molecule_is_shown, a_query_without_the_worker_is_told_what_it_lacks, what_is_not_there_is_suggested, fingerprints_and_scaffolds_of_all_molecules_are_stored, the_views_answer_what_people_ask,
                similar_molecules_are_found_most_similar_first, the_most_similar_of_thousands_is_found_wherever_it_is, a_pattern_finds_what_an_alert_finds,
                scaffolds_are_found_and_every_format_says_the_same, wrong_searches_are_refused_at_once, a_question_is_prepared_as_the_library_was, parts_of_a_pattern_that_nothing_compares_are_refused,
                hostile_patterns_cost_their_cpu_seconds_only, an_endless_pattern_fails_only_its_molecule, conditions_know_structures,
                a_condition_on_structures_that_nobody_built_is_refused,
                a_wrong_pattern_in_a_condition_is_refused_with_its_column, a_smiles_that_nothing_equals_is_refused_with_the_canonical])
