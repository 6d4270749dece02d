"""The sums that the dashboard and the metrics show, as many as there are arms and policies."""

from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Self

import msgspec

from hybandits.service.log import Decision
from hybandits.service.settings import HELD
from hybandits.statistics import running_guess

BINS = 240
"""Stretches of time in curves. When there are more, every two become one."""

FIRST_BIN = 1_000_000
"""Initial microseconds of a stretch."""

DISTINCT = 20
"""Different rewards, and different values of a feature without a column, that are counted one by one."""

NO_LABELS: Mapping[str, str] = MappingProxyType({})

OTHERS = "other values"
"""The name under which further values are counted."""


class Terms(msgspec.Struct):
    """Sums of terms X_t, and the `spread`: the sum of (X_t - G_t)^2 with guesses G_t made from the terms before."""

    n: int = 0
    total: float = 0.0
    spread: float = 0.0

    def add(self, term: float, ends: tuple[float, float] | None) -> float:
        """Count one more term, whose mean lies between `ends` if they are known; return its part of the spread."""
        mean = self.total / self.n if self.n else term
        guess = mean if ends is None else running_guess(self.n, self.total, ends)
        part = (term - guess) * (term - guess)
        self.n += 1
        self.total += term
        self.spread += part
        return part

    def sum_up(self, n: int, total: float, spread: float) -> None:
        """Add sums of other terms."""
        self.n += n
        self.total += total
        self.spread += spread


class Compared(msgspec.Struct):
    """Sums of a policy that did not decide, over decisions by a model that had applied the row `since`."""

    since: int = 0
    weight: Terms = msgspec.field(default_factory=Terms)
    value: Terms = msgspec.field(default_factory=Terms)
    difference: Terms = msgspec.field(default_factory=Terms)

    def add(self, weight: float, reward: float, base: float, ends: tuple[float, float] | None) -> tuple[float, float]:
        """Count a reward; return the term of the value and its part of the spread."""
        self.weight.add(weight, None)
        surplus = reward - base
        self.difference.add((weight - 1) * surplus, None if ends is None else (ends[0] - ends[1], ends[1] - ends[0]))
        term = base + weight * surplus
        return term, self.value.add(term, ends)


class ArmSums(msgspec.Struct):
    """Decisions for one arm, and the rewards learned of them."""

    decisions: int = 0
    reward: Terms = msgspec.field(default_factory=Terms)


class Segment(msgspec.Struct):
    """The decisions for users with one value of a feature, the rewards learned of them, and uniform choice."""

    decisions: int = 0
    reward: Terms = msgspec.field(default_factory=Terms)
    uniform: Compared = msgspec.field(default_factory=Compared)


class Bin(msgspec.Struct):
    """A stretch of time: its parts of the sums of the whole log, its decisions, and how many of them got a reward."""

    decisions: int = 0
    rewarded: int = 0
    reward: Terms = msgspec.field(default_factory=Terms)
    uniform: Terms = msgspec.field(default_factory=Terms)

    def add(self, other: Self) -> None:
        """Add the sums of another stretch."""
        self.decisions += other.decisions
        self.rewarded += other.rewarded
        self.reward.sum_up(other.reward.n, other.reward.total, other.reward.spread)
        self.uniform.sum_up(other.uniform.n, other.uniform.total, other.uniform.spread)


class Largest(msgspec.Struct):
    """The largest weight that a decision could have had: the first decision, and any so far."""

    first: float = 0.0
    ever: float = 0.0

    def count(self, weight: float) -> None:
        """Count a decision."""
        self.first = self.first or weight
        if weight > self.ever:
            self.ever = weight


class Summary(msgspec.Struct):
    """Sums over decisions and rewards; where there is a range, of (reward - lowest) / (highest - lowest).

    For uniform choice and challengers they are of terms b + w (r - b) for the value, and (w - 1) (r - b) for the
    difference. The weight w is the policy's probability of the arm divided by that of the decision, with mean 1, so b
    may be anything that was known before: 0 if there is a range, because the terms then have a lowest value, otherwise
    the mean reward so far. `weights` and `uniform_weights` are bounds on w: 1 + n (1 - floor) / floor, and 1 / floor.
    `start` and `width` of stretches of time are in microseconds. `delays` counts rewards by the number of bits of their
    delay in microseconds, `values` by their value, and `fallbacks` the values of features that have no column, as JSON.
    """

    range: tuple[float, float] | None = None
    decisions: int = 0
    reward: Terms = msgspec.field(default_factory=Terms)
    late: int = 0
    live: str = ""
    uniform: Compared = msgspec.field(default_factory=Compared)
    challengers: dict[str, Compared] = msgspec.field(default_factory=dict)
    weights: Largest = msgspec.field(default_factory=Largest)
    uniform_weights: Largest = msgspec.field(default_factory=Largest)
    arms: dict[str, ArmSums] = msgspec.field(default_factory=dict)
    start: int | None = None
    width: int = FIRST_BIN
    bins: dict[int, Bin] = msgspec.field(default_factory=dict)
    delays: dict[int, int] = msgspec.field(default_factory=dict)
    values: dict[str, int] = msgspec.field(default_factory=dict)
    fallbacks: dict[str, dict[str, int]] = msgspec.field(default_factory=dict)
    segments: dict[str, dict[str, Segment]] = msgspec.field(default_factory=dict)
    last_reward: int = 0
    places: dict[int, Terms] = msgspec.field(default_factory=dict)
    held_decisions: int = 0
    held_rewards: int = 0
    held_since: int = 0
    held: Terms = msgspec.field(default_factory=Terms)
    beside: Terms = msgspec.field(default_factory=Terms)

    def compare(self, live: str, policies: Collection[str], *, row: int, unchanged: Collection[str]) -> None:
        """Begin comparisons with the live policy at a row; unchanged challengers go on if the live policy does."""
        same = live == self.live and live in unchanged
        self.challengers = {
            name: self.challengers[name]
            if same and name in unchanged and name in self.challengers
            else Compared(since=row)
            for name in policies
            if name != live
        }
        self.live = live

    @property
    def learned_rewards(self) -> int:
        """Rewards that were learned, those of users who are held out included."""
        return self.reward.n + self.held_rewards

    def decided(self, time: int, decision: Decision, labels: Mapping[str, str] = NO_LABELS) -> None:
        """Count a decision; `labels` are the segments of its user, by feature."""
        self.decisions += 1
        self._bin(time).decisions += 1
        if decision.policy == HELD:
            self.held_decisions += 1
            return
        for each in self._segments(labels):
            each.decisions += 1
        self.weights.count(1 + decision.n * (1 - decision.floor) / decision.floor)
        self.uniform_weights.count(1 / decision.floor)
        self.arms.setdefault(decision.arm, ArmSums()).decisions += 1

    def hold_out(self, row: int) -> None:
        """Begin to compare users who are held out with the others, by decisions from this row on."""
        self.held_since, self.held, self.beside = row, Terms(), Terms()

    def rewarded(self, time: int, decided: int, reward: float) -> None:
        """Count a reward that is learned as it comes, for a decision of the time `decided`."""
        self._bin(decided).rewarded += 1
        bits = (time - decided).bit_length()
        self.delays[bits] = self.delays.get(bits, 0) + 1
        _count(self.values, repr(reward))

    def placed(self, place: int, reward: float) -> None:
        """Count a reward of a place of a ranking."""
        ends = None if self.range is None else (0.0, 1.0)
        self.places.setdefault(place, Terms()).add(self._scaled(reward), ends)

    def _scaled(self, reward: float) -> float:
        low, high = self.range or (0.0, 1.0)
        return (reward - low) / (high - low)

    def fell_back(self, feature: str, value: str) -> None:
        """Count a value of a feature that has no column."""
        _count(self.fallbacks.setdefault(feature, {}), value)

    def divide(self, features: Collection[str]) -> None:
        """Count by these features of users from now on; those that were counted before go on."""
        self.segments = {name: self.segments.get(name, {}) for name in features}

    def _segments(self, labels: Mapping[str, str]) -> Iterator[Segment]:
        for name, value in labels.items():
            yield self.segments[name].setdefault(value, Segment())

    def learned(self, time: int, decision: Decision, reward: float, labels: Mapping[str, str] = NO_LABELS) -> None:
        """Count a reward that was learned."""
        reward = self._scaled(reward)
        ends = None if self.range is None else (0.0, 1.0)
        if decision.version >= self.held_since:
            (self.held if decision.policy == HELD else self.beside).add(reward, ends)
        if decision.policy == HELD:  # all other sums are about what the policies decide
            self.held_rewards += 1
            return
        at, before = self._bin(time), self.reward.total / self.reward.n if self.reward.n else reward
        at.reward.sum_up(1, reward, self.reward.add(reward, ends))
        self.arms.setdefault(decision.arm, ArmSums()).reward.add(reward, ends)
        base = before if self.range is None else 0.0
        uniform = 1 / (decision.n * decision.chance)
        value, part = self.uniform.add(uniform, reward, base, ends)
        for segment in self._segments(labels):
            segment.reward.add(reward, ends)
            segment.uniform.add(uniform, reward, base, ends)
        at.uniform.sum_up(1, value, part)
        for name, probability in decision.shadows.items():
            sums = self.challengers.get(name)
            if sums is not None and decision.version >= sums.since:
                sums.add(probability / decision.chance, reward, base, ends)

    def _bin(self, time: int) -> Bin:
        if self.start is None:
            self.start = time
        time = max(time, self.start)
        while (number := (time - self.start) // self.width) >= BINS:
            self.width *= 2
            old, self.bins = self.bins, {}
            for before, each in old.items():
                self.bins.setdefault(before // 2, Bin()).add(each)
        return self.bins.setdefault(number, Bin())


def _count(counts: dict[str, int], value: str) -> None:
    if value not in counts and len(counts) >= DISTINCT:
        value = OTHERS
    counts[value] = counts.get(value, 0) + 1
