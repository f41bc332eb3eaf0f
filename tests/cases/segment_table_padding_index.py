"""The segment embedding never learns on single-sentence data: every segment id is 0, and 0 was also declared as the padding
index, whose gradient is always zero."""
import torch
from torch import nn


class Inputs(nn.Module):
    def __init__(self, vocab, width):
        super().__init__()
        self.words = nn.Embedding(vocab, width)
        self.segments = nn.Embedding(2, width, padding_idx=0)
        self.norm = nn.LayerNorm(width)

    def forward(self, ids, kinds=None):
        kinds = torch.zeros_like(ids) if kinds is None else kinds
        return self.norm(self.words(ids) + self.segments(kinds))  # CAUSE-1


class Sentence(nn.Module):
    def __init__(self):
        super().__init__()
        self.inputs = Inputs(9, 4)
        self.block = nn.GRU(4, 4, batch_first=True)
        self.head = nn.Linear(4, 2)

    def forward(self, ids):
        return self.head(self.block(self.inputs(ids))[1][0])


def make():
    torch.manual_seed(0)
    return dict(model=Sentence(), args=(torch.randint(0, 9, (3, 5)),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "inputs.words.weight": "flows", "inputs.segments.weight": "zero", "inputs.norm.weight": "flows",
        "inputs.norm.bias": "flows", "block.weight_ih_l0": "flows", "block.weight_hh_l0": "flows",
        "block.bias_ih_l0": "flows", "block.bias_hh_l0": "flows", "head.weight": "flows", "head.bias": "flows",
    },
    causes=[
        dict(kind="masked", line="CAUSE-1", params=["inputs.segments.weight"]),
    ],
    fix=None,
    after=None,
)
