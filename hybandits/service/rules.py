"""Rules that stand above the policies: guard rails for arms, and the share of users that is held out."""

from typing import Annotated, Literal

import msgspec
import numpy as np
from msgspec import Meta

from hybandits.estimators.random_stream import digest_of
from hybandits.foundation.checks import FloatArray

LEAST_SHARE = 1e-6
"""The smallest limit of a share: the probability of every candidate stays positive."""

MOST_RESERVED = 0.9
"""The most that the smallest shares of all arms may add up to."""

HALVINGS = 60
"""Halvings of the interval in which the factor of `within` is searched."""

Share = Annotated[float, Meta(gt=0, lt=1)]


class ArmRule(msgspec.Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """A guard rail of one arm: always or never a candidate, and limits of its probability in every decision."""

    force: Literal["in", "out"] | None = None
    least: Annotated[float, Meta(ge=0, le=MOST_RESERVED)] = 0.0
    most: Annotated[float, Meta(ge=LEAST_SHARE, le=1)] = 1.0

    def __post_init__(self) -> None:
        if self.least > self.most:
            raise ValueError(f"least is {self.least:g}, more than most = {self.most:g}: swap them")


class Controls(msgspec.Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """All guard rails: the arm that is served to everybody, whether policies learn, and rules of arms."""

    pause: str | None = None
    frozen: bool = False
    arms: dict[str, ArmRule] = {}

    def __post_init__(self) -> None:
        reserved = sum(rule.least for rule in self.arms.values())
        if reserved > MOST_RESERVED + 1e-9:
            raise ValueError(f"the smallest shares add up to {reserved:g}: leave {1 - MOST_RESERVED:g} to the others")

    def force(self, arm: str) -> str | None:
        """Return "in" or "out" for an arm that is forced, otherwise None."""
        return self.arms[arm].force if arm in self.arms else None

    def limits(self, arms: list[str]) -> tuple[FloatArray, FloatArray] | None:
        """Return the limits of the probabilities of these arms; None if there are none."""
        rules = [self.arms.get(arm, ArmRule()) for arm in arms]
        least, most = np.array([rule.least for rule in rules]), np.array([rule.most for rule in rules])
        return (least, most) if least.any() or (most < 1).any() else None


class Holdout(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The share of users for whom the policies do not decide: they get a fixed arm, or without one uniform choice."""

    share: Share
    arm: str | None = None

    def holds(self, seed: int | None, user_key: str) -> bool:
        """Return whether a user is held out, which depends on the seed and the key alone; larger shares keep all."""
        return digest_of(["holdout", seed, user_key]) < self.share * 2**63


def within(probabilities: FloatArray, least: FloatArray, most: FloatArray) -> FloatArray:
    """Return p_i = clip(c p_i, least_i, most_i), with the factor c of each row for which they add up to 1.

    If the largest shares of all candidates add up to less than 1, they are raised in proportion.

    >>> within(np.array([[0.8, 0.1, 0.1]]), np.array([0, 0, 0.3]), np.array([0.5, 1, 1])).round(9).tolist()
    [[0.5, 0.2, 0.3]]
    """
    most = most / min(1.0, most.sum())
    low, high = np.zeros(len(probabilities)), 1 / probabilities.min(axis=1)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        is_enough = np.clip(middle[:, None] * probabilities, least, most).sum(axis=1) >= 1
        low, high = np.where(is_enough, low, middle), np.where(is_enough, middle, high)
    shares = np.clip(high[:, None] * probabilities, least, most)
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))
