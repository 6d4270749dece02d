"""What the page and the metrics show, as sums that follow from the log like the model does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from hybandits.service.rows import Decision

UNIFORM = "uniform choice"
"""The name of the policy that all are compared with; the floor's own decisions estimate it."""

BINS = 240
"""Stretches of time that curves are kept for. When there are more, two become one."""

FIRST_BIN = 1_000_000
"""Microseconds of a stretch at first."""


@dataclass
class Terms:
    """Sums of the terms w r of one policy, for its value and a confidence sequence: their number, sum and squares."""

    n: int = 0
    total: float = 0.0
    squares: float = 0.0

    def add(self, term: float) -> None:
        """Count one more term."""
        self.n += 1
        self.total += term
        self.squares += term * term


@dataclass
class ArmSums:
    """Decisions and rewards of one arm."""

    decisions: int = 0
    rewards: int = 0
    total: float = 0.0
    squares: float = 0.0


@dataclass
class Bin:
    """What happened in a stretch of time."""

    decisions: int = 0
    rewards: int = 0
    total: float = 0.0
    squares: float = 0.0
    uniform: float = 0.0
    """Sum of the terms of uniform choice."""
    arms: dict[str, int] = field(default_factory=dict)


@dataclass
class Summary:
    """Sums over decisions and rewards.

    Attributes
    ----------
    decisions, rewards : int
        Decisions made, rewards learned.
    values : dict
        For every policy, and for uniform choice, the sums of its inverse propensity terms.
    arms : dict
        Sums of every arm.
    start, width, bins
        When the first stretch began and how long each is, in microseconds, and the stretches by their numbers.
    """

    decisions: int = 0
    rewards: int = 0
    reward: Terms = field(default_factory=Terms)
    values: dict[str, Terms] = field(default_factory=dict)
    arms: dict[str, ArmSums] = field(default_factory=dict)
    start: int | None = None
    width: int = FIRST_BIN
    bins: dict[int, Bin] = field(default_factory=dict)

    def decided(self, time: int, decision: Decision) -> None:
        """Count a decision."""
        self.decisions += 1
        self.arms.setdefault(decision.arm, ArmSums()).decisions += 1
        at = self._bin(time)
        at.decisions += 1
        at.arms[decision.arm] = at.arms.get(decision.arm, 0) + 1

    def learned(self, time: int, decision: Decision, reward: float) -> None:
        """Count a reward that was learned."""
        self.rewards += 1
        self.reward.add(reward)
        uniform = reward / (decision.n * decision.chance)
        self.values.setdefault(UNIFORM, Terms()).add(uniform)
        for name, chance in decision.shadows.items():
            self.values.setdefault(name, Terms()).add(reward * chance / decision.chance)
        for sums in (self.arms.setdefault(decision.arm, ArmSums()), self._bin(time)):
            sums.rewards += 1
            sums.total += reward
            sums.squares += reward * reward
        self._bin(time).uniform += uniform

    def _bin(self, time: int) -> Bin:
        if self.start is None:
            self.start = time
        while (number := (time - self.start) // self.width) >= BINS:
            self._widen()
        at = self.bins.get(number)
        if at is None:
            at = self.bins[number] = Bin()
        return at

    def _widen(self) -> None:
        """Make every two stretches one."""
        self.width *= 2
        old, self.bins = self.bins, {}
        for number, each in old.items():
            at = self.bins.setdefault(number // 2, Bin())
            at.decisions += each.decisions
            at.rewards += each.rewards
            at.total += each.total
            at.squares += each.squares
            at.uniform += each.uniform
            for arm, count in each.arms.items():
                at.arms[arm] = at.arms.get(arm, 0) + count

    def plain(self) -> dict[str, Any]:
        """The sums as msgspec and JSON can hold them."""
        plain: dict[str, Any] = msgspec.to_builtins(self, str_keys=True)
        return plain

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Summary:
        """The sums that `plain` was called on."""
        return msgspec.convert(plain, cls, strict=False)
