"""The hybrid ridge regression done the obvious way: one dense matrix, NumPy's solver."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np


@dataclass
class Dense:
    """M = lambda I + sum of embedded rows; arms get their place in the order given."""

    d1: int
    d2: int
    arms: Sequence[Hashable]
    ridge: float
    rows: list[np.ndarray] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)

    def embed(self, arm: Hashable, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        """The sparse vector P(i, x, z) of the paper's reduction to the shared setting."""
        v = np.zeros(self.d1 + self.d2 * len(self.arms))
        start = self.d1 + self.d2 * list(self.arms).index(arm)
        v[: self.d1] = x
        v[start : start + self.d2] = z
        return v

    def learn(self, arm: Hashable, x: np.ndarray, z: np.ndarray, reward: float) -> None:
        self.rows.append(self.embed(arm, x, z))
        self.rewards.append(reward)

    @property
    def matrix(self) -> np.ndarray:
        n = self.d1 + self.d2 * len(self.arms)
        rows = np.array(self.rows).reshape(-1, n)
        return self.ridge * np.eye(n) + rows.T @ rows

    @property
    def parameters(self) -> np.ndarray:
        n = self.d1 + self.d2 * len(self.arms)
        rows = np.array(self.rows).reshape(-1, n)
        return np.linalg.solve(self.matrix, rows.T @ np.array(self.rewards))

    def score(self, arms: Sequence[Hashable], x: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Means and widths."""
        v = np.array([self.embed(arm, x[i], z[i]) for i, arm in enumerate(arms)])
        # Solved as least squares on the stacked rows: the normal equations would lose half the digits.
        n = v.shape[1]
        stacked = np.vstack([np.sqrt(self.ridge) * np.eye(n), np.array(self.rows).reshape(-1, n)])
        target = np.concatenate([np.zeros(n), np.array(self.rewards)])
        q, r = np.linalg.qr(stacked)
        mean = v @ np.linalg.solve(r, q.T @ target)
        width = np.linalg.norm(np.linalg.solve(r.T, v.T), axis=0)
        return mean, width
