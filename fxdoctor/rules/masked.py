"""A mask or an index lets nothing through.

## What it does
Finds parameters with an exactly zero gradient where the step that made it zero selects:
`masked_fill`, `where`, indexing, `gather`, `embedding`, `topk`, dropout, `cross_entropy` with
`ignore_index`. On these inputs, not one element that depends on the parameter was selected. If
other inputs do select some, the finding is `info`; so it is when other inputs cannot be tried,
since a selection depends on the data.

## Why is this bad
What is not selected has a derivative of zero. A mask with the opposite meaning, an index that never
reaches a row, labels that are all ignored, or dropout with probability 1 give a gradient that
exists and is all zero. The model trains on nothing, or a part of it does.

## Use instead
- Check what True means: `masked_fill(mask, v)` overwrites where the mask is True, an attention mask
  of dtype bool keeps where it is True in `F.scaled_dot_product_attention`, and drops where it is
  True in `nn.MultiheadAttention` (`key_padding_mask`).
- Check `ignore_index` and `padding_idx` against the labels and tokens that really occur.
- Count the selected elements in training, and stop when there are none.

## When to ignore
Zeros that two other draws of the inputs do not show are `info` already.
`# fxdoctor: ignore[masked]` at the end of the line turns it into `info`.

## Source
PyTorch's `tools/autograd/derivatives.yaml`, entry `masked_fill.Scalar`: the gradient is
`grad.masked_fill(mask, 0)`.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import fx

from ..facts import facts
from ..report.model import Finding
from .base import Rule
from .context import Diagnosis, group_name, op_text

BAD = """\
import torch
from torch import nn


class Reader(nn.Module):
    def __init__(self, words=20, width=8):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.head = nn.Linear(width, 3)

    def forward(self, tokens, keep):
        hidden = self.embed(tokens)
        hidden = hidden.masked_fill(keep.unsqueeze(-1), 0.0)  # HERE
        return self.head(hidden.sum(dim=1))


def make():
    torch.manual_seed(0)
    tokens, keep = torch.randint(20, (4, 6)), torch.ones(4, 6, dtype=torch.bool)
    return dict(model=Reader(), args=(tokens, keep), loss=None)
"""
GOOD = """\
import torch
from torch import nn


class Reader(nn.Module):
    def __init__(self, words=20, width=8):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.head = nn.Linear(width, 3)

    def forward(self, tokens, keep):
        hidden = self.embed(tokens)
        hidden = hidden.masked_fill(~keep.unsqueeze(-1), 0.0)
        return self.head(hidden.sum(dim=1))


def make():
    torch.manual_seed(0)
    tokens, keep = torch.randint(20, (4, 6)), torch.ones(4, 6, dtype=torch.bool)
    return dict(model=Reader(), args=(tokens, keep), loss=None)
"""


def check(d: Diagnosis) -> Iterator[Finding]:
    for zero in d.zero_reasons("masked"):
        yield RULE.finding(
            d.zero_severity(zero),
            f"the gradient of {group_name(zero.params)} is exactly zero: {_why(zero.node)}",
            location=d.place(zero.node),
            node=zero.node.name,
            params=zero.params,
            label="not one element is selected",
            proof=d.zero_proofs.get(zero.node),
            evidence=d.zero_evidence.get(zero.node, ""),
            help="check the mask, the indices or ignore_index: on these inputs no element counts",
        )


def _why(node: fx.Node) -> str:
    """The op itself selects, or it only joins tensors and an op behind it selects."""
    joins = facts(node).op in ("stack", "cat", "concat", "hstack", "vstack")
    return f"what follows {op_text(node)} selects nothing of it" if joins else f"{op_text(node)} selects nothing of it"


RULE = Rule("masked", "FXD204", "a mask or an index that selects nothing", __doc__, BAD, GOOD, check)
