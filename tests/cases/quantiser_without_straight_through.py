"""With learned-step quantisation of activations switched on, every layer in front of the first quantiser stops: round has a
zero slope. The step sizes themselves go on learning, because they also multiply the result."""
import torch
from torch import nn


class StepQuant(nn.Module):
    def __init__(self, bits):
        super().__init__()
        self.step = nn.Parameter(torch.tensor(0.1))
        self.low, self.high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1

    def forward(self, x):
        level = torch.round(x / self.step)  # CAUSE-1
        return level.clamp(self.low, self.high) * self.step


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 8)
        self.quant = StepQuant(8)
        self.last = nn.Linear(8, 3)

    def forward(self, x):
        return self.last(self.quant(torch.tanh(self.first(x))))


def make():
    torch.manual_seed(0)
    return dict(model=Net(), args=(torch.randn(5, 6),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "first.weight": "zero", "first.bias": "zero", "quant.step": "flows", "last.weight": "flows",
        "last.bias": "flows",
    },
    causes=[
        dict(kind="zero-grad-op", line="CAUSE-1", params=["first.weight", "first.bias"]),
    ],
    fix=None,
    after=None,
)
