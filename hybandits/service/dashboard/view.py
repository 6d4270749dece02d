"""What there is to see of a bandit, as plain values: the page is rendered from them, and programs get them as JSON."""

from __future__ import annotations

import heapq
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from hybandits.estimators.learned import LearnedSettings
from hybandits.service.dashboard.estimates import (
    LEVEL,
    Comparison,
    Estimate,
    compared,
    earned,
    earned_by,
    over_time,
    unit_of,
)
from hybandits.service.log.store import StoreError
from hybandits.service.model_state import ModelState
from hybandits.service.settings import Bandit
from hybandits.service.summary import Bin, Summary
from hybandits.service.writer import Asked, Writer

ARMS = 25
"""Arms that are listed: those with the most decisions."""

SHARES = 7
"""Arms whose share of decisions is followed over time; the others are one."""

POINTS = 80
"""Stretches of time at most that curves show."""

OFTEN = 1.0
"""Seconds for which a look at the bandit is good."""


class SeenArm(msgspec.Struct, frozen=True):
    """An arm: its decisions, their share of all, and what those that were rewarded earned."""

    arm: str
    active: bool
    decisions: int
    share: float
    reward: Estimate


class SeenPolicy(msgspec.Struct, frozen=True):
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
    """Stretches of time in which something happened: when each ends (seconds since 1970), what was earned by then, also
    by uniform choice, what was earned in the stretch alone, and the shares of some arms, and of all others, among its
    decisions. The arms are in the order of their first rows; `places` are their places in it among all arms."""

    ends: list[float]
    seconds: float
    earned: Band
    uniform: Band
    alone: list[float | None]
    arms: list[str]
    places: list[int]
    shares: list[list[float]]


class Learned(msgspec.Struct, frozen=True):
    """What a policy has learned about noise and scales, by the names of the features."""

    policy: str
    noise: float
    effective_parameters: float
    shared: dict[str, float | None]
    own: dict[str, tuple[float | None, float | None]]
    """For each of the arms' own features: how much arms differ, and what they have in common."""


class View(msgspec.Struct, frozen=True):
    """Everything there is to see.

    Attributes
    ----------
    version, time : int, float
        The last row that the model has folded, and its time in seconds since 1970.
    seen : float
        When this was looked up, in seconds since 1970.
    behind : int or None
        Rows that others have written and that the model has not folded; None if the log cannot be read.
    trouble : str or None
        Why nothing can be written at the moment.
    failures : int
        How often this process could not write.
    refusals : dict
        Requests that this process has refused since it started, by status.
    open : int
        Decisions whose reward has not been learned.
    late : int
        Rewards that came after the window, and were not learned.
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
    earned: Estimate
    uniform: Comparison
    challengers: list[SeenPolicy]
    arms: list[SeenArm]
    active_arms: int
    known_arms: int
    curves: Curves
    learned: list[Learned]


def look(writer: Writer, refusals: Mapping[str, int] = MappingProxyType({})) -> View:
    """Look at a bandit. The writer waits only while its sums are copied."""
    fold, last = writer.fold, _last(writer)
    with fold.lock:
        copied = msgspec.msgpack.encode(fold.summary)
        row, at, live, bandit = fold.row, fold.time, fold.live, fold.bandit
        active = {arm for arm, known in fold.arms.items() if known.active}
        places = {arm: known.slot for arm, known in fold.arms.items()}
        learned = {name: policy.learned for name, policy in fold.policies.items()}
    summary = msgspec.msgpack.decode(copied, type=Summary)
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
        earned=earned(summary),
        uniform=compared(summary, summary.uniform, summary.uniform_weights),
        challengers=_challengers(summary, bandit),
        arms=_arms(summary, active),
        active_arms=len(active),
        known_arms=len(places),
        curves=_curves(summary, places),
        learned=[_learned(name, settings, fold) for name, settings in learned.items() if settings is not None],
    )


def _last(writer: Writer) -> int | None:
    """The number of the log's last row, None if the log cannot be read."""
    try:
        return writer.store.last()[0]
    except StoreError:
        return None


def _challengers(summary: Summary, bandit: Bandit) -> list[SeenPolicy]:
    return [
        SeenPolicy(name, bandit.policies[name], compared(summary, sums, summary.weights))
        for name, sums in summary.challengers.items()
    ]


def _most(counts: dict[str, int], most: int) -> list[str]:
    """The keys with the largest counts, equal ones by name."""
    return heapq.nsmallest(most, counts, key=lambda arm: (-counts[arm], arm))


def _arms(summary: Summary, active: set[str]) -> list[SeenArm]:
    """The arms with the most decisions; active ones without any come last."""
    counts = dict.fromkeys(active, 0) | {arm: sums.decisions for arm, sums in summary.arms.items()}
    ids = _most(counts, ARMS)
    decided = [arm for arm in ids if arm in summary.arms]
    rewards = dict(zip(decided, earned_by(summary, decided), strict=True))
    nothing = Estimate(0, None, None, None)
    whole = max(1, summary.decisions)
    return [SeenArm(arm, arm in active, counts[arm], counts[arm] / whole, rewards.get(arm, nothing)) for arm in ids]


def _curves(summary: Summary, places: Mapping[str, int]) -> Curves:
    together = math.ceil((max(summary.bins, default=0) + 1) / POINTS)
    bins: dict[int, Bin] = {}
    for number in sorted(summary.bins):
        bins.setdefault(number // together, Bin()).add(summary.bins[number])
    width = summary.width * together
    arms = sorted(_most({arm: sums.decisions for arm, sums in summary.arms.items()}, SHARES), key=places.__getitem__)
    start, unit = unit_of(summary)
    shares = []
    for each in bins.values():
        counts = [each.arms.get(arm, 0) for arm in arms]
        shares.append([count / max(1, each.decisions) for count in (*counts, each.decisions - sum(counts))])
    return Curves(
        ends=[((summary.start or 0) + (number + 1) * width) / 1e6 for number in bins],
        seconds=width / 1e6,
        earned=_band(over_time(summary, [each.reward for each in bins.values()], None)),
        uniform=_band(over_time(summary, [each.uniform for each in bins.values()], summary.uniform_weights)),
        alone=[start + unit * each.reward.total / each.reward.n if each.reward.n else None for each in bins.values()],
        arms=arms,
        places=[places[arm] for arm in arms],
        shares=shares,
    )


def _band(estimates: Sequence[Estimate]) -> Band:
    return Band(*([getattr(each, name) for each in estimates] for name in ("mean", "low", "high")))


def _learned(name: str, settings: LearnedSettings, fold: ModelState) -> Learned:
    features = fold.features
    own = zip(_finite(settings.own_scale), _finite(settings.common_mean), strict=True)
    return Learned(
        policy=name,
        noise=float(settings.noise),
        effective_parameters=float(settings.effective_parameters),
        shared=dict(zip(features.names_x, _finite(settings.shared_scale), strict=True)),
        own=dict(zip(features.names_z, own, strict=True)),
    )


def _finite(numbers: Any) -> list[float | None]:
    return [number if math.isfinite(number) else None for number in numbers.tolist()]


def _point(view: View) -> float:
    """Seconds that a point of the curves stands for, when they are drawn up to the present."""
    ends = view.curves.ends
    return (view.seen - ends[0] + view.curves.seconds) / POINTS if ends else math.inf


class Views:
    """The newest look at a bandit, for all who want one: a look is taken at most once in `OFTEN` seconds.

    `refusals` tells how many requests were refused, by status.
    """

    def __init__(self, writer: Writer, clock: Callable[[], float] = time.monotonic) -> None:
        self.writer = writer
        self.refusals: Callable[[], dict[str, int]] = dict
        self._clock = clock
        self._lock = threading.Lock()
        self._state: tuple[object, ...] | None = None
        self._tried = self._looked = -math.inf
        self._view: View

    def newest(self) -> View:
        """A look that is not old; the same object as long as nothing has changed and curves end near the present."""
        with self._lock:
            now = self._clock()
            if now - self._tried >= OFTEN:
                self._tried = now
                self._catch_up()
                writer, refusals = self.writer, self.refusals()
                state = writer.fold.row, writer.trouble, writer.failures, _last(writer), refusals
                if state != self._state or now - self._looked > _point(self._view):
                    self._view, self._state, self._looked = look(writer, refusals), state, now
            return self._view

    def _catch_up(self) -> None:
        """Let the writer fold what other servers have written: by itself it does so only when it is asked something."""
        try:
            if self.writer.store.last()[0] <= self.writer.fold.row:
                return
            folded = threading.Event()
            self.writer.ask(Asked([], lambda _: folded.set()))
        except StoreError:
            return
        folded.wait(OFTEN)
