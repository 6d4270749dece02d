"""Upper confidence bounds on the hybrid estimator: argmax of mean + gamma width (paper, Algorithm 1)."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from hybandits.foundation import checks
from hybandits.foundation.checks import Doubles
from hybandits.kernels import decisions
from hybandits.model import exploration as confidence
from hybandits.model.arms import Slots
from hybandits.model.exploration import Constant, Exploration, Reduction, SelfNormalised
from hybandits.model.inputs import not_finite
from hybandits.model.ridge import HybridRidge
from hybandits.policies.base import RidgePolicy, one_hot


class UCBPolicy(RidgePolicy):
    """The rule itself; subclasses name the reduction that sizes gamma."""

    reduction: ClassVar[Reduction]
    _not_settings = ("seed", "noise")  # the coefficient holds the noise
    _by_arm: ClassVar[bool] = False
    """Whether gamma is a function of each arm's own pulls instead of all rows learned."""

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
                "say the noise inside the coefficient, e.g. SelfNormalised(noise=0.1)"
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
        self._coefficients: Doubles = np.zeros(5)
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
    def coefficients(self) -> Doubles:
        """The five numbers of gamma as `decisions.radius` takes them."""
        return self._coefficients

    def _ridge_for(self, arms: int) -> float:
        """The ridge with that many arms met: the one prescribed, if it is higher than now."""
        now = self._estimator.ridge
        prescribed = None if self._ridge_given is not None else self.exploration.ridge(self.reduction, arms)
        return now if prescribed is None else max(now, prescribed)

    def _coefficients_for(self, arms: int) -> Doubles:
        numbers = self.exploration.coefficients(self.reduction, self.d1, self.d2, arms, self._ridge_for(arms))
        return np.array(numbers, dtype=float)

    def _pick(
        self,
        x: Doubles,
        z: Doubles,
        slots: Slots,
        estimator: HybridRidge | None = None,
        coefficients: Doubles | None = None,
    ) -> tuple[int, float, float, float]:
        """The highest bound; `propensities` gives the estimator and coefficients that `choose` would come to have."""
        if estimator is None:
            estimator, coefficients = self._estimator, self._coefficients
        picked: tuple[int, float, float, float] = decisions.choose_ucb(
            x, z, slots, estimator.arm_score, estimator.pulls, estimator.shared_score, estimator.ridge, coefficients,
            -1 if self._by_arm else estimator.rounds,
        )  # fmt: skip
        return picked

    def propensities(self, x: Any = None, z: Any = None, arms: Any = None) -> Doubles:
        """1 for the arm with the highest bound, 0 for the others: the rule is deterministic."""
        rows = self._rows(x, z, arms)
        estimator, coefficients = self._estimator, self._coefficients
        new = estimator.unmet(rows.arms)
        if new:  # `choose` would admit them first, which may change gamma and lambda
            met = estimator.known + new
            coefficients = self._coefficients_for(met)
            if self._ridge_for(met) > estimator.ridge:
                estimator = estimator.copy()
                estimator.raise_ridge(self._ridge_for(met))
        slots = rows.slots if estimator is self._estimator else estimator.lookup(rows.arms)
        index, *_ = self._pick(rows.x, rows.z, slots, estimator, coefficients)
        if index < 0:
            raise not_finite(rows.x, rows.z)
        return one_hot(len(rows.slots), index)

    @property
    def radius(self) -> float:
        """gamma as it is now (for the disjoint reduction: of an arm that has not learned)."""
        return float(decisions.radius(self._coefficients, 0 if self._by_arm else self._estimator.rounds))

    def _plain(self, name: str, value: Any) -> Any:
        if name == "exploration":
            return confidence.to_plain(value)
        if name == "ridge":  # not as it is now: a ridge that grows with the arms must go on growing
            return self._ridge_given
        return value

    @classmethod
    def _from_config(cls, config: dict[str, Any]) -> Self:
        return cls(**{**config, "exploration": confidence.from_plain(config["exploration"])})


class HyLinUCB(UCBPolicy):
    """The paper's algorithm (section 3.2): hybrid estimator, exploration radius in d1 + d2.

    d1, d2: numbers of shared and of arm-specific features. noise: standard deviation of the reward around its mean (1.0
    if left out), the short form of exploration=SelfNormalised(noise=..). exploration: how much to explore;
    SelfNormalised also takes the norm bounds that scale it. ridge: lambda, 1.0 or what the coefficient prescribes if
    left out; a value given counts before that. seed: of the random state (this rule draws nothing).

    >>> import numpy as np
    >>> policy = HyLinUCB(d1=2, d2=1, noise=0.1, seed=0)
    >>> x, z = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[1.0], [0.5]])
    >>> choice = policy.choose(x, z, arms=["sports", "politics"])
    >>> choice.arm, choice.index, choice.propensity
    ('sports', 0, 1.0)
    >>> policy.learn(choice.arm, x[choice.index], z[choice.index], reward=1.0)
    """

    reduction = "hybrid"


class LinUCB(UCBPolicy):
    """The reduction to the shared setting (section 3.1): same estimator, radius in d1 + d2 K. d2 = 0: plain LinUCB."""

    reduction = "shared"


class _ConstantPolicy(UCBPolicy):
    """Same estimator and rule, gamma fixed by hand."""

    reduction = "hybrid"

    def __init__(self, *, d1: int, d2: int, alpha: float, ridge: float = 1.0, seed: int | None = None) -> None:
        super().__init__(d1=d1, d2=d2, exploration=Constant(alpha=alpha), ridge=ridge, seed=seed)
        self.alpha = float(alpha)

    @classmethod
    def _from_config(cls, config: dict[str, Any]) -> Self:
        return cls(**config)


class LiHybrid(_ConstantPolicy):
    """Hybrid LinUCB of Li et al. 2010 (Algorithm 2): ridge 1 and a constant alpha tuned by hand.

    Its names are the other way round: Li et al. write z, beta for the shared part and x, theta for an arm's own.
    """

    def __init__(self, *, d1: int, d2: int, alpha: float = 1.0, ridge: float = 1.0, seed: int | None = None) -> None:
        super().__init__(d1=d1, d2=d2, alpha=alpha, ridge=ridge, seed=seed)


class Greedy(_ConstantPolicy):
    """The highest mean, no exploration; the first candidate among equals."""

    def __init__(self, *, d1: int, d2: int, ridge: float = 1.0, seed: int | None = None) -> None:
        super().__init__(d1=d1, d2=d2, alpha=0.0, ridge=ridge, seed=seed)
