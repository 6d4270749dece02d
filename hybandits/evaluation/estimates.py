"""From sums over blocks to estimates with intervals. Nothing here reads the log."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist
from typing import Any

import numpy as np

from hybandits import statistics as intervals
from hybandits.evaluation.parts import BlockLayout, Survey
from hybandits.evaluation.refusals import (
    MODELLED,
    TOO_LITTLE_SPREAD,
    WEIGHTED,
    model_is_biased,
    without_bootstrap,
    without_sequence,
)
from hybandits.evaluation.results import Difference, Estimate, Evaluation, Running
from hybandits.evaluation.sequences import sequence, sequence_of_difference
from hybandits.evaluation.support import LogSupport, diagnose
from hybandits.evaluation.terms import PR, P
from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray

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
    features: str
    clip: float | None
    reward_range: tuple[float, float] | None

    @property
    def rewards(self) -> tuple[float, float]:
        """The lowest and the highest reward: those that are possible, if they are known, or those of the log."""
        return self.reward_range or (self.survey.lowest, self.survey.highest)

    @cached_property
    def ratios(self) -> dict[tuple[str, str], tuple[FloatArray, FloatArray]]:
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
            estimates = _sequences(self, level, seed)
        weighted = bool(set(self.estimators) & set(WEIGHTED))
        diagnostics = {one.name: diagnose(one, self.survey, self.layout, weighted=weighted) for one in self.policies}
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


def _points(layout: BlockLayout, supported: FloatArray) -> tuple[np.ndarray, np.ndarray]:
    """The blocks after which a running estimate is given, once it has support, and the rounds up to their ends."""
    ends = np.unique(np.linspace(0, layout.blocks - 1, min(POINTS, layout.blocks)).round().astype(int))
    ends = ends[np.cumsum(supported)[ends] > 0]
    return ends, np.minimum((ends + 1) * layout.size, layout.rounds)


def running(upper: FloatArray, lower: FloatArray, layout: BlockLayout, level: float, *, banded: bool = True) -> Running:
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


def _with_bias(policy: LogSupport, name: str, rewards: tuple[float, float], low: Any, high: Any) -> tuple[Any, Any]:
    """Bounds of the mean reward of the rounds kept, made bounds of the policy's value; see `rejection`."""
    if name != "replay" or policy.left_out is None:
        return low, high
    s = policy.left_out
    return (1 - s) * low + s * rewards[0], (1 - s) * high + s * rewards[1]


def _bias(name: str, rewards: tuple[float, float], *policies: LogSupport) -> float:
    """How far off the difference of two policies may be because choices were left out."""
    if name != "replay":
        return 0.0
    return sum(policy.left_out or 0.0 for policy in policies) * (rewards[1] - rewards[0])


def _model_notes(
    gathered: Gathered, level: float, bounds: intervals.Intervals, value: FloatArray, unjudged: set[str]
) -> dict[str, list[str]]:
    """For every policy with estimates by dm and dr, what to say of their difference."""
    notes = {}
    for i, (name, (model, robust)) in enumerate(gathered.models.items(), start=len(gathered.pairs)):
        policy = next(one for one in gathered.policies if one.name == name)
        if any(without_bootstrap(policy, by, unjudged=name in unjudged) for by in MODELLED):
            continue
        if math.isfinite(bounds.low[model]) and math.isfinite(bounds.high[model]):
            ends = _number(bounds.difference_low[i]), _number(bounds.difference_high[i])
            width = float(bounds.high[robust] - bounds.low[robust])
            gap = float(value[len(gathered.ratios) + i])
            notes[name] = model_is_biased(gap, *ends, width, level, gathered.features)
    return notes


def _bootstrapped(gathered: Gathered, level: float, resampled: intervals.Resampled) -> list[Estimate]:
    policies, names, first = gathered.policies, gathered.estimators, gathered.policies[0]
    bounds, value = resampled.intervals(level), resampled.value
    places = {key: i for i, key in enumerate(gathered.ratios)}
    gaps = {key: i for i, key in enumerate(gathered.pairs)}
    unjudged = gathered.unjudged(level) if set(MODELLED) & set(names) else set()
    of_models = _model_notes(gathered, level, bounds, value, unjudged)

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
            low, high = map(_number, _with_bias(policy, name, gathered.rewards, bounds.low[i], bounds.high[i]))
            refusal = reason(policy, name)
            if refusal is None and (low is None or high is None):
                refusal = TOO_LITTLE_SPREAD
            if refusal is not None:
                low = high = None
            difference = None
            if key in gaps:
                gap = gaps[key]
                bias = _bias(name, gathered.rewards, policy, first)
                ends = _number(bounds.difference_low[gap] - bias), _number(bounds.difference_high[gap] + bias)
                theirs = bounds.low[places[first.name, name]]
                if refusal is not None or not math.isfinite(theirs) or reason(first, name) is not None:
                    ends = None, None  # where one side's spread is unknown, so is the difference's
                difference = Difference(to=first.name, value=float(value[len(places) + gap]), low=ends[0], high=ends[1])
            notes = [*policy.notes.get(name, ()), *(of_models.get(policy.name, ()) if name == "dm" else ())]
            # The model of dm has seen all rounds: its error does not shrink along the way.
            along = running(*gathered.ratios[key], gathered.layout, level, banded=low is not None and name != "dm")
            band = _with_bias(policy, name, gathered.rewards, along.low, along.high)
            estimates.append(
                Estimate(
                    policy=policy.name, estimator=name, value=float(value[i]), low=low, high=high, refusal=refusal,
                    notes=tuple(notes), difference=difference, running=replace(along, low=band[0], high=band[1]),
                )
            )  # fmt: skip
    return estimates


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _sequences(gathered: Gathered, level: float, seed: int | None) -> list[Estimate]:
    policies, names, layout, bounds = gathered.policies, gathered.estimators, gathered.layout, gathered.reward_range
    if bounds is None:
        raise ValueError("interval='bernstein' needs the range of the rewards: give reward_range=(lowest, highest)")
    largest = min(math.inf if gathered.clip is None else gathered.clip, 1 / gathered.survey.smallest)
    of_models: dict[str, list[str]] = {}
    if gathered.models:
        resampled = gathered.resampled(seed=seed)
        unjudged = gathered.unjudged(level)
        of_models = _model_notes(gathered, level, resampled.intervals(level), resampled.value, unjudged)
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
            notes = (*policy.notes.get(name, ()), *(of_models.get(policy.name, ()) if name == "dm" else ()))
            if refusal:
                estimates.append(
                    Estimate(policy=policy.name, estimator=name, value=value, refusal=refusal, notes=notes)
                )
                continue
            ends, _ = _points(layout, lower)
            band = sequence(policy, name, bounds, largest, level, ends)
            low, high = _with_bias(policy, name, bounds, band.low, band.high)
            bias = _bias(name, bounds, policy, first)
            difference = None
            if policy is not first and name not in first.refusals and not without_sequence(first, name):
                theirs = first.ratio(name)
                gap = sequence_of_difference(policy, first, name, bounds, largest, level, ends[-1:])
                difference = Difference(
                    to=first.name, value=value - float(theirs[0].sum() / theirs[1].sum()),
                    low=float(gap.low[-1]) - bias, high=float(gap.high[-1]) + bias,
                )  # fmt: skip
            estimates.append(
                Estimate(
                    policy=policy.name, estimator=name, value=value, low=float(low[-1]), high=float(high[-1]),
                    notes=notes, difference=difference,
                    running=replace(running(upper, lower, layout, level), low=low, high=high),
                )
            )  # fmt: skip
    return estimates
