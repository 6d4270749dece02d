"""What policies with one ridge estimator share: everything but the rule that chooses."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Self

from hybandits.estimators.arms import Candidates, Slots
from hybandits.estimators.constant_features import ConstantFeatures
from hybandits.estimators.interface import Prediction
from hybandits.estimators.learned import Moments
from hybandits.estimators.policy_file import FileError, Packed
from hybandits.estimators.random_stream import RandomStream
from hybandits.estimators.ridge import HybridRidge
from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray
from hybandits.policies.base import Policy, check_mergeable, check_receipts
from hybandits.policies.choices import Choices
from hybandits.policies.threads import locked, synchronized


class RidgePolicy(Policy):
    """A policy that estimates rewards with one `HybridRidge`; a subclass adds the rule that chooses.

    A subclass implements `_pick`, which chooses among checked candidates; see docs/adding-a-policy.md.

    Parameters
    ----------
    d1, d2, seed
        As for `Policy`.
    ridge : float
        How strongly the estimates are drawn towards zero (lambda).

    Attributes
    ----------
    estimator : HybridRidge
        The estimator of the rewards.
    ridge : float
        The present value of lambda.
    """

    learns_from_sums = True

    _table: HybridRidge

    def __init__(self, *, d1: int, d2: int, ridge: float, seed: int | None) -> None:
        super().__init__(d1=d1, d2=d2, seed=seed)
        self._table = self._make_estimator(ridge)
        if self._table.d1:
            self._watch = ConstantFeatures()

    def _make_estimator(self, ridge: float) -> HybridRidge:
        return HybridRidge(d1=self.d1, d2=self.d2, ridge=ridge)

    @property
    def estimator(self) -> HybridRidge:
        """The estimator of the rewards."""
        return self._table

    @property
    def ridge(self) -> float:
        """The present value of lambda."""
        return self._table.ridge

    def _score(self, candidates: Candidates, stream: RandomStream) -> Prediction:
        return self._table.score(candidates.x, candidates.z, candidates.slots)

    def _ranking(
        self, candidates: Candidates, stream: RandomStream, indices: Slots, propensities: FloatArray
    ) -> Choices:
        """A ranking with means and widths in the model that takes this decision."""
        ranked = candidates.take(indices)
        mean, width = self._score(ranked, stream)
        return Choices(list(ranked.arms), indices, mean, width, propensities, [None] * len(indices))

    @synchronized
    def meet(self, arms: Sequence[Hashable]) -> tuple[Slots, Slots]:
        """Admit arms and set blocks aside for them, for a compiled loop: see `ArmTable.set_aside`."""
        self._table.admit(arms)
        self._arms_changed()
        return self._table.set_aside(arms)

    def learn(self, arm: Hashable, x: Any = None, z: Any = None, reward: Any = None, *, receipt: Any = None) -> None:
        with self._lock:
            self._table.learn(arm, x, z, reward)
            if self._table.known != self._known:
                self._arms_changed()

    def _learn_batch(self, arms: Sequence[Hashable], x: Any, z: Any, rewards: Any, receipts: Any) -> None:
        check_receipts(receipts, len(arms))
        self._table.learn_batch(arms, x, z, rewards)

    @synchronized
    def learn_summary(
        self,
        arms: Iterable[Hashable],
        x: Any,
        z: Any,
        rewards: Any,
        *,
        pulls: Mapping[Hashable, int],
        moments: Moments | None = None,
    ) -> None:
        """Learn rows that stand for a larger number of rewards (see `hybandits.evaluation.fit`).

        The rows have the same sums of squares and products as those that they stand for; `pulls` is the number of
        rewards of each arm, and policies that learn their settings need `moments`.
        """
        for arm, count in pulls.items():
            checks.count(f"pulls of {arm!r}", count, least=0, why="it is a number of rounds")
        self._table.learn_summary(arms, x, z, rewards, pulls, moments)
        self._arms_changed()

    @synchronized
    def predict(self, x: Any = None, z: Any = None, arms: Any = None) -> Prediction:
        candidates = self._candidates(x, z, arms, False)
        return self._table.score(candidates.x, candidates.z, candidates.slots)

    @property
    def theta(self) -> FloatArray:
        with self._lock:
            return self._table.theta

    @synchronized
    def beta(self, arm: Hashable) -> FloatArray:
        return self._table.beta(arm)

    @property
    def rounds(self) -> int:
        return self._table.rounds

    def merge(self, other: Self) -> None:
        check_mergeable(self, other)
        with locked(self, other):
            self._table.merge(other._table)
            self._arms_changed()

    def _pack_parts(self) -> dict[str, Packed]:
        return {"estimator": self._table.pack()}

    def _unpack_parts(self, parts: dict[str, Packed]) -> None:
        estimator = type(self._table).unpack(*parts["estimator"])
        if (estimator.d1, estimator.d2) != (self._table.d1, self._table.d2):
            raise FileError("the estimator's dimensions do not fit the policy's: the file is corrupt")
        self._table = estimator
        self._arms_changed()
