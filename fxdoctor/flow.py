"""The gradient-flow graph, and the cuts that starve a parameter.

Nodes are the recorded fx nodes (parameters and inputs among them), edges are data dependences. Each edge says whether
the gradient comes back along it and, if not, which rule explains that. An edge is judged by facts (the input requires
grad, the output does not, or autograd's own graph has no such edge); names only pick the rule.

The cuts of a starved parameter are the severed edges on the cheapest data path from it to the loss. An edge that can
be repaired costs less than one that has no derivative, and a stretch under one `no_grad` costs once, so the path found
is the smallest repair.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

import networkx as nx
import torch
from torch import fx

from .capture import ops
from .capture.trace import Trace
from .facts import NodeFacts, Read, Region, facts, location_of, place_key

COST = {
    "detach": 1.0,
    "no-grad": 1.0,
    "non-leaf-param": 1.0,
    "missing-create-graph": 1.0,
    "function-none": 1.0,
    "python-value": 1.5,
    "nondiff-op": 3.0,
    "int-cast": 3.0,
}
RETURN = {"soft": 2.0, "time": 3.5, "guess": 4.6}
"""To come back from Python: surely (the same object, the same memory), or maybe. Dearer than any path that was seen."""
OUTPUT = 0.5
"""To end at an output that the default loss had to leave out, because it does not require grad."""
REFUTED = 1000.0
_CONVERSIONS = frozenset(
    ["cpu", "to", "float", "double", "contiguous", "clone", "numpy", "squeeze", "view", "reshape", "getitem"]
)


@dataclass
class Cut:
    """One severed edge, and the parameters that need it repaired."""

    rule: str
    node: fx.Node
    """Where the gradient stops: the op whose output has lost it (for a value that left for Python, the exit)."""
    source: fx.Node
    """The input that the gradient does not come back to."""
    params: list[str] = field(default_factory=list)
    region: Region | None = None
    nodes: list[fx.Node] = field(default_factory=list)
    """All nodes a repair must touch: the whole stretch under one `no_grad`, or every turn of a loop."""
    returns: list[tuple[fx.Node, fx.Node]] = field(default_factory=list)
    """For values that left for Python: (exit, the node that the value came back to)."""
    edges: list[tuple[fx.Node, fx.Node]] = field(default_factory=list)
    """The severed edges, as (input, node)."""
    chain: list[Cut] = field(default_factory=list, repr=False)
    """The cuts behind this one on the same path; all must be repaired together."""
    absorbed: list[fx.Node] = field(default_factory=list)
    """Detaches that are part of an exit to Python."""
    proof: str | None = None
    evidence: str = ""

    @property
    def key(self) -> tuple[str, Any]:
        """Cuts with the same key are one: the same expression, or the same place that switched grad mode off."""
        if self.region is not None and (switch := self.region.spot or self.region.location) is not None:
            return self.rule, switch
        return self.rule, place_key(self.node)


def build(trace: Trace, refuted: set[tuple[fx.Node, fx.Node]] | None = None) -> nx.DiGraph[Any]:
    """The flow graph of a trace; edges in `refuted` are priced out."""
    graph: nx.DiGraph[Any] = nx.DiGraph()
    reached = trace.backward.reached
    leaves = _reached_leaves(trace)
    dropped = _dropped(trace, leaves)
    for node in trace.nodes:
        f = facts(node)
        graph.add_node(node, name=node.name, op=f.op, requires_grad=f.requires_grad, grad=f.grad_state)
        for read in f.reads:
            if read.kind == "meta" or read.node is node:
                continue
            live, rule, cost = judge(read, node, reached, set(leaves.values()))
            if (node, read.edge or read.node) in dropped:
                rule = "function-none" if f.function is not None else "nondiff-op"
                live, cost = False, COST[rule]
            if refuted and (read.node, node) in refuted:
                cost = REFUTED
            old = graph.get_edge_data(read.node, node)
            if old is None or cost < old["weight"]:
                graph.add_edge(read.node, node, live=live, rule=rule, weight=cost, kind=read.kind)
    return graph


def _reached_leaves(trace: Trace) -> dict[int, fx.Node]:
    """`id` of each leaf that autograd's graph under the loss ends in, and the node that stands for it."""
    recorder = trace.recorder
    found = {key: node for key, node in recorder.sources.items() if key in trace.backward.leaves}
    for key, (_, leaf) in trace.backward.leaves.items():
        token = getattr(leaf, "_fxdoctor", None)
        if token is not None and token.session == recorder.session:
            found[key] = token.node
    return found


def _dropped(trace: Trace, leaves: dict[int, fx.Node]) -> set[tuple[fx.Node, Any]]:
    """(node, input) where backward ran and gave None for the input; the input as a gradient edge or a leaf's node."""
    found: set[tuple[fx.Node, Any]] = set()
    for step in trace.backward.nodes:
        if not step.ran or step.node is None:
            continue
        for below, sent in zip(step.next, step.sent, strict=False):
            if below is None or sent is not None:
                continue
            target = trace.backward.nodes[below[0]]
            if target.leaf is not None and target.leaf in leaves:
                found.add((step.node, leaves[target.leaf]))
            elif target.seq is not None:
                found.add((step.node, (target.seq, below[1])))
    return found


def judge(read: Read, node: fx.Node, reached: set[Any], leaves: set[fx.Node]) -> tuple[bool, str | None, float]:
    """(the gradient comes back, the rule that explains why not, what repairing the edge costs)."""
    f, source = facts(node), read.node
    if read.kind in RETURN:
        whole = _is_integer(_exit_dtype(source))
        return False, None if whole else "python-value", RETURN[read.kind] - (1.5 if whole else 0.0)
    if "item_of" in node.meta and facts(source).requires_grad and all(_is_integer(o.dtype) for o in f.outs):
        return False, "nondiff-op", COST["nondiff-op"]
    if f.exit or node.meta.get("item_of") is source:
        return f.requires_grad, None, 0.0
    in_output = any(e in reached for e in f.edges)
    in_source = source in leaves or any(e in reached for e in ([read.edge] if read.edge else facts(source).edges))
    if read.requires_grad and f.requires_grad and f.op != "Parameter" and (in_source or not in_output):
        return True, None, 0.0
    rule = _explain(read, node, f)
    if rule is None:
        return False, None, 0.0
    if rule == "no-grad" and f.region is not None and facts(source).region is f.region:
        return False, rule, 0.0
    return False, rule, COST[rule]


def _explain(read: Read, node: fx.Node, f: NodeFacts) -> str | None:
    dtype = read.dtype or next((o.dtype for o in facts(read.node).outs), None)
    if _is_integer(dtype) or f.op == "object":
        return None
    whole = bool(f.outs) and all(_is_integer(o.dtype) for o in f.outs)
    if f.op in ops.DETACH:
        return "detach"
    if f.op == "Parameter":
        return "non-leaf-param"
    if whole:
        return "int-cast" if f.op in ops.INT_CASTS else "nondiff-op"
    if f.region is not None:
        return "no-grad" if f.region.inside is None else "nondiff-op"
    if f.function is not None and not f.requires_grad and "Checkpoint" in f.op:
        return "no-grad"
    if not read.requires_grad and read.kind != "implicit":
        return None
    if f.op in ops.TENSOR_FROM_PYTHON:
        return "python-value"
    if f.op == "grad" and node.op == "call_function":
        return "missing-create-graph"
    if read.kind == "state":
        return "detach"
    return "function-none" if f.function is not None else "nondiff-op"


def _is_integer(dtype: torch.dtype | None) -> bool:
    return dtype is not None and not (dtype.is_floating_point or dtype.is_complex)


def _exit_dtype(node: fx.Node) -> torch.dtype | None:
    reads = facts(node).reads
    return reads[0].dtype if reads else None


def parameter_nodes(trace: Trace) -> dict[str, fx.Node]:
    """The graph's node for each parameter that the run read, by name."""
    return {str(n.target): n for n in trace.nodes if n.op == "get_attr" and str(n.target) in trace.subject.named}


@dataclass
class Starved:
    """Why the parameters with no gradient have none."""

    cuts: list[Cut] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)
    """No data path leads from these to the loss, nor to Python."""
    live: list[str] = field(default_factory=list)
    """Parameters whose path shows no severed edge; nothing can be said."""


def explain_starved(trace: Trace, names: list[str], refuted: set[tuple[fx.Node, fx.Node]]) -> Starved:
    """The cuts for each starved parameter, grouped by the line that severs."""
    result = Starved()
    if not names:
        return result
    graph = build(trace, refuted)
    ends = dict.fromkeys(trace.output_nodes, OUTPUT) if trace.weighted else {}
    if trace.loss_node is not None:
        ends[trace.loss_node] = 0.0
    to_loss = _routes(graph, ends)
    exits = [n for n in trace.nodes if facts(n).exit]
    to_exit = _routes(graph, {n: 0.0 for n in exits if facts(n).op not in ops.CONTROL_EXITS})
    to_branch = _routes(graph, {n: 0.0 for n in exits if facts(n).op in ops.CONTROL_EXITS})
    found: dict[tuple[str, int], Cut] = {}
    nodes = parameter_nodes(trace)
    for name in names:
        start = nodes.get(name)
        if start is None:
            result.unused.append(name)
            continue
        route = _follow(to_loss, start)
        leaves_graph = False
        if route is None:
            route = _follow(to_exit, start)
            leaves_graph = route is not None
            route = route or _follow(to_branch, start)
        if route is None:
            result.unused.append(name)
            continue
        chain = _cuts_on(graph, route, leaves_graph)
        if not chain:
            result.live.append(name)
        kept = [found.setdefault(cut.key, cut) for cut in chain]
        for i, cut in enumerate(kept):
            if name not in cut.params:
                cut.params.append(name)
            cut.nodes.extend(n for n in chain[i].nodes if n not in cut.nodes)
            cut.returns.extend(r for r in chain[i].returns if r not in cut.returns)
            cut.edges.extend(e for e in chain[i].edges if e not in cut.edges)
            cut.chain.extend(c for c in kept if c is not cut and c not in cut.chain)
    result.cuts = list(found.values())
    return result


def _routes(graph: Any, targets: dict[fx.Node, float]) -> tuple[dict[Any, list[Any]], dict[Any, float]]:
    """For every node its next steps on the cheapest ways to one of `targets` (each with a price of its own), and what
    the way costs."""
    sink = object()
    backward_graph = graph.reverse(copy=False)
    ends: nx.DiGraph[Any] = nx.DiGraph()
    ends.add_node(sink)
    ends.add_weighted_edges_from((sink, t, cost) for t, cost in targets.items() if t in graph)
    joined = nx.compose(backward_graph, ends)
    following, cost = nx.dijkstra_predecessor_and_distance(joined, sink, weight=lambda u, v, e: e.get("weight", 0.0))
    return {n: [s for s in steps if s is not sink] for n, steps in following.items()}, cost


def _follow(routes: tuple[dict[Any, list[Any]], dict[Any, float]], start: fx.Node) -> list[fx.Node] | None:
    following, cost = routes
    if cost.get(start, REFUTED) >= REFUTED:
        return None
    path = [start]
    while following[path[-1]]:
        path.append(following[path[-1]][0])
    return path


def _cuts_on(graph: Any, route: list[fx.Node], leaves_graph: bool) -> list[Cut]:
    cuts: list[Cut] = []
    for source, node in itertools.pairwise(route):
        edge = graph.edges[source, node]
        rule = edge["rule"]
        if rule is None:
            continue
        region = facts(node).region if rule == "no-grad" else None
        if rule == "no-grad" and cuts and cuts[-1].rule == "no-grad" and cuts[-1].region is region:
            cuts[-1].nodes.append(node)
            continue
        if edge["kind"] in RETURN:
            absorbed = _absorb(cuts, route, source)
            back = [(source, node)]
            cuts.append(
                Cut("python-value", source, source, nodes=[source], returns=back, edges=back, absorbed=absorbed)
            )
            continue
        cuts.append(Cut(rule, node, source, region=region, nodes=[node], edges=[(source, node)]))
    if leaves_graph and not any(c.rule in ("nondiff-op", "int-cast") for c in cuts):
        absorbed = _absorb(cuts, route, route[-1])
        cuts.append(Cut("python-value", route[-1], route[-1], nodes=[route[-1]], absorbed=absorbed))
    return cuts


def _absorb(cuts: list[Cut], route: list[fx.Node], exit_node: fx.Node) -> list[fx.Node]:
    """`.detach().cpu().numpy()` is one exit: takes a detach that leads only into it, on its line, out of `cuts`."""
    if not cuts or cuts[-1].rule != "detach":
        return []
    between = route[route.index(cuts[-1].node) + 1 : route.index(exit_node)]
    one_expression = _line(cuts[-1].node) == _line(exit_node)
    return [cuts.pop().node] if one_expression and all(facts(n).op in _CONVERSIONS for n in between) else []


def _line(node: fx.Node) -> tuple[str, int] | None:
    where = location_of(node)
    return (where.file, where.line) if where is not None else None
