#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The commands that read results: top, query and export."""
import csv
import gzip
import io
import json
import math
import os
import sqlite3

from config_cli import GOOD
from sieve import Project, data, lines_of, main


def results_can_be_asked_and_exported():
    with Project() as p:
        p.put("lib.smi", lines_of(data("library.smi"), 12))
        w = p.put("w.yaml", GOOD % "generate")
        _, _, err = p.run("top", expect=6)
        assert "no results.db" in err, err
        p.run("run", w, "-j", "2")
        truth = sqlite3.connect(p.path("runs/small/results.db"))

        # top: found from here, from the workflow, from the folder, from the database
        for where in ([], ["w.yaml"], ["runs/small"], ["runs/small/results.db"]):
            _, out, err = p.run("top", "-n", "2", "--json", *where)
            rows = json.loads(out)
            assert [r["rank"] for r in rows] == [1, 2] and err == ""
        want = truth.execute("SELECT inchikey FROM hit JOIN molecule USING(mol_id) ORDER BY rank").fetchall()
        got = list(csv.DictReader(io.StringIO(p.run("top", "--csv")[1])))
        assert [(r["inchikey"],) for r in got] == want and len(got) == 3
        p.run("top", "-n", "0", expect=2)

        # query: the formats agree with each other and with Python's sqlite3
        sql = "SELECT mol_id, smiles, mw, removed FROM molecule ORDER BY mol_id"
        rows = truth.execute(sql).fetchall()
        as_json = json.loads(p.run("query", "--json", sql)[1])
        assert [tuple(r.values()) for r in as_json] == rows
        as_lines = [json.loads(x) for x in p.run("query", "-f", "jsonl", sql)[1].splitlines()]
        assert as_lines == as_json
        as_csv = list(csv.reader(io.StringIO(p.run("query", "--csv", sql, "runs/small")[1])))
        assert [float(r[2]) for r in as_csv[1:]] == [r[2] for r in rows] and as_csv[0] == list(as_json[0])
        # a row of one empty cell is no blank line, which readers skip
        some = p.run("query", "--csv", "SELECT value AS v FROM json_each('[null,\"\",\"a\"]')")[1]
        assert some == 'v\n""\n""\na\n', some
        assert len(p.run("query", sql)[1].splitlines()) == len(rows) + 2
        # JSON has one value of a name: two columns of one name are refused, and CSV has both
        for sql, name in (("SELECT 1 AS a, 2 AS a", "a"), ("SELECT 1 AS b, 2 AS B, m.mol_id, h.mol_id FROM molecule m JOIN hit h", "mol_id")):
            for way in (["--json"], ["-f", "jsonl"]):
                _, out, err = p.run("query", *way, sql, expect=2)
                assert out == "" and "two columns are called '%s'" % name in err and "AS" in err and "--csv" in err, (out, err)
            assert p.run("query", "--csv", sql)[1].splitlines()[0].split(",").count(name) == 2
            p.run("query", sql)
        assert json.loads(p.run("query", "--json", "SELECT 1 AS a, 2 AS A")[1]) == [{"a": 1, "A": 2}]
        assert "v_funnel" in p.run("query")[1]
        assert json.loads(p.run("query", "--json", "v_funnel")[1])[0]["records"] == 12
        assert json.loads(p.run("query", "--json", "SELECT 1 AS a WHERE 0")[1]) == []
        assert json.loads(p.run("query", "--json", "SELECT 9e999 AS a, -9e999 AS b, NULL AS c")[1]) == [{"a": math.inf, "b": -math.inf, "c": None}]
        assert json.loads(p.run("query", "--json", "--", "-- a comment\nSELECT 1 AS a")[1]) == [{"a": 1}]
        p.put("q.sql", "-- a comment\nSELECT count(*) AS n\n FROM molecule;\n-- the end\n")
        assert json.loads(p.run("query", "--json", "--file", "q.sql")[1]) == [{"n": 12}]
        given = p.run("query", "--json", "--file", "-", input=b"SELECT 7 AS n" + b" " * 9000 + b"\n")
        assert json.loads(given[1]) == [{"n": 7}] and given[2] == "", given
        # a cell of each type in each format
        sql = "SELECT x'00ff1A' AS b, 'two' || char(10) || 'lines' AS t, NULL AS n, 2 AS i, 0.1 AS r"
        assert p.run("query", "--csv", sql)[1] == 'b,t,n,i,r\n00ff1a,"two\nlines",,2,0.1\n'
        assert json.loads(p.run("query", "--json", sql)[1]) == [{"b": "00ff1a", "t": "two\nlines", "n": None, "i": 2, "r": 0.1}]
        assert p.run("query", sql)[1].splitlines()[2] == "(3 bytes)  two lines     2  0.1"

        # query: table-valued functions
        for sql, want in (("SELECT value AS v FROM json_each('[3,4]')", [{"v": 3}, {"v": 4}]),
                          ("SELECT count(*) AS v FROM json_tree('{\"a\":[1]}')", [{"v": 3}]),
                          ("SELECT name AS v FROM pragma_table_info('hit') LIMIT 1", [{"v": "rank"}])):
            assert json.loads(p.run("query", "--json", sql)[1]) == want, sql

        # query: only reading
        before = open(p.path("runs/small/results.db"), "rb").read()
        for sql in ("DELETE FROM molecule", "DROP TABLE hit", "CREATE TABLE x(a)", "CREATE TEMP TABLE x(a)",
                    "ATTACH 'other.db' AS o", "PRAGMA journal_mode=delete", "PRAGMA user_version=9", "VACUUM INTO 'v.db'",
                    "VACUUM", "BEGIN", "SELECT load_extension('x')", "INSERT INTO hit VALUES(9,9,9)",
                    "UPDATE molecule SET mw=0", "REINDEX", "ANALYZE", "DETACH main", "SAVEPOINT a",
                    "PRAGMA writable_schema=1", "PRAGMA writable_schema", "PRAGMA temp_store_directory='/tmp'",
                    "PRAGMA wal_checkpoint(TRUNCATE)", "PRAGMA optimize", "PRAGMA main.page_size=512",
                    "SELECT Load_Extension('x','y')", "SELECT readfile('/etc/passwd')", "SELECT writefile('v.db','x')",
                    "SELECT edit('x')", "SELECT * FROM fsdir('.')", "CREATE VIRTUAL TABLE f USING fts5(a)",
                    "CREATE VIRTUAL TABLE temp.f USING csv(filename='/etc/passwd')", "CREATE VIEW w AS SELECT 1",
                    "SELECT fts3_tokenizer('a', x'0000000000000000')", "EXPLAIN DELETE FROM hit", "CREATE TRIGGER t "
                    "AFTER INSERT ON hit BEGIN SELECT 1; END", "WITH x AS (SELECT 1) DELETE FROM hit", "ALTER TABLE hit RENAME TO h",
                    "UPDATE sqlite_master SET sql=''", "SELECT * FROM pragma_writable_schema(1)", "SELECT hex(fts3_tokenizer('simple'))", "SELECT FTS3_Tokenizer('porter')"):
            _, out, err = p.run("query", sql, expect=2)
            assert out == "" and "SQL:" in err, (sql, err)
        assert open(p.path("runs/small/results.db"), "rb").read() == before
        assert not os.path.exists(p.path("other.db")) and not os.path.exists(p.path("v.db"))
        for sql, want in (("SELEC 1", "syntax error"), ("SELECT abs(-9223372036854775807 - 1)", "overflow"), ("SELECT * FROM nope", "no such table: nope; `molsieve query` lists"),
                          ('SELECT count(*) FROM molecule WHERE "logpp" < 5', "no such column: logpp; `molsieve query` lists"),
                          ("nope", "nope: no such table or view; `molsieve query` lists"), ("", "no statement"),
                          ("SELECT 1; SELECT 2", "one statement at a time")):
            _, _, err = p.run("query", sql, expect=2)
            assert want in err, (sql, err)

        # export
        lines = p.run("export", "smi", "--all")[1].splitlines()
        assert len(lines) == 12 and all("\t" in x for x in lines)
        assert len(p.run("export", "smi")[1].splitlines()) == 3
        p.run("export", "csv", "--all", "--where", "mw < 300 -- small", "-o", "light.csv.gz")
        light = list(csv.DictReader(io.TextIOWrapper(gzip.open(p.path("light.csv.gz")))))
        assert len(light) == truth.execute("SELECT count(*) FROM molecule WHERE mw<300").fetchone()[0]
        assert {"charge", "mw", "logp", "tpsa", "energy"} < set(light[0])  # as in hits.csv
        _, _, err = p.run("export", "csv", "--where", "mw <", expect=2)
        assert "where" in err
        p.run("export", "csv", "--where", "1) OR (DELETE FROM hit", expect=2)
        p.run("export", "pdf", expect=2)
        p.run("export", "csv", "--top", "x", expect=2)
        p.run("export", "csv", "-o", "lib.smi/x.csv", expect=6)  # a file where a folder must be
        for slip in (("export", "csv"), ("report",)):
            assert "is a database and is not replaced" in p.run(*slip, "-o", "runs/small/results.db", expect=2)[2]
        assert open(p.path("runs/small/results.db"), "rb").read() == before

        # exported structures are read back as the same molecules
        p.run("export", "sdf", "--all", "-o", "all.sdf")
        text = open(p.path("all.sdf")).read()
        assert text.count("$$$$\n") == 12 and "<inchikey>" in text
        p.put("back.yaml", (GOOD % "keep").replace("lib.smi", "all.sdf").replace("name: small", "name: back"))
        p.run("run", "back.yaml")
        back = sqlite3.connect(p.path("runs/back/results.db"))
        keys = "SELECT inchikey FROM molecule ORDER BY inchikey"
        assert back.execute(keys).fetchall() == truth.execute(keys).fetchall()
        assert back.execute("SELECT DISTINCT geometry FROM molecule").fetchall() == [("input",)]


RANKED = """format: 1
name: %s
workdir: run
seed: %d
inputs: [%s]
stages:
  read: {}
  prepare: {conformers: {source: none}}
  rank: {objectives: [{property: mw, goal: %s}]%s}
%s"""


def results_of_other_settings_are_told():
    """A workflow that was edited after its run, or a run with overrides: every command that reads results names what differs."""
    with Project() as p:
        for folder in ("sub", "flow"):
            os.mkdir(p.path(folder))
        p.put("a.smi", "CCO a\n")
        p.put("sub/b.smi", "CCN b\nCCC c\n")
        both = "{path: a.smi}, {path: sub/b.smi}"

        def said(name, *way, expect=0):
            return p.run(name, *way, expect=expect)[2]

        def write(name="w", seed=1, inputs=both, goal="minimise", more="", last=""):
            return p.put("flow/w.yaml", RANKED % (name, seed, inputs.replace("path: ", "path: ../"), goal, more, last))
        asked = [["top"], ["failures"], ["report"], ["export", "csv"], ["show", "a"]]
        w = write()
        p.run("run", w)
        for way in asked:
            assert "note:" not in said(*way, w), way
        others = [
            ({"seed": 2}, "seed"), ({"inputs": "{path: a.smi}"}, "inputs"), ({"inputs": "{path: a.smi}, {path: sub/c.smi}"}, "inputs"),
            ({"inputs": "{path: a.smi}, {path: b.smi}"}, "inputs"), ({"inputs": "{path: a.smi, format: smi}, {path: sub/b.smi}"}, "inputs"),
            ({"goal": "maximise"}, "stages.rank"), ({"last": "  write: {csv: out.csv}\n"}, "stages.write"),
            ({"seed": 3, "inputs": "{path: sub/b.smi}", "goal": "maximise"}, "inputs, seed, stages.rank"),
        ]
        p.put("sub/c.smi", "CCF d\n")
        p.put("b.smi", "CCN b\nCCC c\n")
        for change, what in others:
            write(**change)
            for way in asked:
                err = said(*way, w)
                assert err.count("note: the last run had other settings than %s has now: %s; `molsieve plan" % (w, what)) == 1, (way, err)
        # what changes no result is no difference, nor is a folder that moved with its file
        for change in ({}, {"name": "other"}, {"last": "workers: 1\n"}):
            write(**change)
            assert "note:" not in said("top", w)
        write(last="  write: {csv: a.csv}\n")
        p.run("run", w)
        write(last="  write: {csv: b.csv}\n")
        assert "has now: stages.write;" in said("top", w)
        p.run("run", write(), "stages.rank.objectives.0.goal=maximise", "--delete-removed")
        assert "has now: stages.rank;" in said("top", w)
        assert "note:" not in said("top", p.path("flow/run"))


if __name__ == "__main__":
    main([results_can_be_asked_and_exported, results_of_other_settings_are_told])
