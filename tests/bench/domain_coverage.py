#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How many measured values of the test part lie in interval90, inside of the domain: trainings of several seeds.

  tests/bench/domain_coverage.py MOLSIEVE SHARED WORKDIR [SEEDS]     by hand, hours of CPU time

Trains on 70 %, calibrates on 10 % and judges 10 % that nothing else depends on: ESOL at random and by scaffold, lipophilicity by scaffold,
QM9's development molecules with built structures. One line for each seed: coverage inside, MAE inside and outside.
"""
import os
import sqlite3
import subprocess
import sys

CASES = (  # name, file, columns, label, split, epochs
    ("esol-random", "screening/moleculenet/esol.csv.gz", '{smiles: smiles, title: "Compound ID"}', "measured log solubility in mols per litre", "random", 120),
    ("esol-scaffold", "screening/moleculenet/esol.csv.gz", '{smiles: smiles, title: "Compound ID"}', "measured log solubility in mols per litre", "scaffold", 120),
    ("lipo-scaffold", "screening/moleculenet/lipo.csv.gz", "{smiles: smiles, title: CMPD_CHEMBLID}", "exp", "scaffold", 60),
    ("qm9-built", "qm9/qm9_dev_2500.sdf.gz", None, "gap", "random", 60))

WORKFLOW = """format: 1
name: m
seed: %(seed)d
workdir: %(dir)s
storage: {features: %(features)s}
inputs: [{path: %(path)s%(columns)s}]
stages:
  read: {}
  prepare: {conformers: {source: generate}, labels: ["%(label)s"]}
  graph: {edges: bonds}
  split: {method: %(split)s, fractions: {train: 0.7, valid: 0.1, calibration: 0.1, test: 0.1}}
  train:
    targets: [{name: "%(label)s", transform: composition}]
    model: {layers: 4, degrees: 3, channels: 16, heads: 4, channels_div: 2, pooling: sum, charge: true}
    batch: {molecules: 32}
    epochs: %(epochs)d
    optimiser: {lr: 0.002, min_lr: 0.00002, weight_decay: 0.1, grad_clip: 5}
    schedule: {type: cosine_step, warmup: 2}
    ema: 0.99
  score: {}
"""

JUDGED = ("SELECT coalesce(domain,'unknown'), count(*), avg(abs(s.mean-l.value)<=s.interval90), avg(abs(s.mean-l.value)) FROM score s "
          "JOIN split USING(mol_id) JOIN label l ON l.mol_id=s.mol_id AND l.property_id=s.property_id WHERE part='test' GROUP BY 1")


def judge(molsieve, shared, work, case, seed):
    name, path, columns, label, split, epochs = case
    where = os.path.join(work, "%s-%d" % (name, seed))
    os.makedirs(where, exist_ok=True)
    with open(where + "/w.yaml", "w") as f:
        f.write(WORKFLOW % dict(seed=seed, dir=where + "/run", features=os.path.join(work, os.path.basename(path) + ".db"), label=label, split=split,
                                path=os.path.join(shared, "data", path), columns=", format: csv, columns: " + columns if columns else "", epochs=epochs))
    subprocess.run([molsieve, "run", where + "/w.yaml", "-q"], check=True, stdout=subprocess.DEVNULL)
    db = sqlite3.connect(where + "/run/results.db")
    for domain, n, held, mae in db.execute(JUDGED):
        print("%-14s seed %d  %-7s %4d molecules  in interval90 %s  MAE %.3f" % (name, seed, domain, n, "-" if held is None else "%.3f" % held, mae), flush=True)


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    for case in CASES:
        for seed in range(1, 1 + int(sys.argv[4] if len(sys.argv) > 4 else 5)):
            judge(*sys.argv[1:4], case, seed)


main()
