"""A learned prompt receives gradients but never changes: it is a tensor with requires_grad, not a Parameter, so no optimizer
is given it and no checkpoint stores it."""
import torch
from torch import nn


class Prompted(nn.Module):
    def __init__(self, width=4, length=2):
        super().__init__()
        self.words = nn.Embedding(9, width)
        self.prompt = torch.randn(1, length, width, requires_grad=True)  # CAUSE-1
        self.block = nn.TransformerEncoderLayer(width, 2, 8, dropout=0.0, batch_first=True)
        self.head = nn.Linear(width, 2)

    def forward(self, ids):
        x = torch.cat([self.prompt.expand(len(ids), -1, -1), self.words(ids)], 1)
        return self.head(self.block(x)[:, 0])


def make():
    torch.manual_seed(0)
    return dict(model=Prompted(), args=(torch.randint(0, 9, (3, 4)),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "words.weight": "flows", "block.self_attn.in_proj_weight": "flows",
        "block.self_attn.in_proj_bias": "flows", "block.self_attn.out_proj.weight": "flows",
        "block.self_attn.out_proj.bias": "flows", "block.linear1.weight": "flows", "block.linear1.bias": "flows",
        "block.linear2.weight": "flows", "block.linear2.bias": "flows", "block.norm1.weight": "flows",
        "block.norm1.bias": "flows", "block.norm2.weight": "flows", "block.norm2.bias": "flows",
        "head.weight": "flows", "head.bias": "flows",
    },
    causes=[
        dict(kind="unregistered-param", line="CAUSE-1", params=[]),
    ],
    fix=None,
    after=None,
)
