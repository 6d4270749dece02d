"""What commands share: options, engines, bars, and how errors are told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Annotated, Any

import typer

from hybandits.foundation import interrupts


class EngineName(StrEnum):
    local = "local"
    ray = "ray"


EngineOption = Annotated[
    EngineName, typer.Option("--engine", help="Where to run: processes of this machine, or a Ray cluster.")
]
Workers = Annotated[int | None, typer.Option(min=1, help="Units run at a time; one per core if left out.")]
Address = Annotated[str | None, typer.Option(help="Address of a Ray cluster, e.g. auto; one is started if left out.")]


@contextmanager
def plain_errors() -> Iterator[None]:
    """What a user can mend becomes one line and exit code 2."""
    from hybandits.engines import EngineError
    from hybandits.experiments.record import ResultsError
    from hybandits.logs.problems import ReadError
    from hybandits.logs.store import LogError

    def say(words: str) -> None:
        if interrupts.interrupted:  # the error came of that
            raise interrupts.Interruption
        typer.echo(f"hybandits: {words}", err=True)

    try:
        yield
    except (ResultsError, EngineError, LogError, ReadError, ValueError, TypeError) as problem:
        say(str(problem))
    except BrokenPipeError:  # whoever read the output has had enough: the command line's own business
        raise
    except OSError as problem:
        where = f" {problem.filename}" if problem.filename else ""
        say(f"cannot read or write{where} ({problem.strerror or problem})")
    except MemoryError as problem:
        say(f"not enough memory ({problem}): make the problem smaller")
    else:
        return
    raise typer.Exit(2)


def make_engine(name: EngineName, workers: int | None, address: str | None) -> Any:
    """The engine of these options."""
    from hybandits import engines

    if name is EngineName.ray:
        return engines.Ray(workers, address)
    if address is not None:
        raise ValueError("--address is of a Ray cluster: say --engine ray too")
    return engines.Local(workers)


@contextmanager
def bar(what: str, total: int | None, *, unit: str = "rounds") -> Iterator[Callable[[int], None]]:
    """A bar on stderr, and nothing when that is not a terminal; call what it gives with how much has been done."""
    from hybandits.cli.progress import simple_bar

    with simple_bar(what, total, unit=unit) as advance:
        yield advance
