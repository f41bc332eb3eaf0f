"""Half of a tracker is NaN and the other half does not learn at all: the motion head takes the square root of zero, and the
appearance head is fed detached features by its own projection."""
import torch
from torch import nn


class MotionHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2, bias=False)

    def forward(self, delta):
        move = self.fc(delta)
        return torch.sqrt(move[:, 0] ** 2 + move[:, 1] ** 2)  # CAUSE-1


class LookHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(5, 4)
        self.compare = nn.Linear(4, 1)

    def forward(self, h):
        z = self.project(h).detach()  # CAUSE-2
        return self.compare(nn.functional.normalize(z, dim=-1)).squeeze(-1)


class Tracker(nn.Module):
    def __init__(self):
        super().__init__()
        self.motion = MotionHead()
        self.look = LookHead()

    def forward(self, delta, h):
        return self.motion(delta) + self.look(h)


def make():
    torch.manual_seed(0)
    delta = torch.randn(4, 4)
    delta[0] = 0.0
    return dict(model=Tracker(), args=(delta, torch.randn(4, 5)), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "motion.fc.weight": "nan", "look.project.weight": "none", "look.project.bias": "none",
        "look.compare.weight": "flows", "look.compare.bias": "flows",
    },
    causes=[
        dict(kind="nan-grad", line="CAUSE-1", params=["motion.fc.weight"]),
        dict(kind="detach", line="CAUSE-2", params=["look.project.weight", "look.project.bias"]),
    ],
    fix=None,
    after=None,
)
