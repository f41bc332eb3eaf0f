"""The second training step fails with "backward through the graph a second time": the moving mean of a centring layer is a
buffer, but it is updated from the live batch mean."""
import torch
from torch import nn


class Centre(nn.Module):
    def __init__(self, width, keep=0.9):
        super().__init__()
        self.keep = keep
        self.register_buffer("mean", torch.zeros(width))

    def forward(self, z):
        self.mean = self.keep * self.mean + (1 - self.keep) * z.mean(0)  # CAUSE-1
        return z - self.mean


class Projector(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(5, 6)
        self.centre = Centre(4)
        self.out = nn.Linear(6, 4)

    def forward(self, x):
        return torch.softmax(self.centre(self.out(torch.relu(self.body(x)))) / 0.5, -1)


def make():
    torch.manual_seed(0)
    return dict(model=Projector(), args=(torch.randn(4, 5),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "body.weight": "flows", "body.bias": "flows", "out.weight": "flows", "out.bias": "flows",
    },
    causes=[
        dict(kind="inplace-param-or-buffer", line="CAUSE-1", params=[]),
    ],
    fix=None,
    after=None,
)
