"""A write that autograd does not see makes a gradient silently wrong.

## What it does
Looks for writes through `.data`, a `detach()` alias, a numpy array that shares memory, or under
`no_grad`, to memory that carries a history or that an earlier op saved for backward. A write is
reported only if it changes some gradient: the graph runs again with the write made visible, and the
two gradients differ. Proof: the slope of the loss along a random direction of the parameter,
measured in float64 on a copy, against what autograd says. A hook that writes to the gradient it is
given is reported here too, since other ops share that tensor. `error`.

## Why is this bad
There is no exception. Backward uses the values that are in memory now, or does not know that a
value was scaled, clamped or replaced, and computes the derivative of another function than the one
that ran.

## Use instead
- `rate = rate.clamp(max=1.0)` in place of `rate.data.clamp_(max=1.0)`.
- If the values are to change and the gradient not: `rate + (rate.clamp(max=1.0) - rate).detach()`.
- numpy: work on a copy, `t.detach().numpy().copy()`, and bring the result back as a tensor.
- Parameters: write between steps, `with torch.no_grad(): p.mul_(0.9)`, never during forward.
- Hooks: return a new tensor, `lambda g: g * 0.5`.

## When to ignore
A write that changes no gradient (noise added, a buffer updated) is not reported.
`# fxdoctor: ignore[data-write]` at the end of the line turns it into `info`.

## Source
Documentation of `torch.Tensor.detach` and `torch.Tensor.numpy` (shared memory); "Autograd
mechanics", section "In-place correctness checks". A write through `.data` does not raise the
counter of that check: `t.data.add_(1)` leaves `t._version` as it was.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..facts import facts
from ..report.model import Finding
from .base import Rule
from .context import Diagnosis, group_name, op_text
from .where import write_after

BAD = """\
import torch
from torch import nn


class Bounded(nn.Module):
    def __init__(self):
        super().__init__()
        self.rate = nn.Linear(8, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        rate = torch.exp(self.rate(x))
        rate.data.clamp_(max=1.0)  # HERE
        return self.head(rate)


def make():
    torch.manual_seed(0)
    return dict(model=Bounded(), args=(torch.randn(4, 8),), loss=None)
"""
GOOD = """\
import torch
from torch import nn


class Bounded(nn.Module):
    def __init__(self):
        super().__init__()
        self.rate = nn.Linear(8, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        rate = torch.exp(self.rate(x))
        rate = rate.clamp(max=1.0)
        return self.head(rate)


def make():
    torch.manual_seed(0)
    return dict(model=Bounded(), args=(torch.randn(4, 8),), loss=None)
"""


def check(d: Diagnosis) -> Iterator[Finding]:
    for wrong in d.falsified:
        yield RULE.finding(
            "error",
            f"{op_text(wrong.node)} changes values unseen by autograd: "
            f"the gradient of {group_name(wrong.params)} is wrong",
            location=(write_after(d.place(wrong.node)) if facts(wrong.node).exit else None) or d.place(wrong.node),
            node=wrong.node.name,
            params=wrong.params,
            label="autograd does not know of this write",
            proof=wrong.proof,
            evidence=wrong.evidence,
            help="compute a new tensor instead of writing through .data, detach(), numpy or no_grad",
        )
    for wrong in d.hidden_hooks:
        luck = "" if wrong.proof else " unless backward happens to reach those first, as it did here"
        yield RULE.finding(
            "error" if wrong.proof else "warning",
            f"this hook writes to its gradient in place, which also changes the gradient of "
            f"{group_name(wrong.params)}{luck}",
            location=d.place(wrong.node),
            node=wrong.node.name,
            params=wrong.params,
            label="the same gradient tensor is handed to other ops",
            proof=wrong.proof,
            evidence=wrong.evidence,
            help="return a new tensor from the hook: lambda g: g * 0.5",
        )


RULE = Rule("data-write", "FXD409", "a write autograd cannot see makes a gradient wrong", __doc__, BAD, GOOD, check)
