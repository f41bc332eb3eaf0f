"""Generated from the rules: each page is complete, each bad example is found at its line, each good one is quiet."""

from __future__ import annotations

import ast
import difflib
import importlib.util
import pathlib
import re
import sys
from typing import Any

import pytest
import torch
from torch.utils import _pytree as pytree

import fxdoctor
from fxdoctor import rules
from fxdoctor.rules import all_rules
from fxdoctor.rules.inplace_saved import instead
from fxdoctor.rules_page import rule_page

RULES = all_rules()
SECTIONS = ("## What it does", "## Why is this bad", "## Use instead", "## When to ignore")
CAPTURE = {"inplace-read-after": "symbolic"}
"""Rules that only a captured graph can show; they are info."""
PROVED = (
    "detach no-grad python-value non-leaf-param missing-create-graph zero-grad-op saturated zero-factor nan-grad "
    "inplace-saved data-write"
).split()
"""Rules whose repair can be run: the bad example is proved."""
DESIGNED = set(
    """detach no-grad nondiff-op int-cast python-value frozen-param unused-param unregistered-param non-leaf-param
    function-none missing-create-graph zero-grad-op saturated zero-factor masked cancelled nan-grad inplace-saved
    inplace-leaf inplace-view inplace-expanded inplace-input inplace-param-or-buffer inplace-out inplace-read-after
    data-write capture""".split()
)
OTHER_PROJECTS = set(
    """tensorflow keras jax flax mxnet onnx lightning fastai accelerate deepspeed captum torchlens torchviz wandb
    tensorboard timm transformers huggingface torchvision detectron pyro gpytorch opacus ignite catalyst""".split()
)
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
    _, fresh = build(source, name, folder)  # a model of its own: nothing that analyze left behind could hide a mismatch
    expected = eager(fresh)
    if expected is None:
        assert report.error is not None
    else:
        assert report.error is None
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


@pytest.mark.parametrize("slug", RULES)
def test_comment_makes_it_info(slug: str, tmp_path: pathlib.Path) -> None:
    source = RULES[slug].bad.replace("# HERE", f"# fxdoctor: ignore[{slug}]")
    _, report = examine(source, f"ignored_{slug.replace('-', '_')}", tmp_path, CAPTURE.get(slug, "record"))
    assert report.ok and any(f.rule == slug and f.suppressed for f in report.findings), str(report)


@pytest.mark.parametrize("slug", PROVED)
def test_bad_example_is_proved(slug: str, tmp_path: pathlib.Path) -> None:
    _, report = examine(RULES[slug].bad, f"proved_{slug.replace('-', '_')}", tmp_path)
    assert [(f.rule, f.proof) for f in report.loud] == [(slug, "proved")] and report.loud[0].evidence, str(report)


@pytest.mark.parametrize("slug", RULES)
def test_every_loud_finding_says_what_to_do(slug: str, tmp_path: pathlib.Path) -> None:
    _, report = examine(RULES[slug].bad, f"said_{slug.replace('-', '_')}", tmp_path)
    for finding in report.loud:
        assert finding.help and finding.label, finding
        assert not finding.message.endswith(".") and "\n" not in finding.message


@pytest.mark.parametrize("slug", RULES)
def test_examples_are_small_programs_of_torch_alone(slug: str) -> None:
    rule = RULES[slug]
    assert rule.bad.count("# HERE") == 1 and "# HERE" not in rule.good
    for source in (rule.bad, rule.good):
        imports = [n for n in ast.walk(ast.parse(source)) if isinstance(n, (ast.Import, ast.ImportFrom))]
        names = {n.module if isinstance(n, ast.ImportFrom) else n.names[0].name for n in imports}
        assert {str(n).split(".")[0] for n in names} == {"torch"}
        assert 12 <= len(source.splitlines()) <= 30 and max(map(len, source.splitlines())) <= 100
    same = difflib.SequenceMatcher(None, rule.bad.splitlines(), rule.good.splitlines()).ratio()
    assert 0.8 < same < 1, "the good example is the bad one, repaired"


@pytest.mark.parametrize("slug", RULES)
def test_page_is_short_and_names_no_other_project(slug: str) -> None:
    lines = RULES[slug].doc.strip().splitlines()
    assert 15 <= len(lines) <= 36 and max(map(len, lines)) <= 110
    words = set(re.findall(r"[a-z_]+", RULES[slug].doc.lower()))
    assert not words & OTHER_PROJECTS and "http" not in RULES[slug].doc
    page = rule_page(RULES[slug])
    assert all(part.strip() in page for part in (RULES[slug].code, slug, lines[0]))
    assert "Wrong:" in page and "Right:" in page


def test_every_rule_of_the_four_families_is_there() -> None:
    assert set(RULES) >= DESIGNED
    files = {p.stem.replace("_", "-") for p in pathlib.Path(rules.__file__).parent.glob("*.py")}
    assert set(RULES) <= files


READ_AFTER = """\
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = nn.ReLU(inplace=True)
        self.net = nn.Linear(4, 4)

    def forward(self, x):
        skip = self.net(x)
        {body}


def make():
    torch.manual_seed(0)
    return dict(model=Block(), args=(torch.randn(3, 4),), loss=None)
"""


@pytest.mark.parametrize("capture", ["symbolic", "dynamo"])
@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("return self.net(self.act(skip)) + skip", True),
        ("y = skip.relu_(); return self.net(y) + skip", True),
        ("y = skip.relu(); return self.net(y) + skip", False),
        ("skip = self.act(skip); return self.net(skip) + skip", False),
        ("skip.clamp_(min=0); return self.net(skip)", False),
        ("y = self.act(skip); return self.net(y) * skip.shape[0]", False),
    ],
)
def test_read_after_tells_the_names_apart(body: str, found: bool, capture: str, tmp_path: pathlib.Path) -> None:
    name = f"read_after_{abs(hash((body, capture)))}"
    path, report = examine(READ_AFTER.format(body=body), name, tmp_path, capture)
    assert not any("recorded instead" in n for n in report.notes), report.notes
    places = [
        (f.location.file, f.location.line) for f in report.findings if f.rule == "inplace-read-after" and f.location
    ]
    assert places == ([(str(path), 13)] if found else []), str(report)
    assert report.ok


def test_eager_has_one_name_only(tmp_path: pathlib.Path) -> None:
    _, report = examine(RULES["inplace-read-after"].bad, "one_name", tmp_path)
    assert not [f for f in report.findings if f.rule == "inplace-read-after"]


def test_bias_that_drops_out_of_a_derivative_is_no_missing_flag(tmp_path: pathlib.Path) -> None:
    source = RULES["missing-create-graph"].good.replace(", bias=False", "")
    _, report = examine(source, "last_bias", tmp_path)
    assert report.params["energy.2.bias"].status == "none" and report.ok, str(report)
    assert [f.params for f in report.findings if f.rule == "missing-create-graph"] == [["energy.2.bias"]]


@pytest.mark.parametrize(
    ("op", "twin"),
    [
        ("add_", "x = x + y"),
        ("__imul__", "x = x * y"),
        ("index_put_", "x = x.index_put(...)"),
        ("clamp_", "x = x.clamp(...)"),
        ("copy_", "make a new tensor"),
        ("zero_", "make a new tensor"),
        ("relu", "inplace=False"),
    ],
)
def test_twin_of_a_write_exists(op: str, twin: str) -> None:
    assert twin in instead(op)
    method = re.search(r"x = x\.(\w+)\(", instead(op))
    assert method is None or hasattr(torch.Tensor, method[1])
