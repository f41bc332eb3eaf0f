"""The recorded graph runs again, by `fx.Interpreter` and as a `GraphModule`, bit for bit as eager does.

Truth is plain eager: outputs and gradients of the same model on the same inputs from the same random state. Where a
graph cannot run again, `report.notes` must name the node and say why (`CANNOT` lists those cases).
"""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
from replay_cases import CASES
from torch import fx, nn
from torch.utils import _pytree as pytree

import fxdoctor

CANNOT: dict[str, str] = {}
"""Cases whose graph cannot run again, and a word that the note must contain."""


def tensor_leaves(tree: Any) -> list[torch.Tensor]:
    """Tensors of an output, also inside dataclasses, which pytree does not open."""
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        tree = [getattr(tree, f.name) for f in dataclasses.fields(tree)]
    return [t for t in pytree.tree_leaves(tree) if isinstance(t, torch.Tensor)]


def gradients(outputs: list[torch.Tensor], model: nn.Module) -> dict[str, torch.Tensor | None]:
    total = torch.zeros(())
    for t in outputs:
        if t.requires_grad:
            total = total + (t.abs() * torch.randn(t.shape, generator=torch.Generator().manual_seed(4))).sum()
    if total.requires_grad:
        total.backward()
    return {n: p.grad for n, p in model.named_parameters()}


def arguments(inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    pair = isinstance(inputs, tuple) and len(inputs) == 2 and isinstance(inputs[1], dict)
    return inputs if pair else ((inputs,), {})


def equal(a: torch.Tensor | None, b: torch.Tensor | None) -> bool:
    if a is None or b is None:
        return a is b
    if a.layout is not torch.strided:
        a, b = a.to_dense(), b.to_dense()
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a.detach(), b.detach())


def plain(tree: Any) -> Any:
    """The nesting alone; the interpreter gives fx's immutable lists and dicts."""
    if isinstance(tree, dict):
        return {k: plain(v) for k, v in tree.items()}
    if isinstance(tree, (list, tuple)):
        return ["list" if isinstance(tree, list) else "tuple", *map(plain, tree)]
    return "tensor" if isinstance(tree, torch.Tensor) else tree


@pytest.mark.parametrize("how", ["interpreter", "module"])
@pytest.mark.parametrize("name", CASES)
def test_the_graph_runs_again_as_eager(name: str, how: str) -> None:
    model, inputs = CASES[name]()
    torch.manual_seed(1)
    args, kwargs = arguments(inputs)
    output = model(*args, **kwargs)
    expected = [t.detach().clone() for t in tensor_leaves(output)]
    truth = gradients(tensor_leaves(output), model)

    model, inputs = CASES[name]()
    torch.manual_seed(1)
    report = fxdoctor.analyze(model, inputs, prove=False)
    assert report.error is None
    assert report.graph is not None
    module = report.graph.owning_module
    assert isinstance(module, fx.GraphModule)
    if name in CANNOT:
        assert any(CANNOT[name] in note for note in report.notes), report.notes
        return
    model.zero_grad()
    flat = [t for t in pytree.tree_leaves(arguments(inputs)) if isinstance(t, torch.Tensor)]
    torch.manual_seed(1)
    again = fx.Interpreter(module).run(*flat) if how == "interpreter" else module(*flat)
    got = tensor_leaves(again)
    assert [t.shape for t in got] == [t.shape for t in expected]
    for a, b in zip(expected, got, strict=True):
        assert equal(a, b), f"outputs differ:\n{module.code}"
    if type(output) in (dict, list, tuple):
        assert plain(again) == plain(output)
    shared = gradients(got, model)
    for n, grad in truth.items():
        assert equal(grad, shared[n]), f"the gradient of {n} differs:\n{module.code}"
