"""Features: from named columns of users, arms and pairs to x, z and groups."""

import numbers
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np

from hybandits.features import columns
from hybandits.features.columns import AUTO, ERROR, LEAST_ROWS, Feature, Number, Vector, plain_features
from hybandits.features.maps import FeatureMap, Products, Slots, hashes, split_name
from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray, ready
from hybandits.policies.base import Policy

CONSTANT = "constant"
"""The name of the feature that is always 1, in logs too."""

COLUMNS = "columns"
"""The key of a policy's notes that holds the columns. The others are those of policies that were fitted to a log."""

LIMIT = 2000
"""The most columns of x unless the caller says otherwise."""
BLOCK = 100_000
"""The most numbers of an arm's block that ties its own parameters to the shared ones: d1 times d2."""
LEAST_BUCKETS = 32
"""The fewest columns that products are hashed into; with fewer they are left out."""
MOST_VALUES = 1000
"""The most values of all features that fallbacks are counted by; those beyond are counted together."""

Notes = list[tuple[str, str]]
"""Values that fell back, as (feature, value)."""

_ndarray = np.ndarray


class Part(NamedTuple):
    """The straight or the curved columns of a feature in the vector of its side, or the constant."""

    name: str
    side: str
    first: int
    labels: tuple[str, ...]
    curved: bool = False

    @property
    def columns(self) -> Slots:
        """The places in the vector."""
        return np.arange(self.first, self.first + len(self.labels))


ONE = Part("", CONSTANT, 0, ("",))
"""The constant 1, which comes first in the vectors of users and arms."""


class Family(NamedTuple):
    """Products of columns of a user with columns of a candidate that have one prior variance."""

    user: Part
    candidate: Part

    @property
    def size(self) -> int:
        """The number of products."""
        return len(self.user.labels) * len(self.candidate.labels)

    @property
    def name(self) -> str:
        """The names of the two features."""
        words = [part.name + " (curve)" * part.curved for part in self if part.name]
        return "*".join(words) or CONSTANT


class _Side:
    """The features of users, of arms or of both together, and their columns in a vector."""

    def __init__(self, what: str, features: Mapping[str, Feature], constant: bool, first: int = 0) -> None:
        self.what, self.constant, self.features = what, constant, features
        self.complete = all(feature.complete for feature in features.values())
        for name in features:
            if any(name.startswith(other + mark) for other in features for mark in "=~["):
                raise ValueError(f"two columns of the {what} features could be called {name!r}: rename a feature")
        self.layout: list[tuple[str, str, Feature, slice]] = []
        self.parts: dict[str, list[Part]] = {}
        self.crossed: dict[str, Part] = {}
        self.bare = [CONSTANT] * constant
        if not self.complete:
            return
        for name, feature in features.items():
            start, labels = len(self.bare), feature.labels(name)
            curves = [f"{name}~{i + 1}" for i in range(feature.curves)]
            self.bare += labels + curves
            self.layout.append((name, f"{what} feature {name!r}", feature, slice(start, len(self.bare))))
            words = f"{what}.{name}"
            full = tuple(f"{what}.{label}" for label in labels)
            self.parts[name] = [Part(words, what, first + start, full)] * bool(full)
            self.crossed[name] = Part(words, what, first + start, full[: feature.crossed])
            if curves:
                at = first + start + len(labels)
                self.parts[name].append(
                    Part(words, what, at, tuple(f"{what}.{label}" for label in curves), curved=True)
                )
        if twice := [name for name, n in Counter(self.bare).items() if n > 1]:
            raise ValueError(f"two columns of the {what} features are called {twice[0]!r}: rename a feature")
        self.names = [CONSTANT] * constant + [f"{what}.{name}" for name in self.bare[constant:]]
        self.width = len(self.bare)

    def raw(self, data: Any, noted: Notes, strict: bool, beside: str = "") -> dict[str, list[Any]]:
        """Return the features' values, before encoding, of several users, arms or pairs.

        Columns that are not declared, except the one named `beside`, are added to `noted`.
        """
        raw = columns.columns_of(self.what, data, list(self.features))
        for name in columns.names_of(self.what, data):
            if name not in self.features and name != beside:
                if strict:
                    near = checks.nearest(name, self.features)
                    raise ValueError(f"{self.what} column {name!r} is not declared{near}, and strict=True refuses it")
                noted.append((f"{self.what}.{name}", "(column not declared)"))
        return raw

    def learn(self, rows: Mapping[str, Sequence[Any]], curves: bool) -> dict[str, Feature]:
        """Return the features with everything that these rows tell about them."""
        return {
            name: feature.learn(f"{self.what} feature {name!r}", rows[name], curves)
            for name, feature in self.features.items()
        }

    def vectors(self, data: Any, noted: Notes, strict: bool) -> FloatArray:
        """Return the vectors of several users, arms or pairs, one row each; add to `noted` what fell back."""
        if not self.features:
            return np.ones((self._size(data), self.width))
        if type(data) is _ndarray:
            if ready(data, (len(data) if data.ndim else 0, self.width)):
                return data
            return checks.array(f"{self.what}s", data, 2, self.width, f"shape (n, {self.width}), one row for each")
        raw = self.raw(data, noted, strict)
        return self.encoded(raw, len(next(iter(raw.values()))), noted, strict)

    def encoded(self, raw: Mapping[str, Sequence[Any]], n: int, noted: Notes, strict: bool) -> FloatArray:
        """Return the vectors for n values by name."""
        out = np.zeros((n, self.width))
        if self.constant:
            out[:, 0] = 1.0
        for name, words, feature, place in self.layout:
            values = raw[name]

            def note(row: int, value: str) -> None:
                if strict:
                    where = columns.place(words, row, values)  # noqa: B023 - called at once
                    raise ValueError(f"{where} is {value}, which has no column of its own, and strict=True refuses it")
                noted.append((f"{self.what}.{name}", value))  # noqa: B023

            feature.fill(words, values, out[:, place], note)
        return out

    def _size(self, data: Any) -> int:
        if isinstance(data, numbers.Integral) and not isinstance(data, bool):
            return checks.count(f"{self.what}s", data, least=1, why=f"it is the number of {self.what}s")
        if isinstance(data, str) or not hasattr(data, "__len__"):
            raise TypeError(f"{self.what}s must be a list or a number of {self.what}s, got {checks.short(data)}")
        return len(data)


def declarations(what: str, given: Any, beside: str = "") -> dict[str, Feature]:
    """Return the features of a side by name, from their declarations or from rows that show their kinds.

    The column of rows that is named `beside` is left out.
    """
    if given is None or (isinstance(given, Mapping) and not given):
        return {}
    if isinstance(given, Mapping) and not all(isinstance(value, Mapping) for value in given.values()):
        for name in given:
            if not isinstance(name, str) or not name:
                raise TypeError(f"{what} must name features by strings, got {checks.short(name)}")
        return {name: columns.declared(f"{what} feature {name!r}", each) for name, each in given.items()}
    if (isinstance(given, list) and not all(columns.is_record(each) for each in given)) or isinstance(given, str):
        example = '{"age": "number"}'
        raise TypeError(f"{what} must be a dict such as {example}, or rows to infer it from, got {checks.short(given)}")
    names = [name for name in columns.names_of(what, given) if name != beside]
    rows = columns.columns_of(what, given, names)
    return {name: columns.inferred(f"{what} feature {name!r}", rows[name]) for name in names}


class Features:
    """Makes x and z of candidates from what is known about a user, about arms and about both together, by name.

    By default x holds a constant, the columns of arms and of pairs, and all products of a user's and an arm's columns;
    z holds a constant and the user's columns. Each feature, and each product of two features, is a group of columns
    with a prior variance of its own, and so is the curved part of each.

    Parameters
    ----------
    user, arm, pair : mapping of str to feature, or rows, optional
        The names of the features and what they are: "number", "boolean", "category", "labels", "vector", a list of
        categories, or `Number`, `Boolean`, `Category`, `Labels`, `Vector` with rules. A table or a list of dicts in
        its place shows the names and kinds.
    interactions : list of pairs of names, optional
        The products in x of a user's feature with one of an arm or a pair; by default all with those of arms.
    own : list of names, optional
        The features in z, by default those of the user. "1" is the constant, which is always there.
    curves : bool
        Let numbers have curved effects.
    limit : int
        The most columns of x. Products are taken from the smallest group to the largest as long as they fit; those
        that do not share the columns that are left by hashing, and are left out where these are too few.
    strict : bool
        Refuse values that have no column of their own instead of counting them in `fallbacks`.
    map : {"das", "li", "shared", "disjoint"}, optional
        A map of the literature in place of all this; see `FeatureMap`. Numbers are taken as they are, and everything
        must be declared. With pair features, "+pair" is added.
    constant : bool
        With a map of the literature: put a feature that is always 1 before the user's and before the arm's.

    Attributes
    ----------
    user, arm, pair : dict
        The features by name.
    d1, d2 : int
        The lengths of x and z, for the policy.
    groups : tuple of two int arrays
        The group of each column of x and of z, for the policy.
    names_x, names_z : list of str
        The names of the columns of x and z, and so of the numbers in `policy.theta` and `policy.beta(arm)`.
    user_columns, arm_columns, pair_columns : list of str
        The columns of the vectors of users, arms and pairs, as a log names them.
    fallbacks : Counter
        Counts, by (feature, value), of values that have no column of their own.
    remarks : list of str
        Notes on columns that are left out, hashed, constant or the same as others.

    Examples
    --------
    >>> from hybandits import Features, HyIDS
    >>> users = [{"age": 31, "country": "de"}, {"age": 52, "country": "fr"}]
    >>> features = Features(user=users, arm={"topic": ["news", "sport"]}).learn(users)
    >>> features
    Features(user=['age', 'country'], arm=['topic']): d1=10, d2=5
    >>> features.names_z
    ['constant', 'user.age', 'user.country=de', 'user.country=fr', 'user.country=other']
    >>> policy = HyIDS(d1=features.d1, d2=features.d2, seed=0)
    >>> x, z = features({"age": 31, "country": "it"}, [{"topic": "sport"}, {"topic": "film"}])
    >>> choice = policy.choose(x, z, arms=["a17", "b4"])
    >>> dict(features.fallbacks)
    {('user.country', 'it'): 1, ('arm.topic', 'film'): 1}
    """

    def __init__(
        self,
        *,
        user: Any = None,
        arm: Any = None,
        pair: Any = None,
        interactions: Sequence[Sequence[str]] | None = None,
        own: Sequence[str] | None = None,
        curves: bool = True,
        limit: int = LIMIT,
        strict: bool = False,
        map: str | None = None,
        constant: bool = True,
        idle: Mapping[str, str] | None = None,
    ) -> None:
        for name, value in (("constant", constant), ("curves", curves), ("strict", strict)):
            if not isinstance(value, bool):
                raise TypeError(f"{name} must be True or False, got {checks.short(value)}")
        self.curves, self.strict, self.constant = curves, strict, constant
        self.limit = checks.count("limit", limit, least=1, why="it is the most columns of x")
        self.interactions = None if interactions is None else [tuple(each) for each in interactions]
        self.own = None if own is None else list(own)
        self.idle = dict(idle or {})
        self.user, self.arm, self.pair = (
            declarations(what, given) for what, given in (("user", user), ("arm", arm), ("pair", pair))
        )
        self.map = map
        if map is not None:
            self._name_map(map)
        elif not constant:
            raise ValueError("constant=False is for the maps of the literature: pass one, e.g. map='das'")
        self.fallbacks: Counter[tuple[str, str]] = Counter()
        self.remarks = [f"{name} is {why}" for name, why in self.idle.items()]
        self._user, self._arm = _Side("user", self.user, constant), _Side("arm", self.arm, constant)
        self._pair = _Side("pair", self.pair, False, self._arm.width if self._arm.complete else 0)
        self._sides = self._user, self._arm, self._pair
        self.complete = all(side.complete for side in self._sides)
        if self.complete:
            self._lay_out()

    def _name_map(self, name: str) -> None:
        """Check a map of the literature, and take numbers as they are."""
        base, pair_in = split_name(name)
        if pair_in and not self.pair:
            raise ValueError(f'map "{name}" needs pair features: name them in pair, or use map="{base}"')
        self.map = f"{name}+pair" if self.pair and not pair_in else name
        if base == "das" and not self.arm and not self.pair:
            raise ValueError('map "das" needs features of the arms: name some in arm, or use map="li"')
        for what, features, needed in (("user", self.user, base != "das"), ("arm", self.arm, base != "disjoint")):
            if needed and not features and not self.constant:
                raise ValueError(f'map "{base}" needs {what} features: name some, or leave constant at True')
        for features in (self.user, self.arm, self.pair):
            for key, feature in features.items():
                if not isinstance(feature, Vector) and feature.missing == AUTO:
                    feature = replace(feature, missing=ERROR)
                if isinstance(feature, Number):
                    centre, scale, knots = feature.centre or 0.0, feature.scale or 1.0, feature.knots or ()
                    feature = replace(feature, centre=centre, scale=scale, knots=knots)
                features[key] = feature
                if not features[key].complete:
                    raise ValueError(f"feature {key!r} is not fully declared: map {name!r} learns nothing from rows")

    # ------------------------------------------------------------------ the columns of x and z

    def _lay_out(self) -> None:
        self.user_columns, self.arm_columns, self.pair_columns = (side.bare for side in self._sides)
        self._named: FeatureMap | None = None
        if self.map is not None:
            self._named = FeatureMap(self.map, *(side.width for side in self._sides))
            base, pair_in = split_name(self.map)
            whole_user = Part("user", "user", 0, tuple(self._user.names))
            whole_arm = Part("arm", "arm", 0, tuple(self._arm.names))
            whole_pair = Part("pair", "pair", self._arm.width, tuple(self._pair.names))
            in_x = [Family(whole_user, whole_arm)] * (base != "disjoint")
            in_z = {"das": [Family(ONE, whole_arm)], "shared": []}.get(base, [Family(whole_user, ONE)])
            in_x += [Family(ONE, whole_pair)] * ("x" in pair_in)
            in_z += [Family(ONE, whole_pair)] * ("z" in pair_in)
            self.families = in_x, in_z
            self._x, self.names_x, _ = _products(in_x, {})
            self._z, self.names_z, _ = _products(in_z, {})
            self.groups = np.zeros(self._x.width, np.int64), np.zeros(self._z.width, np.int64)
        else:
            in_x, buckets = self._chosen_x()
            self._x, self.names_x, x_groups = _products(in_x, buckets)
            in_z = self._chosen_z(self._x.width)
            self._z, self.names_z, z_groups = _products(in_z, {})
            self.families, self.groups = (in_x, in_z), (x_groups, z_groups)
        self.d1, self.d2 = self._x.width, self._z.width

    def _named_by(self, word: str, sides: Sequence[_Side], argument: str) -> tuple[_Side, str]:
        """The side and name of a feature that an argument names, as "age" or "user.age"."""
        matches = [(side, name) for side in sides for name in side.features if word in (name, f"{side.what}.{name}")]
        if not matches:
            known = [name for side in sides for name in side.features]
            near = checks.nearest(word, known)
            raise ValueError(f"{argument} names {word!r}{near}, which is none of its features {checks.short(known)}")
        if len(matches) > 1:
            both = " or ".join(f"{side.what}.{name}" for side, name in matches)
            raise ValueError(f"{argument} names {word!r}, which is a feature of several sides: write {both}")
        return matches[0]

    def _own_parts(self) -> list[Part]:
        """The parts of the features that `own` names."""
        named = [self._named_by(word, self._sides, "own") for word in self.own or () if word != "1"]
        return [part for side, name in named for part in side.parts[name]]

    def _chosen_x(self) -> tuple[list[Family], dict[Family, int]]:
        """The families of x, and the columns that are shared by the products of those that are hashed."""
        mains = [Family(ONE, part) for side in (self._arm, self._pair) for part in self._present(side)]
        if self.own is not None:  # what users have in common cancels, but explains rewards
            own = self._own_parts()
            mains += [Family(part, ONE) for part in self._present(self._user) if part not in own]
        straight = [Family(user, other) for user, other in self._pairs() if user.labels and other.labels]
        chosen = [Family(ONE, ONE), *mains]
        left = self.limit - sum(family.size for family in chosen)
        if left < 0:
            raise ValueError(
                f"the columns without any products give d1={self.limit - left}, above limit={self.limit}: raise it, or "
                "declare fewer values"
            )
        large: list[Family] = []
        for family in sorted(straight, key=lambda each: each.size):
            if family.size <= left:
                chosen.append(family)
                left -= family.size
            else:
                large.append(family)
        buckets: dict[Family, int] = {}
        for i, family in enumerate(large):
            share = left // (len(large) - i)
            if share >= LEAST_BUCKETS:
                buckets[family] = share
                left -= share
                self.remarks.append(f"{family.name} is hashed: {family.size} products share {share} columns")
            else:
                self.remarks.append(f"{family.name} is left out: its {family.size} products exceed limit={self.limit}")
        return [*chosen, *buckets], buckets

    def _present(self, side: _Side) -> list[Part]:
        """The parts of a side's features, without those that are the same as another."""
        idle = self.idle
        return [
            p for name, parts in side.parts.items() if "same" not in idle.get(f"{side.what}.{name}", "") for p in parts
        ]

    def _pairs(self) -> list[tuple[Part, Part]]:
        """The columns of the two features of every interaction."""
        if self.interactions is None:
            left, right = (
                [part for name, part in side.crossed.items() if f"{side.what}.{name}" not in self.idle]
                for side in (self._user, self._arm)
            )
            return [(user, arm) for arm in right for user in left]
        pairs = []
        users, others = (
            {word for side in sides for name in side.features for word in (name, f"{side.what}.{name}")}
            for sides in ((self._user,), (self._arm, self._pair))
        )
        for each in self.interactions:
            if len(each) != 2:
                raise ValueError(f"interactions must be pairs of names such as ('age', 'price'), got {each!r}")
            words = [(a, b) for a, b in (each, each[::-1]) if a in users and b in others]
            if not words:
                raise ValueError(f"interactions has {each!r}: name one feature of the user and one of an arm or a pair")
            user, name = self._named_by(words[0][0], (self._user,), "interactions")
            candidate, other = self._named_by(words[0][1], (self._arm, self._pair), "interactions")
            pairs.append((user.crossed[name], candidate.crossed[other]))
        return pairs

    def _chosen_z(self, d1: int) -> list[Family]:
        """The families of z: the constant, then features from the smallest as long as a block is small enough."""
        parts = self._present(self._user) if self.own is None else self._own_parts()
        families = [Family(part, ONE) if part.side == "user" else Family(ONE, part) for part in parts]
        chosen = [Family(ONE, ONE)]
        left = BLOCK // d1 - 1
        for family in sorted(families, key=lambda each: (each.user.curved or each.candidate.curved, each.size)):
            if family.size <= left:
                chosen.append(family)
                left -= family.size
            else:
                wrong = f"d1={d1} leaves {left} of its {family.size} columns"
                self.remarks.append(f"{family.name} is left out of z: {wrong}, for arms' blocks of {BLOCK} numbers")
        return chosen

    # ------------------------------------------------------------------ learning from rows

    def learn(self, users: Any = None, arms: Any = None, pairs: Any = None) -> Self:
        """Return features that know everything these rows tell: centres, scales, curves, levels.

        Rows are tables or lists of dicts. Rows of users, arms and pairs may differ in number. Columns that are constant
        or the same as another get a remark.
        """
        raw = {
            side.what: side.raw(rows, [], False) if rows is not None else {name: [] for name in side.features}
            for side, rows in zip(self._sides, (users, arms, pairs), strict=True)
        }
        return self.learn_raw(raw)

    def learn_raw(self, raw: Mapping[str, Mapping[str, Sequence[Any]]]) -> Self:
        """`learn` from values by side and name."""
        sides = {side.what: side.learn(raw[side.what], self.curves) for side in self._sides}
        idle = {}
        for what, features in sides.items():
            side = _Side(what, features, False)
            rows = len(next(iter(raw[what].values()), ()))
            if not side.complete or rows < LEAST_ROWS:
                continue
            encoded = side.encoded(raw[what], rows, [], False)
            seen: dict[str, FloatArray] = {}
            for name, _, feature, place in side.layout:
                block = encoded[:, place][:, : len(feature.labels(name))]
                if (block == block[:1]).all():
                    idle[f"{what}.{name}"] = f"always {checks.short(raw[what][name][0])}"
                    continue
                for other, values in seen.items():
                    if values.shape == block.shape and min(abs(values - block).max(), abs(values + block).max()) < 1e-6:
                        idle.setdefault(f"{what}.{name}", f"the same as {what}.{other}")
                seen[name] = block
        return type(self)(**self._declaration(), **sides, idle=idle)  # type: ignore[arg-type]

    def with_own(self, own: Sequence[str] | None) -> Self:
        """Return the same features with other columns in z."""
        sides: dict[str, Any] = {side.what: side.features for side in self._sides}
        return type(self)(**{**self._declaration(), "own": own}, **sides, idle=self.idle)

    def _declaration(self) -> dict[str, Any]:
        """The arguments of the constructor, except for the sides."""
        return {
            "interactions": self.interactions, "own": self.own, "curves": self.curves, "limit": self.limit,
            "strict": self.strict, "map": self.map, "constant": self.constant,
        }  # fmt: skip

    # ------------------------------------------------------------------ vectors, x and z

    def __repr__(self) -> str:
        sides = ", ".join(f"{side.what}={list(side.features)}" for side in self._sides if side.features)
        named = f", map={self.map!r}" if self.map else ""
        size = f"d1={self.d1}, d2={self.d2}" if self.complete else "to be learned"
        return f"Features({sides}{named}): {size}"

    def count(self, noted: Sequence[tuple[str, str]]) -> None:
        """Count values that have no column of their own."""
        for each in noted:
            full = len(self.fallbacks) >= MOST_VALUES and each not in self.fallbacks
            self.fallbacks[(each[0], "(further values)") if full else each] += 1

    def _check_complete(self) -> None:
        if not self.complete:
            unknown = [f"{s.what}.{name}" for s in self._sides for name, f in s.features.items() if not f.complete]
            raise ValueError(
                f"{', '.join(unknown[:3])} {'is' if len(unknown) == 1 else 'are'} still to be learned: call "
                "features = features.learn(users, arms), use Bandit, or declare them fully"
            )

    def needs(self, what: str, data: Any) -> bool:
        """Return whether a side has features; raise an error if its data are missing, or pairs given without need."""
        features = self._side(what).features
        if features and data is None:
            raise ValueError(f"{what}s are missing: pass {', '.join(features)} as a table or a list of dicts")
        if what == "pair" and not features and data is not None:
            raise ValueError("pairs are given, but there are no pair features: name them in pair, or leave pairs out")
        return bool(features)

    def _side(self, what: str) -> _Side:
        return {"user": self._user, "arm": self._arm, "pair": self._pair}[what]

    def raw(self, what: str, data: Any, noted: Notes, beside: str = "") -> dict[str, list[Any]]:
        """Return the values of the user's, arms' or pairs' features by name, before they are encoded."""
        side = self._side(what)
        return side.raw(data, noted, self.strict, beside) if side.features else {}

    def encoded(self, what: str, raw: Mapping[str, Sequence[Any]], n: int, noted: Notes) -> FloatArray:
        """Return n vectors of users, arms or pairs from what `raw` returned; add to `noted` what falls back."""
        return self._side(what).encoded(raw, n, noted, self.strict)

    def _vectors(self, what: str, data: Any) -> FloatArray:
        self._check_complete()
        noted: Notes = []
        vectors = self._side(what).vectors(data, noted, self.strict)
        self.count(noted)
        return vectors

    def user_vector(self, user: Any = None) -> FloatArray:
        """Return the vector u of one user: a dict, a row of a DataFrame, or a DataFrame with one row."""
        self._check_complete()
        if ready(user, (self._user.width,)):
            return np.asarray(user)
        if type(user) is _ndarray and user.ndim == 1:
            user = user[None]
        vectors = self.user_vectors([user] if not self.user or columns.is_record(user) else user)
        if len(vectors) != 1:
            raise ValueError(f"user has {len(vectors)} rows, expected one: pass one user, or use rows(users, arms)")
        return np.asarray(vectors[0])

    def user_vectors(self, users: Any) -> FloatArray:
        """Return the vectors u of several users, one row each."""
        return self._vectors("user", users)

    def arm_vectors(self, arms: Any) -> FloatArray:
        """Return the vectors v of arms, one row each, to be passed in place of the arms as long as they stay the same.

        Arms are a pandas, polars or pyarrow table, a list of dicts, or a mapping of ids to dicts; if they have no
        features, a list of their ids or their number will do.
        """
        return self._vectors("arm", arms)

    def pair_vectors(self, pairs: Any) -> FloatArray:
        """Return the vectors of the pair features, one row for each user and arm."""
        return self._vectors("pair", pairs)

    def _pairs_of(self, pairs: Any, n: int) -> FloatArray | None:
        if not self.needs("pair", pairs):
            return None
        if isinstance(pairs, Mapping):
            raise TypeError("pairs is a dict: pass a list of dicts or a table in the order of the arms")
        p = self.pair_vectors(pairs)
        if len(p) != n:
            raise ValueError(f"there are {n} arms and {len(p)} pairs: pass one of each per row")
        return p

    def __call__(self, user: Any, arms: Any, pairs: Any = None) -> tuple[FloatArray, FloatArray]:
        """Return x (n, d1) and z (n, d2) for one user and n arms.

        `user` is as for `user_vector`, None if users have no features, and `arms` as for `arm_vectors`; their vectors
        are taken too, which is much faster. `pairs` are a table or a list of dicts in the order of the candidates, or
        an array with one row per candidate, if there are pair features.
        """
        u, v = self.user_vector(user), self.arm_vectors(arms)
        x, z = self.computed(u[None], v, self._pairs_of(pairs, len(v)))
        return x[0], z[0]

    def computed(self, u: FloatArray, v: FloatArray, p: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        """Return x (B, n, d1) and z (B, n, d2) for the vectors of B users and n arms; B is 1 where p is given."""
        if self._named is not None:
            return self._named.computed(u, v, p)
        c = v if p is None or not p.shape[1] else np.concatenate([v, p], axis=1)
        return self._x.computed(u, c), self._z.computed(u, c)

    def crossed(self, users: Any, arms: Any) -> tuple[FloatArray, FloatArray]:
        """Return x (B, n, d1) and z (B, n, d2) for B users and the same n arms, for `choose_batch`.

        Examples
        --------
        >>> features = Features(user={"age": "number"}, map="li")
        >>> x, z = features.crossed([{"age": 31}, {"age": 52}], ["a17", "b4"])
        >>> z.tolist()
        [[[1.0, 31.0], [1.0, 31.0]], [[1.0, 52.0], [1.0, 52.0]]]
        """
        if self.pair:
            raise ValueError("pair features belong to one user and one arm: call the features for each user")
        return self.computed(self.user_vectors(users), self.arm_vectors(arms), None)

    def rows(self, users: Any, arms: Any, pairs: Any = None) -> tuple[FloatArray, FloatArray]:
        """Return x (n, d1) and z (n, d2) for n users and one arm each, for `learn_batch`.

        Every argument has one row for every reward; `pairs` are needed if there are pair features.

        Examples
        --------
        >>> features = Features(user={"age": "number"}, map="li")
        >>> x, z = features.rows([{"age": 31}, {"age": 52}], ["a17", "b4"])
        >>> z.tolist()
        [[1.0, 31.0], [1.0, 52.0]]
        """
        v = self.arm_vectors(arms)
        u = self.user_vectors(users if self.user else len(v))
        if len(u) != len(v):
            raise ValueError(f"there are {len(u)} users and {len(v)} arms: pass one of each per row")
        return self.of_rows(u, v, self._pairs_of(pairs, len(v)))

    def of_rows(self, u: FloatArray, v: FloatArray, p: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        """Return x (n, d1) and z (n, d2) for the vectors of n users and one arm each."""
        c = v if p is None or not p.shape[1] else np.concatenate([v, p], axis=1)
        return self._x.rows(u, c), self._z.rows(u, c)

    # ------------------------------------------------------------------ what was done, saving

    def summary(self) -> str:
        """Return what x and z consist of, group by group, what was left out, and what fell back."""
        self._check_complete()
        lines = [f"x: {self.d1} columns, z: {self.d2} columns"]
        lines.append(
            f"memory: {8 * self.d1 * self.d1 / 1e6:.3g} MB shared, {8 * self.d2 * (self.d1 + self.d2) / 1e6:.3g}"
        )
        lines[-1] += " MB for each arm, about three times over"
        for word, families, groups in zip("xz", self.families, self.groups, strict=True):
            sizes = np.bincount(groups, minlength=len(families)).tolist() if self.map is None else [len(groups)]
            lines += [f"  {word}  {family.name}: {size}" for family, size in zip(families, sizes, strict=False)]
        lines += [f"note: {remark}" for remark in self.remarks]
        lines += [f"fallback: {name} {value!r}, {n} times" for (name, value), n in self.fallbacks.most_common()]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the features as JSON can hold them."""
        sides = {side.what: plain_features(side.features) for side in self._sides if side.features}
        if self.map is not None:
            return {"map": self.map, "constant": self.constant, **sides}
        counts = [[name, value, n] for (name, value), n in sorted(self.fallbacks.items())]
        return {**self._declaration(), **sides, "idle": self.idle, "fallbacks": counts}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Return the features that `to_dict` turned into this."""
        try:
            given = dict(plain)
            counts = given.pop("fallbacks", ())
            sides: dict[str, Any] = {what: columns.from_plain(given.pop(what, ())) for what in ("user", "arm", "pair")}
            if "map" not in given:
                raise ValueError("map is missing")
            features = cls(**sides, **given)
            features.fallbacks.update({(str(name), str(value)): int(n) for name, value, n in counts})
        except (AttributeError, KeyError, TypeError, ValueError) as problem:
            raise ValueError(f"these are not features as to_dict() returns them ({problem}): save them again") from None
        return features

    def attach(self, policy: Policy) -> None:
        """Keep the features in a policy's notes, so that they are saved and loaded with it."""
        self._check_size(policy)
        if self.map is not None:
            policy.notes.update(features=self.map, user=self.user_columns, arm=self.arm_columns)
            if self.pair:
                policy.notes["pair"] = self._pair.bare
        policy.notes[COLUMNS] = self.to_dict()

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
        self._check_complete()
        if (policy.d1, policy.d2) != (self.d1, self.d2):
            wrong = f"the features have d1={self.d1}, d2={self.d2}, but the policy has d1={policy.d1}, d2={policy.d2}"
            raise ValueError(f"{wrong}: construct it as {type(policy).__name__}(d1=features.d1, d2=features.d2, ...)")


def _products(families: Sequence[Family], buckets: Mapping[Family, int]) -> tuple[Products, list[str], Slots]:
    """The products of families, those in `buckets` hashed, with the names and groups of their columns."""
    lefts, rights, names, groups = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [], [np.zeros(0, np.int64)]
    hashed: list[tuple[Slots, Slots, Slots, FloatArray]] = []
    width = sum(family.size for family in families if family not in buckets)
    for group, family in enumerate(families):
        a, b = family.user.columns, family.candidate.columns
        left, right = np.tile(a, len(b)), np.repeat(b, len(a))
        if family in buckets:
            size = buckets[family]
            target, sign = hashes(left, right, size)
            hashed.append((left, right, width + target, sign))
            names += [f"{family.name}#{i}" for i in range(size)]
            width += size
            groups.append(np.full(size, group))
        else:
            lefts.append(left)
            rights.append(right)
            pairs = ((a, b) for b in family.candidate.labels for a in family.user.labels)
            names += ["*".join(word for word in pair if word not in ("", CONSTANT)) or CONSTANT for pair in pairs]
            groups.append(np.full(family.size, group))
    whole = [np.concatenate(each) for each in zip(*hashed, strict=True)] if hashed else [np.zeros(0, np.int64)] * 4
    products = Products(np.concatenate(lefts), np.concatenate(rights), tuple(whole), width)  # type: ignore[arg-type]
    return products, names, np.concatenate(groups)
