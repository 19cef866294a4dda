#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`molsieve energy`: MMFF94 energies of the validation suite through the program, and its messages for records without one."""
import csv
import gzip
import io
import json
import math
import os
import re

import sieve
from sieve import Project, data, main

SUITE = "mmff94/molecules.sdf.gz"
TERMS = ["bond", "angle", "stretch_bend", "out_of_plane", "torsion", "vdw", "electrostatic"]
HEAD = ["title", "total"] + TERMS


def table(text):
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[0] == HEAD, rows[0]
    return {r[0]: dict(zip(HEAD[1:], map(float, r[1:]))) for r in rows[1:]}


def reference():
    with open(data("mmff94/energies.csv")) as f:
        return {r["name"]: {k: float(r[k]) for k in HEAD[1:]} for r in csv.DictReader(f)}


def records(n):
    return gzip.open(data(SUITE), "rt").read().split("$$$$\n")[:n]


def v3000(record):
    """The same record in the other format; charges and all digits stay."""
    lines = record.split("\n")
    n, m = int(lines[3][:3]), int(lines[3][3:6])
    words = [(int(a), int(b)) for line in lines if line.startswith("M  CHG") for a, b in zip(*[iter(line.split()[3:])] * 2)]
    drawn = {0: 0, 1: 3, 2: 2, 3: 1, 5: -1, 6: -2, 7: -3}
    charge = dict(words) if words else {i + 1: drawn[int(lines[4 + i][36:39])] for i in range(n)}
    out = lines[:3] + ["  0  0  0     0  0            999 V3000", "M  V30 BEGIN CTAB", "M  V30 COUNTS %d %d 0 0 0" % (n, m), "M  V30 BEGIN ATOM"]
    for i in range(n):
        at = lines[4 + i]
        out.append("M  V30 %d %s %s 0%s" % (i + 1, at[31:34].strip(), " ".join(at[:30].split()),
                                            " CHG=%d" % charge[i + 1] if charge.get(i + 1) else ""))
    out += ["M  V30 END ATOM", "M  V30 BEGIN BOND"]
    for k in range(m):
        at = lines[4 + n + k]
        out.append("M  V30 %d %d %d %d" % (k + 1, int(at[6:9]), int(at[:3]), int(at[3:6])))
    return "\n".join(out + ["M  V30 END BOND", "M  V30 END CTAB", "M  END", ""])


def apart(record, by):
    """A record of two such molecules on either side of the origin."""
    lines = record.split("\n")
    n, m = int(lines[3][:3]), int(lines[3][3:6])
    atoms = ["%10.4f%s" % (float(line[:10]) + side, line[10:]) for side in (-by, by) for line in lines[4:4 + n]]
    bonds = ["%3d%3d%s" % (int(line[:3]) + first, int(line[3:6]) + first, line[6:]) for first in (0, n) for line in lines[4 + n:4 + n + m]]
    return "\n".join(lines[:3] + ["%3d%3d%s" % (2 * n, 2 * m, lines[3][6:])] + atoms + bonds + ["M  END", ""])


def energies_of_the_validation_suite_are_those_of_its_authors():
    want, worst = reference(), 0
    with Project() as p:
        got = table(p.run("energy", "--csv", data(SUITE))[1])
        assert list(got) == list(want) and len(got) == 601
        for name, row in want.items():
            for term, value in row.items():
                worst = max(worst, abs(got[name][term] - value) / max(1, 1e-2 * abs(value)))
                assert abs(got[name][term] - value) <= 0.01 * max(1, 1e-2 * abs(value)), (name, term, got[name][term], value)
        p.put("v3000.sdf", "".join(v3000(r) + "$$$$\n" for r in records(200)))
        other = table(p.run("energy", "--csv", "v3000.sdf")[1])
        assert all(other[name] == got[name] for name in other) and len(other) == 200
    assert worst < 0.01, worst


def all_formats_say_the_same_and_mmff94s_another():
    with Project() as p:
        p.put("few.sdf", "".join(r + "$$$$\n" for r in records(40)))
        rows = table(p.run("energy", "--csv", "few.sdf")[1])
        for one in json.loads(p.run("energy", "--json", "few.sdf")[1]):
            assert list(one) == HEAD and {k: one[k] for k in HEAD[1:]} == rows[one["title"]], one
        lines = p.run("energy", "few.sdf")[1].splitlines()
        assert lines[0].split() == ["title", "total", "bond", "angle", "str-bnd", "oop", "torsion", "vdw", "elec"] and len(lines) == 41
        for line in lines[1:]:
            name, *cells = line.split()
            assert len(line) <= 80 and all(abs(float(c) - rows[name][h]) <= 0.00501 for c, h in zip(cells, HEAD[1:], strict=True)), line
        planar = table(p.run("energy", "--csv", "--force-field", "mmff94s", "few.sdf")[1])
        assert planar != rows
        assert all(planar[n][t] == rows[n][t] for n in rows for t in ("bond", "angle", "stretch_bend", "vdw", "electrostatic"))
        assert "--force-field amber" in p.run("energy", "--force-field", "amber", "few.sdf", expect=2)[2]


def minimising_goes_down():
    with Project() as p:
        p.put("ligands.sdf", sieve.sdf_records(data("ligands.sdf.gz"), 20))
        before, after = (table(p.run("energy", "--csv", *more, "ligands.sdf", expect=3)[1]) for more in ([], ["--minimise"]))
        assert list(before) == list(after) and len(before) == 19  # one has boron
        assert all(after[n]["total"] < before[n]["total"] - 1 and math.isfinite(after[n]["total"]) for n in before), (before, after)
        suite = "".join(r + "$$$$\n" for r in records(60))
        p.put("suite.sdf", suite)  # at their minima
        low = table(p.run("energy", "--csv", "--minimise", "suite.sdf")[1])
        assert all(abs(low[n]["total"] - e["total"]) < 0.02 for n, e in reference().items() if n in low)
        # Single precision has steps of 0.001 Angstrom at such distances: no minimum is found, and that is told.
        p.put("far.sdf", apart(sieve.sdf_records(data("ligands.sdf.gz"), 1).decode(), 9000) + "$$$$\n")
        said = p.run("energy", "--csv", "--minimise", "far.sdf")[2]
        told = re.search(r"far.sdf:1: not at its minimum after 20000 steps: the gradient is (\S+) kcal/mol/A\n", said)
        assert told and 1e-3 < float(told[1]) < 10 and "minimum" not in p.run("energy", "far.sdf")[2], said


def records_without_an_energy_are_reported_and_the_rest_printed():
    boron = "borane\n  molsieve          3D\n\n  4  3  0  0  0  0  0  0  0  0999 V2000\n" + "".join(
        "%10.4f%10.4f%10.4f %-3s 0  0  0  0  0  0  0  0  0  0  0  0\n" % (x, y, 0, e)
        for x, y, e in ((0, 0, "B"), (1.19, 0, "H"), (-0.6, 1.03, "H"), (-0.6, -1.03, "H"))) + \
        "  1  2  1  0\n  1  3  1  0\n  1  4  1  0\nM  END\n"
    with Project() as p:
        good = records(2)
        p.put("some.sdf", "$$$$\n".join([good[0], boron, good[1]]) + "$$$$\n")
        status, out, err = p.run("energy", "--csv", "some.sdf", expect=3)
        assert list(table(out)) == ["AGLYSL01", "AMHTAR01"], out
        line = good[0].count("\n") + 2
        assert "some.sdf:%d: borane: atom 1 (B): " % line in err and "1 of 3 records have no energy" in err, err
        assert json.loads(p.run("energy", "--json", "some.sdf", expect=3)[1])[1]["title"] == "AMHTAR01"
        p.put("flat.smi", "CCO ethanol\n")
        assert "lacks hydrogens or 3D positions" in p.run("energy", "flat.smi", expect=3)[2]
        assert "nowhere.sdf" in p.run("energy", "nowhere.sdf", expect=6)[2]
        p.put("empty.sdf", "")
        assert "no record" in p.run("energy", "empty.sdf", expect=2)[2]


def a_table_that_is_missing_is_named():
    with Project() as p:
        p.put("one.sdf", records(1)[0])
        os.mkdir(p.path("tables"))
        p.put("tables/mmffbond.par", "* no table\n$\n")
        env = dict(os.environ, BABEL_DATADIR=p.path("tables"))
        said = p.run("energy", "one.sdf", expect=2, env=env)[2]
        assert "tables/mmffprop.par is not there" in said and "set BABEL_DATADIR to its data folder" in said, said


if __name__ == "__main__":
    main([energies_of_the_validation_suite_are_those_of_its_authors, all_formats_say_the_same_and_mmff94s_another, minimising_goes_down,
          records_without_an_energy_are_reported_and_the_rest_printed, a_table_that_is_missing_is_named])
