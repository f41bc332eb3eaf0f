"""The tensors in a call's arguments and results, and what the recorder notes about them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import torch
from torch import fx

from .. import torch_compat
from ..facts import GradEdge


class Token:
    """Says which node made a tensor. Sits in the tensor's `__dict__`; copies and pickles of the tensor lose it."""

    __slots__ = ("node", "path", "session")

    def __init__(self, session: int, node: fx.Node | None, path: tuple[Any, ...]) -> None:
        self.session, self.node, self.path = session, node, path

    def __deepcopy__(self, memo: Any) -> Token:
        return Token(0, None, ())

    def __reduce__(self) -> Any:
        return Token, (0, None, ())


class Storage:
    """One stretch of memory in this run: whose it is, and who wrote to it."""

    __slots__ = ("last_write", "name", "serial", "target", "writes")

    def __init__(self, serial: int, target: str, name: str) -> None:
        self.serial, self.target, self.name = serial, target, name
        self.last_write: fx.Node | None = None
        self.writes: list[fx.Node] = []


class Attribute:
    """A step of a path that is an attribute, not an index: a field of a dataclass that a node gave out."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Attribute) and other.name == self.name


def leaves(tree: Any, found: list[torch.Tensor]) -> None:
    """Appends the tensors in nested arguments, in order."""
    if isinstance(tree, torch.Tensor):
        found.append(tree)
        return
    if isinstance(tree, (tuple, list)):
        for value in tree:
            leaves(value, found)
    elif isinstance(tree, dict):
        for value in tree.values():
            leaves(value, found)
    elif type(tree) is slice:
        leaves((tree.start, tree.stop, tree.step), found)


def paths(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], torch.Tensor]]:
    """The tensors in a result, each with the way to it: indices, keys, and `Attribute` for fields."""
    if isinstance(tree, torch.Tensor):
        yield path, tree
    elif isinstance(tree, (tuple, list)):
        for i, value in enumerate(tree):
            yield from paths(value, (*path, i))
    elif isinstance(tree, dict):
        for key, value in tree.items():
            yield from paths(value, (*path, key))
    elif dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        for field in dataclasses.fields(tree):
            yield from paths(getattr(tree, field.name, None), (*path, Attribute(field.name)))


def scalars(tree: Any, found: list[Any], depth: int = 3) -> None:
    """Appends the floats and arrays in a value that left for Python or came back: things with an identity."""
    kind = type(tree)
    if kind is float or kind is complex or kind.__name__ == "ndarray":
        found.append(tree)
    elif depth and (kind is list or kind is tuple):
        for value in tree:
            scalars(value, found, depth - 1)


def edge_of(t: torch.Tensor) -> GradEdge | None:
    """Where the tensor stands in the autograd graph; None for leaves.

    Asking for `grad_fn` raises where a view's base was changed in a way autograd forbids; the model meets the same
    error at its next use of the view.
    """
    try:
        grad_fn = t.grad_fn
    except RuntimeError:
        return None
    if grad_fn is None:
        return None
    seq = torch_compat.sequence_nr(grad_fn)
    return None if seq is None else (seq, t.output_nr)


def has_history(t: torch.Tensor) -> bool:
    """Whether a gradient that reaches `t` goes on. A view of a leaf made under no_grad says `requires_grad`, and has
    no grad_fn: nothing comes back from it."""
    if not t.requires_grad or torch_compat.base_of(t) is None:
        return t.requires_grad
    try:
        return not t.is_leaf
    except RuntimeError:  # a view whose base was changed in a way autograd forbids
        return True


def value_state(t: torch.Tensor) -> str | None:
    """ "zero", "nan", "inf" or "live": what a rule needs to know of the numbers in a tensor."""
    if t.device.type == "meta" or t.numel() == 0:
        return None
    with torch.no_grad():
        try:
            plain = t.detach()
            if plain.layout is not torch.strided:
                plain = plain.coalesce().values() if plain.layout is torch.sparse_coo else plain.to_dense()
            if plain.is_floating_point() or plain.is_complex():
                if bool(torch.isnan(plain).any()):
                    return "nan"
                if not bool(torch.isfinite(plain).all()):
                    return "inf"
            return "live" if bool((plain != 0).any()) else "zero"
        except (RuntimeError, NotImplementedError):
            return None
