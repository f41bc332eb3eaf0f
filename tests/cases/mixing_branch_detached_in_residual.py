"""Deeper blocks do not help at all: the token mixers keep their initial weights while the channel layers train.
Each block adds the mixer's output detached, so the gradient passes along the skip connection only."""
import torch
from torch import nn


class TokenMixer(nn.Module):
    def __init__(self, tokens):
        super().__init__()
        self.spread = nn.Linear(tokens, 2 * tokens)
        self.gather = nn.Linear(2 * tokens, tokens)

    def forward(self, x):
        y = nn.functional.gelu(self.spread(x.transpose(1, 2)))
        return self.gather(y).transpose(1, 2)


class MixerBlock(nn.Module):
    def __init__(self, tokens, width):
        super().__init__()
        self.tokens = TokenMixer(tokens)
        self.channels = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU())

    def forward(self, x):
        x = x + self.tokens(x).detach()  # CAUSE-1
        return x + self.channels(x)


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv1d(2, 5, 3, padding=1)
        self.blocks = nn.Sequential(MixerBlock(6, 5), MixerBlock(6, 5))
        self.head = nn.Linear(5, 3)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x).transpose(1, 2)).mean(1))


def make():
    torch.manual_seed(0)
    return dict(model=Mixer(), args=(torch.randn(4, 2, 6),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "stem.weight": "flows", "stem.bias": "flows", "blocks.0.tokens.spread.weight": "none",
        "blocks.0.tokens.spread.bias": "none", "blocks.0.tokens.gather.weight": "none",
        "blocks.0.tokens.gather.bias": "none", "blocks.0.channels.0.weight": "flows",
        "blocks.0.channels.0.bias": "flows", "blocks.0.channels.1.weight": "flows",
        "blocks.0.channels.1.bias": "flows", "blocks.1.tokens.spread.weight": "none",
        "blocks.1.tokens.spread.bias": "none", "blocks.1.tokens.gather.weight": "none",
        "blocks.1.tokens.gather.bias": "none", "blocks.1.channels.0.weight": "flows",
        "blocks.1.channels.0.bias": "flows", "blocks.1.channels.1.weight": "flows",
        "blocks.1.channels.1.bias": "flows", "head.weight": "flows", "head.bias": "flows",
    },
    causes=[
        dict(kind="detach", line="CAUSE-1",
             params=["blocks.0.tokens.spread.weight", "blocks.0.tokens.spread.bias",
              "blocks.0.tokens.gather.weight", "blocks.0.tokens.gather.bias",
              "blocks.1.tokens.spread.weight", "blocks.1.tokens.spread.bias",
              "blocks.1.tokens.gather.weight", "blocks.1.tokens.gather.bias"]),
    ],
    fix=None,
    after=None,
)
