#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The stage `external`: programs of a user's score molecules, and go wrong in every way."""
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../crash"))
from sieve import DUMP, Project, data, dump, lines_of, main, same, skip, until  # noqa: E402

RANK = "  rank: {objectives: [{property: points, goal: maximise}]}\n"

SLEEP = "sleep 300.%d" % os.getpid()  # of this test: others on the machine sleep, too

# Counts the letters of each SMILES; how it fails is in the SMILES.
PROGRAM = r"""
smiles=$(cut -f1 "$1")
case $smiles in
  C) echo "before the end"; kill -SEGV $$ ;;
  CC) sleep 300 & sleep 300 ;;
  CCC) echo "points nan" ;;
  CCCC) yes | head -c 3000000 ;;
  CCCCC) echo "on stdout"; echo "on stderr" >&2; exit 3 ;;
  CCCCCC) echo "no such thing" ;;
  CCCCCCC) printf 'points \033[31m\n' ;;
  CCCCCCCC) i=0; while true; do head -c 900000 /dev/zero > f$i; i=$((i+1)); done ;;
  CCCCCCCCC) (sleep 300 & sleep 300 &); mkdir -p a/b; touch a/b/c; chmod 0 a/b a; echo "points 7" ;;
  CCCCCCCCCC) echo "points 1e999" ;;
  CCl|CBr) echo "points 999" ;;
  CO) echo "points 1.5"; echo "points -2.5"; echo "points 2.5" ;;
  CN) echo $$ > pid; echo "$PWD/x $POINTS $OMP_NUM_THREADS $LC_ALL" >&2; exit 1 ;;
  *) echo "points ${#smiles}" ;;
esac
""".replace("sleep 300", SLEEP)
STAGE = """  read: {unit: 3}
  prepare: {}
  external:
    name: counter
    command: [sh, count.sh, "{input}"]
    files: [count.sh]
    input: smiles
    output: regex
    value: "^points +([^ ]+)"
    property: points
    unit: letters
    better: high
    timeout: 5s
    limits: {disk: 20MB}
    env: {POINTS: 3}
"""


def project(p, smiles, stage=STAGE, extra="limits: {failures: {max_fraction: 1}}\n", **more):
    p.put("count.sh", PROGRAM)
    p.put("a.smi", "".join("%s m%d\n" % (s, i) for i, s in enumerate(smiles)))
    return p.workflow(["a.smi"], stage + RANK, extra=extra, **more)


def no_sleepers():
    """What the programs left behind is gone."""
    out = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
    assert SLEEP not in out.splitlines(), out


def a_bad_molecule_costs_only_itself_and_tells_why():
    with Project() as p:
        bad = ["C" * n for n in range(1, 11)] + ["CN"]
        w = project(p, bad + ["CO", "c1ccccc1", "CCO", "CCO"])
        _, out, _ = p.run("run", w, "-j", "3")
        assert re.search(r"14 molecules -> 4 scored -> 4 ranked", out), out
        assert "known domain" not in out, out
        want = {1: ("crash", "ended by signal 11 (Segmentation fault); its output ends with: before the end", signal.SIGSEGV),
                2: ("timeout", "not done after 5.0s; it printed nothing", None),
                3: ("not_a_number", "the value is 'nan'; a finite number is expected; its output ends with: points nan", None),
                5: ("exit", "exit status 3; its output ends with: on stdout on stderr", None),
                6: ("no_value", "no value '^points +([^ ]+)' in the output; its output ends with: no such thing", None),
                7: ("not_a_number", "the value is ' [31m'; a finite number is expected; its output ends with: points  [31m", None),
                8: ("disk", "its folder has more than 20 MB (limits.disk); it printed nothing", None),
                10: ("not_a_number", "the value is '1e999'; a finite number is expected; its output ends with: points 1e999", None),
                11: ("exit", "exit status 1; its output ends with: {dir}/x 3 1 C", None)}
        got = {m: (c, t, s) for m, c, t, s in p.rows("SELECT mol_id, code, message, signal FROM failure WHERE stage='external'")}
        assert got.pop(4)[0] == "output"
        assert got == want, {k: (got.get(k), want.get(k)) for k in set(got) | set(want) if got.get(k) != want.get(k)}
        assert p.rows("SELECT mol_id, mean, n_models, stdev, domain FROM score ORDER BY 1") == \
            [(9, 7.0, 1, None, None), (12, 2.5, 1, None, None), (13, 8.0, 1, None, None), (14, 3.0, 1, None, None)]
        assert p.rows("SELECT name, unit, better, task FROM property") == [("points", "letters", "high", "regression")]
        assert p.rows("SELECT name, substr(metadata_json,1,16) FROM model") == [("counter", '{"external":true')]
        assert p.rows("SELECT mol_id FROM hit ORDER BY rank") == [(13,), (9,), (14,), (12,)]
        assert not os.path.exists(p.path("run", "scratch"))
        no_sleepers()
        assert "13,498" not in p.run("top", "run", "--csv")[1]
        p.run("report", "run", "-o", p.path("r.html"))
        assert "counter" in open(p.path("r.html")).read()
        # On one molecule, outside of the run: C, which crashes; and without that record.
        _, out, _ = p.run("check", w, "--try", expect=2)
        kept = re.search(r"tried +counter on C m0: crash: ended by signal 11 .*; its folder is kept: (\S+)\n", out).group(1)
        assert os.listdir(kept) == ["1"] and sorted(os.listdir(kept + "/1")) == ["count.sh", "input.smi"]
        shutil.rmtree(kept)
        p.put("b.smi", "CCO one\n")
        _, out, _ = p.run("check", w, "--try", "inputs.0.path=b.smi")
        assert re.search(r"tried +counter on CCO one: points 3 letters, ", out), out
        # Nothing runs again; a changed program does, alone.
        assert re.search(r"external +done", p.run("plan", w)[1]), p.run("plan", w)[1]
        p.put("count.sh", PROGRAM.replace("${#smiles}", "-${#smiles}"))
        assert re.search(r"external +again .*files.count.sh", p.run("plan", w)[1]), p.run("plan", w)[1]
        # What is kept on demand.
        p.run("run", w, "-q", "stages.external.keep=failed")
        assert p.one("SELECT mean FROM score WHERE mol_id=13") == -8
        assert sorted(os.listdir(p.path("run", "scratch"))) == sorted(str(n) for n in want.keys() | {4})
        assert sorted(os.listdir(p.path("run", "scratch", "11"))) == ["count.sh", "input.smi", "pid"]
        assert open(p.path("run", "scratch", "11", "input.smi")).read() == "CN\t11\n"


FORMATS = {
    "csv": ("import sys\nprint('title;id;points')\nfor l in open(sys.argv[1]).read().splitlines()[1:]:\n"
            "    i, s = l.split(',')[:2]\n    print('\"a;\"\"b\";%s;%d' % (i, len(s)))\n", "csv", "csv"),
    "json": ("import json, sys\nout = []\nfor l in open(sys.argv[1]):\n    s, i = l.split()\n"
             "    out.append({'id': int(i), 'of': {'points': len(s)}})\njson.dump(out, open(sys.argv[2], 'w'))\n", "smiles", "json"),
    "lines": ("import json, sys\nfor l in open(sys.argv[1]):\n    s, i = l.split()\n"
              "    print(json.dumps({'id': i, 'of': {'points': ' %d ' % len(s)}}))\n", "smiles", "json"),
    "sdf": ("import sys\nfor r in open(sys.argv[1]).read().split('$$$$\\n')[:-1]:\n"
            "    s = r.split('>  <smiles>\\n')[1].split('\\n')[0]\n    for k in (2, 0, 1):\n"
            "        print(r.split('M  END')[0] + 'M  END\\n>  <points> (1)\\n%d\\n\\n$$$$' % (len(s) - k))\n", "sdf", "sdf"),
    "xyz": ("import sys\nlines = open(sys.argv[1]).read().splitlines()\nprint('id,points')\nwhile lines:\n"
            "    n = int(lines[0])\n    print('%s,%d' % (lines[1].split()[0], sum(l[0] != 'H' for l in lines[2:2 + n])))\n"
            "    lines = lines[2 + n:]\n", "xyz", "csv"),
}


def every_format_gives_the_same_alone_and_in_batches():
    smiles = ["CCO", "c1ccccc1", "CC(=O)O", "CCCCN", "CC#N", "CO"]
    with Project() as p:
        for kind, (program, given, taken) in FORMATS.items():
            p.put("p.py", program)
            p.put("a.smi", "".join("%s m%d\n" % (s, i) for i, s in enumerate(smiles)))
            for batch in (1, 4):
                stage = ("  read: {}\n  prepare: {}\n  external: {command: [python3, p.py, '{input}'%s], files: [p.py], input: %s, "
                         "output: %s, value: %s, property: points, better: high, batch: %d}\n" %
                         (", '{output}'" if kind == "json" else "", given, taken,
                          "of.points" if taken == "json" else "points", batch))
                w = p.workflow(["a.smi"], stage + RANK, workdir="%s%d" % (kind, batch))
                p.run("run", w, "-q")
                got = [v for v, in p.rows("SELECT mean FROM score ORDER BY mol_id", workdir="%s%d" % (kind, batch))]
                want = [3, 6, 4, 5, 3, 2] if kind == "xyz" else [len(s) for s in smiles]
                assert got == want, (kind, batch, got)


def a_bad_molecule_of_a_batch_costs_only_itself():
    with Project() as p:
        p.put("p.py", "import sys\nprint('id,points')\nfor l in open(sys.argv[1]):\n    s, i = l.split()\n"
                      "    sys.stdout.flush()\n    assert s != 'CO', 'crash'\n    print('%s,%s' % (i, 'x' if s == 'CN' else len(s)))\n")
        p.put("a.smi", "".join("%s m\n" % s for s in ["CCO", "CO", "CN", "CCCN", "CCCCN", "CCS"]))
        w = p.workflow(["a.smi"], "  read: {}\n  prepare: {}\n  external: {command: [python3, p.py, '{input}'], files: [p.py], "
                       "input: smiles, output: csv, property: points, better: high, batch: 3}\n" + RANK)
        p.run("run", w, "-q")
        assert p.rows("SELECT mol_id, mean FROM score ORDER BY 1") == [(1, 3.0), (4, 4.0), (5, 5.0), (6, 3.0)]
        assert p.rows("SELECT mol_id, code FROM failure ORDER BY 1") == [(2, "exit"), (3, "not_a_number")]
        # Row numbers instead of ids: 3 is the third row, and the id of the second molecule. Blanks around a number are fine.
        p.put("p.py", "import sys\nprint('id,points')\nfor k, l in enumerate(open(sys.argv[1])):\n    print('%d, %d \\t' % (k + 1, len(l.split()[0])))\n")
        p.put("a.smi", "CCO a\nbad( b\nCCCN c\nCCCCS d\n")
        p.run("run", w, "-q")
        assert p.rows("SELECT mol_id, mean FROM score ORDER BY 1") == [(1, 3.0), (3, 4.0), (4, 5.0)]


def all_mistakes_are_told_at_once_with_their_lines():
    with Project() as p:
        p.put("a.smi", "CCO\n")
        p.put("count.sh", PROGRAM)
        p.put("sub.sh", "")
        os.mkdir(p.path("d"))
        p.put("d/sub.sh", "")
        w = p.workflow(["a.smi"], """  read: {}
  prepare: {conformers: {source: none}}
  external:
    command:
      - no-such-program
      - "{inptu}"
      - count.sh
    input: sdf
    output: regex
    property: points
    better: high
    batch: 5
    files: [missing.pdbqt, sub.sh, d/sub.sh, d]
    env: {2X: a}
    value: "points [0-9]+"
""" + RANK)
        _, _, err = p.run("check", w, expect=2)
        for line, text in ((12, "no-such-program: no such program in PATH"), (13, "unknown placeholder {inptu}"),
                           (12, "without {input}"), (14, "count.sh is a file: name it in `files`"),
                           (15, "need 3D structures, but"), (19, "cannot tell which number"),
                           (20, "missing.pdbqt: No such file"), (20, "two files are called sub.sh"), (20, "d is no file"),
                           (21, "'2X' is no name"), (22, "has no group")):
            assert re.search(r"w.yaml:%d:\d+: .*%s" % (line, re.escape(text)), err), (line, text, err)
        assert not os.path.exists(p.path("run"))


def kills_shards_and_jobs_change_nothing():
    with Project() as p:
        lines = lines_of(data("library.smi"), 60).decode().splitlines()
        smiles = [line.split()[0] for line in lines] + ["C", "CCC", "CCCCC"]
        w = project(p, smiles + smiles[3:9], STAGE.replace("unit: 3", "unit: 5").replace("5s", "300s"))
        p.run("run", w, "-q", "-j", "1", "workdir=whole")
        want = dump(p, "whole")
        p.run("run", w, "-q", "-j", "4", "stages.external.cores=2", "workdir=jobs")
        same(want, dump(p, "jobs"), "jobs")
        rng = random.Random(5)
        n_killed = 0
        for k in range(40):
            child = subprocess.Popen(p.command("run", w, "-q", "-j", "2", "workdir=killed"), cwd=p.dir, stderr=subprocess.PIPE)
            time.sleep(0.05 * k if k < 4 else rng.uniform(0.05, 0.5))  # on a fast machine, too, the first ones come before the end
            child.send_signal(rng.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM]))
            child.communicate()
            if child.returncode == 0:
                break
            n_killed += 1
        p.run("run", w, "-q", "-j", "2", "workdir=killed")
        assert n_killed > 2
        same(want, dump(p, "killed"), "%d kills" % n_killed)
        for k in (2, 0, 1):
            p.run("run", w, "-q", "workdir=shards", "--shard", "%d/3" % k)
        p.run("merge", w, "workdir=shards")
        p.run("run", w, "-q", "workdir=shards")
        for name, sql in list(DUMP.items()) + [("score", "SELECT * FROM score ORDER BY 1, 2"),
                                               ("prediction", "SELECT * FROM prediction ORDER BY 1, 2")]:
            assert p.rows(sql, workdir="whole") == p.rows(sql, workdir="shards"), name
        assert p.run("db", "digest", "whole", "--results-only")[1] == p.run("db", "digest", "shards", "--results-only")[1]
        no_sleepers()


def an_answer_in_another_place_costs_its_molecule():
    """A program may write where it likes; what is read is a regular file {output} in its folder."""
    with Project() as p:
        p.put("p.sh", """case $(cut -f1 "$1") in
  CO) echo id,points > ../elsewhere.csv ;;
  CN) ln -s /etc/hostname "$2" ;;
  CS) mkfifo "$2" ;;
  CF) mkdir "$2" ;;
  CCl) echo id,points > "$2"; rm -r "$PWD" ;;
  *) printf 'id,points\\n%s,5\\n' "$(cut -f2 "$1")" > "$2" ;;
esac
""")
        bad = ["CO", "CN", "CS", "CF", "CCl"]
        p.put("a.smi", "".join("%s m\n" % s for s in bad + ["CCO"]))
        w = p.workflow(["a.smi"], "  read: {unit: 4}\n  prepare: {conformers: {source: none}}\n  external: {command: [sh, p.sh, '{input}', '{output}'], files: [p.sh], "
                       "input: smiles, output: csv, property: points, better: high}\n" + RANK, extra="limits: {failures: {max_fraction: 1}}\n")
        p.run("run", w, "-q")
        assert p.rows("SELECT mol_id, mean FROM score") == [(6, 5.0)]
        assert p.rows("SELECT mol_id, code, message FROM failure ORDER BY 1") == [(k + 1, "output", "it wrote no file {output}; it printed nothing") for k in range(5)]
        assert not os.path.exists(p.path("run/scratch"))


def processes(words):
    """Numbers of the processes with this command."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as f:
                if f.read().split(b"\0")[:-1] == words:
                    found.append(int(pid))
        except OSError:
            pass
    return found


def a_killed_run_leaves_no_program_and_no_folder():
    """What a program started ends with the run, and the folder of the call is gone when the run went on."""
    with Project() as p:
        sleep = SLEEP.encode().split()
        slow = "[ -e %s ] && %s\n" % (p.path("slow"), b" ".join(sleep).decode())
        for molecules, batch in (("CCO a\nCCN b\nCCCN c\n", 1), ("CCO a\nCCN b\nCCCN c\nCCCCN d\n", 2)):
            p.put("a.smi", molecules)
            p.put("count.sh", slow + "while read s i; do echo points $i ${#s}; done < $1\n")
            stage = STAGE.replace("unit: 3", "unit: %d" % batch).replace("5s", "300s").replace('"^points +([^ ]+)"', '"^points +[0-9]+ ([0-9]+)"')
            if batch > 1:
                p.put("count.sh", slow + "echo id,points; while read s i; do echo $i,${#s}; done < $1\n")
                stage = re.sub("output: regex\n    value: .*", "output: csv", stage) + "    batch: 2\n"
            w = p.workflow(["a.smi"], stage + RANK, workdir="run%d" % batch)
            p.run("run", w, "-q", "workdir=whole%d" % batch)
            p.put("slow", "")
            for _ in range(2):
                child = subprocess.Popen(p.command("run", w, "-q", "-j", "2"), cwd=p.dir, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                try:
                    until(lambda: len(processes(sleep)) == 2, "two calls at once")
                finally:
                    child.kill()
                    child.wait()
                until(lambda: not processes(sleep), "programs of a run that was killed are at work")
                assert os.listdir(p.path("run%d" % batch, "scratch"))
            os.unlink(p.path("slow"))
            p.run("run", w, "-q")
            assert not os.path.exists(p.path("run%d" % batch, "scratch"))
            same(dump(p, "whole%d" % batch), dump(p, "run%d" % batch), "after kills")
            assert p.one("SELECT count(*) FROM score", workdir="run%d" % batch) == len(molecules.split("\n")) - 1


def models_and_a_program_score_side_by_side():
    with Project() as p:
        shutil.copy(os.path.join(os.environ["MOLSIEVE_SOURCE"], "workflows/models/esol.safetensors"), p.path("esol.safetensors"))
        p.put("count.sh", PROGRAM)
        p.put("a.smi", lines_of(data("library.smi"), 20))
        stages = STAGE + "  graph: {edges: bonds}\n  score: {}\n" + RANK.replace("[{", "[{property: logS, goal: maximise}, {")
        w = p.workflow(["a.smi"], stages, extra="models: {esol: {path: esol.safetensors}}\n")
        p.run("run", w, "-q")
        scores = "SELECT p.name, count(*) FROM score JOIN property p USING(property_id) GROUP BY 1 ORDER BY 1"
        assert p.rows(scores) == [("logS", 20), ("points", 20)], p.rows(scores)
        p.run("db", "check", "run")  # both store into the same tables at once
        digest = p.run("db", "digest", "run", "--results-only")[1]
        said = p.run("check", w, "stages.rank.domain=inside", expect=2)[2]
        assert re.findall("rank: domain: .*", said) == ["rank: domain: the program of points has no applicability domain"], said
        # The same property: in one unit there would be two scores of a molecule; in two, which one does the ranking mean?
        program = ("stages.external.property=logS", "stages.external.value=points +([^ ]+)", "stages.rank.objectives.1.property=mw")
        for unit in ("log10(mol/L)", ""):
            said = p.run("check", w, *program, "stages.external.unit=" + unit, expect=2)[2]
            assert "score: logS is predicted by a model and scored by the program of `external`, in one unit" in said, said
        said = p.run("check", w, *program, "stages.external.unit=letters", expect=2)[2]
        names = {"logS (log10(mol/L))": "log10(mol/L)", "logS (letters)": "letters"}
        assert 'rank: "logS" is predicted in log10(mol/L) and in letters: write "%s" or "%s"' % tuple(names) in said, said
        for name, unit in names.items():
            p.run("run", w, "-q", *program, "stages.external.unit=letters", "stages.rank.objectives.1.weight=1e-9", "stages.rank.objectives.0.property=" + name, "workdir=two")
            means = [m for m, in p.rows("SELECT mean FROM hit JOIN score USING(mol_id) JOIN property p USING(property_id) WHERE p.unit='%s' ORDER BY rank" % unit, workdir="two")]
            assert len(means) == 20 and means == sorted(means, reverse=True), (name, means)
        # Each runs again without the other.
        for what in ("score", "external"):
            p.run("run", w, "-q", "--from", what)
            assert p.run("db", "digest", "run", "--results-only")[1] == digest, what
        p.put("count.sh", PROGRAM.replace("${#smiles}", "-${#smiles}"))
        p.run("run", w, "-q")
        assert p.rows(scores) == [("logS", 20), ("points", 20)]
        assert p.one("SELECT max(mean) FROM score JOIN property USING(property_id) WHERE name='points'") < 0


def a_column_and_property_of_one_name_is_refused_in_a_condition():
    """Objectives mean the property, where the column: a condition with the name would ask for something else than the ranking shows."""
    with Project() as p:
        for name in ("logp", "charge", "MW", "Scaffold"):
            text = name.lower() == "scaffold"
            condition = "n_heavy > 1 and %s %s" % (name.lower(), "= ''" if text else "< 3")
            stage = STAGE.replace("property: points", "property: " + name) + "  rank: {objectives: [{property: %s, goal: maximise}]}\n" % name
            p.put("count.sh", PROGRAM)
            p.put("a.smi", "CCCCCCCCCCCC a\nCCCCCCCCCCCCC b\n")
            w = p.workflow(["a.smi"], stage, workdir=name)
            why = "where: %s has two meanings here: the column of each molecule, and the property of this name that is scored; give the property another name, or bound it in rank.constraints\n" % name.lower()
            err = p.run("check", w, "stages.rank.where=" + condition, expect=2)[2]
            assert "rank: " + why in err and err.count("\n") < 4, err
            p.run("check", w, "stages.rank.where=n_heavy > 1")
            p.run("run", w, "-q")
            for args in (("search", name), ("next", name, "--goal", "maximise"), ("export", "csv", name), ("export", "smi", "--all", name)):
                status, out, err = p.run(*args, "--where", condition, expect=2)
                assert out == "" and why in err, (args, out, err)
            assert p.run("export", "smi", "--where", "n_heavy > 12", name)[1].count("\n") == 1


def a_program_that_adds_fields_to_an_sdf_scores_batches():
    """As gnina does: structures in, the same with a data field out. The number is that of the structure: its MMFF94 energy, also by
    another program (of these molecules; of some others Open Babel has other charges)."""
    if shutil.which("obabel") is None:
        skip("no obabel (Debian: openbabel)")
    with Project() as p:
        p.put("a.smi", lines_of(os.path.join(os.environ["MOLSIEVE_SOURCE"], "workflows/data/library.smi"), 6))
        w = p.workflow(["a.smi"], "  read: {}\n  prepare: {conformers: {source: generate}}\n  external: {command: [obabel, '{input}', -O, '{output}', --energy, --ff, MMFF94], input: sdf, "
                       "output: sdf, value: Energy, property: points, unit: kcal/mol, better: low, batch: 4}\n" + RANK)
        p.run("run", w, "-q")
        p.run("export", "sdf", "run", "--all", "-o", p.path("x.sdf"))
        want = {line.split()[0]: float(line.split()[1]) for line in p.run("energy", "x.sdf")[1].splitlines() if "title" not in line and len(line.split()) == 9}
        got = dict(p.rows("SELECT title, mean FROM score JOIN record USING(mol_id)"))
        assert len(want) == 6 and set(got) == set(want) and all(abs(got[k] - want[k]) < 0.02 for k in want), (got, want)


def long_numbers_keep_their_end():
    """Digits and an exponent behind the 60th character count; what is too long for a number is none."""
    for output, shown in (("regex", "points %s"), ("json", '{"points": "%s"}')):
        with Project() as p:
            stage = re.sub("output: regex\n    value: .*", "output: json\n    value: points", STAGE) if output == "json" else STAGE
            w = project(p, ["C", "CC", "CCC"], stage)
            texts = ["0.%s125e71" % ("0" * 70), "0.%s5e2" % ("0" * 450), "1%s.5e-70" % ("0" * 70)]
            p.put("count.sh", 'read smiles id < "$1"\ncase $smiles in\n' + "".join("%s) echo '%s' ;;\n" % (s, shown % t) for s, t in zip(("C", "CC", "CCC"), texts)) + "esac\n")
            p.run("run", w, "-q")
            assert p.rows("SELECT mol_id, mean FROM score ORDER BY 1") == [(1, 1.25), (3, float(texts[2]))], output
            assert p.rows("SELECT mol_id, code FROM failure WHERE stage='external'") == [(2, "not_a_number")]
            assert "(455 characters)" in p.one("SELECT message FROM failure WHERE stage='external'")


def python_with_rdkit():
    for python in (os.environ.get("QED_PYTHON"), sys.executable, "/usr/bin/python3"):
        if python and subprocess.run([python, "-c", "from rdkit.Chem import QED"], capture_output=True).returncode == 0:
            return python
    return skip("no RDKit (Debian: python3-rdkit)")


def the_example_with_a_python_script_gives_its_numbers():
    python = python_with_rdkit()
    with Project() as p:
        for x in ("qed.yaml", "qed.py"):
            os.makedirs(p.path("workflows"), exist_ok=True)
            shutil.copy(os.path.join(os.environ["MOLSIEVE_SOURCE"], "workflows", x), p.path("workflows", x))
        os.mkdir(p.path("workflows/data"))
        smiles = {"aspirin": "CC(=O)Oc1ccccc1C(=O)O", "nicotine": "CN1CCCC1c1cccnc1", "palmitic": "CCCCCCCCCCCCCCCC(=O)O"}
        p.put("workflows/data/library.smi", "".join("%s %s\n" % (v, k) for k, v in smiles.items()))
        p.run("run", "workflows/qed.yaml", "-q", env=dict(os.environ, QED_PYTHON=python))
        by_hand = subprocess.run([python, "-c", "import sys; from rdkit.Chem import QED, MolFromSmiles\n[print(QED.qed(MolFromSmiles(s))) for s in sys.argv[1:]]",
                                  *smiles.values()], capture_output=True, text=True, check=True).stdout.split()
        got = dict(p.rows("SELECT title, mean FROM score JOIN record USING(mol_id)", workdir="runs/qed"))
        assert got == dict(zip(smiles, map(float, by_hand))) and round(got["aspirin"], 2) == 0.55, (got, by_hand)


def a_file_that_changes_meanwhile_ends_the_run():
    with Project() as p:
        waits = "touch began; while [ ! -e %s ]; do sleep 0.02; done; echo points 1\n" % p.path("changed")
        p.put("count.sh", waits)
        p.put("a.smi", "CCO one\n")
        w = p.workflow(["a.smi"], STAGE.replace("5s", "300s").replace("unit: 3", "unit: 1") + RANK)
        child = subprocess.Popen(p.command("run", w, "-q", "-j", "1", "stages.external.keep=all"), cwd=p.dir, stderr=subprocess.PIPE, text=True)
        until(lambda: os.path.exists(p.path("run", "scratch", "1", "began")), "no call")
        p.put("count.sh", "echo points 2 ".ljust(len(waits) - 1, "#") + "\n")  # in place, and as long
        p.put("changed", "")
        err = child.communicate()[1]
        assert child.returncode == 1 and "count.sh was changed while external ran; run again: what it scored is scored again" in err, (child.returncode, err)
        p.run("run", w, "-q")
        assert p.rows("SELECT mean FROM score") == [(2.0,)]


def molfile(text):
    """Atoms (x, y, z, element) and what follows them."""
    lines = text.split("\n")
    n = int(lines[3][:3])
    return [(*map(float, a.split()[:3]), a.split()[3]) for a in lines[4:4 + n]], lines[4 + n:]


def distance(a, b):
    return sum((x - y) ** 2 for x, y in zip(a[:3], b[:3])) ** 0.5


# Turns each structure about z and moves it; drops hydrogens if asked; the second pose is swapped where that is asked.
DOCKER = """import sys
for r in open(sys.argv[1]).read().split('$$$$\\n')[:-1]:
    lines = r.split('\\n')
    n = int(lines[3][:3])
    atoms = [(float(a[:10]), float(a[10:20]), float(a[20:30]), a.split()[3]) for a in lines[4:4 + n]]
    if 'heavy' in sys.argv:
        atoms = [a for a in atoms if a[3] != 'H']
    for k in range(2):
        if 'swap' in sys.argv:
            atoms[0], atoms[-1] = atoms[-1], atoms[0]
        print(lines[0] + '\\n\\n\\n%3d  0  0  0  0  0  0  0  0  0999 V2000' % len(atoms))
        for x, y, z, e in atoms:
            print('%10.4f%10.4f%10.4f %-3s 0  0' % (5 - y, x - 3 * k, z, e))
        print('M  END\\n>  <points>\\n%d\\n\\n$$$$' % (-7 - k))
"""


def poses_are_structures_of_the_molecule():
    with Project() as p:
        p.put("d.py", DOCKER)
        p.put("a.smi", "C[C@H](N)C(=O)O ala\nCC ethane\nCCO a\nOCC again\nC#CC propyne\nO water\n")
        stage = ("  read: {unit: 2}\n  prepare: {}\n  external: {command: [python3, d.py, '{input}'%s], files: [d.py], input: sdf, output: sdf, "
                 "poses: true, property: points, better: low, batch: 2}\n" + RANK)

        def poses(workdir, *more):
            p.run("export", "sdf", workdir, "--all", "--conformers", *more, "-o", p.path("x.sdf"))
            return open(p.path("x.sdf")).read().split("$$$$\n")[:-1]
        for how in ("", ", heavy"):
            w = p.workflow(["a.smi"], stage % how, workdir="run" + how[2:])
            p.run("run", w, "-q")
            was, got = poses("run" + how[2:], "all"), poses("run" + how[2:], "poses")
            assert len(was) == 5 and len(got) == 10
            for k, x in enumerate(got):
                (atoms, rest), (old, bonds) = molfile(x), molfile(was[k // 2])
                assert [a[3] for a in atoms] == [a[3] for a in old] and rest[0] == bonds[0]
                assert ">  <pose>\n%d\n\n>  <pose_value>\n%d\n" % (k % 2 + 1, (-8, -7)[k % 2]) in x and ">  <points>\n-8\n" in x and "<energy>" not in x, x
                exact = not how or len([a for a in old if a[3] != "H"]) > 2 and not x.startswith("propyne")
                for a, b in zip(old, atoms):
                    new = (5 - a[1], a[0] - 3 * (1 - k % 2), a[2])  # the second is the best
                    assert distance(new, b) < 2e-3 or (a[3] == "H" and not exact), (how, x, new, b)
        for k in range(3):
            p.run("run", w, "-q", "workdir=shards", "--shard", "%d/3" % k)
        p.run("merge", w, "workdir=shards")
        p.run("run", w, "-q", "workdir=shards")
        assert poses("shards", "poses") == got
        # Atoms that are not those of the molecule give no pose; the value stays.
        w = p.workflow(["a.smi"], stage % ", swap", workdir="swapped")
        p.run("run", w, "-q")
        assert p.one("SELECT count(*) FROM score", workdir="swapped") == 5
        left = {x.split("\n")[0] for x in poses("swapped", "poses")}
        assert left == {"ala", "ethane", "a; again", "propyne", "water"}, left  # the second swap puts them right


def of_structures_with_equal_values_the_first_counts():
    """The pose tells which it was."""
    with Project() as p:
        p.put("same.sh", "echo 'REMARK VINA RESULT: -5 0 0' > $2; cat $1 >> $2\n")
        p.put("a.smi", "CCCCO one\n")
        w = p.workflow(["a.smi"], "  read: {}\n  prepare: {conformers: {count: 4}}\n  external: {command: [sh, same.sh, '{input}', '{output}'], files: [same.sh], input: pdbqt, "
                       "output: pdbqt, poses: true, structures: all, property: points, better: low}\n" + RANK)
        for better in ("low", "high", "none"):
            p.run("run", w, "-q", "stages.external.better=" + better)
            was, got = ([molfile(x)[0] for x in p.run("export", "sdf", "run", "--all", "--conformers", what)[1].split("$$$$\n")[:-1]] for what in ("all", "poses"))
            assert len(was) > 2 and len(got) == 1 and p.one("SELECT mean FROM score") == -5, (len(was), len(got))
            nearest = [max(distance(a, b) for a, b in zip(x, got[0]) if a[3] != "H") for x in was]
            assert nearest[0] < 2e-3 < 0.1 < min(nearest[1:]), (better, nearest)


def vina_by_hand(p, molecule, seed):
    """The best affinity that Vina writes for the file that a call got."""
    d = p.path("run", "scratch", molecule)
    subprocess.run(["vina", "--receptor", "1iep_pocket.pdbqt", "--config", "1iep_box.txt", "--ligand", "input.pdbqt", "--out", "again.pdbqt",
                    "--exhaustiveness", "1", "--num_modes", "1", "--cpu", "1", "--seed", seed], cwd=d, capture_output=True, check=True)
    text = open(os.path.join(d, "again.pdbqt")).read()
    assert text == open(os.path.join(d, "output.pdbqt")).read()
    energy = dict(re.findall(r"REMARK (INTRA|UNBOUND): +(\S+)", text))
    assert energy["INTRA"] == energy["UNBOUND"], text  # else the score is not that of the pose: Vina 1.2.3 with several modes
    return float(re.search(r"REMARK VINA RESULT: +(\S+)", text).group(1))


def three_ligands_get_the_scores_of_vina_by_hand():
    if shutil.which("vina") is None:
        skip("no vina (Debian: autodock-vina)")
    with Project() as p:
        for x in ("data/1iep_pocket.pdbqt", "data/1iep_box.txt", "dock.yaml"):
            os.makedirs(os.path.dirname(p.path("workflows", x)), exist_ok=True)
            shutil.copy(os.path.join(os.environ["MOLSIEVE_SOURCE"], "workflows", x), p.path("workflows", x))
        p.put("workflows/data/library.smi", "NC(=O)c1ccccc1 benzamide\nCC(=O)Oc1ccccc1C(=O)O aspirin\nC[Si](C)(C)C no\nNc1ncccn1 amine\n")
        args = ("workflows/dock.yaml", "-q", "workdir=" + p.path("run"), "stages.external.keep=all")
        p.run("run", *args)
        got = dict(p.rows("SELECT mol_id, mean FROM score"))
        assert set(got) >= {1, 2, 4} and all(-8 < x < -3 for x in got.values()), got
        for molecule in (1, 2, 4):
            assert got[molecule] == vina_by_hand(p, str(molecule), "1"), molecule
        # The poses have all atoms, hydrogens that pdbqt leaves out too, and the bonds that the molecule had.
        p.run("export", "sdf", "run", "--conformers", "poses", "-o", p.path("poses.sdf"))
        poses = open(p.path("poses.sdf")).read().split("$$$$\n")[:-1]
        per = [sum(x.split("\n")[0] == name for x in poses) for name in ("benzamide", "aspirin")]
        assert per == [open(p.path("run", "scratch", k, "output.pdbqt")).read().count("ENDMDL") for k in ("1", "2")], per
        for x in poses:
            atoms, _ = molfile(x)
            assert all(min(distance(a, b) for b in atoms if b is not a) > 0.9 for a in atoms), x
            assert all(min(distance(a, b) for b in atoms if b[3] != "H") < 1.15 for a in atoms if a[3] == "H"), x
        text = open(p.path("run", "scratch", "2", "input.pdbqt")).read()
        atoms = [line for line in text.splitlines() if line.startswith("ATOM")]
        assert "REMARK  Name = 2" in text and "TORSDOF 3" in text and len(atoms) == 13, text
        assert [a[68:].split() for a in atoms if a[13] == "O"][2:] == [["-0.425", "OA"], ["-0.251", "OA"]], text  # as obabel --partialcharge gasteiger


def a_score_that_may_stand_for_none_is_told():
    with Project() as p:
        told = "SELECT level, message FROM event WHERE message LIKE '%999%'"
        p.run("run", project(p, ["CCO", "CCOC", "CCl", "CCN"]), "-q")
        assert p.rows(told) == []  # one molecule may have it
        err = p.run("run", project(p, ["CCO", "CCOC", "CCl", "CBr", "CCN"]), "-q")[2]
        want = ("points is 999 for 2 molecules, and between 3 and 4 for others, and ranked as a score: if the program means that it has none, "
                "let it print no number")
        assert p.rows(told) == [("warn", want)] and want in err, err


def a_retry_continues_a_run_whose_program_was_gone():
    """The program cannot be started, so the run ends and no molecule is to blame; retry does not say that nothing is left to do."""
    gone = "#!/bin/sh\n[ -e stay ] || mv %s %s\necho points 3\n"
    with Project() as p:
        count = p.path("count")
        w = project(p, ["C", "CC", "CCO"], STAGE.replace('[sh, count.sh, "{input}"]', '[./count, "{input}"]').replace("    files: [count.sh]\n", ""))
        p.put("count", gone % (count, p.path("off")))
        os.chmod(count, 0o755)
        err = p.run("run", w, "-q", "-j", "1", expect=6)[2]
        assert "count: cannot be started" in err, err
        os.rename(p.path("off"), count)
        p.put("count", "#!/bin/sh\necho points 3\n")
        assert "nothing to retry" in p.run("retry", w, "--code", "crash")[2]
        err = p.run("retry", w, "-q")[2]
        assert err.startswith("molsieve: no failures are stored, but the last run did not finish: continuing it\n"), err
        assert p.one("SELECT count(*) FROM score") == 3
        assert "nothing to retry" in p.run("retry", w)[2]


if __name__ == "__main__":
    main([a_score_that_may_stand_for_none_is_told, a_file_that_changes_meanwhile_ends_the_run, long_numbers_keep_their_end, poses_are_structures_of_the_molecule, of_structures_with_equal_values_the_first_counts,
          three_ligands_get_the_scores_of_vina_by_hand, a_program_that_adds_fields_to_an_sdf_scores_batches,
          the_example_with_a_python_script_gives_its_numbers,
          a_retry_continues_a_run_whose_program_was_gone, a_bad_molecule_costs_only_itself_and_tells_why, every_format_gives_the_same_alone_and_in_batches,
          an_answer_in_another_place_costs_its_molecule, a_bad_molecule_of_a_batch_costs_only_itself, all_mistakes_are_told_at_once_with_their_lines,
          kills_shards_and_jobs_change_nothing, a_killed_run_leaves_no_program_and_no_folder, models_and_a_program_score_side_by_side, a_column_and_property_of_one_name_is_refused_in_a_condition])
