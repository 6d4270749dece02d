"""Upper confidence bounds on the ridge estimator: choose the highest mean + gamma width (paper, Algorithms 1 and 2)."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from hybandits.estimators.arms import Candidates, Slots
from hybandits.estimators.exploration import Constant, Exploration, Reduction, SelfNormalised, from_plain, to_plain
from hybandits.estimators.inputs import checked_matrices, checked_vectors, not_finite
from hybandits.estimators.random_stream import RandomStream
from hybandits.estimators.ridge import HybridRidge
from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray
from hybandits.kernels import arrow, decisions
from hybandits.policies.base import Picked, RidgePolicy
from hybandits.policies.choices import Batch, Choices


class UCBPolicy(RidgePolicy):
    """The rule of upper confidence bounds; a subclass names the reduction that determines the size of gamma."""

    reduction: ClassVar[Reduction]
    _not_settings = ("seed", "noise")  # the coefficient holds the noise
    _draws = False
    _counts_arms = True
    _code: ClassVar[int] = decisions.BOUNDS

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
        if not isinstance(exploration, Exploration):
            given = checks.short(exploration)
            raise TypeError(f"exploration must be a coefficient such as SelfNormalised(noise=0.1), got {given}")
        self.exploration = exploration
        self._ridge_given = None if ridge is None else checks.ridge(ridge)
        if ridge is None:
            ridge = exploration.ridge(self.reduction, 0)
        super().__init__(d1=d1, d2=d2, ridge=1.0 if ridge is None else ridge, seed=seed)
        self._coefficients: FloatArray = np.zeros(5)
        self._arms_changed()

    def _arms_changed(self) -> None:
        super()._arms_changed()
        if self._ridge_given is None:
            prescribed = self.exploration.ridge(self.reduction, self._known)
            if prescribed is not None and prescribed > self.ridge:
                self._table.raise_ridge(prescribed)
        numbers = self.exploration.coefficients(self.reduction, self.d1, self.d2, self._known, self.ridge)
        self._coefficients = np.array(numbers, dtype=float)

    @property
    def radius(self) -> float:
        """The present gamma, in widths added to a mean; for `DisLinUCB`, that of an arm that has not learned."""
        return float(decisions.radius(self._coefficients, 0 if self._code == decisions.OWN_BOUNDS else self.rounds))

    def radii(self, slots: Slots) -> FloatArray:
        """The present value of gamma for the arms in these slots."""
        rows = np.full(len(slots), self.rounds)
        if self._code == decisions.OWN_BOUNDS:
            rows = np.where(slots < 0, 0, np.append(self._table.pulls, 0)[slots])
        return np.array([decisions.radius(self._coefficients, t) for t in rows.tolist()])

    def _pick(self, candidates: Candidates, stream: RandomStream) -> Picked:
        x, z, _, slots = candidates
        key, decision, keyed = stream
        estimator = self._table
        picked: Picked = decisions.decide(
            self._code, estimator.addresses, self._coefficients, x, z, slots, estimator.rounds, key, keyed, decision
        )
        return picked

    def kernel_rule(self) -> decisions.Rule:
        """The rule and its estimator, as kernels for batches and loops take them."""
        return decisions.Rule(self._code, self._table.addresses, self._coefficients)

    def _pick_batch(self, batch: Batch, slots: Slots, threads: int) -> tuple[Any, ...]:
        alike = not len(batch.mask) and len(slots) == 1 and batch.z.shape[2] >= arrow.SHORT
        return self._pick_compiled(self.kernel_rule(), batch, slots, threads, together=alike)

    def _rank(self, candidates: Candidates, stream: RandomStream, m: int) -> Choices:
        """Order by the bounds."""
        mean, width = self._score(candidates, stream)
        indices = np.argsort(-(mean + self.radii(candidates.slots) * width), kind="stable")[:m]
        return self._ranking(candidates, stream, indices, np.ones(m))

    def _config(self) -> dict[str, Any]:
        config = super()._config()
        if "exploration" in config:  # a class of one's own may set the coefficient itself
            config["exploration"] = to_plain(config["exploration"])
        if "ridge" in config:  # not the present value: a ridge that grows with the arms must go on growing
            config["ridge"] = self._ridge_given
        return config

    @classmethod
    def _from_config(cls, config: dict[str, Any]) -> Self:
        if "exploration" in config:
            config = {**config, "exploration": from_plain(config["exploration"])}
        return cls(**config)


class HyLinUCB(UCBPolicy):
    """Explore by optimism, with features that arms share and features of their own: the algorithm of the paper.

    For every candidate the policy estimates the reward, adds a bonus for what it does not know yet, and chooses the
    highest sum. With the default coefficient the bonus depends on d1 + d2 and not on the number of arms.

    The bonus is as large as the guarantees of the theorems need it to be. Where rewards are noisy and differences
    small, as with clicks, the policy stays near uniform choice for very long. For high rewards without a guarantee, use
    `HyIDS`, which needs no settings, or make the bonus smaller by hand (`LiHybrid`).

    Parameters
    ----------
    d1, d2 : int
        As for `Policy`.
    noise : float, optional
        The standard deviation of the reward around its mean, in the units of the reward; for rewards of 0 and 1 it is
        at most 0.5. ``noise=0.1`` is short for ``exploration=SelfNormalised(noise=0.1)``; the default is 1.0.
    exploration : SelfNormalised, AsWritten or Constant, optional
        The exploration coefficient, instead of `noise`.
    ridge : float, optional
        The strength with which estimates are shrunk towards zero (lambda). The default is the value that `exploration`
        prescribes, or 1.0 if it prescribes none.
    seed : int, optional
        As for `Policy`; this rule does not draw random numbers.

    Notes
    -----
    The rule is the argmax of mean + gamma width, on the ridge estimate of (theta, beta_1, ..., beta_K) [1]_. The
    default coefficient is the self-normalised one that the released code of the paper uses; docs/notation.md has all
    formulas.

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

    This is the reduction of the hybrid problem to the shared one: section 3.1 of the paper that `HyLinUCB` names. The
    estimates are those of `HyLinUCB`, but the bonus grows with d1 + d2 K, where K is the number of arms met so far.

    Parameters
    ----------
    d1, d2, noise, exploration, ridge, seed
        As for `HyLinUCB`.
    """

    reduction = "shared"


class DisLinUCB(UCBPolicy):
    """Explore by optimism with every arm on its own: no arm learns from the rewards of others.

    This is the reduction of the hybrid problem to the disjoint one: Algorithm 2 of the paper that `HyLinUCB` names.
    Each arm has a regression of its own on x and z together, so ``beta(arm)`` has d1 + d2 entries and `theta` has none.
    Use it where the arms have nothing in common; every arm then needs rewards of its own for all features.

    Parameters
    ----------
    d1, d2, noise, exploration, ridge, seed
        As for `HyLinUCB`.
    """

    reduction = "disjoint"
    _code = decisions.OWN_BOUNDS

    def _make_estimator(self, ridge: float) -> HybridRidge:
        return HybridRidge(d1=0, d2=self.d1 + self.d2, ridge=ridge)

    # The estimator's own checks would name other columns.
    def _candidates(self, x: Any, z: Any, arms: Any, admit: bool) -> Candidates:
        x, z = _together(*checked_matrices(x, z, self.d1, self.d2))
        return super()._candidates(x, z, arms, admit)

    def learn(self, arm: Hashable, x: Any = None, z: Any = None, reward: Any = None, *, receipt: Any = None) -> None:
        x, z = _together(*checked_vectors(x, z, self.d1, self.d2))
        super().learn(arm, x, z, reward)

    def _learn_batch(self, arms: Sequence[Hashable], x: Any, z: Any, rewards: Any, receipts: Any) -> None:
        x, z = _together(*checked_matrices(x, z, self.d1, self.d2))
        super()._learn_batch(arms, x, z, rewards, receipts)

    def learn_summary(self, arms: Iterable[Hashable], x: Any, z: Any, rewards: Any, **counts: Any) -> None:
        x, z = _together(*checked_matrices(x, z, self.d1, self.d2))
        super().learn_summary(arms, x, z, rewards, **counts)

    def _pick_batch(self, batch: Batch, slots: Slots, threads: int) -> tuple[Any, ...]:
        together = batch._replace(x=batch.x[..., :0], z=np.concatenate((batch.x, batch.z), axis=-1))
        try:
            return super()._pick_batch(together, slots, threads)
        except ValueError:
            batch.check_finite()  # whose message names a column of x or z
            raise


def _together(x: FloatArray, z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """No shared features, and (x, z) as an arm's own."""
    if not (arrow.within_limit(x) and arrow.within_limit(z)):
        raise not_finite(x, z)
    return x[..., :0], np.concatenate((x, z), axis=-1)


class LiHybrid(UCBPolicy):
    """Explore by optimism with a bonus that you tune by hand: the hybrid LinUCB of Li et al.

    The estimates are those of `HyLinUCB`; the bonus is `alpha` times the width and does not change over time.

    Parameters
    ----------
    d1, d2, ridge, seed
        As for `HyLinUCB`; the default of `ridge` is 1.0.
    alpha : float, default=1.0
        The number of widths that is added to the mean. A larger value explores more.

    Notes
    -----
    This is Algorithm 2 of [1]_. Its names are the other way round: Li et al. write z and beta for the shared part, and
    x and theta for an arm's own part.

    References
    ----------
    .. [1] Li, Chu, Langford & Schapire, "A Contextual-Bandit Approach to Personalized News Article Recommendation",
           2010.
    """

    reduction = "hybrid"

    def __init__(self, *, d1: int, d2: int, alpha: float = 1.0, ridge: float = 1.0, seed: int | None = None) -> None:
        super().__init__(d1=d1, d2=d2, exploration=Constant(alpha=alpha), ridge=ridge, seed=seed)
        self.alpha = float(alpha)


class Greedy(UCBPolicy):
    """Always choose the candidate with the highest estimated reward, without any exploration.

    It is a baseline. Wrap it in `EpsilonGreedy` to explore by chance.

    Parameters
    ----------
    d1, d2, ridge, seed
        As for `HyLinUCB`; the default of `ridge` is 1.0.
    """

    reduction = "hybrid"

    def __init__(self, *, d1: int, d2: int, ridge: float = 1.0, seed: int | None = None) -> None:
        super().__init__(d1=d1, d2=d2, exploration=Constant(alpha=0.0), ridge=ridge, seed=seed)
