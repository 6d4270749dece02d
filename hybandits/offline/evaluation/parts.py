"""A log cut up for engines: blocks that rounds are summed up in, folds they are dealt to, parts to work on, and what
comes back from a part.

Cuts are functions of the rounds alone, never of who does the work: every engine gives the same bits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hybandits.foundation.checks import Doubles
from hybandits.logs.store import Batch
from hybandits.offline.evaluation.targets import Learning, Target
from hybandits.offline.reward_model import RewardModel
from hybandits.offline.view import View

BLOCKS = 2000
"""Blocks of rounds that a log is summed up in, at most; a log of fewer rounds is kept round by round."""

DEAL = 1024
"""Consecutive rounds that go to the same fold."""


class BlockLayout(NamedTuple):
    """How rounds are summed up: `first` is the first of all, blocks have `size`, `deal` in a row go to one fold."""

    first: int
    rounds: int
    size: int
    deal: int
    folds: int

    @classmethod
    def of(cls, start: int, stop: int, folds: int) -> BlockLayout:
        """Blocks and folds of rounds start..stop-1: functions of these alone, whoever does the work."""
        n = stop - start
        return cls(start, n, -(-n // BLOCKS), min(DEAL, max(1, n // (8 * folds))), folds)

    @property
    def blocks(self) -> int:
        """How many."""
        return -(-self.rounds // self.size)

    def touched(self, start: int, stop: int) -> range:
        """The blocks that rounds start..stop-1 of the log are in."""
        return range((start - self.first) // self.size, (stop - 1 - self.first) // self.size + 1)

    def fold(self, start: int, rounds: int) -> np.ndarray:
        """The folds of rounds start.. of the log."""
        return (np.arange(start - self.first, start - self.first + rounds) // self.deal) % self.folds


class LogPart(NamedTuple):
    """Work on rounds start..stop-1 of a view: statistics for the model, terms, or influence, by what is given."""

    view: dict[str, Any]
    start: int
    stop: int
    layout: BlockLayout
    targets: tuple[Target, ...] = ()
    models: tuple[RewardModel, ...] = ()
    slopes: tuple[tuple[RewardModel, ...], ...] = ()
    clip: float = math.inf
    low: float = -math.inf
    high: float = math.inf
    features: bool = False


class ReplayTask(NamedTuple):
    """Have one learning policy play all rounds."""

    view: dict[str, Any]
    layout: BlockLayout
    policy: Learning


class BlockSums(NamedTuple):
    """What a policy's rounds sum up to: `sums` of the blocks from number `block` on."""

    block: int
    sums: Doubles
    mass: Doubles
    asked: np.ndarray
    tally: Doubles
    groups: np.ndarray
    features: Doubles
    """Phi as sums of pi (u, 1) per fold and group, of those groups."""


ROUNDED = 1e-3
"""How far propensities may be off relatively by having been written with few digits."""


@dataclass
class Survey:
    """What a log is like: counts of rounds, extremes, and how often every arm was shown."""

    shown: np.ndarray
    rounds: int = 0
    missing: int = 0
    wrong: int = 0
    uneven: int = 0
    """Propensities that are missing, beyond (0, 1], and other than 1 / candidates."""
    smallest: float = math.inf
    lowest: float = math.inf
    highest: float = -math.inf
    shortest: int = 2**62
    longest: int = 0

    def add(self, view: View, batch: Batch) -> None:
        """Take rounds in."""
        p, sizes = batch.propensity, view.log.pools.sizes[batch.pool]
        missing = np.isnan(p)
        sound = (p > 0) & (p <= 1)
        self.rounds += batch.rounds
        self.missing += int(missing.sum())
        self.wrong += int((~missing & ~sound).sum())
        self.uneven += int((~(np.abs(p * sizes - 1) <= ROUNDED)).sum())
        self.smallest = min(self.smallest, float(p[sound].min(initial=math.inf)))
        self.lowest = min(self.lowest, float(batch.reward.min()))
        self.highest = max(self.highest, float(batch.reward.max()))
        self.shortest, self.longest = min(self.shortest, int(sizes.min())), max(self.longest, int(sizes.max()))
        entries = view.shown(batch)
        self.shown += np.bincount(view.arm[entries[entries >= 0]], minlength=len(self.shown))

    def merge(self, other: Survey) -> None:
        """Take in that of other rounds."""
        for name in ("shown", "rounds", "missing", "wrong", "uneven"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.smallest, self.lowest = min(self.smallest, other.smallest), min(self.lowest, other.lowest)
        self.highest = max(self.highest, other.highest)
        self.shortest, self.longest = min(self.shortest, other.shortest), max(self.longest, other.longest)
