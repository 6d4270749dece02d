"""The table of running sums: merging, forgetting, files, and sums that are no longer definite."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hybandits import FileError
from hybandits.estimators.sums import RunningSums, unsound
from tests.support.sums import D1, D2, rows, summed


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
    with pytest.raises(FileError, match="shared holds a number that is not finite"):
        RunningSums(D1, D2, cross=True).restore(header, {**arrays, "shared": arrays["shared"] * np.nan})


def test_sums_that_are_no_longer_definite_are_refused() -> None:
    table = summed(rows(0))
    table.shared[0] = -1e9
    with pytest.raises(ValueError, match=r"HyRan's sums are no longer positive definite.*rescale x and z"):
        table.estimate(1.0)
    assert isinstance(unsound(), ValueError)
