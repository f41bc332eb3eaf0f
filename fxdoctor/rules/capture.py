"""A part of the run could not be examined.

## What it does
Two cases. The model raised in forward, loss or backward for a reason that has nothing to do with
autograd (a wrong shape, a missing key): the rule names the line, and everything after it is
unknown. `error`. Or parameters have no gradient and the recorded run does not show where it stops,
for example inside compiled or foreign code: `warning`. Errors that autograd raises are explained by
the rules for them, FXD103, FXD102 and FXD401 to FXD407.

## Why is this bad
A report without findings says something only about what ran. When the step stops half-way, no
parameter gets a gradient, and the table of parameters shows that, not a fault of the layers.

## Use instead
- Make one training step run with the inputs you analyse: shapes, dtypes, devices, and targets if
  the loss needs them.
- Read the notes at the end of the report: they list what was not captured, and why.
- Ask the live graph: `fxdoctor.diagnose(loss, model)` needs only a loss.

## When to ignore
There is nothing to ignore: without a run there is no verdict.
`# fxdoctor: ignore[capture]` at the end of the line turns it into `info`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..hazards import kind_of_error
from ..report.model import Finding
from .base import Rule
from .context import Diagnosis, group_name

BAD = """\
import torch
from torch import nn


class Broken(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 16)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        hidden = torch.relu(self.body(x))
        return self.head(hidden)  # HERE


def make():
    torch.manual_seed(0)
    return dict(model=Broken(), args=(torch.randn(4, 8),), loss=None)
"""
GOOD = """\
import torch
from torch import nn


class Broken(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 16)
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        hidden = torch.relu(self.body(x))
        return self.head(hidden)


def make():
    torch.manual_seed(0)
    return dict(model=Broken(), args=(torch.randn(4, 8),), loss=None)
"""


def check(d: Diagnosis) -> Iterator[Finding]:
    if names := d.still_dead(d.starved.live):
        yield RULE.finding(
            "warning",
            f"no gradient comes to {group_name(names)}, and the recorded run does not show where it stops",
            params=names,
            help="look at what was not captured (notes), or bisect with fxdoctor.diagnose(loss, model)",
        )
    error = d.trace.error
    if error is None or kind_of_error(error) is not None:
        return
    yield RULE.finding(
        "error",
        f"{d.trace.error_stage} raised {type(error).__name__}: {next(iter(str(error).strip().splitlines()), '')}",
        location=d.trace.error_location,
        node=d.trace.recorder.failed.name if d.trace.recorder.failed is not None else None,
        label="raised here",
        help="what follows this line was not examined; make the step run, then analyze again",
    )


RULE = Rule("capture", "FXD901", "a step that raised, so that a part was not examined", __doc__, BAD, GOOD, check)
