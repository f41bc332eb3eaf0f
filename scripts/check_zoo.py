#!/usr/bin/env python3
"""Runs `fxdoctor.analyze` on real architectures and holds every parameter's status against plain eager autograd.

    python scripts/check_zoo.py                      # all, train and eval mode
    python scripts/check_zoo.py 'timm:*' --mode train --no-prove
    python scripts/check_zoo.py --eager 'llama*'     # plain PyTorch only: which parameters get none, zero, NaN

One forked process per model and mode, so that one crash costs one row. Exit status 1 when a status differs, a gradient
norm differs, or something crashes. Loud findings are printed with their line: on these models each must be a true fact.
"""

from __future__ import annotations

import argparse
import collections
import json
import math
import multiprocessing
import resource
import sys
import time
import traceback
from typing import Any

import torch
import zoo_models
from tabulate import tabulate
from torch.utils import _pytree as pytree


def default_loss(output: Any) -> torch.Tensor | None:
    """As `analyze` documents it: the output's own loss, else each differentiable output dotted with fixed weights."""
    own = getattr(output, "loss", None)
    if isinstance(own, torch.Tensor):
        return own
    parts = []
    for t in pytree.tree_leaves(output):
        if isinstance(t, torch.Tensor) and t.requires_grad:
            weights = torch.randn(t.shape, generator=torch.Generator().manual_seed(0))
            parts.append((t * weights.to(t.dtype)).sum())
    return sum(parts[1:], parts[0]) if parts else None


def state(p: torch.nn.Parameter) -> tuple[str, float | None]:
    """Status and norm of one parameter after backward, from `.grad` alone."""
    if not p.requires_grad:
        return "frozen", None
    if p.grad is None:
        return "none", None
    grad = p.grad.to_dense() if p.grad.is_sparse else p.grad
    if not bool(torch.isfinite(grad).all()):
        return "nan", math.nan
    return ("flows" if bool((grad != 0).any()) else "zero"), float(grad.norm())


def eager(name: str, train: bool) -> tuple[dict[str, tuple[str, float | None]], float]:
    """Every parameter's state after one plain step, and the step's seconds."""
    example = zoo_models.build(name, train)
    start = time.perf_counter()
    output = example.model(*example.args, **example.kwargs)
    loss = example.loss(output) if example.loss else default_loss(output)
    if loss is not None and loss.requires_grad:
        loss.backward()
    seconds = time.perf_counter() - start
    return {n: state(p) for n, p in example.model.named_parameters()}, seconds


def examine(name: str, train: bool, options: argparse.Namespace) -> dict[str, Any]:
    """One row of the table, JSON-ready."""
    truth, eager_seconds = eager(name, train)
    row: dict[str, Any] = {
        "model": name,
        "mode": "train" if train else "eval",
        "params": len(truth),
        "eager": dict(collections.Counter(s for s, _ in truth.values())),
        "eager_seconds": eager_seconds,
        "dead": {n: s for n, (s, _) in truth.items() if s in ("none", "zero", "nan")},
        "differences": [],
        "findings": [],
        "notes": [],
    }
    if not options.eager:
        import fxdoctor

        example = zoo_models.build(name, train)
        start = time.perf_counter()
        report = fxdoctor.analyze(
            example.model, (example.args, example.kwargs), loss=example.loss, prove=not options.no_prove
        )
        row["seconds"] = time.perf_counter() - start
        row["error"] = report.error
        row["nodes"] = report.node_count
        row["differences"] = differences(truth, report)
        row["findings"] = [described(f) for f in report.findings if f.severity != "info"]
        row["infos"] = dict(collections.Counter(f.rule for f in report.findings if f.severity == "info"))
        row["notes"] = list(report.notes)
    row["peak_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return row


def differences(truth: dict[str, tuple[str, float | None]], report: Any) -> list[str]:
    found = [f"{n}: eager has it, the report does not" for n in truth.keys() - report.params.keys()]
    found += [f"{n}: only in the report" for n in report.params.keys() - truth.keys()]
    for name in truth.keys() & report.params.keys():
        (status, norm), told = truth[name], report.params[name]
        if status != told.status:
            found.append(f"{name}: eager {status}, analyze {told.status}")
        elif status == "flows" and not math.isclose(norm or 0.0, told.norm or 0.0, rel_tol=1e-3, abs_tol=1e-12):
            found.append(f"{name}: eager norm {norm:.6g}, analyze {told.norm:.6g}")
    if report.error:
        found.append(f"eager runs, analyze says {report.error}")
    return sorted(found)


def described(finding: Any) -> dict[str, Any]:
    place = finding.location
    return {
        "rule": finding.rule,
        "severity": finding.severity,
        "line": f"{place.file}:{place.line}" if place else None,
        "source": place.source.strip() if place else "",
        "message": finding.message,
        "params": finding.params,
        "proof": finding.proof,
    }


def _child(pipe: Any, name: str, train: bool, options: argparse.Namespace) -> None:
    try:
        pipe.send(examine(name, train, options))
    except BaseException:
        pipe.send({"model": name, "mode": "train" if train else "eval", "crash": traceback.format_exc(limit=-6)})


def isolated(name: str, train: bool, options: argparse.Namespace) -> dict[str, Any]:
    """`examine` in a forked process, killed after the time limit."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(theirs, name, train, options))
    process.start()
    theirs.close()
    crash = None
    try:
        if ours.poll(options.timeout):
            row: dict[str, Any] = ours.recv()
            return row
        crash = f"no answer within {options.timeout} s"
    except EOFError:
        process.join()
        crash = f"the process died with status {process.exitcode}"
    finally:
        if process.is_alive() and crash:
            process.kill()
        process.join()
    return {"model": name, "mode": "train" if train else "eval", "crash": crash}


def show(row: dict[str, Any], verbose: bool) -> None:
    """The details of one row: crash, differences, findings, notes."""
    if "crash" in row:
        print(f"  CRASH {row['crash']}", flush=True)
        return
    for text in row["differences"][:20]:
        print(f"  DIFFERS {text}")
    for f in row["findings"]:
        what = f"{f['severity']} {f['rule']} {f['line']} `{f['source']}` {f['message']}"
        print(f"  {what} ({len(f['params'])} parameters, proof {f['proof']})")
    if verbose or "seconds" not in row:
        for status in ("none", "zero", "nan"):
            names = [n for n, s in row["dead"].items() if s == status]
            if names:
                rest = f" and {len(names) - 12} more" if len(names) > 12 else ""
                print(f"  {status} {len(names)}: {', '.join(names[:12])}{rest}")
    for note in row["notes"]:
        print(f"  note: {note}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pattern", nargs="*", default=["*"], help="shell patterns on library:name or name")
    parser.add_argument("--mode", choices=["train", "eval", "both"], default="both")
    parser.add_argument("--no-prove", action="store_true", help="analyze(prove=False)")
    parser.add_argument("--eager", action="store_true", help="plain PyTorch only, no analyze")
    parser.add_argument("--json", metavar="PATH", help="also write all rows")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds per model and mode")
    parser.add_argument("-v", "--verbose", action="store_true", help="also name the parameters without a gradient")
    options = parser.parse_args()
    torch.set_num_threads(1)
    names = list(dict.fromkeys(n for p in options.pattern for n in zoo_models.entries(p)))
    if not names:
        print(f"no model matches {' '.join(options.pattern)}; the names are in scripts/zoo_models.py", file=sys.stderr)
        return 2
    warm_up(names, options)
    modes = {"train": [True], "eval": [False], "both": [True, False]}[options.mode]
    rows = []
    for name in names:
        for train in modes:
            rows.append(isolated(name, train, options))
            print(f"{name} {rows[-1]['mode']}", flush=True)
            show(rows[-1], options.verbose)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)
    summary(rows)
    return int(any("crash" in r or r["differences"] for r in rows))


def warm_up(names: list[str], options: argparse.Namespace) -> None:
    """Imports in the parent what every child needs, so that forks share it."""
    for library in {n.split(":")[0] for n in names}:
        __import__(library)
    if not options.eager:
        __import__("fxdoctor")


def summary(rows: list[dict[str, Any]]) -> None:
    headers = ["model", "mode", "params", "statuses", "loud", "infos", "notes", "nodes", "s", "eager s", "peak MiB"]
    table = []
    for r in rows:
        if "crash" in r:
            table.append([r["model"], r["mode"], "", "CRASH"])
            continue
        statuses = " ".join(f"{k}:{v}" for k, v in sorted(r["eager"].items()))
        statuses += " DIFFERS" if r["differences"] else ""
        infos = " ".join(f"{k}:{v}" for k, v in r.get("infos", {}).items())
        figures = [f"{r['seconds']:.2f}" if "seconds" in r else "", f"{r['eager_seconds']:.2f}", r["peak_mib"]]
        table.append(
            [
                r["model"],
                r["mode"],
                r["params"],
                statuses,
                len(r["findings"]),
                infos,
                len(r["notes"]),
                r.get("nodes", ""),
                *figures,
            ]
        )
    print(tabulate(table, headers))
    bad = sum("crash" in r or bool(r["differences"]) for r in rows)
    loud = sum(bool(r.get("findings")) for r in rows)
    models = len({r["model"] for r in rows})
    print(f"{models} models, {len(rows)} runs: {bad} differ or crash, {loud} with a loud finding")


if __name__ == "__main__":
    sys.exit(main())
