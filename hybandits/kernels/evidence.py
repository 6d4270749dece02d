"""One empirical Bayes step: settings that make the rewards more likely (noise, scales and the common mean of arms).

The model (w_k: the mean square of feature k over the rows in which it is not 0; s1 and s_m: one for each group of
features of x and of z)

    r = x.theta + z.beta_i + noise,        noise ~ N(0, sigma^2)
    theta_k ~ N(0, s1 / w_k),    beta_ik ~ N(m_k, s2_k / w_k),    m_k ~ N(0, s_m / w_k)

is linear and Gaussian once its scales are known, with the ridges

    a_k = sigma^2 w_k / s1,      b_k = sigma^2 w_k / s2_k,        g_k = sigma^2 w_k / s_m.

`step` maximises the evidence, the density of all rewards with the parameters integrated out. It takes the data as
factors without any ridge (`empirical_bayes` keeps them) and adds them to the prior's rows by reflections, so nothing
is ever subtracted.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from hybandits.foundation.compiling import kernel
from hybandits.kernels.arrow import factor_size, invert_triangle, reflect_rows, unpacked
from hybandits.kernels.simd import load1, load4, muladd4, splat4, store1, store4, sum4

_SUMS = ["residual", "mean_reward", "spread", "squares", "log_det_dropped", "weight", "rate", "clock"]
_RESULTS = ["evidence", "parameters", "sigma2_in_use"]
_COUNTS = ["rows", "next", "due", "phase", "cursor", "end", "inverted", "arms", "refreshes", "ready", "constant"]

STATE = np.dtype(
    (np.record, [(name, "f8") for name in ("sigma2", *_SUMS, *_RESULTS)] + [(name, "i8") for name in _COUNTS])
)
"""The scalars of a model.

- sigma2: the variance of the noise, as of the last step
- residual: the squares that no factor explains
- mean_reward, spread, squares: the rewards' mean, and the sums of their squared deviations and of their squares
- log_det_dropped: log |C C'| of all arms that were dropped
- weight, rate, clock: rows by weight, 1 / memory (0: nothing is forgotten), memories that have passed
- evidence, parameters: the log evidence and the effective number of parameters before the last step
- sigma2_in_use: the sigma^2 of the posterior factors
- rows, next, due: rows learned, the row of the next refresh, 1 if one is due
- phase: stage of a refresh (0: none, 1: rebuilding the posterior factors, more: the steps before that)
- cursor, end: the place in `Arms.order` that rebuilding has reached, and the one where it ends
- inverted: rows of the next L_0 that follow from the next R_0; 0 where these are not yet to be computed (see `large`)
- arms, refreshes: arms that have learned, refreshes so far
- ready: 1 if the posterior factors have been built at learned settings
- constant: features that have never changed, as of the last refresh
"""

_COUNTED = ["seen", "squares", "usual", "ridge"]
_MARKS = ["varied", "unknown", "group"]
_LEARNED = ["scale", "s2", "m", "m_in_use", "dropped_squares", "dropped_count"]

FEATURE = np.dtype(
    (
        np.record,
        [(name, "f8") for name in _COUNTED] + [(name, "i8") for name in _MARKS] + [(name, "f8") for name in _LEARNED],
    )
)
"""Statistics and settings of each feature of x, then of z.

- seen, squares: the number of rows in which it was not 0, and its sum of squares, by weight
- usual, varied: its value in the first row, 1 if it has ever differed
- ridge, unknown: its ridge in the posterior factors, 1 if it had not changed when they were built
- group, scale: its group (those of x are numbered first, then those of z), and the group's s1 or s_m as of the last
  step
- s2, m, m_in_use: of z only: s2_k and the common mean as of the last step, and the mean in the posterior factors
- dropped_squares, dropped_count: of z only: w_k delta_ik^2 and gamma_2k, summed over arms that were dropped
"""


class Data(NamedTuple):
    """The rows learned, as factors without a ridge."""

    arm: Any
    """[R_i | T_i] of every slot."""
    arm_rhs: Any
    shared: Any
    """The triangle of theta."""
    shared_rhs: Any
    dropped: Any
    """The triangle of (theta, m) that arms which were dropped have left behind."""
    dropped_rhs: Any


class Arms(NamedTuple):
    """The arms that have learned."""

    order: Any
    """Slots in the order in which their arms first learned."""
    place: Any
    """The place of a slot in `order`, -1 if its arm has not learned."""
    rank: Any
    """Rows of a slot's data factor that are not 0."""
    pulls: Any
    clock: Any
    """`STATE.clock` when a slot's data were last brought up to date."""
    weight: Any
    """Rows in a slot's data, by weight."""


class Posterior(NamedTuple):
    """The factors used for scoring (see `arrow`), with the prior's rows in."""

    arm_factor: Any
    arm_score: Any
    """Slot 0 is an arm before any data."""
    shared_factor: Any
    shared_score: Any
    next_factor: Any
    """The R_0 under construction."""
    next_rhs: Any


class Model(NamedTuple):
    """The state of a model with learned settings."""

    data: Data
    arms: Arms
    posterior: Posterior
    state: Any
    """One record, see STATE."""
    features: Any
    """Records of the features of x, then of z, see FEATURE."""
    mean_spread: Any
    """Cov(m) / sigma^2 as of the last step, (d2, d2)."""
    prior: Any
    """R_p, packed: (R_p' R_p)^-1 is the prior covariance of an arm's own parameters, in units of sigma^2."""


CONSTANT = 1e-3
"""A feature that differs from its usual value by less than this share of it counts as unchanged."""
FLOOR_NOISE, ROUNDING = 1e-12, 1e-26
"""The least sigma^2, as shares of the rewards' variance and of their mean square."""
LEAST_ERRORS = 1e-3
"""The share of the rewards' variance V added to squared errors: a prior proportional to exp(-0.001 V / (2 sigma^2)).
Without it the noise would go to 0 where parameters can explain the few rewards exactly."""
FLOOR_SCALE, CEILING_SCALE = 1e-8, 1e12
"""Bounds of the variances of parameters, in units of their centres."""
MOST_NEWTON, LONGEST = 100, 4.0
"""The number of Newton's steps towards a centre, and the longest, in natural logarithms."""
LARGE = 128
"""With more features than this, d1 + d2, refreshes are done in slices, see `large`."""
UNINFORMED = 2.0**500
"""The ridge of a feature whose parameter stays 0, whatever the feature's units."""


@kernel
def set_prior_triangle(b, spread, triangle):
    """R_p = U^-1 with U U' = diag(1 / b) + Cov(m) / sigma^2 and U upper triangular.

    The uncertainty of m keeps new arms worth exploring where features are collinear or few arms have learned.
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


@kernel(inline=True)
def half_cauchy(squares, count, s, c):
    """One fixed-point step for a variance with a half-Cauchy prior of median sqrt(c) on its root.

    h = (N + s c/(c + s)) / (g + s/(c + s)), with N the squares and g the effective count.
    """
    share = s / (c + s)
    return (squares + c * share) / (count + share)


@kernel(inline=True)
def bounded(scale, centre):
    """A variance of parameters, within its bounds."""
    return min(max(scale, FLOOR_SCALE * centre), CEILING_SCALE * centre)


@kernel(inline=True)
def ridge_of(sigma2, weight, scale):
    """sigma^2 w / s; UNINFORMED for a feature that was 0 in every row, whose weight is 0."""
    return sigma2 * weight / scale if weight > 0.0 else UNINFORMED


@kernel(inline=True)
def weight_of(feature):
    """w_k, the mean square of a feature where it is not 0."""
    return feature.squares / feature.seen if feature.seen > 0 else 0.0


@kernel(inline=True)
def differs(value, usual):
    """Return whether a feature is not as usual."""
    return abs(value - usual) > CONSTANT * abs(usual)


@kernel
def constant_features(state, features):
    """Return which features are the same in all rows and not 0, and the first of them, the intercept (-1: none).

    Their effects cannot be told apart: together they are the level of the rewards. The intercept carries it, and the
    others are UNINFORMED. There must be two rows.
    """
    p = features.shape[0]
    constant = np.zeros(p, np.bool_)
    intercept = -1
    if state.weight > 1:
        for k in range(p):
            constant[k] = features[k].varied == 0 and features[k].usual != 0.0
            if constant[k] and intercept < 0:
                intercept = k
    return constant, intercept


@kernel(inline=True)
def variance_of_rewards(state):
    """V: the mean square where rewards do not differ, half of it after one row."""
    v = state.squares / state.weight
    spread = v / 2.0 if state.weight == 1 else state.spread / state.weight
    return spread if spread > 0.0 else v


@kernel
def centres(state, features, d1, constant):
    """Centres of sigma^2, s1, s2 and s_m: the rewards' variance shared out evenly among noise, x and z.

    That of s_m has the rewards' level to explain as well, unless there is an intercept.
    """
    rows = state.weight
    spread = variance_of_rewards(state)
    level = state.squares / rows
    active_x = 0.0
    active_z = 0.0
    for k in range(features.shape[0]):
        if constant[k]:
            level = spread
        if k >= d1:
            active_z += features[k].seen / rows
        elif not constant[k]:
            active_x += features[k].seen / rows
    parts = 1.0 + (active_x > 0.0) + (active_z > 0.0)
    c_1 = spread / (parts * active_x) if active_x > 0.0 else 0.0
    c_2 = spread / (parts * active_z) if active_z > 0.0 else 0.0
    c_m = level / (parts * active_z) if active_z > 0.0 else 0.0
    return spread / parts, c_1, c_2, c_m


@kernel
def start_at(centre, state, features, d1):
    """Let scales that are 0 begin at their centres."""
    c_sigma, c_1, c_2, c_m = centre
    if state.sigma2 == 0.0:
        state.sigma2 = c_sigma
    for k in range(features.shape[0]):
        if features[k].scale == 0.0:
            features[k].scale = c_1 if k < d1 else c_m
        if k >= d1 and features[k].s2 == 0.0:
            features[k].s2 = c_2


@kernel
def set_ridges(state, features, d1, ridge, g):
    """Fill ridge = (a, b) and g from the scales.

    The variance of the intercept is the mean square of the rewards, so that it can carry their level.
    """
    constant, intercept = constant_features(state, features)
    sigma2 = state.sigma2
    v = state.squares / max(state.weight, 1.0)
    for k in range(features.shape[0]):
        feature = features[k]
        w = weight_of(feature)
        common = UNINFORMED
        if k == intercept or not constant[k]:
            common = ridge_of(sigma2, w, v if k == intercept else feature.scale)
        if k < d1:
            ridge[k] = common
        else:
            ridge[k] = ridge_of(sigma2, w, feature.s2)
            g[k - d1] = common


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
            row = rows[at + count * p : at + (count + 1) * p]
            row[own : own + k] = 0.0
            row[own + k : own + d2] = factor[o : o + d2 - k]
            row[shared : shared + d1] = factor[o + d2 - k : o + d2 - k + d1]
            q[count] = rhs[h + k]
            count += 1
        o += d2 - k + d1
    return count


@kernel(inline=True)
def rank_of(slot, d1, d2, arm_data):
    """The number of rows of an arm's data factor that are not 0."""
    o = slot * factor_size(d2, d1)
    rank = 0
    for k in range(d2):
        if arm_data[o] != 0.0:
            rank += 1
        o += d2 - k + d1
    return rank


@kernel(inline=True)
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


@kernel(inline=True)
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
def squared_errors(slot, d1, d2, arm_data, arm_rhs, theta, beta):
    """|q_i - R_i beta - T_i theta|^2 of an arm's data factor."""
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
def reflect_triangle(factor, rhs, p, other, other_rhs, d):
    """Reflect the rows of a packed triangle of dimension d into one of dimension p; returns the squares left over."""
    start = 0 * p
    rows = unpacked(other, start, d, start, p).reshape(d * p)
    left = other_rhs.copy()
    reflect_rows(factor, start, rhs, start, p, start, rows, start, d, p, left)
    return dot(left, start, left, start, d)


@kernel
def whitened_rows(slots, d1, d2, data, b):
    """The rows of these arms whitened by `whiten_arm`, their e, the edges between arms, and log |C C'| of each arm."""
    n = slots.shape[0]
    p = d1 + d2
    start = 0 * d1
    size = factor_size(d2, d1)
    edges = np.zeros(n + 1, np.int64)
    for i in range(n):
        edges[i + 1] = edges[i] + rank_of(slots[i], d1, d2, data.arm)
    rows = np.empty(edges[n] * p)
    e = np.empty(edges[n])
    log_dets = np.empty(n)
    for i in range(n):
        own = e[edges[i] : edges[i + 1]]
        at = edges[i] * p
        count = gather_rows(data.arm, slots[i] * size, data.arm_rhs, slots[i] * d2, d1, d2, rows, at, d1, start, own)
        log_dets[i] = whiten_arm(count, d1, d2, b, rows, at, own)
    return rows, e, edges, log_dets


@kernel
def posterior_of_shared(d1, d2, model, whitened, prior):
    """The posterior of u = (theta, m), with the arms' own parameters integrated out.

    prior: the ridges (a, g). Returns u, the columns of L_0 as rows, so that inner sums run along memory, the squares
    that are left over, and the log determinant of the rewards' variance.
    """
    rows, e, edges, log_dets = whitened
    state, data = model.state[0], model.data
    p = d1 + d2
    start = 0 * d1
    shared = np.zeros(factor_size(p, start))
    q = np.zeros(p)
    log_det = state.log_det_dropped
    o = 0
    for k in range(p):
        shared[o] = math.sqrt(prior[k])
        log_det -= math.log(prior[k])
        o += p - k
    rest = state.residual
    rest += reflect_triangle(shared, q, p, data.shared, data.shared_rhs, d1)
    if data.dropped.any():
        rest += reflect_triangle(shared, q, p, data.dropped, data.dropped_rhs, p)
    for i in range(log_dets.shape[0]):
        log_det += log_dets[i]
        at = edges[i]
        count = edges[i + 1] - at
        copied, left = rows[at * p : (at + count) * p].copy(), e[at : at + count].copy()
        reflect_rows(shared, start, q, start, p, start, copied, start, count, p, left)
        for k in range(count):
            rest += left[k] * left[k]
    dense = unpacked(shared, start, p, start, p)
    for k in range(p):
        log_det += 2.0 * math.log(dense[k, k])
    inverse = np.empty((p, p))
    invert_triangle(dense, inverse)
    u = np.zeros(p)
    for i in range(p):
        for j in range(i + 1):
            u[j] += inverse[i, j] * q[i]
    return u, inverse.T.copy(), rest, log_det


@kernel
def known_of_shared(prior, columns):
    """The effective number of parameters of every entry of (theta, m)."""
    p = prior.shape[0]
    known = np.empty(p)
    for k in range(p):
        width = 0.0
        for i in range(k, p):
            width += columns[k, i] * columns[k, i]
        known[k] = max(0.0, 1.0 - prior[k] * width)
    return known


@kernel
def sums_of_groups(features, constant, known, u):
    """The effective numbers of parameters of constant features, and of other entries of (theta, m), in each group; and
    the weighted squares of these entries."""
    p = u.shape[0]
    _, count = groups_of(features, 0 * p, p)
    fixed = np.zeros(count)
    gammas = np.zeros(count)
    squares = np.zeros(count)
    for k in range(p):
        if constant[k]:
            fixed[features[k].group] += known[k]
        else:
            gammas[features[k].group] += known[k]
            squares[features[k].group] += weight_of(features[k]) * u[k] * u[k]
    return fixed, gammas, squares


@kernel
def moments_of_own(slots, d1, d2, data, features, whitened, b, u, columns, errors):
    """The effective number of parameters and the weighted squares of each feature of z; `errors` plus those of arms."""
    rows, e, edges, _ = whitened
    p = d1 + d2
    start = 0 * d1
    flat = columns.reshape(p * p)
    gamma = np.zeros(d2)
    squares = np.zeros(d2)
    own = np.empty(d2)
    known_rows = np.empty(d2 * p)
    spread = np.empty(p)
    for i in range(slots.shape[0]):
        at = edges[i]
        count = edges[i + 1] - at
        for k in range(count):  # e - X u, and L_0 x for every whitened row x
            first = (at + k) * p
            e[at + k] -= dot(rows, first, u, start, p)
            known_rows[k * p : (k + 1) * p] = 0.0
            for j in range(p):
                add_scaled(rows[first + j], flat, j * p + j, known_rows, k * p + j, p - j)
        for f in range(d2):
            root = 1.0 / math.sqrt(b[f])
            known = 0.0
            delta = 0.0
            spread[:] = 0.0
            for k in range(count):
                y = rows[(at + k) * p + d1 + f] * root
                known += y * y
                delta += y * e[at + k]
                add_scaled(y, known_rows, k * p, spread, start, p)
            known -= dot(spread, start, spread, start, p)
            delta *= root
            own[f] = u[d1 + f] + delta
            gamma[f] += max(0.0, known)
            squares[f] += weight_of(features[d1 + f]) * delta * delta
        errors += squared_errors(slots[i], d1, d2, data.arm, data.arm_rhs, u, own)
    return gamma, squares, errors


@kernel
def groups_of(features, first, last):
    """The lowest group of the features first..last-1 and how many there are, numbered one after another."""
    if first == last:
        return 0, 0
    low = features[first].group
    high = low
    for k in range(first, last):
        low = min(low, features[k].group)
        high = max(high, features[k].group)
    return low, high + 1 - low


@kernel
def common_centre(scales, first):
    """The centre c of the scales of several groups, which is itself drawn to `first`; of one group it is `first`.

    With half-Cauchy priors of median sqrt(c) on the roots of the scales and one of median sqrt(first) on that of c, the
    density of log c is largest where

        sum_g (c - s_g) / (c + s_g) + (c - first) / (c + first) = 0.

    The left side grows with log c; Newton's steps are kept between bounds, and units do not matter to the bit.
    """
    count = scales.shape[0]
    c = first
    if count < 2:
        return c
    low = first
    high = first
    for s in scales:
        low = min(low, s)
        high = max(high, s)
    for _ in range(MOST_NEWTON):
        value = (c - first) / (c + first)
        slope = 2.0 * c * first / ((c + first) * (c + first))
        for s in scales:
            value += (c - s) / (c + s)
            slope += 2.0 * c * s / ((c + s) * (c + s))
        if abs(value) <= 1e-14 * count:
            break
        if value > 0.0:
            high = c
        else:
            low = c
        c *= math.exp(min(max(-value / slope, -LONGEST), LONGEST))
        if not low < c < high:
            c = math.sqrt(low) * math.sqrt(high)
    return c


@kernel
def set_group_scales(features, first, last, constant, gammas, squares, centre):
    """The scale of every group of the features first..last-1: s1 of groups of x, s_m of groups of z.

    A group of which nothing is known gets the centre of the others.
    """
    group, count = groups_of(features, first, last)
    known = np.zeros(count, np.bool_)
    scales = np.empty(count)
    for k in range(first, last):
        scales[features[k].group - group] = features[k].scale
        if features[k].seen > 0 and not constant[k]:
            known[features[k].group - group] = True
    c = common_centre(scales[known], centre) if count > 1 else centre
    for g in range(count):
        scales[g] = bounded(half_cauchy(squares[group + g], gammas[group + g], scales[g], c), centre)
        if count > 1 and not known[g]:
            scales[g] = c
    for k in range(first, last):
        features[k].scale = scales[features[k].group - group]


@kernel
def set_own_scales(features, d1, gamma, squares, c_2):
    """s2 of every group of features of z, drawn to a centre that they have in common.

    While there is one group only, every feature has an s2 of its own, drawn to that of the group.
    """
    d2 = gamma.shape[0]
    first, count = groups_of(features, d1, d1 + d2)
    sizes = np.zeros(count)
    means = np.zeros(count)
    all_squares = np.zeros(count)
    all_gamma = np.zeros(count)
    squares = squares.copy()
    gamma = gamma.copy()
    for k in range(d2):
        sizes[features[d1 + k].group - first] += 1.0
    for k in range(d2):
        feature = features[d1 + k]
        g = feature.group - first
        squares[k] += feature.dropped_squares
        gamma[k] += feature.dropped_count
        means[g] += feature.s2 / sizes[g]
        all_squares[g] += squares[k]
        all_gamma[g] += gamma[k]
    c = common_centre(means, c_2)
    for g in range(count):
        means[g] = bounded(half_cauchy(all_squares[g], all_gamma[g], means[g], c), c_2)
    for k in range(d2):
        feature = features[d1 + k]
        if count > 1:
            feature.s2 = means[feature.group - first]
        else:
            feature.s2 = bounded(half_cauchy(squares[k], gamma[k], feature.s2, means[0]), c_2)


@kernel
def set_common_mean(features, d1, u, columns, mean_spread):
    """m and Cov(m) / sigma^2."""
    p = u.shape[0]
    for k in range(p - d1):
        features[d1 + k].m = u[d1 + k]
        for j in range(k + 1):
            total = 0.0
            for i in range(d1 + k, p):
                total += columns[d1 + k, i] * columns[d1 + j, i]
            mean_spread[k, j] = total
            mean_spread[j, k] = total


@kernel
def begin_at_centres(d1, model, prior):
    """Let scales that are 0 begin at their centres; fill the ridges (a, g) of (theta, m), and return b."""
    state, features = model.state[0], model.features
    constant, _ = constant_features(state, features)
    start_at(centres(state, features, d1, constant), state, features, d1)
    ridge = np.empty(prior.shape[0])
    set_ridges(state, features, d1, ridge, prior[d1:])
    prior[:d1] = ridge[:d1]
    return ridge[d1:].copy()


@kernel
def set_scales(d1, model, u, known, own_known, own_squares, rest, log_det, errors, left_out, fixed_noise):
    """Noise and scales, given the estimate u of (theta, m), effective numbers of parameters and sums of squares.

    own_known, own_squares: of the arms' own parameters, for each feature of z. rest, log_det: of the evidence. Returns
    the effective numbers of parameters of (theta, m) in each group, and `own_known`.
    """
    state, features = model.state[0], model.features
    sigma2 = state.sigma2
    constant, _ = constant_features(state, features)
    c_sigma, c_1, c_2, c_m = centres(state, features, d1, constant)
    fixed, gammas, squares = sums_of_groups(features, constant, known, u)
    state.evidence = -0.5 * (state.weight * math.log(2.0 * math.pi * sigma2) + rest / sigma2 + log_det)
    state.parameters = fixed.sum()
    for gamma in gammas:
        state.parameters += gamma
    state.parameters += own_known.sum()
    if not fixed_noise:
        free = max(0.0, state.weight - left_out - state.parameters)
        spread = variance_of_rewards(state)
        least = FLOOR_NOISE * spread + ROUNDING * state.squares / state.weight
        state.sigma2 = max(half_cauchy(errors + LEAST_ERRORS * spread, free, sigma2, c_sigma), least)
    if c_1 > 0.0:
        set_group_scales(features, 0 * d1, d1, constant, gammas, squares, c_1)
    if c_2 > 0.0:
        set_own_scales(features, d1, own_known, own_squares, c_2)
        set_group_scales(features, d1, u.shape[0], constant, gammas, squares, c_m)
    return fixed + gammas, own_known


@kernel
def step(slots, d1, d2, model, left_out, fixed_noise):
    """One fixed-point step of the marginal likelihood; changes the scales and m of a model.

    slots: the arms that take part; left_out: the number of parameters determined by the rows of the other arms alone.
    fixed_noise: True if the noise is given. A scale that is 0 begins at its centre. Returns what `set_scales` does.
    """
    state, features, data = model.state[0], model.features, model.data
    start = 0 * d1
    prior = np.empty(d1 + d2)
    b = begin_at_centres(d1, model, prior)
    whitened = whitened_rows(slots, d1, d2, data, b)
    u, columns, rest, log_det = posterior_of_shared(d1, d2, model, whitened, prior)
    errors = state.residual + squared_errors(start, start, d1, data.shared, data.shared_rhs, u, u[:d1])
    if data.dropped.any():
        errors += squared_errors(start, start, d1 + d2, data.dropped, data.dropped_rhs, u, u)
    known = known_of_shared(prior, columns)
    own_known, own_squares, errors = moments_of_own(slots, d1, d2, data, features, whitened, b, u, columns, errors)
    returned = set_scales(d1, model, u, known, own_known, own_squares, rest, log_det, errors, left_out, fixed_noise)
    if d2 > 0 and features[d1].s2 > 0.0:
        set_common_mean(features, d1, u, columns, model.mean_spread)
    return returned
