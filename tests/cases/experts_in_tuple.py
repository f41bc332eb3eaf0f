"""Experts are kept in a tuple: they take part in forward but are missing from parameters(), so only the router is trained."""
import torch
from torch import nn


def expert(width):
    return nn.Sequential(nn.Linear(width, 6), nn.SiLU(), nn.Linear(6, width))


class Experts(nn.Module):
    def __init__(self, width, count):
        super().__init__()
        self.router = nn.Linear(width, count)
        self.experts = tuple(expert(width) for _ in range(count))  # CAUSE-1

    def forward(self, x):
        share = self.router(x).softmax(-1)
        return sum(share[:, i:i + 1] * e(x) for i, e in enumerate(self.experts))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = Experts(4, 3)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(x + self.mix(x))


def make():
    torch.manual_seed(0)
    return dict(model=Net(), args=(torch.randn(5, 4),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "mix.router.weight": "flows", "mix.router.bias": "flows", "head.weight": "flows", "head.bias": "flows",
    },
    causes=[
        dict(kind="unregistered-param", line="CAUSE-1", params=[]),
    ],
    fix=None,
    after=None,
)
