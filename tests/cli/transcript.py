#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the commands print and a run stores, word for word: tests/golden/transcript/NAME.txt has what each command
printed when the file was last reviewed. What differs between machines is replaced by a letter (`plain`).
After a change that is meant, MOLSIEVE_WRITE=1 writes the file anew: read the difference before you commit it."""
import os
import re
import shutil
import sys

import sieve
from sieve import Project, main

SOURCE = os.environ.get("MOLSIEVE_SOURCE", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
STATEMENTS = os.path.join(os.path.dirname(os.path.abspath(sieve.PROGRAM)), "../tests/libstatements.so")  # not together with sanitizers
COMMIT_OR_NUMBER = r"\b[0-9a-f]{7,12}\b|\d[\d.,e+-]*"
PROGRESS = re.compile(r"Z info  \w+ +[\d,]+ of ")  # on a slow machine
GOLDEN = os.path.join(SOURCE, "tests/golden/transcript")


def plain(text, p):
    """Without paths of this machine, times, sizes and hashes, and without the digits that kernels round differently."""
    for old, new in ((os.path.realpath(p.dir), "DIR"), (p.dir, "DIR"), (os.path.realpath(sieve.PROGRAM), "PROGRAM"),
                     (os.path.realpath(SOURCE), "SOURCE"), (os.uname().nodename, "HOST")):
        text = text.replace(old, new)
    for pattern, new in (
            (r"(?<![\w.])-?\d+\.\d{4,}(e-?\d+)?", lambda m: "%.3g" % float(m[0])), (r"\b[0-9a-f]{40}\b", "COMMIT"),
            (r"20\d\d-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?Z?", "TIME"), (r"\b20\d\d-\d\d-\d\d\b", "DATE"), (r"\b[0-9a-f]{64}\b", "HASH"),
            (r"\b[0-9a-f]{12}\b", "KEY"), (r"\b[0-9a-f]{8}-[0-9a-f-]{27}\b", "UUID"), (r"\bpid \d+", "pid N"), (r"backup-\d{14}", "backup-TIME"),
            (r"molsieve-try-\w{6}", "TRY"),
            (r"\b\d+(\.\d+)?(ms|s)\b", "Ns"), (r"\b\d+(\.\d+)? ?([kMGT]?B)\b", "SIZE"),
            (r'"(wall_s|cpu_s)": [\d.e-]+', r'"\1": N'), (r",[\d.e-]+,(\d),TIME", r",N,\1,TIME"), (r"; work Ns, database Ns|\+changes\b", ""),
            (r'("git_commit": )"[^"]*"', r'\1"KEY"'), (r"commit: <code>[^<]*", "commit: <code>KEY"),
            (r"\bwith \d+ (worker|thread)s?\b", r"with N \1s"), (r'"workers": ?\d+', '"workers": N'), (r'"seconds_one_worker":[\d.e+-]+', '"seconds_one_worker":N'), # processors of this machine
            (r"\d+ structures built, \d+ from the cache", "N structures built, N from the cache"),
            (r"(?<=\S)  +", "  "), (r"(?<=\S) +# ", " # "), (r"---+", "---"), (r"\b(avx2|avx512|amx|portable)\b", "KERNELS")):
        text = re.sub(pattern, new, text)
    return "\n".join(line.rstrip() for line in text.split("\n"))


class Transcript:
    """The text so far. It is compared with the file at each step, so the test ends at the first difference."""

    def __init__(self, p, name):
        self.p, self.text, self.path = p, "", os.path.join(GOLDEN, name + ".txt")
        self.want = None if os.environ.get("MOLSIEVE_WRITE") else open(self.path).read()

    def rows(self, sql):
        return self.p.rows(sql, workdir="runs/one")

    def say(self, *words, **more):
        env = dict(os.environ, MOLSIEVE_CPU="portable", **({"LD_PRELOAD": STATEMENTS} if os.path.exists(STATEMENTS) else {}))
        env["ASAN_OPTIONS"] = "abort_on_error=1:" + env.get("ASAN_OPTIONS", "")  # a sanitized worker that crashes is told like another
        env.update(more)
        if words[0] != "query":  # whose order is that of the user's SQL
            env["REVERSED"] = "1"
        status, out, err = self.p.run(*words, expect=None, env=env)
        line = "$ %smolsieve %s\n" % ("".join("%s=%s " % one for one in more.items()), " ".join(w if re.fullmatch(r"[\w./=+:,-]+", w) else "'%s'" % w for w in words))
        self.put(line + plain(out, self.p) +
                 plain("".join("! %s\n" % line for line in err.splitlines() if not PROGRESS.search(line)), self.p) + "= %d\n\n" % status)

    def lines(self, workflow, mistakes):
        for line in mistakes.strip().split("\n"):
            self.say("check", workflow, line)

    def add(self, title, text):
        self.put("# %s\n%s\n\n" % (title, plain(text, self.p)))

    def put(self, text):
        at = len(self.text)
        self.text += text
        if self.want is not None and self.want[at:at + len(text)] != text:
            want, got = self.want[at:].split("\n"), text.split("\n")
            i = next(i for i in range(len(got)) if i >= len(want) or want[i] != got[i])
            sys.exit("%s:%d:\n  %s\nnow, after %s:\n  %s" % (self.path, self.want[:at].count("\n") + i + 1, want[i] if i < len(want) else "the end",
                                                           got[0], "\n  ".join(got[i:i + 5])))

    def end(self):
        if self.want is not None:
            assert self.text == self.want, "%s has more at its end" % self.path
            return
        os.makedirs(GOLDEN, exist_ok=True)
        with open(self.path, "w") as f:
            f.write(self.text)


def tables(t, without="-"):
    """Every row that the stages stored, as plain text, without the columns that match `without`."""
    names = [n for n, in t.rows("SELECT name FROM sqlite_master WHERE type IN ('table','view') AND name NOT LIKE 'sqlite_%' ORDER BY 1")]
    for name in names:
        if name in ("column_doc", "run", "file_hash", "row_sum", "v_runs", "meta", "block", "v_progress"):
            continue
        head = [c for _, c, *_ in t.rows("PRAGMA table_info(%s)" % name)]
        keep = [c for c in head if not re.search(r"wall_s|cpu_s|mtime|inode|utc$|blob|params_json|needs_json|extra_json|fingerprint", c) and not re.fullmatch(without, c)]
        rows = t.rows("SELECT %s FROM %s" % (", ".join('"%s"' % c for c in keep), name))
        texts = ["|".join("bytes" if isinstance(x, bytes) else str(x) for x in r) for r in rows]
        t.add("%s: %s" % (name, " ".join(keep)), "\n".join(sorted(texts)))


# ---- a screen of two dozen records ----

SMILES = """CCO ethanol
OCC the same again
C(x no such atom
[Na+].CC(=O)[O-] sodium acetate
CC(O)C(F)Cl two centres
CCCCCCCCCCCCCCCCCC(=O)OCCCCCCCCCC too heavy
c1ccccc1O phenol
c1ccc2ccccc2c1 naphthalene
CC(=O)Oc1ccccc1C(=O)O aspirin
O=C([O-])c1ccccc1 benzoate
C[N+](C)(C)C choline
ClCCl dichloromethane
[Se]1C=CC=C1 selenophene
CN1C=NC2=C1C(=O)N(C(=O)N2C)C caffeine
CC(=O)Cl acid chloride

NCCO aminoethanol
"""
TABLE = "smiles,name,act,mw_seen\nCCN,ethylamine,1,45\nCCC,propane,0,44\nCCCC,butane,0,58\nc1ccccc1O,phenol again,1,94\nCCBr,bromoethane,x,109\n"
SCREEN = """  read: {unit: 6}
  prepare:
    fragment: largest
    neutralise: true
    alerts: {file: alerts.smarts}
    keep: "mw < 300"
    labels: [act]
    properties: {act: {task: classification}}
    conformers: {source: generate}
  graph: {edges: bonds}
  basis: {kind: frame_q15}
  score: {models: [esol]}
  rank:
    objectives: [{property: logS, goal: maximise}]
    where: "mw > 40 and alerts = ''"
    top: 8
    actives: act
  write: {csv: hits.csv, sdf: hits.sdf}
"""
EXTRA = "models:\n  esol: {path: esol.safetensors}\nlimits: {failures: {max_fraction: 1}}\n"


def screened(p):
    for name in ("models/esol.safetensors", "data/alerts.smarts"):
        shutil.copy(os.path.join(SOURCE, "workflows", name), p.path(os.path.basename(name)))
    p.put("a.smi", SMILES)
    p.put("b.csv", TABLE)
    p.put("c.sdf", sieve.sdf_records(os.path.join(SOURCE, "workflows/data/qm9-30.sdf"), 4))
    p.workflow(["a.smi", "b.csv", "c.sdf"], SCREEN, extra=EXTRA, workdir="runs/one")


def a_screen_prints_and_stores_the_same_as_before():
    with Project() as p:
        screened(p)
        t = Transcript(p, "screen")
        for words in (("check", "w.yaml"), ("plan", "w.yaml"), ("plan", "w.yaml", "--json"), ("status", "w.yaml"), ("top", "w.yaml"), ("explain", "w.yaml", "rank"),
                      ("run", "w.yaml", "-j", "1", "--until", "prepare"), ("status",), ("plan", "w.yaml"), ("run", "w.yaml", "-j", "2"),
                      ("run", "w.yaml", "-j", "2"), ("plan", "w.yaml", "stages.rank.top=3", "stages.score.batch=7")):
            t.say(*words)
        asked(t)
        files(t, ("runs/one/hits.csv", "runs/one/hits.sdf", "r.html"))
        tables(t)
        other_rankings(t)
        t.end()


def asked(t):
    for words in ("top", "top -n 2", "top --csv", "top --json -n 1", "top -n 0", "top a b", "failures", "failures --code parse",
                  "failures --stage read", "failures --stage prepare --limit 1", "failures --limit 0", "failures --code nothing", "failures --csv",
                  "failures --json", "failures --limit x", "status", "status --json", "query", "query v_funnel", "query v_runs -f jsonl",
                  "query nothing_here", "query runs/one/results.db", "query -f xml v_funnel", "explain w.yaml rank", "explain w.yaml",
                  "explain w.yaml nothing", "explain w.yaml rank stages.rank.top=3", "db check runs/one", "db digest runs/one",
                  "db nothing runs/one", "db", "db backup runs/one --to copy.db", "db backup runs/one --to copy.db", "db check copy.db",
                  "db prune runs/one", "db prune w.yaml --dry-run", "export csv runs/one", "export smi runs/one", "export sdf runs/one",
                  "export jsonl runs/one", "export xyz runs/one", "export nothing runs/one", "model info esol.safetensors",
                  "model verify esol.safetensors", "model nothing esol.safetensors", "model info c.sdf",
                  "model diff esol.safetensors esol.safetensors", "model info", "retry runs/one", "retry w.yaml", "report runs/one -o r.html",
                  "merge w.yaml", "help rank", "help nothing", "help read", "help yaml", "help exit-codes", "completion nothing"):
        t.say(*words.split())
    for sql in ("SELECT 1; SELECT 2", "DELETE FROM hit", "SELECT load_extension('x')", "", "SELECT nothing FROM hit",
                "SELECT 'a,\"b' AS x, NULL AS y, 1.5 AS z",
                "PRAGMA table_info(hit)", "PRAGMA journal_mode=delete", "ATTACH 'x' AS y", "VACUUM"):
        for form in ("table", "csv", "json", "jsonl"):
            if form == "table" or sql.startswith("SELECT '"):
                t.say("query", "-f", form, sql)
    t.p.put("q.sql", "SELECT count(*) AS n FROM hit -- all\n")
    t.say("query", "--file", "q.sql")
    t.say("query", "--file", "q.sql", "runs/one")
    t.say("query", "--file", "none.sql")


def files(t, names):
    """SDF without positions of atoms, the report without times and versions."""
    for name in names:
        text = re.sub(r">\s*<", ">\n<", open(t.p.path(name)).read())
        text = re.sub(r'(?s)(?<=<h2 id="timings">).*?(?=<h2 id="settings">)', lambda m: re.sub(COMMIT_OR_NUMBER, "N", m[0]), text)
        t.add(name, re.sub(r"(?m)^( +-?\d+\.\d{4}){3}.*\n", "", re.sub(r"\b\d+\.\d+\.\d+(-\w+)*\b", "VERSION", text)))


def other_rankings(t):
    """What each setting of the ranking does to the hits, from the same scores."""
    for name, text in (
            ("minimise", "objectives: [{property: mw, goal: minimise}], top: 4"),
            ("two", "objectives: [{property: logS, goal: maximise}, {property: tpsa, goal: minimise, weight: 0.01}], top: 6"),
            ("pareto", "method: pareto, objectives: [{property: logS, goal: maximise}, {property: mw, goal: maximise}], top: 9"),
            ("bounds", "objectives: [{property: logS, goal: maximise, at_least: -3, at_most: 0}], constraints: [{property: hbd, at_least: 1}]"),
            ("careful", "objectives: [{property: logS, goal: maximise, use: mean - 0.5*interval90}], top: 5"),
            ("alike", "objectives: [{property: logS, goal: maximise, similarity_at_least: 0.5}]"),
            ("inside", "domain: inside, objectives: [{property: logS, goal: maximise}]"),
            ("scaffolds", "diversity: {by: scaffold, at_most: 1}, objectives: [{property: logS, goal: minimise}]"),
            ("unlike", "diversity: {by: similarity, threshold: 0.3}, objectives: [{property: logS, goal: maximise}], top: 6"),
            ("none", "objectives: [{property: logS, goal: maximise}], where: mw > 900"),
            ("unknown", "objectives: [{property: logs, goal: maximise}]")):
        t.say("run", "w.yaml", "-q", "stages.rank={%s}" % text)
        t.add("hits of " + name, "\n".join("|".join(str(x) for x in r) for r in t.rows(
            "SELECT rank, smiles, objective, front, cluster, n_similar FROM hit JOIN molecule USING(mol_id) ORDER BY rank")))
        t.p.run("report", "runs/one", "-o", "r.html")
        with open(t.p.path("r.html")) as f:
            t.add("rules of " + name + " in the report", "\n".join(re.findall("How they were ranked: (.*?)</p>", f.read())))
        t.add("events of " + name, "\n".join("|".join(r) for r in t.rows(
            "SELECT level, coalesce(stage,'-'), message FROM event WHERE run_id=(SELECT max(run_id) FROM run) ORDER BY event_id")))
    t.say("top", "-n", "3")


# ---- a training of thirty molecules ----

TRAIN = """  read: {unit: 10}
  prepare: {conformers: {source: keep}, labels: [%s]}
  graph: {edges: bonds}
  split: {fractions: {train: 0.6, valid: 0.2, test: 0.2}}
  train:
    targets: [{name: y, column: %s, unit: eV, better: high, transform: composition}]
    model: {layers: 1, degrees: 2, channels: 8, heads: 2}
    batch: {molecules: 5}
    epochs: 3
  evaluate: {on: [train, valid, test]}
  score: {}
  rank: {objectives: [{property: y, goal: maximise}], top: 5}
  write: {csv: hits.csv}
"""


def a_training_prints_and_stores_the_same_as_before():
    with Project() as p:
        t = Transcript(p, "training")
        records = open(os.path.join(SOURCE, "workflows/data/qm9-30.sdf")).read().split("$$$$\n")[:30]
        gap = ["?" if i == 7 else 0.2 * r.count(" C ") - 0.1 * (i % 3) for i, r in enumerate(records)]
        p.put("m.sdf", "".join("%s> <gap>\n%s\n\n$$$$\n" % one for one in zip(records, gap)))
        p.workflow(["m.sdf"], TRAIN % ("gap", "gap"), workdir="runs/one")
        for words in ("check w.yaml", "plan w.yaml", "plan w.yaml --json", "run w.yaml -j 1 --until train", "status", "plan w.yaml", "run w.yaml -j 1", "top",
                      "top -n 2 --json", "status", "explain w.yaml train", "explain w.yaml train stages.train.epochs=4",
                      "model info runs/one/models/e2e.safetensors", "model verify runs/one/models/e2e.safetensors",
                      "report runs/one -o r.html", "export csv runs/one", "db check runs/one", "query v_hits",
                      "run w.yaml -j 1 --fresh stages.train.epochs=2 stages.train.optimiser.lr=0.01 stages.train.targets.0.unit=hartree",
                      "model diff runs/one/models/e2e.safetensors runs/one-2/models/e2e.safetensors", "failures"):
            t.say(*words.split())
        files(t, ("runs/one/hits.csv", "r.html"))
        tables(t)
        t.end()


# ---- mistakes ----

SCREEN_MISTAKES = r"""
inputs={}
inputs=[]
inputs.0.path=none.smi
inputs.0.path=*.none
inputs.0.format=xxyz
inputs.0.path=a.tar.xz
inputs.1.columns={smiles: none}
inputs.1.columns={}
inputs.0.columns={smiles: x}
inputs=[{path: a.smi}, {path: a.smi}]
inputs=[{path: a.smi}, {path: ./a.smi}]
models.esol.path=c.sdf
models.esol.path=none.safetensors
models.esol.sha256=00
models.esol={}
models.bad/name={path: esol.safetensors}
models={}
stages.read.unit=0
stages.read.max_record=5
stages.read={units: 4}
stages.prepare.fragment=smallest
stages.prepare.ph=99
stages.prepare.ph=7.4
stages.prepare.keep="mw <"
stages.prepare.keep="alerts = ''"
stages.prepare.keep="weight < 3"
stages.prepare.keep="mw < 3; DROP TABLE hit"
stages.prepare.keep="mw between 1 and 'x'"
stages.prepare.keep="logp < 3 and (hbd = 1"
stages.prepare.keep="(SELECT 1)"
stages.prepare.keep=""
stages.prepare.labels=[act, act]
stages.prepare.labels=[none]
stages.prepare.labels=none
stages.prepare.properties.foo={unit: 5}
stages.prepare.properties.act={task: classification, unit: eV}
stages.prepare.conformers.count=0
stages.prepare.conformers={source: keep, count: 5}
stages.prepare.conformers.retry_cpu_limit=1s
stages.prepare.conformers.force_field=none
stages.prepare.alerts={file: none.smarts}
stages.prepare.alerts={file: a.smi}
stages.prepare.alerts={rules: ["C(("]}
stages.prepare.alerts={rules: ["[N+](=O)[O-]"]}
stages.prepare.alerts={rules: ["C a,b"]}
stages.prepare.alerts={action: filter}
stages.prepare.alerts={file: empty.smarts}
stages.prepare.max_atoms=0
stages.prepare.memory_limit=1MiB
stages.graph={edges: radii}
stages.graph={edges: radius}
stages.graph={edges: radius, cutoff: 0.1}
stages.graph={cutoff: 4}
stages.graph={edges: knn, k: 0}
stages.basis={kind: frames}
stages.basis={kind: sh_f32, max_degree: 9}
stages.basis={max_degree: 2}
stages.score={models: [none]}
stages.score={models: [esol, esol]}
stages.score={models: [esal]}
stages.score={precision: tf32}
stages.score={kernels: avx9}
stages.score={engine: ref, kernels: avx2}
stages.score={devices: [x]}
stages.score={radial: {width: 5}}
stages.rank={}
stages.rank={objectives: []}
stages.rank={objectives: [{property: logS}]}
stages.rank={objectives: [{property: logS, goal: up}]}
stages.rank={objectives: [{property: logs, goal: maximise}]}
stages.rank={objectives: [{property: nothing at all, goal: maximise}]}
stages.rank={objectives: [{property: logS, goal: maximise, use: median}]}
stages.rank={objectives: [{property: logS, goal: maximise, use: mean - 1.0*stdev}]}
stages.rank={objectives: [{property: mw, goal: maximise, use: mean - interval90}]}
stages.rank={objectives: [{property: logS, goal: maximise, use: "mean - -1*interval90"}]}
stages.rank={objectives: [{property: logS, goal: maximise, use: "mean * interval90"}]}
stages.rank={objectives: [{property: logS, goal: maximise, use: "mean + 2*interval90"}]}
stages.rank={objectives: [{property: logS, goal: maximise, at_least: x}]}
stages.rank={objectives: [{property: logS, goal: maximise, at_most: 1e}]}
stages.rank={objectives: [{property: logS, goal: maximise, at_least: 2, at_most: 1}]}
stages.rank={objectives: [{property: logS, goal: maximise, at_least: 1, at_most: 1}]}
stages.rank={objectives: [{property: mw, goal: maximise, similarity_at_least: 0.5}]}
stages.rank={objectives: [{property: logS, goal: maximise, similarity_at_least: 1.5}]}
stages.rank={objectives: [{property: logS, goal: maximise, weight: 0}]}
stages.rank={objectives: [{property: logS, goal: maximise}], constraints: [{property: mw}]}
stages.rank={objectives: [{property: logS, goal: maximise}], constraints: [{property: mv, at_least: 1}]}
stages.rank={objectives: [{property: logS, goal: maximise}], domain: inside}
stages.rank={objectives: [{property: mw, goal: maximise}], domain: inside}
stages.rank={objectives: [{property: logS, goal: maximise}], method: pareto}
stages.rank={objectives: [{property: logS, goal: maximise}, {property: mw, goal: minimise}], method: pareto, actives: act}
stages.rank={objectives: [{property: logS, goal: maximise}, {property: mw, goal: minimise}], method: pareto}
stages.rank={objectives: [{property: logS, goal: maximise}], actives: none}
stages.rank={objectives: [{property: logS, goal: maximise}], where: "mw >"}
stages.rank={objectives: [{property: logS, goal: maximise}], where: "logS > 1"}
stages.rank={objectives: [{property: logS, goal: maximise}], diversity: {by: similarity}, top: 100001}
stages.rank={objectives: [{property: logS, goal: maximise}], diversity: {by: similarity}, top: 100000}
stages.rank={objectives: [{property: logS, goal: maximise}], top: 0}
stages.write={}
stages.write={csv: ""}
stages.write={csv: null}
stages.write={csv: results.db}
stages.write={csv: results.db-wal}
stages.write={csv: .lock}
stages.write={csv: heartbeat.json}
stages.write={csv: models}
stages.write={csv: ../x.csv}
stages.write={csv: ~/x.csv}
stages.write={csv: $HOME/x.csv}
stages.write={csv: x, sdf: x}
stages.write={csv: x, smi: ./x}
stages.write={csv: ../../a.smi}
stages.write={csv: sub/x.csv}
stages.write={csv: /}
stages.none={}
+stages.none={}
+stages.train={}
+stages.split={}
+stages.evaluate={}
stages.read=5
seed=-1
workers=0
workdir=""
format=2
name=a/b
limits={failures: {max_fraction: 2}}
limits={failures: {max_count: -5}}
limits={disk_free_min: 5}
storage={journal: memory}
storage={results: w.yaml}
storage={features: ../a.smi}
scheduler={time: 5}
scheduler={tasks: 0}
scheduler={system: loadleveler}
"""
TRAIN_MISTAKES = r"""
stages.split={fractions: {train: 0.5}}
stages.split={fractions: {train: 0, valid: 0.5, test: 0.5}}
stages.split={fractions: {train: 1, valid: 0, test: 0}}
stages.split={method: file}
stages.split={method: file, path: none.txt}
stages.split={method: column, column: part}
stages.split={method: time, column: gap}
stages.split={method: years}
stages.split={leaks: refuse}
stages.split={limit: {train: -1}}
stages.train.targets=[]
stages.train.targets=[{name: gap}, {name: gap}]
stages.train.targets=[{name: a, column: gap}, {name: a, column: gap}]
stages.train.targets=[{name: mu}]
stages.train.targets=[{name: gap, factor: 0}]
stages.train.targets=[{name: "gap\nx"}]
stages.train.targets=[{name: ""}]
stages.train.loss=bce
stages.train.name=a/b
stages.train.name=..
stages.train.name=""
stages.train.model.heads=3
stages.train.model.channels_div=3
stages.train.model.layers=0
stages.train.model.elements=[C, Xx]
stages.train.model.elements=[C, C]
stages.train.model.elements=[auto, C]
stages.train.model.elements=[C, H]
stages.train.model.elements=[Xx]
stages.train.model.pooling=min
stages.train.model.degrees=9
stages.train.batch.shards=0
stages.train.batch.molecules=0
stages.train.members=65
stages.train.members=3
stages.train.start=none
stages.train.optimiser.lr=-1
stages.train.optimiser={lr: 0.0001, min_lr: 0.001}
stages.train.optimiser={type: lamb, sharded: true}
stages.train.optimiser={type: soap, sharded: true}
stages.train.optimiser={sharded: true}
stages.train.schedule={type: step}
stages.train.schedule={warmup: 5}
stages.train.ema=1
stages.train.dtype=f16
stages.train.engine=gpu
stages.train.precision=fp16
stages.train.precision_of={radial: int8}
stages.train.kernels=amx9
stages.train.ranks=mpi2
stages.train.rank_timeout=0s
stages.train.checkpoint={every: 0s}
stages.train.domain=-1
stages.train.epochs=0
stages.prepare.labels=none
stages.prepare.properties={gap: {task: classification}}
stages.prepare.conformers={source: none}
stages.evaluate={on: [all]}
stages.evaluate={on: [train, train]}
stages.evaluate={on: [new]}
stages.evaluate={models: [e2e]}
stages.evaluate={calibrate: true}
stages.evaluate={targets: [{name: y}]}
stages.score={models: [e2e]}
stages.score={models: [other]}
models={e2e: {path: m.sdf}}
stages.basis={kind: sh_f32}
+stages.basis={kind: none}
stages.rank={objectives: [{property: gap, goal: maximise}]}
stages.rank={objectives: [{property: y, goal: maximise, use: mean - stdev}]}
stages.rank={objectives: [{property: y, goal: maximise, use: mean - interval90}]}
stages.rank={objectives: [{property: y, goal: maximise}], domain: inside}
"""
COMMANDS = r"""
bench --seconds 5000|bench --ranks 0|bench --threads x|bench --threads 1,0|bench --graphs none|bench --batch 0|bench --nothing|check
check none.yaml|check w.yaml word|check w.yaml --show|plan|plan none.yaml|plan w.yaml --shard 3/2|run|run none.yaml|run w.yaml --shard 5
run w.yaml -j 0|run w.yaml -j x|run w.yaml --max-time x|run w.yaml --grace x|run w.yaml --log w.yaml|run w.yaml --log a.smi
run w.yaml --log none/x|run w.yaml --until nothing|run w.yaml --from redd|run w.yaml --force nothing|run w.yaml --shard auto
run w.yaml --shard x/y|run w.yaml --requeue-exit 300|init|init a b|init .|init w.yaml/x|doctor --nothing|explain|explain none.yaml
explain w.yaml none|explain w.yaml read graph|merge|merge none.yaml|merge w.yaml --missing|merge w.yaml word|model|model info none
model join esol.safetensors|model join esol.safetensors esol.safetensors -o x|model join a b c d e f g h i j k l m n o p q -o x|model joint a b
model diff esol.safetensors|model verify a.smi|model info w.yaml|submit|submit none.yaml|submit w.yaml --array x|submit w.yaml --print
script|submit w.yaml --dry-run --x|report none|report|report a b|export|export none|export csv none|export csv a b|db check none
db check a.smi|db prune none|db backup|db digest a.smi|retry|retry none.yaml|retry w.yaml --code x|query x none
query --file none w.yaml|status none|status a b|top none|failures none|help|help none none|help prapare|completion bash|completion bash extra|completion
completion fish2|help screen|help workflow extra|help exit-codes|query|status -x|--nothing|nothing
"""


def mistakes_are_answered_as_before():
    with Project() as p:
        t = Transcript(p, "mistakes")
        screened(p)
        p.put("empty.smarts", "# nothing\n")
        records = open(os.path.join(SOURCE, "workflows/data/qm9-30.sdf")).read().split("$$$$\n")[:2]
        p.put("m.sdf", "".join("%s> <gap>\n%s\n\n$$$$\n" % (r, i) for i, r in enumerate(records)))
        t.lines("w.yaml", SCREEN_MISTAKES)
        for line in COMMANDS.strip().replace("\n", "|").split("|"):
            t.say(*line.split())
        for command in re.findall(r"^  ([a-z]+) ", p.run("help")[1], re.M):
            t.say(command, "a", "b", "c", "d")
        for line in ("db check a b|db digest a b|db schema a b|db backup a b|db metadata a b|explain 1 a b|explain CCO a b|bench a|failures a b|doctor a b").split("|"):
            t.say(*line.split())
        for kind in ("slurm", "pbs", "lsf", "sge"):
            for more in ("", "tasks: 4, nodes: 2, launcher: mpirun", "array: 5, max_running: 2, time: 2h, partition: p, account: a",
                         "cpus: 3, gpus: 2, memory: 4GiB, restarts: 0, setup: [module load x], options: [-x y]"):
                t.say("script", "w.yaml", "scheduler={type: %s%s%s}" % (kind, more and ", ", more))
        p.workflow(["m.sdf"], TRAIN % ("gap", "gap"))
        t.lines("w.yaml", TRAIN_MISTAKES)
        t.end()


# ---- options and settings that do not go together ----

OPTIONS = r"""
bench --parity no|bench --roofline --memory|bench --svg a.svg|bench --roofline --gpu-roof 1,2|bench --gpu-roof 1,0,3 --roofline
check w.yaml --json --try|check w.yaml --try|conformers --count 0 a.smi|conformers --jobs 0 a.smi|conformers --seed -1 a.smi
conformers a.smi b.csv|conformers empty.smi|energy empty.sdf|energy c.sdf a.smi|energy flat.sdf|energy meet.sdf|explain w.yaml --svg x.svg
export sdf --top 2 --all|export csv --conformers all|export sdf --conformers poses|export csv --top 3 runs/one|fit|fit b.csv c.sdf
fit b.csv --task nothing|fit b.csv|fit b.csv -t act --task classification|fit b.csv -t mw_seen -o esol.safetensors|fit b.csv -t mw_seen -o runs
fit same.csv -t y|label|label runs/one b.csv c.sdf|label runs/one b.csv --new --unit eV|label runs/one b.csv --class --property y
label none b.csv --property y|label w.yaml b.csv --property act --unit eV|label runs/one b.csv --property act --factor 2
merge s.db -o s.db|merge s.db --missing -o all.db|merge s.db --of 2 -o all.db|merge s.db|merge s.db -o d/|model info a b|model import a.pt
model import a.pt --from nvidia|model import a.pt --from other|model import a.pt --from nvidia -o x --target y --mean x
model import a.pt --from nvidia -o x --target y --std 0|model import a.pt --from nvidia -o x --target y --network layers=0
model import a.pt --from nvidia -o x --target y --network nothing=1|model import a.pt --from nvidia -o x --target y|next|next -n x runs/one
next --by none runs/one|next --best 3 runs/one|next --beta 3 runs/one|next --by ucb --beta x runs/one|next -f none runs/one
next -o x.txt runs/one|next -n 5 runs/one|next -n 500 --goal maximize --by random runs/one|next --by ucb runs/one|next --property none runs/one
next -n 2 --by random --goal maximize --seed 3 runs/one|next --sigma none --by ucb runs/one|next --by thompson --property logS runs/one
predict esol.safetensors none.smi|predict esol.safetensors a.smi b.csv|predict esol.safetensors empty.smi|predict --jobs 0 esol.safetensors a.smi
predict --count 0 esol.safetensors a.smi|predict esol.safetensors bad.smi|predict --set t=1 esol.safetensors a.smi
query SELECT 1|query nothing|repeat w.yaml|repeat w.yaml -n 2 --folds 3|run w.yaml --out s.db|run w.yaml --shard 0/2 --out s.db --until read
run w.yaml --shard 0/2 --fresh|run w.yaml --shard 0/2 --out d/|script w.yaml --campaign|script w.yaml --missing
script w.yaml --missing --scheduler slurm|script w.yaml --campaign --missing --scheduler slurm|script w.yaml --scheduler slurm --array 2 --campaign --missing|script w.yaml --scheduler none
search|search --at-least 0.5 runs/one|search --smarts C -f none runs/one|search --smarts C -o x.txt runs/one|search --smarts C( runs/one
search --similar C( runs/one|search --scaffold CCC runs/one|search --smarts C --limit 2 runs/one|search --smarts C --limit x runs/one
search --where mw> runs/one|show|show a b|show nothing|show 1|status --prometheus --json runs/one|status --prometheus --watch runs/one
top empty|top c.sdf|report empty|export csv empty|db prune|db prune none --alone|db check c.sdf|db backup runs/one|campaign w.yaml
campaign w.yaml --missing|campaign w.yaml --part 1|campaign none.yaml|explain runs/one 1 --svg x.svg|explain 99|explain 1|explain C(
"""
PROGRAM = {"command": "[sh, -c, 'cat {input}']", "input": "smiles", "output": "csv", "property": "z", "better": "low"}
PROGRAM_MISTAKES = r"""
command: [sh, '{nothing}']|command: [sh, '{id']|command: [sh, -c, 'true']|command: ['']|command: []|command: [no_such_program, '{input}']|files: ['']
files: [input.smi, output.csv]|files: [a.smi, a.smi]|files: [none.txt]|env: {1A: {value: b}}|env: {A: {value: b}}|output: regex
output: regex, value: 'x('|output: regex, value: 'x'|output: regex, value: '(x)', batch: 4|output: pdbqt|output: pdbqt, batch: 2|output: sdf, poses: true
poses: true|input: pdbqt, batch: 3|input: pdbqt, output: pdbqt, poses: true|input: sdf|input: xyz, structures: all|name: esol|cores: 0|batch: 0
timeout: 0s|limits: {memory: -1}|limits: {output: 1B}|limits: {disk: 1B}|keep: nothing|better: best|unit: "a\nb"|property: ""
"""
LEARN = "{targets: [{name: y, column: gap}], family: [%s]%s}"
LEARN_MISTAKES = r"""
trees;, loss: bce|trees;, class_weights: balanced|gp;, class_weights: balanced|trees;, model: {radial: {basis: bessel}}|trees;, noise: {weight: 1}
se3;, noise: {scale: 0.1}|se3;, noise: {scale: 0, weight: 1}|trees;, sparsity: "2:4"
se3;, sparsity: "2:4", epochs: 1|se3;, sparsity: "2:4", optimiser: {eps: 0}|se3;, sparsity: "2:4", optimiser: {type: soap}|se3;, task: denoise|trees;, task: denoise|trees;, budget: 1m
se3;, budget: 1m, epochs: 5|trees;, start: m|se3;, start: none.safetensors|trees;, inputs: {descriptors: true}|se3;, inputs: {columns: ["a\nb"]}
se3;, inputs: {columns: [none]}|trees;, inputs: {columns: [w, w]}|nothing;|trees, trees;|se3;, members: 0|trees;, members: 3|se3;, dtype: bf16, engine: ref|se3;, precision: bf16, engine: ref
se3;, model: {elements: [C, C]}|se3;, model: {elements: [Xx]}|se3;, model: {heads: 3}|se3;, model: {channels: 6, heads: 4}|se3;, optimiser: {min_lr: 1}
se3;, evaluate_beside: false|se3;, precision_of: {radial: bf16}, engine: ref|se3;, model: {z: false, bonds: false}|se3;, batch: {molecules: 1, shards: 4}
"""
AROUND = r"""
stages.split={folds: 1, fold: 1}|stages.split={folds: 3, fold: 4}|stages.split={folds: 3, method: scaffold}|stages.split={folds: 3, limit: {test: 1}}
stages.split={fractions: {calibration: 0.1}}|stages.split={method: file}|stages.split={method: file, file: parts.txt}|stages.split={method: column}
stages.split={method: column, column: none}|stages.split={method: time, column: gap}|stages.split={method: scaffold, variant: deterministic, repeat: 2}
stages.split={leaks: none}|stages.graph={edges: topology}|stages.graph={edges: radius}|stages.graph={edges: bonds, cutoff: 3}|stages.graph={edges: knn}
stages.prepare.conformers={builder: openbabel, force_field: mmff94s}
stages.prepare.conformers={builder: openbabel, dielectric: 4}|stages.prepare.conformers={force_field: uff}|stages.prepare.conformers={count: 0}
stages.prepare.alerts={smarts: {bad: 'C('}}|stages.prepare.alerts={rules: [none]}|stages.prepare.alerts={action: filter}|stages.prepare.ph=15
stages.read.censored=bound|stages.evaluate={on: [test], calibrate: true}|stages.evaluate.mirror=none|scheduler={type: slurm, time: 1m, warn: 2m}
scheduler={type: sge, nodes: 2}|scheduler={type: slurm, array: 0}|storage={features: none/x.db}|storage={stage_out: true}|seed=-1|workdir=w.yaml
limits={failures: {max_fraction: 2}}|limits={failures: {max_count: -1}}|name=a/b|inputs=none.smi|format=2|+stages.acquire={}|+stages.acquire={count: 0}
"""
ACQUIRE_MISTAKES = r"""
strategy: ucb|strategy: none|sigma: gp, strategy: ucb|sigma: stdev, strategy: thompson|sigma: interval, strategy: uncertainty|property: none|where: "mw >"
answers: {table: none.csv}|answers: {table: b.csv}|answers: {table: b.csv, column: act}|answers: {table: b.csv, column: acts}
answers: {table: m.sdf}|answers: {workflow: none.yaml}|answers: {workflow: w.yaml}|answers: {workflow: w.yaml, table: b.csv}
answers: {table: b.csv, column: act}, campaign: {rounds: 0}|answers: {table: b.csv, column: act}, campaign: {rounds: 2, calls: 3}
answers: {table: b.csv, column: act}, campaign: {first_count: 3}|answers: {table: b.csv, column: act}, goal: maximise, campaign: {calls: 96}
campaign: {rounds: 2}|diversity: {max_similarity: 2}|seed: -1|exclude: none, inside: true
"""
SEVERAL = r"""
campaign; w.yaml; +stages.acquire={}|repeat; w.yaml; -n; 2; stages.split.repeat=2|repeat; w.yaml; --folds; 3; stages.split.folds=3
repeat; w.yaml; -n; 2; stages.split={method: scaffold, variant: deterministic}|repeat; w.yaml; --folds; 1
check; w.yaml; stages.split={method: scaffold, variant: deterministic, folds: 3}|check; w.yaml; stages.graph={edges: topology}; +stages.basis={}
check; w.yaml; stages.split={method: scaffold, variant: deterministic, fractions: {train: 0.7, calibration: 0.1}}
check; w.yaml; stages.train={targets: [{name: y, column: gap, factor: 2}]}; +stages.acquire={answers: {table: b.csv, column: act}}
check; w.yaml; stages.train={targets: [{name: y, column: gap, better: none}]}; +stages.acquire={answers: {table: b.csv, column: act}}
check; w.yaml; stages.prepare.conformers.source=none; +stages.external={command: [sh, '{input}'], input: sdf, output: csv, property: z, better: low}
check; w.yaml; stages.prepare.labels=[gap, none]|check; w.yaml; inputs=[{path: empty.sdf}]|script; w.yaml; --scheduler; slurm; --campaign; +stages.acquire={}
script; w.yaml; --scheduler; sge; scheduler.nodes=2; stages.train.batch.shards=2|script; w.yaml; --scheduler; lsf; workdir=a b|top; w.yaml
export; csv; w.yaml|label; w.yaml; b.csv; --property; gap|status; w.yaml|search; runs/one; --at-least; 0.5; --smarts; C|show; 1; runs/one; extra
query; SELECT 1; runs/one; extra|merge; w.yaml; -o; d/|script; w.yaml; --scheduler; slurm; --options; --comment=x: y; --partition; 1.0; --account; null
script; w.yaml; --scheduler; pbs; name=1.b
"""
TWO_ATOMS = """two

 
  2  1  0  0  0  0            999 V2000
    0.0000    0.0000    0.5000 %s   0  0  0  0  0  0
    %.4f    0.0000    0.5000 %s   0  0  0  0  0  0
  1  2  1  0
M  END
$$$$
"""


def settings_that_exclude_each_other_are_answered():
    with Project() as p:
        t = Transcript(p, "options")
        screened(p)
        for name, text in (("empty.smi", ""), ("empty.sdf", ""), ("bad.smi", "C( a\nCC b\n"), ("same.csv", "smiles,y\n" + "CC,1\n" * 40), ("parts.txt", "x y\n"),
                           ("a.pt", "PK\x03\x04"), ("flat.sdf", TWO_ATOMS % ("C", 1.5, "C")), ("meet.sdf", TWO_ATOMS % ("H", 0, "H"))):
            p.put(name, text)
        os.mkdir(p.path("empty"))
        p.run("run", "w.yaml", "-j", "1", "-q", env=dict(os.environ, MOLSIEVE_CPU="portable"))
        for line in OPTIONS.strip().replace("\n", "|").split("|"):
            t.say(*line.split())
        for one in PROGRAM_MISTAKES.strip().replace("\n", "|").split("|"):
            given = re.findall(r"(?:^|, )(\w+):", one)
            t.say("check", "w.yaml", "+stages.external={%s}" % ", ".join([one] + ["%s: %s" % x for x in PROGRAM.items() if x[0] not in given]))
        records = open(os.path.join(SOURCE, "workflows/data/qm9-30.sdf")).read().split("$$$$\n")[:20]
        p.put("m.sdf", "".join("%s> <gap>\n%s\n\n$$$$\n" % (r, i) for i, r in enumerate(records)))
        p.workflow(["m.sdf"], TRAIN % ("gap", "gap"))
        for one in LEARN_MISTAKES.strip().replace("\n", "|").split("|"):
            t.say("check", "w.yaml", "stages.train=" + LEARN % tuple(one.split(";")))
        for one in AROUND.strip().replace("\n", "|").split("|"):
            t.say("script" if one.startswith("scheduler") else "check", "w.yaml", one)
        for one in SEVERAL.strip().replace("\n", "|").split("|"):
            t.say(*one.split("; "))
        for one in ACQUIRE_MISTAKES.strip().replace("\n", "|").split("|"):
            t.say("check", "w.yaml", "+stages.acquire={%s}" % one)
        t.end()


# ---- shards, models on new labels, a run that fails and goes on ----

JUDGE = """  read: {unit: 6}
  prepare: {conformers: {source: keep}, labels: [logS, half], properties: {logS: {unit: "log10(mol/L)"}}}
  graph: {edges: bonds}
  evaluate: {models: [esol], calibrate: %s}
"""


def shards_and_new_labels_give_the_same_as_before():
    with Project() as p:
        t = Transcript(p, "shards")
        screened(p)
        for words in ("merge w.yaml", "run w.yaml -j 1 --shard 0/2", "merge w.yaml --missing --of 2", "merge w.yaml --of 2", "status", "plan w.yaml",
                      "run w.yaml -j 1 --shard 1/2", "status w.yaml", "merge w.yaml", "merge w.yaml", "run w.yaml -j 1", "status",
                      "db check runs/one", "run w.yaml -j 1 --force score --until score",
                      "explain w.yaml prepare stages.prepare.max_heavy_atoms=5",
                      "run w.yaml -j 1 limits.failures.max_count=1 stages.prepare.max_heavy_atoms=5 --keep-going", "status", "top",
                      "failures --code too_large -n 3", "retry w.yaml"):
            t.say(*words.split())
        tables(t)
        shutil.rmtree(p.path("runs"))
        records = open(os.path.join(SOURCE, "workflows/data/qm9-30.sdf")).read().split("$$$$\n")[:12]
        p.put("m.sdf", "".join("%s> <logS>\n%g\n\n$$$$\n" % (r, -0.4 * (i % 5)) for i, r in enumerate(records)))
        p.workflow(["m.sdf"], JUDGE % "true", extra=EXTRA, workdir="runs/one")
        for words in ("check w.yaml", "plan w.yaml --json", "run w.yaml -j 1", "model info runs/one/models/esol-calibrated.safetensors", "report runs/one -o r.html",
                      "model diff esol.safetensors runs/one/models/esol-calibrated.safetensors",
                      "run w.yaml -j 1 stages.evaluate.targets=[{name:logS,column:half}]", "check w.yaml stages.evaluate.on=[test]",
                      "check w.yaml stages.evaluate.targets=[{name:none}]", "check w.yaml stages.evaluate.targets=[{name:logS,column:none}]"):
            t.say(*[w.replace(":", ": ") if w.startswith("stages.") else w for w in words.split()])
        files(t, ("r.html",))
        tables(t)
        t.end()


if __name__ == "__main__":
    main([a_screen_prints_and_stores_the_same_as_before,
          a_training_prints_and_stores_the_same_as_before, mistakes_are_answered_as_before, settings_that_exclude_each_other_are_answered,
          shards_and_new_labels_give_the_same_as_before])
