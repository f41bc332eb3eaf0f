"""The three stream weights of a late-fusion model are parameters with no gradient.
They are collected into one vector by as_tensor on a list, which copies their numbers."""
import torch
from torch import nn


class Stream(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.body = nn.Linear(size, 4)
        self.trust = nn.Parameter(torch.rand(()))

    def forward(self, x):
        return torch.tanh(self.body(x))


class LateFusion(nn.Module):
    def __init__(self):
        super().__init__()
        self.streams = nn.ModuleDict(dict(rgb=Stream(5), flow=Stream(3), audio=Stream(2)))
        self.out = nn.Linear(4, 3)

    def trust(self):
        return torch.as_tensor([s.trust for s in self.streams.values()]).softmax(0)  # CAUSE-1

    def forward(self, clip):
        stacked = torch.stack([s(clip[k]) for k, s in self.streams.items()])
        return self.out(torch.einsum("s,sbd->bd", self.trust(), stacked))


def make():
    torch.manual_seed(0)
    clip = dict(rgb=torch.randn(4, 5), flow=torch.randn(4, 3), audio=torch.randn(4, 2))
    return dict(model=LateFusion(), args=(clip,), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "streams.rgb.trust": "none", "streams.rgb.body.weight": "flows", "streams.rgb.body.bias": "flows",
        "streams.flow.trust": "none", "streams.flow.body.weight": "flows", "streams.flow.body.bias": "flows",
        "streams.audio.trust": "none", "streams.audio.body.weight": "flows", "streams.audio.body.bias": "flows",
        "out.weight": "flows", "out.bias": "flows",
    },
    causes=[
        dict(kind="python-value", line="CAUSE-1",
             params=["streams.rgb.trust", "streams.flow.trust", "streams.audio.trust"]),
    ],
    fix=None,
    after=None,
)
