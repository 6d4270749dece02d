"""Running sums solved by elimination agree with the dense normal equations."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hybandits.estimators.sums import RunningSums
from hybandits.kernels.hyran import add_row

D1, D2, ARMS, RIDGE = 3, 2, 4, 0.7


def learned(cross: bool) -> tuple[RunningSums, np.ndarray, np.ndarray]:
    """Sums of random rows, and the dense matrix and right-hand side of the same rows."""
    random = np.random.default_rng(1)
    sums = RunningSums(D1, D2, cross=cross)
    slots = [sums.slot_for(arm) for arm in range(ARMS)]
    size = D1 + ARMS * D2
    matrix, right = np.zeros((size, size)), np.zeros(size)
    for _ in range(40):
        arm, x, z, reward = int(random.integers(ARMS)), random.normal(size=D1), random.normal(size=D2), random.normal()
        add_row(slots[arm], x, z, reward, sums.shared, sums.own)
        row = np.zeros(size)
        row[:D1], row[D1 + arm * D2 : D1 + (arm + 1) * D2] = x, z
        matrix += np.outer(row, row)
        right += reward * row
    if not cross:
        matrix[:D1, D1:] = matrix[D1:, :D1] = 0.0
    return sums, matrix + RIDGE * np.eye(size), right


@pytest.mark.parametrize("cross", [True, False])
def test_parameters_and_widths_are_those_of_the_dense_solve(cross: bool) -> None:
    sums, matrix, right = learned(cross)
    expected = np.linalg.solve(matrix, right)
    solved = sums.estimate(RIDGE)
    assert_allclose(solved.theta, expected[:D1], rtol=1e-9)
    slots = [sums.slot(arm) for arm in range(ARMS)]
    assert_allclose(solved.beta[slots].ravel(), expected[D1:], rtol=1e-9)
    x, z = np.ones((1, D1)), np.ones((1, D2))
    prediction = sums.predict(x, z, np.array(slots[:1]), RIDGE)
    row = np.concatenate((x[0], z[0], np.zeros((ARMS - 1) * D2)))
    assert_allclose(prediction.width[0], np.sqrt(row @ np.linalg.solve(matrix, row)), rtol=1e-9)


def test_packed_sums_are_restored_to_the_bit() -> None:
    sums, _, _ = learned(True)
    again = RunningSums(D1, D2, cross=True)
    again.restore(*sums.pack())
    assert_array_equal(again.shared, sums.shared)
    assert_array_equal(again.estimate(RIDGE).theta, sums.estimate(RIDGE).theta)
