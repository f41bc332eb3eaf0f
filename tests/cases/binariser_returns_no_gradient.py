"""In a binarised network only the last layer learns. The sign Function's backward returns None, as for an integer input,
instead of passing the gradient straight through."""
import torch
from torch import nn


class Binarise(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.where(x >= 0, 1.0, -1.0)

    @staticmethod
    def backward(ctx, grad):
        return None  # CAUSE-1


class BinaryLayer(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.fc = nn.Linear(i, o)
        self.norm = nn.BatchNorm1d(o)

    def forward(self, x):
        return Binarise.apply(self.norm(self.fc(x)))  # ALSO-1


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Sequential(BinaryLayer(6, 8), BinaryLayer(8, 8))
        self.out = nn.Linear(8, 3)

    def forward(self, x):
        return self.out(self.hidden(x))


def make():
    torch.manual_seed(0)
    return dict(model=Net(), args=(torch.randn(8, 6),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "hidden.0.fc.weight": "none", "hidden.0.fc.bias": "none", "hidden.0.norm.weight": "none",
        "hidden.0.norm.bias": "none", "hidden.1.fc.weight": "none", "hidden.1.fc.bias": "none",
        "hidden.1.norm.weight": "none", "hidden.1.norm.bias": "none", "out.weight": "flows", "out.bias": "flows",
    },
    causes=[
        dict(kind="function-none", line="CAUSE-1", also=["ALSO-1"],
             params=["hidden.0.fc.weight", "hidden.0.fc.bias", "hidden.0.norm.weight", "hidden.0.norm.bias",
              "hidden.1.fc.weight", "hidden.1.fc.bias", "hidden.1.norm.weight", "hidden.1.norm.bias"]),
    ],
    fix=None,
    after=None,
)
