"""What results are judged with: intervals of means over independent units, exponents of growth, proportions."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray


def student_quantile(probability: float, freedom: int) -> float:
    """The quantile q of Student's t with `freedom` degrees of freedom: P(t <= q) = probability.

    >>> round(student_quantile(0.975, 4), 3)
    2.776
    """
    checks.probability("probability", probability, "quantiles of 0 and 1 are infinite")
    checks.count("freedom", freedom, least=1, why="it takes two values to see a spread")
    return float(special.stdtrit(freedom, probability))


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
    """Student's interval of a mean over independent units.

    Parameters
    ----------
    values, units : arrays of shape (runs,)
        A value per run, and the unit that the run belongs to. Runs are averaged per unit first. Values that are not
        finite are left out.
    confidence : float
        How often such intervals hold the mean, e.g. 0.95.

    Returns
    -------
    Interval or None
        None if fewer than two units have a finite value.

    Examples
    --------
    >>> mean, low, high, units = interval(np.array([1.0, 3.0, 6.0, 8.0]), np.array([0, 0, 1, 1]), 0.5)
    >>> mean, round(low, 9), round(high, 9), units
    (4.5, 2.0, 7.0, 2)
    """
    finite = np.isfinite(values)
    names, unit = np.unique(units[finite], return_inverse=True)
    if len(names) < 2:
        return None
    means = np.bincount(unit, values[finite]) / np.bincount(unit)
    mean = float(means.mean())
    half = student_quantile((1 + confidence) / 2, len(means) - 1) * float(means.std(ddof=1)) / math.sqrt(len(means))
    return Interval(mean, mean - half, mean + half, len(means))


def interval_within(values: FloatArray, units: NDArray[Any], confidence: float) -> Interval | None:
    """The interval of the mean over these very units, whose runs differ only by noise and the policies' own draws.

    It says how well the mean of these units is known; `interval` says what other units would show. Variances are pooled
    within units, with (runs - units) degrees of freedom. None if no unit has two runs.
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


def exponents(x: FloatArray, y: FloatArray, use: NDArray[np.bool_] | None = None) -> FloatArray:
    """The exponent p of y ~ x^p, one per run: the least-squares slope of log y on log x.

    Parameters
    ----------
    x, y : arrays
        Of shapes that broadcast to (runs, points) or (runs, points, series). The series of a run share one slope, and
        each has an intercept of its own. Points that are not positive are left out.
    use : array of bool, optional
        The points to fit, all of them by default; it broadcasts with x and y.

    Returns
    -------
    array of shape (runs,)
        NaN where nothing is left to fit.

    Examples
    --------
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
    result: FloatArray = np.where(spread > 1e-12, slope, np.nan)
    return result


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
    result: FloatArray = np.where(
        fine, 1 + np.log(rate[:, 1] / rate[:, 0]) / np.log(middle[:, 1] / middle[:, 0]), np.nan
    )
    return result


def expected_smallest_eigenvalue(dimension: int, rows: FloatArray) -> FloatArray:
    """About the mean of lambda_min(sum of n rows) for n > d independent isotropic rows of unit variance.

    (sqrt n - sqrt d)^2 + 1.2065 (sqrt n - sqrt d) (1/sqrt d - 1/sqrt n)^(1/3): the edge of the spectrum and the mean of
    the Tracy-Widom law around it. Linear in n, but with exponents well above 1 while n/d is small.
    """
    root, least = np.sqrt(np.maximum(rows, dimension)), math.sqrt(dimension)
    gap = root - least
    result: FloatArray = gap**2 + 1.2065 * gap * np.cbrt(1 / least - 1 / root)
    return result
