"""Looks severed, is right: next-state values come from a frozen network under no_grad with max and argmax; the online network
learns from the chosen action's value."""
import copy
import torch
from torch import nn


class Values(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
        self.gain = nn.Linear(8, 3)
        self.base = nn.Linear(8, 1)

    def forward(self, s):
        h = self.body(s)
        gain = self.gain(h)
        return self.base(h) + gain - gain.mean(-1, keepdim=True)


class Learner(nn.Module):
    def __init__(self):
        super().__init__()
        self.online = Values()
        self.target = copy.deepcopy(self.online)
        for p in self.target.parameters():
            p.requires_grad_(False)

    def forward(self, s, a, r, s2, done):
        q = self.online(s).gather(1, a.unsqueeze(1)).squeeze(1)
        with torch.no_grad():
            best = self.online(s2).argmax(1, keepdim=True)
            goal = r + 0.9 * (~done).float() * self.target(s2).gather(1, best).squeeze(1)
        return nn.functional.smooth_l1_loss(q, goal)


def make():
    torch.manual_seed(0)
    args = (torch.randn(6, 4), torch.tensor([0, 1, 2, 1, 0, 2]), torch.randn(6), torch.randn(6, 4), torch.rand(6) > 0.7)
    return dict(model=Learner(), args=args, kwargs={}, loss=lambda l: l)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "online.body.0.weight": "flows", "online.body.0.bias": "flows", "online.gain.weight": "flows",
        "online.gain.bias": "flows", "online.base.weight": "flows", "online.base.bias": "flows",
        "target.body.0.weight": "frozen", "target.body.0.bias": "frozen", "target.gain.weight": "frozen",
        "target.gain.bias": "frozen", "target.base.weight": "frozen", "target.base.bias": "frozen",
    },
    causes=[],
    fix=None,
    after=None,
)
