"""Clamping distances in place against division by zero breaks backward: sqrt needs the value it returned."""
import torch
from torch import nn


class Points(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift = nn.Linear(3, 4)

    def forward(self, x):
        return self.lift(x)


def pairwise(z):
    gap = z.unsqueeze(1) - z.unsqueeze(0)
    d = gap.square().sum(-1).add(1e-8).sqrt()
    d.clamp_(min=1e-2)  # CAUSE-1
    return d


class Energy(nn.Module):
    def __init__(self):
        super().__init__()
        self.points = Points()
        self.charge = nn.Parameter(torch.rand(5))

    def forward(self, x):
        pair = self.charge.unsqueeze(1) * self.charge
        return (pair / pairwise(self.points(x))).triu(1).sum()


def reference():
    class Copying(Energy):
        def forward(self, x):
            z = self.points(x)
            d = (z.unsqueeze(1) - z.unsqueeze(0)).square().sum(-1).add(1e-8).sqrt().clamp(min=1e-2)
            return (self.charge.unsqueeze(1) * self.charge / d).triu(1).sum()
    torch.manual_seed(0)
    return dict(model=Copying(), args=(torch.randn(5, 3),), kwargs={}, loss=None)


def make():
    torch.manual_seed(0)
    return dict(model=Energy(), args=(torch.randn(5, 3),), kwargs={}, loss=None)


EXPECT = dict(
    eager="backward-error",
    error_match="modified by an inplace operation",
    params={},
    causes=[
        dict(kind="inplace-saved", line="CAUSE-1", params=[]),
    ],
    fix="restores",
    after={
        "charge": "flows", "points.lift.weight": "flows", "points.lift.bias": "flows",
    },
)
