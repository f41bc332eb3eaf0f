"""Live gradients from two paths add up to exactly zero.

## What it does
Finds parameters with an exactly zero gradient although every op on the way has a slope: two or more
paths bring a gradient that is not zero, and the sum of them is. The rule points at the first of
these paths and names the others. A bias that the loss does not depend on at all is only `info`.

## Why is this bad
The loss does not depend on the value, though the code suggests it. The usual form is a
score-function loss with `rsample()`: `log_prob(mean + std * noise)` contains `value - mean`, in
which `mean` cancels. Others are `x - x`, a straight-through term with a missing `detach()`, and a
ratio of a policy to itself.

## Use instead
- Score-function loss: draw with `sample()`, or use `log_prob(action.detach())`.
- Straight-through: `x + (q - x).detach()`, with the detach.
- Policy ratio: `(log_prob - log_prob.detach()).exp()`, or the old policy's value stored as a
  number.

## When to ignore
A bias that cancels between two calls of one layer is `info` already: there is nothing to learn.
`# fxdoctor: ignore[cancelled]` at the end of the line turns it into `info`.

## Source
`torch/distributions/normal.py`, `rsample` and `log_prob`; documentation of `torch.distributions`,
"Score function".
"""

from __future__ import annotations

from collections.abc import Iterator

from ..facts import location_of
from ..report.model import Finding, Related
from .base import Rule
from .context import Diagnosis, group_name

BAD = """\
import torch
from torch import nn
from torch.distributions import Normal


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 16), nn.Tanh())
        self.mean = nn.Linear(16, 2)

    def forward(self, state, advantage):
        policy = Normal(self.mean(self.body(state)), 0.5)
        action = policy.rsample()  # HERE
        return -(advantage * policy.log_prob(action)).mean()


def make():
    torch.manual_seed(0)
    return dict(model=Policy(), args=(torch.randn(4, 8), torch.randn(4, 1)), loss=None)
"""
GOOD = """\
import torch
from torch import nn
from torch.distributions import Normal


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 16), nn.Tanh())
        self.mean = nn.Linear(16, 2)

    def forward(self, state, advantage):
        policy = Normal(self.mean(self.body(state)), 0.5)
        action = policy.sample()
        return -(advantage * policy.log_prob(action)).mean()


def make():
    torch.manual_seed(0)
    return dict(model=Policy(), args=(torch.randn(4, 8), torch.randn(4, 1)), loss=None)
"""


def check(d: Diagnosis) -> Iterator[Finding]:
    for zero in d.zero_reasons("cancelled"):
        own = location_of(zero.node)
        places = [p for n in zero.meeting[1:] if (p := location_of(n)) is not None]
        others = [p for p in places if own is None or p.line != own.line]
        yield RULE.finding(
            d.zero_severity(zero),
            f"the gradient of {group_name(zero.params)} is exactly zero: live paths cancel",
            location=own,
            node=zero.node.name,
            params=zero.params,
            related=[Related(p, "the path that cancels it") for p in others[:2]],
            label="one of the paths whose gradients add up to zero",
            help="detach one of the paths (log_prob(sample.detach()) for a score-function loss), or drop the term",
        )


RULE = Rule("cancelled", "FXD205", "live paths whose gradients add up to exactly zero", __doc__, BAD, GOOD, check)
