"""What claims ask of an experiment's results: parameters, diversity, burn-in, late rounds, and words for intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hybandits import paper
from hybandits.paper import theorems
from hybandits.statistics import Interval
from tests.support.fabricated_outcomes import (
    ORDER_1,
    diversity,
    judged,
    measures,
    power_curves,
    root_curves,
    short_setting,
)


def test_policies_that_were_not_run_are_named() -> None:
    e = short_setting("setting-1")
    outcome = judged(e, power_curves(e, ORDER_1))
    assert outcome.missing(["LinUCB", "HyRan"]) == ""
    assert outcome.missing(["LinUCB", "Greedy", "SupLinUCB"]) == "No results for Greedy and SupLinUCB."


def test_parameters_come_from_the_record_or_from_the_theorems() -> None:
    e = short_setting("setting-1")
    released = judged(e, power_curves(e, ORDER_1))
    assert released.ridge("HyLinUCB", 25) == 0.1
    assert released.delta("HyLinUCB") == paper.DELTA
    assert released.exploration("HyLinUCB")["kind"] == "SelfNormalised"
    e = paper.experiment("setting-1", "written", scale="quick").only(["HyLinUCB", "LinUCB"])
    written = judged(e, power_curves(e, ORDER_1), lambda *_: None)
    assert (written.ridge("HyLinUCB", 25), written.ridge("LinUCB", 25)) == (25.0, 1.0)
    assert (written.protocol, written.delta("LinUCB")) == ("written", paper.DELTA)


def test_rho_is_the_largest_of_any_run_and_sets_the_burn_in() -> None:
    e = diversity(trials=4)
    outcome = judged(e, root_curves(e, 0.5), measures(e, rho=0.05))
    rho = outcome.rho("LinUCB", 25)
    assert 0.045 < rho <= 0.05
    expected = theorems.burn_in("LinUCB", d1=10, d2=10, arms=25, horizon=5_000, rho=rho, delta=paper.DELTA)
    assert outcome.burn_in("LinUCB", 25) == expected


@pytest.mark.parametrize("rho", [0.0, math.nan])
def test_without_diversity_there_is_no_burn_in(rho: float) -> None:
    e = diversity(trials=2)
    measured = judged(e, root_curves(e, 0.5), measures(e, rho=rho))
    unmeasured = judged(e, root_curves(e, 0.5))
    for outcome in (measured, unmeasured):
        assert math.isnan(outcome.rho("LinUCB", 25))
        assert outcome.burn_in("LinUCB", 25) == math.inf


def test_late_rounds_and_the_probes_at_their_quarters() -> None:
    e = diversity(trials=2)
    outcome = judged(e, root_curves(e, 0.5))
    t = np.array([1000.0, 2500.0, 3000.0, 3800.0, 4500.0, 5000.0])
    assert outcome.late(t).tolist() == [False, True, True, True, True, True]
    assert outcome.late(t, 0.25).tolist() == [False, False, False, True, True, True]
    assert outcome.late_quarters(t) == [1, 3, 5]
    assert outcome.late_quarters(t[[0, 1, 5]]) is None
    assert outcome.regret_exponents("LinUCB") == pytest.approx(0.5, abs=0.1)


def test_an_interval_in_words() -> None:
    e = short_setting("setting-1")
    outcome = judged(e, power_curves(e, ORDER_1))
    five, one = np.arange(5), np.zeros(5)
    interval = Interval(mean=-200.0, low=-210.4, high=-189.6, units=5)
    said = outcome.describe_interval(interval, five, of="difference")
    assert said == "difference -200, 95 % interval -210 to -190"
    assert outcome.describe_interval(None, one) == "no interval: one environment only"
    assert outcome.describe_interval(None, five) == "no interval: too few runs with a usable value"
    e = diversity(trials=1)
    assert judged(e, root_curves(e, 0.5)).describe_interval(None, one) == "no interval: one trial only"
