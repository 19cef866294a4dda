#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Transcripts (transcript.py) of the steps that screens of one model leave out: trainings of each kind, splits of each kind,
models of several targets on new labels, programs and choices. MOLSIEVE_WRITE=1 writes the files anew."""
import csv
import gzip
import os
import re
import shutil

from sieve import TESTS, Project, main
from transcript import SOURCE, Transcript, tables

ESOL = os.path.join(SOURCE, "workflows/data/esol.csv")
MORE = """C[C@H](O)C#N,left,-0.5,1,1990,0,20,-0.5
C[C@@H](O)C#N,right,-0.7,0,2010,2,20,-0.7
C[Se]C,selenide,-1.1,1,1999,0,25,-1.1
CCO,ethanol,0.6,1,1995,0,20,>0.5
OCC,ethanol too,0.8,0,1995,0,20,<0.1
CCO,ethanol hot,0.7,1,1995,0,60,0.7
CCCO,propanol,,,,,20,
C(x,broken,1,1,1990,0,20,1
"""
LEARN = """  read: {unit: 20}
  prepare:
    conformers: {source: generate}
    labels: [logS, cls, year, part, lim]
    properties: {logS: {unit: mol}, cls: {task: classification}}
  graph: {edges: bonds}
  split: {fractions: {train: 0.6, valid: 0.2, test: 0.2}}
  train:
    targets: [{name: logS, unit: mol, better: high}]
    family: [trees]
    model: {layers: 1, degrees: 2, channels: 8, heads: 2}
    batch: {molecules: 16}
    epochs: 2
  evaluate: {on: [train, valid, test]}
  score: {}
  rank: {objectives: [{property: logS, goal: maximise}], top: 4}
"""


def molecules(p, n=56):
    """Small molecules of ESOL with a class, a year, a part, a temperature and a label with limits."""
    with open(ESOL) as f:
        rows = [r for r in csv.DictReader(f) if len(r["smiles"]) < 14][:n]
    lines = []
    for i, r in enumerate(rows):
        y = float(r["logS"])
        limit = ">%g" % (y - 0.5) if i % 9 == 0 else "<%g" % (y + 0.5) if i % 11 == 0 else "%g" % y
        lines.append("%s,m%d,%g,%d,%d,%d,%d,%s" % (r["smiles"], i, y, y > -2, 1980 + i * 7 % 40, i % 7 // 5 + i % 7 // 6, 20 + i % 3 * 10, limit))
    p.put("in.csv", "smiles,name,logS,cls,year,part,T,lim\n" + "\n".join(lines) + "\n" + MORE)


def stored(t, title, *queries):
    """Rows of the run, one query after another, each row a line."""
    t.add(title, "\n".join("|".join(str(x) for x in row) for sql in queries for row in t.rows(sql)))


EVENTS = "SELECT level, coalesce(stage,'-'), message FROM event WHERE run_id=(SELECT max(run_id) FROM run) ORDER BY stage, event_id"
PARTS = "SELECT part, count(*), group_concat(mol_id, ' ') FROM (SELECT * FROM split ORDER BY part, mol_id) GROUP BY part"
ERRORS = ("SELECT m, p, part, unit, n, group_concat(metric||' '||format('%.3g', value), '; ') FROM (SELECT m.name AS m, p.name AS p, part, metric, e.unit, value, n "
          "FROM evaluation e JOIN model m USING(model_id) JOIN property p USING(property_id) ORDER BY 1,2,3,4) GROUP BY 1,2,3,4,5 ORDER BY 1,2,3,4,5")
SCORES = ("SELECT mol_id, p.name, mean, stdev, n_models, similarity, interval90, domain, reasons FROM score JOIN property p USING(property_id) "
          "WHERE mol_id % 9=1 ORDER BY 2,1")
FAILURES = "SELECT stage, mol_id, code, signal, message FROM failure ORDER BY stage, mol_id"
PROPERTIES = "SELECT p.property_id, p.name, unit, task, better, count(l.mol_id) FROM property p LEFT JOIN label l USING(property_id) GROUP BY 1 ORDER BY 1"

# What changes of LEARN; a word is a setting of a stage.
TRAININGS = r"""
read.censored=bound; train.family=[gp]
train.family=[gp]; train.inputs.columns=[T]; train.members=1; split.method=scaffold
train.family=[gp, trees]; train.targets=[{name: logS, unit: mol, factor: 2, transform: composition}]; split={method: time, column: year}
read.censored=bound; train.family=[trees]; train.targets=[{name: lim}]; split={method: column, column: part}
read.censored=bound; train.family=[se3, trees]; train.targets=[{name: lim}]; split.fractions={train: 0.5, valid: 0.2, test: 0.2, calibration: 0.1}
train.family=[se3, gp, trees]; train.targets=[{name: y, column: lim}]; split.fractions={train: 0.5, valid: 0.2, test: 0.2, calibration: 0.1}
train.targets=[{name: cls, class_weight: 3}]; train.family=[forest, gp]; split.leaks=allow
train.targets=[{name: cls}]; train.class_weights=balanced; train.family=[se3, forest]; split.limit={train: 20, valid: 4, test: 5}
train.targets=[{name: logS}, {name: yr, column: year, unit: y}]; train.family=[se3]; train.ema=0.9; train.loss=l2; train.members=2
train.family=[se3]; train.inputs={descriptors: true, columns: [T]}; train.optimiser={type: lamb, lr: 0.01}; train.schedule={type: cosine_step, warmup: 1}; split={folds: 3, fold: 2}
train.family=[se3]; train.optimiser={type: soap, lr: 0.01}; train.members=2; train.ema=0.9
train.family=[se3]; train.noise={weight: 1}; train.model.pooling=mean; train.early_stop.patience=1; train.epochs=4; split.repeat=2
train.family=[se3]; train.sparsity=2:4; train.dtype=bf16; train.domain=10; split={method: scaffold, variant: balanced}
train.family=[se3]; train.model.elements=[C, O, H]; train.model.charge=true; train.batch={molecules: 8, shards: 2}; split={method: scaffold, variant: deterministic}
train.family=[se3]; train.model.radial={basis: bessel}; train.schedule.type=constant; split={method: file, path: parts.txt}
train.family=[auto]; split.leaks=refuse
"""


CHOICES = r"""
strategy: greedy, count: 3
strategy: uncertainty, count: 4, sigma: gp, diversity: {per_scaffold: 1}
strategy: expected_improvement, count: 4, exclude: none, where: mw > 60
strategy: greedy, count: 4, diversity: {max_similarity: 0.3}, exclude: none
strategy: ucb, beta: 1, count: 4, goal: minimise, exclude: none
strategy: ucb, sigma: interval, beta: 1, count: 4, exclude: none
strategy: thompson, count: 5, seed: 4, inside: true, exclude: none
strategy: random, count: 5, seed: 4, exclude: none
strategy: greedy, count: 500, exclude: none
strategy: greedy, count: 2, where: mw > 900
"""


def trainings_of_each_kind_give_the_same_as_before():
    with Project() as p:
        t = Transcript(p, "trainings")
        molecules(p)
        p.put("parts.txt", "# by title\nm1,test\r\nm2\tvalid \t\nm3 , train,\nm4 0\n" + "".join("m%d train\n" % k for k in range(5, 40)) + "m99 train\n")
        p.workflow(["{path: in.csv, format: csv, columns: {smiles: smiles, title: name}}"], LEARN, workdir="runs/one")
        t.say("run", "w.yaml", "-j", "1", "--until", "prepare")
        stored(t, "properties", PROPERTIES)
        for line in TRAININGS.strip().split("\n"):
            goal = re.search(r"name: (\w+)", line)
            words = ["stages." + word for word in line.split("; ")] + ["stages.rank.objectives.0.property=" + x[1] for x in [goal] if x]
            t.say("run", "w.yaml", "-j", "1", *words)
            stored(t, "what it stored", EVENTS, PARTS, ERRORS, SCORES)
            t.say("model", "info", "runs/one/models/e2e.safetensors")
        stored(t, "properties", PROPERTIES)
        tables(t, "failure_id|event_id")
        for line in CHOICES.strip().split("\n"):
            t.say("run", "w.yaml", "-j", "1", "-q", "stages.train.family=[gp]", "stages.split.fractions={train: 0.6, valid: 0.2, test: 0.1, calibration: 0.1}",
                  "+stages.acquire={%s}" % line)
            stored(t, "what it stored", EVENTS, "SELECT m.mol_id, a.* FROM acquired a JOIN molecule m USING(inchikey) ORDER BY round, place")
        t.end()


# ---- programs and their poses ----

# Answers by the SMILES, and fails in some way for others; in the mode sdf it moves the structures that it got, with or without hydrogens.
COUNTER = r"""
function answer(id, v) { return mode == "json" ? sprintf("%s{\"id\": %s, \"points\": %s}", n++ ? ", " : "", id, v) : mode == "csv" ? id "," v "\n" : "value: " v "\n" }
BEGIN { if (mode == "csv") out = "id,points\n" }
mode == "sdf" && /V2000/ { n = substr($0, 1, 3); at = NR }
mode == "sdf" { line[NR] = $0; if ($0 == "M  END") pose(NR) }
mode != "sdf" && given != "csv" || FNR > 1 && given == "csv" {
    gsub(",", " ")
    id = given == "csv" ? $1 : $2
    smiles = given == "csv" ? $2 : $1
    if (smiles == "CCC") { out = ""; mode = "text"; print "no propane" > "/dev/stderr"; exit 3 }
    if (smiles == "CCN") { for (k = 1; k < 200; k++) printf "word%d ", k > "/dev/stderr"; out = ""; mode = "text"; exit 4 }
    if (smiles == "CC") out = out answer(id, "\"many\"")
    else if (smiles != "CO") out = out answer(id, smiles == "CN" ? "1e400" : length(smiles))
}
END { if (mode == "json") print "[" out "]" > file; else if (mode != "sdf") printf "%s", out }
function pose(end, k, i, m) {
    for (k = 0; k < 2; k++) {
        m = 0
        for (i = at + 1; i <= at + n; i++) if (all || line[i] !~ / H  /) m++
        printf "%s\n\n\n%3d  0  0  0  0  0  0  0  0  0999 V2000\n", line[at - 3], m
        for (i = at + 1; i <= at + n; i++) if (all || line[i] !~ / H  /) printf "%10.4f%s\n", substr(line[i], 1, 10) + k, substr(line[i], 11)
        printf "M  END\n> <points>\n%d\n\n$$$$\n", n - k
    }
}
"""
PROGRAMS = """  read: {unit: 5}
  prepare: {labels: [points], properties: {points: {unit: pt}}}
  external:
    name: counter
    command: [awk, -f, counter.awk, -v, mode=text, "{input}"]
    files: [counter.awk]
    input: smiles
    output: regex
    value: "^value: (.*)"
    property: points
    unit: pt
    better: high
    keep: failed
  rank: {objectives: [{property: points, goal: maximise}], top: 5}
  write: {csv: hits.csv}
"""
HOW = r"""
command=[awk, -f, counter.awk, -v, mode=json, -v, 'file={output}', '{input}']; output=json; value=points; keep=all
command=[awk, -f, counter.awk, -v, mode=json, -v, 'file={output}', '{input}']; output=json; value=points; keep=none; batch=3
command.4=mode=csv; output=csv; value=points; batch=2; better=low; unit=bar; cores=2
command.4=mode=csv; output=csv; value=none
command.4=mode=csv; output=csv; value=points; limits.output=64B
command=[awk, -f, counter.awk, -v, mode=csv, -v, given=csv, '{input}']; output=csv; value=points; input=csv; batch=6
command=[awk, -f, counter.awk, -v, mode=sdf, -v, all=1, '{input}']; output=sdf; value=points; input=sdf; poses=true; batch=4; better=none
command.4=mode=sdf; output=sdf; value=points; input=sdf; poses=true; keep=none; timeout=20s; env={A: {value: b}}
command=[ln, -s, '{input}', '{output}']; output=csv
command=[sh, -c, 'mkdir {output} && cat {input} > {output}/x']; output=csv
command.0=false
command.0=./none
files=[., in.csv]
command.2=none.awk
files=[none.awk]
"""
def programs_of_each_kind_give_the_same_as_before():
    with Project() as p:
        t = Transcript(p, "programs")
        p.put("counter.awk", COUNTER)
        os.environ["TMPDIR"] = p.dir
        p.put("in.csv", "smiles,name,points\n" + "".join("%s,m%d,%s\n" % (s, i, i if i % 4 == 0 else "") for i, s in enumerate(
            "CCO CC CCC CO CN CCCC OCC c1ccccc1 C#N CC(=O)O CCN CCCl C(".split())))
        p.workflow(["{path: in.csv, format: csv, columns: {smiles: smiles, title: name}}"], PROGRAMS, workdir="runs/one",
                   extra="limits: {failures: {max_fraction: 1}}\n")
        for words in ("check w.yaml", "check w.yaml --try", "plan w.yaml", "plan w.yaml --json", "run w.yaml -j 1", "plan w.yaml", "run w.yaml -j 1", "top", "export csv runs/one"):
            t.say(*words.split())
        stored(t, "what it stored", EVENTS, SCORES.replace("mol_id % 9=1", "1"), FAILURES)
        for line in HOW.strip().split("\n"):
            words = ["stages.external." + word for word in line.split("; ")]
            t.say("check", "w.yaml", "--try", *words)
            t.say("run", "w.yaml", "-j", "1", *words)
            stored(t, "what it stored", EVENTS, PROPERTIES, SCORES.replace("mol_id % 9=1", "1"), FAILURES)
            t.add("folders", "\n".join(sorted(os.path.join(os.path.relpath(d, p.path("runs/one")), f) for d, _, fs in os.walk(p.path("runs/one/scratch")) for f in fs)))
        t.say("export", "sdf", "runs/one", "--all", "--conformers", "poses")
        p.put("late.smi", "C( a\nC1 b\nCCO c\n")
        p.put("bad.smi", "C( a\nC1 b\n" * 20)
        for name in ("late.smi", "bad.smi"):
            t.say("check", "w.yaml", "--try", "inputs=[{path: %s}]" % name, "stages.prepare={}")
        os.environ["TMPDIR"] = p.path("no")
        t.say("check", "w.yaml", "--try")
        os.environ["TMPDIR"] = p.dir
        tables(t, "failure_id|event_id")
        t.end()



# ---- what cannot be done ----

MODELS = "models:\n" + "".join("  %s: {path: %s.safetensors}\n" % (x, x) for x in ("some", "cls", "col", "two", "bare", "half"))
SCORE = """  read: {}
  prepare: {conformers: {source: generate}}
  graph: {edges: bonds}
  score: {models: [some]}
  rank: {objectives: [{property: logS, goal: maximise}], top: 4}
"""
JUDGE = """  read: {}
  prepare: {conformers: {source: generate}, labels: [logS, year, lim, cls], properties: {cls: {task: classification}}}
  graph: {edges: bonds}
  evaluate: {models: [some]}
"""
# Each mistake is in a line of its own, which its message names.
PLACES = """  read:
    max_record: 2KiB
    unit: 6
  prepare:
    fragment: largest
    keep: "mw <"
    labels: [logS, logS, none]
    properties:
      cls: {task: classification, unit: eV}
      other: {unit: 5}
    alerts:
      action: filter
    conformers:
      source: keep
      count: 5
      builder: openbabel
      device: cuda
      force_field: uff
      dielectric: 4
      cpu_limit: 5s
      retry_cpu_limit: 1s
  graph:
    edges: radius
    k: 4
  split:
    method: file
    folds: 1
    fold: 2
    fractions: {train: 0.5, valid: 0.1}
  train:
    targets: [{name: y, column: none}, {name: y, column: cls, unit: eV}]
    family: [gp]
    class_weights: balanced
    loss: bce
    members: 2
    start: some
    inputs:
      columns: [logS]
      descriptors: true
    model:
      heads: 3
      elements: [C, C, Xx]
      radial:
        basis: bessel
        cutoff: 9
    noise:
      weight: 1
    optimiser:
      sharded: true
      type: lamb
      min_lr: 1
    sparsity: "2:4"
  evaluate:
    on: [train, new]
    models: [some]
  score:
    models: [some, some, none]
    devices: [x]
  external:
    command: [no_such_program, "{nothing}"]
    files: [none.txt]
    input: pdbqt
    output: regex
    value: "("
    property: p
    better: low
    batch: 3
    poses: true
    env:
      1A: {value: b}
  rank:
    objectives:
      - {property: nothing, goal: maximise, at_least: x}
      - {property: mw, goal: minimise, use: median}
    constraints:
      - {property: hbd}
    where: "logS > 1"
    method: pareto
    actives: none
    domain: inside
  write:
    csv: results.db
    sdf: ../w.sdf
    smi: ./results.db
  acquire:
    property: none
    strategy: ucb
    where: "mw >"
    answers:
      table: in.csv
      column: none
      workflow: learn.yaml
    campaign:
      rounds: 0
      calls: 3
      first_count: 3
"""
# A line is a workflow of WORKFLOWS and settings of stages; `!` runs it and tells its events, `?` plans it.
REFUSED = r"""
learn; +acquire={}; train.targets=[{name: logS}, {name: year}]
learn; +acquire={strategy: uncertainty}; train.targets=[{name: cls}]; train.family=[forest]
learn; +acquire={answers: {table: none.csv}}
learn; +acquire={answers: {table: in.csv}}; train.targets=[{name: lim}]; +acquire.property=logS
learn; split={fold: 2}
learn; split={fold: 2, folds: 1}
learn; split={method: file, path: apart.txt, leaks: refuse}!
learn; split={method: file, path: apart.txt, leaks: allow}!
learn; split={method: file, path: apart.txt}!
learn; split={method: file, path: bad.txt}!
learn; split={method: file, path: tests.txt}!
learn; split={folds: 100, fold: 99}!
learn; split={folds: 60, fold: 60, method: scaffold}!
learn; split={method: time, column: same}!
learn; split={method: column, column: year}!
learn; split={method: column, column: cls}!
learn; split={limit: {train: 1}}!
learn; split={method: time, column: cls, fractions: {train: 1, valid: 0, test: 0}}!
learn; prepare.labels=[logS, T]; train.inputs.columns=[T]
learn; train.inputs.columns=[logS]
learn; train.inputs.columns=[nothing]
learn; train.inputs.columns=[name]
learn; train.inputs.columns=[year]; prepare.labels=[logS]; read.censored=bound!
learn; prepare.labels=[one]; train.targets=[{name: one}]
learn; prepare.labels=[one, logS]; train.targets=[{name: logS}]
learn; prepare.labels=[huge]; train.targets=[{name: huge}]
learn; prepare.labels=[same]; train.targets=[{name: same}]
learn; prepare.labels=[comma]; train.targets=[{name: comma}]
learn; prepare.labels=[empty]; train.targets=[{name: empty}]
learn; prepare={labels: [odd], properties: {odd: {task: classification}}}; train.targets=[{name: odd}]
learn; prepare={labels: [ones], properties: {ones: {task: classification}}}; train.targets=[{name: ones}]
learn; prepare.labels=[Logs]; train.targets=[{name: Logs}]
learn; prepare.labels=[few]; train.targets=[{name: few}]
learn; prepare.labels=[few, two]; train.targets=[{name: few}, {name: two}]
learn; prepare.labels=[few, two]; train.targets=[{name: few}, {name: two}]; train.family=[se3]
learn; prepare.labels=[ten]; train.targets=[{name: ten}]
learn; prepare.labels=[ten]; train.targets=[{name: ten}]!
learn; prepare.labels=[ten, few]; train.targets=[{name: ten}, {name: few}]!
learn; prepare.labels=[few, logS]; train.targets=[{name: few, transform: composition}]; train.family=[se3]!
learn; prepare.labels=[big]; train.targets=[{name: big}]; train.family=[gp]!
learn; prepare.labels=[n_atoms, logS]; train.targets=[{name: n_atoms, transform: composition}]!
learn; prepare.labels=[only, logS]; train.targets=[{name: only}, {name: logS}]; train.family=[se3]!
learn; read.censored=bound; prepare.labels=[contrary]; train.targets=[{name: contrary}]!
learn; train.targets=[{name: logS}, {name: cls}]; train.family=[se3]
learn; train.targets=[{name: logS, class_weight: 2}]
learn; train.targets=[{name: cls}]; train.family=[gp]; train.class_weights=balanced
learn; train.targets=[{name: cls, unit: D}]; train.family=[forest]
learn; train.targets=[{name: cls}]; read.censored=bound; train.family=[forest]
learn; read.censored=bound; train.family=[gp]
learn; read.censored=bound; train.family=[trees]!
learn; train.family=[se3]; graph={edges: topology}; train.noise={weight: 1}
learn; train.family=[se3]; train.noise={weight: 1}; train.engine=ref
learn; train.family=[se3]; train.task=denoise; train.sparsity=2:4
learn; train.family=[se3]; train.task=denoise; train.inputs.columns=[T]
learn; train.family=[se3]; train.model.radial={basis: bessel, cutoff: 9}; graph={edges: radius, cutoff: 4}
learn; train.family=[se3]; train.devices=[0]; train.engine=cpu
learn; train.family=[se3]; train.products=own; train.engine=cpu
learn; train.family=[se3]; train.model.elements=[C, H]!
learn; train.family=[se3]; train.model.elements=[He]!
learn; prepare.alerts={rules: ["C(( x"]}
learn; prepare.alerts={file: many.smarts}
learn; prepare.conformers={builder: openbabel, device: cuda}
learn; prepare.conformers={retry_cpu_limit: 1s, cpu_limit: 2s}
learn; prepare.keep=mw > 9000!
learn; read.max_record=1KiB; prepare.max_heavy_atoms=1!
learn; rank.objectives=MANY
learn; rank.actives=none!
learn; rank.actives=cls!
learn; prepare.labels=[logS, one]; rank.actives=one!
learn; +write={csv: LONG}
none; prepare.labels=[logS]!
wrong; prepare.labels=[]!
axes; prepare.labels=[]!
score!
score; score.models=[cls]; rank={objectives: [{property: cls, goal: maximise}]}!
score; score.models=[cls]; rank={objectives: [{property: cls, goal: maximise, use: mean - interval90}]}
score; score.models=[some]; rank={objectives: [{property: logS, goal: maximise, use: mean - interval90}]}!
score; score.models=[some, col]!
score; score.models=[bare]!
score; score.models=[bare]; rank.domain=inside
score; score.models=[bare]; rank={objectives: [{property: logS, goal: maximise, similarity_at_least: 0.5}]}
score; score.models=[two, some]; rank={objectives: [{property: logS, goal: maximise, use: mean - stdev}]}!
score; score.models=[two, some]; rank={objectives: [{property: logS (mol), goal: maximise, use: mean - stdev}]}
score; score.models=[half, some]; rank={objectives: [{property: logS, goal: maximise, use: mean - stdev}]}
score; score.models=[half, some, bare]; rank={objectives: [{property: logS, goal: maximise, use: mean - stdev}]}
score; score.models=[half, some, bare]; rank={objectives: [{property: logS (mol), goal: maximise, use: mean - stdev}]}
score; score.models=[some, bare]; rank={objectives: [{property: logS, goal: maximise, use: mean - stdev}]}
score; score.models=[bare, some, two]; rank={objectives: [{property: logS, goal: maximise, use: mean - stdev}]}!
score; score.models=[other]
score; score.models=[]!
judge!
judge; evaluate.calibrate=true!
judge; evaluate.targets=[{name: year}]!
judge; evaluate.targets=[{name: logS, column: lim}]!
judge; evaluate.targets=[{name: logS, factor: 2}]!
judge; prepare.properties={logS: {unit: other}}!
judge; prepare.properties={logS: {unit: mol}}!
judge; evaluate.models=[cls]; evaluate.calibrate=true!
judge; evaluate.models=[cls]!
judge; evaluate.models=[two]!
judge; evaluate.models=[bare]; evaluate.calibrate=true!
judge; evaluate.on=[train, new]!
judge; evaluate.on=[test]
judge; evaluate.models=[none]
axes; prepare.labels=[x]
start; train.family=[se3]; train.start=some
start; train.family=[se3]; train.start=two; train.targets=[{name: logS}, {name: year}]; split.fractions={train: 0.4, valid: 0.3, test: 0.3}!
start; train.family=[se3]; train.start=two; train.model.channels=4
start; train.family=[se3]; train.start=none
learn; train.family=[se3]; train.task=denoise; train.targets=[]; evaluate={}; score={}
learn; prepare={labels: [ones, logS], properties: {ones: {task: classification}}}; rank.actives=ones!
learn; split={method: time, column: cls}!
learn; train.family=[se3]; train.model.radial={cutoff: 9, number: 9}
learn; train.family=[se3]; train.precision=bf16; train.kernels=portable; train.epochs=1!
learn; train.family=[se3]; graph={edges: bonds, max_edges: 40}; train.epochs=1!
learn; train.family=[se3]; graph={edges: bonds, max_edges: 50}; train.epochs=1!
learn; prepare.labels=[lost, logS]; rank.actives=lost!
learn; prepare.labels=[heavy, logS]; train.targets=[{name: heavy, transform: composition}]; train.family=[gp]!
learn; read.censored=bound; train.targets=[{name: lim}]; train.family=[gp, trees]; rank.objectives=[{property: lim, goal: maximise}]!
learn; split.fractions={train: 0.6, valid: 0.2, test: 0.19, calibration: 0.01}; train.family=[gp]; rank.objectives=[{property: logS, goal: maximise, use: mean - interval90}]!
learn; train.inputs.columns=[WIDE]
gone; prepare={labels: [lost], conformers: {source: none}, keep: "mw < 100"}; graph={edges: topology}; train.targets=[{name: lost}]; train.family=[gp]!
judge; prepare.labels=[year]!
mixed; read.censored=bound; prepare.labels=[lim]!
learn; prepare.labels=[logS]; rank={objectives: [{property: mw, goal: maximise}, {property: logp, goal: minimise}, {property: tpsa, goal: minimise}], method: pareto, top: 30}!
learn; rank={objectives: [{property: mw, goal: maximise, at_least: 50}], constraints: [{property: hbd, at_least: 1, at_most: 1}], diversity: {by: similarity, threshold: 0.4}}!
learn; rank={objectives: [{property: mw, goal: maximise}, {property: logS, goal: maximise, weight: 0.5}], where: "logp > 0 and (hbd = 0 or tpsa < 30)", diversity: {by: scaffold, at_most: 1}}!
score; score.models=[two]; rank={objectives: [{property: year, goal: maximise, at_least: 0}, {property: logS, goal: minimise, at_most: 100}]}!
clash; read.censored=bound!
nothing!
packed
learn; prepare.alerts={rules: ["[OX2H] hydroxyl", "[#6] carbon"], action: filter}!
learn; prepare.alerts={rules: ["[OX2H] hydroxyl", "[NX3;H2] amine", "[OX2H] twice"]}!
learn; train.family=[se3]; train.budget=1h; train.epochs=3!
score!
zipped; prepare.labels=[logS]?
zipped; prepare.labels=[logS]!
start; train.family=[se3]; train.start=two!
places
"""


def what_cannot_be_done_is_told_as_before():
    with Project() as p:
        t = Transcript(p, "refused")
        molecules(p)
        lines = open(p.path("in.csv")).read().splitlines()
        more = [("one", "huge", "same", "comma", "empty", "odd", "ones", "few", "big", "n_atoms", "only", "contrary", "ten", "two", "lost", "heavy")]
        more += [(i == 3 and 5, (-1) ** i * 1.2e308, 7, '"1,%d"' % i, "", i % 3, 1, i < 4 and i, i * 1e200, 3 * i, i in (2, 5) and i, {5: "<1", 4: ">5", 3: ""}.get(len(lines) - 1 - i, i)) for i in range(len(lines) - 1)]
        more[1:] = [some + (i < 10 and i, i < 2 and i, i == len(lines) - 2 and 1, len(re.findall("Cl|Br|Se|[BCNOFSPIcnos]", lines[i + 1].split(",")[0]))) for i, some in enumerate(more[1:])]
        rows = [",".join([line] + [x if isinstance(x, str) else "" if x is False else repr(x) for x in some]) for line, some in zip(lines, more)]
        p.put("in.csv", "\n".join(rows) + "\n")
        p.put("new.csv", "smiles,name,logS,year,lim,cls\n" + "".join("%s,n%d,%g,%d,%g,%d\n" % (x, i, -0.3 * i, i, i, i % 2) for i, x in enumerate(
            "CCCO CCCCO CC(C)O CCCCCCO OCCO CCOC CNC CCCN c1ccccc1C CCCl FCCF CC[Se]CC C#CC".split())))
        for name, text in (("none.smi", ""), ("wrong.smi", "C1 a\nC( b\nXx c\nC( d\n"), ("axes.smi", "CC=C=CC allene\nC[C@H]=C=CC marked\nCc1cccc(Cl)c1-c1c(C)cccc1Cl biaryl\n"
                           "Cc1cccc(Cl)c1-c1c(Cl)cccc1C same\nCC=[C@]=CC one\nCC=[C@@]=CC other\n"),
                           ("apart.txt", "left train\nright test\nm1 train\nm2 train\nm3 valid\n"), ("bad.txt", "m1 train\nm2 nothing\n"), ("tests.txt", "m1 test\n"),
                           ("many.smarts", "".join("%s a%d\n" % ("C" * (i % 40 + 1), i) for i in range(5000)))):
            p.put(name, text)
        learn = LEARN.replace("{property: logS,", "{property: mw,")
        told = {"learn": (["{path: in.csv, format: csv, columns: {smiles: smiles, title: name}}"], learn, ""), "none": (["none.smi"], learn, ""), "wrong": (["wrong.smi"], SCORE, MODELS),
                "axes": (["axes.smi"], SCORE, MODELS), "score": (["new.csv"], SCORE, MODELS), "judge": (["new.csv"], JUDGE, MODELS)}
        told["clash"] = (["clash.csv"], learn.replace("cls, year, part, lim", "lim").replace("cls: {task: classification}", "lim: {unit: u}").replace("name: logS, unit: mol", "name: lim"), "")
        told["gone"] = (["lacking.csv"], learn, "")
        told["mixed"] = (["mixed.csv"],) + told["clash"][1:]
        told["start"] = told["learn"][:2] + (MODELS,)
        told["nothing"] = (["none.smi", "nothing.csv"], SCORE, MODELS)
        told["packed"] = (["a.tar.xz"], SCORE, MODELS)
        p.put("nothing.csv", "smiles,name\n")
        p.put("a.tar.xz", b"\xfd7zXZ\0")
        told["zipped"] = (["in.csv.gz", "in.csv"], learn, "")
        told["places"] = (["in.csv"], PLACES, MODELS)
        p.put("clash.csv", "smiles,name,lim,lim at least\n" + "".join("C%s,n%d,>%d,%d\n" % ("C" * i, i, i, i) for i in range(12)))
        p.put("mixed.csv", "smiles,name,lim,lim at least\n" + "".join("C%s,n%d,%s%d,%d\n" % ("C" * i, i, ">" * (i % 2), i, i) for i in range(12)))
        p.put("lacking.csv", "smiles,name,lost\n" + "".join("C%s,n%d,%s\n" % ("C" * i, i, i if i > 6 else "") for i in range(24)))
        p.put("in.csv.gz", gzip.compress(open(p.path("in.csv"), "rb").read(), mtime=0))
        for name, (inputs, stages, extra) in told.items():
            p.workflow(inputs, stages, name=name + ".yaml", workdir="runs/" + name, extra=extra)
        for name, words in (("some", "split.fractions={train: 0.5, valid: 0.1, test: 0.1, calibration: 0.3}"), ("cls", "train.targets=[{name: cls}]; train.family=[forest]"),
                            ("col", "train.family=[gp]; train.inputs.columns=[T]"), ("two", "train.family=[se3]; train.targets=[{name: logS}, {name: year}]"),
                            ("bare", "train.domain=0; train.targets=[{name: logS, unit: mol}]"), ("half", "train.targets=[{name: logS, unit: half, factor: 0.5}]; train.family=[gp]")):
            p.run("run", "learn.yaml", "-q", "-j", "1", "--until", "train", "workdir=runs/models", *["stages." + word for word in words.split("; ")],
                  env=dict(os.environ, MOLSIEVE_CPU="portable"))
            shutil.copy(p.path("runs/models/models/e2e.safetensors"), p.path(name + ".safetensors"))
        for line in REFUSED.strip().split("\n"):
            name, *words = line.rstrip("!?").split("; ")
            words = [re.sub(r"^(\+?)", r"\1stages.", word).replace("LONG", "a/" * 2100 + "b").replace("MANY", "[%s]" % ", ".join(["{property: mw, goal: maximise}"] * 17)).replace("WIDE", "c" * 300) for word in words]
            t.say(*(["run", name + ".yaml", "-q", "-j", "1"] if line.endswith("!") else ["plan" if line.endswith("?") else "check", name + ".yaml"]), *words)
            if line.endswith("!") and os.path.exists(p.path("runs", name, "results.db")):
                t.add("events", "\n".join("|".join(r) for r in p.rows(EVENTS, workdir="runs/" + name) if r[0] in ("warn", "error") or r[1] in ("split", "train", "evaluate", "rank")) +
                      "\n" + "\n".join("|".join(str(x) for x in r) for r in p.rows(PROPERTIES, workdir="runs/" + name)))
        t.say("run", "score.yaml", "-q", "-j", "1", "workdir=runs/units", "stages.score.models=[two, some]",
              "stages.rank={objectives: [{property: logS, goal: maximise, use: mean - stdev}]}")
        t.say("model", "info", "runs/start/models/e2e.safetensors")
        p.put("four.csv", "".join(open(p.path("new.csv")).readlines()[:5]))
        for words in ("check score.yaml models.some.sha256=%s" % ("0" * 64), "check start.yaml stages.train.family=[se3] stages.train.start=two models.two.sha256=%s" % ("0" * 64),
                      "check score.yaml stages.score.models=[col] inputs=axes.smi", "run judge.yaml -q -j 1 stages.evaluate.calibrate=true inputs=four.csv",
                      "run judge.yaml -q -j 1 stages.evaluate.calibrate=true inputs=new.csv models.some.path=runs/judge/models/some-calibrated.safetensors"):
            t.say(*[re.sub("^inputs=(.*)", r"inputs=[{path: \1}]", word) for word in words.split()])
        for words in ("export csv runs/score", "top runs/score --csv", "top runs/learn"):
            t.say(*words.split())
        t.say("run", "learn.yaml", "-q", "-j", "1")
        shutil.copy(p.path("some.safetensors"), p.path("runs/learn/models/e2e.safetensors"))
        t.say("run", "learn.yaml", "-q", "-j", "1", "--from", "score")
        t.end()



def settings_of_stages_are_explained_as_before():
    with Project() as p:
        t = Transcript(p, "settings")
        for stage in ("prepare", "graph", "basis", "split", "train", "evaluate", "score", "external", "write", "acquire"):  # read and rank: screen.txt
            t.say("help", stage)
        t.end()


main([trainings_of_each_kind_give_the_same_as_before, programs_of_each_kind_give_the_same_as_before, what_cannot_be_done_is_told_as_before,
      settings_of_stages_are_explained_as_before])
