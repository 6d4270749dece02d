"""The arrow matrix kept as sums, for a policy whose ridge moves every round (HyRan): kernels only.

V (d1 x d1), W_i (d2 x d2), B_i (d1 x d2) and the right-hand sides b_0, b_i are plain running sums; the ridge is added
when the system is solved. Arms are rows of three-dimensional arrays, `slots` says which of them are in use.
"""

from __future__ import annotations

import math

import numpy as np

from hybandits.arrow import factor_size, refresh_block, score_size
from hybandits.compiling import kernel


@kernel
def add_row(slot, x, z, target, cross, v, w, b, shared_rhs, arm_rhs):
    """V += x x', B_i += x z' (if cross), W_i += z z', b_0 += x target, b_i += z target."""
    d1 = x.shape[0]
    d2 = z.shape[0]
    for i in range(d1):
        for j in range(d1):
            v[i, j] += x[i] * x[j]
        shared_rhs[i] += x[i] * target
    for i in range(d2):
        for j in range(d2):
            w[slot, i, j] += z[i] * z[j]
        arm_rhs[slot, i] += z[i] * target
    if cross:
        for i in range(d1):
            for j in range(d2):
                b[slot, i, j] += x[i] * z[j]


@kernel
def factor_rows(a, d, m):
    """The first d rows of the Cholesky factor of a symmetric matrix of d + m rows, in place: a[k, k:] = R_k.

    Row-oriented, so that the inner loops run along memory. The trailing m x m block becomes its Schur complement.
    """
    n = d + m
    for k in range(d):
        r = math.sqrt(a[k, k])
        for j in range(k, n):
            a[k, j] /= r
        for i in range(k + 1, n):
            t = a[k, i]
            if t != 0.0:
                for j in range(i, n):
                    a[i, j] -= t * a[k, j]


@kernel
def factor_arrow(slots, ridge, v, w, b, shared_rhs, arm_rhs, arm_factor, arm_score, shared_factor, shared_score):
    """The arrow factor of the sums with ridge * I added, in the layout of `arrow`; slot s of it is slots[s].

    For each arm the matrix [W_i + lambda I, B_i' | b_i; . , 0 | 0] is factored over its first d2 rows; what is left in
    the trailing block is minus B_i W_i^-1 (B_i' | b_i), which is added to the shared block before that is factored.
    """
    d1 = v.shape[0]
    d2 = w.shape[1]
    shared = np.zeros((d1 + 1, d1 + 1))
    for i in range(d1):
        for j in range(i, d1):
            shared[i, j] = v[i, j]
        shared[i, i] += ridge
        shared[i, d1] = shared_rhs[i]
    n = d2 + d1 + 1
    block = np.empty((n, n))
    for s in range(slots.shape[0]):
        slot = slots[s]
        block[:, :] = 0.0
        for i in range(d2):
            for j in range(i, d2):
                block[i, j] = w[slot, i, j]
            block[i, i] += ridge
            for j in range(d1):
                block[i, d2 + j] = b[slot, j, i]
            block[i, n - 1] = arm_rhs[slot, i]
        factor_rows(block, d2, d1 + 1)
        o = s * factor_size(d2, d1)
        h = s * score_size(d2, d1)
        for k in range(d2):
            for j in range(k, n - 1):
                arm_factor[o] = block[k, j]
                o += 1
            arm_score[h + k] = block[k, n - 1]
        for i in range(d1):
            for j in range(i, d1 + 1):
                shared[i, j] += block[d2 + i, d2 + j]
    factor_rows(shared, d1, 1)
    o = 0
    for k in range(d1):
        for j in range(k, d1):
            shared_factor[o] = shared[k, j]
            o += 1
        shared_score[k] = shared[k, d1]


@kernel
def refresh_all(count, d1, d2, arm_factor, arm_score, shared_factor, shared_score):
    """L and C of every block (see `arrow.refresh_block`), needed for widths."""
    for s in range(count):
        refresh_block(arm_factor, s * factor_size(d2, d1), arm_score, s * score_size(d2, d1), d2, d1)
    start = 0 * d1
    refresh_block(shared_factor, start, shared_score, start, d1, start)


@kernel
def solve_upper(factor, f, d, m, rhs):
    """R t = rhs by back substitution, in place; R's rows start at factor[f:] and have m further columns."""
    for k in range(d - 1, -1, -1):
        o = f + k * (d + m) - k * (k - 1) // 2
        t = rhs[k]
        for j in range(k + 1, d):
            t -= factor[o + j - k] * rhs[j]
        rhs[k] = t / factor[o]


@kernel
def solve_arrow(count, d1, d2, arm_factor, arm_score, shared_factor, shared_score, theta, beta):
    """theta = R_0^-1 q_0 and beta_s = R_s^-1 (q_s - T_s theta) from the factor alone, by back substitution."""
    for k in range(d1):
        theta[k] = shared_score[k]
    start = 0 * d1
    solve_upper(shared_factor, start, d1, start, theta)
    for s in range(count):
        f = s * factor_size(d2, d1)
        h = s * score_size(d2, d1)
        o = f
        for k in range(d2):
            t = arm_score[h + k]
            for j in range(d1):
                t -= arm_factor[o + d2 - k + j] * theta[j]
            beta[s, k] = t
            o += d2 - k + d1
        solve_upper(arm_factor, f, d2, d1, beta[s])
