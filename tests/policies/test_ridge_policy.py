"""RidgePolicy: a subclass gives the rule, and everything else is inherited."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from hybandits import Greedy
from hybandits.policies import RidgePolicy
from hybandits.testing import PolicyConformance


class Widest(RidgePolicy):
    """Chooses the candidate that it knows least about."""

    def __init__(self, *, d1: int, d2: int, ridge: float = 1.0, seed: int | None = None) -> None:
        super().__init__(d1=d1, d2=d2, ridge=ridge, seed=seed)

    def _pick(self, candidates: Any, stream: Any) -> tuple[int, float, float, float]:
        mean, width = self.estimator.score(candidates.x, candidates.z, candidates.slots)
        index = int(np.argmax(width))
        return index, float(mean[index]), float(width[index]), 1.0


class TestARuleAloneMakesAPolicy(PolicyConformance):
    def make(self, d1: int, d2: int, seed: int) -> Widest:
        return Widest(d1=d1, d2=d2, seed=seed)


class Refuses(Widest):
    def _pick(self, candidates: Any, stream: Any) -> tuple[int, float, float, float]:
        return -1, 0.0, 0.0, 0.0


def test_an_index_below_zero_says_that_a_feature_is_not_finite() -> None:
    with pytest.raises(ValueError, match=r"x\[1, 0\] is nan"):
        Refuses(d1=1, d2=0).choose(np.array([[1.0], [np.nan]]))


def test_rows_of_a_summary_count_as_the_rewards_they_stand_for() -> None:
    policy, plain = Greedy(d1=2, d2=1), Greedy(d1=2, d2=1)
    x, z = np.array([[3.0, 0.0], [0.0, 2.0]]), np.array([[1.0], [1.0]])
    policy.learn("a", x[0], z[0], 1.0)
    policy.learn_summary(["a", "b"], x, z, [1.0, 2.0], pulls={"a": 40, "b": 2})
    assert policy.rounds == 43
    assert [policy.estimator.pulls_of(arm) for arm in ("a", "b")] == [41, 2]
    plain.learn_batch(["a", "a", "b"], x[[0, 0, 1]], z[[0, 0, 1]], [1.0, 1.0, 2.0])
    assert_allclose(policy.theta, plain.theta)
    with pytest.raises(ValueError, match="pulls of 'a' must be at least 0, got -1"):
        policy.learn_summary(["a"], x[:1], z[:1], [1.0], pulls={"a": -1})
