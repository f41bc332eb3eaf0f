"""Two flat curves with two causes: a gain read with item() and a projection that is built but never called."""
import torch
from torch import nn


class Gain(nn.Module):
    def __init__(self):
        super().__init__()
        self.level = nn.Parameter(torch.tensor(0.8))

    def forward(self, x):
        return x * self.level.item()  # CAUSE-1


class Skip(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Linear(width, width)
        self.shortcut = nn.Linear(width, width)  # CAUSE-2
        self.gain = Gain()

    def forward(self, x):
        return x + self.gain(torch.relu(self.body(x)))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(Skip(4), Skip(4))
        self.out = nn.Linear(4, 2)

    def forward(self, x):
        return self.out(self.blocks(x))


def make():
    torch.manual_seed(0)
    return dict(model=Net(), args=(torch.randn(5, 4),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "blocks.0.body.weight": "flows", "blocks.0.body.bias": "flows", "blocks.0.shortcut.weight": "none",
        "blocks.0.shortcut.bias": "none", "blocks.0.gain.level": "none", "blocks.1.body.weight": "flows",
        "blocks.1.body.bias": "flows", "blocks.1.shortcut.weight": "none", "blocks.1.shortcut.bias": "none",
        "blocks.1.gain.level": "none", "out.weight": "flows", "out.bias": "flows",
    },
    causes=[
        dict(kind="python-value", line="CAUSE-1", params=["blocks.0.gain.level", "blocks.1.gain.level"]),
        dict(kind="unused-param", line="CAUSE-2",
             params=["blocks.0.shortcut.weight", "blocks.0.shortcut.bias", "blocks.1.shortcut.weight",
              "blocks.1.shortcut.bias"]),
    ],
    fix=None,
    after=None,
)
