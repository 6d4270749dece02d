"""From sums over blocks to estimates with intervals. Nothing here reads the log."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist

import numpy as np

from hybandits.foundation import checks
from hybandits.foundation.checks import Doubles
from hybandits.offline.evaluation import intervals
from hybandits.offline.evaluation.parts import BlockLayout, Survey
from hybandits.offline.evaluation.refusals import (
    MODELLED,
    TOO_LITTLE_SPREAD,
    WEIGHTED,
    model_is_biased,
    without_bootstrap,
    without_sequence,
)
from hybandits.offline.evaluation.rejection import Rejection
from hybandits.offline.evaluation.results import Difference, Estimate, Evaluation, Running
from hybandits.offline.evaluation.sequences import sequence, sequence_of_difference
from hybandits.offline.evaluation.support import LogSupport, diagnose
from hybandits.offline.evaluation.terms import PR, P

INTERVALS = {
    "bootstrap": "bootstrap-t on resampled blocks of rounds",
    "bernstein": "a confidence sequence, which holds at all rounds at once, for bounded rewards of any distribution",
}

POINTS = 200
"""The largest number of points of a running estimate."""

FEWEST = 10
"""Blocks with a numerator other than 0 that the band of a running estimate needs."""


def checked(interval: str, level: float) -> float:
    """Check both, and return the level."""
    if interval not in INTERVALS:
        raise ValueError(f"interval must be one of {', '.join(INTERVALS)}, got {interval!r}")
    return checks.probability("level", level, "it is the share of intervals that hold the truth, e.g. 0.95")


@dataclass(frozen=True, kw_only=True)
class Gathered:
    """What a log says about policies, summed up by block: enough for estimates and intervals of any kind and level.

    Attributes
    ----------
    policies : list of LogSupport
        What the log says about each policy.
    estimators : list of str
        The requested estimators.
    layout : BlockLayout
        The blocks and folds.
    survey : Survey
        What the log is like.
    rejection : Rejection
        Which rounds are kept in replay.
    features : str
        The feature map of the reward model behind dm and dr.
    clip : float or None
        The largest weight.
    reward_range : tuple of float or None
        The lowest and highest reward possible.
    """

    policies: list[LogSupport]
    estimators: list[str]
    layout: BlockLayout
    survey: Survey
    rejection: Rejection
    features: str
    clip: float | None
    reward_range: tuple[float, float] | None

    @cached_property
    def ratios(self) -> dict[tuple[str, str], tuple[Doubles, Doubles]]:
        """Numerators and denominators by block, for every policy and estimator that is not refused."""
        return {
            (policy.name, name): policy.ratio(name)
            for policy in self.policies
            for name in self.estimators
            if name not in policy.refusals
        }

    @cached_property
    def pairs(self) -> dict[tuple[str, str], tuple[int, int]]:
        """For every estimate that can be compared with the first policy's: the places of both in `ratios`."""
        at, first = list(self.ratios), self.policies[0].name
        return {
            (policy, name): (i, at.index((first, name)))
            for i, (policy, name) in enumerate(at)
            if policy != first and (first, name) in self.ratios
        }

    @cached_property
    def models(self) -> dict[str, tuple[int, int]]:
        """For every policy with estimates by dm and dr: the places of both in `ratios`."""
        at = {key: i for i, key in enumerate(self.ratios)}
        return {
            policy.name: (at[policy.name, "dm"], at[policy.name, "dr"])
            for policy in self.policies
            if not policy.logged and (policy.name, "dm") in at and (policy.name, "dr") in at
        }

    def resampled(self, *, seed: int | None = 0, resamples: int = intervals.RESAMPLES) -> intervals.Resampled:
        """Resample all ratios, the differences of `pairs` and those of `models` together."""
        upper, lower = (np.stack([ratio[i] for ratio in self.ratios.values()]) for i in (0, 1))
        pairs = [*self.pairs.values(), *self.models.values()]
        return intervals.resample(upper, lower, pairs=pairs, seed=seed, resamples=resamples)

    def evaluation(
        self,
        *,
        interval: str = "bootstrap",
        level: float = 0.95,
        seed: int | None = 0,
    ) -> Evaluation:
        """Estimates with intervals of one kind; for "bernstein", `gather` must have had a reward_range."""
        level = checked(interval, level)
        if interval == "bootstrap":
            estimates = _bootstrapped(self, level, self.resampled(seed=seed))
        else:
            estimates = _sequences(self, level)
        weighted = bool(set(self.estimators) & set(WEIGHTED))
        diagnostics = {
            one.name: diagnose(one, self.survey, self.layout, self.rejection, weighted=weighted)
            for one in self.policies
        }
        return Evaluation(
            rounds=self.layout.rounds, level=level, interval=interval, features=self.features, estimates=estimates,
            diagnostics=diagnostics,
        )  # fmt: skip

    @cached_property
    def matched(self) -> tuple[list[str], intervals.Resampled] | None:
        """The policies that ever match the log, and their mean reward in matched rounds, resampled; None if none."""
        some = [policy for policy in self.policies if policy.total(P) > 0]
        if not some:
            return None
        upper, lower = (np.stack([policy.blocks(column) for policy in some]) for column in (PR, P))
        return [policy.name for policy in some], intervals.resample(upper, lower)

    def unjudged(self, level: float) -> set[str]:
        """The policies whose matched rounds alone have no interval, so that nothing tells how wrong a model of them is.

        A policy that never matches rests on the model altogether, and is not among them.
        """
        if self.matched is None:
            return set()
        names, resampled = self.matched
        low = resampled.intervals(level).low
        return {name for name, bound in zip(names, low, strict=True) if not math.isfinite(bound)}


def _points(layout: BlockLayout, supported: Doubles) -> tuple[np.ndarray, np.ndarray]:
    """The blocks after which a running estimate is given, once it has support, and the rounds up to their ends."""
    ends = np.unique(np.linspace(0, layout.blocks - 1, min(POINTS, layout.blocks)).round().astype(int))
    ends = ends[np.cumsum(supported)[ends] > 0]
    return ends, np.minimum((ends + 1) * layout.size, layout.rounds)


def running(upper: Doubles, lower: Doubles, layout: BlockLayout, level: float, *, banded: bool = True) -> Running:
    """The ratio of the sums so far, with a band by the normal approximation that holds at each point by itself.

    The band is NaN where fewer than FEWEST blocks have a numerator other than 0, and everywhere unless `banded`.
    """
    ends, rounds = _points(layout, lower)
    whole = upper.sum() / lower.sum()
    e = upper - whole * lower  # centred, so that squares do not cancel
    weight = np.cumsum(lower)[ends]
    d = np.cumsum(e)[ends] / weight
    squares = [np.cumsum(part)[ends] for part in (e * e, e * lower, lower * lower)]
    error = np.sqrt(np.maximum(squares[0] - 2 * d * squares[1] + d * d * squares[2], 0.0)) / weight
    half = NormalDist().inv_cdf((1 + level) / 2) * error
    half[(np.cumsum(upper != 0)[ends] < FEWEST) | (not banded)] = np.nan
    value = whole + d
    return Running(rounds=rounds, weight=weight, value=value, low=value - half, high=value + half)


def _bootstrapped(gathered: Gathered, level: float, resampled: intervals.Resampled) -> list[Estimate]:
    policies, names, first = gathered.policies, gathered.estimators, gathered.policies[0]
    bounds, value = resampled.intervals(level), resampled.value
    places = {key: i for i, key in enumerate(gathered.ratios)}
    gaps = {key: i for i, key in enumerate(gathered.pairs)}
    model_gaps = {name: len(gaps) + i for i, name in enumerate(gathered.models)}
    unjudged = gathered.unjudged(level) if set(MODELLED) & set(names) else set()

    def reason(policy: LogSupport, name: str) -> str | None:
        return without_bootstrap(policy, name, unjudged=policy.name in unjudged)

    estimates = []
    for policy in policies:
        for name in names:
            if name in policy.refusals:
                estimates.append(Estimate(policy=policy.name, estimator=name, refusal=policy.refusals[name]))
                continue
            key = policy.name, name
            i = places[key]
            low, high = _number(bounds.low[i]), _number(bounds.high[i])
            refusal = reason(policy, name)
            if refusal is None and (low is None or high is None):
                refusal = TOO_LITTLE_SPREAD
            if refusal is not None:
                low = high = None
            difference = None
            if key in gaps:
                gap = gaps[key]
                ends = _number(bounds.difference_low[gap]), _number(bounds.difference_high[gap])
                theirs = bounds.low[places[first.name, name]]
                if refusal is not None or not math.isfinite(theirs) or reason(first, name) is not None:
                    ends = None, None  # where one side's spread is unknown, so is the difference's
                difference = Difference(to=first.name, value=float(value[len(places) + gap]), low=ends[0], high=ends[1])
            notes = list(policy.notes.get(name, ()))
            if name == "dm" and policy.name in model_gaps and refusal is None and reason(policy, "dr") is None:
                gap = model_gaps[policy.name]
                ends = _number(bounds.difference_low[gap]), _number(bounds.difference_high[gap])
                robust = places[policy.name, "dr"]
                width = float(bounds.high[robust] - bounds.low[robust])
                notes += model_is_biased(float(value[len(places) + gap]), *ends, width, level, gathered.features)
            estimates.append(
                Estimate(
                    policy=policy.name, estimator=name, value=float(value[i]), low=low, high=high, refusal=refusal,
                    notes=tuple(notes), difference=difference,
                    # The model of dm has seen all rounds: its error does not shrink along the way.
                    running=running(
                        *gathered.ratios[key], gathered.layout, level, banded=low is not None and name != "dm"
                    ),
                )
            )  # fmt: skip
    return estimates


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _sequences(gathered: Gathered, level: float) -> list[Estimate]:
    policies, names, layout, bounds = gathered.policies, gathered.estimators, gathered.layout, gathered.reward_range
    if bounds is None:
        raise ValueError("interval='bernstein' needs the range of the rewards: give reward_range=(lowest, highest)")
    largest = min(math.inf if gathered.clip is None else gathered.clip, 1 / gathered.survey.smallest)
    estimates = []
    first = policies[0]
    for policy in policies:
        for name in names:
            if name in policy.refusals:
                estimates.append(Estimate(policy=policy.name, estimator=name, refusal=policy.refusals[name]))
                continue
            upper, lower = policy.ratio(name)
            value = float(upper.sum() / lower.sum())
            refusal = without_sequence(policy, name)
            notes = tuple(policy.notes.get(name, ()))
            if refusal:
                estimates.append(
                    Estimate(policy=policy.name, estimator=name, value=value, refusal=refusal, notes=notes)
                )
                continue
            ends, _ = _points(layout, lower)
            band = sequence(policy, name, bounds, largest, level, ends)
            difference = None
            if policy is not first and name not in first.refusals and not without_sequence(first, name):
                theirs = first.ratio(name)
                gap = sequence_of_difference(policy, first, name, bounds, largest, level, ends[-1:])
                difference = Difference(
                    to=first.name, value=value - float(theirs[0].sum() / theirs[1].sum()), low=float(gap.low[-1]),
                    high=float(gap.high[-1]),
                )  # fmt: skip
            estimates.append(
                Estimate(
                    policy=policy.name, estimator=name, value=value, low=float(band.low[-1]), high=float(band.high[-1]),
                    notes=notes, difference=difference,
                    running=replace(running(upper, lower, layout, level), low=band.low, high=band.high),
                )
            )  # fmt: skip
    return estimates
