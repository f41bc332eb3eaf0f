"""Two other draws of the inputs: is a dead gradient dead on these inputs only?"""

from __future__ import annotations

import dataclasses
import random
from typing import Any

import torch
from torch.utils import _pytree as pytree

from .capture.guard import Guard
from .capture.trace import Subject, trace

DRAWS = 2


def revived(subject: Subject, guard: Guard, names: set[str]) -> set[str]:
    """Those of `names` that get a gradient on one of two other draws (other inputs, other random numbers).

    A model in eval mode is also tried in training mode. Floats are drawn anew with the same mean and deviation, within the range they had (prices stay positive, probabilities
    between 0 and 1), integers and bools are permuted. A draw on which the model
    raises is tried again with floats permuted too; a draw that still raises says nothing.
    """
    found: set[str] = set()
    if subject.module is not None and not subject.module.training:
        found |= _in_train_mode(subject, guard, names)
    for draw in range(1, DRAWS + 1):
        for redraw in (True, False):
            result = trace(subject, guard, change=_Change(draw, redraw))
            if result.error is None:
                found |= {n for n in names if n in result.states and result.states[n].status == "flows"}
                break
        if found >= names:
            break
    return found


def _in_train_mode(subject: Subject, guard: Guard, names: set[str]) -> set[str]:
    """Those of `names` that learn when the model is in training mode: auxiliary heads are skipped in eval."""
    module = subject.module
    assert module is not None

    def train(inputs: Any) -> Any:
        module.train()  # the guard puts every module's flag back
        return inputs

    result = trace(subject, guard, change=train)
    return {n for n in names if result.error is None and n in result.states and result.states[n].status == "flows"}


@dataclasses.dataclass
class _Change:
    draw: int
    redraw: bool

    def __call__(self, inputs: Any) -> Any:
        torch.manual_seed(1000 + self.draw)
        random.seed(1000 + self.draw)
        generator = torch.Generator().manual_seed(self.draw)
        done: dict[int, torch.Tensor] = {}
        for leaf in pytree.tree_leaves(inputs):
            if isinstance(leaf, torch.Tensor) and id(leaf) not in done and leaf.layout is torch.strided:
                done[id(leaf)] = leaf
                self._fill(leaf, generator)
        return inputs

    def _fill(self, t: torch.Tensor, generator: torch.Generator) -> None:
        """Fills the copy in place, so that tensors passed twice and views of one another stay so."""
        if t.numel() < 2 or t.device.type == "meta":
            return
        with torch.no_grad():
            plain = t.detach()
            if self.redraw and plain.is_floating_point():
                wide = plain.double()
                noise = torch.randn(t.shape, generator=generator, dtype=torch.float64).to(t.device)
                new = (noise * wide.std() + wide.mean()).clamp(float(wide.min()), float(wide.max()))
            else:
                order = torch.randperm(t.numel(), generator=generator).to(t.device)
                new = plain.flatten()[order].reshape(t.shape)
            plain.data.copy_(new)
