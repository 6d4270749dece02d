"""Exploration coefficients: how much a policy explores, as a value that is passed to it.

They depend on how the policy reduces the hybrid problem:

    "shared"    one problem of dimension d1 + d2 K (LinUCB)
    "hybrid"    the same matrix, radius in d1 + d2 (HyLinUCB)
    "disjoint"  one problem of dimension d1 + d2 per arm (DisLinUCB), t counted per arm
"""

import math
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, NamedTuple, Self

from hybandits.foundation import checks

Reduction = Literal["shared", "hybrid", "disjoint"]


class Coefficients(NamedTuple):
    """The numbers of gamma(t) = base + scale sqrt(log_term + dimension log(1 + t slope)) (`decisions.radius`)."""

    base: float
    scale: float = 0.0
    log_term: float = 0.0
    dimension: float = 0.0
    slope: float = 0.0

    def times(self, factor: float) -> Self:
        """The numbers of factor gamma(t)."""
        return self._replace(base=factor * self.base, scale=factor * self.scale)


class Exploration(ABC):
    """An exploration coefficient; subclass it for one of your own."""

    @abstractmethod
    def coefficients(self, reduction: Reduction, d1: int, d2: int, arms: int, ridge: float) -> Coefficients:
        """Return gamma for a problem of this shape; `arms` is the number of arms met so far."""

    def ridge(self, reduction: Reduction, arms: int) -> float | None:
        """Return the ridge lambda that this coefficient prescribes, None if it prescribes none."""
        return None


def _bound(name: str, value: Any, why: str) -> float:
    number = checks.positive(name, value, why)
    if not 1e-50 <= number <= 1e50:
        raise ValueError(f"{name} must lie between 1e-50 and 1e50, got {value!r}: rescale the data")
    return number


def norm_bounds(name: str, value: Any) -> float | tuple[float, ...]:
    """Return the checked value: one bound, or a pair of bounds (shared, per arm)."""
    why = "it bounds a norm from above; give one number or a pair (shared, per arm)"
    if not isinstance(value, tuple | list):
        return _bound(name, value, why)
    if len(value) != 2:
        raise ValueError(f"{name} must be one number or a pair (shared, per arm), got {value!r}")
    return tuple(_bound(name, each, why) for each in value)


def _factor(value: Any) -> float:
    return _bound("factor", value, "gamma is multiplied by it; for no exploration at all use Constant(alpha=0)")


def bound_pair(bound: float | tuple[float, ...]) -> tuple[float, ...]:
    """Return S1 and S2 (or Lx and Lz): one bound stands for both."""
    return bound if isinstance(bound, tuple) else (bound, bound)


def _keep(coefficient: Any, **values: Any) -> None:
    """Replace the values of a frozen dataclass by the checked ones."""
    for name, value in values.items():
        object.__setattr__(coefficient, name, value)


@dataclass(frozen=True, kw_only=True)
class AsWritten(Exploration):
    """The coefficient of the paper's theorems (sections 3.1 and 3.2), which comes with a ridge of its own.

    It usually explores far more than `SelfNormalised`: use it to check the theorems, not in production.

    Parameters
    ----------
    horizon : int
        The number of rounds T that will be played.
    delta : float, default=0.01
        The probability with which the guarantee may fail.
    bound : float, default=1.0
        A bound S on the norms of theta and of every beta_i.
    arms : int, optional
        The number of arms K. By default arms are counted as they are met, and HyLinUCB's ridge is raised with their
        number, exactly as if it had been that large from the start.
    factor : float, default=1.0
        gamma is multiplied by it. Below 1 there is less exploration, and no guarantee.

    Notes
    -----
    | policy    | lambda | gamma                                             |
    |-----------|--------|---------------------------------------------------|
    | LinUCB    | 1      | S sqrt(K) + sqrt(2 (d1 + d2 K) log(T/delta))      |
    | DisLinUCB | 1      | 2 sqrt(S) + sqrt(2 (d1 + d2) log(K T/delta))      |
    | HyLinUCB  | K      | 2 (S sqrt(K) + sqrt(2 (d1 + d2) log(T/delta)))    |

    Examples
    --------
    >>> from hybandits import HyLinUCB
    >>> policy = HyLinUCB(d1=2, d2=1, exploration=AsWritten(horizon=1000, arms=10))
    >>> policy.ridge
    10.0
    """

    horizon: int
    delta: float = 0.01
    bound: float = 1.0
    arms: int | None = None
    factor: float = 1.0

    def __post_init__(self) -> None:
        why = "it is the number of rounds T that will be played"
        horizon = checks.real("horizon", checks.count("horizon", self.horizon, least=1, why=why))
        why = "it is the number of arms K; leave it out to count arms met"
        _keep(
            self,
            horizon=int(horizon),
            delta=checks.probability("delta", self.delta, "it is a failure probability, e.g. 0.01"),
            bound=_bound("bound", self.bound, "it bounds the norms of theta and every beta_i (S in the paper)"),
            arms=None if self.arms is None else checks.count("arms", self.arms, least=1, why=why),
            factor=_factor(self.factor),
        )

    def _arms(self, met: int) -> int:
        return max(self.arms if self.arms is not None else met, 1)

    def coefficients(self, reduction: Reduction, d1: int, d2: int, arms: int, ridge: float) -> Coefficients:
        k = self._arms(arms)
        if reduction == "shared":
            gamma = self.bound * math.sqrt(k) + math.sqrt(2 * (d1 + d2 * k) * math.log(self.horizon / self.delta))
        elif reduction == "disjoint":
            gamma = 2 * math.sqrt(self.bound) + math.sqrt(2 * (d1 + d2) * math.log(k * self.horizon / self.delta))
        else:
            gamma = 2 * (self.bound * math.sqrt(k) + math.sqrt(2 * (d1 + d2) * math.log(self.horizon / self.delta)))
        return Coefficients(gamma).times(self.factor)

    def ridge(self, reduction: Reduction, arms: int) -> float:
        return float(self._arms(arms)) if reduction == "hybrid" else 1.0


@dataclass(frozen=True, kw_only=True)
class SelfNormalised(Exploration):
    """The default coefficient: it grows slowly over time and is scaled by the noise of the rewards.

    Parameters
    ----------
    noise : float, default=1.0
        sigma, the standard deviation of a reward around its mean. A larger value explores more.
    bound : float or pair of float, default=1.0
        S, a bound on the norms of theta and of every beta_i, or one bound for theta and one for the beta_i.
    feature_bound : float or pair of float, default=1.0
        L, a bound on the norms of x and of z, or one bound for x and one for z.
    delta : float, default=0.01
        The probability with which the true mean may lie above the upper confidence bound.
    factor : float, default=1.0
        gamma is multiplied by it. Below 1 there is less exploration, and no guarantee.

    Notes
    -----
    This is the self-normalised bound of Abbasi-Yadkori et al. (2011), which holds at all times at once:

    gamma(t) = S sqrt(lambda) + sigma sqrt(2 log(1/delta) + D log(1 + t L^2 / (lambda D))),    L^2 = Lx^2 + Lz^2

    | policy    | D         | S                    | t                 |
    |-----------|-----------|----------------------|-------------------|
    | LinUCB    | d1 + d2 K | sqrt(S1^2 + K S2^2)  | rows learned      |
    | HyLinUCB  | d1 + d2   | sqrt(S1^2 + S2^2)    | rows learned      |
    | DisLinUCB | d1 + d2   | sqrt(S1^2 + S2^2)    | that arm's pulls  |

    Examples
    --------
    >>> from hybandits import HyLinUCB
    >>> policy = HyLinUCB(d1=2, d2=1, exploration=SelfNormalised(noise=0.1, bound=(1.0, 0.5)))
    >>> round(policy.radius, 3)
    1.422
    """

    noise: float = 1.0
    bound: float | tuple[float, ...] = 1.0
    feature_bound: float | tuple[float, ...] = 1.0
    delta: float = 0.01
    factor: float = 1.0

    def __post_init__(self) -> None:
        _keep(
            self,
            noise=_bound("noise", self.noise, "it is the standard deviation of the reward's noise"),
            bound=norm_bounds("bound", self.bound),
            feature_bound=norm_bounds("feature_bound", self.feature_bound),
            delta=checks.probability("delta", self.delta, "it is a failure probability, e.g. 0.01"),
            factor=_factor(self.factor),
        )

    def coefficients(self, reduction: Reduction, d1: int, d2: int, arms: int, ridge: float) -> Coefficients:
        s1, s2 = bound_pair(self.bound)
        lx, lz = bound_pair(self.feature_bound)
        if d1 == 0:
            s1 = lx = 0.0
        if d2 == 0:
            s2 = lz = 0.0
        k = max(arms, 1) if reduction == "shared" else 1
        dimension = d1 + d2 * k
        return Coefficients(
            base=math.sqrt(s1**2 + k * s2**2) * math.sqrt(ridge),
            scale=float(self.noise),
            log_term=-2 * math.log(self.delta),
            dimension=float(dimension),
            slope=(lx**2 + lz**2) / (ridge * dimension),
        ).times(self.factor)


@dataclass(frozen=True, kw_only=True)
class Constant(Exploration):
    """A coefficient that never changes, tuned by hand (Li et al. 2010).

    Parameters
    ----------
    alpha : float
        The number of widths above the mean that are given to every candidate. 0 means no exploration.

    Examples
    --------
    >>> from hybandits import HyLinUCB
    >>> HyLinUCB(d1=2, d2=1, exploration=Constant(alpha=0.5)).radius
    0.5
    """

    alpha: float

    def __post_init__(self) -> None:
        _keep(self, alpha=checks.non_negative("alpha", self.alpha, "it multiplies the width; 0 is greedy"))

    def coefficients(self, reduction: Reduction, d1: int, d2: int, arms: int, ridge: float) -> Coefficients:
        return Coefficients(float(self.alpha))


_KINDS: dict[str, type[AsWritten] | type[SelfNormalised] | type[Constant]] = {
    kind.__name__: kind for kind in (AsWritten, SelfNormalised, Constant)
}


def to_plain(exploration: Exploration) -> dict[str, Any]:
    """Return the coefficient as values that JSON can hold; a factor of 1 is left out."""
    kind = type(exploration).__name__
    if _KINDS.get(kind) is not type(exploration):
        raise TypeError(
            f"an exploration coefficient of type {kind} cannot be saved: use AsWritten, SelfNormalised or Constant"
        )
    plain = asdict(exploration)  # type: ignore[call-overload]
    if plain.get("factor") == 1.0:
        del plain["factor"]
    return {"kind": kind, **plain}


def from_plain(plain: dict[str, Any]) -> Exploration:
    """Return the coefficient that `to_plain` turned into this."""
    kind = _KINDS.get(str(plain.get("kind")))
    if kind is None:
        kinds = ", ".join(sorted(_KINDS))
        raise ValueError(f"exploration needs a kind, one of {kinds}; got {plain.get('kind')!r}")
    names = [field.name for field in fields(kind)]
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in plain.items() if k != "kind"}
    unknown = sorted(set(values) - set(names))
    if unknown:
        raise ValueError(f"{kind.__name__} has no setting {unknown[0]!r}: it has {', '.join(names)}")
    return kind(**values)
