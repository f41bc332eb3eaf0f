"""Records one eager run as a `torch.fx.Graph`: each torch-level call becomes a node, in the order it ran.

A `TorchFunctionMode` sees nearly everything. What it does not see is hooked while recording (`patches.py`): custom
`autograd.Function.apply`, `nn.Parameter(...)`, `inference_mode`, module calls, `torch.func` transforms. A custom
Function or a transform is one opaque node; what it reads inside counts as its input.

`nodes.py` says how a tensor finds its node and what is noted of it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import fx
from torch.overrides import TorchFunctionMode

from .. import torch_compat
from ..facts import NodeFacts, Read, Region, facts
from . import ops
from .arguments import Held, to_nodes
from .guard import Guard
from .nodes import NodeWriter
from .source import decorated_function, torch_switcher, user_spot
from .values import leaves

_KEPT = frozenset(["register_hook", "backward", "requires_grad.__set__"])
"""Recorded although they give out no tensor."""
_NESTED = (tuple, list, dict, slice)
_APPLY = ops.Op("apply", "call_function", ops.call, False, False)


class Recorder(NodeWriter, TorchFunctionMode):
    """Writes the graph while the model runs.

    `named` maps each parameter and buffer name to its tensor. With `values=True` each output is also looked at: all
    zero, NaN, infinite, or live.
    """

    def __init__(self, named: dict[str, torch.Tensor], guard: Guard, *, values: bool = False) -> None:
        TorchFunctionMode.__init__(self)
        NodeWriter.__init__(self, named, guard, values=values)
        self.thread = threading.get_ident()
        self.busy = 0
        """How deep we are in a call that is one node, where inner calls are not recorded."""
        self.opaque: list[tuple[NodeFacts, set[int], list[fx.Node]]] = []
        self.pending: tuple[fx.Node, Any] | None = None
        """A custom Function whose outputs get their grad_fn only after its forward."""

    def finish_forward(self, output: Any) -> None:
        if self.pending is not None:
            self.settle()
        super().finish_forward(output)

    def finish(self, loss: torch.Tensor) -> None:
        if self.pending is not None:
            self.settle()
        super().finish(loss)

    # --- the mode ---------------------------------------------------------------------------------------------

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        op = ops.op_of(func)
        if op.skip or self.busy or threading.get_ident() != self.thread:
            return func(*args, **kwargs)
        if self.opaque or torch_compat.transform_level():
            self._inside(args, kwargs)
            return func(*args, **kwargs)
        if op.name == ops.GRAD_SWITCH:
            result = func(*args, **kwargs)
            self.switch_grad(bool(args[0]), "no_grad")
            return result
        return self.run(op, func, args, kwargs)

    def run(self, op: ops.Op, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs one torch function and, when it made or changed a tensor or left the graph, records it."""
        self.busy += 1
        try:
            return self._run(op, func, args, kwargs)
        finally:
            self.busy -= 1

    def _run(self, op: ops.Op, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.pending is not None:
            self.settle()
        tensors: list[torch.Tensor] = []
        for a in args:
            if isinstance(a, torch.Tensor):
                tensors.append(a)
            elif isinstance(a, _NESTED):
                leaves(a, tensors)
        if kwargs:
            leaves(kwargs, tensors)
        spot = self.spot or user_spot(3)
        if ops.may_write(op, kwargs):
            self._protect(tensors)
        before = [torch_compat.version_of(t) for t in tensors]
        keys = [torch_compat.storage_key(t) for t in tensors]
        reads = self._reads(op, tensors, keys)
        if self.exits.nodes:
            reads.extend(self.exits.linked(args, kwargs) or self.exits.guessed(args, kwargs))
        shapes = [t.shape for t in tensors] if op.in_place_name else None
        node_args = tuple([self.node_of(a) if isinstance(a, torch.Tensor) else to_nodes(self, a) for a in args])
        node_kwargs = {k: to_nodes(self, v) for k, v in kwargs.items()} if kwargs else kwargs
        generator = kwargs.get("generator") if kwargs else None
        state = (node_kwargs["generator"], generator.get_state()) if isinstance(generator, torch.Generator) else None
        try:
            result = func(*args, **kwargs)
        except BaseException as error:
            self._fail(op, node_args, node_kwargs, spot, reads, error)
            raise
        written = [i for i, t in enumerate(tensors) if torch_compat.version_of(t) != before[i]]
        made: list[torch.Tensor] = []
        if isinstance(result, torch.Tensor):
            made.append(result)
        else:
            leaves(result, made)
        replaced = op.name == "data.__set__"
        if not (made or written or op.exit or replaced or op.name in _KEPT):
            return result
        node = self._create(op, node_args, node_kwargs, spot)
        f = facts(node)
        f.reads, f.generator, f.exit = reads, state, op.exit
        self._outputs(node, f, result, made, tensors, keys)
        for i in written:
            changed = shapes is not None and tensors[i].shape != shapes[i]
            self._write(node, tensors[i], reads[i].node, before[i], metadata=changed)
        if replaced:
            self._write(node, tensors[0], reads[0].node, before[0], metadata=True)
        self._close(f)
        if op.exit:
            self.exits.note(node, op, tensors[0], result)
        elif op.name in ops.TENSOR_FROM_PYTHON and op.name != "data":
            f.reads.extend(self.exits.came_back(args))
        return result

    def _inside(self, args: Any, kwargs: Any) -> None:
        """A call inside an opaque node: notes which known tensors it reads, and protects what it may write."""
        if not self.opaque:
            return
        _, seen, found = self.opaque[-1]
        tensors: list[torch.Tensor] = []
        leaves((args, kwargs), tensors)
        for t in tensors:
            if id(t) in seen:
                continue
            token = getattr(t, "_fxdoctor", None)
            if id(t) in self.names or id(t) in self.sources or (token is not None and token.session == self.session):
                seen.add(id(t))
                self.guard.protect(t)
                found.append(self.node_of(t))

    # --- opaque calls -----------------------------------------------------------------------------------------

    def run_opaque(
        self, name: str, function: Any, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Runs a custom Function, a transform or a scripted module as one node. `call` does the work."""
        self.busy += 1
        try:
            return self._run_opaque(name, function, call, args, kwargs)
        finally:
            self.busy -= 1

    def _run_opaque(
        self, name: str, function: Any, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        if self.pending is not None:
            self.settle()
        tensors: list[torch.Tensor] = []
        leaves((args, kwargs), tensors)
        op = ops.Op(name, "call_function", ops.call, False, False)
        keys = [torch_compat.storage_key(t) for t in tensors]
        reads = self._reads(op, tensors, keys)
        spot = self.spot or user_spot(3)
        self._protect(tensors)
        before = [torch_compat.version_of(t) for t in tensors]
        target = to_nodes(self, Held(function))
        node_args = (target, *(to_nodes(self, a) for a in args))
        node_kwargs = {k: to_nodes(self, v) for k, v in kwargs.items()}
        shell = NodeFacts(-1, name)
        self.opaque.append((shell, {id(t) for t in tensors}, []))
        busy, self.busy = self.busy, 0
        try:
            result = call(*args, **kwargs)
        except BaseException as error:
            self.busy = busy
            implicit = self.opaque.pop()[2]
            self._fail(op, node_args, node_kwargs, spot, reads + self._implicit(implicit), error)
            raise
        self.busy = busy
        implicit = self.opaque.pop()[2]
        node = self._create(op, node_args, node_kwargs, spot)
        f = facts(node)
        f.reads, f.function = reads + self._implicit(implicit), function
        made: list[torch.Tensor] = []
        leaves(result, made)
        self._outputs(node, f, result, made, tensors, keys)
        for t, read, version in zip(tensors, reads, before, strict=True):
            if torch_compat.version_of(t) != version:
                self._write(node, t, read.node, version)
        self._close(f)
        if any(r.kind == "implicit" and r.node.op != "get_attr" for r in f.reads):
            f.replayable = "code inside this call reads tensors of the first run that are not its arguments"
        return result

    def _implicit(self, nodes: list[fx.Node]) -> list[Read]:
        return [Read(n, facts(n).requires_grad, "implicit") for n in nodes]

    def begin_stored_apply(self, function: type, args: tuple[Any, ...]) -> None:
        """The forward of a custom Function starts whose `apply` was bound before recording began."""
        tensors: list[torch.Tensor] = []
        leaves(args, tensors)
        self._protect(tensors)
        shell = NodeFacts(-1, function.__name__)
        shell.reads = self._reads(_APPLY, tensors, [torch_compat.storage_key(t) for t in tensors])
        shell.spot = self.spot or user_spot(3)
        shell.grad_enabled = any(t.requires_grad for t in tensors)
        self.opaque.append((shell, {id(t) for t in tensors}, []))

    def end_stored_apply(self, function: type, args: tuple[Any, ...], result: Any) -> None:
        """Its forward is done; autograd attaches the grad_fn after this, so outputs are read at the next call."""
        shell, _, implicit = self.opaque.pop()
        op = ops.Op(function.__name__, "call_function", ops.call, False, False)
        node_args = (to_nodes(self, Held(function)), *(to_nodes(self, a) for a in args))
        node = self._create(op, node_args, {}, shell.spot)
        f = facts(node)
        f.reads, f.function = shell.reads + self._implicit(implicit), function
        f.grad_enabled, f.region = True, None if shell.grad_enabled else self.region
        self.pending = (node, result)

    def abandon_stored_apply(self) -> None:
        """Its forward raised."""
        shell = self.opaque.pop()[0]
        self.notes.append(f"custom Function {shell.op} raised in its forward")

    def settle(self) -> None:
        """Reads the outputs of a custom Function whose grad_fn was attached after its forward."""
        node, result = self.pending  # type: ignore[misc]
        self.pending = None
        made: list[torch.Tensor] = []
        leaves(result, made)
        f = facts(node)
        self._outputs(node, f, result, made, [], [])
        self._close(f)

    # --- grad mode --------------------------------------------------------------------------------------------

    def switch_grad(self, enabled: bool, kind: str) -> None:
        """Grad mode changed; the region lasts until it is on again."""
        if torch.is_grad_enabled() and not torch.is_inference_mode_enabled():
            self.region = None
        elif self.region is None or self.region.kind != kind:
            self.region = Region(
                kind,
                self.spot or user_spot(3),
                self.fixed_decorated or decorated_function(3),
                self.fixed_location,
                torch_switcher(3),
            )
