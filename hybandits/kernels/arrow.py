"""The arrow factor: kernels that keep the Cholesky factor of the hybrid ridge regression, and score with it.

The hybrid ridge regression has the block arrowhead matrix (paper, appendix A)

    M = [ V    B_1  ..  B_K ]      V   = lambda I + sum x x'          (d1 x d1, all rounds)
        [ B_1' W_1          ]      B_i =            sum x z'          (d1 x d2, rounds of arm i)
        [ ..        ..      ]      W_i = lambda I + sum z z'          (d2 x d2, rounds of arm i)
        [ B_K'          W_K ]

Eliminating every arm before the shared part leaves no fill-in, so its Cholesky factor is an arrow too:

    W_i = R_i' R_i,    B_i' = R_i' T_i,    V - sum_i B_i W_i^-1 B_i' = R_0' R_0,

with right-hand sides q_i and q_0. These factors are the state of the estimator. Scoring is faster with

    L_i = R_i^-T  (lower triangular),    C_i = B_i W_i^-1 = T_i' L_i,    L_0 = R_0^-T,

which are kept beside the factors: the same rotations update them, and every `REFRESH` rows they are recomputed from the
factors, so that rounding errors do not pile up. Then

    w = L_i z      y = x - C_i z      g = L_0 y
    mean = w.q_i + g.q_0              width^2 = |w|^2 + |g|^2 = x~' M^-1 x~.

Layout. A block of dimension d with m columns beside it (an arm: d = d2, m = d1; the shared block: d = d1, m = 0) is

    factor: the rows k = 0..d-1 of [R | T], each from its diagonal on: d - k + m numbers;
    score:  q (d), then L in panels, then C in panels.

A panel holds four rows, column after column, so that one column is one register: L's panel b has the rows 4b..4b+3 and
the columns 0..min(4b+4, d)-1, C's panel b has the rows 4b..4b+3 (of d1) and all d2 columns. Rows beyond the last are 0.
The blocks of all arms lie one after another in one flat array; that of slot s starts at s * size.

A table of an estimator (`addresses`) has one row: ARM_FACTOR, ARM_SCORE, PULLS, SHARED_FACTOR, SHARED_SCORE, RIDGE.
"""

import math

import numpy as np

from hybandits.foundation.compiling import kernel
from hybandits.kernels.addresses import array_at
from hybandits.kernels.simd import (
    add4,
    load1,
    load4,
    mul4,
    muladd4,
    splat4,
    spread4,
    store1,
    store4,
    sub4,
    sum4,
    sums4,
)

LIMIT = 1e50
"""The largest feature or reward in absolute value that is accepted.

|C z| <= |z| max|x| / (2 sqrt(lambda)). With the lambda that `checks.ridge` allows, every width and every sum of squares
is therefore finite, and a call that has passed this check cannot fail later.
"""

REFRESH = 512
"""The number of rows after which a block's L and C are recomputed from R and T."""

SMALLEST = 1e-280
"""A sum of squares below this counts as 0: it could not be divided by."""

SHORT = 16
"""If C has fewer columns than this, four of its panels are summed together."""

BLOCK = 64
"""The number of candidates that go through both stages of scoring together; a multiple of four."""

ARM_FACTOR, ARM_SCORE, PULLS, SHARED_FACTOR, SHARED_SCORE, RIDGE = range(6)
"""The columns of an estimator's table, in arrays."""


@kernel(inline=True)
def triangle_size(d):
    """The length of the panels of a lower triangular d x d matrix."""
    whole = d // 4
    return 8 * whole * (whole + 1) + (4 * d if 4 * whole < d else 0)


@kernel(inline=True)
def factor_size(d, m):
    """The length of the factor block [R | T] of dimension d with m columns beside it."""
    return d * (d + 1) // 2 + d * m


@kernel(inline=True)
def score_size(d, m):
    """The length of the score block (q, L, C) of dimension d with m columns beside it."""
    return d + triangle_size(d) + 4 * ((m + 3) // 4) * d


@kernel
def reset_block(factor, f, score, h, d, m, ridge):
    """Set a block to its state before any data: R = sqrt(lambda) I, T = 0, q = 0, L = I / sqrt(lambda), C = 0."""
    root = math.sqrt(ridge)
    factor[f : f + factor_size(d, m)] = 0.0
    score[h : h + score_size(d, m)] = 0.0
    for k in range(d):
        factor[f] = root
        f += d - k + m
    o = h + d
    for k in range(d):
        b = k // 4
        cols = min(4 * b + 4, d)
        score[o + 4 * k + k - 4 * b] = 1.0 / root
        if k - 4 * b == 3:
            o += 4 * cols


@kernel
def rotate_row(factor, f, score, h, d, m, row, rhs, c, s):
    """Givens-rotate the row (z, x | r) into (R, T | q); leave the rest of x in row[d:] and return the rest of r.

    Rotation k = (c[k], s[k]) turns (R_kk, row_k) into (sqrt(R_kk^2 + row_k^2), 0). Nothing is subtracted from a
    square, so R'R stays positive definite.
    """
    o = f
    for k in range(d):
        n = d - k + m
        b = load1(row, k)
        if b * b == 0.0:
            store1(c, k, 1.0)
            store1(s, k, 0.0)
        else:
            a = load1(factor, o)
            r = math.sqrt(a * a + b * b)
            ck = a / r
            sk = b / r
            store1(c, k, ck)
            store1(s, k, sk)
            store1(factor, o, r)
            cv = splat4(ck)
            sv = splat4(sk)
            nv = splat4(-sk)
            i = 1
            while i + 4 <= n:
                up = load4(factor, o + i)
                down = load4(row, k + i)
                store4(factor, o + i, muladd4(sv, down, mul4(cv, up)))
                store4(row, k + i, muladd4(nv, up, mul4(cv, down)))
                i += 4
            while i < n:
                up1 = load1(factor, o + i)
                down1 = load1(row, k + i)
                store1(factor, o + i, ck * up1 + sk * down1)
                store1(row, k + i, ck * down1 - sk * up1)
                i += 1
            q = load1(score, h + k)
            store1(score, h + k, ck * q + sk * rhs)
            rhs = ck * rhs - sk * q
        o += n
    return rhs


@kernel
def reflect_rows(factor, f, score, h, d, m, rows, g, count, stride, rhs):
    """`rotate_row` of several rows at once, by Householder reflections: row i is rows[g + i stride :], its right-hand
    side rhs[i]. What is left of them stays there.

    Reflection k turns (R_kk, t) with t = column k of the rows into (sqrt(R_kk^2 + |t|^2), 0): it is I - 2 v v' / |v|^2
    with v = (-|t|^2 / (R_kk + sqrt(R_kk^2 + |t|^2)), t). R_kk must not be negative.
    """
    column = np.empty(count)
    o = f
    for k in range(d):
        n = d - k + m
        total = 0.0
        for i in range(count):
            t = load1(rows, g + i * stride + k)
            store1(column, i, t)
            total += t * t
        if total > SMALLEST:
            a = load1(factor, o)
            r = math.sqrt(a * a + total)
            top = -total / (a + r)
            scale = -2.0 / (top * top + total)
            store1(factor, o, r)
            above = splat4(top)
            step = splat4(scale)
            j = 1
            while j + 4 <= n:
                here = load4(factor, o + j)
                product = mul4(above, here)
                at = g + k + j
                for i in range(count):
                    product = muladd4(spread4(column, i), load4(rows, at), product)
                    at += stride
                product = mul4(step, product)
                store4(factor, o + j, muladd4(above, product, here))
                at = g + k + j
                for i in range(count):
                    store4(rows, at, muladd4(spread4(column, i), product, load4(rows, at)))
                    at += stride
                j += 4
            while j < n:
                product1 = top * load1(factor, o + j)
                for i in range(count):
                    product1 += load1(column, i) * load1(rows, g + i * stride + k + j)
                product1 *= scale
                store1(factor, o + j, load1(factor, o + j) + top * product1)
                for i in range(count):
                    at = g + i * stride + k + j
                    store1(rows, at, load1(rows, at) + load1(column, i) * product1)
                j += 1
            product1 = top * load1(score, h + k)
            for i in range(count):
                product1 += load1(column, i) * load1(rhs, i)
            product1 *= scale
            store1(score, h + k, load1(score, h + k) + top * product1)
            for i in range(count):
                store1(rhs, i, load1(rhs, i) + load1(column, i) * product1)
        o += n


@kernel
def rotate_inverse(score, h, d, c, s, e):
    """Apply the rotations of `rotate_row` to (L; 0): L becomes the new R^-T, and e (0 on entry) the rest of the row.

    If Q (R; z') = (R_new; 0) with Q orthogonal, then Q (R^-T; 0) = (R_new^-T; e').
    """
    o = h + d
    for b in range((d + 3) // 4):
        cols = min(4 * b + 4, d)
        j = 4 * b
        if j + 4 <= d:
            c0, c1, c2, c3 = c[j], c[j + 1], c[j + 2], c[j + 3]
            s0, s1, s2, s3 = s[j], s[j + 1], s[j + 2], s[j + 3]
            for k in range(cols):
                ek = load1(e, k)
                l0, l1, l2, l3 = load1(score, o), load1(score, o + 1), load1(score, o + 2), load1(score, o + 3)
                store1(score, o, c0 * l0 + s0 * ek)
                ek = c0 * ek - s0 * l0
                store1(score, o + 1, c1 * l1 + s1 * ek)
                ek = c1 * ek - s1 * l1
                store1(score, o + 2, c2 * l2 + s2 * ek)
                ek = c2 * ek - s2 * l2
                store1(score, o + 3, c3 * l3 + s3 * ek)
                store1(e, k, c3 * ek - s3 * l3)
                o += 4
        else:
            for k in range(cols):
                ek = load1(e, k)
                for i in range(d - j):
                    l0 = load1(score, o + i)
                    ci = load1(c, j + i)
                    si = load1(s, j + i)
                    store1(score, o + i, ci * l0 + si * ek)
                    ek = ci * ek - si * l0
                store1(e, k, ek)
                o += 4


@kernel
def update_cross(score, h, d, m, row, e):
    """C_new = C - x~ e', where x~ = row[d:] is the rest left by `rotate_row` and e the one left by `rotate_inverse`.

    C = T' L, and Q (T; x') = (T_new; x~'), Q (L; 0) = (L_new; e') give T' L = T_new' L_new + x~ e'.
    """
    o = h + d + triangle_size(d)
    whole = m // 4
    for b in range(whole):
        minus_x = sub4(splat4(0.0), load4(row, d + 4 * b))
        for k in range(d):
            store4(score, o, muladd4(minus_x, spread4(e, k), load4(score, o)))
            o += 4
    if 4 * whole < m:
        for k in range(d):
            for i in range(m - 4 * whole):
                score[o + i] -= row[d + 4 * whole + i] * e[k]
            o += 4


@kernel
def invert_triangle(r, inverse):
    """L = R^-T, lower triangular, of the upper triangle R in r's first columns: R' L = I by forward substitution."""
    d = inverse.shape[0]
    for k in range(d):
        for j in range(d):
            inverse[k, j] = 0.0
        for i in range(k):
            t = r[i, k]
            for j in range(i + 1):
                inverse[k, j] -= t * inverse[i, j]
        inverse[k, k] = 1.0
        for j in range(k + 1):
            inverse[k, j] /= r[k, k]


@kernel
def unpacked(factor, f, d, m, width):
    """The rows [R | T] of a factor block as a matrix of this width, padded with 0."""
    rows = np.zeros((d, width))
    for k in range(d):
        for j in range(k, d + m):
            rows[k, j] = factor[f]
            f += 1
    return rows


@kernel
def refresh_block(factor, f, score, h, d, m):
    """Recompute L and C from R and T: R' L = I by forward substitution, C = T' L."""
    r = unpacked(factor, f, d, m, d + m)
    inverse = np.empty((d, d))
    invert_triangle(r, inverse)
    o = h + d
    for b in range((d + 3) // 4):
        for k in range(min(4 * b + 4, d)):
            for i in range(4):
                score[o + i] = inverse[4 * b + i, k] if 4 * b + i < d else 0.0
            o += 4
    cross = np.zeros((d, m))
    for i in range(d):
        for k in range(i + 1):
            t = inverse[i, k]
            for j in range(m):
                cross[k, j] += t * r[i, d + j]
    for b in range((m + 3) // 4):
        for k in range(d):
            for i in range(4):
                score[o + i] = cross[k, 4 * b + i] if 4 * b + i < m else 0.0
            o += 4


@kernel
def remove_row(factor, f, score, h, d, m, row, rhs):
    """Undo `rotate_row` by hyperbolic rotations: R'R - z z'. Call `refresh_block` afterwards to update L and C.

    This is well conditioned only while the row's leverage stays away from 1. It is used after a merge, to remove one of
    the two ridges: there M >= 2 lambda I bounds the leverage by 1/2, and so the growth of rounding errors by sqrt(2).
    """
    o = f
    for k in range(d):
        n = d - k + m
        t = row[k] / factor[o]
        if t != 0.0:
            r = math.sqrt((1.0 - t) * (1.0 + t))
            for i in range(n):
                factor[o + i] = (factor[o + i] - t * row[k + i]) / r
                row[k + i] = r * row[k + i] - t * factor[o + i]
            score[h + k] = (score[h + k] - t * rhs) / r
            rhs = r * rhs - t * score[h + k]
        o += n
    return rhs


@kernel
def learn_row(slot, x, z, reward, arm_factor, arm_score, pulls, shared_factor, shared_score, rounds):
    """Rotate (z, x | r) into the arm's block and the rest into the shared block: O((d1 + d2)^2), whatever K is.

    The row is counted in pulls[slot]; rounds is the number of rows before it.
    """
    d1 = x.shape[0]
    d2 = z.shape[0]
    row = np.empty(d1 + d2)
    c = np.empty(d1 + d2)
    s = np.empty(d1 + d2)
    e = np.zeros(d1 + d2)
    row[:d2] = z
    row[d2:] = x
    f = slot * factor_size(d2, d1)
    h = slot * score_size(d2, d1)
    rhs = rotate_row(arm_factor, f, arm_score, h, d2, d1, row, reward, c, s)
    rotate_inverse(arm_score, h, d2, c, s, e)
    update_cross(arm_score, h, d2, d1, row, e)
    rest = row[d2:]
    e[:] = 0.0
    start = 0 * d1  # an int variable: for a literal 0 Numba would compile every callee a second time
    rotate_row(shared_factor, start, shared_score, start, d1, start, rest, rhs, c, s)
    rotate_inverse(shared_score, start, d1, c, s, e)
    pulls[slot] += 1
    if pulls[slot] % REFRESH == 0:
        refresh_block(arm_factor, f, arm_score, h, d2, d1)
    if (rounds + 1) % REFRESH == 0:
        refresh_block(shared_factor, start, shared_score, start, d1, start)


@kernel(inline=True)
def within_limit(values):
    """True if every number of a contiguous array is finite and at most LIMIT in absolute value."""
    flat = values.reshape(values.size)
    bad = 0
    for i in range(flat.shape[0]):
        bad += not abs(flat[i]) <= LIMIT  # not as a branch, so that several are checked at a time
    return bad == 0


@kernel
def learn_by_table(slot, x, z, reward, row, rounds):
    """`learn_row` by the row of a table."""
    learn_row(
        slot, x, z, reward, array_at(row, ARM_FACTOR, np.float64), array_at(row, ARM_SCORE, np.float64),
        array_at(row, PULLS, np.int64), array_at(row, SHARED_FACTOR, np.float64),
        array_at(row, SHARED_SCORE, np.float64), rounds,
    )  # fmt: skip


@kernel
def learn_rows(slots, x, z, rewards, table, rounds):
    """Learn rows, whose numbers must be within LIMIT, in order."""
    for i in range(slots.shape[0]):
        learn_by_table(slots[i], x[i], z[i], rewards[i], table[0], rounds + i)


@kernel
def learn_one(slot, x, z, reward, table, rounds):
    """Learn one row; False, with nothing changed, if a number is not finite or beyond LIMIT."""
    if not (within_limit(x) and within_limit(z) and abs(reward) <= LIMIT):
        return False
    learn_by_table(slot, x, z, reward, table[0], rounds)
    return True


@kernel(inline=True)
def panel_times(score, o, v, vo, cols):
    """Multiply one panel (four rows, cols columns, at score[o:]) by v[vo : vo+cols]."""
    a0 = splat4(0.0)
    a1 = a0
    a2 = a0
    a3 = a0
    k = 0
    while k + 4 <= cols:
        a0 = muladd4(spread4(v, vo + k), load4(score, o), a0)
        a1 = muladd4(spread4(v, vo + k + 1), load4(score, o + 4), a1)
        a2 = muladd4(spread4(v, vo + k + 2), load4(score, o + 8), a2)
        a3 = muladd4(spread4(v, vo + k + 3), load4(score, o + 12), a3)
        o += 16
        k += 4
    while k < cols:
        a0 = muladd4(spread4(v, vo + k), load4(score, o), a0)
        o += 4
        k += 1
    return add4(add4(a0, a1), add4(a2, a3))


@kernel(inline=True)
def same_four(a):
    """(a, a, a, a)."""
    return a, a, a, a


@kernel(inline=True)
def spread_four(v, rows, k):
    """v[rows[r] + k] in every lane, for four vectors r."""
    return spread4(v, rows[0] + k), spread4(v, rows[1] + k), spread4(v, rows[2] + k), spread4(v, rows[3] + k)


@kernel(inline=True)
def muladd_four(a, b, c):
    """a[r] * b[r] + c[r] for four vectors r."""
    return muladd4(a[0], b[0], c[0]), muladd4(a[1], b[1], c[1]), muladd4(a[2], b[2], c[2]), muladd4(a[3], b[3], c[3])


@kernel(inline=True)
def store_four(a, rows, k, v):
    """a[rows[r] + k : rows[r] + k + 4] = v[r] for four vectors r."""
    store4(a, rows[0] + k, v[0])
    store4(a, rows[1] + k, v[1])
    store4(a, rows[2] + k, v[2])
    store4(a, rows[3] + k, v[3])


@kernel(inline=True)
def panel_times_four(score, o, v, rows, cols):
    """`panel_times` with four vectors, at v[rows[r]:], to the bit: columns are loaded once."""
    a0 = same_four(splat4(0.0))
    a1, a2, a3 = a0, a0, a0
    k = 0
    while k + 4 <= cols:
        a0 = muladd_four(spread_four(v, rows, k), same_four(load4(score, o)), a0)
        a1 = muladd_four(spread_four(v, rows, k + 1), same_four(load4(score, o + 4)), a1)
        a2 = muladd_four(spread_four(v, rows, k + 2), same_four(load4(score, o + 8)), a2)
        a3 = muladd_four(spread_four(v, rows, k + 3), same_four(load4(score, o + 12)), a3)
        o += 16
        k += 4
    while k < cols:
        a0 = muladd_four(spread_four(v, rows, k), same_four(load4(score, o)), a0)
        o += 4
        k += 1
    return (
        add4(add4(a0[0], a1[0]), add4(a2[0], a3[0])),
        add4(add4(a0[1], a1[1]), add4(a2[1], a3[1])),
        add4(add4(a0[2], a1[2]), add4(a2[2], a3[2])),
        add4(add4(a0[3], a1[3]), add4(a2[3], a3[3])),
    )


@kernel(inline=True)
def eliminate_unlearned(x, xo, z, zo, d1, d2, ridge, y, yo, stride):
    """|w|^2 of an arm that has not learned, w = z / sqrt(lambda), and y = x, padded with 0."""
    t = 0.0
    for k in range(d2):
        t += load1(z, zo + k) * load1(z, zo + k)
    for k in range(d1):
        store1(y, yo + k, load1(x, xo + k))
    for k in range(d1, stride):
        store1(y, yo + k, 0.0)
    return t / ridge


@kernel
def eliminate_arms(x, z, slots, first, last, arm_score, ridge, y, square, product):
    """w = L_i z and y = x - C_i z for the candidates first..last-1.

    For candidate first + a, y is written to y[a] and padded with 0, |w|^2 to square[first + a] and w.q_i to
    product[first + a]. A slot < 0 is an arm that has not learned: w = z / sqrt(lambda), y = x, q_i = 0. Where d2 is
    small, C is taken four panels at a time: one short sum cannot hide its own latency, four hide each other's.
    """
    d1, d2, stride = x.shape[1], z.shape[1], y.shape[1]
    x, z, y = x.reshape(x.size), z.reshape(z.size), y.reshape(y.size)
    size = score_size(d2, d1)
    whole = d1 // 4
    step = 4 * d2
    for i in range(first, last):
        slot = slots[i]
        xo = i * d1
        zo = i * d2
        yo = (i - first) * stride
        if slot < 0:
            store1(square, i, eliminate_unlearned(x, xo, z, zo, d1, d2, ridge, y, yo, stride))
            store1(product, i, 0.0)
            continue
        h = slot * size
        o = h + d2
        w2 = splat4(0.0)
        wq = w2
        for b in range((d2 + 3) // 4):
            cols = min(4 * b + 4, d2)
            w = panel_times(arm_score, o, z, zo, cols)
            o += 4 * cols
            w2 = muladd4(w, w, w2)
            wq = muladd4(w, load4(arm_score, h + 4 * b), wq)
        store1(square, i, sum4(w2))
        store1(product, i, sum4(wq))
        b = 0
        while d2 < SHORT and b + 4 <= whole:
            a0 = load4(x, xo + 4 * b)
            a1 = load4(x, xo + 4 * b + 4)
            a2 = load4(x, xo + 4 * b + 8)
            a3 = load4(x, xo + 4 * b + 12)
            for k in range(d2):
                minus_z = splat4(-load1(z, zo + k))
                a0 = muladd4(minus_z, load4(arm_score, o), a0)
                a1 = muladd4(minus_z, load4(arm_score, o + step), a1)
                a2 = muladd4(minus_z, load4(arm_score, o + 2 * step), a2)
                a3 = muladd4(minus_z, load4(arm_score, o + 3 * step), a3)
                o += 4
            o += 3 * step
            store4(y, yo + 4 * b, a0)
            store4(y, yo + 4 * b + 4, a1)
            store4(y, yo + 4 * b + 8, a2)
            store4(y, yo + 4 * b + 12, a3)
            b += 4
        while b < whole:
            cz = panel_times(arm_score, o, z, zo, d2)
            o += step
            store4(y, yo + 4 * b, sub4(load4(x, xo + 4 * b), cz))
            b += 1
        if 4 * whole < d1:
            store4(y, yo + 4 * whole, panel_times(arm_score, o, z, zo, d2))
            for k in range(4 * whole, d1):
                store1(y, yo + k, load1(x, xo + k) - load1(y, yo + k))


@kernel
def eliminated(x, z, slots, arm_score, ridge, extra):
    """y, |w|^2 and w.q_i of all candidates (see `eliminate_arms`).

    extra: what each candidate's variance has beyond its estimate's, in units of sigma^2; empty for nothing.
    """
    n, d1 = x.shape
    y, square, product = np.empty((n, 4 * ((d1 + 3) // 4))), np.empty(n), np.empty(n)
    eliminate_arms(x, z, slots, 0 * n, n, arm_score, ridge, y, square, product)
    for i in range(extra.shape[0]):
        square[i] += extra[i]
    return y, square, product


@kernel
def eliminate_rows_of_arm(x, z, at, step, d1, d2, slot, count, arm_score, ridge, y, first, stride, square, product):
    """`eliminate_arms` for one arm in several decisions, to the bit; d2 must be at least SHORT.

    Row r of the arm's features is row at + r step of x and z, which are flat. Its y is written to
    y[(first + r) * stride:], its numbers to square[first + r] and product[first + r]. Four rows are taken together, so
    that the arm's block is loaded once for all four; up to three rows behind the last are overwritten.
    """
    if slot < 0:
        for r in range(count):
            row = at + r * step
            square[first + r] = eliminate_unlearned(
                x, row * d1, z, row * d2, d1, d2, ridge, y, (first + r) * stride, stride
            )
            product[first + r] = 0.0
        return
    h = slot * score_size(d2, d1)
    whole = d1 // 4
    for r in range(first, first + count, 4):
        i0 = at + (r - first) * step
        i1 = i0 + step * min(1, first + count - 1 - r)  # beyond the last row, the last row again
        i2 = i0 + step * min(2, first + count - 1 - r)
        i3 = i0 + step * min(3, first + count - 1 - r)
        of_x, of_z = (i0 * d1, i1 * d1, i2 * d1, i3 * d1), (i0 * d2, i1 * d2, i2 * d2, i3 * d2)
        of_y = r * stride, (r + 1) * stride, (r + 2) * stride, (r + 3) * stride
        squares = same_four(splat4(0.0))
        products = squares
        o = h + d2
        for b in range((d2 + 3) // 4):
            cols = min(4 * b + 4, d2)
            w = panel_times_four(arm_score, o, z, of_z, cols)
            o += 4 * cols
            squares = muladd_four(w, w, squares)
            products = muladd_four(w, same_four(load4(arm_score, h + 4 * b)), products)
        store4(square, r, sums4(squares[0], squares[1], squares[2], squares[3]))
        store4(product, r, sums4(products[0], products[1], products[2], products[3]))
        for b in range(0, 4 * whole, 4):
            c = panel_times_four(arm_score, o, z, of_z, d2)
            o += 4 * d2
            store4(y, of_y[0] + b, sub4(load4(x, of_x[0] + b), c[0]))
            store4(y, of_y[1] + b, sub4(load4(x, of_x[1] + b), c[1]))
            store4(y, of_y[2] + b, sub4(load4(x, of_x[2] + b), c[2]))
            store4(y, of_y[3] + b, sub4(load4(x, of_x[3] + b), c[3]))
        if 4 * whole < d1:
            store_four(y, of_y, 4 * whole, panel_times_four(arm_score, o, z, of_z, d2))
            for a in range(min(4, first + count - r)):
                for k in range(4 * whole, d1):
                    store1(y, of_y[a] + k, load1(x, of_x[a] + k) - load1(y, of_y[a] + k))


@kernel
def add_shared(y, stride, d1, first, last, shared_score, square, product):
    """Add |g|^2 and g.q_0 with g = L_0 y to square and product of the candidates first..last-1.

    The y of candidate first + a is at y[a * stride:]; y holds a multiple of four rows. Four candidates are taken
    together, so that each column of L_0 is loaded once for all four, and two panels, so that sums hide latencies.
    """
    panels = (d1 + 3) // 4
    sums = np.empty(8)
    start = 0 * d1
    for i in range(first, last, 4):
        y0 = (i - first) * stride
        rows = y0, y0 + stride, y0 + 2 * stride, y0 + 3 * stride
        zeros = same_four(splat4(0.0))
        squares, products = zeros, zeros
        o = d1
        for b in range(0, panels, 2):
            upper, lower = zeros, zeros
            cols = min(4 * b + 4, d1)
            below = o + 4 * cols
            more = min(4 * b + 8, d1)
            if b + 1 < panels:
                for k in range(cols):
                    yk = spread_four(y, rows, k)
                    upper = muladd_four(yk, same_four(load4(shared_score, o + 4 * k)), upper)
                    lower = muladd_four(yk, same_four(load4(shared_score, below + 4 * k)), lower)
                for k in range(cols, more):
                    lower = muladd_four(spread_four(y, rows, k), same_four(load4(shared_score, below + 4 * k)), lower)
                squares = muladd_four(lower, lower, squares)
                products = muladd_four(lower, same_four(load4(shared_score, 4 * b + 4)), products)
            else:
                for k in range(cols):
                    upper = muladd_four(spread_four(y, rows, k), same_four(load4(shared_score, o + 4 * k)), upper)
            squares = muladd_four(upper, upper, squares)
            products = muladd_four(upper, same_four(load4(shared_score, 4 * b)), products)
            o = below + 4 * more
        store4(sums, start, sums4(squares[0], squares[1], squares[2], squares[3]))
        store4(sums, start + 4, sums4(products[0], products[1], products[2], products[3]))
        for a in range(min(4, last - i)):
            store1(square, i + a, load1(square, i + a) + load1(sums, a))
            store1(product, i + a, load1(product, i + a) + load1(sums, 4 + a))


@kernel
def add_shared_one(y, d1, shared_score, product, square):
    """product + g.q_0 and square + |g|^2 with g = L_0 y, for one candidate; y is padded with 0."""
    g2 = splat4(0.0)
    gq = g2
    start = 0 * d1
    o = d1
    for b in range((d1 + 3) // 4):
        cols = min(4 * b + 4, d1)
        g = panel_times(shared_score, o, y, start, cols)
        o += 4 * cols
        g2 = muladd4(g, g, g2)
        gq = muladd4(g, load4(shared_score, 4 * b), gq)
    return product + sum4(gq), square + sum4(g2)


@kernel
def score_rows(x, z, slots, arm_score, shared_score, ridge, mean, width):
    """mean_i = w.q_i + g.q_0, width_i = sqrt(|w|^2 + |g|^2) for every candidate; False if a feature exceeds LIMIT."""
    if not (within_limit(x) and within_limit(z)):
        return False
    n, d1 = x.shape
    stride = 4 * ((d1 + 3) // 4)
    y = np.empty((min(BLOCK, 4 * ((n + 3) // 4)), stride))
    flat = y.reshape(y.size)
    for first in range(0, n, BLOCK):
        last = min(first + BLOCK, n)
        eliminate_arms(x, z, slots, first, last, arm_score, ridge, y, width, mean)
        for k in range((last - first) * stride, 4 * ((last - first + 3) // 4) * stride):  # padding of the last four
            flat[k] = 0.0
        add_shared(flat, stride, d1, first, last, shared_score, width, mean)
    for i in range(n):
        store1(width, i, math.sqrt(load1(width, i)))
    return True


@kernel
def transpose_times(score, h, d, v, out):
    """out = L' v; with v = q this is R^-1 q."""
    for k in range(d):
        store1(out, k, 0.0)
    o = h + d
    for b in range((d + 3) // 4):
        cols = min(4 * b + 4, d)
        if 4 * b + 4 <= d:
            v4 = load4(v, 4 * b)
            for k in range(0, cols, 4):
                t0 = mul4(load4(score, o), v4)
                t1 = mul4(load4(score, o + 4), v4)
                t2 = mul4(load4(score, o + 8), v4)
                t3 = mul4(load4(score, o + 12), v4)
                store4(out, k, add4(load4(out, k), sums4(t0, t1, t2, t3)))
                o += 16
        else:
            for k in range(cols):
                t = load1(out, k)
                for i in range(d - 4 * b):
                    t += load1(score, o + i) * load1(v, 4 * b + i)
                store1(out, k, t)
                o += 4


@kernel
def arm_parameters(score, h, d1, d2, theta, beta):
    """beta_i = R_i^-1 (q_i - T_i theta) = L_i' q_i - C_i' theta."""
    transpose_times(score, h, d2, score[h : h + d2], beta)
    o = h + d2 + triangle_size(d2)
    for b in range((d1 + 3) // 4):
        for k in range(d2):
            for i in range(min(4, d1 - 4 * b)):
                beta[k] -= score[o + i] * theta[4 * b + i]
            o += 4


@kernel
def rotate_rows(slots, rows, rhs, remove, d1, d2, arm_factor, arm_score, shared_factor, shared_score):
    """Rotate rows (z, x | r) into the factors or, with `remove`, out of them; `refresh_blocks` must follow.

    A row whose slot is < 0 concerns the shared block only.
    """
    start = 0 * d1
    c = np.empty(d1 + d2)
    s = np.empty(d1 + d2)
    for i in range(slots.shape[0]):
        row = rows[i]
        rest = rhs[i]
        f = slots[i] * factor_size(d2, d1)
        h = slots[i] * score_size(d2, d1)
        if remove:
            if slots[i] >= 0:
                rest = remove_row(arm_factor, f, arm_score, h, d2, d1, row, rest)
            remove_row(shared_factor, start, shared_score, start, d1, start, row[d2:], rest)
        else:
            if slots[i] >= 0:
                rest = rotate_row(arm_factor, f, arm_score, h, d2, d1, row, rest, c, s)
            rotate_row(shared_factor, start, shared_score, start, d1, start, row[d2:], rest, c, s)


@kernel
def refresh_blocks(slots, d1, d2, arm_factor, arm_score, shared_factor, shared_score):
    """`refresh_block` of these arms and of the shared block."""
    start = 0 * d1
    for slot in slots:
        refresh_block(arm_factor, slot * factor_size(d2, d1), arm_score, slot * score_size(d2, d1), d2, d1)
    refresh_block(shared_factor, start, shared_score, start, d1, start)
