"""A write to a view that autograd forbids."""

from __future__ import annotations

from collections.abc import Iterator

from ..hazards import kind_of_error, written_before
from ..report.model import Finding, Related
from .base import Rule
from .context import Diagnosis, op_text

BAD = ""
GOOD = ""


def check(d: Diagnosis) -> Iterator[Finding]:
    failed = d.trace.recorder.failed
    if kind_of_error(d.trace.error) != "inplace-view" or failed is None:
        return
    at_use = "its base or another view of its base has been modified" in str(d.trace.error)
    writer = (written_before(d.trace, failed) if at_use else None) or failed
    use = d.place(failed)
    yield RULE.finding(
        "error",
        f"{op_text(writer)} writes to memory that several views share, which autograd cannot follow",
        location=d.place(writer),
        node=writer.name,
        related=[Related(use, "PyTorch raises here, at the next use of a view")] if writer is not failed and use else [],
        label="this write is the cause",
        proof=d.write_proofs.get(writer),
        evidence=d.write_evidence.get(writer, ""),
        help="write out of place, or clone() the piece before writing to it",
    )


RULE = Rule("inplace-view", "FXD403", "a write to a view that autograd forbids", __doc__, BAD, GOOD, check)
