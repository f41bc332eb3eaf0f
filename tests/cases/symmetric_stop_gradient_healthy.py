"""Looks severed, is right: each side's projection is detached once, but every parameter is reached through the other side."""
import torch
from torch import nn
import torch.nn.functional as F


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 4))
        self.predict = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 4))

    def forward(self, a, b):
        za, zb = self.encode(a), self.encode(b)
        near = lambda p, z: -F.cosine_similarity(p, z.detach(), dim=1).mean()
        return 0.5 * near(self.predict(za), zb) + 0.5 * near(self.predict(zb), za)


def make():
    torch.manual_seed(0)
    x = torch.randn(6, 5)
    return dict(model=Siamese(), args=(x + 0.1 * torch.randn(6, 5), x), kwargs={}, loss=lambda l: l)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "encode.0.weight": "flows", "encode.0.bias": "flows", "encode.2.weight": "flows",
        "encode.2.bias": "flows", "predict.0.weight": "flows", "predict.0.bias": "flows",
        "predict.2.weight": "flows", "predict.2.bias": "flows",
    },
    causes=[],
    fix=None,
    after=None,
)
