#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Poses of the stage `external`: which structures of a program are poses of the molecule."""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../crash"))
from sieve import Project, dump, main  # noqa: E402

RANK = "  rank: {objectives: [{property: points, goal: maximise}]}\n"

# Changes each structure as the argument says; SDF or pdbqt.
SPOILER = """import math, sys
how = sys.argv[2]
def turn(atoms, bonds, i, j):
    "What is bonded to j and beyond, half a turn about the bond from i"
    out = {j}
    while True:
        more = {b for a, b in bonds if a in out} | {a for a, b in bonds if b in out}
        if more - {i} <= out:
            break
        out |= more - {i}
    u = [b - a for a, b in zip(atoms[i], atoms[j])]
    n = sum(x * x for x in u)
    for k in out:
        d = [b - a for a, b in zip(atoms[i], atoms[k])]
        f = 2 * sum(x * y for x, y in zip(u, d)) / n
        atoms[k] = [a + f * x - y for a, x, y in zip(atoms[i], u, d)]
if sys.argv[1].endswith('pdbqt'):
    print('MODEL 1\\nREMARK points -5')
    for line in open(sys.argv[1]):
        if line.startswith('ATOM') and how == 'mirror':
            line = line[:30] + '%8.3f' % -float(line[30:38]) + line[38:]
        print(line, end='')
    sys.exit(print('ENDMDL'))
for r in open(sys.argv[1]).read().split('$$$$\\n')[:-1]:
    lines = r.split('\\n')
    n, m = int(lines[3][:3]), int(lines[3][3:6])
    atoms = [[float(a[10 * k:10 * k + 10]) for k in range(3)] for a in lines[4:4 + n]]
    bonds = [(int(b[:3]) - 1, int(b[3:6]) - 1) for b in lines[4 + n:4 + n + m]]
    z = [a.split()[3] for a in lines[4:4 + n]]
    last = len(atoms) - 1
    if how == 'carbons':
        atoms[0], atoms[1] = atoms[1], atoms[0]
    elif how == 'hydrogens':
        atoms[last], atoms[last - 1] = atoms[last - 1], atoms[last]
    elif how == 'mirror':
        atoms = [[-x, y, w] for x, y, w in atoms]
    elif how == 'turn':
        turn(atoms, bonds, 1, 2)
    elif how == 'nan':
        atoms[last] = [float('nan')] * 3
    elif how == 'far':
        atoms[0] = [x + 1 for x in atoms[0]]
    elif how == 'one':
        atoms[last] = atoms[last - 1]
    lines[4:4 + n] = ['%10.4f%10.4f%10.4f %-3s 0  0' % (*a, e) for a, e in zip(atoms, z)]
    print('\\n'.join(lines).replace('V2000', 'V3000' if how == 'v3000' else 'V2000').split('M  END')[0] + 'M  END\\n>  <points>\\n-5\\n\\n$$$$')
"""
# Of these molecules the structure is no pose, or it is one.
SPOILED = [("carbons", "CC=O", "atoms 1 (C) and .*, which are bonded, are 2.* A apart"), ("mirror", "C[C@H](N)C(=O)O", "the centre at atom . (C) is not as it was"),
           ("mirror", "C[S@](=O)CC", "the centre at atom . (S) is not"), ("mirror", "C[C@H]1CC[C@@H](O)CC1", "the centre at atom"), ("mirror", "CC=[C@]=CC", "the allene of atoms"),
           ("turn", "C/C=C/C", "the double bond of atoms 2 (C) and 3 (C) is not"), ("turn", "C/C=C\\C", "the double bond of atoms"), ("turn", "CC=C(C)C", None),
           ("turn", "CCCC", None), ("mirror", "CC(C)O", None), ("mirror", "CCNC", None), ("hydrogens", "CCC", None), ("hydrogens", "CCO", "which are bonded"),
           ("nan", "ClC(Cl)Cl", "an atom has no finite position"), ("far", "CCO", "which are bonded, are"), ("one", "CCC", "which have a neighbour in common, are 0.00 A apart"),
           ("v3000", "CCO", "no atoms of a V2000"), ("nothing", "C[C@H](N)C(=O)O", None)]


def a_structure_that_is_not_the_molecule_is_no_pose():
    """The value counts, and the run says that a structure was left out, and why."""
    with Project() as p:
        p.put("s.py", SPOILER)
        stage = ("  read: {}\n  prepare: {conformers: {source: generate%s}}\n  external: {command: [python3, s.py, '{input}', %s], files: [s.py], "
                 "input: %s, output: %s, poses: true, property: points, value: points, better: low%s}\n" + RANK)

        def poses(smiles, how, kind="sdf", count="", more=""):
            p.put("a.smi", smiles + " m\n")
            w = p.workflow(["a.smi"], stage % (count, how, kind, kind, more))
            p.run("run", w, "-q")
            assert p.rows("SELECT mean FROM score") == [(-5.0,)]
            p.run("export", "sdf", "run", "--all", "--conformers", "poses", "-o", p.path("x.sdf"))
            said = [m for m, in p.rows("SELECT message FROM event WHERE stage='external' AND level='warn' AND run_id=(SELECT max(run_id) FROM run) ORDER BY event_id")]
            return open(p.path("x.sdf")).read().count("$$$$"), said
        for how, smiles, why in SPOILED:
            n, said = poses(smiles, how)
            assert n == (why is None) and len(said) == (why is not None), (how, smiles, n, said)
            if why is not None:
                assert re.match(r"a structure that the program wrote for molecule 1 is left out as a pose: .*" + why.replace("(", r"\(").replace(")", r"\)"), said[0]), (why, said)
        for how, n in (("nothing", 1), ("mirror", 0)):
            got, said = poses("C[C@H](N)C(=O)O", how, "pdbqt")
            assert got == n and len(said) == 1 - n and all("the centre at atom " in x for x in said), (how, got, said)
        # Conformers of either form, where the record leaves it open: each is a structure that the program got.
        got, said = poses("CC(N)C(O)C(F)CO", "nothing", count=", count: 12", more=", structures: all")
        assert got > 5 and not said, (got, said)
        got, said = poses("C[C@H](N)[C@@H](O)CO", "mirror", count=", count: 4", more=", structures: all")
        assert got == 0 and len(said) == 2 and re.fullmatch("structures of the program that are left out as poses: [2-4], of 1 molecule; values count", said[1]), said


# Each structure four times, moved by its place, with values of its own; the third has none.
SEVERAL = """import sys
values = ['-5.0', '-7.0', None, '-6.0']
text = open(sys.argv[1]).read()
def moved(line, at, k, width):
    return line[:at] + '%*.3f' % (width, float(line[at:at + width]) + 3 * k) + line[at + width:]
if sys.argv[1].endswith('pdbqt'):
    print('REMARK points -1.0')
    for k, v in enumerate(values):
        print('MODEL %d%s' % (k + 1, '\\nREMARK points %s 0 0' % v if v else ''))
        print(''.join(moved(x, 30, k, 8) if x.startswith('ATOM') else x for x in text.splitlines(True)) + ('\\nENDMDL' if k != 1 else ''))
else:
    for r in text.split('$$$$\\n')[:-1]:
        lines = r.split('\\n')
        n = int(lines[3][:3])
        for k, v in enumerate(values):
            atoms = [moved(x, 0, k, 10) for x in lines[4:4 + n]]
            print('\\n'.join(lines[:4] + atoms + lines[4 + n:]).split('M  END')[0] + 'M  END\\n' + ('>  <points>\\n%s\\n\\n' % v if v else '') + '$$$$')
"""


def fields(record):
    """Data fields of a record, and where its first atom is."""
    return dict(re.findall(r">  <([^>]+)>\n(.*)\n", record)), float(record.split("\n")[4][:10])


def each_pose_has_its_own_value_and_the_best_is_first():
    with Project() as p:
        p.put("s.py", SEVERAL)
        p.put("a.smi", "CCCO m\nCCN n\nCCCO again\n")
        stage = ("  read: {unit: 1}\n  prepare: {conformers: {source: generate, count: 3}}\n  external: {command: [python3, s.py, '{input}'], files: [s.py], "
                 "input: %s, output: %s, poses: true, property: points, value: points, better: %s%s}\n" + RANK)

        def poses(workdir="run"):
            p.run("export", "sdf", workdir, "--all", "--conformers", "poses", "-o", p.path("x.sdf"))
            return open(p.path("x.sdf")).read().split("$$$$\n")[:-1]
        for kind in ("sdf", "pdbqt"):
            header = {"low": -7.0, "high": -1.0 if kind == "pdbqt" else -5.0, "none": -1.0 if kind == "pdbqt" else -5.0}  # a remark in front of all models
            for better, order in (("low", [1, 3, 0, 2]), ("high", [0, 3, 1, 2]), ("none", [0, 1, 2, 3])):
                w = p.workflow(["a.smi"], stage % (kind, kind, better, ""))
                p.run("run", w, "-q")
                got = [fields(x) for x in poses()]
                assert len(got) == 8 and [f["pose"] for f, _ in got] == list("12341234"), got
                for i, (f, x) in enumerate(got):
                    assert float(f["points"]) == header[better], (kind, better, f)
                    k = order[i % 4]
                    assert f.get("pose_value") == ["-5", "-7", None, "-6"][k], (kind, better, i, f)
                    assert k == order[0] or abs(x - got[i - i % 4][1] - 3 * (k - order[0])) < 2e-3, (kind, better, i, x)
        # Each of several structures of a molecule has four.
        w = p.workflow(["a.smi"], stage % ("sdf", "sdf", "low", ", structures: all"), workdir="all")
        p.run("run", w, "-q")
        whole = poses("all")
        got = [fields(x)[0].get("pose_value") for x in whole if x.startswith("m")]
        n = len(got) // 4
        assert n > 1 and got == ["-7"] * n + ["-6"] * n + ["-5"] * n + [None] * n, got
        def merged(n, workdir):
            for k in range(n):
                p.run("run", w, "-q", "workdir=" + workdir, "--shard", "%d/%d" % (k, n))
            p.run("merge", w, "workdir=" + workdir)
            p.run("run", w, "-q", "workdir=" + workdir)
            assert "good" in p.run("db", "check", workdir)[1]
            return poses(workdir)
        # Shards, one of which has a molecule of another: alone in its unit, and beside one of its own.
        assert merged(3, "shards") == whole
        p.put("b.smi", "CCCO m\nCCN n\nCCCO again\nCCCl own\n")
        w = p.workflow(["b.smi"], (stage % ("sdf", "sdf", "low", "")).replace("unit: 1", "unit: 2"), workdir="pair")
        p.run("run", w, "-q")
        whole = poses("pair")
        assert merged(2, "pairs") == whole and len(whole) == 12
        stored = {of: [b for b in dump(p, of)["block"] if b[0] == "pose"] for of in ("pair", "pairs")}
        assert stored["pairs"] == stored["pair"] and len(stored["pair"]) == 2, stored


# Fails for the structures that the argument names: the place of each in its molecule is that of its call.
FALLIBLE = """import os, sys
here = os.path.basename(os.getcwd()).split('-')
k = int(here[1]) if len(here) > 1 else 1
if str(k) in sys.argv[2].split('+') or 'all' in sys.argv[2]:
    print('no grid')
    sys.exit(1)
print('REMARK points', 'none' if 'x%d' % k in sys.argv[2].split('+') else -k)
"""


def a_structure_for_which_the_program_fails_is_told():
    """The others of the molecule give its score; if all fail, the molecule does."""
    with Project() as p:
        p.put("f.py", FALLIBLE)
        p.put("a.smi", "CCCO m\nCCCCN n\nC methane\n")
        stage = ("  read: {unit: 2}\n  prepare: {conformers: {source: generate, count: 3}}\n  external: {command: [python3, f.py, '{input}', '%s'], files: [f.py], "
                 "input: pdbqt, output: pdbqt, structures: all, property: points, value: points, better: low, keep: failed}\n" + RANK)

        def told(how, expect=0):
            w = p.workflow(["a.smi"], stage % how, extra="limits: {failures: {max_fraction: 1}}\n")
            err = p.run("run", w, "-q", expect=expect)[2]
            said = [m for m, in p.rows("SELECT message FROM event WHERE stage='external' AND level='warn' AND run_id=(SELECT max(run_id) FROM run) ORDER BY event_id")]
            assert all(m in err for m in said), (said, err)
            return said, p.rows("SELECT mol_id, mean FROM score ORDER BY 1"), p.rows("SELECT mol_id, code FROM failure ORDER BY 1"), sorted(os.listdir(p.path("run", "scratch"))) if how != "0" else []
        said, scores, failed, _ = told("0")
        n = {m: int(-x) for m, x in scores}
        assert not said and not failed and n[1] > 1 and n[2] > 1 and n[3] == 1, (said, scores)
        first = "1 of the %d structures of molecule 1 failed, and its score is that of the others: structure %d, %s: %s"
        count = "structures for which the program failed: 2, of 2 molecules; others of these have their scores"
        said, scores, failed, kept = told("2")
        assert said == [first % (n[1], 2, "exit", "exit status 1; its output ends with: no grid"), count], said
        assert scores == [(1, -float(1 if n[1] == 2 else n[1])), (2, -float(1 if n[2] == 2 else n[2])), (3, -1.0)] and not failed, (scores, failed)
        assert kept == ["1-2", "2-2"], kept
        said, scores, failed, _ = told("x2")
        assert said == [first % (n[1], 2, "not_a_number", "the value is 'none'; a finite number is expected; its output ends with: REMARK points none"), count], said
        assert len(scores) == 3 and not failed
        said, scores, failed, _ = told("1")  # of methane it is the only one
        assert len(said) == 2 and said[1] == count and failed == [(3, "exit")] and len(scores) == 2, (said, failed)
        said, scores, failed, _ = told("all", expect=2)  # there is nothing to rank
        assert not said and not scores and failed == [(1, "exit"), (2, "exit"), (3, "exit")], (said, failed)


if __name__ == "__main__":
    main([a_structure_for_which_the_program_fails_is_told, each_pose_has_its_own_value_and_the_best_is_first, a_structure_that_is_not_the_molecule_is_no_pose])
