"""Information-directed sampling: the mixture against a grid, draws against the posterior, the rule against its text."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from hybandits import HyIDS
from hybandits.kernels import information
from hybandits.testing import ARMS, Page
from tests.support.oracle import Dense


@pytest.mark.parametrize("seed", range(30))
def test_the_mixture_makes_the_ratio_smallest(seed: int) -> None:
    d_greedy, d_other, v_greedy, v_other = np.random.default_rng(seed).random(4)
    q = information.mixture(d_greedy, d_other, v_greedy, v_other)
    grid = np.linspace(0, 1, 2001)

    def ratio(share: np.ndarray | float) -> np.ndarray | float:
        return (d_greedy + share * (d_other - d_greedy)) ** 1.5 / (v_greedy + share * (v_other - v_greedy))

    if d_other > d_greedy:
        assert ratio(q) <= ratio(grid).min() * (1 + 1e-6)
    else:
        assert q == (1.0 if v_other > v_greedy else 0.0)
    assert information.mixture.py_func(d_greedy, d_other, v_greedy, v_other) == q


def plain_mixture(deviations: np.ndarray, means: np.ndarray, greedy: int) -> tuple[int, float]:
    """The rule as its text has it: D, v, and the best of all mixtures with one other arm."""
    values = means[:, None] + deviations
    winner = values.argmax(axis=0)
    d_greedy = (values.max(axis=0) - values[greedy]).mean()
    if d_greedy == 0:
        return greedy, 0.0
    explained = np.zeros(len(means))
    for b in set(winner.tolist()):
        explained += deviations[:, winner == b].sum(axis=1) ** 2 / (winner == b).sum() / deviations.shape[1]
    best = (d_greedy**1.5 / explained[greedy] if explained[greedy] > 0 else np.inf), greedy, 0.0
    for a in range(len(means)):
        if a != greedy:
            d = d_greedy + means[greedy] - means[a]
            q = information.mixture.py_func(d_greedy, d, explained[greedy], explained[a])
            v = explained[greedy] + q * (explained[a] - explained[greedy])
            if q > 0 and v > 0 and (d_greedy + q * (d - d_greedy)) ** 1.5 / v < best[0]:
                best = (d_greedy + q * (d - d_greedy)) ** 1.5 / v, a, q
    return best[1], best[2]


@pytest.mark.parametrize("form", ["compiled", "plain"])
@pytest.mark.parametrize("seed", range(20))
def test_the_best_mixture_is_that_of_the_text(seed: int, form: str) -> None:
    random = np.random.default_rng(seed)
    k = int(random.integers(2, 8))
    deviations, means = random.standard_normal((k, 64)), 0.5 * random.standard_normal(k)
    greedy = int(means.argmax())
    rule = information.best_mixture if form == "compiled" else information.best_mixture.py_func
    assert_allclose(rule(deviations, means, greedy), plain_mixture(deviations, means, greedy), rtol=1e-12)


def test_a_choice_has_the_mean_width_and_chance_that_it_says() -> None:
    """The two arms of the lot, their estimates against the dense solve, and their frequencies over keys."""
    noise, scale = 0.5, 1.0
    policy = HyIDS(d1=4, d2=3, noise=noise, scale=scale, seed=0)
    dense, page = Dense(4, 3, ARMS, (noise / scale) ** 2), Page(4, 3)
    mixed = 0
    for _ in range(60):
        x, z = page.features(5)
        chances = policy.propensities(x, z, ARMS)
        assert chances.sum() == pytest.approx(1.0)
        assert (chances > 0).sum() <= 2
        choice = policy.choose(x, z, ARMS)
        assert choice.propensity == chances[choice.index]
        row = dense.embed(choice.arm, x[choice.index], z[choice.index])
        assert_allclose(choice.mean, row @ dense.parameters, rtol=1e-9, atol=1e-12)
        assert_allclose(choice.width, np.sqrt(row @ np.linalg.solve(dense.matrix, row)), rtol=1e-9)
        mixed += (chances > 0).sum() == 2
        reward = page.reward(choice.index, x[choice.index], z[choice.index])
        policy.learn(choice.arm, x[choice.index], z[choice.index], reward)
        dense.learn(choice.arm, x[choice.index], z[choice.index], reward)
    assert mixed > 5


def test_an_arm_that_cannot_be_the_best_is_never_played() -> None:
    policy = HyIDS(d1=1, d2=0, noise=0.01, scale=1.0, seed=0)
    for _ in range(50):
        policy.learn("a", [1.0], None, 1.0)
    for i in range(50):
        choice = policy.choose([[1.0], [0.5]], arms=["a", "b"], key=i)
        assert (choice.arm, choice.propensity) == ("a", 1.0)
