"""The sums that the dashboard and the metrics show. They follow from the log like the model does.

Their number does not grow with the log, only with the arms and policies.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from hybandits.service.log import Decision
from hybandits.statistics import running_guess

BINS = 240
"""Stretches of time in curves. When there are more, two become one."""

FIRST_BIN = 1_000_000
"""Initial microseconds of a stretch."""

ARMS_OF_BIN = 32
"""Arms that a past stretch counts apart: those with the most decisions in it."""


class Terms(msgspec.Struct):
    """Sums of terms X_t, for their mean and its confidence sequence.

    `spread` is the sum of (X_t - G_t)^2 with guesses G_t made from the terms before, as
    `hybandits.statistics.bernstein` needs it.
    """

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
    """Sums of a policy that did not decide: of its reward, and of that minus the live policy's.

    They are of decisions by a model that had applied the row `since`.
    """

    since: int = 0
    value: Terms = msgspec.field(default_factory=Terms)
    difference: Terms = msgspec.field(default_factory=Terms)

    def add(self, weight: float, reward: float, base: float, ends: tuple[float, float] | None) -> tuple[float, float]:
        """Count a reward; return the term of the value and its part of the spread."""
        surplus = reward - base
        self.difference.add((weight - 1) * surplus, None if ends is None else (ends[0] - ends[1], ends[1] - ends[0]))
        term = base + weight * surplus
        return term, self.value.add(term, ends)


class ArmSums(msgspec.Struct):
    """Decisions for one arm, and the rewards learned of them."""

    decisions: int = 0
    reward: Terms = msgspec.field(default_factory=Terms)


class Bin(msgspec.Struct):
    """A stretch of time: its decisions, also by arm, and its parts of the sums of the whole log."""

    decisions: int = 0
    reward: Terms = msgspec.field(default_factory=Terms)
    uniform: Terms = msgspec.field(default_factory=Terms)
    arms: dict[str, int] = msgspec.field(default_factory=dict)

    def add(self, other: Bin) -> None:
        """Add the sums of another stretch."""
        self.decisions += other.decisions
        self.reward.sum_up(other.reward.n, other.reward.total, other.reward.spread)
        self.uniform.sum_up(other.uniform.n, other.uniform.total, other.uniform.spread)
        for arm, count in other.arms.items():
            self.arms[arm] = self.arms.get(arm, 0) + count

    def keep_largest(self) -> None:
        """Keep only the arms with the most decisions; of the others, `decisions` still has the number."""
        if len(self.arms) > ARMS_OF_BIN:
            order = sorted(self.arms, key=lambda arm: (-self.arms[arm], arm))
            self.arms = {arm: self.arms[arm] for arm in order[:ARMS_OF_BIN]}


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
    """Sums over decisions and rewards.

    Attributes
    ----------
    rewards : (float, float) or None
        The range of rewards. Sums are of (reward - lowest) / (highest - lowest) where there is one, so that they lie
        between 0 and 1.
    decisions : int
        Decisions made.
    reward : Terms
        Of the rewards learned.
    late : int
        Rewards that came after the window, and were not learned.
    live : str
        The policy that decides.
    uniform, challengers : Compared, dict of them
        For uniform choice, and for every challenger since it and the live policy are what they are, sums of terms
        b + w (r - b) for its value, and (w - 1) (r - b) for the difference. The weight w is the policy's probability of
        the arm divided by that of the decision. Its mean is 1 whatever came before, so b may be anything that was known
        before: 0 if there is a range, because the terms then have a lowest value, otherwise the mean reward so far.
    weights, uniform_weights : Largest
        Bounds on the weights of challengers, 1 + n (1 - floor) / floor, and of uniform choice, 1 / floor.
    arms : dict
        Sums of every arm.
    start, width, bins
        When the first stretch began and how long each is, in microseconds, and the stretches by their numbers.
    """

    rewards: tuple[float, float] | None = None
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

    def compare(self, live: str, policies: Collection[str], *, row: int, unchanged: Collection[str]) -> None:
        """Begin comparisons with these policies, one of which is live, at a row.

        Sums go on for challengers that are unchanged, as long as the live policy is the same and unchanged. All others
        begin anew, with the decisions that are made after the row.
        """
        same = live == self.live and live in unchanged
        self.challengers = {
            name: self.challengers[name]
            if same and name in unchanged and name in self.challengers
            else Compared(since=row)
            for name in policies
            if name != live
        }
        self.live = live

    def decided(self, time: int, decision: Decision) -> None:
        """Count a decision."""
        self.decisions += 1
        floor, arm = decision.floor, decision.arm
        self.weights.count(1 + decision.n * (1 - floor) / floor)
        self.uniform_weights.count(1 / floor)
        self.arms.setdefault(arm, ArmSums()).decisions += 1
        at = self._bin(time)
        at.decisions += 1
        at.arms[arm] = at.arms.get(arm, 0) + 1

    def learned(self, time: int, decision: Decision, reward: float) -> None:
        """Count a reward that was learned."""
        if self.rewards is not None:
            low, high = self.rewards
            reward = (reward - low) / (high - low)
        ends = None if self.rewards is None else (0.0, 1.0)
        at, before = self._bin(time), self.reward.total / self.reward.n if self.reward.n else reward
        at.reward.sum_up(1, reward, self.reward.add(reward, ends))
        self.arms.setdefault(decision.arm, ArmSums()).reward.add(reward, ends)
        base = before if self.rewards is None else 0.0
        uniform = 1 / (decision.n * decision.chance)
        value, part = self.uniform.add(uniform, reward, base, ends)
        at.uniform.sum_up(1, value, part)
        for name, probability in decision.shadows.items():
            sums = self.challengers.get(name)
            if sums is not None and decision.version >= sums.since:
                sums.add(probability / decision.chance, reward, base, ends)

    def _bin(self, time: int) -> Bin:
        if self.start is None:
            self.start = time
        while (number := (time - self.start) // self.width) >= BINS:
            self._widen()
        at = self.bins.get(number)
        if at is None:
            if self.bins and number > (last := max(self.bins)):
                self.bins[last].keep_largest()
            at = self.bins[number] = Bin()
        return at

    def _widen(self) -> None:
        """Make every two stretches one."""
        self.width *= 2
        old, self.bins = self.bins, {}
        for number, each in old.items():
            self.bins.setdefault(number // 2, Bin()).add(each)
        for each in self.bins.values():
            each.keep_largest()
