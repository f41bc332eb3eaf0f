"""Locality hashing before the memory: the projection is compared with zero and the resulting bits are packed into an
address, so the hash projection cannot learn."""
import torch
from torch import nn


class Hash(nn.Module):
    def __init__(self, width, bits):
        super().__init__()
        self.planes = nn.Linear(width, bits)
        self.register_buffer("place", 2 ** torch.arange(bits))

    def forward(self, x):
        bits = self.planes(x) > 0  # CAUSE-1
        return (bits * self.place).sum(-1)


class Memory(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter = nn.Linear(5, 4)
        self.hash = Hash(4, 3)
        self.cells = nn.Embedding(8, 4)
        self.leave = nn.Linear(8, 2)

    def forward(self, x):
        h = torch.tanh(self.enter(x))
        return self.leave(torch.cat([h, self.cells(self.hash(h))], -1))


def make():
    torch.manual_seed(0)
    return dict(model=Memory(), args=(torch.randn(6, 5),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "enter.weight": "flows", "enter.bias": "flows", "hash.planes.weight": "none", "hash.planes.bias": "none",
        "cells.weight": "flows", "leave.weight": "flows", "leave.bias": "flows",
    },
    causes=[
        dict(kind="nondiff-op", line="CAUSE-1", params=["hash.planes.weight", "hash.planes.bias"]),
    ],
    fix=None,
    after=None,
)
