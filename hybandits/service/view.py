"""The values that the dashboard and programs get: estimates with bounds that hold at all times, curves and counts."""

import asyncio
import heapq
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec
import numpy as np

from hybandits.service.log import StoreError
from hybandits.service.rules import Controls, Holdout
from hybandits.service.settings import Bandit
from hybandits.service.summary import OTHERS, ArmSums, Bin, Compared, Largest, Summary, Terms
from hybandits.service.writer import Writer
from hybandits.statistics import asymptotic_radius, boundary, growing_scale

LEVEL = 0.95
"""Share of sequences that hold throughout, at least."""

ENOUGH = 100
"""Rewards before an asymptotic sequence is shown."""

SELECTED = 0.001
"""Error rate of the test that rewards come for decisions of all kinds alike."""

MOST_EQUAL = 0.95
"""Share of equal rewards from which on the page warns."""

MOST_MISSING = 0.05
"""Share of old decisions without a reward from which on the page warns."""

TYPICAL = 0.99
"""Share of rewards that come within the typical time."""

REMEDY = (
    'If a decision without a reward earned 0, start a bandit with rewards = "clicks" and a window; otherwise send the '
    "reward of every decision."
)

SILENT = 10.0
"""Times the typical delay after which missing rewards are reported."""

MOST_UNKNOWN = 0.05
"""Share of decisions with an unknown value of a feature from which on the page warns."""

LEAST_FREE = 500_000_000
"""Bytes of the disk below which the page warns."""

_TAIL = (1 - LEVEL) / 2


class Estimate(msgspec.Struct, frozen=True):
    """A mean, in the unit of rewards, and its bounds; None where the rows do not support one."""

    n: int
    mean: float | None
    low: float | None
    high: float | None

    def negated(self) -> "Estimate":
        """Return the estimate of the negative value."""
        mean, low, high = (None if each is None else 0 - each for each in (self.mean, self.high, self.low))
        return Estimate(self.n, mean, low, high)


class Comparison(msgspec.Struct, frozen=True):
    """The reward per decision that a policy would have had, and its difference from the live policy's."""

    value: Estimate
    difference: Estimate


def compared(summary: Summary, sums: Compared, weights: Largest) -> Comparison:
    """Compare a policy that did not decide with the live policy, if the rewards allow it."""
    if is_selected(sums):
        unknown = Estimate(sums.value.n, None, None, None)
        return Comparison(unknown, unknown)
    (value,) = estimate_rewards(summary, [sums.value], weights)
    (difference,) = estimate_rewards(summary, [sums.difference], weights, difference=True)
    return Comparison(value, difference)


def is_selected(sums: Compared) -> bool:
    """Return whether rewards come for decisions of some kinds only: then weights, whose mean is 1, have another."""
    weight = sums.weight
    if weight.n < ENOUGH:
        return False
    (radius,) = asymptotic_radius(np.array([float(weight.n)]), np.array([weight.spread]), SELECTED)
    return bool(abs(weight.total / weight.n - 1) > radius + 1e-9)


def so_far(terms: Sequence[Terms]) -> list[Terms]:
    """Return the sums after each of several stretches of time."""
    n, total, spread = (np.cumsum([getattr(each, name) for each in terms]) for name in ("n", "total", "spread"))
    return [Terms(*each) for each in zip(n.tolist(), total.tolist(), spread.tolist(), strict=True)]


def estimate_rewards(
    summary: Summary, terms: Sequence[Terms], weights: Largest | None = None, *, difference: bool = False,
    tail: float = _TAIL,
) -> list[Estimate]:  # fmt: skip
    """Estimate the live policy's rewards from their sums or, with weights, another's, or its difference from them."""
    upper = growing_scale(weights.first, weights.ever, tail) if weights is not None and weights.first else (1.0, tail)
    sides = (2.0 if difference else 1.0, tail), upper  # the largest distance below and above a guess, and error rates
    n, total, spread = (np.array([getattr(each, name) for each in terms], float) for name in ("n", "total", "spread"))
    start, end = summary.range or (0.0, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = total / n
        if summary.range is None:
            below = above = asymptotic_radius(n, spread, 2 * tail)
        else:
            below, above = (boundary(spread, scale, tail) / n for scale, tail in sides)
    lows, highs = mean - below, mean + above
    has_bounds, is_shown = n >= ENOUGH, n > 0
    if summary.range is not None:
        least, has_bounds = -1.0 if difference else 0.0, n > 0
        lows, highs = np.clip(lows, least, 1.0), np.clip(highs, least, 1.0)
        if weights is not None:  # a number must be possible, and the rows must say more than the range does
            is_shown = is_shown & (mean >= least) & (mean <= 1) & ((lows > least) | (highs < 1))
    elif weights is not None:
        is_shown = has_bounds
    means, lows, highs = ((0.0 if difference else start) + (end - start) * each for each in (mean, lows, highs))
    return [
        Estimate(int(count), mean if shown else None, *((low, high) if bounded else (None, None)))
        for count, shown, bounded, mean, low, high in zip(
            *(each.tolist() for each in (n, is_shown, has_bounds, means, lows, highs)), strict=True
        )
    ]


ARMS = 25
"""Arms that are listed: those with the most decisions."""

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


class SegmentView(msgspec.Struct, frozen=True):
    """Users with one value of a feature: their decisions, reward per decision, and the gain over uniform choice."""

    feature: str
    value: str
    decisions: int
    share: float
    reward: Estimate
    gain: Estimate


def segments_of(summary: Summary) -> list[SegmentView]:
    """Return all segments. Their sequences share the error rate, so that all of them hold at once."""
    every = [(name, *each) for name, values in summary.segments.items() for each in sorted(values.items())]
    tail, total = _TAIL / max(1, len(every)), max(1, summary.decisions - summary.held_decisions)
    views: list[SegmentView] = []
    for name, value, sums in every:
        (reward,) = estimate_rewards(summary, [sums.reward], tail=tail)
        terms, weights = [sums.uniform.difference], summary.uniform_weights
        (loss,) = estimate_rewards(summary, terms, weights, difference=True, tail=tail)
        gain = Estimate(loss.n, None, None, None) if is_selected(sums.uniform) else loss.negated()
        views.append(SegmentView(name, value, sums.decisions, sums.decisions / total, reward, gain))
    return views


class HeldView(msgspec.Struct, frozen=True):
    """Users who are held out beside the others: rewards per decision, and what the bandit gains over the holdout."""

    share: float
    arm: str | None
    decisions: int
    held: Estimate
    others: Estimate
    gain: Estimate


def compare_held(summary: Summary, held: Holdout) -> HeldView:
    """Compare two groups of users. Each has a sequence with half of the error rate, so the difference holds as well."""
    out, others = estimate_rewards(summary, [summary.held, summary.beside], tail=_TAIL / 2)
    gain = Estimate(out.n + others.n, None, None, None)
    if None not in (out.low, out.high, others.low, others.high):
        bounds = others.low - out.high, others.high - out.low  # type: ignore[operator]
        gain = Estimate(gain.n, others.mean - out.mean, *bounds)  # type: ignore[operator]
    return HeldView(held.share, held.arm, summary.held_decisions, out, others, gain)


class Fallback(msgspec.Struct, frozen=True):
    """A value of a feature, as JSON, that has no column, and how often it came."""

    feature: str
    value: str
    count: int


class Warning(msgspec.Struct, frozen=True):
    """Something that is probably wrong: a code for programs, and a sentence with the remedy."""

    code: str
    text: str


class Curves(msgspec.Struct, frozen=True):
    """Rewards per decision by the `ends` of stretches of time; the first began at `start`. Times are since 1970."""

    start: float
    ends: list[float]
    live: list[Estimate]
    uniform: list[Estimate]


class View(msgspec.Struct, frozen=True):
    """The state of a bandit.

    `version` and `time` are of the last row that the model has applied, `behind` is the number of further rows, None if
    the log cannot be read. `meaning` is the setting `rewards`. `trouble`, `failures`, `refusals` are of this process:
    why it cannot write, its failed writes, and refused requests by status. Times are in seconds since 1970.
    """

    name: str
    version: int
    time: float
    behind: int | None
    trouble: str | None
    failures: int
    refusals: dict[str, int]
    live: str
    policy: str
    warnings: list[Warning]
    fallbacks: list[Fallback]
    meaning: str
    window: float | None
    relearning: bool
    range: tuple[float, float] | None
    floor: float
    decisions: int
    rewards: int
    open: int
    late: int
    reward: Estimate
    uniform: Comparison
    challengers: list[PolicyView]
    holdout: HeldView | None
    places: list[Estimate]
    segments: list[SegmentView]
    webhook: str | None
    controls: Controls
    arms: list[ArmView]
    active_arms: int
    known_arms: int
    curves: Curves


def make_view(writer: Writer, refusals: Mapping[str, int] | None = None) -> View:
    """Compute the view. The writer waits only while its sums are copied."""
    state, last = writer.state, _last_row(writer)
    with state.lock:
        copied = msgspec.msgpack.encode(state.summary)
        row, at, live, bandit, controls = state.row, state.time, state.live, state.bandit, state.controls
        pending = state.pending
        active = {arm for arm, each in state.arms.items() if each.active}
        known = len(state.arms)
    summary = msgspec.msgpack.decode(copied, type=Summary)
    challengers = [
        PolicyView(name, bandit.policies[name], compared(summary, sums, summary.weights))
        for name, sums in summary.challengers.items()
    ]
    return View(
        name=bandit.name,
        version=row,
        time=at / 1e6,
        behind=None if last is None else max(0, last - row),
        trouble=writer.trouble,
        failures=writer.failures,
        refusals=dict(refusals or {}),
        live=live,
        policy=bandit.policies[live],
        warnings=[*_warnings(summary, bandit, writer.clock()), *_alarms(summary, bandit, at, writer.store.free())],
        fallbacks=[
            Fallback(feature, value, count)
            for feature, counts in sorted(summary.fallbacks.items())
            for value, count in sorted(counts.items(), key=lambda each: -each[1])
        ],
        meaning=bandit.rewards,
        window=bandit.window,
        relearning=pending,
        range=bandit.range,
        floor=bandit.floor,
        decisions=summary.decisions,
        rewards=summary.learned_rewards,
        open=summary.decisions - summary.learned_rewards,
        late=summary.late,
        reward=estimate_rewards(summary, [summary.reward])[0],
        uniform=compared(summary, summary.uniform, summary.uniform_weights),
        challengers=challengers,
        holdout=None if bandit.held is None else compare_held(summary, bandit.held),
        places=estimate_rewards(summary, [terms for _, terms in sorted(summary.places.items())]),
        segments=segments_of(summary),
        webhook=bandit.webhook,
        controls=controls,
        arms=_arms(summary, active),
        active_arms=len(active),
        known_arms=known,
        curves=_curves(summary),
    )


def typical_delay(summary: Summary) -> float | None:
    """Return microseconds within which most rewards come, up to a factor of two; None where too few have come."""
    came, total = 0, sum(summary.delays.values())
    for bits in sorted(summary.delays):
        came += summary.delays[bits]
        if total >= ENOUGH and came >= TYPICAL * total:
            return float(2**bits)
    return None


def _warnings(summary: Summary, bandit: Bandit, now: int) -> list[Warning]:
    found: list[Warning] = []
    if any(is_selected(sums) for sums in (summary.uniform, *summary.challengers.values())):
        wrong = "Rewards come for some kinds of decisions more often than for others: other policies are not estimated."
        found.append(Warning("selected_rewards", f"{wrong} {REMEDY}"))
    if bandit.rewards == "clicks":
        return found
    total = sum(summary.values.values())
    value, count = max(summary.values.items(), key=lambda each: (each[0] != OTHERS, each[1]), default=("", 0))
    if total >= ENOUGH and count > MOST_EQUAL * total:
        wrong = f"{count / total:.1%} of the rewards that were sent are {value}, which teaches little."
        found.append(Warning("equal_rewards", f"{wrong} {REMEDY}"))
    delay = typical_delay(summary)
    if delay is not None:
        ends = [(summary.start or 0) + (number + 1) * summary.width for number in summary.bins]
        old = [each for end, each in zip(ends, summary.bins.values(), strict=True) if end <= now - delay]
        decisions, missing = sum(each.decisions for each in old), sum(each.decisions - each.rewarded for each in old)
        if decisions >= ENOUGH and missing > MOST_MISSING * decisions:
            wrong = (
                f"{missing / decisions:.1%} of the decisions older than {duration(delay / 1e6)} have no reward, though "
                f"{TYPICAL:.0%} of the rewards come by then."
            )
            found.append(Warning("missing_rewards", f"{wrong} {REMEDY}"))
    return found


def _alarms(summary: Summary, bandit: Bandit, at: int, free: int | None) -> Iterator[Warning]:
    """Yield warnings about rewards that stay away, features, the policy and the disk; `at` is the last row's time."""
    typical = typical_delay(summary) if bandit.window is None else bandit.window * 1e6
    silent = at - max(summary.last_reward, summary.start or at)
    if typical is not None and summary.decisions >= ENOUGH and silent > SILENT * typical:
        said = f"No reward has come for {duration(silent / 1e6)}, and they usually take {duration(typical / 1e6)}."
        yield Warning("no_rewards", f"{said} Check the client that sends them.")
    for feature, counts in summary.fallbacks.items():
        unknown = sum(count for value, count in counts.items() if value != "null")
        if feature.startswith("user.") and unknown > max(MOST_UNKNOWN * summary.decisions, ENOUGH):
            said = (
                f"{unknown / summary.decisions:.1%} of decisions had a value of {feature} that is not in bandit.toml."
            )
            yield Warning("unknown_values", f"{said} Start a bandit that lists them, or correct the client.")
    loss = compared(summary, summary.uniform, summary.uniform_weights).difference
    held = None if bandit.held is None else compare_held(summary, bandit.held).gain
    if (loss.low is not None and loss.low > 0) or (held is not None and held.high is not None and held.high < 0):
        yield Warning(
            "gain_below_zero", "The bandit earns less than it would without. Pause it, and look for the reason."
        )
    if free is not None and free < LEAST_FREE:
        yield Warning("disk", f"The disk of the log has {free / 1e6:,.0f} MB left. Free some space, or rotate the log.")


def duration(seconds: float) -> str:
    """Return a length of time in words.

    >>> duration(0.5), duration(90), duration(200_000)
    ('0.5 seconds', '1.5 minutes', '2.3 days')
    """
    for unit, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= size:
            return f"{seconds / size:.2g} {unit}"
    return f"{seconds:.2g} seconds"


def _last_row(writer: Writer) -> int | None:
    try:
        return writer.store.last()[0]
    except StoreError:
        return None


def _arms(summary: Summary, active: set[str]) -> list[ArmView]:
    sums = {arm: ArmSums() for arm in active} | summary.arms
    ids = heapq.nsmallest(ARMS, sums, key=lambda arm: (-sums[arm].decisions, arm))
    rewards = estimate_rewards(summary, [sums[arm].reward for arm in ids])
    total = max(1, summary.decisions - summary.held_decisions)
    return [
        ArmView(arm, arm in active, sums[arm].decisions, sums[arm].decisions / total, reward)
        for arm, reward in zip(ids, rewards, strict=True)
    ]


def _curves(summary: Summary) -> Curves:
    together = math.ceil((max(summary.bins, default=0) + 1) / POINTS)
    bins: dict[int, Bin] = {}
    learned = sorted(number for number, each in summary.bins.items() if each.reward.n)
    for number in learned:
        bins.setdefault(number // together, Bin()).add(summary.bins[number])
    start, width = summary.start or 0, summary.width * together
    return Curves(
        start=(start + min(bins, default=0) * width) / 1e6,
        ends=[(start + (number + 1) * width) / 1e6 for number in bins],
        live=estimate_rewards(summary, so_far([each.reward for each in bins.values()])),
        uniform=estimate_rewards(summary, so_far([each.uniform for each in bins.values()]), summary.uniform_weights),
    )


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
                if last is None or last > self._writer.state.row:
                    await self._writer.request([])  # which applies rows of other servers, or finds the trouble
                self._view = await asyncio.to_thread(make_view, self._writer, self._refusals())
                self._computed = self._clock()
            return self._view
