"""Text that is safe and aligned on a terminal: escapes, display width, wrapping, colour."""

from __future__ import annotations

import os
import sys
import textwrap
import unicodedata

_CODES = {"red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36", "dim": "2", "bold": "1"}
_UNSAFE = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Control, formatting (which includes the marks that reverse the reading order), lone surrogates, line separators."""

TAB = 4


def clean(text: str) -> str:
    """The text with every character that could move the cursor, hide or reorder text written as an escape."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escaped(c) if unicodedata.category(c) in _UNSAFE else c for c in text)


def _escaped(char: str) -> str:
    code = ord(char)
    if char in "\n\r\t":
        return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}[char]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def one_line(text: str) -> str:
    """The text on one line: line breaks and runs of blanks become one blank, the rest is cleaned."""
    return clean(" ".join(text.split()))


def columns(text: str) -> int:
    """How many terminal cells the (cleaned) text takes: wide East Asian characters two, combining marks none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )


def expand(source: str) -> tuple[str, list[int]]:
    """A source line as printed, and the terminal cell at which each of its characters (and its end) starts."""
    out: list[str] = []
    cells = [0]
    for char in source:
        at = cells[-1]
        shown = " " * (TAB - at % TAB) if char == "\t" else clean(char)
        out.append(shown)
        cells.append(at + columns(shown))
    return "".join(out), cells


def wrapped(text: str, width: int, first: str, rest: str | None = None) -> list[str]:
    """Lines of at most `width` characters; `first` starts the first one, `rest` (default: blanks) the others.

    Line breaks in the text are kept. A word longer than a line is not broken, so that paths can be copied.
    """
    rest = " " * len(first) if rest is None else rest
    lines: list[str] = []
    for part in text.splitlines() or [""]:
        lead = rest if lines else first
        lines += textwrap.wrap(
            clean(part), max(width, len(lead) + 16), initial_indent=lead, subsequent_indent=rest,
            break_long_words=False, break_on_hyphens=False,
        ) or [lead.rstrip()]
    return lines


class Paint:
    """Colours text, or leaves it as it is."""

    def __init__(self, on: bool) -> None:
        self.on = on

    def __call__(self, text: str, *styles: str) -> str:
        if not self.on or not text:
            return text
        return f"\x1b[{';'.join(_CODES[s] for s in styles)}m{text}\x1b[0m"


def wants_color() -> bool:
    """NO_COLOR (if not empty) says no, FORCE_COLOR says yes, else whether stdout is a terminal that is not dumb."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    try:
        return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    except (AttributeError, ValueError):
        return False
