#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""wheel_licences.py [--check] FOLDER - licences of what an unpacked wheel copied from Debian packages (scripts/wheel).

Writes FOLDER/molsieve/LICENSES.third-party: every copied file, its package and version, and their texts from
/usr/share/doc/PACKAGE/copyright, with the licences that these only name. --check: says whether it names every copied file and
has a text for each package. Status 1: a file is of no package, or a package has no text.
"""
import os
import re
import subprocess
import sys

FILE = "molsieve/LICENSES.third-party"
DOC = "/usr/share/doc"
INFO = "/var/lib/dpkg/info"  # what each installed package consists of
COMMON = "/usr/share/common-licenses/"
HEAD = """This package contains files of other projects, copied from packages of Debian, unchanged but for the names of libraries. Below:
the files with the package and version that each is of, then the licence of each package.

Open Babel is GPL-2. It is used by one program, molsieve/_program/bin/molsieve-chem, which is GPL-2.0-only; everything else here starts
that program as a process of its own and is not linked with it. Whoever passes this package on passes on Open Babel and molsieve-chem
and must offer their sources, under GPL-2: those of molsieve-chem are in molsieve (chem/worker_program), those of the packages are
what `apt-get source PACKAGE=VERSION` gives; Debian keeps those of old versions.
"""


def copied(folder):
    """path in the wheel -> name of the file that it is a copy of."""
    found = {}
    for where, _, names in os.walk(folder):
        below = os.path.relpath(where, folder) + "/"
        for name in names:
            if re.match(r"molsieve\.libs/", below):
                found[below + name] = re.sub(r"-[0-9a-f]{8}(?=[.])", "", name)
            elif re.match(r"molsieve/_program/(lib|share)/molsieve/openbabel/", below):
                found[below + name] = name
    return found


def packages_of(names):
    """name of a file -> the installed package that has it. Tables of Open Babel have names that others have, too."""
    found, wanted = {}, set(names)
    for entry in sorted(os.listdir(INFO)):
        if not entry.endswith(".list"):
            continue
        with open(os.path.join(INFO, entry), encoding="utf-8", errors="replace") as f:
            paths = f.read().splitlines()
        for path in paths:
            name = os.path.basename(path)
            if name in wanted and (name not in found or "/openbabel/" in path):
                found[name] = entry[:-len(".list")].split(":")[0]
    return found


def version_of(package):
    return subprocess.run(["dpkg-query", "-W", "-f", "${Version}\n", package], capture_output=True, text=True).stdout.split("\n")[0]


def text_of(package):
    try:
        with open(os.path.join(DOC, package, "copyright"), encoding="utf-8", errors="replace") as f:
            return f.read().strip()
    except OSError:
        return ""


def write(folder):
    names = copied(folder)
    owner = packages_of(names.values())
    of = {path: owner.get(name) for path, name in names.items()}
    packages = sorted({p for p in of.values() if p})
    texts = {p: text_of(p) for p in packages}
    wrong = ["%s: of no package of Debian" % path for path in sorted(of) if of[path] is None]
    wrong += ["%s: no licence text in %s/%s/copyright" % (p, DOC, p) for p in packages if not texts[p]]
    if wrong:
        return wrong
    named = sorted({x.rstrip(".") for t in texts.values() for x in re.findall(COMMON + r"([A-Za-z0-9.-]+)", t)})
    with open(os.path.join(folder, FILE), "w", encoding="utf-8") as f:
        f.write(HEAD + "\n")
        for p in packages:
            f.write("%s %s\n%s\n" % (p, version_of(p), "".join("    %s\n" % x for x in sorted(of) if of[x] == p)))
        for p in packages:
            f.write("%s\n== %s\n\n%s\n\n" % ("=" * 78, p, texts[p]))
        for name in named:
            with open(COMMON + name, encoding="utf-8") as common:
                f.write("%s\n== common licence: %s\n\n%s\n\n" % ("=" * 78, name, common.read().strip("\n")))
    return []


def check(folder):
    path, files = os.path.join(folder, FILE), sorted(copied(folder))
    text = open(path, encoding="utf-8").read() if os.path.exists(path) else ""
    if not text:
        return ["%s: it is not there" % FILE]
    listed = text.split("=" * 78, 1)[0]
    wrong = ["%s: copied, and %s does not name it" % (x, FILE) for x in files if "    %s\n" % x not in listed]
    for package in re.findall(r"^(\S+) \S+\n    molsieve", listed, re.M):
        if not re.search(r"^== %s\n\n\S" % re.escape(package), text, re.M):
            wrong.append("%s: %s has no text of its licence" % (package, FILE))
    return wrong


def main():
    wrong = (check if sys.argv[1] == "--check" else write)(sys.argv[-1])
    for line in wrong:
        print("wheel_licences: " + line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 3:
        sys.exit(__doc__)
    sys.exit(main())
