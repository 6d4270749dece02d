"""Learning rows and settings, compiled and plain: what is noted, what a refresh looks at, what is not known."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hybandits.estimators.learned import LearnedRidge
from hybandits.kernels import empirical_bayes, evidence
from tests.support.learned_oracle import fading, make_rows, solve, weights_of
from tests.support.learned_rows import scales_of, taught


def test_rows_are_counted(mode: str) -> None:
    random = np.random.default_rng(0)
    rows = random.standard_normal((9, 5))
    rows[:, 1], rows[:, 4] = 2.0, 0.0
    rows[5, 4] = 3.0
    rewards = 5.0 + random.standard_normal(9)
    d1, d2 = 2, 3
    numbers, seen, varied = np.zeros(evidence.size_of_numbers(d1, d2)), np.zeros(5), np.zeros(5, np.int64)
    new = []
    for i, (row, reward) in enumerate(zip(rows, rewards.tolist(), strict=True)):
        new.append(bool(empirical_bayes.first_changes(row, d1, d2, numbers, varied, i)))
        empirical_bayes.take_note(row, d1, d2, reward, numbers, seen)
    assert new == [False, True, False, False, False, True, False, False, False]
    features = np.roll(rows, d1, axis=1)  # rows are (z, x), sums are kept as (x, z)
    assert seen.tolist() == (features != 0).sum(axis=0).tolist()
    assert varied.tolist() == [1, 1, 1, 0, 1]
    squares = numbers[evidence.HEAD + 2 * d2 :][:5]
    assert_allclose(squares, (features**2).sum(axis=0))
    assert_allclose(evidence.usual_features(numbers, d1, d2), features[0])
    assert numbers[evidence.MEAN] == pytest.approx(rewards.mean())
    assert numbers[evidence.SPREAD] == pytest.approx(9 * rewards.var())
    assert numbers[evidence.SQUARES] == pytest.approx(rewards @ rewards)


def test_a_step_looks_at_all_arms_or_at_evenly_spaced_ones(mode: str) -> None:
    order, rank = np.array([3, 1, 4, 2, 5, 6]), np.array([0, 2, 2, 2, 1, 2, 2])
    state = np.zeros(empirical_bayes.STATE, np.int64)
    state[empirical_bayes.COUNT] = 6
    undated = np.zeros(0)
    slots, left_out, _ = empirical_bayes.take_part(order, state, 2, 2, rank, undated, np.inf)
    assert slots.tolist() == order.tolist()
    assert left_out == 0
    most = sum(empirical_bayes.cost_of_step(rank[slot], 2, 2) for slot in order) / 2.5
    for refreshes, wanted in ((0, [3, 2]), (1, [1, 5]), (2, [4, 6]), (3, [3, 2])):
        state[empirical_bayes.REFRESHES] = refreshes
        slots, left_out, _ = empirical_bayes.take_part(order, state, 2, 2, rank, undated, most)
        assert slots.tolist() == wanted
        assert left_out == rank[order].sum() - rank[wanted].sum()
    faint = np.full(7, 0.25)
    assert empirical_bayes.take_part(order, state, 2, 2, rank, faint, most)[1] == 4 * 0.25


def test_what_is_played_with_is_the_posterior(mode: str) -> None:
    """Two arms, one of them new when its candidate is scored: the dense posterior at the settings that were learned."""
    rows = make_rows(3, n=25, d1=2, d2=2, arms=2)
    estimator = taught(rows)
    while estimator.state[empirical_bayes.PHASE]:
        empirical_bayes.advance(2, 2, estimator.arrays, estimator.held, empirical_bayes.BUDGET)
    a, _, m = evidence.played_ridges(estimator.numbers, 2, 2)
    triangle = np.zeros((2, 2))
    triangle[np.triu_indices(2)] = evidence.prior_triangle(estimator.numbers, 2, 2)
    precision = triangle.T @ triangle
    n = len(rows.reward)
    own = np.zeros((n, 2, 2))
    own[np.arange(n), rows.arm] = rows.z
    design = np.hstack((rows.x, own.reshape(n, 4)))
    ridge = np.zeros((6, 6))
    ridge[:2, :2], ridge[2:4, 2:4], ridge[4:, 4:] = np.diag(a), precision, precision
    prior = np.concatenate((np.zeros(2), m, m))
    inverse = np.linalg.inv(design.T @ design + ridge)
    estimate = inverse @ (design.T @ rows.reward + ridge @ prior)
    x, z = np.array([[1.0, 2.0], [0.5, -1.0]]), np.array([[1.0, 0.3], [0.2, 1.0]])
    mean, width = np.empty(2), np.empty(2)
    slots = np.array([estimator.slot(1), -1])
    assert empirical_bayes.score_tuned(
        x, z, slots, estimator.arm_score, estimator.shared_score, estimator.numbers, estimator.unknown, estimator.state,
        mean, width,
    )  # fmt: skip
    row = np.array([*x[0], 0.0, 0.0, *z[0]])
    assert_allclose((mean[0], width[0]), (row @ estimate, np.sqrt(row @ inverse @ row)), rtol=1e-9)
    spread = x[1] @ inverse[:2, :2] @ x[1] + z[1] @ np.linalg.inv(precision) @ z[1]
    assert_allclose((mean[1], width[1]), (x[1] @ estimate[:2] + z[1] @ m, np.sqrt(spread)), rtol=1e-9)


def test_features_that_never_changed_are_as_usual_and_what_is_not_known_is_added(mode: str) -> None:
    numbers = np.zeros(evidence.size_of_numbers(3, 2))
    numbers[[evidence.S1, evidence.SM, evidence.PLAYED, evidence.KEPT]] = 0.5, 0.25, 4.0, 10.0
    numbers[evidence.HEAD : evidence.HEAD + 2] = 0.1, 0.3
    evidence.usual_features(numbers, 3, 2)[:] = 0.0, 2.0, 7.0, 1.0, 0.0
    unknown = np.array([1, 1, 0, 1, 1])
    x = np.array([[0.0, 2.0, 1.0], [5.0, 2.0, 1.0], [-3.0, 6.0, 1.0]])
    z = np.array([[1.0, 0.0], [1.0, 0.0], [0.5, 9.0]])
    known_x, known_z, extra = empirical_bayes.as_known(x, z, unknown, numbers)
    assert_array_equal(known_x, [[0.0, 2.0, 1.0]] * 3)
    assert_array_equal(known_z, [[1.0, 0.0]] * 3)
    of_beta = 0.25 + 0.2
    assert_allclose(extra, [0.0, 0.5 / 4, (0.5 * (1 + 4) + of_beta * (0.25 + 1)) / 4])
    known_x, _, extra = empirical_bayes.as_known(x[:1], z[:1], unknown, numbers)
    assert known_x is x[:1] or (known_x == x[:1]).all()
    assert len(extra) == 0
    numbers[[evidence.S1, evidence.SQUARES]] = 0.0, 30.0  # nothing is known of any parameter of the kind
    assert_allclose(empirical_bayes.as_known(x[:2], z[:2], unknown, numbers)[2], [0.0, 3.0 / 4])


def test_rows_folded_in_are_as_good_as_learned(mode: str) -> None:
    rows = make_rows(4, n=30, d1=2, d2=2, arms=3)
    learned, folded = taught(rows), LearnedRidge(d1=2, d2=2)
    for arm in range(3):
        folded._new_slot(arm)
    empirical_bayes.fold_rows(
        np.array([folded.slot(int(arm)) for arm in rows.arm]), rows.x, rows.z, rows.reward, folded.arrays
    )
    for arm in range(3):
        mine, its = folded.slot(arm), learned.slot(arm)
        size = len(folded.arm_data) // len(folded.pulls)
        assert_allclose(
            np.abs(folded.arm_data[mine * size : (mine + 1) * size]),
            np.abs(learned.arm_data[its * size : (its + 1) * size]),
            rtol=1e-9,
        )
    assert_allclose(folded.numbers[evidence.REST], learned.numbers[evidence.REST], rtol=1e-9)


def test_an_arm_that_is_released_is_integrated_out(mode: str) -> None:
    """(theta, m) and the evidence are those of the dense model with the arm in it, at the same settings."""
    rows = make_rows(5, n=30, d1=2, d2=2, arms=3)
    estimator = taught(rows)
    while estimator.state[empirical_bayes.PHASE]:
        empirical_bayes.advance(2, 2, estimator.arrays, estimator.held, empirical_bayes.BUDGET)
    scales = scales_of(estimator)
    solved = solve(rows, scales, 3)
    slot = estimator.slot(1)
    _, b, _ = evidence.played_ridges(estimator.numbers, 2, 2)
    # whitened at the ridges that the settings imply, so that nothing but the arm changes
    b[:] = scales.sigma2 * weights_of(rows.z) / scales.s2
    empirical_bayes.release_slot(slot, 2, 2, estimator.arrays)
    others = np.array([estimator.slot(0), estimator.slot(2)])
    numbers = estimator.numbers.copy()
    evidence.step(
        others, 2, 2, estimator.arm_data, estimator.arm_rhs, estimator.shared_data, estimator.shared_rhs,
        estimator.released_data, estimator.released_rhs, numbers, estimator.seen, estimator.varied, 30.0, 0.0,
        (False, False),
    )  # fmt: skip
    assert numbers[evidence.EVIDENCE] == pytest.approx(solved.evidence, rel=1e-9)
    assert_allclose(numbers[evidence.HEAD + 2 : evidence.HEAD + 4], solved.m, rtol=1e-8)
    differed, counted = evidence.differences_of_dropped(numbers, 2, 2)
    assert (differed > 0).all()
    assert ((counted >= 0) & (counted <= 1)).all()


def test_rows_one_by_one_and_together_are_the_same_and_bad_ones_are_refused(mode: str) -> None:
    rows = make_rows(6, n=20, d1=2, d2=2, arms=2)
    one_by_one, together = LearnedRidge(d1=2, d2=2), LearnedRidge(d1=2, d2=2)
    slots = np.array([[each._new_slot(arm) for arm in range(2)] for each in (one_by_one, together)])
    for arm, x, z, reward in zip(rows.arm, rows.x, rows.z, rows.reward.tolist(), strict=True):
        assert empirical_bayes.learn_tuned(slots[0, arm], x, z, reward, one_by_one.arrays, one_by_one.held)
    empirical_bayes.learn_rows_tuned(slots[1, rows.arm], rows.x, rows.z, rows.reward, together.arrays, together.held)
    for mine, its in zip(one_by_one.arrays, together.arrays, strict=True):
        assert_array_equal(mine, its)
    before = [array.copy() for array in together.arrays]
    with np.errstate(all="ignore"):
        for x, reward in ((np.array([np.nan, 1.0]), 1.0), (rows.x[0], np.inf), (rows.x[0], 1e51)):
            assert not empirical_bayes.learn_tuned(slots[1, 0], x, rows.z[0], reward, together.arrays, together.held)
    for mine, its in zip(together.arrays, before, strict=True):
        assert_array_equal(mine, its)


def test_another_estimators_data_are_folded_in(mode: str) -> None:
    """Rows of arms, of theta, and of (theta, m): the squared errors at any parameters are those of both together."""
    rows = make_rows(7, n=30, d1=2, d2=2, arms=3)._replace(arm=np.arange(30) // 2 % 3)
    first, second = (taught(type(rows)(*(part[k::2] for part in rows))) for k in (0, 1))
    empirical_bayes.release_slot(second.slot(0), 2, 2, second.arrays)
    random = np.random.default_rng(0)
    theta, m, beta = random.standard_normal(2), random.standard_normal(2), random.standard_normal((3, 2))

    def errors(each: LearnedRidge, arms: list[int]) -> float:
        total = float(each.numbers[evidence.REST])
        u = np.concatenate((theta, m))
        total += evidence.squared_errors(0, 0, 2, each.shared_data, each.shared_rhs, theta, theta)
        total += evidence.squared_errors(0, 0, 4, each.released_data, each.released_rhs, u, u)
        for arm in arms:
            total += evidence.squared_errors(each.slot(arm), 2, 2, each.arm_data, each.arm_rhs, theta, beta[arm])
        return total

    wanted = errors(first, [0, 1, 2]) + errors(second, [1, 2])
    for arm in (1, 2):
        empirical_bayes.fold_arm_data(
            first.slot(arm), second.slot(arm), 2, 2, second.arm_data, second.arm_rhs, first.arrays
        )  # fmt: skip
    empirical_bayes.fold_shared_data(
        2, 2, second.shared_data, second.shared_rhs, second.released_data, second.released_rhs, first.arrays
    )
    first.numbers[evidence.REST] += second.numbers[evidence.REST]
    assert errors(first, [0, 1, 2]) == pytest.approx(wanted)


def test_data_fade_as_time_passes(mode: str) -> None:
    """Sums and squared errors at any parameters are those of the rows times the roots of their weights."""
    rows, memory = make_rows(8, n=20, d1=2, d2=2, arms=2), 7.0
    estimator = taught(rows, memory=memory)
    empirical_bayes.let_pass(3.0, 2, 2, estimator.arrays)
    empirical_bayes.catch_up_all(2, 2, estimator.arrays)
    weight = fading(rows, memory) * np.exp(-3.0 / memory)
    numbers = estimator.numbers
    assert numbers[evidence.KEPT] == pytest.approx(weight.sum())
    assert numbers[evidence.SQUARES] == pytest.approx(weight @ rows.reward**2)
    mean = weight @ rows.reward / weight.sum()
    assert numbers[evidence.MEAN] == pytest.approx(mean)
    assert numbers[evidence.SPREAD] == pytest.approx(weight @ (rows.reward - mean) ** 2)
    features = np.hstack((rows.x, rows.z))
    assert_allclose(numbers[evidence.HEAD + 4 :][:4], weight @ features**2)
    assert_allclose(estimator.seen, weight.sum())
    random = np.random.default_rng(0)
    theta, beta = random.standard_normal(2), random.standard_normal((2, 2))
    errors = float(numbers[evidence.REST])
    errors += evidence.squared_errors(0, 0, 2, estimator.shared_data, estimator.shared_rhs, theta, theta)
    for arm in range(2):
        slot = estimator.slot(arm)
        errors += evidence.squared_errors(slot, 2, 2, estimator.arm_data, estimator.arm_rhs, theta, beta[arm])
        assert estimator.arm_kept[slot] == pytest.approx(weight[rows.arm == arm].sum())
    wanted = rows.reward - rows.x @ theta - np.einsum("td,td->t", rows.z, beta[rows.arm])
    assert errors == pytest.approx(weight @ wanted**2)
    empirical_bayes.let_pass(1e5, 2, 2, estimator.arrays)
    empirical_bayes.catch_up_all(2, 2, estimator.arrays)
    assert not estimator.arm_data[: len(estimator.arm_data)].any()
    assert numbers[evidence.SQUARES] > 0.0  # the last that is known of the rewards' units


def test_a_finite_memory_never_stops_refreshing(mode: str) -> None:
    numbers = np.zeros(evidence.size_of_numbers(1, 1))
    for kept, rate, wanted in (
        (1.0, 0.0, 1), (8.0, 0.0, 2), (999.0, 0.0, 250), (4000.0, 0.0, 2000), (4000.0, 1e-3, 250), (2.5, 0.4, 1)
    ):  # fmt: skip
        numbers[[evidence.KEPT, evidence.RATE]] = kept, rate
        assert empirical_bayes.rows_between(numbers) == wanted
