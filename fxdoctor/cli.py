"""The command line. Nothing heavy is imported before a command needs it: `--help` and `rules` do not wait for torch."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from . import __version__

if TYPE_CHECKING:
    from .report.model import Report

CLEAN, FOUND, FAILED, INTERRUPTED = 0, 1, 2, 130
_CAPTURES = ("record", "symbolic", "dynamo")
_FORMATS = ("text", "json", "sarif")
_TARGETS = """\
TARGET is one of
  file.py[:name]          a file; without a name: make, else model, else its only nn.Module class
  package.module[:name]   the same for an importable module
  timm:NAME               a timm model, such as timm:resnet50
  torchvision:NAME        a torchvision model, such as torchvision:fasterrcnn_resnet50_fpn
  transformers:NAME       a type or class, such as transformers:llama or transformers:BertForMaskedLM
A name is an nn.Module, its class, or a function without arguments that returns a module, (model, inputs), or a
dict of model, args, kwargs, loss. Models of libraries are randomly initialised; nothing is downloaded.

exit status: 0 clean, 1 findings of severity warning or error, 2 could not run"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns the exit status: 0 clean, 1 findings, 2 could not run, 130 interrupted."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    try:
        options = _parser().parse_args(argv)
        return _rules(options) if options.command == "rules" else _analyze(options)
    except KeyboardInterrupt:
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fxdoctor",
        description="Says which parameters of a PyTorch model do not learn, which source line does it, and why.",
    )
    parser.add_argument("--version", action="version", version=f"fxdoctor {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_analyze(commands.add_parser(
        "analyze", help="run one training step of a model and explain it", epilog=_TARGETS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    ))  # fmt: skip
    rules = commands.add_parser("rules", help="list the rules, or explain one")
    rules.add_argument("rule", nargs="?", metavar="SLUG", help="a rule's name or code: detach, FXD101")
    return parser


def _add_analyze(analyze: argparse.ArgumentParser) -> None:
    add = analyze.add_argument
    add("target", metavar="TARGET", help="the model: see below")
    add("--input", action="append", default=[], metavar="SHAPE", dest="inputs",
        help="a random input, such as 2x3x224x224, 2x16:int64, 2x16:int64<1000, 4:bool or scalar; once for each "
        "positional argument")  # fmt: skip
    add("--loss", metavar="FILE.py:FN", help="a function of the model's output that returns a scalar tensor")
    add("--format", choices=_FORMATS, default="text", help="form of the report (default: text)")
    add("-o", "--output", metavar="PATH", help="write the report there instead of to standard output")
    add("--all", action="store_true", help="show findings of severity info too")
    add("--capture", choices=_CAPTURES, default="record", help="how the graph is captured (default: record)")
    add("--no-prove", action="store_true", help="do not re-run the graph with each suspect repaired: faster")
    add("--eval", action="store_true", help="put the model into evaluation mode first")
    add("--ignore", action="append", default=[], metavar="RULE", help="leave out a rule, by name or code; repeatable")
    add("--exit-zero", action="store_true", help="exit with 0 also when there are findings")


def _rules(options: argparse.Namespace) -> int:
    from .rules_page import find_rule, overview, rule_page

    if options.rule is None:
        _print(overview())
        return CLEAN
    rule, problem = find_rule(options.rule)
    if rule is None:
        return _fail(problem)
    _print(rule_page(rule))
    return CLEAN


# --- analyze --------------------------------------------------------------------------------------------------------


def _analyze(options: argparse.Namespace) -> int:
    unknown = _unknown_rules(options.ignore)
    if unknown:
        return _fail(f"--ignore: {unknown}")
    if options.output and os.path.isdir(options.output):
        return _fail(f"cannot write the report: {options.output!r} is a folder")
    if options.output and not os.path.isdir(os.path.dirname(os.path.abspath(options.output))):
        return _fail(f"cannot write the report: there is no folder for {options.output!r}")
    try:
        with _output_to_stderr():
            report = _report(options)
    except _CannotRun as e:
        return _fail(str(e))
    try:
        _write(report, options)
    except OSError as e:
        return _fail(f"{e.strerror}: {e.filename!r}" if e.filename else str(e))
    return CLEAN if report.ok or options.exit_zero else FOUND


class _CannotRun(Exception):
    """The message is the one line for stderr."""


def _report(options: argparse.Namespace) -> Report:
    from .targets import TargetError, load_target, search_path

    try:
        target = load_target(options.target, options.inputs, options.loss)
    except TargetError as e:
        raise _CannotRun(str(e)) from e
    if options.eval:
        target.model.eval()
    import fxdoctor

    try:
        with search_path(options.target):
            return fxdoctor.analyze(
                target.model, (target.args, target.kwargs), loss=target.loss, capture=options.capture,
                prove=not options.no_prove, ignore=options.ignore,
            )  # fmt: skip
    except (TypeError, ValueError, NotImplementedError, ImportError) as e:
        raise _CannotRun(_explained(e)) from e
    except Exception as e:
        traceback.print_exc()
        raise _CannotRun(f"an error inside fxdoctor, please report it: {_explained(e)}") from e


def _explained(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if isinstance(error, (TypeError, ValueError)) else f"{type(error).__name__}: {text}"


@contextlib.contextmanager
def _output_to_stderr() -> Iterator[None]:
    """What the model prints, from Python or from C, goes to stderr: stdout is for the report alone."""
    sys.stdout.flush()
    try:
        number = sys.stdout.fileno()
        kept = os.dup(number)
    except (OSError, ValueError, AttributeError):  # stdout is no file: only Python can write to it
        with contextlib.redirect_stdout(sys.stderr):
            yield
        return
    try:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            os.dup2(sys.stderr.fileno(), number)
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()  # what was written through a kept reference to the old stdout
        os.dup2(kept, number)
        os.close(kept)


def _write(report: Report, options: argparse.Namespace) -> None:
    if options.format == "text":
        text = report.to_text(show_all=options.all, color=False if options.output else None)
    else:
        text = report.to_json() if options.format == "json" else report.to_sarif()
    if options.output:
        from .report.output import write_text

        write_text(options.output, text)
        print(f"fxdoctor: report written to {options.output}", file=sys.stderr)
        return
    _print(text)


def _unknown_rules(names: Sequence[str]) -> str | None:
    from .rules_page import find_rule

    for name in names:
        _, problem = find_rule(name)
        if problem:
            return problem
    return None


def _print(text: str) -> None:
    """To stdout; a reader that went away (`| head`) is no error, and must not become one when Python exits."""
    try:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str) -> int:
    from .report.terminal import one_line

    sys.stderr.write(f"fxdoctor: {one_line(message)}\n")
    return FAILED
