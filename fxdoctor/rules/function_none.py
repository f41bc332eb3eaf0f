"""A custom `autograd.Function` gives no gradient, or zeros, for an input."""

from __future__ import annotations

from collections.abc import Iterator

from torch import fx

from ..facts import facts
from ..report.model import Finding, Related
from .base import Rule
from .context import Diagnosis, group_name
from .where import function_place, input_index

BAD = ""
GOOD = ""


def check(d: Diagnosis) -> Iterator[Finding]:
    for cut in d.cuts("function-none"):
        index = input_index(cut.node, cut.source)
        yield _finding(d, cut.node, index, cut.params, "no gradient", d.cut_severity(cut), cut.proof, cut.evidence)
    for culprit in d.zeros:
        if culprit.kind == "zero" and culprit.step.custom and culprit.node is not None:
            yield _finding(d, culprit.node, None, culprit.params, "zeros", d.severity(culprit.params))


def _finding(
    d: Diagnosis,
    node: fx.Node,
    index: int | None,
    params: list[str],
    what: str,
    severity: str,
    proof: str | None = None,
    evidence: str = "",
) -> Finding:
    name = facts(node).op
    backward = function_place(facts(node).function, index)
    call = d.place(node)
    return RULE.finding(
        severity,
        f"{name}.backward gives {what} for an input that {group_name(params)} needs",
        location=backward or call,
        node=node.name,
        params=params,
        related=[Related(call, f"{name} is applied here")] if backward is not None and call is not None else [],
        label=f"{what} goes back to this input",
        proof=proof,
        evidence=evidence,
        help="return this input's gradient from backward, in the order of forward's arguments",
    )


RULE = Rule("function-none", "FXD110", "a custom Function gives None or zeros for an input", __doc__, BAD, GOOD, check)
