"""The samples: the one loud finding, at its line, with its parameters; and what plain PyTorch says of them."""

from __future__ import annotations

import importlib.util
import pathlib
import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import nn

import fxdoctor

SAMPLES = pathlib.Path(__file__).parent.parent / "samples"

EXPECTED: dict[str, tuple[str, str, str, str | None]] = {
    # file: (rule, the faulty line, start of the parameters' names, proof)
    "severed_encoder": ("detach", "h = self.encoder(x).detach()", "encoder.", "proved"),
    "detach_in_helper": ("detach", "return (vectors / length).detach()", "speaker.", "proved"),
    "argmax_routing": ("nondiff-op", "return self.score(tokens).argmax(dim=-1)", "router.", None),
    "numpy_round_trip": ("python-value", "values = signal.detach().cpu().numpy()", "front.", None),
    "inplace_residual": ("inplace-saved", "gate += x", "", "proved"),
    "where_nan": ("nan-grad", "root = squared.sqrt()", "net.", "proved"),
    "dead_gate": ("zero-factor", "return x + self.gate * branch", "adapter.", "proved"),
    "data_write": ("data-write", "h.data.mul_(0.1)", "features.", "proved"),
    "plain_list": (
        "unregistered-param",
        "self.layers = [nn.Linear(width, width) for _ in range(depth)]",
        "",
        None,
    ),
    "no_grad_tower": ("no-grad", "@torch.no_grad()", "tower.", "proved"),
}


def load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"sample_{name}", SAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def eager_states(model: nn.Module, args: tuple[Any, ...], loss: Any) -> dict[str, str] | None:
    """What plain PyTorch leaves in each `.grad`; None when it raises."""
    output = model(*args)
    if loss is None:
        weights = torch.randn(output.shape, generator=torch.Generator().manual_seed(0))
        value = (output * weights).sum()
    else:
        value = loss(output)
    try:
        value.backward()
    except RuntimeError:
        return None
    states = {}
    for name, p in model.named_parameters():
        if p.grad is None:
            states[name] = "none"
        elif not torch.isfinite(p.grad).all():
            states[name] = "nan"
        else:
            states[name] = "flows" if p.grad.any() else "zero"
    return states


@pytest.mark.parametrize("name", EXPECTED)
def test_sample(name: str) -> None:
    rule, line, prefix, proof = EXPECTED[name]
    case = load(name).make()
    report = fxdoctor.analyze(case["model"], case["args"], loss=case.get("loss"))
    loud = [f for f in report.findings if f.loud]
    assert [f.rule for f in loud] == [rule], str(report)
    place = loud[0].location
    assert place is not None and place.source.strip() == line
    assert loud[0].proof == proof
    if prefix:
        names = {n for n, _ in case["model"].named_parameters() if n.startswith(prefix)}
        assert set(loud[0].params) == names
    expected = eager_states(case["model"], case["args"], case.get("loss"))
    if expected is None:
        assert report.error is not None
    else:
        assert {n: s.status for n, s in report.params.items()} == expected


def test_every_sample_is_here() -> None:
    assert {p.stem for p in SAMPLES.glob("*.py")} == {*EXPECTED, "diagnose_my_loss"}


def test_command_line_on_a_sample() -> None:
    command = [sys.executable, "-m", "fxdoctor", "analyze", "samples/severed_encoder.py"]
    done = subprocess.run(command, cwd=SAMPLES.parent, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1, done.stderr
    assert "FXD101 detach" in done.stdout and "^^^^" in done.stdout and "proved" in done.stdout
