"""Which comments silence which findings."""

from __future__ import annotations

from pathlib import Path

import pytest

from fxdoctor.report.model import Finding, Location
from fxdoctor.report.suppress import apply_suppressions, suppressions


def silenced(folder: Path, source: str, line: int = 1, end_line: int | None = None, rule: str = "detach") -> bool:
    file = folder / "m.py"
    file.write_text(source, "utf-8")
    finding = Finding(rule, "FXD101", "warning", "m", location=Location(str(file), line, end_line=end_line))
    apply_suppressions([finding])
    assert finding.suppressed == (finding.severity == "info")
    return finding.suppressed


@pytest.mark.parametrize(
    "comment",
    [
        "# fxdoctor: ignore[detach]",
        "#fxdoctor:ignore[detach]",
        "# fxdoctor:  ignore [detach]",
        "# fxdoctor: ignore",
        "# fxdoctor: ignore[no-grad, detach]",
        "# fxdoctor: ignore[FXD101]",
        "# fxdoctor: ignore[fxd101]",
        "# type: ignore  # fxdoctor: ignore[detach]",
        "# fxdoctor: ignore[detach] because it is meant",
        "# fxdoctor: ignore[no-grad] # fxdoctor: ignore[detach]",
        "# fxdoctor: ignore: it is meant",
    ],
)
def test_comments_that_silence(tmp_path: Path, comment: str) -> None:
    assert silenced(tmp_path, f"h = x.detach()  {comment}\n")


@pytest.mark.parametrize(
    "comment",
    [
        "# fxdoctor: ignore[no-grad]",
        "# fxdoctor: ignore[]",
        "# fxdoctor: ignore[detach",
        "# fxdoctor: ignored",
        "# fxdoctor: ignore-next",
        "# ignore[detach]",
        "# noqa",
        "",
        "# fxdoctor: ignore [no-grad]",
    ],
)
def test_comments_that_do_not(tmp_path: Path, comment: str) -> None:
    assert not silenced(tmp_path, f"h = x.detach()  {comment}\n")


def test_text_in_strings_is_no_comment(tmp_path: Path) -> None:
    assert not silenced(tmp_path, 's = "# fxdoctor: ignore"\n')
    assert not silenced(tmp_path, 's = """\n# fxdoctor: ignore\n"""\n', line=2)


@pytest.mark.parametrize("commented", [1, 2, 3])
def test_any_line_of_the_expression_may_carry_it(tmp_path: Path, commented: int) -> None:
    lines = ["h = f(", "    x,", ")", "y = 1  # fxdoctor: ignore"]
    lines[commented - 1] += "  # fxdoctor: ignore[detach]"
    assert silenced(tmp_path, "\n".join(lines) + "\n", 1, 3)
    assert not silenced(tmp_path, "\n".join(lines[:3]) + "\n", 1 if commented != 1 else 2)


def test_other_lines_and_rules_are_untouched(tmp_path: Path) -> None:
    source = "h = x.detach()\nk = x.detach()  # fxdoctor: ignore[detach]\n"
    assert not silenced(tmp_path, source, 1)
    assert silenced(tmp_path, source, 2)
    assert not silenced(tmp_path, source, 2, rule="no-grad")


def test_a_file_that_changed_on_disk_is_read_again(tmp_path: Path) -> None:
    import linecache

    assert not silenced(tmp_path, "h = x.detach()\n")
    source = "h = x.detach()  # fxdoctor: ignore\n"
    (tmp_path / "m.py").write_text(source)
    linecache.checkcache()
    assert silenced(tmp_path, source)


def test_files_that_cannot_be_read() -> None:
    findings = [
        Finding("detach", "FXD101", "warning", "m", location=Location(f, 1)) for f in ("/gone.py", "<stdin>", "")
    ]
    apply_suppressions([*findings, Finding("detach", "FXD101", "warning", "m")])
    assert not any(f.suppressed for f in findings)


def test_lines_before_a_syntax_error_count() -> None:
    found = suppressions(["h = 1  # fxdoctor: ignore\n", "x = (\n"])
    assert found == {1: None}


def test_bare_ignore_wins_over_a_list() -> None:
    assert suppressions(["h = 1  # fxdoctor: ignore[a] # fxdoctor: ignore\n"]) == {1: None}
    assert suppressions(["h = 1  # fxdoctor: ignore # fxdoctor: ignore[a]\n"]) == {1: None}
