"""Long runs against extended precision: does the arrow factor stay accurate over millions of updates?

Every feature is a whole number times a power of two of its column, small enough that every sum of products is exact in
a double. The matrix M is therefore known without any error, and one solve with mpmath gives widths to fifty digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import mpmath
import numpy as np
from numpy.typing import NDArray

from hybandits import HybridRidge

BITS = 10
DIGITS = 50
Integers = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Soak:
    """One long run with z = x and d1 = d2 = d. Column j is scaled by 2^exponents[j]; then the columns may be rotated.

    Scaled columns alone are easy, because the scale of a column does not affect a triangular factor. After a rotation
    every feature contains all scales at once, and M is as ill-conditioned as its numbers say.
    """

    name: str
    d: int
    arms: int
    rows: int
    widest: int
    """The scales of the columns range from 2^-widest to 2^widest; 10 means 1e-3 to 1e3."""
    unit_norm: bool
    rotated: bool
    target: float
    chunk: int = 100_000
    seed: int = 0

    def exponents(self) -> Integers:
        steps = np.round(np.linspace(-self.widest, self.widest, self.d)).astype(np.int64)
        return np.random.default_rng(self.seed).permutation(steps)

    def rotation(self) -> NDArray[np.float64]:
        """Return an orthogonal matrix of signed powers of two (Hadamard blocks): rotated features stay exact."""
        rotation = np.zeros((self.d, self.d))
        start = 0
        while start < self.d:
            size = 1
            while 4 * size <= self.d - start:
                size *= 4
            block = np.ones((1, 1))
            while len(block) < size:
                block = np.kron(block, np.array([[1, 1], [1, -1]]))
            rotation[start : start + size, start : start + size] = block / math.sqrt(size)
            start += size
        return rotation if self.rotated else np.eye(self.d)


@dataclass(frozen=True, kw_only=True)
class SoakOutcome:
    """The result of a run."""

    rows: int
    width_error: float
    """The largest relative error of a width, over all checkpoints and candidates."""
    positive_definite: bool
    """True if every diagonal of every factor was positive and finite at every checkpoint."""


def whole_numbers(soak: Soak, random: np.random.Generator, n: int) -> Integers:
    """Return n rows of whole numbers of at most BITS bits; with `unit_norm`, of norm about 1 in units of 2^-BITS."""
    rows = random.uniform(-1, 1, size=(n, soak.d))
    if soak.unit_norm:
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    whole: Integers = np.round(rows * 2**BITS).astype(np.int64)
    return whole


def widths(
    gram: NDArray[np.float64], units: list[mpmath.mpf], ridge: float, rows: list[list[mpmath.mpf]]
) -> list[mpmath.mpf]:
    """Return sqrt(v' M^-1 v) of every row v, where M = D G D + ridge I with whole numbers G and D = diag(units)."""
    n = len(units)
    factor = [[mpmath.mpf(0)] * n for _ in range(n)]
    for i in range(n):
        for j in range(i + 1):
            total = mpmath.mpf(int(gram[i, j])) * units[i] * units[j] + (ridge if i == j else 0)
            total -= mpmath.fdot(factor[i][:j], factor[j][:j])
            factor[i][j] = mpmath.sqrt(total) if i == j else total / factor[j][j]
    exact = []
    for row in rows:
        solved: list[mpmath.mpf] = []
        for i in range(n):
            solved.append((row[i] - mpmath.fdot(factor[i][:i], solved)) / factor[i][i])
        exact.append(mpmath.sqrt(mpmath.fdot(solved, solved)))
    return exact


def run(soak: Soak, say: Callable[[str], None] = lambda line: None) -> SoakOutcome:
    """Learn all rows; compare widths with the reference after 1/100, after 1/10 and after all of them."""
    with mpmath.workdps(DIGITS):
        return _run(soak, say)


def _run(soak: Soak, say: Callable[[str], None]) -> SoakOutcome:
    random = np.random.default_rng(soak.seed)
    d, k = soak.d, soak.arms
    # A rotation of all features leaves the widths as they are, so the reference needs none.
    to_features = np.diag(2.0 ** (soak.exponents() - BITS)) @ soak.rotation()
    estimator = HybridRidge(d1=d, d2=d, ridge=1.0)
    gram = np.zeros((d * (k + 1), d * (k + 1)))
    units = [mpmath.mpf(2) ** int(e - BITS) for e in np.tile(soak.exponents(), k + 1)]
    candidates = whole_numbers(soak, random, 2 * k)
    rows = []
    for i, whole in enumerate(candidates):
        row = [mpmath.mpf(0)] * len(units)
        own = d * (1 + i % k)
        for j in range(d):
            row[j] = row[own + j] = int(whole[j]) * units[j]
        rows.append(row)
    checkpoints = sorted({max(1, soak.rows // 100), max(1, soak.rows // 10), soak.rows})
    done, worst, definite = 0, 0.0, True
    while done < soak.rows:
        n = min(soak.chunk, min(c for c in checkpoints if c > done) - done)
        whole = whole_numbers(soak, random, n)
        arms = random.integers(0, k, n)
        features = whole @ to_features
        estimator.learn_batch(arms, features, features, random.normal(size=n))
        for arm in range(k):
            # This is exact: every partial sum is a whole number below 2^53.
            part = whole[arms == arm].astype(float)
            square = part.T @ part
            own_block = slice(d * (arm + 1), d * (arm + 2))
            gram[:d, :d] += square
            gram[own_block, own_block] += square
            gram[own_block, :d] += square
        done += n
        definite = definite and estimator.sound()
        if done in checkpoints:
            exact = widths(gram, units, 1.0, rows)
            at = np.arange(2 * k) % k
            for group in (slice(0, k), slice(k, None)):
                features = candidates[group] @ to_features
                _, width = estimator.predict(features, features, at[group].tolist())
                errors = [abs(float((mpmath.mpf(float(w)) - e) / e)) for w, e in zip(width, exact[group], strict=True)]
                worst = max(worst, *errors)
            say(f"{soak.name}: {done:,} rows, largest relative error of a width so far {worst:.1e}")
    if np.abs(gram).max() >= 2**53:
        raise AssertionError("the reference itself is no longer exact: use fewer bits or fewer rows")
    return SoakOutcome(rows=done, width_error=worst, positive_definite=definite)


_SHAPE = {"d": 20, "arms": 5}
SCALED = Soak(**_SHAPE, name="scales 1e-3..1e3", rows=10**6, widest=10, unit_norm=False, rotated=False, target=1e-8)
ROTATED = Soak(
    **_SHAPE, name="scales 1e-3..1e3, rotated", rows=10**6, widest=10, unit_norm=False, rotated=True, target=1e-8
)
UNIT = Soak(**_SHAPE, name="unit norm", rows=10**7, widest=0, unit_norm=True, rotated=True, target=1e-10)
