"""The first op that turns a finite gradient non-finite."""

from __future__ import annotations

from collections.abc import Iterator

from ..culprits import Culprit, hiding_selector
from ..facts import facts, place_key
from ..report.model import Finding, Related
from .base import Rule
from .context import Diagnosis, group_name, op_text

BAD = ""
GOOD = ""


def check(d: Diagnosis) -> Iterator[Finding]:
    poisoned = [n for n, s in d.trace.states.items() if s.status == "nan"]
    if d.non_finite is not None:
        yield _forward(d, poisoned)
        return
    groups: dict[object, list[Culprit]] = {}
    for culprit in d.nans:
        key = place_key(culprit.node) if culprit.node is not None else culprit.step.index
        groups.setdefault(key, []).append(culprit)
    for culprits in groups.values():
        yield _backward(d, culprits)


def _forward(d: Diagnosis, poisoned: list[str]) -> Finding:
    node = d.non_finite
    assert node is not None
    kind = "NaN" if any(o.value == "nan" for o in facts(node).outs) else "an infinity"
    return RULE.finding(
        "warning" if poisoned else "info",
        f"{op_text(node)} makes {kind} from finite inputs, and the loss is not finite",
        location=d.place(node),
        node=node.name,
        params=poisoned,
        label=f"the first {kind} of the forward pass",
        help="keep the inputs inside the function's domain: clamp them or add a small epsilon before this op",
    )


def _backward(d: Diagnosis, culprits: list[Culprit]) -> Finding:
    first = culprits[0]
    params = list(dict.fromkeys(p for c in culprits for p in c.params))
    node = first.node
    name = op_text(node) if node is not None else first.step.name
    hidden = node is not None and any(o.value in ("nan", "inf") for o in facts(node).outs)
    selector = hiding_selector(d.trace, first)
    if selector is not None:
        why = f"{op_text(selector)} discards the bad values in forward, but backward still multiplies 0 by infinity"
    elif hidden:
        why = "its own output is not finite, which the rest of the forward hides"
    else:
        why = "its derivative is infinite at these values, and the loss does not show it"
    place = d.place(selector)
    return RULE.finding(
        "warning",
        f"{name} turns a finite gradient into NaN for {group_name(params)}: {why}",
        location=d.place(node),
        node=node.name if node is not None else None,
        params=params,
        proof=d.nan_proofs.get(node) if node is not None else None,
        evidence=d.nan_evidence.get(node, "") if node is not None else "",
        related=[Related(place, "hides it in forward; the gradient it sends back is 0, and 0 times infinity is NaN")]
        if place is not None
        else [],
        label="finite gradient in, NaN out",
        help="make the input safe before this op, for example torch.where(ok, x, one) inside and outside, or add an epsilon",
    )


RULE = Rule("nan-grad", "FXD301", "the first op that turns a finite gradient non-finite", __doc__, BAD, GOOD, check)
