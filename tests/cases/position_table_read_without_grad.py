"""Learned positions stay at their random start while everything around them trains.
The method that cuts the table to length carries a no_grad decorator, as it did when positions were fixed sines."""
import torch
from torch import nn


class Positions(nn.Module):
    def __init__(self, longest, width):
        super().__init__()
        self.table = nn.Parameter(0.02 * torch.randn(longest, width))
        self.scale = nn.Parameter(torch.ones(()))

    @torch.no_grad()  # CAUSE-1
    def upto(self, length):
        return self.table[:length].unsqueeze(0)  # ALSO-1

    def forward(self, x):
        return x + self.scale * self.upto(x.shape[1])


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(8, 4)
        self.place = Positions(10, 4)
        self.block = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)
        self.tags = nn.Linear(4, 3)

    def forward(self, ids):
        return self.tags(self.block(self.place(self.words(ids))))


def make():
    torch.manual_seed(0)
    return dict(model=Tagger(), args=(torch.randint(0, 8, (2, 5)),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "words.weight": "flows", "place.table": "none", "place.scale": "flows",
        "block.self_attn.in_proj_weight": "flows", "block.self_attn.in_proj_bias": "flows",
        "block.self_attn.out_proj.weight": "flows", "block.self_attn.out_proj.bias": "flows",
        "block.linear1.weight": "flows", "block.linear1.bias": "flows", "block.linear2.weight": "flows",
        "block.linear2.bias": "flows", "block.norm1.weight": "flows", "block.norm1.bias": "flows",
        "block.norm2.weight": "flows", "block.norm2.bias": "flows", "tags.weight": "flows", "tags.bias": "flows",
    },
    causes=[
        dict(kind="no-grad", line="CAUSE-1", also=["ALSO-1"], params=["place.table"]),
    ],
    fix=None,
    after=None,
)
