"""Confidence sequences of estimates: which terms go into `intervals.bernstein`, and between what they must lie."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybandits.foundation.checks import Doubles
from hybandits.offline.evaluation import intervals
from hybandits.offline.evaluation.evidence import LogEvidence
from hybandits.offline.evaluation.terms import MIXED, PR, PRR, X0, XX, Y0, YY, N, P, X, Y


class Sequence(NamedTuple):
    """Bounds after every block."""

    low: Doubles
    high: Doubles


def no_sequence(policy: LogEvidence, name: str) -> str | None:
    """Why an estimate has no such interval; None if it has."""
    if name in ("snips", "dm") and not policy.logged:
        what = "a ratio of weighted sums" if name == "snips" else "a model's estimate"
        return f"no interval: {what} is not a mean of bounded terms; use ips or dr, or interval='bootstrap'"
    if name == "replay" and policy.tally[MIXED]:
        return "no interval: a policy with chance in it has no set of matched rounds; use ips or interval='bootstrap'"
    return None


def _terms_of(name: str) -> tuple[int, int, int]:
    """Columns: number of terms, their sum, their squares."""
    if name == "replay":
        return P, PR, PRR
    return (N, Y, YY) if name == "dr" else (N, X, XX)


def _range_of(policy: LogEvidence, name: str, bounds: tuple[float, float], largest: float) -> tuple[float, float]:
    """Between what a term must lie."""
    low, high = bounds
    if policy.logged or name == "replay":
        return bounds
    if name == "dr":
        return low - largest * (high - low), high + largest * (high - low)
    # w may be anything from 0 on, so 0 is always among the values.
    return min(low, low * largest, 0.0), max(high, high * largest, 0.0)


def sequence(
    policy: LogEvidence, name: str, bounds: tuple[float, float], largest: float, level: float, at: np.ndarray
) -> Sequence:
    """Of one estimate, after the blocks `at`; largest: the weight that no other can exceed."""
    low, high = _range_of(policy, name, bounds, largest)
    columns = [policy.sums[:, :, column] for column in _terms_of(name)]
    return _by_fold(columns, low, high, bounds, level, at, apart=name == "dr" and not policy.logged)


def _by_fold(
    columns: list[Doubles],
    low: float,
    high: float,
    mean: tuple[float, float],
    level: float,
    at: np.ndarray,
    *,
    apart: bool,
) -> Sequence:
    """One sequence, or one for each fold, all of them right at once, and the average of their bounds.

    A fold's model is made from the others' rounds, later ones too: given these, terms of the fold are a fair sequence,
    but terms of all folds in turn are not.
    """
    if not apart:
        columns = [column.sum(axis=1, keepdims=True) for column in columns]
    folds = columns[0].shape[1]
    lows, highs = [], []
    for f in range(folds):
        each = 1 - (1 - level) / folds
        made = intervals.bernstein(
            *(column[:, f] for column in columns), low=low, high=high, mean=mean, level=each, at=at
        )
        lows.append(made[0])
        highs.append(made[1])
    so_far = np.cumsum(columns[0], axis=0)[at]
    share = so_far / np.maximum(so_far.sum(axis=1, keepdims=True), 1)
    share[so_far.sum(axis=1) == 0] = 1 / folds
    return Sequence((share * np.array(lows).T).sum(axis=1), (share * np.array(highs).T).sum(axis=1))


def sequence_of_difference(
    policy: LogEvidence,
    first: LogEvidence,
    name: str,
    bounds: tuple[float, float],
    largest: float,
    level: float,
    at: np.ndarray,
) -> Sequence:
    """Of the terms' differences round by round; of replay, whose rounds are not the same ones, bounds less bounds."""
    if name == "replay":
        each = 1 - (1 - level) / 2
        mine, its = (sequence(one, name, bounds, largest, each, at) for one in (policy, first))
        return Sequence(mine.low - its.high, mine.high - its.low)
    n, total, square = _terms_of(name)
    product = Y0 if name == "dr" else X0
    ranges = [_range_of(one, name, bounds, largest) for one in (policy, first)]
    columns = [
        policy.sums[:, :, n],
        policy.sums[:, :, total] - first.sums[:, :, total],
        policy.sums[:, :, square] - 2 * policy.sums[:, :, product] + first.sums[:, :, square],
    ]
    width = bounds[1] - bounds[0]
    low, high = ranges[0][0] - ranges[1][1], ranges[0][1] - ranges[1][0]
    return _by_fold(columns, low, high, (-width, width), level, at, apart=name == "dr")
