"""What is known of a node. The recorder fills these while the model runs; rules only read them.

No tensor is kept alive for a fact: shapes, flags, counters and norms are copied out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from .capture.source import Spot
from .report.model import Location

GradEdge = tuple[int, int]
"""(sequence number of a grad_fn, which of its outputs): one value in the autograd graph."""


@dataclass(slots=True)
class TensorFact:
    """One tensor that a node gave out."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    requires_grad: bool
    storage: int | None
    """Serial number of the storage in this run."""
    edge: GradEdge | None
    is_view: bool
    value: str | None = None
    """"zero", "nan", "inf" or "live"; only in a run that looks at values."""
    path: tuple[Any, ...] = ()
    sources: tuple[fx.Node, ...] | None = None
    """For a view, the one input that it looks into; None when it may depend on all of them."""


@dataclass(slots=True)
class Read:
    """One tensor that a node took in."""

    node: fx.Node
    requires_grad: bool
    kind: str
    """"data", "meta" (shape or dtype only), "state" (an earlier write to the same memory), "implicit" (read by code
    inside an opaque call), "soft" (came back from Python: the same object or memory), "time" (a new tensor that may
    have been computed from an earlier exit), "guess" (a float that may)."""
    dtype: torch.dtype | None = None
    edge: GradEdge | None = None


@dataclass(slots=True)
class Write:
    """One tensor that a node changed, by value or by metadata."""

    storage: int | None
    reader: fx.Node | None
    before: int | None
    after: int | None
    hidden: bool
    """Autograd cannot see it: grad mode was off, or the tensor was a `.data` or `.detach()` alias."""
    separate_counter: bool
    """The version counter is not the one that saved tensors are checked against (`.data`, numpy)."""
    requires_grad: bool
    edge: GradEdge | None
    target: str
    """"input", "parameter", "buffer", "external" or "local"."""
    name: str = ""
    metadata: bool = False
    value: str | None = None
    """What the written tensor then held, as in `TensorFact.value`."""


@dataclass(slots=True)
class Region:
    """A stretch of the run with grad mode off, and who switched it off."""

    kind: str
    spot: Spot | None
    decorated: Any = None
    """The code object under a `@torch.no_grad()` decorator."""
    location: Location | None = None
    """The place of the switch, where a captured graph says it."""
    inside: str | None = None
    """The torch function that does it for its own purposes, such as `Distribution.sample`; None where a user does."""


@dataclass(slots=True)
class NodeFacts:
    index: int
    op: str
    """The torch function's name, as in `ops.Op.name`."""
    spot: Spot | None = None
    location: Location | None = None
    module: str = ""
    stage: str = "forward"
    """"forward" or "loss"."""
    region: Region | None = None
    """The no-grad region it ran in."""
    grad_enabled: bool = True
    inference: bool = False
    autocast: tuple[int, tuple[tuple[Any, ...], ...]] | None = None
    """Which autocast stretch of the run it ran in, and the arguments of the nested `torch.autocast` calls."""
    reads: list[Read] = field(default_factory=list)
    outs: list[TensorFact] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    last_seq: int = -1
    """The highest sequence number that autograd had given out when the node was done."""
    saved_hooks: bool = False
    exit: bool = False
    function: Any = None
    """The custom `autograd.Function` class, or the function behind an opaque call."""
    generator: tuple[Any, torch.Tensor] | None = None
    error: str | None = None
    replayable: str | None = None
    """Why the node cannot be run again; None when it can."""
    grad_state: str | None = None
    """After backward: "flows", "zero", "nan", "none"."""
    grad_norm: float | None = None

    @property
    def requires_grad(self) -> bool:
        return any(o.requires_grad for o in self.outs) or any(w.requires_grad for w in self.writes)

    @property
    def edges(self) -> list[GradEdge]:
        found = [o.edge for o in self.outs if o.edge is not None]
        return found + [w.edge for w in self.writes if w.edge is not None]


def facts(node: fx.Node) -> NodeFacts:
    """The facts of a node of a recorded graph."""
    found: NodeFacts = node.meta["facts"]
    return found


def place_key(node: fx.Node) -> Any:
    """The same for all nodes that one expression of the source made, as in an unrolled loop."""
    f = facts(node)
    return f.spot or f.location or node


def location_of(node: fx.Node) -> Location | None:
    """The user's place of a node; worked out when first asked for."""
    f = facts(node)
    if f.location is None and f.spot is not None:
        from .capture.source import locate

        f.location = locate(f.spot)
    return f.location
