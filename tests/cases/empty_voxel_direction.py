"""Normals of a learned surface are NaN in backward only: empty cells give a zero vector, 0/0 is masked away in the output, and
the division still passes NaN back."""
import torch
from torch import nn


class Occupancy(nn.Module):
    def __init__(self):
        super().__init__()
        self.grid = nn.Parameter(torch.randn(4, 3))
        self.gate = nn.Linear(3, 3, bias=False)

    def forward(self, filled):
        return torch.tanh(self.gate(self.grid)) * filled.unsqueeze(-1)


def directions(v):
    length = v.pow(2).sum(-1, keepdim=True)
    unit = v / length  # CAUSE-1
    return torch.where(length > 0, unit, torch.zeros_like(unit))  # ALSO-1


class Surface(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells = Occupancy()
        self.shade = nn.Linear(3, 1)

    def forward(self, filled):
        return self.shade(directions(self.cells(filled)))


def make():
    torch.manual_seed(0)
    return dict(model=Surface(), args=(torch.tensor([1.0, 0.0, 1.0, 1.0]),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "cells.grid": "nan", "cells.gate.weight": "nan", "shade.weight": "flows", "shade.bias": "flows",
    },
    causes=[
        dict(kind="nan-grad", line="CAUSE-1", also=["ALSO-1"], params=["cells.grid", "cells.gate.weight"]),
    ],
    fix=None,
    after=None,
)
