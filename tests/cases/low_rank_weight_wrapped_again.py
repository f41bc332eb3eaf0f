"""Both factors of a low-rank layer have no gradient: their product is wrapped in nn.Parameter inside forward, which makes a
new leaf of it."""
import torch
from torch import nn
import torch.nn.functional as F


class LowRank(nn.Module):
    def __init__(self, i, o, rank):
        super().__init__()
        self.tall = nn.Parameter(0.4 * torch.randn(o, rank))
        self.wide = nn.Parameter(0.4 * torch.randn(rank, i))
        self.bias = nn.Parameter(torch.zeros(o))

    def forward(self, x):
        weight = nn.Parameter(self.tall @ self.wide)  # CAUSE-1
        return F.linear(x, weight, self.bias)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(LowRank(6, 8, 2), nn.ReLU(), LowRank(8, 3, 2))

    def forward(self, x):
        return self.layers(x)


def make():
    torch.manual_seed(0)
    return dict(model=Net(), args=(torch.randn(4, 6),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "layers.0.tall": "none", "layers.0.wide": "none", "layers.0.bias": "flows", "layers.2.tall": "none",
        "layers.2.wide": "none", "layers.2.bias": "flows",
    },
    causes=[
        dict(kind="non-leaf-param", line="CAUSE-1",
             params=["layers.0.tall", "layers.2.tall", "layers.0.wide", "layers.2.wide"]),
    ],
    fix=None,
    after=None,
)
