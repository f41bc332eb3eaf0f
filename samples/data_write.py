"""A model that trains, to the wrong place: every gradient has a value, and it is the wrong value.

Features are rescaled through .data after they were used; autograd then multiplies with the new values.
"""

import torch
from torch import nn


class Pair(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Linear(6, 5)
        self.head = nn.Linear(5, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.features(x)
        energy = h * h
        h.data.mul_(0.1)
        return self.head(energy)


def make() -> dict:
    torch.manual_seed(0)
    return dict(model=Pair(), args=(torch.randn(4, 6),))
