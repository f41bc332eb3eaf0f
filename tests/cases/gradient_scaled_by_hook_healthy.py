"""Looks suspicious, is right: a tensor hook gives the shared trunk a tenth of the second task's gradient, without writing into it."""
import torch
from torch import nn


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(5, 6), nn.Tanh())
        self.main = nn.Linear(6, 2)
        self.side = nn.Linear(6, 1)

    def forward(self, x):
        h = self.trunk(x)
        weak = h.view_as(h)
        if weak.requires_grad:
            weak.register_hook(lambda g: 0.1 * g)
        return self.main(h), self.side(weak)


def make():
    torch.manual_seed(0)
    return dict(model=Shared(), args=(torch.randn(4, 5),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "trunk.0.weight": "flows", "trunk.0.bias": "flows", "main.weight": "flows", "main.bias": "flows",
        "side.weight": "flows", "side.bias": "flows",
    },
    causes=[],
    fix=None,
    after=None,
)
