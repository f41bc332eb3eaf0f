"""The adapter is trainable when the optimizer is built and frozen from the first forward on: eval-time code in forward
switches requires_grad off for everything that is not the head."""
import torch
from torch import nn


class Adapter(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.down = nn.Linear(width, 2)
        self.up = nn.Linear(2, width)

    def forward(self, x):
        return x + self.up(torch.relu(self.down(x)))


class Tuned(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(5, 6).requires_grad_(False)
        self.adapter = Adapter(6)
        self.head = nn.Linear(6, 2)

    def forward(self, x):
        for part in (self.body, self.adapter):
            part.requires_grad_(False)  # CAUSE-1
        return self.head(self.adapter(self.body(x)))


def make():
    torch.manual_seed(0)
    return dict(model=Tuned(), args=(torch.randn(4, 5),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "body.weight": "frozen", "body.bias": "frozen", "adapter.down.weight": "frozen",
        "adapter.down.bias": "frozen", "adapter.up.weight": "frozen", "adapter.up.bias": "frozen",
        "head.weight": "flows", "head.bias": "flows",
    },
    causes=[
        dict(kind="frozen-param", line="CAUSE-1",
             params=["adapter.down.weight", "adapter.down.bias", "adapter.up.weight", "adapter.up.bias"]),
    ],
    fix=None,
    after=None,
)
