"""Where a finding points: the line that switched grad mode off, the line in `__init__` that creates a parameter."""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
import textwrap
from collections.abc import Iterator
from typing import Any

from torch import fx, nn

from ..capture.source import is_internal, locate, place, statement_line
from ..facts import Region, location_of
from ..report.model import Location


def no_grad_place(region: Region | None, node: fx.Node) -> Location | None:
    """The line to change for an op that ran with grad mode off.

    A `with` statement is named itself. A decorator is named too, unless the op stands in the decorated function's own
    body: then the op's line says more.
    """
    own = location_of(node)
    if region is None:
        return own
    if region.decorated is not None:
        code = region.decorated
        if own is not None and own.file == code.co_filename and own.function == code.co_qualname:
            return own
        names = ("no_grad", "inference_mode", "set_grad_enabled")
        line = next((n for name in names if (n := statement_line(code, name))), None)
        line = line or code.co_firstlineno
        text = linecache.getline(code.co_filename, line).split("#")[0].rstrip()
        start = len(text) - len(text.lstrip())
        return place(code.co_filename, line, len(text[:start].encode()), len(text.encode()), line, code.co_qualname)
    return region.location or locate(region.spot) or own


def creation_place(model: Any, name: str) -> Location | None:
    """The line that creates the parameter or attribute `name` (dotted): an assignment in some module's class.

    Goes up from the owner while its class is torch's own: `encoder.0.weight` is created by `self.encoder = ...`.
    """
    if not isinstance(model, nn.Module):
        return None
    chain = list(_owners(model, name))
    for owner, attribute in reversed(chain):
        cls = type(owner)
        if cls.__module__.startswith("torch.nn.") or cls.__module__.startswith("torch.ao."):
            continue
        found = assignment_place(cls, attribute)
        if found is not None:
            return found
    return None


def _owners(model: nn.Module, name: str) -> Iterator[tuple[Any, str]]:
    owner: Any = model
    for part in name.split("."):
        yield owner, part
        if isinstance(owner, (list, tuple)) and part.isdigit():
            owner = owner[int(part)]
        elif isinstance(owner, dict):
            owner = owner.get(part)
        else:
            owner = getattr(owner, part, None)
        if owner is None:
            return


def assignment_place(cls: type, attribute: str) -> Location | None:
    """Where a method of `cls` or a base assigns `self.attribute` (or registers it), found in the syntax tree."""
    for base in cls.__mro__:
        if base.__module__.startswith(("torch.nn.modules.", "builtins")):
            continue
        for file, qualname, node in _methods(base):
            for statement in ast.walk(node):
                if isinstance(statement, ast.stmt) and _assigns(statement, attribute):
                    filled = _filled_later(file, cls, attribute) if _is_empty(statement) else None
                    return filled or _at(file, statement, qualname)
    return None


def _is_empty(statement: ast.stmt) -> bool:
    """`self.blocks = nn.ModuleList()`, `[]`, `{}`: what it holds is created elsewhere."""
    value = getattr(statement, "value", None)
    if isinstance(value, (ast.List, ast.Tuple)):
        return not value.elts
    if isinstance(value, ast.Dict):
        return not value.keys
    return isinstance(value, ast.Call) and not value.args and not value.keywords


def _filled_later(file: str, cls: type, attribute: str) -> Location | None:
    """`self.blocks.append(...)` or `self.blocks[name] = ...`."""
    for _, qualname, method in _methods(cls):
        for node in ast.walk(method):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                target = node.value.func
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
                target = node.targets[0]
            else:
                continue
            held = getattr(target, "value", None)
            if isinstance(held, ast.Attribute) and held.attr == attribute:
                return _at(file, node, qualname)
    return None


def _at(file: str, node: ast.stmt | ast.expr, function: str) -> Location:
    return place(file, node.lineno, node.col_offset, node.end_col_offset, node.end_lineno, function)


def _assigns(statement: ast.stmt, attribute: str) -> Any:
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, (ast.AnnAssign, ast.AugAssign)):
        targets = [statement.target]
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        named = isinstance(call.func, ast.Attribute) and call.func.attr in (
            "register_parameter",
            "register_buffer",
            "register_module",
            "add_module",
            "__setattr__",
        )
        first = call.args[0] if call.args else None
        return named and isinstance(first, ast.Constant) and first.value == attribute
    for target in targets:
        for part in target.elts if isinstance(target, ast.Tuple) else [target]:
            if isinstance(part, ast.Attribute) and part.attr == attribute and isinstance(part.value, ast.Name):
                return True
    return False


@functools.lru_cache(maxsize=512)
def _methods(cls: type) -> list[tuple[str, str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """(file, qualified name, function node with the file's line numbers) of each method written in the class."""
    try:
        lines, first = inspect.getsourcelines(cls)
        file = inspect.getsourcefile(cls) or ""
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError, IndentationError):
        return []
    indent = len(lines[0]) - len(lines[0].lstrip())
    found = []
    for node in ast.walk(tree):
        if hasattr(node, "lineno"):
            node.lineno += first - 1
            node.end_lineno += first - 1  # type: ignore[attr-defined]
            node.col_offset += indent  # type: ignore[attr-defined]
            node.end_col_offset += indent  # type: ignore[attr-defined]
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found.append((file, f"{cls.__qualname__}.{node.name}", node))
    found.sort(key=lambda item: item[1].rsplit(".", 1)[1] != "__init__")
    return found


def function_place(function: Any, index: int | None) -> Location | None:
    """The `return` in a custom Function's backward that gives None (or zeros) for input `index`."""
    cls = getattr(function, "__self__", function)
    method = getattr(cls, "backward", None)
    code = getattr(method, "__code__", None)
    if code is None or is_internal(code.co_filename):
        return None
    for file, qualname, node in _methods(cls):
        if not qualname.endswith(".backward"):
            continue
        returns = [n for n in ast.walk(node) if isinstance(n, ast.Return)]
        last = returns[-1] if returns else None
        chosen = next((r for r in returns if index is not None and _gives_none(r, index)), last)
        if chosen is not None:
            return _at(file, chosen, qualname)
    return place(code.co_filename, code.co_firstlineno, function=code.co_qualname)


def _gives_none(statement: ast.Return, index: int) -> bool:
    value = statement.value
    parts = value.elts if isinstance(value, ast.Tuple) else [value]
    part = parts[index] if index < len(parts) else None
    return isinstance(part, ast.Constant) and part.value is None


def input_index(node: fx.Node, source: fx.Node) -> int | None:
    """Which argument of a custom Function `source` is, counting all arguments of `apply`."""
    arguments = node.args[1:]
    return next((i for i, a in enumerate(arguments) if a is source), None)


def freezing_place(model: Any) -> Location | None:
    """The line that sets `requires_grad` to False: in some class of the model, else in a function beside it."""
    if not isinstance(model, nn.Module):
        return None
    classes: dict[Any, None] = dict.fromkeys(type(m) for m in model.modules())
    for cls in classes:
        if cls.__module__.startswith("torch."):
            continue
        for file, qualname, method in _methods(cls):
            for node in ast.walk(method):
                if isinstance(node, (ast.stmt, ast.expr)) and _freezes(node):
                    return _at(file, node, qualname)
    for file in dict.fromkeys(f for cls in classes if (f := _source_file(cls))):
        for function in _functions(file):
            for node in ast.walk(function):
                if isinstance(node, (ast.stmt, ast.expr)) and _freezes(node):
                    return _at(file, node, function.name)
    return None


def _source_file(cls: type) -> str | None:
    try:
        file = inspect.getsourcefile(cls)
    except (TypeError, OSError):
        return None
    return file if file is not None and not is_internal(file) and "site-packages" not in file else None


def _functions(file: str) -> list[ast.FunctionDef]:
    """The functions at the top of a file."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return []
    return [n for n in tree.body if isinstance(n, ast.FunctionDef)]


def _freezes(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "requires_grad_":
        return bool(node.args) and isinstance(node.args[0], ast.Constant) and node.args[0].value is False
    return (
        isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Attribute)
        and node.targets[0].attr == "requires_grad"
        and isinstance(node.value, ast.Constant)
        and node.value.value is False
    )


def write_after(made: Location | None) -> Location | None:
    """The first statement behind `made` that writes to the numpy array which the statement at `made` assigns.

    Writes from numpy are no torch calls; only the source shows them. None when no such statement is found.
    """
    if made is None:
        return None
    try:
        tree = ast.parse("".join(linecache.getlines(made.file)))
    except SyntaxError:
        return None
    names: set[str] = set()
    statements = sorted((n for n in ast.walk(tree) if isinstance(n, ast.stmt)), key=lambda n: n.lineno)
    for node in statements:
        if isinstance(node, ast.Assign) and node.lineno <= made.line <= (node.end_lineno or node.lineno):
            names |= {t.id for t in node.targets if isinstance(t, ast.Name)}
        elif node.lineno >= made.line and _writes_array(node, names):
            return _at(made.file, node, made.function)
    return None


def _writes_array(node: ast.stmt, names: set[str]) -> bool:
    targets = [node.target] if isinstance(node, ast.AugAssign) else node.targets if isinstance(node, ast.Assign) else []
    for target in targets:
        whole = target if isinstance(node, ast.AugAssign) else None
        part = target.value if isinstance(target, ast.Subscript) else whole
        if isinstance(part, ast.Name) and part.id in names:
            return True
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        call = node.value
        outs = [k.value for k in call.keywords if k.arg == "out"]
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        first = call.args[:1] if getattr(call.func, "attr", "") in ("copyto", "put", "place") else []
        changed = [*outs, owner, *first]
        return any(isinstance(c, ast.Name) and c.id in names for c in changed)
    return False
