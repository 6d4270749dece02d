"""Checks on what comes in from outside. Every error says what was wrong, the value got, and what to do."""

from __future__ import annotations

import difflib
import math
import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]

FLOAT64 = np.dtype(np.float64)


def short(value: object) -> str:
    """repr, cut to a length that fits an error message."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def nearest(wrong: object, right: Iterable[str]) -> str:
    """ " (did you mean ..?)" if something is close, else nothing.

    >>> nearest("seting-1", ["setting-1", "setting-2"])
    ' (did you mean setting-1?)'
    """
    lower = {name.lower(): name for name in right}
    close = difflib.get_close_matches(str(wrong).lower(), list(lower), n=1)
    return f" (did you mean {lower[close[0]]}?)" if close else ""


def positive(name: str, value: object, why: str) -> float:
    """A finite number above 0."""
    number = real(name, value)
    if not number > 0:
        raise ValueError(f"{name} must be positive, got {value!r}: {why}")
    return number


def non_negative(name: str, value: object, why: str) -> float:
    """A finite number of at least 0."""
    number = real(name, value)
    if not number >= 0:
        raise ValueError(f"{name} must not be negative, got {value!r}: {why}")
    return number


def probability(name: str, value: object, why: str) -> float:
    """A number strictly between 0 and 1."""
    number = real(name, value)
    if not 0 < number < 1:
        raise ValueError(f"{name} must lie in (0, 1), got {value!r}: {why}")
    return number


def real(name: str, value: object) -> float:
    """A finite real number, not a bool."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number, got {short(value)} ({type(value).__name__}): pass a float")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, got {value!r}: pass an ordinary number")
    return number


def count(name: str, value: object, *, least: int, why: str) -> int:
    """A whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be a whole number, got {short(value)} ({type(value).__name__}): pass an int")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value!r}: {why}")
    return int(value)


def dimensions(d1: object, d2: object) -> tuple[int, int]:
    """d1 and d2, not both 0."""
    shared = count("d1", d1, least=0, why="it is the number of shared features, 0 for none")
    own = count("d2", d2, least=0, why="it is the number of arm-specific features, 0 for none")
    if shared == own == 0:
        raise ValueError("d1 and d2 are both 0: there is nothing to learn from; give at least one feature")
    return shared, own


def seed(value: object) -> int | None:
    """None (fresh entropy) or a whole number of at least 0."""
    if value is None:
        return None
    return count("seed", value, least=0, why="NumPy's generators take non-negative seeds; pass e.g. seed=0")


def array(name: str, value: Any, ndim: int, columns: int, shape_words: str) -> Doubles:
    """A C-contiguous, writeable array of doubles with `columns` columns; copies only where it must."""
    if value is None:
        if columns == 0:
            raise AssertionError("the caller makes empty arrays")
        raise TypeError(f"{name} is missing: expected {shape_words}")
    try:
        got = value if isinstance(value, np.ndarray) else np.asarray(value)
    except ValueError as problem:
        raise ValueError(f"{name} is not a rectangular array ({problem}): expected {shape_words}") from None
    if isinstance(got, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array, and a masked entry has no value: pass {name}.filled(...)")
    if got.ndim != ndim:
        remedy = f"; for one candidate use {name}[None, :]" if got.ndim == 1 and ndim == 2 else ""
        if got.ndim == 2 and ndim == 1:
            remedy = (
                f"; use {name}.ravel()" if name == "rewards" else f"; pass one arm's row, e.g. {name}[choice.index]"
            )
        raise ValueError(f"{name} must have {ndim} dimension(s), got shape {got.shape}: expected {shape_words}{remedy}")
    if got.shape[-1] != columns:
        unit = "columns" if ndim == 2 else "entries"
        raise ValueError(f"{name} has {got.shape[-1]} {unit}, expected {columns} (shape {got.shape}): {shape_words}")
    if got.dtype.kind not in "fiub":
        raise TypeError(f"{name} has dtype {got.dtype}, expected numbers: convert it with {name}.astype(float)")
    return np.array(got, dtype=FLOAT64, order="C")


def new_arm(arm: object) -> None:
    """Refuse what is surely a slip as the id of an arm: a whole Choice, None, NaN."""
    if isinstance(arm, tuple) and hasattr(arm, "propensity"):
        raise TypeError(f"arm is a Choice, got {short(arm)}: pass choice.arm")
    if arm is None:
        raise TypeError("arm is None: pass the id of an arm, a str, an int or a tuple of them")
    if isinstance(arm, float | np.floating) and arm != arm:
        raise ValueError("arm is nan, which equals no id, not even itself: pass a str, an int or a tuple of them")


def ridge(value: object) -> float:
    """lambda: positive, and neither so small nor so large that squares of sound features could overflow."""
    number = positive("ridge", value, "it is the lambda of the ridge regression, e.g. 1.0")
    if not 1e-20 <= number <= 1e20:
        raise ValueError(f"ridge must lie between 1e-20 and 1e20, got {value!r}: rescale the features instead")
    return number


def ready(value: Any, shape: tuple[int, ...]) -> bool:
    """Whether a value can go to the kernels as it is: doubles in C order, writeable (numba tells apart), this shape."""
    return type(value) is np.ndarray and value.dtype is FLOAT64 and value.shape == shape and value.flags.carray


def finite(name: str, value: Doubles, limit: float) -> None:
    """Raise if a number is NaN, infinite or beyond the limit; says where."""
    bad = ~(np.abs(value) <= limit)
    if bad.any():
        at = tuple(int(i) for i in np.argwhere(bad)[0])
        where = f"{name}[{', '.join(map(str, at))}]" if at else name
        got = float(value[at])
        if math.isfinite(got):
            raise ValueError(f"{where} is {got!r}, beyond {limit:g} in absolute value: rescale the data")
        raise ValueError(f"{where} is {got!r}: {name} must be finite; drop or impute such values before the call")


def reward(value: Any) -> float:
    """One reward as a float; its finiteness is left to the kernel."""
    if isinstance(value, float):
        return float(value)
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, numbers.Real | np.bool_):
        try:
            return float(value)
        except OverflowError:
            return math.inf
    raise TypeError(f"reward must be a number, got {short(value)} ({type(value).__name__}): pass a float")
