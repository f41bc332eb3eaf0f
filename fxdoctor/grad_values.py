"""Gradients that are all zero or not finite, after backward: what on their way through the graph may have done it.

The values inside the graph are gone by then. What is certain (every way leads through a rounding op) is stated; the
rest is said with `may`.
"""

from __future__ import annotations

import torch

from .autograd_walk import GradGraph, frames, op_name
from .culprits import FLAT, MASKS, ROUNDING
from .grad_findings import LINE, make, user_place
from .grad_states import by_module
from .report.model import Finding, ParamState
from .rules.context import group_name

FACTORS = {
    "mul": (0, 1), "mm": (0, 1), "bmm": (0, 1), "mv": (0, 1), "dot": (0, 1), "addmm": (1, 2), "addmv": (1, 2),
    "addbmm": (1, 2), "baddbmm": (1, 2), "linear": (0, 1), "convolution": (0, 1), "batchnorm": (0, 1),
    "layernorm": (0, 1), "groupnorm": (0, 1), "cudnnbatchnorm": (0, 1), "rmsnorm": (0, 1), "fusedrmsnorm": (0, 1),
}  # fmt: skip
"""Products, and which of their inputs are multiplied with each other."""
RISKY = frozenset(
    """sqrt rsqrt norm linalgvectornorm log log2 log10 log1p logit div reciprocal pow std var stdmean varmean acos asin
    atan2 acosh exp expm1 sinh cosh cdist pdist euclideandist where logsumexp linalgsvd linalgeigh""".split()
)
_VIEWS = frozenset(
    "t transpose permute view reshape unsafeview expand unsqueeze squeeze slice select tocopy alias".split()
)
_KINDS = (
    ("saturated", FLAT - FACTORS.keys(), "may be saturated"),
    ("zero-factor", frozenset(FACTORS), "may multiply by zeros"),
    ("masked", MASKS, "may select none of it"),
)


def bad_values(
    graph: GradGraph | None,
    params: dict[str, torch.Tensor],
    states: dict[str, ParamState],
    status: str,
    reached: set[str] | None = None,
) -> list[Finding]:
    """Findings for gradients that are all zero ("zero") or not finite ("nan"), one per module.

    `graph` None: only the `.grad`s are known. `reached`: look only at these parameters.
    """
    names = [n for n in params if (reached is None or n in reached) and params[n].is_leaf]
    bad = [n for n in names if states[n].status == status and params[n].numel()]
    if not bad:
        return []
    live = {graph.leaves[id(params[n])] for n in names if states[n].status == "flows"} if graph is not None else set()
    alive = graph.above(live) if graph is not None else set()
    found = []
    for group in by_module(bad, params):
        text = f"the gradient of {group_name(group)} is " + ("exactly zero" if status == "zero" else "not finite")
        if graph is None:
            rule = "zero-factor" if status == "zero" else "nan-grad"
            found.append(make(rule, "warning", text, params=group, help=f"fxdoctor.diagnose(loss, model), or: {LINE}"))
        else:
            dead = {graph.leaves[id(params[n])] for n in group}
            found.append(_explained(graph, group, dead, live, alive, text, status))
    return found


def _explained(
    graph: GradGraph, group: list[str], dead: set[int], live: set[int], alive: set[int], text: str, status: str
) -> Finding:
    nodes, edge = suspects(graph, dead, alive)
    if status == "zero" and _heals(graph, edge, dead, live):
        text += ": it is multiplied by a parameter that is all zero now but learns itself; one step heals it"
        return make("zero-factor", "info", text, params=group)
    rule, named, why = _explain(graph, nodes, dead, status)
    places = [p for at in named if (p := user_place(frames(graph.functions[at])))]
    more = "; keep arguments away from the edge: sqrt(x + eps), log(x + eps), x.clamp(min=eps)"
    return make(
        rule,
        "warning",
        text + why,
        params=group,
        node=graph.name(named[0]) if named else None,
        location=places[0] if places else None,
        help=LINE + more if status == "nan" else LINE,
    )


def suspects(graph: GradGraph, dead: set[int], alive: set[int]) -> tuple[list[int], set[int]]:
    """Where gradients may have died, from the loss on: nodes above dead leaves that are above no live leaf, and those
    right above them, which are also given by themselves. `alive`: all nodes above live leaves."""
    up = graph.above(dead)
    only = up - alive
    edge = {p for at in only for p in graph.parents[at] if p not in only}
    return [at for at in graph.order if at in (only | edge) and graph.edges[at]], edge


def _explain(graph: GradGraph, nodes: list[int], dead: set[int], status: str) -> tuple[str, list[int], str]:
    """The rule, the nodes to name, and how the message goes on."""
    ops = {at: op_name(graph.name(at)) for at in nodes}
    if status == "nan":
        risky = [at for at in nodes if ops[at] in RISKY]
        return "nan-grad", risky, _on_the_way(graph, risky, "may be at the edge of its domain")
    rounding = [at for at in nodes if ops[at] in ROUNDING]
    if rounding and not graph.below(graph.roots, walls=set(rounding)) & dead:
        return "zero-grad-op", rounding, _on_the_way(graph, rounding, "has the derivative zero everywhere")
    able = [at for at in nodes if not _innocent(graph, at)]
    for at in able:
        for rule, kind, text in _KINDS:
            if ops[at] in kind:
                same = [n for n in able if ops[n] in kind]
                return rule, same, _on_the_way(graph, same, text)
    return "zero-factor", nodes[:1], ""


def _on_the_way(graph: GradGraph, nodes: list[int], text: str) -> str:
    names = list(dict.fromkeys(graph.name(at) for at in nodes))
    if not names:
        return ""
    return f": on its way, {names[0]} {text}" + (f" (or {', '.join(names[1:3])})" if len(names) > 1 else "")


def _heals(graph: GradGraph, edge: set[int], dead: set[int], live: set[int]) -> bool:
    """Whether every way to the dead leaves leads through a product with an all-zero parameter that learns."""
    products = {at for at in edge if any(leaf in live and zero for leaf, zero in _leaf_factors(graph, at))}
    return bool(products) and not graph.below(graph.roots, walls=products) & dead


def _innocent(graph: GradGraph, at: int) -> bool:
    """A product with a parameter that is not all zero: it passes gradients on."""
    return any(not zero for _, zero in _leaf_factors(graph, at))


def _leaf_factors(graph: GradGraph, at: int) -> list[tuple[int, bool]]:
    """The leaves that a product multiplies with, seen through views, and whether their values are all zero now."""
    found = []
    inputs = graph.edges[at]
    for position in FACTORS.get(op_name(graph.name(at)), ()):
        edge = inputs[position] if position < len(inputs) else None
        while edge is not None and op_name(graph.name(edge[0])) in _VIEWS:
            edge = graph.edges[edge[0]][0]
        leaf = graph.variable(edge[0]) if edge is not None else None
        if edge is not None and leaf is not None and (zero := _all_zero(leaf)) is not None:
            found.append((edge[0], zero))
    return found


def _all_zero(leaf: torch.Tensor) -> bool | None:
    """None where values cannot be read (meta and fake tensors)."""
    try:
        return not bool(torch.count_nonzero(leaf.detach()))
    except (RuntimeError, NotImplementedError):
        return None
