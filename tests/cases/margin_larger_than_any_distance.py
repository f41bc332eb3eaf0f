"""A triplet network has a loss of exactly zero from the first batch: the negative distance is measured without the square root,
the margin is tiny, and relu of a negative number is flat everywhere."""
import torch
from torch import nn


class Embed(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 4))

    def forward(self, x):
        return self.net(x)


def triplet(a, p, n, margin):
    near = (a - p).abs().mean(-1)
    far = 100.0 * (a - n).square().sum(-1)
    return torch.relu(near - far + margin).mean()  # CAUSE-1


class Metric(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = Embed()

    def forward(self, anchor):
        a = self.embed(anchor)
        return triplet(a, self.embed(anchor + 0.01), self.embed(-anchor), 0.05)


def make():
    torch.manual_seed(0)
    return dict(model=Metric(), args=(torch.randn(6, 5) + 1,), kwargs={}, loss=lambda l: l)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "embed.net.0.weight": "zero", "embed.net.0.bias": "zero", "embed.net.2.weight": "zero",
        "embed.net.2.bias": "zero",
    },
    causes=[
        dict(kind="saturated", line="CAUSE-1",
             params=["embed.net.0.weight", "embed.net.0.bias", "embed.net.2.weight", "embed.net.2.bias"]),
    ],
    fix=None,
    after=None,
)
