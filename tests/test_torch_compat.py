"""The private torch names that the recorder stands on, each held to what it must do."""

from __future__ import annotations

import threading

import pytest
import torch
from torch import fx, nn

from fxdoctor import torch_compat as tc


def test_storage_key_is_shared_by_aliases_only() -> None:
    x = torch.zeros(3)
    assert tc.storage_key(x) == tc.storage_key(x[1:]) == tc.storage_key(x.detach())
    assert tc.storage_key(x) != tc.storage_key(x.clone())
    assert tc.storage_key(torch.eye(2).to_sparse()) is None


def test_version_of_counts_writes() -> None:
    x = torch.zeros(3)
    before = tc.version_of(x)
    x[:1].add_(1)
    assert before is not None and tc.version_of(x) == before + 1
    with torch.inference_mode():
        assert tc.version_of(torch.zeros(1)) is None


def test_sequence_numbers_rise_and_leaves_have_none() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    z = y + 1
    assert y.grad_fn is not None and z.grad_fn is not None
    first, second = tc.sequence_nr(y.grad_fn), tc.sequence_nr(z.grad_fn)
    assert first is not None and second is not None and first < second
    assert tc.sequence_nr(y.grad_fn.next_functions[0][0]) is None


def test_transform_level() -> None:
    seen: list[bool] = []
    torch.func.vmap(lambda t: seen.append(tc.transform_level()) or t)(torch.ones(2))
    assert seen == [True] and not tc.transform_level()


def test_transform_entry_points_are_used() -> None:
    points = tc.transform_entry_points()
    assert {name for _, name in points} >= {"vmap_impl", "grad_impl", "_vjp_with_argnums"}
    for owner, name in points:
        original, calls = getattr(owner, name), []
        setattr(owner, name, lambda *a, _o=original, _c=calls, **k: _c.append(1) or _o(*a, **k))
        try:
            torch.func.vmap(lambda t: t * 2)(torch.ones(2))
            torch.func.grad(lambda t: t.sum())(torch.ones(2))
            torch.func.grad_and_value(lambda t: t.sum())(torch.ones(2))
            torch.func.vjp(lambda t: t.sum(), torch.ones(2))
            torch.func.jvp(lambda t: t.sum(), (torch.ones(2),), (torch.ones(2),))
        finally:
            setattr(owner, name, original)
        assert calls, name


def test_new_node_is_create_node() -> None:
    graph = fx.Graph()
    x = graph.placeholder("x")
    node = tc.new_node(graph, "call_method", "add", (x, 1.0), {"alpha": 2}, "add")
    assert node.args == (x, 1.0) and node.kwargs == {"alpha": 2} and list(x.users) == [node]
    graph.lint()


def test_views_and_bases() -> None:
    x = torch.zeros(3)
    assert tc.base_of(x[:2]) is x and tc.is_view(x[:2])
    assert tc.base_of(x) is None and not tc.is_view(x)


def test_hook_dicts() -> None:
    p, ran = nn.Parameter(torch.ones(2)), []
    p.register_hook(lambda g: ran.append("tensor"))
    p.register_post_accumulate_grad_hook(lambda t: ran.append("accumulate"))
    hooks, after = tc.tensor_hooks(p), tc.accumulate_hooks(p)
    assert hooks is not None and after is not None and len(hooks) == len(after) == 1
    kept = dict(after)
    after.clear()
    tc.set_tensor_hooks(p, None)
    (p * 2).sum().backward()
    assert ran == []
    after.update(kept)
    tc.set_tensor_hooks(p, hooks)
    (p * 2).sum().backward()
    assert sorted(ran) == ["accumulate", "tensor"]


def test_function_base_intercepts_apply() -> None:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            return x * 2

    owner, seen = tc.function_base(), []
    original = vars(owner).get("apply")
    owner.apply = classmethod(lambda cls, *args: seen.append(cls) or args[0])
    try:
        Double.apply(torch.ones(1))
    finally:
        if original is None:
            del owner.apply
        else:
            owner.apply = original
    assert seen == [Double]
    assert float(Double.apply(torch.ones(1))) == 2.0


def test_switches() -> None:
    tc.set_grad_enabled()(False)
    try:
        assert not torch.is_grad_enabled()
    finally:
        tc.set_grad_enabled()(True)
    enter, leave = tc.autocast_switches()
    scope = enter("cpu", torch.bfloat16, True, True)
    assert torch.is_autocast_enabled("cpu")
    leave(scope)
    assert not torch.is_autocast_enabled("cpu")
    enter, leave = tc.inference_switches()
    scope = enter(True)
    assert torch.is_inference_mode_enabled()
    leave(scope)
    assert not torch.is_inference_mode_enabled()


@pytest.mark.parametrize("steps", [10, 60_000])
def test_free_in_order_frees_deep_graphs(steps: int) -> None:
    """From 2.14 such a graph overflows the C stack when it is freed from its end, once Python has seen its nodes."""

    def deep() -> None:
        x = torch.ones(1, requires_grad=True)
        y = x
        for _ in range(steps):
            y = y + 1
        functions, fn = [], y.grad_fn
        while fn is not None:
            functions.append(fn)
            fn = fn.next_functions[0][0] if fn.next_functions else None
        del y, fn
        tc.free_in_order(functions)
        assert functions == []

    thread = threading.Thread(target=deep)
    thread.start()
    thread.join()
