"""Thompson sampling: draws are from the joint posterior, and propensities are frequencies of choices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from hybandits import (
    HyThompson,
)
from hybandits.kernels import arrow, decisions, random
from hybandits.testing import ARMS, Page
from tests.support.oracle import Dense


@pytest.mark.slow
def test_posterior_samples_have_the_joint_posterior_mean_and_covariance() -> None:
    """20,000 joint draws of five arms' scores; mean and covariance within 6 standard errors (false alarms < 1e-6)."""
    noise, scale = 0.5, 1.5
    policy = HyThompson(d1=4, d2=3, noise=noise, scale=scale, seed=0)
    page = Page(4, 3)
    dense = Dense(4, 3, ARMS, noise**2 / scale**2)
    for t in range(15):
        x, z = page.features(1)
        row = ARMS[t % 4], x[0], z[0], page.reward(t % 4, x[0], z[0])
        policy.learn(*row)
        dense.learn(*row)
    x, z = page.features()
    embedded = np.array([dense.embed(arm, x[i], z[i]) for i, arm in enumerate(ARMS)])
    mean = embedded @ dense.parameters
    covariance = noise**2 * embedded @ np.linalg.solve(dense.matrix, embedded.T)
    # Joint draws, against those from the dense posterior.
    n = 20_000
    rows = policy.estimator.checked_candidates(x, z, ARMS, admit=False)
    y, square, product = np.empty((5, 4)), np.empty(5), np.empty(5)
    arrow.eliminate_rows(x, z, rows.slots, policy.estimator.arm_score, policy.ridge, y, square, product)
    theta_root = np.linalg.inv(np.linalg.cholesky(np.linalg.inv(np.linalg.inv(dense.matrix)[:4, :4])).T)
    scores = np.empty((n, 5))
    wins = np.zeros(5)
    for k in range(n):
        xi = np.empty(4 + 5)
        random.fill_normals(1, 0, k, xi)
        theta = policy.theta + noise * theta_root @ xi[:4]
        scores[k] = y @ theta + product + noise * np.sqrt(square) * xi[4:]
        if k < 4000:
            values = np.empty(5)
            decisions.sample_values(y, 4, square, product, policy.estimator.shared_score, noise, 1, 0, k, values)
            assert_allclose(values, scores[k], rtol=1e-9, atol=1e-12)
        wins[int(np.argmax(scores[k]))] += 1
    error = np.sqrt(np.diag(covariance) / n)
    assert (np.abs(scores.mean(axis=0) - mean) < 6 * error).all()
    spread = np.sqrt((np.outer(np.diag(covariance), np.diag(covariance)) + covariance**2) / n)
    assert (np.abs(np.cov(scores.T) - covariance) < 6 * spread).all()
    reference = np.random.default_rng(2).multivariate_normal(mean, covariance, size=n)
    expected = np.bincount(reference.argmax(axis=1), minlength=5) / n
    assert (np.abs(wins / n - expected) < 6 * np.sqrt(2 * expected.clip(1e-3) / n)).all()


@pytest.mark.parametrize("memory", [100, "auto"])
def test_told_policies_that_forget_draw_as_wide_as_others(memory: Any) -> None:
    """Before the first reward, and with a memory so long that nothing is forgotten."""
    shape: dict[str, Any] = {"d1": 0, "d2": 2, "noise": 1.0, "scale": 1.0, "seed": 0}
    z = np.ones((4, 2))
    policy = HyThompson(**shape, memory=memory)
    chosen = {policy.choose(None, z, [0, 1, 2, 3], key=key).index for key in range(50)}
    assert len(chosen) == 4
    assert (np.abs(policy.propensities(None, z, [0, 1, 2, 3]) - 0.25) < 0.05).all()
    long, never = (HyThompson(**{**shape, "d1": 2}, memory=memory) for memory in (1e15, None))
    x = np.random.default_rng(0).standard_normal((4, 2))
    for each in (long, never):
        for i in range(6):
            each.learn(i % 3, x[i % 4], z[0], float(i))
    choices = [[each.choose(x, z, [0, 1, 2, 3], key=key).index for key in range(200)] for each in (long, never)]
    assert choices[0] == choices[1]


@pytest.mark.slow
def test_thompson_propensities_are_sampled_frequencies_and_leave_decisions_alone() -> None:
    """Choices of 3,000 policies that differ in nothing but the seed; frequencies within 6 standard errors."""
    page = Page(4, 3)
    x, z = page.features()
    log = [(ARMS[t % 5], *(part[0] for part in page.features(1)), 0.1 * t) for t in range(10)]
    counts = np.zeros(5)
    n = 3000
    for seed in range(n):
        policy = HyThompson(d1=4, d2=3, noise=0.5, seed=seed)
        for row in log:
            policy.learn(*row)
        counts[policy.choose(x, z, ARMS).index] += 1
    frequencies = counts / n
    teller = HyThompson(d1=4, d2=3, noise=0.5, propensity_draws=4000, seed=0)
    quiet = HyThompson(d1=4, d2=3, noise=0.5, seed=0)
    for row in log:
        teller.learn(*row)
        quiet.learn(*row)
    p = teller.propensities(x, z, ARMS)
    assert (np.abs(p - frequencies) < 6 * np.sqrt(2 * frequencies.clip(1e-3) / n)).all()
    for _ in range(5):
        a, b = teller.choose(x, z, ARMS), quiet.choose(x, z, ARMS)
        assert a.index == b.index
        assert b.propensity is None
        assert a.propensity == pytest.approx(p[a.index], abs=6 * math.sqrt(0.25 / 4000) * 1.5)
