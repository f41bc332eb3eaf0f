"""Small gate values are cut to zero through .data after sigmoid kept them: the forward pass uses the pruned gates, and sigmoid's
derivative is then computed from the pruned values, which is silently wrong."""
import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc = nn.Linear(width, width)

    def forward(self, x):
        g = torch.sigmoid(self.fc(x))
        g.data[g.data < 0.5] = 0.1  # CAUSE-1
        return x * g


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = Gate(5)
        self.out = nn.Linear(5, 2)

    def forward(self, x):
        return self.out(self.gate(x))


def make():
    torch.manual_seed(0)
    return dict(model=Net(), args=(torch.randn(6, 5),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "gate.fc.weight": "flows", "gate.fc.bias": "flows", "out.weight": "flows", "out.bias": "flows",
    },
    causes=[
        dict(kind="data-write", line="CAUSE-1", params=["gate.fc.weight", "gate.fc.bias"]),
    ],
    fix=None,
    after=None,
)
