"""Repairing the line that the error speaks of only moves the error: two places overwrite what backward needs, the second one is
found only when the first is gone."""
import torch
from torch import nn


class Left(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 5)

    def forward(self, x):
        h = torch.sigmoid(self.fc(x))
        h.mul_(2.0)  # CAUSE-1
        return h


class Right(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 5)

    def forward(self, x):
        h = torch.tanh(self.fc(x))
        h[:, 0] += 1.0  # CAUSE-2
        return h


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.left = Left()
        self.right = Right()
        self.out = nn.Linear(5, 2)

    def forward(self, x):
        return self.out(self.left(x) + self.right(x))


def reference():
    class Copying(Pair):
        def forward(self, x):
            shift = torch.tensor([1.0, 0, 0, 0, 0])
            return self.out(2 * torch.sigmoid(self.left.fc(x)) + torch.tanh(self.right.fc(x)) + shift)
    torch.manual_seed(0)
    return dict(model=Copying(), args=(torch.randn(3, 4),), kwargs={}, loss=None)


def make():
    torch.manual_seed(0)
    return dict(model=Pair(), args=(torch.randn(3, 4),), kwargs={}, loss=None)


EXPECT = dict(
    eager="backward-error",
    error_match="modified by an inplace operation",
    params={},
    causes=[
        dict(kind="inplace-saved", line="CAUSE-1", params=[]),
        dict(kind="inplace-saved", line="CAUSE-2", params=[]),
    ],
    fix="restores",
    after={
        "left.fc.weight": "flows", "left.fc.bias": "flows", "right.fc.weight": "flows", "right.fc.bias": "flows",
        "out.weight": "flows", "out.bias": "flows",
    },
)
