"""A write overwrites what backward needs."""

from __future__ import annotations

from collections.abc import Iterator

from ..facts import facts, location_of
from ..hazards import kind_of_error, overwrites
from ..report.model import Finding, Related
from .base import Rule
from .context import Diagnosis, op_text

BAD = ""
GOOD = ""


def check(d: Diagnosis) -> Iterator[Finding]:
    found = overwrites(d.trace)
    for entry in found:
        writer, first = entry.writer, entry.savers[0]
        saver = op_text(first)
        places = {p: n for n in entry.savers if (p := location_of(n)) is not None}
        more = f" and {len(places) - 1} more" if len(places) > 1 else ""
        related = [Related(p, f"{op_text(n)} keeps this tensor for backward") for p, n in list(places.items())[:3]]
        yield RULE.finding(
            "error",
            f"{op_text(writer)} overwrites a tensor that {saver}{more} needs for backward",
            location=d.place(writer),
            node=writer.name,
            related=related,
            label="this write makes backward raise",
            proof=d.write_proofs.get(writer),
            evidence=d.write_evidence.get(writer, ""),
            help=instead(facts(writer).op),
        )
    if not found and kind_of_error(d.trace.error) == "inplace-saved":
        yield RULE.finding("error", str(d.trace.error).splitlines()[0], help=instead(""))


def instead(name: str) -> str:
    """The out-of-place form of a write."""
    if name == "__setitem__":
        return "build the new tensor out of place (torch.where, torch.cat, index_put), or write before anything reads it"
    if name in ("relu", "relu_", "dropout", "leaky_relu", "elu", "silu", "hardswish", "hardtanh", "relu6", "celu", "selu"):
        return "pass inplace=False"
    if name == "embedding":
        return "look the rows up before the weight is used elsewhere, or use weight.clone() there"
    plain = name.strip("_").removeprefix("i")
    signs = {"add": "x = x + y", "sub": "x = x - y", "mul": "x = x * y", "div": "x = x / y"}
    if plain in signs:
        return f"write {signs[plain]} instead of changing x in place"
    return f"use the out-of-place form: x = x.{plain}(...)" if plain else "use the out-of-place form of the write"


RULE = Rule("inplace-saved", "FXD401", "a write overwrites what backward needs", __doc__, BAD, GOOD, check)
