# SPDX-License-Identifier: Apache-2.0
"""The names of DGL that NVIDIA's SE3Transformer uses, as index operations of torch: for peer.py if DGL is not installed."""
import sys
import types

import torch


class DGLGraph:
    def __init__(self, ends, num_nodes):
        self.ends, self.n, self.edata = ends, num_nodes, {}

    def edges(self):
        return self.ends

    def set_batch_num_nodes(self, counts):
        self.graphs = len(counts)
        self.graph_of = torch.repeat_interleave(torch.arange(len(counts), device=counts.device), counts)


class MaxPooling(torch.nn.Module):
    def forward(self, graph, x):
        return max_of(graph.graphs, graph.graph_of, x)


def max_of(n, at, x):
    at = at.view(-1, *[1] * (x.dim() - 1)).expand_as(x)
    return x.new_zeros(n, *x.shape[1:]).scatter_reduce(0, at, x, "amax", include_self=False)


def copy_e_sum(graph, x):
    return x.new_zeros(graph.n, *x.shape[1:]).index_add(0, graph.ends[1], x)


def e_dot_v(graph, x, y):
    return (x * y[graph.ends[1]]).sum(-1, keepdim=True).to(x.dtype)


def edge_softmax(graph, x):
    at = graph.ends[1]
    x = (x - max_of(graph.n, at, x.detach())[at]).exp().to(x.dtype)
    return x / copy_e_sum(graph, x)[at]


def install():
    """From now on `import dgl` finds these. Their model also imports AvgPooling, but does not use it here."""
    names = {"dgl": {"DGLGraph": DGLGraph, "graph": DGLGraph}, "dgl.nn": {},
             "dgl.ops": {"copy_e_sum": copy_e_sum, "e_dot_v": e_dot_v, "edge_softmax": edge_softmax},
             "dgl.nn.pytorch": {"MaxPooling": MaxPooling, "AvgPooling": None}}
    for name, members in names.items():
        sys.modules[name] = types.ModuleType(name)
        vars(sys.modules[name]).update(members)
    sys.modules["dgl"].ops = sys.modules["dgl.ops"]
