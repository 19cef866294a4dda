#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What commands tell of results whose rows are made here, word for word as transcript.py compares it: several models, properties and
parts whose numbers all differ, names in another order than numbers, and values that some rows have and others lack."""
import gzip
import json
import os
import re
import sqlite3

import transcript_tools
from sieve import Project, main
from transcript_tools import pages, said

STAGES = """  read: {unit: 5}
  prepare:
    conformers: {source: none}
    fragment: largest
    labels: [zeta, alpha, cls]
    properties: {zeta: {unit: eV, better: low}, alpha: {unit: nM}, cls: {task: classification}}
  graph: {edges: topology}
  split: {fractions: {train: 0.6, valid: 0.2, test: 0.2}}
  rank: {objectives: [{property: mw, goal: maximise}], top: 6}
"""
FIRST = "CCO e1\nCCC e2\nOCC again\nC(x broken\nC) open\nc1ccccc1O ring\nC(y broken too\nCC(C)(C)c1ccccc1 tail\n"
SECOND = "smiles,name,zeta,alpha,cls\nCN,m1,-1,10,1\nCCN,m2,-2,,0\nCCCN,m3,-3,30,1\nc1ccccc1N,m4,,40,0\nCC#N,m5,-5,50,1\nCCCl,m6,-6,60,0\nNC,twin,-1.5,15,1\nOCCO,m8,-8,80,\n"


def metadata(task, *names):
    """What a model file says of itself, with errors of its test part that tell its components apart."""
    side = lambda k: {"mae.domain inside": [k, 30], "mae.domain outside": [k + 1, 40], "a.mae.domain inside": [k - 0.5, 30], "a.mae.domain outside": [k + 2, 40],
                      "b.mae.domain inside": [k + 0.25, 30], "b.mae.domain outside": [k + 3, 40], "a.difference.domain inside": [-0.5, 30], "a.difference_error.domain inside": [0.01, 30]}
    errors = {name: {"test": {"n": 70 + k, "mae": k + 7, "domain": side(k + 7)}} for k, name in enumerate(names)}
    return json.dumps({"target": {"task": task, "targets": [{"name": name, "unit": "u%d" % k, "better": "none"} for k, name in enumerate(names)]},
                       "provenance": {"errors": errors if len(names) > 1 else errors[names[0]]}})


# A value tells model, property, part and metric: 1000, 100, 10 and 1 times their numbers. Simple predictions are as good as each model.
MODELS = """
ANALYZE; CREATE TABLE theirs(x);
INSERT INTO stage(name,key,params_json,extra_json,needs_json,code_version,state,n_units,run_id,created_utc) VALUES
 ('score','k1','{}','{}','[]',1,'done',1,1,'2020-01-01T00:00:00Z'),('train','k2','{"epochs":90}','{}','[]',1,'running',NULL,NULL,'2020-01-01T00:00:00Z'),
 ('acquire','k3','{"goal":"minimise"}','{}','[]',1,'done',NULL,1,'2020-01-01T00:00:00Z');
INSERT INTO stage(stage_id,name,key,params_json,extra_json,needs_json,code_version,state,run_id,created_utc) VALUES
 (-1,'rank','k4','{"objectives":[{"property":"older","goal":"minimise"}],"top":3}','{}','[]',1,'done',1,'2019-01-01T00:00:00Z'),(-2,'prepare','k5','{}','{}','[]',1,'running',1,'2019-01-01T00:00:00Z');
INSERT INTO unit SELECT stage_id,0,1,20,9,2,1.5,1 FROM stage WHERE name='score';
INSERT INTO model VALUES(1,'older','older.st','%(hash)s01',:two),(2,'newer','newer.st','%(hash)s02',:two),(3,'judge','judge.st','%(hash)s03',:class),
 (4,'warden','warden.st','%(hash)s04',:class),(5,'known','known.st','%(hash)s05',:two),(6,'aside','aside.st','%(hash)s06',:one),(7,'mute','mute.st','%(hash)s07',:one),
 (8,'single','single.st','%(hash)s08',:one);
CREATE TEMP TABLE part(k,name); INSERT INTO part VALUES(1,'new'),(2,'test'),(3,'valid'),(4,'train'),(5,'calibration');
CREATE TEMP TABLE number(k,name); INSERT INTO number VALUES(9,'mae'),(8,'mean.mae'),(7,'neighbours.mae'),(6,'descriptors.mae'),(5,'rmse'),(4,'mean.rmse'),(3,'coverage90'),
 (2,'mae.domain inside'),(2.5,'mae.domain outside'),(1,'a.mae.domain inside'),(1.5,'a.mae.domain outside'),(2.1,'b.mae.domain inside'),(2.6,'b.mae.domain outside'),
 (-0.5,'a.difference.domain inside'),(0.01,'a.difference_error.domain inside'),(3.5,'mae.similarity 0.5'),(2.2,'neighbours.mae.domain inside');
CREATE TEMP TABLE class(k,name); INSERT INTO class VALUES(1,'roc_auc'),(2,'mean.roc_auc'),(3,'neighbours.roc_auc'),(4,'log_loss'),(5,'brier'),(6,'brier.domain inside'),
 (5.5,'a.brier.domain inside'),(6.5,'b.brier.domain inside'),(-0.5,'a.difference.domain inside'),(0.01,'a.difference_error.domain inside');
INSERT INTO evaluation SELECT model_id, property_id, p.name, w.name, CASE property_id WHEN 1 THEN 'eV' ELSE 'nM' END,
 CASE WHEN w.name LIKE '%%difference%%' THEN w.k ELSE 1000*model_id+100*property_id+10*p.k+w.k END, 20+model_id*9+property_id*3+p.k FROM model, property q, part p, number w
 WHERE model_id<3 AND property_id<3 AND NOT (model_id=2 AND property_id=2 AND p.k=1);
INSERT INTO evaluation SELECT model_id, property_id, part, 'ensemble.mae', unit, value+0.5, n FROM evaluation WHERE metric='mae' AND property_id=1;
INSERT INTO evaluation SELECT 8, property_id, part, metric, unit, value+6000, n+5 FROM evaluation WHERE model_id=2 AND property_id=1 AND (part='new' AND metric IN ('mae','mean.mae','coverage90') OR part='valid');
INSERT INTO evaluation SELECT model_id, property_id, p.name, w.name, NULL, CASE WHEN w.name LIKE '%%difference%%' THEN w.k ELSE (1000*model_id+100*property_id+10*p.k+w.k)/9999.0 END,
 20+model_id*9+property_id*3+p.k FROM model, property q, part p, class w WHERE model_id IN (3,4) AND property_id>1 AND p.k>model_id-3;
DELETE FROM evaluation WHERE metric='roc_auc' AND (model_id=3 AND property_id=3 AND part IN ('new','test') OR model_id=4 AND property_id=2 AND part<>'valid');
"""
# Molecules as they come: a molecule tells its number, and what it has depends on it.
MOLECULES = """
CREATE TEMP TABLE mol AS SELECT mol_id, row_number() OVER (ORDER BY mol_id) AS k FROM molecule;
INSERT INTO evaluated SELECT model_id, property_id, mol_id, CASE k%%4 WHEN 0 THEN 'train' WHEN 1 THEN 'test' WHEN 2 THEN 'valid' ELSE 'new' END,
 CASE WHEN model_id>2 THEN k%%3>0 ELSE model_id+property_id*10+k END, CASE WHEN model_id>2 THEN (k*7%%12+model_id)/16.0 ELSE model_id+property_id*10+k*k/5.0 END,
 CASE WHEN model_id=2 AND property_id=2 THEN NULL ELSE k/12.0 END FROM model, property, mol
 WHERE model_id<3 AND property_id<3 AND NOT (model_id=1 AND property_id=2) OR model_id=3 AND property_id=3;
DELETE FROM evaluated WHERE model_id=2 AND property_id=1 AND part<>'train';
INSERT INTO prediction SELECT mol_id, property_id, model_id, model_id*100+property_id*10+k, k/20.0, CASE WHEN k=11 THEN 'AAAAAAAAAAAAAA-UHFFFAOYSA-N' WHEN k%%3 THEN
 (SELECT inchikey FROM molecule WHERE mol_id=CASE k%%3 WHEN 1 THEN 1 ELSE 9 END) END, NULL, model_id+k/7.0 FROM mol, property, model WHERE property_id<3 AND model_id IN (1,2,5,6) AND k>model_id-5;
INSERT INTO score SELECT mol_id, property_id, property_id*100+k, k*0.5, CASE k WHEN 3 THEN 1 ELSE 2 END, k/20.0, CASE WHEN k%%3 THEN k*0.75 END, CASE k%%3 WHEN 0 THEN 'outside' ELSE 'inside' END,
 CASE k%%3 WHEN 0 THEN 'rings '||k||' > 4' END FROM mol, property WHERE property_id<3 AND NOT (property_id=2 AND k=2);
INSERT INTO score SELECT mol_id, 3, k/16.0, NULL, 1, NULL, NULL, NULL, NULL FROM mol WHERE k%%2=0 OR k=5;
UPDATE molecule SET alerts='z group, a group', removed='[Na+]', neutralised=-1, charge=2, undefined_stereo=3 WHERE mol_id=2;
UPDATE molecule SET alerts='a group', structures=1, geometry='mmff94', built_by='native', steps=7, converged=0, energy=-1.25, fallback='none such' WHERE mol_id=6;
INSERT INTO record(record_id,file_id,ordinal,byte_offset,line,title,raw_smiles,mol_id,status) SELECT 100+n,1,100+n,0,100+n,'copy'||(90-n),'CCC',n/20*6+2,'duplicate' FROM
 (WITH RECURSIVE c(n) AS (SELECT 0 UNION ALL SELECT n+1 FROM c WHERE n<38) SELECT n FROM c);
UPDATE record SET status='filtered', reason='alerts: a group, q group' WHERE record_id=103; UPDATE record SET status='filtered', reason='mw < 300' WHERE record_id=104;
INSERT INTO molecule(mol_id,inchikey,smiles,formula,n_atoms,n_heavy,charge,geometry,unit) SELECT 200,inchikey,'OCC','C2H6O',9,3,0,'none',2 FROM molecule WHERE mol_id=1;
INSERT INTO molecule(mol_id,inchikey,smiles,formula,n_atoms,n_heavy,charge,geometry,unit) VALUES(201,'','[X]','X',1,1,0,'none',2);
INSERT INTO record(record_id,file_id,ordinal,byte_offset,line,title,raw_smiles,mol_id,status) VALUES(200,1,200,0,200,'double','OCC',200,'ok'),(201,1,201,0,201,'keyless','[X]',201,'ok'),
 (202,1,202,0,202,'9','CN',9,'duplicate'),(203,1,203,0,203,'9','CCl',14,'duplicate'),(204,1,204,0,204,'9','CCN',10,'duplicate');
INSERT INTO failure(run_id,stage,record_id,mol_id,code,message,attempt,at_utc) VALUES(1,'score',NULL,2,'element','later',2,'2020-01-01T00:00:00Z'),(1,'graph',NULL,2,'size','earlier',1,'2020-01-01T00:00:00Z'),
 (1,'score',NULL,6,'element','an example',1,'2020-01-01T00:00:00Z'),(1,'score',NULL,200,'size','of the score',1,'2020-01-01T00:00:00Z'),
 (1,'score',NULL,2,'element','later still',1,'2020-01-01T00:00:00Z'),(1,'basis',NULL,2,'size','only here',1,'2020-01-01T00:00:00Z'),(1,'graph',4,NULL,'parse','of a record',3,'2020-01-01T00:00:00Z'),(1,'graph',NULL,200,'element','of the graph',1,'2020-01-01T00:00:00Z');
UPDATE molecule SET alerts='' WHERE alerts IS NULL;
UPDATE failure SET attempt=2 WHERE record_id=4 AND stage='prepare';
UPDATE hit SET front=rank/3, cluster=rank, n_similar=rank%%2;
"""
# Rounds, metrics, events and runs.
COURSE = """
INSERT INTO metric SELECT stage, step, step/2.0, split, name, s*1000+x*100+y*10+step/2.0, 1, '2020-01-01T00:00:00Z' FROM (SELECT 1 AS s, 'train' AS stage UNION SELECT 2, 'denoise'),
 (SELECT 1 AS x, 'train' AS split UNION SELECT 2, 'valid' UNION SELECT 3, 'test'), (SELECT 1 AS y, 'loss' AS name UNION SELECT 2, 'mae' UNION SELECT 3, 'brier' UNION SELECT 4, 'noise_loss' UNION SELECT 5, 'lr'),
 (SELECT 2 AS step UNION SELECT 4 UNION SELECT 10) WHERE NOT (s=2 AND y=3);
INSERT INTO metric VALUES('denoise',2,1,'train','member2.mae',5,1,'2020-01-01T00:00:00Z'),('train',0,0,'all','planned_epochs',40,1,'2020-01-01T00:00:00Z'),('train',1,0,'all','planned_epochs',60,1,'2020-01-01T00:00:00Z'),
 ('train',0,0,'ranking','roc_auc',0.11,1,'2020-01-01T00:00:00Z'),('rank',0,0,'other','roc_auc',0.22,1,'2020-01-01T00:00:00Z'),('rank',0,NULL,'ranking','roc_auc',0.75,1,'2020-01-01T00:00:00Z'),
 ('rank',0,NULL,'ranking','candidates',12,1,'2020-01-01T00:00:00Z'),('rank',0,NULL,'ranking','actives',5,1,'2020-01-01T00:00:00Z'),('rank',0,NULL,'ranking','unlabelled',2,1,'2020-01-01T00:00:00Z'),
 ('rank',0,NULL,'ranking','pr_auc',0.6,1,'2020-01-01T00:00:00Z'),('rank',0,NULL,'ranking','ef1',2,1,'2020-01-01T00:00:00Z'),('rank',0,NULL,'ranking','ef5',1.5,1,'2020-01-01T00:00:00Z'),
 ('rank',0,NULL,'ranking','bedroc20',0.4,1,'2020-01-01T00:00:00Z'),('rank',3,NULL,'ranking','roc_auc',0.33,1,'2020-01-01T00:00:00Z'),('train',3,NULL,'ranking','found',0.9,1,'2020-01-01T00:00:00Z'),
 ('rank',3,NULL,'ranking','found',0.2,1,'2020-01-01T00:00:00Z'),('rank',6,NULL,'ranking','found',0.6,1,'2020-01-01T00:00:00Z'),('rank',12,NULL,'ranking','found',1,1,'2020-01-01T00:00:00Z');
INSERT INTO event(run_id,at_utc,level,stage,message) VALUES(1,'2020-01-01T00:00:00Z','warn','prepare','first'),(1,'2020-01-01T00:00:01Z','warn','graph','second'),(1,'2020-01-01T00:00:02Z','error','rank','third'),
 (1,'2020-01-01T00:00:03Z','error','train','fourth'),(1,'2020-01-01T00:00:03Z','warn','prepare','second'),(1,'2020-01-01T00:00:03Z','info','prepare','fifth');
INSERT INTO acquired SELECT r, k, (SELECT inchikey FROM molecule JOIN mol USING(mol_id) WHERE mol.k=2*r+place.k), CASE r WHEN 3 THEN 'alpha' ELSE 'zeta' END, CASE WHEN r=2 AND k=1 THEN 'ucb' ELSE 'greedy' END,
 r+k, r*10+k, CASE WHEN k<2 THEN r+0.5 END, k, NULL, 'reason '||r||k, CASE WHEN r=2 AND k=2 THEN 'failed' WHEN r=3 THEN NULL ELSE 'measured' END
 FROM (SELECT 1 AS r UNION SELECT 2 UNION SELECT 3), (SELECT 1 AS k UNION SELECT 2) AS place;
INSERT INTO measured SELECT property, inchikey, mean+round*place, CASE property WHEN 'zeta' THEN 'eV' ELSE 'nM' END, 'regression', round, 'plate.csv' FROM acquired WHERE outcome='measured';
UPDATE metric SET epoch=epoch-1 WHERE stage='denoise' AND split='valid';
UPDATE run SET started_utc='2020-01-02T00:00:00Z', ended_utc='2020-01-02T00:00:09Z';
INSERT INTO run(run_id,uuid,command,argv_json,config_yaml,config_sha256,state,stop_reason,started_utc,ended_utc,host,workers,seed,program_version,openbabel_version,sqlite_version)
 SELECT 2,'u2','retry','["retry"]',replace(config_yaml,'name: e2e','name: other'),'%(hash)s0a','stopped','SIGTERM','2020-01-01T00:00:00Z','2020-01-01T00:00:05Z','there',3,5,'0.0.1','the second','3.1' FROM run WHERE run_id=1;
INSERT INTO run(run_id,uuid,command,argv_json,config_yaml,config_sha256,state,started_utc,ended_utc,host,workers,seed,program_version)
 SELECT 3,'u3','run','["run","three"]',config_yaml,'%(hash)s0b','done','2020-01-03T00:00:00Z','2020-01-03T00:00:07Z','here',4,6,'0.0.2' FROM run WHERE run_id=1;
"""
ASKED = r"""
show e2|show tail|show ring|show ring --json|show double|show m1|show m1 --json|show double --json|show broken|show broken --json|show keyless|show '[X]'|show 'OCC.[Na+].[Cl-]'|show open
failures|failures --stage score|failures --stage score --csv|failures --code element|failures --code element --json|failures --stage graph --code element|failures --stage score --code size|failures -n 2
status|status --json|top|top -n 2|top --csv|top --json -n 3|export csv|export csv --all|export smi --all|search --similar CCO --at-least 0.3|search --where 'mw > 40' --csv
next -p zeta -n 4|next -p alpha -n 3 --by ucb|next -p alpha --measured -n 3 -f csv|next -p zeta --inside -n 3|retry w.yaml -n|retry w.yaml -n --stage score|retry w.yaml -n --stage graph --code element
retry w.yaml -n --code element|db schema runs/one|query runs/one|report runs/one -o r.html --training runs/two -n 4|explain m1|explain 9|query v_acquired|query v_hits
"""


def rows_made(p, text, workdir="runs/one"):
    db = sqlite3.connect(p.path(workdir, "results.db"))
    for key, names in (("two", ("zeta", "alpha")), ("one", ("zeta",)), ("class", ("cls",))):
        text = text.replace(":" + key, "'%s'" % metadata("classification" if key == "class" else "regression", *names))
    db.executescript(text + "; DELETE FROM row_sum")
    db.close()


def made(p):
    p.put("a.smi", FIRST)
    p.put("b.csv", SECOND)
    p.workflow(["a.smi", "b.csv"], STAGES, workdir="runs/one", extra="limits: {failures: {max_fraction: 1}}\n")
    p.run("run", "w.yaml", "-q", "-j", "1")
    p.run("run", "w.yaml", "-q", "-j", "1", "workdir=runs/two")
    rows_made(p, (MODELS + MOLECULES + COURSE) % {"hash": "0f" * 31})


def part(t, name, title, wanted):
    """A part of a page, without its drawings."""
    found, = re.findall("(?s)" + wanted, open(t.p.path(name)).read())
    t.p.put(name, re.sub(r"(?s)<svg.*?</svg>", "<svg/>", found))
    t.put("# %s\n" % title)
    pages(t, name)


# What changes of the rows, and which part of the page shows it: the goal of the last round, models that only learn, rounds
# that are all over or not, more runs than are shown.
SECTIONS, CAMPAIGN = "<nav.*?</nav>", '<h2 id="campaign".*?(?=<h2)'
RUNS = "All starts of the program.*?</tr>.*?</tr>"
CHANGED = (("UPDATE stage SET params_json='{\"goal\":\"maximise\"}' WHERE name='acquire'; UPDATE acquired SET property='zeta'", CAMPAIGN),
           ("UPDATE acquired SET property='gone'", CAMPAIGN),
           ("DELETE FROM acquired WHERE outcome IS NULL; DELETE FROM metric WHERE stage='rank'; DELETE FROM evaluation; DELETE FROM evaluated; DELETE FROM prediction; DELETE FROM model", SECTIONS),
           ("UPDATE acquired SET outcome=NULL", SECTIONS),
           ("WITH RECURSIVE c(n) AS (SELECT 10 UNION ALL SELECT n+1 FROM c WHERE n<110) INSERT INTO run(run_id,uuid,command,argv_json,config_yaml,config_sha256,state,started_utc,program_version) "
            "SELECT n,n,'run '||n,'[]','','','done','2020-01-01T00:00:00Z','0' FROM c", RUNS))


def results_of_many_models_are_told_as_before():
    with Project() as p:
        t = transcript_tools.Transcript(p, "rows")
        made(p)
        said(t, ASKED)
        part(t, "r.html", "the report", '<header>.*(?=<h2 id="cite")')
        for text, wanted in CHANGED:
            if wanted == SECTIONS:
                said(t, "run w.yaml -j 1")
            rows_made(p, text)
            said(t, "report runs/one -o c.html -n 1")
            part(t, "c.html", text, wanted)
        t.end()


# ---- labels that answer what a campaign asked for ----

LIBRARY = ("smiles,name,zeta,alpha\nCN,m1,,\nCCN,m2,-2,\nCCCN,m3,-3,30\nc1ccccc1N,m4,,40\nCC#N,m5,,50\nCCCl,m6,-6,60\nCCO,m7,,\nCCC,m8,,\n[Og],og,,\n"
           "CCCC,m10,,\nCCCCC,m11,,\nCCCCCC,m12,,\nCO,m13,,\nCCOC,m14,,\n")
ANSWERED = """  read: {}
  prepare: {conformers: {source: none}, labels: [zeta, alpha], properties: {zeta: {unit: eV}, alpha: {unit: nM}}}
  graph: {edges: topology}
"""
# Round, place, molecule, property, predicted value, outcome: what the label zeta of a molecule answers, and what it does not.
CHOSEN = """
INSERT INTO acquired(round,place,inchikey,property,strategy,mean,reason,outcome) SELECT column1, column2, (SELECT coalesce(nullif(inchikey,''),smiles) FROM molecule JOIN record USING(mol_id)
 WHERE title=column3), column4, 'greedy', column5, '', column6 FROM (VALUES (0,1,'m1','zeta',1,NULL),(0,2,'m2','zeta',1,NULL),(0,3,'m3','alpha',1,NULL),(0,4,'m4','other',NULL,NULL),(0,5,'m5','more',2,NULL),
 (0,6,'m7','zeta',1,NULL),(1,1,'m6','guess',NULL,'measured'),(1,2,'m8','guess',NULL,NULL),(1,3,'m10','vain',NULL,'failed'),(1,4,'m11','vain',NULL,NULL),(1,5,'m12','late',NULL,'measured'),
 (1,6,'m13','late',NULL,NULL),(2,1,'m14','else',NULL,'measured'),(2,2,'m4','else',NULL,NULL),(2,3,'m1','zeta',1,'failed'),(2,4,'m5','alpha',1,'failed'),(2,5,'m7','zeta',1,'failed'),(2,6,'m3','zeta',1,'failed'),
 (3,1,'m1','zeta (model)',1,'failed'),(3,2,'m8','zetas',1,'failed'),(3,3,'m11','more',1,'failed'));
INSERT INTO measured SELECT column1, (SELECT inchikey FROM molecule JOIN record USING(mol_id) WHERE title=column2), 9, CASE column1 WHEN 'zeta' THEN 'eV' ELSE 'nM' END, 'regression', column3, 'plate.csv:1'
 FROM (VALUES ('zeta','m6',1),('zeta','m10',1),('zeta','m12',0),('alpha','m14',2),('zeta','m14',1));
"""
MADE_LATER = """
UPDATE measured SET unit='' WHERE property='alpha';
INSERT INTO measured SELECT 'fresh', inchikey, mol_id, CASE mol_id WHEN 1 THEN '' ELSE 'cm' END, CASE mol_id WHEN 1 THEN 'classification' ELSE 'regression' END, 0, 'x' FROM molecule WHERE mol_id IN (1,2);
"""


def stored(t, workdir, *tables):
    for name in tables:
        t.add(name, "\n".join("|".join(str(x) for x in row) for row in t.p.rows("SELECT * FROM %s ORDER BY 1,2,3" % name, workdir=workdir)))


def labels_answer_what_was_asked_for():
    with Project() as p:
        t = transcript_tools.Transcript(p, "labels")
        p.put("lib.csv", LIBRARY)
        p.put("plate.csv", "id,zeta\n" + "".join("%s,%s\n" % x for x in (("m1", 1), ("m2", -2), ("m3", -3), ("m4", 4), ("m5", 5), ("m8", 8), ("m11", 11), ("m13", 13))))
        p.put("og.csv", "id,zeta\nog,7\n")
        p.put("lim.csv", "id,zeta\nm1,>1\nm4,2\n")
        p.workflow(["lib.csv"], ANSWERED, workdir="runs/one", extra="limits: {failures: {max_fraction: 1}}\n")
        bound = "workdir=runs/bound stages.read.censored=bound"
        p.run("run", "w.yaml", "-q", "-j", "1")
        p.run("run", "w.yaml", "-q", "-j", "1", *bound.split())
        rows_made(p, CHOSEN)
        said(t, "label runs/one plate.csv -p zeta")
        stored(t, "runs/one", "acquired", "measured")
        said(t, "label runs/one og.csv -p zeta")
        rows_made(p, MADE_LATER)
        said(t, "run w.yaml -j 1 stages.prepare.max_heavy_atoms=50")
        stored(t, "runs/one", "property", "label")
        said(t, "run w.yaml -j 1 stages.prepare.properties.zeta.unit=meV")
        said(t, "label runs/bound lim.csv -p zeta|plan w.yaml %s|run w.yaml -j 1 %s" % (bound, bound))
        stored(t, "runs/bound", "property", "label", "measured")
        t.end()


# ---- files that are read in part ----

def files_that_lack_something_are_told_in_their_order():
    with Project() as p:
        t = transcript_tools.Transcript(p, "files")
        records = open(os.path.join(transcript_tools.SOURCE, "workflows/data/qm9-30.sdf")).read().split("$$$$\n")[:5]
        for name, first, last in (("t1", 0, 2), ("t2", 2, 5)):
            p.put(name + ".sdf", "".join(r + ("> <NAME>\n%s%d\n\n" % (name, k) if k == 0 else "") + "$$$$\n" for k, r in enumerate(records[first:last])))
        for name, n in (("z", 400), ("y", 300)):
            whole = gzip.compress(b"".join(b"%s %s%d\n" % (b"C" * (k % 40 + 1), name.encode(), k * k) for k in range(n)), 0, mtime=0)
            p.put(name + ".smi.gz", whole[:len(whole) // 2])
        p.put("odd.smi", b"CC ok\n\xff\xfe\n")
        p.put("x.inchi", "InChI=1S/CH4/h1H4 methane\nInChI=1S/nonsense wrong\nInChI=1S/H2O/h1H2 water\n")
        p.put("e2.smi", "")
        p.put("e1.smi", "")
        p.workflow(["z.smi.gz", "e2.smi", "{path: t1.sdf, title_from: NAME}", "y.smi.gz", "odd.smi", "x.inchi", "e1.smi", "{path: t2.sdf, title_from: NAME}"],
                   "  read: {}\n  prepare: {conformers: {source: none}, max_heavy_atoms: 3}\n", workdir="runs/one", extra="limits: {failures: {max_fraction: 1}}\n")
        said(t, "run w.yaml -j 1|failures --stage read")
        # A class is 0 or 1, or the mean of measurements that differ.
        p.put("c.csv", "smiles,cls\n" + "".join("%s,%d\n" % ("C" * k + "O", k % 2) for k in range(1, 30)))
        p.workflow(["c.csv"], "  read: {}\n  prepare: {conformers: {source: none}, labels: [cls], properties: {cls: {task: classification}}}\n  graph: {edges: topology}\n"
                   "  split: {fractions: {train: 0.6, valid: 0.2, test: 0.2}}\n  train: {family: [forest], targets: [{name: cls}]}\n", name="c.yaml", workdir="runs/two")
        p.run("run", "c.yaml", "-q", "-j", "1", "--until", "split")
        for text in ("UPDATE label SET value=0.5, n_measurements=2 WHERE mol_id=1; UPDATE label SET value=2, n_measurements=2 WHERE mol_id=2; UPDATE label SET value=0.5 WHERE mol_id=3",
                     "UPDATE label SET value=1 WHERE mol_id=2",
                     "UPDATE label SET value=1 WHERE mol_id=3; INSERT INTO failure(run_id,stage,mol_id,code,message,attempt,at_utc) VALUES(1,'graph',5,'class','of another stage',1,'2020-01-01T00:00:00Z')"):
            rows_made(p, text, "runs/two")
            said(t, "run c.yaml -j 1")
        said(t, "query 'SELECT stage, code, message FROM failure ORDER BY 1' runs/two")
        t.end()


# ---- campaigns ----

ROUNDS = """  read: {unit: 20}
  prepare: {conformers: {source: none}, labels: [alpha, letters]%s}
  graph: {edges: topology}
  split: {fractions: {train: 1, valid: 0, test: 0}}
  train: {name: m, family: [gp], targets: [{name: letters, better: high}]}
  score: {}
  acquire:
    strategy: ucb
    count: 8
    answers: %s
    campaign: {rounds: 2, first: diverse, first_count: 10}
"""
COUNTED = """  read: {}
  prepare: {conformers: {source: none}, max_heavy_atoms: 6}
  external: {name: counter, command: [sh, -c, 'echo id,letters; while read s i; do case $s in *Cl*) ;; *) echo $i,$(expr length "$s");; esac; done < {input}'],
    input: smiles, output: csv, property: letters, better: high}
"""
SEEN = ("CCO,one,1,\nC(O)C,two,,\nCCN,S,2,\nCCC,S,,\nCCCO,D,3,\nOCCC,D,,\n[Og],og,,\nCO,,,\nCN,,,\nCCCl,t9,,\nCCCCl,t10,,\nCCOC,t11,4,\nCC(C)C,t12,,\nCCF,t13,,\nCC#N,t14,,\n"
        "C(x,bad,,\nCCCCCCCO,t16,,\nCCCCCCCCN,t17,,\nCC=O,t18,,\nCC(=O)C,t19,,\n")
# Values that are known before: of a drawing whose copy has none.
KNOWN = "NCCO,k1,,5\nC(N)CO,k2,,\nOCCO,k3,,4\nNCCN,k4,,6\n"


def rounds_tell_molecules_and_properties_apart():
    with Project() as p:
        t = transcript_tools.Transcript(p, "rounds")
        head, limits = "smiles,name,alpha,letters\n", "limits: {failures: {max_fraction: 1}}\n"
        p.put("drawn.csv", head + KNOWN + SEEN)
        p.put("lib.csv", head + SEEN)
        p.put("answers.csv", "id,letters\n" + "".join("%s,%d\n" % (name, k) for k, name in enumerate(("one", "S", "D", "og", "t10", "t11", "t12", "t13", "t14", "t16", "t18", "bad", "t19"))))
        p.workflow(["drawn.csv"], COUNTED, name="oracle.yaml", workdir="runs/oracle", extra=limits)
        p.workflow(["drawn.csv"], ROUNDS % (", dedupe: {by: none}", "{workflow: oracle.yaml}"), name="a.yaml", workdir="runs/a", extra=limits)
        p.workflow(["lib.csv"], ROUNDS % ("", "{table: answers.csv}"), name="b.yaml", workdir="runs/one", extra=limits)
        for name, workdir in (("a.yaml", "runs/a"), ("b.yaml", "runs/one")):
            said(t, "campaign %s -q -j 2" % name)
            stored(t, workdir, "acquired", "measured", "property", "label")
            said(t, "next -n 30 %s|next -n 30 --by ucb %s|next -n 3 --by expected_improvement %s" % (workdir, workdir, workdir))
        for text, command in (("UPDATE acquired SET outcome=NULL WHERE round=(SELECT max(round) FROM acquired) AND place>3", "campaign b.yaml --plan|campaign b.yaml -j 1 'stages.acquire.where=mw > 50'"),
                              ("UPDATE label SET value=1; UPDATE measured SET value=1", "campaign b.yaml --plan"),
                              ("UPDATE measured SET property=CASE round%2 WHEN 0 THEN 'first' ELSE 'second' END WHERE inchikey NOT IN (SELECT inchikey FROM molecule WHERE mol_id%5=2); "
                               "UPDATE measured SET round=round+1 WHERE inchikey IN (SELECT inchikey FROM molecule WHERE mol_id=13);"
                               "INSERT INTO acquired SELECT round,place+50,inchikey,property,strategy,acquisition,mean,deviation,rank,similarity,reason,outcome FROM acquired WHERE place=1", "campaign b.yaml --plan|campaign b.yaml -q")):
            rows_made(p, text)
            p.put("runs/one/campaign.seconds", "300\n")
            said(t, command)
            stored(t, "runs/one", "acquired")
        t.end()


if __name__ == "__main__":
    main([results_of_many_models_are_told_as_before, labels_answer_what_was_asked_for, files_that_lack_something_are_told_in_their_order,
          rounds_tell_molecules_and_properties_apart])
