#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`molsieve next`: what to try next is computed again here, from the tables of a screen."""
import csv
import functools
import io
import math
import os
import re

import sieve
from sieve import Project, data, lines_of
from search_e2e import alike

ESOL = os.path.join(os.environ["MOLSIEVE_SOURCE"], "workflows/data/esol.csv")
SCREEN = """  read: {unit: 25}
  prepare: {conformers: {source: none}, neutralise: true}
  graph: {edges: topology}
  score: {}
"""


def screen(p, shuffled=False):
    """120 molecules, some of which the model learned."""
    if not os.path.exists(p.path("m.safetensors")):
        p.put("table.csv", lines_of(ESOL, 160))
        p.run("fit", "table.csv", "--target", "logS", "--family", "gp", "-o", "m", "-q")
    known = [line.split(b",")[0] + b" known%d\n" % k for k, line in enumerate(lines_of(ESOL, 160).split(b"\n")[5:15])]
    lines = lines_of(data("library.smi"), 110).splitlines(True) + known
    p.put("lib.smi", b"".join(lines[::-1] if shuffled else lines))
    w = p.workflow([p.path("lib.smi")], SCREEN, workdir="back" if shuffled else "run", extra="models: {m: {path: m.safetensors}}\n")
    p.run("run", w, "-q")


def chosen(p, *args, workdir="run"):
    out, said = p.run("next", workdir, "--format", "csv", "--goal", "maximize", *args)[1:]
    return list(csv.DictReader(io.StringIO(out))), said


def candidates(p, low=False):
    """InChIKey -> mean and standard deviation of those the model did not learn from."""
    found = p.rows("SELECT inchikey, mean, uncertainty FROM score JOIN molecule USING(mol_id) JOIN prediction USING(mol_id,property_id) "
                   "WHERE nearest<>inchikey")
    return {key: (-m if low else m, s) for key, m, s in found}


def learned(p):
    return p.one("SELECT count(*) FROM prediction JOIN molecule USING(mol_id) WHERE nearest=inchikey")


def expected_improvement(m, s, best):
    z = (m - best) / s
    return (m - best) * 0.5 * math.erfc(-z / math.sqrt(2)) + s * math.exp(-z * z / 2) / math.sqrt(2 * math.pi)


def each_strategy_takes_the_best_by_its_formula():
    with Project() as p:
        screen(p)
        all_of = candidates(p)
        assert 5 < learned(p) == p.one("SELECT count(*) FROM score") - len(all_of)
        best = max(m for m, _ in ((r[0], 0) for r in p.rows("SELECT mean FROM score")))
        for args, value in ((["--by", "greedy"], lambda m, s: m), (["--by", "ucb", "--beta", "1.5"], lambda m, s: m + 1.5 * s),
                            (["--by", "uncertainty"], lambda m, s: s),
                            (["--by", "expected_improvement"], lambda m, s: expected_improvement(m, s, best)),
                            (["--by", "expected_improvement", "--best", "-1"], lambda m, s: expected_improvement(m, s, -1))):
            want = sorted(((value(m, s), key) for key, (m, s) in all_of.items()), key=lambda x: (-x[0], x[1]))[:15]
            got = [(float(r["acquisition"]), r["inchikey"]) for r in chosen(p, "-n", "15", *args)[0]]
            assert [k for _, k in got] == [k for _, k in want], args
            assert all(math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12) for (a, _), (b, _) in zip(got, want)), args
        # far below the value to beat, where all improvements are 0: by the distance in standard deviations
        for args, low, far in (["--best", "1000"], False, 1000), (["--goal", "minimise", "--best=-1000"], True, 1000):
            of = candidates(p, low)
            got = chosen(p, "-n", "15", "--by", "expected_improvement", *args)[0]
            assert [r["inchikey"] for r in got] == sorted(of, key=lambda k: ((far - of[k][0]) / of[k][1], k))[:15], args
            assert all(float(r["acquisition"]) == 0 for r in got)
        rows, said = chosen(p, "-n", "15", "--by", "greedy", "--goal", "minimise")
        n_outside = sum(r["logS_domain"] != "inside" for r in rows)
        assert n_outside > 0 and "%d of the chosen " % n_outside in said and "--inside leaves such molecules out" in said, said
        why = {word: int(n) for word, n in re.findall(r"[:,] ([a-z ]+) (\d+)", said.partition("it is unknown")[2])}
        reasons = [r["logS_reasons"].split("; ") for r in rows if r["logS_reasons"]]
        assert why and why == {word: sum(any(one.startswith(word + " ") for one in r) for r in reasons) for word in why}, (why, reasons)
        assert all(one.startswith(tuple(why)) for r in reasons for one in r), (why, reasons)
        assert "of the chosen" not in chosen(p, "-n", "15", "--by", "greedy", "--goal", "minimise", "--inside")[1]
        low = candidates(p, low=True)
        assert [r["inchikey"] for r in rows] == sorted(low, key=lambda k: (-low[k][0], k))[:15] and "low is better" in said
        interval = [r for r in chosen(p, "--by", "uncertainty", "--sigma", "interval")[0]]
        assert interval and all(r["logS_domain"] == "inside" and math.isclose(float(r["acquisition"]), float(r["logS_interval90"]) / 1.6448536269514722)
                                for r in interval)


def the_choice_depends_on_the_seed_and_not_on_the_order():
    with Project() as p:
        screen(p)
        screen(p, shuffled=True)
        for by in ("thompson", "random", "ucb"):
            one = [r["inchikey"] for r in chosen(p, "--by", by, "-n", "20")[0]]
            assert one == [r["inchikey"] for r in chosen(p, "--by", by, "-n", "20", workdir="back")[0]], by
            other = [r["inchikey"] for r in chosen(p, "--by", by, "-n", "20", "--seed", "2")[0]]
            assert (one == other) == (by == "ucb"), by


def a_diverse_choice_passes_over_what_is_similar():
    with Project() as p:
        screen(p)
        prints = {k: (b, s) for k, b, s in p.rows("SELECT inchikey, bits, scaffold FROM fingerprint JOIN molecule USING(mol_id)")}
        order = [r["inchikey"] for r in chosen(p, "-n", "1000")[0]]
        want, similar, full = [], 0, 0
        for key in order:
            bits, scaffold = prints[key]
            if len(want) == 30:
                break
            if any(alike(bits, prints[k][0]) > 0.2 for k in want):
                similar += 1
            elif scaffold and sum(prints[k][1] == scaffold for k in want) >= 2:  # without rings there is none
                full += 1
            else:
                want.append(key)
        assert similar > 5 and full > 0 and sum(prints[k][1] == "" for k in want) > 2, (similar, full)
        rows, said = chosen(p, "-n", "30", "--max-similarity", "0.2", "--per-scaffold", "2")
        assert [r["inchikey"] for r in rows] == want
        assert "%d left out: too similar" % similar in said and "%d left out: enough better ones" % full in said, said


def what_is_known_or_on_an_earlier_plate_is_left_out():
    with Project() as p:
        screen(p)
        first, said = chosen(p, "-n", "10", "-o", p.path("plate.csv"))
        assert first == [] and "%d left out: measured, or the model learned from them" % learned(p) in said, said
        with open(p.path("plate.csv")) as f:
            plate = {r["inchikey"] for r in csv.DictReader(f)}
        second, said = chosen(p, "-n", "1000", "-x", p.path("plate.csv"))
        assert len(plate) == 10 and not plate & {r["inchikey"] for r in second} and "10 left out: named" in said
        assert len(second) == p.one("SELECT count(*) FROM score") - 10 - learned(p) and "1000 were asked for" in said
        every = chosen(p, "-n", "1000", "--measured")[0]
        assert len(every) == p.one("SELECT count(*) FROM score")
        inside = chosen(p, "-n", "1000", "--inside", "--where", "mw < 200")[0]
        assert inside and all(r["logS_domain"] == "inside" and float(r["mw"]) < 200 for r in inside)
        p.run("next", "run", "-n", "5", "--goal", "maximize", "-o", p.path("a.sdf"))
        assert open(p.path("a.sdf")).read().count("\n>  <acquisition>\n") == 5
        table = p.run("next", "run", "-n", "5", "--goal", "maximize")[1].splitlines()
        assert len(table) == 7 and table[0].split()[:3] == ["place", "title", "logS"], table


def what_was_learned_is_left_out_among_its_likes():
    """Enantiomers and chains of other lengths have one fingerprint; the nearest of a training molecule is that molecule."""
    chains = ["C" * n + "O" for n in range(1, 30)] + ["C" * n + "N" for n in range(1, 20)] + ["C[C@H](O)C(=O)Nc1ccccc1", "C[C@@H](O)C(=O)Nc1ccccc1"]
    with Project() as p:
        p.put("t.csv", "smiles,y\n" + "".join("%s,%g\n" % (s, len(s) + 0.1 * (k % 3)) for k, s in enumerate(chains)))
        p.run("fit", "t.csv", "-t", "y", "--split", "random", "--family", "gp", "-o", "m", "-q")
        trained = {k for k, part in p.rows("SELECT m.inchikey, s.part FROM split s JOIN molecule m USING(mol_id)", workdir="m.fit/run") if part == "train"}
        p.put("lib.smi", "".join("%s m%d\n" % (s, k) for k, s in enumerate(chains)))
        w = p.workflow([p.path("lib.smi")], SCREEN.replace(", neutralise: true", ""), extra="models: {m: {path: m.safetensors}}\n")
        p.run("run", w, "-q")
        nearest = dict(p.rows("SELECT m.inchikey, r.nearest FROM prediction r JOIN molecule m USING(mol_id)"))
        assert len(trained) > 25 and all(nearest[k] == k for k in trained), (len(trained), [k for k in trained if nearest[k] != k])
        got = {r["inchikey"] for r in chosen(p, "-n", "100")[0]}
        assert got == set(nearest) - trained, (got & trained, set(nearest) - trained - got)


def rows_of_an_earlier_plate_without_a_name_are_told():
    with Project() as p:
        screen(p)
        for end in ("csv", "json", "jsonl", "sdf"):
            name = "plate." + end
            keys = []
            p.run("next", "run", "-n", "4", "--goal", "maximize", "-o", p.path(name))
            text = open(p.path(name)).read()
            keys = list(dict.fromkeys(re.findall(r"\b[A-Z]{14}-[A-Z]{10}-[A-Z]\b", text)))
            assert len(keys) == 4, (end, keys)
            assert "exclude" not in chosen(p, "-n", "5", "-x", name)[1].replace("--exclude\n", ""), end
            for n in (1, 2, 4):
                p.put("less." + end, functools.reduce(lambda t, k: t.replace(k, ""), keys[:n], text))
                if n == 4:
                    assert "no InChIKey in this file" in p.run("next", "run", "-x", "less." + end, "--goal", "maximize", expect=1)[2]
                    continue
                said = chosen(p, "-n", "5", "-x", "less." + end)[1]
                where = "" if end == "sdf" else " (line %d%s)" % (2 if end in ("csv", "json") else 1, ", .." * (n > 1))
                told = "1 row has no InChIKey%s and excludes nothing" % where if n == 1 else "2 rows have no InChIKey%s and exclude nothing" % where
                assert "--exclude less.%s: %s\n" % (end, told) in said and "%d left out: named" % (4 - n) in said, (end, n, said)
        # a list, with and without a title
        p.put("list.txt", "# those of May\nInChI key\n%s\n\n%s\n" % tuple(keys[:2]))
        assert "exclude" not in chosen(p, "-n", "5", "-x", "list.txt")[1].replace("--exclude\n", "")
        p.put("list.txt", "aspirin\n%s\n" % keys[0])
        assert "--exclude list.txt: 1 row has no InChIKey (line 1) and excludes nothing\n" in chosen(p, "-n", "5", "-x", "list.txt")[1]


def what_was_measured_in_any_form_is_no_candidate():
    """Held out from the training, under the column's name, or as a limit: only molecules without a measurement are left."""
    with Project() as p:
        lines = lines_of(ESOL, 161).decode().splitlines()
        rows = [line.rsplit(",", 1) for line in lines[1:]]
        for k, row in enumerate(rows):
            row[1] = "<-2" if k % 6 == 0 else "" if k % 8 == 1 else row[1]
        p.put("table.csv", "\n".join([lines[0].replace("logS", "solubility")] + [",".join(row) for row in rows]) + "\n")
        w = p.workflow(["{path: table.csv, format: csv}"], """  read: {censored: bound}
  prepare: {conformers: {source: none}}
  graph: {edges: topology}
  split: {}
  train: {family: [trees], targets: [{name: logS, column: solubility}]}
  score: {}
""")
        p.run("run", w, "-q")
        blank = {m for m, in p.rows("SELECT mol_id FROM molecule WHERE mol_id NOT IN (SELECT mol_id FROM label)")}
        limits = p.one("SELECT count(*) FROM label JOIN property USING(property_id) WHERE name='solubility at most'")
        got = {r["inchikey"] for r in chosen(p, "-n", "1000")[0]}
        assert len(blank) > 10 and limits > 10 and got == {k for m, k in p.rows("SELECT mol_id, inchikey FROM molecule") if m in blank}
        # The value to beat is the best of them, in the unit of the score.
        best = p.one("SELECT max(value) FROM label JOIN property USING(property_id) WHERE name='solubility'")
        for factor in (1, 2):
            p.run("run", w, "-q", "stages.train.targets=[{name: logS, column: solubility, unit: u, factor: %d}]" % factor)
            said = chosen(p, "-n", "5", "--by", "expected_improvement", "--sigma", "interval")[1]
            assert "above %g (the best that was measured)" % (factor * best) in said, said


def a_molecule_that_is_drawn_twice_is_chosen_once():
    with Project() as p:
        p.put("m.csv", "smiles,act\n" + "".join("%sO,%d\n" % ("C" * k, k) for k in range(3, 26)))
        p.run("fit", "m.csv", "--target", "act", "--family", "gp", "-o", "m", "-q")
        p.put("lib.csv", "smiles,id,act\nCCO,e1,\nOCC,e2,\nCC(C)O,i1,\nOC(C)C,i2,\nCO,m1,1\nOC,m2,\n")
        stages = SCREEN.replace("neutralise: true", "dedupe: {by: none}, labels: [act]")
        p.run("run", p.workflow(["{path: lib.csv, format: csv}"], stages, extra="models: {m: {path: m.safetensors}}\n"), "-q")
        assert p.one("SELECT count(*) FROM score") == 6
        for args in ([], ["--by", "random"], ["--per-scaffold", "5"], ["--max-similarity", "0.99"]):
            rows, said = chosen(p, "-n", "6", *args)
            assert len(rows) == 2 == len({r["inchikey"] for r in rows}), (args, rows)
            assert "2 left out: measured, or" in said and ("2 left out: another drawing of a molecule that was chosen" in said or "0.99" in args), said


def a_class_stays_one_where_the_library_has_its_label():
    """A column of 0 and 1 of which the workflow says nothing is a number; what a model predicts of it is a class."""
    with Project() as p:
        p.put("m.csv", "smiles,act\n" + "".join("%sO,%d\n" % ("C" * k, k % 3 == 0) for k in range(1, 40)))
        p.run("fit", "m.csv", "--target", "act", "--better", "high", "--family", "forest", "-o", "m", "-q")
        p.put("lib.csv", "smiles,id,act\nCCN,e1,1\nOC(C)CN,e2,\nCC(C)N,i1,0\nOC(C)CCC,i2,\n")
        p.run("run", p.workflow(["{path: lib.csv, format: csv}"], SCREEN, extra="models: {m: {path: m.safetensors}}\n"), "-q")
        assert p.rows("SELECT name, task FROM property WHERE EXISTS(SELECT 1 FROM label)") == [("act", "classification")]
        rows, _ = chosen(p, "--by", "uncertainty", "-n", "2")
        mean = {k: m for k, m in p.rows("SELECT inchikey, mean FROM score JOIN molecule m USING(mol_id) WHERE mol_id NOT IN (SELECT mol_id FROM label)")}
        assert len(rows) == 2 and all(abs(float(r["acquisition"]) - math.sqrt(mean[r["inchikey"]] * (1 - mean[r["inchikey"]]))) < 1e-12 for r in rows), rows
        assert "act is a class: --by ucb needs a number" in p.run("next", "run", "--by", "ucb", expect=2)[2]
        p.put("new.csv", "id,act\ne2,0.5\n")
        assert "a class is 0 or 1" in p.run("label", "run", "new.csv", "-p", "act", expect=2)[2]


def a_unit_in_the_name_of_a_property_is_said_once():
    """The library has labels of another unit, so that the prediction is a property of its own, with its unit in the name."""
    with Project() as p:
        p.put("table.csv", lines_of(ESOL, 60))
        p.run("fit", "table.csv", "--target", "logS", "--unit", "log10(mol/L)", "--family", "gp", "-o", "m", "-q")
        p.put("lib.csv", "smiles,logS\nCCO,10\nCCCO,8\nCCCCCCCO,\n")
        stages = SCREEN.replace("neutralise: true", "properties: {logS: {unit: g/L}}")
        w = p.workflow([p.path("lib.csv")], stages, extra="models: {m: {path: m.safetensors}}\n")
        p.run("run", w, "-q")
        said = chosen(p, "--property", "logS (log10(mol/L))", "--by", "greedy")[1]
        assert "by greedy: logS (log10(mol/L)), high is better\n" in said, said


def wrong_wishes_are_refused():
    with Project() as p:
        screen(p)
        for args, says in ((["--by", "best"], "allowed are greedy"), (["-n", "0"], "a whole number from 1"), (["--goal", "up"], "maximize or minimize"),
                           (["--max-similarity", "2"], "from 0 to 1"), (["--beta", "1"], "only --by ucb"), (["--best", "1"], "only --by expected"),
                           (["--sigma", "x"], "gp, stdev or interval"), (["-o", "x.xls"], "does not end in .csv"), (["--where", "mw <"], "where"),
                           (["--property", "gap"], "scored are: logS"), ([], "give --goal"), (["--seed", "nan"], "--seed nan"),
                           (["--goal", "maximize", "--by", "ucb", "--sigma", "stdev"], "no score of logS has stdev")):
            out, err = p.run("next", "run", *args, expect=2)[1:]
            assert says in err and out == "", (args, err)
        assert "no InChIKey in this file" in p.run("next", "run", "-x", "lib.smi", "--goal", "maximize", expect=1)[2]
        p.put("w2.yaml", open(p.path("w.yaml")).read().replace("  score: {}\n", "").replace("workdir: run", "workdir: none"))
        p.run("run", "w2.yaml", "-q")
        assert "no molecule has a score" in p.run("next", "none", expect=1)[2]


if __name__ == "__main__":
    sieve.main([each_strategy_takes_the_best_by_its_formula, the_choice_depends_on_the_seed_and_not_on_the_order,
                what_was_learned_is_left_out_among_its_likes, a_diverse_choice_passes_over_what_is_similar, what_is_known_or_on_an_earlier_plate_is_left_out, rows_of_an_earlier_plate_without_a_name_are_told, what_was_measured_in_any_form_is_no_candidate,
                a_molecule_that_is_drawn_twice_is_chosen_once, a_class_stays_one_where_the_library_has_its_label, a_unit_in_the_name_of_a_property_is_said_once, wrong_wishes_are_refused])
