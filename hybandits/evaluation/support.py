"""What a log says about a policy, summed up by blocks of rounds, and how well it supports the policy."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from hybandits.evaluation.parts import BlockLayout, BlockSums, Survey
from hybandits.evaluation.rejection import Rejection
from hybandits.evaluation.results import Diagnostics
from hybandits.evaluation.targets import Learning, Logged, Target
from hybandits.evaluation.terms import COLUMNS, COUNTS, KR, LARGEST, SQUARES, WW, D, K, N, P, W, X, Y
from hybandits.foundation.checks import FloatArray


@dataclass
class LogSupport:
    """A policy and what the log says about it.

    Attributes
    ----------
    sums : array of shape (blocks, folds, 15)
        Sums of terms; see `terms` for the columns.
    mass, eligible : arrays of shape (arms,)
        The probability with which the policy shows each arm, summed over rounds, and the rounds in which it may.
    tally : array of shape (7,)
        Counts over all rounds; see `terms`.
    influence : array of shape (blocks,)
        What the errors of the model's fit add to dm; see `crossfit`.
    refusals, no_interval : dict
        By estimator, why there is no estimate, and why there is an estimate without an interval.
    notes : dict
        By estimator, what a reader of that estimate should know.
    warnings : list of str
        What a reader of the estimates should know.
    rejection : Rejection
        Which rounds are kept in replay.
    left_out : float or None
        An upper confidence limit of s, the share of the policy's choices that `rejection` leaves out; None if c is
        exact.
    """

    name: str
    target: Target | Learning
    sums: FloatArray
    mass: FloatArray
    eligible: np.ndarray
    tally: FloatArray
    influence: FloatArray
    refusals: dict[str, str] = field(default_factory=dict)
    no_interval: dict[str, str] = field(default_factory=dict)
    notes: dict[str, list[str]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    rejection: Rejection = field(default_factory=Rejection)
    left_out: float | None = None

    @classmethod
    def empty(cls, name: str, target: Target | Learning, layout: BlockLayout, arms: int) -> Self:
        """The sums before anything has been read."""
        return cls(
            name, target, np.zeros((layout.blocks, layout.folds, COLUMNS)), np.zeros(arms), np.zeros(arms, np.int64),
            np.zeros(COUNTS), np.zeros(layout.blocks),
        )  # fmt: skip

    @property
    def logged(self) -> bool:
        """Whether this is the log's own policy."""
        return isinstance(self.target, Logged)

    @property
    def learns(self) -> bool:
        """Whether the policy learns as it goes."""
        return isinstance(self.target, Learning)

    def add(self, part: BlockSums) -> None:
        """Add the sums of some rounds."""
        self.sums[part.block : part.block + len(part.sums)] += part.sums
        self.mass += part.mass
        self.eligible += part.eligible
        largest = max(self.tally[LARGEST], part.tally[LARGEST])
        self.tally += part.tally
        self.tally[LARGEST] = largest

    def total(self, column: int) -> float:
        """One of the sums, over all rounds."""
        return float(self.sums[:, :, column].sum())

    def blocks(self, column: int) -> FloatArray:
        """One of the sums, by block."""
        by_block: FloatArray = self.sums[:, :, column].sum(axis=1)
        return by_block

    def ratio(self, estimator: str) -> tuple[FloatArray, FloatArray]:
        """Numerator and denominator of an estimate by block; for dm with the influence of the fit, which sums to 0."""
        n = self.blocks(N)
        if estimator == "dm":
            return self.blocks(D) + self.influence - n * (self.influence.sum() / n.sum()), n
        upper, lower = {"ips": (X, N), "snips": (X, W), "dr": (Y, N), "replay": (KR, K)}[estimator]
        return self.blocks(upper), self.blocks(lower)

    @property
    def effective_rounds(self) -> float:
        """(sum w)^2 / sum w^2: how many rounds of equal weight would tell as much."""
        w, squares = self.total(W), self.total(WW)
        return w * w / squares if squares else 0.0

    @property
    def replayed_rounds(self) -> float:
        """(sum k)^2 / sum k^2: the same for replay; of a policy that learns, the number of rounds kept."""
        k, squares = self.total(K), float(self.tally[SQUARES])
        return k * k / squares if squares else 0.0


def diagnose(policy: LogSupport, survey: Survey, layout: BlockLayout, *, weighted: bool) -> Diagnostics:
    """How well the log supports a policy; `weighted` says whether any estimator weighs rounds."""
    n = layout.rounds
    sound = not (survey.missing or survey.wrong)
    rejected = policy.rejection.rejects and not policy.logged
    diagnostics = Diagnostics(
        rounds=n, matched=policy.total(P) / n, kept=policy.total(K) if rejected and policy.learns else None,
        keep=policy.rejection.keep if rejected else None, effective=policy.replayed_rounds if rejected else None,
        warnings=tuple(policy.warnings),
    )  # fmt: skip
    if not weighted or not (sound or policy.logged):
        return diagnostics
    return replace(
        diagnostics, mean_weight=policy.total(W) / n, largest_weight=float(policy.tally[LARGEST]),
        effective=policy.effective_rounds, smallest_propensity=survey.smallest if sound else None,
    )  # fmt: skip
