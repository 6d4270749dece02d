"""Many decisions, compiled and plain, against single ones."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hybandits.estimators.learned import LearnedRidge
from hybandits.kernels import batches, decisions, information
from hybandits.kernels.random import DECIDE, KEYED
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
    assert batches.choose_batch_ucb(x, z, slots, shown, *state, 0, 5, index, mean, width) == -1
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
        assert batches.choose_batch_ucb(x, z, slots, shown, *state, 0, 5, index, mean, width) == 3


@pytest.mark.parametrize("rule", [decisions.SAMPLING, decisions.INFORMATION])
def test_posteriors(mode: str, rule: int) -> None:
    blocks, x, z, slots, mask = candidates()
    outcome = np.empty(5, np.int64), np.empty(5), np.empty(5), np.empty(5)
    told = blocks.arm_score, blocks.shared_score, RIDGE, 0.3
    assert batches.choose_batch_posterior(rule, x, z, slots, mask, *told, 7, 100, 0, 5, *outcome) == -1
    for b in range(5):
        rows = np.flatnonzero(mask[b])
        i, *wanted = decisions.choose_posterior(
            rule, x[b][rows], z[b][rows], slots[0][rows], *told, np.empty(0), 7, 0, 100 + b
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
    assert batches.choose_batch_tuned(rule, x, z, slots, NO_MASK, *model, 7, 100, 1, 4, *outcome) == -1
    for b in range(1, 4):
        wanted = decisions.choose_tuned(rule, x[b], z[b], slots[0], *learned, 7, 0, 100 + b)
        assert_allclose([part[b] for part in outcome], wanted, rtol=1e-12)


def test_chances_by_information_are_those_of_the_choices(mode: str) -> None:
    """The two arms of each mixture have the chances that choices by many lots say; the others have none."""
    blocks, slots = Blocks(3, 2).learn(), np.array([0, 1, 2, -1])
    random = np.random.default_rng(0)
    x, z = random.standard_normal((40, 4, 3)), random.standard_normal((40, 4, 2))
    told = blocks.arm_score, blocks.shared_score, RIDGE, 0.3
    numbers = np.arange(200, 240)
    chances = np.full((40, 4), np.nan)
    assert batches.chances_batch_told(x, z, slots, *told, 7, KEYED, numbers, chances) == -1
    for b in range(40):
        wanted = np.zeros(4)
        for lot in (0.0, 1.0):  # the other arm of the mixture, then the greedy one
            purpose = DECIDE + KEYED
            its = x[b], z[b], slots, *told, np.empty(0), 7, purpose, 200 + b
            i, _, _, chance = information.choose_by_information(*its, lot)
            wanted[i] = chance
        assert_array_equal(chances[b], wanted)
        alone = np.full(4, np.nan)
        assert information.chances_by_information(*its, alone)
        assert_array_equal(alone, wanted)
    assert (np.count_nonzero(chances, axis=1) == 2).sum() > 3
    x[3] = np.nan
    with np.errstate(all="ignore"):
        assert batches.chances_batch_told(x, z, slots, *told, 7, KEYED, numbers, chances) == 3


def test_chances_at_learned_settings(mode: str) -> None:
    _, x, z, _, _ = candidates()
    random = np.random.default_rng(0)
    estimator = LearnedRidge(d1=3, d2=2)
    numbers, chances = np.arange(5), np.empty((5, 4))

    def many() -> int:
        slots = np.array([estimator.slot(i) if estimator.known else -1 for i in range(3)] + [-1])
        arrays = estimator.arm_score, estimator.shared_score, estimator.numbers, estimator.unknown, estimator.state
        refused: int = batches.chances_batch_tuned(x, z, slots, *arrays, 7, 0, numbers, chances)
        for b in range(5):
            index, _, _, chance = decisions.choose_tuned(decisions.INFORMATION, x[b], z[b], slots, *arrays, 7, 0, b)
            assert chances[b, index] == chance
            alone = np.empty(4)
            assert decisions.chances_tuned(x[b], z[b], slots, *arrays, 7, 0, b, alone)
            assert_array_equal(alone, chances[b])
        return refused

    assert many() == -1
    assert (chances == 0.25).all(), "nothing has been learned"
    for i in range(12):
        estimator.learn(i % 3, random.standard_normal(3), random.standard_normal(2), float(random.standard_normal()))
    assert many() == -1
    assert_allclose(chances.sum(axis=1), 1.0, rtol=1e-12)
    x[2, 1] = np.inf
    slots = np.full(4, -1)
    arrays = estimator.arm_score, estimator.shared_score, estimator.numbers, estimator.unknown, estimator.state
    with np.errstate(all="ignore"):
        assert batches.chances_batch_tuned(x, z, slots, *arrays, 7, 0, numbers, chances) == 2
