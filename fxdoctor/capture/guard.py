"""Leaves no trace: what a run may change is noted before, and put back after, also when the model raises.

Storages that already existed are copied at the moment something is about to write to them (the recorder asks
`protect` first), so a model that writes nothing costs no memory.
"""

from __future__ import annotations

import collections
import contextlib
import copy
import random
import sys
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from .. import torch_compat


def deep_copy_inputs(tree: Any, shared: list[torch.Tensor]) -> Any:
    """A copy of the arguments that keeps identity, aliasing and `requires_grad`; `shared` tensors stay themselves.

    A non-leaf input becomes a leaf that requires grad: the caller's graph is not ours to touch.
    """
    memo: dict[int, Any] = {id(t): t for t in shared}
    for leaf in tensors_in(tree):
        if id(leaf) not in memo and (not leaf.is_leaf or leaf.is_inference()):
            memo[id(leaf)] = leaf.detach().clone().requires_grad_(leaf.requires_grad)
    return copy.deepcopy(tree, memo)


def tensors_in(tree: Any, depth: int = 6) -> Iterator[torch.Tensor]:
    """The tensors in nested containers, dataclasses and plain objects, in order."""
    if isinstance(tree, torch.Tensor):
        yield tree
    elif depth and isinstance(tree, dict):
        for value in tree.values():
            yield from tensors_in(value, depth - 1)
    elif depth and isinstance(tree, (list, tuple, set, frozenset, collections.deque)):
        for value in tree:
            yield from tensors_in(value, depth - 1)
    elif depth and hasattr(tree, "__dict__") and not isinstance(tree, (nn.Module, type)) and not callable(tree):
        for value in list(vars(tree).values()):
            yield from tensors_in(value, depth - 1)


class Guard:
    """The state of model, RNGs and modes before a run; `restore()` puts it back and may be called many times."""

    def __init__(self, model: nn.Module | None, named: dict[str, torch.Tensor]) -> None:
        self.modules = list(model.modules()) if model is not None else []
        self.attributes = [_attributes(m) for m in self.modules]
        self.named = named
        self.tensors = list(named.values())
        self.flags = [(t.requires_grad, t.grad_fn is None, t.data) for t in self.tensors]
        self.versions = [torch_compat.version_of(t) for t in self.tensors]
        self.grads = {id(t): (t, t.grad) for t in self.tensors if t.is_leaf}
        self.tensor_hooks = [(t, _copy_dict(torch_compat.tensor_hooks(t))) for t in self.tensors]
        self.accumulate_hooks: list[tuple[dict[Any, Any], dict[Any, Any]]] = []
        for t in self.tensors:
            self._note_accumulate_hooks(t)
        self.objects = Objects(self.attributes)
        self.rng = _rng_state()
        self.copies: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self.missed: list[str] = []

    def begin(self) -> None:
        """Clears gradients and sets aside hooks that would act after backward (fused optimizers)."""
        for t, _ in self.grads.values():
            t.grad = None
        for hooks, _ in self.accumulate_hooks:
            hooks.clear()

    def protect(self, tensor: torch.Tensor) -> None:
        """Copies the whole storage of `tensor`, once, because something is about to write to it."""
        key = torch_compat.storage_key(tensor)
        if key is None or key in self.copies or tensor.device.type == "meta":
            return
        storage = tensor.untyped_storage()
        if storage.nbytes() == 0:
            return
        raw = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(storage)  # type: ignore[arg-type]
        self.copies[key] = (raw, raw.clone())

    def keep_grad(self, leaf: torch.Tensor) -> None:
        """Notes and clears the gradient of a leaf that is no parameter of the model (found on the way to it)."""
        if id(leaf) not in self.grads:
            self.grads[id(leaf)] = (leaf, leaf.grad)
            leaf.grad = None
            self._note_accumulate_hooks(leaf)
            (torch_compat.accumulate_hooks(leaf) or {}).clear()

    def restore(self) -> None:
        """Everything back as it was. Gradients stay cleared until `finish`."""
        with torch.no_grad():
            for module, saved in zip(self.modules, self.attributes, strict=True):
                _restore_attributes(module, saved)
            self.objects.restore()
            for (t, hooks), flag in zip(self.tensor_hooks, self.flags, strict=True):
                self._restore_tensor(t, hooks, *flag)
            for raw, content in self.copies.values():
                raw.copy_(content)
        _set_rng_state(self.rng)
        for t, _ in self.grads.values():
            t.grad = None

    def finish(self) -> None:
        """The last restore: also gradients and the hooks set aside."""
        self.restore()
        copied = set(self.copies)
        for (name, t), version in zip(self.named.items(), self.versions, strict=True):
            if torch_compat.version_of(t) != version and torch_compat.storage_key(t) not in copied:
                self.missed.append(name)
        for t, grad in self.grads.values():
            t.grad = grad
        for hooks, before in self.accumulate_hooks:
            hooks.update(before)
        self.copies.clear()

    def _note_accumulate_hooks(self, t: torch.Tensor) -> None:
        """C++ holds the dict itself, so it is emptied, not replaced."""
        hooks = torch_compat.accumulate_hooks(t)
        if hooks:
            self.accumulate_hooks.append((hooks, dict(hooks)))

    def _restore_tensor(self, t: torch.Tensor, hooks: Any, grad: bool, was_leaf: bool, alias: torch.Tensor) -> None:
        if was_leaf and t.grad_fn is not None:
            t.detach_()
        if t.data_ptr() != alias.data_ptr() or t.shape != alias.shape or t.stride() != alias.stride():
            t.data = alias
        if t.requires_grad != grad and t.is_leaf:
            t.requires_grad_(grad)
        if (torch_compat.tensor_hooks(t) or None) != (hooks or None):
            torch_compat.set_tensor_hooks(t, hooks)


@contextlib.contextmanager
def neutral_modes() -> Iterator[None]:
    """Grad mode on whatever the caller set, `torch.compile` off; both as before afterwards."""
    stance: Any = contextlib.nullcontext()
    if "torch._dynamo" in sys.modules and hasattr(torch.compiler, "set_stance"):
        stance = torch.compiler.set_stance("force_eager")
    with stance, torch.inference_mode(False), torch.enable_grad():
        yield


def _copy_dict(value: Any) -> Any:
    return None if value is None else copy.copy(value)


_EMPTY: tuple[Any, ...] = ()
_CONTAINERS = (dict, list, set, collections.deque)


def _attributes(module: nn.Module) -> tuple[dict[str, Any], dict[str, Any]]:
    """The module's `__dict__`, and shallow copies of the containers in it (parameters, hooks, the user's lists)."""
    own = module.__dict__.copy()
    return own, {k: v.copy() if v else _EMPTY for k, v in own.items() if isinstance(v, _CONTAINERS)}


class Objects:
    """The plain objects and nested containers that modules hold, as they were: fields, elements, generator states."""

    MOST = 50_000

    def __init__(self, attributes: list[tuple[dict[str, Any], dict[str, Any]]]) -> None:
        self.containers: list[tuple[Any, Any]] = []
        self.fields: list[tuple[Any, dict[str, Any]]] = []
        self.generators: list[tuple[Any, Any]] = []
        self.seen: set[int] = set()
        for own, _ in attributes:
            for name, value in own.items():
                if name not in ("_parameters", "_buffers", "_modules") and not name.endswith("_hooks"):
                    self._visit(value, 6)

    def _visit(self, value: Any, depth: int) -> None:
        if depth == 0 or type(value) in _ATOMS or id(value) in self.seen or len(self.seen) > self.MOST:
            return
        if isinstance(value, (torch.Tensor, nn.Module, type, torch.dtype, torch.device)):
            return
        self.seen.add(id(value))
        if isinstance(value, _CONTAINERS):
            self.containers.append((value, copy.copy(value)))
            parts = list(value.values()) if isinstance(value, dict) else list(value)
        elif isinstance(value, (tuple, frozenset)):
            parts = list(value)
        elif (saved := _generator_state(value)) is not None:
            self.generators.append((value, saved))
            return
        elif hasattr(value, "__dict__") and not callable(value) and type(value).__module__ != "builtins":
            self.fields.append((value.__dict__, dict(value.__dict__)))
            parts = list(value.__dict__.values())
        else:
            return
        for part in parts:
            self._visit(part, depth - 1)

    def restore(self) -> None:
        for container, before in self.containers:
            _refill(container, before)
        for fields, own in self.fields:
            _refill(fields, own)
        for generator, state in self.generators:
            _set_generator_state(generator, state)


_ATOMS = frozenset([int, float, bool, str, bytes, type(None), complex])


def _generator_state(value: Any) -> Any:
    if isinstance(value, torch.Generator):
        return value.get_state()
    if isinstance(value, random.Random):
        return value.getstate()
    if type(value).__module__.startswith("numpy.random") and hasattr(value, "bit_generator"):
        return value.bit_generator.state
    return None


def _set_generator_state(value: Any, state: Any) -> None:
    if isinstance(value, torch.Generator):
        value.set_state(state)
    elif isinstance(value, random.Random):
        value.setstate(state)
    else:
        value.bit_generator.state = state


def _restore_attributes(module: nn.Module, saved: tuple[dict[str, Any], dict[str, Any]]) -> None:
    own, containers = saved
    current = module.__dict__
    for name in [k for k in current if k not in own]:
        del current[name]
    for name, value in own.items():
        if current.get(name) is not value or name not in current:
            current[name] = value
    for name, before in containers.items():
        held = own[name]
        if held or before:
            _refill(held, before)


def _refill(container: Any, before: Any) -> None:
    if _same(container, before):
        return
    container.clear()
    if isinstance(container, (dict, set)):
        container.update(before)
    else:
        container.extend(before)


def _same(a: Any, b: Any) -> bool:
    if len(a) != len(b):
        return False
    if isinstance(a, dict):
        return all(x is y and a[x] is b[y] for x, y in zip(a, b, strict=True))
    if isinstance(a, set):
        return bool(a == b)
    return all(x is y for x, y in zip(a, b, strict=True))


def _rng_state() -> dict[str, Any]:
    state: dict[str, Any] = {"torch": torch.get_rng_state(), "python": random.getstate()}
    if torch.cuda.is_initialized():
        state["cuda"] = torch.cuda.get_rng_state_all()
    if "numpy" in sys.modules:
        import numpy as np

        state["numpy"] = np.random.get_state()
    return state


def _set_rng_state(state: dict[str, Any]) -> None:
    torch.set_rng_state(state["torch"])
    random.setstate(state["python"])
    if "cuda" in state:
        torch.cuda.set_rng_state_all(state["cuda"])
    if "numpy" in state:
        import numpy as np

        np.random.set_state(state["numpy"])
