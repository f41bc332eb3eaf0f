"""Random models of live and severed branches: the verdict must be the one known by construction.

Eager autograd has the first word: the starved set of the construction is held against it before `analyze` is asked.
"""

from __future__ import annotations

import importlib.util
import itertools
import pathlib
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, Phase, given, settings
from programs import Program, programs
from torch.utils import _pytree as pytree

import fxdoctor

UNUSED = {"unused-param"}
SEVERED = {"detach", "no-grad", "nondiff-op", "int-cast", "python-value", "non-leaf-param", "function-none"}
_serial = itertools.count()


def load(program: Program, folder: pathlib.Path) -> tuple[torch.nn.Module, pathlib.Path]:
    """The program as an imported file, so that its source lines exist; the model always has the same weights."""
    path = folder / f"program_{next(_serial)}.py"
    path.write_text(program.source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    torch.manual_seed(0)
    return module.Net(), path


def weighted(t: torch.Tensor) -> torch.Tensor:
    return (t * torch.randn(t.shape, generator=torch.Generator().manual_seed(1))).sum()


def loss_of(program: Program) -> Callable[[Any], torch.Tensor] | None:
    return (lambda output: weighted(output[0])) if program.first_output_only else None


def eager_states(model: torch.nn.Module, x: torch.Tensor, loss: Callable[[Any], torch.Tensor] | None) -> dict[str, str]:
    """One plain step; the gradients are cleared again."""
    output = model(x)
    leaves = [t for t in pytree.tree_leaves(output) if isinstance(t, torch.Tensor) and t.requires_grad]
    value = loss(output) if loss else sum((weighted(t) for t in leaves), torch.zeros(()))
    if value.requires_grad:
        value.backward()
    states = {}
    for name, p in model.named_parameters():
        alive = p.grad is not None and bool((p.grad != 0).any())
        states[name] = "frozen" if not p.requires_grad else "none" if p.grad is None else "flows" if alive else "zero"
        p.grad = None
    return states


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return tmp_path_factory.mktemp("programs")


@given(program=programs())
@settings(
    derandomize=True,
    max_examples=500,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
)
def test_verdicts_are_those_of_the_construction(folder: pathlib.Path, program: Program) -> None:
    model, path = load(program, folder)
    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(2))
    loss = loss_of(program)
    truth = eager_states(model, x, loss)
    starved = program.starved()
    assert starved == {n for n, s in truth.items() if s == "none"}, "the construction is wrong, not fxdoctor"
    assert set(truth.values()) <= {"flows", "none", "frozen"}, "the construction gives zero gradients"

    report = fxdoctor.analyze(model, x, loss=loss)

    assert report.error is None
    assert {n: p.status for n, p in report.params.items()} == truth
    assert report.ok == (not starved), f"starved are {sorted(starved)}:\n{told(report, program)}"
    for finding in report.loud:
        check_finding(program, finding, path, report)
    named = {p: {f.location.line for f in report.loud if p in f.params and f.location} for p in starved}
    for param in sorted(starved):
        check_parameter(program, param, named[param], report)


def told(report: Any, program: Program) -> str:
    """What a failure prints: the findings, then the program with line numbers."""
    findings = [
        f"{f.severity} {f.rule} line {f.location and f.location.line} {f.proof} {f.params}" for f in report.findings
    ]
    lines = [f"{i:3} {text}" for i, text in enumerate(program.source.splitlines(), 1)]
    return "\n".join([*findings, *report.notes, *lines])


def check_finding(program: Program, finding: Any, path: pathlib.Path, report: Any) -> None:
    """A loud finding starves somebody, at a line that does it."""
    story = told(report, program)
    assert finding.params and set(finding.params) <= program.starved(), finding
    assert finding.location is not None and finding.location.file == str(path), finding
    assert finding.rule in SEVERED | UNUSED, finding
    assert finding.proof != "refuted", finding
    line = finding.location.line
    for param in finding.params:
        if param in program.unused():
            own = program.lines(program.params[param])
            allowed = own if finding.rule in UNUSED else lines_of(program, program.exit_marks(param))
            assert line in allowed, f"{finding.rule} at line {line} for {param}, which is unused:\n{story}"
            continue
        marks = [m for m in program.severs if line in program.lines(m) and program.on_path(param, m)]
        assert marks, f"{finding.rule}: line {line} severs nothing on a path of {param}:\n{story}"
        assert any(finding.rule in program.severs[m].rules for m in marks), f"{finding.rule} at {line}:\n{story}"


def lines_of(program: Program, marks: set[str]) -> set[int]:
    return {line for mark in marks for line in program.lines(mark)}


def check_parameter(program: Program, param: str, named: set[int], report: Any) -> None:
    """The lines named for a parameter are enough to restore it, and none of them could be left out."""
    assert named, f"no loud finding for {param}:\n{told(report, program)}"
    if param in program.unused():
        return
    marks = {m for m in program.severs if named & program.lines(m)}
    story = told(report, program)
    assert program.restores(param, marks), f"repairing lines {sorted(named)} does not restore {param}:\n{story}"
    strict = program.in_loss_only()  # an output without gradient may be counted as part of the loss, or not
    for spare in marks:
        without = marks - {spare}
        needed = not program.restores(param, without) or not strict.restores(param, without)
        assert needed, f"{spare} need not be repaired for {param}:\n{story}"
