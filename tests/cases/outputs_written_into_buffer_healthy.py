"""Looks like an in-place hazard, is right: each step's output is written into its own row of a fresh tensor that nobody reads
before the end."""
import torch
from torch import nn


class Roll(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(3, 4)
        self.out = nn.Linear(4, 2)

    def forward(self, xs):
        h = c = xs.new_zeros(xs.shape[1], 4)
        out = torch.empty(xs.shape[0], xs.shape[1], 2)
        for t, x in enumerate(xs):
            h, c = self.cell(x, (h, c))
            out[t] = self.out(h)
        out[:, :, 1].sigmoid_()
        return out


def make():
    torch.manual_seed(0)
    return dict(model=Roll(), args=(torch.randn(5, 2, 3),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "cell.weight_ih": "flows", "cell.weight_hh": "flows", "cell.bias_ih": "flows", "cell.bias_hh": "flows",
        "out.weight": "flows", "out.bias": "flows",
    },
    causes=[],
    fix="same",
    after=None,
)
