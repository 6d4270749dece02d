"""Baselines that choose by chance: Uniform, and EpsilonGreedy around any other policy."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Self

import numpy as np

from hybandits.estimators.arms import ArmTable, Candidates, Prediction
from hybandits.estimators.inputs import check_finite
from hybandits.estimators.learned import LearnedSettings
from hybandits.estimators.policy_file import Packed
from hybandits.estimators.random_stream import RandomStream
from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray
from hybandits.kernels import decisions
from hybandits.kernels.random import place_among
from hybandits.policies.base import Picked, Policy, RidgePolicy
from hybandits.policies.choices import Choices


class Uniform(RidgePolicy):
    """Choose every candidate with the same probability: the baseline to beat, and the way to collect an unbiased log.

    Parameters
    ----------
    d1, d2, ridge, seed
        As for `HyLinUCB`; the default of `ridge` is 1.0.
    """

    def _pick(self, candidates: Candidates, stream: RandomStream) -> Picked:
        index = decisions.choose_uniform(candidates.x, candidates.z, stream.key, stream.keyed, stream.decision)
        if index < 0:
            return -1, 0.0, 0.0, None
        (mean,), (width,) = self._score(candidates.take(np.array([index])), stream)
        return index, float(mean), float(width), 1.0 / len(candidates.arms)

    def kernel_rule(self) -> decisions.Rule:
        """Return the rule and its estimator, as the compiled loop takes them."""
        return decisions.Rule(decisions.UNIFORM, self._table.addresses, np.empty(0))

    def _propensities(self, candidates: Candidates, stream: RandomStream) -> FloatArray:
        check_finite(candidates.x, candidates.z)
        return np.full(len(candidates.arms), 1.0 / len(candidates.arms))

    def _rank(self, candidates: Candidates, stream: RandomStream, m: int) -> Choices:
        return super()._rank(candidates, stream, m)._replace(propensities=np.full(m, 1.0 / len(candidates.arms)))


class EpsilonGreedy(Policy):
    """Explore by chance around any policy: with probability epsilon choose a candidate at random.

    Every candidate has a positive probability, so the choices can be evaluated offline afterwards. All learning goes to
    the wrapped policy. The propensity is (1 - epsilon) p(arm) + epsilon / n, where p is that of the wrapped policy.

    Parameters
    ----------
    policy : Policy
        The policy to wrap.
    epsilon : float, default=0.1
        The share of choices that are made at random.
    seed : int, optional
        The seed of the random choices. The default draws fresh entropy.

    Examples
    --------
    >>> from hybandits import Greedy
    >>> policy = EpsilonGreedy(Greedy(d1=1, d2=0), epsilon=0.2, seed=0)
    >>> policy.propensities([[1.0], [1.0]], arms=["a", "b"]).tolist()
    [0.9, 0.1]
    """

    def __init__(self, policy: Policy, *, epsilon: float = 0.1, seed: int | None = None) -> None:
        if not isinstance(policy, Policy):
            raise TypeError(f"policy must be a policy such as Greedy(d1=2, d2=1), got {checks.short(policy)}")
        self.epsilon = checks.share("epsilon", epsilon, "it is the share of random choices")
        self.policy = policy
        self.receipt_is_of_the_round = policy.receipt_is_of_the_round  # type: ignore[misc]
        self._counts_arms = policy._counts_arms  # type: ignore[misc]
        super().__init__(d1=policy.d1, d2=policy.d2, seed=seed)

    @property
    def _table(self) -> ArmTable:  # type: ignore[override]
        return self.policy._table

    def _make_lock(self) -> None:
        super()._make_lock()
        self._lock = self.policy._lock  # both policies share one model

    def _depth(self) -> int:
        return 1 + self.policy._depth()

    def _candidates(self, x: Any, z: Any, arms: Any, admit: bool) -> Candidates:
        return self.policy._candidates(x, z, arms, admit)

    def _count(self, randomized: bool = False) -> None:
        super()._count(randomized)
        self.policy._count()

    def _examine(self, x: FloatArray, z: FloatArray) -> None:
        self.policy._examine(x, z)

    def _inner(self, stream: RandomStream) -> RandomStream:
        """The random numbers of the wrapped policy in a decision."""
        number = stream.decision if stream.keyed else self.policy._decisions
        return RandomStream(self.policy._key, number, stream.keyed)

    def _score(self, candidates: Candidates, stream: RandomStream) -> Prediction:
        return self.policy._score(candidates, self._inner(stream))

    def _mixed(self, propensity: Any, n: int) -> Any:
        return (1 - self.epsilon) * propensity + self.epsilon / n

    def _pick(self, candidates: Candidates, stream: RandomStream) -> Picked:
        policy, inner, n = self.policy, self._inner(stream), len(candidates.arms)
        explore, place = stream.uniforms(2)
        choice = policy._choice(candidates, inner)
        propensity = choice.propensity
        if explore < self.epsilon:
            index = place_among(place, n)
            if index != choice.index and propensity is not None:
                propensity = float(policy._propensities(candidates, inner)[index])
            choice = policy._replaced(choice, index, candidates, inner)
        mixed = None if propensity is None else self._mixed(propensity, n)
        return choice.index, choice.mean, choice.width, mixed, choice.receipt

    def _propensities(self, candidates: Candidates, stream: RandomStream) -> FloatArray:
        p = self.policy._propensities(candidates, self._inner(stream))
        mixed: FloatArray = self._mixed(p, len(p))
        return mixed

    def _rank(self, candidates: Candidates, stream: RandomStream, m: int) -> Choices:
        policy, inner, n = self.policy, self._inner(stream), len(candidates.arms)
        ranking = policy._rank(candidates, inner, m)
        certain = (ranking.propensities == 1.0).all()
        explore, place, *order = stream.uniforms(2 + n)
        if explore < self.epsilon:
            first = place_among(place, n)  # as `choose` does
            indices = np.argsort(order)
            indices = np.concatenate(([first], indices[indices != first]))[:m]
            propensities = (indices == ranking.indices).astype(float)
            receipts = [ranking.receipts[0] if self.receipt_is_of_the_round else None] * m
            ranking = policy._ranking(candidates, inner, indices, propensities)._replace(receipts=receipts)
        return ranking._replace(propensities=self._mixed(ranking.propensities, n) if certain else np.full(m, np.nan))

    def learn(self, arm: Hashable, x: Any = None, z: Any = None, reward: Any = None, *, receipt: Any = None) -> None:
        self.policy.learn(arm, x, z, reward, receipt=receipt)

    def _learn_batch(self, arms: Sequence[Hashable], x: Any, z: Any, rewards: Any, receipts: Any) -> None:
        self.policy.learn_batch(arms, x, z, rewards, receipts=receipts)

    def predict(self, x: Any = None, z: Any = None, arms: Any = None) -> Prediction:
        return self.policy.predict(x, z, arms)

    @property
    def theta(self) -> FloatArray:
        return self.policy.theta

    def beta(self, arm: Hashable) -> FloatArray:
        return self.policy.beta(arm)

    @property
    def rounds(self) -> int:
        return self.policy.rounds

    def admit(self, arms: Iterable[Hashable]) -> None:
        self.policy.admit(arms)

    def forget(self, arm: Hashable) -> None:
        self.policy.forget(arm)

    def _merge(self, other: Self) -> None:
        self.policy.merge(other.policy)

    @property
    def learned(self) -> LearnedSettings | None:
        return self.policy.learned

    def refresh(self) -> None:
        self.policy.refresh()

    def reseed(self, seed: int | None) -> None:
        super().reseed(seed)
        self.policy.reseed(seed)

    def number_decisions(self, first: int) -> None:
        super().number_decisions(first)
        self.policy.number_decisions(first)

    def start_delta(self) -> Self:
        return type(self)(self.policy.start_delta(), **self._config())

    def _pack_parts(self) -> dict[str, Packed]:
        return {"policy": self.policy._pack()}

    @classmethod
    def _restore(cls, config: dict[str, Any], parts: dict[str, Packed]) -> Self:
        return cls(Policy._unpack(*parts["policy"]), **config)
