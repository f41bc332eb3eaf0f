"""Dropout with inplace=True right after a softmax raises in backward, where after a linear layer it did not: softmax keeps its
output."""
import torch
from torch import nn


class Mix(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.score = nn.Linear(width, width)
        self.drop = nn.Dropout(0.25, inplace=True)

    def forward(self, x):
        share = self.score(x).softmax(-1)
        return self.drop(share) @ x.transpose(-1, -2)  # CAUSE-1


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter = nn.Linear(3, 5)
        self.mix = Mix(5)

    def forward(self, x):
        return self.mix(self.enter(x))


def make():
    torch.manual_seed(0)
    return dict(model=Net(), args=(torch.randn(2, 4, 3),), kwargs={}, loss=None)


EXPECT = dict(
    eager="backward-error",
    error_match="modified by an inplace operation",
    params={},
    causes=[
        dict(kind="inplace-saved", line="CAUSE-1", params=[]),
    ],
    fix="restores",
    after=None,
)
