"""The learned distance penalty of the attention never changes. The bias matrix is built with NumPy from the parameter's
values and comes back as a plain constant."""
import numpy as np
import torch
from torch import nn


def distance_bias(slopes, length):
    pos = np.arange(length)
    gap = np.abs(pos[:, None] - pos[None, :])
    rate = np.exp(slopes.detach().cpu().numpy())  # CAUSE-1
    return torch.from_numpy(-rate[:, None, None] * gap[None]).float()  # ALSO-1


class Attention(nn.Module):
    def __init__(self, width=6, heads=2):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.slopes = nn.Parameter(torch.linspace(-2.0, 0.0, heads))
        self.out = nn.Linear(width, width)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / (d // self.heads) ** 0.5 + distance_bias(self.slopes, n)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, n, d))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.attend = Attention()
        self.norm = nn.LayerNorm(6)
        self.head = nn.Linear(6, 2)

    def forward(self, x):
        return self.head(self.norm(x + self.attend(x)))


def make():
    torch.manual_seed(0)
    return dict(model=Model(), args=(torch.randn(2, 5, 6),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "attend.slopes": "none", "attend.qkv.weight": "flows", "attend.qkv.bias": "flows",
        "attend.out.weight": "flows", "attend.out.bias": "flows", "norm.weight": "flows", "norm.bias": "flows",
        "head.weight": "flows", "head.bias": "flows",
    },
    causes=[
        dict(kind="python-value", line="CAUSE-1", also=["ALSO-1"], params=["attend.slopes"]),
    ],
    fix=None,
    after=None,
)
