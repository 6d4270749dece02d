"""Claim 7: regrets stay below the bounds of the theorems."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from hybandits.paper import theorems
from hybandits.paper.claims.judged_outcome import JudgedOutcome
from hybandits.paper.claims.verdicts import FAILS, HOLDS, OPEN, Answer, Finding, Verdict, combine_answers, verdict_on
from hybandits.paper.claims.wording import join_names, number


class _Comparison(NamedTuple):
    """A regret beside its bound; `vacuous`: no regret can exceed it; `early`: T does not exceed the burn-in."""

    finding: Finding
    ratio: float = math.nan
    vacuous: bool = False
    early: bool = True


def judge_claim_7(outcomes: Sequence[JudgedOutcome], protocol: str) -> Verdict:
    """All experiments of one protocol: the largest regrets against the bounds."""
    test = (
        "In every experiment and for every K, the largest regret at T of any run is compared with the proof's bound, "
        "with the theorem's lambda and gamma and with the largest diversity rho of any run, which makes the bound "
        "smallest. A part holds if T exceeds the burn-in and every run is below the bound. It is undecided if T does "
        "not exceed the burn-in, since the theorem then says nothing. It does not hold if a run is above the bound. A "
        "bound is vacuous if it exceeds 2 (S1 + S2) T, which no regret can."
    )
    comparisons = [
        _compare_with_bound(judged, policy, arms)
        for judged in outcomes
        for arms in judged.outcome.arms
        for policy in theorems.POLICIES
        if not judged.missing([policy])
    ]
    findings = [comparison.finding for comparison in comparisons]
    ratios = [comparison.ratio for comparison in comparisons if not math.isnan(comparison.ratio)]
    summary = "No diversity was measured, so there is no bound to compare with."
    if ratios:
        total, above = len(findings), sum(finding.verdict == FAILS for finding in findings)
        summary = (
            f"{f'{above} of {total} regrets exceed their' if above else 'No regret exceeds its'} bound; bounds are "
            f"{number(min(ratios))} to {number(max(ratios))} times the largest regret, "
            f"{sum(comparison.vacuous for comparison in comparisons)} of {total} are vacuous, and T does not exceed "
            f"the burn-in in {sum(comparison.early for comparison in comparisons)} of {total}."
        )
    return verdict_on("7", protocol, test=test, answer=combine_answers(findings), summary=summary, findings=findings)


def _compare_with_bound(judged: JudgedOutcome, policy: theorems.Policy, arms: int) -> _Comparison:
    """Whether a policy's regret is below its bound."""
    e = judged.experiment
    what = f"{e.name}{f', K = {arms}' if len(e.arms) > 1 else ''}: {policy}"
    regret = judged.outcome.final(policy, arms)
    largest, rho = float(regret.max()), judged.rho(policy, arms)
    if math.isnan(rho):
        return _Comparison(Finding(what, "no diversity was measured (rho is 0 or unknown), hence no bound", OPEN))
    if math.isnan(largest):
        return _Comparison(Finding(what, "a regret is not a number", OPEN))
    ridge, burn_in = theorems.prescribed_ridge(policy, arms=arms), judged.burn_in(policy, arms)
    bound = theorems.regret_bound(
        policy, d1=e.d1, d2=e.d2, arms=arms, horizon=e.horizon, rho=rho, ridge=ridge, delta=judged.delta(policy),
        bound=max(e.theta_bound, e.beta_bound),
    )  # fmt: skip
    limit = theorems.trivial_bound(horizon=e.horizon, theta_bound=e.theta_bound, beta_bound=e.beta_bound)
    # DisLinUCB's bound is derived for every T: its T'_o counts pulls of an arm, and stands in the bound.
    early, vacuous = policy != "DisLinUCB" and e.horizon <= burn_in, bound > limit
    ratio = bound / largest if largest > 0 else math.nan
    value = f"largest regret {number(largest)} in {len(regret)} runs, bound {number(bound)}"
    value += "" if math.isnan(ratio) else f", {number(ratio)} times as large"
    value += (
        f"{', vacuous' if vacuous else ''}; rho = {number(rho)}, burn-in {number(burn_in)} "
        f"{'pulls of an arm' if policy == 'DisLinUCB' else f'against T = {e.horizon:,}'}"
    )
    as_in_theorem = {
        "lambda": judged.ridge(policy, arms) == ridge,
        "gamma": judged.exploration(policy).get("kind") == "AsWritten",
    }
    if different := [symbol for symbol, same in as_in_theorem.items() if not same]:
        value += f"; run with another {join_names(different)} than the theorem's"
    if_below: Answer = OPEN if early else HOLDS
    return _Comparison(Finding(what, value, FAILS if largest > bound else if_below), ratio, vacuous, early)
