#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`molsieve predict`: the numbers of a workflow, one row for each record, answers in a pipe one at a time, bad input."""
import csv
import gzip
import io
import json
import os
import select
import shutil
import signal
import subprocess

import sieve
from sieve import PROGRAM, Project, data, main, sdf_records

MODELS = os.path.join(os.environ["MOLSIEVE_SOURCE"], "workflows", "models")
ESOL, GAP = (os.path.join(MODELS, name + ".safetensors") for name in ("esol", "qm9-gap"))
ODD = "c1ccccc1 benzene\nCC(=O twice\n[Na+].[Cl-] salt\n[Xe] xenon\nOCC(O)C=O#1 cut\nO=C(C)Oc1ccccc1C(=O)O.[Na+] aspirin\n[2H]C heavy\n"
SCORES = ("SELECT r.record_id, s.mean, s.interval90, s.similarity, s.domain, s.reasons FROM record r JOIN score s USING(mol_id) "
          "JOIN property p USING(property_id) WHERE p.name=? ORDER BY 1")


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


def number(text):
    return float(text) if text else None


def compared(p, name, rows):
    """The rows of predict beside the scores of the workflow in run: how many are equal, to the last bit."""
    stored = {r[0]: r[1:] for r in p.rows(SCORES, name)}
    for k, row in enumerate(rows, 1):
        got = tuple(number(row[name + more]) for more in ("", "_interval90", "_similarity")) + tuple(
            row[name + more] or None for more in ("_domain", "_reasons"))
        assert (k in stored) == (not row["problem"]), row
        if k in stored:
            assert got == stored[k], (row, stored[k])
    return len(stored)


def screen(p, inputs, model, source, more=""):
    p.workflow(inputs, "  read: {}\n  prepare: {conformers: {source: %s}%s, labels: none}\n  graph: {edges: bonds}\n"
               "  score: {models: [m]}\n" % (source, more), extra="models: {m: {path: %s}}\nlimits: {failures: {max_fraction: 1}}\n" % model)
    p.run("run", "w.yaml", "-q")


def numbers_are_those_of_a_workflow_to_the_last_bit():
    with Project() as p:
        p.put("in.smi", ODD + "".join(open(data("library.smi")).readlines()[:40]))
        screen(p, ["in.smi"], ESOL, "generate")
        _, out, err = p.run("predict", "esol", "in.smi", "--seed", "11", "-j", "3", expect=3)
        rows = table(out)
        assert compared(p, "logS", rows) >= 40 and len(rows) == 47, len(rows)
        assert "%d of 47 records have no prediction" % sum(r["problem"] != "" for r in rows) in err, err
        assert p.run("predict", ESOL, "in.smi", "--seed", "11", "-j", "1", expect=3)[1] == out
        assert {r["logS_domain"] for r in rows} == {"inside", "outside", ""}
        assert all((r["logS_interval90"] != "") == (r["logS_domain"] == "inside") for r in rows)


def structures_of_the_input_are_used_as_the_model_knows_them():
    with Project() as p:
        p.put("in.sdf", sdf_records(data("ligands.sdf.gz"), 12))
        screen(p, ["in.sdf"], GAP, "auto")
        _, out, _ = p.run("predict", "qm9-gap", "in.sdf", "--seed", "11", expect=None)
        compared(p, "gap", table(out))
        screen(p, ["in.sdf"], GAP, "keep")
        _, kept, _ = p.run("predict", "qm9-gap", "in.sdf", "--structures", "keep", expect=None)
        compared(p, "gap", table(kept))
        # The solubility model learned built structures, so these are built.
        screen(p, ["in.sdf"], ESOL, "generate")
        _, out, _ = p.run("predict", "esol", "in.sdf", "--seed", "11", "--columns", "title,logS,logS_interval90,logS_similarity,"
                          "logS_domain,logS_reasons,geometry,problem", expect=None)
        assert compared(p, "logS", table(out)) > 0 and {r["geometry"] for r in table(out)} <= {"mmff94", "uff", ""}


LEARN = """  read: {}
  prepare: {conformers: {source: %s}, labels: [logS], %s}
  graph: {edges: %s}
  split: {fractions: {train: 0.7, valid: 0.1, test: 0.2}}
  train: {name: m, family: [gp], targets: [{name: logS}]}
"""


def molecules_are_prepared_as_in_the_training():
    """Acids and bases, fragments and drawings as in the training; without a network no structures, whatever the training had."""
    acids = "CC(=O)[O-].[Na+] a\nCCN b\nOC(=O)CC[NH3+] c\nc1ccncc1 d\nCCCCN(=O)=O e\n"
    with open(os.path.join(os.path.dirname(MODELS), "data", "esol.csv")) as f:
        rows = list(csv.DictReader(f))[:60]
    with Project() as p:
        p.put("train.csv", "smiles,logS\n" + "".join("%s,%s\n" % (r["smiles"], r["logS"]) for r in rows))
        p.put("in.smi", acids)
        for where, form, source, edges in (("run", "ph: 7.4", "none", "topology"), ("run-2", "neutralise: true", "generate", "bonds"),
                                           ("run-3", "fragment: keep, drawing: as_drawn", "none", "topology")):
            p.workflow(["{path: train.csv, format: csv}"], LEARN % (source, form, edges), name="t.yaml", workdir="of " + where)
            p.run("run", "t.yaml", "-q")
            model = p.path("of " + where, "models", "m.safetensors")
            p.workflow(["in.smi"], "  read: {}\n  prepare: {conformers: {source: %s}, %s}\n  graph: {edges: %s}\n  score: {}\n" %
                       (source, form, edges), extra="models: {m: {path: %s}}\n" % model)
            p.run("run", "w.yaml", "-q", "--fresh")
            out = p.run("predict", model, "in.smi", "-c", "title,smiles,logS,logS_interval90,logS_similarity,logS_domain,logS_reasons,"
                        "geometry,problem")[1]
            stored = {r[0]: r[1:] for r in p.rows(SCORES, "logS", workdir=where)}
            assert len(stored) == 5
            for k, row in enumerate(table(out), 1):
                assert row["geometry"] == "none" and row["smiles"] == p.one("SELECT smiles FROM molecule WHERE mol_id=?", k, workdir=where)
                got = tuple(number(row["logS" + more]) for more in ("", "_interval90", "_similarity"))
                assert got + (row["logS_domain"], row["logS_reasons"] or None) == stored[k], (row, stored[k])
            assert ("CCCCN(=O)=O" in out) == ("[Na+]" in out) == ("keep" in form), out
        # A workflow with other settings is warned, and models of both are not asked together.
        assert "; fragment: keep, drawing: as_drawn" in p.run("model", "info", model)[1]
        p.run("run", "w.yaml", "-q", "workdir=other", "stages.prepare.fragment=largest")
        warned = "SELECT count(*) FROM event WHERE level='warn' AND instr(message,'trained with stages.prepare: {fragment: keep, drawing: as_drawn}')"
        assert [p.one(warned, workdir=w) for w in ("other", "run-3")] == [1, 0]
        p.run("run", "t.yaml", "-q", "workdir=plain", "stages.prepare.fragment=largest", "stages.prepare.drawing=standard")
        said = p.run("predict", model + "," + p.path("plain/models/m.safetensors"), "in.smi", expect=2)[2]
        assert "other settings of prepare (fragment, drawing)" in said, said


def several_structures_and_models_are_averaged_as_in_a_workflow():
    with Project() as p:
        p.put("in.smi", "".join(open(data("library.smi")).readlines()[:6]))
        screen(p, ["in.smi"], ESOL, "generate, count: 3")
        assert compared(p, "logS", table(p.run("predict", "esol", "in.smi", "--seed", "11", "--count", "3")[1])) == 6
        assert p.rows("SELECT min(spread) > 0 FROM prediction") == [(1,)]  # over the structures
        p.workflow(["in.smi"], "  read: {}\n  prepare: {conformers: {source: generate}}\n  graph: {edges: bonds}\n  score: {}\n",
                   extra="models: {a: {path: %s}, b: {path: %s}}\n" % (ESOL, ESOL), workdir="two")
        p.run("run", "w.yaml", "-q")
        rows = table(p.run("predict", "esol,esol", "in.smi", "--seed", "11")[1])
        assert [(float(r["logS"]), float(r["logS_stdev"])) for r in rows] == p.rows("SELECT mean, stdev FROM score ORDER BY mol_id",
                                                                                   workdir="two")


def a_gpu_gives_the_numbers_of_its_workflow():
    if not os.path.exists(os.path.join(os.environ["MOLSIEVE_EMULATED"], "libmolsieve_cuda.so")):
        sieve.skip("the emulated GPU is not built")
    env = dict(os.environ, MOLSIEVE_PLUGINS=os.environ["MOLSIEVE_EMULATED"])
    with Project() as p:
        p.put("in.smi", "".join(open(data("library.smi")).readlines()[:3]))
        p.workflow(["in.smi"], "  read: {}\n  prepare: {conformers: {source: generate, device: cpu}}\n  graph: {edges: bonds}\n"
                   "  score: {engine: cuda}\n", extra="models: {m: {path: %s}}\n" % ESOL)
        p.run("run", "w.yaml", "-q", env=env)
        assert compared(p, "logS", table(p.run("predict", "esol", "in.smi", "--seed", "11", "--engine", "cuda", "-j", "1", env=env)[1])) == 3


def each_format_has_one_row_for_each_record_in_order():
    with Project() as p:
        p.put("in.smi", ODD)
        names = [line.split()[1] for line in ODD.splitlines()]
        rows = table(p.run("predict", "esol", "in.smi", expect=3)[1])
        assert [r["title"] for r in rows] == names
        assert all((r["logS"] == "") == (r["problem"] != "") for r in rows), rows
        assert "Xe" in rows[3]["problem"] and rows[1]["smiles"] == "CC(=O", rows
        p.run("predict", "esol", "in.smi", "-o", "out.jsonl.gz", expect=3)
        lines = [json.loads(line) for line in gzip.open(p.path("out.jsonl.gz"), "rt")]
        assert [r["title"] for r in lines] == names and list(lines[0]) == list(rows[0])
        assert [r["logS"] for r in lines] == [number(r["logS"]) for r in rows]
        p.run("predict", "esol", "in.smi", "-o", "out.sdf", expect=3)
        records = open(p.path("out.sdf")).read().split("$$$$\n")[:-1]
        assert [r.split("\n")[0] for r in records] == names
        for record, row in zip(records, rows):
            assert (">  <logS>\n%s\n" % row["logS"] in record) == (row["logS"] != ""), record
            assert (">  <problem>\n" in record) == (row["problem"] != "")
        assert records[0].split("\n")[3].startswith(" 12 12") and records[1].split("\n")[3].startswith("  0  0")


def molecules_without_structures_are_drawn_with_their_stereo():
    """A reader of the SDF finds each molecule again; its bonds alone would be CC(O)F, FC=CCl."""
    smiles = ["C[C@@H](F)O", "F/C=C/Cl", "CCN", "C[C@H]1CC[C@@H](O)CC1", "C[N+](C)(C)CC", "[O]CC", "[2H]C(C)O", "CC=[C@]=CC"]
    with Project() as p:
        p.put("in.smi", "".join("%s m%d\n" % (s, k) for k, s in enumerate(smiles)) + "C/C=C=C=C=C=C/C cumulene\nCC(=O cut\n")
        p.put("lib.smi", "".join(open(p.path("in.smi")).readlines()[:-1]))
        p.put("t.csv", "smiles,y\n" + "".join("%sO,%s\n" % ("C" * k, k * k) for k in range(1, 40)))
        p.run("fit", "t.csv", "-t", "y", "--family", "trees", "-q")
        p.run("predict", "y.safetensors", "in.smi", "-o", "out.sdf", "-q", expect=3)
        p.run("predict", "y.safetensors", "in.smi", "-j", "1", "-o", "one.sdf", "-q", expect=3)
        assert open(p.path("one.sdf")).read() == open(p.path("out.sdf")).read()
        p.workflow(["lib.smi"], "  read: {}\n  prepare: {conformers: {source: none}, labels: none}\n  graph: {edges: topology}\n  score: {models: [m]}\n  rank: {objectives: [{property: y, goal: maximise}]}\n"
                   "  write: {sdf: hits.sdf}\n", extra="models: {m: {path: y.safetensors}}\n")
        p.run("run", "w.yaml", "-q")
        p.run("export", "sdf", "w.yaml", "-o", "export.sdf")
        p.run("next", "w.yaml", "-n", "9", "--goal", "maximize", "--max-similarity", "1", "-o", "next.sdf")
        wanted = [r["smiles"] for r in table(p.run("predict", "y.safetensors", "lib.smi", "-q")[1])][:-1]
        for name, n in (("out.sdf", 10), ("run/hits.sdf", 9), ("export.sdf", 9), ("next.sdf", 9)):
            records = {r.split("\n")[0]: r for r in open(p.path(name)).read().split("$$$$\n")[:-1]}
            said = [title for title, r in records.items() if r.endswith(">  <drawing>\nstereo not drawn\n\n")]
            assert len(records) == n and said == ["cumulene"], (name, said, sorted(records))
            p.run("predict", "y.safetensors", name, "-c", "title,smiles,problem", "-o", "again.csv", "-q", expect=None)
            again = {r["title"]: r["smiles"] for r in table(open(p.path("again.csv")).read())}
            assert [again["m%d" % k] for k in range(len(smiles))] == wanted, (name, again)


def tables_keep_their_quotes_and_give_their_columns():
    with Project() as p:
        p.put("in.csv", 'ID,note,SMILES,logS\n1,"a, ""quoted"" note",CCO,9\n2,"two\nlines",c1ccccc1,8\n3,short\n')
        _, out, _ = p.run("predict", "esol", "in.csv", "-c", "ID,note,logS,input_logS,mw", expect=3)
        rows = table(out)
        assert [r["ID"] for r in rows] == ["1", "2", "3"] and [r["note"] for r in rows] == ['a, "quoted" note', "two\nlines", "short"]
        assert [r["input_logS"] for r in rows] == ["9", "8", ""] and rows[0]["logS"] != "9" and rows[0]["mw"].startswith("46.0")
        assert rows[2]["logS"] == ""
        p.put("comma.csv", '"a, b",smiles\nx,CCO\n')
        assert p.run("predict", "esol", "comma.csv", "-c", ' "a, b" , smiles')[1] == '"a, b",smiles\nx,CCO\n'
        p.put("odd.tsv", "structure of it\tkey\nCCO\tx\n")
        _, out, _ = p.run("predict", "esol", "odd.tsv", "--smiles-column", "structure of it", "--id-column", "key", "-c", "title,smiles")
        assert table(out) == [{"title": "x", "smiles": "CCO"}]
        p.put("plain.csv", "compound no,Y,Drug\nk1,1.5,CCO\nk2,2.5,c1ccccc1\n")
        _, out, said = p.run("predict", "esol", "plain.csv", "-o", "plain.out.csv")
        assert "SMILES are in column Drug, by what it holds" in said, said
        assert "column `title` is empty; --id-column NAME fills it from a column of the input: compound no, Y, Drug" in said, said
        with open(p.path("plain.out.csv")) as f:
            assert [r["smiles"] for r in csv.DictReader(f)] == ["CCO", "c1ccccc1"]
        _, out, said = p.run("predict", "esol", "plain.csv", "--id-column", "compound no", "-o", "plain.out.csv")
        assert "is empty" not in said, said
        assert p.run("predict", "esol", "plain.csv", "-q")[2] == ""
        p.put("none.csv", "a,b\n1,2\n3,4\n")
        said = p.run("predict", "esol", "none.csv", "-o", "none.out.csv", expect=2)[2]
        assert "no column has SMILES; there are: a, b; --smiles-column names one" in said and not os.path.exists(p.path("none.out.csv")), said
        p.put("x.sdf", sdf_records(data("ligands.sdf.gz"), 2))
        # Which data fields an SDF has is known at its end.
        err = p.run("predict", "esol", "x.sdf", "-o", "x.jsonl", "-c", "title,nothing_such", expect=2)[2]
        assert "nothing_such is neither a column of the answer nor of x.sdf" in err and not os.path.exists(p.path("x.jsonl")), err


class Pipe:
    """predict as a child; its answers are awaited at most 60 s."""

    def __init__(self, *args):
        self.child = subprocess.Popen([PROGRAM, "predict", *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def line(self):
        assert select.select([self.child.stdout], [], [], 60)[0], "no answer"
        return self.child.stdout.readline().decode()

    def ask(self, text):
        os.write(self.child.stdin.fileno(), text)
        return self.line()

    def end(self, status):
        out, err = self.child.communicate(timeout=60)
        assert self.child.returncode == status, (self.child.returncode, err)
        return out.decode(), err.decode()


def a_pipe_is_answered_one_molecule_at_a_time():
    smiles = [line.split()[0] for line in open(data("library.smi"))][:8]
    with Project() as p:
        p.put("in.smi", "".join(s + "\n" for s in smiles))
        _, whole, _ = p.run("predict", "esol", "in.smi")
        p.put("in.csv", "smiles,id\n" + "".join("%s,%d\n" % (s, k) for k, s in enumerate(smiles)))
        _, of_table, _ = p.run("predict", "esol", "in.csv")
    pipe = Pipe("esol", "-")
    got = [pipe.line()] + [pipe.ask(s.encode() + b"\n") for s in smiles]
    assert "".join(got) == whole and pipe.end(0) == ("", "")
    pipe = Pipe("esol", "-", "-j", "1")
    os.write(pipe.child.stdin.fileno(), b"smiles,id\n")
    got = [pipe.line()] + [pipe.ask(b"%s,%d\n" % (s.encode(), k)) for k, s in enumerate(smiles)]
    assert "".join(got) == of_table and pipe.end(0) == ("", "")


def a_terminal_is_told_what_to_type():
    for args, told in (((), "type a SMILES, then Enter for its answer; Ctrl-D ends"), (("--input-format", "smi"), "type a SMILES, then Enter for its answer; Ctrl-D ends"),
                       (("--input-format", "csv"), "records are read from the terminal; Ctrl-D ends"), (("--quiet",), None)):
        mine, its = os.openpty()
        child = subprocess.Popen([PROGRAM, "predict", "esol", "-", *args], stdin=its, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        os.close(its)
        os.write(mine, (b"smiles\n" if "csv" in args else b"") + b"CCO\n\x04")
        err = child.communicate(timeout=60)[1]
        os.close(mine)
        assert child.returncode == 0 and err == ("molsieve: %s\n" % told if told else ""), (args, child.returncode, err)


def a_pipe_of_sdf_is_answered_record_by_record():
    records = [r + b"$$$$\n" for r in sdf_records(data("ligands.sdf.gz"), 4).split(b"$$$$\n")[:-1]]
    for args in ((), ("--input-format", "sdf")):
        pipe = Pipe("esol", "-", "--format", "jsonl", *args)
        for r in records:
            assert json.loads(pipe.ask(r))["title"] == r.split(b"\n")[0].decode().strip()
        pipe.child.stdin.close()
        assert pipe.child.wait(60) in (0, 3)


def records_in_inchi_are_told_to_have_several_tautomers():
    told = "InChI has one text for an amide and its imidic acid"
    with Project() as p:
        p.put("in.inchi", "InChI=1S/C3H7NO/c1-2-3(4)5/h2H2,1H3,(H2,4,5) amide\n")
        p.put("in.smi", "CCC(N)=O amide\n")
        _, out, err = p.run("predict", "esol", "in.inchi")
        assert told in err and "CCC(=N)O" in out, (out, err)
        assert told not in p.run("predict", "esol", "in.smi")[2]
        for name in ("in.inchi", "in.smi"):
            w = p.workflow([p.path(name)], "  read: {}\n  prepare: {conformers: {source: none}}\n", workdir=name[3:])
            said = p.run("run", w)[2]
            assert ("1 record is read from InChI: " + told in said) == (name == "in.inchi") and (told in said) == (name == "in.inchi"), said
        p.put("two.inchi", "InChI=1S/C3H7NO/c1-2-3(4)5/h2H2,1H3,(H2,4,5) amide\nInChI=1S/CH4/h1H4 methane\nInChI=1S/none none\n")
        w = p.workflow([p.path("two.inchi")], "  read: {}\n  prepare: {conformers: {source: none}}\n", workdir="two")
        assert "2 records are read from InChI: " + told in p.run("run", w, expect=None)[2]


def racemates_and_short_rows_are_told():
    """A racemate is the form that is drawn; a value that was forgotten in the middle shifts those behind it."""
    with Project() as p:
        told = "groups of enhanced stereo (racemates, relative stereo) are not read: the molecule is the form that is drawn"
        p.put("in.smi", "CCO a\nC[C@H](F)Cl |&1:1| b\nC[C@H](O)CC |o1:1| c\n")
        err = p.run("predict", "esol", "in.smi")[2]
        assert "2 records: " + told in err, err
        p.workflow(["in.smi"], "  read: {}\n  prepare: {conformers: {source: none}}\n")
        err = p.run("run", "w.yaml")[2]
        assert "/in.smi:2: " + told + ", here and in later records" in err and err.count("enhanced") == 1, err
        p.put("in.smi", "CCO a\nC[C@H](F)Cl |a:1| b\n")
        assert "enhanced" not in p.run("predict", "esol", "in.smi")[2] + p.run("run", "w.yaml")[2]
        told = "fewer values than columns: the last columns are taken to be empty"
        p.put("in.csv", "smiles,a,b\nCCO,1,2\nCCN,2\nCCC,3,\nCC\n")
        assert "2 records: " + told in p.run("predict", "esol", "in.csv")[2]
        p.workflow(["in.csv"], "  read: {}\n  prepare: {conformers: {source: none}}\n")
        assert "/in.csv:3: " + told + ", here and in later records" in p.run("run", "w.yaml")[2]


def a_stream_that_ends_within_a_line_is_told():
    pipe = Pipe("esol", "-")
    pipe.line()
    assert pipe.ask(b"CCO a\n").startswith("a,CCO,")
    os.write(pipe.child.stdin.fileno(), b"CCCC")
    pipe.child.stdin.close()
    pipe.child.stdin = None
    out, err = pipe.end(3)
    assert out.startswith(",CCCC,,") and "the input ended within this line" in out and "1 of 2 records" in err, (out, err)
    with Project() as p:  # an editor may leave out the last line end of a file
        p.put("in.smi", "CCO a\nCCCC b")
        assert len(table(p.run("predict", "esol", "in.smi")[1])) == 2


def a_file_that_is_read_is_no_standard_output():
    """`predict x.smi >> x.smi` would read what it writes, without end."""
    with Project() as p:
        p.put("a.smi", "CCO a\nCCN b\n")
        p.put("a.sdf", p.run("conformers", "a.smi")[1])

        def appended(name, *words, stdin=None):
            before = open(p.path(name), "rb").read()
            with open(p.path(name), "ab") as out, open(p.path(stdin or os.devnull), "rb") as given:
                done = subprocess.run(p.command(*words), cwd=p.dir, stdin=given, stdout=out, stderr=subprocess.PIPE, timeout=120)
            return done.returncode, done.stderr.decode(), open(p.path(name), "rb").read() == before
        for words in (["conformers", "a.smi"], ["predict", "esol", "a.smi"], ["energy", "a.sdf"]):
            status, err, same = appended(words[-1], *words)
            assert status == 2 and "%s: standard output is the file that is read" % words[-1] in err and same, (words, status, err)
        for words in (["conformers", "-"], ["predict", "esol", "-"]):
            status, err, same = appended("a.smi", *words, stdin="a.smi")
            assert status == 2 and "standard output is the file that is read" in err and same, (words, status, err)
        p.put("other.csv", "")
        assert appended("other.csv", "predict", "esol", "a.smi")[0] == 0


def a_closed_output_and_a_signal_end_it_at_once():
    pipe = Pipe("esol", "-")
    pipe.line()
    pipe.child.stdout.close()
    pipe.child.stdout = None
    os.write(pipe.child.stdin.fileno(), b"CCO\nCCC\n")
    status, err = pipe.child.wait(60), pipe.child.stderr.read()  # standard input is still open
    assert status == 6 and b"standard output was closed by its reader" in err, (status, err)
    pipe = Pipe("esol", "-")
    pipe.line()
    assert pipe.ask(b"CCO\n") != ""
    pipe.child.send_signal(signal.SIGTERM)
    assert pipe.child.wait(30) == 75


def mistakes_are_refused_before_any_work():
    with Project() as p:
        p.put("in.smi", "CCO\n")
        p.put("in.csv", "id,mol\n1,CCO\n")
        p.put("empty.smi", "")
        cases = ((2, ("esoll", "in.smi"), "did you mean esol"), (2, ("nothing", "in.smi"), "a shipped model (esol, qm9-gap, qm9-homo)"),
                 (5, ("in.smi", "in.smi"), "in.smi"), (6, ("esol", "CCO"), "echo 'SMILES' | molsieve predict esol -"),
                 (2, ("esol", "in.smi", "--format", "xlsx"), "allowed are csv, jsonl and sdf"), (2, ("esol", "in.smi", "in.csv"), "second one"),
                 (2, ("esol", "in.smi", "--columns", "title,,logS"), "a name is empty"),
                 (2, ("esol", "in.smi", "--columns", "logS,logS"), "logS is there twice"),
                 (2, ("esol", "in.csv", "--columns", "logS,pIC50"), "which has: id, mol"),
                 (2, ("esol", "in.smi", "--columns", "logS,logs"), "did you mean logS"),
                 (2, ("esol", "in.csv", "--smiles-column", "smiles"), "there are: id, mol"), (2, ("esol", "in.smi", "-j", "0"), "--jobs takes 1"),
                 (2, ("esol", "in.smi", "-o", "in.smi"), "the file that is read"), (2, ("esol", "in.smi", "--engine", "gpu"), "cpu, cuda, auto and ref"),
                 (2, ("esol", "in.smi", "--structures", "3d"), "auto, keep and generate"), (2, ("esol",), "IN"))
        for status, args, words in cases:
            _, out, err = p.run("predict", *args, expect=status)
            assert words in err + out, (args, out, err)
        p.put("head.csv", "smiles,logS\n")
        for args in (("empty.smi", "-o", "out.csv"), ("head.csv", "-o", "out.csv"), ("-",)):  # as `fit` (help exit-codes)
            _, out, err = p.run("predict", "esol", *args, expect=2)
            assert "there are no records" in err and not os.path.exists(p.path("out.csv")), err
        assert open(p.path("in.smi")).read() == "CCO\n"
        shutil.copy(ESOL, p.path("own.safetensors"))
        _, _, err = p.run("predict", "own.safetensors", "in.smi", "-o", "own.safetensors", expect=2)
        assert "own.safetensors is a model and is not replaced" in err and open(p.path("own.safetensors"), "rb").read() == open(ESOL, "rb").read(), err


def options_without_effect_are_refused_before_any_work():
    """A column of an input that has none, structures that no model reads, and a name of another format."""
    with Project() as p:
        p.put("in.smi", "CCO ethanol\n")
        p.put("in.xyz", "1\n\nO 0 0 0\n")
        p.put("x.sdf", sdf_records(data("ligands.sdf.gz"), 2))
        with open(os.path.join(os.environ["MOLSIEVE_SOURCE"], "workflows/data/esol.csv")) as f:
            rows = list(csv.DictReader(f))[:150]
        p.put("t.csv", "smiles,logS\n" + "".join("%s,%s\n" % (r["smiles"], r["logS"]) for r in rows))
        p.run("fit", "t.csv", "-t", "logS", "-q")
        flat = "logS.safetensors"
        cases = [("esol", "in.smi", "--id-column", "foo", "--id-column foo: in.smi is read as smi, which has neither columns nor data fields; leave the option out, or name a table with --input-format csv or tsv\n"),
                 ("esol", "in.smi", "--smiles-column", "bar", "--smiles-column bar: in.smi is read as smi, which has no columns; leave the option out, or name a table with --input-format csv or tsv\n"),
                 ("esol", "x.sdf", "--smiles-column", "bar", "is read as sdf"), ("esol", "in.xyz", "--id-column", "foo", "is read as xyz"),
                 (flat, "in.smi", "--structures", "keep", "--structures: the model reads no 3D structures, so the option would have no effect; leave it out\n"),
                 (flat, "in.smi", "--structures", "generate", "--structures: the model reads no"), (flat, "in.smi", "--count", "7", "--count: the model reads no"),
                 (flat + "," + flat, "in.smi", "--count", "7", "--count: none of the models reads 3D structures, so the option would have no effect; leave it out\n"),
                 ("esol", "x.sdf", "--structures", "keep", "--count", "2", "--count: no structures are built with --structures keep; leave one of the options out\n")]
        cases += [("esol", "in.smi", "-o", "x." + end, "let the name end in .csv, .jsonl or .sdf (with .gz compressed), or add --format csv, jsonl or sdf\n") for end in ("tsv", "json", "xyz", "TSV.gz", "csv.zst", "parquet")]
        for *args, words in cases:
            _, out, err = p.run("predict", *args, expect=2)
            assert words in err and out == "", (args, out, err)
            assert args[2] != "-o" or not os.path.exists(p.path(args[3])), args
        said = subprocess.run([PROGRAM, "predict", "esol", "-", "--id-column", "foo"], input=b"CCO\n", capture_output=True)
        assert said.returncode == 2 and said.stdout == b"" and b"standard input is read as smi" in said.stderr, said
        # What is asked for is given: a format in words, a name without an ending.
        p.run("predict", flat, "in.smi", "-o", "x.tsv", "--format", "csv")
        p.run("predict", flat, "in.smi", "-o", "answers.2026")
        assert open(p.path("x.tsv")).read() == open(p.path("answers.2026")).read() == p.run("predict", flat, "in.smi")[1]
        # A data field for the titles: one record has it, or none.
        p.put("some.sdf", open(p.path("x.sdf")).read().replace("M  END\n", "M  END\n> <key>\nK1\n\n", 1))
        got = p.run("predict", flat, "some.sdf", "--id-column", "key", "-c", "title", "-q")[1].splitlines()
        assert got == ["title", "K1", '""'], got
        p.put("empty.csv", "smiles,key\nCCO,\nCCN,\n")  # a column that is there may be empty
        assert p.run("predict", flat, "empty.csv", "--id-column", "key", "-c", "title,smiles", "-q")[1].splitlines()[1:] == [",CCO", ",CCN"]
        err = p.run("predict", flat, "some.sdf", "--id-column", "Key", "-o", "none.csv", expect=2)[2]
        assert "--id-column Key: no record of some.sdf has a value for it" in err and not os.path.exists(p.path("none.csv")), err


def the_help_names_every_shipped_model():
    with Project() as p:
        text = p.run("predict", "--help")[1]
        for name in os.listdir(MODELS):
            assert "\n  %s " % name.split(".")[0] in text, name


main([numbers_are_those_of_a_workflow_to_the_last_bit, structures_of_the_input_are_used_as_the_model_knows_them,
      molecules_are_prepared_as_in_the_training, several_structures_and_models_are_averaged_as_in_a_workflow, a_gpu_gives_the_numbers_of_its_workflow, each_format_has_one_row_for_each_record_in_order, molecules_without_structures_are_drawn_with_their_stereo,
      tables_keep_their_quotes_and_give_their_columns, a_pipe_is_answered_one_molecule_at_a_time, a_terminal_is_told_what_to_type,
      a_pipe_of_sdf_is_answered_record_by_record, records_in_inchi_are_told_to_have_several_tautomers, racemates_and_short_rows_are_told, a_stream_that_ends_within_a_line_is_told,
      a_closed_output_and_a_signal_end_it_at_once, a_file_that_is_read_is_no_standard_output, mistakes_are_refused_before_any_work, options_without_effect_are_refused_before_any_work, the_help_names_every_shipped_model])
