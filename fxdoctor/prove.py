"""Proof by intervention: repair the suspect, run the graph again, look at the gradients.

`proved`: with the repair the parameters get their gradient. `refuted`: they do not; the search goes on without that
edge. None: the suspect has no repair that can be run, which the report's notes say.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import networkx as nx
import torch
from torch import fx

from . import flow, repairs
from .capture.guard import Guard
from .capture.trace import Trace
from .culprits import Culprit, Explained
from .facts import Region, facts
from .flow import Cut, Starved
from .hazards import Overwrite
from .replay import CannotReplay, Repair, Replay
from .report.model import ParamState

_ATTEMPTS = 5


class Prover:
    """Runs interventions on one trace. Collects in `notes` what could not be tried."""

    def __init__(self, trace: Trace, guard: Guard) -> None:
        self.trace, self.guard = trace, guard
        self.notes: list[str] = []
        self.graph: nx.DiGraph[Any] | None = None

    def states(
        self, changes: dict[fx.Node, Repair], grad_on: set[fx.Node] | None = None
    ) -> dict[str, ParamState] | None:
        """The parameters' states under a repair; None when the graph cannot be run so."""
        replay = Replay(self.trace, self.guard, changes, grad_on)
        return self._tried(replay.run)

    def gradients(
        self, changes: dict[fx.Node, Repair], grad_on: set[fx.Node] | None = None
    ) -> dict[str, torch.Tensor] | None:
        replay = Replay(self.trace, self.guard, changes, grad_on, keep_grads=True)
        return replay.grads if self._tried(replay.run) is not None else None

    def writing_hooks(self, nodes: list[fx.Node]) -> list[fx.Node]:
        """Those `register_hook` nodes whose hook writes to the gradient it is given."""
        replay = Replay(self.trace, self.guard, dict.fromkeys(nodes, repairs.watched_hook))
        self._tried(replay.run)
        return [n for n in nodes if replay.wrote.get(n)]

    def _tried(self, run: Callable[[], dict[str, ParamState]]) -> dict[str, ParamState] | None:
        try:
            return run()
        except CannotReplay as reason:
            self.notes.append(f"not proved: {reason}")
        except Exception as error:
            self.notes.append(
                f"not proved: the repaired graph raised {type(error).__name__}: {str(error).splitlines()[0]}"
            )
        return None

    # --- severed ----------------------------------------------------------------------------------------------

    def starved(self, names: list[str]) -> Starved:
        """The cuts of the starved parameters, each chain repaired and tried; refuted edges are given up."""
        refuted: set[tuple[fx.Node, fx.Node]] = set()
        first: Starved | None = None
        dropped: list[Cut] = []
        for _ in range(_ATTEMPTS):
            found = flow.explain_starved(self.trace, names, refuted)
            first = first or found
            wrong = [c for chain in _chains(found.cuts) for c in self._try_chain(chain)]
            if not wrong:
                break
            dropped += wrong
            refuted |= {edge for c in wrong for edge in c.edges}
        _keep_unexplained(found, first or found, dropped)
        return found

    def _try_chain(self, chain: list[Cut]) -> list[Cut]:
        """Repairs all cuts of a chain together; gives those that turned out not to be the cause."""
        planned = [repairs.for_cut(c) for c in chain]
        if any(p is None for p in planned):
            return []
        changes: dict[fx.Node, Repair] = {}
        grad_on: set[fx.Node] = set()
        for cut, plan in zip(chain, planned, strict=True):
            assert plan is not None
            changes |= plan[0]
            if plan[1]:
                grad_on |= self._region_nodes(cut)
        states = self.states(changes, grad_on)
        if states is None:
            return []
        names = list(dict.fromkeys(n for c in chain for n in c.params))
        alive = [n for n in names if states[n].status in ("flows", "zero")]
        if len(alive) < len(names):
            for cut in chain:
                cut.proof = "refuted"
            return chain
        for cut in chain:
            cut.proof = "proved"
            cut.evidence = _evidence(cut, chain, states)
        return []

    def _region_nodes(self, cut: Cut) -> set[fx.Node]:
        """The nodes to run with grad on: those of the region that these parameters feed; all under inference_mode."""
        region = [n for n in self.trace.nodes if _same_region(facts(n).region, cut.region)]
        region = [n for n in region if not any(w.target in ("parameter", "buffer") for w in facts(n).writes)]
        if cut.region is not None and cut.region.kind == "inference_mode":
            return set(region)
        if self.graph is None:
            self.graph = flow.build(self.trace)
        nodes = flow.parameter_nodes(self.trace)
        fed = set().union(*(nx.descendants(self.graph, nodes[p]) for p in cut.params if p in nodes))
        return set(region) & fed

    # --- zero and NaN -----------------------------------------------------------------------------------------

    def zero(self, zero: Explained) -> tuple[str | None, str]:
        if zero.rule in ("zero-grad-op", "saturated"):
            changes: dict[fx.Node, Repair] = dict.fromkeys(zero.nodes, repairs.straight_through)
            what = "with the identity as this op's derivative"
        elif zero.rule == "zero-factor" and zero.factors and all(n.op == "get_attr" for n in zero.factors):
            changes = dict.fromkeys(zero.factors, repairs.nudged)
            what = "with 0.01 in place of the zeros"
        else:
            return None, ""
        states = self.states(changes)
        if states is None:
            return None, ""
        alive = [n for n in zero.params if states[n].status == "flows"]
        return ("proved", f"{what}, {_who(alive, states)}") if alive else (None, "")

    def nan(self, culprits: list[Culprit]) -> dict[fx.Node, tuple[str | None, str]]:
        """Each culprit op with a finite gradient forced: proved when all its parameters become finite."""
        nodes = {c.node for c in culprits if c.node is not None}
        states = self.states(dict.fromkeys(nodes, repairs.finite_gradient))
        if states is None:
            return {}
        result: dict[fx.Node, tuple[str | None, str]] = {}
        for node in nodes:
            names = list(dict.fromkeys(p for c in culprits if c.node is node for p in c.params))
            fine = [n for n in names if states[n].status in ("flows", "zero")]
            if len(fine) == len(names):
                result[node] = (
                    "proved",
                    f"with this op's NaN gradient set to 0, {_who(fine, states, 'a finite gradient')}",
                )
        return result

    # --- in place ---------------------------------------------------------------------------------------------

    def overwrites(self, entries: Iterable[Overwrite]) -> tuple[str | None, str]:
        """All writers made out-of-place at once: proved when backward then runs."""
        writers = [writer for e in entries for writer in e.writers]
        states = self.states(dict.fromkeys(writers, repairs.out_of_place))
        if states is None:
            return None, ""
        alive = [n for n, s in states.items() if s.status == "flows"]
        return "proved", f"written out of place, backward runs and {_who(alive, states)}"


def _same_region(a: Region | None, b: Region | None) -> bool:
    """Whether the same place in the source switched grad mode off."""
    if a is None or b is None or a is b:
        return a is b
    switch = a.spot or a.location
    return switch is not None and switch == (b.spot or b.location)


def _keep_unexplained(found: Starved, first: Starved, dropped: list[Cut]) -> None:
    """Parameters whose every suspect was refuted keep the first suspects, unproved; the other refuted ones are kept
    for the record."""
    lost = {n for n in [*found.unused, *found.live] if n not in first.unused and n not in first.live}
    found.unused = [n for n in found.unused if n not in lost]
    found.live = [n for n in found.live if n not in lost]
    kept = [c for c in found.cuts if c.proof != "refuted"]
    for cut in first.cuts:
        if lost & set(cut.params):
            kept.append(replace(cut, params=[n for n in cut.params if n in lost], proof=None, evidence=""))
    named = {c.key for c in kept}
    found.cuts = kept + [c for c in dropped if c.key not in named]


def _chains(cuts: list[Cut]) -> list[list[Cut]]:
    """Cuts that lie on the same paths belong together."""
    done: set[int] = set()
    result = []
    for cut in cuts:
        if id(cut) in done:
            continue
        chain, queue = [], [cut]
        while queue:
            c = queue.pop()
            if id(c) not in done:
                done.add(id(c))
                chain.append(c)
                queue.extend(c.chain)
        result.append(chain)
    return result


def _evidence(cut: Cut, chain: list[Cut], states: dict[str, ParamState]) -> str:
    what = {"no-grad": "with grad mode on here", "missing-create-graph": "with create_graph=True"}.get(
        cut.rule, "with the history kept here"
    )
    if cut.rule == "detach":
        what = "with this call removed"
    if len(chain) > 1:
        what += f" and the {len(chain) - 1} other cut{'s' if len(chain) > 2 else ''} of its path repaired"
    return f"{what}, {_who(cut.params, states)}"


def _who(names: list[str], states: dict[str, ParamState], got: str = "a gradient") -> str:
    total = math.hypot(*(states[n].norm or 0.0 for n in names))
    if len(names) == 1:
        return f"{names[0]} gets {got} (norm {total:.2g})"
    return f"all {len(names)} parameters get {got} (norm {total:.2g})"
