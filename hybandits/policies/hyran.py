"""HyRan (Kim, Paik & Oh 2023, Algorithm 1) on the arrow structure, and the variant that the paper's code really ran."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from hybandits.foundation import checks
from hybandits.foundation.checks import Doubles
from hybandits.kernels import arrow, gram
from hybandits.model.arms import CandidateSet
from hybandits.model.inputs import batch, check_finite, checked_matrices, checked_vectors
from hybandits.model.policy_file import Packed
from hybandits.model.ridge import Prediction
from hybandits.model.sums import NO_ROOM, GramTable, unsound
from hybandits.policies.base import Choice, Policy, check_mergeable, check_receipts, one_hot

Schedule = Literal["experiments", "theory"]


class Pool(NamedTuple):
    """HyRan's receipt: the candidates of the round, all of whose features it learns from."""

    arms: tuple[Hashable, ...]
    x: Doubles
    z: Doubles


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

    @property
    def table(self) -> GramTable:
        """The sums."""
        return self._table

    def ridges(self, count: int, new: int = 0) -> tuple[Doubles, Doubles]:
        """The ridges of the next `count` rounds, with `new` more arms met: of the choice and of the imputation.

        The choice's is 1 (the V = I that Algorithm 1 starts from) + lambda_t, the imputation's 1 + sqrt(t - 1).
        """
        t = np.arange(self._table.rounds + 1, self._table.rounds + count + 1, dtype=float)
        dimension = self.d1 + self.d2 * (self.arm_count or max(self._table.known + new, 1))
        if self.ridge_schedule == "experiments":
            choice = 1.0 + 2 * dimension * np.log(t + 1)
        else:
            choice = 1.0 + dimension * np.log(4 * t**2 / self.delta)
        return choice, 1.0 + np.sqrt(np.maximum(t - 1, 1))

    def _ridge(self, new: int = 0) -> float:
        return float(self.ridges(1, new)[0][0])

    def draws(self, count: int) -> Doubles:
        """The uniforms behind h of the next `count` rounds with more than one candidate."""
        return self._random.random(count)

    def give_back(self, count: int) -> None:
        """Take back the last `count` of the `draws`, which were of rounds that have not been learned."""
        self._random.bit_generator.advance(-count)  # type: ignore[attr-defined]  # it is a PCG64

    def _rows(self, x: Any, z: Any, arms: Any, *, admit: bool) -> Any:
        x, z = checked_matrices(x, z, self.d1, self.d2)
        check_finite(x, z)
        return self._table.checked_candidates(x, z, arms, admit=admit)

    def choose(self, x: Any = None, z: Any = None, arms: Iterable[Hashable] | CandidateSet | None = None) -> Choice:
        rows = self._rows(x, z, arms, admit=True)
        made = self._table.estimate(self._ridge())
        index, mean = gram.best_mean(rows.x, rows.z, rows.slots, made.theta, made.beta)
        width = self._table.width(rows.x[index], rows.z[index], int(rows.slots[index]), made)
        pool = Pool(tuple(rows.arms), rows.x.copy(), rows.z.copy())
        return Choice(rows.arms[index], index, mean, width, 1.0, pool)

    def propensities(self, x: Any = None, z: Any = None, arms: Any = None) -> Doubles:
        """1 for the highest mean, 0 for the others: the choice itself is deterministic."""
        rows = self._rows(x, z, arms, admit=False)
        made = self._table.estimate(self._ridge(self._table.unmet(rows.arms)))
        return one_hot(len(rows.arms), gram.best_mean(rows.x, rows.z, rows.slots, made.theta, made.beta)[0])

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
                self._learn_round(arm, float(values[i]), pools[i])
        except ValueError:  # the sums have become unsound on the way
            self._table.__dict__.update(before)
            self._random.bit_generator.state = random
            raise

    def _learn_round(self, arm: Hashable, reward: float, pool: Pool) -> None:
        table = self._table
        table.admit([arm])
        draw = self._random.random() if len(pool.arms) > 1 else 1.0
        # An arm forgotten since its round stays forgotten: it has no slot, and nothing is added for it.
        slots = table.slots_of(pool.arms)
        played = pool.arms.index(arm)
        _, check = self.ridges(1)
        room = table.workspace() if draw < self.p else NO_ROOM
        sound = gram.learn_round(
            played, self.p, draw, check[0], pool.x, pool.z, slots, reward, self._cross, table.groups, table.shared,
            table.own, *room,
        )  # fmt: skip
        if not sound:
            raise unsound()
        table.pulls[slots[played]] += 1
        table.rounds += 1

    def predict(self, x: Any = None, z: Any = None, arms: Any = None) -> Prediction:
        rows = self._rows(x, z, arms, admit=False)
        return self._table.predict(rows.x, rows.z, rows.slots, self._ridge())

    @property
    def theta(self) -> Doubles:
        return self._table.estimate(self._ridge()).theta

    def beta(self, arm: Hashable) -> Doubles:
        slot = self._table.slot(arm)
        return self._table.estimate(self._ridge()).beta[slot] if slot >= 0 else np.zeros(self.d2)

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

    def _pack_parts(self) -> dict[str, Packed]:
        return {"sums": self._table.pack()}

    def _unpack_parts(self, parts: dict[str, Packed]) -> None:
        self._table.restore(*parts["sums"])


class HyRanWithoutCrossBlocks(HyRan):
    """Not HyRan: the paper's released code never accumulates B_i, so shared and own parts are fitted as if unrelated.

    Kept only to match the published curves; use `HyRan` for anything else.
    """

    _cross = False
