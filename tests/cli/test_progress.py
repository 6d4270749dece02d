"""Bars follow a run at a terminal; elsewhere there is a line every half minute."""

from __future__ import annotations

import io
import threading
from dataclasses import replace

from rich.console import Console

from hybandits import paper
from hybandits.cli.progress import EVERY, Bars, Lines, StagedBar, simple_bar

RECORD = replace(paper.experiment("setting-1", "released"), seeds=(1, 2, 3))


def watched(*, terminal: bool) -> str:
    told = io.StringIO()
    units = list(RECORD.units())
    with Bars(Console(file=told, force_terminal=terminal, width=120)) as bars:
        bars.plan(units[1:], units[:1])
        for unit in units[1:]:
            bars.advance(unit, unit.rounds // 2)
            bars.advance(unit, 0)  # its worker died, and it starts again
            bars.advance(unit, unit.rounds // 3)
            bars.finish(unit)
        [task] = bars._progress.tasks
        assert task.completed == task.total == 2 * units[0].rounds
    return told.getvalue()


def test_a_terminal_sees_units_and_rounds_per_second() -> None:
    text = watched(terminal=True)
    assert "setting-1/released" in text
    assert "3/3 units" in text


def test_nobody_watching_sees_nothing() -> None:
    assert watched(terminal=False).strip() == ""


def test_one_bar_counts_rounds_or_bytes() -> None:
    for unit, words in (("rounds", "rounds/s"), ("B", "bytes")):
        told = io.StringIO()
        with simple_bar(
            "reading", 10, unit=unit, console=Console(file=told, force_terminal=True, width=120)
        ) as advance:
            advance(4)
            advance(6)
        assert "reading" in told.getvalue()
        assert words in told.getvalue()


def test_stages_have_bars_of_their_own() -> None:
    told = io.StringIO()
    with StagedBar(Console(file=told, force_terminal=True, width=120)) as progress:
        progress("reading", 3, 4)
        progress("fitting", 1, 2)
        progress("reading", 1, 4)
        reading, fitting = progress._progress.tasks
        assert (reading.completed, reading.total) == (4, 4)
        assert (fitting.completed, fitting.total) == (1, 2)
    assert "fitting" in told.getvalue()


# ------------------------------------------------------------------ without a terminal


class Clock:
    """A clock that stands still until it is told to go on."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def elsewhere() -> tuple[io.StringIO, Console]:
    """A file, and a console that writes there."""
    told = io.StringIO()
    return told, Console(file=told, force_terminal=False, width=40)


def test_a_run_says_every_half_minute_how_far_it_is() -> None:
    clock, (told, console) = Clock(), elsewhere()
    units = list(RECORD.units())
    with Bars(console, clock) as bars:
        bars.plan(units[1:], units[:1])
        rounds = units[1].rounds
        clock.now += 29
        bars.advance(units[1], rounds // 4)
        assert told.getvalue() == ""
        clock.now += 1
        bars.advance(units[1], rounds // 2)  # a quarter of all, in half a minute
        clock.now += 29
        bars.finish(units[1])
        clock.now += 31
        bars.advance(units[2], rounds // 2)
        bars.finish(units[2])
    total = f"{2 * rounds:,} rounds"
    assert told.getvalue().splitlines() == [
        f"hybandits: 25 % done, 1 of 3 units saved, {rounds // 2:,} of {total}, about 2 minutes left",
        f"hybandits: 75 % done, 2 of 3 units saved, {3 * rounds // 2:,} of {total}, about 30 seconds left",
    ]


def test_short_work_stays_quiet() -> None:
    clock, (told, console) = Clock(), elsewhere()
    with simple_bar("fitting", 100, console=console, clock=clock) as advance:
        clock.now += 29.9
        advance(100)
    assert told.getvalue() == ""


def test_rounds_and_bytes_are_counted_and_an_unknown_total_has_no_share() -> None:
    for unit, total, line in (
        ("rounds", 8_000_000, "hybandits: reading: 25 % done, 2,000,000 of 8,000,000 rounds, about 3 minutes left"),
        ("B", 8_000_000, "hybandits: reading: 25 % done, 2.0 of 8.0 MB, about 3 minutes left"),
        ("B", None, "hybandits: reading: 2.0 MB"),
    ):
        clock, (told, console) = Clock(), elsewhere()
        with simple_bar("reading", total, unit=unit, console=console, clock=clock) as advance:
            clock.now += 60
            advance(2_000_000)
            advance(1)
        assert told.getvalue() == f"{line}\n"


def test_stages_say_their_share() -> None:
    clock, (told, console) = Clock(), elsewhere()
    with StagedBar(console, clock) as progress:
        progress("reading", 3, 4)
        clock.now += 20
        progress("reading", 1, 4)
        progress("fitting", 0, 2)
        clock.now += 10
        progress("fitting", 1, 2)
    assert told.getvalue() == "hybandits: fitting: 50 % done, about 10 seconds left\n"


def test_a_terminal_gets_no_lines() -> None:
    clock, told = Clock(), io.StringIO()
    with simple_bar("reading", 10, console=Console(file=told, force_terminal=True, width=120), clock=clock) as advance:
        clock.now += 100
        advance(5)
    assert "% done" not in told.getvalue()


class Waiting:
    """Stands for time that passes while the work is silent: every wait lasts as long as it should, up to the last."""

    def __init__(self, clock: Clock, waits: int) -> None:
        self.clock, self.left, self.asked = clock, waits, list[float]()
        self.heard, self.done = threading.Event(), threading.Event()

    def __call__(self, seconds: float) -> bool:
        self.heard.wait()  # until the work has reported once
        self.asked.append(seconds)
        self.clock.now += seconds
        self.left -= 1
        if self.left < 0:
            self.done.set()
        return self.left < 0


def test_a_long_silence_is_not_without_lines() -> None:
    clock, (told, console) = Clock(), elsewhere()
    waiting = Waiting(clock, 3)
    with Lines(console, clock, waiting) as lines:
        clock.now += 10
        lines("fitting", 25, 100)
        waiting.heard.set()
        waiting.done.wait()
    assert waiting.asked[-2:] == [EVERY, EVERY]
    said = told.getvalue().splitlines()
    assert said[0].startswith("hybandits: fitting: 25 % done, 25 of 100 rounds, about ")
    assert len(said) == 3
    assert not lines._thread.is_alive()


def test_lines_before_the_first_report_say_that_nothing_is_done() -> None:
    clock, (told, console) = Clock(), elsewhere()
    units = list(RECORD.units())
    with Bars(console, clock) as bars:
        bars.plan(units, [])
        clock.now += 30
        last = bars._lines._last
        assert last is not None
        last()  # what the thread calls when its time has come
    assert told.getvalue() == f"hybandits: 0 % done, 0 of 3 units saved, 0 of {3 * units[0].rounds:,} rounds\n"


def test_the_thread_ends_with_the_work_and_a_terminal_has_none() -> None:
    for terminal in (False, True):
        with Bars(Console(file=io.StringIO(), force_terminal=terminal)) as bars:
            assert bars._lines._thread.is_alive() is not terminal
        assert not bars._lines._thread.is_alive()
