"""What each case claims, held against plain PyTorch: how the step ends, and every parameter's state."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest
import torch
from test_cases import CASES, load
from torch.utils import _pytree as pytree


def default_loss(output: Any) -> torch.Tensor | None:
    """Each differentiable output dotted with fixed weights."""
    total = None
    for t in pytree.tree_leaves(output):
        if isinstance(t, torch.Tensor) and t.requires_grad and (t.is_floating_point() or t.is_complex()):
            t = t.abs() if t.is_complex() else t
            part = (t * torch.randn(t.shape, generator=torch.Generator().manual_seed(0)).to(t.dtype)).sum()
            total = part if total is None else total + part
    return total


def state(p: torch.Tensor) -> str:
    if not p.requires_grad:
        return "frozen"
    if p.grad is None:
        return "none"
    grad = p.grad.to_dense()
    if not torch.isfinite(grad).all():
        return "nan"
    return "flows" if grad.any() else "zero"


def step(case: dict[str, Any]) -> tuple[str, str]:
    """("ok" | "forward-error" | "backward-error", the error's text)."""
    try:
        output = case["model"](*case["args"], **(case.get("kwargs") or {}))
    except Exception as error:
        return "forward-error", str(error)
    try:
        loss = (case.get("loss") or default_loss)(output)
        if loss is not None and loss.requires_grad:
            loss.backward()
    except Exception as error:
        return "backward-error", str(error)
    return "ok", ""


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_claim(path: pathlib.Path) -> None:
    module = load(path)
    case, expected = module.make(), module.EXPECT
    ended, text = step(case)
    assert ended == expected["eager"], text
    if ended == "ok":
        assert {n: state(p) for n, p in case["model"].named_parameters()} == expected["params"]
    elif expected["error_match"]:
        assert expected["error_match"] in text
    source = path.read_text()
    for cause in expected["causes"]:
        for mark in [cause["line"], *cause.get("also", [])]:
            assert f"# {mark}" in source
