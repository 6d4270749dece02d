"""HyRan equals its algorithm on a dense matrix, checks its receipts, and forgets arms for good."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from hybandits import (
    HyRan,
    HyRanWithoutCrossBlocks,
)
from hybandits.kernels import random
from hybandits.testing import ARMS, Page, fingerprint
from tests.support.oracle import Dense


class DenseHyRan:
    """Algorithm 1 of Kim et al. on embedded vectors with a dense matrix."""

    def __init__(self, n: int, p: float, cross: bool) -> None:
        self.v, self.rhs, self.t, self.p, self.cross = np.eye(n), np.zeros(n), 0, p, cross

    def add(self, row: np.ndarray, target: float, d1: int) -> None:
        outer = np.outer(row, row)
        if not self.cross:
            outer[:d1, d1:] = 0
            outer[d1:, :d1] = 0
        self.v += outer
        self.rhs += row * target

    def solve(self, ridge: float) -> np.ndarray:
        return np.linalg.solve(self.v + ridge * np.eye(len(self.rhs)), self.rhs)


@pytest.mark.parametrize("kind", [HyRan, HyRanWithoutCrossBlocks])
@pytest.mark.parametrize("schedule", ["experiments", "theory"])
def test_hyran_is_its_algorithm_on_a_dense_matrix(kind: Any, schedule: Any) -> None:
    d1, d2, k, p = 4, 3, 5, 0.6
    policy = kind(d1=d1, d2=d2, p=p, ridge_schedule=schedule, arm_count=k, seed=3)
    dense = DenseHyRan(d1 + d2 * k, p, cross=kind is HyRan)
    place = Dense(d1, d2, ARMS, 1.0)
    page = Page(d1, d2)
    size = d1 + d2 * k
    drawn = 0
    for t in range(1, 61):
        x, z = page.features()
        rows = np.array([place.embed(arm, x[i], z[i]) for i, arm in enumerate(ARMS)])
        ridge = 2 * size * math.log(t + 1) if schedule == "experiments" else size * math.log(4 * t**2 / 0.01)
        values = rows @ dense.solve(ridge)
        choice = policy.choose(x, z, ARMS)
        a = choice.index
        assert choice.mean == pytest.approx(values[a], rel=1e-9, abs=1e-12)
        assert values[a] == pytest.approx(values.max(), rel=1e-9, abs=1e-12)
        width = math.sqrt(rows[a] @ np.linalg.solve(dense.v + ridge * np.eye(size), rows[a]))
        assert choice.width == pytest.approx(width, rel=1e-9)
        reward = page.reward(a, x[a], z[a])
        policy.learn(choice.arm, x[a], z[a], reward, receipt=choice.receipt)
        if random.uniform(policy.key, random.LEARN, t - 1) < p:
            drawn += 1
            check = dense.solve(math.sqrt(max(t - 1, 1)))
            targets = rows @ check
            targets[a] = (1 - 1 / p) * targets[a] + reward / p
            for row, target in zip(rows, targets, strict=True):
                dense.add(row, target, d1)
        else:
            dense.add(rows[a], reward, d1)
    assert 20 < drawn < 55


def test_hyran_receipts_are_checked() -> None:
    policy = HyRan(d1=1, d2=1, seed=0)
    x = np.ones((2, 1))
    choice = policy.choose(x, x, ["a", "b"])
    with pytest.raises(TypeError, match=r"receipt must be choice\.receipt"):
        policy.learn("a", x[0], x[0], 1.0, receipt=3)
    with pytest.raises(ValueError, match="'c' is not among the candidates"):
        policy.learn("c", x[0], x[0], 1.0, receipt=choice.receipt)
    with pytest.raises(ValueError, match="not that of its receipt"):
        policy.learn("a", 2 * x[0], x[0], 1.0, receipt=choice.receipt)
    with pytest.raises(ValueError, match="receipts has 1 entries but there are 2 rows"):
        policy.learn_batch(["a", "b"], x, x, [1.0, 1.0], receipts=[None])
    x[:] = 7.0  # the caller may use its arrays again
    assert (choice.receipt.x == 1.0).all()


def test_hyran_refuses_what_its_sums_cannot_bear_and_changes_nothing(tmp_path: Path) -> None:
    policy = HyRan(d1=3, d2=3, seed=0)
    random = np.random.default_rng(0)
    refused, unchanged = 0, True
    policy.choose(*np.ones((2, 4, 3)), range(4))
    for _ in range(12):
        x = random.normal(size=(4, 3)) * 1e8
        before = fingerprint(policy)
        try:
            choice = policy.choose(x, x, range(4))
            before = fingerprint(policy)
            policy.learn(choice.arm, x[choice.index], x[choice.index], 1.0, receipt=choice.receipt)
        except ValueError as problem:
            refused += "rescale" in str(problem)
            unchanged = unchanged and fingerprint(policy) == before
        assert np.isfinite(policy.table.shared).all()
        assert np.isfinite(policy.table.own).all()
    assert refused > 0
    assert unchanged
    policy.save(tmp_path / "p.npz")
    HyRan.load(tmp_path / "p.npz")


def test_hyran_does_not_bring_forgotten_arms_back_through_late_receipts() -> None:
    policy = HyRan(d1=1, d2=1, p=0.999, seed=0)
    x = np.ones((3, 1))
    choice = policy.choose(x, x, ["a", "b", "c"])
    other = next(arm for arm in "abc" if arm != choice.arm)
    policy.forget(other)
    policy.learn(choice.arm, x[0], x[0], 1.0, receipt=choice.receipt)
    assert other not in policy.arms


def test_hyran_forgets_an_arm_for_good() -> None:
    """An arm integrated out leaves theta as it is; left in the sums as well, it would be eliminated twice."""
    random = np.random.default_rng(0)
    policy = HyRan(d1=3, d2=2, arm_count=3, seed=0)
    x, z = random.normal(size=(30, 3)), random.normal(size=(30, 2))
    policy.learn_batch([f"a{i % 3}" for i in range(30)], x, z, random.normal(size=30))
    theta, beta = policy.theta, policy.beta("a1")
    policy.forget("a0")
    assert_allclose(policy.theta, theta, rtol=1e-10)
    assert_allclose(policy.beta("a1"), beta, rtol=1e-10)
