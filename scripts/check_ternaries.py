# SPDX-License-Identifier: Apache-2.0
"""scripts/check_ternaries.py FILE... - lists each line where a ?: is an operand of another ?:; status 1 if there is one.

clang-tidy has such a check (readability-avoid-nested-conditional-operator) since version 17. Here the text is read word by
word: comments, strings and characters are left out, and brackets, commas and semicolons end an expression."""
import re
import sys

LEFT_OUT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S)
WORD = re.compile(r"\n|[A-Za-z_0-9.]+|\S")


def words(text):
    """The words with their lines; a string or a character is one word, 0."""
    text = LEFT_OUT.sub(lambda m: ("0" if m[0][0] in "\"'" else " ") + "\n" * m[0].count("\n"), text)
    line, found = 1, []
    for m in WORD.finditer(text):
        if m[0] == "\n":
            line += 1
        else:
            found.append((m[0], line))
    return found


def pairs(list_):
    """Of each opening bracket: the position of its end, and whether a ?: stands directly inside."""
    open_, ends, asks = [], {}, {}
    for i, (word, _) in enumerate(list_):
        if word in "([{":
            open_.append(i)
            asks[i] = False
        elif word in ")]}" and open_:
            ends[open_.pop()] = i
        elif word == "?" and open_:
            asks[open_[-1]] = True
    return ends, asks


def is_operand(list_, i, end, inside):
    """Whether the brackets i .. end are a whole operand of a ?:."""
    before, after = list_[i - 1][0] if i else "", list_[end + 1][0] if end + 1 < len(list_) else ""
    if after == "?":
        return not re.match(r"\w", before)
    return before in ("?", ":") and inside > 0 and after in (":", ",", ";", ")", "]", "}")


def nested(text):
    list_ = words(text)
    ends, asks = pairs(list_)
    count, lines = [0], set()
    for i, (word, line) in enumerate(list_):
        if word == "(" and asks[i] and i in ends and is_operand(list_, i, ends[i], count[-1]):
            lines.add(line)
        if word in "([{":
            count.append(0)
        elif word in ")]}" and len(count) > 1:
            count.pop()
        if word in ",;}":
            count[-1] = 0
        elif word == "?":
            count[-1] += 1
            if count[-1] > 1:
                lines.add(line)
    return sorted(lines)


def main(paths):
    found = []
    for path in paths:
        with open(path, encoding="utf-8") as f:
            found += ["%s:%d: a ?: inside another; use if, or a function" % (path, line) for line in nested(f.read())]
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
