"""Activation ranges that should be learned stay at their first values: clamp gets them as Python floats."""
import torch
from torch import nn


class LearnedClip(nn.Module):
    def __init__(self, low, high):
        super().__init__()
        self.low = nn.Parameter(torch.tensor(low))
        self.high = nn.Parameter(torch.tensor(high))

    def forward(self, x):
        return x.clamp(float(self.low), float(self.high))  # CAUSE-1


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 8)
        self.clip = LearnedClip(-0.2, 0.4)
        self.last = nn.Linear(8, 1)

    def forward(self, x):
        return self.last(self.clip(self.first(x)))


def make():
    torch.manual_seed(0)
    return dict(model=Regressor(), args=(torch.randn(8, 6),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "first.weight": "flows", "first.bias": "flows", "clip.low": "none", "clip.high": "none",
        "last.weight": "flows", "last.bias": "flows",
    },
    causes=[
        dict(kind="python-value", line="CAUSE-1", params=["clip.low", "clip.high"]),
    ],
    fix=None,
    after=None,
)
