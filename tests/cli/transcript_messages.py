#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Messages that the other transcripts (transcript.py) do not reach, word for word, each after the reason for which it comes.
MOLSIEVE_WRITE=1 writes the files anew."""
import ctypes
import os
import pty
import re
import shlex
import shutil
import sqlite3
import subprocess

from sieve import Project, main
from transcript import screened
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
a pattern is longer than any molecule; check w.yaml "stages.rank.where=smarts('LONG')"
a pattern is longer than any molecule; search --where "smarts('LONG')" runs/one
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
        told(t, CHECKED)
        told(t, "some of twenty molecules have several structures; run values.yaml -q 'inputs=[{path: 10.csv}]' --until split")
        changed(p.path("run/results.db"), "DELETE FROM row_sum; UPDATE molecule SET structures=mol_id WHERE mol_id>4")
        told(t, "some of twenty molecules have several structures; plan values.yaml 'inputs=[{path: 10.csv}]' --json")
        with open("/dev/full", "w") as full:
            outside(t, "standard output is a full disk", "top", stdout=full)
            outside(t, "standard output is a full disk", "help", "rank", stdout=full)
        ends = os.pipe()
        os.close(ends[0])
        outside(t, "nobody reads the answers", "predict", "esol", "a.smi", stdout=ends[1])
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
        p.workflow(["bad.smi"], KEPT, name="b.yaml", workdir="bad", extra="limits: {failures: {max_fraction: 1}}\n")
        p.workflow(["table.csv"], KEPT, name="t.yaml", workdir="table")
        told(t, """the table has no names of columns; run t.yaml -q
the table has no names of columns; predict esol table.csv
the table has no names of columns; conformers table.csv
no column is called smiles; run t.yaml -q workdir=what 'inputs=[{path: what.csv}]'
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


main([a_mistake_is_told_with_its_reason, results_that_were_changed_are_told_with_the_reason])
