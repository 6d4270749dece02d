"""Named features: x and z of candidates from what is known about a user, about arms and about both, by name."""

from __future__ import annotations

import math
import numbers
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, Self

import numpy as np

from hybandits.estimators.feature_columns import (
    Feature,
    Number,
    declared,
    from_plain,
    kind_of,
    plain_features,
)
from hybandits.estimators.features import MAPS, FeatureMap, split_name
from hybandits.estimators.records import columns_of, entry_of, is_frame, is_record, listed, record_of, refuse_lazy
from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray

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
