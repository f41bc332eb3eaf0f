"""Autograd's gradient against the loss itself: a central difference in float64, on a deep copy of the model."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping
from typing import Any

import torch
from torch.utils import _pytree as pytree

from .capture.guard import deep_copy_inputs, neutral_modes
from .capture.trace import Trace, default_loss

STEP = 1e-5
TOLERANCE = 1e-3
MOST = 64
"""More parameters than this are not checked one by one."""


def disagreement(trace: Trace, names: list[str]) -> dict[str, tuple[float, float]]:
    """name -> (numeric, autograd) directional derivative, for those parameters where the two differ.

    Both are taken in float64 along one fixed random direction per parameter. Empty where the copy cannot be made or
    run in float64: then nothing can be said.
    """
    subject = trace.subject
    if subject.module is None:
        return {}
    rng = torch.get_rng_state()
    try:
        with neutral_modes(), warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
            warnings.simplefilter("ignore")
            model = copy.deepcopy(subject.module).double()
            params = dict(model.named_parameters())
            return _compare(trace, model, params, [n for n in names if n in params][:MOST], rng)
    except (RuntimeError, TypeError, ValueError):
        return {}


def _compare(
    trace: Trace, model: Any, params: Mapping[str, torch.Tensor], names: list[str], rng: torch.Tensor
) -> dict[str, tuple[float, float]]:
    subject = trace.subject
    buffers = {n: b.clone() for n, b in model.named_buffers()}

    def value() -> torch.Tensor:
        torch.set_rng_state(rng)
        for n, b in model.named_buffers():
            b.data.copy_(buffers[n])
        inputs = deep_copy_inputs((subject.args, subject.kwargs), [])
        args, kwargs = pytree.tree_map(_double, inputs)
        output = model(*args, **kwargs)
        loss = subject.loss(output) if subject.loss is not None else default_loss(output)
        assert loss is not None
        return loss

    model.zero_grad(set_to_none=True)
    value().backward()
    generator = torch.Generator().manual_seed(0)
    found: dict[str, tuple[float, float]] = {}
    for name in names:
        p = params[name]
        grad = p.grad
        if grad is None:
            continue
        direction = torch.randn(p.shape, generator=generator, dtype=torch.float64).to(p)
        ends = []
        for sign in (1, -1):
            p.data.add_(direction, alpha=sign * STEP)
            ends.append(float(value().detach()))
            p.data.sub_(direction, alpha=sign * STEP)
        numeric = (ends[0] - ends[1]) / (2 * STEP)
        exact = float((grad.to_dense() * direction).sum())
        if abs(numeric - exact) > TOLERANCE * max(abs(numeric), abs(exact), 1e-8):
            found[name] = (numeric, exact)
    return found


def _double(t: Any) -> Any:
    return (
        t.detach().double().requires_grad_(t.requires_grad)
        if isinstance(t, torch.Tensor) and t.is_floating_point()
        else t
    )
