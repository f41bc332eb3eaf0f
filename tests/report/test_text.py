"""What a person reads. `UPDATE_SNAPSHOTS=1 pytest tests/report` writes the snapshots anew; read the diff."""

from __future__ import annotations

import os
import re
import unicodedata
from pathlib import Path

import pytest
from builders import SOURCE, detach_report, every_kind, place, states, write_source

from fxdoctor.report.model import Finding, Location, ParamState, Related, Report
from fxdoctor.report.terminal import columns, wants_color
from fxdoctor.report.text import render

SNAPSHOTS = Path(__file__).parent / "snapshots"
ANSI = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    return write_source(tmp_path)


def check(name: str, text: str) -> None:
    path = SNAPSHOTS / f"{name}.txt"
    if os.environ.get("UPDATE_SNAPSHOTS") == "1":
        path.write_text(text + "\n", "utf-8")
    assert text + "\n" == path.read_text("utf-8")


@pytest.mark.parametrize("width", [80, 120])
def test_snapshot_of_one_finding(file: str, width: int) -> None:
    check(f"detach_{width}", render(detach_report(file), color=False, width=width))


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("show_all", [False, True])
def test_snapshot_of_every_kind(file: str, width: int, show_all: bool) -> None:
    check(f"every_{width}{'_all' * show_all}", render(every_kind(file), color=False, width=width, show_all=show_all))


def test_snapshot_in_colour(file: str) -> None:
    check("colour", render(every_kind(file), color=True, width=100, show_all=True).replace("\x1b", "<ESC>"))


def test_colour_changes_nothing_but_colour(file: str) -> None:
    report = every_kind(file)
    colored = render(report, color=True, width=100, show_all=True)
    assert ANSI.sub("", colored) == render(report, color=False, width=100, show_all=True)


@pytest.mark.parametrize("width", [50, 60, 80, 100, 120])
def test_no_line_is_wider_than_asked(file: str, width: int) -> None:
    for line in render(every_kind(file), color=False, width=width, show_all=True).splitlines():
        assert columns(line) <= width, line


@pytest.mark.parametrize(
    "line, text",
    [
        (7, "self.encoder(x).detach()"),
        (10, "self.größe(x).detach()"),
        (11, "self.漢字層(x).detach()"),
        (17, "h.detach()"),
    ],
)
def test_carets_stand_under_the_expression(file: str, line: int, text: str) -> None:
    finding = Finding("detach", "FXD101", "warning", "m", location=place(file, line, text), label="here")
    shown = render(Report("Net", [finding]), color=False, width=90).splitlines()
    at = next(i for i, row in enumerate(shown) if text in row)
    before, carets = shown[at][: shown[at].index(text)], shown[at + 1]
    assert carets.index("^") == columns(before)
    assert carets.count("^") == columns(text)


def test_a_tab_is_shown_as_blanks(file: str) -> None:
    finding = Finding("detach", "FXD101", "warning", "m", location=place(file, 10, "self"), label="here")
    assert "\t" not in render(Report("Net", [finding]), color=False)


HOSTILE = ["\x1b[2J\x1b[31mred", "a\nb", "a\rb", "\x07bell", "\x9b31m", "‮reversed", "​", "\udc80", "\x00", "\u2028"]


@pytest.mark.parametrize("bad", HOSTILE)
def test_no_control_character_reaches_the_terminal(bad: str) -> None:
    spot = Location(f"/tmp/{bad}.py", 3, 0, 4, f"f{bad}", f"x = {bad} + 1", 3)
    finding = Finding(
        "detach",
        "FXD101",
        "warning",
        f"m {bad}",
        location=spot,
        params=[f"p{bad}"],
        proof="proved",
        label=f"l {bad}",
        evidence=f"e {bad}",
        help=f"h {bad}",
        related=[Related(spot, f"r {bad}")],
    )
    report = Report(
        f"T{bad}",
        [finding],
        {f"m{bad}.w": ParamState("none"), "k.w": ParamState("flows", 1.0)},
        [f"n {bad}"],
        error=f"E: {bad}",
    )
    for show_all in (False, True):
        text = render(report, color=False, show_all=show_all)
        wrong = {c for c in text if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")}
        assert not wrong
        text.encode("utf-8")


@pytest.mark.parametrize(
    "column, end_column, end_line, line",
    [
        (500, 600, 7, 7),
        (-3, 2, 7, 7),
        (8, 3, 7, 7),
        (8, None, 7, 7),
        (None, 4, 7, 7),
        (0, 0, 99, 7),
        (4, 5, 7, 0),
        (4, 5, 3, 7),
    ],
)
def test_odd_columns_do_not_raise(file: str, column: int, end_column: int, end_line: int, line: int) -> None:
    spot = Location(file, line, column, end_column, "f", SOURCE.splitlines()[6], end_line)
    assert "m" in render(Report("Net", [Finding("detach", "FXD101", "warning", "m", location=spot)]), color=False)


def test_a_file_that_is_gone_still_has_its_place_and_label() -> None:
    spot = Location("/gone/x.py", 3, 1, 2, "f", "", 3)
    text = render(Report("Net", [Finding("detach", "FXD101", "warning", "m", location=spot, label="why")]), color=False)
    assert "/gone/x.py:3 in f\n    why" in text


@pytest.mark.parametrize(
    "statuses, summary",
    [
        ([], "no parameters"),
        (["flows"], "its 1 parameter gets a gradient"),
        (["flows"] * 3, "all 3 parameters get a gradient"),
        (["none"], "1 of 1 parameter gets no gradient"),
        (["none", "flows"], "1 of 2 parameters get no gradient"),
        (
            ["none", "zero", "nan", "flows"],
            "1 of 4 parameters get no gradient, 1 a zero gradient, 1 a NaN or inf gradient",
        ),
        (["zero", "frozen"], "1 of 2 parameters get a zero gradient, 1 frozen"),
        (["flows", "flows", "frozen"], "3 parameters, 1 frozen, all 2 that are not frozen get a gradient"),
        (["flows", "frozen"], "2 parameters, 1 frozen, the 1 that is not frozen gets a gradient"),
        (["frozen", "frozen"], "all 2 parameters are frozen"),
    ],
)
def test_summary(statuses: list[str], summary: str) -> None:
    params = {f"p{i}": ParamState(s, 1.0 if s == "flows" else None) for i, s in enumerate(statuses)}
    assert render(Report("Net", params=params), color=False, width=120).splitlines()[0] == f"fxdoctor: Net · {summary}"


def test_what_pytorch_raised_is_shown() -> None:
    report = Report("Net", params=states(a="none"), error="RuntimeError: shape\nmismatch")
    text = render(report, color=False)
    assert "raised  RuntimeError: shape mismatch" in text
    assert "PyTorch raised an error" in text


def test_hidden_findings_are_counted() -> None:
    infos = [Finding("detach", "FXD101", "info", f"quiet {i}") for i in range(3)]
    assert "3 findings of severity info are not shown; --all shows them" in render(Report("Net", infos), color=False)
    assert "1 finding of severity info is not shown; --all shows it" in render(Report("Net", infos[:1]), color=False)
    shown = render(Report("Net", infos), color=False, show_all=True)
    assert "quiet 2" in shown and "not shown" not in shown


def big_model(bad: set[str]) -> dict[str, ParamState]:
    names = [
        f"encoder.layers.{i}.{part}.{kind}.{leaf}"
        for i in range(48)
        for part in ("attention", "mlp")
        for kind in ("in", "out")
        for leaf in ("weight", "bias")
    ] + ["head.weight", "head.bias", "embed"]
    return {n: ParamState("none" if any(b in n for b in bad) else "flows", 1.0) for n in names}


@pytest.mark.parametrize(
    "bad", [set(), {"layers.7.mlp.in"}, {"layers.7.mlp.in.bias", "layers.9."}, {".bias"}, {"layers"}, {"head"}]
)
def test_a_big_model_has_at_most_25_rows_that_hold_every_parameter(bad: set[str]) -> None:
    params = big_model(bad)
    rows = render(Report("Net", params=params), color=False).split("\n\n")[1].splitlines()[1:]
    assert len(rows) <= 25
    assert sum(int(re.split(r"  +", row)[1]) for row in rows) == len(params)
    if bad == {"layers.7.mlp.in"}:
        assert any(re.match(r"encoder\.layers\.7\.mlp\.in +2 +none  x", row) for row in rows)


def test_hundred_modules_with_faults_show_the_faults_first() -> None:
    params = {f"m{i}.w": ParamState("none" if i % 10 == 9 else "flows", 1.0) for i in range(100)}
    rows = render(Report("Net", params=params), color=False).split("\n\n")[1].splitlines()[1:]
    assert len(rows) == 25
    assert all(any(row.startswith(f"m{i} ") for row in rows) for i in range(9, 100, 10))
    assert rows[-1].startswith("and 76 more")


def test_width_comes_from_the_terminal(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert render(every_kind(file), color=False) == render(every_kind(file), color=False, width=60)


@pytest.mark.parametrize(
    "env, tty, wanted",
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "0"}, False, False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, True, False),
        ({"TERM": "dumb"}, True, False),
    ],
)
def test_when_there_is_colour(monkeypatch: pytest.MonkeyPatch, env: dict[str, str], tty: bool, wanted: bool) -> None:
    class Stream:
        def isatty(self) -> bool:
            return tty

    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stdout", Stream())
    assert wants_color() is wanted
