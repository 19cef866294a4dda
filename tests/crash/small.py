#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every stage and command on a few molecules, for sanitizers and valgrind."""
import os
import shutil
import subprocess

from victim import EVERY_STAGE, Victim, sieve

STAGES = EVERY_STAGE.replace("epochs: 3", "epochs: 1").replace("molecules: 16", "molecules: 4").replace("unit: 20", "unit: 8")
COMMANDS = [["top", "-n", "3", "run"], ["status", "run"], ["failures", "run"], ["db", "check", "run"], ["db", "digest", "run"],
            ["query", "SELECT count(*) FROM molecule", "run"], ["export", "sdf", "run", "-o", "all.sdf.gz"], ["report", "run", "-n", "2"],
            ["model", "verify", "run/models/e2e.safetensors"], ["model", "info", "run/models/e2e.safetensors"],
            ["plan", "w.yaml"], ["check", "w.yaml"], ["explain", "w.yaml", "score"],
            ["script", "w.yaml", "-s", "slurm", "-a", "8", "--missing"], ["script", "w.yaml", "-s", "pbs", "-a", "8", "--merge"],
            ["script", "w.yaml", "-s", "sge", "-t", "2h", "--options=-x 'y'"], ["script", "w.yaml", "-s", "lsf", "-c", "4"]]


def every_stage_and_command_runs_clean():
    """A sanitizer's finding ends the process with another status; a worker leaves a log."""
    with Victim(24, STAGES) as v:
        for tool in ("ASAN", "TSAN", "UBSAN"):
            os.environ[tool + "_OPTIONS"] = "log_path=%s" % v.path("found")
        v.run("run", "w.yaml", "-q", "-j", "2")
        assert v.one("SELECT count(*) FROM record WHERE status='failed'") <= 3
        for words in COMMANDS:
            v.run(*words)
        v.run("run", "w.yaml", "-q", "stages.graph.cutoff=4", "stages.graph.edges=radius", "stages.basis.kind=sh_f32")
        v.run("db", "check", "run")
        for shard in ("0/2", "1/2"):
            v.run("run", "w.yaml", "-q", "-j", "2", "workdir=parts", "--shard", shard)
        v.run("status", "w.yaml", "--json")
        v.run("merge", "w.yaml", "workdir=parts")
        v.run("db", "check", "parts")
        found = [open(v.path(name)).read() for name in os.listdir(v.dir) if name.startswith("found")]
        assert not found, found[0]


def sanitized():
    with open(sieve.PROGRAM, "rb") as f:
        return b"__asan_init" in f.read() or b"__tsan_init" in open(sieve.PROGRAM, "rb").read()


def valgrind_finds_nothing():
    if not shutil.which("valgrind"):
        sieve.skip("valgrind is not installed")
    if sanitized():
        sieve.skip("valgrind does not run sanitized programs")
    watch = ["valgrind", "-q", "--error-exitcode=99", "--leak-check=full", "--show-leak-kinds=definite",
             "--errors-for-leak-kinds=definite"]
    env = dict(os.environ, MOLSIEVE_CPU="portable")  # instruction sets that valgrind knows
    with Victim(12, STAGES) as v:
        for words in (["run", "w.yaml", "-q", "-j", "2"], ["top", "-n", "3", "run"], ["db", "check", "run"]):
            p = subprocess.run(watch + v.command(*words), cwd=v.dir, env=env, capture_output=True, text=True, timeout=280)
            assert p.returncode == 0, (words, p.returncode, p.stdout, p.stderr)


if __name__ == "__main__":
    sieve.main([every_stage_and_command_runs_clean, valgrind_finds_nothing])
