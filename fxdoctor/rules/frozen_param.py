"""Every parameter is frozen, or forward itself freezes one.

## What it does
Reports parameters with `requires_grad=False`. It is a `warning` in two cases: no parameter of the
model requires grad, so nothing can learn (the rule points at the line that freezes them, or else at
the one that creates them); or a parameter required grad before the step and forward switched it
off. A model with some frozen and some learning parameters gets one `info` that lists them.

## Why is this bad
Autograd does not record ops none of whose inputs requires grad. With everything frozen, the loss
has no history and `backward()` raises; inside a larger system it is just a part that never changes.
Freezing inside forward depends on the order of calls, and later steps find another model than the
first one did.

## Use instead
- Freeze by module, not in one sweep: `self.body.requires_grad_(False)` before the head is built.
- Check names when a rule of names freezes: `if name.startswith("body.")`, not `if "b" in name`.
- Freeze once, in `__init__` or in the training script, never in forward.

## When to ignore
A model that is only used for inference need not be analyzed for training.
`# fxdoctor: ignore[frozen-param]` at the end of the line turns it into `info`.

## Source
Documentation "Autograd mechanics", section "Setting requires_grad".
"""

from __future__ import annotations

from collections.abc import Iterator

from ..facts import facts, location_of
from ..report.model import Finding, Location
from .base import Rule
from .context import Diagnosis, count, group_name
from .where import creation_place, freezing_place

BAD = """\
import torch
from torch import nn


class Finetuned(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU())
        self.head = nn.Linear(16, 3)
        for parameter in self.parameters():
            parameter.requires_grad = False  # HERE

    def forward(self, x):
        return self.head(self.body(x))


def make():
    torch.manual_seed(0)
    return dict(model=Finetuned(), args=(torch.randn(4, 8),), loss=None)
"""
GOOD = """\
import torch
from torch import nn


class Finetuned(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU())
        self.head = nn.Linear(16, 3)
        for parameter in self.body.parameters():
            parameter.requires_grad = False

    def forward(self, x):
        return self.head(self.body(x))


def make():
    torch.manual_seed(0)
    return dict(model=Finetuned(), args=(torch.randn(4, 8),), loss=None)
"""


def check(d: Diagnosis) -> Iterator[Finding]:
    states = d.trace.states
    frozen = [n for n, s in states.items() if s.status == "frozen"]
    if not frozen:
        return
    started_live = [n for n in frozen if d.trace.subject.wanted_grad.get(n)]
    model = d.trace.subject.model
    if started_live:
        here = _in_forward(d, started_live)
        yield RULE.finding(
            "warning",
            f"forward sets requires_grad to False on {group_name(started_live)}",
            location=here or creation_place(model, started_live[0]),
            params=started_live,
            label="frozen here" if here else "created here",
            help="move the freezing out of forward, or remove it",
        )
        return
    if len(frozen) == len(states) and not d.trace.strays and d.trace.error is None:
        here = freezing_place(model)
        yield RULE.finding(
            "warning",
            f"all {count(frozen)} have requires_grad=False: nothing can learn",
            location=here or creation_place(model, frozen[0]),
            params=frozen,
            label="frozen here" if here else "created here",
            help="call requires_grad_(True) on the parameters that are to learn",
        )
        return
    yield RULE.finding("info", f"frozen (requires_grad=False): {group_name(frozen)}", params=frozen)


def _in_forward(d: Diagnosis, names: list[str]) -> Location | None:
    """The line of the forward that froze one of the parameters."""
    for node in d.trace.nodes:
        f = facts(node)
        if f.op in ("requires_grad_", "requires_grad.__set__") and f.reads and str(f.reads[0].node.target) in names:
            return location_of(node)
    return None


RULE = Rule(
    "frozen-param", "FXD106", "parameters that are not to learn, or a model in which none is", __doc__, BAD, GOOD, check
)
