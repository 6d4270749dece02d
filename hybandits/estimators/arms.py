"""The table of known arms and of the slots of their blocks, and candidate sets."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from hybandits.estimators.inputs import check_finite, checked_matrices, distinct, id_list
from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray, ready

Slots = NDArray[np.int64]

new_tuple: Any = tuple.__new__
"""Makes a named tuple in half the time that its class takes."""

SHORT_LIST = 64
"""The largest number of ids for which a set finds repeated ones faster than an array of slots."""


class Candidates(NamedTuple):
    """Candidates whose features are ready for the kernels, with their ids and slots (-1: the arm has not learned)."""

    x: FloatArray
    z: FloatArray
    arms: Sequence[Hashable]
    slots: Slots

    def take(self, rows: Slots) -> Self:
        """Return the candidates in these rows."""
        return type(self)(self.x[rows], self.z[rows], [self.arms[i] for i in rows.tolist()], self.slots[rows])


class Prediction(NamedTuple):
    """The estimated reward of every candidate and its uncertainty, as returned by `predict`."""

    mean: FloatArray
    """(n,): the estimated rewards x.theta + z.beta_arm."""
    width: FloatArray
    """(n,): sqrt(x~' M^-1 x~), the standard error of each mean in units of the noise. It is large for candidates unlike
    anything learned so far, and shrinks as similar rows are learned."""


class CandidateSet:
    """A list of arms whose ids have been looked up, to be passed to `choose` in place of the list.

    Get one from `policy.candidates(arms)`. It saves the time of looking up the same ids in every call, which matters
    for pools of hundreds of arms that rarely change. A set stays valid for as long as its policy.
    """

    __slots__ = ("arms", "looked_up")

    def __init__(self, arms: tuple[Hashable, ...]) -> None:
        self.arms = arms
        self.looked_up: tuple[object, int, Slots] = None, -1, np.empty(0, np.int64)
        """In which table, at which epoch, and the slots; one value, since policies in several threads may share it."""

    def __len__(self) -> int:
        return len(self.arms)

    def __repr__(self) -> str:
        return f"CandidateSet({checks.short(list(self.arms))}, n={len(self.arms)})"


RESERVE = 64
"""The factor by which a large array is over-allocated when it moves; for a small one it is 2."""
LARGE = 1 << 20

Numbers = TypeVar("Numbers", bound=np.ndarray[Any, Any])


def grown(array: Numbers, n: int) -> Numbers:
    """Return the array extended by zeros to n entries of 8 bytes; it must be new or come from here.

    The result is a view of a larger array that begins on a cache line. As long as the larger one has capacity nothing
    is copied, and old views may still be read. Unused capacity costs addresses, not memory.
    """
    larger = array.base
    if isinstance(larger, np.ndarray):  # otherwise it is new, or unpickled
        start = (array.ctypes.data - larger.ctypes.data) // 8
        if start + n <= len(larger):
            return larger[start : start + n]  # type: ignore[return-value]
    times = float(RESERVE if 8 * n > LARGE else 2)
    while True:
        try:
            larger = np.zeros(int(times * n) + 8, array.dtype)
            break
        except MemoryError:  # addresses may be limited too
            if times < 1.1:
                raise
            times = 1.0 + (times - 1.0) / 2.0
    start = (-larger.ctypes.data % 64) // 8
    moved = larger[start : start + n]
    moved[: len(array)] = array
    return moved  # type: ignore[return-value]


class ArmTable(ABC):
    """A table of known arms and of the slots of their blocks, with the checks of arguments.

    Subclasses store the blocks: `_reserve(capacity)` allocates that many, `_clear(slot)` sets one to the prior.
    """

    epoch: int
    """Changes whenever a slot is given to an arm or taken back."""

    rounds: int
    """The number of rows learned."""

    pulls: Slots
    """The number of rows that each slot has learned."""

    warned_of_twin = False
    """True once the warning about an id that is known as another type has been issued."""

    known: int
    """The number of arms. A plain number, because every `choose` and `learn` reads it."""

    def __init__(self, d1: int, d2: int) -> None:
        self.d1 = d1
        self.d2 = d2
        self.epoch = self.rounds = self.known = 0
        self.pulls = np.zeros(0, np.int64)
        self._slots: dict[Hashable, int] = {}
        self._used = 0
        self._free: list[int] = []
        self._last_ids: Any = None
        self._last_slots: Slots = np.empty(0, np.int64)
        self._last_epoch = -1

    @property
    def arms(self) -> list[Hashable]:
        """Every arm that has been met and not forgotten, in the order met."""
        return list(self._slots)

    def knows(self, arm: Hashable) -> bool:
        """Return whether the arm has been met and not forgotten."""
        return arm in self._slots

    def unmet(self, arms: Iterable[Hashable]) -> int:
        """Return how many of the arms are not known yet."""
        return sum(arm not in self._slots for arm in arms)

    @property
    def learned(self) -> dict[Hashable, int]:
        """The arms that have learned, each with its slot."""
        return {arm: slot for arm, slot in self._slots.items() if slot >= 0}

    def pulls_of(self, arm: Hashable) -> int:
        """Return how many rows the arm has learned."""
        slot = self.slot(arm)
        return int(self.pulls[slot]) if slot >= 0 else 0

    def slot(self, arm: Hashable) -> int:
        """Return the arm's slot, -1 if it has not learned; raise if it is not known."""
        try:
            return self._slots[arm]
        except KeyError:
            raise KeyError(
                f"arm {arm!r} is not known: it has not been passed to choose() or learn(), or it was forgotten"
            ) from None
        except TypeError:
            raise TypeError(f"arm {checks.short(arm)} is not hashable: use str, int or tuples as ids") from None

    def admit(self, arms: Iterable[Hashable]) -> None:
        """Make arms known. Until it learns, an arm costs no more than its id."""
        for arm in arms:
            self._slots.setdefault(arm, -1)
        self.known = len(self._slots)

    def check_new(self, arms: Iterable[Hashable]) -> None:
        """Refuse new ids that are mistakes or cannot be saved; warn, once, of one that is known as another type."""
        for arm in arms:
            if arm not in self._slots:
                checks.new_arm(arm)
                twin = checks.twin_of(arm)
                if twin in self._slots and not self.warned_of_twin:
                    self.warned_of_twin = True
                    kind, other = type(arm).__name__, type(twin).__name__
                    number = "float(arm)" if isinstance(arm, str) and "." in arm else "arm"
                    checks.warn(
                        f"arm {arm!r} ({kind}) is not known, but {twin!r} ({other}) is: they are two arms, and {arm!r} "
                        f"starts from nothing; if they should be one, pass {other}({number})"
                    )

    def forget(self, arm: Hashable) -> None:
        """Drop an arm and its block; the shared part, and the means and widths of all other arms, stay the same."""
        slot = self.slot(arm)
        del self._slots[arm]
        self.known = len(self._slots)
        if slot >= 0:
            self._free.append(slot)
            self.pulls[slot] = 0
        self.epoch += 1

    def _new_slot(self, arm: Hashable) -> int:
        if self._free:
            slot = self._free.pop()
        else:
            if self._used == len(self.pulls):
                self._grow(self._used + max(8, self._used // 32))
            slot = self._used
            self._used += 1
        self._clear(slot)
        self.pulls[slot] = 0
        self._slots[arm] = slot
        self.known = len(self._slots)
        self.epoch += 1
        return slot

    def slot_for(self, arm: Hashable) -> int:
        """Return the arm's slot, a new one if it has none."""
        slot = self._slots.get(arm, -1)
        return slot if slot >= 0 else self._new_slot(arm)

    def _grow(self, capacity: int) -> None:
        self._reserve(capacity)
        self.pulls = grown(self.pulls, capacity)  # last, because its length says how many blocks there are

    @abstractmethod
    def _reserve(self, capacity: int) -> None: ...

    @abstractmethod
    def _clear(self, slot: int) -> None: ...

    def set_aside(self, arms: Sequence[Hashable]) -> tuple[Slots, Slots]:
        """Return the arms' slots, -1 for those that have none, and as many fresh slots for a compiled loop to use.

        The fresh slots are in the order in which `learn` would use them. A loop that takes them from the front, in the
        order of its rounds, therefore stores every block where `learn` would have stored it.
        """
        slots = self.lookup(arms)
        waiting = int((slots < 0).sum())
        need = self._used + max(0, waiting - len(self._free))
        if need > len(self.pulls):
            self._grow(need)
        fresh = [*reversed(self._free), *range(self._used, need)][:waiting]
        for slot in fresh:
            self._clear(slot)
            self.pulls[slot] = 0
        return slots, np.array(fresh, np.int64)

    def settle(self, arms: Sequence[Hashable], slots: Slots, fresh: Slots, rows: int) -> None:
        """Record what a compiled loop has done: which arms took which fresh slots, and how many rows it learned."""
        owner = dict(zip(slots.tolist(), arms, strict=True))
        taken = [slot for slot in fresh.tolist() if slot in owner]
        for slot in taken:
            self._slots[owner[slot]] = slot
        self.known = len(self._slots)
        again = min(len(taken), len(self._free))
        del self._free[len(self._free) - again :]
        self._used += len(taken) - again
        self.rounds += rows
        self.epoch += 1

    def candidates(self, arms: Sequence[Hashable]) -> CandidateSet:
        """Check a list of ids and return it as a `CandidateSet`."""
        return CandidateSet(tuple(self._ids(arms, None)))

    def lookup(self, arms: Sequence[Hashable]) -> Slots:
        """Return the slots of the arms, -1 for those that have not learned or are not known."""
        slot_of = self._slots.get
        return np.fromiter((slot_of(arm, -1) for arm in arms), np.int64, len(arms))

    def _ids(self, arms: Any, n: int | None) -> Sequence[Hashable]:
        """Return the ids as a sequence; raise if they are not hashable, not distinct, none, or not as many as rows."""
        if arms is None:
            if n is None:
                raise TypeError("arms is missing: pass a list of ids")
            arms = range(n)
        arms = id_list(arms)
        if n is not None and len(arms) != n:
            raise ValueError(
                f"arms has {len(arms)} ids but the features have {n} rows: pass one row of x and z per candidate"
            )
        if len(arms) == 0:
            raise ValueError("arms is empty, got 0 candidates: pass at least one row and one id")
        if len(distinct(arms)) != len(arms):
            twice = next(arm for i, arm in enumerate(arms) if arm in arms[:i])
            raise ValueError(f"arms holds {twice!r} more than once: each candidate may appear once per call")
        return arms  # type: ignore[no-any-return]

    def checked_candidates(self, x: Any, z: Any, arms: Any, admit: bool) -> Candidates:
        """Check what `choose` and `predict` are passed; with `admit`, make unknown arms known if all is valid."""
        slots = self._known_slots(arms)
        if slots is not None:
            n = slots.shape[0]
            if ready(x, (n, self.d1)) and ready(z, (n, self.d2)):
                ids = arms.arms if type(arms) is CandidateSet else arms
                candidates: Candidates = new_tuple(Candidates, (x, z, ids, slots))
                return candidates
        x, z = checked_matrices(x, z, self.d1, self.d2)
        if type(arms) is CandidateSet and len(arms) != x.shape[0]:
            raise ValueError(
                f"the candidate set has {len(arms)} arms but the features have {x.shape[0]} rows: "
                "pass one row of x and z per arm of the set, or make a new set"
            )
        ids = arms.arms if type(arms) is CandidateSet else self._ids(arms, x.shape[0])
        if self.unmet(ids):
            self.check_new(ids)
            if admit:
                check_finite(x, z)
                self.admit(ids)
        slots = self.lookup(ids)
        if admit and type(arms) is CandidateSet:
            arms.looked_up = self, self.epoch, slots
        return Candidates(x, z, ids, slots)

    def _known_slots(self, arms: Any) -> Slots | None:
        """Return the slots of ids that are all known and distinct, else None. It remembers the ids of the last call."""
        kind = type(arms)
        if kind is CandidateSet:
            owner, epoch, slots = arms.looked_up
            return slots if owner is self and epoch == self.epoch else None
        if (kind is not list and kind is not tuple) or not arms:
            return None
        try:
            if self._last_epoch == self.epoch and arms == self._last_ids:
                return self._last_slots
            slots = np.fromiter(map(self._slots.__getitem__, arms), np.int64, len(arms))
            if len(arms) > SHORT_LIST:
                seen = np.zeros(len(self.pulls) + 1, bool)
                seen[slots] = True  # the last for -1
                distinct_slots = np.count_nonzero(seen) == len(arms)
            if (len(arms) <= SHORT_LIST or not distinct_slots) and len(set(arms)) != len(arms):
                return None
        except (KeyError, TypeError, ValueError):  # an id that is unknown, not hashable or not comparable
            return None
        self._last_ids, self._last_slots, self._last_epoch = arms[:], slots, self.epoch
        return slots
