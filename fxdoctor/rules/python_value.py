"""A value leaves the graph for Python or numpy, and comes back as a constant."""

from __future__ import annotations

from collections.abc import Iterator

from ..facts import facts
from ..report.model import Finding, Related
from .base import Rule
from .context import Diagnosis, group_name, op_text

BAD = ""
GOOD = ""


def check(d: Diagnosis) -> Iterator[Finding]:
    for cut in d.cuts("python-value"):
        name = op_text(cut.node)
        leaves = facts(cut.node).exit
        back = [n for _, n in cut.returns if (place := d.place(n)) is not None and place != d.place(cut.node)]
        yield RULE.finding(
            d.cut_severity(cut),
            f"{group_name(cut.params)}: the value leaves the graph through {name}"
            if leaves
            else f"{group_name(cut.params)}: {name} copies the numbers and drops their history",
            location=d.place(cut.node),
            node=cut.node.name,
            params=cut.params,
            related=[Related(place, "comes back as a constant") for n in back[:1] if (place := d.place(n)) is not None],
            label="a plain Python number from here on" if leaves else "a new tensor without a grad_fn",
            proof=cut.proof,
            evidence=cut.evidence,
            help="stay in torch: keep the tensor, use torch functions instead of math or numpy"
            if leaves
            else "use torch.stack or torch.cat on the tensors instead",
        )


RULE = Rule("python-value", "FXD105", "a value leaves the graph for Python or numpy", __doc__, BAD, GOOD, check)
