"""Every second batch attends to the padding only: the mask that comes in a keyword argument is inverted in place, and the caller
uses the same mask again."""
import torch
from torch import nn


class Pool(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.score = nn.Linear(width, 1)

    def forward(self, seq, padding):
        padding.logical_not_()  # CAUSE-1
        score = self.score(seq).squeeze(-1).masked_fill(~padding, -1e4)
        return (score.softmax(-1).unsqueeze(-1) * seq).sum(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(8, 4)
        self.pool = Pool(4)
        self.out = nn.Linear(4, 2)

    def forward(self, ids, *, padding):
        return self.out(self.pool(self.words(ids), padding))


def make():
    torch.manual_seed(0)
    padding = torch.tensor([[0, 0, 0, 1], [0, 0, 1, 1]]).bool()
    return dict(model=Net(), args=(torch.randint(0, 8, (2, 4)),), kwargs=dict(padding=padding), loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "words.weight": "flows", "pool.score.weight": "flows", "pool.score.bias": "flows", "out.weight": "flows",
        "out.bias": "flows",
    },
    causes=[
        dict(kind="inplace-input", line="CAUSE-1", params=[]),
    ],
    fix="same",
    after=None,
)
