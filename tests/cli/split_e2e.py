#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which molecules learn, are held out and test: splits by scaffold, by time, by column and by file."""
import os
import random

import sieve

SMILES = ["CCO", "CCN", "CCC", "CCCl", "c1ccccc1", "CC(=O)O", "CCOC", "CC#N", "C1CCCCC1", "CCS", "CCBr", "OCCO", "NCCO", "CC=O",
          "CCCC", "CCCO", "c1ccncc1", "C[C@H](O)F", "C[C@@H](O)F", "FC(Cl)Br"]
PARTS = "SELECT inchikey, part FROM split JOIN molecule USING(mol_id) ORDER BY 1"
SCAFFOLDS = [  # the molecules of each scaffold, one scaffold per line
    "c1ccccc1 Cc1ccccc1 CCc1ccccc1 Oc1ccccc1 Nc1ccccc1 Clc1ccccc1 OC(=O)c1ccccc1 COc1ccccc1", "CCO CCC CC(=O)O C=CC",
    "CC1CCCCC1 OC1CCCCC1 NC1CCCCC1", "Cc1ccncc1 Oc1cccnc1", "O=C1CCCCC1 CC1CCCCC1=O", "C1CCC2CCCCC2C1", "C1CCCC1C1CCCC1",
    "c1ccoc1", "c1ccsc1", "c1cc[nH]c1"]


def groups_of_scaffolds(molecules, group):
    """Places of molecules by scaffold, in the order of their first."""
    found = {}
    for k, (_, title) in enumerate(molecules):
        found.setdefault(group[title], []).append(k)
    return list(found.values())


def deepchem_split(groups, n):
    """ScaffoldSplitter of DeepChem 2.8, fractions 0.6, 0.2, 0.2."""
    parts = [], [], []
    for one in sorted(groups, key=lambda g: (len(g), g[0]), reverse=True):
        if len(parts[0]) + len(one) > 0.6 * n:
            parts[2 if len(parts[0]) + len(parts[1]) + len(one) > 0.8 * n else 1].extend(one)
        else:
            parts[0].extend(one)
    return parts


def chemprop_split(groups, n, seed):
    """scaffold_split(balanced=True) of Chemprop 1.7, sizes 0.6, 0.2, 0.2."""
    large = [g for g in groups if len(g) > 0.1 * n]
    small = [g for g in groups if len(g) <= 0.1 * n]
    rng = random.Random(seed)
    rng.shuffle(large)
    rng.shuffle(small)
    parts = [], [], []
    for one in large + small:
        if len(parts[0]) + len(one) <= 0.6 * n:
            parts[0].extend(one)
        elif len(parts[1]) + len(one) <= 0.2 * n:
            parts[1].extend(one)
        else:
            parts[2].extend(one)
    return parts


def scaffold_splits_of_others_are_theirs():
    """Molecule by molecule, with Python's own shuffle."""
    molecules = [(s, "s%d_%d" % (i, k)) for i, line in enumerate(SCAFFOLDS + ["C[n+]1ccccc1 CC[n+]1ccccc1"]) for k, s in enumerate(line.split())]
    random.Random(3).shuffle(molecules)
    group = {title: title.split("_")[0] for _, title in molecules}
    groups, n = groups_of_scaffolds(molecules, group), len(molecules)
    with sieve.Project() as p:
        p.put("a.smi", "".join("%s %s\n" % m for m in molecules))
        for variant, seed in [("deterministic", 1)] + [("balanced", k) for k in range(12)]:
            p.workflow(["a.smi"], "  read: {}\n  prepare: {conformers: {source: none}}\n  split: {method: scaffold, variant: %s, "
                       "fractions: {train: 0.6, valid: 0.2, test: 0.2}}\n" % variant)
            p.run("run", "w.yaml", "-q", "seed=%d" % seed)
            got = dict(p.rows("SELECT title, part FROM split JOIN record USING(mol_id)"))
            parts = deepchem_split(groups, n) if variant == "deterministic" else chemprop_split(groups, n, seed)
            want = {molecules[k][1]: part for part, which in zip(("train", "valid", "test"), parts) for k in which}
            assert got == want, (variant, seed, got, want)
        said = p.run("check", "w.yaml", "stages.split.fractions={train: 0.6, test: 0.2, valid: 0.1, calibration: 0.1}", expect=2)[2]
        assert "only the variant random has such a part" in said, said


def whole_scaffolds_are_in_one_part():
    """Large scaffolds go to train, the others to random parts; the order of records does not matter."""
    molecules = [(s, "s%d" % i) for i, line in enumerate(SCAFFOLDS) for s in line.split()]
    by = "SELECT title, part, count(*) FROM split JOIN record USING(mol_id) GROUP BY 1, 2 ORDER BY 1"
    with sieve.Project() as p:
        p.put("a.smi", "".join("%s %s\n" % m for m in molecules))
        p.put("b.smi", "".join("%s %s\n" % m for m in molecules[::-1]))
        for name in "ab":
            p.workflow([name + ".smi"], "  read: {unit: 5}\n  prepare: {conformers: {source: none}}\n  split: {method: scaffold, "
                       "fractions: {train: 0.5, valid: 0.25, test: 0.25}}\n", name=name + ".yaml", workdir=name)
            p.run("run", name + ".yaml", "-q")
        got = p.rows(by, workdir="a")
        assert got == p.rows(by, workdir="b")
        assert [title for title, _, _ in got] == ["s%d" % i for i in range(len(SCAFFOLDS))], got
        size = {part: sum(n for _, its, n in got if its == part) for part in ("train", "valid", "test")}
        assert size["train"] >= 12 and min(size["valid"], size["test"]) >= 5, size
        assert got[0][1:] == ("train", 8) and got[1][1:] == ("train", 4), got
        note = p.one("SELECT message FROM event WHERE message LIKE '%scaffolds%'", workdir="a")
        assert note == "10 scaffolds; the largest group, of one scaffold, has 8 of 24 molecules", note
        for k in range(3):
            p.run("run", "a.yaml", "-q", "workdir=shards", "--shard", "%d/3" % k)
        p.run("merge", "a.yaml", "-q", "workdir=shards")
        p.run("run", "a.yaml", "-q", "workdir=shards")
        assert p.rows(by, workdir="shards") == got
        os.unlink(p.path("a/features.db"))
        seeds, parts_of_three, parts_of_one = set(), set(), set()
        for seed in range(1, 13):
            p.run("run", "a.yaml", "-q", "--from", "split", "seed=%d" % seed)
            rows = p.rows(by, workdir="a")
            assert rows[0][1] == rows[1][1] == "train", rows
            seeds.add(tuple(rows))
            parts_of_three.add(rows[2][1])
            parts_of_one |= {part for _, part, n in rows if n == 1}
        assert len(seeds) > 5, "another seed, another split"
        # A large scaffold does not become a test part because train has no room for it.
        p.run("run", "a.yaml", "-q", "--from", "split", "stages.split.fractions.train=0.4", "stages.split.fractions.calibration=0.1")
        assert p.one("SELECT count(*) FROM split JOIN record USING(mol_id) WHERE part='train' AND title IN ('s0','s1')", workdir="a") == 12
        # Each held-out part gets small and larger scaffolds: none consists of single molecules only.
        assert {"valid", "test"} <= parts_of_three and {"valid", "test"} <= parts_of_one, (parts_of_three, parts_of_one)
        _, _, err = p.run("run", "a.yaml", "stages.split.fractions.train=0.9", expect=2)
        assert "add up to 1.4" in err, err


def shares_that_whole_groups_cannot_have_are_warned_of():
    """Large scaffolds do not overfill a small training share; differences from the fractions are reported."""
    rings = ["c1ccccc1", "c1ccncc1", "C1CCCCC1", "c1ccoc1", "c1ccsc1", "C1CCCC1", "C1CCNCC1", "C1CCOCC1", "c1cnccn1", "C1CCC2CCCCC2C1"]
    with sieve.Project() as p:
        p.put("a.smi", "".join(chain + ring + "\n" for ring in rings for chain in ("", "C", "CC", "CCC")))
        stages = "  read: {}\n  prepare: {conformers: {source: none}}\n  split: {method: %s, fractions: {train: %s, valid: %s, test: %s}}\n"

        def split(method, *shares):
            p.workflow(["a.smi"], stages % ((method,) + shares), workdir="%s-%s" % (method, shares[0]))
            p.run("run", "w.yaml", "-q")
            where = "%s-%s" % (method, shares[0])
            return (dict(p.rows("SELECT part, count(*) FROM split GROUP BY 1", workdir=where)),
                    [m for m, in p.rows("SELECT message FROM event WHERE level='warn' AND message LIKE 'asked for%'", workdir=where)])

        got, told = split("scaffold", 0.05, 0.05, 0.9)  # earlier versions: 20 of 40 to train
        assert got["train"] == 4 and sum(got.values()) == 40, got
        assert told == ["asked for train 5 %%, valid 5 %%, test 90 %%, but there are train 10 %% (4), %stest %.3g %% (%d): molecules of one "
                        "scaffold or skeleton stay together; a random split, or other fractions, may come nearer" %
                        ("valid %.3g %% (%d), " % (2.5 * got.get("valid", 0), got.get("valid", 0)), 2.5 * got["test"], got["test"])], told
        got, told = split("scaffold", 0.8, 0.1, 0.1)
        assert got == {"train": 32, "valid": 4, "test": 4} and told == [], (got, told)
        assert split("random", 0.5, 0.25, 0.25) == ({"train": 20, "valid": 10, "test": 10}, [])


def a_split_by_time_trains_on_what_came_first():
    """Equal years stay together, the latest are the test part, and duplicates and other forms of held-out molecules leave the training."""
    years = [1990, 1990, 1990, 1991, 1992, 1993, 1993, 1994, 1995, 1995, 1996, None, 1997, 1998, 1999]
    with sieve.Project() as p:
        lines = ["%s,m%d,%s" % (s, i, "" if y is None else y) for i, (s, y) in enumerate(zip(SMILES, years))]
        stages = "  read: {unit: 4}\n  prepare: {conformers: {source: none}}\n  split: {method: time, column: year, fractions: %s, leaks: %s}\n"
        shares = "{train: 0.4, valid: 0.3, calibration: 0.1, test: 0.2}"
        for name, order in (("a", 1), ("b", -1)):
            p.put(name + ".csv", "smiles,name,year\n" + "\n".join(lines[::order]) + "\n")
            p.workflow([name + ".csv"], stages % (shares, "allow"), name=name + ".yaml", workdir=name)
            p.run("run", name + ".yaml", "-q")
        by = "SELECT CAST(value AS INTEGER), part FROM split JOIN label USING(mol_id) ORDER BY 1"
        got = p.rows(by, workdir="a")
        assert got == p.rows(by, workdir="b") and len(got) == 14, got
        # 5.6 of 14 molecules go to train: the second of 1993 is beyond that, but goes where the first is; then up to 9.8, and so on.
        want = {y: "train" for y in (1990, 1991, 1992, 1993)} | {1994: "valid", 1995: "valid", 1996: "calibration", 1997: "calibration",
                                                                 1998: "test", 1999: "test"}
        assert dict(got) == want and all(want[y] == part for y, part in got), got
        told = p.one("SELECT message FROM event WHERE message LIKE '%train from%'", workdir="a")
        assert told == "train from 1990, valid from 1994, calibration from 1996, test from 1998 to 1999", told
        without = "SELECT message FROM event WHERE message LIKE '%no year' AND level='warn' ORDER BY event_id DESC LIMIT 1"
        assert p.one(without, workdir="a") == "1 molecule is in no part, because it has no year"
        p.put("a.csv", "smiles,name,year\n" + "\n".join(lines[1:] + [lines[0].replace("1990", "")]) + "\n")
        p.run("run", "a.yaml", "-q")
        assert p.one(without, workdir="a") == "2 molecules are in no part, because they have no year"
        assert "add up to" in p.run("check", "a.yaml", "stages.split.fractions.train=0.9", expect=2)[2]
        assert "called month" in p.run("run", "a.yaml", "-q", "stages.split.column=month", expect=2)[2]


def a_molecule_of_several_times_counts_as_of_the_last():
    """What was measured later is not learned, in whatever order the records come, in one run and of merged shards."""
    years = dict(zip(SMILES, range(1990, 2010)))
    with sieve.Project() as p:
        rows = list(years.items()) + [("CCO", 2030), ("CCN", 1980), ("CCC", 1992), ("CCCl", 2000), ("CCCl", 2031)]
        stages = ("  read: {unit: 4}\n  prepare: {conformers: {source: none}%s}\n"
                  "  split: {method: time, column: year, fractions: {train: 0.5, valid: 0.25, test: 0.25}}\n")
        got = {}
        for name, order, more in (("a", 1, ""), ("b", -1, ""), ("c", 1, ", dedupe: {on_conflict: first}")):
            p.put(name + ".csv", "smiles,year\n" + "".join("%s,%d\n" % row for row in rows[::order]))
            p.workflow([name + ".csv"], stages % more, name=name + ".yaml", workdir=name)
            p.run("run", name + ".yaml", "-q")
            got[name] = p.rows("SELECT inchikey, value, n_measurements, spread>0, part FROM split JOIN molecule USING(mol_id) JOIN label "
                               "USING(mol_id) ORDER BY 1", workdir=name)
            told = [m for m, in p.rows("SELECT message FROM event WHERE level='warn' AND stage='split'", workdir=name)]
            assert "3 molecules have records with several values in year; each counts as of the last" in told, told
        assert len(got["a"]) == 20 and got["a"] == got["b"] == got["c"], got
        late = [(year, n, part) for _, year, n, differs, part in got["a"] if differs]
        assert sorted(late) == [(1991, 2, "train"), (2030, 2, "test"), (2031, 3, "test")], late
        for k in (0, 1):
            p.run("run", "a.yaml", "--shard", "%d/2" % k, "-q", "workdir=shards")
        p.run("merge", "a.yaml", "-q", "workdir=shards")
        p.run("run", "a.yaml", "-q", "workdir=shards")
        assert p.rows("SELECT inchikey, value, n_measurements, spread>0, part FROM split JOIN molecule USING(mol_id) JOIN label USING(mol_id) "
                      "ORDER BY 1", workdir="shards") == got["a"]
        # A library that was prepared for another split is prepared again; the mean of other labels stays.
        p.run("run", "a.yaml", "-q", "workdir=other", "stages.split={method: random}")
        assert p.one("SELECT count(*) FROM label WHERE value=2010", workdir="other") == 1
        p.run("run", "a.yaml", "-q", "workdir=other")
        assert p.one("SELECT count(*) FROM label WHERE value=2030", workdir="other") == 1
        assert "at most 200 bytes" in p.run("check", "a.yaml", "stages.split.column=" + 201 * "x", expect=2)[2]


def a_split_depends_on_the_seed_and_the_molecules_alone():
    """The split does not depend on the order of records; stereoisomers stay together; columns and files are followed."""
    prepare = "  read: {}\n  prepare: {conformers: {source: none}}\n"
    with sieve.Project() as p:
        def table(name, rows):
            p.put(name, "smiles,name,split\n" + "".join("%s,m%d,%s\n" % (s, i, part) for s, i, part in rows))

        rows = [(s, i, i % 4) for i, s in enumerate(SMILES)]
        rows[17], rows[18] = (SMILES[17], 17, 0), (SMILES[18], 18, 2)
        table("a.csv", rows)
        table("b.csv", rows[::-1])

        def split(name, data, settings, expect=0):
            p.workflow([data], prepare + "  split: {%s}\n" % settings, name=name + ".yaml", workdir=name)
            _, out, err = p.run("run", name + ".yaml", "-q", expect=expect)
            return err if expect else p.rows(PARTS, workdir=name)

        half = "fractions: {train: 0.5, valid: 0.25, test: 0.25}"
        first = split("one", "a.csv", half)
        assert split("two", "b.csv", half) == first and len(first) == 20
        skeletons = {}
        for key, part in first:
            skeletons.setdefault(key[:14], set()).add(part)
        assert len(skeletons) == 19 and all(len(parts) == 1 for parts in skeletons.values()), skeletons
        p.run("run", "one.yaml", "-q", "seed=12")
        assert p.rows(PARTS, workdir="one") != first, "another seed"
        assert len(split("few", "a.csv", half + ", limit: {train: 3}")) < 20
        by = "SELECT title, part FROM split JOIN record USING(mol_id) ORDER BY 1"
        split("column", "a.csv", "method: column")
        names = ["train", "valid", "test"]
        want = sorted(("m%d" % i, names[part]) for _, i, part in rows if part < 3 and i != 17)
        assert p.rows(by, workdir="column") == want, "m17 has the skeleton of m18, which is held out"
        beyond = sum(part > 2 for _, _, part in rows)
        told = [m for m, in p.rows("SELECT message FROM event WHERE level='warn' AND stage='split'", workdir="column")]
        assert any(m.startswith("%d molecules are in no part, because split is 3" % beyond) for m in told) == (beyond > 0), (beyond, told)
        split("keep", "a.csv", "method: column, leaks: allow")
        assert p.rows(by, workdir="keep") == sorted(want + [("m17", "train")])
        assert "leaks" in split("refuse", "a.csv", "method: column, leaks: refuse", expect=2)
        # The mean of train and test is valid: a molecule of several parts is in none.
        table("twice.csv", rows + [(s, 100 + i, 2 - part if i != 1 else part) for s, i, part in rows[:3]])
        split("twice", "twice.csv", "method: column")
        assert p.rows(by, workdir="twice") == sorted([w for w in want if w[0] not in ("m0", "m2")] + [("m101", "valid")])
        assert ("2 molecules are in no part, because the records have several values in split",) in p.rows(
            "SELECT message FROM event WHERE level='warn' AND stage='split'", workdir="twice")
        p.put("parts.txt", b"\xef\xbb\xbfm0 train\r\n# by title\n\nm1, valid \nm2\t2\n")
        split("file", "a.csv", "method: file, path: parts.txt")
        assert p.rows(by, workdir="file") == [("m0", "train"), ("m1", "valid"), ("m2", "test")]
        told = "SELECT message FROM event WHERE level='warn' AND stage='split' AND message LIKE '%no part%' ORDER BY event_id DESC LIMIT 1"
        assert p.one(told, workdir="file").startswith("17 molecules are in no part, because no line names them in "), p.one(told, workdir="file")
        assert p.one(told, workdir="file").endswith("parts.txt")
        p.put("parts.txt", "".join("m%d train\n" % i for i in range(1, len(SMILES))))
        split("file", "a.csv", "method: file, path: parts.txt")
        assert p.one(told, workdir="file").startswith("1 molecule is in no part, because no line names it in ")
        table("empty.csv", [(s, i, "" if i in (3, 5) else part) for s, i, part in rows])
        split("empty", "empty.csv", "method: column")
        assert p.one(told, workdir="empty") == "2 molecules are in no part, because they have no split"
        p.put("parts.txt", "m0 train\nnobody test\nm1 valid\nno one test\n")
        split("file", "a.csv", "method: file, path: parts.txt")
        assert p.one("SELECT message FROM event WHERE level='warn' AND message LIKE '% lines of %'", workdir="file").startswith("2 lines of ")
        # By title and InChIKey: the same part twice is one, of two neither is right.
        key = p.one("SELECT inchikey FROM molecule JOIN record USING(mol_id) WHERE title='m1'", workdir="file")
        p.put("parts.txt", "m0 train\nm1 valid\n%s valid\nm2 test\n" % key)
        split("file", "a.csv", "method: file, path: parts.txt")
        assert p.rows(by, workdir="file") == [("m0", "train"), ("m1", "valid"), ("m2", "test")]
        p.put("bad.txt", "m0 train\n\nm1 valid\n%s test\n" % key)
        told = split("bad", "a.csv", "method: file, path: bad.txt", expect=2)
        assert "bad.txt:4 puts molecule %s in test, but " % key in told and "bad.txt:3 puts it in valid; a molecule is in one part: remove one of the lines" in told, told
        assert p.rows("SELECT * FROM split", workdir="bad") == []
        p.put("bad.txt", "m0 train\nm1 valid\nm0 test\nm1 train\n")
        told = split("bad", "a.csv", "method: file, path: bad.txt", expect=2)
        assert "bad.txt:3 puts" in told and "bad.txt:1 puts it in train (2 such lines in all)" in told, told
        p.put("bad.txt", "m0 train\n\nm1 often\n")
        assert "bad.txt:3" in split("bad", "a.csv", "method: file, path: bad.txt", expect=2)
        p.put("bad.txt", "m0 train\n,test\n")
        assert "bad.txt:2" in split("bad", "a.csv", "method: file, path: bad.txt", expect=2)
        # With more atoms than InChI takes, molecules have no key: each is a group of its own.
        p.put("big.smi", "".join("%sO b%d\n" % ("C" * (1030 + i), i) for i in range(3)))
        p.put("big.txt", "b0 train\nb1 test\nb2 train\n")
        p.workflow(["big.smi"], "  read: {}\n  prepare: {conformers: {source: none}, max_heavy_atoms: 2000, max_atoms: 5000}\n"
                   "  split: {method: file, path: big.txt}\n", name="big.yaml", workdir="big")
        p.run("run", "big.yaml", "-q")
        assert p.rows("SELECT part, inchikey FROM split JOIN molecule USING(mol_id) ORDER BY mol_id", workdir="big") == [
            ("train", ""), ("test", ""), ("train", "")]
        assert "fractions add up to 0.9" in split("sum", "a.csv", "fractions: {train: 0.7}", expect=2)


if __name__ == "__main__":
    sieve.main([a_split_depends_on_the_seed_and_the_molecules_alone, whole_scaffolds_are_in_one_part, scaffold_splits_of_others_are_theirs,
                shares_that_whole_groups_cannot_have_are_warned_of, a_split_by_time_trains_on_what_came_first,
                a_molecule_of_several_times_counts_as_of_the_last])
