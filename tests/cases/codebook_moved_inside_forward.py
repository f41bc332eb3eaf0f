"""A codebook updated by moving averages inside forward makes backward raise: the distances to it are already in the graph when
its weight is overwritten under no_grad."""
import torch
from torch import nn


class Codes(nn.Module):
    def __init__(self, count, width):
        super().__init__()
        self.table = nn.Parameter(torch.randn(count, width))

    def forward(self, z):
        gap = z @ self.table.t()
        share = gap.softmax(-1)
        with torch.no_grad():
            mean = share.t() @ z / share.sum(0, keepdim=True).t()
            self.table.copy_(0.9 * self.table + 0.1 * mean)  # CAUSE-1
        return share @ self.table


class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Linear(6, 3)
        self.codes = Codes(4, 3)
        self.up = nn.Linear(3, 6)

    def forward(self, x):
        return self.up(self.codes(torch.tanh(self.down(x))))


def make():
    torch.manual_seed(0)
    return dict(model=Coder(), args=(torch.randn(5, 6),), kwargs={}, loss=None)


EXPECT = dict(
    eager="backward-error",
    error_match="modified by an inplace operation",
    params={},
    causes=[
        dict(kind="inplace-saved", line="CAUSE-1", also_kinds=["inplace-param-or-buffer"], params=[]),
    ],
    fix=None,
    after=None,
)
