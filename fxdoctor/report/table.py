"""The parameters by module: a big model in at most 25 rows, with what is wrong kept apart."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from .model import ParamState
from .terminal import Paint, clean

ROWS = 25
_ORDER = ("none", "zero", "nan", "frozen", "flows")
_WORD = {"none": "none  x", "zero": "zero  0", "nan": "nan   !", "frozen": "frozen  -", "flows": "flows"}
_SHORT = {"none": "none x", "zero": "zero 0", "nan": "nan !", "frozen": "frozen -", "flows": "flows"}
_STYLE = {"none": "red", "zero": "yellow", "nan": "red", "frozen": "dim", "flows": "green"}
_BAD = {"none", "zero", "nan"}


@dataclass
class _Part:
    """A module with all that lies below it, or one parameter."""

    name: str
    states: list[ParamState] = field(default_factory=list)
    children: dict[str, _Part] = field(default_factory=dict)

    @property
    def statuses(self) -> set[str]:
        return {s.status for s in self.states}

    @property
    def troubled(self) -> bool:
        return bool(self.statuses & _BAD)


def render_table(params: Mapping[str, ParamState], paint: Paint) -> str:
    """Module, number of parameters, gradient, norm; one row per module whose parameters share one state.

    Modules of one state are closed, others opened down to the single parameter. Where that gives too many rows,
    the healthy neighbours of a troubled module share one row, then the deepest modules are closed again.
    """
    from tabulate import tabulate

    rows, left_out = _rows(_tree(params))
    cells = [["module", "parameters", "gradient", "norm"]]
    cells += [[clean(p.name), str(len(p.states)), _gradient(p, paint), _norm(p)] for p in rows]
    if left_out:
        cells.append([f"and {len(left_out)} more", *_rest(left_out, paint)])
    table = tabulate(cells, tablefmt="plain", disable_numparse=True)
    return "\n".join(line.rstrip() for line in table.split("\n"))


def _tree(params: Mapping[str, ParamState]) -> _Part:
    root = _Part("(model)")
    for name, state in params.items():
        part = root
        part.states.append(state)
        path = name.split(".")
        for depth, step in enumerate(path):
            part = part.children.setdefault(step, _Part(".".join(path[: depth + 1])))
            part.states.append(state)
    return root


def _rows(root: _Part) -> tuple[list[_Part], list[_Part]]:
    """The rows to print and those that found no place."""
    deepest = max((p.count(".") for p in _names(root)), default=0) + 1
    for merge in (False, True):
        rows = _open(root, deepest, merge)
        if len(rows) <= ROWS:
            return rows, []
    for depth in range(deepest - 1, 0, -1):
        rows = _open(root, depth, merge=True)
        if len(rows) <= ROWS:
            return rows, []
    kept = sorted(range(len(rows)), key=lambda i: (not rows[i].troubled, i))[: ROWS - 1]
    return [rows[i] for i in sorted(kept)], [p for i, p in enumerate(rows) if i not in set(kept)]


def _names(part: _Part) -> list[str]:
    out, todo = [], [part]
    while todo:
        one = todo.pop()
        todo += one.children.values()
        out.append(one.name)
    return out


def _open(part: _Part, depth: int, merge: bool, level: int = 0) -> list[_Part]:
    """Rows for a part: itself if its parameters share a state, else its children's; the root is always opened."""
    if level and (len(part.statuses) == 1 or level >= depth or not part.children):
        return [part]
    children = list(part.children.values())
    healthy = [c for c in children if not c.troubled]
    if merge and level and len(healthy) > 1 and len(healthy) < len(children):
        rest = _Part(f"{part.name}, the other {len(healthy)}", [s for c in healthy for s in c.states])
        bad = [row for c in children if c.troubled for row in _open(c, depth, merge, level + 1)]
        return [*bad, rest]
    return [row for c in children for row in _open(c, depth, merge, level + 1)]


def _gradient(part: _Part, paint: Paint) -> str:
    count = Counter(s.status for s in part.states)
    if len(count) == 1:
        (status,) = count
        return paint(_WORD[status], _STYLE[status])
    return ", ".join(paint(f"{count[s]} {_SHORT[s]}", _STYLE[s]) for s in _ORDER if count[s])


def _norm(part: _Part) -> str:
    norms = [s.norm for s in part.states if s.norm is not None]
    if not norms:
        return "-"
    bad = [n for n in norms if not math.isfinite(n)]
    if bad:
        return "nan" if any(math.isnan(n) for n in bad) else "inf"
    total = math.hypot(*norms)
    return "0" if total == 0 else f"{total:.1e}"


def _rest(parts: list[_Part], paint: Paint) -> list[str]:
    whole = _Part("", [s for p in parts for s in p.states])
    return [str(len(whole.states)), _gradient(whole, paint), _norm(whole)]
