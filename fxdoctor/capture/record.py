"""Records one eager run as a `torch.fx.Graph`: each torch-level call becomes a node, in the order it ran.

A `TorchFunctionMode` sees nearly everything. What it does not see is hooked while recording (`patches.py`): custom
`autograd.Function.apply`, `nn.Parameter(...)`, `inference_mode`, module calls, `torch.func` transforms. A custom
Function or a transform is one opaque node; what it reads inside counts as its input.

How a tensor finds its node: parameters, buffers and inputs by identity; everything made during the run carries a
token in its `__dict__` (a Python tensor keeps that even while only C++ holds it), so nothing is kept alive.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import fx, nn
from torch.overrides import TorchFunctionMode

from .. import torch_compat
from ..facts import NodeFacts, Read, Region, TensorFact, Write, facts
from . import ops
from .arguments import Held, link_through_autograd, output_to_nodes, to_nodes
from .exits import Exits
from .guard import Guard
from .source import Spot, decorated_function, torch_switcher, user_spot
from .values import Attribute, Storage, Token, edge_of, has_history, leaves, paths, value_state

_KEPT = frozenset(["register_hook", "backward", "requires_grad.__set__"])
"""Recorded although they give out no tensor."""
_NESTED = (tuple, list, dict, slice)
_APPLY = ops.Op("apply", "call_function", ops.call, False, False)
_sessions = itertools.count(1)


class Recorder(TorchFunctionMode):
    """Writes the graph while the model runs.

    `named` maps each parameter and buffer name to its tensor; `inputs` are the tensor leaves of the arguments.
    With `values=True` each output is also looked at: all zero, NaN, infinite, or live.
    """

    def __init__(self, named: dict[str, torch.Tensor], guard: Guard, *, values: bool = False) -> None:
        super().__init__()
        self.session = next(_sessions)
        self.thread = threading.get_ident()
        self.graph = fx.Graph()
        self.root = nn.Module()
        self.guard = guard
        self.values = values
        self.names = {id(t): (name, t) for name, t in reversed(list(named.items()))}
        self.sources: dict[int, fx.Node] = {}
        self.held: list[Any] = []
        self.storages: dict[int | None, Storage] = {}
        self.nodes: list[fx.Node] = []
        self.last_seq = -1
        self.stage = "forward"
        self.weighing = False
        """The default loss is being taken: what is unknown now are its own weights."""
        self.module_path: list[str] = [""]
        self.region: Region | None = None
        self.busy = 0
        self.autocast: list[tuple[Any, ...]] = []
        self.autocast_epoch = 0
        self.saved_hooks = 0
        """How many `saved_tensors_hooks` (checkpoint, offloading) are on: to read a saved tensor would call them."""
        self.opaque: list[tuple[NodeFacts, set[int], list[fx.Node]]] = []
        self.pending: tuple[fx.Node, Any] | None = None
        self.exits = Exits(guard)
        self.spot: Spot | None = None
        self.fixed_location: Any = None
        """What a captured graph says of the place of the node that runs now."""
        self.fixed_decorated: Any = None
        self.constants = 0
        self.output: Any = None
        self.loss_node: fx.Node | None = None
        self.failed_error: BaseException | None = None
        self.failed: fx.Node | None = None
        self.notes: list[str] = []

    # --- inputs -----------------------------------------------------------------------------------------------

    def placeholder(self, tensor: torch.Tensor, name: str) -> fx.Node:
        node = self.graph.placeholder(name)
        self._adopt(node, tensor, "input", name)
        return node

    def hidden_input(self, tensor: torch.Tensor) -> fx.Node:
        """A tensor inside an argument that `torch.utils._pytree` does not open: held by the graph's module."""
        name = f"_input_{self.constants}"
        self.constants += 1
        setattr(self.root, name, tensor)
        node = self.graph.create_node("get_attr", name, (), {}, name)
        self._adopt(node, tensor, "input", name)
        return node

    def _adopt(self, node: fx.Node, tensor: torch.Tensor, target: str, name: str) -> None:
        """Makes `node` stand for a tensor that existed before the run."""
        f = self._new_facts(node, target)
        storage = self._storage(tensor, torch_compat.storage_key(tensor), fresh=True, target=target, name=name)
        f.outs.append(self._fact(tensor, storage, ()))
        self.sources[id(tensor)] = node
        self.held.append(tensor)

    def _source(self, tensor: torch.Tensor) -> fx.Node:
        """The node of a tensor that no recorded call made: a parameter, a buffer, or something unseen."""
        known = self.names.get(id(tensor))
        if known is not None:
            name, _ = known
            node = self.graph.create_node("get_attr", name, (), {}, name.replace(".", "_"))
            kind = "parameter" if isinstance(tensor, nn.Parameter) else "buffer"
            self._adopt(node, tensor, kind, name)
        else:
            name = f"_constant_{self.constants}"
            self.constants += 1
            setattr(self.root, name, tensor)
            node = self.graph.create_node("get_attr", name, (), {}, name)
            self._adopt(node, tensor, "external", name)
            self._link(node, tensor)
        return node

    def _link(self, node: fx.Node, tensor: torch.Tensor) -> None:
        """A tensor that appears from nowhere may be what came back from numpy or Python."""
        f = facts(node)
        if (exit_node := self.exits.sharing(tensor)) is not None:
            node.meta["separate"] = True
            f.reads.append(Read(exit_node, True, "soft"))
        elif tensor.grad_fn is not None:
            link_through_autograd(self, f, tensor)
        elif not tensor.requires_grad and not self.weighing:
            f.reads.extend(self.exits.unclaimed(tensor.numel() > 1))

    def hold(self, value: Any) -> fx.Node:
        """A Python object that the graph cannot print, held by the module under a name of its own."""
        name = f"_object_{self.constants}"
        self.constants += 1
        setattr(self.root, name, value)
        node = self.graph.create_node("get_attr", name, (), {}, name)
        self._new_facts(node, "object")
        return node

    def finish_forward(self, output: Any) -> None:
        """Notes what the model returned, for the graph's output node."""
        if self.pending is not None:
            self.settle()
        self.output = output_to_nodes(self, output)
        self.exits.check_numpy_writes(self.storages)

    def finish(self, loss: torch.Tensor) -> None:
        """Notes the loss."""
        if self.pending is not None:
            self.settle()
        self.loss_node = self.node_of(loss)
        self.exits.check_numpy_writes(self.storages)

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

    # --- nodes ------------------------------------------------------------------------------------------------

    def _new_facts(self, node: fx.Node, name: str) -> NodeFacts:
        f = NodeFacts(len(self.nodes), name)
        f.stage, f.module = self.stage, self.module_path[-1]
        f.last_seq = self.last_seq
        node.meta["facts"] = f
        self.nodes.append(node)
        return f

    def _create(self, op: ops.Op, args: tuple[Any, ...], kwargs: dict[str, Any], spot: Spot | None) -> fx.Node:
        if op.lead:
            args = (args[0], *op.lead, *args[1:]) if op.target is setattr else (args[0], *op.lead)
        node: fx.Node = torch_compat.new_node(self.graph, op.op, op.target, args, kwargs, op.identifier)
        f = self._new_facts(node, op.name)
        f.spot, f.location = spot, self.fixed_location
        f.grad_enabled = torch.is_grad_enabled()
        f.inference = torch.is_inference_mode_enabled()
        f.saved_hooks = self.saved_hooks > 0
        if not f.grad_enabled or f.inference:
            f.region = self.region or Region("inference_mode" if f.inference else "no_grad", spot)
        if self.autocast:
            f.autocast = (self.autocast_epoch, tuple(self.autocast))
        return node

    def _close(self, f: NodeFacts) -> None:
        for out in f.outs:
            if out.edge is not None and out.edge[0] > self.last_seq:
                self.last_seq = out.edge[0]
        for write in f.writes:
            if write.edge is not None and write.edge[0] > self.last_seq:
                self.last_seq = write.edge[0]
        f.last_seq = self.last_seq

    def _fail(
        self,
        op: ops.Op,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        spot: Spot | None,
        reads: list[Read],
        error: BaseException,
    ) -> None:
        if not isinstance(error, Exception):
            return
        node = self._create(op, args, kwargs, spot)
        f = facts(node)
        f.reads, f.error = reads, f"{type(error).__name__}: {error}"
        f.replayable = "it raised"
        self.failed = node
        self.failed_error = error

    def node_of(self, tensor: torch.Tensor) -> fx.Node:
        """The node whose value `tensor` is."""
        token = getattr(tensor, "_fxdoctor", None)
        if token is None or token.session != self.session:
            return self.sources.get(id(tensor)) or self._source(tensor)
        if not token.path:
            found: fx.Node = token.node
            return found
        return self._item(token.node, token.path)

    def last_writer(self, tensor: torch.Tensor) -> fx.Node | None:
        """The node that last wrote to the tensor's memory, else the one that made it."""
        key = torch_compat.storage_key(tensor)
        storage = self.storages.get(key) if key is not None else None
        token = getattr(tensor, "_fxdoctor", None)
        made: fx.Node | None = token.node if token is not None and token.session == self.session else None
        return storage.last_write or made if storage is not None else made

    def _item(self, node: fx.Node, path: tuple[Any, ...]) -> fx.Node:
        items = node.meta.setdefault("items", {})
        if path not in items:
            parent = self._item(node, path[:-1]) if len(path) > 1 else node
            step = path[-1]
            function = getattr if isinstance(step, Attribute) else ops.getitem
            with self.graph.inserting_after(parent):
                item = self.graph.call_function(function, (parent, step.name if isinstance(step, Attribute) else step))
            source = facts(node)
            f = NodeFacts(source.index, "getitem", source.spot, source.location, source.module, source.stage)
            f.region, f.grad_enabled, f.inference = source.region, source.grad_enabled, source.inference
            f.autocast, f.last_seq, f.function = source.autocast, source.last_seq, source.function
            f.outs = [o for o in source.outs if o.path[: len(path)] == path]
            narrow = f.outs[0].sources if len(f.outs) == 1 else None
            f.reads = [Read(parent, source.requires_grad, "data")]
            if narrow is not None:
                f.reads = [Read(n, facts(n).requires_grad, "data") for n in narrow]
            item.meta["facts"] = f
            item.meta["item_of"] = node
            items[path] = item
        found: fx.Node = items[path]
        return found

    # --- values -----------------------------------------------------------------------------------------------

    def _reads(self, op: ops.Op, tensors: list[torch.Tensor], keys: list[int | None]) -> list[Read]:
        reads: list[Read] = []
        state: list[Read] = []
        free = op.value_free
        for i, t in enumerate(tensors):
            node = self.node_of(t)
            meta = free or (i > 0 and op.shape_only_rest)
            reads.append(Read(node, has_history(t), "meta" if meta else "data", t.dtype, edge_of(t)))
            storage = self.storages.get(keys[i])
            if storage is not None and (w := storage.last_write) is not None and w is not node and not meta:
                written = facts(w)
                if written.index > facts(node).index:
                    state.append(Read(w, written.requires_grad, "state"))
        return reads + state if state else reads

    def _outputs(
        self,
        node: fx.Node,
        f: NodeFacts,
        result: Any,
        made: list[torch.Tensor],
        inputs: list[torch.Tensor],
        keys: list[int | None],
    ) -> None:
        several = len(made) > 1
        found = [((), result)] if made and made[0] is result else paths(result)
        for path, tensor in found:
            key = torch_compat.storage_key(tensor)
            alias = inputs[keys.index(key)] if key is not None and key in keys else None
            storage = self._storage(tensor, key, fresh=alias is None and torch_compat.base_of(tensor) is None)
            fact = self._fact(tensor, storage, path)
            if alias is not None and tensor is not alias and several:
                fact.sources = (self.node_of(alias),)
            if f.op == "data" or (alias is not None and self.node_of(alias).meta.get("separate")):
                node.meta["separate"] = True
            f.outs.append(fact)
            if id(tensor) in self.sources and f.op != "requires_grad_":
                self.sources[id(tensor)] = node
                self.held.append(tensor)
            elif id(tensor) not in self.names:
                self._mark(tensor, node, path)

    def _mark(self, tensor: torch.Tensor, node: fx.Node, path: tuple[Any, ...]) -> None:
        try:
            tensor._fxdoctor = Token(self.session, node, path)  # type: ignore[attr-defined]
        except AttributeError:  # a subclass with slots
            self.sources[id(tensor)] = node if not path else self._item(node, path)
            self.held.append(tensor)

    def _storage(
        self, tensor: torch.Tensor, key: int | None, *, fresh: bool, target: str = "local", name: str = ""
    ) -> Storage | None:
        if key is None:
            return None
        found = self.storages.get(key)
        external = target != "local"
        if found is None or (fresh and not external):
            found = self.storages[key] = Storage(len(self.storages) + len(self.nodes), target, name)
        return found

    def _fact(self, t: torch.Tensor, storage: Storage | None, path: tuple[Any, ...]) -> TensorFact:
        value = value_state(t) if self.values else None
        serial = storage.serial if storage else None
        return TensorFact(
            tuple(t.shape), t.dtype, has_history(t), serial, edge_of(t), torch_compat.is_view(t), value, path
        )

    def _protect(self, tensors: list[torch.Tensor]) -> None:
        for t in tensors:
            key = torch_compat.storage_key(t)
            storage = self.storages.get(key) if key is not None else None
            if storage is None or storage.target != "local":
                self.guard.protect(t)

    def _write(
        self, node: fx.Node, t: torch.Tensor, reader: fx.Node, before: int | None, metadata: bool = False
    ) -> None:
        key = torch_compat.storage_key(t)
        storage = self.storages.get(key) if key is not None else None
        f = facts(node)
        separate = bool(reader.meta.get("separate"))
        base = torch_compat.base_of(t)
        edge = edge_of(t if base is None else base)
        hidden = separate or not f.grad_enabled or not t.requires_grad
        target, name = (storage.target, storage.name) if storage else ("local", "")
        f.writes.append(
            Write(
                storage.serial if storage else None,
                reader,
                before,
                torch_compat.version_of(t),
                hidden,
                separate,
                t.requires_grad,
                edge,
                target,
                name,
                metadata,
            )
        )
        if storage is not None:
            if storage.last_write is not None and storage.last_write is not node:
                f.reads.append(Read(storage.last_write, facts(storage.last_write).requires_grad, "state"))
            storage.last_write = node
            storage.writes.append(node)

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
