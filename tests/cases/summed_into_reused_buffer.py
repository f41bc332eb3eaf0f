"""A reused scratch buffer given as out= to add raises once the operands require grad; under no_grad it had worked."""
import torch
from torch import nn


class Skip(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.left = nn.Linear(width, width)
        self.right = nn.Linear(width, width)
        self.register_buffer("scratch", torch.empty(3, width), persistent=False)

    def forward(self, x):
        torch.add(self.left(x), self.right(x), out=self.scratch)  # CAUSE-1
        return torch.relu(self.scratch)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.skip = Skip(4)
        self.out = nn.Linear(4, 1)

    def forward(self, x):
        return self.out(self.skip(x))


def make():
    torch.manual_seed(0)
    return dict(model=Net(), args=(torch.randn(3, 4),), kwargs={}, loss=None)


EXPECT = dict(
    eager="forward-error",
    error_match="out=... arguments don't support automatic differentiation",
    params={},
    causes=[
        dict(kind="inplace-out", line="CAUSE-1", params=[]),
    ],
    fix=None,
    after=None,
)
