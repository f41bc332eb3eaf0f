"""The module that decides which image patches to keep has no gradient: only the positions from topk are used, the scores
themselves are thrown away."""
import torch
from torch import nn


class Selector(nn.Module):
    def __init__(self, width, keep):
        super().__init__()
        self.rate = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 1))
        self.keep = keep

    def forward(self, tokens):
        score = self.rate(tokens).squeeze(-1)
        kept = score.topk(self.keep, dim=-1).indices  # CAUSE-1
        return tokens.gather(1, kept.unsqueeze(-1).expand(-1, -1, tokens.shape[-1]))


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attend = nn.MultiheadAttention(width, 2, batch_first=True)

    def forward(self, x):
        h = self.norm(x)
        return x + self.attend(h, h, h, need_weights=False)[0]


class Vision(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(1, 4, 2, stride=2)
        self.before = Layer(4)
        self.select = Selector(4, 3)
        self.after = Layer(4)
        self.head = nn.Linear(4, 2)

    def forward(self, img):
        x = self.before(self.patch(img).flatten(2).transpose(1, 2))
        return self.head(self.after(self.select(x)).mean(1))


def make():
    torch.manual_seed(0)
    return dict(model=Vision(), args=(torch.randn(2, 1, 6, 6),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "patch.weight": "flows", "patch.bias": "flows", "before.norm.weight": "flows",
        "before.norm.bias": "flows", "before.attend.in_proj_weight": "flows",
        "before.attend.in_proj_bias": "flows", "before.attend.out_proj.weight": "flows",
        "before.attend.out_proj.bias": "flows", "select.rate.0.weight": "none", "select.rate.0.bias": "none",
        "select.rate.1.weight": "none", "select.rate.1.bias": "none", "after.norm.weight": "flows",
        "after.norm.bias": "flows", "after.attend.in_proj_weight": "flows", "after.attend.in_proj_bias": "flows",
        "after.attend.out_proj.weight": "flows", "after.attend.out_proj.bias": "flows", "head.weight": "flows",
        "head.bias": "flows",
    },
    causes=[
        dict(kind="nondiff-op", line="CAUSE-1",
             params=["select.rate.0.weight", "select.rate.0.bias", "select.rate.1.weight", "select.rate.1.bias"]),
    ],
    fix=None,
    after=None,
)
