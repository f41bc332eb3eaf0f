"""An op with no derivative: its result is an index, a comparison or a count."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..facts import facts
from ..hazards import kind_of_error
from ..report.model import Finding
from .base import Rule
from .context import Diagnosis, group_name, op_text

BAD = ""
GOOD = ""


def check(d: Diagnosis) -> Iterator[Finding]:
    yield from _without_derivative(d)
    for cut in d.cuts("nondiff-op"):
        name = op_text(cut.node)
        yield RULE.finding(
            d.cut_severity(cut),
            f"{group_name(cut.params)} reaches the loss only through {name}, which has no derivative",
            location=d.place(cut.node),
            node=cut.node.name,
            params=cut.params,
            label=f"{name} gives no gradient back",
            proof=cut.proof,
            evidence=cut.evidence,
            help="use a soft version (softmax weights, sigmoid, interpolation), a straight-through estimator, "
            "or a score-function loss",
        )


def _without_derivative(d: Diagnosis) -> Iterator[Finding]:
    """An op that autograd follows but whose derivative nobody wrote: backward raises."""
    if kind_of_error(d.trace.error) != "nondiff-op":
        return
    match = re.search(r"derivative for aten::(\w+)", str(d.trace.error))
    name = match[1] if match else ""
    plain = name.replace("_", "")
    node = next((n for n in d.trace.nodes if (op := facts(n).op.replace("_", "")) and plain.startswith(op)), None)
    yield RULE.finding(
        "error",
        f"backward raises: {name} has no derivative in PyTorch",
        location=d.place(node),
        node=node.name if node is not None else None,
        label=f"autograd cannot go back through {name}",
        help="use an op with a derivative, or detach() its input if no gradient is meant to pass",
    )


RULE = Rule("nondiff-op", "FXD103", "a parameter reaches the loss only through an op without derivative", __doc__, BAD, GOOD, check)
