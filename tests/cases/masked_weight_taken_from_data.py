"""An autoregressive density model stays as it was initialised, except for its biases.
The masked layer multiplies weight.data by the mask, so the product has no link to the parameter."""
import torch
from torch import nn
import torch.nn.functional as F


class MaskedLinear(nn.Linear):
    def __init__(self, degrees_in, degrees_out):
        super().__init__(len(degrees_in), len(degrees_out))
        self.register_buffer("mask", (degrees_out.unsqueeze(1) >= degrees_in.unsqueeze(0)).float())

    def forward(self, x):
        return F.linear(x, self.weight.data * self.mask, self.bias)  # CAUSE-1


class Density(nn.Module):
    def __init__(self, size=4):
        super().__init__()
        order = torch.arange(size)
        hidden = torch.arange(8) % (size - 1)
        self.first = MaskedLinear(order, hidden)
        self.last = MaskedLinear(hidden, torch.cat([order, order]) - 1)

    def forward(self, x):
        mean, log_scale = self.last(F.elu(self.first(x))).chunk(2, -1)
        z = (x - mean) * torch.exp(-log_scale)
        return 0.5 * z.square().sum(-1) + log_scale.sum(-1)


def make():
    torch.manual_seed(0)
    return dict(model=Density(), args=(torch.randn(5, 4),), kwargs={}, loss=lambda nll: nll.mean())


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "first.weight": "none", "first.bias": "flows", "last.weight": "none", "last.bias": "flows",
    },
    causes=[
        dict(kind="detach", line="CAUSE-1", params=["first.weight", "last.weight"]),
    ],
    fix=None,
    after=None,
)
