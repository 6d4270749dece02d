"""Many decisions, compiled and plain, against single ones."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from hybandits.kernels import batches, decisions
from hybandits.model.learned import LearnedRidge
from tests.support.blocks import RIDGE, Blocks

NO_MASK = np.zeros((0, 0), bool)


def candidates() -> tuple[Blocks, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(3)
    x, z = random.standard_normal((5, 4, 3)), random.standard_normal((5, 4, 2))
    mask = random.random((5, 4)) < 0.5
    mask[:, 1] = True
    return Blocks(3, 2).learn(), x, z, np.array([[0, 1, 2, -1]]), mask


@pytest.mark.parametrize("by_arm", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_bounds(mode: str, by_arm: bool, masked: bool) -> None:
    blocks, x, z, slots, mask = candidates()
    coefficients, t = np.array([0.5, 0.1, 2.0, 5.0, 1.0]), -1 if by_arm else 10
    state = blocks.arm_score, blocks.pulls, blocks.shared_score, RIDGE, coefficients, t
    index, mean, width = np.empty(5, np.int64), np.empty(5), np.empty(5)
    shown = mask if masked else NO_MASK
    assert batches.choose_many_ucb(x, z, slots, shown, *state, 0, 5, index, mean, width) == -1
    together = np.empty(5, np.int64), np.empty(5), np.empty(5)
    assert batches.choose_together(x, z, slots[0], *state, 0, 5, *together) == -1
    for b in range(5):
        rows = np.flatnonzero(mask[b]) if masked else np.arange(4)
        i, *wanted, _ = decisions.choose_ucb(x[b][rows], z[b][rows], slots[0][rows], *state)
        assert index[b] == rows[i]
        assert_allclose((mean[b], width[b]), wanted, rtol=1e-12)
        if not masked:
            assert together[0][b] == i
            assert_allclose((together[1][b], together[2][b]), wanted, rtol=1e-12)
    x[3] = np.nan
    with np.errstate(all="ignore"):
        assert batches.choose_many_ucb(x, z, slots, shown, *state, 0, 5, index, mean, width) == 3


@pytest.mark.parametrize("rule", [decisions.SAMPLING, decisions.INFORMATION])
def test_posteriors(mode: str, rule: int) -> None:
    blocks, x, z, slots, mask = candidates()
    outcome = np.empty(5, np.int64), np.empty(5), np.empty(5), np.empty(5)
    told = blocks.arm_score, blocks.shared_score, RIDGE, 0.3
    assert batches.choose_many_posterior(rule, x, z, slots, mask, *told, 7, 100, 0, 5, *outcome) == -1
    for b in range(5):
        rows = np.flatnonzero(mask[b])
        i, *wanted = decisions.choose_posterior(
            rule, x[b][rows], z[b][rows], slots[0][rows], *told, np.empty(0), 7, 0, 100 + b, -1.0
        )
        assert outcome[0][b] == rows[i]
        assert_allclose([part[b] for part in outcome[1:]], wanted, rtol=1e-12)


@pytest.mark.parametrize("rule", [decisions.SAMPLING, decisions.INFORMATION])
def test_learned_settings(mode: str, rule: int) -> None:
    _, x, z, _, _ = candidates()
    random = np.random.default_rng(0)
    estimator = LearnedRidge(d1=3, d2=2)
    for i in range(12):
        estimator.learn(i % 3, random.standard_normal(3), random.standard_normal(2), float(random.standard_normal()))
    slots = np.array([[estimator.slot(0), estimator.slot(1), estimator.slot(2), -1]])
    learned = estimator.arm_score, estimator.shared_score, estimator.numbers, estimator.unknown, estimator.state
    outcome = np.empty(5, np.int64), np.empty(5), np.empty(5), np.empty(5)
    model = (estimator.arrays,), np.empty(0)
    assert batches.choose_many_tuned(rule, x, z, slots, NO_MASK, *model, 7, 100, 1, 4, *outcome) == -1
    for b in range(1, 4):
        wanted = decisions.choose_tuned(rule, x[b], z[b], slots[0], *learned, 7, 0, 100 + b, -1.0)
        assert_allclose([part[b] for part in outcome], wanted, rtol=1e-12)
