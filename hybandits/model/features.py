"""Features of a candidate from the user's vector u and the arm's vector v."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hybandits.foundation import checks
from hybandits.foundation.checks import Doubles
from hybandits.foundation.compiling import kernel
from hybandits.kernels.simd import load1, load4, mul4, splat4, store1, store4

MAPS = {
    "das": "x = vec(u v'), z = v (Das & Sinha 2024)",
    "li": "x = vec(u v'), z = u (Li et al. 2010)",
    "shared": "x = vec(u v'), no z",
    "disjoint": "no x, z = u",
}
"""Every map is linear in (u, 1) once v is given, which is what makes fitting cheap (see `fit`)."""

DAS, LI, SHARED, DISJOINT = range(len(MAPS))
GIVEN = -1
"""In the place of a map's code: the features are there already (see `lay_out`)."""


@dataclass(frozen=True)
class FeatureMap:
    """How x and z are made, for user vectors of length `user` and arm vectors of length `arm`.

    vec(u v') has its columns one below the other: x[j * user + i] = u[i] * v[j].

    >>> make = FeatureMap("das", 3, 2)
    >>> make.d1, make.d2
    (6, 2)
    >>> x, z = make([1, 2, 3], [10, 20])
    >>> x.tolist(), z.tolist()
    ([10.0, 20.0, 30.0, 20.0, 40.0, 60.0], [10.0, 20.0])
    """

    name: str
    user: int
    arm: int

    def __post_init__(self) -> None:
        if self.name not in MAPS:
            raise ValueError(f"features must be one of {', '.join(MAPS)}, got {self.name!r}")

    @property
    def code(self) -> int:
        """The map as kernels know it."""
        return list(MAPS).index(self.name)

    @property
    def d1(self) -> int:
        """Length of x."""
        return 0 if self.name == "disjoint" else self.user * self.arm

    @property
    def d2(self) -> int:
        """Length of z."""
        return {"das": self.arm, "li": self.user, "shared": 0, "disjoint": self.user}[self.name]

    def __call__(self, u: Any, v: Any) -> tuple[Doubles, Doubles]:
        """x and z for a user u and an arm's v; for several arms, one row each in v, one row each of x and z."""
        user = checks.array("u", u, 1, self.user, f"shape ({self.user},), the user's features")
        several = np.ndim(v) != 1
        rows = checks.array(
            "v", v if several else [v], 2, self.arm, f"length {self.arm}, an arm's features, or one such row per arm"
        )
        x, z = np.empty((len(rows), self.d1)), np.empty((len(rows), self.d2))
        for i, row in enumerate(rows):
            fill(self.code, user, row, 1.0, x[i], z[i])
        return (x, z) if several else (x[0], z[0])


@kernel
def fill(code, u, v, one, x, z):  # type: ignore[no-untyped-def]
    """x = vec(u v'), columns one below the other: x[j du + i] = u_i v_j; z = v (times one) or u, see MAPS."""
    du = u.shape[0]
    start = 0 * du  # a plain int: for a literal 0 numba would compile the callee a second time
    rows = np.zeros(1, np.int64)
    fill_many(code, u, start, du, v, v.shape[0], rows, start, start + 1, one, x, start, start, z, start, start)


@kernel
def fill_many(  # type: ignore[no-untyped-def]
    code, u, uo, du, v, dv, rows, ro, count, one, x, xo, x_gap, z, zo, z_gap
):  # fmt: skip
    """`fill` for a user and so many arms, between flat arrays and without a view or a call for each.

    u is at u[uo:]; arm k's v at v[rows[ro + k] dv :]; the first x and z come to x[xo:] and z[zo:], the next ones behind
    them, after a gap. The last numbers of a row are not a loop, as a compiler would make a long one of it.
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
def room_for(made, x, z):  # type: ignore[no-untyped-def]
    """x and z themselves if they are given, else room for one round, whoever else may be playing the same ones."""
    if made[0] == GIVEN:
        return x, z
    return np.empty((1, x.shape[1], x.shape[2])), np.empty((1, z.shape[1], z.shape[2]))


@kernel
def lay_out(made, t, count, x, z):  # type: ignore[no-untyped-def]
    """Which row of x (rows, n, d1) and z (rows, n, d2) holds the features of the candidates, so many, of round t.

    made = (code, user, vector, vectors). Code GIVEN: row t, where they have been all along. Else they are made in
    row 0 of `room_for` them, candidate k's from user[t] and vectors[vector[t, k]].
    """
    code, user, vector, vectors = made
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
def lay_side_by_side(made, t, count, x, z, both):  # type: ignore[no-untyped-def]
    """(x, z) of the candidates of round t in the rows of both; see `lay_out`."""
    code, user, vector, vectors = made
    d1 = x.shape[2]
    d2 = z.shape[2]
    if code == GIVEN:
        for k in range(count):
            both[k, :d1] = x[t, k]
            both[k, d1:] = z[t, k]
        return
    du = user.shape[1]
    start = 0 * du
    room = both.reshape(both.size)
    fill_many(
        code, user.reshape(user.size), t * du, du, vectors.reshape(vectors.size), vectors.shape[1],
        vector.reshape(vector.size), t * vector.shape[1], count, 1.0, room, start, d2, room, d1, d1,
    )  # fmt: skip
