"""A `detach()`, `detach_()` or `.data` that cuts the only way of a gradient.

## What it does
Follows every parameter whose `.grad` is None after backward towards the loss. Where that way leads
through a detached copy, this rule names the call and the parameters in front of it. A parameter
that has another, live way to the loss is not reported. Proof: the recorded graph runs again without
the call, and the parameters get a gradient. `warning`; `info` if they get one on other inputs, or
if the proof fails.

## Why is this bad
The values go on, so the output and the loss are right, and what stands behind the call still
learns. What stands in front of it keeps its initial values: an optimizer skips a parameter whose
`.grad` is None, without a word.

## Use instead
- Leave the call out. For a copy with its own memory, `x.clone()` keeps the history.
- To log, plot or store a value, detach it there, not the tensor that forward goes on with.
- To give a constant to one term of the loss, detach only in that term: `F.mse_loss(student,
  teacher.detach())`.

## When to ignore
If these parameters are not to learn, say so where they are made: `module.requires_grad_(False)`.
`# fxdoctor: ignore[detach]` at the end of the line turns it into `info`.

## Source
Documentation of `torch.Tensor.detach`: the result is cut from the graph and never requires grad.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..report.model import Finding
from .base import Rule
from .context import Diagnosis, group_name, op_text

BAD = """\
import torch
from torch import nn
from torch.nn import functional as F


class Matcher(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        features = F.normalize(self.encoder(x).detach(), dim=-1)  # HERE
        return self.head(features)


def make():
    torch.manual_seed(0)
    return dict(model=Matcher(), args=(torch.randn(4, 8),), loss=None)
"""
GOOD = """\
import torch
from torch import nn
from torch.nn import functional as F


class Matcher(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        features = F.normalize(self.encoder(x), dim=-1)
        return self.head(features)


def make():
    torch.manual_seed(0)
    return dict(model=Matcher(), args=(torch.randn(4, 8),), loss=None)
"""


def check(d: Diagnosis) -> Iterator[Finding]:
    for cut in d.cuts("detach"):
        name = op_text(cut.node)
        yield RULE.finding(
            d.cut_severity(cut),
            f"the gradient to {group_name(cut.params)} stops here",
            location=d.place(cut.node),
            node=cut.node.name,
            params=cut.params,
            label="the data goes on; the gradient does not come back",
            proof=cut.proof,
            evidence=cut.evidence,
            help=f"remove {name}; if it is meant, say so with requires_grad_(False) on these parameters",
        )


RULE = Rule("detach", "FXD101", "detach() or .data cuts the only path of a parameter", __doc__, BAD, GOOD, check)
