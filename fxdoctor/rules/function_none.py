"""The backward of a custom `autograd.Function` gives None or zeros for an input that parameters need.

## What it does
Finds parameters without a gradient, or with an exactly zero one, whose way to the loss leads
through `SomeFunction.apply(...)` where backward gave nothing for that input. It points at the
`return` of backward and names the call. The repair is code that is not there yet, so nothing can be
proved by a run. `warning`.

## Why is this bad
PyTorch takes what backward returns: None means "no gradient", and no check compares it with
forward. Backward must return one value for each argument of forward, in that order, also for those
that need none. A missing gradient, or one in a neighbour's place, goes unnoticed when the shapes
happen to fit.

## Use instead
- Return this input's gradient. For a factor that was broadcast, sum over the dimensions it lacks.
- Save what the formula needs with `ctx.save_for_backward`, and skip work by
  `ctx.needs_input_grad[i]`.
- Check it once: `torch.autograd.gradcheck(Function.apply, double_inputs)`.
- If forward is made of torch ops only, use them directly: autograd has their derivatives.

## When to ignore
For an input that is meant as a constant, detach it where the Function is applied.
`# fxdoctor: ignore[function-none]` at the end of the line turns it into `info`.

## Source
Documentation of `torch.autograd.Function.backward`; "Extending PyTorch", section "Extending
torch.autograd".
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import fx

from ..facts import facts
from ..report.model import Finding, Related
from .base import Rule
from .context import Diagnosis, group_name
from .where import function_place, input_index

BAD = """\
import torch
from torch import nn


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x, factor)
        return x * factor

    @staticmethod
    def backward(ctx, grad):
        x, factor = ctx.saved_tensors
        return grad * factor, None  # HERE


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)
        self.factor = nn.Parameter(torch.ones(8))

    def forward(self, x):
        return Scale.apply(self.body(x), self.factor)


def make():
    torch.manual_seed(0)
    return dict(model=Scaled(), args=(torch.randn(4, 8),), loss=None)
"""
GOOD = """\
import torch
from torch import nn


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x, factor)
        return x * factor

    @staticmethod
    def backward(ctx, grad):
        x, factor = ctx.saved_tensors
        return grad * factor, (grad * x).sum(dim=0)


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)
        self.factor = nn.Parameter(torch.ones(8))

    def forward(self, x):
        return Scale.apply(self.body(x), self.factor)


def make():
    torch.manual_seed(0)
    return dict(model=Scaled(), args=(torch.randn(4, 8),), loss=None)
"""


def check(d: Diagnosis) -> Iterator[Finding]:
    for cut in d.cuts("function-none"):
        index = input_index(cut.node, cut.source)
        yield _finding(d, cut.node, index, cut.params, "no gradient", d.cut_severity(cut), cut.proof, cut.evidence)
    for culprit in d.zeros:
        if culprit.kind == "zero" and culprit.step.custom and culprit.node is not None:
            yield _finding(d, culprit.node, None, culprit.params, "zeros", d.severity(culprit.params))


def _finding(
    d: Diagnosis,
    node: fx.Node,
    index: int | None,
    params: list[str],
    what: str,
    severity: str,
    proof: str | None = None,
    evidence: str = "",
) -> Finding:
    name = facts(node).op
    backward = function_place(facts(node).function, index)
    call = d.place(node)
    return RULE.finding(
        severity,
        f"{name}.backward gives {what} for the input that comes from {group_name(params)}",
        location=backward or call,
        node=node.name,
        params=params,
        related=[Related(call, f"{name} is applied here")] if backward is not None and call is not None else [],
        label=f"{what} goes back to this input",
        proof=proof,
        evidence=evidence,
        help="return this input's gradient from backward, in the order of forward's arguments",
    )


RULE = Rule("function-none", "FXD110", "a custom Function gives None or zeros for an input", __doc__, BAD, GOOD, check)
