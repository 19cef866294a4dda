#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The report in a real browser: its script, its downloads, its widths, print."""
import base64
import os
import re

import sieve
from browser import Browser, program
from report_e2e import small_screen
from sieve import Project, data, lines_of

SCREEN = """  read: {unit: 20}
  prepare: {conformers: {source: generate}}
  rank: {objectives: [{property: mw, goal: minimise}, {property: logp, goal: minimise}], top: 30}
"""
CELLS = "Array.from(document.querySelectorAll('#ranking tbody tr')).filter(r => !r.hidden).map(r => Number(r.cells[0].querySelector('data') ? " \
        "r.cells[0].querySelector('data').value : r.cells[0].textContent))"


def report(p):
    """The path of the report of 60 molecules, 30 of them ranked."""
    p.put("lib.smi", lines_of(data("library.smi"), 60))
    p.run("run", p.workflow([p.path("lib.smi")], SCREEN), "-q")
    p.run("report", "run", "-o", p.path("report.html"))
    return p.path("report.html")


def column(b, name):
    return b.js("Array.from(document.querySelectorAll('#ranking thead th')).findIndex(h => h.textContent.startsWith(%r))" % name)


def columns_sort_and_conditions_filter():
    with Project() as p, Browser() as b:
        b.open(report(p))
        assert b.js(CELLS) == list(range(1, 31))
        k = column(b, "MW")
        values = "Array.from(document.querySelectorAll('#ranking tbody tr')).filter(r => !r.hidden).map(r => Number(r.cells[%d].querySelector('data').value))" % k
        b.js("document.querySelectorAll('#ranking thead th')[%d].click()" % k)
        up = b.js(values)
        assert up == sorted(up) and len(set(up)) > 10 and b.js(CELLS) != list(range(1, 31))
        b.js("document.querySelectorAll('#ranking thead th')[%d].dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter'}))" % k)
        down = b.js(values)
        assert down == sorted(up, reverse=True)
        assert b.js("document.querySelectorAll('#ranking thead th')[%d].getAttribute('aria-sort')" % k) == "descending"
        middle = sorted(up)[12]
        b.js("var i = document.querySelector('.tools input'); i.value = 'MW<%r'; i.dispatchEvent(new Event('input'))" % middle)
        shown = b.js(values)
        assert shown == [x for x in down if x < middle] and b.js("document.querySelector('.tools .note').textContent") == "%d of 30 shown" % len(shown)
        b.js("var i = document.querySelector('.tools input'); i.value = 'no such word'; i.dispatchEvent(new Event('input'))")
        assert b.js(CELLS) == []
        assert b.complaints() == [], b.complaints()


def downloaded(b, p, name):
    """What the button gives, once it is there as a whole."""
    path = p.path("got", name)
    b.js("Array.from(document.querySelectorAll('.tools button')).find(x => x.textContent === 'Download %s').click()" % name[-3:].upper())
    sieve.until(lambda: os.path.exists(path) and not any(f.endswith(".crdownload") for f in os.listdir(p.path("got"))), "no download of " + name)
    with open(path, newline="") as f:
        return f.read()


def downloads_are_the_rows_that_are_shown():
    with Project() as p, Browser() as b:
        b.open(report(p))
        b.session, session = None, b.session
        b.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=p.path("got"))
        b.session = session
        os.mkdir(p.path("got"))
        b.js("var i = document.querySelector('.tools input'); i.value = 'rank<=7'; i.dispatchEvent(new Event('input'))")
        assert b.js(CELLS) == list(range(1, 8))
        want = p.run("top", "run", "--csv", "-n", "7")[1]
        assert downloaded(b, p, "hits.csv").replace("\r\n", "\n") == want.replace("\r\n", "\n")
        p.run("export", "sdf", "run", "-n", "7", "-o", p.path("want.sdf"))
        got = downloaded(b, p, "hits.sdf")
        with open(p.path("want.sdf"), newline="") as f:
            want = f.read()
        assert got.count("$$$$\n") == 7 and re.findall(r"<inchikey>\n(.*)", got) == re.findall(r"<inchikey>\n(.*)", want)
        assert b.complaints() == [], b.complaints()


def the_page_is_whole_without_its_script_and_at_every_width():
    with Project() as p, Browser() as b:
        path = report(p)
        for width, height in ((1280, 900), (1920, 1080), (390, 844)):
            b.size(width, height, phone=width < 500)
            b.open(path)
            assert b.js("window.innerWidth") == width
            wide = b.js("document.documentElement.scrollWidth")
            assert wide <= width, (width, wide)
            picture = base64.b64decode(b.call("Page.captureScreenshot")["data"])
            assert int.from_bytes(picture[16:20], "big") == width
        text = b.js("document.body.innerText.length")
        b.call("Emulation.setScriptExecutionDisabled", value=True)
        b.open(path)
        b.call("Emulation.setScriptExecutionDisabled", value=False)
        assert b.js("document.querySelectorAll('.tools').length") == 0
        assert b.js(CELLS) == list(range(1, 31)) and b.js("document.body.innerText.length") > 0.9 * text
        pdf = base64.b64decode(b.call("Page.printToPDF")["data"])
        assert pdf.startswith(b"%PDF-") and len(re.findall(rb"/Type\s*/Page\b", pdf)) >= 2
        assert b.complaints() == [], b.complaints()


def a_script_that_is_not_ours_does_not_run():
    """The hash in the page's policy allows one script and no other, whatever gets into the page."""
    with Project() as p, Browser() as b:
        path = report(p)
        with open(path) as f:
            page = f.read()
        changed = page.replace('"use strict";', '"use strict";document.title="changed";', 1)
        added = page.replace("</body>", "<script>document.title='added'</script></body>", 1)
        assert page != changed and page != added
        for name, text in (("changed", changed), ("added", added)):
            p.put(name + ".html", text)
            b.open(p.path(name + ".html"))
            assert b.js("document.title") not in ("changed", "added"), name
            assert any("Content Security Policy" in str(c) for c in b.complaints()), name
            assert (b.js("document.querySelectorAll('.tools').length") == 1) == (name == "added")


def the_ranking_fits_its_window_with_all_its_columns():
    """With scores, domain and reasons; drawings get smaller alike, so that all bonds have one length."""
    with Project() as p, Browser() as b:
        small_screen(p, 40)
        p.run("run", "workflows/screen.yaml", "-q", "limits.failures.max_fraction=1")
        p.run("report", "runs/screen", "-o", "page.html")
        for width in (390, 1024, 1280, 1920):
            b.size(width, 900, phone=width < 500)
            b.open(p.path("page.html"))
            box, table = b.js("[TABLE.parentNode.clientWidth, TABLE.parentNode.scrollWidth]".replace("TABLE", "document.getElementById('ranking')"))
            assert 0 < table <= box, (width, table, box)
            scales = b.js("Array.from(document.querySelectorAll('#ranking svg.mol')).map(s => s.getBoundingClientRect().width / s.viewBox.baseVal.width)")
            assert len(scales) > 20 and max(scales) - min(scales) < 0.02 * max(scales), (width, scales)


if __name__ == "__main__":
    if program() is None:
        sieve.skip("needs a browser; Debian: apt-get install chromium")
    sieve.main([columns_sort_and_conditions_filter, downloads_are_the_rows_that_are_shown,
                the_page_is_whole_without_its_script_and_at_every_width, a_script_that_is_not_ours_does_not_run,
                the_ranking_fits_its_window_with_all_its_columns])
