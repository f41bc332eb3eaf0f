"""What a capture route raises when it cannot take a model."""

from __future__ import annotations

from ..report.model import Location


class CaptureError(Exception):
    """The model cannot be captured on this route: one sentence why, and the user's line where it is known."""

    def __init__(self, message: str, location: Location | None = None) -> None:
        super().__init__(message)
        self.location = location
