"""Every policy through the conformance suite, and what is particular to each."""

from __future__ import annotations

import copy
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from hybandits import (
    AsWritten,
    Constant,
    DisLinUCB,
    EpsilonGreedy,
    Greedy,
    HyLinUCB,
    HyRan,
    HyRanWithoutCrossBlocks,
    HyThompson,
    LiHybrid,
    LinUCB,
    Policy,
    SelfNormalised,
    SupLinUCB,
    Uniform,
)
from hybandits.kernels import decisions
from hybandits.testing import ARMS, Page, PolicyConformance, fingerprint
from tests.support.oracle import Dense


class TestHyLinUCB(PolicyConformance):
    def make(self, d1: int, d2: int, seed: int) -> Policy:
        return HyLinUCB(d1=d1, d2=d2, noise=0.1, seed=seed)


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


class TestLiHybrid(PolicyConformance):
    def make(self, d1: int, d2: int, seed: int) -> Policy:
        return LiHybrid(d1=d1, d2=d2, alpha=0.5, seed=seed)


class TestHyRan(PolicyConformance):
    def make(self, d1: int, d2: int, seed: int) -> Policy:
        return HyRan(d1=d1, d2=d2, arm_count=8, seed=seed)

    def make_open(self, d1: int, d2: int, seed: int) -> Policy:
        return HyRan(d1=d1, d2=d2, seed=seed)


class TestHyRanTheory(PolicyConformance):
    def make(self, d1: int, d2: int, seed: int) -> Policy:
        return HyRan(d1=d1, d2=d2, p=0.8, ridge_schedule="theory", arm_count=8, seed=seed)


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

    def make(self, d1: int, d2: int, seed: int) -> Policy:
        return HyThompson(d1=d1, d2=d2, noise=0.1, seed=seed)


class TestHyThompsonWithPropensities(PolicyConformance):
    deterministic = False

    def make(self, d1: int, d2: int, seed: int) -> Policy:
        return HyThompson(d1=d1, d2=d2, noise=0.1, scale=2.0, propensity_draws=20, seed=seed)


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


class TestEpsilonAroundThompson(PolicyConformance):
    deterministic = False

    def make(self, d1: int, d2: int, seed: int) -> Policy:
        inner = HyThompson(d1=d1, d2=d2, noise=0.1, propensity_draws=10, seed=seed)
        return EpsilonGreedy(inner, epsilon=0.3, seed=seed)


# ------------------------------------------------------------------ upper confidence bounds


@pytest.mark.parametrize(
    ("kind", "dimension", "size", "per_arm"),
    [
        (HyLinUCB, 4 + 3, math.sqrt(0.8**2 + 0.5**2), False),
        (LinUCB, 4 + 3 * 5, math.sqrt(0.8**2 + 5 * 0.5**2), False),
        (DisLinUCB, 4 + 3, math.sqrt(0.8**2 + 0.5**2), True),
    ],
)
def test_choices_are_those_of_the_formulas(kind: Any, dimension: int, size: float, per_arm: bool) -> None:
    ridge, noise, delta, lx, lz = 0.3, 0.2, 0.05, 1.5, 0.7
    coefficient = SelfNormalised(noise=noise, bound=(0.8, 0.5), feature_bound=(lx, lz), delta=delta)
    policy = kind(d1=4, d2=3, exploration=coefficient, ridge=ridge, seed=0)
    page = Page(4, 3)
    dense = [Dense(0, 7, [0], ridge) for _ in ARMS] if per_arm else [Dense(4, 3, ARMS, ridge)]
    for t in range(80):
        x, z = page.features()
        values = []
        for i, arm in enumerate(ARMS):
            if per_arm:
                mean, width = dense[i].score([0], x[i : i + 1, :0], np.hstack([x[i : i + 1], z[i : i + 1]]))
                pulls = len(dense[i].rows)
            else:
                mean, width = dense[0].score([arm], x[i : i + 1], z[i : i + 1])
                pulls = t
            gamma = size * math.sqrt(ridge) + noise * math.sqrt(
                2 * math.log(1 / delta) + dimension * math.log(1 + pulls * (lx**2 + lz**2) / (ridge * dimension))
            )
            values.append(mean[0] + gamma * width[0])
        choice = policy.choose(x, z, ARMS)
        i = choice.index
        assert values[i] == pytest.approx(max(values), rel=1e-9)
        reward = page.reward(i, x[i], z[i])
        policy.learn(choice.arm, x[i], z[i], reward)
        if per_arm:
            dense[i].learn(0, np.zeros(0), np.concatenate([x[i], z[i]]), reward)
        else:
            dense[0].learn(choice.arm, x[i], z[i], reward)


def test_radii_and_ridges_as_written_in_the_paper() -> None:
    k, horizon, delta, s = 5, 10_000, 0.02, 1.7
    coefficient = AsWritten(horizon=horizon, delta=delta, bound=s, arms=k)
    expected = {
        LinUCB: (1.0, s * math.sqrt(k) + math.sqrt(2 * (4 + 3 * k) * math.log(horizon / delta))),
        DisLinUCB: (1.0, 2 * math.sqrt(s) + math.sqrt(2 * 7 * math.log(k * horizon / delta))),
        HyLinUCB: (5.0, 2 * (s * math.sqrt(k) + math.sqrt(2 * 7 * math.log(horizon / delta)))),
    }
    for kind, (ridge, gamma) in expected.items():
        policy = kind(d1=4, d2=3, exploration=coefficient)
        assert policy.ridge == ridge
        assert policy.radius == pytest.approx(gamma, rel=1e-14)


def test_the_number_of_arms_met_sizes_radius_and_ridge() -> None:
    free = HyLinUCB(d1=4, d2=3, exploration=AsWritten(horizon=1000))
    fixed = HyLinUCB(d1=4, d2=3, exploration=AsWritten(horizon=1000, arms=7))
    page = Page(4, 3)
    for t in range(40):
        x, z = page.features()
        arms = ARMS[:3] if t < 20 else ARMS
        choice = free.choose(x[: len(arms)], z[: len(arms)], arms)
        assert free.ridge == len(arms)
        for policy in (free, fixed):
            policy.learn(choice.arm, x[choice.index], z[choice.index], 0.1 * t)
    free.choose(*page.features(2), ["six", "seven"])
    assert free.ridge == 7.0
    assert free.radius == fixed.radius
    x, z = page.features()
    assert_allclose(free.predict(x, z, ARMS), fixed.predict(x, z, ARMS), rtol=1e-10)
    free.forget("six")
    assert free.ridge == 7.0, "a ridge is never lowered"

    shared = LinUCB(d1=4, d2=3, noise=0.1)
    before = shared.radius
    shared.choose(*page.features(5), ARMS)
    assert shared.radius > before


def test_learning_new_arms_without_choosing_raises_the_ridge_too() -> None:
    policy = HyLinUCB(d1=1, d2=1, exploration=AsWritten(horizon=10))
    for i in range(4):
        policy.learn(i, [1.0], [1.0], 1.0)
        assert policy.ridge == i + 1


def test_plain_linucb_is_the_case_without_arm_features() -> None:
    policy = LinUCB(d1=3, d2=0, noise=0.1)
    random = np.random.default_rng(0)
    x = random.normal(size=(4, 3))
    choice = policy.choose(x, None, list("abcd"))
    policy.learn(choice.arm, x[choice.index], None, reward=1.0)
    expected = np.linalg.solve(np.eye(3) + np.outer(x[choice.index], x[choice.index]), x[choice.index])
    assert_allclose(policy.theta, expected)
    assert policy.choose(x=x, arms=list("abcd")).arm in "abcd"


def test_constant_coefficients() -> None:
    page = Page(4, 3)
    li, same, greedy = (
        LiHybrid(d1=4, d2=3, alpha=0.7),
        HyLinUCB(d1=4, d2=3, exploration=Constant(alpha=0.7), ridge=1.0),
        Greedy(d1=4, d2=3),
    )
    for _ in range(30):
        x, z = page.features()
        choice = li.choose(x, z, ARMS)
        assert choice == same.choose(x, z, ARMS)
        assert greedy.choose(x, z, ARMS).index == int(np.argmax(greedy.predict(x, z, ARMS).mean))
        reward = page.reward(choice.index, x[choice.index], z[choice.index])
        for policy in (li, same, greedy):
            policy.learn(choice.arm, x[choice.index], z[choice.index], reward)


# ------------------------------------------------------------------ Thompson sampling


def test_posterior_samples_have_the_joint_posterior_mean_and_covariance() -> None:
    """20,000 joint draws of five arms' scores; mean and covariance within 6 standard errors (false alarms < 1e-6)."""
    from hybandits.kernels import arrow

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
    # Joint draws: the kernel returns only the winner, so count wins against those of draws from the dense posterior.
    n = 20_000
    random = np.random.default_rng(1)
    rows = policy.estimator.checked_candidates(x, z, ARMS, admit=False)
    y, square, product = np.empty((5, 4)), np.empty(5), np.empty(5)
    arrow.eliminate_rows(x, z, rows.slots, policy.estimator.arm_score, policy.ridge, y, square, product)
    theta_root = np.linalg.inv(np.linalg.cholesky(np.linalg.inv(np.linalg.inv(dense.matrix)[:4, :4])).T)
    scores = np.empty((n, 5))
    wins = np.zeros(5)
    for k in range(n):
        xi = random.standard_normal(4 + 5)
        theta = policy.theta + noise * theta_root @ xi[:4]
        scores[k] = y @ theta + product + noise * np.sqrt(square) * xi[4:]
        if k < 4000:
            best = decisions.sample_best(y, 4, square, product, policy.estimator.shared_score, noise, xi, 0)
            assert best == int(np.argmax(scores[k]))
        wins[int(np.argmax(scores[k]))] += 1
    error = np.sqrt(np.diag(covariance) / n)
    assert (np.abs(scores.mean(axis=0) - mean) < 6 * error).all()
    spread = np.sqrt((np.outer(np.diag(covariance), np.diag(covariance)) + covariance**2) / n)
    assert (np.abs(np.cov(scores.T) - covariance) < 6 * spread).all()
    reference = np.random.default_rng(2).multivariate_normal(mean, covariance, size=n)
    expected = np.bincount(reference.argmax(axis=1), minlength=5) / n
    assert (np.abs(wins / n - expected) < 6 * np.sqrt(2 * expected.clip(1e-3) / n)).all()


def test_thompson_propensities_are_sampled_frequencies_and_leave_decisions_alone() -> None:
    """Choices of 3,000 policies that differ in nothing but the seed; frequencies within 6 standard errors."""
    page = Page(4, 3)
    x, z = page.features()
    log = [(ARMS[t % 5], *(part[0] for part in page.features(1)), 0.1 * t) for t in range(10)]
    counts = np.zeros(5)
    n = 3000
    for seed in range(n):
        policy = HyThompson(d1=4, d2=3, noise=0.5, seed=seed)
        for row in log:
            policy.learn(*row)
        counts[policy.choose(x, z, ARMS).index] += 1
    frequencies = counts / n
    teller = HyThompson(d1=4, d2=3, noise=0.5, propensity_draws=4000, seed=0)
    quiet = HyThompson(d1=4, d2=3, noise=0.5, seed=0)
    for row in log:
        teller.learn(*row)
        quiet.learn(*row)
    p = teller.propensities(x, z, ARMS)
    assert (np.abs(p - frequencies) < 6 * np.sqrt(2 * frequencies.clip(1e-3) / n)).all()
    for _ in range(5):
        a, b = teller.choose(x, z, ARMS), quiet.choose(x, z, ARMS)
        assert a.index == b.index
        assert b.propensity is None
        assert a.propensity == pytest.approx(p[a.index], abs=6 * math.sqrt(0.25 / 4000) * 1.5)


# ------------------------------------------------------------------ chance


def test_epsilon_greedy_propensities_are_true() -> None:
    """20,000 choices; each arm's frequency within 6 standard errors of its propensity."""
    policy = EpsilonGreedy(Greedy(d1=4, d2=3), epsilon=0.4, seed=0)
    page = Page(4, 3)
    page.play(policy, 20)
    x, z = page.features()
    p = policy.propensities(x, z, ARMS)
    assert sorted(p.tolist()) == pytest.approx([0.08] * 4 + [0.68])
    counts = np.zeros(5)
    n = 20_000
    for _ in range(n):
        choice = policy.choose(x, z, ARMS)
        assert choice.propensity == pytest.approx(p[choice.index])
        counts[choice.index] += 1
    assert (np.abs(counts / n - p) < 6 * np.sqrt(p * (1 - p) / n)).all()


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


def test_epsilon_greedy_bounds_and_what_it_wraps() -> None:
    with pytest.raises(ValueError, match=r"epsilon must lie in \[0, 1\], got 1.5"):
        EpsilonGreedy(Greedy(d1=1, d2=1), epsilon=1.5)
    with pytest.raises(TypeError, match="policy must be a policy to wrap"):
        EpsilonGreedy("greedy")  # type: ignore[arg-type]


def test_uniform_is_uniform() -> None:
    """10,000 choices, 6 standard errors."""
    policy = Uniform(d1=1, d2=1, seed=0)
    x = np.ones((4, 1))
    counts = np.zeros(4)
    for _ in range(10_000):
        choice = policy.choose(x, x, list("abcd"))
        assert choice.propensity == 0.25
        counts[choice.index] += 1
    assert (np.abs(counts / 1e4 - 0.25) < 6 * math.sqrt(0.25 * 0.75 / 1e4)).all()


# ------------------------------------------------------------------ HyRan


class DenseHyRan:
    """Algorithm 1 of Kim et al. on embedded vectors with a dense matrix."""

    def __init__(self, n: int, p: float, cross: bool) -> None:
        self.v, self.rhs, self.t, self.p, self.cross = np.eye(n), np.zeros(n), 0, p, cross

    def add(self, row: np.ndarray, target: float, d1: int) -> None:
        outer = np.outer(row, row)
        if not self.cross:
            outer[:d1, d1:] = 0
            outer[d1:, :d1] = 0
        self.v += outer
        self.rhs += row * target

    def solve(self, ridge: float) -> np.ndarray:
        return np.linalg.solve(self.v + ridge * np.eye(len(self.rhs)), self.rhs)


@pytest.mark.parametrize("kind", [HyRan, HyRanWithoutCrossBlocks])
@pytest.mark.parametrize("schedule", ["experiments", "theory"])
def test_hyran_is_its_algorithm_on_a_dense_matrix(kind: Any, schedule: Any) -> None:
    d1, d2, k, p = 4, 3, 5, 0.6
    policy = kind(d1=d1, d2=d2, p=p, ridge_schedule=schedule, arm_count=k, seed=3)
    dense = DenseHyRan(d1 + d2 * k, p, cross=kind is HyRan)
    place = Dense(d1, d2, ARMS, 1.0)
    random = copy.deepcopy(policy._random)  # the policy's own stream: one uniform per reward
    page = Page(d1, d2)
    size = d1 + d2 * k
    drawn = 0
    for t in range(1, 61):
        x, z = page.features()
        rows = np.array([place.embed(arm, x[i], z[i]) for i, arm in enumerate(ARMS)])
        ridge = 2 * size * math.log(t + 1) if schedule == "experiments" else size * math.log(4 * t**2 / 0.01)
        values = rows @ dense.solve(ridge)
        choice = policy.choose(x, z, ARMS)
        a = choice.index
        assert choice.mean == pytest.approx(values[a], rel=1e-9, abs=1e-12)
        assert values[a] == pytest.approx(values.max(), rel=1e-9, abs=1e-12)
        width = math.sqrt(rows[a] @ np.linalg.solve(dense.v + ridge * np.eye(size), rows[a]))
        assert choice.width == pytest.approx(width, rel=1e-9)
        reward = page.reward(a, x[a], z[a])
        policy.learn(choice.arm, x[a], z[a], reward, receipt=choice.receipt)
        if random.random() < p:
            drawn += 1
            check = dense.solve(math.sqrt(max(t - 1, 1)))
            targets = rows @ check
            targets[a] = (1 - 1 / p) * targets[a] + reward / p
            for row, target in zip(rows, targets, strict=True):
                dense.add(row, target, d1)
        else:
            dense.add(rows[a], reward, d1)
    assert 20 < drawn < 55


def test_hyran_receipts_are_checked() -> None:
    policy = HyRan(d1=1, d2=1, seed=0)
    x = np.ones((2, 1))
    choice = policy.choose(x, x, ["a", "b"])
    with pytest.raises(TypeError, match=r"receipt must be choice\.receipt"):
        policy.learn("a", x[0], x[0], 1.0, receipt=3)
    with pytest.raises(ValueError, match="'c' is not among the candidates"):
        policy.learn("c", x[0], x[0], 1.0, receipt=choice.receipt)
    with pytest.raises(ValueError, match="not those of its receipt"):
        policy.learn("a", 2 * x[0], x[0], 1.0, receipt=choice.receipt)
    with pytest.raises(ValueError, match="receipts has 1 entries but there are 2 rows"):
        policy.learn_many(["a", "b"], x, x, [1.0, 1.0], receipts=[None])
    x[:] = 7.0  # the caller may use its arrays again
    assert (choice.receipt.x == 1.0).all()


def test_hyran_refuses_what_its_sums_cannot_bear_and_changes_nothing(tmp_path: Path) -> None:
    policy = HyRan(d1=3, d2=3, seed=0)
    random = np.random.default_rng(0)
    refused, unchanged = 0, True
    policy.choose(*np.ones((2, 4, 3)), range(4))
    for _ in range(12):
        x = random.normal(size=(4, 3)) * 1e8
        before = fingerprint(policy, tmp_path)
        try:
            choice = policy.choose(x, x, range(4))
            before = fingerprint(policy, tmp_path)
            policy.learn(choice.arm, x[choice.index], x[choice.index], 1.0, receipt=choice.receipt)
        except ValueError as problem:
            refused += "rescale" in str(problem)
            unchanged = unchanged and fingerprint(policy, tmp_path) == before
        assert np.isfinite(policy.table.shared).all()
        assert np.isfinite(policy.table.own).all()
    assert refused > 0
    assert unchanged
    policy.save(tmp_path / "p.npz")
    HyRan.load(tmp_path / "p.npz")


def test_hyran_does_not_bring_forgotten_arms_back_through_late_receipts() -> None:
    policy = HyRan(d1=1, d2=1, p=0.999, seed=0)
    x = np.ones((3, 1))
    choice = policy.choose(x, x, ["a", "b", "c"])
    other = next(arm for arm in "abc" if arm != choice.arm)
    policy.forget(other)
    policy.learn(choice.arm, x[0], x[0], 1.0, receipt=choice.receipt)
    assert other not in policy.arms


def test_hyran_without_cross_blocks_is_another_estimator() -> None:
    page = Page(4, 3)
    one, two = HyRan(d1=4, d2=3, seed=0), HyRanWithoutCrossBlocks(d1=4, d2=3, seed=0)
    x, z = page.features(20)
    arms = [ARMS[i % 5] for i in range(20)]
    for policy in (one, two):
        policy.learn_many(arms, x, z, np.arange(20.0))
    assert np.abs(one.theta - two.theta).max() > 1e-4
    with pytest.raises(ValueError, match="ridge_schedule must be"):
        HyRan(d1=1, d2=1, ridge_schedule="other")  # type: ignore[arg-type]


# ------------------------------------------------------------------ SupLinUCB


def test_suplinucb_walks_as_chu_et_al_say() -> None:
    horizon, k = 300, 5
    policy = SupLinUCB(d1=1, d2=1, horizon=horizon, delta=0.05, arm_count=k)
    alpha = math.sqrt(math.log(2 * horizon * k / 0.05) / 2)
    assert len(policy.levels) == math.ceil(math.log(horizon))
    dense = [Dense(1, 1, ARMS, 1.0) for _ in policy.levels]
    page = Page(1, 1)
    levels = set()
    for _ in range(290):
        x, z = page.features()
        choice = policy.choose(x, z, ARMS)
        left = list(range(k))
        for s, level in enumerate(dense, start=1):
            mean, width = level.score([ARMS[i] for i in left], x[left], z[left])
            w = alpha * width
            if (w <= 1 / math.sqrt(horizon)).all():
                expected = left[int(np.argmax(mean + w))], 0
                break
            if (w > 2.0**-s).any():
                expected = left[int(np.argmax(w))], s
                break
            best = (mean + w).max()
            left = [i for i, value in zip(left, mean + w, strict=True) if value >= best - 2.0 ** (1 - s)]
        assert (choice.index, choice.receipt) == expected
        levels.add(choice.receipt)
        i = choice.index
        reward = page.reward(i, x[i], z[i])
        policy.learn(choice.arm, x[i], z[i], reward, receipt=choice.receipt)
        if choice.receipt:
            dense[choice.receipt - 1].learn(choice.arm, x[i], z[i], reward)
    assert len(levels) > 1


def test_suplinucb_learns_batches_one_by_one_also_while_it_counts_arms() -> None:
    for seed in range(10):
        page = Page(2, 1, seed)
        x, z = page.features(60)
        arms = [int(i) for i in np.random.default_rng(seed).integers(0, 25, 60)]
        one, two = (SupLinUCB(d1=2, d2=1, horizon=400) for _ in range(2))
        for row in zip(arms, 3 * x, 3 * z, np.ones(60), strict=True):
            one.learn(*row)
        two.learn_many(arms, 3 * x, 3 * z, np.ones(60))
        assert [level.rounds for level in one.levels] == [level.rounds for level in two.levels]


def test_suplinucb_does_not_learn_from_rounds_that_exploit() -> None:
    policy = SupLinUCB(d1=1, d2=1, horizon=50, alpha=0.001)
    x = np.ones((2, 1))
    choice = policy.choose(x, x, ["a", "b"])
    assert choice.receipt == 0
    policy.learn(choice.arm, x[0], x[0], 1.0, receipt=0)
    assert policy.rounds == 1
    assert all(level.rounds == 0 for level in policy.levels)
    with pytest.raises(ValueError, match="receipt must be at most"):
        policy.learn("a", x[0], x[0], 1.0, receipt=99)
    with pytest.raises(TypeError, match="receipt must be a whole number"):
        policy.learn("a", x[0], x[0], 1.0, receipt="level")


# ------------------------------------------------------------------ settings


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: HyLinUCB(d1=0, d2=0), ValueError, "d1 and d2 are both 0"),
        (lambda: HyLinUCB(d1=-1, d2=2), ValueError, "d1 must be at least 0, got -1"),
        (lambda: HyLinUCB(d1=1.5, d2=2), TypeError, "d1 must be a whole number, got 1.5"),  # type: ignore[arg-type]
        (lambda: HyLinUCB(d1=True, d2=2), TypeError, "d1 must be a whole number, got True"),
        (lambda: HyLinUCB(d1=1, d2=1, ridge=0.0), ValueError, "ridge must be positive, got 0.0"),
        (lambda: HyLinUCB(d1=1, d2=1, ridge=math.nan), ValueError, "ridge must be finite, got nan"),
        (lambda: HyLinUCB(d1=1, d2=1, ridge="1"), TypeError, "ridge must be a number, got '1'"),  # type: ignore[arg-type]
        (lambda: HyLinUCB(d1=1, d2=1, noise=-0.1), ValueError, "noise must be positive, got -0.1"),
        (lambda: HyLinUCB(d1=1, d2=1, seed=-3), ValueError, "seed must be at least 0, got -3"),
        (lambda: HyLinUCB(d1=1, d2=1, seed=0.5), TypeError, "seed must be a whole number"),  # type: ignore[arg-type]
        (lambda: HyLinUCB(d1=1, d2=1, exploration=0.5), TypeError, "exploration must be a coefficient"),  # type: ignore[arg-type]
        (
            lambda: HyLinUCB(d1=1, d2=1, noise=0.1, exploration=Constant(alpha=1.0)),
            ValueError,
            "noise=0.1 and exploration=.* were both given",
        ),
        (lambda: HyLinUCB(d1=1, d2=1, ridge=1e-30), ValueError, "ridge must lie between 1e-20 and 1e20, got 1e-30"),
        (lambda: HyLinUCB(d1=1, d2=1, ridge=10**400), ValueError, "ridge must be finite"),
        (lambda: HyLinUCB(d1=1, d2=1, exploration=SelfNormalised), TypeError, "exploration must be a coefficient"),  # type: ignore[arg-type]
        (lambda: HyThompson(d1=1, d2=1, noise=1e200), ValueError, r"noise=1e\+200 and scale=1.0 are too far apart"),
        (lambda: SelfNormalised(bound=1e200), ValueError, r"bound must lie between 1e-50 and 1e50, got 1e\+200"),
        (lambda: AsWritten(horizon=10**400), ValueError, "horizon must be finite"),
        (lambda: HyThompson(d1=1, d2=1, noise=0.0), ValueError, "noise must be positive, got 0.0"),
        (lambda: HyThompson(d1=1, d2=1, scale=-1.0), ValueError, "scale must be positive, got -1.0"),
        (lambda: HyThompson(d1=1, d2=1, propensity_draws=-1), ValueError, "propensity_draws must be at least 0"),
        (lambda: HyRan(d1=1, d2=1, p=1.0), ValueError, r"p must lie in \(0, 1\), got 1.0"),
        (lambda: HyRan(d1=1, d2=1, arm_count=0), ValueError, "arm_count must be at least 1"),
        (lambda: SupLinUCB(d1=1, d2=1, horizon=1), ValueError, "horizon must be at least 2, got 1"),
        (lambda: SupLinUCB(d1=1, d2=1, horizon=9, alpha=0.0), ValueError, "alpha must be positive, got 0.0"),
        (lambda: LiHybrid(d1=1, d2=1, alpha=-1.0), ValueError, "alpha must not be negative, got -1.0"),
        (lambda: AsWritten(horizon=0), ValueError, "horizon must be at least 1, got 0"),
        (lambda: AsWritten(horizon=10, delta=1.0), ValueError, r"delta must lie in \(0, 1\), got 1.0"),
        (lambda: AsWritten(horizon=10, arms=0), ValueError, "arms must be at least 1, got 0"),
        (lambda: SelfNormalised(delta=0.0), ValueError, r"delta must lie in \(0, 1\), got 0.0"),
        (lambda: SelfNormalised(bound=(1.0, 2.0, 3.0)), ValueError, "bound must be one number or a pair"),  # type: ignore[arg-type]
        (lambda: SelfNormalised(feature_bound=0.0), ValueError, "feature_bound must be positive, got 0.0"),
    ],
)
def test_bad_settings_are_refused(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_hyper_parameters_are_keyword_only() -> None:
    with pytest.raises(TypeError):
        HyLinUCB(3, 2)  # type: ignore[misc]


def test_hyran_forgets_an_arm_for_good() -> None:
    """An arm integrated out leaves theta as it is; left in the sums as well, it would be eliminated twice."""
    random = np.random.default_rng(0)
    policy = HyRan(d1=3, d2=2, arm_count=3, seed=0)
    x, z = random.normal(size=(30, 3)), random.normal(size=(30, 2))
    policy.learn_many([f"a{i % 3}" for i in range(30)], x, z, random.normal(size=30))
    theta, beta = policy.theta, policy.beta("a1")
    policy.forget("a0")
    assert_allclose(policy.theta, theta, rtol=1e-10)
    assert_allclose(policy.beta("a1"), beta, rtol=1e-10)
