"""A write overwrites a tensor that backward still needs.

## What it does
After forward, looks at every tensor that autograd saved for backward and at the writes that came
after. For each write that breaks one, it names both places: the op that saved the tensor, and the
op that overwrote it. All such writes of the model are reported at once, while PyTorch stops at the
first. Proof: the graph runs again with all of them out of place, and backward works. `error`.

## Why is this bad
Backward raises "one of the variables needed for gradient computation has been modified by an
inplace operation". Every tensor counts the writes to it; an op remembers the count when it saves a
tensor, and backward compares. What an op saves differs: `sigmoid`, `tanh`, `exp`, `relu` and
`softmax` keep their result, `mul`, `matmul` and `conv` their inputs, `add` nothing. So `h += x`
behind a linear layer is fine, and behind a sigmoid it raises.

## Use instead
- `h = h + x` in place of `h += x`; `torch.relu(h)` in place of `h.relu_()`; `inplace=False` in
  modules.
- Writing into parts: build the parts and join them with `torch.cat` or `torch.stack`; or
  `torch.where`, `index_put`, `masked_fill`, `scatter` (without the underscore).
- `h = h.clone()` before the first write, when the writes should stay.

## When to ignore
Backward raises; there is nothing to ignore.
`# fxdoctor: ignore[inplace-saved]` at the end of the line turns it into `info`.

## Source
Documentation "Autograd mechanics", sections "Saved tensors" and "In-place correctness checks".
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ..facts import facts, location_of
from ..hazards import kind_of_error, overwrites
from ..report.model import Finding, Related
from .base import Rule
from .context import Diagnosis, op_text

BAD = """\
import torch
from torch import nn


class Gated(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.gate = nn.Linear(width, width)
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        hidden = torch.sigmoid(self.gate(x))
        hidden += x  # HERE
        return self.head(hidden)


def make():
    torch.manual_seed(0)
    return dict(model=Gated(), args=(torch.randn(4, 8),), loss=None)
"""
GOOD = """\
import torch
from torch import nn


class Gated(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.gate = nn.Linear(width, width)
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        hidden = torch.sigmoid(self.gate(x))
        hidden = hidden + x
        return self.head(hidden)


def make():
    torch.manual_seed(0)
    return dict(model=Gated(), args=(torch.randn(4, 8),), loss=None)
"""


def check(d: Diagnosis) -> Iterator[Finding]:
    found = overwrites(d.trace)
    for entry in found:
        writer, first = entry.writer, entry.savers[0]
        saver = op_text(first)
        places = {p: n for n in entry.savers if (p := location_of(n)) is not None}
        more = f" and {len(places) - 1} more" if len(places) > 1 else ""
        related = [Related(p, f"{op_text(n)} keeps this tensor for backward") for p, n in list(places.items())[:3]]
        yield RULE.finding(
            "error",
            f"{op_text(writer)} overwrites a tensor that {saver}{more} needs for backward",
            location=d.place(writer),
            node=writer.name,
            related=related,
            label="this write makes backward raise",
            proof=d.write_proofs.get(writer),
            evidence=d.write_evidence.get(writer, ""),
            help=instead(facts(writer).op),
        )
    if not found and kind_of_error(d.trace.error) == "inplace-saved":
        yield RULE.finding("error", str(d.trace.error).splitlines()[0], help=instead(""))


_FLAGGED = frozenset("relu relu_ dropout leaky_relu elu silu hardswish hardtanh relu6 celu selu".split())
"""Functions with an `inplace` argument."""


def instead(name: str) -> str:
    """The out-of-place form of a write."""
    if name == "__setitem__":
        return "build the new tensor out of place (torch.where, torch.cat, index_put), or write before it is read"
    if name in _FLAGGED:
        return f"pass inplace=False, or call {name[:-1]}()" if name.endswith("_") else "pass inplace=False"
    if name == "embedding":
        return "look the rows up before the weight is used elsewhere, or use weight.clone() there"
    plain = (name.removeprefix("__i") if name.startswith("__i") else name).strip("_")
    signs = {"add": "x = x + y", "sub": "x = x - y", "mul": "x = x * y", "div": "x = x / y", "pow": "x = x ** y"}
    if plain in signs:
        return f"write {signs[plain]} instead of changing x in place"
    if hasattr(torch.Tensor, plain):
        return f"use the out-of-place form: x = x.{plain}(...)"
    return "make a new tensor instead of writing into this one"


RULE = Rule("inplace-saved", "FXD401", "a write overwrites what backward needs", __doc__, BAD, GOOD, check)
