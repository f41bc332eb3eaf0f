"""`fxdoctor.diagnose` and `fxdoctor.check_grad_flow`: what a live loss, or the `.grad`s alone, say. No model is run.

Four steps: has the loss a history; are there `.grad`s missing after backward; which parameters does its graph reach,
and how far do the others come; are saved tensors still at the version at which they were saved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from .autograd_walk import GradGraph, SavedCheck, is_custom, saved_hazards, walk
from .grad_findings import hazard_findings, make, unreached, without_derivative, without_grad
from .grad_findings import strays as stray_findings
from .grad_states import by_module, named_tensors, state_of
from .grad_values import bad_values
from .report.model import Finding, ParamState, Report, sort_findings
from .report.suppress import apply_suppressions
from .rules.context import count, group_name
from .rules.where import freezing_place

BEFORE = (
    "backward has not run on this loss: `flows` means that its graph reaches the parameter; the gradient's value is "
    "not known"
)


def diagnose(loss: Any, model_or_params: Any, *, source: Any = None) -> Report:
    """Says which parameters a loss does not teach, and why, from its live autograd graph; before or after backward.

    Args:
        loss: a tensor of any shape; a number or numpy value gets a report too, which says that its history is lost.
        model_or_params: an `nn.Module`, a dict name -> tensor, or an iterable of tensors or of (name, tensor).
        source: code to read for dangerous forms: a function, class, module instance or .py file, or a list of them.
            What it finds is `info`, since only the graph can show a consequence.

    The model is not run, backward is not run, no hook is called; gradients and versions stay as they are. Objects that
    are still alive are searched for the ends of chains that do not reach the loss.

    Raises:
        TypeError: `loss` is no tensor or number, or `model_or_params` is none of the above.
        ValueError: there is no parameter, or one is lazy and not initialised.
    """
    params = named_tensors(model_or_params)
    report = Report(title=_title(model_or_params))
    if isinstance(loss, torch.Tensor):
        if loss.requires_grad:
            _with_history(report, loss, params, model_or_params)
        else:
            report.findings = [_no_history(loss, params, model_or_params)]
            _all_none(report, params)
    else:
        report.findings = [_not_a_tensor(loss, params)]
        _all_none(report, params)
    if source is not None:
        from .source_risks import candidates

        report.findings += candidates(source, report.findings)
    return _finished(report)


def check_grad_flow(model_or_params: Any, *, source: Any = None) -> Report:
    """The parameters whose `.grad` is missing, all zero or not finite; to be called after backward.

    Takes and raises what `diagnose` does, without the loss. Sparse, complex and half-precision gradients are measured
    without overflow. Says so when no parameter has a gradient at all.
    """
    params = named_tensors(model_or_params)
    report = Report(title=_title(model_or_params))
    report.params = {n: state_of(n, p, report.notes) for n, p in params.items()}
    if all(s.status in ("none", "frozen") for s in report.params.values()):
        report.findings = [_nothing_ran(params, model_or_params)]
    else:
        report.findings = without_grad(params, _named(report, "none"), model_or_params)
        for status in ("zero", "nan"):
            report.findings += bad_values(None, params, report.params, status)
    report.findings += _non_leaf(params, report.params, model_or_params)
    if source is not None:
        from .source_risks import candidates

        report.findings += candidates(source, report.findings)
    return _finished(report)


# --- step 1: has the loss a history? --------------------------------------------------------------------------------


def _not_a_tensor(loss: Any, params: dict[str, torch.Tensor]) -> Finding:
    kind = type(loss)
    if isinstance(loss, bool) or not (isinstance(loss, (int, float, complex)) or kind.__module__ == "numpy"):
        raise TypeError(f"loss is {kind.__name__}; pass the tensor on which you call backward()")
    return make(
        "python-value",
        "error",
        f"the loss is a {kind.__name__}, not a tensor: its history is lost, and it has no backward()",
        params=_trainable(params),
        help="keep the tensor for backward(); use .item() or float() only on a copy for logging",
    )


def _no_history(loss: torch.Tensor, params: dict[str, torch.Tensor], model: Any) -> Finding:
    """Why a tensor may have no grad_fn, by what can still be seen of it."""
    trainable = _trainable(params)
    if not trainable:
        return make(
            "frozen-param",
            "error",
            f"nothing requires grad: {count(list(params))}, all frozen; the loss has no graph, and backward() raises",
            params=list(params),
            location=freezing_place(model),
            help="call requires_grad_(True) on the parameters that should learn",
        )
    tail = "no parameter gets a gradient, and backward() raises"
    if not (loss.is_floating_point() or loss.is_complex()):
        dtype = str(loss.dtype).removeprefix("torch.")
        return make(
            "nondiff-op",
            "error",
            f"the loss is {dtype}; integers and booleans have no gradient: {tail}",
            params=trainable,
            help="compute the loss from floating-point values: no argmax(), comparison, .long() or .int() on the way",
        )
    if loss.is_inference() or not torch.is_grad_enabled():
        why = "was made in inference_mode" if loss.is_inference() else "has no graph, and grad mode is off right now"
        return make(
            "no-grad",
            "error",
            f"the loss {why}: {tail}",
            params=trainable,
            help="run the forward outside no_grad(), inference_mode() and set_grad_enabled(False)",
        )
    return make(
        "detach",
        "error",
        f"the loss has no graph (requires_grad is False): {tail}",
        params=trainable,
        help="look for detach() or .data, no_grad() or inference_mode() around the forward, .item(), numpy() or "
        "torch.tensor(...) on the way; fxdoctor.analyze(model, inputs) names the line",
    )


def _all_none(report: Report, params: dict[str, torch.Tensor]) -> None:
    for name, p in params.items():
        report.params[name] = _structural(name, p, "none")


def _structural(name: str, p: torch.Tensor, status: str) -> ParamState:
    state = ParamState(status if p.requires_grad else "frozen", shape=tuple(p.shape))
    state.dtype, state.module = str(p.dtype).removeprefix("torch."), name.rpartition(".")[0]
    return state


# --- steps 2 to 4 ---------------------------------------------------------------------------------------------------


def _with_history(report: Report, loss: torch.Tensor, params: dict[str, torch.Tensor], model: Any) -> None:
    graph = walk(loss)
    report.node_count = len(graph)
    _remark(report, loss)
    if loss.is_leaf and id(loss) not in {id(p) for p in params.values()}:
        report.findings.append(_leaf_loss(params))
        _all_none(report, params)
        return
    check = saved_hazards(graph)
    reached = {n for n, p in params.items() if _reaches(graph, p)}
    ran = _fill_states(report, graph, check, params, reached)
    findings = hazard_findings(graph, check.hazards, params, model) + without_derivative(graph, params)
    missing = [n for n, p in params.items() if n not in reached and p.requires_grad and p.is_leaf]
    more, named = unreached(graph, params, report.params, missing, model)
    findings += more + stray_findings(graph, params, named, model)
    findings += _non_leaf(params, report.params, model)
    if ran or check.freed:
        findings += _no_grad_arrived(report, graph, params, [n for n in reached if params[n].is_leaf])
    if ran:
        for status in ("zero", "nan"):
            findings += bad_values(graph, params, report.params, status, reached)
    report.findings += findings
    if check.hooked:
        report.notes.append(
            f"{check.hooked} saved values are behind saved_tensors_hooks (checkpoint, offloading): not checked, since "
            "reading them runs the hooks; autograd does not check them either"
        )


def _reaches(graph: GradGraph, p: torch.Tensor) -> bool:
    return id(p) in graph.leaves if p.is_leaf else p.grad_fn in graph.index


def _fill_states(
    report: Report, graph: GradGraph, check: SavedCheck, params: dict[str, torch.Tensor], reached: set[str]
) -> bool:
    """The state of every parameter; returns whether the `.grad`s tell of this loss.

    Backward has surely run where it freed saved tensors, or where there was none to free. A graph that still has all of
    its saved tensors may have been kept (retain_graph), or its gradients may be from the step before: then a missing
    gradient says nothing.
    """
    found = {n: state_of(n, p, report.notes) for n, p in params.items()}
    with_grad = [n for n in reached if found[n].norm is not None or found[n].status == "flows"]
    fresh = check.freed > 0 or not (check.checked or check.hooked)
    zeroed = not fresh and all(found[n].status == "zero" for n in with_grad)
    ran = bool(with_grad) and not zeroed
    for name, state in found.items():
        judged = ran and (fresh or name in with_grad)
        if name in reached and not judged and not (check.freed and params[name].is_leaf):
            state = _structural(name, params[name], "flows")
        if not params[name].is_leaf and state.status == "flows" and not params[name].retains_grad:
            state = _structural(name, params[name], "none")
        report.params[name] = state
    if not check.freed and reached and not (ran and fresh):
        report.notes.append(BEFORE)
    return ran


def _remark(report: Report, loss: torch.Tensor) -> None:
    if loss.numel() != 1:
        report.notes.append(
            f"the loss has shape {tuple(loss.shape)}: backward() needs one number; use .mean() or .sum(), or gradient="
        )
        return
    if loss.is_meta or loss.layout is not torch.strided or type(loss) not in (torch.Tensor, nn.Parameter):
        return
    with torch.no_grad():
        value = loss.detach()
        if not bool(torch.isfinite(value).all()):
            report.notes.append(f"the loss is {value.item()}: gradients behind it are not finite either, as a rule")


def _leaf_loss(params: dict[str, torch.Tensor]) -> Finding:
    return make(
        "python-value",
        "error",
        "the loss is itself a leaf: backward() runs, but ends in loss.grad and reaches no parameter",
        params=_trainable(params),
        help="do not call requires_grad_(True) or torch.tensor(..., requires_grad=True) on a loss that lost its "
        "history; look for what lost it: detach(), .item(), numpy(), no_grad()",
    )


def _no_grad_arrived(
    report: Report, graph: GradGraph, params: dict[str, torch.Tensor], reached: list[str]
) -> Iterable[Finding]:
    """Reached by the graph, but `.grad` is None although backward ran."""
    empty = [n for n in params if n in set(reached) and report.params[n].status == "none"]
    if not empty:
        return
    custom = {at for at, fn in enumerate(graph.functions) if is_custom(fn)}
    passable = graph.below(graph.roots, walls=custom)
    stopped = [n for n in empty if graph.leaves[id(params[n])] not in passable]
    for group in by_module(stopped, params):
        above = graph.above(graph.leaves[id(params[n])] for n in group)
        names = Counter(graph.name(at).removesuffix("Backward") for at in sorted(above & custom))
        yield make(
            "function-none",
            "warning",
            f"{group_name(group)} got no gradient, although the loss's graph reaches it: "
            f"{', '.join(names)} may return None from its backward",
            params=group,
            node=next(iter(graph.name(at) for at in sorted(above & custom)), None),
            help="every input that should learn needs a gradient in the return of backward(), at its own position",
        )
    for group in by_module([n for n in empty if n not in set(stopped)], params):
        yield make(
            "unused-param",
            "warning",
            f"{group_name(group)} has no gradient after backward, although the loss's graph reaches it",
            params=group,
            help="was it cleared after backward (zero_grad), left out (backward(inputs=...), autograd.grad), or taken "
            "by a hook? Else its op sends no gradient back to it",
        )


def _non_leaf(params: dict[str, torch.Tensor], states: dict[str, ParamState], model: Any) -> list[Finding]:
    found = [n for n, p in params.items() if p.requires_grad and not p.is_leaf and states[n].status == "none"]
    if not found:
        return []
    made = {n: params[n].grad_fn.name() for n in found}  # type: ignore[union-attr]
    return [
        make(
            "non-leaf-param",
            "warning",
            f"{group_name(group)} is no leaf: {', '.join(dict.fromkeys(made[n] for n in group))} computed it, so no "
            ".grad is stored and an optimizer cannot move it",
            params=group,
            help="convert first, then wrap: nn.Parameter(w.to(device)); or optimize the tensor it was computed from",
        )
        for group in by_module(found, params)
    ]


def _nothing_ran(params: dict[str, torch.Tensor], model: Any) -> Finding:
    trainable = _trainable(params)
    if not trainable:
        return _no_history(torch.zeros(()), params, model)
    return make(
        "unused-param",
        "warning",
        f"no parameter has a gradient ({count(trainable)}): backward has not run, zero_grad() ran after it, or the "
        "loss's graph reaches none of them",
        params=trainable,
        help="call check_grad_flow(model) after loss.backward() and before zero_grad(); fxdoctor.diagnose(loss, model) "
        "tells what the loss reaches",
    )


def _trainable(params: dict[str, torch.Tensor]) -> list[str]:
    return [n for n, p in params.items() if p.requires_grad]


def _named(report: Report, status: str) -> list[str]:
    return [n for n, s in report.params.items() if s.status == status]


def _title(model: Any) -> str:
    return type(model).__name__ if isinstance(model, nn.Module) else "parameters"


def _finished(report: Report) -> Report:
    apply_suppressions(report.findings)
    report.findings = sort_findings(report.findings)
    for name, state in report.params.items():
        state.findings = [f for f in report.findings if name in f.params]
    report.notes = list(dict.fromkeys(report.notes))
    return report
