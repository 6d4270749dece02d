"""What a claim is, what a verdict on it consists of, and how the answers of its parts combine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from hybandits.paper.claims.wording import fraction, name_a_few
from hybandits.paper.theorems import COUPLING_LIMIT

Answer = Literal["holds", "does not hold", "undecided"]

HOLDS: Answer = "holds"
FAILS: Answer = "does not hold"
OPEN: Answer = "undecided"

CONFIDENCE = 0.95
"""Level of the intervals that verdicts rest on, and of those that the report shows."""


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
        f"probability at least 1 - 4 delta, which is to say sigma_max(Z_t) <= {fraction(COUPLING_LIMIT)}.",
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


class Finding(NamedTuple):
    """One row of the evidence behind a verdict.

    Attributes
    ----------
    what : str
        What was looked at, e.g. ``"HyLinUCB < LinUCB"``.
    value : str
        What the results show, in words and numbers.
    verdict : {"holds", "does not hold", "undecided"} or None
        The answer on this part of the claim. None if the row informs but does not decide.
    """

    what: str
    value: str
    verdict: Answer | None = None


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Whether one claim of the paper holds under one protocol, and why.

    Attributes
    ----------
    claim : str
        The claim's number, e.g. ``"1"`` or ``"8 (positions)"``.
    protocol : str
        ``"released"`` (as the published code has it) or ``"written"`` (as the text has it).
    title, statement : str
        The claim in a few words, and what the paper says.
    test : str
        How the verdict is reached.
    verdict : {"holds", "does not hold", "undecided"}
        The answer.
    summary : str
        Why, in a sentence or two.
    evidence : tuple of Finding
        What was measured, part by part.
    basis : str
        What the verdict rests on, e.g. ``"the 5 published environments"`` or ``"100 fresh environments"``.
    aside : bool
        Whether these are other runs than the paper's own: fresh environments, or another problem.
    """

    claim: str
    protocol: str
    title: str
    statement: str
    test: str
    verdict: Answer
    summary: str
    evidence: tuple[Finding, ...]
    basis: str = ""
    aside: bool = False


def verdict_on(
    claim: str,
    protocol: str,
    *,
    test: str,
    answer: Answer,
    summary: str,
    findings: Sequence[Finding] = (),
    basis: str = "",
) -> Verdict:
    """A verdict, with the title and the statement of its claim filled in."""
    title, statement = CLAIMS[claim]
    return Verdict(
        claim=claim, protocol=protocol, title=title, statement=statement, test=test, verdict=answer, summary=summary,
        evidence=tuple(findings), basis=basis,
    )  # fmt: skip


def combine_answers(parts: Iterable[Finding | Answer]) -> Answer:
    """A claim's answer from those of its parts: one contradicted part refutes it, and it holds if all parts do.

    Findings that do not decide are left out.

    >>> combine_answers([HOLDS, Finding("a < b", "1 against 2", HOLDS), Finding("c", "for information")])
    'holds'
    >>> combine_answers([HOLDS, OPEN]), combine_answers([OPEN, FAILS]), combine_answers([])
    ('undecided', 'does not hold', 'undecided')
    """
    answers = {part.verdict if isinstance(part, Finding) else part for part in parts} - {None}
    if FAILS in answers:
        return FAILS
    return HOLDS if answers == {HOLDS} else OPEN


def summarise(findings: Sequence[Finding], if_all_hold: str) -> str:
    """Why a claim of several parts came out as it did: the parts that are contradicted, else those not settled."""
    contradicted = [finding.what for finding in findings if finding.verdict == FAILS]
    unsettled = [finding.what for finding in findings if finding.verdict == OPEN]
    if contradicted:
        return f"Contradicted: {name_a_few(contradicted)}."
    return f"Not settled: {name_a_few(unsettled)}." if unsettled else if_all_hold
