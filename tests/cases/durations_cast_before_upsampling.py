"""The duration predictor of a speech synthesiser never learns from the spectrogram loss: frames are repeated by a whole
number, so the prediction is cast to int64 first."""
import torch
from torch import nn


class Durations(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv1d(width, width, 3, padding=1)
        self.out = nn.Linear(width, 1)

    def forward(self, h):
        h = torch.relu(self.conv(h.transpose(1, 2))).transpose(1, 2)
        return nn.functional.softplus(self.out(h)).squeeze(-1) + 1


def stretch(h, durations):
    count = durations.to(torch.int64)  # CAUSE-1
    rows = [torch.repeat_interleave(a, n, dim=0) for a, n in zip(h, count)]
    return nn.utils.rnn.pad_sequence(rows, batch_first=True)


class Synth(nn.Module):
    def __init__(self):
        super().__init__()
        self.phones = nn.Embedding(9, 5)
        self.durations = Durations(5)
        self.mel = nn.Linear(5, 4)

    def forward(self, ids):
        h = self.phones(ids)
        return self.mel(stretch(h, self.durations(h)))


def make():
    torch.manual_seed(0)
    return dict(model=Synth(), args=(torch.randint(0, 9, (2, 5)),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "phones.weight": "flows", "durations.conv.weight": "none", "durations.conv.bias": "none",
        "durations.out.weight": "none", "durations.out.bias": "none", "mel.weight": "flows", "mel.bias": "flows",
    },
    causes=[
        dict(kind="int-cast", line="CAUSE-1",
             params=["durations.conv.weight", "durations.conv.bias", "durations.out.weight", "durations.out.bias"]),
    ],
    fix=None,
    after=None,
)
