"""out= on what autograd follows."""

from __future__ import annotations

from collections.abc import Iterator

from ..hazards import kind_of_error
from ..report.model import Finding
from .base import Rule
from .context import Diagnosis, op_text

BAD = ""
GOOD = ""


def check(d: Diagnosis) -> Iterator[Finding]:
    node = d.trace.recorder.failed
    if kind_of_error(d.trace.error) != "inplace-out" or node is None:
        return
    yield RULE.finding(
        "error",
        f"{op_text(node)} raises: functions with out= take no part in autograd",
        location=d.place(node),
        node=node.name,
        label="out= with an input that requires grad",
        proof=d.write_proofs.get(node),
        evidence=d.write_evidence.get(node, ""),
        help="assign the result instead: y = torch.mm(a, b)",
    )


RULE = Rule("inplace-out", "FXD407", "out= on what autograd follows", __doc__, BAD, GOOD, check)
