"""Claims 1 to 3 on fabricated regrets: in the stated order, reversed, tied, broken or incomplete."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hybandits.experiments.results import Outcome
from hybandits.foundation.checks import FloatArray
from hybandits.paper import HYRAN_RELEASED
from hybandits.paper.claims import FAILS, HOLDS, OPEN
from hybandits.paper.claims.judged_outcome import JudgedOutcome
from hybandits.paper.claims.regret_order import judge_claim_1, judge_claim_2, judge_claim_3
from tests.support.fabricated_outcomes import (
    ORDER_1,
    fabricated_outcome,
    judged,
    power_curves,
    short_setting,
    the_finding,
)

ORDER_2 = {"DisLinUCB": 100.0, "HyLinUCB": 120.0, HYRAN_RELEASED: 200.0, "LinUCB": 400.0, "HyRan": 50.0}
LINEAR_HYRAN = {HYRAN_RELEASED: 0.97, "HyRan": 0.6}


def test_claim_1_holds_whatever_hyran_with_its_cross_blocks_does() -> None:
    e = short_setting("setting-1")
    verdict = judge_claim_1(judged(e, power_curves(e, ORDER_1)))
    assert verdict.verdict == HOLDS
    assert (verdict.protocol, len(verdict.evidence)) == ("released", 5)
    assert "15 of 15 runs" in the_finding(verdict, "HyLinUCB < LinUCB").value
    full_hyran = verdict.evidence[-1]
    assert full_hyran.verdict is None
    assert "not deciding" in full_hyran.what
    assert "0 of 15 runs" in full_hyran.value


def test_claim_1_reversed_and_tied() -> None:
    e = short_setting("setting-1")
    swapped = judge_claim_1(judged(e, power_curves(e, ORDER_1 | {"HyLinUCB": 310.0})))
    assert swapped.verdict == FAILS
    assert swapped.summary.startswith("Contradicted: HyLinUCB < LinUCB. The whole order appears in ")
    assert the_finding(swapped, "LinUCB < DisLinUCB").verdict == HOLDS
    tied = judge_claim_1(judged(e, power_curves(e, ORDER_1 | {"HyLinUCB": 300.0})))
    assert tied.verdict == OPEN
    assert tied.summary.startswith("Not settled: HyLinUCB < LinUCB. ")


def test_a_missing_policy_leaves_a_claim_undecided() -> None:
    e = short_setting("setting-1").only(["LinUCB", "HyLinUCB", "DisLinUCB"])
    verdict = judge_claim_1(judged(e, power_curves(e, ORDER_1)))
    assert (verdict.verdict, verdict.summary) == (OPEN, "No results for HyRan (released).")


def test_claim_2_holds() -> None:
    e = short_setting("setting-2")
    verdict = judge_claim_2(judged(e, power_curves(e, ORDER_2, LINEAR_HYRAN)))
    assert verdict.verdict == HOLDS
    assert the_finding(verdict, f"{HYRAN_RELEASED} linear").value.startswith("exponent 0.97")
    assert sum(r.verdict is None for r in verdict.evidence) == 4


@pytest.mark.parametrize(
    ("shapes", "part"),
    [
        (LINEAR_HYRAN | {HYRAN_RELEASED: 0.7}, f"{HYRAN_RELEASED} linear"),
        (LINEAR_HYRAN | {"LinUCB": 1.0}, "LinUCB sublinear"),
    ],
)
def test_claim_2_fails_by_shape(shapes: dict[str, float], part: str) -> None:
    e = short_setting("setting-2")
    verdict = judge_claim_2(judged(e, power_curves(e, ORDER_2, shapes)))
    assert verdict.verdict == FAILS
    assert verdict.summary == f"Contradicted: {part}. The whole order appears in 5 of 5 environments."


def test_zero_and_broken_regrets_are_undecided() -> None:
    e = short_setting("setting-2")
    for value in (0.0, math.nan):
        verdict = judge_claim_2(judged(e, lambda *_, v=value: np.full(len(e.points), v)))
        assert verdict.verdict == OPEN
        assert "too few runs with a usable value" in the_finding(verdict, "LinUCB sublinear").value


def setting_3(exponents: dict[str, float], at_10: dict[str, float], **changes: Any) -> Outcome:
    e = short_setting("setting-3", arms=(10, 100, 400), **changes)

    def curve(policy: str, arms: int, environment: int, trial: int) -> FloatArray:
        level = at_10[policy] * (arms / 10) ** exponents[policy]
        return power_curves(e, {policy: level})(policy, arms, environment, trial)

    return fabricated_outcome(e, curve)


LEVELS_3 = {"HyLinUCB": 20.0, "DisLinUCB": 40.0, "LinUCB": 90.0, HYRAN_RELEASED: 700.0, "HyRan": 10.0}


def test_claim_3_holds() -> None:
    growth = {"HyLinUCB": 0.5, "DisLinUCB": 0.9, "LinUCB": 1.0, HYRAN_RELEASED: 0.7, "HyRan": 0.5}
    verdict = judge_claim_3(JudgedOutcome(setting_3(growth, LEVELS_3), 0.95))
    assert verdict.verdict == HOLDS
    assert verdict.summary == (
        "The order is as stated at every K. HyLinUCB's regret grows slowest with K. The whole order appears in 5 of 5 "
        "environments at every K."
    )
    assert len(verdict.evidence) == 3 * 3 + 2 * 3 + 2


def test_environments_in_the_whole_order_are_counted() -> None:
    """Two of five environments have another order, at one number of arms only."""
    e = short_setting("setting-3", arms=(10, 400))
    levels = {"HyLinUCB": 20.0, "DisLinUCB": 40.0, "LinUCB": 90.0, HYRAN_RELEASED: 700.0, "HyRan": 10.0}

    def curve(policy: str, arms: int, environment: int, trial: int) -> FloatArray:
        changed = levels | ({"DisLinUCB": 10.0} if environment < 2 and arms == 400 else {})
        return power_curves(e, changed)(policy, arms, environment, trial)

    verdict = judge_claim_3(judged(e, curve))
    counted = the_finding(verdict, "environments in the whole stated order (not deciding)")
    assert (counted.value, counted.verdict) == ("5 of 5 at K = 10; 3 of 5 at K = 400; 3 of 5 at every K", None)
    assert verdict.summary.endswith(" The whole order appears in 3 of 5 environments at every K.")


def test_fresh_environments_say_how_long_every_policy_played() -> None:
    e = replace(short_setting("setting-1", seeds=tuple(range(20)), trials=1), name="setting-1-fresh")
    verdict = judge_claim_1(judged(e, power_curves(e, ORDER_1)))
    assert verdict.verdict == HOLDS
    assert "these 20 environments alone" not in the_finding(verdict, "HyLinUCB < LinUCB").value, "one trial each"
    assert the_finding(verdict, "what was played (not deciding)").value == (
        "20 fresh environments; all policies, HyRan too, play all 2,000 rounds, 1 trial each"
    )


def test_claim_3_where_the_two_measures_of_growth_differ() -> None:
    """A large regret that grows slowly as a power adds more per arm than a small one that grows fast."""
    growth = {"HyLinUCB": 0.9, "DisLinUCB": 1.0, "LinUCB": 1.1, HYRAN_RELEASED: 0.6, "HyRan": 0.5}
    verdict = judge_claim_3(JudgedOutcome(setting_3(growth, LEVELS_3), 0.95))
    assert verdict.verdict == OPEN
    assert verdict.summary.startswith(
        "The order is as stated at every K, but which regret grows slowest depends on the measure (contradicted: "
    )
    assert the_finding(verdict, f"growth of HyLinUCB < {HYRAN_RELEASED} as a power of K").verdict == FAILS
    assert the_finding(verdict, f"growth of HyLinUCB < {HYRAN_RELEASED} per added arm").verdict == HOLDS


def test_claim_3_contradicted_by_order_and_by_growth() -> None:
    growth = {"HyLinUCB": 0.5, "DisLinUCB": 0.9, "LinUCB": 1.0, HYRAN_RELEASED: 0.7, "HyRan": 0.5}
    verdict = judge_claim_3(JudgedOutcome(setting_3(growth, LEVELS_3 | {"DisLinUCB": 15.0}), 0.95))
    assert verdict.verdict == FAILS
    assert verdict.summary.startswith("Contradicted: HyLinUCB < DisLinUCB at K = 10.")
    growth = {"HyLinUCB": 0.6, "DisLinUCB": 0.9, "LinUCB": 1.0, HYRAN_RELEASED: 0.01, "HyRan": 0.5}
    verdict = judge_claim_3(JudgedOutcome(setting_3(growth, LEVELS_3 | {HYRAN_RELEASED: 9000.0}), 0.95))
    assert the_finding(verdict, f"growth of HyLinUCB < {HYRAN_RELEASED} as a power of K").verdict == FAILS


def test_claim_3_with_cases_missing() -> None:
    growth = {"HyLinUCB": 0.5, "DisLinUCB": 0.9, "LinUCB": 1.0, HYRAN_RELEASED: 0.7, "HyRan": 0.5}
    whole = setting_3(growth, LEVELS_3)
    for kept in ([10, 400], [10]):
        part = replace(whole, tables={arms: whole.tables[arms] for arms in kept})
        verdict = judge_claim_3(JudgedOutcome(part, 0.95))
        assert verdict.verdict == OPEN
        assert "K = 100" in verdict.summary
