"""The arguments of a call in terms of graph nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from .. import torch_compat
from ..facts import NodeFacts, Read, facts
from .guard import tensors_in

if TYPE_CHECKING:
    from .nodes import NodeWriter

_PLAIN = (
    int,
    float,
    bool,
    str,
    type(None),
    torch.dtype,
    torch.device,
    torch.layout,
    torch.memory_format,
    type(Ellipsis),
)


class Held:
    """Marks a function among the arguments of an opaque call, to be held by the graph's module."""

    def __init__(self, function: Any) -> None:
        self.function = function


def to_nodes(recorder: NodeWriter, value: Any) -> Any:
    """`value` with each tensor replaced by its node, in the forms that fx allows; other objects become attributes."""
    if isinstance(value, torch.Tensor):
        return recorder.node_of(value)
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is torch.Size:
        return tuple(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return kind(*(to_nodes(recorder, v) for v in value))
    if isinstance(value, (tuple, list)):
        return (tuple if isinstance(value, tuple) else list)(to_nodes(recorder, v) for v in value)
    if isinstance(value, dict) and all(isinstance(k, str) for k in value):
        return {k: to_nodes(recorder, v) for k, v in value.items()}
    if kind is slice:
        return slice(*(to_nodes(recorder, v) for v in (value.start, value.stop, value.step)))
    return recorder.hold(value.function if kind is Held else value)


def output_to_nodes(recorder: NodeWriter, output: Any) -> Any:
    """The model's output: the same nested structure where fx can say it, else its tensors in a tuple."""
    if isinstance(output, torch.Tensor):
        return recorder.node_of(output)
    if output is None or isinstance(output, (int, float, bool, str)):
        return output
    if type(output) in (tuple, list):
        return type(output)(output_to_nodes(recorder, v) for v in output)
    if type(output) is dict and all(isinstance(k, str) for k in output):
        return {k: output_to_nodes(recorder, v) for k, v in output.items()}
    return tuple(recorder.node_of(t) for t in tensors_in(output))


def link_through_autograd(recorder: NodeWriter, f: NodeFacts, tensor: torch.Tensor) -> None:
    """Code that was not seen made `tensor` from tensors that were: autograd's own graph says from which."""
    f.replayable = "its value comes from code that fxdoctor does not see"
    known = {edge: n for n in recorder.nodes for edge in facts(n).edges}
    seen, queue = {tensor.grad_fn}, [tensor.grad_fn]
    while queue:
        fn: Any = queue.pop()
        for below, output in fn.next_functions:
            if below is None or below in seen:
                continue
            variable: Any = getattr(below, "variable", None)
            seq = torch_compat.sequence_nr(below)
            node = known.get((seq, output)) if seq is not None else None
            if variable is not None or node is not None:
                f.reads.append(Read(node or recorder.node_of(variable), True, "implicit"))
            else:
                seen.add(below)
                queue.append(below)
