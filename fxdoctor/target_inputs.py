"""Random inputs from `--input 2x3x224x224:float32`."""

from __future__ import annotations

import re

import torch

from .target_error import TargetError

_FORM = re.compile(r"(?P<shape>[^:<]+)(?::(?P<dtype>[^<]+)(?:<(?P<high>.+))?)?")
_HELP = "write sizes with x between them and, if not float32, a dtype: 2x3x224x224, 2x16:int64, 2x16:int64<1000, scalar"
SMALL_INT = 10
"""Integers are drawn below this unless the text says otherwise: they may be indices into a small table."""


def random_input(text: str) -> torch.Tensor:
    """A random tensor for a text such as `2x3x224x224`.

    ``scalar`` stands for a tensor without dimensions; ``1`` is a vector of one element. Floats and complex numbers are
    standard normal, integers uniform in 0..9, or below the bound in `2x16:int64<1000`, bools fair coins. Drawn from
    torch's global generator.

    Raises:
        TargetError: the text is no shape, the dtype does not exist, or no such tensor can be made.
    """
    found = _FORM.fullmatch(text.strip())
    if not found:
        raise TargetError(f"--input {text!r} is no shape; {_HELP}")
    shape = _shape(found["shape"].strip(), text)
    dtype = _dtype((found["dtype"] or "float32").strip(), text)
    high = _bound(found["high"], dtype, text)
    try:
        return _draw(shape, dtype, high)
    except (RuntimeError, NotImplementedError, MemoryError, OverflowError, TypeError, ValueError) as e:
        reason = " ".join(str(e).split())[:200]
        raise TargetError(f"--input {text!r}: cannot make such a tensor: {reason}") from e


def _shape(text: str, whole: str) -> tuple[int, ...]:
    if text == "scalar":
        return ()
    parts = text.split("x")
    if not all(p.isascii() and p.isdigit() for p in parts):
        raise TargetError(f"--input {whole!r} is no shape; {_HELP}")
    sizes = tuple(int(p) for p in parts)
    if 0 in sizes:
        raise TargetError(f"--input {whole!r}: every size must be at least 1")
    return sizes


def _dtype(name: str, whole: str) -> torch.dtype:
    dtype = getattr(torch, name.removeprefix("torch."), None)
    if isinstance(dtype, torch.dtype):
        return dtype
    import difflib

    names = sorted(n for n in vars(torch) if isinstance(getattr(torch, n), torch.dtype))
    near = difflib.get_close_matches(name, names, 3) or ["float32", "int64", "bool"]
    raise TargetError(f"--input {whole!r}: torch has no dtype {name!r}; such as {', '.join(near)}")


def _bound(text: str | None, dtype: torch.dtype, whole: str) -> int:
    if text is None:
        return SMALL_INT
    if dtype.is_floating_point or dtype.is_complex or dtype == torch.bool:
        raise TargetError(f"--input {whole!r}: a bound (<{text}) is for integers, not for {str(dtype).split('.')[-1]}")
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise TargetError(f"--input {whole!r}: the bound {text!r} must be a whole number above 0")
    return int(text)


def _draw(shape: tuple[int, ...], dtype: torch.dtype, high: int) -> torch.Tensor:
    if dtype == torch.bool:
        return torch.rand(shape) < 0.5
    if dtype in (torch.float32, torch.float64, torch.complex64, torch.complex128):
        return torch.randn(shape, dtype=dtype)
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(shape, dtype=torch.complex64 if dtype.is_complex else torch.float32).to(dtype)
    top = torch.iinfo(dtype).max
    if high - 1 > top:
        raise ValueError(f"{str(dtype).split('.')[-1]} holds numbers up to {top} only")
    return torch.randint(0, high, shape).to(dtype)
