#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Members of a model family beside their peers, on the same rows: bench_family against Python's XGBoost and scikit-learn.

    tests/bench/family.py --bench build/dev/bin/bench_family --data FOLDER [--sets esol,freesolv] [--seeds 3]

FOLDER has MoleculeNet's esol.csv.gz, freesolv.csv.gz, lipo.csv.gz, bbbp.csv.gz, bace.csv.gz. Needs rdkit, xgboost, scikit-learn, numpy
and scipy from PyPI; never pass or fail. Environments and descriptors are RDKit's, so that all learn from the same numbers; of each set four
fifths are learned from, by chance. Columns of the table that it prints:

    member          root mean square error, or area under the ROC curve of classes
    its peer        trees: xgboost with the same settings; forest: scikit-learn's, 500 trees; gp: numpy, the same kernel and numbers
    seconds         of a processor, to fit

`same` is the largest difference between the Gaussian process and its definition in numpy, in units of the target."""

import argparse
import csv
import gzip
import json
import os
import re
import struct
import subprocess
import tempfile
import time

import numpy as np
import scipy.sparse as sp
import xgboost
from rdkit import Chem, RDLogger
from rdkit.Chem import Descriptors, rdFingerprintGenerator
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.metrics import roc_auc_score

SETS = {"esol": "measured log solubility in mols per litre", "freesolv": "expt", "lipo": "exp", "bbbp": "p_np", "bace": "Class"}
CLASSES = {"bbbp", "bace"}
# Counts of fragments, partial charges and Burden eigenvalues are slow or not finite; Ipc overflows.
SKIPPED = re.compile("^(fr_|BCUT|Ipc|AvgIpc|M(ax|in).*PartialCharge)")


def read(folder, name, most):
    """[(value, [(id, count)], [descriptors])]"""
    maker = rdFingerprintGenerator.GetMorganGenerator(radius=2)
    rows = []
    with gzip.open(os.path.join(folder, name + ".csv.gz"), "rt") as f:
        for r in csv.DictReader(f):
            mol = Chem.MolFromSmiles(r.get("smiles") or r.get("mol"))
            if mol is None or r[SETS[name]] == "":
                continue
            counts = maker.GetSparseCountFingerprint(mol).GetNonzeroElements()
            numbers = np.array([f(mol) for n, f in Descriptors.descList if not SKIPPED.match(n)], "<f4")
            numbers[~np.isfinite(numbers)] = np.nan
            rows.append((float(r[SETS[name]]), sorted((k & 0xFFFFFFFF, v) for k, v in counts.items()), numbers))
            if len(rows) == most:
                break
    return rows


def write(path, learn, new):
    with open(path, "wb") as f:
        f.write(struct.pack("<3i", len(learn), len(new), len(learn[0][2])))
        for value, environments, numbers in learn + new:
            f.write(struct.pack("<di", value, len(environments)))
            for pair in environments:
                f.write(struct.pack("<II", *pair))
            f.write(numbers.tobytes())


def ours(bench, kind, task, learn, new, seed):
    """Values, variances, seconds, words, settings."""
    with tempfile.NamedTemporaryFile(suffix=".bin") as f:
        write(f.name, learn, new)
        r = subprocess.run([bench, f.name, kind, task, str(seed)], capture_output=True, text=True, check=True, timeout=3600)
    rows = np.array([[float(x) for x in line.split()] for line in r.stdout.splitlines()])
    words, settings = r.stderr.strip().split("\n")
    return rows[:, 0], float(re.search(r"fit ([\d.]+) s", words).group(1)), words, json.loads(settings)


def matrix(learn, rows):
    """Environments of at least 3 molecules, then numbers; what is absent is not stored."""
    seen = {}
    for _, environments, _ in learn:
        for k, _ in environments:
            seen[k] = seen.get(k, 0) + 1
    place = {k: i for i, k in enumerate(sorted(k for k, n in seen.items() if n >= 3))}
    first, column, value = [0], [], []
    for _, environments, numbers in rows:
        for k, n in environments:
            if k in place:
                column.append(place[k])
                value.append(n)
        for k, x in enumerate(numbers):
            if not np.isnan(x):
                column.append(len(place) + k)
                value.append(x)
        first.append(len(column))
    return sp.csr_matrix((np.array(value, "f4"), column, first), shape=(len(rows), len(place) + len(learn[0][2])))


def peer_trees(task, learn, new, seed):
    y = np.array([r[0] for r in learn])
    settings = {"tree_method": "hist", "max_bin": 64, "eta": 0.05, "max_depth": 5, "subsample": 0.8, "colsample_bytree": 0.3,
                "min_child_weight": 2, "base_score": y.mean(), "nthread": 1, "seed": seed,
                "objective": "binary:logistic" if task == "classes" else "reg:squarederror"}
    began = time.process_time()
    b = xgboost.train(settings, xgboost.DMatrix(matrix(learn, learn), y, nthread=1), 600)
    took = time.process_time() - began
    return b.predict(xgboost.DMatrix(matrix(learn, new), nthread=1)), took


def peer_forest(task, learn, new, seed):
    make = RandomForestClassifier if task == "classes" else RandomForestRegressor
    y = np.array([r[0] for r in learn])
    x, z = np.nan_to_num(matrix(learn, learn).toarray()), np.nan_to_num(matrix(learn, new).toarray())
    began = time.process_time()
    # A third of the columns is the usual advice for values, the root of their number for classes.
    f = make(500, random_state=seed, max_features="sqrt" if task == "classes" else 0.33).fit(x, y)
    took = time.process_time() - began
    return (f.predict_proba(z)[:, 1] if task == "classes" else f.predict(z)), took


def kernel(a, b, scale, k):
    """The kernel of models/family/gp_data.h in numpy: a by b."""
    ids = {e: i for i, e in enumerate(sorted({e for r in a + b for e, _ in r[1]}))}

    def counts(rows):
        out = np.zeros((len(rows), len(ids)), "f4")
        for i, r in enumerate(rows):
            for e, n in r[1]:
                out[i, ids[e]] = min(n, 255)
        return out

    ca, cb, (mean, stdev) = counts(a), counts(b), scale
    za = np.nan_to_num((np.array([r[2] for r in a], "f8") - mean) / stdev)
    zb = np.nan_to_num((np.array([r[2] for r in b], "f8") - mean) / stdev)
    out = np.zeros((len(a), len(b)))
    for i in range(len(a)):
        t = np.minimum(ca[i], cb).sum(1) / np.maximum(ca[i], cb).sum(1)
        d = ((za[i] - zb) ** 2)[:, np.isfinite(stdev)].mean(1)
        out[i] = k["w"] * t + (1 - k["w"]) * np.exp(-d / (2 * k["length"] ** 2))
    return out


def peer_gp(task, learn, new, k):
    """The same kernel, the same numbers, by definition."""
    y = np.array([r[0] for r in learn])
    began = time.process_time()
    numbers = np.array([r[2] for r in learn], "f8")
    mean, stdev = np.nanmean(numbers, 0), np.nanstd(numbers, 0)
    stdev[stdev == 0] = np.inf
    a = kernel(learn, learn, (mean, stdev), k) + k["noise"] * np.eye(len(learn))
    alpha = np.linalg.solve(a, (y - y.mean()) / y.std())
    value = y.mean() + y.std() * kernel(new, learn, (mean, stdev), k) @ alpha
    return (np.clip(value, 0.001, 0.999) if task == "classes" else value), time.process_time() - began


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--bench", required=True)
    p.add_argument("--data", required=True)
    p.add_argument("--sets", default="esol,freesolv")
    p.add_argument("--seeds", type=int, default=3)
    p.add_argument("--most", type=int, default=0, help="molecules of a set; 0: all")
    a = p.parse_args()
    RDLogger.DisableLog("rdApp.*")
    print("set        member   of   peer     deviation of the difference   fit s   peer s   same")
    for name in a.sets.split(","):
        rows, task = read(a.data, name, a.most), "classes" if name in CLASSES else "regression"
        score = {k: [] for k in ("trees", "forest", "gp")}
        for seed in range(a.seeds):
            order = np.random.default_rng(seed).permutation(len(rows))
            learn = [rows[i] for i in order[: len(rows) * 4 // 5]]
            new = [rows[i] for i in order[len(rows) * 4 // 5:]]
            y = np.array([r[0] for r in new])

            def judge(v, y=y):
                return roc_auc_score(y, v) if task == "classes" else np.sqrt(np.mean((v - y) ** 2))

            for kind in score:
                v, took, words, settings = ours(a.bench, kind, task, learn, new, seed)
                if kind == "gp":
                    w, peer_took = peer_gp(task, learn, new, settings)
                else:
                    w, peer_took = (peer_trees if kind == "trees" else peer_forest)(task, learn, new, seed)
                score[kind].append((judge(v), judge(w), took, peer_took, np.abs(v - w).max() if kind == "gp" else np.nan))
                if seed == 0:
                    print("#", words, flush=True)
        for kind, rows_of in score.items():
            s = np.array(rows_of)
            spread = (s[:, 0] - s[:, 1]).std(ddof=1) if len(s) > 1 else np.nan
            same = "" if kind != "gp" else f"{s[:, 4].max():.1e}"
            print(f"{name:10s} {kind:7s} {s[:, 0].mean():7.4f} {s[:, 1].mean():7.4f} {spread:7.4f} {s[:, 2].mean():20.2f} "
                  f"{s[:, 3].mean():9.2f} {same:>8s}", flush=True)


if __name__ == "__main__":
    main()
