"""SupLinUCB (Chu et al. 2011) on the hybrid estimator: levels of ever narrower widths, each with data of its own."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Self

import numpy as np

from hybandits.foundation import checks
from hybandits.foundation.checks import Doubles
from hybandits.kernels import arrow, decisions
from hybandits.model.arms import CandidateSet
from hybandits.model.inputs import batch, check_finite, checked_matrices, checked_vectors
from hybandits.model.policy_file import FileError, Packed, counter
from hybandits.model.ridge import HybridRidge, Prediction
from hybandits.policies.base import Choice, Policy, check_mergeable, check_receipts, one_hot


class SupLinUCB(Policy):
    """Walk down the levels s = 1..ceil(log T), with alpha = sqrt(log(2 T K / delta) / 2) and w = alpha width:

    - all w <= 1/sqrt(T): play the highest mean + w, and do not learn from it;
    - all w <= 2^-s: keep the arms within 2^(1-s) of the highest mean + w and go to level s + 1;
    - else: play the widest arm; its reward is learned at level s.

    Which level that was is `choice.receipt`; hand it to `learn`. Without it a row counts as a round with that arm
    alone, and goes to the level where such a walk would have stopped. `predict`, `theta` and `beta` speak of all
    levels' data together. K is `arm_count` where given, else the number of arms met so far.
    """

    def __init__(
        self,
        *,
        d1: int,
        d2: int,
        horizon: int,
        delta: float = 0.01,
        alpha: float | None = None,
        arm_count: int | None = None,
        ridge: float = 1.0,
        seed: int | None = None,
    ) -> None:
        super().__init__(d1=d1, d2=d2, seed=seed)
        self.horizon = checks.count("horizon", horizon, least=2, why="it is the number of rounds T to be played")
        self.delta = checks.probability("delta", delta, "it is a failure probability, e.g. 0.01")
        why = "it multiplies the width; leave it out for the value of Chu et al."
        self.alpha = None if alpha is None else checks.positive("alpha", alpha, why)
        why = "it is the number of arms K; leave it out to count arms met"
        self.arm_count = None if arm_count is None else checks.count("arm_count", arm_count, least=1, why=why)
        self.ridge = checks.ridge(ridge)
        self._levels = [
            HybridRidge(d1=self.d1, d2=self.d2, ridge=self.ridge) for _ in range(math.ceil(math.log(self.horizon)))
        ]
        self._skipped = 0
        self._all: HybridRidge | None = None

    @property
    def levels(self) -> list[HybridRidge]:
        """The estimators, level 1 first."""
        return self._levels

    def width_factor(self, arms_met: int) -> float:
        """alpha, with that many arms met."""
        if self.alpha is not None:
            return self.alpha
        arms = self.arm_count or max(arms_met, 1)
        return math.sqrt(math.log(2 * self.horizon * arms / self.delta) / 2)

    def _walk(self, x: Doubles, z: Doubles, ids: Sequence[Hashable]) -> tuple[int, int, float, float]:
        """(index, level, mean, width); level 0: not to be learned."""
        alpha = self.width_factor(self._levels[0].known + self._levels[0].unmet(ids))
        left, count = np.arange(len(ids)), len(ids)
        for s, level in enumerate(self._levels, start=1):
            index, found, mean, width, count = decisions.walk_level(
                s, x, z, level.lookup(ids), left, count, alpha, self.least, level.arm_score, level.shared_score,
                level.ridge,
            )  # fmt: skip
            if index >= 0:
                return int(index), int(found), mean, width
        raise AssertionError("the last level's 2^-s lies below 1/sqrt(T), so the walk has ended")

    @property
    def least(self) -> float:
        """1/sqrt(T): widths below it are not worth a reward."""
        return 1 / math.sqrt(self.horizon)

    def count_skipped(self, rows: int) -> None:
        """Rounds played at level 0, and any level's data changed, by a loop outside Python."""
        self._skipped += rows
        self._all = None

    def choose(self, x: Any = None, z: Any = None, arms: Iterable[Hashable] | CandidateSet | None = None) -> Choice:
        x, z = checked_matrices(x, z, self.d1, self.d2)
        check_finite(x, z)
        rows = self._levels[0].checked_candidates(x, z, arms, admit=True)
        index, level, mean, width = self._walk(rows.x, rows.z, rows.arms)
        return Choice(rows.arms[index], index, mean, width, 1.0, level)

    def propensities(self, x: Any = None, z: Any = None, arms: Any = None) -> Doubles:
        """1 for the arm the walk ends at, 0 for the others: the rule is deterministic."""
        x, z = checked_matrices(x, z, self.d1, self.d2)
        check_finite(x, z)
        rows = self._levels[0].checked_candidates(x, z, arms, admit=False)
        return one_hot(len(rows.arms), self._walk(rows.x, rows.z, rows.arms)[0])

    def _check_level(self, receipt: Any) -> int | None:
        if receipt is None:
            return None
        level = checks.count("receipt", receipt, least=0, why="pass choice.receipt, the level of the choice")
        if level > len(self._levels):
            raise ValueError(f"receipt must be at most {len(self._levels)}, got {receipt!r}: pass choice.receipt")
        return level

    def learn(self, arm: Hashable, x: Any = None, z: Any = None, reward: Any = None, *, receipt: Any = None) -> None:
        x, z = checked_vectors(x, z, self.d1, self.d2)
        self.learn_many([arm], x[None], z[None], np.array([checks.reward(reward)]), receipts=[receipt])

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
        levels = [self._check_level(receipt) for receipt in check_receipts(receipts, len(ids))]
        for i, arm in enumerate(ids):
            self._levels[0].admit([arm])
            level = levels[i]
            if level is None:
                level = self._walk(x[i : i + 1], z[i : i + 1], [arm])[1]
            if level == 0:
                self._skipped += 1
            else:
                self._levels[level - 1].learn(arm, x[i], z[i], values[i])
        self._all = None

    def _together(self) -> HybridRidge:
        """All levels' data in one estimator."""
        if self._all is None:
            self._all = HybridRidge(d1=self.d1, d2=self.d2, ridge=self.ridge)
            for level in self._levels:
                self._all.merge(level)
        return self._all

    def predict(self, x: Any = None, z: Any = None, arms: Any = None) -> Prediction:
        return self._together().predict(x, z, arms)

    @property
    def theta(self) -> Doubles:
        return self._together().theta

    def beta(self, arm: Hashable) -> Doubles:
        self._levels[0].slot(arm)
        together = self._together()
        return together.beta(arm) if together.knows(arm) else np.zeros(self.d2)

    @property
    def arms(self) -> list[Hashable]:
        return self._levels[0].arms

    @property
    def rounds(self) -> int:
        return self._skipped + sum(level.rounds for level in self._levels)

    def forget(self, arm: Hashable) -> None:
        self._levels[0].forget(arm)
        for level in self._levels[1:]:
            if level.knows(arm):
                level.forget(arm)
        self._all = None

    def merge(self, other: Self) -> None:
        check_mergeable(self, other)
        for mine, its in zip(self._levels, other._levels, strict=True):
            mine.merge(its)
        self._skipped += other._skipped
        self._all = None

    def candidates(self, arms: Sequence[Hashable]) -> CandidateSet:
        return self._levels[0].candidates(arms)

    def _pack_parts(self) -> dict[str, Packed]:
        parts = {f"level{s}": level.pack() for s, level in enumerate(self._levels, start=1)}
        parts["skipped"] = ({"rows": self._skipped}, {})
        return parts

    def _unpack_parts(self, parts: dict[str, Packed]) -> None:
        self._skipped = counter("skipped", parts["skipped"][0]["rows"])
        levels = [HybridRidge.unpack(*parts[f"level{s}"]) for s in range(1, len(self._levels) + 1)]
        if any((level.d1, level.d2, level.ridge) != (self.d1, self.d2, self.ridge) for level in levels):
            raise FileError("the levels' shape or ridge does not fit the policy's: the file is corrupt")
        self._levels = levels
        self._all = None
