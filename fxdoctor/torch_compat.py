"""Every private torch name that fxdoctor touches, one small function each.

A new torch release that moves one of them breaks this file and `tests/test_torch_compat.py`, nothing else.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

import torch


def storage_key(tensor: torch.Tensor) -> int | None:
    """The address of the tensor's StorageImpl (`torch/csrc/Storage.cpp`, `_cdata`); None where it has no storage."""
    try:
        return int(tensor.untyped_storage()._cdata)
    except (RuntimeError, NotImplementedError):  # sparse, functorch wrappers
        return None


def version_of(tensor: torch.Tensor) -> int | None:
    """The version counter (`torch/csrc/autograd/python_variable.cpp`); None for inference tensors, which have none."""
    try:
        return tensor._version
    except RuntimeError:
        return None


def sequence_nr(grad_fn: Any) -> int | None:
    """When the autograd node was made, counted per thread (`torch/csrc/autograd/node.h`); None for AccumulateGrad."""
    number = int(grad_fn._sequence_nr())
    return None if number >= 1 << 62 else number


def transform_level() -> bool:
    """Whether a `torch.func` transform is running (`torch/csrc/functorch/init.cpp`)."""
    return torch._C._functorch.maybe_current_level() is not None


def new_node(graph: Any, op: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], name: str) -> Any:
    """`graph.create_node` without the walk over all arguments that it makes to warn of symbolic sizes
    (`torch/fx/graph.py`)."""
    node = graph.create_node(op, target, (), {}, name)
    type(node).args.fset(node, args)
    if kwargs:
        type(node).kwargs.fset(node, kwargs)
    return node


def transform_entry_points() -> list[tuple[Any, str]]:
    """Where `torch.func` enters a transform (`torch/_functorch/apis.py`, `eager_transforms.py`), as (module, name)."""
    import torch._functorch.apis as apis
    import torch._functorch.eager_transforms as eager

    wanted = [(apis, "vmap_impl"), (eager, "grad_impl"), (eager, "grad_and_value_impl")]
    wanted += [(eager, "_vjp_with_argnums"), (eager, "_jvp_with_argnums")]
    return [(owner, name) for owner, name in wanted if hasattr(owner, name)]


def base_of(tensor: torch.Tensor) -> torch.Tensor | None:
    """The tensor that a view looks into (`torch/csrc/autograd/python_variable.cpp`, `_base`); None for no view."""
    return tensor._base


def is_view(tensor: torch.Tensor) -> bool:
    """Whether autograd sees the tensor as a view (`torch/csrc/autograd/python_variable.cpp`, `_is_view`)."""
    return tensor._is_view()


def tensor_hooks(tensor: torch.Tensor) -> dict[int, Any] | None:
    """The dict of `Tensor.register_hook` (`torch/_tensor.py`, `_backward_hooks`); None before the first hook."""
    hooks: dict[int, Any] | None = tensor._backward_hooks
    return hooks


def set_tensor_hooks(tensor: torch.Tensor, hooks: dict[int, Any] | None) -> None:
    """Puts back what `tensor_hooks` gave."""
    tensor._backward_hooks = hooks


def accumulate_hooks(tensor: torch.Tensor) -> dict[int, Any] | None:
    """The dict of `register_post_accumulate_grad_hook` (`torch/_tensor.py`). C++ holds this very dict: to set hooks
    aside it must be emptied, not replaced."""
    return getattr(tensor, "_post_accumulate_grad_hooks", None)


def function_base() -> Any:
    """The Python class that custom Functions inherit `apply` from (`torch/autograd/function.py`): `Function` itself
    where it defines `apply`, else its base above the C class."""
    function: Any = torch.autograd.Function
    return function if "apply" in vars(function) else torch.autograd.function._SingleLevelFunction


def set_grad_enabled() -> Any:
    """The function behind `torch.set_grad_enabled`, as a graph node's target (`torch/autograd/grad_mode.py`)."""
    return torch._C._set_grad_enabled


def autocast_switches() -> tuple[Any, Any]:
    """(enter, exit) of autocast as graph node targets (`torch/amp/autocast_mode.py`)."""
    return torch.amp.autocast_mode._enter_autocast, torch.amp.autocast_mode._exit_autocast


def inference_switches() -> tuple[Any, Any]:
    """(enter, exit) of inference_mode as graph node targets (`torch/autograd/grad_mode.py`)."""
    return torch.autograd.grad_mode._enter_inference_mode, torch.autograd.grad_mode._exit_inference_mode


def free_in_order(functions: list[Any]) -> None:
    """Drops grad_fns that Python has seen, the latest first, and empties the list.

    From torch 2.14 a grad_fn keeps its Python object (`torch/csrc/autograd/python_cpp_function.cpp`), and freeing a
    chain of such objects recurses: some 20,000 of them overflow the C stack. Freed one by one from the loss's end,
    none has a successor to free.
    """
    order = {id(f): sequence_nr(f) for f in functions}
    functions.sort(key=lambda f: -1 if (n := order[id(f)]) is None else n)
    while functions:
        functions.pop()


@functools.cache
def grad_fn_keeps_object() -> bool:
    """Whether a grad_fn owns its Python object from when Python first saw it (torch 2.13 and newer,
    `torch/csrc/autograd/python_cpp_function.cpp`): then the reference count is one higher than our own."""
    leaf = torch.zeros((), device="cpu").requires_grad_()
    with torch.enable_grad():
        outer = leaf.sin().cos()  # must live: the object is kept for the sake of the node above
    inner = outer.grad_fn.next_functions[0][0]  # type: ignore[union-attr]
    plain = object()
    return sys.getrefcount(inner) > sys.getrefcount(plain)


def saved_names(grad_fn: Any) -> list[str]:
    """The tensors that a grad_fn saves, by the names behind `_saved_` (generated: `python_functions*.cpp` in
    `torch/csrc/autograd/generated`); ["tensors"] for a custom Function (`python_function.cpp`)."""
    kind = type(grad_fn)
    found = _saved_names.get(kind)
    if found is None:
        if hasattr(grad_fn, "_forward_cls"):
            return ["tensors"]
        found = [n.removeprefix("_raw_saved_") for n in dir(grad_fn) if n.startswith("_raw_saved_")]
        _saved_names[kind] = found
    return found


_saved_names: dict[type, list[str]] = {}


def raw_saved(grad_fn: Any, name: str) -> tuple[Any, ...]:
    """The `SavedTensor` objects behind a name of `saved_names`, not unpacked (`torch/csrc/autograd/init.cpp`).

    Raises RuntimeError when backward has freed them already.
    """
    raw = getattr(grad_fn, f"_raw_saved_{name}")
    return raw if isinstance(raw, tuple) else () if raw is None else (raw,)


def read_saved(grad_fn: Any, name: str) -> bool:
    """Unpacks what a grad_fn saved, with autograd's version check, and drops it; whether there was a tensor at all."""
    value = getattr(grad_fn, "saved_tensors" if name == "tensors" else f"_saved_{name}")
    return any(v is not None for v in value) if isinstance(value, (tuple, list)) else value is not None


def has_unpack_hook(raw: Any) -> bool | None:
    """Whether unpacking a `SavedTensor` calls a user's hook (`torch/csrc/autograd/init.cpp`); None: torch cannot say
    (2.6)."""
    return raw.unpack_hook is not None if hasattr(raw, "unpack_hook") else None


def saved_data(raw: Any) -> torch.Tensor | None:
    """The tensor in a `SavedTensor`, without the version check; None where torch has no `SavedTensor.data` (2.6), or
    when it is empty."""
    data = getattr(raw, "data", None)
    return data if isinstance(data, torch.Tensor) else None


def clears_saved_on_access(grad_fn: Any) -> bool:
    """Whether a custom Function drops its saved tensors when they are read (`torch/autograd/function.py`, 2.11)."""
    return bool(getattr(getattr(grad_fn, "_forward_cls", None), "clear_saved_tensors_on_access", False))


def plain_tensor_access() -> Any:
    """A context in which attributes of tensor subclasses do not call their `__torch_function__` (`torch/_C`)."""
    return torch._C.DisableTorchFunctionSubclass()
