"""Regret at T and at the read-outs, beside the published numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybandits import paper, statistics
from hybandits.experiments.record import environment_seeds
from hybandits.experiments.results import Outcome, Results
from hybandits.foundation.checks import FloatArray
from hybandits.paper.claims import CONFIDENCE
from hybandits.paper.published_numbers import agrees, published
from hybandits.report.figures.outcomes import BEST, is_synthetic


@dataclass(frozen=True, kw_only=True)
class Row:
    """Regret of one policy in one case after t rounds, over all runs, and what was published."""

    experiment: str
    protocol: str
    arms: int
    policy: str
    t: int
    runs: int
    environments: int
    mean: float
    sd: float | None
    """Standard deviation of the environments' means; None with one environment."""
    low: float | None
    high: float | None
    """Interval of the mean at the level `CONFIDENCE`, not below 0; None where there is nothing to tell it from."""
    lowest: float
    highest: float
    published: float | None = None
    ratio: float | None = None
    """Ours over published."""
    within: bool | None = None
    """Whether the two agree; None where they are not of the same environments."""


class _Series(NamedTuple):
    """All runs of one policy in one case."""

    outcome: Outcome
    policy: str
    arms: int
    regret: FloatArray
    environments: NDArray[Any]
    units: NDArray[Any]
    """The independent unit of every run."""

    def means(self) -> FloatArray:
        """The mean curve of every environment, (environments, points)."""
        return np.array([self.regret[self.environments == e].mean(axis=0) for e in np.unique(self.environments)])

    def row(self, t: int) -> Row:
        e = self.outcome.experiment
        values = self.regret[:, e.points.index(t)]
        means = self.means()[:, e.points.index(t)]
        interval = regret_interval(values, self.units)
        mean = float(values.mean())
        absolute = e.protocol != "own" and e.log is None  # of a log, regret beyond HyLinUCB's is published
        known = published(e.name, self.policy, self.arms).get(t) if absolute else None
        return Row(
            experiment=e.name,
            protocol=e.protocol,
            arms=self.arms,
            policy=self.policy,
            t=t,
            runs=len(values),
            environments=len(means),
            mean=mean,
            sd=float(means.std(ddof=1)) if len(means) > 1 else None,
            low=interval.low if interval else None,
            high=interval.high if interval else None,
            lowest=float(values.min()),
            highest=float(values.max()),
            published=known,
            ratio=None if known is None else mean / known,
            within=None if known is None or not _comparable(self.outcome) else agrees(e.name, self.policy, mean, known),
        )


def regret_interval(regrets: FloatArray, units: NDArray[Any]) -> statistics.Interval | None:
    """Student's interval of a mean regret, cut off at 0: no regret is negative, so neither is their mean.

    Differences of regrets may be negative, and their intervals are not cut off.
    """
    interval = statistics.interval(regrets, units, CONFIDENCE)
    if interval is None or regrets.min() < 0:
        return interval
    return interval._replace(low=max(0.0, interval.low))


def _comparable(outcome: Outcome) -> bool:
    """Whether the published figure is of the same environments."""
    e = outcome.experiment
    known = e.protocol == "released" and e.log is None
    return known and e.seeds == environment_seeds(paper.RELEASED_SEED, len(e.seeds))


def in_order(results: Results) -> list[Outcome]:
    """All outcomes, protocol by protocol, in the paper's order, each setting followed by its fresh environments."""
    names = [name for setting in paper.SETTINGS for name in (setting, paper.FRESH_NAMES.get(setting)) if name]
    places = {(p, n): i for i, (p, n) in enumerate((p, n) for p in results.protocols for n in names)}
    ordered = sorted(results.outcomes.items(), key=lambda item: (places.get(item[0][::-1], len(places)), item[0]))
    return [outcome for protocol in results.protocols for (_, p), outcome in ordered if p == protocol]


def all_series(results: Results) -> Iterator[_Series]:
    """All runs of every policy in every case."""
    for outcome in in_order(results):
        for arms in outcome.arms:
            for policy in outcome.policies:
                yield _Series(
                    outcome,
                    policy,
                    arms,
                    regret=outcome.regret(policy, arms),
                    environments=outcome.environments(policy, arms),
                    units=outcome.independent_units(policy, arms),
                )


def regret_rows(results: Results) -> list[Row]:
    """Regret at T of every policy in every case."""
    return [series.row(series.outcome.experiment.horizon) for series in all_series(results)]


def read_out_rows(results: Results) -> list[Row]:
    """Regret at every published read-out of the same environments."""
    return [
        series.row(t)
        for series in all_series(results)
        if _comparable(series.outcome)
        if series.outcome.experiment.protocol != "own"
        for t in published(series.outcome.experiment.name, series.policy, series.arms)
        if t in series.outcome.experiment.points
    ]


@dataclass(frozen=True, kw_only=True)
class Excess:
    """Regret at T beyond HyLinUCB's in the same trial, of one policy on a click log."""

    experiment: str
    protocol: str
    policy: str
    t: int
    runs: int
    mean: float
    low: float | None
    high: float | None
    """Interval of the mean over trials at the level `CONFIDENCE`; None with one trial."""
    lowest: float
    highest: float
    published: float | None
    """Of the figure, which has another fit, positions as arms and a defect; None for a synthetic log."""


def on_logs(results: Results) -> list[Outcome]:
    """What was run on a click log."""
    return [outcome for outcome in in_order(results) if outcome.experiment.log is not None]


def in_worlds(results: Results) -> list[Outcome]:
    """What was run in synthetic worlds, not on a log."""
    return [outcome for outcome in in_order(results) if outcome.experiment.log is None]


def excess_rows(results: Results) -> list[Excess]:
    """What every other policy lost beyond HyLinUCB on click logs; none where that was not run."""
    rows = []
    for outcome in on_logs(results):
        e = outcome.experiment
        for policy in outcome.policies:
            if policy == BEST or BEST not in outcome.policies:
                continue
            values = outcome.final(policy) - outcome.final(BEST)
            interval = statistics.interval(values, np.arange(len(values)), CONFIDENCE)
            real = e.protocol == "released" and not is_synthetic(outcome)
            rows.append(
                Excess(
                    experiment=e.name, protocol=e.protocol, policy=policy, t=e.horizon, runs=len(values),
                    mean=float(values.mean()), low=interval.low if interval else None,
                    high=interval.high if interval else None, lowest=float(values.min()), highest=float(values.max()),
                    published=published(e.name, policy).get(e.horizon) if real else None,
                )
            )  # fmt: skip
    return rows
