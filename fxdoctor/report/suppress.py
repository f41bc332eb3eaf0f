"""`# fxdoctor: ignore[detach]` at a line's end turns that rule's findings there into `info`.

Several rules are separated by commas; a bare `ignore` stands for all. Comments are found by `tokenize`, so text in
strings never counts.
"""

from __future__ import annotations

import functools
import re
import tokenize
from collections.abc import Iterable

from .model import Finding, Location

_COMMENT = re.compile(r"#\s*fxdoctor:\s*ignore(?:\[([^\]]*)\])?")


def apply_suppressions(findings: Iterable[Finding]) -> None:
    """Marks the findings that a comment on one of their lines suppresses."""
    for finding in findings:
        if finding.location is not None and _ignored(finding.location, finding.rule, finding.code):
            finding.severity, finding.suppressed = "info", True


def _ignored(location: Location, slug: str, code: str) -> bool:
    comments = _comments(location.file)
    for line in range(location.line, (location.end_line or location.line) + 1):
        names = comments.get(line)
        if names is not None and (not names or slug in names or code in names):
            return True
    return False


@functools.lru_cache(maxsize=256)
def _comments(file: str) -> dict[int, frozenset[str]]:
    """Line to the rules named there (empty: all rules)."""
    found: dict[int, frozenset[str]] = {}
    try:
        with tokenize.open(file) as source:
            for token in tokenize.generate_tokens(source.readline):
                match = _COMMENT.search(token.string) if token.type == tokenize.COMMENT else None
                if match:
                    found[token.start[0]] = frozenset(n.strip() for n in (match[1] or "").split(",") if n.strip())
    except (OSError, SyntaxError, tokenize.TokenError, UnicodeDecodeError):
        return found
    return found
