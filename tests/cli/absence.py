#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Good runs print no warning, and each message appears only where it belongs."""
import gzip
import os
import re
import shutil

import sieve
from sieve import Project, main

FLAT = "  read: {}\n  prepare: {conformers: {source: none}}\n"
RANKED = FLAT + "  rank: {objectives: [{property: mw, goal: maximise}]}\n  write: {csv: hits.csv}\n"
SOME_FAIL = "limits: {failures: {max_fraction: 1}}\n"


def warnings(p):
    return [m for m, in p.rows("SELECT message FROM event WHERE level IN ('warn','error') ORDER BY event_id")]


def a_good_run_prints_no_warning():
    with Project() as p:
        p.put("a.smi", "CCO one\nCCN two\nOCCO three\n")
        p.workflow(["a.smi"], RANKED)
        _, _, err = p.run("run", "w.yaml")
        assert not re.search(r"warn|error|fail|lost|missing", err, re.I), err
        assert warnings(p) == []
        _, out, err = p.run("run", "w.yaml", "-q")  # run again: everything is done already
        assert err == "", err
        for words in (("db", "check", "run"), ("top", "run"), ("status", "run"), ("failures", "run"), ("query", "v_hits", "run"),
                      ("export", "csv", "run"), ("check", "w.yaml"), ("plan", "w.yaml"), ("db", "digest", "run")):
            _, _, err = p.run(*words)
            assert not re.search("warn|error|lost|missing|damaged", err, re.I), (words, err)


def only_a_cut_file_warns_of_lost_records():
    with Project() as p:
        p.put("a.smi", "CCO one\nC(x bad\nOCCO three\n")
        p.put("bad.xyz", "2\nbad\nC 0 0 0\n")
        with open(p.path("b.smi.gz"), "wb") as f:
            f.write(gzip.compress(b"".join(b"%sO m%d\n" % (b"C" * i, i) for i in range(1, 60))))
        p.workflow(["a.smi", "bad.xyz", "b.smi.gz"], FLAT, extra=SOME_FAIL)
        p.run("run", "w.yaml", "-q")
        assert p.rows("SELECT stage, count(*) FROM failure GROUP BY 1 ORDER BY 1") == [("prepare", 1), ("read", 1)]
        assert warnings(p) == [], warnings(p)
        shutil.rmtree(p.path("run"))
        os.truncate(p.path("b.smi.gz"), os.path.getsize(p.path("b.smi.gz")) - 30)
        p.run("run", "w.yaml", "-q")
        lost = warnings(p)
        assert len(lost) == 1 and "b.smi.gz: damaged gzip" in lost[0] and "are lost: get the file again" in lost[0], lost


def prepare_without_its_worker_is_refused_before_any_work():
    with Project() as p:
        p.put("a.smi", "CCO one\n")
        p.workflow(["a.smi"], FLAT)
        os.makedirs(p.path("bin"))
        alone = shutil.copy(sieve.PROGRAM, p.path("bin/molsieve"))
        env = dict(os.environ, PATH="/nowhere")
        p.command = lambda *args: [alone] + list(args)
        status, _, err = p.run("run", "w.yaml", "-q", expect=None, env=env)
        assert status != 0 and "molsieve-chem" in err, (status, err)
        assert not os.path.exists(p.path("run/results.db")) or p.one("SELECT count(*) FROM record") == 0
        _, _, err = p.run("check", "w.yaml", "stages.prepare.alerts.rules=[C a]", expect=2, env=env)
        for who in ("prepare: ", "prepare.alerts: "):  # rules that no worker has read must not pass the check
            assert who + "molsieve-chem is neither beside this program nor in PATH; set MOLSIEVE_CHEM to its path\n" in err, err


def stereoisomers_are_chosen_whatever_their_order():
    """A limit takes some of the stereoisomers of one skeleton: the same ones in any order of the input."""
    with Project() as p:
        rows = ["%s%s[C@%sH](%s)O %s%d%s" % ("C" * n, "", "@" * k, "CCCl", "m", n, "RS"[k]) for n in range(3, 9) for k in range(2)]
        chosen = []
        for name, order in (("a", rows), ("b", rows[::-1])):
            p.put(name + ".smi", "\n".join(order) + "\n")
            p.workflow([name + ".smi"], FLAT + "  split: {fractions: {train: 1, valid: 0, test: 0}, limit: {train: 5}}\n",
                       name=name + ".yaml", workdir=name)
            p.run("run", name + ".yaml", "-q")
            chosen.append(p.rows("SELECT title FROM split JOIN record USING(mol_id) WHERE part='train' ORDER BY 1", workdir=name))
        assert len(chosen[0]) == 5 and chosen[0] == chosen[1], chosen


main([a_good_run_prints_no_warning, only_a_cut_file_warns_of_lost_records,
      prepare_without_its_worker_is_refused_before_any_work, stereoisomers_are_chosen_whatever_their_order])
