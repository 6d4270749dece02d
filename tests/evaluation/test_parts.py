"""Blocks, folds, and what rounds of a log are like."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from hybandits.evaluation.parts import BLOCKS, DEAL, BlockLayout, Survey
from hybandits.evaluation.view import View
from tests.support.evaluation import spoil, write_log


@pytest.mark.parametrize(
    ("start", "stop", "folds"), [(0, 1, 2), (5, 400, 3), (7, 2007, 2), (0, 2001, 2), (3, 10**6, 5)]
)
def test_every_round_is_in_one_block_and_one_fold(start: int, stop: int, folds: int) -> None:
    layout = BlockLayout.of(start, stop, folds)
    assert layout.rounds == stop - start
    assert layout.blocks <= BLOCKS
    assert (layout.blocks - 1) * layout.size < layout.rounds <= layout.blocks * layout.size
    assert layout.touched(start, stop) == range(layout.blocks)
    assert layout.deal <= DEAL
    fold = layout.fold(start, stop - start)
    assert set(fold) <= set(range(folds))
    middle = (start + stop) // 2
    np.testing.assert_array_equal(
        np.concatenate([layout.fold(start, middle - start), layout.fold(middle, stop - middle)]), fold
    )


def test_a_short_log_is_kept_round_by_round() -> None:
    layout = BlockLayout.of(100, 100 + BLOCKS, 2)
    assert (layout.size, layout.blocks) == (1, BLOCKS)
    assert layout.touched(150, 152) == range(50, 52)


def survey_of(view: View, start: int = 0, stop: int | None = None) -> Survey:
    survey = Survey(np.zeros(len(view.names), np.int64))
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
    whole, first, second = survey_of(view), survey_of(view, 0, 150), survey_of(view, 150)
    first.merge(second)
    for name, value in vars(whole).items():
        np.testing.assert_array_equal(getattr(first, name), value)
    empty = Survey(np.zeros(len(view.names), np.int64))
    assert (empty.smallest, empty.longest > empty.shortest) == (math.inf, False)
