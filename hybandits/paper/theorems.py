"""The regret theorems of Das & Sinha 2024 as functions: burn-ins and explicit right-hand sides.

The theorems themselves hide their constants. The proofs in the appendix spell them out, and these are given here as
printed. They assume rewards with 1-subgaussian noise, |x|, |z| <= 1, |theta|, |beta_i| <= S, and features of the arm
played that have, given the past, mean 0, no correlation between x and z, and second moments of at least rho I.
Logarithms are natural.

Some of what is printed does not add up. It is listed here, so that nobody takes a slip of the paper for one of ours:

- The assumption is about the arm played, whatever its number. The proofs use it for every arm by itself: that x z' has
  mean 0 in the rounds of arm i (for B_i), and that z z' is at least rho I there (for W_i). Neither follows.
- |x|, |z| <= 1 force rho <= 1 / max(d1, d2), so the "universal" constants, which hide 1 / sqrt(rho) and 1 / rho, grow
  with the dimension; `hybandits.paper.bounds` compares the bounds with the standard ones.
- The embedded features have norms up to sqrt(2), the lemmas on ellipsoids and on the elliptic potential ask for 1. The
  ellipsoids' last form, sqrt(2 d log(T/delta)), leaves slack for that; the potential's proof needs lambda >= 2.
- gamma. LinUCB: S sqrt(K) in the body, 2 S sqrt(lambda K) in the appendix; the norm to be covered is S sqrt(K + 1), so
  the body's is too small. HyLinUCB: 2 S sqrt(K) in the body, 2 S sqrt(2 lambda) with lambda = K in the proof, sqrt(K S)
  and no factor 2 in the theorem restated above it. DisLinUCB: 2 sqrt(S) stands for sqrt(2) S, right for S <= 2 only.
- HyLinUCB's lemma on the exploration bonus uses self-normalised bounds for V and for every W_i. These K + 1 bounds are
  not part of the event E whose probability is at least 1 - 4 delta. The same lemma has the norms of V and W_i where
  the inequality of Cauchy and Schwarz gives those of their inverses.
- T_o. The lemma behind it adds up K terms, each of which may be 1 / (2 K). For an arm with fewer than T_m pulls the
  proof's own inequalities give 2 / (K sqrt(lambda rho)) at t = T_o: the 4 T_m should be 64 T_m. The proof also asks for
  lambda >= 1 / rho, which is impossible for lambda = 1 unless d1 = d2 = 1.
- The same lemma bounds all B_i at all t by Azuma's inequality, which is for one t; |B_i| > eps sqrt(tau) happens for
  every eps at some t. At lengths that can be played it does not matter. Its exponent is printed with tau^2 for tau.
- HyLinUCB's 2 T_o S takes rewards to lie in [-S, S]; x.theta + z.beta_i reaches 2 S, so it should be 4 T_o S.
- alpha(lambda) carries S where the proof needs the norm of the embedded features; and it takes the largest eigenvalue
  of U^-1/2 A U^1/2, which is not symmetric, for its norm.
- DisLinUCB uses 2 (d1 + d2) tau log tau where the lemma it cites has 4. The smaller one is false: see `root_potential`.
- U_i,t in DisLinUCB's appendix is printed with its blocks B_i,t, which makes it equal to M_i,t.
- The introduction asks for T of order K^3, the theorems for K^4 (both up to logarithms); T_o grows like K^2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from hybandits.foundation import checks

Policy = Literal["LinUCB", "HyLinUCB", "DisLinUCB"]

POLICIES: tuple[Policy, ...] = get_args(Policy)

COUPLING_LIMIT = 0.5
"""The largest sigma_max(Z_t), the coupling of shared and own parameters, that the proofs allow."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """The quantities that all theorems depend on: shape, numbers of arms K and of rounds T, and failure probability.

    `rho` is the diversity, a lower bound of the features' second moments, at most 1.
    """

    d1: int
    d2: int
    arms: int
    horizon: int
    rho: float
    delta: float

    def __post_init__(self) -> None:
        checks.dimensions(self.d1, self.d2)
        checks.count("arms", self.arms, least=1, why="it is the number of arms K")
        checks.count("horizon", self.horizon, least=1, why="it is the number of rounds T")
        checks.probability("delta", self.delta, "it is a failure probability, e.g. 0.01")
        if not 1e-50 <= self.rho <= 1:
            raise ValueError(f"rho must lie between 1e-50 and 1, got {self.rho!r}: features have norms of at most 1")

    @property
    def logarithm(self) -> float:
        """log((d1 + d2) K/delta)."""
        return math.log((self.d1 + self.d2) * self.arms / self.delta)


def prescribed_ridge(policy: Policy, *, arms: int) -> float:
    """lambda of the theorems: K for HyLinUCB, 1 for the others.

    >>> prescribed_ridge("HyLinUCB", arms=25), prescribed_ridge("LinUCB", arms=25)
    (25.0, 1.0)
    """
    return float(arms) if policy == "HyLinUCB" else 1.0


def gamma(policy: Policy, problem: Problem, *, ridge: float, bound: float = 1.0) -> float:
    """The exploration coefficient of the appendix; that of the paper's body is `hybandits.AsWritten`.

    LinUCB:     2 S sqrt(lambda K) + sqrt(2 (d1 + d2 K) log(T/delta))
    HyLinUCB:   2 (S sqrt(2 lambda) + sqrt(2 (d1 + d2) log(T/delta)))
    DisLinUCB:  2 sqrt(lambda S) + sqrt(2 (d1 + d2) log(K T/delta))

    The proofs take lambda = 1, K and 1; the first term of each gives its dependence on lambda.
    """
    checks.ridge(ridge)
    checks.positive("bound", bound, "it bounds the norms of theta and every beta_i (S in the paper)")
    d1, d2, arms, horizon, delta = problem.d1, problem.d2, problem.arms, problem.horizon, problem.delta
    if policy == "LinUCB":
        return 2 * bound * math.sqrt(ridge * arms) + math.sqrt(2 * (d1 + d2 * arms) * math.log(horizon / delta))
    if policy == "HyLinUCB":
        return 2 * (bound * math.sqrt(2 * ridge) + math.sqrt(2 * (d1 + d2) * math.log(horizon / delta)))
    return 2 * math.sqrt(ridge * bound) + math.sqrt(2 * (d1 + d2) * math.log(arms * horizon / delta))


def eigenvalue_burn_in(problem: Problem) -> float:
    """T_m, the number of rows from which on the smallest eigenvalue of their sum is at least rho / 2 per row.

    T_m = (16/rho^2 + 8/(3 rho)) log(2 (d1 + d2) K T/delta)
    """
    rho = problem.rho
    rows = 2 * (problem.d1 + problem.d2) * problem.arms * problem.horizon
    return (16 / rho**2 + 8 / (3 * rho)) * math.log(rows / problem.delta)


def burn_in(policy: Policy, problem: Problem) -> float:
    """The burn-in T_o: the round from which on M_t lies between U_t/2 and 2 U_t, U_t being its block diagonal part.

    LinUCB, HyLinUCB:  T_o  = max(128/rho^2, 4 T_m) K^2 log((d1 + d2) K/delta)
    DisLinUCB:         T'_o = max(128/rho^2 log((d1 + d2) K/delta), T_m), counted in pulls of an arm

    See the notes at the top of this module on the 4 T_m and on lambda >= 1/rho.

    >>> problem = Problem(d1=5, d2=5, arms=10, horizon=30_000, rho=0.1, delta=0.01)
    >>> round(burn_in("LinUCB", problem), -6)
    121000000.0
    """
    least, rows = eigenvalue_burn_in(problem), 128 / problem.rho**2
    if policy == "DisLinUCB":
        return max(rows * problem.logarithm, least)
    return max(rows, 4 * least) * problem.arms**2 * problem.logarithm


def alpha(problem: Problem, *, ridge: float, bound: float = 1.0) -> float:
    """alpha(lambda): what HyLinUCB's smaller gamma leaves uncovered is at most alpha(lambda)/sqrt(t) for t > T_o.

    alpha(lambda) = 4 K S sqrt(log(K (d1 + d2)/delta)) (sqrt(T_m/(rho lambda)) + sqrt(2)/rho)
                    (2 S sqrt(lambda K) + sqrt(2 (d1 + d2 K) log(T/delta)))/sqrt(lambda)
    """
    linucb = gamma("LinUCB", problem, ridge=ridge, bound=bound)
    growth = math.sqrt(eigenvalue_burn_in(problem) / (problem.rho * ridge)) + math.sqrt(2) / problem.rho
    return 4 * problem.arms * bound * math.sqrt(problem.logarithm) * growth * linucb / math.sqrt(ridge)


def regret_bound(policy: Policy, problem: Problem, *, ridge: float, bound: float = 1.0) -> float:
    """The proofs' bound on the regret at T, which holds with probability at least 1 - 4 delta.

    LinUCB:     4 gamma sqrt((d1 + d2 K) T_o log T_o) + sqrt(8) gamma (2 K sqrt(d2 T_m log T_m) + sqrt(32 K T/rho))
    HyLinUCB:   2 T_o S + sqrt(8) gamma (2 K sqrt(d2 T_m log T_m) + sqrt(32 K T/rho)) + 4 alpha(lambda) sqrt(T)
    DisLinUCB:  2 gamma (K sqrt(2 (d1 + d2) T'_o log T'_o) + 4 sqrt(2) sqrt(K T/rho))

    The first two are derived for T > T_o, the third for every T (T'_o counts pulls of an arm). `ridge` is lambda; the
    theorems have `prescribed_ridge`. `bound` is S, which bounds the norms of theta and of every beta_i.

    Examples
    --------
    >>> problem = Problem(d1=5, d2=5, arms=10, horizon=30_000, rho=0.1, delta=0.01)
    >>> round(regret_bound("DisLinUCB", problem, ridge=1.0), -3)
    2560000.0
    """
    d1, d2, arms, horizon, rho = problem.d1, problem.d2, problem.arms, problem.horizon, problem.rho
    g, start = gamma(policy, problem, ridge=ridge, bound=bound), burn_in(policy, problem)
    if policy == "DisLinUCB":
        own = arms * math.sqrt(2) * root_potential(d1 + d2, start)
        return 2 * g * (own + 4 * math.sqrt(2) * math.sqrt(arms * horizon / rho))
    least = eigenvalue_burn_in(problem)
    later = math.sqrt(8) * g * (2 * arms * root_potential(d2, least) + math.sqrt(32 * arms * horizon / rho))
    if policy == "LinUCB":
        return 4 * g * root_potential(d1 + d2 * arms, start) + later
    return 2 * start * bound + later + 4 * alpha(problem, ridge=ridge, bound=bound) * math.sqrt(horizon)


def stated_order(policy: Policy, problem: Problem) -> float:
    """The order of the regret as the theorems state it, with its logarithms and with 1 for the universal constants.

    LinUCB:     sqrt((d1 + d2 K) K T log(T/delta))
    HyLinUCB:   sqrt(K^3 T log(K (d1 + d2)/delta)) + sqrt((d1 + d2 K) K T log(K T (d1 + d2)/delta))
    DisLinUCB:  sqrt((d1 + d2) K T log(K T/delta))

    >>> problem = Problem(d1=5, d2=5, arms=10, horizon=30_000, rho=0.1, delta=0.01)
    >>> [round(stated_order(policy, problem), -1) for policy in POLICIES]
    [15690.0, 34570.0, 7190.0]
    """
    d, arms, horizon, delta = problem.d1 + problem.d2, problem.arms, problem.horizon, problem.delta
    if policy == "DisLinUCB":
        return math.sqrt(d * arms * horizon * math.log(arms * horizon / delta))
    squared = (problem.d1 + problem.d2 * arms) * arms * horizon
    if policy == "LinUCB":
        return math.sqrt(squared * math.log(horizon / delta))
    unexplored = math.sqrt(arms**3 * horizon * problem.logarithm)
    return unexplored + math.sqrt(squared * math.log(arms * horizon * d / delta))


def root_potential(dimension: int, rounds: float) -> float:
    """sqrt(d t log t), which times 2 bounds the sum of t norms |x_s|_{M^-1} in d dimensions, M before row s.

    This is the paper's elliptic potential lemma after Cauchy and Schwarz, for |x_s| <= 1 and lambda >= 1. DisLinUCB's
    proof has sqrt(2) in place of 2. That is false for its rows (x, z): with d1 = d2 = 1, lambda = 1 and the rows
    (1, 1) and (1, -1), each norm is sqrt(2).

    >>> [round(factor * root_potential(2, 2), 3) for factor in (math.sqrt(2), 2)]     # the sum is 2 sqrt(2) = 2.828
    [2.355, 3.33]
    """
    rounds = max(rounds, 1.0)
    return math.sqrt(dimension * rounds * math.log(rounds))
