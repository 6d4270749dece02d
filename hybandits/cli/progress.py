"""Bars for people at a terminal: how far the work has come, how fast it goes and how long it will still take.

They are drawn on stderr, and not at all when stderr is not a terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.text import Text

from hybandits.experiments.record import Unit


class Speed(ProgressColumn):
    """A column with the number of rounds per second."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if not speed else f"{speed:,.0f} rounds/s")


@contextmanager
def simple_bar(
    what: str, total: int | None, *, unit: str = "rounds", console: Console | None = None
) -> Iterator[Callable[[int], None]]:
    """Show one bar.

    Parameters
    ----------
    what : str
        What is being done, in a word.
    total : int or None
        How much there is to do; None if that is not known.
    unit : str
        "rounds", or "B" for bytes.
    console : Console, optional
        Where to draw; by default stderr.

    Yields
    ------
    callable
        To be called with the amount done since the last call.
    """
    console = console or Console(stderr=True)
    moving: tuple[ProgressColumn, ...] = (Speed(),)
    if unit == "B":
        moving = (DownloadColumn(), TransferSpeedColumn())
    columns = (TextColumn("{task.description}"), BarColumn(), *moving, TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task(what, total=total)
        yield lambda done: progress.advance(task, done)


class StagedBar:
    """A bar for each stage of some work.

    Call it with the name of the stage, the amount done since the last call, and the amount there is in all.
    """

    def __init__(self, console: Console | None = None) -> None:
        console = console or Console(stderr=True)
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        self._progress = Progress(*columns, console=console, disable=not console.is_terminal, transient=True)
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        self._progress.__enter__()
        return self

    def __exit__(self, *problem: Any) -> None:
        self._progress.__exit__(*problem)

    def __call__(self, stage: str, done: int, total: int) -> None:
        if stage not in self._tasks:
            self._tasks[stage] = self._progress.add_task(stage, total=total)
        self._progress.advance(self._tasks[stage], done)


class Bars:
    """A bar for each experiment of a run, with the number of finished units: a `runner.Watcher`."""

    def __init__(self, console: Console | None = None) -> None:
        console = console or Console(stderr=True)
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[units]}"),
            Speed(),
            TimeRemainingColumn(),
        )
        self._progress = Progress(*columns, console=console, disable=not console.is_terminal, transient=True)
        self._tasks: dict[str, TaskID] = {}
        self._left: dict[str, int] = {}
        self._count: dict[str, int] = {}
        self._so_far: dict[str, int] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(self._progress)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def plan(self, todo: Sequence[Unit], done: Sequence[Unit]) -> None:
        """Draw a bar for each experiment that has units to do."""
        for key in dict.fromkeys(unit.experiment.key for unit in (*todo, *done)):
            left = [unit for unit in todo if unit.experiment.key == key]
            finished = sum(unit.experiment.key == key for unit in done)
            self._left[key], self._count[key] = len(left), len(left) + finished
            total = sum(unit.rounds for unit in left)
            if total:
                self._tasks[key] = self._progress.add_task(key, total=total, units=self._units(key))

    def _units(self, key: str) -> str:
        return f"{self._count[key] - self._left[key]}/{self._count[key]} units"

    def advance(self, unit: Unit, rounds: int) -> None:
        """Move the bar; `rounds` counts from the start of the unit, and starts again if its worker has died."""
        before = self._so_far.get(unit.path, 0)
        self._so_far[unit.path] = rounds
        self._progress.advance(self._tasks[unit.experiment.key], rounds - before)

    def finish(self, unit: Unit) -> None:
        """Count a unit as finished."""
        key = unit.experiment.key
        self.advance(unit, unit.rounds)
        self._left[key] -= 1
        self._progress.update(self._tasks[key], units=self._units(key))
