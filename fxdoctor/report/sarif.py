"""SARIF 2.1.0 (OASIS errata 01), as code scanning of repository hosts reads it."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from .model import Finding, Location, Related, Report
from .output import printable, write_text

if TYPE_CHECKING:
    from ..rules.base import Rule

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {"error": "error", "warning": "warning", "info": "note"}
_BASE = "SRCROOT"


def to_sarif(
    report: Report, path: str | os.PathLike[str] | None = None, *, root: str | os.PathLike[str] | None = None
) -> str:
    """The report as SARIF text, also written to `path` when given.

    Args:
        root: files below it get an address relative to it (without `./`); default: the working directory. A finding
            in a library is shown at its first related place below `root`, if it has one, and the library's line
            becomes a related location; other files outside get an absolute `file:` address.

    Raises:
        OSError: `path` cannot be written; nothing is left half-written.
    """
    text = json.dumps(to_log(report, Path(root) if root is not None else Path.cwd()), indent=2, ensure_ascii=False)
    if path is not None:
        write_text(path, text)
    return text


def to_log(report: Report, root: Path) -> dict[str, Any]:
    """The SARIF log as a dict of plain Python values."""
    from .. import __version__

    root = Path(os.path.abspath(root))
    rules = list(_rules(report))
    index = {rule["id"]: i for i, rule in enumerate(rules)}
    prints = _fingerprints(report.findings, root)
    driver = {"name": "fxdoctor", "version": __version__, "semanticVersion": __version__, "rules": rules}
    base = {"uri": _file_uri(root) + "/", "description": {"text": "The root of the sources."}}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {_BASE: base},
        "automationDetails": {"id": f"fxdoctor/{quote(printable(report.title), safe='.-_: ')}/"},
        "invocations": [_invocation(report)],
        "results": [_result(f, index, p, root) for f, p in zip(report.findings, prints, strict=True)],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


# --- rules ----------------------------------------------------------------------------------------------------------


def _rules(report: Report) -> Iterator[dict[str, Any]]:
    from ..rules import all_rules

    registry = all_rules()
    for rule in registry.values():
        yield _described(rule)
    known = {rule.code for rule in registry.values()}
    for code, slug in {f.code: f.rule for f in report.findings if f.code not in known}.items():
        yield {"id": code, "name": slug, "shortDescription": {"text": slug}}


def _described(rule: Rule) -> dict[str, Any]:
    doc = (rule.doc or rule.summary).strip()
    text, markdown = [doc], [f"# {rule.code} {rule.slug}", doc]
    for heading, code in (("Wrong", rule.bad), ("Right", rule.good)):
        if code.strip():
            text.append(f"{heading}:\n{code.strip()}")
            markdown.append(f"## {heading}\n\n```python\n{code.strip()}\n```")
    return {
        "id": rule.code,
        "name": rule.slug,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": doc},
        "help": {"text": "\n\n".join(text), "markdown": "\n\n".join(markdown)},
    }


# --- results --------------------------------------------------------------------------------------------------------


def _result(finding: Finding, index: dict[str, int], fingerprint: str, root: Path) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": index[finding.code],
        "level": _LEVELS[finding.severity],
        "message": {"text": _message(finding)},
        "partialFingerprints": {"fxdoctor/v1": fingerprint},
    }
    params = [printable(p) for p in finding.params]
    result["properties"] = {"rule": finding.rule, "proof": finding.proof, "parameters": params}
    place, others = _anchored(finding, root)
    if place is not None:
        result["locations"] = [_location(place, root)]
    if others:
        result["relatedLocations"] = [
            {"id": i, **_location(r.location, root), "message": {"text": printable(r.label or "see also")}}
            for i, r in enumerate(others)
        ]
    if finding.suppressed:
        result["suppressions"] = [{"kind": "inSource", "justification": "fxdoctor: ignore"}]
    return result


def _message(finding: Finding) -> str:
    parts = [finding.message]
    if finding.label:
        parts.append(finding.label)
    if finding.evidence:
        parts.append(f"{finding.proof}: {finding.evidence}" if finding.proof else finding.evidence)
    if finding.help:
        parts.append(f"Help: {finding.help}")
    return printable("\n".join(parts)) or finding.rule


def _anchored(finding: Finding, root: Path) -> tuple[Location | None, list[Related]]:
    """The place to show the finding at, and the other places."""
    place, others = finding.location, list(finding.related)
    if place is None or not _is_own(place, root):
        own = next((r for r in others if _is_own(r.location, root)), None)
        if own is not None:
            others.remove(own)
            if place is not None:
                others.insert(0, Related(place, finding.label))
            place = own.location
    return place, others


def _is_own(place: Location, root: Path) -> bool:
    inside = _below(place.file, root)
    return inside is not None and not {"site-packages", "dist-packages"} & set(inside.parts)


def _below(file: str, root: Path) -> Path | None:
    """The file relative to the root, also where one of the two is reached through a link; None when outside."""
    if file.startswith("<"):
        return None
    try:
        pairs = ((os.path.abspath(file), root), (os.path.realpath(file), Path(os.path.realpath(root))))
    except ValueError:  # a null byte or a lone surrogate: no file has such a name
        return None
    for path, base in pairs:
        if Path(path).is_relative_to(base):
            return Path(path).relative_to(base)
    return None


def _location(place: Location, root: Path) -> dict[str, Any]:
    region: dict[str, Any] = {"startLine": max(place.line, 1)}
    several = place.end_line is not None and place.end_line > place.line
    if place.column is not None:
        region["startColumn"] = place.column + 1
    if several:
        region["endLine"] = place.end_line
    elif place.column is not None and place.end_column is not None and place.end_column >= place.column:
        region["endColumn"] = place.end_column + 1
    if place.source and not several:
        region["snippet"] = {"text": printable(place.source)}
    out: dict[str, Any] = {"physicalLocation": {"artifactLocation": _artifact(place.file, root), "region": region}}
    if place.function:
        out["logicalLocations"] = [{"fullyQualifiedName": printable(place.function), "kind": "function"}]
    return out


def _artifact(file: str, root: Path) -> dict[str, str]:
    inside = _below(file, root)
    if inside is not None:
        return {"uri": _quoted(inside.as_posix()), "uriBaseId": _BASE}
    if file.startswith("<"):
        return {"uri": _quoted(file)}
    return {"uri": _file_uri(Path(os.path.abspath(file)))}


def _quoted(path: str) -> str:
    try:
        return quote(os.fsencode(path), safe="/")
    except UnicodeEncodeError:
        return quote(printable(path), safe="/")


def _file_uri(path: Path) -> str:
    posix = path.as_posix().rstrip("/")
    return "file://" + _quoted(posix if posix.startswith("/") or not posix else "/" + posix)


def _fingerprints(findings: list[Finding], root: Path) -> list[str]:
    """Hashes that stay the same when lines above move: rule, file, function, text of the line, parameters."""
    seen: Counter[str] = Counter()
    out = []
    for f in findings:
        place = f.location
        where = ["", "", ""]
        if place is not None:
            where = [_artifact(place.file, root)["uri"], place.function, " ".join(place.source.split())]
        key = "\0".join([f.code, *where, *sorted(f.params)])
        seen[key] += 1
        out.append(hashlib.sha256(f"{key}\0{seen[key]}".encode("utf-8", "backslashreplace")).hexdigest()[:32])
    return out


def _invocation(report: Report) -> dict[str, Any]:
    """What could not be done belongs to the run, not to a place in the source."""
    notes = [{"level": "note", "message": {"text": printable(n)}} for n in report.notes if n]
    if report.error:
        notes.insert(0, {"level": "error", "message": {"text": printable(f"PyTorch raised {report.error}")}})
    return {"executionSuccessful": True, "toolExecutionNotifications": notes}
