"""Looks like an unused layer, is right: the output layer's weight is the input embedding's, and one gradient collects both uses."""
import torch
from torch import nn


class Language(nn.Module):
    def __init__(self, vocab=9, width=4):
        super().__init__()
        self.words = nn.Embedding(vocab, width)
        self.rnn = nn.LSTM(width, width, batch_first=True)
        self.out = nn.Linear(width, vocab)
        self.out.weight = self.words.weight

    def forward(self, ids):
        seq, _ = self.rnn(self.words(ids[:, :-1]))
        return nn.functional.cross_entropy(self.out(seq).flatten(0, 1), ids[:, 1:].flatten())


def make():
    torch.manual_seed(0)
    return dict(model=Language(), args=(torch.randint(0, 9, (2, 6)),), kwargs={}, loss=lambda l: l)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "words.weight": "flows", "rnn.weight_ih_l0": "flows", "rnn.weight_hh_l0": "flows",
        "rnn.bias_ih_l0": "flows", "rnn.bias_hh_l0": "flows", "out.bias": "flows",
    },
    causes=[],
    fix=None,
    after=None,
)
