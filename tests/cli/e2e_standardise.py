#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `prepare` does before it builds structures: neutral forms and structural alerts."""
import csv
import io
import os
import re
import shutil
import subprocess

from sieve import PROGRAM, Project, accounted, data, lines_of, main, sdf_records


def neutral_forms_are_recorded_and_deduplicated():
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


DRAWINGS = (("O=N(=O)c1ccccc1", "[O-][N+](=O)c1ccccc1"), ("CCON(=O)=O", "CCO[N+](=O)[O-]"), ("O=n1ccccc1", "[O-][n+]1ccccc1"),
            ("CN(C)(C)=O", "C[N+](C)(C)[O-]"), ("CC=N(=O)C", "CC=[N+](C)[O-]"), ("CCCN=N#N", "CCCN=[N+]=[N-]"),
            ("CCOC(=O)C=N#N", "CCOC(=O)[CH-][N+]#N"), ("CC[N+]#[C-]", "CCN=[C]"), ("CCS(=O)C", "CC[S+]([O-])C"),
            ("CCS(=O)(=O)C", "CC[S+2]([O-])([O-])C"), ("CS(=O)(=O)Nc1ccccc1", "C[S+]([O-])(=O)Nc1ccccc1"),
            ("CP(C)(C)=O", "C[P+](C)(C)[O-]"), ("COP(=O)(OC)OC", "CO[P+]([O-])(OC)OC"), ("O=c1ccccn1C", "[O-]c1cccc[n+]1C"),
            ("CC(=O)NC", "CC([O-])=[NH+]C"))


def a_score_does_not_depend_on_the_drawing():
    with Project() as p:
        for k in range(2):
            p.put("%d.smi" % k, "".join("%s m%d\n" % (pair[k], i) for i, pair in enumerate(DRAWINGS)))
        model = "models: {esol: {path: %s}}\n" % os.path.join(os.environ["MOLSIEVE_SOURCE"], "workflows/models/esol.safetensors")
        stages = "  read: {}\n  prepare: {%s}\n  graph: {edges: bonds}\n  basis: {}\n  score: {}\n"
        sql = ("SELECT title, smiles, inchikey, mean, interval90, similarity, domain, reasons FROM record JOIN molecule USING(mol_id) "
               "JOIN score USING(mol_id) ORDER BY title")
        rows = []
        for drawing in ("", "drawing: as_drawn"):
            for k in range(2):
                workdir = "%s%d" % (drawing[:4] or "one", k)
                p.run("run", p.workflow([p.path("%d.smi" % k)], stages % drawing, extra=model, workdir=workdir), "-q")
                rows.append(p.rows(sql, workdir=workdir))
        assert len(rows[0]) == len(DRAWINGS) and rows[0] == rows[1], [pair for pair in zip(rows[0], rows[1]) if pair[0] != pair[1]]
        same = sum(a == b for a, b in zip(rows[2], rows[3]))
        assert same == 0, "%d scores do not depend on the drawing even as it is drawn" % same


def a_molecule_in_several_drawings_is_told():
    with Project() as p:
        p.put("a.smi", "Oc1ccccn1 enol\nO=c1cccc[nH]1 amide\nCCO ethanol\nc1ccccc1N(=O)=O nitro\nOc1ccccn1 enol2\nXx bad\n"
              "c1ccccc1[N+](=O)[O-] charged\nO=c1cccc[nH]1 amide2\nCc1cnc[nH]1 imidazole\nCc1c[nH]cn1 imidazole2\n")
        rows = [("enol", "ok", 1, None), ("amide", "duplicate", 1, "drawn as O=c1cccc[nH]1"), ("ethanol", "ok", 3, None),
                ("nitro", "ok", 4, None), ("enol2", "duplicate", 1, None), ("bad", "failed", None, None),
                ("charged", "duplicate", 4, None), ("amide2", "duplicate", 1, "drawn as O=c1cccc[nH]1"),
                ("imidazole", "ok", 9, None), ("imidazole2", "duplicate", 9, "drawn as Cc1c[nH]cn1")]
        sql = "SELECT title, status, mol_id, reason FROM record ORDER BY record_id"
        told = "SELECT count(*) FROM event WHERE level='warn' AND stage='prepare' AND message LIKE 'molecules given in more than one drawing%: 2;%'"
        w = p.workflow([p.path("a.smi")], "  read: {unit: 2}\n  prepare: {conformers: {source: none}}\n")
        for workers in ("1", "3"):
            p.run("run", w, "-q", "-j", workers, "workdir=run" + workers)
            assert p.rows(sql, workdir="run" + workers) == rows and p.one(told, workdir="run" + workers) == 1
        digest = p.run("db", "digest", "--results-only", "run1")[1]
        for n in (2, 5):
            for k in range(n):
                p.run("run", w, "-q", "--shard", "%d/%d" % (k, n), "workdir=shards%d" % n)
            p.run("merge", w, "-q", "workdir=shards%d" % n)
            assert p.run("db", "digest", "--results-only", "shards%d" % n)[1] == digest
            assert p.rows(sql, workdir="shards%d" % n) == rows and p.one(told, workdir="shards%d" % n) == 1
        p.run("run", w, "-q", "stages.prepare.dedupe.by=exact")
        assert p.one("SELECT count(*) FROM record WHERE reason IS NOT NULL") == 0 and p.one(told) == 0


def protonation_at_a_ph_ignores_how_a_molecule_is_drawn():
    with Project() as p:
        p.put("a.smi", "CC(=O)O acid\nCC(=O)[O-].[Na+] acetate\nCCN amine\nCC[NH3+].[Cl-] ammonium\nNCC(=O)O glycine\n"
              "[NH3+]CC([O-])=O zwitterion\nC1CNCCN1 piperazine\nCCO ethanol\nOCC.Cl salt\nXx bad\n")
        stages = "  read: {unit: 3}\n  prepare: {conformers: {source: none}%s}\n"
        p.run("run", p.workflow([p.path("a.smi")], stages % ""), "-q")
        key, extra = p.rows("SELECT key, params_json FROM stage WHERE name='prepare'")[0]
        assert "ph" not in re.findall('"([a-z.]+)":', extra) and "groups" not in extra, extra
        p.run("run", p.workflow([p.path("a.smi")], stages % ", ph: none"), "-q")
        assert p.one("SELECT key FROM stage WHERE name='prepare'") == key
        w = p.workflow([p.path("a.smi")], stages % ', ph: 7.4, alerts: {rules: ["[NX4+;!H0] ammonium"]}, keep: "charge < 2"')
        assert "ph" in p.run("explain", w, "prepare")[1]
        p.run("run", w, "-q")
        assert accounted(p) == (10, 9, 1)
        assert p.rows("SELECT r.title, r.status, m.smiles, m.charge, m.neutralised, m.removed, m.alerts FROM record r LEFT JOIN molecule m "
                      "USING(mol_id) ORDER BY record_id") == [
            ("acid", "ok", "[O-]C(=O)C", -1, 0, None, ""), ("acetate", "duplicate", "[O-]C(=O)C", -1, 0, None, ""),
            ("amine", "ok", "CC[NH3+]", 1, 0, None, "ammonium"), ("ammonium", "duplicate", "CC[NH3+]", 1, 0, None, "ammonium"),
            ("glycine", "ok", "[O-]C(=O)C[NH3+]", 0, 0, None, "ammonium"),
            ("zwitterion", "duplicate", "[O-]C(=O)C[NH3+]", 0, 0, None, "ammonium"),
            ("piperazine", "ok", "C1CNCC[NH2+]1", 1, 0, None, "ammonium"), ("ethanol", "ok", "CCO", 0, None, None, ""),
            ("salt", "duplicate", "CCO", 0, None, None, ""), ("bad", "failed", None, None, None, None, None)]
        assert p.rows("SELECT inchikey FROM molecule ORDER BY mol_id") == [(k,) for k in (
            "QTBSBXVTEAMEQO-UHFFFAOYSA-M", "QUSNBJAOOMFDIB-UHFFFAOYSA-O", "DHMQDGOQFOQNFH-UHFFFAOYSA-N",
            "GLUUGHFHXGJENI-UHFFFAOYSA-O", "LFQSCWFLJHTTHZ-UHFFFAOYSA-N")]
        digest = p.run("db", "digest", "--results-only", "run")[1]
        for k in range(2):
            p.run("run", w, "-q", "--shard", "%d/2" % k, "workdir=shards")
        p.run("merge", w, "-q", "workdir=shards")
        assert p.run("db", "digest", "--results-only", "shards")[1] == digest
        keys = {key}
        for ph in ("2", "7.4", "11", "14", "0"):
            p.run("run", w, "-q", "stages.prepare.ph=" + ph, "stages.prepare.keep=null")
            keys.add(p.one("SELECT key FROM stage WHERE name='prepare'"))
            assert p.one("SELECT charge FROM record JOIN molecule USING(mol_id) WHERE title='zwitterion'") == \
                {"2": 1, "7.4": 0, "11": -1, "14": -1, "0": 1}[ph]
        assert len(keys) == 6
        why = p.run("explain", w, "prepare", "stages.prepare.ph=3")[1]
        assert re.search("ph.* 0.* 3", why), why


def a_structure_is_built_of_the_state_at_the_ph():
    with Project() as p:
        p.put("a.smi", "CC(=O)O acid\nCC(=O)[O-] acetate\nCCO ethanol\n")
        w = p.workflow([p.path("a.smi")], "  read: {}\n  prepare: {ph: 7.4}\n  graph: {}\n  rank: {objectives: [{property: mw, goal: "
                       "minimise}]}\n  write: {sdf: hits.sdf}\n")
        p.run("run", w, "-q")
        assert p.rows("SELECT smiles, n_atoms, charge, geometry FROM molecule ORDER BY mol_id") == [
            ("[O-]C(=O)C", 7, -1, "mmff94"), ("CCO", 9, 0, "mmff94")]
        assert open(p.path("run", "hits.sdf")).read().count("M  CHG  1") == 1
        p.run("run", w, "-q", "stages.prepare.ph=none")  # the structures of ethanol and acetate are those built before
        assert p.one("SELECT message FROM event WHERE message LIKE '%structures built%' ORDER BY event_id DESC") == \
            "1 structures built, 2 from the cache"


def a_wrong_ph_is_reported_with_its_place():
    with Project() as p:
        p.put("a.smi", "CCO ethanol\n")
        for bad, words in (("15", "15 is outside 0..14 or none"), ("-0.1", "-0.1 is outside 0..14 or none"),
                           ("neutral", "0..14 or none"), ("nan", "0..14 or none"), ("[7]", "0..14 or none"), ("7,4", "0..14 or none")):
            said = p.run("check", p.workflow([p.path("a.smi")], "  read: {}\n  prepare:\n    ph: %s\n" % bad), expect=2)[2]
            assert re.search(r"w.yaml:10:9: .*prepare.ph: ", said) and words in said and said.count("\n") <= 2, said
        for good in ("0", "14", "7", "7.4", "none", "6.5"):
            p.run("check", p.workflow([p.path("a.smi")], "  read: {}\n  prepare: {ph: %s}\n" % good))


def real_molecules_keep_their_atoms_at_any_ph():
    with Project() as p:
        inputs = ['{path: "%s", columns: {smiles: smiles}}' % name for name in (ESOL, data("labels.csv.gz"))]
        inputs.append('{path: "%s"}' % data("library.smi"))
        inputs.append('{path: "%s"}' % p.put("drugs.sdf", sdf_records(data("ligands.sdf.gz"), 300)))
        w = p.workflow(inputs, "  read: {}\n  prepare: {conformers: {source: none}, dedupe: {by: none}, labels: none}\n",
                       extra="limits: {failures: {max_fraction: 1}}\n")
        sql = "SELECT record_id, smiles, status, n_heavy, charge, n_atoms FROM record LEFT JOIN molecule USING(mol_id) ORDER BY 1"
        p.run("run", w, "-q")
        drawn, last = p.rows(sql), None
        for ph in ("1", "7.4", "13"):
            p.run("run", w, "-q", "stages.prepare.ph=" + ph)
            now = p.rows(sql)
            assert len(now) == len(drawn) > 4000
            for a, b in zip(drawn, now):
                assert a[2:4] == b[2:4], (a, b)
                assert a[2] == "failed" or b[4] - a[4] == b[5] - a[5], (a, b)
            if last is not None:
                assert all(b[4] is None or b[4] <= a[4] for a, b in zip(last, now))
            last = now
            if ph == "7.4":
                p.put("again.smi", "".join("%s %d\n" % (r[1], r[0]) for r in now if r[1]))
        assert sum(a[4] != b[4] for a, b in zip(drawn, now)) > 500
        p.run("run", w, "-q", "stages.prepare.ph=7.4")
        first = {r[0]: r[1] for r in p.rows(sql)}
        p.run("run", p.workflow([p.path("again.smi")], "  read: {}\n  prepare: {ph: 7.4, fragment: keep, conformers: {source: none}, "
                                "dedupe: {by: none}}\n", workdir="again"), "-q")
        for title, smiles in p.rows("SELECT title, smiles FROM record JOIN molecule USING(mol_id)", workdir="again"):
            assert first[int(title)] == smiles, (first[int(title)], smiles)


ESOL = os.path.join(os.environ["MOLSIEVE_SOURCE"], "workflows/data/esol.csv")
RULES_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../workflows/data/alerts.smarts")

# For each supplied rule a molecule that it must match and one that it must not match.
RULES = {
    "acyl halide": ("CC(=O)Cl O=C(F)c1ccccc1", "CC(=O)CCl ClC=C"),
    "sulfonyl halide": ("CS(=O)(=O)F Cc1ccc(cc1)S(=O)(=O)Cl", "CS(=O)(=O)N CS(=O)(=O)CC(F)(F)F"),
    "anhydride": ("CC(=O)OC(C)=O O=C1OC(=O)c2ccccc12", "CC(=O)OCC(C)=O CC(=O)NC(C)=O"),
    "active ester": ("CC(=O)ON1C(=O)CCC1=O CC(=O)On1nnc2ccccc12 CC(=O)Oc1ccc(cc1)[N+](=O)[O-] CC(=O)Oc1ccc(cc1)N(=O)=O "
        "CC(=O)Oc1c(F)c(F)c(F)c(F)c1F", "CC(=O)Oc1ccccc1C(=O)O CC(=O)NO CC(=O)Oc1ccc(F)cc1"),
    "thioester": ("CC(=O)SCC", "CC(=O)OCC CCSCC"),
    "beta-lactone": ("O=C1OCC1C", "O=C1OCCC1 O=C1NCC1"),
    "isocyanate": ("CN=C=O", "CNC=O CNC(N)=O"),
    "isothiocyanate": ("C=CCN=C=S", "CSC#N CNC(N)=S"),
    "carbodiimide": ("CN=C=NC", "CNC(=N)NC"),
    "alkyl halide": ("CCCl CC(Br)C ICC", "CC(Cl)(Cl)Cl Clc1ccccc1 ClC=CC CCF FC(F)F CC(C)(C)Cl"),
    "alpha-halo carbonyl": ("CC(=O)CCl CC(C)(Br)C(=O)OC NC(=O)CI", "CC(=O)CCCl CC(=O)CF"),
    "nitrogen mustard": ("CN(CCCl)CCCl", "CN(CCO)CCCl"),
    "sulfonate ester": ("CS(=O)(=O)OC COS(=O)(=O)OC", "CS(=O)(=O)Oc1ccccc1 CS(=O)(=O)O CS(=O)(=O)NC"),
    "epoxide": ("C1OC1CO O1C2CCCCC12", "C1COC1 C1CC1"),
    "aziridine": ("C1NC1C CN1CC1", "C1CNC1"),
    "thiirane": ("C1SC1", "C1CSC1"),
    "aldehyde": ("O=Cc1ccccc1 CCC=O [O-][N+](=O)c1ccc(C=O)cc1", "CC(C)=O CN(C)C=O COC=O CC(=O)O"),
    "Michael acceptor": ("C=CC(C)=O CC=CC=O O=C(/C=C/c1ccccc1)c1ccccc1 C=CC(=O)NC C=C(C)C(=O)OC C=CS(C)(=O)=O C=CC#N "
        "CC=C[N+](=O)[O-] CC=CN(=O)=O C#CC(C)=O", "CC=CC(=O)NC OC(=O)C=Cc1ccccc1 CC(=O)c1ccccc1 CC(=O)C(C)=C(C)C C=CCC#N "
        "O=c1ccoc2ccccc12 C=Cc1ccccc1"),
    "maleimide": ("O=C1C=CC(=O)N1C", "O=C1CCC(=O)N1C O=C1c2ccccc2C(=O)N1"),
    "quinone": ("O=C1C=CC(=O)C=C1 O=C1C=CC(=O)c2ccccc12 O=C1c2ccccc2C(=O)c2ccccc12 O=C1C(=O)C=CC=C1", "O=C1CCC(=O)CC1 "
        "O=C1C=CC=CN1 O=c1ccoc2ccccc12 Oc1ccc(O)cc1"),
    "ylidene malononitrile": ("N#CC(C#N)=Cc1ccccc1 CC(C)=C(C#N)C#N", "N#CCC#N N#CC(C)C#N"),
    "peroxide": ("COOC CC(=O)OO", "COC CON"),
    "catechol": ("Oc1ccccc1O Oc1cc(CCN)ccc1O", "COc1ccccc1O Oc1cccc(O)c1 OC1CCCCC1O"),
    "hydroquinone": ("Oc1ccc(O)cc1", "COc1ccc(O)cc1 Oc1cccc(O)c1"),
    "azo": ("c1ccccc1N=Nc1ccccc1", "CC=NC c1ccnnc1 CN=NN(C)C"),
    "diazo": ("C=[N+]=[N-] COC(=O)C=[N+]=[N-] c1ccccc1[N+]#N", "CN=[N+]=[N-] C[N+]#[C-] CC#N"),
    "azide": ("CN=[N+]=[N-]", "C=[N+]=[N-] Cn1ccnn1"),
    "hydrazine": ("NNc1ccccc1 CNNC", "CC(=O)NN CN(C)N=C NCCN NNC(N)=O"),
    "nitroso": ("CN(C)N=O O=Nc1ccccc1", "C[N+](=O)[O-] CC=NO CON=O"),
    "thiol": ("CCS Sc1ccccc1", "CSC CC(N)=S"),
    "disulfide": ("CSSC", "CSCSC CSC"),
    "rhodanine": ("O=C1CSC(=S)N1 CCN1C(=O)CSC1=S", "O=C1CSC(=O)N1 O=C1CNC(=S)N1"),
    "ylidene thiazolidinone": ("O=C1NC(=S)SC1=Cc1ccccc1 O=C1NC(=O)SC1=Cc1ccccc1", "O=C1CSC(=O)N1 O=C1NC(=O)NC1=Cc1ccccc1"),
    "acyl hydrazone": ("CC(=O)NN=Cc1ccccc1", "CC(=O)NNC CC(=O)NCCc1ccccc1 NC=Nc1ccccc1"),
    "phenol Mannich base": ("Oc1ccccc1CN(C)C", "COc1ccccc1CN(C)C Oc1ccccc1CNC(C)=O Oc1ccccc1CCN(C)C"),
    "hydroxamic acid": ("CC(=O)NO", "CC(=O)NOC CC(=O)N"),
    "boronic acid": ("OB(O)c1ccccc1 CC1(C)OB(OC1(C)C)c1ccccc1", "OB(O)O CB(C)C"),
    "N-halogen": ("CN(C)Cl O=C1CCC(=O)N1Br", "NCCCl Clc1ccncc1"),
    "phosphorus halide": ("CP(=O)(Cl)Cl CC(C)OP(C)(=O)F", "CP(=O)(O)O CP(C)CC(F)F"),
}

CLEAN = ("CC(=O)Oc1ccccc1C(=O)O CC(C)Cc1ccc(cc1)C(C)C(=O)O Cn1cnc2c1c(=O)n(C)c(=O)n2C CC(=O)Nc1ccc(O)cc1 CN1CCC[C@H]1c1cccnc1 "
         "CCOC(=O)c1ccccc1N CC(=O)CC(c1ccccc1)C1=C(O)c2ccccc2OC1=O")


def the_supplied_rules_find_their_groups():
    with open(RULES_FILE) as f:
        rules = [line.split(None, 1)[1].split(" #")[0].strip() for line in f if line.strip() and line[0] != "#"]
    assert set(rules) == set(RULES) and 20 <= len(RULES) <= 40, set(rules) ^ set(RULES)
    with Project() as p:
        p.put("a.smi", "".join("%s %s\n" % (smiles, name + sign) for name, both in RULES.items() for sign, some in zip("+-", both)
                               for smiles in some.split()) + "".join("%s clean\n" % s for s in CLEAN.split()))
        p.run("run", p.workflow([p.path("a.smi")], "  read: {}\n  prepare: {conformers: {source: none}, dedupe: {by: none}, "
                                "alerts: {file: %s}}\n" % RULES_FILE), "-q")
        assert accounted(p)[2] == 0
        for smiles, title, alerts in p.rows("SELECT raw_smiles, title, alerts FROM record JOIN molecule USING(mol_id)"):
            found = alerts.split(", ") if alerts else []
            assert title == "clean" and not found or title != "clean" and (title[:-1] in found) == (title[-1] == "+"), \
                (smiles, title, found)


def alerts_are_shown_wherever_molecules_are():
    with Project() as p:
        p.put("a.smi", "CCO ethanol\nCC=O aldehyde\nC1OC1C=O both\nCCC=O other\n[NH4+].CC(=O)OO acid\n")
        p.put("rules.smarts", "\ufeff# ours\r\n[CX3;H1](=O)[#6]\t aldehyde # reacts\r\n\r\n  C1OC1  epoxide\n[#6][CX3;H1]=O aldehyde\n")
        stages = ("  read: {unit: 2}\n  prepare: {conformers: {source: generate}, alerts: {file: rules.smarts, rules: [\"OO per oxide\"]}}\n"
                  "  rank: {objectives: [{property: mw, goal: minimise}]%s}\n  write: {csv: hits.csv, sdf: hits.sdf}\n")
        w = p.workflow([p.path("a.smi")], stages % "")
        p.run("run", w, "-q")
        accounted(p)
        want = [("ethanol", ""), ("aldehyde", "aldehyde"), ("both", "aldehyde, epoxide"), ("other", "aldehyde"), ("acid", "per oxide")]
        assert p.rows("SELECT title, alerts FROM record JOIN molecule USING(mol_id) ORDER BY record_id") == want
        assert sorted(p.rows("SELECT titles, alerts FROM v_hits")) == sorted(want)
        top = list(csv.DictReader(io.StringIO(p.run("top", "--csv", "run")[1])))
        hits = list(csv.DictReader(open(p.path("run", "hits.csv"))))
        assert sorted((r["title"], r["alerts"]) for r in top) == sorted((r["title"], r["alerts"]) for r in hits) == sorted(want)
        assert ">  <alerts>\naldehyde, epoxide\n" in open(p.path("run", "hits.sdf")).read()
        export = list(csv.DictReader(io.StringIO(p.run("export", "csv", "--where", "alerts = ''", "run")[1])))
        assert [(r["title"], r["alerts"]) for r in export] == [("ethanol", "")]
        # A condition without patterns needs no chemistry worker.
        alone = subprocess.run([shutil.copy(PROGRAM, p.path("alone")), "export", "csv", "--where", "alerts = ''", "run"], cwd=p.dir,
                               env=dict(os.environ, PATH="/none", MOLSIEVE_CHEM=""), capture_output=True, text=True)
        assert alone.returncode == 0 and list(csv.DictReader(io.StringIO(alone.stdout))) == export, alone
        p.run("report", "run", "-o", p.path("r.html"))
        page = re.sub("<[^>]*>", " ", open(p.path("r.html")).read())
        assert re.search(r"aldehyde +3 +0 +epoxide +1 +0 +per oxide +1 +0 ", page.replace("\n", " ")), page[:3000]
        # Changed comments or a new file name rerun nothing; changed rules do, but structures are kept.
        os.rename(p.path("rules.smarts"), p.path("other.smarts"))
        p.put("other.smarts", "[CX3;H1](=O)[#6] aldehyde\nC1OC1 epoxide\n[#6][CX3;H1]=O aldehyde\n")
        assert "again" not in p.run("plan", w, "stages.prepare.alerts.file=other.smarts")[1]
        why = p.run("explain", w, "prepare", "stages.prepare.alerts.file=null")[1]
        assert "alerts" in why, why
        p.run("run", w, "-q", "stages.prepare.alerts.file=null", "stages.rank.where=alerts = '' or alerts is null")
        assert p.one("SELECT message FROM event WHERE message LIKE '%structures built%' ORDER BY event_id DESC") == \
            "0 structures built, 5 from the cache"
        assert p.rows("SELECT titles FROM v_hits ORDER BY 1") == [("aldehyde",), ("both",), ("ethanol",), ("other",)]
        # Without rules nothing is shown.
        # The report names the most frequent ones, and says how many there are.
        for n, note in ((50, False), (52, True)):
            rules = "[%s]" % ", ".join('"[#6] carbon%d"' % k for k in range(n))
            p.run("run", w, "-q", "stages.prepare.alerts={rules: %s}" % rules, "stages.prepare.conformers.source=none", "stages.rank.where=mw > 0")
            page = p.run("report", "run", "-o", "-")[1]
            assert page.count("<td>carbon") == 50 and ("The 50 that are found most often, of 52." in page) == note, n
        plain = p.workflow([p.path("a.smi")], stages.replace(", alerts: {file: rules.smarts, rules: [\"OO per oxide\"]}", "") % "")
        p.run("run", plain, "-q")
        assert p.rows("SELECT DISTINCT alerts FROM molecule") == [(None,)]
        assert "alerts" not in open(p.path("run", "hits.csv")).read() + p.run("top", "run")[1] + p.run("export", "csv", "run")[1]
        # NULL is not '': a condition would find no molecule.
        for args in (("export", "smi", "--all"), ("search",)):
            err = p.run(*args, "--where", "mw > 0 and alerts = ''", "run", expect=2)[2]
            assert "where: alerts are NULL, as the run did not look for any; set stages.prepare.alerts and run it again" in err, err


def molecules_with_alerts_can_be_set_aside():
    with Project() as p:
        p.put("a.smi", "CCO ethanol\nCC=O aldehyde\nC1OC1C=O both\nOCC again\nXx bad\nCC=O aldehyde2\nCCN amine\n")
        stages = ("  read: {unit: 2}\n  prepare: {alerts: {action: %s, rules: [\"[CX3;H1](=O)[#6] aldehyde\", "
                  "\"C1OC1 epoxide\"]}}\n  graph: {}\n")
        w = p.workflow([p.path("a.smi")], stages % "filter")
        p.run("run", w, "-q")
        assert accounted(p) == (7, 3, 1)
        assert p.rows("SELECT title, status, reason, mol_id FROM record ORDER BY record_id") == [
            ("ethanol", "ok", None, 1), ("aldehyde", "filtered", "alerts: aldehyde", None),
            ("both", "filtered", "alerts: aldehyde, epoxide", None), ("again", "duplicate", None, 1), ("bad", "failed", None, None),
            ("aldehyde2", "filtered", "alerts: aldehyde", None), ("amine", "ok", None, 7)]
        built = p.one("SELECT message FROM event WHERE message LIKE '%structures%'")  # only of the two ethanols and the amine
        assert sum(int(n) for n in re.findall("[0-9]+", built)) == 3, built
        p.run("report", "run", "-o", p.path("r.html"))
        page = re.sub("<[^>]*>", " ", open(p.path("r.html")).read()).replace("\n", " ")
        assert re.search(r"aldehyde +0 +3 +epoxide +0 +1 ", page) and re.search(r"set aside by a filter +3 ", page), page[:3000]
        digest = p.run("db", "digest", "run")[1]
        for k in range(2):
            p.run("run", w, "-q", "--shard", "%d/2" % k, "workdir=shards")
        p.run("merge", w, "-q", "workdir=shards")
        assert p.run("db", "digest", "--results-only", "shards")[1].split()[0] == digest.split()[0]
        p.run("run", w, "-q", "stages.prepare.alerts.action=flag")
        assert accounted(p) == (7, 6, 1) and p.rows("SELECT 1 FROM record WHERE reason IS NOT NULL") == []
        p.run("run", w, "-q")
        assert p.run("db", "digest", "run")[1].split()[0] == digest.split()[0]
        p.put("a.smi", "CC=O aldehyde\nXx bad\n")
        assert "1 were set aside" in p.run("run", w, "-q", expect=1)[2]


def a_condition_excludes_molecules_before_building():
    with Project() as p:
        p.put("a.smi", "CCO ethanol\nCCCCCCCC octane\nCC(=O)[O-].[Na+] acetate\nCCCl chloride\nXx bad\n")
        stages = "  read: {unit: 2}\n  prepare: {neutralise: true, keep: \"mw < 70 and rotb <= 12 and (removed is null or neutralised = -1)\"%s}\n"
        w = p.workflow([p.path("a.smi")], stages % ', alerts: {rules: ["CCl chloride"], action: filter}')
        p.run("run", w, "-q")
        assert accounted(p) == (5, 2, 1)
        reason = "not (mw < 70 and rotb <= 12 and (removed is null or neutralised = -1))"
        assert p.rows("SELECT title, status, reason FROM record ORDER BY record_id") == [
            ("ethanol", "ok", None), ("octane", "filtered", reason), ("acetate", "ok", None),
            ("chloride", "filtered", "alerts: chloride"), ("bad", "failed", None)]
        assert p.one("SELECT message FROM event WHERE message LIKE '%structures%'") == "2 structures built, 0 from the cache"
        key = p.one("SELECT key FROM stage WHERE name='prepare'")
        p.run("run", w, "-q", "stages.prepare.keep=mw < 46 or formula = 'C8H18' -- all but acetic acid and the chloride")
        assert [s for (s,) in p.rows("SELECT status FROM record ORDER BY record_id")] == ["filtered", "ok", "filtered", "filtered", "failed"]
        assert p.one("SELECT key FROM stage WHERE name='prepare'") != key
        for bad, word in (("mw <", "a value is missing at the end"), ("random() > 0", "no such function here: random"), ("1); DROP TABLE x", "one expression only"),
                          ("mw < ?", "no parameters"), ("n_atoms > 3", "no such column: n_atoms; it is an SQL expression over mw")):
            assert word in p.run("check", w, "stages.prepare.keep=" + bad, expect=2)[2], bad
        assert "integer overflow, for CCO" in p.run("run", w, "-q", "stages.prepare.keep=abs(-9223372036854775807-1-charge) > 0", expect=1)[2]


def wrong_rules_are_reported_with_their_place():
    with Project() as p:
        p.put("a.smi", "CCO ethanol\n")
        p.put("bad.smarts", "# none\n[CX3](=O)[Cl  chloride\n\n  C(   two\n")
        p.put("worse.smarts", "C=O\nC=O a,b\nC\xe9 e\n%s long\nC=O %s\n" % ("C" * 1001, "n" * 101))
        p.put("none.smarts", "\n# none\n")
        p.put("many.smarts", "C many\n" * 2001)
        p.put("large.smarts", "#" * ((1 << 20) + 1))
        stages = "  read: {}\n  prepare:\n    alerts: {file: %s, rules: %s}\n  rank: {objectives: [{property: mw, goal: minimise}]}\n"

        def check(file, rules="[]", *more):
            return p.run("check", p.workflow([p.path("a.smi")], stages % (file, rules)), *more, expect=2)[2]
        said = check("bad.smarts", '["C=O fine", "[CH no"]')
        for place in ("bad.smarts:2:13: ", "bad.smarts:4:5: ", "w.yaml:10:52: "):
            assert place + "alerts: Open Babel cannot read this SMARTS" in said, said
        assert said.count("\n") == 4, said
        said = check("worse.smarts")
        for line, words in enumerate(("there is no name", "no comma", "printable", "1000 characters", "100 characters")):
            assert re.search(r"worse.smarts:%d:1: alerts: .*%s" % (line + 1, words), said), (words, said)
        p.put("deadly.smarts", "C=O fine\nn1nnnc2cccc1n:1:c(:c(:c(:c(:c:%12 dies\nC( bad\n")  # aborts Open Babel's parser
        said = check("deadly.smarts")
        assert re.search(r"deadly.smarts:2:\d+: alerts: Open Babel cannot read this SMARTS", said) and "deadly.smarts:3:3: " in said, said
        p.put("marks.smarts", "# of double bonds\nC=O fine\nF/C=C/F trans\n(O).(N) parts\n")  # which would match F/C=C\\F and O, too
        said = check("marks.smarts", '["C=O fine", "[C;$(F/C=C)] no"]')
        for place in ("marks.smarts:3:1: ", "w.yaml:10:54: "):
            assert place + "alerts: the marks / and \\ of a double bond cannot be compared; leave them out" in said, said
        assert "marks.smarts:4:1: alerts: parts that are joined by a dot cannot be compared" in said, said
        assert "there is no rule in" in check("none.smarts") and "w.yaml:10:13" in check("none.smarts")
        assert "many.smarts:2001:1: alerts: more than 2000 rules" in check("many.smarts")
        assert "more than 1 MiB" in check("large.smarts")
        assert "action filter needs rules" in check("null", "[]", "stages.prepare.alerts.action=filter")
        assert "No such file" in check("other.smarts")
        assert "no alert rules are set" in check("null", "[]", "stages.rank.where=mw < 500 and alerts = ''")


def an_endless_rule_fails_only_its_molecule():
    cage = ("c12c3c4c5c1c1c6c7c2c2c8c3c3c9c4c4c%10c5c5c1c1c6c6c%11c7c2c2c7c8c3c3c8c9c4c4c9c%10c5c5c1c1c6c6c%11c2c2c7c3c3c8c4c4c9c5"
            "c1c1c6c2c3c41")
    with Project() as p:
        p.put("a.smi", "CCO ethanol\n%s C60\nCC(C)=O acetone\n" % cage)
        rules = '["*%s~[U] path", "[OX2;H1] hydroxyl"]' % ("~*" * 24)
        p.run("run", p.workflow([p.path("a.smi")], "  read: {}\n  prepare: {conformers: {source: none, cpu_limit: 200ms, "
                                "retry_cpu_limit: 400ms}, alerts: {rules: %s}}\n" % rules), "-q")
        assert p.rows("SELECT title, status, alerts, code FROM record LEFT JOIN molecule USING(mol_id) LEFT JOIN failure "
                      "USING(record_id)") == [("ethanol", "ok", "hydroxyl", None), ("C60", "failed", None, "timeout"),
                                              ("acetone", "ok", "", None)]


def hydrogens_of_the_input_do_not_matter_to_alerts():
    with Project() as p:
        p.put("a.smi", "CC=O aldehyde\nCC(=O)C ketone\nCCN amine\n")
        names = '["[CX3;H1]=O h", "[#6][#1] atom", "[D3] branch", "[N]([H])[H] nh2", "[C,#11,#16] some"]'
        prepare = "  read: {}\n  prepare: {conformers: {source: generate}, alerts: {rules: %s}}\n" % names
        p.run("run", p.workflow([p.path("a.smi")], prepare), "-q")
        want = ["h, atom, some", "atom, branch, some", "atom, nh2, some"]
        assert [a for (a,) in p.rows("SELECT alerts FROM molecule ORDER BY mol_id")] == want
        p.run("export", "sdf", "-o", p.path("a.sdf"), "run")
        p.run("run", p.workflow([p.path("a.sdf")], prepare.replace("generate", "keep"), workdir="again"), "-q")
        assert [a for (a,) in p.rows("SELECT alerts FROM molecule ORDER BY mol_id", workdir="again")] == want


if __name__ == "__main__":
    main([neutral_forms_are_recorded_and_deduplicated, protonation_at_a_ph_ignores_how_a_molecule_is_drawn,
          a_structure_is_built_of_the_state_at_the_ph, a_wrong_ph_is_reported_with_its_place, real_molecules_keep_their_atoms_at_any_ph,
          the_supplied_rules_find_their_groups,
          a_score_does_not_depend_on_the_drawing, a_molecule_in_several_drawings_is_told,
          alerts_are_shown_wherever_molecules_are, molecules_with_alerts_can_be_set_aside,
          a_condition_excludes_molecules_before_building, wrong_rules_are_reported_with_their_place, an_endless_rule_fails_only_its_molecule,
          hydrogens_of_the_input_do_not_matter_to_alerts])
