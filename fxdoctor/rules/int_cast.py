"""A cast to an integer or bool dtype drops the gradient."""

from __future__ import annotations

from collections.abc import Iterator

from ..facts import facts
from ..report.model import Finding
from .base import Rule
from .context import Diagnosis, group_name, op_text

BAD = ""
GOOD = ""


def check(d: Diagnosis) -> Iterator[Finding]:
    for cut in d.cuts("int-cast"):
        dtype = str(facts(cut.node).outs[0].dtype)
        yield RULE.finding(
            d.cut_severity(cut),
            f"the gradient to {group_name(cut.params)} stops at the cast to {dtype}",
            location=d.place(cut.node),
            node=cut.node.name,
            params=cut.params,
            label=f"{op_text(cut.node)} gives {dtype}; only floating tensors carry a gradient",
            proof=cut.proof,
            evidence=cut.evidence,
            help="stay in floating point; to index a table, interpolate between the two neighbouring rows or use soft weights",
        )


RULE = Rule("int-cast", "FXD104", "a cast to an integer dtype drops the gradient", __doc__, BAD, GOOD, check)
