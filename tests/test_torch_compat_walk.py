"""The private torch names behind `autograd_walk`, each held to what it must do."""

from __future__ import annotations

import pytest
import torch

from fxdoctor import torch_compat as tc


def grad_fn(t: torch.Tensor) -> torch.autograd.graph.Node:
    assert t.grad_fn is not None
    return t.grad_fn


def test_grad_fn_keeps_object() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x.sin().cos()
    address = id(grad_fn(y).next_functions[0][0])
    others = [object() for _ in range(100)]  # takes the address if it is free
    again = id(grad_fn(y).next_functions[0][0])
    assert others and (address == again or not tc.grad_fn_keeps_object())


def test_saved_names_and_raw_saved() -> None:
    x = torch.randn(3, 3, requires_grad=True)
    assert tc.saved_names(grad_fn(x.sin())) == ["self"]
    assert sorted(tc.saved_names(grad_fn(x @ x))) == ["mat2", "self"]
    assert tc.saved_names(grad_fn(x.sum())) == []
    assert len(tc.raw_saved(grad_fn(x.sin()), "self")) == 1
    assert len(tc.raw_saved(grad_fn(x[torch.tensor([0]), torch.tensor([1])]), "indices")) == 2


def test_read_saved_checks_the_version() -> None:
    x = torch.randn(3, requires_grad=True)
    a = x * 1
    y = a.sin()
    assert tc.read_saved(grad_fn(y), "self")
    a.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        tc.read_saved(grad_fn(y), "self")


def test_read_saved_of_nothing() -> None:
    x = torch.randn(2, 3, requires_grad=True)
    assert not tc.read_saved(grad_fn(torch.nn.functional.layer_norm(x, (3,))), "weight")


def test_has_unpack_hook_and_saved_data() -> None:
    x = torch.randn(3, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        hooked = x.sin()
    plain = x.sin()
    (with_hook,), (without,) = tc.raw_saved(grad_fn(hooked), "self"), tc.raw_saved(grad_fn(plain), "self")
    known = hasattr(without, "unpack_hook")
    assert tc.has_unpack_hook(with_hook) is (True if known else None)
    assert tc.has_unpack_hook(without) is (False if known else None)
    data = tc.saved_data(without)
    assert data is None or torch.equal(data, x)


def test_clears_saved_on_access() -> None:
    class Keeps(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            return x * 1

        @staticmethod
        def backward(ctx, g):  # type: ignore[no-untyped-def]
            return g

    class Clears(Keeps):
        clear_saved_tensors_on_access = True

    x = torch.ones(1, requires_grad=True)
    assert not tc.clears_saved_on_access(grad_fn(Keeps.apply(x)))
    assert tc.clears_saved_on_access(grad_fn(Clears.apply(x)))
    assert not tc.clears_saved_on_access(grad_fn(x.sin()))


def test_plain_tensor_access() -> None:
    calls = []

    class Watching(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            calls.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})

    t = torch.ones(2).as_subclass(Watching)
    with tc.plain_tensor_access():
        assert t.grad_fn is None
    assert not calls
