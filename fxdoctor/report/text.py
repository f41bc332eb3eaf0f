"""The report for a terminal: findings as a good compiler prints them, then the parameters by module."""

from __future__ import annotations

import linecache
import shutil
from collections import Counter

from .model import Finding, Location, Report
from .table import render_table
from .terminal import TAB, Paint, clean, columns, expand, one_line, wants_color, wrapped

_STYLE = {"error": ("bold", "red"), "warning": ("bold", "yellow"), "info": ("bold", "cyan")}
_CARETS = {"error": "red", "warning": "yellow", "info": "cyan"}
_MAX_LINES = 5
_MAX_NOTES = 8
_MAX_WIDTH = 120


def render(report: Report, *, show_all: bool = False, color: bool | None = None, width: int | None = None) -> str:
    """The report as text, ending without a line break.

    Args:
        show_all: also findings of severity info, and every note.
        color: ANSI colours; None: when stdout is a terminal and NO_COLOR is unset, or FORCE_COLOR is set.
        width: terminal cells to wrap at, at least 40; None: the terminal's, at most 120.
    """
    paint = Paint(wants_color() if color is None else color)
    if width is None:
        width = min(shutil.get_terminal_size((100, 24)).columns, _MAX_WIDTH)
    width = max(width, 40)
    shown = [f for f in report.findings if show_all or f.loud]
    blocks = [_head(report, paint, width)]
    blocks += [_finding(f, paint, width) for f in shown]
    if report.params:
        blocks.append(render_table(report.params, paint).split("\n"))
    blocks.append(_foot(report, show_all, len(report.findings) - len(shown), paint, width))
    return "\n\n".join("\n".join(b) for b in blocks if b)


# --- head and foot --------------------------------------------------------------------------------------------------


def _head(report: Report, paint: Paint, width: int) -> list[str]:
    parts = [one_line(report.title) or "model"]
    if report.node_count is not None:
        parts.append(f"{report.node_count} node" + ("s" if report.node_count != 1 else ""))
    parts.append(_summary(report))
    lines = _started("fxdoctor:", ("bold",), " · ".join(parts), 10, paint, width)
    if report.error:
        lines += _hanging("raised", "red", " ".join(report.error.split()), paint, width)
    return lines


def _summary(report: Report) -> str:
    """The parameters in one phrase: `4 of 6 parameters get no gradient, 1 a zero gradient`."""
    total = len(report.params)
    count = Counter(state.status for state in report.params.values())
    if not total:
        return "PyTorch raised an error" if report.error else "no parameters"
    if report.error and count["none"] + count["frozen"] == total:
        return "PyTorch raised an error, so no parameter gets a gradient"
    bad = [(count["none"], "no gradient"), (count["zero"], "a zero gradient"), (count["nan"], "a NaN or inf gradient")]
    bad = [(n, what) for n, what in bad if n]
    if bad:
        (n, what), *others = bad
        verb = "gets" if n == total == 1 else "get"
        text = f"{n} of {total} {_parameters(total)} {verb} {what}" + "".join(f", {m} {w}" for m, w in others)
    elif count["frozen"] == total:
        return f"all {total} {_parameters(total)} are frozen"
    elif count["frozen"]:
        n = count["flows"]
        text = f"all {n} that are not frozen get a gradient" if n > 1 else "the 1 that is not frozen gets a gradient"
        return f"{total} parameters, {count['frozen']} frozen, {text}"
    else:
        text = f"all {total} {_parameters(total)} get a gradient" if total > 1 else "its 1 parameter gets a gradient"
    return text + (f", {count['frozen']} frozen" if count["frozen"] else "")


def _parameters(n: int) -> str:
    return "parameter" if n == 1 else "parameters"


def _foot(report: Report, show_all: bool, hidden: int, paint: Paint, width: int) -> list[str]:
    lines: list[str] = []
    notes = list(dict.fromkeys(report.notes))
    kept = notes if show_all else notes[:_MAX_NOTES]
    for note in kept:
        lines += wrapped(note, width, "note  ")
    if len(notes) > len(kept):
        lines.append(f"note  and {len(notes) - len(kept)} more notes; --all shows them")
    if hidden:
        what = "1 finding of severity info is" if hidden == 1 else f"{hidden} findings of severity info are"
        lines.append(f"{what} not shown; --all shows {'it' if hidden == 1 else 'them'}")
    return [paint(line, "dim") for line in lines]


# --- one finding ----------------------------------------------------------------------------------------------------


def _finding(finding: Finding, paint: Paint, width: int) -> list[str]:
    head = f"{finding.severity} {finding.code} {clean(finding.rule)}:"
    message = one_line(finding.message) + (" (suppressed by a comment)" if finding.suppressed else "")
    lines = _started(head, _STYLE[finding.severity], message, 4, paint, width)
    gutter = _gutter_width(finding)
    if finding.location:
        lines.append("  " + paint(_where(finding.location), "dim"))
        lines += _snippet(finding.location, finding.label, _CARETS[finding.severity], gutter, paint, width)
    elif finding.label:
        lines += wrapped(finding.label, width, "  ")
    before = finding.location
    for related in finding.related:
        if before is None or (before.file, before.function) != (related.location.file, related.location.function):
            lines.append("  " + paint(_where(related.location), "dim"))
        lines += _snippet(related.location, related.label, "blue", gutter, paint, width)
        before = related.location
    affected = _affected(finding)
    if affected:
        lines += _hanging("params", "dim", affected, paint, width)
    if finding.proof:
        style = "green" if finding.proof == "proved" else "yellow"
        lines += _hanging(finding.proof, style, finding.evidence, paint, width)
    elif finding.evidence:
        lines += _hanging("note", "dim", finding.evidence, paint, width)
    if finding.help:
        lines += _hanging("help", "cyan", finding.help, paint, width)
    return lines


def _started(head: str, style: tuple[str, ...], text: str, indent: int, paint: Paint, width: int) -> list[str]:
    """A painted head with text behind it; the lines that follow are indented."""
    first, *rest = wrapped(f"{head} {text}", width, "", " " * indent)
    return [paint(head, *style) + first[len(head) :] if first.startswith(head) else first, *rest]


def _hanging(word: str, style: str, text: str, paint: Paint, width: int) -> list[str]:
    lead = f"  {word:<7} "
    first, *rest = wrapped(text, width, lead)
    return [("  " + paint(word, style) + first[2 + len(word) :]).rstrip(), *rest]


def _affected(finding: Finding) -> str:
    """The parameters, when the message does not already name them or the module that holds them."""
    params = finding.params
    if not params or all(p in finding.message for p in params):
        return ""
    prefix = common_module(params)
    tops = list(dict.fromkeys(p.split(".")[0] for p in params))
    if (prefix and prefix in finding.message) or all(t in finding.message for t in tops[:3]):
        return ""
    if len(params) <= 4:
        return ", ".join(params)
    if prefix:
        return f"{len(params)} in {prefix}"
    return f"{', '.join(params[:3])} and {len(params) - 3} more"


def common_module(params: list[str]) -> str:
    """The path of the deepest module that holds all the parameters; "" for the model itself."""
    common: list[str] = []
    for level in zip(*(p.split(".")[:-1] for p in params), strict=False):
        if len(set(level)) > 1:
            break
        common.append(level[0])
    return ".".join(common)


def _where(location: Location) -> str:
    return clean(str(location))


def _gutter_width(finding: Finding) -> int:
    places = [finding.location, *(r.location for r in finding.related)]
    return max([3, *(len(str(p.end_line or p.line)) for p in places if p)])


# --- source with carets ---------------------------------------------------------------------------------------------


def _snippet(place: Location, label: str, style: str, gutter: int, paint: Paint, width: int) -> list[str]:
    """The source line, carets under the expression with the label behind them, then the expression's other lines."""
    if not place.source.strip():
        return wrapped(label, width, "    ") if label else []
    text, cells = expand(place.source)
    indent = columns(text) - columns(text.lstrip())
    room = max(width - gutter - 5, 20)
    start, stop = _span(place, cells)
    text, shift = _window(text, indent if start is None else start, stop, room)
    lines = [f"  {paint(f'{place.line:>{gutter}} |', 'blue')} {text}"]
    at = max((indent if start is None else start) - shift, 0)
    carets = "" if start is None or stop is None else "^" * max(min(stop - shift, columns(text)) - at, 1)
    edge = "  " + paint(" " * gutter + " |", "blue") + " "
    first, more = _labels(label, at + len(carets), at, room)
    under = " " * at + paint(carets, style) + (" " if carets and first else "") + paint(first, style)
    if under.strip():
        lines.append(edge + under)
    lines += [edge + paint(part, style) for part in more]
    return lines + _other_lines(place, gutter, room, paint)


def _span(place: Location, cells: list[int]) -> tuple[int | None, int | None]:
    """First and last terminal cell of the expression on its first line; (None, None) where columns are unknown."""
    if place.column is None:
        return None, None
    last = len(cells) - 1
    start = cells[min(max(place.column, 0), last)]
    several = place.end_line is not None and place.end_line > place.line
    full = len(place.source.rstrip())
    end = full if several or place.end_column is None else place.end_column
    return start, cells[min(max(end, 0), last)]


def _window(text: str, start: int, stop: int | None, room: int) -> tuple[str, int]:
    """The part of a long line that holds cells start..stop, and the number of cells cut off on its left."""
    text = text.rstrip()
    if columns(text) <= room:
        return text, 0
    stop = start if stop is None else stop
    left = start - TAB
    if stop + 3 <= room:
        left = 0
    elif stop - start + 6 <= room:
        left = min(left, stop + 6 - room)  # room for the dots on both sides
    body, cut = _drop_cells(text, max(left, 0))
    kept = _take_cells(body, room - 3 - (3 if cut else 0))
    tail = "..." if len(kept) < len(body) else ""
    return ("..." if cut else "") + kept + tail, cut - (3 if cut else 0)


def _drop_cells(text: str, cells: int) -> tuple[str, int]:
    used = 0
    for i, char in enumerate(text):
        if used >= cells:
            return text[i:], used
        used += columns(char)
    return "", used


def _take_cells(text: str, cells: int) -> str:
    used = 0
    for i, char in enumerate(text):
        used += columns(char)
        if used > cells:
            return text[:i]
    return text


def _labels(label: str, after: int, at: int, room: int) -> tuple[str, list[str]]:
    """The label behind the carets, or the lines of it below them where it does not fit there.

    Those start under the carets, or further left where too little room would be left for them.
    """
    text = one_line(label)
    if after + 1 + columns(text) <= room:
        return text, []
    offset = max(min(at, room - min(columns(text), room // 2)), 0)
    return "", wrapped(text, room, " " * offset)


def _other_lines(place: Location, gutter: int, room: int, paint: Paint) -> list[str]:
    """The lines after the first of an expression that spans several; the middle of a long one is left out."""
    if place.end_line is None or place.end_line <= place.line:
        return []
    numbers = list(range(place.line + 1, place.end_line + 1))
    out: list[str] = []
    for number in numbers if len(numbers) < _MAX_LINES else [*numbers[: _MAX_LINES - 2], None, numbers[-1]]:
        if number is None:
            out.append("  " + paint(f"{'...':>{gutter}}", "blue"))
            continue
        text, _ = expand(linecache.getline(place.file, number).rstrip("\r\n"))
        shown, _ = _window(text, 0, None, room)
        out.append(f"  {paint(f'{number:>{gutter}} |', 'blue')} {shown}".rstrip())
    return out
