"""The part of claim 3 on growth: whose regret grows slower with the number of arms."""

from __future__ import annotations

import numpy as np

from hybandits.foundation.checks import FloatArray
from hybandits.paper.claims.comparisons import judge_mean
from hybandits.paper.claims.judged_outcome import JudgedOutcome
from hybandits.paper.claims.verdicts import Finding
from hybandits.paper.claims.wording import mean
from hybandits.statistics import exponents


def compare_growth(judged: JudgedOutcome, slower: str, faster: str, parts: int) -> tuple[Finding, Finding]:
    """Whether one policy's regret grows slower with K than another's: as a power of K, and per added arm."""
    complete = judged.outcome.arms
    arms = np.array(complete, dtype=float)
    units = judged.outcome.independent_units(slower, complete[0])
    regrets = [np.stack([judged.outcome.final(policy, k) for k in complete], axis=1) for policy in (slower, faster)]
    centred = arms - arms.mean()

    def compare(measure: str, one: FloatArray, other: FloatArray) -> Finding:
        answer, difference = judge_mean(one - other, units, below=0.0, confidence=judged.confidence, parts=parts)
        interval = judged.describe_interval(difference, units, of="difference")
        return Finding(
            f"growth of {slower} < {faster} {measure}", f"{mean(one)} against {mean(other)}; {interval}", answer
        )

    return (
        compare("as a power of K", *(exponents(arms[None, :], regret) for regret in regrets)),
        compare("per added arm", *(regret @ centred / (centred @ centred) for regret in regrets)),
    )
