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
    """The mean reward per round of one policy, by one estimator, with its interval from `low` to `high`.

    `refusal` says why there is no value, or no interval, and `notes` why it is a rough number. `difference` is to the
    first policy; None for the first policy itself.
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

    - `rounds`: rounds of the log that were used.
    - `matched`: the share of rounds in which the policy shows what was shown, in expectation.
    - `kept`, `keep`: where rounds were rejected, how many a policy that learns has learned, and c of `rejection`.
    - `mean_weight`, `largest_weight`: of inverse propensity weights, whose mean should be 1 up to chance.
    - `effective`: (sum w)^2 / sum w^2, how many rounds of equal weight would tell as much. If replay is the only
      estimator and rounds were rejected, the same of k (see `Terms`).
    - `warnings`: to be read before the estimates are used.
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
    """Estimates of all policies by all estimators, in the order in which they were given, and diagnostics by policy.

    `level` and `interval` are the confidence level and the kind of the intervals, `features` is the map of the reward
    model behind dm and dr.
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
