"""`diagnose` and `check_grad_flow`, held against what a plain backward does to each parameter."""

from __future__ import annotations

import contextlib
import copy
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import fxdoctor
from fxdoctor.report.model import Finding, Report
from fxdoctor.rules import all_rules


def eager(model: nn.Module) -> dict[str, str]:
    """The status of each parameter by its `.grad`, in plain PyTorch."""

    def status(p: torch.Tensor) -> str:
        if not p.requires_grad:
            return "frozen"
        if p.grad is None:
            return "none"
        if not torch.isfinite(p.grad).all():
            return "nan"
        return "zero" if (p.grad == 0).all() else "flows"

    return {n: status(p) for n, p in model.named_parameters()}


def statuses(report: Report) -> dict[str, str]:
    return {n: s.status for n, s in report.params.items()}


def one(report: Report, rule: str) -> Finding:
    found = [f for f in report.findings if f.rule == rule]
    assert len(found) == 1, f"{len(found)} findings of {rule}:\n{report.to_text(show_all=True)}"
    return found[0]


class Net(nn.Module):
    """`between` stands between encoder and head."""

    def __init__(self, between: Callable[[torch.Tensor], torch.Tensor] = lambda h: h) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.encoder = nn.Sequential(nn.Linear(4, 8), nn.Tanh())
        self.head = nn.Linear(8, 2)
        self.between = between

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.between(self.encoder(x)))


X = torch.randn(3, 4, generator=torch.Generator().manual_seed(1))
ENCODER = ["encoder.0.weight", "encoder.0.bias"]


class ToNothing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):  # type: ignore[no-untyped-def]
        return x * 2

    @staticmethod
    def backward(ctx, g):  # type: ignore[no-untyped-def]
        return None


BETWEEN: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "sound": lambda h: h,
    "detached": lambda h: h.detach(),
    "rounded": lambda h: h.round(),
    "clamped": lambda h: h.clamp(5, 6),
    "times zero": lambda h: h * 0.0,
    "square root of zero": lambda h: (h * 0).sqrt() + h,
    "python": lambda h: torch.tensor(h.tolist()),
    "function": lambda h: ToNothing.apply(h),
}
RULES = {
    "detached": {"unused-param"},
    "python": {"unused-param"},
    "rounded": {"zero-grad-op"},
    "clamped": {"saturated"},
    "times zero": {"zero-factor"},
    "square root of zero": {"nan-grad"},
    "function": {"function-none"},
}


@pytest.mark.parametrize("kind", BETWEEN)
def test_after_backward(kind: str) -> None:
    model = Net(BETWEEN[kind])
    loss = model(X).pow(2).sum()
    loss.backward()
    report = fxdoctor.diagnose(loss, model)
    assert statuses(report) == eager(model)
    assert {f.rule for f in report.loud} == RULES.get(kind, set())
    assert report.ok == (kind == "sound")
    bad = {n for n, s in eager(model).items() if s != "flows"}
    assert {p for f in report.loud for p in f.params} == bad and all(f.severity == "warning" for f in report.loud)
    flow = fxdoctor.check_grad_flow(model)
    assert statuses(flow) == eager(model)
    assert {p for f in flow.loud for p in f.params} == bad


@pytest.mark.parametrize("kind", BETWEEN)
def test_before_backward_what_is_not_reached_gets_none(kind: str) -> None:
    model = Net(BETWEEN[kind])
    loss = model(X).pow(2).sum()
    report = fxdoctor.diagnose(loss, model)
    assert all(p.grad is None for p in model.parameters())
    missing = [n for n, s in statuses(report).items() if s == "none"]
    loss.backward()
    expected = [n for n, s in eager(model).items() if s == "none"]
    assert missing == (expected if kind != "function" else [])
    assert any("backward has not run" in note for note in report.notes)


def test_norms_are_those_of_grad() -> None:
    model = Net()
    loss = model(X).pow(2).sum()
    loss.backward()
    for report in (fxdoctor.diagnose(loss, model), fxdoctor.check_grad_flow(model)):
        for name, p in model.named_parameters():
            assert p.grad is not None
            assert report.params[name].norm == pytest.approx(p.grad.norm().item(), rel=1e-5)


# --- step 1 ---------------------------------------------------------------------------------------------------------


def no_grad_loss(model: nn.Module) -> torch.Tensor:
    with torch.no_grad():
        return model(X).sum()


def inference_loss(model: nn.Module) -> torch.Tensor:
    with torch.inference_mode():
        return model(X).sum()


LOST: list[tuple[str, Callable[[nn.Module], Any], str]] = [
    ("float", lambda m: m(X).sum().item(), "python-value"),
    ("numpy", lambda m: m(X).sum().detach().numpy(), "python-value"),
    ("detached", lambda m: m(X).sum().detach(), "detach"),
    ("no_grad", no_grad_loss, "detach"),
    ("inference", inference_loss, "no-grad"),
    ("argmax", lambda m: m(X).argmax(), "nondiff-op"),
    ("accuracy", lambda m: (m(X) > 0).sum(), "nondiff-op"),
    ("revived", lambda m: torch.tensor(m(X).sum().item(), requires_grad=True), "python-value"),
]


@pytest.mark.parametrize("make, rule", [(m, r) for _, m, r in LOST], ids=[n for n, _, _ in LOST])
def test_loss_without_history(make: Callable[[nn.Module], Any], rule: str) -> None:
    model = Net()
    loss = make(model)
    report = fxdoctor.diagnose(loss, model)
    finding = one(report, rule)
    assert finding.severity == "error" and set(finding.params) == set(dict(model.named_parameters()))
    with contextlib.suppress(RuntimeError, AttributeError):
        loss.backward()
    assert statuses(report) == eager(model)


def test_grad_mode_off_now() -> None:
    model = Net()
    with torch.no_grad():
        report = fxdoctor.diagnose(model(X).sum(), model)
    assert "grad mode is off" in one(report, "no-grad").message


def test_everything_frozen() -> None:
    model = Net().requires_grad_(False)
    report = fxdoctor.diagnose(model(X).sum(), model)
    assert one(report, "frozen-param").severity == "error"
    assert set(statuses(report).values()) == {"frozen"}
    assert one(fxdoctor.check_grad_flow(model), "frozen-param")


@pytest.mark.parametrize(
    "loss, model, error, text",
    [
        (None, Net(), TypeError, "loss is NoneType"),
        ([], Net(), TypeError, "loss is list"),
        (torch.zeros(()), Net, TypeError, "the class Net"),
        (torch.zeros(()), 3, TypeError, "model is int"),
        (torch.zeros(()), torch.zeros(3), TypeError, "model is Tensor"),
        (torch.zeros(()), {"w": 3}, TypeError, "parameter w is int"),
        (torch.zeros(()), nn.ReLU(), ValueError, "no parameter"),
        (torch.zeros(()), nn.LazyLinear(3), ValueError, "not initialised"),
    ],
)
def test_bad_input(loss: Any, model: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text) as caught:
        fxdoctor.diagnose(loss, model)
    assert "\n" not in str(caught.value)


# --- step 3 ---------------------------------------------------------------------------------------------------------


def test_a_live_tensor_shows_how_far_the_chain_comes() -> None:
    model = Net()
    features = model.encoder(X)
    loss = model.head(features.detach()).sum()
    report = fxdoctor.diagnose(loss, model)
    assert report.loud[0].params == ENCODER
    assert "TanhBackward0" in report.loud[0].message and "[3, 8]" in report.loud[0].message
    expected = "detach" if hasattr(loss.grad_fn.next_functions[0][0]._raw_saved_mat1, "data") else "unused-param"
    assert report.loud[0].rule == expected  # torch 2.6 does not tell whose memory was saved


def test_unused_module_is_one_finding_at_the_line_that_creates_it() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used = nn.Linear(4, 2)
            self.spare = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.used(x)

    model = Two()
    report = fxdoctor.diagnose(model(X).sum(), model)
    finding = one(report, "unused-param")
    assert len(finding.params) == 4 and finding.location is not None
    assert finding.location.source.strip().startswith("self.spare =")
    assert len(fxdoctor.check_grad_flow(model).loud) == 1


def test_copied_model() -> None:
    model = Net()
    used = copy.deepcopy(model)
    loss = used(X).sum()
    loss.backward()
    report = fxdoctor.diagnose(loss, model)
    assert statuses(report) == eager(model)
    finding = one(report, "unregistered-param")
    assert "same shape" in finding.message and len(finding.params) == 4


def test_layer_in_a_plain_list() -> None:
    class Listed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(4, 4)
            self.others = [nn.Linear(4, 2)]

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.others[0](self.first(x))

    model = Listed()
    finding = one(fxdoctor.diagnose(model(X).sum(), model), "unregistered-param")
    assert finding.severity == "warning" and "others.0.weight" in finding.message
    assert finding.location is not None and "self.others" in finding.location.source


def test_leaf_outside_the_model_is_only_info() -> None:
    model, critic = Net(), nn.Linear(2, 1)
    x = X.clone().requires_grad_()
    report = fxdoctor.diagnose(critic(model(x)).sum(), model)
    assert report.ok and one(report, "unregistered-param").severity == "info"


def test_parameter_taught_by_another_loss_is_only_info() -> None:
    model = Net()
    model.encoder(X).sum().backward()
    loss = model.head(torch.ones(1, 8)).sum()
    loss.backward()
    report = fxdoctor.diagnose(loss, model)
    assert statuses(report) == eager(model) and report.ok
    assert one(report, "unused-param").params == ENCODER


def test_non_leaf_parameter() -> None:
    w = torch.randn(4, 2, requires_grad=True)
    moved = w * 0.1
    loss = (X @ moved).sum()
    report = fxdoctor.diagnose(loss, {"w": moved})
    assert one(report, "non-leaf-param").params == ["w"] and statuses(report) == {"w": "none"}
    loss.backward()
    assert w.grad is not None and one(fxdoctor.check_grad_flow({"w": moved}), "non-leaf-param")


def test_frozen_among_others_is_silent() -> None:
    model = Net()
    model.encoder.requires_grad_(False)
    loss = model(X).sum()
    loss.backward()
    report = fxdoctor.diagnose(loss, model)
    assert statuses(report) == eager(model) and not report.findings
    assert not fxdoctor.check_grad_flow(model).findings


@pytest.mark.parametrize("give", [list, dict, lambda pairs: [p for _, p in pairs], iter])
def test_forms_of_parameters(give: Callable[[Any], Any]) -> None:
    model = Net(BETWEEN["detached"])
    loss = model(X).sum()
    report = fxdoctor.diagnose(loss, give(list(model.named_parameters())))
    assert list(statuses(report).values()) == ["none", "none", "flows", "flows"]


# --- gradients of an earlier step, kept graphs ----------------------------------------------------------------------


def test_zeroed_gradients_are_no_verdict() -> None:
    model = Net()
    model(X).sum().backward()
    model.zero_grad(set_to_none=False)
    loss = model(X).sum()
    report = fxdoctor.diagnose(loss, model)
    assert report.ok and set(statuses(report).values()) == {"flows"}


def test_branch_used_for_the_first_time() -> None:
    model = Net()
    model.head(torch.ones(1, 8)).sum().backward()
    report = fxdoctor.diagnose(model(X).sum(), model)
    assert report.ok and set(statuses(report).values()) == {"flows"}


def test_backward_that_left_no_gradients() -> None:
    model = Net()
    loss = model(X).pow(2).sum()
    loss.backward()
    model.zero_grad()
    report = fxdoctor.diagnose(loss, model)
    assert statuses(report) == eager(model) and "zero_grad" in one(report, "unused-param").help
    assert "backward has not run" in one(fxdoctor.check_grad_flow(model), "unused-param").message


class Gated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.base, self.branch = nn.Linear(4, 4), nn.Linear(4, 4)
        self.gate = nn.Parameter(torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.base(x) + self.gate * self.branch(x).relu()


class LowRank(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.base = nn.Linear(4, 4)
        self.down, self.up = nn.Linear(4, 2, bias=False), nn.Linear(2, 4, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.base(x) + self.up(self.down(x))


class ScaledWeight(nn.Module):
    """A weight is zero since its gain is: neither its raw weight nor what scales its output learns yet."""

    def __init__(self) -> None:
        super().__init__()
        self.base, self.inner, self.scale = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)
        self.weight, self.gain = nn.Parameter(torch.randn(4, 4)), nn.Parameter(torch.zeros(4, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.inner(x) @ (self.weight * (self.gain * 0.5))
        return self.base(x) + y * self.scale(x).sigmoid()


@pytest.mark.parametrize("cls", [Gated, LowRank, ScaledWeight])
def test_zero_that_heals_is_info(cls: type[nn.Module]) -> None:
    torch.manual_seed(0)
    model = cls()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss = model(X).pow(2).sum()
    loss.backward()
    report = fxdoctor.diagnose(loss, model)
    assert statuses(report) == eager(model) and report.ok
    dead = set(one(report, "zero-factor").params)
    assert dead == {n for n, s in eager(model).items() if s == "zero"}
    optimizer.step()
    optimizer.zero_grad()
    model(X).pow(2).sum().backward()
    assert all(s == "flows" for s in eager(model).values())


def test_dead_relu_in_a_residual_branch() -> None:
    class Residual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem, self.branch = nn.Linear(4, 4), nn.Linear(4, 4)
            nn.init.constant_(self.branch.bias, -100.0)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            h = self.stem(x)
            return (h + self.branch(h).relu()) * 2

    model = Residual()
    loss = model(X).pow(2).sum()
    loss.backward()
    report = fxdoctor.diagnose(loss, model)
    assert statuses(report) == eager(model)
    finding = one(report, "saturated")
    assert finding.node == "ReluBackward0" and finding.params == ["branch.weight", "branch.bias"]


# --- step 4 ---------------------------------------------------------------------------------------------------------


def test_overwritten_saved_tensor() -> None:
    class InPlace(Net):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            h = self.encoder(x)
            y = self.head(h)
            h += 1
            return y + h.sum()

    model = InPlace()
    loss = model(X).sum()
    report = fxdoctor.diagnose(loss, model)
    found = [f for f in report.findings if f.rule == "inplace-saved"]
    assert {f.node for f in found} == {"AddmmBackward0", "TanhBackward0"} and all(f.severity == "error" for f in found)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_both_lines_in_anomaly_mode() -> None:
    model = Net()
    with torch.autograd.detect_anomaly(check_nan=False):
        h = model.encoder(X) * 2
        y = h.exp()
        s = h.sin()
        h.add_(1)
        loss = s.sum() + y.sum() + h.sum()
    finding = one(fxdoctor.diagnose(loss, model.encoder), "inplace-saved")
    lines = [p.source.strip() for p in [finding.location, *(r.location for r in finding.related)] if p is not None]
    # The writer's node is not told by torch 2.6, only its name.
    both = hasattr(s.grad_fn._raw_saved_self, "data")
    assert lines == (["h.add_(1)", "s = h.sin()"] if both else ["s = h.sin()"])
    assert "by AddBackward0" in finding.message


def test_step_before_backward() -> None:
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(X).sum().backward()
    loss = model(X).pow(2).sum()
    optimizer.step()
    report = fxdoctor.diagnose(loss, model)
    assert any(f.rule == "inplace-saved" and f.severity == "error" for f in report.findings)
    if hasattr(loss.grad_fn.next_functions[0][0]._raw_saved_self, "data"):
        assert any("head.weight" in f.params and "optimizer.step()" in f.help for f in report.findings)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_op_without_derivative() -> None:
    model = Net(lambda h: torch.floor_divide(h, 0.1))
    loss = model(X).sum()
    finding = one(fxdoctor.diagnose(loss, model), "nondiff-op")
    assert finding.severity == "error" and finding.params == ENCODER
    with pytest.raises(RuntimeError, match="is not implemented"):
        loss.backward()


# --- sizes and kinds of gradients -----------------------------------------------------------------------------------


def test_deep_graph() -> None:
    w = torch.ones(2, requires_grad=True)
    y = w
    for _ in range(100_000):
        y = y.sin()
    report = fxdoctor.diagnose(y.sum(), [w])
    assert report.ok and report.node_count == 100_002


def test_sparse_complex_half_and_huge() -> None:
    table = nn.Embedding(5, 3, sparse=True)
    table(torch.tensor([1, 1, 4])).pow(2).sum().backward()
    z = torch.randn(3, dtype=torch.complex64, requires_grad=True)
    z.abs().pow(2).sum().backward()
    half = torch.full((100,), 1000.0, dtype=torch.float16, requires_grad=True)
    (half * 1000).sum().backward()
    huge = torch.ones(4, requires_grad=True)
    (huge * 3e38).sum().backward()
    empty = torch.ones(0, requires_grad=True)
    empty.sum().backward()
    params = {"table": table.weight, "z": z, "half": half, "huge": huge, "empty": empty}
    report = fxdoctor.check_grad_flow(params)
    dense = table.weight.grad.to_dense()  # type: ignore[union-attr]
    norms = {"table": dense.norm().item(), "z": z.grad.abs().norm().item(), "half": 1e4, "huge": 6e38}  # type: ignore[union-attr]
    for name, norm in norms.items():
        assert report.params[name].norm == pytest.approx(norm, rel=1e-3) and report.params[name].status == "flows"
    assert report.ok and math.isfinite(norms["huge"])


def test_meta_gradients_have_no_values() -> None:
    model = nn.Linear(3, 2, device="meta")
    loss = model(torch.randn(4, 3, device="meta")).sum()
    loss.backward()
    report = fxdoctor.diagnose(loss, model)
    assert set(statuses(report).values()) == {"flows"} and report.notes


def test_non_scalar_and_non_finite_losses_are_noted() -> None:
    model = Net()
    assert any("backward() needs one number" in n for n in fxdoctor.diagnose(model(X), model).notes)
    assert any("the loss is nan" in n for n in fxdoctor.diagnose(model(X * math.nan).sum(), model).notes)


# --- leaves no trace ------------------------------------------------------------------------------------------------


def test_changes_nothing() -> None:
    model = Net(lambda h: h.relu())
    loss = model(X).pow(2).sum()
    loss.backward(retain_graph=True)
    before = {n: (p.clone(), p.grad.clone(), p._version, p.grad._version) for n, p in model.named_parameters()}  # type: ignore[union-attr]
    calls: list[str] = []
    model.head.weight.register_hook(lambda g: calls.append("hook"))
    model.register_forward_hook(lambda *a: calls.append("forward"))
    rng = torch.get_rng_state()
    fxdoctor.diagnose(loss, model, source=model)
    fxdoctor.check_grad_flow(model)
    assert not calls and torch.equal(rng, torch.get_rng_state()) and torch.is_grad_enabled()
    for name, p in model.named_parameters():
        value, grad, version, grad_version = before[name]
        assert torch.equal(p, value) and torch.equal(p.grad, grad)
        assert (p._version, p.grad._version) == (version, grad_version)
    loss.backward()
    assert calls == ["hook"]


# --- with source ----------------------------------------------------------------------------------------------------


class Severed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.head = nn.Linear(4, 8), nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.encoder(x).detach()
        return self.head(h)


def test_source_gives_the_candidate_line() -> None:
    model = Severed()
    report = fxdoctor.diagnose(model(X).sum(), model, source=[Severed, test_changes_nothing])
    finding = next(f for f in report.findings if f.rule == "detach" and f.location and "Severed" in f.location.function)
    assert finding.severity == "info" and "candidate" in finding.message and "FXD107" in finding.message
    assert finding.location is not None and finding.location.source.strip() == "h = self.encoder(x).detach()"
    assert not report.ok


def test_source_alone_is_no_complaint() -> None:
    model = Severed()
    model.encoder.requires_grad_(False)
    report = fxdoctor.diagnose(model(X).sum(), model, source=Severed)
    assert report.ok and "candidate" not in one(report, "detach").message
    assert fxdoctor.check_grad_flow(model, source=Severed).findings


def test_every_code_is_that_of_the_rule() -> None:
    from fxdoctor.grad_findings import CODES
    from fxdoctor.source_risks import _CODES, FORMS

    known = {slug: rule.code for slug, rule in all_rules().items()}
    for codes in (CODES, _CODES):
        assert all(known[slug] == code for slug, code in codes.items() if slug in known)
    assert {f.rule for f in FORMS.values()} <= set(_CODES)


def test_report_prints_and_serialises() -> None:
    model = Severed()
    report = fxdoctor.diagnose(model(X).sum(), model, source=Severed)
    assert "FXD107" in str(report) and report.to_dict()["findings"] and report.to_sarif()
