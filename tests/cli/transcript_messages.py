#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Messages that the other transcripts (transcript.py) do not reach, word for word, each after the reason for which it comes.
MOLSIEVE_WRITE=1 writes the files anew."""
import ctypes
import hashlib
import json
import os
import pty
import re
import shlex
import shutil
import sqlite3
import subprocess

from sieve import Project, main, older_model, skip
from transcript import SMILES, STATEMENTS, screened
from transcript_tools import Transcript, esol


class Long(Transcript):
    def put(self, text):
        super().put(re.sub(r"C{1000,}", "LONG", text))


def told(t, text):
    """Lines of a reason, a semicolon, variables of the environment and a command."""
    for line in text.strip().split("\n"):
        why, command = line.split("; ", 1)
        words = shlex.split(command.replace("LONG", "C" * 10001))
        n = next(i for i, word in enumerate(words) if not re.match(r"[A-Z_]+=", word))
        t.put("# because %s\n" % why)
        t.say(*words[n:], **dict(word.split("=", 1) for word in words[:n]))


def outside(t, why, *words, **files):
    """A command whose standard output or input is one of `files`."""
    done = subprocess.run(t.p.command(*words), cwd=t.p.dir, stderr=subprocess.PIPE, text=True, env=dict(os.environ, MOLSIEVE_CPU="portable"), **files)
    t.add("because " + why, "$ molsieve %s\n%s= %d" % (" ".join(words), "".join("! %s\n" % line for line in done.stderr.splitlines()), done.returncode))


def changed(path, *statements):
    db = sqlite3.connect(path)
    db.executescript(";".join(statements))
    db.close()


# ---- a workflow or a command with a mistake

CHECKED = r"""
no run has stored anything here; status
the others need a run; run w.yaml -q -j 1
a file is there, but no table; status nothing.db
two ranks are started, and only train shares work; OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 run w.yaml
the folder of the file is a file; run w.yaml --shard 0/2 --out w.yaml/s.db
no processor has such kernels; MOLSIEVE_CPU=none run w.yaml -q
no processor has such kernels; MOLSIEVE_CPU=none energy c.sdf
Open Babel does not find its tables; BABEL_DATADIR=/none conformers a.smi
the GPU part is a library of another program; MOLSIEVE_PLUGINS=plugins check w.yaml stages.score.engine=cuda
the GPU part is a library of another program; MOLSIEVE_PLUGINS=plugins check w.yaml stages.prepare.conformers.device=cuda
score has neither models nor a training; check w.yaml models={} stages.score={} "stages.rank.objectives=[{property: mw, goal: maximise}]"
nothing is scored, and acquire needs a property; check w.yaml models={} stages.score={} "stages.rank.objectives=[{property: mw, goal: maximise}]" "+stages.acquire={strategy: greedy, count: 2, property: logS}"
acquire needs another property than what is scored; check w.yaml "+stages.acquire={strategy: greedy, count: 2, property: logs}"
program and model score one property; check w.yaml "+stages.external={command: [cat, '{input}'], input: smiles, output: csv, property: logS, better: low}"
texts of variables grow beyond the limit; check many.yaml
Open Babel ends at the second rule; check w.yaml stages.prepare.alerts.file=deadly.smarts
nine values are too few to learn from; check values.yaml 'inputs=[{path: 9.csv}]'
ten values can be learned; check values.yaml 'inputs=[{path: 10.csv}]'
two atoms are in one place; energy same.sdf
JSON has one value of a name; query 'SELECT 1 AS a, 2 AS b, 3 AS a' runs/one --json
JSON has one value of a name; query 'SELECT 1 AS a, 2 AS b, 3 AS a' runs/one -f jsonl
tables may have several columns of a name; query 'SELECT 1 AS a, 2 AS b, 3 AS a' runs/one --csv
the name of a column is too long for a time; check values.yaml 'inputs=[{path: 10.csv}]' "stages.split={method: time, column: NAME}"
a pattern is longer than any molecule; check w.yaml "stages.rank.where=smarts('LONG')"
a pattern is longer than any molecule; search --where "smarts('LONG')" runs/one
no answers are written in such a form; predict esol a.smi -o x.XML.gz
only records are there yet; run w.yaml -q -j 1 workdir=early --until read
only records are there yet; export sdf early
the GPU part is a library of another program, so a processor computes; MOLSIEVE_PLUGINS=plugins run w.yaml -j 1 workdir=auto stages.score.engine=auto
"""


LEARNED = """  read: {}
  prepare: {conformers: {source: none}, labels: [y]}
  graph: {edges: topology}
  split: {method: random}
  train: {name: m, family: [gp], targets: [{name: y, better: high}]}
"""


def a_mistake_is_told_with_its_reason():
    with Project() as p:
        t = Long(p, "messages")
        screened(p)
        p.put("nothing.db", "")
        p.put("many.yaml", "format: 1\nname: many\nvars:\n  a: %s\n" % ("x" * 1000) + "".join(
            "  %s: %s\n" % (b, ("${vars.%s}" % a) * 12) for a, b in ("ab", "bc", "cd")) + "inputs: [{path: '${vars.d}'}]\nstages: {read: {}}\n")
        p.put("deadly.smarts", "C=O fine\nn1nnnc2cccc1n:1:c(:c(:c(:c(:c:%12 dies\n")
        for n in (9, 10):
            p.put("%d.csv" % n, "id,smiles,y\n" + "".join("a%d,%s,%s\n" % (k, "C" * (k + 1), k if k < n else "") for k in range(20)))
        p.workflow(["9.csv"], LEARNED, name="values.yaml")
        os.mkdir(p.path("plugins"))
        ctypes.CDLL("libm.so.6")
        with open("/proc/self/maps") as f:
            library = next(line.split()[-1] for line in f if "/libm.so" in line or "/libm-" in line)
        shutil.copy(library, p.path("plugins/libmolsieve_cuda.so"))
        p.put("same.sdf", "same\n\n\n  3  2  0  0  0  0  0  0  0  0999 V2000\n    0.0000    0.0000    0.0000 O   0  0\n" + "    0.9000    0.3000    0.1000 H   0  0\n" * 2 +
              "  1  2  1  0\n  1  3  1  0\nM  END\n$$$$\n")
        told(t, CHECKED.replace("NAME", "x" * 201))
        told(t, "some of twenty molecules have several structures; run values.yaml -q 'inputs=[{path: 10.csv}]' --until split")
        changed(p.path("run/results.db"), "DELETE FROM row_sum; UPDATE molecule SET structures=mol_id WHERE mol_id>4")
        told(t, "some of twenty molecules have several structures; plan values.yaml 'inputs=[{path: 10.csv}]' --json")
        with open("/dev/full", "w") as full:
            outside(t, "standard output is a full disk", "top", stdout=full)
            outside(t, "standard output is a full disk", "help", "rank", stdout=full)
        ends = os.pipe()
        os.close(ends[0])
        outside(t, "nobody reads the answers", "predict", "esol", "a.smi", stdout=ends[1])
        with open(p.path("a.smi"), "a") as same:
            outside(t, "the answers would be written to the file that is read", "predict", "esol", "a.smi", stdout=same)
        t.add("a.smi is as it was", str(open(p.path("a.smi")).read() == SMILES))
        os.close(ends[1])
        for more in ([], ["--input-format", "sdf"]):
            terminal, end = pty.openpty()
            os.write(terminal, b"\x04")
            outside(t, "the molecules come from a terminal", "predict", "esol", "-", *more, stdin=end, stdout=subprocess.DEVNULL)
            os.close(end)
            os.close(terminal)
        t.end()


# ---- results that were changed, and shards

LABELS = """  read: {unit: 4}
  prepare: {conformers: {source: none}, labels: [logS], properties: {logS: {unit: mol}}}
  graph: {edges: topology}
"""
KEPT = """  read: {unit: 4}
  prepare: {conformers: {source: none}}
"""
LIBRARY = "SELECT json_extract(extra_json,'$.library') IS NOT NULL AS library, json_extract(extra_json,'$.positions') AS positions, n_ok FROM stage JOIN unit USING(stage_id)"
GONE = "DELETE FROM row_sum; DELETE FROM %s"
RETRIED = """DELETE FROM row_sum; CREATE TEMP TABLE another AS SELECT * FROM run; UPDATE another SET run_id=run_id+100, uuid='u'||run_id;
INSERT INTO run SELECT * FROM another; UPDATE run SET command='retry', state='stopped' WHERE run_id=(SELECT %s(run_id) FROM run)"""


def results_that_were_changed_are_told_with_the_reason():
    with Project() as p:
        t = Long(p, "changed")
        screened(p)
        p.put("lib.csv", "id,smiles,logS\n" + "".join("M%d,%s,%s\n" % (k, s, y) for k, (s, y) in enumerate(esol(12))))
        p.put("l.csv", "id,logS\nM2,-1\n")
        p.put("bad.smi", "C( a\nC1 b\nC( c\n")
        p.put("x.smi", "CC ethane\n[Xe] noble\n")
        p.put("table.csv", "CCO,1\nCCC,2\nCCN,3\n")
        p.put("what.csv", "what,n\nCCC,2\nCCN,3\n")
        p.workflow(["lib.csv"], LABELS, name="l.yaml", workdir="labels")
        p.put("co.csv", "CO,drawn,logS,logS_unit\n" + "".join("%d,%s,%s,mol\n" % (k, s, y) for k, (s, y) in enumerate(esol(8))))
        p.put("lco.csv", "CO,InChIKey,logS\n1,UHOVQNZJYSORNB-UHFFFAOYSA-N,-1\n")
        p.put("evco.csv", "CO,InChIKey,logS,logS_unit\n1,UHOVQNZJYSORNB-UHFFFAOYSA-N,-1,eV\n")
        p.workflow(["co.csv"], LABELS.replace(", properties: {logS: {unit: mol}}", ""), name="co.yaml", workdir="co")
        p.workflow(["bad.smi"], KEPT, name="b.yaml", workdir="bad", extra="limits: {failures: {max_fraction: 1}}\n")
        p.workflow(["table.csv"], KEPT, name="t.yaml", workdir="table")
        told(t, """the table has no names of columns; run t.yaml -q
the table has no names of columns; predict esol table.csv
the table has no names of columns; conformers table.csv
no column is called smiles; run t.yaml -q workdir=what 'inputs=[{path: what.csv}]'
the first column has the name of a molecule; predict esol co.csv -q -c CO,logS
the first column has the name of a molecule; fit co.csv -t logS --family gp -n -o co
the first column has the name of a molecule; run co.yaml -q "inputs=[{path: co.csv, columns: {smiles: drawn}}]"
the first column has the name of a molecule; label co lco.csv -p logS -n
the first column has the name of a molecule; label co evco.csv -p logS -n
the library has labels; run l.yaml -q
a label is added; label labels l.csv -p logS --unit mol --replace
the library has another unit than the added label; run l.yaml -q stages.prepare.properties.logS.unit=cm
no record of any shard gives a molecule; run b.yaml -q --shard 0/2
no record of any shard gives a molecule; run b.yaml -q --shard 1/2
no record of any shard gives a molecule; merge b.yaml --of 2
the next merge needs shards; run w.yaml -q --shard 0/2 workdir=lost
the next merge needs shards; run w.yaml -q --shard 1/2 workdir=lost
""")
        changed(p.path("lost/shards/00001-of-00002/features.db"), "DELETE FROM block WHERE unit=1")
        told(t, "a shard lost a unit; merge w.yaml --of 2 workdir=lost")
        shutil.rmtree(p.path("lost/shards"))
        told(t, """what was begun with other shards is not continued; run w.yaml -q --shard 0/2 workdir=lost 'inputs=[{path: lib.csv}]'
what was begun with other shards is not continued; run w.yaml -q --shard 1/2 workdir=lost 'inputs=[{path: lib.csv}]'
what was begun with other shards is not continued; merge w.yaml --of 2 workdir=lost 'inputs=[{path: lib.csv}]'
what was begun with other shards is not continued; status lost
what was begun with other shards is not continued; db check lost
""")
        told(t, """a label is no longer asked for; run l.yaml -q workdir=fewer
a label is no longer asked for; run l.yaml -q workdir=fewer stages.prepare.labels=[none]
a label is no longer asked for; query "SELECT count(*) AS n FROM property" fewer
a molecule of one atom is asked; run b.yaml -q workdir=xenon 'inputs=[{path: x.smi}]' "stages.prepare.keep=similarity('CC') < 0.5"
a molecule of one atom is asked; query "SELECT title, status, reason FROM record" xenon
""")
        p.put("a.hin", "mol 1\natom 1 C C ** - 0.0 0 0 0 0\nendmol 1\n")
        p.put("b.smi", "CC\n")
        for inputs in ("{path: a.hin}, {path: b.smi}", "{path: b.smi}, {path: a.hin}", "{path: b.smi}"):
            t.put("# because Open Babel reads the first format, the second, or none\n")
            t.say("run", "b.yaml", "-q", "--until", "read", "workdir=read", "inputs=[%s]" % inputs)
            t.say("query", LIBRARY, "read")
        t.say("run", "w.yaml", "-j", "1", "-q")
        shutil.copytree(p.path("runs/one"), p.path("first"))
        for why, name, statements, command in (
                ("a run was done, then a retry was stopped", "results", [RETRIED % "max"], "retry w.yaml -q"),
                ("a retry was stopped, then a run was done", "results", [RETRIED % "min"], "retry w.yaml -q"),
                ("a molecule was removed", "results", [GONE % "molecule WHERE mol_id=(SELECT min(mol_id) FROM molecule)"], "db check runs/one"),
                ("a molecule was removed", "results", [GONE % "molecule WHERE mol_id=(SELECT min(mol_id) FROM molecule)"], "run w.yaml -q -j 1 --force score")):
            changed(p.path("runs/one/%s.db" % name), *statements)
            told(t, "%s; %s" % (why, command))
            shutil.rmtree(p.path("runs/one"))
            shutil.copytree(p.path("first"), p.path("runs/one"))
        t.end()


# ---- models that do not fit to each other or to a workflow

NETWORK = """  read: {unit: 10}
  prepare: {conformers: {source: generate}, labels: [logS]}
  graph: {edges: bonds}
  split: {method: random}
  train: {targets: [{name: logS}], family: [se3], model: {layers: 1, degrees: 1, channels: 4, heads: 1}, epochs: 1, members: 2}
  evaluate: {on: [train]}
  score: {}
"""
JUDGED = """  read: {}
  prepare: {neutralise: true, conformers: {source: none}, labels: [logS, T]}
  graph: {edges: topology}
  evaluate: {models: [number, moles], targets: [{name: logS, factor: 2}], on: [new, train]}
  score: {models: [number]}
"""
BUILT = """  read: {}
  prepare: {conformers: {source: generate}}
  graph: {edges: bonds}
  score: {models: [whole]}
"""
ELEMENTS = "C N O F Na K Li Rb Cs S P Si B Al Ga In Tl Ge Sn Pb As Sb Bi Se Te Br I Cu Ag Au Zn Cd Hg Mg Ca Sr Ba Ti V Cr Mn Fe Co Ni"
CHLORIDE = """%s

chloride 3D
  2  1  0  0  0  0  0  0  0  0999 V2000
    0.0000    0.0000    0.5000 %-3s 0  0  0  0  0  0  0  0  0  0  0  0
    2.0000    0.0000    0.0000 Cl  0  0  0  0  0  0  0  0  0  0  0  0
  1  2  1  0
M  END
> <logS>
%d

$$$$
"""


MEMBERS = """  read: {}
  prepare: {conformers: {source: none}, labels: [logS], properties: {logS: {task: classification}}}
  graph: {edges: topology}
  split: {method: random, fractions: {train: 0.6, valid: 0.2, test: 0.2}}
  train: {targets: [{name: logS}], family: [forest, gp], members: 2}
  evaluate: {on: [train, valid]}
"""
HALF = """  read: {}
  prepare: {conformers: {source: generate}, labels: [logS]}
  graph: {edges: bonds}
  evaluate: {models: [two], on: [new, train]}
"""


def small_molecules(p, n=26):
    rows = [(s, y) for s, y in esol(400) if len(s) < 12][:n]
    p.put("t.csv", "id,smiles,logS,high,T\n" + "".join("m%d,%s,%s,%d,%d\n" % (k, s, y, float(y) > -2, k % 5) for k, (s, y) in enumerate(rows)))
    p.put("class.csv", "id,smiles,logS\n" + "".join("m%d,%s,%d\n" % (k, s, float(y) > -2) for k, (s, y) in enumerate(rows)))
    p.put("a.smi", "CCO ethanol\nCCC propane\n")
    p.workflow(["t.csv"], NETWORK, name="t.yaml", workdir="t")


def edited(p, path, to, section, change):
    """The same model with something else in a section of its metadata."""
    def edit(metadata):
        of = json.loads(metadata[section])
        change(of)
        metadata[section] = json.dumps(of)
    older_model(p.path(path), p.path(to), edit)


def models_that_do_not_fit_are_told_with_the_reason():
    with Project() as p:
        t = Transcript(p, "unfit")
        small_molecules(p)
        os.makedirs(p.path("share/workflows"))
        p.workflow(["class.csv"], MEMBERS, name="members.yaml", workdir="members")
        for name, value in (("words", "high"), ("commas", "1,%d"), ("both", "1.000,%d")):
            p.put(name + ".csv", "smiles,logS\n" + "".join('%s,"%s"\n' % ("C" * (k + 1), value.replace("%d", str(k))) for k in range(24)))
        for name, n in (("e.sdf", 44), ("few.sdf", 28)):
            p.put(name, "".join(CHLORIDE % (e, e, k) for k, e in enumerate(ELEMENTS.split()[:n])))
        told(t, """a folder without models is named; MOLSIEVE_SHARE=share predict esol a.smi
two networks are trained; run t.yaml -q -j 1
two networks are one model; model join t/models/e2e-1.safetensors t/models/e2e-2.safetensors -o two.safetensors
two networks are one model; bench --memory --model two.safetensors
two models of a class have a mean; run members.yaml -q -j 1
two models of a class have a mean; query "SELECT part, metric, max(round(value,3)) AS value, max(n) AS n FROM evaluation WHERE metric LIKE 'ensemble%' GROUP BY 1, 2 ORDER BY 1, 2" members
the values are texts; fit words.csv -t logS --family gp -n -o words
the values have commas; fit commas.csv -t logS --family gp -n -o commas
the values have commas and points; fit both.csv -t logS --family gp -n -o both
a class is learned; fit class.csv -t logS --family trees --split random -q -o class
a number is learned; fit t.csv -t logS --family trees --split random --inputs T -q -o number
""")
        t.say("predict", ",".join(["two.safetensors"] * 32), "a.smi", "-q", "-c", "title")
        t.say("predict", ",".join(["two.safetensors"] * 33), "a.smi", "-q", "-c", "title")
        one = "t/models/e2e-1.safetensors"
        edited(p, one, "several.safetensors", "provenance", lambda of: of.update(conformers={"count": 4, "window": 10.0, "dielectric": 4.0}))
        edited(p, one, "whole.safetensors", "provenance", lambda of: of.update(prepare={"fragment": "keep"}))
        edited(p, "number.safetensors", "moles.safetensors", "target", lambda of: of["targets"][0].update(unit="mol"))
        edited(p, "number.safetensors", "warm.safetensors", "inputs", lambda of: of["columns"][0].update(unit="C"))
        p.put("double.csv", "id,smiles,logS,T,T\n" + "".join("d%d,%sO,%d,1,2\n" % (k, "C" * (k + 1), k) for k in range(12)))
        names = "number class moles warm whole".split()
        p.workflow(["t.csv"], JUDGED, name="judged.yaml", workdir="judged", extra="models: {%s}\n" % ", ".join("%s: {path: %s.safetensors}" % (n, n) for n in names))
        p.workflow(["a.smi"], BUILT, name="built.yaml", workdir="built", extra="models: {whole: {path: whole.safetensors}}\n")
        p.workflow(["a.smi"], BUILT, name="many.yaml", extra="models: {whole: {path: whole.safetensors}, %s}\n" % ", ".join("m%d: {path: whole.safetensors}" % k for k in range(64)))
        p.workflow(["e.sdf"], NETWORK.replace("unit: 10", "unit: 100").replace("generate", "keep").replace("random", "random, fractions: {train: 0.9, valid: 0.05, test: 0.05}")
                   .split("  evaluate")[0].replace("members: 2", "members: 1"), name="e.yaml", workdir="e")
        told(t, """one of them learned from several structures; predict t/models/e2e-1.safetensors,several.safetensors a.smi -c title
several are asked for, which is for both; predict t/models/e2e-1.safetensors,several.safetensors a.smi -c title --count 2
one of them learned from all fragments; predict t/models/e2e-1.safetensors,whole.safetensors a.smi -c title
one of them predicts a class; predict number.safetensors,class.safetensors a.smi --set T=3
one of them predicts a class; check judged.yaml stages.score.models=[number,class]
numbers of another unit are not averaged with a class; check judged.yaml stages.score.models=[class,moles]
the column has another unit than the model's; check judged.yaml stages.score.models=[warm] stages.prepare.properties.T.unit=K
the column has the model's unit; check judged.yaml stages.score.models=[warm] stages.prepare.properties.T.unit=C
one factor is for models of two units; run judged.yaml -q -j 1
without a factor each is compared in its unit; run judged.yaml -q -j 1 "stages.evaluate.targets=[{name: logS}]"
a table has two columns of a name; predict number.safetensors double.csv
a table has two columns of a name; check judged.yaml 'inputs=[{path: double.csv}]' stages.score.models=[number]
the workflow keeps the largest fragment only; run built.yaml -q -j 1
the workflow keeps all fragments; run built.yaml -q -j 1 stages.prepare.fragment=keep
the workflow keeps drawings instead; run built.yaml -q -j 1 stages.prepare.drawing=as_drawn
a label has a longer name than can be compared; check judged.yaml "stages.evaluate.targets=[{name: logS, column: %s}]"
more elements than a network can read; run e.yaml -q -j 1
more elements are named than a network can read; check e.yaml stages.train.model.elements=NAMED
more models are named than a run can have; check many.yaml
as many elements as a network can read; run e.yaml -q -j 1 workdir=few 'inputs=[{path: few.sdf}]'
""".replace("NAMED", "[%s]" % ",".join(ELEMENTS.split()[:33])) % ("x" * 201))
        t.end()


# ---- a training that was changed

def a_training_that_was_changed_is_told_with_the_reason():
    with Project() as p:
        t = Transcript(p, "trained")
        small_molecules(p)
        p.workflow(["t.csv"], NETWORK.replace("[{name: logS}]", "[{name: logS}, {name: high}]").replace("[logS]", "[logS, high]"), name="two.yaml", workdir="two")
        p.workflow(["t.csv"], NETWORK.replace("generate", "none").replace("bonds", "topology").replace("[se3]", "[trees], inputs: {columns: [T]}")
                   .replace(", model: {layers: 1, degrees: 1, channels: 4, heads: 1}, epochs: 1, members: 2", ""), name="trees.yaml", workdir="trees")
        p.workflow(["t.csv"], KEPT, name="kept.yaml", workdir="kept")
        p.workflow(["t.csv"], HALF, name="half.yaml", workdir="half", extra="models: {two: {path: two/models/e2e-1.safetensors}}\n")
        told(t, """the others need trainings; run t.yaml -q -j 1
the others need trainings; run two.yaml -q -j 1
the others need trainings; run trees.yaml -q -j 1
the molecule has no score; run t.yaml -q -j 1 workdir=read --until prepare
the molecule has no score; explain 1 read --svg x.svg
it is killed after its first epoch; MOLSIEVE_FAULT=train.checkpoint.after:1 run t.yaml -q -j 1 workdir=killed
it begins again by force; run t.yaml -q -j 1 workdir=killed --from train
it begins again by force; query "SELECT message FROM event WHERE message LIKE '%earlier run%'" killed
""")
        shutil.copytree(p.path("t"), p.path("first"))
        edited(p, "t/models/e2e-1.safetensors", "other.safetensors", "target", lambda of: of.update(name="other"))
        for k, by in ((1, "other.safetensors"), (2, "two/models/e2e-2.safetensors")):
            shutil.copy(p.path(by), p.path("t/models/e2e-%d.safetensors" % k))
            with open(p.path(by), "rb") as f:
                changed(p.path("t/results.db"), "DELETE FROM row_sum", "UPDATE model SET sha256='%s' WHERE name='e2e-%d'" % (hashlib.sha256(f.read()).hexdigest(), k))
            told(t, "network %d is another, and so is its hash; run t.yaml -q -j 1 --force evaluate" % k)
            shutil.rmtree(p.path("t"))
            shutil.copytree(p.path("first"), p.path("t"))
        changed(p.path("t/features.db"), "DELETE FROM block WHERE kind='conformer' AND unit=0")
        told(t, """structures of ten molecules were removed; next t -n 26 --goal maximize --measured -o plate.sdf
structures of ten molecules were removed; search --where "mw > 0" -f sdf -o found.sdf t
the structure of one molecule is asked for; search --where "smiles = 'c1cccs1'" -f sdf -o found.sdf t
the structure of one molecule is asked for; export sdf t --where "smiles = 'c1cccs1'" -o found.sdf
a table is no file; next t --goal maximize -f table -o plate.csv
one of its targets has no label; run half.yaml -q -j 1
""")
        changed(p.path("trees/results.db"), "DELETE FROM row_sum", "DELETE FROM label WHERE mol_id=3 AND property_id=(SELECT property_id FROM property WHERE name='T')")
        told(t, """a value of a column was removed; run trees.yaml -q -j 1 --force score
a record is added to those that were read; run kept.yaml -q -j 1 workdir=more --until read
""")
        changed(p.path("more/results.db"), "DELETE FROM row_sum", "INSERT INTO record(record_id,file_id,ordinal,byte_offset,line,title,status) "
                "SELECT 100+record_id,file_id,100+ordinal,byte_offset,100+line,'late',status FROM record WHERE record_id<3")
        told(t, """a record is added to those that were read; run kept.yaml -q -j 1 workdir=more
a unit is removed from a shard; run kept.yaml -q -j 1 --shard 0/2
a unit is removed from a shard; run kept.yaml -q -j 1 --shard 1/2
""")
        changed(p.path("kept/shards/00001-of-00002/results.db"), "DELETE FROM row_sum", "DELETE FROM unit WHERE unit=(SELECT max(unit) FROM unit) AND "
                "stage_id=(SELECT stage_id FROM stage WHERE name='read')")
        told(t, "a unit is removed from a shard; merge kept.yaml --of 2")
        t.end()


# ---- molecules of several parts

MIXED = """Oc1ccccc1.C1CCCCC1 mixed
Oc1ccccc1 phenol
CCO ethanol
c1ccc2ccccc2c1.c1ccncc1 rings
"""
WHOLE = """  read: {}
  prepare: {conformers: {source: generate}, fragment: keep}
  graph: {edges: bonds}
  score: {models: [esol]}
  rank: {objectives: [{property: logS, goal: maximise}], top: 9}
"""
WATER = "%10.4f    0.0000    0.0000 O   0  0\n%10.4f    0.9300    0.0000 H   0  0\n%10.4f    0.2400   -0.9000 H   0  0\n"
TAKEN = """
the molecules keep their parts; run w.yaml -q -j 1
two molecules of water are apart; energy two.sdf
two molecules of water are near; energy near.sdf
the part with rings is the smaller one; search --scaffold Oc1ccccc1.CCCCCCCCCC runs/one
the larger part is not the molecule; query "SELECT round(similarity('CCO', 'CCO.CCCCCCCC'), 3) AS s" runs/one
the larger part is not the molecule; export csv runs/one --where "smiles = 'OCC.CCCC'"
the larger part is not the molecule; export csv runs/one --where "scaffold = 'c1ccccc1.CCCCCCCCC'"
both parts move the score; explain 1 runs/one
"""


def molecules_of_several_parts_are_taken_whole():
    with Project() as p:
        t = Transcript(p, "parts")
        screened(p)
        p.put("s.smi", MIXED)
        p.workflow(["s.smi"], WHOLE, extra="models: {esol: {path: esol.safetensors}}\nlimits: {failures: {max_fraction: 1}}\n", workdir="runs/one")
        for name, x in (("two", 50), ("near", 3)):
            p.put(name + ".sdf", "waters\n\n\n  6  4  0  0  0  0  0  0  0  0999 V2000\n" + WATER % (0, 0.2, -0.2) + WATER % (x, x + 0.2, x - 0.2) +
                  "  1  2  1  0\n  1  3  1  0\n  4  5  1  0\n  4  6  1  0\nM  END\n$$$$\n")
        told(t, TAKEN)
        t.say("report", "runs/one", "-o", "r.html")
        t.add("scaffolds in r.html", "\n".join(re.findall(r'<h4.*?</h4>|id="scaffold\d+"|href="#scaffold\d+"', open(p.path("r.html")).read())))
        t.end()


# ---- a signal

ROUNDS = """  read: {unit: 10}
  prepare: {conformers: {source: none}, labels: [none]}
  graph: {edges: topology}
  split: {fractions: {train: 1, valid: 0, test: 0}}
  train: {name: m, family: [gp], targets: [{name: logS, better: high}]}
  score: {}
  acquire: {strategy: greedy, count: 10, answers: {table: told.csv}, campaign: {rounds: 2, first: diverse}}
"""
SIGNALS = r"""
the answers of a round are stored; INTERRUPTED='UPDATE acquired SET outcome' campaign c.yaml -q -j 1
the next round is chosen; INTERRUPTED='SELECT m.mol_id, acquisition(' campaign c.yaml -q -j 1
nothing was lost; campaign c.yaml -q -j 1
the workers of another round wait; campaign c.yaml -q -j 1 --parts 2 stages.acquire.campaign.rounds=3
a part is scored; INTERRUPTED='SELECT 1 FROM scored' campaign c.yaml -q -j 1 --part 0/2 stages.acquire.campaign.rounds=3
nothing was lost; campaign c.yaml -j 1 --part 0/2 stages.acquire.campaign.rounds=3
the first shard is merged; INTERRUPTED='merge_done WHERE shard=0' merge k.yaml --of 2
nothing was lost; merge k.yaml --of 2
the rows of a table are read; INTERRUPTED='SELECT value, source FROM measured' label k new.csv
nothing was lost; label k new.csv
"""


def a_signal_is_told_and_nothing_is_lost():
    if not os.path.exists(STATEMENTS):
        skip("the library that sends the signal does not work together with sanitizers")
    with Project() as p:
        t = Transcript(p, "signals")
        p.put("lib.csv", "id,smiles,logS\n" + "".join("M%d,%s,%s\n" % (k, s, y) for k, (s, y) in enumerate(esol(40))))
        p.put("told.csv", "CO,id,logS\n" + "".join("%d,M%d,%s\n" % (k, k, y) for k, (_, y) in enumerate(esol(40))))  # as if of a molecule
        p.workflow(["lib.csv"], ROUNDS, name="c.yaml", workdir="c")
        p.workflow(["lib.csv"], KEPT, name="k.yaml", workdir="k")
        p.put("new.csv", "id,logS\nM0,-0.77\nM1,-3.3\n")
        for k in (0, 1):
            p.run("run", "k.yaml", "-q", "--shard", "%d/2" % k)
        told(t, SIGNALS)
        t.end()


main([a_mistake_is_told_with_its_reason, results_that_were_changed_are_told_with_the_reason, models_that_do_not_fit_are_told_with_the_reason,
      a_training_that_was_changed_is_told_with_the_reason, a_signal_is_told_and_nothing_is_lost,
      molecules_of_several_parts_are_taken_whole])
