"""The conformance suite itself: it finds a policy that breaks the contract, and skips what does not apply."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from hybandits import Greedy, HyThompson, Policy, Uniform
from hybandits.testing import ARMS, Page, PolicyConformance, fingerprint


class Suite(PolicyConformance):
    """The suite for a policy of any class; its methods are called here one by one."""

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


def test_a_policy_that_changes_when_looked_at_is_caught() -> None:
    with pytest.raises(AssertionError):
        Suite(LearnsFromLooking).test_predict_and_propensities_change_nothing(LearnsFromLooking(d1=2, d2=1), Page(2, 1))


def test_a_policy_that_goes_by_the_order_of_candidates_is_caught() -> None:
    with pytest.raises(AssertionError, match="depends on the order of the candidates"):
        Suite(PrefersTheLast).test_permuted_candidates_permute_the_choice(Page(2, 1))


def test_a_policy_whose_batches_differ_is_caught() -> None:
    with pytest.raises(AssertionError):
        Suite(CountsTwice).test_a_batch_equals_one_by_one(Page(2, 1), False)


def test_what_does_not_apply_is_skipped_with_a_reason() -> None:
    page = Page(2, 1)
    with pytest.raises(pytest.skip.Exception, match="the rule draws"):
        Suite(Uniform, deterministic=False).test_propensities_are_those_of_the_next_choice_also_with_arms_not_met(page)
    with pytest.raises(pytest.skip.Exception, match="merging cannot equal"):
        Suite(Greedy, exact_merge=False).test_merging_equals_learning_together(page)
    with pytest.raises(pytest.skip.Exception, match="does not estimate"):
        Suite(HyThompson, deterministic=False).test_propensities_agree_with_the_choice(HyThompson(d1=2, d2=1), page)


def test_a_suite_without_make_says_what_to_define() -> None:
    class Empty(PolicyConformance):
        pass

    with pytest.raises(NotImplementedError, match=r"define make\(self, d1, d2, seed\)"):
        Empty().make(1, 1, 0)


def test_a_fingerprint_tells_data_settings_and_random_state() -> None:
    x = np.ones((3, 2))
    one, two = (Uniform(d1=2, d2=2, seed=0) for _ in range(2))
    assert fingerprint(one) == fingerprint(two)
    assert fingerprint(one) != fingerprint(Uniform(d1=2, d2=2, seed=0, ridge=2.0))
    assert fingerprint(one) != fingerprint(Uniform(d1=2, d2=2, seed=1))
    for policy in (one, two):
        policy.learn_batch(["a", "b", "c"], x, x, np.arange(3.0))
    assert fingerprint(one) == fingerprint(two)
    one.choose(x, x, ["a", "b", "c"])  # draws, and learns nothing
    assert fingerprint(one) != fingerprint(two)
    two.choose(x, x, ["a", "b", "c"])
    assert fingerprint(one) == fingerprint(two)
    two.learn("a", x[0], x[0], 1e-300)
    assert fingerprint(one) != fingerprint(two)


def test_fingerprints_write_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    fingerprint(Greedy(d1=1, d2=1))
    assert list(tmp_path.iterdir()) == []


def test_the_same_seed_gives_the_same_problem() -> None:
    one, two = (Page(3, 2, seed=5) for _ in range(2))
    assert_array_equal(np.hstack(one.features()), np.hstack(two.features()))
    assert one.features(7)[0].shape == (7, 3)
    choices = Page(3, 2).play(Greedy(d1=3, d2=2), 4)
    assert len(choices) == 4
    assert {choice.arm for choice in choices} <= set(ARMS)
