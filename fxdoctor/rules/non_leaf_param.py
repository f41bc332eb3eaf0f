"""A parameter replaced by a computed copy, or a computed tensor wrapped in a new `nn.Parameter`."""

from __future__ import annotations

from collections.abc import Iterator

from ..report.model import Finding
from .base import Rule
from .context import Diagnosis, group_name
from .where import creation_place

BAD = ""
GOOD = ""


def check(d: Diagnosis) -> Iterator[Finding]:
    for cut in d.cuts("non-leaf-param"):
        yield RULE.finding(
            d.cut_severity(cut),
            f"the gradient to {group_name(cut.params)} stops where its result is wrapped in a new nn.Parameter",
            location=d.place(cut.node),
            node=cut.node.name,
            params=cut.params,
            label="a fresh leaf without history",
            proof=cut.proof,
            evidence=cut.evidence,
            help="use the computed tensor itself (torch.func.functional_call, or a plain attribute), not a new Parameter",
        )
    subject = d.trace.subject
    computed = [n for n, t in subject.params.items() if not t.is_leaf and d.status(n) == "none"]
    if computed:
        yield RULE.finding(
            "warning",
            f"{group_name(computed)} was computed from other tensors: it is no leaf, its .grad stays None",
            location=creation_place(subject.model, computed[0]),
            params=computed,
            help="create the value first and make it a leaf last: torch.randn(...).mul_(0.1).requires_grad_()",
        )


RULE = Rule("non-leaf-param", "FXD109", "a parameter that is not a leaf, or a computed one wrapped anew", __doc__, BAD, GOOD, check)
