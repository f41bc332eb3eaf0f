"""A physics-informed network does not learn the equation: the second derivative is taken without create_graph, so the
residual is a constant to the network. Only the diffusion constant in front of it learns."""
import torch
from torch import nn


class Wave(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1, bias=False))

    def forward(self, x):
        return self.net(x)


def slope(y, x, **options):
    return torch.autograd.grad(y, x, torch.ones_like(y), **options)[0]  # CAUSE-1


class Heat(nn.Module):
    def __init__(self):
        super().__init__()
        self.wave = Wave()
        self.diffusion = nn.Parameter(torch.tensor(0.5))

    def forward(self, x, source):
        x = x.clone().requires_grad_()
        first = slope(self.wave(x), x, create_graph=True)
        second = slope(first, x)  # ALSO-1
        return self.diffusion * second - source


def make():
    torch.manual_seed(0)
    x = torch.linspace(-1, 1, 7).unsqueeze(1)
    return dict(model=Heat(), args=(x, torch.sin(3 * x)), kwargs={}, loss=lambda r: r.square().mean())


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "diffusion": "flows", "wave.net.0.weight": "none", "wave.net.0.bias": "none",
        "wave.net.2.weight": "none",
    },
    causes=[
        dict(kind="missing-create-graph", line="CAUSE-1", also=["ALSO-1"],
             params=["wave.net.0.weight", "wave.net.0.bias", "wave.net.2.weight"]),
    ],
    fix=None,
    after=None,
)
