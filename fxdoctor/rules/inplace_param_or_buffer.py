"""A buffer is updated with values that carry a gradient history.

## What it does
After forward, looks for buffers that have a `grad_fn` though they had none before, and names the
line that wrote the value: `self.mean.lerp_(h.mean(0), 0.1)`, `self.memory[i] = h`, `self.state =
new_state`. `warning`.

## Why is this bad
The buffer now holds on to the graph of this step. In the next step it takes part in the loss, and
backward goes into the old graph: "Trying to backward through the graph a second time". If nothing
reads it in the loss, the graph and its memory stay alive, and grow with each step. A parameter
updated in this way is no leaf any more.

## Use instead
- `self.mean.lerp_(h.detach().mean(0), 0.1)`, or the whole update under `with torch.no_grad():`.
- A recurrent state kept between steps: `self.state = new_state.detach()`, which is truncated
  backpropagation.
- A value that must learn: an `nn.Parameter`, not a buffer.

## When to ignore
Truncated backpropagation through time: detach the state between steps instead.
`# fxdoctor: ignore[inplace-param-or-buffer]` at the end of the line turns it into `info`.

## Source
Documentation of `torch.Tensor.backward`, argument `retain_graph`: the graph is freed after one
backward.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import fx

from ..facts import facts
from ..report.model import Finding
from .base import Rule
from .context import Diagnosis, op_text

BAD = """\
import torch
from torch import nn


class Centred(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.body = nn.Linear(width, width)
        self.register_buffer("centre", torch.zeros(width))

    def forward(self, x):
        hidden = self.body(x)
        self.centre.lerp_(hidden.mean(dim=0), 0.1)  # HERE
        return hidden - self.centre


def make():
    torch.manual_seed(0)
    return dict(model=Centred(), args=(torch.randn(4, 8),), loss=None)
"""
GOOD = """\
import torch
from torch import nn


class Centred(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.body = nn.Linear(width, width)
        self.register_buffer("centre", torch.zeros(width))

    def forward(self, x):
        hidden = self.body(x)
        self.centre.lerp_(hidden.detach().mean(dim=0), 0.1)
        return hidden - self.centre


def make():
    torch.manual_seed(0)
    return dict(model=Centred(), args=(torch.randn(4, 8),), loss=None)
"""


def check(d: Diagnosis) -> Iterator[Finding]:
    for name, node in d.trace.live_buffers.items():
        yield RULE.finding(
            "warning",
            f"buffer {name} keeps the graph of this step: the next backward goes through it again, and raises or leaks",
            location=d.place(node),
            node=node.name if node is not None else None,
            label=_label(node),
            help="store detached values: buffer.lerp_(x.detach(), 0.1), or self.buffer = x.detach()",
        )


def _label(node: fx.Node | None) -> str:
    if node is None:
        return ""
    if facts(node).writes:
        return f"{op_text(node)} writes values that carry a history"
    return f"the values that {op_text(node)} makes are stored with their history"


RULE = Rule(
    "inplace-param-or-buffer", "FXD406", "a buffer is written with values that carry a graph", __doc__, BAD, GOOD, check
)
