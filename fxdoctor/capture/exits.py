"""What leaves the graph for Python or numpy, and what comes back.

`item`, `float()`, `tolist` and numpy give out plain values with no data edge to what is later made from them. Two
kinds of evidence link them: the very same Python object among some call's arguments, and, failing that, time.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from .. import torch_compat
from ..facts import Read, facts
from . import ops
from .guard import Guard
from .values import Storage, scalars

_ARRAYS = frozenset(["numpy", "__array__", "tolist", "__dlpack__"])


class Exits:
    """The exits of one run, in order."""

    def __init__(self, guard: Guard) -> None:
        self.guard = guard
        self.nodes: list[fx.Node] = []
        """Exits whose value may be computed with; a `__bool__` only decides a branch."""
        self.considered = 0
        """How many exits came before the last value of unknown origin."""
        self.guessed_last: fx.Node | None = None
        self.claimed: set[fx.Node] = set()
        """Exits whose values were seen to come back: they need not be suspected behind others."""
        self.given: dict[int, tuple[Any, fx.Node]] = {}
        """`id` of each object given out; the object is held so that the id stays its own."""
        self.watched: list[tuple[fx.Node, torch.Tensor, torch.Tensor]] = []
        """(exit, alias of the memory handed to numpy, its content then)."""
        self.numpy_writes: list[fx.Node] = []
        """Exits whose memory was later written from numpy."""

    def note(self, node: fx.Node, op: ops.Op, tensor: torch.Tensor, result: Any) -> None:
        """A value left through `node`."""
        if op.name in ops.CONTROL_EXITS:
            return
        self.nodes.append(node)
        parts: list[Any] = []
        scalars(result, parts)
        for value in parts:
            self.given[id(value)] = (value, node)
        if op.name in ("numpy", "__array__", "__dlpack__") and tensor.device.type == "cpu":
            alias = tensor.detach()
            self.guard.protect(tensor)
            self.watched.append((node, alias, alias.clone()))

    def linked(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Read]:
        """The exits whose very object is among the arguments."""
        parts: list[Any] = []
        scalars(args, parts)
        scalars(tuple(kwargs.values()), parts)
        nodes = {}
        for value in parts:
            known, node = self.given.get(id(value), (None, None))
            if node is not None and known is value:
                nodes[id(node)] = node
        self.claimed.update(nodes.values())
        return [Read(n, True, "soft") for n in nodes.values()]

    def guessed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Read]:
        """For the first call after an exit with a float that was not given out as it is: it may be computed from it."""
        latest = self.nodes[-1]
        if (
            latest in self.claimed
            or latest is self.guessed_last
            or facts(latest).op in _ARRAYS
            or not torch.is_grad_enabled()
            or not any(type(a) is float for a in (*args, *kwargs.values()))
        ):
            return []
        self.guessed_last = latest
        return [Read(latest, True, "guess")]

    def came_back(self, args: tuple[Any, ...]) -> list[Read]:
        """For a tensor built from Python numbers of unknown origin: any earlier exit may be behind them."""
        parts: list[Any] = []
        scalars(args, parts)
        if not parts or self.linked(args, {}):
            return []
        return self.unclaimed()

    def unclaimed(self, several: bool = True) -> list[Read]:
        """The exits that may be behind a value of unknown origin: those since the last such value, else all.

        `several` numbers rather come from an array that left than from single numbers.
        """
        recent = [n for n in self.nodes[self.considered :] if n not in self.claimed]
        self.considered = len(self.nodes)
        likely = recent or [n for n in self.nodes if n not in self.claimed]
        arrays = [n for n in likely if facts(n).op in _ARRAYS] if several else []
        return [Read(n, True, "time") for n in arrays or likely]

    def sharing(self, tensor: torch.Tensor) -> fx.Node | None:
        """The exit whose memory `tensor` looks into: it came back through `torch.from_numpy`."""
        if tensor.device.type == "meta" or torch_compat.storage_key(tensor) is None:
            return None
        pointer = tensor.data_ptr()
        return next((n for n, alias, _ in self.watched if pointer and alias.data_ptr() == pointer), None)

    def check_numpy_writes(self, storages: dict[int | None, Storage]) -> None:
        """Memory handed to numpy that changed without any recorded write was written from numpy."""
        for node, alias, before in self.watched:
            storage = storages.get(torch_compat.storage_key(alias))
            written = storage is not None and storage.last_write is not None
            if not written and node not in self.numpy_writes and not torch.equal(alias, before):
                self.numpy_writes.append(node)
