"""Claim 5 on design matrices that grow with known exponents, and on one of independent rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from hybandits.experiments.record import DESIGN, DESIGN_BY_ARM, Unit
from hybandits.paper.claims import FAILS, HOLDS, OPEN
from hybandits.paper.claims.design_matrix import judge_claim_5
from hybandits.paper.claims.key_lemma import judge_claim_6
from hybandits.paper.claims.regret_bounds import judge_claim_7
from tests.support.fabricated_outcomes import diversity, judged, measures, root_curves, the_finding


def test_claim_5_holds_for_linear_growth_that_starts_late() -> None:
    e = diversity()
    verdict = judge_claim_5(judged(e, root_curves(e, 0.5), measures(e)))
    assert verdict.verdict == HOLDS
    assert sum(row.verdict is not None for row in verdict.evidence) == 7
    seen = the_finding(verdict, "LinUCB: lambda_min(W_i)").value
    assert "exponent 1.1" in seen
    assert "(independent rows would show 1.1" in seen
    assert "log-log slope 1.3" in seen
    assert "log-log slope 1.05" in the_finding(verdict, "HyLinUCB: lambda_min(V)").value
    assert "exponent 0.5" in the_finding(verdict, "LinUCB: sigma_max(B_i)").value


def test_claim_5_between_linear_and_square_root_is_undecided() -> None:
    e = diversity(trials=10)
    verdict = judge_claim_5(judged(e, root_curves(e, 0.5), measures(e, v=0.8, b=0.68)))
    assert verdict.verdict == OPEN
    assert the_finding(verdict, "LinUCB: lambda_min(V)").verdict == OPEN
    assert the_finding(verdict, "LinUCB: sigma_max(B_i)").verdict == OPEN


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"v": 0.5}, "LinUCB: lambda_min(V)"),
        ({"w": 0.5}, "LinUCB: lambda_min(W_i)"),
        ({"w": 0.5}, "DisLinUCB: lambda_min of the arms' matrices"),
        ({"b": 1.0}, "HyLinUCB: sigma_max(B_i)"),
    ],
)
def test_claim_5_fails_by_each_part(changes: dict[str, Any], part: str) -> None:
    e = diversity(trials=10)
    verdict = judge_claim_5(judged(e, root_curves(e, 0.5), measures(e, late=False, **changes)))
    assert verdict.verdict == FAILS
    assert the_finding(verdict, part).verdict == FAILS
    assert the_finding(verdict, "LinUCB: sigma_max(B_i)").verdict == (FAILS if "b" in changes else HOLDS)


@pytest.mark.slow
def test_claims_5_and_6_on_rows_that_are_truly_diverse() -> None:
    """Arms pulled at random, features uniform in the ball: everything the assumption asks for."""
    e = diversity(trials=8)
    k, d, t = 25, 10, np.array(e.probes)

    def design(unit: Unit, policy: str, trial: int) -> dict[str, Any]:
        random = np.random.default_rng([trial, len(policy)])
        x, z = random.normal(size=(2, e.horizon, d))
        for rows in (x, z):
            rows *= (random.random(e.horizon) ** (1 / d) / np.linalg.norm(rows, axis=1))[:, None]
        both = np.concatenate([x, z], axis=1)
        onto = np.eye(k)[random.integers(k, size=e.horizon)]
        whole = np.tile(np.eye(2 * d), (k, 1, 1))
        pulls, seen = np.zeros(k), 0
        measured: dict[str, list[Any]] = {name: [] for name in (*DESIGN, *DESIGN_BY_ARM)}
        for n in t:
            rows, arms = both[seen:n], onto[seen:n]
            whole += (arms.T @ (rows[:, :, None] * rows[:, None, :]).reshape(n - seen, -1)).reshape(whole.shape)
            pulls, seen = pulls + arms.sum(axis=0), n
            b, w = whole[:, :d, d:], whole[:, d:, d:]
            lam, turn = np.linalg.eigh(whole[:, :d, :d].sum(axis=0) - (k - 1) * np.eye(d))
            root = turn / np.sqrt(lam)
            s = root.T @ (b @ np.linalg.solve(w, b.transpose(0, 2, 1))).sum(axis=0) @ root
            least = np.linalg.eigvalsh(whole if policy == "DisLinUCB" else w)[:, 0]
            measured["lambda_min_v"].append(lam[0])
            measured["rho_x"].append((lam[0] - 1) / n)
            measured["rho_z"].append(float(((least - 1) / np.maximum(pulls, 1)).min()))
            measured["z_norm"].append(math.sqrt(np.linalg.eigvalsh(s)[-1]))
            measured["pulls"].append(pulls.astype(int))
            measured["lambda_min_w"].append(least)
            measured["sigma_max_b"].append(np.linalg.norm(b, 2, axis=(1, 2)))
        return measured

    outcome = judged(e, root_curves(e, 0.5), design)
    assert judge_claim_5(outcome).verdict == HOLDS
    lemma = judge_claim_6(outcome)
    assert "Z is at most 1/2 in all 8 trials at T, too few to show a probability of 0.96" in lemma.summary
    assert lemma.verdict == OPEN


def test_claim_5_without_enough_pulls_or_measures() -> None:
    e = diversity(trials=4)

    def scarce(unit: Unit, policy: str, trial: int) -> Any:
        return measures(e)(unit, policy, trial) | {"pulls": np.ones((len(e.probes), 25), dtype=int)}

    verdict = judge_claim_5(judged(e, root_curves(e, 0.5), scarce))
    assert verdict.verdict == OPEN
    assert the_finding(verdict, "LinUCB: lambda_min(W_i)").value == "no arm was pulled often enough"
    unmeasured = judged(e, root_curves(e, 0.5))
    verdict = judge_claim_5(unmeasured)
    assert verdict.verdict == OPEN
    assert "not measured arm by arm" in verdict.evidence[0].value
    assert judge_claim_6(unmeasured).summary.startswith("LinUCB's Z was not measured and HyLinUCB's Z was not measured")
    summary = judge_claim_7([unmeasured], "released").summary
    assert summary == "No diversity was measured, so there is no bound to compare with."
