"""Writes that autograd cannot see, held against the gradient they should have given.

A candidate is a write through `.data`, `detach()`, numpy or under `no_grad` to memory that carries a gradient history
or that an earlier op keeps for backward. It is a fault only if making the write visible changes some gradient.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from . import repairs
from .capture.trace import Trace
from .facts import Write, facts
from .numeric import disagreement
from .prove import Prover
from .replay import Repair
from .rules.context import Falsified

RELATIVE = 1e-3


def falsified_writes(trace: Trace, prover: Prover) -> list[Falsified]:
    """The hidden writes that make a gradient wrong, each with the parameters it falsifies."""
    saved = _saved_serials(trace)
    candidates = [n for n in trace.nodes if any(_suspect(trace, n, w, saved) for w in facts(n).writes)]
    numpy_writes = trace.recorder.exits.numpy_writes
    if not candidates and not numpy_writes:
        return []
    found = []
    before = prover.gradients({})
    for node in candidates:
        if before is None:
            break
        after = prover.gradients({node: repairs.out_of_place}, {node})
        wrong = _different(before, after)
        if wrong:
            numbers = disagreement(trace, wrong)
            found.append(Falsified(node, wrong, _evidence(wrong[0], before, after or {}, numbers)))
    for node in numpy_writes:
        wrong = [n for n, s in trace.states.items() if s.status == "flows"]
        numbers = disagreement(trace, wrong)
        if numbers:
            names = list(numbers)
            found.append(Falsified(node, names, _numbers(names[0], numbers)))
    return found


def _saved_serials(trace: Trace) -> dict[int, int]:
    """Storage serial to the index of the first node that keeps it for backward."""
    result: dict[int, int] = {}
    for key, savers in trace.backward.saved.items():
        storage = trace.recorder.storages.get(key)
        for index, _ in savers:
            node = trace.backward.nodes[index].node
            if storage is not None and node is not None:
                result[storage.serial] = min(result.get(storage.serial, 1 << 60), facts(node).index)
    return result


def _suspect(trace: Trace, node: fx.Node, write: Write, saved: dict[int, int]) -> bool:
    if not write.hidden or write.metadata or write.storage is None:
        return False
    index = facts(node).index
    if write.separate_counter and saved.get(write.storage, 1 << 60) < index:
        return True
    if write.target in ("parameter", "input"):
        return False
    earlier = [o for n in trace.nodes if facts(n).index < index for o in facts(n).outs if o.storage == write.storage]
    return any(o.requires_grad and o.edge is not None for o in earlier)


def _different(before: dict[str, torch.Tensor], after: dict[str, torch.Tensor] | None) -> list[str]:
    if after is None:
        return []
    wrong = []
    for name, grad in before.items():
        other = after.get(name)
        if other is None:
            continue
        a, b = _dense(grad), _dense(other)
        scale = max(float(a.norm()), float(b.norm()))
        if scale > 0 and float((a - b).norm()) > RELATIVE * scale:
            wrong.append(name)
    return wrong


def _dense(t: torch.Tensor) -> torch.Tensor:
    t = t.to_dense() if t.layout is not torch.strided else t
    return t.to(torch.complex128 if t.is_complex() else torch.float64)


def _evidence(
    name: str, before: dict[str, torch.Tensor], after: dict[str, torch.Tensor], numbers: dict[str, tuple[float, float]]
) -> str:
    if name in numbers:
        return _numbers(name, numbers)
    a, b = float(_dense(before[name]).norm()), float(_dense(after[name]).norm())
    return f"with the write made visible, the gradient of {name} has norm {b:.3g} instead of {a:.3g}"


def _numbers(name: str, numbers: dict[str, tuple[float, float]]) -> str:
    numeric, autograd = numbers[name]
    return (
        f"along a random direction the loss changes by {numeric:.3g} per unit of {name}, autograd says {autograd:.3g}"
    )


def hidden_hooks(trace: Trace, prover: Prover) -> list[Falsified]:
    """Tensor hooks that write to a gradient which other ops were handed too (an addition sends one tensor both ways).

    Where that changes a parameter's gradient it is proved; where backward happens to reach the others first, which only
    the order of the forward decides, it is still named.
    """
    hooks = [n for n in trace.nodes if facts(n).op == "register_hook"]
    siblings = {n: names for n in hooks if (names := _siblings(trace, n))}
    found: list[Falsified] = []
    before = prover.gradients({}) if siblings else None
    for node in prover.writing_hooks(list(siblings)) if before is not None else []:
        change: dict[fx.Node, Repair] = {node: repairs.cloned_hook}
        after: Any = prover.gradients(change)
        wrong = _different(before or {}, after)
        if wrong:
            norms = [float(_dense(g[wrong[0]]).norm()) for g in (before or {}, after)]
            text = f"given a copy of its gradient, {wrong[0]} gets norm {norms[1]:.3g} instead of {norms[0]:.3g}"
            found.append(Falsified(node, wrong, text))
        else:
            found.append(Falsified(node, siblings[node], "", proof=None))
    return found


def _siblings(trace: Trace, hook: fx.Node) -> list[str]:
    """Parameters behind the ops that are sent the same gradient tensor as the hooked tensor."""
    edge = facts(hook).reads[0].edge
    steps = trace.backward.nodes
    starts: list[int] = []
    for step in steps:
        targets = {i: step.next[i] for i in step.shared if i < len(step.next) and step.next[i] is not None}
        here = [i for i, t in targets.items() if t is not None and (steps[t[0]].seq, t[1]) == edge]
        if here:
            starts += [t[0] for i, t in targets.items() if t is not None and i not in here]
    names = {id(p): n for n, p in trace.subject.params.items()}
    seen = set(starts)
    found: list[str] = []
    while starts:
        step = steps[starts.pop()]
        if step.leaf in names:
            found.append(names[step.leaf])
        for below in step.next:
            if below is not None and below[0] not in seen:
                seen.add(below[0])
                starts.append(below[0])
    order = list(names.values())
    return sorted(found, key=order.index)
