# SPDX-License-Identifier: Apache-2.0
"""scripts/check_layers.py TOP - reads every include of the rooms and compares it with TOP/scripts/folders.txt.

Fails: an include that the order does not allow, a file in a folder that is not in the order, an include of a file that
is not there, files that include each other in a circle, sources (x.c, x.h and x_parts.h are one) that know each other
in a circle, and lines of folders.txt that nothing needs."""
import collections
import glob
import os
import re
import sys

ROOMS = ("pipeline", "chem", "models", "stages")
KINDS = ("c", "h", "cpp", "hpp", "cu", "cuh", "inc")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]*)"')


class Order:
    """What folders.txt says."""

    def __init__(self, path):
        self.rooms, self.folders, self.made, self.wrong = {}, {}, set(), []
        folder = None
        with open(path) as f:
            for n, line in enumerate(f, 1):
                words = line.split()
                if not words or line.startswith("#"):
                    continue
                if line.startswith("room "):
                    self.rooms[words[1].rstrip(":")] = set(words[2:])
                elif line.startswith("made:"):
                    self.made |= set(words[1:])
                elif line.startswith(" "):
                    self.arrows(folder, words, n)
                else:
                    folder = words[0].rstrip(":")
                    self.folders[folder] = set()

    def arrows(self, folder, words, n):
        for to in words:
            if to not in self.folders or to == folder:
                self.wrong.append("scripts/folders.txt:%d: %s is not above %s" % (n, to, folder))
            elif not self.room_may(folder, to):
                self.wrong.append("scripts/folders.txt:%d: room %s may not use %s" % (n, self.room(folder), to))
            self.folders[folder].add(to)

    def room(self, folder):
        return folder if folder in self.rooms else folder.split("/")[0]

    def room_may(self, folder, to):
        return self.room(to) in self.rooms.get(self.room(folder), set()) | {self.room(folder)}


def includes(top):
    """Path -> [(line, what it includes)] of every source."""
    found = {}
    for path in sorted(p for room in ROOMS for kind in KINDS for p in glob.glob("%s/%s/**/*.%s" % (glob.escape(top), room, kind), recursive=True)):
        with open(path, encoding="utf-8") as f:
            found[os.path.relpath(path, top)] = [(n, m[1]) for n, m in enumerate(map(INCLUDE.match, f), 1) if m]
    return found


def circles(graph):
    """Parts of the graph whose members reach each other."""
    number, low, stack, out = {}, {}, [], []

    def visit(v):
        number[v] = low[v] = len(number)
        stack.append(v)
        for w in sorted(graph.get(v, ())):
            if w not in number:
                visit(w)
            if w in stack:
                low[v] = min(low[v], low[w])
        if low[v] == number[v]:
            part = stack[stack.index(v):]
            del stack[stack.index(v):]
            if len(part) > 1:
                out.append(frozenset(part))

    for v in sorted(graph):
        if v not in number:
            visit(v)
    return out


def unit(path):
    """x.c, x.h and x_parts.h belong together."""
    return re.sub(r"(_parts)?\.\w+$", "", path)


def one(order, found, path, n, to, used):
    """Why this include is wrong, or None."""
    here, there = os.path.dirname(path), os.path.dirname(to)
    if to in order.made and to.split("/")[0] == path.split("/")[0]:
        return None
    if to not in found:
        return "%s:%d: there is no %s (names begin at the top of the tree)" % (path, n, to)
    used[here].add(there)
    if here != there and there not in order.folders.get(here, ()):
        return "%s:%d: %s may not include %s (scripts/folders.txt)" % (path, n, here, to)
    return None


def compare(order, found):
    used, files, units = (collections.defaultdict(set) for _ in range(3))
    for path, list_ in found.items():
        if os.path.dirname(path) not in order.folders:
            yield "%s: its folder is not in scripts/folders.txt" % path
        for n, to in list_:
            wrong = one(order, found, path, n, to, used)
            if wrong:
                yield wrong
            files[path].add(to)
            a, b = unit(path), unit(to)
            if a != b and to in found:
                units[a].add(b)
    for ring in circles(files):
        yield "these include each other in a circle: " + " ".join(sorted(ring))
    for ring in circles(units):
        yield "these know each other in a circle: " + " ".join(sorted(ring))
    for folder, may in order.folders.items():
        for to in sorted(may - used[folder]):
            yield "scripts/folders.txt: %s does not need %s" % (folder, to)
        if not any(os.path.dirname(p) == folder for p in found):
            yield "scripts/folders.txt: %s has no source" % folder


def main(top):
    order = Order(os.path.join(top, "scripts", "folders.txt"))
    wrong = order.wrong + list(compare(order, includes(top)))
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


sys.setrecursionlimit(10000)
sys.exit(main(os.path.relpath(sys.argv[1])))
