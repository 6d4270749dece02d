"""How far the work has come and how long it will still take: bars at a terminal, a line every half minute elsewhere.

Both go to stderr. Where that is a pipe or a file, work that takes less than half a minute says nothing.
"""

from __future__ import annotations

import threading
import time
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


EVERY = 30.0
"""Seconds between two lines."""

Clock = Callable[[], float]
"""The time in seconds."""


Wait = Callable[[float], bool]
"""Waits so many seconds, and says whether the work is over."""


class Lines:
    """A plain line every half minute, for whoever reads the log of a run that has no terminal.

    Within ``with``, a thread says the last that it heard when the work itself reports nothing for so long.

    Parameters
    ----------
    console : Console
        Where lines go; nowhere if it is a terminal, which shows bars.
    clock : Clock
        When is now.
    wait : Wait, optional
        How the thread waits; by default until the time is up or the work is over.
    """

    def __init__(self, console: Console, clock: Clock = time.monotonic, wait: Wait | None = None) -> None:
        self._console, self._clock = console, clock
        self._said = clock()
        self._started: dict[str, float] = {}
        self._last: Callable[[], None] | None = None
        self._lock = threading.RLock()
        self._over = threading.Event()
        self._wait = self._over.wait if wait is None else wait
        self._thread = threading.Thread(target=self._go_on, name="hybandits-progress", daemon=True)

    def __enter__(self) -> Self:
        if not self._console.is_terminal:
            self._thread.start()
        return self

    def __exit__(self, *problem: Any) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _go_on(self) -> None:
        while not self._wait(max(EVERY - (self._clock() - self._said), 0.1)):
            with self._lock:
                if self._last is not None:
                    self._last()

    def __call__(self, what: str, done: float, total: float | None, *, unit: str = "rounds", more: str = "") -> None:
        """Say how far it is, if it is time to.

        Parameters
        ----------
        what : str
            What is being done; empty for everything at once.
        done, total : float
            How much of it has been done since its first call, and how much there is, None if that is not known.
        unit : str
            "rounds", or "B" for bytes; empty to say the share alone.
        more : str
            What else to say.
        """
        with self._lock:
            self._last = lambda: self._say(what, done, total, unit, more)
            self._last()

    def _say(self, what: str, done: float, total: float | None, unit: str, more: str) -> None:
        now = self._clock()
        started = self._started.setdefault(what, now if self._started else self._said)
        if self._console.is_terminal or now - self._said < EVERY:
            return
        self._said = now
        parts = [f"{100 * done / total:.0f} % done"] if total else []
        parts += [more] if more else []
        parts += [_amount(done, total, unit)] if unit else []
        if total and 0 < done <= total:
            parts.append(f"about {_duration((now - started) * (total - done) / done)} left")
        lead = f"{what}: " if what else ""
        self._console.file.write(f"hybandits: {lead}{', '.join(parts)}\n")
        self._console.file.flush()


def _amount(done: float, total: float | None, unit: str) -> str:
    """So much of so much.

    >>> _amount(12_000, 60_000, "rounds"), _amount(2.5e6, None, "B")
    ('12,000 of 60,000 rounds', '2.5 MB')
    """
    one, name = (lambda value: f"{value / 1e6:,.1f}", "MB") if unit == "B" else (lambda value: f"{value:,.0f}", unit)
    return f"{one(done)} {name}" if total is None else f"{one(done)} of {one(total)} {name}"


def _duration(seconds: float) -> str:
    """A time to wait, as exactly as anybody needs it.

    >>> _duration(42), _duration(600), _duration(9000)
    ('42 seconds', '10 minutes', '2.5 hours')
    """
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 90 * 60 else f"{seconds / 3600:.1f} hours"


@contextmanager
def simple_bar(
    what: str,
    total: int | None,
    *,
    unit: str = "rounds",
    console: Console | None = None,
    clock: Clock = time.monotonic,
) -> Iterator[Callable[[int], None]]:
    """Show one bar, or a line every half minute.

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
    clock : Clock
        When is now.

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
        with Lines(console, clock) as lines:

            def advance(done: int) -> None:
                progress.advance(task, done)
                lines(what, progress.tasks[0].completed, total, unit=unit)

            advance(0)
            yield advance


class StagedBar:
    """A bar for each stage of some work, or a line every half minute.

    Call it with the name of the stage, the amount done since the last call, and the amount there is in all.
    """

    def __init__(self, console: Console | None = None, clock: Clock = time.monotonic) -> None:
        console = console or Console(stderr=True)
        self._lines = Lines(console, clock)
        self._done: dict[str, int] = {}
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        self._progress = Progress(*columns, console=console, disable=not console.is_terminal, transient=True)
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        self._progress.__enter__()
        self._lines.__enter__()
        return self

    def __exit__(self, *problem: Any) -> None:
        self._lines.__exit__(*problem)
        self._progress.__exit__(*problem)

    def __call__(self, stage: str, done: int, total: int) -> None:
        if stage not in self._tasks:
            self._tasks[stage] = self._progress.add_task(stage, total=total)
        self._progress.advance(self._tasks[stage], done)
        self._done[stage] = self._done.get(stage, 0) + done
        self._lines(stage, self._done[stage], total, unit="")


class Bars:
    """A bar for each experiment of a run, with the number of finished units: a `runner.Watcher`.

    Without a terminal, a line every half minute on all experiments together.
    """

    def __init__(self, console: Console | None = None, clock: Clock = time.monotonic) -> None:
        console = console or Console(stderr=True)
        self._lines = Lines(console, clock)
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
        self._stack.enter_context(self._lines)
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
        self._tell()

    def _units(self, key: str) -> str:
        return f"{self._count[key] - self._left[key]}/{self._count[key]} units"

    def advance(self, unit: Unit, rounds: int) -> None:
        """Move the bar; `rounds` counts from the start of the unit, and starts again if its worker has died."""
        before = self._so_far.get(unit.path, 0)
        self._so_far[unit.path] = rounds
        self._progress.advance(self._tasks[unit.experiment.key], rounds - before)
        self._tell()

    def _tell(self) -> None:
        """Let the lines know how far everything is."""
        tasks = self._progress.tasks
        units = f"{sum(self._count.values()) - sum(self._left.values())} of {sum(self._count.values())} units saved"
        self._lines("", sum(task.completed for task in tasks), sum(task.total or 0.0 for task in tasks), more=units)

    def finish(self, unit: Unit) -> None:
        """Count a unit as finished."""
        key = unit.experiment.key
        self.advance(unit, unit.rounds)
        self._left[key] -= 1
        self._progress.update(self._tasks[key], units=self._units(key))
