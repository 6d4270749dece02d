"""Sums over blocks to estimates with intervals: nothing here looks at the log."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from hybandits.foundation import checks
from hybandits.foundation.checks import Doubles
from hybandits.offline.evaluation import intervals
from hybandits.offline.evaluation.evidence import LogEvidence, diagnosed
from hybandits.offline.evaluation.parts import BlockLayout, Survey
from hybandits.offline.evaluation.results import Difference, Estimate, Evaluation, Running
from hybandits.offline.evaluation.sequences import no_sequence, sequence, sequence_of_difference
from hybandits.offline.evaluation.terms import PR, P

INTERVALS = {
    "bootstrap": "resampled blocks of rounds, for the log as it is",
    "bernstein": "a confidence sequence: holds at all rounds at once, for bounded rewards, whatever their distribution",
}

POINTS = 200
"""Points of a running estimate."""

FEWEST = 10
"""Blocks that a band of a running estimate takes at least."""


UNJUDGED = (
    "no interval: of the rounds in which it would have shown what was shown, too few have a reward that differs from "
    "the others' to tell how wrong the model is; give more"
)


def checked(interval: str, level: float) -> float:
    """The level; ValueError unless both can be used."""
    if interval not in INTERVALS:
        raise ValueError(f"interval must be one of {', '.join(INTERVALS)}, got {interval!r}")
    return checks.probability("level", level, "it is the share of intervals that hold the truth, e.g. 0.95")


@dataclass(frozen=True, kw_only=True)
class Gathered:
    """What a log says of policies, summed up by blocks: estimates and intervals are made of it without another look."""

    policies: list[LogEvidence]
    estimators: list[str]
    layout: BlockLayout
    survey: Survey
    clip: float | None
    reward_range: tuple[float, float] | None

    @cached_property
    def ratios(self) -> dict[tuple[str, str], tuple[Doubles, Doubles]]:
        """Numerators and denominators by blocks of all that is not refused, by policy and estimator."""
        return {
            (policy.name, name): policy.ratio(name)
            for policy in self.policies
            for name in self.estimators
            if name not in policy.why
        }

    @cached_property
    def pairs(self) -> dict[tuple[str, str], tuple[int, int]]:
        """Of those that can be compared with the first policy: the places of both in `ratios`."""
        at, first = list(self.ratios), self.policies[0].name
        return {
            (policy, name): (i, at.index((first, name)))
            for i, (policy, name) in enumerate(at)
            if policy != first and (first, name) in self.ratios
        }

    def resampled(self, *, seed: int | None = 0, resamples: int = intervals.RESAMPLES) -> intervals.Resampled:
        """All ratios and differences on the same resamples."""
        upper, lower = (np.stack([ratio[i] for ratio in self.ratios.values()]) for i in (0, 1))
        return intervals.resample(upper, lower, pairs=list(self.pairs.values()), seed=seed, resamples=resamples)

    def evaluation(
        self,
        *,
        interval: str = "bootstrap",
        level: float = 0.95,
        seed: int | None = 0,
        method: str = "t",
        resampled: intervals.Resampled | None = None,
    ) -> Evaluation:
        """Estimates with intervals of one kind; "bernstein" needs a reward_range given to `gather`.

        For the bootstrap: its method, and `resampled`, if it has been made already.
        """
        level = checked(interval, level)
        if interval == "bootstrap":
            estimates = _bootstrapped(self, level, method, resampled or self.resampled(seed=seed))
        else:
            estimates = _sequences(self, level)
        weighted = bool(set(self.estimators) & {"ips", "snips", "dr"})
        diagnostics = {one.name: diagnosed(one, self.survey, weighted, self.layout) for one in self.policies}
        return Evaluation(
            rounds=self.layout.rounds, level=level, interval=interval, estimates=estimates, diagnostics=diagnostics
        )

    @cached_property
    def matched(self) -> tuple[list[str], intervals.Resampled] | None:
        """Policies that ever show what was shown, and the mean reward of such rounds on resamples; None without any."""
        some = [policy for policy in self.policies if policy.total(P) > 0]
        if not some:
            return None
        upper, lower = (np.stack([policy.blocks(column) for policy in some]) for column in (PR, P))
        return [policy.name for policy in some], intervals.resample(upper, lower)

    def unjudged(self, level: float) -> set[str]:
        """Policies whose own rounds say too little: where matched rounds alone have no interval, nothing tells how
        wrong a model of them is. One that never matches is a matter of the model altogether, and is taken as it is."""
        if self.matched is None:
            return set()
        names, resampled = self.matched
        low = resampled.intervals(level).low
        return {name for name, bound in zip(names, low, strict=True) if not math.isfinite(bound)}


def _points(layout: BlockLayout, supported: Doubles) -> tuple[np.ndarray, np.ndarray]:
    """Blocks after which a running estimate is given, where it has support, and the rounds so far."""
    ends = np.unique(np.linspace(0, layout.blocks - 1, min(POINTS, layout.blocks)).round().astype(int))
    ends = ends[np.cumsum(supported)[ends] > 0]
    return ends, np.minimum((ends + 1) * layout.size, layout.rounds)


def running(upper: Doubles, lower: Doubles, layout: BlockLayout, level: float, *, banded: bool = True) -> Running:
    """The ratio of sums over blocks so far, with a band of the normal approximation at each point by itself.

    The band is NaN where fewer than FEWEST blocks have spread to show, and throughout unless `banded`.
    """
    ends, rounds = _points(layout, lower)
    whole = upper.sum() / lower.sum()
    e = upper - whole * lower  # centred, so that squares do not cancel
    weight = np.cumsum(lower)[ends]
    d = np.cumsum(e)[ends] / weight
    squares = [np.cumsum(part)[ends] for part in (e * e, e * lower, lower * lower)]
    error = np.sqrt(np.maximum(squares[0] - 2 * d * squares[1] + d * d * squares[2], 0.0)) / weight
    half = intervals.normal_quantile((1 + level) / 2) * error
    half[(np.cumsum(upper != 0)[ends] < FEWEST) | (not banded)] = np.nan
    value = whole + d
    return Running(rounds=rounds, weight=weight, value=value, low=value - half, high=value + half)


def _bootstrapped(gathered: Gathered, level: float, method: str, resampled: intervals.Resampled) -> list[Estimate]:
    policies, names, layout = gathered.policies, gathered.estimators, gathered.layout
    made, value = resampled.intervals(level, method), resampled.value
    places = {key: i for i, key in enumerate(gathered.ratios)}
    gaps = {key: i for i, key in enumerate(gathered.pairs)}
    unsure = {policy.name: policy.unsure for policy in policies}
    if {"dm", "dr"} & set(names):
        unjudged = gathered.unjudged(level)
        for policy in policies:
            if policy.name in unjudged and not policy.logged:
                unsure[policy.name] = {"dm": UNJUDGED, "dr": UNJUDGED} | policy.unsure
    estimates = []
    for policy in policies:
        for name in names:
            if name in policy.why:
                estimates.append(Estimate(policy=policy.name, estimator=name, refusal=policy.why[name]))
                continue
            key = policy.name, name
            i = places[key]
            difference = None
            low, high = _number(made.low[i]), _number(made.high[i])
            refusal = unsure[policy.name].get(name)
            if refusal:
                low = high = None
            if key in gaps:
                place = gaps[key]
                ends = _number(made.difference_low[place]), _number(made.difference_high[place])
                their = made.low[places[policies[0].name, name]]
                if low is None or high is None or not math.isfinite(their) or name in unsure[policies[0].name]:
                    ends = None, None  # where one side's spread is unknown, so is the difference's
                difference = Difference(
                    to=policies[0].name, value=float(value[len(places) + place]), low=ends[0], high=ends[1]
                )
            if refusal is None and (low is None or high is None):
                refusal = (
                    "no interval: too few rounds with a weight have a reward that differs from the others'; give more"
                )
            estimates.append(
                Estimate(
                    policy=policy.name, estimator=name, value=float(value[i]), low=low, high=high, refusal=refusal,
                    difference=difference,
                    # The model of dm has seen all rounds: its error does not shrink along the way.
                    running=running(
                        *gathered.ratios[key], layout, level, banded=low is not None and name != "dm"
                    ),
                )
            )  # fmt: skip
    return estimates


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _sequences(gathered: Gathered, level: float) -> list[Estimate]:
    policies, names, layout, bounds = gathered.policies, gathered.estimators, gathered.layout, gathered.reward_range
    if bounds is None:
        raise ValueError("bernstein needs the range of rewards: give reward_range=(lowest, highest)")
    largest = min(math.inf if gathered.clip is None else gathered.clip, 1 / gathered.survey.smallest)
    estimates = []
    first = policies[0]
    for policy in policies:
        for name in names:
            if name in policy.why:
                estimates.append(Estimate(policy=policy.name, estimator=name, refusal=policy.why[name]))
                continue
            upper, lower = policy.ratio(name)
            value = float(upper.sum() / lower.sum())
            refusal = no_sequence(policy, name)
            if refusal:
                estimates.append(Estimate(policy=policy.name, estimator=name, value=value, refusal=refusal))
                continue
            ends, _ = _points(layout, lower)
            made = sequence(policy, name, bounds, largest, level, ends)
            band = replace(running(upper, lower, layout, level), low=made.low, high=made.high)
            difference = None
            if policy is not first and name not in first.why and not no_sequence(first, name):
                their = first.ratio(name)
                gap = sequence_of_difference(policy, first, name, bounds, largest, level, ends[-1:])
                difference = Difference(
                    to=first.name, value=value - float(their[0].sum() / their[1].sum()), low=float(gap.low[-1]),
                    high=float(gap.high[-1]),
                )  # fmt: skip
            estimates.append(
                Estimate(
                    policy=policy.name, estimator=name, value=value, low=float(made.low[-1]), high=float(made.high[-1]),
                    difference=difference, running=band,
                )
            )  # fmt: skip
    return estimates
