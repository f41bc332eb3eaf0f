"""The orientation head trains at random: its loss enters the total with weight 0.0 from a configuration table, so its gradient
is exactly zero rather than missing."""
import torch
from torch import nn
import torch.nn.functional as F

WEIGHTS = dict(centre=1.0, size=0.5, angle=0.0)


class BoxHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(6, 8)
        self.parts = nn.ModuleDict(dict(centre=nn.Linear(8, 2), size=nn.Linear(8, 2), angle=nn.Linear(8, 1)))

    def forward(self, x):
        h = torch.relu(self.body(x))
        return {k: part(h) for k, part in self.parts.items()}


class BoxLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = BoxHead()

    def forward(self, x, truth):
        total = 0.0
        for name, guess in self.head(x).items():
            total = total + WEIGHTS[name] * F.smooth_l1_loss(guess, truth[name])  # CAUSE-1
        return total


def make():
    torch.manual_seed(0)
    truth = dict(centre=torch.randn(4, 2), size=torch.rand(4, 2), angle=torch.rand(4, 1))
    return dict(model=BoxLoss(), args=(torch.randn(4, 6), truth), kwargs={}, loss=lambda l: l)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "head.body.weight": "flows", "head.body.bias": "flows", "head.parts.centre.weight": "flows",
        "head.parts.centre.bias": "flows", "head.parts.size.weight": "flows", "head.parts.size.bias": "flows",
        "head.parts.angle.weight": "zero", "head.parts.angle.bias": "zero",
    },
    causes=[
        dict(kind="zero-factor", line="CAUSE-1", params=["head.parts.angle.weight", "head.parts.angle.bias"]),
    ],
    fix=None,
    after=None,
)
