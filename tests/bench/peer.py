#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's SE3Transformer on the molecules, the batch and the network of `molsieve bench`.

    tests/bench/peer.py --code FOLDER [--device cpu|cuda] [--precision fp32,tf32,amp] [--batch 240] ...

FOLDER holds their folder se3_transformer (DeepLearningExamples, DGLPyTorch/DrugDiscovery/SE3Transformer); it is imported
as it is and wants torch, e3nn and dgl. Where dgl cannot be imported, or with --stand-in, the few functions that their
model calls of it are index operations of torch (dgl_stand_in.py).

The network is that of their QM9 training. --fuse full is what they take on tensor cores, partial elsewhere. Training:
forward, L1 loss, backward, AdamW; in amp on a GPU with their scaled loss. amp is fp16 on a GPU, bf16 on a CPU. The best
step of about --seconds a figure, three at least: processor time with one thread on a CPU, as `molsieve bench` counts,
else wall time. Memory: on a CPU the most that was resident less what was before the network, on a GPU what torch allocated."""
import argparse
import contextlib
import ctypes
import gc
import json
import math
import os
import sys
import time

import torch

MOLECULES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../workflows/data/qm9-30.sdf")
ELEMENTS = {"H": (0, 1), "C": (1, 6), "N": (2, 7), "O": (3, 8), "F": (4, 9)}
DEGREES, CHANNELS, LAYERS = 4, 32, 7
COLUMNS = ["forward mol/s", "training mol/s", "forward us/e/l", "training us/e/l", "forward MiB", "training MiB", "first loss"]


def dgl_get(stand_in):
    """The module, and its name for the table."""
    try:
        if stand_in:
            raise ImportError
        import dgl
        import dgl.ops
        return dgl, "dgl " + dgl.__version__
    except Exception:  # a DGL that wants another torch fails in many ways
        for name in [n for n in sys.modules if n.split(".")[0] == "dgl"]:
            del sys.modules[name]
        import dgl_stand_in
        dgl_stand_in.install()
        return sys.modules["dgl"], "a stand-in for dgl"


def molecules_read(path):
    """[(symbols, positions, {(i, j): kind of bond})] of an SDF file."""
    found = []
    with open(path) as f:
        records = f.read().split("$$$$\n")
    for lines in (r.split("\n") for r in records if r.strip()):
        n, m = int(lines[3][:3]), int(lines[3][3:6])
        atoms, bonds = lines[4:4 + n], {}
        for i, j, kind in ((int(b[:3]) - 1, int(b[3:6]) - 1, int(b[6:9])) for b in lines[4 + n:4 + n + m]):
            bonds[i, j] = bonds[j, i] = kind
        found.append(([a[31:34].strip() for a in atoms], [[float(a[k:k + 10]) for k in (0, 10, 20)] for a in atoms], bonds))
    return found


def batch_make(dgl, molecules, n, cutoff, device):
    """n molecules, repeated in order: graph, features of nodes and edges. cutoff 0: edges are bonds."""
    nodes, edges, src, dst, rel, counts = [], [], [], [], [], []
    for symbols, xyz, bonds in (molecules[i % len(molecules)] for i in range(n)):
        base, size = len(nodes), range(len(xyz))
        for i, j in ((i, j) for i in size for j in size if i != j and math.dist(xyz[i], xyz[j]) <= cutoff) if cutoff else bonds:
            src.append(base + i)
            dst.append(base + j)
            rel.append([b - a for a, b in zip(xyz[i], xyz[j])])
            edges.append([float(bonds.get((i, j)) == kind) for kind in (1, 2, 3, 4)])
        nodes += [[float(ELEMENTS[s][0] == k) for k in range(5)] + [ELEMENTS[s][1]] for s in symbols]
        counts.append(len(xyz))
    graph = dgl.graph((torch.tensor(src, device=device), torch.tensor(dst, device=device)), num_nodes=len(nodes))
    graph.set_batch_num_nodes(torch.tensor(counts, device=device))
    graph.edata["rel_pos"] = torch.tensor(rel, device=device)
    return graph, {"0": torch.tensor(nodes, device=device)[..., None]}, {"0": torch.tensor(edges, device=device)[..., None]}


class Meter:
    """Clock and memory of the device."""
    def __init__(self, device, threads):
        self.cuda, self.base = device == "cuda", 0
        self.clock = time.process_time if device == "cpu" and threads == 1 else time.perf_counter
        self.base = self.peak()

    def now(self):
        if self.cuda:
            torch.cuda.synchronize()
        return self.clock()

    def best(self, step, seconds):
        begun, times = self.now(), []
        while len(times) < 3 or self.now() - begun < seconds:
            start = self.now()
            step()
            times.append(self.now() - start)
        return min(times)

    def peak(self):
        """Peak MiB since the last call; resets the peak."""
        if self.cuda:
            most = torch.cuda.max_memory_allocated() / 2**20
            torch.cuda.reset_peak_memory_stats()
            return most
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        with open("/proc/self/status") as status, open("/proc/self/clear_refs", "w") as clear:
            most = next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))
            clear.write("5")
        return most - self.base


def model_make(args):
    from se3_transformer.model import Fiber, SE3TransformerPooled
    torch.manual_seed(1)
    return SE3TransformerPooled(
        fiber_in=Fiber({0: 6}), fiber_out=Fiber({0: DEGREES * CHANNELS}), fiber_edge=Fiber({0: 4}), output_dim=1,
        num_degrees=DEGREES, num_channels=CHANNELS, num_layers=LAYERS, num_heads=8, channels_div=2, pooling="max", norm=True,
        use_layer_norm=True, tensor_cores=args.fuse == "full", low_memory=False).to(args.device)


def measure(args, meter, inputs, precision, precomputed):
    """The numbers of a row of the table."""
    from se3_transformer.model.basis import get_basis
    amp, cuda, rel = precision == "amp", args.device == "cuda", inputs[0].edata["rel_pos"]
    torch.backends.cuda.matmul.allow_tf32 = precision != "fp32"
    model, targets = model_make(args), torch.linspace(-1, 1, args.batch, device=args.device)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.1, fused=cuda)
    scaler = torch.cuda.amp.GradScaler(enabled=amp and cuda)
    basis = get_basis(rel, DEGREES - 1, use_pad_trick=args.fuse == "full", amp=amp and cuda) if precomputed else {}

    def predict():
        with torch.autocast(args.device, torch.float16 if cuda else torch.bfloat16, enabled=amp):
            return torch.nn.functional.l1_loss(model(*inputs, dict(basis)), targets)

    def train():
        optimiser.zero_grad(set_to_none=True)
        scaler.scale(predict()).backward()
        scaler.step(optimiser)
        scaler.update()

    meter.peak()
    with torch.inference_mode():
        loss = float(predict())
        forward = meter.best(predict, args.seconds)
    memory = [meter.peak()]
    training = math.nan if args.forward else meter.best(train, args.seconds)
    memory.append(math.nan if args.forward else meter.peak())
    work = rel.shape[0] * (LAYERS - 1) * 1e-6
    row = [args.batch / forward, args.batch / training, forward / work, training / work, *memory, loss]
    return [v if math.isfinite(v) else None for v in row]


def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--code", required=True, help="the folder that holds se3_transformer")
    p.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    p.add_argument("--precision", default="fp32", help="a list of fp32, tf32, amp")
    p.add_argument("--fuse", choices=["full", "partial"], default="full", help="how far convolutions are fused (full)")
    p.add_argument("--batch", type=int, default=240, help="molecules (240)")
    p.add_argument("--graphs", choices=["bonds", "radius5"], default="bonds")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--seconds", type=float, default=5, help="about so long a figure (5)")
    p.add_argument("--forward", action="store_true", help="no training")
    p.add_argument("--stand-in", action="store_true", help="no dgl, even if it is there")
    p.add_argument("--json", action="store_true", help="one JSON object in place of the table")
    return p.parse_args()


def main():
    args = arguments()
    torch.set_num_threads(args.threads)
    sys.path.insert(0, args.code)
    dgl, dgl_name = dgl_get(args.stand_in)
    if not torch.version.cuda:
        torch.cuda.nvtx.range = contextlib.nullcontext  # marks for the profiler of a GPU
    inputs = batch_make(dgl, molecules_read(MOLECULES), args.batch, 5 if args.graphs == "radius5" else 0, args.device)
    device = torch.cuda.get_device_name() if args.device == "cuda" else "cpu"
    head = {"torch": torch.__version__, "dgl": dgl_name, "device": device, "fuse": args.fuse, "graphs": args.graphs,
            "molecules": args.batch, "atoms": len(inputs[1]["0"]), "edges": len(inputs[2]["0"]),
            "parameters": sum(p.numel() for p in model_make(args).parameters())}
    meter, rows = Meter(args.device, args.threads), []
    if not args.json:
        print(", ".join(f"{k} {v}" for k, v in head.items()) + "\n")
        print(f"| variant | threads | {' | '.join(COLUMNS)} |\n|---|" + "--:|" * 8, flush=True)
    for name, precomputed in ((p, b) for p in args.precision.split(",") for b in (False, True)):
        rows.append({"variant": name + (", bases precomputed" if precomputed else ""), "threads": args.threads})
        rows[-1].update(zip(COLUMNS, measure(args, meter, inputs, name, precomputed)))
        if not args.json:
            cells = (f"{v:.4g}" if isinstance(v, float) else str(v or "-") for v in rows[-1].values())
            print(f"| {' | '.join(cells)} |", flush=True)
    if args.json:
        print(json.dumps({**head, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
