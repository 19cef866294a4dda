#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rank and write, with descriptors as properties and with scores put in by hand."""
import csv
import gzip
import hashlib
import math
import os
import re
import sqlite3
import subprocess

from sieve import PROGRAM, Project, data, lines_of, main, without_checksum

READ = "  read: {unit: 100}\n  prepare: {conformers: {source: none}}\n"


def one_objective_orders_by_its_value_with_ties_by_inchikey():
    with Project() as p:
        p.put("a.smi", lines_of(data("library.smi"), 400))
        w = p.workflow([p.path("a.smi")], READ + "  rank:\n    objectives: [{property: rotb, goal: maximise}]\n"
                       "    where: \"logp <= 4 and mw between 200 and 450\"\n    top: 50\n  write: {csv: out/hits.csv, smi: hits.smi}\n")
        assert "objective " in p.run("run", w)[1]  # no model and no property, so the value itself is printed
        want = p.rows("SELECT mol_id, rotb FROM molecule WHERE logp<=4 AND mw BETWEEN 200 AND 450 "
                      "ORDER BY rotb DESC, inchikey LIMIT 50")
        assert p.rows("SELECT mol_id, objective FROM hit ORDER BY rank") == want
        assert p.rows("SELECT min(rank), max(rank) FROM hit") == [(1, 50)]
        rows = list(csv.DictReader(open(p.path("run", "out", "hits.csv"))))
        assert [r["rank"] for r in rows] == [str(i) for i in range(1, 51)]
        assert {"title", "inchikey", "smiles", "mw", "tpsa", "objective"} <= set(rows[0])
        for r, (mol_id, value) in zip(rows, want):
            assert float(r["objective"]) == value
            mw, smiles = p.rows("SELECT mw, smiles FROM molecule WHERE mol_id=?", mol_id)[0]
            assert float(r["mw"]) == mw and r["smiles"] == smiles
        smi = [line.split("\t") for line in open(p.path("run", "hits.smi")).read().splitlines()]
        assert [s[0] for s in smi] == [r["smiles"] for r in rows] and all(s[1][:4] in ("CID-", "PDB-") for s in smi)
        # A deleted output file is written again; nothing else runs again, and no old results are copied.
        was = {f: open(p.path("run", f), "rb").read() for f in ("out/hits.csv", "hits.smi")}
        done = "SELECT stage, count(*) FROM event WHERE message='done' GROUP BY 1 ORDER BY 1"
        before = dict(p.rows(done))
        os.remove(p.path("run", "hits.smi"))
        assert re.search(r"(?m)^ *rank +done .*\n *write +again .* hits.smi is missing$", p.run("plan", w)[1]), p.run("plan", w)[1]
        _, _, err = p.run("run", w)
        assert "runs again: hits.smi is missing" in err and "old results" not in err, err
        assert was == {f: open(p.path("run", f), "rb").read() for f in was}
        assert dict(p.rows(done)) == dict(before, write=before["write"] + 1)
        p.run("run", w)
        assert dict(p.rows(done)) == dict(before, write=before["write"] + 1)
        # Another ranking: only rank and write run again, and the old hits are gone.
        p.run("run", w, "-q", "stages.rank.top=3")
        assert p.rows("SELECT count(*) FROM hit") == [(3,)]
        assert p.one("SELECT count(*) FROM event WHERE stage='prepare' AND message='done'") == 1


def a_changed_output_file_is_written_again():
    with Project() as p:
        p.put("a.smi", lines_of(data("library.smi"), 100))
        w = p.workflow([p.path("a.smi")], READ + "  rank: {objectives: [{property: rotb, goal: maximise}], top: 30}\n"
                       "  write: {csv: hits.csv, smi: hits.smi.gz}\n")
        assert "was changed" not in p.run("run", w)[2]
        hits = p.path("run", "hits.csv")
        good = open(hits, "rb").read()
        three = b"".join(good.splitlines(keepends=True)[:3])
        other = good.replace(b"CID-", b"cid-", 1)  # of the same size
        assert len(other) == len(good) and other != good
        for text, size in ((b"", "0 bytes, not "), (three, "%d bytes, not " % len(three)), (other, "same size, other bytes")):
            open(hits, "wb").write(text)
            assert re.search(r"(?m)^ *rank +done .*\n *write +again .* hits.csv was changed$", p.run("plan", w)[1]), p.run("plan", w)[1]
            _, _, err = p.run("run", w)
            assert "runs again: hits.csv was changed" in err and "hits.csv was changed after it was written (%s" % size in err, err
            assert open(hits, "rb").read() == good
            assert "was changed" not in p.run("run", w)[2]  # only once
        # The same bytes, only younger or copied: no change.
        before = p.one("SELECT count(*) FROM event WHERE stage='write' AND message='done'")
        os.utime(hits)
        open(p.path("copy"), "wb").write(good)
        os.replace(p.path("copy"), hits)
        assert "was changed" not in p.run("run", w)[2]
        assert p.one("SELECT count(*) FROM event WHERE stage='write' AND message='done'") == before == 4
        # A new ranking replaces a changed file, too, and says so even with -q; not that of an unchanged one.
        with open(hits, "ab") as f:
            f.write(b"my own notes\n")
        p.run("run", w, "stages.rank.top=20", "-q")
        assert p.one("SELECT count(*) FROM event WHERE level='warn' AND message LIKE 'hits.csv was changed after %'") == 4
        p.run("run", w, "stages.rank.top=10", "-q")
        assert p.one("SELECT count(*) FROM event WHERE level='warn' AND message LIKE '%was changed after %'") == 4
        p.run("db", "check", "run")


def sums_weights_caution_and_bounds_are_as_documented():
    with Project() as p:
        p.put("a.smi", lines_of(data("library.smi"), 120))
        w = p.workflow([p.path("a.smi")], READ)
        p.run("run", w, "-q")
        db = sqlite3.connect(p.path("run", "results.db"))  # scores as the stage `score` stores them
        db.execute("INSERT INTO property(name, unit, task, better) VALUES('gap','eV','regression','low'),"
                   "('sol, \"log\"','log(mol/l)','regression','high'),('logp','','regression','none'),"
                   "('energy','kcal/mol','regression','none')")
        ids = dict(db.execute("SELECT name, property_id FROM property"))
        gap, sol = ids["gap"], ids['sol, "log"']
        db.execute("INSERT INTO score(mol_id, property_id, mean, stdev, n_models) SELECT mol_id, ?, (mol_id*37%101)/10.0, CASE WHEN mol_id%13<>5 THEN (mol_id%7)/10.0 END, 3 FROM molecule",
                   (gap,))  # no stdev: only one of three models gave a number, so its uncertainty is unknown
        db.execute("INSERT INTO score(mol_id, property_id, mean, stdev, n_models) SELECT mol_id, ?, -(mol_id*53%97)/20.0, NULL, 1 FROM molecule WHERE mol_id%10<>3", (sol,))
        db.execute("INSERT INTO score(mol_id, property_id, mean, stdev, n_models) SELECT mol_id, property_id, 42, NULL, 1 FROM molecule, property WHERE name IN('logp','energy')")
        db.execute("DELETE FROM row_sum")  # intended changes, no damage
        db.commit()
        db.close()
        w = p.workflow([p.path("a.smi")], READ + """  rank:
    objectives:
      - {property: gap, goal: minimise, weight: 2, use: mean + 1.5*stdev, at_most: 8}
      - {property: 'sol, "log"', goal: maximise}
    constraints: [{property: hbd, at_most: 2}]
    top: 1000
  write: {csv: hits.csv.gz}
""")
        p.run("run", w, "-q")
        want = p.rows("SELECT m.mol_id, -2*(g.mean+1.5*g.stdev)+1*s.mean FROM molecule m JOIN score g ON g.mol_id=m.mol_id "
                      "AND g.property_id=? JOIN score s ON s.mol_id=m.mol_id AND s.property_id=? WHERE g.mean<=8 AND m.hbd<=2 AND "
                      "g.stdev IS NOT NULL", gap, sol)
        got = dict(p.rows("SELECT mol_id, objective FROM hit"))
        assert set(got) == {m for m, _ in want} and len(got) > 30
        for mol_id, value in want:
            assert abs(got[mol_id] - value) <= 1e-12 * abs(value), (mol_id, got[mol_id], value)
        order = p.rows("SELECT objective FROM hit ORDER BY rank")
        assert order == sorted(order, reverse=True)
        rows = list(csv.DictReader(gzip.open(p.path("run", "hits.csv.gz"), "rt")))
        assert len(rows) == len(got) and rows[0]["gap_unit"] == "eV" and "gap_stdev" in rows[0] and rows[0]['sol, "log"_unit'] == "log(mol/l)"
        assert p.one("SELECT count(*) FROM v_hits") == 4 * len(got)
        # Predictions whose names are those of columns of the program.
        for header, row in ((list(rows[0]), rows[0]), *((x.fieldnames, next(x)) for x in [csv.DictReader(
                p.run(*command)[1].splitlines()) for command in (("export", "csv", "run"), ("top", "--csv", "run"))])):
            assert len(set(header)) == len(header) and float(row["logp_predicted"]) == 42 != float(row["logp"]), header
            # Properties are in the order of their names, whatever their order in the database.
            places = [header.index(c) for c in ("energy_predicted", "gap", "logp_predicted", 'sol, "log"')]
            assert places == sorted(places), header
        assert float(rows[0]["energy_predicted"]) == 42 and rows[0]["energy"] == ""
        shown = [x for x in re.split("  +", p.run("top", "run")[1].splitlines()[0]) if x != "+-90%"]
        assert len([x for x in shown if "logp" in x]) == 2 and len(set(shown)) == len(shown), shown


def conformers_of_hits_are_written_as_sdf():
    with Project() as p:
        p.put("q.sdf", gzip.open(data("qm9/qm9_dev_2500.sdf.gz")).read()[:300000].rsplit(b"$$$$\n", 1)[0] + b"$$$$\n")
        w = p.workflow([p.path("q.sdf")], "  read: {unit: 17}\n  prepare: {conformers: {source: keep}}\n"
                       "  rank: {objectives: [{property: mw, goal: minimise}], top: 20}\n  write: {sdf: hits.sdf}\n")
        p.run("run", w, "-q")
        text = open(p.path("run", "hits.sdf")).read()
        assert text.count("$$$$\n") == 20
        given = {r.split(b"\n", 1)[0].strip(): r for r in open(p.path("q.sdf"), "rb").read().split(b"$$$$\n") if r.strip()}
        for record in text.split("$$$$\n")[:-1]:
            title = record.split("\n", 1)[0]
            source = given[title.encode()].decode().split("\n")
            lines = record.split("\n")
            assert lines[3][:6] == source[3][:6], (lines[3], source[3])
            n = int(lines[3][:3])
            here = sorted((float(a[0:10]), float(a[10:20]), float(a[20:30]), a[31:34].strip()) for a in lines[4:4 + n])
            there = sorted((float(a[0:10]), float(a[10:20]), float(a[20:30]), a[31:34].strip()) for a in source[4:4 + n])
            assert here == there, title
            assert "<smiles>" in record and "<objective>" in record
        # Read back, they are the same molecules.
        back = p.workflow([p.path("run", "hits.sdf")], "  read: {}\n  prepare: {conformers: {source: keep}}\n", name="back.yaml",
                          workdir="back")
        p.run("run", back, "-q")
        assert sorted(p.rows("SELECT inchikey FROM molecule", workdir="back")) == \
            sorted(p.rows("SELECT inchikey FROM hit JOIN molecule USING(mol_id)"))
        # Numbers in full.
        told = p.run("export", "sdf", "run")[1].split(">  <mw>\n")[1:]
        assert [float(t.split("\n", 1)[0]) for t in told] == \
            [mw for mw, in p.rows("SELECT mw FROM hit JOIN molecule USING(mol_id) ORDER BY rank")]
        # Every column is a data field, however many there are.
        p.put("wide.csv", "smiles%s\nC%s\n" % ("".join(",c%d" % i for i in range(300)), ",1" * 300))
        p.run("run", p.workflow([p.path("wide.csv")], "  read: {}\n  prepare: {}\n", name="wide.yaml", workdir="wide"), "-q")
        assert p.run("export", "sdf", "--all", "wide")[1].count(">  <c") == 301  # and charge


def a_replaced_model_leaves_no_rows_behind():
    """After a change of name and unit the result is as if the first had never existed."""
    with Project() as p:
        model = open(os.path.join(os.path.dirname(__file__), "../../workflows/models/esol.safetensors"), "rb").read()
        p.put("a.safetensors", model)
        p.put("b.safetensors", without_checksum(model).replace(b'unit\\":\\"log10(mol/L)', b'unit\\":\\"LOG10(mol/L)', 1))
        p.put("a.smi", "CCO\nCCN\nCC\n")

        def screen(name, workdir):
            p.workflow(["a.smi"], "  read: {}\n  prepare: {}\n  graph: {edges: bonds}\n  score: {}\n"
                       "  rank: {objectives: [{property: logS, goal: maximise}]}\n", workdir=workdir,
                       extra="models: {%s: {path: %s.safetensors}}\n" % (name, name))
            p.run("run", "w.yaml", "-q")
            return p.run("db", "digest", workdir)[1]

        screen("a", "run")
        assert screen("b", "run") == screen("b", "new")
        assert p.rows("SELECT p.name, unit, m.name FROM property p, model m") == [("logS", "LOG10(mol/L)", "b")]
        assert "listed twice" in p.run("check", "w.yaml", "stages.score.models=[b, b]", expect=2)[2]


def a_replaced_model_that_is_evaluated_leaves_none_behind():
    """Beside labels, which stay as they are; the other model predicts another property."""
    with Project() as p:
        p.put("a.csv", "smiles,was,size\nCCO,0.5,3\nCCCCO,-0.1,5\nCCCCCC,-3.9,6\nCC,-1.3,2\n")
        model = open(os.path.join(os.path.dirname(__file__), "../../workflows/models/esol.safetensors"), "rb").read()
        p.put("a.safetensors", model)
        p.put("b.safetensors", without_checksum(model).replace(b'"logS\\"', b'"logT\\"'))

        def judge(name, target, labels, workdir):
            p.workflow(["a.csv"], "  read: {}\n  prepare: {labels: [%s]}\n  graph: {edges: bonds}\n"
                       "  evaluate: {targets: [{name: %s, column: was}]}\n" % (labels, target), workdir=workdir,
                       extra="models: {%s: {path: %s.safetensors}}\n" % (name, name))
            p.run("run", "w.yaml", "-q")
            return p.run("db", "digest", workdir)[1], p.rows("SELECT name FROM property ORDER BY 1", workdir=workdir)

        for labels in ("was", "was, size"):
            want = judge("b", "logT", labels, "new")
            judge("a", "logS", labels, "run")
            assert judge("b", "logT", labels, "run") == want, (labels, want)
            assert want[1] == [(name,) for name in sorted(["logT"] + labels.split(", "))], want


def series():
    """Real molecules, 300 with one ring that rank before them, 60 without rings, and 560 with two rings of which no two have one scaffold;
    in mixed order."""
    made = ["c1c(I)c(I)c(%s)c(I)c1%s m%d.%d" % ("C" * i, "C" * j, i, j) for i in range(1, 25) for j in range(1, i + 1)]
    made += ["I%sC(I)(I)%sI a%d" % ("C" * i, "C" * (60 - i), i) for i in range(1, 31)]
    made += ["C1%s1%sC1%s1 r%d.%d.%d" % ("C" * i, "C" * k, "C" * j, i, j, k) for i in range(2, 9) for j in range(2, i + 1) for k in range(20)]
    wild = lines_of(data("library.smi"), 150).decode().splitlines()
    return "\n".join(sorted(made + wild, key=lambda line: hashlib.sha256(line.encode()).digest())) + "\n"


def features_of(p, workdir="run"):
    """mol_id -> (scaffold, fingerprint as a number)"""
    out = subprocess.run([os.path.join(os.path.dirname(PROGRAM), "features_of"), p.path(workdir, "results.db")], check=True,
                         capture_output=True, cwd=p.dir).stdout.decode().splitlines()
    return {int(i): (s, int(f, 16)) for i, s, f in (line.split() for line in out)}


def walked(order, features, top, by, limit):
    """Walks from the best on: rows of `hit`, and the number of molecules left out."""
    hits, passed = [], 0  # [mol_id, cluster, n_similar]
    for mol_id in order:
        if len(hits) == top:
            break
        scaffold, print_ = features[mol_id]
        if by == "scaffold":
            like = [h for h in hits if features[h[0]][0] == scaffold != "0"]
            full = len(like) == limit
        else:
            alike = [(print_ & features[h[0]][1]).bit_count() / ((print_ | features[h[0]][1]).bit_count() or 1) for h in hits]
            full = bool(hits) and max(alike) > limit
            like = [hits[alike.index(max(alike))]] if full else []
        if full:
            passed += 1
            like[0][2] += 1
        else:
            hits.append([mol_id, like[0][1] if like else len(hits) + 1, 0])
    return [(m, c, hits[c - 1][2]) for m, c, _ in hits], passed


def a_diverse_ranking_is_a_plain_walk_best_first():
    with Project() as p:
        p.put("a.smi", series())
        w = p.workflow(["a.smi"], READ + "  rank: {objectives: [{property: mw, goal: maximise}], top: 30}\n"
                       "  write: {csv: hits.csv}\n")
        p.run("run", w, "-q", "-j", "2")
        plain, columns = p.rows("SELECT * FROM hit ORDER BY rank"), open(p.path("run/hits.csv")).readline()
        assert set(plain[0][3:]) == {None} and "cluster" not in columns
        order = [m for m, in p.rows("SELECT mol_id FROM molecule ORDER BY mw DESC, inchikey, mol_id")]
        features = features_of(p)
        assert set(features) == set(order) and len(order) > 400
        rounds = 0
        for top, by, limit in ((30, "scaffold", 1), (30, "scaffold", 3), (100, "scaffold", 2), (5000, "scaffold", 1),
                               (20, "similarity", 0.6), (30, "similarity", 0.25), (400, "similarity", 0.1),
                               (5000, "similarity", 0), (25, "similarity", 1)):
            setting = "stages.rank.diversity=" + ("{by: scaffold, at_most: %d}" if by == "scaffold" else "{by: similarity, threshold: %g}") % limit
            _, _, err = p.run("run", w, setting, "stages.rank.top=%d" % top)
            want, passed = walked(order, features, top, by, limit)
            assert p.rows("SELECT mol_id, cluster, n_similar FROM hit ORDER BY rank") == want, (top, by, limit)
            said = "%d ranked of %d candidates, %d left out" % (len(want), len(order), passed)
            assert said in err.replace(",0", "0"), (said, err)
            rounds += len(want) + passed > 4 * max(top, 64)  # more than the first batch was needed
            assert (top, by) != (5000, "scaffold") or len(want) > 512  # more than its first table of scaffolds holds
        assert rounds >= 1
        # The number of molecules that a hit represents is shown wherever hits are shown.
        p.run("run", w, "-q", "stages.rank.top=100", "stages.rank.diversity={by: scaffold, at_most: 2}")
        want = [(str(c), str(n)) for c, n in p.rows("SELECT cluster, n_similar FROM hit ORDER BY rank")]
        assert any(int(n) > 200 for _, n in want) and any(str(i + 1) != c for i, (c, _) in enumerate(want))
        for text in (open(p.path("run/hits.csv")).read(), p.run("export", "csv", "run")[1], p.run("top", "--csv", "-n", "100", "run")[1]):
            assert [(r["cluster"], r["n_similar"]) for r in csv.DictReader(text.splitlines())] == want
        assert p.rows("SELECT cluster, n_similar FROM v_hits") == p.rows("SELECT cluster, n_similar FROM hit ORDER BY rank")
        p.run("report", "run")
        assert "at most 100 molecules, at most 2 of a scaffold" in open(p.path("run/report.html")).read()
        assert "diversity.by: scaffold -> similarity" in p.run("explain", w, "rank", "stages.rank.diversity.by=similarity")[1]
        # Without diversity the ranking is again the same bytes, and its key has nothing of it.
        assert "diversity.by: scaffold -> none\n" in p.run("explain", w, "rank")[1]
        p.run("run", w, "-q")
        why = p.run("explain", w, "rank", "stages.rank.diversity.by=similarity", "stages.rank.actives=x", expect=None)[1]
        assert "diversity.by: none -> similarity\n" in why and "actives: not set -> x\n" in why, why
        assert p.rows("SELECT * FROM hit ORDER BY rank") == plain and open(p.path("run/hits.csv")).readline() == columns
        assert "diversity" not in p.one("SELECT params_json FROM stage WHERE name='rank'")
        assert "top is at most 100000" in p.run("check", w, "stages.rank.diversity.by=similarity", "stages.rank.top=100001", expect=2)[2]


def a_diverse_ranking_needs_structures_and_says_so():
    with Project() as p:
        p.put("a.smi", lines_of(data("library.smi"), 40))
        w = p.workflow(["a.smi"], READ + "  rank: {objectives: [{property: mw, goal: maximise}], top: 5}\n")
        p.run("run", w, "-q")
        os.remove(p.path("run/features.db"))
        # A ranking without diversity does not need structures.
        assert "nothing ran" in p.run("run", w)[1]
        assert "its blocks are missing in features.db" in p.run("plan", w, "stages.rank.diversity.by=scaffold")[1]
        p.run("run", w, "-q", "stages.rank.diversity.by=scaffold")
        assert p.one("SELECT count(cluster) FROM hit") == 5
        # After a merge that did not copy structures, a message names the command that fetches them, and it does.
        for shard in ("0/2", "1/2"):
            p.run("run", w, "-q", "--shard", shard, "workdir=merged")
        p.run("merge", w, "-q", "workdir=merged")
        diverse = ("workdir=merged", "stages.rank.diversity.by=scaffold")
        assert "`molsieve merge` fetches them from the shards" in p.run("plan", w, *diverse)[1]
        p.run("merge", w, "-q", *diverse)
        assert "fetches" not in p.run("plan", w, *diverse)[1]
        assert "never run" in p.run("plan", w, *diverse)[1] and "prepare   run" not in p.run("plan", w, *diverse)[1]
        db = sqlite3.connect(p.path("run/results.db"))  # a molecule that features.db never had
        db.executescript("CREATE TEMP TABLE one AS SELECT * FROM molecule WHERE mol_id=1; UPDATE one SET mol_id=1000, mw=1e6;"
                         "INSERT INTO molecule SELECT * FROM one; DELETE FROM row_sum")
        db.commit()
        db.close()
        _, _, err = p.run("run", w, "stages.rank.diversity.by=similarity", expect=5)
        assert "lacks the structure of molecule 1000" in err and "--from prepare" in err, err


def fronts(points):
    """mol_id -> (front, crowding distance), by the definitions; points: mol_id -> (key, values, larger is better)"""
    out, left, number = {}, dict(points), 0
    while left:
        number += 1
        front = [m for m, (_, v) in left.items() if not any(all(a >= b for a, b in zip(w, v)) and w != v for _, w in left.values())]
        apart = dict.fromkeys(front, 0.0)
        for k in range(len(points[front[0]][1])):
            line = sorted(front, key=lambda m: (points[m][1][k], points[m][0], m))
            lo, hi = points[line[0]][1][k], points[line[-1]][1][k]
            apart[line[0]] = apart[line[-1]] = math.inf
            for a, b, c in zip(line, line[1:], line[2:]):
                apart[b] += (points[c][1][k] - points[a][1][k]) / (hi - lo) if hi > lo else 0
        for m in front:
            out[m] = (number, apart[m])
            del left[m]
    return out


FRONTS = (("{property: mw, goal: maximise}, {property: logp, goal: minimise}", lambda mw, hbd, rotb, logp, tpsa, x, s: (mw, -logp)),
          ("{property: hbd, goal: maximise}, {property: rotb, goal: minimise}", lambda mw, hbd, rotb, logp, tpsa, x, s: (hbd, -rotb)),
          ("{property: gap, goal: minimise, use: mean + 0.3*stdev}, {property: mw, goal: minimise}, {property: hbd, goal: maximise}",
           lambda mw, hbd, rotb, logp, tpsa, x, s: None if x is None else (-(x + 0.3 * s), -mw, hbd)),
          ("{property: mw, goal: maximise}, {property: logp, goal: minimise}, {property: tpsa, goal: maximise}, "
           "{property: rotb, goal: minimise}", lambda mw, hbd, rotb, logp, tpsa, x, s: (mw, -logp, tpsa, -rotb)))


def pareto_fronts_are_those_of_the_definition():
    with Project() as p:
        p.put("a.smi", lines_of(data("library.smi"), 300))
        p.run("run", p.workflow([p.path("a.smi")], READ), "-q")
        db = sqlite3.connect(p.path("run", "results.db"))  # with ties, and molecules without a value
        db.execute("INSERT INTO property(property_id, name, unit, task, better) VALUES(7,'gap','eV','regression','low')")
        db.execute("INSERT INTO score(mol_id, property_id, mean, stdev, n_models) SELECT mol_id, 7, (mol_id*37%101)/10.0, (mol_id%7)/10.0, 3 "
                   "FROM molecule WHERE mol_id%11<>4")
        db.execute("DELETE FROM row_sum")  # intended changes, no damage
        db.commit()
        db.close()
        rows = p.rows("SELECT mol_id, inchikey, mw, hbd, rotb, logp, tpsa, mean, stdev FROM molecule LEFT JOIN score USING(mol_id)")
        for objectives, values in FRONTS:
            points = {m: (key, values(*v)) for m, key, *v in rows if values(*v) is not None}
            want = fronts(points)
            order = sorted(points, key=lambda m: (want[m][0], -want[m][1], points[m][0], m))
            for top in (1, 25, 1000):
                w = p.workflow([p.path("a.smi")], READ + "  rank: {objectives: [%s], top: %d, method: pareto}\n" % (objectives, top))
                _, _, err = p.run("run", w)
                assert "%d ranked of %d candidates" % (min(top, len(points)), len(points)) in err, err
                assert p.rows("SELECT mol_id, front FROM hit ORDER BY rank") == [(m, want[m][0]) for m in order[:top]], (objectives, top)
        assert max(f for f, _ in want.values()) > 3
        # A diverse ranking walks them in their order, beyond the first batch.
        w = p.workflow([p.path("a.smi")], READ + "  rank: {objectives: [%s], top: 30, method: pareto, diversity: {by: similarity, "
                       "threshold: 0.12}}\n  write: {}\n" % objectives)
        p.run("run", w, "-q")
        hits, passed = walked(order, features_of(p), 30, "similarity", 0.12)
        assert p.rows("SELECT mol_id, cluster, n_similar FROM hit ORDER BY rank") == hits and passed + len(hits) > 256
        for text in (open(p.path("run/hits.csv")).read(), p.run("top", "--csv", "-n", "30", "run")[1]):
            assert [int(r["front"]) for r in csv.DictReader(text.splitlines())] == [want[m][0] for m, _, _ in hits]
        assert "no weights" in p.run("report", "run", "-o", "-")[1]
        for more in ("[{property: mw, goal: maximise}]", "[{property: mw, goal: maximise}, {property: hbd, goal: minimise}], actives: x"):
            _, _, err = p.run("check", p.workflow([p.path("a.smi")], READ + "  rank: {method: pareto, objectives: %s}\n" % more), expect=2)
            assert "method: pareto" in err, err


def fronts_and_actives_may_be_hundreds():
    with Project() as p:
        rows = [("%s%s" % ("C" * k, end), k > 2) for k in range(1, 151) for end in ("", "O")]  # heavier by one atom each time
        p.put("a.csv", "smiles,act\n" + "".join("%s,%d\n" % row for row in rows))
        read = "  read: {}\n  prepare: {conformers: {source: none}, labels: [act], properties: {act: {task: classification}}}\n"
        w = p.workflow(["a.csv"], read + "  rank: {method: pareto, top: 300, objectives: [{property: mw, goal: maximise}, {property: n_heavy, goal: maximise}]}\n")
        p.run("run", w, "-q")
        assert p.rows("SELECT rank, front FROM hit ORDER BY rank") == [(k, k) for k in range(1, 301)]
        assert [m for m, in p.rows("SELECT mw FROM hit JOIN molecule USING(mol_id) ORDER BY rank")] == sorted((m for m, in p.rows("SELECT mw FROM molecule")), reverse=True)
        p.run("run", w, "-q", "stages.rank={objectives: [{property: mw, goal: maximise}], actives: act, top: 3}")
        found = dict(p.rows("SELECT name, value FROM metric WHERE stage='rank' AND step=0"))
        assert (found["actives"], found["candidates"]) == (296, 300) and abs(found["ef1"] - 300 / 296) < 1e-12, found
        assert abs(found["roc_auc"] - (1 - 1 / (4 * 296))) < 1e-12, found  # ethanol is heavier than propane


def mistakes_in_the_settings_are_all_reported_at_once():
    with Project() as p:
        p.put("a.smi", "CCO\n")
        w = p.workflow([p.path("a.smi")], READ + """  rank:
    objectives: [{property: gap, goal: minimise, use: median}, {property: mw, goal: maximise, at_least: 9, at_most: x}]
    constraints: [{property: logp}]
    where: "weight < 5"
  write: {csv: ../../hits.csv}
""")
        _, _, err = p.run("run", w, expect=2)
        for word in ("median", "at_most", "neither at_least nor at_most", "no such column: weight", "out of the workdir"):
            assert word in err, (word, err)
        w = p.workflow([p.path("a.smi")], READ + "  rank: {objectives: [{property: gapp, goal: minimise}]}\n")
        _, _, err = p.run("run", w, expect=2)
        assert "gapp" in err and "nothing is scored" in err, err
        # An empty ranking is no error, but a message reports it.
        w = p.workflow([p.path("a.smi")], READ + "  rank: {objectives: [{property: mw, goal: minimise, at_least: 5000}]}\n")
        _, _, err = p.run("run", w)
        assert "no molecule satisfies" in err, err


def a_condition_is_refused_with_its_line_and_column():
    with Project() as p:
        p.put("a.smi", "CCO\n")
        cases = (('"mv" > 1', 1, "single quotes"), ("mw < 5 and mv > 1", 11, "did you mean mw"), ("1) UNION SELECT 1 FROM (molecule", 1, "goes on with"),
                 ("1) LIMIT (1", 1, "goes on with"), ("mw > ?1", 5, "no parameters"), ("random() > 0", 0, "no such function here: random"),
                 ("200 < mw < 500", 9, "write a < b and b < c"), ("mw = 200 or 300", 12, "compare it with something"),
                 ("mw > (SELECT 5)", 6, "no query"), ("logp > 'high'", 0, "compared with"), ("removed = null", 0, "is null"))
        for expression, at, says in cases:
            for stage, line, key in (("prepare", 10, "keep"), ("rank", 12, "where")):
                own, other = ("", "# ") if stage == "prepare" else ("# ", "")
                quoted = '"%s"' % expression if '"' not in expression else "'%s'" % expression
                w = p.workflow([p.path("a.smi")], "  read: {}\n  prepare:\n    %skeep: %s\n  rank:\n    %swhere: %s\n    objectives: "
                               "[{property: mw, goal: maximise}]\n" % (own, quoted, other, quoted))
                _, _, err = p.run("check", w, expect=2)
                place = "w.yaml:%d:%d: %s: %s: " % (line, 5 + len(key) + 3 + at, stage, key)
                assert place in err and says in err, (place, says, err)
                p.run("check", w, "stages.%s.%s=mw < 500" % (stage, key))
        # A setting from the command line has no line number, but a reason.
        assert "did you mean mw" in p.run("check", w, "stages.rank.where=mv > 1", expect=2)[2]


RANKED = READ + "  rank: {objectives: [{property: mw, goal: maximise}], top: 3}\n"


def outputs_are_never_files_of_the_run():
    with Project() as p:
        p.put("a.smi", "CCO one\nCCN two\n")
        os.makedirs(p.path("run", "sub"))
        os.symlink("sub", p.path("run", "link"))
        os.symlink("../run", p.path("run", "self"))
        os.symlink("results.db", p.path("run", "alias.csv"))
        os.symlink(p.path("a.smi"), p.path("run", "input.csv"))

        def says(settings, want):
            w = p.workflow(["a.smi"], RANKED + "  write: {%s}\n" % settings)
            _, _, err = p.run("check", w, expect=2 if want else 0)
            assert want in err and (not want or re.search(r"w\.yaml:\d+:\d+: write: ", err)), (settings, want, err)

        own = "is a file of the run itself"
        for name in ("results.db", "results.db-wal", "results.db-shm", "results.db-journal", "RESULTS.DB-WAL", "./results.db-wal", "self/results.db",
                     "sub/../results.db-wal", "link/../results.db-wal", p.path("run/results.db-wal"), p.path("run/./sub/../results.db-wal"),
                     p.path("run/new/../results.db"), "self/self/heartbeat.json", "results.db.format4", "results.previous.db", "results.merging.db-wal",
                     "results.db.lock", "features.db", "features.db-wal", ".lock", ".lock.tmp", ".reserve", "Heartbeat.json", "models/e2e.safetensors",
                     "checkpoints/a/b.csv", "models/../models/x", "shards/00000-of-00001/results.db", "ranks-0123456789ab.txt"):
            says("csv: '%s'" % name, "leads out" if name.startswith(("sub/../", "link/../", "models/..")) else own)
        err = p.run("check", p.workflow(["a.smi"], RANKED + "  write: {csv: x.merging.db-wal}\n"), "storage.results=x.db", expect=2)[2]
        assert own in err, err
        says("csv: input.csv", "is a file that the run reads")
        says("csv: '%s'" % p.path("w.yaml"), "is a file that the run reads")
        for a, b in (("x.csv", "x.csv"), ("x.csv", "./x.csv"), ("sub/x.csv", "link/x.csv"), ("x.csv", p.path("run/x.csv")), ("x.csv", "X.CSV"),
                     ("x.csv", "self/x.csv"), ("x.csv", "x.csv.tmp"), ("x.csv.tmp", "x.csv"), ("new/x", "new/./x")):
            says("csv: '%s', sdf: '%s'" % (a, b), "is written twice")
        for a, b in (("x.csv", "y.csv.tmp"), ("y.csv.tmp", "x.csv"), ("x.csv", "x.csv.tap")):
            says("csv: '%s', sdf: '%s'" % (a, b), "")
        says("csv: sub", "is a folder")
        says("csv: new/", "is a folder")
        for good in ("hits.csv", "sub/hits.csv", "link/hits.csv", "results.csv", "a/models/x.csv", "model.csv", p.path("elsewhere/results.db-wal")):
            says("csv: '%s'" % good, "")
        # Other commands that write, and the log.
        w = p.workflow(["a.smi"], RANKED)
        p.run("run", w, "-q")

        def files():
            return sorted(f for f in os.listdir(p.path("run")) if not f.endswith(("-wal", "-shm")))  # files that SQLite leaves after reading

        was = files()
        for name in ("results.db-wal", "results.db", ".lock", "heartbeat.json", "self/features.db-shm", "link/../results.db-journal"):
            for command in (("export", "csv", "--all", "run", "-o"), ("report", "run", "-o")):
                assert "choose another name" in p.run(*command, "run/" + name, expect=2)[2] or name == "results.db"
            assert "name another file" in p.run("run", w, "--log", "run/" + name, expect=2)[2]
        assert files() == was


def a_foreign_database_cannot_read_or_write_files():
    with Project() as p:
        p.put("a.smi", "CCO one\nCCN two\nCCOC three\n")
        w = p.workflow(["a.smi"], RANKED)
        p.run("run", w, "-q")
        db = sqlite3.connect(p.path("run/results.db"))
        db.executescript("""CREATE VIEW v_pointer AS SELECT hex(fts3_tokenizer('simple')) AS p;
            CREATE VIEW v_file AS SELECT load_extension('x') AS p;
            CREATE TABLE "a"" b"(x); INSERT INTO "a"" b" VALUES(7);
            CREATE TRIGGER t1 AFTER INSERT ON event BEGIN DELETE FROM molecule; END;
            CREATE TRIGGER t2 AFTER DELETE ON hit BEGIN UPDATE molecule SET mw=0; END;""")
        db.close()
        before = p.rows("SELECT * FROM molecule")
        for view in ("v_pointer", "v_file"):
            _, out, err = p.run("query", view, "run", expect=2)
            assert out == "" and "SQL:" in err, (out, err)
        assert p.run("query", "--csv", 'a" b', "run")[1].split() == ["x", "7"]
        assert "unsafe use of" in p.run("query", "run", expect=1)[2]  # the list of tables asks what columns each view has
        p.run("run", w, "-q", "--force", "rank", "stages.rank.top=2")
        assert p.rows("SELECT * FROM molecule") == before and p.one("SELECT count(*) FROM hit") == 2
        # A view with the name of a table of the run, which would return an address of memory.
        db = sqlite3.connect(p.path("run/results.db"))
        db.executescript("DROP TABLE hit; CREATE VIEW hit AS SELECT 1 AS rank, 1 AS mol_id, hex(fts3_tokenizer('simple')) AS objective, NULL AS "
                         "front, NULL AS cluster, NULL AS n_similar; DELETE FROM row_sum;")
        db.close()
        _, out, err = p.run("top", "run", expect=None)
        assert "unsafe use" in err or "not authorized" in err or "fts3_tokenizer" in err, (out, err)


def a_condition_means_the_same_in_prepare_and_in_rank():
    with Project() as p:
        p.put("a.smi", lines_of(data("library.smi"), 150))
        p.run("run", p.workflow([p.path("a.smi")], READ), "-q")
        for expression in ("logp <= 3 and not (hbd > 1)", "1.0 * hba / n_heavy < 0.2", "(mw < 350) + (logp < 3) + (rotb < 4) >= 2",
                           "formula like '%Cl%' or smiles glob '*[sS]*'", "charge in (0) and round(logp) between 1 and 3"):
            w = p.workflow([p.path("a.smi")], "  read: {unit: 100}\n  prepare: {conformers: {source: none}, keep: \"%s\"}\n" % expression,
                           workdir="kept")
            p.run("run", w, "-q")
            kept = {k for k, in p.rows("SELECT inchikey FROM molecule", workdir="kept")}
            assert kept == {k for k, in p.rows("SELECT inchikey FROM molecule WHERE " + expression)}, expression
            assert 5 < len(kept) < 145, (expression, len(kept))


main([outputs_are_never_files_of_the_run, a_foreign_database_cannot_read_or_write_files, a_condition_is_refused_with_its_line_and_column, a_condition_means_the_same_in_prepare_and_in_rank, pareto_fronts_are_those_of_the_definition, fronts_and_actives_may_be_hundreds, a_diverse_ranking_is_a_plain_walk_best_first, a_diverse_ranking_needs_structures_and_says_so, one_objective_orders_by_its_value_with_ties_by_inchikey, a_changed_output_file_is_written_again, sums_weights_caution_and_bounds_are_as_documented,
      conformers_of_hits_are_written_as_sdf, a_replaced_model_leaves_no_rows_behind, a_replaced_model_that_is_evaluated_leaves_none_behind, mistakes_in_the_settings_are_all_reported_at_once])
