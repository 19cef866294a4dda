#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the pages and the help say about files, commands, settings and tests is there."""
import csv
import glob
import json
import os
import re
import shlex

from sieve import Project, main

SOURCE = os.environ.get("MOLSIEVE_SOURCE", os.path.join(os.path.dirname(__file__), "../.."))
FOLDERS = "*.md", "docs/*.md", "docs/decisions/*.md", "docs/benchmarks/*.md", "workflows/*.md", "workflows/data/*.md", "configs/*.md", "tests/*.md", "tests/bench/results/*.md"
ROOMS = "pipeline|chem|models|stages|tests|docs|scripts|configs|cmake|workflows|LICENSES|base|unit|cli|crash|twin|fuzz|golden|hpc|oom|prop|emulator|bench|data"
OURS = "stages|scheduler|limits|storage|inputs|models|vars"


def read(name):
    with open(os.path.join(SOURCE, name)) as f:
        return f.read()


def pages():
    """Name and text of every page."""
    names = sorted(os.path.relpath(x, SOURCE) for folder in FOLDERS for x in glob.glob(os.path.join(SOURCE, folder)))
    assert len(names) > 30, names
    return [(name, read(name)) for name in names]


def anchors(text):
    heads = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in heads}


def links_and_names_of_files_lead_somewhere():
    n = 0
    for name, text in pages():
        here = os.path.dirname(name)
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            path, _, anchor = link.partition("#")
            if not re.match(r"https?:|mailto:", link):
                target = os.path.normpath(os.path.join(here, path)) if path else name
                assert os.path.exists(os.path.join(SOURCE, target)), "%s: no file %s" % (name, link)
                assert not anchor or anchor in anchors(read(target)), "%s: no heading %s" % (name, link)
                n += 1
        for path in re.findall(r"(?<![\w/.$}{~-])((?:%s)/[\w./*-]*[\w*])" % ROOMS, re.sub(r"\]\([^)]*\)", "]", text)):
            if re.search(r"[A-Z]{4}|/x\.c$|/cmd_x\.c$|golden/molecules_bench", path) and "README" not in path:
                continue  # made up: models/NAME.safetensors
            if re.fullmatch(r"docs/decisions/\d{4}", path) or re.fullmatch(r"decisions/\d{4}", path):
                path += "-*"
            places = [os.path.join(SOURCE, at, path) for at in ("", here, "workflows", "tests", "pipeline", "docs")]
            assert any(glob.glob(x) for x in places + [x + ".*" for x in places]), "%s: no file %s" % (name, path)
            n += 1
    assert n > 200, n


def node(schema, path):
    """Does the schema have this setting? A number stands for an entry of a list."""
    at = schema
    for part in path:
        for one in [at] + at.get("anyOf", []) + at.get("oneOf", []):
            if part in one.get("properties", {}):
                at = one["properties"][part]
                break
            if part.isdigit() and "items" in one or isinstance(one.get("additionalProperties"), dict):
                at = one["items"] if "items" in one else one["additionalProperties"]
                break
        else:
            return False
    return True


def commands_options_and_settings_that_are_named_exist():
    with Project() as p:
        names = [x.split()[0] for x in p.run("--help")[1].splitlines() if re.match(r"  [a-z]", x)]
        helps = {name: p.run("help", name)[1] for name in names}
        topics = ("yaml", "workflow", "environment", "exit-codes")
        stages = [x.split()[0] for x in p.run("help", "stages")[1].splitlines()]
        schema = json.loads(p.run("help", "--schema")[1])
        texts = pages() + [("quickstart", read("quickstart"))] + [("workflows/" + x, read("workflows/" + x))
                           for x in os.listdir(os.path.join(SOURCE, "workflows")) if x.endswith(".yaml")]
        texts += [("help " + x, p.run("help", x)[1]) for x in names + stages + list(topics)]
    for name, text in texts:
        for path in re.findall(r"molsieve [^`\n]*?(workflows/[\w./-]+)", text):
            assert os.path.exists(os.path.join(SOURCE, path)), "%s: `molsieve init` makes no %s" % (name, path)
    options = {name: set(re.findall(r"(?<![\w-])(--?[a-zA-Z][\w-]*)", helps[name])) | {"--help"} for name in names}
    n = 0
    for name, text in texts:
        for command, rest in re.findall(r"(?:(?<=\s)|(?<=`)|(?<=/)|^)molsieve +(?!or\b)([a-z]+)\b([^`\n|&;)]*)", text, re.M):
            if rest.startswith("/"):  # MOLSIEVE=.../molsieve tests/...
                continue
            assert command in names, "%s: no command %s" % (name, command)
            for option in re.findall(r"(?<=\s)(--?[a-zA-Z][\w-]*)", re.split(r"   | # ", rest)[0]):
                assert option in options[command], "%s: %s has no %s" % (name, command, option)
            n += 1
        for setting in re.findall(r"(?<![\w/.])\+?((?:%s)(?:\.\w+)+)(?![\w./*-])" % OURS, text):
            assert node(schema, setting.split(".")), "%s: no setting %s" % (name, setting)
            n += 1
    assert n > 200, n


def variables_that_are_named_are_read_and_those_that_are_read_are_named():
    known = set(re.findall(r"MOLSIEVE_[A-Z_]+", read("CMakeLists.txt")))
    for room in ("pipeline", "chem", "models", "stages", "tests", "cmake"):
        for x in glob.glob(os.path.join(SOURCE, room, "**", "*.*"), recursive=True):
            if re.search(r"\.(c|h|cpp|cuh?|py|cmake|txt)$", x):
                known |= set(re.findall(r"MOLSIEVE_[A-Z_]+", read(os.path.relpath(x, SOURCE))))
    named = {x for _, text in pages() for x in re.findall(r"\bMOLSIEVE_[A-Z_]+\b", text)}
    assert len(named) > 15 and not named - known, "nothing reads these: %s" % (named - known)
    asked = set()
    for x in glob.glob(os.path.join(SOURCE, "[cmps]*", "**", "*.c*"), recursive=True):
        if not os.path.relpath(x, SOURCE).startswith("cmake"):
            asked |= set(re.findall(r'getenv\("(MOLSIEVE_[A-Z_]+)"\)', read(os.path.relpath(x, SOURCE))))
    named |= set(re.findall(r"MOLSIEVE_[A-Z_]+", read("stages/topics.c")))
    assert len(asked) > 6 and not asked - named, "no page and no help names these: %s" % (asked - named)


def tests_that_are_named_exist():
    lists = "".join(read("tests/" + x) for x in os.listdir(os.path.join(SOURCE, "tests")) if x.endswith(".cmake"))
    scripts = "".join(read("tests/%s/%s" % (x, y)) for x in ("cli", "crash") for y in os.listdir(os.path.join(SOURCE, "tests", x)) if y.endswith(".py"))
    suites, n = set(re.findall(r"molsieve_(?:crash|e2e)\((\w+)", lists)) | {"ranks", "jobs"}, 0
    for name, text in pages():
        for suite, test in re.findall(r"(?<![\w./])(%s)\.([a-z_0-9]+)\*?" % "|".join(sorted(suites)), text):
            assert test in ("py", "c", "cmake", "md", "h") or re.search(r"\bdef " + test, scripts), "%s: no test %s.%s" % (name, suite, test)
            n += 1
    assert n > 20, n


def pages_and_program_agree_on_version_exit_codes_and_the_demonstration():
    with Project() as p:
        version = p.run("--version")[1].split()[1]
        codes = p.run("help", "exit-codes")[1]
    assert re.search(r"^## %s \(\d{4}-\d\d-\d\d\)$" % re.escape(version), read("CHANGELOG.md"), re.M)
    cited = re.search(r"^version: (\S+)\ndate-released: (\S+)$", read("CITATION.cff"), re.M)
    assert cited[1] == version and "## %s (%s)" % (version, cited[2]) in read("CHANGELOG.md"), cited[0]
    for number in re.findall(r"^ +(\d+)", codes, re.M):
        for name, start in (("README.md", "\nExit codes:"), ("docs/FORMATS.md", "\n## Exit codes")):
            assert re.search(r"\b%s\b" % number, read(name).split(start)[1].split("\n\n" if "README" in name else "\n## ")[0]), (name, number)
    screen = read("workflows/screen.yaml")
    assert screen[screen.index("format: 1"):] in read("README.md"), "README.md shows another screen than workflows/screen.yaml"


def own_data_is_trained_on_and_screened_as_the_page_says():
    page = read("docs/OWN-DATA.md")
    with open(os.path.join(SOURCE, "workflows/data/esol.csv"), newline="") as f:
        rows = sorted(csv.DictReader(f), key=lambda x: (len(x["smiles"]), x["smiles"]))[200:260]
    with Project() as p:
        for name, text in re.findall(r"```yaml\n# (\S+)\n(.*?)```", page, re.S):
            p.put(name, text)
        values = [">10", "n.d.", ""] + [x["logS"] for x in rows[3:]]
        p.put("alerts.smarts", read("workflows/data/alerts.smarts"))
        p.put("measured.csv", "SMILES,ID,pIC50\n" + "".join("%s,m%d,%s\n" % (x["smiles"], i, v) for i, (x, v) in enumerate(zip(rows, values))))
        p.put("library.smi", "".join("%s l%d\n" % (x["smiles"], i) for i, x in enumerate(rows[::3])))
        said = ""
        for command in re.findall(r"^molsieve (.*)$", page, re.M) + re.findall(r"`molsieve (export .*?)`", page):
            more = ["stages.train.epochs=2"] if command == "run train.yaml" else []
            said += "".join(p.run(*shlex.split(command), *more)[1:])
        kept = p.one("SELECT count(*) FROM molecule", workdir="runs/activity")
        assert "labels: %d of %d molecules have a number in pIC50" % (kept - 3, kept) in said, said
        assert "the best simple prediction" in said and "screen.yaml: OK" not in said
        hits = p.one("SELECT count(*) FROM v_hits", workdir="runs/screen")
        assert hits >= 5 and open(p.path("runs/screen/hits.sdf")).read().count("$$$$\n") == hits
        assert 0 < open(p.path("polar.sdf")).read().count("$$$$\n") <= hits
        for table in re.findall(r'"SELECT \* FROM (\w+)"', page):
            assert p.one("SELECT count(*) FROM " + table, workdir="runs/screen") > 0, table


main([links_and_names_of_files_lead_somewhere, commands_options_and_settings_that_are_named_exist,
      variables_that_are_named_are_read_and_those_that_are_read_are_named, tests_that_are_named_exist,
      pages_and_program_agree_on_version_exit_codes_and_the_demonstration,
      own_data_is_trained_on_and_screened_as_the_page_says])
