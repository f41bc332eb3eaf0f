"""The JSON report against its published schema, and what happens when it cannot be written."""

from __future__ import annotations

import json
import math
import os
import stat
import threading
from pathlib import Path

import jsonschema
import pytest
from builders import every_kind, write_source

from fxdoctor.report.json import schema, to_dict
from fxdoctor.report.model import Finding, Location, ParamState, Report


def validate(data: object) -> None:
    jsonschema.Draft202012Validator(schema()).validate(data)


def strict(text: str) -> object:
    """JSON as the standard has it: no NaN, no Infinity."""

    def refuse(name: str) -> None:
        raise AssertionError(name)

    return json.loads(text, parse_constant=refuse)


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    assert schema()["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize("report", [Report(""), Report("Net", error="E", node_count=0), Report("Net", notes=["n"])])
def test_small_reports_are_valid(report: Report) -> None:
    validate(strict(report.to_json()))


def test_every_field_is_there(tmp_path: Path) -> None:
    report = every_kind(write_source(tmp_path))
    data = report.to_dict()
    validate(data)
    assert strict(report.to_json()) == json.loads(json.dumps(data))
    assert data["version"] == 1
    assert data["ok"] is False
    assert [f["rule"] for f in data["findings"]] == [f.rule for f in report.findings]
    first = data["findings"][0]
    assert first["location"]["line"] == 9 and first["location"]["column"] == 8 and first["location"]["end_column"] == 15
    assert first["related"][0]["label"] == "pow() keeps this tensor for backward"
    assert data["params"]["encoder.0.weight"]["findings"] == [1]
    assert data["params"]["encoder.0.weight"]["shape"] == [2, 3]


@pytest.mark.parametrize(
    "norm, written", [(math.nan, "nan"), (math.inf, "inf"), (-math.inf, "-inf"), (None, None), (0.5, 0.5)]
)
def test_norms_that_are_no_numbers(norm: float | None, written: object) -> None:
    report = Report("Net", params={"w": ParamState("nan", norm)})
    data = strict(report.to_json())
    validate(data)
    assert data["params"]["w"]["norm"] == written  # type: ignore[index]


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"extra": 1},
        {"ok": "yes"},
        {"params": {"w": {"status": "fine"}}},
        {"findings": [{}]},
    ],
)
def test_the_schema_refuses_other_things(change: dict[str, object]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        validate({**to_dict(Report("Net")), **change})


def test_file_names_that_are_not_unicode(tmp_path: Path) -> None:
    spot = Location(os.fsdecode(b"/tmp/\xff.py"), 1)
    report = Report("Net", [Finding("detach", "FXD101", "warning", "m \ud800", location=spot)])
    report.to_json(tmp_path / "r.json")
    data = strict((tmp_path / "r.json").read_text("utf-8"))
    validate(data)
    assert data["findings"][0]["location"]["file"] == "/tmp/\\udcff.py"  # type: ignore[index]


def test_written_text_is_the_returned_text(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text("old")
    path.chmod(0o640)
    assert Report("Net").to_json(path) + "\n" == path.read_text("utf-8")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ["r.json"]


def test_a_new_file_has_the_usual_mode(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    Report("Net").to_json(tmp_path / "r.json")
    assert (tmp_path / "r.json").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text("old")
    (tmp_path / "link.json").symlink_to("real.json")
    Report("Net").to_json(tmp_path / "link.json")
    assert (tmp_path / "link.json").is_symlink()
    assert strict((tmp_path / "real.json").read_text())


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[str] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()), daemon=True)
    reader.start()
    text = Report("Net").to_json(pipe)
    reader.join(10)
    assert got == [text + "\n"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize("name", ["missing/r.json", ".", "file.txt/r.json"])
def test_a_path_that_cannot_be_written_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "file.txt").write_text("")
    path = tmp_path / name
    with pytest.raises(OSError) as error:
        Report("Net").to_json(path)
    assert str(path) in str(error.value)
    assert "cannot write the report" in str(error.value)
    assert sorted(os.listdir(tmp_path)) == ["file.txt"]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r.json"
    path.write_text("old")

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match=r"No space left.*r\.json"):
        Report("Net").to_json(path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["r.json"]
