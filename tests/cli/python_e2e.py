#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python package: what it returns and raises is what the program answers; what cannot run here is told."""
import csv
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import time

import sieve
from python_env import BUILD, SOURCE, environment, python
from sieve import PROGRAM, Project, data, lines_of

FLAT = "  read: {unit: 20}\n  prepare: {conformers: {source: none}}\n  rank: {objectives: [{property: mw, goal: minimise}], top: 30}\n"


def predictions_are_rows_with_the_index_of_the_input():
    with Project() as p:
        p.put("in.csv", 'id,smiles\na,CCO\nb,C(x\nc,\nd,"CC(=O)Oc1ccccc1C(=O)O"\ne,[Li]\n')
        want = [json.loads(x) for x in p.run("predict", "esol", "in.csv", "-f", "jsonl", expect=3)[1].splitlines()]
        got = json.loads(python("""
import molsieve, pandas, pathlib, warnings
warnings.simplefilter("error")
frame = pandas.read_csv("in.csv", index_col="id")
answers = [molsieve.predict("esol", frame), molsieve.predict("esol", frame.smiles), molsieve.predict("esol", list(frame.smiles), jobs=1)]
print(pandas.concat(answers + [molsieve.predict("esol", pathlib.Path("in.csv")).drop(columns="title")]).to_json(orient="split", double_precision=15))
none = molsieve.predict("esol", frame[:0])
assert len(none) == 0 and list(none.columns) == list(answers[0].columns) and none.logS.dtype == "float64"
bad = molsieve.predict("esol", [None, float("nan"), pandas.NA, "CCO\\nCCC", "C\\0C", "\\ud800"])
assert bad.logS.isna().all() and bad.logS.dtype == bad.logS_interval90.dtype == "float64" and bad.problem.notna().all(), bad
two = molsieve.predict("esol", ["CCO"], columns=["smiles", "logS", "mw"])
assert list(two.columns) == ["smiles", "logS", "mw"] and abs(two.mw[0] - 46.07) < 0.01, two
for word in ("mw", "mw,logS", "title,mw"):
    one = molsieve.predict("esol", ["CCO"], columns=word)
    assert list(one.columns) == [x for x in word.split(",") if x != "title"] and abs(one.mw[0] - 46.07) < 0.01, one
for wrong in ("CCO", [1]):
    try:
        molsieve.predict("esol", wrong)
        raise SystemExit("accepted %r" % (wrong,))
    except TypeError:
        pass
""", p))
        assert got["index"] == list("abcde") * 2 + [0, 1, 2, 3, 4] * 2, got["index"]
        names = [x for x in want[0] if x != "title"]
        assert got["columns"] == names
        for k, row in enumerate(got["data"]):
            for name, value in zip(names, row):
                asked = want[k % 5][name]
                assert value == asked or abs(value - asked) < 1e-13, (k, name, value, asked)


def what_is_passed_arrives_as_it_is():
    with Project() as p:
        p.put("lib.smi", lines_of(data("library.smi"), 5))
        p.workflow([p.path("lib.smi")], FLAT)
        esol = os.path.join(SOURCE, "workflows/models/esol.safetensors")
        for name in ("one,two.safetensors", "a b.safetensors", "c.safetensors"):
            shutil.copy(esol, p.path(name))
        python("""
import molsieve, os, gc, warnings
one = molsieve.predict("esol", ["CCO", "CCN"]).logS
# A mapping is names and SMILES, in its order.
named = molsieve.predict("esol", {"b": "CCO", "a": "CCN"})
assert list(named.index) == ["b", "a"] and list(named.logS) == list(one), named
assert list(molsieve.predict("esol", {(1, 2): "CCO"}).index) == [(1, 2)] and len(molsieve.predict("esol", {})) == 0
assert list(molsieve.conformers({"b": "CCO", "a": "CCN"}, count=1).molecule) == ["b", "a"]
# Paths of models: a comma is between two of them; a blank is part of a name.
assert abs(molsieve.predict(["a b.safetensors", "c.safetensors"], ["CCO"]).logS[0] - one[0]) < 1e-12
assert molsieve.predict(["one,two.safetensors"], ["CCO"]).logS[0] == one[0] == molsieve.predict("one,two.safetensors", ["CCO"]).logS[0]
for models, said in ((["one,two.safetensors", "c.safetensors"], "one,two.safetensors"), ([], "no model")):
    try:
        molsieve.predict(models, ["CCO"])
        raise SystemExit("accepted %r" % models)
    except ValueError as e:
        assert said in str(e) and not isinstance(e, molsieve.Error), e
# Texts of settings.
for text in ("\U0001f9ea", "\\\\ud83e\\\\udd2a \u00e9\u4e2d", "\u2028\u00a0\ufeff\ufffd", 'a "b" \\\\U0001f9ea \U0010fffd', "it's: [1] #2"):
    found = molsieve.run("w.yaml", {"workdir": text}, progress=False)
    assert os.path.samefile(found.path, os.path.join(text, "results.db")) and len(found.hits) == 5, found
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    molsieve.command("--version")
    molsieve.program.call("predict", "esol", "-", "--input-format", "smi", input="CCO a\\n")
    gc.collect()
    assert not told, [str(w.message) for w in told]
""", p)


def models_get_the_columns_that_they_read():
    with Project() as p:
        rows = csv.DictReader(lines_of(os.path.join(SOURCE, "workflows/data/esol.csv"), 121).decode().splitlines())
        measured = ["%s,%d,%.1f,%.3f" % (r["smiles"], 5 + k % 3 * 20, 4 + k % 7 / 2, float(r["logS"]) + k % 3) for k, r in enumerate(rows)]
        p.put("in.csv", "smiles,temperature,pH,y\n" + "\n".join(measured) + "\n")
        p.run("fit", "in.csv", "--target", "y", "--inputs", "temperature,pH", "--family", "trees", "-o", "y.safetensors", "-q", expect=None)
        p.put("lib.csv", "id,SMILES,temperature,pH,smiles,note\n" + "".join('%d,%s,%s,%s,C,"a, ""b"" c"\n' % ((k,) + x) for k, x in enumerate((
            ("CCO", "20", "7"), ("CCO", "60", "7"), ("CCCCCCO", "20.5", ""), ("CCN", "", "5"), ("CCN", "1e300", "5"), ("c1ccccc1", "25", "6.5")))))
        ask = ["y.safetensors", "lib.csv", "--id-column", "id", "--smiles-column", "SMILES", "-f", "jsonl", "-j", "1"]
        want = [[json.loads(x) for x in p.run("predict", *ask, *more, expect=expect)[1].splitlines()]
                for more, expect in (([], 3), (["--set", "pH=6,temperature=37"], 0))]
        got = json.loads(python("""
import molsieve, pandas, json
frame = pandas.read_csv("lib.csv", index_col="id")
frame["note"] = 'a, "b" c'
ask = lambda *a, **k: molsieve.predict("y.safetensors", *a, **k).drop(columns="smiles")
rows = lambda x: json.loads(x.to_json(orient="records", double_precision=15))
first = ask(frame, smiles_column="SMILES")
assert list(first.index) == list(range(6)), first
# Kinds of missing values and of numbers; columns that are asked for; columns whose names are ours, twice there or no text.
odd = frame.assign(temperature=frame.temperature.astype(object).where(frame.temperature.notna(), None), pH=frame.pH.astype("Float64"), id=7, title="t")
odd[5] = [object()] * 6
odd = pandas.concat([odd, frame[["note"]]], axis=1)
assert ask(odd, smiles_column="SMILES").equals(first)
asked = ask(frame, smiles_column="SMILES", columns=["smiles", "y", "note", "temperature"])
assert list(asked.note) == ['a, "b" c'] * 6 and float(asked.temperature[2]) == 20.5, asked
fixed = ask(list(frame.SMILES), set={"temperature": 37, "pH": 6.0})
assert ask(frame, smiles_column="SMILES", set={"temperature": 37, "pH": 6}).equals(fixed)
assert len(ask(frame[:0], smiles_column="SMILES")) == 0
for call, error, said in ((lambda: ask(["CCO"]), molsieve.ConfigurationError, "--set pH=NUMBER,temperature=NUMBER"),
                          (lambda: ask(["CCO"], set={"pH": 7}), molsieve.ConfigurationError, "temperature"),
                          (lambda: ask(["CCO"], set={"pH": float("nan"), "temperature": 1}), molsieve.ConfigurationError, "is no number"),
                          (lambda: ask(["CCO"], set={"a,b": 7}), ValueError, "comma"), (lambda: ask(["CCO"], set={"pH": "x"}), ValueError, "x")):
    try:
        call()
        raise SystemExit("not refused: " + said)
    except error as e:
        assert said in str(e), e
print(json.dumps([rows(first), rows(fixed)]))
""", p))
        for ours, theirs in zip(got, want):
            assert len(ours) == len(theirs) == 6
            for a, b in zip(ours, theirs):
                for name, value in a.items():
                    assert value == b[name] or abs(value - b[name]) < 1e-13, (name, a, b)
        y = [r["y"] for r in got[0]]
        assert y[0] != y[1] and y[0] is not None and y[2:5] == [None] * 3 and y[5] is not None, y


def errors_are_exceptions_with_text_and_status():
    with Project() as p:
        p.put("lib.smi", lines_of(data("library.smi"), 60))
        w = p.workflow([p.path("lib.smi")], FLAT)
        p.put("bad.smi", "".join("%s m%d\n" % ("C" * (i % 40 + 1) if i % 2 else "C!C", i) for i in range(200)))
        p.workflow([p.path("bad.smi")], FLAT, name="bad.yaml", workdir="bad", extra="limits: {failures: {max_fraction: 0.1}}\n")
        p.put("cut.safetensors", open(os.path.join(SOURCE, "workflows/models/esol.safetensors"), "rb").read()[:-9])
        out = python("""
import molsieve, fcntl
def told(call):
    try:
        call()
    except molsieve.Error as e:
        print(e.status, type(e).__name__, e.text.replace("\\n", " | "))
    else:
        print("nothing")
run = lambda *a, **k: molsieve.run("w.yaml", *a, progress=False, **k)
told(lambda: molsieve.run("bad.yaml", progress=False))
told(lambda: run({"stages.rank.topp": 1}))
told(lambda: molsieve.predict("no-model", ["C"]))
told(lambda: molsieve.results("nowhere"))
told(lambda: molsieve.predict("cut.safetensors", ["C"]))
told(lambda: run(max_time="0.001s"))
run({"stages": {"rank": {"top": 5}}, "name": "it's: 1"})
told(lambda: molsieve.results("run").query("DELETE FROM hit"))
told(lambda: molsieve.results("run").query("SELECT 1 AS a, 2 AS a"))
assert list(molsieve.results("run").query("-- the largest\\nSELECT 9e999 AS a, -9e999 AS b").iloc[0]) == [float("inf"), float("-inf")]
with open("run/.lock") as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    told(run)
print(len(molsieve.results("w.yaml").hits))
""", p).splitlines()
        for line, want in zip(out, (r"3 TooManyFailures .*limits\.failures", r"2 ConfigurationError .*did you mean 'top'", r"2 ConfigurationError no-model is neither",
                                    r"6 SystemResourceError nowhere: No such file", r"5 IntegrityError .*cut\.safetensors", r"75 Stopped ",
                                    r"2 ConfigurationError .*only reading", r"2 ConfigurationError .*called 'a'", r"4 WorkDirectoryLocked ", r"5$")):
            assert re.match(want, line), (line, want)
        assert len(out) == 10, out


def runs_fits_and_searches_are_those_of_the_program():
    with Project() as p:
        p.put("lib.smi", lines_of(data("library.smi"), 100))
        p.workflow([p.path("lib.smi")], FLAT)
        p.put("esol.csv", lines_of(os.path.join(SOURCE, "workflows/data/esol.csv"), 80))
        got = json.loads(python("""
import molsieve, pandas, json, sys, os
log, sys.stderr = sys.stderr, open("log", "w")
out, sys.stdout = sys.stdout, open("out", "w")
found = molsieve.run("w.yaml")
sys.stdout, sys.stderr = out, log
frame = pandas.read_csv("esol.csv")
model = molsieve.fit(frame, "logS", output="m/sol.safetensors", family=["trees", "gp"], progress=False)
first = os.stat("m/sol.fit/measured.csv").st_mtime_ns
model = molsieve.fit(frame, "logS", output="m/sol.safetensors", family=["trees", "gp"], progress=False)
assert first == os.stat("m/sol.fit/measured.csv").st_mtime_ns
poses = molsieve.conformers(["CCO", "C(x", "CCCCC"], count=4, jobs=1)
assert set(poses.molecule) == {0, 2} and poses.molfile[0].endswith("M  END\\n") and poses["rank"][0] == 1, poses
print(json.dumps({"hits": list(found.hits.smiles), "index": list(found.hits.index), "same": list(molsieve.results("run").search(similar="CCO", at_least=0.1).smiles),
    "n": int(found.query("SELECT count(*) AS n FROM molecule").n[0]), "model": model.info["name"],
    "value": model.predict(["CCO"]).logS[0], "plan": molsieve.command("top", "-n", "1", found)}))
""", p))
        top = json.loads(p.run("top", "-n", "100", "--json", "run")[1])
        assert got["hits"] == [x["smiles"] for x in top] and got["index"] == [x["rank"] for x in top] and len(top) == 30
        assert got["same"] == [x["smiles"] for x in json.loads(p.run("search", "--similar", "CCO", "--at-least", "0.1", "--json", "run")[1])]
        assert got["n"] == p.one("SELECT count(*) FROM molecule") and got["plan"] == p.run("top", "-n", "1", "run")[1]
        assert "100 records" in open(p.path("out")).read() and "prepare   done" in open(p.path("log")).read()
        p.put("one.smi", "CCO\n")
        row = json.loads(p.run("predict", "m/sol.safetensors", "one.smi", "-f", "jsonl")[1])
        assert abs(row["logS"] - got["value"]) < 1e-13 and got["model"] == "sol", (row, got)


def a_shard_returns_its_own_results():
    """Not those of all, which may be there from an earlier merge."""
    with Project() as p:
        p.put("lib.smi", lines_of(data("library.smi"), 100))
        p.workflow([p.path("lib.smi")], FLAT)
        got = json.loads(python("""
import json, molsieve
def n(found):
    return int(found.query("SELECT count(*) AS n FROM molecule").n[0])
def run(**more):
    return molsieve.run("w.yaml", progress=False, **more)
parts = [n(run(shard="%d/2" % k)) for k in range(2)]
molsieve.command("merge", "w.yaml")
files = [n(run(shard="%d/2" % k, out="a part-%d.db" % k)) for k in range(2)]
print(json.dumps([parts, files, n(run()), n(run(shard="1/3", until="prepare"))]))
""", p))
        assert got == [[60, 40], [60, 40], 100, 40], got
        assert p.run("run", "w.yaml", "--shard", "2/3", "--until", "read")[1].startswith("shard 2 of 3 is done until read: ")


def parquet_keeps_types_units_and_nulls():
    with Project() as p:
        p.put("lib.smi", lines_of(data("library.smi"), 20) + b'C(x bad\nCC[Si](C)(C)C "si, con"\nCCO\n[Na+].CC(=O)[O-] salt\n')
        stages = "  read: {unit: 20}\n  prepare: {}\n  graph: {edges: bonds}\n  basis: {}\n  score: {models: [esol]}\n" \
                 "  rank: {objectives: [{property: logS, goal: maximise}], top: 5}\n"
        p.workflow([p.path("lib.smi")], stages, extra="models: {esol: {path: %s}}\n" % os.path.join(SOURCE, "workflows/models/esol.safetensors"))
        p.run("run", "w.yaml", "-q")
        python("""
import csv, sqlite3, subprocess, sys
import molsieve, molsieve.parquet, pyarrow as pa, pyarrow.parquet as pq
n = molsieve.parquet.write("w.yaml", "all.parquet", all=True)
got = pq.read_table("all.parquet")
with open("all.csv", newline="") as f:
    rows = list(csv.DictReader(f))
assert n == len(rows) == got.num_rows > 20 and got.column_names == list(rows[0]), (n, got.column_names)
kinds = {"rank": pa.int64(), "title": pa.string(), "mw": pa.float64(), "hbd": pa.int64(), "logS": pa.float64(), "logS_interval90": pa.float64(),
         "logS_unit": pa.string(), "logS_domain": pa.string(), "charge": pa.int64(), "objective": pa.float64(), "energy": pa.float64()}
for name, kind in kinds.items():
    assert got.schema.field(name).type == kind, (name, got.schema.field(name))
for name in got.column_names:
    kind = {pa.int64(): int, pa.float64(): float, pa.string(): str}[got.schema.field(name).type]
    assert got[name].to_pylist() == [kind(r[name]) if r[name] else None for r in rows], name
assert got["logS_interval90"].null_count > 0 and got["logS"].null_count < n
told = lambda name: got.schema.field(name).metadata
assert told("mw")[b"unit"] == b"u" and told("logS")[b"unit"] == told("logS_interval90")[b"unit"] == b"log10(mol/L)" and told("smiles")[b"description"], told("mw")
assert b"unit" not in (told("logS_unit") or {}) and b"unit" not in (told("logS_similarity") or {})
assert molsieve.parquet.write("run", "top.parquet") == pq.read_table("top.parquet").num_rows == 5
assert molsieve.parquet.write("run", "none.parquet", all=True, condition="mw < 1") == 0 and pq.read_schema("none.parquet").equals(got.schema)
db = sqlite3.connect("run/results.db")
for table, blob in (("molecule", None), ("fingerprint", "bits"), ("prediction", None), ("score", None), ("failure", None)):
    molsieve.parquet.write("run", "t.parquet", table=table)
    stored = db.execute("SELECT * FROM " + table).fetchall()
    t = pq.read_table("t.parquet")
    assert [tuple(r.values()) for r in t.to_pylist()] == stored and stored, table
    assert blob is None or t.schema.field(blob).type == pa.binary()
for call, error, said in ((lambda: molsieve.parquet.write("run", "x.parquet", table="hits"), molsieve.ConfigurationError, "no such table"),
                          (lambda: molsieve.parquet.write("run", "x.parquet", table="v_hits"), molsieve.ConfigurationError, "a view"),
                          (lambda: molsieve.parquet.write("nowhere", "x.parquet"), molsieve.SystemResourceError, "nowhere"),
                          (lambda: molsieve.parquet.write("run", "x.parquet", condition="nothing < 1"), molsieve.ConfigurationError, "nothing")):
    try:
        call()
        raise SystemExit("not refused: " + said)
    except error as e:
        assert said in str(e), e
run = lambda *a: subprocess.run([sys.executable, "-m", "molsieve.parquet", *a], capture_output=True, text=True)
done = run("run", "-o", "c.parquet", "--where", "mw < 200", "--all")
assert done.returncode == 0 and "rows: c.parquet" in done.stdout and pq.read_table("c.parquet").num_rows < n, done
assert run("run", "-o", "no/x.parquet").returncode == 6 and run("nowhere", "-o", "x.parquet").returncode == 6
assert run("run", "-o", "x.parquet", "--table", "hit", "--all").returncode == 2
""".replace("import csv,", "import csv, os,").replace('with open("all.csv"', 'subprocess.run([os.environ["MOLSIEVE"], "export", "csv", "--all", "-o", "all.csv", "run"], check=True)\nwith open("all.csv"'), p)
        assert not [x for x in os.listdir(p.dir) if x.startswith("x.") or x.endswith(".part")], os.listdir(p.dir)
        # A label and a prediction of one name in two units, and a name with a comma: each column has the unit of its own numbers.
        p.put("gap.csv", "smiles,name,gap\nCCO,a,0.25\nCCCO,b,0.5\n")
        for name in ("gap", "gap, late"):
            p.workflow([p.path("gap.csv")], "  read: {}\n  prepare: {conformers: {source: none}, properties: {gap: {unit: Eh}}}\n"
                       "  external: {command: [sh, -c, \"printf 'n\\\\n7'\", '{input}'], input: smiles, output: csv, value: n, property: \"%s\", unit: eV, better: high}\n" % name,
                       name="gap.yaml", workdir=name[:4])
            p.run("run", "gap.yaml", "-q")
        python("""
import molsieve.parquet, pyarrow.parquet as pq
def units(run):
    molsieve.parquet.write(run, "gap.parquet", all=True)
    schema = pq.read_schema("gap.parquet")
    return {f.name: f.metadata[b"unit"].decode() for f in schema if f.name[:3] == "gap" and b"unit" in (f.metadata or {})}
assert units("gap") == {"gap_measured": "Eh", "gap_predicted": "eV"}, units("gap")
assert units("gap,") == {"gap_measured": "Eh", "gap, late": "eV"}, units("gap,")
""", p)


def parquet_tells_columns_of_one_name_apart():
    """A property may be called as a column of another one: a number as the domain of logS, which is a text, or as a descriptor."""
    with Project() as p:
        names = ["logS_domain", "logS_unit", "logS", "mw", "logS_interval90_unit", "a b_unit"]
        p.put("odd.csv", "smiles,name,%s\n" % ",".join(names) + "".join("%s,m%d%s\n" % (x, k, ",%d.5" % k * len(names)) for k, x in enumerate(("CCO", "CCCO", "CCN"))))
        for run in ("logS_domain", "logS_reasons_domain", "mw"):
            stages = "  read: {}\n  prepare: {properties: {%s}}\n  graph: {edges: bonds}\n  basis: {}\n  score: {models: [esol]}\n" % ", ".join(
                "%s: {unit: %s}" % (x, "eV" if x == "logS_unit" else '""') for x in names)
            stages += "  external: {command: [sh, -c, \"printf 'n\\\\n7'\", '{input}'], input: smiles, output: csv, value: n, property: %s, better: high}\n" % run
            p.workflow([p.path("odd.csv")], stages, name=run + ".yaml", workdir=run,
                       extra="models: {esol: {path: %s}}\n" % os.path.join(SOURCE, "workflows/models/esol.safetensors"))
            p.run("run", run + ".yaml", "-q")
            python("""
import csv, molsieve, molsieve.parquet, pyarrow as pa, pyarrow.parquet as pq
run = %r
rows = list(csv.DictReader(molsieve.command("export", "csv", "--all", run).splitlines()))
molsieve.parquet.write(run, run + ".parquet", all=True)
got = pq.read_table(run + ".parquet")
assert got.column_names == list(rows[0]), got.column_names
for name in got.column_names:
    field, texts = got.schema.field(name), [r[name] for r in rows]
    assert field.type != pa.string() or not any(x.replace(".", "").isdigit() for x in texts), (name, texts)
    kind = {pa.int64(): int, pa.float64(): float, pa.string(): str}[field.type]
    assert got[name].to_pylist() == [kind(x) if x else None for x in texts], name
unit = lambda name: (got.schema.field(name).metadata or {}).get(b"unit")
assert unit("logS") == unit("logS_measured") == b"log10(mol/L)" and unit("logS_unit_measured") == b"eV" and unit("logS_unit") is unit("logS_domain") is None
""" % run, p)


INTERRUPTED = """
import molsieve
print("begun", flush=True)
try:
    molsieve.run("w.yaml", jobs=2)
    print("not interrupted")
except KeyboardInterrupt as e:
    print(type(e).__name__, e.status, molsieve.results("w.yaml").status()["run"]["state"])
found = molsieve.run("w.yaml", progress=False)
print(found.status()["run"]["state"], len(found.hits))
"""


def has_molecules(project):
    try:
        return project.one("SELECT count(*) FROM molecule") > 0
    except sqlite3.OperationalError:  # no file, no table yet
        return False


def an_interrupt_stops_in_order_and_the_call_goes_on():
    """A notebook sends the signal to the whole process group: the program must get it once, from Python."""
    with Project() as p:
        p.put("lib.smi", lines_of(data("library.smi"), 400))
        build = "  read: {unit: 10}\n  prepare: {}\n  rank: {objectives: [{property: mw, goal: minimise}], top: 30}\n"
        p.workflow([p.path("lib.smi")], build)
        p.workflow([p.path("lib.smi")], build, name="other.yaml", workdir="other")
        p.run("run", "other.yaml", "-q")
        env = dict(os.environ, PYTHONPATH=os.path.join(SOURCE, "python"), MOLSIEVE=PROGRAM, PYTHONDONTWRITEBYTECODE="1")
        child = subprocess.Popen([environment(), "-c", INTERRUPTED], cwd=p.dir, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 start_new_session=True)
        end = time.monotonic() + 120
        while not has_molecules(p):
            assert time.monotonic() < end and child.poll() is None
            time.sleep(0.02)
        with open("/proc/%d/task/%d/children" % (child.pid, child.pid)) as f:
            program = int(f.read())
        assert os.getsid(program) == program  # the signal to the group does not reach it
        os.killpg(child.pid, signal.SIGINT)
        out, err = child.communicate(timeout=240)
        assert out.splitlines() == ["begun", "Interrupted 75 stopped", "done 30"], (out, err[-2000:])
        assert p.run("db", "digest", "run")[1].split()[0] == p.run("db", "digest", "other")[1].split()[0]


def broken(folder, name, old, new):
    """A copy of both programs in which some bytes of one are others."""
    for one in ("molsieve", "molsieve-chem"):
        os.makedirs(folder, exist_ok=True)
        shutil.copy(os.path.join(BUILD, "bin", one), folder)
    path = os.path.join(folder, name)
    content = open(path, "rb").read()
    assert old in content, (name, old)
    with open(path, "wb") as f:
        f.write(content.replace(old, new))
    return os.path.join(folder, "molsieve")


def a_program_that_cannot_run_here_is_told():
    with Project() as p:
        elf = open(PROGRAM, "rb").read(20)
        libc = max(set(re.findall(rb"GLIBC_2\.\d\d\0", open(PROGRAM, "rb").read())))
        os.makedirs(p.path("alone"))
        shutil.copy(PROGRAM, p.path("alone"))
        os.makedirs(p.path("old"))
        for one in ("molsieve", "molsieve-chem"):
            with open(p.path("old", one), "w") as f:
                f.write("#!/bin/sh\necho molsieve 0.0.9\n")
            os.chmod(p.path("old", one), 0o755)
        cases = (
            (p.path("none/molsieve"), r"none/molsieve is not there; the variable MOLSIEVE"),
            (p.path("alone/molsieve"), r"alone/molsieve-chem is not there"),
            (p.path("old/molsieve"), r"has version 0\.0\.9, this package %s; install" % re.escape(p.run("--version")[1].split()[1])),
            (broken(p.path("a"), "molsieve", b"libjansson.so.4", b"libjansson.so.9"), r"needs the library libjansson\.so\.9; install the package that has it"),
            (broken(p.path("b"), "molsieve-chem", b"libopenbabel.so.7", b"../openbabel.so.7"), r"molsieve-chem needs the library \.\./openbabel\.so\.7"),
            (broken(p.path("c"), "molsieve", libc, libc[:6] + b"9" + libc[7:]), r"was built for a newer system: it needs GLIBC_9\.\d\d, and this system has glibc"),
            (broken(p.path("d"), "molsieve", elf, elf[:18] + b"\xf7\0"), r"was built for another processor, and this machine is"),
            (broken(p.path("e"), "molsieve", b"/ld-linux", b"/ld-nowhe"), r"was built for another C library"),
        )
        out = python("""
import molsieve, os
for os.environ["MOLSIEVE"] in %r:
    try:
        molsieve.command("--version")
        print("nothing")
    except molsieve.ProgramError as e:
        print(e.text, e.status)
""" % [program for program, _ in cases], p).splitlines()
        assert len(out) == len(cases), out
        for line, (_, want) in zip(out, cases):
            assert re.search(want, line) and line.endswith(" None"), (want, line)
        # The command says the same.
        status, out, err = python("import molsieve.program; molsieve.program.main()", p, program=cases[0][0], expect=None)
        assert (status, out) == (127, "") and err.startswith("molsieve: ") and "is not there" in err, err
        # No pandas, and the names of the packages with the libraries are right.
        bare = "import sys; sys.modules['pandas'] = None\nimport molsieve\ntry: molsieve.predict('esol', ['C'])\nexcept ImportError as e: print(e)"
        assert "pip install pandas" in python(bare, p)
        for package in set(re.findall(r'"(lib[\w-]+)"', re.sub(r'"[^"]*\.so[^"]*":', "", open(os.path.join(SOURCE, "python/molsieve/program.py")).read().split("_PACKAGES = {")[1].split("}")[0]))):
            if shutil.which("apt-cache"):
                assert subprocess.run(["apt-cache", "show", package], capture_output=True).returncode == 0, package


if __name__ == "__main__":
    sieve.main([predictions_are_rows_with_the_index_of_the_input, what_is_passed_arrives_as_it_is, errors_are_exceptions_with_text_and_status,
                models_get_the_columns_that_they_read, runs_fits_and_searches_are_those_of_the_program, a_shard_returns_its_own_results, parquet_keeps_types_units_and_nulls,
                parquet_tells_columns_of_one_name_apart, an_interrupt_stops_in_order_and_the_call_goes_on,
                a_program_that_cannot_run_here_is_told])
