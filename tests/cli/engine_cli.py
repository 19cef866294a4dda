#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run, plan, explain, status, failures, retry and db from outside, on real molecules."""
import csv
import io
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
import unittest

from sieve import PROGRAM, until

SMILES = """CCO ethanol
c1ccccc1 benzene
CC(=O)Oc1ccccc1C(=O)O aspirin
xxnope bad
CCN ethylamine
CCO again
ClC(Cl)Cl chloroform
CN1C=NC2=C1C(=O)N(C(=O)N2C)C caffeine
"""

WORKFLOW = """format: 1
name: try
inputs:
  - path: a.smi
limits: {failures: {max_fraction: 1}}
stages:
  read: {unit: 2}
  prepare: {}
  graph: {cutoff: 5}
  basis: {}
"""


class Engine(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="molsieve-test-")
        self.write("a.smi", SMILES)
        self.write("w.yaml", WORKFLOW)

    def tearDown(self):
        shutil.rmtree(self.dir, ignore_errors=True)

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w") as f:
            f.write(text)

    def sieve(self, *words, status=0, env=None):
        done = subprocess.run([PROGRAM, *words], cwd=self.dir, capture_output=True, text=True,
                              env={**os.environ, **(env or {})})
        self.assertEqual(done.returncode, status, f"{words}\n{done.stdout}{done.stderr}")
        return done

    def states(self, *words):
        plan = json.loads(self.sieve("plan", "w.yaml", *words, "--json").stdout)
        return {s["stage"]: s["state"] for s in plan["stages"]}

    def digest(self, where="runs/try"):
        return self.sieve("db", "digest", where).stdout

    def sql(self, text, where="runs/try"):
        db = sqlite3.connect(self.path(where, "results.db"))
        try:
            return db.execute(text).fetchall()
        finally:
            db.close()

    def test_plan_and_dry_run_write_nothing(self):
        out = self.sieve("plan", "w.yaml").stdout
        self.assertIn("never run", out)
        self.assertIn("4 of 4 stages to run", out)
        self.assertIn("free", out)
        self.sieve("run", "w.yaml", "-n")
        self.assertFalse(os.path.exists(self.path("runs")))

    def test_units_are_small_where_structures_are_built(self):
        self.write("b.smi", "".join("C" * n + x + "\n" for n in range(1, 16) for x in ("O", "N", "F", "Cl")))
        self.write("b.yaml", "format: 1\nname: try\ninputs: [{path: b.smi}]\nstages:\n  read: {}\n  prepare: {}\n")
        for source, n in (("none", 1), ("auto", 1), ("generate", 2)):
            self.sieve("run", "b.yaml", f"workdir=runs/{source}", f"stages.prepare.conformers.source={source}", "-j", "2")
            units = self.sql("SELECT n_units FROM stage WHERE name IN ('read','prepare')", "runs/" + source)
            self.assertEqual(units, [(n,)] * 2, source)
        self.sieve("run", "b.yaml", "stages.read.unit=20", "workdir=runs/own", "-j", "2")
        self.assertEqual(self.sql("SELECT n_units FROM stage WHERE name='read'", "runs/own"), [(3,)])

    def test_a_run_ends_with_the_funnel_and_a_rerun_does_nothing(self):
        first = self.sieve("run", "w.yaml", "-j", "2")
        self.assertIn("8 records: 6 ok, 1 duplicate, 0 filtered, 1 failed -> 6 molecules", first.stdout)
        self.assertIn("results: runs/try/results.db", first.stdout)
        self.assertEqual(first.stdout.count("\n  molsieve "), 4)
        before = self.digest()
        again = self.sieve("run", "w.yaml")
        self.assertIn("nothing ran", again.stdout)
        self.assertEqual(self.digest(), before)
        self.assertEqual(self.sql("SELECT count(*) FROM run WHERE state='done'"), [(2,)])

    def test_comments_order_paths_and_workers_change_nothing(self):
        self.sieve("run", "w.yaml", "-q")
        shutil.copy(self.path("a.smi"), self.path("renamed.smi"))
        self.write("sub/v.yaml", "# a comment\nstages:\n  basis: {}\n  graph: {cutoff: 5.0}  # the same\n  prepare:\n"
                   "  read:\n    unit: 2\nname: other\nworkers: 3\nworkdir: ../runs/try\n"
                   "inputs:\n  - {path: ../renamed.smi}\nlimits: {failures: {max_fraction: 1}}\nformat: 1\n")
        plan = json.loads(self.sieve("plan", "sub/v.yaml", "--json").stdout)
        self.assertEqual({s["state"] for s in plan["stages"]}, {"done"})

    def test_a_setting_is_explained_and_reruns_its_stages(self):
        self.sieve("run", "w.yaml", "-q")
        self.assertEqual(self.states("stages.graph.cutoff=4"),
                         {"read": "done", "prepare": "done", "graph": "again", "basis": "again"})
        out = self.sieve("explain", "w.yaml", "graph", "stages.graph.cutoff=4").stdout
        self.assertIn("cutoff: 5 -> 4", out)
        self.assertIn("needs graph", self.sieve("explain", "w.yaml", "basis", "stages.graph.cutoff=4").stdout)
        self.sieve("run", "w.yaml", "-q", "stages.graph.cutoff=4")
        self.sieve("run", "w.yaml", "-q", "stages.graph.cutoff=4", "workdir=clean")
        self.assertEqual(self.digest(), self.digest("clean"))

    def test_changed_input_runs_again_and_says_which_hash(self):
        self.sieve("run", "w.yaml", "-q")
        os.utime(self.path("a.smi"), (1, 1))
        self.assertEqual(set(self.states().values()), {"done"})
        self.write("a.smi", SMILES + "CCCl more\n")
        self.assertEqual(self.states()["read"], "again")
        self.assertIn("sha256", self.sieve("explain", "w.yaml", "read").stdout)

    def test_until_force_from_and_fresh(self):
        self.sieve("run", "w.yaml", "-q", "--until", "prepare")
        self.assertEqual(self.states(), {"read": "done", "prepare": "done", "graph": "run", "basis": "run"})
        self.sieve("run", "w.yaml", "-q")
        before = self.digest()
        self.sieve("run", "w.yaml", "-q", "--force", "graph")
        self.assertEqual(self.sql("SELECT DISTINCT run_id FROM unit ORDER BY 1"), [(1,), (3,)])
        self.sieve("run", "w.yaml", "-q", "--from", "prepare")
        self.assertEqual(self.digest(), before)
        self.sieve("run", "w.yaml", "-q", "--fresh")
        self.assertEqual(self.digest("runs/try-2"), before)

    def test_wrong_options_are_status_2_and_say_what_is_right(self):
        for words, says in [(("--force", "grph"), "did you mean graph"), (("-j", "0"), "1 to 4096"),
                            (("--max-time", "soon"), "3h50m"), (("--log-format", "xml"), "text or json")]:
            self.assertIn(says, self.sieve("run", "w.yaml", *words, status=2).stderr)
        self.assertIn("did you mean digest", self.sieve("db", "digst", status=2).stderr)

    def test_status_failures_and_db_read_what_is_there(self):
        self.sieve("run", "w.yaml", "-q")
        status = json.loads(self.sieve("status", "--json").stdout)
        self.assertEqual(status["run"]["state"], "done")
        self.assertEqual([s["stage"] for s in status["stages"]], ["read", "prepare", "graph", "basis"])
        self.assertIn("run 1 (run): done", self.sieve("status", "w.yaml").stdout)
        self.assertIn("prepare   parse", self.sieve("failures").stdout)
        rows = list(csv.DictReader(io.StringIO(self.sieve("failures", "--csv").stdout)))
        self.assertEqual([r["title"] for r in rows], ["bad"])
        self.assertTrue(rows[0]["place"].endswith("a.smi:4"))
        self.assertEqual(json.loads(self.sieve("failures", "--json").stdout)["code"], "parse")
        self.assertNotIn("BAD", self.sieve("db", "check").stdout)
        self.assertIn("inchikey", self.sieve("db", "schema").stdout)
        self.sieve("db", "backup", "--to", "copy.db")
        self.assertEqual(self.sieve("db", "digest", "copy.db", "--results-only").stdout,
                         self.sieve("db", "digest", "--results-only").stdout)
        self.assertIn("exists already", self.sieve("db", "backup", "--to", "copy.db", status=6).stderr)
        self.sieve("run", "w.yaml", "-q", "stages.graph.cutoff=4")
        self.assertRegex(self.sieve("db", "prune", "w.yaml").stdout, r"^[1-9]\d* blocks removed")
        self.assertNotIn("BAD", self.sieve("db", "check").stdout)

    def test_prune_of_features_that_others_use(self):
        both = "storage.features=%s/both.db" % self.dir
        self.sieve("run", "w.yaml", "-q", both, "workdir=one")
        self.sieve("run", "w.yaml", "-q", both, "workdir=two", "stages.graph.cutoff=4")
        whole = self.sieve("db", "digest", "two").stdout
        self.assertIn("other workflows may use it", self.sieve("db", "prune", "w.yaml", both, "workdir=one", status=2).stderr)
        self.assertIn("\n0 blocks", "\n" + self.sieve("db", "prune", "w.yaml", both, "workdir=one", "two").stdout)
        self.assertEqual(whole, self.sieve("db", "digest", "two").stdout)
        self.assertIn("nowhere", self.sieve("db", "prune", "w.yaml", both, "workdir=one", "nowhere.db", status=6).stderr)
        self.assertRegex(self.sieve("db", "prune", "w.yaml", both, "workdir=one", "--alone").stdout, r"^[1-9]\d* blocks")

    def test_drawings(self):
        self.assertIn("prepare -> graph;", self.sieve("plan", "w.yaml", "--dag", "dot").stdout)
        self.assertIn("prepare --> graph", self.sieve("plan", "w.yaml", "--dag", "mermaid").stdout)
        self.assertIn("graph     [run] <- prepare", self.sieve("plan", "w.yaml", "--dag", "text").stdout)
        self.assertIn("text, dot or mermaid", self.sieve("plan", "w.yaml", "--dag", "png", status=2).stderr)

    def test_retry_runs_the_stage_of_the_failures_again(self):
        self.sieve("run", "w.yaml", "-q")
        before = self.digest()
        self.assertIn("nothing to retry", self.sieve("retry", "w.yaml", "--code", "timeout").stderr)
        out = self.sieve("retry", "w.yaml", "--code", "parse")
        self.assertIn("1 failure of stage prepare", out.stderr)
        self.assertEqual(self.sql("SELECT command FROM run ORDER BY run_id"), [("run",), ("retry",)])
        self.assertEqual(self.sql("SELECT count(*) FROM failure"), [(1,)])
        self.assertEqual(self.digest(), before)

    def test_a_stopped_rerun_resumes_with_the_same_command(self):
        self.sieve("run", "w.yaml", "-q")
        before = self.digest()
        for words in (["retry", "w.yaml", "--code", "parse"], ["run", "w.yaml", "--force", "prepare"], ["run", "w.yaml", "--from", "prepare"]):
            for _ in range(2):  # the failure is in the second unit
                self.sieve(*words, status=137, env={"MOLSIEVE_FAULT": "prepare.unit.after_commit:1"})
            self.sieve(*words)
            self.assertEqual(self.sql("SELECT count(DISTINCT u.run_id) FROM unit u JOIN stage s USING(stage_id) WHERE name='prepare'"),
                             [(3,)], words)
            self.assertEqual(self.digest(), before)

    def test_the_log_is_json_where_asked(self):
        self.sieve("run", "w.yaml", "--log", "log.jsonl", "--log-format", "json")
        with open(self.path("log.jsonl")) as f:
            lines = [json.loads(line) for line in f]
        self.assertTrue(any("prepare" in line["message"] for line in lines))
        self.assertTrue(all(set(line) == {"time", "level", "message"} for line in lines))

    def test_limits_end_with_their_own_status(self):
        bad = "".join(f"xx{i} bad{i}\n" for i in range(40))
        self.write("a.smi", bad + SMILES)
        out = self.sieve("run", "w.yaml", "-q", "limits.failures.max_fraction=0.1", status=3)
        self.assertIn("parse", out.stderr)
        self.sieve("run", "w.yaml", "-q", "limits.failures.max_fraction=0.1", "-k", status=3)
        self.assertEqual(set(self.states().values()), {"done"})
        self.assertIn("disk_free_min", self.sieve("run", "w.yaml", "-q", "limits.disk_free_min=1000000GiB", status=6).stderr)
        db = sqlite3.connect(self.path("runs/try/results.db"))
        db.executescript("DELETE FROM row_sum; PRAGMA user_version=999")
        db.close()
        self.assertIn("newer molsieve", self.sieve("run", "w.yaml", "-q", status=5).stderr)

    # ---- stopping ----

    def big(self, n=180):
        self.write("a.smi", "".join(f"{'C' * (3 + i % 30)}OC{'N' if i % 3 else 'S'}C{'C' * (i % 7)} m{i}\n" for i in range(n)))

    def start(self, *words, **more):
        child = subprocess.Popen([PROGRAM, "run", "w.yaml", "-q", *words], cwd=self.dir, stderr=subprocess.PIPE, text=True,
                                 **more)
        def begun():
            self.assertIsNone(child.poll(), "the run ended before it could be stopped")
            try:
                return self.sql("SELECT (SELECT count(*) FROM unit JOIN stage USING(stage_id) WHERE name='prepare')>2 AND "
                                "EXISTS(SELECT 1 FROM run WHERE state='running')") == [(1,)]
            except sqlite3.OperationalError:
                return False

        until(begun, "no unit was stored", pause=0.005)
        return child

    def test_signals_stop_with_75_and_the_same_command_goes_on(self):
        self.big()
        self.sieve("run", "w.yaml", "-q", "workdir=clean")
        for sig in (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):
            child = self.start()
            child.send_signal(sig)
            text = child.communicate()[1]
            self.assertEqual(child.returncode, 75, text)
            self.assertIn("run the same command again", text)
        child = self.start(start_new_session=True)
        os.killpg(child.pid, signal.SIGINT)  # Ctrl-C reaches the workers too
        self.assertEqual((child.communicate(), child.returncode)[1], 75)
        self.sieve("run", "w.yaml", "-q")
        self.assertEqual(self.digest(), self.digest("clean"))
        self.assertEqual(self.sql("SELECT count(*) FROM run WHERE exit_code=75"), [(4,)])

    def test_the_second_run_is_told_who_holds_the_lock(self):
        self.big()
        child = self.start()
        child.send_signal(signal.SIGSTOP)
        try:
            text = self.sieve("run", "w.yaml", "-q", status=4).stderr
            self.assertIn(f"pid {child.pid}", text)
            self.assertIn(": running", self.sieve("status").stdout)
        finally:
            child.kill()
            child.send_signal(signal.SIGCONT)
            child.communicate()
        self.assertIn(": lost", self.sieve("status").stdout)
        self.sieve("run", "w.yaml", "-q")
        self.assertEqual(self.sql("SELECT state,resumed_from FROM run ORDER BY run_id"), [("lost", None), ("done", 1)])

    def test_max_time_stops_with_75(self):
        self.big(40000)  # many times what a second is enough for
        self.sieve("run", "w.yaml", "-q", "--max-time", "0.01s", status=75)
        end = str(int(time.time()) - 60)  # a second is left, as is always
        text = self.sieve("run", "w.yaml", "-q", "--max-time", "auto", status=75, env={"SLURM_JOB_END_TIME": end}).stderr
        self.assertIn("the time limit", text)


if __name__ == "__main__":
    unittest.main(verbosity=1)
