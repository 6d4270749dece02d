"""Contenders: who is left out, joint draws against the posterior, places against draws of a dense one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hybandits import HyIDS, HyThompson
from hybandits.kernels import posterior_sampling
from hybandits.testing import ARMS, Page
from tests.support.oracle import Dense
from tests.support.plain import plain

NOISE = 0.4


class Posterior:
    """A policy that has learned a few rows, five candidates, and their joint posterior by dense algebra."""

    def __init__(self, seed: int, rows: int = 15) -> None:
        self.policy = HyThompson(d1=4, d2=3, noise=NOISE, scale=1.0, seed=0)
        dense, page = Dense(4, 3, ARMS, NOISE**2), Page(4, 3, seed)
        for t in range(rows):
            x, z = page.features(1)
            row = ARMS[t % 4], x[0], z[0], page.reward(t % 4, x[0], z[0])
            self.policy.learn(*row)
            dense.learn(*row)
        self.x, self.z = page.features()
        embedded = np.array([dense.embed(arm, self.x[i], self.z[i]) for i, arm in enumerate(ARMS)])
        self.mean = embedded @ dense.parameters
        self.covariance = NOISE**2 * embedded @ np.linalg.solve(dense.matrix, embedded.T)

    @property
    def arguments(self) -> tuple[Any, ...]:
        estimator = self.policy.estimator
        slots = estimator.lookup(ARMS)
        return self.x, self.z, slots, estimator.arm_score, estimator.shared_score, estimator.ridge, NOISE, np.empty(0)

    def count(self, apart: float, pairs: int, places: int, decision: int = 0) -> np.ndarray:
        counts = np.empty((len(ARMS), places))
        posterior_sampling.count_places(*self.arguments, apart, 1, 0, decision, pairs, counts)
        return counts


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("apart", [0.5, 1.5, math.inf])
def test_those_who_may_be_the_best_are_left(seed: int, apart: float) -> None:
    problem = Posterior(seed)
    left, means, g, own, at = posterior_sampling.contenders(*problem.arguments, apart)
    best = int(problem.mean.argmax())
    variance = np.diag(problem.covariance) + problem.covariance[best, best] - 2 * problem.covariance[best]
    close = problem.mean[best] - problem.mean < apart * np.sqrt(variance) if apart < math.inf else np.full(5, True)
    close[best] = True
    assert_array_equal(left, np.flatnonzero(close))
    assert left[at] == best
    assert_allclose(means, problem.mean[left], rtol=1e-9, atol=1e-12)
    assert_allclose(NOISE**2 * (g @ g.T + np.diag(own)), problem.covariance[np.ix_(left, left)], rtol=1e-9, atol=1e-12)
    widths = [posterior_sampling.width_of(g[a], own[a]) for a in range(len(left))]
    assert_allclose(widths, np.sqrt(np.diag(problem.covariance)[left]) / NOISE, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("k", [3, 8])
def test_draws_have_the_posterior_covariance(k: int) -> None:
    """2,000 decisions of 64 draws; covariances within 6 standard errors of 64,000 pairs (false alarms below 1e-6)."""
    random = np.random.default_rng(k)
    g = np.zeros((k, 4))
    g[:, :4] = random.standard_normal((k, 4))
    own = random.random(k)
    sigma, n = 0.7, 2000
    draws = np.empty((k, 0))
    for decision in range(n):
        deviations = np.empty((k, 2 * posterior_sampling.PAIRS))
        posterior_sampling.draw_deviations(g, own, sigma, 1, 0, decision, deviations)
        draws = np.hstack((draws, deviations[:, : posterior_sampling.PAIRS]))
        assert_allclose(deviations[:, posterior_sampling.PAIRS :], -deviations[:, : posterior_sampling.PAIRS])
    covariance = sigma**2 * (g @ g.T + np.diag(own))
    error = np.sqrt((np.outer(np.diag(covariance), np.diag(covariance)) + covariance**2) / draws.shape[1])
    assert (np.abs(draws @ draws.T / draws.shape[1] - covariance) < 6 * error).all()


def test_every_coordinate_of_the_lattice_takes_every_level_once() -> None:
    where, steps = np.empty(70, np.int64), np.empty(70, np.int64)
    posterior_sampling.shift_lattice(1, 0, 3, 0, where, steps)
    start = where.copy()
    normals = np.empty(posterior_sampling.PAIRS * 70)
    taken = []
    for _ in range(32):
        posterior_sampling.lattice_normals(where, steps, normals)
        taken.append(normals.reshape(70, posterior_sampling.PAIRS).copy())
    levels = np.hstack(taken)[:, : posterior_sampling.POINTS]
    assert_array_equal(np.sort(levels, axis=1), np.tile(posterior_sampling.LEVELS, (70, 1)))
    assert len(set(steps.tolist())) == 70
    posterior_sampling.shift_lattice(1, 0, 3, 1, where, steps)
    assert (where != start).any()


@pytest.mark.slow
@pytest.mark.parametrize("rows", [3, 15, 60])
def test_places_are_taken_as_often_as_in_the_posterior(rows: int) -> None:
    """A million draws of the dense posterior; 4,000 here, which are good to 0.03 (four standard errors of as many
    independent ones)."""
    problem = Posterior(rows, rows)
    draws = np.random.default_rng(1).multivariate_normal(problem.mean, problem.covariance, 1_000_000)
    order = np.argsort(-draws, axis=1)
    expected = np.stack([np.bincount(order[:, place], minlength=5) for place in range(3)], axis=1) / len(draws)
    places = problem.count(math.inf, 2000, 3) / 4000
    assert_allclose(places, expected, atol=0.03)
    assert_allclose(places.sum(axis=0), 1.0, rtol=1e-12)
    assert_array_equal(problem.count(5.0, 2000, 1), problem.count(math.inf, 2000, 1))


def test_shifts_are_random_and_do_not_favour_anyone() -> None:
    """The mean over 400 shifts of 20 draws each lies within 5 standard errors of 8,000 draws (false alarms 1e-5)."""
    problem = Posterior(7)
    shares = np.mean([problem.count(5.0, 10, 1, decision) for decision in range(400)], axis=0)[:, 0] / 20
    expected = problem.count(5.0, 50_000, 1)[:, 0] / 100_000
    assert (np.abs(shares - expected) < 5 * np.sqrt(expected * (1 - expected) / 8000) + 1e-3).all()
    assert not np.array_equal(problem.count(5.0, 10, 1, 1), problem.count(5.0, 10, 1, 2))


def test_what_is_not_known_of_a_candidate_makes_it_win_half_of_all_draws() -> None:
    problem = Posterior(3)
    counts = np.empty((5, 1))
    wide = np.array([1e8, 0.0, 0.0, 0.0, 0.0])
    posterior_sampling.count_places(*problem.arguments[:-1], wide, 5.0, 1, 0, 0, 500, counts)
    assert 400 < counts[0, 0] < 600


@pytest.mark.parametrize("apart", [5.0, 0.0])
def test_places_compiled_and_plain(apart: float) -> None:
    problem = Posterior(4)
    compiled = problem.count(apart, 20, 1)
    with plain(), np.errstate(over="ignore"):
        interpreted = problem.count(apart, 20, 1)
    assert_array_equal(compiled, interpreted)
    assert compiled.sum() == 40


# ------------------------------------------------------------------ information-directed sampling


@pytest.mark.parametrize("seed", range(30))
def test_the_mixture_makes_the_ratio_smallest(seed: int) -> None:
    d_greedy, d_other, v_greedy, v_other = np.random.default_rng(seed).random(4)
    q = posterior_sampling.mixture(d_greedy, d_other, v_greedy, v_other)
    grid = np.linspace(0, 1, 2001)

    def ratio(share: np.ndarray | float) -> np.ndarray | float:
        return (d_greedy + share * (d_other - d_greedy)) ** 1.5 / (v_greedy + share * (v_other - v_greedy))

    if d_other > d_greedy:
        assert ratio(q) <= ratio(grid).min() * (1 + 1e-6)
    else:
        assert q == (1.0 if v_other > v_greedy else 0.0)
    assert posterior_sampling.mixture.py_func(d_greedy, d_other, v_greedy, v_other) == q


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
            q = posterior_sampling.mixture.py_func(d_greedy, d, explained[greedy], explained[a])
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
    rule = posterior_sampling.best_mixture if form == "compiled" else posterior_sampling.best_mixture.py_func
    assert_allclose(rule(deviations, means, greedy), plain_mixture(deviations, means, greedy), rtol=1e-12)


def test_a_choice_has_the_mean_width_and_chance_that_it_says() -> None:
    """The two arms of the mixture, their estimates against the dense solve, and their frequencies over keys."""
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
