#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What people look at: status during a run, the funnel of a ranking, the columns of tables."""
import csv
import json
import os
import re
import select
import shutil
import signal
import subprocess
import time

import sieve
from columns_cli import terminal

WORKFLOWS = os.path.join(os.environ["MOLSIEVE_SOURCE"], "workflows")
SCREEN = """  read: {unit: 5}
  prepare: {conformers: {source: generate, builder: openbabel}}
  graph: {edges: bonds}
  basis: {kind: frame_q15}
  score: {models: [esol]}
"""
MODEL = "models:\n  esol: {path: '%s'}\n" % os.path.join(WORKFLOWS, "models/esol.safetensors")


def status_counts_while_the_run_works():
    with sieve.Project() as p:
        p.put("a.smi", sieve.lines_of(sieve.data("library.smi"), 2000))
        p.workflow(["a.smi"], SCREEN, extra=MODEL)
        run = subprocess.Popen(p.command("run", "w.yaml", "-q", "-j", "1"), cwd=p.dir)
        try:
            end = time.time() + 120
            out = ""
            while not re.search(r"(?s)^  prepare +running +\d.* left: ", out, re.M) and time.time() < end:
                assert run.poll() is None, "the run ended too early to be looked at"
                time.sleep(0.3)
                if os.path.exists(p.path("run/results.db")):
                    out = p.run("status", "run", expect=None)[1]
            stages = dict(re.findall(r"(?m)^  (\w+) +running +\d+ +([\d,]+) ", out))
            assert int(stages["prepare"].replace(",", "")) > 0 and "run 1 (run): running" in out, out
            told = re.search(r"about \S+ left: \w+ has done ([\d,]+) of ([\d,]+) (?:records|molecules), (\d+) %", out)
            assert told, out
            done, total, share = (int(word.replace(",", "")) for word in told.groups())
            assert share == 100 * done // total, out
            run.send_signal(signal.SIGSTOP)
            with subprocess.Popen(p.command("status", "run", "--watch"), cwd=p.dir, stdout=subprocess.PIPE) as watching:
                ready = select.select([watching.stdout], [], [], 60)[0]
                look = os.read(watching.stdout.fileno(), 1 << 16).decode() if ready else ""
                watching.kill()
            assert "run 1 (run): running" in look and look.endswith("\n"), look  # all of it at once, although it is no terminal
        finally:
            run.send_signal(signal.SIGCONT)
            run.terminate()
            run.wait(60)


def the_funnel_of_a_ranking_is_the_same_everywhere():
    with sieve.Project() as p:
        p.put("a.smi", sieve.lines_of(os.path.join(WORKFLOWS, "data/library.smi"), 80) + b"[Xe] noble\n")
        p.workflow(["a.smi"], SCREEN.replace(", builder: openbabel", "") + """  rank:
    objectives: [{property: logS, goal: maximise, at_least: -5, similarity_at_least: 0.15}]
    where: "mw > 150"
    domain: inside
    diversity: {by: scaffold, at_most: 1}
    top: 1000
""", extra=MODEL)
        _, out, err = p.run("run", "w.yaml", "limits.failures.max_fraction=1")
        score = "FROM molecule m LEFT JOIN score s USING(mol_id)"
        left = ["1", "s.mean IS NOT NULL", "s.mean>=-5", "mw>150", "s.similarity>=0.15", "s.domain='inside'"]
        want = [p.one("SELECT count(*) %s WHERE %s" % (score, " AND ".join(left[:k + 1]))) for k in range(len(left))]
        hits = p.one("SELECT count(*) FROM hit")
        want += [hits, hits]  # fewer than top: all that diversity leaves are ranked
        assert want == sorted(want, reverse=True) and want[5] > hits > 2 and want[0] > want[2] > want[5], want
        got = p.rows("SELECT name, value FROM metric WHERE stage='rank' AND split='funnel' ORDER BY step")
        assert [int(v) for _, v in got] == want, (got, want)
        # The log, explain, the report.
        assert "of %d molecules %d have all values that are asked for, %d are within at_least and at_most, %d satisfy where, " \
            "%d are similar enough to training molecules, %d are inside of the domain" % tuple(want[:6]) in err, err
        lines = [x.split(None, 1) for x in p.run("explain", "w.yaml", "rank")[1].split("each rule leaves\n")[1].splitlines()]
        assert [(name, float(n)) for n, name in lines] == got, lines
        assert "each rule leaves" not in p.run("explain", "w.yaml", "score")[1]
        page = p.run("report", "run", "-o", "-")[1]
        for name, n in got[1:-1]:
            assert '<th scope="row">%s</th><td class="n"><data value="%d">' % (name, n) in page, name
        # A ranking that is full says nothing of the candidates that it did not look at.
        p.run("run", "w.yaml", "-q", "stages.rank.top=2", "stages.rank.diversity={by: similarity, threshold: 0.05}", "limits.failures.max_fraction=1")
        full = dict(p.rows("SELECT name, value FROM metric WHERE stage='rank' AND split='funnel'"))
        passed = p.one("SELECT max(n_similar) FROM hit") + p.one("SELECT min(n_similar) FROM hit")
        assert full["were compared with better ones until the ranking was full"] == 2 + passed < full["are inside of the domain"], full
        assert full["are not too similar to better ones"] == full["are ranked"] == 2, full
        assert "were compared with better ones" in p.run("explain", "w.yaml", "rank")[1]
        p.run("run", "w.yaml", "-q", "limits.failures.max_fraction=1")
        # A table of molecules that were found says who is outside, although no hit is.
        outside = p.one("SELECT count(*) FROM score WHERE domain='outside'")
        found = p.run("search", "run", "--where", "mw > 0", "-n", "1000")[1].splitlines()
        assert outside > 0 and "domain" in found[0] and sum(" outside " in line for line in found) == outside, found
        assert " domain " not in p.run("top", "run")[1]
        # The last words count what failed after prepare, too.
        failed = p.rows("SELECT stage, code, count(*) FROM failure GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2")
        assert failed and "%d failure%s: " % (sum(n for *_, n in failed), "s" if sum(n for *_, n in failed) > 1 else "") + \
            ", ".join("%s %s %d" % f for f in failed) in out, (failed, out)
        p.run("run", "w.yaml", "-q", "stages.rank.objectives=[{property: logS, goal: maximise, at_least: 99}]", "limits.failures.max_fraction=1")
        assert [int(v) for _, v in p.rows("SELECT name, value FROM metric WHERE split='funnel' ORDER BY step")][2:] == [0] * 5
        # Without any hit the table of all molecules has the same columns.
        rows = list(csv.DictReader(p.run("export", "csv", "--all", "run")[1].splitlines()))
        stereo = p.rows("SELECT undefined_stereo FROM molecule ORDER BY mol_id")
        assert [(int(r["undefined_stereo"]),) for r in rows] == stereo and max(stereo) > (0,), stereo


def tables_have_one_list_of_columns():
    with sieve.Project() as p:
        p.put("a.csv", "smiles,name,logS\nCCO,ethanol,1.1\nc1ccccc1O,phenol,0\nCCCCCCCC,octane,-5\n")
        p.workflow(['{path: a.csv}'], "  read: {}\n  prepare: {conformers: {source: generate}, labels: [logS], alerts: {rules: ['cO phenol']}}\n  graph: {edges: bonds}\n"
                   "  basis: {kind: frame_q15}\n  score: {models: [esol]}\n"
                   "  rank: {objectives: [{property: logS, goal: maximise}]}\n  write: {csv: hits.csv, sdf: hits.sdf}\n", extra=MODEL)
        p.run("run", "w.yaml", "-q")
        with open(p.path("run/hits.csv")) as f:
            text = f.read()
        rows = list(csv.reader(text.splitlines()))
        assert rows[0][:8] == ["rank", "title", "smiles", "inchikey", "formula", "objective", "logS", "logS_unit"], rows[0]
        assert "logS_measured" in rows[0] or "logS_predicted" in rows[0], rows[0]
        assert len(set(rows[0])) == len(rows[0]) and rows[0][-2:] == ["geometry", "energy"] and not re.search(r"[ ()]", "".join(rows[0]))
        assert p.run("export", "csv", "run")[1] == text == p.run("top", "--csv", "run")[1]
        assert [list(r) for r in json.loads(p.run("top", "--json", "run")[1])] == [rows[0]] * 3
        with open(p.path("run/hits.sdf")) as f:
            written = f.read()
        assert p.run("export", "sdf", "run")[1] == written
        for record, row in zip(written.split("$$$$\n"), rows[1:]):
            fields = re.findall(r">  <(.*)>\n(.*)\n", record)
            assert fields == [(n, v) for n, v in zip(rows[0], row) if v], fields
        # For people: 3 digits, the unit in the head, and 80 columns.
        _, lines = terminal(("top", "run"), p.dir)
        assert max(map(len, lines)) <= 80 and "(log10(mol/L))" in "\n".join(lines[:2]), lines
        values = re.findall(r"(?m)^ +\d+  \w+ +(\S+) ", "\n".join(lines))
        assert len(values) == 3 and all(len(v.lstrip("-").replace(".", "").lstrip("0")) == 3 for v in values), values


def help_begins_with_what_to_change_and_has_groups():
    with sieve.Project() as p:
        text = p.run("help", "train")[1]
        first, rest = text.split("Settings, under")
        keys = re.findall(r"(?m)^  ([a-z_.]+)  ", first.split("Change these first:")[1])
        assert len(keys) == 5, keys
        groups = re.split(r"(?m)^([a-z_]+):$", rest)
        assert groups[1::2][:4] == ["inputs", "model", "batch", "optimiser"], groups[1::2]
        for name, body in zip(groups[1::2], groups[2::2]):
            found = re.findall(r"(?m)^  ([a-z][a-z0-9_.]*)", body)
            assert found and all(k.startswith(name + ".") for k in found), (name, found)
        all_keys = re.findall(r"(?m)^  ([a-z][a-z0-9_.]*)", rest)
        assert all(k in all_keys for k in keys) and len(all_keys) == len(set(all_keys)) > 40, all_keys
        # Slips of the fingers.
        for words, want in ((("rnu", "x"), "'run'"), (("model", "inof", "x"), "info"), (("db", "chekc", "x"), "check"), (("help", "trian"), "train")):
            assert want in p.run(*words, expect=2)[2], words


TRAIN = """  read: {}
  prepare: {conformers: {source: none}, labels: %s, properties: {active: {task: classification}}}
  graph: {edges: topology}
  split: {}
  train: {targets: [{name: %s}], family: [trees]}
"""


KEPT = """  read: {}
  prepare: {conformers: {source: none}, labels: [Standard Value]%s}
  graph: {edges: topology}
"""


def units_are_looked_at(p):
    """They stand in a column of their own, too: of a label that is learned, one that a screen keeps, and a column that a model reads."""
    lines = ["%s,%d,%d,%s" % ("C" * (k + 1), k, 10000 - k, "nM" if k != 9 else "uM") for k in range(28)]
    text = "\n".join(["smiles,y,Standard Value,Standard Units"] + lines) + "\n"
    p.put("a.csv", text)
    mixed = "a.csv:11: Standard Units is 'uM', and 'nM' in line 2: numbers of two units are not one column of Standard Value"
    p.put("b.csv", text.replace("Standard Units", "Standard Type").replace("nM", "IC50").replace("uM", "Ki"))
    kinds = "b.csv:11: Standard Type is 'Ki', and 'IC50' in line 2: two kinds of measurement are not one column of Standard Value"
    column = (TRAIN % ("[y]", "y")).replace("family: [trees]}", "family: [trees], inputs: {columns: [Standard Value]}}")
    for stages in (TRAIN % ("['Standard Value']", "Standard Value"), KEPT % "", column):
        for table, wrong in (("a.csv", mixed), ("b.csv", kinds)):
            p.workflow([table], stages)
            for command in ("check", "run"):
                said = " ".join(p.run(command, "w.yaml", expect=2)[2].split())
                assert said.count(wrong) == 1, (stages, command, said)
    p.workflow(["a.csv"], TRAIN % ("[y]", "y"))
    p.run("check", "w.yaml")
    p.put("a.csv", text.replace("uM", "nM"))
    for unit, factor, expect in (("nM", "", 0), ("uM", "", 2), ("uM", ", factor: 0.001", 0)):
        p.workflow(["a.csv"], TRAIN % ("['Standard Value']", "s, column: Standard Value, unit: %s%s" % (unit, factor)))
        said = " ".join(p.run("check", "w.yaml", expect=expect)[2].split())
        assert ("a.csv:2: Standard Units is 'nM', and Standard Value is said to be in uM" in said) == (expect == 2), said
    for unit, expect in (("nM", 0), ("uM", 2)):
        p.workflow(["a.csv"], KEPT % (", properties: {Standard Value: {unit: %s}}" % unit))
        said = " ".join(p.run("check", "w.yaml", expect=expect)[2].split())
        assert ("a.csv:2: Standard Units is 'nM', and Standard Value is said to be in uM" in said) == (expect == 2), said


def names_of_labels_are_exact(p):
    """As the run takes them: letter case counts, and a field that a record has twice is no label."""
    smiles = ["C" * (k + 1) for k in range(40)]
    p.put("a.csv", "smiles,y\n" + "".join("%s,%d\n" % (s, k) for k, s in enumerate(smiles)))
    p.put("b.csv", "smiles,Y\n" + "".join("%sO,%d\n" % (s, k) for k, s in enumerate(smiles)))
    p.workflow(["a.csv", "b.csv"], TRAIN % ("[y]", "y"))
    assert "y: 40 numbers in 80 records" in p.run("check", "w.yaml")[1]
    p.workflow(["a.csv"], TRAIN % ("[Y]", "Y"))
    assert "labels: no record has a data field called" in p.run("check", "w.yaml", expect=2)[2]
    p.put("t.smi", "".join("%s m%d\n" % (s, k) for k, s in enumerate(smiles)))
    records = p.run("conformers", "t.smi", "-c", "1")[1].split("$$$$\n")[:-1]
    for again, says in (("1", None), ("2", "t.sdf:%d: a record has y twice, '1' and '2': keep one")):
        text = "".join("%s> <y>\n%d\n\n> <%s>\n%s\n\n$$$$\n" % (r, k, "y" if k == 1 else "Y", again) for k, r in enumerate(records))
        p.put("t.sdf", text)
        line = text[:text.index("$$$$\n")].count("\n") + 2
        p.workflow(["t.sdf"], TRAIN % ("[y]", "y"))
        for words in (("check", "w.yaml"), ("fit", "t.sdf", "-t", "y", "-n")):
            said = p.run(*words, expect=2 if says else 0)
            assert (says % line in said[2]) if says else "40" in said[1], (words, said)


def more_labels_than_are_looked_at_are_refused(p):
    """Those of all models together, which are compared with the table's."""
    names = ["t%d" % k for k in range(66)]
    p.put("many.csv", "smiles,%s\n" % ",".join(names) + "".join("C%s,%s\n" % ("C" * k, ",".join(str(k * (j + 1) % 71) for j in range(66))) for k in range(28)))
    for k in range(2):
        mine = names[33 * k:33 * k + 33]
        p.workflow(["many.csv"], (TRAIN % ("[%s]" % ", ".join(mine), "}, {name: ".join(mine))).replace("[trees]", "[gp]").replace("train: {", "train: {name: m%d, " % k),
                   name="m%d.yaml" % k, workdir="m%d" % k)
        p.run("run", "m%d.yaml" % k, "-q")
    p.workflow(["many.csv"], "  read: {}\n  prepare: {conformers: {source: none}, labels: [%s]}\n  graph: {edges: topology}\n  evaluate: {models: [a, b]}\n" % ", ".join(names),
               extra="models: {a: {path: m0/models/m0.safetensors}, b: {path: m1/models/m1.safetensors}}\n")
    said = " ".join(p.run("check", "w.yaml", expect=2)[2].split())
    assert "models: at most 64 labels are compared with them" in said, said
    p.run("check", "w.yaml", "stages.evaluate.models=[a]")


def units_of_compared_labels_are_the_models(p):
    """Where the workflow says none, a column of units does."""
    p.put("units.csv", "smiles,value,units\n" + "".join("C%s,%d,nM\n" % ("C" * k, k) for k in range(28)))
    p.workflow(["units.csv"], TRAIN % ("[value]", "value, unit: uM, factor: 0.001"), name="u.yaml", workdir="u")
    p.run("run", "u.yaml", "-q", "stages.train.name=u")
    for targets, expect in (("", 2), (", targets: [{name: value, factor: 0.001}]", 0)):
        p.workflow(["units.csv"], "  read: {}\n  prepare: {conformers: {source: none}, labels: [value]}\n  graph: {edges: topology}\n  evaluate: {models: [a]%s}\n" % targets,
                   extra="models: {a: {path: u/models/u.safetensors}}\n", workdir="judged")
        for command in ("check", "run"):
            said = " ".join(p.run(command, "w.yaml", expect=expect)[2].split())
            assert ("/units.csv:2: units is 'nM', and value is said to be in uM" in said) == (expect == 2), (command, said)
    said = " ".join(p.run("check", "w.yaml", "stages.evaluate.targets=[]", "stages.prepare.properties={value: {unit: uM}}", expect=2)[2].split())
    assert said.count("units is 'nM', and value is said to be in uM") == 1, said


def remarks_of_records_with_a_label_are_told(p):
    remarks = {2: "", 3: "Outside typical range", 4: "Potential author error", 9: "Outside typical range"}
    values = {4: "", 9: "n.d."}  # what gives no label is not learned, whatever is said of it
    p.put("a.csv", "smiles,pIC50,Data Validity Comment\n" + "".join("%s,%s,%s\n" % ("C" * k, values.get(k + 1, k), remarks.get(k + 1, "")) for k in range(1, 28)))
    p.workflow(["a.csv"], TRAIN % ("[pIC50]", "pIC50"))
    said = " ".join(p.run("check", "w.yaml")[1].split())
    assert "1 record with a label has a remark that a value may be wrong, the first in %s:3: 'Outside typical range' in Data Validity Comment" % p.path("a.csv") in said, said
    p.workflow(["a.csv"], TRAIN % ("[all]", "pIC50"))
    assert "pIC50: 25 numbers in 27 records" in p.run("check", "w.yaml")[1]


def labels_are_looked_at_before_a_run():
    with sieve.Project() as p:
        rows = ["smiles,name,pIC50,active,same,empty,comma\n"]
        values = ["5.5", ">10", "", "<= 4", "n.d.", "6", "7.25"]
        for k in range(28):
            rows.append("%s,m%d,%s,%d,1,,\"1,5\"\n" % ("C" * (k + 1), k, values[k % 7], k % 3 == 0))
        p.put("a.csv", "".join(rows))

        def check(labels, target, expect=0, **more):
            p.workflow(["a.csv"], TRAIN % (labels, target))
            return p.run("check", "w.yaml", expect=expect, **more)

        out = check("[pIC50, active]", "pIC50")[1]
        said = " ".join(out.split())
        assert "pIC50: 12 numbers in 28 records; 8 limits such as >10, 4 other texts, 4 empty: they give no label; the first text: " in said, said
        assert "a.csv:3: '>10'" in said and "active: 28 numbers in 28 records, 10 of class 1 " in said + " ", said
        # As in exports of ChEMBL the relation stands in a column of its own, whose name says to which value it belongs.
        p.put("a.csv", "smiles,Standard Relation,Standard Value,pIC50\n" + "".join(
            "%s,'%s',%d,%s\n" % ("C" * (k + 1), "=>"[k % 4 == 3], 10000 - k, "" if k % 4 == 3 else 5 + k / 100) for k in range(28)))
        said = " ".join(check("['Standard Value', pIC50]", "Standard Value")[1].split())
        assert "Standard Value: 21 numbers in 28 records; 7 limits such as >10: they give no label; the first text: " in said, said
        assert "a.csv:5: '>9997'" in said and "pIC50: 21 numbers in 28 records" in said, said
        check("[pIC50]", "pIC50")
        p.put("a.csv", "smiles,relation,pIC50\n" + "".join("%s,%s,%g\n" % ("C" * (k + 1), "=<"[k % 7 == 6], k / 9) for k in range(28)))
        text = " ".join(check("[pIC50]", "pIC50", expect=2)[2].split())
        assert "a.csv:8: relation is '<' beside a number in pIC50: a limit is no measured value; if the column belongs to pIC50, " \
            'call it "pIC50 relation", otherwise remove it (4 in all)' in text, text
        remarks_of_records_with_a_label_are_told(p)
        units_are_looked_at(p)
        names_of_labels_are_exact(p)
        more_labels_than_are_looked_at_are_refused(p)
        units_of_compared_labels_are_the_models(p)
        p.put("a.csv", "smiles,pIC50\n" + "".join("%s,%g\n" % ("C" * (k + 1), -999 if k % 9 == 8 else k / 9) for k in range(28)))
        for command in ("check", "run"):
            p.workflow(["a.csv"], TRAIN % ("[pIC50]", "pIC50"))
            text = " ".join(p.run(command, "w.yaml", expect=2)[2].split())
            assert 'labels: pIC50 is -999 in 3 rows, and between 0 and 3 in others: if that means "not measured", leave these cells empty' in text, text
        p.put("a.csv", "".join(rows))
        # Problems, all at once, at their place; `--json` has them, too.
        _, _, err = check("[pIC5O, empty, comma, pIC50]", "pIC50", expect=2)
        text = " ".join(err.split())
        assert 'no record has a data field called "pIC5O", did you mean \'pIC50\'?' in text and "empty is empty in all 28 records" in text, text
        assert "comma is no number in any of 28 records" in text and "write 1.5 for 1,5" in text and "3 problems" in text, text
        assert re.search(r"w\.yaml:\d+:\d+: ", err), err
        found = json.loads(p.run("check", "w.yaml", "--json", expect=2)[1])
        assert not found["ok"] and len(found["problems"]) == 3, found
        for values, want in (("same", "same is a class, but all its 28 values are 1"), ("pIC50", "pIC50 is a class, so its values are 0 and 1; found ")):
            p.workflow(["a.csv"], (TRAIN % ("[%s]" % values, values)).replace("active:", values + ":"))
            assert want in " ".join(p.run("check", "w.yaml", expect=2)[2].split()), want
        # Two columns of one name: which one is meant?
        p.put("two.csv", "smiles,same,pIC50,same,pIC50\n" + "".join("%s,1,%d,2,7\n" % ("C" * k, k) for k in range(1, 30)))
        p.workflow(["two.csv"], TRAIN % ("[pIC50]", "pIC50"))
        for command in ("check", "run"):
            said = " ".join(p.run(command, "w.yaml", expect=2)[2].split())
            assert "two.csv has several columns called pIC50: which one?" in said and "called same" not in said, said
        # Inputs without a record give no label; without labels there is nothing wrong with them.
        for name, text in (("none.csv", "smiles,pIC50\n"), ("none.sdf", "")):
            p.put(name, text)
            p.workflow([name], TRAIN % ("[pIC50, active]", "pIC50"))
            for more in ([], ["--json"]):
                _, out, err = p.run("check", "w.yaml", *more, expect=2)
                assert (out + err).count("the inputs have no records, so none has pIC50") == 1 and "OK" not in out, out + err
            p.workflow([name, "a.csv"], TRAIN % ("[pIC50]", "pIC50"))
            assert "pIC50: 12 numbers in 28 records" in p.run("check", "w.yaml")[1]
            p.workflow([name], "  read: {}\n  prepare: {conformers: {source: none}}\n")
            assert ": OK" in p.run("check", "w.yaml")[1]
        # Sizes that take as long as larger ones.
        one = (TRAIN % ("[pIC50]", "pIC50")).replace("[trees]", "[se3], model: {heads: 1, channels: 30}")
        p.workflow(["a.csv"], one.replace("none", "generate").replace("topology", "bonds"))
        for more, want in (([], "model.channels: 30 take about as long as 32"), (["stages.train.engine=ref"], None), (["stages.train.model.channels=32"], None),
                           (["stages.train.family=[trees]"], None)):
            _, out, _ = p.run("check", "w.yaml", *more)
            assert ("advice" in out) == (want is not None) and (want or "") in " ".join(out.split()), (more, out)
            found = json.loads(p.run("check", "w.yaml", "--json", *more)[1])
            assert [want in a["text"] and a["line"] > 1 for a in found["advice"]] == ([True] if want else []), found
        # The run tells once that a limit is no label, and learns none as a number.
        p.workflow(["a.csv"], TRAIN % ("[pIC50]", "pIC50"))
        _, _, err = p.run("run", "w.yaml", "--until", "prepare")
        assert err.count("is a limit") + err.count("a limit is not a measured value") == 1 and "a.csv:3: pIC50 is >10: a limit" in err, err
        assert p.one("SELECT count(*) FROM label") == 12 and p.one("SELECT max(value) FROM label") == 7.25


def a_plan_says_what_a_training_takes():
    with sieve.Project() as p:
        p.put("a.csv", "smiles,y\n" + "".join("%s,%d\n" % ("C" * (k + 1), k) for k in range(40)))

        def seconds(network, epochs, members=1):
            p.workflow(["a.csv"], "  read: {}\n  prepare: {conformers: {source: generate}, labels: [y]}\n  graph: {edges: bonds}\n  split: {}\n"
                       "  train: {targets: [{name: y}], family: [se3], epochs: %d, members: %d, model: %s}\n" % (epochs, members, network))
            stage = [s for s in json.loads(p.run("plan", "w.yaml", "--json")[1])["stages"] if s["stage"] == "train"][0]
            return stage["seconds_one_worker"], stage["items"]

        small = "{layers: 1, degrees: 2, channels: 8, heads: 2}"
        one, items = seconds(small, 10)
        assert one > 0 and items == 320, (one, items)  # 80 % of 40 molecules, 10 epochs
        long, items = seconds(small, 1000, 2)
        assert items == 64000 and 20 < long / one < 2000, (one, long)  # 200 times as many; both are timed
        assert seconds("{layers: 4, degrees: 3, channels: 32, heads: 4}", 10)[0] > 3 * one
        out = " ".join(p.run("plan", "w.yaml")[1].split())
        assert re.search(r"train: network of about [\d,]+ parameters, 10 epochs of \S+ with \d+ threads?, by a step measured here", out), out


def the_report_draws_training_molecules_of_another_run():
    with sieve.Project() as p:
        p.put("a.smi", sieve.lines_of(os.path.join(WORKFLOWS, "data/library.smi"), 30))
        p.workflow(["a.smi"], SCREEN.replace(", builder: openbabel", "") + "  rank: {objectives: [{property: logS, goal: maximise}], top: 8}\n", extra=MODEL)
        p.run("run", "w.yaml", "-q")
        near = {k for (k,) in p.rows("SELECT nearest FROM hit JOIN prediction USING(mol_id)")}
        own = {k for (k,) in p.rows("SELECT inchikey FROM molecule")}
        assert len(near - own) > 3
        plain = p.run("report", "run", "-o", "-")[1]
        assert plain.count("nearest training molecule") == 8 and plain.count('id="near') == len(near & own)
        p.workflow([os.path.join(WORKFLOWS, "data/esol.csv")], "  read: {}\n  prepare: {conformers: {source: none}}\n", name="t.yaml", workdir="train")
        p.run("run", "t.yaml", "-q")
        page = p.run("report", "run", "--training", "train", "-o", "-")[1]
        known = {k for (k,) in p.rows("SELECT inchikey FROM molecule", workdir="train")}
        assert len(near & known) > 3 and page.count('id="near') == len(near & (known | own)), (near, page.count('id="near'))
        key = sorted(near & known)[0]
        title = p.one("SELECT title FROM record JOIN molecule USING(mol_id) WHERE inchikey=?", key, workdir="train")
        assert "nearest training molecule <b>%s</b>" % title in page and re.search(r"similarity <data[^>]*>0\.\d+</data>, measured ", page), title
        assert page.replace("x", "") != plain and p.run("report", "run", "--training", "train", "-o", "-")[1] == page
        assert "nowhere" in p.run("report", "run", "--training", "nowhere", expect=6)[2]


def repeats_are_the_errors_of_other_splits():
    import math
    import statistics
    with sieve.Project() as p:
        with open(os.path.join(WORKFLOWS, "data/esol.csv")) as f:
            p.put("a.csv", "".join(line for line, _ in zip(f, range(121))))
        text = """  read: {}
  prepare: {conformers: {source: none}, labels: [logS]}
  graph: {edges: topology}
  split: {method: scaffold%s}
  train: {targets: [{name: logS}], family: [trees]}
  evaluate: {on: [train, test]}
"""
        p.workflow(["a.csv"], text % "")
        out = p.run("repeat", "w.yaml", "-n", "3", "-q")[1]
        table = {(r["part"], r["metric"]): r for r in json.loads(p.run("repeat", "w.yaml", "-n", "3", "-q", "--json")[1])}
        # Held-out molecules alone count; what is split by domain or is a coverage is no error.
        assert {part for part, _ in table} == {"test"} and not [m for _, m in table if m.startswith("coverage90") or ".domain " in m], sorted(table)
        # Each is a run of its own with that setting.
        values = []
        for k in range(3):
            p.run("run", "w.yaml", "-q", "workdir=alone%d" % k, "stages.split.repeat=%d" % k)
            values.append(p.one("SELECT value FROM evaluation WHERE part='test' AND metric='mae'", workdir="alone%d" % k))
        assert len(set(values)) == 3, values
        mae = table["test", "mae"]
        assert abs(mae["mean"] - statistics.fmean(values)) < 1e-9 and abs(mae["stdev"] - statistics.stdev(values)) < 1e-9 and mae["splits"] == 3, mae
        # The model against another prediction: by split, with Student's t for two degrees of freedom.
        others = [p.one("SELECT value FROM evaluation WHERE part='test' AND metric='neighbours.mae'", workdir="alone%d" % k) for k in range(3)]
        less = [a - b for a, b in zip(values, others)]
        pair = table["test", "neighbours.mae"]
        assert abs(pair["difference"] - statistics.fmean(less)) < 1e-9 and "difference" not in mae, pair
        assert abs(pair["difference95"] - 4.303 * statistics.stdev(less) / math.sqrt(3)) < 1e-9, pair
        line = re.search(r"paired by split: .*\n(?:.*\n)*?  neighbours +(\S+) \+- (\S+) ", out)
        assert abs(float(line[1]) - pair["difference"]) < 0.06 and abs(float(line[2]) - pair["difference95"]) < 0.06, out
        line = re.search(r"the model +(\S+) \+- (\S+) ", out)
        assert abs(float(line[1]) - mae["mean"]) < 0.006 and "part test: mean +- standard deviation over 3 splits" in out, out
        # The workflow's own split is the last one, and its results stay; molecules were prepared once.
        assert p.one("SELECT value FROM evaluation WHERE part='test' AND metric='mae'") == values[0]
        assert p.one("SELECT count(*) FROM stage WHERE name='prepare'") == 1
        # Nothing runs again; a killed command continues with what is missing.
        before = p.rows("SELECT max(event_id) FROM event")
        assert p.run("repeat", "w.yaml", "-n", "3", "-q")[1] == out
        kept = json.load(open(p.path("run/repeats.json")))
        assert len(kept) == 3
        kept.pop(next(k for k, rows in kept.items() if rows[0] and any(r["metric"] == "mae" and r["value"] == values[2] for r in rows)))
        p.put("run/repeats.json", json.dumps(kept))
        assert p.run("repeat", "w.yaml", "-n", "3", "-q")[1] == out and before
        # Six splits: Student's t for five degrees of freedom.
        p.workflow(["a.csv"], (text % "").replace("[trees]", "[gp]"), workdir="six")
        found = {r["metric"]: r for r in json.loads(p.run("repeat", "w.yaml", "-n", "6", "-q", "--json")[1])}
        kept = [{r["metric"]: r["value"] for r in rows if r["part"] == "test"} for rows in json.load(open(p.path("six/repeats.json"))).values()]
        less = [rows["rmse"] - rows["mean.rmse"] for rows in kept]
        assert len(less) == 6 and abs(found["mean.rmse"]["difference"] - statistics.fmean(less)) < 1e-9, found["mean.rmse"]
        assert abs(found["mean.rmse"]["difference95"] / (statistics.stdev(less) / math.sqrt(6)) - 2.571) < 0.004, found["mean.rmse"]
        # What does not depend on the seed is refused.
        p.workflow(["a.csv"], text % ", variant: deterministic")
        assert "is the same for every seed" in p.run("repeat", "w.yaml", expect=2)[2]
        p.workflow(["a.csv"], text % ", repeat: 2")
        assert "remove it" in p.run("repeat", "w.yaml", expect=2)[2]
        p.workflow(["a.csv"], "  read: {}\n  prepare: {conformers: {source: none}}\n")
        assert "needs the stages split, train and evaluate" in p.run("repeat", "w.yaml", expect=2)[2]
        p.run("repeat", "w.yaml", "-n", "1", expect=2)
        p.workflow(["a.csv"], text % "")
        for words in (("--jobs", "0x"), ("--max-time", "soon")):  # as `run` reads them
            assert words[1] in p.run("repeat", "w.yaml", *words, expect=2)[2], words


SPLIT_ROWS = """SELECT s.mol_id, s.part, substr(inchikey,1,14), scaffold FROM split s JOIN molecule USING(mol_id)
                JOIN fingerprint USING(mol_id) ORDER BY 1"""
FOLDED = """  read: {unit: 20}
  prepare: {conformers: {source: none}, labels: [logS]}
  graph: {edges: topology}
  split: {method: %s}
  train: {targets: [{name: logS}], family: [trees]}
  evaluate: {on: [test]}
"""


def folds_test_each_molecule_once():
    with sieve.Project() as p:
        with open(os.path.join(WORKFLOWS, "data/esol.csv")) as f:
            lines = [line for line, _ in zip(f, range(121))]
        # Stereoisomers, a duplicate, and a molecule without a label.
        added = ["C[C@%sH](N)C(=O)O%s,x,%d\n" % (c, "C" * k, k) for k in range(12) for c in ("", "@")]
        p.put("a.csv", "".join(lines + added + added[:1]) + "CCCCCCCCCCCCCC,x,\n")
        p.workflow(["a.csv"], FOLDED % "random")
        for method in ("random", "scaffold"):
            tested, fold_of = [], {}
            for k in range(1, 5):
                how = ["stages.split={method: %s, folds: 4, fold: %d}" % (method, k), "--until", "split", "-q"]
                p.run("run", "w.yaml", "-j", "1", *how)
                rows = p.rows(SPLIT_ROWS)
                p.run("run", "w.yaml", "-j", "3", "workdir=other", *how)
                assert p.rows(SPLIT_ROWS, workdir="other") == rows
                test = {m for m, part, _, _ in rows if part == "test"}
                tested.append(test)
                sizes = {part: sum(r[1] == part for r in rows) for part in ("train", "valid", "test")}
                assert min(sizes.values()) > 5 and sizes["train"] > sizes["valid"], sizes
                assert method == "scaffold" or abs(len(test) - len(rows) / 4) <= 2, (sizes, len(rows))
                for group in (2, 3) if method == "scaffold" else (2,):
                    for row in rows:
                        if row[1] == "test":
                            assert fold_of.setdefault((group, row[group]), k) == k, row
                        elif row[1] == "train":
                            assert row[2] not in {r[2] for r in rows if r[1] != "train"}, row
            every = {m for (m,) in p.rows("SELECT mol_id FROM molecule")}
            assert sum(map(len, tested)) == len(every) == len(set().union(*tested)) and set().union(*tested) == every
            stereo = {}
            for m, _, skeleton, _ in p.rows(SPLIT_ROWS):
                stereo.setdefault(skeleton, []).append(m)
            assert sum(len(v) == 2 for v in stereo.values()) == 12
        p.run("run", "w.yaml", "stages.split={method: scaffold, folds: 4, fold: 4, repeat: 1}", "--until", "split", "-q")
        assert p.rows(SPLIT_ROWS) != rows, "another seed, other folds"
        # The other fractions share the rest, also with a calibration part.
        shares = "fractions: {train: 0.6, valid: 0.1, test: 0.1, calibration: 0.2}"
        for method in ("random", "scaffold"):
            p.run("run", "w.yaml", "stages.split={method: %s, folds: 4, fold: 2, %s}" % (method, shares), "--until", "split", "-q")
            n = dict(p.rows("SELECT part, count(*) FROM split GROUP BY 1"))
            whole = sum(n.values())
            assert all(n[part] > 0 for part in ("train", "valid", "test", "calibration")), (method, n)
            want = {"train": 0.5, "valid": 0.75 / 9, "test": 0.25, "calibration": 1.5 / 9}
            assert method == "scaffold" or all(abs(n[part] - share * whole) <= 3 for part, share in want.items()), (n, want)
            assert abs(n["valid"] - (whole - n["test"]) / 9) <= 1, "single molecules fill the parts to their shares of the rest: %s" % n
        # What cannot be is told with all other problems, or when the molecules are known.
        said = p.run("check", "w.yaml", "stages.split={method: scaffold, variant: balanced, folds: 4, fold: 5, limit: {test: 3}}",
                     "stages.train.optimiser.lr=0.0001", expect=2)[2]
        assert all(what in said for what in ("fold 5 of 4", "variant random", "limit.test", "is above lr")), said
        assert "fold: 3 of no folds" in p.run("check", "w.yaml", "stages.split.fold=3", expect=2)[2]
        p.put("few.csv", "".join(lines[:21]))
        p.workflow(["few.csv"], FOLDED % "random", name="few.yaml", workdir="few")
        assert "take fewer folds" in p.run("run", "few.yaml", "-q", "stages.split={folds: 50, fold: 2}", expect=2)[2]


def a_cross_validation_is_the_runs_of_its_folds():
    import math
    import statistics
    with sieve.Project() as p:
        with open(os.path.join(WORKFLOWS, "data/esol.csv")) as f:
            p.put("a.csv", "".join(line for line, _ in zip(f, range(121))))
        p.workflow(["a.csv"], FOLDED % "scaffold")
        out = p.run("repeat", "w.yaml", "--folds", "3", "-q")[1]
        table = {(r["part"], r["metric"]): r for r in json.loads(p.run("repeat", "w.yaml", "--folds", "3", "-q", "--json")[1])}
        pairs, rmse, mean = [], [], []
        for k in (1, 2, 3):
            p.run("run", "w.yaml", "-q", "workdir=alone%d" % k, "stages.split.folds=3", "stages.split.fold=%d" % k)
            pairs += p.rows("SELECT measured, predicted FROM evaluated WHERE part='test'", workdir="alone%d" % k)
            rmse.append(p.one("SELECT value FROM evaluation WHERE part='test' AND metric='rmse'", workdir="alone%d" % k))
            mean += p.rows("SELECT value, n FROM evaluation WHERE part='test' AND metric='mean.mae'", workdir="alone%d" % k)
        got = table["test", "rmse"]
        assert abs(got["mean"] - statistics.fmean(rmse)) < 1e-9 and abs(got["stdev"] - statistics.stdev(rmse)) < 1e-9, (got, rmse)
        assert abs(got["pooled"] - math.sqrt(statistics.fmean((a - b) ** 2 for a, b in pairs))) < 1e-9 and got["n"] == len(pairs) == 120, got
        assert abs(table["test", "mae"]["pooled"] - statistics.fmean(abs(a - b) for a, b in pairs)) < 1e-9
        assert abs(table["test", "mean.mae"]["pooled"] - sum(v * n for v, n in mean) / 120) < 1e-9 and table["test", "r2"]["pooled"] is None
        assert "over 3 folds" in out and "pooled over the 120 molecules that were tested" in out
        assert re.search(r"tested\n  prediction by +MAE +RMSE\n  the model +0?\.?\d", out), out
        # The workflow's own split is the last, and stays; molecules were prepared once; nothing runs again.
        p.run("run", "w.yaml", "-q", "workdir=own")
        own = "SELECT part, metric, value FROM evaluation ORDER BY 1, 2"
        assert p.rows(own) == p.rows(own, workdir="own") and p.one("SELECT count(*) FROM stage WHERE name='prepare'") == 1
        runs = p.one("SELECT count(*) FROM stage")
        assert p.run("repeat", "w.yaml", "--folds", "3", "-q")[1] == out and p.one("SELECT count(*) FROM stage") == runs
        # A killed one continues with what is missing.
        shutil.rmtree(p.path("run"))
        p.run("repeat", "w.yaml", "--folds", "3", "-q", expect=137, env=dict(os.environ, MOLSIEVE_FAULT="train.model.after:2"))
        p.run("repeat", "w.yaml", "--folds", "3", "-q")
        assert p.run("repeat", "w.yaml", "--folds", "3", "-q")[1] == out
        assert len(json.load(open(p.path("run/repeats.json")))) == 4
        assert "use one of them" in p.run("repeat", "w.yaml", "--folds", "3", "-n", "3", expect=2)[2]
        assert "from 2 to 100" in p.run("repeat", "w.yaml", "--folds", "1", expect=2)[2]
        assert "variant random" in p.run("repeat", "w.yaml", "--folds", "3", "stages.split.variant=balanced", expect=2)[2]
        # Of several members each fold counts once, with the mean of their errors, and each molecule, too.
        two = ["stages.train={targets: [{name: logS}], family: [trees], members: 2}", "workdir=two"]
        rows = [r for r in json.loads(p.run("repeat", "w.yaml", "--folds", "2", "-q", "--json", *two)[1]) if r["part"] == "test"]
        table = {r["metric"]: r for r in rows}
        assert len(rows) == len(table) and {(r["splits"], r["n"]) for m, r in table.items() if "mae" in m} == {(2, 120)}, rows
        folds = [[r for r in kept if r["part"] == "test" and r["metric"] in ("mae", "ensemble.mae")]
                 for kept in json.load(open(p.path("two/repeats.json"))).values()]
        each = [[r["value"] for r in kept if r["metric"] == "mae"] for kept in folds[:3]]
        both = [next(r["value"] for r in kept if r["metric"] == "ensemble.mae") for kept in folds[:3]]
        assert all(len(e) == 2 and e[0] != e[1] for e in each), each
        found = [i for i in ((0, 1), (0, 2), (1, 2)) if abs(statistics.fmean(statistics.fmean(each[k]) for k in i) - table["mae"]["mean"]) < 1e-9]
        assert len(found) == 1 and abs(statistics.stdev([statistics.fmean(each[k]) for k in found[0]]) - table["mae"]["stdev"]) < 1e-9, table["mae"]
        less = [statistics.fmean(each[k]) - both[k] for k in found[0]]
        assert abs(table["ensemble.mae"]["difference"] - statistics.fmean(less)) < 1e-9, table["ensemble.mae"]
        # What the intervals of two members hold is told of both.
        out = p.run("run", "w.yaml", *two, "stages.evaluate.on=[valid]")[1]
        held = [100 * v for v, in p.rows("SELECT value FROM evaluation WHERE metric='coverage90' ORDER BY 1", workdir="two")]
        assert len(held) == 2 and re.search("MAE .* together, .*; interval90 of each holds %.1f to %.1f %% of " % tuple(held), out), (held, out)
        p.workflow(["a.csv"], FOLDED % "scaffold, folds: 3")
        assert "remove them" in p.run("repeat", "w.yaml", "--folds", "3", expect=2)[2]


def a_pipe_is_written_to_and_not_replaced():
    import stat
    with sieve.Project() as p:
        p.put("a.smi", "CCO a\nCCN b\n")
        p.workflow(["a.smi"], "  read: {}\n  prepare: {conformers: {source: none}}\n  rank: {objectives: [{property: mw, goal: maximise}]}\n")
        p.run("run", "w.yaml", "-q")
        want = p.run("export", "csv", "run")[1]
        os.mkfifo(p.path("pipe"))
        for words in (("export", "csv", "run"), ("report", "run")):
            reader = subprocess.Popen(["cat", "pipe"], cwd=p.dir, stdout=subprocess.PIPE)
            p.run(*words, "-o", "pipe")
            got = reader.communicate(timeout=60)[0].decode()
            assert got == want or got.startswith("<!DOCTYPE html>"), got[:200]
            assert stat.S_ISFIFO(os.stat(p.path("pipe")).st_mode) and not os.path.exists(p.path("pipe.tmp"))


sieve.main([a_pipe_is_written_to_and_not_replaced, folds_test_each_molecule_once, a_cross_validation_is_the_runs_of_its_folds, repeats_are_the_errors_of_other_splits, the_report_draws_training_molecules_of_another_run, a_plan_says_what_a_training_takes, labels_are_looked_at_before_a_run, help_begins_with_what_to_change_and_has_groups, status_counts_while_the_run_works, the_funnel_of_a_ranking_is_the_same_everywhere, tables_have_one_list_of_columns])
