"""Intervals for estimates that are ratios of sums over blocks of rounds: bootstrap-t, and a confidence sequence.

Every estimate is a ratio R = sum_b A_b / sum_b B_b over blocks b of consecutive rounds (for a plain mean, B_b is the
number of rounds of the block), so the sums of blocks are all that has to be kept, however long the log is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray

RESAMPLES = 2000
"""Resamples of a bootstrap, unless told otherwise."""

_CHUNK = 500_000
"""Blocks drawn at a time, which bounds the memory."""


class Intervals(NamedTuple):
    """Bounds of every ratio and of every difference of a pair; NaN where the blocks do not suffice for an interval."""

    low: FloatArray
    high: FloatArray
    difference_low: FloatArray
    difference_high: FloatArray


class Resampled(NamedTuple):
    """Ratios and then differences: their values, the influence of every block, and their deviation R* - R and standard
    error se* in every resample."""

    value: FloatArray
    influence: FloatArray
    deviation: FloatArray
    error: FloatArray
    ratios: int
    """How many of them are ratios; the rest are differences."""

    def intervals(self, level: float = 0.95) -> Intervals:
        """Bootstrap-t intervals at a level; see `resample`."""
        level = checks.probability("level", level, "it is the share of intervals that hold the truth, e.g. 0.95")
        low, high = _studentised(self.value, self.influence, self.deviation, self.error, level)
        same = (self.influence == 0).all(axis=1) & (self.value == 0)
        same[: self.ratios] = False
        low[same] = high[same] = 0.0
        k = self.ratios
        return Intervals(low[:k], high[:k], low[k:], high[k:])


def resample(
    numerators: FloatArray,
    denominators: FloatArray,
    *,
    pairs: Sequence[tuple[int, int]] = (),
    seed: int | None = 0,
    resamples: int = RESAMPLES,
) -> Resampled:
    """Draw resamples for bootstrap-t intervals of the ratios R_j = sum_b A_jb / sum_b B_jb and of R_i - R_j of `pairs`.

    numerators and denominators are (ratios, blocks). Blocks are drawn with replacement, the same ones for all ratios,
    numerators together with denominators: what is common to two ratios drops out of their difference. Blocks of
    consecutive rounds keep the dependence of neighbouring rounds.

    With e_b = A_b - R B_b, the standard error is se = sqrt(sum e_b^2) / sum B_b. Every resample is studentised by its
    own se*, and the interval is [R - t_high se, R - t_low se] with the quantiles t of (R* - R) / se*. So it follows the
    skewness of terms like w r, most of which are 0 while a few are large.

    A bound is NaN if all e_b of a ratio are 0, or if so many resamples have no spread that the quantile is infinite.
    The difference of two ratios that are equal in every block is 0 for certain.
    """
    resamples = checks.count("resamples", resamples, least=100, why="quantiles need many, e.g. 2000")
    a, b = np.asarray(numerators, float), np.asarray(denominators, float)
    if a.shape != b.shape or a.ndim != 2 or a.shape[1] == 0:
        raise ValueError(f"numerators and denominators have shapes {a.shape}, {b.shape}: give (ratios, blocks) twice")
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise ValueError("numerators or denominators are not finite: leave such terms out first")
    whole = b.sum(axis=1)
    if not (whole > 0).all():
        raise ValueError(f"the denominators sum up to {whole.min()}: leave ratios without support out first")
    first, second = (np.array([pair[i] for pair in pairs], int) for i in (0, 1))
    ratio = a.sum(axis=1) / whole
    # Centred: nothing is lost to cancellation below, and resampled ratios are deviations from R.
    a = (a - ratio[:, None] * b) / whole[:, None]
    b = b / whole[:, None]
    crossed = [a[first] * a[second], a[first] * b[second], b[first] * a[second], b[first] * b[second]]
    table = np.ascontiguousarray(np.concatenate([a, b, a * a, a * b, b * b, *crossed]).T)
    k, p, blocks = len(a), len(first), a.shape[1]
    random = np.random.default_rng(checks.seed(seed))
    deviation, error = np.empty((resamples, k + p)), np.empty((resamples, k + p))
    rows = max(1, _CHUNK // blocks)
    for start in range(0, resamples, rows):
        n = min(rows, resamples - start)
        drawn = random.integers(0, blocks, (n, blocks)) + np.arange(n)[:, None] * blocks
        times = np.bincount(drawn.ravel(), minlength=n * blocks).reshape(n, blocks)
        sums = times.astype(float) @ table
        sa, sb, saa, sab, sbb = (sums[:, i * k : (i + 1) * k] for i in range(5))
        xaa, xab, xba, xbb = (sums[:, 5 * k + i * p : 5 * k + (i + 1) * p] for i in range(4))
        with np.errstate(divide="ignore", invalid="ignore"):
            d = sa / sb
            square = np.maximum(saa - 2 * d * sab + d * d * sbb, 0.0) / sb**2
            i, j = d[:, first], d[:, second]
            both = (xaa - j * xab - i * xba + i * j * xbb) / (sb[:, first] * sb[:, second])
            between = np.maximum(square[:, first] + square[:, second] - 2 * both, 0.0)
        deviation[start : start + n] = np.concatenate([d, i - j], axis=1)
        error[start : start + n] = np.sqrt(np.concatenate([square, between], axis=1))
    value = np.concatenate([ratio, ratio[first] - ratio[second]])
    return Resampled(value, np.concatenate([a, a[first] - a[second]]), deviation, error, k)


def _studentised(
    value: FloatArray, influence: FloatArray, deviation: FloatArray, error: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    """Low and high of every value; influence is (values, blocks), deviation and error are (resamples, values)."""
    low, high = np.full(len(value), np.nan), np.full(len(value), np.nan)
    tail = (1 - level) / 2
    for j in range(len(value)):
        e = influence[j]
        se = math.sqrt(float(e @ e))
        # Rounding in a sum of equal terms is not spread.
        if se <= 1e-13 * abs(value[j]):
            continue
        d, s = deviation[:, j], error[:, j]
        if np.isnan(d).mean() > tail / 10:  # resamples that drew no block with support
            continue
        sound = ~np.isnan(d)
        d, s = d[sound], s[sound]
        with np.errstate(divide="ignore", invalid="ignore"):
            # Rounding leaves 1e-8 of an error that is 0, as where no block drawn has a click.
            t = np.where(s > 1e-6 * se, d / s, np.where(d == 0, 0.0, np.copysign(np.inf, d)))
        ends = value[j] - se * _quantile(t, 1 - tail), value[j] - se * _quantile(t, tail)
        if math.isfinite(ends[0]) and math.isfinite(ends[1]):
            low[j], high[j] = ends
    return low, high


def _quantile(values: FloatArray, share: float) -> float:
    """A quantile without interpolation: infinite values have their place in the order like any other."""
    return float(np.quantile(values, share, method="inverted_cdf"))


# ------------------------------------------------------------------ a confidence sequence

SCALES = 24
"""Values of lambda in the mixture, each half the one before: enough for 10^14 rounds."""


def running_guess(n: float, total: float, mean: tuple[float, float]) -> float:
    """A guess of the next term after n terms of this total, within the limits of its mean; at first, the middle."""
    low, high = mean
    return min(max(((low + high) / 2 + total) / (1 + n), low), high)


def bernstein(
    counts: FloatArray,
    sums: FloatArray,
    squares: FloatArray,
    *,
    low: float,
    high: float,
    mean: tuple[float, float],
    level: float = 0.95,
    at: np.ndarray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Bounds on the mean after every block; with probability `level` at least they hold after all blocks at once.

    The terms X_t lie in [low, high], and their conditional means mu_t given the past lie in `mean`. The bounds are on
    (mu_1 + .. + mu_t) / t, which is a constant for a fixed policy, and the average value so far for one that learns.
    counts, sums and squares (blocks,) are the number of terms, sum X and sum X^2 of consecutive blocks of rounds. With
    `at`, only the bounds after these blocks are returned.

    Empirical Bernstein: with guesses G_t made from the blocks before (`running_guess`), V = sum (X_t - G_t)^2, and c
    such that X_t - G_t >= -c, for any lambda in [0, 1/c)

        exp(lambda sum (X_t - mu_t) - psi(lambda) V),   psi(lambda) = (-log(1 - c lambda) - c lambda) / c^2

    is a supermartingale that starts at 1 (Howard et al. 2021; Waudby-Smith & Ramdas 2024). So is the mixture over
    lambda_k = 3 / (4 c 2^k) with weights proportional to 1 / ((k + 1)(k + 2)), and by Ville's inequality it ever
    reaches 2 / alpha with probability alpha / 2 at most. The lower bound is where it does; the upper bound is the same
    for -X. Each side has its own c, mean[1] - low and high - mean[0]: importance weighted terms are near the lower end,
    so the lower bound does not pay for the largest weight. Fixed lambdas, unlike those that shrink with t, weigh all
    rounds alike, so the means may move. V is made of sums over blocks, so blocks suffice.
    """
    level = checks.probability("level", level, "it is the share of sequences that hold the truth throughout, e.g. 0.95")
    if not (low <= mean[0] <= mean[1] <= high and low < high):
        raise ValueError(f"terms in [{low}, {high}] cannot have means in {mean}: give mean within [low, high]")
    n, total, square = (np.asarray(part, float) for part in (counts, sums, squares))
    so_far, many = np.cumsum(total), np.cumsum(n)
    before = zip([0.0, *many[:-1].tolist()], [0.0, *so_far[:-1].tolist()], strict=True)
    guess = np.array([running_guess(count, sum_, mean) for count, sum_ in before])
    spread = np.cumsum(np.maximum(square - 2 * guess * total + n * guess**2, 0.0))
    alpha = (1 - level) / 2
    if at is not None:
        so_far, many, spread = so_far[at], many[at], spread[at]
    with np.errstate(divide="ignore", invalid="ignore"):
        below = (so_far - boundary(spread, mean[1] - low, alpha)) / many
        above = (so_far + boundary(spread, high - mean[0], alpha)) / many
    lower = np.where(many > 0, np.maximum(below, mean[0]), mean[0])
    upper = np.where(many > 0, np.minimum(above, mean[1]), mean[1])
    # With probability 1 - level the bounds may cross a limit of the mean. Keep them in order.
    return np.minimum(lower, mean[1]), np.maximum(upper, mean[0])


def boundary(spread: FloatArray, scale: float, alpha: float) -> FloatArray:
    """The s for which sum_k w_k exp(lambda_k s - psi(lambda_k) spread) = 1 / alpha (see `bernstein`)."""
    k = np.arange(SCALES)
    weight = np.log(SCALES + 1) - np.log(SCALES) - np.log(k + 1) - np.log(k + 2)
    part = 0.75 * 0.5**k
    rate = part / scale
    cost = (-np.log1p(-part) - part) / scale**2
    exponent = weight - cost * np.asarray(spread, float)[:, None]
    wanted = -math.log(alpha)
    # One term alone reaches the level here, so the sum has; on a convex function Newton's steps stay above the root.
    s: FloatArray = ((wanted - exponent) / rate).min(axis=1)
    for _ in range(30):
        terms = exponent + rate * s[:, None]
        top = terms.max(axis=1)
        shares = np.exp(terms - top[:, None])
        total = shares.sum(axis=1)
        step = (top + np.log(total) - wanted) * total / (shares * rate).sum(axis=1)
        s = s - np.maximum(step, 0.0)
        if (step <= 1e-12 * np.maximum(s, scale)).all():
            break
    return s
