"""FeatureMap: x and z from vectors of a user, of arms and of both together, by a map with a name or by blocks."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray, ready
from hybandits.kernels.features import fill_crossed

Slots = NDArray[np.int64]

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


class Products(NamedTuple):
    """Columns that are products of one column of a user's vector u and one of a candidate's c = (v, p).

    Column k is u[left[k]] * c[right[k]]. Of the further products, `hashed`, each is added to column `target`, times
    `sign`: many products share a column where they are too many for one each.
    """

    left: Slots
    right: Slots
    hashed: tuple[Slots, Slots, Slots, FloatArray]
    """left, right, target and sign."""
    width: int
    """The number of columns, those of `hashed` last."""

    def rows(self, u: FloatArray, c: FloatArray) -> FloatArray:
        """Return the columns (n, width) for n users and one candidate each."""
        out: FloatArray = np.zeros((len(c), self.width))
        out[:, : len(self.left)] = u[:, self.left] * c[:, self.right]
        left, right, target, sign = self.hashed
        if len(left):
            for row in range(len(c)):
                met = np.flatnonzero((u[row, left] != 0.0) & (c[row, right] != 0.0))
                values = sign[met] * u[row, left[met]] * c[row, right[met]]
                np.add.at(out[row], target[met], values)
        return out

    def computed(self, u: FloatArray, c: FloatArray) -> FloatArray:
        """Return the columns (B, n, width) for B users and the same n candidates."""
        if len(self.hashed[0]):
            return np.stack([self.rows(np.broadcast_to(each, (len(c), len(each))), c) for each in u])
        return u[:, None, self.left] * c[None, :, self.right]


def hashes(left: Slots, right: Slots, buckets: int) -> tuple[Slots, FloatArray]:
    """Return the bucket and the sign of each product of two columns, a fixed function of their numbers."""
    number = left.astype(np.uint64) * np.uint64(0x9E3779B1) + right.astype(np.uint64) * np.uint64(0x85EBCA77)
    for shift, factor in ((15, 0x2C1B3C6D), (12, 0x297A2D39)):
        number = ((number ^ (number >> np.uint64(shift))) * np.uint64(factor)) & np.uint64(0xFFFFFFFF)
    number ^= number >> np.uint64(15)
    return (number >> np.uint64(1)).astype(np.int64) % buckets, np.where(number & np.uint64(1), 1.0, -1.0)
