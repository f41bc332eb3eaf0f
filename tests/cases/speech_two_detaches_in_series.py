"""Only the word classifier of a speech model learns. Removing the detach in the context network changes nothing for the
frontend, because its features are taken through .data before that."""
import torch
from torch import nn


class Frontend(nn.Module):
    def __init__(self):
        super().__init__()
        self.filters = nn.Conv1d(1, 4, 5, stride=2)
        self.norm = nn.GroupNorm(2, 4)

    def forward(self, wave):
        return torch.relu(self.norm(self.filters(wave)))


class Context(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(4, 5, batch_first=True)

    def forward(self, feats):
        seq, _ = self.rnn(feats.transpose(1, 2))
        pooled = seq.mean(1)
        return pooled.detach()  # CAUSE-2


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.frontend = Frontend()
        self.context = Context()
        self.classify = nn.Linear(5, 3)

    def features(self, wave):
        out = self.frontend(wave)
        return out.data  # CAUSE-1

    def forward(self, wave):
        return self.classify(self.context(self.features(wave)))


def make():
    torch.manual_seed(0)
    return dict(model=Words(), args=(torch.randn(3, 1, 24),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "frontend.filters.weight": "none", "frontend.filters.bias": "none", "frontend.norm.weight": "none",
        "frontend.norm.bias": "none", "context.rnn.weight_ih_l0": "none", "context.rnn.weight_hh_l0": "none",
        "context.rnn.bias_ih_l0": "none", "context.rnn.bias_hh_l0": "none", "classify.weight": "flows",
        "classify.bias": "flows",
    },
    causes=[
        dict(kind="detach", line="CAUSE-1",
             params=["frontend.filters.weight", "frontend.filters.bias", "frontend.norm.weight",
              "frontend.norm.bias"]),
        dict(kind="detach", line="CAUSE-2",
             params=["context.rnn.weight_ih_l0", "context.rnn.weight_hh_l0", "context.rnn.bias_ih_l0",
              "context.rnn.bias_hh_l0"]),
    ],
    fix=None,
    after=None,
)
