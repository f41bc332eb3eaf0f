"""A motion prior is NaN on clips that begin at rest: the speed is the square root of a sum of squares that is exactly zero
between the first two frames."""
import torch
from torch import nn


class Motion(nn.Module):
    def __init__(self):
        super().__init__()
        self.code = nn.Linear(2, 6, bias=False)
        self.pose = nn.Linear(6, 3, bias=False)

    def forward(self, drive):
        return self.pose(torch.tanh(self.code(drive)))


def speed(path):
    step = path[1:] - path[:-1]
    return torch.sqrt((step ** 2).sum(-1))  # CAUSE-1


class Smooth(nn.Module):
    def __init__(self):
        super().__init__()
        self.motion = Motion()
        self.stiff = nn.Parameter(torch.tensor(0.5))

    def forward(self, drive, seen):
        path = self.motion(drive)
        return (path - seen).square().mean() + self.stiff * speed(path).mean()


def make():
    torch.manual_seed(0)
    drive = torch.randn(5, 2)
    drive[:2] = 0.0
    return dict(model=Smooth(), args=(drive, torch.randn(5, 3)), kwargs={}, loss=lambda l: l)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "stiff": "flows", "motion.code.weight": "nan", "motion.pose.weight": "nan",
    },
    causes=[
        dict(kind="nan-grad", line="CAUSE-1", params=["motion.code.weight", "motion.pose.weight"]),
    ],
    fix=None,
    after=None,
)
