#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/untested_messages.py [ROOM...] - messages of the program that are in no test.

A message counts as tested if its longest literal part stands in some file of tests/. Texts that a test has in another form
("25s" as "Ns") are false alarms. Rooms as in scripts/mutate; default: stages and pipeline."""
import os
import re
import sys

sys.dont_write_bytecode = True
TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(TOP, "scripts"))
import mutants  # noqa: E402

LEFT_OUT = re.compile(r"tests/(bench|fuzz)(/|$)")
SHORTEST = 6


def texts_of_tests():
    """All of them with single blanks; and again with the pieces of C's texts joined."""
    found = []
    for where, _, names in os.walk(os.path.join(TOP, "tests")):
        if not LEFT_OUT.search(os.path.relpath(where, TOP)):
            for name in names:
                if name.endswith((".c", ".cpp", ".h", ".inc", ".py", ".sh", ".txt")):
                    with open(os.path.join(where, name), errors="replace") as f:
                        found.append(f.read())
    flat = re.sub(r"\s+", " ", "\n".join(found))
    return flat, re.sub(r'" *\\? *"', "", flat)


def longest_part(line):
    parts = [p.strip().replace('\\"', '"') for text in re.findall(r'"((?:[^"\\]|\\.)*)"', line)
             for p in re.split(r"%[-+0-9.*]*(?:ll|z|h)?[a-zA-Z]|\\n", text)]
    return max((p for p in parts if len(p) >= SHORTEST), key=len, default=None)


def main():
    texts = texts_of_tests()
    for room in sys.argv[1:] or ["stages", "pipeline"]:
        places = {(m.path, m.line): longest_part(m.before) for m in mutants.of_room(TOP, room) if m.kind == "message"}
        left = {at: part for at, part in places.items() if part and not any(part in t for t in texts)}
        for (path, line), part in sorted(left.items()):
            print("%s:%d: %s" % (path, line, part))
        print("%s: %d lines of %d with a message are in no test" % (room, len(left), len(places)))


if __name__ == "__main__":
    main()
