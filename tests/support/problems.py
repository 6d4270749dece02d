"""Generated problems for hypothesis: shapes, rows and candidates of all the awkward kinds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from hybandits import HybridRidge
from tests.support.oracle import Dense


@dataclass
class Problem:
    """Rows to learn and candidates x, z to score, one per arm."""

    d1: int
    d2: int
    arms: list[int]
    ridge: float
    rows: list[tuple[int, np.ndarray, np.ndarray, float]]
    x: np.ndarray
    z: np.ndarray

    def estimator(self) -> HybridRidge:
        estimator = HybridRidge(d1=self.d1, d2=self.d2, ridge=self.ridge)
        for row in self.rows:
            estimator.learn(*row)
        return estimator

    def dense(self) -> Dense:
        dense = Dense(self.d1, self.d2, self.arms, self.ridge)
        for row in self.rows:
            dense.learn(*row)
        return dense


@st.composite
def hybrid_problems(draw: st.DrawFn, most: int = 9) -> Problem:
    """d1 = 0, d2 = 0, K = 1, z = x, arms that never learn, and features of mixed scale all occur."""
    same = draw(st.sampled_from([False, False, True]))
    d1 = draw(st.integers(1 if same else 0, most))
    d2 = d1 if same else draw(st.integers(0 if d1 else 1, most))
    k = draw(st.integers(1, 6))
    n = draw(st.integers(0, 40))
    ridge = draw(st.sampled_from([0.1, 1.0, 25.0]))
    spread = draw(st.sampled_from([0.0, 1.0, 3.0]))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    learners = random.choice(k, size=max(1, k - draw(st.integers(0, k - 1))), replace=False)

    def features(count: int) -> tuple[np.ndarray, np.ndarray]:
        x = random.normal(size=(count, d1)) * 10 ** random.uniform(-spread, spread, size=d1)
        z = x.copy() if same else random.normal(size=(count, d2)) * 10 ** random.uniform(-spread, spread, size=d2)
        return x, z

    x, z = features(n)
    rows = [(int(random.choice(learners)), x[i], z[i], float(random.normal())) for i in range(n)]
    return Problem(d1, d2, list(range(k)), ridge, rows, *features(k))
