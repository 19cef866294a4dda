# SPDX-License-Identifier: Apache-2.0
"""Where scripts/mutate may put a fault: the sites of each kind in a file of C or C++.

A site is a few characters of one line and what replaces them. Comments, preprocessor lines and
strings are not touched, except that SQL is altered and messages are emptied. Sizes of declared arrays and powers of
two from 32 on are left alone: most of them are the sizes of buffers; so are the sizes of arenas' blocks."""
import functools
import glob
import os
import re

ROOMS = {
    "pipeline": ["pipeline/**/*.c"],
    "stages": ["stages/**/*.c"],
    "chem": ["chem/**/*.c", "chem/**/*.cpp"],
    "models": ["models/*.c"] + ["models/%s/*.c" % x for x in ("comm", "comm/tcp", "domain", "family", "features", "files", "metrics", "network", "optim", "tensors", "threads", "training")],
    "kernels": ["models/cpu/**/*.[ch]", "models/ref/*.[ch]", "models/cuda/**/*.cu", "models/cuda/**/*.cuh", "models/cuda/**/*.c",
                "chem/structures/cuda/*.cu*"],
}
# How often a kind is drawn while it has sites left.
WEIGHT = {"relation": 3, "logic": 3, "arithmetic": 2, "constant": 2, "bool": 1, "statement": 4, "check": 3, "sync": 1.5,
          "bind": 1.5, "sql": 3, "message": 2}
MANY = 12 # tests that have a message: words that more have are those of something else
WITH_WORKER = {"chem_worker", "chem_hydrogens", "chem_syntax", "chem_digits", "chem_xyz_bonds", "chem_positions", "molecules_golden", "read_golden", "redrawn_golden", "ions_golden", "chem_stereo_marks", "chem_drawn_stereo",
               "scaffold", "scaffold_smiles", "fingerprint", "descriptors", "worker_start", "worker_oom", "standardise", "one_drawing", "protonate", "chem_structures", "chem_confine",
               "chem_kill", "chem_messy", "chem_request_queue", "stages", "held_out", "structures", "report", "feature_stages", "bench", "config", "predict_library",
               "refused_places", "refused_training", "refused_ways", "refused_commands", "refused_more", "show_find", "stops"}

SKIPPED = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*', re.S | re.M)
SQL = re.compile(r"\b(SELECT|INSERT|UPDATE|DELETE|WHERE|JOIN|ORDER BY|GROUP BY|HAVING)\b")
SPEAKS = re.compile(r"\b(pl_fail|pl_at|pl_event_add|pl_log|pl_problem_add|pl_cmd_say|pl_cmd_usage|ch_reader_set_problem|"
                    r"fprintf|printf|fputs)\s*\(")
FUNCTION = re.compile(r"([A-Za-z_]\w*)\(")
CONVERSION = re.compile(r"%[-+ #0]*[\d*]*(?:\.[\d*]+)?(?:hh|h|ll|l|z|j|t)?[a-zA-Z]")
CALL = re.compile(r"^\s+(?:\(void\))?[a-z_][\w.>\-]*\(.*\);$")
ASSIGN = re.compile(r"^\s+\*?[a-zA-Z_][\w.\[\]>\-]*(?: [-+|&^*/]?= .*|\+\+|--);$")
FAILED = re.compile(r"^(?:code != PL_OK|rc|rc != PL_OK|bad|failed|!?\w+ok|.* == NULL|.* < 0|![\w>.\-]+|.* != (?:0|Z_OK|SQLITE_OK))$")
SYNC = re.compile(r"\b(?:fsync|fdatasync|fflush|pl_file_sync_name|sync_path|pl_db_sync|gzflush)\(")
BIND = re.compile(r"sqlite3_bind_\w+\(\w+, (\d+),")
SWAPS = {
    "relation": [(" < ", " <= "), (" <= ", " < "), (" > ", " >= "), (" >= ", " > "), (" == ", " != "), (" != ", " == ")],
    "logic": [(" && ", " || "), (" || ", " && ")],
    "arithmetic": [(" + ", " - "), (" - ", " + "), (" * ", " / "), (" / ", " * "), (" % ", " * "), ("++", "--"), (" += ", " -= ")],
    "check": [("code == PL_OK && ", ""), ("!rc && ", ""), (" && code == PL_OK", "")],
}
SQL_SWAPS = [(r"\bAND\b", "OR"), (r"\bOR\b", "AND"), (r"<>", "="), (r"(?<![<>!])=", "<>"), (r"(?<=[\w)])<(?![=>])", "<="),
             (r"(?<![<])>(?!=)", ">="), (r"\bDESC\b", ""), (r"ORDER BY [\w.]+(?!\w)(?!,| DESC)", ""), (r"\bIS NOT NULL\b", "IS NULL"),
             (r"\bIS NULL\b", "IS NOT NULL"), (r"\bmin\(", "max("), (r"\bmax\(", "min("), (r"\bDISTINCT ", ""),
             (r"\bNOT EXISTS\b", "EXISTS"), (r"\bLEFT JOIN\b", "JOIN"), (r"(?<=\w)\+1\b", ""), (r"(?<=\w)-1\b", ""),
             (r"\bsum\(", "count("), (r"\bNOT IN\b", "IN"), (r"\bLIMIT 1\b", "LIMIT 2")]


class Mutant:
    def __init__(self, path, text, kind, at, end, new):
        self.path, self.kind, self.at, self.end, self.new = path, kind, at, end, new
        begin, stop = text.rfind("\n", 0, at) + 1, text.find("\n", end)
        self.line = text.count("\n", 0, at) + 1
        self.before = " ".join(text[begin:stop].split())
        self.after = " ".join((text[begin:at] + new + text[end:stop]).split())
        self.nth, self.function = 1, None

    def key(self):
        return "%s: %s: %s -> %s%s" % (self.path, self.kind, self.before, self.after, " #%d" % self.nth if self.nth > 1 else "")

    def apply(self, text):
        return text[:self.at] + self.new + text[self.end:]


def masked(text):
    """The text with spaces for what is no code, and where its strings are."""
    strings = []

    def blank(m):
        if m[0][0] == '"':
            strings.append((m.start(), m.end()))
            return '"' + "\x01" * (len(m[0]) - 2) + '"'
        return "".join(c if c == "\n" else " " for c in m[0])

    return SKIPPED.sub(blank, text), strings


def lines_of(code):
    at = 0
    for line in code.split("\n"):
        yield at, line
        at += len(line) + 1


def functions(code):
    """The function that each line is in, None between functions: what begins at a line's first character and ends with a brace there."""
    inside = None
    for _, line in lines_of(code):
        begins = re.sub(r"__attribute__\(\(.*?\)\)", "", line) if re.match(r"[A-Za-z_]", line) else ""
        if begins:
            named = FUNCTION.search(begins.split("=")[0])
            inside = named[1] if named and not begins.rstrip().endswith(";") else None
        yield inside
        if line.startswith("}") or begins.rstrip().endswith("}"):
            inside = None


def swaps(code):
    for kind, pairs in SWAPS.items():
        for old, new in pairs:
            for m in re.finditer(re.escape(old), code):
                yield kind, m.start(), m.end(), new


def constants(code):
    for at, line in lines_of(code):
        if len(re.findall(r"\d+", line)) > 6 or re.match(r"^\s+[\w *]+\[[\w ]+\]( = .*)?[;,]", line):
            continue
        for m in re.finditer(r"(?<![\w.])\d+(?![\w.])", line):
            n = int(m[0])
            if n >= 32 and n & (n - 1) == 0 or re.search(r"pl_arena_new\([\d< ]*$", line[:m.start()]):
                continue
            yield "constant", at + m.start(), at + m.end(), str(n + 1)
            if n > 0:
                yield "constant", at + m.start(), at + m.end(), str(n - 1)


def truths(code):
    for m in re.finditer(r"\b(true|false)\b", code):
        yield "bool", m.start(), m.end(), "false" if m[0] == "true" else "true"


def statements(code):
    for at, line in lines_of(code):
        if not (CALL.match(line) or ASSIGN.match(line)) or line.count("(") != line.count(")"):
            continue
        kind = "bind" if "sqlite3_bind" in line else "sync" if SYNC.search(line) else "statement"
        start = at + len(line) - len(line.lstrip())
        if not re.match(r"\s+(return|if|for|while|else|do|switch|case)\b", line):
            yield kind, start, start, "while (0) "


def checks(code):
    for m in re.finditer(r"\bif \(", code):
        depth, end = 1, m.end()
        while depth and end < len(code):
            depth += (code[end] == "(") - (code[end] == ")")
            end += 1
        if FAILED.match(code[m.end():end - 1]):
            yield "check", m.end(), m.end(), "0 && "


def syncs(code):
    for at, line in lines_of(code):
        for m in [] if CALL.match(line) else SYNC.finditer(line):
            yield "sync", at + m.start(), at + m.start(), "0 && "


def binds(code):
    for m in BIND.finditer(code):
        n = int(m[1])
        yield "bind", m.start(1), m.end(1), str(n + 1)
        if n > 1:
            yield "bind", m.start(1), m.end(1), str(n - 1)


def speaks(code, at):
    """The string at `at` is said to the user; what is said of no memory is left alone."""
    begin = max(code.rfind(c, 0, at) for c in ";{}")
    return SPEAKS.search(code, begin, at) and "ENOMEM" not in code[begin:at]


def texts(text, code, strings):
    for at, end in strings:
        inside = text[at + 1:end - 1]
        if SQL.search(inside):
            for old, new in SQL_SWAPS:
                for m in re.finditer(old, inside):
                    yield "sql", at + 1 + m.start(), at + 1 + m.end(), new
        elif speaks(code, at) and len(inside) > 6 and "out of memory" not in inside:
            bare = " ".join(CONVERSION.findall(inside.replace("%%", ""))) or " "
            if re.search(r"[a-z]{3}", CONVERSION.sub("", inside)):
                yield "message", at + 1, end - 1, bare


def of_file(top, path):
    with open(os.path.join(top, path)) as f:
        text = f.read()
    code, strings = masked(text)
    found = [Mutant(path, text, *site) for part in (swaps, constants, truths, statements, checks, syncs, binds) for site in part(code)]
    found += [Mutant(path, text, *site) for site in texts(text, code, strings)]
    seen, inside = {}, list(functions(code))
    for m in sorted(found, key=lambda m: (m.at, m.kind, m.new)):
        key = m.key()
        m.nth = seen[key] = seen.get(key, 0) + 1
        m.function = inside[m.line - 1]
        yield m


def runs_here(path):
    """Not code for instructions that this processor lacks: no test could see a fault in it."""
    with open("/proc/cpuinfo") as f:
        return "amx" not in os.path.basename(path) or "amx_tile" in f.read()


def of_room(top, room):
    paths = sorted({os.path.relpath(p, top) for g in ROOMS[room] for p in glob.glob(os.path.join(top, g), recursive=True)})
    return [m for path in paths if runs_here(path) for m in of_file(top, path)]


def shuffled(sites, rng):
    """All sites, by kinds as WEIGHT says and at random within a kind."""
    left = {kind: [m for m in sites if m.kind == kind] for kind in WEIGHT}
    for of_kind in left.values():
        rng.shuffle(of_kind)
    while any(left.values()):
        kinds = [k for k in WEIGHT if left[k]]
        yield left[rng.choices(kinds, [WEIGHT[k] for k in kinds])[0]].pop()


def argued(path):
    """The function of each mutant that cannot be told from the program, by its key; the lines below, or above its group, say why."""
    with open(path) as f:
        lines = [line.rstrip("\n") for line in f if line.strip() and not line.startswith((" ", "#"))]
    return dict(re.fullmatch(r"(.*?)(?: @(\w+))?", line).groups() for line in lines)


def is_argued(m, arguments):
    """A line may be in several functions: the argument is of one, also when another function comes before it."""
    return arguments.get(m.key(), "") == m.function


def idle(top, arguments):
    """Keys of arguments that are of no mutant of the tree: a line or its function has changed, so the argument is read again, or removed."""
    there = {m.key() for room in ROOMS for m in of_room(top, room) if is_argued(m, arguments)}
    return sorted(k for k in arguments if k not in there and runs_here(k.split(":")[0]))


@functools.lru_cache(None)
def sources(top):
    """The text of each unit test's own source, by its name."""
    found = {}
    for path in glob.glob(os.path.join(top, "tests/*.cmake")):
        for name, source in re.findall(r"molsieve_(?:chem_)?test\((\w+) (\S+\.c(?:pp)?)\b", open(path).read()):
            found[name] = open(os.path.join(top, "tests", source)).read()
    return found


@functools.lru_cache(None)
def written(top):
    """What each test says itself, by the beginning of its name: a case of a script, with the transcripts it names, or a program of C."""
    said = {n: [text] for n, text in sources(top).items()}
    for script in glob.glob(os.path.join(top, "tests/cli/*.py")):
        for case in re.split(r"^def ", open(script).read(), flags=re.M)[1:]:
            stem = os.path.splitext(os.path.basename(script))[0]
            said[stem + "." + case.split("(")[0]] = [case]
    kept = {os.path.basename(p): open(p).read() for p in glob.glob(os.path.join(top, "tests/golden/**/*.txt"), recursive=True)}
    for texts in said.values():
        texts += [kept[n] for n in set(re.findall(r"\w+\.txt", texts[0])) if n in kept]
        texts += [kept[n + ".txt"] for n in set(re.findall(r'"(\w+)"', texts[0])) if n + ".txt" in kept]
    return said


def told_in(m, top):
    """Names of the tests that know the longest part of the message."""
    with open(os.path.join(top, m.path)) as f:
        part = max(CONVERSION.split(f.read()[m.at:m.end].replace("\\", "")), key=len).strip()
    told = sorted(n for n, texts in written(top).items() if len(part) > 6 and any(part in t for t in texts))
    return told if len(told) <= MANY else []
