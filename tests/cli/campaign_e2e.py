#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`molsieve campaign` and the stage `acquire`: rounds of choosing, asking and learning, whose numbers are computed again here."""
import gzip
import csv
import hashlib
import io
import json
import math
import os
import random
import re
import shutil
import sqlite3
import struct
import subprocess
import sys
import time

import sieve
from sieve import Project, lines_of

ESOL = os.path.join(os.environ["MOLSIEVE_SOURCE"], "workflows/data/esol.csv")
N = 160
STAGES = """  read: {unit: 40}
  prepare: {conformers: {source: none}, labels: [none]}
  graph: {edges: topology}
  split: {fractions: {train: 1, valid: 0, test: 0}}
  train: {name: m, family: [%s], targets: [{name: logS, unit: "log10(mol/L)", better: high}]}
  score: {}
  acquire:
    strategy: ucb
    count: 12
    diversity: {per_scaffold: 4}
    answers: {table: lib.csv}
    campaign: {rounds: 4, first: diverse}
"""


def table(p, n=N):
    """Titles and values of a library in which some have no value."""
    rows = list(csv.DictReader(io.StringIO(lines_of(ESOL, n + 1).decode())))
    p.put("lib.csv", "id,smiles,logS\n" + "".join("M%d,%s,%s\n" % (i, r["smiles"], r["logS"] if i % 10 else "n.d.") for i, r in enumerate(rows)))
    return {"M%d" % i: float(r["logS"]) for i, r in enumerate(rows) if i % 10}


def campaign(p, *more, stages=STAGES, family="gp"):
    p.workflow([p.path("lib.csv")], stages % family, name="c.yaml")
    return p.run("campaign", "c.yaml", *more)


def chosen(p, workdir="run"):
    return p.rows("SELECT round, place, titles, mean, deviation, rank, acquisition, value, outcome, reason, inchikey FROM v_acquired", workdir=workdir)


def digest(p, workdir="run"):
    return p.run("db", "digest", p.path(workdir))[1].split()[0]


def each_round_is_what_the_model_before_it_said():
    with Project() as p:
        value = table(p)
        plan = p.workflow([p.path("lib.csv")], STAGES % "gp", name="c.yaml")
        said = p.run("campaign", plan, "--plan")[1]
        assert "at most 48 molecules are asked for" in said and "first of 12 molecules, chosen for diversity" in said and not os.path.exists(p.path("run"))
        out = campaign(p)[1]
        rows = chosen(p)
        assert [r[0] for r in rows] == [k for k in range(5) for _ in range(12)] and len({r[-1] for r in rows}) == 60
        assert all([r[1] for r in rows if r[0] == k] == list(range(1, 13)) for k in range(5)), rows
        assert all(r[8] is None for r in rows if r[0] == 4)  # what would be next
        best, line = -9, {int(w[0]): w for w in (x.split() for x in out.splitlines()) if w and w[0].isdigit()}
        for k in range(4):
            mine = [r for r in rows if r[0] == k]
            for r in mine:
                name = r[2].split("; ")[0]
                assert (r[7], r[8]) == ((value[name], "measured") if name in value else (None, "no number: 'n.d.'")), r
            got = [r[7] for r in mine if r[7] is not None]
            best = max(best, max(got))
            assert line[k][2:6] == ["12", str(12 * k + 12), "%.3g" % max(got) if abs(max(got)) >= 1 else line[k][4], line[k][5]] and math.isclose(float(line[k][5]), best, abs_tol=0.005)
            if k == 0:
                assert all(r[3:7] == (None,) * 4 for r in mine) and mine[0][9] == "without a model"
                continue
            known = [r for r in mine if r[7] is not None]
            mae = sum(abs(r[3] - r[7]) for r in known) / len(known)
            inside = 100 * sum(abs(r[3] - r[7]) <= 1.6448536 * r[4] for r in known) / len(known)
            assert math.isclose(float(line[k][6]), mae, rel_tol=0.01) and math.isclose(float(line[k][7]), inside, abs_tol=0.5), (line[k], mae, inside)
            assert all(math.isclose(r[6], r[3] + 2 * r[4], rel_tol=1e-9) and "predicted %.4g +- %.2g" % (r[3], r[4]) in r[9] for r in mine)
            assert [r[6] for r in mine] == sorted((r[6] for r in mine), reverse=True)
        # the last choice is that of `next`, and the place is that among all scores
        want = list(csv.DictReader(io.StringIO(p.run("next", "run", "-n", "12", "--by", "ucb", "--per-scaffold", "4", "-f", "csv")[1])))
        tried = {r[-1] for r in rows if r[0] < 4}
        assert [r["inchikey"] for r in want if r["inchikey"] not in tried] == [r[-1] for r in rows if r[0] == 4][:sum(r["inchikey"] not in tried for r in want)]
        score = dict(p.rows("SELECT inchikey, mean FROM score JOIN molecule USING(mol_id)"))
        assert all(r[5] == 1 + sum(x > r[3] for x in score.values()) for r in rows if r[0] == 4)
        page = p.run("report", "run", "-o", "r.html") and open(p.path("r.html")).read()
        part = page[page.index('id="campaign"'):page.index('id="models"')]
        assert part.count('<tr><td class="n">') == 4 and "best logS / log10(mol/L)" in part and part.count('<td class="pic">') == 12 and "by prediction" in part
        # done is done; more rounds go on
        before = digest(p)
        assert "the campaign is over: 4 rounds" in p.run("campaign", "c.yaml")[1] and digest(p) == before
        p.run("campaign", "c.yaml", "stages.acquire.campaign.rounds=5", "-q")
        assert p.one("SELECT max(round) FROM measured") == 4 and p.rows("SELECT inchikey FROM acquired WHERE round=4 ORDER BY place") == [(r[-1],) for r in rows if r[0] == 4]
        # as five from the start, with one thread, and not as with another seed
        for workdir, more in (("five", ["-j", "1"]), ("other", ["seed=12"])):
            p.run("campaign", "c.yaml", "-q", "workdir=" + workdir, "stages.acquire.campaign.rounds=5", *more)
        assert digest(p, "five") == digest(p) != digest(p, "other")
        assert "good" in p.run("db", "check", "run")[1]


def a_campaign_ends_as_it_is_told():
    with Project() as p:
        table(p)
        for setting, said, tried in (("calls=30", "30 molecules were tried", 30), ("no_gain=1", "no better value in 1 round", None), ("time=0.001s", "it has worked for", 0)):
            out = campaign(p, "-q", "workdir=" + setting[:3], "stages.acquire.campaign." + setting, "stages.acquire.campaign.rounds=9")[1]
            assert "the campaign is over: " + said in out, out
            n = p.one("SELECT count(*) FROM acquired WHERE outcome IS NOT NULL", workdir=setting[:3])
            assert n == tried or (tried is None and n < 108), (setting, n)
            # The plan knows the rounds of the table, also one that the budget cut short.
            plan = p.run("campaign", "c.yaml", "--plan", "workdir=" + setting[:3], "stages.acquire.campaign." + setting)[1]
            shown = len(re.findall(r"(?m)^ *\d+  (?:diverse|ucb) ", out))
            whole, part = (shown - 1, " and a part of one more") if tried == 30 else (shown, "")
            assert "so far: %d %s%s, %d molecules asked for" % (whole, "round" if whole == 1 else "rounds", part, n) in plan, (plan, out)


def a_campaign_stops_after_its_time_and_goes_on():
    with Project() as p:
        table(p)
        campaign(p, "-q", "workdir=whole", "stages.acquire.campaign.rounds=3")
        stops, seconds, status = 0, 0.02, 75
        while status == 75:  # a little more each time: how long a training takes is not known
            status = p.run("campaign", "c.yaml", "-q", "--max-time", "%.3fs" % seconds, "workdir=parts", "stages.acquire.campaign.rounds=3", expect=None)[0]
            stops, seconds = stops + (status == 75), 1.5 * seconds
        assert status == 0 and stops > 0 and digest(p, "parts") == digest(p, "whole"), (status, stops)
        assert "3h50m" in p.run("campaign", "c.yaml", "--max-time", "soon", expect=2)[2]
        # what is left of a job is for all runs together: here a second, and two rounds whose programs wait longer than that
        p.put("oracle.yaml", LETTERS.replace("unit: 4", "unit: 12").replace("batch: 4", "batch: 12"))
        p.put("count.sh", "sleep 0.6\n" + COUNT_LETTERS)
        stages = STAGES.replace("{table: lib.csv}", "{workflow: oracle.yaml}").replace("rounds: 4", "rounds: 2")
        campaign(p, "-q", "workdir=slow", stages=stages)
        env = dict(os.environ, SLURM_JOB_ID="1", SLURM_JOB_END_TIME=str(int(time.time()) - 60))
        p.run("campaign", "c.yaml", "-q", "--max-time", "auto", "workdir=late", expect=75, env=env)
        p.run("campaign", "c.yaml", "-q", "workdir=late")
        assert digest(p, "late") == digest(p, "slow")


def killed(p, workdir, point):
    env = dict(os.environ, MOLSIEVE_FAULT=point)
    status = subprocess.run(p.command("campaign", "c.yaml", "-q", "workdir=" + workdir), cwd=p.dir, env=env, capture_output=True).returncode
    assert status in (0, 137), (point, status)
    return status == 137


POINTS = ["prepare.unit.after_commit:2", "campaign.first.before_commit:1", "campaign.first.after_commit:1", "campaign.answers.before_commit:1",
          "campaign.answers.after_commit:2", "train.model.after:1", "acquire.finish.before_commit:1", "acquire.finish.after_commit:1"]


def a_kill_at_any_point_changes_nothing(points=POINTS, kills=3, answers="{table: lib.csv}"):
    with Project() as p:
        table(p)
        p.put("oracle.yaml", LETTERS)
        p.put("count.sh", COUNT_LETTERS)
        campaign(p, "-q", "workdir=whole", stages=STAGES.replace("{table: lib.csv}", answers))
        want, rows, model = digest(p, "whole"), chosen(p, "whole"), open(p.path("whole/models/m.safetensors"), "rb").read()
        assert answers.startswith("{table") or any((r[8] or "").startswith("failed: ") for r in rows)

        def same(workdir):
            p.run("campaign", "c.yaml", "-q", "workdir=" + workdir)
            assert digest(p, workdir) == want and chosen(p, workdir) == rows, workdir
            assert open(p.path(workdir, "models/m.safetensors"), "rb").read() == model, workdir
            shutil.rmtree(p.path(workdir))

        n = sum(killed(p, "killed", point) for point in points)
        assert n == len(points), "%d of %d points were passed" % (n, len(points))
        same("killed")
        dice, done = random.Random(1), 0
        while done < kills:
            run = subprocess.Popen(p.command("campaign", "c.yaml", "-q", "workdir=hit"), cwd=p.dir, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                run.wait(dice.uniform(0.05, 1.5))
            except subprocess.TimeoutExpired:
                run.kill()
                run.wait()
                done += 1
                continue
            assert run.returncode == 0
            same("hit")
        same("hit")


# Counts letters, gives no value for triple bonds, and leaves a process behind.
LETTERS = """format: 1
name: oracle
inputs:
  - {path: lib.csv}
stages:
  read: {unit: 4}
  prepare: {conformers: {source: none}}
  external: {name: counter, command: [sh, count.sh, "{input}"], files: [count.sh], input: smiles, output: csv, property: letters, better: high, batch: 4}
limits: {failures: {max_fraction: 1}}
"""
COUNT_LETTERS = """(sleep 300 &)
echo id,letters
while read s n; do case $s in *"#"*) ;; *) echo $n,${#s} ;; esac; done < "$1"
"""
PROGRAM_POINTS = ["external.unit.before_commit:1", "external.unit.after_commit:2", "external.finish.before_commit:1", "external.finish.after_commit:1",
                  "campaign.answers.before_commit:1", "campaign.answers.after_commit:1", "prepare.unit.after_commit:7"]


def a_kill_of_a_campaign_with_a_program_changes_nothing(kills=2):
    a_kill_at_any_point_changes_nothing(PROGRAM_POINTS, kills, "{workflow: oracle.yaml}")


def overstate(path):
    """Gives the second molecule of a part the value 1000; its number."""
    db = sqlite3.connect(path)
    unit, data = db.execute("SELECT unit, data FROM scored").fetchone()
    n = struct.unpack_from("<i", data)[0]
    data = bytearray(data)
    struct.pack_into("<d", data, 16 + 8 * n + 28, 1000.0)  # behind n, a flag, a number and the ids: value, spread, uncertainty, element of each
    db.execute("UPDATE scored SET data=?, sha256=? WHERE unit=?", (bytes(data), hashlib.sha256(data).digest(), unit))
    db.commit()
    return struct.unpack_from("<q", data, 16 + 8)[0]


def parts_scored_by_other_jobs_change_nothing():
    """Rounds end with 75 when the model is trained; jobs score parts of the library, in any order, with kills, damage, another machine."""
    with Project() as p:
        table(p)
        campaign(p, "-q", "workdir=whole", "stages.acquire.campaign.rounds=3")
        word = ["c.yaml", "stages.acquire.campaign.rounds=3"]

        def part(k, *more, expect=0, fault=""):
            return p.run("campaign", *word, "--part", "%d/3" % k, "-j", "2", *more, expect=expect, env=dict(os.environ, MOLSIEVE_FAULT=fault))[2]

        def missing():
            return p.run("campaign", *word, "--parts", "3", "--missing")[1].split()
        assert missing() == [] and "no model waits for scores" in part(0, expect=2)
        rounds = 0
        while p.run("campaign", *word, "-q", "--parts", "3", expect=None)[0] == 75:
            assert missing() == ["0", "1", "2"]
            part(0, expect=137, fault="score.part.before_commit:2")
            assert sqlite3.connect(p.path("run/parts/00000-of-00003/scores.db")).execute("SELECT count(*) FROM scored").fetchone() == (1,)
            begun = sqlite3.connect(p.path("run/parts/00000-of-00003/scores.db"))
            begun.executescript("CREATE TABLE mark(x)")
            part(1)
            assert missing() == ["0", "2"] and p.run("campaign", *word, "-q", "--parts", "3", expect=75)
            part(2)
            part(2)
            part(0)
            assert begun.execute("SELECT count(*) FROM mark").fetchone() == (0,)
            assert begun.execute("SELECT value FROM meta WHERE key='state'").fetchone() == ("done",)  # it went on, in the same file
            begun.close()
            stale = sqlite3.connect(p.path("run/parts/00002-of-00003/scores.db"))
            stale.executescript("UPDATE meta SET value='of another model' WHERE key='key'")
            assert missing() == ["2"]
            part(2)  # anew, in another file
            db = p.path("run/parts/00001-of-00003/scores.db")
            if rounds == 0:  # a damaged unit is computed
                sqlite3.connect(db).executescript("UPDATE scored SET data=zeroblob(length(data))")
            if rounds == 0:  # what a part says is taken: here that its second molecule is by far the best
                shutil.copytree(p.path("run"), p.path("other"))
                far = overstate(p.path("other/parts/00002-of-00003/scores.db"))
                p.run("campaign", *word, "-q", "--parts", "3", "workdir=other", expect=75)
                first = p.rows("SELECT mol_id, mean FROM v_acquired JOIN molecule USING(inchikey) WHERE round=1 ORDER BY place LIMIT 1", workdir="other")
                assert first == [(far, 1000.0)], (first, far)
            if rounds == 1:
                sqlite3.connect(db).executescript("UPDATE meta SET value='another' WHERE key='level'")
            assert missing() == [] and os.path.exists(db), (rounds, missing())
            rounds += 1
        assert rounds == 3 and not os.path.exists(db) and missing() == []
        assert digest(p) == digest(p, "whole") and chosen(p) == chosen(p, "whole")
        assert [m for m, in p.rows("SELECT DISTINCT message FROM event WHERE level='warn' AND stage='score'") if "another kind of machine" in m]
        for words, said in ((["--parts", "0"], "--parts 0"), (["--parts", "3", "--part", "0/3"], "give one of them"), (["--missing"], "--parts N"), (["--part", "3/3"], "3/3 is not a shard")):
            assert said in p.run("campaign", *word, *words, expect=2)[2], words


ORACLE = """format: 1
name: oracle
seed: 1
inputs:
  - {path: lib.csv}
stages:
  read: {}
  prepare: {conformers: {source: none}}
  external: {name: counter, command: [python3, count.py, "{input}"], files: [count.py], input: smiles, output: csv, property: carbons, better: high}
limits: {failures: {max_fraction: 1}}
"""
COUNT = """import sys
print("id,carbons")
for line in open(sys.argv[1]):
    smiles, name = line.split()
    if "Cl" in smiles:
        sys.exit("chlorine is not counted")
    print("%s,%d" % (name, smiles.upper().count("C")))
"""


def a_program_of_the_user_gives_the_answers():
    with Project() as p:
        table(p)
        p.put("count.py", COUNT)
        p.put("oracle.yaml", ORACLE)
        campaign(p, "-q", "stages.acquire.campaign.rounds=2", "limits.failures.max_fraction=1", stages=STAGES.replace("{table: lib.csv}", "{workflow: oracle.yaml}"))
        smiles = dict(p.rows("SELECT inchikey, smiles FROM molecule"))
        rows = [r for r in chosen(p) if r[0] < 2]
        got = {r[-1]: r[7] for r in rows if r[8] == "measured"}
        lost = [r for r in rows if r[8] != "measured"]
        assert len(got) > 10 and all(v == smiles[k].upper().count("C") for k, v in got.items()), got
        # with 8 values nothing can be learned: the second round is chosen without a model, too
        assert sum(r[0] == 0 and r[8] == "measured" for r in rows) < 10 and {r[9] for r in rows} == {"without a model"}
        assert lost and all(r[8].startswith("failed: ") and "chlorine is not counted" in r[8] and "Cl" in smiles[r[-1]] for r in lost), lost
        assert len(got) + len(lost) == 24 and p.one("SELECT count(*) FROM score", workdir="run/rounds/0001") == sum(r[0] == 1 and r[8] == "measured" for r in rows)
        # mistakes in that workflow are told before the library is prepared
        for change, words, said in ((("[python3,", "[no-such,"), [], "oracle.yaml:9:39: external.command: no-such: no such program in PATH"),
                                    (("property: carbons", "property: carbons, unit: atoms"), [], "scores carbons in atoms, and logS is learned in log10(mol/L)"),
                                    (("better: high", "better: low"), [], "answers.workflow says that low values of carbons are better, and the target logS that high ones are"),
                                    (("", ""), ["stages.acquire.answers.property=none"], "answers.property: not scored by answers.workflow"),
                                    (("external: {name: counter", "graph: {edges: topology}\n  rank: {objectives: [{property: mw, goal: maximise}]} #"), [], "answers.workflow scores nothing")):
            p.put("oracle.yaml", ORACLE.replace(*change))
            for command in (["campaign"], ["check"], ["script", "-s", "slurm", "--campaign"]):
                err = p.run(*command, "c.yaml", "workdir=no", *words, expect=2)[2]
                assert said in err, (command, err)
            problems = json.loads(p.run("check", "c.yaml", "workdir=no", "--json", *words, expect=2)[1])["problems"]
            assert len(problems) == 1 and problems[0]["text"] in err, (problems, err)
        assert not os.path.exists(p.path("no"))
        # what may be meant is told: a goal that is written down, a unit that is not
        p.put("oracle.yaml", ORACLE.replace("better: high", "better: low"))
        said = "answers.workflow does not say in which unit it scores carbons: its values are learned as logS in log10(mol/L)"
        for words, told in (([], True), (["stages.acquire.answers.unit=log10(mol/L)"], False)):
            words = ["c.yaml", "workdir=no", "stages.acquire.goal=maximise"] + words
            assert (said in p.run("campaign", *words, "--plan")[2]) == (said in p.run("check", *words)[1]) == told, words


def mistakes_are_told_before_any_work():
    with Project() as p:
        table(p)
        p.put("other.csv", "id,value,b,b\nM1,2,3,4\n")
        with open(p.path("lib.csv"), "rb") as f, open(p.path("cut.csv.gz"), "wb") as cut:
            whole = gzip.compress(f.read())
            cut.write(whole[:len(whole) * 3 // 4])
        p.workflow([p.path("lib.csv")], STAGES % "trees", name="c.yaml")
        for words, said in ((["stages.train.family=[trees]"], "strategy: ucb needs a standard deviation, which this training does not give"),
                            (["stages.acquire.sigma=stdev"], "needs a standard deviation from stdev"),
                            (["stages.acquire.campaign={rounds: 0}"], "no end: set rounds, calls, time or no_gain"),
                            (["stages.acquire.campaign={calls: 5}"], "calls: 5, but the first round has 12"),
                            (["stages.acquire.campaign={first_count: 3}"], "a model cannot be trained on 3 molecules"),
                            (["stages.acquire.campaign={calls: 500, rounds: 0}"], "the library has %d records, and the budget is 500 molecules" % N),
                            (["stages.prepare.labels=[logS]"], "all answers would be labels from the start"),
                            (["stages.acquire.answers={table: other.csv}"], "the table has no column logS"),
                            (["stages.acquire.answers={table: other.csv, column: b}"], "the table has 2 columns called b: which one?"),
                            (["stages.acquire.answers={table: lib.csv, workflow: c.yaml}"], "table and workflow are given"),
                            (["stages.acquire.answers={table: none.csv}"], "none.csv"),
                            (["stages.acquire.answers={table: cut.csv.gz}"], "acquire: answers.table: damaged gzip: unexpected end of file"),
                            (["stages.acquire.answers={table: lib.csv, unit: mg/L}"], "the answers are in mg/L, and the target logS in log10(mol/L)"),
                            (["stages.acquire.property=logs"], "not scored by this workflow"),
                            (["stages.acquire.where=mw <"], "where"),
                            (["stages.acquire.where=alerts = ''"], "acquire: where: alerts are NULL, as no alert rules are set"),
                            (["stages.acquire.where=energy < 9", "stages.prepare.conformers.source=none"], "acquire: where: energy is NULL, as no structures are built"),
                            (["stages.train.targets=[{name: logS}]"], "neither high nor low values of logS are said to be better"),
                            (["stages.train.targets=[{name: logS, factor: 2, better: high}]"], "leave factor out")):
            err = p.run("check", "c.yaml", *words, expect=2)[2]
            assert said in err, (words, err)
            assert p.run("campaign", "c.yaml", *words, expect=2)[2] and not os.path.exists(p.path("run")), words
        plain = STAGES.replace("    answers: {table: lib.csv}\n", "")
        p.workflow([p.path("lib.csv")], plain % "gp", name="no.yaml")
        assert "say where values come from" in p.run("campaign", "no.yaml", "stages.prepare.labels=[logS]", expect=2)[2]
        # answers that are not there end the round, not silently the campaign
        p.put("far.csv", "id,logS\nX1,2\n")
        p.workflow([p.path("lib.csv")], STAGES.replace("lib.csv", "far.csv") % "gp", name="far.yaml")
        assert "none of its 12 molecules has an answer; the first: not in the table" in p.run("campaign", "far.yaml", expect=1)[2]


def all_names_of_an_answer_mean_one_molecule():
    n = 14
    stages = STAGES.replace("count: 12", "count: %d" % n).replace("rounds: 4, first: diverse", "rounds: 1").replace("    diversity: {per_scaffold: 4}\n", "")
    smiles = ["C" * (k + 1) + "O" for k in range(n)]
    row = ["M%d,%s,%d" % (k, s, k) for k, s in enumerate(smiles)]

    def answers(rows):
        p.put("a.csv", "id,smiles,logS\n" + "".join(x + "\n" for x in rows))

    with Project() as p:
        p.put("lib.csv", "id,smiles\n" + "".join("M%d,%s\n" % (k, s) for k, s in enumerate(smiles)) + "B0,OC\n")
        p.workflow([p.path("lib.csv")], stages.replace("lib.csv", "a.csv") % "gp", name="c.yaml")
        # numbers of the table's own: its M1 is M0 of the library
        answers("M%d,%s,%d" % ((k + 1) % n, s, k) for k, s in enumerate(smiles))
        said = p.run("campaign", "c.yaml", expect=1)[2]
        assert re.search(r"a\.csv:2: its SMILES is of OKKJLVBELUTLKV-\w+-N, its title of LFQSCWFLJHTTHZ-\w+-N: two molecules; "
                         "if the table numbers its rows, call that column something else than id or name\n", said), said
        assert p.one("SELECT count(*) FROM measured") == 0
        # a row for each record of M0, and one that was misread: 1,5 for 1.5
        answers(row[:3] + ["M3,%s,1,5" % smiles[3]] + row[4:] + ["B0,OC,3"])
        p.run("campaign", "c.yaml", "-q")
        got = {r[2].split("; ")[0]: (r[7], r[8]) for r in chosen(p) if r[0] == 0}
        assert got.pop("M0") == (1.5, "measured") and got["M3"][0] is None, got
        assert got.pop("M3")[1] == "line 5 of the table: csv: 4 columns, but the first row names 3; put values with ',' in quotes", got
        assert got == {"M%d" % k: (k, "measured") for k in range(n) if k not in (0, 3)}, got
        # No column of SMILES: the titles tell, and the first name of a column may look like a molecule.
        p.put("a.csv", "C,id,logS\n" + "".join("%d,M%d,%d\n" % (k + 1, k, k) for k in range(n)))
        p.run("campaign", "c.yaml", "-q", "workdir=titles")
        assert p.one("SELECT count(*) FROM measured", workdir="titles") == n
        # A relation that may be meant for the value: a limit is no answer.
        p.put("a.csv", "id,smiles,relation,logS\n" + "".join("M%d,%s,%s,%d\n" % (k, s, "=<"[k == 9], k) for k, s in enumerate(smiles)))
        said = p.run("campaign", "c.yaml", "workdir=limit", expect=1)[2]
        assert "a.csv:11: relation is '<' beside a number in logS: a limit is no measured value; if the column belongs to logS, call it" in said, said
        assert p.one("SELECT count(*) FROM measured", workdir="limit") == 0
        # Neither are numbers of two units.
        p.put("a.csv", "id,smiles,units,logS\n" + "".join("M%d,%s,%s,%d\n" % (k, s, ("log10(mol/L)", "M")[k == 9], k) for k, s in enumerate(smiles)))
        said = p.run("campaign", "c.yaml", "workdir=units", expect=1)[2]
        assert "a.csv:11: units is 'M', and 'log10(mol/L)' in line 2: numbers of two units are not one column of logS" in said, said
        assert p.one("SELECT count(*) FROM measured", workdir="units") == 0
        p.put("a.csv", "id,smiles,logS type,logS\n" + "".join("M%d,%s,%s,%d\n" % (k, s, "ab"[k == 9], k) for k, s in enumerate(smiles)))
        said = p.run("campaign", "c.yaml", "workdir=kinds", expect=1)[2]
        assert "a.csv:11: logS type is 'b', and 'a' in line 2: two kinds of measurement are not one column of logS" in said, said
        # Nor a number that stands for none, of a molecule that was not chosen, too.
        answers(row[:5] + [x[:x.rindex(",")] + ",-999" for x in row[5:6]] + row[6:] + ["B1,C=C,-999"])
        said = p.run("campaign", "c.yaml", "workdir=none", expect=1)[2]
        assert "a.csv:7: logS is -999 in 2 rows, and between 0 and 13 in others" in said, said
        assert p.one("SELECT count(*) FROM measured", workdir="none") == 0
        # Too few values for a model: the report knows all the same that low values are better.
        answers(row[:5] + [x[:x.rindex(",")] + ",n.d." for x in row[5:]])
        said = p.run("campaign", "c.yaml", "workdir=low", "stages.train.targets=[{name: logS, better: low}]")[1]
        assert re.search(r"0  random +14 +14 +0 +0 ", said), said
        page = p.run("report", "low", "-o", "-")[1]
        cells = re.findall('data value="([^"]*)"', page[page.index("<td>random</td>"):page.index("The best that were found")])
        assert cells == ["14", "5", "14", "0", "0"], cells


def a_stage_of_a_run_chooses_and_labels_end_its_round():
    with Project() as p:
        value = table(p)
        head, *lines = open(p.path("lib.csv")).read().splitlines()
        p.put("half.csv", "\n".join([head] + [x if i < 60 else x[:x.rindex(",") + 1] for i, x in enumerate(lines)]) + "\n")
        stages = STAGES.replace("    answers: {table: lib.csv}\n    campaign: {rounds: 4, first: diverse}\n", "").replace("[none]", "[logS]")
        p.workflow([p.path("half.csv")], stages % "gp")
        p.run("run", "w.yaml", "-q")
        first = chosen(p)
        assert [r[0] for r in first] == [0] * 12 and all(r[8] is None and r[2] not in list(value)[:54] for r in first)
        p.put("plate.csv", "inchikey,logS\n" + "".join("%s,-0.5\n" % r[-1] for r in first[:10]))
        assert "round 0" in p.run("label", "run", "plate.csv")[1]
        p.run("run", "w.yaml", "-q")
        rows = chosen(p)
        assert [r[8] for r in rows[:12]] == ["measured"] * 10 + [None] * 2 and [r[0] for r in rows[12:]] == [1] * 12
        assert not {r[-1] for r in rows[:12]} & {r[-1] for r in rows[12:]}
        p.run("run", "w.yaml", "-q", "stages.acquire.exclude=measured", "stages.acquire.strategy=greedy", "stages.acquire.where=mw > 150", "stages.acquire.inside=true")
        again = chosen(p)
        assert again[:12] == rows[:12] and "greedy " in again[12][9]
        assert p.one("SELECT count(*) FROM acquired a JOIN molecule m USING(inchikey) JOIN score USING(mol_id) WHERE round=1 AND (mw<=150 OR domain<>'inside')") == 0
        # a condition on structures has them built, which trees alone do not
        p.workflow([p.path("half.csv")], stages.replace("conformers: {source: none}, ", "") % "gp", name="built.yaml", workdir="built")
        assert "no 3D structures: no stage needs them" in p.run("plan", "built.yaml")[1]
        where = "stages.acquire.where=structures = 1 AND n_heavy < 7"
        assert "no 3D structures" not in p.run("plan", "built.yaml", where)[1]
        p.run("run", "built.yaml", "-q", where)
        built = "SELECT count(*) FROM acquired a JOIN molecule m USING(inchikey) WHERE m.n_heavy < 7 AND m.structures = 1"
        assert p.one(built, workdir="built") == p.one("SELECT count(*) FROM acquired", workdir="built") > 0


if __name__ == "__main__" and len(sys.argv) == 3 and sys.argv[1] == "loop":  # python3 tests/cli/campaign_e2e.py loop 200
    began = time.time()
    a_kill_at_any_point_changes_nothing(kills=int(sys.argv[2]))
    print("%s kills at any time, %d at named points: the same results; %.0f s" % (sys.argv[2], len(POINTS), time.time() - began))
elif __name__ == "__main__" and len(sys.argv) == 3 and sys.argv[1] == "program":  # answers from a program: python3 tests/cli/campaign_e2e.py program 200
    began = time.time()
    a_kill_of_a_campaign_with_a_program_changes_nothing(int(sys.argv[2]))
    print("%s kills at any time, %d at named points: the same results; %.0f s" % (sys.argv[2], len(PROGRAM_POINTS), time.time() - began))
elif __name__ == "__main__":
    sieve.main([each_round_is_what_the_model_before_it_said, a_campaign_ends_as_it_is_told, a_campaign_stops_after_its_time_and_goes_on, a_kill_at_any_point_changes_nothing, a_kill_of_a_campaign_with_a_program_changes_nothing,
                a_program_of_the_user_gives_the_answers, mistakes_are_told_before_any_work, all_names_of_an_answer_mean_one_molecule, a_stage_of_a_run_chooses_and_labels_end_its_round,
                parts_scored_by_other_jobs_change_nothing])
