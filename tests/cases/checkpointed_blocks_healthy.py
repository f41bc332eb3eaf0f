"""Looks severed, is right: blocks run under non-reentrant checkpointing, and one under the reentrant kind whose input requires
grad. The inner forward runs without a graph and is repeated in backward."""
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.feed = nn.Sequential(nn.Linear(width, 8), nn.GELU(), nn.Dropout(0.2), nn.Linear(8, width))

    def forward(self, x):
        return x + self.feed(self.norm(x))


class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter = nn.Linear(3, 4)
        self.blocks = nn.ModuleList([Block(4) for _ in range(3)])
        self.out = nn.Linear(4, 2)

    def forward(self, x):
        x = self.enter(x)
        for i, block in enumerate(self.blocks):
            x = checkpoint(block, x, use_reentrant=i == 1)
        return self.out(x)


def make():
    torch.manual_seed(0)
    return dict(model=Deep(), args=(torch.randn(4, 3),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "enter.weight": "flows", "enter.bias": "flows", "blocks.0.norm.weight": "flows",
        "blocks.0.norm.bias": "flows", "blocks.0.feed.0.weight": "flows", "blocks.0.feed.0.bias": "flows",
        "blocks.0.feed.3.weight": "flows", "blocks.0.feed.3.bias": "flows", "blocks.1.norm.weight": "flows",
        "blocks.1.norm.bias": "flows", "blocks.1.feed.0.weight": "flows", "blocks.1.feed.0.bias": "flows",
        "blocks.1.feed.3.weight": "flows", "blocks.1.feed.3.bias": "flows", "blocks.2.norm.weight": "flows",
        "blocks.2.norm.bias": "flows", "blocks.2.feed.0.weight": "flows", "blocks.2.feed.0.bias": "flows",
        "blocks.2.feed.3.weight": "flows", "blocks.2.feed.3.bias": "flows", "out.weight": "flows",
        "out.bias": "flows",
    },
    causes=[],
    fix=None,
    after=None,
)
