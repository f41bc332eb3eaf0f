"""Symbolic capture: `torch.fx` tracing, made sound for mutation and for grad mode.

`torch.fx.symbolic_trace` as it comes turns `v += 1` into `v + 1`, cannot assign to a part, bakes tensors that forward
creates, and loses `no_grad`, autocast and custom Functions. Here each of these is a node:

1. augmented assignment and assignment to a part are `operator.iadd(...)`, `operator.setitem(...)` and their like;
2. switches of grad mode, inference mode and autocast are calls of the functions behind the context managers;
3. torch calls without a proxy among their arguments (`torch.zeros`, random draws, ops on constants) are recorded;
4. `autograd.Function.apply` and `nn.Parameter(...)` on a proxy are one call each.

What cannot be recorded so (control flow on values, hooks on the root, unknown containers) raises `CaptureError`.
"""

from __future__ import annotations

import contextlib
import inspect
import operator
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import fx, nn
from torch.fx._symbolic_trace import PH
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from .. import torch_compat
from . import ops
from .errors import CaptureError
from .guard import Guard
from .patches import replaced
from .source import decorated_function, locate, user_spot
from .trace import raised_at

_TENSOR_ATTRIBUTES = frozenset(["data", "T", "mT", "H", "mH", "real", "imag"])
_FACTORIES = tuple("zeros ones empty full rand randn randint arange linspace eye randperm".split())
_AUGMENTED = (
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "matmul",
    "and",
    "or",
    "xor",
    "lshift",
    "rshift",
)


class MutableProxy(fx.Proxy):
    """A proxy that records writes as writes."""

    def __getattr__(self, k: str) -> Any:
        """Attributes that are tensors are read where the source reads them, not where they are first used."""
        if k in _TENSOR_ATTRIBUTES:
            return self.tracer.create_proxy("call_function", getattr, (self, k), {})
        return super().__getattr__(k)

    def __setitem__(self, index: Any, value: Any) -> None:
        self.tracer.create_proxy("call_function", operator.setitem, (self, index, value), {})


def _augmented(name: str) -> Callable[[MutableProxy, Any], Any]:
    function = getattr(operator, f"i{name}")

    def write(self: MutableProxy, other: Any) -> Any:
        return self.tracer.create_proxy("call_function", function, (self, other), {})

    return write


for _name in _AUGMENTED:
    setattr(MutableProxy, f"__i{_name}__", _augmented(_name))
_IN_PLACE = frozenset(getattr(operator, f"i{name}") for name in _AUGMENTED)


class LocatingTracer(fx.Tracer):
    """Attaches the user's place and the module path to each node."""

    proxy_buffer_attributes = True

    def __init__(self) -> None:
        super().__init__()
        self.path = [""]

    def proxy(self, node: fx.Node) -> MutableProxy:
        return MutableProxy(node, self)

    def create_node(self, *args: Any, **kwargs: Any) -> fx.Node:
        node = super().create_node(*args, **kwargs)
        node.meta["location"] = locate(user_spot(2))
        node.meta["module_path"] = self.path[-1]
        if node.target is torch_compat.set_grad_enabled():
            node.meta["decorated"] = decorated_function(2)
        return node

    def call_module(
        self, m: nn.Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        self.path.append(self.path_of_module(m))
        try:
            return super().call_module(m, forward, args, kwargs)
        finally:
            self.path.pop()


class _Recording(TorchFunctionMode):
    """Records every torch call, also those that no proxy takes part in or that cannot parse one (`torch.zeros(n)`), and
    switches of grad mode."""

    def __init__(self, tracer: LocatingTracer) -> None:
        super().__init__()
        self.tracer = tracer

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        op = ops.op_of(func)
        if op.name == ops.GRAD_SWITCH:
            self.tracer.create_proxy("call_function", torch_compat.set_grad_enabled(), args, kwargs)
            return func(*args, **kwargs)
        proxied = any(isinstance(a, fx.Proxy) for a in pytree.tree_leaves((args, kwargs)))
        if op.skip or (proxied and (op.exit or op.lead)):
            return func(*args, **kwargs)
        if op.exit or op.lead:
            raise CaptureError(f"{op.name} on a constant tensor decides what runs", locate(user_spot(2)))
        return self.tracer.create_proxy(op.op, op.target, args, kwargs)


def capture_symbolic(model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> fx.GraphModule:
    """The model as a `GraphModule` of torch-level calls, sharing its parameters and buffers under the same names.

    Leaf modules of torch.nn stay calls of modules and follow `.train()` and `.eval()`; `self.training` read by the
    user's own code is baked, as `meta["baked_training"]` says.

    Raises:
        CaptureError: the forward cannot be recorded faithfully; says why, and at which line where known.
    """
    if model._forward_hooks or model._forward_pre_hooks:
        raise CaptureError("hooks on the outermost module run outside its forward and would be lost")
    tracer = LocatingTracer()
    guard = Guard(model, {**dict(model.named_parameters()), **dict(model.named_buffers())})
    try:
        concrete = _concrete_arguments(model, args, kwargs)
        with torch.enable_grad(), _patched(tracer), _Recording(tracer):
            graph = tracer.trace(model, concrete_args=concrete)
        _refuse_assignments(model)
        result = fx.GraphModule(tracer.root, graph, class_name=type(model).__name__)
    except CaptureError:
        raise
    except Exception as error:
        raise CaptureError(f"{type(error).__name__}: {str(error).splitlines()[0]}", raised_at(error)) from error
    finally:
        guard.finish()
    share_names(result, model)
    result.meta["baked_training"] = model.training
    return result


def _refuse_assignments(model: nn.Module) -> None:
    """`self.state = new` in forward is no node; an augmented assignment has written in place and needs none."""
    for prefix, module in model.named_modules():
        for name, value in [*vars(module).items(), *module._buffers.items()]:
            if isinstance(value, fx.Proxy) and value.node.target not in _IN_PLACE:
                raise CaptureError(
                    f"forward assigns {prefix}{'.' if prefix else ''}{name}, which tracing cannot record",
                    value.node.meta.get("location"),
                )


def share_names(result: fx.GraphModule, model: nn.Module) -> None:
    """Puts back the parameters and buffers that the graph does not name; `GraphModule` drops them."""
    for name, p in model.named_parameters(remove_duplicate=False):
        owner, last = _owner(result, name)
        if last not in owner._parameters:
            owner.register_parameter(last, p)
    for name, b in model.named_buffers(remove_duplicate=False):
        owner, last = _owner(result, name)
        if last not in owner._buffers:
            kept = last not in model.get_submodule(name.rpartition(".")[0])._non_persistent_buffers_set
            owner.register_buffer(last, b, persistent=kept)


def _owner(root: nn.Module, name: str) -> tuple[nn.Module, str]:
    """The module of `root` that holds `name`, made where it is missing."""
    *path, last = name.split(".")
    owner = root
    for part in path:
        if part not in owner._modules:
            owner.add_module(part, nn.Module())
        owner = owner._modules[part]  # type: ignore[assignment]
    if last not in owner._parameters and last not in owner._buffers:
        owner.__dict__.pop(last, None)  # the tracer copies what it does not know as a plain attribute
    return owner, last


def _concrete_arguments(model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Everything but tensors is fixed; containers with tensors keep their structure."""
    signature = inspect.signature(model.forward)
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    concrete: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        if signature.parameters[name].kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            if value:
                raise CaptureError(f"forward takes *{name}; give its arguments names")
            continue
        if isinstance(value, torch.Tensor):
            continue
        leaves = pytree.tree_leaves(value)
        if any(isinstance(leaf, torch.Tensor) for leaf in leaves):
            value = pytree.tree_map(lambda leaf: PH if isinstance(leaf, torch.Tensor) else leaf, value)
        concrete[name] = value
    return concrete


@contextlib.contextmanager
def _patched(tracer: LocatingTracer) -> Iterator[None]:
    owner = torch_compat.function_base()
    original = vars(owner).get("apply")
    new_parameter = vars(nn.Parameter)["__new__"]

    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if any(isinstance(a, fx.Proxy) for a in pytree.tree_leaves((args, kwargs))):
            return tracer.create_proxy("call_function", cls.apply, args, kwargs)
        bound = original.__get__(None, cls) if original is not None else super(owner, cls).apply
        return bound(*args, **kwargs)

    def new(cls: Any, data: Any = None, requires_grad: bool = True) -> Any:
        if isinstance(data, fx.Proxy):
            return tracer.create_proxy("call_function", nn.Parameter, (data, requires_grad), {})
        return new_parameter.__get__(None, nn.Parameter)(cls, data, requires_grad)

    with contextlib.ExitStack() as stack:
        stack.enter_context(replaced(owner, "apply", classmethod(apply)))
        stack.enter_context(replaced(nn.Parameter, "__new__", staticmethod(new)))
        for name in _FACTORIES:
            stack.enter_context(replaced(torch, name, _factory(tracer, getattr(torch, name))))
        stack.enter_context(_scopes(tracer, torch.autocast, torch_compat.autocast_switches(), _autocast_arguments))
        stack.enter_context(
            _scopes(tracer, torch.inference_mode, torch_compat.inference_switches(), lambda s: (s.mode,))
        )
        yield


def _factory(tracer: LocatingTracer, original: Callable[..., Any]) -> Callable[..., Any]:
    """`torch.zeros(n)` with a traced size: torch's own argument parser would refuse it before any mode sees it."""

    def make(*args: Any, **kwargs: Any) -> Any:
        if any(isinstance(a, fx.Proxy) for a in pytree.tree_leaves((args, kwargs))):
            return tracer.create_proxy("call_function", original, args, kwargs)
        return original(*args, **kwargs)

    return make


def _autocast_arguments(scope: Any) -> tuple[Any, ...]:
    return scope.device, scope.fast_dtype, scope._enabled, scope._cache_enabled


@contextlib.contextmanager
def _scopes(
    tracer: LocatingTracer, cls: Any, switches: tuple[Any, Any], arguments: Callable[[Any], Any]
) -> Iterator[None]:
    """Records entering and leaving a context manager as calls of the two functions behind it."""
    open_scopes: list[Any] = []

    def enter(self: Any) -> Any:
        open_scopes.append(tracer.create_proxy("call_function", switches[0], arguments(self), {}))
        return self

    def leave(self: Any, *error: Any) -> None:
        tracer.create_proxy("call_function", switches[1], (open_scopes.pop(),), {})

    with replaced(cls, "__enter__", enter), replaced(cls, "__exit__", leave):
        yield
