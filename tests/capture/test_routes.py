"""Symbolic and dynamo capture: the same outputs, gradients, names and findings as one recorded eager run."""

from __future__ import annotations

import contextlib
import copy
import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import fxdoctor
from fxdoctor.capture.dynamo import capture_dynamo
from fxdoctor.capture.errors import CaptureError
from fxdoctor.capture.symbolic import capture_symbolic

CAPTURES = {"symbolic": capture_symbolic, "dynamo": capture_dynamo}


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
        return g * 2


class Writer(nn.Module):
    """Every form of write that plain symbolic tracing loses, and a stop-gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Linear(4, 6)
        self.norm = nn.BatchNorm1d(6)
        self.gate = nn.Sequential(nn.Linear(6, 6), nn.ReLU(inplace=True))
        self.tail = nn.Linear(6, 3)
        self.spare = nn.Parameter(torch.randn(3))
        self.register_buffer("seen", torch.zeros(6))

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        h = self.norm(self.enter(x))
        left = h[:, :3]
        left += 1.0
        h[:, 0] = 0.5
        with torch.no_grad():
            self.seen.add_(h.mean(0))
        out = torch.zeros(x.shape[0], 6, dtype=x.dtype)
        out[:, 1:] = self.gate(h)[:, 1:]
        stop = torch.tanh(h).detach()
        return {"y": self.tail(out * stop), "z": F.relu(h * 2, inplace=True)}


class Severed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Linear(4, 5)
        self.tower = nn.Linear(4, 5)
        self.head = nn.Linear(5, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.tanh(self.encoder(x)).detach()
        with torch.no_grad():
            t = self.tower(x)
        return self.head(h + t)


def gradients(model: nn.Module, x: torch.Tensor, names: list[str]) -> tuple[Any, dict[str, torch.Tensor | None]]:
    out = model(x)
    model.zero_grad()
    sum(v.pow(2).sum() for v in out.values()).backward()
    grads = dict(model.named_parameters())
    return out, {n: None if grads[n].grad is None else grads[n].grad.clone() for n in names}


@pytest.mark.parametrize("route", CAPTURES)
@pytest.mark.parametrize("seed", [0, 1])
def test_same_outputs_gradients_and_buffers(route: str, seed: int) -> None:
    torch.manual_seed(seed)
    model, x = Writer().double(), torch.randn(5, 4, dtype=torch.float64)
    twin = copy.deepcopy(model)
    captured = CAPTURES[route](twin, (x,), {})
    assert {n: id(p) for n, p in captured.named_parameters()} == {n: id(p) for n, p in twin.named_parameters()}
    assert dict(twin.named_buffers()).keys() == dict(captured.named_buffers()).keys()
    assert torch.equal(twin.seen, model.seen), "capturing must not run the model's writes for good"
    names = [n for n, _ in model.named_parameters()]
    expected, grads = gradients(model, x, names)
    got, got_grads = gradients(captured, x, names)
    for key in expected:
        torch.testing.assert_close(got[key], expected[key], rtol=0, atol=0)
    for name in names:
        if grads[name] is None:
            assert got_grads[name] is None, name
        else:
            torch.testing.assert_close(got_grads[name], grads[name], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(twin.seen, model.seen, rtol=0, atol=0)


@pytest.mark.parametrize("route", CAPTURES)
def test_findings_are_those_of_the_recorder(route: str) -> None:
    torch.manual_seed(0)
    model, x = Severed(), torch.randn(3, 4)
    lines, start = inspect.getsourcelines(Severed)
    expected = {
        "detach": start + next(i for i, text in enumerate(lines) if ".detach()" in text),
        "no-grad": start + next(i for i, text in enumerate(lines) if "no_grad" in text),
    }
    report = fxdoctor.analyze(model, x, capture=route)
    assert not any("recorded instead" in note for note in report.notes)
    loud = {f.rule: f for f in report.findings if f.loud}
    assert loud.keys() == expected.keys()
    for rule, line in expected.items():
        assert loud[rule].location is not None and abs(loud[rule].location.line - line) <= 1
        assert loud[rule].proof == "proved"


def test_symbolic_places_have_columns_and_module_paths() -> None:
    captured = capture_symbolic(Severed(), (torch.randn(3, 4),), {})
    node = next(n for n in captured.graph.nodes if n.target == "detach")
    place = node.meta["location"]
    assert place.source[place.column : place.end_column] == "torch.tanh(self.encoder(x)).detach()"
    assert {n.meta["module_path"] for n in captured.graph.nodes if n.op == "call_module"} == {
        "encoder", "tower", "head",
    }


class Branch(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x if x.sum() > 0 else -x


class State(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("kept", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.kept = self.kept * 0.9 + x.mean(0)
        return x - self.kept


class Exit(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * float(x.mean())


REFUSED: list[Callable[[], nn.Module]] = [Branch, State, Exit]


@pytest.mark.parametrize("make", REFUSED)
def test_symbolic_refuses_what_it_would_get_wrong(make: Callable[[], nn.Module]) -> None:
    model, x = make(), torch.randn(3, 4)
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(CaptureError) as raised:
        capture_symbolic(model, (x,), {})
    assert raised.value.location is not None and raised.value.location.file == __file__
    assert all(torch.equal(a, b) for a, b in zip(before.values(), model.state_dict().values(), strict=True))
    report = fxdoctor.analyze(nn.Sequential(nn.Linear(4, 4), model), x, capture="symbolic")
    assert any("symbolic" in note and "recorded instead" in note for note in report.notes)
    with contextlib.suppress(RuntimeError):
        assert {s.status for s in report.params.values()} == {"flows"}


def test_symbolic_keeps_custom_functions_and_grad_switches() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(4, 4)

        def forward(self, x: torch.Tensor, flag: bool, parts: list[torch.Tensor]) -> torch.Tensor:
            with torch.no_grad():
                scale = parts[0].abs().max()
            return Double.apply(self.fc(x)) / scale + (parts[1] if flag else 0)

    model, x = Model(), torch.randn(2, 4)
    parts = [torch.randn(4), torch.randn(4)]
    captured = capture_symbolic(model, (x, True, parts), {})
    torch.testing.assert_close(captured(x, True, parts), model(x, True, parts), rtol=0, atol=0)
    targets = [n.target for n in captured.graph.nodes]
    assert targets.count(torch._C._set_grad_enabled) == 2
