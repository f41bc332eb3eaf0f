"""Resetting the state of finished episodes under no_grad is invisible to autograd: later losses send a gradient into states that
were overwritten by zeros, as if the old episode had gone on."""
import torch
from torch import nn


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.move = nn.Linear(4, 4, bias=False)
        self.enter = nn.Linear(3, 4)

    def forward(self, xs, done):
        h = xs.new_zeros(xs.shape[1], 4)
        for x, d in zip(xs, done):
            h = self.move(h) + self.enter(x)
            with torch.no_grad():
                h[d] = 0.0  # CAUSE-1
        return h


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.memory = Recurrent()
        self.value = nn.Linear(4, 1)

    def forward(self, xs, done):
        return self.value(self.memory(xs, done))


def make():
    torch.manual_seed(0)
    done = torch.tensor([[0, 1, 0], [0, 0, 1], [0, 0, 0]]).bool()
    return dict(model=Agent(), args=(torch.randn(3, 3, 3), done), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "memory.move.weight": "flows", "memory.enter.weight": "flows", "memory.enter.bias": "flows",
        "value.weight": "flows", "value.bias": "flows",
    },
    causes=[
        dict(kind="data-write", line="CAUSE-1",
             params=["memory.move.weight", "memory.enter.weight", "memory.enter.bias"]),
    ],
    fix=None,
    after=None,
)
