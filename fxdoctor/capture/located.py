"""Runs a captured GraphModule under the recorder, so that all three routes give the same facts.

The captured graph decides what runs; the recorder writes down what ran, with the source line and module path that the
capture attached to each node.
"""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Any

from torch import fx, nn

from .errors import CaptureError
from .guard import Guard
from .record import Recorder
from .trace import Subject, trace


def captured_subject(subject: Subject, guard: Guard, capture: str) -> tuple[Subject, list[str]]:
    """The subject with its captured graph to run, and notes.

    Where the capture fails, or its graph gives some parameter another state than eager does, the model is recorded as
    it is: the truth is what PyTorch does.
    """
    module = subject.module
    if module is None:
        return subject, [f"capture={capture!r} needs an nn.Module; the callable was recorded instead"]
    try:
        graph_module = _capture(module, subject, capture)
    except CaptureError as error:
        where = f" ({error.location})" if error.location is not None else ""
        return subject, [f"{capture} capture failed: {error}{where}; one eager run was recorded instead"]
    captured = replace(subject, captured=graph_module, run=_Run(graph_module))
    eager, graph = trace(subject, guard), trace(captured, guard)
    differing = [n for n, s in eager.states.items() if n not in graph.states or graph.states[n].status != s.status]
    if differing or (eager.error is None) != (graph.error is None):
        what = f"gives {differing[0]} another gradient" if differing else "raises elsewhere"
        return subject, [f"the {capture} graph {what} than eager PyTorch does; one eager run was recorded instead"]
    return captured, []


def _capture(module: nn.Module, subject: Subject, capture: str) -> fx.GraphModule:
    if capture == "symbolic":
        from .symbolic import capture_symbolic

        return capture_symbolic(module, subject.args, subject.kwargs)
    from .dynamo import capture_dynamo

    return capture_dynamo(module, subject.args, subject.kwargs)


class _Run:
    """Calls the captured graph in place of the model."""

    def __init__(self, graph_module: fx.GraphModule) -> None:
        self.graph_module = graph_module

    def __call__(self, recorder: Recorder, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if kwargs:
            bound = inspect.signature(self.graph_module.forward).bind(*args, **kwargs)
            bound.apply_defaults()
            args = bound.args
        return _Located(self.graph_module, recorder).run(*args)


class _Located(fx.Interpreter):
    """Tells the recorder which captured node runs."""

    def __init__(self, graph_module: fx.GraphModule, recorder: Recorder) -> None:
        super().__init__(graph_module)
        self.recorder = recorder

    def run_node(self, n: fx.Node) -> Any:
        self.recorder.fixed_location = n.meta.get("location")
        self.recorder.fixed_decorated = n.meta.get("decorated")
        self.recorder.module_path.append(n.meta.get("module_path", ""))
        try:
            return super().run_node(n)
        finally:
            self.recorder.module_path.pop()
            self.recorder.fixed_location = self.recorder.fixed_decorated = None
