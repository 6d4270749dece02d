"""Feature maps: the features x and z of a candidate, computed from the user's vector u and the arm's vector v."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hybandits.foundation import checks
from hybandits.foundation.checks import Doubles, ready
from hybandits.foundation.compiling import kernel
from hybandits.kernels.simd import load1, load4, mul4, splat4, store1, store4

MAPS = {
    "das": "x = vec(u v'), z = v (Das & Sinha 2024)",
    "li": "x = vec(u v'), z = u (Li et al. 2010)",
    "shared": "x = vec(u v'), no z",
    "disjoint": "no x, z = u",
}
"""The feature maps by name. Given v, each is linear in (u, 1), which is what makes fitting cheap (see
`hybandits.offline.collect`)."""

DAS, LI, SHARED, DISJOINT = range(len(MAPS))
_ndarray, _empty = np.ndarray, np.empty

GIVEN = -1
"""Used in place of a map's code where the features need not be computed (see `lay_out`)."""


@dataclass(frozen=True)
class FeatureMap:
    """A rule that computes x and z from a user's vector u and an arm's vector v.

    Call it with u and v to get x and z. The outer product vec(u v') has its columns one below the other:
    x[j * user + i] = u[i] * v[j].

    Parameters
    ----------
    name : {"das", "li", "shared", "disjoint"}
        Which features are computed:

        - "das": x = vec(u v'), z = v (Das & Sinha 2024);
        - "li": x = vec(u v'), z = u (Li et al. 2010);
        - "shared": x = vec(u v'), no z;
        - "disjoint": no x, z = u.
    user : int
        Length of the user's vector u.
    arm : int
        Length of an arm's vector v.

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
    d1: int = field(init=False, repr=False, compare=False)
    d2: int = field(init=False, repr=False, compare=False)
    code: int = field(init=False, repr=False, compare=False)
    """The number by which kernels know the map."""

    def __post_init__(self) -> None:
        if self.name not in MAPS:
            raise ValueError(f"features must be one of {', '.join(MAPS)}, got {self.name!r}")
        user = checks.count("user", self.user, least=0, why="it is the length of the user's vector")
        arm = checks.count("arm", self.arm, least=0, why="it is the length of an arm's vector")
        derived = {
            "d1": 0 if self.name == "disjoint" else user * arm,
            "d2": {"das": arm, "li": user, "shared": 0, "disjoint": user}[self.name],
            "code": list(MAPS).index(self.name),
        }
        for name, value in derived.items():  # plain attributes, because every call reads them
            object.__setattr__(self, name, value)

    def __call__(self, u: Any, v: Any) -> tuple[Doubles, Doubles]:
        """Return x and z for a user's u and an arm's v; if v has one row per arm, x and z have one row per arm too."""
        if not ready(u, (self.user,)):
            u = checks.array("u", u, 1, self.user, f"shape ({self.user},), the user's features")
        several = True
        if type(v) is not _ndarray or not ready(v, (len(v) if v.ndim else 0, self.arm)):
            several = np.ndim(v) != 1
            words = f"length {self.arm}, an arm's features, or one such row per arm"
            v = checks.array("v", v if several else [v], 2, self.arm, words)
        n = len(v)
        x, z = _empty((n, self.d1)), _empty((n, self.d2))
        fill_rows(self.code, u, v, x, z)
        return (x, z) if several else (x[0], z[0])


@kernel
def fill(code, u, v, one, x, z):  # type: ignore[no-untyped-def]
    """x = vec(u v') with x[j du + i] = u_i v_j, and z = v (times one) or u: see MAPS."""
    du = u.shape[0]
    start = 0 * du  # an int variable: for a literal 0 Numba would compile the callee a second time
    rows = np.zeros(1, np.int64)
    fill_many(code, u, start, du, v, v.shape[0], rows, start, start + 1, one, x, start, start, z, start, start)


@kernel
def fill_rows(code, u, v, x, z):  # type: ignore[no-untyped-def]
    """`fill` for one user and every row of v: row k of x and z has the features of the arm with v[k]."""
    du = u.shape[0]
    start = 0 * du
    count = v.shape[0]
    fill_many(
        code, u, start, du, v.reshape(v.size), v.shape[1], np.arange(count), start, count, 1.0, x.reshape(x.size),
        start, start, z.reshape(z.size), start, start,
    )  # fmt: skip


@kernel
def fill_many(  # type: ignore[no-untyped-def]
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

    source = (code, user, vector, vectors), and `count` is the number of candidates. If the code is GIVEN, the features
    are in row t already. Otherwise x and z are what `room_for` returned, and the features are computed into row 0:
    those of candidate k from user[t] and vectors[vector[t, k]].
    """
    code, user, vector, vectors = source
    if code == GIVEN:
        return t
    du = user.shape[1]
    start = 0 * du
    fill_many(
        code, user.reshape(user.size), t * du, du, vectors.reshape(vectors.size), vectors.shape[1],
        vector.reshape(vector.size), t * vector.shape[1], count, 1.0, x.reshape(x.size), start, start,
        z.reshape(z.size), start, start,
    )  # fmt: skip
    return start


@kernel
def lay_side_by_side(source, t, count, x, z, both):  # type: ignore[no-untyped-def]
    """Write (x, z) of the candidates of round t side by side into the rows of `both`; see `lay_out`."""
    code, user, vector, vectors = source
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
    fill_many(
        code, user.reshape(user.size), t * du, du, vectors.reshape(vectors.size), vectors.shape[1],
        vector.reshape(vector.size), t * vector.shape[1], count, 1.0, room, start, d2, room, d1, d1,
    )  # fmt: skip
