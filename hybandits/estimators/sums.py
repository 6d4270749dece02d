"""GramTable: the running sums behind HyRan. Its ridge changes every round, so that no factor can be kept."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from hybandits.estimators import policy_file
from hybandits.estimators.arms import ArmTable, Slots, grown
from hybandits.estimators.policy_file import FileError, Packed
from hybandits.estimators.ridge import Prediction
from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray
from hybandits.kernels import gram

NO_ROOM = np.zeros(0), np.zeros(0), np.zeros(0), np.zeros((0, 0))
"""The workspace of a round in which nothing is solved."""


class SolvedSums(NamedTuple):
    """theta, the beta of every slot, and the factor they were solved with, all at one ridge."""

    theta: FloatArray
    beta: FloatArray
    factor: FloatArray
    shared_factor: FloatArray
    ridge: float


class GramTable(ArmTable):
    """V, B_i, W_i and the right-hand sides as sums without the ridge, in the layout of `hybandits.kernels.gram`.

    With `cross` false the B_i are left out, as in the code that the paper released.
    """

    def __init__(self, d1: int, d2: int, *, cross: bool) -> None:
        super().__init__(d1, d2)
        self.cross = cross
        self.shared: FloatArray = np.zeros(d1 * gram.padded(d1))
        self.own: FloatArray = np.zeros(0)

    @property
    def block(self) -> int:
        """How many entries an arm's block has."""
        return int(gram.block_size(self.d2, self.d1 if self.cross else 0))

    @property
    def groups(self) -> int:
        """How many groups of four arms there is room for."""
        return (len(self.pulls) + 3) // 4

    def _reserve(self, capacity: int) -> None:
        self.own = grown(self.own, (capacity + 3) // 4 * 4 * self.block)

    def _entries(self, slots: Slots | list[int]) -> Any:
        """Return the indices of the arms' blocks in `own`, one row per arm."""
        arms = np.asarray(slots, np.int64)[:, None]
        return 4 * (arms // 4 * self.block + np.arange(self.block)) + arms % 4

    def _clear(self, slot: int) -> None:
        self.own[self._entries([slot])] = 0.0

    def slots_of(self, arms: Sequence[Hashable]) -> Slots:
        """Return the arms' slots; arms that are known but have no slot get one."""
        for arm in arms:
            if self._slots.get(arm) == -1:
                self._new_slot(arm)
        return self.lookup(arms)

    def workspace(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return room for a factor and the parameters solved with it."""
        beta = np.zeros((4 * self.groups, self.d2))
        return np.zeros_like(self.own), np.zeros_like(self.shared), np.zeros(self.d1), beta

    def estimate(self, ridge: float) -> SolvedSums:
        """Factor M + ridge I and solve for the parameters."""
        factor, shared_factor, theta, beta = self.workspace()
        sums = self.shared, self.own, factor, shared_factor
        if not gram.estimate(self.groups, ridge, self.cross, self.d1, self.d2, *sums, theta, beta):
            raise unsound()
        return SolvedSums(theta, beta, factor, shared_factor, ridge)

    def predict(self, x: FloatArray, z: FloatArray, slots: Slots, ridge: float) -> Prediction:
        """Return means and widths of checked candidates at one ridge."""
        solved = self.estimate(ridge)
        mean = np.array([gram.mean_of(*row, solved.theta, solved.beta) for row in zip(x, z, slots, strict=True)])
        return Prediction(mean, np.array([self.width(*row, solved) for row in zip(x, z, slots, strict=True)]))

    def width(self, x: FloatArray, z: FloatArray, slot: int, solved: SolvedSums) -> float:
        """Return sqrt(x~' (M + ridge I)^-1 x~) for one candidate."""
        return float(gram.width_of(x, z, slot, solved.ridge, self.cross, solved.factor, solved.shared_factor))

    def snapshot(self) -> dict[str, Any]:
        """Return a copy of everything that learning changes; `__dict__.update` with it goes back to this state."""
        kept = {name: getattr(self, name).copy() for name in ("shared", "own", "pulls")}
        return {**self.__dict__, **kept, "_slots": dict(self._slots), "_free": list(self._free)}

    def marginalise(self, arm: Hashable, ridge: float) -> None:
        """Forget an arm, with beta_i integrated out at this ridge: V -= B_i (W_i + ridge I)^-1 B_i', b_0 likewise."""
        slot = self.slot(arm)
        if slot >= 0 and self.cross:
            n = self.d2 + self.d1 + 1
            rows = np.zeros((self.d2, n))
            rows[np.triu_indices(self.d2, m=n)] = self.own[self._entries([slot])[0]]
            own = np.triu(rows[:, : self.d2]) + np.triu(rows[:, : self.d2], 1).T + ridge * np.eye(self.d2)
            cross = rows[:, self.d2 :]
            shared = self.shared.reshape(self.d1, gram.padded(self.d1))
            shared[:, : self.d1 + 1] -= np.triu(cross[:, :-1].T @ np.linalg.solve(own, cross))
        self.forget(arm)
        if slot >= 0:
            self._clear(slot)  # at once, because all slots enter the sums, free or not

    def merge(self, other: GramTable) -> None:
        """Add the sums of another table."""
        self.shared += other.shared
        for arm, source in other.learned.items():
            slot = self._slots.get(arm, -1)
            if slot < 0:
                slot = self._new_slot(arm)
            self.own[self._entries([slot])] += other.own[other._entries([source])]
            self.pulls[slot] += other.pulls[source]
        self.admit(other._slots)
        self.rounds += other.rounds

    def pack(self) -> Packed:
        """Return the whole state as a header and arrays, free slots included: sums are taken in the order of slots."""
        slots = np.fromiter(self._slots.values(), np.int64, len(self._slots))
        header = {"arms": policy_file.plain_ids(self._slots), "rounds": self.rounds, "free": list(self._free)}
        own = self.own[self._entries(np.arange(self._used))]
        arrays = {"own": own, "pulls": self.pulls[: self._used].copy(), "slots": slots, "shared": self.shared.copy()}
        return header, arrays

    def restore(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Undo `pack` on a new table; raise FileError if the parts do not fit together."""
        arms, free = policy_file.arm_ids(header["arms"]), header["free"]
        slots, pulls = arrays["slots"], arrays["pulls"]
        n = len(pulls)
        empty = [policy_file.counter("free", slot) for slot in free]
        policy_file.check_slots(
            [*arms, *(("free", slot) for slot in empty)], np.append(slots, empty).astype(np.int64), pulls
        )
        for name, shape in (("shared", self.shared.shape), ("own", (n, self.block))):
            array = arrays[name]
            if array.shape != shape or array.dtype != checks.FLOAT64 or not np.isfinite(array).all():
                raise FileError(f"{name} is not an array of finite float64 of shape {shape}: the file is corrupt")
        self.shared = arrays["shared"].copy()
        self._grow(n)
        self.own[self._entries(np.arange(n))] = arrays["own"]
        self.pulls[:] = pulls
        self._slots = dict(zip(arms, slots.tolist(), strict=True))
        self.known = len(arms)
        self._used = n
        self._free = empty
        self.rounds = policy_file.counter("rounds", header["rounds"])


def unsound() -> ValueError:
    """Return the error for sums whose matrix is no longer positive definite."""
    return ValueError(
        "HyRan's sums are no longer positive definite, because of rounding: they cannot take features beyond about 1e6 "
        "where x and z are alike; rescale x and z"
    )
