"""A write that autograd cannot see makes a gradient silently wrong."""

from __future__ import annotations

from collections.abc import Iterator

from ..facts import facts
from ..report.model import Finding
from .base import Rule
from .context import Diagnosis, group_name, op_text
from .where import write_after

BAD = ""
GOOD = ""


def check(d: Diagnosis) -> Iterator[Finding]:
    for wrong in d.falsified:
        yield RULE.finding(
            "error",
            f"{op_text(wrong.node)} changes values behind autograd's back: the gradient of {group_name(wrong.params)} is wrong",
            location=(write_after(d.place(wrong.node)) if facts(wrong.node).exit else None) or d.place(wrong.node),
            node=wrong.node.name,
            params=wrong.params,
            label="autograd does not know of this write",
            proof=wrong.proof,
            evidence=wrong.evidence,
            help="compute a new tensor instead of writing through .data, detach(), numpy or no_grad",
        )
    for wrong in d.hidden_hooks:
        luck = "" if wrong.proof else " unless backward happens to reach those first, as it did here"
        yield RULE.finding(
            "error" if wrong.proof else "warning",
            f"this hook writes to its gradient in place, which also changes the gradient of {group_name(wrong.params)}{luck}",
            location=d.place(wrong.node),
            node=wrong.node.name,
            params=wrong.params,
            label="the same gradient tensor is handed to other ops",
            proof=wrong.proof,
            evidence=wrong.evidence,
            help="return a new tensor from the hook: lambda g: g * 0.5",
        )


RULE = Rule("data-write", "FXD409", "a write autograd cannot see makes a gradient wrong", __doc__, BAD, GOOD, check)
