"""A contrastive loss on pairwise distances is NaN from the first batch, although the diagonal is masked: the distance of each
point to itself is the square root of zero."""
import torch
from torch import nn


class Embed(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(5, 6), nn.ReLU(), nn.Linear(6, 3))

    def forward(self, x):
        return self.net(x)


def all_pairs(z):
    gap = z.unsqueeze(1) - z.unsqueeze(0)
    return gap.square().sum(-1).sqrt()  # CAUSE-1


class Contrast(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = Embed()
        self.margin = nn.Parameter(torch.tensor(1.0))

    def forward(self, x, kind):
        d = all_pairs(self.embed(x))
        same = kind.unsqueeze(1) == kind.unsqueeze(0)
        other = ~torch.eye(len(x), dtype=torch.bool)
        pull = (d * (same & other)).sum()
        push = (torch.relu(self.margin + 5 - d) * ~same).sum()
        return (pull + push) / len(x)


def make():
    torch.manual_seed(0)
    return dict(model=Contrast(), args=(torch.randn(5, 5), torch.tensor([0, 1, 0, 2, 1])), kwargs={}, loss=lambda l: l)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "margin": "flows", "embed.net.0.weight": "nan", "embed.net.0.bias": "nan", "embed.net.2.weight": "nan",
        "embed.net.2.bias": "nan",
    },
    causes=[
        dict(kind="nan-grad", line="CAUSE-1",
             params=["embed.net.0.weight", "embed.net.0.bias", "embed.net.2.weight", "embed.net.2.bias"]),
    ],
    fix=None,
    after=None,
)
