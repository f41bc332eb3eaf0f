"""The squeeze-and-excite gates of a small mobile net never move: their bias starts at 6, where hard-sigmoid is already flat."""
import torch
from torch import nn
import torch.nn.functional as F


class Excite(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.down = nn.Conv2d(width, 2, 1)
        self.up = nn.Conv2d(2, width, 1)
        nn.init.constant_(self.up.bias, 6.0)

    def forward(self, x):
        s = F.relu(self.down(F.adaptive_avg_pool2d(x, 1)) + 1.0)
        return x * F.hardsigmoid(self.up(s))  # CAUSE-1


class Mobile(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(1, 4, 3, padding=1)
        self.excite = Excite(4)
        self.head = nn.Linear(4, 2)

    def forward(self, img):
        x = self.excite(F.hardswish(self.stem(img)))
        return self.head(x.mean((2, 3)))


def make():
    torch.manual_seed(0)
    return dict(model=Mobile(), args=(torch.randn(2, 1, 6, 6),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "stem.weight": "flows", "stem.bias": "flows", "excite.down.weight": "zero", "excite.down.bias": "zero",
        "excite.up.weight": "zero", "excite.up.bias": "zero", "head.weight": "flows", "head.bias": "flows",
    },
    causes=[
        dict(kind="saturated", line="CAUSE-1",
             params=["excite.down.weight", "excite.down.bias", "excite.up.weight", "excite.up.bias"]),
    ],
    fix=None,
    after=None,
)
