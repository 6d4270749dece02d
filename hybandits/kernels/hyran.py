"""HyRan's sums: the arrow matrix without a ridge, which is factored in every round because the ridge changes.

V, W_i, B_i and the right-hand sides b_0, b_i are running sums. shared (d1, d1 + 1) is [V | b_0], and own[i] is
[W_i | B_i' | b_i], with d2 rows. If cross blocks are left out it is [W_i | b_i]. Upper triangles are used only.
"""

import math

import numpy as np

from hybandits.foundation.compiling import kernel


@kernel(inline=True)
def add_outer(row, target, sums):
    """Add row [row, .., target]' to the upper part of sums; row may be longer than sums has rows."""
    d, n = sums.shape
    for i in range(d):
        for j in range(i, n - 1):
            sums[i, j] += row[i] * row[j]
        sums[i, n - 1] += row[i] * target


@kernel
def add_row(slot, x, z, target, shared, own):
    """V += x x', B_i += x z' (where cross blocks are kept), W_i += z z', b_0 += x target, b_i += z target."""
    add_outer(x, target, shared)
    d2 = z.shape[0]
    row = np.empty(own.shape[2] - 1)
    for k in range(row.shape[0]):
        row[k] = z[k] if k < d2 else x[k - d2]
    add_outer(row, target, own[slot])


@kernel
def factor(block, ridge):
    """Turn [A | C] into [R | R^-T C] in place, with A + ridge I = R'R.

    Rows below four finished ones are updated by the four at once, in their order: the same bits, and fewer stores.
    """
    d, n = block.shape
    for first in range(0, d, 4):
        last = min(first + 4, d)
        for k in range(first, last):
            root = math.sqrt(block[k, k] + ridge)
            block[k, k] = root
            for j in range(k + 1, n):
                block[k, j] /= root
            for i in range(k + 1, last):
                t = block[k, i]
                for j in range(i, n):
                    block[i, j] -= t * block[k, j]
        for i in range(last, d):
            t0, t1, t2, t3 = block[first, i], block[first + 1, i], block[first + 2, i], block[first + 3, i]
            for j in range(i, n):
                value = block[i, j] - t0 * block[first, j] - t1 * block[first + 1, j]
                block[i, j] = value - t2 * block[first + 2, j] - t3 * block[first + 3, j]


@kernel(inline=True)
def back_substitute(block, known, out):
    """out = R^-1 (q - T known) for block = [R | T | q]."""
    d, n = block.shape
    for k in range(d - 1, -1, -1):
        t = block[k, n - 1]
        for j in range(k + 1, d):
            t -= block[k, j] * out[j]
        for j in range(d, n - 1):
            t -= block[k, j] * known[j - d]
        out[k] = t / block[k, k]


@kernel
def estimate(ridge, shared, own, shared_factor, factors, theta, beta):
    """Factor M + ridge I into shared_factor and factors, and solve for theta and beta; False if it is not definite.

    W_i + lambda I = R_i' R_i,  B_i' = R_i' T_i,  V + lambda I - sum_i T_i' T_i = R_0' R_0,
    theta = R_0^-1 (q_0 - sum_i T_i' q_i),  beta_i = R_i^-1 (q_i - T_i theta).
    """
    shared_factor[:] = shared
    factors[:] = own
    arms, d2, n = own.shape
    for i in range(arms):
        block = factors[i]
        factor(block, ridge)
        for k in range(d2):
            for p in range(n - d2 - 1):
                t = block[k, d2 + p]
                for q in range(p, n - d2):
                    shared_factor[p, q] -= t * block[k, d2 + q]
    factor(shared_factor, ridge)
    back_substitute(shared_factor, theta, theta)
    total = theta.sum()
    for i in range(arms):
        back_substitute(factors[i], theta, beta[i])
        total += beta[i].sum()
    return math.isfinite(total)


@kernel(inline=True)
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
def best_mean(x, z, slots, theta, beta):
    """argmax_i x_i.theta + z_i.beta_i, of equal candidates the first, and its mean."""
    best = 0
    highest = -np.inf
    for i in range(x.shape[0]):
        value = mean_of(x[i], z[i], slots[i], theta, beta)
        if value > highest:
            highest = value
            best = i
    return best, highest


@kernel(inline=True)
def eliminate_row(row, block):
    """|R^-T a|^2 for a row (a, b) and block = [R | T | q]; leaves b - T' R^-T a in the row's end."""
    square = 0.0
    for k in range(block.shape[0]):
        w = row[k] / block[k, k]
        square += w * w
        for j in range(k + 1, row.shape[0]):
            row[j] -= w * block[k, j]
    return square


@kernel
def width_of(x, z, slot, ridge, shared_factor, factors):
    """sqrt(|w|^2 + |g|^2) with w = R_i^-T z, g = R_0^-T (x - T_i' w), from the factors left by `estimate`."""
    if slot < 0:
        return math.sqrt((z * z).sum() / ridge + eliminate_row(x.copy(), shared_factor))
    d2 = z.shape[0]
    row = np.empty(d2 + x.shape[0])
    row[:d2] = z
    row[d2:] = x
    square = eliminate_row(row[: factors.shape[2] - 1], factors[slot])
    return math.sqrt(square + eliminate_row(row[d2:], shared_factor))


@kernel
def learn_round(played, p, u, check_ridge, x, z, slots, reward, shared, own, shared_factor, factors, theta, beta):
    """Learn a round as HyRan does (Kim, Paik & Oh 2023, Algorithm 1); False if the sums are no longer definite.

    If u < p, the event h = a, every candidate learns: the played one the pseudo-reward (1 - 1/p) X.check + Y/p, the
    others X.check, where check is the estimate at `check_ridge`. Otherwise, or if there is only one candidate, the
    played arm alone learns Y. Slots < 0 are left out.
    """
    count = x.shape[0]
    if count == 1 or not u < p:
        add_row(slots[played], x[played], z[played], reward, shared, own)
        return True
    if not estimate(check_ridge, shared, own, shared_factor, factors, theta, beta):
        return False
    for i in range(count):
        if slots[i] >= 0:
            target = mean_of(x[i], z[i], slots[i], theta, beta)
            if i == played:
                target = (1.0 - 1.0 / p) * target + reward / p
            add_row(slots[i], x[i], z[i], target, shared, own)
    return True
