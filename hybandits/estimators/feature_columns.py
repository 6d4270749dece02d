"""The kinds of named features, numbers and categories, and the columns that each becomes."""

from __future__ import annotations

import math
import numbers
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray

WIDEST = 200
"""Categories of one feature that become columns unless the user allows more."""

ERROR, ZERO, COLUMN, MEAN = "error", "zero", "column", "mean"
"""The rules for values that are missing or unknown."""


@dataclass(frozen=True, kw_only=True)
class Number:
    """A feature that is a number, taken as it is: nothing is scaled or centred.

    Parameters
    ----------
    missing : {"error", "mean", "column"} or float
        What a missing value (None or NaN) becomes: an error, the mean of the data that the features are fitted to, 0
        together with a further column that is 1 where the value is missing, or this number.

    Examples
    --------
    >>> from hybandits import Features
    >>> Features(user={"age": Number(missing="column")}).names_z
    ['constant', 'user.age', 'user.age=missing']
    """

    missing: float | str = ERROR

    def __post_init__(self) -> None:
        if self.missing not in (ERROR, MEAN, COLUMN):
            if isinstance(self.missing, str):
                raise ValueError(f"missing must be error, mean, column or a number, got {self.missing!r}")
            object.__setattr__(self, "missing", checks.real("missing", self.missing))

    @property
    def fitted(self) -> bool:
        """Whether nothing is left to be found in data."""
        return self.missing != MEAN

    def fit(self, feature: str, values: Sequence[Any]) -> Number:
        """Return the same feature with the mean of these values in place of "mean"."""
        known = [number_of(feature, value) for value in values if not is_missing(value)]
        if not known:
            raise ValueError(f"{feature} has no mean, because all {len(values)} values are missing: leave it out")
        return Number(missing=math.fsum(known) / len(known))

    def labels(self, name: str) -> list[str]:
        """Return the names of the columns."""
        return [name, f"{name}=missing"] if self.missing == COLUMN else [name]

    def fill(self, feature: str, values: Any, out: FloatArray) -> None:
        """Write the columns for these values, which are a list or an array, into the zeros of `out`."""
        try:
            given = np.asarray(values)
        except ValueError:  # a list within a list
            given = np.empty(0, object)
        if given.dtype.kind in "fiub" and given.ndim == 1:
            column = given.astype(np.float64)
        else:
            column = np.array([math.nan if is_missing(value) else number_of(feature, value) for value in values])
        if not np.isfinite(column).all():
            if np.isinf(column).any():
                at = int(np.isinf(column).argmax())
                raise ValueError(f"{feature} is {float(column[at])!r}{in_row(at, column)}: pass a finite number")
            gaps = np.isnan(column)
            if self.missing == ERROR:
                raise ValueError(
                    f"{feature} is missing{in_row(int(gaps.argmax()), column)}, and there is no rule for that: pass a "
                    'number, or declare it as Number(missing="column"), "mean" or a number'
                )
            if self.missing == COLUMN:
                out[:, 1] = gaps
            column[gaps] = 0.0 if isinstance(self.missing, str) else self.missing
        out[:, 0] = column

    def plain(self) -> dict[str, Any]:
        """Return the feature as JSON can hold it."""
        return {"kind": "number", "missing": self.missing}


@dataclass(frozen=True, kw_only=True)
class Category:
    """A feature that is one of several values, str or int. Each value becomes a column of 0 and 1.

    Parameters
    ----------
    values : list of str or int, optional
        The values. If they are not given, `Features.fit` finds them in data.
    unknown : {"column", "zero", "error"}
        What a value becomes that is not among `values`: a further column of 0 and 1, which all such values share, zeros
        in all columns, or an error.
    missing : {"error", "column", "zero"}
        The same for a missing value (None or NaN).
    most : int, optional
        How many values to keep in `fit`: the most frequent. The others count as unknown. Without it, more than 200
        are refused.
    base : str or int, optional
        A further value, which has no column: it is zeros in all of them, and the columns of the others say how they
        differ from it. Logs are read like that. With unknown="zero", unknown values are taken for it.

    Examples
    --------
    >>> from hybandits import Features
    >>> Features(user={"country": Category(values=["de", "fr"], missing="zero")}).names_z
    ['constant', 'user.country=de', 'user.country=fr', 'user.country=other']
    """

    values: Sequence[str | int] | None = None
    unknown: str = COLUMN
    missing: str = ERROR
    most: int | None = None
    base: str | int | None = None

    def __post_init__(self) -> None:
        for name in ("unknown", "missing"):
            if getattr(self, name) not in (ERROR, ZERO, COLUMN):
                raise ValueError(f"{name} must be column, zero or error, got {getattr(self, name)!r}")
        if self.most is not None:
            checks.count("most", self.most, least=1, why="it is the number of values to keep")
            if self.values is not None:
                raise ValueError("values and most are both given: give the values that you want, or their number")
            if self.unknown == ERROR:
                raise ValueError('most makes rare values unknown, and unknown is "error": choose column or zero')
        if self.values is None:
            if self.base is not None:
                raise ValueError("base is given without values: give the other values too")
            return
        if isinstance(self.values, str) or not isinstance(self.values, Iterable):
            raise TypeError(f"values must be a list of categories, got {checks.short(self.values)}")
        values = tuple(category_of("values", value) for value in self.values)
        base = () if self.base is None else (category_of("base", self.base),)
        if not values and not base:
            raise ValueError("values is empty: give at least one category")
        twice = [text for text, n in Counter(map(str, (*base, *values))).items() if n > 1]
        if twice:
            raise ValueError(f"values holds {twice[0]!r} twice, perhaps as a str and as an int: name it once")
        object.__setattr__(self, "values", values)
        codes: dict[Any, int | None] = {**dict.fromkeys(base), **{value: i for i, value in enumerate(values)}}
        object.__setattr__(self, "_codes", codes)

    _codes = None  # not a field: the column of every value, None for the base

    @property
    def fitted(self) -> bool:
        """Whether nothing is left to be found in data."""
        return self.values is not None

    def fit(self, feature: str, values: Sequence[Any]) -> Category:
        """Return the same feature with the categories that these values have, in the order of their names."""
        counts = Counter(category_of(feature, value) for value in values if not is_missing(value))
        if not counts:
            raise ValueError(f"{feature} has no categories, because all {len(values)} values are missing: leave it out")
        most = WIDEST if self.most is None else self.most
        if len(counts) > most and self.most is None:
            raise ValueError(
                f"{feature} has {len(counts):,} categories, and each would become a column: declare it as "
                "Category(most=50), for example, or leave it out"
            )

        def by_name(value: str | int) -> tuple[bool, str | int]:
            return isinstance(value, str), value

        kept = sorted(counts, key=lambda value: (-counts[value], by_name(value)))[:most]
        return replace(self, values=tuple(sorted(kept, key=by_name)), most=None)

    def labels(self, name: str) -> list[str]:
        """Return the names of the columns."""
        words = [str(value) for value in self.values or ()]
        for rule, word in ((self.unknown, "other"), (self.missing, "missing")):
            if rule == COLUMN:
                words.append(word if word not in words else f"({word})")
        return [f"{name}={word}" for word in words]

    def fill(self, feature: str, values: Any, out: FloatArray) -> None:
        """Write the columns for these values, which are a list or an array, into the zeros of `out`."""
        codes: Any = self._codes
        for i, value in enumerate(values):
            try:
                code = codes[value]
            except (KeyError, TypeError):
                code = self._other(feature, value, in_row(i, values))
            if code is not None:
                out[i, code] = 1.0

    def _other(self, feature: str, value: Any, where: str) -> int | None:
        """Return the column of a value that is not among the categories; None for zeros."""
        codes: Any = self._codes
        width = len(self.values or ())
        if is_missing(value):
            if self.missing == ERROR:
                raise ValueError(
                    f"{feature} is missing{where}, and there is no rule for that: pass a category, or declare it as "
                    'Category(missing="column") or "zero"'
                )
            return width + (self.unknown == COLUMN) if self.missing == COLUMN else None
        plain = category_of(feature, value)
        twin = checks.twin_of(plain)
        if twin in codes:
            raise TypeError(
                f"{feature} is {plain!r} ({type(plain).__name__}){where}, but its categories are of type "
                f"{type(twin).__name__}, as {twin!r}: pass {type(twin).__name__}(value)"
            )
        if self.unknown == ERROR:
            raise ValueError(
                f"{feature} is {checks.short(plain)}{where}, which is none of its {len(codes)} categories"
                f"{checks.nearest(plain, map(str, codes))}: add it to values, or declare it as "
                'Category(unknown="column") or "zero"'
            )
        return width if self.unknown == COLUMN else None

    def plain(self) -> dict[str, Any]:
        """Return the feature as JSON can hold it."""
        plain = {
            "kind": "category",
            "values": list(self.values or ()),
            "unknown": self.unknown,
            "missing": self.missing,
        }
        return plain if self.base is None else {**plain, "base": self.base}


Feature = Number | Category


def declared(words: str, given: Any) -> Feature | None:
    """Return the feature that a user has declared; None if it was only named."""
    if given is None or isinstance(given, Number | Category):
        return given
    if isinstance(given, str):
        if given in ("number", "category"):
            return Number() if given == "number" else Category()
    elif isinstance(given, Iterable):
        return Category(values=list(given))
    raise TypeError(
        f"{words} is declared as {checks.short(given)}: expected number, category, a list of categories, Number(...) "
        "or Category(...)"
    )


def plain_features(features: Mapping[str, Feature]) -> list[dict[str, Any]]:
    """Return named features as JSON can hold them, in a list, because order matters."""
    return [{"name": name, **feature.plain()} for name, feature in features.items()]


def from_plain(plain: Mapping[str, Any]) -> Feature:
    """Return the feature that `plain` turned into this."""
    settings = {key: value for key, value in plain.items() if key not in ("name", "kind")}
    if plain["kind"] == "category" and settings.get("values") is None:
        raise ValueError("a category has no values")
    feature: Feature = {"number": Number, "category": Category}[plain["kind"]](**settings)
    if not feature.fitted:
        raise ValueError(f"{plain['name']!r} is not fitted")
    return feature


def kind_of(words: str, values: Sequence[Any]) -> Feature:
    """Return what a feature is that was only named: a number or a category."""
    known = [value for value in values if not is_missing(value)]
    if not known:
        raise ValueError(f"{words} is missing in all {len(values)} rows: leave it out, or declare what it is")
    if all(isinstance(value, numbers.Real | np.bool_) for value in known):
        return Number()
    if all(isinstance(value, str) for value in known):
        return Category()
    odd = next(value for value in known if not isinstance(value, str))
    raise TypeError(
        f"{words} holds {checks.short(odd)} ({type(odd).__name__}) and is neither all numbers nor all text: turn it "
        'into one of them, or declare it as "category" if it holds str and int'
    )


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, or what pandas uses for a missing value."""
    if value is None or type(value).__name__ in ("NAType", "NaTType", "MaskedConstant"):
        return True
    return isinstance(value, float | np.floating) and bool(value != value)


def number_of(words: str, value: Any) -> float:
    """Return a number as a float; raise if the value is not one."""
    if isinstance(value, numbers.Real | np.bool_):
        try:
            return float(value)
        except OverflowError:
            return math.inf
    raise TypeError(
        f"{words} is {checks.short(value)} ({type(value).__name__}), expected a number: convert it, or declare the "
        'feature as "category"'
    )


def category_of(words: str, value: Any) -> str | int:
    """Return a category as a plain str or int; whole floats are ints."""
    if not isinstance(value, tuple):
        try:
            plain: str | int = checks.plain_id(value)
        except TypeError:
            pass
        else:
            return plain
    raise TypeError(
        f"{words} is {checks.short(value)} ({type(value).__name__}), expected a category, which is a str or an int: "
        "convert it with str(value)"
    )


def in_row(at: int, column: Any) -> str:
    """Return in which row of several something is."""
    return f" in row {at}" if len(column) > 1 else ""
