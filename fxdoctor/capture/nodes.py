"""The nodes of a recorded graph: which node a tensor belongs to, and what is noted of each.

A tensor finds its node by identity (parameters, buffers, inputs) or by a token in its `__dict__`, which a Python
tensor keeps even while only C++ holds it: nothing is kept alive for the record.
"""

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch import fx, nn

from .. import torch_compat
from ..facts import NodeFacts, Read, Region, TensorFact, Write, facts
from . import ops
from .arguments import link_through_autograd, output_to_nodes
from .exits import Exits
from .guard import Guard
from .source import Spot
from .values import Attribute, Storage, Token, edge_of, has_history, paths, value_state

_sessions = itertools.count(1)


class NodeWriter:
    """Writes nodes and their facts; `Recorder` decides which calls become nodes."""

    def __init__(self, named: dict[str, torch.Tensor], guard: Guard, *, values: bool = False) -> None:
        self.session = next(_sessions)
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
        self.autocast: list[tuple[Any, ...]] = []
        self.autocast_epoch = 0
        self.saved_hooks = 0
        """How many `saved_tensors_hooks` (checkpoint, offloading) are on: to read a saved tensor would call them."""
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
        self.output = output_to_nodes(self, output)
        self.exits.check_numpy_writes(self.storages)

    def finish(self, loss: torch.Tensor) -> None:
        """Notes the loss."""
        self.loss_node = self.node_of(loss)
        self.exits.check_numpy_writes(self.storages)

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
                value_state(t) if self.values else None,
            )
        )
        if storage is not None:
            if storage.last_write is not None and storage.last_write is not node:
                f.reads.append(Read(storage.last_write, facts(storage.last_write).requires_grad, "state"))
            storage.last_write = node
            storage.writes.append(node)
