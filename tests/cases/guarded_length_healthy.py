"""Looks like the square-root trap, is right: zero vectors are replaced by a safe value before the square root, not after it."""
import torch
from torch import nn


def safe_length(v):
    sq = v.square().sum(-1, keepdim=True)
    empty = sq == 0
    return torch.where(empty, torch.zeros_like(sq), torch.where(empty, torch.ones_like(sq), sq).sqrt())


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.force = nn.Linear(3, 2, bias=False)
        self.stiff = nn.Parameter(torch.tensor(0.5))

    def forward(self, x):
        f = self.force(x)
        return self.stiff * safe_length(f) + f


def make():
    torch.manual_seed(0)
    x = torch.randn(5, 3)
    x[1] = 0.0
    return dict(model=Field(), args=(x,), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "stiff": "flows", "force.weight": "flows",
    },
    causes=[],
    fix=None,
    after=None,
)
