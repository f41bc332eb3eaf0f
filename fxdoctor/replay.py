"""Runs a recorded graph again: the same calls, grad modes, autocast and generators; with repairs, if any.

A repair replaces what one node does. The replay then runs loss and backward, and says what each parameter got.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import fx, nn
from torch.utils import _pytree as pytree

from .capture import ops
from .capture.guard import Guard, deep_copy_inputs, neutral_modes
from .capture.trace import Subject, Trace, state_of
from .facts import facts
from .report.model import ParamState

Repair = Callable[["Replay", fx.Node, tuple[Any, ...], dict[str, Any]], Any]
"""(replay, node, args, kwargs) -> the node's new value; args are tensors, not nodes."""


class CannotReplay(Exception):
    """A node cannot be run again; the message names it and says why."""


class Replay:
    """One more run of a trace's graph, on fresh copies of the same inputs.

    `repairs` maps nodes to repairs; `grad_on` are nodes to run with grad mode on although it was off.
    """

    def __init__(
        self,
        trace: Trace,
        guard: Guard,
        repairs: dict[fx.Node, Repair] | None = None,
        grad_on: set[fx.Node] | None = None,
        *,
        keep_grads: bool = False,
    ) -> None:
        self.keep_grads = keep_grads
        self.trace, self.guard = trace, guard
        self.repairs, self.grad_on = repairs or {}, grad_on or set()
        self.env: dict[fx.Node, Any] = {}
        self.kept: dict[fx.Node, Any] = {}
        """What repairs put aside for one another."""
        self.wrote: dict[fx.Node, bool] = {}
        """Tensor hooks that were watched: whether they wrote to their gradient."""
        self.grads: dict[str, torch.Tensor] = {}

    def run(self) -> dict[str, ParamState]:
        """The state of each parameter after the repaired run's backward."""
        self.guard.begin()
        try:
            with neutral_modes(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                loss = self.forward()
                self.env.clear()
                if loss is not None and loss.requires_grad:
                    loss.backward()
                params = self.trace.subject.params
                if self.keep_grads:
                    self.grads = {n: p.grad.clone() for n, p in params.items() if p.grad is not None}
                return {n: state_of(p) for n, p in params.items()}
        finally:
            self.env.clear()
            self.kept.clear()
            self.guard.restore()

    def forward(self) -> torch.Tensor | None:
        """Runs all nodes up to the loss and gives the loss."""
        subject = self.trace.subject
        inputs = deep_copy_inputs((subject.args, subject.kwargs), list(subject.named.values()))
        leaves = iter([t for t in pytree.tree_leaves(inputs) if isinstance(t, torch.Tensor)])
        last_use = _last_uses(self.trace.recorder.graph)
        with _Modes() as modes:
            for node in list(self.trace.recorder.graph.nodes):
                if node.op == "placeholder":
                    self.env[node] = next(leaves)
                elif node.op == "get_attr":
                    repair = self.repairs.get(node)
                    value = self.attribute(str(node.target))
                    self.env[node] = repair(self, node, (), {}) if repair is not None else value
                elif node.op != "output":
                    modes.enter(node, node in self.grad_on)
                    self.env[node] = self.call(node)
                for dead in last_use.get(node, ()):
                    if dead is not self.trace.loss_node:
                        self.env.pop(dead, None)
        loss = self.trace.loss_node
        found = self.env.get(loss) if loss is not None else None
        return found if isinstance(found, torch.Tensor) else None

    def attribute(self, target: str) -> Any:
        """A parameter or buffer of the subject, or an object that the graph's root holds."""
        named = self.trace.subject.named
        return named[target] if target in named else getattr(self.trace.recorder.root, target)

    def call(self, node: fx.Node) -> Any:
        f = facts(node) if "facts" in node.meta else None
        args, kwargs = self.values(node.args), self.values(node.kwargs)
        if f is not None:
            if f.replayable is not None:
                raise CannotReplay(f"{node.name} ({f.op}): {f.replayable}")
            if f.writes:
                for t in pytree.tree_leaves((args, kwargs)):
                    if isinstance(t, torch.Tensor):
                        self.guard.protect(t)
            if f.generator is not None:
                self.env[f.generator[0]].set_state(f.generator[1])
        repair = self.repairs.get(node)
        if repair is not None:
            return repair(self, node, args, kwargs)
        return plain_call(node, args, kwargs)

    def values(self, tree: Any) -> Any:
        return fx.map_arg(tree, lambda n: self.env[n])


def plain_call(node: fx.Node, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What the node does, on values."""
    if node.op == "call_method":
        return getattr(args[0], str(node.target))(*args[1:], **kwargs)
    assert callable(node.target)
    return node.target(*args, **kwargs)


class _Modes:
    """Grad mode, inference mode and autocast as each node had them; re-entered only where they change."""

    def __init__(self) -> None:
        self.stack = contextlib.ExitStack()
        self.now: Any = (True, False, None)

    def __enter__(self) -> _Modes:
        return self

    def __exit__(self, *error: Any) -> None:
        self.stack.close()

    def enter(self, node: fx.Node, force_grad: bool) -> None:
        f = facts(node)
        wanted = (True, False, f.autocast) if force_grad else (f.grad_enabled, f.inference, f.autocast)
        if wanted == self.now:
            return
        if wanted[2] != self.now[2] or wanted[1] != self.now[1]:
            self.stack.close()
            for device, dtype in f.autocast or ():
                self.stack.enter_context(torch.autocast(device, dtype=dtype))
            if wanted[1]:
                self.stack.enter_context(torch.inference_mode())
        torch.set_grad_enabled(wanted[0])
        self.now = wanted


def _last_uses(graph: fx.Graph) -> dict[fx.Node, list[fx.Node]]:
    last: dict[fx.Node, fx.Node] = {}
    for node in graph.nodes:
        last[node] = node
        for used in node.all_input_nodes:
            last[used] = node
    dead: dict[fx.Node, list[fx.Node]] = {}
    for node, at in last.items():
        dead.setdefault(at, []).append(node)
    return dead


def graph_module(trace: Trace) -> fx.GraphModule:
    """The recorded graph with its output node, in a `GraphModule` that shares the model's parameters and buffers.

    Its inputs are the tensor leaves of (args, kwargs). Grad mode and autocast switches are nodes, so that the plain
    `torch.fx.Interpreter` and generated code run it as recorded.
    """
    source = trace.recorder.graph
    graph, root, copied = fx.Graph(), nn.Module(), {}
    for name, tensor in trace.subject.named.items():
        _put(root, name, tensor)
    now: tuple[bool, Any] = (True, None)
    scopes: list[fx.Node] = []
    for node in source.nodes:
        if node.op == "get_attr" and str(node.target) not in trace.subject.named:
            setattr(root, str(node.target), getattr(trace.recorder.root, str(node.target)))
        if node.op.startswith("call") and "facts" in node.meta:
            now = _switch(graph, node, now, scopes)
        copied[node] = graph.node_copy(node, lambda n: copied[n])
    while scopes:
        graph.call_function(torch.amp.autocast_mode._exit_autocast, (scopes.pop(),))
    if not now[0]:
        graph.call_function(torch._C._set_grad_enabled, (True,))
    output = trace.recorder.output
    graph.output(fx.map_arg(output, lambda n: copied[n]))
    module = fx.GraphModule(root, graph, class_name=type(trace.subject.model).__name__)
    return module


def _switch(graph: fx.Graph, node: fx.Node, now: tuple[bool, Any], scopes: list[fx.Node]) -> tuple[bool, Any]:
    f = facts(node)
    if f.autocast != now[1]:
        while scopes:
            graph.call_function(torch.amp.autocast_mode._exit_autocast, (scopes.pop(),))
        for device, dtype in f.autocast or ():
            scopes.append(graph.call_function(torch.amp.autocast_mode._enter_autocast, (device, dtype, True, True)))
    if f.grad_enabled != now[0]:
        graph.call_function(torch._C._set_grad_enabled, (f.grad_enabled,))
    return f.grad_enabled, f.autocast


def _put(root: nn.Module, name: str, tensor: torch.Tensor) -> None:
    *path, last = name.split(".")
    for part in path:
        if part not in root._modules:
            root.add_module(part, nn.Module())
        root = root._modules[part]  # type: ignore[assignment]
    if isinstance(tensor, nn.Parameter):
        root.register_parameter(last, tensor)
    else:
        root.register_buffer(last, tensor)
