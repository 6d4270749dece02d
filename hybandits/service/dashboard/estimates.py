"""What was earned, and what others would have earned, with bounds that hold at all times.

Somebody who looks at a page every hour, and stops at a good moment, is misled by ordinary intervals. The bounds here
are confidence sequences: with probability `LEVEL` at least, a sequence holds after every reward at once. Where rewards
have a range it is the empirical Bernstein sequence of `hybandits.statistics`. Where they have none, nothing can be
promised for few rewards; there it is an asymptotic confidence sequence, shown from `ENOUGH` rewards on.

Estimates are averages over decisions of what could be expected of them, so policies may learn and users may change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from hybandits.foundation.checks import FloatArray
from hybandits.service.summary import Compared, Largest, Summary, Terms
from hybandits.statistics import asymptotic_radius, boundary, growing_scale

LEVEL = 0.95
"""The share of sequences that hold throughout, at least."""

ENOUGH = 100
"""Rewards before an asymptotic sequence is shown."""

FORESEEN = 10**9
"""More decisions than this are not foreseen."""

_TAIL = (1 - LEVEL) / 2


class Estimate(msgspec.Struct, frozen=True):
    """A mean, in the unit of rewards, and its bounds; None where nothing can be said yet."""

    n: int
    mean: float | None
    low: float | None
    high: float | None


class Comparison(msgspec.Struct, frozen=True):
    """A policy that did not decide, against the one that did.

    Attributes
    ----------
    value, difference : Estimate
        What it would have earned per decision, and that minus what was earned.
    more : int or None
        About how many more decisions are needed, where the difference cannot be told from 0.
    to : "tell" or "halve"
        Until what: until the difference can be told from 0 if it and its variance stay as they are, or, if that is not
        foreseen, until the bounds are half as far apart.
    """

    value: Estimate
    difference: Estimate
    more: int | None = None
    to: str = "tell"


class Side(NamedTuple):
    """One side of a sequence: how far a term may lie beyond its guess there (None: nobody knows), and the probability
    with which the bound may ever fail."""

    scale: float | None
    tail: float = _TAIL

    def radius(self, n: FloatArray, spread: FloatArray) -> FloatArray:
        """How far the bound lies from the mean of n terms."""
        if self.scale is not None:
            return boundary(spread, self.scale, self.tail) / n
        return asymptotic_radius(n, spread, 2 * self.tail)


def above(weights: Largest) -> Side:
    """The upper side of terms that are at most the largest weight, which grows with the number of candidates."""
    return Side(*growing_scale(weights.first, weights.ever, _TAIL))


def earned(summary: Summary) -> Estimate:
    """What was earned per decision."""
    return _rewards(summary, [summary.reward])[0]


def earned_by(summary: Summary, arms: Sequence[str]) -> list[Estimate]:
    """What decisions for each of some arms earned."""
    return _rewards(summary, [summary.arms[arm].reward for arm in arms])


def compared(summary: Summary, sums: Compared, weights: Largest) -> Comparison:
    """What a policy would have earned, and whether that differs from what was earned."""
    if summary.rewards is None or not weights.first:
        value = difference = (Side(None), Side(None))
        ends = None
    else:
        upper = above(weights)
        value, difference = (Side(1.0), upper), (Side(2.0), upper)
        ends = (0.0, 1.0)
    start, unit = unit_of(summary)
    (mean,) = _estimates([sums.value], value, ends, start, unit)
    apart = None if ends is None else (-1.0, 1.0)
    (gain,) = _estimates([sums.difference], difference, apart, 0.0, unit)
    if gain.low is None or gain.high is None or gain.low > 0 or gain.high < 0:
        return Comparison(mean, gain)
    return Comparison(mean, gain, *_more(sums.difference, *difference))


def over_time(summary: Summary, terms: Sequence[Terms], weights: Largest | None) -> list[Estimate]:
    """Estimates after each of some stretches of time, whose sums are given; with weights if they are weighted."""
    n, total, spread = (np.cumsum([getattr(each, name) for each in terms]) for name in ("n", "total", "spread"))
    so_far = [Terms(*each) for each in zip(n.tolist(), total.tolist(), spread.tolist(), strict=True)]
    if weights is None:
        return _rewards(summary, so_far)
    ranged = summary.rewards is not None and weights.first > 0
    sides = (Side(1.0), above(weights)) if ranged else (Side(None), Side(None))
    return _estimates(so_far, sides, (0.0, 1.0) if ranged else None, *unit_of(summary))


def _rewards(summary: Summary, terms: Sequence[Terms]) -> list[Estimate]:
    """Estimates of rewards that were earned."""
    ranged = summary.rewards is not None
    side = Side(1.0 if ranged else None)
    return _estimates(terms, (side, side), (0.0, 1.0) if ranged else None, *unit_of(summary))


def unit_of(summary: Summary) -> tuple[float, float]:
    """Where the range of rewards begins and how wide it is: what sums are kept in."""
    if summary.rewards is None:
        return 0.0, 1.0
    low, high = summary.rewards
    return low, high - low


def _estimates(
    terms: Sequence[Terms], sides: tuple[Side, Side], ends: tuple[float, float] | None, start: float, unit: float
) -> list[Estimate]:
    """Means and bounds, which lie between `ends` if there are any, in the unit of rewards."""
    n, total, spread = (np.array([getattr(each, name) for each in terms], float) for name in ("n", "total", "spread"))
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = total / n
        low, high = mean - sides[0].radius(n, spread), mean + sides[1].radius(n, spread)
    if ends is not None:
        mean, low, high = (np.clip(each, *ends) for each in (mean, low, high))
    shown = n >= (1 if ends is not None else ENOUGH)
    return [
        Estimate(
            int(n[i]),
            start + unit * float(mean[i]) if n[i] else None,
            start + unit * float(low[i]) if shown[i] else None,
            start + unit * float(high[i]) if shown[i] else None,
        )
        for i in range(len(terms))
    ]


def _more(terms: Terms, lower: Side, upper: Side) -> tuple[int | None, str]:
    """About how many more terms tell the difference from 0, or make the bounds half as wide."""
    n, mean, variance = terms.n, terms.total / terms.n, terms.spread / terms.n
    later = n * 2.0 ** np.arange(0, 40, 0.25)
    below, beyond = (side.radius(later, variance * later) for side in (lower, upper))
    tells = np.flatnonzero((below if mean > 0 else beyond) < abs(mean))
    if len(tells) and later[tells[0]] - n <= FORESEEN:
        return _rounded(later[tells[0]] - n), "tell"
    halves = np.flatnonzero(below + beyond <= (below[0] + beyond[0]) / 2)
    return (_rounded(later[halves[0]] - n) if len(halves) else None), "halve"


def _rounded(number: float) -> int:
    """A number of which only the first digits are known.

    >>> _rounded(123_456.7), _rounded(7)
    (120000, 7)
    """
    number = max(1, round(number))
    return round(number, 2 - len(str(number)))
