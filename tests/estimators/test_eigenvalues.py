"""Eigenvalues against dense algebra, also where directions are absent."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from hybandits.estimators.eigenvalues import (
    coupling,
    largest_ratio,
    rank,
    smallest,
)

RCOND = 1e-5


def rows(n: int, d: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d))


def inverse_root(matrix: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray(vectors / np.sqrt(values) @ vectors.T)


def test_smallest_of_one_and_of_several() -> None:
    matrices = np.stack([a.T @ a for a in (rows(9, 4), rows(9, 4, 1))])
    assert_allclose(smallest(matrices), [np.linalg.svd(a)[1][-1] ** 2 for a in (rows(9, 4), rows(9, 4, 1))])
    assert smallest(matrices[0]) == smallest(matrices)[0]
    assert np.isnan(smallest(np.zeros((0, 0))))
    assert np.isnan(smallest(np.zeros((3, 0, 0)))).all()


def test_largest_ratio_is_the_generalised_eigenvalue() -> None:
    part, whole = rows(3, 4).T @ rows(3, 4), rows(9, 4, 1).T @ rows(9, 4, 1)
    assert largest_ratio(part, whole) == pytest.approx(np.linalg.eigvals(np.linalg.solve(whole, part)).real.max())
    assert largest_ratio(2.5 * whole, whole) == pytest.approx(2.5)
    assert largest_ratio(-whole, whole) == 0.0
    assert largest_ratio(np.zeros((0, 0)), np.zeros((0, 0))) == 0.0


def test_coupling_is_the_largest_singular_value() -> None:
    x, z = rows(20, 4), rows(20, 3, 1)
    v, b, w = x.T @ x + np.eye(4), x.T @ z, z.T @ z + np.eye(3)
    assert coupling(v, b, w) == pytest.approx(np.linalg.norm(inverse_root(v) @ b @ inverse_root(w), 2))
    assert coupling(v, 0 * b, w) == 0.0
    assert coupling(v, b[:, :0], w[:0, :0]) == 0.0


@pytest.mark.parametrize("units", [1.0, 1e-6, 1e6])
def test_rank_does_not_depend_on_units(units: float) -> None:
    a = rows(30, 4)
    a[:, 3] = a[:, 0] - 2 * a[:, 1]
    a *= [1.0, units, 1.0, 1.0]
    a[:, 3] *= 10.0
    assert rank(a.T @ a, rcond=RCOND) == 3
    assert rank(a[:, :3].T @ a[:, :3], rcond=RCOND) == 3


def test_rank_of_little() -> None:
    assert rank(np.zeros((0, 0)), rcond=RCOND) == 0
    assert rank(np.zeros((3, 3)), rcond=RCOND) == 0
    assert rank(np.diag([4.0, 0.0, 0.0]), rcond=RCOND) == 1
