"""A soft alignment fills its table cell by cell. The cells are kept by the exponential of the next cell's cost, so writing the
table while reading it breaks backward."""
import torch
from torch import nn


class Costs(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 4)
        self.b = nn.Linear(2, 4)

    def forward(self, x, y):
        return (self.a(x).unsqueeze(1) - self.b(y).unsqueeze(0)).square().mean(-1)


class Align(nn.Module):
    def __init__(self):
        super().__init__()
        self.costs = Costs()

    def forward(self, x, y):
        cost = self.costs(x, y)
        rows, cols = cost.shape
        table = torch.ones(rows + 1, cols + 1)
        for i in range(rows):
            for j in range(cols):
                before = table[i, j] * table[i, j + 1] * table[i + 1, j]
                table[i + 1, j + 1] = before * torch.exp(-0.1 * cost[i, j])  # CAUSE-1
        return -table[rows, cols].log()


def make():
    torch.manual_seed(0)
    return dict(model=Align(), args=(torch.randn(3, 3), torch.randn(2, 2)), kwargs={}, loss=lambda l: l)


EXPECT = dict(
    eager="backward-error",
    error_match="modified by an inplace operation",
    params={},
    causes=[
        dict(kind="inplace-saved", line="CAUSE-1", params=[]),
    ],
    fix=None,
    after=None,
)
