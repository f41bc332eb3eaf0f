"""Looks severed, is right: the target network is a frozen copy that follows by averaging, its output is detached, and only the
online encoder and predictor learn."""
import copy
import torch
from torch import nn
import torch.nn.functional as F


def tower(i, o):
    return nn.Sequential(nn.Linear(i, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, o))


class Bootstrap(nn.Module):
    def __init__(self):
        super().__init__()
        self.online = tower(6, 4)
        self.predict = tower(4, 4)
        self.target = copy.deepcopy(self.online).requires_grad_(False)

    @torch.no_grad()
    def follow(self, keep=0.99):
        for t, o in zip(self.target.parameters(), self.online.parameters()):
            t.mul_(keep).add_(o, alpha=1 - keep)

    def distance(self, a, b):
        guess = self.predict(self.online(a))
        with torch.no_grad():
            goal = self.target(b)
        return 2 - 2 * F.cosine_similarity(guess, goal.detach(), dim=-1)

    def forward(self, a, b):
        return (self.distance(a, b) + self.distance(b, a)).mean()


def make():
    torch.manual_seed(0)
    return dict(model=Bootstrap(), args=(torch.randn(6, 6), torch.randn(6, 6)), kwargs={}, loss=lambda l: l)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "online.0.weight": "flows", "online.0.bias": "flows", "online.1.weight": "flows",
        "online.1.bias": "flows", "online.3.weight": "flows", "online.3.bias": "flows",
        "predict.0.weight": "flows", "predict.0.bias": "flows", "predict.1.weight": "flows",
        "predict.1.bias": "flows", "predict.3.weight": "flows", "predict.3.bias": "flows",
        "target.0.weight": "frozen", "target.0.bias": "frozen", "target.1.weight": "frozen",
        "target.1.bias": "frozen", "target.3.weight": "frozen", "target.3.bias": "frozen",
    },
    causes=[],
    fix=None,
    after=None,
)
