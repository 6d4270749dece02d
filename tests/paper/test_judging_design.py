"""Claims 5 and 6 on design matrices that grow with known exponents, before and beyond the burn-in."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from hybandits.experiments.record import DESIGN, DESIGN_BY_ARM, MOMENTS, Unit
from hybandits.paper.claims import FAILS, HOLDS, OPEN, PICKED_ARMS, UNIFORM_CHOICE, UNMET, Verdict
from hybandits.paper.judging import (
    judge_claim_5,
    judge_claim_6,
    judge_claim_7,
    judge_small_problem,
)
from tests.support.fabricated_outcomes import (
    DesignOf,
    beyond_the_burn_in,
    diversity,
    judged,
    measures,
    of_one_arm,
    root_curves,
    small_measures,
    small_problem,
    the_finding,
)

# ------------------------------------------------------------------ claim 5


def test_claim_5_holds_for_linear_growth_that_starts_late() -> None:
    e = diversity()
    verdict = judge_claim_5(judged(e, root_curves(e, 0.5), measures(e)))
    assert verdict.verdict == HOLDS
    assert sum(row.verdict is not None for row in verdict.evidence) == 7
    seen = the_finding(verdict, "LinUCB: lambda_min(W_i) linear").value
    assert "exponent 1.1" in seen
    assert "(independent rows would show 1.1" in seen
    assert "log-log slope 1.3" in seen
    assert "log-log slope 1.05" in the_finding(verdict, "HyLinUCB: lambda_min(V) linear").value
    assert "exponent 0.5" in the_finding(verdict, "LinUCB: sigma_max(B_i) like a square root").value


def test_claim_5_between_linear_and_square_root_is_undecided() -> None:
    e = diversity(trials=10)
    verdict = judge_claim_5(judged(e, root_curves(e, 0.5), measures(e, v=0.8, b=0.68)))
    assert verdict.verdict == OPEN
    assert the_finding(verdict, "LinUCB: lambda_min(V) linear").verdict == OPEN
    assert the_finding(verdict, "LinUCB: sigma_max(B_i) like a square root").verdict == OPEN


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"v": 0.5}, "LinUCB: lambda_min(V) linear"),
        ({"w": 0.5}, "LinUCB: lambda_min(W_i) linear"),
        ({"w": 0.5}, "DisLinUCB: lambda_min of the arms' matrices linear"),
        ({"b": 1.0}, "HyLinUCB: sigma_max(B_i) like a square root"),
    ],
)
def test_claim_5_fails_by_each_part(changes: dict[str, Any], part: str) -> None:
    e = diversity(trials=10)
    verdict = judge_claim_5(judged(e, root_curves(e, 0.5), measures(e, late=False, **changes)))
    assert verdict.verdict == FAILS
    assert the_finding(verdict, part).verdict == FAILS
    assert the_finding(verdict, "LinUCB: sigma_max(B_i) like a square root").verdict == (
        FAILS if "b" in changes else HOLDS
    )


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
        matrix = np.tile(np.eye(2 * d), (k, 1, 1))
        pulls, seen = np.zeros(k), 0
        measured: dict[str, list[Any]] = {name: [] for name in (*DESIGN, *DESIGN_BY_ARM)}
        moments = dict.fromkeys(MOMENTS, np.zeros(len(t)))
        for n in t:
            rows, arms = both[seen:n], onto[seen:n]
            matrix += (arms.T @ (rows[:, :, None] * rows[:, None, :]).reshape(n - seen, -1)).reshape(matrix.shape)
            pulls, seen = pulls + arms.sum(axis=0), n
            b, w = matrix[:, :d, d:], matrix[:, d:, d:]
            lam, turn = np.linalg.eigh(matrix[:, :d, :d].sum(axis=0) - (k - 1) * np.eye(d))
            root = turn / np.sqrt(lam)
            s = root.T @ (b @ np.linalg.solve(w, b.transpose(0, 2, 1))).sum(axis=0) @ root
            least = np.linalg.eigvalsh(matrix if policy == "DisLinUCB" else w)[:, 0]
            measured["lambda_min_v"].append(lam[0])
            measured["rho_x"].append((lam[0] - 1) / n)
            measured["rho_z"].append(float(((least - 1) / np.maximum(pulls, 1)).min()))
            measured["z_norm"].append(math.sqrt(np.linalg.eigvalsh(s)[-1]))
            measured["pulls"].append(pulls.astype(int))
            measured["lambda_min_w"].append(least)
            measured["sigma_max_b"].append(np.linalg.norm(b, 2, axis=(1, 2)))
            measured["frobenius_b"].append(np.linalg.norm(b, axis=(1, 2)))
        return {**measured, **moments}

    outcome = judged(e, root_curves(e, 0.5), design)
    assert judge_claim_5(outcome).verdict == HOLDS
    lemma = judge_claim_6(outcome)
    assert "Z <= 1/2 for LinUCB at T in 8 of 8 trials" in lemma.summary
    assert lemma.verdict == OPEN


def test_claims_5_to_7_without_enough_pulls_or_measures() -> None:
    e = diversity(trials=4)

    def scarce(unit: Unit, policy: str, trial: int) -> Any:
        return measures(e)(unit, policy, trial) | {"pulls": np.ones((len(e.probes), 25), dtype=int)}

    verdict = judge_claim_5(judged(e, root_curves(e, 0.5), scarce))
    assert verdict.verdict == OPEN
    assert the_finding(verdict, "LinUCB: lambda_min(W_i) linear").value.startswith("no interval")
    unmeasured = judged(e, root_curves(e, 0.5))
    assert judge_claim_5(unmeasured).verdict == judge_claim_6(unmeasured).verdict == OPEN
    summary = judge_claim_7([unmeasured]).summary
    assert summary == "No diversity was measured, so there is no bound to compare with."


# ------------------------------------------------------------------ claim 6


@pytest.mark.parametrize(("changes", "count"), [({"z": 1.0}, 80), ({"z": 0.4, "falls": -0.01}, 80), ({"z": 9.0}, 0)])
def test_claim_6_says_nothing_before_the_burn_in(changes: dict[str, Any], count: int) -> None:
    e = diversity(trials=80)
    verdict = judge_claim_6(judged(e, root_curves(e, 0.5), measures(e, **changes)))
    assert verdict.verdict == OPEN
    assert f"Z <= 1/2 for LinUCB at T in {count} of 80 trials" in verdict.summary
    assert verdict.summary.startswith("T = 5,000 is before the burn-in (LinUCB ")


@pytest.mark.parametrize(("z", "trials", "answer"), [(1.0, 80, HOLDS), (1.0, 20, OPEN), (9.0, 80, FAILS)])
def test_claim_6_after_the_burn_in(z: float, trials: int, answer: str) -> None:
    e = beyond_the_burn_in(trials=trials)
    verdict = judge_claim_6(judged(e, root_curves(e, 0.5), of_one_arm(measures(e, z=z, rho=1.0))))
    assert verdict.verdict == answer
    assert "since T_o" in verdict.summary


# ------------------------------------------------------------------ beyond the burn-in


UNIFORM, PICKED = UNIFORM_CHOICE.words, PICKED_ARMS.words


def by_policy(first: DesignOf, others: DesignOf) -> DesignOf:
    """Measures of uniform choice, and those of all policies that look at rewards."""
    return lambda unit, policy, trial: (first if policy == "Uniform" else others)(unit, policy, trial)


def verdicts_on(*, trials: int = 10, uniform: dict[str, Any], others: dict[str, Any]) -> dict[tuple[str, str], Verdict]:
    e = small_problem(trials=trials)
    design = by_policy(small_measures(e, **uniform), small_measures(e, **others))
    verdicts = judge_small_problem(judged(e, root_curves(e, 0.5), design))
    return {(verdict.claim, verdict.basis): verdict for verdict in verdicts}


@pytest.mark.slow
def test_each_way_of_choosing_has_its_own_verdicts() -> None:
    verdicts = verdicts_on(uniform={}, others={"b": 1.0, "z": 0.6, "falls": 0.0, "rho": 0.4})
    assert {key: verdict.verdict for key, verdict in verdicts.items()} == {
        ("5", UNIFORM): HOLDS,
        ("5", PICKED): FAILS,
        ("6", UNIFORM): HOLDS,
        ("6", PICKED): UNMET,
    }
    assert verdicts["5", PICKED].summary.endswith("so the assumption is not met for every arm.")
    assert "K = 6: Z <= 1/2 for Uniform since T_o in 10 of 10 trials (0.0" in verdicts["6", UNIFORM].summary
    assert "; K = 6: Z <= 1/2 for HyLinUCB since T_o in 0 of 10 trials (0.6" in verdicts["6", PICKED].summary
    assert verdicts["6", PICKED].summary.startswith("The mean of x z' over an arm's rounds does not vanish (claim 5).")
    what = "K = 6, LinUCB: sigma_max(Z_t)"
    assert the_finding(verdicts["6", PICKED], what).verdict == FAILS, "the parts say what was seen"
    what = "K = 3, LinUCB: sigma_max(B_i) like a square root"
    assert the_finding(verdicts["5", PICKED], what).value.startswith("exponent 1,")
    assert the_finding(verdicts["5", PICKED], what).verdict == FAILS
    for verdict in verdicts.values():
        assert verdict.test.endswith(".")
        assert "nan" not in f"{verdict.summary} {' '.join(row.value for row in verdict.evidence)}"


def test_what_the_paper_does_not_speak_of_informs_and_does_not_decide() -> None:
    verdicts = verdicts_on(uniform={}, others={})
    assert {verdict.verdict for verdict in verdicts.values()} == {HOLDS}
    deciding = {row.what for row in verdicts["6", PICKED].evidence if row.verdict is not None}
    assert deciding == {f"K = {arms}, {name}: sigma_max(Z_t)" for arms in (3, 6) for name in ("LinUCB", "HyLinUCB")}
    deciding = {row.what for row in verdicts["5", PICKED].evidence if row.verdict is not None}
    assert "K = 6, DisLinUCB: lambda_min of the arms' matrices linear" in deciding
    assert len(deciding) == 2 * 7, "three measures of LinUCB and HyLinUCB each, one of DisLinUCB"
    assert not any("HyIDS" in what for what in deciding)
    shown = the_finding(verdicts["6", PICKED], "K = 3, HyIDS: sigma_max(Z_t) (not deciding)")
    assert "at most 1/2 since T_o in 10 of 10 trials" in shown.value


def test_nothing_follows_before_the_burn_in_nor_from_few_trials() -> None:
    verdicts = verdicts_on(uniform={"rho": 0.1}, others={"rho": 0.1, "z": 0.9, "falls": 0.0})
    assert verdicts["6", UNIFORM].verdict == verdicts["6", PICKED].verdict == OPEN
    assert "K = 3: Z <= 1/2 for Uniform at T in " in verdicts["6", UNIFORM].summary
    assert verdicts["6", UNIFORM].early
    verdicts = verdicts_on(trials=3, uniform={}, others={})
    assert verdicts["6", UNIFORM].verdict == OPEN, "0.05^(1/3) = 0.37"
    verdicts = verdicts_on(trials=1, uniform={}, others={})
    assert verdicts["5", UNIFORM].verdict == OPEN


@pytest.mark.parametrize(("kept", "bases"), [(["Uniform"], [UNIFORM]), (["LinUCB"], [PICKED]), (["HyIDS"], [PICKED])])
def test_policies_that_were_not_run(kept: list[str], bases: list[str]) -> None:
    e = small_problem().only(kept)
    verdicts = judge_small_problem(judged(e, root_curves(e, 0.5), small_measures(e)))
    assert [(verdict.claim, verdict.basis) for verdict in verdicts] == [(c, b) for c in "56" for b in bases]
    assert all((verdict.verdict == OPEN) == (kept != ["Uniform"]) for verdict in verdicts)


def test_the_burn_in_is_the_theorems() -> None:
    e = small_problem()
    outcome = judged(e, root_curves(e, 0.5), small_measures(e))
    # rho is at most 1/2: T_m = (64 + 16/3) log(2 4 K T/0.1), T_o = 4 T_m K^2 log(4 K/0.1)
    assert outcome.burn_in("LinUCB", 3) == pytest.approx(4 * (64 + 16 / 3) * 20.21 * 9 * 4.7875, rel=0.03)
