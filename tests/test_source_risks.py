"""The source reader finds each dangerous form where Python says it is, and leaves plain Python alone.

What a form does to a gradient is held against plain PyTorch in `test_forms_do_what_the_table_says`.
"""

from __future__ import annotations

import functools
import pathlib
import textwrap
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from fxdoctor.source_risks import FORMS, scan_source, table


def scan_text(tmp_path: pathlib.Path, body: str) -> list[tuple[str, str, str]]:
    """(rule, text under the caret, form's key) of each finding in a function `f(x, y, m)` with this body."""
    file = tmp_path / "program.py"
    head = "import math\nimport numpy as np\nimport torch\nfrom torch import nn\nimport torch.nn.functional as F\n\n"
    file.write_text(f"{head}def f(x, y, m, p):\n{textwrap.indent(textwrap.dedent(body), '    ')}\n")
    found = []
    for finding in scan_source(file):
        place = finding.location
        assert place is not None and place.file == str(file) and place.column is not None and finding.severity == "info"
        key = next(k for k, form in FORMS.items() if finding.message.startswith(f"{form.form}: "))
        assert finding.help == f"write instead: {FORMS[key].twin}"
        found.append((finding.rule, place.source[place.column : place.end_column], key))
    return found


DANGEROUS = [
    ("x += y", "x += y", "augmented"),
    ("x.weight *= y", "x.weight *= y", "augmented"),
    ("x[0] += y", "x[0] += y", "augmented"),
    ("outs = []\nouts[0] += y", "outs[0] += y", "augmented"),
    ("x[m > 0] = y", "x[m > 0] = y", "setitem"),
    ("x[:, 0], y = y, x", "x[:, 0], y = y, x", "setitem"),
    ("z = x.add_(y)", "x.add_(y)", "method"),
    ("torch.relu_(x)", "torch.relu_(x)", "method"),
    ("(x + y).clamp_(0)", "(x + y).clamp_(0)", "method"),
    ("z = F.relu(x, inplace=True)", "F.relu(x, inplace=True)", "inplace"),
    ("torch.add(x, y, out=p)", "torch.add(x, y, out=p)", "out"),
    ("z = x.data", "x.data", "data"),
    ("x.data = y", "x.data = y", "data-write"),
    ("x.data.mul_(2)", "x.data.mul_(2)", "data-write"),
    ("x.data[0] = 1", "x.data[0] = 1", "data-write"),
    ("x.data -= y", "x.data -= y", "data-write"),
    ("z = x.detach() * y", "x.detach()", "detach"),
    ("x.detach_()", "x.detach_()", "detach"),
    ("x.detach()[0] = 1", "x.detach()[0] = 1", "detach-write"),
    ("x.detach().zero_()", "x.detach().zero_()", "detach-write"),
    ("z = x.item()", "x.item()", "item"),
    ("z = x.sum().tolist()", "x.sum().tolist()", "item"),
    ("z = x.cpu().numpy()", "x.cpu().numpy()", "item"),
    ("z = float(x)", "float(x)", "float"),
    ("z = int(x.sum())", "int(x.sum())", "float"),
    ("z = torch.tensor(x)", "torch.tensor(x)", "tensor"),
    ("z = torch.tensor([x, 1.0])", "torch.tensor([x, 1.0])", "tensor"),
    ("z = torch.from_numpy(p)", "torch.from_numpy(p)", "tensor"),
    ("with torch.no_grad():\n    z = x * y", "torch.no_grad()", "no-grad"),
    ("with torch.set_grad_enabled(False):\n    z = x", "torch.set_grad_enabled(False)", "no-grad"),
    ("@torch.inference_mode()\ndef g(): return x", "torch.inference_mode()", "no-grad"),
    ("@torch.no_grad\ndef g(): return x", "torch.no_grad", "no-grad"),
    ("p.requires_grad = False", "p.requires_grad = False", "freeze"),
    ("m.requires_grad_(False)", "m.requires_grad_(False)", "freeze"),
    ("z = x.argmax(1)", "x.argmax(1)", "index"),
    ("z = torch.argsort(x)", "torch.argsort(x)", "index"),
    ("z = x.long()", "x.long()", "cast"),
    ("z = torch.round(x)", "torch.round(x)", "round"),
    ("z = x.floor()", "x.floor()", "round"),
]
HARMLESS = [
    "i = 0\ni += 1",
    "for i in range(3):\n    i += 1",
    "for i, v in enumerate(x):\n    i += 1",
    "total = 0.0\ntotal += x.sum()",
    "outs = []\nouts += [x]",
    "d = {}\nd['a'] = x\nd[0] = y",
    "counts = {}\ncounts[m] += 1",
    "s = ''\ns += 'x'",
    "x = x + y",
    "super().add_(x)",
    "self = m\nself.update_(x)",
    "nn.init.kaiming_uniform_(p)",
    "nn.utils.clip_grad_norm_(p, 1.0)",
    "x.__add__(y)",
    "p.requires_grad = True",
    "p.requires_grad_()",
    "z = nn.ReLU(inplace=False)",
    "z = np.round(p)",
    "z = math.floor(3.5)",
    "z = round(3.5)",
    "z = torch.tensor([1, 2.5])",
    "z = torch.tensor(3)",
    "n = 4\nz = torch.tensor(n)",
    "n = 4\nz = float(n)",
    "z = int(len(x))",
    "z = torch.add(x, y)",
    "np.add(p, p, out=p)",
    "with torch.enable_grad():\n    z = x",
    "with torch.set_grad_enabled(True):\n    z = x",
    "'x += y; x.detach(); x.data'  # x.item()",
    "z = torch.long",
]


@pytest.mark.parametrize("body, text, key", DANGEROUS, ids=[b.replace("\n", "; ") for b, _, _ in DANGEROUS])
def test_dangerous_form(tmp_path: pathlib.Path, body: str, text: str, key: str) -> None:
    assert scan_text(tmp_path, body) == [(FORMS[key].rule, text, key)]


@pytest.mark.parametrize("body", HARMLESS, ids=[b.replace("\n", "; ") for b in HARMLESS])
def test_harmless_form(tmp_path: pathlib.Path, body: str) -> None:
    assert scan_text(tmp_path, body) == []


def test_writes_under_no_grad(tmp_path: pathlib.Path) -> None:
    body = "with torch.no_grad():\n    x.add_(y)\n    x[0] = 1\n    x += y\nx.mul_(2)"
    keys = [key for _, _, key in scan_text(tmp_path, body)]
    assert keys == ["no-grad", "no-grad-write", "no-grad-write", "no-grad-write", "method"]


def test_columns_count_characters(tmp_path: pathlib.Path) -> None:
    assert scan_text(tmp_path, "é = 'äöü'; z = x.detach()") == [("detach", "x.detach()", "detach")]


# --- what can be read -----------------------------------------------------------------------------------------------


def plain(x: torch.Tensor) -> torch.Tensor:
    return x.detach()


class Base(nn.Module):
    def helper(self, x: torch.Tensor) -> torch.Tensor:
        return x.detach()


class Child(Base):
    def __init__(self) -> None:
        super().__init__()
        self.steps = 0
        self.layers = [nn.Linear(2, 2), nn.Linear(2, 2)]
        self.act = nn.ReLU(inplace=True)

    @torch.no_grad()
    def frozen(self, x: torch.Tensor) -> torch.Tensor:
        self.steps += 1

        def inner(t: torch.Tensor) -> torch.Tensor:
            return t.round()

        return inner(x)


class Outer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.child = Child()


def passing(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any) -> Any:
        return function(*args)

    return wrapper


@passing
def decorated(x: torch.Tensor) -> float:
    return x.item()


shorter = lambda x: x.argmax()  # noqa: E731


def places(source: Any) -> list[tuple[str, str]]:
    return [(f.rule, f.location.function) for f in scan_source(source) if f.location is not None]


@pytest.mark.parametrize(
    "source, expected",
    [
        (plain, [("detach", "plain")]),
        (decorated, [("python-value", "decorated")]),
        (functools.partial(decorated, 1), [("python-value", "decorated")]),
        (shorter, [("nondiff-op", "")]),
        (Child().frozen, [("no-grad", "Child"), ("zero-grad-op", "Child.frozen.<locals>.inner")]),
        (Base, [("detach", "Base.helper")]),
    ],
)
def test_functions_and_classes(source: Any, expected: list[tuple[str, str]]) -> None:
    assert places(source) == expected


def test_class_brings_its_bases_but_not_torch() -> None:
    found = places(Child)
    assert ("detach", "Base.helper") in found
    assert ("unregistered-param", "Child.__init__") in found and ("inplace-saved", "Child.__init__") in found
    assert len(found) == 5
    assert all(f.location is None or f.location.file == __file__ for f in scan_source(Child))


def test_instance_brings_the_classes_of_its_submodules() -> None:
    assert set(places(Outer())) == set(places(Child))
    assert scan_source(nn.Sequential(nn.Linear(2, 2), nn.ReLU())) == []


def test_file_module_and_list(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("def f(x):\n    return x.detach()\n")
    assert places(str(file)) == places(file) == [("detach", "f")]
    assert places([plain, file, plain]) == [("detach", "plain"), ("detach", "f")] or len(places([plain, file])) == 2
    import fxdoctor.deep_graph as library

    assert scan_source(library) == []


def test_two_classes_of_one_name() -> None:
    def make(first: bool) -> type:
        if first:

            class Twin:
                def f(self, x: torch.Tensor) -> torch.Tensor:
                    return x.detach()
        else:

            class Twin:  # type: ignore[no-redef]
                def f(self, x: torch.Tensor) -> torch.Tensor:
                    return x.round()

        return Twin

    assert [r for r, _ in places(make(True))] == ["detach"]
    assert [r for r, _ in places(make(False))] == ["zero-grad-op"]


def executed() -> Callable[..., Any]:
    names: dict[str, Any] = {}
    exec("def made(x):\n    return x.detach()", names)
    return names["made"]


@pytest.mark.parametrize("source", [executed(), torch.relu, len, F.relu_, nn.Parameter])
def test_no_source_is_a_note(source: Any) -> None:
    found = scan_source(source)
    assert all(f.rule in ("capture", "inplace-saved") for f in found)
    assert all("\n" not in f.message for f in found)
    if source is not F.relu_ and source is not nn.Parameter:
        assert [f.rule for f in found] == ["capture"] and "source" in found[0].message


def test_file_that_is_not_python(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "bad.py"
    file.write_text("def f(:\n")
    assert [f.rule for f in scan_source(file)] == ["capture"]


@pytest.mark.parametrize("source, error", [("no/such/file.py", FileNotFoundError), (3, TypeError), (None, TypeError)])
def test_bad_source(source: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="source") as caught:
        scan_source(source)
    assert "\n" not in str(caught.value)


# --- the table ------------------------------------------------------------------------------------------------------


def test_table_rows() -> None:
    from fxdoctor.rules import all_rules

    rows = table()
    assert len(rows) == len(set(rows)) == len(FORMS)
    assert all(len(row) == 4 and all(row) for row in rows)
    assert {rule for _, _, _, rule in rows} <= set(all_rules()) | {"int-cast"}


def gradient(f: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor | str | None:
    """The gradient of `f`'s sum, None where there is none, or the error's name."""
    x = torch.tensor([0.3, -0.4, 0.8], requires_grad=True)
    try:
        f(x * 1.5).sum().backward()
    except RuntimeError as error:
        return str(error)
    return x.grad


def overwritten(change: Callable[[torch.Tensor], Any]) -> Callable[[torch.Tensor], torch.Tensor]:
    def run(x: torch.Tensor) -> torch.Tensor:
        y = x.exp()
        change(y)
        return y

    return run


WRITES: list[Callable[[torch.Tensor], Any]] = [
    lambda y: y.__iadd__(1.0), lambda y: y.__setitem__(0, 2.0), lambda y: y.add_(1), lambda y: F.relu(y, inplace=True),
]  # fmt: skip


def test_forms_do_what_the_table_says() -> None:
    for write in WRITES:
        assert "modified by an inplace operation" in str(gradient(overwritten(write)))
    assert "don't support automatic differentiation" in str(gradient(lambda x: torch.add(x, x, out=torch.empty(3))))
    for cut in (
        lambda x: x.detach(),
        lambda x: x.data,
        lambda x: torch.tensor(x.tolist()),
        lambda x: x.argmax(),
        lambda x: x.long(),
    ):
        assert "does not require grad" in str(gradient(cut))  # type: ignore[arg-type]
    rounded = gradient(lambda x: x.round())
    assert isinstance(rounded, torch.Tensor) and not rounded.any()
    true = gradient(lambda x: x.exp())
    assert isinstance(true, torch.Tensor)
    hidden = gradient(overwritten(lambda y: y.data.zero_()))
    assert isinstance(hidden, torch.Tensor) and not torch.allclose(hidden, true)
    twin = gradient(lambda x: x + (x.round() - x).detach())
    assert isinstance(twin, torch.Tensor) and torch.allclose(twin, torch.full((3,), 1.5))
