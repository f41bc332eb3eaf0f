"""An op whose derivative is zero everywhere, on the only way of a gradient.

## What it does
Finds parameters with an exactly zero gradient where the step that made it zero is `round`, `floor`,
`ceil`, `trunc`, `sign`, `heaviside` or a division with `rounding_mode`. Proof: the graph runs again
with the identity as this op's derivative. A zero that other inputs or one step of the other
parameters remove is `info`.

## Why is this bad
These functions are flat between their jumps. PyTorch defines their derivative as zero, so backward
runs, every `.grad` is there, and every entry is zero: a check for None sees nothing, and the
parameters do not move (with weight decay or momentum they even drift). Quantisers, binary networks
and learned step counts end here.

## Use instead
- Straight-through: `x + (x.round() - x).detach()` has the rounded value and the derivative of the
  identity.
- For `sign`, limit it to where it makes sense: `c + (x.sign() - c).detach()` with `c = x.clamp(-1,
  1)`.
- A soft form with a slope: `torch.tanh(k * x)`, `torch.sigmoid(k * x)`, or additive uniform noise
  in training.

## When to ignore
If the rounded path is not to train what is before it, detach its input.
`# fxdoctor: ignore[zero-grad-op]` at the end of the line turns it into `info`.

## Source
PyTorch's `tools/autograd/derivatives.yaml`: `round`, `floor`, `sign` and their like give
`zeros_like(grad)`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..report.model import Finding
from .base import Rule
from .context import Diagnosis, group_name, op_text

BAD = """\
import torch
from torch import nn


class Quantised(nn.Module):
    def __init__(self, step=0.1):
        super().__init__()
        self.step = step
        self.encoder = nn.Linear(8, 4)
        self.decoder = nn.Linear(4, 8)

    def forward(self, x):
        code = self.encoder(x) / self.step
        code = torch.round(code)  # HERE
        return self.decoder(code * self.step)


def make():
    torch.manual_seed(0)
    return dict(model=Quantised(), args=(torch.randn(4, 8),), loss=None)
"""
GOOD = """\
import torch
from torch import nn


class Quantised(nn.Module):
    def __init__(self, step=0.1):
        super().__init__()
        self.step = step
        self.encoder = nn.Linear(8, 4)
        self.decoder = nn.Linear(4, 8)

    def forward(self, x):
        code = self.encoder(x) / self.step
        code = code + (torch.round(code) - code).detach()
        return self.decoder(code * self.step)


def make():
    torch.manual_seed(0)
    return dict(model=Quantised(), args=(torch.randn(4, 8),), loss=None)
"""


def check(d: Diagnosis) -> Iterator[Finding]:
    for zero in d.zero_reasons("zero-grad-op"):
        op = op_text(zero.node)
        yield RULE.finding(
            d.zero_severity(zero),
            f"the gradient of {group_name(zero.params)} is exactly zero: {op} has a derivative of zero everywhere",
            location=d.place(zero.node),
            node=zero.node.name,
            params=zero.params,
            label="the gradient is exactly zero behind this",
            proof=d.zero_proofs.get(zero.node),
            evidence=d.zero_evidence.get(zero.node, ""),
            help="use a straight-through estimator: x + (x.round() - x).detach(), or a soft version: torch.tanh(k * x)",
        )


RULE = Rule("zero-grad-op", "FXD201", "an op whose derivative is zero everywhere", __doc__, BAD, GOOD, check)
