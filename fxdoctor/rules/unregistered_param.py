"""A leaf that gets a gradient is not among the model's parameters.

## What it does
After backward, looks for leaves that require grad, got a gradient, and are neither in
`model.parameters()` nor inputs: layers in a plain list, tuple or dict, a tensor with
`requires_grad=True` as an attribute, a Parameter that a conversion turned into a plain tensor, or
one that forward makes anew. It points at the line that creates them.

## Why is this bad
`nn.Module` registers a Parameter or Module only when it is assigned as an attribute; it does not
look into plain containers. What is not registered is not in `model.parameters()`, so the optimizer
never moves it; it is not in `state_dict()`, so a checkpoint loses it; `.to(device)` leaves it
behind. Its gradient only grows, step by step.

## Use instead
- `nn.ModuleList`, `nn.ModuleDict`, `nn.Sequential` for layers; `nn.ParameterList`,
  `nn.ParameterDict` for tensors.
- `self.scale = nn.Parameter(torch.ones(8))` in place of a tensor with `requires_grad=True`.
- Convert first, wrap last: `nn.Parameter(torch.ones(8).double())`, not
  `nn.Parameter(torch.ones(8)).double()`.
- Create parameters in `__init__`, never in forward.

## When to ignore
If another model owns the tensor and trains it, pass its output in as an input.
`# fxdoctor: ignore[unregistered-param]` at the end of the line turns it into `info`.

## Source
Documentation of `torch.nn.Parameter` and `torch.nn.ModuleList`; `torch/nn/modules/module.py`,
`Module.__setattr__`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..capture.stray import Stray
from ..facts import location_of
from ..report.model import Finding, Location
from .base import Rule
from .context import Diagnosis, group_name
from .where import creation_place

BAD = """\
import torch
from torch import nn


class Tower(nn.Module):
    def __init__(self, width=8, depth=3):
        super().__init__()
        self.layers = [nn.Linear(width, width) for _ in range(depth)]  # HERE
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return self.head(x)


def make():
    torch.manual_seed(0)
    return dict(model=Tower(), args=(torch.randn(4, 8),), loss=None)
"""
GOOD = """\
import torch
from torch import nn


class Tower(nn.Module):
    def __init__(self, width=8, depth=3):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return self.head(x)


def make():
    torch.manual_seed(0)
    return dict(model=Tower(), args=(torch.randn(4, 8),), loss=None)
"""


def check(d: Diagnosis) -> Iterator[Finding]:
    groups: dict[tuple[str, int] | str, tuple[Location | None, list[Stray]]] = {}
    for stray in d.trace.strays:
        where = creation_place(d.trace.subject.model, stray.owner) if stray.owner else None
        where = where or _first_use(stray)
        key = (where.file, where.line) if where else stray.owner
        groups.setdefault(key, (where, []))[1].append(stray)
    for where, strays in groups.values():
        first = strays[0]
        names = sorted(s.owner for s in strays if s.owner)
        shown = group_name(names) if names else f"a tensor of shape {first.shape}"
        yield RULE.finding(
            "warning",
            f"not in model.parameters(): {shown}; the gradient comes, but no optimizer and no checkpoint knows of it",
            location=where,
            node=first.node.name if first.node is not None else None,
            label="a plain attribute, not a registered parameter or module",
            help="keep modules in nn.ModuleList or nn.ModuleDict, tensors in nn.Parameter or nn.ParameterList; convert "
            "(.to, .cuda) before wrapping in nn.Parameter",
        )


def _first_use(stray: Stray) -> Location | None:
    """The line that makes it, for a Parameter made in forward; else the first line that reads it."""
    if stray.node is None or stray.node.op.startswith("call"):
        return location_of(stray.node) if stray.node is not None else None
    return next((p for u in stray.node.users if (p := location_of(u)) is not None), None)


RULE = Rule(
    "unregistered-param",
    "FXD108",
    "a leaf that should learn is not among the model's parameters",
    __doc__,
    BAD,
    GOOD,
    check,
)
