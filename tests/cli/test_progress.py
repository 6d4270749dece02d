"""Bars follow a run at a terminal and say nothing elsewhere."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from hybandits import paper
from hybandits.cli.progress import Bars, StagedBar, simple_bar

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
