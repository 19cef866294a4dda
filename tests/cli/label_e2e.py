#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`molsieve label`: measured values come back from a table, all or none of them, and a later training learns them."""
import csv
import fcntl
import io
import os
import shutil

import sieve
from sieve import Project, data, lines_of

ESOL = os.path.join(os.environ["MOLSIEVE_SOURCE"], "workflows/data/esol.csv")
STAGES = """  read: {unit: 25%s}
  prepare: {conformers: {source: none}, labels: [logS], properties: {logS: {unit: "log10(mol/L)", better: high}}}
  graph: {edges: topology}
  split: {method: random, fractions: {train: 0.8, valid: 0.1, test: 0.1}}
  train: {name: m, family: [%s], targets: [{name: logS, unit: "log10(mol/L)", better: high}]}
  score: {}
"""


def library(p, censored="", family="gp"):
    """130 molecules, of which 100 have a label. Returns the rows of the others."""
    rows = list(csv.DictReader(io.StringIO(lines_of(ESOL, 131).decode())))
    smiles, value = list(rows[0])[0], "logS"
    text = "id,smiles,logS\n" + "".join("M%d,%s,%s\n" % (i, r[smiles], r[value] if i < 100 else "") for i, r in enumerate(rows))
    p.put("lib.csv", text)
    p.workflow([p.path("lib.csv")], STAGES % (censored, family))
    p.run("run", "w.yaml", "-q")
    shutil.copytree(p.path("run"), p.path("fresh"))
    return [("M%d" % i, r[smiles], float(r[value])) for i, r in enumerate(rows) if i >= 100]


def again(p):
    shutil.rmtree(p.path("run"))
    shutil.copytree(p.path("fresh"), p.path("run"))


def table(rows, head="id,logS", line="%s,%.17g"):
    return head + "\n" + "".join(line % r + "\n" for r in rows)


def stored(p):
    return dict(p.rows("SELECT (SELECT title FROM record r WHERE r.mol_id=l.mol_id ORDER BY record_id LIMIT 1), value FROM label l"))


def digest(p, where="run"):
    return p.run("db", "digest", where)[1].split()[0]


def labels_by_any_name_of_a_molecule_are_learned():
    with Project() as p:
        late = library(p)
        keys = dict(p.rows("SELECT title, inchikey FROM record JOIN molecule USING(mol_id)"))
        assert len(stored(p)) == 100
        # by title, by InChIKey, by SMILES written backwards: the same labels
        seen = []
        many = "".join(",c%d" % k for k in range(70))  # the column is the 73rd, and one in capitals comes first
        for name, text in (("id.csv", table([(i, v) for i, _, v in late], "id,LOGS%s,logS" % many, "%s,77" + ",8" * 70 + ",%.17g")),
                           ("key.csv", table([(keys[i], v) for i, _, v in late], "InChIKey,logS")),
                           ("smi.csv", table([(s, v) for _, s, v in late], "smiles,logS"))):
            again(p)
            p.put(name, text)
            before = digest(p)
            out = p.run("label", "run", name, "-n")[1]
            assert "30 labels" in out and "nothing was stored" in out and digest(p) == before, out
            out = p.run("label", "run", name)[1]
            assert "logS: 30 labels" in out and "in log10(mol/L)" in out, out
            assert stored(p) == dict(stored(p), **{i: v for i, _, v in late}) and len(stored(p)) == 130
            seen.append(digest(p))
            assert "30 known already" in p.run("label", "w.yaml", name)[1] and digest(p) == seen[-1]
        assert len(set(seen)) == 1, seen
        # the plan says why, the training learns them, the library is not prepared again, and `next` leaves them out
        plan = p.run("plan", "w.yaml")[1]
        assert "labels" in plan, plan
        trained = p.one("SELECT count(*) FROM split JOIN label USING(mol_id) WHERE part='train'")
        said = p.run("run", "w.yaml")[2]
        assert "Gaussian process on %d molecules" % trained in said and "prepare   done" not in said, said
        assert "train" not in p.run("run", "w.yaml")[2] and trained > 95
        said = p.run("next", "run", "-n", "5", "--goal", "maximize")[2]
        assert "130 left out: measured" in said, said
        # the same labels in the library's own file give the same model
        twin = dict(late_text(late))
        text = open(p.path("lib.csv")).read().splitlines()
        p.put("whole.csv", "\n".join([text[0]] + ["%s%.17g" % (line, twin[line.split(",")[0]]) if line.endswith(",") else line for line in text[1:]]) + "\n")
        p.workflow([p.path("whole.csv")], STAGES % ("", "gp"), name="whole.yaml", workdir="whole")
        p.run("run", "whole.yaml", "-q")
        scores = "SELECT inchikey, mean FROM score JOIN molecule USING(mol_id) ORDER BY 1"
        assert p.rows(scores) == p.rows(scores, workdir="whole")
        # a library that is prepared again keeps them
        p.run("run", "w.yaml", "stages.prepare.max_heavy_atoms=90", "-q")
        assert len(stored(p)) == 130 and "good" in p.run("db", "check", "run")[1]


def late_text(late):
    return [(i, v) for i, _, v in late]


def every_problem_is_told_and_nothing_is_stored():
    with Project() as p:
        late = library(p)
        a, b, c, d = (x[0] for x in late[:4])
        before = digest(p)
        one, two = p.rows("SELECT title, value FROM record JOIN label USING(mol_id) ORDER BY record_id LIMIT 2")

        def refused(text, *said, args=(), status=2, lines=None):
            p.put("t.csv", text)
            err = p.run("label", "run", "t.csv", *args, expect=status)[2]
            for word in said:
                assert word in err, (word, err)
            assert digest(p) == before
            assert lines is None or err.count("t.csv:") == lines + 1, err

        refused("id,logS\n%s,1\nX9,2\n%s,1\xb75\n%s,-1\n%s,\"1,5\"\n%s,-2\n%s,3\n%s,4\n" % (a, b, c, d, a, one[0], two[0]),
                "t.csv:3: no molecule of the library has title 'X9'", "t.csv:4: logS: '1\xb75' is no number", "t.csv:6: logS: '1,5' is no number; write 1.5",
                "t.csv:7: logS is -2, and 1 in line 2, for the same molecule", "t.csv:8: logS is 3, and %.10g by the library's file" % one[1],
                "t.csv:9: logS is 4, and %.10g by the library's file" % two[1], "6 problems; nothing was stored", lines=6)
        smiles = {i: s for i, s, _ in late}
        refused("id,smiles,logS\n%s,%s,1\n,C1CC(,2\n,,3\n" % (a, smiles[b]), "t.csv:2: its SMILES is of ", "two molecules", "t.csv:3: no molecule of the library has SMILES 'C1CC('",
                "t.csv:4: it names no molecule")
        refused("id,smiles,inchikey,logS\n%s,C1CC(,AAAAAAAAAAAAAA-UHFFFAOYSA-N,1\n" % a, "t.csv:2: its title is of ",
                "and its InChIKey, which the library lacks, is of another: two molecules", lines=1)  # and not why its SMILES says nothing
        refused("id,logs,logS,logS\n%s,1,2,3\n" % a, "t.csv has 2 columns called logS: which one?")
        refused("id,smiles,logS\n%s,C[Si](C)(C)CC[Si],1\n" % a, "t.csv:2: its title is of ", "its SMILES of ", "which the library lacks: two molecules")
        refused("inchikey,logS\nABC,1\nAAAAAAAAAAAAAA-AAAAAAAAAA-N,2\n", "t.csv:2: 'ABC' is no InChIKey", "t.csv:3: no molecule of the library has InChIKey 'AAAAAAAAAAAAAA-")
        refused(table([(a, 1)]), "--unit mg/L: logS is in log10(mol/L); give --factor", args=["--unit", "mg/L"])
        refused("id,logS,unit\n%s,1,log10(mol/L)\n%s,2,mM\n" % (a, b), "t.csv:3: the unit is 'mM', and logS is in log10(mol/L)", lines=1)
        refused(table([(a, 1)], "id,sol"), "which property do the values of", "the database has: logS", "the columns are: id, sol")
        refused(table([(a, 1)], "id,sol"), "has no column logS", "--column names one", args=["-p", "logS"])
        refused(table([(a, 1)]), "no such property; did you mean logS", "--new makes one", args=["-p", "logs"])
        for beside in ("domain", "similarity", "interval90", "stdev"):
            refused("id,logS,logS_%s\n%s,1,0\n" % (beside, a), "the column logS has predictions, as the column logS_%s beside it says" % beside, "--column")
        refused("id,logS\n", "t.csv has no rows")
        refused(table([(a, 1)]), "--factor 0", args=["--factor", "0"])
        p.put("x.csv", table([(a, 1), (one[0], 7)]))
        p.run("label", "run", "x.csv", "--replace")
        assert stored(p)[one[0]] == 7 and stored(p)[a] == 1
        out = p.run("label", "run", p.put("y.csv", "id,nM\n%s,2\n%s,\n%s,3\n%s,3\n" % (b, c, d, d)), "-p", "logS", "-c", "nM", "--unit", "nM", "--factor", "0.5")[1]
        assert stored(p)[b] == 1 and stored(p)[d] == 1.5 and "1 row repeats" in out and "1 row without a value" in out, out
        p.run("label", "run", p.put("z.csv", table([(a, 1), (b, 0)], "id,toxic")), "-p", "toxic", "--new", "--class")
        assert p.rows("SELECT task FROM property WHERE name='toxic'") == [("classification",)]
        assert "a class is 0 or 1" in p.run("label", "run", p.put("z.csv", table([(c, 2)], "id,toxic")), "-p", "toxic", expect=2)[2]
        # What was added in one unit is not learned as if it were in another.
        p.run("label", "run", p.put("u.csv", table([(a, 1), (b, 2)], "id,sol")), "-p", "sol", "--new", "--unit", "mg/L")
        for target, refused_too in (("unit: g/L", True), ("unit: g/L, factor: 0.001", False), ("unit: mg/L", False), ("better: high", False)):
            said = p.run("check", "w.yaml", "stages.train.targets=[{name: sol, %s}]" % target, expect=None)[2]
            assert ("the label sol is in mg/L (`molsieve label`), and the target sol in g/L: say how to convert, factor: .., which is 1 for two names of one unit\n" in said) == refused_too, (target, said)
        p.run("label", "run", p.put("u.csv", table([(a, 1), (b, 2)], "id,plain")), "-p", "plain", "--new")  # without one
        assert "is in mg/L" not in p.run("check", "w.yaml", "stages.train.targets=[{name: plain, unit: g/L}]", expect=None)[2]
        p.run("label", "run", p.put("u.csv", table([(a, 1)], "id,IC50")), "-p", "IC50", "--new", "--unit", "nM")
        for column, word in (("IC50 (uM)", 2), ("IC50_uM", 2), ("IC50 (nM)", 0)):
            said = p.run("label", "run", p.put("u.csv", table([(b, 0.5)], "id," + column)), "-p", "IC50", "-c", column, expect=word)[2]
            assert word == 0 or "the unit is 'uM', and IC50 is in nM; convert it, or give --unit and --factor" in said, said
        p.put("u.csv", table([(a, 1)], "id,IC90"))
        said = p.run("label", "run", "u.csv", "-p", "IC90", "--new", "--unit", "uM", "--factor", "1000", expect=2)[2]
        assert "--factor: IC90 is new, so it is in the unit of its values, uM; leave --factor out" in said, said
        p.run("label", "nowhere", "x.csv", expect=6)


def names_of_two_stereoisomers_are_a_contradiction():
    with Project() as p:
        p.put("a.smi", "C[C@H](N)C(=O)O L-ala\nC[C@@H](N)C(=O)O D-ala\nC[C@H](F)Cl R-one\nCCO ethanol\n")
        p.workflow(["a.smi"], "  read: {}\n  prepare: {conformers: {source: none}}\n")
        p.run("run", "w.yaml", "-q")
        key = dict(p.rows("SELECT title, inchikey FROM record JOIN molecule USING(mol_id)"))
        other = key["R-one"][:15] + max(key[n][15:] for n in ("L-ala", "D-ala") if key[n][15:] != key["R-one"][15:])
        flat = key["R-one"][:15] + "UHFFFAOYSA-N"
        for head, row, says in (("smiles,id", "C[C@H](N)C(=O)O,D-ala", "two molecules"), ("smiles,id", "C[C@H](N)C(=O)O,L-ala", None),
                                ("inchikey,smiles", key["L-ala"] + ",C[C@@H](N)C(=O)O", "two molecules"),
                                ("inchikey,id", key["L-ala"] + ",D-ala", "two molecules"),
                                ("smiles,id", "C[C@@H](F)Cl,R-one", "which the library lacks: two molecules"),
                                ("smiles,id", "CC(F)Cl,R-one", None), ("inchikey,id", other + ",R-one", "and its InChIKey is of another stereoisomer"),
                                ("inchikey,id", flat + ",R-one", None), ("inchikey,id", "A" * 14 + "-UHFFFAOYSA-N,ethanol", "and its InChIKey, which the library lacks, is of another"),
                                ("inchikey,id,smiles", "A" * 14 + "-UHFFFAOYSA-N,ethanol,OCC", None),
                                ("inchikey,smiles", "A" * 14 + "-UHFFFAOYSA-N,OCC", None), ("inchikey,smiles", "A" * 14 + "-UHFFFAOYSA-N,OCCC", "no molecule of the library"),
                                ("smiles,id", "C1CC,ethanol", "its title is of %s, and its SMILES cannot be read (" % key["ethanol"]), ("smiles,id", ",ethanol", None),
                                ("smiles,id", "[2H]C([2H])(O)C,ethanol", "which the library lacks: two molecules"), ("smiles,id", "[CH3]CO,ethanol", None),
                                ("id,smiles", "ethanol,,1", "4 columns, but the first row names 3"),
                                ("smiles,id", "C1CC,nobody", "no molecule of the library has SMILES 'C1CC' (")):
            p.put("t.csv", "%s,y\n%s,1\n" % (head, row))
            said = p.run("label", "run", "t.csv", "-p", "y", "--new", "-n", expect=None)
            assert said[0] == (2 if says else 0), (head, row, said)
            assert not says or says in said[2], (head, row, said)


def labels_of_molecules_that_are_gone_are_told():
    """They are kept by InChIKey, which another setting of prepare changes; labels that are still of a molecule are told of in no way."""
    with Project() as p:
        p.put("a.smi", "CC(=O)[O-] a\nC[NH3+] b\nCCO c\n")
        p.workflow(["a.smi"], "  read: {}\n  prepare: {conformers: {source: none}, neutralise: false}\n")
        p.run("run", "w.yaml", "-q")
        p.run("label", "run", p.put("t.csv", "id,act\na,1\nb,2\nc,3\n"), "-p", "act", "--new")
        assert "that were added" not in p.run("run", "w.yaml", "stages.prepare.fragment=keep")[2]
        said = " ".join(p.run("run", "w.yaml", "stages.prepare.neutralise=true")[2].split())
        key = min(k for k, in p.rows("SELECT inchikey FROM measured WHERE inchikey NOT IN (SELECT inchikey FROM molecule)"))
        assert "labels: 2 of 3 that were added (`molsieve label`, or a campaign) are of no molecule of this library, so nothing learns them: the inputs or the settings of prepare have changed since; the first: " + key in said, said
        assert p.one("SELECT count(*) FROM label") == 1 and p.one("SELECT count(*) FROM measured") == 3
        assert "that were added" not in p.run("run", "w.yaml", "stages.prepare.neutralise=false")[2]
        assert p.one("SELECT count(*) FROM label") == 3


def a_value_that_the_library_got_later_is_told():
    """The added one stays, as `label` said, but nobody was asked whether it or the file is right."""
    with Project() as p:
        p.put("a.csv", "smiles,id,act\nCCO,a,\nCCN,b,\nCCC,c,3\n")
        p.workflow([p.path("a.csv")], "  read: {}\n  prepare: {conformers: {source: none}, labels: [act]}\n")
        p.run("run", "w.yaml", "-q")
        p.run("label", "run", p.put("t.csv", "id,act\na,1\nb,2\n"), "-p", "act")
        for b, said in (("2", ""), ("2.5", "labels: 1 that were added (`molsieve label`, or a campaign) replace another value of the library's "
                                           "files; the first: act, 2.5 in the files and 2.0 in " + p.path("t.csv:3"))):
            p.put("a.csv", "smiles,id,act\nCCO,a,\nCCN,b,%s\nCCC,c,3\n" % b)
            err = " ".join(p.run("run", "w.yaml")[2].split())
            assert said in err if said else "replace another value" not in err, err
            assert [v for v, in p.rows("SELECT value FROM label ORDER BY mol_id")] == [1, 2, 3]


def equal_values_of_a_library_may_get_others():
    """With limits beside them there is nothing to learn either: a scale is that of values."""
    with Project() as p:
        rows = [("M%d" % i, "C" * (i + 1) + "O") for i in range(36)]
        p.put("lib.csv", "id,smiles,y,k,one\n" + "".join("%s,%s,%s\n" % (*r, ",," if i >= 12 else "7,1,>5" if i > 0 else "7,1,4") for i, r in enumerate(rows)))
        begin = "  read: {censored: %s}\n  prepare: {conformers: {source: none}, labels: [y, k, one], properties: {k: {task: classification}}}\n"
        p.workflow([p.path("lib.csv")], begin % "leave_out", name="lib.yaml")
        p.run("run", "lib.yaml", "-q")
        says = {"y": "all 12 values of y are 7: there is nothing to learn", "k": "k is a class, but all its 12 values are 1: there is nothing to learn",
                "one": "one has one number in 36 records: there is nothing to learn"}
        for name, value in (("y", "%d"), ("k", "0%.0s"), ("one", "%d")):
            p.workflow([p.path("lib.csv")], begin % ("leave_out" if name == "k" else "bound") + "  graph: {edges: topology}\n  split: {method: random}\n  train: {family: [trees], targets: [{name: %s}]}\n" % name)
            said = " ".join(p.run("check", "w.yaml", expect=2)[2].split())
            assert said.count("nothing to learn") == 1 and "labels: " + says[name] in said, said
            p.run("label", "run", p.put("t.csv", "id,%s\n" % name + "".join("%s,%s\n" % (r[0], value % i) for i, r in enumerate(rows) if i >= 12)))
            p.run("check", "w.yaml")
            p.run("run", "w.yaml", "-q")


def counts_are_said_of_one_and_of_several():
    with Project() as p:
        p.put("lib.csv", "id,smiles,y\n" + "".join("M%d,%s,%s\n" % (i, "C" * (i + 1) + "O", i if i < 3 else "") for i in range(12)))
        p.workflow(["{path: lib.csv, format: csv, columns: {smiles: smiles, title: id}}"], "  read: {}\n  prepare: {conformers: {source: none}, labels: [y]}\n")
        p.run("run", "w.yaml", "-q")
        head, learns = "y: %%s of %s%%s from %%s of t.csv" % p.path("run/results.db"), "round %d; `molsieve run` trains on them, `molsieve next` leaves these molecules out"
        for rows, replace, stored, n, told in (
                ("M9,", False, "0 labels", "1 row", ["1 row without a value"]),
                ("M3,1 M3,1 M4,>5 M5, M0,0", False, "1 label", "5 rows",
                 ["1 known already", "1 row repeats the value of an earlier row", "1 limit such as >10 gives no label (read: {censored: bound} learns from it)",
                  "1 row without a value", 0]),
                ("M3,1 M6,7 M6,7 M6,7 M7,8 M8,>5 M9,<5 M10, M11, M1,1", False, "2 labels", "10 rows",
                 ["2 known already", "2 rows repeat the value of an earlier row", "2 limits such as >10 give no label (read: {censored: bound} learns from them)",
                  "2 rows without a value", 1]),
                ("M3,2", True, "1 label", "1 row", ["1 of them replaces another value", 2]),
                ("M3,3 M6,9", True, "2 labels", "2 rows", ["2 of them replace another value", 3])):
            p.put("t.csv", "id,y\n" + rows.replace(" ", "\n") + "\n")
            said = [head % (stored, "," if stored[0] != "0" else "", n)] + ["  " + one if isinstance(one, str) else learns % one for one in told]
            assert p.run("label", "run", "t.csv", *["--replace"] * replace)[1].splitlines() == said, rows
        # A data field is found among thousands of others, which have nothing to say.
        mol = "M4\n\n\n  6  5  0  0  0  0  0  0  0  0999 V2000\n" + "".join("%10.4f    0.0000    0.0000 %s   0  0\n" % (1.5 * k, a) for k, a in enumerate("CCCCCO"))
        mol += "".join("%3d%3d  1  0\n" % (k, k + 1) for k in range(1, 6)) + "M  END\n"
        p.put("t.sdf", mol + "".join(">  <%s>\n5\n\n" % name for name in ["y"] + ["other%d" % k for k in range(2000)]) + "$$$$\n")
        assert p.run("label", "run", "t.sdf", "-p", "y")[1].splitlines()[0] == head.replace("csv", "sdf") % ("1 label", ",", "1 row")


def limits_are_read_as_the_library_reads_them():
    with Project() as p:
        late = library(p)
        text = "id,logS\n%s,>2\n%s,<= -3\n%s,0.5\n" % tuple(x[0] for x in late[:3])
        p.put("t.csv", text)
        out = p.run("label", "run", "t.csv")[1]
        assert "logS: 1 label " in out and "2 limits such as >10 give no label" in out, out
        text = "id,logS,logS relation\n%s,2,>\n%s,-3,'<='\n%s,0.5,=\n" % tuple(x[0] for x in late[:3])
        p.put("t.csv", text)  # the same
        out = p.run("label", "run", "t.csv")[1]
        assert "logS: 0 labels " in out and "2 limits such as >10 give no label" in out, out
        p.put("t.csv", text.replace(",logS relation", ",relation"))
        said = p.run("label", "run", "t.csv", expect=2)[2]
        assert said.count("a limit is no measured value") == 2 and "t.csv:2: relation is '>' beside a number in logS: " in said, said
        # Units, as ChEMBL writes them: the database says one, or the rows have to agree.
        late = late[3:]
        p.put("t.csv", "id,Standard Value,Standard Units\n%s,2,log10(mol/L)\n%s,-3,nM\n%s,0.5,\n" % tuple(x[0] for x in late[:3]))
        said = p.run("label", "run", "t.csv", "--column", "Standard Value", "--property", "logS", expect=2)[2]
        assert "t.csv: 1 problem" in said and "t.csv:3: the unit is 'nM', and logS is in log10(mol/L)" in said, said
        p.put("t.csv", "id,IC50,Units\n%s,2,nM\n%s,3,uM\n%s,5,nM\n" % tuple(x[0] for x in late[:3]))
        said = p.run("label", "run", "t.csv", "--property", "IC50", "--new", expect=2)[2]
        assert "t.csv: 1 problem" in said and "t.csv:3: Units is 'uM', and 'nM' in line 2: numbers of two units are not one" in said, said
        p.put("t.csv", "id,IC50\n%s,2\n%s,-99\n%s,5\n%s,-99\n" % tuple(x[0] for x in late[:4]))
        said = p.run("label", "run", "t.csv", "--property", "IC50", "--new", "--unit", "nM", expect=2)[2]
        assert "t.csv: 1 problem" in said and "t.csv:3: IC50 is -99 in 2 rows, and between 2 and 5 in others: if that means" in said, said
        p.put("t.csv", "id,IC50,IC50 type\n%s,2,a\n%s,3,b\n%s,5,a\n" % tuple(x[0] for x in late[:3]))
        said = p.run("label", "run", "t.csv", "--property", "IC50", "--new", "--unit", "nM", expect=2)[2]
        assert "t.csv: 1 problem" in said and "t.csv:3: IC50 type is 'b', and 'a' in line 2: two kinds of measurement are not one" in said, said
        shutil.rmtree(p.path("run"))
        shutil.rmtree(p.path("fresh"))
        library(p, ", censored: bound", "trees")
        p.put("t.csv", text)
        assert "3 labels" in p.run("label", "run", "t.csv")[1]
        assert sorted(p.rows("SELECT name, value FROM label JOIN property USING(property_id) WHERE name LIKE '% at %'")) == \
            [("logS at least", 2.0), ("logS at most", -3.0)]


def tables_of_two_units_or_kinds_are_no_one_column():
    with Project() as p:
        mols = ("CO", "CCO", "CCCO", "CCCCO", "CCCCCO")

        def screen(head, cells, workdir, column="IC50", last=""):
            p.put("lib.csv", "smiles,id,%s\n" % head + "".join("%s,m%d,%s\n" % (s, k, cells if k < 2 else last) for k, s in enumerate(mols)))
            p.workflow([p.path("lib.csv")], "  read: {}\n  prepare: {conformers: {source: none}, labels: ['%s']}\n" % column, name=workdir + ".yaml", workdir=workdir)
            p.run("run", workdir + ".yaml", "-q")

        def label(workdir, head, cells, *words, status=0, said=()):
            before = digest(p, workdir)
            p.put("new.csv", "id,%s\nm2,%s\n" % (head, cells))
            done = p.run("label", workdir, "new.csv", *words, expect=status)
            for word in [said] if isinstance(said, str) else said:
                assert word in done[1] + done[2], (word, done)
            assert status == 0 or digest(p, workdir) == before

        unit = "new.csv:2: the unit is '%s', and IC50 is in nM by " + p.path("lib.csv:2") + "; convert it, or give --unit and --factor for a file of one unit"
        kind = "new.csv:2: IC50 type is 'IC50', and 'Ki' in " + p.path("lib.csv:2") + ": two kinds of measurement are not one column of IC50; keep the rows of one"
        screen("IC50,IC50 unit,IC50 type", "10,nM,Ki", "run", last=",,")
        label("run", "IC50,IC50 unit,IC50 type", "1,uM,IC50", "-p", "IC50", status=2, said=(unit % "uM", kind))
        label("run", "IC50,IC50 unit", "1,uM", "-p", "IC50", status=2, said=unit % "uM")
        label("run", "IC50 (mM)", "1", "-p", "IC50", "-c", "IC50 (mM)", status=2, said=unit % "mM")
        label("run", "IC50 (mM)", "1", "-p", "IC50", "-c", "IC50 (mM)", "--factor", "1000000", status=2,
              said="new.csv:2: the unit is 'mM', and IC50 is in nM by %s; if --factor converts it, say so with --unit mM" % p.path("lib.csv:2"))
        label("run", "IC50,IC50 type", "1,IC 50", "-p", "IC50", status=2, said=kind.replace("'IC50'", "'IC 50'"))
        label("run", "IC50", "1", "-p", "IC50", "--unit", "uM", status=2, said="--unit uM: IC50 is in nM by %s; give --factor X" % p.path("lib.csv:2"))
        label("run", "IC50 (mM),IC50 type", "1,ki", "-p", "IC50", "-c", "IC50 (mM)", "--unit", "mM", "--factor", "1000000", "-n", said="1 label ")
        label("run", "IC50", "1", "-p", "IC50", "--unit", "nM", "-n", said="in nM")
        label("run", "IC50", "1", "-p", "IC50", "-n", said="1 label ")  # that says none
        label("run", "IC50,IC50 unit,IC50 type", "1,nM,KI", "-p", "IC50", said="in nM")
        assert p.one("SELECT value FROM label JOIN record USING(mol_id) WHERE title='m2'") == 1
        label("run", "IC50,IC50 unit", "1,uM", "-p", "IC50", status=2, said=unit % "uM")
        # A library that moved away cannot say it, which is told.
        screen("IC50,IC50 unit", "10,nM", "gone", last=",")
        os.rename(p.path("lib.csv"), p.path("moved.csv"))
        gone = "  %s was moved or changed since it was read: the unit and the kind of its IC50 were not compared\n" % p.path("lib.csv")
        assert gone not in p.run("label", "gone", p.put("new.csv", "id,IC50\nm2,1\n"), "-p", "IC50", "-n")[1]
        label("gone", "IC50,IC50 unit", "1,nM", "-p", "IC50", said=gone)
        label("gone", "IC50,IC50 unit", "1,uM", "-p", "IC50", status=2, said="the unit is 'uM', and IC50 is in nM by new.csv:2")
        # The name of the column; a logarithm is in no unit of a column beside it.
        screen("IC50 (nM)", "10", "named", column="IC50 (nM)")
        label("named", "IC50 (uM)", "1", "-p", "IC50 (nM)", "-c", "IC50 (uM)", status=2, said="the unit is 'uM', and IC50 (nM) is in nM by " + p.path("lib.csv:2"))
        screen("pIC50,Units", "8,nM", "logs", column="pIC50", last=",")
        label("logs", "pIC50,Units", "8,nM", "-p", "pIC50", said="1 label ")
        assert p.one("SELECT unit FROM measured", workdir="logs") == ""
        # A property that is new is in the unit of its first table.
        for n, (head, cells, column, word) in enumerate((("act,act unit", "1,nM", "act", "in nM"), ("act (nM)", "1", "act (nM)", "in nM"), ("act", "1", "act", "1 label "))):
            screen("x", "1", "new%d" % n, column="x")
            label("new%d" % n, head, cells, "-p", "act", "-c", column, "--new", said=word)
            shutil.move(p.path("new.csv"), p.path("first.csv"))
            p.put("second.csv", "id,act,act unit\nm3,2,uM\n")
            done = p.run("label", "new%d" % n, "second.csv", "-p", "act", expect=2 if n < 2 else 0)
            assert n == 2 or "second.csv:2: the unit is 'uM', and act is in nM by new.csv:2" in done[2], done
            p.put("third.csv", "id,act,act unit\nm4,2,nM\n")
            done = p.run("label", "new%d" % n, "third.csv", "-p", "act", expect=0 if n < 2 else 2)
            assert n < 2 or "third.csv:2: the unit is 'nM', and act is in uM by second.csv:2" in done[2], done
        label("new0", "IC50,IC50 type", "1,Ki", "-p", "IC50", "--new")
        p.put("kind.csv", "id,IC50,IC50 type\nm3,2,IC50\n")
        assert "kind.csv:2: IC50 type is 'IC50', and 'Ki' in new.csv:2: two kinds" in p.run("label", "new0", "kind.csv", "-p", "IC50", expect=2)[2]
        # The library may be the second.
        p.put("more.csv", "smiles,id,act,act unit\nCCCCCCO,m6,3,uM\n")
        said = p.run("check", "new0.yaml", "inputs=[{path: lib.csv}, {path: more.csv}]", "stages.prepare.labels=[x, act]", expect=None)
        assert said[0] == 2 and "more.csv:2: act unit is 'uM', and act is said to be in nM" in said[2], said
        # A column that the library has, but that is no label of it, says nothing.
        screen("x,act,act unit", "1,5,uM", "beside", column="x", last=",,")
        label("beside", "act,act unit", "1,nM", "-p", "act", "--new", said="in nM")
        label("beside", "act,act unit", "1,nM", "-p", "act", said="in nM")


def added_values_are_not_compared_with_a_model_of_another_unit():
    with Project() as p:
        value = {k: (k - 12) ** 2 for k in range(1, 26)}
        p.put("ans.csv", "smiles,id,act\n" + "".join("%sO,a%d,%d\n" % ("C" * k, k, v) for k, v in value.items()))
        p.run("fit", "ans.csv", "--target", "act", "--unit", "uM", "--family", "gp", "-o", "m", "-q")
        p.put("lib.smi", "".join("%sO a%d\n" % ("C" * k, k) for k in value))
        p.workflow([p.path("lib.smi")], "  read: {}\n  prepare: {conformers: {source: none}}\n", name="p.yaml")
        p.run("run", "p.yaml", "-q")
        p.put("new.csv", "id,act,act unit\n" + "".join("a%d,%d,nM\n" % (k, 1000 * v) for k, v in value.items()))
        p.run("label", "run", "new.csv", "-p", "act", "--new")
        p.workflow([p.path("lib.smi")], "  read: {}\n  prepare: {conformers: {source: none}}\n  graph: {edges: topology}\n  evaluate: {}\n", name="e.yaml")
        text = open(p.path("e.yaml")).read()
        p.put("e.yaml", text.replace("stages:", "models: {m: {path: m.safetensors}}\nstages:"))
        said = p.run("run", "e.yaml", "-q", expect=2)[2]
        assert "evaluate: the label act is in nM (`molsieve label`), and the model predicts it in uM: say how to convert, targets: [{name: act, factor: ..}]" in said, said
        p.run("run", "e.yaml", "-q", "stages.evaluate.targets=[{name: act, factor: 0.001}]")
        # A training knows the unit, too, under any of its names, and a target of no unit keeps its own name.
        train = "+stages.train={family: [gp], targets: [{name: act%s}]}"
        for unit, status in ((", unit: uM", 2), (", unit: nmol/L", 0), ("", 0)):
            said = p.run("check", "p.yaml", "+stages.graph.edges=topology", "+stages.split.method=random", train % unit, expect=status)[2]
            assert status == 0 or "the label act is in nM (`molsieve label`), and the target act in uM: say how to convert" in said, said
        assert p.rows("SELECT name, unit FROM property WHERE name='act'") == [("act", "")]


def a_second_merge_keeps_what_was_added():
    with Project() as p:
        late = library(p)
        p.run("label", "run", p.put("t.csv", table([(i, v) for i, _, v in late], "id,logS,logS type", "%s,%.17g,shaken")))
        stated = "SELECT json_extract(value,'$.text') FROM meta WHERE key='stated type logS'"
        want = p.rows("SELECT inchikey, value FROM label JOIN molecule USING(mol_id) ORDER BY 1")
        shutil.rmtree(p.path("run"))
        for more in ([], ["stages.prepare.max_heavy_atoms=90"]):
            for k in ("0/2", "1/2"):
                p.run("run", "w.yaml", "--shard", k, "-q", *more)
            p.run("merge", "w.yaml", *more)
            if not more:
                p.run("label", "run", "t.csv")
            assert p.rows("SELECT inchikey, value FROM label JOIN molecule USING(mol_id) ORDER BY 1") == want and p.one(stated) == "shaken"


def a_run_in_progress_is_not_disturbed():
    with Project() as p:
        late = library(p)
        p.put("t.csv", table([(i, v) for i, _, v in late]))
        with open(p.path("run/.lock")) as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            assert "in use" in p.run("label", "run", "t.csv", expect=4)[2]


sieve.main([labels_by_any_name_of_a_molecule_are_learned, every_problem_is_told_and_nothing_is_stored, names_of_two_stereoisomers_are_a_contradiction, labels_of_molecules_that_are_gone_are_told,
            a_value_that_the_library_got_later_is_told, equal_values_of_a_library_may_get_others, counts_are_said_of_one_and_of_several, limits_are_read_as_the_library_reads_them, tables_of_two_units_or_kinds_are_no_one_column, added_values_are_not_compared_with_a_model_of_another_unit,
            a_second_merge_keeps_what_was_added, a_run_in_progress_is_not_disturbed])
