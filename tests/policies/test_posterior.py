"""Thompson and information-directed sampling: settings, memories, posterior samples and propensities."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from hybandits import HyIDS, HyThompson, Uniform
from hybandits.estimators.learned import LearnedRidge
from hybandits.estimators.policy_file import FileError
from hybandits.estimators.ridge import HybridRidge
from hybandits.kernels import arrow, decisions, random
from hybandits.policies.by_name import make_policy, parse_policy
from hybandits.policies.posterior import Memory, PosteriorPolicy
from hybandits.simulation.play import cumulative_regret, play_by_contract
from hybandits.simulation.worlds import Synthetic
from hybandits.testing import ARMS, Page
from tests.support.oracle import Dense
from tests.support.rounds import assert_same_state


@pytest.mark.parametrize("kind", [HyThompson, HyIDS])
def test_settings_that_are_not_given_are_learned(kind: type[PosteriorPolicy]) -> None:
    given = kind(d1=2, d2=1, noise=0.2, scale=0.5)  # type: ignore[call-arg]
    assert type(given.estimator) is HybridRidge
    assert given.ridge == pytest.approx(0.16)
    for settings in ({}, {"noise": 0.2}):
        policy = kind(d1=2, d2=1, **settings)  # type: ignore[call-arg]
        assert isinstance(policy.estimator, LearnedRidge)
        assert policy.learned is None, "nothing has been learned yet"


def test_learned_settings_are_shown() -> None:
    policy, page = HyIDS(d1=4, d2=3, seed=0), Page(4, 3)
    page.play(policy, 200)
    learned = policy.learned
    assert learned is not None
    assert learned.noise == pytest.approx(0.1, rel=0.3)
    fixed = HyIDS(d1=4, d2=3, noise=0.25, seed=0)
    Page(4, 3).play(fixed, 100)
    assert fixed.learned is not None
    assert fixed.learned.noise == 0.25


def play_a_life(
    kind: type[PosteriorPolicy], memory: Memory, reward_unit: float, x_unit: float, z_unit: float
) -> list[int]:
    """Zeros first, a feature that comes late, arms that are forgotten, a merge, a refresh; returns all choices."""
    random = np.random.default_rng(5)
    policy = kind(d1=4, d2=3, memory=memory, seed=1)  # type: ignore[call-arg]
    theta, beta = random.standard_normal(4), random.standard_normal((9, 3))
    picks = []
    for t in range(160):
        first = t // 40
        arms = list(range(first, first + 5))
        x, z = random.standard_normal((5, 4)), random.standard_normal((5, 3))
        z[:, 0], x[:, 2] = 1.0, x[:, 2] if t >= 60 else 0.0
        rewards = x @ theta + (z * beta[arms]).sum(axis=1) + 0.1 * random.standard_normal(5)
        x[:, [1, 2]] *= x_unit
        z[:, 1] *= z_unit
        choice = policy.choose(x, z, arms)
        picks.append(choice.index)
        i = choice.index
        policy.learn(choice.arm, x[i], z[i], reward_unit * rewards[i] if t >= 8 else 0.0)
        if t == 6 or t == 80:
            policy.forget(policy.arms[0])
        if t == 100:
            other = kind(d1=4, d2=3, memory=memory, seed=2)  # type: ignore[call-arg]
            other.learn_batch(arms, x, z, reward_unit * rewards)
            policy.merge(other)
        if t == 120:
            policy.refresh()
    return picks


@pytest.mark.parametrize("memory", [None, 40.0, "auto"])
@pytest.mark.parametrize("kind", [HyThompson, HyIDS])
def test_units_do_not_matter_to_any_decision(kind: type[PosteriorPolicy], memory: Memory) -> None:
    usual = play_a_life(kind, memory, 1.0, 1.0, 1.0)
    assert len(set(usual)) > 1
    for units in ((2.0**33, 1.0, 1.0), (2.0**-30, 1.0, 1.0), (1.0, 2.0**12, 1.0), (1.0, 2.0**-12, 2.0**9)):
        assert play_a_life(kind, memory, *units) == usual


@pytest.mark.parametrize("kind", [HyThompson, HyIDS])
@pytest.mark.parametrize("place", ["first in x", "last in x", "first in z"])
def test_candidates_without_a_flag_that_all_others_had_are_tried(kind: type[PosteriorPolicy], place: str) -> None:
    """The flag costs 0.5 in a level of 2. Whoever believes that it carries the level would keep to it for ever."""
    for seed in range(4):
        random = np.random.default_rng(seed)
        flag = np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0])
        policy = kind(d1=1 if "z" in place else 2, d2=2 if "z" in place else 1, seed=seed)  # type: ignore[call-arg]
        flagged = 0.0
        for _ in range(150):
            s, one = random.standard_normal(6), np.ones(6)
            columns = {
                "first in x": ([flag, s], [one]), "last in x": ([s, flag], [one]), "first in z": ([s], [flag, one]),
            }  # fmt: skip
            x, z = (np.column_stack(part) for part in columns[place])
            i = policy.choose(x, z, list(range(6))).index
            flagged += flag[i]
            policy.learn(i, x[i], z[i], 2 - 0.5 * flag[i] + 0.2 * s[i] + 0.1 * random.standard_normal())
        assert flagged < 50


@pytest.mark.parametrize("kind", [HyThompson, HyIDS])
@pytest.mark.parametrize("constant", ["none", "x", "z"])
def test_all_of_ten_products_with_one_hot_features_are_tried(kind: type[PosteriorPolicy], constant: str) -> None:
    random = np.random.default_rng(0)
    means = np.linspace(0.2, 0.7, 10)
    x = np.eye(10) if constant != "x" else np.hstack((np.ones((10, 1)), np.eye(10)))
    z = np.ones((10, 1)) if constant == "z" else np.zeros((10, 0))
    policy = kind(d1=x.shape[1], d2=z.shape[1], seed=3)  # type: ignore[call-arg]
    tried = []
    for _ in range(300):
        i = policy.choose(x, z, list(range(10))).index
        tried.append(i)
        policy.learn(i, x[i], z[i], means[i] + 0.1 * random.standard_normal())
    assert len(set(tried)) >= 8
    assert np.mean(means[tried[150:]]) > 0.6


def test_a_file_whose_estimator_holds_other_settings_is_refused(tmp_path: Path) -> None:
    policy = HyThompson(d1=1, d2=1, noise=0.5, seed=0)
    policy.noise = 0.25
    policy.save(tmp_path / "policy.npz")
    with pytest.raises(FileError, match="noise, memory or groups"):
        HyThompson.load(tmp_path / "policy.npz")


def test_refreshing_a_policy_with_given_settings_changes_nothing() -> None:
    policy = HyThompson(d1=2, d2=1, noise=0.1, scale=1.0, seed=0)
    policy.learn("a", [1.0, 0.0], [1.0], 1.0)
    before = policy.theta
    policy.refresh()
    assert (policy.theta == before).all()
    assert policy.learned is None


# ------------------------------------------------------------------ memories


@pytest.mark.parametrize("kind", [HyThompson, HyIDS])
def test_a_memory_is_a_setting_like_any_other(kind: Any) -> None:
    assert kind(d1=2, d2=1).memory is None
    fading, mixed = kind(d1=2, d2=1, memory=500), kind(d1=2, d2=1, memory="auto")
    assert fading.memory == 500.0
    assert fading.estimator.settings["memory"] == 500.0
    assert len(mixed.estimator.models) == 3
    assert "memory='auto'" in repr(mixed)
    assert mixed.copy().memory == "auto"
    assert mixed.start_delta().memory == "auto"
    with pytest.raises(ValueError, match=r"different memory: 500\.0 here, 'auto' there"):
        fading.merge(mixed)


@pytest.mark.parametrize(
    ("memory", "error", "message"),
    [
        ("long", ValueError, "memory must be a number, 'auto' or None, got 'long': pass a number of rounds"),
        (0, ValueError, "memory must lie between 1 and 1e15 rounds, got 0: pass"),
        (0.5, ValueError, "memory must lie between 1 and 1e15 rounds, got 0.5"),
        (float("inf"), ValueError, "memory must be finite"),
        (True, TypeError, "memory must be a number, got True"),
        ([5], TypeError, r"memory must be a number, got \[5\]"),
    ],
)
def test_what_is_no_memory_is_refused(memory: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        HyIDS(d1=2, d2=1, memory=memory)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [HyThompson, HyIDS])
def test_a_world_that_changes_costs_less_with_a_memory(kind: Any) -> None:
    """Two jumps in 3,000 rounds: over four seeds the regret is less than two thirds (it is about a third)."""
    regret = dict.fromkeys((None, 300, "auto"), 0.0)
    for seed in range(4):
        world = Synthetic(d1=5, d2=3, arms=5, noise=0.1, seed=seed, jumps=2)
        for memory in regret:
            regret[memory] += cumulative_regret(kind(d1=5, d2=3, memory=memory, seed=seed), world, 3000)[-1]
    assert regret["auto"] < regret[None] * 2 / 3
    assert regret[300] < regret[None] * 2 / 3


def test_propensities_of_several_models_are_averages_by_weight() -> None:
    policy, page = HyThompson(d1=4, d2=3, memory="auto", propensity_draws=200, seed=0), Page(4, 3)
    page.play(policy, 60)
    mixture = policy.estimator
    assert isinstance(mixture, LearnedRidge)
    x, z = page.features()
    weights = np.array([0.2, 0.5, 0.3])
    of_models = []
    for k in range(3):
        mixture.weights[:3] = np.eye(3)[k]
        of_models.append(policy.propensities(x, z, ARMS))
    mixture.weights[:3] = weights
    assert_allclose(policy.propensities(x, z, ARMS), weights @ of_models)
    assert 0 < policy.choose(x, z, ARMS).propensity <= 1  # type: ignore[operator]


def test_the_model_that_decides_is_drawn_for_every_decision() -> None:
    policy, page = HyIDS(d1=4, d2=3, memory="auto", seed=0), Page(4, 3)
    page.play(policy, 60)
    mixture = policy.estimator
    assert isinstance(mixture, LearnedRidge)
    mixture.weights[:3] = 0.3, 0.3, 0.4
    x, z = page.features()
    slots = np.array([mixture.slot(arm) for arm in ARMS])
    means = [model.score(x, z, slots).mean for model in mixture.models]
    seen = set()
    for i in range(60):
        choice = policy.choose(x, z, ARMS, key=i)
        assert choice == policy.choose(x, z, ARMS, key=i)
        seen |= {k for k in range(3) if np.isclose(means[k][choice.index], choice.mean, rtol=1e-12)}
    assert seen == {0, 1, 2}


@pytest.mark.slow
def test_posterior_samples_have_the_joint_posterior_mean_and_covariance() -> None:
    """20,000 joint draws of five arms' scores; mean and covariance within 6 standard errors (false alarms < 1e-6)."""
    noise, scale = 0.5, 1.5
    policy = HyThompson(d1=4, d2=3, noise=noise, scale=scale, seed=0)
    page = Page(4, 3)
    dense = Dense(4, 3, ARMS, noise**2 / scale**2)
    for t in range(15):
        x, z = page.features(1)
        row = ARMS[t % 4], x[0], z[0], page.reward(t % 4, x[0], z[0])
        policy.learn(*row)
        dense.learn(*row)
    x, z = page.features()
    embedded = np.array([dense.embed(arm, x[i], z[i]) for i, arm in enumerate(ARMS)])
    mean = embedded @ dense.parameters
    covariance = noise**2 * embedded @ np.linalg.solve(dense.matrix, embedded.T)
    # Joint draws, against those from the dense posterior.
    n = 20_000
    rows = policy.estimator.checked_candidates(x, z, ARMS, admit=False)
    y, square, product = arrow.eliminated(x, z, rows.slots, policy.estimator.arm_score, policy.ridge, np.empty(0))
    theta_root = np.linalg.inv(np.linalg.cholesky(np.linalg.inv(np.linalg.inv(dense.matrix)[:4, :4])).T)
    scores = np.empty((n, 5))
    wins = np.zeros(5)
    for k in range(n):
        xi = np.empty(4 + 5)
        random.fill_normals(1, 0, k, xi)
        theta = policy.theta + noise * theta_root @ xi[:4]
        scores[k] = y @ theta + product + noise * np.sqrt(square) * xi[4:]
        if k < 4000:
            values = decisions.sample_values(y, 4, square, product, policy.estimator.shared_score, noise, 1, 0, k)
            assert_allclose(values, scores[k], rtol=1e-9, atol=1e-12)
        wins[int(np.argmax(scores[k]))] += 1
    error = np.sqrt(np.diag(covariance) / n)
    assert (np.abs(scores.mean(axis=0) - mean) < 6 * error).all()
    spread = np.sqrt((np.outer(np.diag(covariance), np.diag(covariance)) + covariance**2) / n)
    assert (np.abs(np.cov(scores.T) - covariance) < 6 * spread).all()
    reference = np.random.default_rng(2).multivariate_normal(mean, covariance, size=n)
    expected = np.bincount(reference.argmax(axis=1), minlength=5) / n
    assert (np.abs(wins / n - expected) < 6 * np.sqrt(2 * expected.clip(1e-3) / n)).all()


def test_thompson_propensities_are_sampled_frequencies_and_leave_decisions_alone() -> None:
    """Choices of a policy with 3,000 seeds; frequencies within 6 standard errors."""
    page = Page(4, 3)
    x, z = page.features()
    log = [(ARMS[t % 5], *(part[0] for part in page.features(1)), 0.1 * t) for t in range(10)]
    counts = np.zeros(5)
    n = 3000
    policy = HyThompson(d1=4, d2=3, noise=0.5, seed=0)
    for row in log:
        policy.learn(*row)
    for seed in range(n):
        policy.reseed(seed)
        counts[policy.choose(x, z, ARMS).index] += 1
    frequencies = counts / n
    estimating = HyThompson(d1=4, d2=3, noise=0.5, propensity_draws=4000, seed=0)
    quiet = HyThompson(d1=4, d2=3, noise=0.5, seed=0)
    for row in log:
        estimating.learn(*row)
        quiet.learn(*row)
    p = estimating.propensities(x, z, ARMS)
    assert (np.abs(p - frequencies) < 6 * np.sqrt(2 * frequencies.clip(1e-3) / n)).all()
    for _ in range(5):
        a, b = estimating.choose(x, z, ARMS), quiet.choose(x, z, ARMS)
        assert a.index == b.index
        assert b.propensity is None
        assert a.propensity == pytest.approx(p[a.index], abs=6 * math.sqrt(0.25 / 4000) * 1.5)


BALL_WORLD = Synthetic(d1=6, d2=3, arms=12, noise=0.1, law="ball", seed=3)


def test_regret_is_far_below_that_of_uniform_choice_at_default_settings() -> None:
    """Measured: HyIDS 23, HyThompson 28, uniform choice 1,100 over 2,000 rounds; the margin is tenfold."""
    regret = {
        kind: cumulative_regret(kind(d1=6, d2=3, seed=0), BALL_WORLD, 2000)[-1] for kind in (HyIDS, HyThompson, Uniform)
    }
    assert 10 * max(regret[HyIDS], regret[HyThompson]) < regret[Uniform]


def test_choices_are_uniform_until_a_reward_is_not_zero() -> None:
    policy, page = HyIDS(d1=4, d2=3, seed=0), Page(4, 3)
    seen = set()
    for _ in range(60):
        x, z = page.features()
        np.testing.assert_allclose(policy.propensities(x, z, ARMS), 1 / len(ARMS))
        choice = policy.choose(x, z, ARMS)
        assert choice.propensity == pytest.approx(1 / len(ARMS))
        policy.learn(choice.arm, x[choice.index], z[choice.index], 0.0)
        seen.add(choice.arm)
    assert seen == set(ARMS)
    policy.learn(ARMS[0], x[0], z[0], 1.0)
    assert policy.choose(x, z, ARMS).propensity is None


def test_groups_stay_in_files_deltas_loops_and_texts() -> None:
    groups = (0, 0, 1, 1), (0, 1, 1)
    name, settings = parse_policy("HyIDS:groups=[[0, 0, 1, 1], [0, 1, 1]]")
    compiled = make_policy(name, settings, d1=4, d2=3, arms=6, horizon=200, seed=3)
    contract = HyIDS(d1=4, d2=3, groups=groups, seed=3)
    world = Synthetic(d1=4, d2=3, arms=6, noise=0.1, seed=5)
    cumulative_regret(compiled, world, 200)
    noises = iter(world.noise * world.noise_stream().standard_normal(200))
    for rounds, means, best in world.rounds(200):
        rewards = np.array([row + next(noises) for row in means])
        play_by_contract(contract, rounds, rewards, np.empty(len(best), np.int64))
    assert_same_state(compiled, contract)
    delta, loaded = contract.start_delta(), HyIDS.from_bytes(contract.to_bytes())
    assert delta.groups == loaded.groups == groups
    x, z = np.random.default_rng(0).normal(size=(6, 4)), np.random.default_rng(1).normal(size=(6, 3))
    delta.learn_batch(range(6), x, z, np.arange(6.0))
    loaded.merge(delta)
    contract.learn_batch(range(6), x, z, np.arange(6.0))
    contract.refresh()
    assert loaded.learned is not None
    assert contract.learned is not None
    for ours, theirs in zip(loaded.learned.groups, contract.learned.groups, strict=True):
        assert ours[:3] == theirs[:3]
        assert_allclose(ours[3:], theirs[3:], rtol=1e-6)
    batch = loaded.choose_batch(np.stack([x, x]), np.stack([z, z]), range(6))
    assert batch.indices.shape == (2,)
    with pytest.raises(ValueError, match="different groups"):
        loaded.merge(HyIDS(d1=4, d2=3))
    with pytest.raises(ValueError, match="they are for scales that are learned"):
        HyThompson(d1=4, d2=3, noise=1.0, scale=1.0, groups=groups)
