"""What a rule's check reads: the trace, and what flow and culprit search made of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torch import fx

from ..capture.trace import Trace
from ..culprits import Culprit, Explained
from ..facts import facts, location_of
from ..flow import Cut, Starved
from ..report.model import Location


@dataclass
class Diagnosis:
    """All that is known when the rules are asked."""

    trace: Trace
    starved: Starved = field(default_factory=Starved)
    zeros: list[Culprit] = field(default_factory=list)
    explained: list[Explained] = field(default_factory=list)
    nans: list[Culprit] = field(default_factory=list)
    non_finite: fx.Node | None = None
    """The first node that made the forward non-finite, when the loss is."""
    revived: set[str] = field(default_factory=set)
    """Parameters that get a live gradient on other draws of the inputs."""
    healed: set[str] = field(default_factory=set)
    """Parameters that get a gradient after one step of gradient descent on the others."""
    redrawn: bool = True
    """Other draws of the inputs could be run."""
    falsified: list[Falsified] = field(default_factory=list)
    """Writes that autograd does not see and that change some gradient."""
    hidden_hooks: list[Falsified] = field(default_factory=list)

    zero_proofs: dict[fx.Node, str | None] = field(default_factory=dict)
    zero_evidence: dict[fx.Node, str] = field(default_factory=dict)
    nan_proofs: dict[fx.Node, str | None] = field(default_factory=dict)
    nan_evidence: dict[fx.Node, str] = field(default_factory=dict)
    write_proofs: dict[fx.Node, str | None] = field(default_factory=dict)
    write_evidence: dict[fx.Node, str] = field(default_factory=dict)

    def status(self, name: str) -> str:
        state = self.trace.states.get(name)
        return state.status if state is not None else "none"

    def cuts(self, rule: str) -> list[Cut]:
        return [c for c in self.starved.cuts if c.rule == rule]

    def still_dead(self, params: list[str]) -> list[str]:
        """Those of `params` that neither another draw of the inputs revives, nor a step of the others heals."""
        return [p for p in params if p not in self.revived and p not in self.healed]

    def severity(self, params: list[str]) -> str:
        """`info` when every parameter comes alive on other inputs, else `warning`."""
        return "warning" if self.still_dead(params) else "info"

    def cut_severity(self, cut: Cut) -> str:
        return "info" if cut.proof == "refuted" else self.severity(cut.params)

    def zero_reasons(self, rule: str) -> list[Explained]:
        return [z for z in self.explained if z.rule == rule]

    def zero_severity(self, zero: Explained) -> str:
        unknown = zero.rule == "masked" and not self.redrawn
        return "info" if zero.heals or zero.harmless or unknown else self.severity(zero.params)

    def place(self, node: fx.Node | None) -> Location | None:
        return location_of(node) if node is not None else None


@dataclass
class Falsified:
    """A write that autograd does not see, with the parameters whose gradient it makes wrong."""

    node: fx.Node
    params: list[str]
    evidence: str
    proof: str | None = "proved"


def op_text(node: fx.Node) -> str:
    """How the op reads in a sentence: `detach()`, `argmax()`, `indexing`."""
    node = node.meta.get("item_of", node)
    region = facts(node).region
    name = region.inside if region is not None and region.inside is not None else facts(node).op
    readable: dict[str, Any] = {
        "data": ".data",
        "__getitem__": "indexing",
        "__setitem__": "assignment to a part",
        "Parameter": "nn.Parameter(...)",
        "__array__": "numpy()",
        "__float__": "float()",
        "__int__": "int()",
        "__bool__": "bool()",
    }
    return str(readable.get(name, f"{name.strip('_') if name.startswith('__') else name}()"))


def count(params: list[str]) -> str:
    return f"{len(params)} parameter" + ("s" if len(params) != 1 else "")


def group_name(params: list[str]) -> str:
    """What the parameters have in common: `encoder (4 parameters)`, or the one parameter's name."""
    if len(params) == 1:
        return params[0]
    parts = [p.split(".")[:-1] for p in params]
    common: list[str] = []
    for level in zip(*parts, strict=False):
        if len(set(level)) > 1:
            break
        common.append(level[0])
    if common:
        return f"{'.'.join(common)} ({count(params)})"
    tops = list(dict.fromkeys(p.split(".")[0] for p in params))
    named = ", ".join(tops) if len(tops) <= 4 else f"{', '.join(tops[:3])} and {len(tops) - 3} more"
    return f"{named} ({count(params)})"
