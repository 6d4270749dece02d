"""Estimates of rewards, with bounds that hold at all times.

Somebody who opens a page every hour, and stops at a good moment, is misled by ordinary intervals. The bounds here are
confidence sequences: with probability `LEVEL` at least, a sequence holds after every reward at once. Where rewards have
a range it is the empirical Bernstein sequence of `hybandits.statistics`. Where they have none, nothing can be promised
for few rewards; there it is an asymptotic confidence sequence, shown from `ENOUGH` rewards on.

Estimates are averages over decisions of their expectations, so policies may learn and users may change.
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
"""Share of sequences that hold throughout, at least."""

ENOUGH = 100
"""Rewards before an asymptotic sequence is shown."""

FORESEEN = 10**9
"""Largest number of further decisions that is foreseen."""

_TAIL = (1 - LEVEL) / 2


class Estimate(msgspec.Struct, frozen=True):
    """A mean, in the unit of rewards, and its bounds; None where the rows do not support one."""

    n: int
    mean: float | None
    low: float | None
    high: float | None


class Comparison(msgspec.Struct, frozen=True):
    """A policy that did not decide, against the live policy.

    Attributes
    ----------
    value, difference : Estimate
        The reward per decision that it would have had, and that minus the live policy's.
    more : int or None
        Approximate number of further decisions that are needed, where the difference cannot be told from 0.
    to : "tell" or "halve"
        The goal: to tell the difference from 0, if it and its variance stay as they are; if that is not foreseen,
        bounds that are half as far apart.
    """

    value: Estimate
    difference: Estimate
    more: int | None = None
    to: str = "tell"


class Side(NamedTuple):
    """One side of a sequence: the largest distance of a term beyond its guess (None: unknown), and the probability with
    which the bound may ever fail."""

    scale: float | None
    tail: float = _TAIL

    def radius(self, n: FloatArray, spread: FloatArray) -> FloatArray:
        """Return the distance of the bound from the mean of n terms."""
        if self.scale is not None:
            return boundary(spread, self.scale, self.tail) / n
        return asymptotic_radius(n, spread, 2 * self.tail)


def above(weights: Largest) -> Side:
    """Return the upper side of terms that are at most the largest weight, which grows with the number of candidates."""
    return Side(*growing_scale(weights.first, weights.ever, _TAIL))


def live_rewards(summary: Summary, terms: Sequence[Terms]) -> list[Estimate]:
    """Return estimates of rewards that the live policy had, from their sums."""
    side = Side(None if summary.rewards is None else 1.0)
    return _estimates(terms, (side, side), None if summary.rewards is None else (0.0, 1.0), *unit_of(summary))


def compared(summary: Summary, sums: Compared, weights: Largest) -> Comparison:
    """Compare a policy that did not decide with the live policy."""
    (value,) = weighted(summary, [sums.value], weights)
    ranged = summary.rewards is not None and weights.first > 0
    sides = (Side(2.0), above(weights)) if ranged else (Side(None), Side(None))
    (gain,) = _estimates([sums.difference], sides, (-1.0, 1.0) if ranged else None, 0.0, unit_of(summary)[1])
    if gain.low is None or gain.high is None or gain.low > 0 or gain.high < 0:
        return Comparison(value, gain)
    return Comparison(value, gain, *_more(sums.difference, *sides))


def weighted(summary: Summary, terms: Sequence[Terms], weights: Largest) -> list[Estimate]:
    """Return estimates of rewards that count with weights, from their sums."""
    ranged = summary.rewards is not None and weights.first > 0
    sides = (Side(1.0), above(weights)) if ranged else (Side(None), Side(None))
    return _estimates(terms, sides, (0.0, 1.0) if ranged else None, *unit_of(summary))


def so_far(terms: Sequence[Terms]) -> list[Terms]:
    """Return the sums after each of some stretches of time."""
    n, total, spread = (np.cumsum([getattr(each, name) for each in terms]) for name in ("n", "total", "spread"))
    return [Terms(*each) for each in zip(n.tolist(), total.tolist(), spread.tolist(), strict=True)]


def unit_of(summary: Summary) -> tuple[float, float]:
    """Return where the range of rewards begins and how wide it is: the unit of the sums."""
    if summary.rewards is None:
        return 0.0, 1.0
    low, high = summary.rewards
    return low, high - low


def _estimates(
    terms: Sequence[Terms], sides: tuple[Side, Side], ends: tuple[float, float] | None, start: float, unit: float
) -> list[Estimate]:
    """Return means and bounds, which lie between `ends` if there are any, in the unit of rewards."""
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
    """Return about how many more terms tell the difference from 0, or make the bounds half as wide."""
    n, mean, variance = terms.n, terms.total / terms.n, terms.spread / terms.n
    later = n * 2.0 ** np.arange(0, 40, 0.25)
    below, beyond = (side.radius(later, variance * later) for side in (lower, upper))
    tells = np.flatnonzero((below if mean > 0 else beyond) < abs(mean))
    if len(tells) and later[tells[0]] - n <= FORESEEN:
        return _rounded(later[tells[0]] - n), "tell"
    halves = np.flatnonzero(below + beyond <= (below[0] + beyond[0]) / 2)
    return (_rounded(later[halves[0]] - n) if len(halves) else None), "halve"


def _rounded(number: float) -> int:
    """Round a number to two digits.

    >>> _rounded(123_456.7), _rounded(7)
    (120000, 7)
    """
    number = max(1, round(number))
    return round(number, 2 - len(str(number)))
