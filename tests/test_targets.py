"""What can be typed as a target, and the one line that every bad one gives."""

from __future__ import annotations

import inspect
import random
import sys
import textwrap
from pathlib import Path

import pytest
import torch

from fxdoctor.target_inputs import random_input
from fxdoctor.targets import Target, TargetError, load_target, search_path

NET = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.fc = nn.Linear(width, 2)
    def forward(self, x):
        return self.fc(x)
"""


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    before = set(sys.modules)

    def write(source: str, name: str = "target_file.py", with_net: bool = True) -> str:
        (tmp_path / name).write_text((NET if with_net else "") + textwrap.dedent(source), "utf-8")
        return name

    yield write
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and str(tmp_path) in str(sys.modules[name].__file__):
            del sys.modules[name]


def message(*args: object) -> str:
    with pytest.raises(TargetError) as error:
        load_target(*args)  # type: ignore[arg-type]
    text = str(error.value)
    assert "\n" not in text and text
    return text


# --- forms ----------------------------------------------------------------------------------------------------------


def test_make_may_return_a_pair(write) -> None:
    target = load_target(write("def make():\n    return Net(), torch.ones(3, 4)\n"))
    assert isinstance(target, Target) and type(target.model).__name__ == "Net"
    assert target.args[0].shape == (3, 4) and target.kwargs == {} and target.loss is None


@pytest.mark.parametrize(
    "inputs, args, kwargs",
    [
        ("torch.ones(3, 4)", 1, []),
        ("(torch.ones(3, 4),)", 1, []),
        ("[torch.ones(3, 4)]", 1, []),
        ("dict(x=torch.ones(3, 4))", 0, ["x"]),
        ("((), dict(x=torch.ones(3, 4)))", 0, ["x"]),
    ],
)
def test_forms_of_inputs(write, inputs: str, args: int, kwargs: list[str]) -> None:
    target = load_target(write(f"def make():\n    return Net(), {inputs}\n"))
    assert len(target.args) == args and list(target.kwargs) == kwargs
    assert target.model(*target.args, **target.kwargs).shape == (3, 2)


def test_make_may_return_a_dict(write) -> None:
    source = (
        "def make():\n    return dict(model=Net(), args=(torch.ones(3, 4),), kwargs=None, loss=lambda out: out.sum())\n"
    )
    target = load_target(write(source))
    assert target.loss is not None and target.loss(torch.ones(2)) == 2


@pytest.mark.parametrize("name", ["", ":make", ":Net", ":model", ":ready", ":Holder.model"])
def test_names(write, name: str) -> None:
    source = """
    def make():
        return Net()
    model = Net()
    ready = nn.Linear(4, 2)
    class Holder:
        model = model
    """
    file = write(source)
    target = load_target(file + name, ["3x4"])
    assert target.model(*target.args).shape == (3, 2)
    assert target.name == file + name


def test_model_is_taken_when_there_is_no_make(write) -> None:
    assert load_target(write("model = nn.Linear(4, 7)\n"), ["1x4"]).model.out_features == 7


def test_the_only_class_is_taken_when_there_is_no_model(write) -> None:
    source = "class NeedsMore(nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
    assert type(load_target(write(source), ["1x4"]).model).__name__ == "Net"


def test_imported_classes_are_no_candidates(write) -> None:
    assert type(load_target(write("from torch.nn import Linear, ReLU, Sequential\n"), ["1x4"]).model).__name__ == "Net"


def test_modules(write) -> None:
    write("def make():\n    return Net(), torch.ones(1, 4)\n", "importable_target.py")
    assert load_target("importable_target").args and load_target("importable_target:Net", ["1x4"]).args
    assert type(load_target("torch.nn:Flatten", ["2x3"]).model) is torch.nn.Flatten


def test_helpers_beside_the_file_are_found(write, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    write("WIDTH = 4\n", "sub/helper_beside.py", with_net=False)
    file = write("from helper_beside import WIDTH\n\ndef make():\n    return Net(WIDTH)\n", "sub/uses_helper.py")
    path = list(sys.path)
    assert load_target(file, ["1x4"]).model.fc.in_features == 4
    assert sys.path == path


def test_search_path_is_the_files_folder(tmp_path: Path) -> None:
    before = list(sys.path)
    with search_path(str(tmp_path / "x.py:Net")):
        assert sys.path[0] == str(tmp_path)
    assert sys.path == before


def test_source_can_be_looked_up(write) -> None:
    target = load_target(write(""), ["1x4"])
    assert "class Net" in inspect.getsource(type(target.model))


@pytest.mark.parametrize("name", ["queue.py", "torch.py", "tabulate.py", "my-model.py", "a.b.py"])
def test_a_file_may_be_called_as_it_likes(write, name: str) -> None:
    before = {n: sys.modules.get(n) for n in ("queue", "torch", "tabulate")}
    file = write("", name, with_net=True).replace("import torch", "")
    assert type(load_target(file + ":Net", ["1x4"]).model).__name__ == "Net"
    for n, module in before.items():
        assert sys.modules.get(n) is module or module is None


def test_a_changed_file_is_read_again(write) -> None:
    assert load_target(write("model = nn.Linear(4, 7)\n"), ["1x4"]).model.out_features == 7
    assert load_target(write("model = nn.Linear(4, 8) # other\n"), ["1x4"]).model.out_features == 8


def test_the_files_own_command_line_is_empty(write) -> None:
    source = "import argparse\nargparse.ArgumentParser().parse_args()\n"
    assert load_target(write(source), ["1x4"]).model


def test_the_same_target_twice_is_the_same(write) -> None:
    source = "import random\ndef make():\n    return Net(4 + random.randrange(1)), torch.randn(2, 4)\n"
    file = write(source)
    first, second = load_target(file), load_target(file)
    assert torch.equal(first.args[0], second.args[0])
    assert torch.equal(first.model.fc.weight, second.model.fc.weight)
    draws = []
    for _ in range(2):
        load_target(file, ["2x4"])
        draws.append((torch.rand(3), random.random()))
    assert torch.equal(draws[0][0], draws[1][0]) and draws[0][1] == draws[1][1]


def test_lazy_modules_get_their_shapes(write) -> None:
    target = load_target(write("model = nn.Sequential(nn.LazyLinear(3), nn.ReLU(), nn.LazyLinear(2))\n"), ["2x5"])
    assert [p.shape for p in target.model.parameters()] == [(3, 5), (3,), (2, 3), (2,)]


# --- inputs and loss ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, shape, dtype",
    [
        ("2x3", (2, 3), torch.float32),
        ("1", (1,), torch.float32),
        ("scalar", (), torch.float32),
        ("scalar:int64", (), torch.int64),
        ("2x3:float64", (2, 3), torch.float64),
        ("2x3:torch.float16", (2, 3), torch.float16),
        ("2x3:bfloat16", (2, 3), torch.bfloat16),
        ("2x3:float8_e4m3fn", (2, 3), torch.float8_e4m3fn),
        ("2x3:complex64", (2, 3), torch.complex64),
        ("2x3:bool", (2, 3), torch.bool),
        ("2x3:long", (2, 3), torch.int64),
        ("2x3:uint8", (2, 3), torch.uint8),
        ("500:int64", (500,), torch.int64),
        (" 2x3 : int32 ", (2, 3), torch.int32),
    ],
)
def test_random_inputs(text: str, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    made = random_input(text)
    assert made.shape == shape and made.dtype == dtype
    if not (dtype.is_floating_point or dtype.is_complex or dtype == torch.bool):
        assert int(made.min()) >= 0 and int(made.max()) <= 9


def test_a_bound_for_integers() -> None:
    made = random_input("1000:int64<1000")
    assert 500 < int(made.max()) < 1000
    assert int(random_input("1000:int8<2").max()) == 1


@pytest.mark.parametrize(
    "text", ["", "x", "2x", "x2", "2y3", "2,3", "-1x2", "2x0", "2.5", "two", "2x3:", "2x3:<5", ":int64", "٣x٤"]
)
def test_bad_shapes(write, text: str) -> None:
    assert f"--input {text!r}" in message(write(""), [text])


@pytest.mark.parametrize(
    "text, part",
    [
        ("2x3:float23", "no dtype 'float23'; such as float32"),
        ("2x3:nn", "no dtype"),
        ("2x3:float32<5", "a bound (<5) is for integers"),
        ("2:int64<0", "above 0"),
        ("2:int64<x", "above 0"),
        ("2:int8<500", "up to 127"),
        ("2x3:qint8", "cannot make"),
        ("99999999999999999999", "cannot make"),
        ("99999999x99999999", "cannot make"),
    ],
)
def test_bad_dtypes_and_bounds(write, text: str, part: str) -> None:
    assert part in message(write(""), [text])


def test_inputs_replace_those_of_make(write) -> None:
    assert load_target(write("def make():\n    return Net(), torch.ones(3, 4)\n"), ["5x4"]).args[0].shape == (5, 4)


def test_a_loss_from_the_same_file_another_file_and_a_module(write) -> None:
    losses = "def squares(out):\n    return (out ** 2).sum()\n"
    file = write(losses + "def make():\n    return Net(), torch.ones(3, 4)\n")
    assert load_target(file, (), f"{file}:squares").loss(torch.full((2,), 3.0)) == 18  # type: ignore[misc]
    other = write("def mean(out):\n    return out.mean()\n", "losses_beside.py", with_net=False)
    assert load_target(file, (), f"{other}:mean").loss(torch.ones(2)) == 1  # type: ignore[misc]
    assert load_target(file, (), "losses_beside:mean").loss(torch.ones(2)) == 1  # type: ignore[misc]


@pytest.mark.parametrize(
    "loss, part",
    [
        ("target_file.py", "names no function"),
        ("target_file.py:nope", "has no 'nope'"),
        ("target_file.py:NUMBER", "of type int"),
        ("gone.py:f", "no such file"),
        ("no_such_module:f", "no module is named 'no_such_module'"),
    ],
)
def test_bad_losses(write, loss: str, part: str) -> None:
    assert part in message(write("NUMBER = 3\n"), ["1x4"], loss)


# --- everything that can go wrong -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source, name, part",
    [
        ("", ":Nett", "has no 'Nett'; did you mean Net?"),
        ("", ":torch", "of type module"),
        ("X = 3\n", ":X", "of type int"),
        ("class Plain: pass\n", ":Plain", "the class Plain"),
        ("def make(n): pass\n", "", "missing a required argument: 'n'"),
        ("def make(): return 3\n", "", "returned an object of type int"),
        ("def make(): pass\n", "", "returned None"),
        ("def make(): return Net(), 1, 2\n", "", "a tuple of Net, int, int"),
        ("def make(): return {}\n", "", "a dict without a module under 'model'"),
        ("def make(): return dict(model=Net(), arg=1)\n", "", "'arg'; it may hold model, args, kwargs, loss"),
        ("def make(): return dict(model=Net(), kwargs=[1])\n", "", "'kwargs' is of type list"),
        ("def make(): return dict(model=Net(), loss=1)\n", "", "'loss' is of type int"),
        ("def make():\n    raise ValueError('bad\\nwidth')\n", "", "make() raised ValueError: bad width (line 12)"),
        ("def make():\n    raise SystemExit(3)\n", "", "raised SystemExit: 3"),
        ("class Bad(nn.Module):\n    def __init__(self): self.x = Net()\n", ":Bad", "Bad() raised AttributeError"),
        ("class Other(nn.Module): pass\n", "", "has 2 models: Net, Other"),
        ("", "", "Net.forward(x): missing a required argument: 'x'; pass --input"),
        ("def make(): return Net(), (torch.ones(1), torch.ones(1))\n", "", "too many positional arguments"),
        ("def make(): return Net(), dict(y=torch.ones(1))\n", "", "missing a required argument: 'x'"),
        ("model = nn.LazyLinear(3)\n", "", "forward(input): missing"),
        ("1/0\n", "", "raised ZeroDivisionError: division by zero (line 11)"),
        ("import no_such_package\n", "", "No module named 'no_such_package'"),
        ("raise SystemExit\n", "", "raised SystemExit"),
        ("def f(:\n", "", "target_file.py:11: not valid Python"),
        ("\0", "", "target_file.py"),
    ],
)  # fmt: skip
def test_bad_files(write, source: str, name: str, part: str) -> None:
    path = list(sys.path)
    assert part in message(write(source) + name)
    assert sys.path == path


def test_files_without_a_model(write) -> None:
    assert "no nn.Module class" in message(write("x = 1\n", with_net=False))
    source = "from torch import nn\nclass A(nn.Module):\n    def __init__(self, n): pass\n"
    assert "can be built without arguments (A)" in message(write(source, with_net=False))


def test_lazy_modules_with_a_wrong_input(write) -> None:
    source = "model = nn.Sequential(nn.LazyLinear(3), nn.Linear(4, 2))\n"
    assert "the first call, which shapes its lazy modules, raised RuntimeError" in message(write(source), ["2x5"])


@pytest.mark.parametrize(
    "target, part",
    [
        ("gone.py", "no such file"),
        ("gone.py:Net", "no such file"),
        ("folder.py", "is a folder"),
        ("notes.txt", "is not a Python file"),
        (".", "is not a Python file"),
        ("", "is not understood"),
        ("a b", "is not understood"),
        ("no_such_package.models:Net", "no module is named 'no_such_package'"),
        ("torch.no_such_part:Net", "no module is named 'torch.no_such_part'"),
        ("torch.nn:Linearr", "has no 'Linearr'; did you mean Linear"),
        ("torch.nn:Linear", "cannot be called without arguments"),
        pytest.param("timm:", "no make()", marks=pytest.mark.zoo),
        ("hub:resnet", "no module is named 'hub'"),
    ],
)
def test_bad_targets(write, tmp_path: Path, target: str, part: str) -> None:
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "notes.txt").write_text("")
    assert part in message(target)


def test_a_failed_import_leaves_no_module_behind(write) -> None:
    message(write("1/0\n"))
    assert "target_file" not in sys.modules


@pytest.mark.parametrize("target", ["timm:resnet18", "torchvision:resnet18", "transformers:bert"])
def test_missing_libraries(monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    library = target.partition(":")[0]
    for name in [n for n in sys.modules if n == library or n.startswith(library + ".")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    assert message(target) == f"{library} is not installed; pip install 'fxdoctor[zoo]'"
