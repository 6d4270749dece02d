"""What verdicts are measured with: intervals on the means of units, exponents of growth, eigenvalues of chance."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybandits.foundation import checks
from hybandits.foundation.checks import Doubles


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function I_x(a, b), by Lentz's continued fraction.

    >>> round(incomplete_beta(2.0, 3.0, 0.4), 4)
    0.5248
    """
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):  # the fraction converges fast on the other side
        return 1 - incomplete_beta(b, a, 1 - x)
    log_beta = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    front = math.exp(a * math.log(x) + b * math.log1p(-x) - log_beta) / a
    tiny = 1e-300
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, 1000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / (1 + term * d or tiny)
            c = 1 + term / c or tiny
            value *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return front * value


def _solve(rising: Callable[[float], float], target: float, low: float, high: float) -> float:
    """Where a rising function meets a value, by bisection to the last bit."""
    for _ in range(200):
        middle = (low + high) / 2
        if rising(middle) < target:
            low = middle
        else:
            high = middle
    return high


@lru_cache(maxsize=256)
def student_quantile(probability: float, freedom: int) -> float:
    """The quantile of Student's t: P(t <= q) = probability, with `freedom` degrees of freedom.

    P(t <= q) = 1 - I_x(n/2, 1/2)/2 with x = n/(n + q^2), for q >= 0.

    >>> round(student_quantile(0.975, 4), 3)
    2.776
    """
    checks.probability("probability", probability, "quantiles of 0 and 1 are infinite")
    checks.count("freedom", freedom, least=1, why="it takes two values to see a spread")
    if probability < 0.5:
        return -student_quantile(1 - probability, freedom)

    def below(q: float) -> float:
        return 1 - incomplete_beta(freedom / 2, 0.5, freedom / (freedom + q * q)) / 2

    high = 1.0
    while below(high) < probability:
        high *= 2
    return _solve(below, probability, 0.0, high)


def proportion_floor(successes: int, trials: int, confidence: float) -> float:
    """Clopper and Pearson's lower limit for a probability; with no failure it is (1 - confidence)^(1/trials).

    >>> round(proportion_floor(100, 100, 0.95), 4)
    0.9705
    """
    if successes <= 0:
        return 0.0
    return _solve(lambda p: incomplete_beta(successes, trials - successes + 1, p), 1 - confidence, 0.0, 1.0)


class Interval(NamedTuple):
    """A mean over independent units with its confidence interval."""

    mean: float
    low: float
    high: float
    units: int


def interval(values: Doubles, units: NDArray[Any], confidence: float) -> Interval | None:
    """Student's interval on the means of the units; None if fewer than two units have a finite value."""
    finite = np.isfinite(values)
    names, unit = np.unique(units[finite], return_inverse=True)
    if len(names) < 2:
        return None
    means = np.bincount(unit, values[finite]) / np.bincount(unit)
    mean = float(means.mean())
    half = student_quantile((1 + confidence) / 2, len(means) - 1) * float(means.std(ddof=1)) / math.sqrt(len(means))
    return Interval(mean, mean - half, mean + half, len(means))


def interval_within(values: Doubles, units: NDArray[Any], confidence: float) -> Interval | None:
    """The interval of the mean over these very units, whose runs differ by noise and the policies' own draws alone.

    Variances are pooled within units: (runs - units) degrees of freedom. None if no unit has two runs.
    """
    finite = np.isfinite(values)
    names, unit = np.unique(units[finite], return_inverse=True)
    counts = np.bincount(unit)
    freedom = int(finite.sum()) - len(names)
    if freedom < 1:
        return None
    means = np.bincount(unit, values[finite]) / counts
    variance = float(((values[finite] - means[unit]) ** 2).sum()) / freedom
    half = (
        student_quantile((1 + confidence) / 2, freedom) * math.sqrt(variance * float((1 / counts).sum())) / len(names)
    )
    mean = float(means.mean())
    return Interval(mean, mean - half, mean + half, len(names))


def exponents(x: Doubles, y: Doubles, use: NDArray[np.bool_] | None = None) -> Doubles:
    """One exponent per run, of y ~ x^p: the least-squares slope of log y on log x, every series with its own intercept.

    x, y and use have shapes that broadcast to (runs, points) or (runs, points, series); points that are not positive
    are left out. NaN where nothing is left to fit.
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
    result: Doubles = np.where(spread > 1e-12, slope, np.nan)
    return result


def increment_exponents(x: Doubles, y: Doubles, use: NDArray[np.bool_]) -> Doubles:
    """One exponent per run, of y ~ c + x^p, from how much y grows per x: between three points (runs, 3, series).

    y ~ c + x^p grows by x^(p - 1) per x, whatever c is. The series in `use` (runs, series) count alike.
    """
    step_x, step_y = np.diff(x, axis=1), np.diff(y, axis=1)
    good = use & (step_x > 0).all(axis=1) & np.isfinite(step_y).all(axis=1)
    count = np.maximum(good.sum(axis=1), 1)[:, None]
    rate = (np.where(good[:, None], step_y, 0) / np.where(good[:, None], step_x, 1)).sum(axis=2) / count
    middle = np.where(good[:, None], (x[:, 1:] + x[:, :-1]) / 2, 0).sum(axis=2) / count
    fine = good.any(axis=1) & (rate > 0).all(axis=1) & (middle[:, 1] > middle[:, 0])
    rate, middle = np.where(fine[:, None], rate, 1.0), np.where(fine[:, None], middle, [1.0, 2.0])
    result: Doubles = np.where(fine, 1 + np.log(rate[:, 1] / rate[:, 0]) / np.log(middle[:, 1] / middle[:, 0]), np.nan)
    return result


def smallest_eigenvalue(dimension: int, rows: Doubles) -> Doubles:
    """About the mean of lambda_min(sum of n rows) for n > d independent isotropic rows of unit variance.

    (sqrt n - sqrt d)^2 + 1.2065 (sqrt n - sqrt d) (1/sqrt d - 1/sqrt n)^(1/3): the edge of the spectrum and the mean of
    the Tracy-Widom law around it. Linear in n, but with exponents well above 1 while n/d is small.
    """
    root, least = np.sqrt(np.maximum(rows, dimension)), math.sqrt(dimension)
    gap = root - least
    result: Doubles = gap**2 + 1.2065 * gap * np.cbrt(1 / least - 1 / root)
    return result
