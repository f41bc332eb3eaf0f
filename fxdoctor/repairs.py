"""Repairs: what a suspected node does instead, when a recorded graph is run again to prove or refute the suspicion."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from . import torch_compat
from .facts import facts
from .flow import Cut
from .replay import CannotReplay, Repair, Replay, plain_call


def for_cut(cut: Cut) -> tuple[dict[fx.Node, Repair], bool] | None:
    """The repairs of one cut, and whether its grad-mode region is to run with grad on. None: no repair is known."""
    if cut.rule in ("detach", "non-leaf-param"):
        return dict.fromkeys(cut.nodes, keep_history), False
    if cut.rule == "no-grad":
        return ({}, True) if cut.region is not None else (dict.fromkeys(cut.nodes, without_checkpoint), False)
    if cut.rule == "missing-create-graph":
        return dict.fromkeys(cut.nodes, with_create_graph), False
    if cut.rule == "python-value" and facts(cut.node).exit:
        if not cut.returns:
            return None
        changes: dict[fx.Node, Repair] = dict.fromkeys(cut.absorbed, keep_history)
        for exit_node, back in cut.returns:
            changes[exit_node] = remember
            changes[back] = reattach(exit_node)
        return changes, False
    if cut.rule == "python-value":
        return dict.fromkeys(cut.nodes, stack_instead), False
    return None


def keep_history(replay: Replay, node: fx.Node, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`detach()`, `.data`, `nn.Parameter(x)`: the tensor itself."""
    return args[0]


def without_checkpoint(replay: Replay, node: fx.Node, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Reentrant checkpoint: `apply(run_function, preserve_rng_state, *inputs)` runs the function directly."""
    _, function, _, *inputs = args
    return function(*inputs)


def with_create_graph(replay: Replay, node: fx.Node, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return plain_call(node, args, {**kwargs, "create_graph": True})


def stack_instead(replay: Replay, node: fx.Node, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`torch.tensor(list of tensors)` as `torch.stack`."""
    made = plain_call(node, args, kwargs)
    data = args[1] if node.op == "call_method" else args[0]
    return _stacked(data, made).to(made.dtype).reshape(made.shape)


def _stacked(data: Any, like: torch.Tensor) -> torch.Tensor:
    if isinstance(data, torch.Tensor):
        return data.to(like.dtype)
    if isinstance(data, (list, tuple)):
        return torch.stack([_stacked(d, like) for d in data])
    return torch.as_tensor(data, dtype=like.dtype, device=like.device)


def remember(replay: Replay, node: fx.Node, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """An exit to Python: keeps the tensor for whoever uses the number later."""
    value = plain_call(node, (args[0].detach(), *args[1:]), kwargs)
    replay.kept[node] = (value, args[0])
    return value


def reattach(exit_node: fx.Node) -> Repair:
    """Puts the tensor back where its number is used."""

    def repair(replay: Replay, node: fx.Node, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        value, tensor = replay.kept[exit_node]
        made = replay.attribute(str(node.target)) if node.op == "get_attr" else plain_call(node, args, kwargs)
        if isinstance(made, torch.Tensor) and made.shape == tensor.shape and _equal(made, tensor):
            return tensor.to(made.dtype)
        if isinstance(value, float) and node.op.startswith("call"):
            hit = [False]
            new_args = pytree.tree_map(lambda a: _swap(a, value, tensor, hit), args)
            new_kwargs = pytree.tree_map(lambda a: _swap(a, value, tensor, hit), kwargs)
            if hit[0]:
                built = facts(node).op in ("tensor", "as_tensor")
                return (
                    stack_instead(replay, node, new_args, new_kwargs)
                    if built
                    else plain_call(node, new_args, new_kwargs)
                )
        raise CannotReplay(f"{node.name}: the value was changed in Python on its way back")

    return repair


def _equal(a: torch.Tensor, b: torch.Tensor) -> bool:
    return bool(torch.equal(a.detach().double(), b.detach().double()))


def _swap(argument: Any, value: float, tensor: torch.Tensor, hit: list[bool]) -> Any:
    if type(argument) is float and argument == value:
        hit[0] = True
        return tensor.reshape(())
    return argument


def straight_through(replay: Replay, node: fx.Node, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The op's value with the identity as its derivative, for a flat op that keeps its input's shape."""
    source = next((a for a in args if isinstance(a, torch.Tensor) and a.requires_grad), None)
    before = source.clone() if source is not None else None
    made = plain_call(node, args, kwargs)
    if before is None or not isinstance(made, torch.Tensor) or made.shape != before.shape:
        raise CannotReplay(f"{node.name}: no identity has this op's shape")
    return made.detach() + (before - before.detach())


def nudged(replay: Replay, node: fx.Node, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A parameter or buffer of zeros, with 0.01 added: the factor lets the gradient through."""
    return replay.attribute(str(node.target)) + 0.01


def finite_gradient(replay: Replay, node: fx.Node, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The op, with the non-finite part of the gradient it passes back set to zero."""

    def tame(t: Any) -> Any:
        if not (isinstance(t, torch.Tensor) and t.requires_grad):
            return t
        alias = t.view_as(t)
        alias.register_hook(lambda g: torch.nan_to_num(g, nan=0.0, posinf=0.0, neginf=0.0))
        return alias

    return plain_call(node, pytree.tree_map(tame, args), pytree.tree_map(tame, kwargs))


def watched_hook(replay: Replay, node: fx.Node, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`register_hook` with a note of whether the hook wrote to the gradient it was given."""
    tensor, hook = args[0], args[1]

    def watched(g: torch.Tensor) -> Any:
        before = torch_compat.version_of(g)
        result = hook(g)
        replay.wrote[node] = replay.wrote.get(node, False) or torch_compat.version_of(g) != before
        return result

    return tensor.register_hook(watched)


def cloned_hook(replay: Replay, node: fx.Node, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`register_hook` with a hook that gets a gradient of its own."""
    tensor, hook = args[0], args[1]
    return tensor.register_hook(lambda g: hook(g.clone()))


def out_of_place(replay: Replay, node: fx.Node, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A write as a write into a clone, with every alias of the old memory re-derived from the clone.

    The clone is taken from the alias that carries the history, so a write through `.data` becomes visible to autograd.
    """
    with torch.enable_grad():
        return _write_into_clone(replay, node, args, kwargs)


def _write_into_clone(replay: Replay, node: fx.Node, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    f = facts(node)
    written = [replay.env[w.reader] for w in f.writes if w.reader is not None and w.reader in replay.env]
    if not written:
        raise CannotReplay(f"{node.name}: the written tensor is not at hand")
    target = written[0]
    key = torch_compat.storage_key(target)
    aliases = [t for v in replay.env.values() for t in pytree.tree_leaves(v) if _shares(t, key)]
    base = max([*aliases, target], key=lambda t: (t.requires_grad, t.numel()))
    whole = torch_compat.base_of(base)
    base = whole if whole is not None and whole.requires_grad == base.requires_grad else base
    fresh = base.clone()
    if fresh.stride() != base.stride() or not _dense(base):
        raise CannotReplay(f"{node.name}: the written memory has holes or overlaps")

    def twin(t: Any) -> Any:
        if not _shares(t, key):
            return t
        offset = t.storage_offset() - base.storage_offset()
        return fresh.as_strided(t.shape, t.stride(), offset)

    result = plain_call(node, pytree.tree_map(twin, args), pytree.tree_map(twin, kwargs))
    for name, value in list(replay.env.items()):
        replay.env[name] = pytree.tree_map(twin, value)
    return result


def _shares(t: Any, key: int | None) -> bool:
    return isinstance(t, torch.Tensor) and key is not None and torch_compat.storage_key(t) == key


def _dense(t: torch.Tensor) -> bool:
    """Whether the elements fill a stretch of memory without holes or overlaps."""
    expected = 1
    for stride, size in sorted(zip(t.stride(), t.shape, strict=True)):
        if size == 1:
            continue
        if stride != expected:
            return False
        expected *= size
    return True
