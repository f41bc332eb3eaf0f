"""A classifier on top of an encoder. The loss falls a little and then stays: only the last layer learns.

The encoder was pretrained once and its features were detached; the line stayed when fine-tuning began.
"""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 8))
        self.head = nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.encoder(x).detach()
        return self.head(h)


def make() -> dict:
    torch.manual_seed(0)
    return dict(model=Net(), args=(torch.randn(4, 12),))
