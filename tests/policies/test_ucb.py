"""Upper confidence bounds: choices are those of the formulas, and gamma and the ridge those of the paper."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from hybandits import AsWritten, Constant, DisLinUCB, Greedy, HyLinUCB, LiHybrid, LinUCB, SelfNormalised
from hybandits.testing import ARMS, Page
from tests.support.oracle import Dense
from tests.support.radius import self_normalised_radius


@pytest.mark.parametrize(
    ("kind", "dimension", "size"),
    [
        (HyLinUCB, 4 + 3, math.sqrt(0.8**2 + 0.5**2)),
        (LinUCB, 4 + 3 * 5, math.sqrt(0.8**2 + 5 * 0.5**2)),
    ],
)
def test_choices_are_those_of_the_formulas(kind: Any, dimension: int, size: float) -> None:
    ridge, noise, delta, lx, lz = 0.3, 0.2, 0.05, 1.5, 0.7
    coefficient = SelfNormalised(noise=noise, bound=(0.8, 0.5), feature_bound=(lx, lz), delta=delta)
    policy = kind(d1=4, d2=3, exploration=coefficient, ridge=ridge, seed=0)
    page = Page(4, 3)
    dense = Dense(4, 3, ARMS, ridge)
    for t in range(80):
        x, z = page.features()
        mean, width = dense.score(ARMS, x, z)
        values = mean + width * self_normalised_radius(
            t, size=size, ridge=ridge, noise=noise, delta=delta, dimension=dimension, length=math.hypot(lx, lz)
        )
        choice = policy.choose(x, z, ARMS)
        i = choice.index
        assert values[i] == pytest.approx(max(values), rel=1e-9)
        reward = page.reward(i, x[i], z[i])
        policy.learn(choice.arm, x[i], z[i], reward)
        dense.learn(choice.arm, x[i], z[i], reward)


def test_the_number_of_arms_met_sizes_radius_and_ridge() -> None:
    free = HyLinUCB(d1=4, d2=3, exploration=AsWritten(horizon=1000))
    fixed = HyLinUCB(d1=4, d2=3, exploration=AsWritten(horizon=1000, arms=7))
    page = Page(4, 3)
    for t in range(40):
        x, z = page.features()
        arms = ARMS[:3] if t < 20 else ARMS
        choice = free.choose(x[: len(arms)], z[: len(arms)], arms)
        assert free.ridge == len(arms)
        for policy in (free, fixed):
            policy.learn(choice.arm, x[choice.index], z[choice.index], 0.1 * t)
    free.choose(*page.features(2), ["six", "seven"])
    assert free.ridge == 7.0
    assert free.radius == fixed.radius
    x, z = page.features()
    assert_allclose(free.predict(x, z, ARMS), fixed.predict(x, z, ARMS), rtol=1e-10)
    free.forget("six")
    assert free.ridge == 7.0, "a ridge is never lowered"

    shared = LinUCB(d1=4, d2=3, noise=0.1)
    before = shared.radius
    shared.choose(*page.features(5), ARMS)
    assert shared.radius > before


def test_constant_coefficients() -> None:
    page = Page(4, 3)
    li, same, greedy = (
        LiHybrid(d1=4, d2=3, alpha=0.7),
        HyLinUCB(d1=4, d2=3, exploration=Constant(alpha=0.7), ridge=1.0),
        Greedy(d1=4, d2=3),
    )
    for _ in range(30):
        x, z = page.features()
        choice = li.choose(x, z, ARMS)
        assert choice == same.choose(x, z, ARMS)
        assert greedy.choose(x, z, ARMS).index == int(np.argmax(greedy.predict(x, z, ARMS).mean))
        reward = page.reward(choice.index, x[choice.index], z[choice.index])
        for policy in (li, same, greedy):
            policy.learn(choice.arm, x[choice.index], z[choice.index], reward)


def test_the_ridge_given_counts_before_the_one_prescribed() -> None:
    policy = HyLinUCB(d1=1, d2=1, exploration=AsWritten(horizon=10, arms=9), ridge=2.0)
    policy.learn_batch(range(4), np.ones((4, 1)), np.ones((4, 1)), np.ones(4))
    assert policy.ridge == 2.0


def test_a_ridge_that_grows_goes_on_growing_after_loading(tmp_path: Path) -> None:
    policy = HyLinUCB(d1=1, d2=1, exploration=AsWritten(horizon=10))
    policy.learn_batch(range(4), np.ones((4, 1)), np.ones((4, 1)), np.ones(4))
    policy.save(tmp_path / "policy.npz")
    restored = HyLinUCB.load(tmp_path / "policy.npz")
    assert restored.ridge == 4.0
    restored.learn("new", [1.0], [1.0], 1.0)
    assert restored.ridge == 5.0


def test_greedy_takes_the_first_candidate_among_equals() -> None:
    policy = Greedy(d1=1, d2=1)
    assert policy.choose(np.ones((3, 1)), np.ones((3, 1)), ["b", "c", "a"]).arm == "b"


def test_disjoint_choices_are_those_of_the_formulas() -> None:
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


def test_errors_speak_of_the_features_that_were_given() -> None:
    policy = DisLinUCB(d1=2, d2=1)
    with pytest.raises(ValueError, match=r"z\[1, 0\] is nan"):
        policy.choose(np.ones((2, 2)), np.array([[1.0], [np.nan]]), ["a", "b"])
    with pytest.raises(ValueError, match=r"x\[0\] is inf"):
        policy.learn("a", [np.inf, 1.0], [1.0], reward=1.0)
