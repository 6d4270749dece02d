"""Claims 5 and 6 on a problem small enough to be played beyond the burn-in, with and without their assumption.

Of uniform choice the diversity assumption is true by construction: which arm is played has nothing to do with its
features. Policies pick the arm for its reward, hence for its features, and there is no reason why it should be true.
Both are judged, each with a verdict of its own.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybandits.experiments.results import Design
from hybandits.foundation.checks import FloatArray
from hybandits.paper import theorems
from hybandits.paper.claims.comparisons import judge_mean
from hybandits.paper.claims.design_matrix import BETWEEN, TOLERANCE
from hybandits.paper.claims.judged_outcome import JudgedOutcome
from hybandits.paper.claims.verdicts import (
    FAILS,
    HOLDS,
    OPEN,
    Answer,
    Finding,
    Verdict,
    combine_answers,
    summarise,
    verdict_on,
)
from hybandits.paper.claims.wording import fraction, join_names, number, percent
from hybandits.paper.settings import PAPER_POLICIES, SMALL_DELTA, UNIFORM
from hybandits.statistics import exponents, interval, proportion_floor

DECADES = 3
"""Exponents are fitted over so many powers of ten of rounds: with d = 2 a single factor of 2 would tell little."""

DISJOINT: theorems.Policy = "DisLinUCB"
_LIMIT = fraction(theorems.COUPLING_LIMIT)
_PROBLEM = (
    "Features are unit vectors in all directions, so the draw of the parameters is a choice of coordinates and nothing "
    "else; every trial has contexts of its own."
)


class Basis(NamedTuple):
    """Whose choices a verdict rests on: those of `deciding` decide, those of `informing` are shown beside them."""

    words: str
    deciding: tuple[str, ...]
    informing: tuple[str, ...] = ()


BASES = (
    Basis("small problem, uniform choice", (UNIFORM,)),
    Basis("small problem, arms picked for their reward", PAPER_POLICIES, ("HyIDS",)),
)


def judge_small_problem(judged: JudgedOutcome) -> list[Verdict]:
    """Claims 5 and 6 for both ways of choosing, as far as they were run."""
    return [
        judge_claim(judged, basis)
        for judge_claim in (_judge_claim_5, _judge_claim_6)
        for basis in BASES
        if any(name in judged.outcome.policies for name in (*basis.deciding, *basis.informing))
    ]


def burn_in(judged: JudgedOutcome, policy: str, arms: int) -> float:
    """T_o as printed, for DisLinUCB T'_o in pulls of an arm, with the largest rho measured; infinite without any."""
    rho, e = judged.rho(policy, arms), judged.experiment
    if math.isnan(rho):
        return math.inf
    kind: theorems.Policy = DISJOINT if policy == DISJOINT else "LinUCB"
    return theorems.burn_in(kind, d1=e.d1, d2=e.d2, arms=arms, horizon=e.horizon, rho=rho, delta=SMALL_DELTA)


def lemma_bound(judged: JudgedOutcome, policy: str, arms: int) -> FloatArray | None:
    """The lemma's bound on sigma_max(Z_t) with the pulls that were measured, (runs, probes); None if there is none."""
    rho, e, design = judged.rho(policy, arms), judged.experiment, judged.design(policy, arms)
    if math.isnan(rho) or design is None or design.pulls is None or policy == DISJOINT:
        return None
    return theorems.coupling_bound(
        design.pulls, d1=e.d1, d2=e.d2, horizon=e.horizon, rho=rho, ridge=_ridge(judged), delta=SMALL_DELTA
    )


def _ridge(judged: JudgedOutcome) -> float:
    """The ridge that everything was measured with."""
    ridge = judged.experiment.design_ridge
    assert ridge is not None
    return ridge


def _late(judged: JudgedOutcome, t: FloatArray) -> NDArray[np.bool_]:
    """Which probes exponents are fitted to."""
    late: NDArray[np.bool_] = t >= 10.0**-DECADES * judged.horizon
    return late


def _cases(judged: JudgedOutcome, basis: Basis) -> list[tuple[int, str, bool, Design]]:
    """Every number of arms and measured policy, and whether it decides."""
    return [
        (arms, policy, policy in basis.deciding, design)
        for arms in judged.outcome.arms
        for policy in (*basis.deciding, *basis.informing)
        if policy in judged.outcome.policies and (design := judged.design(policy, arms)) is not None
    ]


def _informing(finding: Finding) -> Finding:
    return Finding(f"{finding.what} (not deciding)", finding.value)


# ------------------------------------------------------------------ claim 5


def _judge_claim_5(judged: JudgedOutcome, basis: Basis) -> Verdict:
    test = (
        f"Exponents are fitted over the last {DECADES} powers of ten of the rounds, one per trial and shared by its "
        f"arms, and given with the {percent(judged.confidence)} interval of their mean over trials. Growth is linear "
        f"if the interval starts above {1 - TOLERANCE:g} and like a square root if it ends below {0.5 + TOLERANCE:g}; "
        f"either is contradicted if the interval lies on the other's side of {BETWEEN:g}. {_PROBLEM}"
    )
    if missing := judged.missing(basis.deciding):
        return verdict_on("5", judged.protocol, basis=basis.words, test=test, answer=OPEN, summary=missing)
    cases = _cases(judged, basis)
    parts = sum(1 if policy == DISJOINT else 3 for _, policy, decides, _ in cases if decides)
    findings = []
    for arms, policy, decides, design in cases:
        growth = _judge_growth(judged, policy, arms, design, parts)
        # The paper says nothing of DisLinUCB's cross blocks, though its proof rests on them as well.
        findings += [
            finding if decides and not (policy == DISJOINT and "sigma_max" in finding.what) else _informing(finding)
            for finding in growth
        ]
    summary = summarise(findings, "Eigenvalues grow linearly, singular values no faster than a square root.")
    if any(finding.verdict == FAILS and "sigma_max" in finding.what for finding in findings):
        summary += " The mean of x z' over an arm's rounds is not 0, as the assumption has it: it tends to a constant."
    answer = combine_answers(findings)
    findings += [_cross_moment(policy, arms, design) for arms, policy, _, design in cases]
    return verdict_on("5", judged.protocol, basis=basis.words, test=test, answer=answer, summary=summary,
                      findings=findings)  # fmt: skip


def _judge_growth(judged: JudgedOutcome, policy: str, arms: int, design: Design, parts: int) -> list[Finding]:
    """The exponents of one policy's design matrix."""
    assert design.pulls is not None
    assert design.lambda_min_w is not None
    assert design.sigma_max_b is not None
    units = judged.outcome.independent_units(policy, arms)
    t = np.broadcast_to(design.t[None, :, None], (*design.z_norm.shape, 1))
    ridge, late = _ridge(judged), _late(judged, design.t)[None, :, None]

    def finding(what: str, rows: FloatArray, y: FloatArray, *, linear: bool) -> Finding:
        limits = {"above": 1 - TOLERANCE} if linear else {"below": 0.5 + TOLERANCE}
        margin = 1 - TOLERANCE - BETWEEN if linear else BETWEEN - 0.5 - TOLERANCE
        answer, exponent = judge_mean(
            exponents(rows, y, late), units, **limits, margin=margin, confidence=judged.confidence, parts=parts
        )
        return Finding(
            f"K = {arms}, {policy}: {what}", judged.describe_interval(exponent, units, of="exponent"), answer
        )

    cross = finding("sigma_max(B_i)", design.pulls, design.sigma_max_b, linear=False)
    if policy == DISJOINT:
        whole = finding("lambda_min of the arms' matrices", design.pulls, design.lambda_min_w - ridge, linear=True)
        return [whole, cross]
    return [
        finding("lambda_min(V)", t, design.lambda_min_v[..., None] - ridge, linear=True),
        finding("lambda_min(W_i)", design.pulls, design.lambda_min_w - ridge, linear=True),
        cross,
    ]


def _cross_moment(policy: str, arms: int, design: Design) -> Finding:
    """sigma_max of an arm's mean x z' at T, which is 0 in the assumption."""
    assert design.pulls is not None
    assert design.sigma_max_b is not None
    size = design.sigma_max_b[:, -1] / np.maximum(design.pulls[:, -1], 1)
    return Finding(
        f"K = {arms}, {policy}: sigma_max of an arm's mean x z' at T (not deciding; 0 by the assumption)",
        f"median {number(float(np.median(size)))}, {number(float(size.min()))} to {number(float(size.max()))}",
    )


# ------------------------------------------------------------------ claim 6


def _judge_claim_6(judged: JudgedOutcome, basis: Basis) -> Verdict:
    goal = 1 - 4 * SMALL_DELTA
    test = (
        f"The claim holds if sigma_max(Z_t) is at most {_LIMIT} at all probes from T_o on in so many trials that its "
        f"probability is at least 1 - 4 delta = {goal:g} at {percent(judged.confidence)} confidence (Clopper and "
        f"Pearson), and is contradicted if that probability is below at the same confidence, after Bonferroni's "
        f"correction. T_o is the burn-in as printed, with delta = {SMALL_DELTA:g} and the largest diversity rho "
        f"measured, which makes it smallest; the ridge is at least 1/rho, as the proof asks. {_PROBLEM}"
    )
    if missing := judged.missing(basis.deciding):
        return verdict_on("6", judged.protocol, basis=basis.words, test=test, answer=OPEN, summary=missing)
    # DisLinUCB's lemma is another one: it bounds every arm's own Z_i,t, after so many pulls of the arm.
    cases = [(arms, policy, decides and policy != DISJOINT, d) for arms, policy, decides, d in _cases(judged, basis)]
    parts = sum(decides for _, _, decides, _ in cases)
    findings: list[Finding] = []
    clauses: dict[int, list[str]] = {}
    for arms, policy, decides, design in cases:
        finding, clause = _judge_coupling(judged, policy, arms, design, goal, parts)
        findings.append(finding if decides else _informing(finding))
        if decides:
            clauses.setdefault(arms, []).append(clause)
    answer = combine_answers(findings)
    summary = "; ".join(f"K = {arms}: {join_names(said)}" for arms, said in clauses.items()) + "."
    if answer == FAILS and basis.words != BASES[0].words:
        summary += " The lemma itself is not refuted: its assumption is not true of these choices."
    findings += [_describe_burn_in(judged, policy, arms, design) for arms, policy, _, design in cases]
    return verdict_on("6", judged.protocol, basis=basis.words, test=test, answer=answer, summary=summary,
                      findings=findings)  # fmt: skip


def _judge_coupling(
    judged: JudgedOutcome, policy: str, arms: int, design: Design, goal: float, parts: int
) -> tuple[Finding, str]:
    """Whether sigma_max(Z_t) is at most 1/2 after the burn-in, and a clause that says so."""
    z, trials, start = design.z_norm, len(design.z_norm), burn_in(judged, policy, arms)
    counts = _after(policy, design, start)
    small = int(((z <= theorems.COUPLING_LIMIT) | ~counts).all(axis=1).sum())
    reached = bool(counts[:, -1].all())
    floor = proportion_floor(small, trials, judged.confidence)
    ceiling = 1 - proportion_floor(trials - small, trials, 1 - (1 - judged.confidence) / max(parts, 1))
    answer: Answer = OPEN
    if reached and floor >= goal:
        answer = HOLDS
    elif reached and ceiling < goal:
        answer = FAILS
    units = judged.outcome.independent_units(policy, arms)
    slope = interval(exponents(design.t[None, :], z, _late(judged, design.t)[None, :]), units, judged.confidence)
    at_end = f"{number(float(np.median(z[:, -1])))} at T"
    value = f"median {at_end} ({number(float(z[:, -1].min()))} to {number(float(z[:, -1].max()))})"
    value += f"; {judged.describe_interval(slope, units, of='exponent')}"
    if not reached:
        value += f"; T is before the burn-in of {number(start)}"
        return (
            Finding(f"K = {arms}, {policy}: sigma_max(Z_t)", value, answer),
            f"T is before {policy}'s burn-in of {number(start)} rounds (its Z is {at_end})",
        )
    value += f"; at most {_LIMIT} since the burn-in in {small} of {trials} trials"
    if small == trials:
        verb = "and falls" if slope is not None and slope.high < -0.25 else "but does not fall"
        clause = f"{policy}'s Z is at most {_LIMIT} since T_o in all {trials} trials {verb} ({at_end})"
    else:
        clause = f"{policy}'s Z exceeds {_LIMIT} since T_o in {trials - small} of {trials} trials ({at_end})"
    return Finding(f"K = {arms}, {policy}: sigma_max(Z_t)", value, answer), clause


def _after(policy: str, design: Design, start: float) -> NDArray[np.bool_]:
    """The probes (runs, probes) after the burn-in, which DisLinUCB's lemma counts in pulls of an arm."""
    if policy == DISJOINT:
        assert design.pulls is not None
        after: NDArray[np.bool_] = design.pulls.min(axis=2) >= start
        return after
    return np.broadcast_to(design.t >= start, design.z_norm.shape)


def _describe_burn_in(judged: JudgedOutcome, policy: str, arms: int, design: Design) -> Finding:
    """The burn-in as printed, and what the proof's own inequality gives with the pulls that were measured."""
    e, rho, start = judged.experiment, judged.rho(policy, arms), burn_in(judged, policy, arms)
    unit = " pulls of an arm" if policy == DISJOINT else ""
    value = f"{number(start)}{unit} with rho = {number(rho)} (1/rho = {number(1 / rho)}, ridge {_ridge(judged):g})"
    bound = lemma_bound(judged, policy, arms)
    if bound is not None and design.pulls is not None:
        least = theorems.eigenvalue_burn_in(d1=e.d1, d2=e.d2, arms=arms, horizon=e.horizon, rho=rho, delta=SMALL_DELTA)
        pulled = _first(design.t, (design.pulls >= least).all(axis=(0, 2)))
        below = _first(design.t, (bound <= theorems.COUPLING_LIMIT).all(axis=0))
        value += f"; every arm has T_m = {number(least)} pulls {pulled}, and the proof's bound on Z, with the pulls "
        value += f"measured, is at most {_LIMIT} {below}; at T it is {number(float(bound[:, -1].max()))}"
    return Finding(f"K = {arms}, {policy}: burn-in (not deciding)", value)


def _first(t: FloatArray, reached: Any) -> str:
    """From which probe on something is so, in words."""
    for_good = np.flip(np.logical_and.accumulate(np.flip(reached)))
    return f"from t = {number(float(t[for_good][0]))} on" if for_good.any() else "never"
