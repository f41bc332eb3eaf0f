"""A decorrelation layer that starts from the identity gives NaN in the first backward: the derivative of eigenvectors divides
by the differences of the eigenvalues, which are all equal."""
import torch
from torch import nn


class Whiten(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.cov = nn.Parameter(torch.eye(width))

    def forward(self, x):
        values, vectors = torch.linalg.eigh(self.cov)  # CAUSE-1
        return x @ vectors / values.sqrt()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter = nn.Linear(5, 3)
        self.whiten = Whiten(3)
        self.out = nn.Linear(3, 2)

    def forward(self, x):
        return self.out(self.whiten(self.enter(x)))


def make():
    torch.manual_seed(0)
    return dict(model=Net(), args=(torch.randn(4, 5),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "enter.weight": "flows", "enter.bias": "flows", "whiten.cov": "nan", "out.weight": "flows",
        "out.bias": "flows",
    },
    causes=[
        dict(kind="nan-grad", line="CAUSE-1", params=["whiten.cov"]),
    ],
    fix=None,
    after=None,
)
