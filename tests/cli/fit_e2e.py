#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`molsieve fit`: from a table to a model in one line; its workflow is kept; what cannot be learned is refused."""
import contextlib
import csv
import gzip
import io
import os
import random
import sqlite3

from sieve import Project, main

ESOL = os.path.join(os.environ["MOLSIEVE_SOURCE"], "workflows", "data", "esol.csv")


def esol(n):
    with open(ESOL) as f:
        rows = list(csv.DictReader(f))
    random.Random(3).shuffle(rows)
    return [(r["smiles"], float(r["logS"])) for r in rows[:n]]


def table(rows, head="key,drawn,logS", sep=","):
    return head + "\n" + "".join("m%d%s%s%s%s\n" % (k, sep, s, sep, y) for k, (s, y) in enumerate(rows))


def read(path):
    with open(path, "rb") as f:
        return f.read()


def a_table_becomes_a_model_with_its_errors():
    with Project() as p:
        p.put("in.csv.gz", gzip.compress(table(esol(240)).encode()))
        _, out, _ = p.run("fit", "in.csv.gz", "--target", "LOGs", "--unit", "log10(mol/L)")
        assert "240 of 240 records have a number in logS\nSMILES: column drawn, by what it holds\n" in out, out
        assert "none are built" in out and "errors on " in out and "MAE     RMSE       R2" in out
        for name in ("the model", "its trees", "its gp", "the mean", "nearest neighbours", "element counts"):
            assert "  %s " % name in out, (name, out)
        stored = dict(p.rows("SELECT metric, value FROM evaluation WHERE part='test'", workdir="logS.fit/run"))
        shown = {line[:30].strip(): line[30:].split()[0] for line in out.splitlines() if line.startswith("  ")}
        assert shown["the model"] == ("%#.3g" % stored["mae"]) and shown["nearest neighbours"] == "%#.3g" % stored["neighbours.mae"], shown
        assert read(p.path("logS.safetensors")) == read(p.path("logS.fit/run/models/logS.safetensors"))
        p.put("new.smi", "CCCCO a\nc1ccccc1Cl b\nCC(C)(C)C(=O)[O-].[Na+] c\n")
        _, got, _ = p.run("predict", "logS.safetensors", "new.smi", "-c", "title,smiles,logS,geometry,logS_unit,problem")
        rows = list(csv.DictReader(io.StringIO(got)))
        assert [r["geometry"] for r in rows] == ["none"] * 3 and rows[2]["smiles"] == "OC(=O)C(C)(C)C", rows
        assert all(r["logS"] and r["logS_unit"] == "log10(mol/L)" for r in rows)


def the_coverage_of_its_intervals_is_shown_inside_of_the_domain():
    with Project() as p:
        p.put("in.csv", table(esol(299)))  # 30 in valid, which make the interval, because test has 29
        p.run("fit", "in.csv", "--target", "logS", "--split", "random")
        held, n = p.rows("SELECT value, n FROM evaluation WHERE part='test' AND metric='coverage90'", workdir="logS.fit/run")[0]
        info = p.run("model", "info", "logS.safetensors")[1]
        assert "inside of the domain (%d molecules)" % n in info, (n, info)
        assert "\n      interval90   %-11s -\n" % ("%.4g %% held" % (100 * held)) in info, (held, info)


def its_workflow_is_kept_and_can_be_edited_and_run():
    with Project() as p:
        p.put("in.tsv", table(esol(80), "name\tSMILES (clean)\ty", "\t"))
        _, out, _ = p.run("fit", "in.tsv", "-t", "y", "-o", "sub/m", "--split", "random")
        assert "SMILES: column SMILES (clean)\n" in out, out
        _, out, _ = p.run("run", "sub/m.fit/train.yaml")
        assert "nothing ran" in out, out
        _, again, _ = p.run("fit", "in.tsv", "-t", "y", "-o", "sub/m.safetensors", "--split", "random")
        assert "errors on" in again and "train" not in again.split("errors on")[0], again
        text = open(p.path("sub/m.fit/train.yaml")).read()
        assert "random" in text and "[${" not in text
        p.put("sub/m.fit/train.yaml", text.replace("family: auto", "family: [gp]"))
        _, _, err = p.run("fit", "in.tsv", "-t", "y", "-o", "sub/m", expect=2)
        assert "sub/m.fit/train.yaml was edited" in err and "molsieve run sub/m.fit/train.yaml" in err, err
        p.run("run", "sub/m.fit/train.yaml", "-q")
        assert "gp" in p.run("model", "info", "sub/m.fit/run/models/m.safetensors")[1]
        p.put("other.safetensors", "mine")
        _, _, err = p.run("fit", "in.tsv", "-t", "y", "-o", "other", expect=2)
        assert "is there already" in err and read(p.path("other.safetensors")) == b"mine", err


def a_network_is_part_of_it_where_it_is_asked_for():
    with Project() as p:
        p.put("in.csv", table(esol(60), "id,smiles,y"))
        _, out, _ = p.run("fit", "in.csv", "-t", "y", "--family", "trees,se3", "--dry-run")
        assert "3D, which the network needs" in out
        assert "100 passes over the molecules" in out and "--family trees,gp takes seconds" in out and "molsieve plan y.fit/train.yaml\n" in out, out
        assert all(len(line) <= 80 for line in out.splitlines()), out
        assert "passes" not in p.run("fit", "in.csv", "-t", "y", "-o", "fast", "--family", "trees", "--dry-run")[1]
        text = open(p.path("y.fit/train.yaml")).read()
        assert "edges: bonds" in text and "epochs: 100" in text
        p.run("run", "y.fit/train.yaml", "-q", "stages.train.epochs=1", "stages.train.model.layers=1", "stages.train.model.channels=8")
        got = p.run("predict", "y.fit/run/models/y.safetensors", "in.csv", "-c", "title,y,geometry")[1]
        assert {r["geometry"] for r in csv.DictReader(io.StringIO(got))} == {"mmff94"}


def classes_are_recognised_and_said():
    with Project() as p:
        rows = [(s, int(y > -2.5)) for s, y in esol(160)]
        p.put("in.csv", table(rows, "id,smiles,soluble"))
        _, out, _ = p.run("fit", "in.csv", "-t", "soluble", "--better", "high")
        assert "two classes, %d of 1 and %d of 0" % (sum(y for _, y in rows), sum(1 - y for _, y in rows)) in out, out
        assert "ROC-AUC   PR-AUC    Brier" in out and "its forest" in out
        got = p.run("predict", "soluble.safetensors", "in.csv", "-c", "soluble")[1]
        assert all(0 <= float(line) <= 1 for line in got.splitlines()[1:])
        p.run("fit", "in.csv", "-t", "soluble", "--task", "regression", "-o", "n", "-n")
        assert "task: regression" in open(p.path("n.fit/train.yaml")).read()
        # Of a rare class the held-out molecules may have none.
        p.put("rare.csv", table([(s, int(k % 12 == 0)) for k, (s, _) in enumerate(esol(60))], "id,smiles,rare"))
        got = [p.run("fit", "rare.csv", "-t", "rare", "--split", "random", "--seed", str(k), "-o", "r%d" % k, expect=None) for k in range(10)]
        outs = [out for status, out, _ in got if status == 0]  # all of them may be held out
        for out in outs:
            one = "All of these molecules are of one class" in out
            head = next(line for line in out.splitlines() if line.startswith("errors on "))
            assert " 0 held-out" not in head and "(test)" in head and one != ("simple prediction" in out), out
        assert 0 < sum("All of these molecules are of one class" in out for out in outs) < len(outs), outs


def data_fields_of_sdf_are_learned():
    with Project() as p:
        p.put("in.smi", "".join("%s m%d\n" % (s, k) for k, (s, _) in enumerate(esol(60))))
        p.run("predict", "esol", "in.smi", "-o", "in.sdf.gz", expect=None)
        _, out, _ = p.run("fit", "in.sdf.gz", "-t", "logS", "--family", "gp")
        assert "SMILES" not in out and "its gp" not in out and "the model" in out, out
        assert "warning: logS has predictions, as the column logS_" in out, out


def a_stop_costs_nothing():
    with Project() as p:
        p.put("in.csv", table(esol(120)))
        p.run("fit", "in.csv", "-t", "logS", "-o", "whole", "-q", "-j", "1")
        for point in ("prepare.unit.after_commit:1", "train.model.before:1", "train.model.after:1"):
            p.run("fit", "in.csv", "-t", "logS", "-o", "cut/whole", "-q", "-j", "3", env=dict(os.environ, MOLSIEVE_FAULT=point),
                  expect=137)
            assert not os.path.exists(p.path("cut/whole.safetensors")), point
        p.run("fit", "in.csv", "-t", "logS", "-o", "cut/whole.safetensors", "-q")
        assert read(p.path("cut/whole.safetensors")) == read(p.path("whole.safetensors"))


def what_cannot_be_learned_is_refused_before_any_work():
    good = esol(30)
    with Project() as p:
        p.put("good.csv", table(good, "id,smiles,pIC50"))
        p.put("text.csv", table([(s, "active") for s, _ in good], "id,smiles,pIC50"))
        p.put("comma.csv", table([(s, '"5,%d"' % k) for k, (s, _) in enumerate(good)], "id,smiles,pIC50"))
        for name, text in (("commas", '"5,1"'), ("limits", ">10")):  # half of the texts
            p.put(name + ".csv", table([(s, text if k % 2 else "active") for k, (s, _) in enumerate(good)], "id,smiles,pIC50"))
        p.put("limit.csv", table([(s, ">10") for s, _ in good], "id,smiles,pIC50"))
        p.put("beside.csv", table([("%s,%s" % (s, "=>"[k % 5 == 4]), y) for k, (s, y) in enumerate(good)], "id,smiles,relation,pIC50"))
        p.put("units.csv", table([("%s,%s" % (s, "nM" if k else "uM"), y) for k, (s, y) in enumerate(good)], "id,smiles,Standard Units,Standard Value"))
        p.put("kinds.csv", table([("%s,%s" % (s, "IC50" if k else "Ki"), y) for k, (s, y) in enumerate(good)], "id,smiles,Standard Type,Standard Value"))
        p.put("headless.csv", "CCO,1\nCCC,2\n")
        p.put("operator.csv", table([("%s,%s" % (s, "=>"[k % 5 == 4]), y) for k, (s, y) in enumerate(good)], "id,smiles,Operator,pIC50"))
        p.put("uom.csv", table([("%s,%s" % (s, "uM" if k % 2 else "nM"), y) for k, (s, y) in enumerate(good)], "id,smiles,UoM,IC50"))
        p.put("named.csv", table(good, "id,smiles,IC50 (nM)"))
        p.put("same.csv", table([(s, 1) for s, _ in good], "id,smiles,pIC50"))
        p.put("few.csv", table(good[:19], "id,smiles,pIC50"))
        p.put("enough.csv", table([(s, 1) for s, _ in good[:20]], "id,smiles,pIC50"))
        p.put("no.csv", "id,what,pIC50\n" + "".join("%d,not a molecule,%d\n" % (k, k) for k in range(30)))
        p.put("empty.csv", "")
        p.put("head.csv", "id,smiles,pIC50\n")
        p.put("list.smi", "CCO a\nCCC b\n")
        cases = ((2, ("good.csv",), "good.csv has: id, smiles, pIC50"), (2, ("good.csv", "-t", "pic5"), "did you mean pIC50"),
                 (2, ("good.csv", "-t", "50"), "did you mean pIC50"), (2, ("good.csv", "-t", "nothing"), "there are: id, smiles, pIC50"), (6, ("none.csv", "-t", "x"), "none.csv"),
                 (2, ("text.csv", "-t", "pIC50"), "text.csv:2: pIC50 is 'active'"), (2, ("comma.csv", "-t", "pIC50"), "decimal points"),
                 (2, ("limit.csv", "-t", "pIC50"), "limits such as >10"),
                 (2, ("beside.csv", "-t", "pIC50"), "beside.csv:6: relation is '>' beside a number in pIC50: a limit is no"),
                 (2, ("units.csv", "-t", "Standard Value"), "units.csv:3: Standard Units is 'nM', and 'uM' in line 2: numbers of two units"),
                 (2, ("units.csv", "-t", "Standard Value", "--unit", "nM"), "numbers of two units"),
                 (2, ("kinds.csv", "-t", "Standard Value"), "kinds.csv:3: Standard Type is 'IC50', and 'Ki' in line 2: two kinds of measurement"),
                 (2, ("commas.csv", "-t", "pIC50"), "write numbers, or 0 and 1"), (2, ("limits.csv", "-t", "pIC50"), "write numbers, or 0 and 1"),
                 (2, ("operator.csv", "-t", "pIC50"), "operator.csv:6: Operator is '>' beside a number in pIC50: a limit is no"),
                 (2, ("uom.csv", "-t", "IC50"), "uom.csv:3: UoM is 'uM', and 'nM' in line 2: numbers of two units"),
                 (2, ("named.csv", "-t", "IC50 (nM)", "--unit", "uM"), "IC50 (nM) has by its name the unit 'nM', and IC50 (nM) is said to be in uM"),
                 (2, ("headless.csv", "-t", "1"), "headless.csv: the first row has to name the columns, but it has a molecule"),
                 (2, ("same.csv", "-t", "pIC50"), "nothing to learn"),
                 (2, ("few.csv", "-t", "pIC50"), "only 19 of 19 records"), (2, ("enough.csv", "-t", "pIC50"), "nothing to learn"), (2, ("no.csv", "-t", "pIC50"), "no column has SMILES"),
                 (2, ("empty.csv", "-t", "pIC50"), "no records"), (2, ("head.csv", "-t", "pIC50"), "no records"),
                 (2, ("list.smi", "-t", "pIC50"), "fit needs a table"), (2, ("good.csv", "-t", "pIC50", "--split", "leave"), "allowed are scaffold"),
                 (2, ("good.csv", "-t", "pIC50", "--task", "classification"), "values other than 0 and 1"),
                 (2, ("good.csv", "-t", "pIC50", "--family", "{x: y}"), "trees,gp,forest,se3"),
                 (2, ("good.csv", "-t", "pIC50", "--smiles-column", "mol"), 'no column "mol"'),
                 (2, ("good.csv", "good.csv", "-t", "pIC50"), "second one"))
        for status, args, words in cases:
            _, out, err = p.run("fit", *args, expect=status)
            assert words in err, (args, out, err)
        assert not [name for name in os.listdir(p.dir) if "fit" in name or "safetensors" in name]
        p.put("some.csv", table([(s, "n.d." if k == 4 else y) for k, (s, y) in enumerate(esol(40))], "id,smiles,a ${x} b"))
        _, out, _ = p.run("fit", "some.csv", "-t", "a ${x} b", "--family", "gp")
        assert "39 of 40 records" in out and "left out: 1 not a number, the first in line 6: n.d." in out, out
        assert os.path.exists(p.path("a_x_b.safetensors"))
        # Another target whose file would have the same name.
        kept = read(p.path("a_x_b.safetensors")), read(p.path("a_x_b.fit/train.yaml"))
        p.put("other.csv", table(esol(40), "id,smiles,a_x b"))
        for more in ((), ("--dry-run",)):
            err = p.run("fit", "other.csv", "-t", "a_x b", "--family", "gp", *more, expect=2)[2]
            assert "a_x_b.fit/train.yaml is the workflow of another target than a_x b; choose another name with --output, or remove a_x_b.fit" in err, err
        p.put("later.csv", table(esol(50), "id,smiles,a ${x} b"))  # the same target, measured elsewhere
        err = p.run("fit", "later.csv", "-t", "a ${x} b", "--family", "gp", expect=2)[2]
        assert "a_x_b.fit/train.yaml is the workflow of another table than later.csv; choose another name with --output, or remove a_x_b.fit" in err, err
        assert kept == (read(p.path("a_x_b.safetensors")), read(p.path("a_x_b.fit/train.yaml")))
        p.run("fit", "./some.csv", "-t", "a ${x} b", "--family", "gp", "--seed", "2", "-q")
        p.run("fit", "other.csv", "-t", "a_x b", "--family", "gp", "-q", "-o", "second")


def the_unit_of_the_table_is_the_unit_of_the_model():
    """But of a logarithm it is that of what the logarithm was taken of."""
    with Project() as p:
        rows = [("%s,nM" % s, y) for s, y in esol(60)]
        for head, name, unit in (("id,smiles,Units,IC50", "IC50", "nM"), ("id,smiles,Units,pIC50", "pIC50", ""), ("id,smiles,x,Ki (uM)", "Ki (uM)", "uM")):
            p.put("t.csv", table(rows if unit != "uM" else [(r.replace("nM", "a"), y) for r, y in rows], head))
            out = p.run("fit", "t.csv", "-t", name, "-o", "m", "--split", "random")[1]
            assert ("unit: %s, by column" % unit in out) == bool(unit), out
            p.put("new.smi", "CCO e\n")
            columns = "title,%s,%s_unit" % (name, name) if unit else "title," + name
            got = list(csv.DictReader(io.StringIO(p.run("predict", "m.safetensors", "new.smi", "-c", columns)[1])))
            assert got[0].get("%s_unit" % name, "") == unit, got
            if not unit:
                p.run("predict", "m.safetensors", "new.smi", "-c", "title,%s_unit" % name, expect=2)


def what_is_beside_a_column_may_have_its_name_and_unit():
    """`IC50 (nM) unit` belongs to `IC50 (nM)` as `IC50 unit` does; so do relations and types, for `check`, too."""
    with Project() as p:
        rows = esol(30)
        for name, beside, first, odd, says in (("IC50 (nM)", "IC50 (nM) unit", "nM", "uM", "numbers of two units are not one column"),
                                               ("IC50 (nM)", "IC50 (nM) units", "nM", "uM", "numbers of two units are not one column"),
                                               ("IC50 (nM)", "IC50 (nM)_unit", "nM", "uM", "numbers of two units are not one column"),
                                               ("Ki [nM]", "Ki [nM] unit", "nM", "uM", "numbers of two units are not one column"),
                                               ("Solubility (mg/L)", "Solubility (mg/L) unit", "mg/L", "g/L", "numbers of two units are not one column"),
                                               ("IC50 (nM)", "IC50 (nM) type", "IC50", "Ki", "two kinds of measurement are not one column")):
            p.put("in.csv", table([("%s,%s" % (s, odd if k % 3 == 2 else first), y) for k, (s, y) in enumerate(rows)], "id,smiles,%s,%s" % (beside, name)))
            p.workflow(["in.csv"], "  read: {}\n  prepare: {conformers: {source: none}}\n  graph: {edges: topology}\n"
                       "  split: {method: random}\n  train: {targets: [{name: '%s'}], family: [gp]}\n" % name)
            for args in (("fit", "in.csv", "-t", name, "--split", "random", "--family", "gp"), ("check", "w.yaml")):
                said = p.run(*args, expect=2)[2]
                assert "in.csv:4: %s is '%s', and '%s' in line 2: %s of %s" % (beside, odd, first, says, name) in said, said
        p.put("in.csv", table([("%s,%s" % (s, "=>"[k % 3 == 2]), y) for k, (s, y) in enumerate(rows)], "id,smiles,IC50 (nM) relation,IC50 (nM)"))
        said = p.run("fit", "in.csv", "-t", "IC50 (nM)", "--split", "random", "--family", "gp")[1]
        assert "20 of 30 records have a number in IC50 (nM)" in said, said


def records_that_fail_are_counted():
    rows = esol(60)
    with Project() as p:
        p.put("in.csv", table([("aspirin" if k % 5 == 3 else s, y) for k, (s, y) in enumerate(rows)], "id,smiles,logS"))
        _, out, _ = p.run("fit", "in.csv", "-t", "logS", "--family", "gp", "--split", "random")
        assert "left out: 12 that failed, the first in line 5: 'a' at character 1 of a SMILES" in out, out
        assert "`molsieve failures logS.fit/run/results.db`" in out and "      12  prepare   parse" in p.run("failures", "logS.fit/run/results.db")[1], out
        assert "left out" not in p.run("fit", "in.csv", "-t", "logS", "-o", "m", "-q", "--family", "gp", "--split", "random")[1]
        p.put("in.csv", table([("aspirin" if k % 2 else s, y) for k, (s, y) in enumerate(rows)], "id,smiles,logS"))
        err = p.run("fit", "in.csv", "-t", "logS", "--family", "gp", "-o", "half", expect=3)[2]
        assert "`molsieve failures half.fit/run` counts them" in err and "`molsieve run half.fit/train.yaml --keep-going`" in err, err
        p.run("run", "half.fit/train.yaml", "--keep-going", "-q", expect=3)  # it tells that records failed
        assert os.path.exists(p.path("half.fit/run/models/half.safetensors"))
        p.put("in.csv", table([("" if k == 7 else s, y) for k, (s, y) in enumerate(rows)], "id,smiles,logS"))
        assert "table: 59 of 60 records have a number in logS\n" in p.run("fit", "in.csv", "-t", "logS", "--family", "gp", "-n", "-o", "gap")[1]


def a_column_of_texts_is_no_input():
    """All rows would fail."""
    with Project() as p:
        p.put("in.csv", table([("%s,%s" % (s, "AB"[k % 2]), y) for k, (s, y) in enumerate(esol(40))], "id,smiles,assay,logS"))
        err = p.run("fit", "in.csv", "-t", "logS", "--family", "gp", "--inputs", "assay", expect=2)[2]
        assert "assay, which the model reads, is no number in any of 40 records" in err, err


def large_numbers_stand_apart():
    """A value far off in the training makes an R2 of minus 100,000,000."""
    with Project() as p:
        p.put("in.csv", table([(s, 1e5 if k in (7, 8, 9) else y) for k, (s, y) in enumerate(esol(60))], "id,smiles,y"))
        out = p.run("fit", "in.csv", "-t", "y", "--family", "gp", "--split", "random")[1]
        shown = {line[:30].strip(): line[30:].split() for line in out.splitlines() if line.startswith("  ")}
        assert len(shown["the model"]) == 3 and float(shown["the model"][2]) < -1e7, out


def a_model_without_a_unit_is_not_averaged_with_one_that_has_one():
    """Whatever the order of the models: nothing says that its numbers are of that unit."""
    with Project() as p:
        p.put("in.csv", table(esol(40), "name,smiles,logS"))
        for name, more in (("bare", ()), ("mol", ("--unit", "mol"))):
            p.run("fit", "in.csv", "-t", "logS", "--family", "gp", "-q", "-o", name, *more)
        p.put("new.smi", "CCCCO a\nc1ccccc1Cl b\n")
        for models in ("bare, mol", "mol, bare"):
            p.workflow(["new.smi"], "  read: {}\n  prepare: {neutralise: true, conformers: {source: none}}\n  graph: {edges: topology}\n"
                       "  score: {models: [%s]}\n" % models, workdir=models[:3],
                       extra="models: {bare: {path: bare.safetensors}, mol: {path: mol.safetensors}}\n")
            p.run("run", "w.yaml", "-q")
            got = p.rows("SELECT DISTINCT p.name, unit, n_models, m.name FROM score JOIN property p USING(property_id) JOIN prediction USING(mol_id, property_id) "
                         "JOIN model m USING(model_id) ORDER BY 1", workdir=models[:3])
            assert [row[:3] for row in got] == [("logS", "mol", 1), ("logS (model)", "", 1)], (models, got)
            assert len({row[3] for row in got}) == 2, got
            p.workflow(["in.csv"], "  read: {}\n  prepare: {neutralise: true, conformers: {source: none}, labels: [logS]}\n  graph: {edges: topology}\n"
                       "  evaluate: {models: [%s]}\n" % models, name="judge.yaml", workdir="judge", extra="models: {bare: {path: bare.safetensors}, mol: {path: mol.safetensors}}\n")
            p.run("run", "judge.yaml", "-q", "--fresh")
            assert p.rows("SELECT DISTINCT m.name, p.name, p.unit FROM evaluation JOIN property p USING(property_id) JOIN model m USING(model_id) ORDER BY 1",
                          workdir="judge") == [("bare", "logS (model)", ""), ("mol", "logS", "mol")], models


def a_label_takes_its_name_from_a_models_property():
    """Of models in two units, and one of another property: the label has the bare name, the model in its unit shares it, the other tells its unit."""
    with Project() as p:
        p.put("in.csv", "name,smiles,logS,size\n" + "".join("%s,%d\n" % (row, len(row)) for row in table(esol(30), "name,smiles,logS").splitlines()[1:]))
        for name, label, unit in (("m", "logS", "mol"), ("n", "logS", "g"), ("k", "size", "u")):
            p.run("fit", "in.csv", "-t", label, "--family", "trees", "--unit", unit, "-q", "-o", name)
        p.workflow(["{path: in.csv}"], "  read: {}\n  prepare: {neutralise: true, conformers: {source: none}, labels: none}\n  graph: {edges: topology}\n  score: {}\n",
                   extra="models: {%s}\n" % ", ".join("%s: {path: %s.safetensors}" % (name, name) for name in "mnk"))
        free = [("logS", "mol", 0, 1), ("logS (g)", "g", 0, 1), ("size", "u", 0, 1)]
        in_g = [("logS", "g", 30, 1), ("logS (mol)", "mol", 0, 1), ("size", "u", 0, 1)]
        in_mol = [("logS", "mol", 30, 1), ("logS (g)", "g", 0, 1), ("size", "u", 0, 1)]
        for unit, want in ((None, free), ("g", in_g), ("mol", in_mol), ("g", in_g), (None, None)):
            p.run("run", "w.yaml", "-q", *([] if unit is None else ["stages.prepare.labels=[logS]", "stages.prepare.properties={logS: {unit: %s}}" % unit]))
            got = p.rows("SELECT p.name, p.unit, (SELECT count(*) FROM label l WHERE l.property_id=p.property_id), count(DISTINCT r.model_id) FROM property p "
                         "LEFT JOIN prediction r USING(property_id) GROUP BY p.property_id ORDER BY 1")
            models = p.rows("SELECT DISTINCT m.name, p.unit FROM prediction JOIN model m USING(model_id) JOIN property p USING(property_id) ORDER BY 1")
            assert want is None or got == want, (unit, got)
            assert sorted(unit for _, unit, *_ in got) == ["g", "mol", "u"] and models == [("k", "u"), ("m", "mol"), ("n", "g")], (got, models)


def models_that_contradict_each_other_are_not_averaged():
    """One says that low values of the property are better, another that high ones are."""
    with Project() as p:
        p.put("in.csv", table(esol(40), "name,smiles,logS"))
        for name, better in (("low", "low"), ("high", "high"), ("none", "none"), ("low2", "low")):
            p.run("fit", "in.csv", "-t", "logS", "--family", "gp", "-q", "-o", name, "--better", better)
        p.put("new.smi", "CCCCO a\nc1ccccc1Cl b\n")
        stages = ("  read: {}\n  prepare: {neutralise: true, conformers: {source: none}}\n  graph: {edges: topology}\n  score: {models: [%s]}\n"
                  "  rank: {objectives: [{property: logS, goal: maximise}]}\n")
        extra = "models: {%s}\n" % ", ".join("%s: {path: %s.safetensors}" % (m, m) for m in ("low", "high", "none", "low2"))
        for a, b in (("low", "high"), ("high", "low")):
            err = p.run("predict", "%s.safetensors,%s.safetensors" % (a, b), "new.smi", expect=2)[2]
            assert "models: by %s %s values of logS are better, by %s %s ones; train one of them again with the other `better`, or predict with one after the other\n" % (a, a, b, b) in err, err
            err = p.run("check", p.workflow(["new.smi"], stages % ("none, %s, %s" % (a, b)), extra=extra), expect=2)[2]
            assert "score: by one model low values of logS are better, by another high ones; train one of them again with the other `better`, or score with one of them\n" in err, err
        assert "logS_stdev" in p.run("predict", "low.safetensors,none.safetensors,low2.safetensors", "new.smi")[1]
        p.run("run", p.workflow(["new.smi"], stages % "low, low2", extra=extra), "-q")
        assert "low is better" in p.run("next", "run", "-n", "1")[2]
        with contextlib.closing(sqlite3.connect(p.path("run/results.db"))) as db:  # as an earlier version scored
            db.execute("UPDATE model SET metadata_json=replace(metadata_json, '\"better\":\"low\"', '\"better\":\"high\"') WHERE name='low2'")
            assert db.total_changes == 1 and db.execute("DELETE FROM row_sum")
            db.commit()
        err = p.run("next", "run", "-n", "1", expect=2)[2]
        assert "logS: by one of its models low values are better, by another high ones; give --goal maximize or minimize\n" in err, err
        assert "high is better" in p.run("next", "run", "-n", "1", "--goal", "maximize")[2]


main([a_table_becomes_a_model_with_its_errors, the_coverage_of_its_intervals_is_shown_inside_of_the_domain, its_workflow_is_kept_and_can_be_edited_and_run,
      a_network_is_part_of_it_where_it_is_asked_for, classes_are_recognised_and_said, data_fields_of_sdf_are_learned, a_stop_costs_nothing,
      what_cannot_be_learned_is_refused_before_any_work, the_unit_of_the_table_is_the_unit_of_the_model, what_is_beside_a_column_may_have_its_name_and_unit,
      a_model_without_a_unit_is_not_averaged_with_one_that_has_one, a_label_takes_its_name_from_a_models_property,
      models_that_contradict_each_other_are_not_averaged, records_that_fail_are_counted, a_column_of_texts_is_no_input,
      large_numbers_stand_apart])
