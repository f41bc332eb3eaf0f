"""A branch that was added to a pretrained model and never wakes up: its gradients are exactly zero at every step.

The gate starts at zero, as it should, and so does the branch behind it: each zeroes the gradient of the other.
"""

import torch
from torch import nn


class Adapter(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.down = nn.Linear(width, 4)
        self.up = nn.Linear(4, width)
        nn.init.zeros_(self.up.weight)
        nn.init.zeros_(self.up.bias)
        self.gate = nn.Parameter(torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        branch = self.up(torch.relu(self.down(x)))
        return x + self.gate * branch


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(6, 8)
        self.adapter = Adapter(8)
        self.head = nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.adapter(torch.tanh(self.body(x))))


def make() -> dict:
    torch.manual_seed(0)
    return dict(model=Model(), args=(torch.randn(5, 6),))
