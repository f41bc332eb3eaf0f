"""Finds the dangerous forms in one piece of source. Knows which names are plain Python values, and which modules."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .capture.source import place
from .report.model import Location
from .source_names import PLAIN, dotted, imported, is_plain, plain_names
from .source_reader import Piece

Hit = tuple[str, Location]
"""(key in `source_risks.FORMS`, where)."""

_VALUES = frozenset(["item", "tolist", "numpy"])
_MAKERS = frozenset(["tensor", "as_tensor", "from_numpy", "asarray"])
_SWITCHES = frozenset(["no_grad", "inference_mode", "set_grad_enabled"])
_INDICES = frozenset(
    ["argmax", "argmin", "argsort", "multinomial", "searchsorted", "bucketize", "nonzero", "floor_divide"]
)
_CASTS = frozenset(["long", "int", "short", "byte", "char", "bool"])
_ROUNDS = frozenset(["round", "floor", "ceil", "trunc", "sign", "sgn", "heaviside", "fix"])
_HARMLESS = frozenset(["share_memory_", "clip_grad_norm_", "clip_grad_value_", "rename_"])


def _known_outside(piece: Piece) -> set[str]:
    """The plain names that a piece sees around it: a file's own, and for a method the `self.name`s of its class."""
    if isinstance(piece.node, ast.Module):
        return plain_names(piece.tree)
    classes = (n for n in ast.walk(piece.tree) if isinstance(n, ast.ClassDef) and piece.node in n.body)
    return {n for cls in classes for n in plain_names(cls) if n.startswith("self.")}


def scan_piece(piece: Piece) -> Iterator[Hit]:
    """The hits in a piece, in the order of the source."""
    visitor = _Visitor(piece)
    visitor.visit(piece.node)
    yield from visitor.hits


class _Visitor(ast.NodeVisitor):
    def __init__(self, piece: Piece) -> None:
        self.file = piece.file
        self.hits: list[Hit] = []
        self.torch_names, self.other_modules = imported(piece.tree)
        self.names: list[str] = []
        self.base = piece.qualname.rpartition(".")[0]
        self.plain: list[set[str]] = [_known_outside(piece)]
        self.off = 0
        self.inside = 0
        self.covered: set[int] = set()
        """`.data` and `.detach()` that a hit for a write through them has named already."""

    def hit(self, key: str, node: ast.expr | ast.stmt) -> None:
        function = ".".join(n for n in [self.base, *self.names] if n)
        spot = place(self.file, node.lineno, node.col_offset, node.end_col_offset, node.end_lineno, function)
        self.hits.append((key, spot))

    # --- scopes -------------------------------------------------------------------------------------------------------

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        switched = False
        for decorator in node.decorator_list:
            switched |= self._switches_off(decorator)
        self._scope(node, node.name, switched)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        kept = {n for n in plain_names(node) if n.startswith("self.")}
        self.plain.append(kept)
        self.names.append(("<locals>." if self.inside else "") + node.name)
        inside, self.inside = self.inside, 0
        self.generic_visit(node)
        self.inside = inside
        self.names.pop()
        self.plain.pop()

    def _scope(self, node: ast.FunctionDef | ast.AsyncFunctionDef, name: str, switched: bool) -> None:
        known = plain_names(node)
        arguments = {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}
        outer = {n for n in self.plain[-1] if n not in arguments}
        self.plain.append(known | outer)
        self.names.append(("<locals>." if self.inside else "") + name)
        self.off += switched
        self.inside += 1
        for statement in node.body:
            self.visit(statement)
        self.inside -= 1
        self.off -= switched
        self.names.pop()
        self.plain.pop()

    def visit_With(self, node: ast.With | ast.AsyncWith) -> None:
        switched = False
        for item in node.items:
            switched |= self._switches_off(item.context_expr)
            if not isinstance(item.context_expr, ast.Call) or not self._is_switch(item.context_expr):
                self.visit(item.context_expr)
        self.off += switched
        for statement in node.body:
            self.visit(statement)
        self.off -= switched

    visit_AsyncWith = visit_With

    def _switches_off(self, node: ast.expr) -> bool:
        if not self._is_switch(node):
            return False
        call = node if isinstance(node, ast.Call) else None
        name = _last(call.func if call else node)
        first = call.args[0] if call and call.args else None
        if isinstance(first, ast.Constant) and first.value is (name == "set_grad_enabled"):
            return False  # set_grad_enabled(True), inference_mode(False)
        self.hit("no-grad", node)
        return True

    def _is_switch(self, node: ast.expr) -> bool:
        return _last(node.func if isinstance(node, ast.Call) else node) in _SWITCHES

    # --- statements ---------------------------------------------------------------------------------------------------

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        # An element of a list may be a tensor: it is written in place unless a plain number is added.
        part = isinstance(node.target, ast.Subscript)
        harmless = self._plain_target(node.target) and not (part and not self._literal(node.value))
        if not harmless and not _text(node.value):
            self.hit(self._write_key(node.target, "augmented"), node)
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self._assigned(target, node.value, node)
        self.generic_visit(node)

    def _assigned(self, target: ast.expr, value: ast.expr, node: ast.stmt) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            for part in target.elts:
                self._assigned(part, ast.Name("_"), node)
        elif isinstance(target, ast.Subscript) and not self._plain_target(target) and not _text(target.slice):
            self.hit(self._write_key(target, "setitem"), node)
        elif isinstance(target, ast.Attribute) and target.attr == "data":
            self.hit("data-write", node)
        elif isinstance(target, ast.Attribute) and target.attr == "requires_grad":
            if isinstance(value, ast.Constant) and value.value is False:
                self.hit("freeze", node)
        elif isinstance(target, ast.Attribute) and dotted(target) is not None and self._holds_layers(value):
            self.hit("plain-list", node)

    def _holds_layers(self, value: ast.expr) -> bool:
        """A plain list, tuple or dict whose elements are `nn.Something(...)` calls."""
        if isinstance(value, (ast.ListComp, ast.GeneratorExp)):
            parts = [value.elt]
        elif isinstance(value, (ast.List, ast.Tuple)):
            parts = value.elts
        else:
            parts = [v for v in value.values if v is not None] if isinstance(value, ast.Dict) else []
        calls = [p.func for p in parts if isinstance(p, ast.Call)]
        return any(
            (isinstance(f, ast.Attribute) and _last(f.value) == "nn" and f.attr[:1].isupper())
            or (isinstance(f, ast.Name) and f.id in self.torch_names and f.id[:1].isupper() and f.id != "Tensor")
            for f in calls
        )

    def _plain_target(self, target: ast.expr) -> bool:
        """Whether what is written is known to be a Python number, list or dict."""
        inner = target.value if isinstance(target, ast.Subscript) else target
        name = dotted(inner)
        return name is not None and (name in self.plain[-1] or name in self.other_modules)

    def _write_key(self, target: ast.expr, key: str) -> str:
        for node in ast.walk(target):
            through = "data-write" if isinstance(node, ast.Attribute) and node.attr == "data" else ""
            through = "detach-write" if isinstance(node, ast.Call) and _last(node.func) == "detach" else through
            if through:
                self.covered.add(id(node))
                return through
        return "no-grad-write" if self.off else key

    # --- expressions --------------------------------------------------------------------------------------------------

    def visit_Attribute(self, node: ast.Attribute) -> None:
        read = node.attr == "data" and isinstance(node.ctx, ast.Load) and id(node) not in self.covered
        if read and not self._names_module(node.value) and dotted(node) is None:
            self.hit("data", node)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Attribute):
            self._method(node, node.func)
        elif isinstance(node.func, ast.Name):
            self._plain_call(node, node.func.id)
        for keyword in node.keywords:
            if keyword.arg == "inplace" and isinstance(keyword.value, ast.Constant) and keyword.value.value is True:
                self.hit("inplace", node)
            elif keyword.arg == "out" and not isinstance(keyword.value, ast.Constant) and not self._foreign(node.func):
                self.hit("out", node)
        self.generic_visit(node)

    def _foreign(self, func: ast.expr) -> bool:
        """A function of another library, a method of the class itself or of its base: no tensor method."""
        owner = func.value if isinstance(func, ast.Attribute) else func
        own = isinstance(owner, ast.Name) and owner.id in ("self", "cls")
        return own or self._names_module(owner) or (isinstance(owner, ast.Call) and _last(owner.func) == "super")

    def _method(self, node: ast.Call, func: ast.Attribute) -> None:
        name, owner = func.attr, func.value
        if self._foreign(func):
            return
        of_torch = isinstance(owner, ast.Name) and owner.id in self.torch_names
        if name in ("detach", "detach_"):
            if id(node) not in self.covered:
                self.hit("detach", node)
        elif name == "requires_grad_":
            given = [*node.args, *(k.value for k in node.keywords)]
            if given and isinstance(given[0], ast.Constant) and given[0].value is False:
                self.hit("freeze", node)
        elif name.endswith("_") and not name.startswith("_") and name not in _HARMLESS:
            self._in_place_method(node, owner)
        elif name in _VALUES and not of_torch:
            self.hit("item", node)
        elif name in _MAKERS and of_torch:
            self._maker(node)
        elif name in _SWITCHES and not isinstance(owner, ast.Call):
            self._switches_off(node)
        elif name in _INDICES:
            self.hit("index", node)
        elif name in _CASTS and not of_torch and not node.args:
            self.hit("cast", node)
        elif name in _ROUNDS:
            self.hit("round", node)

    def _in_place_method(self, node: ast.Call, owner: ast.expr) -> None:
        if _last(owner) == "init":  # nn.init.kaiming_uniform_(w): meant to write, before any forward
            return
        self.hit(self._write_key(owner, "method"), node)

    def _plain_call(self, node: ast.Call, name: str) -> None:
        if name in ("float", "int", "bool") and len(node.args) == 1 and self._may_be_tensor(node.args[0]):
            self.hit("float", node)
        elif name in _MAKERS and name in self.torch_names:
            self._maker(node)
        elif name in _SWITCHES and name in self.torch_names:
            self._switches_off(node)

    def _may_be_tensor(self, argument: ast.expr) -> bool:
        """A bare name that is not known to be plain, or the result of a tensor-like expression; not `int(len(x))`."""
        if isinstance(argument, ast.Call):
            return isinstance(argument.func, ast.Attribute) and argument.func.attr in (
                "sum", "mean", "max", "min", "norm", "std", "var", "prod", "abs", "sqrt", "argmax", "argmin",
            )  # fmt: skip
        name = dotted(argument)
        return isinstance(argument, ast.Name) and name not in self.plain[-1] and name not in self.other_modules

    def _maker(self, node: ast.Call) -> None:
        if node.args and not self._literal(node.args[0]):
            self.hit("tensor", node)

    def _literal(self, node: ast.expr) -> bool:
        """Numbers, also in lists, and names that are known to be plain: there is no history to lose."""
        if isinstance(node, (ast.List, ast.Tuple)):
            return all(self._literal(e) for e in node.elts)
        name = dotted(node)
        return (name is not None and name in self.plain[-1]) or (not isinstance(node, PLAIN[1:]) and is_plain(node))

    def _names_module(self, owner: ast.expr) -> bool:
        """`math`, `np.linalg`: an imported module other than torch."""
        while isinstance(owner, ast.Attribute):
            owner = owner.value
        return isinstance(owner, ast.Name) and owner.id in self.other_modules


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _text(node: ast.expr) -> bool:
    """A string: what it is added to, or used as a key of, is no tensor."""
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
