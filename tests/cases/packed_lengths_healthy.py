"""Looks like an exit to Python, is right: lengths are counted and passed to the CPU for packing, the features stay in the graph."""
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class Sentence(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(9, 4, padding_idx=0)
        self.rnn = nn.GRU(4, 5, batch_first=True, bidirectional=True)
        self.out = nn.Linear(10, 2)

    def forward(self, ids):
        lengths = (ids != 0).sum(1)
        packed = pack_padded_sequence(self.words(ids), lengths.cpu(), batch_first=True, enforce_sorted=False)
        seq, _ = pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
        return self.out(seq.sum(1) / lengths.unsqueeze(1))


def make():
    torch.manual_seed(0)
    ids = torch.tensor([[1, 2, 3, 0], [4, 5, 0, 0], [6, 7, 8, 1]])
    return dict(model=Sentence(), args=(ids,), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "words.weight": "flows", "rnn.weight_ih_l0": "flows", "rnn.weight_hh_l0": "flows",
        "rnn.bias_ih_l0": "flows", "rnn.bias_hh_l0": "flows", "rnn.weight_ih_l0_reverse": "flows",
        "rnn.weight_hh_l0_reverse": "flows", "rnn.bias_ih_l0_reverse": "flows",
        "rnn.bias_hh_l0_reverse": "flows", "out.weight": "flows", "out.bias": "flows",
    },
    causes=[],
    fix=None,
    after=None,
)
