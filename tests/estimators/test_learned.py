"""The estimator that learns its settings, against dense algebra and against itself in other orders and shapes."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hybandits.estimators.learned import LearnedRidge, fixed_point
from hybandits.estimators.policy_file import FileError
from tests.support.learned_oracle import (
    Rows,
    centres_of,
    common_centre,
    design_of,
    fading,
    half_cauchy_density,
    make_rows,
    solve,
    step,
    weights_of,
)
from tests.support.learned_rows import (
    finish,
    learn_slowly,
    rebuild,
    saved,
    scales_of,
    settings,
    state,
    taught,
)

SHAPES = [(4, 3), (0, 3), (4, 0), (1, 1)]


@pytest.mark.parametrize("memory", [None, 30.0])
@pytest.mark.parametrize(("d1", "d2"), SHAPES)
def test_means_and_widths_are_the_posteriors_at_the_learned_settings(d1: int, d2: int, memory: float | None) -> None:
    rows = make_rows(2, d1=d1, d2=d2)
    estimator = taught(rows, memory=memory)
    estimator.refresh()
    weight = fading(rows, memory)
    scales, m = scales_of(estimator), estimator.models[0].common_mean
    arms = 6
    w1, w2 = weights_of(rows.x, weight), weights_of(rows.z, weight)
    a = np.sqrt(weight)[:, None] * design_of(rows, arms)
    # An arm's own parameters vary by s2 / w around m, and m is known only so well.
    uncertain = solve(rows, scales, arms, memory).inverse[d1 : d1 + d2, d1 : d1 + d2]
    precision = np.linalg.inv(np.diag(scales.s2 / (scales.sigma2 * w2)) + uncertain)
    ridge = np.zeros((d1 + arms * d2,) * 2)
    ridge[:d1, :d1] = np.diag(scales.sigma2 * w1 / scales.s1)
    ridge[d1:, d1:] = np.kron(np.eye(arms), precision)
    prior = np.concatenate((np.zeros(d1), np.tile(m, arms)))
    inverse = np.linalg.inv(a.T @ a + ridge)
    estimate = inverse @ (a.T @ (np.sqrt(weight) * rows.reward) + ridge @ prior)
    assert_allclose(estimator.theta, estimate[:d1], rtol=1e-9, atol=1e-12)
    random = np.random.default_rng(0)
    x, z = random.standard_normal((7, d1)), random.standard_normal((7, d2))
    mean, width = estimator.predict(x, z, [*range(6), "new"])
    for i in range(6):
        row = np.zeros(d1 + arms * d2)
        row[:d1] = x[i]
        row[d1 + i * d2 : d1 + (i + 1) * d2] = z[i]
        assert_allclose(mean[i], row @ estimate, rtol=1e-9, atol=1e-12)
        assert_allclose(width[i], np.sqrt(row @ inverse @ row), rtol=1e-9)
        if d2:
            assert_allclose(estimator.beta(i), estimate[d1 + i * d2 : d1 + (i + 1) * d2], rtol=1e-8, atol=1e-11)
    assert_allclose(mean[6], x[6] @ estimate[:d1] + z[6] @ m, rtol=1e-9, atol=1e-12)


def test_a_fixed_point_is_found_in_fewer_steps_than_by_repeating_them() -> None:
    random = np.random.default_rng(0)
    turn = np.linalg.qr(random.standard_normal((4, 4)))[0]
    shrink = turn @ np.diag([0.97, 0.9, 0.5, -0.3]) @ turn.T
    wanted, steps = random.standard_normal(4), 0

    def step(at: np.ndarray) -> np.ndarray:
        nonlocal steps
        steps += 1
        return wanted + shrink @ (at - wanted) + 0.01 * (at - wanted) ** 2

    assert_allclose(fixed_point(step, np.zeros(4)), wanted, rtol=0, atol=1e-10)
    assert steps < 40  # 900 if repeated


def test_the_noise_does_not_collapse_while_there_are_fewer_rows_than_parameters() -> None:
    for seed in range(5):
        rows = make_rows(seed, n=60, d1=5, d2=20, arms=6, noise=0.5)
        estimator = taught(rows)
        estimator.refresh()
        assert 0.1 < estimator.models[0].noise < 3.0


def test_an_intercept_carries_the_level_to_arms_unlike_those_that_were_played() -> None:
    """Articles have a constant and shares that sum to 1; one arm has no shares, only the constant."""
    random = np.random.default_rng(0)
    shares = random.dirichlet(np.ones(4), 12)
    vectors = np.hstack((np.ones((12, 1)), shares))
    for level in (1.0, 100.0):
        estimator = LearnedRidge(d1=5, d2=5)
        own = 0.2 * random.standard_normal(12)
        for _ in range(300):
            arm = int(random.integers(12))
            x = vectors[arm] * random.random()
            x[0] = 1.0
            estimator.learn(arm, x, vectors[arm], level + own[arm] + 0.05 * random.standard_normal())
        bare = np.eye(5)[:1]
        mean, width = estimator.predict(bare, bare, ["new"])
        assert abs(mean[0] - level) < 0.3
        assert 0.05 < width[0] * estimator.models[0].noise < 1.0


@pytest.mark.parametrize("memory", [None, 30.0])
def test_refreshing_reaches_the_fixed_point(memory: float | None) -> None:
    rows = make_rows(3)
    estimator = taught(rows, memory=memory)
    estimator.refresh()
    after, m = step(rows, scales_of(estimator), 6, memory)
    assert_allclose(np.concatenate([np.ravel(part) for part in after] + [m]), settings(estimator), rtol=1e-8)


@pytest.mark.parametrize("seed", range(6))
def test_refreshing_few_rewards_does_not_depend_on_the_order(seed: int) -> None:
    """Clicks, and rewards without any noise, fewer than parameters: the settings are where the steps end from the
    centres, and these depend on the data alone."""
    rows = make_rows(seed, n=10, d1=3, d2=2, arms=4, noise=0.0)
    if seed % 2:
        rows = rows._replace(reward=(rows.reward > 0).astype(float))
    forwards, backwards = taught(rows), taught(Rows(*(part[::-1] for part in rows)))
    forwards.refresh()
    before = settings(forwards)
    forwards.refresh()
    backwards.refresh()
    assert_allclose(settings(forwards), before, rtol=1e-9, atol=1e-12)
    assert_allclose(settings(backwards), before, rtol=1e-9, atol=1e-12)


def test_the_settings_are_about_right() -> None:
    rows = make_rows(4, n=3000, d1=10, d2=5, arms=40, noise=0.3)
    learned = taught(rows).heaviest.settings()
    assert learned is not None
    assert_allclose(learned.noise, 0.3, rtol=0.1)
    assert_allclose(learned.own_scale, 0.5, rtol=0.5)
    assert_allclose(learned.common_mean, 1.0, atol=0.35)
    assert 150 < learned.effective_parameters < 255


@pytest.mark.parametrize("budget", [1.0, 3000.0])
def test_a_refresh_that_is_spread_over_rows_ends_where_one_at_once_does(budget: float) -> None:
    """With next to no budget a row advances by one step or one arm; once it is through, the blocks are the same."""
    rows = make_rows(5, n=400)
    estimator = LearnedRidge(d1=4, d2=3)
    for arm, x, z, reward in zip(rows.arm.tolist(), rows.x, rows.z, rows.reward.tolist(), strict=True):
        learn_slowly(estimator, arm, x, z, reward, budget)
    finish(estimator, budget)
    theta, blocks = estimator.theta, estimator.models[0].scoring[0].copy()
    rebuild(estimator)
    assert_allclose(estimator.theta, theta, rtol=1e-9)
    assert_allclose(estimator.models[0].scoring[0], blocks, rtol=1e-7, atol=1e-10)


def test_rewards_of_zero_teach_no_settings_and_the_first_other_one_does() -> None:
    estimator = LearnedRidge(d1=2, d2=1)
    for i in range(50):
        estimator.learn(i % 3, np.array([1.0, i / 50]), np.array([1.0]), 0.0)
    assert not estimator.heaviest.ready
    assert estimator.heaviest.settings() is None
    estimator.learn(0, np.array([1.0, 0.5]), np.array([1.0]), 1.0)
    assert estimator.heaviest.ready
    assert np.isfinite(estimator.theta).all()


@pytest.mark.parametrize("reward", [1.0, -3.0])
def test_rewards_that_are_all_the_same(reward: float) -> None:
    random = np.random.default_rng(0)
    estimator = LearnedRidge(d1=2, d2=2)
    for i in range(200):
        estimator.learn(i % 4, random.standard_normal(2), np.array([1.0, random.random()]), reward)
    mean, width = estimator.predict(np.zeros((1, 2)), np.array([[1.0, 0.5]]), [0])
    assert mean[0] == pytest.approx(reward, abs=0.05)
    assert np.isfinite(width).all()


def test_a_feature_that_never_changed_leaves_the_mean_and_widens_it_where_a_candidate_differs() -> None:
    """The feature was always 0 or always 2; units make no difference."""
    random = np.random.default_rng(0)
    estimator = LearnedRidge(d1=4, d2=1)
    for i in range(40):
        x = np.array([*random.standard_normal(2), 0.0, 2.0])
        estimator.learn(i % 3, x, np.array([1.0]), 3.0 + random.standard_normal())
    one = np.ones((4, 1))
    x = np.array([[1.0, 1.0, 0.0, 2.0], [1.0, 1.0, 1.0, 2.0], [1.0, 1.0, 1e6, 2.0], [1.0, 1.0, 0.0, 4.0]])
    mean, width = estimator.predict(x, one, ["a", "b", "c", "d"])
    assert (mean == mean[0]).all()
    assert width[1] == width[2] == width[3] > width[0]
    variance = (width[1] ** 2 - width[0] ** 2) * estimator.models[0].noise ** 2
    assert variance == pytest.approx(estimator.models[0].arrays.features["scale"][0])
    refreshes = int(state(estimator).refreshes)
    estimator.learn(0, x[2], np.array([1.0]), 8.0)
    assert state(estimator).refreshes == refreshes + 1
    mean, _ = estimator.predict(x, one, ["a", "b", "c", "d"])
    assert mean[2] > mean[0] == pytest.approx(mean[1], rel=1e-3)


def test_new_features_do_not_hold_up_a_refresh_for_ever() -> None:
    """Every row has a feature that was never met, and one row does one step only: refreshes still come to their end."""
    random = np.random.default_rng(0)
    estimator = LearnedRidge(d1=60, d2=2)
    for i in range(60):
        x = np.zeros(60)
        x[i] = 1.0
        learn_slowly(estimator, i, x, random.random(2), 1.0 + random.random())
    assert estimator.heaviest.ready
    assert state(estimator).refreshes > 1


def test_until_the_first_refresh_has_ended_nothing_counts_as_learned() -> None:
    random = np.random.default_rng(0)
    estimator = LearnedRidge(d1=2, d2=2)
    for i in range(10):
        x, z = random.random((2, 2))
        learn_slowly(estimator, i, x, z, 1.0 if i == 9 else 0.0)
    assert state(estimator).phase > 0
    assert estimator.heaviest.settings() is None
    while state(estimator).phase:
        assert not estimator.heaviest.ready
        estimator.models[0].continue_refresh(1.0)
    settings_now = estimator.heaviest.settings()
    assert settings_now is not None
    assert settings_now.noise > 0


@pytest.mark.parametrize("size", [1e-45, 1e45])
def test_numbers_at_the_limits(size: float) -> None:
    rows = make_rows(10)
    for changed in (rows._replace(reward=rows.reward * size), rows._replace(x=rows.x * size, z=rows.z * size)):
        estimator = taught(changed)
        estimator.refresh()
        mean, width = estimator.predict(changed.x[:6], changed.z[:6], range(6))
        learned = estimator.heaviest.settings()
        assert learned is not None
        assert np.isfinite([*mean, *width, learned.noise, learned.evidence]).all()
        usual = taught(rows)
        usual.refresh()
        assert_allclose(width, usual.predict(rows.x[:6], rows.z[:6], range(6)).width, rtol=1e-6)


def test_numbers_that_are_too_small_count_as_zero() -> None:
    estimator = LearnedRidge(d1=2, d2=1)
    for _ in range(5):
        estimator.learn("a", np.array([1e-60, 1.0]), np.array([1.0]), 1e-60)
    assert not estimator.heaviest.ready
    for _ in range(5):
        estimator.learn("a", np.array([1e-60, 1.0]), np.array([1.0]), 1.0)
    assert estimator.models[0].arrays.features["seen"].tolist() == [0, 10, 10]
    assert np.isfinite(estimator.predict(np.array([[1e50, 1.0]]), np.ones((1, 1)), ["a"])).all()


def test_a_level_far_above_the_noise_is_no_noise() -> None:
    random = np.random.default_rng(0)
    for level in (0.0, 1e8):
        estimator = LearnedRidge(d1=1, d2=1)
        for i in range(400):
            x = random.standard_normal(1)
            estimator.learn(i % 4, x, np.ones(1), level + x[0] + 0.3 * random.standard_normal())
        assert estimator.models[0].noise == pytest.approx(0.3, rel=0.15)


def test_rare_one_hot_features_keep_their_scale() -> None:
    """A category that comes once in a hundred rows is not thought a hundred times smaller than a common one."""
    random = np.random.default_rng(1)
    effects = np.array([1.0, -1.0, 1.0, -1.0])
    estimator = LearnedRidge(d1=4, d2=1)
    for _ in range(2000):
        k = random.choice(4, p=[0.49, 0.49, 0.01, 0.01])
        estimator.learn(
            int(random.integers(3)), np.eye(4)[k], np.array([1.0]), effects[k] + 0.1 * random.standard_normal()
        )
    assert_allclose(estimator.theta - estimator.theta.mean(), effects, atol=0.15)


@pytest.mark.parametrize("memory", [None, 25.0])
def test_merging_is_learning_the_others_rows_afterwards(memory: float | None) -> None:
    rows = make_rows(9, n=90)
    one, two = (taught(Rows(*(part[k] for part in rows)), memory=memory) for k in (slice(50), slice(50, 90)))
    whole = taught(rows, memory=memory)
    before = saved(two)
    one.merge(two)
    for name, array in two.pack()[1].items():
        assert_array_equal(array, before[name])
    whole.refresh()
    assert_allclose(settings(one), settings(whole), rtol=1e-6)
    assert_allclose(one.theta, whole.theta, rtol=1e-7)
    assert one.rounds == whole.rounds
    for arm in range(6):
        assert_allclose(one.beta(arm), whole.beta(arm), rtol=1e-6)
        assert one.pulls_of(arm) == whole.pulls_of(arm)
        assert_allclose(weight_of_arm(one, arm), weight_of_arm(whole, arm), rtol=1e-9)


def test_forgetting_an_arm_keeps_what_it_taught_the_others() -> None:
    rows = make_rows(9)
    estimator = taught(rows)
    random = np.random.default_rng(0)
    x, z = random.standard_normal((5, 4)), random.standard_normal((5, 3))
    before = estimator.predict(x, z, [1, 2, 3, 4, 5])
    noise = estimator.models[0].noise
    estimator.forget(0)
    assert_array_equal(estimator.predict(x, z, [1, 2, 3, 4, 5]).mean, before.mean)
    # Rebuilt from the data, the others still know what it taught; that m is uncertain is then put otherwise, by little.
    rebuild(estimator)
    after = estimator.predict(x, z, [1, 2, 3, 4, 5])
    assert_allclose(after.mean, before.mean, rtol=0.01)
    assert_allclose(after.width, before.width, rtol=0.01)
    estimator.refresh()
    assert estimator.models[0].noise == pytest.approx(noise, rel=0.2)
    estimator.learn(0, x[0], z[0], 1.0)
    assert estimator.pulls_of(0) == 1


def test_arms_that_come_and_go_during_a_refresh() -> None:
    rows = make_rows(10, n=300, arms=12)
    estimator = LearnedRidge(d1=4, d2=3)
    for t, (arm, x, z, reward) in enumerate(zip(rows.arm.tolist(), rows.x, rows.z, rows.reward.tolist(), strict=True)):
        learn_slowly(estimator, arm, x, z, reward, 1.0)
        if t % 17 == 16:
            estimator.forget(arm)
            assert estimator.sound()
    assert sorted(estimator.models[0].in_order.tolist()) == sorted(estimator.learned.values())
    estimator.refresh()
    assert np.isfinite(estimator.theta).all()


@pytest.mark.parametrize("fixed", [{}, {"noise": 0.3}])
def test_saved_in_the_middle_of_a_refresh_it_continues_to_the_bit(fixed: dict[str, float]) -> None:
    """One row advances by one step or one arm, and a copy is made after every row."""
    rows = make_rows(13, n=60)
    estimator = LearnedRidge(d1=4, d2=3, **fixed)
    phases = set()
    for t, (arm, x, z, reward) in enumerate(zip(rows.arm.tolist(), rows.x, rows.z, rows.reward.tolist(), strict=True)):
        loaded = LearnedRidge.unpack(*estimator.pack())
        for each in (estimator, loaded):
            learn_slowly(each, arm, x, z, reward)
        phases.add(int(state(estimator).phase))
        for name, array in loaded.pack()[1].items():
            assert_array_equal(array, estimator.pack()[1][name])
        if t == 40:
            estimator.forget(arm)
    assert {0, 1, 2} <= phases


def test_candidates_that_were_looked_up_before_a_merge_are_looked_up_again() -> None:
    mine, other = LearnedRidge(d1=1, d2=1), LearnedRidge(d1=1, d2=1)
    one = np.ones((2, 1))
    mine.learn("a", one[0], one[0], 0.0)
    mine.learn("b", one[0], one[0], 0.1)
    pool = mine.candidates(["a", "d"])
    mine.predict(one, one, pool)
    for i in range(50):
        other.learn("d", one[0], one[0], 10 + 0.01 * i)
    mine.merge(other)
    assert_array_equal(mine.predict(one, one, pool), mine.predict(one, one, ["a", "d"]))


def test_a_refresh_without_any_feature() -> None:
    estimator = LearnedRidge(d1=1, d2=0, noise=0.1)
    estimator.learn("a", [0.0], None, 1.0)
    estimator.refresh()
    assert estimator.theta.tolist() == [0.0]


def test_what_dropped_arms_taught_about_differences_stays() -> None:
    """Arms live for 15 rounds each and differ by 3: that is not estimated from the last of them alone."""
    random = np.random.default_rng(0)
    kept, dropped = LearnedRidge(d1=1, d2=1), LearnedRidge(d1=1, d2=1)
    scales = []
    for arm in range(60):
        beta = 3.0 * random.standard_normal()
        for _ in range(15):
            x = random.standard_normal(1)
            reward = x[0] + beta + 0.5 * random.standard_normal()
            for each in (kept, dropped):
                each.learn(arm, x, np.ones(1), reward)
        if arm >= 2:
            dropped.forget(arm - 2)
        learned = dropped.heaviest.settings()
        assert learned is not None
        scales.append(learned.own_scale[0])
    for each in (kept, dropped):
        each.refresh()
    whole, rest = kept.heaviest.settings(), dropped.heaviest.settings()
    assert whole is not None
    assert rest is not None
    assert_allclose(rest.own_scale, whole.own_scale, rtol=0.1)
    assert_allclose(scales[20:], 3.0, rtol=0.35)
    assert rest.evidence == pytest.approx(whole.evidence, abs=0.03 * abs(whole.evidence))


def test_damaged_parts_are_refused() -> None:
    header, arrays = taught(make_rows(12), memory=9.0).pack()
    for name, array in arrays.items():
        broken = {**arrays, name: array[:-1] if len(array) else np.zeros(3)}
        with pytest.raises(FileError):
            LearnedRidge.unpack(header, broken)
        if array.dtype == np.float64 and array.size:
            wrong = array.copy()
            wrong.flat[0] = np.nan
            with pytest.raises(FileError):
                LearnedRidge.unpack(header, {**arrays, name: wrong})


def test_a_refused_row_changes_nothing() -> None:
    estimator = taught(make_rows(13))
    before = saved(estimator)
    with pytest.raises(ValueError, match="reward is nan"):
        estimator.learn(0, np.ones(4), np.ones(3), float("nan"))
    with pytest.raises(ValueError, match=r"x\[2\] is inf"):
        estimator.learn("new", np.array([0.0, 0.0, np.inf, 0.0]), np.ones(3), 1.0)
    for name, array in estimator.pack()[1].items():
        assert_array_equal(array, before[name])


# ------------------------------------------------------------------ groups


GROUPS = [0, 1, 1, 0], [3, 4, 3]


def as_text(estimator: LearnedRidge) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in saved(estimator).items()}


@pytest.mark.parametrize("memory", [None, 30.0, "auto"])
def test_one_group_of_each_is_none_to_the_bit(memory: float | str | None) -> None:
    rows = make_rows(3)
    one = taught(rows, memory=memory, groups=([5] * 4, [5] * 3))
    without = taught(rows, memory=memory)
    assert as_text(one) == as_text(without)
    one.refresh()
    without.refresh()
    assert as_text(one) == as_text(without)
    numbers = [len(group.columns) for group in without.heaviest.settings().groups]
    assert numbers == [4, 3]


@pytest.mark.parametrize("memory", [None, 30.0])
def test_refreshing_with_groups_reaches_the_most_likely_scales(memory: float | None) -> None:
    """The derivative of the log evidence and of the densities of the scales, by each scale of x and of m, is 0."""
    rows = make_rows(3, n=150)
    estimator = taught(rows, memory=memory, groups=GROUPS)
    estimator.refresh()
    at, x_groups, z_groups = scales_of(estimator), *map(np.array, GROUPS)
    after, m = step(rows, at, 6, memory, (x_groups, z_groups))
    assert_allclose(np.concatenate([np.ravel(part) for part in after] + [m]), settings(estimator), rtol=1e-7)
    centre = centres_of(rows, fading(rows, memory))

    def density(s1: np.ndarray, sm: np.ndarray) -> float:
        total = solve(rows, at._replace(s1=s1, sm=sm), 6, memory).evidence
        for groups, scales, first in ((x_groups, s1, centre.c_1), (z_groups, sm, centre.c_m)):
            of_groups = np.array([scales[groups == g][0] for g in np.unique(groups)])
            total += half_cauchy_density(np.append(of_groups, first), common_centre(of_groups, first))
        return total

    best, h = density(at.s1, at.sm), 1e-3
    for groups, which in ((x_groups, 0), (z_groups, 1)):
        for g in np.unique(groups):
            around = []
            for sign in (-1, 1):
                changed = [at.s1, at.sm]
                changed[which] = np.where(groups == g, changed[which] * np.exp(sign * h), changed[which])
                around.append(density(*changed))
            assert abs(around[1] - around[0]) / (2 * h) < 1e-4
            assert max(around) < best


def test_each_group_learns_its_own_scale_and_is_named() -> None:
    random = np.random.default_rng(0)
    estimator = LearnedRidge(d1=24, d2=3, groups=([1] * 8 + [2] * 8 + [9] * 8, [0, 4, 4]))
    theta = np.concatenate((random.standard_normal(8), 0.05 * random.standard_normal(8), np.zeros(8)))
    beta = np.array([3.0, 0.0, 0.0]) + random.standard_normal((20, 3)) * [1.0, 0.0, 0.0]
    for _ in range(3000):
        x, z, arm = random.standard_normal(24), np.append(1.0, random.standard_normal(2)), int(random.integers(20))
        x[23] = 1.0
        estimator.learn(arm, x, z, x @ theta + z @ beta[arm] + 0.3 * random.standard_normal())
    estimator.refresh()
    settings = estimator.heaviest.settings()
    assert settings is not None
    large, small, none, level, users = settings.groups
    assert [(group.part, group.group) for group in settings.groups] == [
        ("x", 1),
        ("x", 2),
        ("x", 9),
        ("z", 0),
        ("z", 4),
    ]
    assert (small.columns, users.columns) == (tuple(range(8, 16)), (1, 2))
    assert_allclose([large.scale, small.scale], [np.sqrt((t**2).mean()) for t in theta[:16].reshape(2, 8)], rtol=0.35)
    assert none.scale < 0.02
    assert level.scale == pytest.approx(1.0, rel=0.4)
    assert np.isnan(level.mean_scale)
    assert np.isnan(large.mean_scale)
    assert users.scale < 0.05
    assert large.effective_parameters == pytest.approx(8, abs=0.2)
    assert level.effective_parameters == pytest.approx(19, abs=0.5)  # x has the intercept
    total = sum(group.effective_parameters for group in settings.groups)
    assert total == pytest.approx(settings.effective_parameters)


def test_a_group_that_has_shrunk_to_nothing_comes_back() -> None:
    """For 600 rows its features have no effect, its scale is even put at the floor, and then they have one."""
    random = np.random.default_rng(1)
    estimator = LearnedRidge(d1=10, d2=1, groups=([0] * 5 + [1] * 5, None))
    theta = np.append(random.standard_normal(5), np.zeros(5))

    def learn(n: int) -> list[float]:
        scales = []
        for _ in range(n):
            x, arm = random.standard_normal(10), int(random.integers(5))
            estimator.learn(arm, x, [1.0], x @ theta + 0.2 * random.standard_normal())
            scales.append(float(np.sqrt(estimator.models[0].arrays.features["scale"][9])))
        return scales

    assert 0 < learn(600)[-1] < 0.03
    features = estimator.models[0].arrays.features
    features["scale"][5:] = 1e-8 * features["scale"][0]
    theta[5:] = 0.5
    late = learn(900)
    assert late[-1] > 0.1
    estimator.refresh()
    assert_allclose(estimator.theta[5:], 0.5 * 900 / 1500, atol=0.1)


def test_units_do_not_matter_to_groups() -> None:
    rows = make_rows(5, n=150)
    sizes = 2.0 ** np.array([-20, 3, 20, 1])
    scaled = rows._replace(x=rows.x * sizes, z=rows.z * 2.0**-9, reward=rows.reward * 2.0**20)
    plain, other = taught(rows, groups=GROUPS), taught(scaled, groups=GROUPS)
    for each in (plain, other):
        each.refresh()
    assert (other.theta * sizes == plain.theta * 2.0**20).all()
    assert (other.beta(1) * 2.0**-9 == plain.beta(1) * 2.0**20).all()


@pytest.mark.parametrize("memory", [None, 25.0, "auto"])
def test_groups_are_saved_and_merged_and_arms_forgotten(memory: float | str | None) -> None:
    rows = make_rows(9, n=90)
    one, two = (
        taught(Rows(*(part[k] for part in rows)), memory=memory, groups=GROUPS) for k in (slice(50), slice(50, 90))
    )
    whole = taught(rows, memory=memory, groups=GROUPS)
    loaded = LearnedRidge.unpack(*one.pack())
    assert loaded.settings == one.settings
    assert as_text(loaded) == as_text(one)
    one.merge(two)
    if memory != "auto":
        whole.refresh()
        assert_allclose(settings(one), settings(whole), rtol=1e-6)
    one.forget(2)
    one.refresh()
    assert np.isfinite(settings(one)).all()
    with pytest.raises(ValueError, match="groups"):
        one.merge(taught(rows, memory=memory))
    header, arrays = two.pack()
    with pytest.raises(FileError, match="groups"):
        LearnedRidge.unpack({**header, "groups": [[0, 1, 1, 1], [3, 4, 3]]}, arrays)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (([0, 1], [0, 0, 0]), "2 groups for the 4 columns of x"),
        (([0, 1, 1, 0.5], None), r"the group of x\[3\] is 0.5"),
        (([0, 1, 1, True], None), r"the group of x\[3\] is True"),
        ([[0], [0], [0]], "must have two parts, got 3"),
        (7, "must be a pair of lists"),
        ((None, 3), "must be a pair of lists"),
        ((None, np.zeros((3, 1), int)), r"the group of z\[0\] is \[0\]"),
    ],
)
def test_groups_that_do_not_fit_are_refused(groups: object, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        LearnedRidge(d1=4, d2=3, groups=groups)


# ------------------------------------------------------------------ memories


def test_what_was_before_the_world_changed_is_forgotten() -> None:
    before, after = make_rows(7, n=300, arms=3), make_rows(8, n=300, arms=3)
    fresh = taught(after, memory=30.0)
    changed = taught(before, memory=30.0)
    for arm, x, z, reward in zip(after.arm.tolist(), after.x, after.z, after.reward.tolist(), strict=True):
        changed.learn(arm, x, z, reward)
    for estimator in (fresh, changed):
        estimator.refresh()
    assert_allclose(settings(changed), settings(fresh), rtol=0.05, atol=1e-3)
    assert_allclose(changed.theta, fresh.theta, atol=5e-3)
    assert state(changed).weight == pytest.approx(1 / (1 - np.exp(-1 / 30)), rel=1e-6)


def weight_of_arm(estimator: LearnedRidge, arm: int) -> float:
    estimator.models[0].fade_all()
    return float(estimator.models[0].arrays.arms.weight[estimator.slot(arm)])


def test_what_a_dropped_arm_has_taught_fades_like_the_rest() -> None:
    rows = make_rows(10, n=120)
    estimator = taught(rows, memory=20.0)
    estimator.forget(2)
    model, dropped = estimator.models[0], estimator.models[0].arrays.data.dropped
    largest, log_det = np.abs(dropped).max(), float(state(estimator).log_det_dropped)
    model.fade(40.0)
    assert np.abs(dropped).max() == pytest.approx(largest * np.exp(-1)) != 0.0
    assert state(estimator).log_det_dropped == pytest.approx(log_det * np.exp(-2))
    estimator.refresh()
    model.fade(1e5)
    estimator.refresh()
    assert not dropped.any()
    assert np.isfinite(estimator.predict(rows.x[:6], rows.z[:6], [0, 1, 2, 3, 4, 5])).all()
