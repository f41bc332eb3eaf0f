"""A learned initial state never moves although the recurrent weights do.
The loop detaches the state at the top of every step to save memory, and that includes the very first one."""
import torch
from torch import nn


class Cell(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.mix = nn.Linear(2 * size, size)

    def forward(self, x, h):
        return torch.tanh(self.mix(torch.cat([x, h], -1)))


class Tracker(nn.Module):
    def __init__(self, size=4):
        super().__init__()
        self.start = nn.Parameter(0.1 * torch.randn(size))
        self.cell = Cell(size)
        self.emit = nn.Linear(size, 2)

    def forward(self, xs):
        h = self.start.expand(xs.shape[1], -1)
        out = []
        for x in xs:
            h = self.cell(x, h.detach())  # CAUSE-1
            out.append(self.emit(h))
        return torch.stack(out)


def make():
    torch.manual_seed(0)
    return dict(model=Tracker(), args=(torch.randn(5, 3, 4),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "start": "none", "cell.mix.weight": "flows", "cell.mix.bias": "flows", "emit.weight": "flows",
        "emit.bias": "flows",
    },
    causes=[
        dict(kind="detach", line="CAUSE-1", params=["start"]),
    ],
    fix=None,
    after=None,
)
