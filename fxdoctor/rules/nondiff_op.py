"""An op with no derivative: its result is an index, a comparison or a count."""

from __future__ import annotations

from collections.abc import Iterator

from ..report.model import Finding
from .base import Rule
from .context import Diagnosis, group_name, op_text

BAD = ""
GOOD = ""


def check(d: Diagnosis) -> Iterator[Finding]:
    for cut in d.cuts("nondiff-op"):
        name = op_text(cut.node)
        yield RULE.finding(
            d.cut_severity(cut),
            f"{group_name(cut.params)} reaches the loss only through {name}, which has no derivative",
            location=d.place(cut.node),
            node=cut.node.name,
            params=cut.params,
            label=f"{name} gives no gradient back",
            proof=cut.proof,
            evidence=cut.evidence,
            help="use a soft version (softmax weights, sigmoid, interpolation), a straight-through estimator, "
            "or a score-function loss",
        )


RULE = Rule("nondiff-op", "FXD103", "a parameter reaches the loss only through an op without derivative", __doc__, BAD, GOOD, check)
