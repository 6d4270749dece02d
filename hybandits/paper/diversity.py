"""Findings on diversity beyond the claims: growth of the cross blocks, moments of the arm played, and coverage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from hybandits.experiments.record import Experiment
from hybandits.experiments.results import Design, Results
from hybandits.foundation.checks import FloatArray
from hybandits.paper.claims import FAILS, HOLDS, OPEN, Answer
from hybandits.paper.judging import (
    JudgedMean,
    JudgedOutcome,
    compare_regrets,
    cross_exponents,
    join_names,
    judge_growth,
    judge_mean,
    mean_cross_moment,
    number,
    number_range,
)
from hybandits.paper.settings import DIVERSITY_RUNS, DIVERSITY_UPDATED, HYLINUCB_K, SMALL_DIVERSITY

PROTOCOLS = ("released", "written")
DIVERSITY_NAMES = (*DIVERSITY_RUNS, SMALL_DIVERSITY)
"""Names of the diversity experiments of both sizes."""


def _measured(
    results: Results, protocols: Sequence[str] = PROTOCOLS
) -> Iterator[tuple[JudgedOutcome, int, str, Design]]:
    """The diversity experiments that were run, by protocol, number of arms and policy with measures."""
    outcomes = (results.outcome(name, protocol) for protocol in protocols for name in DIVERSITY_NAMES)
    for judged in (JudgedOutcome(outcome) for outcome in outcomes if outcome is not None):
        for arms in judged.outcome.arms:
            for policy in judged.outcome.policies:
                if (design := judged.design(policy, arms)) is not None and design.mean_x is not None:
                    yield judged, arms, policy, design


# ------------------------------------------------------------------ the square root that the paper reports

RUNS = {
    ("diversity", "released"): "released code, bug for bug",
    (DIVERSITY_UPDATED, "released"): "released code, every algorithm updated",
    ("diversity", "written"): "text",
}
"""The diversity experiments of the paper's size, by name and protocol, in words."""


class CrossGrowth(NamedTuple):
    """Growth of an algorithm's cross blocks as a power of the pulls, judged as that of a square root at most."""

    run: str
    policy: str
    frobenius: JudgedMean
    """Of the Frobenius norm, which the released code plots."""
    largest: JudgedMean
    """Of the largest singular value, which the paper writes about."""
    regret: float
    """The mean exponent of the regret over the last half of the rounds: near 1 while the algorithm explores."""

    @property
    def answer(self) -> Answer:
        """The answer that both norms give; undecided where they differ."""
        return self.largest.answer if self.largest.answer == self.frobenius.answer else OPEN

    @property
    def words(self) -> str:
        """Both exponents."""
        both = (self.frobenius.interval, self.largest.interval)
        return " / ".join("unknown" if each is None else number(each.mean) for each in both)


def cross_growths(results: Results) -> list[CrossGrowth]:
    """Growth of |B_i| of the algorithms that share parameters, with every protocol and every way of learning."""
    growths = []
    for key, run in RUNS.items():
        if (outcome := results.outcome(*key)) is None:
            continue
        judged = JudgedOutcome(outcome)
        for policy in (name for name in judged.sharing if name in outcome.policies):
            design, units = judged.design(policy), outcome.independent_units(policy)
            if design is None or design.frobenius_b is None or design.sigma_max_b is None:
                continue
            both = (cross_exponents(judged, policy, b) for b in (design.frobenius_b, design.sigma_max_b))
            # Two algorithms decide the finding, by two norms each.
            frobenius, largest = (judge_growth(values, units, linear=False, parts=4) for values in both)
            regret = float(judged.regret_exponents(policy).mean())
            growths.append(CrossGrowth(run, policy, frobenius, largest, regret))
    return growths


ROOT = "the square root with which, by the paper, the cross blocks B_i grow is that of a LinUCB that never learns"
"""The finding to be confirmed or refuted."""


class Root(NamedTuple):
    """The answer on `ROOT`, in a word, and the reasons: a clause, and a sentence on HyLinUCB."""

    word: str
    reason: str
    others: str
    finding: str = ROOT


def judge_the_root(growths: Sequence[CrossGrowth]) -> Root | None:
    """Judge `ROOT`; None if the released code was not run both ways.

    Confirmed if |B_i| grows like a square root in the released run, where LinUCB never learns, and not once LinUCB is
    updated; refuted if either is contradicted.
    """
    answers = {(growth.run, growth.policy): growth for growth in growths}
    never, ever, written = (answers.get((run, "LinUCB")) for run in RUNS.values())
    if never is None or ever is None:
        return None
    word = "undecided"
    if never.answer == HOLDS and ever.answer == FAILS:
        word = "confirmed"
    elif never.answer == FAILS or ever.answer == HOLDS:
        word = "refuted"
    reason = (
        f"|B_i| grows as the pulls to the power {never.words} (Frobenius norm / largest singular value) in the "
        f"released run, where LinUCB is not updated, and {ever.words} where it is"
    )
    if written is not None:
        reason += (
            f"; with the text's parameters, where it is updated too, {written.words}, and its regret grows as t to the "
            f"power {written.regret:.2f}"
        )
    sentence = ""
    if others := [growth for growth in growths if growth.policy != "LinUCB"]:
        roots, not_roots = (sum(growth.answer == answer for growth in others) for answer in (HOLDS, FAILS))
        sentence = (
            f"HyLinUCB learns in every run, with {join_names([growth.words for growth in others])}: a square root is "
            f"seen in {roots} and contradicted in {not_roots} of {len(others)}."
        )
    return Root(word, reason, sentence)


def describe_ridges(results: Results) -> str:
    """Compare lambda = K, as in the theorem, with lambda = 1, as in the appendix; empty if not both were run."""
    outcome = results.outcome("diversity", "written")
    if outcome is None or not {"HyLinUCB", HYLINUCB_K} <= set(outcome.policies):
        return ""
    finding = compare_regrets(JudgedOutcome(outcome), HYLINUCB_K, "HyLinUCB")
    return (
        "Two ridges of HyLinUCB stand in the paper: lambda = K in the theorem and lambda = 1 in the appendix of this "
        f"experiment. Regret at T with lambda = K and with lambda = 1: {finding.value}."
    )


# ------------------------------------------------------------------ the assumption


class Moments(NamedTuple):
    """Moments of the rows that a policy played, medians over runs at T, beside those of independent directions."""

    judged: JudgedOutcome
    arms: int
    policy: str
    played: tuple[float, float, float]
    """|E x|, |E z| and sigma_max(E x z') over all rounds."""
    chance: tuple[float, float, float]
    """The same if the choice were independent of directions; see `chances`."""
    own: tuple[float, float]
    """The median and the largest sigma_max(E x z') of an arm."""
    own_chance: float
    """The same of the arm with the median number of pulls if the choice were independent of directions."""
    rho: tuple[float, float]
    """The smallest rho_x and rho_z of any run."""
    met: bool | None
    """False if the moments of the arm played contradict the assumption; None with fewer than two runs."""
    met_by_arms: bool | None
    """The same for every single arm, as the proof needs it."""


BATCHES, BATCH = 100, 100


def chances(e: Experiment, arms: int) -> tuple[float, float, float]:
    """Root mean squares of |E x|, |E z| and sigma_max(E x z'), times sqrt(n), after n rounds of independent choices.

    They are those of the longest candidates, so that no choice independent of directions has larger ones.
    """
    blocks = [block.rounds for block in e.world(arms, e.seeds[0]).rounds(BATCHES * BATCH)]
    x, z = np.concatenate([block.x for block in blocks]), np.concatenate([block.z for block in blocks])
    long_x, long_z = (np.linalg.norm(each, axis=2) for each in (x, z))
    longest = np.arange(len(x)), (long_x * long_z).argmax(axis=1)
    rows = (each[longest].reshape(BATCHES, BATCH, -1) for each in (x, z))
    norms = np.linalg.norm(np.einsum("bna,bnc->bac", *rows), 2, axis=(1, 2))
    squares = (long_x.max(axis=1) ** 2, long_z.max(axis=1) ** 2, norms**2 / BATCH)
    return tuple(float(np.sqrt(each.mean())) for each in squares)  # type: ignore[return-value]


def moments(results: Results) -> list[Moments]:
    """Moments of every policy in every diversity experiment.

    A moment contradicts the assumption if its mean square over runs is above that of independent directions, by the
    interval of the mean.
    """
    rows: list[Moments] = []
    known: dict[tuple[str, int], tuple[float, float, float]] = {}
    for judged, arms, policy, design in _measured(results):
        assert design.mean_x is not None
        assert design.mean_z is not None
        assert design.mean_xz is not None
        assert design.pulls is not None
        key = judged.experiment.key, arms
        chance = known[key] if key in known else known.setdefault(key, chances(judged.experiment, arms))
        units, t, pulls = judged.outcome.independent_units(policy, arms), design.t[-1], design.pulls[:, -1]
        played = [each[:, -1] for each in (design.mean_x, design.mean_z, design.mean_xz)]
        own = np.where(pulls > 0, mean_cross_moment(design)[:, -1], np.nan)
        # The mean over the arms of a run, which are not independent of each other.
        of_arms = np.nanmean(pulls * own**2, axis=1)
        judgements = [
            judge_mean(t * each**2, units, below=c**2, parts=3) for each, c in zip(played, chance, strict=True)
        ]
        rows.append(
            Moments(
                judged, arms, policy,
                played=tuple(float(np.median(each)) for each in played),  # type: ignore[arg-type]
                chance=tuple(float(c / np.sqrt(t)) for c in chance),  # type: ignore[arg-type]
                own=(float(np.nanmedian(own)), float(np.nanmax(own))),
                own_chance=float(chance[2] / np.sqrt(np.median(pulls[pulls > 0]))),
                rho=(float(design.rho_x[:, -1].min()), float(design.rho_z[:, -1].min())),
                met=_all_met(judgements),
                met_by_arms=_all_met([judge_mean(of_arms, units, below=chance[2] ** 2)]),
            )
        )  # fmt: skip
    return rows


def _all_met(judgements: list[JudgedMean]) -> bool | None:
    """False if a mean square is above its limit; None without intervals."""
    if any(judgement.interval is None for judgement in judgements):
        return None
    return not any(judgement.answer == FAILS for judgement in judgements)


def describe_moments(rows: Sequence[Moments]) -> str:
    """Count the cases that contradict the assumption, by the arm played and by single arms, and those that do not."""
    contradicted, by_arm = sum(row.met is False for row in rows), sum(row.met_by_arms is False for row in rows)
    clauses = []
    for policy in dict.fromkeys(row.policy for row in rows):
        cases = [row for row in rows if row.policy == policy]
        played, by_arms = sum(bool(case.met) for case in cases), sum(bool(case.met_by_arms) for case in cases)
        clauses.append(f"{policy} {played} and {by_arms} of {len(cases)}")
    return (
        f"Of {len(rows)} cases (policies in experiments), it is not met by the arm played in {contradicted} and not "
        f"by single arms in {by_arm}. Cases that do not contradict it, by the arm played and by single arms: "
        f"{'; '.join(clauses)}."
    )


# ------------------------------------------------------------------ coverage


class Coverage(NamedTuple):
    """Coverage of a policy's confidence sets in one case of a diversity experiment."""

    judged: JudgedOutcome
    arms: int
    policy: str
    ratio: FloatArray
    """|phi - phi*|_M / gamma, (runs, probes); above 1 the truth is outside."""
    outside: FloatArray
    """Share of the candidates whose mean lies outside their interval, (runs, probes)."""

    @property
    def words(self) -> str:
        """The case in words."""
        e = self.judged.experiment
        defect = next((entry.learns_from for entry in e.policies if entry.name == self.policy), None)
        note = {"everybody": ", which learns the rewards of all", "nobody": ", which never learns"}.get(str(defect), "")
        return f"{self.policy}{note} ({e.name}, {e.protocol}, K = {self.arms})"

    @property
    def share(self) -> float:
        """Share of runs and probes in which the truth is outside the set."""
        return float((self.ratio > 1).mean())


def coverages(results: Results, protocols: Sequence[str] = PROTOCOLS) -> list[Coverage]:
    """Coverage of every policy with a coefficient in every diversity experiment."""
    return [
        Coverage(judged, arms, policy, design.ellipsoid, design.outside)
        for judged, arms, policy, design in _measured(results, protocols)
        if design.ellipsoid is not None and design.outside is not None and np.isfinite(design.ellipsoid).all()
    ]


def describe_coverage(results: Results) -> str:
    """Describe how often confidence sets miss the truth, and which policies have none."""
    cases = coverages(results)
    missed = [case for case in cases if case.share > 0]
    others = [float(case.ratio.max()) for case in cases if case.share == 0]
    clauses = [
        f"{case.words} in {100 * case.share:.3g} % of runs and probes (single arms {100 * case.outside.mean():.3g} %)"
        for case in missed
    ]
    policies = dict.fromkeys(policy for _, _, policy, _ in _measured(results))
    without = [name for name in policies if name not in {case.policy for case in cases}]
    singles = max((float(case.outside.mean()) for case in cases if case.share == 0), default=0.0)
    text = f"|phi^ - phi|_M exceeds gamma in {len(missed)} of {len(cases)} cases"
    if clauses:
        text += f": {'; '.join(clauses)}"
    if others:
        arms = f"at most {100 * singles:.3g} % of single arms leave" if singles else "no single arm leaves"
        size = f"it is at most {number_range(others)} gamma, depending on the case"
        text += f"; in the other {len(others)} {size}, and {arms} the interval"
    if without:
        text += f". {join_names(without)} {'has' if len(without) == 1 else 'have'} no such set and cannot be judged"
    return f"{text}."
