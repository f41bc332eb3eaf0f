"""The refinement stage runs, costs time, and has no gradient: its result is bound to a name that nobody reads."""
import torch
from torch import nn


class Refine(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.a = nn.Conv1d(width, width, 3, padding=1)
        self.b = nn.Conv1d(width, width, 1)

    def forward(self, x):
        return x + self.b(torch.relu(self.a(x)))


class Segment(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv1d(2, 4, 3, padding=1)
        self.refine = Refine(4)  # CAUSE-1
        self.out = nn.Conv1d(4, 3, 1)

    def forward(self, x):
        coarse = torch.relu(self.stem(x))
        refined = self.refine(coarse)  # ALSO-1
        return self.out(coarse)


def make():
    torch.manual_seed(0)
    return dict(model=Segment(), args=(torch.randn(2, 2, 8),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "stem.weight": "flows", "stem.bias": "flows", "refine.a.weight": "none", "refine.a.bias": "none",
        "refine.b.weight": "none", "refine.b.bias": "none", "out.weight": "flows", "out.bias": "flows",
    },
    causes=[
        dict(kind="unused-param", line="CAUSE-1", also=["ALSO-1"],
             params=["refine.a.weight", "refine.a.bias", "refine.b.weight", "refine.b.bias"]),
    ],
    fix=None,
    after=None,
)
