"""Group-relative advantages become NaN and with them every weight: one prompt has a single answer, and the unbiased standard
deviation of one number divides by zero."""
import torch
from torch import nn


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(9, 4)
        self.out = nn.Linear(4, 1)

    def forward(self, ids):
        return self.out(torch.tanh(self.words(ids).mean(1))).squeeze(-1)


def standardised(scores, group):
    out = torch.zeros_like(scores)
    for g in group.unique():
        mine = scores[group == g]
        out[group == g] = (mine - mine.mean()) / (mine.std() + 1e-4)  # CAUSE-1
    return out


class Ranking(nn.Module):
    def __init__(self):
        super().__init__()
        self.scorer = Scorer()

    def forward(self, ids, group, gain):
        return -(standardised(self.scorer(ids), group) * gain).mean()


def make():
    torch.manual_seed(0)
    args = (torch.randint(0, 9, (5, 4)), torch.tensor([0, 0, 1, 2, 2]), torch.randn(5))
    return dict(model=Ranking(), args=args, kwargs={}, loss=lambda l: l)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "scorer.words.weight": "nan", "scorer.out.weight": "nan", "scorer.out.bias": "nan",
    },
    causes=[
        dict(kind="nan-grad", line="CAUSE-1",
             params=["scorer.words.weight", "scorer.out.weight", "scorer.out.bias"]),
    ],
    fix=None,
    after=None,
)
