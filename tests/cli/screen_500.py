#!/usr/bin/env python3
"""Screens 500 real SMILES with the shipped solubility model, from text to ranking,
and reads the answer with the tools people use: sqlite3, Python's sqlite3, VACUUM INTO."""
import csv
import os
import shutil
import sqlite3
import subprocess
import tempfile

import sieve

molsieve = os.environ["MOLSIEVE"]
source = os.environ["MOLSIEVE_SOURCE"]
library = sieve.data("library.smi")


def run(*args, status=0):
    done = subprocess.run(args, capture_output=True, text=True)
    assert done.returncode == status, (args, done.returncode, done.stdout, done.stderr)
    return done.stdout


def main(tmp):
    with open(library) as all_lines, open(f"{tmp}/library.smi", "w") as out:
        out.writelines(line for line, _ in zip(all_lines, range(500)))
    work = f"{tmp}/run"
    screen = [f"{source}/workflows/screen.yaml", f"inputs.0.path={tmp}/library.smi", f"workdir={work}",
              f"models.esol.path={source}/workflows/models/esol.safetensors", "limits.failures.max_fraction=0.2"]
    said = run(molsieve, "run", *screen)
    assert "500 records" in said, said
    db = sqlite3.connect(f"file:{work}/results.db?mode=ro", uri=True)
    one = lambda sql: db.execute(sql).fetchone()

    records, ok, duplicate, filtered, failed, waiting = one(
        "SELECT records, ok, duplicate, filtered, failed, waiting FROM v_funnel")
    assert records == 500 == ok + duplicate + filtered + failed and waiting == 0
    assert failed == one("SELECT count(DISTINCT record_id) FROM failure WHERE stage IN('read','prepare')")[0]
    molecules = one("SELECT count(*) FROM molecule")[0]
    scored = one("SELECT count(*) FROM score")[0]
    lost = one("SELECT count(DISTINCT mol_id) FROM failure WHERE mol_id IS NOT NULL AND stage IN('graph','score')")[0]
    assert molecules == ok and molecules == scored + lost and scored > 400, (molecules, scored, lost)

    hits = db.execute("SELECT rank, objective, inchikey, mw, logp FROM v_hits ORDER BY rank").fetchall()
    assert db.execute("SELECT rank, titles, mw FROM v_hits LIMIT 3").fetchall()[2][0] == 3  # in the order of the ranking without ORDER BY
    assert [h[0] for h in hits] == list(range(1, len(hits) + 1)) and len(hits) > 10
    assert all(a[1] > b[1] or (a[1] == b[1] and a[2] < b[2]) for a, b in zip(hits, hits[1:]))
    assert all(200 <= h[3] <= 500 and 0 <= h[4] <= 5 for h in hits)
    rows = list(csv.DictReader(open(f"{work}/hits.csv")))
    assert [r["inchikey"] for r in rows] == [h[2] for h in hits]
    assert open(f"{work}/hits.sdf").read().count("$$$$\n") == len(hits)

    run("sqlite3", f"{work}/results.db", f"VACUUM INTO '{tmp}/copy.db'")
    assert run("sqlite3", f"{tmp}/copy.db", "PRAGMA integrity_check; SELECT count(*) FROM v_hits") == f"ok\n{len(hits)}\n"
    assert "nothing ran" in run(molsieve, "run", *screen)


folder = tempfile.mkdtemp()
try:
    main(folder)
finally:
    shutil.rmtree(folder)
