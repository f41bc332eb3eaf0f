"""Looks odd in a gradient table, is right: an embedding bag with sparse=True gets a sparse gradient that covers used rows only."""
import torch
from torch import nn


class Factor(nn.Module):
    def __init__(self):
        super().__init__()
        self.users = nn.Embedding(20, 4, sparse=True)
        self.items = nn.EmbeddingBag(30, 4, mode="sum", sparse=True)
        self.bias = nn.Parameter(torch.zeros(()))

    def forward(self, user, basket):
        return (self.users(user) * self.items(basket)).sum(-1) + self.bias


def make():
    torch.manual_seed(0)
    args = (torch.randint(0, 20, (4,)), torch.randint(0, 30, (4, 3)))
    return dict(model=Factor(), args=args, kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "bias": "flows", "users.weight": "flows", "items.weight": "flows",
    },
    causes=[],
    fix=None,
    after=None,
)
