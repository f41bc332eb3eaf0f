"""Everything is frozen, or forward freezes a parameter."""

from __future__ import annotations

from collections.abc import Iterator

from ..facts import facts, location_of
from ..report.model import Finding, Location
from .base import Rule
from .context import Diagnosis, count, group_name
from .where import creation_place, freezing_place

BAD = ""
GOOD = ""


def check(d: Diagnosis) -> Iterator[Finding]:
    states = d.trace.states
    frozen = [n for n, s in states.items() if s.status == "frozen"]
    if not frozen:
        return
    started_live = [n for n in frozen if d.trace.subject.wanted_grad.get(n)]
    model = d.trace.subject.model
    if started_live:
        yield RULE.finding(
            "warning",
            f"forward sets requires_grad to False on {group_name(started_live)}",
            location=_in_forward(d, started_live) or creation_place(model, started_live[0]),
            params=started_live,
            help="move the freezing out of forward, or remove it",
        )
        return
    if len(frozen) == len(states) and not d.trace.strays and d.trace.error is None:
        yield RULE.finding(
            "warning",
            f"all {count(frozen)} have requires_grad=False: nothing can learn",
            location=freezing_place(model) or creation_place(model, frozen[0]),
            params=frozen,
            help="call requires_grad_(True) on the parameters that are to learn",
        )
        return
    yield RULE.finding("info", f"{group_name(frozen)} is frozen (requires_grad=False)", params=frozen)


def _in_forward(d: Diagnosis, names: list[str]) -> Location | None:
    """The line of the forward that froze one of the parameters."""
    for node in d.trace.nodes:
        f = facts(node)
        if f.op in ("requires_grad_", "requires_grad.__set__") and f.reads and str(f.reads[0].node.target) in names:
            return location_of(node)
    return None


RULE = Rule("frozen-param", "FXD106", "parameters that are not to learn, or a model in which none is", __doc__, BAD, GOOD, check)
