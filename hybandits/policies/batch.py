"""Many decisions at once: what is passed to `choose_batch`, checked, and what it returns."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybandits.estimators.arms import ArmTable, CandidateSet, Slots
from hybandits.estimators.inputs import check_finite, id_list
from hybandits.estimators.integer_ids import IntegerIds, IntegerRows, integers
from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray

NO_MASK: NDArray[np.bool_] = np.zeros((0, 0), np.bool_)


class Choices(NamedTuple):
    """Many decisions of a policy, as `Policy.choose_batch` returns them; entry b is about decision b.

    Attributes
    ----------
    arms : list of hashable
        The ids of the arms to play.
    indices : int array of shape (B,)
        The rows of these arms among the candidates.
    means, widths : array of shape (B,)
        What the policy expects of the arms, and how uncertain that is, as in `Choice`.
    propensities : array of shape (B,)
        The probability of each choice; NaN where it is not estimated.
    receipts : list
        What the policy wants back together with the rewards; None for most policies.

    Examples
    --------
    >>> import numpy as np
    >>> from hybandits import Greedy
    >>> choices = Greedy(d1=1, d2=0).choose_batch(np.ones((3, 2, 1)), arms=["a", "b"])
    >>> choices.arms, choices.indices.tolist()
    (['a', 'a', 'a'], [0, 0, 0])
    """

    arms: list[Hashable]
    indices: Slots
    means: FloatArray
    widths: FloatArray
    propensities: FloatArray
    receipts: list[Any]


class Batch(NamedTuple):
    """Checked candidates of many decisions."""

    x: FloatArray
    z: FloatArray
    ids: Sequence[Sequence[Hashable]]
    """One list for all decisions, or one for each."""
    mask: NDArray[np.bool_]

    @property
    def size(self) -> int:
        """How many decisions."""
        return len(self.x)

    def arms_at(self, indices: Slots) -> list[Hashable]:
        """The ids of one row in each decision."""
        several = len(self.ids) == self.size
        if isinstance(self.ids, IntegerRows):
            return self.ids.array[np.arange(self.size) if several else 0, indices].tolist()  # type: ignore[no-any-return]
        if not several:
            return [*map(self.ids[0].__getitem__, indices.tolist())]
        return [ids[i] for ids, i in zip(self.ids, indices.tolist(), strict=True)]

    def features(self, b: int) -> tuple[FloatArray, FloatArray]:
        """x and z of the candidates of decision b."""
        return (self.x[b][self.mask[b]], self.z[b][self.mask[b]]) if len(self.mask) else (self.x[b], self.z[b])

    def rows(self, b: int) -> tuple[FloatArray, FloatArray, Any, Slots]:
        """x, z and ids of the candidates of decision b, and the rows that they are."""
        places = np.flatnonzero(self.mask[b]) if len(self.mask) else np.arange(self.x.shape[1])
        ids = self.ids[b if len(self.ids) > 1 else 0]
        its = ids.array[places] if isinstance(ids, IntegerIds) else [ids[i] for i in places.tolist()]
        return *self.features(b), its, places

    def check_distinct(self) -> None:
        """Raise if a decision has an id more than once; ids of rows that the mask leaves out may repeat.

        Lists have been looked at already, unless there is a mask.
        """
        if len(self.mask) and len(self.ids) > 1:
            for b, ids in enumerate(self.ids):
                shown = [ids[i] for i in np.flatnonzero(self.mask[b]).tolist()]
                if len(set(shown)) != len(shown):
                    raise _repeated(shown)
        elif isinstance(self.ids, IntegerRows) and (row := self.ids.twice()) is not None:
            raise _repeated(row)

    def check_finite(self) -> None:
        """Raise, saying where, if a number of a candidate is not finite; rows that the mask leaves out may hold any."""
        for b in range(self.size):
            check_finite(*self.features(b))


def checked_batch(x: Any, z: Any, arms: Any, mask: Any, threads: int, d1: int, d2: int) -> Batch:
    """Return what `choose_batch` is passed, ready for the kernels; an error says what is wrong with it."""
    checks.count("threads", threads, least=1, why="it is the number of threads")
    if x is None and z is None:
        raise TypeError("x and z are missing: pass features of shape (B, n, d1) and (B, n, d2)")
    x = _features("x", x, z, d1)
    z = _features("z", z, x, d2)
    size, n = x.shape[:2]
    if z.shape[:2] != (size, n):
        raise ValueError(
            f"x is for {size} decisions with {n} candidates and z for {z.shape[0]} with {z.shape[1]}: pass one row of "
            "each for every candidate"
        )
    if n == 0:
        raise ValueError("there are 0 candidates: pass at least one row for each decision")
    ids: Sequence[Sequence[Hashable]]
    if isinstance(arms, np.ndarray) and arms.ndim == 2:
        if arms.shape != (size, n):
            raise ValueError(
                f"arms has shape {arms.shape} but there are {size} decisions with {n} candidates: pass an array of "
                f"shape ({size}, {n}), one row of ids for each decision, or one list of ids for all"
            )
        numbers = integers(arms)
        ids = [_ids(each, n, mask is None) for each in arms.tolist()] if numbers is None else IntegerRows(numbers)
    elif isinstance(arms, list) and arms and all(isinstance(each, list | CandidateSet) for each in arms):
        if len(arms) != size:
            raise ValueError(
                f"arms has {len(arms)} lists but there are {size} decisions: pass one list for each decision, or one "
                "list of ids for all"
            )
        ids = [_ids(each, n, mask is None) for each in arms]
    else:
        shared = _ids(arms, n)
        ids = IntegerRows(shared.array[None]) if isinstance(shared, IntegerIds) else [shared]
    if mask is None:
        shown = NO_MASK
    else:
        shown = np.ascontiguousarray(mask)
        if shown.dtype != np.bool_ or shown.shape != (size, n):
            raise ValueError(
                f"mask must be a bool array of shape ({size}, {n}), got {shown.dtype} {shown.shape}: True marks rows "
                "that are candidates"
            )
        if size and not shown.any(axis=1).all():
            b = int(np.argmin(shown.any(axis=1)))
            raise ValueError(f"mask leaves no candidate in decision {b}: mark at least one row")
    return Batch(x, z, ids, shown)


def _features(name: str, value: Any, other: Any, columns: int) -> FloatArray:
    if value is None and columns == 0:
        return np.zeros((*np.shape(other)[:2], 0))
    if checks.ready(value, (*np.shape(value)[:2], columns)):
        ready: FloatArray = value
        return ready
    what = f"shape (B, n, d{1 if name == 'x' else 2}) with {columns} feature(s), one row per candidate of each decision"
    return checks.array(name, value, 3, columns, what)


def _ids(arms: Any, n: int, distinct: bool = True) -> Sequence[Hashable]:
    ids = arms.arms if isinstance(arms, CandidateSet) else range(n) if arms is None else id_list(arms)
    if len(ids) != n:
        raise ValueError(f"arms has {len(ids)} ids but the features have {n} rows: pass one row per candidate")
    if isinstance(ids, IntegerIds):  # whether they are distinct is found out as they are looked up
        return ids
    if distinct and len(set(ids)) != n:
        raise _repeated(ids)
    for arm in ids:
        if type(arm) is not str and type(arm) is not int:
            checks.new_arm(arm)
    return ids


def _repeated(ids: Sequence[Hashable]) -> ValueError:
    return ValueError(f"arms holds an id more than once: {checks.short(list(ids))}; each candidate may appear once")


def look_up(batch: Batch, table: ArmTable) -> Slots:
    """The slots of all candidates, one row for all decisions or one for each; arms that are new are admitted.

    Only then must the numbers be looked at before the kernels do so: a call that is refused has changed nothing.
    """
    if isinstance(batch.ids, IntegerRows):
        slots = table.slots_of_rows(batch.ids.array)
        if slots is not None:
            return slots
    batch.check_distinct()
    if any(table.unmet(ids) for ids in batch.ids):
        batch.check_finite()
        for ids in batch.ids:
            table.check_new(ids)
        for b, ids in enumerate(batch.ids):
            shown: NDArray[np.bool_] = np.ones(len(ids), np.bool_)
            if len(batch.mask):
                shown = batch.mask[b] if len(batch.ids) > 1 else np.logical_or.reduce(batch.mask, axis=0)
            table.admit([arm for arm, is_shown in zip(ids, shown.tolist(), strict=True) if is_shown])
    return np.stack([table.lookup(ids) for ids in batch.ids])


def in_threads(work: Callable[[int, int], int], batch: Batch, threads: int) -> None:
    """Call work(first, last) for parts of a batch, at the same time in so many threads.

    It returns a row from which on numbers are not finite, -1 if all are; then an error says which.
    """
    size = batch.size
    threads = min(threads, max(size, 1))
    if threads == 1:
        refused = [work(0, size)]
    else:
        edges = np.linspace(0, size, threads + 1).astype(int).tolist()
        parts = list(itertools.pairwise(edges))
        with ThreadPoolExecutor(threads - 1) as pool:  # this thread takes the first part
            others = [pool.submit(work, *part) for part in parts[1:]]
            refused = [work(*parts[0]), *(other.result() for other in others)]
    if max(refused) >= 0:
        batch.check_finite()
        raise AssertionError("a kernel refused what the checks accept")
