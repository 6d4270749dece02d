"""The steps towards noise and scales, compiled and plain, against dense algebra."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from hybandits.kernels import evidence
from tests.support.learned_oracle import half_cauchy, make_rows, solve, step
from tests.support.learned_rows import scales_of, taught

SHAPES = [(4, 3), (0, 3), (4, 0), (1, 1)]


@pytest.mark.parametrize("memory", [None, 25.0])
@pytest.mark.parametrize(
    ("d1", "d2", "constant"), [*((*shape, "") for shape in SHAPES), (4, 3, "x"), (4, 3, "z"), (4, 3, "xz"), (0, 1, "z")]
)
def test_a_step_is_that_of_dense_algebra(mode: str, d1: int, d2: int, constant: str, memory: float | None) -> None:
    """With a memory, of the rows times the roots of their weights, whose number is the sum of the weights."""
    rows = make_rows(1, n=80 if mode == "compiled" else 30, d1=d1, d2=d2, constant=constant)
    estimator = taught(rows, memory=memory)
    before = scales_of(estimator)
    numbers = estimator._explained()
    wanted, m = step(rows, before, 6, memory)
    solved = solve(rows, before, 6, memory)
    assert_allclose(numbers[evidence.EVIDENCE], solved.evidence, rtol=1e-11)
    # parameters that no feature speaks of are not counted, and a rare arm's are hardly known
    assert_allclose(numbers[evidence.GAMMA], solved.known.sum(), rtol=1e-9)
    assert_allclose(numbers[evidence.SIGMA2], wanted.sigma2, rtol=1e-11)
    if d1:
        assert_allclose(numbers[evidence.S1], wanted.s1, rtol=1e-10)
    if d2:
        assert_allclose(numbers[evidence.HEAD : evidence.HEAD + d2], wanted.s2, rtol=1e-10)
        assert_allclose(numbers[evidence.SM], wanted.sm, rtol=1e-10)
        assert_allclose(numbers[evidence.HEAD + d2 : evidence.HEAD + 2 * d2], m, rtol=1e-9, atol=1e-11)


def test_the_step_of_a_variance_is_its_formula(mode: str) -> None:
    assert_allclose(evidence.half_cauchy(3.0, 5.0, 0.7, 0.4), half_cauchy(3.0, 5.0, 0.7, 0.4), rtol=1e-14)
    assert evidence.half_cauchy(0.0, 0.0, 0.7, 0.4) == pytest.approx(0.4)  # without data it goes to the centre
    tiny = 2.0**-530
    assert evidence.half_cauchy(3.0 * tiny, 5.0, 0.7 * tiny, 0.4 * tiny) == tiny * evidence.half_cauchy(
        3.0, 5.0, 0.7, 0.4
    )


def test_the_triangle_of_an_arms_prior_is_the_root_of_its_precision(mode: str) -> None:
    random = np.random.default_rng(0)
    b, root = random.random(4) + 0.1, random.standard_normal((4, 4))
    triangle = np.empty(10)
    evidence.set_prior_triangle(b, root @ root.T, triangle)
    dense = np.zeros((4, 4))
    dense[np.triu_indices(4)] = triangle
    assert_allclose(np.linalg.inv(dense.T @ dense), np.diag(1 / b) + root @ root.T, rtol=1e-10)
    one = np.ones((4, 4))  # of rank one and very large: rounding must not make it indefinite
    evidence.set_prior_triangle(b, 1e30 * one, triangle)
    assert np.isfinite(triangle).all()


def test_rows_of_an_arm_are_whitened_by_the_root_of_their_variance(mode: str) -> None:
    random = np.random.default_rng(0)
    d1, d2, count = 2, 3, 2
    b, rows, e = random.random(d2) + 0.1, random.standard_normal(count * (d1 + d2)), random.standard_normal(count)
    before, e_before = rows.reshape(count, d1 + d2).copy(), e.copy()
    log_det = evidence.whiten_arm(count, d1, d2, b, rows, 0, e)
    variance = np.eye(count) + (before[:, d1:] / b) @ before[:, d1:].T
    inverse = np.linalg.inv(np.linalg.cholesky(variance))
    assert_allclose(rows.reshape(count, d1 + d2), inverse @ before, rtol=1e-12)
    assert_allclose(e, inverse @ e_before, rtol=1e-12)
    assert log_det == pytest.approx(np.linalg.slogdet(variance)[1])


def test_squared_errors_are_those_of_the_rows(mode: str) -> None:
    rows = make_rows(2, n=40)
    estimator = taught(rows)
    random = np.random.default_rng(0)
    theta, beta = random.standard_normal(4), random.standard_normal((6, 3))
    total = estimator.numbers[evidence.REST]
    total += evidence.squared_errors(0, 0, 4, estimator.shared_data, estimator.shared_rhs, theta, theta)
    for arm in range(6):
        slot = estimator.slot(arm)
        total += evidence.squared_errors(slot, 4, 3, estimator.arm_data, estimator.arm_rhs, theta, beta[arm])
    errors = rows.reward - rows.x @ theta - (rows.z * beta[rows.arm]).sum(axis=1)
    assert total == pytest.approx(errors @ errors)


def test_the_variance_of_the_rewards_is_shared_out_among_noise_x_and_z(mode: str) -> None:
    numbers, seen = np.zeros(evidence.size_of_numbers(2, 1)), np.array([10, 5, 10])
    numbers[evidence.SQUARES], numbers[evidence.SPREAD] = 40.0, 9.0
    constant = np.array([False, False, False])
    assert_allclose(evidence.centres(numbers, seen, 10, 2, 1, constant), (0.3, 0.3 / 1.5, 0.3, 4.0 / 3))
    constant[0] = True  # an intercept carries the level, and has no part in x
    assert_allclose(evidence.centres(numbers, seen, 10, 2, 1, constant), (0.3, 0.3 / 0.5, 0.3, 0.3))
    seen[:2] = 0
    assert_allclose(evidence.centres(numbers, seen, 10, 2, 1, constant), (0.45, 0.0, 0.45, 0.45))
    assert evidence.variance_of_rewards(numbers, 1) == 20.0
    numbers[evidence.SPREAD] = 0.0
    assert evidence.variance_of_rewards(numbers, 10) == 4.0


def test_features_that_never_changed_are_constant_and_the_first_is_the_intercept(mode: str) -> None:
    numbers = np.zeros(evidence.size_of_numbers(2, 2))
    evidence.usual_features(numbers, 2, 2)[:] = 0.0, 5.0, 1.0, 2.0
    constant, intercept = evidence.constant_features(numbers, np.array([0, 0, 1, 0]), 7, 2, 2)
    assert constant.tolist() == [False, True, False, True]
    assert intercept == 1
    constant, intercept = evidence.constant_features(numbers, np.array([0, 0, 1, 0]), 1, 2, 2)
    assert not constant.any()
    assert intercept == -1
    assert evidence.differs(5.1, 5.0)
    assert not evidence.differs(5.001, 5.0)
    assert evidence.differs(1e-40, 0.0)
