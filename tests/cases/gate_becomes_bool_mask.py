"""Edges of a learned graph are switched on by a bool mask: the edge scorer has no gradient, the node layers do."""
import torch
from torch import nn


class EdgeScorer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.a = nn.Linear(width, width, bias=False)
        self.b = nn.Linear(width, width, bias=False)

    def forward(self, x):
        return torch.relu(self.a(x) @ self.b(x).t())


class GraphLayer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.edges = EdgeScorer(width)
        self.node = nn.Linear(width, width)

    def forward(self, x):
        keep = self.edges(x).bool()  # CAUSE-1
        blocked = torch.zeros(keep.shape).masked_fill(~keep, -1e4)
        return x + blocked.softmax(-1) @ torch.tanh(self.node(x))


class Graph(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([GraphLayer(4), GraphLayer(4)])
        self.read = nn.Linear(4, 2)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.read(x.sum(0))


def make():
    torch.manual_seed(0)
    return dict(model=Graph(), args=(torch.randn(6, 4),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "layers.0.edges.a.weight": "none", "layers.0.edges.b.weight": "none", "layers.0.node.weight": "flows",
        "layers.0.node.bias": "flows", "layers.1.edges.a.weight": "none", "layers.1.edges.b.weight": "none",
        "layers.1.node.weight": "flows", "layers.1.node.bias": "flows", "read.weight": "flows",
        "read.bias": "flows",
    },
    causes=[
        dict(kind="int-cast", line="CAUSE-1", also_kinds=["nondiff-op"],
             params=["layers.0.edges.a.weight", "layers.0.edges.b.weight", "layers.1.edges.a.weight",
              "layers.1.edges.b.weight"]),
    ],
    fix=None,
    after=None,
)
