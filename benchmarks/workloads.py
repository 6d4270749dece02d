"""The workloads everything is measured on, and rows that make every arm of one learn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hybandits import HybridRidge, HyLinUCB, HyThompson
from hybandits.foundation.checks import FloatArray


@dataclass(frozen=True)
class Workload:
    """Shared features d1, features of an arm's own d2, and the number of arms K, all of them candidates."""

    name: str
    d1: int
    d2: int
    arms: int

    @property
    def ids(self) -> list[str]:
        """A new list of the arms' ids."""
        return [f"article-{arm}" for arm in range(self.arms)]

    @property
    def shape(self) -> str:
        """The three numbers in words."""
        return f"d1={self.d1} d2={self.d2} K={self.arms}"


WORKLOADS = {
    each.name: each
    for each in (
        Workload("W1", 40, 5, 25),
        Workload("W2", 5, 40, 25),
        Workload("W3-10", 5, 5, 10),
        Workload("W3-100", 5, 5, 100),
        Workload("W3-400", 5, 5, 400),
        Workload("W4", 36, 6, 20),
        Workload("W5", 32, 32, 1000),
    )
}


@dataclass(frozen=True)
class Plan:
    """Plan of a section: workloads, repeats, and where to report progress."""

    workloads: tuple[Workload, ...]
    quick: bool
    say: Callable[[str], None]
    runs: int | None = None
    """Runs of every world, where regret is measured; None for the section's own number."""
    seed: int = 0
    """The seed of the first of these runs."""

    def pick(self, default: float, quick: float) -> float:
        """One of two efforts."""
        return quick if self.quick else default

    def repeats(self, default: int, quick: int) -> int:
        """One of two counts."""
        return quick if self.quick else default


def training_rows(d1: int, d2: int, n: int, seed: int = 7) -> tuple[FloatArray, FloatArray, FloatArray]:
    """n random rows x, z, reward."""
    draw = np.random.default_rng(seed)
    x = draw.standard_normal((n, d1)) / np.sqrt(d1)
    z = draw.standard_normal((n, d2)) / np.sqrt(d2)
    return x, z, draw.standard_normal(n)


def teach(learner: HybridRidge | HyLinUCB | HyThompson, workload: Workload, rows_per_arm: int = 2) -> None:
    """Let every arm learn a few rows."""
    ids = workload.ids * rows_per_arm
    learner.learn_batch(ids, *training_rows(workload.d1, workload.d2, len(ids)))
