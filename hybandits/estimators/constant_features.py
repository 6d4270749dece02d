"""Features that make no difference: an x that is the same for all candidates of a call, call after call."""

from __future__ import annotations

import numpy as np

from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray

CALLS = 20
"""Calls with the same x for all candidates after which it is no accident."""

WATCHED = 50
"""The first calls, which are examined."""


class ConstantFeatures:
    """Warn if x cancels between the candidates of the first calls and z does not make up for it.

    x cancels if it is the same for all candidates of a call, but not in all calls: then it holds the user's features.
    That is as it should be if z holds them too (the map "li" for arms without features): there is a column of z that is
    the same for all candidates of a call, but not in all calls.

    Examples
    --------
    >>> ConstantFeatures().is_over(np.array([[1.0], [2.0]]), np.ones((2, 1)))
    True
    """

    def __init__(self) -> None:
        self._calls = 0
        self._same = 0
        self._first: tuple[FloatArray, FloatArray] | None = None
        self._x_varies = False
        self._z_common = np.ones(1, bool)
        self._z_varies = np.zeros(1, bool)

    def is_over(self, x: FloatArray, z: FloatArray) -> bool:
        """Examine the candidates of the next call; return whether no further call needs to be examined."""
        self._calls += 1
        if len(x) > 1:
            if (x != x[0]).any():
                return True
            if self._first is None:
                self._first = x[0].copy(), z[0].copy()
            self._same += 1
            self._x_varies |= bool((x[0] != self._first[0]).any())
            self._z_common = self._z_common & (z == z[0]).all(axis=0)
            self._z_varies = self._z_varies | (z[0] != self._first[1])
            if self._same == CALLS and self._x_varies and not (self._z_common & self._z_varies).any():
                checks.warn(
                    f"x was the same for all candidates in each of {CALLS} calls, so it cancels between them and "
                    "cannot change a choice: put products of the user's and the arm's features into x "
                    "(hybandits.Features makes them), or the user's features into z"
                )
        return self._same >= CALLS or self._calls >= WATCHED
