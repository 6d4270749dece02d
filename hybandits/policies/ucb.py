"""Upper confidence bounds on the hybrid estimator: play the highest mean + gamma width (paper, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, ClassVar, Self

import numpy as np

from hybandits.estimators.arms import Slots
from hybandits.estimators.exploration import Constant, Exploration, Reduction, SelfNormalised, from_plain, to_plain
from hybandits.estimators.inputs import not_finite
from hybandits.estimators.random_stream import RandomStream
from hybandits.estimators.ridge import HybridRidge
from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray
from hybandits.kernels import batches, decisions
from hybandits.policies.base import one_hot
from hybandits.policies.batch import Batch, in_threads
from hybandits.policies.ridge_policy import RidgePolicy


class UCBPolicy(RidgePolicy):
    """The rule of upper confidence bounds; a subclass names the reduction that determines the size of gamma."""

    reduction: ClassVar[Reduction]
    _not_settings = ("seed", "noise")  # the coefficient holds the noise
    _draws = False
    _by_arm: ClassVar[bool] = False
    """Whether gamma depends on the rewards of each arm instead of on all rewards learned."""

    def __init__(
        self,
        *,
        d1: int,
        d2: int,
        noise: float | None = None,
        exploration: Exploration | None = None,
        ridge: float | None = None,
        seed: int | None = None,
    ) -> None:
        if exploration is None:
            exploration = SelfNormalised(noise=1.0 if noise is None else noise)
        elif noise is not None:
            raise ValueError(
                f"noise={noise!r} and exploration={exploration!r} were both given: "
                "put the noise into the coefficient, as in exploration=SelfNormalised(noise=0.1)"
            )
        if isinstance(exploration, type) or not isinstance(exploration, Exploration):
            raise TypeError(
                f"exploration must be a coefficient such as SelfNormalised(noise=0.1), AsWritten(horizon=10_000) or "
                f"Constant(alpha=1.0), got {checks.short(exploration)}"
            )
        self.exploration = exploration
        self._ridge_given = None if ridge is None else checks.ridge(ridge)
        prescribed = exploration.ridge(self.reduction, 0)
        if ridge is None:
            ridge = 1.0 if prescribed is None else prescribed
        super().__init__(d1=d1, d2=d2, ridge=ridge, seed=seed)
        self._coefficients: FloatArray = np.zeros(5)
        self._arms_changed()

    def _arms_changed(self) -> None:
        super()._arms_changed()
        estimator = self._estimator
        known = estimator.known
        ridge = self._ridge_for(known)
        if ridge > estimator.ridge:
            estimator.raise_ridge(ridge)
        self._coefficients = self._coefficients_for(known)

    @property
    def coefficients(self) -> FloatArray:
        """The five numbers that determine gamma, as `decisions.radius` takes them."""
        return self._coefficients

    def _ridge_for(self, arms: int) -> float:
        """The ridge once this many arms have been met: the prescribed one, if it is higher than the present one."""
        now = self._estimator.ridge
        prescribed = None if self._ridge_given is not None else self.exploration.ridge(self.reduction, arms)
        return now if prescribed is None else max(now, prescribed)

    def _coefficients_for(self, arms: int) -> FloatArray:
        numbers = self.exploration.coefficients(self.reduction, self.d1, self.d2, arms, self._ridge_for(arms))
        return np.array(numbers, dtype=float)

    def _pick(
        self,
        x: FloatArray,
        z: FloatArray,
        slots: Slots,
        lot: RandomStream | None = None,
        estimator: HybridRidge | None = None,
        coefficients: FloatArray | None = None,
    ) -> tuple[int, float, float, float]:
        """Pick the highest bound; `propensities` passes the estimator and coefficients that `choose` would use."""
        if estimator is None:
            estimator, coefficients = self._estimator, self._coefficients
        picked: tuple[int, float, float, float] = decisions.choose_ucb(
            x, z, slots, estimator.arm_score, estimator.pulls, estimator.shared_score, estimator.ridge, coefficients,
            -1 if self._by_arm else estimator.rounds,
        )  # fmt: skip
        return picked

    def _pick_batch(self, batch: Batch, slots: Slots, threads: int) -> tuple[Slots, FloatArray, FloatArray, FloatArray]:
        estimator, size = self._estimator, batch.size
        index, mean, width = np.empty(size, np.int64), np.empty(size), np.empty(size)
        t = -1 if self._by_arm else estimator.rounds

        def work(first: int, last: int) -> int:
            refused: int = batches.choose_batch_ucb(
                batch.x, batch.z, slots, batch.mask, estimator.arm_score, estimator.pulls, estimator.shared_score,
                estimator.ridge, self._coefficients, t, first, last, index, mean, width,
            )  # fmt: skip
            return refused

        in_threads(work, batch, threads)
        return index, mean, width, np.ones(size)

    def _order(
        self, x: FloatArray, z: FloatArray, slots: Slots, lot: RandomStream, places: int
    ) -> tuple[Slots, FloatArray | None]:
        """The highest bounds, in order."""
        estimator = self._estimator
        mean, width = estimator.score(x, z, slots)
        rows = [estimator.rounds] * len(slots)
        if self._by_arm:
            rows = [int(estimator.pulls[slot]) if slot >= 0 else 0 for slot in slots.tolist()]
        gamma = np.array([decisions.radius(self._coefficients, t) for t in rows])
        return np.argsort(-(mean + gamma * width), kind="stable")[:places], np.ones(places)

    def propensities(
        self, x: Any = None, z: Any = None, arms: Any = None, *, key: Hashable | None = None
    ) -> FloatArray:
        """Return 1 for the arm with the highest bound and 0 for the others: the rule is deterministic."""
        rows = self._rows(x, z, arms)
        estimator, coefficients = self._estimator, self._coefficients
        new = estimator.unmet(rows.arms) if key is None else 0
        if new:  # `choose` without a key would admit them first, which may change gamma and lambda
            met = estimator.known + new
            coefficients = self._coefficients_for(met)
            if self._ridge_for(met) > estimator.ridge:
                estimator = estimator.copy()
                estimator.raise_ridge(self._ridge_for(met))
        slots = rows.slots if estimator is self._estimator else estimator.lookup(rows.arms)
        index, *_ = self._pick(rows.x, rows.z, slots, None, estimator, coefficients)
        if index < 0:
            raise not_finite(rows.x, rows.z)
        return one_hot(len(rows.slots), index)

    @property
    def radius(self) -> float:
        """The present value of gamma; for `DisLinUCB`, that of an arm that has not learned."""
        return float(decisions.radius(self._coefficients, 0 if self._by_arm else self._estimator.rounds))

    def _plain(self, name: str, value: Any) -> Any:
        if name == "exploration":
            return to_plain(value)
        if name == "ridge":  # not the present value: a ridge that grows with the arms must go on growing
            return self._ridge_given
        return value

    @classmethod
    def _from_config(cls, config: dict[str, Any]) -> Self:
        if "exploration" not in config:  # a class of one's own may set the coefficient itself
            return cls(**config)
        return cls(**{**config, "exploration": from_plain(config["exploration"])})


class HyLinUCB(UCBPolicy):
    """Explore by optimism, with features that arms share and features of their own: the algorithm of the paper.

    For every candidate the policy estimates the reward, adds a bonus for what it does not know yet, and chooses the
    highest sum. With the default coefficient the bonus depends on d1 + d2 and not on the number of arms.

    The bonus is as large as the guarantees of the theorems need it to be. Where rewards are noisy and differences
    small, as with clicks, the policy stays near uniform choice for very long. If you want reward and no guarantee, use
    `HyIDS`, which needs no settings.

    Parameters
    ----------
    d1 : int
        The number of shared features x, whose effect on the reward is the same for all arms.
    d2 : int
        The number of arm-specific features z, whose effect each arm learns for itself.
    noise : float, optional
        The standard deviation of the reward around its mean, in the units of the reward; for rewards of 0 and 1 it is
        at most 0.5. A larger value explores more. ``noise=0.1`` is short for
        ``exploration=SelfNormalised(noise=0.1)``; the default is 1.0.
    exploration : SelfNormalised, AsWritten or Constant, optional
        How much to explore, instead of `noise`.
    ridge : float, optional
        How strongly the estimates are drawn towards zero (lambda). The default is the value that `exploration`
        prescribes, or 1.0 if it prescribes none.
    seed : int, optional
        The seed of the random state; this rule does not draw random numbers.

    Attributes
    ----------
    exploration : SelfNormalised, AsWritten or Constant
        The exploration coefficient.
    ridge : float
        The present value of lambda.
    radius : float
        The present value of gamma: how many widths above its mean an arm is judged by.

    Notes
    -----
    The rule is the argmax of mean + gamma width, on the ridge estimate of (theta, beta_1, ..., beta_K) [1]_. The
    default coefficient is the self-normalised one that the released code of the paper uses; docs/notation.md has all
    formulas.

    On one stream of clicks (40 of 160 products as candidates, 12,000 rounds) the mean reward was 0.116 with the default
    coefficient and 0.117 with the right noise. Uniform choice earned 0.108 there, `Greedy` 0.454, and 0.510 was
    possible. To stay with upper confidence bounds, make the bonus smaller by hand: ``exploration=Constant(...)``, or
    `LiHybrid`.

    References
    ----------
    .. [1] Das & Sinha, "Linear Contextual Bandits with Hybrid Payoff: Revisited", 2024, section 3.2.

    Examples
    --------
    >>> import numpy as np
    >>> policy = HyLinUCB(d1=2, d2=1, noise=0.1)
    >>> x, z = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[1.0], [0.5]])
    >>> choice = policy.choose(x, z, arms=["sports", "politics"])
    >>> choice.arm, choice.index, choice.propensity
    ('sports', 0, 1.0)
    >>> policy.learn(choice.arm, x[choice.index], z[choice.index], reward=1.0)
    """

    reduction = "hybrid"


class LinUCB(UCBPolicy):
    """Explore by optimism as if all features of all arms were one long vector; with d2 = 0 it is plain LinUCB.

    The estimates are those of `HyLinUCB`. The bonus grows with d1 + d2 K, where K is the number of arms met so far, so
    the policy explores more the more arms there are. It explores even more than `HyLinUCB`, which stays near
    uniform choice for very long where rewards are noisy; `HyIDS` is what to use if you want reward and no guarantee.

    Parameters
    ----------
    d1, d2, noise, exploration, ridge, seed
        As for `HyLinUCB`.

    Attributes
    ----------
    exploration, ridge, radius
        As for `HyLinUCB`.

    Notes
    -----
    This is the reduction of the hybrid problem to the shared one [1]_.

    References
    ----------
    .. [1] Das & Sinha, "Linear Contextual Bandits with Hybrid Payoff: Revisited", 2024, section 3.1.

    Examples
    --------
    >>> policy = LinUCB(d1=2, d2=0, noise=0.1)
    >>> policy.learn("politics", [0.0, 1.0], reward=1.0)
    >>> policy.choose([[1.0, 0.0], [0.0, 1.0]], arms=["sports", "politics"]).arm
    'politics'
    """

    reduction = "shared"


class _ConstantPolicy(UCBPolicy):
    """The same estimator and rule with a gamma that is set by hand."""

    reduction = "hybrid"

    def __init__(self, *, d1: int, d2: int, alpha: float, ridge: float = 1.0, seed: int | None = None) -> None:
        super().__init__(d1=d1, d2=d2, exploration=Constant(alpha=alpha), ridge=ridge, seed=seed)
        self.alpha = float(alpha)

    @classmethod
    def _from_config(cls, config: dict[str, Any]) -> Self:
        return cls(**config)


class LiHybrid(_ConstantPolicy):
    """Explore by optimism with a bonus that you tune by hand: the hybrid LinUCB of Li et al.

    The estimates are those of `HyLinUCB`; the bonus is `alpha` times the width and does not change over time.

    Parameters
    ----------
    d1 : int
        The number of shared features x, whose effect on the reward is the same for all arms.
    d2 : int
        The number of arm-specific features z, whose effect each arm learns for itself.
    alpha : float, default=1.0
        How many widths are added to the mean. A larger value explores more.
    ridge : float, default=1.0
        How strongly the estimates are drawn towards zero (lambda).
    seed : int, optional
        The seed of the random state; this rule does not draw random numbers.

    Attributes
    ----------
    alpha, ridge : float
        As given.

    Notes
    -----
    This is Algorithm 2 of [1]_. Its names are the other way round: Li et al. write z and beta for the shared part, and
    x and theta for an arm's own part.

    References
    ----------
    .. [1] Li, Chu, Langford & Schapire, "A Contextual-Bandit Approach to Personalized News Article Recommendation",
           2010.

    Examples
    --------
    >>> policy = LiHybrid(d1=2, d2=1, alpha=0.5)
    >>> policy.learn("sports", [1.0, 0.0], [1.0], reward=1.0)
    >>> policy.choose([[1.0, 0.0], [0.0, 0.5]], [[1.0], [0.5]], arms=["sports", "politics"]).arm
    'sports'
    """

    def __init__(self, *, d1: int, d2: int, alpha: float = 1.0, ridge: float = 1.0, seed: int | None = None) -> None:
        super().__init__(d1=d1, d2=d2, alpha=alpha, ridge=ridge, seed=seed)


class Greedy(_ConstantPolicy):
    """Always choose the candidate with the highest estimated reward, without any exploration.

    It is a baseline. Among equal estimates the first candidate is chosen. Wrap it in `EpsilonGreedy` to explore by
    chance.

    Parameters
    ----------
    d1 : int
        The number of shared features x, whose effect on the reward is the same for all arms.
    d2 : int
        The number of arm-specific features z, whose effect each arm learns for itself.
    ridge : float, default=1.0
        How strongly the estimates are drawn towards zero (lambda).
    seed : int, optional
        The seed of the random state; this rule does not draw random numbers.

    Attributes
    ----------
    ridge : float
        As given.

    Examples
    --------
    >>> policy = Greedy(d1=1, d2=1)
    >>> policy.learn("b", [1.0], [1.0], reward=1.0)
    >>> policy.choose([[1.0], [1.0]], [[1.0], [1.0]], arms=["a", "b"]).arm
    'b'
    """

    def __init__(self, *, d1: int, d2: int, ridge: float = 1.0, seed: int | None = None) -> None:
        super().__init__(d1=d1, d2=d2, alpha=0.0, ridge=ridge, seed=seed)
