"""Looks like an in-place hazard, is right: the alignment table is written cell by cell, but the soft minimum keeps stacked copies,
not the table."""
import torch
from torch import nn


class SoftAlign(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 4)
        self.b = nn.Linear(2, 4)

    def forward(self, x, y):
        cost = (self.a(x).unsqueeze(1) - self.b(y).unsqueeze(0)).square().sum(-1)
        rows, cols = cost.shape
        table = torch.full((rows + 1, cols + 1), 1e4)
        table[0, 0] = 0.0
        for i in range(rows):
            for j in range(cols):
                around = torch.stack([table[i, j], table[i, j + 1], table[i + 1, j]])
                table[i + 1, j + 1] = cost[i, j] - torch.logsumexp(-around, 0)
        return table[-1, -1]


def make():
    torch.manual_seed(0)
    return dict(model=SoftAlign(), args=(torch.randn(3, 3), torch.randn(4, 2)), kwargs={}, loss=lambda l: l)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "a.weight": "flows", "a.bias": "flows", "b.weight": "flows", "b.bias": "flows",
    },
    causes=[],
    fix="same",
    after=None,
)
