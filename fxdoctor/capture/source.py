"""From a running frame to the user's line and columns.

A node keeps only `(code, lasti)` of the innermost frame that is neither torch's, nor Python's own library, nor ours;
columns are worked out for the few nodes that a report names.
"""

from __future__ import annotations

import linecache
import os
import sys
import sysconfig
from types import CodeType

import torch

from ..report.model import Location

Spot = tuple[CodeType, int]
"""A code object and the offset of the instruction that was running (`frame.f_lasti`)."""

_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
_STDLIB = sysconfig.get_paths()["stdlib"] + os.sep
_RUNNER = os.path.join(_OWN, "capture", "trace.py")
_internal: dict[str, bool] = {}


def is_internal(filename: str) -> bool:
    """Whether a file belongs to torch, to Python's library, to fxdoctor, or to no file that a person wrote."""
    known = _internal.get(filename)
    if known is None:
        path = os.path.abspath(filename)
        in_stdlib = path.startswith(_STDLIB) and "site-packages" not in path
        generated = filename.startswith(("<eval_with_key>", "<frozen", "<__array_function__", "<torch_package"))
        known = path.startswith((_OWN, _TORCH)) or in_stdlib or generated
        _internal[filename] = known
    return known


def is_own(filename: str) -> bool:
    """Whether a file is fxdoctor's own."""
    return filename.startswith(_OWN)


def user_spot(depth: int = 1) -> Spot | None:
    """The innermost user frame above the caller, None when there is none."""
    frame = sys._getframe(depth)
    while frame is not None:
        code = frame.f_code
        if not is_internal(code.co_filename):
            return code, frame.f_lasti
        if code.co_filename == _RUNNER:  # beyond this are those who called analyze, not the model
            return None
        frame = frame.f_back  # type: ignore[assignment]
    return None


def decorated_function(depth: int = 1) -> CodeType | None:
    """The function under a `@torch.no_grad()`-like decorator that is being entered right now, if one is.

    `torch/utils/_contextlib.py` calls it from a frame named `decorate_context`, in which it is the local `func`.
    """
    frame = sys._getframe(depth)
    while frame is not None:
        code = frame.f_code
        if code.co_name in ("decorate_context", "generator_context") and code.co_filename.startswith(_TORCH):
            func = frame.f_locals.get("func")
            return getattr(func, "__code__", None)
        if not is_internal(code.co_filename):
            return None
        frame = frame.f_back  # type: ignore[assignment]
    return None


_SWITCHES = (
    "fx/interpreter.py",
    "grad_mode.py",
    "_contextlib.py",
    "overrides.py",
    "modules/module.py",
    "modules/container.py",
)


def torch_switcher(depth: int = 1) -> str | None:
    """The torch function that switches grad mode for its own purposes (`Distribution.sample`), None if a user does."""
    frame = sys._getframe(depth)
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(_TORCH) and not name.endswith(_SWITCHES):
            return frame.f_code.co_name
        if not is_internal(name):
            return None
        frame = frame.f_back  # type: ignore[assignment]
    return None


def locate(spot: Spot | None) -> Location | None:
    """The place in the file that `spot` stands for, with columns where the interpreter kept them."""
    if spot is None:
        return None
    code, lasti = spot
    positions = list(code.co_positions())
    line, end_line, start, end = positions[lasti // 2] if lasti >= 0 else (code.co_firstlineno, None, None, None)
    if line is None:
        line = code.co_firstlineno
    return place(code.co_filename, line, start, end, end_line, code.co_qualname)


def place(
    file: str,
    line: int,
    start: int | None = None,
    end: int | None = None,
    end_line: int | None = None,
    function: str = "",
) -> Location:
    """A `Location` from UTF-8 byte offsets, as code objects and `ast` give them."""
    text = linecache.getline(file, line).rstrip("\r\n")
    if end_line is not None and end_line != line:
        end = len(text.encode())
    column, end_column = _characters(text, start), _characters(text, end)
    return Location(file, line, column, end_column, function, text, end_line)


def _characters(text: str, offset: int | None) -> int | None:
    if offset is None:
        return None
    return len(text.encode()[:offset].decode(errors="ignore"))


def statement_line(code: CodeType, marker: str) -> int | None:
    """The line above the body of `code` (its decorators) that contains `marker`; None when there is none."""
    for line in range(code.co_firstlineno, code.co_firstlineno + 12):
        text = linecache.getline(code.co_filename, line).strip()
        if text.startswith("@") and marker in text:
            return line
        if text.startswith(("def ", "async def ", "class ")):
            return None
    return None
