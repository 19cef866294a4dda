#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Configuration, help and demonstrations, from outside."""
import glob
import json
import os
import re
import resource
import shutil
import subprocess

from sieve import PROGRAM, Project, main

SOURCE = os.environ.get("MOLSIEVE_SOURCE", os.path.join(os.path.dirname(__file__), "../.."))

BAD = """\
format: 1
nmae: typo
seed: -4
workers: many
workdir: [a]
limits:
  failures: {max_fraction: 2, max_count: x}
  max_time: 1:30
  disk_free_min: 5 parsecs
storage:
  journal: wall
inputs:
  - {path: nothing/*.smi}
  - {path: lib.sim}
  - {format: smi}
models:
  m: {path: none.safetensors, sha256: abc}
stages:
  reed: {}
  read: {unit: 0100, needs: wriet}
  prepare:
    conformers: {source: generat, cpu_limit: 0s}
    max_atoms: "12"
    labels: {a: b}
    unit: 5
  graph: {cutoff: ${vars.cut}, edges: radius}
  rank: {top: 10}
  prepare2:
"""

WANTED = [
    "2:1: nmae: unknown setting, did you mean 'name'?; allowed: format, name,",
    "3:7: seed: -4 is outside 0 or more",
    "4:10: workers: 'many' is not understood; allowed: 1..4096 or auto",
    "5:10: workdir: found a list; allowed: a file name",
    "7:28: limits.failures.max_fraction: 2 is outside 0..1",
    "7:42: limits.failures.max_count: 'x' is not understood",
    "8:13: limits.max_time: '1:30' is not understood; allowed: 1s..366d or auto, written like 30s, 10m or 3h50m",
    "9:18: limits.disk_free_min: '5 parsecs' is not understood; allowed: 0B or more, written like 64MiB",
    "11:12: storage.journal: unknown choice 'wall', did you mean 'wal'?; allowed: auto, wal, truncate",
    "13:12: inputs.0.path: no file matches ",
    "14:12: inputs.1.path: ",
    "did you mean 'lib.smi'?",
    "15:5: inputs.2.path: required but not given",
    "17:13: models.m.path: ",
    "17:39: models.m.sha256: a SHA-256 has 64 digits",
    "19:3: stages.reed: unknown stage, did you mean 'read'?; allowed: read, prepare",
    "20:16: stages.read.unit: 0100 would be octal in YAML 1.1; write 100",
    "20:29: stages.read.needs: no stage 'wriet' in this workflow",
    "22:26: stages.prepare.conformers.source: unknown choice 'generat', did you mean 'generate'?",
    "22:46: stages.prepare.conformers.cpu_limit: 0s is outside",
    '23:16: stages.prepare.max_atoms: "12" in quotes is text; write the number without quotes',
    "24:13: stages.prepare.labels: found a map; allowed: a list of texts",
    "25:5: stages.prepare.unit: unknown setting",
    "26:19: ${vars.cut}: no such variable under vars",
    "27:9: stages.rank.objectives: required but not given",
    "28:3: stages.prepare2: unknown stage, did you mean 'prepare'?",
]


def all_problems_of_a_file_are_reported_with_their_places():
    with Project() as p:
        p.put("lib.smi", "C methane\n")
        # In flow style ${...} needs quotes; this file tests all other cases.
        p.put("w.yaml", BAD.replace("cutoff: ${vars.cut}", "cutoff: '${vars.cut}'"))
        for command in ("check", "run", "plan"):
            _, out, err = p.run(command, "w.yaml", expect=2)
            assert out == "", out
            for text in WANTED:
                assert ("w.yaml:" + text in err) or (not text[0].isdigit() and text in err), (command, text, err)
            places = [tuple(map(int, m)) for m in re.findall(r"^w\.yaml:(\d+):(\d+): ", err, re.M)]
            assert places == sorted(places) and len(places) == len(WANTED) - 1, (len(places), len(WANTED))
            assert not os.path.exists(p.path("runs")), "a bad configuration must leave nothing behind"
        _, out, _ = p.run("check", "--json", "w.yaml", expect=2)
        found = json.loads(out)
        assert found["ok"] is False and len(found["problems"]) == len(WANTED) - 1
        assert all(x["file"] == "w.yaml" and x["line"] > 0 and x["column"] > 0 for x in found["problems"])


def syntax_that_is_not_a_workflow_is_refused_in_one_line():
    cases = {
        "": "the file is empty", "a: [": "not YAML", "- x": "a workflow starts with", "just text": "a workflow starts with",
        "format: 1\nformat: 1\nstages: {read: {}}\n": "2:1: format: given twice", "format: 1\n\tx: 1\n": "2:1: a tab",
        "format: 1\nstages: {read: {}}\n---\nformat: 1\n": "3:1: a second document",
        "stages: {read: {}}\n": "format: required but not given", "format: 2\nstages: {read: {}}\n": "1:9: format: 2 is outside",
        "format: 1\n": "stages: required", "format: 1\nstages: {}\n": "stages: names of stages",
        "format: 1\nname: \xff\n": "not UTF-8", "format: 1\nname: !!python/object:os.system x\n": "tags",
    }
    with Project() as p:
        for text, want in cases.items():
            p.put("w.yaml", text.encode("latin-1"))
            _, _, err = p.run("check", "w.yaml", expect=2)
            assert want in err, (text, want, err)
        _, _, err = p.run("check", "absent.yaml", expect=2)
        assert "absent.yaml: No such file" in err, err
        _, _, err = p.run("check", ".", expect=2)
        assert "not a regular file" in err, err
        os.mkfifo(p.path("pipe.yaml"))
        p.run("check", "pipe.yaml", expect=2, stdin=subprocess.DEVNULL)
        bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
            "a%d: &a%d [%s]\n" % (i, i, ",".join(["*a%d" % (i - 1)] * 10)) for i in range(1, 40))
        p.put("w.yaml", bomb)
        _, _, err = p.run("check", "w.yaml", expect=2)
        assert "more than 100,000 values" in err, err
        # Nested variables, long values repeated by aliases, and values of the environment are refused without using much memory.
        head = "format: 1\nname: x\nvars:\n  v0: %s\n" % ("x" * 100)
        grow = head + "".join("  v%d: %s\n" % (i, ("${vars.v%d}" % (i - 1)) * 10) for i in range(1, 8)) + "inputs: []\nstages: {read: {}}\n"
        many = head + "inputs: [%s]\nstages: {read: {}}\n" % ", ".join(['"%s"' % ("${env:LONG}" * 9)] * 5)
        alias = "a: &a %s\nb: [%s]\n" % ("y" * 100000, ",".join(["*a"] * 5000))
        for text, want in ((grow, "w.yaml:8:7: texts with ${...} come to more than 1 MiB"), (many, "come to more than 1 MiB"),
                           (alias, "more than 10 MiB of text once its aliases")):
            p.put("w.yaml", text)
            _, _, err = p.run("check", "w.yaml", expect=2, env=dict(os.environ, LONG="z" * 100000),
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (600 << 20, 600 << 20)))
            assert want in err and len(err) < 20000, (want, err[:2000])


GOOD = """\
format: 1
name: small
seed: ${env:MOLSIEVE_TEST_SEED:-5}
vars: {top: 3}
inputs:
  - path: lib.smi
stages:
  read: {unit: 10}
  prepare: {conformers: {source: %s}}
  rank:
    objectives: [{property: mw, goal: minimise}]
    top: ${vars.top}
"""


EVIL = r'''"\e]0;owned\a\x9b2J\u202E\u2066z"'''
CONTROLS = re.compile("[\\x00-\\x09\\x0b-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069]")


def terminal_controls_in_a_workflow_are_never_printed():
    """Control characters in names, keys and values, valid or not, in each command that reads a workflow."""
    with Project() as p:
        p.put("lib.smi", "C methane\nCC\n")
        good = GOOD % "none"
        wrong = [(good.replace("name: small", "name: " + EVIL), 2), (good + "  %s: {}\n" % EVIL, 2), (good + "%s: 1\n" % EVIL, 2),
                 (good.replace("minimise", EVIL), 2), (good.replace("mw", EVIL), 0), (good.replace("{unit: 10}", "{%s: 10}" % EVIL), 2),
                 (good.replace("{unit: 10}", "{unit: %s}" % EVIL), 2), (good.replace("path: lib.smi", "path: " + EVIL), 2),
                 (good.replace("{unit: 10}", "{unit: ${vars.a%s}}" % EVIL[1:-1]), 2), (good.replace("top: ${vars.top}", "where: " + EVIL), 2),
                 (good.replace("inputs:", "models: {%s: {path: none}}\ninputs:" % EVIL), 2),
                 (good.replace("{top: 3}", "{top: 3, %s: %s}" % (EVIL, EVIL)), 2),
                 (good.replace("{top: 3}", "{top: 3, x: %s}" % EVIL), 0)]
        for text, status in wrong:
            p.put("w.yaml", text)
            for command in (["check", "w.yaml"], ["check", "w.yaml", "--show"], ["check", "w.yaml", "--json"], ["run", "w.yaml"], ["run", "w.yaml", "--dry-run"]):
                _, out, err = p.run(*command, expect=None)
                assert not CONTROLS.search(out + err), (command, text, out + err)
                assert status == p.run("check", "w.yaml", expect=None)[0], (text, err)
        for words in (["run", "w.yaml", "\x1b[2J\u202e=1"], ["top", "\x1b[2J"], ["\x1b[2J\u202e"], ["run", "--\x1b[2J"], ["help", "\x1b[2J"]):
            _, out, err = p.run(*words, expect=None)
            assert not CONTROLS.search(out + err), (words, out + err)


def terminal_controls_are_escaped_in_json():
    """Control characters in paths and names, in the JSON of `check`, `status` and `doctor`; parsed, it has the original text."""
    name = "a\x9b2J\u202e\x85.yaml"
    with Project() as p:
        p.put("lib.smi", "C methane\nCC\n")
        p.put(name, (GOOD % "none").replace("name: small", "name: " + EVIL))
        p.put("good.yaml", (GOOD % "none").replace("name: small", 'name: small\nworkdir: "r\\x9b\\u202E"'))
        p.run("run", "good.yaml", "-q", expect=None)
        for command in (["check", name, "--json"], ["check", "good.yaml", "--json"], ["status", "good.yaml", "--json"]):
            _, out, err = p.run(*command, expect=None)
            assert not CONTROLS.search(out), (command, out)
            assert "\\u009b" in out, (command, out)
            json.loads(out)


def where_each_value_comes_from_is_shown():
    with Project() as p:
        p.put("lib.smi", "C methane\n")
        p.put("w.yaml", GOOD % "none")
        _, out, _ = p.run("check", "w.yaml", "--show", "stages.read.unit=7", "vars.top=9")
        line = {x.split("#")[0].strip(): x.split("#")[1].strip() for x in out.splitlines() if "#" in x}
        assert line["unit: 7"] == "command line", line
        assert line["top: 9"] == "w.yaml:12:10", line
        assert line["seed: 5"] == "w.yaml:3:7", line
        assert line["max_fraction: 0.1"] == "default", line
        assert p.path("runs/small") in out
        p.put("again.yaml", out)  # the effective file is a workflow itself
        _, again, _ = p.run("check", "again.yaml", "--show")
        strip = re.compile(r" *#.*")
        assert strip.sub("", again) == strip.sub("", out)
        _, out, _ = p.run("check", "w.yaml", "--show", env=dict(os.environ, MOLSIEVE_TEST_SEED="6"))
        assert "seed: 6" in out
        _, _, err = p.run("check", "w.yaml", "stages.read.unti=7", "seed=x", expect=2)
        assert "command line: stages.read.unti: unknown setting, did you mean 'unit'?" in err, err
        assert "command line: seed: 'x' is not understood" in err, err
        _, _, err = p.run("check", "w.yaml", "stages.write.csv=x.csv", expect=2)
        assert "write +stages.write.csv=x.csv" in err, err
        _, out, _ = p.run("check", "w.yaml", "+stages.write.csv=x.csv")
        assert "stages   read, prepare, rank, write" in out, out


def commands():
    text = subprocess.run([PROGRAM, "--help"], capture_output=True, text=True, check=True).stdout
    return [line.split()[0] for line in text.splitlines() if re.match(r"  [a-z]", line)]


def stages():
    text = subprocess.run([PROGRAM, "help", "stages"], capture_output=True, text=True, check=True).stdout
    return [line.split()[0] for line in text.splitlines()]


def every_command_stage_and_topic_has_help():
    with Project() as p:
        assert len(commands()) >= 15 and len(stages()) == 12, (commands(), stages())
        man = p.run("help", "--man")[1]
        for name in commands():
            _, out, err = p.run("help", name)
            assert "usage: molsieve " + name in out and err == ""
            assert p.run(name, "--help")[1] in out, name  # `help train` also tells about the stage
            assert "molsieve %s" % name in man.replace("\\-", "-"), name
            _, out, err = p.run(name, "--no-such-option", expect=2)
            assert out == "" and "unknown option '--no-such-option'" in err, (name, err)
        for name in stages():
            out = p.run("help", name)[1]
            assert "Settings, under `stages: %s:`" % name in out or "No settings" in out
        for topic in ("yaml", "workflow", "exit-codes", "environment"):
            assert len(p.run("help", topic)[1]) > 100
        _, _, err = p.run("help", "grahp", expect=2)
        assert "did you mean 'graph'?" in err, err
        assert p.run("--version")[1].startswith("molsieve ") and p.run("--version")[1].count("\n") == 1
        details = p.run("--version", "-v")[1]
        assert all(word in details for word in ("commit", "compiler", "sqlite", "libyaml", "zlib", "cpu")), details
        _, out, err = p.run(expect=2)
        assert out == "" and "usage: molsieve COMMAND" in err
        if shutil.which("man"):
            p.put("molsieve.1", man)
            done = subprocess.run(["man", "--warnings", "-l", p.path("molsieve.1")], capture_output=True, text=True,
                                  env=dict(os.environ, MANPAGER="cat", MANWIDTH="200", LC_ALL="C.UTF-8"))
            assert "EXIT" in done.stdout.upper() and "warning" not in done.stderr, done.stderr[:500]


def completion_scripts_are_valid_and_complete():
    with Project() as p:
        bash = p.put("c.bash", p.run("completion", "bash")[1])
        subprocess.run(["bash", "-n", bash], check=True)

        def complete(*words):
            script = 'source "%s"; COMP_WORDS=(%s); COMP_CWORD=%d; _molsieve; printf "%%s\\n" "${COMPREPLY[@]}"' % (
                bash, " ".join("'%s'" % w for w in words), len(words) - 1)
            return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, cwd=p.dir).stdout.split()

        assert set(commands()) <= set(complete("molsieve", ""))
        assert complete("molsieve", "ch") == ["check"]
        assert "--show" in complete("molsieve", "check", "--")
        assert complete("molsieve", "help", "gra") == ["graph"]
        assert complete("molsieve", "export", "sd") == ["sdf"]
        assert complete("molsieve", "run", "--until", "bas") == ["basis"]
        for shell in ("zsh", "fish"):
            script = p.put("c." + shell, p.run("completion", shell)[1])
            assert all(name in open(script).read() for name in commands())
            if shutil.which(shell):
                subprocess.run([shell, "-n", script], check=True)
        _, _, err = p.run("completion", "tcsh", expect=2)
        assert "allowed: bash, zsh or fish" in err


def committed_files_match_the_tables_they_are_made_from():
    with Project() as p:
        for option, name in (("--defaults", "default.yaml"), ("--schema", "workflow.schema.json")):
            want = p.run("help", option)[1]
            with open(os.path.join(SOURCE, "configs", name)) as f:
                assert f.read() == want, "configs/%s is stale: molsieve help %s > configs/%s" % (name, option, name)
        schema = json.loads(p.run("help", "--schema")[1])
        assert set(schema["properties"]["stages"]["properties"]) == set(stages())
        assert schema["additionalProperties"] is False
        try:
            import jsonschema
            import yaml
        except ImportError:
            return
        check = jsonschema.Draft202012Validator(schema)
        jsonschema.Draft202012Validator.check_schema(schema)
        p.put("lib.smi", "C\n")
        p.put("w.yaml", GOOD % "none")
        assert list(check.iter_errors(yaml.safe_load(GOOD % "none"))) == []
        bad = yaml.safe_load(GOOD % "nun")
        bad["stages"]["read"]["unit"] = 0
        bad["stages"]["raed"] = {}
        assert len(list(check.iter_errors(bad))) == 3


def common_mistakes_are_answered_with_what_to_write():
    with Project() as p:
        p.put("lib.smi", "C methane\n")
        start = "format: 1\ninputs: [{path: lib.smi}]\nstages:\n  read: {}\n  prepare: {conformers: {source: none}}\n"
        for text, want in (
                (start + "rank: {top: 5}\n", "w.yaml:6:1: rank: unknown setting, did you mean stages.rank?"),
                (start + "workdir: ~/runs\n", "workdir: ~/runs: only a shell expands ~; write ${env:HOME}"),
                (start + "workdir: $SCRATCH/a\n", "only a shell expands $SCRATCH; write ${env:SCRATCH}"),
                (start + "scheduler: {time: 720}\n", "'720' is not understood; allowed: 1m..366d or auto, written like 30s, 10m"),
                (start + "scheduler: {time: '12:00:00'}\n", "'12:00:00' is not understood; allowed: 1m..366d or auto, written"),
                (start + "scheduler: {memory: 16000}\n", "'16000' is not understood; allowed: 0B or more, written like 64MiB"),
                (start.replace("[{path: lib.smi}]", "[lib.smi]"), "inputs.0: settings are expected here, such as path: lib.smi\nm"),
                (start.replace("[{path: lib.smi}]", "lib.smi"), "inputs: 'lib.smi' is not understood; allowed: a list such as [{path: ...}]"),
                (start.replace("[{path: lib.smi}]", "[{path: *.smi}]"), "put a value that begins with * in quotes"),
                (start.replace("conformers", "labels: [gap], conformers") + "  graph: {}\n  split: {}\n  train: {targets: [{name: mu}]}\n",
                 "stages.train: the label mu is not among stages.prepare.labels; add it there"),
                (start.replace("format: 1\n", ""), "format: required but not given; 1 (")):
            p.put("w.yaml", text)
            _, _, err = p.run("check", "w.yaml", expect=2)
            assert want in err, (text, err)
        p.put("w.yaml", start + "limits: {disk_free_min: 0}\n")
        p.run("check", "w.yaml")
        _, _, err = p.run("run", "w.yaml", "--until", "prep", expect=2)
        assert "no such stage; its stages: read, prepare" in err, err
        p.run("run", "w.yaml", "--max-time", "90", expect=2)


AMERICAN = """format: 1
inputs: [{path: lib.csv}]
stages:
  read: {}
  prepare: {neutralize: true, labels: [y], conformers: {source: generate}}
  graph: {edges: radius, max_neighbors: 7}
  split: {}
  train: {targets: [{name: y}], optimizer: {lr: 0.003}, %s}
  rank: {objectives: [{property: mw, goal: maximize}]}
"""


def settings_of_nothing_and_lists_in_lists_are_answered():
    """Each text of the settings as null, and each list with a list in it: checked, or refused with its place."""
    train = "format: 1\nname: w\ninputs: [{path: lib.smi}]\nstages:\n  read: {}\n  prepare: {}\n  graph: {}\n  split: {}\n" \
            "  train: {targets: [{name: logS, unit: 'log10(mol/L)'}]}\n"
    screen = "format: 1\nname: w\ninputs: [{path: lib.smi}]\nmodels: {m: {path: %s/workflows/models/esol.safetensors}}\nstages:\n  read: {}\n" \
             "  prepare: {}\n  graph: {}\n  score: {models: [m]}\n  rank: {objectives: [{property: logS, goal: maximise}]}\n" % SOURCE
    with Project() as p:
        p.put("lib.smi", "C\n")
        for text, settings in ((train, ("train.targets.0.unit", "train.targets.0.name", "train.targets.0.column", "train.name", "train.family",
                                        "split.method", "prepare.labels", "prepare.alerts")),
                               (screen, ("score.models", "score.models.0", "rank.objectives.0.property", "rank.where", "rank.objectives"))):
            p.put("w.yaml", text)
            for setting in settings:
                for value in ("", "[]", "[[]]", "{}"):
                    status, _, err = p.run("check", "w.yaml", "stages.%s=%s" % (setting, value), expect=None)
                    assert status in (0, 2), (setting, value, status, err)
                    assert status == 0 or "command line" in err or "w.yaml:" in err, (setting, value, err)
        assert p.run("check", "w.yaml", "stages.score.models.0=[]", expect=2)[2].count("found a list") == 1


def american_spellings_are_read_as_british_ones():
    with Project() as p:
        p.put("lib.csv", "smiles,y\nC,1\nCC,2\n")
        p.put("lib.smi", "C methane\n")
        texts = (AMERICAN % "epochs: 2").replace("iz", "is").replace("bors", "bours").replace("sise", "size"), AMERICAN % "epochs: 2"
        shown = []
        for text in texts:
            p.put("w.yaml", text)
            shown.append(re.sub(" *#.*", "", p.run("check", "w.yaml", "--show", "stages.train.optimizer.min_lr=0.001")[1]))
        assert shown[0] == shown[1]
        for words in ("neutralise: true", "max_neighbours: 7", "lr: 0.003", "min_lr: 0.001", "goal: maximise"):
            assert words in shown[0], words
        p.put("twice.yaml", AMERICAN % "optimiser: {lr: 0.1}")
        _, _, err = p.run("check", "twice.yaml", expect=2)
        assert "twice.yaml:8:" in err and "stages.train.optimiser.lr: given twice, in two spellings; remove one" in err, err
        p.put("m.sdf", p.run("conformers", "lib.smi")[1])
        assert p.run("energy", "m.sdf", "--minimize")[1] == p.run("energy", "m.sdf", "--minimise")[1]
        schema = p.run("help", "--schema")[1]
        british = set(re.findall(r'"([a-z_]*(?:is[eai]|our|centre)[a-z_]*)"', schema)) - {"journal", "noise", "denoise", "precision", "precision_of", "source"}
        assert british == {"max_neighbours", "maximise", "minimise", "neutralise", "optimiser"}, british  # pipeline/base/spelling.c
        for word in ("max_neighbors", "maximize", "minimize", "neutralize", "optimizer"):
            assert '"%s"' % word in schema, word


def graphs_without_positions_are_refused_where_a_network_reads():
    start = "format: 1\ninputs: [{path: lib.smi}]\nstages:\n  read: {}\n  prepare: {conformers: {source: none}, labels: [mu]}\n"
    flat = start + "  graph: {edges: topology}\n"
    model = "models: {m: {path: %s}}\n" % os.path.join(os.environ["MOLSIEVE_SOURCE"], "workflows/models/esol.safetensors")
    with Project() as p:
        p.put("lib.smi", "C methane\nCCO ethanol\n[Na+] ion\n")
        for text, want in (
                (start + "  graph: {edges: bonds}\n", "edges: bonds needs 3D structures, but prepare has conformers.source: none"),
                (flat + "  basis: {}\n", "graphs with edges: topology have no positions, so there are no bases"),
                (flat + "  split: {}\n  train: {targets: [{name: mu}]}\n", "a network needs positions, and graphs with edges: topology have none"),
                (flat + "  score: {models: [m]}\n" + model, "edges: topology has no positions, but model esol is a network")):
            p.put("w.yaml", text)
            _, _, err = p.run("run", "w.yaml", expect=2)
            assert want in err and "nothing was done" in err, (text, err)
        p.put("w.yaml", flat)
        _, out, _ = p.run("run", "w.yaml")
        assert "3 records: 3 ok" in out, out
        p.run("db", "check", "w.yaml")


def a_path_with_blanks_can_be_copied_from_the_screen():
    with Project() as p:
        os.mkdir(p.path("M\u00e4rz 2"))
        p.put("M\u00e4rz 2/it's.smi", "C methane\nC[Qq] odd\nCC ethane\n" + "C[Qq] odd\n" * 9)
        p.put("M\u00e4rz 2/w.yaml", "format: 1\nname: a b\ninputs: [{path: it's.smi}]\nlimits: {failures: {max_fraction: 1}}\n"
              "stages:\n  read: {}\n  prepare: {conformers: {source: none}}\n")
        _, out, _ = p.run("run", "M\u00e4rz 2/w.yaml")
        assert "12 records: 2 ok, 0 duplicate, 0 filtered, 10 failed -> 2 molecules\n" in out, out  # no stage scores or ranks
        lines = [x.strip() for x in out.split("next:\n")[1].splitlines()]
        assert len(lines) == 4, out
        for line in lines:
            env = dict(os.environ, PATH=os.path.dirname(PROGRAM) + ":" + os.environ["PATH"])
            subprocess.run(line, shell=True, cwd=p.dir, env=env, check=True, capture_output=True)
        # failures in the order of the file, and a code that no failure has
        _, out, _ = p.run("failures", "M\u00e4rz 2/w.yaml", "--code", "parse")
        assert [int(n) for n in re.findall(r"smi:(\d+) ", out)] == [2] + list(range(4, 13)), out
        # the table shows one message, and says how many others there are
        assert "other message" not in out, out
        p.put("bad.smi", "CC(C a\nC[Qq] b\nCC) c\nCCO d\n")
        p.put("bad.yaml", "format: 1\nname: bad\nworkdir: bad\ninputs: [{path: bad.smi}]\nlimits: {failures: {max_fraction: 1}}\n"
              "stages:\n  read: {}\n  prepare: {conformers: {source: none}}\n")
        p.run("run", "bad.yaml", "-q")
        assert re.search(r"^ +3 +prepare +parse .*\n {33}and 2 other messages$", p.run("failures", "bad.yaml")[1], re.M), p.run("failures", "bad.yaml")[1]
        assert "no such failures; without" in p.run("failures", "M\u00e4rz 2/w.yaml", "--code", "odd")[1]
        for words, n in ((("--csv",), 4), (("--csv", "-n", "2"), 3), (("--json", "--limit", "1"), 1), (("--csv", "-n", "0"), 4), (("--json", "-n", "9"), 3)):
            assert len(p.run("failures", "bad.yaml", *words)[1].splitlines()) == n, words
        listed = p.run("failures", "bad.yaml", "-n", "2")[1].split("\n\n")[1].splitlines()
        assert len(listed) == 3 and "bad.smi:2 b C[Qq]: " in listed[1] and listed[2] == "... the first 2; --limit 0 lists all", listed
        assert len(p.run("failures", "bad.yaml", "-n", "0")[1].split("\n\n")[1].splitlines()) == 3
        assert "bad.smi" not in p.run("failures", "bad.yaml")[1]
        # the reason of a rerun is in the log
        _, _, err = p.run("run", "M\u00e4rz 2/w.yaml", "stages.prepare.max_atoms=99")
        assert "prepare: runs again: max_atoms: 1000 -> 99" in err, err


def a_dumb_terminal_gets_lines_and_a_full_disk_one_message():
    with Project() as p:
        p.put("w.yaml", "format: 1\ninputs: [{path: lib.smi}]\nstages:\n  read: {}\n")
        p.put("lib.smi", "C methane\n")
        for term, drawn in (("xterm", True), ("dumb", False)):
            master, slave = os.openpty()
            child = subprocess.Popen([PROGRAM, "run", "w.yaml", "workdir=" + term], cwd=p.dir, stdout=subprocess.DEVNULL,
                                     stderr=slave, env=dict(os.environ, TERM=term))
            assert child.wait(60) == 0
            seen = os.read(master, 65536)
            assert (b"\033" in seen) == drawn and b"done in" in seen, (term, seen)
            os.close(master)
            os.close(slave)
        for args in (("report", "dumb", "-o", "-"), ("status", "dumb")):
            full = subprocess.run([PROGRAM, *args], cwd=p.dir, stdout=open("/dev/full", "w"), stderr=subprocess.PIPE)
            assert full.returncode == 6 and full.stderr.count(b"\n") == 1 and b"standard output" in full.stderr, full
        # What is written molecule by molecule stops at the first.
        full = subprocess.run([PROGRAM, "conformers", "lib.smi", "--device", "cpu"], cwd=p.dir, stdout=open("/dev/full", "w"), stderr=subprocess.PIPE)
        assert full.returncode == 6 and full.stderr == b"molsieve: standard output: No space left on device\n", full


def a_demonstration_that_was_not_copied_in_full_is_copied_again():
    """A limit on the size of files stands for a full disk."""
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (50000, 50000))
    with Project() as p:
        done = subprocess.run([PROGRAM, "init", "demo"], cwd=p.dir, preexec_fn=limit, capture_output=True, text=True)
        assert done.returncode == 6 and not os.path.exists(p.path("demo/workflows")), done
        p.run("init", "demo")
        assert sorted(os.listdir(p.path("demo"))) == [".gitignore", "workflows"]
        p.run("check", "demo/workflows/screen.yaml")


def a_demonstration_names_only_files_it_has_and_has_one_kind():
    """Also when an init of another kind was stopped before it in the same folder."""
    with Project() as p:
        for kind, other in (("screen", "train"), ("train", "screen"), ("", "train")):
            folder = kind or "all"
            os.makedirs(p.path(folder, "workflows.part"))
            p.put(folder + "/workflows.part/%s-left.yaml" % other, "format: 1\n")
            p.run("init", *[kind] * (kind != ""), folder)
            found = sorted(os.path.basename(f) for f in glob.glob(p.path(folder, "workflows/*.yaml")))
            assert found and all(f.startswith(kind) and "left" not in f for f in found) and not os.path.exists(p.path(folder, "workflows.part")), found
            pages = glob.glob(p.path(folder, "workflows/**/README.md"), recursive=True)
            assert len(pages) == (2 if kind == "train" else 4), pages
            assert os.listdir(p.path(folder, "workflows/models")) == ["esol.safetensors"]  # of the supplied models that which they name
            there = ["/" + f for f in glob.glob("**", root_dir=p.path(folder), recursive=True)]
            for page in pages:
                text = open(page).read()
                names = re.findall(r"\]\(([^)#:]+)\)", text)
                names += re.findall(r"[\w./-]+\.(?:yaml|py|smi|csv|safetensors|smarts|pdbqt|txt|sdf)\b", text) if "jobs of" not in text else []
                for name in set(names) - {"environment.yml", "hits.csv", "results.db", "versions.yml"}:
                    assert any(f.endswith("/" + name) for f in there), (page, name)
            main = open(p.path(folder, "workflows/README.md")).read()
            assert all("`%s`" % f in main for f in found), (found, main)


def the_demonstration_is_copied_and_runs():
    with Project() as p:
        _, out, _ = p.run("init", "demo")
        assert "molsieve run workflows/screen.yaml" in out and "demo/.gitignore: keeps runs/ and databases out" in out, out
        ignored = open(p.path("demo/.gitignore")).read().split("\n")
        assert "/runs/" in ignored and "*.db" in ignored and "*.ckpt" in ignored
        for path in glob.glob(p.path("demo/workflows/*.yaml")):
            assert re.search(r"(?m)^workdir: \.\./runs/", open(path).read()), path
        for name in ("workflows/screen.yaml", "workflows/data/library.smi"):
            assert os.path.exists(p.path("demo", name)), name
        _, _, err = p.run("init", "demo", expect=2)
        assert "nothing was overwritten" in err, err
        for name in glob.glob(p.path("demo/workflows/*.yaml")):
            status, out, err = p.run("check", name, expect=None)
            for line in err.splitlines()[:-1]:  # a model or data set may have to be made first; everything else must be there
                assert "paths are relative to the workflow file" in line, line
        # what would fail only after hours is found before any work
        screen = "demo/workflows/screen.yaml"
        if os.path.exists(p.path("demo/workflows/models/esol.safetensors")):
            _, _, err = p.run("check", screen, "stages.rank.objectives.0.property=logs", expect=2)
            assert "\"logs\" is predicted by no model here and is no descriptor, did you mean 'logS'?; allowed: logS, n_atoms" in err, err
            _, _, err = p.run("check", screen, "models.esol.sha256=" + "0" * 64, expect=2)
            assert "the workflow expects 0000" in err, err
        _, _, err = p.run("check", screen, "inputs.0.format=xxyz", expect=2)
        assert "inputs.0.format: 'xxyz' is no known format" in err, err
        assert "nobody" not in p.run("check", screen, "inputs.0.format=cml", expect=None)[2]
        os.mkdir(p.path("t"))
        p.put("t/.gitignore", "mine")
        assert "t/.gitignore: existed and was not changed" in p.run("init", "train", "t")[1]
        assert open(p.path("t/.gitignore")).read() == "mine"
        assert not os.path.exists(p.path("t/workflows/screen.yaml"))
        assert os.path.exists(p.path("t/workflows/train-esol.yaml"))
        p.put("x", "a file where the folder should be")
        _, _, err = p.run("init", "x", expect=6)
        assert "molsieve:" in err, err
        p.run("init", "a", "b", expect=2)


def a_workflow_writes_where_it_says_and_nowhere_else():
    start = "format: 1\nname: e2e\nworkdir: run\ninputs: [{path: a.smi}]\n"
    rank = "stages:\n  read: {}\n  prepare: {conformers: {source: none}}\n"
    score = rank.replace("source: none", "source: auto") + "  graph: {edges: bonds}\n  score: {models: [m]}\n  rank: {objectives: [{property: logS, goal: maximise}]}\n"
    model = "models: {m: {path: %s}}\n" % os.path.join(os.environ["MOLSIEVE_SOURCE"], "workflows/models/esol.safetensors")
    with Project() as p:
        p.put("a.smi", "CCO ethanol\n")
        os.symlink("a.smi", p.path("link"))
        out = "leads out of the workdir"
        for text, want in (
                (start + "storage: {results: ../r.db}\n" + rank, out), (start + "storage: {features: a/../../f.db}\n" + rank, out),
                (start + "storage: {results: ..}\n" + rank, out), (start.replace("e2e", "..") + rank, "no dot in front"),
                (start.replace("e2e", "a/b") + rank, "no / and"), (start + model + score + "  write: {csv: ../hits.csv}\n", out),
                (start + model + score + "  write: {csv: a/b/../../../hits.csv}\n", out),
                (start + model + score + "  write: {csv: results.db}\n", "a file of the run itself"),
                (start + model + score + "  write: {csv: ~/h.csv}\n", "~ and $ are not expanded here"),
                (start + model + score + "  write: {csv: ./features.db}\n", "a file of the run itself"),
                (start + model + score + "  write: {csv: x, smi: ./x}\n", "written twice"),
                (start.replace("workdir: run", "workdir: .") + model + score + "  write: {smi: a.smi}\n", "that the run reads"),
                (start + model + score + "  write: {smi: %s}\n" % p.path("link"), "that the run reads")):
            _, _, err = p.run("check", p.put("w.yaml", text), expect=2)
            assert want in err, (text, err)
        for good in (start + "storage: {results: ..r..db}\n" + rank, start + model + score + "  write: {csv: %s}\n" % p.path("h")):
            p.run("check", p.put("w.yaml", good))
        p.run("run", p.put("w.yaml", start + rank), "-q")
        assert sorted(os.listdir(p.dir)) == ["a.smi", "link", "run", "w.yaml"]


if __name__ == "__main__":
    main([v for v in list(globals().values()) if callable(v) and getattr(v, "__module__", "") == "__main__"
          and v.__name__ not in ("commands", "stages")])
