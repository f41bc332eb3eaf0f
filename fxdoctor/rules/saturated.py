"""an op that is flat at these inputs."""

from __future__ import annotations

from collections.abc import Iterator

from ..report.model import Finding
from .base import Rule
from .context import Diagnosis, group_name, op_text

BAD = ""
GOOD = ""


def check(d: Diagnosis) -> Iterator[Finding]:
    for zero in d.zero_reasons("saturated"):
        op = op_text(zero.node)
        yield RULE.finding(
            d.zero_severity(zero),
            f"the gradient of {group_name(zero.params)} is exactly zero: {op} is flat at every one of these inputs",
            location=d.place(zero.node),
            node=zero.node.name,
            params=zero.params,
            label="its derivative is exactly zero here",
            proof=d.zero_proofs.get(zero.node),
            evidence=d.zero_evidence.get(zero.node, ""),
            help="move the inputs into the range where it has a slope (initialisation, scale, a wider clamp, a leaky version); a softmax over one element is always 1",
        )


RULE = Rule("saturated", "FXD202", "an op that is flat at these inputs", __doc__, BAD, GOOD, check)
