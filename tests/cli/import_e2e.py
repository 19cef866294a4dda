#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Weights of NVIDIA's SE3Transformer become a model file that predicts what their program did."""
import gzip
import json
import os
import struct
import subprocess
import sys

import sieve
from python_env import environment, python
from sieve import Project, data

SYMBOL = {1: "H", 6: "C", 7: "N", 8: "O", 9: "F"}
FORMATS = {"F64": "d", "F32": "f", "I64": "q", "I32": "i", "U8": "B"}
TINY = ("--from", "nvidia", "--target", "y", "--network", "layers=2,degrees=2,channels=8,heads=2")


def tensors(name):
    """Header and bytes of a stored case of the reference."""
    with gzip.open(data("golden/%s.safetensors.gz" % name)) as f:
        text = f.read()
    n = int.from_bytes(text[:8], "little")
    return json.loads(text[8:8 + n]), text[8 + n:]


def numbers(case, name):
    head, text = case
    begin, end = head[name]["data_offsets"]
    kind = FORMATS[head[name]["dtype"]]
    return struct.unpack("<%d%s" % ((end - begin) // struct.calcsize(kind), kind), text[begin:end])


def weights(case, before="", change=lambda parts: parts):
    """The state_dict of a case as a safetensors file."""
    head, text = case
    parts = change({name[2:]: (x["dtype"], x["shape"], text[slice(*x["data_offsets"])]) for name, x in head.items() if name.startswith("w.")})
    out, blob = {}, b""
    for name, (dtype, shape, part) in parts.items():
        out[before + name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(blob), len(blob) + len(part)]}
        blob += part
    top = json.dumps(out).encode()
    top += b" " * (-len(top) % 8)
    return len(top).to_bytes(8, "little") + top + blob


def molecules():
    """The molecules of the reference as XYZ, with all digits."""
    case = tensors("molecules_golden")
    z, pos, text, at = numbers(case, "Z"), numbers(case, "pos"), "", 0
    for n in numbers(case, "num_atoms"):
        text += "%d\n\n" % n + "".join("%s %.9g %.9g %.9g\n" % (SYMBOL[z[k]], *pos[3 * k:3 * k + 3]) for k in range(at, at + n))
        at += n
    return text


def scores(p, model, graph):
    """Of every molecule, by a workflow: as their network sees it, without the mean over mirror images."""
    p.put("w.yaml", "format: 1\nname: w\nworkdir: run-%s\ninputs: [{path: golden.xyz}]\nmodels: {y: {path: %s}}\nstages:\n  read: {}\n"
          "  prepare: {conformers: {source: keep}, dedupe: {by: none}}\n  graph: {edges: %s}\n  basis: {kind: frame_f32}\n"
          "  score: {models: [y], mirror: as_is, engine: ref}\n" % (model, model, graph))
    p.run("run", "w.yaml", "-q")
    return [y for y, in p.rows("SELECT value FROM prediction ORDER BY mol_id", workdir="run-" + model)]


def imported_weights_predict_what_the_reference_did():
    with Project() as p:
        p.put("golden.xyz", molecules())
        for name, kind, graph, before in (("b4_tiny_full_bonds", "bonds", "bonds", ""), ("b4_tiny_full", "all", "radius, cutoff: 20", "module.")):
            case = tensors(name)
            p.put("w.safetensors", weights(case, before))
            out = p.run("model", "import", "w.safetensors", "--graph", kind, "-o", kind + ".safetensors", *TINY)[1]
            assert "29161 parameters as f32, convolutions fused: full" in out, out
            p.run("model", "verify", kind + ".safetensors")
            got, want = scores(p, kind + ".safetensors", graph), numbers(case, "64.y")
            assert len(got) == len(want) == 5
            for a, b in zip(got, want):
                assert abs(a - b) < 2e-5 * max(map(abs, want)), (name, got, want)
            p.run("model", "import", "w.safetensors", "--graph", kind, "-o", "scaled", "--mean", "-6.5", "--std", "0.5", *TINY)
            for a, b in zip(scores(p, "scaled", graph), want):
                assert abs(a - (b * 0.5 - 6.5)) < 2e-5, (a, b)
            for left in ("run-scaled",):
                p.run("db", "check", left)


def wrong_weights_are_refused_with_what_is_wrong():
    with Project() as p:
        case = tensors("b4_tiny_full_bonds")

        def bad(content, says, *args, expect=5):
            p.put("w.safetensors", content)
            _, _, err = p.run("model", "import", "w.safetensors", "-o", "out.safetensors", *args, expect=expect)
            assert says in err and not os.path.exists(p.path("out.safetensors")), err

        good = weights(case)
        name = "transformer.graph_modules.0.project.weights.1"
        bad(b"PK\3\4 and so on", "python3 -m molsieve.nvidia", *TINY)
        bad(good[:-5], "w.safetensors", *TINY)
        bad(weights(case, change=lambda x: {k: v for k, v in x.items() if k != name}), name + " is missing", *TINY)
        bad(weights(case, change=lambda x: dict(x, more=("F32", [1], b"\0\0\0\0"))), "tensor more does not belong", *TINY)
        bad(weights(case, change=lambda x: {k: (t, s, b"\0\0\xc0\x7f" + v[4:]) if k == name else (t, s, v) for k, (t, s, v) in x.items()}), "is not finite", *TINY)
        bad(good, "the model needs", "--from", "nvidia", "--target", "y")  # the published settings
        for args, says in ((("--target", "y"), "needs --from nvidia"), (("--from", "nvidia"), "--target NAME"), (TINY + ("--std", "0"), "--std"),
                           (TINY + ("--graph", "knn"), "--graph knn"), (TINY[:-1] + ("layers=x",), "--network layers=x"),
                           (TINY[:-1] + ("channels=8,heads=3",), "--network: ")):
            bad(good, says, *args, expect=2)
        p.put("results.db", b"SQLite format 3\0")
        _, _, err = p.run("model", "import", "w.safetensors", "-o", "results.db", *TINY, expect=2)
        assert "results.db is a database and is not replaced" in err and open(p.path("results.db"), "rb").read() == b"SQLite format 3\0", err


def bf16_models_open_in_plain_safetensors():
    """Names, types, shapes and metadata with the PyPI package alone; the numbers with a library that has bfloat16."""
    environment()
    with Project() as p:
        case = tensors("b4_tiny_full_bonds")
        half = lambda x: {k: ("BF16", s, b"".join(v[i + 2:i + 4] for i in range(0, len(v), 4))) for k, (_, s, v) in x.items()}  # noqa: E731
        p.put("w.safetensors", weights(case, change=half))
        assert "as bf16" in p.run("model", "import", "w.safetensors", "--graph", "bonds", "-o", "m.safetensors", *TINY)[1]
        out = python("""
from safetensors import safe_open, deserialize
import numpy
raw = open("m.safetensors", "rb").read()
parts = dict(deserialize(raw))
given = dict(deserialize(open("w.safetensors", "rb").read()))
assert parts.keys() == given.keys() and all(x["dtype"] == "BF16" and x["shape"] == given[k]["shape"] for k, x in parts.items())
assert all(bytes(x["data"]) == bytes(given[k]["data"]) for k, x in parts.items())
one = next(iter(parts.values()))  # numpy has no bfloat16: the upper half of a float32
numbers = (numpy.frombuffer(bytes(one["data"]), "<u2").astype("uint32") << 16).view("float32")
assert numpy.isfinite(numbers).all() and numbers.std() > 0
with safe_open("m.safetensors", "numpy") as f:
    assert f.metadata()["format"] == "molsieve-model" and len(list(f.keys())) == len(parts)
print("same", len(parts))
""", p)
        assert out.startswith("same "), out


MAKE = """
import torch
from safetensors.torch import load_file
state = load_file("w.safetensors")
torch.save({"state_dict": {"module." + k: v.double() for k, v in state.items()}, "epoch": 3, "optimizer_state_dict": {"state": {}}}, "w.pth")
torch.save({"state_dict": {"x": print}}, "evil.pth")
"""


def with_torch():
    """A Python that has torch and safetensors."""
    for x in (os.environ.get("MOLSIEVE_TORCH_PYTHON"), sys.executable, "/usr/bin/python3"):
        if x and os.path.exists(x) and subprocess.run([x, "-c", "import torch, safetensors.torch"], capture_output=True).returncode == 0:
            return x
    sieve.skip("needs a Python with torch and safetensors (MOLSIEVE_TORCH_PYTHON)")


def a_checkpoint_of_pytorch_is_converted():
    interpreter = with_torch()
    with Project() as p:
        p.put("w.safetensors", weights(tensors("b4_tiny_full_bonds")))
        run = {"cwd": p.dir, "env": dict(os.environ, PYTHONPATH=os.path.join(os.environ["MOLSIEVE_SOURCE"], "python")), "capture_output": True, "text": True}
        subprocess.run([interpreter, "-c", MAKE], check=True, **run)
        _, _, err = p.run("model", "import", "w.pth", "-o", "m.safetensors", *TINY, expect=5)
        assert "python3 -m molsieve.nvidia" in err, err
        done = subprocess.run([interpreter, "-m", "molsieve.nvidia", "w.pth", "v.safetensors"], **run)
        assert done.returncode == 0 and "tensors" in done.stdout, done
        for name in "wv":
            p.run("model", "import", name + ".safetensors", "-o", name + "-model.safetensors", *TINY)
        same = p.run("model", "diff", "w-model.safetensors", "v-model.safetensors", expect=None)[1]
        assert all(x.startswith("provenance.data") for x in same.splitlines()), same
        for bad in ("evil.pth", "w.safetensors", "none.pth"):
            done = subprocess.run([interpreter, "-m", "molsieve.nvidia", bad, "x.safetensors"], **run)
            assert done.returncode == 5 and bad in done.stderr and not os.path.exists(p.path("x.safetensors")), done


if __name__ == "__main__":
    sieve.main([imported_weights_predict_what_the_reference_did, wrong_weights_are_refused_with_what_is_wrong,
                bf16_models_open_in_plain_safetensors, a_checkpoint_of_pytorch_is_converted])
