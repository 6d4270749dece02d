"""Features: x and z of candidates from what is known about a user, about arms and about both, by name or as vectors.

`Features` makes vectors u of users, v of arms and p of both together from numbers and categories by name; `FeatureMap`
makes x and z from these vectors.
"""

from __future__ import annotations

import math
import numbers
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self

import narwhals
import numpy as np

from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray, ready
from hybandits.kernels.features import fill_crossed

MAPS = {
    "das": "x = vec(u v'), z = v (Das & Sinha 2024)",
    "li": "x = vec(u v'), z = u (Li et al. 2010)",
    "shared": "x = vec(u v'), no z",
    "disjoint": "no x, z = u",
}
"""The feature maps by name. Given v, each is linear in (u, p, 1), which is what makes fitting cheap (see
`hybandits.evaluation.collect`)."""

PAIR_PLACES = {"": "", "+pair": "x", "+pair:z": "z", "+pair:xz": "xz"}
"""What may follow the name of a map, and where the pair features p then stand: at the end of x, of z, or of both."""

_ndarray, _empty = np.ndarray, np.empty


def split_name(name: str) -> tuple[str, str]:
    """Split the name of a map into that of the map without pair features, and where these stand.

    >>> split_name("das"), split_name("das+pair"), split_name("li+pair:xz")
    (('das', ''), ('das', 'x'), ('li', 'xz'))
    """
    base, plus, rest = str(name).partition("+")
    if base not in MAPS:
        raise ValueError(f"features must be one of {', '.join(MAPS)}, got {name!r}")
    if plus + rest not in PAIR_PLACES:
        raise ValueError(f"features {name!r} is not known: with pair features there are {base}+pair, :z and :xz")
    return base, PAIR_PLACES[plus + rest]


@dataclass(frozen=True)
class FeatureMap:
    """A rule that computes x and z from a user's vector u, an arm's vector v and, perhaps, a vector p of the pair.

    Call it with u and v to get x and z. The outer product vec(u v') has its columns one below the other:
    x[j * user + i] = u[i] * v[j].

    Parameters
    ----------
    name : {"das", "li", "shared", "disjoint"}, perhaps followed by "+pair", "+pair:z" or "+pair:xz"
        The features that are computed; see `MAPS`. With "+pair", x ends with p, so that all arms share its effect; with
        "+pair:z", z ends with p, so that every arm learns an effect of its own; with "+pair:xz" both do.
    user : int
        Length of the user's vector u.
    arm : int
        Length of an arm's vector v.
    pair : int
        Length of the vector p of a user and an arm together; 0 for a map without it.

    Attributes
    ----------
    d1, d2 : int
        Lengths of x and of z.

    Examples
    --------
    >>> features = FeatureMap("das", 3, 2)
    >>> features.d1, features.d2
    (6, 2)
    >>> x, z = features([1, 2, 3], [10, 20])
    >>> x.tolist(), z.tolist()
    ([10.0, 20.0, 30.0, 20.0, 40.0, 60.0], [10.0, 20.0])
    """

    name: str
    user: int
    arm: int
    pair: int = 0
    d1: int = field(init=False, repr=False, compare=False)
    d2: int = field(init=False, repr=False, compare=False)
    code: int = field(init=False, repr=False, compare=False)
    """The number by which kernels know the map; where pair features stand they see by the lengths of x and z."""
    base: str = field(init=False, repr=False, compare=False)
    """The name of the map without pair features."""
    pair_in: str = field(init=False, repr=False, compare=False)
    """Where the pair features stand: "", "x", "z" or "xz"."""

    def __post_init__(self) -> None:
        base, pair_in = split_name(self.name)
        user = checks.count("user", self.user, least=0, why="it is the length of the user's vector")
        arm = checks.count("arm", self.arm, least=0, why="it is the length of an arm's vector")
        pair = checks.count("pair", self.pair, least=0, why="it is the length of the vector of a user and an arm")
        if bool(pair) != bool(pair_in):
            raise ValueError(
                f"the map {self.name} has no place for {pair} pair features: use {base}+pair"
                if pair
                else f"the map {self.name} needs pair features, got pair = 0: give their number, or use {base}"
            )
        derived = {
            "d1": (0 if base == "disjoint" else user * arm) + pair * ("x" in pair_in),
            "d2": {"das": arm, "li": user, "shared": 0, "disjoint": user}[base] + pair * ("z" in pair_in),
            "code": list(MAPS).index(base),
            "base": base,
            "pair_in": pair_in,
        }
        for name, value in derived.items():  # plain attributes, because every call reads them
            object.__setattr__(self, name, value)

    @property
    def user_and_pair(self) -> int:
        """Length of (u, p), in which x and z are linear given the arm's v."""
        return self.user + self.pair

    def __call__(self, u: Any, v: Any, p: Any = None) -> tuple[FloatArray, FloatArray]:
        """Return x and z for a user's u and an arm's v, and their p if the map has pair features.

        If v has one row per arm, so has p, and x and z have one row per arm too.
        """
        if not ready(u, (self.user,)):
            u = checks.array("u", u, 1, self.user, f"shape ({self.user},), the user's features")
        several = True
        if type(v) is not _ndarray or not ready(v, (len(v) if v.ndim else 0, self.arm)):
            several = np.ndim(v) != 1
            words = f"length {self.arm}, an arm's features, or one such row per arm"
            v = checks.array("v", v if several else [v], 2, self.arm, words)
        n = len(v)
        x, z = _empty((n, self.d1)), _empty((n, self.d2))
        if self.pair == 0 and p is None:
            p = _empty((n, 0))
        elif not (self.pair and ready(p, (n, self.pair))):
            p = self._checked_pairs(p, n, several)
        fill_crossed(self.code, u[None], v, p[None], x[None], z[None])
        return (x, z) if several else (x[0], z[0])

    def crossed(self, u: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return x (B, n, d1) and z (B, n, d2) for the users in the rows of u (B, user) and the arms in v (n, arm).

        The map must be one without pair features.
        """
        if self.pair:
            raise ValueError(f"the map {self.name} needs pair features of every user and arm: call it for each user")
        u = checks.array("u", u, 2, self.user, f"shape (B, {self.user}), one row per user")
        v = checks.array("v", v, 2, self.arm, f"shape (n, {self.arm}), one row per arm")
        x, z = np.empty((len(u), len(v), self.d1)), np.empty((len(u), len(v), self.d2))
        fill_crossed(self.code, u, v, np.empty((len(u), len(v), 0)), x, z)
        return x, z

    def _checked_pairs(self, p: Any, n: int, several: bool) -> FloatArray:
        if not self.pair:
            raise ValueError(f"p is given, but the map {self.name} has no pair features: leave it out")
        if p is None:
            raise ValueError(f"p is missing: the map {self.name} needs the {self.pair} pair features of every arm")
        words = f"length {self.pair}, the pair features of an arm, or one such row per arm"
        pairs = checks.array("p", p if several else [p], 2, self.pair, words)
        if len(pairs) != n:
            raise ValueError(f"p has {len(pairs)} rows, but v has {n}: give one row per arm to each")
        return pairs


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
        known = [_number(feature, value) for value in values if not _is_missing(value)]
        if not known:
            raise ValueError(f"{feature} is missing in all {len(values)} rows: leave it out")
        return Number(missing=math.fsum(known) / len(known))

    def labels(self, name: str) -> list[str]:
        """Return the names of the columns."""
        return [name, f"{name}=missing"] if self.missing == COLUMN else [name]

    def fill(self, feature: str, values: Sequence[Any], out: FloatArray) -> None:
        """Write the columns for these values into the zeros of `out`."""
        for row, value in enumerate(values):
            if type(value) is float and math.isfinite(value):
                out[row, 0] = value
            elif not _is_missing(value):
                out[row, 0] = _number(_place(feature, row, values), value)
            elif self.missing == COLUMN:
                out[row, 1] = 1.0
            elif isinstance(self.missing, str):
                raise ValueError(_no_rule(feature, row, values, 'a number, or declare it as Number(missing="column")'))
            else:
                out[row, 0] = self.missing

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
        values = tuple(_category("values", value) for value in self.values)
        base = () if self.base is None else (_category("base", self.base),)
        if not values and not base:
            raise ValueError("values is empty: give at least one category")
        twice = [text for text, n in Counter(map(str, (*base, *values))).items() if n > 1]
        if twice:
            raise ValueError(f"values holds {twice[0]!r} twice, perhaps as a str and as an int: name it once")
        object.__setattr__(self, "values", values)
        codes: dict[Any, int | None] = {**dict.fromkeys(base), **{value: i for i, value in enumerate(values)}}
        object.__setattr__(self, "_codes", codes)

    _codes: dict[Any, int | None] = field(init=False, repr=False, compare=False)

    @property
    def fitted(self) -> bool:
        """Whether nothing is left to be found in data."""
        return self.values is not None

    def fit(self, feature: str, values: Sequence[Any]) -> Category:
        """Return the same feature with the categories that these values have, in the order of their names."""
        counts = Counter(_category(feature, value) for value in values if not _is_missing(value))
        if not counts:
            raise ValueError(f"{feature} is missing in all {len(values)} rows: leave it out")
        if self.most is None and len(counts) > WIDEST:
            raise ValueError(
                f"{feature} has {len(counts):,} categories, and each would become a column: declare it as "
                "Category(most=50), for example, or leave it out"
            )

        def by_name(value: str | int) -> tuple[bool, str | int]:
            return isinstance(value, str), value

        kept = sorted(counts, key=lambda value: (-counts[value], by_name(value)))[: self.most]
        return replace(self, values=tuple(sorted(kept, key=by_name)), most=None)

    def labels(self, name: str) -> list[str]:
        """Return the names of the columns."""
        words = [str(value) for value in self.values or ()]
        for rule, word in ((self.unknown, "other"), (self.missing, "missing")):
            if rule == COLUMN:
                words.append(word if word not in words else f"({word})")
        return [f"{name}={word}" for word in words]

    def fill(self, feature: str, values: Sequence[Any], out: FloatArray) -> None:
        """Write the columns for these values into the zeros of `out`."""
        codes = self._codes
        for row, value in enumerate(values):
            try:
                code = codes[value]
            except (KeyError, TypeError):
                if _is_missing(value):
                    code = len(out[row]) - 1 if self.missing == COLUMN else None
                    if self.missing == ERROR:
                        remedy = 'a category, or declare it as Category(missing="column")'
                        raise ValueError(_no_rule(feature, row, values, remedy)) from None
                else:
                    code = self._unknown(_place(feature, row, values), value)
            if code is not None:
                out[row, code] = 1.0

    def _unknown(self, feature: str, value: Any) -> int | None:
        plain = _category(feature, value)
        twin = checks.twin_of(plain)
        if twin in self._codes:
            raise TypeError(
                f"{feature} is {plain!r} ({type(plain).__name__}), but its categories are of type "
                f"{type(twin).__name__}: pass {twin!r}"
            )
        if self.unknown == ERROR:
            raise ValueError(
                f"{feature} is {checks.short(plain)}, which is none of its {len(self._codes)} categories"
                f"{checks.nearest(plain, map(str, self._codes))}: add it to values, or declare it as "
                'Category(unknown="column") or "zero"'
            )
        return len(self.values or ()) if self.unknown == COLUMN else None

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


def plain_features(features: Mapping[str, Feature]) -> list[dict[str, Any]]:
    """Return named features as JSON can hold them, in a list, because order matters."""
    return [{"name": name, **feature.plain()} for name, feature in features.items()]


def _from_plain(features: Iterable[Mapping[str, Any]]) -> dict[str, Feature]:
    kinds: dict[str, type[Feature]] = {"number": Number, "category": Category}
    return {
        each["name"]: kinds[each["kind"]](**{key: each[key] for key in each if key not in ("name", "kind")})
        for each in features
    }


def _declared(feature: str, given: Any) -> Feature | None:
    """Return the feature that a user has declared; None if it was only named."""
    if given is None or isinstance(given, Number | Category):
        return given
    if given in ("number", "category"):
        return Number() if given == "number" else Category()
    if isinstance(given, Iterable) and not isinstance(given, str):
        return Category(values=list(given))
    raise TypeError(
        f"{feature} is declared as {checks.short(given)}: expected number, category, a list of categories, Number(...) "
        "or Category(...)"
    )


def _found(feature: str, values: Sequence[Any]) -> Feature:
    """Return a feature that was only named: a number if all its values are numbers, a category if all are text."""
    known = [value for value in values if not _is_missing(value)]
    if not known:
        raise ValueError(f"{feature} is missing in all {len(values)} rows: leave it out, or declare what it is")
    if all(isinstance(value, numbers.Real | np.bool_) for value in known):
        return Number()
    odd = next((value for value in known if not isinstance(value, str)), None)
    if odd is not None:
        raise TypeError(
            f"{feature} holds {checks.short(odd)} ({type(odd).__name__}) and is neither all numbers nor all text: "
            'convert it, or declare it as "category" if it holds str and int'
        )
    return Category()


def _is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, or what pandas uses for a missing value."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and bool(value != value)


def _number(feature: str, value: Any) -> float:
    if not isinstance(value, numbers.Real | np.bool_):
        raise TypeError(
            f"{feature} is {checks.short(value)} ({type(value).__name__}), expected a number: convert it, or declare "
            'the feature as "category"'
        )
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if math.isinf(number):
        raise ValueError(f"{feature} is {number!r}: pass a finite number")
    return number


def _category(feature: str, value: Any) -> str | int:
    """Return a category as a plain str or int; whole floats are ints."""
    try:
        plain = checks.plain_id(value)
    except TypeError:
        plain = None
    if not isinstance(plain, str | int):
        raise TypeError(
            f"{feature} is {checks.short(value)} ({type(value).__name__}), expected a category, which is a str or an "
            "int: convert it with str(value)"
        )
    return plain


def _place(feature: str, row: int, values: Sequence[Any]) -> str:
    return f"{feature} in row {row}" if len(values) > 1 else feature


def _no_rule(feature: str, row: int, values: Sequence[Any], remedy: str) -> str:
    return f"{_place(feature, row, values)} is missing, and there is no rule for that: pass {remedy}"


def _is_record(data: Any) -> bool:
    """Return whether something holds values by name and is no table: a dict, a row of pandas or of a database."""
    return isinstance(data, Mapping) or (hasattr(data, "keys") and getattr(data, "ndim", 1) == 1)


def _by_id(data: Any) -> bool:
    """Return whether the data are a mapping of ids to dicts."""
    return isinstance(data, Mapping) and bool(data) and all(isinstance(value, Mapping) for value in data.values())


def _columns(what: str, data: Any, names: Sequence[str]) -> dict[str, list[Any]]:
    """Return the named columns of records or of a table."""
    if _by_id(data):
        data = list(data.values())
    if not isinstance(data, list):
        table = data if isinstance(data, Mapping) else narwhals.from_native(data, eager_only=True, pass_through=True)
        if isinstance(table, Mapping | narwhals.DataFrame):
            known = table.keys() if isinstance(table, Mapping) else table.columns
            if unknown := [name for name in names if name not in known]:
                raise ValueError(_no_feature(what, unknown[0], known))
            return {name: _values(f"{what} feature {name!r}", table[name]) for name in names}
        if isinstance(data, str) or not isinstance(data, Iterable) or hasattr(data, "collect"):
            remedy = "call collect() first" if hasattr(data, "collect") else "pass a DataFrame or a list of dicts"
            raise TypeError(f"{what} is {checks.short(data)} ({type(data).__name__}): {remedy}")
    records = list(data)
    try:
        return {name: [record[name] for record in records] for name in names}
    except (IndexError, KeyError, TypeError, ValueError):
        for i, record in enumerate(records):
            words = f"{what} {i}" if len(records) > 1 else what
            if not _is_record(record):
                raise TypeError(
                    f"{words} is {checks.short(record)} ({type(record).__name__}): pass a dict, or a row of a "
                    "DataFrame, with the features by name"
                ) from None
            for name in names:
                if name not in record.keys():  # noqa: SIM118 - rows of pandas and SQLite look into their values
                    raise ValueError(_no_feature(words, name, record.keys())) from None
        raise


def _no_feature(what: str, name: str, known: Iterable[Any]) -> str:
    names = [str(each) for each in known]
    return (
        f"{what} has no feature {name!r}{checks.nearest(name, names)}: it has {checks.short(names)}; pass None where "
        "a value is missing"
    )


def _values(feature: str, column: Any) -> list[Any]:
    """Return a column as a list, in which large integers beside gaps stay what they are."""
    if isinstance(column, list):
        return column
    series = narwhals.from_native(column, series_only=True, pass_through=True)
    if isinstance(series, narwhals.Series):
        holds_times, values = series.dtype.is_temporal(), series.to_list()
    else:
        array = np.asarray(column)
        holds_times, values = array.dtype.kind in "mM", array.tolist()
        if array.ndim != 1:
            raise TypeError(f"{feature} is {checks.short(column)} ({type(column).__name__}): pass a list of values")
    if holds_times:
        raise TypeError(f"{feature} holds times: turn them into numbers, such as hours, or into text")
    return list(values)


class _Side:
    """The features of users, of arms or of both together, and how they become a vector."""

    def __init__(self, what: str, given: Any, constant: bool) -> None:
        self.what, self.constant = what, constant
        if isinstance(given, str) or not isinstance(given, Iterable | None):
            raise TypeError(
                f"{what} must be a list of names or a mapping of names to features, got {checks.short(given)}"
            )
        self.features: dict[str, Feature | None] = {}
        for name, feature in given.items() if isinstance(given, Mapping) else ((name, None) for name in given or ()):
            if not isinstance(name, str) or not name:
                raise TypeError(f"{what} must name features by strings, got {checks.short(name)}")
            if name in self.features:
                raise ValueError(f"{what} names {name!r} twice: name it once")
            self.features[name] = _declared(f"{what} feature {name!r}", feature)
        self.unfitted = [name for name, feature in self.features.items() if feature is None or not feature.fitted]
        self.bare = [CONSTANT] * constant
        self.sources: list[str | None] = [None] * constant  # the feature that each column belongs to
        self.layout: list[tuple[str, str, Feature, slice]] = []
        for name, feature in self.features.items():
            if feature is not None:
                labels = feature.labels(name)
                columns = slice(len(self.bare), len(self.bare) + len(labels))
                self.layout.append((name, f"{what} feature {name!r}", feature, columns))
                self.bare += labels
                self.sources += [name] * len(labels)
        if twice := [name for name, n in Counter(self.bare).items() if n > 1]:
            raise ValueError(f"two columns of the {what} features are called {twice[0]!r}: rename a feature")
        self.width = len(self.bare)
        self.names = [
            name if source is None else f"{what}.{name}" for name, source in zip(self.bare, self.sources, strict=True)
        ]
        numeric = {name: columns.start for name, _, feature, columns in self.layout if isinstance(feature, Number)}
        self._numeric, self._numeric_columns = list(numeric), list(numeric.values())
        self._others = [each for each in self.layout if each[0] not in numeric]

    def fit(self, data: Any) -> dict[str, Feature | None]:
        """Return the features with everything found in data that was left open."""
        if self.unfitted and data is None:
            raise ValueError(
                f"{self.what} feature {self.unfitted[0]!r} must be found in data: pass {self.what}=, a DataFrame or a "
                "list of dicts"
            )
        fitted = dict(self.features)
        for name, values in _columns(self.what, data, self.unfitted).items() if self.unfitted else ():
            words = f"{self.what} feature {name!r}"
            feature = self.features[name] or _found(words, values)
            fitted[name] = feature if feature.fitted else feature.fit(words, values)
        return fitted

    def vectors(self, data: Any) -> FloatArray:
        """Return the vectors of several users, arms or pairs, one row each."""
        if type(data) is np.ndarray and data.dtype.names is None and self.features:
            if ready(data, (len(data) if data.ndim else 0, self.width)):
                return data
            words = f"shape (n, {self.width}), one row for each"
            return checks.array(f"{self.what}s", data, 2, self.width, words)
        if not self.features:
            return np.ones((self._size(data), self.width))
        columns = _columns(self.what, data, list(self.features))
        n = len(next(iter(columns.values())))
        for name, values in columns.items():
            if len(values) != n:
                raise ValueError(
                    f"{self.what} feature {name!r} has {len(values)} values, but others have {n}: pass one per row"
                )
        out = np.zeros((n, self.width))
        if self.constant:
            out[:, 0] = 1.0
        layout = self.layout
        if n > 1 and (numeric := self._finite([columns[name] for name in self._numeric])) is not None:
            out[:, self._numeric_columns] = numeric.T
            layout = self._others
        for name, words, feature, place in layout:
            feature.fill(words, columns[name], out[:, place])
        return out

    def _finite(self, columns: list[list[Any]]) -> FloatArray | None:
        """Return columns that hold finite numbers alone, as most do; None where each value must be examined."""
        try:
            given = np.array(columns)
        except ValueError:
            return None
        if given.ndim != 2 or given.dtype.kind not in "fiub":
            return None
        finite = given.astype(np.float64)
        return finite if np.isfinite(finite).all() else None

    def _size(self, data: Any) -> int:
        if isinstance(data, numbers.Integral) and not isinstance(data, bool):
            return checks.count(f"{self.what}s", data, least=1, why=f"it is the number of {self.what}s")
        if isinstance(data, str) or not hasattr(data, "__len__"):
            raise TypeError(f"{self.what}s must be a list or a number of {self.what}s, got {checks.short(data)}")
        return len(data)


CONSTANT = "constant"
"""The name of the feature that is always 1, in logs too."""

COLUMNS = "columns"
"""The key of a policy's notes that holds the columns. The others are those of policies that were fitted to a log."""


class CarriesFeatures(Protocol):
    """What `Features` needs of a policy."""

    d1: int
    d2: int
    notes: dict[str, Any]


class Features:
    """Makes x and z of candidates from what is known about a user and about arms, by name.

    A user's features become a vector u and an arm's a vector v, each with a constant 1 first. The map says what x and z
    are: with "das", x has all products of u and v, and z = v; with "li", x is the same, and z = u. Because of the
    constants, the products include every feature of a user and of an arm on its own. What is known of a user and an arm
    together, such as a distance, is added at the end of x. Numbers are taken as they are: nothing is scaled.

    Parameters
    ----------
    user, arm : list of str, or mapping of str to feature, optional
        The names of the features and what they are: "number", "category", a list of categories, `Number` or `Category`
        with rules for what is missing or unknown. Features that are only named, in a list, become numbers or categories
        by what `fit` finds in the data.
    pair : list of str, or mapping of str to feature, optional
        The same for features of a user and an arm together: distance, price for this user, past purchases.
    interactions : "all" or list of pairs of str
        Which products of a user's and an arm's feature x has, as (user feature, arm feature). What each feature says
        on its own is in x in any case, unless `constant` is False.
    map : {"das", "li", "shared", "disjoint"}, optional
        What x and z are; see `FeatureMap`. By default "das" if arms have features, otherwise "li". Pair features stand
        at the end of x, as "das+pair" says in full; "das+pair:z" puts them at the end of z, "das+pair:xz" of both.
    constant : bool
        Put a feature that is always 1 before the user's and before the arm's.

    Attributes
    ----------
    user, arm, pair : dict
        The features by name; None for those that are only named so far.
    fitted : bool
        Whether all columns are known. They are from the start unless something has to be found in data.
    d1, d2 : int
        The lengths of x and z, for the policy. They never change once the features are fitted.
    names_x, names_z : list of str
        What the columns of x and z are, and so what each number of `policy.theta` and `policy.beta(arm)` belongs to.

    Examples
    --------
    >>> from hybandits import Features, HyIDS, load
    >>> features = Features(user={"age": "number"}, arm={"topic": ["news", "sport"]})
    >>> features.names_z
    ['constant', 'arm.topic=news', 'arm.topic=sport', 'arm.topic=other']
    >>> policy = HyIDS(d1=features.d1, d2=features.d2, seed=0)
    >>> features.attach(policy)
    >>> x, z = features({"age": 31}, [{"topic": "sport"}, {"topic": "film"}])
    >>> dict(zip(features.names_x, x[0].tolist()))["user.age*arm.topic=sport"]
    31.0
    >>> choice = policy.choose(x, z, arms=["a17", "b4"])

    They are saved with the policy:

    >>> policy.save("page.npz")
    >>> Features.of(load("page.npz"))
    Features(user=['age'], arm=['topic'], map='das'): d1=8, d2=4
    """

    def __init__(
        self,
        *,
        user: Iterable[str] | Mapping[str, Any] | None = None,
        arm: Iterable[str] | Mapping[str, Any] | None = None,
        pair: Iterable[str] | Mapping[str, Any] | None = None,
        interactions: str | Iterable[tuple[str, str]] = "all",
        map: str | None = None,
        constant: bool = True,
    ) -> None:
        if not isinstance(constant, bool):
            raise TypeError(f"constant must be True or False, got {checks.short(constant)}")
        self.constant = constant
        self._user, self._arm = _Side("user", user, constant), _Side("arm", arm, constant)
        self._pair = _Side("pair", pair, False)
        self._sides = self._user, self._arm, self._pair
        self.user, self.arm, self.pair = (side.features for side in self._sides)
        if map is None:
            map = "das" if self._arm.features else "li"
        self._base, pair_in = split_name(map)
        if pair_in and not self._pair.features:
            raise ValueError(f'map "{map}" needs pair features: name them in pair, or use map="{self._base}"')
        if self._pair.features and not pair_in:
            map = f"{map}+pair"
        if self._base == "das" and not self._arm.features and not self._pair.features:
            raise ValueError(
                'map "das" needs features of the arms, because x and z are otherwise the same for all candidates: name '
                'some in arm, or use map="li"'
            )
        for side, needed in ((self._user, self._base != "das"), (self._arm, self._base != "disjoint")):
            if needed and not side.features and not constant:
                raise ValueError(f'map "{self._base}" needs {side.what} features: name some, or leave constant at True')
        self.map = map
        self.interactions = self._checked_interactions(interactions)
        self.fitted = not any(side.unfitted for side in self._sides)
        if self.fitted:
            self._lay_out()

    def _checked_interactions(self, given: Any) -> str | list[tuple[str, str]]:
        if isinstance(given, str):
            if given != "all":
                raise ValueError(f'interactions must be "all" or a list of pairs, got {given!r}')
            return given
        if self._base == "disjoint":
            raise ValueError('map "disjoint" has no products, so there are no interactions: leave them out')
        given = list(given)
        pairs = [tuple(pair) for pair in given if isinstance(pair, Sequence) and not isinstance(pair, str)]
        if len(pairs) != len(given) or any(len(pair) != 2 for pair in pairs):
            raise ValueError(f"interactions are {checks.short(given)}: pass pairs, as (user feature, arm feature)")
        for side, name in ((side, name) for pair in pairs for side, name in zip(self._sides, pair, strict=False)):
            if name not in side.features:
                raise ValueError(
                    f"interactions has an unknown {side.what} feature {checks.short(name)}"
                    f"{checks.nearest(name, side.features)}: the {side.what} features are "
                    f"{', '.join(side.features) or 'none'}"
                )
        return pairs

    def _lay_out(self) -> None:
        """Set the products that x holds, as columns of u and v."""
        users, arms = self._user.sources, self._arm.sources
        products = [(i, j) for j in range(len(arms)) for i in range(len(users)) if self._base != "disjoint"]
        kept = products
        if self.interactions != "all":
            pairs = set(self.interactions)
            kept = [(i, j) for i, j in products if users[i] is None or arms[j] is None or (users[i], arms[j]) in pairs]
        full = FeatureMap(self.map, self._user.width, self._arm.width, self._pair.width)
        self._full = full if kept == products else None
        self._in_user, self._in_arm = np.array(kept, np.int64).reshape(-1, 2).T
        self._pair_in_x, self._pair_in_z = "x" in full.pair_in, "z" in full.pair_in
        self._d1, self._d2 = len(kept) + full.pair * self._pair_in_x, full.d2
        if self._d1 == self._d2 == 0:
            raise ValueError("x and z would both be empty: name interactions, or leave constant at True")

    def _needs_fitting(self) -> None:
        if not self.fitted:
            names = [f"{side.what} feature {name!r}" for side in self._sides for name in side.unfitted]
            raise ValueError(
                f"the features are not fitted: call fit to find {', '.join(names)} in data, or declare them"
            )

    @property
    def user_columns(self) -> list[str]:
        """The names of the columns of a user's vector, as a log names them."""
        self._needs_fitting()
        return list(self._user.bare)

    @property
    def arm_columns(self) -> list[str]:
        """The names of the columns of an arm's vector, as a log names them."""
        self._needs_fitting()
        return list(self._arm.bare)

    @property
    def d1(self) -> int:
        """Length of x."""
        self._needs_fitting()
        return self._d1

    @property
    def d2(self) -> int:
        """Length of z."""
        self._needs_fitting()
        return self._d2

    @property
    def names_x(self) -> list[str]:
        """The names of the columns of x."""
        self._needs_fitting()
        products = []
        for i, j in zip(self._in_user, self._in_arm, strict=True):
            factors = [name for name in (self._user.names[i], self._arm.names[j]) if name != CONSTANT]
            products.append("*".join(factors) or CONSTANT)
        return products + self._pair.names * self._pair_in_x

    @property
    def names_z(self) -> list[str]:
        """The names of the columns of z."""
        self._needs_fitting()
        own = {"das": self._arm.names, "shared": []}.get(self._base, self._user.names)
        return own + self._pair.names * self._pair_in_z

    def __repr__(self) -> str:
        size = f"d1={self._d1}, d2={self._d2}" if self.fitted else "not fitted"
        pair = f", pair={list(self.pair)}" if self.pair else ""
        return f"Features(user={list(self.user)}, arm={list(self.arm)}{pair}, map={self.map!r}): {size}"

    def fit(self, user: Any = None, arm: Any = None, pair: Any = None) -> Self:
        """Find in data what was left open: which features are categories, their values, means for missing numbers.

        Parameters
        ----------
        user, arm, pair : pandas, polars or pyarrow table, list of dicts, or mapping of names to columns
            Many users, many arms and many pairs of both, one row each. Each may be left out if nothing is to be found
            in it. If the data do not fit the features, these stay as they were.

        Examples
        --------
        >>> users = {"age": [31, 52], "country": ["fr", "de"]}
        >>> Features(user=["age", "country"]).fit(user=users).names_z
        ['constant', 'user.age', 'user.country=de', 'user.country=fr', 'user.country=other']
        """
        if self.fitted:
            raise ValueError(
                "the features are fitted already, and the d1 and d2 of policies depend on them: for other columns make "
                "new Features and a new policy"
            )
        fitted = type(self)(
            user=self._user.fit(user),
            arm=self._arm.fit(arm),
            pair=self._pair.fit(pair),
            interactions=self.interactions,
            map=self.map,
            constant=self.constant,
        )
        for side, data in zip(fitted._sides, (user, arm, pair), strict=True):
            if data is not None and side.features:
                side.vectors(data)  # refuses values that cannot be used
        self.__dict__.update(fitted.__dict__)
        return self

    def user_vector(self, user: Any = None) -> FloatArray:
        """Return the vector u of one user: a dict, a row of a DataFrame, or a DataFrame with one row."""
        self._needs_fitting()
        if type(user) is np.ndarray and user.dtype.names is None:
            width = self._user.width
            words = f"shape ({width},), as user_vector returns it"
            return user if ready(user, (width,)) else checks.array("user", user, 1, width, words)
        one = not self._user.features or _is_record(user)
        vectors = self._user.vectors([user] if one else user)
        if len(vectors) != 1:
            raise ValueError(f"user has {len(vectors)} rows, expected one: pass one user, or use rows(users, arms)")
        vector: FloatArray = vectors[0]
        return vector

    def user_vectors(self, users: Any) -> FloatArray:
        """Return the vectors u of several users, one row each."""
        self._needs_fitting()
        return self._user.vectors(users)

    def arm_vectors(self, arms: Any) -> FloatArray:
        """Return the vectors v of arms, one row each, to be passed in place of the arms as long as they stay the same.

        Parameters
        ----------
        arms : pandas, polars or pyarrow table, list of dicts, mapping of ids to dicts, or mapping of names to columns
            The arms. If they have no features, a list of their ids or their number will do.
        """
        self._needs_fitting()
        return self._arm.vectors(arms)

    def _pairs_of(self, pairs: Any, n: int, arms: Any = None) -> FloatArray | None:
        """Return the vectors p of n arms; where both are given by id, in the order of the arms."""
        if pairs is None and not self._pair.features:
            return None
        if _by_id(pairs) and (_by_id(arms) or (isinstance(arms, Sequence) and not any(map(_is_record, arms)))):
            if differing := set(arms) ^ set(pairs):
                raise ValueError(
                    f"pairs and arms are of different arms, such as {min(differing, key=str)!r}: pass the same ids"
                )
            pairs = [pairs[name] for name in arms]
        if not self._pair.features:
            raise ValueError("pairs are given, but there are no pair features: name them in pair, or leave pairs out")
        if pairs is None:
            raise ValueError(f"pairs are missing: pass {', '.join(self._pair.features)} of the user and every arm")
        p = self._pair.vectors(pairs)
        if len(p) != n:
            raise ValueError(f"there are {n} arms and {len(p)} pairs: pass one of each per row")
        return p

    def __call__(self, user: Any, arms: Any, pairs: Any = None) -> tuple[FloatArray, FloatArray]:
        """Return x (n, d1) and z (n, d2) for one user and n arms.

        Parameters
        ----------
        user : dict, row of a DataFrame, or DataFrame with one row
            The user, or what `user_vector` has returned. None if users have no features.
        arms : as for `arm_vectors`
            The candidates, or what `arm_vectors` has returned, which is much faster.
        pairs : pandas, polars or pyarrow table, list of dicts, mapping of ids to dicts, or mapping of names to columns
            What is known of the user and each candidate, in the order of the candidates, if there are pair features.
            If both are mappings of ids to dicts, the ids say what belongs together. An array with one row per candidate
            is taken as it is.
        """
        u, v = self.user_vector(user), self.arm_vectors(arms)
        p = self._pairs_of(pairs, len(v), arms)
        return self._full(u, v, p) if self._full is not None else self._combined(u[None], v, p)

    def crossed(self, users: Any, arms: Any) -> tuple[FloatArray, FloatArray]:
        """Return x (B, n, d1) and z (B, n, d2) for B users and the same n arms, for `choose_batch`.

        Examples
        --------
        >>> features = Features(user={"age": "number"})
        >>> x, z = features.crossed([{"age": 31}, {"age": 52}], ["a17", "b4"])
        >>> z.tolist()
        [[[1.0, 31.0], [1.0, 31.0]], [[1.0, 52.0], [1.0, 52.0]]]
        """
        if self._pair.features:
            raise ValueError("pair features belong to one user and one arm: call the features for each user")
        u, v = self.user_vectors(users), self.arm_vectors(arms)
        return self._full.crossed(u, v) if self._full is not None else self._combined(u[:, None], v[None])

    def rows(self, users: Any, arms: Any, pairs: Any = None) -> tuple[FloatArray, FloatArray]:
        """Return x (n, d1) and z (n, d2) for n users and one arm each, for `learn_batch`.

        Every argument has one row for every reward: the user, the arm that was played and, if there are pair features,
        what is known of the two together.

        Examples
        --------
        >>> features = Features(user={"age": "number"})
        >>> x, z = features.rows([{"age": 31}, {"age": 52}], ["a17", "b4"])
        >>> z.tolist()
        [[1.0, 31.0], [1.0, 52.0]]
        """
        v = self.arm_vectors(arms)
        u = self.user_vectors(users if self._user.features else len(v))
        if len(u) != len(v):
            raise ValueError(f"there are {len(u)} users and {len(v)} arms: pass one of each per row")
        return self._combined(u, v, self._pairs_of(pairs, len(v)))

    def _combined(self, u: FloatArray, v: FloatArray, p: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Return x and z for vectors of users and arms that broadcast."""
        x = v.take(self._in_arm, axis=-1) * u.take(self._in_user, axis=-1)
        own = {"das": v, "shared": v[..., :0]}.get(self._base, u)
        z = np.empty((*x.shape[:-1], own.shape[-1]))
        z[...] = own
        if p is not None and self._pair_in_x:
            x = np.concatenate([x, p], axis=1)
        if p is not None and self._pair_in_z:
            z = np.concatenate([z, p], axis=1)
        return x, z

    def to_dict(self) -> dict[str, Any]:
        """Return the fitted features as JSON can hold them.

        Examples
        --------
        >>> features = Features(arm={"price": "number"})
        >>> Features.from_dict(features.to_dict()).names_x == features.names_x
        True
        """
        self._needs_fitting()
        return {
            "map": self.map,
            "constant": self.constant,
            "interactions": "all" if self.interactions == "all" else [list(pair) for pair in self.interactions],
            **{side.what: plain_features(side.features) for side in self._sides if side.features},  # type: ignore[arg-type]
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Return the features that `to_dict` turned into this."""
        try:
            sides: dict[str, Any] = {what: _from_plain(plain.get(what, ())) for what in ("user", "arm", "pair")}
            settings: dict[str, Any] = {name: plain[name] for name in ("map", "constant", "interactions")}
            features = cls(**sides, **settings)
            features._needs_fitting()
        except (AttributeError, KeyError, TypeError, ValueError) as problem:
            raise ValueError(f"these are not features as to_dict() returns them ({problem}): save them again") from None
        return features

    def attach(self, policy: CarriesFeatures) -> None:
        """Keep the features in a policy's notes, so that they are saved and loaded with it.

        The notes then have the entries of a policy that was fitted to a log: the map and the columns of users and arms.
        """
        self._check_size(policy)
        policy.notes.update(
            {"features": self.map, "user": self._user.bare, "arm": self._arm.bare, COLUMNS: self.to_dict()}
        )
        if self._pair.features:
            policy.notes["pair"] = self._pair.bare

    @classmethod
    def of(cls, policy: CarriesFeatures) -> Self:
        """Return the features of a policy: those that were attached to it, or those of the log that it was fitted to.

        Those of a log of your own (CSV or Parquet) are the numbers and categories that its mapping names. In other
        logs every column is a number under the name that it has there.
        """
        notes = policy.notes
        if COLUMNS in notes:
            features = cls.from_dict(notes[COLUMNS])
        elif {"features", "user", "arm"} <= notes.keys():
            constant = all(notes[what][:1] == [CONSTANT] for what in ("user", "arm"))
            user, arm = (dict.fromkeys(notes[what][constant:], Number()) for what in ("user", "arm"))
            pair = dict.fromkeys(notes.get("pair", ()), Number())
            features = cls(user=user, arm=arm, pair=pair, map=notes["features"], constant=constant)
        else:
            raise ValueError(
                f"the {type(policy).__name__} carries no features: call features.attach(policy) before it is saved"
            )
        features._check_size(policy)
        return features

    def _check_size(self, policy: CarriesFeatures) -> None:
        if (policy.d1, policy.d2) != (self.d1, self.d2):
            raise ValueError(
                f"the features have d1={self.d1}, d2={self.d2}, but the policy has d1={policy.d1}, d2={policy.d2}: "
                f"construct it as {type(policy).__name__}(d1=features.d1, d2=features.d2, ...)"
            )
