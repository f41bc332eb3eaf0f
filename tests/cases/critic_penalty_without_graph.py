"""The critic is regularised by a gradient penalty that has no effect: autograd.grad is called without create_graph. A head
used for the penalty alone has no gradient at all."""
import torch
from torch import nn


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.Softplus())
        self.real = nn.Linear(8, 1, bias=False)
        self.smooth = nn.Linear(8, 1, bias=False)

    def forward(self, x):
        return self.real(self.body(x))


def penalty(critic, x):
    x = x.clone().requires_grad_()
    score = critic.smooth(critic.body(x))
    g = torch.autograd.grad(score.sum(), x)[0]  # CAUSE-1
    return (g.norm(dim=1) - 1).square().mean()


class Game(nn.Module):
    def __init__(self):
        super().__init__()
        self.critic = Critic()

    def forward(self, real, fake, mix):
        middle = mix * real + (1 - mix) * fake
        return self.critic(fake).mean() - self.critic(real).mean() + 10 * penalty(self.critic, middle)


def make():
    torch.manual_seed(0)
    args = (torch.randn(5, 4), torch.randn(5, 4), torch.rand(5, 1))
    return dict(model=Game(), args=args, kwargs={}, loss=lambda l: l)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "critic.body.0.weight": "flows", "critic.body.0.bias": "flows", "critic.real.weight": "flows",
        "critic.smooth.weight": "none",
    },
    causes=[
        dict(kind="missing-create-graph", line="CAUSE-1", params=["critic.smooth.weight"]),
    ],
    fix=None,
    after=None,
)
