"""Checks of what a call is passed: features, ids and rewards; features that make no difference."""

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
    x = features("x", x, (_rows_of(z),), d1, f"shape (n, d1) with d1 = {d1}, one row per candidate")
    z = features("z", z, (_rows_of(x),), d2, f"shape (n, d2) with d2 = {d2}, one row per candidate")
    if x.shape[0] != z.shape[0]:
        raise ValueError(f"x has {x.shape[0]} rows and z has {z.shape[0]}: pass one row of each per candidate")
    return x, z


def _rows_of(value: Any) -> int:
    shape = getattr(value, "shape", None)
    if shape is None:
        return len(value) if isinstance(value, list | tuple) else 0
    return int(shape[0]) if shape else 0


def features(name: str, value: Any, leading: tuple[int, ...], columns: int, expected: str) -> FloatArray:
    """Return features ready for the kernels; None is allowed for no columns, and means zeros of this leading shape."""
    if value is None and columns == 0:
        return np.zeros((*leading, 0))
    ndim = len(leading) + 1
    if isinstance(value, np.ndarray) and value.ndim == ndim and checks.ready(value, (*value.shape[:-1], columns)):
        return value
    return checks.array(name, value, ndim, columns, expected)


def checked_vectors(x: Any, z: Any, d1: int, d2: int) -> tuple[FloatArray, FloatArray]:
    """Return x (d1,) and z (d2,) of one arm, ready for the kernels; None is allowed where d1 or d2 is 0."""
    if not checks.ready(x, (d1,)):
        x = features("x", x, (), d1, f"shape (d1,) with d1 = {d1}, the features of the arm that was played")
    if not checks.ready(z, (d2,)):
        z = features("z", z, (), d2, f"shape (d2,) with d2 = {d2}, the features of the arm that was played")
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


def distinct(arms: Iterable[Hashable]) -> set[Hashable]:
    """Return the set of these ids; raise if one is not hashable."""
    try:
        return set(arms)
    except TypeError:
        raise TypeError(
            f"arms holds an id that is not hashable: {checks.short(arms)}; use str, int or tuples as ids"
        ) from None


def checked_feedback(
    arms: Any, x: Any, z: Any, rewards: Any, d1: int, d2: int
) -> tuple[Sequence[Hashable], FloatArray, FloatArray, FloatArray]:
    """Return the ids, x, z and rewards of a batch of feedback, one of each per row, ready for the kernels."""
    x, z = checked_matrices(x, z, d1, d2)
    n = len(x)
    ids = list(id_list(arms))
    if len(ids) != n:
        raise ValueError(f"arms has {len(ids)} ids but the features have {n} rows: pass one id per row")
    for arm in distinct(ids):
        if not isinstance(arm, str | int):
            checks.new_arm(arm)
    if not checks.ready(rewards, (n,)):
        rewards = checks.array("rewards", rewards, 1, n, f"shape ({n},), one reward per row")
    if not (arrow.within_limit(x) and arrow.within_limit(z) and arrow.within_limit(rewards)):
        raise not_finite(x, z, rewards)
    return ids, x, z, rewards


CALLS = 20
"""Calls with the same x for all candidates after which it is no accident."""

WATCHED = 50
"""The first calls, which are examined."""


class ConstantFeatures:
    """Warn if x cancels between the candidates of the first calls and z does not make up for it.

    x cancels if it is the same for all candidates of a call, but not in all calls: then it holds the user's features.
    That is as it should be if z holds them too (the map "li" for arms without features): there is a column of z that is
    the same for all candidates of a call, but not in all calls.
    """

    def __init__(self) -> None:
        self._calls = 0
        self._same: list[tuple[FloatArray, FloatArray, Any]] = []
        """x, the first z, and the columns of z that are the same for all candidates, of calls whose x cancels."""

    def is_over(self, x: FloatArray, z: FloatArray) -> bool:
        """Examine the candidates of the next call; return whether no further call needs to be examined."""
        self._calls += 1
        if len(x) > 1:
            if (x != x[0]).any():
                return True
            self._same.append((x[0].copy(), z[0].copy(), (z == z[0]).all(axis=0)))
        if len(self._same) == CALLS:
            users, firsts, common = (np.array(each) for each in zip(*self._same, strict=True))
            in_z = common.all(axis=0) & (firsts != firsts[0]).any(axis=0)
            if (users != users[0]).any() and not in_z.any():
                checks.warn(
                    f"x was the same for all candidates in each of {CALLS} calls, so it cancels between them and "
                    "cannot change a choice: put products of the user's and the arm's features into x "
                    "(hybandits.Features makes them), or the user's features into z"
                )
        return len(self._same) >= CALLS or self._calls >= WATCHED
