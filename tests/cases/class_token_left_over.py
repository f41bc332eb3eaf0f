"""Data-parallel training complains about unused parameters: the class token is created for every pooling mode but added to
the sequence only for one."""
import torch
from torch import nn


class Patches(nn.Module):
    def __init__(self, width, pool):
        super().__init__()
        self.pool = pool
        self.proj = nn.Conv2d(1, width, 2, stride=2)
        self.cls = nn.Parameter(torch.zeros(1, 1, width))  # CAUSE-1
        self.place = nn.Parameter(0.02 * torch.randn(1, 9, width))

    def forward(self, img):
        x = self.proj(img).flatten(2).transpose(1, 2) + self.place
        if self.pool == "cls":
            x = torch.cat([self.cls.expand(len(x), -1, -1), x], 1)
        return x


class Vision(nn.Module):
    def __init__(self, pool="mean"):
        super().__init__()
        self.patches = Patches(4, pool)
        self.block = nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 4), nn.GELU())
        self.head = nn.Linear(4, 2)

    def forward(self, img):
        x = self.patches(img)
        x = x + self.block(x)
        return self.head(x[:, 0] if self.patches.pool == "cls" else x.mean(1))


def make():
    torch.manual_seed(0)
    return dict(model=Vision(), args=(torch.randn(2, 1, 6, 6),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "patches.cls": "none", "patches.place": "flows", "patches.proj.weight": "flows",
        "patches.proj.bias": "flows", "block.0.weight": "flows", "block.0.bias": "flows",
        "block.1.weight": "flows", "block.1.bias": "flows", "head.weight": "flows", "head.bias": "flows",
    },
    causes=[
        dict(kind="unused-param", line="CAUSE-1", params=["patches.cls"]),
    ],
    fix=None,
    after=None,
)
