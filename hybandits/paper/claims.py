"""The claims of the paper as data, and the verdicts on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from hybandits.paper.settings import HYRAN_RELEASED, PAPER_POLICIES, UNIFORM

Answer = Literal["holds", "does not hold", "undecided"]

HOLDS: Answer = "holds"
FAILS: Answer = "does not hold"
OPEN: Answer = "undecided"

CONFIDENCE = 0.95
"""Level of the intervals that verdicts rest on, and of those that the report shows."""

# ------------------------------------------------------------------ thresholds

LINEAR = (0.9, 1.1)
"""Exponents called linear; below the first, sublinear. The published curves have 0.95 (HyRan in setting 2, called
linear), 0.76 (HyRan in setting 1, called somewhat sublinear) and 0.35 to 0.55 (the others)."""

ROOT_TOLERANCE = 0.05
"""The distance above 0.5 at which an exponent agrees with sqrt(T): the theorems' sqrt(T log(T/delta)) has the exponent
0.5 + 1/(2 log(T/delta)) at T, which is 0.538 at T = 5,000 and delta = 0.01."""

GROWTH_TOLERANCE = 0.1
"""The largest distance of an exponent from that of eigenvalues (1) and of singular values (1/2)."""

BETWEEN = 0.75
"""Where an exponent is as near to linear as to a square root: across it, a claim of either is contradicted."""

PULLS_PER_DIMENSION = 5
"""Arms enter the fits from this many pulls per dimension: with fewer, lambda_min is about lack of rank, not growth."""

DECADES = 3
"""On the small problem exponents are fitted over so many powers of ten of rounds: with d = 2 a factor of 2 would tell
little."""

EARLY = 0.9
"""Share of uniform choice's regret on a click log from which on HyLinUCB is taken to be still exploring."""

CLOSE = 0.5
"""LinUCB's regret is close to HyLinUCB's, and another's much larger, if LinUCB's exceeds HyLinUCB's by less than this
share of what the other's does. The published curves end at 0.25 (DisLinUCB) and 0.11 (HyRan)."""

# ------------------------------------------------------------------ claims


class Claim(NamedTuple):
    """A claim of the paper: a short title, and what the paper says, in our words."""

    title: str
    statement: str


CLAIMS: dict[str, Claim] = {
    "1": Claim(
        "Setting 1: order of regrets",
        "With many shared features (d1 = 40, d2 = 5) HyLinUCB has the smallest regret at T, then LinUCB, then "
        "DisLinUCB, then HyRan.",
    ),
    "2": Claim(
        "Setting 2: order of regrets, HyRan linear",
        "With many features of each arm's own (d1 = 5, d2 = 40) DisLinUCB has the smallest regret at T, then HyLinUCB, "
        "then HyRan, then LinUCB; HyRan's regret is linear in the rounds, the others' sublinear.",
    ),
    "3": Claim(
        "Setting 3: order at every K, slowest growth",
        "With d1 = d2 = 5 HyLinUCB has the smallest regret at T for every number of arms K, then DisLinUCB, then "
        "LinUCB, then HyRan; HyLinUCB's regret grows slowest with K.",
    ),
    "4": Claim(
        "Regret grows no faster than sqrt(T)",
        "Under diversity the regrets of LinUCB, HyLinUCB and DisLinUCB are at most of the order of sqrt(T), up to "
        "logarithms.",
    ),
    "5": Claim(
        "Eigenvalues linear, singular values like a square root",
        "The smallest eigenvalues of V_t, of every W_i,t and, for DisLinUCB, of every arm's matrix grow linearly in "
        "the rounds or in the arm's pulls; the largest singular value of B_i,t grows like the square root of the "
        "pulls.",
    ),
    "6": Claim(
        "Key lemma: M between U/2 and 2U",
        "After a burn-in T_o the design matrix M_t lies between half and twice its block diagonal part U_t with "
        "probability at least 1 - 4 delta, which is to say sigma_max(Z_t) <= 1/2.",
    ),
    "7": Claim(
        "Regret below the theorems' bounds",
        "Once T exceeds the burn-in, the regrets of LinUCB, HyLinUCB and DisLinUCB stay below the right-hand sides "
        "that the proofs spell out, with probability at least 1 - 4 delta.",
    ),
    "8": Claim(
        "Yahoo: HyLinUCB best, LinUCB close",
        "On the contexts of Yahoo's click log, with a reward model fitted to its first rounds, HyLinUCB has the "
        "smallest regret at T; LinUCB's comes close to it, DisLinUCB's and HyRan's are much larger.",
    ),
    "8 (positions)": Claim(
        "Yahoo, positions as arms: HyLinUCB best, LinUCB close",
        "The same as claim 8. In the paper's text the arms are articles; in its code, and in this run, they are "
        "positions in a line's list of candidates.",
    ),
}
"""By the number that verdicts and the page use."""


class Order(NamedTuple):
    """An order of regrets at T, smallest first, and what else the claim says about them."""

    experiment: str
    policies: tuple[str, ...]
    if_all_hold: str
    shapes: bool = False
    """HyRan's regret is linear in the rounds, the others' sublinear."""
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
        shapes=True,
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
    """Whose choices a verdict on the small problem rests on: `deciding` policies decide, `informing` ones inform."""

    words: str
    deciding: tuple[str, ...]
    informing: tuple[str, ...] = ()


UNIFORM_CHOICE = Basis("small problem, uniform choice", (UNIFORM,))
PICKED_ARMS = Basis("small problem, arms picked for their reward", PAPER_POLICIES, ("HyIDS",))


class Finding(NamedTuple):
    """One row of the evidence behind a verdict.

    Attributes
    ----------
    what : str
        The part of the claim, e.g. ``"HyLinUCB < LinUCB"``.
    value : str
        The result, in words and numbers.
    verdict : {"holds", "does not hold", "undecided"} or None
        The answer on this part of the claim. None if the row informs but does not decide.
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

    Attributes
    ----------
    claim : str
        The claim's number, e.g. ``"1"`` or ``"8 (positions)"``.
    protocol : str
        ``"released"`` (as the published code has it) or ``"written"`` (as the text has it).
    test : str
        How the verdict is reached.
    verdict : {"holds", "does not hold", "undecided"}
        The answer.
    summary : str
        The reason, in a sentence or two.
    evidence : tuple of Finding
        The measurements, part by part.
    basis : str
        The runs that the verdict rests on, e.g. ``"the 5 published environments"``.
    aside : bool
        Whether these are other runs than the paper's own: fresh environments, or another problem.
    """

    claim: str
    protocol: str
    test: str
    verdict: Answer
    summary: str
    evidence: tuple[Finding, ...] = ()
    basis: str = ""
    aside: bool = False

    @property
    def title(self) -> str:
        """The claim in a few words."""
        return CLAIMS[self.claim].title

    @property
    def statement(self) -> str:
        """The paper's statement, in our words."""
        return CLAIMS[self.claim].statement
