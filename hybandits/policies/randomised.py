"""Floors to compare with, and exploration by chance: Uniform and EpsilonGreedy."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Self

import numpy as np

from hybandits.foundation import checks
from hybandits.foundation.checks import Doubles
from hybandits.kernels import arrow
from hybandits.model.arms import CandidateSet, CheckedCandidates, Slots
from hybandits.model.inputs import check_finite, id_list
from hybandits.model.policy_file import Packed
from hybandits.model.ridge import Prediction
from hybandits.policies.base import Choice, Policy, RidgePolicy, check_mergeable, score_one


class Uniform(RidgePolicy):
    """Every candidate with the same probability. It still fits the model, so that its data can start another policy."""

    def __init__(self, *, d1: int, d2: int, ridge: float = 1.0, seed: int | None = None) -> None:
        super().__init__(d1=d1, d2=d2, ridge=ridge, seed=seed)

    def _pick(self, x: Doubles, z: Doubles, slots: Slots) -> tuple[int, float, float, float | None]:
        if not arrow.usable(x, z):
            return -1, 0.0, 0.0, None
        index = int(self._random.integers(len(slots)))
        mean, width = score_one(self._estimator, CheckedCandidates(x, z, (), slots), index)
        return index, mean, width, 1.0 / len(slots)

    def propensities(self, x: Any = None, z: Any = None, arms: Any = None) -> Doubles:
        """1 / n each."""
        rows = self._rows(x, z, arms)
        check_finite(rows.x, rows.z)
        return np.full(len(rows.slots), 1.0 / len(rows.slots))


class EpsilonGreedy(Policy):
    """With probability epsilon a candidate at random, else what the wrapped policy would choose.

    The propensity is that of the mixture, (1 - epsilon) p(arm) + epsilon / n, where p is the wrapped policy's own
    probability of the arm. All learning goes to the wrapped policy.
    """

    def __init__(self, policy: Policy, *, epsilon: float = 0.1, seed: int | None = None) -> None:
        if not isinstance(policy, Policy):
            raise TypeError(
                f"policy must be a policy to wrap, got {checks.short(policy)}: e.g. EpsilonGreedy(Greedy(d1=2, d2=1))"
            )
        self.epsilon = checks.real("epsilon", epsilon)
        if not 0 <= self.epsilon <= 1:
            raise ValueError(f"epsilon must lie in [0, 1], got {epsilon!r}: it is the share of random choices")
        self.policy = policy
        super().__init__(d1=policy.d1, d2=policy.d2, seed=seed)

    def _depth(self) -> int:
        return 1 + self.policy._depth()

    def choose(self, x: Any = None, z: Any = None, arms: Iterable[Hashable] | CandidateSet | None = None) -> Choice:
        if arms is not None and not isinstance(arms, CandidateSet):
            arms = id_list(arms)  # once: it may be an iterator
        choice = self.policy.choose(x, z, arms)
        n = len(x) if x is not None else len(z)
        own = choice.propensity
        if self._random.random() < self.epsilon:
            index = int(self._random.integers(n))
            if index != choice.index:
                if own is not None:
                    own = float(self.policy.propensities(x, z, arms)[index])
                mean, width = self.policy.predict(x, z, arms)
                ids = arms.arms if isinstance(arms, CandidateSet) else range(n) if arms is None else arms
                receipt = choice.receipt if self.policy.receipt_is_of_the_round else None
                choice = Choice(ids[index], index, float(mean[index]), float(width[index]), None, receipt)
        propensity = None if own is None else (1 - self.epsilon) * own + self.epsilon / n
        return choice._replace(propensity=propensity)

    def propensities(self, x: Any = None, z: Any = None, arms: Any = None) -> Doubles:
        """(1 - epsilon) p + epsilon / n with the wrapped policy's p."""
        p = self.policy.propensities(x, z, arms)
        return (1 - self.epsilon) * p + self.epsilon / len(p)

    def learn(self, arm: Hashable, x: Any = None, z: Any = None, reward: Any = None, *, receipt: Any = None) -> None:
        self.policy.learn(arm, x, z, reward, receipt=receipt)

    def learn_many(
        self,
        arms: Iterable[Hashable],
        x: Any = None,
        z: Any = None,
        rewards: Any = None,
        *,
        receipts: Sequence[Any] | None = None,
    ) -> None:
        self.policy.learn_many(arms, x, z, rewards, receipts=receipts)

    def predict(self, x: Any = None, z: Any = None, arms: Any = None) -> Prediction:
        return self.policy.predict(x, z, arms)

    @property
    def theta(self) -> Doubles:
        return self.policy.theta

    def beta(self, arm: Hashable) -> Doubles:
        return self.policy.beta(arm)

    @property
    def arms(self) -> list[Hashable]:
        return self.policy.arms

    @property
    def rounds(self) -> int:
        return self.policy.rounds

    def forget(self, arm: Hashable) -> None:
        self.policy.forget(arm)

    def merge(self, other: Self) -> None:
        check_mergeable(self, other)
        self.policy.merge(other.policy)

    def candidates(self, arms: Sequence[Hashable]) -> CandidateSet:
        return self.policy.candidates(arms)

    def _pack_parts(self) -> dict[str, Packed]:
        return {"policy": self.policy._pack()}

    def _unpack_parts(self, parts: dict[str, Packed]) -> None:
        self.policy = Policy._unpack(*parts["policy"])

    @classmethod
    def _restore(cls, config: dict[str, Any], parts: dict[str, Packed]) -> Self:
        return cls(Policy._unpack(*parts["policy"]), **config)
