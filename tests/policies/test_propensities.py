"""Propensities are probabilities over everything that is random in a decision, tested over keys.

Each comparison has a false-alarm rate below 1e-6; seeds are fixed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import chi2

from hybandits import (
    DisLinUCB,
    EpsilonGreedy,
    Greedy,
    HyIDS,
    HyLinUCB,
    HyRan,
    HyThompson,
    LiHybrid,
    LinUCB,
    Policy,
    SupLinUCB,
    Uniform,
)
from hybandits.policies import base
from hybandits.testing import ARMS, Page

SHAPE: dict[str, Any] = {"d1": 4, "d2": 3, "seed": 0}
KEYS = 1000
RARELY = 1e-6


class Noisy(Greedy):
    """A rule of one's own that draws and does not know its probabilities."""

    def _pick(self, candidates: Any, stream: Any) -> Any:
        picked = super()._pick(candidates, stream)
        return (picked[0] + int(stream.uniforms(1)[0] < 0.3)) % len(candidates.arms), 0.0, 1.0, None


CERTAIN: dict[str, Callable[[], Policy]] = {
    "HyLinUCB": partial(HyLinUCB, **SHAPE),
    "LinUCB": partial(LinUCB, **SHAPE),
    "DisLinUCB": partial(DisLinUCB, **SHAPE),
    "LiHybrid": partial(LiHybrid, **SHAPE, alpha=0.5),
    "Greedy": partial(Greedy, **SHAPE),
    "HyRan": partial(HyRan, **SHAPE, arm_count=8),
    "SupLinUCB": partial(SupLinUCB, **SHAPE, horizon=100, arm_count=8),
}
KNOWN: dict[str, Callable[[], Policy]] = {
    "Uniform": partial(Uniform, **SHAPE),
    "EpsilonGreedy": lambda: EpsilonGreedy(Greedy(**SHAPE), epsilon=0.3, seed=0),
    "EpsilonGreedy twice": lambda: EpsilonGreedy(EpsilonGreedy(Greedy(**SHAPE), seed=0), epsilon=0.3, seed=0),
}
SAMPLING: dict[str, Callable[..., Policy]] = {
    "HyThompson": partial(HyThompson, **SHAPE),
    "HyThompson, given": partial(HyThompson, **SHAPE, noise=0.5, scale=1.0),
    "HyThompson, memories": partial(HyThompson, **SHAPE, memory="auto"),
    "HyIDS": partial(HyIDS, **SHAPE),
    "HyIDS, given": partial(HyIDS, **SHAPE, noise=0.5, scale=1.0),
    "HyIDS, memories": partial(HyIDS, **SHAPE, memory="auto"),
}
FEW: dict[str, Callable[[], Policy]] = {
    **{name: partial(make, propensity_draws=4) for name, make in SAMPLING.items()},
    "around HyThompson": lambda: EpsilonGreedy(HyThompson(**SHAPE, propensity_draws=4), seed=0),
    "around HyIDS": lambda: EpsilonGreedy(HyIDS(**SHAPE, propensity_draws=4), seed=0),
    "own rule": partial(Noisy, d1=4, d2=3),
}


def taught(policy: Policy, rewards: int) -> tuple[Policy, np.ndarray, np.ndarray]:
    """A policy that has learned some rewards, and candidates for it."""
    page = Page(4, 3)
    for t in range(rewards):
        x, z = page.features(1)
        policy.learn(ARMS[t % 5], x[0], z[0], page.reward(t % 5, x[0], z[0]) + 0.5)
    return policy, *page.features()


def fit(counts: np.ndarray, probabilities: np.ndarray) -> float:
    """The p-value of the chi-square test; candidates expected less than five times are pooled."""
    expected = counts.sum() * probabilities
    assert (counts[probabilities == 0] == 0).all()
    rare = expected < 5
    counts, expected = (np.append(each[~rare], each[rare].sum()) for each in (counts, expected))
    used = expected > 0
    statistic = ((counts - expected)[used] ** 2 / expected[used]).sum()
    return float(chi2.sf(statistic, max(used.sum() - 1, 1)))


@pytest.mark.slow
@pytest.mark.parametrize("rewards", [0, 2, 40])
@pytest.mark.parametrize("name", [*CERTAIN, *KNOWN, *FEW])
def test_randomized_choices_have_exactly_their_propensities(
    name: str, rewards: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are a function of the model and the candidates, and the chosen arms follow them over keys."""
    monkeypatch.setattr(base, "DRAWS", 10)
    policy, x, z = taught({**CERTAIN, **KNOWN, **FEW}[name](), rewards)
    policy.admit(ARMS)
    probabilities = 0.9 * policy.propensities(x, z, ARMS) + 0.1 / len(ARMS)
    counts = np.zeros(len(ARMS))
    for key in range(KEYS):
        choice = policy.choose(x, z, ARMS, key=key, randomize=True, floor=0.1)
        assert choice.propensity == pytest.approx(probabilities[choice.index], rel=1e-12)
        counts[choice.index] += 1
    assert fit(counts, probabilities) > RARELY
    assert_allclose(policy.propensities(x, z, ARMS, key="any"), policy.propensities(x, z, ARMS), rtol=1e-12)


@pytest.mark.parametrize("rewards", [0, 2, 40])
@pytest.mark.parametrize("name", [*CERTAIN, *KNOWN])
def test_known_propensities_are_the_frequencies_over_keys(name: str, rewards: int) -> None:
    policy, x, z = taught({**CERTAIN, **KNOWN}[name](), rewards)
    policy.admit(ARMS)
    probabilities = policy.propensities(x, z, ARMS)
    choices = [policy.choose(x, z, ARMS, key=key) for key in range(KEYS)]
    assert all(choice.propensity == pytest.approx(probabilities[choice.index]) for choice in choices)
    assert fit(np.bincount([choice.index for choice in choices], minlength=5), probabilities) > RARELY
    if name in CERTAIN:
        assert {choice.propensity for choice in choices} == {1.0}


@pytest.mark.parametrize("rewards", [1, 3, 12])
@pytest.mark.parametrize("name", SAMPLING)
def test_estimates_are_of_the_frequencies_over_keys(name: str, rewards: int) -> None:
    """The propensity of each choice, and of each place of a ranking, lies within the standard error of its draws."""
    draws, n = 100, 600
    precise, x, z = taught(SAMPLING[name](propensity_draws=2000), rewards)
    policy, _, _ = taught(SAMPLING[name](propensity_draws=draws), rewards)
    quiet, _, _ = taught(SAMPLING[name](), rewards)
    p = precise.propensities(x, z, ARMS)
    choices = [quiet.choose(x, z, ARMS, key=key) for key in range(n)]
    assert {choice.propensity for choice in choices} == {None}
    counts = np.bincount([choice.index for choice in choices], minlength=5)
    spread = np.sqrt(p * (1 - p))
    assert (np.abs(counts / n - p) < 5.5 * spread * np.sqrt(1 / n + 1 / 2000) + 0.005).all()
    for key in range(30):
        choice = policy.choose(x, z, ARMS, key=key)
        assert choice[:4] == choices[key][:4], "an estimate does not change the decision"
        assert choice.propensity is not None
        error = abs(choice.propensity - p[choice.index])
        assert error < 5.5 * spread[choice.index] * np.sqrt(1 / draws + 1 / 2000) + 1 / draws
        first = policy.rank(x, z, ARMS, 2, key=key)
        assert first.propensities[0] == pytest.approx(choice.propensity, abs=0.12)
    assert np.isnan(quiet.rank(x, z, ARMS, 2, key=1).propensities).all()
    assert np.isnan(quiet.choose_batch(x[None], z[None], ARMS).propensities).all()


def test_weights_of_early_situations_are_one_on_average() -> None:
    """The mean of [arm = a] / p over 2,000 keys lies within 5 standard errors of 1, for arms that are chosen often.

    It is the probability that an estimate by 31 sets is positive.
    """
    policy, x, z = taught(HyIDS(**SHAPE, propensity_draws=30), 2)
    weights = np.zeros((2000, 5))
    for key in range(2000):
        choice = policy.choose(x, z, ARMS, key=key)
        assert choice.propensity is not None
        weights[key, choice.index] = 1 / choice.propensity
    often = (weights > 0).mean(axis=0) > 0.1
    assert often.sum() >= 2
    error = weights.std(axis=0) / np.sqrt(2000)
    assert (np.abs(weights.mean(axis=0) - 1) < 5 * error + 0.03)[often].all()


def test_what_features_are_measured_in_does_not_matter_to_randomized_choices() -> None:
    for make in (HyThompson, HyIDS):
        plain, x, z = taught(make(**SHAPE), 20)
        scaled = make(**SHAPE)
        page = Page(4, 3)
        for t in range(20):
            row, own = page.features(1)
            reward = page.reward(t % 5, row[0], own[0]) + 0.5
            scaled.learn(ARMS[t % 5], 8 * row[0], 0.25 * own[0], reward)
        for key in range(20):
            wanted = plain.choose(x, z, ARMS, key=key, randomize=True)
            got = scaled.choose(8 * x, 0.25 * z, ARMS, key=key, randomize=True)
            assert (got.index, got.propensity) == (wanted.index, wanted.propensity)
