"""The counter-based generator: known answers, distribution, independence of seeds, purposes and decisions."""

from __future__ import annotations

import numpy as np
from scipy import stats

from hybandits.kernels import random
from tests.support.plain import plain


def test_the_generator_gives_the_published_words(mode: str) -> None:
    """The test vector of Philox 4x32-10 for a counter and a key of zeros; a second block has other words."""
    words = np.empty((4, 2), np.uint64)
    random.philox(0, 0, 0, words)
    assert words[:, 0].tolist() == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert len(np.unique(words)) == 8


def uniforms(key: int, purpose: int, decision: int, n: int) -> np.ndarray:
    numbers = np.empty(n)
    random.fill_uniforms(key, purpose, decision, numbers)
    return numbers


def test_numbers_are_a_function_of_their_place() -> None:
    whole = uniforms(7, 0, 12, 101)
    np.testing.assert_array_equal(uniforms(7, 0, 12, 40), whole[:40])
    assert random.uniform(7, 0, 12) == whole[0]
    for other in ((8, 0, 12), (7, 1, 12), (7, 0, 13), (7 + 2**40, 0, 12), (7, 0, 12 + 2**40)):
        assert not np.isin(uniforms(*other, 101), whole).any()


def test_compiled_and_plain_agree() -> None:
    place = 123456789012345, 2, 77
    for fill in ("fill_uniforms", "fill_normals", "fill_coarse_normals"):
        for n in (1, 8, 9, 12, 53):
            compiled, interpreted = np.empty(n), np.empty(n)
            getattr(random, fill)(*place, compiled)
            with plain(), np.errstate(over="ignore"):
                getattr(random, fill)(*place, interpreted)
            np.testing.assert_array_equal(compiled, interpreted)


def test_uniforms_are_uniform_within_and_between_decisions() -> None:
    """Kolmogorov-Smirnov at 1e-4 on a long decision and on the first numbers of many; false alarms 2e-4."""
    within = uniforms(1, 0, 0, 200_000)
    between = np.array([random.uniform(1, 0, decision) for decision in range(20_000)])
    for numbers in (within, between):
        assert 0 < numbers.min() < numbers.max() < 1
        assert stats.kstest(numbers, "uniform").pvalue > 1e-4


def test_neighbouring_seeds_decisions_and_purposes_are_independent() -> None:
    """Correlations of 20,000 pairs lie within 5 standard errors; false alarms below 3e-6."""
    n = 20_000
    first = uniforms(5, 0, 9, n)
    for other in (
        uniforms(6, 0, 9, n),
        uniforms(5, 0, 10, n),
        uniforms(5, 1, 9, n),
        np.roll(first, 1),
        np.roll(first, 2),
    ):
        assert abs(np.corrcoef(first, other)[0, 1]) < 5 / np.sqrt(n)


def test_quantiles_of_the_normal_distribution() -> None:
    probabilities = np.concatenate(
        (np.logspace(-300, -1, 400), np.linspace(0.01, 0.99, 999), 1 - np.logspace(-15, -1, 50))
    )
    for n in (len(probabilities), 1, 2, 3, 5):
        quantiles = probabilities[-n:].copy()
        random.to_normals(quantiles)
        np.testing.assert_allclose(quantiles, stats.norm.ppf(probabilities[-n:]), rtol=2e-14, atol=1e-15)


def test_normals_are_normal() -> None:
    """Kolmogorov-Smirnov and a count beyond 4 standard deviations (6.3e-5 of them); false alarms below 1e-4."""
    numbers = np.empty(400_000)
    random.fill_normals(3, 0, 1, numbers)
    assert stats.kstest(numbers, "norm").pvalue > 1e-5
    assert stats.binomtest(int((np.abs(numbers) > 4).sum()), len(numbers), 2 * stats.norm.sf(4)).pvalue > 1e-5


def test_coarse_normals_have_the_moments_of_normals_and_use_every_bit_alike() -> None:
    """Moments of 600,000 within 6 standard errors, each value as often as the others (chi-square at 1e-6, 12 times)."""
    n = 600_000
    numbers = np.empty(n)
    random.fill_coarse_normals(3, 0, 1, numbers)
    assert abs(numbers.mean()) < 6 / np.sqrt(n)
    assert abs(numbers.var() - 1) < 6 * np.sqrt(2 / n)
    assert abs((numbers**4).mean() - 3) < 0.05 + 6 * np.sqrt(96 / n)
    for place in range(12):
        counts = np.unique(numbers[place::12], return_counts=True)[1]
        assert stats.chisquare(counts).pvalue > 1e-6
    part = np.empty(17)
    random.fill_coarse_normals(3, 0, 1, part)
    np.testing.assert_array_equal(part, numbers[:17])
