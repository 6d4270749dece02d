"""What several commands share: options, engines, bars, and how errors and skipped lines are reported."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hybandits.foundation import interrupts
from hybandits.foundation.files import FULL

if TYPE_CHECKING:
    from hybandits.engines import Engine
    from hybandits.logs.problems import Problems

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
def plain_errors() -> Iterator[None]:
    """Turn an error that the user can mend into one line and exit code 2."""
    from hybandits.engines import EngineError
    from hybandits.experiments.record import ResultsError
    from hybandits.foundation.own_classes import OwnClassError, failure_in_words
    from hybandits.logs.problems import ReadError
    from hybandits.logs.store import LogError

    def say(words: str) -> None:
        if interrupts.interrupted:  # then the error is a consequence of that
            raise interrupts.Interruption
        typer.echo(f"hybandits: {words}", err=True)

    try:
        yield
    except (ResultsError, EngineError, LogError, ReadError, OwnClassError) as problem:
        say(str(problem))
    except (ValueError, TypeError) as problem:
        say(failure_in_words(problem) or str(problem))
    except BrokenPipeError:  # whoever read the output has stopped reading, which Typer deals with
        raise
    except OSError as problem:
        if problem.errno in FULL and problem.filename:
            say(f"cannot write {problem.filename}: {problem.strerror}")
        else:
            where = f" {problem.filename}" if problem.filename else ""
            say(f"cannot read or write{where} ({problem.strerror or problem})")
    except MemoryError as problem:
        say(f"not enough memory ({problem}): make the problem smaller")
    except (typer.Exit, typer.Abort):
        raise
    except Exception as problem:  # in a class of one's own, or it is ours
        if not (words := failure_in_words(problem)):
            raise
        say(words)
    else:
        return
    raise typer.Exit(2)


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
        return "DIR" if isinstance(value, Path) else Path(str(value)).name
    return value.name if isinstance(value, Path) else str(value)


@contextmanager
def bar(what: str, total: int | None, *, unit: str = "rounds") -> Iterator[Callable[[int], None]]:
    """Show a bar on stderr if that is a terminal; call what it yields with the amount of work done since."""
    from hybandits.cli.progress import simple_bar

    with simple_bar(what, total, unit=unit) as advance:
        yield advance


def account_for(problems: Problems | None) -> None:
    """Print how many of the lines read became rounds, and why the others were skipped."""
    if problems is None:
        return
    typer.echo(f"{problems.lines:,} lines read: {problems.rounds:,} rounds, {problems.skipped:,} skipped", err=True)
    ignored = [source["file"] for source in problems.sources if "ignored" in source]
    if ignored:
        some = ", ".join(Path(name).name for name in ignored[:5])
        typer.echo(f"  not read: {some}{f' and {len(ignored) - 5} more' if len(ignored) > 5 else ''}", err=True)
    for kind, count in problems.kinds.most_common():
        typer.echo(f"  {count:,} {kind}", err=True)
    for kind, count in problems.files.most_common():
        typer.echo(f"  {count:,} {'file' if count == 1 else 'files'}: {kind}", err=True)
    for example in problems.examples:
        typer.echo(f"  {example}", err=True)
