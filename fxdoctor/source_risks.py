"""Forms in a program's source that can cut or falsify a gradient, found in the syntax tree, each with a safe twin.

A form is no fault by itself: findings from source alone are `info`. Only the graph shows a consequence.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from .report.model import Finding

_CODES = {
    "detach": "FXD101", "no-grad": "FXD102", "nondiff-op": "FXD103", "int-cast": "FXD104", "python-value": "FXD105",
    "frozen-param": "FXD106", "unregistered-param": "FXD108", "zero-grad-op": "FXD201", "inplace-saved": "FXD401",
    "inplace-out": "FXD407", "data-write": "FXD409", "capture": "FXD901",
}  # fmt: skip


class Form(NamedTuple):
    """A dangerous form: how it is written, what can go wrong, what to write instead, and the rule it may break."""

    form: str
    risk: str
    twin: str
    rule: str


_OVERWRITES = "overwrites a value that backward may still need"
FORMS = {
    "augmented": Form("x += y, x *= y, ...", _OVERWRITES, "x = x + y", "inplace-saved"),
    "setitem": Form(
        "x[i] = v, x[mask] = v",
        _OVERWRITES,
        "torch.where(mask, v, x), x.index_put(...), or x = x.clone() before",
        "inplace-saved",
    ),
    "method": Form(
        "x.copy_(y), x.add_(y), x.clamp_(0), ...", _OVERWRITES, "x = x.add(y): the method without `_`", "inplace-saved"
    ),
    "inplace": Form(
        "F.relu(x, inplace=True), nn.ReLU(inplace=True)", _OVERWRITES, "leave inplace=True out", "inplace-saved"
    ),
    "out": Form(
        "torch.add(x, y, out=z)", "raises on tensors that need a gradient", "z = torch.add(x, y)", "inplace-out"
    ),
    "data": Form("x.data", "gives the values without their history", "x, or x.detach() where that is meant", "detach"),
    "data-write": Form(
        "x.data = v, x.data.add_(y), x.data[i] = v",
        "changes values that autograd does not see change: gradients can be silently wrong",
        "with torch.no_grad(): x.copy_(v), between steps",
        "data-write",
    ),
    "detach": Form(
        "x.detach(), x.detach_()",
        "no gradient comes back through it",
        "x; where it is meant, freeze the module instead",
        "detach",
    ),
    "detach-write": Form(
        "x.detach().add_(y), x.detach()[i] = v",
        "writes through an alias that autograd does not watch for leaves: gradients can be wrong",
        "x.detach().clone() before the write",
        "data-write",
    ),
    "item": Form(
        "x.item(), x.tolist(), x.numpy()", "leaves the graph for Python or numpy", "stay in torch ops", "python-value"
    ),
    "float": Form(
        "float(x), int(x), bool(x)", "leaves the graph if x is a tensor", "x, x.to(dtype), torch.where", "python-value"
    ),
    "tensor": Form(
        "torch.tensor(x), torch.as_tensor(x), torch.from_numpy(a)",
        "makes a new tensor without history",
        "x; torch.stack([...]) for a list of tensors",
        "python-value",
    ),
    "no-grad": Form(
        "with torch.no_grad(), inference_mode(), set_grad_enabled(False); decorators too",
        "nothing computed inside has a gradient",
        "only around evaluation and parameter updates",
        "no-grad",
    ),
    "no-grad-write": Form(
        "x.add_(y), x += y, x[i] = v under torch.no_grad()",
        "a write without history: the gradient still belongs to the old values",
        "write parameters only between backward and the next forward",
        "data-write",
    ),
    "freeze": Form(
        "p.requires_grad = False, p.requires_grad_(False)",
        "the parameter does not learn",
        "give the optimizer only what should learn, and say why it is frozen",
        "frozen-param",
    ),
    "index": Form(
        "x.argmax(), x.argsort(), x.multinomial(1), ...",
        "integer results have no gradient",
        "softmax, gumbel_softmax",
        "nondiff-op",
    ),
    "cast": Form(
        "x.long(), x.int(), x.bool()", "integers and booleans have no gradient", "keep a float on the way", "int-cast"
    ),
    "round": Form(
        "torch.round(x), x.floor(), torch.sign(x), ...",
        "the derivative is zero everywhere",
        "x + (x.round() - x).detach(), where a straight-through gradient is meant",
        "zero-grad-op",
    ),
    "plain-list": Form(
        "self.layers = [nn.Linear(...), ...]",
        "parameters in a plain list or dict are not in model.parameters()",
        "nn.ModuleList, nn.ModuleDict, nn.ParameterList",
        "unregistered-param",
    ),
}


def table() -> list[tuple[str, str, str, str]]:
    """The dangerous forms as (form, risk, safe twin, rule slug)."""
    return [(form.form, form.risk, form.twin, form.rule) for form in FORMS.values()]


def scan_source(source: Any) -> list[Finding]:
    """Reads source by its syntax tree for the forms of `table()`. Every finding is `info`.

    Args:
        source: a function, a method, a class (with its bases up to torch's and Python's own), a module instance (with
            the classes of its submodules), a Python module, the path of a .py file, or a list or tuple of these.

    Plain Python counters, lists and dicts that the same function or class makes are known as such and left out. Where
    there is no source (built-in code, `exec`), a finding of the rule `capture` says so.

    Raises:
        FileNotFoundError: a path that leads to no file.
        TypeError: the object is nothing that has source.
    """
    from .source_reader import Unreadable, pieces
    from .source_visitor import scan_piece

    found: dict[tuple[Any, ...], Finding] = {}
    for one in source if isinstance(source, (list, tuple, set)) else [source]:
        for piece in pieces(one):
            if isinstance(piece, Unreadable):
                finding = _finding("capture", f"not read: {piece}")
                found[("", str(piece))] = finding
                continue
            for key, place in scan_piece(piece):
                form = FORMS[key]
                finding = _finding(form.rule, f"{form.form}: {form.risk}")
                finding.location, finding.label, finding.help = place, form.risk, f"write instead: {form.twin}"
                found.setdefault((place.file, place.line, place.column, key), finding)
    return sorted(found.values(), key=lambda f: (f.location.file, f.location.line) if f.location else ("", 0))


def _finding(rule: str, message: str) -> Finding:
    return Finding(rule=rule, code=_CODES[rule], severity="info", message=message)


_CUTS = frozenset(["detach", "no-grad", "python-value", "nondiff-op", "int-cast"])
_WRITES = frozenset(["inplace-saved", "data-write", "inplace-out"])
_EXPLAINS: dict[str, frozenset[str]] = {
    "unused-param": _CUTS | {"unregistered-param"},
    "detach": _CUTS,
    "no-grad": frozenset(["no-grad"]),
    "nondiff-op": frozenset(["nondiff-op", "int-cast"]),
    "python-value": _CUTS,
    "frozen-param": frozenset(["frozen-param"]),
    "unregistered-param": frozenset(["unregistered-param"]),
    "zero-grad-op": frozenset(["zero-grad-op"]),
    "inplace-saved": _WRITES,
}
"""For a rule whose consequence the graph shows: the rules of forms that can be its cause."""


def candidates(source: Any, graph_findings: Iterable[Finding]) -> list[Finding]:
    """`scan_source`, with those marked that may be the cause of what the graph shows."""
    loud = [f for f in graph_findings if f.loud]
    found = scan_source(source)
    for finding in found:
        effect = next((f for f in loud if finding.rule in _EXPLAINS.get(f.rule, ())), None)
        if effect is None:
            continue
        at_line = any(_same_line(finding, f) for f in loud)
        sure = (
            "the graph shows the consequence at this very line" if at_line else "a candidate for what the graph shows"
        )
        finding.message += f" ({sure}, {effect.code} {effect.rule})"
    return found


def _same_line(a: Finding, b: Finding) -> bool:
    if a.location is None:
        return False
    places = [b.location, *(r.location for r in b.related)]
    return any(p is not None and (p.file, p.line) == (a.location.file, a.location.line) for p in places)
