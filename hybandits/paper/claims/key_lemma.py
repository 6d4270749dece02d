"""Claim 6, the key lemma: after a burn-in the cross blocks hardly matter, sigma_max(Z_t) <= 1/2."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from hybandits.paper import theorems
from hybandits.paper.claims.comparisons import judge_mean
from hybandits.paper.claims.growth_in_rounds import ONE_DRAW
from hybandits.paper.claims.judged_outcome import JudgedOutcome
from hybandits.paper.claims.verdicts import FAILS, HOLDS, OPEN, Finding, Verdict, combine_answers, verdict_on
from hybandits.paper.claims.wording import fraction, join_names, number, percent
from hybandits.statistics import exponents, proportion_floor

_WITH_A_SHARED_PART: tuple[theorems.Policy, ...] = ("LinUCB", "HyLinUCB")
_LIMIT = fraction(theorems.COUPLING_LIMIT)


def judge_claim_6(judged: JudgedOutcome, others: Iterable[JudgedOutcome] = ()) -> Verdict:
    """Diversity: how large sigma_max(Z_t) is. `others`: experiments of other lengths, for information."""
    test = (
        f"sigma_max(Z_t) is measured at the probes. The claim holds if it is at most {_LIMIT} in so many trials that "
        f"its probability is at least 1 - 4 delta at {percent(judged.confidence)} confidence (Clopper and Pearson): at "
        f"all probes from T_o on if T reaches T_o; otherwise at T, if it is also falling over the last half of the "
        f"rounds. "
        f"T_o is computed with the largest diversity rho measured, which makes it smallest. Only what happens after "
        f"T_o can contradict the claim. {ONE_DRAW}"
    )
    if missing := judged.missing(_WITH_A_SHARED_PART):
        findings = _describe_other_lengths(others)
        return verdict_on("6", judged.protocol, test=test, answer=OPEN, summary=missing, findings=findings)
    arms = judged.outcome.arms[0]
    per_policy = [_judge_coupling(judged, policy, arms) for policy in _WITH_A_SHARED_PART]
    findings = [finding for finding, _ in per_policy]
    answer = combine_answers(findings)
    summary = f"{join_names([clause for _, clause in per_policy])}."
    if min(judged.burn_in(policy, arms) for policy in _WITH_A_SHARED_PART) > judged.horizon:
        summary += f" T = {judged.horizon:,} is before the burn-in: the lemma promises nothing yet."
    for policy in _WITH_A_SHARED_PART:
        burn_in, rho = judged.burn_in(policy, arms), judged.rho(policy, arms)
        value = f"{number(burn_in)} with rho = {number(rho)}, against T = {judged.horizon:,}"
        findings.append(Finding(f"{policy}: burn-in T_o (not deciding)", value))
        value = f"{number(judged.ridge(policy, arms))}; the proof asks for at least 1/rho = {number(1 / rho)}"
        findings.append(Finding(f"{policy}: ridge (not deciding)", value))
    if not judged.missing(["DisLinUCB"]):
        finding, _ = _judge_coupling(judged, "DisLinUCB", arms)
        value = f"{finding.value}; T'_o = {number(judged.burn_in('DisLinUCB', arms))} pulls of an arm"
        findings.append(Finding("DisLinUCB: largest sigma_max(Z_i,t) of any arm (not deciding)", value))
    findings += _describe_other_lengths(others)
    return verdict_on("6", judged.protocol, test=test, answer=answer, summary=summary, findings=findings)


def _judge_coupling(judged: JudgedOutcome, policy: theorems.Policy, arms: int) -> tuple[Finding, str]:
    """Whether one policy's sigma_max(Z_t) is at most 1/2, and a clause that says so in the summary."""
    what = f"{policy}: sigma_max(Z_t)"
    design = judged.design(policy, arms)
    if design is None or not np.isfinite(design.z_norm).all():
        return Finding(what, "not measured", OPEN), f"{policy}'s Z was not measured"
    z, t, trials = design.z_norm, design.t, len(design.z_norm)
    burn_in = judged.burn_in(policy, arms)
    reached = bool(t[-1] >= burn_in)
    counts = t >= min(burn_in, t[-1])
    small = int((z[:, counts] <= theorems.COUPLING_LIMIT).all(axis=1).sum())
    goal = 1 - 4 * judged.delta(policy)
    floor = proportion_floor(small, trials, judged.confidence)
    ceiling = 1 - proportion_floor(trials - small, trials, (1 + judged.confidence) / 2)  # two policies: half the error
    slopes = exponents(t[None, :], z, judged.late(t)[None, :])
    units = judged.outcome.independent_units(policy)
    falling = judge_mean(slopes, units, below=0.0, confidence=judged.confidence).answer == HOLDS
    answer = HOLDS if floor >= goal and (reached or falling) else OPEN
    if reached and ceiling < goal:
        answer = FAILS
    # Probes from which on every trial is at most 1/2.
    for_good = np.flip(np.logical_and.accumulate(np.flip((z <= theorems.COUPLING_LIMIT).all(axis=0))))
    first = f"in all trials from t = {t[for_good][0]:,.0f} on" if for_good.any() else "not in all trials even at T"
    when = "since T_o" if reached else "at T"
    value = (
        f"median {number(float(np.median(z[:, -1])))} and largest {number(float(z[:, -1].max()))} at T, "
        f"{'falling' if falling else 'not falling'}; at most {_LIMIT} {first}; {when} in {small} of {trials} trials, "
        f"hence with probability {floor:.3f} or more"
    )
    if small < trials:
        clause = f"{policy}'s Z exceeds {_LIMIT} in {trials - small} of {trials} trials {when}"
    else:
        clause = f"{policy}'s Z is at most {_LIMIT} in all {trials} trials {when}"
        clause += "" if reached or falling else " but not falling"
        clause += "" if floor >= goal else f", too few to show a probability of {goal:g}"
    return Finding(what, value, answer), clause


def _describe_other_lengths(others: Iterable[JudgedOutcome]) -> list[Finding]:
    """sigma_max(Z_T) in the settings, whose T is longer."""
    findings = []
    for judged in others:
        for arms in judged.outcome.arms:
            ranges = []
            for policy in _WITH_A_SHARED_PART:
                design = None if judged.missing([policy]) else judged.design(policy, arms)
                if design is not None:
                    last = design.z_norm[:, -1]
                    ranges.append(f"{policy} {number(float(last.min()))} to {number(float(last.max()))}")
            if ranges:
                name = judged.experiment.name
                what = f"{name}, K = {arms}: sigma_max(Z_T) at T = {judged.horizon:,} (not deciding)"
                findings.append(Finding(what, "; ".join(ranges)))
    return findings
