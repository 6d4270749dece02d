"""The conformance suite itself: it finds a policy that breaks the contract, and skips what does not apply."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hybandits import Greedy, HyThompson, Policy, Uniform
from hybandits.testing import Page, PolicyConformance, fingerprint


class Suite(PolicyConformance):
    """The suite for a policy of any class; its methods are called here one by first."""

    def __init__(self, kind: type[Any], **switches: bool) -> None:
        self.kind = kind
        self.__dict__.update(switches)

    def make(self, d1: int, d2: int, seed: int) -> Policy:
        policy: Policy = self.kind(d1=d1, d2=d2, seed=seed)
        return policy


class LearnsFromLooking(Greedy):
    def predict(self, x: Any = None, z: Any = None, arms: Any = None) -> Any:
        self._decisions += 1
        return super().predict(x, z, arms)


class PrefersTheLast(Greedy):
    def choose(self, x: Any = None, z: Any = None, arms: Any = None, *, key: Any = None) -> Any:
        choice = super().choose(x, z, arms, key=key)
        return choice._replace(arm=arms[-1], index=len(arms) - 1)


class CountsTwice(Greedy):
    def learn(self, arm: Any, x: Any = None, z: Any = None, reward: Any = None, *, receipt: Any = None) -> None:
        super().learn(arm, x, z, reward)
        super().learn(arm, x, z, reward)


def test_broken_promises_are_found() -> None:
    page = Page(2, 1)
    with pytest.raises(AssertionError):
        Suite(LearnsFromLooking).test_predict_and_propensities_change_nothing(LearnsFromLooking(d1=2, d2=1), page)
    with pytest.raises(AssertionError, match="depends on the order of the candidates"):
        Suite(PrefersTheLast).test_permuted_candidates_permute_the_choice(page)
    with pytest.raises(AssertionError):
        Suite(CountsTwice).test_a_batch_equals_one_by_one(page, False)


def test_what_does_not_apply_is_skipped_with_a_reason() -> None:
    page = Page(2, 1)
    with pytest.raises(pytest.skip.Exception, match="the rule draws"):
        Suite(Uniform, deterministic=False).test_propensities_are_those_of_the_next_choice_also_with_arms_not_met(page)
    with pytest.raises(pytest.skip.Exception, match="merging cannot equal"):
        Suite(Greedy, exact_merge=False).test_merging_equals_learning_together(page)
    with pytest.raises(pytest.skip.Exception, match="does not estimate"):
        Suite(HyThompson, deterministic=False).test_propensities_agree_with_the_choice(HyThompson(d1=2, d2=1), page)


def test_a_fingerprint_tells_data_settings_and_random_state() -> None:
    x = np.ones((3, 2))
    first, second = (Uniform(d1=2, d2=2, seed=0) for _ in range(2))
    assert fingerprint(first) == fingerprint(second)
    assert fingerprint(first) != fingerprint(Uniform(d1=2, d2=2, seed=0, ridge=2.0))
    assert fingerprint(first) != fingerprint(Uniform(d1=2, d2=2, seed=1))
    for policy in (first, second):
        policy.learn_batch(["a", "b", "c"], x, x, np.arange(3.0))
    assert fingerprint(first) == fingerprint(second)
    first.choose(x, x, ["a", "b", "c"])  # draws, and learns nothing
    assert fingerprint(first) != fingerprint(second)
    second.choose(x, x, ["a", "b", "c"])
    assert fingerprint(first) == fingerprint(second)
    second.learn("a", x[0], x[0], 1e-300)
    assert fingerprint(first) != fingerprint(second)
