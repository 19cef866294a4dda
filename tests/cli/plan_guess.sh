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
