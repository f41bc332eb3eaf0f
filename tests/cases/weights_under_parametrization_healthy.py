"""Looks as if weights were replaced by computed tensors, is right: weight norm, spectral norm and an own symmetric form recompute
them from registered originals at each access."""
import torch
from torch import nn
from torch.nn.utils import parametrizations, parametrize


class Symmetric(nn.Module):
    def forward(self, w):
        return w.triu() + w.triu(1).transpose(-1, -2)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = parametrizations.weight_norm(nn.Linear(5, 6))
        self.b = parametrizations.spectral_norm(nn.Linear(6, 6))
        self.c = nn.Linear(6, 6)
        parametrize.register_parametrization(self.c, "weight", Symmetric())
        self.d = nn.Linear(6, 2)

    def forward(self, x):
        h = torch.tanh(self.a(x))
        h = torch.tanh(self.b(h))
        return self.d(torch.relu(self.c(h)))


def make():
    torch.manual_seed(0)
    return dict(model=Net(), args=(torch.randn(4, 5),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "a.bias": "flows", "a.parametrizations.weight.original0": "flows",
        "a.parametrizations.weight.original1": "flows", "b.bias": "flows",
        "b.parametrizations.weight.original": "flows", "c.bias": "flows",
        "c.parametrizations.weight.original": "flows", "d.weight": "flows", "d.bias": "flows",
    },
    causes=[],
    fix=None,
    after=None,
)
