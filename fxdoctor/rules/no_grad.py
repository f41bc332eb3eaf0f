"""A computation that parameters need for their gradient runs with grad mode off.

## What it does
Finds parameters without a gradient whose way to the loss leads through ops that ran under
`torch.no_grad()`, `torch.inference_mode()` or `torch.set_grad_enabled(False)`, as a `with`, a
decorator or a plain call. It names the place that switched grad mode off, and the first op that
lost its history. Two relatives are reported here too: reentrant checkpointing where no tensor
argument requires grad, and a tensor made under `inference_mode` that training then has to save
(PyTorch raises; `error`). Proof: the same ops run again with grad mode on.

## Why is this bad
With grad mode off nothing is recorded, even if an input requires grad. The values are right, the
loss may fall because other layers learn, and these parameters never move.
`torch.set_grad_enabled(False)` as a plain statement stays off until somebody switches it on again,
also in the caller.

## Use instead
- Put only what is not to learn under `no_grad`, and the trainable layers outside.
- To freeze a module, `module.requires_grad_(False)`: gradients still pass through it to what is in
  front.
- For checkpointing, `checkpoint(fn, x, use_reentrant=False)`.
- For evaluation, use the `with` form around the whole evaluation, never inside `forward`.

## When to ignore
If the part is meant to be frozen, freeze its parameters with `requires_grad_(False)`: then nothing
is starved and nothing is reported.
`# fxdoctor: ignore[no-grad]` at the end of the line turns it into `info`.

## Source
Documentation "Autograd mechanics", section "Grad Modes"; `torch.utils.checkpoint.checkpoint`, the
note on variants.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..facts import facts, location_of
from ..report.model import Finding, Related
from .base import Rule
from .context import Diagnosis, group_name
from .where import no_grad_place

BAD = """\
import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(8, 16), nn.ReLU()).requires_grad_(False)
        self.adapter = nn.Linear(16, 16)
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        with torch.no_grad():  # HERE
            features = self.backbone(x)
            features = features + self.adapter(features)
        return self.head(features)


def make():
    torch.manual_seed(0)
    return dict(model=Classifier(), args=(torch.randn(4, 8),), loss=None)
"""
GOOD = """\
import torch
from torch import nn


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(8, 16), nn.ReLU()).requires_grad_(False)
        self.adapter = nn.Linear(16, 16)
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        with torch.no_grad():
            features = self.backbone(x)
        features = features + self.adapter(features)
        return self.head(features)


def make():
    torch.manual_seed(0)
    return dict(model=Classifier(), args=(torch.randn(4, 8),), loss=None)
"""


def check(d: Diagnosis) -> Iterator[Finding]:
    for cut in d.cuts("no-grad"):
        yield _checkpoint(d, cut) if cut.region is None else _region(d, cut)
    yield from _inference_tensor(d)


def _region(d: Diagnosis, cut) -> Finding:  # type: ignore[no-untyped-def]
    where = no_grad_place(cut.region, cut.node)
    own = location_of(cut.node)
    related = (
        []
        if own is None or where is None or (own.file, own.line) == (where.file, where.line)
        else [Related(own, "the first op that loses its history")]
    )
    return RULE.finding(
        d.cut_severity(cut),
        f"the gradient to {group_name(cut.params)} stops here: this runs with grad mode off",
        location=where,
        node=cut.node.name,
        params=cut.params,
        related=related,
        label="grad mode is off here",
        proof=cut.proof,
        evidence=cut.evidence,
        help="remove no_grad (or inference_mode, set_grad_enabled(False)) from training code; freeze parameters with "
        "requires_grad_(False) instead",
    )


def _checkpoint(d: Diagnosis, cut) -> Finding:  # type: ignore[no-untyped-def]
    return RULE.finding(
        d.cut_severity(cut),
        f"the gradient to {group_name(cut.params)} stops here: no input of this reentrant checkpoint requires grad",
        location=d.place(cut.node),
        node=cut.node.name,
        params=cut.params,
        label="no tensor argument requires grad, so backward never comes here",
        proof=cut.proof,
        evidence=cut.evidence,
        help="pass use_reentrant=False to checkpoint",
    )


def _inference_tensor(d: Diagnosis) -> Iterator[Finding]:
    node, error = d.trace.recorder.failed, d.trace.error
    if node is None or error is None or "nference tensor" not in str(error):
        return
    made = next((r.node for r in facts(node).reads if facts(r.node).inference and r.node.op.startswith("call")), None)
    use = location_of(node)
    where = no_grad_place(facts(made).region, made) if made is not None else use
    yield RULE.finding(
        "error",
        "a tensor made under inference_mode takes part in training; autograd refuses to save it",
        location=where,
        node=node.name,
        related=[Related(use, "PyTorch raises here")] if made is not None and use is not None else [],
        label="tensors made under this cannot be used in training"
        if made is not None
        else f"{facts(node).op} needs a tensor made under inference_mode for its backward",
        help="make the tensor outside inference_mode, or use no_grad for the code that makes it, or clone() it first",
    )


RULE = Rule("no-grad", "FXD102", "an op runs with grad mode off", __doc__, BAD, GOOD, check)
