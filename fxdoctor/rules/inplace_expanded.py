"""A write to a tensor in which several elements share one place in memory.

## What it does
Names the write that made PyTorch raise "more than one element of the written-to tensor refers to a
single memory location". The tensor was made by `expand`, `expand_as`, `broadcast_to` or
`broadcast_tensors`. `error`.

## Why is this bad
`expand` copies nothing: it sets the stride of the dimension to 0, and all rows are the same memory.
Adding another row to each of them would add all of them to the one row that exists. PyTorch refuses
where it notices; it does not for every overlap that `as_strided` can make.

## Use instead
- Out of place: `queries = queries + offsets`. Broadcasting does the expanding, so the `expand` is
  often not needed.
- `x.expand(n, -1).clone()`, or `x.repeat(n, 1)`, which has own memory for each row.
- For masks: `mask = mask | other`, `scores.masked_fill(mask, value)` on the scores instead of on
  the mask.

## When to ignore
PyTorch raises; there is nothing to ignore.
`# fxdoctor: ignore[inplace-expanded]` at the end of the line turns it into `info`.

## Source
Documentation of `torch.Tensor.expand` (its warning); `aten/src/ATen/MemoryOverlap.h`.
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


class Decoder(nn.Module):
    def __init__(self, width=8, slots=5):
        super().__init__()
        self.slots = nn.Parameter(torch.randn(1, slots, width))
        self.norm = nn.LayerNorm(width)
        self.context = nn.Linear(width, width)

    def forward(self, x):
        queries = self.norm(self.slots).expand(len(x), -1, -1)
        queries += self.context(x).unsqueeze(1)  # HERE
        return queries


def make():
    torch.manual_seed(0)
    return dict(model=Decoder(), args=(torch.randn(4, 8),), loss=None)
"""
GOOD = """\
import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self, width=8, slots=5):
        super().__init__()
        self.slots = nn.Parameter(torch.randn(1, slots, width))
        self.norm = nn.LayerNorm(width)
        self.context = nn.Linear(width, width)

    def forward(self, x):
        queries = self.norm(self.slots).expand(len(x), -1, -1)
        queries = queries + self.context(x).unsqueeze(1)
        return queries


def make():
    torch.manual_seed(0)
    return dict(model=Decoder(), args=(torch.randn(4, 8),), loss=None)
"""


def check(d: Diagnosis) -> Iterator[Finding]:
    node = d.trace.recorder.failed
    if kind_of_error(d.trace.error) != "inplace-expanded" or node is None:
        return
    yield RULE.finding(
        "error",
        f"{op_text(node)} raises: several elements of the written tensor share one place in memory",
        location=d.place(node),
        node=node.name,
        label="the tensor was made by expand or broadcasting",
        proof=d.write_proofs.get(node),
        evidence=d.write_evidence.get(node, ""),
        help=f"{instead(facts(node).op)}; or call clone() before the write",
    )


RULE = Rule("inplace-expanded", "FXD404", "a write to a tensor whose elements share memory", __doc__, BAD, GOOD, check)
