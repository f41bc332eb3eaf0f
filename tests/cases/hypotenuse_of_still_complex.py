"""The magnitude of a complex mask is computed with hypot; silent bins are exactly zero and their gradient is 0/0."""
import torch
from torch import nn


class Mask(nn.Module):
    def __init__(self, bins):
        super().__init__()
        self.real = nn.Linear(bins, bins, bias=False)
        self.imag = nn.Linear(bins, bins, bias=False)

    def forward(self, spec):
        return self.real(spec), self.imag(spec)


class Enhance(nn.Module):
    def __init__(self, bins=5):
        super().__init__()
        self.mask = Mask(bins)
        self.gain = nn.Parameter(torch.ones(bins))

    def forward(self, spec):
        a, b = self.mask(spec)
        return self.gain * torch.hypot(a, b)  # CAUSE-1


def make():
    torch.manual_seed(0)
    spec = torch.rand(4, 5)
    spec[0] = 0.0
    return dict(model=Enhance(), args=(spec,), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "gain": "flows", "mask.real.weight": "nan", "mask.imag.weight": "nan",
    },
    causes=[
        dict(kind="nan-grad", line="CAUSE-1", params=["mask.real.weight", "mask.imag.weight"]),
    ],
    fix=None,
    after=None,
)
