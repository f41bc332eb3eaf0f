"""Looks saturated, is right: all weights lie outside the clamp range, but the custom Function passes the gradient through."""
import torch
from torch import nn
import torch.nn.functional as F


class ClampThrough(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, low, high):
        return x.clamp(low, high)

    @staticmethod
    def backward(ctx, grad):
        return grad.clone(), None, None


class Ternary(nn.Linear):
    def forward(self, x):
        return F.linear(x, ClampThrough.apply(self.weight, -0.05, 0.05), self.bias)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Ternary(5, 6)
        self.b = Ternary(6, 2)

    def forward(self, x):
        return self.b(F.leaky_relu(self.a(x)))


def make():
    torch.manual_seed(0)
    model = Net()
    for p in (model.a.weight, model.b.weight):
        nn.init.uniform_(p, 0.5, 1.0)
    return dict(model=model, args=(torch.randn(4, 5),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "a.weight": "flows", "a.bias": "flows", "b.weight": "flows", "b.bias": "flows",
    },
    causes=[],
    fix=None,
    after=None,
)
