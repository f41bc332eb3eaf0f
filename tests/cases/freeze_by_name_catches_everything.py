"""Nothing trains after the switch to fine-tuning: the freezing loop was meant for the body, but every parameter's name starts
with the prefix it looks for."""
import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential()
        self.net.add_module("body", nn.Sequential(nn.Linear(5, 6), nn.ReLU()))
        self.net.add_module("head", nn.Linear(6, 3))

    def forward(self, x):
        return self.net(x)


def freeze(model, prefix):
    for name, p in model.named_parameters():
        if name.startswith(prefix):
            p.requires_grad = False  # CAUSE-1
    return model


def make():
    torch.manual_seed(0)
    return dict(model=freeze(Classifier(), "net"), args=(torch.randn(4, 5),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "net.body.0.weight": "frozen", "net.body.0.bias": "frozen", "net.head.weight": "frozen",
        "net.head.bias": "frozen",
    },
    causes=[
        dict(kind="frozen-param", line="CAUSE-1",
             params=["net.body.0.weight", "net.body.0.bias", "net.head.weight", "net.head.bias"]),
    ],
    fix=None,
    after=None,
)
