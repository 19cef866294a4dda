#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training, evaluating and scoring with the real program on real molecules."""
import contextlib
import hashlib
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import struct
import subprocess
import time

import sieve

SDF = "qm9/qm9_dev_2500.sdf.gz"
READ = """  read: {unit: 40}
  prepare:
    conformers: {source: keep}
    labels: [gap]
"""
GRAPH = "  graph: {edges: bonds}\n  basis: {}\n"
TINY = "model: {layers: 1, degrees: 2, channels: 8, heads: 2}"


def train_stages(train="", graph=GRAPH):
    return READ + graph + """  split: {fractions: {train: 0.7, valid: 0.2, test: 0.1}}
  train:
    targets: [{name: gap_ev, column: gap, unit: eV, factor: 27.211386, better: high}]
    %s
    batch: {molecules: 8}
    epochs: 4
    ema: 0.9
    checkpoint: {every: 1s}
%s  evaluate: {on: [train, valid, test]}
""" % (TINY, train)


def tensors(path):
    """Name -> bytes of a safetensors file, parsed here; and its metadata."""
    with open(path, "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        body = f.read()
    meta = header.pop("__metadata__")
    return {k: (v["shape"], body[slice(*v["data_offsets"])]) for k, v in header.items()}, meta


METRICS = "SELECT stage, step, epoch, split, name, value FROM metric WHERE name<>'planned_epochs' ORDER BY 1, 2, 4, 5"
EVALUATION = "SELECT part, metric, unit, value, n FROM evaluation ORDER BY 1, 2"


def trained(project, workdir):
    return (tensors(project.path(workdir, "models/e2e.safetensors")), project.rows(METRICS, workdir=workdir),
            project.rows(EVALUATION, workdir=workdir))


def small(project, n=90):
    project.put("in.sdf", sieve.sdf_records(sieve.data(SDF), n))
    project.workflow(["in.sdf"], train_stages())
    project.run("run", "w.yaml", "-q", "--until", "split")
    for name in ("whole", "killed"):
        shutil.copytree(project.path("run"), project.path(name))
    project.run("run", "w.yaml", "-q", "workdir=whole")
    return trained(project, "whole")


def start(project, *more, env=None):
    return subprocess.Popen(project.command("run", "w.yaml", "-q", "workdir=killed", *more), cwd=project.dir,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)


def the_weights_are_the_same_after_kills():
    """kill -9 at random moments, with one and two workers: weights, metrics and errors are bit-identical."""
    rng = random.Random(4)
    with sieve.Project() as p:
        want = small(p)
        kills = 0
        while kills < 12:
            child = start(p, "-j", str(1 + kills % 2))
            time.sleep(rng.uniform(0.02, 0.6))
            child.send_signal(signal.SIGKILL)
            status = child.wait()
            assert status in (0, -9), status
            if status == 0:
                break
            kills += 1
        p.run("run", "w.yaml", "-q", "workdir=killed")
        assert trained(p, "killed") == want, "after %d kills" % kills
        print("kills:", kills)


def a_missing_model_file_is_written_again():
    """Continues from the last checkpoint; a kill in between changes nothing."""
    with sieve.Project() as p:
        want = small(p)
        model = p.path("whole/models/e2e.safetensors")
        before = open(model, "rb").read()
        os.unlink(model)
        assert " models/e2e.safetensors is missing\n" in p.run("plan", "w.yaml", "workdir=whole")[1]
        for env in (dict(os.environ, MOLSIEVE_FAULT="train.model.after:1"), None):
            _, _, err = p.run("run", "w.yaml", "workdir=whole", expect=137 if env else 0, env=env)
            assert "training continues in epoch" in err, err
        assert open(model, "rb").read() == before and trained(p, "whole") == want
        assert "nothing to do" in p.run("plan", "w.yaml", "workdir=whole")[1]


def every_fault_point_of_training_is_survived():
    points = ["checkpoint.before:2", "checkpoint.after:1", "checkpoint.after:3", "epoch.before_commit:2", "model.before:1",
              "model.after:1", "finish.before_commit:1", "finish.after_commit:1"]
    with sieve.Project() as p:
        want = small(p)
        for point in points:
            shutil.rmtree(p.path("killed"))
            shutil.copytree(p.path("run"), p.path("killed"))
            env = dict(os.environ, MOLSIEVE_FAULT="train." + point)
            assert start(p, env=env).wait() == 137, point
            p.run("run", "w.yaml", "-q", "workdir=killed")
            assert trained(p, "killed") == want, point


def a_budget_ends_with_a_whole_schedule():
    """So little time that one epoch is all; so much that `epochs` holds: then, and after a kill, as without a budget."""
    with sieve.Project() as p:
        (weights, _), metrics, _ = small(p)
        _, _, err = p.run("run", "w.yaml", "workdir=whole", "stages.train.budget=1ms")
        assert re.search(r"budget: an epoch takes .*, so 1 epoch for 0.0s; no time is left, and the learning rate did not fall: give more", " ".join(err.split())), err
        assert p.one("SELECT max(epoch) FROM metric WHERE stage='train'", workdir="whole") == 1
        told = json.loads(tensors(p.path("whole/models/e2e.safetensors"))[1]["provenance"])["training"]
        assert told["planned_epochs"] == told["epochs"] == 1, told
        assert "train: epoch 1 of 1: " in p.run("status", "whole")[1]
        plan = p.run("plan", "w.yaml", "workdir=killed", "stages.train.budget=1ms")[1]
        assert "4 epochs at most, as many as fit into budget: 0.0s" in plan, plan
        plan = p.run("plan", "w.yaml", "workdir=killed", "stages.train.budget=1m", "stages.train.epochs=auto")[1]
        assert "as many epochs as fit into budget: 1m" in plan and re.search(r"train +run .* 1m00s", plan), plan
        _, out, err = p.run("check", "w.yaml", "stages.train.budget=1h", "stages.train.family=[trees]", expect=2)
        assert "budget: is of a network, and family has none" in out + err, (out, err)
        env = dict(os.environ, MOLSIEVE_FAULT="train.checkpoint.after:2")
        assert start(p, "stages.train.budget=10h", env=env).wait() == 137
        p.run("run", "w.yaml", "-q", "workdir=killed", "stages.train.budget=10h")
        (again, _), after, _ = trained(p, "killed")
        assert again == weights and after == metrics


def checkpoint_of(p):
    for where, _, names in os.walk(p.path("killed", "checkpoints")):
        if "latest.ckpt" in names:
            return os.path.join(where, "latest.ckpt")
    return None


def stop_when_training(p, sig):
    """A run that gets a signal to stop after it has written a checkpoint."""
    def age():
        latest = checkpoint_of(p)
        return latest and os.stat(latest).st_mtime_ns

    before = age()
    child = start(p, "stages.train.epochs=4000")
    sieve.until(lambda: age() != before or child.poll() is not None, "no checkpoint", pause=0.05)
    child.send_signal(sig)
    return child.wait()


def a_signal_ends_with_75_and_nothing_is_lost():
    with sieve.Project() as p:
        small(p)
        for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2):
            assert stop_when_training(p, sig) == 75, sig
        epochs = p.one("SELECT max(epoch) FROM metric WHERE split='valid'", workdir="killed")
        train = next(s for s in json.load(open(p.path("killed/heartbeat.json")))["stages"] if s["stage"] == "train")
        assert re.match(r"epoch \d+/4000 loss \d", train["note"]) and 0 < train["done"] < train["total"], train
        _, out, _ = p.run("status", "killed")
        assert re.search(r"^  train +begun ", out, re.M) and "  train: epoch %d of 4000: train loss " % epochs in out, out
        _, out, err = p.run("run", "w.yaml", "workdir=killed", "stages.train.epochs=%d" % (epochs + 1))
        assert "train: runs again: epochs: 4000 -> %d" % (epochs + 1) in err and "  molsieve model info killed/models/" in out, (out, err)
        _, _, err = p.run("run", "w.yaml", "workdir=killed", "--force", "train", "stages.train.epochs=%d" % (epochs + 1))
        assert "train: runs again: requested by --force or --from" in err, err


def one_torn_checkpoint_is_survived_and_two_are_an_error():
    with sieve.Project() as p:
        small(p)
        assert stop_when_training(p, signal.SIGTERM) == 75
        assert stop_when_training(p, signal.SIGTERM) == 75
        latest = checkpoint_of(p)
        with open(latest, "r+b") as f:
            f.truncate(os.path.getsize(latest) // 2)
        assert stop_when_training(p, signal.SIGTERM) == 75
        assert p.one("SELECT count(*) FROM event WHERE level='warn' AND message LIKE '%previous.ckpt%'",
                     workdir="killed") == 1
        for name in ("latest.ckpt", "previous.ckpt"):
            with open(os.path.join(os.path.dirname(latest), name), "wb") as f:
                f.write(b"junk")
        _, _, err = p.run("run", "w.yaml", "-q", "workdir=killed", "stages.train.epochs=4000", expect=5)
        assert "latest.ckpt" in err and "previous.ckpt" in err, err


def the_gap_of_2500_molecules_is_learned():
    """On real molecules the loss falls, and held-out errors are below those of the fit to element counts."""
    with sieve.Project() as p:
        p.put("in.sdf.gz", open(sieve.data(SDF), "rb").read())
        stages = train_stages().replace("batch: {molecules: 8}", "batch: {molecules: 32}\n    optimiser: {lr: 0.004, weight_decay: 0.01}")
        stages = stages.replace(TINY, "model: {layers: 2, degrees: 2, channels: 16, heads: 4}").replace("unit: 40", "unit: 500")
        p.workflow(["in.sdf.gz"], stages)
        p.run("run", "w.yaml", "-q", "stages.train.dtype=bf16")
        loss = [v for (v,) in p.rows("SELECT value FROM metric WHERE split='train' AND name='loss' ORDER BY step")]
        assert len(loss) == 4 and loss[-1] < 0.75 * loss[0], loss
        for part in ("train", "valid", "test"):
            mae = [v for (v,) in p.rows(f"SELECT value FROM metric WHERE split='{part}' AND name='mae' ORDER BY step")]
            assert len(mae) == 4 and mae[-1] < mae[0], (part, mae)
        errors = {(part, metric): value for part, metric, _, value, _ in p.rows(EVALUATION)}
        for part in ("valid", "test"):
            assert errors[part, "mae"] < errors[part, "composition.mae"] < errors[part, "mean.mae"], errors
        assert p.one("SELECT count(DISTINCT substr(m.inchikey,1,14)) FROM molecule m JOIN split USING(mol_id)") == sum(
            n for (n,) in p.rows("SELECT count(DISTINCT substr(inchikey,1,14)) FROM molecule JOIN split USING(mol_id) "
                                 "GROUP BY part")), "a skeleton is in two parts"
        held = json.loads(tensors(p.path("run/models/e2e.safetensors"))[1]["provenance"])["errors"]["test"]
        assert abs(held["mae"] - errors["test", "mae"]) < 1e-4 * held["mae"], (held, errors)
        p.run("model", "verify", "run/models/e2e.safetensors")
        info = json.loads(p.run("model", "info", "--json", "run/models/e2e.safetensors")[1])
        similarity = info["target"].pop("similarity_at_least")
        assert 0 < similarity < 1 and info["target"] == {"name": "gap_ev", "unit": "eV", "better": "high"}, (similarity, info["target"])
        assert p.run("model", "diff", *["run/models/e2e.safetensors"] * 2)[1] == "no difference\n"
        changed = bytearray(sieve.without_checksum(open(p.path("run/models/e2e.safetensors"), "rb").read()))
        head = json.loads(changed[8:8 + int.from_bytes(changed[:8], "little")])
        end = max(t["data_offsets"][1] for name, t in head.items() if not name.startswith(("__", "domain.", "seen.")))
        changed[8 + int.from_bytes(changed[:8], "little") + end - 1] ^= 0x01  # the exponent of the last weight
        p.put("changed.safetensors", bytes(changed))
        told = p.run("model", "diff", "run/models/e2e.safetensors", "changed.safetensors", expect=1)[1].splitlines()
        assert re.match(r"weights: 1 of \d+ tensors differ$", told[-2]) and "% of the largest number" in told[-1], told
        print({k: round(v, 3) for k, v in errors.items() if k[1].endswith("mae")})


SCORES = "SELECT mol_id, name, mean, stdev, n_models FROM score JOIN property USING(property_id) ORDER BY 1, 2"


def scores_depend_on_nothing_but_the_molecule():
    """Scores do not depend on workers, units, batches, the order of the file or stored bases; a molecule without a score has a reason."""
    with sieve.Project() as p:
        small(p)
        shutil.copy(p.path("whole/models/e2e.safetensors"), p.path("one.safetensors"))
        p.run("run", "w.yaml", "-q", "workdir=second", "stages.train.epochs=2")
        shutil.copy(p.path("second/models/e2e.safetensors"), p.path("two.safetensors"))
        records = sieve.sdf_records(sieve.data(SDF), 120).split(b"$$$$\n")[90:120]
        chloride = records[0].replace(b" H  ", b" Cl ", 1)
        assert b" Cl " in chloride
        extra = "models:\n  one: {path: one.safetensors}\n  two: {path: two.safetensors}\n"
        read = READ.replace("labels: [gap]", "labels: none")

        def screen(name, order, tail, graph=GRAPH, basis=True):
            p.put(name + ".sdf", b"$$$$\n".join(order) + b"$$$$\n")
            p.workflow([name + ".sdf"], read + graph + "  score: {%s}\n" % tail, name=name + ".yaml", workdir=name, extra=extra)
            return name

        plain = screen("plain", records, "")
        p.run("run", "plain.yaml", "-q", "-j", "1")
        want = p.rows(SCORES, workdir=plain)
        assert len(want) == 30 and all(n == 2 and s is not None for _, _, _, s, n in want), want[:3]
        screen("other", records, "batch: {molecules: 3}")
        p.run("run", "other.yaml", "-q", "-j", "3", "stages.read.unit=7")
        assert p.rows(SCORES, workdir="other") == want
        screen("back", records[::-1], "batch: {max_edges: 50}")
        p.run("run", "back.yaml", "-q", "-j", "2")
        by_key = "SELECT inchikey, mean, stdev FROM score JOIN molecule USING(mol_id) ORDER BY 1, 2"
        assert p.rows(by_key, workdir="back") == p.rows(by_key, workdir="plain")
        screen("fresh", records, "", graph="  graph: {edges: bonds}\n")
        p.run("run", "fresh.yaml", "-q")
        for a, b in zip(p.rows(SCORES, workdir="fresh"), want):
            assert abs(a[2] - b[2]) < 2e-3, (a, b)
        screen("strange", [chloride] + records[1:3], "")
        p.run("run", "strange.yaml", "-q")
        assert p.rows("SELECT code, message FROM failure WHERE stage='score' ORDER BY 2", workdir="strange") == [
            ("element", "model one has not seen element Cl"), ("element", "model two has not seen element Cl")]
        assert p.one("SELECT count(*) FROM score", workdir="strange") == 2
        # The order of the models in the workflow does not matter.
        p.run("run", "w.yaml", "-q", "workdir=third", "stages.train.epochs=3")
        shutil.copy(p.path("third/models/e2e.safetensors"), p.path("three.safetensors"))
        names, extra = ["one", "two", "three"], ""
        for order in (names, names[::-1], ["two", "three", "one"]):
            extra = "models:\n" + "".join("  %s: {path: %s.safetensors}\n" % (n, n) for n in order)
            p.run("run", screen("in_order", records, "") + ".yaml", "-q", "--force", "score")
            got = p.rows(SCORES, workdir="in_order")
            assert len(got) == 30 and (order == names or got == by_names), order
            by_names = got
        # A molecule that fails with several models counts as one failed molecule.
        assert p.rows("SELECT n_ok, n_failed FROM unit JOIN stage USING(stage_id) WHERE name='score'", workdir="strange") == [(2, 1)]
        # Scores refer to molecules that have a row: else nothing of the unit is stored.
        with contextlib.closing(sqlite3.connect(p.path("strange", "results.db"))) as db:
            db.executescript("DELETE FROM molecule WHERE mol_id=(SELECT max(mol_id) FROM score); DELETE FROM score; DELETE FROM prediction;"
                             "DELETE FROM row_sum")
        _, _, err = p.run("run", "strange.yaml", "-q", "--force", "score", expect=5)
        assert "molecule 3 is in a block of features.db but not in results.db" in err, err
        assert p.one("SELECT (SELECT count(*) FROM score)+(SELECT count(*) FROM prediction)", workdir="strange") == 0


def radial_nodes_work_and_a_coarse_grid_is_warned_of():
    """On a fine grid scores are near the exact ones, with the same bits for any batch; a grid that is too coarse gives a warning."""
    with sieve.Project() as p:
        p.put("in.sdf", sieve.sdf_records(sieve.data(SDF), 60))
        p.workflow(["in.sdf"], train_stages() + "  score: {}\n")
        p.run("run", "w.yaml", "-q", "stages.train.epochs=2")
        shutil.copy(p.path("run/models/e2e.safetensors"), p.path("one.safetensors"))

        def scores(name, *settings, models="one"):
            extra = "models:\n" + "".join("  %s: {path: %s.safetensors}\n" % (m, m) for m in models.split())
            p.workflow(["in.sdf"], READ + GRAPH + "  score: {}\n", name=name + ".yaml", workdir=name, extra=extra)
            p.run("run", name + ".yaml", "-q", *["stages.score." + s for s in settings])
            warnings = p.rows("SELECT message FROM event WHERE level='warn' AND message LIKE '%radial.width%'", workdir=name)
            return p.rows(SCORES, workdir=name), warnings

        exact, _ = scores("exact", "radial.mode=exact")
        nodes, warned = scores("nodes")
        small_batches, _ = scores("small", "batch.molecules=7")
        coarse, unwarned = scores("coarse", "radial.width=0.03")
        assert len(exact) == 60 and nodes == small_batches and nodes != exact and not warned and not unwarned, (warned, unwarned)
        apart = max(abs(a[2] - b[2]) for a, b in zip(nodes, exact))
        assert apart < 1e-3 and coarse != nodes, apart

        def is_same(name, width, *more):
            """Whether the stages are those of nodes with this distance."""
            settings = ["stages.%s.radial.width=%s" % (one, width) for one in ("score", "evaluate") if one in open(p.path(name)).read()]
            return "nothing to do" in p.run("plan", name, *settings, *more)[1]

        assert is_same("nodes.yaml", 0.01) and not is_same("nodes.yaml", 0.005) and is_same("w.yaml", 0.01, "stages.train.epochs=2")
        bessel = ("stages.train.epochs=1", "stages.train.model.radial={basis: bessel, number: 32}")
        shutil.copy(p.path("one.safetensors"), p.path("plain.safetensors"))
        p.run("run", "w.yaml", "-q", *bessel)
        shutil.copy(p.path("run/models/e2e.safetensors"), p.path("one.safetensors"))
        # Functions of distances bend more: nodes are closer unless it says otherwise, for a model of a file and for one trained here.
        fine, _ = scores("fine")
        assert is_same("fine.yaml", "auto") and not is_same("fine.yaml", 0.01) and is_same("w.yaml", "auto", *bessel)
        wide, _ = scores("wide", "radial.width=0.01")
        assert len(fine) == 60 and fine != wide and fine == scores("near", "radial.width=0.005")[0]
        # Each model has its own, so what stands beside it changes no score.
        scores("both", models="plain one")
        each = "SELECT mol_id, value FROM prediction JOIN model m USING(model_id) WHERE m.name=? ORDER BY 1"
        assert p.rows(each, "one", workdir="both") == p.rows(each, "one", workdir="fine") != []
        scores("alone", models="plain")
        assert p.rows(each, "plain", workdir="both") == p.rows(each, "plain", workdir="alone") != []
        _, told = scores("bessel", "radial.width=0.1")
        assert told and "more than 0.02; set radial.width to 0.05" in told[0][0], told


def models_that_do_not_fit_are_refused_before_any_work():
    with sieve.Project() as p:
        small(p, 60)
        shutil.copy(p.path("whole/models/e2e.safetensors"), p.path("good.safetensors"))
        whole = open(p.path("good.safetensors"), "rb").read()
        p.put("torn.safetensors", whole[:len(whole) // 2])
        read = READ.replace("labels: [gap]", "labels: none")

        def refused(model, graph, *texts):
            p.workflow(["in.sdf"], read + graph + "  score: {}\n", name="s.yaml", workdir="none",
                       extra="models:\n  m: {path: %s}\n" % model)
            _, out, err = p.run("check", "s.yaml", expect=2)
            for text in texts:
                assert text in out + err, (text, out, err)
            assert not os.path.exists(p.path("none"))

        refused("good.safetensors", "  graph: {edges: radius, cutoff: 5}\n", "edges: radius", "trained with edges: bonds")
        refused("torn.safetensors", GRAPH, "torn.safetensors")
        refused("missing.safetensors", GRAPH, "missing.safetensors")
        refused("in.sdf", GRAPH, "in.sdf")
        p.run("model", "verify", "good.safetensors", "--sha256", hashlib.sha256(whole).hexdigest().upper())
        p.run("model", "info", "torn.safetensors", expect=5)
        p.run("model", "info", "nothing.safetensors", expect=6)


def a_prediction_in_another_unit_is_another_property():
    with sieve.Project() as p:
        p.put("in.sdf", sieve.sdf_records(sieve.data(SDF), 60))
        p.workflow(["in.sdf"], train_stages().replace("name: gap_ev, column: gap", "name: gap") + "  score: {}\n")
        p.run("run", "w.yaml", "-q")
        assert p.rows("SELECT name, unit FROM property ORDER BY 1") == [("gap", "Ha"), ("gap (eV)", "eV")]
        assert p.one("SELECT count(*) FROM score JOIN property USING(property_id) WHERE unit='eV'") == 60
        assert p.one("SELECT count(DISTINCT unit) FROM evaluation JOIN property USING(property_id, unit)") == 1
        # It is ranked by either name.
        for name in ("gap", "gap (eV)"):
            p.workflow(["in.sdf"], train_stages().replace("name: gap_ev, column: gap", "name: gap") + "  score: {}\n"
                       "  rank: {objectives: [{property: %s, goal: minimise}]}\n" % name)
            p.run("run", "w.yaml", "-q")
            assert p.rows("SELECT mean FROM score ORDER BY 1") == p.rows("SELECT objective FROM hit ORDER BY rank")
        for name in ("gap", "mw"):
            assert "needs two models of " + name in p.run("check", "w.yaml", "stages.rank.objectives="
                                                          "[{property: %s, goal: minimise, use: mean - stdev}]" % name, expect=2)[2]
        for name in ("x" * 201, "a/b"):
            assert "cannot be a file name" in p.run("check", "w.yaml", "stages.train.name=" + name, expect=2)[2]
        # Labels without a unit do not get the unit of a target that they were converted to.
        p.put("in.sdf", sieve.sdf_records(sieve.data(SDF), 60).replace(b"gdb", b"xyz"))
        p.run("run", "w.yaml", "-q")
        assert p.rows("SELECT name, unit FROM property ORDER BY 1") == [("gap", ""), ("gap (eV)", "eV")]
        # Molecules that the test part loses are reported.
        p.run("run", "w.yaml", "-q", "--until", "train", "stages.train.model.elements=[H, C, O]")
        lost = p.rows("SELECT stage, message FROM event WHERE message LIKE '%element%' ORDER BY event_id DESC")
        assert any(re.search("[1-9][0-9]* test", message) for _, message in lost), lost
        # The same value for all molecules, up to rounding.
        p.put("in.sdf", re.sub(rb"<gap>\n[^\n]*", b"<gap>\n0.1", sieve.sdf_records(sieve.data(SDF), 60)))
        assert "nothing to learn" in p.run("run", "w.yaml", "-q", expect=2)[2]


def a_replaced_model_file_is_refused():
    with sieve.Project() as p:
        small(p, 60)
        p.workflow(["in.sdf"], train_stages() + "  score: {}\n", workdir="whole")
        shutil.copy(p.path("whole/models/e2e.safetensors"), p.path("right"))
        p.run("run", "w.yaml", "-q", "workdir=killed", "stages.train.epochs=2")
        shutil.copy(p.path("killed/models/e2e.safetensors"), p.path("whole/models/e2e.safetensors"))
        for stage in ("evaluate", "score"):
            assert "is not the file that" in p.run("run", "w.yaml", "-q", "--from", stage, expect=5)[2]
        shutil.copy(p.path("right"), p.path("whole/models/e2e.safetensors"))
        p.run("run", "w.yaml", "-q")
        # Two models of one name would share a row.
        p.workflow(["in.sdf"], train_stages() + "  score: {models: [e2e]}\n", extra="models: {e2e: {path: right}}\n")
        assert "is also the name of the model that this workflow trains" in p.run("check", "w.yaml", expect=2)[2]
        # The maximum number of models in a workflow: each has its columns and can be ranked by.
        whole = sieve.without_checksum(open(p.path("right"), "rb").read())
        names = ["gap_%02d" % i for i in range(64)]
        for name in names:
            p.put(name, whole.replace(b"gap_ev", name.encode(), 1))
        p.put("in.sdf", sieve.sdf_records(sieve.data(SDF), 3))
        p.workflow(["in.sdf"], READ + GRAPH + "  score: {}\n  rank: {objectives: [{property: gap_63, goal: minimise}]}\n"
                   "  write: {}\n", workdir="many", extra="models:\n" + "".join("  %s: {path: %s}\n" % (n, n) for n in names))
        p.run("run", "w.yaml", "-q")
        head = open(p.path("many/hits.csv")).readline()
        assert len(re.findall(r",gap_\d\d", head)) == 5 * 64, head[:400]
        page = p.run("report", "many", "-o", "-")[1]
        assert "The first 20 of 64." in page and "Of 65 properties the first 20" in page


def many_input_files_become_one_provenance_entry():
    """QM9 came as 134,000 files: neither the model file nor its description grows with their number."""
    with sieve.Project() as p:
        records = sieve.sdf_records(sieve.data(SDF), 205).split(b"$$$$\n")[:205]
        for i, record in enumerate(records):
            p.put("m%03d.sdf" % i, record + b"$$$$\n")
        p.workflow(["m*.sdf"], train_stages())
        p.run("run", "w.yaml", "-q", "stages.train.epochs=1")
        model = p.path("run/models/e2e.safetensors")
        made_of = json.loads(tensors(model)[1]["provenance"])
        parts = hashlib.sha256()
        for word in (word for row in p.rows("SELECT inchikey, part FROM split JOIN molecule USING(mol_id) ORDER BY 1, 2") for word in row):
            parts.update(struct.pack("<Q", len(word)) + word.encode())
        assert made_of["split"]["sha256"] == parts.hexdigest(), made_of["split"]
        files = made_of["data"]
        assert len(files) == 201 and files[199]["file"] == "m199.sdf" and files[200]["file"] == "5 more", files[-2:]
        assert sum(f["records"] for f in files) == 205 and len(files[200]["sha256"]) == 64
        lines = p.run("model", "info", model)[1]
        assert lines.count("data  ") == 20 and "and 181 more" in lines
        # A model file of an earlier version lists all of them: the report shows the first ones, in little memory.
        db = sqlite3.connect(p.path("run/results.db"))
        metadata = json.loads(db.execute("SELECT metadata_json FROM model").fetchone()[0])
        metadata["provenance"]["data"] = [{"file": "some_molecule_%06d.xyz" % i} for i in range(20000)]
        db.execute("UPDATE model SET metadata_json=?", (json.dumps(metadata),))
        db.execute("DELETE FROM row_sum")  # intended changes, no damage
        db.commit()
        db.close()
        subprocess.run(["bash", "-c", "ulimit -v 2000000; exec \"$0\" report run -o r.html", sieve.PROGRAM], cwd=p.dir, check=True,
                       capture_output=True, timeout=280)
        assert "some_molecule_000002.xyz" in open(p.path("r.html")).read()


if __name__ == "__main__":
    sieve.main([the_weights_are_the_same_after_kills, a_budget_ends_with_a_whole_schedule, a_missing_model_file_is_written_again, every_fault_point_of_training_is_survived,
                a_signal_ends_with_75_and_nothing_is_lost,
                one_torn_checkpoint_is_survived_and_two_are_an_error, the_gap_of_2500_molecules_is_learned,
                a_prediction_in_another_unit_is_another_property,
                a_replaced_model_file_is_refused, many_input_files_become_one_provenance_entry,
                radial_nodes_work_and_a_coarse_grid_is_warned_of,
                scores_depend_on_nothing_but_the_molecule, models_that_do_not_fit_are_refused_before_any_work])
