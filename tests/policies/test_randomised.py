"""Uniform and EpsilonGreedy: the probabilities they state are those they choose with."""

from __future__ import annotations

import numpy as np
import pytest

from hybandits import (
    EpsilonGreedy,
    Greedy,
    HyRan,
    SupLinUCB,
    Uniform,
)


@pytest.mark.slow
def test_the_same_seed_in_a_wrapper_and_what_it_wraps_does_not_tie_their_draws() -> None:
    """40,000 choices; frequencies within 6 standard errors of the stated propensities."""
    policy = EpsilonGreedy(EpsilonGreedy(Greedy(d1=1, d2=1), epsilon=0.3, seed=0), epsilon=0.3, seed=0)
    policy.learn("a", [1.0], [1.0], 1.0)
    x = np.ones((3, 1))
    p = policy.propensities(x, x, ["a", "b", "c"])
    counts = np.zeros(3)
    for _ in range(40_000):
        counts[policy.choose(x, x, ["a", "b", "c"]).index] += 1
    assert (np.abs(counts / 4e4 - p) < 6 * np.sqrt(p * (1 - p) / 4e4)).all()
    policies = Uniform(d1=1, d2=1, seed=0)
    drawn = [policies.choose(x, x).index for _ in range(100)]
    assert drawn != np.random.default_rng(0).integers(3, size=100).tolist()


def test_epsilon_greedy_keeps_receipts_of_the_round_and_drops_those_of_the_choice() -> None:
    x = np.ones((3, 1))
    for inner, kept in ((HyRan(d1=1, d2=1), True), (SupLinUCB(d1=1, d2=1, horizon=50), False)):
        policy = EpsilonGreedy(inner, epsilon=1.0, seed=0)
        for _ in range(30):
            choice = policy.choose(x, x, ["a", "b", "c"])
            explored = choice.arm != inner.choose(x, x, ["a", "b", "c"]).arm
            if explored:
                assert (choice.receipt is not None) == kept
            policy.learn(choice.arm, x[choice.index], x[choice.index], 1.0, receipt=choice.receipt)


def test_the_number_of_a_decision_is_that_of_the_wrapped_policy_too() -> None:
    x = np.ones((4, 1))
    policies = [EpsilonGreedy(Uniform(d1=1, d2=1, seed=0), epsilon=0.0, seed=1) for _ in range(2)]
    played = [policies[0].choose(x, x).index for _ in range(20)]
    for t in reversed(range(20)):
        policies[1].number_decisions(t)
        assert policies[1].choose(x, x).index == played[t]


def test_epsilon_greedy_bounds_and_what_it_wraps() -> None:
    with pytest.raises(ValueError, match=r"epsilon must lie in \[0, 1\], got 1.5"):
        EpsilonGreedy(Greedy(d1=1, d2=1), epsilon=1.5)
    with pytest.raises(TypeError, match="policy must be a policy such as Greedy"):
        EpsilonGreedy("greedy")  # type: ignore[arg-type]
