#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the commands beside `run` print, word for word, as transcript.py does for a screen: models that are fitted, asked and explained,
molecules that are searched, chosen and labelled, campaigns, structures without a workflow, files of shards."""
import csv
import glob
import os
import re
import shlex
import shutil
import sqlite3
import struct
import subprocess

from sieve import Project, main, sdf_records
import import_e2e
import transcript
from transcript import SOURCE, files, screened, tables

ESOL = os.path.join(SOURCE, "workflows/data/esol.csv")


class Transcript(transcript.Transcript):
    def put(self, text):
        for pattern, new in ((r"\bXGBoost \d[\d.]*", "XGBoost VERSION"), (r"\bchecksum [0-9a-f]{16}\b", "checksum KEY"), (r"\.tmp\d+", ".tmpN"),
                             (r"(_seconds\{[^}]*\}) [\d.e+-]+", r"\1 N")):
            text = re.sub(pattern, new, text)
        super().put(text.replace(os.path.realpath(self.p.dir), "DIR"))


def esol(n, first=0):
    """Rows of SMILES and logS."""
    with open(ESOL) as f:
        return [(r["smiles"], r["logS"]) for r in list(csv.DictReader(f))[first:first + n]]


def said(t, text):
    """Commands, one a line or between bars; words with blanks are between quotes."""
    for one in text.strip().replace("\n", "|").split("|"):
        t.say(*shlex.split(one))


def pages(t, *names):
    """Reports without the drawings of molecules."""
    for name in names:
        text = re.sub(r'(?s)<svg class="mol".*?</svg>', "<svg/>", open(t.p.path(name)).read())
        t.p.put(name, re.sub(r"(?s)<(style|script)>.*?</\1>", r"<\1/>", text))
    files(t, names)


def written(t, *names):
    for name in names:
        t.add(name, open(t.p.path(name)).read() if os.path.exists(t.p.path(name)) else "is not there")


# ---- a model of a table, and what it is asked ----

FIT = r"""
fit t.csv -t none|fit t.csv -t word|fit t.csv -t logS --family auto,gp|fit t.csv -t logS --family 'trees; gp'|fit t.csv -t logS --family nothing|fit t.csv -t logS --seed x
fit t.csv -t logS --seed -1|fit t.csv -t word --task classification|fit t.csv -t logS --task classification|fit t.csv -t half --unit eV
fit t.csv -t logS --better best|fit t.csv -t logS --split none|fit t.csv -t logS --engine none|fit t.csv -t logS --inputs temp,none
fit t.csv -t logS --inputs temp,|fit t.csv -t logS -j x|fit t.csv -t logS --max-time x|fit t.csv -t logS --smiles-column 9|fit none.csv -t logS
fit t.csv -t logS --smiles-column word|fit t.csv -t logS --id-column none|fit t.csv -t logS -o m --dry-run|fit t.smi -t logS
fit t.sdf -t logS -n -o s|fit t.sdf -t none|fit t.csv -t logS -o none/m.safetensors -n
fit t.csv -t logS --family trees,gp --unit 'log10(mol/L)' --better high -o m -j 2 --split random
fit t.csv -t logS --family trees,gp --unit 'log10(mol/L)' --better high -o m -j 2 --split random
fit t.csv -t half --family forest -o half -j 2 --split random
fit t.csv -t logS --family gp --inputs temp -o warm -j 2 --split random
fit odd.csv -t '..pIC50 (nM)' -n|fit odd.csv -t '???' -n|fit odd.csv -t x.y-z_ -n|fit odd.csv -t x.y-z_ -n -o .safetensors|fit odd.csv -t x.y-z_ -n -o new/.fit|fit odd.csv -t class -n --task regression
fit odd.csv -t class -n -o k|fit odd.csv -t class -n -o k --seed 0|fit odd.csv -t class -n -o k --family se3|fit odd.csv -t class -n -o k --family a.b|fit odd.csv t.csv -t class
fit bad.csv -t logS --family gp -o bad -j 2 --split random
"""
ASKED = r"""
predict m a.smi|predict m.safetensors a.smi -c title,smiles,logS,logS_unit,logS_domain,logS_reasons,problem,record,line,inchikey,formula,charge,n_heavy,removed,geometry,undefined_stereo,mw
predict m.safetensors a.smi -f jsonl|predict m.safetensors a.smi -f sdf -c title,logS|predict m.safetensors a.smi -f xml|predict m.safetensors a.smi -c title,,logS
predict m.safetensors a.smi -c title,nothing|predict m.safetensors t.csv -c word,logS -o out.csv|predict m.safetensors t.csv -c word,logS -o t.csv
predict m.safetensors t.csv -q --smiles-column smiles --id-column word -o out.jsonl|predict m.safetensors t.csv --smiles-column none
predict m.safetensors,half.safetensors a.smi -c title,logS,half,half_domain|predict m.safetensors,m.safetensors a.smi -c title,logS,logS_stdev
predict m.safetensors a.smi --structures none|predict m.safetensors a.smi --engine none|predict m.safetensors a.smi --engine ref -q
predict m.safetensors a.smi --seed x|predict m.safetensors a.smi --count 0|predict m.safetensors a.smi --input-format none|predict m.safetensors a.smi -j 9999
predict warm.safetensors a.smi|predict warm.safetensors t.csv -c id,warm,logS -q -o warm.csv|predict warm.safetensors u.csv|predict warm.safetensors a.smi --set temp
predict warm.safetensors a.smi --set temp=x|predict warm.safetensors a.smi --set none=3|predict warm.safetensors a.smi --set temp=20 -c title,logS,temp|predict warm.safetensors t.csv --set temp=20 -c smiles,temp
label warm.fit/run t.csv -p logS|predict warm.safetensors u.csv --set temp=20,temp=30|predict m.safetensors a.smi --set temp=20|predict m.safetensors,warm.safetensors a.smi -c title,logS
predict none a.smi|predict m.safetensors|predict m.safetensors none.smi|predict t.csv a.smi|predict m.safetensors a.smi -o out.sdf.gz|predict esol c.sdf -c title,logS,geometry
predict esol c.sdf --structures keep -c title,logS,geometry|predict esol a.smi --structures keep|predict esol a.smi --count 2 -c title,logS,geometry
predict qm9-gap u.csv -c smiles,gap,gap_domain,gap_reasons
model info m.safetensors|model info half.safetensors|model info warm.safetensors|model info m.safetensors --json|model verify warm.safetensors
model verify m.safetensors --sha256 00|bench --memory --model m.safetensors|model diff m.safetensors warm.safetensors|model diff m.safetensors half.safetensors --all
report m.fit/run -o r.html|report half.fit/run -o half.html|report m.fit/run -o r2.html --top x|report m.fit/run -o - --top 1001
"""


def a_model_is_fitted_and_asked_as_before():
    with Project() as p:
        t = Transcript(p, "answers")
        rows = esol(90)
        p.put("t.csv", "smiles,word,logS,half,temp\n" + "".join(
            "%s,%s,%s,%d,%d\n" % (s, "abc"[k % 3] + str(k), y, float(y) > -2, 20 + k % 5) for k, (s, y) in enumerate(rows)))
        p.put("u.csv", "smiles,T\nCCO,5\nCCC,6\n")
        p.put("odd.csv", "smiles,..pIC50 (nM) ,???,x.y-z_,class\n" + "".join("%s,%d,%d,%d,%d\n" % (s, k, -k, 2 * k, k % 2) for k, (s, _) in enumerate(rows[:30])))
        p.put("bad.csv", "smiles,logS\n" + "".join("%s,%s\n" % (["C(x", "C1CC)"][k // 9 - 1] if k in (9, 18) else s, y) for k, (s, y) in enumerate(rows[:40])))
        p.put("a.smi", "CCO ethanol\nC(x bad\n[Na+].CC(=O)[O-] salt\nCC(O)C(F)Cl\n%s known\nC1CCC1CCBr\n[Fe] iron\n" % rows[0][0])
        p.put("t.smi", "CCO 1\nCCC 2\n")
        p.put("c.sdf", sdf_records(os.path.join(SOURCE, "workflows/data/qm9-30.sdf"), 4))
        records = open(os.path.join(SOURCE, "workflows/data/qm9-30.sdf")).read().split("$$$$\n")[:24]
        p.put("t.sdf", "".join("%s> <logS>\n%s\n\n$$$$\n" % (r, -0.1 * k) for k, r in enumerate(records)))
        said(t, FIT)
        written(t, "m.fit/train.yaml", "half.fit/train.yaml", "warm.fit/train.yaml")
        said(t, ASKED)
        written(t, "out.csv", "out.jsonl", "warm.csv")
        files(t, ("r.html", "half.html"))
        t.end()


# ---- a screen with scores: searched, shown, chosen from, labelled, explained, exported ----

LIBRARY = """  read: {unit: 12}
  prepare: {conformers: {source: none}, neutralise: true, labels: [logS], properties: {logS: {unit: "log10(mol/L)", better: high}}}
  graph: {edges: topology}
  split: {method: random, fractions: {train: 0.7, valid: 0.15, test: 0.15}}
  train: {name: m, family: [trees, gp], targets: [{name: logS, unit: "log10(mol/L)", better: high}]}
  evaluate: {on: [train, valid, test]}
  score: {}
  rank: {objectives: [{property: logS, goal: maximise}], top: 12}
"""
LOOKED = r"""
search --similar 'c1ccccc1O' --at-least 0.3|search --similar c1ccccc1O --at-least 0.3 --csv|search --similar c1ccccc1O --at-least 0.3 --json -n 2
search --similar c1ccccc1O --at-least 2|search --similar c1ccccc1O --at-least x|search --smarts '[OH]c'|search --smarts '[OH]c' -f jsonl|search --smarts '[OH]c' -j x
search --smarts '[OH]c' -f smi|search --smarts '[OH]c' -f sdf -o s.sdf|search --smarts '[OH]c' -n 2 -f sdf|search --scaffold c1ccccc1 --where 'mw < 120'
search --scaffold c1ccccc1 -n 3|search --where 'mw < 60' -f csv -o w.csv|search --where 'mw < 60' -n 0|search --where "smarts('[OH]') and logp > 2"
search --where "similarity('CCO') > 0.5"|search --where "similarity('C(') > 0.5"|search --where "smarts('C(') "|search --where "scaffold = ''" -n 4
search --smarts C --similar CCC --at-least 0.2 --scaffold '' -n 3|search --smarts '[Xx]'|search --smarts C -n -1|search --smarts C -o s.xyz|search --csv --json --smarts C
show M3|show M3 --json|show 5|show 999|show 'OCC'|show 'CCCCCCCCC'|show 'C('|show LFQSCWFLJHTTHZ-UHFFFAOYSA-N|show LFQSCWFLJHTTHZ|show same|show dup|show M200|show ''
show bad|show M3 none|show M3 --csv
next -n 4|next -n 4 --csv|next -n 4 -f csv|next -n 4 -f json --by ucb|next -n 4 -f jsonl --by ucb --beta 1|next -n 3 -f smi --by random --seed 4|next -n 2 -f sdf
next -n 4 --by ucb --beta x|next -n 4 --by thompson|next -n 4 --by expected_improvement|next -n 4 --by expected_improvement --best -1 -o plate.csv
next -n 4 --exclude plate.csv|next -n 4 --exclude t.csv|next -n 4 --exclude none.csv|next -n 4 --goal up|next -n 4 --goal minimise --by uncertainty
next -n 40 --max-similarity 0.3 --per-scaffold 1|next -n 4 --max-similarity 3|next -n 4 --max-similarity 0|next -n 4 --max-similarity 1|next -n 2 --by ucb --beta 0|next -n 2 --by ucb --beta 1000|next -n 2 --by ucb --beta 1001|next -n 4 --per-scaffold 0|next -n 4 --per-scaffold x|next -n 40 --inside|next -n 90 --measured
next -n 4 --where 'mw < 100'|next -n 4 --where 'mw <'|next -n 4 --sigma stdev --by ucb|next -n 4 --sigma interval --by ucb|next -n 4 --sigma gp --by ucb
next -n 4 --property none|next -n 4 --property logS|next -n 4 -o p.xyz|next -n 4 -o p.sdf|next -n 4 -o p.smi|next -n 0|next --seed x|next -n 5 --where 'mw > 9999'
explain M3|explain 5 --svg five.svg|explain 5|explain M3 --svg none/x.svg|explain same|explain bad|explain 'OCC'|explain 999|explain LFQSCWFLJHTTHZ-UHFFFAOYSA-N
explain w.yaml rank|explain w.yaml score stages.score.batch=9|explain w.yaml train stages.train.seed=3|explain 5 w.yaml
export csv --top 3|export csv --all|export smi --all|export jsonl --top 2|export sdf --top 2|export csv --where 'mw < 60'|export csv --top x|export xyz --all
export csv --top 3 -o hits.csv.gz|export csv -o runs/one/results.db|export csv -o none/|export smi --conformers all|export csv --conformers none|export csv --all --where 'mw <'
top -n 4|top --csv -n 2|top --json -n 1|failures|failures --json|failures --csv|failures --code parse -n 1|failures -n 0|status|status --json|status --prometheus
query v_hits|query v_funnel|query 'SELECT name, metadata_json IS NULL AS n FROM model'|query 'SELECT stage, code, message, place FROM v_failures'|query -f jsonl 'SELECT name, unit FROM property'|query 'SELECT * FROM molecule LIMIT 1' --json
query "SELECT similarity('CCO', zeroblob(3))"|query "SELECT scaffold('c1ccccc1CC') AS s"|query "SELECT smarts('C', 'x')"
query "SELECT similarity(NULL, bits) AS n, similarity('CCO', NULL) AS m FROM fingerprint LIMIT 1"|query "SELECT similarity('CCO', bits) FROM fingerprint LIMIT 2"|query "SELECT no_such(1)"
db metadata runs/one|db metadata|db metadata none|db digest runs/one|db check runs/one|db nothing|db prune w.yaml|db prune w.yaml --alone --dry-run
plan w.yaml --dag mermaid|plan w.yaml --dag dot|plan w.yaml --dag text|plan w.yaml --dag none|check w.yaml --json|check w.yaml -q
report runs/one -o r.html -n 3|report runs/one -o r2.html --training runs/one|report runs/one --training none -o r3.html|report runs/one -o none/r.html|report -n x
report runs/one -n 1001|report runs/one -n -1
"""
LABELLED = r"""
label runs/one l1.csv|label runs/one l1.csv -p logS -n|label runs/one l1.csv -p logS|label runs/one l1.csv -p logS|label runs/one l2.csv -p logS|label runs/one l2.csv -p logS --replace
label runs/one l3.csv -p logS|label runs/one l3.csv -p none|label runs/one l3.csv -p logs|label runs/one l4.csv -p logS --column value --unit 'mol/L'
label runs/one l4.csv -p logS --column value --unit 'log10(mol/L)'|label runs/one l4.csv -p logS --column value --unit uM --factor 2|label runs/one l4.csv -p logS --column value --factor 0
label runs/one l4.csv -p logS --column value --factor x|label runs/one l4.csv -p active --new --class --column value|label runs/one l4.csv -p depth --new --column value --unit cm
label runs/one l4.csv -p depth --column value --unit mm|label runs/one l4.csv -p depth --column value --unit mm --factor 0.1 --replace|label runs/one l4.csv -p logS --new --column value
label runs/one l5.csv -p logS|label runs/one none.csv -p logS|label runs/one a.smi -p logS|label runs/one l6.csv -p logS|label runs/one l7.csv -p logS|label runs/one l8.csv -p act --new --class
label none l1.csv -p logS|label runs/one m.sdf -p logS|label runs/one l9.csv -p logS|label runs/one l1.csv -p '' --new|label runs/one l1.csv -p logS --class|label runs/one l10.csv -p logS
label runs/one l11.csv -p logS|label runs/one l12.csv -p logS|label runs/one l12.csv -p logS --column LOGS --replace -n
run w.yaml -j 2|query "SELECT name, value, titles FROM v_labels ORDER BY 1, 3"|status|show M61|next -n 3
"""
LABEL_FILES = {
    "l1.csv": "id,logS\nM60,-1.5\nM61,-2.25\nM62,\n", "l2.csv": "id,logS\nM60,-1.75\nM63,-3\n",
    "l3.csv": "id,logS\nM60,-1.75\nnobody,1\nM64,abc\nM64,1\nM64,2\nsame,3\nM65,>4\nbad,1\nM66,inf\n", "l4.csv": "InChIKey,value\nLFQSCWFLJHTTHZ-UHFFFAOYSA-N,1\n",
    "l5.csv": "id,smiles,logS\nM60,CCO,-1.75\nM67,C(x,1\n,CCCCCCCCCC,1\n,,3\n,C(x,2\n", "l6.csv": "a,b\n1,2\n", "l7.csv": "id,logS,logS_unit\nM68,1,uM\n",
    "l8.csv": "id,act\nM60,1\nM61,2\nM62,0\n", "l9.csv": "id,logS,logS_interval90,logS_domain\nM60,1,2,inside\n", "l10.csv": "id,logS\n" + "".join("X%d,1\n" % k for k in range(104)),
    "l11.csv": "id,logS,x,logS\nM60,1,2,3\n", "l12.csv": "id,LOGS,logs\nM60,1,2\n"}


def molecules_are_looked_up_chosen_and_labelled_as_before():
    with Project() as p:
        t = Transcript(p, "library")
        rows = esol(75)
        p.put("t.csv", "id,smiles,logS\n" + "".join("M%d,%s,%s\n" % (k, s, y if k < 60 else "") for k, (s, y) in enumerate(rows)) +
              "dup,%s,\nsame,CCCO,\nsame,CCCCO,\nbad,C(x,1\nE,CCO,\nP,Oc1ccccc1C,\n" % rows[3][0])
        p.put("a.smi", "CCO a\n")
        p.put("m.sdf", "".join("%s> <logS>\n1\n\n$$$$\n" % r for r in open(os.path.join(SOURCE, "workflows/data/qm9-30.sdf")).read().split("$$$$\n")[:3]))
        for name, text in LABEL_FILES.items():
            p.put(name, text)
        p.workflow(["t.csv"], LIBRARY, workdir="runs/one", extra="limits: {failures: {max_fraction: 1}}\n")
        t.say("run", "w.yaml", "-j", "2")
        said(t, LOOKED)
        written(t, "s.sdf", "w.csv", "plate.csv", "p.sdf", "p.smi", "five.svg")
        files(t, ("r.html",))
        said(t, LABELLED)
        tables(t)
        t.end()


# ---- campaigns ----

ROUNDS = """  read: {unit: 20}
  prepare: {conformers: {source: none}, labels: [none]}
  graph: {edges: topology}
  split: {fractions: {train: 1, valid: 0, test: 0}}
  train: {name: m, family: [gp], targets: [{name: logS, unit: "log10(mol/L)", better: high}]}
  score: {}
  acquire:
    strategy: ucb
    count: 12
    answers: {table: lib.csv}
    campaign: {rounds: 3, first: diverse}
"""
ORACLE = """format: 1
name: oracle
seed: 1
inputs: [{path: lib.csv}]
stages:
  read: {}
  prepare: {conformers: {source: none}}
  %s
limits: {failures: {max_fraction: 1}}
"""
COUNTED = """external: {name: counter, command: [sh, -c, 'echo id,letters; while read s i; do case $s in *Cl*) ;; *) echo $i,$(expr length "$s");; esac; done < {input}'],
    input: smiles, output: csv, property: letters, better: high}"""
TWO = "\n  graph: {edges: topology}\n  score: {models: [m]}\nmodels: {m: {path: runs/one/models/m.safetensors}}"
WORKFLOW = "stages.acquire.answers={workflow: oracle.yaml}"
TRIED = r"""
campaign c.yaml --plan|campaign c.yaml --plan stages.acquire.campaign.first=random|campaign c.yaml --plan 'stages.acquire.campaign={calls: 30, first: diverse}'
campaign c.yaml --plan 'stages.acquire.campaign={time: 1h, no_gain: 2, calls: 40}'|campaign c.yaml --max-time x|campaign c.yaml -j x|campaign c.yaml --part 0|campaign c.yaml --part x/2
campaign c.yaml --parts x|campaign c.yaml --parts 2 --part 0/2|campaign c.yaml -j 2|campaign c.yaml -j 2|status|top|query v_acquired|query 'SELECT * FROM measured'
campaign c.yaml stages.acquire.count=9|campaign c.yaml stages.acquire.campaign.rounds=2|next -n 3|report runs/one -o r.html|explain c.yaml acquire|db check runs/one
script c.yaml --campaign -s lsf|script c.yaml --campaign -s slurm --array 2 --merge|script c.yaml --campaign -s pbs --array 2 --merge
script c.yaml --campaign -s sge --array 2 --merge|script c.yaml --campaign -s sge --array 2|script c.yaml --campaign -s slurm scheduler.nodes=2|script c.yaml --campaign -s slurm scheduler.tasks=3
campaign c.yaml -j 2 workdir=parts --parts 2|campaign c.yaml workdir=parts --parts 2 --missing|campaign c.yaml -j 2 workdir=parts --part 1/2
campaign c.yaml workdir=parts --parts 2 --missing|campaign c.yaml -j 2 workdir=parts --part 1/2|campaign c.yaml -j 2 workdir=parts --parts 2|campaign c.yaml -j 2 workdir=parts --part 0/2
campaign c.yaml -j 2 workdir=parts --parts 2|campaign c.yaml -j 2 workdir=parts --part 5/2|campaign c.yaml -j 2 workdir=parts --part 0/3|campaign c.yaml --missing
check c.yaml 'stages.acquire.answers={table: cases.csv}'|check c.yaml 'stages.acquire.answers={table: cases.csv, column: LOGS}'
campaign c.yaml -j 2 workdir=far 'stages.acquire.answers={table: far.csv}'
campaign c.yaml -j 2 workdir=gain 'stages.acquire.campaign={rounds: 5, no_gain: 1, first: diverse}'
campaign c.yaml -q -j 2 workdir=first stages.acquire.campaign.rounds=1|campaign c.yaml -q -j 2 workdir=all 'inputs=[{path: twice.csv}]' 'stages.acquire.campaign={first: diverse, calls: 30}'
"""
CLASSES = ROUNDS.replace("labels: [none]", "labels: [none], properties: {half: {task: classification}}").replace("[gp]", "[forest]").replace(
    '{name: logS, unit: "log10(mol/L)", better: high}', "{name: half, better: high}").replace("lib.csv", "class.csv").replace("strategy: ucb", "strategy: greedy").replace(
    "rounds: 3, ", "rounds: 3, first_count: 15, ")
MISTAKEN = """
  acquire:
    strategy: expected_improvement
    sigma: stdev
    property: none
    goal: auto
    where: "mw >"
    count: 12
    answers:
      table: lib.csv
      column: none
      workflow: oracle.yaml
    campaign:
      rounds: 3
      first_count: 9
      calls: 8
"""
LIMITS = ("first_count: 10, rounds: 1|first_count: 10, rounds: 6|first_count: 11, rounds: 6|calls: 70|calls: 71|calls: 12|calls: 11|first_count: 10, calls: 72, rounds: 7|"
          "rounds: 0, time: 1h|rounds: 0, no_gain: 1|rounds: 0, time: 0s")
STOPPED = "campaign c.yaml -q -j 2 workdir=waits --parts 2"
WAITING = """campaign c.yaml workdir=waits --part 0/2 -j 0|campaign c.yaml workdir=waits --part 0/2 -j 4097|campaign c.yaml workdir=waits --part 0/2 -j x|campaign c.yaml --parts 0
campaign c.yaml --parts 100000|campaign c.yaml --max-time 0s|campaign w.yaml|campaign c.yaml -q workdir=waits --part 1/2
campaign c.yaml -q workdir=waits --parts 2 --missing
campaign k.yaml -j 2|report runs/class -o k.html|next -n 3 runs/class|campaign c.yaml -q -j 2 workdir=low 'stages.train.targets=[{name: logS, better: low}]'
check mistaken.yaml|check mistaken.yaml stages.acquire.property=logS 'stages.train.targets=[{name: logS, factor: 2}]'|check mistaken.yaml stages.acquire.property=logS 'stages.train.inputs={columns: [t]}'
"""
LEFT = """campaign c.yaml --plan workdir=far 'stages.acquire.answers={table: far.csv}'|campaign c.yaml --plan workdir=first|campaign c.yaml --plan workdir=all
campaign k.yaml --plan|campaign c.yaml --plan workdir=low 'stages.train.targets=[{name: logS, better: low}]'|campaign c.yaml workdir=waits --parts 99999 --missing --plan
campaign k.yaml --plan 'stages.acquire.campaign={first: diverse, first_count: 15, rounds: 4, no_gain: 1}'
campaign k.yaml --plan stages.acquire.goal=minimise 'stages.acquire.campaign={first: diverse, first_count: 15, rounds: 4, no_gain: 1}'
campaign c.yaml --plan workdir=low 'stages.train.targets=[{name: logS, better: low}]' 'stages.acquire.campaign={first: diverse, rounds: 4, no_gain: 1}'
campaign c.yaml --plan workdir=low 'stages.train.targets=[{name: logS, better: low}]' 'stages.acquire.campaign={first: diverse, rounds: 4, no_gain: 2}'
campaign c.yaml --plan workdir=low stages.acquire.goal=minimise 'stages.acquire.campaign={first: diverse, rounds: 4, no_gain: 2}'
campaign c.yaml --plan workdir=low stages.acquire.goal=maximise 'stages.acquire.campaign={first: diverse, rounds: 4, no_gain: 2}'
"""
PLANS = "rounds: 3|rounds: 4|rounds: 5, time: 300s|rounds: 5, time: 301s|calls: 36|rounds: 4, calls: 37|rounds: 4, no_gain: 1|rounds: 4, no_gain: 2|rounds: 0, calls: 37|rounds: 9, calls: 49"


def a_campaign_asks_and_learns_as_before():
    with Project() as p:
        t = Transcript(p, "campaign")
        p.put("lib.csv", "id,smiles,logS\n" + "".join("M%d,%s,%s\n" % (k, s, y if k % 10 else "n.d.") for k, (s, y) in enumerate(esol(70))))
        p.put("far.csv", "id,logS\nX1,2\n")
        p.put("cases.csv", "id,LogS,LOGS\nM1,1,2\n")
        p.put("twice.csv", "id,smiles\n" + "".join("%s%d,%s\n" % ("MT"[k // 16], k, s) for k, (s, _) in enumerate(2 * esol(16))))
        p.workflow(["lib.csv"], ROUNDS, name="c.yaml", workdir="runs/one")
        said(t, TRIED)
        assert os.path.exists(p.path("runs/one/campaign.seconds"))
        said(t, STOPPED)
        os.remove(p.path("waits/campaign.seconds"))
        said(t, STOPPED)
        assert os.path.exists(p.path("waits/campaign.seconds"))  # also of a round that waits for other jobs
        p.put("class.csv", "id,smiles,half\n" + "".join("M%d,%s,%s\n" % (k, s, int(float(y) > -2) if k % 10 else "") for k, (s, y) in enumerate(esol(60))))
        p.workflow(["class.csv"], CLASSES, name="k.yaml", workdir="runs/class")
        p.workflow(["lib.csv"], ROUNDS[:ROUNDS.index("  acquire")].replace("none]}", "logS]}") + MISTAKEN, name="mistaken.yaml")
        p.workflow(["lib.csv"], ROUNDS[:ROUNDS.index("  acquire")].replace("none]}", "logS]}"), name="w.yaml")
        p.put("oracle.yaml", ORACLE % COUNTED)
        said(t, WAITING)
        for campaign in LIMITS.split("|"):
            t.say("check", "c.yaml", "stages.acquire.count=12", "stages.acquire.campaign={%s}" % campaign)
        for workdir in ("runs/one", "all", "far", "first", "runs/class", "low", "waits"):
            p.put(workdir + "/campaign.seconds", "300\n")
        said(t, LEFT)
        for campaign in PLANS.split("|"): # what is left of three rounds, or why nothing is
            t.say("campaign", "c.yaml", "--plan", "stages.acquire.campaign={first: diverse, %s}" % campaign)
        said(t, "campaign c.yaml -q workdir=waits --part 0/2|campaign c.yaml -q workdir=first --part 0/2|campaign c.yaml -q workdir=late --max-time 0.000001s")
        for path in glob.glob(p.path("waits/parts/*/scores.db")):  # as if from another machine
            db = sqlite3.connect(path)
            db.executescript("UPDATE meta SET value='other' WHERE key='level'")
            db.close()
        said(t, STOPPED + " stages.acquire.campaign.rounds=1")
        files(t, ("r.html",))
        pages(t, "k.html")
        tables(t)
        for scheduler in ("slurm", "pbs", "lsf", "sge"):
            t.say("script", "c.yaml", "-s", scheduler, "--campaign")
            t.say("script", "c.yaml", "-s", scheduler, "--campaign", "-a", "3", "-t", "2h")
            t.say("script", "c.yaml", "-s", scheduler, "--campaign", "-a", "3", "-t", "2h", "--merge")
        for oracle, more in ((COUNTED, []), (COUNTED.replace("better: high", "better: low"), []), (COUNTED.replace("better: high", "better: high, unit: cm"), []),
                             (COUNTED.replace("[sh,", "[no-such,"), []), ("graph: {edges: topology}", []),
                             (COUNTED, ["stages.acquire.answers={workflow: oracle.yaml, property: none}"]), (COUNTED, ["stages.acquire.answers={workflow: oracle.yaml, unit: cm}"]), (COUNTED + TWO, []),
                             (COUNTED + TWO, ["stages.acquire.answers={workflow: oracle.yaml, property: letters}"])):
            p.put("oracle.yaml", ORACLE % oracle)
            t.say("check", "c.yaml", "workdir=asked", *(more or [WORKFLOW]))
        t.say("check", "c.yaml", "workdir=asked", WORKFLOW, TMPDIR="/none")
        p.put("oracle.yaml", ORACLE % COUNTED.replace("[sh,", "[no-such,"))
        t.say("script", "c.yaml", "-s", "slurm", "--campaign", "workdir=asked", WORKFLOW)
        p.put("oracle.yaml", ORACLE % COUNTED)
        t.say("campaign", "c.yaml", "-j", "2", "workdir=asked", WORKFLOW, "stages.acquire.campaign.rounds=2", "stages.acquire.count=14")
        p.put("oracle.yaml", ORACLE % TWO.strip())  # of a model, high values are better
        t.say("campaign", "c.yaml", "-q", "-j", "2", "workdir=contrary", WORKFLOW, "stages.train.targets=[{name: logS, better: low}]")
        t.end()


# ---- structures without a workflow ----

BUILT = r"""
conformers a.smi -o a.sdf|conformers a.smi -o a.sdf.gz --count 2 --window 3|conformers a.smi --window x|conformers a.smi --window -1|conformers a.smi --dielectric 0
conformers a.smi --dielectric x|conformers a.smi --force-field uff|conformers a.smi --device tpu|conformers a.smi -o a.smi|conformers a.smi -o none/x/|conformers none.smi
conformers a.smi -f none|conformers t.csv -o t.sdf|conformers c.sdf -o c2.sdf|conformers c.sdf c.sdf|conformers
conformers none.smi --count 1000|conformers none.smi --count 1001|conformers none.smi --count 0|conformers none.smi -j 1024|conformers none.smi -j 1025|conformers none.smi -j 0
conformers none.smi --seed 0|conformers none.smi --seed -1|conformers none.smi --window 0|conformers none.smi --dielectric 1|conformers none.smi --dielectric 1000
conformers none.smi --dielectric 1001|conformers none.smi --dielectric 0.9|conformers none.smi --device cpu
energy odd.sdf|energy odd.sdf --csv|energy odd.sdf --json|init screen sc|init train le|init train le
conformers a.smi --force-field mmff94s -o s.sdf --seed 5 -j 1|conformers big.smi|conformers many.smi -o many.sdf -j 1|conformers a.smi --seed x|conformers a.smi --count x
energy c.sdf|energy c.sdf --csv|energy c.sdf --json|energy c.sdf --minimise|energy c.sdf --force-field mmff94s --csv|energy c.sdf --force-field uff|energy a.smi|energy none.sdf
energy boron.sdf --csv|energy boron.sdf --json|energy c.sdf -f none|energy|energy c.sdf --csv --json|energy mixed.sdf --minimise --csv|energy a.sdf|energy a.sdf --csv
init|init demo|init demo|init x --kind none|init tr --kind train|init a b|doctor --nothing|help nothing|completion|completion bash|completion zsh|completion fish|help topics
help conformers|help campaign|help query|help schema
"""


def structures_are_built_and_measured_as_before():
    with Project() as p:
        t = Transcript(p, "structures")
        screened(p)
        p.put("a.smi", "CCO ethanol\nC(x bad\n[Na+].CC(=O)[O-] salt\nCC(O)C(F)Cl\n[Fe] iron\nOCC\n")
        p.put("t.csv", "name,SMILES\nx,CCO\ny,C(\n")
        p.put("big.smi", "C" * 400 + " long\n")
        p.put("many.smi", "".join("%s m%d\n" % ("C(x" if k == 3 else "C", k) for k in range(130)))  # more than are built ahead
        one = open(p.path("c.sdf")).read().split("$$$$\n")
        p.put("mixed.sdf", "$$$$\n".join([one[0], "broken\n\n\n  1\n", one[1]]) + "$$$$\n")
        p.put("odd.sdf", 'a title, "longer" than its column\n' + one[0].split("\n", 1)[1] + "$$$$\n\n" + one[1].split("\n", 1)[1] + "$$$$\n")
        p.put("boron.sdf", one[0].replace(" C  ", " B  ", 1) + "$$$$\n" + one[1] + "$$$$\n")
        said(t, BUILT)
        for name in ("a.sdf", "s.sdf", "t.sdf", "c2.sdf"):
            text = open(p.path(name)).read() if os.path.exists(p.path(name)) else "is not there"
            t.add(name, re.sub(r"(?m)^( +-?\d+\.\d{4}){3}.*\n", "", text))
        t.end()


# ---- files of shards ----

SHARDED = """  read: {unit: 5}
  prepare: {conformers: {source: none}, labels: [y, z]}
  rank: {objectives: [{property: mw, goal: maximise}], top: 50}
  write: {csv: hits.csv}
"""
PARTED = r"""
merge w.yaml --missing|merge w.yaml --of x|merge w.yaml --of 0|run w.yaml -j 1 --shard 0/3 --out s0.db|run w.yaml -j 1 --shard 0/3 --out s0.db|merge w.yaml --missing
run w.yaml -j 1 --shard 1/3 --out s0.db|run w.yaml -j 1 --shard 1/3 --out w.yaml|run w.yaml -j 1 --shard 1/3 --out none/s1.db|run w.yaml -j 1 --shard 1/3 --out .
run w.yaml -j 1 --shard 1/3 --out runs/one/results.db|run w.yaml -j 1 --shard 1/3 --out s1.db|merge s0.db s1.db -o all.db|merge w.yaml|merge w.yaml --of 3|status
run w.yaml -j 1 --shard 2/3 --out s2.db|merge s0.db s1.db s2.db|merge s0.db s1.db s2.db s1.db -o all.db|merge s0.db s1.db s2.db -o s1.db|merge s0.db s1.db s2.db -o ''
merge s0.db s1.db s2.db -o a.smi|merge s0.db s1.db s2.db -o all.db|merge s2.db s1.db s0.db -o all.db|merge s0.db s1.db a.smi -o b.db|merge s0.db s1.db none.db -o b.db
db digest all.db|db schema all.db|db check all.db|db check s1.db|query v_funnel all.db|status all.db|run w.yaml -j 1 --shard 0/2|merge w.yaml|merge w.yaml --of 3|merge w.yaml --of 3|merge w.yaml --of 2
run w.yaml -j 1|status|db digest runs/one|merge w.yaml --of 3|merge w.yaml s0.db s1.db s2.db workdir=other|merge w.yaml s0.db s1.db workdir=third|merge w.yaml s0.db --of 3 workdir=third
run w.yaml -j 1 workdir=other|db digest other|run w.yaml -j 1 stages.prepare.max_heavy_atoms=4 --shard 1/3 --out u1.db|merge s0.db u1.db s2.db -o c.db|merge w.yaml s0.db u1.db s2.db workdir=fifth
run w.yaml -j 1 --shard 0/3 --out s0.db storage.results=x.db|run w.yaml --shard 9/3|failures all.db|top all.db|export csv all.db|report all.db -o all.html|db backup all.db --to copy.db
"""


def files_of_shards_are_merged_as_before():
    with Project() as p:
        t = Transcript(p, "merged")
        p.put("a.smi", "".join("%s a%d\n" % (s, k) for k, (s, _) in enumerate(esol(12))) + "C(x bad\nCCO e\n")
        p.put("b.csv", "smiles,y,z\n" + "".join("%s,%s,%s\n" % (s, y, "x" if k == 2 else k) for k, (s, y) in enumerate(esol(14, 6))) + "OCC,1,2\n")
        p.workflow(["a.smi", "b.csv"], SHARDED, workdir="runs/one", extra="limits: {failures: {max_fraction: 1}}\n")
        said(t, PARTED)
        written(t, "runs/one/hits.csv", "other/hits.csv")
        tables(t)
        t.end()


# ---- jobs, by stubs of the schedulers' commands

STUB = """#!/bin/sh
n=$(cat sent 2> /dev/null)
n=$((n + 1))
echo $n > sent
if [ -e reject ] && [ $n -ge $(cat reject) ]; then
  echo "no such partition"
  exit 1
fi
case $0 in
*sbatch) echo $n ;;
*bsub) echo "Job <$n> is submitted to queue <normal>." ;;
*) echo "$n.srv" ;;
esac
"""
SENT = r"""
submit w.yaml -s slurm -t 2h|submit w.yaml -s slurm -a 3 --max-running 2|submit w.yaml -s slurm -a 3 --merge|submit w.yaml -s pbs|submit w.yaml -s pbs -a 2|submit w.yaml -s lsf
submit w.yaml -s lsf -a 2|submit w.yaml -s sge -a 2|submit w.yaml -s slurm -a 3 --missing|run w.yaml -j 1 --shard 1/3|submit w.yaml -s slurm -a 3 --missing|submit w.yaml -a 0
script w.yaml -s slurm -a 3 --missing|script w.yaml -s pbs -a 3 --missing|script w.yaml -s lsf -a 3 --missing|script w.yaml -s sge -a 3 --missing|script w.yaml -s slurm -a 3 --merge
run w.yaml -j 1 --shard 0/3|run w.yaml -j 1 --shard 2/3|submit w.yaml -s slurm -a 3 --missing|script w.yaml -s slurm -m 3GiB -c 4 -g 1 -p long -A acc --options '-C x' -t 90m
script w.yaml -s slurm -t x|script w.yaml -s slurm -m x|script w.yaml -s slurm -n 0|script w.yaml -s slurm -N 2|script w.yaml -s slurm --max-running 2|script none.yaml -s slurm
submit c.yaml -s slurm --campaign|submit c.yaml -s slurm --campaign -a 2
script w.yaml -s slurm -m '[1'|script w.yaml -s '[1'|script w.yaml -s slurm -t '[1'|script w.yaml -s slurm -N '[1'|script w.yaml -s slurm -n '[1'|script w.yaml -s slurm -c '[1'
script w.yaml -s slurm -g '[1'|script w.yaml -s slurm -a '[1'|script w.yaml -s slurm -a 2 --max-running '[1'|script w.yaml -s slurm --options '[1'
script w.yaml -s slurm -p '[1' -A '{a'|script w.yaml -s pbs name=9lives|script w.yaml -s slurm name=9lives|script w.yaml -s pbs name=a9
"""


def jobs_are_sent_as_before():
    with Project() as p:
        t = Transcript(p, "jobs")
        p.put("a.smi", "".join("%s a%d\n" % (s, k) for k, (s, _) in enumerate(esol(9))))
        p.workflow(["a.smi"], SHARDED.replace(", labels: [y, z]", "").replace("unit: 5", "unit: 3"), workdir="runs/one")
        p.put("t.csv", "smiles,logS\n" + "".join("%s,%s\n" % one for one in esol(30)))
        p.workflow(["t.csv"], LIBRARY[:LIBRARY.index("  rank")].replace("labels: [logS]", "labels: [none]") + "  acquire: {count: 3, answers: {table: t.csv}, campaign: {rounds: 2, first_count: 10}}\n", name="c.yaml", workdir="runs/two")
        os.mkdir(p.path("bin"))
        for name in ("sbatch", "qsub", "bsub"):
            p.put("bin/" + name, STUB)
            os.chmod(p.path("bin", name), 0o755)
        os.environ["PATH"] = p.path("bin") + ":/usr/bin:/bin"
        said(t, SENT)
        written(t, "runs/one/job.sh", "runs/one/job-shards.sh", "runs/one/job-merge.sh", "runs/two/job.sh", "runs/two/job-round.sh", "sent")
        p.put("reject", open(p.path("sent")).read().replace("\n", "") + "\n")
        t.say("submit", "w.yaml", "-s", "slurm")
        p.put("reject", "%d\n" % (int(open(p.path("sent")).read()) + 2))
        t.say("submit", "w.yaml", "-s", "slurm", "-a", "2")
        # What was sent is told before the next command of the scheduler says why it sends nothing.
        p.put("reject", "%d\n" % (int(open(p.path("sent")).read()) + 2))
        both = subprocess.run(p.command("submit", "w.yaml", "-s", "slurm", "-a", "2"), cwd=p.dir, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        t.add("both streams", both.stdout)
        t.end()


# ---- repeated splits

AGAIN = r"""
repeat w.yaml -n 2 -j 2|repeat w.yaml -n 2 -j 2|repeat w.yaml -n 3 -j 2 --json|repeat w.yaml --folds 2 -j 2|repeat w.yaml --folds 2 -j 2 -q|repeat w.yaml -n 1|repeat w.yaml -n 101
repeat w.yaml -n x|repeat w.yaml --folds x|repeat w.yaml --folds 2 --json|repeat w.yaml -n 2 stages.split.method=random|repeat w.yaml -n 2 --max-time x|repeat screen.yaml|status runs/one
repeat c.yaml -n 2 -j 2|repeat c.yaml --folds 2 -j 2 --json|model info runs/two/models/c.safetensors
"""


def repeated_splits_are_told_as_before():
    with Project() as p:
        t = Transcript(p, "repeats")
        p.put("t.csv", "smiles,logS,half\n" + "".join("%s,%s,%d\n" % (s, y, float(y) > -2) for s, y in esol(80)))
        stages = LIBRARY[:LIBRARY.index("  score")].replace("[trees, gp]", "[gp]")
        p.workflow(["t.csv"], stages, workdir="runs/one")
        p.workflow(["t.csv"], LIBRARY, name="screen.yaml", workdir="runs/screen")
        p.workflow(["t.csv"], stages.replace("[logS], properties: {logS: {unit: \"log10(mol/L)\", better: high}}", "[half], properties: {half: {task: classification}}")
                   .replace("name: logS, unit: \"log10(mol/L)\", better: high", "name: half").replace("name: m,", "name: c,").replace("[gp]", "[forest]"),
                   name="c.yaml", workdir="runs/two")
        said(t, AGAIN)
        t.end()


# ---- states that are not usual

ODD_STAGES = """  read: {unit: 30}
  prepare: {conformers: {source: none}, neutralise: true, labels: [logS, half]}
  graph: {edges: topology}
  score: {}
"""
MADE = r"""
fit t.csv -t logS --family gp -o m -j 2 --split random -q|fit t.csv -t half --family forest -o half -j 2 --split random -q|fit u.csv -t logS -o guess -n --smiles-column 2|fit u.csv -t logS -o guess2 -n
next none.yaml|status w.yaml|top w.yaml|export csv w.yaml|status 'runs/none'|run w.yaml -j 2 --until graph|next|next -n 3 --by random --goal maximize|export csv --top 2
export smi -o x.smi|search --similar CCO|top|run w.yaml -j 2|next|next -p half --by ucb --goal maximize|next -p half|next -p logS|next -p half --goal maximize -n 3|next -p half --goal maximize -n 3 --by uncertainty|next -p logS --goal maximize --by ucb --beta 1e999
next -p logS --goal maximize --by expected_improvement --best x|next -p logS --goal maximize -f sdf -n 2 -o n.sdf|show same|show same --json|explain M2|explain M2 --svg x.svg
run w.yaml --grace x|run w.yaml --grace -1s|run w.yaml --log-format xml|run w.yaml --log runs/one/results.db|run w.yaml --log runs/one/heartbeat.json
label runs/one l.csv|label runs/one l.csv -p logS --unit eV|label runs/one l.csv -p none|label runs/empty l.csv -p logS|label w2.yaml l.csv -p logS
status bad.yaml|top bad.yaml|label bad.yaml l.csv|report bad.yaml|predict m.safetensors,esol t.csv -q|predict m.safetensors v.csv -q -c title,logS -o v.out|predict m.safetensors v.csv -c title,logS|predict MANY t.csv
db prune|db prune w.yaml runs/none|db backup runs/one|db backup runs/one --to a/b/c.db
model import m.safetensors --from nvidia -o x.safetensors --target y --graph x|model import m.safetensors --from nvidia -o x.safetensors --target y --graph 99
model import m.safetensors --from nvidia -o x.safetensors --target 'a' --network layers=x|model import m.safetensors --from nvidia -o x.safetensors --target y
export csv --all -o m.safetensors|export csv --all -o runs/one/heartbeat.json|model import m.safetensors --from nvidia -o x.safetensors --target y --unit LONG
model import m.safetensors --from nvidia -o x.safetensors --target y --network layers|model info x|model verify m.safetensors --sha256 xyz|model diff m.safetensors half.safetensors
"""
LATER = r"""
next -p logS --goal maximize --max-similarity 0.4 -n 3|next -p logS --goal maximize --per-scaffold 1 -n 3|search --similar CCO --at-least 0.3|search --scaffold c1ccccc1 -n 2
search --smarts CO --similar CCO --at-least 0.4|explain M2|fit t.csv -t logS --family gp -o m|fit t.csv -t logS --family gp -o there|report runs/one -o r.html --top 2
retry w.yaml --code parse -n|retry w.yaml --stage score -n|retry w.yaml -n|query 'SELECT * FROM v_nearest LIMIT 2'|query v_properties|query v_labels|status runs/one|status runs/one --json|show M2|show M2 --json
"""
ELSEWHERE = "init demo|predict none t.csv|fit t.csv -t logS --family se3 -n -o s|bench --memory|doctor"


def what_is_not_usual_is_told_as_before():
    with Project() as p:
        t = Transcript(p, "unusual")
        rows = esol(60)
        p.put("t.csv", "id,smiles,logS,half\n" + "".join("M%d,%s,%s,%d\n" % (k, s, y, float(y) > -2) for k, (s, y) in enumerate(rows)))
        p.put("u.csv", "name,drawn,SMILES,logS\n" + "".join("M%d,%s,,%s\n" % (k, s, y) for k, (s, y) in enumerate(rows)))
        p.put("v.csv", "name,drawn,value\n" + "".join("M%d,%s,%s\n" % (k, s, y) for k, (s, y) in enumerate(rows[:8])))
        p.put("lib.csv", "id,smiles,logS,half\n" + "".join("M%d,%s,%s,%d\n" % (k, s, y, float(y) > -3) for k, (s, y) in enumerate(esol(40, 30))) +
              "".join("same,%sO,,\n" % ("C" * k) for k in range(1, 26)) + "bad,C(x,,\n")
        p.put("l.csv", "id,logS,half\nM2,-1,1\n")
        p.put("bad.yaml", "format: 1\ninputs: 5\n")
        p.put("there.safetensors", "not of fit")
        extra = "models: {m: {path: m.safetensors}, half: {path: half.safetensors}}\nlimits: {failures: {max_fraction: 1}}\n"
        p.workflow(["lib.csv"], ODD_STAGES, workdir="runs/one", extra=extra)
        p.workflow(["lib.csv"], ODD_STAGES, workdir="runs/two", extra=extra, name="w2.yaml")
        said(t, MADE.replace("LONG", "u" * 201).replace("MANY", ",".join(["m.safetensors"] * 70)))
        written(t, "guess.fit/train.yaml", "v.out")
        # A run that stopped while it read: how many records there are is not known.
        said(t, "run w.yaml -q -j 2 workdir=part --until read|plan w.yaml workdir=part|plan w.yaml workdir=part --json|label part l.csv -p logS")
        db = sqlite3.connect(p.path("part/results.db"))
        db.executescript("UPDATE stage SET state='running'; DELETE FROM record WHERE record_id > 5; DELETE FROM row_sum")
        db.close()
        said(t, "plan w.yaml workdir=part|status part")
        for more in ([], ["--alone"], ["--alone"]):
            t.say("db", "prune", "w.yaml", "storage.features=SHARED.db".replace("SHARED", os.path.realpath(p.path("shared"))), *more)
        # Results that an earlier version prepared, a model that was replaced, a heartbeat that is damaged, a workflow that was edited.
        db = sqlite3.connect(p.path("runs/one/results.db"))
        db.executescript("DELETE FROM fingerprint; DELETE FROM row_sum")
        db.close()
        p.put("m.safetensors", open(p.path("half.safetensors"), "rb").read())
        p.put("m.fit/train.yaml", open(p.path("m.fit/train.yaml")).read() + "# mine\n")
        said(t, LATER)
        os.makedirs(p.path("runs/two/shards/00000-of-00002"))
        p.put("runs/two/shards/00000-of-00002/heartbeat.json", "{}")
        said(t, "status w2.yaml|top w2.yaml|status w2.yaml --json|merge w2.yaml")
        os.environ.update(MOLSIEVE_SHARE=p.path("nowhere"), PATH=p.path("nowhere"))
        for one in ELSEWHERE.split("|")[:2]:
            t.say(*one.split())
        t.say("script", "w.yaml")
        tables(t)
        t.end()


# ---- two models of two properties each, on all parts: what a query may confuse

RICH = """  read: {unit: 15}
  prepare:
    fragment: largest
    neutralise: true
    alerts: {file: alerts.smarts}
    keep: "mw < 380"
    conformers: {source: none}
    labels: [logS, size]
    properties: {logS: {unit: "log10(mol/L)", better: high}, size: {better: low}}
  graph: {edges: topology}
  split: {method: random, fractions: {train: 0.6, valid: 0.2, test: 0.2}}
  train: {name: both, family: [trees, gp], targets: [{name: logS, unit: "log10(mol/L)", better: high}, {name: size, better: low}]}
  evaluate: {on: [train, valid, test]}
  score: {}
  rank:
    method: pareto
    objectives: [{property: logS, goal: maximise}, {property: size, goal: minimise}]
    where: "mw > 60"
    top: 15
  write: {csv: hits.csv, smi: hits.smi}
"""
TWO_CLASSES = """  read: {unit: 40}
  prepare: {conformers: {source: none}, labels: [half, ring], properties: {half: {task: classification}, ring: {task: classification}}}
  graph: {edges: topology}
  split: {method: random, fractions: {train: 0.6, valid: 0.2, test: 0.2}}
  train: {name: classes, family: [forest, trees], targets: [{name: half}, {name: ring}]}
  evaluate: {on: [valid, test]}
  score: {}
  rank: {objectives: [{property: half, goal: maximise}], actives: half}
"""
JUDGED = """  read: {unit: 40}
  prepare: {conformers: {source: none}, neutralise: true, labels: [logS, size]}
  graph: {edges: topology}
  evaluate: {models: [both, old]}
  score: {}
  rank: {objectives: [{property: logS, goal: maximise, use: "mean - 1.0*stdev"}, {property: size, goal: minimise, weight: 0.1}], diversity: {by: scaffold, at_most: 1}}
"""
LOOKED_AT = r"""
fit old.csv -t logS --unit 'log10(mol/L)' --better high --family gp -o old -j 2 --split random -q|plan r.yaml --json|run r.yaml -j 2 --until train|run r.yaml -j 2|run r.yaml -j 2 stages.rank.top=6
status|top -n 4|top --csv -n 2|report runs/one -o r.html -n 4|show a3|show a3 --json|show x1|explain a3|explain r.yaml rank|failures|failures --csv|failures --stage prepare --code parse
failures -n 1|failures --code none|export csv --top 3|export csv --all|export smi|export csv --where 'logp > 2'|search --smarts '[OX2H]' --where 'logp > 1' -n 4|search --scaffold c1ccccc1 --csv
next -p logS -n 3|next -p size -n 3 --by ucb|next -p logS -n 3 --by ucb --sigma stdev|next -p size -n 3 -f csv --by expected_improvement|db digest runs/one|db digest runs/one --results-only|query v_funnel
query 'SELECT * FROM v_hits ORDER BY rank, property'|query v_nearest|query v_scaffolds|query v_labels -f csv|query v_runs -f jsonl|run c.yaml -j 2|report runs/two -o c.html -n 2|status runs/two|next runs/two -p half --by ucb
top -n 3 runs/two|explain a3 runs/two|run j.yaml -j 2|report runs/three -o j.html -n 2|next runs/three -p logS -n 3 --by ucb --sigma stdev|next runs/three -p logS -n 3 --by uncertainty|show a62 runs/three|explain a62 runs/three|top runs/three -n 3|report runs/one --training runs/two -o t.html -n 2|model diff runs/one/models/both.safetensors old.safetensors --all
model info runs/one/models/both.safetensors|predict runs/one/models/both.safetensors,old.safetensors p.smi|predict runs/one/models/both.safetensors p.smi -f jsonl|predict runs/two/models/classes.safetensors p.smi
predict runs/one/models/both.safetensors,old.safetensors p.smi -f sdf -c title,logS,logS_stdev,size|run j.yaml -q -j 2 stages.score.models=[old] 'stages.rank={objectives: [{property: logS, goal: maximise}]}'
query 'SELECT p.name, count(*) AS n FROM score JOIN property p USING(property_id) GROUP BY 1' runs/three
run j.yaml -q -j 2 --until evaluate stages.evaluate.models=[old] stages.score.models=[old] 'stages.rank={objectives: [{property: logS, goal: maximise}]}'
query 'SELECT name FROM model' runs/three|query 'SELECT name, unit FROM property ORDER BY 1' runs/three
run j.yaml -q -j 2 workdir=runs/cm stages.prepare.properties.size.unit=cm --until evaluate
run j.yaml -q -j 2 workdir=runs/few 'inputs=[{path: few.csv}]' --until evaluate 'stages.evaluate={models: [both], on: [calibration], calibrate: true}'
run j.yaml -q -j 2 workdir=runs/train --until evaluate 'stages.evaluate.on=[train, valid, new]'
query 'SELECT m.name AS model, p.name, part, metric, round(value, 4) AS value, n FROM evaluation JOIN model m USING(model_id) JOIN property p USING(property_id) ORDER BY 1, 2, 3, 4' runs/train -f csv
next runs/two -p half --by ucb --goal maximize|query --file n.sql runs/two|query --file n.sql runs/three|query --file n.sql none|query --file n.sql runs/two runs/three|query runs|query runs/two -f csv
"""


def unlike(t):
    """Results in which one property has what the other lacks, and names are in another order than numbers."""
    shutil.copytree(t.p.path("runs/one"), t.p.path("runs/unlike"))
    db = sqlite3.connect(t.p.path("runs/unlike/results.db"))
    db.executescript("DELETE FROM row_sum; CREATE TEMP TABLE size AS SELECT property_id AS id FROM property WHERE name='size';"
                     "UPDATE score SET reasons=NULL, domain=NULL, interval90=NULL, similarity=NULL WHERE property_id=(SELECT id FROM size);"
                     "DELETE FROM label WHERE property_id=(SELECT id FROM size); UPDATE property SET name='area' WHERE name='size'")
    db.close()
    said(t, "export csv runs/unlike --top 3|top runs/unlike -n 3|show a3 runs/unlike|show a3 runs/unlike --json|next runs/unlike -p area -n 3|next runs/unlike -p area -n 3 --measured")


def two_models_of_two_properties_give_the_same_as_before():
    with Project() as p:
        t = Transcript(p, "both")
        shutil.copy(os.path.join(SOURCE, "workflows/data/alerts.smarts"), p.path("alerts.smarts"))
        head, odd = "id,smiles,size,logS,ring,half\n", "x1,C(x,3,-1,0,1\nx2,[Na+].CC(=O)[O-],4,0.5,0,1\nx3,CC(=O)Cl,5,,1,\nx4,O=N(=O)c1ccccc1,9,-2,1,0\nx5,OC(=O)C,4,0.7,0,1\n"
        rows = ["%s,%s,%d,%s,%d,%d" % ("a%d" % k, s, len(s) + k % 7, y, "1" in s, float(y) > -2) for k, (s, y) in enumerate(esol(80))]  # not in the order of their names
        p.put("one.csv", head + "\n".join(rows[:45]) + "\n")
        p.put("two.csv", head + "\n".join(rows[45:70]) + "\n" + odd + rows[3].replace("a3", "again") + "\n")
        p.put("old.csv", head + "\n".join(rows[20:80]) + "\n")
        p.put("new.csv", head + "\n".join(rows[60:80]) + "\n")
        p.put("few.csv", "id,smiles,logS,size\n" + "".join("f%d,%s,%s,%d\n" % (k, s, y if k < 8 else "", len(s)) for k, (s, y) in enumerate(esol(60, 80))))
        p.put("p.smi", "CCO e\nC(x bad\nc1ccccc1CCN amine\nCCCCCCCCCCCCCCCCCCCCCCCC wax\n")
        p.put("n.sql", "SELECT count(*) AS n FROM record\n")
        extra = "models: {old: {path: old.safetensors}%s}\nlimits: {failures: {max_fraction: 1}}\n"
        p.workflow(["one.csv", "two.csv"], RICH, name="r.yaml", workdir="runs/one", extra=extra % "")
        p.workflow(["one.csv", "two.csv"], TWO_CLASSES, name="c.yaml", workdir="runs/two", extra="limits: {failures: {max_fraction: 1}}\n")
        p.workflow(["new.csv"], JUDGED, name="j.yaml", workdir="runs/three", extra=extra % ", both: {path: runs/one/models/both.safetensors}")
        said(t, LOOKED_AT)
        unlike(t)
        written(t, "runs/one/hits.csv", "runs/one/hits.smi")
        pages(t, "r.html", "c.html", "j.html", "t.html")
        tables(t)
        t.end()


# ---- weights of another program

DISTANCE = 4  # the column of the inputs of a radial network, after the kinds of bonds
IMPORTED = r"""
model import w.safetensors --from nvidia -o x.safetensors --target y --graph bonds --network N|model info x.safetensors|model info x.safetensors --json|model verify x.safetensors
model import w.safetensors --from nvidia -o x.safetensors --target y --unit eV --mean -6.5 --std 0.5 --network N|model info x.safetensors --json|model diff x.safetensors z.safetensors
model import w.safetensors --from nvidia -o z.safetensors --target y --graph 5 --network N|model info z.safetensors|model diff x.safetensors z.safetensors|model diff x.safetensors z.safetensors --all
model import w.safetensors --from nvidia -o x.safetensors --target y --graph 0.4|model import w.safetensors --from nvidia -o x.safetensors --target y --graph 20.1
model import w.safetensors --from nvidia -o x.safetensors --target y --graph 20 --network N,norm=false|model import w.safetensors --from nvidia -o x.safetensors --target y --network N,norm=maybe
model import w.safetensors --from nvidia -o x.safetensors --target y --network N,pooling=avg|model import w.safetensors --from nvidia -o x.safetensors --target y --network N,pooling=min
model import w.safetensors --from nvidia -o x.safetensors --target y --network N,w3j=e3nn-0.5|model import w.safetensors --from nvidia -o x.safetensors --target y --network N,w3j=none
model import w.safetensors --from nvidia -o x.safetensors --target y --network layers=2,,degrees=2|model import w.safetensors --from nvidia -o x.safetensors --target y --std nan --network N
model import w.safetensors --from nvidia -o x.safetensors --target y --mean inf --network N|model import w.safetensors --from nvidia -o none/x/y.safetensors --target y --network N
model import w.safetensors --from nvidia -o w.safetensors --target y --network N|model import other.safetensors --from nvidia -o o.safetensors --target y --network N|model diff x.safetensors o.safetensors|model diff x.safetensors esol.safetensors|model diff esol.safetensors x.safetensors --all
predict x.safetensors two.xyz -q -c title,smiles,y,y_domain|predict z.safetensors two.xyz -q -f jsonl
model import steep.safetensors --from nvidia -o s.safetensors --target y --graph bonds --network N
model import other.safetensors --from nvidia -o b.safetensors --target y --graph bonds --network N
predict x.safetensors two.xyz -c title,y|predict s.safetensors two.xyz -c title,y|run w.yaml -q -j 1|run w.yaml -q -j 1 stages.score.models=[s]
"""


def steep(parts):
    """The radial networks change their sign between two nodes of the interpolation, at the length of the C-H bonds of two.xyz."""
    for name in [name for name in parts if name.endswith("radial_func.net.0.weight")]:
        kind, shape, part = parts[name]
        weight = [x if k % shape[1] == DISTANCE else 0 for k, (x,) in enumerate(struct.iter_unpack("<f", part))]
        parts[name] = kind, shape, struct.pack("<%df" % len(weight), *weight)
        name = name.replace("weight", "bias")
        parts[name] = *parts[name][:2], struct.pack("<%df" % shape[0], *[-1.0915 * x for x in weight[DISTANCE::shape[1]]])
    return parts


def weights_of_another_program_are_imported_as_before():
    with Project() as p:
        t = Transcript(p, "imported")
        case = import_e2e.tensors("b4_tiny_full_bonds")
        p.put("w.safetensors", import_e2e.weights(case))
        p.put("other.safetensors", import_e2e.weights(case, change=lambda parts: {
            k: (kind, shape, struct.pack("<f", 0.25 * (i % 5)) + part[4:] if kind == "F32" and i % 3 == 0 else part)
            for i, (k, (kind, shape, part)) in enumerate(parts.items())}))
        p.put("steep.safetensors", import_e2e.weights(case, change=steep))
        p.workflow(["two.xyz"], "  read: {}\n  prepare: {conformers: {source: keep}}\n  graph: {edges: bonds}\n  basis: {}\n  score: {models: [b, s]}\n", workdir="runs/one",
                   extra="models: {%s}\n" % ", ".join("%s: {path: %s.safetensors}" % (x, x) for x in "bs"))
        shutil.copy(os.path.join(SOURCE, "workflows/models/esol.safetensors"), p.path("esol.safetensors"))
        p.put("two.xyz", "5\nmethane\nC 0 0 0\nH 0.63 0.63 0.63\nH -0.63 -0.63 0.63\nH -0.63 0.63 -0.63\nH 0.63 -0.63 -0.63\n")
        said(t, IMPORTED.replace("--network N", "--network " + import_e2e.TINY[-1]))
        t.end()


if __name__ == "__main__":
    main([a_model_is_fitted_and_asked_as_before, molecules_are_looked_up_chosen_and_labelled_as_before, a_campaign_asks_and_learns_as_before,
          structures_are_built_and_measured_as_before, files_of_shards_are_merged_as_before, jobs_are_sent_as_before, repeated_splits_are_told_as_before,
          what_is_not_usual_is_told_as_before, two_models_of_two_properties_give_the_same_as_before,
          weights_of_another_program_are_imported_as_before])
