"""The model changes a tensor that belongs to the caller.

## What it does
Compares the inputs before and after forward, and names the first write to each one: `x -=
x.mean(0)`, `mask[0] = True`, `x.clamp_(0, 1)`, `nn.ReLU(inplace=True)` as the first layer,
`x.unsqueeze_(0)`, which changes the shape. `warning` when a value, shape or dtype really changed;
`info` when the write left everything as it was. (`analyze` runs on copies: your tensors are not
touched.)

## Why is this bad
The caller still holds the tensor. A second call with the same batch, a second model, a loss against
the input, or a cached dataset sees the changed values, and each epoch changes them again. Where the
input is the output of another layer, the write can also break that layer's backward.

## Use instead
- `x = x - x.mean(0)` in place of `x -= x.mean(0)`; `x.unsqueeze(0)` in place of `x.unsqueeze_(0)`.
- `x = x.clone()` at the start, when many writes follow. `x.contiguous()`, `x.to(...)`,
  `x.view(...)` and `x[...]` may give the same memory: they are no copies.
- `inplace=False` for the first activation or dropout.

## When to ignore
A cache that forward is meant to fill: suppress the line.
`# fxdoctor: ignore[inplace-input]` at the end of the line turns it into `info`.

## Source
Documentation "Tensor Views"; of `torch.nn.ReLU`, argument `inplace`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..facts import facts
from ..hazards import input_writes
from ..report.model import Finding
from .base import Rule
from .context import Diagnosis, op_text
from .inplace_saved import instead
from .where import write_after

BAD = """\
import torch
from torch import nn


class Normalised(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))

    def forward(self, x):
        x -= x.mean(dim=0)  # HERE
        return self.body(x)


def make():
    torch.manual_seed(0)
    return dict(model=Normalised(), args=(torch.randn(4, 8),), loss=None)
"""
GOOD = """\
import torch
from torch import nn


class Normalised(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))

    def forward(self, x):
        x = x - x.mean(dim=0)
        return self.body(x)


def make():
    torch.manual_seed(0)
    return dict(model=Normalised(), args=(torch.randn(4, 8),), loss=None)
"""


def check(d: Diagnosis) -> Iterator[Finding]:
    changed = bool(d.trace.changed_inputs)
    for node, write in input_writes(d.trace):
        what = "shape" if write.metadata else "values"
        yield RULE.finding(
            "warning" if changed else "info",
            f"{op_text(node)} changes the {what} of a tensor that belongs to the caller",
            location=d.place(node),
            node=node.name,
            label="this memory is the caller's",
            help=f"{instead(facts(node).op)}; or x = x.clone() first",
        )
    for node in d.trace.recorder.exits.numpy_writes if changed else []:
        source = facts(node).reads[0].node
        if facts(source).op == "input":
            yield RULE.finding(
                "warning",
                "numpy changes the values of a tensor that belongs to the caller",
                location=write_after(d.place(node)) or d.place(node),
                node=node.name,
                label="numpy() shares its memory with the caller's tensor",
                help="work on a copy: x.numpy().copy(), or x = x.clone() first",
            )


RULE = Rule("inplace-input", "FXD405", "the caller's tensor is changed", __doc__, BAD, GOOD, check)
