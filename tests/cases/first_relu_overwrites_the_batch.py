"""Two models that share a batch give different results depending on their order: this one starts with ReLU(inplace=True), which
clears the negative values of the input itself."""
import torch
from torch import nn


class Pre(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.act = nn.ReLU(inplace=True)
        self.fc = nn.Linear(i, o)

    def forward(self, x):
        return self.fc(self.act(x))  # CAUSE-1


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(Pre(5, 6), Pre(6, 2))

    def forward(self, x):
        return self.layers(x)


def make():
    torch.manual_seed(0)
    return dict(model=Net(), args=(torch.randn(4, 5),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "layers.0.fc.weight": "flows", "layers.0.fc.bias": "flows", "layers.1.fc.weight": "flows",
        "layers.1.fc.bias": "flows",
    },
    causes=[
        dict(kind="inplace-input", line="CAUSE-1", params=[]),
    ],
    fix="same",
    after=None,
)
