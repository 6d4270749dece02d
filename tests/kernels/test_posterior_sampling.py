"""Contenders: who is left out, joint draws against the posterior, places against draws of a dense one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hybandits import HyIDS, HyThompson
from hybandits.kernels import posterior_sampling, random
from hybandits.kernels.posterior_sampling import PAIRS
from hybandits.testing import ARMS, Page
from tests.support.blocks import Blocks
from tests.support.oracle import Dense
from tests.support.plain import plain

NOISE = 0.4


class Posterior:
    """A policy that has learned a few rows, one candidate of each arm, and their joint posterior by dense algebra."""

    def __init__(self, seed: int, rows: int = 15, d1: int = 4, d2: int = 3, n: int = 5) -> None:
        self.policy, self.arms = HyThompson(d1=d1, d2=d2, noise=NOISE, scale=1.0, seed=0), list(range(n))
        dense, random = Dense(d1, d2, self.arms, NOISE**2), np.random.default_rng(seed)
        for t in range(rows):
            row = t % (n - 1), random.standard_normal(d1), random.standard_normal(d2), float(random.standard_normal())
            self.policy.learn(*row)
            dense.learn(*row)
        self.x, self.z = random.standard_normal((n, d1)), random.standard_normal((n, d2))
        embedded = np.array([dense.embed(arm, self.x[arm], self.z[arm]) for arm in self.arms])
        self.mean = embedded @ dense.parameters
        self.covariance = NOISE**2 * embedded @ np.linalg.solve(dense.matrix, embedded.T)

    @property
    def arguments(self) -> tuple[Any, ...]:
        estimator = self.policy.estimator
        slots = estimator.lookup(self.arms)
        return self.x, self.z, slots, estimator.arm_score, estimator.shared_score, estimator.ridge, NOISE, np.empty(0)

    def count(self, apart: float, pairs: int, places: int, decision: int = 0) -> np.ndarray:
        counts = np.empty((len(self.arms), places))
        posterior_sampling.count_places(*self.arguments, apart, 1, 0, decision, pairs, counts)
        return counts

    def covariance_of_draws(self, among: Any) -> np.ndarray:
        """A A', where the deviations of contenders are A times the normals: one column of A from each unit vector."""
        d1, shared_score = self.x.shape[1], self.arguments[4]
        size = len(posterior_sampling.buffers_for_draws(among)[0]) // PAIRS
        unit, columns = np.eye(PAIRS * (size // PAIRS + 1)), []
        for first in range(0, size, PAIRS):
            deviations = np.empty((len(among.left), 2 * PAIRS))
            normals = np.ascontiguousarray(unit[:size, first : first + PAIRS]).reshape(-1)
            posterior_sampling.draw_deviations(among, d1, shared_score, NOISE, normals, deviations)
            assert_array_equal(deviations[:, PAIRS:], -deviations[:, :PAIRS])
            columns.append(deviations[:, :PAIRS])
        a = np.hstack(columns)
        covariance: np.ndarray = a @ a.T
        return covariance


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("apart", [0.5, 1.5, math.inf])
def test_those_who_may_be_the_best_are_left(seed: int, apart: float) -> None:
    problem = Posterior(seed)
    among = posterior_sampling.contenders(*problem.arguments, apart)
    best = int(problem.mean.argmax())
    variance = np.diag(problem.covariance) + problem.covariance[best, best] - 2 * problem.covariance[best]
    close = problem.mean[best] - problem.mean < apart * np.sqrt(variance) if apart < math.inf else np.full(5, True)
    close[best] = True
    left = among.left
    assert_array_equal(left, np.flatnonzero(close))
    assert left[among.at] == best
    assert_allclose(among.means, problem.mean[left], rtol=1e-9, atol=1e-12)
    assert not among.by_theta
    assert_allclose(problem.covariance_of_draws(among), problem.covariance[np.ix_(left, left)], rtol=1e-9, atol=1e-12)
    widths = [posterior_sampling.width_of(among, a, 4, problem.arguments[4]) for a in range(len(left))]
    assert_allclose(widths, np.sqrt(np.diag(problem.covariance)[left]) / NOISE, rtol=1e-9)


@pytest.mark.parametrize(("k", "d"), [(3, 4), (8, 4), (6, 10)])
def test_factors_are_those_of_the_covariance(k: int, d: int) -> None:
    random = np.random.default_rng(k)
    g, own = random.standard_normal((k, d)), random.random(k)
    g[1], own[:2] = g[0], 0.0
    factor = posterior_sampling.joint_factor(np.hstack((g, np.zeros((k, -d % 4)))), own)
    assert_allclose(factor @ factor.T, g @ g.T + np.diag(own), rtol=1e-9, atol=1e-9)
    assert_array_equal(factor[1, :1], factor[0, :1])


@pytest.mark.parametrize(("d1", "n", "apart"), [(70, 90, 1e3), (67, 75, 4.0), (66, 12, 1e3), (6, 80, 1e3)])
def test_draws_of_many_contenders_have_the_posterior_covariance(d1: int, n: int, apart: float) -> None:
    """Theta is drawn first where there are more than 64 contenders and features; otherwise G is factorised."""
    problem = Posterior(1, 150, d1, 1, n)
    among = posterior_sampling.contenders(*problem.arguments, apart)
    assert among.by_theta == (min(d1, n) > 64)
    left = among.left
    best = int(problem.mean.argmax())
    variance = np.diag(problem.covariance) + problem.covariance[best, best] - 2 * problem.covariance[best]
    assert set(left) >= set(np.flatnonzero(problem.mean[best] - problem.mean < apart * np.sqrt(variance)))
    assert left[among.at] == best
    assert_allclose(among.means, problem.mean[left], rtol=1e-9, atol=1e-12)
    assert_allclose(problem.covariance_of_draws(among), problem.covariance[np.ix_(left, left)], rtol=1e-8, atol=1e-10)
    width = posterior_sampling.width_of(among, among.at, d1, problem.arguments[4])
    assert_allclose(NOISE * width, np.sqrt(problem.covariance[best, best]), rtol=1e-9)


def test_products_with_normals(mode: str) -> None:
    """L_0' xi and sigma (F xi + s eta), with sizes that are not multiples of four and more columns than one block."""
    blocks, random = Blocks(70, 1).learn(), np.random.default_rng(0)
    normals = random.standard_normal((76, PAIRS))
    drawn = normals.copy()
    posterior_sampling.draw_theta(blocks.shared_score, 70, drawn.reshape(-1))
    root = blocks.triangle(blocks.shared_score, 70)
    assert_allclose(drawn, np.vstack((root.T @ normals[:70], normals[70:])), rtol=1e-11, atol=1e-12)
    factor, rows, roots = random.standard_normal((6, 70)), np.array([5, 0, 1, 3, 2]), random.random(5)
    for given in (roots, roots[:0]):
        deviations = np.empty((5, 2 * PAIRS))
        posterior_sampling.deviate(factor, rows, given, 0.7, normals.reshape(-1), deviations)
        own = given[:, None] * normals[70:75] if len(given) else 0.0
        assert_allclose(deviations[:, :PAIRS], 0.7 * (factor[rows] @ normals[:70] + own), rtol=1e-11, atol=1e-12)
        assert_array_equal(deviations[:, PAIRS:], -deviations[:, :PAIRS])


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
    counts = np.array([problem.count(5.0, 10, 1, decision)[:, 0] for decision in range(400)])
    shares = counts.mean(axis=0) / 20
    expected = problem.count(5.0, 50_000, 1)[:, 0] / 100_000
    assert (np.abs(shares - expected) < 5 * np.sqrt(expected * (1 - expected) / 8000) + 1e-3).all()
    assert len(np.unique(counts, axis=0)) > 1


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


def test_a_choice_has_the_mean_and_width_of_its_arm_and_the_frequency_of_its_mixture() -> None:
    """Estimates against the dense solve, and one decision's mixture, whose uniform number takes 50 values."""
    noise, scale = 1.0, 1.0
    policy = HyIDS(d1=4, d2=3, noise=noise, scale=scale, seed=0)
    dense, page = Dense(4, 3, ARMS, (noise / scale) ** 2), Page(4, 3)
    mixed = 0
    numbers = (np.arange(50) + 0.5) / 50
    for t in range(60):
        x, z = page.features(5)
        estimator, chances = policy.estimator, np.empty(5)
        state = estimator.lookup(ARMS), estimator.arm_score, estimator.shared_score, estimator.ridge, noise, np.empty(0)
        posterior_sampling.average_mixture(x, z, *state, 3, random.DECIDE, t, 1, chances)
        assert (chances > 0).sum() <= 2
        picks = [
            posterior_sampling.choose_by_information(x, z, *state, 3, random.DECIDE, t, u)[0] for u in numbers.tolist()
        ]
        assert_allclose(np.bincount(picks, minlength=5) / 50, chances, atol=1 / 50)
        mixed += (chances > 0).sum() == 2
        choice = policy.choose(x, z, ARMS)
        row = dense.embed(choice.arm, x[choice.index], z[choice.index])
        assert_allclose(choice.mean, row @ dense.parameters, rtol=1e-9, atol=1e-12)
        assert_allclose(choice.width, np.sqrt(row @ np.linalg.solve(dense.matrix, row)), rtol=1e-9)
        reward = page.reward(choice.index, x[choice.index], z[choice.index])
        policy.learn(choice.arm, x[choice.index], z[choice.index], reward)
        dense.learn(choice.arm, x[choice.index], z[choice.index], reward)
    assert mixed > 5


@pytest.mark.parametrize(("d1", "n"), [(4, 5), (66, 70)])
def test_mixtures_are_averaged_over_independent_sets(d1: int, n: int) -> None:
    """The sum over sets is that of sets drawn one by one; candidates beyond the contenders have probability 0."""
    problem = Posterior(5, 6, d1, 1, n)
    together, sets = np.empty(n), []
    posterior_sampling.average_mixture(*problem.arguments, 9, random.ESTIMATE, 5, 6, together)
    for s in range(6):
        sets.append(np.empty(n))
        purpose = random.ESTIMATE + random.PLACE * s
        posterior_sampling.average_mixture(*problem.arguments, 9, purpose, 5, 1, sets[-1])
    assert_allclose(together, np.mean(sets, axis=0), atol=1e-15)
    assert together.sum() == pytest.approx(1.0)
    assert len({one.tobytes() for one in sets}) > 1
