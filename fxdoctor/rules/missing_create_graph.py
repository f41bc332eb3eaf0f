"""A loss is built from `torch.autograd.grad` without `create_graph=True`.

## What it does
Finds parameters without a gradient whose only way to the loss leads through the result of
`torch.autograd.grad`: forces from an energy, a gradient penalty, a meta-learning step, curvature.
Proof: the graph runs again with `create_graph=True`. A call that has `create_graph=True` already is
only `info`: the derivative taken there does not depend on the parameter (the last bias of an energy
drops out of its forces).

## Why is this bad
By default `autograd.grad` computes numbers and keeps no record of how. A loss made of them is
constant for autograd: the parameters inside get nothing from this term. If the loss has other
terms, they still learn from those, and the penalty silently does nothing; if not, `backward()`
raises.

## Use instead
- `torch.autograd.grad(energy, positions, create_graph=True)`.
- `torch.func.grad` and `torch.func.jacrev`, which nest without a flag.
- Ops that take part must have a second derivative: a custom Function may need its own double
  backward.

## When to ignore
If the gradient is only looked at, keep it out of the loss.
`# fxdoctor: ignore[missing-create-graph]` at the end of the line turns it into `info`.

## Source
Documentation of `torch.autograd.grad`, argument `create_graph`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..flow import Cut
from ..report.model import Finding
from .base import Rule
from .context import Diagnosis, group_name

BAD = """\
import torch
from torch import nn


class Forces(nn.Module):
    def __init__(self):
        super().__init__()
        self.energy = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1, bias=False))
        self.unit = nn.Parameter(torch.ones(3))

    def forward(self, positions):
        positions = positions.requires_grad_()
        energy = self.energy(positions).sum()
        (slope,) = torch.autograd.grad(energy, positions)  # HERE
        return -slope * self.unit


def make():
    torch.manual_seed(0)
    return dict(model=Forces(), args=(torch.randn(5, 3),), loss=lambda force: (force - 1).norm())
"""
GOOD = """\
import torch
from torch import nn


class Forces(nn.Module):
    def __init__(self):
        super().__init__()
        self.energy = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1, bias=False))
        self.unit = nn.Parameter(torch.ones(3))

    def forward(self, positions):
        positions = positions.requires_grad_()
        energy = self.energy(positions).sum()
        (slope,) = torch.autograd.grad(energy, positions, create_graph=True)
        return -slope * self.unit


def make():
    torch.manual_seed(0)
    return dict(model=Forces(), args=(torch.randn(5, 3),), loss=lambda force: (force - 1).norm())
"""


def check(d: Diagnosis) -> Iterator[Finding]:
    for cut in d.cuts("missing-create-graph"):
        if cut.node.kwargs.get("create_graph") is True:
            yield _independent(d, cut)
            continue
        yield RULE.finding(
            d.cut_severity(cut),
            f"the gradient to {group_name(cut.params)} stops at autograd.grad, whose result has no history",
            location=d.place(cut.node),
            node=cut.node.name,
            params=cut.params,
            label="without create_graph=True the result is a constant",
            proof=cut.proof,
            evidence=cut.evidence,
            help="pass create_graph=True to torch.autograd.grad",
        )


def _independent(d: Diagnosis, cut: Cut) -> Finding:
    """The derivative has its history; a parameter without a gradient does not occur in it."""
    return RULE.finding(
        "info",
        f"the derivative taken here does not depend on {group_name(cut.params)}",
        location=d.place(cut.node),
        node=cut.node.name,
        params=cut.params,
        label="a bias behind the last layer drops out of a derivative",
        help="none needed; freeze it with requires_grad_(False), or leave it out",
    )


RULE = Rule(
    "missing-create-graph", "FXD111", "a loss built from autograd.grad without create_graph", __doc__, BAD, GOOD, check
)
