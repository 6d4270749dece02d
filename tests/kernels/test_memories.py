"""Models with different memories: which one decides, how they are weighed, and when the first begins anew."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hybandits.estimators.memories import MemoryMixture
from hybandits.kernels import decisions, empirical_bayes, evidence, memories
from tests.support.learned_oracle import make_rows


def mixture(n: int = 40, seed: int = 0) -> MemoryMixture:
    rows = make_rows(seed, n=n, d1=2, d2=2, arms=3)
    estimator = MemoryMixture(d1=2, d2=2)
    for arm, x, z, reward in zip(rows.arm.tolist(), rows.x, rows.z, rows.reward.tolist(), strict=True):
        estimator.learn(arm, x, z, reward)
    return estimator


def test_models_are_drawn_by_weight(mode: str) -> None:
    """The shares of 2,000 draws lie within four standard deviations: a false alarm in 5,000 seeds."""
    weights = np.array([0.2, 0.5, 0.3, 0.0])
    drawn = np.bincount([memories.draw_model(weights, 7, 0, t) for t in range(2000)], minlength=3) / 2000
    assert_allclose(drawn, weights[:3], atol=4 * np.sqrt(0.25 / 2000))
    assert memories.draw_model(np.array([0.0, 0.0, 1.0, 1.0]), 7, 16, 5) == 2
    assert memories.heaviest(weights) == 1


@pytest.mark.parametrize("rule", [decisions.SAMPLING, decisions.INFORMATION])
def test_the_model_drawn_decides(mode: str, rule: int) -> None:
    estimator = mixture()
    estimator.weights[:3] = 0.3, 0.3, 0.4
    random = np.random.default_rng(2)
    x, z = random.standard_normal((3, 2)), random.standard_normal((3, 2))
    slots = np.array([estimator.slot(0), estimator.slot(1), -1])
    for t in range(6):
        model = estimator.models[memories.draw_model(estimator.weights, 9, 16, t)]
        played = model.arm_score, model.shared_score, model.numbers, model.unknown, model.state
        wanted = decisions.choose_tuned(rule, x, z, slots, *played, 9, 16, t)
        for models, weights in ((estimator.arrays, estimator.weights), ((model.arrays,), np.empty(0))):
            assert_array_equal(
                memories.choose_mixed(rule, x, z, slots, models, weights, 9, 16, t), wanted
            )  # fmt: skip


def test_weights_follow_predictions(mode: str) -> None:
    estimator = mixture()
    x, z, reward = np.array([0.5, -1.0]), np.array([1.0, 0.3]), 0.7
    before, t = estimator.weights[:3].copy(), estimator.rounds
    sigma2 = estimator.heaviest.numbers[evidence.PLAYED]
    for slot, arm in ((estimator.slot(1), 1), (estimator._new_slot("new"), "nobody")):
        weights = np.append(before, 0.0)
        density = []
        for model in estimator.models:
            mean, width = model.score(x[None], z[None], np.array([slot if arm == 1 else -1]))
            variance = sigma2 * (1 + width[0] ** 2)
            density.append(np.exp(-((reward - mean[0]) ** 2) / (2 * variance)) / np.sqrt(variance))
        memories.weigh(slot, x, z, reward, estimator.arrays, weights)
        wanted = before * density / (before @ density)
        share = 1 / (t + 2)
        assert_allclose(weights[:3], (1 - share) * wanted + share * np.array([0.9, 0.05, 0.05]), rtol=1e-9)
        assert weights[:3].sum() == pytest.approx(1)


def test_memories_are_multiples_of_the_number_of_parameters(mode: str) -> None:
    estimator = mixture()
    memories.set_memories(2, 2, estimator.arrays)
    rates = [model.numbers[evidence.RATE] for model in estimator.models]
    assert_allclose(rates, [0.0, 1 / (16 * 8), 1 / (4 * 8)])
    empty = MemoryMixture(d1=0, d2=3)
    memories.set_memories(0, 3, empty.arrays)
    assert empty.models[2].numbers[evidence.RATE] == pytest.approx(1 / 12)


def test_the_first_model_begins_anew_where_it_has_lost_its_weight(mode: str) -> None:
    estimator = mixture(60)
    estimator.weights[:3] = 0.001, 0.2, 0.799
    first, last = estimator.models[0], estimator.models[2]
    assert not np.allclose(first.theta, last.theta, rtol=1e-3)
    memories.begin_anew(first.arrays, last.arrays)
    for name, mine, its in zip(empirical_bayes.Arrays._fields, first.arrays, last.arrays, strict=True):
        if name == "numbers":
            assert first.numbers[evidence.RATE] == 0.0
            assert_array_equal(np.delete(mine, evidence.RATE), np.delete(its, evidence.RATE))
        elif name != "state":
            assert_array_equal(mine, its)
    assert first.state[empirical_bayes.NEXT] > first.state[empirical_bayes.ROWS]


def test_all_models_learn_a_row_and_bad_ones_are_refused(mode: str) -> None:
    """The first model, if it weighs nothing at two refreshes of the last one running, begins anew from the heaviest."""
    estimator = mixture(120)
    kept = estimator.models[0].numbers[evidence.KEPT]
    slot, x, z = estimator.slot(0), np.array([0.5, 1.0]), np.array([1.0, -0.4])
    before = [array.copy() for model in estimator.arrays for array in model]
    with np.errstate(all="ignore"):
        assert not memories.learn_mixed(slot, x, z, np.nan, estimator.arrays, estimator.weights, (False, False))
    after = [array for model in estimator.arrays for array in model]
    for mine, its in zip(before, after, strict=True):
        assert_array_equal(mine, its)
    random = np.random.default_rng(1)
    for _ in range(24):
        estimator.weights[:3] = 0.0, 0.1, 0.9
        x, z = random.standard_normal(2), random.standard_normal(2)
        one = np.array([slot]), x[None], z[None], random.standard_normal(1)
        memories.learn_rows_mixed(*one, estimator.arrays, estimator.weights, estimator.held)
        if estimator.models[0].numbers[evidence.KEPT] < kept:
            break
    assert estimator.models[0].numbers[evidence.KEPT] == estimator.models[2].numbers[evidence.KEPT]
    assert estimator.weights[0] == estimator.weights[2] > 0.4
    assert estimator.weights[memories.LOST_TIMES] == 0.0
