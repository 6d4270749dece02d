"""Ids that are passed as a NumPy array of integers: looked up by a kernel, and turned into Python ints one by one."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from hybandits.kernels import integer_ids

Integers = NDArray[np.int64]

INT64 = np.dtype(np.int64)
LEAST, MOST = -(2**63), 2**63 - 1
UNKNOWN = integer_ids.UNKNOWN
USUAL = 1024
"""Up to so many ids, the table is kept sparse: a place that is taken costs more time than memory (98 kB) is worth."""
_room = np.empty


def integers(arms: Any) -> Integers | None:
    """Return an array of integer ids as kernels can take it; None if it is something else or beyond 64 bits.

    Bools and floats are something else, because the id of a chosen arm has the type that the caller gave it.
    """
    if type(arms) is not np.ndarray:
        return None
    if arms.dtype is INT64 and arms.flags.carray:
        return arms
    kind, size = arms.dtype.kind, arms.dtype.itemsize
    if kind == "i" or (kind == "u" and (size < 8 or (arms <= np.uint64(MOST)).all())):
        return np.array(arms, INT64, order="C")
    return None


class IntegerIds(Sequence[int]):
    """Ids in an array, which are Python ints to whoever asks for one."""

    __slots__ = ("array",)

    def __init__(self, array: Integers) -> None:
        self.array = array

    def __len__(self) -> int:
        return len(self.array)

    @overload
    def __getitem__(self, at: int) -> int: ...

    @overload
    def __getitem__(self, at: slice) -> list[int]: ...

    def __getitem__(self, at: int | slice) -> int | list[int]:
        return self.array[at].tolist()  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[int]:
        return iter(self.array.tolist())

    def __repr__(self) -> str:
        return repr(self.array.tolist())


class IntegerRows(Sequence[IntegerIds]):
    """Rows of such ids, one for each of many decisions or one for all."""

    __slots__ = ("array",)

    def __init__(self, array: Integers) -> None:
        self.array = array

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, at: Any) -> Any:
        return IntegerIds(self.array[at])

    def twice(self) -> IntegerIds | None:
        """Return the first row that has an id more than once."""
        ordered = np.sort(self.array, axis=1)
        rows = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
        return self[rows[0]] if len(rows) else None


class IntegerTable:
    """What a table of arms says about the ids that have been passed in arrays, for kernels to look up.

    It is told of every arm in it that gets a slot or is forgotten. Ids that are not in it are looked for among the
    arms, and then they are in it, so nothing is ever built for all arms at once.
    """

    __slots__ = ("_calls", "_entries", "_taken")

    def __init__(self) -> None:
        self._entries = _empty(0)
        self._taken = 0
        self._calls = 0

    def look_up(self, ids: Integers, known: Mapping[Hashable, int]) -> tuple[Integers, int]:
        """Return the slots of ids, below -1 for those that are not known, and FOUND, TWICE or UNKNOWN."""
        slots = _room(ids.shape[0], INT64)
        self._calls = call = self._calls + 1
        outcome = integer_ids.look_up(ids, self._entries, call, slots)
        if outcome == UNKNOWN and self._take_over(ids[slots < integer_ids.NOT_LEARNED], known):
            return self.look_up(ids, known)
        return slots, outcome

    def look_up_rows(self, ids: Integers, known: Mapping[Hashable, int]) -> tuple[Integers, int]:
        """Return the same for every row of ids, and the worst that became of one."""
        slots = np.empty(ids.shape, INT64)
        outcome = integer_ids.look_up_rows(ids, self._entries, self._calls + 1, slots)
        self._calls += len(ids)
        if outcome == integer_ids.UNKNOWN and self._take_over(ids[slots < integer_ids.NOT_LEARNED], known):
            return self.look_up_rows(ids, known)
        return slots, outcome

    def _take_over(self, missing: Integers, known: Mapping[Hashable, int]) -> int:
        """Take in those of the missing ids that are known, and return how many."""
        found = {number: known[number] for number in missing.tolist() if number in known}
        if found:
            if 2 * (self._taken + len(found)) > len(self._entries):
                self._make_room(len(found))
            ids, slots = np.array(list(found), INT64), np.array(list(found.values()), INT64)
            self._taken += integer_ids.put(ids, slots, self._entries)
        return len(found)

    def _make_room(self, more: int) -> None:
        """Move to a table that a quarter of is taken, without the ids of arms that were forgotten."""
        kept = self._entries[self._entries[:, integer_ids.SLOT] >= integer_ids.NOT_LEARNED]
        entries = _empty(len(kept) + more)
        ids, slots = kept[:, integer_ids.ID].copy(), kept[:, integer_ids.SLOT].copy()
        self._taken = integer_ids.put(ids, slots, entries)
        self._entries = entries

    def follow(self, arm: Any, slot: int) -> bool:
        """Record an arm's new slot, FORGOTTEN for none; False if it cannot be told which integer the arm equals."""
        if type(arm) is not int:
            if isinstance(arm, str | tuple):
                return True
            if isinstance(arm, float | np.floating):
                if not arm.is_integer():
                    return True
            elif not isinstance(arm, int | np.integer | np.bool_):
                return False
            arm = int(arm)
        if LEAST <= arm <= MOST:
            integer_ids.change(arm, slot, self._entries)
        return True


def _empty(ids: int) -> Integers:
    """Return a table with at least four places for each of so many ids, or for each of `USUAL` ids."""
    entries = np.empty((1 << (4 * max(ids, USUAL) - 1).bit_length(), 3), INT64)
    entries[:] = 0, integer_ids.EMPTY, -1
    return entries
