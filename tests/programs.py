"""Random small models, written out as real source files, whose true verdict is known by construction.

A `Builder` writes `forward` line by line and, beside it, the data-flow graph: which value is computed from which, and
which of these edges loses the gradient and why (a `Sever`). Every value has shape (3, 4), so any op may follow any
other. Ops are smooth and never give exact zeros, so that a parameter's gradient either flows or is None.
"""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import strategies as st

SINK = "loss"


@dataclass
class Sever:
    """A place that loses the gradient: its lines (marked `# Sn` in the source) and the rules that may explain it."""

    mark: str
    rules: frozenset[str]


@dataclass
class Program:
    """A finished model file and the truth about it."""

    source: str
    edges: list[tuple[str, str, str | None]]
    """(from, to, mark of the sever on this edge)."""
    severs: dict[str, Sever]
    exits: list[tuple[str, str]]
    """(value, mark): values that leave for Python."""
    frozen: set[str]
    params: dict[str, str]
    """Each parameter's name, and the mark of the line that creates it."""
    first_output_only: bool = False

    def lines(self, mark: str) -> set[int]:
        """The numbers, from 1, of the source lines that carry a mark."""
        return {i for i, line in enumerate(self.source.splitlines(), 1) if mark in line.partition("#")[2].split()}

    def reach(self, start: str, opened: set[str] | None = None) -> set[str]:
        """What depends on `start`, along live edges and severed edges whose mark is in `opened` (None: all of them)."""
        following: dict[str, list[str]] = {}
        for source, target, mark in self.edges:
            if mark is None or opened is None or mark in opened:
                following.setdefault(source, []).append(target)
        seen, stack = {start}, [start]
        while stack:
            for target in following.get(stack.pop(), ()):
                if target not in seen:
                    seen.add(target)
                    stack.append(target)
        return seen

    def restores(self, param: str, opened: set[str]) -> bool:
        """Whether the gradient comes back to `param` once the severs in `opened` are repaired."""
        return SINK in self.reach(param, opened)

    def starved(self) -> set[str]:
        return {p for p in self.params if p not in self.frozen and not self.restores(p, set())}

    def unused(self) -> set[str]:
        """Starved parameters from which no data path leads to the loss."""
        return {p for p in self.starved() if SINK not in self.reach(p)}

    def in_loss_only(self) -> Program:
        """The same program with the outputs that carry no gradient taken out of the loss, as the default loss does."""
        live = {v for p in self.params if p not in self.frozen for v in self.reach(p, set())}
        kept = [e for e in self.edges if e[1] != SINK or e[0] in live]
        return dataclasses.replace(self, edges=kept if any(e[1] == SINK for e in kept) else self.edges)

    def on_path(self, param: str, mark: str) -> bool:
        """Whether the sever lies on some data path from `param` to the loss."""
        reached = self.reach(param)
        return any(m == mark and s in reached and SINK in self.reach(t) for s, t, m in self.edges)

    def exit_marks(self, param: str) -> set[str]:
        """Marks of the lines where a value that depends on `param` leaves for Python, and of the severs before them."""
        reached = self.reach(param)
        found = {mark for value, mark in self.exits if value in reached}
        left = {value for value, _ in self.exits}
        return found | {m for s, t, m in self.edges if m is not None and s in reached and self.reach(t) & left}


@dataclass
class Builder:
    """Writes the model. `choose(n)` gives a number below n: hypothesis decides, so that failures shrink."""

    choose: Callable[[int], int]
    values: list[str] = field(default_factory=lambda: ["x"])
    init: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    top: list[str] = field(default_factory=list)
    edges: list[tuple[str, str, str | None]] = field(default_factory=list)
    severs: dict[str, Sever] = field(default_factory=dict)
    exits: list[tuple[str, str]] = field(default_factory=list)
    params: dict[str, str] = field(default_factory=dict)
    linears: list[str] = field(default_factory=list)
    frozen: set[str] = field(default_factory=set)
    count: int = 0

    # --- pieces -------------------------------------------------------------------------------------------------

    def name(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def pick(self) -> str:
        """An earlier value; the last one most often, so that programs have depth."""
        return self.values[-1] if self.choose(3) else self.values[self.choose(len(self.values))]

    def linear(self, width: int = 4) -> str:
        """A new linear layer."""
        layer = self.name("layer")
        self.init.append(f"self.{layer} = nn.Linear({width}, 4)  # {layer}")
        self.params |= {f"{layer}.weight": layer, f"{layer}.bias": layer}
        if width == 4:
            self.linears.append(layer)
        return layer

    def parameter(self, shape: str) -> str:
        name = self.name("weight")
        self.init.append(f"self.{name} = nn.Parameter(torch.randn({shape}))  # {name}")
        self.params[name] = name
        return name

    def sever(self, *rules: str) -> str:
        mark = self.name("S")
        self.severs[mark] = Sever(mark, frozenset(rules))
        return mark

    def value(self, *sources: str, severed: dict[str, str] | None = None) -> str:
        """A new value computed from `sources` (values, parameters, layers) and, without gradient, from `severed`."""
        result = self.name("h")
        for source in sources:
            self.edge(source, result, None)
        for source, mark in (severed or {}).items():
            self.edge(source, result, mark)
        self.values.append(result)
        return result

    def edge(self, source: str, target: str, mark: str | None) -> None:
        names = [p for p in self.params if p == source or p.startswith(source + ".")] or [source]
        self.edges += [(name, target, mark) for name in names]

    def leave(self, value: str, mark: str) -> None:
        self.exits.append((value, mark))

    # --- the end ------------------------------------------------------------------------------------------------

    def finish(self) -> Program:
        """Chooses the outputs, the unused and the frozen, and writes the file."""
        for _ in range(self.choose(3) // 2):
            self.linear()
        if self.linears and not self.choose(3):
            layer = self.linears[self.choose(len(self.linears))]
            self.init.append(f"self.{layer}.requires_grad_(False)")
            self.frozen |= {f"{layer}.weight", f"{layer}.bias"}
        first_only = self._outputs()
        used = [v for v in self.params if v not in self.frozen]
        if not used:
            self.linear()
        parts = [
            "import torch",
            "import torch.nn.functional as F",
            "from torch import nn",
            *("\n\n" + text for text in self.top),
            "\n\nclass Net(nn.Module):",
            "    def __init__(self):",
            "        super().__init__()",
            textwrap.indent("\n".join(self.init), " " * 8),
            "",
            "    def forward(self, x):",
            textwrap.indent("\n".join(self.body), " " * 8),
        ]
        return Program(
            "\n".join(parts) + "\n", self.edges, self.severs, self.exits, self.frozen, self.params, first_only
        )

    def _join_loose_ends(self) -> None:
        """Adds every value that nothing reads to the last one, so that few parameters are merely unused."""
        read = {source for source, _, _ in self.edges}
        loose = [v for v in self.values[1:-1] if v not in read]
        if loose:
            result = self.value(self.values[-1], *loose)
            self.body.append(f"{result} = {self.values[-2]} + {' + '.join(loose)}")

    def _outputs(self) -> bool:
        if self.choose(3):
            self._join_loose_ends()
        last = self.values[-1]
        if self.choose(2):
            layer = self.linear()
            last = self.value(last, layer)
            self.body.append(f"{last} = self.{layer}({self.values[-2]})")
        form = self.choose(4)
        second = self.values[self.choose(len(self.values))]
        first_only = form == 3
        self.edge(last, SINK, None)
        if form and not first_only and second != "x":
            self.edge(second, SINK, None)
        text = [last, f"({last}, {second})", f'{{"main": {last}, "more": [{second}]}}', f"({last}, {second})"][form]
        self.body.append(f"return {text}")
        return first_only


# --- live ops -----------------------------------------------------------------------------------------------------


def layer(b: Builder) -> None:
    u = b.pick()
    name = b.linears[b.choose(len(b.linears))] if b.linears and not b.choose(4) else b.linear()
    v = b.value(u, name)
    b.body.append(f"{v} = torch.tanh(self.{name}({u}))")


def scale(b: Builder) -> None:
    u, w = b.pick(), b.parameter("4")
    v = b.value(u, w)
    b.body.append(f"{v} = {u} * self.{w}")


def residual(b: Builder) -> None:
    u, w = b.pick(), b.pick()
    v = b.value(u, w)
    b.body.append(f"{v} = {u} + 0.5 * torch.tanh({w})")


def concatenation(b: Builder) -> None:
    u, w, name = b.pick(), b.pick(), b.linear(8)
    v = b.value(u, w, name)
    b.body.append(f"{v} = self.{name}(torch.cat([{u}, {w}], dim=-1))")


def gate(b: Builder) -> None:
    u, w, name = b.pick(), b.pick(), b.linear()
    v = b.value(u, w, name)
    b.body.append(f"{v} = {u} * torch.sigmoid(self.{name}({w}))")


def view(b: Builder) -> None:
    u = b.pick()
    v = b.value(u)
    forms = [
        f"{u}.reshape(2, 6).view(3, 4)",
        f"{u}.transpose(0, 1).contiguous().transpose(0, 1)",
        f"torch.cat({u}.chunk(2, dim=1), dim=1)",
        f"{u}.unsqueeze(1).expand(3, 2, 4).mean(1)",
        f"{u}[:, [3, 2, 1, 0]]",
    ]
    b.body.append(f"{v} = {forms[b.choose(len(forms))]}")


def harmless_write(b: Builder) -> None:
    """In-place, on a fresh tensor that backward does not need."""
    u, w, name = b.pick(), b.pick(), b.linear()
    form = b.choose(4)
    v = b.value(u, name, *([w] if form == 2 else []))
    b.body.append(f"{v} = self.{name}({u})")
    b.body.append([f"{v}.mul_(0.5)", f"{v}[:, 0] = 1.0", f"{v} += {w}", f"{v}[:, 1:3].add_(0.25)"][form])


def loop(b: Builder) -> None:
    u, w, name = b.pick(), b.pick(), b.linear()
    v = b.value(u, w, name)
    b.body += [f"{v} = {u}", "for _ in range(2):", f"    {v} = torch.tanh(self.{name}({v}) + {w})"]


def helper(b: Builder) -> None:
    u, w, f = b.pick(), b.pick(), b.name("mix")
    b.top.append(f'def {f}(a, b):\n    both = {{"a": torch.tanh(a), "b": b}}\n    return both["a"] + both["b"], b')
    v = b.value(u, w)
    b.body.append(f"{v}, _ = {f}({u}, {w})")


def block(b: Builder) -> None:
    """A nested module; half of them lose the gradient inside."""
    u, cls, name = b.pick(), b.name("Block"), b.name("block")
    mark = b.sever("detach") if b.choose(2) else None
    inner = f"h = self.inner(x).detach()  # {mark}" if mark else "h = F.softplus(self.inner(x))"
    b.top.append(
        f"class {cls}(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        f"        self.inner = nn.Linear(4, 4)  # {name}\n\n"
        f"    def forward(self, x):\n        {inner}\n        return h"
    )
    b.init.append(f"self.{name} = {cls}()  # {name}")
    b.params |= {f"{name}.inner.weight": name, f"{name}.inner.bias": name}
    v = b.value(severed={u: mark, name: mark}) if mark else b.value(u, name)
    b.body.append(f"{v} = self.{name}({u})")


def branch(b: Builder) -> None:
    """Control flow that asks a value; what it decides does not matter."""
    u, mark = b.pick(), b.name("B")
    v = b.value(u)
    b.leave(u, mark)
    b.body += [f"{v} = {u} * 1.5", f"if float({u}.mean()) > -1e9:  # {mark}", f"    {v} = {v} + 0.1"]


# --- severing ops -------------------------------------------------------------------------------------------------


def stop(b: Builder) -> None:
    u, mark = b.pick(), b.sever("detach")
    v = b.value(severed={u: mark})
    form = [f"{u}.detach()", f"{u}.data", f"({u} * 2.0).detach_()"][b.choose(3)]
    b.body.append(f"{v} = {form}  # {mark}")


def half_stop(b: Builder) -> None:
    """One branch live, the other severed."""
    u, w, mark = b.pick(), b.pick(), b.sever("detach")
    v = b.value(w, severed={u: mark})
    b.body.append(f"{v} = {w} + torch.sigmoid({u}.{['detach()', 'data'][b.choose(2)]})  # {mark}")


def no_grad(b: Builder) -> None:
    u, name, mark = b.pick(), b.linear(), b.sever("no-grad")
    switch = ["torch.no_grad()", "torch.set_grad_enabled(False)"][b.choose(2)]
    v = b.value(severed={u: mark, name: mark})
    b.body += [
        f"with {switch}:  # {mark}",
        f"    {v} = self.{name}({u})  # {mark}",
        f"    {v} = torch.tanh({v})  # {mark}",
    ]


def decorated(b: Builder) -> None:
    u, f, mark = b.pick(), b.name("frozen"), b.sever("no-grad")
    b.top.append(f"@torch.no_grad()  # {mark}\ndef {f}(a):  # {mark}\n    return torch.tanh(a) + 0.5  # {mark}")
    v = b.value(severed={u: mark})
    b.body.append(f"{v} = {f}({u})")


def stop_in_helper(b: Builder) -> None:
    """The same helper line severs at two calls."""
    u, w, f, mark = b.pick(), b.pick(), b.name("cut"), b.sever("detach")
    b.top.append(f"def {f}(a):\n    a = a * 0.5\n    return a.detach()  # {mark}")
    v = b.value(severed={u: mark, w: mark})
    b.body.append(f"{v} = {f}({u}) + {f}({w})")


def stop_in_loop(b: Builder) -> None:
    u, name, mark = b.pick(), b.linear(), b.sever("detach")
    v = b.value(severed={u: mark, name: mark})
    b.body += [f"{v} = {u}", "for _ in range(2):", f"    {v} = self.{name}({v}).detach()  # {mark}"]


def argmax(b: Builder) -> None:
    u, table, i = b.pick(), b.parameter("4, 4"), b.name("i")
    mark = b.sever("nondiff-op")
    v = b.value(table, severed={u: mark})
    b.body += [f"{i} = {u}.argmax(dim=-1)  # {mark}", f"{v} = self.{table}[{i}]"]


def rounded(b: Builder) -> None:
    u, table, i = b.pick(), b.parameter("4, 4"), b.name("i")
    mark = b.sever("int-cast", "nondiff-op")
    v = b.value(table, severed={u: mark})
    b.body += [f"{i} = ({u}.sum(-1).abs() * 3.0).round().long()  # {mark}", f"{v} = F.embedding({i} % 4, self.{table})"]


def mask(b: Builder) -> None:
    u, w, m = b.pick(), b.pick(), b.name("m")
    mark = b.sever("nondiff-op")
    v = b.value(w, severed={u: mark})
    b.body += [f"{m} = {u} > 0.0  # {mark}", f"{v} = torch.where({m}, {w}, {w} * 0.5)"]


def item(b: Builder) -> None:
    u, w, s = b.pick(), b.pick(), b.name("s")
    mark = b.sever("python-value")
    v = b.value(w, severed={u: mark})
    b.leave(u, mark)
    form = [f"{u}.mean().item()", f"float({u}.std())"][b.choose(2)]
    b.body += [f"{s} = {form}  # {mark}", f"{v} = {w} * ({s} + 2.0)"]


def rewrap(b: Builder) -> None:
    u, mark = b.pick(), b.sever("python-value")
    v = b.value(severed={u: mark})
    b.leave(u, mark)
    b.body.append(f"{v} = torch.tensor({u}.tolist())  # {mark}")


def numpy(b: Builder) -> None:
    u, a, mark = b.pick(), b.name("a"), b.sever("python-value")
    v = b.value(severed={u: mark})
    b.leave(u, mark)
    b.body += [f"{a} = {u}.detach().cpu().numpy()  # {mark}", f"{v} = torch.from_numpy({a} * 0.5)"]


LIVE = [layer, layer, scale, residual, concatenation, gate, view, harmless_write, loop, helper, block, branch]
SEVERING = [
    stop,
    half_stop,
    no_grad,
    decorated,
    stop_in_helper,
    stop_in_loop,
    argmax,
    rounded,
    mask,
    item,
    rewrap,
    numpy,
]


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Models of 2 to 9 ops, about a third of them severing."""
    builder = Builder(lambda n: draw(st.integers(0, n - 1)))
    layer(builder)
    for _ in range(draw(st.integers(1, 8))):
        kinds = SEVERING if draw(st.integers(0, 2)) == 2 else LIVE
        draw(st.sampled_from(kinds))(builder)
    return builder.finish()
