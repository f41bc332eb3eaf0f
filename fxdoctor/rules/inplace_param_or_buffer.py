"""A buffer is written with values that carry a graph."""

from __future__ import annotations

from collections.abc import Iterator

from ..report.model import Finding
from .base import Rule
from .context import Diagnosis, op_text

BAD = ""
GOOD = ""


def check(d: Diagnosis) -> Iterator[Finding]:
    for name, node in d.trace.live_buffers.items():
        yield RULE.finding(
            "warning",
            f"buffer {name} keeps the graph of this step: the next backward goes through it again, and raises or leaks",
            location=d.place(node),
            node=node.name if node is not None else None,
            label=f"{op_text(node) if node is not None else 'an assignment'} writes values that carry a gradient history",
            help="update the buffer from detached values: buffer.lerp_(x.detach(), 0.1)",
        )


RULE = Rule("inplace-param-or-buffer", "FXD406", "a buffer is written with values that carry a graph", __doc__, BAD, GOOD, check)
