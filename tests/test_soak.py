"""Short versions of `make soak`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import soak
from soak import kills, learned
from tests.support.learned_oracle import Rows, Scales, step


@pytest.mark.slow
@pytest.mark.parametrize("case", [soak.SCALED, soak.ROTATED, soak.UNIT], ids=lambda case: case.name)
def test_widths_stay_right_over_many_updates(case: soak.Soak) -> None:
    short = replace(case, d=8, arms=3, rows=30_000, chunk=10_000)
    lines: list[str] = []
    outcome = soak.run(short, say=lines.append)
    assert outcome.rows == 30_000
    assert outcome.positive_definite
    assert outcome.width_error <= case.target / 100
    assert len(lines) == 3


def test_the_reference_is_the_dense_solve() -> None:
    random = np.random.default_rng(0)
    whole = random.integers(-9, 9, (5, 3))
    gram = (whole.T @ whole).astype(float)
    units = [soak.mpmath.mpf(2), soak.mpmath.mpf(1), soak.mpmath.mpf(0.5)]
    scale = np.array([2.0, 1.0, 0.5])
    row = random.normal(size=3)
    m = gram * np.outer(scale, scale) + 0.3 * np.eye(3)
    exact = soak.widths(gram, units, 0.3, [[soak.mpmath.mpf(v) for v in row]])
    assert_allclose([float(w) for w in exact], np.sqrt(row @ np.linalg.solve(m, row)))


@pytest.mark.parametrize("d", [1, 5, 8, 20])
def test_rotation_is_orthogonal_and_exact(d: int) -> None:
    rotation = replace(soak.ROTATED, d=d).rotation()
    assert (rotation @ rotation.T == np.eye(d)).all()


@pytest.mark.slow
@pytest.mark.parametrize("case", [learned.LEARNED, learned.LEARNED_OVERLAP], ids=lambda case: case.name)
def test_what_is_learned_stays_right_over_many_updates(case: learned.LearnedSoak) -> None:
    short = replace(case, d1=5, d2=3, arms=4, rows=20_000, chunk=10_000)
    lines: list[str] = []
    outcome = learned.run(short, say=lines.append)
    assert outcome.rows == 20_000
    assert outcome.worst <= case.target
    assert outcome.widths <= case.target / 100
    assert len(lines) == 3


def test_the_reference_of_what_is_learned_is_the_dense_model() -> None:
    random = np.random.default_rng(0)
    n, d1, d2, arms = 60, 3, 2, 4
    x, z, played = random.integers(-9, 9, (n, d1)), random.integers(-9, 9, (n, d2)), random.integers(0, arms, n)
    rewards = random.integers(-4000, 4000, n).astype(float)
    units = np.array([0.5, 1.0, 2.0, 0.25, 1.0])
    sums = learned.Sums(d1, d2, arms)
    for part in (slice(0, 25), slice(25, n)):
        sums.add(played[part], x[part], z[part], rewards[part])
    at = Scales(0.3, 0.7, np.array([0.2, 0.4]), 1.5)
    mpf = learned.mpmath.mpf
    exact = learned.Settings(mpf(at.sigma2), mpf(at.s1), [mpf(s) for s in at.s2], mpf(at.sm))
    after, m = learned.Dense(sums, units.tolist()).step(exact)
    wanted, wanted_m = step(Rows(played, x * units[:d1], z * units[d1:], rewards / 2**learned.BITS), at, arms)
    got = [after.sigma2, *[after.s1] * d1, *after.s2, *[after.sm] * d2]
    assert_allclose(np.array(got, float), np.hstack([wanted.sigma2, wanted.s1, wanted.s2, wanted.sm]), rtol=1e-10)
    assert_allclose([float(each) for each in m], wanted_m, rtol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize(("store", "window"), [("sqlite", False), ("postgresql", True)])
def test_servers_that_are_killed_lose_nothing(store: str, window: bool) -> None:
    outcome = kills.run(store, 5, window=window)
    assert outcome.problems == []
    assert outcome.kills == 5
    assert min(outcome.decisions, outcome.rewards, outcome.changes) > 0
