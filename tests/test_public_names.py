"""The public names, in whatever order they are first used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import fxdoctor


@pytest.mark.parametrize("first", fxdoctor.__all__)
def test_names_are_what_they_say_in_any_order(first: str) -> None:
    """A submodule must never hide the function of the same name."""
    code = f"import fxdoctor; fxdoctor.{first}; assert all(callable(getattr(fxdoctor, n)) for n in fxdoctor.__all__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_unknown_name() -> None:
    with pytest.raises(AttributeError, match="no attribute 'anything'"):
        fxdoctor.anything  # noqa: B018


def test_import_is_light() -> None:
    code = "import sys, fxdoctor; assert 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
