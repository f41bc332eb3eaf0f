"""Looks as if a mask of zeros starved half the network, is right: alternate layers transform alternate halves of the vector."""
import torch
from torch import nn


class Coupling(nn.Module):
    def __init__(self, size, even):
        super().__init__()
        self.register_buffer("mask", ((torch.arange(size) % 2 == 0) == even).float())
        self.net = nn.Sequential(nn.Linear(size, 8), nn.Tanh(), nn.Linear(8, 2 * size))

    def forward(self, x):
        kept = x * self.mask
        scale, shift = self.net(kept).chunk(2, -1)
        scale = torch.tanh(scale) * (1 - self.mask)
        return kept + (1 - self.mask) * (x * scale.exp() + shift), scale.sum(-1)


class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Coupling(4, i % 2 == 0) for i in range(3))

    def forward(self, x):
        total = 0
        for layer in self.layers:
            x, volume = layer(x)
            total = total + volume
        return (0.5 * x.square().sum(-1) - total).mean()


def make():
    torch.manual_seed(0)
    return dict(model=Flow(), args=(torch.randn(5, 4),), kwargs={}, loss=lambda l: l)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "layers.0.net.0.weight": "flows", "layers.0.net.0.bias": "flows", "layers.0.net.2.weight": "flows",
        "layers.0.net.2.bias": "flows", "layers.1.net.0.weight": "flows", "layers.1.net.0.bias": "flows",
        "layers.1.net.2.weight": "flows", "layers.1.net.2.bias": "flows", "layers.2.net.0.weight": "flows",
        "layers.2.net.0.bias": "flows", "layers.2.net.2.weight": "flows", "layers.2.net.2.bias": "flows",
    },
    causes=[],
    fix=None,
    after=None,
)
