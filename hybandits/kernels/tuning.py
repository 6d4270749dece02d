"""Kernels that learn the settings: noise, scales and what arms have in common, from the rewards alone.

The model (w_k: the mean square of feature k over the rows in which it is not 0)

    r = x.theta + z.beta_i + noise,        noise ~ N(0, sigma^2)
    theta_k ~ N(0, s1 / w_k),    beta_ik ~ N(m_k, s2_k / w_k),    m_k ~ N(0, s_m / w_k)

is linear and Gaussian once its scales are known, with the ridges

    a_k = sigma^2 w_k / s1,      b_k = sigma^2 w_k / s2_k,        g_k = sigma^2 w_k / s_m.

The data are kept as factors without any ridge, rotated like those of `arrow` but from zero: [R_i T_i | q_i] per arm and
one triangle for u = (theta, m). Prior rows are rotated into copies, so nothing is ever subtracted.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from hybandits.foundation.compiling import kernel
from hybandits.kernels.arrow import (
    LIMIT,
    REFRESH,
    factor_size,
    refresh_block,
    rotate_inverse,
    rotate_row,
    score_rows,
    score_size,
    update_cross,
    within_limit,
)

SIGMA2, S1, SM, REST, MEAN, SPREAD, SQUARES, EVIDENCE, GAMMA, PLAYED = range(10)
"""Places in `numbers`: the scales, the squares that no factor explains, the rewards' mean, their squared deviations and
squares summed up, as of the last step the log evidence and the effective number of parameters, and the sigma^2 that
is played with: it changes with the ridges, when a sweep begins."""
HEAD = 10
"""Where the vectors begin in `numbers`: s2 (d2), m (d2), the sums of squares of x (d1) and of z (d2), and what is
played with: a (d1), b (d2), m (d2); then Cov(m) / sigma^2 (d2, d2), the triangle R_p of an arm's prior, and the sums
of x (d1) and of z (d2)."""


class Arrays(NamedTuple):
    """Everything that an estimator with learned settings keeps in arrays."""

    arm_data: Any
    """[R_i | T_i] of every slot, without ridge."""
    arm_rhs: Any
    """q_i of every slot."""
    shared_data: Any
    """The triangle of (theta, m), without ridge."""
    shared_rhs: Any
    numbers: Any
    """Scales, sums and what the last step found; see SIGMA2 and the names beside it."""
    seen: Any
    """How often each feature of x, then of z, was not 0."""
    state: Any
    """Counts, and how far a refresh has come; see ROWS and the names beside it."""
    order: Any
    """Slots in the order in which their arms first learned."""
    place: Any
    """Where in `order` a slot is, -1 if its arm has not learned."""
    pulls: Any
    arm_factor: Any
    """[R_i | T_i] with the prior's rows in: what is played with. Slot 0 is an arm before any data."""
    arm_score: Any
    shared_factor: Any
    shared_score: Any
    next_factor: Any
    """The R_0 that a sweep is making."""
    next_rhs: Any


def size_of_numbers(d1: int, d2: int) -> int:
    """The length of `numbers`."""
    return HEAD + 3 * d1 + 6 * d2 + d2 * d2 + d2 * (d2 + 1) // 2


@kernel
def played_ridges(numbers, d1, d2):
    """a, b and m that the factors are played with, as views."""
    a = HEAD + d1 + 3 * d2
    b = a + d1
    m = b + d2
    return numbers[a:b], numbers[b:m], numbers[m : m + d2]


@kernel
def spread_of_mean(numbers, d1, d2):
    """Cov(m) / sigma^2 as of the last step (d2, d2), as a view."""
    start = HEAD + 2 * d1 + 5 * d2
    return numbers[start : start + d2 * d2].reshape((d2, d2))


@kernel
def prior_triangle(numbers, d1, d2):
    """R_p, packed row by row: R_p' R_p is the inverse of what an arm's own parameters vary by, in units of sigma^2."""
    start = HEAD + 2 * d1 + 5 * d2 + d2 * d2
    return numbers[start : start + d2 * (d2 + 1) // 2]


@kernel
def sums_of_features(numbers, d1, d2):
    """The sums of the features of x, then of z, over the rows, as a view."""
    start = HEAD + 2 * d1 + 5 * d2 + d2 * d2 + d2 * (d2 + 1) // 2
    return numbers[start : start + d1 + d2]


@kernel
def set_prior_triangle(b, spread, triangle):
    """R_p = U^-1 with U U' = diag(1 / b) + Cov(m) / sigma^2 and U upper triangular.

    An arm's own parameters vary around m by s2 / w, and m itself is known only so well: where features are collinear,
    or few arms have been played, that is what keeps an arm that was never played in the game.
    """
    d2 = b.shape[0]
    u = np.zeros((d2, d2))
    for j in range(d2 - 1, -1, -1):
        for i in range(j, -1, -1):
            total = spread[i, j]
            if i == j:
                total += 1.0 / b[i]
            for k in range(j + 1, d2):
                total -= u[i, k] * u[j, k]
            u[i, j] = math.sqrt(total) if i == j else total / u[j, j]
    o = 0
    row = np.empty(d2)
    for i in range(d2):  # row i of U^-1 by back substitution from its diagonal on
        for j in range(i, d2):
            total = 1.0 if i == j else 0.0
            for k in range(i, j):
                total -= row[k] * u[k, j]
            row[j] = total / u[j, j]
            triangle[o] = row[j]
            o += 1


CONSTANT = 1e-6
"""The share of a feature's mean square that its variance may have, if it counts as constant: steps of a thousandth."""
FLOOR_NOISE = 1e-12
FLOOR_SCALE = 1e-8


@kernel
def half_cauchy(squares, count, s, c):
    """One fixed-point step for a variance with a half-Cauchy prior of median sqrt(c) on its root.

    h = (N + s c/(c + s)) / (g + s/(c + s)), with N the squares and g the effective count.
    """
    return (squares + s * c / (c + s)) / (count + s / (c + s))


@kernel
def invert_triangle(factor, d, inverse):
    """L = R^-T, dense and lower triangular, of a packed upper triangle R: R' L = I by forward substitution."""
    for k in range(d):
        for j in range(d):
            inverse[k, j] = 0.0
    r = np.empty((d, d))
    o = 0
    for k in range(d):
        for j in range(k, d):
            r[k, j] = factor[o]
            o += 1
    for k in range(d):
        for i in range(k):
            t = r[i, k]
            for j in range(i + 1):
                inverse[k, j] -= t * inverse[i, j]
        inverse[k, k] = 1.0
        for j in range(k + 1):
            inverse[k, j] /= r[k, k]


@kernel
def gather_rows(factor, f, rhs, h, d1, d2, shared, own, q):
    """The rows of an arm's [R_i | T_i | q_i] that are not 0: T into shared, R into own; returns how many there are."""
    count = 0
    o = f
    for k in range(d2):
        if factor[o] != 0.0:
            for j in range(k):
                own[count, j] = 0.0
            for j in range(k, d2):
                own[count, j] = factor[o + j - k]
            for j in range(d1):
                shared[count, j] = factor[o + d2 - k + j]
            q[count] = rhs[h + k]
            count += 1
        o += d2 - k + d1
    return count


@kernel
def whiten_arm(count, own, b, rows, e, triangle, row, c, s, pad):
    """rows = C^-1 rows, e = C^-1 e, where C C' = I + R D^-1 R' is the variance of an arm's rows given u = (theta, m).

    D = diag(b). C' comes from rotating the columns of G = R D^-1/2 into I. Returns log |C C'|.
    """
    start = 0 * count
    d2 = own.shape[1]
    o = 0
    for k in range(count):
        for j in range(k, count):
            triangle[o] = 1.0 if j == k else 0.0
            o += 1
    for k in range(count):
        pad[k] = 0.0
    for j in range(d2):
        root = 1.0 / math.sqrt(b[j])
        for k in range(count):
            row[k] = own[k, j] * root
        rotate_row(triangle, start, pad, start, count, start, row, 0.0, c, s)
    log_det = 0.0
    o = 0
    for k in range(count):  # C is lower triangular: column k of it is row k of the triangle
        diagonal = triangle[o]
        log_det += 2.0 * math.log(diagonal)
        e[k] /= diagonal
        for j in range(rows.shape[1]):
            rows[k, j] /= diagonal
        for i in range(k + 1, count):
            t = triangle[o + i - k]
            e[i] -= t * e[k]
            for j in range(rows.shape[1]):
                rows[i, j] -= t * rows[k, j]
        o += count - k
    return log_det


@kernel
def ridge_of(sigma2, weight, scale):
    """sigma^2 w / s; 1 for a feature that was 0 in every row, which has no part in anything."""
    return sigma2 * weight / scale if weight > 0.0 else 1.0


@kernel
def weight_of(squares, count):
    """w_k, the mean square of a feature where it is not 0."""
    return squares / count if count > 0 else 0.0


@kernel
def intercept_of(numbers, seen, rows, d1, d2):
    """The first feature, of x and then of z, that has been the same in all rows; -1 if there is none.

    It carries the level of the rewards. Without one the level would be shared out among all features.
    """
    sums = sums_of_features(numbers, d1, d2)
    if rows > 1:
        for k in range(d1 + d2):
            squares = rows * numbers[HEAD + 2 * d2 + k]
            if seen[k] == rows and squares - sums[k] * sums[k] <= CONSTANT * squares:
                return k
    return -1


@kernel
def centres(numbers, seen, rows, d1, d2, intercept):
    """Centres of sigma^2, s1, s2 and s_m: the rewards' variance shared out evenly among noise, x and z.

    That of s_m has the rewards' level to explain as well, unless there is an intercept.
    """
    v = numbers[SQUARES] / rows
    spread = numbers[SPREAD] / rows
    if rows == 1:
        spread = v / 2.0
    if spread <= 0.0:
        spread = v
    active_x = 0.0
    for k in range(d1):
        if k != intercept:
            active_x += seen[k] / rows
    active_z = 0.0
    for k in range(d2):
        active_z += seen[d1 + k] / rows
    parts = 1.0
    if active_x > 0.0:
        parts += 1.0
    if active_z > 0.0:
        parts += 1.0
    c_1 = spread / (parts * active_x) if active_x > 0.0 else 0.0
    c_2 = spread / (parts * active_z) if active_z > 0.0 else 0.0
    level = v if intercept < 0 else spread
    c_m = level / (parts * active_z) if active_z > 0.0 else 0.0
    return spread / parts, c_1, c_2, c_m


@kernel
def set_ridges(numbers, seen, rows, d1, d2, intercept, hold_scale, a, b, g):
    """a_k, b_k and g_k from the scales; with a scale that is held, every parameter has the same, and there is no m.

    The variance of an intercept is the mean square of the rewards, so that it can carry their level.
    """
    sigma2 = numbers[SIGMA2]
    v = numbers[SQUARES] / rows
    sq1 = HEAD + 2 * d2
    for k in range(d1):
        if hold_scale:
            a[k] = sigma2 / numbers[S1]
        else:
            scale = v if k == intercept else numbers[S1]
            a[k] = ridge_of(sigma2, weight_of(numbers[sq1 + k], seen[k]), scale)
    for k in range(d2):
        w = weight_of(numbers[sq1 + d1 + k], seen[d1 + k])
        if hold_scale:
            b[k] = sigma2 / numbers[HEAD + k]
            g[k] = 1.0
        else:
            b[k] = ridge_of(sigma2, w, numbers[HEAD + k])
            g[k] = ridge_of(sigma2, w, v if d1 + k == intercept else numbers[SM])


@kernel
def step(slots, d1, d2, arm_data, arm_rhs, shared_data, shared_rhs, numbers, seen, rows, left_out, held):
    """One fixed-point step of the marginal likelihood; changes the scales and m in `numbers`.

    slots: the arms that take part; left_out: how many parameters the rows of the other arms determine by themselves.
    seen: how often each feature of x, then of z, was not 0. held: whether the noise and the scale are given. A scale
    that is 0 begins at its centre. Evidence and effective parameters left in `numbers` are those before the step.
    """
    hold_noise, hold_scale = held
    p = d1 + d2
    s2 = HEAD
    sq1 = HEAD + 2 * d2
    v = numbers[SQUARES] / rows
    intercept = intercept_of(numbers, seen, rows, d1, d2)
    c_sigma, c_1, c_2, c_m = centres(numbers, seen, rows, d1, d2, intercept)
    if numbers[SIGMA2] == 0.0:
        numbers[SIGMA2] = c_sigma
    if numbers[S1] == 0.0:
        numbers[S1] = c_1
    if numbers[SM] == 0.0:
        numbers[SM] = c_m
    for k in range(d2):
        if numbers[s2 + k] == 0.0:
            numbers[s2 + k] = c_2
    sigma2 = numbers[SIGMA2]
    a = np.empty(d1)
    b = np.empty(d2)
    g = np.empty(d2)
    set_ridges(numbers, seen, rows, d1, d2, intercept, hold_scale, a, b, g)
    n = slots.shape[0]
    total = 0
    counts = np.empty(n, np.int64)
    size = factor_size(d2, d1)
    for i in range(n):
        o = slots[i] * size
        counts[i] = 0
        for k in range(d2):
            if arm_data[o] != 0.0:
                counts[i] += 1
            o += d2 - k + d1
        total += counts[i]
    every = np.empty((total, p))
    e = np.empty(total)
    own = np.empty((d2, d2))
    shared = shared_data.copy()
    q0 = shared_rhs.copy()
    row = np.empty(p)
    c = np.empty(p)
    s = np.empty(p)
    pad = np.empty(p)
    triangle = np.empty(factor_size(d2, 0 * d1))
    rest = numbers[REST]
    log_det = 0.0
    start = 0 * d1
    at = 0
    for i in range(n):
        slot = slots[i]
        count = counts[i]
        rows_i = every[at : at + count]
        e_i = e[at : at + count]
        gather_rows(arm_data, slot * size, arm_rhs, slot * d2, d1, d2, rows_i, own, e_i)
        for k in range(count):
            for j in range(d2):
                rows_i[k, d1 + j] = own[k, j]
        log_det += whiten_arm(count, own, b, rows_i, e_i, triangle, row, c, s, pad)
        for k in range(count):
            for j in range(d1):
                row[j] = rows_i[k, j]
            for j in range(d1, p):
                row[j] = 0.0 if hold_scale else rows_i[k, j]
            left = rotate_row(shared, start, q0, start, p, start, row, e_i[k], c, s)
            rest += left * left
        at += count
    for k in range(p):
        for j in range(p):
            row[j] = 0.0
        ridge = a[k] if k < d1 else g[k - d1]
        row[k] = math.sqrt(ridge)
        left = rotate_row(shared, start, q0, start, p, start, row, 0.0, c, s)
        rest += left * left
        log_det -= math.log(ridge)
    inverse = np.empty((p, p))
    invert_triangle(shared, p, inverse)
    u = np.zeros(p)
    for i in range(p):
        log_det -= 2.0 * math.log(inverse[i, i])
        for j in range(i + 1):
            u[j] += inverse[i, j] * q0[i]
    columns = inverse.T.copy()  # row j of it is column j of L_0: inner sums then run along memory
    penalty = 0.0
    gamma_0 = 0.0
    gamma_1 = 0.0
    squares_1 = 0.0
    for k in range(d1):
        width = 0.0
        for i in range(k, p):
            width += columns[k, i] * columns[k, i]
        penalty += a[k] * u[k] * u[k]
        gamma = max(0.0, 1.0 - a[k] * width)
        if k == intercept:
            gamma_0 += gamma
        else:
            gamma_1 += gamma
            squares_1 += weight_of(numbers[sq1 + k], seen[k]) * u[k] * u[k]
    gamma_m = 0.0
    squares_m = 0.0
    for k in range(d2):
        width = 0.0
        for i in range(d1 + k, p):
            width += columns[d1 + k, i] * columns[d1 + k, i]
        penalty += g[k] * u[d1 + k] * u[d1 + k]
        gamma = 0.0 if hold_scale else max(0.0, 1.0 - g[k] * width)
        if d1 + k == intercept:
            gamma_0 += gamma
        else:
            gamma_m += gamma
            squares_m += weight_of(numbers[sq1 + d1 + k], seen[d1 + k]) * u[d1 + k] * u[d1 + k]
    gamma_2 = np.zeros(d2)
    squares_2 = np.zeros(d2)
    spread_rows = np.empty((d2, p))
    spread = np.empty(p)
    at = 0
    for i in range(n):
        count = counts[i]
        rows_i = every[at : at + count]
        for k in range(count):  # e - X u, and L_0 x for every whitened row x
            for j in range(p):
                spread_rows[k, j] = 0.0
            last = d1 if hold_scale else p
            for j in range(last):
                t = rows_i[k, j]
                e[at + k] -= t * u[j]
                for i_ in range(j, p):
                    spread_rows[k, i_] += t * columns[j, i_]
        for f in range(d2):
            root = 1.0 / math.sqrt(b[f])
            known = 0.0
            delta = 0.0
            for j in range(p):
                spread[j] = 0.0
            for k in range(count):
                y = rows_i[k, d1 + f] * root
                known += y * y
                delta += y * e[at + k]
                for j in range(p):
                    spread[j] += y * spread_rows[k, j]
            for j in range(p):
                known -= spread[j] * spread[j]
            delta *= root
            penalty += b[f] * delta * delta
            gamma_2[f] += max(0.0, known)
            squares_2[f] += weight_of(numbers[sq1 + d1 + f], seen[d1 + f]) * delta * delta
        at += count
    numbers[EVIDENCE] = -0.5 * (rows * math.log(2.0 * math.pi * sigma2) + rest / sigma2 + log_det)
    numbers[GAMMA] = gamma_0 + gamma_1 + gamma_m + gamma_2.sum()
    if not hold_noise:
        errors = max(0.0, rest - penalty)
        free = max(0.0, rows - left_out - numbers[GAMMA])
        numbers[SIGMA2] = max(half_cauchy(errors, free, sigma2, c_sigma), FLOOR_NOISE * v)
    if not hold_scale:
        if c_1 > 0.0:
            numbers[S1] = max(half_cauchy(squares_1, gamma_1, numbers[S1], c_1), FLOOR_SCALE * c_1)
        if c_2 > 0.0:
            mean_s2 = 0.0
            for k in range(d2):
                mean_s2 += numbers[s2 + k] / d2
            common = max(half_cauchy(squares_2.sum(), gamma_2.sum(), mean_s2, c_2), FLOOR_SCALE * c_2)
            for k in range(d2):
                fresh = half_cauchy(squares_2[k], gamma_2[k], numbers[s2 + k], common)
                numbers[s2 + k] = max(fresh, FLOOR_SCALE * c_2)
            numbers[SM] = max(half_cauchy(squares_m, gamma_m, numbers[SM], c_m), FLOOR_SCALE * c_m)
            spread_m = spread_of_mean(numbers, d1, d2)
            for k in range(d2):
                numbers[HEAD + d2 + k] = u[d1 + k]
                for j in range(k + 1):
                    total_m = 0.0
                    for i in range(d1 + k, p):
                        total_m += columns[d1 + k, i] * columns[d1 + j, i]
                    spread_m[k, j] = total_m
                    spread_m[j, k] = total_m


@kernel
def take_note(x, z, reward, numbers, seen, state):
    """Count a row: the rewards' moments (Welford) and the features' squares. True if a feature is new."""
    d1 = x.shape[0]
    d2 = z.shape[0]
    sq1 = HEAD + 2 * d2
    sums = sums_of_features(numbers, d1, d2)
    rows = state[ROWS]
    new = 0
    for k in range(d1):
        if x[k] != 0.0:
            new += seen[k] == 0
            seen[k] += 1
            numbers[sq1 + k] += x[k] * x[k]
            sums[k] += x[k]
    for k in range(d2):
        if z[k] != 0.0:
            new += seen[d1 + k] == 0
            seen[d1 + k] += 1
            numbers[sq1 + d1 + k] += z[k] * z[k]
            sums[d1 + k] += z[k]
    difference = reward - numbers[MEAN]
    numbers[MEAN] += difference / (rows + 1)
    numbers[SPREAD] += difference * (reward - numbers[MEAN])
    numbers[SQUARES] += reward * reward
    state[UNSEEN] -= new
    return new > 0


@kernel
def learn_data(slot, x, z, reward, arm_data, arm_rhs, shared_data, shared_rhs, numbers, rest):
    """Rotate (z, x | r) into the arm's factor without ridge, what is left of it into that of (theta, m).

    What is left of x stays in rest; what is left of the reward is returned.
    """
    d1 = x.shape[0]
    d2 = z.shape[0]
    p = d1 + d2
    start = 0 * d1
    row = np.empty(p)
    c = np.empty(p)
    s = np.empty(p)
    for k in range(d2):
        row[k] = z[k]
    for k in range(d1):
        row[d2 + k] = x[k]
    left = rotate_row(arm_data, slot * factor_size(d2, d1), arm_rhs, slot * d2, d2, d1, row, reward, c, s)
    wide = np.zeros(p)
    for k in range(d1):
        rest[k] = row[d2 + k]
        wide[k] = rest[k]
    unexplained = rotate_row(shared_data, start, shared_rhs, start, p, start, wide, left, c, s)
    numbers[REST] += unexplained * unexplained
    return left


# ------------------------------------------------------------------ the factors to play with

ROWS, NEXT, PHASE, CURSOR, END, COUNT, REFRESHES, UNSEEN = range(8)
STATE = 8
"""Places in `state`: rows learned, the row of the next refresh, what a refresh is at (0: none, 1: the sweep, more:
steps that come before it), the place in `order` that the sweep has come to and the one it ends at, arms in `order`,
refreshes so far, and features that were 0 in every row."""

BUDGET = 20e6
"""Floating-point operations, roughly, that one row may spend on a refresh: some ten milliseconds."""

EARLY, FIRST = 1000, 64
"""Rows up to which refreshes are frequent, because settings still move, and thorough, because they are cheap."""

STEPS, FIRST_STEPS = 3, 8
"""Fixed-point steps of a refresh, and of the first ones."""


@kernel
def prior_rows(slot, d1, d2, triangle, m, arm_factor, arm_score):
    """R, T and q of an arm before any data: R = R_p, T = 0, q = R_p m; L and C are left to `refresh_block`."""
    f = slot * factor_size(d2, d1)
    h = slot * score_size(d2, d1)
    for i in range(f, f + factor_size(d2, d1)):
        arm_factor[i] = 0.0
    o = 0
    for k in range(d2):
        total = 0.0
        for j in range(k, d2):
            arm_factor[f + j - k] = triangle[o]
            total += triangle[o] * m[j]
            o += 1
        f += d2 - k + d1
        arm_score[h + k] = total


@kernel
def prior_block(slot, d1, d2, triangle, m, arm_factor, arm_score):
    """The whole block of an arm before any data."""
    prior_rows(slot, d1, d2, triangle, m, arm_factor, arm_score)
    refresh_block(arm_factor, slot * factor_size(d2, d1), arm_score, slot * score_size(d2, d1), d2, d1)


@kernel
def remake_arm(slot, d1, d2, triangle, m, arm_data, arm_rhs, arm_factor, arm_score, next_factor, next_rhs):
    """The arm's block at the present settings: its data rows rotated into the prior, what is left into the next R_0."""
    prior_rows(slot, d1, d2, triangle, m, arm_factor, arm_score)
    start = 0 * d1
    p = d1 + d2
    f = slot * factor_size(d2, d1)
    h = slot * score_size(d2, d1)
    row = np.empty(p)
    c = np.empty(p)
    s = np.empty(p)
    o = f
    for k in range(d2):
        n = d2 - k + d1
        if arm_data[o] != 0.0:
            for j in range(k):
                row[j] = 0.0
            for j in range(n):
                row[k + j] = arm_data[o + j]
            left = rotate_row(arm_factor, f, arm_score, h, d2, d1, row, arm_rhs[slot * d2 + k], c, s)
            rotate_row(next_factor, start, next_rhs, start, d1, start, row[d2:], left, c, s)
        o += n
    refresh_block(arm_factor, f, arm_score, h, d2, d1)


@kernel
def begin_sweep(d1, d2, a, m, shared_data, shared_rhs, next_factor, next_rhs):
    """The next R_0: the data's own rows of theta with m put in, and the rows sqrt(a_k) e_k."""
    start = 0 * d1
    o = 0
    e = 0
    for k in range(d1):
        for _ in range(d1 - k):
            next_factor[e] = shared_data[o]
            e += 1
            o += 1
        next_rhs[k] = shared_rhs[k]
        for j in range(d2):
            next_rhs[k] -= shared_data[o] * m[j]
            o += 1
    row = np.empty(d1)
    c = np.empty(d1)
    s = np.empty(d1)
    for k in range(d1):
        for j in range(d1):
            row[j] = 0.0
        row[k] = math.sqrt(a[k])
        rotate_row(next_factor, start, next_rhs, start, d1, start, row, 0.0, c, s)


@kernel
def cost_of_step(rank, d1, d2):
    """Operations of a step for an arm with so many rows: whitening, folding, what its parameters know."""
    p = d1 + d2
    return 200.0 + rank * (3.0 * rank * d2 + 1.0 * rank * p + 4.0 * p * p + 2.0 * d2 * p)


@kernel
def cost_of_sweep(rank, d1, d2):
    """Operations of remaking an arm's block."""
    return 200.0 + rank * (3.0 * d2 * (d2 + 2.0 * d1) + 3.0 * d1 * d1) + 1.0 * d2 * d2 * (d2 + d1)


@kernel
def rank_of(slot, d1, d2, arm_data):
    """How many rows of an arm's data factor are not 0."""
    o = slot * factor_size(d2, d1)
    rank = 0
    for k in range(d2):
        if arm_data[o] != 0.0:
            rank += 1
        o += d2 - k + d1
    return rank


@kernel
def take_part(order, state, d1, d2, arm_data, pulls, most):
    """The arms that a step looks at: all, or evenly spaced ones if all would cost more than `most`.

    Returns their slots and how many parameters the rows of the others determine by themselves.
    """
    count = state[COUNT]
    total = 0.0
    learned = 0
    for i in range(count):
        if order[i] >= 0:
            learned += 1
            total += cost_of_step(min(pulls[order[i]], d2), d1, d2)
    stride = max(1, math.ceil(total / most))
    offset = state[REFRESHES] % stride
    chosen = np.empty(learned // stride + 1, np.int64)
    taken = 0
    left_out = 0
    seen = 0
    for i in range(count):
        slot = order[i]
        if slot < 0:
            continue
        if seen % stride == offset:
            chosen[taken] = slot
            taken += 1
        else:
            left_out += rank_of(slot, d1, d2, arm_data)
        seen += 1
    return chosen[:taken], left_out


@kernel
def start_sweep(d1, d2, arrays, held):
    """New settings are there: begin the next R_0, and remake the block of new arms."""
    shared_data = arrays.shared_data
    shared_rhs = arrays.shared_rhs
    numbers = arrays.numbers
    seen = arrays.seen
    state = arrays.state
    arm_factor = arrays.arm_factor
    arm_score = arrays.arm_score
    next_factor = arrays.next_factor
    next_rhs = arrays.next_rhs
    hold_scale = held[1]
    a, b, m = played_ridges(numbers, d1, d2)
    if state[REFRESHES] > 0:
        intercept = intercept_of(numbers, seen, state[ROWS], d1, d2)
        set_ridges(numbers, seen, state[ROWS], d1, d2, intercept, hold_scale, a, b, np.empty(d2))
        for k in range(d2):
            m[k] = numbers[HEAD + d2 + k]
        numbers[PLAYED] = numbers[SIGMA2]
        set_prior_triangle(b, spread_of_mean(numbers, d1, d2), prior_triangle(numbers, d1, d2))
    begin_sweep(d1, d2, a, m, shared_data, shared_rhs, next_factor, next_rhs)
    prior_block(0 * d1, d1, d2, prior_triangle(numbers, d1, d2), m, arm_factor, arm_score)
    state[CURSOR] = 0
    state[END] = state[COUNT]


@kernel
def advance(d1, d2, arrays, held, budget):
    """Go on with a refresh until it is done or the budget of this row is spent: steps first, then arm by arm."""
    arm_data = arrays.arm_data
    arm_rhs = arrays.arm_rhs
    shared_data = arrays.shared_data
    shared_rhs = arrays.shared_rhs
    numbers = arrays.numbers
    seen = arrays.seen
    state = arrays.state
    order = arrays.order
    pulls = arrays.pulls
    arm_factor = arrays.arm_factor
    arm_score = arrays.arm_score
    shared_factor = arrays.shared_factor
    shared_score = arrays.shared_score
    next_factor = arrays.next_factor
    next_rhs = arrays.next_rhs
    start = 0 * d1
    spent = 0.0
    while state[PHASE] > 1:
        slots, left_out = take_part(order, state, d1, d2, arm_data, pulls, BUDGET)
        step(slots, d1, d2, arm_data, arm_rhs, shared_data, shared_rhs, numbers, seen, state[ROWS], left_out, held)
        state[PHASE] -= 1
        for i in range(slots.shape[0]):
            spent += cost_of_step(min(pulls[slots[i]], d2), d1, d2)
        if state[PHASE] == 1:
            start_sweep(d1, d2, arrays, held)
        if spent >= budget:
            return
    _, _, m = played_ridges(numbers, d1, d2)
    triangle = prior_triangle(numbers, d1, d2)
    while state[CURSOR] < state[END]:
        slot = order[state[CURSOR]]
        if slot >= 0:
            if spent >= budget:
                return
            remake_arm(slot, d1, d2, triangle, m, arm_data, arm_rhs, arm_factor, arm_score, next_factor, next_rhs)
            spent += cost_of_sweep(min(pulls[slot], d2), d1, d2)
        state[CURSOR] += 1
    for i in range(factor_size(d1, start)):
        shared_factor[i] = next_factor[i]
    for k in range(d1):
        shared_score[k] = next_rhs[k]
    refresh_block(shared_factor, start, shared_score, start, d1, start)
    state[PHASE] = 0


@kernel
def enter(slot, state, order, place):
    """Note that an arm has learned its first row."""
    place[slot] = state[COUNT]
    order[state[COUNT]] = slot
    state[COUNT] += 1


@kernel
def learn_tuned(slot, x, z, reward, arrays, held, budget):
    """Learn a row: into the data's factors, into those to play with, and on with a refresh where one is due."""
    arm_data = arrays.arm_data
    arm_rhs = arrays.arm_rhs
    shared_data = arrays.shared_data
    shared_rhs = arrays.shared_rhs
    numbers = arrays.numbers
    seen = arrays.seen
    state = arrays.state
    order = arrays.order
    place = arrays.place
    pulls = arrays.pulls
    arm_factor = arrays.arm_factor
    arm_score = arrays.arm_score
    shared_factor = arrays.shared_factor
    shared_score = arrays.shared_score
    next_factor = arrays.next_factor
    next_rhs = arrays.next_rhs
    d1 = x.shape[0]
    d2 = z.shape[0]
    p = d1 + d2
    start = 0 * d1
    if place[slot] < 0:
        enter(slot, state, order, place)
        _, _, m = played_ridges(numbers, d1, d2)
        prior_block(slot, d1, d2, prior_triangle(numbers, d1, d2), m, arm_factor, arm_score)
    new = take_note(x, z, reward, numbers, seen, state)
    row = np.empty(p)
    c = np.empty(p)
    s = np.empty(p)
    e = np.zeros(p)
    rest = np.empty(d1)
    left = learn_data(slot, x, z, reward, arm_data, arm_rhs, shared_data, shared_rhs, numbers, rest)
    sweeping = state[PHASE] == 1
    swept = place[slot] < state[CURSOR] or place[slot] >= state[END]
    if sweeping and not swept:  # the sweep will find the arm's own rows, but it began with the shared ones as they were
        rotate_row(next_factor, start, next_rhs, start, d1, start, rest, left, c, s)
    for k in range(d2):
        row[k] = z[k]
    for k in range(d1):
        row[d2 + k] = x[k]
    f = slot * factor_size(d2, d1)
    h = slot * score_size(d2, d1)
    left = rotate_row(arm_factor, f, arm_score, h, d2, d1, row, reward, c, s)
    rotate_inverse(arm_score, h, d2, c, s, e)
    update_cross(arm_score, h, d2, d1, row, e)
    rest = row[d2:]
    if sweeping and swept:
        rotate_row(next_factor, start, next_rhs, start, d1, start, rest.copy(), left, c, s)
    for k in range(d1):
        e[k] = 0.0
    rotate_row(shared_factor, start, shared_score, start, d1, start, rest, left, c, s)
    rotate_inverse(shared_score, start, d1, c, s, e)
    pulls[slot] += 1
    state[ROWS] += 1
    if pulls[slot] % REFRESH == 0:
        refresh_block(arm_factor, f, arm_score, h, d2, d1)
    if state[ROWS] % REFRESH == 0:
        refresh_block(shared_factor, start, shared_score, start, d1, start)
    if (new or state[ROWS] >= state[NEXT]) and numbers[SQUARES] > 0.0:
        rows = state[ROWS]
        state[PHASE] = 1 + (FIRST_STEPS if rows < FIRST else STEPS)
        state[REFRESHES] += 1
        if rows >= state[NEXT]:
            state[NEXT] = rows + (rows + 3) // 4 if rows < EARLY else rows + rows // 2
    if state[PHASE] > 0:
        advance(d1, d2, arrays, held, budget)


# ------------------------------------------------------------------ whole estimators


@kernel
def fold_arm_data(
    slot, its_slot, d1, d2, its_data, its_rhs, arm_data, arm_rhs, shared_data, shared_rhs, numbers, state, order, place
):  # fmt: skip
    """Rotate the rows of another estimator's arm into the data factors, as if they had been learned."""
    if place[slot] < 0:
        enter(slot, state, order, place)
    x = np.empty((d2, d1))
    z = np.empty((d2, d2))
    q = np.empty(d2)
    rest = np.empty(d1)
    count = gather_rows(its_data, its_slot * factor_size(d2, d1), its_rhs, its_slot * d2, d1, d2, x, z, q)
    for k in range(count):
        learn_data(slot, x[k], z[k], q[k], arm_data, arm_rhs, shared_data, shared_rhs, numbers, rest)


@kernel
def fold_rows(slots, x, z, rewards, arrays):
    """Rotate rows into the data factors; nothing else is noted of them."""
    rest = np.empty(x.shape[1])
    for i in range(slots.shape[0]):
        slot = slots[i]
        if arrays.place[slot] < 0:
            enter(slot, arrays.state, arrays.order, arrays.place)
        learn_data(
            slot, x[i], z[i], rewards[i], arrays.arm_data, arrays.arm_rhs, arrays.shared_data, arrays.shared_rhs,
            arrays.numbers, rest,
        )  # fmt: skip


@kernel
def fold_shared_data(p, its_data, its_rhs, shared_data, shared_rhs, numbers):
    """Rotate the rows of another factor of (theta, m) in."""
    start = 0 * p
    row = np.empty(p)
    c = np.empty(p)
    s = np.empty(p)
    o = 0
    for k in range(p):
        for j in range(k):
            row[j] = 0.0
        for j in range(k, p):
            row[j] = its_data[o]
            o += 1
        left = rotate_row(shared_data, start, shared_rhs, start, p, start, row, its_rhs[k], c, s)
        numbers[REST] += left * left


@kernel
def release_arm(slot, d1, d2, b, arm_data, arm_rhs, shared_data, shared_rhs, numbers):
    """Integrate an arm's own parameters out: its rows, whitened at the present settings, become rows of (theta, m)."""
    p = d1 + d2
    start = 0 * d1
    rows = np.zeros((d2, p))
    own = np.empty((d2, d2))
    e = np.empty(d2)
    row = np.empty(p)
    c = np.empty(p)
    s = np.empty(p)
    pad = np.empty(p)
    count = gather_rows(arm_data, slot * factor_size(d2, d1), arm_rhs, slot * d2, d1, d2, rows, own, e)
    for k in range(count):
        for j in range(d2):
            rows[k, d1 + j] = own[k, j]
    whiten_arm(count, own[:count], b, rows[:count], e, np.empty(factor_size(d2, start)), row, c, s, pad)
    for k in range(count):
        left = rotate_row(shared_data, start, shared_rhs, start, p, start, rows[k].copy(), e[k], c, s)
        numbers[REST] += left * left


@kernel
def release_slot(slot, d1, d2, arrays, held):
    """`release_arm` at the present settings; where a sweep has not come to the arm yet, it does so first."""
    arm_data = arrays.arm_data
    arm_rhs = arrays.arm_rhs
    shared_data = arrays.shared_data
    shared_rhs = arrays.shared_rhs
    numbers = arrays.numbers
    state = arrays.state
    place = arrays.place
    arm_factor = arrays.arm_factor
    arm_score = arrays.arm_score
    next_factor = arrays.next_factor
    next_rhs = arrays.next_rhs
    _, b, m = played_ridges(numbers, d1, d2)
    if state[PHASE] == 1 and state[CURSOR] <= place[slot] < state[END]:
        remake_arm(
            slot,
            d1,
            d2,
            prior_triangle(numbers, d1, d2),
            m,
            arm_data,
            arm_rhs,
            arm_factor,
            arm_score,
            next_factor,
            next_rhs,
        )
    release_arm(slot, d1, d2, b, arm_data, arm_rhs, shared_data, shared_rhs, numbers)


# ------------------------------------------------------------------ what policies call


@kernel
def learn_one_tuned(slot, x, z, reward, arrays, held):
    """`learn_tuned`; False, with nothing changed, if a number is not finite or beyond LIMIT."""
    if not (within_limit(x) and within_limit(z) and abs(reward) <= LIMIT):
        return False
    learn_tuned(slot, x, z, reward, arrays, held, BUDGET)
    return True


@kernel
def learn_rows_tuned(slots, x, z, rewards, arrays, held):
    """Rows that have been checked, in order."""
    for i in range(slots.shape[0]):
        learn_tuned(slots[i], x[i], z[i], rewards[i], arrays, held, BUDGET)


@kernel
def only_seen(values, seen, first, unseen):
    """The features, with those that were 0 in every row learned counted as 0: nothing is known of their size."""
    if unseen == 0:
        return values
    masked = values.copy()
    for k in range(values.shape[1]):
        if seen[first + k] == 0:
            masked[:, k] = 0.0
    return masked


@kernel
def with_new_arms(slots):
    """Slots for scoring: arms that have not learned share the block at slot 0."""
    own = np.empty(slots.shape[0], np.int64)
    for i in range(slots.shape[0]):
        own[i] = max(slots[i], 0)
    return own


@kernel
def score_tuned(x, z, slots, arm_score, shared_score, seen, state, mean, width):
    """`score_rows` of what has been seen; the width is in units of the noise."""
    if not (within_limit(x) and within_limit(z)):
        return False
    own = with_new_arms(slots)
    shown_x = only_seen(x, seen, 0 * x.shape[1], state[UNSEEN])
    shown_z = only_seen(z, seen, x.shape[1], state[UNSEEN])
    return score_rows(shown_x, shown_z, own, arm_score, shared_score, 1.0, mean, width)
