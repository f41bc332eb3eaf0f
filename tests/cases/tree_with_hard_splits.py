"""A neural decision tree trains its leaves but its split directions stay random: each split is a comparison."""
import torch
from torch import nn


class Splits(nn.Module):
    def __init__(self, size, depth):
        super().__init__()
        self.direction = nn.Linear(size, 2 ** depth - 1)
        self.depth = depth

    def forward(self, x):
        right = torch.ge(self.direction(x), 0).to(x.dtype)  # CAUSE-1
        reach = torch.ones(len(x), 1)
        first = 0
        for level in range(self.depth):
            here = right[:, first:first + 2 ** level]
            reach = torch.stack([reach * (1 - here), reach * here], -1).flatten(1)
            first += 2 ** level
        return reach


class Tree(nn.Module):
    def __init__(self):
        super().__init__()
        self.splits = Splits(5, 2)
        self.leaves = nn.Parameter(torch.randn(4, 3))
        self.skip = nn.Linear(5, 3)

    def forward(self, x):
        return self.splits(x) @ self.leaves + self.skip(x)


def make():
    torch.manual_seed(0)
    return dict(model=Tree(), args=(torch.randn(9, 5),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "leaves": "flows", "splits.direction.weight": "none", "splits.direction.bias": "none",
        "skip.weight": "flows", "skip.bias": "flows",
    },
    causes=[
        dict(kind="nondiff-op", line="CAUSE-1", params=["splits.direction.weight", "splits.direction.bias"]),
    ],
    fix=None,
    after=None,
)
