"""Short versions of `make soak`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import soak


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
