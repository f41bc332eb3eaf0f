"""A home-made softplus switches to the identity for large inputs and still ruins the weights: the exponential in the branch
that where() does not take is infinite, and zero times infinity is NaN."""
import torch
from torch import nn


def softplus(x):
    soft = torch.log1p(torch.exp(x))  # CAUSE-1
    return torch.where(x > 20, x, soft)  # ALSO-1


class Rate(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(3, 4)
        self.rate = nn.Linear(4, 1)

    def forward(self, x):
        return softplus(self.rate(self.body(x))).squeeze(-1)


class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.rate = Rate()
        self.log_time = nn.Parameter(torch.zeros(()))

    def forward(self, x, seen):
        expected = self.rate(x) * self.log_time.exp() + 1e-3
        return (expected - seen * expected.log()).mean()


def make():
    torch.manual_seed(0)
    model = Counts()
    nn.init.constant_(model.rate.body.weight, 1.0)
    nn.init.constant_(model.rate.rate.weight, 1.0)
    x = torch.tensor([[0.1, 0.2, 0.3], [40.0, 5.0, 9.0]])
    return dict(model=model, args=(x, torch.tensor([1.0, 220.0])), kwargs={}, loss=lambda l: l)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "log_time": "flows", "rate.body.weight": "nan", "rate.body.bias": "nan", "rate.rate.weight": "nan",
        "rate.rate.bias": "nan",
    },
    causes=[
        dict(kind="nan-grad", line="CAUSE-1", also=["ALSO-1"],
             params=["rate.body.weight", "rate.body.bias", "rate.rate.weight", "rate.rate.bias"]),
    ],
    fix=None,
    after=None,
)
