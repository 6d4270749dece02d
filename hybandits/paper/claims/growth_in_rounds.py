"""Claim 4: regret grows no faster than the square root of the rounds."""

from __future__ import annotations

from hybandits.paper import theorems
from hybandits.paper.claims.comparisons import judge_mean
from hybandits.paper.claims.judged_outcome import JudgedOutcome
from hybandits.paper.claims.verdicts import FAILS, HOLDS, OPEN, Finding, Verdict, combine_answers, verdict_on
from hybandits.paper.claims.wording import join_names, number, percent

ROOT_TOLERANCE = 0.05
"""How far above 0.5 an exponent still agrees with sqrt(T): the theorems' sqrt(T log(T/delta)) has the exponent
0.5 + 1/(2 log(T/delta)) at T, which is 0.538 at T = 5,000 and delta = 0.01."""

ONE_DRAW = "All trials share one draw of the parameters, so the verdict is about that draw."
"""Said of every claim that is judged by the diversity experiment."""


def judge_claim_4(judged: JudgedOutcome) -> Verdict:
    """Diversity: the exponents of the regrets."""
    limit = 0.5 + ROOT_TOLERANCE
    test = (
        f"The exponent of the regret is fitted over the last half of the rounds, one per trial. The regret is at most "
        f"of the order of sqrt(T) if the {percent(judged.confidence)} interval of the mean exponent ends below "
        f"{limit:g} (the tolerance covers the theorems' logarithm); it is contradicted if the interval starts above. "
        f"{ONE_DRAW}"
    )
    if missing := judged.missing(theorems.POLICIES):
        return verdict_on("4", judged.protocol, test=test, answer=OPEN, summary=missing)
    findings, readings = [], []
    for policy in theorems.POLICIES:
        units = judged.outcome.independent_units(policy)
        answer, exponent = judge_mean(
            judged.regret_exponents(policy), units, below=limit, confidence=judged.confidence, parts=3
        )
        value = judged.describe_interval(exponent, units)
        if exponent is not None:
            if exponent.low <= 0.5 <= exponent.high:
                place, reading = "contains 0.5", "alike"
            else:
                place, reading = ("below 0.5", "slower") if exponent.high < 0.5 else ("above 0.5", "faster")
            value += f": {place}; allowed up to {limit:g}"
            readings.append(f"{policy} {reading} ({number(exponent.mean)})")
        findings.append(Finding(f"{policy}: exponent of the regret", value, answer))
    answer = combine_answers(findings)
    head = {
        HOLDS: "At most sqrt(T), as the bound says",
        FAILS: "Faster than sqrt(T) up to this T",
        OPEN: "Not settled",
    }[answer]
    head += f": exponents are allowed up to {limit:g}, which leaves room for the theorems' logarithm"
    summary = "No exponent could be fitted."
    if readings:
        summary = f"{head}. Compared with sqrt(T) itself: {join_names(readings)}."
    burn_ins = {policy: judged.burn_in(policy, judged.outcome.arms[0]) for policy in theorems.POLICIES}
    if min(burn_ins.values()) >= judged.horizon:
        summary += f" The theorems are about T beyond their burn-in; T = {judged.horizon:,} is before it."
    findings += [
        Finding(f"{policy}: burn-in (not deciding)", f"{number(burn_in)} against T = {judged.horizon:,}")
        for policy, burn_in in burn_ins.items()
    ]
    return verdict_on("4", judged.protocol, test=test, answer=answer, summary=summary, findings=findings)
