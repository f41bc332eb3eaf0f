"""The source side of a small translator is random for ever; the target side learns a language model and nothing else.
The state that is handed over is detached in place, as in truncated training over long texts."""
import torch
from torch import nn


class Source(nn.Module):
    def __init__(self, vocab, width):
        super().__init__()
        self.words = nn.Embedding(vocab, width)
        self.rnn = nn.LSTM(width, width, batch_first=True)

    def forward(self, ids):
        _, state = self.rnn(self.words(ids))
        return state


class Target(nn.Module):
    def __init__(self, vocab, width):
        super().__init__()
        self.words = nn.Embedding(vocab, width)
        self.rnn = nn.LSTM(width, width, batch_first=True)
        self.out = nn.Linear(width, vocab)

    def forward(self, ids, state):
        seq, _ = self.rnn(self.words(ids), state)
        return self.out(seq)


def fresh(state):
    return tuple(s.clone().detach_() for s in state)  # CAUSE-1


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.source = Source(7, 4)
        self.target = Target(6, 4)

    def forward(self, src, dst):
        return self.target(dst, fresh(self.source(src)))


def make():
    torch.manual_seed(0)
    args = (torch.randint(0, 7, (2, 5)), torch.randint(0, 6, (2, 4)))
    return dict(model=Translator(), args=args, kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "source.words.weight": "none", "source.rnn.weight_ih_l0": "none", "source.rnn.weight_hh_l0": "none",
        "source.rnn.bias_ih_l0": "none", "source.rnn.bias_hh_l0": "none", "target.words.weight": "flows",
        "target.rnn.weight_ih_l0": "flows", "target.rnn.weight_hh_l0": "flows", "target.rnn.bias_ih_l0": "flows",
        "target.rnn.bias_hh_l0": "flows", "target.out.weight": "flows", "target.out.bias": "flows",
    },
    causes=[
        dict(kind="detach", line="CAUSE-1",
             params=["source.words.weight", "source.rnn.weight_ih_l0", "source.rnn.weight_hh_l0",
              "source.rnn.bias_ih_l0", "source.rnn.bias_hh_l0"]),
    ],
    fix=None,
    after=None,
)
