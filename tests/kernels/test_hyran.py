"""The kernels of HyRan against dense matrices."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from hybandits.kernels import hyran
from tests.support.oracle import Dense
from tests.support.sums import ARMS, D1, D2, rows, summed


@pytest.mark.parametrize("ridge", [0.3, 20.0])
def test_solved_sums_are_the_dense_ridge_regression(mode: str, ridge: float) -> None:
    table, dense = summed(rows(0)), Dense(D1, D2, ARMS, ridge)
    for row in rows(0):
        dense.learn(*row)
    solved = table.estimate(ridge)
    assert_allclose(solved.theta, dense.parameters[:D1], rtol=1e-10)
    for i, arm in enumerate(ARMS[:4]):
        wanted = dense.parameters[D1 + i * D2 : D1 + (i + 1) * D2]
        assert_allclose(solved.beta[table.slot(arm)], wanted, rtol=1e-9)
    random = np.random.default_rng(9)
    x, z, slots = random.normal(size=(5, D1)), random.normal(size=(5, D2)), table.lookup(ARMS)
    mean, width = dense.score(ARMS, x, z)
    prediction = table.predict(x, z, slots, ridge)
    assert_allclose(prediction.mean, mean, rtol=1e-9, atol=1e-12)
    assert_allclose(prediction.width, width, rtol=1e-9)
    best, highest = hyran.best_mean(x, z, slots, solved.theta, solved.beta)
    assert (best, highest) == (mean.argmax(), pytest.approx(mean.max()))


def test_without_cross_blocks_the_parts_are_fitted_apart(mode: str) -> None:
    table = summed(rows(0), cross=False)
    solved = table.estimate(1.0)
    x, rewards = np.array([row[1] for row in rows(0)]), np.array([row[3] for row in rows(0)])
    assert_allclose(solved.theta, np.linalg.solve(np.eye(D1) + x.T @ x, x.T @ rewards), rtol=1e-10)
    own = [row for row in rows(0) if row[0] == "b"]
    z, mine = np.array([row[2] for row in own]), np.array([row[3] for row in own])
    w = np.eye(D2) + z.T @ z
    assert_allclose(solved.beta[table.slot("b")], np.linalg.solve(w, z.T @ mine), rtol=1e-10, atol=1e-13)
    width = table.predict(x[:1], z[:1], table.lookup(["b"]), 1.0).width[0]
    square = x[0] @ np.linalg.solve(np.eye(D1) + x.T @ x, x[0]) + z[0] @ np.linalg.solve(w, z[0])
    assert width == pytest.approx(np.sqrt(square))


@pytest.mark.parametrize("draw", [0.1, 0.9])
def test_a_round_adds_pseudo_rewards_or_the_played_arm_alone(mode: str, draw: float) -> None:
    """draw < p = 0.5: every candidate with its pseudo-reward; else the arm played alone."""
    table, wanted = summed(rows(0)), summed(rows(0))
    random = np.random.default_rng(4)
    x, z, slots = random.normal(size=(5, D1)), random.normal(size=(5, D2)), table.lookup(ARMS)
    solved = wanted.estimate(2.0)
    assert hyran.learn_round(3, 0.5, draw, 2.0, x, z, slots, 1.5, table.shared, table.own, *table.workspace())
    if draw > 0.5:
        hyran.add_row(slots[3], x[3], z[3], 1.5, wanted.shared, wanted.own)
    else:
        check = [hyran.mean_of(x[i], z[i], slots[i], solved.theta, solved.beta) for i in range(5)]
        check[3] = (1 - 1 / 0.5) * check[3] + 1.5 / 0.5
        for i in np.flatnonzero(slots >= 0):
            hyran.add_row(slots[i], x[i], z[i], check[i], wanted.shared, wanted.own)
    assert_allclose(table.shared, wanted.shared, rtol=1e-12, atol=1e-14)
    assert_allclose(table.own, wanted.own, rtol=1e-12, atol=1e-14)
