#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files, commands, settings and tests that the pages and the help mention exist."""
import csv
import glob
import json
import os
import re
import shlex
import shutil
import subprocess

from sieve import PROGRAM, Project, main

SOURCE = os.environ.get("MOLSIEVE_SOURCE", os.path.join(os.path.dirname(__file__), "../.."))
FOLDERS = "*.md", "docs/*.md", "docs/benchmarks/*.md", "docs/decisions/*.md", "workflows/*.md", \
    "workflows/data/*.md", "workflows/nextflow/*.md", "workflows/snakemake/*.md", "configs/*.md", "tests/*.md", "tests/bench/results/*.md"
ROOMS = "pipeline|chem|models|stages|tests|docs|scripts|configs|cmake|workflows|LICENSES|base|unit|cli|crash|twin|fuzz|golden|hpc|oom|prop|emulator|bench|data"
OURS = "stages|scheduler|limits|storage|inputs|models|vars"
TREES = ".ci", "chem", "cmake", "configs", "docs", "models", "pipeline", "scripts", "stages", "tests", "workflows"
TEXTS = r"\.(?:c|h|cpp|hpp|cuh?|inc|py|sh|cmake|md|sql|yaml|css|txt)$|^[^.]+$"
SECTIONS = r"\d+(?:\.\d+)*(?:(?:,| and|, and) \d+(?:\.\d+)*)*"


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
        for link in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", text)):
            path, _, anchor = link.partition("#")
            if not re.match(r"https?:|mailto:", link):
                target = os.path.normpath(os.path.join(here, path)) if path else name
                assert os.path.exists(os.path.join(SOURCE, target)), "%s: no file %s" % (name, link)
                assert not anchor or anchor in anchors(read(target)), "%s: no heading %s" % (name, link)
                n += 1
        for path in re.findall(r"(?<![\w/.$}{~-])((?:%s)/[\w./*-]*[\w*])" % ROOMS, re.sub(r"\]\([^)]*\)", "]", text)):
            if re.search(r"[A-Z]{4}|/x\.[ch]$|/cmd_x\.c$|golden/molecules_bench", path) and "README" not in path:
                continue  # an example name: models/NAME.safetensors
            if re.fullmatch(r"docs/decisions/\d{4}", path) or re.fullmatch(r"decisions/\d{4}", path):
                path += "-*"
            places = [os.path.join(SOURCE, at, path) for at in ("", here, "workflows", "tests", "pipeline", "docs")]
            assert any(glob.glob(x) for x in places + [x + ".*" for x in places]), "%s: no file %s" % (name, path)
            n += 1
    assert n > 200, n


def sources():
    """Name and text of every file written by hand; comments of several lines are joined into one."""
    names = [os.path.join(at, x) for tree in TREES for at, _, files in os.walk(os.path.join(SOURCE, tree)) for x in files]
    names += [os.path.join(SOURCE, x) for x in os.listdir(SOURCE) if os.path.isfile(os.path.join(SOURCE, x))]
    names = sorted(os.path.relpath(x, SOURCE) for x in names if re.search(TEXTS, os.path.basename(x)) and "/fuzz/corpus/" not in x)
    assert len(names) > 600, len(names)
    for name in names:
        with open(os.path.join(SOURCE, name), errors="replace") as f:
            yield name, re.sub(r"[ \t]*\n[ \t]*(?:\*(?!\*)|//|#+(?!include)|--)?[ \t]*", " ", f.read())


def numbers(text):
    """The numbers of a page's headings: 3, 3.1, .."""
    return set(re.findall(r"^#+ (\d+(?:\.\d+)*)\.? ", text, re.M))


def sections_and_operations_that_are_named_exist():
    operations = {int(x) for x in re.findall(r"^\| (\d+) \|", read("docs/model.md").split("## 8. ")[1].split("\n## ")[0], re.M)}
    assert operations == set(range(1, 21)), operations
    n = 0
    for name, text in sources():
        for folder, page, which in re.findall(r"(?<![\w/.#-])(docs/|)([\w-]+)\.md[`,)\]]* (%s)(?![\w-])" % SECTIONS, text):
            there = os.path.exists(os.path.join(SOURCE, "docs", page + ".md"))
            assert there or not folder, "%s: no page docs/%s.md" % (name, page)
            for section in re.findall(r"\d+(?:\.\d+)*", which) if there else []:
                assert section in numbers(read("docs/%s.md" % page)), "%s: docs/%s.md has no section %s" % (name, page, section)
                n += 1
        for which in re.findall(r"\b[Oo]ps? (%s)(?![\w.])" % SECTIONS.replace(r"(?:\.\d+)*", ""), text):
            assert all(int(x) in operations for x in re.findall(r"\d+", which)), "%s: no operation %s in docs/model.md 8" % (name, which)
            assert name == "docs/model.md" or re.search(r"\bmodel\.md 8\b", text), "%s: say that docs/model.md 8 numbers the operations" % name
            n += 1
        outside = re.search(r"(?i)\bspec(?:ification)?s? (?:workflow |performance )?\d[\d.]*|(?<![\w-])(?:workflow|toolchain|se3-transformer)\.md"
                            r"|\bshared/(?:spec|style)\b|(?-i:\bDESIGN\.md)", text)
        assert not outside, "%s: '%s' is not in this tree" % (name, outside[0])
    assert n > 100, n


def decisions():
    """Number, file and title of every decision."""
    names = sorted(x for x in os.listdir(os.path.join(SOURCE, "docs/decisions")) if re.match(r"\d{4}-", x))
    for name in names:
        head = re.match(r"# (\d{4}):? (.+)\n", read("docs/decisions/" + name))
        assert head and head[1] == name[:4], "%s: the first line is '# %s TITLE'" % (name, name[:4])
        yield head[1], name, head[2]


def decisions_that_are_named_exist_and_all_are_in_the_index():
    there, index, n = {x: (name, title) for x, name, title in decisions()}, read("docs/decisions/README.md"), 0
    for name, text in sources():
        named = re.findall(r"(?i)\bdecisions?[ /](\d{4})\b", text)
        if name.startswith("docs/decisions/"):
            named += re.findall(r"(?<![\w.,/-])(0[01]\d\d)(?![\w.]\d)\b", text)
        for one in named:
            assert one in there, "%s: there is no decision %s" % (name, one)
            n += 1
    assert n > 100, n
    rows = re.findall(r"^\| \[(\d{4})\]\(([\w.-]+)\) \| (.+?) \| (.+?) \| (.+?) \|$", index, re.M)
    assert [x[0] for x in rows] == sorted(there), "docs/decisions/README.md: these are not in both: %s" % (set(there) ^ {x[0] for x in rows})
    for one, name, title, summary, status in rows:
        assert (name, title) == there[one], "docs/decisions/README.md: %s is called %s" % (one, there[one])
        assert len(summary) > 20 and re.match(r"accepted|superseded", status), "docs/decisions/README.md: %s" % one
        says = re.findall(r"[Ss]uperseded (?:in part )?by \[?(\d{4})", status)
        page = re.findall(r"^\*\*Superseded (?:in part )?by \[(\d{4})\]", read("docs/decisions/" + name), re.M)
        assert says == page, "docs/decisions/%s says superseded by %s, the index by %s" % (name, page, says)


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
            stage = ["stages"] + name.split()[1:] if name.startswith("help ") else None  # a stage's help names its own settings
            assert node(schema, setting.split(".")) or stage and node(schema, stage + setting.split(".")), "%s: no setting %s" % (name, setting)
            n += 1
    assert n > 200, n


def documented_variables_are_those_that_are_read():
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
    named |= set(re.findall(r"MOLSIEVE_[A-Z_]+", read("stages/commands/about/topics.c")))
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


def pages_and_program_agree_on_version_and_exit_codes():
    with Project() as p:
        version = p.run("--version")[1].split()[1]
        codes = p.run("help", "exit-codes")[1]
    assert re.search(r"^## %s \(\d{4}-\d\d-\d\d\)$" % re.escape(version), read("CHANGELOG.md"), re.M)
    cited = re.search(r"^version: (\S+)\ndate-released: (\S+)$", read("CITATION.cff"), re.M)
    assert cited[1] == version and "## %s (%s)" % (version, cited[2]) in read("CHANGELOG.md"), cited[0]
    assert '\n  version: "%s"\n' % version in read("cmake/packages/conda/recipe.yaml"), "the version of the conda recipe"
    for number in re.findall(r"^ +(\d+)", codes, re.M):
        for name, start in (("docs/FORMATS.md", "\n## Exit codes"), ("docs/design.md", "\n### 3.4 ")):
            assert re.search(r"\b%s\b" % number, read(name).split(start)[1].split("\n## ")[0]), (name, number)
    assert len(read("README.md").split()) <= 900, "README.md has more than 900 words"


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
        lines = "".join("%s,%d,7.4,%.2f\n" % (x["smiles"], t, float(x["logS"]) + 0.02 * t) for x in rows for t in (15, 25, 37))
        p.put("solubility.csv", "SMILES,temperature,pH,logS\n" + lines.replace("25,7.4", "25,6.8"))
        p.put("conditions.csv", "SMILES,temperature,pH\n" + "".join("%s,%d,7\n" % (x["smiles"], t) for x in rows[::3] for t in (20, 30)))
        said = ""
        commands = re.findall(r"^molsieve (.*)$", page, re.M) + re.findall(r"`molsieve (export .*?)`", page)
        for command in sorted(commands, key=lambda c: c.startswith(("next ", "label "))):  # these go on where the screen has ended
            if command.startswith("label "):
                with open(p.path("plate.csv"), newline="") as f:
                    p.put("plate-measured.csv", "inchikey,pIC50\n" + "".join("%s,5.5\n" % r["inchikey"] for r in csv.DictReader(f)))
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


def commands_of_comparison():
    """What the page tells to type, in its order: the lines that make the folder, then the second column of its tables."""
    page = read("docs/COMPARISON.md").split("\n## What works here\n")[1].split("\n## ")[0]
    first = re.search(r"```\n(.*?)```", page, re.S)[1].splitlines()
    rows = re.findall(r"^\| [^|]+ \| `((?:\\\||[^`])+)` ?(?:\(([^)]+)\) )?\|", page, re.M)
    assert len(rows) == len(re.findall(r"^\| (?!what |---)", page, re.M)), "a row of docs/COMPARISON.md has no command"
    return first, [(command.replace("\\|", "|"), 3 if "status 3" in note else 0) for command, note in rows]


def commands_of_the_comparison_work_as_printed():
    first, rows = commands_of_comparison()
    assert first[0] == "molsieve init demo && cd demo" and len(rows) > 20, (first, len(rows))
    with Project() as p:
        p.run("init", "demo")
        env = dict(os.environ, PATH=os.path.dirname(PROGRAM) + os.pathsep + os.environ["PATH"], PYTHONPATH=os.path.abspath(os.path.join(SOURCE, "python")))
        for command, status in [(c, 0) for c in first[1:]] + rows:
            if shutil.which(command.split()[0]) is None and command.startswith("sqlite3"):
                continue  # it does not come with molsieve
            # A killed program's worker may hold its pipes a moment longer, so output goes to a file.
            with open(p.path("said"), "w+") as said:
                got = subprocess.run(["sh", "-c", command], cwd=p.path("demo"), env=env, stdout=said,
                                     stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=280).returncode
                said.seek(0)
                text = said.read()
            assert got == status and text.strip(), "%s: status %d, %d expected\n%s" % (command, got, status, text[-1000:])


def cases_of_scripts_are_tests():
    """A case that CMake does not list never runs; one that it lists and no script has fails."""
    listed = set(re.findall(r"\w+", "".join(read(os.path.relpath(x, SOURCE)) for x in glob.glob(os.path.join(SOURCE, "tests/*.cmake")))))
    for path in glob.glob(os.path.join(SOURCE, "tests/*/*.py")):
        called = re.search(r"^ *(?:sieve\.)?main\(\[([\w,\s]*)\]\)", read(os.path.relpath(path, SOURCE)), re.M)
        for case in re.findall(r"\w+", called[1]) if called else []:
            assert case in listed, "%s: %s is not in a list of tests/*.cmake" % (os.path.basename(path), case)


main([links_and_names_of_files_lead_somewhere, sections_and_operations_that_are_named_exist,
      decisions_that_are_named_exist_and_all_are_in_the_index, commands_options_and_settings_that_are_named_exist,
      documented_variables_are_those_that_are_read, tests_that_are_named_exist, cases_of_scripts_are_tests,
      pages_and_program_agree_on_version_and_exit_codes,
      own_data_is_trained_on_and_screened_as_the_page_says, commands_of_the_comparison_work_as_printed])
