"""`out=` is used with a tensor that requires grad.

## What it does
Names the call that made PyTorch raise "functions with out=... arguments don't support automatic
differentiation, but one of the arguments requires grad". `error`.

## Why is this bad
`out=` writes the result into a given tensor. Autograd has no derivative for that form, so it
refuses as soon as an input or the given tensor requires grad. Such code often comes from inference,
where it saves an allocation, and works there because grad mode is off.

## Use instead
- Assign the result: `scores = torch.matmul(q, k)`. PyTorch's allocator reuses freed memory, so
  `out=` gains little.
- To fill parts of a larger tensor: `torch.cat` or `torch.stack` of the parts.
- To keep the result in a buffer for later: `self.cache.copy_(scores.detach())`.

## When to ignore
PyTorch raises; there is nothing to ignore.
`# fxdoctor: ignore[inplace-out]` at the end of the line turns it into `info`.

## Source
`torch/csrc/autograd/VariableTypeUtils.h`, `throw_error_out_requires_grad`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..facts import facts
from ..hazards import kind_of_error
from ..report.model import Finding
from .base import Rule
from .context import Diagnosis, op_text

BAD = """\
import torch
from torch import nn


class Scores(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)

    def forward(self, x):
        scores = x.new_empty(len(x), len(x))
        torch.matmul(self.query(x), self.key(x).T, out=scores)  # HERE
        return scores.softmax(dim=-1)


def make():
    torch.manual_seed(0)
    return dict(model=Scores(), args=(torch.randn(4, 8),), loss=None)
"""
GOOD = """\
import torch
from torch import nn


class Scores(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)

    def forward(self, x):
        scores = torch.matmul(self.query(x), self.key(x).T)
        return scores.softmax(dim=-1)


def make():
    torch.manual_seed(0)
    return dict(model=Scores(), args=(torch.randn(4, 8),), loss=None)
"""


def check(d: Diagnosis) -> Iterator[Finding]:
    node = d.trace.recorder.failed
    if kind_of_error(d.trace.error) != "inplace-out" or node is None:
        return
    yield RULE.finding(
        "error",
        f"{op_text(node)} raises: functions with out= take no part in autograd",
        location=d.place(node),
        node=node.name,
        label="out= with an input that requires grad",
        proof=d.write_proofs.get(node),
        evidence=d.write_evidence.get(node, ""),
        help=f"leave out= away and assign the result: y = {facts(node).op}(...)",
    )


RULE = Rule("inplace-out", "FXD407", "out= on what autograd follows", __doc__, BAD, GOOD, check)
