"""Rankings and randomized choices: the order of each rule, and its frequencies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hybandits import (
    AsWritten,
    EpsilonGreedy,
    Greedy,
    HyIDS,
    HyLinUCB,
    HyRan,
    HyThompson,
    LiHybrid,
    LinUCB,
    SupLinUCB,
    Uniform,
)
from hybandits.policies.base import Policy
from hybandits.testing import ARMS, Page

SHAPE: dict[str, int] = {"d1": 4, "d2": 3}


def taught(policy: Policy, rounds: int = 12) -> tuple[Policy, np.ndarray, np.ndarray]:
    """A policy that has learned some rows, and candidates for it."""
    page = Page(4, 3)
    for t in range(rounds):
        x, z = page.features(1)
        policy.learn(ARMS[t % 5], x[0], z[0], page.reward(t % 5, x[0], z[0]))
    return policy, *page.features()


def frequencies(policy: Policy, x: np.ndarray, z: np.ndarray, places: int, n: int) -> np.ndarray:
    """The frequency of each candidate in each place in n rankings with different keys."""
    counts = np.zeros((5, places))
    for key in range(n):
        counts[policy.rank(x, z, ARMS, places, key=key).indices, np.arange(places)] += 1
    return counts / n


@pytest.mark.parametrize("kind", [HyLinUCB, Greedy])
def test_bounds_are_ranked(kind: type[Policy]) -> None:
    policy, x, z = taught(kind(**SHAPE))  # type: ignore[arg-type]
    left, order = list(range(5)), []
    while left:
        choice = policy.choose(x[left], z[left], [ARMS[i] for i in left])
        order.append(left.pop(choice.index))
    ranking = policy.rank(x, z, ARMS)
    assert ranking.indices.tolist() == order
    assert ranking.propensities.tolist() == [1.0] * 5


def test_thompson_ranks_by_one_draw_and_knows_how_likely_each_place_is() -> None:
    """Frequencies of 4,000 rankings within 5 standard errors (false alarms below 1e-5)."""
    quiet, x, z = taught(HyThompson(**SHAPE, seed=0))
    teller, _, _ = taught(HyThompson(**SHAPE, seed=0, propensity_draws=20_000))
    observed = frequencies(quiet, x, z, 3, 4000)
    candidates = teller._candidates(x, z, ARMS, False)
    matrix = teller._shares(candidates, teller._stream("key"), 3)  # type: ignore[attr-defined]
    assert_allclose(matrix.sum(axis=0), 1.0, rtol=1e-12)
    assert (np.abs(observed - matrix) < 5 * np.sqrt(matrix * (1 - matrix) / 4000) + 0.005).all()
    ranking = teller.rank(x, z, ARMS, 3, key="key")
    assert_allclose(ranking.propensities, (1 + 20_000 * matrix[ranking.indices, np.arange(3)]) / 20_001)
    few, _, _ = taught(HyThompson(**SHAPE, seed=0, propensity_draws=2))
    assert all((few.rank(x, z, ARMS, key=key).propensities >= 1 / 3 - 1e-12).all() for key in range(50))
    assert ranking.arms == quiet.rank(x, z, ARMS, 3, key="key").arms
    assert np.isnan(quiet.rank(x, z, ARMS, 3).propensities).all()


def test_information_directed_sampling_explores_in_the_first_place_alone() -> None:
    """The others follow in the order of their means; frequencies of 3,000 rankings within 5 standard errors."""
    policy, x, z = taught(HyIDS(**SHAPE, noise=0.5, scale=1.0, seed=0, propensity_draws=400))
    by_mean = np.argsort(-policy.predict(x, z, ARMS).mean)
    quiet, _, _ = taught(HyIDS(**SHAPE, noise=0.5, scale=1.0, seed=0))
    observed = frequencies(quiet, x, z, 3, 3000)
    assert (observed[:, 0] > 0).sum() > 1
    for key in range(20):
        ranking = policy.rank(x, z, ARMS, 3, key=key)
        assert ranking.indices[1:].tolist() == [i for i in by_mean if i != ranking.indices[0]][:2]
        p = observed[ranking.indices, np.arange(3)]
        assert (np.abs(ranking.propensities - p) < 5 * np.sqrt(p * (1 - p) / 375) + 0.005).all()


@pytest.mark.slow
@pytest.mark.parametrize("policy", [Uniform(**SHAPE, seed=0), HyIDS(**SHAPE, seed=0), HyThompson(**SHAPE, seed=0)])
def test_random_orders_are_equally_likely(policy: Policy) -> None:
    """Policies that know nothing yet; frequencies of 3,000 rankings within 5 standard errors."""
    x, z = Page(4, 3).features()
    assert (np.abs(frequencies(policy, x, z, 3, 3000) - 0.2) < 5 * np.sqrt(0.16 / 3000)).all()
    assert policy.rank(x, z, ARMS, 3).propensities.tolist() == [0.2] * 3


@pytest.mark.slow
def test_epsilon_greedy_draws_an_order_with_probability_epsilon() -> None:
    """Frequencies of 6,000 rankings within 5 standard errors, against the probabilities that they say."""
    policy, x, z = taught(EpsilonGreedy(Greedy(**SHAPE), epsilon=0.4, seed=0))
    observed = frequencies(policy, x, z, 3, 6000)
    greedy = policy.policy.rank(x, z, ARMS, 3).indices  # type: ignore[attr-defined]
    expected = np.full((5, 3), 0.4 / 5)
    expected[greedy, np.arange(3)] += 0.6
    assert (np.abs(observed - expected) < 5 * np.sqrt(expected * (1 - expected) / 6000)).all()
    for key in range(30):
        ranking = policy.rank(x, z, ARMS, 3, key=key)
        assert_allclose(ranking.propensities, expected[ranking.indices, np.arange(3)])
    nested = EpsilonGreedy(policy, epsilon=0.5, seed=1)
    assert all(np.isnan(nested.rank(x, z, ARMS, 3, key=key).propensities).all() for key in range(30))
    around = EpsilonGreedy(HyRan(**SHAPE, p=0.5, seed=0), epsilon=0.5, seed=1)
    for key in range(10):
        ranking = around.rank(x, z, ARMS, 2, key=key)
        assert set(np.round(ranking.propensities, 12)) <= {0.1, 0.6}
        around.learn(ranking.arms[1], x[ranking.indices[1]], z[ranking.indices[1]], 1.0, receipt=ranking.receipts[1])


def test_receipts_of_a_ranking_can_be_learned_with() -> None:
    hyran, x, z = taught(HyRan(**SHAPE, p=0.5, seed=0))
    ranking = hyran.rank(x, z, ARMS, 3)
    assert_array_equal(ranking.indices, np.argsort(-hyran.predict(x, z, ARMS).mean)[:3])
    walker = SupLinUCB(**SHAPE, horizon=100)
    for policy in (hyran, walker):
        ranking = policy.rank(pd.DataFrame(x), pd.DataFrame(z), iter(ARMS), 3)
        for place in range(3):
            i = ranking.indices[place]
            policy.learn(ranking.arms[place], x[i], z[i], 1.0, receipt=ranking.receipts[place])
    assert walker.rounds == 3


@pytest.mark.parametrize("kind", ["LinUCB", "HyRan", "SupLinUCB"])
def test_probabilities_of_places_are_those_after_new_arms_have_been_met(kind: str) -> None:
    """The next ranking counts the new arms, where exploration depends on the number of arms met."""
    for seed in range(40):
        policy: Any = {
            "LinUCB": lambda: LinUCB(**SHAPE, exploration=AsWritten(horizon=100)),
            "HyRan": lambda: HyRan(**SHAPE, p=0.5, seed=0),
            "SupLinUCB": lambda: SupLinUCB(**SHAPE, horizon=100),
        }[kind]()
        page = Page(4, 3, seed)
        for t in range(12):
            x, z = page.features(1)
            policy.learn(ARMS[t % 3], x[0], z[0], page.reward(t % 3, x[0], z[0]))
        x, z = page.features()
        explorer = EpsilonGreedy(policy, epsilon=0.5, seed=seed)
        twin = policy.copy()
        ranking = explorer.rank(x, z, ARMS)
        order = twin.rank(x, z, ARMS).indices
        expected = 0.1 + 0.5 * (ranking.indices == order)
        assert_allclose(ranking.propensities, expected)


@pytest.mark.parametrize("wrap", [1, 2])
def test_the_receipt_of_a_round_is_passed_on_by_wrappers(wrap: int) -> None:
    policy: Any = HyRan(**SHAPE, p=0.5, seed=0)
    for level in range(wrap):
        policy = EpsilonGreedy(policy, epsilon=0.5, seed=level)
    x, z = Page(4, 3).features()
    for key in range(20):
        assert policy.choose(x, z, ARMS, key=key, randomize=True, floor=0.9).receipt is not None
        assert policy.choose(x, z, ARMS, key=key).receipt is not None
        assert None not in policy.rank(x, z, ARMS, 2, key=key).receipts


class Last(LiHybrid):
    """A rule of one's own on top of another one."""

    def _pick(self, candidates: Any, stream: Any) -> Any:
        return len(candidates.arms) - 1, 0.0, 1.0, 1.0


def test_a_rule_of_ones_own_replaces_the_order_of_the_one_it_is_based_on() -> None:
    policy, x, z = taught(Last(**SHAPE))
    assert policy.rank(x, z, ARMS, 3).indices.tolist() == [4, 3, 2]


def test_equal_candidates_are_equal_in_every_draw() -> None:
    """Rows that are the same to the bit tie in every draw, and the first of them wins, as in `choose`."""
    for d1 in (1, 2, 3, 5):
        policy = HyThompson(d1=d1, d2=0, noise=1.0, scale=1.0, seed=0)
        random = np.random.default_rng(d1)
        for _ in range(5):
            policy.learn("a", random.standard_normal(d1), None, random.standard_normal())
        row, other = random.standard_normal((2, d1))
        chances = policy.propensities(np.array([row, other, row]), None, ["a", "b", "c"])
        assert chances[2] == 0.0
        assert chances.sum() == pytest.approx(1.0)


class Alternating(Greedy):
    """A rule of one's own: it picks the first of its candidates with probability 3/4."""

    def _pick(self, candidates: Any, stream: Any) -> Any:
        first = len(candidates.arms) == 1 or stream.uniforms(1)[0] < 0.75
        return 0 if first else 1, 0.0, 1.0, 0.75 if first else 0.25


def test_a_rule_of_ones_own_picks_again_from_those_that_are_left() -> None:
    """Each position has draws of its own: both arms of the first place, and both of the second, in 200 rankings."""
    policy = Alternating(**SHAPE)
    x, z = Page(4, 3).features()
    rankings = [policy.rank(x, z, ARMS, 3, key=key) for key in range(200)]
    assert {tuple(ranking.indices[:2].tolist()) for ranking in rankings} == {(0, 1), (0, 2), (1, 0), (1, 2)}
    assert {ranking.propensities[0] for ranking in rankings} == {0.75, 0.25}
    assert all(np.isnan(ranking.propensities[1:]).all() for ranking in rankings)


def test_a_ranking_admits_arms_and_counts_as_a_decision_unless_it_has_a_key() -> None:
    policy = Uniform(**SHAPE, seed=0)
    x, z = Page(4, 3).features()
    policy.rank(x, z, ARMS, 2, key="event")
    assert policy.arms == []
    first = policy.rank(x, z, ARMS).arms
    assert policy.arms == ARMS
    assert any(policy.rank(x, z, ARMS).arms != first for _ in range(5))
    with pytest.raises(ValueError, match="x"):
        policy.rank(np.full((5, 4), np.nan), z, ["new", *ARMS[1:]])
    assert "new" not in policy.arms


@pytest.mark.slow
def test_randomized_choices_have_their_stated_frequencies() -> None:
    """Thompson sampling by few draws: propensities differ from key to key, weights of 1/p make up for it.

    The mean of [arm = a] / p over 4,000 keys is 1 for every arm; within 5 standard errors (false alarms below 1e-5).
    """
    policy, x, z = taught(HyThompson(**SHAPE, seed=0, propensity_draws=10))
    weights = np.zeros((4000, 5))
    for key in range(4000):
        choice = policy.choose(x, z, ARMS, key=key, randomize=True, floor=0.2)
        assert choice.propensity is not None
        assert 0.04 <= choice.propensity <= 0.84
        weights[key, choice.index] = 1 / choice.propensity
    error = weights.std(axis=0) / np.sqrt(4000)
    assert (np.abs(weights.mean(axis=0) - 1) < 5 * error).all()
