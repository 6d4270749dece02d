"""Checks of arguments. Every error names the fault, the value and the remedy."""

import difflib
import inspect
import math
import numbers
import re
import sys
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

_PACKAGE = __name__.partition(".")[0] + "."

FLOAT64 = np.dtype(np.float64)

_ndarray = np.ndarray


def short(value: object, most: int = 60) -> str:
    """Return the value's repr, shortened to fit an error message."""
    text = repr(value)
    return text if len(text) <= most else text[: most - 3] + "..."


def nearest(wrong: object, right: Iterable[str]) -> str:
    """Return " (did you mean ..?)" if one of the right names is close to the wrong one, else an empty string."""
    lower = {name.lower(): name for name in right}
    close = difflib.get_close_matches(str(wrong).lower(), list(lower), n=1)
    return f" (did you mean {lower[close[0]]}?)" if close else ""


def parameters_of(kind: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the parameters of a class or function by name, with those that a class passes on as ``**kwargs``."""
    if not inspect.isclass(kind):
        return dict(inspect.signature(kind).parameters)
    parameters: dict[str, inspect.Parameter] = {}
    for each in kind.__mro__:
        if "__init__" not in each.__dict__ or each is object:
            continue
        _, *arguments = inspect.signature(each.__dict__["__init__"]).parameters.values()
        for argument in arguments:
            if argument.kind not in (argument.VAR_POSITIONAL, argument.VAR_KEYWORD):
                parameters.setdefault(argument.name, argument)
        if not any(argument.kind is argument.VAR_KEYWORD for argument in arguments):
            break
    return parameters


def positive(name: str, value: object, why: str) -> float:
    """Return the value as a float if it is a finite number above 0; else raise, saying why it must be."""
    return _number_if(name, value, lambda number: number > 0, "must be positive", why)


def non_negative(name: str, value: object, why: str) -> float:
    """Return the value as a float if it is a finite number of at least 0; else raise."""
    return _number_if(name, value, lambda number: number >= 0, "must not be negative", why)


def probability(name: str, value: object, why: str) -> float:
    """Return the value as a float if it lies strictly between 0 and 1; else raise."""
    return _number_if(name, value, lambda number: 0 < number < 1, "must lie in (0, 1)", why)


def share(name: str, value: object, why: str) -> float:
    """Return the value as a float if it lies between 0 and 1, both included; else raise."""
    return _number_if(name, value, lambda number: 0 <= number <= 1, "must lie in [0, 1]", why)


def _number_if(name: str, value: object, fits: Callable[[float], bool], must: str, why: str) -> float:
    number = real(name, value)
    if not fits(number):
        raise ValueError(f"{name} {must}, got {value!r}: {why}")
    return number


def real(name: str, value: object) -> float:
    """Return the value as a float if it is a finite real number and not a bool; else raise."""
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
    """Return the value as an int if it is a whole number of at least `least`; else raise."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be a whole number, got {short(value)} ({type(value).__name__}): pass an int")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value!r}: {why}")
    return int(value)


def dimensions(d1: object, d2: object) -> tuple[int, int]:
    """Return d1 and d2 as ints if they are not negative and not both 0; else raise."""
    shared = count("d1", d1, least=0, why="it is the number of shared features, 0 for none")
    own = count("d2", d2, least=0, why="it is the number of arm-specific features, 0 for none")
    if shared == own == 0:
        raise ValueError("d1 and d2 are both 0: there is nothing to learn from; give at least one feature")
    return shared, own


def seed(value: object) -> int | None:
    """Return a seed: None, for fresh entropy, or a whole number of at least 0."""
    if value is None:
        return None
    return count("seed", value, least=0, why="NumPy's generators take non-negative seeds; pass e.g. seed=0")


def array(name: str, value: Any, ndim: int, columns: int, shape_words: str) -> FloatArray:
    """Return a copy of the value as a C-contiguous array of doubles with `columns` columns; raise if it is not one."""
    if value is None:
        raise TypeError(f"{name} is missing: expected {shape_words}")
    if hasattr(value, "toarray"):  # one of SciPy's sparse arrays, which the core does not import
        raise TypeError(f"{name} is a sparse {type(value).__name__}, expected {shape_words}: pass {name}.toarray()")
    try:
        given = value if isinstance(value, np.ndarray) else np.asarray(value)
    except ValueError as problem:
        raise ValueError(f"{name} is not a rectangular array ({problem}): expected {shape_words}") from None
    if isinstance(given, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array: pass {name}.filled(...)")
    if given.ndim != ndim:
        remedy = "; pass one row" if given.ndim > ndim else "; pass a list"
        if given.ndim < ndim and ndim > 1:
            remedy = f"; for one {'candidate' if ndim == 2 else 'decision'} use {name}[None, :]"
        raise ValueError(
            f"{name} must have {ndim} dimension(s), got shape {given.shape}: expected {shape_words}{remedy}"
        )
    if given.shape[-1] != columns:
        unit = "entries" if ndim == 1 else "columns"
        raise ValueError(
            f"{name} has {given.shape[-1]} {unit}, expected {columns} (shape {given.shape}): {shape_words}"
        )
    if given.dtype.kind not in "fiub":
        raise TypeError(
            f"{name} has dtype {given.dtype}, expected numbers: encode categories as 0 and 1, impute missing values, "
            "and convert with .astype(float)"
        )
    return np.array(given, dtype=FLOAT64, order="C")


def plain_id(arm: object) -> Any:
    """Return an arm's id for JSON: a str, an int or a list for a tuple of them; TypeError for other ids.

    Values that equal a str or an int become one: NumPy's strings and integers, whole floats, members of a StrEnum.
    """
    kind = type(arm)
    if kind is str or kind is int:
        return arm
    if isinstance(arm, str):
        return str.__str__(arm)
    if isinstance(arm, int | np.integer | np.bool_):
        return int(arm)
    if isinstance(arm, float | np.floating) and arm.is_integer():
        return int(arm)
    if kind is tuple:
        return [plain_id(part) for part in arm]  # type: ignore[attr-defined]
    remedy = "arm.decode()" if isinstance(arm, bytes) else "str(arm)"
    raise TypeError(
        f"arm id {short(arm)} of type {kind.__name__} cannot be saved: use str, int or tuples of them as ids, for "
        f"example {remedy}"
    )


def new_arm(arm: object) -> None:
    """Raise if the id of a new arm is a Choice, None or NaN, or cannot be saved."""
    if isinstance(arm, tuple) and hasattr(arm, "propensity"):
        raise TypeError(f"arm is a Choice, got {short(arm)}: pass choice.arm")
    if arm is None:
        raise TypeError("arm is None: pass the id of an arm, a str, an int or a tuple of them")
    if isinstance(arm, float | np.floating) and arm != arm:
        raise ValueError("arm is nan, which equals no id: pass a str, an int or a tuple of them")
    plain_id(arm)


_WHOLE = re.compile(r"(0|-?[1-9][0-9]{0,999})(\.0+)?")


def twin_of(arm: object) -> str | int | None:
    """Return the id that reads like this one but is of the other type, or None."""
    if isinstance(arm, str):
        match = _WHOLE.fullmatch(arm)
        return int(match[1]) if match else None
    return str(int(arm)) if isinstance(arm, int | np.integer) else None


def warn(message: str) -> None:
    """Warn with the line that called the package, not a line of the package."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, stacklevel=level)


def ridge(value: object) -> float:
    """Return lambda as a float if it is positive and not so extreme that squares of valid features could overflow."""
    number = positive("ridge", value, "it is the lambda of the ridge regression, e.g. 1.0")
    if not 1e-20 <= number <= 1e20:
        raise ValueError(f"ridge must lie between 1e-20 and 1e20, got {value!r}: rescale the features instead")
    return number


def ready(value: Any, shape: tuple[int, ...]) -> bool:
    """Return True if kernels can take the value as it is: a writeable, C-contiguous array of doubles of this shape.

    Numba would compile every kernel again for arrays that are not writeable. Every `choose` and `learn` calls this
    twice, so it must stay fast.
    """
    return type(value) is _ndarray and value.dtype is FLOAT64 and value.shape == shape and value.flags.carray


def finite(name: str, value: FloatArray, limit: float) -> None:
    """Raise with the index of the first number that is NaN, infinite or beyond the limit in absolute value."""
    bad = ~(np.abs(value) <= limit)
    if bad.any():
        at = tuple(int(i) for i in np.argwhere(bad)[0])
        where = f"{name}[{', '.join(map(str, at))}]" if at else name
        number = float(value[at])
        if math.isfinite(number):
            raise ValueError(f"{where} is {number!r}, beyond {limit:g} in absolute value: rescale the data")
        raise ValueError(f"{where} is {number!r}: {name} must be finite; drop or impute such values before the call")


def reward(value: Any) -> float:
    """Return one reward as a float; the kernel checks that it is finite."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, float | numbers.Real | np.bool_):
        try:
            return float(value)
        except OverflowError:
            return math.inf
    raise TypeError(
        f"reward must be a number, got {short(value)} ({type(value).__name__}): pass a float, as in reward=1.0"
    )
