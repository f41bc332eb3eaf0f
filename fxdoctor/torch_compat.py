"""Every private torch name that fxdoctor touches, one small function each.

A new torch release that moves one of them breaks this file and `tests/test_torch_compat.py`, nothing else.
"""

from __future__ import annotations

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


def saved_hooks_active() -> bool:
    """Whether a `saved_tensors_hooks` (checkpoint, offloading) is on, so that reading a saved tensor calls the user."""
    top = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", None)
    return top is not None and top(True) is not None


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
