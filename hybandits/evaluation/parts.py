"""A log cut up for engines: blocks in which rounds are summed up, folds, parts to work on, and what comes back.

Cuts are functions of the rounds alone, never of who does the work: every engine gives the same bits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from hybandits.evaluation.propensities import is_uniform
from hybandits.evaluation.rejection import Rejection
from hybandits.evaluation.reward_model import RewardModel
from hybandits.evaluation.targets import Learning, Target
from hybandits.evaluation.view import View
from hybandits.foundation.checks import FloatArray
from hybandits.logs.store import Batch

BLOCKS = 2000
"""The largest number of blocks; a log of fewer rounds is kept round by round."""

BINS = 2000
"""Bins in which propensities are counted, each 1 % below the one before: down to 2e-9."""

DEAL = 1024
"""Consecutive rounds that go to the same fold."""


class BlockLayout(NamedTuple):
    """How rounds are summed up: in blocks of `size` from round `first` on, with `deal` rounds in a row in one fold."""

    first: int
    rounds: int
    size: int
    deal: int
    folds: int

    @classmethod
    def of(cls, start: int, stop: int, folds: int) -> BlockLayout:
        """The blocks and folds of rounds start..stop-1."""
        n = stop - start
        return cls(start, n, -(-n // BLOCKS), min(DEAL, max(1, n // (8 * folds))), folds)

    @property
    def blocks(self) -> int:
        """How many blocks there are."""
        return -(-self.rounds // self.size)

    def touched(self, start: int, stop: int) -> range:
        """The blocks that rounds start..stop-1 of the log are in."""
        return range((start - self.first) // self.size, (stop - 1 - self.first) // self.size + 1)

    def fold(self, start: int, rounds: int) -> np.ndarray:
        """The folds of so many rounds of the log, from round `start` on."""
        return (np.arange(start - self.first, start - self.first + rounds) // self.deal) % self.folds


class LogPart(NamedTuple):
    """Rounds start..stop-1 of a view, and what is to be done with them.

    The passes over a log take the same part with more and more filled in: nothing for the statistics of the model,
    then targets and models for the terms, then slopes for the influence of the fit.
    """

    view: dict[str, Any]
    start: int
    stop: int
    layout: BlockLayout
    targets: tuple[Target | Learning, ...] = ()
    models: tuple[RewardModel, ...] = ()
    slopes: tuple[tuple[RewardModel, ...], ...] = ()
    clip: float = math.inf
    low: float = -math.inf
    high: float = math.inf
    features: bool = False
    rejection: Rejection = Rejection()


class BlockSums(NamedTuple):
    """What the rounds of a part sum up to for one policy: `sums` of the blocks from number `block` on."""

    block: int
    sums: FloatArray
    mass: FloatArray
    eligible: np.ndarray
    tally: FloatArray
    groups: np.ndarray
    features: FloatArray
    """Phi (see `crossfit`) as sums of pi (u, p, 1) per fold and group, for these groups."""


@dataclass
class Survey:
    """What some rounds of a log are like.

    Attributes
    ----------
    shown : array of shape (arms,)
        How often every arm was shown.
    rounds, missing, wrong, uneven : int
        Rounds in all, and those whose propensity is missing, outside (0, 1], or not that of uniform choice.
    smallest, largest : float
        The extreme propensities in (0, 1].
    lowest, highest : float
        The extreme rewards.
    shortest, longest : int
        The extreme numbers of candidates.
    histogram : array of shape (BINS,)
        How many propensities lie in (0.99^(i + 1), 0.99^i].
    """

    shown: np.ndarray
    rounds: int = 0
    missing: int = 0
    wrong: int = 0
    uneven: int = 0
    smallest: float = math.inf
    largest: float = 0.0
    lowest: float = math.inf
    highest: float = -math.inf
    shortest: int = 2**62
    longest: int = 0
    histogram: np.ndarray = field(default_factory=lambda: np.zeros(BINS, np.int64))

    def add(self, view: View, batch: Batch) -> None:
        """Add the rounds of a batch."""
        p, sizes = batch.propensity, view.log.pools.sizes[batch.pool]
        missing = np.isnan(p)
        sound = (p > 0) & (p <= 1)
        self.rounds += batch.rounds
        self.missing += int(missing.sum())
        self.wrong += int((~missing & ~sound).sum())
        self.uneven += int((~is_uniform(p, sizes)).sum())
        self.smallest = min(self.smallest, float(p[sound].min(initial=math.inf)))
        self.largest = max(self.largest, float(p[sound].max(initial=0.0)))
        bins = np.minimum(np.log(p[sound]) / math.log(0.99), BINS - 1).astype(np.int64)
        self.histogram += np.bincount(bins, minlength=BINS)
        self.lowest = min(self.lowest, float(batch.reward.min()))
        self.highest = max(self.highest, float(batch.reward.max()))
        self.shortest, self.longest = min(self.shortest, int(sizes.min())), max(self.longest, int(sizes.max()))
        entries = view.shown(batch)
        self.shown += np.bincount(view.arm[entries[entries >= 0]], minlength=len(self.shown))

    def quantile(self, share: float) -> float:
        """A propensity below which at most this share of the propensities lies, to 1 %."""
        below = np.cumsum(self.histogram[::-1])[::-1]  # from bin i on
        few = np.flatnonzero(below <= share * self.rounds)
        return 0.99 ** int(few[0]) if few.size else self.smallest

    def merge(self, other: Survey) -> None:
        """Add the survey of other rounds."""
        for name in ("shown", "rounds", "missing", "wrong", "uneven", "histogram"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.smallest, self.lowest = min(self.smallest, other.smallest), min(self.lowest, other.lowest)
        self.highest, self.largest = max(self.highest, other.highest), max(self.largest, other.largest)
        self.shortest, self.longest = min(self.shortest, other.shortest), max(self.longest, other.longest)
