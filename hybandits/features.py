"""Features: x and z of candidates from what is known about a user, about arms and about both, by name or as vectors.

`Features` makes vectors u of users, v of arms and p of both together from numbers and categories by name; `FeatureMap`
makes x and z from these vectors.
"""

from __future__ import annotations

import contextlib
import math
import numbers
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self

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
        places = ", ".join(
            f"{base}{suffix} (at the end of {' and '.join(where)})" for suffix, where in list(PAIR_PLACES.items())[1:]
        )
        raise ValueError(f"features {name!r} is not known: with pair features there are {places}")
    return base, PAIR_PLACES[plus + rest]


@dataclass(frozen=True)
class FeatureMap:
    """A rule that computes x and z from a user's vector u, an arm's vector v and, perhaps, a vector p of the pair.

    Call it with u and v to get x and z. The outer product vec(u v') has its columns one below the other:
    x[j * user + i] = u[i] * v[j].

    Parameters
    ----------
    name : {"das", "li", "shared", "disjoint"}, perhaps followed by "+pair", "+pair:z" or "+pair:xz"
        Which features are computed:

        - "das": x = vec(u v'), z = v (Das & Sinha 2024);
        - "li": x = vec(u v'), z = u (Li et al. 2010);
        - "shared": x = vec(u v'), no z;
        - "disjoint": no x, z = u.

        With "+pair", x ends with p, so that all arms share its effect; with "+pair:z", z ends with p, so that every
        arm learns an effect of its own; with "+pair:xz" both do.
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

    With the distance and the price for this user as pair features:

    >>> x, z = FeatureMap("das+pair", 1, 1, 2)([1], [[10], [20]], [[0.3, 5], [0.7, 4]])
    >>> x.tolist()
    [[10.0, 0.3, 5.0], [20.0, 0.7, 4.0]]
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
        pairs = self._checked_pairs(p, n, several) if self.pair or p is not None else _empty((n, 0))
        fill_crossed(self.code, u[None], v, pairs[None], x[None], z[None])
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
            raise ValueError(
                f"p is given, but the map {self.name} has no pair features: leave it out, or use another map"
            )
        if p is None:
            raise ValueError(f"p is missing: the map {self.name} needs the {self.pair} pair features of every arm")
        if not ready(p, (n, self.pair)):
            words = f"length {self.pair}, the pair features of an arm, or one such row per arm"
            p = checks.array("p", p if several else [p], 2, self.pair, words)
            if len(p) != n:
                raise ValueError(f"p has {len(p)} rows, but v has {n}: give one row per arm to each")
        pairs: FloatArray = p
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

    What is known of the user and each candidate comes third:

    >>> features = Features(user={"age": "number"}, pair={"distance": "number"})
    >>> x, z = features({"age": 31}, ["a17", "b4"], [{"distance": 0.3}, {"distance": 1.2}])
    >>> features.names_x, x.tolist()
    (['constant', 'user.age', 'pair.distance'], [[1.0, 31.0, 0.3], [1.0, 31.0, 1.2]])
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
        if map is None:
            map = "das" if self._arm.features else "li"
        if not isinstance(map, str) or map.partition("+")[0] not in MAPS:
            raise ValueError(f"map must be one of {', '.join(MAPS)}, got {checks.short(map)}")
        self._base, pair_in = split_name(map)
        if pair_in and not self._pair.features:
            raise ValueError(f'map "{map}" needs pair features: name them in pair, or use map="{self._base}"')
        if self._pair.features and not pair_in:
            map = f"{map}+pair"
        if self._base == "das" and not self._arm.features and not self._pair.features:
            raise ValueError(
                'map "das" needs features of the arms: without them x and z are the same for all candidates, and the '
                'user makes no difference. Name features in arm, or use map="li"'
            )
        self.map = map
        self.interactions = self._checked_pairs(interactions)
        for side, needed in ((self._user, self._base != "das"), (self._arm, self._base != "disjoint")):
            if needed and not side.features and not constant:
                raise ValueError(
                    f'there are no {side.what} features, which map "{self._base}" needs: name some, or leave constant '
                    "at True"
                )
        self._settle()

    def _checked_pairs(self, given: Any) -> str | list[tuple[str, str]]:
        if isinstance(given, str):
            if given != "all":
                raise ValueError(f'interactions must be "all" or a list of pairs, got {given!r}')
            return given
        if self._base == "disjoint":
            raise ValueError('map "disjoint" has no products, so there are no interactions: leave them out')
        pairs = []
        for pair in given:
            if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
                raise ValueError(
                    f"interactions holds {checks.short(pair)}, expected pairs such as "
                    f"{(*list(self._user.features)[:1], *list(self._arm.features)[:1])!r}: (user feature, arm feature)"
                )
            for side, name in zip((self._user, self._arm), pair, strict=True):
                if name not in side.features:
                    raise ValueError(
                        f"interactions names the {side.what} feature {checks.short(name)}, which there is not"
                        f"{checks.nearest(name, side.features)}: the {side.what} features are "
                        f"{', '.join(side.features) or 'none'}"
                    )
            pairs.append((pair[0], pair[1]))
        return pairs

    def _settle(self) -> None:
        """Work out what follows from the columns, if all of them are known."""
        self.fitted = not any(side.unfitted for side in self._sides)
        if not self.fitted:
            return
        for side in self._sides:
            side.settle()
        full = FeatureMap(self.map, self._user.width, self._arm.width, self._pair.width)
        self._full: FeatureMap | None = full
        arm, user = (grid.ravel() for grid in np.indices((full.arm, full.user)))
        if self._base == "disjoint":
            arm = user = np.zeros(0, np.int64)
        if self.interactions != "all":
            pairs = set(self.interactions)
            u_of, v_of = self._user.sources, self._arm.sources
            keep = [
                u_of[i] is None or v_of[j] is None or (u_of[i], v_of[j]) in pairs
                for i, j in zip(user.tolist(), arm.tolist(), strict=True)
            ]
            if not all(keep):
                self._full = None
            user, arm = user[keep], arm[keep]
        self._pair_in_x, self._pair_in_z = "x" in full.pair_in, "z" in full.pair_in
        self._in_user, self._in_arm = user, arm
        self._d1, self._d2 = len(user) + full.pair * self._pair_in_x, full.d2
        if self._d1 == 0 == self._d2:
            raise ValueError("x and z would both be empty: name interactions, or leave constant at True")

    @property
    def _sides(self) -> tuple[_Side, _Side, _Side]:
        return self._user, self._arm, self._pair

    def _needs_fitting(self) -> None:
        if not self.fitted:
            names = [f"{side.what} feature {name!r}" for side in self._sides for name in side.unfitted]
            data = ", ".join(f"{side.what}=..." for side in self._sides if side.features or side is not self._pair)
            raise ValueError(
                f"the features are not fitted: {', '.join(names)} must be found in data. Call fit({data}) first, or "
                "declare the values"
            )

    @property
    def user(self) -> dict[str, Feature | None]:
        """The user's features by name; None for those that are only named so far."""
        return dict(self._user.features)

    @property
    def arm(self) -> dict[str, Feature | None]:
        """The arms' features by name; None for those that are only named so far."""
        return dict(self._arm.features)

    @property
    def pair(self) -> dict[str, Feature | None]:
        """The features of a user and an arm together by name; None for those that are only named so far."""
        return dict(self._pair.features)

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
    def arm_width(self) -> int:
        """Length of an arm's vector."""
        return len(self.arm_columns)

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
        users, arms = self._user.names, self._arm.names
        products = [
            arms[j] if users[i] == CONSTANT else users[i] if arms[j] == CONSTANT else f"{users[i]}*{arms[j]}"
            for i, j in zip(self._in_user.tolist(), self._in_arm.tolist(), strict=True)
        ]
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

    # -------------------------------------------------------------- fitting

    def fit(self, user: Any = None, arm: Any = None, pair: Any = None) -> Self:
        """Find in data what was left open: which features are categories, their values, means for missing numbers.

        Parameters
        ----------
        user, arm, pair : pandas or polars DataFrame, list of dicts, or mapping of names to columns
            Many users, many arms and many pairs of both, one row each. Each may be left out if nothing is to be found
            in it.

        Returns
        -------
        Features
            The same features, fitted.

        Raises
        ------
        ValueError, TypeError
            If the data do not fit the features, which then stay as they were, or if they are fitted already.

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
        changed = Features.__new__(Features)
        changed.__dict__.update(self.__dict__)
        changed._user, changed._arm, changed._pair = self._user.fit(user), self._arm.fit(arm), self._pair.fit(pair)
        changed._settle()
        for side, data in zip(changed._sides, (user, arm, pair), strict=True):
            if data is not None and side.features:
                side.matrix(data)  # what cannot be used should be known now
        self.__dict__.update(changed.__dict__)
        return self

    # -------------------------------------------------------------- vectors

    def user_vector(self, user: Any = None) -> FloatArray:
        """Return the vector u of one user: a dict, a row of a DataFrame, or a DataFrame with one row."""
        self._needs_fitting()
        side = self._user
        if type(user) is np.ndarray and user.dtype.names is None:
            if checks.ready(user, (side.width,)):
                return user
            return checks.array("user", user, 1, side.width, f"shape ({side.width},), as user_vector returns it")
        if not side.features:
            return np.ones(side.width)
        if is_frame(user):
            rows = side.matrix(user)
            if len(rows) != 1:
                raise ValueError(f"user has {len(rows)} rows, expected one: pass one user, or use rows(users, arms)")
            user_row: FloatArray = rows[0]
            return user_row
        return side.vector(user)

    def user_vectors(self, users: Sequence[Any]) -> FloatArray:
        """Return the vectors u of several users, one row each."""
        self._needs_fitting()
        return self._user.matrix(users) if self._user.features else np.ones((len(users), self._user.width))

    def arm_vectors(self, arms: Any) -> FloatArray:
        """Return the vectors v of arms, one row each, to be passed in place of the arms as long as they stay the same.

        Parameters
        ----------
        arms : pandas or polars DataFrame, list of dicts, mapping of ids to dicts, or mapping of names to columns
            The arms. If they have no features, a list of their ids or their number will do.
        """
        self._needs_fitting()
        side = self._arm
        if type(arms) is np.ndarray and arms.dtype.names is None and side.features:
            if arms.ndim == 2 and checks.ready(arms, (len(arms), side.width)):
                return arms
            words = f"shape (n, {side.width}), as arm_vectors returns it"
            return checks.array("arms", arms, 2, side.width, words)
        if side.features:
            return side.matrix(arms)
        if isinstance(arms, numbers.Integral) and not isinstance(arms, bool):
            return np.ones((checks.count("arms", arms, least=1, why="it is the number of arms"), side.width))
        refuse_lazy(arms)
        if isinstance(arms, str) or not hasattr(arms, "__len__"):
            raise TypeError(f"arms must be a list or a number of arms, got {checks.short(arms)}")
        return np.ones((len(arms), side.width))

    def pair_vectors(self, pairs: Any) -> FloatArray:
        """Return the vectors p of a user and arms together, one row for every arm.

        Parameters
        ----------
        pairs : pandas or polars DataFrame, list of dicts, mapping of ids to dicts, or mapping of names to columns
            What is known of the user and each arm.
        """
        self._needs_fitting()
        side = self._pair
        if not side.features:
            raise ValueError("pairs are given, but there are no pair features: name them in pair, or leave pairs out")
        if pairs is None:
            raise ValueError(
                f"pairs are missing: pass {', '.join(side.features)} of the user and every arm, such as a list of dicts"
            )
        if type(pairs) is np.ndarray and pairs.dtype.names is None:
            if pairs.ndim == 2 and checks.ready(pairs, (len(pairs), side.width)):
                return pairs
            return checks.array("pairs", pairs, 2, side.width, f"shape (n, {side.width}), one row per arm")
        return side.matrix(pairs)

    def _pairs_for(self, pairs: Any, arms: Any, n: int) -> FloatArray:
        """The vectors p of these arms; where both are given by id, in the order of the arms."""
        if isinstance(pairs, Mapping) and pairs and all(map(is_record, pairs.values())):
            ids = list(arms) if _lists_ids(arms) else list(pairs)
            if len(ids) != len(pairs) or any(name not in pairs for name in ids):
                differing = [name for name in ids if name not in pairs] or [name for name in pairs if name not in ids]
                raise ValueError(
                    f"pairs and arms are of different arms, such as {checks.short(differing[0])}: pass the same ids"
                )
            pairs = [pairs[name] for name in ids]
        p = self.pair_vectors(pairs)
        if len(p) != n:
            raise ValueError(f"there are {n} arms and {len(p)} pairs: pass one of each per row")
        return p

    def __call__(self, user: Any, arms: Any, pairs: Any = None) -> tuple[FloatArray, FloatArray]:
        """Return x (n, d1) and z (n, d2) for one user and n arms.

        Parameters
        ----------
        user : dict, row of a DataFrame, or DataFrame with one row
            The user, or what `user_vector` has returned. None if users have no features.
        arms : pandas or polars DataFrame, list of dicts, mapping of ids to dicts, or mapping of names to columns
            The candidates, or what `arm_vectors` has returned, which is much faster. If arms have no features, a list
            of their ids or their number will do.
        pairs : pandas or polars DataFrame, list of dicts, mapping of ids to dicts, or mapping of names to columns
            What is known of the user and each candidate, in the order of the candidates, if there are pair features.
            If both are mappings of ids to dicts, the ids say what belongs together. An array with one row per candidate
            is taken as it is.
        """
        u, v = self.user_vector(user), self.arm_vectors(arms)
        p = None if pairs is None and not self._pair.features else self._pairs_for(pairs, arms, len(v))
        if self._full is not None:
            return self._full(u, v, p)
        x, z = v.take(self._in_arm, axis=1) * u[self._in_user], self._own(np.broadcast_to(u, (len(v), len(u))), v)
        return self._with_pairs(x, z, p)

    def crossed(self, users: Any, arms: Any) -> tuple[FloatArray, FloatArray]:
        """Return x (B, n, d1) and z (B, n, d2) for B users and the same n arms, for `choose_batch`.

        Parameters
        ----------
        users : pandas or polars DataFrame, list of dicts, or mapping of names to columns
            One row for every decision.
        arms : as for a call
            The candidates of all decisions.

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
        if self._full is not None:
            return self._full.crossed(u, v)
        x = v.take(self._in_arm, axis=1) * u.take(self._in_user, axis=1)[:, None]
        size, n = len(u), len(v)
        own = self._own(np.repeat(u, n, axis=0), np.tile(v, (size, 1)))
        return x, own.reshape(size, n, own.shape[1])

    def rows(self, users: Any, arms: Any, pairs: Any = None) -> tuple[FloatArray, FloatArray]:
        """Return x (n, d1) and z (n, d2) for n users and one arm each, for `learn_batch`.

        Parameters
        ----------
        users, arms, pairs : pandas or polars DataFrame, list of dicts, or mapping of names to columns
            One row for every reward: the user, the arm that was played and, if there are pair features, what is known
            of the two together.

        Examples
        --------
        >>> features = Features(user={"age": "number"})
        >>> x, z = features.rows([{"age": 31}, {"age": 52}], ["a17", "b4"])
        >>> z.tolist()
        [[1.0, 31.0], [1.0, 52.0]]
        """
        v = self.arm_vectors(arms)
        u = self.user_vectors(users) if self._user.features else np.ones((len(v), self._user.width))
        if len(u) != len(v):
            raise ValueError(f"there are {len(u)} users and {len(v)} arms: pass one of each per row")
        p = None if pairs is None and not self._pair.features else self._pairs_for(pairs, None, len(v))
        return self._with_pairs(v.take(self._in_arm, axis=1) * u.take(self._in_user, axis=1), self._own(u, v), p)

    def _own(self, u: FloatArray, v: FloatArray) -> FloatArray:
        if self._base == "shared":
            return np.empty((len(v), 0))
        return np.array(v if self._base == "das" else u, order="C")

    def _with_pairs(self, x: FloatArray, z: FloatArray, p: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        if p is None:
            return x, z
        return (
            np.concatenate([x, p], axis=1) if self._pair_in_x else x,
            np.concatenate([z, p], axis=1) if self._pair_in_z else z,
        )

    # -------------------------------------------------------------- files

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
            "user": self._user.plain(),
            "arm": self._arm.plain(),
            **({"pair": self._pair.plain()} if self._pair.features else {}),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Return the features that `to_dict` turned into this."""
        try:
            sides = plain["user"], plain["arm"], plain.get("pair", ())  # which files had not always
            user, arm, pair = ({each["name"]: from_plain(each) for each in side} for side in sides)
            settings: dict[str, Any] = {name: plain[name] for name in ("map", "constant", "interactions")}
            return cls(user=user, arm=arm, pair=pair, **settings)
        except (KeyError, TypeError, ValueError) as problem:
            raise ValueError(f"these are not features as to_dict() returns them ({problem}): write them anew") from None

    def attach(self, policy: CarriesFeatures) -> None:
        """Keep the features with a policy, in its notes, so that they are saved and loaded with it.

        The notes then say what those of a policy that was fitted to a log say: the map, and the columns of users and
        arms.

        Raises
        ------
        ValueError
            If the policy has another d1 or d2 than the features.
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
        logs, and in those converted by earlier versions, every column is a number under the name that it has there.

        Raises
        ------
        ValueError
            If the policy carries no features, or has another d1 or d2 than they do.
        """
        notes = policy.notes
        if COLUMNS in notes:
            features = cls.from_dict(notes[COLUMNS])
        elif {"features", "user", "arm"} <= notes.keys():
            named = list(notes["user"]), list(notes["arm"])
            constant = all(names[:1] == [CONSTANT] for names in named)
            user, arm = (dict.fromkeys(names[constant:], Number()) for names in named)
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


def _lists_ids(arms: Any) -> bool:
    """Return whether the arms are given by their ids: in a list, or as the keys of what is known about each."""
    if isinstance(arms, Mapping):
        return bool(arms) and all(map(is_record, arms.values()))
    return isinstance(arms, Sequence) and not any(map(is_record, arms))


class _Side:
    """The features of users, those of arms or those of both together, and how they become a vector."""

    def __init__(self, what: str, given: Any, constant: bool) -> None:
        self.what, self.constant = what, constant
        if isinstance(given, str) or not isinstance(given, Iterable | None):
            raise TypeError(
                f"{what} must be a list of names or a mapping of names to features, got {checks.short(given)}"
            )
        named = given.items() if isinstance(given, Mapping) else ((name, None) for name in given or ())
        self.features: dict[str, Feature | None] = {}
        for name, feature in named:
            if not isinstance(name, str) or not name:
                raise TypeError(f"{what} must name features by strings, got {checks.short(name)}")
            if name in self.features:
                raise ValueError(f"{what} names {name!r} twice: name it once")
            self.features[name] = declared(f"{what} feature {name!r}", feature)

    @property
    def unfitted(self) -> list[str]:
        """The features that must be found in data."""
        return [name for name, feature in self.features.items() if feature is None or not feature.fitted]

    @property
    def fitted(self) -> bool:
        return not self.unfitted

    def settle(self) -> None:
        """Lay out the columns, all of which are known."""
        self.bare = [CONSTANT] * self.constant
        """The names of the columns, as a log names them."""
        self.sources: list[str | None] = [None] * self.constant
        """The feature that each column belongs to; None for the constant."""
        self.layout: list[tuple[str, str, Any, slice]] = []
        """Name, words for errors, feature and columns of every feature."""
        for name, feature in self.features.items():
            assert feature is not None
            labels = feature.labels(name)
            columns = slice(len(self.bare), len(self.bare) + len(labels))
            self.layout.append((name, f"{self.what} feature {name!r}", feature, columns))
            self.bare += labels
            self.sources += [name] * len(labels)
        bare_numbers = [(name, columns.start) for name, _, kind, columns in self.layout if kind == Number()]
        self._number_names = [name for name, _ in bare_numbers]
        self._number_columns = [column for _, column in bare_numbers]
        twice = [name for name, n in Counter(self.bare).items() if n > 1]
        if twice:
            raise ValueError(f"two columns of the {self.what} features are called {twice[0]!r}: rename a feature")
        self.width = len(self.bare)
        self.names = [
            name if source is None else f"{self.what}.{name}"
            for name, source in zip(self.bare, self.sources, strict=True)
        ]

    def fit(self, data: Any) -> _Side:
        """Return the same side with everything found in data that was left open."""
        fitted = _Side(self.what, self.features, self.constant)
        if not self.unfitted:
            return fitted
        if data is None:
            raise ValueError(
                f"{self.what} feature {self.unfitted[0]!r} must be found in data: pass {self.what}=, a DataFrame or a "
                "list of dicts"
            )
        columns = columns_of(self.what, data, self.unfitted)
        for name, column in columns.items():
            values = listed(f"{self.what} feature {name!r}", column)
            words = f"{self.what} feature {name!r}"
            feature = self.features[name]
            if feature is None:
                feature = kind_of(words, values)
            fitted.features[name] = feature if feature.fitted else feature.fit(words, values)
        return fitted

    def vector(self, record: Any) -> FloatArray:
        """Return the vector of one user or arm."""
        vector = np.zeros(self.width)
        out = vector[None, :]
        if self.constant:
            vector[0] = 1.0
        record = record_of(self.what, record)
        for name, words, feature, columns in self.layout:
            value = entry_of(self.what, record, name)
            if type(value) is float and type(feature) is Number and math.isfinite(value):
                vector[columns.start] = value
            else:
                feature.fill(words, [value], out[:, columns])
        return vector

    def matrix(self, data: Any) -> FloatArray:
        """Return the vectors of several users or arms, one row each."""
        names = list(self.features)
        numbers = self._numbers_of(data)
        if numbers is not None:
            names = [name for name in names if name not in self._number_names]
        given = columns_of(self.what, data, names)
        n = len(data) if numbers is not None else len(next(iter(given.values())))
        out = np.zeros((n, self.width))
        if self.constant:
            out[:, 0] = 1.0
        if numbers is not None:
            out[:, self._number_columns] = numbers
        for name, words, feature, columns in self.layout:
            if name not in given:
                continue
            column = given[name]
            if not isinstance(column, list):
                array = np.asarray(column)
                numbers_alone = type(feature) is Number and array.dtype.kind in "fiub"
                column = array if numbers_alone else listed(words, column)
            if len(column) != n:
                raise ValueError(f"{words} has {len(column)} values, but other features have {n}: pass one per row")
            feature.fill(words, column, out[:, columns])
        return out

    def _numbers_of(self, data: Any) -> Any:
        """All features that are finite numbers as they are, of a list of dicts that has nothing else in their place.

        None where one has to look closer, feature by feature, which takes several times as long.
        """
        if not self._number_names or type(data) is not list or not all(type(record) is dict for record in data):
            return None
        try:
            numbers = np.array([[record[name] for name in self._number_names] for record in data])
        except (KeyError, ValueError):
            return None
        if numbers.ndim != 2 or numbers.dtype.kind not in "fiu":
            return None
        numbers = numbers.astype(np.float64)
        return numbers if np.isfinite(numbers).all() else None

    def plain(self) -> list[dict[str, Any]]:
        """Return the features as JSON can hold them."""
        return plain_features({name: feature for name, _, feature, _ in self.layout})


def is_frame(data: Any) -> bool:
    """Return whether the data are a table with named columns: of pandas, polars or pyarrow, or a structured array."""
    return not isinstance(data, Mapping) and column_names(data) is not None and hasattr(data, "__len__")


def column_names(data: Any) -> list[Any] | None:
    """Return the names of the columns of a table; None if it is no table."""
    refuse_lazy(data)
    for names in (getattr(data, "column_names", None), getattr(data, "columns", None)):
        if names is not None:
            return list(names)
    return fields_of(data) if isinstance(data, np.ndarray) and data.ndim == 1 else None


def refuse_lazy(data: Any) -> None:
    """Raise if the data are a query of polars that has not been run."""
    if type(data).__name__ == "LazyFrame":
        raise TypeError("got a LazyFrame, which holds no values yet: pass frame.collect()")


def fields_of(data: np.ndarray | np.void) -> list[Any] | None:
    """Return the names of the fields of a structured array, or of a row of one."""
    return None if data.dtype.names is None else list(data.dtype.names)


def columns_of(what: str, data: Any, names: Sequence[str]) -> dict[str, Any]:
    """Return the named columns of a table, each as a list or as something that NumPy can turn into an array."""
    if isinstance(data, Mapping) and data and all(is_record(value) for value in data.values()):
        data = list(data.values())  # from ids to what is known about each
    if isinstance(data, Mapping) or is_frame(data):
        known = list(data) if isinstance(data, Mapping) else column_names(data) or []
        columns = {name: entry_of(what, data, name, known) for name in names}
        for name, column in columns.items():
            if isinstance(column, str) or not hasattr(column, "__len__") or np.ndim(column) == 0:
                raise TypeError(
                    f"{what} feature {name!r} is {checks.short(column)} ({type(column).__name__}), expected one value "
                    f"per {what}: for one {what} pass a list with one dict"
                )
        return columns
    if isinstance(data, str | bytes) or not isinstance(data, Iterable):
        raise TypeError(
            f"{what}s must be a DataFrame or a list of dicts, got {checks.short(data)} ({type(data).__name__})"
        )
    data = list(data)
    if all(type(record) is dict for record in data):
        with contextlib.suppress(KeyError):
            return {name: [record[name] for record in data] for name in names}
    records = [record_of(f"{what} {i}", record) for i, record in enumerate(data)]
    return {name: [entry_of(f"{what} {i}", record, name) for i, record in enumerate(records)] for name in names}


def is_record(data: Any) -> bool:
    """Return whether one user or arm is given by name: a dict, a row of a DataFrame, or a named tuple."""
    if isinstance(data, Mapping):
        return True
    if isinstance(data, np.void):
        return fields_of(data) is not None
    return not isinstance(data, np.ndarray) and (
        hasattr(data, "_asdict") or (hasattr(data, "keys") and hasattr(data, "__getitem__"))
    )


def record_of(what: str, data: Any) -> Any:
    """Return what has entries by name; raise if the data are not one user or arm."""
    if not is_record(data):
        raise TypeError(
            f"the {what} is {checks.short(data)} ({type(data).__name__}): pass a dict, or a row of a DataFrame, with "
            "the features by name"
        )
    return data._asdict() if hasattr(data, "_asdict") else data


def entry_of(what: str, data: Any, name: str, known: Sequence[Any] | None = None) -> Any:
    """Return what a table or record holds under a name."""
    try:
        return data[name]
    except (KeyError, IndexError, ValueError):
        pass
    except Exception as problem:  # polars has errors of its own
        if "NotFound" not in type(problem).__name__:
            raise
    if known is None:
        known = (fields_of(data) or []) if isinstance(data, np.void) else list(data.keys())
    raise ValueError(
        f"the {what} has no feature {name!r}{checks.nearest(name, [str(one) for one in known])}: it has "
        f"{checks.short([str(one) for one in known])}; pass None where a value is missing"
    )


def listed(words: str, column: Any) -> list[Any]:
    """Return a column as a list of Python values.

    A column of integers with gaps becomes floats as an array of NumPy, and large integers others: pandas, polars and
    pyarrow make lists themselves.
    """
    if isinstance(column, list):
        return column
    array = np.asarray(column)
    if array.dtype.kind in "mM":
        raise TypeError(f"{words} holds times ({array.dtype}): turn them into numbers, such as hours, or into text")
    if array.ndim != 1:
        raise ValueError(f"{words} must have one value per row, got shape {array.shape}")
    for method in ("to_list", "to_pylist"):
        if hasattr(column, method):
            return list(getattr(column, method)())
    values: list[Any] = array.tolist()
    return values
