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
_KEEP_ZERO = _VIEWS | frozenset(
    "relu gelu silu tanh sin abs neg sum mean add sub clone dropout cat stack avgpool2d maxpool2dwithindices".split()
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
    if graph is None:
        return [_unexplained(group, status) for group in by_module(bad, params)]
    if not bad:
        return []
    leaf = {n: graph.leaves[id(params[n])] for n in names}
    live = {leaf[n] for n in names if states[n].status == "flows"}
    found = []
    if status == "zero":
        healing = _healing(graph, {leaf[n] for n in bad}, live)
        if healing:
            names = [n for n in bad if leaf[n] in healing]
            text = "is multiplied by a parameter that is all zero now but learns itself; one step heals it"
            found.append(make("zero-factor", "info", f"{_text(names, status)}: it {text}", params=names))
            bad = [n for n in bad if leaf[n] not in healing]
    dominators = Dominators(graph, live)
    for group in by_module(bad, params):
        found.append(_explained(graph, group, {leaf[n] for n in group}, dominators, status))
    return found


def _text(group: list[str], status: str) -> str:
    return f"the gradient of {group_name(group)} is {'exactly zero' if status == 'zero' else 'not finite'}"


def _unexplained(group: list[str], status: str) -> Finding:
    rule = "zero-factor" if status == "zero" else "nan-grad"
    return make(rule, "warning", _text(group, status), params=group, help=f"fxdoctor.diagnose(loss, model), or: {LINE}")


def _explained(graph: GradGraph, group: list[str], dead: set[int], dominators: Dominators, status: str) -> Finding:
    nodes = dominators.suspects(dead)
    rule, named, why = _explain(graph, nodes, dead, status)
    places = [p for at in named if (p := user_place(frames(graph.functions[at])))]
    more = "; keep arguments away from the edge: sqrt(x + eps), log(x + eps), x.clamp(min=eps)"
    return make(
        rule,
        "warning",
        _text(group, status) + why,
        params=group,
        node=graph.name(named[0]) if named else None,
        location=places[0] if places else None,
        help=LINE + more if status == "nan" else LINE,
    )


class Dominators:
    """Which nodes all of a node's gradient passes through, and which of those do so for a live leaf too."""

    def __init__(self, graph: GradGraph, live: set[int]) -> None:
        self.graph = graph
        self.above: list[int] = [-1] * len(graph)
        """The nearest such node; -1 where there is none but the loss itself."""
        self.depth = [0] * len(graph)
        self.rank = {at: i for i, at in enumerate(graph.order)}
        roots = set(graph.roots)
        for at in graph.order:
            above = -1
            for i, parent in enumerate(dict.fromkeys(graph.parents[at])):
                above = parent if i == 0 else self._common(above, parent)
            self.above[at] = -1 if at in roots else above
            self.depth[at] = 0 if self.above[at] < 0 else self.depth[self.above[at]] + 1
        self.alive: set[int] = set()
        for at in live:
            while at >= 0 and at not in self.alive:
                self.alive.add(at)
                at = self.above[at]

    def _common(self, a: int, b: int) -> int:
        while a != b and a >= 0 and b >= 0:
            if self.depth[a] >= self.depth[b]:
                a = self.above[a]
            else:
                b = self.above[b]
        return a if a == b else -1

    def suspects(self, dead: set[int]) -> list[int]:
        """Where the gradients of `dead` may have died, from the loss on: nodes that all of a leaf's gradient passes
        through, up to and with the first that also leads to a live leaf."""
        found: set[int] = set()
        for leaf in dead:
            at = self.above[leaf]
            while at >= 0 and at not in found:
                found.add(at)
                at = -1 if at in self.alive else self.above[at]
        return sorted(found, key=self.rank.__getitem__)


def _explain(graph: GradGraph, nodes: list[int], dead: set[int], status: str) -> tuple[str, list[int], str]:
    """The rule, the nodes to name, and how the message goes on."""
    ops = {at: op_name(graph.name(at)) for at in nodes}
    if status == "nan":
        risky = [at for at in nodes if ops[at] in RISKY]
        if not risky:
            above = graph.above(dead)
            risky = [at for at in graph.order if at in above and op_name(graph.name(at)) in RISKY]
        return "nan-grad", risky, _on_the_way(graph, risky, "may be at the edge of its domain")
    rounding = {at for at in graph.above(dead) if op_name(graph.name(at)) in ROUNDING}
    if rounding and not graph.below(graph.roots, walls=rounding) & dead:
        return (
            "zero-grad-op",
            sorted(rounding),
            _on_the_way(graph, sorted(rounding), "has the derivative zero everywhere"),
        )
    able = [at for at in nodes if all(zero or leaf in dead for leaf, zero in _leaf_factors(graph, at))]
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


def _healing(graph: GradGraph, dead: set[int], live: set[int]) -> set[int]:
    """Those of `dead` to which every way leads through a product whose other factor is zero now, because of an all-zero
    parameter that learns: what such a product sends there is exactly zero, and will not be after one step."""
    zero = _zero_values(graph, live)
    todo = list(graph.roots) if any(zero.values()) else []
    seen = set(todo)
    while todo:
        at = todo.pop()
        edges = graph.edges[at]
        factors = FACTORS.get(op_name(graph.name(at)), ())
        zeros = {i for i in factors if i < len(edges) and (edge := edges[i]) is not None and zero.get(edge[0])}
        for i, edge in enumerate(edges):
            blocked = i in factors and zeros - {i}
            if edge is not None and not blocked and edge[0] not in seen:
                seen.add(edge[0])
                todo.append(edge[0])
    return dead - seen if seen else set()


def _zero_values(graph: GradGraph, live: set[int]) -> dict[int, bool]:
    """The nodes whose forward value is all zero, by the values of the leaves now: True where a leaf that learns makes
    it so. Products with a zero, sums of zeros, and ops that keep zero are followed; a missing bias counts as zero."""
    zero: dict[int, bool] = {}
    for at in reversed(graph.order):
        leaf, edges = graph.variable(at), graph.edges[at]
        if leaf is not None:
            if _all_zero(leaf):
                zero[at] = at in live
            continue
        op = op_name(graph.name(at))
        parts = [None if e is None else zero.get(e[0]) for e in edges]
        if op in FACTORS:
            factors = [p for i, p in enumerate(parts) if i in FACTORS[op] and p is not None]
            rest_is_zero = all(
                e is None or p is not None
                for i, (e, p) in enumerate(zip(edges, parts, strict=True))
                if i not in FACTORS[op]
            )
            if factors and rest_is_zero:
                zero[at] = any(factors)
        elif op in _KEEP_ZERO and edges and all(p is not None for p in parts):
            zero[at] = any(parts)
    return zero


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
