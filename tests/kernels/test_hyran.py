"""The running sums behind HyRan against dense matrices."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hybandits import FileError
from hybandits.estimators.sums import RunningSums, unsound
from hybandits.kernels import hyran
from tests.support.oracle import Dense

D1, D2, ARMS = 3, 2, ["a", "b", "c", "d", "e"]

Row = tuple[str, np.ndarray, np.ndarray, float]


def rows(seed: int, n: int = 25) -> list[Row]:
    """Rows of all arms but the last."""
    random = np.random.default_rng(seed)
    return [
        (ARMS[int(random.integers(0, 4))], random.normal(size=D1), random.normal(size=D2), float(random.normal()))
        for _ in range(n)
    ]


def summed(*batches: list[Row], cross: bool = True) -> RunningSums:
    table = RunningSums(D1, D2, cross=cross)
    for arm, x, z, reward in [row for batch in batches for row in batch]:
        table.admit([arm])
        slot = int(table.slots_of([arm])[0])
        hyran.add_row(slot, x, z, reward, table.shared, table.own)
        table.pulls[slot] += 1
        table.rounds += 1
    return table


@pytest.mark.parametrize("ridge", [0.3, 20.0])
def test_solved_sums_are_the_dense_ridge_regression(mode: str, ridge: float) -> None:
    table, dense = summed(rows(0)), Dense(D1, D2, ARMS, ridge)
    for row in rows(0):
        dense.learn(*row)
    solved = table.estimate(ridge)
    assert_allclose(solved.theta, dense.parameters[:D1], rtol=1e-10)
    for i, arm in enumerate(ARMS[:4]):
        wanted = dense.parameters[D1 + i * D2 : D1 + (i + 1) * D2]
        assert_allclose(solved.beta[table.slot(arm)], wanted, rtol=1e-9)
    random = np.random.default_rng(9)
    x, z, slots = random.normal(size=(5, D1)), random.normal(size=(5, D2)), table.lookup(ARMS)
    mean, width = dense.score(ARMS, x, z)
    prediction = table.predict(x, z, slots, ridge)
    assert_allclose(prediction.mean, mean, rtol=1e-9, atol=1e-12)
    assert_allclose(prediction.width, width, rtol=1e-9)
    best, highest = hyran.best_mean(x, z, slots, solved.theta, solved.beta)
    assert (best, highest) == (mean.argmax(), pytest.approx(mean.max()))


def test_without_cross_blocks_the_parts_are_fitted_apart(mode: str) -> None:
    table = summed(rows(0), cross=False)
    solved = table.estimate(1.0)
    x, rewards = np.array([row[1] for row in rows(0)]), np.array([row[3] for row in rows(0)])
    assert_allclose(solved.theta, np.linalg.solve(np.eye(D1) + x.T @ x, x.T @ rewards), rtol=1e-10)
    own = [row for row in rows(0) if row[0] == "b"]
    z, mine = np.array([row[2] for row in own]), np.array([row[3] for row in own])
    w = np.eye(D2) + z.T @ z
    assert_allclose(solved.beta[table.slot("b")], np.linalg.solve(w, z.T @ mine), rtol=1e-10, atol=1e-13)
    width = table.predict(x[:1], z[:1], table.lookup(["b"]), 1.0).width[0]
    square = x[0] @ np.linalg.solve(np.eye(D1) + x.T @ x, x[0]) + z[0] @ np.linalg.solve(w, z[0])
    assert width == pytest.approx(np.sqrt(square))


@pytest.mark.parametrize("draw", [0.1, 0.9])
def test_a_round_adds_pseudo_rewards_or_the_played_arm_alone(mode: str, draw: float) -> None:
    """draw < p = 0.5: every candidate with its pseudo-reward; else the arm played alone."""
    table, wanted = summed(rows(0)), summed(rows(0))
    random = np.random.default_rng(4)
    x, z, slots = random.normal(size=(5, D1)), random.normal(size=(5, D2)), table.lookup(ARMS)
    solved = wanted.estimate(2.0)
    assert hyran.learn_round(3, 0.5, draw, 2.0, x, z, slots, 1.5, table.shared, table.own, *table.workspace())
    if draw > 0.5:
        hyran.add_row(slots[3], x[3], z[3], 1.5, wanted.shared, wanted.own)
    else:
        check = [hyran.mean_of(x[i], z[i], slots[i], solved.theta, solved.beta) for i in range(5)]
        check[3] = (1 - 1 / 0.5) * check[3] + 1.5 / 0.5
        for i in np.flatnonzero(slots >= 0):
            hyran.add_row(slots[i], x[i], z[i], check[i], wanted.shared, wanted.own)
    assert_allclose(table.shared, wanted.shared, rtol=1e-12, atol=1e-14)
    assert_allclose(table.own, wanted.own, rtol=1e-12, atol=1e-14)


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
    again = RunningSums(D1, D2, cross=True)
    again.restore(*table.pack())
    assert again.arms == table.arms
    assert again.learned == table.learned
    assert (again.known, again.rounds) == (table.known, table.rounds)
    assert_array_equal(again.estimate(1.0).theta, table.estimate(1.0).theta)
    assert again._new_slot("x") == table._new_slot("x")
    header, arrays = table.pack()
    with pytest.raises(FileError, match=r"shared is not an array of finite float64 of shape"):
        RunningSums(D1, D2, cross=True).restore(header, {**arrays, "shared": arrays["shared"] * np.nan})


def test_sums_that_are_no_longer_definite_are_refused() -> None:
    table = summed(rows(0))
    table.shared[0] = -1e9
    with pytest.raises(ValueError, match=r"HyRan's sums are no longer positive definite.*rescale x and z"):
        table.estimate(1.0)
    assert isinstance(unsound(), ValueError)
