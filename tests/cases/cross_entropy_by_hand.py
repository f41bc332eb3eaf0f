"""A hand-written binary cross entropy gives NaN once a logit is large: the probability rounds to exactly one, and the term that
is multiplied by zero is infinite."""
import torch
from torch import nn


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(3, 4)
        self.out = nn.Linear(4, 1)
        nn.init.constant_(self.out.bias, 2.0)

    def forward(self, x):
        return torch.sigmoid(self.out(torch.relu(self.body(x)))).squeeze(-1)


def cross_entropy(p, y):
    return -(y * p.log() + (1 - y) * (1 - p).log()).mean()  # CAUSE-1


class Trained(nn.Module):
    def __init__(self):
        super().__init__()
        self.detector = Detector()

    def forward(self, x, y):
        return cross_entropy(self.detector(x), y)


def make():
    torch.manual_seed(0)
    model = Trained()
    nn.init.ones_(model.detector.out.weight)
    nn.init.ones_(model.detector.body.weight)
    x = torch.tensor([[0.1, -0.4, 0.2], [30.0, 10.0, 20.0], [-0.3, 0.2, 0.5]])
    return dict(model=model, args=(x, torch.tensor([0.0, 1.0, 1.0])), kwargs={}, loss=lambda l: l)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "detector.body.weight": "nan", "detector.body.bias": "nan", "detector.out.weight": "nan",
        "detector.out.bias": "nan",
    },
    causes=[
        dict(kind="nan-grad", line="CAUSE-1",
             params=["detector.body.weight", "detector.body.bias", "detector.out.weight", "detector.out.bias"]),
    ],
    fix=None,
    after=None,
)
