#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""engine: cuda and auto from outside, with the emulated plugin and without a driver."""
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.environ.get("MOLSIEVE") or shutil.which("molsieve")
MODEL = os.path.join(os.environ.get("MOLSIEVE_SOURCE", "."), "workflows", "models", "esol.safetensors")
EMULATED = os.environ.get("MOLSIEVE_EMULATED", "")

WORKFLOW = f"""format: 1
name: try
inputs:
  - path: a.smi
models:
  esol: {{path: {MODEL}}}
stages:
  read: {{}}
  prepare: {{}}
  graph: {{edges: bonds}}
  basis: {{}}
  score: {{models: [esol]}}
"""


class Cuda(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="molsieve-test-")
        for name, text in (("a.smi", "CCO ethanol\nCC(=O)O acid\n"), ("w.yaml", WORKFLOW)):
            with open(os.path.join(self.dir, name), "w") as f:
                f.write(text)

    def tearDown(self):
        shutil.rmtree(self.dir, ignore_errors=True)

    def sieve(self, *words, status=0, plugins=EMULATED, **env):
        done = subprocess.run([PROGRAM, *words], cwd=self.dir, capture_output=True, text=True,
                              env={**os.environ, "MOLSIEVE_PLUGINS": plugins, **env})
        self.assertEqual(done.returncode, status, f"{words}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def scores(self, engine, **env):
        said = self.sieve("run", "w.yaml", f"workdir=runs/{engine}", f"stages.score.engine={engine}", **env)
        db = sqlite3.connect(os.path.join(self.dir, "runs", engine, "results.db"))
        try:
            return said, [s for (s,) in db.execute("SELECT mean FROM score ORDER BY mol_id")]
        finally:
            db.close()

    def test_scores_of_both_engines_agree(self):
        cpu = self.scores("cpu")[1]
        cuda = self.scores("cuda")[1]
        self.assertEqual(len(cpu), 2)
        self.assertNotEqual(cpu, [0, 0])
        for a, b in zip(cpu, cuda):
            self.assertLess(abs(a - b), 1e-4)

    def test_without_a_driver_cuda_is_refused_and_auto_is_the_cpu(self):
        said = self.sieve("check", "w.yaml", "stages.score.engine=cuda", status=2, MOLSIEVE_EMULATOR_NO_DRIVER="1")
        self.assertIn("no NVIDIA driver", said)
        said, auto = self.scores("auto", MOLSIEVE_EMULATOR_NO_DRIVER="1")
        self.assertIn("engine auto: the cpu; engine cuda: no NVIDIA driver", said)
        self.assertEqual(auto, self.scores("cpu")[1])

    def test_doctor_says_what_there_is(self):
        self.assertIn("emulator, compute capability 8.0", self.sieve("doctor"))


if __name__ == "__main__":
    if not EMULATED:
        print("MOLSIEVE_EMULATED is not set: no emulated plugin")
        sys.exit(77)
    unittest.main(verbosity=2)
