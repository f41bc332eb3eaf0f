"""Which names of a program stand for plain Python values, and which for modules, as far as its syntax tells."""

from __future__ import annotations

import ast

_PYTHON_CALLS = frozenset(
    "len range int float str bool list dict set tuple enumerate zip sorted defaultdict Counter deque".split()
)
_PLAIN_TYPES = frozenset(["int", "float", "str", "bool", "list", "dict", "set", "tuple"])
PLAIN = (
    ast.Constant, ast.List, ast.Dict, ast.Set, ast.Tuple, ast.ListComp, ast.DictComp, ast.SetComp, ast.JoinedStr,
    ast.Compare,
)  # fmt: skip


def imported(tree: ast.Module) -> tuple[set[str], set[str]]:
    """Names that stand for imported modules: torch's own, and others."""
    torch_names: set[str] = set()
    others: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for a in node.names:
                name = a.asname or a.name.split(".")[0]
                (torch_names if a.name.split(".")[0] == "torch" else others).add(name)
        elif isinstance(node, ast.ImportFrom):
            for a in node.names:
                (torch_names if (node.module or "").split(".")[0] == "torch" else others).add(a.asname or a.name)
    return torch_names, others


def plain_names(function: ast.AST) -> set[str]:
    """Names, also `self.name`, that this function or class only ever binds to plain Python values."""
    plain: set[str] = set()
    other: set[str] = set()
    arguments = getattr(function, "args", None)
    if isinstance(arguments, ast.arguments):
        for a in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
            note = ast.unparse(a.annotation) if a.annotation is not None else ""
            (plain if note.split("[")[0] in _PLAIN_TYPES else other).add(a.arg)
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                _bind(target, node.value, plain, other)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            _bind(node.target, node.value, plain, other)
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
            counts = _counts(node.iter)
            if counts == 2 and isinstance(node.target, ast.Tuple) and node.target.elts:
                _bind(node.target.elts[0], ast.Constant(0), plain, other)
                _bind_all(node.target.elts[1:], other)
            elif counts == 1:
                _bind(node.target, ast.Constant(0), plain, other)
            else:
                _bind_all([node.target], other)
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            _bind_all([node.optional_vars], other)
    return plain - other


def _bind(target: ast.expr, value: ast.expr, plain: set[str], other: set[str]) -> None:
    if isinstance(target, (ast.Tuple, ast.List)):
        if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts):
            for t, v in zip(target.elts, value.elts, strict=True):
                _bind(t, v, plain, other)
        else:
            _bind_all(target.elts, other)
    elif (name := dotted(target)) is not None:
        (plain if is_plain(value) else other).add(name)


def _bind_all(targets: list[ast.expr], other: set[str]) -> None:
    for target in targets:
        for node in ast.walk(target):
            if (name := dotted(node)) is not None:
                other.add(name)


def _counts(iterable: ast.expr) -> int:
    """1 for `range(...)`, 2 for `enumerate(...)`, which binds a counter first; else 0."""
    name = iterable.func.id if isinstance(iterable, ast.Call) and isinstance(iterable.func, ast.Name) else ""
    return {"range": 1, "enumerate": 2}.get(name, 0)


def is_plain(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and value.func.id in _PYTHON_CALLS
    if isinstance(value, (ast.BinOp, ast.UnaryOp)):
        parts = [value.left, value.right] if isinstance(value, ast.BinOp) else [value.operand]
        return all(is_plain(p) for p in parts)
    return isinstance(value, PLAIN) and not (isinstance(value, ast.Compare) and not is_plain(value.left))


def dotted(node: ast.AST) -> str | None:
    """`x` or `self.x` as text; None for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        return f"self.{node.attr}"
    return None
