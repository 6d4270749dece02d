"""What several commands share: options, engines, bars, and how errors and skipped lines are reported."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import TaskID

    from hybandits.engines import Engine
    from hybandits.logs.report import ReadReport

EngineName = StrEnum("EngineName", ["local", "ray"])

EngineOption = Annotated[
    EngineName, typer.Option("--engine", help="Where to run: processes on this machine, or a Ray cluster.")
]
Workers = Annotated[
    int | None,
    typer.Option(min=1, help="Number of processes (on Ray: of tasks at a time); by default one for each core."),
]
Address = Annotated[
    str | None, typer.Option(help="Address of a running Ray cluster, for example auto; by default one is started.")
]

Strict = Annotated[bool, typer.Option("--strict", help="Stop at the first line that cannot be used.")]


@contextmanager
def plain_errors(after_interrupt: str = "") -> Iterator[None]:
    """Turn errors that a user can fix into one line and exit code 2, and Ctrl-C into one line and exit code 130."""
    from hybandits.engines import EngineError
    from hybandits.experiments.record import ResultsError
    from hybandits.logs.report import ReadError
    from hybandits.logs.store import LogError

    code = 2
    try:
        yield
    except (ResultsError, EngineError, LogError, ReadError, ValueError, TypeError) as problem:
        words = str(problem)
    except BrokenPipeError:  # whoever read the output has stopped reading, which Typer deals with
        raise
    except OSError as problem:
        words = ": ".join(str(part) for part in (problem.filename, problem.strerror or problem) if part)
    except MemoryError as problem:
        words = f"not enough memory ({problem}): make the problem smaller"
    except KeyboardInterrupt:
        code, words = 130, f"interrupted{after_interrupt}"
    else:
        return
    typer.echo(f"hybandits: {words}", err=True)
    raise typer.Exit(code) from None


KEPT = "; finished work is kept: give the same command again to continue"
"""Printed after Ctrl-C by commands that save their work along the way."""


def make_engine(name: EngineName, workers: int | None, address: str | None) -> Engine:
    """The engine that --engine, --workers and --address ask for."""
    from hybandits import engines

    if name is EngineName.ray:
        return engines.Ray(workers, address)
    if address is not None:
        raise ValueError("--address is for a Ray cluster: add --engine ray")
    return engines.ProcessEngine(workers)


IDLE = frozenset({"engine", "workers", "address", "out", "strict"})
"""Options that change where and how a command runs and nothing in its results."""


def command_line(context: typer.Context) -> str:
    """The command that gives the same results as this one, wherever it is typed.

    Only arguments and options that differ from their defaults and change results are in it, so that equal results
    name equal commands; `--scale` is always named, for the reader. Folders are the user's own: the folder of a log is
    DIR, and files go by their bare names.
    """
    words = ["hybandits", str(context.info_name)]
    for parameter in context.command.params:
        value = context.params.get(str(parameter.name))
        default = parameter.name != "scale" and value == parameter.get_default(context)
        if parameter.name in IDLE or value is None or default:
            continue
        option = [] if parameter.param_type_name == "argument" else [parameter.opts[0]]
        if value is True:
            words += option
            continue
        for one in value if isinstance(value, list | tuple) else [value]:
            words += [*option, _as_named(str(parameter.name), one)]
    return shlex.join(words)


def _as_named(parameter: str, value: object) -> str:
    if parameter == "data":
        return "DIR"
    if parameter == "world":
        return re.sub(r"(?<=data=)[^,]*/", "", str(value))
    return value.name if isinstance(value, Path) else str(value)


class Bars:
    """Progress on stderr: a bar for each name at a terminal, a line every half minute elsewhere.

    Call it with a name, the amount done since the last call, and the amount there is in all, None if not known.
    """

    def __init__(self, console: Console | None = None, *, every: float = 30.0) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        self._console = console or Console(stderr=True)
        columns = (
            TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(show_speed=True), TimeRemainingColumn()
        )  # fmt: skip
        self._progress = Progress(
            *columns, console=self._console, disable=not self._console.is_terminal, transient=True
        )
        self._tasks: dict[str, TaskID] = {}
        self._every, self._last_line = every, time.monotonic()

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *problem: object) -> None:
        self._progress.stop()

    def __call__(self, name: str, amount: int, total: int | None) -> None:
        if name not in self._tasks:
            self._tasks[name] = self._progress.add_task(name, total=total)
        self._progress.advance(self._tasks[name], amount)
        if not self._console.is_terminal and time.monotonic() - self._last_line >= self._every:
            self._last_line = time.monotonic()
            if parts := list(self._parts()):
                typer.echo(f"hybandits: {', '.join(parts)}", file=self._console.file)

    def _parts(self) -> Iterator[str]:
        """How far everything is that has begun and is not finished."""
        for task in self._progress.tasks:
            if task.completed and not task.finished:
                share = f"{task.percentage:.0f} %" if task.total else f"{task.completed:,.0f}"
                left = f" (about {task.time_remaining:,.0f} s left)" if task.time_remaining else ""
                yield f"{task.description} {share}{left}"


@contextmanager
def bar(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Show progress on stderr; call what it yields with the amount of work done since the last call."""
    with Bars() as bars:
        bars(what, 0, total)
        yield lambda amount: bars(what, amount, total)


def print_account(report: ReadReport) -> None:
    """Print how many of the lines read became rounds, and why the others were skipped."""
    typer.echo(f"{report.lines:,} lines read: {report.rounds:,} rounds, {report.skipped:,} skipped", err=True)
    ignored = [source["file"] for source in report.sources if "ignored" in source]
    if ignored:
        more = f" and {len(ignored) - 5} more" if len(ignored) > 5 else ""
        typer.echo(f"  not read: {', '.join(ignored[:5])}{more}", err=True)
    for reason, count in report.reasons.most_common():
        typer.echo(f"  {count:,} {reason}, first: {report.examples[reason]}", err=True)
