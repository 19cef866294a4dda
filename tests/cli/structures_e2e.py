#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Several structures of one molecule: built, used in training, scored together."""
import csv
import io
import json
import os
import shutil
import sqlite3
import statistics
import struct

import ranks_e2e
import sieve
from shards import digest, merged
from train_e2e import tensors

STAGES = """  read: {unit: 6}
  prepare: {conformers: {source: generate, count: 4}, properties: {logS: {unit: mol/L}}}
  graph: {edges: %s}
  basis: {}
"""
LEARN = """  split: {fractions: {train: 0.6, valid: 0.2, test: 0.2}}
  train:
    targets: [{name: logS, unit: mol/L}]
    model: {layers: 1, degrees: 2, channels: 8, heads: 2}
    batch: {molecules: 8, shards: 2}
    epochs: 3
    ema: 0.9
    domain: 10
  evaluate: {on: [train, valid, test]}
"""
SCORE = "  score: {}\n  rank: {objectives: [{property: logS, goal: maximise}]}\n"
N = 40
PER_MOLECULE = "SELECT m.structures, p.value, p.spread FROM prediction p JOIN molecule m USING(mol_id) ORDER BY mol_id"


SOURCE = os.environ.get("MOLSIEVE_SOURCE", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
ESOL = "models: {esol: {path: %s}}\n" % os.path.join(SOURCE, "workflows/models/esol.safetensors")


def table(n):
    """Small molecules of ESOL as a CSV file, some with rotatable bonds and some without."""
    with open(os.path.join(SOURCE, "workflows/data/esol.csv")) as f:
        rows = [r for r in csv.reader(f) if len(r[0]) < 18 and not set(r[0]) & set("BIPSF")]
    out = io.StringIO()
    csv.writer(out).writerows(rows[:1] + rows[1:n + 1])
    return out.getvalue()


def begin(p, n, stages, extra=""):
    p.put("in.csv", table(n))
    p.workflow(["{path: in.csv, columns: {smiles: smiles, title: name}}"], stages, extra=extra)


def structures(p, workdir):
    """(molecule, record of an SDF file) of all structures that prepare stored, decoded here (layout: chem/molecule/codec.h)."""
    db = sqlite3.connect("file:%s?mode=ro" % p.path(workdir, "features.db"), uri=True)
    blocks = [b for b, in db.execute("SELECT data FROM block WHERE kind='conformer' ORDER BY unit")]
    db.close()
    for block in blocks:
        n = struct.unpack_from("<I", block, 12)[0]
        ids, at = struct.unpack_from("<%dq" % n, block, 24), struct.unpack_from("<%dI" % (n + 1), block, 24 + 8 * n)
        for mol_id, start in zip(ids, at):
            atoms, bonds = struct.unpack_from("<ii", block, start)
            xyz = struct.unpack_from("<%df" % (3 * atoms), block, start + 12)
            ends = struct.unpack_from("<%di" % (2 * bonds), block, start + 12 + 12 * atoms)
            z, charge, order = [block[start + 12 + 12 * atoms + 8 * bonds:][i:j] for i, j in ((0, atoms), (atoms, 2 * atoms),
                                                                                              (2 * atoms, 2 * atoms + bonds))]
            yield mol_id, sdf(mol_id, xyz, z, struct.unpack("%db" % atoms, charge), ends, order)


def sdf(mol_id, xyz, z, charge, ends, order):
    name = {1: "H", 6: "C", 7: "N", 8: "O", 9: "F", 15: "P", 16: "S", 17: "Cl", 35: "Br", 53: "I"}
    out = "%d\n  3D\n\n%3d%3d  0  0  0  0  0  0  0  0999 V2000\n" % (mol_id, len(z), len(order))
    for i, atom in enumerate(z):
        out += "%10.4f%10.4f%10.4f %-3s 0  0\n" % (*xyz[3 * i:3 * i + 3], name[atom])
    for i, o in enumerate(order):
        out += "%3d%3d%3d  0\n" % (ends[2 * i] + 1, ends[2 * i + 1] + 1, o if o < 4 else o - 3)
    out += "".join("M  CHG  1%4d%4d\n" % (i + 1, c) for i, c in enumerate(charge) if c)
    return out + "M  END\n$$$$\n"


def untold(meta):
    provenance = json.loads(meta["provenance"])
    del provenance["conformers"]
    meta["provenance"] = json.dumps(provenance)


def scores_are_means_over_the_structures():
    with sieve.Project() as p:
        begin(p, 40, STAGES % "bonds" + LEARN + SCORE)
        p.run("run", "w.yaml", "-q", "--until", "split")
        for other in ("killed", "ranks", "one"):
            shutil.copytree(p.path("run"), p.path(other))
        p.run("run", "w.yaml", "-q")
        sieve.accounted(p)
        rows = p.rows(PER_MOLECULE)
        assert len(rows) == N and {n for n, _, _ in rows} == {1, 2, 3, 4}, rows
        assert all((spread is None) == (n == 1) for n, _, spread in rows)
        assert p.one("SELECT sum(n_ok) FROM unit JOIN stage USING(stage_id) WHERE name='graph'") == N
        # A model trained on all structures counts molecules, is evaluated by the same means, and weighs molecules equally.
        part = dict(p.rows("SELECT part, count(*) FROM split GROUP BY part"))
        assert "%d molecules" % part["train"] in p.run("model", "info", "run/models/e2e.safetensors")[1]
        assert p.rows("SELECT count(*) FROM evaluated e JOIN prediction p USING(mol_id, property_id) WHERE e.predicted=p.value") == [(N,)]
        assert dict(p.rows("SELECT part, n FROM evaluation WHERE metric='mae'")) == part
        # `predict` builds as many as the training did, and a workflow that builds others is warned.
        model = p.path("run/models/e2e.safetensors")
        said = {r["title"]: float(r["logS"]) for r in csv.DictReader(io.StringIO(p.run("predict", model, "in.csv", "--seed", "11")[1]))}
        stored = dict(p.rows("SELECT title, value FROM prediction JOIN record USING(mol_id)"))
        assert said.keys() == stored.keys() and all(abs(said[t] - v) < 1e-4 for t, v in stored.items()), (said, stored)
        one = {r["title"]: float(r["logS"]) for r in csv.DictReader(io.StringIO(p.run("predict", model, "in.csv", "--count", "1")[1]))}
        assert max(abs(one[t] - v) for t, v in stored.items()) > 1e-3, one
        p.put("few.csv", table(4))
        p.workflow(["{path: few.csv, columns: {smiles: smiles, title: name}}"], "  read: {}\n  prepare: {conformers: {source: generate}}\n"
                   "  graph: {edges: bonds}\n  basis: {}\n  score: {}\n", name="few.yaml", workdir="few", extra="models: {m: {path: %s}}\n" % model)
        warned = "SELECT message FROM event WHERE level='warn' AND message LIKE '%trained on up to%'"
        p.run("run", "few.yaml", "-q")
        assert p.rows(warned, workdir="few") == [(
            "model m was trained on up to 4 structures of a molecule, and here 1 is built (stages.prepare.conformers.count): its errors and "
            "intervals are those of means over structures",)], p.rows(warned, workdir="few")
        p.run("run", "few.yaml", "-q", "workdir=four", "stages.prepare.conformers.count=4")
        assert p.rows(warned, workdir="four") == []
        # A file of an earlier version does not tell it; its steps do.
        sieve.older_model(model, p.path("old.safetensors"), untold)
        told = "is of an earlier version and does not tell how many structures of a molecule it was trained on"
        said = " ".join(p.run("predict", "old.safetensors", "few.csv")[2].split())
        assert said.count("model e2e " + told) == said.count("which are built with a count above 1 (--count)") == 1, said
        assert all(told not in p.run("predict", path, "few.csv", *more)[2] for path, more in (("old.safetensors", ("--count", "3")), (model, ())))
        p.workflow(["{path: few.csv, columns: {smiles: smiles, title: name}}"], "  read: {}\n  prepare: {conformers: {source: generate}}\n"
                   "  graph: {edges: bonds}\n  basis: {}\n  score: {}\n", name="old.yaml", workdir="old", extra="models: {m: {path: old.safetensors}}\n")
        p.run("run", "old.yaml", "-q")
        assert p.one("SELECT count(*) FROM event WHERE level='warn' AND instr(message, ?)", told, workdir="old") == 1
        # Killed at a unit of each stage and during training; with other numbers of workers; with two ranks.
        want = digest(p, "run"), tensors(p.path("run/models/e2e.safetensors"))
        for fault in ("train.checkpoint.after:2", "score.unit.before_commit:3"):
            p.run("run", "w.yaml", "-q", "workdir=killed", expect=137, env=dict(os.environ, MOLSIEVE_FAULT=fault))
        p.run("run", "w.yaml", "-q", "-j", "3", "workdir=killed")
        assert (digest(p, "killed"), tensors(p.path("killed/models/e2e.safetensors"))) == want
        status, text = ranks_e2e.Started(p, 2, "workdir=ranks").end()
        assert status == [0, 0] and tensors(p.path("ranks/models/e2e.safetensors")) == want[1], text
        # With one structure each, from the cache: no spread, and the lowest energy.
        p.run("run", "w.yaml", "-q", "workdir=one", "stages.prepare.conformers.count=1",
              "stages.prepare.conformers.dielectric=4") # as by default of several, so that energies compare
        assert p.rows("SELECT DISTINCT structures, spread FROM molecule JOIN prediction USING(mol_id)", workdir="one") == [(1, None)]
        least = dict(p.rows("SELECT mol_id, energy FROM molecule"))
        assert all(e >= least[m] - 1e-9 for m, e in p.rows("SELECT mol_id, energy FROM molecule", workdir="one"))


def each_structure_gives_a_value_and_the_score_is_their_mean():
    with sieve.Project() as p:
        begin(p, 40, STAGES % "bonds" + SCORE, extra=ESOL)
        p.run("run", "w.yaml", "-q")
        rows = p.rows(PER_MOLECULE)
        made = list(structures(p, "run"))
        assert len(made) == sum(n for n, _, _ in rows)
        p.put("all.sdf", "".join(text for _, text in made))
        p.workflow(["all.sdf"], "  read: {}\n  prepare: {conformers: {source: keep}, dedupe: {by: none}}\n  graph: {edges: bonds}\n  score: {}\n",
                   name="each.yaml", workdir="each", extra=ESOL)
        p.run("run", "each.yaml", "-q")
        each = {}
        for mol_id, value in p.rows("SELECT title, value FROM prediction JOIN record USING(mol_id)", workdir="each"):
            each.setdefault(int(mol_id), []).append(value)
        for (mol_id, values), (n, value, spread) in zip(sorted(each.items()), rows):
            assert len(values) == n and abs(statistics.fmean(values) - value) < 1e-3, (mol_id, values, value)
            assert n == 1 or abs(statistics.stdev(values) - spread) < 1e-3, (mol_id, values, spread)
        assert statistics.median(spread for _, _, spread in rows if spread) > 0.006 # far above the tolerances used above


def edges(p, workdir):
    """Molecule -> directed edges of its structures (chem/graph/graph_block.h)."""
    db = sqlite3.connect("file:%s?mode=ro" % p.path(workdir, "features.db"), uri=True)
    found = {}
    for block, in db.execute("SELECT data FROM block WHERE kind='graph' ORDER BY unit"):
        n = struct.unpack_from("<I", block, 12)[0]
        ids, at = struct.unpack_from("<%dq" % n, block, 48), 48 + 8 * n + (4 * (n + 1) + 7) // 8 * 8
        first = struct.unpack_from("<%dI" % (n + 1), block, at)
        for k, mol_id in enumerate(ids):
            found.setdefault(mol_id, []).append(first[k + 1] - first[k])
    db.close()
    return found


def kills_workers_and_shards_give_the_same_structures():
    with sieve.Project() as p:
        begin(p, 30, STAGES % "radius" + "  rank: {objectives: [{property: mw, goal: maximise}]}\n", extra="limits: {failures: {max_fraction: 1}}\n")
        p.run("run", "w.yaml", "-q", "workdir=free")
        # Either all structures of a molecule have a graph, or none.
        before = edges(p, "free")
        some = next(e for e in sorted(before.values(), key=len) if min(e) < max(e))
        limit = max(some) - 1
        p.workflow(["{path: in.csv, columns: {smiles: smiles, title: name}}"], STAGES.replace("edges: %s", "edges: radius, max_edges: %d" % limit)
                   + "  rank: {objectives: [{property: mw, goal: maximise}]}\n", extra="limits: {failures: {max_fraction: 1}}\n")
        p.run("run", "w.yaml", "-q")
        assert edges(p, "run") == {m: e for m, e in before.items() if max(e) <= limit} != {}
        assert {m for m, in p.rows("SELECT mol_id FROM failure WHERE stage='graph'")} == {m for m, e in before.items() if max(e) > limit}
        want = sieve.dump(p)
        for fault in ("prepare.unit.before_commit:2", "prepare.unit.after_features:2", "graph.unit.after_features:3"):
            p.run("run", "w.yaml", "-q", "workdir=killed", expect=137, env=dict(os.environ, MOLSIEVE_FAULT=fault))
        p.run("run", "w.yaml", "-q", "-j", "1", "workdir=killed")
        sieve.same(want, sieve.dump(p, "killed"), "killed")
        merged(p, 2, "shards")
        assert digest(p, "shards") == digest(p, "run")
        # The cache of structures gives the same result again, without building any.
        p.run("run", "w.yaml", "-q", "--from", "prepare")
        sieve.same(want, sieve.dump(p), "kept")
        assert "0 structures built, 30 from the cache" in p.rows("SELECT message FROM event WHERE message LIKE '%structures built%' ORDER BY event_id")[-1][0]


def undefined_stereo_of_a_smiles_is_reported():
    with sieve.Project() as p:
        p.put("a.smi", "C[C@H](O)CC defined\nCC(O)CC open\nCC=CC bond\n")
        p.workflow(["a.smi"], "  read: {}\n  prepare: {conformers: {source: none}}\n  rank: {objectives: [{property: undefined_stereo, "
                   "goal: minimise}]}\n")
        p.run("run", "w.yaml", "-q")
        assert p.rows("SELECT titles, undefined_stereo FROM v_hits ORDER BY rank") == [("defined", 0), ("open", 1), ("bond", 1)]
        assert p.rows("SELECT DISTINCT structures FROM molecule") == [(None,)]
        p.run("run", "w.yaml", "-q", 'stages.prepare.keep="undefined_stereo = 0"')
        assert p.rows("SELECT title, status FROM record ORDER BY 1") == [("bond", "filtered"), ("defined", "ok"), ("open", "filtered")]
        # Settings without effect, and invalid numbers.
        assert "nothing ran" in p.run("run", "w.yaml", 'stages.prepare.keep="undefined_stereo = 0"', "stages.prepare.conformers.count=7")[1]
        for wrong in ("count=0", "count=101", "window=-1"):
            assert p.run("check", "w.yaml", "stages.prepare.conformers." + wrong, expect=2)[2].count(wrong.split("=")[0])


def defined_stereo_is_built_or_the_record_fails():
    """The exported structure, read back, has the SMILES of the molecule. Open Babel's builder inverts some stereocentres."""
    smiles = ["O[C@H](c1ccccc1)[C@H](N)C"] + [x.split()[0] for x in open(os.path.join(SOURCE, "tests/data/library.smi")) if "@" in x.split()[0]][:40:2]
    with sieve.Project() as p:
        p.put("a.smi", "".join("%s s%d\n" % x for x in zip(smiles, range(len(smiles)))))
        rank = "  rank: {objectives: [{property: mw, goal: maximise}], top: 100}\n  write: {sdf: hits.sdf}\n"
        p.workflow(["a.smi"], "  read: {unit: 6}\n  prepare: {conformers: {source: generate}}\n" + rank)
        p.run("run", "w.yaml", "-q", "limits.failures.max_fraction=1")
        built = p.rows("SELECT titles, inchikey FROM v_hits ORDER BY 1")
        failed = p.rows("SELECT message FROM failure")
        assert len(built) + len(failed) == len(smiles) and len(failed) <= 2, failed
        assert all("stereocentre or double bond other than defined" in m for m, in failed), failed
        assert "s0" in [title for title, _ in built], built
        p.workflow(["run/hits.sdf"], "  read: {}\n  prepare: {conformers: {source: keep}}\n" + rank, name="back.yaml", workdir="back")
        p.run("run", "back.yaml", "-q")
        assert p.rows("SELECT titles, inchikey FROM v_hits ORDER BY 1", workdir="back") == built


if __name__ == "__main__":
    sieve.main([scores_are_means_over_the_structures, each_structure_gives_a_value_and_the_score_is_their_mean,
                kills_workers_and_shards_give_the_same_structures,
                undefined_stereo_of_a_smiles_is_reported, defined_stereo_is_built_or_the_record_fails])
