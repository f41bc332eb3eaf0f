"""Looks as if weights could not learn, is right: the base is stored as int8 buffers and dequantised, and only the adapter beside it
is a parameter."""
import torch
from torch import nn
import torch.nn.functional as F


class QuantLinear(nn.Module):
    def __init__(self, i, o, rank=2):
        super().__init__()
        w = torch.randn(o, i)
        scale = w.abs().amax(1, keepdim=True) / 127
        self.register_buffer("codes", torch.round(w / scale).to(torch.int8))
        self.register_buffer("scale", scale)
        self.down = nn.Parameter(0.3 * torch.randn(rank, i))
        self.up = nn.Parameter(0.1 * torch.randn(o, rank))

    def forward(self, x):
        base = F.linear(x, self.codes.to(x.dtype) * self.scale)
        return base + F.linear(F.linear(x, self.down), self.up)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(QuantLinear(5, 6), nn.GELU(), QuantLinear(6, 3))

    def forward(self, x):
        return self.layers(x)


def make():
    torch.manual_seed(0)
    return dict(model=Net(), args=(torch.randn(4, 5),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "layers.0.down": "flows", "layers.0.up": "flows", "layers.2.down": "flows", "layers.2.up": "flows",
    },
    causes=[],
    fix=None,
    after=None,
)
