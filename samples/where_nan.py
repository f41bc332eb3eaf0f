"""A distance loss whose value is fine and whose gradient is NaN, from the first step on.

where() keeps the forward clean, but backward still goes through the branch that was not taken.
"""

import torch
from torch import nn


def distance(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    squared = (a - b).square().sum(dim=-1)
    root = squared.sqrt()
    return torch.where(squared > 0, root, torch.zeros_like(squared))


class Embedder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4))
        self.weight = nn.Parameter(torch.ones(()))

    def forward(self, anchor: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        return self.weight * distance(self.net(anchor), self.net(other)).mean()


def make() -> dict:
    torch.manual_seed(0)
    anchor = torch.randn(4, 6)
    other = torch.cat([anchor[:1], torch.randn(3, 6)])  # the first pair is the same sample
    return dict(model=Embedder(), args=(anchor, other), loss=lambda value: value)
