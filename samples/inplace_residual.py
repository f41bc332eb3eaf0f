"""Training stops with "modified by an inplace operation". PyTorch does not say which line modified what.

The residual is added in place to a tensor that its own activation still needs for backward.
"""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.mix = nn.Linear(width, width)
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate = torch.sigmoid(self.mix(x))
        y = gate * self.scale
        gate += x
        return y + gate


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Linear(6, 8)
        self.blocks = nn.ModuleList(Block(8) for _ in range(2))
        self.leave = nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.enter(x)
        for block in self.blocks:
            h = block(h)
        return self.leave(h)


def make() -> dict:
    torch.manual_seed(0)
    return dict(model=Net(), args=(torch.randn(5, 6),))
