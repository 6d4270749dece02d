"""A log cut up: every round once, results in the order of the log, blocks, folds, and the survey."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hybandits.evaluation import parts
from hybandits.evaluation.parts import (
    BLOCKS,
    FOLD_ROUNDS,
    BlockLayout,
    Survey,
    in_order,
    is_uniform,
    parts_of,
    round_range,
)
from hybandits.evaluation.view import View
from hybandits.logs import store
from hybandits.logs.store import LogError
from tests.support.evaluation import spoil, write_log
from tests.support.loglike import little_log


def test_tasks_cover_every_round_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "rows_per_group", lambda *counts: 64)
    view = View(little_log(tmp_path))
    for start, stop, size in ((0, 600, 100), (0, 600, 1), (17, 599, 64), (0, 600, 10**6), (3, 4, 1)):
        monkeypatch.setattr(parts, "PART_ROUNDS", size)
        cut = parts_of(view, start, stop)
        assert cut[0].start == start
        assert cut[-1].stop == stop
        assert all(a.stop == b.start for a, b in itertools.pairwise(cut))


def test_ranges_of_rounds(tmp_path: Path) -> None:
    view = View(little_log(tmp_path))
    assert round_range(view, 0, None) == (0, 600)
    assert round_range(view, 5, 10**9) == (5, 600)
    with pytest.raises(LogError, match=r"The log has 600 rounds, so there are none in \[9, 5\)\."):
        round_range(view, 9, 5)
    for stop in (None, 700):
        with pytest.raises(LogError, match="The log has 600 rounds, so there are none from round 600 on"):
            round_range(view, 600, stop)
    with pytest.raises(ValueError, match="start must be at least 0, got -1"):
        round_range(view, -1, None)
    with pytest.raises(ValueError, match="stop must be at least 1, got 0"):
        round_range(view, 0, 0)


class LastFirst:
    """An engine that does the last task first."""

    def map(self, work: Any, tasks: list[Any], report: Callable[[int, int], None]) -> Iterator[tuple[int, Any]]:
        for i in reversed(range(len(tasks))):
            report(i, 1)
            report(i, 2)
            yield i, work(tasks[i], lambda amount: None)


def test_results_come_in_the_order_of_the_tasks() -> None:
    reported: list[int] = []
    assert list(in_order(LastFirst(), lambda task, report: task * 10, [1, 2, 3], reported.append)) == [10, 20, 30]  # type: ignore[arg-type]
    assert reported == [1, 2, 1, 2, 1, 2]


@pytest.mark.parametrize(
    ("start", "stop", "folds"), [(0, 1, 2), (5, 400, 3), (7, 2007, 2), (0, 2001, 2), (3, 10**6, 5)]
)
def test_every_round_is_in_one_block_and_one_fold(start: int, stop: int, folds: int) -> None:
    layout = BlockLayout.of(start, stop, folds)
    assert layout.rounds == stop - start
    assert layout.blocks <= BLOCKS
    assert (layout.blocks - 1) * layout.size < layout.rounds <= layout.blocks * layout.size
    assert layout.touched(start, stop) == slice(0, layout.blocks)
    assert layout.fold_rounds <= FOLD_ROUNDS
    fold = layout.fold(start, stop - start)
    assert set(fold) <= set(range(folds))
    middle = (start + stop) // 2
    np.testing.assert_array_equal(
        np.concatenate([layout.fold(start, middle - start), layout.fold(middle, stop - middle)]), fold
    )


def survey_of(view: View, start: int = 0, stop: int | None = None) -> Survey:
    survey = Survey.of(view)
    for batch in view.log.batches(start, stop):
        survey.add(view, batch)
    return survey


def test_a_survey_against_plain_counts(view: View) -> None:
    (batch,) = view.log.batches()
    survey = survey_of(view)
    sizes = view.sizes[batch.pool]
    assert (survey.rounds, survey.missing, survey.wrong) == (400, 0, 0)
    assert survey.uneven == int((np.abs(batch.propensity * sizes - 1) > 1e-3).sum())
    assert survey.smallest == batch.propensity.min()
    assert (survey.lowest, survey.highest) == (batch.reward.min(), batch.reward.max())
    assert (survey.shortest, survey.longest) == (3, 5)
    assert survey.shown.sum() == 400


def test_propensities_that_cannot_be_used_are_counted(tmp_path: Path) -> None:
    for value, counts in ((np.nan, (2, 0)), (0.0, (0, 2)), (1.5, (0, 2)), (np.inf, (0, 2))):
        view = View(write_log(tmp_path / str(value), uniform=True, change=spoil("propensity", value)))
        survey = survey_of(view)
        assert (survey.missing, survey.wrong) == counts
        assert survey.uneven == 2
        assert 0 < survey.smallest < 1


def test_surveys_of_parts_merge_to_that_of_the_whole(view: View) -> None:
    full, first, second = survey_of(view), survey_of(view, 0, 150), survey_of(view, 150)
    first.merge(second)
    for name, value in vars(full).items():
        np.testing.assert_array_equal(getattr(first, name), value)
    empty = Survey.of(view)
    assert (empty.smallest, empty.longest > empty.shortest) == (math.inf, False)


def test_uniform_up_to_the_digits_that_logs_give() -> None:
    candidates = np.array([20, 20, 3, 3, 34, 34, 1, 1])
    propensity = np.array([0.05, 0.051, 0.333, 0.334, 0.02941, 0.0294, np.nan, np.inf])
    assert is_uniform(propensity, candidates).tolist() == [True, False, True, False, True, True, False, False]
