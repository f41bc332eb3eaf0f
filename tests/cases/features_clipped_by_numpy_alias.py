"""Outliers are clipped on the NumPy side with out= pointing at the tensor's own memory, after tanh kept its result: the values
are right and the gradient uses the clipped ones."""
import numpy as np
import torch
from torch import nn


class Encode(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(5, 6)

    def forward(self, x):
        return torch.tanh(self.fc(x))


def clip_outliers(h, limit):
    view = h.detach().numpy()
    np.clip(view, -limit, limit, out=view)  # CAUSE-1
    return h


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = Encode()
        self.out = nn.Linear(6, 2)

    def forward(self, x):
        return self.out(clip_outliers(self.encode(x), 0.3))


def make():
    torch.manual_seed(0)
    return dict(model=Net(), args=(torch.randn(6, 5),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "encode.fc.weight": "flows", "encode.fc.bias": "flows", "out.weight": "flows", "out.bias": "flows",
    },
    causes=[
        dict(kind="data-write", line="CAUSE-1", params=["encode.fc.weight", "encode.fc.bias"]),
    ],
    fix=None,
    after=None,
)
