"""Looks as if casts might cut the graph, is right: part of the network runs under autocast, the loss part explicitly outside."""
import torch
from torch import nn


class Mixed(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 8))
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            h = self.body(x)
            with torch.autocast("cpu", enabled=False):
                h = self.norm(h.float())
        return self.head(h).double()


def make():
    torch.manual_seed(0)
    return dict(model=Mixed(), args=(torch.randn(4, 6),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "body.0.weight": "flows", "body.0.bias": "flows", "body.2.weight": "flows", "body.2.bias": "flows",
        "norm.weight": "flows", "norm.bias": "flows", "head.weight": "flows", "head.bias": "flows",
    },
    causes=[],
    fix=None,
    after=None,
)
