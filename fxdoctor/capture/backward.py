"""One backward with the gradient's state at every step, as a graph of plain numbers.

Before it: the grad_fn graph is walked from the loss (iteratively), each grad_fn is matched to the node that made it
by its sequence number, and every saved tensor is touched, which raises autograd's version error for each one that
was overwritten. Then each grad_fn reports, through a hook, the norm of what it passed back along each of its edges.
"""

from __future__ import annotations

import bisect
import math
import re
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from .. import torch_compat
from ..facts import GradEdge, facts
from .guard import Guard


@dataclass(slots=True)
class GradNode:
    """A grad_fn. A norm is None where no gradient came, 0.0 for all zero, NaN for one that is not finite."""

    index: int
    name: str
    seq: int | None
    node: fx.Node | None
    """The recorded node whose forward made it; None for leaves."""
    leaf: int | None = None
    """`id` of the leaf tensor for AccumulateGrad."""
    next: list[tuple[int, int] | None] = field(default_factory=list)
    """(index of the GradNode, which of its outputs) for each input of the forward op; None: it takes no gradient."""
    sent: list[float | None] = field(default_factory=list)
    """The norm passed back along each of `next`."""
    received: float | None = None
    """The norm of the gradient that arrived (all outputs together)."""
    shared: list[int] = field(default_factory=list)
    """Edges along which the very same tensor was sent as along another edge."""
    ran: bool = False
    custom: bool = False


@dataclass
class Hazard:
    """A saved tensor that was overwritten: backward will raise."""

    saver: GradNode
    attribute: str
    message: str
    storage: int | None = None


@dataclass
class Backward:
    """The grad_fn graph under the loss, with what flowed."""

    nodes: list[GradNode] = field(default_factory=list)
    reached: set[GradEdge] = field(default_factory=set)
    leaves: dict[int, tuple[int, torch.Tensor]] = field(default_factory=dict)
    """`id(leaf)` to (index of its AccumulateGrad node, the leaf)."""
    parents: list[list[tuple[int, int]]] = field(default_factory=list)
    """For each node: (index of a node that sends to it, which edge of that node)."""
    hazards: list[Hazard] = field(default_factory=list)
    saved: dict[int, list[tuple[int, str]]] = field(default_factory=dict)
    """Storage address to (index of the saver, attribute), only filled where a hidden write makes it matter."""
    error: Exception | None = None
    detailed: bool = False
    """Norms were also taken of what was sent to leaves, and of sums."""


def walk(
    loss: torch.Tensor, nodes: list[fx.Node], *, check_saved: bool, track_saved: bool
) -> tuple[Backward, list[Any]]:
    """The graph under `loss` and its grad_fns, in the same order. Iterative: 100,000 nodes are no problem."""
    result = Backward()
    functions: list[Any] = []
    ordered = [n for n in nodes if "facts" in n.meta]
    ends = [facts(n).last_seq for n in ordered]
    index: dict[Any, int] = {}
    root = loss.grad_fn
    stack: list[Any] = []

    def enter(fn: Any) -> int:
        found = index.get(fn)
        if found is None:
            found = index[fn] = len(functions)
            seq = torch_compat.sequence_nr(fn)
            entry = GradNode(found, fn.name(), seq, None)
            variable = getattr(fn, "variable", None) if seq is None else None
            if variable is not None:
                entry.leaf = id(variable)
                result.leaves[id(variable)] = (found, variable)
            elif seq is not None:
                at = bisect.bisect_left(ends, seq)
                entry.node = ordered[at] if at < len(ordered) else None
            functions.append(fn)
            result.nodes.append(entry)
            result.parents.append([])
            stack.append(fn)
        return found

    if root is None:
        return result, functions
    enter(root)
    result.reached.add((torch_compat.sequence_nr(root) or 0, loss.output_nr))
    while stack:
        fn = stack.pop()
        entry = result.nodes[index[fn]]
        entry.custom = hasattr(fn, "_forward_cls")
        for position, (below, output) in enumerate(fn.next_functions):
            if below is None:
                entry.next.append(None)
                continue
            at = enter(below)
            entry.next.append((at, output))
            result.parents[at].append((entry.index, position))
            if (seq := result.nodes[at].seq) is not None:
                result.reached.add((seq, output))
    if check_saved or track_saved:
        for entry, fn in zip(result.nodes, functions, strict=True):
            if entry.node is None or not facts(entry.node).saved_hooks:
                _touch_saved(entry, fn, result, track_saved)
    return result, functions


_saved_names: dict[type, list[str]] = {}


def _touch_saved(entry: GradNode, fn: Any, result: Backward, track: bool) -> None:
    names = _saved_names.get(type(fn))
    if names is None:
        names = [n for n in dir(fn) if n.startswith("_saved_")] or (["saved_tensors"] if entry.custom else [])
        _saved_names[type(fn)] = names
    for name in names:
        try:
            value = getattr(fn, name)
        except RuntimeError as error:
            if "modified by an inplace operation" in str(error):
                result.hazards.append(Hazard(entry, name.removeprefix("_saved_"), str(error)))
            continue
        if track:
            for t in value if isinstance(value, (tuple, list)) else (value,):
                if isinstance(t, torch.Tensor) and (key := torch_compat.storage_key(t)) is not None:
                    result.saved.setdefault(key, []).append((entry.index, name.removeprefix("_saved_")))


def run(
    loss: torch.Tensor, result: Backward, functions: list[Any], guard: Guard, *, detailed: bool, hooks: bool
) -> None:
    """Runs backward once, filling in what each grad_fn sent. An error is kept, not raised.

    `hooks`: some tensor hook may write to its gradient, so tensors sent along several edges matter. `detailed` also
    takes what was sent to leaves (else only whether something was) and, where several gradients meet, the norm of
    their sum.
    """
    result.detailed = detailed
    for _, leaf in result.leaves.values():
        guard.keep_grad(leaf)
    handles = []
    for entry, fn in zip(result.nodes, functions, strict=True):
        if entry.leaf is None:
            to_leaf = [below is not None and result.nodes[below[0]].leaf is not None for below in entry.next]
            probe = (
                _detailed_probe(entry, len(result.parents[entry.index]) != 1)
                if detailed
                else _probe(entry, to_leaf, hooks)
            )
            handles.append(fn.register_hook(probe))
    try:
        loss.backward()
    except Exception as error:
        result.error = error
    finally:
        for handle in handles:
            handle.remove()
    _fill_received(result)


def _probe(entry: GradNode, leaf: list[bool], hooks: bool) -> Any:
    """A leaf's gradient is read from `.grad` later: here only whether there is one."""

    def hook(sent: tuple[torch.Tensor | None, ...], received: tuple[torch.Tensor | None, ...]) -> None:
        entry.ran = any(g is not None for g in received)
        entry.sent = [
            None if g is None else 1.0 if is_leaf else norm(g) for g, is_leaf in zip(sent, leaf, strict=False)
        ]
        if hooks and len(sent) > 1:
            _note_shared(entry, sent)

    return hook


def _detailed_probe(entry: GradNode, several: bool) -> Any:
    def hook(sent: tuple[torch.Tensor | None, ...], received: tuple[torch.Tensor | None, ...]) -> None:
        entry.ran = any(g is not None for g in received)
        entry.sent = [None if g is None else norm(g) for g in sent]
        _note_shared(entry, sent)
        if several:
            norms = [norm(g) for g in received if g is not None]
            entry.received = math.hypot(*norms) if norms else None

    return hook


def _note_shared(entry: GradNode, sent: tuple[torch.Tensor | None, ...]) -> None:
    places = [None if g is None or g.layout is not torch.strided else g.data_ptr() or None for g in sent]
    if len(set(places)) < len(places):
        entry.shared = [i for i, p in enumerate(places) if p is not None and places.count(p) > 1]


def _fill_received(result: Backward) -> None:
    """A grad_fn with one live consumer received what that one sent; of a sum of several only its hook knows."""
    for entry, above in zip(result.nodes, result.parents, strict=True):
        if entry.received is not None or not above:
            continue
        sents = [s[e] for p, e in above if e < len(s := result.nodes[p].sent)]
        live = [s for s in sents if s is not None and s != 0.0]
        if len(live) == 1:
            entry.received = live[0]
        elif not live and any(s is not None for s in sents):
            entry.received = 0.0


def norm(g: torch.Tensor) -> float:
    """Frobenius norm: exactly 0.0 only for all zeros, NaN when an element is not finite, never inf."""
    if g.requires_grad:  # backward with create_graph
        g = g.detach()
    if g.layout is not torch.strided:
        g = g.coalesce().values() if g.layout is torch.sparse_coo else g.to_dense()
    if g.dtype is torch.float32 or g.dtype is torch.float64:
        value: float = torch.linalg.vector_norm(g).item()
    else:
        wide = torch.float32 if g.dtype in (torch.float16, torch.bfloat16) else None
        value = float(torch.linalg.vector_norm(g, dtype=wide))
    return value if 0.0 < value < math.inf else _extreme_norm(g, value)


def _extreme_norm(g: torch.Tensor, value: float) -> float:
    if g.numel() == 0:
        return 0.0
    if value == 0.0:  # squares of tiny numbers vanish
        return float(g.abs().max().double()) if bool(g.any()) else 0.0
    if not bool(torch.isfinite(g).all()):
        return math.nan
    g = g.to(torch.complex128 if g.is_complex() else torch.float64)
    return float(torch.linalg.vector_norm(g))


_VERSIONS = re.compile(r"is at version (\d+); expected version (\d+)")


def versions(message: str) -> tuple[int, int] | None:
    """(found, expected) version from autograd's message (`torch/csrc/autograd/saved_variable.cpp`)."""
    match = _VERSIONS.search(message)
    return (int(match[1]), int(match[2])) if match else None
