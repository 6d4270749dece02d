"""Every policy passes the conformance suite."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

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
from hybandits.testing import Page, PolicyConformance

Make = Callable[..., Policy]


SHAPES = ((3, 2), (0, 3))
"""Shapes for policies that share most of their code with one that is tested with all shapes."""


def suite(make: Make, make_open: Make | None = None, *, all_shapes: bool = False, **switches: Any) -> Any:
    """The suite for a policy, and for one that counts its arms itself where `make` fixes their number."""
    makers = {"make": make, "make_open": make_open or make}
    methods: dict[str, Any] = {
        name: lambda self, d1, d2, seed, maker=maker: maker(d1=d1, d2=d2, seed=seed) for name, maker in makers.items()
    }
    if not all_shapes:
        methods["page"] = pytest.fixture(params=SHAPES)(lambda self, request: Page(*request.param))
    return type("Suite", (PolicyConformance,), {**methods, **switches})


def variant(make: Make, make_open: Make | None = None, **switches: Any) -> Any:
    """The suite for a relative of a policy that is tested anyway: `make quick` leaves it out."""
    return pytest.mark.slow(pytest.mark.xdist_group("variants of policies")(suite(make, make_open, **switches)))


draws: dict[str, Any] = {"deterministic": False}
exact: dict[str, Any] = {"deterministic": False, "exact_propensities": True}
mixed: dict[str, Any] = {"deterministic": False, "exact_merge": False}  # memories depend on the arms that have learned

TestHyLinUCB = suite(partial(HyLinUCB, noise=0.1), all_shapes=True)
TestHyLinUCBAsWritten = variant(
    partial(HyLinUCB, exploration=AsWritten(horizon=1000, arms=5)),
    partial(HyLinUCB, exploration=AsWritten(horizon=1000)),
)
TestLinUCB = suite(partial(LinUCB, noise=0.1))
TestDisLinUCB = suite(partial(DisLinUCB, noise=0.1))
TestLiHybrid = variant(partial(LiHybrid, alpha=0.5))
TestGreedy = variant(Greedy)
TestHyRan = suite(partial(HyRan, arm_count=8), HyRan)
TestHyRanTheory = variant(partial(HyRan, p=0.8, ridge_schedule="theory", arm_count=8))
TestHyRanWithoutCrossBlocks = variant(partial(HyRanWithoutCrossBlocks, arm_count=8))
TestSupLinUCB = suite(  # the level of a row without receipt depends on what was learned before it
    partial(SupLinUCB, horizon=200, arm_count=8), partial(SupLinUCB, horizon=200), exact_merge=False
)
TestHyThompson = suite(HyThompson, **draws)
TestHyThompsonGiven = variant(partial(HyThompson, noise=0.1, scale=1.0), **draws)
TestHyThompsonGivenTheNoise = variant(partial(HyThompson, noise=0.1), **draws)
TestHyThompsonWithPropensities = variant(partial(HyThompson, noise=0.1, scale=2.0, propensity_draws=20), **draws)
TestHyThompsonWithMemory = variant(partial(HyThompson, memory=15), **draws)
TestHyThompsonWithMemories = variant(partial(HyThompson, memory="auto", propensity_draws=20), **mixed)
TestHyIDS = suite(HyIDS, all_shapes=True, **draws)
TestHyIDSGiven = variant(partial(HyIDS, noise=0.1, scale=0.5), **draws)
TestHyIDSWithMemory = variant(partial(HyIDS, memory=15), **draws)
TestHyIDSWithMemories = variant(partial(HyIDS, memory="auto"), **mixed)
TestUniform = suite(Uniform, **exact)
TestEpsilonGreedy = suite(
    lambda d1, d2, seed: EpsilonGreedy(Greedy(d1=d1, d2=d2, seed=seed), epsilon=0.3, seed=seed),
    all_shapes=True,
    **exact,
)
TestEpsilonAroundThompson = variant(
    lambda d1, d2, seed: EpsilonGreedy(
        HyThompson(d1=d1, d2=d2, noise=0.1, propensity_draws=10, seed=seed), epsilon=0.3, seed=seed
    ),
    **draws,
)
