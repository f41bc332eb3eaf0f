"""The encoder of a sequence model is behind two cuts: a hard choice by multinomial, then a detach of the looked-up rows."""
import torch
from torch import nn


class Propose(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Linear(5, 4)

    def forward(self, x):
        chance = self.score(x).softmax(-1)
        return torch.multinomial(chance, 2)  # CAUSE-1


class Bank(nn.Module):
    def __init__(self):
        super().__init__()
        self.rows = nn.Embedding(4, 3)

    def forward(self, which):
        return self.rows(which).mean(1).detach()  # CAUSE-2


class Chain(nn.Module):
    def __init__(self):
        super().__init__()
        self.propose = Propose()
        self.bank = Bank()
        self.out = nn.Linear(3, 2)

    def forward(self, x):
        return self.out(self.bank(self.propose(x)))


def make():
    torch.manual_seed(0)
    return dict(model=Chain(), args=(torch.randn(5, 5),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "propose.score.weight": "none", "propose.score.bias": "none", "bank.rows.weight": "none",
        "out.weight": "flows", "out.bias": "flows",
    },
    causes=[
        dict(kind="nondiff-op", line="CAUSE-1", params=["propose.score.weight", "propose.score.bias"]),
        dict(kind="detach", line="CAUSE-2", params=["bank.rows.weight"]),
    ],
    fix=None,
    after=None,
)
