"""A masked divergence prints a sensible number and gives NaN gradients: where() hides log(0) in the padded columns, but
backward multiplies its zero by the infinite slope of log."""
import torch
from torch import nn


class Topics(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(5, 4)

    def forward(self, x, allowed):
        share = torch.softmax(self.mix(x), -1) * allowed
        return share / share.sum(-1, keepdim=True)


def divergence(p, q, allowed):
    each = p * (torch.log(p) - torch.log(q))  # CAUSE-1
    return torch.where(allowed, each, torch.zeros_like(each)).sum(-1)  # ALSO-1


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.topics = Topics()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x, allowed, prior):
        return self.scale * divergence(self.topics(x, allowed), prior, allowed).mean()


def make():
    torch.manual_seed(0)
    allowed = torch.tensor([[1, 1, 1, 0], [1, 0, 1, 1], [1, 1, 1, 1]]).bool()
    return dict(model=Model(), args=(torch.randn(3, 5), allowed, torch.full((3, 4), 0.25)), kwargs={}, loss=lambda l: l)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "scale": "flows", "topics.mix.weight": "nan", "topics.mix.bias": "nan",
    },
    causes=[
        dict(kind="nan-grad", line="CAUSE-1", also=["ALSO-1"], params=["topics.mix.weight", "topics.mix.bias"]),
    ],
    fix=None,
    after=None,
)
