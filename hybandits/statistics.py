"""Intervals, exponents and confidence sequences that experiments, the paper, evaluation and the service share."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray


def proportion_floor(successes: int, trials: int, confidence: float) -> float:
    """Clopper and Pearson's lower limit for a probability; with no failure it is (1 - confidence)^(1/trials).

    >>> round(proportion_floor(100, 100, 0.95), 4)
    0.9705
    """
    if successes <= 0:
        return 0.0
    return float(special.betaincinv(successes, trials - successes + 1, 1 - confidence))


class Interval(NamedTuple):
    """A mean over independent units with its confidence interval, from `low` to `high`."""

    mean: float
    low: float
    high: float
    units: int


def interval(values: FloatArray, units: NDArray[Any], confidence: float) -> Interval | None:
    """Student's interval of a mean over independent units; None if fewer than two units have a finite value.

    `values` has one value per run, `units` the unit that the run belongs to. Runs are averaged per unit first. Values
    that are not finite are left out.

    Examples
    --------
    >>> mean, low, high, units = interval(np.array([1.0, 3.0, 6.0, 8.0]), np.array([0, 0, 1, 1]), 0.5)
    >>> mean, round(low, 9), round(high, 9), units
    (4.5, 2.0, 7.0, 2)
    """
    means = _by_unit(values, units)[0]
    if len(means) < 2:
        return None
    mean = float(means.mean())
    quantile = float(special.stdtrit(len(means) - 1, (1 + confidence) / 2))
    half = quantile * float(means.std(ddof=1)) / math.sqrt(len(means))
    return Interval(mean, mean - half, mean + half, len(means))


def _by_unit(values: FloatArray, units: NDArray[Any]) -> tuple[FloatArray, NDArray[Any], FloatArray]:
    """The mean of every unit, its number of runs, and the deviations of all runs from their unit's mean."""
    finite = np.isfinite(values)
    _, unit = np.unique(units[finite], return_inverse=True)
    counts = np.bincount(unit)
    means = np.bincount(unit, values[finite]) / counts
    return means, counts, values[finite] - means[unit]


def interval_within(values: FloatArray, units: NDArray[Any], confidence: float) -> Interval | None:
    """The interval of the mean over these very units, whose runs differ only by noise and the policies' own draws.

    Variances are pooled within units, with (runs - units) degrees of freedom. None if no unit has two runs.
    """
    means, counts, deviations = _by_unit(values, units)
    freedom = len(deviations) - len(means)
    if freedom < 1:
        return None
    error = math.sqrt(float((deviations**2).sum()) / freedom * float((1 / counts).sum()))
    half = float(special.stdtrit(freedom, (1 + confidence) / 2)) * error / len(means)
    mean = float(means.mean())
    return Interval(mean, mean - half, mean + half, len(means))


def jackknife(
    statistic: Callable[[FloatArray], FloatArray], values: FloatArray, units: NDArray[Any], confidence: float
) -> list[Interval | None]:
    """Intervals of functions of a mean over independent units, from leaving out one unit at a time.

    `values` has one row per run. Runs are averaged per unit, and `statistic` takes the mean over units to a vector of
    values. The error of each is the jackknife's, the quantile Student's. None where a value or its error is not finite.

    Examples
    --------
    >>> runs = np.array([[1.0, 4.0], [3.0, 4.0]])
    >>> [(value, low, high, units)] = jackknife(lambda mean: mean[1:] / mean[:1], runs, np.arange(2), 0.5)
    >>> value, round(low, 9), round(high, 9), units         # 4/1 and 4/3 without one of the two
    (2.0, 0.666666667, 3.333333333, 2)
    """
    means = np.array([values[units == unit].mean(axis=0) for unit in np.unique(units)])
    count = len(means)
    with np.errstate(all="ignore"):
        whole = statistic(means.mean(axis=0))
        without = np.array([statistic(np.delete(means, i, axis=0).mean(axis=0)) for i in range(count) if count > 1])
        error = np.sqrt((count - 1) * without.var(axis=0)) if count > 1 else np.full(len(whole), np.nan)
    half = (float(special.stdtrit(count - 1, (1 + confidence) / 2)) if count > 1 else np.nan) * error
    bounds = zip(whole.tolist(), (whole - half).tolist(), (whole + half).tolist(), strict=True)
    return [Interval(*each, count) if np.isfinite(each).all() else None for each in bounds]


def exponents(x: FloatArray, y: FloatArray, use: NDArray[np.bool_] | None = None) -> FloatArray:
    """The exponent p of y ~ x^p, one per run: the least-squares slope of log y on log x.

    The points x and y broadcast to (runs, points) or (runs, points, series), as does `use`, the points to fit. The
    series of a run share one slope, and each has an intercept of its own. Points that are not positive are left out.
    NaN where nothing is left to fit.

    >>> t = np.array([[1.0, 10.0, 100.0]])
    >>> exponents(t, 3 * t**0.5).round(9)
    array([0.5])
    """
    x, y, use = np.broadcast_arrays(x, y, True if use is None else use)
    if y.ndim == 2:
        x, y, use = x[..., None], y[..., None], use[..., None]
    good = use & np.isfinite(x) & np.isfinite(y)
    good &= (np.where(good, x, 0) > 0) & (np.where(good, y, 0) > 0)
    log_x, log_y = np.log(np.where(good, x, 1)), np.log(np.where(good, y, 1))
    count = np.maximum(good.sum(axis=1, keepdims=True), 1)
    centred = (log_x - (log_x * good).sum(axis=1, keepdims=True) / count) * good
    spread = (centred**2).sum(axis=(1, 2))
    slope = (centred * log_y).sum(axis=(1, 2)) / np.where(spread > 1e-12, spread, 1)
    return np.asarray(np.where(spread > 1e-12, slope, np.nan))


def increment_exponents(x: FloatArray, y: FloatArray, use: NDArray[np.bool_]) -> FloatArray:
    """The exponent p of y ~ c + x^p, one per run, from how much y grows between three points (runs, 3, series).

    y ~ c + x^p grows by x^(p - 1) per x, whatever c is. The series in `use` (runs, series) count alike. NaN where y
    does not grow or nothing is left to fit.
    """
    step_x, step_y = np.diff(x, axis=1), np.diff(y, axis=1)
    good = use & (step_x > 0).all(axis=1) & np.isfinite(step_y).all(axis=1)
    count = np.maximum(good.sum(axis=1), 1)[:, None]
    rate = (np.where(good[:, None], step_y, 0) / np.where(good[:, None], step_x, 1)).sum(axis=2) / count
    middle = np.where(good[:, None], (x[:, 1:] + x[:, :-1]) / 2, 0).sum(axis=2) / count
    fine = good.any(axis=1) & (rate > 0).all(axis=1) & (middle[:, 1] > middle[:, 0])
    rate, middle = np.where(fine[:, None], rate, 1.0), np.where(fine[:, None], middle, [1.0, 2.0])
    exponent = 1 + np.log(rate[:, 1] / rate[:, 0]) / np.log(middle[:, 1] / middle[:, 0])
    return np.asarray(np.where(fine, exponent, np.nan))


def expected_smallest_eigenvalue(dimension: int, rows: FloatArray) -> FloatArray:
    """About the mean of lambda_min(sum of n rows) for n > d independent isotropic rows of unit variance.

    (sqrt n - sqrt d)^2 + 1.2065 (sqrt n - sqrt d) (1/sqrt d - 1/sqrt n)^(1/3): the edge of the spectrum and the mean of
    the Tracy-Widom law around it. Linear in n, but with exponents well above 1 while n/d is small.
    """
    root, least = np.sqrt(np.maximum(rows, dimension)), math.sqrt(dimension)
    gap = root - least
    return np.asarray(gap**2 + 1.2065 * gap * np.cbrt(1 / least - 1 / root))


RESAMPLES = 2000
"""Resamples of a bootstrap."""

CHUNK = 500_000
"""Blocks drawn at a time, which bounds the memory."""


class Intervals(NamedTuple):
    """Bounds of every ratio and of every difference of a pair; NaN where the blocks do not suffice for an interval."""

    low: FloatArray
    high: FloatArray
    difference_low: FloatArray
    difference_high: FloatArray


class Resampled(NamedTuple):
    """Ratios, then differences: values, influence by block, and deviation R* - R and error se* of every resample."""

    value: FloatArray
    influence: FloatArray
    deviation: FloatArray
    error: FloatArray
    ratios: int

    def intervals(self, level: float = 0.95) -> Intervals:
        """Bootstrap-t intervals at a level; see `resample`."""
        level = checks.probability("level", level, "it is the share of intervals that hold the truth, e.g. 0.95")
        bounds = np.array([self._bounds(j, (1 - level) / 2) for j in range(len(self.value))])
        same = (self.influence == 0).all(axis=1) & (self.value == 0)
        same[: self.ratios] = False
        bounds[same] = 0.0
        k = self.ratios
        return Intervals(bounds[:k, 0], bounds[:k, 1], bounds[k:, 0], bounds[k:, 1])

    def _bounds(self, j: int, tail: float) -> tuple[float, float]:
        value, e = self.value[j], self.influence[j]
        se = math.sqrt(float(e @ e))
        sound = ~np.isnan(self.deviation[:, j])  # NaN: a resample that drew no block with support
        # Rounding in a sum of equal terms is not spread.
        if se <= 1e-13 * abs(value) or (~sound).mean() > tail / 10:
            return math.nan, math.nan
        d, s = self.deviation[sound, j], self.error[sound, j]
        with np.errstate(divide="ignore", invalid="ignore"):
            # Rounding leaves 1e-8 of an error that is 0, as where no block drawn has a click.
            t = np.where(s > 1e-6 * se, d / s, np.where(d == 0, 0.0, np.copysign(np.inf, d)))
        low, high = (value - se * float(np.quantile(t, q, method="inverted_cdf")) for q in (1 - tail, tail))
        return (low, high) if math.isfinite(low) and math.isfinite(high) else (math.nan, math.nan)


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
    a, b = np.asarray(numerators, float), np.asarray(denominators, float)
    total = b.sum(axis=1)
    first, second = (np.array([pair[i] for pair in pairs], int) for i in (0, 1))
    ratio = a.sum(axis=1) / total
    # Centred: nothing is lost to cancellation below, and resampled ratios are deviations from R.
    a = (a - ratio[:, None] * b) / total[:, None]
    b = b / total[:, None]
    crossed = [a[first] * a[second], a[first] * b[second], b[first] * a[second], b[first] * b[second]]
    table = np.ascontiguousarray(np.concatenate([a, b, a * a, a * b, b * b, *crossed]).T)
    k, p, blocks = len(a), len(first), a.shape[1]
    random = np.random.default_rng(checks.seed(seed))
    deviation, error = np.empty((resamples, k + p)), np.empty((resamples, k + p))
    rows = max(1, CHUNK // blocks)
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


SCALES = 24
"""Values of lambda in the mixture, each half the one before: enough for 10^14 rounds."""

NARROWEST_AT = 10_000
"""Terms at which an asymptotic sequence is about as narrow as it can be."""


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
    rounds alike, so the means may move. V is a sum over blocks, so blocks suffice.
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
    target = -math.log(alpha)
    # One term alone reaches the level here, so the sum has; on a convex function Newton's steps stay above the root.
    s: FloatArray = ((target - exponent) / rate).min(axis=1)
    for _ in range(30):
        terms = exponent + rate * s[:, None]
        top = terms.max(axis=1)
        shares = np.exp(terms - top[:, None])
        total = shares.sum(axis=1)
        step = (top + np.log(total) - target) * total / (shares * rate).sum(axis=1)
        s = s - np.maximum(step, 0.0)
        if (step <= 1e-12 * np.maximum(s, scale)).all():
            break
    return s


def asymptotic_radius(n: FloatArray, spread: FloatArray, alpha: float) -> FloatArray:
    """Half the width of an asymptotic confidence sequence for the mean of n terms whose range is unknown.

    sqrt(2 (n p + 1) / (n^2 p) log(sqrt(n p + 1) / alpha)) sigma (Waudby-Smith, Arbour, Sinha, Kennedy & Ramdas 2024),
    where p makes it narrow near NARROWEST_AT. `spread` is the sum of squared deviations from running guesses.
    """
    p = (-2 * math.log(alpha) + math.log(1 - 2 * math.log(alpha))) / NARROWEST_AT
    return np.asarray(np.sqrt(2 * (n * p + 1) / (n**2 * p) * np.log(np.sqrt(n * p + 1) / alpha) * spread / n))


def growing_scale(first: float, largest: float, tail: float) -> tuple[float, float]:
    """Scale and error probability of a bound whose terms have no known limit: they are at most `largest` so far.

    If the limit of the first term has doubled j times, the sequence for 2^j of it is used, which may fail with
    probability tail / ((j + 1)(j + 2)). Over all j that is `tail`.
    """
    doubled = max(0, math.ceil(math.log2(largest / first) - 1e-9))
    return first * 2**doubled, tail / ((doubled + 1) * (doubled + 2))
