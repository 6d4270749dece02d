"""The arrow factor, compiled and plain, against dense matrices."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from hybandits.kernels import arrow
from tests.support.blocks import RIDGE, SHAPES, Blocks
from tests.support.plain import plain, refresh_all


@pytest.mark.parametrize(("d1", "d2"), SHAPES)
def test_learned_factors_are_those_of_the_dense_matrix(mode: str, d1: int, d2: int) -> None:
    blocks = Blocks(d1, d2).learn()
    schur = RIDGE * np.eye(d1) + blocks.x.T @ blocks.x
    for i in range(blocks.arms):
        x, z = blocks.x[blocks.own(i)], blocks.z[blocks.own(i)]
        r, t = blocks.factor(i)[:, :d2], blocks.factor(i)[:, d2:]
        w, cross = RIDGE * np.eye(d2) + z.T @ z, x.T @ z
        assert_allclose(r.T @ r, w, rtol=1e-12, atol=1e-12)
        assert_allclose(r.T @ t, cross.T, rtol=1e-12, atol=1e-12)
        score = blocks.arm_score[i * blocks.h : (i + 1) * blocks.h]
        assert_allclose(blocks.triangle(score, d2) @ r.T, np.eye(d2), atol=1e-12)
        assert_allclose(r.T @ score[:d2], z.T @ blocks.rewards[blocks.own(i)], rtol=1e-11, atol=1e-12)
        schur -= cross @ np.linalg.solve(w, cross.T)
    r = blocks.shared()
    assert_allclose(r.T @ r, schur, rtol=1e-12, atol=1e-12)
    assert_allclose(blocks.triangle(blocks.shared_score, d1) @ r.T, np.eye(d1), atol=1e-12)
    assert blocks.pulls.sum() == len(blocks.slots)


@pytest.mark.parametrize(("d1", "d2"), SHAPES)
def test_refresh_makes_what_the_rotations_kept(mode: str, d1: int, d2: int) -> None:
    blocks = Blocks(d1, d2).learn()
    kept = blocks.arm_score.copy(), blocks.shared_score.copy()
    refresh_all(blocks.arms, d1, d2, *blocks.parts)
    assert_allclose(blocks.arm_score, kept[0], rtol=1e-11, atol=1e-13)
    assert_allclose(blocks.shared_score, kept[1], rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize(("d1", "d2"), SHAPES)
def test_scores_and_parameters_agree_compiled_and_plain(d1: int, d2: int) -> None:
    blocks = Blocks(d1, d2).learn()
    random = np.random.default_rng(1)
    n = 6
    x, z = random.normal(size=(n, d1)), random.normal(size=(n, d2))
    slots = np.array([0, 1, 2, -1, 1, 0])

    def everything() -> dict[str, object]:
        mean, width = np.empty(n), np.empty(n)
        assert arrow.score_rows(x, z, slots, blocks.arm_score, blocks.shared_score, RIDGE, mean, width)
        y, square, product = np.zeros((n, 4 * ((d1 + 3) // 4))), np.empty(n), np.empty(n)
        arrow.eliminate_rows(x, z, slots, blocks.arm_score, RIDGE, y, square, product)
        theta, beta = np.empty(d1), np.empty(d2)
        arrow.transpose_times(blocks.shared_score, 0, d1, blocks.shared_score[:d1], theta)
        arrow.arm_parameters(blocks.arm_score, blocks.h, d1, d2, theta, beta)
        return {
            "mean": mean,
            "width": width,
            "y": y[:, :d1],
            "square": square,
            "product": product,
            "theta": theta,
            "beta": beta,
        }

    compiled = everything()
    with plain():
        interpreted = everything()
    for name, value in compiled.items():
        assert_allclose(value, interpreted[name], rtol=1e-12, atol=1e-13, err_msg=name)


@pytest.mark.parametrize(("d1", "d2"), SHAPES)
def test_a_removed_row_leaves_no_trace(mode: str, d1: int, d2: int) -> None:
    blocks = Blocks(d1, d2).learn()
    before = [array.copy() for array in blocks.parts]
    arrow.learn_row(1, blocks.x[0], blocks.z[0], 0.5, *blocks.state, 0)
    row = np.concatenate([blocks.z[0], blocks.x[0]])
    rest = arrow.remove_row(blocks.arm_factor, blocks.f, blocks.arm_score, blocks.h, d2, d1, row, 0.5)
    arrow.remove_row(blocks.shared_factor, 0, blocks.shared_score, 0, d1, 0, row[d2:], rest)
    refresh_all(blocks.arms, d1, d2, *blocks.parts)
    for array, expected in zip(blocks.parts, before, strict=True):
        assert_allclose(array, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(("d1", "d2"), SHAPES)
def test_raising_the_ridge_equals_starting_with_it(mode: str, d1: int, d2: int) -> None:
    blocks = Blocks(d1, d2).learn()
    arrow.add_to_ridge(np.arange(3), 1.3, d1, d2, blocks.arm_factor, blocks.arm_score, *blocks.state[3:])
    other = Blocks(d1, d2)
    for i in range(3):
        arrow.reset_block(other.arm_factor, i * other.f, other.arm_score, i * other.h, d2, d1, RIDGE + 1.3)
    arrow.reset_block(other.shared_factor, 0, other.shared_score, 0, d1, 0, RIDGE + 1.3)
    other.learn()
    for array, expected in zip(blocks.state, other.state, strict=True):
        assert_allclose(array, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("d1", "d2"), SHAPES)
def test_merging_two_halves_equals_learning_all(mode: str, d1: int, d2: int) -> None:
    first, second, both = Blocks(d1, d2), Blocks(d1, d2), Blocks(d1, d2).learn()
    for part, rows in ((first, slice(0, 5)), (second, slice(5, None))):
        arrow.learn_rows(part.slots[rows], part.x[rows], part.z[rows], part.rewards[rows], *part.state, 0)
    mine = first.parts
    for i in range(3):
        arrow.merge_arm(i, i, d1, d2, *mine, second.arm_factor, second.arm_score)
    arrow.merge_shared(d1, first.shared_factor, first.shared_score, second.shared_factor, second.shared_score)
    arrow.add_to_ridge(np.arange(3), -RIDGE, d1, d2, *mine)
    for array, expected in zip(mine, both.parts, strict=True):
        assert_allclose(array, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("n", [0, 1, 3, 4, 7, 8, 9, 17])
def test_within_limit(mode: str, n: int) -> None:
    values = np.full(n, -1e50)
    assert arrow.within_limit(values)
    for i in range(n):
        for bad in (np.nan, np.inf, -1.1e50):
            spoiled = values.copy()
            spoiled[i] = bad
            with np.errstate(all="ignore"):
                assert not arrow.within_limit(spoiled)


@pytest.mark.parametrize(
    ("slots", "expected"), [([0], True), ([3, 1, 200], True), ([1, 64, 1], False), ([2, -1], False), ([65, 1], True)]
)
def test_distinct_slots(mode: str, slots: list[int], expected: bool) -> None:
    assert arrow.distinct(np.array(slots)) == expected


def test_rows_that_are_not_finite_are_refused_and_change_nothing(mode: str) -> None:
    blocks = Blocks(3, 2).learn()
    before = [array.copy() for array in blocks.state]
    for bad in (np.nan, np.inf, -np.inf, 1e51):
        for where in ("x", "z", "reward"):
            x, z, reward = np.ones(3), np.ones(2), 1.0
            if where == "reward":
                reward = bad
            else:
                (x if where == "x" else z)[1] = bad
            assert not arrow.learn_one(0, x, z, reward, *blocks.state, 0)
            assert not arrow.learn_rows(np.zeros(1, int), x[None], z[None], np.array([reward]), *blocks.state, 0)
            if where != "reward":
                mean, width = np.empty(1), np.empty(1)
                with np.errstate(all="ignore"):
                    scored = arrow.score_rows(
                        x[None], z[None], np.zeros(1, int), blocks.arm_score, blocks.shared_score, RIDGE, mean, width
                    )
                assert not scored
    for array, expected in zip(blocks.state, before, strict=True):
        assert (array == expected).all()


def test_scoring_far_more_candidates_than_a_block_and_the_cache_hold() -> None:
    blocks = Blocks(33, 31, arms=70).learn()
    random = np.random.default_rng(2)
    x, z, slots = random.normal(size=(70, 33)), random.normal(size=(70, 31)), np.arange(70)
    assert 70 * blocks.h > arrow.FAR
    together = np.empty(70), np.empty(70)
    arrow.score_rows(x, z, slots, blocks.arm_score, blocks.shared_score, RIDGE, *together)
    for i in range(70):
        mean, width = np.empty(1), np.empty(1)
        arrow.score_rows(x[i : i + 1], z[i : i + 1], slots[i : i + 1], *blocks.state[1::3], RIDGE, mean, width)
        assert mean[0] == together[0][i]
        assert width[0] == together[1][i]
