"""Every case in tests/cases: each cause named at its line by a rule that fits, nothing else, every state right.

What PyTorch itself does with the cases is held in `test_cases_eager.py`.
"""

from __future__ import annotations

import importlib.util
import pathlib
import sys
from types import ModuleType
from typing import Any

import pytest

import fxdoctor

CASES = sorted((pathlib.Path(__file__).parent / "cases").glob("*.py"))


def load(path: pathlib.Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"case_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def lines(path: pathlib.Path, cause: dict[str, Any]) -> list[int]:
    """The lines that carry the cause's marks."""
    marks = [cause["line"], *cause.get("also", [])]
    source = path.read_text().splitlines()
    return [
        i for i, text in enumerate(source, 1) for m in marks if text.rstrip().endswith(f"# {m}") or f"# {m} " in text
    ]


def near(finding: fxdoctor.Finding, path: pathlib.Path, places: list[int]) -> bool:
    where = finding.location
    return where is not None and where.file == str(path) and any(abs(where.line - n) <= 1 for n in places)


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_case(path: pathlib.Path) -> None:
    module = load(path)
    case, expected = module.make(), module.EXPECT
    report = fxdoctor.analyze(case["model"], case["args"], kwargs=case.get("kwargs"), loss=case.get("loss"))
    loud = [f for f in report.findings if f.loud]
    for cause in expected["causes"]:
        places = lines(path, cause)
        fitting = [f for f in loud if f.rule in {cause["kind"], *cause.get("also_kinds", [])} and near(f, path, places)]
        assert fitting, f"{cause['kind']} at line {places} was not named:\n{report}"
        named = {p for f in loud if near(f, path, places) for p in f.params}
        assert named >= set(cause["params"]), f"{set(cause['params']) - named} not named at line {places}:\n{report}"
    allowed = [n for cause in expected["causes"] for n in lines(path, cause)]
    false = [f for f in loud if not near(f, path, allowed)]
    assert not false, f"false alarm:\n{report}"
    if expected["eager"] == "ok":
        assert {n: s.status for n, s in report.params.items()} == expected["params"]
    else:
        assert report.error is not None and (expected["error_match"] or "") in report.error
