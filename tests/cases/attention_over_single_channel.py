"""Attention pooling over time learns nothing: scores have shape batch x time x 1 and softmax runs over the last axis, which
has length one."""
import torch
from torch import nn


class AttentivePool(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.key = nn.Linear(width, width)
        self.ask = nn.Linear(width, 1, bias=False)

    def forward(self, seq):
        score = self.ask(torch.tanh(self.key(seq)))
        share = nn.functional.softmax(score, dim=2)  # CAUSE-1
        return (share * seq).sum(1)


class Emotion(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(3, 4, batch_first=True, bidirectional=True)
        self.pool = AttentivePool(8)
        self.out = nn.Linear(8, 4)

    def forward(self, frames):
        seq, _ = self.rnn(frames)
        return self.out(self.pool(seq))


def make():
    torch.manual_seed(0)
    return dict(model=Emotion(), args=(torch.randn(2, 6, 3),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "rnn.weight_ih_l0": "flows", "rnn.weight_hh_l0": "flows", "rnn.bias_ih_l0": "flows",
        "rnn.bias_hh_l0": "flows", "rnn.weight_ih_l0_reverse": "flows", "rnn.weight_hh_l0_reverse": "flows",
        "rnn.bias_ih_l0_reverse": "flows", "rnn.bias_hh_l0_reverse": "flows", "pool.key.weight": "zero",
        "pool.key.bias": "zero", "pool.ask.weight": "zero", "out.weight": "flows", "out.bias": "flows",
    },
    causes=[
        dict(kind="saturated", line="CAUSE-1", params=["pool.key.weight", "pool.key.bias", "pool.ask.weight"]),
    ],
    fix=None,
    after=None,
)
