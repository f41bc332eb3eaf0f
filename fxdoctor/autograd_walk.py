"""Walks the live autograd graph of a tensor, and finds saved tensors that were overwritten, without running backward.

Everything here is iterative: a graph of 100,000 nodes in a row takes well under a second. Nothing is computed, no hook
is called, no `.grad` changes. Only a very deep graph gets something added, so that it can be freed (`deep_graph.py`).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch

from . import torch_compat
from .deep_graph import put_brakes

Edge = tuple[int, int]
"""(index of a node, which of that node's outputs)."""


@dataclass(eq=False)
class GradGraph:
    """The grad_fns under some roots. While it lives, so does the graph."""

    functions: list[Any] = field(default_factory=list)
    """The grad_fns, in the order they were found. A node is named by its index here."""
    edges: list[tuple[Edge | None, ...]] = field(default_factory=list)
    """For each node, where its gradients go: one entry per input of the forward op, None where it takes no gradient."""
    order: list[int] = field(default_factory=list)
    """All indices, each before those that it sends to: the order of a backward."""
    roots: list[int] = field(default_factory=list)
    leaves: dict[int, int] = field(default_factory=dict)
    """`id(leaf tensor)` to the index of its AccumulateGrad node."""
    index: dict[Any, int] = field(default_factory=dict)
    """grad_fn to its index."""
    _parents: list[list[int]] | None = None

    def __len__(self) -> int:
        return len(self.functions)

    def name(self, at: int) -> str:
        """The grad_fn's class, such as `AddmmBackward0`."""
        return str(self.functions[at].name())

    def variable(self, at: int) -> torch.Tensor | None:
        """The leaf of an AccumulateGrad node; None for any other node."""
        return getattr(self.functions[at], "variable", None)

    @property
    def parents(self) -> list[list[int]]:
        """For each node, those that send gradients to it."""
        if self._parents is None:
            self._parents = [[] for _ in self.functions]
            for at, edges in enumerate(self.edges):
                for edge in edges:
                    if edge is not None:
                        self._parents[edge[0]].append(at)
        return self._parents

    def above(self, starts: Iterable[int]) -> set[int]:
        """The nodes whose gradients reach one of `starts`, and `starts` themselves."""
        todo = list(starts)
        seen = set(todo)
        while todo:
            for other in self.parents[todo.pop()]:
                if other not in seen:
                    seen.add(other)
                    todo.append(other)
        return seen

    def below(self, starts: Iterable[int], walls: Collection[int] = ()) -> set[int]:
        """The nodes that get a gradient from `starts` without passing through `walls`, and `starts` themselves."""
        todo = [at for at in starts if at not in walls]
        seen = set(todo)
        while todo:
            for edge in self.edges[todo.pop()]:
                if edge is not None and edge[0] not in seen and edge[0] not in walls:
                    seen.add(edge[0])
                    todo.append(edge[0])
        return seen


def walk(roots: Any) -> GradGraph:
    """The graph under a tensor, a grad_fn, or an iterable of either.

    A tensor without history adds nothing; a leaf that requires grad adds its AccumulateGrad node. Graphs deeper than
    1,500 nodes get an entry in the `metadata` of one node in 500, see `deep_graph`.

    Raises:
        TypeError: a root is neither a tensor nor a grad_fn.
    """
    graph = GradGraph()
    functions, edges, index = graph.functions, graph.edges, graph.index
    for root in _starts(roots):
        if root not in index:
            index[root] = len(functions)
            functions.append(root)
        graph.roots.append(index[root])
    at = 0
    while at < len(functions):
        found: list[Edge | None] = []
        for below, output in functions[at].next_functions:
            if below is None:
                found.append(None)
                continue
            number = index.get(below)
            if number is None:
                number = index[below] = len(functions)
                functions.append(below)
            found.append((number, output))
        edges.append(tuple(found))
        if not found and (variable := graph.variable(at)) is not None:
            graph.leaves[id(variable)] = at
        at += 1
    graph.order = _ordered(edges)
    put_brakes(functions, edges, graph.order)
    return graph


def _starts(roots: Any) -> Iterator[Any]:
    several = isinstance(roots, Iterable) and not isinstance(roots, torch.Tensor)
    for root in roots if several else [roots]:
        if isinstance(root, torch.Tensor):
            if root.grad_fn is not None:
                yield root.grad_fn
            elif root.requires_grad:
                yield torch.autograd.graph.get_gradient_edge(root).node
        elif hasattr(root, "next_functions"):
            yield root
        else:
            raise TypeError(f"cannot walk from {type(root).__name__}; pass a tensor or a grad_fn, or a list of them")


def _ordered(edges: list[tuple[Edge | None, ...]]) -> list[int]:
    waiting = [0] * len(edges)
    for below in edges:
        for edge in below:
            if edge is not None:
                waiting[edge[0]] += 1
    order = [at for at, count in enumerate(waiting) if count == 0]
    for at in order:  # grows while it is read
        for edge in edges[at]:
            if edge is not None:
                waiting[edge[0]] -= 1
                if waiting[edge[0]] == 0:
                    order.append(edge[0])
    return order


def op_name(grad_fn_name: str) -> str:
    """The op behind a grad_fn's name, in lower case: "relu" for `ReluBackward0`."""
    name = grad_fn_name.split("::")[-1].rstrip("0123456789").removesuffix("Backward")
    return name.lower().removeprefix("native").removeprefix("aten")


def is_custom(grad_fn: Any) -> bool:
    """Whether the node comes from a Python `autograd.Function`."""
    return hasattr(grad_fn, "_forward_cls")


# --- saved tensors --------------------------------------------------------------------------------------------------


@dataclass
class SavedHazard:
    """A saved tensor that was overwritten: a backward through its node raises."""

    node: int
    """Index in the graph."""
    grad_fn: str
    """The name of the grad_fn that saved it."""
    attribute: str
    """What it is to that op: "self", "weight", "result"; "tensors" for a custom Function."""
    message: str
    """What autograd would raise."""
    shape: tuple[int, ...] | None = None
    dtype: str = ""
    found: int | None = None
    """The version that the tensor has now, and `expected`, the one it had when it was saved."""
    expected: int | None = None
    writer: str = ""
    """The grad_fn of the last write, where autograd saw that write."""
    writer_frames: list[Frame] = field(default_factory=list)
    storage: int | None = None
    """`torch_compat.storage_key` of the tensor, where torch tells it (not 2.6)."""


@dataclass
class SavedCheck:
    """What `saved_hazards` saw: `checked` and `freed` count names (one may hold a list of tensors)."""

    hazards: list[SavedHazard] = field(default_factory=list)
    checked: int = 0
    freed: int = 0
    """Backward ran and took them: they can no longer be checked, and no backward needs them."""
    hooked: int = 0
    """Not read, because reading calls a hook (checkpoint, offloading): autograd checks no versions there either."""


def saved_hazards(root: Any) -> SavedCheck:
    """Reads every tensor saved in a graph, so that autograd checks its version, and collects what it complains of.

    `root` is a `GradGraph` or what `walk` takes. No tensor is kept alive. Not checked: tensors saved under
    `saved_tensors_hooks` (non-reentrant checkpoint, `save_on_cpu`), since reading them would run the hooks, and a
    recomputation with them; custom Functions with `clear_saved_tensors_on_access`; and ops inside a `CopySlices`
    node (a write through a view), which does not show what they saved. On torch 2.6 an unpack hook that is a C
    function cannot be told apart, and is called.
    """
    graph = root if isinstance(root, GradGraph) else walk(root)
    check = SavedCheck()
    for at, fn in enumerate(graph.functions):
        for name in torch_compat.saved_names(fn):
            _check_one(graph, at, fn, name, check)
    return check


def _check_one(graph: GradGraph, at: int, fn: Any, name: str, check: SavedCheck) -> None:
    try:
        raws = torch_compat.raw_saved(fn, name)
        if not raws:
            return
        hooked = [torch_compat.has_unpack_hook(r) for r in raws]
        if any(hooked) or torch_compat.clears_saved_on_access(fn):
            check.hooked += 1
            return
        check.checked += _read(fn, name, guarded=None in hooked)
    except _HookCalled:
        check.hooked += 1
    except RuntimeError as error:
        text = str(error)
        if "modified by an inplace operation" in text:
            check.checked += 1
            check.hazards.append(_hazard(graph, at, name, raws, text))
        elif "backward through the graph a second time" in text:
            check.freed += 1
        else:
            raise


class _HookCalled(BaseException):
    """Raised at the first step of an unpack hook, before its code runs."""


def _stop_calls(frame: FrameType, event: str, arg: Any) -> None:
    if event == "call" and frame.f_globals is not vars(torch_compat):
        raise _HookCalled


def _read(fn: Any, name: str, guarded: bool) -> bool:
    """`guarded`: torch cannot say whether there is a hook, so any Python call but our own is stopped."""
    if not guarded:
        return torch_compat.read_saved(fn, name)
    before = sys.getprofile()
    sys.setprofile(_stop_calls)
    try:
        return torch_compat.read_saved(fn, name)
    finally:
        sys.setprofile(before)


_TEXT = re.compile(
    r"\[(?P<kind>[\w.]+) \[(?P<shape>[\d, ]*)\]\](?:, which is output \d+ of (?P<of>\S+?),)?"
    r".*? is at version (?P<found>\d+); expected version (?P<expected>\d+)"
)
_KINDS = {
    "Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16", "Long": "int64", "Int": "int32",
    "Short": "int16", "Char": "int8", "Byte": "uint8", "Bool": "bool", "ComplexFloat": "complex64",
    "ComplexDouble": "complex128",
}  # fmt: skip


def _hazard(graph: GradGraph, at: int, name: str, raws: tuple[Any, ...], text: str) -> SavedHazard:
    found = SavedHazard(at, graph.name(at), name, text)
    match = _TEXT.search(text)
    if match is None:
        return found
    kind = match["kind"].split(".")[-1].removesuffix("Tensor")
    found.shape = tuple(int(n) for n in match["shape"].split(",") if n.strip())
    found.dtype = _KINDS.get(kind, kind)
    found.found, found.expected = int(match["found"]), int(match["expected"])
    # The message names the tensor's grad_fn of now: that of the last write, unless no op wrote it that autograd saw.
    # It is then the node that the saver got its input from, or the saver itself.
    below = [e[0] for e in graph.edges[at] if e is not None]
    if match["of"] and op_name(match["of"]) not in {op_name(graph.name(n)) for n in [at, *below]}:
        found.writer = match["of"]
    _from_data(graph, [at, *below], raws, found)
    return found


def _from_data(graph: GradGraph, known: list[int], raws: tuple[Any, ...], found: SavedHazard) -> None:
    """Reads storage and writer off the tensor itself. A custom Function may save several: the shape decides."""
    for raw in raws:
        data = torch_compat.saved_data(raw)
        if data is None or tuple(data.shape) != found.shape or data._version != found.found:
            continue
        found.storage = torch_compat.storage_key(data)
        writer = data.grad_fn
        if writer is not None and all(writer is not graph.functions[n] for n in known):
            found.writer = str(writer.name())
            found.writer_frames = frames(writer)
        return


# --- where a node was made ------------------------------------------------------------------------------------------

Frame = tuple[str, int, str]
"""(file, line, function)."""
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>.+)')


def frames(grad_fn: Any) -> list[Frame]:
    """The Python stack at which the forward made a node, outermost first; empty unless anomaly mode was on then.

    Looking adds an empty `metadata` dict to the node.
    """
    lines = grad_fn.metadata.get("traceback_") or []
    found = [m for text in lines for m in _FRAME.finditer(text)]
    return [(m["file"], int(m["line"]), m["function"].split("\n")[0].strip()) for m in found]
