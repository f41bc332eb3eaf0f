"""The caller's tensor is changed."""

from __future__ import annotations

from collections.abc import Iterator

from ..hazards import input_writes
from ..report.model import Finding
from .base import Rule
from .context import Diagnosis, op_text

BAD = ""
GOOD = ""


def check(d: Diagnosis) -> Iterator[Finding]:
    changed = bool(d.trace.changed_inputs)
    for node, write in input_writes(d.trace):
        what = "shape" if write.metadata else "values"
        yield RULE.finding(
            "warning" if changed else "info",
            f"{op_text(node)} changes the {what} of a tensor that belongs to the caller",
            location=d.place(node),
            node=node.name,
            label="this memory is the caller's",
            help="work on a copy: x = x - ..., or x = x.clone() first",
        )


RULE = Rule("inplace-input", "FXD405", "the caller's tensor is changed", __doc__, BAD, GOOD, check)
