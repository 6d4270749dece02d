"""Bounds beside the paper's: the standard ones without its assumption, and a lower one that the assumption implies."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from hybandits.experiments.record import Experiment
from hybandits.foundation.checks import FloatArray
from hybandits.paper import theorems
from hybandits.paper.theorems import Policy, Problem
from hybandits.simulation.worlds import Synthetic

LONGEST = 10**300
"""The largest number of rounds at which bounds are compared."""

SAMPLED = 100_000
"""Candidates of every environment from which the lower bound on regret is estimated."""


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


def ratio(policy: Policy, problem: Problem) -> float:
    """The proof's bound on a policy's regret divided by the standard one; below 1 the paper's is the better."""
    ridge = theorems.prescribed_ridge(policy, arms=problem.arms)
    return theorems.regret_bound(policy, problem, ridge=ridge) / standard_bound(policy, problem)


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


class ForcedRegret(NamedTuple):
    """The least regret per round if the arm played has E x = 0, and the standard error of its estimate."""

    mean: float
    error: float


def forced_regret(experiment: Experiment, arms: int) -> ForcedRegret:
    """Estimate the regret per round that E x = 0 of the arm played forces, averaged over an experiment's environments.

    The assumption asks for E x = 0 given the past. Then x.theta earns nothing on average, and the expected reward is
    that of z.beta_i, at most E max_j z_j.beta_j. The regret per round is therefore at least

    E max_j (x_j.theta + z_j.beta_j) - E max_j z_j.beta_j

    which is estimated from the first rounds of every environment.
    """
    gaps = []
    for seed in experiment.seeds:
        world = experiment.world(arms, seed)
        if not isinstance(world, Synthetic):
            raise ValueError(f"the experiment's world must be linear, got {world!r}: theta and beta are needed")
        theta, _ = world.parameters()
        blocks = world.rounds(min(SAMPLED // arms, experiment.horizon))
        gaps.append(np.concatenate([best - (means - rounds.x @ theta).max(axis=1) for rounds, means, best in blocks]))
    sampled: FloatArray = np.array(gaps)
    errors = sampled.std(axis=1, ddof=1) / math.sqrt(sampled.shape[1])
    return ForcedRegret(float(sampled.mean()), float(np.sqrt((errors**2).sum())) / len(gaps))
