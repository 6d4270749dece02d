"""Claim 7: regrets below and above the theorems' bounds, and bounds that say nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hybandits.experiments.record import Unit
from hybandits.paper.claims import FAILS, HOLDS, OPEN, Verdict
from hybandits.paper.claims.regret_bounds import judge_claim_7
from tests.support.fabricated_outcomes import ORDER_1, judged, power_curves, short_setting


def verdict_at(rho: float, arms: int, level: float) -> Verdict:
    """The verdict on regrets of one level, in 50,000 rounds with this diversity."""
    rounds = (100, 50_000)
    e = replace(
        short_setting("setting-1"), arms=(arms,), d1=1, d2=1, horizon=50_000, points=rounds, probes=rounds[1:], trials=1
    )

    def design(unit: Unit, policy: str, trial: int) -> Any:
        if policy.startswith("HyRan"):
            return None
        return {"lambda_min_v": [1.0], "rho_x": [rho], "rho_z": [rho / 2 if unit.environment else rho], "z_norm": [0.1]}

    return judge_claim_7([judged(e, power_curves(e, dict.fromkeys(ORDER_1, level)), design)], "released")


def test_claim_7_says_nothing_before_the_burn_in() -> None:
    verdict = verdict_at(0.05, 25, 100.0)
    assert verdict.verdict == OPEN
    assert len(verdict.evidence) == 3
    assert verdict.summary.startswith("No regret exceeds its bound")
    assert "3 of 3 are vacuous, and T does not exceed the burn-in in 2 of 3" in verdict.summary
    assert "rho = 0.05" in verdict.evidence[0].value  # the largest of any run
    assert "another lambda and gamma" in verdict.evidence[0].value


def test_claim_7_holds_after_the_burn_in() -> None:
    verdict = verdict_at(1.0, 1, 100.0)
    assert verdict.verdict == HOLDS
    assert "T does not exceed the burn-in in 0 of 3" in verdict.summary


def test_claim_7_is_contradicted_by_a_regret_above() -> None:
    verdict = verdict_at(1.0, 1, 1e9)
    assert verdict.verdict == FAILS
    assert verdict.summary.startswith("3 of 3 regrets exceed their bound")


def test_claim_7_without_diversity() -> None:
    verdict = verdict_at(0.0, 25, 100.0)
    assert verdict.verdict == OPEN
    assert "no diversity was measured" in verdict.evidence[0].value
