"""Dynamo capture: the full graph that TorchDynamo takes from the bytecode, at torch level (before autograd).

Dynamo inlines modules, keeps in-place ops, `detach`, grad-mode calls and `inplace=True`, and bakes `self.training`.
Its names for parameters are mapped back to the model's own, by identity.
"""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Callable
from typing import Any

from torch import fx, nn

from ..report.model import Location
from .errors import CaptureError
from .guard import Guard
from .source import is_internal, place
from .symbolic import share_names

_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>\S+)')


def capture_dynamo(model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> fx.GraphModule:
    """The model as one `GraphModule`, sharing its parameters and buffers under the same names.

    Raises:
        CaptureError: Dynamo cannot take the model in one graph; names the break's line and Dynamo's reason.
    """
    import torch._dynamo

    guard = Guard(model, {**dict(model.named_parameters()), **dict(model.named_buffers())})
    torch._dynamo.reset()
    try:
        with torch.compiler.set_stance("default"), torch.enable_grad():
            exported, _ = torch._dynamo.export(model, aten_graph=False, tracing_mode="real")(*args, **kwargs)
    except Exception as error:
        raise CaptureError(_reason(error), _place_in(str(error))) from error
    finally:
        torch._dynamo.reset()
        guard.finish()
    _rename(exported, model)
    share_names(exported, model)
    exported.meta["baked_training"] = model.training
    return exported


def _reason(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"


def _rename(exported: fx.GraphModule, model: nn.Module) -> None:
    """Maps each get_attr node to the model's own name of the tensor, and attaches places and module paths."""
    names = {id(t): n for n, t in reversed([*model.named_parameters(), *model.named_buffers()])}
    mangled = {f"L__self___{n.replace('.', '_')}": n for n in names.values()}
    for node in exported.graph.nodes:
        if node.op == "get_attr":
            target = str(node.target)
            name = names.get(id(_attribute(exported, target))) or mangled.get(target)
            if name is not None:
                node.target = name
                _set(exported, name, model)
        node.meta["location"] = _place_in(node.meta.get("stack_trace") or "", node)
        node.meta["module_path"] = _module_path(node, model)
    _rename_modules(exported, model)
    used = {str(n.target) for n in exported.graph.nodes if n.op == "get_attr"}
    for held in (exported._parameters, exported._buffers):
        for name in [n for n in held if n not in used]:
            del held[name]
    exported.recompile()


def _rename_modules(exported: fx.GraphModule, model: nn.Module) -> None:
    """Before torch 2.7 Dynamo kept torch.nn modules as calls under names of its own (`L__self___fc`)."""
    names = {id(m): n for n, m in reversed(list(model.named_modules()))}
    mangled = {f"L__self___{n.replace('.', '_')}": n for n in names.values()}
    for node in exported.graph.nodes:
        if node.op != "call_module":
            continue
        called = exported.get_submodule(str(node.target))
        name = names.get(id(called)) or mangled.get(str(node.target))
        if name:
            *path, last = name.split(".")
            owner: nn.Module = exported
            for part in path:
                if part not in owner._modules:
                    owner.add_module(part, nn.Module())
                owner = owner._modules[part]  # type: ignore[assignment]
            owner.add_module(last, model.get_submodule(name))
            node.target = name
    called_now = {str(n.target).split(".")[0] for n in exported.graph.nodes if n.op == "call_module"}
    for held in [n for n in exported._modules if n.startswith("L__self__") and n not in called_now]:
        del exported._modules[held]


def _attribute(root: Any, target: str) -> Any:
    for part in target.split("."):
        root = getattr(root, part, None)
    return root


def _set(exported: fx.GraphModule, name: str, model: nn.Module) -> None:
    """Makes `name` resolve in the exported module before it is recompiled."""
    *path, last = name.split(".")
    owner: nn.Module = exported
    for part in path:
        if part not in owner._modules:
            owner.add_module(part, nn.Module())
        owner = owner._modules[part]  # type: ignore[assignment]
    tensor = _attribute(model, name)
    register: Callable[[str, Any], None] = (
        owner.register_parameter if isinstance(tensor, nn.Parameter) else owner.register_buffer
    )
    if last not in owner._parameters and last not in owner._buffers:
        register(last, tensor)


def _module_path(node: fx.Node, model: nn.Module) -> str:
    """The innermost module of Dynamo's `nn_module_stack`, as `named_modules` calls it; "" where it is not known."""
    stack = node.meta.get("nn_module_stack") or {}
    if not stack:
        return ""
    qualified = str(list(stack.values())[-1][0])
    path = re.sub(r"\['(\w+)'\]|\[(\d+)\]", lambda m: "." + (m[1] or m[2]), qualified)
    path = re.sub(r"^L\.(s|self)\.?|^self\.?", "", path).replace("_modules.", "")
    known = dict(model.named_modules())
    return path if path in known else ""


def _place_in(text: str, node: fx.Node | None = None) -> Location | None:
    """The innermost user frame in a traceback's text. Columns are found where one call of that line fits the node."""
    frames = [m for m in _FRAME.finditer(text) if not is_internal(m["file"])]
    if not frames:
        return None
    last = frames[-1]
    file, line = last["file"], int(last["line"])
    start, end = _columns(file, line, node)
    return place(file, line, start, end, line, last["function"])


def _columns(file: str, line: int, node: fx.Node | None) -> tuple[int | None, int | None]:
    text = linecache.getline(file, line)
    if node is None or not node.op.startswith("call"):
        return None, None
    name = str(node.target) if node.op == "call_method" else getattr(node.target, "__name__", "")
    try:
        tree = ast.parse(text.strip())
    except SyntaxError:
        return None, None
    indent = len(text) - len(text.lstrip())
    fits = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and _called(n) == name]
    if len(fits) != 1 or fits[0].end_col_offset is None:
        return None, None
    return fits[0].col_offset + indent, fits[0].end_col_offset + indent


def _called(call: ast.Call) -> str:
    return getattr(call.func, "attr", getattr(call.func, "id", ""))
