"""A log cut into tasks: every round once, results in the order of the log, and a dead worker costs one try."""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hybandits.engines import ProcessEngine, SerialEngine
from hybandits.evaluation import collect, tasks
from hybandits.evaluation.tasks import in_order, round_range, tasks_of, view_of
from hybandits.evaluation.view import View
from hybandits.logs import store
from hybandits.logs.store import LogError
from tests.support.loglike import little_log


def test_tasks_cover_every_round_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "rows_per_group", lambda user: 64)
    view = View(little_log(tmp_path))
    for start, stop, size in ((0, 600, 100), (0, 600, 1), (17, 599, 64), (0, 600, 10**6), (3, 4, 1)):
        parts = tasks_of(view, start, stop, size=size)
        assert parts[0].start == start
        assert parts[-1].stop == stop
        assert all(a.stop == b.start for a, b in itertools.pairwise(parts))


def test_a_range_ends_with_the_log(tmp_path: Path) -> None:
    view = View(little_log(tmp_path))
    assert round_range(view, 0, None) == (0, 600)
    assert round_range(view, 5, 10**9) == (5, 600)
    assert round_range(view, 5, 9) == (5, 9)


def test_a_range_without_rounds_is_refused(tmp_path: Path) -> None:
    view = View(little_log(tmp_path))
    with pytest.raises(LogError, match=r"The log has 600 rounds, so there are none in \[9, 5\)\."):
        round_range(view, 9, 5)
    for stop in (None, 700):
        with pytest.raises(LogError, match="The log has 600 rounds, so there are none from round 600 on"):
            round_range(view, 600, stop)
    with pytest.raises(ValueError, match="start must be at least 0, got -1"):
        round_range(view, -1, None)
    with pytest.raises(ValueError, match="stop must be at least 1, got 0"):
        round_range(view, 0, 0)


def test_a_view_is_opened_once_per_process(tmp_path: Path) -> None:
    view = View(little_log(tmp_path), features="li", arms="positions")
    opened = view_of(**view.recipe())
    assert view_of(**view.recipe()) is opened
    assert (opened.map, opened.arms_are, opened.log.rounds) == (view.map, "positions", 600)


class LastFirst:
    """An engine that does the last task first."""

    def map(self, work: Any, tasks: list[Any], report: Callable[[int, int], None]) -> Iterator[tuple[int, Any]]:
        for i in reversed(range(len(tasks))):
            report(i, 1)
            report(i, 3)
            yield i, work(tasks[i], lambda amount: None)


def test_results_come_in_the_order_of_the_tasks() -> None:
    told: list[int] = []
    assert list(in_order(LastFirst(), lambda task, report: task * 10, [1, 2, 3], told.append)) == [10, 20, 30]  # type: ignore[arg-type]
    assert told == [1, 2, 1, 2, 1, 2]


def test_a_result_is_handed_on_before_the_next_task_is_done() -> None:
    done: list[int] = []
    results = in_order(SerialEngine(), lambda task, report: done.append(task) or task, [1, 2])
    assert next(results) == 1
    assert done == [1]
    results.close()  # type: ignore[attr-defined]


def killing(task: Any, report: Any) -> Any:
    """`collect.collect_part`, killed the first time it comes to the second part."""
    part, mark = task
    if part.start > 0 and not Path(mark).exists():
        Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(10)
    return collect.collect_part(part, report)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_a_killed_worker_costs_its_part_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int) -> None:
    """A worker that kills itself once: its part is done again, and the result is the same to the bit."""
    monkeypatch.setattr(store, "rows_per_group", lambda user: 64)
    monkeypatch.setattr(tasks, "TASK_ROUNDS", 100)
    view = View(little_log(tmp_path))
    whole = collect.collect(view)
    todo = [(task, str(tmp_path / "killed")) for task in tasks_of(view, 0, view.log.rounds)]
    assert len(todo) > 3
    merged = collect.Statistics(view)
    for part in in_order(ProcessEngine(workers), killing, todo):
        merged.merge(part)
    assert (tmp_path / "killed").exists()
    assert (merged.triangles == whole.triangles).all()
