"""Keeping the padding row of a self-made embedding at zero by assigning to it inside forward fails: the table is a leaf that
requires grad, and so is any slice of it."""
import torch
from torch import nn


class Table(nn.Module):
    def __init__(self, rows, width):
        super().__init__()
        self.rows = nn.Parameter(torch.randn(rows, width))

    def forward(self, ids):
        self.rows[0] = 0.0  # CAUSE-1
        return self.rows[ids]


class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = Table(7, 4)
        self.out = nn.Linear(4, 2)

    def forward(self, ids):
        return self.out(self.table(ids).sum(1))


def make():
    torch.manual_seed(0)
    return dict(model=Bag(), args=(torch.randint(0, 7, (3, 4)),), kwargs={}, loss=None)


EXPECT = dict(
    eager="forward-error",
    error_match="leaf Variable that requires grad",
    params={},
    causes=[
        dict(kind="inplace-leaf", line="CAUSE-1", params=[]),
    ],
    fix=None,
    after=None,
)
