"""The report as JSON, described by `report.schema.json` beside this file."""

from __future__ import annotations

import json
import math
import os
from typing import Any

from .model import Finding, Location, ParamState, Report
from .output import printable, write_text

VERSION = 1
"""Rises when a reader of the old form would break; new fields alone do not raise it."""


def to_dict(report: Report) -> dict[str, Any]:
    """A dict of plain Python values, valid under the schema. Norms that are no number are strings: "nan", "inf"."""
    from .. import __version__

    index = {id(f): i for i, f in enumerate(report.findings)}
    return {
        "version": VERSION,
        "tool": {"name": "fxdoctor", "version": __version__},
        "title": printable(report.title),
        "ok": report.ok,
        "error": None if report.error is None else printable(report.error),
        "node_count": report.node_count,
        "findings": [_finding(f) for f in report.findings],
        "params": {printable(name): _param(state, index) for name, state in report.params.items()},
        "notes": [printable(n) for n in report.notes],
    }


def to_json(report: Report, path: str | os.PathLike[str] | None = None) -> str:
    """The dict as JSON text, two blanks to a level; also written to `path` when given.

    Raises:
        OSError: `path` cannot be written; nothing is left half-written.
    """
    text = json.dumps(to_dict(report), indent=2, ensure_ascii=False, allow_nan=False)
    if path is not None:
        write_text(path, text)
    return text


def schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) that `to_dict` follows."""
    from importlib.resources import files

    loaded: dict[str, Any] = json.loads(files(__package__).joinpath("report.schema.json").read_text("utf-8"))
    return loaded


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "rule": printable(finding.rule),
        "code": finding.code,
        "severity": finding.severity,
        "message": printable(finding.message),
        "label": printable(finding.label),
        "location": None if finding.location is None else _location(finding.location),
        "related": [{"location": _location(r.location), "label": printable(r.label)} for r in finding.related],
        "node": None if finding.node is None else printable(finding.node),
        "params": [printable(p) for p in finding.params],
        "proof": finding.proof,
        "evidence": printable(finding.evidence),
        "help": printable(finding.help),
        "suppressed": finding.suppressed,
    }


def _location(place: Location) -> dict[str, Any]:
    return {
        "file": printable(place.file),
        "line": place.line,
        "column": place.column,
        "end_line": place.end_line,
        "end_column": place.end_column,
        "function": printable(place.function),
        "source": printable(place.source),
    }


def _param(state: ParamState, index: dict[int, int]) -> dict[str, Any]:
    return {
        "status": state.status,
        "norm": _number(state.norm),
        "shape": list(state.shape),
        "dtype": state.dtype,
        "module": printable(state.module),
        "findings": sorted(index[id(f)] for f in state.findings if id(f) in index),
    }


def _number(value: float | None) -> float | str | None:
    if value is None or math.isfinite(value):
        return value
    return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
