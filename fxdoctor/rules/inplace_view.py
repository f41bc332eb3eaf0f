"""A write to a view that autograd does not allow.

## What it does
Names the write behind errors such as "Output 1 of Split is a view and is being modified inplace": a
write to one of several views that one call made (`chunk`, `split`, `unbind`), to a view made under
`no_grad` or `inference_mode`, or to a view that a custom Function returned. If PyTorch raises only
later, where a view of the written memory is used, both places are named. `error`.

## Why is this bad
A write to a view changes its base and all other views of it, so autograd has to rewrite the history
of all of them. For views that come several at a time, or whose making was not recorded, it cannot,
and raises.

## Use instead
- `gate = gate.sigmoid()` in place of `gate.sigmoid_()`.
- `a, b = (t.clone() for t in h.chunk(2, dim=-1))`, if the pieces must be written to.
- Write first, cut afterwards; or cut by slices, `h[:, :n]` and `h[:, n:]`: a single slice may be
  written to, as long as no op has saved what it overwrites.

## When to ignore
PyTorch raises; there is nothing to ignore.
`# fxdoctor: ignore[inplace-view]` at the end of the line turns it into `info`.

## Source
Documentation "Autograd mechanics", section "In-place operations with autograd"; "Tensor Views".
"""

from __future__ import annotations

from collections.abc import Iterator

from ..hazards import kind_of_error, written_before
from ..report.model import Finding, Related
from .base import Rule
from .context import Diagnosis, op_text

BAD = """\
import torch
from torch import nn


class GatedUnit(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.project = nn.Linear(width, 2 * width)
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        value, gate = self.project(x).chunk(2, dim=-1)
        gate.sigmoid_()  # HERE
        return self.head(value * gate)


def make():
    torch.manual_seed(0)
    return dict(model=GatedUnit(), args=(torch.randn(4, 8),), loss=None)
"""
GOOD = """\
import torch
from torch import nn


class GatedUnit(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.project = nn.Linear(width, 2 * width)
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        value, gate = self.project(x).chunk(2, dim=-1)
        gate = gate.sigmoid()
        return self.head(value * gate)


def make():
    torch.manual_seed(0)
    return dict(model=GatedUnit(), args=(torch.randn(4, 8),), loss=None)
"""


def check(d: Diagnosis) -> Iterator[Finding]:
    failed = d.trace.recorder.failed
    if kind_of_error(d.trace.error) != "inplace-view" or failed is None:
        return
    at_use = "its base or another view of its base has been modified" in str(d.trace.error)
    writer = (written_before(d.trace, failed) if at_use else None) or failed
    use = d.place(failed)
    yield RULE.finding(
        "error",
        f"{op_text(writer)} writes to {_kind(str(d.trace.error))}, which autograd cannot follow",
        location=d.place(writer),
        node=writer.name,
        related=[Related(use, "PyTorch raises here, at the next use")] if writer is not failed and use else [],
        label="this write is the cause",
        proof=d.write_proofs.get(writer),
        evidence=d.write_evidence.get(writer, ""),
        help="write out of place, or clone() the piece before writing to it",
    )


def _kind(error: str) -> str:
    """What PyTorch says of the view that must not be written to."""
    if "no_grad mode" in error or "inference mode" in error:
        return "a view that was made with grad mode off"
    if "multiple views" in error:
        return "one of several views that a single call made"
    if "custom Function" in error:
        return "a view that a custom Function gave"
    return "memory that several views share"


RULE = Rule("inplace-view", "FXD403", "a write to a view that autograd forbids", __doc__, BAD, GOOD, check)
