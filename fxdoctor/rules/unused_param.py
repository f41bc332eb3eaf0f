"""A parameter takes no part in the loss.

## What it does
Reports parameters without a gradient from which no data leads to the loss: forward never reads
them, or reads them and drops the result. The rule points at the line that creates them, the largest
unused module being named once. `info` when other inputs, or the model in training mode, bring them
into use, as in a mixture of experts.

## Why is this bad
They cost memory, weight decay and checkpoint space, and do not learn. Often it is a slip: a layer
that forward forgot to call, a result assigned to a wrong name, an auxiliary output left out of the
loss, a loop that stops one level early. `DistributedDataParallel` waits for every gradient, and
raises in the next step if one never comes, unless it was made with `find_unused_parameters=True`.

## Use instead
- Call the layer, and add what it gives to the output or the loss.
- Remove it, or do not build it: `self.helper = nn.Conv2d(...) if helper else None`.
- A layer kept to load old checkpoints: `requires_grad_(False)`.

## When to ignore
A parameter kept for later can be frozen with `requires_grad_(False)`.
`# fxdoctor: ignore[unused-param]` at the end of the line turns it into `info`.

## Source
Documentation of `torch.nn.parallel.DistributedDataParallel`, argument `find_unused_parameters`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..capture.trace import Trace
from ..facts import location_of
from ..flow import parameter_nodes
from ..report.model import Finding, Location, Related
from .base import Rule
from .context import Diagnosis, group_name
from .where import creation_place

BAD = """\
import torch
from torch import nn


class Segmenter(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU())
        self.main = nn.Conv2d(8, 4, 1)
        self.helper = nn.Conv2d(8, 4, 1)  # HERE

    def forward(self, image):
        features = self.body(image)
        return self.main(features)


def make():
    torch.manual_seed(0)
    return dict(model=Segmenter(), args=(torch.randn(2, 3, 8, 8),), loss=None)
"""
GOOD = """\
import torch
from torch import nn


class Segmenter(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU())
        self.main = nn.Conv2d(8, 4, 1)
        self.helper = nn.Conv2d(8, 4, 1)

    def forward(self, image):
        features = self.body(image)
        return self.main(features), self.helper(features)


def make():
    torch.manual_seed(0)
    return dict(model=Segmenter(), args=(torch.randn(2, 3, 8, 8),), loss=None)
"""


def check(d: Diagnosis) -> Iterator[Finding]:
    if d.trace.error is not None and d.trace.error_stage != "backward":
        return
    groups: dict[tuple[str, int, bool, bool], tuple[Location | None, list[str]]] = {}
    read = parameter_nodes(d.trace)
    everything = list(d.trace.states)
    for name in d.starved.unused:
        where = creation_place(d.trace.subject.model, _whole(name, d.starved.unused, everything))
        key = (where.file if where else "", where.line if where else 0, name in read, name in d.revived)
        groups.setdefault(key, (where, []))[1].append(name)
    for (_, _, was_read, revived), (where, params) in groups.items():
        yield _finding(d, where, params, was_read, revived)


def _finding(d: Diagnosis, where: Location | None, params: list[str], was_read: bool, revived: bool) -> Finding:
    name = group_name(params)
    if revived:
        what = f"the loss does not depend on {name} on these inputs; on others it does"
    elif was_read:
        what = f"forward reads {name}, but nothing that comes of it reaches the loss"
    else:
        what = f"forward never reads {name}"
    return RULE.finding(
        "info" if revived else "warning",
        what,
        location=where,
        params=params,
        related=_last_use(d.trace, params) if was_read else [],
        label="created here, never used for the loss",
        help="use it in forward, remove it, or freeze it with requires_grad_(False)",
    )


def _whole(name: str, unused: list[str], everything: list[str]) -> str:
    """The largest module around `name` of which no parameter is used: its line says more than its parts' lines."""
    whole, parts, dead = name, name.split("."), set(unused)
    for depth in range(len(parts) - 1, 0, -1):
        prefix = ".".join(parts[:depth])
        if any(n.startswith(prefix + ".") and n not in dead for n in everything):
            break
        whole = prefix
    return whole


def _last_use(trace: Trace, params: list[str]) -> list[Related]:
    node = parameter_nodes(trace)[params[0]]
    users = [place for u in node.users if (place := location_of(u)) is not None]
    return [Related(users[0], "the only kind of use: its result is dropped")] if users else []


RULE = Rule("unused-param", "FXD107", "a parameter takes no part in the loss", __doc__, BAD, GOOD, check)
