"""Ids in arrays of integers: which arrays are such ids, and the table that keeps up with the arms."""

from __future__ import annotations

from decimal import Decimal
from enum import IntEnum
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybandits import HybridRidge
from hybandits.estimators.integer_ids import IntegerIds, IntegerRows, IntegerTable, integers
from hybandits.kernels.integer_ids import FORGOTTEN, FOUND, TWICE, UNKNOWN
from tests.support.plain import plain


@pytest.mark.parametrize(
    "arms",
    [
        np.array([3, -1, 2**63 - 1, -(2**63)]),
        np.array([3, 1], np.int32),
        np.array([3, 1], ">i8"),
        np.array([3, 1], np.uint16),
        np.array([3, 2**63 - 1], np.uint64),
        np.arange(9)[::-2],
        np.arange(6).reshape(2, 3),
        np.arange(6).reshape(2, 3).T,
    ],
    ids=["int64", "int32", "big-endian", "uint16", "uint64", "strided", "2-d", "transposed"],
)
def test_arrays_of_integers(arms: Any) -> None:
    for given_array in (arms, _read_only(arms)):
        ready = integers(given_array)
        assert ready is not None
        assert ready.dtype == np.int64
        assert ready.flags.carray
        assert ready.tolist() == arms.tolist()


def _read_only(array: Any) -> Any:
    array = array.copy()
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    "arms",
    [
        [1, 2],
        None,
        np.array([1.0, 2.0]),
        np.array([True, False]),
        np.array(["1", "2"]),
        np.array([1, 2**63], np.uint64),
        np.array([1, 2**70], object),
        np.ma.masked_array([1, 2], [True, False]),
        np.array([1, 2], "m8[s]"),
    ],
    ids=["list", "none", "floats", "bools", "strings", "beyond int64", "objects", "masked", "times"],
)
def test_everything_else_is_left_to_others(arms: Any) -> None:
    assert integers(arms) is None


def test_ids_are_python_ints_to_whoever_reads_them() -> None:
    ids = IntegerIds(np.array([7, 8, 9]))
    assert [*ids] == [7, 8, 9] == ids[:]
    assert ids[-1] == 9
    assert {type(each) for each in (*ids, ids[0], *ids[:2])} == {int}
    assert repr(ids) == "[7, 8, 9]"
    assert 8 in ids
    rows = IntegerRows(np.array([[1, 2], [3, 4]]))
    assert [[*row] for row in rows] == [[1, 2], [3, 4]]
    assert rows.twice() is None
    assert [*(IntegerRows(np.array([[1, 2], [4, 4]])).twice() or ())] == [4, 4]
    assert IntegerRows(np.empty((0, 3), np.int64)).twice() is None


def test_what_is_known_is_found_once_it_has_been_missed() -> None:
    table, known = IntegerTable(), {1: 0, 2: -1, "a": 5}
    slots, outcome = table.look_up(np.array([2, 1]), known)  # type: ignore[arg-type]
    assert (slots.tolist(), outcome) == ([-1, 0], FOUND)
    assert table.look_up(np.array([2, 2]), known)[1] == TWICE  # type: ignore[arg-type]
    slots, outcome = table.look_up(np.array([1, 3]), known)  # type: ignore[arg-type]
    assert outcome == UNKNOWN
    assert slots[0] == 0
    assert slots[1] < -1
    known[3] = 7
    assert table.look_up(np.array([1, 3]), known)[0].tolist() == [0, 7]  # type: ignore[arg-type]
    rows = table.look_up_rows(np.array([[1, 3], [3, 2]]), known)  # type: ignore[arg-type]
    assert (rows[0].tolist(), rows[1]) == ([[0, 7], [7, -1]], FOUND)
    assert table.look_up_rows(np.array([[1, 3], [3, 3]]), known)[1] == TWICE  # type: ignore[arg-type]


class Number(IntEnum):
    FIVE = 5


@pytest.mark.parametrize("arm", [5, 5.0, np.int32(5), np.uint8(5), np.float32(5.0), Number.FIVE])
def test_slots_follow_every_way_to_write_an_id(arm: Any) -> None:
    table, known = IntegerTable(), {5: -1}
    table.look_up(np.array([5]), known)  # type: ignore[arg-type]
    assert table.follow(arm, 3)
    assert table.look_up(np.array([5]), {})[0].tolist() == [3]
    assert table.follow(arm, FORGOTTEN)
    assert table.look_up(np.array([5]), {})[1] == UNKNOWN


def test_ids_that_no_array_holds_are_not_followed() -> None:
    table = IntegerTable()
    for arm in ("5", ("a", 5), 5.5, float("inf"), 2**63, -(2**63) - 1, 2.0**80):
        assert table.follow(arm, 1)
    assert not table.follow(Decimal(5), 1)
    assert not table.follow(5 + 0j, 1)


@pytest.mark.parametrize("alias", [Decimal(5), 5 + 0j], ids=["Decimal", "complex"])
def test_an_id_of_another_kind_that_equals_an_integer_is_that_arm(alias: Any) -> None:
    estimator = HybridRidge(d1=1, d2=1)
    estimator.admit([5])
    ids, x = np.array([5]), np.ones((1, 1))
    before = estimator.predict(x, x, ids)
    estimator.learn(alias, [1.0], [1.0], 1.0)
    assert estimator.predict(x, x, ids).mean != before.mean
    assert estimator.predict(x, x, ids) == estimator.predict(x, x, [5])


def test_arms_that_come_and_go_do_not_make_it_grow() -> None:
    table = IntegerTable()
    for first in range(0, 100_000, 500):
        ids = np.arange(first, first + 500)
        slots, outcome = table.look_up(ids, {number: number % 500 for number in ids.tolist()})
        assert outcome == FOUND
        assert slots.tolist() == list(range(500))
        for number in ids.tolist():
            table.follow(number, FORGOTTEN)
    assert len(table._entries) == 4096


def test_many_arms_are_moved_to_larger_tables_and_all_found() -> None:
    table, draw = IntegerTable(), np.random.default_rng(0)
    ids = np.unique(draw.integers(-(2**63), 2**63 - 1, 20_000))
    known = dict(zip(ids.tolist(), range(len(ids)), strict=True))
    for part in np.array_split(draw.permutation(ids), 50):
        assert table.look_up(part, known)[1] == FOUND  # type: ignore[arg-type]
    assert table.look_up(ids, {})[0].tolist() == list(range(len(ids)))
    assert 2 * len(ids) <= len(table._entries) <= 8 * len(ids)


IDS = st.one_of(
    st.integers(0, 4), st.sampled_from([-1, 2**63 - 1, -(2**63), 2**63, "0", "a", ("t", 1), 1.0, np.int64(2)])
)
STEPS = st.lists(
    st.tuples(st.sampled_from(["choose", "learn", "learn", "learn many", "forget", "merge", "copy", "ask"]),
              st.lists(IDS, min_size=1, max_size=4)),
    max_size=12,
)  # fmt: skip


def follow_steps(steps: Any) -> None:
    """Whatever happens to the arms, an array is answered as the list of the same ids."""
    estimator, one = HybridRidge(d1=1, d2=1), np.ones(1)
    every = np.array([0, 1, 2, 3, 4, -1, 2**63 - 1, -(2**63)])
    for number, (step, ids) in enumerate(steps):
        if step == "choose":
            estimator.admit(ids)
        elif step == "learn":
            estimator.learn(ids[0], one, one, float(number))
        elif step == "learn many":
            estimator.learn_batch(ids, np.ones((len(ids), 1)), np.ones((len(ids), 1)), np.ones(len(ids)))
        elif step == "forget" and estimator.knows(ids[0]):
            estimator.forget(ids[0])
        elif step == "merge":
            other = HybridRidge(d1=1, d2=1)
            other.learn(ids[0], one, one, 0.5)
            other.predict(np.ones((1, 1)), np.ones((1, 1)), np.array([3]))
            estimator.merge(other)
        elif step == "copy":
            estimator = HybridRidge.unpack(*estimator.pack())
        x = np.ones((len(every), 1))
        assert estimator.lookup(IntegerIds(every)).tolist() == estimator.lookup(every.tolist()).tolist()
        assert estimator.unmet(IntegerIds(every)) == estimator.unmet(every.tolist())
        known = np.array([number for number in every.tolist() if estimator.knows(number)], np.int64)
        if len(known):
            slots = estimator.ready_slots(x[: len(known)], x[: len(known)], known)
            assert slots is not None
            assert slots.tolist() == [estimator.slot(number) for number in known.tolist()]
            twice = np.append(known, known[:1])
            assert estimator.ready_slots(x[: len(twice)], x[: len(twice)], twice) is None


@pytest.mark.filterwarnings("ignore:arm .* is not known, but")
@settings(deadline=None)
@given(steps=STEPS)
def test_an_array_is_answered_as_the_list_of_its_ids(steps: Any) -> None:
    follow_steps(steps)


@pytest.mark.filterwarnings("ignore:arm .* is not known, but")
def test_it_is_so_without_compilation() -> None:
    steps: Any = [("choose", [3, 1, "a"]), ("learn", [1]), ("learn", [2**63 - 1]), ("merge", [4]), ("forget", [1]),
                  ("learn many", [-1, 3, 3, 0]), ("copy", [0]), ("learn", [1])]  # fmt: skip
    with plain():
        follow_steps(steps)
