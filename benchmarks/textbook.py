"""The textbook way, to compare with: hybrid LinUCB as Li et al. 2010 print it (Algorithm 2), in NumPy.

A loop over the arms, cached inverses, every term of the width as in the formula, and the add-and-subtract bookkeeping
of B W^-1 B'. This is how research code for the hybrid model is usually written. Symbols are those of docs/notation.md.
"""

from __future__ import annotations

import numpy as np


class Textbook:
    """HyLinUCB's decisions, computed the textbook way with arms 0..K-1 and a fixed gamma."""

    def __init__(self, d1: int, d2: int, arms: int, ridge: float = 1.0, gamma: float = 1.0) -> None:
        self.gamma = gamma
        self.schur = ridge * np.eye(d1)
        self.schur_inverse: np.ndarray = np.eye(d1) / ridge
        self.shared_rhs = np.zeros(d1)
        self.theta = np.zeros(d1)
        self.w = [ridge * np.eye(d2) for _ in range(arms)]
        self.w_inverse: list[np.ndarray] = [np.eye(d2) / ridge for _ in range(arms)]
        self.b = [np.zeros((d1, d2)) for _ in range(arms)]
        self.arm_rhs = [np.zeros(d2) for _ in range(arms)]

    def score(self, x: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Means and widths, arm by arm."""
        n = len(x)
        mean = np.empty(n)
        width = np.empty(n)
        s = self.schur_inverse
        for i in range(n):
            xi, zi, wi, bi = x[i], z[i], self.w_inverse[i], self.b[i]
            beta = wi @ (self.arm_rhs[i] - bi.T @ self.theta)
            mean[i] = xi @ self.theta + zi @ beta
            square = xi @ s @ xi - 2 * (xi @ s @ bi @ wi @ zi) + zi @ wi @ zi + zi @ wi @ bi.T @ s @ bi @ wi @ zi
            width[i] = np.sqrt(square)
        return mean, width

    def choose(self, x: np.ndarray, z: np.ndarray) -> int:
        """The arm with the highest upper confidence bound."""
        mean, width = self.score(x, z)
        return int(np.argmax(mean + self.gamma * width))

    def learn(self, arm: int, x: np.ndarray, z: np.ndarray, reward: float) -> None:
        """Take the arm's part out of the shared block, update it, put it back, invert both."""
        b, inverse = self.b[arm], self.w_inverse[arm]
        self.schur += b @ inverse @ b.T
        self.shared_rhs += b @ inverse @ self.arm_rhs[arm]
        self.w[arm] += np.outer(z, z)
        self.b[arm] += np.outer(x, z)
        self.arm_rhs[arm] += reward * z
        self.w_inverse[arm] = inverse = np.linalg.inv(self.w[arm])
        self.schur += np.outer(x, x) - self.b[arm] @ inverse @ self.b[arm].T
        self.shared_rhs += reward * x - self.b[arm] @ inverse @ self.arm_rhs[arm]
        self.schur_inverse = np.linalg.inv(self.schur)
        self.theta = self.schur_inverse @ self.shared_rhs
