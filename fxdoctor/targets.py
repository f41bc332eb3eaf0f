"""From what a person types (`file.py:name`, `timm:resnet50`) to a model, its inputs and its loss."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import linecache
import os
import random
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

import torch
from torch import nn

from .target_error import Target, TargetError, near, raised
from .target_inputs import random_input

__all__ = ["Target", "TargetError", "load_target", "search_path"]

LIBRARIES = ("timm", "torchvision", "transformers")
_FILE = re.compile(r"(?P<file>.+\.py)(?::(?P<name>[^:/\\]*))?")
_MODULE = re.compile(r"(?P<module>[^\W\d]\w*(?:\.[^\W\d]\w*)*)(?::(?P<name>[^:/\\]*))?")
_FORMS = "a target is file.py[:name], package.module:name, timm:NAME, torchvision:NAME or transformers:NAME"
_KEYS = ("model", "args", "kwargs", "loss")


def load_target(target: str, inputs: Sequence[str] = (), loss: str | None = None) -> Target:
    """The model that `target` names, with inputs and loss.

    Args:
        target: ``file.py[:name]``, ``package.module[:name]``, ``timm:NAME``, ``torchvision:NAME``,
            ``transformers:NAME``. A name is an `nn.Module`, a subclass of it, or a function without arguments that
            returns a module, ``(model, inputs)`` or a dict of model, args, kwargs, loss. Without a name: ``make``,
            else ``model``, else the file's only module class that can be built without arguments.
        inputs: texts as in `random_input`; they replace the positional inputs that the target brings (and all the
            inputs of a library's model).
        loss: ``FILE.py:fn`` or ``package.module:fn``, a function of the output that returns a scalar tensor; it
            replaces the target's own.

    Random numbers start from seed 0, so that the same target gives the same model and inputs.

    Raises:
        TargetError: anything in the way, the target's own exceptions included.
    """
    library, _, name = target.partition(":")
    known: dict[str, ModuleType] = {}
    _seed()
    with search_path(target):
        found = _library(library, name) if library in LIBRARIES and name else _own(target, known)
    found.name = target
    if inputs:
        _seed()
        found.args = tuple(random_input(text) for text in inputs)
        if library in LIBRARIES:
            found.kwargs = {}
    if loss is not None:
        found.loss = _loss(loss, known)
    _check_inputs(found)
    _initialise_lazy(found)
    _seed()
    return found


@contextlib.contextmanager
def search_path(target: str) -> Iterator[None]:
    """The folder of a target file (else the working directory) first on sys.path, as when Python runs a script."""
    match = _FILE.fullmatch(target)
    folder = os.path.dirname(os.path.abspath(match["file"])) if match else os.getcwd()
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        if folder in sys.path:
            sys.path.remove(folder)


def _seed() -> None:
    random.seed(0)
    torch.manual_seed(0)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(0)


def _library(library: str, name: str) -> Target:
    from .zoo import sources

    build: Callable[[str], Target] = getattr(sources, f"{library}_model")
    return build(name)


# --- files and modules ----------------------------------------------------------------------------------------------


def _own(target: str, known: dict[str, ModuleType]) -> Target:
    module, name, where = _open(target, "target", known)
    thing, name = _pick(module, name, where)
    return _made(thing, f"{where}:{name}")


def _open(text: str, what: str, known: dict[str, ModuleType]) -> tuple[ModuleType, str, str]:
    """The module, the name behind the colon ("" without one) and how to call the module in a message."""
    match = _FILE.fullmatch(text)
    if match:
        path = os.path.abspath(match["file"])
        if path not in known:
            known[path] = _run_file(path, match["file"])
        return known[path], match["name"] or "", match["file"]
    if os.path.exists(text.partition(":")[0]):
        raise TargetError(f"{what} {text!r} is not a Python file (its name must end in .py)")
    match = _MODULE.fullmatch(text)
    if not match:
        raise TargetError(f"{what} {text!r} is not understood; {_FORMS}")
    return _import(match["module"], what), match["name"] or "", match["module"]


def _import(name: str, what: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as e:
        if e.name is not None and (name == e.name or name.startswith(e.name + ".")):
            raise TargetError(f"{what}: no module is named {e.name!r} here; {_FORMS}") from e
        raise TargetError(f"{name} raised {raised(e)} when it was imported") from e
    except SyntaxError as e:
        raise TargetError(_syntax(e, name)) from e
    except (Exception, SystemExit) as e:
        raise TargetError(f"{name} raised {raised(e)} when it was imported") from e


def _run_file(path: str, shown: str) -> ModuleType:
    """Runs a file as a module that `sys.modules` knows, so that `inspect` and `pickle` find its classes."""
    if not os.path.isfile(path):
        raise TargetError(f"{shown}: {'is a folder, not a file' if os.path.isdir(path) else 'no such file'}")
    name = _module_name(path)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise TargetError(f"{shown}: Python cannot load this file")
    module = importlib.util.module_from_spec(spec)
    before, argv = sys.modules.get(name), sys.argv
    sys.modules[name], sys.argv = module, [path]
    linecache.checkcache(path)
    try:
        spec.loader.exec_module(module)
    except BaseException as e:
        sys.modules.pop(name, None)
        if before is not None:
            sys.modules[name] = before
        if isinstance(e, SyntaxError) and (e.filename or path) == path:
            raise TargetError(_syntax(e, shown)) from e
        if isinstance(e, (Exception, SystemExit)):
            raise TargetError(f"{shown} raised {raised(e)}{_line_in(e, path)}") from e
        raise
    finally:
        sys.argv = argv
    return module


def _module_name(path: str) -> str:
    """The file's own name, unless another module has it: a target `queue.py` must not replace Python's."""
    stem = os.path.splitext(os.path.basename(path))[0]
    if stem.isidentifier() and stem not in sys.stdlib_module_names and stem != "__main__":
        loaded = sys.modules.get(stem)
        if loaded is not None:
            if os.path.abspath(getattr(loaded, "__file__", None) or "") == path:
                return stem
        else:
            importlib.invalidate_caches()
            with contextlib.suppress(ImportError, ValueError):
                spec = importlib.util.find_spec(stem)
                if spec is None or os.path.abspath(spec.origin or "") == path:
                    return stem
    return "fxdoctor_target_" + re.sub(r"\W", "_", stem)


def _syntax(error: SyntaxError, shown: str) -> str:
    line = f":{error.lineno}" if error.lineno else ""
    return f"{shown}{line}: not valid Python: {' '.join((error.msg or '').split())}"


def _line_in(error: BaseException, path: str) -> str:
    """` (line 12)`: the deepest line of the file that the exception passed through."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    return f" (line {lines[-1]})" if lines and lines[-1] else ""


# --- what a name stands for -----------------------------------------------------------------------------------------


def _pick(module: ModuleType, name: str, where: str) -> tuple[Any, str]:
    if not name:
        name = _default_name(module, where)
    thing: Any = module
    for step in name.split("."):
        try:
            thing = getattr(thing, step)
        except AttributeError:
            public = [n for n, v in vars(module).items() if not n.startswith("_") and callable(v)]
            raise TargetError(f"{where} has no {name!r}{near(name, public, 'look at the spelling')}") from None
    return thing, name


def _default_name(module: ModuleType, where: str) -> str:
    for name in ("make", "model"):
        if hasattr(module, name):
            return name
    classes = [
        (n, v) for n, v in vars(module).items()
        if isinstance(v, type) and issubclass(v, nn.Module) and v.__module__ == module.__name__
    ]  # fmt: skip
    ready = [n for n, v in classes if _needs(v) is None]
    if len(ready) == 1:
        return ready[0]
    hint = f"say which with {where}:NAME, or define make()"
    if ready:
        raise TargetError(f"{where} has {len(ready)} models: {', '.join(ready)}; {hint}")
    if classes:
        names = ", ".join(n for n, _ in classes)
        raise TargetError(f"{where}: no model there can be built without arguments ({names}); define make() for it")
    raise TargetError(f"{where} has no make(), no model and no nn.Module class; define make() that returns the model")


def _needs(function: Callable[..., Any]) -> str | None:
    """Why the function cannot be called without arguments, None if it can."""
    try:
        inspect.signature(function).bind()
    except TypeError as e:
        return str(e)
    except ValueError:  # a builtin without a signature
        return None
    return None


def _made(thing: Any, where: str) -> Target:
    """The target from a module, a class, or a function's result."""
    if isinstance(thing, nn.Module):
        return Target(thing)
    if not callable(thing) or (isinstance(thing, type) and not issubclass(thing, nn.Module)):
        kind = f"the class {thing.__name__}" if isinstance(thing, type) else f"of type {type(thing).__name__}"
        raise TargetError(f"{where} is {kind}; a target is an nn.Module, its class, or a function that makes one")
    needs = _needs(thing)
    if needs is not None:
        raise TargetError(f"{where} cannot be called without arguments ({needs}); define make() that does it")
    _seed()
    try:
        made = thing()
    except (Exception, SystemExit) as e:
        path = getattr(sys.modules.get(getattr(thing, "__module__", "")), "__file__", None) or ""
        raise TargetError(f"{where}() raised {raised(e)}{_line_in(e, path)}") from e
    return _unpacked(made, where)


def _unpacked(made: Any, where: str) -> Target:
    from .analysis import split_inputs

    if isinstance(made, nn.Module):
        return Target(made)
    if isinstance(made, tuple) and len(made) == 2 and isinstance(made[0], nn.Module):
        args, kwargs = split_inputs(made[1], None)
        return Target(made[0], args, kwargs)
    if isinstance(made, dict) and isinstance(made.get("model"), nn.Module):
        unknown = [repr(k) for k in made if k not in _KEYS]
        if unknown:
            raise TargetError(f"{where}() returned a dict with {', '.join(unknown)}; it may hold {', '.join(_KEYS)}")
        return _from_dict(made, where)
    kind = f"a dict without a module under 'model': {list(made)[:6]}" if isinstance(made, dict) else _kind(made)
    wanted = "an nn.Module, (model, inputs), or a dict of model, args, kwargs, loss"
    raise TargetError(f"{where}() returned {kind}; it must return {wanted}")


def _kind(value: Any) -> str:
    if isinstance(value, tuple):
        return f"a tuple of {', '.join(type(v).__name__ for v in value[:5]) or 'nothing'}"
    return "None" if value is None else f"an object of type {type(value).__name__}"


def _from_dict(made: dict[str, Any], where: str) -> Target:
    args, kwargs, loss = made.get("args"), made.get("kwargs") or {}, made.get("loss")
    args = () if args is None else tuple(args) if isinstance(args, (tuple, list)) else (args,)
    if not isinstance(kwargs, dict):
        raise TargetError(f"{where}(): 'kwargs' is of type {type(kwargs).__name__}; it must be a dict")
    if loss is not None and not callable(loss):
        raise TargetError(f"{where}(): 'loss' is of type {type(loss).__name__}; it must be a function or None")
    return Target(made["model"], args, dict(kwargs), loss)


# --- loss and inputs ------------------------------------------------------------------------------------------------


def _loss(text: str, known: dict[str, ModuleType]) -> Callable[[Any], Any]:
    with search_path(text):
        module, name, where = _open(text, "--loss", known)
    if not name:
        raise TargetError(f"--loss {text!r} names no function; write {where}:NAME")
    function, _ = _pick(module, name, where)
    if not callable(function):
        raise TargetError(f"--loss {text!r} is of type {type(function).__name__}; it must be a function of the output")
    return function  # type: ignore[no-any-return]


def _check_inputs(target: Target) -> None:
    """Raises where the model's forward cannot be called with these inputs at all."""
    forward = f"{type(target.model).__name__}.forward"
    try:
        signature = inspect.signature(target.model.forward)
    except (TypeError, ValueError):  # compiled code without a signature: the run will tell
        return
    try:
        signature.bind(*target.args, **target.kwargs)
    except TypeError as e:
        hint = "pass --input SHAPE for each, such as --input 2x3x224x224, or let make() return (model, inputs)"
        raise TargetError(f"{forward}{signature_text(signature)}: {e}; {hint}") from e


def signature_text(signature: inspect.Signature) -> str:
    """`(x, mask=...)`: names only, since annotations make a line too long to read."""
    stars: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    shown = []
    for p in signature.parameters.values():
        default = "" if p.default is inspect.Parameter.empty else "=..."
        shown.append(f"{stars.get(p.kind, '')}{p.name}{default}")
    return f"({', '.join(shown)})"


def _initialise_lazy(target: Target) -> None:
    """Lazy modules get their shapes from one call, as torch asks."""
    if not any(map(nn.parameter.is_lazy, [*target.model.parameters(), *target.model.buffers()])):
        return
    _seed()
    try:
        with torch.no_grad():
            target.model(*target.args, **target.kwargs)
    except Exception as e:
        raise TargetError(f"{target.name}: the first call, which shapes its lazy modules, raised {raised(e)}") from e
