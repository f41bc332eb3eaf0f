"""Leaves that would learn but are not among the model's parameters, and the attribute that holds them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import fx, nn

from ..facts import facts

if TYPE_CHECKING:
    from .record import Recorder

_OWN = frozenset(["_parameters", "_buffers", "_modules"])


@dataclass
class Stray:
    """One such leaf."""

    owner: str
    """Dotted path of the attribute that holds it, "" when nothing that we can see does."""
    shape: tuple[int, ...]
    node: fx.Node | None
    """The node that first read it, or that made it in forward."""


def stray_leaves(
    module: nn.Module, leaves: dict[int, tuple[int, torch.Tensor]], inputs: list[torch.Tensor], recorder: Recorder
) -> list[Stray]:
    """The leaves under the loss that are neither parameters nor inputs, nor made by the forward on purpose."""
    known = {id(p) for p in module.parameters()} | {id(t) for t in inputs} | set(recorder.names)
    unknown = {key: leaf for key, (_, leaf) in leaves.items() if key not in known}
    if not unknown:
        return []
    held = dict(_held(module))
    found = []
    for key, leaf in unknown.items():
        token = getattr(leaf, "_fxdoctor", None)
        if token is not None and token.session == recorder.session:
            made = token.node
            if facts(made).op != "Parameter" or _has_history(made):
                continue
            found.append(Stray("", tuple(leaf.shape), made))
            continue
        found.append(Stray(held.get(key, ""), tuple(leaf.shape), recorder.sources.get(key)))
    return found


def _has_history(node: fx.Node) -> bool:
    """Whether a Parameter made in forward was computed from something that learns."""
    seen, queue = {node}, [node]
    while queue:
        for read in facts(queue.pop()).reads:
            if read.requires_grad or str(read.node.target) in ("parameter",):
                return True
            if read.node not in seen:
                seen.add(read.node)
                queue.append(read.node)
    return False


def _held(module: nn.Module) -> Iterator[tuple[int, str]]:
    """(id of a leaf, path) for every tensor in an attribute that is not registered; a computed tensor stands for the
    leaves under it."""
    for prefix, owner in module.named_modules():
        for name, value in vars(owner).items():
            if name in _OWN or name.endswith("_hooks"):
                continue
            for path, tensor in _tensors(value, f"{prefix}.{name}".lstrip("."), 4):
                yield id(tensor), path
                for leaf in _leaves_under(tensor):
                    yield leaf, path


def _tensors(value: Any, path: str, depth: int) -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(value, torch.Tensor):
        yield path, value
    elif depth == 0:
        return
    elif isinstance(value, nn.Module):
        for name, p in value.named_parameters():
            yield f"{path}.{name}", p
    elif isinstance(value, (list, tuple)):
        for i, part in enumerate(value):
            yield from _tensors(part, f"{path}.{i}", depth - 1)
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from _tensors(part, f"{path}.{key}", depth - 1)
    elif getattr(value, "__closure__", None):
        for cell in value.__closure__:
            yield from _tensors(_content(cell), path, depth - 1)
    elif hasattr(value, "__dict__") and not isinstance(value, type) and not callable(value):
        for name, part in vars(value).items():
            yield from _tensors(part, f"{path}.{name}", depth - 1)


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # an empty cell
        return None


def _leaves_under(tensor: torch.Tensor) -> Iterator[int]:
    if tensor.grad_fn is None:
        return
    seen, queue = {tensor.grad_fn}, [tensor.grad_fn]
    while queue:
        fn = queue.pop()
        if (variable := getattr(fn, "variable", None)) is not None:
            yield id(variable)
        for below, _ in fn.next_functions:
            if below is not None and below not in seen:
                seen.add(below)
                queue.append(below)
