#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills a real run again and again; the digest must be that of a run left alone.

    kill_loop.py WORKFLOW [KILLS] [--stage STAGE] [--max-ms MS] [--seed N] [-- stage.setting=value ...]

$MOLSIEVE is the program. With --stage the stages before it run once and are
copied, and only kills that hit that stage count. After every kill the database
must be sound; every run that gets through must give the digest of the
undisturbed one. Exit status 0: it held; 1: it did not; 77: no program."""
import argparse
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time


def options():
    argv = sys.argv[1:]
    cut = argv.index("--") if "--" in argv else len(argv)
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("workflow")
    p.add_argument("kills", type=int, nargs="?", default=200)
    p.add_argument("--stage")
    p.add_argument("--max-ms", type=float, default=0, help="longest life of a run; default: the undisturbed time")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--jobs", default="2")
    o = p.parse_args(argv[:cut])
    o.overrides = argv[cut + 1:]
    return o


class Loop:
    def __init__(self, o, program, base):
        self.o, self.program, self.base = o, program, base
        self.killed = os.path.join(base, "killed")
        self.ready = os.path.join(base, "ready")

    def call(self, *words, check=True):
        done = subprocess.run([self.program, *words], capture_output=True, text=True)
        if check and done.returncode != 0:
            sys.exit(f"molsieve {' '.join(words)}: status {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def run_words(self, where, *more):
        return ["run", self.o.workflow, f"workdir={where}", *self.o.overrides, "-q", "-j", self.o.jobs, *more]

    def digest(self, where):
        return self.call("db", "digest", where).stdout

    def stages_at_work(self):
        path = os.path.join(self.killed, "results.db")
        if not os.path.exists(path):
            return None
        db = sqlite3.connect(path)  # a writer: it recovers what the kill left behind
        try:
            sound = db.execute("PRAGMA quick_check").fetchone()[0]
            if sound != "ok":
                sys.exit(f"after a kill: {sound}")
            row = db.execute("SELECT group_concat(name,'+') FROM (SELECT name FROM stage WHERE state='running' "
                             "ORDER BY stage_id)").fetchone()
        except sqlite3.OperationalError:
            return None  # killed while the database was being made
        finally:
            db.close()
        return row[0] if row else None

    def stages(self):
        plan = self.call("plan", self.o.workflow, f"workdir={self.ready}", *self.o.overrides, "--json")
        return [s["stage"] for s in json.loads(plan.stdout)["stages"]]

    def start_over(self):
        shutil.rmtree(self.killed, ignore_errors=True)
        if os.path.isdir(self.ready):
            shutil.copytree(self.ready, self.killed)

    def timed(self, *words):
        before = time.time()
        self.call(*words)
        return time.time() - before

    def one_kill(self, shortest, longest):
        """None: the run finished; else the stages that were running, "read+prepare", or ''."""
        until = ["--until", self.o.stage] if self.o.stage else []
        child = subprocess.Popen([self.program, *self.run_words(self.killed, *until)], stderr=subprocess.PIPE,
                                 stdout=subprocess.DEVNULL)
        try:
            child.wait(timeout=random.uniform(shortest, longest))
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
        text = child.communicate()[1].decode(errors="replace")
        if child.returncode == 0:
            return None
        if child.returncode != -signal.SIGKILL:
            sys.exit(f"status {child.returncode} instead of a kill:\n{text}")
        return self.stages_at_work() or ""


def main():
    o = options()
    program = os.environ.get("MOLSIEVE") or shutil.which("molsieve")
    if not program:
        print("kill_loop: no program; set MOLSIEVE")
        return 77
    random.seed(o.seed)
    base = tempfile.mkdtemp(prefix="molsieve-kills-")
    try:
        return loop(Loop(o, program, base), o)
    finally:
        shutil.rmtree(base, ignore_errors=True)


def loop(lp, o):
    clean = os.path.join(lp.base, "clean")
    longest = 0.6 * lp.timed(*lp.run_words(clean))
    shortest = 0.002
    want = target = lp.digest(clean)
    if o.stage:
        names = lp.stages()
        if o.stage not in names:
            sys.exit(f"{o.stage}: the workflow has {', '.join(names)}")
        for earlier in names[:names.index(o.stage)]:
            lp.call(*lp.run_words(lp.ready, "--until", earlier))
            shortest = 0.8 * lp.timed(*lp.run_words(lp.ready, "--until", earlier))  # it only starts and ends at once
        lp.start_over()
        longest = lp.timed(*lp.run_words(lp.killed, "--until", o.stage))
        target = lp.digest(lp.killed)
    longest = max(o.max_ms / 1000 if o.max_ms else longest, shortest + 0.02)
    lp.start_over()
    counted, idle, through, hits = 0, 0, 0, {}
    while counted < o.kills:
        at = lp.one_kill(shortest, longest)
        if at is None:
            through += 1
            if lp.digest(lp.killed) != target:
                print(f"after {counted} kills the digest is\n{lp.digest(lp.killed)}instead of\n{target}")
                return 1
            lp.start_over()
            continue
        hits[at or "(between)"] = hits.get(at or "(between)", 0) + 1
        good = not o.stage or o.stage in at.split("+")
        counted += good
        idle = 0 if good else idle + 1
        if idle > 300:
            sys.exit(f"stage {o.stage} is too short to be hit: {hits}")
    lp.call(*lp.run_words(lp.killed))
    lp.call("db", "check", lp.killed)
    if lp.digest(lp.killed) != want:
        print(f"after {counted} kills the digest is\n{lp.digest(lp.killed)}instead of\n{want}")
        return 1
    told = ", ".join(f"{k} {v}" for k, v in sorted(hits.items()))
    print(f"{counted} kills, {through} runs got through, same digest; kills by stage: {told}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
