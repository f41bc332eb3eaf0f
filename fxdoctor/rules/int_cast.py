"""A cast to an integer or bool dtype drops the gradient.

## What it does
Finds parameters without a gradient whose way to the loss leads through `.long()`, `.int()`,
`.bool()`, `.to(torch.int64)`, `.type(...)` and their like. The rule names the cast and the dtype.

## Why is this bad
Only floating-point and complex tensors can require grad. The rounded value changes by jumps, so
there is nothing to follow back, and what computed it never learns. It often happens on the way to
an index: a learned position or duration becomes a row number. Casting back with `.float()` does not
bring the history back.

## Use instead
- To read a table at a learned place, take both neighbouring rows and weight them by the fractional
  part, which keeps its history (see the example); for images, `F.grid_sample`.
- For a learned choice, weight all rows: `weights @ table.weight` with `weights = softmax(...)`.
- For a mask, multiply by `torch.sigmoid(k * x)`, or use `hard + (soft - soft.detach())`.
- To make a number smaller in memory, stay floating: `.half()`, `.bfloat16()`.

## When to ignore
If the position is not to be learned, compute it from values that need no gradient.
`# fxdoctor: ignore[int-cast]` at the end of the line turns it into `info`.

## Source
PyTorch raises "only Tensors of floating point dtype can require gradients" from `requires_grad_`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..facts import facts
from ..report.model import Finding
from .base import Rule
from .context import Diagnosis, group_name, op_text

BAD = """\
import torch
from torch import nn


class LearnedPosition(nn.Module):
    def __init__(self, width=8, places=16):
        super().__init__()
        self.position = nn.Linear(width, 1)
        self.table = nn.Embedding(places, width)

    def forward(self, x):
        place = 15 * torch.sigmoid(self.position(x)).squeeze(-1)
        index = place.long()  # HERE
        return x + self.table(index)


def make():
    torch.manual_seed(0)
    return dict(model=LearnedPosition(), args=(torch.randn(4, 8),), loss=None)
"""
GOOD = """\
import torch
from torch import nn


class LearnedPosition(nn.Module):
    def __init__(self, width=8, places=16):
        super().__init__()
        self.position = nn.Linear(width, 1)
        self.table = nn.Embedding(places, width)

    def forward(self, x):
        place = 15 * torch.sigmoid(self.position(x)).squeeze(-1)
        index = place.long().clamp(max=14)
        share = (place - index).unsqueeze(-1)
        return x + (1 - share) * self.table(index) + share * self.table(index + 1)


def make():
    torch.manual_seed(0)
    return dict(model=LearnedPosition(), args=(torch.randn(4, 8),), loss=None)
"""


def check(d: Diagnosis) -> Iterator[Finding]:
    for cut in d.cuts("int-cast"):
        dtype = str(facts(cut.node).outs[0].dtype)
        yield RULE.finding(
            d.cut_severity(cut),
            f"the gradient to {group_name(cut.params)} stops at the cast to {dtype}",
            location=d.place(cut.node),
            node=cut.node.name,
            params=cut.params,
            label=f"{op_text(cut.node)} gives {dtype}; only floating tensors carry a gradient",
            proof=cut.proof,
            evidence=cut.evidence,
            help="stay in floating point; to index a table, mix two neighbouring rows or use soft weights",
        )


RULE = Rule("int-cast", "FXD104", "a cast to an integer dtype drops the gradient", __doc__, BAD, GOOD, check)
