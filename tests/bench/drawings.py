#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How many drawings of a file of SMILES have overlaps, and bonds that are not of the mean length.

    python3 tests/bench/drawings.py FILE.smi[.gz] [N] [MOLSIEVE-CHEM]

Asks the chemistry worker for a drawing of each of the first N molecules (3000). An overlap: two atoms closer than 0.4 bonds, or two bonds
that cross."""
import gzip
import math
import os
import struct
import subprocess
import sys

SVG = 6  # CH_OP_SVG in chem/common/protocol.h


def text(s):
    s = s.encode()
    return struct.pack("<I", len(s)) + s


def exchange(worker, smiles):
    request = struct.pack("<Id", SVG, 20.0) + text(smiles)
    worker.stdin.write(struct.pack("<I", len(request)) + request)
    worker.stdin.flush()
    answer = worker.stdout.read(struct.unpack("<I", worker.stdout.read(4))[0])
    if struct.unpack_from("<I", answer)[0] != 0:
        return None
    at = 16
    parts = []
    for _ in range(3):  # message, svg, molfile
        n = struct.unpack_from("<I", answer, at)[0]
        parts.append(answer[at + 4:at + 4 + n].decode())
        at += 4 + n
    return parts[2], struct.unpack_from("<i", answer, at)[0]


def worst_bond(molfile):
    """The largest difference of a bond's length from 1."""
    lines = molfile.split("\n")
    n, m = int(lines[3][:3]), int(lines[3][3:6])
    at = [(float(x[:10]), float(x[10:20])) for x in lines[4:4 + n]]
    ends = [(int(x[:3]) - 1, int(x[3:6]) - 1) for x in lines[4 + n:4 + n + m]]
    return max((abs(math.dist(at[a], at[b]) - 1) for a, b in ends), default=0)


def main():
    path, n = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 3000
    program = sys.argv[3] if len(sys.argv) > 3 else os.environ.get("MOLSIEVE_CHEM", "build/dev/bin/molsieve-chem")
    opened = gzip.open if path.endswith(".gz") else open
    with opened(path, "rt") as f:
        smiles = [line.split()[0] for line, _ in zip(f, range(n)) if line.strip()]
    worker = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    found = [x for x in (exchange(worker, s) for s in smiles) if x is not None]
    worker.stdin.close()
    worker.wait()
    off = [worst_bond(molfile) for molfile, _ in found if " V2000" in molfile]
    print("%d molecules, %d drawn; %d with overlaps, %d overlaps; a bond off by more than 25 %%: %d, 50 %%: %d" % (
        len(smiles), len(found), sum(k > 0 for _, k in found), sum(k for _, k in found), sum(x > 0.25 for x in off), sum(x > 0.5 for x in off)))


if __name__ == "__main__":
    main()
