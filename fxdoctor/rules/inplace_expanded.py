"""a write to a tensor whose elements share memory."""

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
    if kind_of_error(d.trace.error) != "inplace-expanded" or node is None:
        return
    yield RULE.finding(
        "error",
        f"{op_text(node)} raises: several elements of the written tensor share one place in memory",
        location=d.place(node),
        node=node.name,
        label="the tensor was made by expand or broadcasting",
        proof=d.write_proofs.get(node),
        evidence=d.write_evidence.get(node, ""),
        help="call .clone() (or .contiguous()) before writing, or write out of place",
    )


RULE = Rule("inplace-expanded", "FXD404", "a write to a tensor whose elements share memory", __doc__, BAD, GOOD, check)
