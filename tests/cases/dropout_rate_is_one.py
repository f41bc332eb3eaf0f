"""A keep probability of 1.0 was given to nn.Dropout, which takes the drop probability: the whole branch is zeroed."""
import torch
from torch import nn


class Branch(nn.Module):
    def __init__(self, width, keep):
        super().__init__()
        self.fc = nn.Linear(width, width)
        self.drop = nn.Dropout(keep)
        self.mix = nn.Linear(width, width)

    def forward(self, x):
        return self.mix(self.drop(torch.relu(self.fc(x))))  # CAUSE-1


class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        self.deep = Branch(5, keep=1.0)
        self.wide = nn.Linear(5, 5)
        self.out = nn.Linear(5, 1)

    def forward(self, x):
        return self.out(self.wide(x) + self.deep(x))


def make():
    torch.manual_seed(0)
    return dict(model=Wide(), args=(torch.randn(4, 5),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "deep.fc.weight": "zero", "deep.fc.bias": "zero", "deep.mix.weight": "zero", "deep.mix.bias": "flows",
        "wide.weight": "flows", "wide.bias": "flows", "out.weight": "flows", "out.bias": "flows",
    },
    causes=[
        dict(kind="zero-factor", line="CAUSE-1", also_kinds=["masked", "saturated"],
             params=["deep.fc.weight", "deep.fc.bias", "deep.mix.weight"]),
    ],
    fix=None,
    after=None,
)
