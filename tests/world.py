"""Everything that a model's step may change, described so that two descriptions can be compared."""

from __future__ import annotations

import collections
import random
import types
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class Same:
    """Equal only to the same object, which it keeps alive."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)

    def __repr__(self) -> str:
        return f"{type(self.value).__name__}@{id(self.value):x}"


def content(t: torch.Tensor) -> tuple[Any, ...]:
    dense = t.detach().to_dense() if t.layout is not torch.strided else t.detach()
    return t.shape, t.stride() if t.layout is torch.strided else None, t.dtype, t.requires_grad, repr(dense.tolist())


def describe(key: str, value: Any, out: dict[str, Any], depth: int = 5) -> None:
    """Adds flat (key, comparable) pairs for a value and what it holds."""
    if isinstance(value, (int, float, bool, str, bytes, type(None), torch.dtype)):
        out[key] = value
        return
    out[key] = Same(value)
    if not depth:
        return
    if isinstance(value, torch.Tensor):
        out[f"{key} type"] = type(value)
        if isinstance(value, (nn.UninitializedParameter, nn.UninitializedBuffer)):
            return
        out[f"{key} content"] = content(value)
        out[f"{key} attributes"] = {k: Same(v) for k, v in vars(value).items()}
        out[f"{key} hooks"] = list(map(Same, (value._backward_hooks or {}).values()))
        out[f"{key} accumulate"] = list(map(Same, (getattr(value, "_post_accumulate_grad_hooks", 0) or {}).values()))
        if value.is_leaf:
            describe(f"{key}.grad", value.grad, out, depth - 1)
    elif isinstance(value, dict):
        out[f"{key} keys"] = list(value)
        for k, v in value.items():
            describe(f"{key}[{k!r}]", v, out, depth - 1)
    elif isinstance(value, (list, tuple, set, collections.deque)):
        out[f"{key} length"] = len(value)
        for i, v in enumerate(value):
            describe(f"{key}[{i}]", v, out, depth - 1)
    elif isinstance(value, torch.Generator):
        out[f"{key} state"] = value.get_state().tolist()
    elif isinstance(value, nn.Module):
        out[f"{key} type"] = type(value)
        describe(key + ".", dict(vars(value)), out, depth)
        out.pop(key + ".")
    elif hasattr(value, "__dict__") and not callable(value) and not isinstance(value, types.ModuleType):
        describe(key + ".", dict(vars(value)), out, depth - 1)
        out.pop(key + ".")


def patched() -> list[Any]:
    """Namespaces in which a recorder might leave a patch."""
    import torch._functorch.apis
    import torch._functorch.eager_transforms
    import torch.utils.checkpoint

    return [
        torch, torch.Tensor, F, nn.Module, nn.Parameter, torch.autograd, torch.autograd.Function, torch.func,
        torch.utils.checkpoint, torch._functorch.apis, torch._functorch.eager_transforms, torch.nn.modules.module,
        torch.inference_mode, torch.nn.parameter.Buffer, torch.random, random, np, np.random,
    ]  # fmt: skip


def world(model: nn.Module, inputs: Any) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, module in model.named_modules():
        describe(name or "model", module, out)
    describe("inputs", inputs, out)
    out["torch rng"] = torch.get_rng_state().tolist()
    out["python rng"] = random.getstate()
    out["numpy rng"] = repr(np.random.get_state())
    out["grad mode"] = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
    out["autocast"] = (
        torch.is_autocast_enabled("cpu"),
        torch.get_autocast_dtype("cpu"),
        torch.is_autocast_cache_enabled(),
    )
    out["modes"] = len(torch.overrides._get_current_function_mode_stack())
    out["anomaly"] = torch.is_anomaly_enabled()
    hooks = ["_global_forward_hooks", "_global_forward_pre_hooks", "_global_backward_hooks"]
    out["global hooks"] = [list(map(Same, getattr(nn.modules.module, h).values())) for h in hooks]
    for space in patched():
        out[f"names of {space.__name__}"] = {k: Same(v) for k, v in vars(space).items() if callable(v)}
    return out


def changes(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    found = []
    for key in {**before, **after}:
        a, b = before.get(key, "(absent)"), after.get(key, "(absent)")
        if key.startswith("names of "):
            found += [f"{key}: {n}" for n in a if a[n] != b.get(n)]  # a late import may add names
        elif a != b:
            found.append(f"{key}: {str(a)[:120]} -> {str(b)[:120]}")
    return found
