"""The arrow matrix kept as sums: kernels for HyRan, whose ridge changes every round.

V, W_i, B_i and the right-hand sides b_0, b_i are plain running sums. The ridge is added when the system is solved, and
everything is factored again in every round. This is what a round costs, so four arms are factored at a time, one in
each lane of a register.

Layout. Arms 4g..4g+3 form group g. Their blocks [W_i | B_i' | b_i] have n = d2 + m + 1 columns, with m = d1 (m = 0 if
cross blocks are left out). They are stored from the diagonal on: row i has the columns i..n-1, and the four lanes of an
entry lie side by side. The factor [R_i | T_i | q_i] of W_i + lambda I = R_i' R_i has the same layout, with 1 / R_kk in
the place of R_kk. The shared block [V | b_0] is a matrix of d1 rows padded to whole registers; its upper part is used.
A lane without an arm holds zeros: its factor is that of lambda I and its parameters are 0.
"""

from __future__ import annotations

import math

import numpy as np

from hybandits.foundation.compiling import kernel
from hybandits.kernels.simd import (
    add4,
    inverse_root4,
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
)


@kernel
def block_size(d2, m):
    """How many entries an arm's block has, per lane."""
    return d2 * (d2 + 1) // 2 + d2 * (m + 1)


@kernel
def row_start(i, n):
    """Where row i of a block of n columns starts, in entries."""
    return i * n - i * (i - 1) // 2


@kernel
def padded(d1):
    """How many columns the shared block [V | b_0] has, padded to whole registers."""
    return 4 * ((d1 + 4) // 4)


@kernel
def add_shared_row(x, target, shared):
    """V += x x', b_0 += x target, in the upper part of the shared block."""
    d1 = x.shape[0]
    stride = padded(d1)
    for i in range(d1):
        xi = load1(x, i)
        o = i * stride
        for j in range(i, d1):
            store1(shared, o + j, load1(shared, o + j) + xi * load1(x, j))
        store1(shared, o + d1, load1(shared, o + d1) + xi * target)


@kernel
def add_row(slot, x, z, target, cross, shared, own):
    """V += x x', B_i += x z' (if cross), W_i += z z', b_0 += x target, b_i += z target."""
    d1 = x.shape[0]
    d2 = z.shape[0]
    m = d1 if cross else 0 * d1
    add_shared_row(x, target, shared)
    o = 4 * block_size(d2, m) * (slot // 4) + slot % 4
    for i in range(d2):
        zi = z[i]
        for j in range(i, d2):
            own[o] += zi * z[j]
            o += 4
        for j in range(m):
            own[o] += zi * x[j]
            o += 4
        own[o] += zi * target
        o += 4


@kernel
def add_round(slots, x, z, targets, cross, shared, own):
    """`add_row` for every candidate of a round, four arms at a time. Slots are distinct; those < 0 are left out."""
    count, d1 = x.shape
    d2 = z.shape[1]
    m = d1 if cross else 0 * d1
    n = d2 + m + 1
    size = 4 * block_size(d2, m)
    groups = own.shape[0] // max(size, 1)  # there are none if d2 = 0
    lanes = np.zeros(groups * 4 * n)
    for a in range(count):
        if slots[a] >= 0:
            add_shared_row(x[a], targets[a], shared)
        if slots[a] >= 0 and groups > 0:
            o = 4 * n * (slots[a] // 4) + slots[a] % 4
            for j in range(d2):
                lanes[o + 4 * j] = z[a, j]
            for j in range(m):
                lanes[o + 4 * (d2 + j)] = x[a, j]
            lanes[o + 4 * (n - 1)] = targets[a]
    for g in range(groups):
        o = g * size
        row = 4 * n * g
        for i in range(d2):
            zi = load4(lanes, row + 4 * i)
            for j in range(i, n):
                store4(own, o, muladd4(zi, load4(lanes, row + 4 * j), load4(own, o)))
                o += 4


@kernel
def factor_group(own, o, ridge, d2, n, factor):
    """[R | T | q] of one group's W + lambda I and B', b, in factor[o:]: R_kj = (W_kj - sum_h R_hk R_hj) / R_kk.

    Two rows and four columns are taken together, so that eight sums hide each other's latency.
    """
    zero = splat4(0.0)
    lam = splat4(ridge)
    i = 0
    while i < d2:
        top = o + 4 * (row_start(i, n) - i)  # entry (i, j) is at top + 4 j
        low = o + 4 * (row_start(i + 1, n) - i - 1)
        two = i + 1 < d2
        a = add4(load4(own, top + 4 * i), lam)
        b = load4(own, top + 4 * i + 4)
        c = add4(load4(own, low + 4 * i + 4), lam) if two else zero
        for k in range(i):
            r = o + 4 * (row_start(k, n) - k)
            p = sub4(zero, load4(factor, r + 4 * i))
            q = load4(factor, r + 4 * i + 4)
            a = muladd4(p, load4(factor, r + 4 * i), a)
            b = muladd4(p, q, b)
            if two:
                c = muladd4(sub4(zero, q), q, c)
        first = inverse_root4(a)
        store4(factor, top + 4 * i, first)
        step = mul4(b, first)
        store4(factor, top + 4 * i + 4, step)
        second = zero
        minus = sub4(zero, step)
        if two:
            second = inverse_root4(muladd4(minus, step, c))
            store4(factor, low + 4 * i + 4, second)
        j = i + 2
        while two and j + 4 <= n:
            a0, a1 = load4(own, top + 4 * j), load4(own, top + 4 * j + 4)
            a2, a3 = load4(own, top + 4 * j + 8), load4(own, top + 4 * j + 12)
            b0, b1 = load4(own, low + 4 * j), load4(own, low + 4 * j + 4)
            b2, b3 = load4(own, low + 4 * j + 8), load4(own, low + 4 * j + 12)
            for k in range(i):
                r = o + 4 * (row_start(k, n) - k)
                p = sub4(zero, load4(factor, r + 4 * i))
                q = sub4(zero, load4(factor, r + 4 * i + 4))
                f0, f1 = load4(factor, r + 4 * j), load4(factor, r + 4 * j + 4)
                f2, f3 = load4(factor, r + 4 * j + 8), load4(factor, r + 4 * j + 12)
                a0, a1, a2, a3 = muladd4(p, f0, a0), muladd4(p, f1, a1), muladd4(p, f2, a2), muladd4(p, f3, a3)
                b0, b1, b2, b3 = muladd4(q, f0, b0), muladd4(q, f1, b1), muladd4(q, f2, b2), muladd4(q, f3, b3)
            a0, a1, a2, a3 = mul4(a0, first), mul4(a1, first), mul4(a2, first), mul4(a3, first)
            store4(factor, top + 4 * j, a0)
            store4(factor, top + 4 * j + 4, a1)
            store4(factor, top + 4 * j + 8, a2)
            store4(factor, top + 4 * j + 12, a3)
            store4(factor, low + 4 * j, mul4(muladd4(minus, a0, b0), second))
            store4(factor, low + 4 * j + 4, mul4(muladd4(minus, a1, b1), second))
            store4(factor, low + 4 * j + 8, mul4(muladd4(minus, a2, b2), second))
            store4(factor, low + 4 * j + 12, mul4(muladd4(minus, a3, b3), second))
            j += 4
        while j < n:
            a0 = load4(own, top + 4 * j)
            b0 = load4(own, low + 4 * j) if two else zero
            for k in range(i):
                r = o + 4 * (row_start(k, n) - k)
                f0 = load4(factor, r + 4 * j)
                a0 = muladd4(sub4(zero, load4(factor, r + 4 * i)), f0, a0)
                if two:
                    b0 = muladd4(sub4(zero, load4(factor, r + 4 * i + 4)), f0, b0)
            a0 = mul4(a0, first)
            store4(factor, top + 4 * j, a0)
            if two:
                store4(factor, low + 4 * j, mul4(muladd4(minus, a0, b0), second))
            j += 1
        i += 2


@kernel
def add_products(factor, o, d2, m, n, products):
    """products[p, q] += (T' [T | q])_pq of one group, lane by lane: p = 0..m-1, q = p..m, row after row."""
    at = 0
    for p in range(m):
        q = p
        while q + 4 <= m + 1:
            a0, a1 = load4(products, at), load4(products, at + 4)
            a2, a3 = load4(products, at + 8), load4(products, at + 12)
            for k in range(d2):
                r = o + 4 * (row_start(k, n) - k + d2)
                t = load4(factor, r + 4 * p)
                a0 = muladd4(t, load4(factor, r + 4 * q), a0)
                a1 = muladd4(t, load4(factor, r + 4 * q + 4), a1)
                a2 = muladd4(t, load4(factor, r + 4 * q + 8), a2)
                a3 = muladd4(t, load4(factor, r + 4 * q + 12), a3)
            store4(products, at, a0)
            store4(products, at + 4, a1)
            store4(products, at + 8, a2)
            store4(products, at + 12, a3)
            at += 16
            q += 4
        while q <= m:
            a0 = load4(products, at)
            for k in range(d2):
                r = o + 4 * (row_start(k, n) - k + d2)
                a0 = muladd4(load4(factor, r + 4 * p), load4(factor, r + 4 * q), a0)
            store4(products, at, a0)
            at += 4
            q += 1


@kernel
def factor_shared(d1, a):
    """Factor the shared block in place into [R_0 | q_0], with 1 / R_kk on the diagonal.

    In each row, the entries before the register that holds the diagonal are undefined.
    """
    stride = padded(d1)
    for i in range(d1):
        o = i * stride
        start = 4 * (i // 4)
        for j in range(start, stride, 4):
            acc = load4(a, o + j)
            for k in range(i):
                minus = splat4(-load1(a, k * stride + i))
                acc = muladd4(minus, load4(a, k * stride + j), acc)
            store4(a, o + j, acc)
        inverse = 1.0 / math.sqrt(load1(a, o + i))
        for j in range(i + 1, d1 + 1):
            store1(a, o + j, load1(a, o + j) * inverse)
        store1(a, o + i, inverse)


@kernel
def estimate(groups, ridge, cross, d1, d2, shared, own, factor, shared_factor, theta, beta):
    """Factor M + ridge I into factor and shared_factor and solve for theta and beta; False if it is not definite.

        W_i + lambda I = R_i' R_i,  B_i' = R_i' T_i,  V + lambda I - sum_i T_i' T_i = R_0' R_0,
        theta = R_0^-1 (q_0 - sum_i T_i' q_i),  beta_i = R_i^-1 (q_i - T_i theta).

    beta has a row for every slot: 4 for each group.
    """
    m = d1 if cross else 0 * d1
    n = d2 + m + 1
    size = 4 * block_size(d2, m)
    stride = padded(d1)
    products = np.zeros(4 * (m * (m + 1) // 2 + m))
    for g in range(groups):
        factor_group(own, g * size, ridge, d2, n, factor)
        add_products(factor, g * size, d2, m, n, products)
    for i in range(d1 * stride):
        store1(shared_factor, i, load1(shared, i))
    for i in range(d1):
        shared_factor[i * stride + i] += ridge
    at = 0
    for p in range(m):
        for q in range(p, m + 1):
            shared_factor[p * stride + q] -= sum4(load4(products, at))
            at += 4
    factor_shared(d1, shared_factor)
    total = 0.0
    for k in range(d1 - 1, -1, -1):
        t = shared_factor[k * stride + d1]
        for j in range(k + 1, d1):
            t -= shared_factor[k * stride + j] * theta[j]
        theta[k] = t * shared_factor[k * stride + k]
        total += theta[k]
    lanes = np.empty(4 * d2)
    zero = splat4(0.0)
    check = zero
    for g in range(groups):
        for k in range(d2 - 1, -1, -1):
            r = g * size + 4 * (row_start(k, n) - k)
            t4 = load4(factor, r + 4 * (n - 1))
            u4 = zero
            for j in range(k + 1, d2):
                t4 = muladd4(sub4(zero, load4(factor, r + 4 * j)), load4(lanes, 4 * j), t4)
            for j in range(m):
                u4 = muladd4(load4(factor, r + 4 * (d2 + j)), spread4(theta, j), u4)
            t4 = mul4(sub4(t4, u4), load4(factor, r + 4 * k))
            store4(lanes, 4 * k, t4)
            check = add4(check, t4)
        for lane in range(4):
            for k in range(d2):
                beta[4 * g + lane, k] = lanes[4 * k + lane]
    return math.isfinite(total + sum4(check))


@kernel
def mean_of(x, z, slot, theta, beta):
    """x.theta + z.beta_slot; beta is 0 if slot < 0."""
    value = 0.0
    for k in range(x.shape[0]):
        value += x[k] * theta[k]
    if slot >= 0:
        for k in range(z.shape[0]):
            value += z[k] * beta[slot, k]
    return value


@kernel
def width_of(x, z, slot, ridge, cross, factor, shared_factor):
    """sqrt(|w|^2 + |g|^2) with w = R_i^-T z, g = R_0^-T (x - T_i' w), from the factor left by `estimate`."""
    d1 = x.shape[0]
    d2 = z.shape[0]
    m = d1 if cross else 0 * d1
    n = d2 + m + 1
    o = 4 * block_size(d2, m) * (slot // 4) + slot % 4
    square = 0.0
    y = x.copy()
    rest = z.copy()
    for k in range(d2):
        if slot < 0:
            square += z[k] * z[k] / ridge
            continue
        r = o + 4 * (row_start(k, n) - k)
        w = rest[k] * factor[r + 4 * k]
        square += w * w
        for j in range(k + 1, d2):
            rest[j] -= w * factor[r + 4 * j]
        for j in range(m):
            y[j] -= w * factor[r + 4 * (d2 + j)]
    stride = padded(d1)
    for k in range(d1):
        g = y[k] * shared_factor[k * stride + k]
        square += g * g
        for j in range(k + 1, d1):
            y[j] -= g * shared_factor[k * stride + j]
    return math.sqrt(square)


@kernel
def learn_round(
    played, p, u, check_ridge, x, z, slots, reward, cross, groups, shared, own, factor, shared_factor, theta, beta
):  # fmt: skip
    """Learn a round as HyRan does (Kim, Paik & Oh 2023, Algorithm 1); False if the sums are no longer definite.

    If u < p, the event h = a, every candidate learns: the played one the pseudo-reward (1 - 1/p) X.check + Y/p, the
    others X.check, where check is the estimate at `check_ridge`. Otherwise, or if there is only one candidate, the
    played arm alone learns Y.
    """
    count, d1 = x.shape
    d2 = z.shape[1]
    if count == 1 or not u < p:
        add_row(slots[played], x[played], z[played], reward, cross, shared, own)
        return True
    if not estimate(groups, check_ridge, cross, d1, d2, shared, own, factor, shared_factor, theta, beta):
        return False
    targets = np.empty(count)
    for i in range(count):
        targets[i] = mean_of(x[i], z[i], slots[i], theta, beta)
    targets[played] = (1.0 - 1.0 / p) * targets[played] + reward / p
    add_round(slots, x, z, targets, cross, shared, own)
    return True
