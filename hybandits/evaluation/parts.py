"""A log cut up for engines, by functions of the rounds alone: parts, blocks of sums, folds, and a survey of rounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hybandits.engines import Engine
from hybandits.evaluation.view import Recipe, View
from hybandits.foundation import checks
from hybandits.logs.store import Batch, LogError

PART_ROUNDS = 1_000_000
"""Rounds of a part, rounded up to whole row groups."""

BLOCKS = 2000
"""The largest number of blocks; a log of fewer rounds is kept round by round."""

FOLD_ROUNDS = 1024
"""Consecutive rounds that go to the same fold."""

ROUNDING = 1e-3
"""The relative tolerance of propensities: logs often give few digits."""


class Part(NamedTuple):
    """Rounds start..stop-1 of a view."""

    view: Recipe
    start: int
    stop: int


def round_range(view: View, start: int, stop: int | None) -> tuple[int, int]:
    """start and stop of the requested rounds, cut off at the end of the log; LogError if there are none."""
    start = checks.count("start", start, least=0, why="it is the number of the first round")
    if stop is not None:
        checks.count("stop", stop, least=1, why="it is the number of the first round to leave out")
    rounds = view.log.rounds
    stop = rounds if stop is None else min(stop, rounds)
    if start >= stop:
        where = f"from round {start:,} on" if start >= rounds else f"in [{start:,}, {stop:,})"
        raise LogError(f"The log has {rounds:,} rounds, so there are none {where}.")
    return start, stop


def parts_of(view: View, start: int, stop: int) -> list[Part]:
    """Rounds start..stop-1 in parts of whole row groups, except at the two ends."""
    cuts = [start]
    for shard in view.log.shards:
        end = shard.start + shard.rounds
        if cuts[-1] < end < stop and end - cuts[-1] >= PART_ROUNDS:
            cuts.append(end)
    return [Part(view.recipe(), a, b) for a, b in zip(cuts, [*cuts[1:], stop], strict=True) if a < b]


def in_order(
    engine: Engine, work: Any, tasks: list[Any], progress: Callable[[int], None] = lambda amount: None
) -> Iterator[Any]:
    """Run `work` on every task and yield the results in the order of the tasks, each as soon as its turn has come."""
    waiting: dict[int, Any] = {}
    turn = 0
    with closing(engine.map(work, tasks, lambda i, amount: progress(amount))) as running:
        for i, result in running:
            waiting[i] = result
            while turn in waiting:
                yield waiting.pop(turn)
                turn += 1


class BlockLayout(NamedTuple):
    """Blocks of `size` rounds in which terms are summed up, and folds of `fold_rounds` rounds in a row."""

    first: int
    rounds: int
    size: int
    fold_rounds: int
    folds: int

    @classmethod
    def of(cls, start: int, stop: int, folds: int) -> BlockLayout:
        n = stop - start
        return cls(start, n, -(-n // BLOCKS), min(FOLD_ROUNDS, max(1, n // (8 * folds))), folds)

    @property
    def blocks(self) -> int:
        return -(-self.rounds // self.size)

    def block(self, start: int, rounds: int) -> np.ndarray:
        """The blocks of so many rounds of the log, from round `start` on."""
        return np.arange(start - self.first, start - self.first + rounds) // self.size

    def touched(self, start: int, stop: int) -> slice:
        """The blocks that rounds start..stop-1 of the log are in."""
        return slice((start - self.first) // self.size, (stop - 1 - self.first) // self.size + 1)

    def fold(self, start: int, rounds: int) -> np.ndarray:
        """The folds of so many rounds of the log, from round `start` on."""
        return (np.arange(start - self.first, start - self.first + rounds) // self.fold_rounds) % self.folds


def is_uniform(propensity: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """True where a propensity is 1 / candidates, up to ROUNDING; False where it is missing."""
    return np.asarray(np.abs(propensity * candidates - 1) <= ROUNDING)


@dataclass
class Survey:
    """Propensities, rewards and lists of some rounds of a log."""

    shown: np.ndarray  # the rounds in which each arm was shown
    rounds: int = 0
    missing: int = 0  # rounds without a propensity
    wrong: int = 0  # rounds with a propensity outside (0, 1]
    uneven: int = 0  # rounds whose propensity is not that of uniform choice
    smallest: float = math.inf  # of the propensities in (0, 1]
    largest: float = 0.0
    lowest: float = math.inf  # of the rewards
    highest: float = -math.inf
    shortest: int = 2**62  # of the lists of candidates
    longest: int = 0

    @classmethod
    def of(cls, view: View) -> Survey:
        if view.arms_are != "articles":
            raise ValueError(f"arms={view.arms_are!r} is for worlds: use a view with arms='articles'")
        return cls(np.zeros(len(view.names), np.int64))

    @property
    def sound(self) -> bool:
        """True if all propensities lie in (0, 1]."""
        return not (self.missing or self.wrong)

    def add(self, view: View, batch: Batch) -> None:
        p, sizes = batch.propensity, view.sizes[batch.pool]
        missing = np.isnan(p)
        sound = (p > 0) & (p <= 1)
        self.merge(
            Survey(
                shown=np.bincount(view.arm[view.shown(batch)], minlength=len(self.shown)),
                rounds=batch.rounds,
                missing=int(missing.sum()),
                wrong=int((~missing & ~sound).sum()),
                uneven=int((~is_uniform(p, sizes)).sum()),
                smallest=float(p[sound].min(initial=math.inf)),
                largest=float(p[sound].max(initial=0.0)),
                lowest=float(batch.reward.min()),
                highest=float(batch.reward.max()),
                shortest=int(sizes.min()),
                longest=int(sizes.max()),
            )
        )

    def merge(self, other: Survey) -> None:
        for name in ("shown", "rounds", "missing", "wrong", "uneven"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("smallest", "lowest", "shortest"):
            setattr(self, name, min(getattr(self, name), getattr(other, name)))
        for name in ("largest", "highest", "longest"):
            setattr(self, name, max(getattr(self, name), getattr(other, name)))
