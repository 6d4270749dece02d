"""The running sums behind HyRan against dense matrices."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hybandits import FileError
from hybandits.estimators.sums import GramTable, unsound
from hybandits.kernels import gram
from tests.support.oracle import Dense

D1, D2, ARMS = 3, 2, ["a", "b", "c", "d", "e"]


def rows(seed: int, n: int = 25) -> list[tuple[str, np.ndarray, np.ndarray, float]]:
    """Rows of all arms but the last."""
    random = np.random.default_rng(seed)
    return [
        (ARMS[int(random.integers(0, 4))], random.normal(size=D1), random.normal(size=D2), float(random.normal()))
        for _ in range(n)
    ]


def summed(*batches: list[tuple[str, np.ndarray, np.ndarray, float]], cross: bool = True) -> GramTable:
    table = GramTable(D1, D2, cross=cross)
    for arm, x, z, reward in [row for batch in batches for row in batch]:
        table.admit([arm])
        slot = int(table.slots_of([arm])[0])
        gram.add_row(slot, x, z, reward, cross, table.shared, table.own)
        table.pulls[slot] += 1
        table.rounds += 1
    return table


def dense(*batches: list[tuple[str, np.ndarray, np.ndarray, float]], ridge: float) -> Dense:
    oracle = Dense(D1, D2, ARMS, ridge)
    for row in [row for batch in batches for row in batch]:
        oracle.learn(*row)
    return oracle


@pytest.mark.parametrize("ridge", [0.3, 20.0])
def test_solved_sums_are_the_dense_ridge_regression(ridge: float) -> None:
    table, oracle = summed(rows(0)), dense(rows(0), ridge=ridge)
    solved = table.estimate(ridge)
    parameters = oracle.parameters
    assert_allclose(solved.theta, parameters[:D1], rtol=1e-10)
    for i, arm in enumerate(ARMS[:4]):
        assert_allclose(solved.beta[table.slot(arm)], parameters[D1 + i * D2 : D1 + (i + 1) * D2], rtol=1e-9)
    random = np.random.default_rng(9)
    x, z = random.normal(size=(5, D1)), random.normal(size=(5, D2))
    mean, width = oracle.score(ARMS, x, z)
    prediction = table.predict(x, z, table.lookup(ARMS), ridge)
    assert_allclose(prediction.mean, mean, rtol=1e-9, atol=1e-12)
    assert_allclose(prediction.width, width, rtol=1e-9)


def test_without_cross_blocks_the_parts_are_fitted_apart() -> None:
    table = summed(rows(0), cross=False)
    solved = table.estimate(1.0)
    x = np.array([row[1] for row in rows(0)])
    rewards = np.array([row[3] for row in rows(0)])
    assert_allclose(solved.theta, np.linalg.solve(np.eye(D1) + x.T @ x, x.T @ rewards), rtol=1e-10)
    own = [row for row in rows(0) if row[0] == "b"]
    z, mine = np.array([row[2] for row in own]), np.array([row[3] for row in own])
    assert_allclose(
        solved.beta[table.slot("b")], np.linalg.solve(np.eye(D2) + z.T @ z, z.T @ mine), rtol=1e-10, atol=1e-13
    )


def test_merged_sums_are_those_of_all_rows() -> None:
    one, two, both = summed(rows(0)), summed(rows(1)), summed(rows(0), rows(1))
    two.admit(["only here"])
    one.merge(two)
    assert one.rounds == both.rounds == 50
    assert one.known == 5
    assert {arm: one.pulls_of(arm) for arm in one.learned} == {arm: both.pulls_of(arm) for arm in both.learned}
    assert_allclose(one.estimate(1.0).theta, both.estimate(1.0).theta, rtol=1e-10)


def test_a_forgotten_arm_is_integrated_out() -> None:
    """theta and the other arms stay as they are at this ridge, and the slot is empty at once."""
    table = summed(rows(0))
    before = table.estimate(2.0)
    slot = table.slot("b")
    table.marginalise("b", 2.0)
    after = table.estimate(2.0)
    assert_allclose(after.theta, before.theta, rtol=1e-9)
    for arm in ("a", "c", "d"):
        assert_allclose(after.beta[table.slot(arm)], before.beta[table.slot(arm)], rtol=1e-9)
    assert not table.knows("b")
    assert (after.beta[slot] == 0).all()
    table.admit(["z"])
    table.marginalise("z", 2.0)
    assert not table.knows("z")


def test_a_snapshot_is_the_way_back() -> None:
    table = summed(rows(0))
    before, expected = table.snapshot(), table.estimate(1.0)
    table.merge(summed(rows(1)))
    table.forget("a")
    table.admit(["new"])
    table.__dict__.update(before)
    assert table.arms == list(dict.fromkeys(row[0] for row in rows(0)))
    assert table.known == len(table.arms)
    assert_array_equal(table.estimate(1.0).theta, expected.theta)


def test_packed_sums_come_back_to_the_bit_free_slots_included() -> None:
    table = summed(rows(0))
    table.marginalise("b", 1.0)
    table.admit(["met"])
    again = GramTable(D1, D2, cross=True)
    again.restore(*table.pack())
    assert again.arms == table.arms
    assert again.learned == table.learned
    assert (again.known, again.rounds) == (table.known, table.rounds)
    assert_array_equal(again.estimate(1.0).theta, table.estimate(1.0).theta)
    assert again._new_slot("x") == table._new_slot("x")
    header, arrays = table.pack()
    with pytest.raises(FileError, match=r"shared is not an array of finite float64 of shape"):
        GramTable(D1, D2, cross=True).restore(header, {**arrays, "shared": arrays["shared"] * np.nan})


def test_sums_that_are_no_longer_definite_are_refused() -> None:
    table = summed(rows(0))
    table.shared[0] = -1e9
    with pytest.raises(ValueError, match=r"HyRan's sums are no longer positive definite.*rescale x and z"):
        table.estimate(1.0)
    assert isinstance(unsound(), ValueError)
