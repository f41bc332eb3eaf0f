"""Looks functional and parameterless, is right: five small networks live in stacked parameters and run under torch.func.vmap."""
import torch
from torch import nn
from torch.func import vmap


class Ensemble(nn.Module):
    def __init__(self, members=3):
        super().__init__()
        self.w1 = nn.Parameter(0.5 * torch.randn(members, 6, 4))
        self.b1 = nn.Parameter(torch.zeros(members, 6))
        self.w2 = nn.Parameter(0.5 * torch.randn(members, 1, 6))

    @staticmethod
    def one(w1, b1, w2, x):
        return nn.functional.linear(torch.tanh(nn.functional.linear(x, w1, b1)), w2)

    def forward(self, x):
        return vmap(self.one, in_dims=(0, 0, 0, None))(self.w1, self.b1, self.w2, x).std(0)


def make():
    torch.manual_seed(0)
    return dict(model=Ensemble(), args=(torch.randn(5, 4),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "w1": "flows", "b1": "flows", "w2": "flows",
    },
    causes=[],
    fix=None,
    after=None,
)
