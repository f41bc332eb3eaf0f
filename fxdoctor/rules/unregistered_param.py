"""A leaf that should learn but is not in `model.parameters()`."""

from __future__ import annotations

from collections.abc import Iterator

from ..capture.stray import Stray
from ..facts import location_of
from ..report.model import Finding, Location
from .base import Rule
from .context import Diagnosis
from .where import creation_place

BAD = ""
GOOD = ""


def check(d: Diagnosis) -> Iterator[Finding]:
    groups: dict[tuple[str, int] | str, tuple[Location | None, list[Stray]]] = {}
    for stray in d.trace.strays:
        where = creation_place(d.trace.subject.model, stray.owner) if stray.owner else None
        where = where or _first_use(stray)
        key = (where.file, where.line) if where else stray.owner
        groups.setdefault(key, (where, []))[1].append(stray)
    for where, strays in groups.values():
        first = strays[0]
        names = sorted(s.owner for s in strays if s.owner)
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        yield RULE.finding(
            "warning",
            f"{shown or f'a tensor of shape {first.shape}'} would learn, but is not in model.parameters(): "
            "no optimizer moves it, no checkpoint saves it",
            location=where,
            node=first.node.name if first.node is not None else None,
            label="a plain attribute, not a registered parameter or module",
            help="keep modules in nn.ModuleList or nn.ModuleDict, tensors in nn.Parameter or nn.ParameterList; convert "
            "(.to, .cuda) before wrapping in nn.Parameter",
        )


def _first_use(stray: Stray) -> Location | None:
    """The line that makes it, for a Parameter made in forward; else the first line that reads it."""
    if stray.node is None or stray.node.op.startswith("call"):
        return location_of(stray.node) if stray.node is not None else None
    return next((p for u in stray.node.users if (p := location_of(u)) is not None), None)


RULE = Rule("unregistered-param", "FXD108", "a leaf that should learn is not among the model's parameters", __doc__, BAD, GOOD, check)
