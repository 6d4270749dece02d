"""Cut a range of rounds into tasks for an engine, and return the results in the order of the log.

Tasks never depend on who does the work, so every engine gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from functools import lru_cache
from typing import Any, NamedTuple

from hybandits.engines import Engine
from hybandits.evaluation.view import View
from hybandits.foundation import checks
from hybandits.logs.store import LogError

TASK_ROUNDS = 1_000_000
"""Rounds of a task, rounded up to whole row groups."""


class LogTask(NamedTuple):
    """Rounds start..stop-1 of a view, which the worker opens from its recipe."""

    view: dict[str, Any]
    start: int
    stop: int


def round_range(view: View, start: int, stop: int | None) -> tuple[int, int]:
    """start and stop of the requested rounds, cut off at the end of the log; LogError if there are none."""
    start = checks.count("start", start, least=0, why="it is the number of the first round")
    if stop is not None:
        checks.count("stop", stop, least=1, why="it is the number of the first round to leave out")
    rounds = view.log.rounds
    stop = rounds if stop is None else min(stop, rounds)
    if start >= stop:
        where = f"from round {start:,} on" if start >= rounds else f"in [{start:,}, {stop:,})"
        raise LogError(f"The log has {rounds:,} rounds, so there are none {where}.")
    return start, stop


def tasks_of(view: View, start: int, stop: int, *, size: int | None = None) -> list[LogTask]:
    """Rounds start..stop-1 in tasks of whole row groups, except at the two ends."""
    recipe = view.recipe()
    size = TASK_ROUNDS if size is None else size
    cuts = [start]
    for shard in view.log.shards:
        end = shard.start + shard.rounds
        if cuts[-1] < end < stop and end - cuts[-1] >= size:
            cuts.append(end)
    return [LogTask(recipe, a, b) for a, b in zip(cuts, [*cuts[1:], stop], strict=True) if a < b]


@lru_cache(maxsize=2)
def view_of(log: str, content: str, features: str, arms: str, ids: str | None) -> View:
    """The view of a recipe (`View.recipe`), opened once per process."""
    return View.from_recipe({"log": log, "content": content, "features": features, "arms": arms, "ids": ids})


def in_order(
    engine: Engine, work: Any, tasks: list[Any], progress: Callable[[int], None] = lambda amount: None
) -> Iterator[Any]:
    """Run `work` on every task and yield the results in the order of the tasks, each as soon as its turn has come."""
    so_far = [0] * len(tasks)

    def report(i: int, amount: int) -> None:
        progress(amount - so_far[i])
        so_far[i] = amount

    waiting: dict[int, Any] = {}
    turn = 0
    with closing(engine.map(work, tasks, report)) as running:
        for i, result in running:
            waiting[i] = result
            while turn in waiting:
                yield waiting.pop(turn)
                turn += 1
