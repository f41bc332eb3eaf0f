"""What a rule is made of.

One rule is one file in this folder. Its module docstring is the page that `fxdoctor rules SLUG` prints; its `BAD` and
`GOOD` are complete programs that the tests run: `BAD` must give a finding of this rule at the line that ends in
`# HERE`, `GOOD` must give no warning and no error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..report.model import Finding

if TYPE_CHECKING:
    from .context import Diagnosis


@dataclass(frozen=True)
class Rule:
    """A rule: its name, its documentation, its two examples and its check.

    `check(diagnosis)` reads facts and yields findings; it never runs the model.
    """

    slug: str
    code: str
    summary: str
    doc: str
    bad: str
    good: str
    check: Callable[[Diagnosis], Iterable[Finding]]

    def finding(self, severity: str, message: str, **more: Any) -> Finding:
        return Finding(rule=self.slug, code=self.code, severity=severity, message=message, **more)
