"""Learning rows and settings, compiled and plain: what is noted, what a refresh looks at, what is not known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hybandits.estimators.learned import LearnedModel, LearnedRidge
from hybandits.kernels import empirical_bayes, evidence
from tests.support.learned_oracle import design_of, fading, make_rows, solve, weights_of
from tests.support.learned_rows import finish, prior_of, scales_of, taught


def blank(features: int) -> tuple[Any, Any]:
    return np.zeros(1, evidence.STATE)[0], np.zeros(features, evidence.FEATURE)


def errors_of(model: LearnedModel, theta: np.ndarray, beta: np.ndarray, slots: list[int]) -> float:
    """The squared errors of all rows at these parameters, from the data's factors."""
    d1, d2, data = model.d1, model.d2, model.arrays.data
    m = np.zeros(d2)
    u = np.concatenate((theta, m))
    total = float(model.state.residual)
    total += evidence.squared_errors(0, 0, d1, data.shared, data.shared_rhs, theta, theta)
    total += evidence.squared_errors(0, 0, d1 + d2, data.dropped, data.dropped_rhs, u, u)
    for slot, own in zip(slots, beta, strict=True):
        total += evidence.squared_errors(slot, d1, d2, data.arm, data.arm_rhs, theta, own)
    return total


def test_rows_are_counted(mode: str) -> None:
    random = np.random.default_rng(0)
    rows = random.standard_normal((9, 5))
    rows[:, 1], rows[:, 4] = 2.0, 0.0
    rows[5, 4] = 3.0
    rewards = 5.0 + random.standard_normal(9)
    d1, d2 = 2, 3
    state, features = blank(5)
    new = []
    for row, reward in zip(rows, rewards.tolist(), strict=True):
        new.append(bool(empirical_bayes.count_row(row, d1, d2, reward, state, features)))
        state.rows += 1
    assert new == [False, True, False, False, False, True, False, False, False]
    values = np.roll(rows, d1, axis=1)  # rows are (z, x), features are kept as (x, z)
    assert features["seen"].tolist() == (values != 0).sum(axis=0).tolist()
    assert features["varied"].tolist() == [1, 1, 1, 0, 1]
    assert_allclose(features["squares"], (values**2).sum(axis=0))
    assert_allclose(features["usual"], values[0])
    assert state.mean_reward == pytest.approx(rewards.mean())
    assert state.spread == pytest.approx(9 * rewards.var())
    assert state.squares == pytest.approx(rewards @ rewards)


def test_a_step_looks_at_all_arms_or_at_evenly_spaced_ones(mode: str) -> None:
    order, rank, none = np.array([3, 1, 4, 2, 5, 6]), np.array([0, 2, 2, 2, 1, 2, 2]), np.zeros(0, np.int64)
    arms = evidence.Arms(order, none, rank, none, np.zeros(7), np.full(7, 9.0))
    state, _ = blank(4)
    state.arms = 6
    slots, left_out, _ = empirical_bayes.arms_of_step(2, 2, arms, state, np.inf)
    assert slots.tolist() == order.tolist()
    assert left_out == 0
    most = sum(empirical_bayes.cost_of_step(rank[slot], 2, 2) for slot in order) / 2.5
    for refreshes, wanted in ((0, [3, 2]), (1, [1, 5]), (2, [4, 6]), (3, [3, 2])):
        state.refreshes = refreshes
        slots, left_out, _ = empirical_bayes.arms_of_step(2, 2, arms, state, most)
        assert slots.tolist() == wanted
        assert left_out == rank[order].sum() - rank[wanted].sum()
    faint = arms._replace(weight=np.full(7, 0.25))
    assert empirical_bayes.arms_of_step(2, 2, faint, state, most)[1] == 4 * 0.25


def test_scores_are_those_of_the_posterior(mode: str) -> None:
    """Two arms, one of them new when its candidate is scored: the dense posterior at the settings that were learned."""
    rows = make_rows(3, n=25, d1=2, d2=2, arms=2)
    estimator = taught(rows)
    finish(estimator)
    a, precision, m = prior_of(estimator)
    design = design_of(rows, 2)
    ridge = np.zeros((6, 6))
    ridge[:2, :2], ridge[2:4, 2:4], ridge[4:, 4:] = np.diag(a), precision, precision
    prior = np.concatenate((np.zeros(2), m, m))
    inverse = np.linalg.inv(design.T @ design + ridge)
    estimate = inverse @ (design.T @ rows.reward + ridge @ prior)
    x, z = np.array([[1.0, 2.0], [0.5, -1.0]]), np.array([[1.0, 0.3], [0.2, 1.0]])
    mean, width = np.empty(2), np.empty(2)
    slots = np.array([estimator.slot(1), -1])
    assert empirical_bayes.score_at_learned(x, z, slots, *estimator.models[0].scoring, mean, width)
    row = np.array([*x[0], 0.0, 0.0, *z[0]])
    assert_allclose((mean[0], width[0]), (row @ estimate, np.sqrt(row @ inverse @ row)), rtol=1e-9)
    spread = x[1] @ inverse[:2, :2] @ x[1] + z[1] @ np.linalg.inv(precision) @ z[1]
    assert_allclose((mean[1], width[1]), (x[1] @ estimate[:2] + z[1] @ m, np.sqrt(spread)), rtol=1e-9)


def test_features_that_never_changed_are_as_usual_and_what_is_not_known_is_added(mode: str) -> None:
    state, features = blank(5)
    state.sigma2_in_use, state.weight = 4.0, 10.0
    features["scale"][:] = 0.5, 0.5, 0.5, 0.25, 0.25
    features["group"][3:] = 1
    features["s2"][3:] = 0.1, 0.3
    features["usual"][:] = 0.0, 2.0, 7.0, 1.0, 0.0
    features["unknown"][:] = 1, 1, 0, 1, 1
    x = np.array([[0.0, 2.0, 1.0], [5.0, 2.0, 1.0], [-3.0, 6.0, 1.0]])
    z = np.array([[1.0, 0.0], [1.0, 0.0], [0.5, 9.0]])
    known_x, known_z, extra = empirical_bayes.as_known(x, z, state, features)
    assert_array_equal(known_x, [[0.0, 2.0, 1.0]] * 3)
    assert_array_equal(known_z, [[1.0, 0.0]] * 3)
    of_beta = 0.25 + 0.2
    assert_allclose(extra, [0.0, 0.5 / 4, (0.5 * (1 + 4) + of_beta * (0.25 + 1)) / 4])
    features["scale"][:3], state.squares = 0.0, 30.0  # nothing is known of any parameter of the kind
    assert_allclose(empirical_bayes.as_known(x[:2], z[:2], state, features)[2], [0.0, 3.0 / 4])


def test_an_arm_that_is_marginalised_is_integrated_out(mode: str) -> None:
    """(theta, m) and the evidence are those of the dense model with the arm in it, at the same settings."""
    rows = make_rows(5, n=30, d1=2, d2=2, arms=3)
    estimator = taught(rows)
    finish(estimator)
    scales, model = scales_of(estimator), estimator.models[0]
    solved = solve(rows, scales, 3)
    # whitened at the ridges that the settings imply, so that nothing but the arm changes
    model.arrays.features["ridge"][2:] = scales.sigma2 * weights_of(rows.z) / scales.s2
    empirical_bayes.marginalise(estimator.slot(1), 2, 2, model.arrays)
    others = np.array([estimator.slot(0), estimator.slot(2)])
    arrays = model.copy().arrays
    evidence.step(others, 2, 2, arrays, 0.0, False)
    assert arrays.state[0].evidence == pytest.approx(solved.evidence, rel=1e-9)
    assert_allclose(arrays.features["m"][2:], solved.m, rtol=1e-8)
    assert (arrays.features["dropped_squares"][2:] > 0).all()
    counted = arrays.features["dropped_count"][2:]
    assert ((counted >= 0) & (counted <= 1)).all()


def test_rows_one_by_one_and_together_are_the_same_and_bad_ones_are_refused(mode: str) -> None:
    rows = make_rows(6, n=20, d1=2, d2=2, arms=2)
    one_by_one, together = taught(rows), LearnedRidge(d1=2, d2=2)
    together.learn_batch(rows.arm.tolist(), rows.x, rows.z, rows.reward)
    model = together.models[0]
    before = model.blocks()
    with np.errstate(all="ignore"):
        for x, reward in ((np.array([np.nan, 1.0]), 1.0), (rows.x[0], np.inf), (rows.x[0], 1e51)):
            assert not empirical_bayes.learn_with_settings(1, x, rows.z[0], reward, model.arrays)
    for name, array in one_by_one.models[0].blocks().items():
        assert_array_equal(array, before[name])
        assert_array_equal(model.blocks()[name], before[name])


def test_another_models_data_are_added(mode: str) -> None:
    """Rows of arms, of theta, and of (theta, m): the squared errors at any parameters are those of both together."""
    rows = make_rows(7, n=30, d1=2, d2=2, arms=3)._replace(arm=np.arange(30) // 2 % 3)
    first, second = (taught(type(rows)(*(part[k::2] for part in rows))) for k in (0, 1))
    mine, other = first.models[0], second.models[0]
    empirical_bayes.marginalise(second.slot(0), 2, 2, other.arrays)
    random = np.random.default_rng(0)
    theta, beta = random.standard_normal(2), random.standard_normal((3, 2))
    wanted = errors_of(mine, theta, beta, [first.slot(arm) for arm in range(3)])
    wanted += errors_of(other, theta, beta[1:], [second.slot(arm) for arm in (1, 2)])
    mine.add(other, [(first.slot(arm), second.slot(arm)) for arm in (1, 2)])
    assert errors_of(mine, theta, beta, [first.slot(arm) for arm in range(3)]) == pytest.approx(wanted)


def test_data_fade_as_time_passes(mode: str) -> None:
    """Sums and squared errors at any parameters are those of the rows times the roots of their weights."""
    rows, memory = make_rows(8, n=20, d1=2, d2=2, arms=2), 7.0
    estimator = taught(rows, memory=memory)
    model = estimator.models[0]
    model.fade(3.0)
    model.fade_all()
    weight = fading(rows, memory) * np.exp(-3.0 / memory)
    state, features = model.state, model.arrays.features
    assert state.weight == pytest.approx(weight.sum())
    assert state.squares == pytest.approx(weight @ rows.reward**2)
    mean = weight @ rows.reward / weight.sum()
    assert state.mean_reward == pytest.approx(mean)
    assert state.spread == pytest.approx(weight @ (rows.reward - mean) ** 2)
    assert_allclose(features["squares"], weight @ np.hstack((rows.x, rows.z)) ** 2)
    assert_allclose(features["seen"], weight.sum())
    random = np.random.default_rng(0)
    theta, beta = random.standard_normal(2), random.standard_normal((2, 2))
    slots = [estimator.slot(arm) for arm in range(2)]
    wanted = rows.reward - rows.x @ theta - np.einsum("td,td->t", rows.z, beta[rows.arm])
    assert errors_of(model, theta, beta, slots) == pytest.approx(weight @ wanted**2)
    assert_allclose(model.arrays.arms.weight[slots], [weight[rows.arm == arm].sum() for arm in range(2)])
    model.fade(1e5)
    model.fade_all()
    assert not model.arrays.data.arm.any()
    assert state.squares > 0.0  # the last that is known of the rewards' units


def test_a_finite_memory_never_stops_refreshing(mode: str) -> None:
    state, _ = blank(2)
    for weight, rate, wanted in (
        (1.0, 0.0, 1), (8.0, 0.0, 2), (999.0, 0.0, 250), (4000.0, 0.0, 2000), (4000.0, 1e-3, 250), (2.5, 0.4, 1)
    ):  # fmt: skip
        state.weight, state.rate = weight, rate
        assert empirical_bayes.rows_between(state) == wanted
