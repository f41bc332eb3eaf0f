"""Looks dead, is right: each branch is multiplied by a gain that starts at zero, but the gain itself has a gradient, so the
branch wakes up after one step."""
import torch
from torch import nn


class Gained(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.branch = nn.Sequential(nn.Linear(width, 8), nn.ReLU(), nn.Linear(8, width))
        self.gain = nn.Parameter(torch.zeros(()))

    def forward(self, x):
        return x + self.gain * self.branch(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter = nn.Linear(4, 5)
        self.blocks = nn.Sequential(Gained(5), Gained(5))
        self.out = nn.Linear(5, 2)

    def forward(self, x):
        return self.out(self.blocks(self.enter(x)))


def make():
    torch.manual_seed(0)
    return dict(model=Net(), args=(torch.randn(4, 4),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "enter.weight": "flows", "enter.bias": "flows", "blocks.0.gain": "flows",
        "blocks.0.branch.0.weight": "zero", "blocks.0.branch.0.bias": "zero", "blocks.0.branch.2.weight": "zero",
        "blocks.0.branch.2.bias": "zero", "blocks.1.gain": "flows", "blocks.1.branch.0.weight": "zero",
        "blocks.1.branch.0.bias": "zero", "blocks.1.branch.2.weight": "zero", "blocks.1.branch.2.bias": "zero",
        "out.weight": "flows", "out.bias": "flows",
    },
    causes=[],
    fix=None,
    after=None,
)
