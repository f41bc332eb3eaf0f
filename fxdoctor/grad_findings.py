"""Findings from a live autograd graph: what was overwritten, and what the loss does not reach."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from . import torch_compat
from .autograd_walk import Frame, GradGraph, SavedHazard, frames
from .capture.source import is_internal, place
from .grad_states import by_module
from .live_tensors import ChainEnd, chain_ends
from .report.model import Finding, Location, ParamState, Related
from .rules.context import group_name
from .rules.where import creation_place

CODES = {
    "detach": "FXD101", "no-grad": "FXD102", "nondiff-op": "FXD103", "int-cast": "FXD104", "python-value": "FXD105",
    "frozen-param": "FXD106", "unused-param": "FXD107", "unregistered-param": "FXD108", "non-leaf-param": "FXD109",
    "function-none": "FXD110", "zero-grad-op": "FXD201", "saturated": "FXD202", "zero-factor": "FXD203",
    "masked": "FXD204", "nan-grad": "FXD301", "inplace-saved": "FXD401", "inplace-out": "FXD407",
    "data-write": "FXD409", "capture": "FXD901",
}  # fmt: skip
LINE = "run fxdoctor.analyze(model, inputs) to get the line"


def make(rule: str, severity: str, message: str, **more: Any) -> Finding:
    return Finding(rule=rule, code=CODES[rule], severity=severity, message=message, **more)


def user_place(stack: list[Frame]) -> Location | None:
    """The innermost line of a person's own code on a stack as anomaly mode keeps it."""
    for file, line, function in reversed(stack):
        if not is_internal(file):
            return place(file, line, function=function)
    return None


def created(model: Any, group: list[str], names: Iterable[str]) -> Location | None:
    """The line that creates the largest module that holds just this group, or its first parameter."""
    if not isinstance(model, nn.Module):
        return None
    others = set(names) - set(group)
    parts = group[0].split(".")
    for depth in range(1, len(parts)):
        prefix = ".".join(parts[:depth]) + "."
        if all(n.startswith(prefix) for n in group) and not any(n.startswith(prefix) for n in others):
            return creation_place(model, prefix[:-1])
    return creation_place(model, group[0]) if len(group) == 1 else None


# --- overwritten saved tensors --------------------------------------------------------------------------------------


def hazard_findings(
    graph: GradGraph, hazards: list[SavedHazard], params: dict[str, torch.Tensor], model: Any
) -> list[Finding]:
    """One finding per overwritten tensor, naming the grad_fn that needs it."""
    owners = {torch_compat.storage_key(p): n for n, p in params.items()}
    buffers = dict(model.named_buffers()) if isinstance(model, nn.Module) else {}
    held = {torch_compat.storage_key(b): f"the buffer {n}" for n, b in buffers.items()}
    return [_hazard(graph, h, owners.get(h.storage) if h.storage else None, held.get(h.storage)) for h in hazards]


def _hazard(graph: GradGraph, h: SavedHazard, param: str | None, buffer: str | None) -> Finding:
    shape = f"{h.dtype} of shape {list(h.shape)}" if h.shape is not None else "a tensor"
    what = f"the parameter {param}" if param else buffer or f"what {h.grad_fn} saved for backward"
    versions = f"version {h.found}, needed {h.expected}" if h.found is not None else "its version has changed"
    by = f" by {h.writer}" if h.writer else ""
    message = f"{what} was overwritten{by}: {h.grad_fn} needs the old values ({h.attribute}: {shape}; {versions})"
    finding = make(
        "inplace-saved",
        "error",
        f"{message}; a backward through it raises",
        node=h.grad_fn,
        params=[param] if param else [],
        help="change parameters (optimizer.step(), copy_(), load_state_dict()) only after backward"
        if param
        else "write into a new tensor: x = x + y for x += y, torch.where for x[mask] = v; or clone() before the write",
    )
    saver, writer = user_place(frames(graph.functions[h.node])), user_place(h.writer_frames)
    finding.location = writer or saver
    finding.label = "overwrites it" if writer else "saves it"
    if writer and saver:
        finding.related = [Related(saver, f"{h.grad_fn} saved it here")]
    if finding.location is None:
        finding.help += "; torch.autograd.set_detect_anomaly(True) before the forward, or fxdoctor.analyze, gives lines"
    return finding


def without_derivative(graph: GradGraph, params: dict[str, torch.Tensor]) -> list[Finding]:
    """Ops on the way of which torch has no derivative: a backward through them raises."""
    found = []
    for at, fn in enumerate(graph.functions):
        if not graph.name(at).endswith("::NotImplemented"):
            continue
        below = graph.below([at])
        names = [n for n, p in params.items() if graph.leaves.get(id(p)) in below]
        user = next((graph.name(p) for p in graph.parents[at]), "the loss")
        found.append(
            make(
                "nondiff-op",
                "error",
                f"an op right before {user} has no derivative (floor_divide, say): backward raises",
                node=graph.name(at),
                params=names,
                location=user_place(frames(fn)),
                help=f"use a differentiable op, or detach() its input where no gradient is meant; {LINE}",
            )
        )
    return found


# --- parameters that the loss does not reach ------------------------------------------------------------------------


def unreached(
    graph: GradGraph, params: dict[str, torch.Tensor], states: dict[str, ParamState], missing: list[str], model: Any
) -> tuple[list[Finding], set[int]]:
    """Findings for leaves that learn, but are not under the loss; and the nodes of other leaves that they name."""
    if not missing:
        return [], set()
    found: list[Finding] = []
    taught = [n for n in missing if states[n].status in ("flows", "nan")]
    for group in by_module(taught, params):
        message = f"this loss does not reach {group_name(group)}; another one gave it its gradient"
        found.append(make("unused-param", "info", message, params=group))
    dead = [n for n in missing if n not in set(taught)]
    ends = chain_ends(graph, {id(params[n]) for n in dead})
    for end in ends:
        group = [n for n in dead if id(params[n]) in end.params]
        dead = [n for n in dead if n not in set(group)]
        if group:
            found.append(_cut_after(graph, end, group))
    twins, named = _twins(graph, params, dead), set()
    for group in by_module(dead, params):
        if all(n in twins for n in group):
            named |= {twins[n] for n in group}
            found.append(_replaced(group, model, params))
        else:
            found.append(_plainly_unreached(group, model, params))
    return found, named


def _cut_after(graph: GradGraph, end: ChainEnd, group: list[str]) -> Finding:
    comes = f"its graph comes as far as {end.grad_fn}, a live tensor of shape {list(end.shape)} ({end.dtype})"
    if end.saved_by is not None:
        user = graph.name(end.saved_by)
        return make(
            "detach",
            "warning",
            f"the gradient to {group_name(group)} stops between {end.grad_fn} and {user}: {comes}; {user} has the same "
            "memory without its history",
            params=group,
            node=user,
            location=user_place(frames(graph.functions[end.saved_by])),
            label="gets the data without the history",
            help=f"remove detach() or .data between them; {LINE}",
        )
    return make(
        "unused-param",
        "warning",
        f"the loss's graph does not reach {group_name(group)}: {comes}, and the loss does not depend on it, or was cut "
        "from it",
        params=group,
        node=end.grad_fn,
        help=f"use that tensor in the loss; look for detach(), no_grad(), .item() or argmax() behind it; {LINE}",
    )


def _plainly_unreached(group: list[str], model: Any, params: dict[str, torch.Tensor]) -> Finding:
    where = created(model, group, params)
    whole = len(group) == len(params)
    return make(
        "unused-param",
        "warning",
        f"the loss's graph does not reach {group_name(group)}: "
        + ("made from another model's output, or " if whole else "unused, or ")
        + "cut by detach/no_grad/a value round trip",
        params=group,
        location=where,
        label="created here" if where else "",
        help=LINE,
    )


def _twins(graph: GradGraph, params: dict[str, torch.Tensor], dead: list[str]) -> dict[str, int]:
    """For unreached parameters: a leaf outside the model of the same shape and dtype that the loss does reach."""
    known = {id(p) for p in params.values()}
    free: dict[tuple[Any, ...], list[int]] = {}
    for key, at in graph.leaves.items():
        leaf = graph.variable(at)
        if key not in known and leaf is not None:
            free.setdefault((tuple(leaf.shape), leaf.dtype), []).append(at)
    found = {}
    for name in dead:
        same = free.get((tuple(params[name].shape), params[name].dtype))
        if same:
            found[name] = same.pop(0)
    return found


def _replaced(group: list[str], model: Any, params: dict[str, torch.Tensor]) -> Finding:
    where = created(model, group, params)
    shapes = ", ".join(str(list(params[n].shape)) for n in group[:3])
    return make(
        "unregistered-param",
        "warning",
        f"the loss does not reach {group_name(group)}, but {'leaves' if len(group) > 1 else 'a leaf'} of the same "
        f"shape outside the model ({shapes}): another copy may be in use",
        params=group,
        location=where,
        label="created here" if where else "",
        help="was the model copied (deepcopy), moved or wrapped again (nn.Parameter(...)) after this one was taken? "
        "Use the same objects in forward and in the optimizer",
    )


def strays(graph: GradGraph, params: dict[str, torch.Tensor], named: set[int], model: Any) -> list[Finding]:
    """Leaves under the loss that the model does not register, without the nodes `named` in another finding."""
    known = {id(p) for p in params.values()}
    unknown = {k: at for k, at in graph.leaves.items() if k not in known and at not in named}
    if not unknown:
        return []
    found = []
    held = _held_by(model, set(unknown))
    owners = dict.fromkeys(path.split(".")[0] for path in held.values())
    for owner in owners:
        paths = [p for p in held.values() if p.split(".")[0] == owner]
        where = creation_place(model, owner)
        shown = ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")
        found.append(
            make(
                "unregistered-param",
                "warning",
                f"{shown} would learn, but is not in model.parameters(): no optimizer moves it, no checkpoint saves it",
                location=where,
                label="a plain attribute, not a registered parameter or module" if where else "",
                help="keep modules in nn.ModuleList or nn.ModuleDict, tensors in nn.Parameter or nn.ParameterList",
            )
        )
    shapes = [list(v.shape) for k, at in unknown.items() if k not in held and (v := graph.variable(at)) is not None]
    if shapes:
        some = ", ".join(map(str, shapes[:3])) + (", ..." if len(shapes) > 3 else "")
        what = "1 leaf" if len(shapes) == 1 else f"{len(shapes)} leaves"
        why = "an input, another model, or not registered"
        message = f"the loss also reaches {what} outside the model ({some}): {why}"
        found.append(make("unregistered-param", "info", message))
    return found


def _held_by(model: Any, leaves: set[int]) -> dict[int, str]:
    if not isinstance(model, nn.Module):
        return {}
    from .capture.stray import _held

    return {key: path for key, path in _held(model) if key in leaves}


# --- missing gradients ------------------------------------------------------------------------------------------------


def without_grad(params: dict[str, torch.Tensor], none: list[str], model: Any) -> list[Finding]:
    """For `.grad` None after backward, with no loss at hand."""
    found = []
    for group in by_module([n for n in none if params[n].is_leaf], params):
        where = created(model, group, params)
        found.append(
            make(
                "unused-param",
                "warning",
                f"{group_name(group)} has no gradient: unused, or cut by detach/no_grad/a value round trip",
                params=group,
                location=where,
                label="created here" if where else "",
                help=f"fxdoctor.diagnose(loss, model) tells what the loss reaches; {LINE}",
            )
        )
    return found
