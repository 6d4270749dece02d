"""Blocks of the arrow factor with some rows learned, and the dense matrices they stand for."""

from __future__ import annotations

import numpy as np

from hybandits.kernels import arrow
from hybandits.kernels.addresses import Table, table_of

SHAPES = [(3, 2), (4, 4), (5, 6), (9, 1), (0, 5), (6, 0), (1, 8)]
RIDGE = 0.7


class Blocks:
    """Blocks of a few arms and rows for them to learn."""

    def __init__(self, d1: int, d2: int, arms: int = 3, rows: int = 12, seed: int = 0) -> None:
        random = np.random.default_rng(seed)
        self.d1, self.d2, self.arms = d1, d2, arms
        self.f, self.h = arrow.factor_size(d2, d1), arrow.score_size(d2, d1)
        self.arm_factor, self.arm_score = np.zeros(arms * self.f), np.zeros(arms * self.h)
        self.shared_factor, self.shared_score = np.zeros(arrow.factor_size(d1, 0)), np.zeros(arrow.score_size(d1, 0))
        self.pulls = np.zeros(arms, np.int64)
        for i in range(arms):
            arrow.reset_block(self.arm_factor, i * self.f, self.arm_score, i * self.h, d2, d1, RIDGE)
        arrow.reset_block(self.shared_factor, 0, self.shared_score, 0, d1, 0, RIDGE)
        self.slots = random.integers(0, arms, rows)
        self.x, self.z = random.normal(size=(rows, d1)), random.normal(size=(rows, d2))
        self.rewards = random.normal(size=rows)

    @property
    def state(self) -> tuple[np.ndarray, ...]:
        return self.arm_factor, self.arm_score, self.pulls, self.shared_factor, self.shared_score

    @property
    def table(self) -> Table:
        return table_of([[*self.state, np.array([RIDGE])]])

    @property
    def parts(self) -> tuple[np.ndarray, ...]:
        return self.arm_factor, self.arm_score, self.shared_factor, self.shared_score

    def learn(self) -> Blocks:
        arrow.learn_rows(self.slots, self.x, self.z, self.rewards, self.table, 0)
        return self

    def factor(self, i: int) -> np.ndarray:
        """[R | T] of arm i as a matrix."""
        full = np.zeros((self.d2, self.d2 + self.d1))
        full[np.arange(self.d2)[:, None] <= np.arange(self.d2 + self.d1)] = self.arm_factor[
            i * self.f : (i + 1) * self.f
        ]
        return full

    def shared(self) -> np.ndarray:
        full = np.zeros((self.d1, self.d1))
        full[np.triu_indices(self.d1)] = self.shared_factor
        return full

    def triangle(self, score: np.ndarray, d: int) -> np.ndarray:
        """L of a score block as a matrix."""
        full, o = np.zeros((4 * ((d + 3) // 4), d)), d
        for b in range((d + 3) // 4):
            for k in range(min(4 * b + 4, d)):
                full[4 * b : 4 * b + 4, k] = score[o : o + 4]
                o += 4
        return full[:d]

    def own(self, i: int) -> np.ndarray:
        return self.slots == i
