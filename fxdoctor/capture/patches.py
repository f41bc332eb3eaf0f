"""Hooks for what a `TorchFunctionMode` does not see, in place only while a run is recorded.

They change nothing of what the model computes; each is put back whatever happens.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from .. import torch_compat
from . import ops

if TYPE_CHECKING:
    from .record import Recorder


@contextlib.contextmanager
def recording(recorder: Recorder, names: dict[int, str]) -> Iterator[None]:
    """Installs all hooks; `names` maps `id(module)` to its dotted name."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(_module_calls(recorder, names))
        stack.enter_context(_function_apply(recorder))
        stack.enter_context(_function_forwards(recorder))
        stack.enter_context(_new_parameters(recorder))
        stack.enter_context(_inference_mode(recorder))
        stack.enter_context(_transforms(recorder))
        stack.enter_context(_autocast(recorder))
        stack.enter_context(_as_subclass(recorder))
        stack.enter_context(_saved_tensors_hooks(recorder))
        yield


@contextlib.contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Sets an attribute of a class or module, and puts back exactly what its `__dict__` held (or nothing)."""
    missing = object()
    before = vars(owner).get(name, missing)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if before is missing:
            delattr(owner, name)
        else:
            setattr(owner, name, before)


def _idle(recorder: Recorder) -> bool:
    """Whether a hook must stay out of the way: another thread, or inside a call that is one node already."""
    return (
        threading.get_ident() != recorder.thread
        or bool(recorder.busy or recorder.opaque)
        or torch_compat.transform_level()
    )


@contextlib.contextmanager
def _module_calls(recorder: Recorder, names: dict[int, str]) -> Iterator[None]:
    original = nn.Module.__call__
    path = recorder.module_path

    def call(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        if threading.get_ident() != recorder.thread:
            return original(self, *args, **kwargs)
        name = names.get(id(self))
        path.append(name if name is not None else f"{path[-1]}.({type(self).__name__})".lstrip("."))
        try:
            if isinstance(self, torch.jit.ScriptModule) and not _idle(recorder):
                return recorder.run_opaque("script", self, lambda *a, **k: original(self, *a, **k), args, kwargs)
            return original(self, *args, **kwargs)
        finally:
            path.pop()

    with replaced(nn.Module, "__call__", call):
        yield


@contextlib.contextmanager
def _function_apply(recorder: Recorder) -> Iterator[None]:
    """`MyFunction.apply(...)`: set on Function's Python base, so that the C method below it stays untouched."""
    owner = torch_compat.function_base()
    original = vars(owner).get("apply")

    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        bound = original.__get__(None, cls) if original is not None else super(owner, cls).apply
        if _idle(recorder):
            return bound(*args, **kwargs)
        return recorder.run_opaque(cls.__name__, cls.apply, bound, args, kwargs)

    with replaced(owner, "apply", classmethod(apply)):
        yield


def _subclasses(cls: Any) -> Iterator[type]:
    for sub in cls.__subclasses__():
        yield sub
        yield from _subclasses(sub)


@contextlib.contextmanager
def _function_forwards(recorder: Recorder) -> Iterator[None]:
    """`fn = MyFunction.apply` kept from before: the C method calls the class's own `forward`, which is wrapped."""
    with contextlib.ExitStack() as stack:
        for cls in set(_subclasses(torch.autograd.Function)):
            own = vars(cls).get("forward")
            if isinstance(own, staticmethod):
                stack.enter_context(
                    replaced(cls, "forward", staticmethod(_wrapped_forward(recorder, cls, own.__func__)))
                )
        yield


def _wrapped_forward(recorder: Recorder, cls: type, original: Callable[..., Any]) -> Callable[..., Any]:
    takes_ctx = vars(cls).get("setup_context") is None

    def forward(*args: Any, **kwargs: Any) -> Any:
        if _idle(recorder):
            return original(*args, **kwargs)
        inputs = args[1:] if takes_ctx else args
        recorder.begin_stored_apply(cls, inputs)
        try:
            result = original(*args, **kwargs)
        except BaseException:
            recorder.abandon_stored_apply()
            raise
        recorder.end_stored_apply(cls, inputs, result)
        return result

    return forward


@contextlib.contextmanager
def _new_parameters(recorder: Recorder) -> Iterator[None]:
    """`nn.Parameter(tensor)` in forward: a new leaf, cut off from the tensor's history."""
    original = vars(nn.Parameter)["__new__"]
    op = ops.Op("Parameter", "call_function", nn.Parameter, False, False)

    def new(cls: Any, data: Any = None, requires_grad: bool = True) -> Any:
        make = original.__get__(None, nn.Parameter)
        if cls is not nn.Parameter or not isinstance(data, torch.Tensor) or _idle(recorder):
            return make(cls, data, requires_grad)
        return recorder.run(op, lambda d, r: make(cls, d, r), (data, requires_grad), {})

    with replaced(nn.Parameter, "__new__", staticmethod(new)):
        yield


@contextlib.contextmanager
def _inference_mode(recorder: Recorder) -> Iterator[None]:
    cls = torch.inference_mode
    enter, leave = cls.__enter__, cls.__exit__

    def entered(self: Any) -> Any:
        result = enter(self)
        if not _idle(recorder):
            recorder.switch_grad(not self.mode, "inference_mode")
        return result

    def left(self: Any, *args: Any) -> Any:
        result = leave(self, *args)
        if not _idle(recorder):
            recorder.switch_grad(True, "inference_mode")
        return result

    with replaced(cls, "__enter__", entered), replaced(cls, "__exit__", left):
        yield


@contextlib.contextmanager
def _transforms(recorder: Recorder) -> Iterator[None]:
    """vmap, grad, vjp, jvp of `torch.func`: one opaque node each."""
    with contextlib.ExitStack() as stack:
        for owner, name in torch_compat.transform_entry_points():
            stack.enter_context(replaced(owner, name, _wrapped_transform(recorder, name, getattr(owner, name))))
        yield


def _wrapped_transform(recorder: Recorder, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    def transform(*args: Any, **kwargs: Any) -> Any:
        if _idle(recorder):
            return original(*args, **kwargs)
        return recorder.run_opaque(name, original, original, args, kwargs)

    return transform


@contextlib.contextmanager
def _autocast(recorder: Recorder) -> Iterator[None]:
    """Autocast keeps cast weights until its outermost block ends, so a replay must nest as the run did."""
    cls = torch.autocast
    enter, leave = cls.__enter__, cls.__exit__

    def entered(self: Any) -> Any:
        if not _idle(recorder):
            if not recorder.autocast:
                recorder.autocast_epoch += 1
            recorder.autocast.append((self.device, self.fast_dtype, self._enabled, self._cache_enabled))
        return enter(self)

    def left(self: Any, *args: Any) -> Any:
        if not _idle(recorder) and recorder.autocast:
            recorder.autocast.pop()
        return leave(self, *args)

    with replaced(cls, "__enter__", entered), replaced(cls, "__exit__", left):
        yield


@contextlib.contextmanager
def _as_subclass(recorder: Recorder) -> Iterator[None]:
    original = torch.Tensor.as_subclass
    op = ops.Op("as_subclass", "call_method", "as_subclass", False, False)

    def as_subclass(self: torch.Tensor, cls: Any) -> Any:
        if _idle(recorder):
            return original(self, cls)
        return recorder.run(op, original, (self, cls), {})

    with replaced(torch.Tensor, "as_subclass", as_subclass):
        yield


@contextlib.contextmanager
def _saved_tensors_hooks(recorder: Recorder) -> Iterator[None]:
    cls = torch.autograd.graph.saved_tensors_hooks
    enter, leave = cls.__enter__, cls.__exit__

    def entered(self: Any) -> Any:
        recorder.saved_hooks += 1
        return enter(self)

    def left(self: Any, *args: Any) -> Any:
        recorder.saved_hooks -= 1
        return leave(self, *args)

    with replaced(cls, "__enter__", entered), replaced(cls, "__exit__", left):
        yield
