"""One recorded step: forward, loss and backward of a model on given inputs, with nothing left behind.

`Trace` is what every later part reads: the graph with its facts, the grad_fn graph with what flowed, the state of
each parameter, and the error if PyTorch raised.
"""

from __future__ import annotations

import contextlib
import gc
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx, nn
from torch.utils import _pytree as pytree

from .. import torch_compat
from ..facts import facts
from ..report.model import Location, ParamState
from . import backward
from .guard import Guard, deep_copy_inputs, neutral_modes, tensors_in
from .patches import recording
from .record import Recorder
from .source import is_internal, is_own, locate
from .stray import Stray, stray_leaves


class LossError(ValueError):
    """The loss function gave something that backward cannot start from."""


Loss = Callable[[Any], torch.Tensor]


@dataclass
class Subject:
    """What is examined: a model (or callable with named parameters), its inputs as the caller gave them, its loss."""

    model: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    loss: Loss | None
    named: dict[str, torch.Tensor]
    """Parameters, then buffers, by name."""
    params: dict[str, torch.Tensor]
    wanted_grad: dict[str, bool] = field(default_factory=dict)
    """Which parameters required grad before the run."""
    captured: fx.GraphModule | None = None
    """The graph of the symbolic or dynamo route, when one of them was asked for."""
    run: Callable[[Recorder, tuple[Any, ...], dict[str, Any]], Any] | None = None
    """Runs `captured` in place of the model."""

    @property
    def module(self) -> nn.Module | None:
        return self.model if isinstance(self.model, nn.Module) else None

    def current_params(self) -> dict[str, torch.Tensor]:
        """The parameters as they are now: a forward may have replaced some."""
        module = self.module
        return dict(module.named_parameters()) if module is not None else self.params


@dataclass
class Trace:
    subject: Subject
    recorder: Recorder
    inputs: Any
    """The (args, kwargs) that the run got: copies of the caller's."""
    output: Any = None
    loss: torch.Tensor | None = None
    backward: backward.Backward = field(default_factory=backward.Backward)
    states: dict[str, ParamState] = field(default_factory=dict)
    error: Exception | None = None
    error_stage: str = ""
    """"forward", "loss" or "backward"."""
    own_loss: bool = False
    """The model's output has a `.loss` of its own."""
    error_location: Location | None = None
    empty: bool = False
    """The default loss was taken over outputs without a single element."""
    loss_value: float | None = None
    changed_inputs: list[int] = field(default_factory=list)
    strays: list[Stray] = field(default_factory=list)
    live_buffers: dict[str, fx.Node | None] = field(default_factory=dict)
    """Buffers and attributes that hold a graph after forward, though they held none before."""

    @property
    def nodes(self) -> list[fx.Node]:
        return [n for n in self.recorder.graph.nodes if "facts" in n.meta]

    @property
    def weighted(self) -> bool:
        """The loss is the default one: the differentiable outputs, weighted."""
        return self.subject.loss is None and not self.own_loss

    @property
    def loss_node(self) -> fx.Node | None:
        return self.recorder.loss_node

    @property
    def output_nodes(self) -> list[fx.Node]:
        """The nodes of the model's output tensors, those of a floating dtype."""
        found: list[fx.Node] = []

        def add(node: fx.Node) -> fx.Node:
            found.append(node)
            return node

        fx.map_arg(self.recorder.output, add)
        return [n for n in found if any(o.dtype.is_floating_point or o.dtype.is_complex for o in facts(n).outs)]


def trace(
    subject: Subject,
    guard: Guard,
    *,
    values: bool = False,
    change: Callable[[Any], Any] | None = None,
    keep: Callable[[], None] | None = None,
) -> Trace:
    """Runs one step under the recorder. The guard puts everything back; an error is kept in the trace, not raised.

    `change` may alter the copied (args, kwargs), or what the guard puts back, before the run; `keep` is called when the
    parameters hold their gradients.
    """
    with neutral_modes():
        try:
            inputs = deep_copy_inputs((subject.args, subject.kwargs), list(subject.named.values()))
        except (TypeError, RuntimeError) as error:
            raise ValueError(
                f"the example inputs cannot be copied ({error}); pass tensors and plain containers"
            ) from error
        if change is not None:
            inputs = change(inputs)
    recorder = Recorder(subject.named, guard, values=values)
    result = Trace(subject, recorder, inputs)
    functions: list[Any] = []
    guard.begin()
    try:
        with neutral_modes(), warnings.catch_warnings(), no_garbage_collection():
            warnings.simplefilter("ignore")
            _forward(result)
            if result.loss is not None and result.loss.requires_grad:
                functions = _backward(result, guard)
            result.states = {n: state_of(p) for n, p in subject.current_params().items()}
            if keep is not None:
                keep()
            _notice_changes(result)
    finally:
        result.loss = result.output = None
        guard.restore()
        torch_compat.free_in_order(functions)
    return result


@contextlib.contextmanager
def no_garbage_collection() -> Iterator[None]:
    """A recorded run makes many small objects at once; the cyclic collector would scan them again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _forward(result: Trace) -> None:
    subject, recorder = result.subject, result.recorder
    args, kwargs = result.inputs
    taken: set[int] = set()
    for i, leaf in enumerate(pytree.tree_leaves(result.inputs)):
        if isinstance(leaf, torch.Tensor):
            recorder.placeholder(leaf, f"input_{i}")
            taken.add(id(leaf))
    for leaf in tensors_in(result.inputs):
        if id(leaf) not in taken and id(leaf) not in recorder.names:
            recorder.hidden_input(leaf)
    names = {id(m): n for n, m in reversed(list(subject.module.named_modules()))} if subject.module else {}
    result.error_stage = "forward"
    with _kept(result), recording(recorder, names):
        with recorder:
            run = subject.run
            result.output = run(recorder, args, kwargs) if run is not None else subject.model(*args, **kwargs)
        recorder.finish_forward(result.output)
        recorder.stage, result.error_stage = "loss", "loss"
        result.loss = _loss(result)
    if result.error is None:
        result.error_stage = ""


def _loss(result: Trace) -> torch.Tensor | None:
    recorder, subject = result.recorder, result.subject
    if subject.loss is not None:
        with recorder:
            loss: Any = subject.loss(result.output)
        if not isinstance(loss, torch.Tensor):
            raise LossError(f"the loss function returned {type(loss).__name__}, not a tensor; return a scalar tensor")
    else:
        own = getattr(result.output, "loss", None)
        result.own_loss = isinstance(own, torch.Tensor) and own.numel() == 1
        result.empty = not result.own_loss and all(t.numel() == 0 for t in _differentiable(result.output))
        recorder.weighing = True
        loss = default_loss(result.output, recorder)
    if isinstance(loss, torch.Tensor):
        if loss.numel() != 1:
            raise LossError(f"the loss has shape {tuple(loss.shape)}; backward needs a scalar: take its mean or sum")
        recorder.finish(loss)
        result.loss_value = float(loss.detach().real) if loss.device.type != "meta" else None
        return loss
    return None


def default_loss(output: Any, mode: Any = None) -> torch.Tensor | None:
    """`output.loss` if it is a scalar that requires grad, else each differentiable output dotted with fixed weights.

    The weights are standard normal from a generator with seed 0, so that softmax or BatchNorm outputs get a gradient
    (their plain sum has none). None when no output requires grad.
    """
    own = getattr(output, "loss", None)
    if isinstance(own, torch.Tensor) and own.numel() == 1:
        return own
    total: torch.Tensor | None = None
    for t in _differentiable(output):
        weights = torch.randn(t.shape, generator=torch.Generator().manual_seed(0))
        weights = weights.to(device=t.device, dtype=t.abs().dtype if t.is_complex() else t.dtype)
        with mode if mode is not None else contextlib.nullcontext():
            part = ((t.abs() if t.is_complex() else t) * weights).sum()
            total = part if total is None else total + part
    return total


def _differentiable(output: Any) -> list[torch.Tensor]:
    leaves = pytree.tree_leaves(output)
    found = [t for t in leaves if isinstance(t, torch.Tensor)] or list(tensors_in(output))
    return [t for t in found if t.requires_grad and (t.is_floating_point() or t.is_complex())]


@contextlib.contextmanager
def _kept(result: Trace) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        result.error_location = raised_at(error)
        if error is not result.recorder.failed_error:
            _own_failure(error)
        result.error = error.with_traceback(None)
        result.error.__context__ = None


_FORWARDING = ("__torch_function__", "apply", "call", "new", "as_subclass", "entered", "left", "forward", "transform")
"""Functions of ours that only pass a call on: what is raised there was raised by what they called."""


def _own_failure(error: BaseException) -> None:
    """A fault of fxdoctor must not be told as one of the model's."""
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    code = step.tb_frame.f_code if step is not None else None
    if code is None or code.co_name in _FORWARDING or isinstance(error, LossError):
        return
    file = code.co_filename
    if is_own(file):
        raise RuntimeError(
            f"fxdoctor failed while it recorded the model ({type(error).__name__}: {error}, in {file}); "
            "this is a fault of fxdoctor, not of the model"
        ) from error


def raised_at(error: BaseException) -> Location | None:
    """The innermost frame of the user's in the error's traceback."""
    found, step = None, error.__traceback__
    while step is not None:
        if not is_internal(step.tb_frame.f_code.co_filename):
            found = (step.tb_frame.f_code, step.tb_lasti)
        step = step.tb_next
    return locate(found)


def _backward(result: Trace, guard: Guard) -> list[Any]:
    recorder = result.recorder
    assert result.loss is not None
    wrote = any(facts(n).writes for n in recorder.nodes) or bool(recorder.exits.watched)
    hidden = any(w.hidden for n in recorder.nodes for w in facts(n).writes) or bool(recorder.exits.watched)
    result.backward, functions = backward.walk(result.loss, recorder.nodes, check_saved=wrote, track_saved=hidden)
    for hazard in result.backward.hazards:
        hazard.storage = None
    hooks = any(facts(n).op == "register_hook" for n in recorder.nodes)
    backward.run(result.loss, result.backward, functions, guard, detailed=recorder.values, hooks=hooks)
    if result.backward.error is not None:
        result.error, result.error_stage = result.backward.error, "backward"
    by_edge: dict[Any, float | None] = {}
    for entry in result.backward.nodes:
        for below, sent in zip(entry.next, entry.sent, strict=False):
            if below is not None and (seq := result.backward.nodes[below[0]].seq) is not None:
                key = (seq, below[1])
                by_edge[key] = sent if by_edge.get(key) is None else _joined(by_edge[key], sent, result, below[0])
    for node in recorder.nodes:
        _fill_grad(node, by_edge)
    return functions


def _joined(a: float | None, b: float | None, result: Trace, below: int) -> float | None:
    """Several consumers: their sum is what the node received, when it has one output."""
    received = result.backward.nodes[below].received
    return received if received is not None else math.hypot(a or 0.0, b or 0.0)


def _fill_grad(node: fx.Node, by_edge: dict[Any, float | None]) -> None:
    f = facts(node)
    norms = [by_edge[o.edge] for o in f.outs if o.edge in by_edge]
    got = [n for n in norms if n is not None]
    if got:
        f.grad_norm = math.nan if any(math.isnan(n) for n in got) else math.hypot(*got)
        f.grad_state = "nan" if math.isnan(f.grad_norm) else "zero" if f.grad_norm == 0.0 else "flows"
    elif f.requires_grad:
        f.grad_state = "none"


def state_of(p: torch.Tensor) -> ParamState:
    """A parameter's state after backward, read from `.grad` alone."""
    state = ParamState("frozen", None, shape=tuple(p.shape), dtype=str(p.dtype).removeprefix("torch."))
    if not p.requires_grad:
        return state
    grad = p.grad if p.is_leaf or p.retains_grad else None
    if grad is None:
        state.status = "none"
        return state
    state.norm = backward.norm(grad)
    state.status = "nan" if math.isnan(state.norm) else "zero" if state.norm == 0.0 else "flows"
    return state


def _notice_changes(result: Trace) -> None:
    """Which inputs now differ from the caller's, and which buffers now carry a graph."""
    original = list(tensors_in((result.subject.args, result.subject.kwargs)))
    copied = list(tensors_in(result.inputs))
    if len(original) == len(copied):
        for i, (a, b) in enumerate(zip(original, copied, strict=True)):
            if a is not b and not _same_value(a, b):
                result.changed_inputs.append(i)
    module = result.subject.module
    if module is None:
        return
    result.strays = stray_leaves(module, result.backward.leaves, copied, result.recorder)
    for name, buffer in module.named_buffers():
        if buffer.grad_fn is not None:
            result.live_buffers[name] = result.recorder.last_writer(buffer)


def _same_value(a: torch.Tensor, b: torch.Tensor) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype or a.layout != b.layout:
        return False
    if a.device.type == "meta":
        return True
    a, b = a.detach(), b.detach()
    if a.layout is not torch.strided:
        a, b = a.to_dense(), b.to_dense()
    return (
        bool(torch.equal(torch.nan_to_num(a), torch.nan_to_num(b)))
        if a.is_floating_point()
        else bool(torch.equal(a, b))
    )
