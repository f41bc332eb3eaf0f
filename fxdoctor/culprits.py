"""Where a gradient turns to zero or to NaN: the first step, coming from the loss, that makes it so.

A step is one edge of autograd's graph: a grad_fn that received a live gradient and passed a dead one back along the
edge. Two live gradients that add up to exactly zero are a cancellation, at the value where they meet.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from torch import fx

from .capture.backward import Backward, GradNode
from .capture.trace import Trace
from .capture.values import value_state
from .facts import NodeFacts, facts, place_key


@dataclass
class Culprit:
    """One place where gradients die."""

    kind: str
    """"zero", "nan" or "cancelled"."""
    step: GradNode
    """The grad_fn that received a live gradient; for a cancellation the value where the parts meet."""
    edge: int
    node: fx.Node | None
    params: list[str] = field(default_factory=list)
    meeting: list[GradNode] = field(default_factory=list)
    """For a cancellation, the grad_fns whose gradients cancel."""


def find(trace: Trace, kind: str) -> list[Culprit]:
    """The culprits for every parameter whose gradient is "zero" (or "nan"), nearest the loss first."""
    found: dict[tuple[str, int, int], Culprit] = {}
    for name, tensor in trace.subject.params.items():
        state = trace.states.get(name)
        if state is None or state.status != kind or id(tensor) not in trace.backward.leaves:
            continue
        start = trace.backward.leaves[id(tensor)][0]
        for culprit in _climb(trace.backward, start, kind):
            key = (culprit.kind, culprit.step.index, culprit.edge)
            found.setdefault(key, culprit).params.append(name)
    return list(found.values())


def _bad(norm: float | None, kind: str) -> bool:
    return norm is not None and (math.isnan(norm) if kind == "nan" else norm == 0.0)


def _climb(graph: Backward, start: int, kind: str) -> list[Culprit]:
    found: list[Culprit] = []
    seen, queue = {start}, [start]
    while queue:
        at = queue.pop()
        senders = [(graph.nodes[p], e) for p, e in graph.parents[at] if e < len(graph.nodes[p].sent)]
        sums = graph.nodes[at].leaf is not None and not graph.detailed
        bad = [(s, e) for s, e in senders if s.sent[e] is not None and (sums or _bad(s.sent[e], kind))]
        good = [s for s, e in senders if not sums and s.sent[e] is not None and not _bad(s.sent[e], kind)]
        if good and kind == "zero":
            meeting = graph.nodes[at]
            found.append(Culprit("cancelled", meeting, -1, _first_node(good), meeting=good))
            continue
        for sender, edge in bad:
            if _bad(sender.received, kind):
                if sender.index not in seen:
                    seen.add(sender.index)
                    queue.append(sender.index)
            elif sender.received is not None:
                found.append(Culprit(kind, sender, edge, sender.node))
    return found


def _first_node(steps: list[GradNode]) -> fx.Node | None:
    nodes = [s.node for s in steps if s.node is not None]
    return min(nodes, key=lambda n: facts(n).index) if nodes else None


SELECTORS = frozenset(["where", "maskedfill", "nantonum", "maskedscatter", "maskedselect", "index", "indexput"])


def hiding_selector(trace: Trace, culprit: Culprit) -> fx.Node | None:
    """The nearest where() or mask between the loss and a NaN: it discards the bad value in forward, but sends a zero
    back, and zero times infinity is NaN."""
    graph = trace.backward
    seen, queue = {culprit.step.index}, [culprit.step.index]
    while queue:
        at = queue.pop(0)
        for parent, _ in graph.parents[at]:
            step = graph.nodes[parent]
            if base_name(step) in SELECTORS and step.node is not culprit.node:
                return step.node
            if parent not in seen:
                seen.add(parent)
                queue.append(parent)
    return None


def zero_reads(node: fx.Node) -> list[fx.Node]:
    """The inputs of a node that were all zero, by the run that looked at values.

    A tensor that was written since it was made is judged by its last write.
    """
    reads = facts(node).reads
    rewritten = {w.storage for r in reads if r.kind == "state" for w in facts(r.node).writes}
    fresh = [r.node for r in reads if r.kind == "data" and not _storages(r.node) & rewritten and is_zero(r.node)]
    return fresh + [r.node for r in reads if r.kind == "state" and all(w.value == "zero" for w in facts(r.node).writes)]


def _storages(node: fx.Node) -> set[int | None]:
    return {o.storage for o in facts(node).outs if o.storage is not None}


def is_zero(node: fx.Node) -> bool:
    return bool(facts(node).outs) and all(o.value == "zero" for o in facts(node).outs)


def quick_zeros(trace: Trace) -> list[Explained] | None:
    """The zeros of a run that did not look at values, when parameters that are zero explain them all; else None.

    A zero-initialised head or norm weight stops every gradient at the first step and heals by itself. That is common
    enough to be seen without a second run.
    """
    for node in trace.nodes:
        tensor = trace.subject.named.get(str(node.target)) if node.op == "get_attr" else None
        if tensor is not None and facts(node).outs:
            facts(node).outs[0].value = value_state(tensor)
    found = find(trace, "zero")
    named = {p for c in found for p in c.params}
    if named != {n for n, s in trace.states.items() if s.status == "zero"}:
        return None
    explained = explain_zeros(trace, found)
    return explained if all(e.heals for e in explained) else None


def origins_of_zero(node: fx.Node) -> list[fx.Node]:
    """Where an all-zero value comes from: parameters, inputs or constants that are zero, or the ops that made it so."""
    found: list[fx.Node] = []
    seen, queue = {node}, [node]
    while queue:
        at = queue.pop()
        below = zero_reads(at)
        if not below:
            found.append(at)
        for n in below:
            if n not in seen:
                seen.add(n)
                queue.append(n)
    return found


def first_non_finite(trace: Trace) -> fx.Node | None:
    """The first node on the way to a non-finite loss that made NaN (or, for an infinite loss, infinity) from inputs
    that had none. Infinities that a mask put there on purpose are passed over while there is a NaN to explain."""
    loss = trace.loss_node
    if loss is None:
        return None
    value = _worst(facts(loss))
    if value not in ("nan", "inf"):
        return None
    seen, queue, found = {loss}, [loss], []
    while queue:
        at = queue.pop()
        below = [r.node for r in facts(at).reads if r.kind in ("data", "state") and _worst(facts(r.node)) == value]
        if not below:
            found.append(at)
        for n in below:
            if n not in seen:
                seen.add(n)
                queue.append(n)
    return min(found, key=lambda n: facts(n).index) if found else None


def _worst(f: NodeFacts) -> str | None:
    values = [o.value for o in f.outs] + [w.value for w in f.writes]
    return "nan" if "nan" in values else "inf" if "inf" in values else None


def base_name(step: GradNode) -> str:
    """ "softmax" for `SoftmaxBackward0`: the op behind a grad_fn."""
    name = step.name.split("::")[-1].rstrip("0123456789").removesuffix("Backward")
    return name.lower().removeprefix("native").removeprefix("aten")


ROUNDING = frozenset(["round", "floor", "ceil", "trunc", "sign", "sgn", "heaviside", "fix", "floordivide"])
FLAT = frozenset(
    """relu threshold clamp clampmin clampmax hardtanh sigmoid tanh softmax logsoftmax elu hardsigmoid hardswish
    hardshrink softshrink gelu silu mish softplus logsigmoid leakyrelu layernorm batchnorm groupnorm cudnnbatchnorm
    minimum maximum max min amax amin pow abs linalgvectornorm norm std var cos erf prod sin rmsnorm""".split()
)
MASKS = frozenset(
    """where maskedfill maskedscatter maskedselect gather indexselect embedding embeddingbag index indexput nllloss
    nllloss2d dropout fuseddropout tril triu nantonum indexfill take scatter topk sort ctcloss slice select
    constantpadnd asstrided copyslices cat stack split splitwithsizes unbind chunk""".split()
)


SCALED = frozenset(["layernorm", "batchnorm", "groupnorm", "cudnnbatchnorm", "rmsnorm", "instancenorm"])
"""Flat ops that also multiply by a weight."""
ADDING = frozenset(["add", "addmm", "addbmm", "baddbmm", "convolution", "sub", "mkldnnconvolution", "linear"])
"""Ops into which a bias goes by addition."""


@dataclass
class Explained:
    """A zero with its reason: the rule, the node to point at, what was zero, and whether one step heals it."""

    rule: str
    node: fx.Node
    params: list[str]
    factors: list[fx.Node] = field(default_factory=list)
    heals: bool = False
    harmless: bool = False
    """A bias whose shifts cancel: the loss does not depend on it at all."""
    meeting: list[fx.Node] = field(default_factory=list)
    nodes: list[fx.Node] = field(default_factory=list)
    """All nodes of the same expression that do this."""

    def __post_init__(self) -> None:
        self.nodes = self.nodes or [self.node]


def explain_zeros(trace: Trace, culprits: list[Culprit]) -> list[Explained]:
    """The reason for each zero, merged by rule and node."""
    merged: dict[tuple[str, Any, bool], Explained] = {}
    for culprit in culprits:
        if culprit.node is None or culprit.step.custom:
            continue
        e = _explain(trace, culprit)
        kept = merged.setdefault((e.rule, place_key(e.node), e.heals), e)
        if kept is not e:
            kept.params.extend(p for p in e.params if p not in kept.params)
            kept.factors.extend(n for n in e.factors if n not in kept.factors)
            kept.nodes.extend(n for n in e.nodes if n not in kept.nodes)
    return list(merged.values())


def _explain(trace: Trace, culprit: Culprit) -> Explained:
    node = culprit.node
    assert node is not None
    params = list(culprit.params)
    if culprit.kind == "cancelled":
        meeting = sorted({s.node for s in culprit.meeting if s.node is not None}, key=lambda n: facts(n).index)
        added = culprit.step.leaf is not None and all(base_name(s) in ADDING for s in culprit.meeting)
        return Explained("cancelled", node, params, meeting=meeting, harmless=added)
    name = base_name(culprit.step)
    if name in ROUNDING or (name == "div" and _rounds(node)):
        return Explained("zero-grad-op", node, params)
    factors = _zero_factors(node, culprit)
    if name in FLAT and not (factors and name in SCALED):
        return Explained("saturated", node, params)
    if not factors:
        return Explained("masked" if name in MASKS else "zero-factor", node, params)
    origins = list(dict.fromkeys(o for f in factors for o in origins_of_zero(f)))
    heals = any(_learns(trace, o) for o in origins)
    made = [o for o in origins if o.op.startswith("call") and facts(o).reads]
    if made and not heals and len(made) == len(origins):
        rule = _origin_rule(made[0])
        if rule != "zero-factor":
            return Explained(rule, made[0], params, factors)
    return Explained("masked" if name in MASKS else "zero-factor", node, params, origins, heals)


def _rounds(node: fx.Node) -> bool:
    return "rounding_mode" in node.kwargs or facts(node).op == "floor_divide"


def _zero_factors(node: fx.Node, culprit: Culprit) -> list[fx.Node]:
    """The all-zero inputs of the node, without the parameter whose own gradient is asked for."""
    own = set(culprit.params)
    return [z for z in zero_reads(node) if not (z.op == "get_attr" and str(z.target) in own and len(own) == 1)]


def _learns(trace: Trace, origin: fx.Node) -> bool:
    """A zero that is itself a parameter with a live gradient is gone after one step."""
    state = trace.states.get(str(origin.target)) if origin.op == "get_attr" else None
    return state is not None and state.status == "flows"


def _origin_rule(node: fx.Node) -> str:
    name = facts(node).op.strip("_").lower()
    plain = name.replace("_", "")
    if plain in ROUNDING:
        return "zero-grad-op"
    if plain in FLAT or "relu" in plain:
        return "saturated"
    return "masked" if plain in MASKS or plain in ("getitem", "tril", "triu") else "zero-factor"
