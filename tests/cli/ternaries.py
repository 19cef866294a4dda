#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/check_ternaries.py sees each nested ?: and nothing else."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts"))
import check_ternaries  # noqa: E402

NESTED = (
    "x = a ? b : c ? d : e;",
    "x = a ? b ? c : d : e;",
    "x = a ? (b ? c : d) : e;",
    "x = a ? b : (c ? d : e);",
    "x = (a ? b : c) ? d : e;",
    "f(1, a\n ? b\n : c ? d : e);",
    "return a ? 'x' : b ? \"?\" : 0;",
    "int y[] = { a ? 1 : b ? 2 : 3 };",
)
FLAT = (
    "x = a ? b : c; y = d ? e : f;",
    "f(a ? b : c, d ? e : f);",
    "x = (a ? b : c) + (d ? e : f);",
    "x = a ? f(b ? c : d) : e;",
    "x = f(a ? b : c) ? d : e;",
    "s p = { .a = x ? 1 : 2, .b = y ? 3 : 4 };",
    "x = a ? b : c; /* d ? e : f */ // g ? h : i",
    "x = a ? \"b ? c : d\" : '?';",
    "for (i = a ? 1 : 2; i < n; i += b ? 3 : 4) { x = c ? 5 : 6; } y = d ? 7 : 8;",
    "switch (x) { case 1: (a ? b : c)->n++; }",
)

for text in NESTED:
    assert check_ternaries.nested(text), text
for text in FLAT:
    assert not check_ternaries.nested(text), text
assert check_ternaries.nested("int a;\nx = a ? b\n  : c ? d : e;") == [3]
print("ok   %d nested, %d flat" % (len(NESTED), len(FLAT)))
