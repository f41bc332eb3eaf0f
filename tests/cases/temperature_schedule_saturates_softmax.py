"""Slot attention with a sharp temperature picks one slot with probability exactly 1; the softmax is flat and the query layer
gets zeros only."""
import torch
from torch import nn


class Slots(nn.Module):
    def __init__(self, heat):
        super().__init__()
        self.ask = nn.Linear(4, 4, bias=False)
        self.values = nn.Parameter(torch.randn(3, 4))
        self.register_buffer("keys", 30.0 * torch.eye(3, 4))
        self.heat = heat

    def forward(self, x):
        scores = self.ask(x) @ self.keys.t()
        share = torch.softmax(scores / self.heat, -1)  # CAUSE-1
        return share @ self.values


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.slots = Slots(heat=1e-3)
        self.out = nn.Linear(4, 2)

    def forward(self, x):
        return self.out(self.slots(x))


def make():
    torch.manual_seed(0)
    return dict(model=Reader(), args=(torch.randn(5, 4),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "slots.values": "flows", "slots.ask.weight": "zero", "out.weight": "flows", "out.bias": "flows",
    },
    causes=[
        dict(kind="saturated", line="CAUSE-1", params=["slots.ask.weight"]),
    ],
    fix=None,
    after=None,
)
