"""Claim 5: how fast eigenvalues and singular values of the design matrix grow."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hybandits.foundation.checks import FloatArray
from hybandits.paper import theorems
from hybandits.paper.claims.comparisons import judge_mean
from hybandits.paper.claims.growth_in_rounds import ONE_DRAW
from hybandits.paper.claims.judged_outcome import JudgedOutcome
from hybandits.paper.claims.verdicts import FAILS, OPEN, Finding, Verdict, combine_answers, summarise, verdict_on
from hybandits.paper.claims.wording import mean, number, percent
from hybandits.statistics import expected_smallest_eigenvalue, exponents, increment_exponents

TOLERANCE = 0.1
"""How far an exponent may be from that of eigenvalues (1) and of singular values (1/2)."""

BETWEEN = 0.75
"""Where an exponent is as near to linear as to a square root: across it, a claim of either is contradicted."""

PULLS_PER_DIMENSION = 5
"""Arms enter the fits from this many pulls per dimension: with fewer, lambda_min is about lack of rank, not growth."""

_PARTS = 7
"""Three measures of LinUCB and HyLinUCB each, one of DisLinUCB."""


def judge_claim_5(judged: JudgedOutcome) -> Verdict:
    """Diversity: the exponents of the design matrix."""
    test = (
        f"Exponents are fitted over the last half of the rounds, one per trial, and given with the "
        f"{percent(judged.confidence)} interval of their mean; an arm counts once it has {PULLS_PER_DIMENSION} pulls "
        f"per dimension. Those of eigenvalues come from the growth per row in the third and in the last quarter of the "
        f"rounds, because lambda_min starts to grow late: for n independent rows in d dimensions it is near "
        f"rho n (1 - sqrt(d/n))^2, whose log-log slope is well above 1 at these n. Growth is linear if the interval "
        f"starts above {1 - TOLERANCE:g} (faster growth cannot last: |x|, |z| <= 1 keep lambda_min below 2 n/d) and "
        f"like a square root if the interval ends below {0.5 + TOLERANCE:g}. Either is contradicted if the interval "
        f"lies on the other's side of {BETWEEN:g}. {ONE_DRAW}"
    )
    if missing := judged.missing(theorems.POLICIES):
        return verdict_on("5", judged.protocol, test=test, answer=OPEN, summary=missing)
    findings = [finding for policy in theorems.POLICIES for finding in _judge_spectrum(judged, policy)]
    summary = summarise(findings, "Eigenvalues grow linearly, singular values no faster than a square root.")
    if any(finding.verdict == FAILS and "sigma_max" in finding.what for finding in findings):
        summary += (
            " The arm played is picked for its reward, so its features do not average out: the mean of x z' is 0 by "
            "the assumption, but not here."
        )
    answer = combine_answers(findings)
    findings += [finding for policy in theorems.POLICIES[:2] for finding in _describe_cross_moment(judged, policy)]
    return verdict_on("5", judged.protocol, test=test, answer=answer, summary=summary, findings=findings)


def _describe_cross_moment(judged: JudgedOutcome, policy: str) -> list[Finding]:
    """sigma_max(B_i) / pulls, the size of an arm's mean of x z', at T/2 and at T; 0 in the assumption."""
    design = judged.design(policy, judged.outcome.arms[0])
    probes = None if design is None else judged.late_quarters(design.t)
    if design is None or design.pulls is None or design.sigma_max_b is None or probes is None:
        return []
    size = design.sigma_max_b / np.maximum(design.pulls, 1)
    value = f"{number(float(np.median(size[:, probes[0]])))} at T/2, {number(float(np.median(size[:, -1])))} at T"
    what = f"{policy}: sigma_max of an arm's mean x z', median (not deciding; 0 by the assumption)"
    return [Finding(what, value)]


def _judge_spectrum(judged: JudgedOutcome, policy: theorems.Policy) -> list[Finding]:
    """The exponents of one policy's design matrix."""
    d1, d2, arms = judged.experiment.d1, judged.experiment.d2, judged.outcome.arms[0]
    design = judged.design(policy, arms)
    if design is None or design.pulls is None or design.lambda_min_w is None or design.sigma_max_b is None:
        return [Finding(policy, "its design matrix was not measured arm by arm", OPEN)]
    ridge = judged.ridge(policy, arms)
    t = np.broadcast_to(design.t[None, :, None], (*design.z_norm.shape, 1))
    units = judged.outcome.independent_units(policy)

    def judge_linear(what: str, rows: FloatArray, y: FloatArray, dimension: int) -> Finding:
        probes = judged.late_quarters(design.t)
        enough = rows >= PULLS_PER_DIMENSION * dimension
        if probes is None or not enough[:, probes[0]].any():
            why = "no arm was pulled often enough" if probes else "too few probes in the last half of the rounds"
            return Finding(f"{policy}: {what}", why, OPEN)
        use = enough[:, probes[0]]
        answer, exponent = judge_mean(
            increment_exponents(rows[:, probes], y[:, probes], use), units, above=1 - TOLERANCE,
            margin=1 - TOLERANCE - BETWEEN, confidence=judged.confidence, parts=_PARTS,
        )  # fmt: skip
        independent = increment_exponents(
            rows[:, probes], expected_smallest_eigenvalue(dimension, rows[:, probes]), use
        )
        value = judged.describe_interval(exponent, units, of="exponent")
        value += f" (independent rows would show {mean(independent)}); log-log slope "
        value += f"{mean(exponents(rows, y - ridge, enough & judged.late(t)))}{_share_of_arms(use)}"
        return Finding(f"{policy}: {what}", value, answer)

    def judge_root(what: str, rows: FloatArray, y: FloatArray, dimension: int) -> Finding:
        enough = rows >= PULLS_PER_DIMENSION * dimension
        late = enough & judged.late(t)
        if not late.any():
            return Finding(f"{policy}: {what}", "no arm was pulled often enough", OPEN)
        answer, exponent = judge_mean(
            exponents(rows, y, late), units, below=0.5 + TOLERANCE, margin=BETWEEN - 0.5 - TOLERANCE,
            confidence=judged.confidence, parts=_PARTS,
        )  # fmt: skip
        last = exponents(rows, y, enough & judged.late(t, 0.25))
        interval = judged.describe_interval(exponent, units, of="exponent")
        value = f"{interval}; over the last quarter {mean(last)}{_share_of_arms(late[:, -1])}"
        return Finding(f"{policy}: {what}", value, answer)

    if policy == "DisLinUCB":
        return [judge_linear("lambda_min of the arms' matrices", design.pulls, design.lambda_min_w, d1 + d2)]
    findings = []
    if d1:
        findings.append(judge_linear("lambda_min(V)", t, design.lambda_min_v[..., None], d1))
    if d2:
        findings.append(judge_linear("lambda_min(W_i)", design.pulls, design.lambda_min_w, d2))
    if d1 and d2:
        findings.append(judge_root("sigma_max(B_i)", design.pulls, design.sigma_max_b, max(d1, d2)))
    return findings


def _share_of_arms(used: NDArray[np.bool_]) -> str:
    """How many arms entered a fit, where not all did."""
    return "" if used.all() else f"; {percent(float(used.mean()))} of arms had enough pulls"
