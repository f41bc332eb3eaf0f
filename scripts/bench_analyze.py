#!/usr/bin/env python3
"""What `fxdoctor.analyze(prove=False)` costs, as ratios to one eager forward + backward.

    python scripts/bench_analyze.py            # everything, some minutes
    python scripts/bench_analyze.py --quick    # fewer repeats, smaller loops, no other tools
    python scripts/bench_analyze.py --only time memory

How: time ratios come from one process with one thread, eager and analyze in turn, medians; `cpu` is the same ratio in
process time, which other jobs on the machine disturb less. Peak memory is how far the resident set rises during one
step, in a fresh process for each measurement (Linux: the kernel's high-water mark is reset after the model is built
and a toy model has been stepped, so that neither imports nor weights count; gradients count on both sides).
Exit status 1 when a target is missed.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from tabulate import tabulate
from torch import nn

TIME_TARGET, MEMORY_TARGET, NODE_TARGET, FLAT_TARGET = 2.0, 1.3, 60.0, 1.5
Setup = tuple[nn.Module, tuple[Any, ...], Callable[[Any], torch.Tensor]]


# --- models ---------------------------------------------------------------------------------------------------------


def _square(output: Any) -> torch.Tensor:
    return getattr(output, "logits", output).float().square().mean()


def _vision(name: str) -> Setup:
    import torchvision

    return torchvision.models.get_model(name, weights=None), (torch.randn(2, 3, 224, 224),), _square


def _llama(width: int = 512, layers: int = 8, length: int = 256) -> Setup:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=2000,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=8,
        num_key_value_heads=8,
        intermediate_size=4 * width,
        use_cache=False,
    )
    return LlamaForCausalLM(config), (torch.randint(0, 2000, (2, length)),), _square


class Unrolled(nn.Module):
    """About `nodes` torch calls on tiny tensors, in a Python loop: three a turn."""

    def __init__(self, nodes: int) -> None:
        super().__init__()
        self.turns = nodes // 3
        self.weight = nn.Parameter(torch.full((4,), 0.5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(self.turns):
            x = torch.tanh(x * self.weight) + 0.1
        return x


class Cell(nn.Module):
    """A hand-written LSTM cell over many steps: matrix products, chunks, gates."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.steps = steps
        self.inner, self.outer = nn.Linear(8, 32), nn.Linear(8, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h, c = torch.zeros_like(x), torch.zeros_like(x)
        for _ in range(self.steps):
            i, f, g, o = (self.inner(x) + self.outer(h)).chunk(4, dim=-1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        return h


BIG: dict[str, Callable[[], Setup]] = {
    "resnet50": lambda: _vision("resnet50"),
    "vit_b_16": lambda: _vision("vit_b_16"),
    "convnext_tiny": lambda: _vision("convnext_tiny"),
    "llama 8x512": _llama,
}
SMALL: dict[str, Callable[[], Setup]] = {
    "unrolled 3000": lambda: (Unrolled(3000), (torch.randn(4),), _square),
    "lstm cell x200": lambda: (Cell(200), (torch.randn(2, 8),), _square),
    "llama 8x32": lambda: _llama(width=32, length=8),
    "mlp x50": lambda: (
        nn.Sequential(*[nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(50)]),
        (torch.randn(2, 4),),
        _square,
    ),
}


def setup(make: Callable[[], Setup]) -> Setup:
    torch.manual_seed(0)
    return make()


def eager(made: Setup) -> None:
    model, args, loss = made
    model.zero_grad(set_to_none=True)
    loss(model(*args)).backward()


def doctor(made: Setup) -> Any:
    import fxdoctor

    model, args, loss = made
    return fxdoctor.analyze(model, args, loss=loss, prove=False)


# --- time -----------------------------------------------------------------------------------------------------------


def clocked(step: Callable[[], Any]) -> tuple[float, float]:
    """(wall seconds, process seconds) of one call; garbage is collected before, not during."""
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    step()
    return time.perf_counter() - wall, time.process_time() - cpu


def interleaved(steps: dict[str, Callable[[], Any]], repeats: int) -> dict[str, tuple[float, float]]:
    """Median (wall, cpu) seconds of each step, run in turn after one warm-up each."""
    for step in steps.values():
        step()
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in steps}
    for _ in range(repeats):
        for name, step in steps.items():
            taken[name].append(clocked(step))
    return {n: (statistics.median(w for w, _ in t), statistics.median(c for _, c in t)) for n, t in taken.items()}


def bench_time(options: argparse.Namespace) -> bool:
    rows, good = [], True
    for name, make in BIG.items():
        made = setup(make)
        took = interleaved({"eager": lambda m=made: eager(m), "analyze": lambda m=made: doctor(m)}, options.repeats)
        (wall, cpu), (wall_a, cpu_a) = took["eager"], took["analyze"]
        ratio, cpu_ratio = wall_a / wall, cpu_a / cpu
        good &= min(ratio, cpu_ratio) <= TIME_TARGET
        rows.append(
            [name, doctor(made).node_count, wall, wall_a, ratio, cpu_ratio, told(min(ratio, cpu_ratio), TIME_TARGET)]
        )
    headers = ["model", "nodes", "eager s", "analyze s", "ratio", "cpu ratio", f"target {TIME_TARGET}"]
    print(tabulate(rows, headers, floatfmt=".2f"), end="\n\n", flush=True)
    return good


def bench_nodes(options: argparse.Namespace) -> bool:
    """Microseconds a node beyond eager, on tensors so small that only overhead counts."""
    rows, good = [], True
    for name, make in SMALL.items():
        made = setup(make)
        took = interleaved({"eager": lambda m=made: eager(m), "analyze": lambda m=made: doctor(m)}, options.repeats)
        nodes = doctor(made).node_count
        wall, cpu = (1e6 * (a - e) / nodes for a, e in zip(took["analyze"], took["eager"], strict=True))
        good &= min(wall, cpu) <= NODE_TARGET
        rows.append(
            [
                name,
                nodes,
                took["eager"][0] * 1e3,
                took["analyze"][0] * 1e3,
                wall,
                cpu,
                told(min(wall, cpu), NODE_TARGET),
            ]
        )
    headers = ["model", "nodes", "eager ms", "analyze ms", "us/node beyond", "cpu us/node", f"target {NODE_TARGET}"]
    print(tabulate(rows, headers, floatfmt=".1f"), end="\n\n", flush=True)
    return good


def bench_linear(options: argparse.Namespace) -> bool:
    """Time per node from 1,000 to 100,000 nodes: the largest must not cost much more than the smallest."""
    sizes = [1_000, 3_000, 10_000] if options.quick else [1_000, 3_000, 10_000, 30_000, 100_000]
    rows = []
    for size in sizes:
        made = setup(lambda n=size: (Unrolled(n), (torch.randn(4),), _square))
        repeats = options.repeats if size < 30_000 else 1
        took = interleaved({"eager": lambda m=made: eager(m), "analyze": lambda m=made: doctor(m)}, repeats)
        (wall, _), (wall_a, cpu_a) = took["eager"], took["analyze"]
        rows.append([size, wall, wall_a, 1e6 * wall / size, 1e6 * wall_a / size, 1e6 * cpu_a / size])
    growth = rows[-1][5] / rows[0][5]
    headers = ["nodes", "eager s", "analyze s", "eager us/node", "analyze us/node", "cpu us/node"]
    print(tabulate(rows, headers, floatfmt=".2f"))
    print(
        f"cpu time per node grows {growth:.2f} times: {told(growth, FLAT_TARGET)} (target {FLAT_TARGET})\n", flush=True
    )
    return bool(growth <= FLAT_TARGET)


def told(value: float, target: float) -> str:
    return "ok" if value <= target else "MISSED"


# --- memory ---------------------------------------------------------------------------------------------------------


def peak_of_one_step(name: str, what: str) -> float:
    """In this process: MiB by which the resident set rises above its level after building, during one step."""
    torch.set_num_threads(1)
    step = eager if what == "eager" else doctor
    step((nn.Linear(2, 2), (torch.randn(2, 2),), _square))
    made = setup(BIG[name])
    gc.collect()
    reset_peak()
    before = resident()
    step(made)
    return (peak() - before) / 1024


def resident() -> float:
    """KiB resident now."""
    return _status("VmRSS") or float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def peak() -> float:
    return _status("VmHWM") or float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def _status(field: str) -> float | None:
    path = Path("/proc/self/status")
    if not path.exists():
        return None
    return next((float(line.split()[1]) for line in path.read_text().splitlines() if line.startswith(field)), None)


def reset_peak() -> None:
    """Resets the kernel's high-water mark; where that is not possible the peak since the start counts on both sides."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def bench_memory(options: argparse.Namespace) -> bool:
    rows, good = [], True
    for name in BIG:
        found = {}
        for what in ("eager", "analyze"):
            runs = [_measured(name, what) for _ in range(1 if options.quick else 3)]
            found[what] = statistics.median(runs)
        ratio = found["analyze"] / found["eager"]
        good &= ratio <= MEMORY_TARGET
        rows.append([name, found["eager"], found["analyze"], ratio, told(ratio, MEMORY_TARGET)])
    headers = ["model", "eager peak MiB", "analyze peak MiB", "ratio", f"target {MEMORY_TARGET}"]
    print(tabulate(rows, headers, floatfmt=(".0f", ".0f", ".0f", ".2f")), end="\n\n", flush=True)
    return good


def _measured(name: str, what: str) -> float:
    command = [sys.executable, __file__, "--child", name, what]
    return float(
        json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
    )


# --- other tools ----------------------------------------------------------------------------------------------------


def bench_others(options: argparse.Namespace) -> bool:
    """torchlens's full trace and `torch._dynamo.explain`; they see the forward only and give no verdict."""
    rows = []
    for name in ("resnet50", "llama 8x512"):
        made = setup(BIG[name])
        base = interleaved({"eager": lambda m=made: eager(m), "analyze": lambda m=made: doctor(m)}, options.repeats)
        forward = clocked(lambda m=made: m[0](*m[1]))[0]
        seconds = {"eager forward": forward, "eager step": base["eager"][0], "fxdoctor.analyze": base["analyze"][0]}
        seconds |= _others(made)
        rows += [[name, tool, s, s / seconds["eager step"], s / forward] for tool, s in seconds.items()]
    print(
        tabulate(rows, ["model", "tool", "s", "x eager step", "x eager forward"], floatfmt=".2f"),
        end="\n\n",
        flush=True,
    )
    return True


def _others(made: Setup) -> dict[str, float]:
    model, args, _ = made
    found = {}
    tool = _torchlens()
    if tool is None:
        print("torchlens is not installed (pip install torchlens): skipped")
    else:
        try:
            found["torchlens full trace"] = clocked(lambda: tool(model, args))[0]
        except Exception as error:
            print(f"torchlens raised {type(error).__name__}: {str(error).splitlines()[0]}")
    torch._dynamo.reset()
    try:
        found["torch._dynamo.explain"] = clocked(lambda: torch._dynamo.explain(model)(*args))[0]
    except Exception as error:
        print(f"torch._dynamo.explain raised {type(error).__name__}: {str(error).splitlines()[0]}")
    return found


def _torchlens() -> Callable[[nn.Module, tuple[Any, ...]], Any] | None:
    try:
        import torchlens
    except ImportError:
        return None
    trace = torchlens.trace if hasattr(torchlens, "trace") else torchlens.log_forward_pass
    return lambda model, args: trace(model, args)


BENCHES = {
    "time": bench_time,
    "nodes": bench_nodes,
    "linear": bench_linear,
    "memory": bench_memory,
    "others": bench_others,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer repeats, loops up to 10,000 nodes, no other tools")
    parser.add_argument("--only", nargs="+", choices=list(BENCHES), help="some of the parts")
    parser.add_argument("--repeats", type=int, help="runs of each step (default 7, quick 3)")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(peak_of_one_step(*options.child)))
        return 0
    options.repeats = options.repeats or (3 if options.quick else 7)
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, one thread, medians of {options.repeats} interleaved runs\n")
    chosen = options.only or [n for n in BENCHES if not (options.quick and n == "others")]
    results = [BENCHES[name](options) for name in chosen]
    return int(not all(results))


if __name__ == "__main__":
    sys.exit(main())
