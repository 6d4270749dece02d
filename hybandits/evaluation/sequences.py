"""Confidence sequences of estimates: which terms go into `intervals.bernstein`, and the range they must lie in."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybandits import statistics as intervals
from hybandits.evaluation.support import LogSupport
from hybandits.evaluation.terms import KR, KRR, X0, XX, Y0, YY, K, N, X, Y
from hybandits.foundation.checks import FloatArray


class Band(NamedTuple):
    """Bounds after each of some blocks."""

    low: FloatArray
    high: FloatArray


def _terms_of(name: str) -> tuple[int, int, int]:
    """The columns with the number of terms, their sum and the sum of their squares."""
    if name == "replay":
        return K, KR, KRR
    return (N, Y, YY) if name == "dr" else (N, X, XX)


def _range_of(policy: LogSupport, name: str, bounds: tuple[float, float], largest: float) -> tuple[float, float]:
    """The range that a term must lie in."""
    low, high = bounds
    if policy.logged or name == "replay":
        return bounds
    if name == "dr":
        return low - largest * (high - low), high + largest * (high - low)
    # A weight may be 0, so 0 is always among the values.
    return min(low, low * largest, 0.0), max(high, high * largest, 0.0)


def sequence(
    policy: LogSupport, name: str, bounds: tuple[float, float], largest: float, level: float, at: np.ndarray
) -> Band:
    """The confidence sequence of one estimate after the blocks `at`; no weight can exceed `largest`."""
    low, high = _range_of(policy, name, bounds, largest)
    columns = [policy.sums[:, :, column] for column in _terms_of(name)]
    return _by_fold(columns, low, high, bounds, level, at, apart=name == "dr" and not policy.logged)


def _by_fold(
    columns: list[FloatArray],
    low: float,
    high: float,
    mean: tuple[float, float],
    level: float,
    at: np.ndarray,
    *,
    apart: bool,
) -> Band:
    """One sequence for all folds together, or, with `apart`, one per fold and the average of their bounds.

    The model of a fold is fitted on the other folds, later rounds included. Given these, the terms of one fold are a
    sequence as `bernstein` needs it, but the terms of all folds in turn are not. All folds' sequences hold at once.
    """
    if not apart:
        columns = [column.sum(axis=1, keepdims=True) for column in columns]
    folds = columns[0].shape[1]
    lows, highs = [], []
    for f in range(folds):
        each = 1 - (1 - level) / folds
        fold_low, fold_high = intervals.bernstein(
            *(column[:, f] for column in columns), low=low, high=high, mean=mean, level=each, at=at
        )
        lows.append(fold_low)
        highs.append(fold_high)
    so_far = np.cumsum(columns[0], axis=0)[at]
    share = so_far / np.maximum(so_far.sum(axis=1, keepdims=True), 1)
    share[so_far.sum(axis=1) == 0] = 1 / folds
    return Band((share * np.array(lows).T).sum(axis=1), (share * np.array(highs).T).sum(axis=1))


def sequence_of_difference(
    policy: LogSupport,
    first: LogSupport,
    name: str,
    bounds: tuple[float, float],
    largest: float,
    level: float,
    at: np.ndarray,
) -> Band:
    """The confidence sequence of the difference of two estimates, from the differences of their terms in every round.

    The rounds that replay keeps differ from policy to policy, and policies that learn are played one by one: there it
    is the difference of the bounds.
    """
    if name == "replay" or policy.learns or first.learns:
        each = 1 - (1 - level) / 2
        mine, its = (sequence(one, name, bounds, largest, each, at) for one in (policy, first))
        return Band(mine.low - its.high, mine.high - its.low)
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
