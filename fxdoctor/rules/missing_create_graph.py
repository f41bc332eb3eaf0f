"""`autograd.grad` without `create_graph`: its result is a constant."""

from __future__ import annotations

from collections.abc import Iterator

from ..report.model import Finding
from .base import Rule
from .context import Diagnosis, group_name

BAD = ""
GOOD = ""


def check(d: Diagnosis) -> Iterator[Finding]:
    for cut in d.cuts("missing-create-graph"):
        yield RULE.finding(
            d.cut_severity(cut),
            f"{group_name(cut.params)} reaches the loss only through autograd.grad, whose result has no history",
            location=d.place(cut.node),
            node=cut.node.name,
            params=cut.params,
            label="without create_graph=True the result is a constant",
            proof=cut.proof,
            evidence=cut.evidence,
            help="pass create_graph=True to torch.autograd.grad",
        )


RULE = Rule("missing-create-graph", "FXD111", "a loss built from autograd.grad without create_graph", __doc__, BAD, GOOD, check)
