#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""engine: cuda and auto from outside, with the emulated plugin and without a driver."""
import glob
import json
import os
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
import unittest

import sieve
from train_e2e import tensors

PROGRAM = sieve.PROGRAM
MODEL = os.path.join(os.environ["MOLSIEVE_SOURCE"], "workflows", "models", "esol.safetensors")
GAP = os.path.join(os.path.dirname(MODEL), "qm9-gap.safetensors")
EMULATED = os.environ["MOLSIEVE_EMULATED"]

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
  score: {{models: [esol], mirror: as_is}}
"""

TRAIN = """format: 1
name: learn
inputs:
  - {path: b.csv, format: csv, columns: {smiles: smiles, title: name}}
stages:
  read: {}
  prepare: {labels: [logS]}
  graph: {edges: bonds}
  split: {fractions: {train: 0.8, valid: 0.2, test: 0}}
  train:
    name: learn
    engine: cuda
    targets: [{name: logS, unit: "log10(mol/L)", better: high}]
    model: {layers: 1, degrees: 2, channels: 4, heads: 2}
    batch: {molecules: 4}
    epochs: 3
    ema: 0.9
    checkpoint: {every: 1s}
"""
SMALL = ("C N O F Cl Br CO CN CF CCl CBr C=O C#N C=C C#C CC OF NO NF ClF OCl NCl C=N CS S SF SCl BrF BrCl").split()
DATA = os.path.join(os.environ["MOLSIEVE_SOURCE"], "workflows", "data", "esol.csv")


class Cuda(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="molsieve-test-")
        for name, text in (("a.smi", "CO methanol\nO water\n"), ("w.yaml", WORKFLOW)):
            with open(os.path.join(self.dir, name), "w") as f:
                f.write(text)

    def tearDown(self):
        shutil.rmtree(self.dir, ignore_errors=True)

    def attempt(self, *words, plugins=EMULATED, **env):
        return subprocess.run([PROGRAM, *words], cwd=self.dir, capture_output=True, text=True,
                              env={**os.environ, "MOLSIEVE_PLUGINS": plugins, **env})

    def sieve(self, *words, status=0, **env):
        done = self.attempt(*words, **env)
        self.assertEqual(done.returncode, status, f"{words}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def scores(self, engine, *words, **env):
        said = self.sieve("run", "w.yaml", f"workdir=runs/{engine}", f"stages.score.engine={engine}", *words, **env)
        db = sqlite3.connect(os.path.join(self.dir, "runs", engine, "results.db"))
        try:
            return said, [s for (s,) in db.execute("SELECT mean FROM score ORDER BY mol_id")]
        finally:
            db.close()

    def test_scores_of_both_engines_agree(self):
        cpu = self.scores("cpu", "stages.score.mirror=average")[1]
        cuda = self.scores("cuda", "stages.score.mirror=average")[1]
        self.assertEqual(len(cpu), 2)
        self.assertNotEqual(cpu, [0, 0])
        for a, b in zip(cpu, cuda):
            self.assertLess(abs(a - b), 1e-4)

    def test_products_by_cublaslt(self):
        library = {"MOLSIEVE_CUBLASLT": os.path.join(EMULATED, "libcublasLt.so")}
        own = self.scores("cuda", **library)[1]
        there = self.scores("cuda", "stages.score.products=cublaslt", **library)[1]
        self.assertEqual(len(there), 2)
        for a, b in zip(own, there):
            self.assertLess(abs(a - b), 1e-4)
        db = sqlite3.connect(os.path.join(self.dir, "runs", "cuda", "results.db"))
        try:
            kernels = [k for (k,) in db.execute("SELECT kernels FROM run ORDER BY run_id")]
        finally:
            db.close()
        self.assertNotIn("cuBLASLt", kernels[0])
        self.assertIn("cuBLASLt 13.1.0", kernels[-1])
        said = self.sieve("check", "w.yaml", "stages.score.engine=cuda", "stages.score.products=cublaslt", status=2,
                          MOLSIEVE_CUBLASLT="/nowhere/libcublasLt.so")
        self.assertRegex(said, "products: cublaslt: MOLSIEVE_CUBLASLT: /nowhere/libcublasLt.so: .*; install it, or set products: own")
        said = self.sieve("check", "w.yaml", "stages.score.products=cublaslt", status=2, **library)
        self.assertIn("score: products is for engine cuda, but the engine is another", said)
        self.assertRegex(self.attempt("doctor", **library).stdout, r"ok +products +cuBLASLt 13\.1\.0 is here")
        said = self.sieve("bench", "--model", MODEL, "--molecules", "a.smi", "--batch", "2", "--graphs", "bonds", "--seconds", "0",
                          "--threads", "1", "--roofline", "--variants", "cuda nodes fp32", **library)
        self.assertIn("| operation | us | us, cuBLASLt | of step |", said)
        self.assertRegex(said, r"\| radial +\| +\d+ \| +\d+ \|")

    def test_several_models_at_once_score_as_one_after_the_other(self):
        """Two models that read the same batch, and one that reads another and does not know bromine."""
        both = WORKFLOW.replace("stages:", f"  again: {{path: again.safetensors}}\n  gap: {{path: {GAP}}}\nstages:")
        shutil.copy(MODEL, os.path.join(self.dir, "again.safetensors"))
        rows = {}
        with open(os.path.join(self.dir, "a.smi"), "a") as f:
            f.write("CBr bromide\nCF fluoride\n")
        for name, models, settings in (("all", "[esol, gap, again]", ["stages.score.batch.molecules=3"]),
                                       ("esol", "[esol]", []), ("gap", "[gap]", [])):
            with open(os.path.join(self.dir, "w.yaml"), "w") as f:
                f.write(both.replace("[esol]", models))
            self.sieve("run", "w.yaml", f"workdir=runs/{name}", "stages.score.engine=cuda", *settings)
            db = sqlite3.connect(os.path.join(self.dir, "runs", name, "results.db"))
            try:
                rows[name] = db.execute("SELECT property.name, mol_id, value FROM prediction JOIN property USING(property_id) "
                                        "ORDER BY 1, 2").fetchall()
            finally:
                db.close()
        self.assertEqual(len(rows["gap"]), 3)
        self.assertEqual(sorted(2 * rows["esol"] + rows["gap"]), sorted(rows["all"]))

    def test_a_bench_of_steps_that_are_left_out_is_none(self):
        """Skipped steps are faster than steps that change the weights."""
        with open(MODEL, "rb") as f:
            model = bytearray(sieve.without_checksum(f.read()))
        body = 8 + struct.unpack("<Q", model[:8])[0]
        for name, of in json.loads(model[8:body]).items():
            if name.startswith("mlp."):
                self.assertEqual(of["dtype"], "BF16")
                first, end = (body + at for at in of["data_offsets"])
                value = b"\x00\x00" if name == "mlp.0.weight" else b"\x96\x7e" # 0; 1e38, whatever the molecule is
                model[first:end] = value * ((end - first) // 2)
        with open(os.path.join(self.dir, "huge.safetensors"), "wb") as f:
            f.write(model)
        said = self.sieve("bench", "--model", "huge.safetensors", "--molecules", "a.smi", "--batch", "1", "--graphs", "bonds",
                          "--seconds", "0.01", "--threads", "1", "--no-reference", "--variants", "cuda nodes tf32", status=5)
        self.assertRegex(said, "cuda nodes tf32: loss or gradient is not finite, so training steps are skipped")

    def structures(self, name, *words, **env):
        """The text of a run up to prepare, its rows of molecules, and where they were computed."""
        said = self.sieve("run", "w.yaml", f"workdir=runs/{name}", "--until", "prepare", *words, **env)
        db = sqlite3.connect(os.path.join(self.dir, "runs", name, "results.db"))
        try:
            rows = db.execute("SELECT smiles, energy, built_by, steps, converged FROM molecule ORDER BY mol_id").fetchall()
            level = db.execute("SELECT json_extract(kernels,'$.prepare') FROM run ORDER BY run_id DESC").fetchone()[0]
        finally:
            db.close()
        return said, rows, level

    def test_structures_are_built_on_the_device_that_is_asked_for(self):
        with open(os.path.join(self.dir, "a.smi"), "w") as f:
            f.write("CC(N)C(=O)O a\nc1ccccc1O b\nCCO c\nC[Si](C)(C)C d\nB(O)O e\nO=C1CCCCC1 f\n")
        cpu = self.structures("cpu")
        cuda = self.structures("cuda", "stages.prepare.conformers.device=cuda")
        self.assertNotIn("cuda", cpu[2])
        self.assertIn("and cuda (emulator, compute capability 8.0)", cuda[2])
        self.assertEqual([r[0] for r in cpu[1]], [r[0] for r in cuda[1]])
        self.assertEqual([r[2] for r in cuda[1]].count("native"), 5)
        self.assertEqual([r[2] for r in cuda[1]].count("openbabel"), 1) # boron
        for a, b in zip(cpu[1], cuda[1]):
            self.assertLess(abs(a[1] - b[1]), 5)
            self.assertTrue(b[4] or b[2] == "openbabel")
        self.assertEqual(cuda[1:], self.structures("units", "stages.prepare.conformers.device=cuda", "stages.read.unit=2", "-j", "3")[1:])
        self.assertEqual(cpu[1:], self.structures("engine", "stages.score.engine=cuda")[1:])
        # A stage's engine does not make structures again; `cuda` where they were the CPU's does, and from no cache of the CPU's.
        self.assertNotIn("structures built", self.structures("cpu", "stages.score.engine=cuda")[0])
        self.assertIn("6 structures built, 0 from the cache", self.structures("cpu", "stages.prepare.conformers.device=cuda")[0])

    def test_structures_on_a_device_that_is_not_there_or_fails(self):
        asked = "stages.prepare.conformers.device=cuda"
        said = self.sieve("check", "w.yaml", asked, status=2, MOLSIEVE_EMULATOR_NO_DRIVER="1")
        self.assertIn("prepare.conformers.device: building structures on a GPU: no NVIDIA driver", said)
        said = self.sieve("check", "w.yaml", asked, "stages.prepare.conformers.builder=openbabel", status=2)
        self.assertIn("only the native builder has `device: cuda`", said)
        said = self.sieve("run", "w.yaml", "workdir=runs/fault", "--until", "prepare", asked, status=7, MOLSIEVE_EMULATOR_FAULT="7")
        self.assertIn("building structures on a GPU: ", said)
        self.assertIn("an illegal memory access was encountered", said)
        self.assertEqual(len(self.structures("fault", asked)[1]), 2) # and goes on

    def conformers(self, *words, said="", **env):
        """The structures that `conformers` writes; `said` is among its words."""
        self.assertIn(said, self.sieve("conformers", "a.smi", "-o", "built.sdf", *words, **env))
        with open(os.path.join(self.dir, "built.sdf")) as f:
            return f.read()

    def test_conformers_are_built_on_the_device_that_is_asked_for(self):
        with open(os.path.join(self.dir, "a.smi"), "w") as f:
            f.write("CC(N)C(=O)O a\nc1ccccc1O b\nCCO c\nO=C1CCCCC1 f\n")
        on = "structures are built on a GPU: emulator, compute capability 8.0"
        cuda, cpu = self.conformers("--device", "cuda", said=on), self.conformers("--device", "cpu")
        self.assertNotEqual(cuda, cpu)
        self.assertEqual([r.split("\n")[0] for r in cuda.split("$$$$\n")], [r.split("\n")[0] for r in cpu.split("$$$$\n")])
        self.assertEqual(cuda, self.conformers("--device", "cuda", "-j", "3", said=on))
        self.assertEqual(cpu, self.conformers())
        os.remove(os.path.join(self.dir, "built.sdf"))
        said = self.sieve("conformers", "a.smi", "-o", "built.sdf", "--device", "cuda", status=2, MOLSIEVE_EMULATOR_NO_DRIVER="1")
        self.assertIn("--device cuda: building structures on a GPU: no NVIDIA driver", said)
        self.assertIn("an illegal memory access", self.sieve("conformers", "a.smi", "-o", "built.sdf", "--device", "cuda", status=7, MOLSIEVE_EMULATOR_FAULT="7"))
        self.assertIn("allowed are cpu and cuda", self.sieve("conformers", "a.smi", "--device", "gpu", status=2))
        self.assertFalse(os.path.exists(os.path.join(self.dir, "built.sdf")))

    def test_without_a_driver_cuda_is_refused_and_auto_is_the_cpu(self):
        said = self.sieve("check", "w.yaml", "stages.score.engine=cuda", status=2, MOLSIEVE_EMULATOR_NO_DRIVER="1")
        self.assertIn("no NVIDIA driver", said)
        said = self.sieve("check", "w.yaml", "stages.score.engine=cuda", status=2, MOLSIEVE_EMULATOR_NO_DRIVER="12040")
        self.assertIn("the NVIDIA driver is for CUDA 12.4, older than the 13.0 this was built with", said)
        said, auto = self.scores("auto", MOLSIEVE_EMULATOR_NO_DRIVER="1")
        self.assertIn("engine auto: the cpu; engine cuda: no NVIDIA driver", said)
        self.assertEqual(auto, self.scores("cpu")[1])

    def test_bf16_without_tiles_is_told_to_be_slow(self):
        slow = "bf16 takes longer than fp32 on a processor without AMX"
        self.assertNotIn(slow, self.scores("cpu", MOLSIEVE_CPU="portable")[0])
        self.assertIn(slow, self.scores("cpu", "stages.score.precision_of.linear=bf16", MOLSIEVE_CPU="portable")[0])
        self.assertNotIn(slow, self.scores("cuda", "stages.score.precision=bf16")[0])

    def weights(self, name):
        return tensors(os.path.join(self.dir, "runs", name, "models", "learn.safetensors"))

    def curve(self, name):
        with sqlite3.connect(os.path.join(self.dir, "runs", name, "results.db")) as db:
            rows = db.execute("SELECT step, epoch, split, name, value FROM metric ORDER BY epoch, split, name").fetchall()
        self.assertGreater(len(rows), 6)
        return rows

    def test_training_that_was_killed_ends_with_the_same_weights(self):
        with open(DATA) as data, open(os.path.join(self.dir, "b.csv"), "w") as f:
            f.writelines(data.readlines()[:21])
        with open(os.path.join(self.dir, "t.yaml"), "w") as f:
            f.write(TRAIN)
        self.sieve("run", "t.yaml", "-q", "workdir=runs/prepared", "--until", "split")
        for name in ("whole", "between", "killed"):
            shutil.copytree(os.path.join(self.dir, "runs", "prepared"), os.path.join(self.dir, "runs", name))
        self.sieve("run", "t.yaml", "-q", "workdir=runs/whole")
        self.sieve("run", "t.yaml", "-q", "workdir=runs/between", "stages.train.evaluate_beside=false")
        self.assertEqual(self.weights("whole"), self.weights("between"))
        self.assertEqual(self.curve("whole"), self.curve("between"))
        for point in ("epoch.before_commit:1", "checkpoint.after:1", "checkpoint.before:1"):
            self.sieve("run", "t.yaml", "-q", "workdir=runs/killed", status=137, MOLSIEVE_FAULT="train." + point)
        said = self.sieve("run", "t.yaml", "-q", "workdir=runs/killed", status=7, MOLSIEVE_EMULATOR_FAULT="400")
        self.assertIn("an illegal memory access was encountered (CUDA error 700 of an earlier kernel; MOLSIEVE_CUDA_GRAPHS=0", said)
        self.assertRegex(said, "; the same command continues from the checkpoint at step [1-9]")
        self.sieve("run", "t.yaml", "-q", "workdir=runs/killed")
        self.assertEqual(self.weights("whole"), self.weights("killed"))

    def many(self):
        """Enough molecules for several units, but small ones, as the emulator is slow."""
        with open(os.path.join(self.dir, "a.smi"), "w") as f:
            f.writelines("%s m%d\n" % (smiles, i) for i, smiles in enumerate(SMALL))

    def test_any_number_of_gpus_gives_the_same_rows(self):
        self.many()
        unit, four = "stages.read.unit=4", {"MOLSIEVE_EMULATOR_DEVICES": "4"}
        digests = set()
        for name, words, env in (("one", [], {}), ("four", [], four), ("some", ["stages.score.devices=[3, 1]"], four),
                                 ("alone", ["stages.score.devices=2", "-j", "1"], four)):
            said = self.sieve("run", "w.yaml", f"workdir=runs/{name}", "-j", "4", unit, "stages.score.engine=cuda", *words, **env)
            self.assertIn("4 GPUs, 4 workers" if name == "four" else "", said)
            digests.add(self.sieve("db", "digest", f"runs/{name}"))
        self.assertEqual(len(digests), 1, digests)

    def test_every_gpu_is_used(self):
        """A GPU without memory gives an error, which shows that this GPU was used. Structures are built on the first of the GPUs named."""
        self.many()
        words = ["run", "w.yaml", "-j", "3", "stages.read.unit=4", "stages.score.engine=cuda"]
        for without, memory in enumerate(("0,900,900", "900,0,900", "900,900,0")):
            env = {"MOLSIEVE_EMULATOR_DEVICES": "3", "MOLSIEVE_EMULATOR_MB": memory}
            said = self.sieve(*words, "workdir=runs/bad", "stages.prepare.conformers.device=cpu", status=7, **env)
            self.assertIn(f"no memory on GPU {without} for a model", said)
            others = str([i for i in range(3) if i != without])
            self.sieve(*words, f"workdir=runs/good{without}", f"stages.score.devices={others}", **env)

    def test_a_batch_that_does_not_fit_says_what_would(self):
        self.many()
        words = ["run", "w.yaml", "-j", "1", "stages.score.engine=cuda", "stages.score.radial.mode=exact"]
        for memory in (80, 40, 20, 10, 5):  # less and less memory, until it is not enough
            done = self.attempt(*words, "--force", "score", MOLSIEVE_EMULATOR_MB=str(memory))
            if done.returncode:
                break
        said = done.stdout + done.stderr
        self.assertEqual(done.returncode, 7, said)
        self.assertRegex(said, rf"no memory on GPU 0 for a batch of 29 molecules and \d+ edges: \d+ MB are needed, \d+ of its "
                               rf"{memory} MB are free; about \d+ molecules would fit: batch.molecules")
        fit = said.split("about ")[1].split()[0]
        self.sieve(*words, f"stages.score.batch.molecules={fit}", MOLSIEVE_EMULATOR_MB=str(memory))
        self.assertIn("exact by hidden units", self.score_level())

    def score_level(self):
        db = sqlite3.connect(glob.glob(os.path.join(self.dir, "**/results.db"), recursive=True)[0])
        try:
            return db.execute("SELECT json_extract(kernels,'$.score') FROM run ORDER BY run_id DESC").fetchone()[0]
        finally:
            db.close()

    def test_devices_that_are_not_there_are_refused(self):
        for word, n, text in (("[0, 2]", 2, "there is no GPU 2; this machine shows 2"), ("some", 2, "some is neither all nor the number of a GPU"),
                              ("[1, 0, 1]", 2, "GPU 1 is named twice"), ("-1", 2, "-1 is neither all nor the number of a GPU"), ("all", 65, "65 GPUs; 1 to 64 can be used")):
            said = self.sieve("check", "w.yaml", "stages.score.engine=cuda", f"stages.score.devices={word}", status=2,
                              MOLSIEVE_EMULATOR_DEVICES=str(n))
            self.assertEqual(said, f"w.yaml:12:10: devices: {text}\nmolsieve: 1 problem in the configuration; nothing was done\n")

    def test_what_a_gpu_cannot_do_is_told_in_full(self):
        with open(os.path.join(self.dir, "t.yaml"), "w") as f:
            f.write(TRAIN)
        with open(os.path.join(self.dir, "b.csv"), "w") as f:
            f.write("smiles,name,logS\n" + "".join("%s,m%d,%g\n" % (s, k, -0.1 * k) for k, s in enumerate(SMALL)))
        said = self.sieve("check", "t.yaml", "stages.train.noise={weight: 1}", status=2)
        self.assertIn("command line: noise: engine cuda cannot predict it yet; use engine: cpu, or noise.weight: 0\n", said)
        said = self.sieve("run", "t.yaml", "-j", "1", "stages.train.sparsity=2:4", "stages.train.epochs=2")
        self.assertIn("train: sparsity 2:4: 6 matrices with 6848 of 8103 weights are pruned after half of the epochs; 9 matrices stay dense (below 8 "
                      "rows, or k below 16 or not a multiple of 4); pruned weights are computed as zeros, at the time of dense ones; the optimiser's "
                      "steps run on the processor\n", said)
        said = self.sieve("run", "w.yaml", "-j", "1", "stages.score.engine=auto", MOLSIEVE_EMULATOR_DEVICES="2")
        self.assertIn(" score     engine auto: the GPU\n", said)
        self.assertIn(" score     2 GPUs, 1 workers: to use all GPUs, give -j at least as many\n", said)
        said = self.sieve("bench", "--model", MODEL, "--molecules", "a.smi", "--batch", "2", "--graphs", "bonds", "--seconds", "0", "--threads", "1",
                          "--roofline", "--svg", "x.svg", "--variants", "cuda nodes fp32", status=2)
        self.assertIn("molsieve: --svg draws no roof of a GPU that is not known: give --gpu-roof, too\n", said)

    def test_plugins_that_were_not_built_are_missed(self):
        os.mkdir(os.path.join(self.dir, "bin"))
        program = shutil.copy(PROGRAM, os.path.join(self.dir, "bin/molsieve"))  # beside which there are none
        with open(os.path.join(self.dir, "t.yaml"), "w") as f:
            f.write(TRAIN)
        with open(os.path.join(self.dir, "b.csv"), "w") as f:
            f.write("smiles,name,logS\n" + "".join("%s,m%d,%g\n" % (s, k, -0.1 * k) for k, s in enumerate(SMALL)))
        where = "is not beside the program, in ../lib/molsieve or in $MOLSIEVE_PLUGINS: build it where"
        for words, env, text in (
                (("check", "w.yaml", "stages.score.engine=cuda"), {},
                 f"w.yaml:12:10: engine cuda: libmolsieve_cuda.so {where} nvcc is installed\n"
                 "molsieve: 1 problem in the configuration; nothing was done\n"),
                (("run", "t.yaml", "stages.train.engine=cpu"), {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "0"},
                 f"molsieve: libmolsieve_mpi.so {where} an MPI is installed, or set stages.train.ranks=none\n")):
            done = subprocess.run([program, *words], cwd=self.dir, capture_output=True, text=True,
                                  env={**os.environ, "MOLSIEVE_PLUGINS": "", "MOLSIEVE_CHEM": PROGRAM + "-chem", **env})
            self.assertEqual((done.returncode, done.stderr), (2, text))

    def test_doctor_says_what_there_is(self):
        self.assertIn("emulator, compute capability 8.0", self.sieve("doctor"))
        said = self.sieve("doctor", MOLSIEVE_EMULATOR_DEVICES="3")
        self.assertEqual(said.count("emulator, compute capability 8.0"), 3)
        self.assertIn("at 0000:02:00.0", said)


if __name__ == "__main__":
    if not os.path.isdir(EMULATED):
        sieve.skip("no emulated plugin in " + EMULATED)
    unittest.main(verbosity=2)
