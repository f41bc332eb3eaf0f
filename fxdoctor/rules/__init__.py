"""The rules, one file each. `all_rules()` finds them; nothing here imports torch until a check runs."""

from __future__ import annotations

import functools
import importlib
import pkgutil

from .base import Rule

_NOT_RULES = {"base", "context", "where"}


@functools.cache
def all_rules() -> dict[str, Rule]:
    """Every rule by slug, in the order of their codes."""
    rules = []
    for info in pkgutil.iter_modules(__path__):
        if info.name not in _NOT_RULES:
            rules.append(importlib.import_module(f"{__name__}.{info.name}").RULE)
    return {r.slug: r for r in sorted(rules, key=lambda r: r.code)}
