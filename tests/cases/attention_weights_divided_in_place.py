"""Backward raises in a linear attention block: exp keeps its result for its derivative, and that result is then normalised in
place to save a copy."""
import torch
from torch import nn


def normalised_exp(scores):
    w = torch.exp(scores - scores.detach().amax(-1, keepdim=True))
    w /= w.sum(-1, keepdim=True)  # CAUSE-1
    return w


class Attend(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.q = nn.Linear(width, width)
        self.k = nn.Linear(width, width)

    def forward(self, x):
        return normalised_exp(self.q(x) @ self.k(x).transpose(1, 2)) @ x


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.attend = Attend(4)
        self.out = nn.Linear(4, 2)

    def forward(self, x):
        return self.out(self.attend(x))


def reference():
    class Copying(Attend):
        def forward(self, x):
            return torch.softmax(self.q(x) @ self.k(x).transpose(1, 2), -1) @ x
    torch.manual_seed(0)
    model = Net()
    model.attend.__class__ = Copying
    return dict(model=model, args=(torch.randn(2, 3, 4),), kwargs={}, loss=None)


def make():
    torch.manual_seed(0)
    return dict(model=Net(), args=(torch.randn(2, 3, 4),), kwargs={}, loss=None)


EXPECT = dict(
    eager="backward-error",
    error_match="modified by an inplace operation",
    params={},
    causes=[
        dict(kind="inplace-saved", line="CAUSE-1", params=[]),
    ],
    fix="restores",
    after={
        "attend.q.weight": "flows", "attend.q.bias": "flows", "attend.k.weight": "flows",
        "attend.k.bias": "flows", "out.weight": "flows", "out.bias": "flows",
    },
)
