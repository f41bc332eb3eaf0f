"""Looks like a detached penalty, is right: the mixed sample is a fresh leaf, but autograd.grad keeps the graph to the critic."""
import torch
from torch import nn


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.Softplus(), nn.Linear(8, 1, bias=False))

    def forward(self, x):
        return self.body(x)

    def penalty(self, real, fake, mix):
        x = torch.lerp(real, fake, mix).detach().requires_grad_()
        slope, = torch.autograd.grad(self(x).sum(), x, create_graph=True)
        return (slope.norm(dim=1) - 1).square().mean()


class Round(nn.Module):
    def __init__(self):
        super().__init__()
        self.critic = Critic()
        self.paint = nn.Linear(2, 4).requires_grad_(False)

    def forward(self, real, noise, mix):
        with torch.no_grad():
            fake = self.paint(noise)
        return self.critic(fake).mean() - self.critic(real).mean() + 10 * self.critic.penalty(real, fake, mix)


def make():
    torch.manual_seed(0)
    args = (torch.randn(5, 4), torch.randn(5, 2), torch.rand(5, 1))
    return dict(model=Round(), args=args, kwargs={}, loss=lambda l: l)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "critic.body.0.weight": "flows", "critic.body.0.bias": "flows", "critic.body.2.weight": "flows",
        "paint.weight": "frozen", "paint.bias": "frozen",
    },
    causes=[],
    fix=None,
    after=None,
)
