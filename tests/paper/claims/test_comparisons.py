"""Judging means: where they lie, and how often that is wrong where there is nothing to see."""

from __future__ import annotations

import numpy as np
import pytest

from hybandits.paper import HYRAN_RELEASED
from hybandits.paper.claims import FAILS, HOLDS, OPEN
from hybandits.paper.claims.comparisons import compare_regrets, judge_mean, judge_shape
from tests.support.fabricated_outcomes import ORDER_1, judged, power_curves, short_setting


def test_a_mean_is_judged_by_its_interval() -> None:
    units = np.arange(5)
    values = np.array([-1.0, -1.1, -0.9, -1.05, -0.95])
    assert judge_mean(values, units, below=0.0, confidence=0.95).answer == HOLDS
    assert judge_mean(-values, units, below=0.0, confidence=0.95).answer == FAILS
    assert judge_mean(values - values, units, below=0.0, confidence=0.95).answer == OPEN
    assert judge_mean(values + 1, units, below=0.0, confidence=0.95).answer == OPEN
    # Significant alone, but no contradiction of a claim with a hundred parts.
    weak = np.array([1.0, 0.4, 0.9, 0.3, 0.8])
    assert judge_mean(weak, units, below=0.0, confidence=0.95).answer == FAILS
    assert judge_mean(weak, units, below=0.0, confidence=0.95, parts=100).answer == OPEN


@pytest.mark.slow
def test_false_alarms_under_no_difference() -> None:
    """Five environments, five trials each, no true difference: "A < B" is declared in 2.5 % of repetitions.

    Counted as 25 independent runs, the same data would cry wolf ten times as often.
    """
    random = np.random.default_rng(0)
    units, repetitions = np.repeat(np.arange(5), 5), 3000
    clustered = naive = 0
    for _ in range(repetitions):
        difference = np.repeat(random.normal(size=5), 5) + 0.3 * random.normal(size=25)
        clustered += judge_mean(difference, units, below=0.0, confidence=0.95).answer == HOLDS
        naive += judge_mean(difference, np.arange(25), below=0.0, confidence=0.95).answer == HOLDS
    # Binomial standard deviation at 2.5 % and 3000 repetitions: 0.29 %.
    assert 0.016 < clustered / repetitions < 0.034
    assert naive / repetitions > 0.15


def test_comparing_regrets_run_by_run() -> None:
    e = short_setting("setting-1")
    outcome = judged(e, power_curves(e, ORDER_1))
    smaller = compare_regrets(outcome, "HyLinUCB", "LinUCB")
    assert (smaller.what, smaller.verdict) == ("HyLinUCB < LinUCB", HOLDS)
    assert "smaller in 15 of 15 runs" in smaller.value
    assert "in these 5 environments alone" in smaller.value
    larger = compare_regrets(outcome, "LinUCB", "HyLinUCB", arms=25)
    assert (larger.what, larger.verdict) == ("LinUCB < HyLinUCB at K = 25", FAILS)
    assert compare_regrets(outcome, "LinUCB", "HyLinUCB", decides=False).verdict is None


def test_the_shape_of_a_regret() -> None:
    e = short_setting("setting-2")
    outcome = judged(e, power_curves(e, ORDER_1, {HYRAN_RELEASED: 1.0}))
    assert judge_shape(outcome, HYRAN_RELEASED, linear=True).verdict == HOLDS
    assert judge_shape(outcome, HYRAN_RELEASED, linear=False).verdict == FAILS
    assert judge_shape(outcome, "LinUCB", linear=False).verdict == HOLDS
    assert judge_shape(outcome, "LinUCB", linear=True).verdict == FAILS
