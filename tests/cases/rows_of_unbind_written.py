"""Scaling the heads one by one raises in forward: unbind returns all heads as views at once, and such views may not be written."""
import torch
from torch import nn


class Heads(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.fc = nn.Linear(width, heads * width)
        self.heads = heads

    def forward(self, x, gains):
        parts = self.fc(x).unflatten(-1, (self.heads, -1)).unbind(1)
        for part, gain in zip(parts, gains.tolist()):
            part.mul_(gain)  # CAUSE-1
        return sum(parts)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = Heads(4, 2)
        self.out = nn.Linear(4, 2)

    def forward(self, x, gains):
        return self.out(self.mix(x, gains))


def reference():
    class Copying(Heads):
        def forward(self, x, gains):
            return (self.fc(x).unflatten(-1, (self.heads, -1)) * gains.unsqueeze(-1)).sum(1)
    torch.manual_seed(0)
    model = Net()
    model.mix.__class__ = Copying
    return dict(model=model, args=(torch.randn(3, 4), torch.tensor([0.5, 2.0])), kwargs={}, loss=None)


def make():
    torch.manual_seed(0)
    return dict(model=Net(), args=(torch.randn(3, 4), torch.tensor([0.5, 2.0])), kwargs={}, loss=None)


EXPECT = dict(
    eager="forward-error",
    error_match="is being modified inplace",
    params={},
    causes=[
        dict(kind="inplace-view", line="CAUSE-1", params=[]),
    ],
    fix="restores",
    after={
        "mix.fc.weight": "flows", "mix.fc.bias": "flows", "out.weight": "flows", "out.bias": "flows",
    },
)
