"""Claim 6 before and after the burn-in."""

from __future__ import annotations

from typing import Any

import pytest

from hybandits.experiments.record import DESIGN_BY_ARM, Unit, grid
from hybandits.paper.claims import FAILS, HOLDS, OPEN
from hybandits.paper.claims.key_lemma import judge_claim_6
from tests.support.fabricated_outcomes import (
    ORDER_1,
    diversity,
    judged,
    measures,
    power_curves,
    root_curves,
    short_setting,
    the_finding,
)


@pytest.mark.parametrize(
    ("changes", "trials", "answer", "words"),
    [
        # The burn-in is far beyond T: the conclusion may be seen before.
        ({"z": 1.0}, 80, HOLDS, "is at most 1/2 in all 80 trials at T"),
        ({"z": 1.0}, 10, OPEN, "too few to show a probability of 0.96"),
        ({"z": 0.4, "falls": -0.01}, 80, OPEN, "at T but not falling"),
        ({"z": 9.0}, 80, OPEN, "exceeds 1/2 in 80 of 80 trials at T"),
    ],
)
def test_claim_6_before_the_burn_in(changes: dict[str, Any], trials: int, answer: str, words: str) -> None:
    e = diversity(trials=trials)
    verdict = judge_claim_6(judged(e, root_curves(e, 0.5), measures(e, **changes)))
    assert verdict.verdict == answer
    assert words in verdict.summary
    assert "T = 5,000 is before the burn-in" in verdict.summary


def test_claim_6_names_the_round_from_which_on_it_is_seen() -> None:
    e = diversity()
    verdict = judge_claim_6(judged(e, root_curves(e, 0.5), measures(e, z=1.0)))
    # 1.0 (t/100)^-1/2 is 1/2 at t = 400, the largest of 80 trials a little below 1.0.
    first = next(t for t in e.probes if t >= 390)
    assert f"in all trials from t = {first:,} on" in the_finding(verdict, "LinUCB: sigma_max(Z_t)").value
    ridge = the_finding(verdict, "LinUCB: ridge (not deciding)")
    assert ridge.value.startswith("1; the proof asks for at least 1/rho = 20")
    assert "pulls of an arm" in verdict.evidence[-1].value


@pytest.mark.parametrize(("z", "answer"), [(1.0, HOLDS), (9.0, FAILS)])
def test_claim_6_after_the_burn_in(z: float, answer: str) -> None:
    """One arm and rho = 1 (no features have that, but made-up ones do): T_o is about 10,000 rounds."""
    rounds = grid(20_000, 24, keep=())
    e = diversity(arms=(1,), horizon=20_000, points=rounds, probes=rounds)

    def design(unit: Unit, policy: str, trial: int) -> Any:
        arrays = measures(e, z=z, rho=1.0)(unit, policy, trial)
        return {name: a[:, :1] if name in DESIGN_BY_ARM else a for name, a in arrays.items()}

    verdict = judge_claim_6(judged(e, root_curves(e, 0.5), design))
    assert verdict.verdict == answer
    assert "since T_o" in verdict.summary


def test_claim_6_shows_longer_experiments_for_information() -> None:
    e = diversity(trials=4)
    outcome = judged(e, root_curves(e, 0.5), measures(e))
    s = short_setting("setting-1", probes=(2_000,), trials=1)

    def design(unit: Unit, policy: str, trial: int) -> Any:
        if policy.startswith("HyRan"):
            return None
        return {"lambda_min_v": [1.0], "rho_x": [0.1], "rho_z": [0.1], "z_norm": [0.1 + 0.1 * unit.environment]}

    alone = judge_claim_6(outcome)
    verdict = judge_claim_6(outcome, [judged(s, power_curves(s, ORDER_1), design)])
    assert verdict.evidence[:-1] == alone.evidence
    assert verdict.evidence[-1].what == "setting-1, K = 25: sigma_max(Z_T) at T = 2,000 (not deciding)"
    assert verdict.evidence[-1].value == "LinUCB 0.1 to 0.5; HyLinUCB 0.1 to 0.5"
    assert (verdict.verdict, verdict.summary) == (alone.verdict, alone.summary)
