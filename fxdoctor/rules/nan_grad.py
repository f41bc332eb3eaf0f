"""The first op that turns a finite gradient into NaN or infinity.

## What it does
Goes back from the loss along the gradients of one backward and names the op that received a finite
gradient and gave a non-finite one. If a `where`, a mask or a `nan_to_num` behind it hides bad
values in forward, that place is named too. If the loss itself is not finite, the rule names the op
that made the first NaN (or infinity) of the forward pass from finite inputs. Proof: the graph runs
again with this op's bad gradient entries set to 0.

## Why is this bad
One step with a NaN gradient makes every parameter it reaches NaN. The loss may still look fine:
`torch.where(x > 0, x.sqrt(), 0)` never shows the bad value, but backward multiplies the 0 it sends
back by the infinite slope of `sqrt` at 0, and 0 times infinity is NaN. Gradient clipping does not
help: the norm is NaN too.

## Use instead
- Make the input safe before the op, not the output after it: `torch.where(ok, torch.where(ok, x,
  1.0).sqrt(), 0.0)`.
- An epsilon under the root or in the divisor: `(x.square().sum(-1) + 1e-12).sqrt()`, `a / (b +
  1e-6)`.
- `x.clamp(min=1e-6).log()`; `logsumexp`, `log_softmax` and the `..._with_logits` losses in place of
  their parts.
- `var(...).sqrt()` of equal elements: use `(var + eps).sqrt()`; `std` over a single element is NaN
  already.

## When to ignore
There is no healthy NaN gradient; restrict the loss to the elements that count.
`# fxdoctor: ignore[nan-grad]` at the end of the line turns it into `info`.

## Source
Documentation "Autograd mechanics", sections "Gradients for non-differentiable functions" and
"Division by Zero in Autograd".
"""

from __future__ import annotations

from collections.abc import Iterator

from ..culprits import Culprit, hiding_selector
from ..facts import facts, place_key
from ..report.model import Finding, Related
from .base import Rule
from .context import Diagnosis, group_name, op_text

BAD = """\
import torch
from torch import nn


class Distances(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(8, 4)

    def forward(self, x):
        points = self.embed(x)
        squared = (points[:, None] - points[None]).square().sum(dim=-1)
        apart = squared > 0
        length = squared.sqrt()  # HERE
        return torch.where(apart, length, 0.0)


def make():
    torch.manual_seed(0)
    return dict(model=Distances(), args=(torch.randn(4, 8),), loss=None)
"""
GOOD = """\
import torch
from torch import nn


class Distances(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(8, 4)

    def forward(self, x):
        points = self.embed(x)
        squared = (points[:, None] - points[None]).square().sum(dim=-1)
        apart = squared > 0
        length = torch.where(apart, squared, 1.0).sqrt()
        return torch.where(apart, length, 0.0)


def make():
    torch.manual_seed(0)
    return dict(model=Distances(), args=(torch.randn(4, 8),), loss=None)
"""


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
    kind = "NaN" if any(o.value == "nan" for o in facts(node).outs) else "infinity"
    infinite = any(o.value in ("nan", "inf") for r in facts(node).reads for o in facts(r.node).outs)
    source = "infinite inputs" if infinite else "finite inputs"
    return RULE.finding(
        "warning" if poisoned else "info",
        f"{op_text(node)} makes {kind} from {source}, and the loss is not finite",
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
        f"{name} makes the gradient of {group_name(params)} NaN or infinite: {why}",
        location=d.place(node),
        node=node.name if node is not None else None,
        params=params,
        proof=d.nan_proofs.get(node) if node is not None else None,
        evidence=d.nan_evidence.get(node, "") if node is not None else "",
        related=[Related(place, "hides it in forward; the gradient it sends back is 0, and 0 times infinity is NaN")]
        if place is not None
        else [],
        label="a finite gradient comes in, a non-finite one goes out",
        help="give this op a safe input: torch.where(ok, x, 1.0) before it as well as after it, or add an epsilon",
    )


RULE = Rule("nan-grad", "FXD301", "the first op that turns a finite gradient non-finite", __doc__, BAD, GOOD, check)
