"""Checks of what a call is passed: features, ids and rewards."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray
from hybandits.kernels import arrow


def check_finite(x: FloatArray, z: FloatArray) -> None:
    """Raise, saying where, if a feature is NaN, infinite or too large."""
    checks.finite("x", x, arrow.LIMIT)
    checks.finite("z", z, arrow.LIMIT)


def not_finite(x: FloatArray, z: FloatArray, rewards: FloatArray | float | None = None) -> ValueError:
    """Return the error for features or rewards that a kernel has refused."""
    try:
        check_finite(x, z)
        if rewards is not None:
            checks.finite("reward" if np.ndim(rewards) == 0 else "rewards", np.asarray(rewards), arrow.LIMIT)
    except ValueError as problem:
        return problem
    raise AssertionError("a kernel refused what the checks accept")


def checked_matrices(x: Any, z: Any, d1: int, d2: int) -> tuple[FloatArray, FloatArray]:
    """Return x (n, d1) and z (n, d2) of candidates, ready for the kernels; None is allowed where d1 or d2 is 0."""
    if not checks.ready(x, (_rows_of(x), d1)):
        x = _empty_or_array("x", x, z, d1, "(n, d1)", "d1")
    if not checks.ready(z, (_rows_of(z), d2)):
        z = _empty_or_array("z", z, x, d2, "(n, d2)", "d2")
    if x.shape[0] != z.shape[0]:
        raise ValueError(f"x has {x.shape[0]} rows and z has {z.shape[0]}: pass one row of each per candidate")
    return x, z


def _rows_of(value: Any) -> int:
    shape = getattr(value, "shape", None)
    if shape is None:
        return len(value) if isinstance(value, list | tuple) else 0
    return int(shape[0]) if shape else 0


def _empty_or_array(name: str, value: Any, other: Any, columns: int, shape: str, symbol: str) -> FloatArray:
    if value is None and columns == 0:
        return np.zeros((_rows_of(other), 0))
    return checks.array(name, value, 2, columns, f"shape {shape} with {symbol} = {columns}, one row per candidate")


def checked_vectors(x: Any, z: Any, d1: int, d2: int) -> tuple[FloatArray, FloatArray]:
    """Return x (d1,) and z (d2,) of one arm, ready for the kernels; None is allowed where d1 or d2 is 0."""
    if not checks.ready(x, (d1,)):
        if x is None and d1 == 0:
            x = np.zeros(0)
        else:
            x = checks.array("x", x, 1, d1, f"shape (d1,) with d1 = {d1}, the features of the arm that was played")
    if not checks.ready(z, (d2,)):
        if z is None and d2 == 0:
            z = np.zeros(0)
        else:
            z = checks.array("z", z, 1, d2, f"shape (d2,) with d2 = {d2}, the features of the arm that was played")
    return x, z


def id_list(arms: Any) -> Sequence[Hashable]:
    """Return ids as a sequence, those of an array as Python values. Sets are refused, because rows have an order."""
    if isinstance(arms, list | tuple | range):
        return arms
    listed = arms.tolist() if isinstance(arms, np.ndarray) else arms
    if isinstance(listed, str | bytes | set | frozenset | dict) or not isinstance(listed, Iterable):
        raise TypeError(
            f"arms must be a list of ids, got {checks.short(arms)} ({type(arms).__name__}): pass one id per row"
        )
    return list(listed)


def batch(arms: Any, rewards: Any, n: int) -> tuple[Sequence[Hashable], FloatArray]:
    """Return the ids and rewards of a batch of feedback, one of each per row."""
    ids = list(id_list(arms))
    if len(ids) != n:
        raise ValueError(f"arms has {len(ids)} ids but the features have {n} rows: pass one id per row")
    try:
        for arm in set(ids):
            if not isinstance(arm, str | int):
                checks.new_arm(arm)
    except TypeError as problem:
        if "hashable" not in str(problem):
            raise
        raise TypeError(
            f"arms holds an id that is not hashable: {checks.short(ids)}; use str, int or tuples as ids"
        ) from None
    if not checks.ready(rewards, (n,)):
        rewards = checks.array("rewards", rewards, 1, n, f"shape ({n},), one reward per row")
    return ids, rewards
