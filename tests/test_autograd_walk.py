"""The walk over a live autograd graph, held against plain PyTorch: what backward raises, which leaves it fills."""

from __future__ import annotations

import gc
import pathlib
import subprocess
import sys
import time
import weakref
from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from fxdoctor import deep_graph, torch_compat
from fxdoctor.autograd_walk import frames, op_name, saved_hazards, walk

DEPTH = 100_000


def chain(depth: int) -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.ones(2, requires_grad=True)
    y = x
    for _ in range(depth):
        y = y.sin()
    return x, y


def test_nodes_edges_and_leaves() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    loss = model(torch.randn(5, 3)).sum()
    graph = walk(loss)
    assert graph.functions[graph.roots[0]] is loss.grad_fn
    for at, fn in enumerate(graph.functions):
        assert [None if e is None else (graph.functions[e[0]], e[1]) for e in graph.edges[at]] == [
            None if below is None else (below, nr) for below, nr in fn.next_functions
        ]
    assert graph.leaves.keys() == {id(p) for p in model.parameters()}
    assert {id(graph.variable(at)) for at in graph.leaves.values()} == graph.leaves.keys()


def test_order_puts_every_node_before_those_it_sends_to() -> None:
    x = torch.randn(3, requires_grad=True)
    a = x * 2
    loss = (a.sin() * a + x.exp()).sum()
    graph = walk(loss)
    rank = {at: i for i, at in enumerate(graph.order)}
    assert sorted(graph.order) == list(range(len(graph)))
    assert all(rank[at] < rank[e[0]] for at, edges in enumerate(graph.edges) for e in edges if e is not None)


def test_above_and_below() -> None:
    x, y = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)
    left, right = x.sin(), y.cos()
    graph = walk((left * right).sum())
    names = {graph.name(at) for at in graph.above([graph.leaves[id(x)]])}
    assert "SinBackward0" in names and "CosBackward0" not in names
    sin = next(at for at in range(len(graph)) if graph.name(at) == "SinBackward0")
    assert graph.below([sin]) == {sin, graph.leaves[id(x)]}
    assert graph.leaves[id(x)] not in graph.below(graph.roots, walls={sin})


def test_roots_of_every_kind() -> None:
    x = torch.randn(3, requires_grad=True)
    y = x * 2
    assert walk(y.grad_fn).functions == walk(y).functions
    assert walk(x).leaves == {id(x): 0}
    assert len(walk(torch.randn(3))) == 0
    assert len(walk([y, y.sum()]).roots) == 2
    with pytest.raises(TypeError, match="cannot walk from int"):
        walk(3)


def test_deep_graph_is_walked_fast_and_can_be_freed() -> None:
    x, y = chain(DEPTH)
    start = time.perf_counter()
    graph = walk(y)
    check = saved_hazards(graph)
    assert time.perf_counter() - start < 60e-6 * DEPTH  # some 10 us a node; the limit allows for a busy machine
    assert len(graph) == DEPTH + 1 and check.checked == DEPTH and not check.hazards
    del graph
    y.sum().backward()
    assert x.grad is not None
    gone = weakref.ref(y)
    del y
    for _ in range(3):
        gc.collect()
    assert gone() is None


@pytest.mark.parametrize("end", ["del y", "del y; del g", "del g; del y", "g = None", "pass"])
def test_freeing_a_deep_graph_ends_no_process(end: str) -> None:
    code = f"""
import torch
from fxdoctor.autograd_walk import walk
x = torch.ones(2, requires_grad=True); y = x
for _ in range({DEPTH}): y = y.sin()
g = walk(y)
{end}
print("alive")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0 and "alive" in done.stdout, done.stderr


def test_memory_of_a_braked_graph_is_given_back_at_once() -> None:
    _, y = chain(4 * deep_graph.DEEP)
    freed: list[int] = []

    class Witness:
        def __del__(self) -> None:
            freed.append(1)

    fn = y.grad_fn
    while fn is not None and fn.next_functions[0][0] is not None and fn.next_functions[0][0].next_functions:
        fn = fn.next_functions[0][0]
    fn.metadata["witness"] = Witness()  # on the node next to the leaf
    del fn
    walk(y)
    del y
    time.sleep(0)
    assert freed == [1]


def test_ordinary_graphs_get_nothing_added() -> None:
    _, y = chain(200)
    graph = walk(y)
    assert not any(fn.metadata for fn in graph.functions)


def test_brakes_only_where_torch_needs_them() -> None:
    _, y = chain(3 * deep_graph.DEEP)
    braked = sum(deep_graph.KEY in fn.metadata for fn in walk(y).functions)
    wanted = 3 * deep_graph.DEEP // deep_graph.SPACING - 1 if torch_compat.grad_fn_keeps_object() else 0
    assert wanted <= braked <= wanted + 2


# --- saved tensors --------------------------------------------------------------------------------------------------


def raises(loss: torch.Tensor) -> str:
    try:
        loss.backward()
    except RuntimeError as error:
        return str(error)
    return ""


def result_overwritten(x: torch.Tensor) -> torch.Tensor:
    y = x.sigmoid()
    loss = y.sum()
    y += 1
    return loss


def input_overwritten(x: torch.Tensor) -> torch.Tensor:
    a = x * 3
    loss = a.sin().sum()
    a.add_(1)
    return loss


def written_without_grad(x: torch.Tensor) -> torch.Tensor:
    a = x * 3
    loss = a.sin().sum()
    with torch.no_grad():
        a.mul_(2)
    return loss


def list_overwritten(x: torch.Tensor) -> torch.Tensor:
    index = torch.tensor([0, 1])
    loss = (x * 1)[index].sum()
    index.add_(1)
    return loss


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):  # type: ignore[no-untyped-def]
        ctx.save_for_backward(x, None)
        return x * x

    @staticmethod
    def backward(ctx, g):  # type: ignore[no-untyped-def]
        x, _ = ctx.saved_tensors
        return 2 * x * g


def custom_overwritten(x: torch.Tensor) -> torch.Tensor:
    a = x * 3
    loss = Square.apply(a).sum()
    a.zero_()
    return loss


def parameter_stepped(x: torch.Tensor) -> torch.Tensor:
    loss = (x.exp() * x).sum()
    with torch.no_grad():
        x -= 0.1
    return loss


BROKEN = [result_overwritten, input_overwritten, written_without_grad, list_overwritten, custom_overwritten]
BROKEN.append(parameter_stepped)


@pytest.mark.parametrize("make", BROKEN, ids=lambda f: f.__name__)
def test_hazard_is_what_backward_raises(make: Callable[[torch.Tensor], torch.Tensor]) -> None:
    x = torch.randn(3, requires_grad=True)
    loss = make(x)
    check = saved_hazards(loss)
    message = raises(loss)
    assert "modified by an inplace operation" in message
    assert [h.message for h in check.hazards] == [message]
    hazard = check.hazards[0]
    assert hazard.found is not None and hazard.expected is not None and hazard.found > hazard.expected
    assert f"is at version {hazard.found}; expected version {hazard.expected}" in message
    assert hazard.dtype in ("float32", "int64") and hazard.shape in ((3,), (2,))


def test_every_hazard_is_found_at_once() -> None:
    x = torch.randn(3, requires_grad=True)
    a, b = x * 2, x * 3
    loss = (a.sin() + b.cos()).sum()
    a.add_(1)
    b.add_(1)
    assert sorted(h.grad_fn for h in saved_hazards(loss).hazards) == ["CosBackward0", "SinBackward0"]


def test_writer_is_named_where_autograd_saw_it() -> None:
    x = torch.randn(3, requires_grad=True)
    assert op_name(saved_hazards(input_overwritten(x)).hazards[0].writer) == "add"
    assert saved_hazards(written_without_grad(x)).hazards[0].writer == ""


def test_freed_tensors_are_no_hazard() -> None:
    x = torch.randn(3, requires_grad=True)
    loss = (Square.apply(x * 2).sin()).sum()
    before = saved_hazards(loss)
    loss.backward()
    after = saved_hazards(loss)
    assert not before.freed and before.checked
    assert not after.hazards and after.freed == before.checked


def test_kept_graph_can_still_be_checked() -> None:
    x = torch.randn(3, requires_grad=True)
    a = x * 2
    loss = a.sin().sum()
    loss.backward(retain_graph=True)
    assert not saved_hazards(loss).hazards
    a.add_(1)
    assert len(saved_hazards(loss).hazards) == 1 and raises(loss)


def test_no_unpack_hook_is_called() -> None:
    calls: list[str] = []

    def recomputed(t: torch.Tensor) -> torch.Tensor:
        calls.append("run")
        return (t * 2).sin()

    x = torch.randn(3, requires_grad=True)
    y = checkpoint(recomputed, x, use_reentrant=False)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: calls.append("unpack") or t):
        loss = (y * y).exp().sum()
    check = saved_hazards(loss)
    assert calls == ["run"] and check.hooked >= 3 and not check.hazards
    assert raises(loss) == "" and "unpack" in calls


def test_hooked_custom_function() -> None:
    calls: list[str] = []
    x = torch.randn(3, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: calls.append("unpack") or t):
        loss = Square.apply(x).sum()
    assert saved_hazards(loss).hooked == 1 and not calls


def test_nothing_is_kept_or_changed() -> None:
    x = torch.randn(3, requires_grad=True)
    a = x * 2
    loss = a.sin().sum()
    versions, gone = (x._version, a._version), weakref.ref(a)
    graph = walk(loss)
    saved_hazards(graph)
    assert (x._version, a._version) == versions and x.grad is None
    del a, loss, graph
    gc.collect()
    assert gone() is None


def test_frames_in_anomaly_mode() -> None:
    x = torch.randn(3, requires_grad=True)
    assert frames((x * 2).grad_fn) == []
    with torch.autograd.detect_anomaly(check_nan=False):
        y = x.sin()
    file, line, function = frames(y.grad_fn)[-1]
    assert file == __file__ and function == "test_frames_in_anomaly_mode"
    assert pathlib.Path(__file__).read_text().splitlines()[line - 1].strip() == "y = x.sin()"


@pytest.mark.parametrize(
    "name, op",
    [
        ("ReluBackward0", "relu"),
        ("NativeLayerNormBackward0", "layernorm"),
        ("torch::autograd::CopySlices", "copyslices"),
    ],
)
def test_op_name(name: str, op: str) -> None:
    assert op_name(name) == op
