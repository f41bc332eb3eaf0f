"""The coarsest level of a feature pyramid is built but skipped: the loop over levels stops one too early."""
import torch
from torch import nn


class Level(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.down = nn.Conv2d(width, width, 3, stride=2, padding=1)
        self.side = nn.Conv2d(width, 2, 1)

    def forward(self, x):
        x = torch.relu(self.down(x))
        return x, self.side(x)


class Pyramid(nn.Module):
    def __init__(self, width=3, levels=3):
        super().__init__()
        self.stem = nn.Conv2d(1, width, 3, padding=1)
        self.levels = nn.ModuleList()
        for _ in range(levels):
            self.levels.append(Level(width))  # CAUSE-1

    def forward(self, img):
        x, out = self.stem(img), []
        for i in range(len(self.levels) - 1):
            x, side = self.levels[i](x)
            out.append(side)
        return out


def make():
    torch.manual_seed(0)
    return dict(model=Pyramid(), args=(torch.randn(2, 1, 8, 8),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "stem.weight": "flows", "stem.bias": "flows", "levels.0.down.weight": "flows",
        "levels.0.down.bias": "flows", "levels.0.side.weight": "flows", "levels.0.side.bias": "flows",
        "levels.1.down.weight": "flows", "levels.1.down.bias": "flows", "levels.1.side.weight": "flows",
        "levels.1.side.bias": "flows", "levels.2.down.weight": "none", "levels.2.down.bias": "none",
        "levels.2.side.weight": "none", "levels.2.side.bias": "none",
    },
    causes=[
        dict(kind="unused-param", line="CAUSE-1",
             params=["levels.2.down.weight", "levels.2.down.bias", "levels.2.side.weight", "levels.2.side.bias"]),
    ],
    fix=None,
    after=None,
)
