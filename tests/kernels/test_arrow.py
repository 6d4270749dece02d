"""The arrow factor, compiled and plain, against dense matrices."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from hybandits.kernels import arrow
from tests.support.blocks import RIDGE, SHAPES, Blocks
from tests.support.plain import plain


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
    arrow.refresh_blocks(np.arange(blocks.arms), d1, d2, *blocks.parts)
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
        y, square, product = arrow.eliminated(x, z, slots, blocks.arm_score, RIDGE, np.empty(0))
        theta, beta = np.empty(d1), np.empty(d2)
        arrow.transpose_times(blocks.shared_score, 0, d1, blocks.shared_score[:d1], theta)
        arrow.arm_parameters(blocks.arm_score, blocks.h, d1, d2, theta, beta)
        values = mean, width, y[:, :d1], square, product, theta, beta
        return dict(zip(("mean", "width", "y", "square", "product", "theta", "beta"), values, strict=True))

    compiled = everything()
    with plain():
        interpreted = everything()
    for name, value in compiled.items():
        assert_allclose(value, interpreted[name], rtol=1e-12, atol=1e-13, err_msg=name)


@pytest.mark.parametrize(("d1", "d2"), SHAPES)
def test_rows_rotated_in_and_removed(mode: str, d1: int, d2: int) -> None:
    """Rows sqrt(1.3) e_k raise the ridge by 1.3, and removing them lowers it again; a slot -1 is the shared block."""
    blocks, raised = Blocks(d1, d2).learn(), Blocks(d1, d2)
    before = [array.copy() for array in blocks.state]
    for i in range(3):
        arrow.reset_block(raised.arm_factor, i * raised.f, raised.arm_score, i * raised.h, d2, d1, RIDGE + 1.3)
    arrow.reset_block(raised.shared_factor, 0, raised.shared_score, 0, d1, 0, RIDGE + 1.3)
    raised.learn()
    units = np.sqrt(1.3) * np.eye(d2 + d1)
    slots = np.concatenate((np.repeat(np.arange(3), d2), np.full(d1, -1)))
    for remove, expected in ((False, raised.state), (True, before)):
        rows = np.concatenate((np.tile(units[:d2], (3, 1)), units[d2:]))
        arrow.rotate_rows(slots, rows, np.zeros(len(rows)), remove, d1, d2, *blocks.parts)
        arrow.refresh_blocks(np.arange(3), d1, d2, *blocks.parts)
        for array, wanted in zip(blocks.state, expected, strict=True):
            assert_allclose(array, wanted, rtol=1e-9, atol=1e-11)


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
            assert not arrow.learn_one(0, x, z, reward, blocks.table, 0)
            if where != "reward":
                mean, width = np.empty(1), np.empty(1)
                with np.errstate(all="ignore"):
                    scored = arrow.score_rows(
                        x[None], z[None], np.zeros(1, int), blocks.arm_score, blocks.shared_score, RIDGE, mean, width
                    )
                assert not scored
    for array, expected in zip(blocks.state, before, strict=True):
        assert (array == expected).all()


def test_scoring_more_candidates_than_a_block_holds() -> None:
    blocks = Blocks(33, 31, arms=70).learn()
    random = np.random.default_rng(2)
    x, z, slots = random.normal(size=(70, 33)), random.normal(size=(70, 31)), np.arange(70)
    assert arrow.BLOCK < 70
    together = np.empty(70), np.empty(70)
    arrow.score_rows(x, z, slots, blocks.arm_score, blocks.shared_score, RIDGE, *together)
    for i in range(70):
        mean, width = np.empty(1), np.empty(1)
        arrow.score_rows(x[i : i + 1], z[i : i + 1], slots[i : i + 1], *blocks.state[1::3], RIDGE, mean, width)
        assert mean[0] == together[0][i]
        assert width[0] == together[1][i]
