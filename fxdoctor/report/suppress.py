"""`# fxdoctor: ignore[detach]` at a line's end turns that rule's findings there into `info`.

Several rules are separated by commas, by slug or by FXD code; a bare `ignore` stands for all. Comments are found by
`tokenize`, so text in strings never counts.
"""

from __future__ import annotations

import linecache
import re
import tokenize
from collections.abc import Iterable

from .model import Finding

_COMMENT = re.compile(r"#\s*fxdoctor:\s*ignore(?:\s*\[(?P<names>[^\[\]]*)\]|(?![\w\[-]|\s*\[))")
"""A list that is not closed, or `ignored`, is no suppression: it would silence more than was meant."""

Comments = dict[int, set[str] | None]
"""Line to the rules named there; None: all rules."""


def apply_suppressions(findings: Iterable[Finding]) -> None:
    """Sets ``severity="info"`` and ``suppressed=True`` on findings that a comment on one of their lines names.

    An expression that spans lines may carry the comment on any of them. Files are read through `linecache`, as the
    findings' own source lines were; a file that is gone suppresses nothing.
    """
    read: dict[str, Comments] = {}
    for finding in findings:
        place = finding.location
        if place is None:
            continue
        if place.file not in read:
            read[place.file] = suppressions(linecache.getlines(place.file))
        comments = read[place.file]
        for line in range(place.line, (place.end_line or place.line) + 1):
            names = comments.get(line, set())
            if names is None or finding.rule in names or finding.code.lower() in names:
                finding.severity, finding.suppressed = "info", True


def suppressions(lines: list[str]) -> Comments:
    """The suppression comments in a program's lines. What follows a syntax error is not read."""
    found: Comments = {}
    source = iter(lines)
    try:
        for token in tokenize.generate_tokens(lambda: next(source, "")):
            if token.type != tokenize.COMMENT:
                continue
            for match in _COMMENT.finditer(token.string):
                _add(found, token.start[0], match["names"])
    except (SyntaxError, tokenize.TokenError):
        return found
    return found


def _add(found: Comments, line: int, names: str | None) -> None:
    if names is None:
        found[line] = None
        return
    known = found.setdefault(line, set())
    if known is not None:
        known.update(n.strip().lower() for n in names.split(",") if n.strip())
