"""Two other draws of the inputs: is a dead gradient dead on these inputs only?"""

from __future__ import annotations

import dataclasses
import random
from typing import Any

import torch
from torch.utils import _pytree as pytree

from .capture.guard import Guard
from .capture.trace import Subject, Trace, trace

DRAWS = 2


@dataclasses.dataclass
class Draws:
    """What the other draws showed."""

    revived: set[str]
    """Parameters that got a gradient on one of them."""
    ran: bool = False
    """Some draw of the inputs could be run at all."""
    train_mode_raised: bool = False
    """The model is in eval mode, and in training mode it does not run on these inputs."""


def revived(subject: Subject, guard: Guard, names: set[str]) -> Draws:
    """Those of `names` that get a gradient on one of two other draws (other inputs, other random numbers).

    A model in eval mode is also tried in training mode. Floats are drawn anew with the same mean and deviation, within
    the range they had (prices stay positive, probabilities between 0 and 1), integers and bools are permuted. A draw on
    which the model raises is tried again with floats permuted too; a draw that still raises says nothing.
    """
    found = Draws(set())
    if subject.module is not None and not subject.module.training:
        _in_train_mode(subject, guard, names, found)
    for draw in range(1, DRAWS + 1):
        for redraw in (True, False):
            result = trace(subject, guard, change=_Change(draw, redraw))
            if result.error is None:
                found.ran = True
                found.revived |= _alive(result, names)
                break
        if found.revived >= names:
            break
    return found


def _alive(result: Trace, names: set[str]) -> set[str]:
    return {n for n in names if n in result.states and result.states[n].status == "flows"}


def _in_train_mode(subject: Subject, guard: Guard, names: set[str], found: Draws) -> None:
    """Auxiliary heads are skipped in eval mode, and losses are not taken."""
    module = subject.module
    assert module is not None

    def train(inputs: Any) -> Any:
        module.train()  # the guard puts every module's flag back
        return inputs

    result = trace(subject, guard, change=train)
    found.train_mode_raised = result.error is not None
    if result.error is None:
        found.revived |= _alive(result, names)


RATE = 0.01
"""The length of the one step, in parts of a parameter's own norm."""


def healed(subject: Subject, guard: Guard, names: set[str]) -> set[str]:
    """Those of `names` that get a gradient after one small step of plain gradient descent on all the others.

    Zero-initialised gates, tokens and heads stop gradients at the first step only.
    """
    grads: dict[str, torch.Tensor] = {}

    def keep() -> None:
        for name, p in subject.params.items():
            if p.grad is not None and p.grad.layout is torch.strided and bool(torch.isfinite(p.grad).all()):
                grads[name] = p.grad.detach().clone()

    trace(subject, guard, keep=keep)

    def step(inputs: Any) -> Any:
        for name, grad in grads.items():
            p, size = subject.params[name], float(grad.norm())
            if size > 0.0:
                guard.protect(p)
                p.data.sub_(grad * (RATE * (float(p.detach().norm()) or p.numel() ** 0.5) / size))
        return inputs

    return _alive(trace(subject, guard, change=step), names)


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
