"""The learned keep-ratio of a pruning layer stays put while the weights train.
It is turned into a count of kept weights with int(), and from there on only Python numbers are used."""
import torch
from torch import nn
import torch.nn.functional as F


class PrunedLinear(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.weight = nn.Parameter(0.5 * torch.randn(o, i))
        self.bias = nn.Parameter(torch.zeros(o))
        self.ratio = nn.Parameter(torch.tensor(0.5))

    def mask(self):
        size = self.weight.detach().abs().flatten()
        keep = int(self.ratio.sigmoid() * size.numel())  # CAUSE-1
        edge = size.sort(descending=True).values[keep - 1]
        return (self.weight.detach().abs() >= edge).float()

    def forward(self, x):
        return F.linear(x, self.weight * self.mask(), self.bias)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = PrunedLinear(5, 7)
        self.b = PrunedLinear(7, 2)

    def forward(self, x):
        return self.b(torch.tanh(self.a(x)))


def make():
    torch.manual_seed(0)
    return dict(model=Net(), args=(torch.randn(6, 5),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "a.weight": "flows", "a.bias": "flows", "a.ratio": "none", "b.weight": "flows", "b.bias": "flows",
        "b.ratio": "none",
    },
    causes=[
        dict(kind="python-value", line="CAUSE-1", params=["a.ratio", "b.ratio"]),
    ],
    fix=None,
    after=None,
)
