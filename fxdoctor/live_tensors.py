"""How far the graph of a parameter comes that a loss does not reach, seen from the tensors that are still alive.

A severed forward leaves no trace in the loss's own graph. But where a person still holds `h = encoder(x)`, that tensor
holds the encoder's graph, and the loss's graph may have saved the very same memory without a history.
"""

from __future__ import annotations

import gc
from dataclasses import dataclass, field

import torch

from . import torch_compat
from .autograd_walk import GradGraph, walk


@dataclass
class ChainEnd:
    """The last node of a chain from some parameters that ends before the loss."""

    grad_fn: str
    shape: tuple[int, ...]
    dtype: str
    params: set[int] = field(default_factory=set)
    """`id` of each parameter that it depends on."""
    storage: int | None = None
    saved_by: int | None = None
    """The node of the loss's graph that saved the same memory without history: what is between them dropped it."""


def chain_ends(loss_graph: GradGraph, params: set[int]) -> list[ChainEnd]:
    """For parameters (by `id`) that the loss does not reach: the live tensors that depend on them, the furthest only.

    Only tensors that Python knows can be found. Looks at every object that the garbage collector tracks.
    """
    with torch_compat.plain_tensor_access():
        return _ends(loss_graph, params, [t for t in _live_tensors() if t.grad_fn not in loss_graph.index])


def _ends(loss_graph: GradGraph, params: set[int], tensors: list[torch.Tensor]) -> list[ChainEnd]:
    graph = walk([t.grad_fn for t in tensors])
    starts = {graph.leaves[p]: p for p in params if p in graph.leaves}
    if not starts:
        return []
    ends: dict[int, ChainEnd] = {}
    holder = dict(zip(graph.roots, tensors, strict=True))
    for at, tensor in holder.items():
        if graph.parents[at]:
            continue
        found = {starts[n] for n in graph.below([at]) & starts.keys()}
        if found:
            end = ChainEnd(graph.name(at), tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."), found)
            end.storage = torch_compat.storage_key(tensor)
            ends[at] = end
    _find_savers(loss_graph, list(ends.values()))
    return list(ends.values())


def _live_tensors() -> list[torch.Tensor]:
    """`type()` instead of `isinstance()`: that would run the `__class__` of proxy objects."""
    tensors = [o for o in gc.get_objects() if issubclass(type(o), torch.Tensor)]
    return [t for t in tensors if t.grad_fn is not None]


def _find_savers(graph: GradGraph, ends: list[ChainEnd]) -> None:
    wanted = {e.storage: e for e in ends if e.storage is not None}
    if not wanted:
        return
    for at, fn in enumerate(graph.functions):
        for name in torch_compat.saved_names(fn):
            try:
                raws = torch_compat.raw_saved(fn, name)
            except RuntimeError:  # freed by backward
                continue
            for raw in raws:
                data = torch_compat.saved_data(raw)
                if data is None or data.requires_grad:
                    continue
                key = torch_compat.storage_key(data)
                end = wanted.get(key) if key is not None else None
                if end is not None and end.saved_by is None:
                    end.saved_by = at
