"""Statistics of a log in any parts; fits against a dense solve; warm starts against learning row by row."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import hybandits
from hybandits.engines import ProcessEngine, SerialEngine
from hybandits.evaluation import fit, parts
from hybandits.evaluation.fit import Statistics, collect, rotate_rounds
from hybandits.evaluation.log_world import RewardModel
from hybandits.evaluation.view import View
from hybandits.logs import store as table
from hybandits.logs.store import LogError
from tests.support.loglike import learn_log, little_log

WITH_PAIRS = ["das", "li+pair:xz", "shared+pair", "disjoint+pair:z"]


def dense(view, start=0, stop=None):
    """All rows of the embedded problem, and their rewards."""
    a, y = [], []
    for batch in view.log.batches(start, stop):
        batch = type(batch)(*(column[view.shown(batch) >= 0] for column in batch))
        names, x, z = view.rows(batch)
        rows = np.zeros((batch.rounds, view.d1 + view.d2 * len(view.names)))
        rows[:, : view.d1] = x
        for i, name in enumerate(names):
            k = view.d1 + view.d2 * view.names.index(name)
            rows[i, k : k + view.d2] = z[i]
        a.append(rows)
        y.append(batch.reward)
    return np.vstack(a), np.concatenate(y)


def normal(random, n):
    return random.normal(size=(n, 3))


def stacked(model: RewardModel) -> np.ndarray:
    return np.concatenate([model.theta, model.beta.ravel()])


@pytest.mark.parametrize("arms", ["articles", "positions"])
@pytest.mark.parametrize("features", WITH_PAIRS)
@pytest.mark.parametrize("user", ["memberships", "normal"])
def test_least_squares_is_the_dense_minimum_norm_solution(tmp_path, features, arms, user):
    log = little_log(tmp_path, pair=2, **({"user": normal} if user == "normal" else {}))
    view = View(log, features=features, arms=arms)
    fitted = fit.least_squares(fit.collect(view))
    a, y = dense(view)
    solution, _, rank, _ = np.linalg.lstsq(a, y, rcond=1e-5)
    # Memberships have six decimals: directions of that size are dropped as rounding, in another order here and there.
    tolerance = 1e-5 if user == "memberships" else 1e-12
    assert fitted.rank == rank
    np.testing.assert_allclose(stacked(fitted.model), solution, atol=tolerance)
    residual = np.sqrt(((y - a @ solution) ** 2).sum() / (len(y) - rank))
    np.testing.assert_allclose(fitted.residual, residual, rtol=1e-6)


@pytest.mark.parametrize("features", WITH_PAIRS)
def test_ridge_is_the_dense_ridge(tmp_path, features):
    view = View(little_log(tmp_path, pair=2), features=features)
    model, _ = fit.ridge_model(fit.collect(view), ridge=0.7)
    a, y = dense(view)
    solution = np.linalg.solve(a.T @ a + 0.7 * np.eye(a.shape[1]), a.T @ y)
    np.testing.assert_allclose(stacked(model), solution, atol=1e-12)


@pytest.mark.parametrize("kind", ["HyLinUCB", "LinUCB", "DisLinUCB", "HyThompson", "Greedy"])
def test_warm_start_equals_learning_row_by_row(tmp_path, kind):
    view = View(little_log(tmp_path), features="li")
    given = {"noise": 1.0, "scale": 1.0} if kind == "HyThompson" else {}
    warm, slow = (getattr(hybandits, kind)(d1=view.d1, d2=view.d2, **given, seed=0) for _ in range(2))
    fit.warm_start(warm, fit.collect(view))
    learn_log(slow, view)
    assert warm.rounds == slow.rounds == 600
    random = np.random.default_rng(0)
    x, z = random.normal(size=(8, view.d1)), random.normal(size=(8, view.d2))
    a, b = warm.predict(x, z, view.names), slow.predict(x, z, view.names)
    np.testing.assert_allclose(a.mean, b.mean, rtol=1e-9)
    np.testing.assert_allclose(a.width, b.width, rtol=1e-9)
    for name in view.names:
        assert warm.estimator.pulls_of(name) == slow.estimator.pulls_of(name)
    assert sorted(warm.arms) == sorted(slow.arms)


def now_and_then(random, n):
    return random.normal(size=(n, 3)) * (random.random((n, 3)) < (1.0, 0.3, 0.0))


@pytest.mark.parametrize(
    ("features", "arms", "settings"),
    [
        ("das", "articles", {}), ("li+pair:xz", "articles", {"noise": 0.5}), ("shared+pair", "positions", {}),
        ("disjoint+pair:z", "positions", {"noise": 0.5}),
    ],
)  # fmt: skip
def test_settings_learned_from_sums_are_those_learned_row_by_row(tmp_path, features, arms, settings):
    view = View(little_log(tmp_path, user=now_and_then, pair=2), features=features, arms=arms)
    warm, slow = (hybandits.HyThompson(d1=view.d1, d2=view.d2, **settings, seed=0) for _ in range(2))
    fit.warm_start(warm, fit.collect(view))
    learn_log(slow, view)
    slow.refresh()
    assert warm.rounds == slow.rounds
    assert sorted(warm.arms) == sorted(slow.arms)
    for name in slow.arms:
        assert warm.estimator.pulls_of(name) == slow.estimator.pulls_of(name)
    for a, b in zip(warm.learned[:-1], slow.learned[:-1], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-8)
    random = np.random.default_rng(0)
    n = len(view.names)
    x, z = random.normal(size=(n, view.d1)), random.normal(size=(n, view.d2))
    a, b = warm.predict(x, z, view.names), slow.predict(x, z, view.names)
    np.testing.assert_allclose(a.mean, b.mean, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(a.width, b.width, rtol=1e-6)


@pytest.mark.parametrize("reward", [0.0, 0.3])
def test_rewards_that_are_all_the_same(tmp_path, reward):
    view = View(little_log(tmp_path, user=normal), features="li")
    batch = next(view.log.batches())
    batch = batch._replace(reward=np.full(batch.rounds, reward))
    statistics = fit.Statistics(view)
    for first in range(0, batch.rounds, 100):
        statistics.add(batch.part(first, first + 100))
    assert (statistics.reward_mean, statistics.reward_spread) == (reward, 0.0)
    warm, slow = (hybandits.HyIDS(d1=view.d1, d2=view.d2, seed=0) for _ in range(2))
    fit.warm_start(warm, statistics)
    slow.learn_batch(*view.rows(batch), batch.reward)
    slow.refresh()
    if reward == 0.0:
        assert warm.learned is None is slow.learned
    else:
        np.testing.assert_allclose(warm.theta, slow.theta, rtol=1e-6, atol=1e-9)
    assert warm.rounds == slow.rounds == batch.rounds


def test_a_policy_that_has_learned_can_be_taught_a_log_as_well(tmp_path):
    view = View(little_log(tmp_path), features="li")
    warm, slow = (hybandits.HyIDS(d1=view.d1, d2=view.d2, seed=0) for _ in range(2))
    learn_log(warm, view, 0, 200)
    fit.warm_start(warm, fit.collect(view, 200))
    learn_log(slow, view)
    slow.refresh()
    assert warm.rounds == slow.rounds == 600
    np.testing.assert_allclose(warm.theta, slow.theta, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(warm.learned.noise, slow.learned.noise, rtol=1e-7)


def test_refusals(tmp_path):
    view = View(little_log(tmp_path))
    statistics = fit.collect(view)
    with pytest.raises(ValueError, match="construct the policy with d1=36, d2=6"):
        fit.warm_start(hybandits.HyLinUCB(d1=2, d2=6, seed=0), statistics)
    with pytest.raises(TypeError, match="learns from its own choices"):
        fit.warm_start(hybandits.SupLinUCB(d1=36, d2=6, horizon=10, seed=0), statistics)
    with pytest.raises(LogError, match="no rounds to fit"):
        fit.least_squares(fit.Statistics(view))


@pytest.mark.parametrize("size", [1e-170, 1e-9, 1e9])
def test_features_of_any_size(tmp_path, size):
    view = View(little_log(tmp_path, user=lambda random, n: size * random.normal(size=(n, 3))), features="disjoint")
    statistics = fit.collect(view)
    assert np.isfinite(statistics.triangles).all()
    assert np.isfinite(stacked(fit.least_squares(statistics).model)).all()


# ------------------------------------------------------------------ statistics


@pytest.mark.slow
def test_same_to_the_bit_however_it_is_cut_and_wherever_it_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(table, "rows_per_group", lambda *counts: 64)
    monkeypatch.setattr(parts, "PART_ROUNDS", 100)
    view = View(little_log(tmp_path, pair=2))
    assert len(view.log.shards) > 5
    here = collect(view, 10, 530, engine=SerialEngine())
    there = collect(view, 10, 530, engine=ProcessEngine(2))
    np.testing.assert_array_equal(here.triangles, there.triangles)
    np.testing.assert_array_equal(here.counts, there.counts)
    np.testing.assert_array_equal(here.seen, there.seen)
    assert (here.reward_mean, here.reward_spread) == (there.reward_mean, there.reward_spread)
    entire = Statistics(view)
    for batch in view.log.batches(10, 530):
        entire.add(batch)
    assert here.rounds == entire.rounds == 520
    np.testing.assert_array_equal(here.seen, entire.seen)
    rewards = np.concatenate([batch.reward for batch in view.log.batches(10, 530)])
    np.testing.assert_allclose(here.reward_mean, rewards.mean(), rtol=1e-12)
    np.testing.assert_allclose(here.reward_spread, ((rewards - rewards.mean()) ** 2).sum(), rtol=1e-12)
    gram = np.einsum("gij,gik->gjk", entire.triangles, entire.triangles)
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


def test_a_new_log_in_the_same_place_is_another(tmp_path):
    """Views are kept per process for work on engines: not beyond the life of their log."""
    first = View(little_log(tmp_path))
    collect(first, engine=SerialEngine())
    shutil.rmtree(first.log.path)
    second = View(little_log(tmp_path, rounds=900, seed=5, arms=20))
    assert collect(second, engine=SerialEngine()).rounds == 900
    with pytest.raises(LogError, match="again"):
        collect(first, engine=SerialEngine())
