"""Parts that many claims have: where a mean lies, whose regret is smaller, whether a regret is linear in the rounds."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from numpy.typing import NDArray

from hybandits.foundation.checks import FloatArray
from hybandits.paper.claims.judged_outcome import JudgedOutcome
from hybandits.paper.claims.verdicts import FAILS, HOLDS, OPEN, Answer, Finding
from hybandits.paper.claims.wording import mean, number
from hybandits.statistics import Interval, interval, interval_within

LINEAR = (0.9, 1.1)
"""Exponents called linear; below the first, sublinear. The published curves have 0.95 (HyRan in setting 2, called
linear), 0.76 (HyRan in setting 1, called somewhat sublinear) and 0.35 to 0.55 (the others)."""


class JudgedMean(NamedTuple):
    """Whether a mean lies where a claim has it, and its interval at the stated confidence, None if there is none."""

    answer: Answer
    interval: Interval | None


def judge_mean(
    values: FloatArray,
    units: NDArray[Any],
    *,
    above: float = -math.inf,
    below: float = math.inf,
    margin: float = 0.0,
    confidence: float,
    parts: int = 1,
) -> JudgedMean:
    """Judge whether a mean lies between two limits.

    Parameters
    ----------
    values, units : arrays of shape (runs,)
        A value per run, and the independent unit that the run belongs to.
    above, below : float
        The mean is claimed to lie above the first and below the second.
    margin : float
        How far beyond a limit the interval must lie to contradict the claim.
    confidence : float
        The mean is where it is claimed to be if its interval at this confidence is.
    parts : int
        Parts of the claim. To contradict it, the interval must lie outside with its error divided by this number.
    """
    usual = interval(values, units, confidence)
    wide = interval(values, units, 1 - (1 - confidence) / parts)
    if usual is None or wide is None:
        return JudgedMean(OPEN, None)
    if above < usual.low and usual.high < below:
        return JudgedMean(HOLDS, usual)
    return JudgedMean(FAILS if wide.low > below + margin or wide.high < above - margin else OPEN, usual)


def compare_regrets(
    judged: JudgedOutcome, smaller: str, larger: str, *, arms: int | None = None, parts: int = 1, decides: bool = True
) -> Finding:
    """Whether one policy's regret at T is below another's, compared run by run."""
    a, b = judged.outcome.final(smaller, arms), judged.outcome.final(larger, arms)
    units = judged.outcome.independent_units(smaller, arms)
    answer, difference = judge_mean(a - b, units, below=0.0, confidence=judged.confidence, parts=parts)
    value = (
        f"{mean(a)} against {mean(b)}; {judged.describe_interval(difference, units, of='difference')}; smaller in "
        f"{int((a < b).sum())} of {len(a)} runs"
    )
    if here := interval_within(a - b, units, judged.confidence):
        value += f"; in these {here.units} environments alone {number(here.low)} to {number(here.high)}"
    where = "" if arms is None else f" at K = {arms}"
    return Finding(f"{smaller} < {larger}{where}", value, answer if decides else None)


def judge_shape(judged: JudgedOutcome, policy: str, *, linear: bool, parts: int = 1, decides: bool = True) -> Finding:
    """Whether a policy's regret is linear, or sublinear, in the last half of the rounds."""
    units = judged.outcome.independent_units(policy)
    above, below = LINEAR if linear else (-math.inf, LINEAR[0])
    answer, exponent = judge_mean(
        judged.regret_exponents(policy), units, above=above, below=below, confidence=judged.confidence, parts=parts
    )
    what = f"{policy} {'linear' if linear else 'sublinear'}"
    return Finding(what, judged.describe_interval(exponent, units, of="exponent"), answer if decides else None)
