"""Bars follow a run at a terminal and say nothing elsewhere."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from hybandits import paper
from hybandits.cli.progress import Bars

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
