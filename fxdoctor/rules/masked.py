"""an element that is never selected."""

from __future__ import annotations

from collections.abc import Iterator

from ..report.model import Finding
from .base import Rule
from .context import Diagnosis, group_name, op_text

BAD = ""
GOOD = ""


def check(d: Diagnosis) -> Iterator[Finding]:
    for zero in d.zero_reasons("masked"):
        op = op_text(zero.node)
        yield RULE.finding(
            d.zero_severity(zero),
            f"the gradient of {group_name(zero.params)} is exactly zero: {op} selects nothing of it",
            location=d.place(zero.node),
            node=zero.node.name,
            params=zero.params,
            label="not one element is selected",
            proof=d.zero_proofs.get(zero.node),
            evidence=d.zero_evidence.get(zero.node, ""),
            help="check the mask, the indices or ignore_index: on these inputs no element counts",
        )


RULE = Rule("masked", "FXD204", "an element that is never selected", __doc__, BAD, GOOD, check)
