"""What an evaluation hands out: estimates, differences, running estimates and diagnostics, all of them JSON-able."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hybandits.foundation import checks
from hybandits.foundation.checks import Doubles


@dataclass(frozen=True, kw_only=True)
class Running:
    """An estimate after each of some rounds: weight is the denominator so far (rounds, matched rounds, or weights).

    low and high are a band; NaN where there is none.
    """

    rounds: np.ndarray
    weight: Doubles
    value: Doubles
    low: Doubles
    high: Doubles

    def plain(self) -> dict[str, Any]:
        """As JSON-able values."""
        parts = {name: np.asarray(part).tolist() for name, part in vars(self).items()}
        return {name: [None if value != value else value for value in part] for name, part in parts.items()}


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A policy's value less that of the first policy, by the same estimator."""

    to: str
    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Value and interval. If value is None, `refusal` says why there is none; if only low and high are, why those."""

    policy: str
    estimator: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    refusal: str | None = None
    difference: Difference | None = None
    running: Running | None = None

    def plain(self) -> dict[str, Any]:
        """As JSON-able values."""
        return {
            **vars(self), "difference": None if self.difference is None else vars(self.difference),
            "running": None if self.running is None else self.running.plain(),
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Diagnostics:
    """How well the log supports a policy. The last four are None where nothing is weighted.

    matched: share of rounds in which the policy shows what was shown, in expectation. weight: its mean is 1 but for
    chance. effective: (sum w)^2 / sum w^2, the rounds without weights that would tell as much.
    """

    rounds: int
    matched: float
    mean_weight: float | None = None
    largest_weight: float | None = None
    effective: float | None = None
    smallest_propensity: float | None = None
    warnings: tuple[str, ...] = ()

    def plain(self) -> dict[str, Any]:
        """As JSON-able values."""
        return {**vars(self), "warnings": list(self.warnings)}


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Estimates of all policies by all estimators, in the order asked for, and what supports them."""

    rounds: int
    level: float
    interval: str
    estimates: list[Estimate]
    diagnostics: dict[str, Diagnostics]

    def of(self, policy: str, estimator: str) -> Estimate:
        """One of them."""
        for estimate in self.estimates:
            if (estimate.policy, estimate.estimator) == (policy, estimator):
                return estimate
        raise KeyError(f"no estimate of {policy!r} by {estimator!r}: there are {checks.short(list(self.diagnostics))}")

    def plain(self) -> dict[str, Any]:
        """As JSON-able values."""
        return {
            "rounds": self.rounds, "level": self.level, "interval": self.interval,
            "estimates": [estimate.plain() for estimate in self.estimates],
            "diagnostics": {name: made.plain() for name, made in self.diagnostics.items()},
        }  # fmt: skip
