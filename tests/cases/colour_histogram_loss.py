"""A colour-matching loss never changes the recolouring network: torch.histc counts, and counts have no gradient.
Only the small residual term behind it trains its own part."""
import torch
from torch import nn


class Recolour(nn.Module):
    def __init__(self):
        super().__init__()
        self.curve = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 3))

    def forward(self, pix):
        return torch.sigmoid(self.curve(pix))


def histogram(values, bins=5):
    counts = torch.stack([torch.histc(values[:, c], bins=bins, min=0, max=1) for c in range(3)])  # CAUSE-1
    return counts / values.shape[0]


class Match(nn.Module):
    def __init__(self):
        super().__init__()
        self.recolour = Recolour()
        self.importance = nn.Parameter(torch.zeros(3, 5))

    def forward(self, pix, wanted):
        gap = (histogram(self.recolour(pix)) - histogram(wanted)).abs()
        return (self.importance.softmax(-1) * gap).sum()


def make():
    torch.manual_seed(0)
    return dict(model=Match(), args=(torch.rand(20, 3), torch.rand(20, 3)), kwargs={}, loss=lambda l: l)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "importance": "flows", "recolour.curve.0.weight": "none", "recolour.curve.0.bias": "none",
        "recolour.curve.2.weight": "none", "recolour.curve.2.bias": "none",
    },
    causes=[
        dict(kind="nondiff-op", line="CAUSE-1",
             params=["recolour.curve.0.weight", "recolour.curve.0.bias", "recolour.curve.2.weight",
              "recolour.curve.2.bias"]),
    ],
    fix=None,
    after=None,
)
