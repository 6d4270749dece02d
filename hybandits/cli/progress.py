"""Progress of a run for people at a terminal: a bar per experiment with rounds per second and time left."""

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
    """Rounds per second."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if not speed else f"{speed:,.0f} rounds/s")


@contextmanager
def simple_bar(
    what: str, total: int | None, *, unit: str = "rounds", console: Console | None = None
) -> Iterator[Callable[[int], None]]:
    """One bar on stderr, and nothing when stderr is not a terminal.

    Called with how much has been done since the last call; total None: not known.
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
    """A bar per stage of something: called with the stage, what was done since the last call, and what there is."""

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
    """A `runner.Watcher` that draws bars on stderr, and nothing when stderr is not a terminal."""

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
        for key in dict.fromkeys(unit.experiment.key for unit in (*todo, *done)):
            mine = [unit for unit in todo if unit.experiment.key == key]
            there = sum(unit.experiment.key == key for unit in done)
            self._left[key], self._count[key] = len(mine), len(mine) + there
            total = sum(unit.rounds for unit in mine)
            if total:
                self._tasks[key] = self._progress.add_task(key, total=total, units=self._units(key))

    def _units(self, key: str) -> str:
        return f"{self._count[key] - self._left[key]}/{self._count[key]} units"

    def advance(self, unit: Unit, rounds: int) -> None:
        """`rounds` counts from the unit's start, and starts again if its worker died."""
        before = self._so_far.get(unit.path, 0)
        self._so_far[unit.path] = rounds
        self._progress.advance(self._tasks[unit.experiment.key], rounds - before)

    def finish(self, unit: Unit) -> None:
        key = unit.experiment.key
        self.advance(unit, unit.rounds)
        self._left[key] -= 1
        self._progress.update(self._tasks[key], units=self._units(key))
