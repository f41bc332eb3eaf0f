"""A ranking model trained on rank correlation keeps a loss that never changes: ranks come from argsort of argsort."""
import torch
from torch import nn


def ranks(scores):
    return scores.argsort(-1).argsort(-1).float()  # CAUSE-1


def rank_correlation(a, b):
    a, b = ranks(a), ranks(b)
    a, b = a - a.mean(-1, keepdim=True), b - b.mean(-1, keepdim=True)
    return (a * b).sum(-1) / (a.norm(dim=-1) * b.norm(dim=-1))


class Ranker(nn.Module):
    def __init__(self):
        super().__init__()
        self.tower = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1))
        self.balance = nn.Parameter(torch.tensor(0.4))

    def forward(self, docs, relevance):
        score = self.tower(docs).squeeze(-1)
        return (1 - rank_correlation(score, relevance)).mean() * self.balance.exp() - self.balance


def make():
    torch.manual_seed(0)
    return dict(model=Ranker(), args=(torch.randn(2, 5, 6), torch.rand(2, 5)), kwargs={}, loss=lambda l: l)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "balance": "flows", "tower.0.weight": "none", "tower.0.bias": "none", "tower.2.weight": "none",
        "tower.2.bias": "none",
    },
    causes=[
        dict(kind="nondiff-op", line="CAUSE-1",
             params=["tower.0.weight", "tower.0.bias", "tower.2.weight", "tower.2.bias"]),
    ],
    fix=None,
    after=None,
)
