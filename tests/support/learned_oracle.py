"""Dense algebra for the model with learned settings: parameters (theta, m, delta_1, .., delta_K) stacked."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

FloatArray = np.ndarray


class Rows(NamedTuple):
    """Rewards and what they are of."""

    arm: FloatArray
    x: FloatArray
    z: FloatArray
    reward: FloatArray


class Scales(NamedTuple):
    """sigma^2, s1, s2 (d2), s_m."""

    sigma2: float
    s1: float
    s2: FloatArray
    sm: float


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


def half_cauchy(squares: float, count: float, s: float, c: float) -> float:
    """The fixed-point step of a variance."""
    return (squares + s * c / (c + s)) / (count + s / (c + s))


def step(rows: Rows, scales: Scales, arms: int, memory: float | None = None) -> tuple[Scales, FloatArray]:
    """One fixed-point step of all scales, and m."""
    d1, d2 = rows.x.shape[1], rows.z.shape[1]
    solved = solve(rows, scales, arms, memory)
    weight = fading(rows, memory)
    n = weight.sum()
    v = weight @ rows.reward**2 / n
    spread = weight @ (rows.reward - weight @ rows.reward / n) ** 2 / n
    constant = constant_features(rows)
    ordinary = ~constant
    of_theta, of_m = ordinary[:d1], ordinary[d1:]
    active_x = (weight @ (rows.x != 0))[of_theta].sum() / n
    active_z = (weight @ (rows.z != 0)).sum() / n
    parts = 1 + (active_x > 0) + (active_z > 0)
    w1, w2 = weights_of(rows.x, weight), weights_of(rows.z, weight)
    known = solved.known[d1 + d2 :].reshape(arms, d2)
    s1 = scales.s1
    if active_x:
        size, count = (w1 * solved.theta**2)[of_theta].sum(), solved.known[:d1][of_theta].sum()
        s1 = half_cauchy(size, count, scales.s1, spread / parts / active_x)
    s2, sm = scales.s2, scales.sm
    if d2:
        squares = w2 * (solved.delta**2).sum(axis=0)
        common = half_cauchy(squares.sum(), known.sum(), scales.s2.mean(), spread / parts / active_z)
        s2 = np.array([half_cauchy(squares[k], known[:, k].sum(), scales.s2[k], common) for k in range(d2)])
        size, count = (w2 * solved.m**2)[of_m].sum(), solved.known[d1 : d1 + d2][of_m].sum()
        sm = half_cauchy(size, count, scales.sm, (spread if constant.any() else v) / parts / active_z)
    free = n - solved.known.sum()
    errors = solved.errors + 1e-3 * spread
    return Scales(half_cauchy(errors, free, scales.sigma2, spread / parts), s1, s2, sm), solved.m
