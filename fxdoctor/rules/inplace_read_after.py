"""A tensor is changed in place under one name and read later under its old name.

## What it does
In a captured graph, finds a write whose result has a name of its own (`branch = F.relu(x,
inplace=True)`) while the old name is read afterwards (`out + x`). Eager PyTorch has one tensor for
both names, so this needs `capture="symbolic"` or `capture="dynamo"`, which tell the names apart. It
names the write and the later read. Always `info`: the program runs, and may do what is meant.

## Why is this bad
The later read gets the changed values. In a pre-activation residual block the skip connection is
meant to carry `x`; after an in-place activation it carries `relu(x)`, and all that is negative is
lost on the way. Nothing raises, and shapes and gradients look right. The model is another one than
the code seems to say, and differs from the same code with `inplace=False`.

## Use instead
- `branch = F.relu(x)`, or `nn.ReLU()` without `inplace=True`, at the start of a branch.
- If the changed value is meant in both places, use one name: `x = F.relu(x)`, then `self.branch(x)
  + x`.

## When to ignore
When published weights were trained with this behaviour: changing it would change the outputs. End
the line with `# fxdoctor: ignore[inplace-read-after]`.

## Source
Documentation of `torch.nn.ReLU`, argument `inplace`.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torch import fx

from ..capture import ops
from ..report.model import Finding, Location, Related
from .base import Rule
from .context import Diagnosis

BAD = """\
import torch
from torch import nn
from torch.nn import functional as F


class PreActivation(nn.Module):
    def __init__(self, channels=4):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.last = nn.Conv2d(channels, channels, 1)

    def forward(self, image):
        skip = self.norm(self.first(image))
        branch = F.relu(skip, inplace=True)  # HERE
        return self.last(branch) + skip


def make():
    torch.manual_seed(0)
    return dict(model=PreActivation(), args=(torch.randn(2, 4, 8, 8),), loss=None)
"""
GOOD = """\
import torch
from torch import nn
from torch.nn import functional as F


class PreActivation(nn.Module):
    def __init__(self, channels=4):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.last = nn.Conv2d(channels, channels, 1)

    def forward(self, image):
        skip = self.norm(self.first(image))
        branch = F.relu(skip)
        return self.last(branch) + skip


def make():
    torch.manual_seed(0)
    return dict(model=PreActivation(), args=(torch.randn(2, 4, 8, 8),), loss=None)
"""

_AUGMENTED = frozenset(f"i{n}" for n in "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split())


@dataclass
class _Late:
    """A write, and the first reader of the written tensor's old name behind it."""

    name: str
    write: Location | None
    read: Location | None


def check(d: Diagnosis) -> Iterator[Finding]:
    captured = getattr(d.trace.subject, "captured", None)
    if captured is None:
        return
    for late in _late_reads(captured):
        yield RULE.finding(
            "info",
            f"{late.name} changes this tensor in place, and its old name is read later: that read gets the new values",
            location=late.write,
            related=[Related(late.read, "reads the old name, gets the new values")] if late.read is not None else [],
            label="written here, under a new name",
            help="leave inplace=True (or the underscore) out if the old values are meant; else read the new name",
        )


def _late_reads(module: fx.GraphModule) -> Iterator[_Late]:
    order = {node: i for i, node in enumerate(module.graph.nodes)}
    for node in module.graph.nodes:
        name = _write(module, node)
        old = node.args[0] if node.args else None
        if name is None or not isinstance(old, fx.Node) or not node.users:
            continue
        later = [u for u in old.users if order[u] > order[node] and not _reads_no_values(u)]
        if later:
            reader = min(later, key=lambda u: order[u])
            yield _Late(name, node.meta.get("location"), reader.meta.get("location"))


def _write(module: fx.GraphModule, node: fx.Node) -> str | None:
    """How the in-place op reads in a sentence; None when the node writes nothing in place and returns it."""
    if node.op == "call_module":
        leaf = module.get_submodule(str(node.target))
        return f"{type(leaf).__name__}(inplace=True)" if getattr(leaf, "inplace", False) is True else None
    if node.op not in ("call_function", "call_method"):
        return None
    name = _name(node)
    if node.kwargs.get("inplace") is True:
        return f"{name}(inplace=True)"
    augmented = node.op == "call_function" and name in _AUGMENTED and node.target is getattr(operator, name)
    in_place = name.endswith("_") and not name.endswith("__") and name != "requires_grad_"
    return f"{name}()" if augmented or in_place else None


def _name(node: fx.Node) -> str:
    target: Any = node.target
    return target if isinstance(target, str) else getattr(target, "__name__", "")


def _reads_no_values(node: fx.Node) -> bool:
    """`x.shape`, `x.size()` and their like."""
    attribute = node.args[1] if node.target is getattr and len(node.args) > 1 else _name(node)
    return attribute in ops.METADATA


RULE = Rule(
    "inplace-read-after", "FXD408", "a tensor is changed in place and read later under its old name",
    __doc__, BAD, GOOD, check,
)  # fmt: skip
