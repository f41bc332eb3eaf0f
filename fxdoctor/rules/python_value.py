"""A value leaves the graph for Python or numpy, and comes back as a constant.

## What it does
Finds parameters without a gradient whose values leave through `item()`, `float()`, `tolist()` or
`numpy()`, or are copied by `torch.tensor(t)`, `torch.as_tensor([...])`, `new_tensor`.
`.detach().cpu().numpy()` counts as one exit. Where the value visibly comes back, the second place
is named too. Proof, where the way back is plain: the graph runs again with the tensor in place of
the number. A number that Python changed on its way cannot be put back; then nothing is proved, and
a note says so.

## Why is this bad
A Python number or an array has no history. What is computed from it is right, and constant for
autograd. On a GPU, `item()` also makes the host wait for the device.

## Use instead
- Keep the tensor: `scale = self.log_scale.exp()`; a tensor of one element works like a number in
  arithmetic.
- `torch.stack([...])` or `torch.cat([...])` in place of `torch.tensor([...])` on tensors.
- torch functions in place of `math` and numpy ones: `torch.exp`, `torch.cos`, `torch.linalg`.
- A numpy or library step that must stay: wrap it in a `torch.autograd.Function` with its own
  backward.

## When to ignore
If the value is meant as a constant, write `detach()` on it and freeze what it came from.
`# fxdoctor: ignore[python-value]` at the end of the line turns it into `info`.

## Source
Documentation of `torch.Tensor.item` ("not differentiable"), `torch.Tensor.numpy` and
`torch.tensor`.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..facts import facts
from ..report.model import Finding, Related
from .base import Rule
from .context import Diagnosis, group_name, op_text

BAD = """\
import torch
from torch import nn
from torch.nn import functional as F


class Contrast(nn.Module):
    def __init__(self):
        super().__init__()
        self.tower = nn.Linear(8, 16)
        self.log_scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, x, y):
        a, b = F.normalize(self.tower(x), dim=-1), F.normalize(self.tower(y), dim=-1)
        scale = self.log_scale.exp().item()  # HERE
        return scale * (a @ b.T)


def make():
    torch.manual_seed(0)
    return dict(model=Contrast(), args=(torch.randn(4, 8), torch.randn(4, 8)), loss=None)
"""
GOOD = """\
import torch
from torch import nn
from torch.nn import functional as F


class Contrast(nn.Module):
    def __init__(self):
        super().__init__()
        self.tower = nn.Linear(8, 16)
        self.log_scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, x, y):
        a, b = F.normalize(self.tower(x), dim=-1), F.normalize(self.tower(y), dim=-1)
        scale = self.log_scale.exp()
        return scale * (a @ b.T)


def make():
    torch.manual_seed(0)
    return dict(model=Contrast(), args=(torch.randn(4, 8), torch.randn(4, 8)), loss=None)
"""


def check(d: Diagnosis) -> Iterator[Finding]:
    for cut in d.cuts("python-value"):
        name = op_text(cut.node)
        leaves = facts(cut.node).exit
        back = [n for _, n in cut.returns if (place := d.place(n)) is not None and place != d.place(cut.node)]
        yield RULE.finding(
            d.cut_severity(cut),
            f"the gradient to {group_name(cut.params)} stops at {name}: the value leaves the graph"
            if leaves
            else f"the gradient to {group_name(cut.params)} stops at {name}: only the numbers are copied",
            location=d.place(cut.node),
            node=cut.node.name,
            params=cut.params,
            related=[Related(place, "comes back as a constant") for n in back[:1] if (place := d.place(n)) is not None],
            label=f"{_plain(name)} from here on" if leaves else "a new tensor without a grad_fn",
            proof=cut.proof,
            evidence=cut.evidence,
            help="stay in torch: keep the tensor, use torch functions instead of math or numpy"
            if leaves
            else "use the tensor itself; torch.stack or torch.cat for several",
        )


def _plain(name: str) -> str:
    """What a value is after an exit."""
    return {"numpy()": "a numpy array", "tolist()": "a Python list"}.get(name, "a plain Python number")


RULE = Rule("python-value", "FXD105", "a value leaves the graph for Python or numpy", __doc__, BAD, GOOD, check)
