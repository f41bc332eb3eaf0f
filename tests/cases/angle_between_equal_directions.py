"""A geodesic loss between rotations is exactly zero where prediction and target agree, and the gradient there is NaN: acos has
an infinite slope at one."""
import torch
from torch import nn


class Rotation(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.turn = nn.Parameter(torch.zeros(n))
        self.bias = nn.Parameter(torch.zeros(()))

    def forward(self):
        a = self.turn + self.bias
        return torch.stack([torch.cos(a), torch.sin(a)], -1)


def geodesic(a, b):
    inner = (a * b).sum(-1)
    return torch.acos(inner)  # CAUSE-1


class Align(nn.Module):
    def __init__(self):
        super().__init__()
        self.rotation = Rotation(3)
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, goal):
        return (self.weight * geodesic(self.rotation(), goal)).sum()


def make():
    torch.manual_seed(0)
    goal = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    return dict(model=Align(), args=(goal,), kwargs={}, loss=lambda l: l)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "weight": "flows", "rotation.turn": "nan", "rotation.bias": "nan",
    },
    causes=[
        dict(kind="nan-grad", line="CAUSE-1", params=["rotation.turn", "rotation.bias"]),
    ],
    fix=None,
    after=None,
)
