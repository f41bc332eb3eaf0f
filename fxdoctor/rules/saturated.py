"""An op is flat at all of these inputs, so the gradient behind it is exactly zero.

## What it does
Finds parameters with an exactly zero gradient where the step that made it zero is a clamp, ReLU,
threshold, sigmoid, tanh, softmax, normalisation, `max` or a like op, which has a slope elsewhere
but not here. Proof: the graph runs again with the identity as this op's derivative. A zero that
goes away on other inputs of the same distribution, or after one step of the other parameters, is
`info`: it is bad luck of a batch, not a dead layer.

## Why is this bad
Outside its bounds a clamp is constant, a ReLU of negative values is zero, and a sigmoid of large
values rounds to exactly 1 in float32. Nothing says so: `.grad` is there and all zero. A layer whose
inputs stay in the flat part never comes back by itself, since the gradient that could move it is
the one that is missing.

## Use instead
- Check the dimension: a softmax over a dimension of size 1 is always 1, a normalisation over one
  element always 0.
- Keep bounds away from where training starts; or bound smoothly, `low + (high - low) *
  torch.sigmoid(x)`.
- `F.leaky_relu`, `F.silu` or `F.gelu` in place of ReLU; a smaller learning rate or scale of
  initialisation.
- Losses on logits: `F.binary_cross_entropy_with_logits`, not `sigmoid` followed by `log`.

## When to ignore
Zeros that two other draws of the inputs do not show are `info` already.
`# fxdoctor: ignore[saturated]` at the end of the line turns it into `info`.

## Source
PyTorch's `tools/autograd/derivatives.yaml`: `clamp_backward`, `threshold_backward`,
`sigmoid_backward`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..report.model import Finding
from .base import Rule
from .context import Diagnosis, group_name, op_text

BAD = """\
import torch
from torch import nn


class AttentionPool(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.score = nn.Linear(width, 1)
        self.head = nn.Linear(width, 3)

    def forward(self, tokens):
        scores = self.score(tokens)
        weights = scores.softmax(dim=-1)  # HERE
        return self.head((weights * tokens).sum(dim=1))


def make():
    torch.manual_seed(0)
    return dict(model=AttentionPool(), args=(torch.randn(4, 6, 8),), loss=None)
"""
GOOD = """\
import torch
from torch import nn


class AttentionPool(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.score = nn.Linear(width, 1)
        self.head = nn.Linear(width, 3)

    def forward(self, tokens):
        scores = self.score(tokens)
        weights = scores.softmax(dim=1)
        return self.head((weights * tokens).sum(dim=1))


def make():
    torch.manual_seed(0)
    return dict(model=AttentionPool(), args=(torch.randn(4, 6, 8),), loss=None)
"""


def check(d: Diagnosis) -> Iterator[Finding]:
    for zero in d.zero_reasons("saturated"):
        op = op_text(zero.node)
        yield RULE.finding(
            d.zero_severity(zero),
            f"the gradient of {group_name(zero.params)} is exactly zero: {op} is flat at every one of these inputs",
            location=d.place(zero.node),
            node=zero.node.name,
            params=zero.params,
            label="its derivative is exactly zero here",
            proof=d.zero_proofs.get(zero.node),
            evidence=d.zero_evidence.get(zero.node, ""),
            help=_repair(op),
        )


def _repair(op: str) -> str:
    if "softm" in op:
        return "check dim: a softmax over a single element is always 1; else bring the logits closer together"
    if op.removesuffix("()") in ("layer_norm", "batch_norm", "group_norm", "instance_norm", "rms_norm", "normalize"):
        return "check the dimensions: normalising a single element, or equal ones, always gives the same value"
    if "clamp" in op or "clip" in op or "hardtanh" in op:
        return "widen the bounds, or start inside them; for bounds with a slope, use a scaled sigmoid"
    return "bring the inputs into the range where it has a slope (initialisation, scale), or use a leaky version"


RULE = Rule("saturated", "FXD202", "an op that is flat at these inputs", __doc__, BAD, GOOD, check)
