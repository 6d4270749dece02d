"""The features x and z of candidates, computed from vectors u of users, v of arms and p of both together."""

import numpy as np

from hybandits.foundation.compiling import kernel
from hybandits.kernels.simd import load1, load4, mul4, splat4, store1, store4

DAS, LI, SHARED, DISJOINT = range(4)
"""Codes of the maps `hybandits.features.MAPS`."""

GIVEN = -1
"""Used in place of a map's code where the features need not be computed (see `lay_out`)."""


@kernel(inline=True)
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
    """x = vec(u v') with x[j du + i] = u_i v_j, and z = v (times one) or u: see MAPS. p follows in x or z."""
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
def fill_crossed(code, u, v, p, x, z):  # type: ignore[no-untyped-def]
    """Write the features of user u[b] and arm v[k] to x[b, k] and z[b, k], followed by p[b, k] in one of them."""
    start = 0 * u.shape[0]
    count = v.shape[0]
    rows = np.arange(count).reshape(1, count)
    for b in range(u.shape[0]):
        source = code, u[b : b + 1], rows, v, p[b : b + 1]
        lay_out(source, start, count, x[b : b + 1], z[b : b + 1])


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


@kernel(inline=True)
def buffers_for(source, x, z):  # type: ignore[no-untyped-def]
    """x and z themselves if the features are given, else new arrays for one round.

    They belong to the caller alone, because several policies may play the same rounds at once.
    """
    if source[0] == GIVEN:
        return x, z
    return np.empty((1, x.shape[1], x.shape[2])), np.empty((1, z.shape[1], z.shape[2]))


@kernel
def lay_out(source, t, count, x, z):  # type: ignore[no-untyped-def]
    """Return the row of x (rows, n, d1) and z (rows, n, d2) that holds the features of the candidates of round t.

    source = (code, user, vector, vectors, pair), and `count` is the number of candidates. If the code is GIVEN, the
    features are in row t already. Otherwise x and z are those of `buffers_for`, and the features are computed into
    row 0: those of candidate k from user[t], vectors[vector[t, k]] and pair[t, k], which is appended to x or z if its
    rows are long enough.
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
