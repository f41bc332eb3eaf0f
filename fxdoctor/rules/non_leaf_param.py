"""A computed tensor is wrapped in a new `nn.Parameter`, or a parameter is no leaf.

## What it does
Two faults. First, forward computes a weight from parameters and wraps it: `nn.Parameter(self.length
* direction)`. The wrapper is a fresh leaf without history, so the parameters behind it get no
gradient; proof: the graph runs again with the computed tensor itself. Second, a tensor passed as a
parameter was computed from others (`torch.randn(8, requires_grad=True) * 0.1`): it is no leaf.

## Why is this bad
`nn.Parameter(t)` keeps the numbers of `t` and forgets where they came from. The gradient goes to
the wrapper, and no optimizer knows it. Backward fills `.grad` for leaves only, so a computed
tensor's `.grad` stays None, and an optimizer that is given one raises "can't optimize a non-leaf
Tensor".

## Use instead
- Use the computed tensor in a functional call: `F.linear(x, weight, self.bias)`, `F.conv2d(x,
  weight)`.
- To run a module with computed weights: `torch.func.functional_call(module, {"weight": weight},
  x)`.
- To compute a weight from parameters on every call:
  `torch.nn.utils.parametrize.register_parametrization`.
- Make the value first and the leaf last: `(torch.randn(8) * 0.1).requires_grad_()`.

## When to ignore
If the computed value is meant as a new start, compute it under `no_grad`, outside forward.
`# fxdoctor: ignore[non-leaf-param]` at the end of the line turns it into `info`.

## Source
Documentation of `torch.Tensor.is_leaf` and `torch.nn.Parameter`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..report.model import Finding
from .base import Rule
from .context import Diagnosis, group_name
from .where import creation_place

BAD = """\
import torch
from torch import nn
from torch.nn import functional as F


class ScaledLinear(nn.Module):
    def __init__(self, inputs=8, outputs=3):
        super().__init__()
        self.direction = nn.Parameter(torch.randn(outputs, inputs))
        self.length = nn.Parameter(torch.ones(outputs, 1))
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        weight = self.length * F.normalize(self.direction, dim=1)
        weight = nn.Parameter(weight)  # HERE
        return F.linear(x, weight, self.bias)


def make():
    torch.manual_seed(0)
    return dict(model=ScaledLinear(), args=(torch.randn(4, 8),), loss=None)
"""
GOOD = """\
import torch
from torch import nn
from torch.nn import functional as F


class ScaledLinear(nn.Module):
    def __init__(self, inputs=8, outputs=3):
        super().__init__()
        self.direction = nn.Parameter(torch.randn(outputs, inputs))
        self.length = nn.Parameter(torch.ones(outputs, 1))
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        weight = self.length * F.normalize(self.direction, dim=1)
        return F.linear(x, weight, self.bias)


def make():
    torch.manual_seed(0)
    return dict(model=ScaledLinear(), args=(torch.randn(4, 8),), loss=None)
"""


def check(d: Diagnosis) -> Iterator[Finding]:
    for cut in d.cuts("non-leaf-param"):
        yield RULE.finding(
            d.cut_severity(cut),
            f"the gradient to {group_name(cut.params)} stops here: a computed tensor is wrapped in a new nn.Parameter",
            location=d.place(cut.node),
            node=cut.node.name,
            params=cut.params,
            label="a fresh leaf without history",
            proof=cut.proof,
            evidence=cut.evidence,
            help="use the computed tensor itself (torch.func.functional_call, a plain attribute), not a new Parameter",
        )
    subject = d.trace.subject
    computed = [n for n, t in subject.params.items() if not t.is_leaf and d.status(n) == "none"]
    if computed:
        yield RULE.finding(
            "warning",
            f"{group_name(computed)} was computed from other tensors: it is no leaf, its .grad stays None",
            location=creation_place(subject.model, computed[0]),
            params=computed,
            help="create the value first and make it a leaf last: torch.randn(...).mul_(0.1).requires_grad_()",
        )


RULE = Rule(
    "non-leaf-param",
    "FXD109",
    "a parameter that is not a leaf, or a computed one wrapped anew",
    __doc__,
    BAD,
    GOOD,
    check,
)
