"""A parameter reaches the loss only through an op that has no derivative.

## What it does
Finds parameters without a gradient whose way to the loss leads through an op that gives indices,
truth values or counts (`argmax`, `topk` indices, `argsort`, comparisons, `bincount`,
`searchsorted`), through a random draw (`torch.normal`, `bernoulli`, `multinomial`,
`Distribution.sample()`), or through a floating-point op that PyTorch does not differentiate
(`histc`, `torch.linspace` with tensor ends). The run decides, not a list of names: an input
required grad, the output does not. An op whose derivative was never written makes backward raise:
`error`.

## Why is this bad
A small change of the parameter does not change an index, or changes it by a jump, so there is no
slope to follow. The parameter keeps its initial value.

## Use instead
- A soft choice: weights from `softmax` or `sigmoid` in place of `argmax` or `>`.
- A hard choice with a soft gradient: `F.gumbel_softmax(logits, hard=True)`, or `soft + (hard -
  soft).detach()`.
- Mixture of experts: choose by `topk`, then multiply by the chosen gate values; those carry the
  gradient.
- A draw: `rsample()` where the distribution has one; else a score-function loss, `-log_prob(action)
  * reward`.

## When to ignore
If the choice is meant to be fixed, freeze the parameters that make it.
`# fxdoctor: ignore[nondiff-op]` at the end of the line turns it into `info`.

## Source
PyTorch's `tools/autograd/derivatives.yaml` (`output_differentiability: [False]`); documentation of
`torch.distributions`, "Score function" and "Pathwise derivative".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from torch import fx

from ..facts import facts
from ..hazards import kind_of_error
from ..report.model import Finding
from .base import Rule
from .context import Diagnosis, group_name, op_text

BAD = """\
import torch
from torch import nn


class Mixture(nn.Module):
    def __init__(self, width=8, experts=3):
        super().__init__()
        self.gate = nn.Linear(width, experts)
        self.experts = nn.ModuleList(nn.Linear(width, width) for _ in range(experts))

    def forward(self, x):
        outputs = torch.stack([expert(x) for expert in self.experts], dim=1)
        choice = self.gate(x).argmax(dim=-1)  # HERE
        return outputs[torch.arange(len(x)), choice]


def make():
    torch.manual_seed(0)
    return dict(model=Mixture(), args=(torch.randn(16, 8),), loss=None)
"""
GOOD = """\
import torch
from torch import nn


class Mixture(nn.Module):
    def __init__(self, width=8, experts=3):
        super().__init__()
        self.gate = nn.Linear(width, experts)
        self.experts = nn.ModuleList(nn.Linear(width, width) for _ in range(experts))

    def forward(self, x):
        outputs = torch.stack([expert(x) for expert in self.experts], dim=1)
        weights = self.gate(x).softmax(dim=-1)
        return (weights.unsqueeze(-1) * outputs).sum(dim=1)


def make():
    torch.manual_seed(0)
    return dict(model=Mixture(), args=(torch.randn(16, 8),), loss=None)
"""


def check(d: Diagnosis) -> Iterator[Finding]:
    yield from _without_derivative(d)
    for cut in d.cuts("nondiff-op"):
        name, verb = _what(cut.node)
        yield RULE.finding(
            d.cut_severity(cut),
            f"the gradient to {group_name(cut.params)} stops at {name}, which {verb} no derivative",
            location=d.place(cut.node),
            node=cut.node.name,
            params=cut.params,
            label="no gradient comes back from here",
            proof=cut.proof,
            evidence=cut.evidence,
            help="use rsample() where the distribution has it, or a score-function loss: -log_prob(action) * reward"
            if facts(cut.node).op in _DRAWS or name == "sample()"
            else "use a soft version (softmax weights, sigmoid, interpolation), a straight-through estimator, "
            "or a score-function loss",
        )


_COMPARISONS = {"gt": ">", "lt": "<", "ge": ">=", "le": "<=", "eq": "==", "ne": "!="}
_DRAWS = frozenset(["sample", "multinomial", "bernoulli", "normal", "poisson", "binomial"])


def _what(node: fx.Node) -> tuple[str, str]:
    """The op as a user names it, and its verb."""
    name = facts(node).op.strip("_")
    if name in _COMPARISONS:
        return f"the comparison {_COMPARISONS[name]}", "has"
    made = node.meta.get("item_of")
    if isinstance(made, fx.Node) and any(o.dtype.is_floating_point for o in facts(made).outs):
        return f"the indices of {op_text(node)}", "have"
    return op_text(node), "has"


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


RULE = Rule(
    "nondiff-op",
    "FXD103",
    "a parameter reaches the loss only through an op without derivative",
    __doc__,
    BAD,
    GOOD,
    check,
)
