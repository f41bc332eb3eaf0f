"""Generated from the rules: each page is complete, each bad example is found at its line, each good one is quiet."""

from __future__ import annotations

import importlib.util
import pathlib
import sys
from typing import Any

import pytest
import torch
from torch.utils import _pytree as pytree

import fxdoctor
from fxdoctor.rules import all_rules

RULES = all_rules()
SECTIONS = ("## What it does", "## Why is this bad", "## Use instead", "## When to ignore")
CAPTURE = {"inplace-read-after": "symbolic"}
"""Rules that only a captured graph can show; they are info."""
FAMILIES = {"FXD1": "severed", "FXD2": "zeroed", "FXD3": "poisoned", "FXD4": "in-place", "FXD9": "notes"}


def build(source: str, name: str, folder: pathlib.Path) -> tuple[pathlib.Path, dict[str, Any]]:
    path = folder / f"{name}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(f"example_{name}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return path, module.make()


def eager(case: dict[str, Any]) -> dict[str, str] | None:
    """Each parameter's state after one plain step; None when PyTorch or the model raises."""
    model = case["model"]
    try:
        torch.manual_seed(0)
        output = model(*case["args"], **(case.get("kwargs") or {}))
        if case.get("loss") is not None:
            case["loss"](output).backward()
            output = None
        live = [t for t in pytree.tree_leaves(output) if isinstance(t, torch.Tensor) and t.requires_grad]
        parts = [(t * torch.randn(t.shape, generator=torch.Generator().manual_seed(0))).sum() for t in live]
        if parts:
            sum(parts).backward()
    except (RuntimeError, ValueError):
        return None
    states = {}
    for name, p in model.named_parameters():
        if not p.requires_grad:
            states[name] = "frozen"
        elif p.grad is None:
            states[name] = "none"
        elif not torch.isfinite(p.grad).all():
            states[name] = "nan"
        else:
            states[name] = "flows" if p.grad.any() else "zero"
    return states


def examine(
    source: str, name: str, folder: pathlib.Path, capture: str = "record"
) -> tuple[pathlib.Path, fxdoctor.Report]:
    path, case = build(source, name, folder)
    torch.manual_seed(0)
    report = fxdoctor.analyze(
        case["model"], case["args"], kwargs=case.get("kwargs"), loss=case.get("loss"), capture=capture
    )
    expected = eager(case)
    if expected is None:
        assert report.error is not None
    else:
        assert {n: s.status for n, s in report.params.items()} == expected
    return path, report


@pytest.mark.parametrize("slug", RULES)
def test_bad_example_is_found_at_its_line(slug: str, tmp_path: pathlib.Path) -> None:
    capture = CAPTURE.get(slug, "record")
    path, report = examine(RULES[slug].bad, f"bad_{slug.replace('-', '_')}", tmp_path, capture)
    line = next(i for i, text in enumerate(RULES[slug].bad.splitlines(), 1) if text.endswith("# HERE"))
    wanted = [f for f in report.findings if f.loud or slug in CAPTURE]
    found = [(f.rule, f.location.file, f.location.line) if f.location else (f.rule,) for f in wanted]
    assert found == [(slug, str(path), line)], str(report)


@pytest.mark.parametrize("slug", RULES)
def test_good_example_is_quiet(slug: str, tmp_path: pathlib.Path) -> None:
    _, report = examine(RULES[slug].good, f"good_{slug.replace('-', '_')}", tmp_path)
    assert report.ok, str(report)


@pytest.mark.parametrize("slug", RULES)
def test_page(slug: str) -> None:
    rule = RULES[slug]
    first, *rest = rule.doc.strip().splitlines()
    assert first.endswith(".") and len(first) <= 110
    for section in SECTIONS:
        assert section in rest
    assert f"# fxdoctor: ignore[{slug}]" in rule.doc
    assert rule.code[:4] in FAMILIES


def test_names_are_unique() -> None:
    assert len({r.code for r in RULES.values()}) == len(RULES)
    assert [r.code for r in RULES.values()] == sorted(r.code for r in RULES.values())
