"""The loss is infinite and every gradient NaN on one clip: its text has more symbols than the audio has frames, which CTC cannot
align, and zero_infinity was not set."""
import torch
from torch import nn
import torch.nn.functional as F


class Recogniser(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(3, 5, 3, padding=1)
        self.rnn = nn.GRU(5, 5, batch_first=True)
        self.out = nn.Linear(5, 6)

    def forward(self, feats):
        seq, _ = self.rnn(torch.relu(self.conv(feats)).transpose(1, 2))
        return self.out(seq).log_softmax(-1)


class Trained(nn.Module):
    def __init__(self):
        super().__init__()
        self.recogniser = Recogniser()

    def forward(self, feats, text, frames, symbols):
        logp = self.recogniser(feats).transpose(0, 1)
        return F.ctc_loss(logp, text, frames, symbols, blank=0)  # CAUSE-1


def make():
    torch.manual_seed(0)
    text = torch.tensor([[1, 2, 0, 0], [3, 3, 4, 5]])
    args = (torch.randn(2, 3, 6), text, torch.tensor([6, 3]), torch.tensor([2, 4]))
    return dict(model=Trained(), args=args, kwargs={}, loss=lambda l: l)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "recogniser.conv.weight": "nan", "recogniser.conv.bias": "nan", "recogniser.rnn.weight_ih_l0": "nan",
        "recogniser.rnn.weight_hh_l0": "nan", "recogniser.rnn.bias_ih_l0": "nan",
        "recogniser.rnn.bias_hh_l0": "nan", "recogniser.out.weight": "nan", "recogniser.out.bias": "nan",
    },
    causes=[
        dict(kind="nan-grad", line="CAUSE-1",
             params=["recogniser.conv.weight", "recogniser.conv.bias", "recogniser.rnn.weight_ih_l0",
              "recogniser.rnn.weight_hh_l0", "recogniser.rnn.bias_ih_l0", "recogniser.rnn.bias_hh_l0",
              "recogniser.out.weight", "recogniser.out.bias"]),
    ],
    fix=None,
    after=None,
)
