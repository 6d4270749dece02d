"""Dense algebra for the model with learned settings: parameters (theta, m, delta_1, .., delta_K) stacked."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq

FloatArray = np.ndarray


class Rows(NamedTuple):
    """Rewards and what they are of."""

    arm: FloatArray
    x: FloatArray
    z: FloatArray
    reward: FloatArray


class Scales(NamedTuple):
    """sigma^2, s1, s2 (d2), s_m; with groups, s1 and s_m are those of every feature."""

    sigma2: float
    s1: float | FloatArray
    s2: FloatArray
    sm: float | FloatArray


def make_rows(
    seed: int, *, n: int = 80, d1: int = 4, d2: int = 3, arms: int = 6, noise: float = 0.3, constant: str = ""
) -> Rows:
    """Rows of a hybrid model whose arms have a mean in common; the last arm is rare.

    constant: "x", "z" or both, for a last feature there that never varies.
    """
    random = np.random.default_rng(seed)
    x, z = random.standard_normal((n, d1)), random.standard_normal((n, d2))
    if "x" in constant:
        x[:, -1] = 0.7
    if "z" in constant:
        z[:, -1] = 3.0
    weights = np.append(np.ones(arms - 1), 0.1)
    arm = random.choice(arms, n, p=weights / weights.sum())
    arm[n // 2] = arms - 1
    beta = 1.0 + 0.5 * random.standard_normal((arms, d2))
    mean = x @ random.standard_normal(d1) + np.einsum("td,td->t", z, beta[arm])
    return Rows(arm, x, z, mean + noise * random.standard_normal(n))


def design_of(rows: Rows, arms: int) -> FloatArray:
    """Rows (x, z in the place of its arm), one for each reward."""
    own = np.zeros((len(rows.reward), arms, rows.z.shape[1]))
    own[np.arange(len(rows.reward)), rows.arm] = rows.z
    return np.hstack((rows.x, own.reshape(len(rows.reward), -1)))


def fading(rows: Rows, memory: float | None) -> FloatArray:
    """The weight exp(-age / memory) of every row."""
    age = np.arange(len(rows.reward))[::-1]
    return np.ones(len(age)) if memory is None else np.exp(-age / memory)


def weights_of(features: FloatArray, weight: FloatArray | None = None) -> FloatArray:
    """w_k, the mean square of a feature where it is not 0; 0 if it always is."""
    weight = np.ones(len(features)) if weight is None else weight
    count = weight @ (features != 0)
    return np.where(count > 0, weight @ features**2 / np.where(count > 0, count, 1.0), 0.0)


def constant_features(rows: Rows) -> FloatArray:
    """Mark the columns of (x, z) that are the same in all rows, and not 0."""
    features = np.hstack((rows.x, rows.z))
    same: FloatArray = (features == features[0]).all(axis=0) & (features[0] != 0)
    return same


class Solved(NamedTuple):
    """Estimates, the sum of squared errors, 1 - ridge x diag of the inverse, evidence and the inverse itself."""

    theta: FloatArray
    m: FloatArray
    delta: FloatArray
    errors: float
    known: FloatArray
    evidence: float
    inverse: FloatArray


def solve(rows: Rows, scales: Scales, arms: int, memory: float | None = None) -> Solved:
    """The posterior at these scales, by one dense inverse; a row of weight w is a row times sqrt(w)."""
    weight = fading(rows, memory)
    n, d1 = rows.x.shape
    d2 = rows.z.shape[1]
    own = np.zeros((n, arms, d2))
    own[np.arange(n), rows.arm] = rows.z
    root = np.sqrt(weight)
    a = root[:, None] * np.hstack((rows.x, rows.z, own.reshape(n, arms * d2)))
    reward = root * rows.reward
    w1, w2 = weights_of(rows.x, weight), weights_of(rows.z, weight)
    ridge = np.concatenate(
        (scales.sigma2 * w1 / scales.s1, scales.sigma2 * w2 / scales.sm, np.tile(scales.sigma2 * w2 / scales.s2, arms))
    )
    constant = np.flatnonzero(constant_features(rows))
    ridge[constant[:1]] = scales.sigma2 * np.concatenate((w1, w2))[constant[:1]] * weight.sum() / (reward @ reward)
    ridge = np.where(ridge > 0, ridge, 1.0)
    out_of_play = constant[1:]
    a[:, out_of_play], ridge[out_of_play] = 0.0, 1.0
    inverse = np.linalg.inv(a.T @ a + np.diag(ridge))
    estimate = inverse @ (a.T @ reward)
    errors = ((reward - a @ estimate) ** 2).sum()
    variance = np.eye(n) + (a / ridge) @ a.T
    evidence = -0.5 * (
        weight.sum() * np.log(2 * np.pi * scales.sigma2)
        + np.linalg.slogdet(variance)[1]
        + reward @ np.linalg.solve(variance, reward) / scales.sigma2
    )
    return Solved(
        estimate[:d1], estimate[d1 : d1 + d2], estimate[d1 + d2 :].reshape(arms, d2), float(errors),
        1 - ridge * np.diag(inverse), float(evidence), inverse,
    )  # fmt: skip


def half_cauchy(squares: Any, count: Any, s: Any, c: float) -> Any:
    """The fixed-point step of a variance."""
    return (squares + s * c / (c + s)) / (count + s / (c + s))


class Centres(NamedTuple):
    """The centres of sigma^2 and of the scales."""

    noise: float
    c_1: float
    c_2: float
    c_m: float


def centres_of(rows: Rows, weight: FloatArray) -> Centres:
    """The variance of the rewards, shared out among noise, x and z."""
    n, d1 = weight.sum(), rows.x.shape[1]
    v = weight @ rows.reward**2 / n
    spread = weight @ (rows.reward - weight @ rows.reward / n) ** 2 / n
    constant = constant_features(rows)
    active_x = (weight @ (rows.x != 0))[~constant[:d1]].sum() / n
    active_z = (weight @ (rows.z != 0)).sum() / n
    parts = 1 + (active_x > 0) + (active_z > 0)
    level = spread if constant.any() else v
    return Centres(
        spread / parts, *(s / parts / a if a else 0.0 for s, a in ((spread, active_x), (spread, active_z))),
        level / parts / active_z if active_z else 0.0,
    )  # fmt: skip


def half_cauchy_density(s: FloatArray, c: float) -> float:
    """The log density of log s where the root of s is half-Cauchy with median sqrt(c)."""
    return float(-np.log(np.sqrt(s / c) + np.sqrt(c / s)).sum())


def common_centre(scales: FloatArray, first: float) -> float:
    """The centre of the scales of groups, where its own density and theirs are largest together."""
    if len(scales) == 1:
        return first

    def slope(log_c: float) -> float:
        of = np.append(scales, first)
        return float(((np.exp(log_c) - of) / (np.exp(log_c) + of)).sum())

    low, high = np.log([min(*scales, first), max(*scales, first)])
    return float(np.exp(brentq(slope, low, high, xtol=1e-14))) if low < high else first


def group_scales(
    groups: FloatArray, now: FloatArray, squares: FloatArray, known: FloatArray, counts: FloatArray, first: float
) -> FloatArray:
    """The next scale of every feature, given those of all groups now; counts marks features that have one."""
    numbers = np.unique(groups)
    at = np.array([now[groups == g][0] for g in numbers])
    learns = np.array([counts[groups == g].any() for g in numbers])
    c = common_centre(at[learns], first) if len(numbers) > 1 else first
    after = np.empty(len(groups))
    for g, s, learned in zip(numbers, at, learns, strict=True):
        part = (groups == g) & counts
        after[groups == g] = half_cauchy(squares[part].sum(), known[part].sum(), s, c) if learned else c
    return after


def step(
    rows: Rows,
    scales: Scales,
    arms: int,
    memory: float | None = None,
    groups: tuple[FloatArray, FloatArray] | None = None,
) -> tuple[Scales, FloatArray]:
    """One fixed-point step of all scales, and m."""
    d1, d2 = rows.x.shape[1], rows.z.shape[1]
    solved = solve(rows, scales, arms, memory)
    weight = fading(rows, memory)
    centre = centres_of(rows, weight)
    spread = weight @ (rows.reward - weight @ rows.reward / weight.sum()) ** 2 / weight.sum()
    ordinary = ~constant_features(rows)
    w1, w2 = weights_of(rows.x, weight), weights_of(rows.z, weight)
    of_x, of_z = groups or (np.zeros(d1, int), np.zeros(d2, int))
    known = solved.known[d1 + d2 :].reshape(arms, d2).sum(axis=0)
    s1, s2, sm = np.full(d1, scales.s1), scales.s2, np.full(d2, scales.sm)
    if centre.c_1:
        s1 = group_scales(of_x, s1, w1 * solved.theta**2, solved.known[:d1], ordinary[:d1], centre.c_1)
    if d2:
        squares = w2 * (solved.delta**2).sum(axis=0)
        numbers = np.unique(of_z)
        c = common_centre(np.array([s2[of_z == g].mean() for g in numbers]), centre.c_2)
        for g in numbers:
            part = of_z == g
            common = half_cauchy(squares[part].sum(), known[part].sum(), scales.s2[part].mean(), c)
            one = common if len(numbers) > 1 else half_cauchy(squares, known, scales.s2, common)
            s2 = np.where(part, one, s2)
        of_m = solved.known[d1 : d1 + d2]
        sm = group_scales(of_z, sm, w2 * solved.m**2, of_m, ordinary[d1:], centre.c_m)
    free = weight.sum() - solved.known.sum()
    sigma2 = half_cauchy(solved.errors + 1e-3 * spread, free, scales.sigma2, centre.noise)
    return Scales(sigma2, s1, s2, sm), solved.m
