"""`analyze` leaves no trace: whatever a model's step changes is as before afterwards, also when the step raises.

Each case is a model whose step changes something. The world is described before and after; that the plain step does
change it (the test has teeth) is checked on the same description. Version counters may rise, values may not differ.
"""

from __future__ import annotations

import collections
import random
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from world import changes, world

import fxdoctor

STAGES = ["runs", "forward", "loss", "backward"]


# --- models that change things --------------------------------------------------------------------------------------


class Base(nn.Module):
    """`step` is what each case overrides; `fail` makes forward raise after it."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.fail = False

    def step(self, x: torch.Tensor) -> torch.Tensor:
        return x

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.layer(self.step(x))
        if self.fail:
            raise RuntimeError("raised half-way in forward")
        return out


CASES: dict[str, type[Base]] = {}


def case(cls: type[Base]) -> type[Base]:
    CASES[cls.__name__] = cls
    return cls


def stepping(name: str, step: Callable[[Any, torch.Tensor], Any], **attributes: Callable[[], Any]) -> None:
    """A case from a function; what it returns is not used. `attributes` are set in the constructor."""

    def init(self: Any) -> None:
        Base.__init__(self)
        for key, make in attributes.items():
            setattr(self, key, make())

    def run(self: Any, x: torch.Tensor) -> torch.Tensor:
        step(self, x)
        return x

    CASES[name] = type(name, (Base,), {"__init__": init, "step": run})


@case
class BatchNorm(Base):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
        self.register_buffer("empty", None)

    def step(self, x: torch.Tensor) -> torch.Tensor:
        self.empty = x.detach().mean(0)
        return self.norm(x)


@case
class WritesUnderNoGrad(Base):
    def step(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            self.layer.weight.mul_(0.5)
            self.layer.bias.copy_(torch.ones(4))
        return x


@case
class MaxNorm(Base):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(5, 4, max_norm=0.1)

    def step(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.table(torch.tensor([1, 2, 3]))


@case
class ReplacesParameter(Base):
    def step(self, x: torch.Tensor) -> torch.Tensor:
        self.layer.weight = nn.Parameter(self.layer.weight.detach() * 2)
        return x


@case
class SpectralNorm(Base):
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4))

    def step(self, x: torch.Tensor) -> torch.Tensor:
        return self.first(x)


@case
class AddsModule(Base):
    def step(self, x: torch.Tensor) -> torch.Tensor:
        self.late = nn.Linear(4, 4)
        self.register_buffer("late_buffer", torch.ones(4))
        return self.late(x)


@case
class ChangesInputs(Base):
    def step(self, x: torch.Tensor) -> torch.Tensor:
        x.mul_(2.0)
        x.t_()
        x.unsqueeze_(0)
        return x.squeeze(0).t().contiguous().expand(4, 3).t() if x.shape[1] == 3 else x.squeeze(0).t()


class Holder:
    def __init__(self) -> None:
        self.count, self.seen = 0, []


def _hooks(m: Any, x: torch.Tensor) -> None:
    m.layer.weight.register_hook(lambda g: g * 2)
    m.layer.register_forward_hook(lambda *a: None)
    m.layer.register_full_backward_hook(lambda *a: None)
    m.register_forward_pre_hook(lambda *a: None)


def _point_elsewhere(m: Any, x: torch.Tensor) -> None:
    m.layer.weight.data = torch.zeros(4, 4)


def _grad_in_forward(m: Any, x: torch.Tensor) -> None:
    m.zero_grad()
    m.layer.bias.grad = torch.full((4,), 5.0)


def _plain_object(m: Any, x: torch.Tensor) -> None:
    m.holder.count += 1
    m.holder.seen.append(x.shape)


def _nested(m: Any, x: torch.Tensor) -> None:
    m.nested["a"][0].append(1)
    m.nested["b"] = 2


def _own_generators(m: Any, x: torch.Tensor) -> None:
    torch.rand(2, generator=m.torch_generator)
    m.numpy_generator.random()
    m.python_generator.random()


stepping("Rng", lambda m, x: (torch.rand(2), random.random(), np.random.rand()))
stepping("Seeds", lambda m, x: torch.manual_seed(5))
stepping("WritesData", lambda m, x: m.layer.weight.data.mul_(3.0))
stepping("PointsElsewhere", _point_elsewhere)
stepping("WritesGrad", _grad_in_forward)
stepping("GradInPlace", lambda m, x: m.layer.weight.grad.add_(1.0) if m.layer.weight.grad is not None else None)
stepping("Freezes", lambda m, x: m.layer.bias.requires_grad_(False))
stepping("SwitchesMode", lambda m, x: m.layer.train(not m.layer.training))
stepping("Hooks", _hooks)
stepping("Attributes", lambda m, x: (setattr(m, "last", x), setattr(m, "calls", m.calls + 1)), calls=lambda: 0)
stepping("Lists", lambda m, x: (m.seen.append(x), m.names.add("b"), m.recent.append(1)),
         seen=list, names=lambda: {"a"}, recent=lambda: collections.deque([0], maxlen=1))  # fmt: skip
stepping("Nested", _nested, nested=lambda: {"a": [[0]]})
stepping("PlainObject", _plain_object, holder=Holder)
stepping("PlainTensor", lambda m, x: m.memory.add_(x.detach().sum()), memory=lambda: torch.zeros(4))
stepping("ListedTensor", lambda m, x: m.memories[0].add_(1.0), memories=lambda: [torch.zeros(4)])
stepping("ObjectTensor", lambda m, x: m.holder.seen.add_(1.0),
         holder=lambda: types.SimpleNamespace(seen=torch.zeros(4)))  # fmt: skip
stepping("NumpyAlias", lambda m, x: m.layer.weight.detach().numpy().fill(0.5))
stepping("OwnGenerators", _own_generators, torch_generator=torch.Generator,
         numpy_generator=lambda: np.random.RandomState(0), python_generator=lambda: random.Random(0))  # fmt: skip
stepping("GradModeOff", lambda m, x: torch.set_grad_enabled(False))
stepping("AutocastOn", lambda m, x: torch.set_autocast_enabled("cpu", True))
stepping("InputRequiresGrad", lambda m, x: x.requires_grad_() if x.is_leaf else None)
stepping("InputAttribute", lambda m, x: setattr(x, "tag", 1))
stepping("Deletes", lambda m, x: delattr(m, "scratch") if hasattr(m, "scratch") else None, scratch=lambda: 3)


class Boom(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
        raise ValueError("raised in backward")


def losses(stage: str) -> Callable[[Any], torch.Tensor]:
    def loss(output: torch.Tensor) -> torch.Tensor:
        value = output.sin().sum()
        if stage == "loss":
            raise KeyError("raised in the loss")
        return Boom.apply(value) if stage == "backward" else value

    return loss


def prepared(name: str, with_grads: bool) -> tuple[Base, torch.Tensor]:
    torch.manual_seed(0)
    model = CASES[name]()
    if with_grads:
        for p in model.parameters():
            p.grad = torch.ones_like(p)
    return model, torch.randn(4, 4)[:3] if name != "ChangesInputs" else torch.randn(3, 4)


@pytest.fixture(autouse=True)
def modes() -> Iterator[None]:
    """A case that leaves a mode on must not reach the next test."""
    yield
    torch.set_grad_enabled(True)
    torch.set_autocast_enabled("cpu", False)


@pytest.mark.parametrize("name", CASES)
def test_the_plain_step_does_change_the_world(name: str) -> None:
    model, x = prepared(name, with_grads=True)
    things = [x]
    before = world(model, things)
    model(x)
    assert changes(before, world(model, things))


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("name", CASES)
def test_no_trace(name: str, stage: str) -> None:
    for with_grads in (True, False):
        model, x = prepared(name, with_grads)
        model.fail = stage == "forward"
        things = [x]
        before = world(model, things)
        report = fxdoctor.analyze(model, x, loss=losses(stage))
        assert changes(before, world(model, things)) == []
        if stage != "runs" and name not in ("GradModeOff", "Freezes"):
            assert report.error is not None and "raised" in report.error


class Watched(Base):
    """Carries every kind of hook; `events` tells which ran."""

    def __init__(self, events: list[str]) -> None:
        super().__init__()
        self.layer.register_forward_hook(lambda *a: events.append("forward"))
        self.layer.register_forward_pre_hook(lambda *a: events.append("pre"))
        self.layer.weight.register_hook(lambda g: events.append("tensor"))
        self.layer.weight.register_post_accumulate_grad_hook(lambda p: events.append("accumulate"))
        self.layer.bias.register_post_accumulate_grad_hook(self.step_at_once)

    @staticmethod
    @torch.no_grad()
    def step_at_once(p: torch.Tensor) -> None:
        p.sub_(p.grad)
        p.grad = None


@pytest.mark.parametrize("stage", STAGES)
def test_hooks_stay_and_those_after_accumulation_do_not_run(stage: str) -> None:
    events: list[str] = []
    model, x = Watched(events), torch.randn(3, 4)
    model.fail = stage == "forward"
    handle = nn.modules.module.register_module_forward_hook(lambda *a: events.append("global"))
    try:
        things = [x]
        before = world(model, things)
        fxdoctor.analyze(model, x, loss=losses(stage))
        assert changes(before, world(model, things)) == []
        assert "accumulate" not in events and "forward" in events
        events.clear()
        model.fail = False
        model(x).sum().backward()
        assert {"forward", "pre", "tensor", "accumulate", "global"} <= set(events)
    finally:
        handle.remove()


class Tagger(Base):
    """Writes into its arguments: a dict, a list in it, a tensor in the list."""

    def forward(self, batch: dict[str, Any], seen: list[torch.Tensor]) -> torch.Tensor:
        batch["extra"] = batch.pop("x")
        batch["more"][0].add_(1.0)
        seen.append(batch["extra"])
        out = self.layer(batch["extra"])
        if self.fail:
            raise RuntimeError("raised half-way in forward")
        return out


@pytest.mark.parametrize("stage", STAGES)
def test_containers_in_the_arguments_stay_as_they_were(stage: str) -> None:
    model = Tagger()
    model.fail = stage == "forward"
    leaf = torch.randn(3, 4, requires_grad=True)
    leaf.grad = torch.ones(3, 4)
    inputs = ({"x": leaf, "more": [torch.zeros(2)]}, [torch.ones(1)])
    before = world(model, inputs)
    fxdoctor.analyze(model, inputs, loss=losses(stage))
    assert changes(before, world(model, inputs)) == []


@pytest.mark.parametrize("stage", STAGES)
def test_the_callers_graph_stays(stage: str) -> None:
    """An input with history: nothing flows back into the caller's graph, and it can still be run backward."""
    model = Base()
    model.fail = stage == "forward"
    leaf = torch.randn(3, 4, requires_grad=True)
    x = leaf.exp()
    things = [leaf, x]
    before = world(model, things)
    fxdoctor.analyze(model, x, loss=losses(stage))
    assert changes(before, world(model, things)) == []
    x.sum().backward()
    assert leaf.grad is not None and torch.equal(leaf.grad, leaf.exp())


CALLERS = {
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "anomaly": torch.autograd.detect_anomaly,
}


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("mode", CALLERS)
def test_the_callers_modes_stay(mode: str, stage: str) -> None:
    model, x = Base(), torch.randn(3, 4)
    model.fail = stage == "forward"
    with CALLERS[mode]():
        things = [x]
        before = world(model, things)
        report = fxdoctor.analyze(model, x, loss=losses(stage))
        assert changes(before, world(model, things)) == []
    if stage == "runs":
        assert {p.status for p in report.params.values()} == {"flows"}


def test_a_lazy_module_is_refused_as_it_is() -> None:
    model, x = nn.Sequential(nn.LazyLinear(4), nn.LazyBatchNorm1d()), torch.randn(3, 4)
    things = [x]
    before = world(model, things)
    with pytest.raises(ValueError, match="not initialised"):
        fxdoctor.analyze(model, x)
    assert changes(before, world(model, things)) == []


class Interrupted(Base):
    def step(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            self.layer.weight.mul_(2.0)
        self.seen = x
        raise KeyboardInterrupt


def test_an_interrupt_goes_through_and_leaves_no_trace() -> None:
    model, x = Interrupted(), torch.randn(3, 4)
    things = [x]
    before = world(model, things)
    with pytest.raises(KeyboardInterrupt):
        fxdoctor.analyze(model, x)
    assert changes(before, world(model, things)) == []


@pytest.mark.parametrize("stage", STAGES)
def test_a_callable_with_parameters_leaves_no_trace(stage: str) -> None:
    weight = torch.randn(4, 4, requires_grad=True)
    weight.grad = torch.ones(4, 4)
    holder, x = Base(), torch.randn(3, 4)

    def function(x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            weight.mul_(0.5)
        out = x @ weight
        if stage == "forward":
            raise RuntimeError("raised half-way in forward")
        return out

    things = [x, weight]
    before = world(holder, things)
    report = fxdoctor.analyze(function, x, params={"weight": weight}, loss=losses(stage))
    assert changes(before, world(holder, things)) == []
    assert stage != "runs" or report.params["weight"].status == "flows"
