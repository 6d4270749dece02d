"""One step towards the settings that the rewards speak for: noise, scales and what arms have in common.

The model (w_k: the mean square of feature k over the rows in which it is not 0)

    r = x.theta + z.beta_i + noise,        noise ~ N(0, sigma^2)
    theta_k ~ N(0, s1 / w_k),    beta_ik ~ N(m_k, s2_k / w_k),    m_k ~ N(0, s_m / w_k)

is linear and Gaussian once its scales are known, with the ridges

    a_k = sigma^2 w_k / s1,      b_k = sigma^2 w_k / s2_k,        g_k = sigma^2 w_k / s_m.

`step` maximises the evidence, the density of all rewards with the parameters integrated out. It takes the data as
factors without any ridge (`tuning` keeps them) and adds them to the prior's rows by reflections, so nothing is ever
subtracted.
"""

from __future__ import annotations

import math

import numpy as np

from hybandits.foundation.compiling import kernel
from hybandits.kernels.arrow import factor_size, invert_triangle, reflect_rows
from hybandits.kernels.simd import load1, load4, muladd4, splat4, store1, store4, sum4

SIGMA2, S1, SM, REST, MEAN, SPREAD, SQUARES, EVIDENCE, GAMMA, PLAYED, RELEASED, KEPT, RATE, CLOCK = range(14)
"""Places in `numbers`: the scales, the squares that no factor explains, the rewards' mean, their squared deviations and
squares summed up, as of the last step the log evidence and the effective number of parameters, the sigma^2 that
is played with (it changes with the ridges, when a sweep begins), log |C C'| of all arms that were dropped, n, the rows
learned, by weight, 1 / memory (0: nothing is forgotten), and how many memories have passed. With a finite memory all
sums are of weighted rows: see `let_pass` in `tuning`."""
HEAD = 14
"""Where the vectors begin in `numbers`: s2 (d2), m (d2), the sums of squares of x (d1) and of z (d2), and what is
played with: a (d1), b (d2), m (d2); then Cov(m) / sigma^2 (d2, d2), the triangle R_p of an arm's prior, the features
x (d1) and z (d2) of the first row, and of arms that were dropped w_k delta_ik^2 and gamma_2k summed up (d2 each)."""


def size_of_numbers(d1: int, d2: int) -> int:
    """The length of `numbers`."""
    return HEAD + 3 * d1 + 8 * d2 + d2 * d2 + d2 * (d2 + 1) // 2


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
def usual_features(numbers, d1, d2):
    """The features of x, then of z, in the first row, as a view: those that never vary have been like that since."""
    start = HEAD + 2 * d1 + 5 * d2 + d2 * d2 + d2 * (d2 + 1) // 2
    return numbers[start : start + d1 + d2]


@kernel
def differences_of_dropped(numbers, d1, d2):
    """Of all arms that were dropped, w_k delta_ik^2 and gamma_2k summed up: how much they differed, as views."""
    start = HEAD + 3 * d1 + 6 * d2 + d2 * d2 + d2 * (d2 + 1) // 2
    return numbers[start : start + d2], numbers[start + d2 : start + 2 * d2]


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
            # what is left of the diagonal is at least 1 / b, whatever rounding says
            u[i, j] = math.sqrt(max(total, 1.0 / b[i])) if i == j else total / u[j, j]
    inverse = np.empty((d2, d2))
    invert_triangle(u, inverse)
    o = 0
    for i in range(d2):
        for j in range(i, d2):
            triangle[o] = inverse[j, i]
            o += 1


CONSTANT = 1e-3
"""A feature that differs from its usual value by less than this share of it counts as unchanged."""
FLOOR_NOISE, ROUNDING = 1e-12, 1e-26
"""sigma^2 is at least so much of the rewards' variance, and of their mean square."""
LEAST_ERRORS = 1e-3
"""This share of the rewards' variance V counts as squared errors beyond those that there are: a prior proportional to
exp(-0.001 V / (2 sigma^2)). Without it the noise would go to 0 where parameters can explain the few rewards exactly."""
FLOOR_SCALE, CEILING_SCALE = 1e-8, 1e12
"""Variances of parameters lie between so many times their centres."""
OUT_OF_PLAY = 2.0**500
"""The ridge of a feature of which nothing can be known: its parameter stays 0, whatever the feature's units."""


@kernel
def half_cauchy(squares, count, s, c):
    """One fixed-point step for a variance with a half-Cauchy prior of median sqrt(c) on its root.

    h = (N + s c/(c + s)) / (g + s/(c + s)), with N the squares and g the effective count.
    """
    share = s / (c + s)
    return (squares + c * share) / (count + share)


@kernel
def bounded(scale, centre):
    """A variance of parameters, within its bounds."""
    return min(max(scale, FLOOR_SCALE * centre), CEILING_SCALE * centre)


@kernel
def gather_rows(factor, f, rhs, h, d1, d2, rows, at, own, shared, q):
    """The rows of an arm's [R_i | T_i | q_i] that are not 0, dense and one after another from rows[at] on.

    In each, R begins at `own` and T at `shared`. Returns how many rows there are.
    """
    p = d1 + d2
    count = 0
    o = f
    for k in range(d2):
        if factor[o] != 0.0:
            start = at + count * p
            for j in range(k):
                rows[start + own + j] = 0.0
            for j in range(k, d2):
                rows[start + own + j] = factor[o + j - k]
            for j in range(d1):
                rows[start + shared + j] = factor[o + d2 - k + j]
            q[count] = rhs[h + k]
            count += 1
        o += d2 - k + d1
    return count


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
def add_scaled(t, source, i, target, j, n):
    """target[j : j+n] += t source[i : i+n]."""
    tv = splat4(t)
    k = 0
    while k + 4 <= n:
        store4(target, j + k, muladd4(tv, load4(source, i + k), load4(target, j + k)))
        k += 4
    while k < n:
        store1(target, j + k, load1(target, j + k) + t * load1(source, i + k))
        k += 1


@kernel
def dot(a, i, b, j, n):
    """The inner product of a[i : i+n] and b[j : j+n]."""
    total = splat4(0.0)
    k = 0
    while k + 4 <= n:
        total = muladd4(load4(a, i + k), load4(b, j + k), total)
        k += 4
    rest = sum4(total)
    while k < n:
        rest += load1(a, i + k) * load1(b, j + k)
        k += 1
    return rest


@kernel
def whiten_arm(count, d1, d2, b, rows, at, e):
    """X = C^-1 X and e = C^-1 e for the rows (T, R) of an arm, where C C' = I + R D^-1 R' is their variance given
    u = (theta, m), and D = diag(b). Returns log |C C'|.

    C' is what reflecting the columns of R D^-1/2 into I gives.
    """
    start = 0 * count
    p = d1 + d2
    triangle = np.zeros(factor_size(count, start))
    columns = np.empty(d2 * count)
    pad = np.zeros(count)
    nothing = np.zeros(d2)
    o = 0
    for k in range(count):
        triangle[o] = 1.0
        o += count - k
        for j in range(d2):
            columns[j * count + k] = rows[at + k * p + d1 + j] / math.sqrt(b[j])
    reflect_rows(triangle, start, pad, start, count, start, columns, start, d2, count, nothing)
    log_det = 0.0
    o = 0
    for k in range(count):  # C is lower triangular: column k of it is row k of the triangle
        inverse = 1.0 / triangle[o]
        log_det += 2.0 * math.log(triangle[o])
        e[k] *= inverse
        for j in range(at + k * p, at + (k + 1) * p):
            rows[j] *= inverse
        for i in range(k + 1, count):
            t = triangle[o + i - k]
            e[i] -= t * e[k]
            add_scaled(-t, rows, at + k * p, rows, at + i * p, p)
        o += count - k
    return log_det


@kernel
def ridge_of(sigma2, weight, scale):
    """sigma^2 w / s; OUT_OF_PLAY for a feature that was 0 in every row, whose weight is 0."""
    return sigma2 * weight / scale if weight > 0.0 else OUT_OF_PLAY


@kernel
def weight_of(squares, count):
    """w_k, the mean square of a feature where it is not 0."""
    return squares / count if count > 0 else 0.0


@kernel
def differs(value, usual):
    """Whether a feature is not as usual."""
    return abs(value - usual) > CONSTANT * abs(usual)


@kernel
def constant_features(numbers, varied, rows, d1, d2):
    """Which features, of x and then of z, are the same in all rows and not 0, if there are two rows at least.

    What they do cannot be told apart: together they are the level of the rewards. The first of them, the intercept,
    carries it, and the others stay out of play. Without an intercept the level would be shared out among all features,
    and candidates with an unusual mixture of these would be expected at a level of their own. Returns which features
    are constant and which of them is the intercept, -1 if there is none.
    """
    usual = usual_features(numbers, d1, d2)
    constant = np.zeros(d1 + d2, np.bool_)
    intercept = -1
    if rows > 1:
        for k in range(d1 + d2):
            constant[k] = varied[k] == 0 and usual[k] != 0.0
            if constant[k] and intercept < 0:
                intercept = k
    return constant, intercept


@kernel
def variance_of_rewards(numbers, rows):
    """V; half of the mean square after one row, and all of it where rewards do not differ."""
    v = numbers[SQUARES] / rows
    spread = v / 2.0 if rows == 1 else numbers[SPREAD] / rows
    return spread if spread > 0.0 else v


@kernel
def centres(numbers, seen, rows, d1, d2, constant):
    """Centres of sigma^2, s1, s2 and s_m: the rewards' variance shared out evenly among noise, x and z.

    That of s_m has the rewards' level to explain as well, unless there is an intercept.
    """
    spread = variance_of_rewards(numbers, rows)
    active_x = 0.0
    level = numbers[SQUARES] / rows
    for k in range(d1 + d2):
        if constant[k]:
            level = spread
        elif k < d1:
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
    c_m = level / (parts * active_z) if active_z > 0.0 else 0.0
    return spread / parts, c_1, c_2, c_m


@kernel
def set_ridges(numbers, seen, varied, rows, d1, d2, hold_scale, a, b, g):
    """a_k, b_k and g_k from the scales; with a scale that is held, every parameter has the same, and there is no m.

    The variance of the intercept is the mean square of the rewards, so that it can carry their level.
    """
    constant, intercept = constant_features(numbers, varied, rows, d1, d2)
    sigma2 = numbers[SIGMA2]
    v = numbers[SQUARES] / max(rows, 1.0)
    sq1 = HEAD + 2 * d2
    for k in range(d1):
        if hold_scale:
            a[k] = sigma2 / numbers[S1]
        elif constant[k] and k != intercept:
            a[k] = OUT_OF_PLAY
        else:
            a[k] = ridge_of(sigma2, weight_of(numbers[sq1 + k], seen[k]), v if k == intercept else numbers[S1])
    for k in range(d2):
        w = weight_of(numbers[sq1 + d1 + k], seen[d1 + k])
        if hold_scale:
            b[k] = sigma2 / numbers[HEAD + k]
            g[k] = OUT_OF_PLAY
        else:
            b[k] = ridge_of(sigma2, w, numbers[HEAD + k])
            if constant[d1 + k] and d1 + k != intercept:
                g[k] = OUT_OF_PLAY
            else:
                g[k] = ridge_of(sigma2, w, v if d1 + k == intercept else numbers[SM])


@kernel
def squared_errors(slot, d1, d2, arm_data, arm_rhs, theta, beta):
    """What the rows of an arm's data factor leave unexplained: |q_i - R_i beta - T_i theta|^2."""
    total = 0.0
    o = slot * factor_size(d2, d1)
    for k in range(d2):
        if arm_data[o] != 0.0:
            error = arm_rhs[slot * d2 + k]
            for j in range(k, d2):
                error -= arm_data[o + j - k] * beta[j]
            for j in range(d1):
                error -= arm_data[o + d2 - k + j] * theta[j]
            total += error * error
        o += d2 - k + d1
    return total


@kernel
def reflect_triangle(factor, rhs, p, its_factor, its_rhs, d):
    """Reflect the rows of a packed triangle of dimension d into one of dimension p; returns the squares left over."""
    start = 0 * p
    rows = np.zeros(d * p)
    left = its_rhs.copy()
    o = 0
    for k in range(d):
        for j in range(k, d):
            rows[k * p + j] = its_factor[o]
            o += 1
    reflect_rows(factor, start, rhs, start, p, start, rows, start, d, p, left)
    return dot(left, start, left, start, d)


@kernel
def step(
    slots, d1, d2, arm_data, arm_rhs, shared_data, shared_rhs, released_data, released_rhs, numbers, seen, varied,
    rows, left_out, held,
):  # fmt: skip
    """One fixed-point step of the marginal likelihood; changes the scales and m in `numbers`.

    slots: the arms that take part; left_out: how many parameters the rows of the other arms determine by themselves.
    rows: n, their number by weight. seen: how often each feature of x, then of z, was not 0, by weight; varied: whether
    it has ever changed. held: whether the noise and the scale are given. A scale that is 0 begins at its centre.
    Evidence and effective parameters left in `numbers` are those before the step.
    """
    hold_noise, hold_scale = held
    p = d1 + d2
    s2 = HEAD
    sq1 = HEAD + 2 * d2
    constant, _ = constant_features(numbers, varied, rows, d1, d2)
    c_sigma, c_1, c_2, c_m = centres(numbers, seen, rows, d1, d2, constant)
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
    set_ridges(numbers, seen, varied, rows, d1, d2, hold_scale, a, b, g)
    n = slots.shape[0]
    counts = np.empty(n, np.int64)
    total = 0
    for i in range(n):
        counts[i] = rank_of(slots[i], d1, d2, arm_data)
        total += counts[i]
    start = 0 * d1
    size = factor_size(d2, d1)
    shared = np.zeros(factor_size(p, start))  # of u = (theta, m), beginning with the rows of its prior
    q0 = np.zeros(p)
    log_det = numbers[RELEASED]
    o = 0
    for k in range(p):
        ridge = a[k] if k < d1 else g[k - d1]
        shared[o] = math.sqrt(ridge)
        log_det -= math.log(ridge)
        o += p - k
    rest = numbers[REST]
    rest += reflect_triangle(shared, q0, p, shared_data, shared_rhs, d1)
    if released_data.any():
        rest += reflect_triangle(shared, q0, p, released_data, released_rhs, p)
    every = np.empty(total * p)
    e = np.empty(total)
    copied = np.empty(d2 * p)
    left = np.empty(d2)
    at = 0
    for i in range(n):
        slot = slots[i]
        count = counts[i]
        e_i = e[at : at + count]
        gather_rows(arm_data, slot * size, arm_rhs, slot * d2, d1, d2, every, at * p, d1, start, e_i)
        log_det += whiten_arm(count, d1, d2, b, every, at * p, e_i)
        for k in range(count):
            left[k] = e_i[k]
            for j in range(p):
                copied[k * p + j] = 0.0 if hold_scale and j >= d1 else every[(at + k) * p + j]
        reflect_rows(shared, start, q0, start, p, start, copied, start, count, p, left)
        for k in range(count):
            rest += left[k] * left[k]
        at += count
    dense = np.empty((p, p))
    o = 0
    for k in range(p):
        log_det += 2.0 * math.log(shared[o])
        for j in range(k, p):
            dense[k, j] = shared[o]
            o += 1
    inverse = np.empty((p, p))
    invert_triangle(dense, inverse)
    u = np.zeros(p)
    for i in range(p):
        for j in range(i + 1):
            u[j] += inverse[i, j] * q0[i]
    columns = inverse.T.copy()  # row j of it is column j of L_0: inner sums then run along memory
    flat = columns.reshape(p * p)
    errors = numbers[REST] + squared_errors(start, start, d1, shared_data, shared_rhs, u, u[:d1])
    if released_data.any():
        errors += squared_errors(start, start, p, released_data, released_rhs, u, u)
    gamma_0 = 0.0
    gamma_1 = 0.0
    squares_1 = 0.0
    for k in range(d1):
        width = 0.0
        for i in range(k, p):
            width += columns[k, i] * columns[k, i]
        gamma = max(0.0, 1.0 - a[k] * width)
        if constant[k]:
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
        gamma = 0.0 if hold_scale else max(0.0, 1.0 - g[k] * width)
        if constant[d1 + k]:
            gamma_0 += gamma
        else:
            gamma_m += gamma
            squares_m += weight_of(numbers[sq1 + d1 + k], seen[d1 + k]) * u[d1 + k] * u[d1 + k]
    gamma_2 = np.zeros(d2)
    squares_2 = np.zeros(d2)
    own = np.empty(d2)
    known_rows = np.empty(d2 * p)
    spread = np.empty(p)
    last = d1 if hold_scale else p
    at = 0
    for i in range(n):
        count = counts[i]
        for k in range(count):  # e - X u, and L_0 x for every whitened row x
            first = (at + k) * p
            e[at + k] -= dot(every, first, u, start, last)
            for j in range(k * p, (k + 1) * p):
                known_rows[j] = 0.0
            for j in range(last):
                add_scaled(every[first + j], flat, j * p + j, known_rows, k * p + j, p - j)
        for f in range(d2):
            root = 1.0 / math.sqrt(b[f])
            known = 0.0
            delta = 0.0
            for j in range(p):
                spread[j] = 0.0
            for k in range(count):
                y = every[(at + k) * p + d1 + f] * root
                known += y * y
                delta += y * e[at + k]
                add_scaled(y, known_rows, k * p, spread, start, p)
            known -= dot(spread, start, spread, start, p)
            delta *= root
            own[f] = u[d1 + f] + delta
            gamma_2[f] += max(0.0, known)
            squares_2[f] += weight_of(numbers[sq1 + d1 + f], seen[d1 + f]) * delta * delta
        errors += squared_errors(slots[i], d1, d2, arm_data, arm_rhs, u, own)
        at += count
    numbers[EVIDENCE] = -0.5 * (rows * math.log(2.0 * math.pi * sigma2) + rest / sigma2 + log_det)
    numbers[GAMMA] = gamma_0 + gamma_1 + gamma_m + gamma_2.sum()
    if not hold_noise:
        free = max(0.0, rows - left_out - numbers[GAMMA])
        spread_r = variance_of_rewards(numbers, rows)
        least = FLOOR_NOISE * spread_r + ROUNDING * numbers[SQUARES] / rows
        numbers[SIGMA2] = max(half_cauchy(errors + LEAST_ERRORS * spread_r, free, sigma2, c_sigma), least)
    if not hold_scale:
        if c_1 > 0.0:
            numbers[S1] = bounded(half_cauchy(squares_1, gamma_1, numbers[S1], c_1), c_1)
        if c_2 > 0.0:
            differed, counted = differences_of_dropped(numbers, d1, d2)
            mean_s2 = 0.0
            for k in range(d2):
                mean_s2 += numbers[s2 + k] / d2
                squares_2[k] += differed[k]
                gamma_2[k] += counted[k]
            common = bounded(half_cauchy(squares_2.sum(), gamma_2.sum(), mean_s2, c_2), c_2)
            for k in range(d2):
                numbers[s2 + k] = bounded(half_cauchy(squares_2[k], gamma_2[k], numbers[s2 + k], common), c_2)
            numbers[SM] = bounded(half_cauchy(squares_m, gamma_m, numbers[SM], c_m), c_m)
            spread_m = spread_of_mean(numbers, d1, d2)
            for k in range(d2):
                numbers[HEAD + d2 + k] = u[d1 + k]
                for j in range(k + 1):
                    total_m = 0.0
                    for i in range(d1 + k, p):
                        total_m += columns[d1 + k, i] * columns[d1 + j, i]
                    spread_m[k, j] = total_m
                    spread_m[j, k] = total_m
