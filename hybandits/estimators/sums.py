"""RunningSums: the sums behind HyRan. Its ridge changes every round, so that no factor can be kept."""

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from hybandits.estimators import policy_file
from hybandits.estimators.arms import ArmTable, Prediction, Slots, grown
from hybandits.estimators.policy_file import Packed, put_back
from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray
from hybandits.kernels import hyran


class SolvedSums(NamedTuple):
    """The factors of M + ridge I, and the parameters solved with them: theta, and beta of every slot."""

    shared_factor: FloatArray
    factors: FloatArray
    theta: FloatArray
    beta: FloatArray


class RunningSums(ArmTable):
    """V, B_i, W_i and the right-hand sides as sums without the ridge, in the layout of `hybandits.kernels.hyran`.

    With `cross` false the B_i are left out, as in the code that the paper released.
    """

    def __init__(self, d1: int, d2: int, *, cross: bool) -> None:
        super().__init__(d1, d2)
        self.block = d2, d2 + (d1 if cross else 0) + 1
        self.shared: FloatArray = np.zeros((d1, d1 + 1))
        self._blocks: FloatArray = np.zeros(0)

    @property
    def own(self) -> FloatArray:
        """[W_i | B_i' | b_i] of every slot; those of free slots are 0."""
        return self._blocks.reshape(len(self.pulls), *self.block)

    def _reserve(self, capacity: int) -> None:
        self._blocks = grown(self._blocks, capacity * self.block[0] * self.block[1])

    def _clear(self, slot: int) -> None:
        self.own[slot] = 0.0

    def slots_of(self, arms: Sequence[Hashable]) -> Slots:
        """Return the arms' slots, with new ones for known arms that have none."""
        for arm in arms:
            if self._slots.get(arm) == -1:
                self._new_slot(arm)
        return self.lookup(arms)

    def workspace(self) -> SolvedSums:
        """Return arrays for factors and the parameters solved with them."""
        beta = np.zeros((len(self.pulls), self.d2))
        return SolvedSums(np.empty_like(self.shared), np.empty_like(self.own), np.zeros(self.d1), beta)

    def estimate(self, ridge: float) -> SolvedSums:
        """Factor M + ridge I and solve for the parameters."""
        solved = self.workspace()
        if not hyran.estimate(ridge, self.shared, self.own, *solved):
            raise unsound()
        return solved

    def predict(self, x: FloatArray, z: FloatArray, slots: Slots, ridge: float) -> Prediction:
        """Return means and widths of checked candidates at one ridge."""
        solved = self.estimate(ridge)
        rows = list(zip(x, z, slots, strict=True))
        mean = np.array([hyran.mean_of(*row, solved.theta, solved.beta) for row in rows])
        width = np.array([hyran.width_of(*row, ridge, solved.shared_factor, solved.factors) for row in rows])
        return Prediction(mean, width)

    def snapshot(self) -> dict[str, Any]:
        """Return a copy of everything that learning changes; `__dict__.update` with it goes back to this state."""
        kept = {name: getattr(self, name).copy() for name in ("shared", "_blocks", "pulls")}
        return {**self.__dict__, **kept, "_slots": dict(self._slots), "_free": list(self._free)}

    def marginalise(self, arm: Hashable, ridge: float) -> None:
        """Forget an arm, with beta_i integrated out at this ridge: V -= B_i (W_i + ridge I)^-1 B_i', b_0 likewise."""
        slot = self.slot(arm)
        if slot >= 0:
            own, cross = self.own[slot, :, : self.d2], self.own[slot, :, self.d2 :]
            if cross.shape[1] == self.shared.shape[1]:
                own = np.triu(own) + np.triu(own, 1).T + ridge * np.eye(self.d2)
                self.shared -= np.triu(cross[:, :-1].T @ np.linalg.solve(own, cross))
            self._clear(slot)  # at once, because all slots enter the sums, free or not
        self.forget(arm)

    def merge(self, other: Self) -> None:
        """Add the sums of another table."""
        self.shared += other.shared
        for arm, source in other.learned.items():
            slot = self.slot_for(arm)
            self.own[slot] += other.own[source]
            self.pulls[slot] += other.pulls[source]
        self.admit(other._slots)
        self.rounds += other.rounds

    def pack(self) -> Packed:
        """Return the whole state as a header and arrays, free slots included: sums are taken in the order of slots."""
        slots = np.fromiter(self._slots.values(), np.int64, len(self._slots))
        header = {"arms": [*map(checks.plain_id, self._slots)], "rounds": self.rounds, "free": list(self._free)}
        n = self._used
        arrays = {"own": self.own[:n].copy(), "pulls": self.pulls[:n].copy(), "slots": slots}
        return header, {**arrays, "shared": self.shared.copy()}

    def restore(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Restore what `pack` returned in a new table; raise FileError if the parts do not fit together."""
        arms, free = policy_file.arm_ids(header["arms"]), header["free"]
        slots, pulls = arrays["slots"], arrays["pulls"]
        n = len(pulls)
        empty = [policy_file.counter("free", slot) for slot in free]
        policy_file.check_slots(
            [*arms, *(("free", slot) for slot in empty)], np.append(slots, empty).astype(np.int64), pulls
        )
        self._grow(n)
        for name, array in (("shared", self.shared), ("own", self.own), ("pulls", self.pulls)):
            put_back(name, array, arrays[name])
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
