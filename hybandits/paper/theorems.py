"""The regret theorems of Das & Sinha 2024 as functions: burn-ins and explicit right-hand sides.

The theorems themselves hide their constants. The proofs in the appendix spell them out, and these are given here as
printed. They assume rewards with 1-subgaussian noise, |x|, |z| <= 1, |theta|, |beta_i| <= S, and pulled features that
have, given the past, mean 0, no correlation between x and z, and second moments of at least rho I. Logarithms are
natural.

Some of what is printed does not add up. It is listed here, so that nobody takes a slip of the paper for one of ours:

- gamma. LinUCB: S sqrt(K) in the body, 2 S sqrt(lambda K) in the appendix; the norm to be covered is S sqrt(K + 1), so
  the body's is too small. HyLinUCB: 2 S sqrt(K) in the body, 2 S sqrt(2 lambda) with lambda = K in the proof, sqrt(K S)
  and no factor 2 in the theorem restated above it. DisLinUCB: 2 sqrt(S) stands for sqrt(2) S, right for S <= 2 only.
- T_o. The lemma behind it adds up K terms, each of which may be 1 / (2 K). For an arm with fewer than T_m pulls the
  proof's own inequalities give 2 / (K sqrt(lambda rho)) at t = T_o: the 4 T_m should be 64 T_m. The proof also asks for
  lambda >= 1 / rho, and rho <= 1 / max(d1, d2) because |x|, |z| <= 1: impossible for lambda = 1 unless d1 = d2 = 1.
- The same lemma bounds all B_i at all t by Azuma's inequality, which is for one t; |B_i| > eps sqrt(tau) happens for
  every eps at some t. At lengths that can be played it does not matter.
- HyLinUCB's 2 T_o S takes rewards to lie in [-S, S]; x.theta + z.beta_i reaches 2 S, so it should be 4 T_o S.
- alpha(lambda) carries S where the proof needs the norm of the embedded features, at most sqrt(2); and it takes the
  largest eigenvalue of U^-1/2 A U^1/2, which is not symmetric, for its norm.
- DisLinUCB uses 2 (d1 + d2) tau log tau where the lemma it cites says 4; the smaller one is true for d1 + d2, tau >= 2.
- The theorems ask for T of order K^4 (up to logarithms); T_o grows like K^2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, get_args

import numpy as np

from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray

Policy = Literal["LinUCB", "HyLinUCB", "DisLinUCB"]

POLICIES: tuple[Policy, ...] = get_args(Policy)

_CHECKS: dict[str, Callable[[Any], Any]] = {
    "arms": lambda k: checks.count("arms", k, least=1, why="it is the number of arms K"),
    "horizon": lambda t: checks.count("horizon", t, least=1, why="it is the number of rounds T"),
    "delta": lambda delta: checks.probability("delta", delta, "it is a failure probability, e.g. 0.01"),
    "bound": lambda s: checks.positive("bound", s, "it bounds the norms of theta and every beta_i (S in the paper)"),
    "ridge": checks.ridge,
}

COUPLING_LIMIT = 0.5
"""The largest sigma_max(Z_t), the coupling of shared and own parameters, that the proofs allow."""


def prescribed_ridge(policy: Policy, *, arms: int) -> float:
    """lambda of the theorems: K for HyLinUCB, 1 for the others.

    >>> prescribed_ridge("HyLinUCB", arms=25), prescribed_ridge("LinUCB", arms=25)
    (25.0, 1.0)
    """
    _check(policy, arms=arms)
    return float(arms) if policy == "HyLinUCB" else 1.0


def gamma(
    policy: Policy, *, d1: int, d2: int, arms: int, horizon: int, ridge: float, delta: float, bound: float = 1.0
) -> float:
    """The exploration coefficient of the appendix; that of the paper's body is `hybandits.AsWritten`.

    LinUCB:     2 S sqrt(lambda K) + sqrt(2 (d1 + d2 K) log(T/delta))
    HyLinUCB:   2 (S sqrt(2 lambda) + sqrt(2 (d1 + d2) log(T/delta)))
    DisLinUCB:  2 sqrt(lambda S) + sqrt(2 (d1 + d2) log(K T/delta))

    The proofs take lambda = 1, K and 1; the first term of each says how it depends on lambda.
    """
    _check(policy, d1=d1, d2=d2, arms=arms, horizon=horizon, ridge=ridge, delta=delta, bound=bound)
    if policy == "LinUCB":
        return 2 * bound * math.sqrt(ridge * arms) + math.sqrt(2 * (d1 + d2 * arms) * math.log(horizon / delta))
    if policy == "HyLinUCB":
        return 2 * (bound * math.sqrt(2 * ridge) + math.sqrt(2 * (d1 + d2) * math.log(horizon / delta)))
    return 2 * math.sqrt(ridge * bound) + math.sqrt(2 * (d1 + d2) * math.log(arms * horizon / delta))


def eigenvalue_burn_in(*, d1: int, d2: int, arms: int, horizon: int, rho: float, delta: float) -> float:
    """T_m, the number of rows from which on the smallest eigenvalue of their sum is at least rho / 2 per row.

    T_m = (16/rho^2 + 8/(3 rho)) log(2 (d1 + d2) K T/delta)
    """
    _check(d1=d1, d2=d2, arms=arms, horizon=horizon, rho=rho, delta=delta)
    return (16 / rho**2 + 8 / (3 * rho)) * math.log(2 * (d1 + d2) * arms * horizon / delta)


def burn_in(policy: Policy, *, d1: int, d2: int, arms: int, horizon: int, rho: float, delta: float) -> float:
    """The burn-in T_o: the round from which on M_t lies between U_t/2 and 2 U_t, U_t being its block diagonal part.

    LinUCB, HyLinUCB:  T_o  = max(128/rho^2, 4 T_m) K^2 log((d1 + d2) K/delta)
    DisLinUCB:         T'_o = max(128/rho^2 log((d1 + d2) K/delta), T_m), counted in pulls of an arm

    Parameters are those of `regret_bound`. See the notes at the top of this module on the 4 T_m and on lambda >= 1/rho.

    Examples
    --------
    >>> round(burn_in("LinUCB", d1=5, d2=5, arms=10, horizon=30_000, rho=0.1, delta=0.01), -6)
    121000000.0
    """
    _check(policy)
    least = eigenvalue_burn_in(d1=d1, d2=d2, arms=arms, horizon=horizon, rho=rho, delta=delta)
    logarithm = math.log((d1 + d2) * arms / delta)
    if policy == "DisLinUCB":
        return max(128 / rho**2 * logarithm, least)
    return max(128 / rho**2, 4 * least) * arms**2 * logarithm


def coupling_bound(
    pulls: FloatArray, *, d1: int, d2: int, horizon: int, rho: float, ridge: float, delta: float
) -> FloatArray:
    """The key lemma's bound on sigma_max(Z_t) after t = sum_i tau_i rounds, tau_i of which went to arm i.

    sum_i sqrt(8 tau_i log((d1 + d2) K/delta)) / sqrt(rho t/2) / sqrt(rho tau_i/2, or lambda if tau_i < T_m)

    It is the proof's own inequality, before tau_i < T_m is put at T_m. Once every arm has T_m pulls, it is
    4 K sqrt(2 log((d1 + d2) K/delta)) / (rho sqrt t): at most 1/2 from t = 128/rho^2 K^2 log((d1 + d2) K/delta) on,
    without the 4 T_m of T_o and without lambda >= 1/rho.

    Parameters
    ----------
    pulls : array of shape (.., K)
        The pulls tau_i of every arm.
    d1, d2, horizon, rho, ridge, delta
        As for `regret_bound`.

    Returns
    -------
    array of shape (..)
        Infinite where t < T_m, since nothing is known of V_t yet.

    Examples
    --------
    >>> pulls = np.array([[100, 100], [50_000, 50_000]])
    >>> coupling_bound(pulls, d1=1, d2=1, horizon=100_000, rho=0.5, ridge=2.0, delta=0.1).round(3)
    array([  inf, 0.137])
    """
    pulls = np.asarray(pulls, dtype=float)
    arms = pulls.shape[-1]
    least = eigenvalue_burn_in(d1=d1, d2=d2, arms=arms, horizon=horizon, rho=rho, delta=delta)
    lam, t = checks.ridge(ridge), pulls.sum(axis=-1)
    own = np.where(pulls >= least, rho * pulls / 2, lam)
    terms = np.sqrt(8 * pulls * math.log((d1 + d2) * arms / delta) / own).sum(axis=-1)
    bound: FloatArray = np.where(t >= least, terms / np.sqrt(rho * np.maximum(t, 1.0) / 2), np.inf)
    return bound


def alpha(
    *, d1: int, d2: int, arms: int, horizon: int, rho: float, ridge: float, delta: float, bound: float = 1.0
) -> float:
    """alpha(lambda): what HyLinUCB's smaller gamma leaves uncovered is at most alpha(lambda)/sqrt(t) for t > T_o.

    alpha(lambda) = 4 K S sqrt(log(K (d1 + d2)/delta)) (sqrt(T_m/(rho lambda)) + sqrt(2)/rho)
                    (2 S sqrt(lambda K) + sqrt(2 (d1 + d2 K) log(T/delta)))/sqrt(lambda)
    """
    least = eigenvalue_burn_in(d1=d1, d2=d2, arms=arms, horizon=horizon, rho=rho, delta=delta)
    whole = gamma("LinUCB", d1=d1, d2=d2, arms=arms, horizon=horizon, ridge=ridge, delta=delta, bound=bound)
    logarithm = math.log(arms * (d1 + d2) / delta)
    growth = math.sqrt(least / (rho * ridge)) + math.sqrt(2) / rho
    return 4 * arms * bound * math.sqrt(logarithm) * growth * whole / math.sqrt(ridge)


def regret_bound(
    policy: Policy,
    *,
    d1: int,
    d2: int,
    arms: int,
    horizon: int,
    rho: float,
    ridge: float,
    delta: float,
    bound: float = 1.0,
) -> float:
    """The proofs' bound on the regret at T, which holds with probability at least 1 - 4 delta.

    LinUCB:     4 gamma sqrt((d1 + d2 K) T_o log T_o) + sqrt(8) gamma (2 K sqrt(d2 T_m log T_m) + sqrt(32 K T/rho))
    HyLinUCB:   2 T_o S + sqrt(8) gamma (2 K sqrt(d2 T_m log T_m) + sqrt(32 K T/rho)) + 4 alpha(lambda) sqrt(T)
    DisLinUCB:  2 gamma (K sqrt(2 (d1 + d2) T'_o log T'_o) + 4 sqrt(2) sqrt(K T/rho))

    The first two are derived for T > T_o, the third for every T (T'_o counts pulls of an arm).

    Parameters
    ----------
    policy : {"LinUCB", "HyLinUCB", "DisLinUCB"}
        The policy; the paper has theorems for no other.
    d1, d2, arms, horizon : int
        Numbers of shared and of own features, of arms K and of rounds T.
    rho : float
        Diversity: a lower bound of the features' second moments, at most 1.
    ridge : float
        lambda; the theorems have `prescribed_ridge`.
    delta : float
        Failure probability.
    bound : float
        S, which bounds the norms of theta and of every beta_i.

    Examples
    --------
    >>> round(regret_bound("DisLinUCB", d1=5, d2=5, arms=10, horizon=30_000, rho=0.1, ridge=1.0, delta=0.01), -3)
    2560000.0
    """
    world: dict[str, Any] = {"d1": d1, "d2": d2, "arms": arms, "horizon": horizon, "delta": delta}
    g = gamma(policy, ridge=ridge, bound=bound, **world)
    start = burn_in(policy, rho=rho, **world)
    if policy == "DisLinUCB":
        own = arms * math.sqrt(2) * _root(d1 + d2, start)
        return 2 * g * (own + 4 * math.sqrt(2) * math.sqrt(arms * horizon / rho))
    least = eigenvalue_burn_in(rho=rho, **world)
    later = math.sqrt(8) * g * (2 * arms * _root(d2, least) + math.sqrt(32 * arms * horizon / rho))
    if policy == "LinUCB":
        return 4 * g * _root(d1 + d2 * arms, start) + later
    uncovered = alpha(rho=rho, ridge=ridge, bound=bound, **world)
    return 2 * start * bound + later + 4 * uncovered * math.sqrt(horizon)


def trivial_bound(*, horizon: int, theta_bound: float, beta_bound: float) -> float:
    """The largest regret there can be: T times the largest gap, 2 (S1 + S2) T, as |x.theta + z.beta_i| <= S1 + S2.

    >>> trivial_bound(horizon=1000, theta_bound=0.8, beta_bound=0.5)
    2600.0
    """
    return 2 * (theta_bound + beta_bound) * horizon


def _root(dimension: int, rounds: float) -> float:
    """sqrt(d t log t), the elliptical potential's shape."""
    rounds = max(rounds, 1.0)
    return math.sqrt(dimension * rounds * math.log(rounds))


def _check(policy: str = POLICIES[0], **given: Any) -> None:
    """Refuse arguments for which the theorems say nothing."""
    if policy not in POLICIES:
        raise ValueError(f"policy must be one of {', '.join(POLICIES)}, got {policy!r}: the paper bounds no other")
    if "d1" in given:
        checks.dimensions(given["d1"], given["d2"])
    for name, check in _CHECKS.items():
        if name in given:
            check(given[name])
    if "rho" in given:
        checks.positive("rho", given["rho"], "it bounds second moments from below; without diversity there is no bound")
        if not 1e-50 <= given["rho"] <= 1:
            raise ValueError(
                f"rho must lie between 1e-50 and 1, got {given['rho']!r}: features have norms of at most 1"
            )
