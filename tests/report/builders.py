"""Reports made by hand, with their sources in real files."""

from __future__ import annotations

from pathlib import Path

from fxdoctor.report.model import Finding, Location, ParamState, Related, Report

SOURCE = """\
import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        h = self.encoder(x).detach()
        power = h ** 2
        h[:, 0] = 0.0
\tname = "äöü", self.größe(x).detach()
        漢字 = self.漢字層(x).detach()
        out = torch.where(
            h > 0,
            torch.log(h),
            0.0,
        )
        return self.head(self.a_long_attribute_name(x), self.another_long_attribute(x)) \
+ self.bias(h.detach()) + h + x + power
"""


def write_source(folder: Path) -> str:
    file = folder / "net.py"
    file.write_text(SOURCE, "utf-8")
    return str(file)


def place(file: str, line: int, text: str | None = None, function: str = "Net.forward", end_line: int | None = None):
    """The location of `text` in that line of SOURCE."""
    source = SOURCE.splitlines()[line - 1]
    start = source.index(text) if text else None
    end = None if start is None or text is None else start + len(text)
    return Location(file, line, start, end, function, source, end_line or line)


def states(**status: str) -> dict[str, ParamState]:
    norms = {"flows": 1.7, "zero": 0.0, "nan": float("nan")}
    return {
        name.replace("__", "."): ParamState(
            s, norms.get(s), shape=(2, 3), dtype="float32", module=name.replace("__", ".").rpartition(".")[0]
        )
        for name, s in status.items()
    }


def detach_report(file: str) -> Report:
    params = states(encoder__0__weight="none", encoder__0__bias="none", head__weight="flows", head__bias="flows")
    finding = Finding(
        "detach",
        "FXD101",
        "warning",
        "the gradient to encoder (2 parameters) stops here",
        location=place(file, 7, "self.encoder(x).detach()"),
        node="detach",
        proof="proved",
        params=["encoder.0.weight", "encoder.0.bias"],
        label="data goes on to head; the gradient does not come back",
        evidence="with this call removed, all 2 parameters get a gradient (norm 0.31)",
        help="remove .detach(); if it is meant, say so: encoder.requires_grad_(False)",
    )
    for name in finding.params:
        params[name].findings = [finding]
    return Report("Net", [finding], params, node_count=14)


def every_kind(file: str) -> Report:
    """Errors, infos, related places, several lines, tabs, wide text, long lines, unknown columns, notes."""
    report = detach_report(file)
    report.params |= states(
        gate__weight="zero", norm__weight="nan", table__weight="frozen", mix__weight="flows", mix__bias="none"
    )
    report.error = (
        "RuntimeError: one of the variables needed for gradient computation\nhas been modified by an inplace operation"
    )
    report.findings = [
        Finding(
            "inplace-saved",
            "FXD401",
            "error",
            "assignment to a part overwrites a tensor that pow() needs for backward",
            location=place(file, 9, "h[:, 0]"),
            label="this write makes backward raise",
            params=["mix.bias"],
            related=[
                Related(place(file, 8, "h ** 2"), "pow() keeps this tensor for backward"),
                Related(place(file, 7, "self.encoder(x)", "Net.other"), "created here"),
            ],
            help="build the new tensor out of place (torch.where, torch.cat, index_put), "
            "or write before anything reads it",
        ),
        *report.findings,
        Finding(
            "nan-grad",
            "FXD301",
            "warning",
            "the first non-finite gradient",
            params=[f"mix.{i}.weight" for i in range(9)],
            location=place(file, 12, "torch.where(", end_line=16),
            label="log(0) is hidden by where in forward only",
        ),
        Finding(
            "detach",
            "FXD101",
            "warning",
            "behind a tab",
            location=place(file, 10, "self.größe(x).detach()"),
            label="here",
            proof="refuted",
            evidence="with this call removed, nothing changes",
            params=["a.b", "c.d", "e", "f", "g"],
        ),
        Finding(
            "detach",
            "FXD101",
            "warning",
            "wide text",
            location=place(file, 11, "self.漢字層(x).detach()"),
            label="漢字",
        ),
        Finding(
            "detach",
            "FXD101",
            "warning",
            "a long line",
            location=place(file, 17, "h.detach()"),
            label="a label that is "
            "too long to stand behind the carets, so that it is wrapped below them and aligned with their start",
        ),
        Finding(
            "no-grad", "FXD102", "warning", "no columns", location=place(file, 8), label="where columns are unknown"
        ),
        Finding("capture", "FXD901", "info", "a note without a place", label="nothing to point at"),
        Finding(
            "detach", "FXD101", "info", "silenced", location=place(file, 7, "self.encoder(x).detach()"), suppressed=True
        ),
    ]
    report.notes = [f"node_{i} cannot be run again: it reads a file" for i in range(10)]
    return report
