#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tables of which a column, a delimiter or a quote is not clear are refused, or told with their line, by every command that reads tables."""
import os

import sieve
from sieve import Project

FLAT = "  read: {unit: 50}\n  prepare: {conformers: {source: none}, labels: [logS]}\n"
TRAIN = FLAT + """  graph: {edges: topology}
  split: {method: random, fractions: {train: 0.8, valid: 0.1, test: 0.1}}
  train: {name: m, family: [gp], targets: [{name: logS, unit: u}]}
"""


def chains(n, row="M%d,%s,%d.5"):
    return "".join(row % (i, "C" * (i + 1), i) + "\n" for i in range(n))


def library(p):
    """40 alkanes, M0 to M39, and a model of them."""
    p.put("lib.csv", "id,smiles,logS\n" + chains(40))
    p.run("run", p.workflow([p.path("lib.csv")], TRAIN), "-q")
    return "run/models/m.safetensors"


def two_columns_with_molecules_are_refused():
    with Project() as p:
        model = library(p)
        both = 'twice.csv:1: columns 2 ("SMILES") and 4 ("smiles") may both be the SMILES; rename one of them'
        p.put("twice.csv", "id,SMILES,logS,smiles\n" + chains(40, "M%d,%s,%d.5,CCC"))
        p.workflow([p.path("twice.csv")], TRAIN, name="two.yaml", workdir="two")
        for words in (["predict", model, "twice.csv"], ["fit", "twice.csv", "--target", "logS"], ["label", "run", "twice.csv"],
                      ["conformers", "twice.csv", "-o", "x.sdf"], ["run", "two.yaml"], ["check", "two.yaml"]):
            status, out, err = p.run(*words, expect=None)
            assert status == 2 and both in err, (words, status, out, err)
        # one is named: as it is written, or by its number
        for column, want in (("smiles", "CCC"), ("2", "C")):
            out = p.run("predict", model, "twice.csv", "--smiles-column", column)[1].splitlines()
            assert out[1].split(",")[1] == want, out
        p.put("case.csv", "smiles,pIC50,PIC50\n" + "".join("%s,%d.5,7\n" % ("C" * (i + 1), i) for i in range(30)))
        err = p.run("fit", "case.csv", "--target", "pic50", expect=2)[2]
        assert "case.csv has pIC50 and PIC50: which one? write it as the table does" in err, err


def two_inchikeys_of_a_row_are_told():
    with Project() as p:
        library(p)
        key = p.one("SELECT inchikey FROM molecule LIMIT 1")
        p.put("k.csv", "InChIKey,inchikey,logS\n%s,UHOVQNZJYSORNB-UHFFFAOYSA-N,1\n" % key)
        err = p.run("label", "run", "k.csv", expect=2)[2]
        assert "k.csv:2: it has two InChIKeys, '%s' and 'UHOVQNZJYSORNB-UHFFFAOYSA-N'" % key in err, err
        p.put("k.csv", "InChIKey,inchikey,logS\n,%s,-1\n" % key)
        p.run("label", "run", "k.csv", "--replace")


def a_column_that_a_model_reads_is_there_once():
    with Project() as p:
        p.put("t.csv", "smiles,y,T\n" + "".join("%s,%d.5,%d\n" % ("C" * (i + 1), i, 300 + i) for i in range(40)))
        p.run("fit", "t.csv", "--target", "y", "--inputs", "T", "-q")
        p.put("two.csv", "smiles,y,T,T\nCC,1,,310\nCCO,2,300,310\n")
        said = "two.csv has several columns called T, which %s reads: which one? rename the others"
        err = p.run("predict", "y.safetensors", "two.csv", expect=2)[2]
        assert said % "the model" in err, err
        assert len(p.run("predict", "y.safetensors", "two.csv", "--set", "T=310")[1].splitlines()) == 3
        with open(p.path("y.fit/train.yaml")) as f:
            text = f.read()
        assert "t.csv" in text
        p.put("y.fit/two.yaml", text.replace("t.csv", "two.csv"))
        for command in ("check", "run"):
            err = p.run(command, "y.fit/two.yaml", expect=2)[2]
            assert said % "a model" in err, err
        mol = "ethane\n\n\n  2  1  0  0  0  0  0  0  0  0999 V2000\n" + "    0.0000    0.0000    0.0000 C   0  0\n    1.5000    0.0000    0.0000 C   0  0\n" \
              "  1  2  1  0\nM  END\n>  <T>\n300\n\n>  <T>\n%s\n\n$$$$\n"
        p.put("two.sdf", mol % "310" + mol % "300")
        rows = p.run("predict", "y.safetensors", "two.sdf", "-c", "y,problem", expect=3)[1].splitlines()
        assert rows[1] == ",T is there twice: '300' and '310'" and rows[2].endswith(",") and len(rows[2]) > 2, rows
        p.workflow([p.path("two.sdf")], "  read: {}\n  prepare: {conformers: {source: none}}\n  graph: {edges: topology}\n  score: {}\n", workdir="sdf",
                   extra="models: {y: {path: y.safetensors}}\nlimits: {failures: {max_fraction: 1}}\n")
        err = p.run("run", "w.yaml")[2]
        assert "two.sdf:1: T is 300 and 310: a field with two values gives none, here and in later records; keep one" in err, err
        assert p.rows("SELECT record_id, message FROM failure", workdir="sdf") == [(1, "column T: no number in this record")]
        assert p.rows("SELECT value FROM label", workdir="sdf") == [(300,)] and p.one("SELECT count(*) FROM score", workdir="sdf") == 1


def two_values_that_are_no_classes_are_told():
    with Project() as p:
        for values, check, fit in (
                ((1, 2), "y: 40 numbers in 40 records; all are 1 or 2, and learned as numbers: for two classes write 0 and 1, and set "
                         "prepare: {properties: {y: {task: classification}}}", "task: numbers from 1 to 2, and no other; for two classes write 0 and 1"),
                ((1, -1), "all are -1 or 1, and learned as numbers", "task: numbers from -1 to 1, and no other"),
                ((0, 1), "all are 0 or 1, and learned as numbers: for two classes set prepare:", "task: two classes"),
                ((1, 2, 3), "y: 40 numbers in 40 records\n", "task: numbers from 1 to 3\n")):
            p.put("t.csv", "smiles,y\n" + "".join("%s,%g\n" % ("C" * (i + 1), values[i % len(values)]) for i in range(40)))
            p.workflow([p.path("t.csv")], TRAIN.replace("logS", "y"))
            assert check in p.run("check", "w.yaml")[1]
            assert fit in "".join(p.run("fit", "t.csv", "--target", "y", "-o", "m%d.safetensors" % len(fit), "--family", "gp")[1:])


def titles_of_copies_name_their_molecule():
    """As the tables of a run write them: those of all its records, with a semicolon between."""
    with Project() as p:
        p.put("lib.csv", "id,smiles,logS\n" + chains(40) + "A,OCC,\nB,CCO,\nC,CCCO,\nB,CCCO,\nA; B,NCC,\n")
        p.run("run", p.workflow([p.path("lib.csv")], TRAIN), "-q")
        p.put("t.csv", "title,logS\nC; B,3.25\n")
        out = p.run("label", "run", "t.csv")[1]
        assert "logS: 1 label" in out, out
        assert p.rows("SELECT smiles FROM label JOIN molecule USING(mol_id) WHERE value=3.25") == [("CCCO",)]
        p.put("t.csv", "title,logS\nA; B,3.25\n")
        assert "several molecules have the title 'A; B'" in p.run("label", "run", "t.csv", expect=2)[2]
        # the answers of a campaign: B is of two molecules, "C; B" of one
        p.put("two.csv", "id,smiles\n" + chains(40, "M%d,%s%.0s") + chains(40, "N%d,%s%.0s") + "C,CCN\nB,CCN\nB,CCO\n")
        p.put("t.csv", "id,logS\n" + "".join("M%d; N%d,%d.5\n" % (i, i, i) for i in range(40)) + "C; B,3\nB,4\n")
        stages = TRAIN.replace("labels: [logS]", "labels: [none]").replace("train: 0.8, valid: 0.1, test: 0.1", "train: 1, valid: 0, test: 0")
        p.workflow([p.path("two.csv")], stages + "  score: {}\n  acquire: {strategy: greedy, goal: maximise, count: 42, answers: {table: t.csv}, campaign: {rounds: 1}}\n",
                   name="c.yaml", workdir="camp")
        p.run("campaign", "c.yaml", "-q", expect=None)
        got = dict(p.rows("SELECT titles, value FROM v_acquired", workdir="camp"))
        assert got.pop("B") is None and got.pop("C; B") == 3 and got == {"M%d; N%d" % (i, i): i + 0.5 for i in range(40)}, got


def options_that_change_nothing_are_told():
    with Project() as p:
        p.put("t.csv", "smiles,y\n" + "".join("%s,%d.5\n" % ("C" * (i + 1), i) for i in range(40)))
        p.run("fit", "t.csv", "--target", "y", "--family", "gp", "-q")
        for more, want in ((("--seed", "3"), "--seed changes nothing: the models have no network"), (("--engine", "cpu"), "--engine changes nothing: the models"),
                           (("--engine", "ref", "--seed", "1"), "--seed and --engine change nothing: the models have no network")):
            assert want in p.run("predict", "y.safetensors", "t.csv", *more)[2]
            assert "nothing" not in p.run("predict", "y.safetensors", "t.csv", "-q", *more)[2]
        assert "nothing" not in p.run("predict", "y.safetensors", "t.csv")[2]


def a_column_to_show_is_there_once():
    with Project() as p:
        p.put("dup.csv", "id,smiles,y,y,Z,z\nM1,CCO,1,2,3,4\n")
        for word, name in (("y", "y"), ("Y", "Y"), ("input_y", "y")):
            err = p.run("predict", "esol", "dup.csv", "-c", "title," + word, expect=2)[2]
            assert "--columns: dup.csv has 2 columns called %s: which one? give them different names" % name in err, err
        assert p.run("predict", "esol", "dup.csv", "-c", "title,Z,z")[1] == "title,Z,z\nM1,3,4\n"


sieve.main([a_column_to_show_is_there_once, options_that_change_nothing_are_told, titles_of_copies_name_their_molecule, two_values_that_are_no_classes_are_told, a_column_that_a_model_reads_is_there_once, two_columns_with_molecules_are_refused, two_inchikeys_of_a_row_are_told])
