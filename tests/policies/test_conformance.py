"""Every policy passes the conformance suite."""

from __future__ import annotations

import pytest

from hybandits import (
    AsWritten,
    DisLinUCB,
    EpsilonGreedy,
    Greedy,
    HyIDS,
    HyLinUCB,
    HyRan,
    HyRanWithoutCrossBlocks,
    HyThompson,
    LiHybrid,
    LinUCB,
    Policy,
    SupLinUCB,
    Uniform,
)
from hybandits.testing import PolicyConformance


def variant(conformance: type[PolicyConformance]) -> type[PolicyConformance]:
    """Mark a relative of a policy that is tested anyway: `make quick` leaves it out; one worker tests them all."""
    return pytest.mark.slow(pytest.mark.xdist_group("variants of policies")(conformance))


class TestHyLinUCB(PolicyConformance):
    def make(self, d1: int, d2: int, seed: int) -> Policy:
        return HyLinUCB(d1=d1, d2=d2, noise=0.1, seed=seed)


@variant
class TestHyLinUCBAsWritten(PolicyConformance):
    def make(self, d1: int, d2: int, seed: int) -> Policy:
        return HyLinUCB(d1=d1, d2=d2, exploration=AsWritten(horizon=1000, arms=5), seed=seed)

    def make_open(self, d1: int, d2: int, seed: int) -> Policy:
        return HyLinUCB(d1=d1, d2=d2, exploration=AsWritten(horizon=1000), seed=seed)


class TestLinUCB(PolicyConformance):
    def make(self, d1: int, d2: int, seed: int) -> Policy:
        return LinUCB(d1=d1, d2=d2, noise=0.1, seed=seed)


class TestDisLinUCB(PolicyConformance):
    def make(self, d1: int, d2: int, seed: int) -> Policy:
        return DisLinUCB(d1=d1, d2=d2, noise=0.1, seed=seed)


@variant
class TestLiHybrid(PolicyConformance):
    def make(self, d1: int, d2: int, seed: int) -> Policy:
        return LiHybrid(d1=d1, d2=d2, alpha=0.5, seed=seed)


class TestHyRan(PolicyConformance):
    def make(self, d1: int, d2: int, seed: int) -> Policy:
        return HyRan(d1=d1, d2=d2, arm_count=8, seed=seed)

    def make_open(self, d1: int, d2: int, seed: int) -> Policy:
        return HyRan(d1=d1, d2=d2, seed=seed)


@variant
class TestHyRanTheory(PolicyConformance):
    def make(self, d1: int, d2: int, seed: int) -> Policy:
        return HyRan(d1=d1, d2=d2, p=0.8, ridge_schedule="theory", arm_count=8, seed=seed)


@variant
class TestHyRanWithoutCrossBlocks(PolicyConformance):
    def make(self, d1: int, d2: int, seed: int) -> Policy:
        return HyRanWithoutCrossBlocks(d1=d1, d2=d2, arm_count=8, seed=seed)


class TestSupLinUCB(PolicyConformance):
    exact_merge = False  # which level a row without receipt goes to depends on what was learned before it

    def make(self, d1: int, d2: int, seed: int) -> Policy:
        return SupLinUCB(d1=d1, d2=d2, horizon=200, arm_count=8, seed=seed)

    def make_open(self, d1: int, d2: int, seed: int) -> Policy:
        return SupLinUCB(d1=d1, d2=d2, horizon=200, seed=seed)


class TestHyThompson(PolicyConformance):
    deterministic = False
    merge_tolerance = 1e-8

    def make(self, d1: int, d2: int, seed: int) -> Policy:
        return HyThompson(d1=d1, d2=d2, seed=seed)


class TestHyThompsonTold(PolicyConformance):
    deterministic = False

    def make(self, d1: int, d2: int, seed: int) -> Policy:
        return HyThompson(d1=d1, d2=d2, noise=0.1, scale=1.0, seed=seed)


@variant
class TestHyThompsonToldTheNoise(PolicyConformance):
    deterministic = False
    merge_tolerance = 1e-8

    def make(self, d1: int, d2: int, seed: int) -> Policy:
        return HyThompson(d1=d1, d2=d2, noise=0.1, seed=seed)


@variant
class TestHyThompsonWithPropensities(PolicyConformance):
    deterministic = False

    def make(self, d1: int, d2: int, seed: int) -> Policy:
        return HyThompson(d1=d1, d2=d2, noise=0.1, scale=2.0, propensity_draws=20, seed=seed)


class TestHyIDS(PolicyConformance):
    deterministic = False
    merge_tolerance = 1e-8

    def make(self, d1: int, d2: int, seed: int) -> Policy:
        return HyIDS(d1=d1, d2=d2, seed=seed)


@variant
class TestHyIDSToldTheScale(PolicyConformance):
    deterministic = False
    merge_tolerance = 1e-8

    def make(self, d1: int, d2: int, seed: int) -> Policy:
        return HyIDS(d1=d1, d2=d2, scale=0.5, seed=seed)


class TestHyIDSTold(PolicyConformance):
    deterministic = False

    def make(self, d1: int, d2: int, seed: int) -> Policy:
        return HyIDS(d1=d1, d2=d2, noise=0.1, scale=0.5, seed=seed)


class TestHyThompsonWithMemory(PolicyConformance):
    deterministic = False

    def make(self, d1: int, d2: int, seed: int) -> Policy:
        return HyThompson(d1=d1, d2=d2, memory=15, seed=seed)


class TestHyThompsonWithMemories(PolicyConformance):
    deterministic = False
    exact_merge = False  # what is remembered depends on the number of arms that have learned

    def make(self, d1: int, d2: int, seed: int) -> Policy:
        return HyThompson(d1=d1, d2=d2, memory="auto", propensity_draws=20, seed=seed)


@variant
class TestHyThompsonToldWithMemory(PolicyConformance):
    deterministic = False

    def make(self, d1: int, d2: int, seed: int) -> Policy:
        return HyThompson(d1=d1, d2=d2, noise=0.1, scale=1.0, memory=15, seed=seed)


@variant
class TestHyThompsonToldWithMemories(PolicyConformance):
    deterministic = False
    exact_merge = False

    def make(self, d1: int, d2: int, seed: int) -> Policy:
        return HyThompson(d1=d1, d2=d2, noise=0.1, scale=1.0, memory="auto", seed=seed)


class TestHyIDSWithMemory(PolicyConformance):
    deterministic = False

    def make(self, d1: int, d2: int, seed: int) -> Policy:
        return HyIDS(d1=d1, d2=d2, memory=15, seed=seed)


class TestHyIDSWithMemories(PolicyConformance):
    deterministic = False
    exact_merge = False

    def make(self, d1: int, d2: int, seed: int) -> Policy:
        return HyIDS(d1=d1, d2=d2, memory="auto", seed=seed)


class TestGreedy(PolicyConformance):
    def make(self, d1: int, d2: int, seed: int) -> Policy:
        return Greedy(d1=d1, d2=d2, seed=seed)


class TestUniform(PolicyConformance):
    deterministic = False
    exact_propensities = True

    def make(self, d1: int, d2: int, seed: int) -> Policy:
        return Uniform(d1=d1, d2=d2, seed=seed)


class TestEpsilonGreedy(PolicyConformance):
    deterministic = False
    exact_propensities = True

    def make(self, d1: int, d2: int, seed: int) -> Policy:
        return EpsilonGreedy(Greedy(d1=d1, d2=d2, seed=seed), epsilon=0.3, seed=seed)


@variant
class TestEpsilonAroundThompson(PolicyConformance):
    deterministic = False

    def make(self, d1: int, d2: int, seed: int) -> Policy:
        inner = HyThompson(d1=d1, d2=d2, noise=0.1, propensity_draws=10, seed=seed)
        return EpsilonGreedy(inner, epsilon=0.3, seed=seed)
