"""Claims 5 and 6 on the small problem: what each way of choosing shows, and when nothing follows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hybandits.paper.claims import FAILS, HOLDS, OPEN, Verdict, judge
from hybandits.paper.claims.beyond_burn_in import BASES, burn_in, judge_small_problem, lemma_bound
from tests.support.fabricated_outcomes import (
    DesignOf,
    as_results,
    diversity,
    fabricated_outcome,
    judged,
    measures,
    root_curves,
    small_measures,
    small_problem,
    the_finding,
)

UNIFORM, PICKED = (basis.words for basis in BASES)


def by_policy(first: DesignOf, others: DesignOf) -> DesignOf:
    """Measures of uniform choice, and those of all policies that look at rewards."""
    return lambda unit, policy, trial: (first if policy == "Uniform" else others)(unit, policy, trial)


def verdicts_on(*, trials: int = 10, uniform: dict[str, Any], others: dict[str, Any]) -> dict[tuple[str, str], Verdict]:
    e = small_problem(trials=trials)
    design = by_policy(small_measures(e, **uniform), small_measures(e, **others))
    found = judge_small_problem(judged(e, root_curves(e, 0.5), design))
    return {(verdict.claim, verdict.basis): verdict for verdict in found}


def test_each_way_of_choosing_has_its_own_verdicts() -> None:
    verdicts = verdicts_on(uniform={}, others={"b": 1.0, "z": 0.6, "falls": 0.0, "rho": 0.4})
    assert {key: verdict.verdict for key, verdict in verdicts.items()} == {
        ("5", UNIFORM): HOLDS,
        ("5", PICKED): FAILS,
        ("6", UNIFORM): HOLDS,
        ("6", PICKED): FAILS,
    }
    assert "tends to a constant" in verdicts["5", PICKED].summary
    assert (
        "K = 6: Uniform's Z is at most 1/2 since T_o in all 10 trials and falls (0.0" in verdicts["6", UNIFORM].summary
    )
    assert "; K = 6: HyLinUCB's Z exceeds 1/2 since T_o in 10 of 10 trials (0.6" in verdicts["6", PICKED].summary
    assert "its assumption is not true of these choices" in verdicts["6", PICKED].summary
    what = "K = 3, LinUCB: sigma_max(B_i)"
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
    assert "K = 6, DisLinUCB: lambda_min of the arms' matrices" in deciding
    assert len(deciding) == 2 * 7, "three measures of LinUCB and HyLinUCB each, one of DisLinUCB"
    assert not any("HyIDS" in what for what in deciding)
    shown = the_finding(verdicts["6", PICKED], "K = 3, HyIDS: sigma_max(Z_t) (not deciding)")
    assert "at most 1/2 since the burn-in in 10 of 10 trials" in shown.value


def test_a_small_z_that_does_not_fall_is_named() -> None:
    verdicts = verdicts_on(uniform={}, others={"b": 1.0, "z": 0.2, "falls": 0.0})
    assert verdicts["6", PICKED].verdict == HOLDS
    assert "in all 10 trials but does not fall (0.2 at T)" in verdicts["6", PICKED].summary


def test_nothing_follows_before_the_burn_in_nor_from_few_trials() -> None:
    verdicts = verdicts_on(uniform={"rho": 0.1}, others={"rho": 0.1, "z": 0.9, "falls": 0.0})
    assert verdicts["6", UNIFORM].verdict == verdicts["6", PICKED].verdict == OPEN
    assert "K = 3: T is before Uniform's burn-in of " in verdicts["6", UNIFORM].summary
    verdicts = verdicts_on(trials=3, uniform={}, others={})
    assert verdicts["6", UNIFORM].verdict == OPEN, "0.05^(1/3) = 0.37"
    verdicts = verdicts_on(trials=1, uniform={}, others={})
    assert verdicts["5", UNIFORM].verdict == OPEN


def test_eigenvalues_that_lag_behind_contradict_claim_5() -> None:
    verdicts = verdicts_on(uniform={"w": 0.6}, others={})
    assert verdicts["5", UNIFORM].verdict == FAILS
    assert "K = 3, Uniform: lambda_min(W_i)" in verdicts["5", UNIFORM].summary


@pytest.mark.parametrize(("kept", "bases"), [(["Uniform"], [UNIFORM]), (["LinUCB"], [PICKED]), (["HyIDS"], [PICKED])])
def test_policies_that_were_not_run(kept: list[str], bases: list[str]) -> None:
    e = small_problem().only(kept)
    verdicts = judge_small_problem(judged(e, root_curves(e, 0.5), small_measures(e)))
    assert [(verdict.claim, verdict.basis) for verdict in verdicts] == [(c, b) for c in "56" for b in bases]
    assert all((verdict.verdict == OPEN) == (kept != ["Uniform"]) for verdict in verdicts)


def test_a_matrix_without_diversity_has_no_burn_in() -> None:
    e = small_problem()
    outcome = judged(e, root_curves(e, 0.5), small_measures(e, rho=0.0))
    assert burn_in(outcome, "Uniform", 3) == float("inf")
    assert lemma_bound(outcome, "Uniform", 3) is None
    assert {v.verdict for v in judge_small_problem(outcome) if v.claim == "6"} == {OPEN}


def test_burn_in_and_bound_are_the_theorems() -> None:
    e = small_problem()
    outcome = judged(e, root_curves(e, 0.5), small_measures(e))
    # rho is at most 1/2: T_m = (64 + 16/3) log(2 4 K T/0.1), T_o = 4 T_m K^2 log(4 K/0.1)
    assert burn_in(outcome, "LinUCB", 3) == pytest.approx(4 * (64 + 16 / 3) * 20.21 * 9 * 4.7875, rel=0.03)
    bound = lemma_bound(outcome, "Uniform", 3)
    assert bound is not None
    # Once every arm has T_m pulls: 4 K sqrt(2 log(4 K/0.1)) / (rho sqrt t)
    assert bound[0, -1] == pytest.approx(12 * (2 * 4.7875) ** 0.5 / (0.5 * 2_500_000**0.5), rel=0.02)
    assert lemma_bound(outcome, "DisLinUCB", 3) is None


def test_verdicts_stand_beside_those_at_the_papers_length() -> None:
    usual, small = diversity(trials=4), small_problem()
    found = judge(
        as_results(
            fabricated_outcome(usual, root_curves(usual, 0.5), measures(usual)),
            fabricated_outcome(small, root_curves(small, 0.5), small_measures(small)),
        )
    )
    assert [(v.claim, v.basis) for v in found if v.claim in "56"] == [
        (claim, basis) for claim in "56" for basis in ("4 trials of one draw of the parameters", UNIFORM, PICKED)
    ]
    assert [v.basis for v in found if v.claim == "5" and v.aside] == [UNIFORM, PICKED]
    rows = [row.what for v in found if (v.claim, v.basis) == ("6", "") for row in v.evidence]
    assert not any("diversity-small" in what for what in rows), "it has verdicts of its own"
    written = replace(small, protocol="written")
    found = judge(as_results(fabricated_outcome(written, root_curves(small, 0.5), small_measures(small))))
    assert {v.protocol for v in found} == {"written"}
