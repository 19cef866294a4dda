#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Similarity of molecules to a model's training molecules: stored in the model, shown with every score, required by a ranking."""
import csv
import json
import math
import os
import re
import shutil
import sqlite3
import struct
import zlib

import sieve
from train_e2e import GRAPH, READ, SDF, tensors, train_stages

ROWS = "SELECT inchikey, model.name, similarity, nearest FROM prediction JOIN molecule USING(mol_id) JOIN model USING(model_id) ORDER BY 1, 2"


def domain(path):
    """InChIKey -> bits, read without the program's own code."""
    found, _ = tensors(path)
    if "domain.zlib" not in found:
        return {}
    packed = found["domain.zlib"][1]
    n, rows = struct.unpack("<I", packed[:4])[0], zlib.decompress(packed[4:])
    assert len(rows) == n * (256 + 27) and found["domain.zlib"][0] == [len(packed)]
    prints, keys = rows[:256 * n], rows[256 * n:]
    names = [keys[27 * i:27 * i + 27].decode() for i in range(n)]
    assert names == sorted(names) and len(set(names)) == n
    return {name: int.from_bytes(prints[256 * i:256 * i + 256], "little") for i, name in enumerate(names)}


def nearest(own, bits, known):
    """Of the molecule `own`: itself if it is known, else the first in the order of the keys of those that are most similar."""
    if own in known:
        return 1, own
    best = (-1, "")
    for key in sorted(known):
        both, either = bin(bits & known[key]).count("1"), bin(bits | known[key]).count("1")
        if both / either > best[0]:
            best = (both / either, key)
    return best


def train(p, name, *more):
    p.run("run", "w.yaml", "-q", "workdir=" + name, "storage.features=features.db", "stages.train.epochs=1", *more)
    return shutil.copy(p.path(name, "models/e2e.safetensors"), p.path(name + ".safetensors"))


def prepared(p, n=60):
    p.put("in.sdf", sieve.sdf_records(sieve.data(SDF), n))
    p.workflow(["in.sdf"], train_stages())


def screen(p, name, models, tail="", more=()):
    extra = "models:\n" + "".join("  %s: {path: %s.safetensors}\n" % (m, m) for m in models)
    p.workflow(["in.sdf"], READ.replace("labels: [gap]", "labels: none") + GRAPH + "  score: {}\n" + tail, name=name + ".yaml", workdir=name, extra=extra)
    p.run("run", name + ".yaml", "-q", *more)
    return p.rows(ROWS, workdir=name)


def a_score_names_the_nearest_training_molecule():
    with sieve.Project() as p:
        prepared(p)
        part, every = domain(train(p, "part")), domain(train(p, "every", "stages.split.fractions.train=1", "stages.split.fractions.valid=0",
                                                             "stages.split.fractions.test=0"))
        assert set(part) == {k for k, in p.rows("SELECT inchikey FROM split JOIN molecule USING(mol_id) WHERE part='train'", workdir="part")}
        assert len(every) == 60 and all(every[k] == part[k] for k in part) and len(part) == 42
        # If there are more molecules than the file keeps, each has the same chance, by the seed.
        few = domain(train(p, "few", "stages.train.domain=20"))
        others = domain(train(p, "others", "stages.train.domain=20", "seed=12"))
        assert len(few) == len(others) == 20 and few.items() <= part.items() and set(few) != set(others)
        none = train(p, "none", "stages.train.domain=0")
        assert domain(none) == {}
        # The weights do not depend on it.
        weights = [{k: v for k, v in tensors(p.path(m + ".safetensors"))[0].items() if not k.startswith(("domain.", "seen."))} for m in ("part", "few", "none")]
        assert weights[0] == weights[1] == weights[2]
        # Scores: one model, several with the same and other domains, one without.
        want = {k: nearest(k, bits, part) for k, bits in every.items()}
        rows = screen(p, "one", ["part"])
        assert {k: (s, n) for k, _, s, n in rows} == want and all((want[k][0] == 1) for k in part)
        assert 0 < sum(v[0] < 1 for v in want.values()) <= 18
        assert p.rows("SELECT s.similarity=x.similarity, count(*) FROM score s JOIN prediction x USING(mol_id) GROUP BY 1", workdir="one") == [(1, 60)]
        models = ["few", "others", "part"]
        rows = screen(p, "three", models, more=("-j", "3", "stages.read.unit=7", "stages.score.batch.molecules=3"))
        known = {"few": few, "others": others, "part": part}
        assert {(k, m): (s, n) for k, m, s, n in rows} == {(k, m): nearest(k, every[k], known[m]) for k in every for m in models}
        assert p.rows("SELECT count(*) FROM score s WHERE similarity=(SELECT min(similarity) FROM prediction x WHERE x.mol_id=s.mol_id)",
                      workdir="three") == [(60,)]
        rows = screen(p, "silent", ["few", "none"])
        assert all((s is None and n is None) == (m == "none") for _, m, s, n in rows) and len(rows) == 120
        assert p.one("SELECT count(similarity) FROM score", workdir="silent") == 0  # one model has no fingerprints, so its similarity is unknown
        # Where it is shown.
        info = [p.run("model", "info", m + ".safetensors")[1] for m in ("few", "none")]
        assert "domain      20 training molecules" in info[0] and "domain" not in info[1]
        assert "domain      20 training molecules" in p.run("model", "verify", "few.safetensors")[1]
        told = p.run("model", "diff", "part.safetensors", "few.safetensors", expect=1)[1]
        assert "domain: 42 -> 20 molecules; 22 only in the first, 0 only in the second\n" in told and "weights" not in told, told


RANK = "  rank: {objectives: [{property: gap_ev, goal: maximise%s}]}\n  write: {sdf: hits.sdf}\n"


def a_similarity_minimum_ranks_the_same_with_shards():
    with sieve.Project() as p:
        prepared(p, 40)
        train(p, "some", "stages.train.domain=10")
        train(p, "none", "stages.train.domain=0")
        screen(p, "all", ["some"], RANK % "")
        screen(p, "near", ["some"], RANK % ", similarity_at_least: 0.4")
        like = dict(p.rows("SELECT mol_id, similarity FROM score", workdir="near"))
        hits = [m for m, in p.rows("SELECT mol_id FROM hit ORDER BY rank", workdir="near")]
        assert hits == [m for m, in p.rows("SELECT mol_id FROM hit ORDER BY rank", workdir="all") if like[m] >= 0.4] and 10 <= len(hits) < 40
        table = list(csv.DictReader(open(p.path("near/hits.csv"))))
        top = list(csv.DictReader(p.run("top", "--csv", "-n", "40", "near")[1].splitlines()))
        assert [float(r["gap_ev_similarity"]) for r in table] == [like[m] for m in hits] == [float(r["gap_ev_similarity"]) for r in top]
        assert open(p.path("near/hits.sdf")).read().count("<gap_ev_similarity>") == len(hits)
        assert [r[0] for r in p.rows("SELECT similarity FROM v_hits ORDER BY rank", workdir="near")] == [like[m] for m in hits]
        # Models without fingerprints: no column, and a ranking that requires a similarity is refused.
        screen(p, "silent", ["none"], RANK % "")
        assert "similarity" not in open(p.path("silent/hits.csv")).readline() + p.run("top", "--csv", "silent")[1]
        for workflow, rule, says in (("silent", "objectives: [{property: gap_ev, goal: maximise, similarity_at_least: 0.4}]", "has no fingerprints"),
                                     ("all", "constraints: [{property: mw, similarity_at_least: 0.4}]", "mw is a descriptor"),
                                     ("all", "constraints: [{property: gap_ev, similarity_at_least: 1.4}]", "similarity_at_least")):
            err = p.run("check", workflow + ".yaml", "stages.rank." + rule.replace(": ", "=", 1), expect=2)[2]
            assert says in err, err
        db = sqlite3.connect(p.path("near/results.db"))  # as a model of an earlier version
        db.execute("UPDATE score SET similarity=NULL")
        db.execute("DELETE FROM row_sum")  # intended changes, no damage
        db.commit()
        db.close()
        assert "no score of gap_ev has similarity" in p.run("run", "near.yaml", "stages.rank.top=9", expect=2)[2]
        # Shards, also those of an older program.
        digest = p.run("db", "digest", "--results-only", "all")[1]
        for k in range(2):
            p.run("run", "all.yaml", "-q", "--shard", "%d/2" % k, "workdir=shards")
        shard = p.path("shards/shards/00001-of-00002/results.db")
        os.rename(shard, p.path("now.db"))
        sieve.in_format(p.path("now.db"), shard)
        assert "older molsieve" in "".join(p.run("merge", "all.yaml", "-q", "workdir=shards", expect=None)[1:])
        os.rename(p.path("now.db"), shard)
        p.run("merge", "all.yaml", "-q", "workdir=shards")
        p.run("run", "all.yaml", "-q", "workdir=shards")
        assert p.run("db", "digest", "--results-only", "shards")[1] == digest


def scores_of_earlier_rules_are_made_again():
    """An earlier build, without rules for radicals, stored intervals for them: a run on its database must not keep these."""
    with sieve.Project() as p:
        prepared(p, 40)
        train(p, "m")
        p.put("radicals.smi", "c1ccccc1O phenol\nc1ccccc1[O] phenoxyl\n")
        p.workflow(["radicals.smi"], "  read: {}\n  prepare: {conformers: {source: generate}}\n" + GRAPH + "  score: {}\n", name="s.yaml", workdir="s",
                   extra="models: {m: {path: m.safetensors}}\n")
        p.run("run", "s.yaml", "-q")
        read = "SELECT title, domain, reasons, interval90 FROM score JOIN record USING(mol_id) ORDER BY 1"
        want = p.rows(read, workdir="s")
        assert [(r[0], r[1], r[3]) for r in want] == [("phenol", "outside", None), ("phenoxyl", "outside", None)] and "unusual" in want[1][2], want
        rules = {name: json.loads(extra).get("rules of the domain") for name, extra in
                 p.rows("SELECT name, extra_json FROM stage WHERE name IN ('score','evaluate')", workdir="s") +
                 p.rows("SELECT name, extra_json FROM stage WHERE name IN ('score','evaluate')", workdir="m")}
        assert set(rules) == {"score", "evaluate"} and all(n >= 2 for n in rules.values()), rules
        # The database as that build left it: other rules in the key, and an interval.
        with sqlite3.connect(p.path("s", "results.db")) as db:
            db.execute("UPDATE score SET domain='inside', reasons=NULL, interval90=0.1")
            db.execute("UPDATE stage SET key='earlier', extra_json=replace(extra_json,'\"rules of the domain\":2','\"x\":1') WHERE name='score'")
            db.execute("DELETE FROM row_sum")
        db.close()
        assert "rules of the domain" in p.run("explain", "s.yaml", "score")[1]
        p.run("run", "s.yaml", "-q")
        assert p.rows(read, workdir="s") == want, p.rows(read, workdir="s")


def errors_are_reported_by_similarity():
    with sieve.Project() as p:
        prepared(p)
        p.run("run", "w.yaml", "-q", "stages.train.epochs=1", "stages.train.domain=15")
        rows = p.rows("SELECT part, similarity, abs(predicted-measured) FROM evaluated")
        told = {(a, b): (v, n) for a, b, v, n in p.rows("SELECT part, metric, value, n FROM evaluation WHERE metric LIKE '%similarity%'")}
        assert len(rows) == 60 and all(0 <= s <= 1 for _, s, _ in rows)
        for part in ("train", "valid", "test"):
            for name, low, high in (("mae.similarity<0.3", 0, 0.3), ("mae.similarity 0.3-0.5", 0.3, 0.5), ("mae.similarity>=0.5", 0.5, 2)):
                errors = [e for a, s, e in rows if a == part and low <= s < high]
                value, n = told.pop((part, name), (None, 0))
                assert n == len(errors) and (n == 0 or abs(value - sum(errors) / n) <= 1e-12 * value), (part, name)
            assert -1 <= told.pop((part, "spearman.similarity"))[0] <= 1
        assert not told
        p.run("report", "run")
        page = open(p.path("run/report.html")).read()
        assert "Error against similarity" in page and "mae" not in re.findall(r"<td>(\w+)</td>", page)


def bands_of(pairs):
    """Computed from the definition: (similarity, error) -> [(from, within, n)]."""
    bands = [[low, [e for s, e in pairs if low <= s < high]] for low, high in ((0, 0.3), (0.3, 0.5), (0.5, 2))]
    for k in (2, 1):
        if len(bands[k][1]) < 30:
            bands[k - 1][1] += bands.pop(k)[1]
    while len(bands) > 1 and len(bands[0][1]) < 30:
        bands[0][1] += bands.pop(1)[1]
    return [(low, sorted(e)[math.ceil(0.9 * (len(e) + 1)) - 1], len(e)) for low, e in bands]


def intervals_are_in_the_model_and_with_every_score():
    with sieve.Project() as p:
        prepared(p, 600)
        more = ("stages.train.epochs=3", "stages.split.fractions={train: 0.35, valid: 0.05, test: 0.6}")
        known = {}
        for name, least in (("few", 120), ("many", 200)):
            path = train(p, name, *more, "stages.train.domain=%d" % least)
            screen(p, name + "-all", [name])  # molecules outside have no interval, so they are not used to calibrate it
            inside = {k for k, in p.rows("SELECT inchikey FROM score JOIN molecule USING(mol_id) WHERE domain='inside'", workdir=name + "-all")}
            want = bands_of([(s, e) for k, s, e in p.rows("SELECT inchikey, similarity, abs(predicted-measured) FROM evaluated JOIN molecule "
                                                          "USING(mol_id) WHERE part='test'", workdir=name) if k in inside])
            interval = json.loads(tensors(path)[1]["interval"])
            known[name] = [(b["similarity"], b["within"], b["molecules"]) for b in interval["bands"]]
            assert interval["part"] == "test" and len(want) >= 2, (interval, want)
            assert all(a[0] == b[0] and a[2] == b[2] and abs(a[1] - b[1]) < 1e-4 * b[1] for a, b in zip(known[name], want)), (interval, want)
            info = p.run("model", "info", name + ".safetensors")[1]
            assert re.search(r"interval    90 % within [\d.]+ eV; [\d.]+ eV where the similarity is 0\.[35] or more.* \(test\)\n", info), info
        assert known["few"] != known["many"]

        def within(name, s):
            return [w for low, w, _ in known[name] if s >= low][-1]

        screen(p, "one", ["few"], RANK % "")
        rows = p.rows("SELECT mol_id, similarity, interval90, domain FROM score", workdir="one")
        inside = {m for m, _, _, d in rows if d == "inside"}
        assert len(rows) == 600 and 450 < len(inside) < 600 and {d for _, _, _, d in rows} == {"inside", "outside"}
        assert all(i == (within("few", s) if d == "inside" else None) for _, s, i, d in rows)
        assert len({i for _, _, i, _ in rows if i}) == len(known["few"])
        wide = {m: "" if i is None else repr(i) for m, _, i, _ in rows}
        assert all(r["gap_ev_interval90"] == ("" if h is None else repr(h)) for r, (h,) in zip(
            csv.DictReader(open(p.path("one/hits.csv"))), p.rows("SELECT interval90 FROM v_hits ORDER BY rank", workdir="one")))
        assert [r["gap_ev_interval90"] for r in csv.DictReader(p.run("top", "--csv", "-n", "50", "one")[1].splitlines())] == \
               [wide[m] for m, in p.rows("SELECT mol_id FROM hit ORDER BY rank LIMIT 50", workdir="one")]
        # A cautious ranking, by the lower end of the prediction interval.
        screen(p, "sure", ["few"], RANK % ", use: mean - 1.5*interval90")
        want = p.rows("SELECT mol_id, mean-1.5*interval90 AS v FROM score JOIN molecule USING(mol_id) WHERE domain='inside' ORDER BY v DESC, inchikey",
                      workdir="sure")
        got = p.rows("SELECT mol_id, objective FROM hit ORDER BY rank", workdir="sure")
        assert {m for m, _ in got} == inside and [m for m, _ in got] == [m for m, _ in want] and all(abs(a[1] - b[1]) < 1e-12 for a, b in zip(got, want))
        assert [m for m, _ in got] != [m for m, in p.rows("SELECT mol_id FROM hit ORDER BY rank", workdir="one") if m in inside]
        # Of several models the widest interval counts; if one model has none, there is none.
        screen(p, "two", ["few", "many"])
        near = {(m, n): s for m, n, s in p.rows("SELECT mol_id, name, similarity FROM prediction JOIN model USING(model_id)", workdir="two")}
        both = p.rows("SELECT mol_id, interval90, domain FROM score", workdir="two")
        assert all(i == (max(within(n, near[m, n]) for n in ("few", "many")) if d == "inside" else None) for m, i, d in both)
        assert {m for m, _, d in both if d == "inside"} <= inside
        none = json.loads(tensors(train(p, "none", *more, "stages.train.domain=0"))[1]["interval"])
        assert len(none["bands"]) == 1 and none["bands"][0]["similarity"] == 0  # one interval for all molecules where the similarity is unknown
        screen(p, "silent", ["none"])
        assert p.rows("SELECT DISTINCT interval90 FROM score WHERE domain='inside'", workdir="silent") == [(none["bands"][0]["within"],)]
        train(p, "little", *more, "stages.split.limit={train: 0, valid: 8, test: 8}")
        assert "interval" not in tensors(p.path("little.safetensors"))[1]
        screen(p, "three", ["few", "little"], RANK % "")
        sure = "stages.rank.objectives=[{property: gap_ev, goal: maximise, use: mean - interval90}]"
        assert "has no prediction interval" in p.run("check", "three.yaml", sure, expect=2)[2]
        db = sqlite3.connect(p.path("one/results.db"))  # as a model of an earlier version
        db.execute("UPDATE score SET interval90=NULL")
        db.execute("DELETE FROM row_sum")  # intended changes, no damage
        db.commit()
        db.close()
        assert "no score of gap_ev has interval90" in p.run("run", "one.yaml", sure, expect=2)[2]
        assert p.one("SELECT count(interval90) FROM score", workdir="three") == 0 and "interval90" not in open(p.path("three/hits.csv")).readline()


if __name__ == "__main__":
    sieve.main([a_score_names_the_nearest_training_molecule, a_similarity_minimum_ranks_the_same_with_shards, scores_of_earlier_rules_are_made_again, errors_are_reported_by_similarity,
                intervals_are_in_the_model_and_with_every_score])
