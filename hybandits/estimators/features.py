"""Feature maps: the features x and z of a candidate, computed from the user's vector u and the arm's vector v.

Where something is known of user and arm together, such as a distance, that is a third vector p, which x or z ends with.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hybandits.foundation import checks
from hybandits.foundation.checks import FloatArray, ready
from hybandits.foundation.compiling import kernel
from hybandits.kernels.simd import load1, load4, mul4, splat4, store1, store4

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

DAS, LI, SHARED, DISJOINT = range(len(MAPS))
_ndarray, _empty = np.ndarray, np.empty

GIVEN = -1
"""Used in place of a map's code where the features need not be computed (see `lay_out`)."""


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
        if self.pair or p is not None:
            fill_rows_and_pairs(self.code, u, v, self._checked_pairs(p, n, several), x, z)
        else:
            fill_rows(self.code, u, v, x, z)
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
        fill_crossed(self.code, u, v, x, z)
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


@kernel
def sizes_without_pairs(code, du, dv):  # type: ignore[no-untyped-def]
    """The lengths of x and z before pair features are appended to them."""
    d1 = 0 if code == DISJOINT else du * dv
    d2 = 0 if code == SHARED else (dv if code == DAS else du)
    return d1, d2


@kernel
def append_pairs(p, po, dp, count, out, first, gap):  # type: ignore[no-untyped-def]
    """Copy the p of `count` arms, at p[po:], to out[first:], each separated by a gap, on flat arrays."""
    for _ in range(count):
        for i in range(dp):
            store1(out, first + i, load1(p, po + i))
        po += dp
        first += dp + gap


@kernel
def fill(code, u, p, v, one, x, z):  # type: ignore[no-untyped-def]
    """x = vec(u v') with x[j du + i] = u_i v_j, and z = v (times one) or u: see MAPS. Then p, where x or z has room."""
    du = u.shape[0]
    start = 0 * du  # an int variable: for a literal 0 Numba would compile the callee a second time
    rows = np.zeros(1, np.int64)
    fill_batch(code, u, start, du, v, v.shape[0], rows, start, start + 1, one, x, start, start, z, start, start)
    dp = p.shape[0]
    d1, d2 = sizes_without_pairs(code, du, v.shape[0])
    if d1 < x.shape[0]:
        append_pairs(p, start, dp, start + 1, x, d1, start)
    if d2 < z.shape[0]:
        append_pairs(p, start, dp, start + 1, z, d2, start)


@kernel
def fill_rows(code, u, v, x, z):  # type: ignore[no-untyped-def]
    """`fill` for one user and every row of v: row k of x and z has the features of the arm with v[k]."""
    du = u.shape[0]
    start = 0 * du
    count = v.shape[0]
    fill_batch(
        code, u, start, du, v.reshape(v.size), v.shape[1], np.arange(count), start, count, 1.0, x.reshape(x.size),
        start, start, z.reshape(z.size), start, start,
    )  # fmt: skip


@kernel
def fill_crossed(code, u, v, x, z):  # type: ignore[no-untyped-def]
    """`fill_rows` for every row of u: x[b, k] and z[b, k] have the features of user b and the arm with v[k]."""
    for b in range(u.shape[0]):
        fill_rows(code, u[b], v, x[b], z[b])


@kernel
def fill_rows_and_pairs(code, u, v, p, x, z):  # type: ignore[no-untyped-def]
    """`fill_rows` with p[k] at the end of row k of x or z, wherever there is room."""
    user = u.reshape(1, u.shape[0])
    start = 0 * u.shape[0]
    count = v.shape[0]
    source = code, user, np.arange(count).reshape(1, count), v, p.reshape(1, count, p.shape[1])
    lay_out(source, start, count, x.reshape(1, count, x.shape[1]), z.reshape(1, count, z.shape[1]))


@kernel
def fill_batch(  # type: ignore[no-untyped-def]
    code, u, uo, du, v, dv, rows, ro, count, one, x, xo, x_gap, z, zo, z_gap
):  # fmt: skip
    """`fill` for one user and `count` arms, on flat arrays and without a view or a call for each arm.

    u is at u[uo:], and arm k's v at v[rows[ro + k] dv :]. The first x and z are written to x[xo:] and z[zo:], the next
    ones after them, each separated by a gap. The last numbers of a row are not a loop, because the compiler would turn
    one over at most three numbers into vector code for many.
    """
    for k in range(count):
        vo = rows[ro + k] * dv
        if code != DISJOINT:
            for j in range(dv):
                vj = load1(v, vo + j)
                vjs = splat4(vj)
                i = 0
                while i + 4 <= du:
                    store4(x, xo + i, mul4(vjs, load4(u, uo + i)))
                    i += 4
                if i < du:
                    store1(x, xo + i, vj * load1(u, uo + i))
                if i + 1 < du:
                    store1(x, xo + i + 1, vj * load1(u, uo + i + 1))
                if i + 2 < du:
                    store1(x, xo + i + 2, vj * load1(u, uo + i + 2))
                xo += du
            xo += x_gap
        if code == DAS:
            for j in range(dv):
                store1(z, zo + j, one * load1(v, vo + j))
            zo += dv + z_gap
        elif code != SHARED:
            for i in range(du):
                store1(z, zo + i, load1(u, uo + i))
            zo += du + z_gap


@kernel
def room_for(source, x, z):  # type: ignore[no-untyped-def]
    """x and z themselves if the features are given, else room for the features of one round.

    The room belongs to the caller alone, because several policies may play the same rounds at once.
    """
    if source[0] == GIVEN:
        return x, z
    return np.empty((1, x.shape[1], x.shape[2])), np.empty((1, z.shape[1], z.shape[2]))


@kernel
def lay_out(source, t, count, x, z):  # type: ignore[no-untyped-def]
    """Return the row of x (rows, n, d1) and z (rows, n, d2) that holds the features of the candidates of round t.

    source = (code, user, vector, vectors, pair), and `count` is the number of candidates. If the code is GIVEN, the
    features are in row t already. Otherwise x and z are what `room_for` returned, and the features are computed into
    row 0: those of candidate k from user[t], vectors[vector[t, k]] and pair[t, k], which stands at the end of x or z if
    there is room for it.
    """
    code, user, vector, vectors, pair = source
    if code == GIVEN:
        return t
    du = user.shape[1]
    start = 0 * du
    d1, d2 = sizes_without_pairs(code, du, vectors.shape[1])
    x_more, z_more = x.shape[2] - d1, z.shape[2] - d2
    fill_batch(
        code, user.reshape(user.size), t * du, du, vectors.reshape(vectors.size), vectors.shape[1],
        vector.reshape(vector.size), t * vector.shape[1], count, 1.0, x.reshape(x.size), start, x_more,
        z.reshape(z.size), start, z_more,
    )  # fmt: skip
    dp = pair.shape[2]
    if x_more:
        append_pairs(pair.reshape(pair.size), t * pair.shape[1] * dp, dp, count, x.reshape(x.size), d1, d1)
    if z_more:
        append_pairs(pair.reshape(pair.size), t * pair.shape[1] * dp, dp, count, z.reshape(z.size), d2, d2)
    return start


@kernel
def lay_side_by_side(source, t, count, x, z, both):  # type: ignore[no-untyped-def]
    """Write (x, z) of the candidates of round t side by side into the rows of `both`; see `lay_out`."""
    code, user, vector, vectors, pair = source
    d1 = x.shape[2]
    d2 = z.shape[2]
    if code == GIVEN:
        for k in range(count):
            for i in range(d1):
                both[k, i] = x[t, k, i]
            for i in range(d2):
                both[k, d1 + i] = z[t, k, i]
        return
    du = user.shape[1]
    start = 0 * du
    room = both.reshape(both.size)
    own_d1, own_d2 = sizes_without_pairs(code, du, vectors.shape[1])
    x_more, z_more = d1 - own_d1, d2 - own_d2
    fill_batch(
        code, user.reshape(user.size), t * du, du, vectors.reshape(vectors.size), vectors.shape[1],
        vector.reshape(vector.size), t * vector.shape[1], count, 1.0, room, start, d2 + x_more, room, d1, d1 + z_more,
    )  # fmt: skip
    dp = pair.shape[2]
    if x_more:
        append_pairs(pair.reshape(pair.size), t * pair.shape[1] * dp, dp, count, room, own_d1, d1 + d2 - dp)
    if z_more:
        append_pairs(pair.reshape(pair.size), t * pair.shape[1] * dp, dp, count, room, d1 + own_d2, d1 + d2 - dp)
