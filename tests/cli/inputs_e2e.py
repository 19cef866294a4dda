#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Columns of the user's table and descriptors as inputs of models: learned, scored, predicted, and told where they are not there."""
import csv
import ctypes
import io
import json
import math
import os
import random
import re
import signal
import statistics
import subprocess
import time

import sieve
from sieve import Project, main, same
from family_e2e import ESOL, header

READ = "  read: {unit: 40}\n  prepare: {conformers: {source: %s}, labels: [y]%s}\n  graph: {edges: %s}\n"
TRAIN = """  split: {fractions: {train: 0.7, valid: 0.1, test: 0.1, calibration: 0.1}}
  train:
    family: [%s]
    targets: [{name: y, better: high}]
    inputs: {%s}
    model: {layers: 1, degrees: 2, channels: 4, heads: 2, channels_div: 2, pooling: sum}
    epochs: 3
  evaluate: {on: [train, test]}
"""
SCREEN = READ.replace("labels: [y]", "labels: none") + "  score: {models: [m]}\n"
MODEL = "models/e2e.safetensors"
TEMPERATURES = [5, 15, 25, 37.5, 60]
SCORED = "SELECT record_id, mean, interval90, domain, reasons FROM record LEFT JOIN score USING(mol_id) ORDER BY 1"


def molecules(n, simple=False):
    with open(ESOL) as f:
        rows = [r for r in csv.DictReader(f) if re.fullmatch("[CNOcno1-4=()l]+", r["smiles"]) and (not simple or len(r["smiles"]) < 14)]
    random.Random(5).shuffle(rows)
    return rows[:n]


def measured(p, n, each=3, name="in.csv", simple=False):
    """Each molecule at several temperatures; the value grows with temperature and falls with pH."""
    draw = random.Random(3)
    lines = ["smiles,name,temperature,pH,y"]
    for k, r in enumerate(molecules(n, simple)):
        for t in draw.sample(TEMPERATURES, each):
            ph = round(draw.uniform(4, 9), 1)
            lines.append("%s,m%d,%s,%s,%.3f" % (r["smiles"], k, t, ph, float(r["logS"]) + 0.06 * t - 0.1 * ph))
    p.put(name, "\n".join(lines) + "\n")


def library(p, name="lib.csv", simple=False):
    """Good records, then seven whose columns are wrong and one far from the training."""
    lines = ["%s,s%d_%d,%d,7" % (r["smiles"], k, t, t) for k, r in enumerate(molecules(260, simple)[-12:]) for t in (10, 50)]
    odd = ["CCO,%s,%s,7" % (k, t) for k, t in enumerate(("", "warm", "nan", "inf", "1e300", ">10", "25 C"))]
    p.put(name, "\n".join(["smiles,name,temperature,pH"] + lines + odd + ["CCO,hot,500,7"]) + "\n")
    return len(lines), len(odd)


def train(p, family="trees, gp", inputs="columns: [temperature, pH]", name="w.yaml", workdir="run", source="none", table="in.csv", more=""):
    stages = READ % (source, more, "topology" if source == "none" else "bonds") + TRAIN % (family, inputs)
    p.workflow(["{path: %s}" % table], stages, name=name, workdir=workdir)
    return name


def screen(p, name="s.yaml", workdir="screen", source="none", table="lib.csv", model="run/" + MODEL):
    p.workflow([table], SCREEN % (source, "", "topology" if source == "none" else "bonds"), name=name, workdir=workdir,
               extra="models: {m: {path: %s}}\nlimits: {failures: {max_fraction: 1}}\n" % model)
    return name


def error(p, part="test", model="e2e", workdir="run"):
    return p.one("SELECT value FROM evaluation JOIN model m USING(model_id) WHERE part=? AND metric='mae' AND m.name=?", part, model,
                 workdir=workdir)


def inputs_of(p, workdir="run"):
    return json.loads(header(p.path(workdir, MODEL))["__metadata__"]["inputs"])


LIBRARY = os.path.join(os.path.dirname(sieve.PROGRAM), "libmolsieve_predict.so")


class Host:
    """A model opened by the C library (docs/C-LIBRARY.md); each call returns its code, and `said` is its text."""

    def __init__(self, p):
        self.c, self.model, self.error = ctypes.CDLL(LIBRARY), ctypes.c_void_p(), ctypes.create_string_buffer(508)
        self.c.molsieve_column_name.restype = ctypes.c_char_p
        assert self.c.molsieve_open(ctypes.byref(self.model), p.path("run/" + MODEL).encode(), self.error) == 0, self.said()

    def said(self):
        return self.error.raw[4:].split(b"\0")[0].decode()

    def set(self, name, value):
        return self.c.molsieve_set_column(self.model, name.encode(), ctypes.c_double(value), self.error)

    def columns(self):
        n = self.c.molsieve_n_columns(self.model)
        return [self.c.molsieve_column_name(self.model, ctypes.c_size_t(k)).decode() for k in range(n + 1)]

    def predict(self, smiles):
        """Its code, and the first three numbers of the first property of each molecule."""
        text, answers, got = (ctypes.c_char_p * len(smiles))(*(s.encode() for s in smiles)), ctypes.c_void_p(), []
        code = self.c.molsieve_predict_smiles(self.model, text, ctypes.c_size_t(len(smiles)), ctypes.byref(answers), self.error)
        for i in range(len(smiles) if code == 0 else 0):
            three = (ctypes.c_double * 3)()
            assert self.c.molsieve_answer(answers, ctypes.c_size_t(i), ctypes.c_size_t(0), three, ctypes.c_size_t(24)) == 0
            got.append(["" if math.isnan(x) else x for x in three])
        self.c.molsieve_answers_free(answers)
        return code, got

    def close(self):
        self.c.molsieve_close(self.model)


def hosts_set_columns(p, temperatures=(10, 37.3)):
    """The C library refuses to guess a column, and then has the numbers of `predict --set`, bit for bit."""
    if not os.path.exists(LIBRARY):
        return
    host, smiles = Host(p), [r["smiles"] for r in molecules(40, simple=True)]
    p.put("host.smi", "".join(s + "\n" for s in smiles))
    assert host.columns() == ["pH", "temperature", ""] and host.set("pH", 7.1) == 0
    assert host.predict(smiles)[0] == 1 and "reads the column temperature: give its number with molsieve_set_column" in host.said(), host.said()
    assert host.set("Temperature", 25) == 1 and "reads no column Temperature" in host.said(), host.said()
    assert [host.set("temperature", x) for x in (math.nan, math.inf, 1e300)] == [1, 1, 1] and "is not a finite number" in host.said(), host.said()
    assert host.predict(smiles)[0] == 1  # none of these was kept
    for t in temperatures:
        assert host.set("temperature", t) == 0
        code, got = host.predict(smiles)
        out = p.run("predict", "run/" + MODEL, "host.smi", "--set", "pH=7.1,temperature=%s" % t, expect=None)[1]
        rows = csv.DictReader(io.StringIO(out))
        want = [[float(r[c]) if r.get(c) else "" for c in ("y", "y_interval90", "y_similarity")] for r in rows]
        assert code == 0 and got == want and sum(w[0] != "" for w in want) > 30, (got, want)
    host.close()


def compared(p, rows, workdir="screen"):
    """The answers of predict beside the scores of a workflow: equal to the last bit; returns how many."""
    stored = p.rows(SCORED, workdir=workdir)
    assert len(stored) == len(rows)
    for (_, *score), row in zip(stored, rows):
        got = [float(row[c]) if row.get(c) else None for c in ("y", "y_interval90")] + [row["y_domain"] or None, row["y_reasons"] or None]
        assert got == score, (row, score)
    return sum(s[1] is not None for s in stored)


def predicted(p, *args, expect=0, model="run/" + MODEL):
    out, said = p.run("predict", model, *args, "--seed", "11", expect=expect)[1:]
    return list(csv.DictReader(io.StringIO(out))), said


def a_molecule_at_several_temperatures_is_several_observations():
    with Project() as p:
        measured(p, 100)
        p.run("run", train(p), "-q", "-j", "2")
        rows = p.rows("SELECT inchikey, part, max(value) FILTER (WHERE name='temperature') AS t, max(value) FILTER (WHERE name='pH') "
                      "FROM molecule JOIN split USING(mol_id) JOIN label USING(mol_id) JOIN property USING(property_id) GROUP BY mol_id")
        assert len(rows) == 300 == p.one("SELECT count(*) FROM record WHERE status='ok'")
        parts = {}
        for key, part, _, _ in rows:
            parts.setdefault(key[:14], set()).add(part)
        assert all(len(of) == 1 for of in parts.values()), "a molecule is in two parts"
        for k, (name, number) in enumerate((("temperature", 2), ("pH", 3))):
            column, values = inputs_of(p)["columns"][k], sorted(r[number] for r in rows if r[1] == "train")
            assert column["name"] == name and math.isclose(column["mean"], statistics.fmean(values), rel_tol=1e-6)
            assert math.isclose(column["std"], statistics.pstdev(values), rel_tol=1e-6)
            assert math.isclose(column["low"], values[1], rel_tol=1e-6) and math.isclose(column["high"], values[-2], rel_tol=1e-6)
        # Without them, a molecule has one value, the mean of its observations.
        p.run("run", train(p, inputs="columns: []", name="without.yaml", workdir="without"), "-q")
        assert p.one("SELECT count(*) FROM molecule", workdir="without") == 100
        assert "columns" not in inputs_of(p, "without") and header(p.path("without", MODEL))["__metadata__"]["format_version"] == "4"
        assert header(p.path("run", MODEL))["__metadata__"]["format_version"] == "5"
        info = p.run("model", "info", "run/" + MODEL)[1]
        assert re.search(r"  columns +temperature, 5 to 60, mean \d", info) and re.search(r"\n +pH, 4(\.\d)? to [89]", info), info
        # Every component has learned what temperature does: at another one the table is wrong by 0.06 a degree.
        for kind in ("trees", "gp", "forest"):
            p.run("run", train(p, family=kind, name=kind + ".yaml", workdir=kind), "-q")
            got = predicted(p, "in.csv", "--set", "temperature=60", model=kind + "/" + MODEL)[0], predicted(
                p, "in.csv", "--set", "temperature=5", model=kind + "/" + MODEL)[0]
            by = statistics.fmean(float(a["y"]) - float(b["y"]) for a, b in zip(*got))
            assert 1.5 < by < 4, (kind, by)  # 3.3 if it had learned all of it


def workers_and_kills_change_nothing():
    rng = random.Random(4)
    with Project() as p:
        measured(p, 60)
        p.run("run", train(p), "-q", "-j", "1")
        p.run("run", train(p, name="three.yaml", workdir="three"), "-q", "-j", "3")
        train(p, name="stops.yaml", workdir="stops")
        for _ in range(6):
            child = subprocess.Popen(p.command("run", "stops.yaml", "-q"), cwd=p.dir, stderr=subprocess.DEVNULL)
            time.sleep(rng.uniform(0.02, 0.5))
            child.send_signal(signal.SIGKILL)
            child.wait()
        p.run("run", "stops.yaml", "-q")
        want = p.run("db", "digest", "--results-only", "run")[1]
        assert want == p.run("db", "digest", "--results-only", "three")[1] == p.run("db", "digest", "--results-only", "stops")[1]
        # Other columns: what was prepared without them is prepared again, and the score of another model, too.
        p.run("run", train(p, inputs="columns: [pH]", name="stops.yaml", workdir="stops"), "-q")
        assert [c["name"] for c in inputs_of(p, "stops")["columns"]] == ["pH"]
        assert p.one("SELECT count(*) FROM molecule", workdir="stops") < 180
        # The linear fit on descriptors, which a model is compared with, has the columns of the model, too.
        fit = [p.one("SELECT value FROM evaluation WHERE part='train' AND metric='descriptors.rmse'", workdir=w) for w in ("run", "stops")]
        assert fit[0] < 0.8 * fit[1], fit


def scores_equal_predictions_and_a_gap_fails():
    with Project() as p:
        measured(p, 100)
        good, odd = library(p)
        p.run("run", train(p), "-q")
        p.run("run", screen(p), "-q", "-j", "2")
        rows, said = predicted(p, "lib.csv", expect=3)
        assert compared(p, rows) == good + 1 and "%d of %d records have no prediction" % (odd, good + odd + 1) in said, said
        assert compared(p, predicted(p, "lib.csv", "-j", "3", expect=3)[0]) == good + 1
        why = p.rows("SELECT stage, code, message FROM failure", workdir="screen")
        assert why == [("prepare", "record", "column temperature: no number in this record")] * odd, why
        assert [r["problem"] for r in rows[good:-1]] == [why[0][2]] * odd
        assert rows[-1]["y_domain"] == "outside" and "column temperature 500 > 60" in rows[-1]["y_reasons"] and not rows[-1]["y_interval90"]
        for a, b in zip(rows[:good:2], rows[1:good:2]):
            assert a["smiles"] == b["smiles"] and float(b["y"]) - float(a["y"]) > 1, (a, b)
        # One value for all records, of a pipe of SMILES, too.
        out = p.run("predict", "run/" + MODEL, "-", "--set", "pH=7,temperature=50", "--seed", "11", input=rows[1]["smiles"].encode() + b"\n")[1]
        assert next(csv.DictReader(io.StringIO(out)))["y"] == rows[1]["y"]
        hosts_set_columns(p)
        # What moved a score.
        first = p.one("SELECT min(mol_id) FROM score", workdir="screen")
        said = p.run("explain", str(first), "screen")[1]
        assert len(re.findall(r"\n    [-+][\d.]+  temperature 10, a column of the table\n", said)) == 2, said


def what_lacks_a_column_is_told_before_any_work():
    with Project() as p:
        measured(p, 40)
        p.run("run", train(p), "-q")
        p.put("lib.csv", "smiles,Temperature,acid\nCCO,25,7\n")
        p.put("lib.smi", "CCO ethanol\n")
        for table, says in (("lib.csv", "lib.csv: no column or data field temperature, which a model reads, did you mean 'Temperature'?"),
                            ("lib.csv", "lib.csv: no column or data field pH"), ("lib.smi", "its records have none: give a CSV or SDF")):
            for command in ("check", "run"):
                said = p.run(command, screen(p, table=table), expect=2)[2]
                assert says in said and said.startswith("s.yaml:"), said
        assert not os.path.exists(p.path("screen/results.db"))
        # A column that is stated in another unit; one without a unit is taken as it is.
        p.put("all.csv", "smiles,temperature,pH\nCCO,25,7\n")
        p.run("run", train(p, name="unit.yaml", workdir="unit"), "-q", "stages.prepare.properties={temperature: {unit: C}}")
        for unit, status in (("K", 2), ("C", 0), ("''", 0)):
            said = p.run("check", screen(p, table="all.csv", model="unit/" + MODEL), "stages.prepare.properties={temperature: {unit: %s}}" % unit, expect=status)[2]
            assert ("the column temperature is in K here, and model m learned it in C" in said) == (status == 2), (unit, said)
        p.put("all.csv", "smiles,temperature,temperature_unit,pH\nCCO,25,K,7\n")
        for command in ("check", "run"):
            said = p.run(command, screen(p, table="all.csv", model="unit/" + MODEL), expect=2)[2]
            assert said.count("all.csv:2: temperature_unit is 'K', and temperature is said to be in C") == 1, said
        p.put("all.csv", "smiles,temperature,temperature_unit,pH\nCCO,25,C,7\n")
        p.run("check", screen(p, table="all.csv", model="unit/" + MODEL))
        p.put("k.csv", "smiles,temperature,temperature_unit,pH\nCCO,20,C,7\nCCO,293,K,7\nCCO,20,,7\n")
        rows, _ = predicted(p, "k.csv", model="unit/" + MODEL, expect=3)
        assert [r["problem"] for r in rows] == ["", "column temperature: temperature_unit is 'K', and the model reads it in C", ""], rows
        assert rows[0]["y"] == rows[2]["y"] != "" and rows[1]["y"] == "", rows
        assert len({r["y"] for r in predicted(p, "k.csv", "--set", "temperature=20", model="unit/" + MODEL)[0]}) == 1
        set_all = "--set pH=NUMBER,temperature=NUMBER"
        for args, says in ((["lib.csv"], "lib.csv has no columns pH, temperature"), (["lib.csv"], set_all), (["lib.smi"], "SMILES do not have"),
                           (["-"], set_all), (["-", "--set", "pH=7"], "--set temperature=NUMBER"),
                           (["lib.csv", "--set", "ph=7"], "it reads pH, temperature"), (["lib.csv", "--set", "pH=x"], "'x' is no number"),
                           (["lib.csv", "--set", "pH=1e300"], "is no number"), (["lib.csv", "--set", "pH"], "NAME=NUMBER")):
            out, said = p.run("predict", "run/" + MODEL, *args, expect=2, input=b"CCO\n")[1:]
            assert says in said and out == "", (args, said)
        for columns, says in (("[temperature, y]", "y is what the model learns"), ("[pH, pH]", "pH is listed twice"), ("[ph]", "did you mean 'pH'"),
                              ("[" + ", ".join("c%d" % k for k in range(17)) + "]", "17 columns, at most 16")):
            assert says in p.run("check", train(p, inputs="columns: " + columns, name="bad.yaml"), expect=2)[2], columns
        said = p.run("check", train(p, inputs="descriptors: true", name="bad.yaml"), expect=2)[2]
        assert "the other families always read descriptors" in said, said
        p.put("same.csv", re.sub(r",[\d.]+,([\d.]+),(-?[\d.]+)\n", r",25,\1,\2\n", open(p.path("in.csv")).read()))
        said = p.run("run", train(p, name="same.yaml", workdir="same", table="same.csv"), expect=2)[2]
        assert "the column temperature is the same for all" in said, said


def limits_do_not_widen_the_domain_of_a_column():
    with Project() as p:
        measured(p, 60)
        with open(p.path("in.csv"), "a") as f:
            f.writelines("%s,far,500,7,>3\n" % r["smiles"] for r in molecules(60))
        p.run("run", train(p), "-q", "stages.read.censored=bound")
        assert p.one("SELECT count(*) FROM split WHERE part='train'") > 150 and inputs_of(p)["columns"][0]["high"] <= 60


def fit_takes_columns():
    with Project() as p:
        measured(p, 60)
        p.run("fit", "in.csv", "--target", "y", "--inputs", "temperature,pH", "-q")
        with open(p.path("y.safetensors"), "rb") as f:
            meta = json.loads(f.read(int.from_bytes(f.read(8), "little")))["__metadata__"]
        assert [c["name"] for c in json.loads(meta["inputs"])["columns"]] == ["temperature", "pH"]
        said = p.run("fit", "in.csv", "--target", "y", "-o", "z", "--inputs", "temp", "-q", expect=2)[2]
        assert "no column or data field temp, which a model reads" in said, said
        # Models may read 16 columns each, and 64 together.
        head = ["c%d" % k for k in range(65)]
        p.put("wide.csv", "smiles,y,%s\n" % ",".join(head) + "".join("%s,%d,%s\n" % (r["smiles"], k, ",".join(str((k + c) % 7) for c in range(65)))
                                                                   for k, r in enumerate(molecules(30))))
        for k in range(5):
            p.run("fit", "wide.csv", "--target", "y", "-o", "w%d" % k, "--inputs", ",".join(head[16 * k:16 * k + 16]), "-q", "--family", "gp", "--split", "random")
        models = ["w%d.safetensors" % k for k in range(5)]
        assert p.run("predict", ",".join(models[:4]), "wide.csv", "-q")[1].count("\n") == 31
        said = p.run("predict", ",".join(models), "wide.csv", "-q", expect=2)[2]
        assert "models: they read more than 64 columns" in said, said


def units_and_limits_of_columns_are_heard():
    """A column has a unit of its own: `fit` keeps it, rows of another one fail, and the unit of the label is not taken for it."""
    with Project() as p:
        measured(p, 40)
        p.run("fit", "in.csv", "--target", "y", "-o", "plain", "--inputs", "temperature,pH", "-q", "--family", "gp", "--split", "random")
        lines = open(p.path("in.csv")).read().split("\n")
        def table(name, odd=""):
            """The unit of row 9 is `odd`."""
            rows = [l + ",C,mmol/L" for l in lines[1:-1]]
            rows[8] = rows[8].replace(",C,", ",%s," % odd) if odd else rows[8]
            p.put(name, "\n".join([lines[0] + ",temperature units,Units"] + rows) + "\n")
        table("unit.csv")
        said = p.run("fit", "unit.csv", "--target", "y", "-o", "unit", "--inputs", "temperature,pH", "--family", "gp", "--split", "random")[1]
        assert "temperature: in C, by column temperature units\n" in said and "pH: in" not in said and "unit: mmol/L, by column Units" in said, said
        columns = json.loads(header(p.path("unit.safetensors"))["__metadata__"]["inputs"])["columns"]
        assert [c["unit"] for c in columns] == ["C", ""], columns
        table("odd.csv", "K")
        said = p.run("fit", "odd.csv", "--target", "y", "-o", "odd", "--inputs", "temperature,pH", expect=2)[2]
        assert "odd.csv:10: temperature units is 'K', and 'C' in line 2: numbers of two units are not one column of temperature" in said, said
        for inputs, says in (("pH,temperature,pH", "--inputs: pH is there twice"), ("pH,", "write names of columns with commas"), (",".join("c%d" % k for k in range(17)), "--inputs: a model reads at most 16 columns")):
            assert says in p.run("fit", "in.csv", "--target", "y", "--inputs", inputs, expect=2)[2], inputs
        head = "smiles,temperature,temperature units,temperature qualifier,pH,Units,Y\n"
        p.put("k.csv", head + "CCO,20,C,,7,nM,1\nCCO,293,K,,7,nM,2\nCCO,20,,>,7,nM,3\nCCO,20,,=,7,nM,4\n")
        for model, why in (("unit", "the model reads it in C"), ("plain", "the first record has C")):
            rows = predicted(p, "k.csv", "--columns", "y,input_Y,problem", model=model + ".safetensors", expect=3)[0]
            assert [r["problem"] for r in rows] == ["", "column temperature: temperature units is 'K', and " + why,
                                                   "column temperature: no number in this record", ""], rows
            assert rows[0]["y"] == rows[3]["y"] != "" and [r["input_Y"] for r in rows] == list("1234"), rows
        for args, says in ((["--columns", "Y,y"], "--columns: Y: did you mean y, which is predicted? For a column of the input ask input_Y"),
                           (["--set", "pH=7,temperature=1,pH=8"], "--set: pH is there twice")):
            assert says in p.run("predict", "plain.safetensors", "k.csv", *args, expect=2)[2], args
        # A prediction for another temperature does not stand beside that of the table.
        both = ("--set", "temperature=40")
        for name in ("temperature", "Temperature"):
            said = p.run("predict", "plain.safetensors", "k.csv", *both, "-c", name + ",y", expect=2)[2]
            assert "by --set the model reads temperature=40 for all records; leave %s out, or ask input_%s" % (name, name) in said, said
        rows = predicted(p, "k.csv", *both, "-c", "input_temperature,pH,y", model="plain.safetensors")[0]
        assert [r["input_temperature"] for r in rows] == ["20", "293", "20", "20"] and len({r["y"] for r in rows}) == 1 and rows[0]["pH"] == "7", rows
        assert predicted(p, "k.csv", "-c", "temperature,y,problem", model="plain.safetensors", expect=3)[0][0]["temperature"] == "20"
        # The unit of a label that the workflow keeps is none of the columns', and the columns' own one is looked at.
        models = "models: {m: {path: unit.safetensors}}\n"
        for units, status in (("C", 0), ("K", 2)):
            p.put("s.csv", head + "CCO,20,%s,,7,nM,1\n" % units)
            p.workflow(["s.csv"], SCREEN % ("none", "", "topology"), name="s.yaml", workdir="s", extra=models)
            assert ("temperature units is 'K', and temperature is said to be in C" in p.run("check", "s.yaml", expect=status)[2]) == (status == 2)


def what_is_beside_a_column_may_have_its_name_and_unit():
    """`T (K) unit` and `T (K) relation` belong to `T (K)` as `T unit` and `T relation` do."""
    with Project() as p:
        measured(p, 40)
        lines = open(p.path("in.csv")).read().replace("temperature", "T (K)").split("\n")[:-1]
        p.put("wide.csv", "\n".join([lines[0].replace("T (K)", "温度") + ",温度 unit"] + [l + (",C" if k % 3 == 2 else ",K") for k, l in enumerate(lines[1:])]) + "\n")
        said = p.run("fit", "wide.csv", "--target", "y", "--inputs", "温度", expect=2)[2]
        assert "wide.csv:4: 温度 unit is 'C', and 'K' in line 2: numbers of two units are not one column of 温度" in said, said
        fit = ("--target", "y", "-o", "m", "--inputs", "T (K)", "--family", "gp", "--split", "random")
        p.put("in.csv", "\n".join([lines[0] + ",T (K) unit"] + [l + ",C" if k % 3 == 2 else l + ",K" for k, l in enumerate(lines[1:])]) + "\n")
        said = p.run("fit", "in.csv", *fit, expect=2)[2]
        assert "in.csv:4: T (K) unit is 'C', and 'K' in line 2: numbers of two units are not one column of T (K)" in said, said
        p.put("in.csv", "\n".join(lines) + "\n")
        p.run("fit", "in.csv", "-q", *fit)
        for unit, relation in (("T (K) unit", "T (K) relation"), ("T unit", "T relation")):
            p.put("k.csv", "smiles,T (K),%s,%s\nCCO,20,K,\nCCO,25,C,\nCCO,20,,>\nCCO,20,,=\n" % (unit, relation))
            rows = predicted(p, "k.csv", "--columns", "y,problem", model="m.safetensors", expect=3)[0]
            assert [r["problem"] for r in rows] == ["", "column T (K): %s is 'C', and the model reads it in K" % unit,
                                                   "column T (K): no number in this record", ""], rows
            assert rows[0]["y"] == rows[3]["y"] != "", rows


def shards_merge_into_one_run():
    with Project() as p:
        measured(p, 60)
        lines = open(p.path("in.csv")).read().splitlines(True)
        p.put("in.csv", "".join(lines + lines[5:60] + ["CCO,x,,7,1\n"]))  # repeats in other shards: the same observations
        p.run("run", train(p, more=", dedupe: {by: skeleton}"), "-q")
        assert p.one("SELECT count(*) FROM record WHERE status='duplicate'") == 55
        for k in (2, 0, 1):
            p.run("run", "w.yaml", "-q", "workdir=of3", "--shard", "%d/3" % k)
        p.run("merge", "w.yaml", "workdir=of3")
        p.run("run", "w.yaml", "-q", "workdir=of3")
        for table in ("molecule", "label", "record"):
            same({table: p.rows(sieve.DUMP[table])}, {table: p.rows(sieve.DUMP[table], workdir="of3")}, table)
        assert p.run("db", "digest", "--results-only", "run")[1] == p.run("db", "digest", "--results-only", "of3")[1]


def a_screen_in_shards_and_an_evaluation_equal_one_run():
    with Project() as p:
        measured(p, 60)
        p.run("run", train(p), "-q")
        lines = open(p.path("in.csv")).read().splitlines(True)
        p.put("again.csv", "".join(lines[:1] + lines[90:20:-1]))
        p.workflow(["{path: in.csv}", "{path: again.csv}"], SCREEN % ("none", "", "topology"), name="s.yaml", workdir="screen",
                   extra="models: {m: {path: run/%s}}\n" % MODEL)
        p.run("run", "s.yaml", "-q")
        for k in (1, 2, 0):
            p.run("run", "s.yaml", "-q", "workdir=of3", "--shard", "%d/3" % k)
        p.run("merge", "s.yaml", "workdir=of3")
        p.run("run", "s.yaml", "-q", "workdir=of3")
        assert p.rows(SCORED, workdir="screen") == p.rows(SCORED, workdir="of3")
        assert p.run("db", "digest", "--results-only", "screen")[1] == p.run("db", "digest", "--results-only", "of3")[1]
        p.workflow(["{path: in.csv}"], READ % ("none", "", "topology") + "  evaluate: {on: [train]}\n", name="e.yaml", workdir="known",
                   extra="models: {m: {path: run/%s}}\n" % MODEL)
        p.run("run", "e.yaml", "-q")
        assert error(p, "train", "m", "known") == error(p, "train")


def each_structure_of_a_molecule_has_its_columns_and_descriptors():
    with Project() as p:
        measured(p, 16, each=2, simple=True)
        both = "columns: [temperature, pH], descriptors: true"
        p.run("run", train(p, family="se3", inputs=both, source="generate, count: 3"), "-q", "-j", "2")
        assert p.one("SELECT max(structures) FROM molecule") == 3
        judged = READ % ("generate, count: 3", "", "bonds") + "  evaluate: {models: [m], on: [train]}\n"
        p.workflow(["{path: in.csv}"], judged, name="judge.yaml", workdir="judge", extra="models: {m: {path: run/%s}}\n" % MODEL)
        p.run("run", "judge.yaml", "-q")
        assert error(p, "train") == error(p, "train", "m", "judge")
        p.workflow(["in.csv"], SCREEN % ("generate, count: 3", "", "bonds"), name="s.yaml", workdir="screen", extra="models: {m: {path: run/%s}}\n" % MODEL)
        p.run("run", "s.yaml", "-q")
        assert compared(p, predicted(p, "in.csv")[0]) > 10


def a_network_reads_columns_and_descriptors():
    with Project() as p:
        measured(p, 40, each=2, simple=True)
        library(p, simple=True)
        both = "columns: [temperature, pH], descriptors: true"
        p.run("run", train(p, family="trees, se3", inputs=both, source="generate"), "-q", "-j", "2")
        p.run("run", screen(p, source="generate"), "-q", "-j", "2")
        assert compared(p, predicted(p, "lib.csv", expect=3)[0]) > 10
        hosts_set_columns(p, temperatures=[37.3])
        meta = inputs_of(p)
        assert len(meta["descriptors"]["mean"]) == len(meta["descriptors"]["std"]) > 100
        # What all molecules have alike deviates by nothing, not by what the rounding of its mean leaves.
        alike = [mean for mean, std in zip(meta["descriptors"]["mean"], meta["descriptors"]["std"]) if std == 0]
        assert len(alike) > 20 and any(alike) and not any(0 < std < 1e-6 for std in meta["descriptors"]["std"]), meta["descriptors"]
        # The network alone: a temperature changes it, evaluation of the file gives the numbers of the training, a stop changes nothing.
        p.run("run", train(p, family="se3", inputs=both, name="net.yaml", workdir="net", source="generate"), "-q")
        assert header(p.path("net", MODEL))["__metadata__"].get("family") is None
        hot, cold = (predicted(p, "in.csv", "--set", "temperature=%d" % t, model="net/" + MODEL)[0] for t in (60, 5))
        assert all(a["y"] != b["y"] for a, b in zip(hot, cold))
        train(p, family="se3", inputs=both, name="stops.yaml", workdir="stops", source="generate")
        for wait in (0.3, 0.5, 0.7, 0.9):
            child = subprocess.Popen(p.command("run", "stops.yaml", "-q"), cwd=p.dir, stderr=subprocess.DEVNULL)
            time.sleep(wait)
            child.send_signal(signal.SIGKILL)
            child.wait()
        p.run("run", "stops.yaml", "-q")
        assert p.run("db", "digest", "--results-only", "net")[1] == p.run("db", "digest", "--results-only", "stops")[1]
        # Judged from its file it has the same errors, and another network can begin with its weights.
        judged = READ % ("generate", "", "bonds") + "  evaluate: {models: [m], on: [new]}\n"
        p.workflow(["in.csv"], judged, name="judge.yaml", workdir="judge", extra="models: {m: {path: net/%s}}\n" % MODEL)
        p.run("run", "judge.yaml", "-q")
        assert p.one("SELECT n FROM evaluation WHERE metric='mae' AND part LIKE 'new%'", workdir="judge") > 0
        assert "the network also reads the" in p.run("model", "info", "net/" + MODEL)[1]
        planned = int(re.search(r"about ([\d,]+) parameters", p.run("plan", "net.yaml", "workdir=new")[1]).group(1).replace(",", ""))
        counted = int(re.search(r"(\d+) parameters", p.run("model", "info", "net/" + MODEL)[1]).group(1))
        assert abs(planned - counted) < 0.2 * counted, (planned, counted)


if __name__ == "__main__":
    main([a_molecule_at_several_temperatures_is_several_observations, workers_and_kills_change_nothing,
          scores_equal_predictions_and_a_gap_fails, what_lacks_a_column_is_told_before_any_work,
          shards_merge_into_one_run, limits_do_not_widen_the_domain_of_a_column, fit_takes_columns, units_and_limits_of_columns_are_heard,
          what_is_beside_a_column_may_have_its_name_and_unit,
          a_screen_in_shards_and_an_evaluation_equal_one_run, a_network_reads_columns_and_descriptors,
          each_structure_of_a_molecule_has_its_columns_and_descriptors])
