"""What policies that choose from a posterior share: told or learned settings, and what they say of them."""

from __future__ import annotations

import pytest

from hybandits import HyIDS, HyThompson
from hybandits.model.learned import LearnedRidge
from hybandits.model.ridge import HybridRidge
from hybandits.policies.posterior import PosteriorPolicy
from hybandits.testing import Page


@pytest.mark.parametrize("kind", [HyThompson, HyIDS])
def test_what_is_not_told_is_learned(kind: type[PosteriorPolicy]) -> None:
    told = kind(d1=2, d2=1, noise=0.2, scale=0.5)  # type: ignore[call-arg]
    assert type(told.estimator) is HybridRidge
    assert told.ridge == pytest.approx(0.16)
    for settings in ({}, {"noise": 0.2}, {"scale": 0.5}):
        policy = kind(d1=2, d2=1, **settings)  # type: ignore[call-arg]
        assert isinstance(policy.estimator, LearnedRidge)
        assert policy.learned is None, "nothing has been learned yet"


def test_what_was_learned_is_said() -> None:
    policy, page = HyIDS(d1=4, d2=3, seed=0), Page(4, 3)
    page.play(policy, 200)
    learned = policy.learned
    assert learned is not None
    assert learned.noise == pytest.approx(0.1, rel=0.3)
    assert f"noise {learned.noise:.3g}" in repr(policy)
    assert "effective parameters" in repr(policy)
    held = HyIDS(d1=4, d2=3, noise=0.25, seed=0)
    Page(4, 3).play(held, 100)
    assert held.learned is not None
    assert held.learned.noise == 0.25


def test_refreshing_a_told_policy_changes_nothing() -> None:
    policy = HyThompson(d1=2, d2=1, noise=0.1, scale=1.0, seed=0)
    policy.learn("a", [1.0, 0.0], [1.0], 1.0)
    before = policy.theta
    policy.refresh()
    assert (policy.theta == before).all()
    assert policy.learned is None
