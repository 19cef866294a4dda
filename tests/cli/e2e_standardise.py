#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `prepare` does before anything is built: neutral forms."""
from sieve import Project, accounted, main


def neutral_forms_are_recorded_and_are_duplicates_of_neutral_records():
    with Project() as p:
        p.put("a.smi", "CC(=O)[O-].[Na+] acetate\nCC(=O)O acid\nC[N+](C)(C)CC(=O)[O-] betaine\n[NH3+]CC([O-])=O glycine\nXx bad\n")
        stages = "  read: {unit: 2}\n  prepare: {conformers: {source: none}%s}\n"
        p.run("run", p.workflow([p.path("a.smi")], stages % ""), "-q")
        assert accounted(p) == (5, 4, 1)
        assert p.rows("SELECT DISTINCT neutralised FROM molecule") == [(None,)]
        key = p.one("SELECT key FROM stage WHERE name='prepare'")
        assert "neutralise" not in p.one("SELECT params_json FROM stage WHERE name='prepare'")
        p.run("run", p.workflow([p.path("a.smi")], stages % ", neutralise: false"), "-q")
        assert p.one("SELECT key FROM stage WHERE name='prepare'") == key
        w = p.workflow([p.path("a.smi")], stages % ", neutralise: true")
        p.run("run", w, "-q")
        assert accounted(p) == (5, 4, 1)
        assert p.rows("SELECT r.title, r.status, m.charge, m.neutralised, m.removed FROM record r LEFT JOIN molecule m USING(mol_id) "
                      "ORDER BY record_id") == [("acetate", "ok", 0, -1, "[Na+]"), ("acid", "duplicate", 0, -1, "[Na+]"),
                                                ("betaine", "ok", 0, None, None), ("glycine", "ok", 0, 0, None),
                                                ("bad", "failed", None, None, None)]
        digest = p.run("db", "digest", "--results-only", "run")[1]
        for k in range(2):
            p.run("run", w, "-q", "--shard", "%d/2" % k, "workdir=shards")
        p.run("merge", w, "-q", "workdir=shards")
        assert p.run("db", "digest", "--results-only", "shards")[1] == digest


if __name__ == "__main__":
    main([neutral_forms_are_recorded_and_are_duplicates_of_neutral_records])
