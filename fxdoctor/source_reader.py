"""From a function, a class, a module or a file to its syntax tree, with the lines and columns of the file."""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from torch import nn

from .capture.source import is_internal

Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef | ast.Module


@dataclass(frozen=True)
class Piece:
    """One piece of source to read: a whole file, a class or a function, with all that lies inside it."""

    file: str
    node: Scope
    qualname: str
    tree: ast.Module


class Unreadable(Exception):
    """There is no source; the message says for what and why."""


def pieces(source: Any) -> Iterator[Piece | Unreadable]:
    """The pieces of one object. A class brings its bases, a module instance the classes of all its submodules, as far
    as they are neither torch's nor Python's own.

    Raises:
        FileNotFoundError: a path that leads to no file.
        TypeError: the object is nothing that has source.
    """
    if isinstance(source, (str, os.PathLike)):
        yield _file(Path(source))
    elif isinstance(source, nn.Module):
        for cls in dict.fromkeys(type(m) for m in source.modules()):
            yield from _class_and_bases(cls, wanted=cls is type(source))
    elif isinstance(source, type):
        yield from _class_and_bases(source, wanted=True)
    elif isinstance(source, ModuleType):
        yield _file(Path(source.__file__)) if source.__file__ else Unreadable(f"module {source.__name__} has no file")
    else:
        yield _function(source)


def _file(path: Path) -> Piece | Unreadable:
    if not path.is_file():
        raise FileNotFoundError(f"source: there is no file {path}; pass a .py file, a function, a class or a module")
    tree = parsed(str(path))
    return Unreadable(f"{path} is no Python that can be parsed") if tree is None else Piece(str(path), tree, "", tree)


def _class_and_bases(cls: type, wanted: bool) -> Iterator[Piece | Unreadable]:
    for base in cls.__mro__:
        try:
            file = inspect.getsourcefile(base) or ""
        except TypeError:  # made in C, or in no file
            if base is cls and wanted:
                yield Unreadable(f"{cls.__qualname__} has no Python source")
            continue
        if is_internal(file):
            if base is cls and wanted and not issubclass(cls, nn.Module):
                yield Unreadable(f"{cls.__qualname__} belongs to a library ({cls.__module__}); not read")
            continue
        tree = parsed(file)
        node = _class_node(base, tree) if tree is not None else None
        if tree is None or node is None:
            yield Unreadable(f"the source of {base.__qualname__} cannot be found in {file or 'any file'}")
        else:
            yield Piece(file, node, base.__qualname__, tree)


def _class_node(cls: type, tree: ast.Module) -> ast.ClassDef | None:
    """The class statement; where there are several of that name, the one whose methods stand at the right lines."""
    same = [n for q, n in _definitions(tree) if isinstance(n, ast.ClassDef) and q == cls.__qualname__]
    lines = {f.__code__.co_firstlineno for f in vars(cls).values() if hasattr(f, "__code__")}

    def fits(node: ast.ClassDef) -> int:
        methods = [n for n in node.body if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
        return len(lines & {_first_line(n) for n in methods})

    return max(reversed(same), key=fits, default=None)


def _function(source: Any) -> Piece | Unreadable:
    function = source
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function) if callable(function) else function
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if not isinstance(code, CodeType):
        if callable(source):
            name = getattr(source, "__qualname__", type(source).__qualname__)
            return Unreadable(f"{name} has no Python source (built in, or an object with __call__: pass its class)")
        raise TypeError(f"source is {type(source).__name__}; pass a function, a class, a module or a .py file's path")
    tree = parsed(code.co_filename)
    if tree is None:
        return Unreadable(f"the source of {code.co_qualname} is not available (file {code.co_filename})")
    line = code.co_firstlineno
    nodes = [n for _, n in _definitions(tree) if _first_line(n) == line and _name(n) == code.co_name]
    if not nodes:
        return Unreadable(f"the source of {code.co_qualname} is not at line {line} of {code.co_filename}")
    return Piece(code.co_filename, nodes[-1], code.co_qualname, tree)


def parsed(file: str) -> ast.Module | None:
    """The syntax tree of a file as `linecache` has it (so that of a notebook cell too); None without source."""
    text = "".join(linecache.getlines(file))
    try:
        return ast.parse(text) if text else None
    except (SyntaxError, ValueError):
        return None


def _definitions(tree: ast.Module) -> Iterator[tuple[str, Any]]:
    todo: list[tuple[str, ast.AST]] = [("", tree)]
    while todo:
        prefix, node = todo.pop()
        for child in ast.iter_child_nodes(node):
            inner = prefix
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
                qualname = prefix + _name(child)
                yield qualname, child
                inner = qualname + ("." if isinstance(child, ast.ClassDef) else ".<locals>.")
            todo.append((inner, child))


def _name(node: Any) -> str:
    return "<lambda>" if isinstance(node, ast.Lambda) else str(node.name)


def _first_line(node: Any) -> int:
    """As in `co_firstlineno`: that of the first decorator."""
    return int(min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))]))
