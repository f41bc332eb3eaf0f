"""Training stops with "derivative for aten::floor_divide is not implemented": predicted positions are put on a grid with //."""
import torch
from torch import nn


class Keypoints(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(6, 8)
        self.point = nn.Linear(8, 2)
        self.stride = 0.25

    def forward(self, x):
        p = torch.sigmoid(self.point(torch.relu(self.body(x))))
        cell = p // self.stride  # CAUSE-1
        return p - self.stride * cell, cell


def make():
    torch.manual_seed(0)
    return dict(model=Keypoints(), args=(torch.randn(4, 6),), kwargs={}, loss=lambda o: o[0].square().sum())


EXPECT = dict(
    eager="backward-error",
    error_match="derivative for aten::floor_divide is not implemented",
    params={},
    causes=[
        dict(kind="nondiff-op", line="CAUSE-1", params=[]),
    ],
    fix=None,
    after=None,
)
