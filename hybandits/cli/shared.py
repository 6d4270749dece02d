"""Shared by several commands: options, engines, progress, and reports of errors and skipped lines."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import TaskID

    from hybandits.engines import Engine
    from hybandits.logs.report import ReadReport

EngineOption = Annotated[
    str,
    typer.Option(metavar="local|ray|HOST:PORT", help="Processes here, a new Ray cluster, or a running one."),
]
Workers = Annotated[int | None, typer.Option(min=1, help="Number of processes; by default one for each core.")]
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
    except BrokenPipeError:  # Typer ends the command when nothing reads its output any more
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


def make_engine(name: str, workers: int | None) -> Engine:
    """Make the engine of --engine and --workers."""
    from hybandits import engines

    if name == "local":
        return engines.ProcessEngine(workers)
    if name not in ("ray", "auto") and ":" not in name:
        raise ValueError(f"--engine must be local, ray, or the address of a Ray cluster as HOST:PORT, got {name!r}")
    return engines.Ray(workers, None if name == "ray" else name)


IDLE = frozenset({"engine", "workers", "out", "strict"})
"""Options that change where and how a command runs and nothing in its results."""


def command_line(context: typer.Context) -> str:
    """Return the command that gives the same results as this one.

    It has the arguments and options that change results and differ from their defaults, and always `--scale`. Paths of
    this machine are left out: the folder of a log is DIR, and files go by their names.
    """
    words = ["hybandits", str(context.info_name)]
    for parameter in context.command.params:
        value = context.params.get(str(parameter.name))
        default = parameter.name != "scale" and value == parameter.get_default(context)
        if parameter.name in IDLE or value is None or default:
            continue
        option = [] if parameter.param_type_name == "argument" else [parameter.opts[0]]
        for each in value if isinstance(value, list | tuple) else [value]:
            name = each.name if isinstance(each, Path) else str(each)
            words += option if each is True else [*option, "DIR" if parameter.name == "data" else name]
    return shlex.join(words)


@contextmanager
def bars(console: Console | None = None) -> Iterator[Callable[[str, int, int | None], None]]:
    """Show progress bars on stderr if it is a terminal.

    Yields a function to call with the name of a bar, the amount done since the last call, and the total amount, None if
    not known.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    console = console or Console(stderr=True)
    text, speed = TextColumn("{task.description}"), TaskProgressColumn(show_speed=True)
    columns = (text, BarColumn(), speed, TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        tasks: dict[str, TaskID] = {}

        def advance(name: str, amount: int, total: int | None) -> None:
            if name not in tasks:
                tasks[name] = progress.add_task(name, total=total)
            progress.advance(tasks[name], amount)

        yield advance


@contextmanager
def bar(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Show one bar as `bars` does; yields a function to call with the amount done since the last call."""
    with bars() as advance:
        advance(what, 0, total)
        yield lambda amount: advance(what, amount, total)


def print_account(report: ReadReport) -> None:
    """Print how many of the lines read became rounds, and why the others were skipped."""
    typer.echo(f"{report.lines:,} lines read: {report.rounds:,} rounds, {report.skipped:,} skipped", err=True)
    ignored = [source["file"] for source in report.sources if "ignored" in source]
    if ignored:
        more = f" and {len(ignored) - 5} more" if len(ignored) > 5 else ""
        typer.echo(f"  not read: {', '.join(ignored[:5])}{more}", err=True)
    for reason, count in report.reasons.most_common():
        typer.echo(f"  {count:,} {reason}, first: {report.examples[reason]}", err=True)
