#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`molsieve campaign` that goes on under other conditions: other limits, settings, labels and answers than those of its earlier rounds."""
import os
import re
import shutil
import sqlite3

import sieve
from sieve import Project
import campaign_e2e
from campaign_e2e import COUNT, COUNT_LETTERS, LETTERS, digest, killed

ORACLE = campaign_e2e.ORACLE.replace("better: high", "better: low")

# Alcohols of 1 to 25 carbons, whose values are a parabola: rounds of 10, then of 5.
ALCOHOLS = """  read: {}
  prepare: {conformers: {source: none}, labels: [none]}
  graph: {edges: topology}
  split: {fractions: {train: 1, valid: 0, test: 0}}
  train: {family: [gp], targets: [{name: act, better: low}]}
  score: {}
  acquire: {strategy: greedy, count: 5, answers: {table: ans.csv}, campaign: {rounds: %s, first_count: 10}}
"""


def alcohols(p, rounds="2", change=("", "")):
    p.put("lib.smi", "".join("%sO a%d\n" % ("C" * k, k) for k in range(1, 26)))
    p.put("ans.csv", "smiles,id,act\n" + "".join("%sO,a%d,%d\n" % ("C" * k, k, (k - 12) ** 2) for k in range(1, 26)))
    p.workflow([p.path("lib.smi")], (ALCOHOLS % rounds).replace(*change), name="c.yaml")


def rounds_of(p, **more):
    """For each round the titles that were chosen, and whether they were asked for."""
    out = {}
    for k, title, outcome in p.rows("SELECT round, titles, outcome FROM v_acquired ORDER BY round, place", **more):
        out.setdefault(k, []).append((title, outcome is not None))
    return [out[k] for k in sorted(out)]


def go_on(p, *words):
    return p.run("campaign", "c.yaml", "-q", *["stages.acquire." + w for w in words])


def labels_between_rounds_leave_the_rest_of_the_round():
    with Project() as p:
        alcohols(p)
        for case in ("another", "chosen"):
            shutil.rmtree(p.path("run"), ignore_errors=True)
            go_on(p)
            before = rounds_of(p)
            pending = [t for t, asked in before[2]]
            assert len(pending) == 5 and not any(asked for _, asked in before[2])
            tried = {t for k in (0, 1) for t, _ in before[k]}
            one = pending[2] if case == "chosen" else next("a%d" % k for k in range(1, 26) if "a%d" % k not in tried and "a%d" % k not in pending)
            p.put("one.csv", "id,act\n%s,%d\n" % (one, (int(one[1:]) - 12) ** 2))
            p.run("label", "run", "one.csv", "--property", "act")
            plan = p.run("campaign", "c.yaml", "--plan", "stages.acquire.campaign.rounds=3")[1]
            assert "so far: 2 rounds" in plan and "over:" not in plan, plan
            assert "3 rounds are done" in go_on(p, "campaign.rounds=3")[1]
            after = rounds_of(p)
            assert after[:2] == before[:2] and after[2] == [(t, True) for t in pending], (case, after)
            assert p.one("SELECT count(*) FROM measured") == 20 + (case == "another") and p.one("SELECT round FROM measured WHERE source LIKE 'one.csv%'") == 2
            # the round after it has none of them
            go_on(p, "campaign.rounds=4")
            assert len(rounds_of(p)[3]) == 5 - (case == "another") and not set(rounds_of(p)[3]) & set(after[2])


def a_molecule_asked_in_vain_is_measured_by_a_label():
    """Its value comes later, by hand: the counts of values have it."""
    with Project() as p:
        alcohols(p)
        go_on(p)
        chosen = [t for t, _ in rounds_of(p)[0]]
        lines = open(p.path("ans.csv")).read().split("\n")
        p.put("ans.csv", "\n".join(line for line in lines if ",%s," % chosen[3] not in line))
        shutil.rmtree(p.path("run"))
        said = go_on(p)[2]
        assert said.count("have no value") == 1 and "round 0: 1 of 10 molecules have no value; molsieve query v_acquired says why" in said, said
        asked = "SELECT outcome, value FROM v_acquired WHERE titles='%s'" % chosen[3]
        assert p.rows(asked) == [("not in the table of answers", None)]
        key = p.one("SELECT inchikey FROM v_acquired WHERE titles='%s'" % chosen[3])
        _, out, said = p.run("next", "run", "-n", "1000", "--format", "csv", "--goal", "minimise")
        assert key not in out and "1 left out: asked for by the campaign, which got no value" in said, said
        _, out, said = p.run("next", "run", "-n", "1000", "--format", "csv", "--goal", "minimise", "--measured")
        assert key in out and "asked for" not in said.replace("were asked for", ""), said

        def found():
            p.run("report", "run", "-o", "r.html")
            with open(p.path("r.html")) as f:
                best = re.search("The best that were found(.*?)</table>", f.read(), re.S)[1]
            return re.search("so far: .* asked for, (\\d+) values", p.run("campaign", "c.yaml", "--plan")[1])[1], ">%s<" % chosen[3] in best
        assert found() == ("19", False)
        p.put("one.csv", "id,act\n%s,-7\n" % chosen[3])
        p.run("label", "run", "one.csv", "--property", "act")
        assert p.rows(asked) == [("measured", -7)]
        assert found() == ("20", True)
        assert "3 rounds are done" in go_on(p, "campaign.rounds=3")[1] and chosen[3] not in [t for t, _ in rounds_of(p)[2]]


def labels_by_hand_are_no_rounds_of_a_campaign():
    """Neither of the budget nor without a gain, also where nothing was chosen when they came."""
    with Project() as p:
        alcohols(p)
        p.run("run", "c.yaml", "-q", "--until", "graph")
        for k in (1, 25):
            p.put("one.csv", "id,act\na%d,%d\n" % (k, (k - 12) ** 2))
            p.run("label", "run", "one.csv", "-p", "act", "--new")
        plan = p.run("campaign", "c.yaml", "--plan")[1]
        assert "so far: 0 rounds, 0 molecules" in plan and "over:" not in plan, plan
        assert "2 rounds are done" in go_on(p, "campaign={rounds: 2, first_count: 10}")[1]
        asked = p.rows("SELECT round, count(*) FROM acquired WHERE outcome IS NOT NULL GROUP BY round")
        assert asked == [(2, 10), (3, 5)] and "so far: 2 rounds, 15 molecules" in p.run("campaign", "c.yaml", "--plan")[1], asked
        # killed behind the best value, and labels come before the next choice
        shutil.rmtree(p.path("run"))
        assert killed(p, "run", "campaign.answers.after_commit:2")
        best, found = p.rows("SELECT value, round FROM measured ORDER BY value LIMIT 1")[0]
        assert found == 1
        rest = [int(t[1:]) for t, in p.rows("SELECT title FROM record JOIN molecule USING(mol_id) WHERE inchikey NOT IN (SELECT inchikey FROM measured)")]
        worse = [k for k in rest if (k - 12) ** 2 > best][-2:]
        for k in worse:
            p.put("one.csv", "id,act\na%d,%d\n" % (k, (k - 12) ** 2))
            p.run("label", "run", "one.csv", "-p", "act")
        plan = p.run("campaign", "c.yaml", "--plan", "stages.acquire.campaign.rounds=4", "stages.acquire.campaign.no_gain=2")[1]
        assert "so far: 2 rounds" in plan and "over:" not in plan, plan


def a_label_of_another_property_answers_no_choice():
    """The molecules of a round stay to be asked for, whatever else is measured of them."""
    with Project() as p:
        alcohols(p)
        go_on(p)
        assert killed(p, "first", "campaign.answers.before_commit:1")
        for workdir, k in (("run", 2), ("first", 0)):
            pending = [t for t, _ in rounds_of(p, workdir=workdir)[k]]
            p.put("mp.csv", "id,mp\n" + "".join("%s,%d\n" % (t, 300 + i) for i, t in enumerate(pending[:3])))
            p.run("label", workdir, "mp.csv", "--property", "mp", "--new", "--unit", "K")
            assert rounds_of(p, workdir=workdir)[k] == [(t, False) for t in pending], workdir
            p.run("campaign", "c.yaml", "-q", "workdir=" + workdir, "stages.acquire.campaign.rounds=3")
            values = p.rows("SELECT count(*), count(value) FROM v_acquired WHERE outcome='measured'", workdir=workdir)
            assert values == [(20, 20)] and [t for t, _ in rounds_of(p, workdir=workdir)[k]] == pending, (workdir, values)


def another_campaign_in_the_same_folder_is_refused():
    """Its rounds would be those of the first, whose values it does not learn."""
    with Project() as p:
        alcohols(p)
        go_on(p)
        before = digest(p)
        p.put("mp.csv", "smiles,id,mp\n" + "".join("%sO,a%d,%d\n" % ("C" * k, k, k) for k in range(1, 26)))
        words = ["stages.train.targets=[{name: mp, better: low}]", "stages.acquire.answers={table: mp.csv}", "stages.acquire.campaign.rounds=4"]
        for more in ([], ["--plan"]):
            said = p.run("campaign", "c.yaml", "-q", *words, *more, expect=2)[2]
            assert "15 molecules of its rounds were measured as act, and this campaign asks for mp" in said, said
        assert digest(p) == before
        p.run("campaign", "c.yaml", "-q", *words, "workdir=other")
        # two names of one value are one campaign
        p.put("ans2.csv", open(p.path("ans.csv")).read())
        p.run("campaign", "c.yaml", "-q", "stages.train.targets=[{name: active, column: act, better: low}]", "stages.acquire.campaign.rounds=3")
        assert p.one("SELECT count(*) FROM measured WHERE property='act'") == 20


def a_raised_limit_of_calls_asks_for_the_rest_of_the_round():
    """A budget that ends within a round, then a larger one: as with the larger one from the start."""
    with Project() as p:
        alcohols(p, "0, calls: 25")
        p.run("campaign", "c.yaml", "-q", "workdir=whole")
        for calls in (13, 14, 19, 22, 25):
            assert "%d molecules were tried" % calls in go_on(p, "campaign.calls=%d" % calls)[1]
            assert p.one("SELECT count(*) FROM acquired WHERE outcome IS NOT NULL") == calls
        assert rounds_of(p) == rounds_of(p, workdir="whole") and digest(p) == digest(p, "whole")
        assert {t for r in rounds_of(p) for t, asked in r if asked} == {"a%d" % k for k in range(1, 26)}
        # a program is asked for the rest alone, and what it said of the beginning stays
        p.put("oracle.yaml", LETTERS.replace("property: letters, better: high", "property: letters, better: low"))
        p.put("count.sh", COUNT_LETTERS)
        words = ["workdir=prog", "stages.acquire.answers={workflow: oracle.yaml}"]
        for calls in (13, 15):
            p.run("campaign", "c.yaml", "-q", *words, "stages.acquire.campaign.calls=%d" % calls)
        n = {d: p.one("SELECT count(*) FROM score", workdir="prog/rounds/" + d) for d in sorted(os.listdir(p.path("prog/rounds")))}
        assert n == {"0000": 10, "0001": 3, "0001-4": 2}, n


def a_choice_is_made_by_todays_settings():
    """What a finished or killed campaign chose for later is chosen again; of a round that was begun, `where` takes molecules back."""
    with Project() as p:
        alcohols(p)

        def atoms(k, workdir="run"):
            return [n for n, in p.rows("SELECT n_heavy FROM acquired JOIN molecule USING(inchikey) WHERE round=%d ORDER BY place" % k, workdir=workdir)]
        go_on(p)
        assert min(atoms(2)) < 16
        shutil.copytree(p.path("run"), p.path("other"))
        go_on(p, "campaign.rounds=3", "where=n_heavy > 15")
        assert len(atoms(2)) == p.one("SELECT count(*) FROM acquired WHERE round=2 AND outcome='measured'") > 1 and min(atoms(2)) > 15, atoms(2)
        for words in (["strategy=uncertainty"], ["strategy=ucb", "beta=9", "count=3"]):
            shutil.rmtree(p.path("run"))
            shutil.copytree(p.path("other"), p.path("run"))
            p.run("run", "c.yaml", "-q", "workdir=other", *["stages.acquire." + w for w in words])
            go_on(p, "campaign.rounds=3", *words)
            assert [t for t, _ in rounds_of(p)[2]] == [t for t, _ in rounds_of(p, workdir="other")[2]], words
        # a first round that was chosen, and not asked for
        shutil.rmtree(p.path("run"))
        assert killed(p, "run", "campaign.answers.before_commit:1")
        assert min(atoms(0)) < 8
        go_on(p, "campaign.rounds=1", "where=n_heavy > 7")
        assert len(atoms(0)) == 10 and min(atoms(0)) > 7, atoms(0)
        # the rest of a round
        alcohols(p, "0, calls: 13")
        shutil.rmtree(p.path("run"))
        go_on(p)
        rest = atoms(1)[3:]
        assert len(rest) == 2 and rest[0] != rest[1], rest
        said = go_on(p, "campaign.calls=15", "where=n_heavy > %d" % min(rest))[2]
        assert "round 1: 1 of the molecules that were left to ask is taken back: not in the library any more, or acquire.where does not hold\n" in said, said
        assert atoms(1)[3:] == [max(rest)] and p.one("SELECT count(*) FROM measured") == 15 and min(atoms(2)) > min(rest)


def a_table_that_contradicts_earlier_rounds_is_refused():
    with Project() as p:
        alcohols(p)
        go_on(p)
        before = digest(p)
        head, *rows = open(p.path("ans.csv")).read().splitlines()

        def answers(values, name="ans.csv"):
            p.put(name, "\n".join([head] + [r[:r.rindex(",") + 1] + v for r, v in zip(rows, values)]) + "\n")
        value = [r[r.rindex(",") + 1:] for r in rows]
        tried = [t for k in (0, 1) for t, _ in rounds_of(p)[k]]
        for name in ("ans.csv", "other.csv"):
            answers(["%d" % (100 * int(v)) for v in value], name)
            said = p.run("campaign", "c.yaml", "-q", "stages.acquire.campaign.rounds=3", "stages.acquire.answers.table=" + name, expect=1)[2]
            n = sum(value[int(t[1:]) - 1] != "0" for t in tried)
            assert re.search(r"%s:\d+: act of \S+-N is \d+00, and \d+ was stored from \S*ans\.csv:\d+; %d of 15 values differ; correct the answers, put a wrong stored value right with molsieve label --replace, or begin anew in another workdir\n" % (name, n), said), said
        assert p.one("SELECT count(*) FROM measured") == 15 and [t for t, asked in rounds_of(p)[2] if asked] == []
        one = list(value)
        one[int(tried[3][1:]) - 1] = "7.25"
        answers(one)
        said = p.run("campaign", "c.yaml", "-q", "stages.acquire.campaign.rounds=3", expect=1)[2]
        assert "is 7.25, and" in said and "1 of 15 values" in said, said
        # a wrong value that was stored is put right
        p.put("right.csv", "id,act\n%s,7.25\n" % tried[3])
        shutil.copytree(p.path("run"), p.path("kept"))
        p.run("label", "run", "right.csv", "--property", "act", "--replace")
        go_on(p, "campaign.rounds=3")
        # rows in another order, more of them, fewer of those that were asked for, numbers that are written otherwise: the same values
        answers(["%s.0" % v for v in value])
        lines = open(p.path("ans.csv")).read().splitlines()
        p.put("ans.csv", "\n".join([head] + [r for r in lines[:0:-1] if ",%s," % tried[0] not in r] + ["CCC=O,x1,4"]) + "\n")
        p.run("campaign", "c.yaml", "-q", "workdir=kept", "stages.acquire.campaign.rounds=3")
        assert all(asked for _, asked in rounds_of(p, workdir="kept")[2]) and before != digest(p, "kept")


def answers_in_another_unit_than_the_library_are_refused():
    """Of two that state it, each in a column of its own; a library that lies in no unit takes that of the first answers."""
    with Project() as p:
        alcohols(p, change=("labels: [none]", "labels: [act]"))

        def files(library, answers):
            head = "smiles,id,act,act unit,act type\n"
            p.put("lib.csv", head + "".join("%sO,a%d,%s\n" % ("C" * k, k, "%d,%s" % ((k - 12) ** 2, library) if k % 2 else ",,") for k in range(1, 26)))
            p.put("ans.csv", head + "".join("%sO,a%d,%d,%s\n" % ("C" * k, k, (k - 12) ** 2, answers) for k in range(1, 26)))

        def asked(workdir, *words, status=0):
            return p.run("campaign", "c.yaml", "-q", "inputs=[{path: lib.csv}]", "workdir=" + workdir, *["stages.acquire." + w for w in words], expect=status)[2]
        lib, act = re.escape(p.path("lib.csv")), "are not one column of act"
        files("nM,Ki", "uM,Ki")
        said = asked("units", status=1)
        assert re.search(r"ans\.csv:\d+: act unit is 'uM', and 'nM' in %s:2: numbers of two units %s" % (lib, act), said), said
        files("nM,Ki", "nM,IC50")
        said = asked("kinds", status=1)
        assert re.search(r"ans\.csv:\d+: act type is 'IC50', and 'Ki' in %s:2: two kinds of measurement %s" % (lib, act), said), said
        files("nM,Ki", ",")
        said = asked("said", "answers.unit=uM", status=1)
        assert "act is in nM by %s:2, and its answers are said to be in uM; set answers.unit" % p.path("lib.csv") in said, said
        for workdir in ("units", "kinds", "said"):
            assert p.one("SELECT count(*) FROM measured", workdir=workdir) == 0
        p.put("oracle.yaml", ORACLE.replace("property: carbons", "property: carbons, unit: uM"))
        p.put("count.py", COUNT)
        text = open(p.path("c.yaml")).read()
        p.put("c.yaml", text.replace("{table: ans.csv}", "{workflow: oracle.yaml}"))
        said = asked("scored", status=2)
        p.put("c.yaml", text)
        assert "oracle.yaml scores carbons in uM, and act is learned in nM" in said, said
        # Answers in the unit of the library are learned, and so are those that say none.
        asked("said", "answers.unit=nM")
        files("nM,Ki", "nM,ki")
        asked("kinds", "campaign.rounds=1")
        assert p.rows("SELECT name, unit FROM property", workdir="kinds") == [("act", "")]
        # The first answers state the unit, and later ones have another.
        files(",", "nM,Ki")
        asked("first", "campaign.rounds=1")
        first = p.one("SELECT json_extract(value,'$.place') FROM meta WHERE key='stated unit act'", workdir="first")
        assert re.search(r"/ans\.csv:\d+$", first), first
        files(",", "uM,Ki")
        said = asked("first", status=1)
        assert "act unit is 'uM', and 'nM' in %s: numbers of two units %s" % (first, act) in said, said
        files(",", "nM,Ki")
        asked("first")


def a_workflow_of_answers_that_changed_is_refused():
    with Project() as p:
        alcohols(p, change=("{table: ans.csv}", "{workflow: oracle.yaml}"))
        p.put("oracle.yaml", ORACLE)
        p.put("count.py", COUNT)
        go_on(p)
        shutil.copytree(p.path("run"), p.path("kept"))
        files = {"oracle.yaml": ORACLE, "count.py": COUNT}

        def refused(name, old, new, why):
            assert old in files[name]
            p.put(name, files[name].replace(old, new))
            said = p.run("campaign", "c.yaml", "-q", "stages.acquire.campaign.rounds=3", expect=1)[2]
            p.put(name, files[name])
            advice = ("" if "files" in why else "): its values are not learned with theirs; change it back, ") + (  # a long message lacks its middle
                "or begin anew in another workdir; if they are comparable all the same, remove %s\n" % p.path("run/rounds"))
            assert "oracle.yaml changed since earlier rounds (%s" % why in said and said.endswith(advice), said
            assert not os.path.exists(p.path("run/rounds/0002/results.db")) and p.one("SELECT count(*) FROM measured") == 15
        refused("count.py", '.count("C")))', '.count("C") * 100))', "external: files.count.py: ")
        refused("oracle.yaml", "command: [python3, count.py,", "command: [python3, -B, count.py,", "external: command: ")
        refused("oracle.yaml", "prepare: {conformers: {source: none}}", "prepare: {conformers: {source: none}, neutralise: true}", "prepare: neutralise: ")
        # how it works may change, and the folders may have been moved
        p.put("oracle.yaml", ORACLE.replace("output: csv", "timeout: 50s, output: csv"))
        p.run("campaign", "c.yaml", "-q", "workdir=kept", "stages.acquire.campaign.rounds=3")
        assert p.one("SELECT count(*) FROM measured", workdir="kept") == 20
        p.put("count.py", COUNT.replace('.count("C")))', '.count("C") + 100))'))
        shutil.rmtree(p.path("kept/rounds"))
        p.run("campaign", "c.yaml", "-q", "workdir=kept", "stages.acquire.campaign.rounds=4")
        assert p.one("SELECT count(*) FROM measured WHERE value>100", workdir="kept") == 5


def a_limit_of_failures_of_the_answers_ends_no_campaign():
    """The limit of the workflow of answers ends its run, not the campaign: all rounds go by, as with a limit that nothing exceeds."""
    with Project() as p:
        alcohols(p, change=("{table: ans.csv}", "{workflow: oracle.yaml}"))
        p.put("count.py", COUNT.replace('"Cl" in smiles', 'smiles.count("C") % 3 == 0').replace("chlorine", "a multiple of three"))
        found = []
        for limit in ("max_fraction: 1", "max_count: 0"):
            p.put("oracle.yaml", ORACLE.replace("max_fraction: 1", limit))
            go_on(p, "campaign.rounds=3")
            found.append(p.rows("SELECT titles, value, outcome FROM v_acquired ORDER BY round, place"))
            shutil.rmtree(p.path("run"))
        assert found[0] == found[1] and {o.split(":")[0] for _, _, o in found[0]} == {"measured", "failed"}, found


def a_number_for_none_is_no_answer_of_a_program():
    """999 where a program has no value: as in a table of answers."""
    with Project() as p:
        alcohols(p, change=("{table: ans.csv}", "{workflow: oracle.yaml}"))
        p.put("oracle.yaml", ORACLE)
        p.put("count.py", COUNT.replace('smiles.upper().count("C")', 'smiles.count("C") if len(smiles) % 4 else 999'))
        said = p.run("campaign", "c.yaml", "-q", expect=1)[2]
        assert re.search(r"run/rounds/0000/results\.db: act is 999 in \d rows, and between \d+ and \d+ in others: .* prints no number for", said), said
        assert p.one("SELECT count(*) FROM measured") == p.one("SELECT count(*) FROM acquired WHERE outcome IS NOT NULL") == 0
        # one in the first round, one in a later one
        first = {int(t[1:]) for t, _ in rounds_of(p)[0]}
        p.put("count.py", COUNT.replace('smiles.upper().count("C")', 'smiles.count("C") if smiles.count("C") not in (%d, %d) else -999' % (
            min(first), min(set(range(1, 26)) - first))))
        said = p.run("campaign", "c.yaml", "-q", "stages.acquire.strategy=random", "stages.acquire.campaign.rounds=4", expect=1)[2]
        assert "act is -999 in 2 rows" in said and p.one("SELECT count(*) FROM measured WHERE value<0") == 1, said
        # mended, it goes on
        shutil.rmtree(p.path("run"))
        p.put("count.py", COUNT)
        go_on(p)
        assert p.one("SELECT count(*) FROM measured") == 15


def another_property_of_the_workflow_of_answers_is_refused():
    with Project() as p:
        alcohols(p, change=("{table: ans.csv}", "{workflow: oracle.yaml, property: carbons}"))
        p.run("fit", "ans.csv", "--target", "act", "--family", "gp", "-o", "m", "-q")
        p.put("count.py", COUNT)
        p.put("oracle.yaml", ORACLE.replace("stages:", "models: {m: {path: m.safetensors}}\nstages:").replace("limits:", "  graph: {edges: topology}\n  score: {}\nlimits:"))
        go_on(p)
        said = p.run("campaign", "c.yaml", "-q", "stages.acquire.campaign.rounds=3", "stages.acquire.answers.property=act", expect=1)[2]
        assert re.search(r"rounds/0001/results\.db: act of \S+ is \S+, and \d+ was stored from \S+/0001/results\.db; 5 of 5 values differ", said), said
        go_on(p, "campaign.rounds=3")
        assert p.one("SELECT count(*) FROM measured") == 20


def several_drawings_of_a_molecule_are_asked_for_once():
    with Project() as p:
        alcohols(p, "3", change=("prepare: {", "prepare: {dedupe: {by: none}, "))
        with open(p.path("lib.smi"), "a") as f:
            f.write("".join("O%s b%d\n" % ("C" * k, k) for k in range(1, 26)))
        go_on(p)
        keys = [k for k, in p.rows("SELECT inchikey FROM acquired")]
        assert p.one("SELECT count(*) FROM molecule") == 50 and len(keys) == len(set(keys)) == 25, keys
        assert p.one("SELECT count(*) FROM measured") == 20 and p.one("SELECT count(*) FROM label") == 40
        assert "no molecule is left to choose" in go_on(p, "campaign.rounds=6")[1] and p.one("SELECT count(*) FROM acquired") == 25


def rounds_of_a_class_have_no_interval():
    with Project() as p:
        alcohols(p, "3", change=("family: [gp], targets: [{name: act, better: low}]", "family: [forest], targets: [{name: act, better: high}]"))
        steps = open(p.path("c.yaml")).read().replace("labels: [none]", "labels: [none], properties: {act: {task: classification, better: high}}")
        p.put("c.yaml", steps.replace("strategy: greedy", "strategy: uncertainty"))
        p.put("ans.csv", "smiles,id,act\n" + "".join("%sO,a%d,%d\n" % ("C" * k, k, k % 2) for k in range(1, 26)))
        out = go_on(p)[1]
        lines = [x.split() for x in out.splitlines() if re.match(r" +[0-9]+ ", x)]
        assert len(lines) == 3 and all(x[-1] == "-" for x in lines) and float(lines[2][-2]) > 0.3, out
        assert "MAE: of the predictions" in out, out
        page = p.run("report", "run", "-o", "-")[1]
        assert "found in all" in page and "within the 90 % interval" not in page and "1.645" not in page


if __name__ == "__main__":
    sieve.main([labels_between_rounds_leave_the_rest_of_the_round, a_raised_limit_of_calls_asks_for_the_rest_of_the_round, a_choice_is_made_by_todays_settings,
                a_table_that_contradicts_earlier_rounds_is_refused,
                answers_in_another_unit_than_the_library_are_refused, a_workflow_of_answers_that_changed_is_refused, another_property_of_the_workflow_of_answers_is_refused,
                several_drawings_of_a_molecule_are_asked_for_once, a_molecule_asked_in_vain_is_measured_by_a_label,
                rounds_of_a_class_have_no_interval, a_label_of_another_property_answers_no_choice,
                another_campaign_in_the_same_folder_is_refused, a_number_for_none_is_no_answer_of_a_program,
                labels_by_hand_are_no_rounds_of_a_campaign, a_limit_of_failures_of_the_answers_ends_no_campaign])
