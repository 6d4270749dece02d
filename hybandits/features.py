"""Features: x and z of candidates from named features (`Features`) or from vectors (`FeatureMap`)."""

import contextlib
import math
import numbers
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import narwhals
import numpy as np

from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray, ready
from hybandits.kernels.features import fill_crossed
from hybandits.policies.base import Policy

MAPS = {
    "das": "x = vec(u v'), z = v (Das & Sinha 2024)",
    "li": "x = vec(u v'), z = u (Li et al. 2010)",
    "shared": "x = vec(u v'), no z",
    "disjoint": "no x, z = u",
}
"""The feature maps by name. Given v, each is linear in (u, p, 1), which makes fitting cheap."""

PAIR_PLACES = {"": "", "+pair": "x", "+pair:z": "z", "+pair:xz": "xz"}
"""Suffixes of the name of a map, and where the pair features p then stand: at the end of x, of z, or of both."""

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
    user, arm, pair : int
        Lengths of u, v and p; 0 for a map without p.

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
    code: int = field(init=False, repr=False, compare=False)  # of the map in kernels
    base: str = field(init=False, repr=False, compare=False)  # the name without pair features
    pair_in: str = field(init=False, repr=False, compare=False)  # the place of the pair features

    def __post_init__(self) -> None:
        base, pair_in = split_name(self.name)
        user = checks.count("user", self.user, least=0, why="it is the length of the user's vector")
        arm = checks.count("arm", self.arm, least=0, why="it is the length of an arm's vector")
        pair = checks.count("pair", self.pair, least=0, why="it is the length of the vector of a user and an arm")
        if bool(pair) != bool(pair_in):
            wrong = f"has no place for {pair} pair features: use {base}+pair"
            missing = f"needs pair features, got pair = 0: give their number, or use {base}"
            raise ValueError(f"the map {self.name} {wrong if pair else missing}")
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
        if p is not None or self.pair:
            p = self._checked_pairs(p, len(v), several)
        x, z = self.computed(u[None], v, p)
        return (x[0], z[0]) if several else (x[0, 0], z[0, 0])

    def computed(self, users: FloatArray, v: FloatArray, p: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Return x (B, n, d1) and z (B, n, d2) for checked vectors of B users and n arms; B is 1 where p is given."""
        size, n = len(users), len(v)
        x, z = _empty((size, n, self.d1)), _empty((size, n, self.d2))
        fill_crossed(self.code, users, v, _empty((size, n, 0)) if p is None else p[None], x, z)
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


ERROR, ZERO, COLUMN = "error", "zero", "column"
"""The rules for values that are missing or unknown."""


@dataclass(frozen=True, kw_only=True)
class Number:
    """A feature that is a number, taken as it is: nothing is scaled or centred.

    Parameters
    ----------
    missing : {"error", "column"} or float
        The replacement of a missing value (None or NaN): an error, 0 together with a further column that is 1 where
        the value is missing, or this number.
    """

    missing: float | str = ERROR

    def __post_init__(self) -> None:
        if self.missing not in (ERROR, COLUMN):
            if isinstance(self.missing, str):
                raise ValueError(f"missing must be error, column or a number, got {self.missing!r}")
            object.__setattr__(self, "missing", checks.real("missing", self.missing))

    def labels(self, name: str) -> list[str]:
        """Return the names of the columns."""
        return [name, f"{name}=missing"] if self.missing == COLUMN else [name]

    def fill(self, feature: str, values: Sequence[Any], out: FloatArray) -> None:
        """Write the columns for these values into the zeros of `out`."""
        if len(values) > 1:
            with contextlib.suppress(ValueError):  # values of several shapes
                given = np.array(values)
                if given.dtype.kind in "fiub" and given.ndim == 1 and np.isfinite(given).all():
                    out[:, 0] = given
                    return
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
    values : list of str or int
        The values.
    unknown : {"column", "zero", "error"}
        The treatment of a value that is not among `values`: a further column of 0 and 1, which all such values share,
        zeros in all columns, or an error.
    missing : {"error", "column", "zero"}
        The same for a missing value (None or NaN).
    base : str or int, optional
        A further value, which has no column: it is zeros in all of them, and the columns of the others say how they
        differ from it. Logs are read like that. With unknown="zero", unknown values are taken for it.

    Examples
    --------
    >>> from hybandits import Features
    >>> Features(user={"country": Category(values=["de", "fr"], missing="zero")}).names_z
    ['constant', 'user.country=de', 'user.country=fr', 'user.country=other']
    """

    values: Sequence[str | int]
    unknown: str = COLUMN
    missing: str = ERROR
    base: str | int | None = None
    _codes: dict[Any, int | None] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("unknown", "missing"):
            if getattr(self, name) not in (ERROR, ZERO, COLUMN):
                raise ValueError(f"{name} must be column, zero or error, got {getattr(self, name)!r}")
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

    def labels(self, name: str) -> list[str]:
        """Return the names of the columns."""
        words = [str(value) for value in self.values]
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
                if not _is_missing(value):
                    code = self._unknown(_place(feature, row, values), value)
                elif self.missing == ERROR:
                    remedy = 'a category, or declare it as Category(missing="column")'
                    raise ValueError(_no_rule(feature, row, values, remedy)) from None
                else:
                    code = len(out[row]) - 1 if self.missing == COLUMN else None
            if code is not None:
                out[row, code] = 1.0

    def _unknown(self, feature: str, value: Any) -> int | None:
        plain = _category(feature, value)
        twin = checks.twin_of(plain)
        if twin in self._codes:
            kinds = type(plain).__name__, type(twin).__name__
            wrong = f"{feature} is {plain!r} ({kinds[0]}), but its categories are of type {kinds[1]}"
            raise TypeError(f"{wrong}: pass {twin!r}")
        if self.unknown == ERROR:
            near = checks.nearest(plain, map(str, self._codes))
            wrong = f"{feature} is {checks.short(plain)}, which is none of its {len(self._codes)} categories{near}"
            raise ValueError(f'{wrong}: add it, or declare Category(unknown="column")')
        return len(self.values) if self.unknown == COLUMN else None

    def plain(self) -> dict[str, Any]:
        """Return the feature as JSON can hold it."""
        base = {} if self.base is None else {"base": self.base}
        rules = {"unknown": self.unknown, "missing": self.missing}
        return {"kind": "category", "values": list(self.values), **rules, **base}


Feature = Number | Category


def plain_features(features: Mapping[str, Feature]) -> list[dict[str, Any]]:
    """Return named features as JSON can hold them, in a list, because order matters."""
    return [{"name": name, **feature.plain()} for name, feature in features.items()]


def _declared(feature: str, given: Any) -> Feature:
    if isinstance(given, Number | Category):
        return given
    if isinstance(given, str) and given == "number":
        return Number()
    if isinstance(given, Iterable) and not isinstance(given, str):
        return Category(values=list(given))
    expected = '"number", a list of categories, Number(...) or Category(...)'
    raise TypeError(f"{feature} is declared as {checks.short(given)}: expected {expected}")


def _is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, or what pandas uses for a missing value."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and bool(value != value)


def _number(feature: str, value: Any) -> float:
    if not isinstance(value, numbers.Real | np.bool_):
        given = f"{checks.short(value)} ({type(value).__name__})"
        raise TypeError(f"{feature} is {given}, expected a number: convert it, or declare a list of categories")
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
        given = f"{checks.short(value)} ({type(value).__name__})"
        raise TypeError(f"{feature} is {given}, expected a category, which is a str or an int: convert it with str")
    return plain


def _place(feature: str, row: int, values: Sequence[Any]) -> str:
    return f"{feature} in row {row}" if len(values) > 1 else feature


def _no_rule(feature: str, row: int, values: Sequence[Any], remedy: str) -> str:
    return f"{_place(feature, row, values)} is missing, and there is no rule for that: pass {remedy}"


def _is_record(data: Any) -> bool:
    """Return whether something holds values by name and is no table: a dict or a row of pandas."""
    return isinstance(data, Mapping) or (hasattr(data, "keys") and getattr(data, "ndim", 1) == 1)


def _columns(what: str, data: Any, names: Sequence[str]) -> dict[str, list[Any]]:
    """Return the named columns of records or of a table."""
    if isinstance(data, Mapping) and data and all(isinstance(value, Mapping) for value in data.values()):
        data = list(data.values())  # by id
    table = data if isinstance(data, list) else narwhals.from_native(data, eager_only=True, pass_through=True)
    if isinstance(table, narwhals.DataFrame):
        if unknown := [name for name in names if name not in table.columns]:
            raise ValueError(_no_feature(what, unknown[0], table.columns))
        for name in names:
            if table[name].dtype.is_temporal():
                raise TypeError(f"{what} feature {name!r} holds times: turn them into numbers or text")
        return {name: table[name].to_list() for name in names}
    if isinstance(data, str | Mapping) or not isinstance(data, Iterable) or hasattr(data, "collect"):
        remedy = "call collect() first" if hasattr(data, "collect") else "pass a DataFrame or a list of dicts"
        raise TypeError(f"{what} is {checks.short(data)} ({type(data).__name__}): {remedy}")
    records = list(data)
    try:
        return {name: [record[name] for record in records] for name in names}
    except (IndexError, KeyError, TypeError, ValueError):
        for i, record in enumerate(records):
            words = f"{what} {i}" if len(records) > 1 else what
            if not _is_record(record):
                given = f"{checks.short(record)} ({type(record).__name__})"
                raise TypeError(f"{words} is {given}: pass a dict or a row of a DataFrame") from None
            if missing := [name for name in names if name not in record]:
                raise ValueError(_no_feature(words, missing[0], record.keys())) from None
        raise


def _no_feature(what: str, name: str, known: Iterable[Any]) -> str:
    names = [str(each) for each in known]
    has = checks.short(names) if names else "none"
    near = checks.nearest(name, names)
    return f"{what} has no feature {name!r}{near}: it has {has}; pass None where a value is missing"


CONSTANT = "constant"
"""The name of the feature that is always 1, in logs too."""

COLUMNS = "columns"
"""The key of a policy's notes that holds the columns. The others are those of policies that were fitted to a log."""


class _Side:
    """The features of users, of arms or of both together, and their columns in a vector."""

    def __init__(self, what: str, given: Any, constant: bool) -> None:
        self.what, self.constant = what, constant
        if not isinstance(given, Mapping | None):
            raise TypeError(f'{what} must be a dict such as {{"age": "number"}}, got {checks.short(given)}')
        self.features: dict[str, Feature] = {}
        self.layout: list[tuple[str, str, Feature, slice]] = []
        self.bare = [CONSTANT] * constant
        for name, declaration in (given or {}).items():
            if not isinstance(name, str) or not name:
                raise TypeError(f"{what} must name features by strings, got {checks.short(name)}")
            words = f"{what} feature {name!r}"
            feature = self.features[name] = _declared(words, declaration)
            labels = feature.labels(name)
            self.layout.append((name, words, feature, slice(len(self.bare), len(self.bare) + len(labels))))
            self.bare += labels
        self.names = [CONSTANT] * constant + [f"{what}.{name}" for name in self.bare[constant:]]
        if twice := [name for name, n in Counter(self.bare).items() if n > 1]:
            raise ValueError(f"two columns of the {what} features are called {twice[0]!r}: rename a feature")
        self.width = len(self.bare)

    def vectors(self, data: Any) -> FloatArray:
        """Return the vectors of several users, arms or pairs, one row each."""
        if not self.features:
            return np.ones((self._size(data), self.width))
        if type(data) is _ndarray:
            if ready(data, (len(data) if data.ndim else 0, self.width)):
                return data
            return checks.array(f"{self.what}s", data, 2, self.width, f"shape (n, {self.width}), one row for each")
        columns = _columns(self.what, data, list(self.features))
        n = len(columns[self.layout[0][0]])
        out = np.zeros((n, self.width))
        if self.constant:
            out[:, 0] = 1.0
        for name, words, feature, place in self.layout:
            feature.fill(words, columns[name], out[:, place])
        return out

    def _size(self, data: Any) -> int:
        if isinstance(data, numbers.Integral) and not isinstance(data, bool):
            return checks.count(f"{self.what}s", data, least=1, why=f"it is the number of {self.what}s")
        if isinstance(data, str) or not hasattr(data, "__len__"):
            raise TypeError(f"{self.what}s must be a list or a number of {self.what}s, got {checks.short(data)}")
        return len(data)


class Features:
    """Makes x and z of candidates from what is known about a user and about arms, by name.

    A user's features become a vector u and an arm's a vector v, each with a constant 1 first, so that the products of u
    and v include every feature of a user and of an arm on its own. Numbers are not scaled.

    Parameters
    ----------
    user, arm : mapping of str to feature, optional
        The names of the features and what they are: "number", a list of categories, or `Number` or `Category` with
        rules for what is missing or unknown.
    pair : mapping of str to feature, optional
        The same for features of a user and an arm together: distance, price for this user, past purchases.
    map : {"das", "li", "shared", "disjoint"}, optional
        See `FeatureMap`. By default "das" if arms have features, otherwise "li"; with pair features, "+pair" is added.
    constant : bool
        Put a feature that is always 1 before the user's and before the arm's.

    Attributes
    ----------
    user, arm, pair : dict
        The features by name.
    d1, d2 : int
        The lengths of x and z, for the policy.
    names_x, names_z : list of str
        The names of the columns of x and z, and so of the numbers in `policy.theta` and `policy.beta(arm)`.
    user_columns, arm_columns : list of str
        The columns of the vectors of users and arms, as a log names them.

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
        user: Mapping[str, Any] | None = None,
        arm: Mapping[str, Any] | None = None,
        pair: Mapping[str, Any] | None = None,
        map: str | None = None,
        constant: bool = True,
    ) -> None:
        if not isinstance(constant, bool):
            raise TypeError(f"constant must be True or False, got {checks.short(constant)}")
        self.constant = constant
        sides = self._sides = _Side("user", user, constant), _Side("arm", arm, constant), _Side("pair", pair, False)
        self._user, self._arm, self._pair = sides
        self.user, self.arm, self.pair = (side.features for side in sides)
        if map is None:
            map = "das" if self.arm else "li"
        base, pair_in = split_name(map)
        if pair_in and not self.pair:
            raise ValueError(f'map "{map}" needs pair features: name them in pair, or use map="{base}"')
        self.map = f"{map}+pair" if self.pair and not pair_in else map
        if base == "das" and not self.arm and not self.pair:
            raise ValueError('map "das" needs features of the arms: name some in arm, or use map="li"')
        for side, needed in ((self._user, base != "das"), (self._arm, base != "disjoint")):
            if needed and not side.features and not constant:
                raise ValueError(f'map "{base}" needs {side.what} features: name some, or leave constant at True')
        self._map = FeatureMap(self.map, *(side.width for side in sides))
        self.d1, self.d2 = self._map.d1, self._map.d2
        users, arms, pairs = (side.names for side in sides)
        products = [(a, b) for b in arms for a in users] if base != "disjoint" else []
        factors = ([name for name in product if name != CONSTANT] for product in products)
        self.names_x = ["*".join(names) or CONSTANT for names in factors] + pairs * ("x" in self._map.pair_in)
        self.names_z = {"das": arms, "shared": []}.get(base, users) + pairs * ("z" in self._map.pair_in)
        self.user_columns, self.arm_columns = self._user.bare, self._arm.bare

    def __repr__(self) -> str:
        pair = f", pair={list(self.pair)}" if self.pair else ""
        sides = f"user={list(self.user)}, arm={list(self.arm)}{pair}"
        return f"Features({sides}, map={self.map!r}): d1={self.d1}, d2={self.d2}"

    def user_vector(self, user: Any = None) -> FloatArray:
        """Return the vector u of one user: a dict, a row of a DataFrame, or a DataFrame with one row."""
        if ready(user, (self._user.width,)):
            return np.asarray(user)
        if type(user) is _ndarray and user.ndim == 1:
            user = user[None]
        vectors = self.user_vectors([user] if not self.user or _is_record(user) else user)
        if len(vectors) != 1:
            raise ValueError(f"user has {len(vectors)} rows, expected one: pass one user, or use rows(users, arms)")
        return np.asarray(vectors[0])

    def user_vectors(self, users: Any) -> FloatArray:
        """Return the vectors u of several users, one row each."""
        return self._user.vectors(users)

    def arm_vectors(self, arms: Any) -> FloatArray:
        """Return the vectors v of arms, one row each, to be passed in place of the arms as long as they stay the same.

        Arms are a pandas, polars or pyarrow table, a list of dicts, or a mapping of ids to dicts; if they have no
        features, a list of their ids or their number will do.
        """
        return self._arm.vectors(arms)

    def _pairs_of(self, pairs: Any, n: int) -> FloatArray | None:
        if pairs is None and not self.pair:
            return None
        if not self.pair:
            raise ValueError("pairs are given, but there are no pair features: name them in pair, or leave pairs out")
        if pairs is None:
            raise ValueError(f"pairs are missing: pass {', '.join(self.pair)} of the user and every arm")
        if isinstance(pairs, Mapping):
            raise TypeError("pairs is a dict: pass a list of dicts or a table in the order of the arms")
        p = self._pair.vectors(pairs)
        if len(p) != n:
            raise ValueError(f"there are {n} arms and {len(p)} pairs: pass one of each per row")
        return p

    def __call__(self, user: Any, arms: Any, pairs: Any = None) -> tuple[FloatArray, FloatArray]:
        """Return x (n, d1) and z (n, d2) for one user and n arms.

        `user` is as for `user_vector`, None if users have no features, and `arms` as for `arm_vectors`; their vectors
        are taken too, which is much faster. `pairs` are a table or a list of dicts in the order of the candidates, or
        an array with one row per candidate, if there are pair features.
        """
        u, v = self.user_vector(user), self._arm.vectors(arms)
        x, z = self._map.computed(u[None], v, self._pairs_of(pairs, len(v)))
        return x[0], z[0]

    def crossed(self, users: Any, arms: Any) -> tuple[FloatArray, FloatArray]:
        """Return x (B, n, d1) and z (B, n, d2) for B users and the same n arms, for `choose_batch`.

        Examples
        --------
        >>> features = Features(user={"age": "number"})
        >>> x, z = features.crossed([{"age": 31}, {"age": 52}], ["a17", "b4"])
        >>> z.tolist()
        [[[1.0, 31.0], [1.0, 31.0]], [[1.0, 52.0], [1.0, 52.0]]]
        """
        if self.pair:
            raise ValueError("pair features belong to one user and one arm: call the features for each user")
        return self._map.computed(self.user_vectors(users), self.arm_vectors(arms))

    def rows(self, users: Any, arms: Any, pairs: Any = None) -> tuple[FloatArray, FloatArray]:
        """Return x (n, d1) and z (n, d2) for n users and one arm each, for `learn_batch`.

        Every argument has one row for every reward; `pairs` are needed if there are pair features.

        Examples
        --------
        >>> features = Features(user={"age": "number"})
        >>> x, z = features.rows([{"age": 31}, {"age": 52}], ["a17", "b4"])
        >>> z.tolist()
        [[1.0, 31.0], [1.0, 52.0]]
        """
        v = self.arm_vectors(arms)
        u = self.user_vectors(users if self.user else len(v))
        if len(u) != len(v):
            raise ValueError(f"there are {len(u)} users and {len(v)} arms: pass one of each per row")
        p, base = self._pairs_of(pairs, len(v)), self._map.base
        x = (v[:, :, None] * u[:, None, :]).reshape(len(v), -1) if base != "disjoint" else v[:, :0]
        z = {"das": v, "shared": v[:, :0]}.get(base, u)
        in_x, in_z = ([p] * (side in self._map.pair_in) for side in "xz")
        return np.concatenate([x, *in_x], axis=1), np.concatenate([z, *in_z], axis=1)

    def to_dict(self) -> dict[str, Any]:
        """Return the features as JSON can hold them."""
        sides = {side.what: plain_features(side.features) for side in self._sides if side.features}
        return {"map": self.map, "constant": self.constant, **sides}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Return the features that `to_dict` turned into this."""
        kinds: dict[str, type[Feature]] = {"number": Number, "category": Category}
        try:
            sides: dict[str, dict[str, Feature]] = {"user": {}, "arm": {}, "pair": {}}
            for what, features in sides.items():
                for each in map(dict, plain.get(what, ())):
                    name, kind = each.pop("name"), each.pop("kind")
                    features[name] = kinds[kind](**each)
            return cls(**sides, map=plain["map"], constant=plain["constant"])
        except (AttributeError, KeyError, TypeError, ValueError) as problem:
            raise ValueError(f"these are not features as to_dict() returns them ({problem}): save them again") from None

    def attach(self, policy: Policy) -> None:
        """Keep the features in a policy's notes, so that they are saved and loaded with it."""
        self._check_size(policy)
        policy.notes.update(features=self.map, user=self.user_columns, arm=self.arm_columns)
        policy.notes[COLUMNS] = self.to_dict()
        if self.pair:
            policy.notes["pair"] = self._pair.bare

    @classmethod
    def of(cls, policy: Policy) -> Self:
        """Return the features that were attached to a policy, or those of the log that it was fitted to."""
        notes = policy.notes
        if COLUMNS in notes:
            features = cls.from_dict(notes[COLUMNS])
        elif {"features", "user", "arm"} <= notes.keys():
            constant = all(notes[what][:1] == [CONSTANT] for what in ("user", "arm"))
            user, arm = (dict.fromkeys(notes[what][constant:], Number()) for what in ("user", "arm"))
            pair = dict.fromkeys(notes.get("pair", ()), Number())
            features = cls(user=user, arm=arm, pair=pair, map=notes["features"], constant=constant)
        else:
            kind = type(policy).__name__
            raise ValueError(f"the {kind} carries no features: call features.attach(policy) before it is saved")
        features._check_size(policy)
        return features

    def _check_size(self, policy: Policy) -> None:
        if (policy.d1, policy.d2) != (self.d1, self.d2):
            wrong = f"the features have d1={self.d1}, d2={self.d2}, but the policy has d1={policy.d1}, d2={policy.d2}"
            raise ValueError(f"{wrong}: construct it as {type(policy).__name__}(d1=features.d1, d2=features.d2, ...)")
