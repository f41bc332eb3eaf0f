"""What an analysis gives back: findings, the state of each parameter, notes.

Nothing here knows torch's autograd; every form of output (text, JSON, SARIF) reads only this file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import networkx
    import torch.fx

    from ..capture.trace import Trace

SEVERITIES = ("error", "warning", "info")


@dataclass(frozen=True)
class Location:
    """A place in the user's source.

    Lines count from 1. ``column`` and ``end_column`` count characters from 0, ``end_column`` is exclusive, as in
    ``code.co_positions()``; both are None where Python does not know them. ``end_line`` differs from ``line`` for an
    expression that spans lines. ``source`` is the text of the line without its line break, "" if the file is gone.
    """

    file: str
    line: int
    column: int | None = None
    end_column: int | None = None
    function: str = ""
    source: str = ""
    end_line: int | None = None

    def __str__(self) -> str:
        path = os.path.relpath(self.file) if os.path.isabs(self.file) else self.file
        if path.startswith(".." + os.sep):
            path = self.file
        where = f"{path}:{self.line}"
        return f"{where} in {self.function}" if self.function else where


@dataclass
class Related:
    """A second place that a finding is about: the op that saved the tensor, the `with` statement around the op."""

    location: Location
    label: str


@dataclass
class Finding:
    """One claim about the model: what is wrong, at which line, what it does to which parameters, and the repair.

    ``proof`` is "proved" when the suspected node was repaired and the parameters then got their gradient, "refuted"
    when they did not, None when no re-run could decide. ``label`` stands behind the caret. ``code`` is FXDnnn.
    ``evidence`` is the sentence printed after `proved`.
    """

    rule: str
    code: str
    severity: str
    message: str
    location: Location | None = None
    node: str | None = None
    params: list[str] = field(default_factory=list)
    proof: str | None = None
    help: str = ""
    label: str = ""
    evidence: str = ""
    related: list[Related] = field(default_factory=list)
    suppressed: bool = False

    @property
    def loud(self) -> bool:
        """Whether the finding makes `report.ok` false."""
        return self.severity != "info"


@dataclass
class ParamState:
    """A parameter after one backward.

    ``status`` is "flows" (a finite gradient that is not all zero), "none" (``grad is None``), "zero" (all exactly
    zero), "nan" (some element is not finite) or "frozen" (``requires_grad`` is False). ``norm`` is the gradient's
    Frobenius norm in its own unit, None without a gradient. ``numel`` counts elements.
    """

    status: str
    norm: float | None = None
    findings: list[Finding] = field(default_factory=list)
    shape: tuple[int, ...] = ()
    dtype: str = ""
    module: str = ""

    @property
    def numel(self) -> int:
        n = 1
        for size in self.shape:
            n *= size
        return n


@dataclass
class Report:
    """The result of `analyze`, `diagnose` and their like.

    ``params`` maps each name in ``model.named_parameters()`` to its `ParamState`. ``notes`` says what could not be
    done, and why.
    """

    title: str
    findings: list[Finding] = field(default_factory=list)
    params: dict[str, ParamState] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    node_count: int | None = None
    error: str | None = None
    """What plain PyTorch raised in forward, loss or backward, as "RuntimeError: ..."; None when it ran."""

    _trace: Trace | None = field(default=None, repr=False)
    _graph: torch.fx.Graph | None = field(default=None, repr=False)

    def attach(self, trace: Trace) -> None:
        """Keeps what ran, for `graph` and `flow`."""
        self._trace = trace

    @property
    def graph(self) -> torch.fx.Graph | None:
        """The `torch.fx.Graph` that ran; its ``owning_module`` is a `GraphModule` that runs it again, on the tensor
        leaves of (args, kwargs) in `torch.utils._pytree` order. None where nothing was captured. Built when first
        asked for."""
        if self._graph is None and self._trace is not None:
            from ..replay import graph_module

            self._graph = graph_module(self._trace).graph
        return self._graph

    @property
    def flow(self) -> networkx.DiGraph[Any] | None:
        """The gradient-flow graph: fx nodes, and edges that say whether the gradient comes back (``live``) and, if
        not, which ``rule`` explains it. Built when asked for."""
        if self._trace is None:
            return None
        from ..flow import build

        return build(self._trace)

    @property
    def ok(self) -> bool:
        """True when nothing at warning or above was found."""
        return not any(f.loud for f in self.findings)

    @property
    def loud(self) -> list[Finding]:
        return [f for f in self.findings if f.loud]

    def __str__(self) -> str:
        from .text import render

        return render(self)

    def to_text(self, *, show_all: bool = False, color: bool | None = None, width: int | None = None) -> str:
        """The report for a terminal. ``color=None`` colours when stdout is a terminal and NO_COLOR is unset."""
        from .text import render

        return render(self, show_all=show_all, color=color, width=width)

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready dict, described by ``fxdoctor/report/report.schema.json``."""
        from .json import to_dict

        return to_dict(self)

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """The dict as JSON text, also written to ``path`` when given."""
        from .json import to_json

        return to_json(self, path)

    def to_sarif(
        self, path: str | os.PathLike[str] | None = None, *, root: str | os.PathLike[str] | None = None
    ) -> str:
        """SARIF 2.1.0 text, also written to ``path``; file names are relative to ``root``, else to the working
        directory."""
        from .sarif import to_sarif

        return to_sarif(self, path, root=root)


def sort_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Errors first, then warnings, then info; within one severity by the number of parameters starved, then place."""

    def key(f: Finding) -> tuple[Any, ...]:
        place = (f.location.file, f.location.line) if f.location else ("", 0)
        return (SEVERITIES.index(f.severity), -len(f.params), f.code, place)

    return sorted(findings, key=key)
