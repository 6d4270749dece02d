"""Baselines that choose by chance: Uniform, and EpsilonGreedy around any other policy."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Self

import numpy as np

from hybandits.estimators.arms import CandidateSet, Slots
from hybandits.estimators.inputs import check_finite
from hybandits.estimators.learned import LearnedSettings
from hybandits.estimators.policy_file import Packed
from hybandits.estimators.random_stream import RandomStream
from hybandits.estimators.ridge import Prediction
from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray
from hybandits.kernels import decisions
from hybandits.kernels.random import place_among
from hybandits.policies.base import Choice, Policy, check_mergeable, ids_of, kept
from hybandits.policies.ranking import Ranking, number_of_places
from hybandits.policies.ridge_policy import RidgePolicy


class Uniform(RidgePolicy):
    """Choose every candidate with the same probability: the baseline to beat, and the way to collect an unbiased log.

    The policy still estimates rewards, so `predict` and `theta` work as for the other policies.

    Parameters
    ----------
    d1 : int
        The number of shared features x, whose effect on the reward is the same for all arms.
    d2 : int
        The number of arm-specific features z, whose effect each arm learns for itself.
    ridge : float, default=1.0
        How strongly the estimates are drawn towards zero (lambda).
    seed : int, optional
        The seed of the random draws. The default draws fresh entropy.

    Attributes
    ----------
    ridge : float
        As given.

    Examples
    --------
    >>> policy = Uniform(d1=1, d2=0, seed=0)
    >>> policy.choose([[1.0], [1.0], [1.0], [1.0]], arms=["a", "b", "c", "d"]).propensity
    0.25
    """

    def __init__(self, *, d1: int, d2: int, ridge: float = 1.0, seed: int | None = None) -> None:
        super().__init__(d1=d1, d2=d2, ridge=ridge, seed=seed)

    def _pick(
        self, x: FloatArray, z: FloatArray, slots: Slots, lot: RandomStream
    ) -> tuple[int, float, float, float | None]:
        index = decisions.choose_uniform(x, z, lot.key, lot.keyed, lot.decision)
        if index < 0:
            return -1, 0.0, 0.0, None
        chosen = slice(index, index + 1)
        mean, width = self._estimator.score(x[chosen], z[chosen], slots[chosen])
        return index, float(mean[0]), float(width[0]), 1.0 / len(slots)

    def _order(
        self, x: FloatArray, z: FloatArray, slots: Slots, lot: RandomStream, places: int
    ) -> tuple[Slots, FloatArray | None]:
        return super()._order(x, z, slots, lot, places)[0], None

    def _place_chances(self, x: FloatArray, z: FloatArray, slots: Slots, lot: RandomStream, places: int) -> FloatArray:
        return np.full((len(slots), places), 1.0 / len(slots))

    def propensities(
        self, x: Any = None, z: Any = None, arms: Any = None, *, key: Hashable | None = None
    ) -> FloatArray:
        """Return 1/n for each of the n candidates."""
        rows = self._rows(x, z, arms)
        check_finite(rows.x, rows.z)
        return np.full(len(rows.slots), 1.0 / len(rows.slots))


class EpsilonGreedy(Policy):
    """Explore by chance around any policy: with probability epsilon choose a candidate at random.

    Otherwise the choice is that of the wrapped policy. Every candidate has a positive probability, so the choices can
    be evaluated offline afterwards. All learning goes to the wrapped policy.

    Parameters
    ----------
    policy : Policy
        The policy to wrap.
    epsilon : float, default=0.1
        The share of choices that are made at random.
    seed : int, optional
        The seed of the random choices. The default draws fresh entropy.

    Attributes
    ----------
    policy : Policy
        The wrapped policy.
    epsilon : float
        As given.

    Notes
    -----
    The propensity is that of the mixture, (1 - epsilon) p(arm) + epsilon / n, where p is the wrapped policy's own
    probability of the arm.

    Examples
    --------
    >>> from hybandits import Greedy
    >>> policy = EpsilonGreedy(Greedy(d1=1, d2=0), epsilon=0.2, seed=0)
    >>> policy.propensities([[1.0], [1.0]], arms=["a", "b"]).tolist()
    [0.9, 0.1]
    """

    def __init__(self, policy: Policy, *, epsilon: float = 0.1, seed: int | None = None) -> None:
        if not isinstance(policy, Policy):
            raise TypeError(
                f"policy must be a policy to wrap, got {checks.short(policy)}: "
                "construct one first, as in EpsilonGreedy(Greedy(d1=2, d2=1))"
            )
        self.epsilon = checks.real("epsilon", epsilon)
        if not 0 <= self.epsilon <= 1:
            raise ValueError(f"epsilon must lie in [0, 1], got {epsilon!r}: it is the share of random choices")
        self.policy = policy
        super().__init__(d1=policy.d1, d2=policy.d2, seed=seed)

    @property
    def receipt_is_of_the_round(self) -> bool:  # type: ignore[override]
        return self.policy.receipt_is_of_the_round

    def _meet(self, arms: Sequence[Hashable]) -> None:
        self.policy._meet(arms)

    def _depth(self) -> int:
        return 1 + self.policy._depth()

    def choose(
        self,
        x: Any = None,
        z: Any = None,
        arms: Iterable[Hashable] | CandidateSet | None = None,
        *,
        key: Hashable | None = None,
        randomize: bool = False,
        floor: float | None = None,
    ) -> Choice:
        if randomize or floor is not None:
            return self._choose_by_lot(x, z, arms, key, randomize, floor)
        arms = kept(arms)
        chance, place = self._lot(key).uniforms(2)
        explores = chance < self.epsilon
        inner_lot = self.policy._lot(key)
        # Asked before the wrapped policy chooses: its probabilities are those of its next decision.
        inner = self.policy.propensities(x, z, arms, key=key) if explores else None
        choice = self.policy.choose(x, z, arms, key=key)
        if key is None:
            self._decisions += 1
        n = len(x) if x is not None else len(z)
        own = choice.propensity
        if inner is not None:
            index = place_among(place, n)
            if index != choice.index and own is not None:
                own = float(inner[index])
            choice = self.policy._instead(choice, index, x, z, arms, inner_lot)
        propensity = None if own is None else (1 - self.epsilon) * own + self.epsilon / n
        return choice._replace(propensity=propensity)

    def propensities(
        self, x: Any = None, z: Any = None, arms: Any = None, *, key: Hashable | None = None
    ) -> FloatArray:
        """Return (1 - epsilon) p + epsilon / n for each candidate, where p is its probability in the wrapped policy."""
        p = self.policy.propensities(x, z, arms, key=key)
        return (1 - self.epsilon) * p + self.epsilon / len(p)

    def rank(
        self, x: Any = None, z: Any = None, arms: Any = None, m: int | None = None, *, key: Hashable | None = None
    ) -> Ranking:
        arms = kept(arms)
        lot = self._lot(key)
        explores = lot.uniforms(1)[0] < self.epsilon
        n = len(self.policy.predict(x, z, arms).mean)  # which checks everything, before anything changes
        places = number_of_places(m, n)
        ids, inner_lot = ids_of(arms, n), self.policy._lot(key)
        if key is None:
            self.policy._meet(ids)
        # Asked before the wrapped policy ranks: its probabilities are those of its next decision.
        inner = self.policy._place_probabilities(x, z, arms, places, key) if explores else None
        ranking = self.policy.rank(x, z, arms, places, key=key)
        if key is None:
            self._decisions += 1
        own = ranking.propensities
        if inner is not None:
            indices = np.argsort(lot.uniforms(2 + n)[2:])
            first = place_among(lot.uniforms(2)[1], n)  # as `choose` does
            indices = np.concatenate(([first], indices[indices != first]))[:places]
            own = inner[indices, np.arange(places)]
            mean, width = self.policy._scores(x, z, arms, inner_lot)
            of_round = self.policy.receipt_is_of_the_round
            receipts = [ranking.receipts[0] if of_round else None] * places
            chosen = [ids[i] for i in indices.tolist()]
            ranking = Ranking(chosen, indices, mean[indices], width[indices], own, receipts)
        return ranking._replace(propensities=(1 - self.epsilon) * own + self.epsilon / n)

    def _place_probabilities(self, x: Any, z: Any, arms: Any, places: int, key: Hashable | None) -> FloatArray:
        inner = self.policy._place_probabilities(x, z, arms, places, key)
        return (1 - self.epsilon) * inner + self.epsilon / len(inner)

    def learn(self, arm: Hashable, x: Any = None, z: Any = None, reward: Any = None, *, receipt: Any = None) -> None:
        self.policy.learn(arm, x, z, reward, receipt=receipt)

    def learn_batch(
        self,
        arms: Iterable[Hashable],
        x: Any = None,
        z: Any = None,
        rewards: Any = None,
        *,
        receipts: Sequence[Any] | None = None,
    ) -> None:
        self.policy.learn_batch(arms, x, z, rewards, receipts=receipts)

    def predict(self, x: Any = None, z: Any = None, arms: Any = None) -> Prediction:
        return self.policy.predict(x, z, arms)

    @property
    def theta(self) -> FloatArray:
        return self.policy.theta

    def beta(self, arm: Hashable) -> FloatArray:
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

    @property
    def learned(self) -> LearnedSettings | None:
        return self.policy.learned

    def refresh(self) -> None:
        self.policy.refresh()

    def reseed(self, seed: int | None) -> None:
        super().reseed(seed)
        self.policy.reseed(seed)

    def _after_fork(self) -> None:
        super().reseed(None)  # the wrapped policy sees to itself

    def start_delta(self) -> Self:
        return type(self)(self.policy.start_delta(), **self._config())

    def candidates(self, arms: Sequence[Hashable]) -> CandidateSet:
        return self.policy.candidates(arms)

    def _pack_parts(self) -> dict[str, Packed]:
        return {"policy": self.policy._pack()}

    def _unpack_parts(self, parts: dict[str, Packed]) -> None:
        self.policy = Policy._unpack(*parts["policy"])

    @classmethod
    def _restore(cls, config: dict[str, Any], parts: dict[str, Packed]) -> Self:
        return cls(Policy._unpack(*parts["policy"]), **config)
