"""The model raised, for a reason that is not autograd's."""

from __future__ import annotations

from collections.abc import Iterator

from ..hazards import kind_of_error
from ..report.model import Finding
from .base import Rule
from .context import Diagnosis, group_name

BAD = ""
GOOD = ""


def check(d: Diagnosis) -> Iterator[Finding]:
    if names := d.still_dead(d.starved.live):
        yield RULE.finding(
            "warning",
            f"{group_name(names)} gets no gradient, and the recorded run does not show where it stops",
            params=names,
            help="look at what was not captured (notes), or bisect with fxdoctor.diagnose(loss, model)",
        )
    error = d.trace.error
    if error is None or kind_of_error(error) is not None:
        return
    yield RULE.finding(
        "error",
        f"{d.trace.error_stage} raised {type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else ''}",
        location=d.trace.error_location,
        node=d.trace.recorder.failed.name if d.trace.recorder.failed is not None else None,
        label="raised here",
        help="what follows this line was not examined; make the step run, then analyze again",
    )


RULE = Rule("capture", "FXD901", "a step that raised, so that a part was not examined", __doc__, BAD, GOOD, check)
