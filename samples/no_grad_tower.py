"""Unfreezing the image tower changes nothing: its weights stay as they were.

The method that runs the tower still carries the decorator from the time when the tower was frozen.
"""

import torch
from torch import nn


class Tower(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(1, 6, 4, stride=4)
        self.norm = nn.LayerNorm(6)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.norm(self.patches(image).flatten(2).transpose(1, 2))


class Captioner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tower = Tower()
        self.bridge = nn.Linear(6, 5)
        self.words = nn.Linear(5, 9)

    @torch.no_grad()
    def look(self, image: torch.Tensor) -> torch.Tensor:
        return self.tower(image)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.words(torch.tanh(self.bridge(self.look(image))).mean(dim=1))


def make() -> dict:
    torch.manual_seed(0)
    return dict(model=Captioner(), args=(torch.randn(2, 1, 8, 8),))
