"""HyRan (Kim, Paik & Oh 2023, Algorithm 1) on the arrow structure, and the variant that the paper's code really ran."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from hybandits import arrow, checks, gram, storage
from hybandits.checks import Doubles
from hybandits.estimator import (
    ArmTable,
    CandidateSet,
    Prediction,
    Slots,
    batch,
    check_finite,
    checked_matrices,
    checked_vectors,
)
from hybandits.policies.base import Choice, Packed, Policy, check_mergeable, check_receipts, one_hot, unmet
from hybandits.storage import FileError

Schedule = Literal["experiments", "theory"]


class Pool(NamedTuple):
    """HyRan's receipt: the candidates of the round, all of whose features it learns from."""

    arms: tuple[Hashable, ...]
    x: Doubles
    z: Doubles


class Factor(NamedTuple):
    """The arrow factor of the sums at one ridge."""

    slots: dict[int, int]
    arm_factor: Doubles
    arm_score: Doubles
    shared_factor: Doubles
    shared_score: Doubles


class GramTable(ArmTable):
    """The sums behind HyRan: V, B_i, W_i and right-hand sides, ridge not included."""

    ARRAYS = ("w", "b", "arm_rhs")

    def __init__(self, d1: int, d2: int, *, cross: bool) -> None:
        super().__init__(d1, d2)
        self.cross = cross
        self.v = np.zeros((d1, d1))
        self.shared_rhs = np.zeros(d1)
        self.w = np.zeros((0, d2, d2))
        self.b = np.zeros((0, d1, d2))
        self.arm_rhs = np.zeros((0, d2))

    def _reserve(self, capacity: int) -> None:
        for name in self.ARRAYS:
            old = getattr(self, name)
            new = np.zeros((capacity, *old.shape[1:]))
            new[: len(old)] = old
            setattr(self, name, new)

    def _clear(self, slot: int) -> None:
        for name in self.ARRAYS:
            getattr(self, name)[slot] = 0.0

    def add(self, arm: Hashable, x: Doubles, z: Doubles, target: float, *, pulled: bool) -> None:
        """One (pseudo-)rewarded candidate."""
        slot = self._slots.get(arm, -1)
        if slot < 0:
            slot = self._new_slot(arm)
        gram.add_row(slot, x, z, target, self.cross, self.v, self.w, self.b, self.shared_rhs, self.arm_rhs)
        if pulled:
            self.pulls[slot] += 1

    def factor(self, ridge: float) -> Factor:
        """Factor M + ridge I."""
        used = np.fromiter(self.learned.values(), np.int64)
        made = Factor(
            {int(slot): s for s, slot in enumerate(used)},
            np.zeros(len(used) * arrow.factor_size(self.d2, self.d1)),
            np.zeros(len(used) * arrow.score_size(self.d2, self.d1)),
            np.zeros(arrow.factor_size(self.d1, 0)),
            np.zeros(arrow.score_size(self.d1, 0)),
        )
        gram.factor_arrow(used, ridge, self.v, self.w, self.b, self.shared_rhs, self.arm_rhs, *made[1:])
        if not all(np.isfinite(part).all() for part in made[1:]):
            raise ValueError(
                "HyRan's sums have lost their positive definiteness to rounding: its ridge moves, so it keeps sums and "
                "not factors, and features beyond about 1e6 with x and z alike are too much for them; rescale x and z"
            )
        return made

    def solve(self, ridge: float) -> tuple[Doubles, Doubles]:
        """theta, and beta of every slot (zeros for slots that have not learned)."""
        made = self.factor(ridge)
        theta = np.empty(self.d1)
        packed = np.empty((len(made.slots), self.d2))
        gram.solve_arrow(len(made.slots), self.d1, self.d2, *made[1:], theta, packed)
        beta = np.zeros((len(self.pulls) + 1, self.d2))
        for slot, s in made.slots.items():
            beta[slot] = packed[s]
        return theta, beta

    def predict(self, x: Doubles, z: Doubles, slots: Slots, ridge: float) -> Prediction:
        """Means and widths at one ridge."""
        made = self.factor(ridge)
        gram.refresh_all(len(made.slots), self.d1, self.d2, *made[1:])
        renumbered = np.array([made.slots.get(int(slot), -1) for slot in slots], np.int64)
        mean, width = np.empty(len(slots)), np.empty(len(slots))
        arrow.score_rows(x, z, renumbered, made.arm_score, made.shared_score, ridge, mean, width)
        return Prediction(mean, width)

    def snapshot(self) -> dict[str, Any]:
        """Everything that learning changes, to go back to."""
        kept = {name: getattr(self, name).copy() for name in ("v", "shared_rhs", "pulls", *self.ARRAYS)}
        return {**self.__dict__, **kept, "_slots": dict(self._slots), "_free": list(self._free)}

    def marginalise(self, arm: Hashable, ridge: float) -> None:
        """Forget an arm with beta_i integrated out at this ridge: V -= B_i (W_i + ridge I)^-1 B_i', b_0 likewise."""
        slot = self.slot(arm)
        if slot >= 0:
            own = self.w[slot] + ridge * np.eye(self.d2)
            self.v -= self.b[slot] @ np.linalg.solve(own, self.b[slot].T)
            self.shared_rhs -= self.b[slot] @ np.linalg.solve(own, self.arm_rhs[slot])
        self.forget(arm)

    def merge(self, other: GramTable) -> None:
        """Sums add up."""
        self.v += other.v
        self.shared_rhs += other.shared_rhs
        for arm, its in other.learned.items():
            slot = self._slots.get(arm, -1)
            if slot < 0:
                slot = self._new_slot(arm)
            for name in self.ARRAYS:
                getattr(self, name)[slot] += getattr(other, name)[its]
            self.pulls[slot] += other.pulls[its]
        self.admit(other._slots)
        self.rounds += other.rounds

    def pack(self) -> Packed:
        slots = np.fromiter(self._slots.values(), np.int64, len(self._slots))
        used = slots[slots >= 0]
        header = {"arms": storage.plain_ids(self._slots), "rounds": self.rounds}
        arrays: dict[str, np.ndarray] = {name: getattr(self, name)[used] for name in (*self.ARRAYS, "pulls")}
        position = np.where(slots >= 0, np.cumsum(slots >= 0) - 1, -1)
        return header, {**arrays, "slots": position, "v": self.v.copy(), "shared_rhs": self.shared_rhs.copy()}

    def restore(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """The inverse of `pack`, on a fresh table; FileError if the parts do not fit together."""
        arms = storage.arm_ids(header["arms"])
        slots, pulls = arrays["slots"], arrays["pulls"]
        storage.check_slots(arms, slots, pulls)
        n = len(pulls)
        for name in ("v", "shared_rhs", *self.ARRAYS):
            mine, got = getattr(self, name), arrays[name]
            shape = (n, *mine.shape[1:]) if name in self.ARRAYS else mine.shape
            if got.shape != shape or got.dtype != checks.FLOAT64 or not np.isfinite(got).all():
                raise FileError(f"{name} is not an array of finite float64 of shape {shape}: the file is corrupt")
        for name in ("v", "shared_rhs", "pulls", *self.ARRAYS):
            setattr(self, name, arrays[name].copy())
        self._slots = dict(zip(arms, slots.tolist(), strict=True))
        self._used = n
        self.rounds = storage.counter("rounds", header["rounds"])


class HyRan(Policy):
    """Doubly robust estimation with a greedy choice (Kim, Paik & Oh 2023, Algorithm 1) in the hybrid model.

    In round t, with D = d1 + d2 K and the matrix V = I + sums:

    - play the highest x.theta + z.beta_i of (V + lambda_t I)^-1 Z;
    - after the reward Y of arm a draw h, which is a with probability p and another candidate else, evenly;
    - if h = a, add every candidate i with the pseudo-reward (1 - 1{h=i}/pi_i) X_i.check + 1{h=i}/pi_i Y, where
      check = (V + sqrt(t) I)^-1 Z; else add arm a alone with Y.

    It learns from all candidates, so pass `receipt=choice.receipt` (the round's candidates) to `learn`; without it the
    row is a round with that arm alone, which adds it with Y. ridge_schedule: "experiments", lambda_t = 2 D log(t + 1),
    or "theory", D log(4 t^2 / delta). K is `arm_count` where given, else the number of arms met so far.
    """

    _cross = True
    receipt_is_of_the_round = True

    def __init__(
        self,
        *,
        d1: int,
        d2: int,
        p: float = 0.5,
        ridge_schedule: Schedule = "experiments",
        delta: float = 0.01,
        arm_count: int | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(d1=d1, d2=d2, seed=seed)
        self.p = checks.probability("p", p, "it is the probability of drawing the played arm, e.g. 0.5")
        if ridge_schedule not in ("experiments", "theory"):
            raise ValueError(f"ridge_schedule must be 'experiments' or 'theory', got {ridge_schedule!r}")
        self.ridge_schedule = ridge_schedule
        self.delta = checks.probability("delta", delta, "it is a failure probability, e.g. 0.01")
        why = "it is the number of arms K; leave it out to count arms met"
        self.arm_count = None if arm_count is None else checks.count("arm_count", arm_count, least=1, why=why)
        self._table = GramTable(self.d1, self.d2, cross=self._cross)

    def _ridge(self, new: int = 0) -> float:
        """1 (the V = I that Algorithm 1 starts from) + lambda_t, with `new` more arms met."""
        t = self._table.rounds + 1
        dimension = self.d1 + self.d2 * (self.arm_count or max(self._table.known + new, 1))
        if self.ridge_schedule == "experiments":
            return 1.0 + 2 * dimension * math.log(t + 1)
        return 1.0 + dimension * math.log(4 * t**2 / self.delta)

    def _rows(self, x: Any, z: Any, arms: Any, *, admit: bool) -> Any:
        x, z = checked_matrices(x, z, self.d1, self.d2)
        check_finite(x, z)
        return self._table.rows(x, z, arms, admit=admit)

    def choose(self, x: Any = None, z: Any = None, arms: Iterable[Hashable] | CandidateSet | None = None) -> Choice:
        rows = self._rows(x, z, arms, admit=True)
        mean, width = self._table.predict(rows.x, rows.z, rows.slots, self._ridge())
        index = int(np.argmax(mean))
        pool = Pool(tuple(rows.arms), rows.x.copy(), rows.z.copy())
        return Choice(rows.arms[index], index, float(mean[index]), float(width[index]), 1.0, pool)

    def propensities(self, x: Any = None, z: Any = None, arms: Any = None) -> Doubles:
        """1 for the highest mean, 0 for the others: the choice itself is deterministic."""
        rows = self._rows(x, z, arms, admit=False)
        ridge = self._ridge(unmet(self._table, rows.arms))
        return one_hot(len(rows.arms), int(np.argmax(self._table.predict(rows.x, rows.z, rows.slots, ridge).mean)))

    def _check_pool(self, arm: Hashable, x: Doubles, z: Doubles, receipt: Any) -> Pool:
        if receipt is None:
            return Pool((arm,), x[None], z[None])
        if not isinstance(receipt, Pool):
            raise TypeError(f"receipt must be choice.receipt, got {checks.short(receipt)}: pass it on unchanged")
        if arm not in receipt.arms:
            raise ValueError(f"arm {arm!r} is not among the candidates of its receipt: pass the receipt of its choice")
        rows = checked_matrices(receipt.x, receipt.z, self.d1, self.d2)
        check_finite(*rows)
        at = receipt.arms.index(arm)
        if (rows[0][at] != x).any() or (rows[1][at] != z).any():
            raise ValueError(
                f"the features given for arm {arm!r} are not those of its receipt: pass the rows that were shown"
            )
        return Pool(receipt.arms, *rows)

    def learn(self, arm: Hashable, x: Any = None, z: Any = None, reward: Any = None, *, receipt: Any = None) -> None:
        x, z = checked_vectors(x, z, self.d1, self.d2)
        value = checks.reward(reward)
        check_finite(x, z)
        checks.finite("reward", np.asarray(value), arrow.LIMIT)
        self.learn_many([arm], x[None], z[None], np.array([value]), receipts=[receipt])

    def learn_many(
        self,
        arms: Iterable[Hashable],
        x: Any = None,
        z: Any = None,
        rewards: Any = None,
        *,
        receipts: Sequence[Any] | None = None,
    ) -> None:
        x, z = checked_matrices(x, z, self.d1, self.d2)
        ids, values = batch(arms, rewards, len(x))
        check_finite(x, z)
        checks.finite("rewards", values, arrow.LIMIT)
        given = check_receipts(receipts, len(ids))
        pools = [self._check_pool(arm, x[i], z[i], given[i]) for i, arm in enumerate(ids)]
        before, random = self._table.snapshot(), self._random.bit_generator.state
        try:
            for i, arm in enumerate(ids):
                self._learn_round(arm, x[i], z[i], float(values[i]), pools[i])
        except ValueError:  # the sums have become unsound on the way
            self._table.__dict__.update(before)
            self._random.bit_generator.state = random
            raise

    def _learn_round(self, arm: Hashable, x: Doubles, z: Doubles, reward: float, pool: Pool) -> None:
        table = self._table
        n = len(pool.arms)
        if n > 1 and self._random.random() < self.p:
            # h = a: everybody learns, the played arm with its reward weighted by 1/p, the others with the imputation.
            theta, beta = table.solve(1.0 + math.sqrt(max(table.rounds, 1)))
            targets = pool.x @ theta + np.einsum("ij,ij->i", pool.z, beta[table.lookup(pool.arms)])
            played = pool.arms.index(arm)
            targets[played] = (1 - 1 / self.p) * targets[played] + reward / self.p
            for i, other in enumerate(pool.arms):
                if i == played or other in table._slots:  # forgotten meanwhile: stays forgotten
                    table.add(other, pool.x[i], pool.z[i], float(targets[i]), pulled=i == played)
        else:
            table.add(arm, x, z, reward, pulled=True)
        table.rounds += 1

    def predict(self, x: Any = None, z: Any = None, arms: Any = None) -> Prediction:
        rows = self._rows(x, z, arms, admit=False)
        return self._table.predict(rows.x, rows.z, rows.slots, self._ridge())

    @property
    def theta(self) -> Doubles:
        return self._table.solve(self._ridge())[0]

    def beta(self, arm: Hashable) -> Doubles:
        slot = self._table.slot(arm)
        beta: Doubles = self._table.solve(self._ridge())[1][slot]
        return beta

    @property
    def arms(self) -> list[Hashable]:
        return self._table.arms

    @property
    def rounds(self) -> int:
        return self._table.rounds

    def forget(self, arm: Hashable) -> None:
        """Drop an arm, its beta integrated out at the ridge of the moment; what it taught the shared part stays."""
        self._table.marginalise(arm, self._ridge())

    def merge(self, other: Self) -> None:
        check_mergeable(self, other)
        self._table.merge(other._table)

    def candidates(self, arms: Sequence[Hashable]) -> CandidateSet:
        return self._table.candidates(arms)

    def _config(self) -> dict[str, Any]:
        return {
            "d1": self.d1,
            "d2": self.d2,
            "p": self.p,
            "ridge_schedule": self.ridge_schedule,
            "delta": self.delta,
            "arm_count": self.arm_count,
        }

    def _pack_parts(self) -> dict[str, Packed]:
        return {"sums": self._table.pack()}

    def _unpack_parts(self, parts: dict[str, Packed]) -> None:
        self._table.restore(*parts["sums"])


class HyRanWithoutCrossBlocks(HyRan):
    """Not HyRan: the paper's released code never accumulates B_i, so shared and own parts are fitted as if unrelated.

    Kept only to match the published curves; use `HyRan` for anything else.
    """

    _cross = False
