"""The result of an evaluation: estimates, differences and diagnostics, all fit for JSON."""

from dataclasses import asdict, dataclass
from typing import Any

from hybandits.foundation import checks


@dataclass(frozen=True)
class Difference:
    """The value of a policy minus that of the first policy (`to`), by the same estimator on the same rounds."""

    to: str
    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Estimate:
    """The mean reward per round of one policy, by one estimator.

    Attributes
    ----------
    policy, estimator : str
        The name of the policy, and of the estimator.
    value : float or None
        The estimated mean reward per round; None if the estimate was refused.
    low, high : float or None
        The interval; None if there is none.
    refusal : str or None
        Why there is no value, or, if there is one, why there is no interval.
    notes : tuple of str
        What to know about this estimate: why it is a rough number.
    difference : Difference or None
        To the first policy; None for the first policy itself.
    """

    policy: str
    estimator: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    refusal: str | None = None
    notes: tuple[str, ...] = ()
    difference: Difference | None = None


@dataclass(frozen=True, kw_only=True)
class Diagnostics:
    """Diagnostics of how well the log supports the estimates of one policy.

    Attributes
    ----------
    rounds : int
        Rounds of the log that were used.
    matched : float
        The share of rounds in which the policy shows what was shown, in expectation.
    kept, keep : float or None
        Where rounds were rejected: how many a policy that learns has learned, and c of `rejection`.
    mean_weight, largest_weight, smallest_propensity : float or None
        Of the inverse propensity weights, whose mean should be 1 up to chance; None where nothing is weighted.
    effective : float or None
        (sum w)^2 / sum w^2: how many rounds of equal weight would tell as much. If replay is the only estimator and
        rounds were rejected, the same of k (see `Terms`).
    warnings : tuple of str
        What to know before relying on the estimates.
    """

    rounds: int
    matched: float
    kept: float | None = None
    keep: float | None = None
    mean_weight: float | None = None
    largest_weight: float | None = None
    effective: float | None = None
    smallest_propensity: float | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Estimates of all policies by all estimators.

    Attributes
    ----------
    rounds : int
        Rounds of the log that were used.
    level : float
        The confidence level of the intervals.
    interval : str
        Their kind, "bootstrap" or "bernstein".
    features : str
        The feature map of the reward model behind dm and dr.
    estimates : list of Estimate
        One per policy and estimator, in the order in which they were given.
    diagnostics : dict of str to Diagnostics
        By policy, how well the log supports its estimates.
    """

    rounds: int
    level: float
    interval: str
    features: str
    estimates: list[Estimate]
    diagnostics: dict[str, Diagnostics]

    def of(self, policy: str, estimator: str) -> Estimate:
        """The estimate of one policy by one estimator."""
        estimates = {(each.policy, each.estimator): each for each in self.estimates}
        if (policy, estimator) not in estimates:
            names = [f"{name} by {by}" for name, by in estimates]
            raise KeyError(f"no estimate of {policy!r} by {estimator!r}: there are {checks.short(names)}")
        return estimates[policy, estimator]

    def plain(self) -> dict[str, Any]:
        """As values that JSON can hold."""
        return asdict(self)
