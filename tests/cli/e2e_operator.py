#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What may happen around a run: input files change, launchers leave unusual descriptors and signals,
names have unusual characters."""
import os
import re
import resource
import signal
import sqlite3
import subprocess

from sieve import Project, forget, in_format, main
from transcript_tools import esol

FLAT = "  read: {}\n  prepare: {conformers: {source: none}}\n"
# It has about a billion paths of 24 bonds: no machine finds them all in a moment.
C60 = ("c12c3c4c5c1c1c6c7c2c2c8c3c3c9c4c4c%10c5c5c1c1c6c6c%11c7c2c2c7c8c3c3c8c9c4c4c9c%10c5c5c1c1c6c6c%11c2c2c7c3c3c8c4c4c9c5"
       "c1c1c6c2c3c41")
BONDS = "  read: {}\n  prepare: {}\n  graph: {edges: bonds%s}\n"


def changed_content_is_noticed_despite_the_same_mtime():
    with Project() as p:
        a = p.put("a.smi", "CCO one\n")
        w = p.workflow([a], FLAT)
        p.run("run", w, "-q")
        was = os.stat(a)
        with open(a, "r+") as f:  # in place: the same inode and size
            f.write("CCN one\n")
        os.utime(a, ns=(was.st_atime_ns, was.st_mtime_ns))
        p.run("run", w, "-q")
        assert p.rows("SELECT smiles FROM molecule") == [("CCN",)], p.rows("SELECT smiles FROM molecule")


def a_setting_without_effect_reruns_nothing():
    with Project() as p:
        a = p.put("a.smi", "C one\n")
        p.run("run", p.workflow([a], BONDS % ""), "-q")
        w = p.workflow([a], BONDS % ", cutoff: 4, k: 3, max_neighbours: 9")
        assert "everything is done already" in p.run("run", w)[1]
        assert "cutoff: 5 -> 4" in p.run("plan", w, "stages.graph.edges=radius")[1] + p.run("explain", w, "graph", "stages.graph.edges=radius")[1]


def a_run_starts_with_standard_descriptors_closed():
    for closed in (1,), (2,), (0, 1, 2):
        with Project() as p:
            w = p.workflow([p.put("a.smi", "CCO one\n")], FLAT)
            p.run("check", w)
            ended = subprocess.run(p.command("run", w), cwd=p.dir, capture_output=True,
                                   preexec_fn=lambda: [os.close(fd) for fd in closed])
            assert ended.returncode == (6 if 1 in closed else 0), (closed, ended)  # the summary could not be written
            with open(p.path("run", ".lock")) as f:
                assert f.read().startswith("host "), closed
            assert p.one("SELECT state FROM run") == "done"


def a_closed_progress_pipe_does_not_stop_the_run():
    with Project() as p:
        w = p.workflow([p.put("a.smi", "CCO one\n")], FLAT)
        end, ours = os.pipe()
        os.close(end)
        ended = subprocess.run(p.command("run", w), cwd=p.dir, stderr=ours, stdout=subprocess.DEVNULL)
        os.close(ours)
        assert ended.returncode == 0 and p.one("SELECT state FROM run") == "done", ended


def workers_are_reaped_when_sigchld_is_ignored():
    with Project() as p:
        w = p.workflow([p.put("a.smi", "CCO one\n%s slow\n" % C60)], "  read: {}\n  prepare: {conformers: {source: none, cpu_limit: 200ms, "
                       "retry_cpu_limit: 200ms}, alerts: {rules: [\"*%s~[U] path\"]}}\n" % ("~*" * 24), extra="limits: {failures: {max_fraction: 1}}\n")
        p.run("run", w, "-q", preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        assert p.rows("SELECT code, signal FROM failure") == [("timeout", int(signal.SIGPROF))], p.rows("SELECT * FROM failure")


def a_file_size_limit_is_reported_and_the_run_resumes():
    with Project() as p:
        w = p.workflow([p.put("a.smi", "".join("C" * n + "O %d\n" % n for n in range(1, 40)) * 20)], "  read: {unit: 20}\n")
        for most in (60_000, 250_000):
            err = p.run("run", w, "-q", expect=6, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)))[2]
            assert "ulimit -f" in err, err
        p.run("run", w, "-q")
        assert p.one("SELECT count(*) FROM record") == 780


def a_fresh_run_gets_a_directory_beside_the_old_one():
    with Project() as p:
        w = p.workflow([p.put("a.smi", "CCO one\n")], FLAT, workdir="run/")
        p.run("run", w, "-q")
        p.run("run", w, "-q", "--fresh")
        assert sorted(d for d in os.listdir(p.dir) if d.startswith("run")) == ["run", "run-2"], os.listdir(p.dir)


def a_log_over_a_file_of_the_run_is_refused():
    with Project() as p:
        p.put("a.smi", "CCO one\nCCN two\n")
        p.put("parts.txt", "one train\n")
        w = p.workflow(["*.smi"], FLAT + "  split: {method: file, path: parts.txt}\n")
        for early in ("run/results.db", "run/../run/features.db"):  # before there is one
            os.makedirs(p.path("run"), exist_ok=True)
            assert "the run itself writes a file of that name" in p.run("run", w, "--log", early, expect=2)[2]
            assert os.listdir(p.path("run")) == []
        p.run("run", w, "-q")
        os.symlink("a.smi", p.path("link"))
        for name in ("a.smi", "./link", "parts.txt", "w.yaml", "run/results.db", "run/features.db"):
            was = open(p.path(name), "rb").read()
            _, _, err = p.run("run", w, "--force", "read", "--log", name, expect=2)
            assert "--log %s: " % name in err and "name another file" in err, err
            assert open(p.path(name), "rb").read() == was, name
        # Each line is in the file at once, so a kill loses none.
        for form in ("json", "text"):
            p.run("run", w, "--log", "run/log." + form, "--log-format", form, "--force", "read", expect=137,
                  env=dict(os.environ, MOLSIEVE_FAULT="read.unit.after_features:1"))
            assert "read" in open(p.path("run/log." + form)).read(), form
        p.run("run", w, "-q", "--verbose", "--log", "run/log.txt", "--force", "read")
        assert p.run("run", w, "--log", "nowhere/log.txt", expect=2)[2].count("No such file")


def columns(path):
    db = sqlite3.connect(path)
    tables = [t for t, in db.execute("SELECT name FROM sqlite_master WHERE type IN('table','view') AND name NOT LIKE 'sqlite_%'")]
    out = {t: sorted(c[1:5] for c in db.execute("PRAGMA table_info(%s)" % t)) for t in tables}
    docs = db.execute("SELECT * FROM column_doc ORDER BY 1, 2").fetchall()
    db.close()
    return out, docs


def a_database_of_an_older_format_resumes():
    with Project() as p:
        p.put("a.smi", "CCO one\nCCN two\nC(x bad\nOCCO three\nOCC again\n")
        w = p.workflow([p.path("a.smi")], FLAT + "  rank: {objectives: [{property: mw, goal: maximise}]}\n  write: {}\n",
                       extra="limits: {failures: {max_fraction: 1}}\n")
        p.run("run", w, "-q")
        now = p.path("run/results.db")
        forget(now)
        digest = p.run("db", "digest", "run")[1]
        fresh, top, status = columns(now), p.run("top", "run")[1], p.run("status", "run")[1]
        assert re.search(r"prepare +done +1 +4 +1 ", status) and re.search(r"rank +done +- +- +- ", status), status
        os.rename(now, p.path("now.db"))
        for version in (2, 3, 4, 5, 6, 7, 9, 10):
            if version > 2:
                os.remove(now)
            in_format(p.path("now.db"), now, version)
            assert columns(now) != fresh
            # Commands that only read change nothing.
            assert p.run("db", "digest", "run")[1] == digest and p.run("top", "run")[1] == top
            assert p.run("status", "run")[1] == status
            for command in (("report", "run"), ("export", "csv", "run"), ("failures", "run"), ("query", "v_hits", "run"), ("plan", w)):
                p.run(*command)
            assert columns(now) != fresh
            # A run migrates it and computes nothing again.
            assert "nothing ran" in p.run("run", w)[1]
            assert columns(now) == fresh and p.run("db", "digest", "run")[1] == digest and p.run("top", "run")[1] == top
            assert os.path.exists(now + ".format%d" % version)
            p.run("db", "check", "run")


STAGES = """  read: {unit: 12}
  prepare: {conformers: {source: none}, max_heavy_atoms: 14, labels: [logS], properties: {logS: {unit: "log10(mol/L)"}}}
  graph: {edges: topology}
  split: {method: random, fractions: {train: 0.7, valid: 0.15, test: 0.15}}
  train: {name: m, family: [gp], targets: [{name: logS, unit: "log10(mol/L)", better: high}]}
  evaluate: {on: [train, valid, test]}
  external: {command: [awk, '-F,', 'BEGIN { print "id,points" } NR > 1 { print $1 "," length($2) }', '{input}'], input: csv, output: csv, property: points, better: high}
  score: {}
  rank: {objectives: [{property: logS, goal: maximise}], top: 12}
"""
# Each is what changes against STAGES; the next one takes it back.
CHANGES = r"""
stages.prepare.max_heavy_atoms=11

stages.prepare.max_heavy_atoms=250
stages.external.property=letters; stages.external.unit=one
stages.read.unit=7; stages.split.repeat=1
stages.train.family=[trees]; stages.train.name=other
stages.evaluate.on=[test]; stages.external.better=low

stages.rank.top=3; stages.rank.objectives=[{property: points, goal: minimise}]
stages.prepare.keep=mw < 200
inputs=[{path: few.csv}]

"""


def what_was_made_with_other_settings_is_gone():
    """A run after a change stores what a fresh one does: a stage that runs again removes its rows, and no others."""
    with Project() as p:
        rows = ["%s,%s" % row for row in [("C(", 1), ("", 2)] + esol(90)]
        p.put("a.csv", "\n".join(["smiles,logS"] + rows) + "\n")
        p.put("few.csv", "\n".join(["smiles,logS"] + rows[20:] + rows[:2]) + "\n")
        w = p.workflow(["a.csv"], STAGES, extra="limits: {failures: {max_fraction: 1}}\n")
        seen = set()
        for k, line in enumerate(CHANGES.splitlines()[1:]):
            said = []
            for workdir in ("run", "fresh%d" % k):
                p.run("run", w, "-q", "-j", "2", "workdir=" + workdir, *filter(None, line.split("; ")))
                failures = p.rows("SELECT stage, code, message, record_id, mol_id FROM failure ORDER BY 1, 2, 4, 5", workdir=workdir)
                said.append((p.run("db", "digest", "--results-only", workdir)[1], failures, p.rows("SELECT name, unit FROM property ORDER BY 1, 2", workdir=workdir)))
            assert said[0] == said[1], (line, said)
            assert {"read", "prepare"} <= {f[0] for f in said[0][1]}, said
            seen.add(said[0][0])
        assert len(seen) == 10, len(seen)


def cpu_seconds_match_the_operating_system():
    """run.cpu_s and run.worker_cpu_s, and failure.cpu_s of a record that exceeds its time limit."""
    with Project() as p:
        p.put("a.smi", "CC(C)Cc1ccc(cc1)C(C)C(=O)O a\nCN1CCC[C@H]1c1cccnc1 b\nCCN(CC)CCNC(=O)c1ccc(N)cc1 c\n" + "C1CCC2C(C1)CCC3C2CCC4C3CCC5C4CCC6C5CCCC6" +
              "C" * 120 + " slow\n")
        w = p.workflow([p.path("a.smi")], "  read: {}\n  prepare: {conformers: {source: generate, builder: openbabel, cpu_limit: 0.2s, retry_cpu_limit: 0.3s}}\n",
                       extra="limits: {failures: {max_fraction: 1}}\n")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        p.run("run", w, "-q")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        counted = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        own, workers = p.rows("SELECT cpu_s, worker_cpu_s FROM run")[0]
        assert own > 0 and workers > 0 and 0.8 * counted <= own + workers <= counted + 0.1, (own, workers, counted)
        failed = p.rows("SELECT code, attempt, cpu_s FROM failure")
        assert [f[:2] for f in failed] == [("timeout", 2)], failed
        assert 0.4 < failed[0][2] < workers, (failed, workers)


main([what_was_made_with_other_settings_is_gone, cpu_seconds_match_the_operating_system, a_log_over_a_file_of_the_run_is_refused, a_database_of_an_older_format_resumes, changed_content_is_noticed_despite_the_same_mtime, a_setting_without_effect_reruns_nothing,
      a_run_starts_with_standard_descriptors_closed, a_closed_progress_pipe_does_not_stop_the_run,
      workers_are_reaped_when_sigchld_is_ignored, a_file_size_limit_is_reported_and_the_run_resumes,
      a_fresh_run_gets_a_directory_beside_the_old_one])
