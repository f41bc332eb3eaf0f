"""A product with a factor that is exactly zero."""

from __future__ import annotations

from collections.abc import Iterator

from torch import fx

from ..report.model import Finding
from .base import Rule
from .context import Diagnosis, group_name, op_text

BAD = ""
GOOD = ""


def check(d: Diagnosis) -> Iterator[Finding]:
    for zero in d.zero_reasons("zero-factor"):
        factors = ", ".join(_name(n) for n in zero.factors[:3])
        heals = " (it has a live gradient itself, so the zero is gone after one step)" if zero.heals else ""
        yield RULE.finding(
            d.zero_severity(zero),
            f"the gradient of {group_name(zero.params)} is exactly zero: it is multiplied by zeros"
            + (f" from {factors}" if factors else "") + heals,
            location=d.place(zero.node),
            node=zero.node.name,
            params=zero.params,
            label=f"{op_text(zero.node)} with a factor that is all zero",
            proof=d.zero_proofs.get(zero.node),
            evidence=d.zero_evidence.get(zero.node, ""),
            help="initialise only one of the two factors to zero, so that the other one lets the gradient through",
        )


def _name(node: fx.Node) -> str:
    return str(node.target) if node.op == "get_attr" else node.name


RULE = Rule("zero-factor", "FXD203", "a product with a factor that is exactly zero", __doc__, BAD, GOOD, check)
