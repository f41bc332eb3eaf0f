"""One layer norm per block has no gradient: after a copy and paste both sublayers use the first one."""
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm_a = nn.LayerNorm(width)
        self.norm_b = nn.LayerNorm(width)  # CAUSE-1
        self.attend = nn.MultiheadAttention(width, 2, batch_first=True)
        self.feed = nn.Sequential(nn.Linear(width, 8), nn.GELU(), nn.Linear(8, width))

    def forward(self, x):
        h = self.norm_a(x)
        x = x + self.attend(h, h, h, need_weights=False)[0]
        return x + self.feed(self.norm_a(x))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(10, 4)
        self.blocks = nn.ModuleList([Block(4) for _ in range(2)])
        self.head = nn.Linear(4, 3)

    def forward(self, ids):
        x = self.words(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(x[:, 0])


def make():
    torch.manual_seed(0)
    return dict(model=Encoder(), args=(torch.randint(0, 10, (2, 5)),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "words.weight": "flows", "blocks.0.norm_a.weight": "flows", "blocks.0.norm_a.bias": "flows",
        "blocks.0.norm_b.weight": "none", "blocks.0.norm_b.bias": "none",
        "blocks.0.attend.in_proj_weight": "flows", "blocks.0.attend.in_proj_bias": "flows",
        "blocks.0.attend.out_proj.weight": "flows", "blocks.0.attend.out_proj.bias": "flows",
        "blocks.0.feed.0.weight": "flows", "blocks.0.feed.0.bias": "flows", "blocks.0.feed.2.weight": "flows",
        "blocks.0.feed.2.bias": "flows", "blocks.1.norm_a.weight": "flows", "blocks.1.norm_a.bias": "flows",
        "blocks.1.norm_b.weight": "none", "blocks.1.norm_b.bias": "none",
        "blocks.1.attend.in_proj_weight": "flows", "blocks.1.attend.in_proj_bias": "flows",
        "blocks.1.attend.out_proj.weight": "flows", "blocks.1.attend.out_proj.bias": "flows",
        "blocks.1.feed.0.weight": "flows", "blocks.1.feed.0.bias": "flows", "blocks.1.feed.2.weight": "flows",
        "blocks.1.feed.2.bias": "flows", "head.weight": "flows", "head.bias": "flows",
    },
    causes=[
        dict(kind="unused-param", line="CAUSE-1",
             params=["blocks.0.norm_b.weight", "blocks.0.norm_b.bias", "blocks.1.norm_b.weight",
              "blocks.1.norm_b.bias"]),
    ],
    fix=None,
    after=None,
)
