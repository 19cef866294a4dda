#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`molsieve status --prometheus`: read by Prometheus' own parser, the counts of the database."""
import json
import subprocess

from python_env import environment
from sieve import Project, data, lines_of, main

PACKAGE = ["prometheus_client"]
PARSE = ("import json,sys\nfrom prometheus_client.parser import text_string_to_metric_families as read\n"
         "print(json.dumps([[f.name, f.type, f.documentation, [[s.labels, s.value] for s in f.samples]] for f in read(sys.stdin.read())]))\n")


def metrics(p, where):
    text = p.run("status", where, "--prometheus")[1]
    done = subprocess.run([environment("prometheus-env", PACKAGE), "-c", PARSE], input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    families = json.loads(done.stdout)
    names = [f[0] for f in families]
    assert len(names) == len(set(names)) and all(f[1] == "gauge" and f[2] for f in families), text
    return {f[0]: f[3] for f in families}


def value(samples, **labels):
    got = [v for has, v in samples if labels.items() <= has.items()]
    assert len(got) == 1, (labels, samples)
    return got[0]


def prometheus_reads_metrics_with_the_counts_of_the_database():
    environment("prometheus-env", PACKAGE)
    with Project() as p:
        where = 'odd "name" \\ here'
        p.put("in.smi", lines_of(data("library.smi"), 60) + b"C1CC( bad\n[Xe] noble\n")
        p.workflow(["in.smi"], "  read: {unit: 20}\n  prepare: {conformers: {source: none}}\n", extra="limits: {failures: {max_fraction: 1}}\n")
        p.run("run", "w.yaml", "-q", "workdir=" + where)
        got = metrics(p, where)
        assert [s[0]["state"] for s in got["molsieve_run_state"] if s[1]] == ["done"]
        assert {s[0]["results"] for f in got.values() for s in f} == {where + "/results.db"}
        status = json.loads(p.run("status", where, "--json")[1])
        for stage in status["stages"]:
            name = stage["stage"]
            assert value(got["molsieve_stage_done"], stage=name) == 1
            assert value(got["molsieve_stage_records"], stage=name, result="ok") == stage["ok"]
            assert value(got["molsieve_stage_records"], stage=name, result="failed") == stage["failed"]
            assert value(got["molsieve_stage_units"], stage=name) == value(got["molsieve_stage_units_done"], stage=name) == stage["units"]
        failures = {(f["stage"], f["code"]): f["n"] for f in status["failures"]}
        assert sum(failures.values()) > 0 and {(s[0]["stage"], s[0]["code"]): s[1] for s in got["molsieve_failures"]} == failures
        started = p.rows("SELECT CAST(strftime('%s', started_utc) AS INTEGER) FROM run", workdir=where)[0][0]
        assert value(got["molsieve_run_start_time_seconds"]) == started
        p.run("status", where, "--prometheus", "--json", expect=2)


def shards_and_a_run_elsewhere_are_told_by_their_heartbeats():
    environment("prometheus-env", PACKAGE)
    with Project() as p:
        p.put("in.smi", lines_of(data("library.smi"), 40))
        p.workflow(["in.smi"], "  read: {unit: 20}\n  prepare: {conformers: {source: none}}\n")
        p.run("run", "w.yaml", "-q", "workdir=runs", "--shard", "0/2")
        assert value(metrics(p, "runs")["molsieve_shards"], state="done") == 1
        p.run("run", "w.yaml", "-q", "workdir=far")
        beat = json.load(open(p.path("far/heartbeat.json")))
        del beat["crc32"]
        beat.update(state="running", host="elsewhere")
        beat["stages"] = [{"stage": "prepare", "state": "running", "item": "records", "done": 7, "total": 40, "note": ""},
                          {"stage": "train", "state": "running", "item": "steps", "done": 1, "total": -1, "note": ""}]
        p.put("far/heartbeat.json", json.dumps(beat))
        got = metrics(p, "far")
        assert value(got["molsieve_stage_items_done"], stage="prepare", item="records") == 7
        assert got["molsieve_stage_items"] == [[{"results": "far/results.db", "stage": "prepare", "item": "records"}, 40]], got
        assert value(got["molsieve_run_state"], state="done") == 0


main([prometheus_reads_metrics_with_the_counts_of_the_database, shards_and_a_run_elsewhere_are_told_by_their_heartbeats])
