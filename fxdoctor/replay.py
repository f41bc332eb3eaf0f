"""Runs a recorded graph again: the same calls, grad modes, autocast and generators; with repairs, if any.

A repair replaces what one node does. The replay then runs loss and backward, and says what each parameter got.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import fx, nn
from torch.utils import _pytree as pytree

from . import torch_compat
from .capture.guard import Guard, deep_copy_inputs, neutral_modes
from .capture.trace import Trace, default_loss, state_of
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
        loss = None if self.trace.weighted else self.trace.loss_node
        kept = [loss] if loss is not None else self.trace.output_nodes
        with _Modes() as modes:
            for node in list(self.trace.recorder.graph.nodes):
                if loss is None and "facts" in node.meta and facts(node).stage == "loss":
                    continue
                if node.op == "placeholder":
                    self.env[node] = next(leaves)
                elif node.op == "get_attr":
                    repair = self.repairs.get(node)
                    self.check(node)
                    value = self.attribute(str(node.target))
                    self.env[node] = repair(self, node, (), {}) if repair is not None else value
                elif node.op != "output":
                    modes.enter(node, node in self.grad_on)
                    self.env[node] = self.call(node)
                for dead in last_use.get(node, ()):
                    if dead not in kept:
                        self.env.pop(dead, None)
        if loss is not None:
            return self.loss_of(self.env[loss])
        return default_loss([self.env[n] for n in kept])

    def loss_of(self, value: Any) -> torch.Tensor:
        if not isinstance(value, torch.Tensor):
            raise CannotReplay("the loss is no tensor any more")
        return value

    def check(self, node: fx.Node) -> None:
        f = facts(node) if "facts" in node.meta else None
        if f is not None and f.replayable is not None:
            raise CannotReplay(f"{node.name} ({f.op}): {f.replayable}")

    def attribute(self, target: str) -> Any:
        """A parameter or buffer of the subject, or an object that the graph's root holds."""
        named = self.trace.subject.named
        return named[target] if target in named else getattr(self.trace.recorder.root, target)

    def call(self, node: fx.Node) -> Any:
        f = facts(node) if "facts" in node.meta else None
        args, kwargs = self.values(node.args), self.values(node.kwargs)
        if f is not None:
            self.check(node)
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
    """Grad mode, inference mode and autocast as each node had them, nested as in the recorded run."""

    def __init__(self) -> None:
        self.inference = contextlib.ExitStack()
        self.in_inference = False
        self.casts: list[tuple[Any, Any]] = []
        self.epoch = 0

    def __enter__(self) -> _Modes:
        return self

    def __exit__(self, *error: Any) -> None:
        while self.casts:
            self.casts.pop()[1].__exit__(None, None, None)
        self.inference.close()
        torch.set_grad_enabled(True)

    def enter(self, node: fx.Node, force_grad: bool) -> None:
        f = facts(node)
        self._autocast(f.autocast)
        wanted = f.inference and not force_grad
        if wanted != self.in_inference:
            self.inference.close()
            if wanted:
                self.inference.enter_context(torch.inference_mode())
            self.in_inference = wanted
        torch.set_grad_enabled(f.grad_enabled or force_grad)

    def _autocast(self, state: tuple[int, tuple[Any, ...]] | None) -> None:
        epoch, wanted = state or (0, ())
        keep = common_prefix([c[0] for c in self.casts], wanted) if epoch == self.epoch else 0
        while len(self.casts) > keep:
            self.casts.pop()[1].__exit__(None, None, None)
        for arguments in wanted[keep:]:
            context = torch.autocast(*arguments)
            context.__enter__()
            self.casts.append((arguments, context))
        self.epoch = epoch


def common_prefix(a: Any, b: Any) -> int:
    """How many elements the two sequences share from their start."""
    n = 0
    while n < min(len(a), len(b)) and a[n] == b[n]:
        n += 1
    return n


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
    graph, root = fx.Graph(), nn.Module()
    copied: dict[fx.Node, fx.Node] = {}
    for name, tensor in trace.subject.named.items():
        _put(root, name, tensor)
    switches = _Switches(graph)
    for node in source.nodes:
        if node.op == "get_attr" and str(node.target) not in trace.subject.named:
            setattr(root, str(node.target), getattr(trace.recorder.root, str(node.target)))
        if node.op.startswith("call") and "facts" in node.meta:
            switches.before(node)
            generator = facts(node).generator
            if generator is not None:
                name = f"_generator_state_{node.name}"
                setattr(root, name, generator[1])
                graph.call_method("set_state", (copied[generator[0]], graph.get_attr(name)))
        copied[node] = graph.node_copy(node, lambda n: copied[n])
    switches.close()
    output = trace.recorder.output
    graph.output(fx.map_arg(output, lambda n: copied[n]))
    return fx.GraphModule(root, graph, class_name=type(trace.subject.model).__name__)


class _Switches:
    """Writes the changes of grad mode and autocast between recorded nodes as nodes of the new graph."""

    def __init__(self, graph: fx.Graph) -> None:
        self.graph = graph
        self.grad = True
        self.casts: list[tuple[Any, fx.Node]] = []
        self.epoch = 0
        self.inference: fx.Node | None = None

    def before(self, node: fx.Node) -> None:
        f = facts(node)
        epoch, wanted = f.autocast or (0, ())
        self._autocast(epoch, wanted)
        if f.inference != (self.inference is not None):
            self._inference(f.inference)
        if f.grad_enabled != self.grad:
            self.graph.call_function(torch_compat.set_grad_enabled(), (f.grad_enabled,))
            self.grad = f.grad_enabled

    def close(self) -> None:
        self._autocast(0, ())
        if self.inference is not None:
            self._inference(False)
        if not self.grad:
            self.graph.call_function(torch_compat.set_grad_enabled(), (True,))

    def _autocast(self, epoch: int, wanted: tuple[Any, ...]) -> None:
        keep = common_prefix([c[0] for c in self.casts], wanted) if epoch == self.epoch else 0
        while len(self.casts) > keep:
            self.graph.call_function(torch_compat.autocast_switches()[1], (self.casts.pop()[1],))
        for arguments in wanted[keep:]:
            entered = self.graph.call_function(torch_compat.autocast_switches()[0], arguments)
            self.casts.append((arguments, entered))
        self.epoch = epoch

    def _inference(self, on: bool) -> None:
        if on:
            self.inference = self.graph.call_function(torch_compat.inference_switches()[0], (True,))
            self.grad = False
        elif self.inference is not None:
            self.graph.call_function(torch_compat.inference_switches()[1], (self.inference,))
            self.inference, self.grad = None, True


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
