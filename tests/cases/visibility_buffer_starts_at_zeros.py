"""The joint-coordinate regressor has all-zero gradients. Its output is multiplied by a visibility buffer that was registered
as zeros and never filled."""
import torch
from torch import nn


class PoseHead(nn.Module):
    def __init__(self, joints):
        super().__init__()
        self.heat = nn.Linear(8, joints)
        self.offset = nn.Linear(8, 2 * joints)
        self.register_buffer("visible", torch.zeros(joints, 1))

    def forward(self, h):
        offset = self.offset(h).unflatten(1, (-1, 2)) * self.visible  # CAUSE-1
        return self.heat(h), offset


class Pose(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(12, 8), nn.ReLU())
        self.head = PoseHead(3)

    def forward(self, x):
        return self.head(self.body(x))


def make():
    torch.manual_seed(0)
    return dict(model=Pose(), args=(torch.randn(4, 12),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "body.0.weight": "flows", "body.0.bias": "flows", "head.heat.weight": "flows", "head.heat.bias": "flows",
        "head.offset.weight": "zero", "head.offset.bias": "zero",
    },
    causes=[
        dict(kind="zero-factor", line="CAUSE-1", also_kinds=["masked"],
             params=["head.offset.weight", "head.offset.bias"]),
    ],
    fix=None,
    after=None,
)
