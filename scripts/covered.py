# SPDX-License-Identifier: Apache-2.0
"""What each test executes: measured for scripts/mutate, kept in build/mutate/coverage.json.

The copy in build/mutate/coverage is built with clang's source coverage. Its counters are mapped from a
file from the start of a program on, so programs that are killed, forked or confined (seccomp,
Landlock) count like others. Tests run in four lanes; those on the queue systems, on
emulated GPUs are left out.

A test is measured again when its programs or its script changed. The copy keeps the sources as they
were then: a line of today is looked up where the two texts agree."""
import concurrent.futures
import difflib
import functools
import hashlib
import json
import os
import queue
import re
import shutil
import subprocess
import time

LONG = 240    # seconds on the wall; what a test did until then counts
LANES, HANGS = 4, 124
LEFT_OUT = re.compile(r"^(jobs|slurm|network|hosts_e2e)\.|cuda|valgrind|_san$|^(lint|format|words|layers|nearest_.*|docs.*|install.*|sources.*)$")
LINKING = 0.3 # seconds, about
BROAD = 2000  # executed lines that make a test cost twice as much: it looks less closely at each
CLOSE = "transcript" # tests of this name compare all that is printed and stored
GUESS = 20    # CPU seconds of a test that was not measured


def kept(work):
    return os.path.join(work, "coverage.json")


def flags():
    how = "-O1 -fprofile-instr-generate -fcoverage-mapping -mllvm -runtime-counter-relocation -Wno-unused-command-line-argument"
    return ["-DCMAKE_C_COMPILER=clang", "-DCMAKE_CXX_COMPILER=clang++", "-DCMAKE_BUILD_TYPE=None", "-DMOLSIEVE_WERROR=OFF",
            "-DCMAKE_C_FLAGS=" + how, "-DCMAKE_CXX_FLAGS=" + how]


# ---- measuring ----

def programs(test, build):
    """Its own, molsieve and molsieve-chem."""
    own = [w for w in test.command[1:] if w.startswith(os.path.join(build, "bin/")) and os.path.isfile(w)]
    return list(dict.fromkeys(own + [os.path.join(build, "bin", n) for n in ("molsieve", "molsieve-chem")]))


def fingerprint(test, build, known):
    """Of what decides what it executes."""
    whole = hashlib.sha256(" ".join(test.command).encode())
    unit = any("/bin/test_" in w for w in test.command)
    for path in (programs(test, build)[:1] if unit else programs(test, build)) + [w for w in test.command[1:] if w.endswith((".py", ".sh"))]:
        if path not in known:
            known[path] = hashlib.sha256(open(path, "rb").read()).digest()
        whole.update(known[path])
    return whole.hexdigest()


def executed(raw, test, tree, build):
    """Path -> lines that were executed, and path -> lines with code."""
    files = [os.path.join(raw, f) for f in os.listdir(raw)]
    hit, code, path = {}, {}, None
    if not files:
        return hit, code
    subprocess.run(["llvm-profdata", "merge", "-sparse", "-failure-mode=all", *files, "-o", raw + ".data"], check=True, stderr=subprocess.DEVNULL)
    first, *others = programs(test, build)
    out = subprocess.run(["llvm-cov", "export", "-format=lcov", "-instr-profile=" + raw + ".data", first,
                          *[w for o in others for w in ("-object", o)]], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    for line in out.stdout.split("\n"):
        if line.startswith("SF:"):
            path = os.path.relpath(os.path.realpath(line[3:]), tree)
        elif line.startswith("DA:") and not path.startswith(("tests/", "..", "build/")):
            at, n = line[3:].split(",")[:2]
            code.setdefault(path, set()).add(int(at))
            if n != "0":
                hit.setdefault(path, set()).add(int(at))
    return hit, code


def packed(lines):
    """[first, last] of each stretch of lines."""
    out = []
    for n in sorted(lines):
        if out and out[-1][1] == n - 1:
            out[-1][1] = n
        else:
            out.append([n, n])
    return out


def measured(name, test, lanes, tree, build, code):
    lane = lanes.get()
    raw = os.path.join(os.path.dirname(tree), "raw%d" % lane)
    try:
        shutil.rmtree(raw, ignore_errors=True)
        os.makedirs(raw)
        status, cpu, wall = test.run(LONG, "%d" % lane, LLVM_PROFILE_FILE=raw + "/%m%c")
        hit, with_code = executed(raw, test, tree, build)
    finally:
        lanes.put(lane)
    for path, lines in with_code.items():
        code.setdefault(path, set()).update(lines)
    cpu = cpu if wall < LONG else LONG / 10  # a guess: of one that was stopped not all children have told theirs
    print("# %s: status %d, %.1f s, %d lines" % (name, status, cpu, sum(map(len, hit.values()))), flush=True)
    return {"status": status, "cpu": round(cpu, 2), "wall": round(wall, 2), "lines": {p: packed(x) for p, x in hit.items()}}


def measure(work, tree, build, tests, near):
    """Programs of C first, then the tests of `near` and the quick ones, so that much is known when it is stopped."""
    before = json.load(open(kept(work))) if os.path.exists(kept(work)) else {"tests": {}, "code": {}}
    keys, known, lanes = {}, {}, queue.Queue()
    for name, test in tests.items():
        if not LEFT_OUT.search(name) and not any("/emulated" in v for v in test.env.values()):
            keys[name] = fingerprint(test, build, known)
    for n in range(LANES):
        lanes.put(n)
    found = {n: before["tests"][n] for n, key in keys.items() if before["tests"].get(n, {}).get("key") == key and before["tests"][n]["status"] != HANGS}
    code = {p: {n for a, b in x for n in range(a, b + 1)} for p, x in before["code"].items()} if found else {}
    order = sorted(keys, key=lambda n: (tests[n].command[1].endswith(".py"), "long" in tests[n].labels, n not in near))
    with concurrent.futures.ThreadPoolExecutor(LANES) as pool:
        running = {n: pool.submit(measured, n, tests[n], lanes, tree, build, code) for n in order if n not in found}
        for i, (name, one) in enumerate(running.items()):
            found[name] = dict(one.result(), key=keys[name])
            if i % 20 == 0:
                keep(work, found, code)
    keep(work, found, code)


def keep(work, found, code):
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=work, capture_output=True, text=True).stdout.strip()
    with open(kept(work) + ".new", "w") as f:
        json.dump({"commit": commit, "at": time.strftime("%F %T"), "tests": found, "code": {p: packed(list(x)) for p, x in list(code.items())}}, f)
    os.rename(kept(work) + ".new", kept(work))


# ---- asking ----

class Cover:
    def __init__(self, work):
        self.kept, self.tree, self.at = kept(work), os.path.join(work, "coverage/tree"), None
        self.read()

    def read(self):
        """Anew where it has changed."""
        at = os.stat(self.kept).st_mtime
        if at != self.at:
            with open(self.kept) as f:
                one = json.load(f)
            # One that failed executed only a part; it counts as not measured.
            self.at, self.tests, self.code = at, {n: t for n, t in one["tests"].items() if t["status"] in (0, 77, HANGS)}, one["code"]
            self.cost.cache_clear()

    @functools.lru_cache(None)
    def then(self, path, now):
        """Line of today -> line of the measured text."""
        old = os.path.join(self.tree, path)
        if not os.path.exists(old):
            return {}
        with open(old) as a, open(now) as b:
            blocks = difflib.SequenceMatcher(None, a.read().split("\n"), b.read().split("\n"), False).get_matching_blocks()
        return {m.b + k + 1: m.a + k + 1 for m in blocks for k in range(m.size)}

    @staticmethod
    def within(line, stretches):
        return any(a <= line <= b for a, b in stretches)

    def of_line(self, path, line, now):
        """The tests that execute it; None where that is not known: a line without code, or a new one."""
        before = self.then(path, now).get(line)
        if before is None or not self.within(before, self.code.get(path, [])):
            return None
        return [n for n, t in self.tests.items() if self.within(before, t["lines"].get(path, []))]

    def lines(self, name, path):
        """What a test executes of a file."""
        return {n for a, b in self.tests.get(name, {"lines": {}})["lines"].get(path, []) for n in range(a, b + 1)}

    def of_path(self, path):
        return [n for n, t in self.tests.items() if path in t["lines"]]

    def of_folder(self, folder):
        return [n for n, t in self.tests.items() if any(os.path.dirname(p) == folder for p in t["lines"])]

    def cpu(self, name, known=None):
        """known: what it took elsewhere, or None. What fails here is often slow."""
        return self.tests[name]["cpu"] if name in self.tests else known or GUESS

    def wall(self, name):
        return self.tests[name]["wall"] if name in self.tests else 30

    @functools.lru_cache(None)
    def cost(self, name, known=None):
        """CPU seconds, more of them for a test that does much else."""
        lines = sum(b - a + 1 for x in self.tests[name]["lines"].values() for a, b in x) if name in self.tests else 10 * BROAD
        return (self.cpu(name, known) + LINKING) * (1 + (0 if name.startswith(CLOSE) else lines / BROAD))
