"""A long run of the estimator that learns its settings, against the dense model in extended precision.

Features and rewards are whole numbers times powers of two, small enough that every sum of products is exact in a
double. So the normal equations of (theta, m, delta_1, .., delta_K) are known without any error. The reference finds the
settings by the same fixed point with fifty digits, starting from those found in doubles, and solves at them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import mpmath
import numpy as np
from numpy.typing import NDArray

from hybandits.estimators.learned import LearnedRidge
from hybandits.kernels import evidence

BITS = 10
DIGITS = 50
SETTLED = 1e-16
"""Relative change in a step at which the reference's settings count as found."""
MOST_STEPS = 500

Number = Any
"""mpmath.mpf, which has no types."""


@dataclass(frozen=True, kw_only=True)
class LearnedSoak:
    """One long run. Columns are scaled by powers of two from 2^-widest to 2^widest, which must not change results."""

    name: str
    d1: int
    d2: int
    arms: int
    rows: int
    widest: int
    overlap: bool
    """True if z repeats the first features of x, so that only the priors tell theta from what arms have in common."""
    target: float
    noise: float = 0.25
    chunk: int = 100_000
    seed: int = 0

    def sizes(self, d: int) -> NDArray[np.float64]:
        steps = np.round(np.linspace(-self.widest, self.widest, d)).astype(np.int64)
        sizes: NDArray[np.float64] = 2.0 ** (np.random.default_rng((self.seed, d)).permutation(steps) - BITS)
        return sizes


class LearnedOutcome(NamedTuple):
    """The largest relative errors; theta, m and means are taken relative to the largest of their kind."""

    rows: int
    noise: float
    scales: float
    common_mean: float
    theta: float
    means: float
    widths: float

    @property
    def worst(self) -> float:
        """The largest of them."""
        return max(self[1:])


class Settings(NamedTuple):
    """sigma^2, s1, s2 (d2) and s_m."""

    sigma2: Number
    s1: Number
    s2: list[Number]
    sm: Number

    def flat(self) -> list[Number]:
        return [self.sigma2, self.s1, *self.s2, self.sm]


class Sums:
    """Exact sums over the rows: X'X, X'r and r'r of the stacked features, and what the centres need."""

    def __init__(self, d1: int, d2: int, arms: int) -> None:
        self.d1, self.d2, self.arms = d1, d2, arms
        p = d1 + d2 + arms * d2
        self.gram, self.moment = np.zeros((p, p)), np.zeros(p)
        self.rows, self.total, self.squares = 0, 0.0, 0.0
        self.seen = np.zeros(d1 + d2, np.int64)

    def add(self, arms: NDArray[np.int64], x: NDArray[Any], z: NDArray[Any], rewards: NDArray[Any]) -> None:
        """Take in rows of whole numbers."""
        d1, d2 = self.d1, self.d2
        shared = np.concatenate((x, z), axis=1).astype(float)
        p = d1 + d2
        self.gram[:p, :p] += shared.T @ shared
        self.moment[:p] += shared.T @ rewards
        for arm in range(self.arms):
            rows = shared[arms == arm]
            own = slice(p + arm * d2, p + (arm + 1) * d2)
            crossed = rows[:, d1:].T @ rows
            self.gram[own, :p] += crossed
            self.gram[own, own] += crossed[:, d1:]
            self.moment[own] += rows[:, d1:].T @ rewards[arms == arm]
        self.rows += len(rewards)
        self.total += float(rewards.sum())
        self.squares += float(rewards @ rewards)
        self.seen += (shared != 0).sum(axis=0)
        if max(np.abs(self.gram).max(), np.abs(self.moment).max(), self.squares) >= 2**53:
            raise AssertionError("the reference itself is no longer exact: use fewer bits or fewer rows")


class Dense:
    """The model by dense algebra with many digits, in the units of features and rewards."""

    def __init__(self, sums: Sums, units: Sequence[float]) -> None:
        d1, d2, arms = sums.d1, sums.d2, sums.arms
        self.d1, self.d2, self.arms, self.rows = d1, d2, arms, sums.rows
        unit = [mpmath.mpf(float(each)) for each in (*units, *(arms * list(units[d1:])))]
        of_reward = mpmath.mpf(2) ** -BITS
        self.gram = [
            [mpmath.mpf(int(sums.gram[i, j])) * unit[i] * unit[j] for j in range(i + 1)] for i in range(len(unit))
        ]
        self.moment = [mpmath.mpf(int(sums.moment[i])) * unit[i] * of_reward for i in range(len(unit))]
        self.squares = mpmath.mpf(int(sums.squares)) * of_reward**2
        mean = mpmath.mpf(int(sums.total)) * of_reward / sums.rows
        v = self.squares / sums.rows
        self.spread = spread = v - mean**2
        active_x, active_z = (mpmath.mpf(int(part.sum())) / sums.rows for part in np.split(sums.seen, [d1]))
        self.centres = spread / 3, spread / 3 / active_x, spread / 3 / active_z, v / 3 / active_z
        self.weight = [self.gram[k][k] / int(sums.seen[k]) for k in range(d1 + d2)]

    def ridges(self, at: Settings) -> list[Number]:
        """The ridge of every entry of (theta, m, delta_1, ..)."""
        w1, w2 = self.weight[: self.d1], self.weight[self.d1 :]
        shared = [at.sigma2 * w / at.s1 for w in w1] + [at.sigma2 * w / at.sm for w in w2]
        return shared + self.arms * [at.sigma2 * w / s for w, s in zip(w2, at.s2, strict=True)]

    def step(self, at: Settings) -> tuple[Settings, list[Number]]:
        """One fixed-point step, and m."""
        d1, d2 = self.d1, self.d2
        ridge = self.ridges(at)
        inverse = invert(cholesky(self.gram, ridge))
        n = len(ridge)
        half = [mpmath.fdot(inverse[i][: i + 1], self.moment[: i + 1]) for i in range(n)]
        estimate = [mpmath.fdot([inverse[i][j] for i in range(j, n)], half[j:]) for j in range(n)]
        known = [1 - ridge[j] * mpmath.fsum(inverse[i][j] ** 2 for i in range(j, n)) for j in range(n)]
        weight = self.weight + (self.arms - 1) * self.weight[d1:] + self.weight[d1:]
        sizes = [w * e**2 for w, e in zip(weight, estimate, strict=True)]
        c_sigma, c_1, c_2, c_m = self.centres
        penalty = mpmath.fsum(r * e**2 for r, e in zip(ridge, estimate, strict=True))
        errors = self.squares - mpmath.fdot(half, half) - penalty + evidence.LEAST_ERRORS * self.spread
        own = [slice(d1 + d2 + k, n, d2) for k in range(d2)]
        common = half_cauchy(mpmath.fsum(sizes[d1 + d2 :]), mpmath.fsum(known[d1 + d2 :]), mpmath.fsum(at.s2) / d2, c_2)
        after = Settings(
            half_cauchy(errors, self.rows - mpmath.fsum(known), at.sigma2, c_sigma),
            half_cauchy(mpmath.fsum(sizes[:d1]), mpmath.fsum(known[:d1]), at.s1, c_1),
            [
                half_cauchy(mpmath.fsum(sizes[part]), mpmath.fsum(known[part]), s, common)
                for part, s in zip(own, at.s2, strict=True)
            ],
            half_cauchy(mpmath.fsum(sizes[d1 : d1 + d2]), mpmath.fsum(known[d1 : d1 + d2]), at.sm, c_m),
        )
        return after, estimate[d1 : d1 + d2]

    def settle(self, start: Settings) -> tuple[Settings, list[Number]]:
        """The fixed point that the steps lead to, and m there."""
        at = start
        for _ in range(MOST_STEPS):
            after, m = self.step(at)
            moved = max(abs(a - b) / a for a, b in zip(after.flat(), at.flat(), strict=True))
            at = after
            if moved <= SETTLED:
                return at, m
        raise AssertionError(f"the reference did not settle in {MOST_STEPS} steps")

    def posterior(self, at: Settings, m: list[Number]) -> tuple[list[list[Number]], list[Number]]:
        """L = R^-T and the estimate of (theta, beta_1, ..) as the estimator uses them for scoring.

        Every beta has the prior mean m, and varies around it by s2 / w and by what is not known of m.
        """
        d1, d2 = self.d1, self.d2
        ridge = self.ridges(at)
        whole = invert(cholesky(self.gram, ridge))
        varies = mpmath.matrix(d2, d2)
        for k in range(d2):
            for j in range(d2):
                last = range(d1 + max(j, k), len(ridge))
                varies[k, j] = mpmath.fsum(whole[i][d1 + k] * whole[i][d1 + j] for i in last)
            varies[k, k] += 1 / ridge[d1 + d2 + k]
        precision = mpmath.inverse(varies)
        pull = [mpmath.fsum(precision[k, j] * m[j] for j in range(d2)) for k in range(d2)]
        kept = [*range(d1), *range(d1 + d2, len(self.moment))]
        gram = [[self.gram[i][j] for j in kept[: a + 1]] for a, i in enumerate(kept)]
        right = [self.moment[i] for i in kept]
        for arm in range(self.arms):
            first = d1 + arm * d2
            for k in range(d2):
                right[first + k] += pull[k]
                for j in range(k + 1):
                    gram[first + k][first + j] += precision[k, j]
        inverse = invert(cholesky(gram, ridge[:d1] + [mpmath.mpf(0)] * (self.arms * d2)))
        n = len(kept)
        half = [mpmath.fdot(inverse[i][: i + 1], right[: i + 1]) for i in range(n)]
        return inverse, [mpmath.fdot([inverse[i][j] for i in range(j, n)], half[j:]) for j in range(n)]


def half_cauchy(squares: Number, count: Number, s: Number, c: Number) -> Number:
    """The fixed-point step of a variance, see `hybandits.kernels.evidence`."""
    return (squares + s * c / (c + s)) / (count + s / (c + s))


def cholesky(gram: list[list[Number]], ridge: list[Number]) -> list[list[Number]]:
    """The lower triangle of gram + diag(ridge) = C C', row by row."""
    factor: list[list[Number]] = []
    for i, row in enumerate(gram):
        done: list[Number] = []
        for j in range(i + 1):
            total = row[j] + (ridge[i] if i == j else 0) - mpmath.fdot(done, factor[j][:j] if j < i else done)
            done.append(mpmath.sqrt(total) if i == j else total / factor[j][j])
        factor.append(done)
    return factor


def invert(factor: list[list[Number]]) -> list[list[Number]]:
    """C^-1 of a lower triangle, row by row."""
    n = len(factor)
    columns: list[list[Number]] = []
    for j in range(n):
        column = [1 / factor[j][j]]
        for i in range(j + 1, n):
            column.append(-mpmath.fdot(factor[i][j:i], column) / factor[i][i])
        columns.append(column)
    return [[columns[j][i - j] for j in range(i + 1)] for i in range(n)]


def run(soak: LearnedSoak, say: Callable[[str], None] = lambda line: None) -> LearnedOutcome:
    """Learn all rows, refresh, and compare everything that was learned with the reference."""
    with mpmath.workdps(DIGITS):
        return _run(soak, say)


def _run(soak: LearnedSoak, say: Callable[[str], None]) -> LearnedOutcome:
    random = np.random.default_rng(soak.seed)
    d1, d2, arms = soak.d1, soak.d2, soak.arms
    size_x, size_z = soak.sizes(d1), soak.sizes(d2)
    estimator, sums = LearnedRidge(d1=d1, d2=d2), Sums(d1, d2, arms)
    theta = random.normal(size=d1) / 2**BITS
    beta = (1 + 0.5 * random.normal(size=(arms, d2))) / 2**BITS

    def whole(n: int, d: int) -> NDArray[np.int64]:
        numbers: NDArray[np.int64] = random.integers(-(2**BITS), 2**BITS, (n, d), endpoint=True)
        return numbers

    for start in range(0, soak.rows, soak.chunk):
        n = min(soak.chunk, soak.rows - start)
        x, z, played = whole(n, d1), whole(n, d2), random.integers(0, arms, n)
        if soak.overlap:
            z = x[:, :d2]
        mean = x @ theta + np.einsum("td,td->t", z, beta[played])
        rewards = np.round(2**BITS * (mean + soak.noise * random.normal(size=n)))
        estimator.learn_batch(played.tolist(), x * size_x, z * size_z, rewards / 2**BITS)
        sums.add(played, x, z, rewards)
        say(f"{soak.name}: {start + n:,} rows learned")
    estimator.refresh()
    state, features = estimator.models[0].state, estimator.models[0].arrays.features
    ours = Settings(
        mpmath.mpf(float(state.sigma2)), mpmath.mpf(float(features["scale"][0])),
        [mpmath.mpf(float(each)) for each in features["s2"][d1:]], mpmath.mpf(float(features["scale"][d1])),
    )  # fmt: skip
    dense = Dense(sums, [*size_x, *size_z])
    at, m = dense.settle(ours)
    say(f"{soak.name}: the reference has settled")
    inverse, estimate = dense.posterior(at, m)
    scales = [abs(a - b) / b for a, b in zip(ours.flat(), at.flat(), strict=True)]
    candidates_x, candidates_z = whole(arms, d1) * size_x, whole(arms, d2) * size_z
    mean, width = estimator.predict(candidates_x, candidates_z, list(range(arms)))
    means, widths = [], []
    for i in range(arms):
        row = [mpmath.mpf(0)] * len(estimate)
        row[:d1] = [mpmath.mpf(float(each)) for each in candidates_x[i]]
        row[d1 + i * d2 : d1 + (i + 1) * d2] = [mpmath.mpf(float(each)) for each in candidates_z[i]]
        means.append(mpmath.fdot(row, estimate))
        spread = [mpmath.fdot(inverse[j], row[: j + 1]) for j in range(len(row))]
        widths.append(mpmath.sqrt(mpmath.fdot(spread, spread)))
    return LearnedOutcome(
        rows=sums.rows,
        noise=float(scales[0]),
        scales=float(max(scales[1:])),
        common_mean=_beside_the_largest(estimator.models[0].common_mean * size_z, m, size_z),
        theta=_beside_the_largest(estimator.theta * size_x, estimate[:d1], size_x),
        means=_beside_the_largest(mean, means, np.ones(arms)),
        widths=max(float(abs(float(a) - b) / b) for a, b in zip(width, widths, strict=True)),
    )


def _beside_the_largest(ours: NDArray[Any], exact: list[Number], sizes: NDArray[Any]) -> float:
    """The largest error relative to the largest value, in the features' own units (powers of two)."""
    scaled = [value * float(size) for value, size in zip(exact, sizes, strict=True)]
    largest = max(abs(value) for value in scaled)
    return max(float(abs(float(a) - b) / largest) for a, b in zip(ours, scaled, strict=True))


_SHAPE = {"d1": 10, "d2": 6, "arms": 10}
LEARNED = LearnedSoak(**_SHAPE, name="learned settings", rows=10**6, widest=10, overlap=False, target=1e-10)
LEARNED_OVERLAP = LearnedSoak(
    **_SHAPE, name="learned settings, z repeats x", rows=10**6, widest=10, overlap=True, target=1e-10
)
