"""The values that the dashboard and programs get: estimates with bounds that hold at all times, curves and counts."""

from __future__ import annotations

import asyncio
import heapq
import math
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import msgspec
import numpy as np

from hybandits.foundation.checks import FloatArray
from hybandits.service.log import StoreError
from hybandits.service.summary import Bin, Compared, Largest, Summary, Terms
from hybandits.service.writer import Writer
from hybandits.statistics import asymptotic_radius, boundary, growing_scale

LEVEL = 0.95
"""Share of sequences that hold throughout, at least."""

ENOUGH = 100
"""Rewards before an asymptotic sequence is shown."""

_TAIL = (1 - LEVEL) / 2


class Estimate(msgspec.Struct, frozen=True):
    """A mean, in the unit of rewards, and its bounds; None where the rows do not support one."""

    n: int
    mean: float | None
    low: float | None
    high: float | None


class Comparison(msgspec.Struct, frozen=True):
    """The reward per decision that a policy would have had, and its difference from the live policy's."""

    value: Estimate
    difference: Estimate


class Side(NamedTuple):
    """One side of a sequence: the largest distance of a term from its guess (None: unknown), and its error rate."""

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
    (difference,) = weighted(summary, [sums.difference], weights, difference=True)
    return Comparison(value, difference)


def weighted(summary: Summary, terms: Sequence[Terms], weights: Largest, *, difference: bool = False) -> list[Estimate]:
    """Return estimates of rewards that count with weights, or of differences from the live policy, from their sums."""
    low, width = unit_of(summary)
    start, ends, scale = (0.0, (-1.0, 1.0), 2.0) if difference else (low, (0.0, 1.0), 1.0)
    if summary.rewards is None or not weights.first:
        return _estimates(terms, (Side(None), Side(None)), None, start, width)
    return _estimates(terms, (Side(scale), above(weights)), ends, start, width)


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


ARMS = 25
"""Arms that are listed: those with the most decisions."""

SHARES = 7
"""Arms whose share of decisions is shown over time; the others are one."""

POINTS = 80
"""Most stretches of time that curves show."""

OFTEN = 1.0
"""Seconds for which a view is not computed again."""


class ArmView(msgspec.Struct, frozen=True):
    """An arm: its decisions, their share of all, and the reward per decision."""

    arm: str
    active: bool
    decisions: int
    share: float
    reward: Estimate


class PolicyView(msgspec.Struct, frozen=True):
    """A challenger against the live policy."""

    name: str
    policy: str
    comparison: Comparison


class Band(msgspec.Struct, frozen=True):
    """Estimates over time."""

    mean: list[float | None]
    low: list[float | None]
    high: list[float | None]


class Curves(msgspec.Struct, frozen=True):
    """Stretches of time of `seconds` each, with their ends (seconds since 1970) and the reward per decision by then.

    `shares` has in each stretch the shares of decisions of these arms and of all others.
    """

    ends: list[float]
    seconds: float
    live: Band
    uniform: Band
    arms: list[str]
    shares: list[list[float]]


class View(msgspec.Struct, frozen=True):
    """The state of a bandit.

    `version` and `time` are of the last row that the model has applied, `behind` is the number of further rows, None if
    the log cannot be read, and `seen` is the time of the view. `trouble`, `failures`, `refusals` are of this process:
    why it cannot write, its failed writes, and refused requests by status. Times are in seconds since 1970.
    """

    name: str
    version: int
    time: float
    seen: float
    behind: int | None
    trouble: str | None
    failures: int
    refusals: dict[str, int]
    live: str
    policy: str
    window: float | None
    no_reward: float | None
    range: tuple[float, float] | None
    floor: float
    level: float
    decisions: int
    rewards: int
    open: int
    late: int
    reward: Estimate
    uniform: Comparison
    challengers: list[PolicyView]
    arms: list[ArmView]
    active_arms: int
    known_arms: int
    curves: Curves


def make_view(writer: Writer, refusals: Mapping[str, int] = MappingProxyType({})) -> View:
    """Compute the view. The writer waits only while its sums are copied."""
    state, last = writer.state, _last_row(writer)
    with state.lock:
        copied = msgspec.msgpack.encode(state.summary)
        row, at, live, bandit = state.row, state.time, state.live, state.bandit
        active = {arm for arm, known in state.arms.items() if known.active}
        places = {arm: known.slot for arm, known in state.arms.items()}
    summary = msgspec.msgpack.decode(copied, type=Summary)
    challengers = [
        PolicyView(name, bandit.policies[name], compared(summary, sums, summary.weights))
        for name, sums in summary.challengers.items()
    ]
    return View(
        name=bandit.name,
        version=row,
        time=at / 1e6,
        seen=time.time(),
        behind=None if last is None else max(0, last - row),
        trouble=writer.trouble,
        failures=writer.failures,
        refusals=dict(refusals),
        live=live,
        policy=bandit.policies[live],
        window=bandit.window,
        no_reward=bandit.no_reward,
        range=bandit.rewards,
        floor=bandit.floor,
        level=LEVEL,
        decisions=summary.decisions,
        rewards=summary.reward.n,
        open=summary.decisions - summary.reward.n,
        late=summary.late,
        reward=live_rewards(summary, [summary.reward])[0],
        uniform=compared(summary, summary.uniform, summary.uniform_weights),
        challengers=challengers,
        arms=_arms(summary, active),
        active_arms=len(active),
        known_arms=len(places),
        curves=_curves(summary, places),
    )


def _last_row(writer: Writer) -> int | None:
    try:
        return writer.store.last()[0]
    except StoreError:
        return None


def _most(counts: dict[str, int], most: int) -> list[str]:
    return heapq.nsmallest(most, counts, key=lambda arm: (-counts[arm], arm))


def _arms(summary: Summary, active: set[str]) -> list[ArmView]:
    counts = dict.fromkeys(active, 0) | {arm: sums.decisions for arm, sums in summary.arms.items()}
    ids = _most(counts, ARMS)
    decided = [arm for arm in ids if arm in summary.arms]
    rewards = dict(zip(decided, live_rewards(summary, [summary.arms[arm].reward for arm in decided]), strict=True))
    nothing = Estimate(0, None, None, None)
    total = max(1, summary.decisions)
    return [ArmView(arm, arm in active, counts[arm], counts[arm] / total, rewards.get(arm, nothing)) for arm in ids]


def _curves(summary: Summary, places: Mapping[str, int]) -> Curves:
    together = math.ceil((max(summary.bins, default=0) + 1) / POINTS)
    bins: dict[int, Bin] = {}
    for number in sorted(summary.bins):
        bins.setdefault(number // together, Bin()).add(summary.bins[number])
    width = summary.width * together
    arms = sorted(_most({arm: sums.decisions for arm, sums in summary.arms.items()}, SHARES), key=places.__getitem__)
    shares = []
    for each in bins.values():
        counts = [each.arms.get(arm, 0) for arm in arms]
        shares.append([count / max(1, each.decisions) for count in (*counts, each.decisions - sum(counts))])
    uniform = so_far([each.uniform for each in bins.values()])
    return Curves(
        ends=[((summary.start or 0) + (number + 1) * width) / 1e6 for number in bins],
        seconds=width / 1e6,
        live=_band(live_rewards(summary, so_far([each.reward for each in bins.values()]))),
        uniform=_band(weighted(summary, uniform, summary.uniform_weights)),
        arms=arms,
        shares=shares,
    )


def _band(estimates: Sequence[Estimate]) -> Band:
    return Band(*([getattr(each, name) for each in estimates] for name in ("mean", "low", "high")))


class Views:
    """The newest view, computed at most once in `OFTEN` seconds, for all who ask."""

    def __init__(
        self,
        writer: Writer,
        refusals: Callable[[], Mapping[str, int]] = dict,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._writer, self._refusals, self._clock = writer, refusals, clock
        self._lock = asyncio.Lock()
        self._computed = -math.inf
        self._view: View

    async def newest(self) -> View:
        """Return a view that is not old."""
        async with self._lock:
            if self._clock() - self._computed >= OFTEN:
                last = await asyncio.to_thread(_last_row, self._writer)
                if last is not None and last > self._writer.state.row:
                    await self._writer.request([])  # rows of other servers are applied in transactions
                self._view = await asyncio.to_thread(make_view, self._writer, self._refusals())
                self._computed = self._clock()
            return self._view
