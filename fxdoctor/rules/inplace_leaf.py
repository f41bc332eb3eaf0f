"""A parameter, or another leaf that requires grad, is written in place.

## What it does
Names the write that made PyTorch raise "a leaf Variable that requires grad is being used in an
in-place operation", or the same for a view of a leaf: `self.scale.clamp_(min=0)`, `self.weight[0] =
0`, `self.bias += 1`, an input with `requires_grad=True` that forward normalises in place. `error`.

## Why is this bad
The old value of a leaf is what the optimizer holds and what the gradient refers to. A recorded
write would turn the leaf into the result of an op, and its `.grad` would never be filled. So
PyTorch refuses.

## Use instead
- Part of the loss: compute a new tensor, `scale = self.scale.clamp(min=0.05)`, and use that.
- A constraint on the parameter: apply it after `optimizer.step()`, under `torch.no_grad()`; or make
  it part of the parameter, `F.softplus(self.raw)`, `torch.nn.utils.parametrize`.
- Initialisation: functions of `nn.init`, or `with torch.no_grad(): self.weight[0] = 0` in
  `__init__`.
- Not through `.data`: such a write is not seen by autograd and can make gradients wrong (rule
  `data-write`).

## When to ignore
PyTorch raises; there is nothing to ignore.
`# fxdoctor: ignore[inplace-leaf]` at the end of the line turns it into `info`.

## Source
`torch/csrc/autograd/VariableTypeUtils.h`, `check_inplace`; documentation of `torch.Tensor.is_leaf`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..facts import facts
from ..hazards import kind_of_error
from ..report.model import Finding
from .base import Rule
from .context import Diagnosis, op_text
from .inplace_saved import instead

BAD = """\
import torch
from torch import nn


class Temperature(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 3)
        self.temperature = nn.Parameter(torch.tensor(2.0))

    def forward(self, x):
        temperature = self.temperature.clamp_(min=0.05)  # HERE
        return self.body(x) / temperature


def make():
    torch.manual_seed(0)
    return dict(model=Temperature(), args=(torch.randn(4, 8),), loss=None)
"""
GOOD = """\
import torch
from torch import nn


class Temperature(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 3)
        self.temperature = nn.Parameter(torch.tensor(2.0))

    def forward(self, x):
        temperature = self.temperature.clamp(min=0.05)
        return self.body(x) / temperature


def make():
    torch.manual_seed(0)
    return dict(model=Temperature(), args=(torch.randn(4, 8),), loss=None)
"""


def check(d: Diagnosis) -> Iterator[Finding]:
    node = d.trace.recorder.failed
    if kind_of_error(d.trace.error) != "inplace-leaf" or node is None:
        return
    yield RULE.finding(
        "error",
        f"{op_text(node)} raises: autograd allows no write to a leaf that requires grad",
        location=d.place(node),
        node=node.name,
        label="a leaf that requires grad is written",
        proof=d.write_proofs.get(node),
        evidence=d.write_evidence.get(node, ""),
        help=f"{instead(facts(node).op)}; an update that is no part of the loss belongs between steps, under no_grad",
    )


RULE = Rule("inplace-leaf", "FXD402", "a write to a leaf that requires grad", __doc__, BAD, GOOD, check)
