"""Keeps a walked autograd graph safe to free, however deep it is.

Since torch 2.13 a grad_fn that Python has once seen keeps its Python object, and freeing a chain of such objects
recurses in C: on a stack of 8 MB some 48,000 of them end the process. Only looking at `loss.grad_fn` must not do that
to a training script. So in graphs deeper than `DEEP`, a small object in the public `metadata` dict of one node in
`SPACING` levels stops the recursion there: it takes over the nodes below and frees them a moment later, from a shallow
stack. Nothing lives longer than that moment; graphs of ordinary depth are not touched.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections import deque
from collections.abc import Sequence
from typing import Any

from . import torch_compat

DEEP = 1500
SPACING = 500
KEY = "fxdoctor: frees a deep graph in pieces"

_pending: deque[list[Any]] = deque()
_asked = False


class _Brake:
    """Lives in a node's `metadata`; owns the nodes below and hands them over when that node is freed."""

    __slots__ = ("below",)

    def __init__(self) -> None:
        self.below: list[Any] = []

    def __del__(self) -> None:
        _free_later(self.below)


def put_brakes(
    functions: Sequence[Any], edges: Sequence[Sequence[tuple[int, int] | None]], order: Sequence[int]
) -> int:
    """Makes a graph safe to free and returns the number of nodes that got a brake.

    Args:
        functions: the grad_fns.
        edges: for each, (index, output) of the nodes it sends gradients to.
        order: indices, each before those that it sends to.
    """
    if len(functions) <= DEEP or not torch_compat.grad_fn_keeps_object():
        return 0
    since = [0] * len(functions)
    longest = [0] * len(functions)
    for at in order:
        for edge in edges[at]:
            if edge is not None:
                longest[edge[0]] = max(longest[edge[0]], longest[at] + 1)
    if max(longest) <= DEEP:
        return 0
    braked = 0
    for at in order:
        # A node that is a cut starts a new count; its senders hold the brake.
        depth = 0 if since[at] >= SPACING else since[at]
        for edge in edges[at]:
            if edge is not None:
                since[edge[0]] = max(since[edge[0]], depth + 1)
    for at in order:
        if any(e is not None and since[e[0]] >= SPACING for e in edges[at]):
            braked += 1
            brake = functions[at].metadata.setdefault(KEY, _Brake())
            brake.below = [functions[e[0]] for e in edges[at] if e is not None]
    return braked


def _free_later(below: list[Any], finalizing: Any = sys.is_finalizing, pending: deque[list[Any]] = _pending) -> None:
    if finalizing():  # no later: the process ends, and its memory with it
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(below))
        return
    pending.append(below)
    _ask()


def _ask() -> None:
    """Lets the interpreter call `_drain` at its next safe point; in the garbage collector where it has no room."""
    global _asked
    if _asked:
        return
    _asked = True
    if ctypes.pythonapi.Py_AddPendingCall(_CALLBACK, None) != 0:
        gc.callbacks.append(_at_collection)


def _drain(_: Any = None) -> int:
    global _asked
    _asked = True  # nodes that come up while draining are taken by this very loop
    while True:
        try:
            _pending.popleft()
        except IndexError:
            break
    _asked = False
    if _pending:
        _ask()
    return 0


def _at_collection(phase: str, info: dict[str, int]) -> None:
    gc.callbacks.remove(_at_collection)
    _drain()


_CALLBACK = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(_drain)
ctypes.pythonapi.Py_AddPendingCall.argtypes = [type(_CALLBACK), ctypes.c_void_p]
ctypes.pythonapi.Py_AddPendingCall.restype = ctypes.c_int
