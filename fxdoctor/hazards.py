"""In-place faults: which write broke which saved tensor, and what a RuntimeError about a write means.

Versions decide: a saved tensor expects the version it had; the write that moved the counter past it is the culprit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torch import fx

from .capture.backward import versions
from .capture.trace import Trace
from .facts import Write, facts, place_key


@dataclass
class Overwrite:
    """One write, and the ops that still needed the old values."""

    writer: fx.Node
    writers: list[fx.Node] = field(default_factory=list)
    """All turns of a loop in which this line does it; `writer` is the first."""
    savers: list[fx.Node] = field(default_factory=list)
    attributes: list[str] = field(default_factory=list)


def overwrites(trace: Trace) -> list[Overwrite]:
    """Every write that breaks backward, each with all its victims; in the order of the writes."""
    found: dict[Any, Overwrite] = {}
    for hazard in trace.backward.hazards:
        saver = hazard.saver.node
        writer = _writer(trace, saver, hazard.message)
        if writer is None or saver is None:
            continue
        entry = found.setdefault(place_key(writer), Overwrite(writer))
        if writer not in entry.writers:
            entry.writers.append(writer)
        if saver not in entry.savers:
            entry.savers.append(saver)
            entry.attributes.append(hazard.attribute)
    return sorted(found.values(), key=lambda o: facts(o.writer).index)


def _writer(trace: Trace, saver: fx.Node | None, message: str) -> fx.Node | None:
    pair = versions(message)
    if saver is None or pair is None:
        return None
    _, expected = pair
    f = facts(saver)
    storages = {o.storage for r in f.reads for o in facts(r.node).outs} | {o.storage for o in f.outs}
    storages |= {w.storage for w in f.writes}
    candidates = [
        (facts(n).index, n)
        for n in trace.nodes
        for w in facts(n).writes
        if w.storage in storages
        and not w.separate_counter
        and w.before is not None
        and w.before >= expected
        and w.after is not None
        and facts(n).index >= f.index
    ]
    exact = [c for c in candidates if any(w.before == expected and w.storage in storages for w in facts(c[1]).writes)]
    chosen = min(exact or candidates, key=lambda c: c[0], default=None)
    return chosen[1] if chosen is not None else None


def writes_to(trace: Trace, storage: int | None) -> list[fx.Node]:
    return [n for n in trace.nodes if any(w.storage == storage for w in facts(n).writes)]


def written_before(trace: Trace, node: fx.Node) -> fx.Node | None:
    """The last write to memory that `node` reads, before it."""
    storages = {o.storage for r in facts(node).reads for o in facts(r.node).outs}
    found = [n for n in trace.nodes if n is not node and any(w.storage in storages for w in facts(n).writes)]
    return max(found, key=lambda n: facts(n).index, default=None)


def input_writes(trace: Trace) -> list[tuple[fx.Node, Write]]:
    """The first write to each input of the caller."""
    seen: set[int | None] = set()
    found = []
    for node in trace.nodes:
        for write in facts(node).writes:
            if write.target == "input" and write.storage not in seen:
                seen.add(write.storage)
                found.append((node, write))
    return found


ERRORS = {
    "inplace-leaf": ("a leaf Variable that requires grad", "view of a leaf Variable that requires grad"),
    "inplace-expanded": ("single memory location", "internal overlap", "written-to tensor refers to"),
    "inplace-out": ("arguments don't support automatic differentiation",),
    "inplace-view": (
        "is a view and is being modified inplace",
        "A view was created in no_grad mode",
        "A view was created in inference mode",
        "its base or another view of its base has been modified inplace",
        "function that returns multiple views",
    ),
    "nondiff-op": ("derivative for aten::",),
    "no-grad": ("nference tensor",),
    "inplace-saved": ("modified by an inplace operation",),
}


def kind_of_error(error: Exception | None) -> str | None:
    """The rule that explains an exception of autograd; None for any other exception."""
    if error is None:
        return None
    text = str(error)
    return next((rule for rule, parts in ERRORS.items() if any(p in text for p in parts)), None)
