"""Intervals, proportions, exponents and eigenvalues against tables, exact sums and simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hybandits.experiments import statistics


@pytest.mark.parametrize(
    ("probability", "freedom", "expected"),
    [
        (0.975, 1, 12.7062), (0.975, 4, 2.7764), (0.995, 4, 4.6041), (0.95, 10, 1.8125), (0.975, 24, 2.0639),
        (0.975, 99, 1.9842), (0.999, 2, 22.3271), (0.9995, 120, 3.3735), (0.5, 7, 0.0),
    ],
)  # fmt: skip
def test_student_quantiles_are_those_of_the_tables(probability: float, freedom: int, expected: float) -> None:
    assert statistics.student_quantile(probability, freedom) == pytest.approx(expected, abs=6e-5)
    assert statistics.student_quantile(1 - probability, freedom) == pytest.approx(-expected, abs=6e-5)


@pytest.mark.parametrize(("successes", "trials"), [(100, 100), (74, 74), (97, 100), (1, 10), (5, 5)])
def test_the_floor_of_a_proportion_is_where_the_tail_has_the_error_left(successes: int, trials: int) -> None:
    p = statistics.proportion_floor(successes, trials, 0.95)
    tail = sum(math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(successes, trials + 1))
    assert tail == pytest.approx(0.05)
    assert statistics.proportion_floor(0, trials, 0.95) == 0


@pytest.mark.parametrize(("probability", "freedom"), [(0.0, 4), (1.0, 4), (0.975, 0)])
def test_quantiles_that_do_not_exist_are_refused(probability: float, freedom: int) -> None:
    with pytest.raises(ValueError, match="got"):
        statistics.student_quantile(probability, freedom)


def test_an_interval_counts_environments_not_runs() -> None:
    values = np.array([1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 4.0, 4.0, 4.0])
    units = np.repeat([0, 1, 2], 3)
    interval = statistics.interval(values, units, 0.95)
    assert interval is not None
    half = 4.302653 * math.sqrt(7 / 3) / math.sqrt(3)
    assert interval == pytest.approx((7 / 3, 7 / 3 - half, 7 / 3 + half, 3), rel=1e-6)
    assert statistics.interval(values, np.zeros(9), 0.95) is None
    assert statistics.interval(np.full(9, np.nan), units, 0.95) is None


def test_an_interval_within_environments_leaves_out_how_they_differ() -> None:
    values = np.array([1.0, 3.0, 12.0, 14.0, 20.0, 22.0])
    units = np.repeat([0, 1, 2], 2)
    interval = statistics.interval_within(values, units, 0.95)
    assert interval is not None
    half = 3.182446 * math.sqrt(2.0 / 6)  # variance 2 in each of three pairs, 3 degrees of freedom
    assert interval == pytest.approx((12.0, 12.0 - half, 12.0 + half, 3), rel=1e-6)
    assert statistics.interval_within(values, np.arange(6), 0.95) is None
    assert statistics.interval_within(np.full(6, np.nan), units, 0.95) is None


def test_exponents_of_power_laws() -> None:
    t = np.linspace(10, 1000, 30)
    curves = np.array([3 * t**0.5, 0.1 * t, 7 * t**-0.5])
    assert statistics.exponents(t[None, :], curves) == pytest.approx([0.5, 1.0, -0.5])
    # Series with levels of their own, at counts of their own, share a slope: a fit over all of them would not find it.
    counts = t[None, :, None] * np.array([1.0, 5.0])
    series = counts**0.5 * np.array([1.0, 0.2])
    assert statistics.exponents(counts, series) == pytest.approx([0.5])
    broken = np.array([np.zeros(30), np.full(30, np.nan), np.where(t == t[-1], 1.0, 0.0)])
    assert np.isnan(statistics.exponents(t[None, :], broken)).all()


def test_increments_see_through_an_offset() -> None:
    x = np.array([100.0, 150.0, 200.0])[None, :, None] * np.array([1.0, 1.0, 3.0])
    use = np.array([[True, True, True]])
    for p in (0.5, 0.8, 1.0, 1.2):
        y = 7.0 + 2 * x**p
        assert statistics.increment_exponents(x, y, use) == pytest.approx([p], abs=0.02)
    assert statistics.increment_exponents(x, -5 + 0.1 * x, use) == pytest.approx([1.0])
    for y in (np.zeros_like(x), np.full_like(x, np.nan)):
        assert np.isnan(statistics.increment_exponents(x, y, use)).all()
    assert np.isnan(statistics.increment_exponents(x, x, ~use)).all()


def test_the_smallest_eigenvalue_of_independent_rows() -> None:
    random = np.random.default_rng(0)
    for d, n in ((5, 50), (10, 50), (10, 200), (20, 200), (10, 2000)):
        x = random.normal(size=(60, n, d))
        mean = float(np.linalg.eigvalsh(x.transpose(0, 2, 1) @ x)[:, 0].mean())
        assert float(statistics.expected_smallest_eigenvalue(d, np.array(float(n)))) == pytest.approx(mean, rel=0.08)
