"""Live paths whose gradients add up to exactly zero."""

from __future__ import annotations

from collections.abc import Iterator

from ..facts import location_of
from ..report.model import Finding, Related
from .base import Rule
from .context import Diagnosis, group_name

BAD = ""
GOOD = ""


def check(d: Diagnosis) -> Iterator[Finding]:
    for zero in d.zero_reasons("cancelled"):
        own = location_of(zero.node)
        others = [p for n in zero.meeting[1:] if (p := location_of(n)) is not None and (own is None or p.line != own.line)]
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
