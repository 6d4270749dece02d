"""The table of integer ids that kernels read, compiled and plain, beside a dict."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybandits.kernels import integer_ids
from tests.support.plain import plain

NUMBERS = st.one_of(
    st.integers(-5, 5),
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([-(2**63), 2**63 - 1, 2**32, 2**32 + 1, -(2**32)]),
    st.integers(-8, 8).map(lambda k: k << 58),
)


def empty(places: int) -> Any:
    entries = np.empty((places, 3), np.int64)
    entries[:] = 0, integer_ids.EMPTY, -1
    return entries


def check(stored: dict[int, int], asked: list[int], changes: list[tuple[int, int]]) -> None:
    """Put ids with their slots, change some slots, and look ids up: one row, and the same as two rows."""
    entries = empty(64)
    ids, slots = np.array(list(stored), np.int64), np.array(list(stored.values()), np.int64)
    assert integer_ids.put(ids, slots, entries) == len(stored)
    assert integer_ids.put(ids, slots, entries) == 0
    wanted = dict(stored)
    for number, slot in changes:
        integer_ids.change(number, slot, entries)
        if number in wanted:
            wanted[number] = slot
    numbers, found = np.array(asked, np.int64), np.empty(len(asked), np.int64)
    for call in (1, 2):
        outcome = integer_ids.look_up(numbers, entries, call, found)
        expected = [wanted.get(number, integer_ids.EMPTY) for number in asked]
        assert found.tolist() == expected
        if min(expected, default=0) < integer_ids.NOT_LEARNED:
            assert outcome == integer_ids.UNKNOWN
        else:
            assert outcome == (integer_ids.TWICE if len(set(asked)) < len(asked) else integer_ids.FOUND)
    rows = np.array([asked, asked[::-1]], np.int64)
    found_rows = np.empty(rows.shape, np.int64)
    assert integer_ids.look_up_rows(rows, entries, 3, found_rows) == outcome
    assert found_rows.tolist() == [expected, expected[::-1]]


CASES = st.dictionaries(NUMBERS, st.integers(-2, 9), max_size=30).flatmap(
    lambda stored: st.tuples(
        st.just(stored),
        st.lists(st.one_of(NUMBERS, st.sampled_from([*stored, 0])), max_size=12),
        st.lists(st.tuples(st.one_of(NUMBERS, st.sampled_from([*stored, 0])), st.integers(-2, 9)), max_size=5),
    )
)


@settings(deadline=None)
@given(case=CASES)
def test_it_answers_as_a_dict_does(case: Any) -> None:
    check(*case)


@settings(deadline=None)
@given(case=CASES)
def test_it_does_so_without_compilation(case: Any) -> None:
    with plain():
        check(*case)


@pytest.mark.parametrize("step", [1, 7, 1 << 20, 1 << 32, (1 << 32) + 1, 1 << 45])
def test_ids_at_equal_distances_do_not_crowd(step: int) -> None:
    """400 ids in 4,096 places leave gaps between them, so that every search is short."""
    entries = empty(4096)
    ids = np.arange(400) * step
    integer_ids.put(ids, np.arange(400), entries)
    places = np.array([integer_ids.place_of(number, entries) for number in ids.tolist()], np.int64)
    assert len(set(places.tolist())) == 400
    taken = entries[:, integer_ids.SLOT] != integer_ids.EMPTY
    runs = np.diff(np.flatnonzero(np.diff(np.concatenate(([0], taken, [0])))))[::2]
    assert runs.max() <= 12
