#!/bin/sh
# plan knows counts and sizes before anything has run: 300 records of a known file.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
MOLSIEVE=${MOLSIEVE:-$here/../../build/dev/bin/molsieve}
t=$(mktemp -d)
trap 'rm -rf "$t"' EXIT
i=0
while [ $i -lt 300 ]; do echo "CCOC(=O)c1ccccc1 m$i"; i=$((i + 1)); done >"$t/lib.smi"
gzip -k "$t/lib.smi"
for f in lib.smi lib.smi.gz; do
    cat >"$t/w.yaml" <<Y
format: 1
inputs: [{path: $f}]
stages: {read: {}, prepare: {}, graph: {edges: bonds}, basis: {}}
Y
    "$MOLSIEVE" plan "$t/w.yaml" --json >"$t/plan.json"
    python3 - "$t/plan.json" <<'P'
import json, sys
plan = json.load(open(sys.argv[1]))
steps = {s["stage"]: s for s in plan["stages"]}
for name in ("read", "prepare", "graph", "basis"):
    assert 150 <= steps[name]["items"] <= 600, (name, steps[name])
assert steps["basis"]["bytes_features"] > 300 * 166 * 10, steps["basis"]
P
    [ ! -e "$t/runs" ] || { echo "plan wrote something"; exit 1; }
done
# QM9's file begins with its smallest molecules, and its header tells how many atoms there are.
python3 - "$t/small_first.bin" <<'P'
import struct, sys
sizes = [1] * 250 + [30] * 250
n, a = len(sizes), sum(sizes)
def pad(b): return b + bytes(-len(b) % 8)
offsets = [sum(sizes[:i]) for i in range(n + 1)]
with open(sys.argv[1], "wb") as f:
    f.write(b"QM9BIN01" + struct.pack("<6I", n, a, 0, 11, 4, 64) + bytes(32))
    for array in (struct.pack("<%dI" % n, *range(1, n + 1)), struct.pack("<%dI" % (n + 1), *offsets), bytes(4 * (n + 1)), bytes(n),
                  bytes([6] * a), bytes(a), struct.pack("<%df" % (3 * a), *range(3 * a)), b"", bytes(44 * n), bytes(32 * n)):
        f.write(pad(array))
P
"$MOLSIEVE" plan "$t/w.yaml" --json "inputs=[{path: small_first.bin}]" >"$t/plan.json"
python3 - "$t/plan.json" <<'P'
import json, sys
graph = [s for s in json.load(open(sys.argv[1]))["stages"] if s["stage"] == "graph"][0]
assert graph["items"] == 500 and "15.5 atoms" in graph["note"], graph
P
# While an input has been read in part, the number of its records is still a guess: 60 of 300 are stored.
part() { "$MOLSIEVE" "$@" "$t/w.yaml" "inputs=[{path: lib.smi}]" stages.read.unit=20 "workdir=$t/part"; }
status=0
MOLSIEVE_FAULT=read.unit.after_commit:3 part run -q --until read -j 1 || status=$?
[ "$status" -eq 137 ] || { echo "status $status at the fault point"; exit 1; }
part plan --json >"$t/plan.json"
python3 - "$t/plan.json" <<'P'
import json, sys
steps = {s["stage"]: s for s in json.load(open(sys.argv[1]))["stages"]}
assert steps["read"]["units_done"] == 3 and 250 <= steps["prepare"]["items"] <= 350, steps
P
# What a structure costs is measured once and kept; it grows with the molecules and with the number of structures.
export XDG_CACHE_HOME="$t/cache"
i=0
while [ $i -lt 300 ]; do echo "Cc1ccc(cc1Nc1nccc(n1)-c1cccnc1)NC(=O)c1ccc(CN2CCN(C)CC2)cc1 m$i"; i=$((i + 1)); done >"$t/large.smi"
seconds() {
    "$MOLSIEVE" plan "$t/w.yaml" --json "$@" | python3 -c 'import json, sys
print([s["seconds_one_worker"] for s in json.load(sys.stdin)["stages"] if s["stage"] == "prepare"][0])'
}
a=$(seconds)
b=$(seconds "inputs=[{path: large.smi}]")
c=$(seconds stages.prepare.conformers.count=10)
d=$(seconds stages.prepare.conformers.source=keep)
o=$(seconds stages.prepare.conformers.builder=openbabel)
[ "$(ls "$t"/cache/molsieve/cost-*.json | wc -l)" -eq 2 ] || { echo "not two files in the cache"; exit 1; }
[ "$a" = "$(seconds)" ] || { echo "measured again"; exit 1; }
python3 -c 'import sys
a, b, c, d, o = map(float, sys.argv[1:])
assert 0 < d < a < b and c > 3 * a - 2 * d and o > 2 * a and a < 30, sys.argv' "$a" "$b" "$c" "$d" "$o"
for f in "$t"/cache/molsieve/cost-*.json; do echo damaged >"$f"; done
seconds >/dev/null
grep -q '"build"' "$t"/cache/molsieve/cost-*.json || { echo "a damaged file stays"; exit 1; }
