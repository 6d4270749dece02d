"""Notices features that make no difference: an x that is the same for all candidates of a call, call after call."""

from __future__ import annotations

import numpy as np

from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray

CALLS = 20
"""Calls with the same x for all candidates after which it is no accident."""

WATCHED = 50
"""Calls that are looked at."""


class CancellingWatch:
    """Looks at the candidates of the first calls, and warns if x cancels between them and z does not make up for it.

    x cancels if it is the same for all candidates of a call, but not in all calls: then it holds the user's features.
    That is as it should be if z holds them too (the map "li" for arms without features): there is a column of z that is
    the same for all candidates of a call, but not in all calls.

    Examples
    --------
    >>> watch = CancellingWatch()
    >>> watch.is_over(np.array([[1.0], [2.0]]), np.ones((2, 1)))
    True
    """

    __slots__ = ("_calls", "_common", "_first", "_moved", "_same", "_varies")

    def __init__(self) -> None:
        self._calls = 0
        self._same = 0
        self._varies = False
        self._first: tuple[FloatArray, FloatArray] | None = None
        self._common: np.ndarray = np.ones(1, bool)
        self._moved: np.ndarray = np.zeros(1, bool)

    def is_over(self, x: FloatArray, z: FloatArray) -> bool:
        """Look at the candidates of the next call; return whether no further call needs to be looked at."""
        self._calls += 1
        if len(x) > 1:
            if (x != x[0]).any():
                return True
            if self._first is None:
                self._first = x[0].copy(), z[0].copy()
            first_x, first_z = self._first
            self._varies |= bool((x[0] != first_x).any())
            self._common = self._common & (z == z[0]).all(axis=0)
            self._moved = self._moved | (z[0] != first_z)
            self._same += 1
            if self._same == CALLS and self._varies and not (self._common & self._moved).any():
                checks.warn(
                    f"x was the same for all candidates in each of {CALLS} calls, so it cancels between them and "
                    "cannot change a choice: put products of the user's and the arm's features into x "
                    "(hybandits.Features makes them), or the user's features into z"
                )
        return self._same >= CALLS or self._calls >= WATCHED
