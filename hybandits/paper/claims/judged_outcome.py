"""The results of one experiment with the confidence they are judged at, and what several claims ask of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybandits.experiments.record import environment_seeds
from hybandits.experiments.results import Design, Outcome
from hybandits.foundation.checks import FloatArray
from hybandits.paper import theorems
from hybandits.paper.claims.wording import join_names, number, percent
from hybandits.paper.settings import DELTA, FRESH_NAMES, RELEASED_SEED
from hybandits.statistics import Interval, exponents


class JudgedOutcome:
    """One experiment's results, and the confidence they are judged at."""

    def __init__(self, outcome: Outcome, confidence: float) -> None:
        self.outcome = outcome
        self.confidence = confidence
        self.experiment = outcome.experiment
        self.protocol: str = outcome.experiment.protocol
        self.horizon = outcome.experiment.horizon
        self._designs: dict[tuple[str, int], Design | None] = {}

    def missing(self, policies: Sequence[str]) -> str:
        """A sentence that names the policies that were not run, empty if they all were."""
        names = [name for name in policies if name not in self.outcome.policies]
        return f"No results for {join_names(names)}." if names else ""

    @property
    def fresh(self) -> bool:
        """Whether these are fresh environments, beside the paper's own."""
        return self.experiment.name in FRESH_NAMES.values()

    @property
    def basis(self) -> str:
        """What verdicts on this experiment rest on, in words."""
        e = self.experiment
        count = len(e.seeds)
        if e.log is not None:
            return "one log"
        if self.outcome.has_independent_trials:
            return f"{e.trials} trials of one draw of the parameters" if count == 1 else f"{count} environments"
        if self.fresh:
            return f"{count} fresh environments"
        # The environments of the text's protocol have the published seeds, but were never published.
        published = e.protocol == "released" and e.seeds == environment_seeds(RELEASED_SEED, count)
        return f"the {count} published environments" if published else f"{count} environments"

    # ------------------------------------------------------------------ parameters of a policy's run

    def settings(self, policy: str) -> dict[str, Any]:
        """The settings of a policy in the record."""
        return next(dict(entry.settings) for entry in self.experiment.policies if entry.name == policy)

    def exploration(self, policy: str) -> dict[str, Any]:
        """The exploration coefficient of a policy in the record, as plain values."""
        return dict(self.settings(policy).get("exploration") or {})

    def delta(self, policy: str) -> float:
        """The failure probability that a policy was run with."""
        return float(self.exploration(policy).get("delta", DELTA))

    def ridge(self, policy: theorems.Policy, arms: int) -> float:
        """lambda of the run: the record's, or the theorems' where the record leaves it to them."""
        ridge = self.settings(policy).get("ridge")
        return float(ridge) if ridge is not None else theorems.prescribed_ridge(policy, arms=arms)

    # ------------------------------------------------------------------ design matrix

    def design(self, policy: str, arms: int) -> Design | None:
        """Measures of a policy's design matrix; None if there are none."""
        if (policy, arms) not in self._designs:
            self._designs[policy, arms] = self.outcome.design(policy, arms)
        return self._designs[policy, arms]

    def rho(self, policy: str, arms: int) -> float:
        """The largest diversity min(rho_x, rho_z) of any run at T; NaN if it was not measured or is 0.

        The largest gives the smallest burn-in and the smallest bound, hence the hardest test.
        """
        design = self.design(policy, arms)
        if design is None:
            return math.nan
        diversity = np.fmin(design.rho_x[:, -1], design.rho_z[:, -1])
        largest = float(np.max(diversity[np.isfinite(diversity)], initial=-math.inf))
        return min(largest, 1.0) if largest > 1e-12 else math.nan

    def burn_in(self, policy: theorems.Policy, arms: int) -> float:
        """T_o, for DisLinUCB T'_o; infinite without diversity."""
        rho, e = self.rho(policy, arms), self.experiment
        if math.isnan(rho):
            return math.inf
        return theorems.burn_in(
            policy, d1=e.d1, d2=e.d2, arms=arms, horizon=e.horizon, rho=rho, delta=self.delta(policy)
        )

    # ------------------------------------------------------------------ growth

    def late(self, t: FloatArray, share: float = 0.5) -> NDArray[np.bool_]:
        """Which rounds are in the last half, or in the last `share`."""
        late: NDArray[np.bool_] = t >= (1 - share) * self.horizon
        return late

    def late_quarters(self, t: FloatArray) -> list[int] | None:
        """The probes at T/2, 3T/4 and T, or those nearest; None if there are not three."""
        late = np.flatnonzero(self.late(t))
        if len(late) < 3:
            return None
        middle = late[1:-1][np.argmin(np.abs(t[late[1:-1]] - 0.75 * self.horizon))]
        return [int(late[0]), int(middle), int(late[-1])]

    def regret_exponents(self, policy: str) -> FloatArray:
        """The exponent of every run's regret over the last half of the rounds."""
        t = self.outcome.points
        return exponents(t[None, :], self.outcome.regret(policy), self.late(t)[None, :])

    # ------------------------------------------------------------------ words

    def describe_interval(self, interval: Interval | None, units: NDArray[Any], *, of: str = "") -> str:
        """An interval in words, or why there is none; `of`: what it is an interval of."""
        if interval is None:
            single = f"one {'trial' if self.outcome.has_independent_trials else 'environment'} only"
            return f"no interval: {single if len(np.unique(units)) < 2 else 'too few runs with a usable value'}"
        lead = f"{of} {number(interval.mean)}".strip()
        return f"{lead}, {percent(self.confidence)} interval {number(interval.low)} to {number(interval.high)}"
