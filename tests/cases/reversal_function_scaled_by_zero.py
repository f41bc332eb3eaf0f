"""Domain-adversarial training leaves the feature extractor untouched by the domain loss: the reversal layer multiplies by a
strength whose schedule starts at zero and is never advanced. The domain embedding in front of it gets zeros only."""
import torch
from torch import nn


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -ctx.strength * grad, None  # CAUSE-1


class DomainHead(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.strength = 0.0  # ALSO-2
        self.adapt = nn.Linear(width, width)
        self.judge = nn.Sequential(nn.Linear(width, 6), nn.ReLU(), nn.Linear(6, 2))

    def forward(self, h):
        return self.judge(Reverse.apply(self.adapt(h), self.strength))  # ALSO-1


class Adversarial(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(5, 6), nn.ReLU())
        self.label = nn.Linear(6, 3)
        self.domain = DomainHead(6)

    def forward(self, x):
        h = self.features(x)
        return self.label(h), self.domain(h)


def make():
    torch.manual_seed(0)
    return dict(model=Adversarial(), args=(torch.randn(4, 5),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "features.0.weight": "flows", "features.0.bias": "flows", "label.weight": "flows", "label.bias": "flows",
        "domain.adapt.weight": "zero", "domain.adapt.bias": "zero", "domain.judge.0.weight": "flows",
        "domain.judge.0.bias": "flows", "domain.judge.2.weight": "flows", "domain.judge.2.bias": "flows",
    },
    causes=[
        dict(kind="function-none", line="CAUSE-1", also=["ALSO-1", "ALSO-2"], also_kinds=["zero-factor"],
             params=["domain.adapt.weight", "domain.adapt.bias"]),
    ],
    fix=None,
    after=None,
)
