"""Whose regret grows slower with the number of arms, by both measures of growth."""

from __future__ import annotations

import numpy as np

from hybandits.foundation.checks import FloatArray
from hybandits.paper.claims import FAILS, HOLDS
from hybandits.paper.claims.growth_in_arms import compare_growth
from tests.support.fabricated_outcomes import judged, short_setting


def test_growth_as_a_power_and_per_added_arm() -> None:
    """5 K against 100 sqrt(K): twice the power, but at K = 10 to 40 the root adds more per arm."""
    e = short_setting("setting-3", arms=(10, 20, 40))

    def curve(policy: str, arms: int, environment: int, trial: int) -> FloatArray:
        level = 5 * arms if policy == "HyLinUCB" else 100 * arms**0.5
        noise = np.random.default_rng([environment, trial, arms, len(policy)]).normal(1, 0.001)
        return np.linspace(0, level * noise, len(e.points))

    by_power, per_arm = compare_growth(judged(e, curve), "HyLinUCB", "LinUCB", parts=2)
    assert by_power.what == "growth of HyLinUCB < LinUCB as a power of K"
    assert by_power.value.startswith("1 against 0.5; difference ")
    assert by_power.verdict == FAILS
    assert per_arm.what == "growth of HyLinUCB < LinUCB per added arm"
    assert per_arm.value.startswith("5 against 10")
    assert per_arm.verdict == HOLDS
