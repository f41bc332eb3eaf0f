"""an op whose derivative is zero everywhere."""

from __future__ import annotations

from collections.abc import Iterator

from ..report.model import Finding
from .base import Rule
from .context import Diagnosis, group_name, op_text

BAD = ""
GOOD = ""


def check(d: Diagnosis) -> Iterator[Finding]:
    for zero in d.zero_reasons("zero-grad-op"):
        op = op_text(zero.node)
        yield RULE.finding(
            d.zero_severity(zero),
            f"the gradient of {group_name(zero.params)} is exactly zero: {op} has a derivative of zero everywhere",
            location=d.place(zero.node),
            node=zero.node.name,
            params=zero.params,
            label="the gradient is exactly zero behind this",
            proof=d.zero_proofs.get(zero.node),
            evidence=d.zero_evidence.get(zero.node, ""),
            help="use a straight-through estimator: x + (x.round() - x).detach(), or a soft version such as torch.tanh(k * x)",
        )


RULE = Rule("zero-grad-op", "FXD201", "an op whose derivative is zero everywhere", __doc__, BAD, GOOD, check)
