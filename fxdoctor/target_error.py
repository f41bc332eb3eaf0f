"""What a target is and the one error for a bad one; apart, so that every part of target loading can import it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn


class TargetError(Exception):
    """A target that cannot be used; the message is one line that says why and what to do."""


@dataclass
class Target:
    """A model with what one training step needs.

    ``loss`` is None where the output's own ``.loss`` or the default loss serves. ``name`` is the target as typed.
    """

    model: nn.Module
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    loss: Callable[[Any], Any] | None = None
    name: str = ""


def raised(error: BaseException) -> str:
    """An exception of someone else's code on one line: `ValueError: bad width`."""
    text = " ".join(str(error).split())
    text = text if len(text) <= 300 else text[:297] + "..."
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def near(name: str, known: Iterable[str], what: str) -> str:
    """`; did you mean a, b?`, or how to find out what there is."""
    import difflib

    found = difflib.get_close_matches(name, list(known), 3, 0.5)
    return f"; did you mean {', '.join(found)}?" if found else f"; {what}"
