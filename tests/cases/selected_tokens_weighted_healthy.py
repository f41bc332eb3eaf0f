"""Looks severed, is right: topk picks positions, but the kept tokens are multiplied by their own scores, and that is the way
the gradient reaches the scorer."""
import torch
from torch import nn


class ScoredSelector(nn.Module):
    def __init__(self, width, keep):
        super().__init__()
        self.rate = nn.Linear(width, 1)
        self.keep = keep

    def forward(self, tokens):
        score = torch.sigmoid(self.rate(tokens).squeeze(-1))
        order = score.detach().argsort(-1, descending=True)[:, : self.keep]
        pick = lambda t: torch.take_along_dim(t, order.unsqueeze(-1), 1)
        return pick(tokens) * pick(score.unsqueeze(-1)), order


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(12, 5)
        self.select = ScoredSelector(5, 3)
        self.gru = nn.GRU(5, 4, batch_first=True)
        self.head = nn.Linear(4, 2)

    def forward(self, ids):
        kept, order = self.select(self.words(ids))
        _, last = self.gru(kept)
        return self.head(last[0]), order


def make():
    torch.manual_seed(0)
    return dict(model=Reader(), args=(torch.randint(0, 12, (3, 7)),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "words.weight": "flows", "select.rate.weight": "flows", "select.rate.bias": "flows",
        "gru.weight_ih_l0": "flows", "gru.weight_hh_l0": "flows", "gru.bias_ih_l0": "flows",
        "gru.bias_hh_l0": "flows", "head.weight": "flows", "head.bias": "flows",
    },
    causes=[],
    fix=None,
    after=None,
)
