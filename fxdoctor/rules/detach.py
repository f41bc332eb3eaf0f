"""`detach()` and `.data` on the only path."""

from __future__ import annotations

from collections.abc import Iterator

from ..report.model import Finding
from .base import Rule
from .context import Diagnosis, group_name, op_text

BAD = ""
GOOD = ""


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
