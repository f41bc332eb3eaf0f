"""A deep model that trains like a shallow one: the optimizer was never given its middle layers."""

import torch
from torch import nn


class Deep(nn.Module):
    def __init__(self, width: int = 8, depth: int = 3) -> None:
        super().__init__()
        self.enter = nn.Linear(5, width)
        self.layers = [nn.Linear(width, width) for _ in range(depth)]
        self.leave = nn.Linear(width, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.relu(self.enter(x))
        for layer in self.layers:
            h = h + torch.relu(layer(h))
        return self.leave(h)


def make() -> dict:
    torch.manual_seed(0)
    return dict(model=Deep(), args=(torch.randn(4, 5),))
