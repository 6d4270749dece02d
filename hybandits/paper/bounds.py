"""Bounds beside the paper's: the standard ones, a lower one that its assumption implies, and uniform choice."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from hybandits.experiments.record import Experiment
from hybandits.foundation.checks import FloatArray
from hybandits.paper import theorems
from hybandits.paper.theorems import Policy, Problem
from hybandits.simulation.rounds import Block
from hybandits.simulation.worlds import Synthetic, World

LONGEST = 10**300
"""The largest number of rounds at which bounds are compared."""

SAMPLED = 500_000
"""Candidates, over all environments, from which a regret per round is estimated."""


def standard_bound(policy: Policy, problem: Problem, *, bound: float = 1.0) -> float:
    """The regret bound of Abbasi-Yadkori et al. (2011, theorem 3) with lambda = 1, without any diversity.

    R(n, d, s) = 4 sqrt(n d log(lambda + n L^2/d)) (sqrt(lambda) s + sqrt(2 log(1/delta) + d log(1 + n L^2/(lambda d))))

    with L = sqrt(2), since |x|, |z| <= 1. LinUCB and HyLinUCB learn one vector of d1 + d2 K parameters of norm at most
    sqrt(K + 1) S, so theirs is R(T, d1 + d2 K, sqrt(K + 1) S). DisLinUCB learns K vectors of d1 + d2 parameters of norm
    at most sqrt(2) S. As R is concave in n, its bound is K R(T/K, d1 + d2, sqrt(2) S).

    >>> problem = Problem(d1=5, d2=5, arms=10, horizon=10**12, rho=0.2, delta=0.01)
    >>> round(theorems.regret_bound("DisLinUCB", problem, ridge=1.0) / standard_bound("DisLinUCB", problem), 2)
    0.68
    """
    k = problem.arms
    if policy == "DisLinUCB":
        return k * _ellipsoid_bound(problem.horizon / k, problem.d1 + problem.d2, math.sqrt(2) * bound, problem.delta)
    return _ellipsoid_bound(problem.horizon, problem.d1 + problem.d2 * k, math.sqrt(k + 1) * bound, problem.delta)


def _ellipsoid_bound(rounds: float, dimension: int, norm: float, delta: float) -> float:
    """R(n, d, s) of `standard_bound` with lambda = 1 and L^2 = 2."""
    logarithm = math.log1p(2 * rounds / dimension)
    radius = norm + math.sqrt(2 * math.log(1 / delta) + dimension * logarithm)
    return 4 * math.sqrt(rounds * dimension * logarithm) * radius


def most_diverse(experiment: Experiment, arms: int, *, delta: float) -> Problem:
    """The theorems' problem with the shape of an experiment and the largest rho that |x|, |z| <= 1 allow."""
    rho = 1 / max(experiment.d1, experiment.d2)
    return Problem(d1=experiment.d1, d2=experiment.d2, arms=arms, horizon=experiment.horizon, rho=rho, delta=delta)


def proved_bound(policy: Policy, problem: Problem) -> float:
    """The proof's bound on a policy's regret with the theorem's lambda, and S = 1."""
    return theorems.regret_bound(policy, problem, ridge=theorems.prescribed_ridge(policy, arms=problem.arms))


def ratio(policy: Policy, problem: Problem) -> float:
    """The proof's bound on a policy's regret divided by the standard one; below 1 the paper's is the better."""
    return proved_bound(policy, problem) / standard_bound(policy, problem)


def crossing(policy: Policy, problem: Problem) -> float | None:
    """The number of rounds from which on the paper's bound is below the standard one; None up to `LONGEST` rounds."""
    low, high = 0.0, math.log10(LONGEST)

    def better(exponent: float) -> bool:
        return ratio(policy, replace(problem, horizon=round(10**exponent))) < 1

    if not better(high):
        return None
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (low, middle) if better(middle) else (middle, high)
    return float(10**high)


class RegretPerRound(NamedTuple):
    """A regret per round, averaged over an experiment's environments, and the standard error of its estimate."""

    mean: float
    error: float


def forced_regret(experiment: Experiment, arms: int) -> RegretPerRound:
    """Estimate the least regret per round if the arm played has E x = 0.

    The assumption asks for E x = 0 given the past. Then x.theta adds nothing on average, and the expected reward is
    that of z.beta_i, at most E max_j z_j.beta_j. The regret per round is therefore at least

    E max_j (x_j.theta + z_j.beta_j) - E max_j z_j.beta_j
    """

    def lost(world: World, block: Block) -> FloatArray:
        if not isinstance(world, Synthetic):
            raise ValueError(f"the experiment's world must be linear, got {world!r}: theta and beta are needed")
        gaps: FloatArray = block.best - (block.means - block.rounds.x @ world.parameters()[0]).max(axis=1)
        return gaps

    return _estimate(experiment, arms, lost)


def uniform_regret(experiment: Experiment, arms: int) -> RegretPerRound:
    """Estimate the expected regret per round of uniform choice, E (max_j m_j - mean_j m_j) of the mean rewards m_j."""
    return _estimate(experiment, arms, lambda world, block: block.best - block.means.mean(axis=1))


def _estimate(experiment: Experiment, arms: int, lost: Callable[[World, Block], FloatArray]) -> RegretPerRound:
    """Average a loss over the first rounds of an experiment's environments."""
    rounds = min(SAMPLED // (arms * len(experiment.seeds)), experiment.horizon)
    worlds = [experiment.world(arms, seed) for seed in experiment.seeds]
    sampled = np.array([np.concatenate([lost(world, block) for block in world.rounds(rounds)]) for world in worlds])
    errors = sampled.std(axis=1, ddof=1) / math.sqrt(rounds)
    return RegretPerRound(float(sampled.mean()), float(np.sqrt((errors**2).sum())) / len(worlds))
