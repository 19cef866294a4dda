#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`molsieve conformers`, and what the native builder of `prepare` promises: stereo, order, energies, reasons."""
import gzip
import math
import os
import re
import subprocess
import sys

import sieve
from bench_e2e import packets
from sieve import Project, data, main

STEREO = ("C[C@H](N)C(=O)O ala", "C[C@@H](N)C(=O)O dala", "C/C=C/C e", "C/C=C\\C z", "C[S@](=O)CC so", "C[S@@](=O)CC os",
          "O[C@@H]1CCCC[C@H]1O trans", "O[C@H]1CCCC[C@H]1O cis", "F/C(Cl)=C(/Br)I four", "C1C[C@H]2CC[C@@H]1C2 bridged")

# Isomers that have one canonical SMILES: Open Babel has no mark for what tells them apart.
PAIRS = (("C1CCC/C=C/CC1", "C1CCC/C=C\\CC1"), ("O[C@H]1CCC/C=C/CC1", "O[C@H]1CCC/C=C\\CC1"),
         ("C[N@+](CC)(CCC)c1ccccc1", "C[N@@+](CC)(CCC)c1ccccc1"), ("C[P@](CC)c1ccccc1", "C[P@@](CC)c1ccccc1"),
          ("[H]/N=C(/C)c1ccccc1", "[H]/N=C(\\C)c1ccccc1"), ("C/C=N/[H]", "C/C=N\\[H]"), ("C[P@]([H])c1ccccc1", "C[P@@]([H])c1ccccc1"))

# InChIKeys of Indigo 1.36, from the text. SMILES and InChI of Open Babel have no mark of an allene without positions.
ALLENES = (("CC=[C@]=CC", "PODAMDNJNMAKAZ-YFKPBYRVSA-N"), ("CC=[C@@]=CC", "PODAMDNJNMAKAZ-RXMQYKEDSA-N"),
           ("[H]C(C)=[C@]=C([H])CC", "DPUXQWOMYBMHRN-RXMQYKEDSA-N"), ("N[C@H](C)C=[C@]=C(O)Br", "AYHSEJGPJXEVKP-QWWZWVQMSA-N"),
           ("OC(Br)=[C@@]=C(F)CC", "CKPPGWADHINZBO-VKHMYHEASA-N"), ("C(C)(F)=[C@]=C(Cl)CC", "JQSGZSVTKXCXDJ-BYPYZUCNSA-N"),
           ("C1CCCCC1C=[C@]=CC", "UCJQVAFETTZCJU-VKHMYHEASA-N"), ("C%11CCCCC%11C=[C@]=CC", "UCJQVAFETTZCJU-VKHMYHEASA-N"))


# Cis or trans by hand from the text (both sides of / and \\); InChIKeys of Open Babel from the positions of such structures, and of
# (E)- and (Z)-2-butene, whose second block is that of the first two.
CUMULENES = (("C/C=C=C=C/C", "UCAJIFZNHMIWOD-ONEGZZNKSA-N"), ("C/C=C=C=C\\C", "UCAJIFZNHMIWOD-ARJAWSKDSA-N"), ("C(/C)=C=C=C/C", "UCAJIFZNHMIWOD-ARJAWSKDSA-N"),
             ("[Na+].O.C\\C=C=C=C\\C", "UCAJIFZNHMIWOD-ONEGZZNKSA-N"), ("F/C(C)=C=C=C(/Cl)CC", "KIIDRHDXGQBCIX-VOTSOKGWSA-N"),
             ("CCC(/Cl)=C=C=C(/F)C", "KIIDRHDXGQBCIX-SREVYHEPSA-N"), ("C/C(F)=C=C=C(CC)\\Cl", "KIIDRHDXGQBCIX-VOTSOKGWSA-N"),
             ("C/1=C=C=C/CCCCCCCC1", "WPLBOMFDHLJCAG-XFSBKJJWSA-N"), ("C/C=C/C=C=C=C\\C", "WUNZTMJSQRWXMM-AECUNDDTSA-N"),
             ("C/C=C/C=C=C=C/C", "WUNZTMJSQRWXMM-HJIKTHEYSA-N"))


def drawing(title, atoms, bonds, wedge, charged=0):
    """A flat molfile; the first bond is up (1) or down (6)."""
    lines = [title, "", "", "%3d%3d  0  0  0  0  0  0  0  0999 V2000" % (len(atoms), len(bonds))]
    lines += ["%10.4f%10.4f%10.4f %-3s 0  0" % (x, y, 0, element) for element, x, y in atoms]
    lines += ["%3d%3d%3d%3d" % (i, j, order, 0 if k else wedge) for k, (i, j, order) in enumerate(bonds)]
    return "\n".join(lines + (["M  CHG  1%4d   1" % charged] if charged else []) + ["M  END", "$$$$", ""])


def drawings():
    """A quaternary nitrogen on a ring, and a phosphine: either form of each."""
    n = [("N", 0, 0), ("C", 0, 1.5), ("C", 0, 3), ("C", -1.5, 0), ("C", 0, -1.5), ("C", 0, -3), ("C", 0, -4.5), ("C", 1.5, 0), ("C", 2.2, 1.2),
         ("C", 3.6, 1.2), ("C", 4.3, 0), ("C", 3.6, -1.2), ("C", 2.2, -1.2)]
    of_n = [(1, 2, 1), (2, 3, 1), (1, 4, 1), (1, 5, 1), (5, 6, 1), (6, 7, 1), (1, 8, 1), (8, 9, 2), (9, 10, 1), (10, 11, 2), (11, 12, 1),
            (12, 13, 2), (13, 8, 1)]
    p = [("P", 0, 0), ("C", 0, 1.5), ("Cl", 1.3, -0.8), ("C", -1.3, -0.8), ("C", -2.6, 0)]
    of_p = [(1, 2, 1), (1, 3, 1), (1, 4, 1), (4, 5, 1)]
    return "".join(drawing("n%d" % w, n, of_n, w, 1) + drawing("p%d" % w, p, of_p, w) for w in (1, 6))


def records(text):
    """[(title, {field: value}, molfile)]"""
    out = []
    for r in text.split("$$$$\n")[:-1]:
        lines = r.split("\n")
        fields = {line[4:-1]: lines[i + 1] for i, line in enumerate(lines) if line.startswith(">  <")}
        out.append((lines[0], fields, r[:r.index("M  END") + 7]))
    return out


def any_number_of_threads_writes_the_same_in_order():
    with Project() as p:
        name = data("library.smi")
        titles = [line.split()[1] for line in open(name)][:300]
        p.put("in.smi", "".join(open(name).readlines()[:300]))
        p.run("conformers", "in.smi", "-o", "one.sdf", "-j", "1")
        p.run("conformers", "in.smi", "-o", "three.sdf.gz", "-j", "3")
        one = open(p.path("one.sdf")).read()
        assert one == gzip.open(p.path("three.sdf.gz"), "rt").read() == p.run("conformers", "in.smi")[1]
        got = records(one)
        assert [t for t, _, _ in got] == titles
        native = sum(f["built_by"] == "native" for _, f, _ in got)
        assert native >= 295 and all(("fallback" in f) == (f["built_by"] == "openbabel") for _, f, _ in got), native
        assert p.run("conformers", "in.smi", "--seed", "2")[1] != one


def an_ensemble_has_increasing_energies_within_the_window():
    with Project() as p:
        p.put("in.csv", "name,smiles\npentane,CCCCC\nbenzene,c1ccccc1\n")
        got = records(p.run("conformers", "in.csv", "--count", "30", "--window", "3")[1])
        by = {t: [f for u, f, _ in got if u == t] for t in ("pentane", "benzene")}
        assert len(by["benzene"]) == 1 and 3 <= len(by["pentane"]) <= 5, [(t, len(f)) for t, f in by.items()]
        energy = [float(f["energy"]) for f in by["pentane"]]
        assert energy == sorted(energy) and energy[-1] - energy[0] <= 3 and [f["rank"] for f in by["pentane"]] == [str(k + 1) for k in range(len(energy))]
        assert 0.6 < energy[1] - energy[0] < 1.1, energy # gauche; MMFF94 has 0.8
        few = records(p.run("conformers", "in.csv", "--count", "30", "--window", "0.5")[1])
        assert len(few) == 2, len(few)
        whole, wide = (p.run("conformers", "in.csv", "--count", "30", "--window", e)[1] for e in ("0", "1000"))
        assert whole == wide  # 0: no window


def ensembles_are_built_with_screened_charges_by_default():
    """Serine folds onto itself in vacuum; the default of an ensemble is a dielectric constant of 4, of one structure it is vacuum."""
    with Project() as p:
        p.put("in.smi", "OC[C@@H](C(=O)NCCO)N serine\n")
        default, vacuum, four = (p.run("conformers", "in.smi", "-c", "8", *more)[1]
                                 for more in ((), ("--dielectric", "1"), ("--dielectric", "4")))
        assert default == four != vacuum
        assert p.run("conformers", "in.smi")[1] == p.run("conformers", "in.smi", "--dielectric", "1")[1]
        for wrong in ("0.5", "two", "1001"):
            assert "not a number from 1 to 1000" in p.run("conformers", "in.smi", "--dielectric", wrong, expect=2)[2]
        stages = "  read: {}\n  prepare: {conformers: {source: generate%s}}\n"
        p.run("run", p.workflow(["in.smi"], stages % ", count: 8"), "-q")
        for more, built in ((", count: 8, dielectric: 4", False), (", count: 8, dielectric: 1", True), ("", True), (", dielectric: 1", False),
                            (", dielectric: 4", True)):
            err = p.run("run", p.workflow(["in.smi"], stages % more))[2]
            assert ("1 structures built" in err) == built, (more, err)
        err = p.run("check", p.workflow(["in.smi"], stages % ", builder: openbabel, dielectric: 4"), expect=2)[2]
        assert "only the native builder has `dielectric`" in err, err


def defined_stereo_is_that_of_the_positions():
    with Project() as p:
        p.put("in.smi", "\n".join(STEREO) + "\n")
        p.run("conformers", "in.smi", "-o", "out.sdf")
        assert all(f["built_by"] == "native" for _, f, _ in records(open(p.path("out.sdf")).read()))
        keys = []
        for name, source in (("in.smi", "none"), ("out.sdf", "keep")):
            w = p.workflow([name], "  read: {}\n  prepare: {conformers: {source: %s}, dedupe: {by: none}}\n" % source, name=source + ".yaml", workdir=source)
            p.run("run", w, "-q")
            keys.append(p.rows("SELECT title, inchikey, smiles FROM molecule JOIN record USING(mol_id) ORDER BY 1", workdir=source))
        assert keys[0] == keys[1] and len({k for _, k, _ in keys[0]}) == len(STEREO), keys


def keys_of(p, name, how):
    w = p.workflow([name], "  read: {}\n  prepare: {conformers: {source: %s}, dedupe: {by: none}}\n" % how, name=name + how + ".yaml", workdir=name + how)
    p.run("run", w, "-q")
    return dict(p.rows("SELECT title, inchikey FROM molecule JOIN record USING(mol_id)", workdir=name + how))


def stereo_that_smiles_leave_out_is_kept():
    with Project() as p:
        p.put("pairs.smi", "".join("%s %d%s\n%s.Cl %d%s\n" % (s, k, "ab"[m], s, k, "cd"[m]) for k, two in enumerate(PAIRS) for m, s in enumerate(two)))
        p.put("flat.sdf", drawings())
        for name, n in (("pairs.smi", 4 * len(PAIRS)), ("flat.sdf", 4)):
            p.run("conformers", name, "-o", "built-%d.sdf" % n, "--count", "2")
            got = records(open(p.path("built-%d.sdf" % n)).read())
            assert all(f["built_by"] == "native" and "undefined_stereo" not in f for _, f, _ in got), got
            drawn, built = keys_of(p, name, "none"), keys_of(p, "built-%d.sdf" % n, "keep")
            assert len(drawn) == n and drawn == built, (drawn, built)
        assert len(set(drawn.values())) == 4, drawn


def volume(molfile, atoms):
    """Of the tetrahedron of four atoms, times 6; its sign is the handedness of an axis."""
    lines = molfile.split("\n")
    x = [[float(lines[3 + a][10 * c:10 * c + 10]) for c in range(3)] for a in atoms]
    (a, b, c), (d, e, f), (g, h, i) = ([p - q for p, q in zip(x[k], x[3])] for k in range(3))
    return a * (e * i - f * h) + b * (f * g - d * i) + c * (d * h - e * g)


def allenes_have_the_form_that_their_smiles_marks():
    with Project() as p:
        p.put("in.smi", "".join("%s %d\n" % (s, k) for k, (s, _) in enumerate(ALLENES)))
        wanted = {str(k): key for k, (_, key) in enumerate(ALLENES)}
        p.run("conformers", "in.smi", "-o", "built.sdf", "--count", "3")
        got = records(open(p.path("built.sdf")).read())
        assert all(f["built_by"] == "native" and "undefined_stereo" not in f for _, f, _ in got), got
        assert keys_of(p, "built.sdf", "keep") == keys_of(p, "in.smi", "none") == wanted # one molecule in either format
        p.run("conformers", "built.sdf", "-o", "again.sdf", "--seed", "5") # from positions
        assert keys_of(p, "again.sdf", "keep") == wanted
        flat = [("C", 0, 0), ("C", -0.7, 1.2), ("C", 1.3, 0), ("C", 2.6, 0), ("C", 3.3, 1.2)]
        bonds = [(1, 2, 1), (1, 3, 2), (3, 4, 2), (4, 5, 1)]
        p.put("flat.sdf", drawing("up", flat, bonds, 1) + drawing("down", flat, bonds, 6) + drawing("open", flat, bonds, 0))
        p.run("conformers", "flat.sdf", "-o", "flat-built.sdf")
        drawn, built = keys_of(p, "flat.sdf", "none"), keys_of(p, "flat-built.sdf", "keep")
        assert len({drawn["up"], drawn["down"], drawn["open"]}) == 3 and [built[k] for k in ("up", "down")] == [drawn[k] for k in ("up", "down")]
        assert ["undefined_stereo" in f for _, f, _ in records(open(p.path("flat-built.sdf")).read())] == [False, False, True]


def cis_and_trans_of_longer_cumulenes_are_kept():
    with Project() as p:
        p.put("in.smi", "".join("%s %d\n" % (s, k) for k, (s, _) in enumerate(CUMULENES)))
        wanted = {str(k): key for k, (_, key) in enumerate(CUMULENES)}
        p.run("conformers", "in.smi", "-o", "built.sdf", "--count", "3")
        got = records(open(p.path("built.sdf")).read())
        assert all(f["built_by"] == "native" and "undefined_stereo" not in f for _, f, _ in got), got
        assert keys_of(p, "built.sdf", "keep") == keys_of(p, "in.smi", "none") == wanted
        p.run("conformers", "built.sdf", "-o", "again.sdf", "--seed", "5") # from positions
        assert keys_of(p, "again.sdf", "keep") == wanted
        p.put("open.smi", "CC=C=C=CC open\nCC(C)=[C@]=CC alike\nCC(C)=C=C=C/C alike4\nCC=C=[C@]=C=CC five\nC/C=C/C=C=C=CC half\n")
        out, err = p.run("conformers", "open.smi")[1:]
        assert [t for t, f, _ in records(out) if "undefined_stereo" in f] == ["open", "half"] and "warning" not in err, (out, err)


def forms_of_an_axis_are_molecules_that_their_smiles_tell_apart():
    with Project() as p:
        rows = [("CC=[C@]=CC", "a"), ("CC=[C@@]=CC", "b"), ("CC=C=CC", "c"), ("CCCO.C(=[C@]=CC)C.[Na+]", "b"), ("C/C=C=C=C/C", "d"), ("C/C=C=C=C\\C", "e"),
                ("C(/C)=C=C=C/C", "e"), ("CC=[13C@@]=CC", "f"), ("CC=[13C@]=CC", "g"), ("C/C=C=C=C=C=C/C", "h"), ("C/C=C=C=C=C=C\\C", "i")]
        p.put("in.smi", "".join("%s %s%d\n" % (s, of, k) for k, (s, of) in enumerate(rows)))
        w = p.workflow(["in.smi"], "  read: {unit: 2}\n  prepare: {conformers: {source: generate}}\n")
        p.run("run", w, "-q", "-j", "2")
        got = p.rows("SELECT substr(title, 1, 1), mol_id, smiles, undefined_stereo FROM record JOIN molecule USING(mol_id) ORDER BY record_id")
        assert len({(of, m) for of, m, _, _ in got}) == len({m for _, m, _, _ in got}) == len({s for _, _, s, _ in got}) == 9, got
        assert [of for of, _, _, n in got if n] == ["c"], got
        p.put("again.smi", "".join("%s %s\n" % (s, of) for of, _, s, _ in got)) # what is exported says it again
        p.run("run", p.workflow(["again.smi"], "  read: {}\n  prepare: {conformers: {source: generate}}\n", name="again.yaml", workdir="again"), "-q")
        assert {(of, s) for of, _, s, _ in got} == set(p.rows("SELECT title, smiles FROM molecule JOIN record USING(mol_id)", workdir="again")), got
        for k in (0, 1):
            p.run("run", w, "-q", "--shard", "%d/2" % k, "workdir=shards")
        p.run("merge", w, "-q", "workdir=shards")
        digests = [p.run("db", "digest", "--results-only", of)[1] for of in ("run", "shards")]
        assert digests[0] == digests[1], digests
        p.run("run", w, "-q", "stages.prepare.dedupe.by=skeleton")
        assert p.rows("SELECT count(*) FROM molecule") == [(3,)]


# Where a drawing does not show all of the stereo (here the ring of eight), the InChIKey of the SMILES lacks the axis.
OPEN_AXIS = "CC=[C@]=C[C@H]1CCCC/C=C/C1"


def an_allene_is_one_molecule_in_all_formats_or_told_of():
    with Project() as p:
        p.put("in.smi", "".join("%s %s\n" % (s, t) for s, t in (("CC=[C@]=C[C@H](F)/C=C/C", "a"), ("CC=[C@@]=C[C@H](F)/C=C/C", "b"), ("CC(F)=[C@]=C(Cl)CC", "c"),
                                                              (OPEN_AXIS, "d"))))
        p.run("conformers", "in.smi", "-o", "in.sdf")
        stages = "  read: {}\n  prepare: {conformers: {source: auto}}\n"
        _, _, err = p.run("run", p.workflow(["in.smi", "in.sdf"], stages))
        rows = p.rows("SELECT title, count(*), count(DISTINCT mol_id), count(DISTINCT inchikey) FROM record JOIN molecule USING(mol_id) GROUP BY 1")
        assert rows == [("a", 2, 1, 1), ("b", 2, 1, 1), ("c", 2, 1, 1), ("d", 2, 2, 2)] and p.rows("SELECT count(*) FROM molecule") == [(5,)], rows
        assert "because the InChIKeys of their records differ: 1" in err, err


def forms_that_no_inchikey_knows_are_told_of():
    with Project() as p:
        p.put("in.smi", "".join("%s %d\n" % (s, k) for k, s in enumerate(("CC[Te@+](CCC)C", "CC[Te@@+](CCC)C", "CC[Te@+](CCC)C", "CC[Sb@](C)Cl", "CC[Sb@@](C)Cl", "CC[Te@+](CC)C"))))
        _, _, err = p.run("run", p.workflow(["in.smi"], "  read: {}\n  prepare: {conformers: {source: generate}}\n"))
        assert "more than one drawing (such as tautomers): 2" in err, err
        got = p.rows("SELECT status, reason, smiles FROM record JOIN molecule USING(mol_id) ORDER BY record_id")
        assert got == [("ok", None, "CCC[Te@@+](CC)C"), ("duplicate", "drawn as CCC[Te@+](CC)C", "CCC[Te@@+](CC)C"), ("duplicate", None, "CCC[Te@@+](CC)C"),
                       ("ok", None, "CC[Sb@@](Cl)C"), ("duplicate", "drawn as CC[Sb@](Cl)C", "CC[Sb@@](Cl)C"), ("ok", None, "CC[Te+](CC)C")], got


def biaryls_that_cannot_turn_keep_the_form_of_their_positions():
    with Project() as p:
        p.put("in.smi", "Cc1cccc(O)c1-c1c(C)cccc1N biphenyl\n")
        ortho = [2, 6, 9, 14] # beside the bond, in the order of this text: C(CH3), C(OH), C(CH3), C(NH2)
        seen = set()
        for seed in ("1", "2", "3", "4", "5", "6"):
            p.run("conformers", "in.smi", "-o", "one.sdf", "--seed", seed)
            p.run("conformers", "one.sdf", "-o", "ten.sdf", "--count", "10", "--window", "100", "--seed", "3")
            first = records(open(p.path("one.sdf")).read())[0][2]
            sign = volume(first, ortho) > 0
            seen.add(sign)
            again = [volume(m, ortho) for _, _, m in records(open(p.path("ten.sdf")).read())]
            assert len(again) > 0 and all((v > 0) == sign and abs(v) > 5 for v in again), (seed, sign, again)
            p.put("%d.sdf" % sign, open(p.path("one.sdf")).read())
        assert len(seen) == 2, seen
        # The SMILES leaves the form open, the structures define it, and neither key nor SMILES tells the forms apart.
        stages = "  read: {}\n  prepare: {conformers: {source: %s}}\n"
        p.put("open.smi", "Cc1cccc(O)c1-c1c(C)cccc1N open\nCc1cccc(C)c1-c1c(C)cccc1N alike\nCc1ccccc1-c1ccccc1N turns\n")
        p.run("run", p.workflow(["open.smi"], stages % "generate", name="open.yaml", workdir="open"), "-q")
        assert p.rows("SELECT title, undefined_stereo FROM molecule JOIN record USING(mol_id)", workdir="open") == [("open", 1), ("alike", 0), ("turns", 0)]
        for how in ("keep", "generate"):
            _, _, err = p.run("run", p.workflow(["0.sdf", "1.sdf"], stages % how, name=how + ".yaml", workdir=how))
            assert ("prepare: 1 records are duplicates with a biaryl that cannot turn: neither InChIKey nor SMILES tells its two forms "
                    "(atropisomers) apart, and the molecule has that of its first record\n") in err, err
            assert p.rows("SELECT undefined_stereo FROM molecule", workdir=how) == [(0,)]
        # Open Babel's builder gives that form, or the record fails.
        for sign in (0, 1):
            w = p.workflow(["%d.sdf" % sign], "  read: {}\n  prepare: {conformers: {source: generate, builder: openbabel}}\n", name="ob.yaml", workdir="ob%d" % sign)
            p.run("run", w, "-q", "limits.failures.max_fraction=1", expect=None)
            built = records(p.run("export", "sdf", "ob%d" % sign, "--all", expect=None)[1])
            failed = p.rows("SELECT message FROM failure", workdir="ob%d" % sign)
            assert len(built) + len(failed) == 1 and all("other than defined" in m for m, in failed), (built, failed)
            assert all((volume(m, ortho) > 0) == bool(sign) for _, _, m in built), built
        assert len({volume(m, ortho) > 0 for _, _, m in records(p.run("conformers", "in.smi", "--count", "10", "--window", "100")[1])}) == 2


def isomers_that_smiles_do_not_tell_apart_are_two_molecules():
    with Project() as p:
        p.put("pairs.smi", "".join("%s %d%s\n" % (s, k, "abc"[m]) for k, two in enumerate(PAIRS) for m, s in enumerate(two + two[:1])))
        w = p.workflow(["pairs.smi"], "  read: {}\n  prepare: {conformers: {source: generate}, neutralise: true}\n")
        p.run("run", w, "-q")
        assert p.rows("SELECT count(*), count(DISTINCT smiles), count(DISTINCT inchikey), sum(undefined_stereo) FROM molecule") == [(2 * len(PAIRS), len(PAIRS) + 1, 2 * len(PAIRS), 0)] # phosphines have marks
        assert [n for n, in p.rows("SELECT count(*) FROM record GROUP BY mol_id ORDER BY mol_id")] == [2, 1] * len(PAIRS)
        first = p.run("export", "sdf", "run", "--all")[1]
        p.run("run", w, "-q", "stages.prepare.max_atoms=900") # from the cache
        assert p.run("export", "sdf", "run", "--all")[1] == first
        p.put("run.sdf", first)
        drawn = keys_of(p, "pairs.smi", "none")
        assert {t[:2]: k for t, k in keys_of(p, "run.sdf", "keep").items()} == {t: k for t, k in drawn.items() if t[1] != "c"}, drawn


def open_babel_keeps_such_stereo_or_the_record_fails():
    with Project() as p:
        p.put("pairs.smi", "".join("%s %d%s\n" % (s, k, "ab"[m]) for k, two in enumerate(PAIRS) for m, s in enumerate(two)))
        p.run("run", p.workflow(["pairs.smi"], "  read: {}\n  prepare: {conformers: {source: generate, builder: openbabel}}\n"), "-q", expect=None)
        p.put("run.sdf", p.run("export", "sdf", "run", "--all")[1])
        built, drawn = keys_of(p, "run.sdf", "keep"), keys_of(p, "pairs.smi", "none")
        failed = dict(p.rows("SELECT title, message FROM failure JOIN record USING(record_id)"))
        assert built == {t: k for t, k in drawn.items() if t not in failed} and len(built) >= 4, (built, drawn)
        assert all("other than defined" in m for m in failed.values()), failed


def stereo_that_is_not_kept_is_counted():
    with Project() as p:
        p.put("in.smi", "CC=[C@]=CC marked\nCC=C=CC open\nCC=C=C(C)C none\nC[P@](CC)c1ccccc1 phosphine\nCC=[C@]=CC.Cl salt\nCC=C=[C@](C)F misplaced\nCC(/C)=C/C same\nC[P@](C)c1ccccc1 twice\nCC=[C@]=C(C)C methyls\n[2H][C@H](C)O isotope\n")
        _, _, err = p.run("run", p.workflow(["in.smi"], "  read: {}\n  prepare: {conformers: {source: generate}, dedupe: {by: none}}\n"))
        assert "1 record defines stereo that is not kept" in err, err
        got = dict(p.rows("SELECT title, undefined_stereo FROM molecule JOIN record USING(mol_id)"))
        assert got == {"marked": 0, "open": 1, "none": 0, "phosphine": 0, "salt": 0, "misplaced": 1, "same": 0, "twice": 0, "methyls": 0, "isotope": 0}, got
        _, out, err = p.run("conformers", "in.smi")
        assert err.count("warning: the structure has either form of 1") == 1 and "in.smi:6: misplaced: warning" in err, err
        assert {t: f.get("undefined_stereo") for t, f, _ in records(out)}["open"] == "1"


def what_has_no_structure_is_named_and_the_rest_written():
    with Project() as p:
        p.put("in.smi", "CCO good\nC1CC bad\nOB(O)c1ccccc1 boron\nCC(=O)[O-].[Na+] salt\nNC(=[NH2+])NC(N)=[NH2+] biguanide\n")
        _, out, err = p.run("conformers", "in.smi", expect=3)
        assert "in.smi:2: bad: " in err and "1 of 5 records have no structure" in err, err
        got = {t: f for t, f, _ in records(out)}
        assert list(got) == ["good", "boron", "salt", "biguanide"]
        assert got["boron"]["built_by"] == "openbabel" and "atom 2 (B)" in got["boron"]["fallback"], got["boron"]
        assert got["salt"]["removed"] == "[Na+]"
        # Two amidinium groups have one nitrogen.
        assert got["biguanide"]["fallback"] == "MMFF94 has no way to share the formal charges of this molecule: -0.333 is left over", got["biguanide"]
        p.put("empty.smi", "")
        assert "no record" in p.run("conformers", "empty.smi", expect=2)[2]
        for wrong in (("--count", "0"), ("--count", "x"), ("--force-field", "uff"), ("--window", "-1"), ("--seed", "-1")):
            assert wrong[0] in p.run("conformers", "in.smi", *wrong, expect=2)[2]
        p.run("conformers", "in.smi", "-o", "in.smi/out.sdf", expect=6)
        p.run("conformers", "missing.smi", expect=6)


# What is awkward: (SMILES, who builds it; None: it fails). Native refuses what has no type or no structure, and says why.
AWKWARD = (("C" * 166, "native"), ("N" + "[C@@H](C)C(=O)N" * 45 + "C", "native"), ("C1=CC2=CC1=C2", "openbabel"), ("C1CC#C1", None),
           ("c12c3c4c2c2c1c3c42", "openbabel"), ("CC1(C)[C@H]2CC[C@@]1(C)C(=O)C2", None), ("CC1(C)[C@@H]2CC[C@@]1(C)C(=O)C2", "native"),
           ("C1CC/C=C/C1", "native"), ("C1CC1.CCO", "native"), ("[CH2]C(C)C", "openbabel"), ("[O][O]", "openbabel"), ("FS(F)(F)(F)(F)F", "openbabel"),
           ("ClP(Cl)(Cl)(Cl)Cl", "openbabel"), ("FI(F)(F)(F)(F)(F)F", None), ("[2H]C([2H])([2H])[13C](=O)[18O]C([3H])([3H])[3H]", "native"),
           ("C12C3C4C1C5C2C3C45", "native"), ("C1CCCCC2CCCCCC1CCCC2", "native"), ("CC(C)(C)C(C(C)(C)C)(C(C)(C)C)C(C)(C)C", "native"),
           ("C[Hg]C", "openbabel"), ("[Fe+2]", "native"), ("Cl[Pt](Cl)(N)N", "openbabel"), ("CC[Pb](CC)(CC)CC", "openbabel"), ("C[N+](C)(C)(C)C", None),
           ("O=Cl(=O)(=O)O", "openbabel"), ("OS(=O)(=O)(=O)O", None), ("[CH2]", "openbabel"), ("[N]=O", "openbabel"), ("CC1(C)CCCC(C)(C)N1[O]", "openbabel"),
           ("[238U]", "openbabel"), ("[2H]O[2H]", "native"), ("C1C=C=CC1", "native"), ("C1CC#CC1", "native"), ("c1c#cccc1", "native"), ("C1#CC#CC#C1", "native"),
           ("C12C3C1C23", "native"), ("F/C=C(/F)/F", "native"), ("C[C@](C)(C)O", "native"), ("[Na+].[O-]C(=O)c1ccccc1", "native"), ("[99*]C", None),
           ("[C-]#[O+]", "openbabel"), (".".join(["C"] * 12), "native"))


def awkward_molecules_are_built_or_fail_with_a_reason():
    """Large, impossible, of several parts, radicals, hypervalent, isotopes: an answer for each, within its CPU seconds."""
    with Project() as p:
        p.put("in.smi", "".join("%s %d\n" % (s, k) for k, (s, _) in enumerate(AWKWARD)))
        _, out, err = p.run("conformers", "in.smi", expect=3)
        got = {int(t): f for t, f, _ in records(out)}
        assert {k: f["built_by"] for k, f in got.items()} == {k: by for k, (_, by) in enumerate(AWKWARD) if by}, got
        assert all(("fallback" in f) == (f["built_by"] == "openbabel") and len(f.get("fallback", "why")) > 2 for f in got.values()), got
        for k, (_, by) in enumerate(AWKWARD):
            assert by or re.search("in.smi:%d: %d: [a-z].{20}" % (k + 1, k), err), err
        isotopes = next(mol for t, _, mol in records(out) if int(t) == 14)
        assert "M  ISO  8" in isotopes, isotopes


METHANOL = ((-0.36, 0.02, 0.01, "C"), (1.04, 0, 0, "O"), (-0.73, 1.04, 0.05, "H"), (-0.74, -0.5, 0.89, "H"), (-0.73, -0.48, -0.9, "H"), (1.36, -0.44, -0.8, "H"))
BONDS = "  1  2  1  0", "  1  3  1  0", "  1  4  1  0", "  1  5  1  0", "  2  6  1  0"
# A text of this molfile, what stands there instead, and what `energy` says; None: nothing, it has one.
DAMAGED = (("", "", None), ("    1.3600", "    1,3600", "has '1,3600'"), ("    1.3600", "       abc", "has 'abc'"), ("    1.3600", "          ", "has ''"),
           ("    1.3600", "       nan", "atom 6 has 'nan' where a position has a number"), ("    1.3600", "   90.0000", "atoms 2 and 6 are bonded, and farther than 5 Angstrom"),
           ("    1.3600", "    5.0000", None), ("    1.3600   -0.4400   -0.8000", "    1.0400    0.0000    0.0000", "closer than 0.6"), (" O ", " A ", "not an element"),
           ("  1  2  1", "  1  2  8", "type 8"), ("  1  2  1", "  1  1  1", "Invalid bond"), ("  1  2  1", "  1  9  1", "Invalid bond"), (" C ", " B ", "no type"),
           ("  2  6  1", "  1  2  1", "Invalid bond"), ("  1  2  1", "  1  2  4", "kekulize"), ("  6  5", "  6  6", "M  END"), ("  6  5", "  7  5", "Missing data"))


def damaged_molfiles_fail_with_a_reason():
    """Positions and bonds that the library would read as something else."""
    atoms = "".join("%10.4f%10.4f%10.4f %-3s 0  0\n" % a for a in METHANOL)
    whole = "T\n\n\n  6  5  0  0  0  0  0  0  0  0999 V2000\n" + atoms + "\n".join(BONDS) + "\nM  END\n$$$$\n"
    with Project() as p:
        p.put("in.sdf", "".join((whole.replace(old, new, 1) if old else whole).replace("T", "m%d" % k, 1) for k, (old, new, _) in enumerate(DAMAGED)))
        _, out, err = p.run("energy", "in.sdf", expect=3)
        for k, (_, _, says) in enumerate(DAMAGED):
            assert (" m%d: " % k in err) == (says is not None) == (not re.search("^m%d " % k, out, re.M)), (k, out, err)
            assert says is None or says in re.search(" m%d: (.*)" % k, err)[1], (k, err)


# The x of the last atom, the type of the first bond of MOL2, and what `energy` says of MOL2 and of PDB.
WRITTEN = (("1.36", "1", None, None), ("1.36", "am", None, None), ("1,36", "1", "has '1,36'", "has '1,36'"), ("1.3x", "1", "has '1.3x'", "has '1.3x'"),
           ("abc", "1", "has 'abc'", "has 'abc'"), ("1.36", "un", "type un", None), ("1.36", "nc", "type nc", None))


def positions_and_bonds_of_mol2_and_pdb_are_read_or_fail():
    kinds = "mol2", "pdb"
    with Project() as p:
        for kind in kinds:
            text = ""
            for n, (x, bond, *_) in enumerate(WRITTEN):
                atoms = [(k + 1, e, x if k == 5 else "%.2f" % a, b, c) for k, (a, b, c, e) in enumerate(METHANOL)]
                if kind == "pdb":
                    text += "COMPND    w%d\n" % n + "".join("HETATM%5d %-4s UNL     1    %8s%8.3f%8.3f  1.00  0.00          %2s\n" % (k, e, *a, e) for k, e, *a in atoms) + "END\n"
                    continue
                text += "@<TRIPOS>MOLECULE\nw%d\n6 5\nSMALL\nNO_CHARGES\n\n@<TRIPOS>ATOM\n" % n
                text += "".join("%d %s %s %s %s %s\n" % (k, e, *a, {"C": "C.3", "O": "O.3"}.get(e, e)) for k, e, *a in atoms)
                text += "@<TRIPOS>BOND\n1 1 2 %s\n2 1 3 1\n3 1 4 1\n4 1 5 1\n5 2 6 1\n" % bond
            p.put("in." + kind, text)
            _, out, err = p.run("energy", "in." + kind, expect=3)
            for n, row in enumerate(WRITTEN):
                says = row[2 + kinds.index(kind)]
                assert (" w%d: " % n in err) == (says is not None) == (not re.search("^w%d " % n, out, re.M)), (n, out, err)
                assert says is None or says in re.search(" w%d: (.*)" % n, err)[1], (n, err)


def a_large_molecule_takes_little_memory():
    """The arrays of 752 atoms; the limits of prepare allow no larger molecule."""
    with Project() as p:
        p.put("in.smi", "C" * 250 + " long\n" + "C" * 251 + " longer\n")
        done = subprocess.run([sys.executable, "-c", "import resource, subprocess, sys; subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL); "
                               "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)", *p.command("conformers", "in.smi", "-j", "1")],
                              cwd=p.dir, capture_output=True, text=True, timeout=280)
        assert "2: longer: 251 heavy atoms" in done.stderr and ": long: " not in done.stderr, done.stderr
        assert int(done.stdout) < 300 * 1024, done.stdout # kB


AMIDES = ("CC(=O)NC", "CC(=O)Nc1ccccc1", "CNC(=O)c1ccccc1", "CCCCNC=O", "CC(=S)NCC", "CC(=O)NCC(=O)NC", "O=C(NC1CC1)C=C", "CC(=O)NCc1ccccc1",
          "CNC(=O)C=O", "CC(=O)OC", "CCOC(=O)c1ccccc1", "CC(=O)O", "CSC(=O)C", "CC(=O)NCCCOC(C)=O")


def angle(p):
    """The torsion of four positions in degrees, without a sign."""
    def less(a, b): return [x - y for x, y in zip(a, b)]
    def cross(a, b): return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    def dot(a, b): return sum(x * y for x, y in zip(a, b))
    u, v = cross(less(p[1], p[0]), less(p[2], p[1])), cross(less(p[2], p[1]), less(p[3], p[2]))
    return math.degrees(math.acos(max(-1, min(1, dot(u, v) / math.sqrt(dot(u, u) * dot(v, v))))))


def forms_of(mol):
    """Torsions O=C-N-H of secondary amides and O=C-O-C (H, S) of esters and acids in a V2000 molfile."""
    lines = mol.split("\n")
    n, m = int(lines[3][:3]), int(lines[3][3:6])
    at = [[float(line[k:k + 10]) for k in (0, 10, 20)] for line in lines[4:4 + n]]
    element = [line[31:34].strip() for line in lines[4:4 + n]]
    bonded = {}
    for line in lines[4 + n:4 + n + m]:
        a, b, order = int(line[:3]) - 1, int(line[3:6]) - 1, int(line[6:9])
        bonded.setdefault(a, {})[b] = bonded.setdefault(b, {})[a] = order
    found = {"amide": [], "ester": []}
    for c in (c for c in range(n) if element[c] == "C"):
        for o in (o for o, order in bonded[c].items() if order == 2 and element[o] in "OS"):
            for y in (y for y, order in bonded[c].items() if order == 1):
                hydrogens = [h for h in bonded[y] if element[h] == "H"]
                if element[y] == "N" and len(bonded[y]) == 3 and len(hydrogens) == 1:
                    found["amide"].append(angle([at[o], at[c], at[y], at[hydrogens[0]]]))
                if element[y] in "OS" and len(bonded[y]) == 2:
                    found["ester"].append(angle([at[o], at[c], at[y], at[next(d for d in bonded[y] if d != c)]]))
    return found


def secondary_amides_are_trans_and_esters_z():
    """In every structure of an ensemble: as all but a few of crystal structures."""
    with Project() as p:
        p.put("in.smi", "".join("%s %d\n" % (s, k) for k, s in enumerate(AMIDES)))
        got = records(p.run("conformers", "in.smi", "--count", "4", "--window", "50")[1])
        forms = [(AMIDES[int(t)], forms_of(mol)) for t, _, mol in got]
        assert len(got) > 25 and sum(len(f["amide"]) for _, f in forms) > 12 and sum(len(f["ester"]) for _, f in forms) > 5, forms
        assert [(s, f) for s, f in forms if any(a < 140 for a in f["amide"]) or any(a > 40 for a in f["ester"])] == []
        assert all(f["amide"] or f["ester"] for _, f in forms)


def standard_input_is_read():
    with Project() as p:
        done = subprocess.run(p.command("conformers", "-", "--force-field", "mmff94s"), input="CCO ethanol\nNC(=O)c1ccccc1 amide\n", cwd=p.dir,
                              capture_output=True, text=True, timeout=60)
        got = records(done.stdout)
        assert done.returncode == 0 and [t for t, _, _ in got] == ["ethanol", "amide"], done.stderr
        assert all(f["force_field"] == "mmff94s" for _, f, _ in got)
        # A GPU that is asked for by name, where there may be none: then it is said before the file is opened.
        status, _, err = p.run("conformers", "none.smi", "--device", "cuda", expect=None)
        without = re.fullmatch("molsieve: --device cuda: .+; --device cpu builds without\n", err)
        assert (status, without is not None) in ((2, True), (6, False)) and ("none.smi" in err) == (status == 6), err
        assert "--device" not in p.run("conformers", "none.smi", expect=6)[2]


def each_group_of_structures_is_written_when_it_is_built():
    """Groups of 32 records: the first is complete before more is written."""
    with Project() as p:
        p.put("a.smi", "".join("C a%d\n" % k for k in range(40)))
        got = packets(p, "conformers", "a.smi", "-j", "1", "--device", "cpu")
        whole = "".join(got)
        ends = [len("".join(got[:k])) for k in range(len(got) + 1)]
        after = whole.index("a32\n")
        assert [t for t, _, _ in records(whole)] == ["a%d" % k for k in range(40)] and after in ends, (after, ends)


def the_row_says_who_built_a_structure_and_why():
    with Project() as p:
        p.put("in.smi", "CCO a\nOB(O)c1ccccc1 b\n")
        stages = "  read: {}\n  prepare: {conformers: {source: generate%s}}\n"
        for name, more in (("native", ""), ("s", ", force_field: mmff94s"), ("old", ", builder: openbabel"), ("uff", ", force_field: uff")):
            p.run("run", p.workflow(["in.smi"], stages % more, name=name + ".yaml", workdir=name), "-q")
        sql = "SELECT built_by, geometry, converged, steps>0, fallback IS NULL FROM molecule ORDER BY mol_id"
        assert p.rows(sql, workdir="native") == [("native", "mmff94", 1, 1, 1), ("openbabel", "uff", None, None, 0)]
        assert p.rows(sql, workdir="s")[0] == ("native", "mmff94s", 1, 1, 1)
        assert p.rows(sql, workdir="old")[0] == ("openbabel", "mmff94", None, None, 1)
        assert p.rows(sql, workdir="uff")[0] == ("openbabel", "uff", None, None, 1)
        # Structures from the cache have the same built_by and fallback.
        before = p.rows(sql, workdir="native"), p.run("db", "digest", "native")[1]
        _, _, err = p.run("run", "native.yaml", "stages.prepare.max_atoms=900")
        assert "0 structures built, 2 from the cache" in err, err
        assert p.rows(sql, workdir="native") == before[0]
        err = p.run("check", p.workflow(["in.smi"], stages % ", builder: openbabel, force_field: mmff94s", name="no.yaml"), expect=2)[2]
        assert "only the native builder has mmff94s" in err and "no.yaml:" in err, err


def open_babels_structures_with_long_bonds_fail():
    """Six tert-butyl groups around one bond: MMFF94's minimum has 1.96 Angstrom there."""
    with Project() as p:
        p.put("in.smi", "CC(C)(C)C(C(C)(C)C)(C(C)(C)C)C(C(C)(C)C)(C(C)(C)C)C(C)(C)C crowded\nCCO ethanol\n")
        for name, more in (("native", ""), ("old", ", builder: openbabel"), ("three", ", count: 3")):
            w = p.workflow(["in.smi"], "  read: {}\n  prepare: {conformers: {source: generate%s}}\n" % more, name=name + ".yaml", workdir=name)
            for _ in range(2):
                p.run("run", w, "-q", "--from", "prepare")
                [(title, code, why)] = p.rows("SELECT title, code, message FROM failure JOIN record USING(record_id)", workdir=name)
                assert title == "crowded" and code == "geometry" and re.search(r"a bond of 1\.[89]\d Angstrom between atoms", why), why
        _, out, err = p.run("conformers", "in.smi", expect=None)
        assert [t for t, _, _ in records(out)] == ["ethanol"] and "built with a bond of 1." in err, err


def all_structures_of_a_run_can_be_exported():
    with Project() as p:
        p.put("in.smi", "CCCCCC hexane\nc1ccccc1 benzene\nOCCN amino\n")
        w = p.workflow(["in.smi"], "  read: {}\n  prepare: {conformers: {source: generate, count: 6}}\n")
        p.run("run", w, "-q")
        have = dict(p.rows("SELECT title, structures FROM molecule JOIN record USING(mol_id)"))
        assert have["hexane"] > 2 and have["benzene"] == 1, have
        every, lowest = (records(p.run("export", "sdf", "run", "--all", *more)[1]) for more in (("--conformers", "all"), ()))
        for title, n in have.items():
            mine = [(f, mol) for t, f, mol in every if t == title]
            assert [f["conformer"] for f, _ in mine] == [str(k + 1) for k in range(n)], mine
            assert [k for k, (f, _) in enumerate(mine) if "energy" in f] == [0]
            assert len({mol for _, mol in mine}) == n and mine[0][1] == dict((t, mol) for t, _, mol in lowest)[title]
        assert len(lowest) == 3 and not any("conformer" in f for _, f, _ in lowest)
        assert "lowest, all and poses" in p.run("export", "sdf", "run", "--conformers", "some", expect=2)[2]
        assert "only sdf" in p.run("export", "csv", "run", "--conformers", "all", expect=2)[2]


if __name__ == "__main__":
    main([any_number_of_threads_writes_the_same_in_order, an_ensemble_has_increasing_energies_within_the_window,
          ensembles_are_built_with_screened_charges_by_default,
          defined_stereo_is_that_of_the_positions, stereo_that_smiles_leave_out_is_kept,
          isomers_that_smiles_do_not_tell_apart_are_two_molecules,
          allenes_have_the_form_that_their_smiles_marks, cis_and_trans_of_longer_cumulenes_are_kept,
          forms_of_an_axis_are_molecules_that_their_smiles_tell_apart, an_allene_is_one_molecule_in_all_formats_or_told_of, forms_that_no_inchikey_knows_are_told_of,
          biaryls_that_cannot_turn_keep_the_form_of_their_positions, open_babel_keeps_such_stereo_or_the_record_fails,
          stereo_that_is_not_kept_is_counted, what_has_no_structure_is_named_and_the_rest_written,
          awkward_molecules_are_built_or_fail_with_a_reason, damaged_molfiles_fail_with_a_reason, positions_and_bonds_of_mol2_and_pdb_are_read_or_fail, a_large_molecule_takes_little_memory,
          secondary_amides_are_trans_and_esters_z, standard_input_is_read, each_group_of_structures_is_written_when_it_is_built,
          the_row_says_who_built_a_structure_and_why, open_babels_structures_with_long_bonds_fail, all_structures_of_a_run_can_be_exported])
