"""A gradient is multiplied by a factor that is exactly zero.

## What it does
Finds parameters with an exactly zero gradient where the step that made it zero is a product (`*`,
`@`, linear, convolution, attention) whose other factor is all zero, and names that factor. If the
factor is a parameter that gets a live gradient itself, the zero is gone after one step: `info`.
This is the usual case of a zero-initialised gate, norm weight or low-rank update. Proof: the graph
runs again with 0.01 in place of the zeros.

## Why is this bad
The derivative of `a * b` by `a` is `b`. If `b` is zero, `a` learns nothing; if both are zero,
neither ever moves. The same goes for a loss term with weight 0.0, a mask of zeros, and a buffer
that was never filled.

## Use instead
- In a product of two learned factors, start one at zero and the other at random.
- Start a gate at a small number, not at zero, when what is behind it must learn from the first step
  on.
- Leave a loss term with weight zero out, and freeze what only it trains.
- Fill buffers before the first step, or check that the checkpoint had them.

## When to ignore
A branch that is switched off on purpose can be frozen, or left out of forward.
`# fxdoctor: ignore[zero-factor]` at the end of the line turns it into `info`.

## Source
PyTorch's `tools/autograd/derivatives.yaml`, entry `mul.Tensor`: each factor's gradient is
multiplied by the other.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import fx

from ..culprits import Explained
from ..report.model import Finding
from .base import Rule
from .context import Diagnosis, group_name, op_text

BAD = """\
import torch
from torch import nn


class LowRank(nn.Module):
    def __init__(self, width=8, rank=2):
        super().__init__()
        self.base = nn.Linear(width, width).requires_grad_(False)
        self.down = nn.Parameter(torch.zeros(width, rank))
        self.up = nn.Parameter(torch.zeros(rank, width))

    def forward(self, x):
        change = x @ self.down
        return self.base(x) + change @ self.up  # HERE


def make():
    torch.manual_seed(0)
    return dict(model=LowRank(), args=(torch.randn(4, 8),), loss=None)
"""
GOOD = """\
import torch
from torch import nn


class LowRank(nn.Module):
    def __init__(self, width=8, rank=2):
        super().__init__()
        self.base = nn.Linear(width, width).requires_grad_(False)
        self.down = nn.Parameter(torch.randn(width, rank) / width**0.5)
        self.up = nn.Parameter(torch.zeros(rank, width))

    def forward(self, x):
        change = x @ self.down
        return self.base(x) + change @ self.up


def make():
    torch.manual_seed(0)
    return dict(model=LowRank(), args=(torch.randn(4, 8),), loss=None)
"""


def check(d: Diagnosis) -> Iterator[Finding]:
    for zero in d.zero_reasons("zero-factor"):
        factors = ", ".join(_name(n) for n in zero.factors[:3])
        heals = " (it has a live gradient itself, so the zero is gone after one step)" if zero.heals else ""
        yield RULE.finding(
            d.zero_severity(zero),
            f"the gradient of {group_name(zero.params)} is exactly zero: it is multiplied by zeros"
            + (f" from {factors}" if factors else "")
            + heals,
            location=d.place(zero.node),
            node=zero.node.name,
            params=zero.params,
            label=f"{op_text(zero.node)} with a factor that is all zero",
            proof=d.zero_proofs.get(zero.node),
            evidence=d.zero_evidence.get(zero.node, ""),
            help=_repair(zero),
        )


def _repair(zero: Explained) -> str:
    if zero.heals:
        return "nothing to do if this initialisation is meant"
    if not zero.factors:
        return "multiply by something that is not zero, or leave this term out"
    if any(str(n.target) in zero.params for n in zero.factors):
        return "initialise only one of the two factors to zero, so that the other one lets the gradient through"
    return f"give {_name(zero.factors[0])} values that are not zero, or leave this term out"


def _name(node: fx.Node) -> str:
    return str(node.target) if node.op == "get_attr" else op_text(node) if node.op.startswith("call") else node.name


RULE = Rule("zero-factor", "FXD203", "a product with a factor that is exactly zero", __doc__, BAD, GOOD, check)
