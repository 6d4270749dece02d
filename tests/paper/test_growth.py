"""Growth of regret with K against direct computation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hybandits.paper.bounds import uniform_regret
from hybandits.paper.growth import Growth, added_per_arm, local_exponents
from tests.support.fabricated_outcomes import ORDER_1, fabricated_outcome, power_curves, short_setting


def test_powers_and_lines_are_recovered() -> None:
    arms = np.array([10.0, 25.0, 400.0])
    np.testing.assert_allclose(local_exponents(arms, 3 * arms**0.7), [0.7, 0.7])
    np.testing.assert_allclose(added_per_arm(arms, 3 * arms + 100), [3, 3])


def test_regret_is_divided_by_that_of_uniform_choice() -> None:
    """The expected regret of uniform choice is what it loses on average when it is played."""
    e = short_setting("setting-3", arms=(10, 50), seeds=(5, 6))
    growth = Growth(fabricated_outcome(e, power_curves(e, ORDER_1)), ["HyLinUCB", "LinUCB"])
    random = np.random.default_rng(0)
    for i, arms in enumerate((10, 50)):
        lost = []
        for seed in e.seeds:
            for _, means, best in e.world(arms, seed).rounds(e.horizon):
                lost.append(best - means[np.arange(len(means)), random.integers(arms, size=len(means))])
        per_round = np.concatenate(lost)
        error = np.hypot(per_round.std() / np.sqrt(len(per_round)), uniform_regret(e, arms).error)
        assert growth.uniform[i] == pytest.approx(e.horizon * per_round.mean(), abs=4 * e.horizon * error)
    runs = growth.regret["LinUCB"]
    assert runs.shape == (6, 2)
    np.testing.assert_allclose(growth.share["LinUCB"], runs.mean(axis=0) / growth.uniform)
    assert sorted(set(growth.units)) == [0, 1]


def test_all_sampled_rounds_count_alike_whatever_the_number_of_environments() -> None:
    e = short_setting("setting-3", seeds=(5, 6), horizon=100_000, points=(100_000,))
    errors = [uniform_regret(replace(e, seeds=tuple(range(count))), 50).error for count in (2, 20)]
    assert errors[0] == pytest.approx(errors[1], rel=0.1)
