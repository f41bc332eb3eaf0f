"""The coarse network of a two-stage ray renderer has no gradient. Its weights are used only to look up bins with
searchsorted, which returns integers."""
import torch
from torch import nn


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))

    def forward(self, pts):
        density, shade = self.net(pts).unbind(-1)
        return nn.functional.softplus(density), shade.sigmoid()


def weights_of(density, step):
    alpha = 1 - torch.exp(-density * step)
    clear = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha[:, :-1]], 1), 1)
    return alpha * clear


def pick_depths(depths, weights, u):
    cdf = torch.cumsum(weights + 1e-3, -1)
    cdf = cdf / cdf[:, -1:]
    at = torch.searchsorted(cdf, u).clamp(max=depths.shape[-1] - 1)  # CAUSE-1
    return depths.gather(1, at)


class Renderer(nn.Module):
    def __init__(self):
        super().__init__()
        self.coarse = Field()
        self.fine = Field()

    def forward(self, origin, direction, depths, u):
        at = lambda t: origin.unsqueeze(1) + t.unsqueeze(-1) * direction.unsqueeze(1)
        density, _ = self.coarse(at(depths))
        fine = pick_depths(depths, weights_of(density, 0.5), u).sort(-1).values
        density, shade = self.fine(at(fine))
        return (weights_of(density, 0.5) * shade).sum(-1)


def make():
    torch.manual_seed(0)
    depths = torch.linspace(0.5, 3, 6).expand(4, -1).contiguous()
    args = (torch.randn(4, 3), torch.randn(4, 3), depths, torch.rand(4, 5))
    return dict(model=Renderer(), args=args, kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "coarse.net.0.weight": "none", "coarse.net.0.bias": "none", "coarse.net.2.weight": "none",
        "coarse.net.2.bias": "none", "fine.net.0.weight": "flows", "fine.net.0.bias": "flows",
        "fine.net.2.weight": "flows", "fine.net.2.bias": "flows",
    },
    causes=[
        dict(kind="nondiff-op", line="CAUSE-1",
             params=["coarse.net.0.weight", "coarse.net.0.bias", "coarse.net.2.weight", "coarse.net.2.bias"]),
    ],
    fix=None,
    after=None,
)
