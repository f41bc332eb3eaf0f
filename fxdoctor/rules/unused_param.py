"""A parameter that takes no part in the loss."""

from __future__ import annotations

from collections.abc import Iterator

from ..capture.trace import Trace
from ..facts import location_of
from ..flow import parameter_nodes
from ..report.model import Finding, Location, Related
from .base import Rule
from .context import Diagnosis, group_name
from .where import creation_place

BAD = ""
GOOD = ""


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
    if revived:
        what = "takes no part in the loss on these inputs; on others it does"
    elif was_read:
        what = "is read, but nothing that comes of it reaches the loss"
    else:
        what = "takes no part in the forward pass"
    return RULE.finding(
        "info" if revived else "warning",
        f"{group_name(params)} {what}",
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
