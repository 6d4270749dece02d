"""HybridRidge: the ridge estimate of (theta, beta_1, .., beta_K), updated row by row."""

import math
from abc import abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np

from hybandits.estimators import policy_file
from hybandits.estimators.arms import ArmTable, Prediction, Slots, grown
from hybandits.estimators.inputs import checked_feedback, checked_vectors, not_finite
from hybandits.estimators.policy_file import FileError, Packed, put_back
from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray, ready
from hybandits.kernels import arrow
from hybandits.kernels.addresses import Table, table_of


class OnlineEstimator(ArmTable):
    """Checks, slots and files of an estimator that learns row by row; subclasses do the arithmetic."""

    addresses: Table
    """The arrays, as kernels take them."""

    def __init__(self, d1: int, d2: int) -> None:
        d1, d2 = checks.dimensions(d1, d2)
        super().__init__(d1, d2)
        self._x_shape, self._z_shape = (d1,), (d2,)

    @abstractmethod
    def _bind(self) -> None:
        """Rebuild `addresses`. Call it wherever an array has been replaced."""

    def _grow(self, capacity: int) -> None:
        super()._grow(capacity)
        self._bind()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "addresses"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._bind()

    @abstractmethod
    def _learn_row(self, slot: int, x: FloatArray, z: FloatArray, reward: float) -> bool:
        """Learn a row of the right shape; return False, with nothing changed, if a number in it is not finite."""

    @abstractmethod
    def _learn_rows(self, slots: Slots, x: FloatArray, z: FloatArray, rewards: FloatArray) -> None:
        """Learn checked rows in order."""

    @abstractmethod
    def score(self, x: FloatArray, z: FloatArray, slots: Slots) -> Prediction:
        """Return means and widths of candidates that `checked_candidates` has checked."""

    @abstractmethod
    def beta_at(self, slot: int) -> FloatArray:
        """Return the own parameter of the arm with this slot; -1 is an arm that has not learned."""

    @abstractmethod
    def _take_in(self, other: Self) -> None:
        """Learn what another estimator has learned; the result is dropped if this raises."""

    @abstractmethod
    def _settings(self) -> dict[str, Any]:
        """Return the arguments of the constructor, but for d1 and d2."""

    @abstractmethod
    def _arrays(self, slots: Slots) -> dict[str, np.ndarray]:
        """Return the arrays that are saved; slots: those of all known arms."""

    @abstractmethod
    def _put_back(self, arms: list[Hashable], arrays: dict[str, np.ndarray]) -> None:
        """Restore the arrays of `_arrays` in a new estimator; raise FileError if they do not fit together."""

    @abstractmethod
    def sound(self) -> bool:
        """Return whether every number is finite and the factors are those of positive definite matrices."""

    def learn(self, arm: Hashable, x: Any, z: Any, reward: Any) -> None:
        """Learn one row: the arm's features x (d1,) and z (d2,) and the reward seen for it."""
        if not (ready(x, self._x_shape) and ready(z, self._z_shape)):
            x, z = checked_vectors(x, z, self.d1, self.d2)
        value = reward if type(reward) is float else checks.reward(reward)
        try:
            slot = self._slots.get(arm, -1)
        except TypeError:
            raise TypeError(f"arm {checks.short(arm)} is not hashable: use str, int or tuples as ids") from None
        if slot < 0:
            self.check_new([arm])
            if not (arrow.within_limit(x) and arrow.within_limit(z) and abs(value) <= arrow.LIMIT):
                raise not_finite(x, z, value)
            slot = self._new_slot(arm)
        if not self._learn_row(slot, x, z, value):
            raise not_finite(x, z, value)
        self.rounds += 1

    def learn_batch(self, arms: Iterable[Hashable], x: Any, z: Any, rewards: Any) -> None:
        """Learn many rows at once, with the same result as one by one in this order; arms may appear more than once."""
        ids, x, z, values = checked_feedback(arms, x, z, rewards, self.d1, self.d2)
        new = [arm for arm in dict.fromkeys(ids) if self._slots.get(arm, -1) < 0]
        self.check_new(new)
        for arm in new:
            self._new_slot(arm)
        self._learn_rows(self.lookup(ids), x, z, values)
        self.rounds += len(ids)

    def predict(self, x: Any, z: Any, arms: Any = None) -> Prediction:
        """Return means x.theta + z.beta_arm and widths sqrt(x~' M^-1 x~) of candidates; this changes nothing."""
        rows = self.checked_candidates(x, z, arms, admit=False)
        return self.score(rows.x, rows.z, rows.slots)

    def beta(self, arm: Hashable) -> FloatArray:
        """Return the arm's own parameter: the prior mean if it has not learned."""
        return self.beta_at(self.slot(arm))

    def merge(self, other: Self) -> None:
        """Learn what another estimator has learned, as if its rows had been learned here; the other is not changed."""
        if not isinstance(other, type(self)):
            name = type(self).__name__
            raise TypeError(f"only another {name} can be merged, got {type(other).__name__}")
        if (other.d1, other.d2) != (self.d1, self.d2):
            raise ValueError(
                f"cannot merge d1={other.d1}, d2={other.d2} into d1={self.d1}, d2={self.d2}: the features must agree"
            )
        merged = self.copy()
        merged._take_in(other.copy() if other is self else other)
        epoch = max(self.epoch, merged.epoch) + 1  # candidates are looked up again
        self.__dict__.update(merged.__dict__, epoch=epoch)

    def copy(self) -> Self:
        """Return an independent copy."""
        return type(self).unpack(*self.pack(ids=False), arms=self.arms)

    def pack(self, *, ids: bool = True) -> Packed:
        """Return the whole state as a header that JSON can hold and plain arrays."""
        header: dict[str, Any] = {"d1": self.d1, "d2": self.d2, "rounds": self.rounds, **self._settings()}
        if ids:
            header["arms"] = [*map(checks.plain_id, self._slots)]
        return header, self._arrays(np.fromiter(self._slots.values(), np.int64, self.known))

    @classmethod
    def unpack(cls, header: dict[str, Any], arrays: dict[str, np.ndarray], arms: list[Hashable] | None = None) -> Self:
        """Return the estimator that `pack` turned into these; raise FileError if the parts do not fit together."""
        estimator = cls(**{name: value for name, value in header.items() if name not in ("rounds", "arms")})
        estimator.rounds = policy_file.counter("rounds", header["rounds"])
        if arms is None:
            arms = policy_file.arm_ids(header["arms"])
        estimator._put_back(arms, arrays)
        estimator.known, estimator._used = len(arms), len(estimator.pulls)
        if not estimator.sound():
            raise FileError("a factor is not that of a positive definite matrix: the file is corrupt")
        places = arrays["slots"]
        first = estimator._used - int((places >= 0).sum())  # a `LearnedRidge` has one more block, before those of arms
        slots = np.where(places >= 0, places + first, -1)
        estimator._slots = dict(zip(arms, slots.tolist(), strict=True))
        return estimator


class HybridRidge(OnlineEstimator):
    """Ridge regression of rewards on x.theta + z.beta_arm, exact and updated row by row.

    This is the estimator behind all policies but HyRan; use it directly for prediction without a rule for choosing. A
    row is learned in O((d1 + d2)^2), whatever the number of arms. An arm costs no more than its id until it learns.

    Parameters
    ----------
    d1, d2 : int
        The numbers of shared features x and of arm-specific features z, 0 for none.
    ridge : float, default=1.0
        The lambda of the ridge regression: the larger it is, the more the estimates are drawn to 0.

    Notes
    -----
    The state is a Cholesky factor of the design matrix M that is only ever rotated, never subtracted from, so M stays
    positive definite over millions of rows. See `hybandits.kernels.arrow` for the formulas.

    Examples
    --------
    >>> import numpy as np
    >>> estimator = HybridRidge(d1=2, d2=1, ridge=1.0)
    >>> estimator.learn("a", np.array([1.0, 0.0]), np.array([1.0]), 3.0)
    >>> mean, width = estimator.predict(np.eye(2), np.ones((2, 1)), ["a", "b"])
    >>> mean.round(3).tolist(), width.round(3).tolist()
    ([2.0, 0.0], [0.816, 1.414])
    """

    def __init__(self, *, d1: int, d2: int, ridge: float = 1.0) -> None:
        super().__init__(d1, d2)
        self._ridge = np.array([checks.ridge(ridge)])
        self.arm_factor: FloatArray = np.zeros(0)
        self.arm_score: FloatArray = np.zeros(0)
        self.shared_factor: FloatArray = np.zeros(arrow.factor_size(self.d1, 0))
        self.shared_score: FloatArray = np.zeros(arrow.score_size(self.d1, 0))
        arrow.reset_block(self.shared_factor, 0, self.shared_score, 0, self.d1, 0, self.ridge)
        self._bind()

    def _bind(self) -> None:
        self.addresses = table_of([[*self._state, self._ridge]])

    @property
    def ridge(self) -> float:
        """The present value of lambda."""
        return float(self._ridge[0])

    def __repr__(self) -> str:
        return (
            f"HybridRidge(d1={self.d1}, d2={self.d2}, ridge={self.ridge:g}): "
            f"{self.known} arms known, {self._used - len(self._free)} have learned, {self.rounds} rows"
        )

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays, reserves included (not of the ids)."""
        return sum(array.nbytes for array in self._state)

    @property
    def _factors(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        return self.arm_factor, self.arm_score, self.shared_factor, self.shared_score

    @property
    def _blocks(self) -> tuple[FloatArray, FloatArray]:
        """The arms' factor and score blocks, one row for each slot."""
        n, d1, d2 = len(self.pulls), self.d1, self.d2
        factors = self.arm_factor.reshape(n, arrow.factor_size(d2, d1))
        return factors, self.arm_score.reshape(n, arrow.score_size(d2, d1))

    @property
    def _state(self) -> tuple[FloatArray, FloatArray, Slots, FloatArray, FloatArray]:
        return self.arm_factor, self.arm_score, self.pulls, self.shared_factor, self.shared_score

    def _reserve(self, capacity: int) -> None:
        factor = grown(self.arm_factor, capacity * arrow.factor_size(self.d2, self.d1))
        score = grown(self.arm_score, capacity * arrow.score_size(self.d2, self.d1))
        self.arm_factor, self.arm_score = factor, score

    def _clear(self, slot: int) -> None:
        f, h = slot * arrow.factor_size(self.d2, self.d1), slot * arrow.score_size(self.d2, self.d1)
        arrow.reset_block(self.arm_factor, f, self.arm_score, h, self.d2, self.d1, self.ridge)

    def _learn_row(self, slot: int, x: FloatArray, z: FloatArray, reward: float) -> bool:
        learned: bool = arrow.learn_one(slot, x, z, reward, self.addresses, self.rounds)
        return learned

    def _learn_rows(self, slots: Slots, x: FloatArray, z: FloatArray, rewards: FloatArray) -> None:
        arrow.learn_rows(slots, x, z, rewards, self.addresses, self.rounds)

    def learn_summary(
        self, arms: Iterable[Hashable], x: Any, z: Any, rewards: Any, pulls: Mapping[Hashable, int], moments: Any
    ) -> None:
        """Learn rows that summarise more rewards; `pulls`: the number of rewards of each arm."""
        rounds = self.rounds
        before = {arm: self.pulls_of(arm) for arm in self.learned}
        self.learn_batch(arms, x, z, rewards)
        for arm, slot in self.learned.items():
            self.pulls[slot] = before.get(arm, 0) + pulls.get(arm, 0)
        self.rounds = rounds + sum(pulls.values())

    def score(self, x: FloatArray, z: FloatArray, slots: Slots) -> Prediction:
        """Return means and widths of candidates that `checked_candidates` has checked."""
        mean, width = np.empty(len(slots)), np.empty(len(slots))
        if not arrow.score_rows(x, z, slots, self.arm_score, self.shared_score, self.ridge, mean, width):
            raise not_finite(x, z)
        return Prediction(mean, width)

    @property
    def theta(self) -> FloatArray:
        """The shared parameter, theta = R_0^-1 q_0."""
        return theta_of(self.shared_score, self.d1)

    def beta_at(self, slot: int) -> FloatArray:
        """Return the own parameter of the arm with this slot; zeros for -1."""
        return np.zeros(self.d2) if slot < 0 else beta_of(self.arm_score, slot, self.theta, self.d2)

    def design(self, arms: Sequence[Hashable]) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return the blocks of M with the ridge: V (d1, d1), B (n, d1, d2), W (n, d2, d2), and sum_i B_i W_i^-1 B_i'.

        V and the sum are over all arms that have learned; B and W are those of the arms given.
        """
        d1, d2 = self.d1, self.d2
        used = np.fromiter(self.learned.values(), np.int64)
        rows = unpacked(self.arm_factor, len(self.pulls), d2, d1)[used]
        r, t = rows[:, :, :d2], rows[:, :, d2:]
        shared = unpacked(self.shared_factor, 1, d1, 0)[0]
        eliminated = np.einsum("aki,akj->ij", t, t)
        b, w = np.zeros((len(arms), d1, d2)), np.tile(self.ridge * np.eye(d2), (len(arms), 1, 1))
        position = {int(slot): i for i, slot in enumerate(used)}
        for i, slot in enumerate(self.lookup(arms).tolist()):
            if slot >= 0:
                w[i] = r[position[slot]].T @ r[position[slot]]
                b[i] = t[position[slot]].T @ r[position[slot]]
        return shared.T @ shared + eliminated, b, w, eliminated

    def raise_ridge(self, ridge: float) -> None:
        """Raise lambda to a larger value, exactly as if it had been this large from the start."""
        ridge = checks.ridge(ridge)
        if ridge < self.ridge:
            raise ValueError(
                f"ridge can only be raised, got {ridge!r}, which is below {self.ridge!r}: fit a new estimator"
            )
        if ridge > self.ridge:
            slots = np.fromiter(self.learned.values(), np.int64)
            self._add_to_ridge(slots, ridge - self.ridge)
            self._ridge[0] = ridge

    def _add_to_ridge(self, slots: Slots, amount: float) -> None:
        """Add to lambda in the shared block and in those of these arms, by rows sqrt(|amount|) e_k."""
        d1, d2 = self.d1, self.d2
        units = math.sqrt(abs(amount)) * np.eye(d2 + d1)
        rows = np.concatenate((np.tile(units[:d2], (len(slots), 1)), units[d2:]))
        of = np.concatenate((np.repeat(slots, d2), np.full(d1, -1)))
        arrow.rotate_rows(of, rows, np.zeros(len(of)), amount < 0, d1, d2, *self._factors)
        arrow.refresh_blocks(slots, d1, d2, *self._factors)

    def _take_in(self, other: Self) -> None:
        if other.ridge < self.ridge:
            other = other.copy()
            other.raise_ridge(self.ridge)
        self.raise_ridge(other.ridge)
        d1, d2 = self.d1, self.d2
        common = {arm: self._slots[arm] for arm in other.learned if self._slots.get(arm, -1) >= 0}
        new = [arm for arm in other.learned if arm not in common]
        slots, sources = np.array([*common.values()], np.int64), other.lookup([*common])
        rows = unpacked(other.arm_factor, len(other.pulls), d2, d1)[sources].reshape(len(slots) * d2, d2 + d1)
        shared = np.hstack((np.zeros((d1, d2)), unpacked(other.shared_factor, 1, d1, 0)[0]))
        rhs = np.concatenate((other._blocks[1][sources, :d2].reshape(-1), other.shared_score[:d1]))
        of = np.concatenate((np.repeat(slots, d2), np.full(d1, -1)))
        arrow.rotate_rows(of, np.concatenate((rows, shared)), rhs, False, d1, d2, *self._factors)
        self._add_to_ridge(slots, -self.ridge)  # both have the ridge, and one is enough
        self.pulls[slots] += other.pulls[sources]
        slots, sources = np.array([self._new_slot(arm) for arm in new], np.int64), other.lookup(new)
        for target, source in zip((*self._blocks, self.pulls), (*other._blocks, other.pulls), strict=True):
            target[slots] = source[sources]
        self.admit(other._slots)
        self.rounds += other.rounds
        if not self.sound():
            raise ValueError(
                "the two estimators cannot be merged: their features differ so much in scale that rounding destroys "
                "the sum; rescale the features and fit again"
            )

    def sound(self) -> bool:
        return are_sound(*self._factors, self._used, self.d1, self.d2)

    def _settings(self) -> dict[str, Any]:
        return {"ridge": self.ridge}

    def _arrays(self, slots: Slots) -> dict[str, np.ndarray]:
        used = slots[slots >= 0]
        arm_factor, arm_score = self._blocks
        arrays = {
            "slots": np.where(slots >= 0, np.cumsum(slots >= 0) - 1, -1),
            "pulls": self.pulls[used],
            "arm_factor": arm_factor[used],
            "arm_score": arm_score[used],
            "shared_factor": self.shared_factor.copy(),
            "shared_score": self.shared_score.copy(),
        }
        return {name: array.reshape(-1) for name, array in arrays.items()}

    def _put_back(self, arms: list[Hashable], arrays: dict[str, np.ndarray]) -> None:
        policy_file.check_slots(arms, arrays["slots"], arrays["pulls"])
        self._grow(len(arrays["pulls"]))
        for name in ("pulls", "arm_factor", "arm_score", "shared_factor", "shared_score"):
            put_back(name, getattr(self, name), arrays[name])


def theta_of(shared_score: FloatArray, d1: int) -> FloatArray:
    """Return theta = R_0^-1 q_0."""
    theta = np.empty(d1)
    arrow.transpose_times(shared_score, 0, d1, shared_score[:d1], theta)
    return theta


def beta_of(arm_score: FloatArray, slot: int, theta: FloatArray, d2: int) -> FloatArray:
    """Return beta_i = R_i^-1 (q_i - T_i theta)."""
    beta, d1 = np.zeros(d2), len(theta)
    arrow.arm_parameters(arm_score, slot * arrow.score_size(d2, d1), d1, d2, theta, beta)
    return beta


def unpacked(factor: FloatArray, n: int, d: int, m: int) -> FloatArray:
    """Return the rows [R | T] of n blocks of dimension d with m columns beside it, as (n, d, d + m)."""
    rows = np.zeros((n, d, d + m))
    upper = np.triu_indices(d, m=d + m)
    rows[:, upper[0], upper[1]] = factor.reshape(n, arrow.factor_size(d, m))
    return rows


def diagonal_of(d: int, m: int) -> Slots:
    """Return the places of R's diagonal in a factor block [R | T] of dimension d with m columns beside it."""
    return np.cumsum([0, *(d - k + m for k in range(d - 1))])[:d]


def are_sound(
    arm_factor: FloatArray, arm_score: FloatArray, shared_factor: FloatArray, shared_score: FloatArray, n: int, d1: int,
    d2: int,
) -> bool:  # fmt: skip
    """Return whether every number is finite and every diagonal entry of R_0 and the first n R_i is positive."""
    f, h = arrow.factor_size(d2, d1), arrow.score_size(d2, d1)
    factors = arm_factor[: n * f].reshape(n, f)
    parts = factors, arm_score[: n * h], shared_factor, shared_score
    diagonals = factors[:, diagonal_of(d2, d1)], shared_factor[diagonal_of(d1, 0)]
    return all(np.isfinite(part).all() for part in parts) and all((part > 0).all() for part in diagonals)
