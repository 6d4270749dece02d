"""The steps towards noise and scales, compiled and plain, against dense algebra."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from hybandits.kernels import evidence
from tests.support.learned_oracle import common_centre, half_cauchy, half_cauchy_density, make_rows, solve, step
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
    arrays, _, _ = estimator.models[0]._explained()
    state, features = arrays.state[0], arrays.features
    wanted, m = step(rows, before, 6, memory)
    solved = solve(rows, before, 6, memory)
    assert_allclose(state.evidence, solved.evidence, rtol=1e-11)
    # parameters that no feature speaks of are not counted, and a rare arm's are hardly known
    assert_allclose(state.parameters, solved.known.sum(), rtol=1e-9)
    assert_allclose(state.sigma2, wanted.sigma2, rtol=1e-11)
    if constant != "x" or d1 > 1:
        assert_allclose(features["scale"][:d1], wanted.s1, rtol=1e-10)
    assert_allclose(features["s2"][d1:], wanted.s2, rtol=1e-10)
    assert_allclose(features["scale"][d1:], wanted.sm, rtol=1e-10)
    assert_allclose(features["m"][d1:], m, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(("d1", "d2", "constant"), [(5, 4, ""), (5, 4, "xz"), (0, 4, "z"), (5, 0, "x")])
def test_a_step_with_groups_is_that_of_dense_algebra(mode: str, d1: int, d2: int, constant: str) -> None:
    """With "x" or "z" the last feature is alone in its group and never changes: it has no scale of its own."""
    rows = make_rows(4, n=80 if mode == "compiled" else 30, d1=d1, d2=d2, constant=constant)
    groups = [7, 7, 2, 7, 3][:d1], [0, 1, 0, 5][:d2]
    estimator = taught(rows, groups=groups)
    before = scales_of(estimator)
    arrays, known, own_known = estimator.models[0]._explained()
    wanted, m = step(rows, before, 6, groups=tuple(map(np.array, groups)))
    solved = solve(rows, before, 6)
    assert_allclose(arrays.state[0].sigma2, wanted.sigma2, rtol=1e-11)
    assert_allclose(arrays.features["scale"], np.concatenate((wanted.s1, wanted.sm)), rtol=1e-8)
    assert_allclose(arrays.features["s2"][d1:], wanted.s2, rtol=1e-8)
    assert_allclose(arrays.features["m"][d1:], m, rtol=1e-9, atol=1e-11)
    assert len(np.unique(before.s1)) == len(set(groups[0]))
    places = np.array([7, 2, 3][: d1 and 3] + [0, 1, 5][: d2 and 3])
    shared = solved.known[: d1 + d2]
    for place, (group, one) in enumerate(zip(places, known, strict=True)):
        part, first = (groups[0], 0) if place < len(set(groups[0])) else (groups[1], d1)
        assert one == pytest.approx(shared[first : first + len(part)][np.array(part) == group].sum(), rel=1e-8)
    assert_allclose(own_known, solved.known[d1 + d2 :].reshape(6, d2).sum(axis=0), rtol=1e-9)


def test_the_centre_of_groups_is_where_their_density_is_largest(mode: str) -> None:
    for seed in range(20):
        random = np.random.default_rng(seed)
        scales = np.exp(random.normal(size=random.integers(2, 9), scale=1 + seed))
        c = evidence.common_centre(scales, 1.0)
        around = [half_cauchy_density(np.append(scales, 1.0), c * factor) for factor in (1.0, 0.999, 1.001)]
        assert around[0] > max(around[1:])
        assert c == pytest.approx(common_centre(scales, 1.0), rel=1e-10)
        assert evidence.common_centre(scales * 2.0**60, 2.0**60) == c * 2.0**60
    assert evidence.common_centre(np.array([5.0]), 2.0) == 2.0


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
    data = estimator.models[0].arrays.data
    random = np.random.default_rng(0)
    theta, beta = random.standard_normal(4), random.standard_normal((6, 3))
    total = estimator.models[0].state.residual
    total += evidence.squared_errors(0, 0, 4, data.shared, data.shared_rhs, theta, theta)
    for arm in range(6):
        total += evidence.squared_errors(estimator.slot(arm), 4, 3, data.arm, data.arm_rhs, theta, beta[arm])
    errors = rows.reward - rows.x @ theta - (rows.z * beta[rows.arm]).sum(axis=1)
    assert total == pytest.approx(errors @ errors)


def test_the_variance_of_the_rewards_is_shared_out_among_noise_x_and_z(mode: str) -> None:
    state, features = np.zeros(1, evidence.STATE)[0], np.zeros(3, evidence.FEATURE)
    features["seen"][:] = 10, 5, 10
    state.squares, state.spread, state.weight = 40.0, 9.0, 10.0
    constant = np.zeros(3, bool)
    assert_allclose(evidence.centres(state, features, 2, constant), (0.3, 0.3 / 1.5, 0.3, 4.0 / 3))
    constant[0] = True  # an intercept carries the level
    assert_allclose(evidence.centres(state, features, 2, constant), (0.3, 0.3 / 0.5, 0.3, 0.3))
    constant[1] = True
    assert_allclose(evidence.centres(state, features, 2, constant), (0.45, 0.0, 0.45, 0.45))
    state.spread = 0.0
    assert evidence.variance_of_rewards(state) == 4.0
    state.weight, state.squares, state.spread = 1.0, 40.0, 9.0
    assert evidence.variance_of_rewards(state) == 20.0


def test_the_first_of_the_constant_features_is_the_intercept(mode: str) -> None:
    state, features = np.zeros(1, evidence.STATE)[0], np.zeros(4, evidence.FEATURE)
    features["usual"][:] = 0.0, 5.0, 1.0, 2.0
    features["varied"][2] = 1
    state.weight = 7.0
    constant, intercept = evidence.constant_features(state, features)
    assert constant.tolist() == [False, True, False, True]
    assert intercept == 1
    state.weight = 1.0
    constant, intercept = evidence.constant_features(state, features)
    assert (constant.any(), intercept) == (False, -1)
    assert evidence.differs(5.1, 5.0)
    assert not evidence.differs(5.001, 5.0)
    assert evidence.differs(1e-40, 0.0)
