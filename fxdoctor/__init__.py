"""fxdoctor diagnoses and repairs PyTorch autograd graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .analysis import analyze
    from .live_graph import check_grad_flow, diagnose
    from .report.model import Finding, Location, ParamState, Report

_HOMES = {
    "analyze": "analysis",
    "diagnose": "live_graph",
    "check_grad_flow": "live_graph",
    "Finding": "report.model",
    "Location": "report.model",
    "ParamState": "report.model",
    "Report": "report.model",
}

__all__ = ["Finding", "Location", "ParamState", "Report", "analyze", "check_grad_flow", "diagnose"]


def __getattr__(name: str) -> Any:
    """Public names are imported when first used: `fxdoctor --help` must not wait for torch."""
    if name not in _HOMES:
        raise AttributeError(f"module 'fxdoctor' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(f"fxdoctor.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
