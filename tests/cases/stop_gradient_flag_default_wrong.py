"""Joint training was asked for, yet the shared trunk learns from one of its two tasks only and the depth adapter from none.
The helper that may stop the gradient is called with its default, which stops it."""
import torch
from torch import nn


def hand_over(features, *, stop=True):
    if stop:
        features = [f.detach() for f in features]  # CAUSE-1
    return features


class Trunk(nn.Module):
    def __init__(self):
        super().__init__()
        self.low = nn.Conv2d(1, 3, 3, padding=1)
        self.high = nn.Conv2d(3, 4, 3, padding=1, stride=2)

    def forward(self, x):
        a = torch.relu(self.low(x))
        return a, torch.relu(self.high(a))


class TwoTasks(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = Trunk()
        self.adapt = nn.ModuleList([nn.Conv2d(3, 2, 1), nn.Conv2d(4, 2, 1)])
        self.depth = nn.Conv2d(2, 1, 1)
        self.label = nn.Linear(4, 3)

    def forward(self, img):
        feats = self.trunk(img)
        fine, coarse = hand_over([a(f) for a, f in zip(self.adapt, feats)])
        up = nn.functional.interpolate(coarse, scale_factor=2)
        return self.depth(fine + up), self.label(feats[1].mean((2, 3)))


def make():
    torch.manual_seed(0)
    return dict(model=TwoTasks(), args=(torch.randn(2, 1, 6, 6),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "trunk.low.weight": "flows", "trunk.low.bias": "flows", "trunk.high.weight": "flows",
        "trunk.high.bias": "flows", "adapt.0.weight": "none", "adapt.0.bias": "none", "adapt.1.weight": "none",
        "adapt.1.bias": "none", "depth.weight": "flows", "depth.bias": "flows", "label.weight": "flows",
        "label.bias": "flows",
    },
    causes=[
        dict(kind="detach", line="CAUSE-1",
             params=["adapt.0.weight", "adapt.0.bias", "adapt.1.weight", "adapt.1.bias"]),
    ],
    fix=None,
    after=None,
)
