"""The words of verdicts: numbers and names in sentences, and a description of every test."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from hybandits.foundation.checks import FloatArray
from hybandits.paper.claims import (
    BETWEEN,
    CLOSE,
    CONFIDENCE,
    DECADES,
    EARLY,
    FAILS,
    GROWTH_TOLERANCE,
    LINEAR,
    OPEN,
    PULLS_PER_DIMENSION,
    ROOT_TOLERANCE,
    Finding,
)
from hybandits.paper.settings import SMALL_DELTA


def number(value: float) -> str:
    """Format a number with as many digits as a reader needs.

    >>> number(0.12345), number(1234.5), number(8.43e8), number(math.inf), number(math.nan)
    ('0.123', '1,234', '8.4e8', 'infinite', 'unknown')
    """
    if not math.isfinite(value):
        return "unknown" if math.isnan(value) else "infinite"
    if abs(value) >= 1e6:
        return f"{value:.2g}".replace("e+0", "e").replace("e+", "e")
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def percent(share: float) -> str:
    """Format a share as a percentage.

    >>> percent(0.95)
    '95 %'
    """
    return f"{100 * share:.4g} %"


def mean(values: FloatArray) -> str:
    """Format the mean of the values that are finite."""
    finite = values[np.isfinite(values)]
    return number(float(finite.mean())) if len(finite) else "unknown"


def join_names(names: Sequence[str]) -> str:
    """Join names as a list in a sentence.

    >>> join_names(["a"]), join_names(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def name_a_few(names: Sequence[str]) -> str:
    """Join at most four names, or three and how many more there are.

    >>> name_a_few(["a", "b", "c", "d", "e"])
    'a, b, c and 2 more'
    """
    return join_names(names) if len(names) <= 4 else f"{', '.join(names[:3])} and {len(names) - 3} more"


def summarise(findings: Sequence[Finding], if_all_hold: str) -> str:
    """Name the parts of a claim that are contradicted, else those that are not settled."""
    contradicted = [finding.what for finding in findings if finding.verdict == FAILS]
    unsettled = [finding.what for finding in findings if finding.verdict == OPEN]
    if contradicted:
        return f"Contradicted: {name_a_few(contradicted)}."
    return f"Not settled: {name_a_few(unsettled)}." if unsettled else if_all_hold


# ------------------------------------------------------------------ tests in words

LEVEL = percent(CONFIDENCE)
"""The confidence of intervals, in words."""

_ONE_DRAW = "All trials share one draw of the parameters, so the verdict is about that draw."
_SMALL_PROBLEM = (
    "Features are unit vectors in all directions, so the draw of the parameters is a choice of coordinates and nothing "
    "else; every trial has contexts of its own."
)
_A_BELOW_B = (
    "lies below 0. It is contradicted if the interval lies above 0 even with its error divided by the number of parts."
)
_ORDER = (
    f"The regrets of two policies at T are compared run by run and averaged per environment. A < B holds if the "
    f"{LEVEL} interval of the mean difference (Student's t over environments) {_A_BELOW_B} All parts must hold. HyRan "
    "is the variant that the paper plotted. Where environments have several trials, a second interval is for these "
    "environments alone, whose runs differ only by noise. It tells whether the published means come out again, not "
    "whether other environments would agree, and does not decide."
)
_CLICK_LOG = (
    f"The regrets of two policies at T are compared trial by trial. A < B holds if the {LEVEL} interval of the mean "
    f"difference (Student's t over trials) {_A_BELOW_B} LinUCB is close, and another policy's regret much larger, if "
    f"LinUCB's regret exceeds HyLinUCB's by less than {CLOSE:g} of what the other's does. All parts must hold. HyRan "
    "is the variant that the paper plotted. Trials play the same log and differ by noise, so the verdict is about this "
    "log. With one trial there is no interval and the claim is undecided; so it is as long as HyLinUCB has lost "
    f"{percent(EARLY)} or more of what choosing uniformly among the candidates would lose."
)

TESTS = {
    "1": _ORDER,
    "2": f"{_ORDER} Shape is the exponent of the regret over the last half of the rounds: linear if its interval lies "
    f"between {LINEAR[0]} and {LINEAR[1]}, sublinear if it lies below {LINEAR[0]}.",
    "3": f"{_ORDER} Growth with K is fitted per run and compared in the same way, both as a power of K (the slope of "
    "log regret against log K) and as regret added per arm (the slope of regret against K). Where the two measures "
    "disagree, it is undecided.",
    "4": "The exponent of the regret is fitted over the last half of the rounds, one per trial. The regret is at most "
    f"of the order of sqrt(T) if the {LEVEL} interval of the mean exponent ends below {0.5 + ROOT_TOLERANCE:g} (the "
    f"tolerance covers the theorems' logarithm); it is contradicted if the interval starts above. {_ONE_DRAW}",
    "5": "Exponents are fitted over the last half of the rounds, one per trial, and given with the "
    f"{LEVEL} interval of their mean; an arm counts once it has {PULLS_PER_DIMENSION} pulls per dimension. Those of "
    "eigenvalues come from the growth per row in the third and in the last quarter of the rounds, because lambda_min "
    "starts to grow late: for n independent rows in d dimensions it is near rho n (1 - sqrt(d/n))^2, whose log-log "
    f"slope is well above 1 at these n. Growth is linear if the interval starts above {1 - GROWTH_TOLERANCE:g} (faster "
    "growth cannot last: |x|, |z| <= 1 keep lambda_min below 2 n/d) and like a square root if the interval ends below "
    f"{0.5 + GROWTH_TOLERANCE:g}. Either is contradicted if the interval lies on the other's side of {BETWEEN:g}. "
    f"{_ONE_DRAW}",
    "5 (small problem)": f"Exponents are fitted over the last {DECADES} powers of ten of the rounds, one per trial and "
    f"shared by its arms, and given with the {LEVEL} interval of their mean over trials. Growth is linear if the "
    f"interval starts above {1 - GROWTH_TOLERANCE:g} and like a square root if it ends below "
    f"{0.5 + GROWTH_TOLERANCE:g}; either is contradicted if the interval lies on the other's side of {BETWEEN:g}. "
    f"{_SMALL_PROBLEM}",
    "6": "sigma_max(Z_t) is measured at the probes. The claim holds if it is at most 1/2 in so many trials that its "
    f"probability is at least 1 - 4 delta at {LEVEL} confidence (Clopper and Pearson): at all probes from T_o on if T "
    "reaches T_o; otherwise at T, if it is also falling over the last half of the rounds. T_o is computed with the "
    "largest diversity rho measured, which makes it smallest. Only what happens after T_o can contradict the claim. "
    f"{_ONE_DRAW}",
    "6 (small problem)": "The claim holds if sigma_max(Z_t) is at most 1/2 at all probes from T_o on in so many trials "
    f"that its probability is at least 1 - 4 delta = {1 - 4 * SMALL_DELTA:g} at {LEVEL} confidence (Clopper and "
    "Pearson), and is contradicted if that probability is below at the same confidence, after Bonferroni's correction. "
    f"T_o is the burn-in as printed, with delta = {SMALL_DELTA:g} and the largest diversity rho measured, which makes "
    f"it smallest; the ridge is at least 1/rho, as the proof asks. {_SMALL_PROBLEM}",
    "7": "In every experiment and for every K, the largest regret at T of any run is compared with the proof's bound, "
    "with the theorem's lambda and gamma and with the largest diversity rho of any run, which makes the bound "
    "smallest. A part holds if T exceeds the burn-in and every run is below the bound. It is undecided if T does not "
    "exceed the burn-in, since the theorem then says nothing. It does not hold if a run is above the bound. A bound is "
    "vacuous if it exceeds 2 (S1 + S2) T, which no regret can.",
    "8": _CLICK_LOG,
    "8 (synthetic log)": f"{_CLICK_LOG} This log is synthetic, so the claim is undecided whatever comes out.",
}
"""The test that leads to the verdict on a claim."""
