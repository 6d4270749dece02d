"""DisLinUCB: one regression per arm on (x, z) together, with a radius of its own."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hybandits import DisLinUCB, SelfNormalised
from hybandits.testing import ARMS, Page
from tests.support.oracle import Dense
from tests.support.radius import self_normalised_radius


def test_choices_are_those_of_the_formulas() -> None:
    ridge, noise, delta, lx, lz = 0.3, 0.2, 0.05, 1.5, 0.7
    coefficient = SelfNormalised(noise=noise, bound=(0.8, 0.5), feature_bound=(lx, lz), delta=delta)
    policy = DisLinUCB(d1=4, d2=3, exploration=coefficient, ridge=ridge, seed=0)
    page = Page(4, 3)
    dense = [Dense(0, 7, [0], ridge) for _ in ARMS]
    shape = {"size": math.hypot(0.8, 0.5), "dimension": 4 + 3, "length": math.hypot(lx, lz)}
    for _ in range(80):
        x, z = page.features()
        both = np.hstack([x, z])
        values = []
        for i, own in enumerate(dense):
            mean, width = own.score([0], x[i : i + 1, :0], both[i : i + 1])
            gamma = self_normalised_radius(len(own.rows), ridge=ridge, noise=noise, delta=delta, **shape)  # type: ignore[arg-type]
            values.append(mean[0] + gamma * width[0])
        choice = policy.choose(x, z, ARMS)
        i = choice.index
        assert values[i] == pytest.approx(max(values), rel=1e-9)
        reward = page.reward(i, x[i], z[i])
        policy.learn(choice.arm, x[i], z[i], reward)
        dense[i].learn(0, np.zeros(0), both[i], reward)


def test_arms_share_nothing() -> None:
    policy = DisLinUCB(d1=2, d2=1, noise=0.1)
    x, z = np.array([[1.0, 2.0], [3.0, -1.0]]), np.array([[0.5], [1.5]])
    before = policy.predict(x[:1], z[:1], ["b"])
    policy.learn("a", x[0], z[0], reward=3.0)
    assert_array_equal(policy.predict(x[:1], z[:1], ["b"]), before)
    assert policy.theta.shape == (0,)
    both = np.concatenate([x[0], z[0]])
    assert_allclose(policy.beta("a"), np.linalg.solve(np.eye(3) + np.outer(both, both), 3.0 * both))


def test_errors_speak_of_the_features_that_were_given() -> None:
    policy = DisLinUCB(d1=2, d2=1)
    with pytest.raises(ValueError, match=r"z\[1, 0\] is nan"):
        policy.choose(np.ones((2, 2)), np.array([[1.0], [np.nan]]), ["a", "b"])
    with pytest.raises(ValueError, match=r"x\[0\] is inf"):
        policy.learn("a", [np.inf, 1.0], [1.0], reward=1.0)
