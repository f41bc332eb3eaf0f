"""a write to a leaf that requires grad."""

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
    if kind_of_error(d.trace.error) != "inplace-leaf" or node is None:
        return
    yield RULE.finding(
        "error",
        f"{op_text(node)} raises: autograd allows no write to a leaf that requires grad",
        location=d.place(node),
        node=node.name,
        label="a leaf that requires grad is written",
        proof=d.write_proofs.get(node),
        evidence=d.write_evidence.get(node, ""),
        help="write to a copy (x = x - ...), or do the update under torch.no_grad() if it is not part of the loss",
    )


RULE = Rule("inplace-leaf", "FXD402", "a write to a leaf that requires grad", __doc__, BAD, GOOD, check)
