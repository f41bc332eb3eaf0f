"""`fxdoctor.analyze`: run one step, read the facts, ask the rules, prove."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import nn

from . import culprits, hazards
from .capture.guard import Guard
from .capture.located import captured_subject
from .capture.trace import Subject, trace
from .falsified import falsified_writes, hidden_hooks
from .flow import explain_starved
from .prove import Prover
from .redraw import Draws, healed, revived
from .report.model import Finding, Report, sort_findings
from .report.suppress import apply_suppressions
from .rules import all_rules
from .rules.context import Diagnosis

CAPTURES = ("record", "symbolic", "dynamo")


def analyze(
    model: nn.Module | Callable[..., Any],
    example_inputs: Any = (),
    *,
    kwargs: Mapping[str, Any] | None = None,
    loss: Callable[[Any], torch.Tensor] | None = None,
    capture: str = "record",
    prove: bool = True,
    rules: Iterable[str] | None = None,
    ignore: Iterable[str] = (),
    device: str | torch.device | None = None,
    params: Mapping[str, torch.Tensor] | None = None,
) -> Report:
    """Runs one training step of `model` and says which parameters do not learn, which line does it, and why.

    Args:
        model: an `nn.Module`, or a callable with `params={name: tensor}`.
        example_inputs: a tensor, a tuple or list of arguments, a dict of keyword arguments, or `(args, kwargs)`.
        kwargs: more keyword arguments for the model.
        loss: `loss(output)` gives a scalar tensor. Default: `output.loss` if there is one, else every differentiable
            output dotted with fixed standard-normal weights, summed.
        capture: "record" (what one eager run did), "symbolic" or "dynamo".
        prove: re-run the graph with each suspect repaired.
        rules: only these rules (slugs); `ignore`: all but these.
        device: run there, on a copy of the model and inputs; default: where they are.

    The model, its gradients, buffers, hooks, RNG states and the inputs are left as they were.

    Raises:
        TypeError, ValueError: the arguments make no sense (the message says which, and what to pass). What the model
            itself raises is not raised but explained in the report.
    """
    args, keywords = split_inputs(example_inputs, kwargs)
    chosen = _chosen_rules(rules, ignore)
    if capture not in CAPTURES:
        raise ValueError(f"capture={capture!r} is unknown; choose one of {', '.join(CAPTURES)}")
    subject = _subject(model, args, keywords, loss, params, device)
    report = Report(
        title=type(model).__name__ if isinstance(model, nn.Module) else getattr(model, "__name__", "callable")
    )
    guard = Guard(subject.module, subject.named)
    try:
        if capture != "record":
            subject, notes = captured_subject(subject, guard, capture)
            report.notes.extend(notes)
        diagnosis = _examine(subject, guard, report, prove)
    finally:
        guard.finish()
    _report(report, diagnosis, chosen, guard)
    return report


def _examine(subject: Subject, guard: Guard, report: Report, prove: bool) -> Diagnosis:
    run = trace(subject, guard)
    dead = {n for n, s in run.states.items() if s.status in ("none", "zero", "nan")}
    odd_loss = run.loss_value is not None and not abs(run.loss_value) < float("inf")
    poisoned = odd_loss or any(run.states[n].status == "nan" for n in dead)
    zeroed = any(run.states[n].status == "zero" for n in dead)
    if poisoned or (zeroed and culprits.quick_zeros(run) is None):
        run = trace(subject, guard, values=True)
    d = Diagnosis(run)
    prover = Prover(run, guard)
    starved = [n for n in subject.params if n in dead and run.states[n].status == "none" and subject.params[n].is_leaf]
    if run.error is None:
        d.starved = prover.starved(starved) if prove else explain_starved(run, starved, set())
        d.zeros, d.nans = culprits.find(run, "zero"), culprits.find(run, "nan")
        d.explained = culprits.explain_zeros(run, d.zeros)
        d.non_finite = culprits.first_non_finite(run) if odd_loss else None
        unhealed = {p for z in d.explained if not z.heals for p in z.params}
        ask = set(starved) | unhealed
        if run.empty and run.loss_node is not None:
            report.notes.append(
                "the model's outputs have no elements on these inputs (nothing was detected or selected), so zero "
                "gradients say nothing; pass other inputs, or a loss"
            )
            d.revived = ask
        elif ask and prove:
            _redraw(d, revived(subject, guard, ask), ask, report, guard)
        d.falsified = falsified_writes(run, prover) if prove else []
        d.hidden_hooks = hidden_hooks(run, prover) if prove else []
    if prove:
        _prove(d, prover)
    report.notes.extend(dict.fromkeys(prover.notes))
    return d


def _redraw(d: Diagnosis, draws: Draws, asked: set[str], report: Report, guard: Guard) -> None:
    d.revived, d.redrawn = draws.revived, draws.ran
    stuck = {n for n in asked - draws.revived if d.trace.states[n].status == "zero"}
    if stuck:
        d.healed = healed(d.trace.subject, guard, stuck)
    if not draws.ran:
        report.notes.append(
            "the model raises on other draws of these inputs, so what depends on the inputs is not known"
        )
    if draws.train_mode_raised and d.trace.weighted:
        report.notes.append(
            "the model is in eval mode and needs other inputs to train: parameters without a gradient here may learn "
            "there; analyze it in training mode, with targets"
        )
        d.revived = d.revived | asked


def _prove(d: Diagnosis, prover: Prover) -> None:
    if d.nans and d.non_finite is None:
        for node, (proof, evidence) in prover.nan(d.nans).items():
            d.nan_proofs[node], d.nan_evidence[node] = proof, evidence
    for zero in d.explained:
        if not zero.heals and d.still_dead(zero.params):
            d.zero_proofs[zero.node], d.zero_evidence[zero.node] = prover.zero(zero)
    entries = hazards.overwrites(d.trace)
    if entries:
        proof, evidence = prover.overwrites(entries)
        for entry in entries:
            d.write_proofs[entry.writer], d.write_evidence[entry.writer] = proof, evidence


def _report(report: Report, d: Diagnosis, chosen: list[str], guard: Guard) -> None:
    run = d.trace
    registry = all_rules()
    findings: list[Finding] = []
    for slug in chosen:
        findings.extend(registry[slug].check(d))
    apply_suppressions(findings)
    report.findings = sort_findings(findings)
    report.params = run.states
    for name, state in report.params.items():
        state.module = name.rpartition(".")[0]
        state.findings = [f for f in report.findings if name in f.params]
    report.node_count = sum(n.op.startswith("call") for n in run.recorder.graph.nodes)
    if run.error is not None:
        report.error = f"{type(run.error).__name__}: {run.error}"
    report.attach(run)
    report.notes.extend(run.recorder.notes)
    for node in run.nodes:
        from .facts import facts

        if facts(node).replayable not in (None, "it raised"):
            report.notes.append(f"{node.name} ({facts(node).op}) cannot be run again: {facts(node).replayable}")
    if guard.missed:
        names = ", ".join(guard.missed[:5])
        report.notes.append(f"{names}: written in a way that could not be foreseen; its values were not put back")


def split_inputs(example_inputs: Any, kwargs: Mapping[str, Any] | None) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """(args, kwargs) from what a caller may pass as example inputs."""
    more = dict(kwargs or {})
    if isinstance(example_inputs, dict):
        return (), {**example_inputs, **more}
    if isinstance(example_inputs, tuple) and len(example_inputs) == 2:
        first, second = example_inputs
        if isinstance(first, (tuple, list)) and isinstance(second, dict) and all(isinstance(k, str) for k in second):
            return tuple(first), {**second, **more}
    if isinstance(example_inputs, (tuple, list)):
        return tuple(example_inputs), more
    return (example_inputs,), more


def _chosen_rules(rules: Iterable[str] | None, ignore: Iterable[str]) -> list[str]:
    known = all_rules()
    by_code = {r.code: slug for slug, r in known.items()}

    def resolve(names: Iterable[str], argument: str) -> list[str]:
        names = [names] if isinstance(names, str) else list(names)
        wrong = [n for n in names if n not in known and n not in by_code]
        if wrong:
            raise ValueError(f"{argument}: unknown rule {', '.join(wrong)}; `fxdoctor rules` lists the known ones")
        return [by_code.get(n, n) for n in names]

    wanted = resolve(rules, "rules") if rules is not None else list(known)
    dropped = set(resolve(ignore, "ignore"))
    return [r for r in wanted if r not in dropped]


def _subject(
    model: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    loss: Any,
    params: Mapping[str, torch.Tensor] | None,
    device: str | torch.device | None,
) -> Subject:
    if isinstance(model, type) and issubclass(model, nn.Module):
        raise TypeError(f"model is the class {model.__name__}, not a module; pass an instance: {model.__name__}(...)")
    if not callable(model):
        raise TypeError(
            f"model is {type(model).__name__}; pass an nn.Module, or a callable with params={{name: tensor}}"
        )
    if loss is not None and not callable(loss):
        raise TypeError(
            f"loss is {type(loss).__name__}; pass a function of the model's output that returns a scalar tensor"
        )
    if isinstance(model, nn.Module):
        lazy = [n for n, p in model.named_parameters() if nn.parameter.is_lazy(p)]
        if lazy:
            raise ValueError(f"{lazy[0]} is not initialised (a lazy module); call the model once before analyze")
        if device is not None:
            model, args, kwargs = _moved(model, args, kwargs, torch.device(device))
        own = dict(model.named_parameters())
        named = {**own, **dict(model.named_buffers())}
    else:
        if params is None:
            raise TypeError("model is a plain callable; pass its parameters too: params={name: tensor}")
        wrong = [n for n, p in params.items() if not isinstance(p, torch.Tensor)]
        if wrong:
            raise TypeError(f"params[{wrong[0]!r}] is {type(params[wrong[0]]).__name__}, not a tensor")
        own = named = dict(params)
    wanted = {n: p.requires_grad for n, p in own.items()}
    return Subject(model, args, kwargs, loss, named, own, wanted)


def _moved(model: nn.Module, args: Any, kwargs: Any, device: torch.device) -> tuple[nn.Module, Any, Any]:
    import copy

    from torch.utils import _pytree as pytree

    def move(t: Any) -> Any:
        return t.to(device) if isinstance(t, torch.Tensor) else t

    return copy.deepcopy(model).to(device), pytree.tree_map(move, args), pytree.tree_map(move, kwargs)
