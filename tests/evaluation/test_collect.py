"""Statistics of a log: the same in any parts and on any engine, compiled and plain."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from hybandits.engines import ProcessEngine, Ray, SerialEngine
from hybandits.evaluation import tasks
from hybandits.evaluation.collect import Statistics, collect, rotate_rounds
from hybandits.evaluation.view import View
from hybandits.logs import store as table
from hybandits.logs.store import LogError
from tests.support.loglike import little_log


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "pair"),
    [(ProcessEngine, 0), (ProcessEngine, 2), pytest.param(Ray, 0, marks=pytest.mark.xdist_group("ray"))],
)
def test_same_to_the_bit_however_it_is_cut_and_wherever_it_runs(tmp_path, monkeypatch, engine, pair):
    monkeypatch.setattr(table, "rows_per_group", lambda user: 64)
    monkeypatch.setattr(table, "GROUP_NUMBERS", 1200)
    monkeypatch.setattr(tasks, "TASK_ROUNDS", 100)
    view = View(little_log(tmp_path, pair=pair))
    assert len(view.log.shards) > 5
    here = collect(view, 10, 530, engine=SerialEngine())
    there = collect(view, 10, 530, engine=engine(2))
    np.testing.assert_array_equal(here.triangles, there.triangles)
    np.testing.assert_array_equal(here.counts, there.counts)
    np.testing.assert_array_equal(here.seen, there.seen)
    assert (here.reward_mean, here.reward_spread) == (there.reward_mean, there.reward_spread)
    whole = Statistics(view)
    for batch in view.log.batches(10, 530):
        whole.add(batch)
    assert here.rounds == whole.rounds == 520
    np.testing.assert_array_equal(here.seen, whole.seen)
    rewards = np.concatenate([batch.reward for batch in view.log.batches(10, 530)])
    np.testing.assert_allclose(here.reward_mean, rewards.mean(), rtol=1e-12)
    np.testing.assert_allclose(here.reward_spread, ((rewards - rewards.mean()) ** 2).sum(), rtol=1e-12)
    gram = np.einsum("gij,gik->gjk", whole.triangles, whole.triangles)
    np.testing.assert_allclose(np.einsum("gij,gik->gjk", here.triangles, here.triangles), gram, atol=1e-12)


def test_kernels_plain_and_compiled_agree(tmp_path):
    view = View(little_log(tmp_path))
    batch = next(view.log.batches())
    groups = view.group[view.shown(batch)]
    statistics = [Statistics(view) for _ in range(2)]
    for rotate, sums in zip((rotate_rounds, rotate_rounds.py_func), statistics, strict=True):
        rotate(batch.user, batch.reward, groups, sums.triangles, sums.counts, sums.seen)
    np.testing.assert_allclose(statistics[0].triangles, statistics[1].triangles, atol=1e-13)
    np.testing.assert_array_equal(statistics[0].counts, statistics[1].counts)
    np.testing.assert_array_equal(statistics[0].seen, statistics[1].seen)
    row = np.column_stack([batch.user, np.ones(batch.rounds), batch.reward])
    for g in np.unique(groups):
        gram = statistics[0].triangles[g].T @ statistics[0].triangles[g]
        np.testing.assert_allclose(gram, row[groups == g].T @ row[groups == g], atol=1e-12)


def test_positions_leave_out_what_is_cut(tmp_path):
    log = little_log(tmp_path, arms=30, pool=25)
    view = View(log, arms="positions")
    statistics = collect(view)
    beyond = sum(int((batch.chosen >= 20).sum()) for batch in log.batches())
    assert beyond > 0
    assert statistics.left_out == beyond
    assert statistics.rounds == 600 - beyond


def test_a_log_made_anew_in_the_same_place_is_another(tmp_path):
    """Views are kept per process for work on engines: not beyond the life of their log."""
    first = View(little_log(tmp_path))
    collect(first, engine=SerialEngine())
    shutil.rmtree(first.log.path)
    second = View(little_log(tmp_path, rounds=900, seed=5, arms=20))
    assert collect(second, engine=SerialEngine()).rounds == 900
    with pytest.raises(LogError, match="again"):
        collect(first, engine=SerialEngine())
    with pytest.raises(ValueError, match="of the same view"):
        Statistics(first).merge(collect(second).packed())


def test_rounds_that_the_log_does_not_have(tmp_path):
    with pytest.raises(LogError, match="has 600 rounds, so there are none from round 600 on"):
        collect(View(little_log(tmp_path)), 600)
