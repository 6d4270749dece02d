"""The claims of the paper as data, and the verdicts on them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, NamedTuple

from hybandits.paper.settings import HYRAN_RELEASED, PAPER_POLICIES, SMALL_DELTA, UNIFORM

Answer = Literal["holds", "does not hold", "undecided", "assumption not met"]

HOLDS: Answer = "holds"
FAILS: Answer = "does not hold"
OPEN: Answer = "undecided"
UNMET: Answer = "assumption not met"
"""The data contradict what the claim assumes, so it promises nothing here, whatever is seen of its conclusion."""

CONFIDENCE = 0.95
"""Level of the intervals that verdicts rest on, and of those that the report shows."""

# ------------------------------------------------------------------ thresholds

LINEAR = (0.9, 1.1)
"""Exponents called linear; below the first, sublinear. The published curves have 0.95 (HyRan in setting 2, called
linear), 0.76 (HyRan in setting 1, called somewhat sublinear) and 0.29 to 0.55 (the others)."""

ROOT_TOLERANCE = 0.05
"""The distance above 0.5 at which an exponent agrees with sqrt(T): the theorems' sqrt(T log(T/delta)) has the exponent
0.5 + 1/(2 log(T/delta)) at T, which is 0.538 at T = 5,000 and delta = 0.01."""

GROWTH_TOLERANCE = 0.1
"""The largest distance of an exponent from that of eigenvalues (1) and of singular values (1/2)."""

BETWEEN = 0.75
"""The exponent that is as near to linear as to a square root: across it, a claim of either is contradicted."""

PULLS_PER_DIMENSION = 5
"""Arms enter the fits from this many pulls per dimension: with fewer, lambda_min is about lack of rank, not growth."""

DECADES = 3
"""On the small problem exponents are fitted over so many powers of ten of rounds: with d = 2 a factor of 2 would tell
little."""

EARLY = 0.9
"""Share of uniform choice's regret on a click log from which on HyLinUCB has gained too little to be ranked."""

SATURATED = 0.5
"""Share of uniform choice's regret above which slow growth with K does not count in a policy's favour: it would grow
slowly in any case, because regret rarely exceeds that of uniform choice, which hardly grows with K."""

CLOSE = 0.5
"""LinUCB's regret is close to HyLinUCB's, and another's much larger, if LinUCB's exceeds HyLinUCB's by less than this
share of what the other's does. The published curves end at 0.25 (DisLinUCB) and 0.11 (HyRan)."""

# ------------------------------------------------------------------ claims


class Claim(NamedTuple):
    """A claim of the paper: a short title, what the paper says, in our words, and how a verdict is reached."""

    title: str
    statement: str
    method: str
    """The test and its level in a few words."""
    test: str
    other_test: str = ""
    """The test on the small problem (claims 5 and 6), or on a synthetic log (claim 8)."""


LEVEL = f"{100 * CONFIDENCE:g} %"
"""The confidence of intervals, in words."""

_BY_ENVIRONMENT = f"paired t over environments, {LEVEL}"
_BY_TRIAL = f"paired t over trials, {LEVEL}"

_ONE_DRAW = "All trials share one draw of the parameters, so the verdict is about that draw."
_SMALL_PROBLEM = (
    "Features are unit vectors in all directions, so the draw of the parameters is a choice of coordinates and nothing "
    "else; every trial has contexts of its own."
)
_A_BELOW_B = (
    "lies below 0. It is contradicted if the interval lies above 0 after Bonferroni's correction for the claim's parts."
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
    f"{100 * EARLY:g} % or more of what choosing uniformly among the candidates would lose."
)


CLAIMS: dict[str, Claim] = {
    "1": Claim(
        "Setting 1: order of regrets",
        "With many shared features (d1 = 40, d2 = 5) HyLinUCB has the smallest regret at T, then LinUCB, then "
        "DisLinUCB, then HyRan.",
        _BY_ENVIRONMENT,
        _ORDER,
    ),
    "2": Claim(
        "Setting 2: order of regrets, HyRan linear",
        "With many features of each arm's own (d1 = 5, d2 = 40) DisLinUCB has the smallest regret at T, then HyLinUCB, "
        "then HyRan, then LinUCB; HyRan's regret is linear in the rounds, LinUCB's sublinear.",
        _BY_ENVIRONMENT,
        f"{_ORDER} Shape is the exponent of the regret over the last half of the rounds: linear if its interval lies "
        f"between {LINEAR[0]} and {LINEAR[1]}, sublinear if it lies below {LINEAR[0]}. It is that of the mean curve, "
        "with a jackknife interval over environments, and the mean of the runs' exponents; the two must agree.",
    ),
    "3": Claim(
        "Setting 3: order at every K, slowest growth",
        "With d1 = d2 = 5 HyLinUCB has the smallest regret at T for every number of arms K, then DisLinUCB, then "
        "LinUCB, then HyRan; HyLinUCB's regret grows much slower with K than the others'.",
        _BY_ENVIRONMENT,
        f"{_ORDER} Growth is compared from each K to the next, by the local exponent (of the mean regret, as a power "
        "of K) and by the regret added per arm, with jackknife intervals of the difference of two policies over "
        "environments. One power law over all K would mislead, because regret saturates at that of uniform choice. A "
        "policy grows slower than another if both measures are lower at every step, and does not if both are higher "
        f"at one; above {100 * SATURATED:g} % of uniform choice's regret, slow growth does not count in a policy's "
        "favour. Where the measures disagree, the growth is undecided.",
    ),
    "4": Claim(
        "Regret grows no faster than sqrt(T)",
        "Under diversity the regrets of LinUCB, HyLinUCB and DisLinUCB are at most of the order of sqrt(T), up to "
        "logarithms.",
        f"t on exponents of regret, {LEVEL}",
        "The exponent of the regret is fitted over the last half of the rounds, one per trial. If T exceeds the "
        f"burn-in, it holds if the {LEVEL} interval of the mean exponent ends below {0.5 + ROOT_TOLERANCE:g} (the "
        "tolerance covers the theorems' logarithm) and is contradicted if the interval starts above. Up to the burn-in "
        f"the theorems say nothing about growth, so it is undecided whatever the exponent. {_ONE_DRAW}",
    ),
    "5": Claim(
        "Eigenvalues linear, singular values like a square root",
        "In the diversity experiment the smallest eigenvalues of V_t, of every W_i,t and, for DisLinUCB, of every "
        "arm's matrix grow linearly in the rounds or in the arm's pulls; the largest singular value of B_i,t grows "
        "like the square root of the pulls.",
        f"t on exponents of growth, {LEVEL}",
        f"Exponents are fitted over the last half of the rounds, one per trial, and given with the {LEVEL} interval "
        f"of their mean; an arm counts once it has {PULLS_PER_DIMENSION} pulls per dimension. Those of eigenvalues "
        "come from the growth per row in the third and in the last quarter of the rounds, because lambda_min starts "
        "to grow late: for n independent rows in d dimensions it is near rho n (1 - sqrt(d/n))^2, whose log-log "
        f"slope is well above 1 at these n. Growth is linear if the interval starts above {1 - GROWTH_TOLERANCE:g} "
        "(faster growth cannot last: |x|, |z| <= 1 keep lambda_min below 2 n/d) and like a square root if the "
        f"interval ends below {0.5 + GROWTH_TOLERANCE:g}. Either is contradicted if the interval lies on the other's "
        f"side of {BETWEEN:g}. {_ONE_DRAW}",
        f"Exponents are fitted over the last {DECADES} powers of ten of the rounds, one per trial and "
        f"shared by its arms, and given with the {LEVEL} interval of their mean over trials. Growth is linear if the "
        f"interval starts above {1 - GROWTH_TOLERANCE:g} and like a square root if it ends below "
        f"{0.5 + GROWTH_TOLERANCE:g}; either is contradicted if the interval lies on the other's side of {BETWEEN:g}. "
        f"{_SMALL_PROBLEM}",
    ),
    "6": Claim(
        "Key lemma: M between U/2 and 2U",
        "Under diversity, after a burn-in T_o, the design matrix M_t lies between half and twice its block diagonal "
        "part U_t with probability at least 1 - 4 delta, which is to say sigma_max(Z_t) <= 1/2.",
        f"Clopper and Pearson, {LEVEL}",
        "sigma_max(Z_t) is measured at the probes. If T reaches the burn-in T_o, the claim holds if it is at most 1/2 "
        "at all probes from T_o on in so many trials that its probability is at least 1 - 4 delta at "
        f"{LEVEL} confidence (Clopper and Pearson), and is contradicted if that probability is below, after "
        "Bonferroni's correction. Up to T_o the lemma promises nothing, so it is undecided whatever is seen. T_o is "
        f"computed with the largest diversity rho measured, which makes it smallest. {_ONE_DRAW}",
        "The claim holds if sigma_max(Z_t) is at most 1/2 at all probes from T_o on in so many trials that its "
        f"probability is at least 1 - 4 delta = {1 - 4 * SMALL_DELTA:g} at {LEVEL} confidence (Clopper and Pearson), "
        "and is contradicted if that probability is below at the same confidence, after Bonferroni's correction. Where "
        "claim 5 is contradicted for sigma_max(B_i) of a deciding policy, x z' does not have mean 0: the lemma's "
        "assumption is not met, and the verdict says that instead. T_o is the burn-in as printed, with delta = "
        f"{SMALL_DELTA:g} and the largest diversity rho measured, which makes it smallest; the ridge is at least "
        f"1/rho, as the proof asks. {_SMALL_PROBLEM}",
    ),
    "7": Claim(
        "Regret below the theorems' bounds",
        "Under diversity, once T exceeds the burn-in, the regrets of LinUCB, HyLinUCB and DisLinUCB stay below the "
        "right-hand sides that the proofs spell out, with probability at least 1 - 4 delta.",
        "every run against the bound",
        "In every experiment and for every K, the largest regret at T of any run is compared with the proof's bound, "
        "with the theorem's lambda and gamma and with the largest diversity rho of any run, which makes the bound "
        "smallest. A part holds if T exceeds the burn-in and every run is below the bound. It is undecided if T does "
        "not exceed the burn-in, since the theorem then says nothing. It does not hold if so few runs are below the "
        f"bound that their probability is less than 1 - 4 delta (Clopper and Pearson, {LEVEL}, after Bonferroni's "
        "correction). "
        "A bound is vacuous if it exceeds 2 (S1 + S2) T, which no regret can.",
    ),
    "8": Claim(
        "Yahoo: HyLinUCB best, LinUCB close",
        "On the contexts of Yahoo's click log, with a reward model fitted to its first rounds, HyLinUCB has the "
        "smallest regret at T; LinUCB's comes close to it, DisLinUCB's and HyRan's are much larger.",
        _BY_TRIAL,
        _CLICK_LOG,
        f"{_CLICK_LOG} This log is synthetic, so the claim is undecided whatever comes out.",
    ),
    "8 (positions)": Claim(
        "Yahoo, positions as arms: HyLinUCB best, LinUCB close",
        "The same as claim 8. In the paper's text the arms are articles; in its code, and in this run, they are "
        "positions in a line's list of candidates.",
        _BY_TRIAL,
        _CLICK_LOG,
        f"{_CLICK_LOG} This log is synthetic, so the claim is undecided whatever comes out.",
    ),
}
"""By the number that verdicts and the page use."""


class Order(NamedTuple):
    """An order of regrets at T, smallest first, and what else the claim says about them."""

    experiment: str
    policies: tuple[str, ...]
    if_all_hold: str
    linear: tuple[str, ...] = ()
    sublinear: tuple[str, ...] = ()
    """Policies whose regret is linear, or sublinear, in the rounds."""
    growth: bool = False
    """The order holds at every number of arms, and the first policy's regret grows slowest with it."""


ORDERS = {
    "1": Order(
        "setting-1",
        ("HyLinUCB", "LinUCB", "DisLinUCB", HYRAN_RELEASED),
        "Every neighbouring pair is in the stated order.",
    ),
    "2": Order(
        "setting-2",
        ("DisLinUCB", "HyLinUCB", HYRAN_RELEASED, "LinUCB"),
        "Order and shapes are as stated.",
        linear=(HYRAN_RELEASED,),
        sublinear=("LinUCB",),
    ),
    "3": Order(
        "setting-3",
        ("HyLinUCB", "DisLinUCB", "LinUCB", HYRAN_RELEASED),
        "The order is as stated at every K.",
        growth=True,
    ),
}
"""Claims 1 to 3."""


class Basis(NamedTuple):
    """The choices that a verdict on the small problem rests on: `deciding` policies decide, `informing` ones inform."""

    words: str
    deciding: tuple[str, ...]
    informing: tuple[str, ...] = ()


UNIFORM_CHOICE = Basis("small problem, uniform choice", (UNIFORM,))
PICKED_ARMS = Basis("small problem, picked arms", PAPER_POLICIES, ("HyIDS",))


class Finding(NamedTuple):
    """One row of the evidence behind a verdict.

    `what` is the part of the claim, e.g. ``"HyLinUCB < LinUCB"``, `value` the result in words and numbers, `verdict`
    the answer on this part; None if the row informs but does not decide.
    """

    what: str
    value: str
    verdict: Answer | None = None

    def informing(self) -> Finding:
        """The same row, marked as one that does not decide."""
        return Finding(f"{self.what} (not deciding)", self.value)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The answer on one claim of the paper under one protocol, with the evidence.

    `claim` is its number, e.g. ``"8 (positions)"``, and `protocol` is ``"released"`` (the published code) or
    ``"written"`` (the text). `test` and `summary` describe how the verdict is reached and why it is this one.
    """

    claim: str
    protocol: str
    test: str
    verdict: Answer
    summary: str
    evidence: tuple[Finding, ...] = ()
    basis: str = ""
    """The runs that the verdict rests on, e.g. ``"the 5 published environments"``."""
    aside: bool = False
    """True if these are other runs than the paper's own: fresh environments, or another problem."""
    early: bool = False
    """True if T does not exceed a theorem's burn-in, so that nothing is claimed yet."""

    @property
    def runs(self) -> str:
        """The basis in words that are alike under both protocols, for one row of a table."""
        words = self.basis.removeprefix("the ").replace(" published", "").removesuffix(", every algorithm updated")
        return re.sub(r"^\d+ trials", "trials", words)

    @property
    def short(self) -> str:
        """The first sentence of the summary."""
        return re.split(r"(?<=\.) (?=[A-Z])", self.summary)[0]

    @property
    def method(self) -> str:
        """The test and its level in a few words."""
        return CLAIMS[self.claim].method

    @property
    def title(self) -> str:
        """The claim in a few words."""
        return CLAIMS[self.claim].title

    @property
    def statement(self) -> str:
        """The paper's statement, in our words."""
        return CLAIMS[self.claim].statement
