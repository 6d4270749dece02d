"""HybridRidge against the dense solve, and the identities that must hold between runs of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from hybandits import HybridRidge
from hybandits.estimators.arms import grown
from hybandits.kernels import arrow
from tests.support.problems import Problem, hybrid_problems

PROBLEMS = settings(max_examples=150, deadline=None)


@PROBLEMS
@given(problem=hybrid_problems())
def test_score_equals_the_dense_solve(problem: Problem) -> None:
    mean, width = problem.estimator().predict(problem.x, problem.z, problem.arms)
    dense_mean, dense_width = problem.dense().score(problem.arms, problem.x, problem.z)
    assert_allclose(width, dense_width, rtol=1e-9)
    scale = np.abs(dense_mean) + dense_width * max(np.linalg.norm([row[3] for row in problem.rows]), 1.0)
    assert (np.abs(mean - dense_mean) <= 1e-9 * scale).all()


@pytest.mark.slow
@PROBLEMS
@given(problem=hybrid_problems(), cut=st.integers(0, 40))
def test_merge_equals_together(problem: Problem, cut: int) -> None:
    together = problem.estimator()
    parts = []
    for rows in (problem.rows[:cut], problem.rows[cut:]):
        part = HybridRidge(d1=problem.d1, d2=problem.d2, ridge=problem.ridge)
        for row in rows:
            part.learn(*row)
        parts.append(part)
    before = parts[1].predict(problem.x, problem.z, problem.arms)
    parts[0].merge(parts[1])
    mean, width = together.predict(problem.x, problem.z, problem.arms)
    merged_mean, merged_width = parts[0].predict(problem.x, problem.z, problem.arms)
    assert_allclose(merged_width, width, rtol=1e-7)
    scale = np.abs(mean) + width * max(np.linalg.norm([row[3] for row in problem.rows]), 1.0)
    assert (np.abs(merged_mean - mean) <= 1e-7 * scale).all()
    assert parts[0].rounds == together.rounds
    assert {a: parts[0].pulls_of(a) for a in parts[0].arms} == {a: together.pulls_of(a) for a in parts[0].arms}
    assert_array_equal(parts[1].predict(problem.x, problem.z, problem.arms), before)


@PROBLEMS
@given(problem=hybrid_problems())
def test_data_stacked_twice_equals_double_weight(problem: Problem) -> None:
    twice = HybridRidge(d1=problem.d1, d2=problem.d2, ridge=problem.ridge)
    weighted = HybridRidge(d1=problem.d1, d2=problem.d2, ridge=problem.ridge)
    for arm, x, z, reward in problem.rows:
        twice.learn(arm, x, z, reward)
        twice.learn(arm, x, z, reward)
        weighted.learn(arm, np.sqrt(2) * x, np.sqrt(2) * z, np.sqrt(2) * reward)
    mean, width = twice.predict(problem.x, problem.z, problem.arms)
    other_mean, other_width = weighted.predict(problem.x, problem.z, problem.arms)
    assert_allclose(width, other_width, rtol=1e-9)
    scale = np.abs(mean) + width * max(np.linalg.norm([row[3] for row in problem.rows]), 1.0)
    assert (np.abs(mean - other_mean) <= 1e-8 * scale).all()


def test_z_of_zeros_is_the_shared_ridge_and_x_of_zeros_the_disjoint_one() -> None:
    random = np.random.default_rng(0)
    hybrid = HybridRidge(d1=4, d2=3, ridge=0.5)
    shared = HybridRidge(d1=4, d2=0, ridge=0.5)
    disjoint = HybridRidge(d1=0, d2=3, ridge=0.5)
    other = HybridRidge(d1=4, d2=3, ridge=0.5)
    for t in range(50):
        x, z, reward = random.normal(size=4), random.normal(size=3), random.normal()
        hybrid.learn(t % 3, x, np.zeros(3), reward)
        shared.learn(t % 3, x, np.zeros(0), reward)
        other.learn(t % 3, np.zeros(4), z, reward)
        disjoint.learn(t % 3, np.zeros(0), z, reward)
    x, z = random.normal(size=(3, 4)), random.normal(size=(3, 3))
    assert_allclose(hybrid.predict(x, 0 * z, range(3)), shared.predict(x, None, range(3)), rtol=1e-12)
    assert_allclose(other.predict(0 * x, z, range(3)), disjoint.predict(None, z, range(3)), rtol=1e-12)


def test_forgetting_integrates_the_arm_out_and_leaves_the_others_to_the_bit() -> None:
    random = np.random.default_rng(1)
    estimator = HybridRidge(d1=3, d2=2)
    for t in range(40):
        estimator.learn("abc"[t % 3], random.normal(size=3), random.normal(size=2), random.normal())
    x, z = random.normal(size=(2, 3)), random.normal(size=(2, 2))
    before, theta = estimator.predict(x, z, ["a", "c"]), estimator.theta
    estimator.forget("b")
    assert_array_equal(estimator.predict(x, z, ["a", "c"]), before)
    assert_array_equal(estimator.theta, theta)
    assert estimator.arms == ["a", "c"]
    fresh = estimator.predict(x, z, ["b", "new"])
    assert_array_equal(estimator.predict(x, z, ["other", "new"]), fresh)
    with pytest.raises(KeyError, match="'b' is not known"):
        estimator.forget("b")
    estimator.learn("d", x[0], z[0], 1.0)  # takes over the slot
    estimator.learn("b", x[0], z[0], 1.0)
    assert estimator.pulls_of("b") == estimator.pulls_of("d") == 1


def test_unlearned_arms_cost_only_their_id() -> None:
    estimator = HybridRidge(d1=20, d2=10)
    estimator.learn("a", np.ones(20), np.ones(10), 1.0)
    before = estimator.nbytes
    estimator.admit(range(10_000))
    assert estimator.nbytes == before
    assert estimator.known == 10_001
    assert_array_equal(estimator.beta(7), np.zeros(10))


@pytest.mark.parametrize(("d1", "d2"), [(40, 5), (5, 40), (5, 5), (36, 6), (32, 32), (0, 7), (1, 1)])
def test_memory_per_learned_arm_stays_within_its_allowance(d1: int, d2: int) -> None:
    estimator = HybridRidge(d1=d1, d2=d2)
    fixed = estimator.nbytes
    n = 400
    estimator.learn_batch(range(n), np.ones((n, d1)), np.ones((n, d2)), np.ones(n))
    assert (estimator.nbytes - fixed) / n <= 8 * (2 * d2**2 + 2 * d1 * d2 + 4 * d2) + 64


def test_cached_inverses_stay_with_the_factors_over_many_refreshes() -> None:
    random = np.random.default_rng(2)
    estimator = HybridRidge(d1=6, d2=4)
    n = 5 * arrow.REFRESH + 17
    x, z = random.normal(size=(n, 6)), random.normal(size=(n, 4))
    estimator.learn_batch(random.integers(0, 2, n), x, z, random.normal(size=n))
    kept = estimator.predict(x[:2], z[:2], [0, 1])
    state = estimator.arm_factor, estimator.arm_score, estimator.shared_factor, estimator.shared_score
    arrow.refresh_blocks(np.arange(2), 6, 4, *state)
    assert_allclose(estimator.predict(x[:2], z[:2], [0, 1]), kept, rtol=1e-12)


def test_merge_brings_different_ridges_to_the_larger_and_refuses_other_shapes() -> None:
    random = np.random.default_rng(4)
    a, b, both = (HybridRidge(d1=2, d2=2, ridge=r) for r in (1.0, 3.0, 3.0))
    for t in range(20):
        row = t % 3, random.normal(size=2), random.normal(size=2), random.normal()
        (a if t % 2 else b).learn(*row)
        both.learn(*row)
    x, z = random.normal(size=(3, 2)), random.normal(size=(3, 2))
    for first, second in ((a.copy(), b), (b.copy(), a)):
        first.merge(second)
        assert first.ridge == 3.0
        assert_allclose(first.predict(x, z), both.predict(x, z), rtol=1e-9)
    with pytest.raises(ValueError, match="d1=3, d2=2 into d1=2, d2=2"):
        a.merge(HybridRidge(d1=3, d2=2))
    with pytest.raises(TypeError, match="HybridRidge"):
        a.merge(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="can only be raised"):
        a.raise_ridge(0.5)
    doubled = a.copy()
    doubled.merge(doubled)
    assert doubled.rounds == 2 * a.rounds


def test_a_merge_that_would_be_unsound_is_refused_and_changes_nothing() -> None:
    refused, unchanged = 0, True
    for seed in range(60):
        random = np.random.default_rng(seed)
        one, two = HybridRidge(d1=2, d2=2, ridge=1.0), HybridRidge(d1=2, d2=2, ridge=1.0)
        for estimator in (one, two):
            for t in range(6):
                scale = 10.0 ** random.integers(-16, 17, size=4)
                estimator.learn(t % 2, scale[:2] * random.normal(size=2), scale[2:] * random.normal(size=2), 1.0)
        before = one.predict(np.eye(2), np.eye(2))
        try:
            one.merge(two)
        except ValueError as problem:
            refused += "cannot be merged" in str(problem)
            unchanged = unchanged and bool((np.array(one.predict(np.eye(2), np.eye(2))) == np.array(before)).all())
        assert one.sound()
    assert refused < 60
    assert unchanged


def test_growing_moves_nothing_while_there_is_room() -> None:
    first = grown(np.zeros(0), 100)
    first[:] = 1.0
    second = grown(first, 150)
    assert second.base is first.base
    assert first.ctypes.data == second.ctypes.data
    assert (second[:100] == 1.0).all()
    assert (second[100:] == 0.0).all()
    third = grown(second, 1000)
    assert third.base is not second.base
    assert third[:150].tolist() == second.tolist()
    assert third.ctypes.data % 64 == 0


def test_growing_asks_for_less_where_addresses_are_scarce(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, zeros = [], np.zeros

    def few(n: int, dtype: Any = float) -> np.ndarray:
        sizes.append(n)
        if n > 1500:
            raise MemoryError
        return zeros(n, dtype)

    monkeypatch.setattr(np, "zeros", few)
    assert len(grown(np.empty(0), 1000)) == 1000
    assert sizes[0] > 1500 >= sizes[-1]
    with pytest.raises(MemoryError):
        grown(np.empty(0), 2000)
