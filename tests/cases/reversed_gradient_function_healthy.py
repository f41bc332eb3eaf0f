"""Looks wrong, is right: a custom Function negates the gradient on purpose and returns None for its strength, which is a number."""
import torch
from torch import nn


class Flip(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return grad.neg() * ctx.strength, None


class Adapted(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(5, 6), nn.ReLU(), nn.Linear(6, 4))
        self.label = nn.Linear(4, 3)
        self.domain = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))

    def forward(self, x):
        h = self.features(x)
        return self.label(h), self.domain(Flip.apply(h, 0.3))


def make():
    torch.manual_seed(0)
    return dict(model=Adapted(), args=(torch.randn(6, 5),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "features.0.weight": "flows", "features.0.bias": "flows", "features.2.weight": "flows",
        "features.2.bias": "flows", "label.weight": "flows", "label.bias": "flows", "domain.0.weight": "flows",
        "domain.0.bias": "flows", "domain.2.weight": "flows", "domain.2.bias": "flows",
    },
    causes=[],
    fix=None,
    after=None,
)
