#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The report of a screen and of a training, parsed like a browser does, compared with the database."""
import base64
import csv
import hashlib
import html.parser
import os
import re
import shutil
import sqlite3
import subprocess
import xml.etree.ElementTree as ET

import sieve

WORKFLOWS = os.path.join(os.environ.get("MOLSIEVE_SOURCE", os.path.join(os.path.dirname(__file__), "../..")), "workflows")
VOID = {"meta", "br"}
NAME = "<img src=x onerror=alert(0)>\"'&amp;"
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&amp;"


class Page(html.parser.HTMLParser):
    """Balanced tags, the text, tables as lists of rows of cells; a cell is its numbers in full, or its text."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.source, self.open, self.tags, self.attrs, self.text = text, [], {}, [], ""
        self.tables, self.titles, self.h2, self.cell = [], [], [], None
        self.feed(text)
        self.close()
        assert self.open == [], self.open

    def handle_starttag(self, tag, attrs):
        self.tags[tag] = self.tags.get(tag, 0) + 1
        self.attrs += [(tag,) + a for a in attrs]
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
            self.cell = True
        elif tag == "data":
            self.tables and self.cell and self.tables[-1][-1].__setitem__(-1, float(dict(attrs)["value"]))
            self.cell = None if self.cell else self.cell

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open, self.getpos())
        self.open.pop()
        if tag in ("td", "th"):
            self.cell = None

    def handle_data(self, data):
        self.text += data
        if "h2" in self.open:
            self.h2.append(data)
        if self.cell and isinstance(self.tables[-1][-1][-1], str):
            self.tables[-1][-1][-1] += data

    def table(self, *heads):
        """The rows of the only table that begins with these column heads."""
        found = [t for t in self.tables if t and t[0][:len(heads)] == list(heads)]
        assert len(found) == 1, (heads, [t[0] for t in self.tables if t])
        return found[0][1:]


def read_page(p, *where):
    """Makes the report twice, to a file and to standard output; checks that both are equal and that the page is safe and complete."""
    p.run("report", *where, "-o", "page.html")
    with open(p.path("page.html"), encoding="utf-8", newline="") as f:
        text = f.read()
    assert p.run("report", *where, "-o", "-")[1] == text
    page = Page(text)
    svgs = re.findall(r"<svg.*?</svg>", text, re.S)
    assert len(svgs) == page.tags["svg"]
    for svg in svgs:
        root = ET.fromstring(svg)
        assert root.get("role") == "img" and root.get("aria-label"), svg[:200]
        assert not re.search(r"\b(nan|inf)\b", svg.split(">", 1)[1]), svg[:2000]
    assert not {"img", "link", "iframe", "object", "form"} & set(page.tags), page.tags
    # One script, the one that the policy allows.
    script = re.findall(r"<script>(.*?)</script>", text, re.S)
    assert len(script) == page.tags["script"] == 1
    allowed = base64.b64encode(hashlib.sha256(script[0].encode()).digest()).decode()
    assert "content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-%s'\"" % allowed in text
    for tag, name, value in page.attrs:
        assert not name.startswith("on") and name not in ("src", "style"), (tag, name)
        assert name != "href" or value.startswith("#"), value
    ids = {v for _, n, v in page.attrs if n == "id"}
    assert all(v[1:] in ids for _, n, v in page.attrs if n == "href")
    heads = [a for a in page.attrs if a[0] == "th"]
    assert page.tags["th"] == len([a for a in heads if a[1] == "scope"])
    return page, svgs


def bars(svgs, label):
    """The sum of the bars of the histogram with this label."""
    found = [s for s in svgs if 'aria-label="histogram of %s' % label in s]
    assert len(found) == 1, label
    return sum(int(n) for n in re.findall(r"<title>[^:]*: (\d+)", found[0])), found[0]


def small_screen(p, n=24):
    shutil.copytree(WORKFLOWS, p.path("workflows"))
    library = sieve.lines_of(os.path.join(WORKFLOWS, "data/library.smi"), n)
    first = library.splitlines()[0].split()[0]
    p.put("workflows/data/library.smi", library + first + b" twice\n" + ("CCOC(=O)c1ccccc1 %s\n" % HOSTILE).encode() +
          b"C1CC<b>broken</b> bad\n" + b"[Xe] noble\n" + b"CC=[C@]=CC allene\n" +
          b"C/C=C=C=C=C=C/C cumulene\n")
    text = open(p.path("workflows/screen.yaml")).read()
    text = text.replace("name: solubility-screen", "name: '%s'" % NAME.replace("'", "''"))
    text = re.sub(r'    (where|domain): .*\n', "", text)
    p.put("workflows/screen.yaml", text)
    p.run("run", "workflows/screen.yaml", "-q", "limits.failures.max_fraction=1")


def a_screen_has_a_one_page_report():
    with sieve.Project() as p:
        small_screen(p)
        p.run("run", "workflows/screen.yaml", "-q", "limits.failures.max_fraction=1")  # runs no stage, so its version of Open Babel is empty
        page, svgs = read_page(p, "workflows/screen.yaml")

        def rows(sql, *values):
            return p.rows(sql, *values, workdir="runs/screen")

        records, duplicate, failed, molecules, scored, hits = rows(
            "SELECT records, duplicate, failed, molecules, scored, hits FROM v_funnel")[0]
        assert failed >= 1 and duplicate == 1 and hits > 10, (failed, duplicate, hits)
        funnel = {r[0]: r[1] for r in page.table("step", "number")}
        assert (funnel["records read"], funnel["duplicates of another record"], funnel["failed, with a reason"],
                funnel["molecules"], funnel["scored"], funnel["ranked"]) == (records, duplicate, failed, molecules, scored, hits)
        # The ranking, in full precision, with structures.
        table = page.table("rank", "structure", "identifiers")
        want = rows("SELECT h.rank, m.inchikey, s.mean, s.interval90, s.similarity, CASE s.domain WHEN 'outside' THEN 'outside: '||s.reasons ELSE s.domain END, "
                    "nullif(m.undefined_stereo, 0), m.mw, m.logp, m.tpsa, m.hbd, m.hba, m.rotb FROM hit h "
                    "JOIN molecule m USING(mol_id) JOIN score s USING(mol_id) ORDER BY rank")
        assert len(table) == len(want) == hits
        for got, (rank, key, *numbers) in zip(table, want):
            numbers = ["" if x is None else x for x in numbers]
            assert got[0] == rank and key in got[2] and ["" if x is None else x for x in got[3:-1]] == numbers, (got, numbers)
        assert sum('<g class="ink" id="hit' in s for s in svgs) == hits
        # Each hit is shown once more, with those of its scaffold; molecules without rings have none.
        assert sum('<use href="#hit' in s for s in svgs) == hits
        group = {r[0]: r[-1] for r in table}
        assert all((group[rank] == "") == (rings == 0) for rank, rings in rows("SELECT rank, m.rings FROM hit JOIN molecule m USING(mol_id)"))
        assert set(group.values()) - {""} == set(range(1, 1 + len(set(group.values()) - {""})))
        # The files in the page are those of `export`.
        files = dict(re.findall(r'<pre id="(csv|sdf)">(.*?)</pre>', page.source, re.S))
        assert html.unescape(files["csv"]) == p.run("export", "csv", "runs/screen")[1]
        records = html.unescape(files["sdf"]).split("$$$$\n")
        heads = next(csv.reader(html.unescape(files["csv"]).splitlines()))
        assert len(records) == hits + 1 and all(
            [h for h in re.findall(r">  <(.*)>", r) if h != "drawing"] == [h for h in heads if ">  <%s>" % h in r] for r in records)
        # An allene is drawn with wedges. The longer cumulene is the one without its stereo, which InChI does not see in a drawing.
        assert [r.splitlines()[0] for r in records if ">  <drawing>\nstereo not drawn\n" in r] == ["cumulene"]
        assert [bool(re.search(r"\n[ \d]{6}  1  [16]  0", r)) for r in records if r.startswith("allene\n")] == [True]
        assert sum("stereo not drawn</text>" in s and "<circle" not in s for s in svgs) == 1
        p.put("page.sdf", html.unescape(files["sdf"]))
        p.workflow(["page.sdf"], "  read: {}\n  prepare: {conformers: {source: none}}\n", name="back.yaml", workdir="back")
        p.run("run", "back.yaml", "-q")
        assert sorted(p.rows("SELECT inchikey FROM molecule", workdir="back")) == sorted(rows("SELECT inchikey FROM hit JOIN molecule USING(mol_id)"))
        # Failures by stage and code; markup in a name is shown as text.
        table = page.table("stage", "code", "number")
        assert [(r[0], r[1], r[2]) for r in table] == rows("SELECT stage, code, count(*) FROM failure GROUP BY 1,2 ORDER BY 3 DESC,1,2")
        assert page.text.count(NAME) >= 2 and HOSTILE in page.text and "<b>broken" in page.text
        # Every molecule is in a bar.
        assert bars(svgs, "molecular weight")[0] == molecules and bars(svgs, "rings")[0] == molecules
        total, svg = bars(svgs, "logS, predicted")
        assert total == scored and sum(int(n) for n in re.findall(r"ranked (\d+)", svg)) == hits
        # Stages and their keys, runs, settings.
        assert [r[1] for r in page.table("stage", "key")] == [k for (k,) in rows("SELECT key FROM stage ORDER BY stage_id")]
        assert len(page.table("run", "command")) == 2 and "conformers:" in page.text
        assert "Open Babel: %s" % rows("SELECT openbabel_version FROM run LIMIT 1")[0] in page.text
        assert "How they were ranked: maximise logS; at most 100 molecules" in page.text
        # Fewer molecules, and none.
        for top in (0, 3):
            text = p.run("report", "runs/screen", "--top", str(top), "-o", "-")[1]
            assert text.count('<g class="ink" id="hit') == top
        p.run("report", "--top", "1001", "runs/screen", expect=2)
        # If all structures are drawn, only the page's path is printed; if it cannot be written, only the reason.
        _, _, err = p.run("report", "runs/screen", "-o", "page.html")
        assert re.fullmatch(r"molsieve: 1 of \d+ drawings do not show the stereo of their molecule, and say so\npage\.html \([0-9.]+ kB\)\n", err), err
        _, _, err = p.run("report", "runs/screen", "-o", "page.html/page.html", expect=6)
        assert err.startswith("molsieve: page.html") and err.count("\n") == 1, err
        # Without the chemistry worker the page has SMILES only, and a message says so.
        shutil.copy(sieve.PROGRAM, p.path("alone"))
        env = {k: v for k, v in os.environ.items() if k != "MOLSIEVE_CHEM"}
        alone = subprocess.run([p.path("alone"), "report", "runs/screen", "-o", "-"], cwd=p.dir, capture_output=True, text=True,
                               env=dict(env, PATH="/nowhere"))
        assert alone.returncode == 0 and re.search(r"\d+ structures are shown as SMILES only, 0 are drawn", alone.stderr), alone.stderr
        assert '<svg class="mol"' not in alone.stdout
        assert "Scaffold not known: " in alone.stdout and "Without rings: " not in alone.stdout
        assert [r[3:-1] for r in Page(alone.stdout).table("rank", "structure")] == [["" if x is None else x for x in numbers] for _, _, *numbers in want]


def a_training_has_a_one_page_report():
    with sieve.Project() as p:
        p.put("in.sdf", sieve.sdf_records(sieve.data("qm9/qm9_dev_2500.sdf.gz"), 90))
        p.workflow(["in.sdf"], """  read: {unit: 40}
  prepare: {conformers: {source: keep}, labels: [gap]}
  graph: {edges: bonds}
  split: {fractions: {train: 0.7, valid: 0.2, test: 0.1}}
  train:
    targets: [{name: gap_ev, column: gap, unit: eV, factor: 27.211386, better: high}]
    model: {layers: 1, degrees: 2, channels: 8, heads: 2}
    batch: {molecules: 8}
    epochs: 3
  evaluate: {on: [train, valid, test]}
""")
        p.run("run", "w.yaml", "-q")
        page, svgs = read_page(p, "run")
        # Errors are those of the molecules that are stored one by one.
        got = {(r[0], r[1]): r[2:] for r in page.table("part", "prediction by")}
        for part in ("train", "valid", "test"):
            pairs = p.rows("SELECT measured, predicted, l.value FROM evaluated JOIN label l USING(mol_id) WHERE part=?", part)
            assert pairs and all(abs(m - 27.211386 * v) <= 1e-9 * abs(m) for m, _, v in pairs)
            mae = sum(abs(a - b) for a, b, _ in pairs) / len(pairs)
            assert abs(got[part, "the model"][0] - mae) <= 1e-9 * mae, (part, got, mae)
            assert got[part, "the model"][5] == len(pairs)
            assert got[part, "the model"][:5] == [p.one("SELECT value FROM evaluation WHERE part=? AND metric=?", part, m)
                                                  for m in ("mae", "rmse", "interval90", "r2", "spearman")]
            assert got[part, "mean"][0] == p.one("SELECT value FROM evaluation WHERE part=? AND metric='mean.mae'", part)
            label = 'aria-label="predicted against measured gap_ev / eV, %d molecules"' % len(pairs)
            assert sum(label in s for s in svgs) == 1, label
        worst = page.table("part", "structure", "title", "measured", "predicted", "error")
        assert [r[3:6] for r in worst] == [list(r) for r in p.rows(
            "SELECT measured, predicted, predicted-measured FROM evaluated WHERE part<>'train' "
            "ORDER BY abs(predicted-measured) DESC, mol_id LIMIT 8")]
        for curve in ("loss", "mean absolute error", "learning rate"):
            assert sum('aria-label="%s"' % curve in s for s in svgs) == 1, curve
        assert "gap_ev, eV, high is better" in page.text and bars(svgs, "gap, measured")[0] == 90
        p.run("db", "check", "run")
        # A database of format 1 has no predictions of single molecules, but still gives a report.
        db = sqlite3.connect(p.path("run", "results.db"))
        db.execute("DELETE FROM evaluated")
        db.execute("DELETE FROM row_sum")  # intended changes, no damage
        db.commit()
        db.close()
        sieve.forget(p.path("run", "results.db"))
        digest = p.run("db", "digest", "run")[1]
        os.rename(p.path("run/results.db"), p.path("now.db"))
        sieve.in_format(p.path("now.db"), p.path("run/results.db"))
        db = sqlite3.connect(p.path("run/results.db"))
        db.executescript("DROP TABLE evaluated; PRAGMA user_version=1")
        db.close()
        assert p.run("db", "digest", "run")[1] == digest  # a missing table counts as an empty one
        page, svgs = read_page(p, "run")
        assert not any("predicted against" in s for s in svgs) and page.table("part", "prediction by")
        # The next run migrates it, and repeats only the stage that is forced.
        p.run("run", "w.yaml", "-q", "--force", "evaluate")
        assert p.one("SELECT count(*) FROM evaluated") == 90


def values_whose_difference_overflows_are_shown_correctly():
    with sieve.Project() as p:
        p.put("a.csv", "smiles,y,z\nCCO,1e308,1\nCCN,-1e308,2\nCCC,1e308,3\nCCCC,-1e308,6\n")
        p.workflow(["a.csv"], "  read: {}\n  prepare: {conformers: {source: none}}\n")
        p.run("run", "w.yaml", "-q")
        read_page(p, "run")
        text = open(p.path("page.html")).read()
        assert re.search(r"y.{0,200}4</data> values, <data[^>]*>-1e\+308</data> to <data[^>]*>1e\+308</data>, mean 0<", text), text[-9000:]
        assert re.search(r", mean 3<", text) and not re.search(r"\b(nan|inf)\b", text)


def values_far_out_do_not_squeeze_the_others():
    """At most one of 200 values at either end is counted in place of being drawn; a third one is where the bars end."""
    with sieve.Project() as p:
        far = {0: (1e6, -1e6), 1: (2e6, -2e6), 2: (3e6, -3e6), 3: (-1e6, 1e6)}
        names = ["C" * (k % 20 + 1) + "O" * (k // 20 % 2) + "C" * (k // 40) for k in range(400)]
        p.put("a.csv", "smiles,y,z,near\n" + "".join("%s,%g,%g,%d\n" % (s, *far.get(k, (k % 50, k % 50)), k % 50) for k, s in enumerate(names)))
        p.workflow(["a.csv"], "  read: {}\n  prepare: {conformers: {source: none}, dedupe: {by: none}}\n")
        p.run("run", "w.yaml", "-q")
        _, svgs = read_page(p, "run")
        text = open(p.path("page.html")).read()
        assert sorted(re.findall("not drawn: (\\d+) below and (\\d+) above", text)) == [("1", "2"), ("2", "1")], re.findall("not drawn[^<]*", text)
        assert [bars(svgs, name)[0] for name in ("y", "z", "near")] == [397, 397, 400]


def a_run_that_has_only_begun_has_a_report():
    with sieve.Project() as p:
        p.put("a.smi", "CCO a\n")
        p.workflow(["a.smi"], "  read: {}\n  prepare: {conformers: {source: none}}\n")
        p.run("run", "w.yaml", "-q", "--until", "read")
        page, _ = read_page(p, "run")
        assert {r[0]: r[1] for r in page.table("step", "number")}["not prepared yet"] == 1
        assert "Models" not in page.h2 and "Distributions" not in page.h2, page.h2
        p.run("report", "run")
        assert os.path.exists(p.path("run", "report.html"))
        p.run("report", "nowhere.db", expect=6)


def warnings_are_those_of_the_results_that_are_stored():
    """A stage that ran again, a run that failed and another that did not: what was told before is of results that are gone."""
    stages = ("  read: {}\n  prepare: {conformers: {source: none}, labels: [y, z]}\n"
              "  rank: {objectives: [{property: mw, goal: maximise}], where: mw > 50%s}\n")
    with sieve.Project() as p:
        p.put("a.csv", "smiles,y\nCCO,1\nCCN,x\nCCCCO,3\n")
        p.workflow(["a.csv"], stages % "0")

        def told():
            read_page(p, "run")
            with open(p.path("page.html")) as f:
                found = re.search('<section class="warnings".*?</section>', f.read(), re.S)
            return [re.sub("<[^>]*>", "", m) for m in re.findall("<li>(.*?)</li>", found[0], re.S)] if found else []
        p.run("run", "w.yaml", "-q")
        first = told()
        assert sum("empty" in m for m in first) == 1 and sum("data field called z" in m for m in first) == 1, first
        p.workflow(["a.csv"], stages % "0" + "  split: {method: column, column: y}\n")
        p.run("run", "w.yaml", "-q", expect=2)
        failed = told()
        assert [m for m in failed if "no molecule to train on" in m] == ["split, error: no molecule to train on among 3"], failed
        assert sum("empty" in m for m in failed) == 1, failed
        p.workflow(["a.csv"], stages % "" + "  split: {}\n")
        p.run("run", "w.yaml", "-q")
        assert [m for m in told() if "error" in m or "empty" in m] == [] and sum("data field called z" in m for m in told()) == 1, told()
        # Reused results keep their warnings; a stage that runs again does not.
        p.run("run", "w.yaml", "-q")
        assert sum("data field called z" in m for m in told()) == 1, told()
        p.workflow(["a.csv"], (stages % "").replace(", z]", "]"))
        p.run("run", "w.yaml", "-q")
        assert [m for m in told() if "data field called z" in m] == [], told()


def of_many_runs_and_warnings_the_last_are_shown():
    names = ["f%d" % k for k in range(23)]
    with sieve.Project() as p:
        p.put("a.csv", "smiles\nCCO\nCCN\n")
        p.workflow(["a.csv"], "  read: {}\n  prepare: {conformers: {source: none}, labels: [%s]}\n" % ", ".join(names))
        for _ in range(101):
            p.run("run", "w.yaml", "-q")
        read_page(p, "run")
        with open(p.path("page.html")) as f:
            page = f.read()
        of = p.one("SELECT count(DISTINCT message) FROM event WHERE level='warn'")
        found = re.search('<section class="warnings".*?</section>', page, re.S)[0]
        assert of >= 23 and found.count("<li>") == 20 and "<p class=\"note\">20 of %d; all of them: <code>molsieve query event</code></p>" % of in found, found
        assert "The last 100 of 101." in page


if __name__ == "__main__":
    sieve.main([a_screen_has_a_one_page_report, a_training_has_a_one_page_report, values_whose_difference_overflows_are_shown_correctly, values_far_out_do_not_squeeze_the_others, a_run_that_has_only_begun_has_a_report,
                warnings_are_those_of_the_results_that_are_stored,
                of_many_runs_and_warnings_the_last_are_shown])
