#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fingerprints and scaffolds of a run, and what finds molecules by them."""
import os
import sqlite3

import sieve
from sieve import Project, lines_of, data

FLAT = "  read: {unit: 20}\n  prepare: {conformers: {source: none}}\n"


def alike(a, b):
    """Tanimoto similarity of two stored fingerprints."""
    a, b = int.from_bytes(a, "little"), int.from_bytes(b, "little")
    return bin(a & b).count("1") / max(1, bin(a | b).count("1"))


def library(p, n=200):
    p.put("lib.smi", lines_of(data("library.smi"), n))
    return p.workflow([p.path("lib.smi")], FLAT + "  rank: {objectives: [{property: mw, goal: minimise}], top: 30}\n")


def fingerprints_and_scaffolds_of_all_molecules_are_stored():
    with Project() as p:
        p.put("a.smi", "Cc1ccccc1 toluene\nCCO ethanol\nc1ccccc1CC(=O)O acid\nOCC again\nCn1cccc1 pyrrole\nC(x bad\n")
        w = p.workflow([p.path("a.smi")], FLAT, extra="limits: {failures: {max_fraction: 1}}\n")
        p.run("run", w, "-q")
        rows = p.rows("SELECT mol_id, scaffold, length(bits) FROM fingerprint ORDER BY 1")
        assert rows == [(1, "c1ccccc1", 256), (2, "", 256), (3, "c1ccccc1", 256), (5, "[nH]1cccc1", 256)], rows
        on = [k for k, byte in enumerate(p.one("SELECT bits FROM fingerprint WHERE mol_id=2")) for _ in range(bin(byte).count("1"))]
        assert on == [252 // 8, 292 // 8, 325 // 8, 817 // 8, 1493 // 8, 1860 // 8], on  # tests/unit/fingerprint_test.c
        p.run("db", "check", "run")
        db = sqlite3.connect(p.path("run/results.db"))  # a fingerprint that another program changes is noticed
        db.execute("UPDATE fingerprint SET scaffold='C1CC1' WHERE mol_id=1")
        db.commit()
        db.close()
        assert "fingerprint: the checksum of its rows differs" in p.run("db", "check", "run", expect=5)[1]


def the_views_answer_what_people_ask():
    with Project() as p:
        p.run("run", library(p), "-q")
        rows = p.rows("SELECT scaffold, best_rank, hits, smiles FROM v_scaffolds ORDER BY best_rank")
        hits = p.rows("SELECT rank, scaffold, smiles FROM hit JOIN molecule USING(mol_id) JOIN fingerprint USING(mol_id) ORDER BY rank")
        best = {}
        for rank, scaffold, smiles in hits:
            best.setdefault(scaffold, [rank, 0, smiles])[1] += 1
        assert [(s, r, n, x) for s, (r, n, x) in best.items()] == rows and len(rows) < 30
        wide = p.rows("SELECT mol_id, rank, mw, scaffold FROM v_properties")
        assert len(wide) == p.one("SELECT count(*) FROM molecule") and sum(r[1] is not None for r in wide) == 30
        for view in ("v_scaffolds", "v_properties", "v_nearest"):
            columns = p.one("SELECT count(*) FROM pragma_table_info(?)", view)
            assert columns == p.one("SELECT count(*) FROM column_doc WHERE tbl=?", view) > 6


if __name__ == "__main__":
    sieve.main([fingerprints_and_scaffolds_of_all_molecules_are_stored, the_views_answer_what_people_ask])
