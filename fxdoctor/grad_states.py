"""The parameters a caller means, what their `.grad` says, and how to speak of many of them at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import nn

from .capture.backward import norm
from .report.model import ParamState


def named_tensors(model_or_params: Any) -> dict[str, torch.Tensor]:
    """The parameters by name, from a module, a dict, or an iterable of tensors or of (name, tensor) pairs.

    Tensors without a name are called by their number.

    Raises:
        TypeError: it is none of these (the message says what to pass).
        ValueError: it holds no parameter, or a lazy one without a shape yet.
    """
    given = model_or_params
    if isinstance(given, type) and issubclass(given, nn.Module):
        raise TypeError(f"model is the class {given.__name__}, not a module; pass an instance")
    if isinstance(given, torch.Tensor) or not isinstance(given, (nn.Module, Mapping, Iterable)):
        raise TypeError(f"model is {type(given).__name__}; pass the nn.Module, a dict of tensors, or a list")
    if isinstance(given, nn.Module):
        pairs: list[tuple[str, Any]] = list(given.named_parameters())
    elif isinstance(given, Mapping):
        pairs = [(str(name), tensor) for name, tensor in given.items()]
    else:
        pairs = [_pair(i, item) for i, item in enumerate(given)]
    for name, tensor in pairs:
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"parameter {name} is {type(tensor).__name__}, not a tensor; pass model.parameters()")
        if nn.parameter.is_lazy(tensor):
            raise ValueError(f"{name} is not initialised (a lazy module); call the model once first")
    if not pairs:
        raise ValueError("there is no parameter to look at; pass the model that should learn, or its parameters")
    return dict(pairs)


def _pair(number: int, item: Any) -> tuple[str, Any]:
    if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str):
        return item
    return str(number), item


def state_of(name: str, tensor: torch.Tensor, notes: list[str]) -> ParamState:
    """The state by `.grad` as it is now. A gradient without readable values (meta, fake) counts as flowing."""
    state = ParamState("none", shape=tuple(tensor.shape), dtype=str(tensor.dtype).removeprefix("torch."))
    state.module = name.rpartition(".")[0]
    if not tensor.requires_grad:
        state.status = "frozen"
        return state
    grad = tensor.grad if tensor.is_leaf or tensor.retains_grad else None
    if grad is None:
        return state
    try:
        with torch.no_grad():
            state.norm = norm(grad)
    except (RuntimeError, NotImplementedError) as error:
        state.status = "flows"
        notes.append(f"{name}: the values of its gradient cannot be read ({str(error).splitlines()[0]})")
        return state
    state.status = "zero" if state.norm == 0 else "flows" if state.norm < float("inf") else "nan"
    return state


def by_module(chosen: Iterable[str], names: Iterable[str]) -> list[list[str]]:
    """`chosen` split by the largest modules all of whose parameters are chosen, so that one finding covers a module."""
    wanted = list(dict.fromkeys(chosen))
    missing: set[str] = set()
    for name in set(names) - set(wanted):
        parts = name.split(".")
        missing.update(".".join(parts[:depth]) for depth in range(len(parts)))
    groups: dict[str, list[str]] = {}
    for name in wanted:
        parts = name.split(".")
        prefixes = (".".join(parts[:depth]) for depth in range(len(parts)))
        whole = next((p for p in prefixes if p not in missing), None)
        # A module of which only some are chosen is one group of its own.
        groups.setdefault(whole if whole is not None else "." + ".".join(parts[:-1]), []).append(name)
    return list(groups.values())
