"""What a log says of a policy: its sums by blocks, what cannot be estimated from them, and how well they support it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from hybandits.foundation.checks import Doubles
from hybandits.offline.evaluation.parts import ROUNDED, BlockLayout, BlockSums, Survey
from hybandits.offline.evaluation.results import Diagnostics
from hybandits.offline.evaluation.targets import Learning, Logged, Target
from hybandits.offline.evaluation.terms import CERTAIN, CLIPPED, LARGEST, PADDED, PR, PRR, SILENT, WW, D, N, P, W, X, Y
from hybandits.offline.view import View

GUESSED = 0.001
"""Share of a policy's choices on arms never shown beyond which dm has no interval: nothing tells how wrong it is."""

FEW, SCARCE = 5, 30
"""Effective rounds below which estimates by weights have no interval, and below which they are warned of."""

UNSEEN = 0.05
"""Share of a policy's choices on arms never shown beyond which weights say nothing of its value."""


@dataclass
class LogEvidence:
    """A policy and what the log says of it; `why` holds refusals by estimator."""

    name: str
    target: Target | Learning
    sums: Doubles
    mass: Doubles
    asked: np.ndarray
    tally: Doubles
    influence: Doubles
    why: dict[str, str] = field(default_factory=dict)
    unsure: dict[str, str] = field(default_factory=dict)
    """Why an estimator has a value but no interval."""
    warnings: list[str] = field(default_factory=list)

    @property
    def logged(self) -> bool:
        """Whether it is the log's own policy."""
        return isinstance(self.target, Logged)

    @classmethod
    def none(cls, name: str, target: Target | Learning, layout: BlockLayout, arms: int) -> Self:
        """Before anything is read."""
        return cls(
            name, target, np.zeros((layout.blocks, layout.folds, PRR + 1)), np.zeros(arms), np.zeros(arms, np.int64),
            np.zeros(6), np.zeros(layout.blocks),
        )  # fmt: skip

    def take_in(self, part: BlockSums) -> None:
        """Add what some rounds sum up to."""
        self.sums[part.block : part.block + len(part.sums)] += part.sums
        self.mass += part.mass
        self.asked += part.asked
        largest = max(self.tally[LARGEST], part.tally[LARGEST])
        self.tally += part.tally
        self.tally[LARGEST] = largest

    def total(self, column: int) -> float:
        """One of the sums, over all rounds."""
        return float(self.sums[:, :, column].sum())

    def blocks(self, column: int) -> Doubles:
        """The same by blocks."""
        made: Doubles = self.sums[:, :, column].sum(axis=1)
        return made

    def ratio(self, estimator: str) -> tuple[Doubles, Doubles]:
        """Numerator and denominator by blocks; that of dm with the influence of the fit, which sums up to 0."""
        n = self.blocks(N)
        if estimator == "dm":
            return self.blocks(D) + self.influence - n * (self.influence.sum() / n.sum()), n
        upper, lower = {"ips": (X, N), "snips": (X, W), "dr": (Y, N), "replay": (PR, P)}[estimator]
        return self.blocks(upper), self.blocks(lower)


def refuse(
    policy: LogEvidence, view: View, survey: Survey, names: list[str], unfitted: bool, layout: BlockLayout
) -> None:
    """Find out what cannot be estimated, and what should be warned of."""
    n = layout.rounds
    if isinstance(policy.target, Learning):
        for name in set(names) - {"replay"}:
            policy.why[name] = (
                "a policy that learns has no fixed probabilities: replay it, or freeze it (save it; Frozen in Python)"
            )
        if "replay" in names and "replay" not in policy.why and not policy.total(P):
            policy.why["replay"] = f"in none of the {n:,} rounds would it have shown what was shown: give more rounds"
        if survey.longest > survey.shortest:
            policy.warnings.append(_uneven_lists(survey))
        return
    if policy.logged:
        return
    if policy.tally[SILENT]:
        for name in names:
            policy.why[name] = (
                f"it has no candidate to show in {_share(policy.tally[SILENT], n)}: it has no value on this log"
            )
        return
    unseen = np.flatnonzero((survey.shown == 0) & (policy.mass > 0))
    missed = float(policy.mass[unseen].sum()) / n
    examples = ", ".join(str(view.names[a]) for a in unseen[np.argsort(-policy.mass[unseen])][:3])
    # Had an arm been shown with the smallest probability of the log whenever the policy asks for it, the chance of
    # never seeing it would be below exp(-rounds asked * smallest).
    hopeless = survey.smallest < math.inf and bool((policy.asked[unseen] * survey.smallest > math.log(1000)).any())
    if unseen.size:
        policy.warnings.append(f"{missed:.2%} of its choices are arms that were never shown ({examples})")
    if missed > GUESSED:
        policy.unsure["dm"] = (
            f"no interval: {missed:.2%} of its choices are arms that were never shown ({examples}), of which the model "
            "can only guess"
        )
    reason = None
    if survey.missing:
        reason = f"propensities are missing in {_share(survey.missing, n)}: only dm does without"
    elif survey.wrong:
        reason = f"propensities are not in (0, 1] in {_share(survey.wrong, n)}: correct the log"
    elif policy.tally[CERTAIN]:
        reason = (
            f"no overlap: where the log's arm was certain (propensity 1) it shows others, in "
            f"{_share(policy.tally[CERTAIN], n)}; only dm does without"
        )
    elif policy.tally[PADDED]:
        reason = (
            f"no overlap: in {_share(policy.tally[PADDED], n)} it picks a place filled up with an arm that is none; "
            "use arms='articles'"
        )
    elif hopeless or missed > UNSEEN:
        reason = (
            f"no overlap: {missed:.2%} of its choices are arms that were never shown ({examples}); "
            "only dm does without, by guessing"
        )
    elif not policy.total(P):
        reason = f"in none of the {n:,} rounds would it have shown what was shown: give more rounds"
    for name in names:
        if name in ("ips", "snips", "dr") and reason:
            policy.why[name] = reason
        elif name == "replay":
            if survey.uneven:
                policy.why[name] = not_uniform(survey)
            elif reason:
                policy.why[name] = reason
            elif survey.longest > survey.shortest:
                policy.warnings.append(_uneven_lists(survey))
    if unfitted:
        for name in ("dm", "dr"):
            if name in names:
                policy.why[name] = (
                    f"{n:,} rounds are too few to fit a model for each of {layout.folds} folds: give more"
                )
    if policy.tally[CLIPPED]:
        policy.warnings.append(f"{policy.tally[CLIPPED]:,.0f} weights were clipped: estimates that use them are biased")
    if set(names) & {"ips", "snips", "dr"} and reason is None:
        _look_at_weights(policy)
        w, blocks = policy.blocks(W), policy.blocks(N)
        mean = w.sum() / n
        error = math.sqrt(float(((w - mean * blocks) ** 2).sum())) / n
        if abs(mean - 1) > max(4 * error, ROUNDED) and not policy.tally[CLIPPED]:
            policy.warnings.append(
                f"weights average {mean:.3f}, and should average 1 but for chance (here +-{2 * error:.3f}): the "
                "propensities are wrong, or the log never shows what it would"
            )


def _look_at_weights(policy: LogEvidence) -> None:
    """Whether a few rounds carry all."""
    total, squares = policy.total(W), policy.total(WW)
    effective = total * total / squares if squares else 0.0
    if effective >= SCARCE:
        return
    words = f"its weights are worth {effective:.1f} rounds, one has {policy.tally[LARGEST] / total:.0%} of them all"
    if effective < FEW:
        policy.unsure |= dict.fromkeys(("ips", "snips", "dr"), f"no interval: {words}; only dm does without weights")
    policy.warnings.append(f"{words}: do not rely on estimates that use them")


def _share(part: float, whole: float) -> str:
    return f"{part:,.0f} of {whole:,.0f} rounds"


def not_uniform(survey: Survey) -> str:
    """Why a log cannot be replayed."""
    if survey.missing:
        return (
            f"replay needs uniformly logged rounds, and the first {survey.rounds:,} lack {survey.missing:,} "
            "propensities: convert the log with its propensities"
        )
    return (
        f"replay needs uniformly logged rounds, and {survey.uneven:,} of the first {survey.rounds:,} have a propensity "
        "other than 1 / candidates: freeze the policy and use ips, snips or dr"
    )


def _uneven_lists(survey: Survey) -> str:
    return (
        f"lists have {survey.shortest} to {survey.longest} candidates: replay matches short ones more often, "
        "so they count more"
    )


def diagnosed(policy: LogEvidence, survey: Survey, weighted: bool, layout: BlockLayout) -> Diagnostics:
    """How well the log supports a policy; weighted: whether an estimator asked for weighs rounds."""
    n = layout.rounds
    matched = policy.total(P) / n
    sound = not (survey.missing or survey.wrong)
    if isinstance(policy.target, Learning) or not weighted or not (sound or policy.logged):
        return Diagnostics(rounds=n, matched=matched, warnings=tuple(policy.warnings))
    w, squares = policy.total(W), policy.total(WW)
    return Diagnostics(
        rounds=n, matched=matched, mean_weight=w / n, largest_weight=float(policy.tally[LARGEST]),
        effective=w * w / squares if squares else 0.0, smallest_propensity=survey.smallest if sound else None,
        warnings=tuple(policy.warnings),
    )  # fmt: skip
