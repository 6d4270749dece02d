"""The sums behind HyRan, compiled and plain, against the arrow factor and row by row."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from hybandits.kernels import arrow, decisions, gram
from tests.support.blocks import RIDGE, SHAPES, Blocks


@pytest.mark.parametrize(("d1", "d2"), SHAPES)
def test_sums_factor_into_the_same_arrow(mode: str, d1: int, d2: int) -> None:
    blocks = Blocks(d1, d2).learn()
    shared, own = np.zeros(d1 * gram.padded(d1)), np.zeros(4 * gram.block_size(d2, d1))
    for i, slot in enumerate(blocks.slots):
        gram.add_row(slot, blocks.x[i], blocks.z[i], blocks.rewards[i], True, shared, own)
    factor, shared_factor, theta, beta = np.zeros_like(own), np.zeros_like(shared), np.zeros(d1), np.zeros((4, d2))
    assert gram.estimate(1, RIDGE, True, d1, d2, shared, own, factor, shared_factor, theta, beta)
    expected = np.empty(d1)
    arrow.transpose_times(blocks.shared_score, 0, d1, blocks.shared_score[:d1], expected)
    assert_allclose(theta, expected, rtol=1e-9, atol=1e-11)
    for i in range(3):
        parameters = np.empty(d2)
        arrow.arm_parameters(blocks.arm_score, i * blocks.h, d1, d2, expected, parameters)
        assert_allclose(beta[i], parameters, rtol=1e-9, atol=1e-11)
    assert (beta[3] == 0).all()
    mean, width = np.empty(4), np.empty(4)
    x, z, slots = blocks.x[:4], blocks.z[:4], np.array([2, 0, -1, 1])
    arrow.score_rows(x, z, slots, blocks.arm_score, blocks.shared_score, RIDGE, mean, width)
    best, highest = decisions.best_mean(x, z, slots, theta, beta)
    assert best == mean.argmax()
    assert_allclose(highest, mean.max(), rtol=1e-9, atol=1e-11)
    for i, slot in enumerate(slots):
        assert_allclose(gram.width_of(x[i], z[i], slot, RIDGE, True, factor, shared_factor), width[i], rtol=1e-9)


@pytest.mark.parametrize(("d1", "d2"), SHAPES)
@pytest.mark.parametrize("cross", [True, False])
@pytest.mark.parametrize("draw", [0.1, 0.9])
def test_a_round_of_sums_is_its_rows_one_by_one(mode: str, d1: int, d2: int, cross: bool, draw: float) -> None:
    """draw < p = 0.5: every candidate with its pseudo-reward; else the arm played alone."""
    random = np.random.default_rng(4)
    n, m = 6, d1 if cross else 0
    x, z, slots = random.normal(size=(n, d1)), random.normal(size=(n, d2)), np.array([4, 0, -1, 2, 5, 1])
    shared, own = np.zeros(d1 * gram.padded(d1)), np.zeros(2 * 4 * gram.block_size(d2, m))
    for i in (0, 3, 5):
        gram.add_row(slots[i], x[i] + 1, z[i] - 1, 0.5, cross, shared, own)
    one_by_one = shared.copy(), own.copy()
    room = np.zeros_like(own), np.zeros_like(shared), np.zeros(d1), np.zeros((8, d2))
    assert gram.learn_round(3, 0.5, draw, 2.0, x, z, slots, 1.5, cross, 2, shared, own, *room)
    if draw > 0.5:
        gram.add_row(slots[3], x[3], z[3], 1.5, cross, *one_by_one)
    else:
        gram.estimate(2, 2.0, cross, d1, d2, *one_by_one, *room)
        check = [gram.mean_of(x[i], z[i], slots[i], room[2], room[3]) for i in range(n)]
        check[3] = (1 - 1 / 0.5) * check[3] + 1.5 / 0.5
        for i in np.flatnonzero(slots >= 0):
            gram.add_row(slots[i], x[i], z[i], check[i], cross, *one_by_one)
    assert_allclose(shared, one_by_one[0], rtol=1e-12, atol=1e-14)
    assert_allclose(own, one_by_one[1], rtol=1e-12, atol=1e-14)
