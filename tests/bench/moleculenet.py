#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/bench/moleculenet.py MOLSIEVE DATA WORK [--sets A,B] [--splits A,B] [--seeds N] [--first N] [--family F] [--peers A,B]
                            [--gpu] [--table FILE]

Models of MOLSIEVE beside those of others on MoleculeNet's sets (DATA: a folder of NAME.csv.gz): same molecules, same split, several
seeds. A run is a line of WORK/results.jsonl and is not computed twice: the same command continues.

    --sets    esol, freesolv, lipo, bace, bace_pic50, bbbp, clintox, sider, tox21, hiv; default: all but hiv
    --splits  random, balanced (Chemprop's scaffold split), deterministic (DeepChem's); default: all
    --seeds   splits of each kind (deterministic has one); default 5
    --first   the seed of the first; default 0
    --family  what train.family is; default trees+gp (regression) and trees+gp+forest (classes); auto: what the program chooses, with
              --structures generate also whether the network is in it; none: only peers
    --peers   forest (scikit-learn, 200 trees, ECFP4 counts and RDKit's descriptors), xgboost (the same booster's settings as here, on
              MapLight's features), chemprop (2, defaults, as a command); default: forest,xgboost
    --structures  conformers.source: generate for a family with se3; default none
    --gpu     the network and Chemprop learn on the first GPU
    --table   writes the table as Markdown
    --check   instead of all this: molecules in another part by MOLSIEVE's scaffold splits than by DeepChem's and Chemprop's rules

Needs rdkit, scikit-learn, xgboost and, for its peer, chemprop from PyPI in an environment of its own. Molecules are those that
MOLSIEVE prepares (without counter-ions) and RDKit parses; labels of duplicates are joined by MOLSIEVE. Peers learn from the training part alone; chemprop chooses
its epoch on the validation part, as the network here does.

All methods of a split are judged on the same values: those of the test molecules for which each of them gives a number
(WORK/predictions); the table counts them. A target with one class in the training or the test part is left out for all, and
is listed below the table."""
import argparse
import collections
import csv
import gzip
import hashlib
import json
import math
import os
import random
import sqlite3
import statistics
import subprocess
import sys
import time

import numpy as np
from rdkit import Chem, RDLogger
from rdkit.Avalon import pyAvalonTools
from rdkit.Chem import AllChem, Descriptors, rdReducedGraphs
from rdkit.Chem.Scaffolds import MurckoScaffold

RDLogger.DisableLog("rdApp.*")

SETS = {  # name: file, column of SMILES, labels, classes
    "esol": ("esol", "smiles", ["measured log solubility in mols per litre"], False),
    "freesolv": ("freesolv", "smiles", ["expt"], False),
    "lipo": ("lipo", "smiles", ["exp"], False),
    "bace": ("bace", "smiles", ["Class"], True),
    "bace_pic50": ("bace", "smiles", ["pIC50"], False),
    "bbbp": ("bbbp", "smiles", ["p_np"], True),
    "clintox": ("clintox", "smiles", ["FDA_APPROVED", "CT_TOX"], True),
    "sider": ("sider", "smiles", None, True),
    "tox21": ("tox21", "smiles", None, True),
    "hiv": ("hiv", "smiles", ["HIV_active"], True),
}
T95 = [0, 0, 12.71, 4.30, 3.18, 2.776, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13, 2.12, 2.11, 2.10,
       2.09]  # by number of pairs
NO_LABEL = {"smiles", "mol_id"}


class Set:
    """A set as MOLSIEVE reads it: its molecules, labels and runs."""

    def __init__(self, name, o):
        self.name, self.o = name, o
        file, self.smiles_column, self.labels, self.classes = SETS[name]
        self.dir = os.path.join(o.work, name)
        os.makedirs(os.path.join(self.dir, "splits"), exist_ok=True)
        with gzip.open(os.path.join(o.data, file + ".csv.gz"), "rt") as f:
            rows = list(csv.DictReader(f))
        if self.labels is None:
            self.labels = [c for c in rows[0] if c not in NO_LABEL]
        self.names = ["t%d" % k for k in range(len(self.labels))]
        self.write_input(rows)
        self.prepare()

    def write_input(self, rows):
        with open(os.path.join(self.dir, "in.csv"), "w", newline="") as f:
            out = csv.writer(f)
            out.writerow(["id", "smiles"] + self.names)
            for k, row in enumerate(rows):
                if Chem.MolFromSmiles(row[self.smiles_column]) is not None:
                    out.writerow(["m%d" % k, row[self.smiles_column]] + [row[c] for c in self.labels])

    def workflow(self, family, targets=None):
        task = "{task: classification}" if self.classes else "{}"
        text = """format: 1
name: %s
seed: 1
workdir: run
inputs:
  - {path: in.csv, format: csv, columns: {smiles: smiles, title: id}}
stages:
  read: {}
  prepare:
    conformers: {source: %s}
    labels: [%s]
    properties: {%s}
  graph: {edges: %s}
  split: {method: file, path: splits/now.txt, leaks: allow}
  train:
    family: [%s]
    targets: [%s]
    model: {layers: 4, degrees: 3, channels: 16, heads: 4, channels_div: 2, pooling: sum, charge: true}
    batch: {molecules: 32}
    epochs: 120
    optimiser: {lr: 0.002, min_lr: 0.00002, weight_decay: 0.1, grad_clip: 5}
    schedule: {type: cosine_step, warmup: 2}
    ema: 0.99
  evaluate: {on: [valid, test]}
""" % (self.name, self.o.structures, ", ".join(self.names), ", ".join("%s: %s" % (n, task) for n in self.names),
            "topology" if self.o.structures == "none" else "bonds", ", ".join(family), ", ".join("{name: %s}" % n for n in targets or self.names))
        with open(os.path.join(self.dir, "w.yaml"), "w") as f:
            f.write(text)

    def engine(self):
        return ["stages.train.engine=cuda", "stages.evaluate.engine=cuda"] if self.o.gpu else []

    def run(self, *args):
        p = subprocess.run([self.o.molsieve, "run", "w.yaml", "-q", "-j", str(self.o.jobs), *self.engine(), *args], cwd=self.dir,
                           capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if p.returncode not in (0, 3):
            sys.exit("%s: %s" % (self.name, p.stderr))

    def query(self, sql, *args):
        db = sqlite3.connect(os.path.join(self.dir, "run/results.db"))
        rows = db.execute(sql, args).fetchall()
        db.close()
        return rows

    def prepare(self):
        self.workflow(["trees"])
        open(os.path.join(self.dir, "splits/now.txt"), "a").close()
        self.run("--until", "prepare")
        first = self.query("SELECT m.mol_id, r.title, m.smiles FROM molecule m JOIN record r ON r.record_id=m.mol_id ORDER BY 1")
        label = collections.defaultdict(dict)
        for mol_id, name, value in self.query("SELECT mol_id, name, value FROM label JOIN property USING(property_id)"):
            if not self.classes or value in (0, 1):
                label[mol_id][name] = value
        first = [(i, t, s) for i, t, s in first if Chem.MolFromSmiles(s) is not None]
        kept = [(t, s, [label[i].get(n, math.nan) for n in self.names]) for i, t, s in first if label[i] or self.o.check]
        self.ids, self.smiles = [t for t, _, _ in kept], [s for _, s, _ in kept]
        self.y = np.array([y for _, _, y in kept])
        self.mols = [Chem.MolFromSmiles(s) for s in self.smiles]

    # ---- splits ----

    def scaffolds(self):
        groups = collections.OrderedDict()
        for k, mol in enumerate(self.mols):
            groups.setdefault(MurckoScaffold.MurckoScaffoldSmiles(mol=mol, includeChirality=False), []).append(k)
        return list(groups.values())

    def split(self, how, seed):
        n = len(self.ids)
        if how == "random":
            order = np.random.RandomState(seed).permutation(n)
            a, b = int(0.8 * n), int(0.9 * n)
            return order[:a], order[a:b], order[b:]
        parts = [], [], []
        if how == "deterministic":  # DeepChem's ScaffoldSplitter
            for group in sorted(self.scaffolds(), key=lambda g: (len(g), g[0]), reverse=True):
                if len(parts[0]) + len(group) <= 0.8 * n:
                    parts[0].extend(group)
                elif len(parts[0]) + len(parts[1]) + len(group) <= 0.9 * n:
                    parts[1].extend(group)
                else:
                    parts[2].extend(group)
            return parts
        rng, groups = random.Random(seed), self.scaffolds()  # scaffold_split(balanced=True) of Chemprop 1
        large = [g for g in groups if len(g) > 0.05 * n]
        small = [g for g in groups if len(g) <= 0.05 * n]
        rng.shuffle(large)
        rng.shuffle(small)
        for group in large + small:
            if len(parts[0]) + len(group) <= 0.8 * n:
                parts[0].extend(group)
            elif len(parts[1]) + len(group) <= 0.1 * n:
                parts[1].extend(group)
            else:
                parts[2].extend(group)
        return parts

    # ---- MOLSIEVE ----

    def molsieve(self, parts, family):
        """Error of each component by itself, by target, and what the model predicts for the test part."""
        with open(os.path.join(self.dir, "splits/now.txt"), "w") as f:
            for part, which in zip(("train", "valid", "test"), parts):
                f.writelines("%s %s\n" % (self.ids[k], part) for k in which)
        why = self.left_out(parts)
        self.workflow(family, [n for n in self.names if n not in why])
        self.run()
        metric = "roc_auc" if self.classes else "rmse"
        row = {self.ids[k]: i for i, k in enumerate(parts[2])}
        p = np.full((len(parts[2]), len(self.names)), math.nan)
        for title, name, value in self.query("SELECT r.title, p.name, e.predicted FROM evaluated e JOIN property p USING(property_id) "
                                             "JOIN record r ON r.record_id=e.mol_id WHERE part='test'"):
            p[row[title], self.names.index(name)] = value
        found = collections.defaultdict(lambda: [math.nan] * len(self.names))
        for name, target, value in self.query("SELECT metric, p.name, value FROM evaluation JOIN property p USING(property_id) "
                                              "WHERE part='test' AND metric LIKE '%.' || ?", metric):
            if name.split(".")[0] not in ("mean", "composition", "descriptors"):
                found["here: " + name[:-len(metric) - 1]][self.names.index(target)] = value
        return "here: mean of " + "+".join(family), p, dict(found)

    def left_out(self, parts):
        """Why a target is judged for no method: {name: reason}."""
        why = {}
        for k, name in enumerate(self.names):
            for part, which in (("test", parts[2]), ("training", parts[0])):
                n = len({v for v in self.y[list(which), k] if not math.isnan(v)})
                if n < (2 if self.classes else 1):
                    why[name] = "%s in the %s part" % ("one class" if n else "no label", part)
        return why

    def check(self):
        """Molecules that MOLSIEVE's own scaffold splits put elsewhere than the rules above."""
        for variant, seed in [("deterministic", 1)] + [("balanced", k) for k in range(self.o.first, self.o.first + self.o.seeds)]:
            parts = self.split(variant, seed)
            want = {self.ids[k]: part for part, which in zip(("train", "valid", "test"), parts) for k in which}
            self.run("--until", "split", "--from", "split", "seed=%d" % seed,
                     "stages.split={method: scaffold, variant: %s, leaks: allow}" % variant)
            got = dict(self.query("SELECT r.title, s.part FROM split s JOIN record r ON r.record_id=s.mol_id"))
            print(self.name, variant, seed, "%d of %d molecules differ" % (sum(got.get(k) != p for k, p in want.items()), len(want)),
                  flush=True)


# ---- peers ----

def counts(mol, size):
    x = np.zeros(size, dtype=np.float32)
    for bit, n in AllChem.GetHashedMorganFingerprint(mol, 2, nBits=size).GetNonzeroElements().items():
        x[bit] = n
    return x


def descriptors(mol):
    x = np.array(list(Descriptors.CalcMolDescriptors(mol).values()), dtype=np.float64)
    return np.clip(np.nan_to_num(x, nan=0, posinf=1e6, neginf=-1e6), -1e6, 1e6).astype(np.float32)


def maplight(mol):
    """MapLight's features but the descriptors."""
    avalon = np.zeros(1024, dtype=np.float32)
    for bit, n in pyAvalonTools.GetAvalonCountFP(mol, nBits=1024).GetNonzeroElements().items():
        avalon[bit] = n
    erg = np.asarray(rdReducedGraphs.GetErGFingerprint(mol), dtype=np.float32)
    return np.concatenate([counts(mol, 1024), avalon, erg])


FEATURES = {}
PARTS = {"counts2048": lambda m: counts(m, 2048), "descriptors": descriptors, "maplight": maplight}
MADE_OF = {"forest": ["counts2048", "descriptors"], "xgboost": ["maplight", "descriptors"]}


def part_of_features(s, part):
    """Computed once, kept in WORK with a hash of the molecules: RDKit's descriptors, nearly all of the time, serve both peers."""
    path = os.path.join(s.o.work, "features", "%s-%s.npy" % (part, hashlib.sha256("\n".join(s.smiles).encode()).hexdigest()[:16]))
    if not os.path.exists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        np.save(path + ".part.npy", np.array([PARTS[part](m) for m in s.mols]))
        os.rename(path + ".part.npy", path)
    return np.load(path)


def features(s, peer):
    if (s.name, peer) not in FEATURES:
        FEATURES[s.name, peer] = np.concatenate([part_of_features(s, part) for part in MADE_OF[peer]], axis=1)
    return FEATURES[s.name, peer]


def learner(peer, s, seed):
    if peer == "forest":
        from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
        return (RandomForestClassifier if s.classes else RandomForestRegressor)(200, n_jobs=s.o.jobs, random_state=seed)
    import xgboost
    kind = xgboost.XGBClassifier if s.classes else xgboost.XGBRegressor
    return kind(n_estimators=600, learning_rate=0.05, max_depth=5, subsample=0.8, colsample_bytree=0.3, min_child_weight=2, max_bin=64,
                tree_method="hist", n_jobs=s.o.jobs, random_state=seed)


def error(classes, y, p):
    from sklearn.metrics import roc_auc_score
    if classes:
        return roc_auc_score(y, p) if len(set(y)) > 1 else math.nan
    return math.sqrt(np.mean((y - p) ** 2))


def peer_of_features(peer, s, parts, seed):
    x, test, why = features(s, peer), list(parts[2]), s.left_out(parts)
    p = np.full((len(test), len(s.names)), math.nan)
    for k, name in enumerate(s.names):
        if name in why:
            continue
        train = [i for i in parts[0] if not math.isnan(s.y[i, k])]
        m = learner(peer, s, seed).fit(x[train], s.y[train, k])
        p[:, k] = m.predict_proba(x[test])[:, 1] if s.classes else m.predict(x[test])
    return peer, p, {}


def chemprop(s, parts, seed):
    d = os.path.join(s.dir, "chemprop")
    os.makedirs(d, exist_ok=True)
    for part, which in zip(("train", "valid", "test"), parts):
        with open(os.path.join(d, part + ".csv"), "w", newline="") as f:
            out = csv.writer(f)
            out.writerow(["smiles"] + s.names)
            for k in which:
                out.writerow([s.smiles[k]] + ["" if math.isnan(v) else v for v in s.y[k]])

    def run(*args):
        p = subprocess.run([sys.executable, "-c", "from chemprop.cli.main import main; main()", *args, "--smiles-columns", "smiles",
                            "--num-workers", "0", "--accelerator", "gpu" if s.o.gpu else "cpu"], cwd=d, capture_output=True, text=True)
        if p.returncode:
            sys.exit("chemprop: " + p.stderr[-2000:])

    run("train", "-i", "train.csv", "valid.csv", "test.csv", "-t", "classification" if s.classes else "regression", "--target-columns",
        *s.names, "-o", "out", "--pytorch-seed", str(seed))
    run("predict", "-i", "test.csv", "--model-paths", "out/model_0/best.pt", "-o", "pred.csv")
    with open(os.path.join(d, "pred.csv")) as f:
        return "chemprop 2", np.array([[float(r[n]) for n in s.names] for r in csv.DictReader(f)]), {}


# ---- runs ----

def results(o):
    path = os.path.join(o.work, "results.jsonl")
    return [json.loads(line) for line in open(path)] if os.path.exists(path) else []


def predictions(o, name, how, seed, method):
    return os.path.join(o.work, "predictions", "%s %s %d %s.npz" % (name, how, seed, method.replace(":", "").replace("/", "-")))


def mean_error(classes, y, p, judged):
    """Over the targets, each on the molecules that `judged` marks."""
    each = [error(classes, y[judged[:, k], k], p[judged[:, k], k]) for k in range(y.shape[1]) if judged[:, k].any()]
    return float(np.nanmean(each)) if each else math.nan


def keep(o, s, how, seed, job, parts, found, seconds):
    """The predictions of a method, then the line that says that they are there."""
    method, p, components = found
    why = s.left_out(parts)
    y = s.y[list(parts[2])].copy()
    for k, name in enumerate(s.names):
        if name in why:
            y[:, k] = math.nan
    judged = ~np.isnan(y) & ~np.isnan(p)
    path = predictions(o, s.name, how, seed, method)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    np.savez_compressed(path, y=y, p=p, ids=[s.ids[k] for k in parts[2]])
    values = {method: mean_error(s.classes, y, p, judged)}
    for name, each in components.items():
        values[name] = statistics.mean(v for k, v in enumerate(each) if s.names[k] not in why and not math.isnan(v))
    with open(os.path.join(o.work, "results.jsonl"), "a") as f:
        for name, value in values.items():
            f.write(json.dumps({"set": s.name, "split": how, "seed": seed, "job": job, "method": name, "value": value,
                                "seconds": round(seconds, 1), "values": int(judged.sum()), "without": int((~np.isnan(y)).sum() - judged.sum()),
                                "left_out": {s.labels[s.names.index(k)]: v for k, v in why.items()}}) + "\n")
    return values


def jobs(o, s):
    family = o.family.split("+") if o.family else ["trees", "gp"] + (["forest"] if s.classes else [])
    if o.family != "none":
        yield "+".join(family) + ("" if o.structures == "none" else " 3D"), lambda parts, seed: s.molsieve(parts, family)
    for peer in filter(None, o.peers.split(",")):
        if peer == "chemprop":
            yield peer, lambda parts, seed: chemprop(s, parts, seed)
        else:
            yield peer, lambda parts, seed, peer=peer: peer_of_features(peer, s, parts, seed)


def work(o):
    done = {(r["set"], r["split"], r["seed"], r["job"]) for r in results(o)}
    for name in o.sets.split(","):
        s = None
        for how in o.splits.split(","):
            for seed in [0] if how == "deterministic" else range(o.first, o.first + o.seeds):
                s = s or Set(name, o)
                parts = s.split(how, seed)
                for job, run in jobs(o, s):
                    if (name, how, seed, job) in done:
                        continue
                    began = time.time()
                    found = keep(o, s, how, seed, job, parts, run(parts, seed), time.time() - began)
                    print(name, how, seed, found, "%.0f s" % (time.time() - began), flush=True)


def common(o, name, how, seed, methods):
    """{method: its error on the values that all methods with predictions have}, how many these are, and of how many."""
    there = {m: np.load(predictions(o, name, how, seed, m)) for m in methods if os.path.exists(predictions(o, name, how, seed, m))}
    if not there:
        return {}, 0, 0
    y = next(iter(there.values()))["y"]
    judged = ~np.isnan(y)
    n_all = int(judged.sum())
    for d in there.values():
        judged &= ~np.isnan(d["p"])
    return {m: mean_error(SETS[name][3], y, d["p"], judged) for m, d in there.items()}, int(judged.sum()), n_all


def cells(found, ours, m):
    """Mean and deviation over the seeds, their number, and the paired difference to the first method of ours."""
    v = found[m]
    cell = "%.3f" % statistics.mean(v.values()) + (" +- %.3f" % statistics.stdev(v.values()) if len(v) > 1 else "")
    pairs = [found[ours[0]][k] - v[k] for k in v if k in found[ours[0]]] if ours and m not in ours else []
    if len(pairs) < 2:
        return "%s | %d | " % (cell, len(v))
    half = T95[len(pairs)] if len(pairs) < len(T95) else 2
    return "%s | %d | %+.3f +- %.3f" % (cell, len(v), statistics.mean(pairs), half * statistics.stdev(pairs) / math.sqrt(len(pairs)))


def judge(o, name, how, rows):
    """{method: {seed: error}}; and notes: values that are not judged, targets left out."""
    found, notes = collections.defaultdict(dict), []
    for seed in sorted({r["seed"] for r in rows}):
        of = [r for r in rows if r["seed"] == seed]
        same, n, n_all = common(o, name, how, seed, {r["method"] for r in of})
        if same:
            notes.append("%s %s %d: %d of %d test values judged" % (name, how, seed, n, n_all))
        for r in of:
            found[r["method"]][seed] = same.get(r["method"], r["value"])
            if same and r["method"] not in same and r["values"] != n:
                notes.append("%s %s %d: %s is judged on %d values, others than the rest" % (name, how, seed, r["method"], r["values"]))
        for target, why in sorted({k: v for r in of for k, v in r.get("left_out", {}).items()}.items()):
            notes.append("%s %s %d: left out for all: %s, %s" % (name, how, seed, target, why))
    return found, notes


def table(o):
    out, notes, by = [], [], collections.defaultdict(list)
    for r in results(o):
        by[r["set"], r["split"]].append(r)
    for name in SETS:
        for how in ("random", "balanced", "deterministic"):
            found, more = judge(o, name, how, by[name, how])
            ours = sorted(m for m in found if m.startswith("here: mean of"))
            out += ["| %s | %s | %s | %s |" % (name, how, m, cells(found, ours, m)) for m in sorted(found)]
            notes += more
    text = ("| set | split | method | RMSE, of classes ROC-AUC | seeds | mean here less this (95 %) |\n|---|---|---|--:|--:|--:|\n"
            + "\n".join(out) + "\n" + ("\n" + "\n".join("- " + n for n in notes) + "\n" if notes else ""))
    with open(o.table, "w") as f:
        f.write(text)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("molsieve")
    p.add_argument("data")
    p.add_argument("work")
    p.add_argument("--sets", default=",".join(k for k in SETS if k != "hiv"))
    p.add_argument("--splits", default="random,balanced,deterministic")
    p.add_argument("--seeds", type=int, default=5)
    p.add_argument("--first", type=int, default=0)
    p.add_argument("--family")
    p.add_argument("--structures", default="none", help="conformers.source; generate for a family with se3")
    p.add_argument("--peers", default="forest,xgboost")
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--gpu", action="store_true")
    p.add_argument("--table")
    p.add_argument("--check", action="store_true")
    o = p.parse_args()
    o.molsieve, o.work, o.data = map(os.path.abspath, (o.molsieve, o.work, o.data))
    os.makedirs(o.work, exist_ok=True)
    if o.check:
        for name in o.sets.split(","):
            Set(name, o).check()
        return
    work(o)
    if o.table:
        table(o)


if __name__ == "__main__":
    main()
