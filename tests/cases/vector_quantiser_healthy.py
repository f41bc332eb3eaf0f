"""Looks severed three times, is right: straight-through codes, a codebook loss on the detached latent and a commitment loss on the
detached code, each with a live partner."""
import torch
from torch import nn
import torch.nn.functional as F


class Quantise(nn.Module):
    def __init__(self, count, width):
        super().__init__()
        self.codes = nn.Parameter(torch.randn(count, width))
        self.register_buffer("used", torch.zeros(count))

    def forward(self, z):
        which = torch.cdist(z.detach(), self.codes.detach()).argmin(-1)
        self.used += torch.bincount(which, minlength=len(self.codes))
        q = self.codes[which]
        loss = F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(z, q.detach())
        return z + (q - z).detach(), loss


class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Linear(6, 3)
        self.quantise = Quantise(5, 3)
        self.up = nn.Linear(3, 6)

    def forward(self, x):
        q, loss = self.quantise(self.down(x))
        return F.mse_loss(self.up(q), x) + loss


def make():
    torch.manual_seed(0)
    return dict(model=Coder(), args=(torch.randn(8, 6),), kwargs={}, loss=lambda l: l)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "down.weight": "flows", "down.bias": "flows", "quantise.codes": "flows", "up.weight": "flows",
        "up.bias": "flows",
    },
    causes=[],
    fix=None,
    after=None,
)
